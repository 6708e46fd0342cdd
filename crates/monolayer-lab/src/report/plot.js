"use strict";
// What all scripts of the page share: numbers for people, elements, the tip. Text from data only ever becomes text.
const page = {
  number(x, digits = 4) {
    if (!Number.isFinite(x)) return String(x);
    if (x === 0) return "0";
    const size = Math.abs(x), sign = x < 0 ? "−" : "";
    if (size < 1e-3 || size >= 1e7) {
      const [mantissa, exponent] = size.toExponential(digits - 1).split("e");
      const power = "10" + [...String(+exponent)].map((c) => "⁰¹²³⁴⁵⁶⁷⁸⁹"[c] ?? "⁻").join("");
      return sign + (+mantissa === 1 ? power : `${+mantissa}×${power}`);
    }
    const rounded = +size.toPrecision(digits);
    return sign + (rounded < 1000 ? String(rounded) : rounded.toLocaleString("en-US"));
  },
  element(name, attributes = {}, ...children) {
    const svg = ["svg", "path", "circle", "line", "text", "rect", "g", "title", "polyline", "clipPath", "defs"].includes(name);
    const node = svg ? document.createElementNS("http://www.w3.org/2000/svg", name) : document.createElement(name);
    for (const [key, value] of Object.entries(attributes)) node.setAttribute(key, value);
    node.append(...children);
    return node;
  },
  tip(lines, x, y) {
    const tip = document.getElementById("tip");
    if (!lines) { tip.hidden = true; return; }
    tip.replaceChildren(...lines.map((line) => page.element("div", {}, line)));
    tip.hidden = false;
    const { width, height } = tip.getBoundingClientRect();
    const left = Math.min(x + 14, document.documentElement.clientWidth - width - 8);
    tip.style.left = `${Math.max(8, left) + window.scrollX}px`;
    tip.style.top = `${Math.max(8, y - height - 12) + window.scrollY}px`;
  },
};

// Values of a figure under the pointer, or along it with the arrow keys.
function followPointer(svg) {
  const plot = JSON.parse(svg.dataset.plot);
  const [left, top, right, bottom] = plot.area;
  const place = (axis, value) => {
    if (axis.log && value <= 0) return 0;
    return ((axis.log ? Math.log10(value) : value) - axis.ends[0]) / (axis.ends[1] - axis.ends[0]);
  };
  const marks = plot.series.flatMap((series, s) => series.points.map((point, i) => ({
    series, s, i, point,
    x: left + place(plot.x, point[0]) * (right - left),
    y: bottom - place(plot.y, point[1]) * (bottom - top),
  })));
  if (marks.length === 0) return;
  const ring = page.element("circle", { r: 7, fill: "none", "stroke-width": 2, visibility: "hidden", class: "ring" });
  svg.append(ring);
  let current = null;
  const show = (mark) => {
    current = mark;
    const { series, point } = mark;
    ring.setAttribute("cx", mark.x);
    ring.setAttribute("cy", mark.y);
    ring.setAttribute("visibility", "visible");
    ring.style.stroke = `var(--s${series.color % 7})`;
    const value = (axis, x) => `${axis.label}: ${page.number(x)} ${axis.unit}`;
    const band = point.length > 2 ? [`range: ${page.number(point[2])} to ${page.number(point[3])}`] : [];
    const box = svg.getBoundingClientRect();
    const scale = box.width / svg.viewBox.baseVal.width;
    page.tip([series.name, value(plot.x, point[0]), value(plot.y, point[1]), ...band],
      box.left + mark.x * scale, box.top + mark.y * scale);
  };
  const hide = () => { ring.setAttribute("visibility", "hidden"); page.tip(null); };
  svg.addEventListener("pointermove", (event) => {
    const box = svg.getBoundingClientRect();
    const scale = svg.viewBox.baseVal.width / box.width;
    const x = (event.clientX - box.left) * scale, y = (event.clientY - box.top) * scale;
    const far = (mark) => (mark.x - x) ** 2 + (mark.y - y) ** 2;
    show(marks.reduce((best, mark) => (far(mark) < far(best) ? mark : best)));
  });
  svg.addEventListener("pointerleave", hide);
  svg.addEventListener("blur", hide);
  svg.addEventListener("keydown", (event) => {
    const [along, across] = { ArrowRight: [1, 0], ArrowLeft: [-1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] }[event.key] ?? [];
    if (along === undefined) return;
    event.preventDefault();
    const from = current ?? marks[0];
    const s = (from.s + across + plot.series.length) % plot.series.length;
    const row = marks.filter((mark) => mark.s === s);
    if (row.length > 0) show(row[Math.max(0, Math.min(row.length - 1, from.i + along))]);
  });
}
document.querySelectorAll("svg.plot[data-plot]").forEach(followPointer);
