// The sentence on top of a tour: what is to be seen, in plain words.
function story(tour, i, others, contrast, line) {
  const { model, how } = tour, token = tour.tokens[i], word = tour.name(tour.words[i]);
  const strong = (text, label) => page.element("strong", label === undefined ? {} : { style: `color:${tour.color(label)}` }, text);
  const name = (label) => strong(tour.short(model.labels[label]), label);
  const here = model.maxLength === null ? "" : ` as word ${i + 1}`;
  const wanted = tour.wanted(i), wrong = wanted !== null && wanted !== model.labels[token.label];
  const verb = tour.recital ? "is followed by" : "gets the label";
  if (!how.attention) {
    return ["Attention is off, so every context has the id 0 and “", strong(word), `”${here} ${verb} `, name(token.label), " in every sentence",
      wrong ? `. That is wrong here: the data says “${tour.name(wanted)}”.` : "."];
  }
  if (how.hardmax) {
    const most = token.at.filter((_, k) => token.weights[k] > 0), names = [...new Set(most.map((_, k) => tour.name(token.seen[token.weights.findIndex((w, j) => w > 0 && token.at[j] === most[k])])))];
    const same = others.filter((c) => Math.abs(c.id - token.id) <= 1e-9 * (1 + Math.abs(token.id))), clash = same.filter((c) => c.label !== token.label);
    const groups = new Set([token.id, ...others.map((c) => c.id)].map((id) => id.toPrecision(9))).size;
    return ["Hardmax lets “", strong(word), `” see only “${names.slice(0, 3).join("”, “")}”. `,
      others.length === 0 ? `The id is ${page.number(token.id)}.` : `The ${others.length + 1} contexts of this word${here} have ${groups === 1 ? "one and the same id" : `${groups} different ids`} now; `
        + (clash.length > 0 ? "among them are different labels with the same id, so no hidden units can tell them apart (Theorem 1)." : "softmax gives each its own."),
      wrong ? ` It ${verb} ${model.labels[token.label]}, but the data says “${tour.name(wanted)}”.` : ""];
  }
  const given = how.hinges.find((hinge) => hinge.at === i);
  if (given) {
    const same = others.filter((c) => Math.abs(c.id - given.id) < given.half).length;
    return ["By hand, “", strong(word), "” now gets ", name(token.label), `: three hidden units were added, together a bump for this word${here} that is not 0 only where the id is within ${page.number(given.half, 2)} of ${page.number(given.id, 4)}. `,
      others.length === 0 ? "The word has no other context in the data." : same === 0 ? "Its other contexts have other ids and keep their labels."
        : `${same} of its other contexts ${same === 1 ? "has" : "have"} the same id and cannot be told apart from it.`];
  }
  const [low, high] = labelEnds(line, token);
  // As many digits as tell the ids of the sentence apart.
  const said = [token.id, low, high, contrast?.id].filter((x) => typeof x === "number");
  const digits = [3, 4, 5, 6, 7, 8].find((n) => new Set(said.map((x) => page.number(x, n))).size === new Set(said).size) ?? 9;
  const text = (x) => page.number(x, digits);
  const ids = low === null && high === null ? "all ids around it mean" : low === null ? `ids below ${text(high)} mean` : high === null ? `ids above ${text(low)} mean` : `ids from ${text(low)} to ${text(high)} mean`;
  const first = ["“", strong(word), `” ${verb} `, name(token.label), how.kappa === 1 ? "" : how.kappa === 0 ? " (kappa 0: attention takes the plain mean of all words)" : ` (kappa × ${how.kappa})`,
    `: attention sums up ${tour.recital ? "the text so far" : "the sentence"} in one number, the context id `, strong(text(token.id)), `, and for “${word}”${here} `, `${ids} `, name(token.label), "."];
  if (wrong) {
    const clash = !tour.switches.changed() && contrast === null;
    return [...first, ` The data says “${tour.name(wanted)}”`, clash || !tour.switches.changed() ? ": the same context has another label elsewhere in the data, so no model can get both right." : "."];
  }
  if (contrast) {
    return [...first, ` In “${tour.excerpt(contrast.sentence, contrast.place)}” its id is `, strong(text(contrast.id)), ", which means ", name(contrast.label), "."];
  }
  return others.length > 0 ? [...first, ` It has this label in all its ${others.length + 1} contexts in the data.`] : first;
}

// The ids nearest to a token's, below and above, at which its label ends; null where it does not within the picture.
function labelEnds(line, token) {
  const { along, low, high } = line, same = (id) => along.label(id) === token.label;
  const end = (to) => {
    const steps = 400;
    for (let k = 1; k <= steps; k++) {
      let inside = token.id + ((to - token.id) * (k - 1)) / steps, outside = token.id + ((to - token.id) * k) / steps;
      if (same(outside)) continue;
      for (let round = 0; round < 40; round++) {
        const middle = (inside + outside) / 2;
        if (same(middle)) inside = middle; else outside = middle;
      }
      return outside;
    }
    return null;
  };
  return [end(low), end(high)];
}

// A text model recites: fed its own labels, a token at a time.
class Recital {
  static FIRST = 14;

  constructor(tour) {
    Object.assign(this, { tour, timer: null });
    const button = (text, action) => { const node = page.element("button", { type: "button" }, text); node.addEventListener("click", action); return node; };
    this.play = button("▶ recite", () => (this.timer === null ? this.start() : this.stop()));
    this.said = page.element("span", { role: "status" });
    tour.part("recital").append(this.play, button("one more word", () => { this.stop(); this.step(); this.look(); }), button("from the start", () => { this.stop(); tour.showPicked(0); }), this.said);
    tour.part("recital").hidden = false;
  }

  restart() {
    this.stop();
    this.all = this.tour.model.tokens(this.tour.words);
    this.tell();
  }

  start() {
    this.play.textContent = "❚❚ stop";
    this.looked = performance.now();
    this.timer = setInterval(() => {
      const more = this.step();
      if (!more) this.stop();
      // Pictures of a long text take longer than a word.
      if (!more || performance.now() - this.looked > 600) { this.look(); this.looked = performance.now(); }
    }, 60);
  }

  stop() {
    clearInterval(this.timer);
    this.timer = null;
    this.play.textContent = "▶ recite";
  }

  // Writes what the model says next; false at the end.
  step() {
    const { tour } = this, { model, data } = tour, next = model.labels[tour.tokens.at(-1).label];
    if (next === data.text.end || model.row(next) === undefined || tour.words.length >= model.places) return false;
    tour.words.push(next);
    this.all.push(model.token(next, this.all.length));
    tour.tokens.push(model.finish(this.all, tour.words.length - 1, tour.how));
    tour.selected = tour.words.length - 1;
    const sentence = tour.part("sentence");
    sentence.append(tour.chip(next, tour.selected));
    sentence.scrollTop = sentence.scrollHeight;
    this.tell();
    return true;
  }

  look() {
    this.tour.select(this.tour.words.length - 1);
  }

  tell() {
    const { tour } = this, { words, source, data } = tour;
    if (source === null) { this.said.textContent = `${words.length} tokens`; return; }
    const text = data.sentences[source], astray = words.findIndex((word, i) => word !== text.words[i]);
    this.said.textContent = astray < 0 ? `${words.length} of ${text.words.length} tokens, all as in the text`
      : `astray at token ${astray + 1}: “${tour.name(words[astray])}” where the text has “${tour.name(text.words[astray] ?? data.text.end)}”`;
  }
}
