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
        code, width = {"F32": ("f", 4), "F64": ("d", 8)}[entry["dtype"]]
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


def impossible_tokens(sequences, positions, causal):
    """Whether each token's label is not the majority label of its context (ties: the label that comes first)."""
    counts, contexts = {}, []
    for sequence in sequences:
        tokens = [(word, place if positions else 0) for place, (word, _) in enumerate(sequence)]
        for place, (_, label) in enumerate(sequence):
            visible = Counter(tokens[: place + 1] if causal else tokens)
            divisor = math.gcd(*visible.values())
            context = (tokens[place], frozenset((token, count // divisor) for token, count in visible.items()))
            counts.setdefault(context, Counter())[label] += 1
            contexts.append((context, label))
    # A Counter lists equally frequent labels in order of first appearance.
    return [counts[context].most_common(1)[0][0] != label for context, label in contexts]


def dot(weights, vector):
    return sum((iv.mpf(w) * x for w, x in zip(weights, vector, strict=True) if w != 0), iv.mpf(0))


def relu(x):
    return iv.mpf([max(x.a, 0), max(x.b, 0)])


def feed_forward(tensors, name, h):
    w1, b1, w2, b2 = (tensors[f"{name}.{part}"] for part in ("w1", "b1", "w2", "b2"))
    units = [relu(dot(row, h) + b) for row, b in zip(w1, b1, strict=True)]
    return [x + dot(row, units) + b for x, row, b in zip(h, w2, b2, strict=True)]


def attend(layer, tensors, name, tokens, i):
    """Equations 2 and 5 at token i."""
    visible = tokens[: i + 1] if layer["mask"] == "causal" else tokens
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
            weights = [iv.exp(score - top) for score in scores]
            g = [sum((w * v for w, v in zip(weights, column, strict=True)), iv.mpf(0)) / sum(weights) for column in zip(*values, strict=True)]
        out = [x + dot(row, g) for x, row in zip(out, w_o, strict=True)]
    return out


def mean(column):
    return sum(column, iv.mpf(0)) / len(column)


def hull(column):
    return iv.mpf([min(v.a for v in column), max(v.b for v in column)])


def outputs(config, tensors, rows):
    """The outputs of all tokens of a sequence of embedding rows."""
    positions = tensors.get("positions.weight")
    tokens = [[iv.mpf(x) for x in row] for row in rows]
    if positions is not None:
        tokens = [[x + iv.mpf(p) for x, p in zip(token, positions[place], strict=True)] for place, token in enumerate(tokens)]
    if config.get("pre_feed_forward"):
        tokens = [feed_forward(tensors, "pre_feed_forward", token) for token in tokens]
    for i, layer in enumerate(config["layers"]):
        if layer.get("attention"):
            tokens = [attend(layer["attention"], tensors, f"layers.{i}.attention", tokens, t) for t in range(len(tokens))]
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
    sequences = read_jsonl(data) if data.suffix == ".jsonl" else read_conll(data)
    masks = [layer["attention"]["mask"] for layer in config["layers"] if layer.get("attention")]
    causal = bool(masks) and all(mask == "causal" for mask in masks)
    impossible = impossible_tokens(sequences, "positions.weight" in tensors, causal)
    letters = []
    for sequence in sequences:
        ids = [vocabulary[word] if word in vocabulary else vocabulary["<unk>"] for word, _ in sequence]
        found = outputs(config, tensors, [tensors["embedding.weight"][i] for i in ids])
        for (_, label), output in zip(sequence, found, strict=True):
            if impossible[len(letters)]:
                letters.append("i")
            elif label not in config["labels"]:
                letters.append("r")
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
