// Everything on the page starts here.
const tours = [...document.querySelectorAll(".tour")].map((root, number) => (root.tour = new Tour(root, number)));
document.querySelectorAll(".approximation").forEach((root) => { root.approximation = new Approximation(root); });
addEventListener("hashchange", () => { if (location.hash !== Tour.written) tours.forEach((tour) => tour.restore(location.hash)); });
