// An approximated function: tokens to drag, the function and the model along one of them, the certified distance.
class VectorModel {
  constructor(data) {
    this.d = data.d;
    this.tensors = Object.fromEntries(Object.entries(data.tensors).map(([name, tensor]) => [name, unpack(tensor)]));
  }

  feedForward(prefix, h) {
    const { d } = this, [w1, b1, w2, b2] = ["w1", "b1", "w2", "b2"].map((name) => this.tensors[`${prefix}.${name}`]), q = b1.length;
    const out = h.map((x, i) => x + b2[i]);
    for (let j = 0; j < q; j++) {
      let a = b1[j];
      for (let i = 0; i < d; i++) a += w1[j * d + i] * h[i];
      if (a > 0) for (let i = 0; i < d; i++) out[i] += w2[i * q + j] * a;
    }
    return out;
  }

  // The outputs of all tokens.
  run(rows) {
    const { tensors } = this, positions = tensors["positions.weight"];
    const [wq, wk, wv, wo] = ["w_q", "w_k", "w_v", "w_o"].map((name) => tensors[`layers.0.attention.${name}`]);
    const dot = (w, x) => x.reduce((sum, value, i) => sum + w[i] * value, 0);
    const placed = rows.map((row, k) => row.map((x, i) => x + (positions ? positions[k * this.d + i] : 0)));
    const z = placed.map((row) => (tensors["pre_feed_forward.b1"] ? this.feedForward("pre_feed_forward", row) : row));
    const keys = z.map((x) => dot(wk, x)), values = z.map((x) => dot(wv, x));
    return z.map((x) => {
      const { id } = mix(keys, values, dot(wq, x));
      return this.feedForward("layers.0.feed_forward", x.map((value, i) => value + wo[i] * id));
    });
  }
}

class Approximation {
  constructor(root) {
    this.data = JSON.parse(root.querySelector(".approximation-data").textContent);
    this.model = new VectorModel(this.data);
    this.f = parseExpression(this.data.function, this.data.d);
    Object.assign(this, { root, token: 0, coordinate: 0 });
    const { length, d } = this.data;
    this.rows = Array.from({ length }, (_, k) => Array.from({ length: d }, (_, c) => +((0.21 + 0.52 * k / Math.max(1, length - 1) + 0.1 * c) % 1).toFixed(3)));
    this.lines = page.element("div", { class: "lines" });
    this.stage = page.element("div", { class: "stage" });
    root.querySelector(".place").append(this.lines, this.stage);
    this.buildLines();
    let width = 0;
    new ResizeObserver(([entry]) => { if (entry.contentRect.width !== width) { width = entry.contentRect.width; this.draw(); } }).observe(this.stage);
    this.draw();
  }

  // A line from 0 to 1 for each coordinate, with a disc to drag for each token.
  buildLines() {
    const { length, d } = this.data;
    for (let c = 0; c < d; c++) {
      const line = page.element("div", { class: "line" });
      line.append(page.element("span", { class: "end" }, "0"), page.element("span", { class: "end last" }, "1"));
      for (let k = 0; k < length; k++) {
        const name = d > 1 ? `token ${k + 1}, coordinate ${c + 1}` : `token ${k + 1}`;
        const disc = page.element("button", { type: "button", class: "disc", role: "slider", "aria-label": name, "aria-valuemin": 0, "aria-valuemax": 1, style: `--c:var(--s${k % 7})` }, `${k + 1}`);
        const put = (x) => { this.rows[k][c] = Math.max(0, Math.min(1, +x.toFixed(4))); [this.token, this.coordinate] = [k, c]; this.draw(); };
        const follow = (event) => { const box = line.getBoundingClientRect(); put((event.clientX - box.left) / box.width); };
        disc.addEventListener("pointerdown", (event) => { disc.setPointerCapture(event.pointerId); disc.onpointermove = follow; });
        disc.addEventListener("pointerup", () => { disc.onpointermove = null; });
        disc.addEventListener("focus", () => { [this.token, this.coordinate] = [k, c]; this.draw(); });
        disc.addEventListener("keydown", (event) => {
          const step = { ArrowRight: 0.01, ArrowUp: 0.01, ArrowLeft: -0.01, ArrowDown: -0.01, PageUp: 0.1, PageDown: -0.1 }[event.key];
          const to = step !== undefined ? this.rows[k][c] + step : { Home: 0, End: 1 }[event.key];
          if (to !== undefined) { event.preventDefault(); put(to); }
        });
        line.append(disc);
      }
      this.lines.append(...(d > 1 ? [page.element("span", { class: "legend" }, `coordinate ${c + 1}`)] : []), line);
    }
  }

  draw() {
    const { data, rows, f } = this;
    [...this.lines.querySelectorAll(".disc")].forEach((disc, i) => {
      const [c, k] = [Math.floor(i / data.length), i % data.length];
      disc.style.left = `${100 * rows[k][c]}%`;
      disc.setAttribute("aria-valuenow", rows[k][c]);
      disc.classList.toggle("on", k === this.token && c === this.coordinate);
    });
    const says = this.model.run(rows), true_ = f ? rows.map((_, k) => f(rows, k)) : null;
    const [y, value] = [says[this.token][this.coordinate], true_?.[this.token][this.coordinate]];
    const strong = (text) => page.element("strong", {}, text);
    this.root.querySelector(".story").replaceChildren("For token ", strong(String(this.token + 1)), ` at ${page.number(rows[this.token][this.coordinate])} the model says `, strong(page.number(y, 4)),
      ...(f ? [", and f is ", strong(page.number(value, 4)), `: ${page.number(Math.abs(y - value), 2)} apart.`] : ["."]),
      ...(data.bound === null ? [] : [` Over all sequences the two are at most ${page.number(data.bound)} apart in the mean (the distance d_${data.p}; proved, rounding included); single sequences may be further apart.`]));
    this.stage.replaceChildren(page.element("div", { class: "box" }, page.element("h3", {}, `Output${data.d > 1 ? ` ${this.coordinate + 1}` : ""} of token ${this.token + 1} as it moves, the others held fixed`), this.plot()),
      page.element("div", { class: "box" }, page.element("h3", {}, "All tokens"), this.table(says, true_)));
  }

  plot() {
    const { data, rows, token, coordinate } = this, width = Math.max(280, Math.min(720, this.stage.clientWidth >= 900 ? (this.stage.clientWidth - 40) / 2 : this.stage.clientWidth));
    const units = data.tensorSize, count = Math.max(60, Math.min(397, Math.floor(4e7 / units)));
    const at = (x) => rows.map((row, k) => (k === token ? row.map((value, c) => (c === coordinate ? x : value)) : row));
    // Between the edges of cells, where the model jumps.
    const xs = Array.from({ length: count }, (_, i) => (i + 0.382) / count);
    const model = xs.map((x) => this.model.run(at(x))[token][coordinate]);
    const truth = this.f ? xs.map((x) => this.f(at(x), token)[coordinate]) : [];
    const all = [...model, ...truth].filter(Number.isFinite), drawing = new Drawing(width), [top, bottom] = [30, 290];
    const spread = Math.max(...all) - Math.min(...all) || 1, low = Math.min(...all) - 0.08 * spread, high = Math.max(...all) + 0.08 * spread;
    const x = drawing.scale(0, 1), y = (value) => bottom - ((value - low) / (high - low)) * (bottom - top);
    for (const value of ticks(low, high, 5)) { drawing.line(drawing.left, y(value), drawing.right, y(value), "grid"); drawing.text(drawing.left - 7, y(value) + 5, page.number(value, 3), "end", "tick"); }
    for (const value of [0, 0.25, 0.5, 0.75, 1]) drawing.text(x(value), bottom + 20, page.number(value), "middle", "tick");
    const line = (values, name, style) => drawing.add("polyline", { points: values.map((value, i) => `${x(xs[i]).toFixed(1)},${y(value).toFixed(1)}`).join(" "), class: name, style });
    if (this.f) line(truth, "other", "stroke:var(--s1);stroke-dasharray:none;stroke-width:2.5px");
    line(model, "own", "stroke:var(--s0)");
    const now = rows[token][coordinate];
    drawing.line(x(now), top, x(now), bottom, "query");
    drawing.text(drawing.right, 18, "the model", "end", "name", "fill:var(--s0);font-weight:650");
    if (this.f) drawing.text(drawing.right - 92, 18, "f", "end", "name", "fill:var(--s1);font-weight:650");
    drawing.text(drawing.right, bottom + 42, `where token ${token + 1} is`, "end", "name");
    return drawing.svg(bottom + 52, `f and the model along token ${token + 1}`);
  }

  table(says, truth) {
    const show = (vector) => vector.map((x) => page.number(x, 4)).join(", ");
    const row = (...cells) => page.element("tr", {}, ...cells.map((cell) => page.element("td", {}, cell)));
    const head = page.element("tr", {}, ...["token", "at", ...(truth ? ["f"] : []), "model", ...(truth ? ["apart"] : [])].map((name) => page.element("th", {}, name)));
    return page.element("table", {}, head, ...says.map((output, k) => row(`${k + 1}`, show(this.rows[k]), ...(truth ? [show(truth[k])] : []), show(output),
      ...(truth ? [page.number(Math.max(...output.map((x, c) => Math.abs(x - truth[k][c]))), 2)] : []))));
  }
}
