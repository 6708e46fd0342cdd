// A model of one layer with one head of size 1, in its own precision: Math.fround after every operation where that is f32.
const unpack = (() => {
  const bytes = (text) => Uint8Array.from(atob(text), (c) => c.charCodeAt(0));
  const numbers = (text, single) => {
    const raw = bytes(text), view = new DataView(raw.buffer), size = single ? 4 : 8;
    return Float64Array.from({ length: raw.length / size }, (_, i) =>
      single ? view.getFloat32(i * size, true) : view.getFloat64(i * size, true));
  };
  return (tensor) => {
    const count = tensor.shape.reduce((a, b) => a * b, 1);
    if (tensor.kind === "plain") return numbers(tensor.data, tensor.single);
    const out = new Float64Array(count);
    if (tensor.kind === "sparse") {
      const at = bytes(tensor.at), view = new DataView(at.buffer);
      numbers(tensor.data, tensor.single).forEach((x, i) => { out[view.getUint32(4 * i, true)] = x; });
      return out;
    }
    const raw = bytes(tensor.data), per = 8 / tensor.bits, mask = (1 << tensor.bits) - 1;
    for (let i = 0; i < count; i++) out[i] = tensor.values[(raw[Math.floor(i / per)] >> ((i % per) * tensor.bits)) & mask];
    return out;
  };
})();

// How a model is run: as it is, or with attention off, hardmax, another kappa, labels given by hand.
const asItIs = () => ({ attention: true, hardmax: false, kappa: 1, hinges: [] });

// g(y) over tokens with these keys and values, and the weight of each of them.
function mix(keys, values, y, hardmax = false) {
  let top = -Infinity, total = 0, id = 0;
  for (const k of keys) top = Math.max(top, y * k);
  const weights = keys.map((k) => (hardmax ? +(y * k === top) : Math.exp(y * k - top)));
  weights.forEach((w, i) => { total += w; id += w * values[i]; });
  return { id: id / total, weights: weights.map((w) => w / total) };
}

class Model {
  constructor(data) {
    this.d = data.d;
    this.labels = data.labels;
    this.mask = data.mask;
    this.maxLength = data.maxLength;
    this.start = data.start; // a word before every sentence, or null
    this.double = data.dtype !== "f32";
    this.round = this.double ? (x) => x : Math.fround;
    this.rows = new Map(Object.entries(data.rows));
    this.tensors = {};
    for (const [name, tensor] of Object.entries(data.tensors)) this.tensors[name] = unpack(tensor);
    const t = (name) => this.tensors[`layers.0.${name}`];
    this.b1 = t("feed_forward.b1") ?? new Float64Array(0);
    [this.w1, this.w2, this.b2] = ["w1", "w2", "b2"].map((name) => t(`feed_forward.${name}`));
    [this.wq, this.wk, this.wv, this.wo] = ["w_q", "w_k", "w_v", "w_o"].map((name) => t(`attention.${name}`));
    this.q = this.b1.length;
    // What a unit moves along the id, and what the id itself adds to each score.
    this.slopes = Float64Array.from({ length: this.q }, (_, j) => this.plainDot(this.w1, j * this.d, this.wo));
    this.idSays = this.read((i) => this.wo[i]);
    this.says = new Map();
    this.projected = new Map();
  }

  // The row of a word: [in this page, in the model].
  row(word) {
    return this.rows.get(word) ?? this.rows.get("<unk>");
  }

  get places() {
    return (this.maxLength ?? Infinity) - (this.start === null ? 0 : 1);
  }

  // Whether the word at place `query` sees the one at place `key`.
  sees(query, key) {
    const { prefix, band, rows } = this.mask;
    if (prefix !== undefined) return key < prefix || key <= query;
    if (band !== undefined) return query - key <= band[0] && key - query <= band[1];
    if (rows !== undefined) return rows[query][key] === "1";
    return this.mask !== "causal" || key <= query;
  }

  // Why a sentence cannot be run, or null.
  obstacle(words) {
    if (words.length === 0) return "Type some words, separated by spaces.";
    const unknown = words.find((word) => this.row(word) === undefined);
    if (unknown !== undefined) return `The model does not know the word “${unknown}”, or this page does not hold it.`;
    const most = Math.min(this.places, this.mask.rows?.length ?? Infinity);
    if (words.length > most) return `At most ${most} words.`;
    return null;
  }

  dot(weights, start, x) {
    if (this.double) return this.plainDot(weights, start, x);
    const { d } = this, round = Math.fround;
    let sum = 0;
    for (let i = 0; i < d; i++) sum = round(sum + round(weights[start + i] * x[i]));
    return sum;
  }

  plainDot(weights, start, x) {
    let sum = 0;
    for (let i = 0; i < this.d; i++) sum += weights[start + i] * x[i];
    return sum;
  }

  // What a vector adds to the score of each label.
  read(vector) {
    const head = this.tensors["head.weight"];
    return this.labels.map((_, l) => {
      let sum = 0;
      for (let i = 0; i < this.d; i++) { const w = head[l * this.d + i]; if (w !== 0) sum += w * vector(i); }
      return sum;
    });
  }

  // What a hidden unit adds to each score, per unit of its value.
  unitSays(j) {
    if (!this.says.has(j)) this.says.set(j, this.read((i) => this.w2[i * this.q + j]));
    return this.says.get(j);
  }

  // A token's vector at a place (of the model's rows of positions), and its query, key and value.
  token(word, place) {
    const positions = this.tensors["positions.weight"], embedding = this.tensors["embedding.weight"];
    const start = this.row(word)[0] * this.d;
    const x = Float64Array.from({ length: this.d }, (_, i) =>
      this.round(embedding[start + i] + (positions ? positions[place * this.d + i] : 0)));
    const [query, key, value] = [this.wq, this.wk, this.wv].map((w) => this.dot(w, 0, x));
    return { word, x, query, key, value };
  }

  tokens(words) {
    const all = this.start === null ? words : [this.start, ...words];
    return all.map((word, place) => this.token(word, place));
  }

  // The places that the own word at a place sees, of all, the start token included.
  seen(own, count) {
    const first = this.start === null ? 0 : 1, places = first ? [0] : [];
    for (let i = first; i < count; i++) if (this.sees(own, i - first)) places.push(i);
    return places;
  }

  // What happens to each word.
  run(words, how = asItIs()) {
    const all = this.tokens(words);
    return words.map((_, own) => this.finish(all, own, how));
  }

  finish(all, own, how) {
    const { round } = this, first = this.start === null ? 0 : 1;
    const at = this.seen(own, all.length), me = all[first + own];
    const keys = at.map((i) => all[i].key), values = at.map((i) => all[i].value), y = round(me.query * how.kappa);
    const { id: mixed, weights } = mix(keys, values, y, how.hardmax);
    const id = how.attention ? round(mixed) : 0;
    const h = me.x.map((value, i) => round(value + round(this.wo[i] * id)));
    const firing = [];
    for (let j = 0; j < this.q; j++) {
      const value = round(this.dot(this.w1, j * this.d, h) + this.b1[j]);
      if (value > 0) firing.push({ unit: j, value });
    }
    const out = h.map((value, i) => {
      let sum = this.b2 ? round(value + this.b2[i]) : value;
      for (const { unit, value: a } of firing) sum = round(sum + round(this.w2[i * this.q + unit] * a));
      return sum;
    });
    const bias = this.tensors["head.bias"], head = this.tensors["head.weight"];
    const scores = this.labels.map((_, l) => round(this.dot(head, l * this.d, out) + bias[l]));
    const token = { at, seen: at.map((i) => all[i].word), keys, values, y, id, mixed, weights, firing, x: me.x, place: own, row: this.row(me.word)[1], scores };
    for (const hinge of this.hingesOf(token, how)) scores[hinge.label] += bump(hinge, id);
    return Object.assign(token, this.decide(scores));
  }

  // The hinges given by hand for this word (at this place, where places count).
  hingesOf(token, how) {
    return how.hinges.filter((hinge) => hinge.row === token.row && (this.maxLength === null || hinge.place === token.place));
  }

  // The id of a word of a sentence alone, in double precision.
  idOf(words, own, how = asItIs()) {
    const project = (word, place) => {
      const name = `${place}:${word}`;
      if (!this.projected.has(name)) { const { query, key, value } = this.token(word, place); this.projected.set(name, { query, key, value }); }
      return this.projected.get(name);
    };
    if (!how.attention) return 0;
    const all = (this.start === null ? words : [this.start, ...words]).map((word, place) => project(word, this.maxLength === null ? 0 : place));
    const first = this.start === null ? 0 : 1, at = this.seen(own, all.length);
    return mix(at.map((i) => all[i].key), at.map((i) => all[i].value), all[first + own].query * how.kappa, how.hardmax).id;
  }

  // What each part adds to each score; together they are the score.
  contributions(token, how = asItIs()) {
    const parts = [{ name: "the word itself", adds: this.read((i) => token.x[i]) }];
    parts.push({ name: "attention", adds: this.idSays.map((x) => x * token.id) });
    for (const { unit, value } of token.firing) parts.push({ name: `unit ${unit}`, unit, value, adds: this.unitSays(unit).map((x) => x * value) });
    for (const hinge of this.hingesOf(token, how)) {
      parts.push({ name: "by hand", adds: this.labels.map((_, l) => (l === hinge.label ? bump(hinge, token.id) : 0)) });
    }
    if (this.b2) parts.push({ name: "bias of the units", adds: this.read((i) => this.b2[i]) });
    parts.push({ name: "bias of the labels", adds: this.labels.map((_, l) => this.tensors["head.bias"][l]) });
    return parts.filter((part) => part.adds.some((x) => x !== 0));
  }

  // The scores of a token as functions of its id, between two ids: where they bend, and their values.
  along(token, how, low, high) {
    const base = [];
    for (let j = 0; j < this.q; j++) {
      const at0 = this.plainDot(this.w1, j * this.d, token.x) + this.b1[j], slope = this.slopes[j];
      if (Math.max(at0 + slope * low, at0 + slope * high) > 0) base.push({ at0, slope, says: this.unitSays(j) });
    }
    const still = this.read((i) => token.x[i] + (this.b2 ? this.b2[i] : 0)).map((x, l) => x + this.tensors["head.bias"][l]);
    const hinges = this.hingesOf(token, how);
    const scores = (id) => {
      const out = still.map((x, l) => x + this.idSays[l] * id);
      for (const { at0, slope, says } of base) {
        const value = at0 + slope * id;
        if (value > 0) for (let l = 0; l < out.length; l++) out[l] += says[l] * value;
      }
      for (const hinge of hinges) out[hinge.label] += bump(hinge, id);
      return out;
    };
    const bends = [...base.map(({ at0, slope }) => -at0 / slope), ...hinges.flatMap((h) => [h.id - h.half, h.id, h.id + h.half])]
      .filter((id) => id > low && id < high);
    return { scores, bends: bends.sort((a, b) => a - b), label: (id) => this.decide(scores(id)).label };
  }

  // The first largest score, and its lead over the others.
  decide(scores) {
    let label = 0, second = -1;
    for (let l = 1; l < scores.length; l++) if (scores[l] > scores[label]) label = l;
    for (let l = 0; l < scores.length; l++) if (l !== label && (second < 0 || scores[l] > scores[second])) second = l;
    return { label, second, margin: second < 0 ? Infinity : scores[label] - scores[second] };
  }
}

// Three hinges that together are a bump around an id.
function bump(hinge, id) {
  return hinge.height * Math.max(0, 1 - Math.abs(id - hinge.id) / hinge.half);
}
