"""Random model directories with a dataset each, for comparing implementations of the model format.

    python tools/random_model.py OUT --seed 7     writes OUT/config.json, model.safetensors, vocabulary.json?, data.*

Weights are scaled, by powers of two, so that scores stay below 10 and a layer adds at most half of what it is given:
differences between two implementations then come from rounding alone. The same seed writes the same bytes.
"""

import argparse
import json
import math
import os

import numpy as np

import reference

WORDS = 'the a EU rejects call . , " \' \\ { # é naïve Ærø 日本 мир 🙂 - 0'.split()


def write_safetensors(path, tensors):
    """Tensors in order of name, the header padded to 8 bytes."""
    kinds = {"float32": "F32", "float64": "F64", "int64": "I64", "uint8": "U8"}
    header, data = {}, b""
    for name in sorted(tensors):
        raw = np.ascontiguousarray(tensors[name]).tobytes()
        span = [len(data), len(data) + len(raw)]
        kind, shape = kinds[tensors[name].dtype.name], list(tensors[name].shape)
        header[name] = {"dtype": kind, "shape": shape, "data_offsets": span}
        data += raw
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    with open(path, "wb") as file:
        file.write(len(text).to_bytes(8, "little") + text + data)


def choose(rng, **fixed):
    """What a model is made of; anything in `fixed` is taken as it is."""
    choice = {
        "dtype": str(rng.choice(["f32", "f64"])),
        "words": bool(rng.random() < 0.6),
        "labels": int(rng.integers(2, 8)) if rng.random() < 0.6 else 0,  # 0: F(X) is the output
        "labeled_data": bool(rng.random() < 0.7),
        "positions": bool(rng.random() < 0.5),
        "unknown_words": bool(rng.random() < 0.5),
        "d": int(rng.integers(1, 25)),
        "vocabulary": int(rng.integers(3, 31)),
        "pre_feed_forward": int(rng.integers(1, 33)) if rng.random() < 0.3 else 0,
        "layers": [choose_layer(rng) for _ in range(rng.integers(1, 5))],
        "lengths": [choose_length(rng) for _ in range(rng.integers(3, 9))],
        # Whole numbers reach a hardmax first layer, so that ties between different tokens are exact.
        "whole_numbers": bool(rng.random() < 0.5),
        "rank_one": bool(rng.random() < 0.3),  # eq. 20: w_k = w_v wherever heads = head_size = 1
        "score": float(rng.choice([1.0, 4.0, 9.9])),
        "data": str(rng.choice(["jsonl", "other"])),  # other: CoNLL for words, safetensors for vectors
    }
    choice.update(fixed)
    hardmax = [i for i, layer in enumerate(choice["layers"]) if layer["kind"] == "hardmax"]
    if hardmax != [0] or choice["pre_feed_forward"]:
        choice["whole_numbers"] = False
    return choice


def choose_layer(rng):
    """Attention, or none, and a number of hidden units; kind None is a feed-forward layer alone."""
    kind = rng.choice(["softmax", "hardmax", "none"], p=[0.65, 0.2, 0.15])
    hidden = int(rng.integers(1, 65))
    if kind == "none":
        return {"kind": None, "hidden": hidden}
    small = rng.random() < 0.3
    return {
        "kind": str(kind),
        "heads": 1 if small else int(rng.integers(1, 5)),
        "head_size": 1 if small else int(rng.integers(1, 9)),
        "mask": str(rng.choice(["none", "causal"])),
        "hidden": 0 if rng.random() < 0.2 else hidden,
    }


def choose_masks(rng, layers, longest):
    """Masks that are objects for some of the layers; there is one matrix at most. Apart, so that seeds draw what they drew."""
    size = longest + int(rng.integers(0, 3))
    rows = (rng.random((size, size)) < rng.choice([0.1, 0.5, 0.9])) | np.eye(size, dtype=bool)
    prefix, band = int(rng.integers(0, longest + 2)), [int(x) for x in rng.integers(0, longest + 1, size=2)]
    for layer in layers:
        if layer["kind"] is not None and rng.random() < 0.4:
            layer["mask"] = [{"prefix": prefix}, {"band": band}, {"rows": rows.astype(int).tolist()}][rng.integers(3)]


def choose_outputs(rng):
    """A dimension of outputs that have one of their own, or none."""
    return int(rng.integers(1, 12)) if rng.random() < 0.5 else None


def choose_length(rng):
    """Mostly short, at times a single token, at times up to 300."""
    longest = rng.choice([1, 10, 40, 300], p=[0.1, 0.4, 0.35, 0.15])
    return int(rng.integers(1, longest + 1))


def power_of_two(size, bound):
    """The largest power of two that brings `size` to at most `bound`: scaling by it rounds nothing."""
    return 2.0 ** math.floor(math.log2(bound / size)) if size > 0 else 1.0


def largest(arrays):
    """The largest absolute value in a list of arrays."""
    return max(float(np.abs(a).max()) for a in arrays)


class Maker:
    """Draws weights layer by layer, carrying the dataset along to scale each layer by what it does to it."""

    def __init__(self, rng, choice):
        self.rng, self.choice, self.tensors = rng, choice, {}
        self.dtype = np.float32 if choice["dtype"] == "f32" else np.float64
        self.sums = reference.Sums()

    def normal(self, *shape):
        """Normal numbers that the model's dtype holds exactly."""
        return self.rng.normal(size=shape).astype(self.dtype).astype(np.float64)

    def whole(self, bound, *shape):
        """Whole numbers from -bound to bound."""
        return self.rng.integers(-bound, bound + 1, size=shape).astype(np.float64)

    def tokens(self):
        """Distinct tokens: words with their embedding, or vectors that short decimals write exactly."""
        c = self.choice
        v, d = c["vocabulary"], c["d"]
        rows = self.whole(2, v, d) if c["whole_numbers"] else np.round(self.rng.normal(size=(v, d)) * 64) / 64
        if not c["words"]:
            return None, list(rows)
        rows = rows if c["whole_numbers"] else self.normal(v, d)
        names = [WORDS[i] if i < len(WORDS) else f"word{i}" for i in range(v)]
        if c["unknown_words"]:
            names[-1] = "<unk>"
        ids = self.rng.permutation(v)
        self.tensors["embedding.weight"] = rows
        vocabulary = {name: int(i) for name, i in zip(names, ids)}
        words = [name for name in names if name != "<unk>"]
        return vocabulary, words + (["unseen", "ΔT"] if c["unknown_words"] else [])

    def attention(self, i, layer, z):
        """Draws the weights of eq. 2 (or 5) and applies them."""
        heads, size, d = layer["heads"], layer["head_size"], self.choice["d"]
        whole = self.choice["whole_numbers"] and layer["kind"] == "hardmax"
        w_q, w_k = (self.whole(1, heads, size, d) if whole else self.normal(heads, size, d) for _ in range(2))
        w_v, w_o = self.normal(heads, size, d), self.normal(heads, d, size)
        if self.choice["rank_one"] and heads == size == 1:
            w_v = w_k.copy()
        start = self.choice.get("start") is not None
        visible = [reference.visibility(np.ones(len(x), bool), layer["mask"], start) for x in z]
        scores = [reference.attention_scores(x, w_q[h], w_k[h], self.sums) for x in z for h in range(heads)]
        w_q *= power_of_two(largest(scores), self.choice["score"])
        weights = dict(w_q=w_q, w_k=w_k, w_v=w_v, w_o=w_o)
        apply = lambda: [
            reference.attention(x, see, layer["kind"], **weights, sums=self.sums) for x, see in zip(z, visible)
        ]
        w_o *= power_of_two(largest([b - a for a, b in zip(z, apply())]), 0.5 * largest(z))
        self.tensors.update({f"layers.{i}.attention.{name}": w for name, w in weights.items()})
        return apply()

    def feed_forward(self, prefix, q, z):
        """Draws the weights of eq. 3 and applies them."""
        d = self.choice["d"]
        weights = dict(w1=self.normal(q, d), b1=self.normal(q), w2=self.normal(d, q), b2=self.normal(d))
        weights["w1"] *= power_of_two(largest([x @ weights["w1"].T for x in z]), 4.0)
        apply = lambda: [reference.feed_forward(x, **weights, sums=self.sums) for x in z]
        scale = power_of_two(largest([b - a for a, b in zip(z, apply())]), 0.5 * largest(z))
        weights["w2"] *= scale
        weights["b2"] *= scale
        self.tensors.update({f"{prefix}.{name}": w for name, w in weights.items()})
        return apply()


def make(directory, seed, **fixed):
    """Writes one random model and its dataset; gives the path of the dataset."""
    rng = np.random.default_rng(seed)
    c = choose(rng, **fixed)
    maker = Maker(rng, c)
    vocabulary, tokens = maker.tokens()
    sequences = [[tokens[t] for t in rng.integers(len(tokens), size=n)] for n in c["lengths"]]
    longest = max(c["lengths"])
    c.setdefault("start", None)
    if "layers" not in fixed:
        choose_masks(np.random.default_rng([seed, 1]), c["layers"], longest)
        apart = np.random.default_rng([seed, 2])
        if c["words"] and "start" not in fixed and apart.random() < 0.4:
            c["start"] = str(apart.choice(sorted(vocabulary)))
    rows = next((layer["mask"]["rows"] for layer in c["layers"] if "rows" in layer.get("mask", "")), None)
    places = longest + (c["start"] is not None)
    max_length = int(places + rng.integers(0, 4)) if c["positions"] else None
    if c["positions"]:
        shape = (max_length, c["d"])
        maker.tensors["positions.weight"] = maker.whole(1, *shape) if c["whole_numbers"] else maker.normal(*shape) * 0.5
    labels = [f"L{k}" for k in range(c["labels"])] or None
    outputs = choose_outputs(np.random.default_rng([seed, 2])) if labels is None and "layers" not in fixed else None
    newer = c["start"] is not None or outputs is not None or any(isinstance(layer.get("mask"), dict) for layer in c["layers"])
    config = {
        "format": "monolayer/2" if newer else "monolayer/1",
        "d": c["d"],
        "dtype": c["dtype"],
        "max_length": max_length,
        "labels": labels,
        "layers": [layer_config(layer) for layer in c["layers"]],
        "pre_feed_forward": {"hidden": c["pre_feed_forward"]} if c["pre_feed_forward"] else None,
        "source": {"command": "tools/random_model.py", "seed": seed},
    }
    if c["start"] is not None:
        config["start"] = c["start"]
    config.update({} if outputs is None else {"outputs": outputs})
    model = {"config": config, "tensors": maker.tensors, "vocabulary": vocabulary, "dtype": np.float64}
    z = [reference.embed(model, sequence) for sequence in sequences]
    if c["pre_feed_forward"]:
        z = maker.feed_forward("pre_feed_forward", c["pre_feed_forward"], z)
    for i, layer in enumerate(c["layers"]):
        if layer["kind"] is not None:
            z = maker.attention(i, layer, z)
        if layer["hidden"]:
            z = maker.feed_forward(f"layers.{i}.feed_forward", layer["hidden"], z)
    if labels or outputs:
        count = outputs or len(labels)
        maker.tensors["head.weight"] = maker.normal(count, c["d"])
        maker.tensors["head.bias"] = maker.normal(count) * 0.25
    write_model(directory, config, {name: w.astype(maker.dtype) for name, w in maker.tensors.items()}, vocabulary)
    if rows is not None:
        write_safetensors(os.path.join(directory, "mask.safetensors"), {"mask": np.array(rows, np.uint8)})
    return write_data(directory, rng, c, labels, outputs, sequences)


def layer_config(layer):
    """A layer as config.json has it."""
    attention = None if layer["kind"] is None else {k: layer[k] for k in ("kind", "heads", "head_size", "mask")}
    if attention is not None and "rows" in attention["mask"]:
        attention["mask"] = {"file": "mask.safetensors"}
    return {"attention": attention, "hidden": layer["hidden"]}


def write_model(directory, config, tensors, vocabulary):
    """The files of a model."""
    os.makedirs(directory, exist_ok=True)
    with open(os.path.join(directory, "config.json"), "w", encoding="utf-8") as file:
        file.write(json.dumps(config, indent=2) + "\n")
    if vocabulary is not None:
        with open(os.path.join(directory, "vocabulary.json"), "w", encoding="utf-8") as file:
            file.write(json.dumps(vocabulary, ensure_ascii=False, indent=1) + "\n")
    write_safetensors(os.path.join(directory, "model.safetensors"), tensors)


def write_data(directory, rng, c, labels, outputs, sequences):
    """The dataset, with random labels where it has any."""
    targets = [None] * len(sequences)
    if c["labeled_data"] and labels:
        targets = [[labels[k] for k in rng.integers(len(labels), size=len(s))] for s in sequences]
    elif c["labeled_data"]:
        targets = [(np.round(rng.normal(size=(len(s), outputs or c["d"])) * 64) / 64).tolist() for s in sequences]
    if c["data"] == "other" and c["words"] and (labels or not c["labeled_data"]):
        return write_conll(os.path.join(directory, "data.conll"), sequences, targets)
    if c["data"] == "other" and not c["words"] and (not labels or not c["labeled_data"]):
        return write_arrays(os.path.join(directory, "data.safetensors"), sequences, targets)
    path = os.path.join(directory, "data.jsonl")
    with open(path, "w", encoding="utf-8") as file:
        for sequence, target in zip(sequences, targets):
            entry = {"tokens": sequence if c["words"] else [row.tolist() for row in sequence]}
            if target is not None:
                entry["labels"] = target
            file.write(json.dumps(entry, ensure_ascii=False) + "\n")
    return path


def write_conll(path, sequences, targets):
    """One token per line, its label last."""
    with open(path, "w", encoding="utf-8") as file:
        for sequence, target in zip(sequences, targets):
            rows = sequence if target is None else [f"{word} {label}" for word, label in zip(sequence, target)]
            file.write("\n".join(rows) + "\n\n")
    return path


def write_arrays(path, sequences, targets):
    """All tokens one after another, with the lengths of the sequences."""
    arrays = {
        "tokens": np.concatenate([np.array(s) for s in sequences]),
        "lengths": np.array([len(s) for s in sequences], np.int64),
    }
    if targets[0] is not None:
        arrays["labels"] = np.concatenate([np.array(t) for t in targets])
    write_safetensors(path, arrays)
    return path


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out")
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args()
    print(make(args.out, args.seed))


if __name__ == "__main__":
    main()
