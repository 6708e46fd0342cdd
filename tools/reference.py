"""The model format in plain numpy, neither fast nor clever, so that it can be checked against docs/format.md by eye.

    python tools/reference.py MODEL DATA              accuracy, or the largest error when labels are vectors
    python tools/reference.py MODEL DATA --json FILE  labels (or outputs) of every token, as `monolayer predict --json`

    --batch B          run B sequences at a time, padded to the longest
    --precision f64    evaluate in f64 whatever the model's dtype
    --order SEED       add the terms of every sum one by one in a random order
"""

import argparse
import json
import math
import sys

import numpy as np

import strict_data
import strict_files

DTYPES = {"F32": np.float32, "F64": np.float64, "I64": np.int64, "I32": np.int32, "U32": np.uint32}


# ---- files -----------------------------------------------------------------------------------------------------------


def read_safetensors(path):
    """Tensors by name."""
    with open(path, "rb") as file:
        found = strict_files.read_header(path, file.read())
    return {name: numbers(path, *tensor) for name, tensor in found.items()}


def numbers(path, dtype, shape, raw):
    """A tensor of a file; all numbers are finite."""
    if dtype not in DTYPES:
        raise ValueError(f"{path}: tensors of dtype {dtype} are not read here")
    array = np.frombuffer(raw, np.dtype(DTYPES[dtype]).newbyteorder("<")).reshape(shape)
    if not np.isfinite(array).all():
        raise ValueError(f"{path}: a number that is not finite")
    return array


def read_model(directory, precision=None):
    """A model: its config, its tensors in the dtype it is evaluated in, and its vocabulary (None for vectors)."""
    config, vocabulary, found = strict_files.read_files(directory)
    dtype = {"f32": np.float32, "f64": np.float64}[precision or config["dtype"]]
    tensors = {name: np.array(numbers(directory, *tensor), dtype) for name, tensor in found.items()}
    return {"config": config, "tensors": tensors, "vocabulary": vocabulary, "dtype": dtype}


def read_data(path):
    """A dataset as a list of (tokens, labels); labels is None where the file has none, a label where any will do."""
    if path.endswith(".safetensors"):
        return read_arrays(path)
    free = lambda label: strict_data.is_free(label, columns=not path.endswith(".jsonl"))
    given = lambda labels: None if labels is None else [None if free(label) else label for label in labels]
    return [(named(tokens), named(given(labels))) for tokens, labels in read_text(path)]


def named(labels):
    """Labels by name: an integer is the class of that name."""
    return None if labels is None else [str(label) if isinstance(label, int) else label for label in labels]


def read_text(path):
    """A dataset of text as the file has it: integers are integers."""
    return strict_data.read_json_lines(path) if path.endswith(".jsonl") else strict_data.read_conll(path)


def read_arrays(path):
    """Tensors "tokens" [N, n, d], or [T, d] with "lengths" [N]; "labels" of the same leading shape."""
    arrays = read_safetensors(path)
    tokens, labels, lengths = (arrays.pop(name, None) for name in ("tokens", "labels", "lengths"))
    if arrays or tokens is None or tokens.dtype.kind != "f" or tokens.ndim != (3 if lengths is None else 2):
        raise ValueError(f"{path}: not the arrays of a dataset")
    if labels is not None and (labels.shape[:-1] if labels.dtype.kind == "f" else labels.shape) != tokens.shape[:-1]:
        raise ValueError(f"{path}: labels of another shape")
    if lengths is not None:
        if lengths.dtype.kind == "f" or lengths.ndim != 1 or lengths.min() < 1 or lengths.sum() != len(tokens):
            raise ValueError(f"{path}: lengths that do not add up to the tokens")
        ends = np.cumsum(lengths)[:-1]
        tokens = np.split(tokens, ends)
        labels = None if labels is None else np.split(labels, ends)
    if labels is None:
        return [(sequence, None) for sequence in tokens]
    integer = np.issubdtype(labels[0].dtype, np.integer)
    name = lambda label: None if label == -100 else str(label)
    return [(x, [name(label) for label in y] if integer else y) for x, y in zip(tokens, labels)]


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


def visibility(real, mask, start=False):
    """Which key each query sees, [..., query, key]: what its mask shows it (132), and never padding.

    A start token is the first, at place -1 of the mask: all see it, and a mask in a file does not know it.
    """
    n, first = real.shape[-1], 1 if start else 0
    query, key = np.arange(n)[:, None] - first, np.arange(n)[None, :] - first
    if mask == "none":
        shown = np.ones((n, n), bool)
    elif mask == "causal":
        shown = key <= query
    elif "prefix" in mask:
        shown = (key < mask["prefix"]) | (key <= query)
    elif "band" in mask:
        shown = (query - key <= mask["band"][0]) & (key - query <= mask["band"][1])
    else:
        rows, own = mask["rows"], n - first
        if own > len(rows):
            sys.exit(f"a sequence of {own} tokens, but the mask is for {len(rows)}")
        shown = np.zeros((n, n), bool)
        shown[first:, first:] = np.array(rows, bool)[:own, :own]
    shown = shown | (key == -1)
    # Padding sees itself, so that it stays finite.
    return (real[..., None, :] & shown) | np.eye(n, dtype=bool)


def forward(model, z, real, sums, gaps=None):
    """Scores of the labels, or outputs, F(X) where the model has no head; z [..., n, d], real [..., n] is false on padding."""
    if model["config"].get("pre_feed_forward"):
        z = feed_forward(z, *tensors_of(model, "pre_feed_forward", "w1", "b1", "w2", "b2"), sums)
    for i, layer in enumerate(model["config"]["layers"]):
        if layer["attention"] is not None:
            weights = tensors_of(model, f"layers.{i}.attention", "w_q", "w_k", "w_v", "w_o")
            visible = visibility(real, layer["attention"]["mask"], model["config"].get("start") is not None)
            z = attention(z, visible, layer["attention"]["kind"], *weights, sums, gaps)
        if layer["hidden"] > 0:
            z = feed_forward(z, *tensors_of(model, f"layers.{i}.feed_forward", "w1", "b1", "w2", "b2"), sums)
    if "head.weight" in model["tensors"]:
        z = sums.product(z, model["tensors"]["head.weight"].T) + model["tensors"]["head.bias"]
    return z


def embed(model, tokens):
    """The input of one sequence, [n, d]: embedding[word] + positions[place], behind the start token where there is one."""
    if model["config"].get("start") is not None:
        tokens = [model["config"]["start"], *tokens]
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
            sys.exit(f"a sequence needs {len(tokens)} places, but max_length is {model['config']['max_length']}")
        z = z + model["tensors"]["positions.weight"][: len(tokens)]
    return z


def sums_of(model, seed=None):
    """How the sums of a model are taken."""
    layers = [layer["attention"] for layer in model["config"]["layers"] if layer["attention"] is not None]
    return Sums(left_to_right=any(layer["kind"] == "hardmax" for layer in layers), seed=seed)


def run(model, sequences, batch=1, seed=None, gaps=None):
    """The scores [n, labels] or outputs [n, d] of each sequence; gaps receives the smallest hardmax gap of each."""
    sums, first = sums_of(model, seed), 0 if model["config"].get("start") is None else 1
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
        results += [out[i, first : len(rows)] for i, rows in enumerate(inputs)]
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
            pairs = [pair for got, y in zip(report["labels"], targets) for pair in zip(got, y) if pair[1] is not None]
            right = sum(got == y for got, y in pairs)
            report["accuracy"] = right / len(pairs) if pairs else None
            print(f"{right} of {len(pairs)} labeled tokens right", file=sys.stderr)
    if args.json == "-":
        print(json.dumps(report))
    elif args.json:
        with open(args.json, "w", encoding="utf-8") as file:
            json.dump(report, file)


if __name__ == "__main__":
    main()
