// The tour: a sentence, a word, and what becomes of it.
class Tour {
  constructor(root) {
    this.data = JSON.parse(root.querySelector(".tour-data").textContent);
    this.model = new Model(this.data);
    this.root = root;
    this.part = (name) => root.querySelector(`.${name}`);
    this.part("controls").hidden = false;
    this.part("scope").hidden = false;
    const pick = this.part("pick");
    this.data.sentences.slice(0, this.data.shown).forEach((sentence, i) => {
      pick.append(page.element("option", { value: i }, sentence.words.join(" ")));
    });
    pick.addEventListener("change", () => this.showPicked(+pick.value));
    const own = this.part("own");
    own.placeholder = this.data.sentences[0].words.join(" ");
    own.addEventListener("input", () => this.showTyped(own.value.split(/\s+/).filter((word) => word !== "")));
    let width = 0;
    new ResizeObserver(([entry]) => {
      if (entry.contentRect.width !== width && this.words) { width = entry.contentRect.width; this.select(this.selected); }
    }).observe(this.part("stage"));
    this.showPicked(0);
  }

  showPicked(i) {
    this.part("own").value = "";
    this.show(this.data.sentences[i].words, i);
  }

  showTyped(words) {
    const same = (sentence) => sentence.words.length === words.length && sentence.words.every((word, i) => word === words[i]);
    const known = this.data.sentences.slice(0, this.data.shown).findIndex(same);
    const obstacle = this.model.obstacle(words);
    this.part("message").textContent = obstacle ?? "";
    this.part("message").hidden = obstacle === null;
    if (obstacle === null) this.show(words, known < 0 ? null : known);
  }

  // `source` is the number of the sentence, or null for one that was typed.
  show(words, source) {
    this.part("message").hidden = true;
    Object.assign(this, { words, source, tokens: this.model.run(words), single: null });
    this.part("sentence").replaceChildren(...words.map((word, i) => {
      const label = this.model.labels[this.tokens[i].label];
      const button = page.element("button", { type: "button", role: "option", "aria-selected": "false" },
        page.element("span", { class: "word" }, word),
        page.element("span", { class: "label", style: `--c:${this.color(this.tokens[i].label)}` }, label));
      for (const event of ["pointerenter", "focus", "click"]) button.addEventListener(event, () => this.select(i));
      button.addEventListener("keydown", (event) => {
        const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
        if (step) this.part("sentence").children[i + step]?.focus();
      });
      return button;
    }));
    // The first word that can have several labels is the one to look at.
    const several = words.findIndex((_, i) => new Set(this.contexts(i).map((c) => c.label)).size > 1);
    this.select(Math.max(0, several));
  }

  color(label) {
    // What most tokens are stays in the background.
    return this.model.labels[label] === "O" ? "var(--muted)" : `var(--s${label % 7})`;
  }

  // The other contexts of a word in the data, by id.
  contexts(i) {
    const row = this.model.row(this.words[i])[1];
    const list = this.data.contexts[`${row}:${this.model.maxLength === null ? 0 : i}`] ?? [];
    return list.map(([id, sentence, place]) => {
      const name = this.data.sentences[sentence].labels[place];
      return { id, sentence: this.data.sentences[sentence], place, label: this.model.labels.indexOf(name), name };
    });
  }

  select(i) {
    this.selected = i;
    [...this.part("sentence").children].forEach((button, j) => button.setAttribute("aria-selected", String(i === j)));
    const token = this.tokens[i];
    const others = this.contexts(i).filter((c) => Math.abs(c.id - token.id) > 1e-9 * (1 + Math.abs(token.id)));
    const distance = (c) => Math.abs(c.id - token.id);
    const nearest = others.reduce((best, c) => (best === null || distance(c) < distance(best) ? c : best), null);
    const width = Math.max(280, Math.min(720, this.part("stage").clientWidth));
    this.part("stage").replaceChildren(
      new Curve(this, i, nearest, others, width).element,
      page.element("div", { class: "facts" }, ...this.facts(i, nearest, others)));
  }

  facts(i, nearest, others) {
    const token = this.tokens[i];
    const fact = (name, ...content) => page.element("div", { class: "fact" }, page.element("h3", {}, name), ...content);
    const line = (...content) => page.element("p", {}, ...content);
    const strong = (text) => page.element("strong", {}, text);
    const label = strong(this.model.labels[token.label]);
    label.style.color = this.color(token.label);
    const wanted = this.source === null ? null : this.data.sentences[this.source].labels[i];
    const verdict = wanted === null ? "" : wanted === this.model.labels[token.label] ? ", as in the data"
      : `, but the data says ${wanted}`;
    return [
      fact("Label", line(label, verdict),
        line(`query y = ${page.number(token.y)}, context id g(y) = ${page.number(token.id, 7)}`)),
      fact("Margin against error", ...this.margin(i)),
      fact("Units that fire", ...this.units(token)),
      fact("Nearest other context", ...this.nearest(token, nearest, others)),
    ];
  }

  margin(i) {
    const { margin } = this.tokens[i];
    const line = (text) => page.element("p", {}, text);
    if (this.source !== null) {
      const ratio = this.data.ratios[this.source][i];
      if (ratio === null) return [line(`The margin is ${page.number(margin)}; it cannot be lost to rounding.`)];
      return [marginBar(margin, margin / ratio),
        line(`The label leads by ${page.number(margin)}; rounding in ${this.data.dtype}, in any order of summation, moves that by at ` +
          `most ${page.number(margin / ratio, 2)} (the checker's bound): the lead is ${page.number(ratio, 3)} times its error, ` +
          (ratio > 1 ? "so the label is certain." : "so the label is not certain."))];
    }
    this.single ??= this.model.run(this.words, Math.fround);
    const other = this.single[i];
    const moved = Math.abs(other.margin - margin);
    return [marginBar(margin, moved),
      line(`The label leads by ${page.number(margin)}; in single precision this page gets ` +
        `${other.label === this.tokens[i].label ? "the same label" : "another label"}, and the lead moves by ${page.number(moved, 2)}. ` +
        "Measured, not proved: monolayer explain proves it.")];
  }

  units(token) {
    if (token.firing.length === 0) {
      return [page.element("p", {}, "None: the label is the default one, or what the embedding alone says.")];
    }
    const shown = token.firing.slice(0, 8);
    const rows = shown.map((unit) => {
      const push = this.model.push(unit);
      const strongest = push.reduce((best, x, l) => (Math.abs(x) > Math.abs(push[best]) ? l : best), 0);
      const cell = (text) => page.element("td", {}, text);
      return page.element("tr", {}, cell(`${unit.unit}`), cell(page.number(unit.value)),
        cell(`${push[strongest] < 0 ? "−" : "+"}${page.number(Math.abs(push[strongest]))} for ${this.model.labels[strongest]}`));
    });
    const head = page.element("tr", {}, ...["unit", "fires with", "its strongest say"].map((t) => page.element("th", {}, t)));
    const rest = token.firing.length - shown.length;
    return [page.element("table", {}, head, ...rows),
      ...(rest > 0 ? [page.element("p", {}, `and ${rest} more`)] : []),
      page.element("p", {}, `of ${this.model.bias.length.toLocaleString("en-US")} hidden units`)];
  }

  nearest(token, nearest, others) {
    const place = this.model.maxLength === null ? "" : " at this place";
    if (nearest === null) return [page.element("p", {}, `This word${place} has no other context in the data.`)];
    const words = nearest.sentence.words.flatMap((word, i) =>
      [i > 0 ? " " : "", i === nearest.place ? page.element("mark", {}, word) : word]);
    return [page.element("p", { class: "quote" }, ...words),
      page.element("p", {}, `${nearest.name ?? "no label"}; its id is ${page.number(Math.abs(nearest.id - token.id), 3)} ` +
        `${nearest.id < token.id ? "below" : "above"}, the nearest of ${others.length} other contexts of this word${place}.`)];
  }
}

// The margin and what may be lost of it, on a logarithmic line.
function marginBar(margin, error) {
  const width = 320, left = 22, right = 298;
  const high = Math.ceil(Math.log10(margin) + 0.3), low = Math.min(Math.floor(Math.log10(Math.max(error, 1e-18))) - 1, high - 2);
  const at = (x) => left + Math.max(0, (Math.log10(x) - low) / (high - low)) * (right - left);
  const svg = page.element("svg", { viewBox: `0 0 ${width} 46`, class: "bar", role: "img",
    "aria-label": `margin ${page.number(margin)}, error ${page.number(error)}` });
  const bar = (to, y, name) => svg.append(page.element("rect", { x: left, y, width: Math.max(1, to - left), height: 8, class: name }));
  bar(at(margin), 4, "margin");
  if (error > 0) bar(at(error), 15, "error");
  const step = Math.ceil((high - low) / 6);
  for (let e = low; e <= high; e += step) {
    const x = at(10 ** e);
    svg.append(page.element("line", { x1: x, x2: x, y1: 26, y2: 30, class: "axis" }),
      page.element("text", { x, y: 42, "text-anchor": "middle" }, page.number(10 ** e)));
  }
  svg.append(page.element("line", { x1: left, x2: right, y1: 26, y2: 26, class: "axis" }));
  return page.element("div", {}, svg, page.element("p", { class: "legend" },
    page.element("span", { class: "key margin" }), "lead of the label", page.element("span", { class: "key error" }), "error of the lead (both in score, log scale)"));
}

document.querySelectorAll(".tour").forEach((root) => { root.tour = new Tour(root); });
