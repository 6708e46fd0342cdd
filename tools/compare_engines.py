"""One compiled model in every program that runs it: the same labels from Rust, PyTorch, onnxruntime and TransformerLens.

    python tools/compare_engines.py DATA [--batch 1 32] [--threads 1 2]

DATA is memorized, in f32 where that is proved. Each engine gives every token a label; what differs from Rust is listed, token by
token. Engines add up in different orders, and with padding in yet another one: a certificate covers all of them. An engine that
is not installed is left out, and said. Exit code 1 if a label differs. Needs the package, and what tools/python-extras installs.
"""
import argparse
import contextlib
import importlib.util
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np

import monolayer

NEEDS = {"PyTorch": "torch", "onnxruntime": "onnxruntime", "TransformerLens": "transformer_lens"}
Predict = Callable[[list], list]


def missing() -> list[str]:
    """The engines that are not installed."""
    return [name for name, module in NEEDS.items() if importlib.util.find_spec(module) is None]


def engines(model: monolayer.Model, threads: list[int]) -> Iterator[tuple[str, Predict]]:
    """Each engine with each number of threads: its name, and a function from sequences to their labels."""
    absent = missing()
    if "PyTorch" not in absent:
        import torch

        module = model.to_torch()
        for count in threads:
            torch.set_num_threads(count)
            yield f"PyTorch, {count} thread{'s' * (count > 1)}", module.predict
    if "onnxruntime" not in absent:
        for count in threads:
            yield f"onnxruntime, {count} thread{'s' * (count > 1)}", onnx_predict(model, count)
    if "TransformerLens" not in absent:
        from monolayer import lens

        bridge = model.to_lens()
        yield "TransformerLens", lambda batch: lens.predict(bridge, batch)


def onnx_predict(model: monolayer.Model, threads: int) -> Predict:
    """The ONNX file of a model in onnxruntime."""
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    with tempfile.TemporaryDirectory() as folder:
        session = onnxruntime.InferenceSession(str(model.to_onnx(Path(folder, "model.onnx"))), options)
    ids, names = {word: i for i, word in enumerate(model.words)}, model.labels

    def predict(batch: list) -> list:
        inputs = np.zeros((2, len(batch), max(map(len, batch))), dtype=np.int64)
        for i, sequence in enumerate(batch):
            inputs[0, i, : len(sequence)], inputs[1, i, : len(sequence)] = [ids[word] for word in sequence], 1
        (scores,) = session.run(["logits"], {"input_ids": inputs[0], "attention_mask": inputs[1]})
        return [[names[k] for k in row[: len(sequence)].argmax(-1)] for row, sequence in zip(scores, batch)]

    return predict


def compare(model: monolayer.Model, data: monolayer.Dataset, batches: list[int], threads: list[int]) -> dict[str, dict]:
    """For each engine and size of batches: tokens right, seconds, and (sequence, token, its label, Rust's) where they differ."""
    rows = [([str(token) for token in tokens], labels) for tokens, labels in data]
    sequences, truth = [tokens for tokens, _ in rows], [labels for _, labels in rows]
    wanted = model.predict(sequences)
    right = lambda found: sum(a == b for xs, ys in zip(found, truth) for a, b in zip(xs, ys) if b is not None)
    results = {"Rust": {"right": right(wanted), "seconds": None, "differ": []}}
    for name, predict in engines(model, threads):
        for size in batches:
            start = time.perf_counter()
            found = [labels for i in range(0, len(sequences), size) for labels in predict(sequences[i : i + size])]
            differ = [
                (s, t, a, b)
                for s, (mine, rust) in enumerate(zip(found, wanted, strict=True))
                for t, (a, b) in enumerate(zip(mine, rust, strict=True))
                if a != b
            ]
            results[f"{name}, batches of {size}"] = {"right": right(found), "seconds": time.perf_counter() - start, "differ": differ}
    return results


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data")
    parser.add_argument("--batch", type=int, nargs="+", default=[1, 32])
    parser.add_argument("--threads", type=int, nargs="+", default=[1, 2])
    options = parser.parse_args()
    data = monolayer.read(options.data)
    model = monolayer.memorize(data)
    print(f"{data}: {model}")
    results = compare(model, data, options.batch, options.threads)
    for name, result in results.items():
        took = "" if result["seconds"] is None else f"{result['seconds']:8.1f} s"
        print(f"{name:40} {result['right']:9,} right, {len(result['differ'])} differ from Rust {took}")
        for s, t, mine, rust in result["differ"]:
            print(f"    sequence {s + 1}, token {t + 1}: {mine}, Rust {rust}")
    for name in missing():
        print(f"SKIPPED: {name} is not installed: tools/python-extras")
    return int(any(result["differ"] for result in results.values()))


if __name__ == "__main__":
    with contextlib.suppress(BrokenPipeError):
        sys.exit(main())
