// The picture of one word: g(y) above the line of ids on which the words of the sentence lie, and below it the ids of the
// word's contexts, enlarged.
class Curve {
  constructor(tour, i, nearest, others, width) {
    Object.assign(this, { tour, i, nearest, others, width, token: tour.tokens[i] });
    this.left = 52;
    this.right = width - 14;
    const { values, keys, y } = this.token;
    const spread = Math.max(...values) - Math.min(...values) || 1;
    this.low = Math.min(...values) - 0.06 * spread;
    this.high = Math.max(...values) + 0.06 * spread;
    const mean = keys.reduce((a, b) => a + b, 0) / keys.length;
    const deviation = Math.sqrt(keys.reduce((a, b) => a + (b - mean) ** 2, 0) / keys.length) || 1;
    this.reach = Math.max(1.5 * Math.abs(y), 2.5 / deviation);
    this.panel = { top: 30, bottom: 230 };
    this.nodes = [];
    this.text(4, 14, "query y", "start", "name");
    this.drawKey();
    this.drawCurve();
    const line = this.drawWords();
    const bottom = this.drawContexts(line);
    this.element = page.element("svg", { viewBox: `0 0 ${width} ${bottom}`, width, height: bottom, class: "curve", role: "img",
      "aria-label": `Boltzmann curve and context id of ${tour.words[i]}` }, ...this.nodes);
  }

  x(id) {
    return this.left + ((id - this.low) / (this.high - this.low)) * (this.right - this.left);
  }

  y(query) {
    const { top, bottom } = this.panel;
    return (top + bottom) / 2 - (query / this.reach) * ((bottom - top) / 2);
  }

  add(name, attributes, ...children) {
    const node = page.element(name, attributes, ...children);
    this.nodes.push(node);
    return node;
  }

  text(x, y, text, anchor, name, style = "") {
    return this.add("text", { x, y, "text-anchor": anchor, class: name, style }, text);
  }

  line(x1, y1, x2, y2, name, style = "") {
    this.add("line", { x1, y1, x2, y2, class: name, style });
  }

  path(keys, values, name, style) {
    const steps = 160;
    const points = Array.from({ length: steps + 1 }, (_, k) => {
      const y = this.reach * (2 * k / steps - 1);
      return [Model.mix(keys, values, y).id, y];
    }).filter(([id]) => id >= this.low && id <= this.high);
    const text = points.map(([id, y]) => `${this.x(id).toFixed(1)},${this.y(y).toFixed(1)}`).join(" ");
    this.add("polyline", { points: text, class: name, style });
  }

  // Text to the right, in as many lines as it takes; the height of the last.
  note(y, text) {
    const most = Math.floor((this.right - 8) / 6.6), lines = [""];
    for (const word of text.split(" ")) {
      if (lines.at(-1).length + word.length > most) lines.push("");
      lines.push(`${lines.pop()} ${word}`.trim());
    }
    lines.forEach((line, k) => this.text(this.right, y + 16 * k, line, "end", "name"));
    return y + 16 * (lines.length - 1);
  }

  // Which line is which.
  drawKey() {
    const short = this.width < 460;
    const entries = [["own", short ? "g(y)" : "g(y) of this sentence", this.tour.color(this.token.label)]];
    if (this.nearest) entries.push(["other", short ? "nearest other context" : "g(y) of the nearest other context", "var(--muted)"]);
    let x = this.right;
    for (const [name, text, color] of entries.reverse()) {
      this.text(x, 14, text, "end", "tick");
      x -= 5.9 * text.length + 6;
      this.line(x - 22, 10, x, 10, name, `stroke:${color}`);
      x -= 38;
    }
  }

  drawCurve() {
    const { top, bottom } = this.panel, { token, tour } = this;
    for (const value of ticks(-this.reach, this.reach, 5)) {
      this.line(this.left, this.y(value), this.right, this.y(value), "grid");
      this.text(this.left - 6, this.y(value) + 4, page.number(value), "end", "tick");
    }
    if (this.nearest) {
      const other = tour.model.run(this.nearest.sentence.words)[this.nearest.place];
      this.path(other.keys, other.values, "other", "");
    }
    const color = tour.color(token.label);
    this.path(token.keys, token.values, "own", `stroke:${color}`);
    const x = this.x(token.id), y = this.y(token.y);
    this.line(this.left, y, this.right, y, "query");
    this.line(x, y, x, bottom + 18, "drop", `stroke:${color}`);
    this.add("circle", { cx: x, cy: y, r: 6, style: `fill:${color}` });
    const above = y > top + 30;
    this.text(this.right, above ? y - 6 : y + 15, `query of “${tour.words[this.i]}”`, "end", "name");
  }

  // The line of ids, with each word of the sentence where its projection lies, as large as its attention weight.
  drawWords() {
    const { token, tour } = this, at = this.panel.bottom + 18;
    this.line(this.left, at, this.right, at, "axis");
    token.values.forEach((value, j) => {
      const disc = this.add("circle", { cx: this.x(value), cy: at, r: 2 + 9 * Math.sqrt(token.weights[j]), class: "weight" });
      this.hover(disc, [`“${token.seen[j]}”`, `projection ${page.number(value)}`, `attention weight ${page.number(token.weights[j], 3)}`]);
    });
    this.add("circle", { cx: this.x(token.id), cy: at, r: 6, style: `fill:${tour.color(token.label)}`, class: "mark" });
    const rows = stagger(token.values.map((value, j) => ({ x: this.x(value), text: token.seen[j] })), this.left, this.right);
    const depth = Math.max(...rows.map((r) => r.row)) + 1;
    for (const { x, at: place, row, text } of rows) {
      this.line(x, at + 3, x, at + 10 + 15 * row, "leader");
      this.text(place, at + 22 + 15 * row, text, "middle", "tick");
    }
    const values = ticks(this.low, this.high, 5);
    const foot = at + 34 + 15 * depth;
    for (const value of values) this.text(this.x(value), foot, page.number(value), "middle", "tick");
    const end = this.note(foot + 18, "projections of the words (discs: attention weights); their mean is the id g(y)");
    return { at, foot: end };
  }

  // The ids of all contexts of the word.
  drawContexts(line) {
    const { token, tour } = this;
    const own = { id: token.id, label: token.label, own: true };
    const all = [...this.others, own];
    if (all.length < 2) return line.foot + 10;
    const ids = all.map((c) => c.id);
    const spread = Math.max(...ids) - Math.min(...ids);
    const low = Math.min(...ids) - 0.08 * spread, high = Math.max(...ids) + 0.08 * spread;
    const x = (id) => this.left + ((id - low) / (high - low)) * (this.right - this.left);
    const top = line.foot + 34, at = top + 40;
    // The part of the line above that is enlarged here.
    for (const [from, to] of [[low, this.left], [high, this.right]]) {
      this.line(this.x(from), line.at - 8, this.x(from), line.at + 8, "funnel");
      this.line(this.x(from), line.foot + 6, to, top, "funnel");
    }
    this.line(this.left, at, this.right, at, "axis");
    const used = new Set();
    for (const c of all) {
      const color = c.label < 0 ? "var(--muted)" : tour.color(c.label);
      const disc = this.add("circle", { cx: x(c.id), cy: at, r: c.own ? 8 : 5, style: `fill:${color}`, class: c.own ? "mark" : "context" });
      used.add(c.label);
      if (!c.own) this.hover(disc, [c.sentence.words.join(" "), `${c.name ?? "no label"}, id ${page.number(c.id, 7)}`]);
    }
    const named = stagger(all.map((c) => ({ x: x(c.id), text: c.label < 0 ? "?" : tour.model.labels[c.label] })), this.left, this.right, 2);
    for (const { x: from, at: place, row, text } of named.filter((n) => n.row < 2)) {
      this.line(from, at - 7, from, at - 12 - 13 * row, "leader");
      this.text(place, at - 14 - 13 * row, text, "middle", "tick");
    }
    for (const value of ticks(low, high, 4)) {
      this.line(x(value), at, x(value), at + 5, "axis");
      this.text(x(value), at + 24, page.number(value, 7), "middle", "tick");
    }
    const place = tour.model.maxLength === null ? "" : " at this place";
    return this.note(at + 44, `ids of the contexts of “${tour.words[this.i]}”${place}, with their labels`) + 10;
  }

  hover(node, lines) {
    node.addEventListener("pointerenter", (event) => page.tip(lines, event.clientX, event.clientY));
    node.addEventListener("pointerleave", () => page.tip(null));
  }
}

// Texts below each other where they would overlap: each gets a row, and a place within the picture.
function stagger(items, left, right, most = 6) {
  const ends = [];
  return items.map((item) => ({ ...item })).sort((a, b) => a.x - b.x).map((item) => {
    const half = 3.6 * item.text.length + 3;
    item.at = Math.max(left + half - 40, Math.min(right - half + 8, item.x));
    let row = 0;
    while (row < most && ends[row] !== undefined && ends[row] > item.at - half) row++;
    ends[row] = item.at + half;
    return Object.assign(item, { row });
  });
}

// About `count` round values.
function ticks(low, high, count) {
  const rough = (high - low) / count, decade = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 5, 10].map((m) => m * decade).find((s) => s >= rough * 0.999);
  const out = [];
  for (let k = Math.ceil(low / step); k <= high / step; k++) out.push(+(k * step).toPrecision(12));
  return out;
}
