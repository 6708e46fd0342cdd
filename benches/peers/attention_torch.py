"""Times attention in PyTorch, batch 1: rank-1 (eq. 20, scalar keys, queries and values) and full (head size 64).

    python attention_torch.py --threads 2 128 1024 4096 16384 65536

One JSON line: best seconds of the core alone (projections excluded), forward and forward with backward, by scores in
memory ("naive") and by scaled_dot_product_attention ("sdpa"); null where the n x n scores would be too large.
"""

import argparse
import json
import time

import torch
from torch.nn.functional import scaled_dot_product_attention as sdpa

from common import Others

HEAD_SIZE = 64


def rank1_naive(key, query):
    return torch.softmax(torch.outer(query, key), dim=-1) @ key


def rank1_sdpa(key, query):
    k, q = key.view(1, 1, -1, 1), query.view(1, 1, -1, 1)
    return sdpa(q, k, k, scale=1.0).flatten()


def full_naive(q, k, v):
    return torch.softmax(q @ k.T * HEAD_SIZE**-0.5, dim=-1) @ v


def full_sdpa(q, k, v):
    return sdpa(q[None, None], k[None, None], v[None, None])[0, 0]


def best_seconds(function, inputs, backward, budget):
    """The fastest of as many runs as fit the budget of seconds, at least two."""
    best, spent, runs = float("inf"), 0.0, 0
    while runs < 2 or (spent < budget and runs < 200):
        for x in inputs:
            x.grad = None
        start = time.perf_counter()
        with torch.set_grad_enabled(backward):
            out = function(*inputs)
            if backward:
                out.sum().backward()
        took = time.perf_counter() - start
        best, spent, runs = min(best, took), spent + took, runs + 1
    return float(f"{best:.4g}")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("n", type=int, nargs="*", default=[128, 1024, 4096, 16384])
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--budget", type=float, default=1.0, help="seconds per measurement")
    parser.add_argument(
        "--largest-naive", type=int, default=8192, metavar="N", help="scores take 4 N^2 bytes several times over"
    )
    args = parser.parse_args()
    torch.set_num_threads(args.threads)
    torch.manual_seed(0)
    others, results = Others(), {}
    for n in args.n:
        scalars = [torch.randn(n, requires_grad=True) for _ in range(2)]
        vectors = [torch.randn(n, HEAD_SIZE, requires_grad=True) for _ in range(3)]
        row = {}
        for function in (rank1_naive, rank1_sdpa, full_naive, full_sdpa):
            inputs = scalars if function in (rank1_naive, rank1_sdpa) else vectors
            for name, backward in [("forward", False), ("forward_backward", True)]:
                too_large = function.__name__.endswith("naive") and n > args.largest_naive
                seconds = None if too_large else best_seconds(function, inputs, backward, args.budget)
                row[f"{function.__name__}_{name}"] = seconds
        with torch.no_grad():
            exact = rank1_sdpa(*(x.double() for x in scalars))
            error = (rank1_sdpa(*scalars).double() - exact).abs().max() / scalars[0].abs().max()
        row["rank1_sdpa_error"] = float(f"{error.item():.3g}")  # against f64, over the largest value
        results[str(n)] = row
    report = {"torch": torch.__version__, "threads": args.threads, "head_size": HEAD_SIZE, "seconds": results}
    print(json.dumps({**report, "others_cores": others.cores()}))


if __name__ == "__main__":
    main()
