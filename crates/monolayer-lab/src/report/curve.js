// Pictures of one word: from the sentence to a number (g(y), and the words on the line of ids), and from the number to a label
// (the scores along the id, and the ids of the word's contexts).
class Drawing {
  constructor(width) {
    Object.assign(this, { width, left: 58, right: width - 16, nodes: [] });
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

  // Text to the right, in as many lines as it takes; the height of the last.
  note(y, text) {
    const most = Math.floor((this.right - 8) / 7.4), lines = [""];
    for (const word of text.split(" ")) {
      if (lines.at(-1).length + word.length > most) lines.push("");
      lines.push(`${lines.pop()} ${word}`.trim());
    }
    lines.forEach((line, k) => this.text(this.right, y + 18 * k, line, "end", "name"));
    return y + 18 * (lines.length - 1);
  }

  // A place along the ids, from low to high.
  scale(low, high) {
    return (id) => this.left + ((id - low) / (high - low || 1)) * (this.right - this.left);
  }

  hover(node, lines) {
    node.addEventListener("pointerenter", (event) => page.tip(lines, event.clientX, event.clientY));
    node.addEventListener("pointerleave", () => page.tip(null));
  }

  svg(height, label) {
    return page.element("svg", { viewBox: `0 0 ${this.width} ${height}`, width: this.width, height, class: "curve", role: "img",
      "aria-label": label }, ...this.nodes);
  }
}

// How attention reduces the sentence to one number: the curve g(y), cut by the word's query.
class Curve extends Drawing {
  constructor(tour, i, other, width) {
    super(width);
    Object.assign(this, { tour, token: tour.tokens[i], word: tour.name(tour.words[i]), other });
    const { values, keys, y } = this.token;
    const ends = [Math.min(...values), Math.max(...values)], spread = ends[1] - ends[0] || 1;
    this.low = ends[0] - 0.06 * spread;
    this.high = ends[1] + 0.06 * spread;
    this.x = this.scale(this.low, this.high);
    const mean = keys.reduce((a, b) => a + b, 0) / keys.length;
    const deviation = Math.sqrt(keys.reduce((a, b) => a + (b - mean) ** 2, 0) / keys.length) || 1;
    this.reach = Math.max(1.5 * Math.abs(y), 2.5 / deviation);
    this.panel = { top: 34, bottom: 214 };
    this.text(4, 16, "query y", "start", "name");
    this.drawKey();
    this.drawCurve();
    this.element = this.svg(this.drawWords() + 12, `The curve g(y) of the sentence, and the context id of ${this.word}`);
  }

  y(query) {
    const { top, bottom } = this.panel;
    return (top + bottom) / 2 - (query / this.reach) * ((bottom - top) / 2);
  }

  path(keys, values, name, style) {
    const steps = 160;
    const points = Array.from({ length: steps + 1 }, (_, k) => {
      const y = this.reach * (2 * k / steps - 1);
      return [mix(keys, values, y, this.tour.how.hardmax).id, y];
    }).filter(([id]) => id >= this.low && id <= this.high);
    const text = points.map(([id, y]) => `${this.x(id).toFixed(1)},${this.y(y).toFixed(1)}`).join(" ");
    this.add("polyline", { points: text, class: name, style });
  }

  // Which line is which.
  drawKey() {
    const short = this.width < 460;
    const entries = [["own", short ? "this sentence" : "g(y) of this sentence", this.tour.color(this.token.label)]];
    if (this.other) entries.push(["other", short ? "the other" : "g(y) of the other sentence below", "var(--muted)"]);
    let x = this.right;
    for (const [name, text, color] of entries.reverse()) {
      this.text(x, 16, text, "end", "tick");
      x -= 6.9 * text.length + 6;
      this.line(x - 22, 12, x, 12, name, `stroke:${color}`);
      x -= 36;
    }
  }

  drawCurve() {
    const { bottom } = this.panel, { token, tour } = this;
    for (const value of ticks(-this.reach, this.reach, 4)) {
      this.line(this.left, this.y(value), this.right, this.y(value), "grid");
      this.text(this.left - 7, this.y(value) + 5, page.number(value), "end", "tick");
    }
    if (this.other) {
      const all = tour.model.tokens(this.other.sentence.words), at = tour.model.seen(this.other.place, all.length);
      this.path(at.map((k) => all[k].key), at.map((k) => all[k].value), "other", "");
    }
    const color = tour.color(token.label);
    this.path(token.keys, token.values, "own", `stroke:${color}`);
    const x = this.x(token.mixed), y = this.y(token.y);
    this.line(this.left, y, this.right, y, "query");
    this.line(x, y, x, bottom + 22, "drop", `stroke:${color}`);
    this.add("circle", { cx: x, cy: y, r: 7, style: `fill:${color}` });
    // The curve rises, so there is room to the upper left and to the lower right of it.
    const right = x > (this.left + this.right) / 2;
    this.text(right ? this.left + 4 : this.right, right ? y - 7 : y + 18, `“${this.word}” asks with y = ${page.number(token.y, 3)}`, right ? "start" : "end", "name");
  }

  // The line of ids, with each word of the sentence where its projection lies, as large as its attention weight.
  drawWords() {
    const { token, tour } = this, at = this.panel.bottom + 22;
    this.line(this.left, at, this.right, at, "axis");
    const items = new Map();
    token.values.forEach((value, j) => {
      const text = tour.name(token.seen[j]), key = `${this.x(value).toFixed(1)} ${text}`, item = items.get(key) ?? { x: this.x(value), value, word: text, weight: 0, times: 0 };
      items.set(key, Object.assign(item, { weight: item.weight + token.weights[j], times: item.times + 1 }));
    });
    // In a long text only the words that count are shown, and the first of them named.
    const heaviest = [...items.values()].sort((a, b) => b.weight - a.weight).slice(0, 150);
    for (const { x, value, word, weight } of heaviest) {
      const disc = this.add("circle", { cx: x, cy: at, r: 2 + 11 * Math.sqrt(weight), class: "weight" });
      this.hover(disc, [`“${word}”`, `projection ${page.number(value)}`, `attention weight ${page.number(weight, 3)}`]);
    }
    this.add("circle", { cx: this.x(token.mixed), cy: at, r: 7, style: `fill:${tour.color(token.label)}`, class: "mark" });
    const named = heaviest.slice(0, Math.floor(this.width / 32)).map((item) => ({ ...item, text: item.times > 1 ? `${item.word} ×${item.times}` : item.word }));
    const rows = stagger(named, this.left, this.right).filter((item) => item.row < 6), depth = Math.max(...rows.map((r) => r.row)) + 1;
    for (const { x, at: place, row, text } of rows) {
      this.line(x, at + 3, x, at + 12 + 17 * row, "leader");
      this.text(place, at + 26 + 17 * row, text, "middle", "tick");
    }
    const foot = at + 40 + 17 * depth;
    for (const value of ticks(this.low, this.high, 5)) this.text(this.x(value), foot, page.number(value), "middle", "tick");
    return this.note(foot + 22, `every word has a place on this line; by its query y, “${this.word}” gives each of them a weight (disc), and their weighted mean is the context id`);
  }
}

// What the hidden units make of the number: each label's score along the id, the winner's color on the line, and on it the
// contexts of the word.
class LabelLine extends Drawing {
  constructor(tour, i, others, width) {
    super(width);
    Object.assign(this, { tour, token: tour.tokens[i], word: tour.name(tour.words[i]) });
    this.all = [...others, { id: this.token.id, label: this.token.label, own: true }];
    const ids = this.all.map((c) => c.id), ends = [Math.min(...ids), Math.max(...ids)];
    const spread = Math.max(ends[1] - ends[0], 0.2 * (1 + Math.abs(this.token.id)));
    [this.low, this.high] = [ends[0] - 0.15 * spread, ends[1] + 0.15 * spread];
    this.x = this.scale(this.low, this.high);
    this.panel = { top: 34, bottom: 194 };
    this.along = tour.model.along(this.token, tour.how, this.low, this.high);
    this.text(4, 16, "score", "start", "name");
    this.drawScores();
    this.drawLine();
    this.element = this.svg(this.drawContexts() + 12, `The score of each label along the context id of ${this.word}`);
  }

  drawScores() {
    const { tour, along } = this, { top, bottom } = this.panel;
    // Heights that show what happens here; what is beyond is cut off, and the line below shows who wins there.
    const here = along.scores(this.token.id).sort((a, b) => b - a), lead = here[0] - (here[1] ?? here[0]) || 1;
    const floor = Math.max(here.at(-1), here[0] - 3 * lead), low = floor - 0.25 * (here[0] - floor || 1), high = here[0] + 1.2 * lead;
    const y = (score) => bottom - ((score - low) / (high - low)) * (bottom - top);
    for (const value of ticks(low, high, 4)) {
      this.line(this.left, y(value), this.right, y(value), "grid");
      this.text(this.left - 7, y(value) + 5, page.number(value, 3), "end", "tick");
    }
    const xs = [this.low, ...along.bends, this.high];
    this.winners = new Map();
    const steps = 240;
    for (let k = 0; k <= steps; k++) {
      const label = along.label(this.low + ((this.high - this.low) * k) / steps);
      this.winners.set(label, (this.winners.get(label) ?? 0) + 1);
    }
    this.winners.set(this.token.label, (this.winners.get(this.token.label) ?? 0) + 1);
    const shown = new Set([...this.winners.keys(), this.token.second].filter((l) => l >= 0).slice(0, 8));
    const clip = `clip-${LabelLine.count = (LabelLine.count ?? 0) + 1}`;
    this.add("clipPath", { id: clip }, page.element("rect", { x: this.left, y: top, width: this.right - this.left, height: bottom - top }));
    const values = xs.map((id) => along.scores(id));
    for (const l of shown) {
      const points = xs.map((id, k) => `${this.x(id).toFixed(1)},${Math.max(-9e4, Math.min(9e4, y(values[k][l]))).toFixed(1)}`).join(" ");
      this.add("polyline", { points, class: "own", style: `stroke:${tour.color(l)}`, "clip-path": `url(#${clip})` });
    }
    const x = this.x(this.token.id);
    this.line(x, top, x, bottom + 30, "drop", `stroke:${tour.color(this.token.label)};stroke-dasharray:3 3`);
    // Which line is which.
    let end = this.right;
    for (const l of [...shown].reverse()) {
      const text = tour.short(tour.model.labels[l]);
      this.text(end, 16, text, "end", "tick", `fill:${tour.color(l)};font-weight:650`);
      end -= 9.4 * text.length + 14;
      if (end < 90) break;
    }
  }

  // The line of ids in the colors of the labels that win.
  drawLine() {
    const at = this.panel.bottom + 30, steps = Math.round(this.right - this.left);
    let from = 0, label = this.along.label(this.low);
    for (let k = 1; k <= steps; k++) {
      const next = k === steps ? -1 : this.along.label(this.low + ((this.high - this.low) * (k + 0.5)) / steps);
      if (next === label) continue;
      this.add("rect", { x: this.left + from, y: at - 6, width: k - from, height: 12, class: "winner", style: `fill:${this.tour.color(label)}` });
      [from, label] = [k, next];
    }
  }

  drawContexts() {
    const { tour, all } = this, at = this.panel.bottom + 30;
    for (const c of all) {
      const color = c.label < 0 ? "var(--muted)" : tour.color(c.label);
      const disc = this.add("circle", { cx: this.x(c.id), cy: at, r: c.own ? 9 : 6, style: `fill:${color}`, class: c.own ? "mark" : "context" });
      if (!c.own) this.hover(disc, [tour.excerpt(c.sentence, c.place), `${c.name ?? "no label"} in the data, id ${page.number(c.id, 7)}`]);
    }
    const named = stagger(all.map((c) => ({ x: this.x(c.id), text: c.own ? "here" : c.label < 0 ? "?" : tour.short(tour.model.labels[c.label]), own: c.own, color: c.own || c.label < 0 ? "var(--text)" : tour.color(c.label) })), this.left, this.right, 4);
    const shown = named.filter((n) => n.row < 4 || n.own), depth = Math.max(0, ...shown.map((n) => n.row)) + 1;
    for (const { x: from, at: place, row, text, own, color } of shown) {
      this.line(from, at + 9, from, at + 16 + 17 * row, "leader");
      this.text(place, at + 30 + 17 * row, text, "middle", own ? "name" : "tick", `fill:${color};font-weight:${own ? 700 : 500}`);
    }
    const foot = at + 46 + 17 * depth;
    for (const value of ticks(this.low, this.high, 4)) this.text(this.x(value), foot, page.number(value, 5), "middle", "tick");
    const place = tour.model.maxLength === null ? "" : ` as word ${this.token.place + 1}`;
    return this.note(foot + 22, `context id; discs: “${this.word}”${place} in the sentences of the data; the line has the color of the label that wins at that id`);
  }
}

// Texts below each other where they would overlap: each gets a row, and a place within the picture.
function stagger(items, left, right, most = 6) {
  const ends = [];
  return items.map((item) => ({ ...item })).sort((a, b) => a.x - b.x).map((item) => {
    const half = 4.1 * item.text.length + 4;
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
  if (!(step > 0)) return out;
  for (let k = Math.ceil(low / step); k <= high / step; k++) out.push(+(k * step).toPrecision(12));
  return out;
}
