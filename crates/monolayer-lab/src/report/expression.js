// Expressions of `monolayer approximate`: one per coordinate of the output. `parseExpression` gives a function of a sequence (rows)
// and a token's place, or null for what is no expression.
function parseExpression(text, d) {
  const unary = { sin: Math.sin, cos: Math.cos, tan: Math.tan, exp: Math.exp, log: Math.log, sqrt: Math.sqrt, abs: Math.abs, tanh: Math.tanh,
    sign: Math.sign, step: (x) => +(x >= 0) };
  const mean = (list) => list.reduce((a, b) => a + b, 0) / list.length;
  const over = { sum: (list) => list.reduce((a, b) => a + b, 0), mean, min: (list) => Math.min(...list), max: (list) => Math.max(...list),
    var: (list) => { const m = mean(list); return mean(list.map((x) => (x - m) ** 2)); } };
  const words = text.match(/\d+\.?\d*(?:[eE][-+]?\d+)?|\.\d+(?:[eE][-+]?\d+)?|[A-Za-z]\w*|[-+*/^(),;]|\S/g) ?? [];
  let at = 0;
  const take = (...signs) => (signs.includes(words[at]) ? words[at++] : null);
  const need = (sign) => { if (!take(sign)) throw new Error(sign); };
  const list = (next, signs, join) => () => {
    let left = next();
    for (let sign; (sign = take(...signs)); ) { const a = left, b = next(); left = join(sign, a, b); }
    return left;
  };
  // Every node is a function of { rows, own, now }: the sequence, the output token's place, the running token's place.
  const atom = () => {
    const word = words[at++];
    if (word === undefined) throw new Error("end");
    if (/^[\d.]/.test(word)) { const value = +word; return () => value; }
    if (word === "(") { const inner = expression(); need(")"); return inner; }
    if (word === "pi") return () => Math.PI;
    if (word === "self") return (s) => +(s.now === s.own);
    if (word === "place") return (s) => s.now + 1;
    if (word === "ownplace") return (s) => s.own + 1;
    const [, kind, digits] = word.match(/^(x|own)([1-9]\d*)$/) ?? [];
    if (kind && +digits <= d) { const c = +digits - 1; return kind === "x" ? (s) => s.rows[s.now][c] : (s) => s.rows[s.own][c]; }
    if (!Object.hasOwn(unary, word) && !Object.hasOwn(over, word)) throw new Error(word);
    need("(");
    const inner = [expression()];
    while (take(",")) inner.push(expression());
    need(")");
    if (inner.length > 1 && (word === "min" || word === "max")) return (s) => over[word](inner.map((f) => f(s)));
    if (inner.length > 1) throw new Error(word);
    if (Object.hasOwn(unary, word)) return (s) => unary[word](inner[0](s));
    return (s) => over[word](s.rows.map((_, now) => inner[0]({ ...s, now })));
  };
  const power = () => { const base = atom(); if (!take("^")) return base; const exponent = signed(); return (s) => base(s) ** exponent(s); };
  const signed = () => { if (take("-")) { const inner = signed(); return (s) => -inner(s); } return take("+") ? signed() : power(); };
  const term = list(signed, ["*", "/"], (sign, a, b) => (sign === "*" ? (s) => a(s) * b(s) : (s) => a(s) / b(s)));
  const expression = list(term, ["+", "-"], (sign, a, b) => (sign === "+" ? (s) => a(s) + b(s) : (s) => a(s) - b(s)));
  try {
    const outputs = [expression()];
    while (take(";")) outputs.push(expression());
    if (at < words.length || outputs.length !== d) return null;
    return (rows, own) => outputs.map((f) => f({ rows, own, now: own }));
  } catch { return null; }
}
