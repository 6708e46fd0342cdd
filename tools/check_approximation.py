"""A compiled function in plain numpy: cells, permuted sequences, other orders of summation, sequences outside the cube.

    python tools/check_approximation.py MODEL [MOST]

Reads the cells and levels from the hints of certificate.json and runs the model with tools/reference.py: at the center of (at
most MOST) cells, and for some of them elsewhere in the cell and permuted; then outside the cube. Ends with 1 if an output is
more than 1e-6 from its level, or outside from 0.
"""

import json
import os
import sys

import numpy as np

import reference

TOLERANCE = 1e-6
SOME = 1000


def main():
    directory = sys.argv[1]
    most = int(sys.argv[2]) if len(sys.argv) > 2 else 10_000
    model = reference.read_model(directory)
    with open(os.path.join(directory, "certificate.json"), encoding="utf-8") as file:
        hints = json.load(file)["hints"]
    edges = [np.array(e) for e in hints["edges"]]
    n, d, ramp = hints["length"], len(edges), hints["ramp"]
    rng = np.random.default_rng(0)
    run = lambda sequences, seed=None: np.array(reference.run(model, sequences, batch=256, seed=seed))

    def box(cell):
        """Lower and upper ends of a token's cell; coordinate 0 varies slowest."""
        low, high = [], []
        for e in reversed(edges):
            part = cell % (len(e) - 1)
            cell //= len(e) - 1
            low.append(e[part])
            high.append(e[part + 1])
        return np.array(low[::-1]), np.array(high[::-1])

    rows = hints["ids"]
    rows = [rows[i] for i in rng.permutation(len(rows))[:most]]
    boxes = [[box(cell) for cell in cells] for _, _, cells, _ in rows]
    centers = [np.array([(low + high) / 2 for low, high in tokens]) for tokens in boxes]
    free = lambda low, high: low + ramp + rng.random(d) * (high - low - 2 * ramp)
    elsewhere = [np.array([free(low, high) for low, high in tokens]) for tokens in boxes[:SOME]]
    levels = np.array([level for _, _, _, level in rows])
    own = np.array([token for _, token, _, _ in rows])
    at = np.arange(len(rows))

    outputs = run(centers)
    errors = {
        "centers": np.abs(outputs[at, own] - levels).max(),
        "elsewhere in cells": np.abs(run(elsewhere)[at[:SOME], own[:SOME]] - levels[:SOME]).max(),
        "in a random order": np.abs(run(centers[:30], seed=1) - outputs[:30]).max(),
    }
    if model["config"]["max_length"] is None:
        orders = [rng.permutation(n) for _ in rows[:SOME]]
        permuted = run([x[order] for x, order in zip(centers, orders)])
        errors["permuted"] = max(np.abs(y - x[order]).max() for x, y, order in zip(outputs, permuted, orders))
        # One coordinate outside by two ramps or more; in every other sequence the rest may be anywhere, too.
        outside = rng.random((SOME, n, d))
        outside[::2] = rng.choice([-1, 1], outside[::2].shape) * 10 ** rng.uniform(-12, 6, outside[::2].shape)
        for x in outside:
            far = 10 ** rng.uniform(np.log10(2.001 * ramp), 5.999)
            x[rng.integers(n), rng.integers(d)] = 1 + far if rng.random() < 0.5 else -far
        errors["outside"] = np.abs(run(list(outside))).max()
    print(f"{len(rows)} cells of {len(hints['ids'])}")
    for name, error in errors.items():
        print(f"{name}: {error:.1e}")
    return 0 if max(errors.values()) <= TOLERANCE else 1


if __name__ == "__main__":
    sys.exit(main())
