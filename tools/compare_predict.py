"""Compares `monolayer predict` with the numpy reference on random models.

    python tools/compare_predict.py target/release/monolayer --models 50 --seed 1

Outputs: largest difference over largest output, per sequence, at most 1e-5 (f32 models) or 1e-12 (f64), against the
reference evaluated in f64. Labels: equal wherever the two best scores are further apart than that. A hardmax layer is
discontinuous where two different scores nearly tie, so sequences with such a near tie are skipped, and counted.
Exit code 0: all agree; 1: some differ; 2: it could not run, or skipped more than it compared.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile

import numpy as np

import random_model
import reference

TOLERANCE = {"f32": 1e-5, "f64": 1e-12}


class Mismatch(Exception):
    """What differs, and where."""


def predict(binary, directory, data):
    """The JSON object that `monolayer predict` prints."""
    command = [binary, "predict", directory, data, "--json"]
    done = subprocess.run(command, capture_output=True, text=True, encoding="utf-8")
    if done.returncode != 0:
        raise Mismatch(f"exit code {done.returncode}: {(done.stdout + done.stderr).strip()[:300]}")
    try:
        return json.loads(done.stdout)
    except json.JSONDecodeError as error:
        raise Mismatch(f"not one JSON object on standard output ({error}): {done.stdout[:200]!r}") from None


def compare_outputs(got, expected, tolerance, tally):
    """Outputs of one sequence; numbers that are not finite never agree."""
    got = np.array(got, np.float64)
    if got.shape != expected.shape:
        raise Mismatch(f"outputs of shape {got.shape}, not {expected.shape}")
    error = float(np.abs(got - expected).max() / np.abs(expected).max())
    tally["error"] = max(tally["error"], error)
    if not error <= tolerance:
        raise Mismatch(f"error {error:.2e}")


def compare_labels(model, got, scores, tolerance, tally):
    """Labels of one sequence, where the reference's own margin is clear."""
    expected = reference.labels_of(model, scores)
    if len(got) != len(expected):
        raise Mismatch(f"{len(got)} labels for {len(expected)} tokens")
    best = np.sort(scores, axis=-1)
    clear = best[:, -1] - best[:, -2] > tolerance * np.abs(scores).max()
    tally["unclear"] += int((~clear).sum())
    for t in np.flatnonzero(clear):
        if got[t] != expected[t]:
            raise Mismatch(f"token {t + 1} is {got[t]!r}, not {expected[t]!r}")


def compare_model(binary, directory, data, tally):
    """One model; raises Mismatch."""
    model = reference.read_model(directory, "f64")
    tolerance = TOLERANCE[model["config"]["dtype"]]
    sequences = reference.read_data(data)
    gaps = []
    truth = reference.run(model, [tokens for tokens, _ in sequences], gaps=gaps)
    report = predict(binary, directory, data)
    kind = "outputs" if model["config"]["labels"] is None else "labels"
    if len(report.get(kind, [])) != len(truth):
        raise Mismatch(f"{len(report.get(kind, []))} {kind} for {len(truth)} sequences")
    for i, (got, expected, gap) in enumerate(zip(report[kind], truth, gaps)):
        tally["sequences"] += 1
        if gap <= 10 * tolerance:
            tally["near_ties"] += 1
            continue
        try:
            if kind == "outputs":
                compare_outputs(got, expected, tolerance, tally)
            else:
                compare_labels(model, got, expected, tolerance, tally)
        except Mismatch as mismatch:
            raise Mismatch(f"sequence {i + 1} of {len(expected)} tokens: {mismatch}") from None
    if kind == "labels":
        compare_accuracy(model, report, sequences)


def compare_accuracy(model, report, sequences):
    """The accuracy that the program reports is that of the labels it gives."""
    if any(labels is None for _, labels in sequences):
        return
    pairs = [pair for got, (_, labels) in zip(report["labels"], sequences) for pair in zip(got, labels)]
    accuracy = sum(got == label for got, label in pairs) / len(pairs)
    if not abs(report.get("accuracy", np.nan) - accuracy) <= 1e-6:
        raise Mismatch(f"accuracy {report.get('accuracy')}, but its labels give {accuracy}")


def describe(config, data):
    """What a model is made of, in a few letters."""
    layers = []
    for layer in config["layers"]:
        a = layer["attention"]
        mask = "none" if a is None else a["mask"]
        causal = "" if mask == "none" else mask[0] if isinstance(mask, str) else next(iter(mask))[0]
        name = "-" if a is None else f"{a['kind'][0]}{a['heads']}x{a['head_size']}{causal}"
        layers.append(f"{name}/{layer['hidden']}")
    pre = f"ff{config['pre_feed_forward']['hidden']} " if config["pre_feed_forward"] else ""
    kind = "outputs" if config["labels"] is None else "labels"
    positions = "pos" if config["max_length"] is not None else ""
    positions += "+s" if config.get("start") is not None else ""
    file = os.path.basename(data)
    return f"{config['dtype']} {kind:7} {file:16} d={config['d']:<2} {positions:5} {pre}{' '.join(layers)}"


def compare_seed(binary, directory, seed, tally):
    """Makes the model of a seed and compares; gives its verdict and description."""
    data = random_model.make(directory, seed)
    with open(os.path.join(directory, "config.json"), encoding="utf-8") as file:
        config = json.load(file)
    try:
        compare_model(binary, directory, data, tally)
        return config, "ok", describe(config, data)
    except Mismatch as mismatch:
        return config, "FAILED", f"{describe(config, data)}\n      {mismatch}"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("binary", help="path of the monolayer program")
    parser.add_argument("--models", type=int, default=20, metavar="N")
    parser.add_argument(
        "--seed", type=int, default=0, metavar="S", help="model i is that of random_model.py --seed 1000 S + i"
    )
    args = parser.parse_args()
    if not os.access(args.binary, os.X_OK):
        print(f"{args.binary} is not a program", file=sys.stderr)
        return 2

    failures = near_ties = compared = 0
    worst = {"f32": 0.0, "f64": 0.0}
    print("  seed verdict  error    skipped  (s softmax, h hardmax, heads x head size, c causal / hidden units)")
    for seed in range(1000 * args.seed, 1000 * args.seed + args.models):
        tally = {"sequences": 0, "near_ties": 0, "unclear": 0, "error": 0.0}
        with tempfile.TemporaryDirectory() as directory:
            config, verdict, text = compare_seed(os.path.abspath(args.binary), directory, seed, tally)
        failures += verdict != "ok"
        worst[config["dtype"]] = max(worst[config["dtype"]], tally["error"])
        near_ties += tally["near_ties"]
        compared += tally["sequences"] - tally["near_ties"]
        error = f"{tally['error']:.1e}" if config["labels"] is None else "      -"
        skipped = f"{tally['near_ties']}s {tally['unclear']}t"  # sequences with a near tie, tokens with a small margin
        print(f"{seed:6} {verdict:7}  {error}  {skipped:7}  {text}", flush=True)
    print(
        f"{failures} of {args.models} models failed; largest error {worst['f32']:.1e} (f32), {worst['f64']:.1e} (f64);"
    )
    print(f"{compared} sequences compared, {near_ties} skipped for a near tie of hardmax scores")
    if failures:
        return 1
    return 0 if compared > near_ties else 2


if __name__ == "__main__":
    sys.exit(main())
