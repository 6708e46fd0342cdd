"""Edits: outputs differ nowhere but where difference.json says so, in numpy and in PyTorch, in many orders of summation.

Sequences are random ones over the vocabulary, and such that an adversary found: the edited word at the edited place, and a context id
as near as possible to an end of an interval. Each runs in one of 20 orders; with MONOLAYER_EVERY_ORDER=1 in all of them, which takes
minutes.
"""
import copy
import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import monolayer

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tools"))
import reference

RANDOM, ORDERS = 10_000, 20
EVERY_ORDER = os.environ.get("MONOLAYER_EVERY_ORDER") == "1"
EDITS = ["May sails in May .:1=DATE", "May sails in May .:4=PER", "Hope left the harbor in June .:1=PER", "May sails in June .:1=BOAT"]


class Locality:
    """A model, the same after edits, what is stated of the two, and sequences (rows of words) by their length."""

    def __init__(self, model, edited):
        self.models = model, edited  # their directories live as long as they do
        self.directories = model.directory, edited.directory
        self.old, self.new = (reference.read_model(str(directory)) for directory in self.directories)
        config = self.old["config"]
        assert config["dtype"] == "f32" and config["start"] is None and config["layers"][0]["attention"]["mask"] == "none"
        # Shapes are the same, so that both are added up in the same order.
        assert config["layers"] == self.new["config"]["layers"]
        self.words, self.places, self.labels = self.old["vocabulary"], config["max_length"], config["labels"]
        row = {word: i for i, word in enumerate(self.words)}
        self.changes = {}
        for change in json.loads((edited.directory / "difference.json").read_text(encoding="utf-8"))["changes"]:
            self.changes.setdefault((row[change["word"]], change["place"]), []).append(change)

    def random(self, count, seed=0):
        rng = np.random.default_rng(seed)
        lengths = rng.integers(1, self.places + 1, count)
        return [rng.integers(0, len(self.words), (int((lengths == n).sum()), n)) for n in range(1, self.places + 1)]

    def ids(self, sequences, place):
        """What the head reads at a place, for sequences of one length, in f64: near what programs compute."""
        w_q, w_k, w_v = (self.old["tensors"][f"layers.0.attention.{name}"][0, 0].astype(float) for name in ("w_q", "w_k", "w_v"))
        embedding, positions = (self.old["tensors"][name].astype(float) for name in ("embedding.weight", "positions.weight"))
        part = lambda w: (embedding @ w)[sequences] + (positions @ w)[: sequences.shape[-1]]
        scores = part(w_q)[..., place, None] * part(w_k)
        weights = np.exp(scores - scores.max(-1, keepdims=True))
        return (weights * part(w_v)).sum(-1) / weights.sum(-1)

    def climb(self, word, place, target, rng):
        """Sequences with the word at the place whose ids come nearer and nearer to the target, as two of their words are exchanged at a
        time; and the least distance."""
        n = int(rng.integers(max(place + 1, 3), self.places + 1))
        best = rng.integers(0, len(self.words), n)
        best[place] = word
        met, distance = [best], abs(self.ids(best[None], place)[0] - target)
        both = np.stack(np.meshgrid(*[np.arange(len(self.words))] * 2), -1).reshape(-1, 2)
        for _ in range(8):
            tries = np.repeat(best[None], len(both), 0)
            tries[:, rng.choice([k for k in range(n) if k != place], 2, replace=False)] = both
            far = abs(self.ids(tries, place) - target)
            near = far.argsort()[:4]
            met += list(tries[near])
            if far[near[0]] < distance:
                best, distance = tries[near[0]], far[near[0]]
        return met, distance

    def adversarial(self, climbs=6, seed=1):
        """Sequences near the ends of all intervals; and the least distance from each end over the width of its interval."""
        rng, found, nearest = np.random.default_rng(seed), {}, []
        for (word, place), changes in self.changes.items():
            for change in changes:
                width = change["id"][1] - change["id"][0]
                # Both ends, and the middle.
                for target in [*change["id"], sum(change["id"]) / 2]:
                    runs = [self.climb(word, place, target, rng) for _ in range(climbs)]
                    nearest.append(min(distance for _, distance in runs) / width)
                    for sequence in (sequence for met, _ in runs for sequence in met):
                        found.setdefault(len(sequence), []).append(sequence)
        return [np.unique(np.array(rows), axis=0) for _, rows in sorted(found.items())], nearest

    def check(self, run, batches, orders=ORDERS):
        """Runs each batch (in parts, in one order each, or in every order) in both models; how many labels changed. `run` gives ids and
        scores of a model in an order."""
        changed = 0
        for batch in batches:
            for order in range(orders):
                part = batch if EVERY_ORDER else batch[order::orders]
                if len(part):
                    (ids, a), (same, b) = run(self.old, part, order), run(self.new, part, order)
                    assert np.array_equal(ids, same)
                    changed += self.compare(part, ids, a, b)
        return changed

    def compare(self, sequences, ids, a, b):
        places = np.broadcast_to(np.arange(sequences.shape[1]), sequences.shape)
        named = np.zeros(sequences.shape, bool)
        for word, place in self.changes:
            named |= (sequences == word) & (places == place)
        # Equal numbers; -0 is 0.
        assert (a == b).all(-1)[~named].all()
        before, after = a.argmax(-1), b.argmax(-1)
        differs = np.argwhere(before != after)
        for i, k in differs:
            change = (float(ids[i, k]), self.labels[before[i, k]], self.labels[after[i, k]])
            assert any(allows(stated, *change) for stated in self.changes[int(sequences[i, k]), int(k)]), (sequences[i], k, change)
        return len(differs)


def allows(change, id, before, after):
    return change["id"][0] <= id <= change["id"][1] and change["from"] in (None, before) and change["to"] in (None, after)


def in_numpy(model, sequences, order):
    """Ids and scores by the reference implementation, every sum in a random order."""
    sums, tensors = reference.Sums(seed=order), model["tensors"]
    x = tensors["embedding.weight"][sequences] + tensors["positions.weight"][: sequences.shape[1]]
    attention, block = "layers.0.attention", "layers.0.feed_forward"
    weights = reference.tensors_of(model, attention, "w_q", "w_k", "w_v", "w_o")
    z = reference.attention(x, np.ones((1, 1, 1), bool), "softmax", *weights, sums)
    (column,) = np.flatnonzero(tensors[f"{attention}.w_o"][0, :, 0])
    assert not x[..., column].any()
    hidden = reference.feed_forward(z, *reference.tensors_of(model, block, "w1", "b1", "w2", "b2"), sums)
    return z[..., column], sums.product(hidden, tensors["head.weight"].T) + tensors["head.bias"]


@pytest.fixture(scope="module")
def locality():
    model = monolayer.memorize(monolayer.read(ROOT / "examples" / "harbor.conll"), precision="f32")
    return Locality(model, model.edit(EDITS))


def test_numpy(locality):
    random = locality.random(RANDOM)
    assert sum(map(len, random)) == RANDOM
    locality.check(in_numpy, random)
    sequences, nearest = locality.adversarial()
    # The adversary comes near: within the width of an interval everywhere, and mostly far nearer.
    assert max(nearest) < 1 and np.median(nearest) < 0.05, nearest
    assert locality.check(in_numpy, sequences) > 0


def test_torch(locality):
    torch = pytest.importorskip("torch", reason="PyTorch is not installed: tools/python-extras")
    import monolayer.torch

    modules = {}
    for model, directory in zip((locality.old, locality.new), locality.directories):
        for order in range(ORDERS):
            modules[id(model), order] = permuted(torch, monolayer.torch.load(directory), order)

    @torch.no_grad()
    def run(model, sequences, order):
        module, read = modules[id(model), order], []
        hook = module.layers[0]["attention"].context.register_forward_hook(lambda _, inputs, out: read.append(out))
        scores = module(torch.as_tensor(sequences))
        hook.remove()
        return read[0][:, 0, :, 0].numpy(), scores.numpy()

    locality.check(run, locality.random(RANDOM))
    sequences, _ = locality.adversarial()
    assert locality.check(run, sequences) > 0


def permuted(torch, module, order):
    """The same function with coordinates and hidden units in another order, so that PyTorch adds up in another order."""
    rng = np.random.default_rng(order)
    attention, block = module.layers[0]["attention"], module.layers[0]["feed_forward"]
    d, hidden = (torch.as_tensor(rng.permutation(n)) for n in (module.config["d"], len(block.b1)))
    every = slice(None)
    for parameter, index in [
        *((part.weight, (every, d)) for part in (module.embedding, module.positions, module.head)),
        *((weight, (every, every, d)) for weight in (attention.w_q, attention.w_k, attention.w_v)),
        (attention.w_o, (every, d)),
        (block.w1, (hidden[:, None], d)),
        (block.b1, (hidden,)),
        (block.w2, (d[:, None], hidden)),
        (block.b2, (d,)),
    ]:
        parameter.data = parameter.data[index]
    return module


def test_a_change_left_out_is_found(locality):
    """The tests above can fail: without what is stated, the same sequences show a difference."""
    sequences, _ = locality.adversarial(climbs=2)
    silent = copy.copy(locality)
    for silent.changes in ({}, {pair: [] for pair in locality.changes}):
        with pytest.raises(AssertionError):
            silent.check(in_numpy, sequences)


def test_beside_a_rank_one_update():
    """The comparison of docs/edit.md runs, here on a small corpus: compiled edits change no other token."""
    program = [sys.executable, ROOT / "tools" / "compare_edits.py", ROOT / "examples" / "harbor.conll", "--epochs", "20"]
    compiled, trained = subprocess.run(program, stdout=subprocess.PIPE, text=True, check=True).stdout.splitlines()
    assert "10 of 10 edits made, 10 verified, 10 tokens have their new label" in compiled
    assert json.loads(compiled.split(": ")[-1]) == [0] * 10
    assert sum(json.loads(trained.split(": ")[-1])) > 0
