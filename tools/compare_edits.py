"""Ten edits of a compiled model, beside a rank-one update of a trained model of the same size: which other tokens change?

    python tools/compare_edits.py DATA                     such as examples/harbor.conll, or CoNLL-2003's eng.train
    python tools/compare_edits.py DATA --epochs 20 --program target/release/monolayer

The update is a small version of what ROME does. To give a token a label, its output must move by some d; of all updates of the second
weight matrix that do so, `w2 += d (C^-1 u)^T / (u^T C^-1 u)` disturbs the others least in the mean over the data, where u are the token's
hidden units and C is their second moment over all tokens. ROME itself edits large language models, in a layer that it locates first.
Needs numpy, and the package or the program.
"""

import argparse
import json
import random
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

import reference


def run(program, *arguments):
    """What a command prints as JSON; exit code 1 says that something falls short, which the caller looks at."""
    done = subprocess.run([*program, *map(str, arguments), "--json", "-q"], stdout=subprocess.PIPE, text=True, encoding="utf-8")
    if done.returncode > 1:
        sys.exit(f"monolayer {arguments[0]} failed: {done.stdout}")
    return json.loads(done.stdout)


def choose(rows, labels, impossible, count, seed):
    """Random tokens, each with another label than it has."""
    draw = random.Random(seed)
    tokens = [(s, t) for s, (words, given) in enumerate(rows) for t in range(len(words)) if given[t] is not None]
    chosen = draw.sample([token for token in tokens if token not in impossible], count)
    return [(s, t, draw.choice([label for label in labels if label != rows[s][1][t]])) for s, t in chosen]


class Sentences:
    """The tokens of the data, one after another; those of equal sequences at the same place are one context."""

    def __init__(self, rows):
        self.rows, self.start, self.equal = rows, np.cumsum([0] + [len(words) for words, _ in rows]), {}
        for s, (words, _) in enumerate(rows):
            self.equal.setdefault(tuple(words), []).append(s)

    def others(self, before, after, s, t):
        """How many tokens of other contexts have another label than before."""
        same = [self.start[a] + t for a in self.equal[tuple(self.rows[s][0])]]
        return int((np.delete(before, same) != np.delete(after, same)).sum())


def compiled_edits(program, model, data, sentences, edits, folder):
    """For each edit, whether the token has its new label, and how many others changed; and how many edits a checker verified."""
    label = lambda directory: np.array([label for row in run(program, "predict", directory, data)["labels"] for label in row])
    before, results, verified = label(model), [], 0
    for i, (s, t, to) in enumerate(edits):
        out, one = folder / f"edited{i}", folder / f"edit{i}.jsonl"
        one.write_text(json.dumps({"tokens": sentences.rows[s][0], "place": t, "label": to}) + "\n", encoding="utf-8")
        if run(program, "edit", model, "--edits", one, "--data", data, "--out", out)["refused"]:
            results.append(None)
            continue
        after = label(out)
        results.append((after[sentences.start[s] + t] == to, sentences.others(before, after, s, t)))
        verified += run(program, "verify", out, "--against", model)["verdict"] == "verified"
    return results, verified


class Trained:
    """A trained model of one layer: its tokens behind attention, their hidden units, and their labels."""

    def __init__(self, directory, rows):
        model = reference.read_model(str(directory))
        self.labels, self.w = model["config"]["labels"], {k.split("layers.0.")[-1]: x for k, x in model["tensors"].items()}
        ids = {word: i for i, word in enumerate(model["vocabulary"])}
        parts = [self.hidden([ids[word] for word in words]) for words, _ in rows]
        self.h, self.u = (np.concatenate(part) for part in zip(*parts))
        self.w2 = self.w["feed_forward.w2"]
        second = (self.u.T @ self.u).astype(float) / len(self.u)
        self.second = second + 1e-4 * np.eye(len(second)) * (second.trace() / len(second))

    def hidden(self, rows):
        w = self.w
        x = w["embedding.weight"][rows]
        x = x + w["positions.weight"][: len(x)] if "positions.weight" in w else x
        scores = (x @ w["attention.w_q"][0].T) @ (x @ w["attention.w_k"][0].T).T
        weights = np.exp(scores - scores.max(axis=1, keepdims=True))
        weights /= weights.sum(axis=1, keepdims=True)
        h = x + weights @ (x @ w["attention.w_v"][0].T) @ w["attention.w_o"][0].T
        return h, np.maximum(h @ w["feed_forward.w1"].T + w["feed_forward.b1"], 0)

    def given(self, change=None):
        """The labels; with a change of w2 by an outer product of two vectors."""
        y = self.h + self.u @ self.w2.T + self.w["feed_forward.b2"]
        if change is not None:
            y = y + np.outer(self.u @ change[1], change[0])
        return (y @ self.w["head.weight"].T + self.w["head.bias"]).argmax(axis=1)

    def edit(self, i, label):
        """The labels after the update that gives token i a label."""
        y = self.h[i] + self.w2 @ self.u[i] + self.w["feed_forward.b2"]
        key = np.linalg.solve(self.second, self.u[i].astype(float))
        return self.given((self.moved(y, label) - y, key / (key @ self.u[i])))

    def moved(self, y, label, margin=1.0):
        """An output moved, as little as needed, until the label leads by the margin."""
        y, head = y.astype(float), self.w["head.weight"].astype(float)
        for _ in range(1000):
            scores = head @ y + self.w["head.bias"]
            others = np.where(np.arange(len(scores)) == label, -np.inf, scores)
            rival = others.argmax()
            if scores[label] >= scores[rival] + margin * 0.999:
                break
            a = head[label] - head[rival]
            y = y + a * (scores[rival] + margin - scores[label]) / (a @ a)
        return y


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("data")
    parser.add_argument("--program", help="the program; by default that of the Python package")
    parser.add_argument("--edits", type=int, default=10)
    parser.add_argument("--epochs", type=int, default=None, help="of training; by default 200 for small data, 20 for large")
    parser.add_argument("--seed", type=int, default=1)
    args = parser.parse_args()
    program = [args.program] if args.program else [sys.executable, "-m", "monolayer"]
    rows = reference.read_data(args.data)
    sentences = Sentences(rows)
    tokens = int(sentences.start[-1])
    epochs = args.epochs or (200 if tokens < 10_000 else 20)
    with tempfile.TemporaryDirectory(prefix="monolayer-") as name:
        folder = Path(name)
        compiled = run(program, "memorize", args.data, "--out", folder / "model", "--unchecked")
        impossible = {(c["sequence"] - 1, c["token"] - 1) for c in compiled["conflicts"]}
        labels = reference.read_model(str(folder / "model"))["config"]["labels"]
        edits = choose(rows, labels, impossible, args.edits, args.seed)
        ours, verified = compiled_edits(program, folder / "model", args.data, sentences, edits, folder)
        made = [result for result in ours if result is not None]
        print(f"compiled, {compiled['hidden']} hidden units, {compiled['memorized']} of {tokens} tokens right: {len(made)} of {len(edits)} edits "
              f"made, {verified} verified, {sum(right for right, _ in made)} tokens have their new label; other tokens changed: "
              f"{[n for _, n in made]}", flush=True)
        options = ["--hidden", max(64, compiled["hidden"]), "--epochs", epochs, "--seed", args.seed]
        run(program, "train", args.data, "--out", folder / "trained", *options)
        trained = Trained(folder / "trained", rows)
        old = trained.given()
        wanted = [label for _, given in rows for label in given]
        right = sum(trained.labels[got] == label for got, label in zip(old, wanted))
        results = []
        for s, t, label in edits:
            i, to = int(sentences.start[s]) + t, trained.labels.index(label)
            new = trained.edit(i, to)
            results.append((new[i] == to, sentences.others(old, new, s, t)))
        print(f"trained, {options[1]} hidden units, {epochs} epochs, {right} of {tokens} tokens right: "
              f"{sum(right for right, _ in results)} tokens have their new label; other tokens changed: {[n for _, n in results]}")


if __name__ == "__main__":
    main()
