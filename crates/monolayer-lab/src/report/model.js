// A model of one layer with one head of size 1, run in double precision, or in single to see what rounding does.
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

class Model {
  constructor(data) {
    this.d = data.d;
    this.labels = data.labels;
    this.mask = data.mask;
    this.maxLength = data.maxLength;
    this.start = data.start; // a word before every sentence, or null
    this.rows = new Map(Object.entries(data.rows));
    this.tensors = {};
    for (const [name, tensor] of Object.entries(data.tensors)) this.tensors[name] = unpack(tensor);
    this.bias = this.tensors["layers.0.feed_forward.b1"] ?? [];
  }

  // The row of a word: [in this page, in the model].
  row(word) {
    return this.rows.get(word) ?? this.rows.get("<unk>");
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
    const places = (this.maxLength ?? Infinity) - (this.start === null ? 0 : 1);
    const most = Math.min(places, this.mask.rows?.length ?? Infinity);
    if (words.length > most) return `At most ${most} words.`;
    return null;
  }

  // g(y) over the tokens of a sentence, and the weight of each of them.
  static mix(keys, values, y) {
    const top = Math.max(...keys.map((k) => y * k));
    const powers = keys.map((k) => Math.exp(y * k - top));
    const total = powers.reduce((a, b) => a + b, 0);
    return { id: powers.reduce((sum, w, i) => sum + w * values[i], 0) / total, weights: powers.map((w) => w / total) };
  }

  // What happens to each word. `round` is applied to every intermediate result.
  run(words, round = (x) => x) {
    const { d, tensors } = this;
    const dot = (weights, start, x) => {
      let sum = 0;
      for (let i = 0; i < d; i++) sum = round(sum + round(weights[start + i] * x[i]));
      return sum;
    };
    const positions = tensors["positions.weight"];
    const all = this.start === null ? words : [this.start, ...words], first = all.length - words.length;
    const tokens = all.map((word, place) => {
      const start = this.row(word)[0] * d;
      return Float64Array.from({ length: d }, (_, i) =>
        round(tensors["embedding.weight"][start + i] + (positions ? positions[place * d + i] : 0)));
    });
    const project = (name) => tokens.map((x) => dot(tensors[`layers.0.attention.${name}`], 0, x));
    const queries = project("w_q"), keys = project("w_k"), values = project("w_v");
    const output = tensors["layers.0.attention.w_o"];
    return tokens.slice(first).map((x, own) => {
      const t = first + own;
      // Everyone sees the start token; the mask is about the others.
      const seen = tokens.map((_, i) => i).filter((i) => i < first || this.sees(own, i - first));
      const [k, v, y] = [seen.map((i) => keys[i]), seen.map((i) => values[i]), queries[t]];
      const { id, weights } = Model.mix(k, v, y);
      const h = x.map((value, i) => round(value + round(output[i] * round(id))));
      const firing = this.firing(h, dot, round);
      const out = this.feedForward(h, firing, round);
      const scores = this.labels.map((_, l) => round(dot(tensors["head.weight"], l * d, out) + tensors["head.bias"][l]));
      return { seen: seen.map((i) => all[i]), keys: k, values: v, y, id, weights, firing, scores, ...this.decide(scores) };
    });
  }

  firing(h, dot, round) {
    const w1 = this.tensors["layers.0.feed_forward.w1"], found = [];
    for (let j = 0; j < this.bias.length; j++) {
      const value = round(dot(w1, j * this.d, h) + this.bias[j]);
      if (value > 0) found.push({ unit: j, value });
    }
    return found;
  }

  feedForward(h, firing, round) {
    const w2 = this.tensors["layers.0.feed_forward.w2"], b2 = this.tensors["layers.0.feed_forward.b2"], q = this.bias.length;
    if (!w2) return h;
    return h.map((value, i) => {
      let sum = round(value + b2[i]);
      for (const { unit, value: a } of firing) sum = round(sum + round(w2[i * q + unit] * a));
      return sum;
    });
  }

  // What a unit that fires adds to the score of each label.
  push({ unit, value }) {
    const w2 = this.tensors["layers.0.feed_forward.w2"], head = this.tensors["head.weight"], q = this.bias.length;
    return this.labels.map((_, l) => {
      let sum = 0;
      for (let i = 0; i < this.d; i++) sum += head[l * this.d + i] * w2[i * q + unit] * value;
      return sum;
    });
  }

  // The first largest score, and its lead over the others.
  decide(scores) {
    const label = scores.indexOf(Math.max(...scores));
    return { label, margin: scores[label] - Math.max(...scores.filter((_, l) => l !== label)) };
  }
}
