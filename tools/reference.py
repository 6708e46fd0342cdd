"""The model format in plain numpy, neither fast nor clever, so that it can be checked against docs/format.md by eye.

    python tools/reference.py MODEL DATA              accuracy, or the largest error when labels are vectors
    python tools/reference.py MODEL DATA --json FILE  labels (or outputs) of every token, as `monolayer predict --json`

    --batch B          run B sequences at a time, padded to the longest
    --precision f64    evaluate in f64 whatever the model's dtype
    --order SEED       add the terms of every sum one by one in a random order
"""

import argparse
import codecs
import json
import math
import os
import re
import sys

import numpy as np

DTYPES = {"F32": np.float32, "F64": np.float64, "I64": np.int64, "I32": np.int32, "U32": np.uint32}


# ---- files -----------------------------------------------------------------------------------------------------------


def read_safetensors(path):
    """Tensors by name: 8 bytes of header length, a JSON header, then the numbers."""
    with open(path, "rb") as file:
        raw = file.read()
    start = 8 + int.from_bytes(raw[:8], "little")
    tensors = {}
    for name, entry in json.loads(raw[8:start]).items():
        if name != "__metadata__":
            begin, end = entry["data_offsets"]
            dtype = np.dtype(DTYPES[entry["dtype"]]).newbyteorder("<")
            tensors[name] = np.frombuffer(raw[start + begin : start + end], dtype).reshape(entry["shape"])
    return tensors


def read_model(directory, precision=None):
    """A model: its config, its tensors in the dtype it is evaluated in, and its vocabulary (None for vectors)."""
    with open(os.path.join(directory, "config.json"), encoding="utf-8") as file:
        config = json.load(file)
    if config["format"] != "monolayer/1":
        sys.exit(f"{directory}/config.json: format {config['format']!r} is not monolayer/1")
    dtype = {"f32": np.float32, "f64": np.float64}[precision or config["dtype"]]
    tensors = read_safetensors(os.path.join(directory, "model.safetensors"))
    tensors = {name: np.array(tensor, dtype) for name, tensor in tensors.items()}
    vocabulary = None
    if "embedding.weight" in tensors:
        with open(os.path.join(directory, "vocabulary.json"), encoding="utf-8") as file:
            vocabulary = json.load(file)
    return {"config": config, "tensors": tensors, "vocabulary": vocabulary, "dtype": dtype}


def read_data(path):
    """A dataset as a list of (tokens, labels); labels is None where the file has none."""
    if path.endswith(".safetensors"):
        return read_arrays(path)
    return read_json_lines(path) if path.endswith(".jsonl") else read_conll(path)


def read_conll(path):
    """Columns split on spaces and tabs, token first, label last, a blank line between sequences."""
    codecs.register_error("latin-1", lambda e: (e.object[e.start : e.end].decode("latin-1"), e.end))
    with open(path, "rb") as file:
        text = file.read().decode("utf-8-sig", errors="latin-1")
    sequences, rows = [], []
    for line in text.split("\n") + [""]:
        line = line.removesuffix("\r").strip(" \t")
        if line == "" or line.startswith("-DOCSTART-"):
            if rows:
                labeled = len(rows[0]) > 1
                sequences.append(([row[0] for row in rows], [row[-1] for row in rows] if labeled else None))
            rows = []
        else:
            rows.append(re.split("[ \t]+", line))
    return sequences


def read_json_lines(path):
    """One object per line: {"tokens": [...], "labels": [...]}; an integer label is the class of that name."""
    sequences = []
    with open(path, encoding="utf-8") as file:
        for line in file:
            if line.strip():
                entry = json.loads(line)
                labels = entry.get("labels")
                if labels is not None:
                    labels = [str(label) if isinstance(label, int) else label for label in labels]
                sequences.append((entry["tokens"], labels))
    return sequences


def read_arrays(path):
    """Tensors "tokens" [N, n, d], or [T, d] with "lengths" [N]; "labels" of the same leading shape."""
    arrays = read_safetensors(path)
    tokens, labels = arrays["tokens"], arrays.get("labels")
    if tokens.ndim == 2:
        ends = np.cumsum(arrays["lengths"])[:-1]
        tokens = np.split(tokens, ends)
        labels = None if labels is None else np.split(labels, ends)
    if labels is None:
        return [(sequence, None) for sequence in tokens]
    integer = np.issubdtype(labels[0].dtype, np.integer)
    return [(x, [str(label) for label in y] if integer else y) for x, y in zip(tokens, labels)]


# ---- the model -------------------------------------------------------------------------------------------------------


class Sums:
    """How sums are taken: by numpy's own product, left to right, or in a random order.

    numpy's product may round equal rows differently, so hardmax, whose ties are exact, adds left to right.
    """

    def __init__(self, left_to_right=False, seed=None):
        self.left_to_right = left_to_right
        self.rng = None if seed is None else np.random.default_rng(seed)

    def product(self, a, b):
        """The matrix product of a [..., m, k] and b [..., k, p]."""
        if not self.left_to_right and self.rng is None:
            return a @ b
        terms = range(a.shape[-1]) if self.rng is None else self.rng.permutation(a.shape[-1])
        total = np.zeros((), a.dtype)
        for t in terms:
            total = total + a[..., :, t, None] * b[..., None, t, :]
        return total


def attention_scores(z, w_q, w_k, sums):
    """The scores of one head, [..., query, key]: not scaled."""
    q = sums.product(z, w_q.T)
    k = sums.product(z, w_k.T)
    return sums.product(q, np.swapaxes(k, -1, -2))


def attention(z, visible, kind, w_q, w_k, w_v, w_o, sums, gaps=None):
    """Eq. 2 (eq. 5 for hardmax), z [..., n, d], visible [..., query, key]: heads are added to the skip in order."""
    out = z
    for head in range(len(w_q)):
        scores = np.where(visible, attention_scores(z, w_q[head], w_k[head], sums), -np.inf)
        largest = scores.max(axis=-1, keepdims=True)
        if kind == "softmax":
            weights = np.exp(scores - largest)
        elif kind == "hardmax":
            weights = (scores == largest).astype(z.dtype)
            if gaps is not None:
                gaps.append(hardmax_gap(scores, largest))
        total = sums.product(weights, np.ones((weights.shape[-1], 1), z.dtype))
        values = sums.product(z, w_v[head].T)
        seen = sums.product(weights, values) / total
        out = out + sums.product(seen, w_o[head].T)
    return out


def hardmax_gap(scores, largest):
    """How far below the largest score the next different one is, relative to the largest where that is above 1."""
    below = np.where(scores < largest, scores, -np.inf).max(axis=-1, keepdims=True)
    return ((largest - below) / np.maximum(1, np.abs(largest)))[..., 0]


def feed_forward(z, w1, b1, w2, b2, sums):
    """Eq. 3, token by token."""
    hidden = np.maximum(sums.product(z, w1.T) + b1, 0)
    return z + (sums.product(hidden, w2.T) + b2)


def tensors_of(model, prefix, *names):
    """The tensors prefix.name for each of the names."""
    return [model["tensors"][f"{prefix}.{name}"] for name in names]


def visibility(real, mask):
    """Which key each query sees, [..., query, key]: padding is never visible, nor is the future to a causal mask."""
    n = real.shape[-1]
    place = np.arange(n)
    ahead = (place[None, :] > place[:, None]) & (mask == "causal")
    return real[..., None, :] & ~ahead


def forward(model, z, real, sums, gaps=None):
    """Scores of the labels, or F(X) where the model has no head; z [..., n, d], real [..., n] is false on padding."""
    if model["config"].get("pre_feed_forward"):
        z = feed_forward(z, *tensors_of(model, "pre_feed_forward", "w1", "b1", "w2", "b2"), sums)
    for i, layer in enumerate(model["config"]["layers"]):
        if layer["attention"] is not None:
            weights = tensors_of(model, f"layers.{i}.attention", "w_q", "w_k", "w_v", "w_o")
            visible = visibility(real, layer["attention"]["mask"])
            z = attention(z, visible, layer["attention"]["kind"], *weights, sums, gaps)
        if layer["hidden"] > 0:
            z = feed_forward(z, *tensors_of(model, f"layers.{i}.feed_forward", "w1", "b1", "w2", "b2"), sums)
    if model["config"]["labels"] is not None:
        z = sums.product(z, model["tensors"]["head.weight"].T) + model["tensors"]["head.bias"]
    return z


def embed(model, tokens):
    """The input of one sequence, [n, d]: embedding[word] + positions[place]."""
    if model["vocabulary"] is None:
        z = np.array(tokens, model["dtype"]).reshape(len(tokens), model["config"]["d"])
    else:
        vocabulary = model["vocabulary"]
        unknown = [word for word in tokens if word not in vocabulary]
        if unknown and "<unk>" not in vocabulary:
            sys.exit(f"the word {unknown[0]!r} is not in the vocabulary, which has no <unk>")
        ids = [vocabulary[word] if word in vocabulary else vocabulary["<unk>"] for word in tokens]
        z = model["tensors"]["embedding.weight"][ids]
    if model["config"]["max_length"] is not None:
        if len(tokens) > model["config"]["max_length"]:
            sys.exit(f"a sequence of {len(tokens)} tokens, but max_length is {model['config']['max_length']}")
        z = z + model["tensors"]["positions.weight"][: len(tokens)]
    return z


def sums_of(model, seed=None):
    """How the sums of a model are taken."""
    layers = [layer["attention"] for layer in model["config"]["layers"] if layer["attention"] is not None]
    return Sums(left_to_right=any(layer["kind"] == "hardmax" for layer in layers), seed=seed)


def run(model, sequences, batch=1, seed=None, gaps=None):
    """The scores [n, labels] or outputs [n, d] of each sequence; gaps receives the smallest hardmax gap of each."""
    sums = sums_of(model, seed)
    results = []
    for start in range(0, len(sequences), batch):
        inputs = [embed(model, tokens) for tokens in sequences[start : start + batch]]
        longest = max(len(z) for z in inputs)
        z = np.zeros((len(inputs), longest, model["config"]["d"]), model["dtype"])
        real = np.zeros((len(inputs), longest), bool)
        for i, rows in enumerate(inputs):
            z[i, : len(rows)] = rows
            real[i, : len(rows)] = True
        seen = []
        out = forward(model, z, real, sums, seen)
        results += [out[i, : len(rows)] for i, rows in enumerate(inputs)]
        if gaps is not None:
            gaps += [min([math.inf] + [gap[i][real[i]].min() for gap in seen]) for i in range(len(inputs))]
    return results


def labels_of(model, scores):
    """The label of each token: the largest score, the lowest index on ties."""
    return [model["config"]["labels"][i] for i in scores.argmax(axis=-1)]


# ---- the command -----------------------------------------------------------------------------------------------------


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model")
    parser.add_argument("data")
    parser.add_argument("--json", metavar="FILE", help="write labels or outputs to FILE (- is standard output)")
    parser.add_argument("--batch", type=int, default=1, metavar="B")
    parser.add_argument("--precision", choices=["f32", "f64"])
    parser.add_argument("--order", type=int, metavar="SEED")
    args = parser.parse_args()

    model = read_model(args.model, args.precision)
    data = read_data(args.data)
    results = run(model, [tokens for tokens, _ in data], args.batch, args.order)
    targets = [labels for _, labels in data]
    labeled = all(labels is not None for labels in targets)
    report = {}
    if model["config"]["labels"] is None:
        report["outputs"] = [out.tolist() for out in results]
        if labeled:
            errors = [np.abs(out - np.array(y, out.dtype)).max() for out, y in zip(results, targets)]
            report["largest_error"] = float(max(errors))
            print(f"largest error {report['largest_error']:.3e} over {len(data)} sequences", file=sys.stderr)
    else:
        report["labels"] = [labels_of(model, scores) for scores in results]
        if labeled:
            pairs = [pair for got, y in zip(report["labels"], targets) for pair in zip(got, y)]
            right = sum(got == y for got, y in pairs)
            report["accuracy"] = right / len(pairs)
            print(f"{right} of {len(pairs)} tokens right: {report['accuracy']:.6f}", file=sys.stderr)
    if args.json == "-":
        print(json.dumps(report))
    elif args.json:
        with open(args.json, "w", encoding="utf-8") as file:
            json.dump(report, file)


if __name__ == "__main__":
    main()
