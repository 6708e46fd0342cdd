// The tour: pick or type a sentence, pick a word, see where its context id comes from and what becomes of it; then change the model.
class Tour {
  constructor(root, number) {
    this.data = JSON.parse(root.querySelector(".tour-data").textContent);
    this.model = new Model(this.data);
    Object.assign(this, { root, number, how: asItIs(), selected: 0, counts: new Map() });
    this.part = (name) => root.querySelector(`.${name}`);
    this.buildControls();
    this.switches = new Switches(this);
    this.recital = this.data.text ? new Recital(this) : null;
    this.vocabulary();
    let width = 0;
    new ResizeObserver(([entry]) => {
      if (entry.contentRect.width !== width && this.words) { width = entry.contentRect.width; this.select(this.selected); }
    }).observe(this.part("stage"));
    if (!this.restore(location.hash)) this.showPicked(0, true);
  }

  buildControls() {
    for (const name of ["controls", "scope"]) this.part(name).hidden = false;
    const pick = this.part("pick"), own = this.part("own");
    this.data.sentences.slice(0, this.data.shown).forEach((sentence, i) => {
      const words = sentence.words.slice(0, 30).map((word) => this.name(word)).join(this.joint);
      pick.append(page.element("option", { value: i }, sentence.words.length > 30 ? `${words} …` : words));
    });
    pick.addEventListener("change", () => this.showPicked(+pick.value));
    own.placeholder = this.data.sentences[0].words.slice(0, 8).join(this.joint);
    own.addEventListener("input", () => this.showTyped(this.split(own.value)));
  }

  // Characters of a text stand side by side, words apart.
  get joint() {
    return this.data.text?.split === "char" ? "" : " ";
  }

  split(text) {
    return this.data.text?.split === "char" ? [...text] : text.split(/\s+/).filter((word) => word !== "");
  }

  // A word for people: what cannot be seen is shown, what would turn the direction of writing is not, and long words are cut.
  name(word, most = 28) {
    const visible = [...word].map((c) => ({ " ": "␣", "\n": "↵", "\t": "⇥" }[c] ?? (/[\p{Cc}\p{Cf}\p{Zs}\p{Zl}\p{Zp}]/u.test(c) ? "·" : c)));
    const cut = visible.length > most ? `${visible.slice(0, most - 1).join("")}…` : visible.join("");
    return /[\u0590-\u08ff\ufb1d-\ufdff\ufe70-\ufefc]/.test(cut) ? `\u2068${cut}\u2069` : cut;
  }

  short(label) {
    return this.name(label, 14);
  }

  // A sentence around one of its words.
  excerpt(sentence, place) {
    const from = Math.max(0, place - 7), to = Math.min(sentence.words.length, place + 8);
    return (from > 0 ? "… " : "") + sentence.words.slice(from, to).map((word) => this.name(word)).join(this.joint) + (to < sentence.words.length ? " …" : "");
  }

  showPicked(i, quiet = false) {
    this.part("own").value = "";
    this.part("pick").value = String(i);
    const words = this.data.sentences[i].words;
    this.show(this.recital ? words.slice(0, Recital.FIRST) : words, i, quiet);
  }

  showTyped(words, quiet = false) {
    const same = (sentence) => sentence.words.length === words.length && sentence.words.every((word, i) => word === words[i]);
    const known = this.data.sentences.slice(0, this.data.shown).findIndex(same);
    const obstacle = this.model.obstacle(words);
    this.part("message").textContent = obstacle ?? "";
    this.part("message").hidden = obstacle === null;
    if (obstacle === null) this.show(words, known < 0 ? null : known, quiet);
    return obstacle === null;
  }

  // `source` is the number of the sentence, or null for one that was typed.
  show(words, source, quiet = false) {
    this.part("message").hidden = true;
    Object.assign(this, { words: [...words], source });
    this.how.hinges = [];
    this.tokens = this.model.run(words, this.how);
    this.recital?.restart();
    // The first word that can have several labels is the one to look at.
    const several = words.findIndex((_, i) => new Set(this.contexts(i).map((c) => c.label)).size > 1);
    this.selected = Math.max(0, several);
    this.refresh(quiet);
  }

  // Runs the sentence again, after a switch was changed.
  rerun() {
    this.tokens = this.model.run(this.words, this.how);
    this.refresh();
  }

  refresh(quiet = false) {
    const { sentence } = this.chips();
    sentence.setAttribute("aria-label", "Words of the sentence, with their labels");
    this.select(this.selected, quiet);
    this.switches.update();
  }

  chips() {
    const sentence = this.part("sentence");
    sentence.classList.toggle("running", this.recital !== null);
    const start = this.model.start === null ? [] : [page.element("span", { class: "start", title: "the start token, which every word sees" }, this.name(this.model.start))];
    sentence.replaceChildren(...start, ...this.words.map((word, i) => this.chip(word, i)));
    return { sentence };
  }

  chip(word, i) {
    const { label } = this.tokens[i], wanted = this.wanted(i), wrong = wanted !== null && wanted !== this.model.labels[label];
    const button = page.element("button", { type: "button", role: "option", "aria-selected": "false", "data-label": this.model.labels[label], dir: "auto", tabindex: i === this.selected ? 0 : -1,
      class: wrong ? "wrong" : "", title: wrong ? `the data says ${wanted}` : word },
      page.element("span", { class: "word" }, this.name(word)),
      page.element("span", { class: "label", style: `--c:${this.color(label)}` }, (wrong ? "✗ " : "") + (this.recital ? "→ " : "") + this.short(this.model.labels[label])));
    const choose = () => { if (this.selected !== i) this.select(i); };
    for (const event of ["focus", "click"]) button.addEventListener(event, choose);
    // A pointer that rests, not one on its way to the switches.
    button.addEventListener("pointerenter", (event) => { if (event.pointerType === "mouse") this.resting = setTimeout(choose, 120); });
    button.addEventListener("pointerleave", () => clearTimeout(this.resting));
    button.addEventListener("keydown", (event) => {
      const last = this.words.length - 1, to = { ArrowRight: i + 1, ArrowLeft: i - 1, Home: 0, End: last }[event.key];
      if (to === undefined) return;
      event.preventDefault();
      this.buttons()[Math.max(0, Math.min(last, to))].focus();
    });
    return button;
  }

  buttons() {
    return [...this.part("sentence").querySelectorAll("button")];
  }

  // The label of a word in the data, or null.
  wanted(i) {
    // Where a recital went astray, the text says nothing any more.
    if (this.recital && this.source !== null && this.words.slice(0, i + 1).some((word, k) => word !== this.data.sentences[this.source].words[k])) return null;
    return this.source === null ? null : this.data.sentences[this.source].labels[i] ?? null;
  }

  color(label) {
    // What most tokens are stays in the background.
    return this.model.labels[label] === "O" ? "var(--muted)" : `var(--s${label % 6})`;
  }

  // The contexts of a word in the data, with the ids that they have now; `same` is the one that the word stands in.
  contexts(i) {
    const row = this.model.row(this.words[i])[1];
    const list = this.data.contexts[`${row}:${this.model.maxLength === null ? 0 : i}`] ?? [];
    return list.map(([id, sentence, place]) => {
      const name = this.data.sentences[sentence].labels[place];
      return { first: id, sentence: this.data.sentences[sentence], place, label: this.model.labels.indexOf(name), name };
    });
  }

  others(i) {
    const own = this.model.idOf(this.words, i), changed = this.switches.changed();
    return this.contexts(i).filter((c) => Math.abs(c.first - own) > 1e-6 * (1 + Math.abs(own)))
      .map((c) => ({ ...c, id: changed ? this.model.idOf(c.sentence.words, c.place, this.how) : c.first }));
  }

  select(i, quiet = false) {
    this.selected = i;
    this.buttons().forEach((button, j) => { button.setAttribute("aria-selected", String(i === j)); button.tabIndex = i === j ? 0 : -1; });
    const token = this.tokens[i], others = this.others(i);
    const near = (list) => list.reduce((best, c) => (best === null || Math.abs(c.id - token.id) < Math.abs(best.id - token.id) ? c : best), null);
    const contrast = near(others.filter((c) => c.label >= 0 && c.label !== token.label)), other = contrast ?? near(others);
    const stage = this.part("stage"), wide = stage.clientWidth >= 900;
    const width = Math.max(280, Math.min(720, wide ? (stage.clientWidth - 40) / 2 : stage.clientWidth));
    const line = new LabelLine(this, i, others, width);
    const box = (name, ...content) => page.element("div", { class: "box" }, page.element("h3", {}, name), ...content);
    stage.replaceChildren(
      box(`1. From the sentence to a number${this.how.attention ? "" : " (not used: attention is off)"}`, new Curve(this, i, other, width).element),
      box("2. From the number to a label", line.element),
      box("3. How the score adds up", ...contributionBars(this, token, width)),
      page.element("div", { class: "box facts" }, ...this.facts(i, others)));
    this.part("story").replaceChildren(...story(this, i, others, contrast, line));
    drawArcs(this);
    this.switches.update();
    if (!quiet) this.remember();
  }

  facts(i, others) {
    const token = this.tokens[i];
    const fact = (name, ...content) => page.element("div", { class: "fact" }, page.element("h3", {}, name), ...content);
    const line = (...content) => page.element("p", {}, ...content);
    const label = page.element("strong", { style: `color:${this.color(token.label)}` }, this.model.labels[token.label]), wanted = this.wanted(i);
    const verdict = wanted === null ? "" : wanted === this.model.labels[token.label] ? ", as in the data" : `, but the data says ${wanted}`;
    return [
      fact("Label", line(label, verdict), line(`query y = ${page.number(token.y)}, context id = ${page.number(token.id, 7)}`)),
      fact("Is it safe from rounding?", ...this.margin(i)),
      fact("Nearest other contexts", ...this.nearest(token, others)),
    ];
  }

  margin(i) {
    const { margin } = this.tokens[i];
    const line = (text) => page.element("p", {}, text);
    if (!Number.isFinite(margin)) return [line("There is only one label.")];
    const ratio = this.source === null || this.switches.changed() ? undefined : this.data.ratios[this.source]?.[i];
    if (ratio === null) return [line(`The label leads by ${page.number(margin)}; it cannot be lost to rounding.`)];
    if (ratio !== undefined) {
      return [marginBar(margin, margin / ratio),
        line(`The label leads by ${page.number(margin)}. Rounding in ${this.data.dtype}, in any order of summation, changes that by at ` +
          `most ${page.number(margin / ratio, 2)} (the checker's bound): the lead is ${page.number(ratio, 3)} times as large, ` +
          (ratio > 1 ? "so the label is certain." : "so the label is not certain."))];
    }
    return [line(`The label leads by ${page.number(margin)}, computed in ${this.data.dtype} by this page. Measured, not proved: ` +
      "monolayer explain bounds what rounding can change.")];
  }

  nearest(token, others) {
    const place = this.model.maxLength === null ? "" : " at this place";
    if (others.length === 0) return [page.element("p", {}, `This word${place} has no other context in the data.`)];
    const by = (c) => Math.abs(c.id - token.id), list = [...others].sort((a, b) => by(a) - by(b));
    const shown = list.slice(0, 3), other = list.find((c) => c.label >= 0 && c.label !== token.label);
    if (other && !shown.includes(other)) shown[2] = other;
    return [...shown.map((c) => page.element("p", { class: "quote", dir: "auto" }, ...this.quote(c), " ",
      page.element("strong", { style: `color:${c.label < 0 ? "var(--muted)" : this.color(c.label)}` }, c.name ?? "no label"),
      ` id ${page.number(c.id, 6)}, ${by(c) === 0 ? "the same" : `${page.number(by(c), 3)} ${c.id < token.id ? "below" : "above"}`}`)),
    page.element("p", { class: "legend" }, `${others.length} other context${others.length === 1 ? "" : "s"} of this word${place}`)];
  }

  quote({ sentence, place }) {
    const from = Math.max(0, place - 7), to = Math.min(sentence.words.length, place + 8);
    return sentence.words.slice(from, to).flatMap((word, k) =>
      [k > 0 ? this.joint : from > 0 ? "… " : "", from + k === place ? page.element("mark", {}, this.name(word)) : this.name(word)]);
  }

  // What a part of the score does, in words.
  partInWords(part, token) {
    const { model } = this, word = this.name(token.seen[token.at.indexOf(token.place + (model.start === null ? 0 : 1))] ?? "");
    const labels = part.adds.map((_, l) => l).filter((l) => part.adds[l] !== 0).sort((a, b) => Math.abs(part.adds[b]) - Math.abs(part.adds[a]));
    const adds = labels.slice(0, 2).map((l) => `${page.number(part.adds[l], 3)} to ${this.short(model.labels[l])}`).join(", ") + (labels.length > 2 ? ", …" : "");
    if (part.unit === undefined) return `${part.name}: ${adds}`;
    const slope = model.slopes[part.unit], at = -(model.plainDot(model.w1, part.unit * model.d, token.x) + model.b1[part.unit]) / slope;
    const where = slope === 0 ? "" : ` where the id is ${slope > 0 ? "above" : "below"} ${page.number(at, 4)}`;
    return `hidden unit ${part.unit} fires for “${word}”${where}: ${adds}`;
  }

  vocabulary() {
    const words = [...this.model.rows.keys()].filter((word) => word !== this.model.start).sort((a, b) => (a < b ? -1 : 1));
    const list = page.element("div", { class: "known" }), find = page.element("input", { type: "search", placeholder: "find a word", "aria-label": "Find a word" });
    const fill = () => {
      const found = words.filter((word) => word.toLowerCase().includes(find.value.toLowerCase()));
      const add = (word) => {
        const button = page.element("button", { type: "button", dir: "auto" }, this.name(word));
        button.addEventListener("click", () => { const own = this.part("own"); own.value += (own.value && this.joint) + word; own.dispatchEvent(new Event("input")); });
        return button;
      };
      list.replaceChildren(...found.slice(0, 200).map(add), ...(found.length > 200 ? [`… and ${(found.length - 200).toLocaleString("en-US")} more`] : []));
    };
    const known = this.part("vocabulary");
    find.addEventListener("input", fill);
    known.append(page.element("summary", {}, `The ${words.length.toLocaleString("en-US")} words that can be typed`), find, list);
    known.addEventListener("toggle", () => { if (known.open && list.childNodes.length === 0) fill(); });
    known.hidden = false;
  }

  // The state in the address, so that a view can be shared.
  remember() {
    const state = new URLSearchParams();
    if (this.number > 0) state.set("model", this.number);
    if (this.source === null) state.set("text", this.words.join(this.joint));
    else state.set("sentence", this.source + 1);
    state.set("word", this.selected + 1);
    if (!this.how.attention) state.set("attention", "off");
    if (this.how.hardmax) state.set("hardmax", "on");
    if (this.how.kappa !== 1) state.set("kappa", this.how.kappa);
    for (const hinge of this.how.hinges) state.append("label", `${hinge.at + 1}:${this.model.labels[hinge.label]}`);
    Tour.written = `#${state}`;
    // Browsers refuse many changes at once. A page inside another one may not change its address at all.
    clearTimeout(Tour.timer);
    Tour.timer = setTimeout(() => { try { history.replaceState(null, "", Tour.written); } catch { /* the view cannot be shared then */ } }, 250);
  }

  // Takes up a state; false where the address has none for this tour.
  restore(hash) {
    const state = new URLSearchParams(hash.slice(1));
    if (!hash.includes("=") || +(state.get("model") ?? 0) !== this.number) return false;
    const sentence = Number(state.get("sentence")) - 1, kappa = Number(state.get("kappa") ?? 1);
    this.how = { ...asItIs(), attention: state.get("attention") !== "off", hardmax: state.get("hardmax") === "on", kappa: kappa >= 0 && kappa <= 4 ? kappa : 1 };
    if (state.has("text")) {
      this.part("own").value = state.get("text");
      if (!this.showTyped(this.split(state.get("text")), true)) return false;
    } else if (sentence >= 0 && sentence < this.data.shown) this.showPicked(sentence, true);
    else return false;
    for (const given of state.getAll("label")) {
      const [, at, name] = given.match(/^(\d+):(.*)$/s) ?? [], label = this.model.labels.indexOf(name);
      if (label >= 0 && at >= 1 && at <= this.words.length) this.switches.give(at - 1, label);
    }
    const word = Number(state.get("word")) - 1;
    while (this.recital && this.words.length <= word && this.recital.step());
    if (word >= 0 && word < this.words.length) this.selected = word;
    this.rerun();
    return true;
  }
}
