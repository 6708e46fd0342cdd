// The switches of a tour: attention off, hardmax, kappa, one label by hand; and how many tokens are right with them.
class Switches {
  constructor(tour) {
    this.tour = tour;
    const box = tour.part("switches"), { how } = tour;
    const check = (name, text) => {
      const input = page.element("input", { type: "checkbox", class: name });
      box.append(page.element("label", { class: "check" }, input, text));
      return input;
    };
    this.off = check("attention-off", "attention off");
    this.hardmax = check("hardmax", "hardmax instead of softmax");
    this.kappa = page.element("input", { type: "range", min: 0, max: 4, step: 0.05, value: how.kappa, class: "kappa" });
    this.kappaValue = page.element("output", {});
    this.label = page.element("select", { class: "give" });
    this.labelName = page.element("span", {});
    this.reset = page.element("button", { type: "button", class: "reset" }, "as it was made");
    this.status = page.element("p", { class: "count", role: "status" });
    box.append(page.element("label", {}, "kappa (sharpness of attention) ", this.kappaValue, this.kappa), page.element("label", {}, this.labelName, this.label), this.reset, this.status);
    box.hidden = false;
    const change = (input, event, action) => input.addEventListener(event, () => { action(); this.moved(); });
    change(this.off, "change", () => { tour.how.attention = !this.off.checked; });
    change(this.hardmax, "change", () => { tour.how.hardmax = this.hardmax.checked; });
    change(this.kappa, "input", () => { tour.how.kappa = +this.kappa.value; });
    change(this.label, "change", () => this.give(tour.selected, this.label.value === "" ? null : +this.label.value));
    change(this.reset, "click", () => { tour.how = asItIs(); });
  }

  changed() {
    const { attention, hardmax, kappa, hinges } = this.tour.how;
    return !attention || hardmax || kappa !== 1 || hinges.length > 0;
  }

  // Runs the sentence again, and keeps the focus where it is.
  moved() {
    this.tour.recital?.restart();
    this.tour.rerun();
  }

  // Gives a word of the sentence another label, as the compiler would: by hinges around its id, narrow enough for the other contexts
  // of the word to stay as they are.
  give(i, label) {
    const { tour } = this, { model, how } = tour;
    how.hinges = how.hinges.filter((hinge) => hinge.at !== i);
    const [token] = [model.run(tour.words, how)[i]];
    if (label === null || label === token.label) return;
    const gaps = tour.others(i).map((c) => Math.abs(c.id - token.id)).filter((gap) => gap > 1e-9);
    const half = Math.min(1, ...gaps) / 2;
    how.hinges.push({ at: i, row: token.row, place: token.place, id: token.id, half, label, height: token.scores[token.label] - token.scores[label] + 1 });
  }

  update() {
    const { tour } = this, { how, model } = tour;
    this.off.checked = !how.attention;
    this.hardmax.checked = how.hardmax;
    this.kappa.value = how.kappa;
    this.kappaValue.textContent = `× ${how.kappa}`;
    this.reset.disabled = !this.changed();
    this.labelName.textContent = `give “${tour.name(tour.words[tour.selected])}” the label`;
    const given = how.hinges.find((hinge) => hinge.at === tour.selected)?.label ?? "";
    this.label.replaceChildren(page.element("option", { value: "" }, "as the model has it"),
      ...model.labels.slice(0, 300).map((name, l) => page.element("option", { value: l }, tour.name(name))));
    this.label.value = String(given);
    this.count();
  }

  // Counts the tokens that are right in the sentences of the page, a few at a time, so that the page stays quick.
  count() {
    const { tour } = this, { how, data, model } = tour;
    if (tour.recital) return;
    const key = JSON.stringify(how), known = tour.counts.get(key);
    this.counting = key;
    const sentences = data.sentences.slice(0, data.shown);
    const all = data.shown < data.all ? "tokens of the sentences in this page" : "tokens of the data";
    const say = ({ right, total, changed }) => {
      this.status.textContent = `${right.toLocaleString("en-US")} of ${total.toLocaleString("en-US")} ${all} right` + (this.changed() ? `; the switches make ${changed} wrong` : "");
      this.status.dataset.right = right;
    };
    if (known) { say(known); return; }
    this.status.textContent = "counting …";
    delete this.status.dataset.right;
    let next = 0;
    const found = { right: 0, total: 0, changed: 0 };
    const step = () => {
      if (this.counting !== key) return;
      const end = performance.now() + 25;
      while (next < sentences.length && performance.now() < end) {
        const { words, labels } = sentences[next++];
        const made = this.changed() ? model.run(words) : null;
        model.run(words, how).forEach((token, t) => {
          if (labels[t] === null) return;
          const right = model.labels[token.label] === labels[t];
          found.total += 1;
          found.right += +right;
          if (made && !right && model.labels[made[t].label] === labels[t]) found.changed += 1;
        });
      }
      if (next < sentences.length) { setTimeout(step, 0); return; }
      tour.counts.set(key, found);
      say(found);
    };
    setTimeout(step, 0);
  }
}

// The attention of the selected word as lines to the words it sees, as thick as their weights.
function drawArcs(tour) {
  const arcs = tour.part("arcs"), frame = tour.part("words").getBoundingClientRect();
  const chips = [...tour.part("sentence").children], own = chips[tour.selected + (tour.model.start === null ? 0 : 1)];
  const token = tour.tokens[tour.selected];
  arcs.replaceChildren();
  chips.forEach((chip) => chip.style.removeProperty("--w"));
  if (!own || !tour.how.attention) return;
  if (tour.recital) {
    // In a long text the words that are seen are shaded.
    token.at.forEach((i, k) => chips[i]?.style.setProperty("--w", token.weights[k].toFixed(4)));
    return;
  }
  arcs.setAttribute("viewBox", `0 0 ${frame.width} ${frame.height}`);
  const top = (chip) => { const box = chip.getBoundingClientRect(); return [box.left + box.width / 2 - frame.left, box.top - frame.top]; };
  const [x0, y0] = top(own);
  token.at.forEach((i, k) => {
    const weight = token.weights[k], chip = chips[i];
    if (!chip || chip === own || weight < 0.004) return;
    const [x, y] = top(chip), up = Math.min(y, y0) - Math.min(52, 16 + 0.16 * Math.abs(x - x0));
    arcs.append(page.element("path", { d: `M${x0} ${y0}C${x0} ${up} ${x} ${up} ${x} ${y}`, class: "arc", style: `stroke-width:${(1 + 13 * weight).toFixed(1)}px` }));
    if (weight >= 0.05) arcs.append(page.element("text", { x, y: y - 5, "text-anchor": "middle", class: "percent" }, `${Math.round(100 * weight)} %`));
  });
}
