"""What PyTorch's CPU kernels do, beside what a certificate covers: the figures of TRUST.md.

    python tools/measure_torch.py           all figures, about a minute on two cores
    python tools/measure_torch.py exp       one of: settings, exp, subnormals, sums, attention, folded
    python tools/measure_torch.py folded --out DIR    also writes the model whose labels flip, with its data

Needs PyTorch and the package: tools/python-extras, then `pip install .` in that environment.
"""

import argparse
import json
import math
import platform
import struct
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import torch
import torch.nn.functional as F

import grammar_parts
import monolayer.torch

UNIT = {torch.float32: 2.0**-24, torch.float64: 2.0**-53}
NAME = {torch.float32: "f32", torch.float64: "f64"}


def settings():
    """The switches that decide in which precision a product is taken, as a fresh process has them."""
    print(f"torch {torch.__version__}, {torch.get_num_threads()} threads, {torch.backends.cpu.get_cpu_capability()}")
    print(f"processor: {platform.processor() or platform.machine()}; oneDNN {torch.backends.mkldnn.is_available()}, "
          f"MKL {torch.backends.mkl.is_available()}")
    print(f"float32 matmul precision: {torch.get_float32_matmul_precision()}")
    print(f"deterministic algorithms: {torch.are_deterministic_algorithms_enabled()}")


# ---- exp -------------------------------------------------------------------------------------------------------------


def ulps(found, truth, bits, least):
    """Errors in units of the last place of the truth; `least` is the exponent of the last bit of a subnormal number."""
    exponent = np.maximum(np.frexp(truth)[1] - bits, least)
    return np.abs(found - truth) / np.ldexp(np.longdouble(1), exponent)


def exp_by(way, x):
    """exp as a kernel computes it: the weight of a score x beside a score of 0, where their sum rounds to 1."""
    if way == "torch.exp":
        return torch.exp(x)
    scores = torch.stack([torch.zeros_like(x), x], -1)
    if way == "softmax":
        return scores.softmax(-1)[:, 1]
    # 16 keys, because whole vectors take another exp than what is left over: the first is 0, the others 1.
    queries = F.pad(x, (0, -len(x) % 64)).reshape(-1, 1, 64, 1)
    keys, values = x.new_ones(len(queries), 1, 16, 1), x.new_zeros(len(queries), 1, 16, 1)
    keys[:, :, 0], values[:, :, 1] = 0, 1
    return F.scaled_dot_product_attention(queries, keys, values, scale=1.0).reshape(-1)[: len(x)]


def exponentials():
    """Worst errors of exp: every f32 where it matters, 8 million random f64."""
    bits = lambda x: struct.unpack("<I", struct.pack("<f", x))[0]
    for way, top in [("torch.exp", 2.0**-26), ("softmax", 18.0), ("scaled_dot_product_attention", 26.0)]:
        step = 7 if way.startswith("scaled") else 1
        worst, where, count, lost = 0.0, None, 0, 0.0
        for start in range(bits(top), bits(103.9), step << 21):
            raw = np.arange(start, min(start + (step << 21), bits(103.9)), step, dtype=np.uint32)
            x = -raw.view(np.float32)
            found = exp_by(way, torch.from_numpy(x)).numpy().astype(np.float64)
            truth = np.exp(x.astype(np.float64))
            error = ulps(found, truth, 24, -149).astype(np.float64)
            normal = (truth >= 2.0**-126) & (found != 0)
            count += len(raw)
            lost = max(lost, truth[found == 0].max(initial=0))
            if error[normal].max(initial=0) > worst:
                worst, where = error[normal].max(), x[normal][error[normal].argmax()]
        print(f"exp in {way}, f32: {worst:.3f} ulps at x = {where}, {count:,} numbers from -{top:g} to -103.9; "
              + (f"0 in place of up to 2^{math.log2(lost):.2f}" if lost else "never 0"))
    random = np.random.default_rng(0)
    for way, top in [("torch.exp", 0.0), ("softmax", 38.0)]:
        worst, where = 0.0, None
        for _ in range(8):
            x = -random.uniform(top, 708.0, 1 << 20)
            found = exp_by(way, torch.from_numpy(x)).numpy().astype(np.longdouble)
            error = ulps(found, np.exp(x.astype(np.longdouble)), 53, -1074)
            if error.max() > worst:
                worst, where = float(error.max()), x[error.argmax()]
        print(f"exp in {way}, f64: {worst:.3f} ulps at x = {where}, {8 << 20:,} random numbers from -{top:g} to -708")


# ---- subnormal numbers -----------------------------------------------------------------------------------------------


def subnormals():
    """Whether results below the smallest normal number are kept, in large arrays too, which run in all threads."""
    for dtype, tiny in [(torch.float32, 2.0**-126), (torch.float64, 2.0**-1022)]:
        ones = torch.ones(1 << 20, dtype=dtype)
        small = torch.full((512, 512), tiny, dtype=dtype)
        kept = {
            "products": bool((ones * tiny * 0.5 != 0).all()),
            "sums": (ones[:1024] * (tiny / 4096)).sum().item() == tiny / 4,
            "exp": bool((torch.exp(ones * math.log(tiny / 8)) != 0).all()),
            "matmul": bool((small @ torch.full((512, 512), 2.0**-12, dtype=dtype) != 0).all()),
            "linear": bool((F.linear(small, torch.full((512, 512), 2.0**-12, dtype=dtype)) != 0).all()),
            "softmax": torch.tensor([0.0, math.log(tiny / 8)], dtype=dtype).softmax(-1)[1].item() != 0,
        }
        print(f"subnormal results kept by default, {NAME[dtype]}: {kept}")


# ---- sums ------------------------------------------------------------------------------------------------------------


def ratio(found, truth, absolute, terms, unit):
    """The worst error over the bound of sums in any order with any fusing: gamma_k times the sum of absolute terms."""
    gamma = terms * unit / (1 - terms * unit)
    return float((np.abs(found.astype(np.longdouble) - truth) / (gamma * absolute)).max())


PRODUCT = """import torch
torch.manual_seed(0)
a, b = torch.randn(256, 256), torch.randn(256, 256)
truth = a.double() @ b.double()
torch.{}
print('%.1e' % ((a @ b).double() - truth).abs().max().div(truth.abs().max()).item())
"""
REDUCED = ['set_float32_matmul_precision("medium")', 'autocast("cpu", dtype=torch.bfloat16).__enter__()']


def sums():
    """Sums, products and F.linear against the bound of any order; terms of mixed sizes, which cancel."""
    random = np.random.default_rng(1)
    for dtype, kind in [(torch.float32, np.float32), (torch.float64, np.float64)]:
        worst = {"sum": 0.0, "matmul": 0.0, "F.linear": 0.0}
        for terms in [2, 3, 5, 8, 17, 64, 105, 1000, 4097]:
            for _ in range(4):
                scale = np.exp2(random.integers(-12, 13, (64, terms)))
                a = (random.standard_normal((64, terms)) * scale).astype(kind)
                b = random.standard_normal((terms, 48)).astype(kind)
                wide_a, wide_b = a.astype(np.longdouble), b.astype(np.longdouble)
                summed = torch.from_numpy(a).sum(-1).numpy()
                part = ratio(summed, wide_a.sum(-1), np.abs(wide_a).sum(-1), terms - 1, UNIT[dtype])
                worst["sum"] = max(worst["sum"], part)
                truth, absolute = wide_a @ wide_b, np.abs(wide_a) @ np.abs(wide_b)
                product = (torch.from_numpy(a) @ torch.from_numpy(b)).numpy()
                worst["matmul"] = max(worst["matmul"], ratio(product, truth, absolute, terms, UNIT[dtype]))
                linear = F.linear(torch.from_numpy(a), torch.from_numpy(b.T.copy())).numpy()
                worst["F.linear"] = max(worst["F.linear"], ratio(linear, truth, absolute, terms, UNIT[dtype]))
        text = ", ".join(f"{name} {value:.3f}" for name, value in worst.items())
        print(f"worst error over the bound of any order (1 is allowed), {NAME[dtype]}: {text}")
    a, b = torch.randn(256, 256), torch.randn(256, 256)
    truth = a.double() @ b.double()
    relative = lambda out: ((out.double() - truth).abs().max() / truth.abs().max()).item()
    print(f"relative error of a 256 x 256 product, f32: {relative(a @ b):.1e} as a fresh process computes it")
    for setting in REDUCED:
        # In a process of its own: on a machine that does not keep what its processor says, it is killed.
        done = subprocess.run([sys.executable, "-c", PRODUCT.format(setting)], capture_output=True, text=True)
        print(f"  the same after {setting}: {done.stdout.strip() or f'no result, exit code {done.returncode}'}")


# ---- attention -------------------------------------------------------------------------------------------------------


def softmax_bound(scores, values, unit, exp_ulp=4):
    """The mean of values by exact weights, and how far a covered program may be from it; scores are exact."""
    scores, values = scores.astype(np.longdouble), values.astype(np.longdouble)
    top = scores.max(-1, keepdims=True)
    weights = np.exp(scores - top)
    weights /= weights.sum(-1, keepdims=True)
    mean = (weights * values).sum(-1)
    # The difference is rounded (an error of |difference| u in the exponent), then exp; sums and quotient are rounded.
    theta = np.expm1(np.abs(scores - top) * unit) + 2 * exp_ulp * unit * np.exp(np.abs(scores - top) * unit)
    moved = (weights * theta * np.abs(values - mean[..., None])).sum(-1) / (1 - (weights * theta).sum(-1))
    steps = (2 * scores.shape[-1] + 2) * unit
    return mean, moved + steps / (1 - steps) * (weights * (1 + theta) * np.abs(values)).sum(-1)


def attention():
    """softmax and scaled_dot_product_attention, head size 1, against the bound for covered programs, exp_ulp = 4."""
    random = np.random.default_rng(2)
    for dtype, kind in [(torch.float32, np.float32), (torch.float64, np.float64)]:
        worst = {"softmax": 0.0, "scaled_dot_product_attention": 0.0}
        for n in [2, 3, 8, 33, 113, 600, 2048]:
            for spread in [0.5, 4.0, 20.0, 80.0]:
                # Scores that are keys themselves (the query is 1), ascending: a program in blocks rescales each time.
                keys = np.sort(random.uniform(-spread, 0, (16, n)).astype(kind), -1)
                values = random.standard_normal((16, n)).astype(kind)
                mean, bound = softmax_bound(keys, values, UNIT[dtype])
                k, v = torch.from_numpy(keys), torch.from_numpy(values)
                plain = (k.softmax(-1).unsqueeze(1) @ v.unsqueeze(-1)).reshape(-1)
                heads = [x.reshape(16, 1, -1, 1) for x in (torch.ones_like(k[:, :1]), k, v)]
                fused = F.scaled_dot_product_attention(*heads, scale=1.0).reshape(-1)
                for name, out in [("softmax", plain), ("scaled_dot_product_attention", fused)]:
                    over = float((np.abs(out.numpy().astype(np.longdouble) - mean) / bound).max())
                    worst[name] = max(worst[name], over)
        text = ", ".join(f"{name} {value:.3f}" for name, value in worst.items())
        print(f"worst error over the bound of covered programs (1 is allowed), {NAME[dtype]}: {text}")


# ---- folded scores ---------------------------------------------------------------------------------------------------


def folded(out=None):
    """A model whose labels are certain in any order of summation, and what scores folded into one matrix make of it."""
    head = [4097.0, -4096.0]
    f32 = grammar_parts.f32
    tensors = {
        "embedding.weight": f32([2, 2], 1, 1, 0, 0),
        "layers.0.attention.w_q": f32([1, 1, 2], *(32 * x for x in head)),
        "layers.0.attention.w_k": f32([1, 1, 2], *head),
        "layers.0.attention.w_v": f32([1, 1, 2], *head),
        "layers.0.attention.w_o": f32([1, 2, 1], 1, 0),
        "head.weight": f32([2, 2], 1, 0, 0, 0),
        "head.bias": f32([2], -1.75, 0),
    }
    config = grammar_parts.config(d=2, layers=[grammar_parts.layer()])
    with tempfile.TemporaryDirectory() as temporary:
        directory = Path(out or temporary)
        directory.mkdir(parents=True, exist_ok=True)
        (directory / "config.json").write_text(json.dumps(config), encoding="utf-8")
        (directory / "vocabulary.json").write_text('{"a": 0, "b": 1}', encoding="utf-8")
        (directory / "model.safetensors").write_bytes(grammar_parts.safetensors(tensors))
        (directory / "data.conll").write_text("a X\nb Y\n", encoding="utf-8")
        model = monolayer.torch.load(directory)
    x = model.embedding(model.encode([["a", "b"]])[0][0])
    w = model.layers[0]["attention"]
    q, k, v, o = (matrix[0] for matrix in (w.w_q, w.w_k, w.w_v, w.w_o))
    label = lambda scores: [model.labels[i] for i in model.head(x + scores.softmax(-1) @ (x @ v.T) @ o.T).argmax(-1)]
    plain, fold = (x @ q.T) @ (x @ k.T).T, x @ (q.T @ k) @ x.T
    print(f"labels of \"a b\" with scores from projected keys and queries: {label(plain)}, scores {plain.tolist()}")
    print(f"labels with scores folded as x^T (W_Q^T W_K) x, in f32: {label(fold)}, scores {fold.tolist()}")


FIGURES = {"settings": settings, "exp": exponentials, "subnormals": subnormals, "sums": sums, "attention": attention}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("figure", nargs="?", choices=[*FIGURES, "folded"])
    parser.add_argument("--out", metavar="DIR", help="where to write the model of `folded`")
    args = parser.parse_args()
    torch.manual_seed(0)
    for name in [args.figure] if args.figure else [*FIGURES, "folded"]:
        folded(args.out) if name == "folded" else FIGURES[name]()


if __name__ == "__main__":
    with torch.no_grad():
        main()
