"""Measures the machine's f32 matrix product, in GFLOP/s: large squares, and the shapes of the training job.

    python gemm_peak.py --threads 1 2          one JSON line, for each number of threads
"""

import argparse
import json
import time

import torch

from common import Others

# A batch of 32 sentences of CoNLL-2003 has about 464 tokens.
SHAPES = {
    "square": (2048, 2048, 2048),
    "widen": (464, 256, 64),
    "narrow": (464, 64, 256),
    "gradient_of_w1": (256, 64, 464),
    "project": (464, 2, 64),
    "head": (464, 8, 64),
}


def gigaflops(m, n, k, rounds=8):
    """The best of several rounds of about 4e9 operations each."""
    a, b, out = torch.randn(m, k), torch.randn(k, n), torch.empty(m, n)
    flops = 2 * m * n * k
    repeats = min(max(3, round(4e9 / flops)), 20_000)
    torch.mm(a, b, out=out)
    best = float("inf")
    for _ in range(rounds):
        start = time.perf_counter()
        for _ in range(repeats):
            torch.mm(a, b, out=out)
        best = min(best, (time.perf_counter() - start) / repeats)
    return round(flops / best / 1e9, 1)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--threads", type=int, nargs="+", default=[1])
    args = parser.parse_args()
    others, results = Others(), {}
    for threads in args.threads:
        torch.set_num_threads(threads)
        results[str(threads)] = {name: gigaflops(*shape) for name, shape in SHAPES.items()}
    print(json.dumps({"torch": torch.__version__, "gflops_by_threads": results, "others_cores": others.cores()}))


if __name__ == "__main__":
    main()
