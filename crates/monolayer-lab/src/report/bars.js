// The parts of each label's score as bars that add up to it.
function contributionBars(tour, token, width) {
  const { model } = tour, parts = model.contributions(token, tour.how);
  // The labels with the highest scores, the parts that matter most between the first two, and the rest as one.
  const labels = token.scores.map((_, l) => l).sort((a, b) => token.scores[b] - token.scores[a]).slice(0, 5);
  const says = (part) => Math.max(...labels.map((l) => Math.abs(part.adds[l])));
  const order = [...parts].sort((a, b) => says(b) - says(a));
  const shown = order.slice(0, order.length > 7 ? 6 : 7), rest = order.slice(shown.length);
  if (rest.length > 0) shown.push({ name: `${rest.length} others`, adds: model.labels.map((_, l) => rest.reduce((sum, part) => sum + part.adds[l], 0)) });
  const ends = labels.map((l) => [...shown.reduce(([minus, plus], part) => (part.adds[l] < 0 ? [minus + part.adds[l], plus] : [minus, plus + part.adds[l]]), [0, 0])]);
  const low = Math.min(0, ...ends.map((e) => e[0])), high = Math.max(0, ...ends.map((e) => e[1])) || 1;
  const name = Math.min(150, 16 + 9.6 * Math.max(...labels.map((l) => tour.short(model.labels[l]).length)));
  const left = name, said = labels.map((l) => page.number(token.scores[l])), right = width - 16 - 9 * Math.max(...said.map((text) => text.length)), row = 34;
  const x = (score) => left + ((score - low) / (high - low)) * (right - left);
  const svg = page.element("svg", { viewBox: `0 0 ${width} ${row * labels.length + 8}`, width, class: "bars", role: "img",
    "aria-label": labels.map((l) => `${model.labels[l]}: ${page.number(token.scores[l])}`).join(", ") });
  labels.forEach((l, r) => {
    const y = 6 + row * r;
    svg.append(page.element("text", { x: left - 8, y: y + 17, "text-anchor": "end", class: l === token.label ? "name strong" : "name", style: `fill:${tour.color(l)}` }, tour.short(model.labels[l])));
    let [minus, plus] = [0, 0];
    shown.forEach((part, k) => {
      const add = part.adds[l];
      if (add === 0) return;
      const [from, to] = add < 0 ? [minus + add, minus] : [plus, plus + add];
      if (add < 0) minus += add; else plus += add;
      const bar = page.element("rect", { x: x(from), y, width: Math.max(1, x(to) - x(from)), height: 22, rx: 3, class: add < 0 ? "part minus" : "part", style: `fill:${tour.color(l)}` });
      bar.addEventListener("pointerenter", (event) => page.tip([part.name, `adds ${page.number(add)} to ${model.labels[l]}`], event.clientX, event.clientY));
      bar.addEventListener("pointerleave", () => page.tip(null));
      svg.append(bar);
      if (x(to) - x(from) > 16) svg.append(page.element("text", { x: (x(from) + x(to)) / 2, y: y + 16, "text-anchor": "middle", class: "inside" }, `${k + 1}`));
    });
    // Where negative parts are, the sum is not where the bars end.
    const at = x(token.scores[l]);
    if (minus < 0) svg.append(page.element("line", { x1: at, x2: at, y1: y - 3, y2: y + 25, class: "sum" }));
    svg.append(page.element("text", { x: Math.max(x(plus), at) + 8, y: y + 17, class: l === token.label ? "name strong" : "name" }, said[r]));
  });
  svg.append(page.element("line", { x1: x(0), x2: x(0), y1: 0, y2: row * labels.length + 4, class: "axis" }));
  const list = page.element("ol", { class: "parts" }, ...shown.map((part) => page.element("li", {}, tour.partInWords(part, token))));
  const more = model.labels.length - labels.length;
  return [svg, list, ...(more > 0 ? [page.element("p", { class: "legend" }, `${more.toLocaleString("en-US")} more labels have lower scores.`)] : [])];
}

// The margin and what may be lost of it, on a logarithmic line.
function marginBar(margin, error) {
  const width = 360, left = 26, right = 334;
  const high = Math.ceil(Math.log10(margin) + 0.3), low = Math.min(Math.floor(Math.log10(Math.max(error, 1e-18))) - 1, high - 2);
  const at = (x) => left + Math.max(0, (Math.log10(x) - low) / (high - low)) * (right - left);
  const svg = page.element("svg", { viewBox: `0 0 ${width} 54`, class: "bar", role: "img",
    "aria-label": `lead ${page.number(margin)}, error ${page.number(error)}` });
  const bar = (to, y, name) => svg.append(page.element("rect", { x: left, y, width: Math.max(1, to - left), height: 10, class: name }));
  bar(at(margin), 4, "margin");
  if (error > 0) bar(at(error), 17, "error");
  const step = Math.ceil((high - low) / 5);
  for (let e = low; e <= high; e += step) {
    const x = at(10 ** e);
    svg.append(page.element("line", { x1: x, x2: x, y1: 30, y2: 35, class: "axis" }),
      page.element("text", { x, y: 50, "text-anchor": "middle" }, page.number(10 ** e)));
  }
  svg.append(page.element("line", { x1: left, x2: right, y1: 30, y2: 30, class: "axis" }));
  return page.element("div", {}, svg, page.element("p", { class: "legend" },
    page.element("span", { class: "key margin" }), "lead of the label", page.element("span", { class: "key error" }), "what rounding can change (log scale)"));
}
