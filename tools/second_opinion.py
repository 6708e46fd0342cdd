#!/usr/bin/env python3
"""A second opinion on small models: verify labels in real arithmetic, with intervals of its own (tools/intervals.py).

    python tools/second_opinion.py DIR DATA [--bits 200]

Reads a model directory (f32 or f64) and a dataset of words (CoNLL columns, or JSON lines by the ending .jsonl), and prints one
JSON object with the fields of `monolayer verify --precision real --json`: verdict, tokens, verified, refuted, unknown,
impossible, free, and a letter per token (v, r, u, i, or f). Needs the standard library only. Exit code 0 verified, 1 refuted or unknown, 2 error.
It shares nothing with the checker but the description of the files.
"""

import argparse
import json
import math
import struct
import sys
from collections import Counter
from pathlib import Path

import intervals
import strict_data
from intervals import ZERO, Interval, UndecidedError, hull, less, number, sign
from strict_files import CODES, read_files, read_json, refuse


def read_model(directory):
    """Config, vocabulary, and nested lists of exact numbers by name."""
    config, vocabulary, found = read_files(directory)
    if vocabulary is None or config["labels"] is None:
        refuse(f"{directory}: only models of words with labels are read here")
    tensors = {}
    for name, (dtype, shape, raw) in found.items():
        values = struct.unpack(f"<{math.prod(shape)}{CODES[dtype]}", raw)
        tensors[name] = nested([number(x) for x in values], shape)
    return config, vocabulary, tensors


def nested(values, shape):
    if len(shape) <= 1:
        return list(values)
    step = len(values) // shape[0]
    return [nested(values[i * step : (i + 1) * step], shape[1:]) for i in range(shape[0])]


def read_data(path):
    """Sequences of (word, label); a label that may be anything is None."""
    lines = path.suffix == ".jsonl"
    sequences = strict_data.read_json_lines(path) if lines else strict_data.read_conll(path)
    if any(labels is None for _, labels in sequences):
        refuse(f"{path}: there are no labels")
    free = lambda label: label is None or (type(label) is int and label == -100) or (label == "_" and not lines)
    name = lambda value: None if free(value) else str(value) if isinstance(value, (int, str)) else refuse(f"{path}: vectors")
    return [list(zip(map(str, words), map(name, labels), strict=True)) for words, labels in sequences]


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


def classes(config, first, sequences):
    """A class per token: tokens of one class have equal outputs for all weights. Tokens are rows of the embedding.

    Attention sees a token and the normalized multiset of visible ones, layer by layer; the start token is the first.
    """
    states = [[(row, place if config["max_length"] else 0) for place, row in enumerate(first + rows)] for rows in sequences]
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


def impossible_tokens(config, start, sequences):
    """Whether each token's label is not the majority label of its class (ties: the label that comes first)."""
    found = classes(config, start, [[row for row, _ in sequence] for sequence in sequences])
    labels = [label for sequence in sequences for _, label in sequence]
    counts = {}
    for name, label in zip(found, labels, strict=True):
        if label is None:
            continue
        counts.setdefault(name, Counter())[label] += 1
    # A Counter lists equally frequent labels in order of first appearance.
    return [label is not None and counts[name].most_common(1)[0][0] != label for name, label in zip(found, labels, strict=True)]


def dot(weights, vector):
    terms = (x.times(w) for w, x in zip(weights, vector, strict=True) if w[0])
    return sum(terms, ZERO)


def feed_forward(tensors, name, h):
    w1, b1, w2, b2 = (tensors[f"{name}.{part}"] for part in ("w1", "b1", "w2", "b2"))
    units = [(dot(row, h) + Interval(b)).positive() for row, b in zip(w1, b1, strict=True)]
    return [x + dot(row, units) + Interval(b) for x, row, b in zip(h, w2, b2, strict=True)]


def attend(layer, tensors, name, tokens, i, first):
    """Equations 2 and 5 at token i."""
    visible = [x for j, x in enumerate(tokens) if sees(layer["mask"], i - first, j - first)]
    out = list(tokens[i])
    for head in range(layer["heads"]):
        w_q, w_k, w_v, w_o = (tensors[f"{name}.{part}"][head] for part in ("w_q", "w_k", "w_v", "w_o"))
        query = [dot(row, tokens[i]) for row in w_q]
        scores = [sum((dot(row, x) * q for row, q in zip(w_k, query, strict=True)), ZERO) for x in visible]
        values = [[dot(row, x) for row in w_v] for x in visible]
        if layer["kind"] == "hardmax":
            best = greatest(scores)
            chosen = [v for score, v in zip(scores, values, strict=True) if not less(score.b, best)]
            exact = all(score.is_point for score in scores if not less(score.b, best))
            g = [mean(column) if exact or len(chosen) == 1 else hull(column) for column in zip(*chosen, strict=True)]
        else:
            top = Interval(greatest(scores))
            weights = [(score - top).exp() for score in scores]
            average = lambda column: sum((w * v for w, v in zip(weights, column, strict=True)), ZERO) / sum(weights, ZERO)
            g = [average(column) for column in zip(*values, strict=True)]
        out = [x + dot(row, g) for x, row in zip(out, w_o, strict=True)]
    return out


def greatest(scores):
    """The greatest lower end."""
    best = scores[0].a
    for score in scores:
        best = score.a if less(best, score.a) else best
    return best


def mean(column):
    return sum(column, ZERO) / Interval.of(len(column))


def outputs(config, tensors, rows):
    """The outputs of all tokens of a sequence of embedding rows, the start token's first where there is one."""
    first = 0 if config["start"] is None else 1
    positions = tensors.get("positions.weight")
    tokens = [[Interval(x) for x in row] for row in rows]
    if positions is not None:
        if len(tokens) > len(positions):
            refuse("a sequence is longer than there are places")
        tokens = [[x + Interval(p) for x, p in zip(token, positions[place], strict=True)] for place, token in enumerate(tokens)]
    if config["pre_feed_forward"]:
        tokens = [feed_forward(tensors, "pre_feed_forward", token) for token in tokens]
    for i, layer in enumerate(config["layers"]):
        if layer["attention"]:
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
        row = [Interval(a) - Interval(b) for a, b in zip(weight[wanted], weight[other], strict=True)]
        margin = sum((a * x for a, x in zip(row, output, strict=True)), Interval(bias[wanted]) - Interval(bias[other]))
        low, high = sign(margin.a), sign(margin.b)
        if high < 0 or (low == high == 0 and other < wanted):
            return "r"
        if not (low > 0 or (low == 0 and wanted < other)):
            verdict = "u"
    return verdict


def row_of(data, vocabulary, word):
    row = vocabulary.get(word, vocabulary.get("<unk>"))
    return refuse(f"{data}: the model does not know the word {word!r}") if row is None else row


def check(directory, data):
    config, vocabulary, tensors = read_model(directory)
    # Words that the model does not know are one word to it.
    sequences = [[(row_of(data, vocabulary, word), label) for word, label in sequence] for sequence in read_data(data)]
    start = [] if config["start"] is None else [vocabulary[config["start"]]]
    impossible = impossible_tokens(config, start, sequences)
    letters = []
    for sequence in sequences:
        ids = [row for row, _ in sequence]
        try:
            found = outputs(config, tensors, [tensors["embedding.weight"][i] for i in start + ids])[len(start) :]
        except UndecidedError:
            found = [None] * len(ids)
        for (_, label), output in zip(sequence, found, strict=True):
            if label is None:
                letters.append("f")
            elif impossible[len(letters)]:
                letters.append("i")
            elif label not in config["labels"]:
                letters.append("r")
            elif output is None:
                letters.append("u")
            else:
                wanted = config["labels"].index(label)
                letters.append(decide(tensors["head.weight"], tensors["head.bias"], output, wanted))
    count = Counter(letters)
    verdict = "refuted" if count["r"] else "unknown" if count["u"] or not count["v"] else "verified"
    names = {"verified": "v", "refuted": "r", "unknown": "u", "impossible": "i", "free": "f"}
    counts = {name: count[letter] for name, letter in names.items()}
    return {"verdict": verdict, "tokens": len(letters), **counts, "letters": "".join(letters)}


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("directory", type=Path)
    parser.add_argument("data", type=Path)
    parser.add_argument("--bits", type=int, default=200, help="precision of the intervals")
    arguments = parser.parse_args()
    intervals.BITS = arguments.bits
    try:
        report = check(arguments.directory, arguments.data)
    except (OSError, ValueError) as error:
        print(json.dumps({"verdict": "error", "error": f"{type(error).__name__}: {error}"}))
        return 2
    print(json.dumps(report))
    return 0 if report["verdict"] == "verified" else 1


if __name__ == "__main__":
    sys.exit(main())
