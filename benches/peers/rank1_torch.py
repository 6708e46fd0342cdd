"""Rank-1 attention in PyTorch on given numbers, and KeOps where it is installed.

    python rank1_torch.py DIR --tokens N --dtype f32 [--causal] [--backward] [--threads T]

DIR holds keys.bin, values.bin, queries.bin, upstream.bin and, to be compared, out.bin, dk.bin, dv.bin, dy.bin: raw numbers of
the type. One JSON line: `seconds`, the fastest way; `ways`, each with its seconds; `error`, the largest distance of out.bin from
PyTorch's in double precision over the largest value; `gradient_error`, the same of the gradients, over the largest entry of
each. Errors are null where the scores would take too much memory.
"""

import argparse
import json
import pathlib
import time

import numpy as np
import torch
from torch.nn.functional import scaled_dot_product_attention as sdpa

LARGEST_NAIVE = 8192
# Beyond this KeOps takes many times as long on processors as PyTorch.
LARGEST_KEOPS = 16384


def by_sdpa(k, v, y, causal):
    k, v, y = (x.view(1, 1, -1, 1) for x in (k, v, y))
    return sdpa(y, k, v, scale=1.0, is_causal=causal).flatten()


def naive(k, v, y, causal):
    scores = torch.outer(y, k)
    if causal:
        scores = scores.masked_fill(torch.ones_like(scores, dtype=torch.bool).triu(1), -torch.inf)
    return torch.softmax(scores, dim=-1) @ v


def by_keops(k, v, y, causal):
    from pykeops.torch import LazyTensor

    score = LazyTensor(y[:, None, None]) * LazyTensor(k[None, :, None])
    return score.sumsoftmaxweight(LazyTensor(v[None, :, None].contiguous()), axis=1).flatten()


def best_seconds(way, inputs, upstream, causal, backward, budget):
    best, spent, runs = float("inf"), 0.0, 0
    while runs < 2 or (spent < budget and runs < 2000):
        for x in inputs:
            x.grad = None
        start = time.perf_counter()
        with torch.set_grad_enabled(backward):
            out = way(*inputs, causal)
            if backward:
                out.backward(upstream)
        took = time.perf_counter() - start
        best, spent, runs = min(best, took), spent + took, runs + 1
    return best


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("dir", type=pathlib.Path)
    parser.add_argument("--tokens", type=int, required=True)
    parser.add_argument("--dtype", choices=["f32", "f64"], default="f32")
    parser.add_argument("--causal", action="store_true")
    parser.add_argument("--backward", action="store_true")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--budget", type=float, default=0.5, help="seconds per measurement")
    args = parser.parse_args()
    torch.set_num_threads(args.threads)
    kind = np.float32 if args.dtype == "f32" else np.float64

    def load(name):
        return torch.from_numpy(np.fromfile(args.dir / f"{name}.bin", dtype=kind))

    inputs = [load(name).requires_grad_() for name in ("keys", "values", "queries")]
    upstream, ways = load("upstream"), {}
    candidates = {"sdpa": by_sdpa}
    if args.tokens <= LARGEST_NAIVE:
        candidates["naive"] = naive
    try:
        import pykeops  # noqa: F401

        if not args.causal and args.tokens <= LARGEST_KEOPS:
            candidates["keops"] = by_keops
    except ImportError:
        pass
    for name, way in candidates.items():
        ways[name] = best_seconds(way, inputs, upstream, args.causal, args.backward, args.budget)
    error, gradient_error = None, None
    if args.tokens <= LARGEST_NAIVE:
        exact = [x.detach().double().requires_grad_() for x in inputs]
        out = naive(*exact, args.causal)
        error = ((out - load("out").double()).abs().max() / exact[1].abs().max()).item()
        if args.backward:
            out.backward(upstream.double())
            found = [load(name).double() for name in ("dk", "dv", "dy")]
            pairs = [(x.grad, y) for x, y in zip(exact, found)]
            gradient_error = [((a - b).abs().max() / a.abs().max()).item() for a, b in pairs]
    report = {"torch": torch.__version__, "threads": args.threads, "seconds": min(ways.values()), "ways": ways}
    print(json.dumps({**report, "error": error, "gradient_error": gradient_error}))


if __name__ == "__main__":
    main()
