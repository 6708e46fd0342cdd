#!/usr/bin/env python3
"""A second opinion on small models: verify labels in real arithmetic with mpmath's intervals.

    python tools/second_opinion.py DIR DATA [--bits 200]

Reads a model directory (f32 or f64) and a dataset of words (CoNLL columns, or JSON lines by the ending .jsonl), and prints one
JSON object with the fields of `monolayer verify --precision real --json`: verdict, tokens, verified, refuted, unknown,
impossible, and a letter per token (v, r, u, or i). Exit code 0 verified, 1 refuted or unknown, 2 error.
It shares nothing with the checker but the description of the files.
"""

import argparse
import json
import math
import struct
import sys
from collections import Counter
from pathlib import Path

from mpmath import iv


def once(pairs):
    """An object that names a field twice is refused."""
    if len({key for key, _ in pairs}) != len(pairs):
        raise ValueError("a field appears twice")
    return dict(pairs)


def read_tensors(path):
    """Nested lists of exact numbers by name."""
    content = path.read_bytes()
    (length,) = struct.unpack("<Q", content[:8])
    header = json.loads(content[8 : 8 + length], object_pairs_hook=once)
    data = content[8 + length :]
    tensors = {}
    for name, entry in header.items():
        if name == "__metadata__":
            continue
        begin, end = entry["data_offsets"]
        code, width = {"F32": ("f", 4), "F64": ("d", 8), "U8": ("B", 1)}[entry["dtype"]]
        if end - begin != width * math.prod(entry["shape"]):
            raise ValueError(f"{name}: wrong number of bytes")
        values = struct.unpack(f"<{(end - begin) // width}{code}", data[begin:end])
        if not all(map(math.isfinite, values)):
            raise ValueError(f"{name}: a number that is not finite")
        tensors[name] = nested(values, entry["shape"])
    return tensors


def nested(values, shape):
    if len(shape) <= 1:
        return list(values)
    step = len(values) // shape[0]
    return [nested(values[i * step : (i + 1) * step], shape[1:]) for i in range(shape[0])]


def read_conll(path):
    """Sequences of (word, label)."""
    sequences, current = [], []
    for line in path.read_bytes().removeprefix(b"\xef\xbb\xbf").split(b"\n"):
        line = line.removesuffix(b"\r")
        try:
            text = line.decode("utf-8")
        except UnicodeDecodeError:
            text = line.decode("latin-1")
        columns = text.replace("\t", " ").split(" ")
        columns = [column for column in columns if column]
        if not columns or text.startswith("-DOCSTART-"):
            sequences.append(current)
            current = []
        else:
            current.append((columns[0], columns[-1]))
    sequences.append(current)
    return [sequence for sequence in sequences if sequence]


def read_jsonl(path):
    lines = [json.loads(line, object_pairs_hook=once) for line in path.read_text("utf-8").split("\n") if line.strip()]
    return [list(zip(line["tokens"], map(str, line["labels"]), strict=True)) for line in lines]


def sees(mask, i, j):
    """Whether place i sees place j; the start token is at place -1."""
    if i == j or j == -1 or mask == "none":
        return True
    if mask == "causal":
        return j <= i
    if "prefix" in mask:
        return j < mask["prefix"] or j <= i
    if "rows" in mask:
        return i >= 0 and mask["rows"][i][j] == 1
    before, after = mask["band"]
    return i - before <= j <= i + after


def classes(config, sequences):
    """A class per token: tokens of one class have equal outputs for all weights.

    Attention sees a token and the normalized multiset of visible ones, layer by layer.
    """
    first = [config["start"]] if "start" in config else []
    states = [[(word, place if config["max_length"] else 0) for place, word in enumerate(first + words)] for words in sequences]
    for layer in config["layers"]:
        if not layer.get("attention"):
            continue
        names = {}
        for k, state in enumerate(states):
            fresh = []
            for i, token in enumerate(state):
                visible = Counter(other for j, other in enumerate(state) if sees(layer["attention"]["mask"], i - len(first), j - len(first)))
                divisor = math.gcd(*visible.values())
                name = (token, frozenset((other, count // divisor) for other, count in visible.items()))
                fresh.append(names.setdefault(name, len(names)))
            states[k] = fresh
    return [token for state in states for token in state[len(first) :]]


def impossible_tokens(config, sequences):
    """Whether each token's label is not the majority label of its class (ties: the label that comes first)."""
    found = classes(config, [[word for word, _ in sequence] for sequence in sequences])
    labels = [label for sequence in sequences for _, label in sequence]
    counts = {}
    for name, label in zip(found, labels, strict=True):
        counts.setdefault(name, Counter())[label] += 1
    # A Counter lists equally frequent labels in order of first appearance.
    return [counts[name].most_common(1)[0][0] != label for name, label in zip(found, labels, strict=True)]


class UndecidedError(Exception):
    """More bits would be needed."""


# exp of less than this is bounded by a power of two far below all that matters.
SMALLEST = -1_000_000


def exp(x):
    """An interval's exponential; numbers of millions of digits are not made."""
    if x.b > -SMALLEST:
        raise UndecidedError
    low = iv.exp(iv.mpf(x.a)).a if x.a > SMALLEST else 0
    return iv.mpf([low, iv.exp(iv.mpf(max(x.b, SMALLEST))).b])


def dot(weights, vector):
    return sum((iv.mpf(w) * x for w, x in zip(weights, vector, strict=True) if w != 0), iv.mpf(0))


def relu(x):
    return iv.mpf([max(x.a, 0), max(x.b, 0)])


def feed_forward(tensors, name, h):
    w1, b1, w2, b2 = (tensors[f"{name}.{part}"] for part in ("w1", "b1", "w2", "b2"))
    units = [relu(dot(row, h) + b) for row, b in zip(w1, b1, strict=True)]
    return [x + dot(row, units) + b for x, row, b in zip(h, w2, b2, strict=True)]


def attend(layer, tensors, name, tokens, i, first):
    """Equations 2 and 5 at token i."""
    visible = [x for j, x in enumerate(tokens) if sees(layer["mask"], i - first, j - first)]
    out = list(tokens[i])
    for head in range(layer["heads"]):
        w_q, w_k, w_v, w_o = (tensors[f"{name}.{part}"][head] for part in ("w_q", "w_k", "w_v", "w_o"))
        query = [dot(row, tokens[i]) for row in w_q]
        scores = [sum((dot(row, x) * q for row, q in zip(w_k, query, strict=True)), iv.mpf(0)) for x in visible]
        values = [[dot(row, x) for row in w_v] for x in visible]
        if layer["kind"] == "hardmax":
            best = max(score.a for score in scores)
            chosen = [v for score, v in zip(scores, values, strict=True) if score.b >= best]
            exact = all(score.a == score.b for score in scores if score.b >= best)
            g = [mean(column) if exact or len(chosen) == 1 else hull(column) for column in zip(*chosen, strict=True)]
        else:
            top = iv.mpf(max(score.a for score in scores))
            weights = [exp(score - top) for score in scores]
            g = [sum((w * v for w, v in zip(weights, column, strict=True)), iv.mpf(0)) / sum(weights) for column in zip(*values, strict=True)]
        out = [x + dot(row, g) for x, row in zip(out, w_o, strict=True)]
    return out


def mean(column):
    return sum(column, iv.mpf(0)) / len(column)


def hull(column):
    return iv.mpf([min(v.a for v in column), max(v.b for v in column)])


def outputs(config, tensors, rows):
    """The outputs of all tokens of a sequence of embedding rows, the start token's first where there is one."""
    first = 1 if "start" in config else 0
    positions = tensors.get("positions.weight")
    tokens = [[iv.mpf(x) for x in row] for row in rows]
    if positions is not None:
        tokens = [[x + iv.mpf(p) for x, p in zip(token, positions[place], strict=True)] for place, token in enumerate(tokens)]
    if config.get("pre_feed_forward"):
        tokens = [feed_forward(tensors, "pre_feed_forward", token) for token in tokens]
    for i, layer in enumerate(config["layers"]):
        if layer.get("attention"):
            tokens = [attend(layer["attention"], tensors, f"layers.{i}.attention", tokens, t, first) for t in range(len(tokens))]
        if layer["hidden"]:
            tokens = [feed_forward(tensors, f"layers.{i}.feed_forward", token) for token in tokens]
    return tokens


def decide(weight, bias, output, wanted):
    """v, r or u: does the wanted label win? Ties go to the lowest index."""
    verdict = "v"
    for other in range(len(bias)):
        if other == wanted:
            continue
        row = [iv.mpf(a) - iv.mpf(b) for a, b in zip(weight[wanted], weight[other], strict=True)]
        margin = sum((a * x for a, x in zip(row, output, strict=True)), iv.mpf(bias[wanted]) - iv.mpf(bias[other]))
        if margin.b < 0 or (margin.a == margin.b == 0 and other < wanted):
            return "r"
        if not (margin.a > 0 or (margin.a == 0 and wanted < other)):
            verdict = "u"
    return verdict


def check(directory, data):
    config = json.loads((directory / "config.json").read_text("utf-8"), object_pairs_hook=once)
    vocabulary = json.loads((directory / "vocabulary.json").read_text("utf-8"), object_pairs_hook=once)
    tensors = read_tensors(directory / "model.safetensors")
    for layer in config["layers"]:
        if layer["attention"] and "file" in layer["attention"]["mask"]:
            layer["attention"]["mask"] = {"rows": read_tensors(directory / "mask.safetensors")["mask"]}
    sequences = read_jsonl(data) if data.suffix == ".jsonl" else read_conll(data)
    impossible = impossible_tokens(config, sequences)
    start = [vocabulary[config["start"]]] if "start" in config else []
    letters = []
    for sequence in sequences:
        ids = [vocabulary[word] if word in vocabulary else vocabulary["<unk>"] for word, _ in sequence]
        try:
            found = outputs(config, tensors, [tensors["embedding.weight"][i] for i in start + ids])[len(start) :]
        except UndecidedError:
            found = [None] * len(ids)
        for (_, label), output in zip(sequence, found, strict=True):
            if impossible[len(letters)]:
                letters.append("i")
            elif label not in config["labels"]:
                letters.append("r")
            elif output is None:
                letters.append("u")
            else:
                wanted = config["labels"].index(label)
                letters.append(decide(tensors["head.weight"], tensors["head.bias"], output, wanted))
    count = Counter(letters)
    verdict = "refuted" if count["r"] else "unknown" if count["u"] else "verified"
    names = {"verified": "v", "refuted": "r", "unknown": "u", "impossible": "i"}
    counts = {name: count[letter] for name, letter in names.items()}
    return {"verdict": verdict, "tokens": len(letters), **counts, "letters": "".join(letters)}


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("directory", type=Path)
    parser.add_argument("data", type=Path)
    parser.add_argument("--bits", type=int, default=200, help="precision of the intervals")
    arguments = parser.parse_args()
    iv.prec = arguments.bits
    try:
        report = check(arguments.directory, arguments.data)
    except (OSError, ValueError, KeyError, IndexError, struct.error) as error:
        print(json.dumps({"verdict": "error", "error": f"{type(error).__name__}: {error}"}))
        return 2
    print(json.dumps(report))
    return 0 if report["verdict"] == "verified" else 1


if __name__ == "__main__":
    sys.exit(main())
