"""Writes the fixtures of crates/monolayer/tests: small random models, inputs, and what PyTorch makes of them in f64.

    python python/make_fixtures.py [--out DIR] [--seed 0]

expected.json has "outputs", what the model gives before the arg max, [n, labels] or [n, d] for each sequence, and
"labels" where the model has a head. The same seed writes the same bytes, given the versions of numpy and PyTorch and
the kind of processor (on another, the last digits of expected.json may differ). Needs PyTorch and the package (`pip install .`).
"""

import argparse
import json
import shutil
import sys
from pathlib import Path

import torch

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "tools"))
import monolayer.torch
import random_model
import reference


def layer(kind="softmax", heads=1, head_size=1, mask="none", hidden=8):
    """One layer; kind None is a feed-forward layer alone."""
    return {"kind": kind, "heads": heads, "head_size": head_size, "mask": mask, "hidden": hidden}


# Everything that is not said here is drawn from the seed.
PLAIN = dict(
    whole_numbers=False, rank_one=False, pre_feed_forward=0, positions=False, unknown_words=False, lengths=[1, 2, 7, 13]
)
WORDS = dict(PLAIN, words=True, labels=4, vocabulary=14, labeled_data=True)
VECTORS = dict(PLAIN, words=False, labels=0, vocabulary=12, labeled_data=False)
FIXTURES = {
    # eq. 20 with positions, as `memorize` writes it
    "rank_one": dict(WORDS, dtype="f32", d=6, positions=True, rank_one=True, layers=[layer(hidden=16)]),
    "unknown_words": dict(
        WORDS, dtype="f64", d=5, unknown_words=True, layers=[layer(heads=2, head_size=3), layer(heads=3, head_size=2)]
    ),
    "causal_vectors": dict(
        VECTORS, dtype="f64", d=4, layers=[layer(heads=h, head_size=4, mask="causal") for h in (1, 2, 4)]
    ),
    # ties between different tokens, exact in any order of summation
    "hardmax_ties": dict(
        WORDS,
        dtype="f32",
        d=3,
        whole_numbers=True,
        lengths=[1, 2, 9, 20],
        layers=[layer("hardmax", heads=3, head_size=2)],
    ),
    "hardmax_causal": dict(
        VECTORS,
        dtype="f64",
        d=3,
        positions=True,
        layers=[layer("hardmax", heads=2, head_size=3, mask="causal"), layer("hardmax")],
    ),
    # eq. 19, as `approximate` writes it
    "approximator": dict(VECTORS, dtype="f64", d=3, pre_feed_forward=20, labeled_data=True, layers=[layer(hidden=24)]),
    # feed-forward alone, attention alone
    "parts_alone": dict(
        VECTORS,
        dtype="f64",
        labels=3,
        d=5,
        layers=[layer(None), layer(heads=4, head_size=8, hidden=0), layer(None, hidden=3)],
    ),
    "long": dict(
        WORDS,
        dtype="f32",
        labels=2,
        d=4,
        positions=True,
        unknown_words=True,
        lengths=[300, 1, 41],
        layers=[layer(mask="causal"), layer(heads=2, head_size=2)],
    ),
}


def rows(tensor):
    """A matrix as lists; JSON keeps every bit of a float."""
    return [[float(x) for x in row] for row in tensor]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=HERE.parent / "crates/monolayer/tests/fixtures")
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args()
    torch.set_num_threads(1)
    for i, (name, choice) in enumerate(FIXTURES.items()):
        directory = args.out / name
        shutil.rmtree(directory, ignore_errors=True)
        data = random_model.make(directory, 100 * args.seed + i, **choice, data="jsonl")
        model = monolayer.torch.load(directory).double()
        sequences = [tokens for tokens, _ in reference.read_data(data)]
        with torch.no_grad():
            expected = {"outputs": [rows(model(*model.encode([tokens]))[0]) for tokens in sequences]}
        if model.labels is not None:
            expected["labels"] = [model.predict(tokens) for tokens in sequences]
        (directory / "expected.json").write_text(json.dumps(expected) + "\n", encoding="utf-8")
        print(f"{directory}: {len(sequences)} sequences")


if __name__ == "__main__":
    main()
