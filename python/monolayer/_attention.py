"""Rank-1 attention in linear time."""
from __future__ import annotations

import sys
from typing import Any

import numpy as np

from . import _native


def _arrays(*given: Any) -> tuple[list[np.ndarray], type]:
    arrays = [np.asarray(array) for array in given]
    kind = np.float32 if all(array.dtype == np.float32 for array in arrays) else np.float64
    return [np.ascontiguousarray(array, dtype=kind) for array in arrays], kind


def attention(keys: Any, values: Any, queries: Any, causal: bool = False, tolerance: float | None = None) -> Any:
    """The softmax-weighted mean of the values for each query, with scores `query * key`, in linear time.

    >>> import numpy as np
    >>> import monolayer
    >>> keys, values, queries = np.array([0.0, 1.0]), np.array([1.0, 2.0]), np.array([0.0, 1e6])
    >>> monolayer.attention(keys, values, queries)
    array([1.5, 2. ])

    Arrays have shape [..., n]: each row is a sequence, and rows may be those of several heads. float32 stays float32, and
    all else becomes float64. With `causal`, query i sees the keys up to i. The error is at most `tolerance` (default: the
    rounding of the type) of the spread of the values, whatever the range of the scores; docs/attention.md has the proof.
    Numbers must be finite. A query that sees no key gets 0.

    PyTorch tensors on the CPU give a tensor, with gradients for all three:

    >>> import torch                                                                       # doctest: +SKIP
    >>> keys = torch.tensor([0.0, 1.0], requires_grad=True)                                # doctest: +SKIP
    >>> monolayer.attention(keys, torch.tensor([1.0, 2.0]), torch.tensor([0.0])).sum().backward()  # doctest: +SKIP
    >>> keys.grad                                                                          # doctest: +SKIP
    tensor([0., 0.])
    """
    torch = sys.modules.get("torch")
    if torch is not None and any(isinstance(x, torch.Tensor) for x in (keys, values, queries)):
        tensors = [torch.as_tensor(x) for x in (keys, values, queries)]
        return _function(torch).apply(*tensors, causal, tolerance)
    (keys, values, queries), kind = _arrays(keys, values, queries)
    if keys.ndim == 0 or keys.shape != values.shape or keys.shape[:-1] != queries.shape[:-1]:
        shapes = f"keys {keys.shape}, values {values.shape} and queries {queries.shape}"
        raise ValueError(f"{shapes} do not go together; give as many values as keys, and as many rows of queries")
    run = _native.attention_f32 if kind == np.float32 else _native.attention_f64
    out = np.zeros(queries.shape, dtype=kind)
    for row in np.ndindex(queries.shape[:-1]):
        out[row], _ = run(keys[row], values[row], queries[row], causal, tolerance)
    return out


def _gradients(keys: Any, values: Any, queries: Any, upstream: Any, causal: bool) -> list[np.ndarray]:
    (keys, values, queries, upstream), kind = _arrays(keys, values, queries, upstream)
    run = _native.attention_gradients_f32 if kind == np.float32 else _native.attention_gradients_f64
    found = [np.zeros(array.shape, dtype=kind) for array in (keys, values, queries)]
    for row in np.ndindex(queries.shape[:-1]):
        for to, gradient in zip(found, run(keys[row], values[row], queries[row], upstream[row], causal)):
            to[row] = gradient
    return found


def _function(torch: Any) -> Any:
    """The autograd function, made when PyTorch is there."""

    class Attention(torch.autograd.Function):  # type: ignore[misc]
        @staticmethod
        def forward(ctx: Any, keys: Any, values: Any, queries: Any, causal: bool, tolerance: float | None) -> Any:
            ctx.save_for_backward(keys, values, queries)
            ctx.causal = causal
            k, v, q = (x.detach().numpy() for x in (keys, values, queries))
            return torch.from_numpy(attention(k, v, q, causal, tolerance))

        @staticmethod
        def backward(ctx: Any, upstream: Any) -> Any:
            tensors = ctx.saved_tensors
            k, v, q, u = (x.detach().numpy() for x in (*tensors, upstream))
            found = _gradients(k, v, q, u, ctx.causal)
            return (*(torch.from_numpy(g).to(x.dtype) for g, x in zip(found, tensors)), None, None)

    return Attention
