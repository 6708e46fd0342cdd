"""Functions and texts into models."""
from __future__ import annotations

import itertools
import math
import os
import sys
import tempfile
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import numpy as np

from . import _native
from ._commands import command, flags
from ._data import Dataset
from ._model import Model, memorize
from ._native import MonolayerError
from ._progress import Bar

MOST_SEQUENCES = 2_000_000


def compile_function(
    f: Callable[[list], Any],
    alphabet: Iterable[Any],
    lengths: int | Iterable[int],
    *,
    symmetric: bool = False,
    most: int = MOST_SEQUENCES,
    **options: Any,
) -> Model:
    """Any Python function from a sequence to its labels, enumerated on every sequence and memorized.

    `f` gets a list of letters and gives a label for each of them, or one label for the sequence. `lengths` is a length or
    several, such as range(1, 7). With `symmetric`, the labels of f must not depend on the order of the letters: one sequence
    per multiset is enumerated, the model has no mask and no positions, and the certificate covers every order. The number of sequences is printed before it starts.

    >>> model = monolayer.compile_function(lambda s: [s.count(x) for x in s], "ab", range(1, 5))
    >>> model.predict(["a", "b", "a"])
    [2, 1, 2]
    """
    letters = list(alphabet)
    sizes = [lengths] if isinstance(lengths, int) else list(lengths)
    total = sum(math.comb(len(letters) + n - 1, n) if symmetric else len(letters) ** n for n in sizes)
    if total > most:
        raise MonolayerError(f"{total:,} sequences; shorter ones, a smaller alphabet, symmetric=True, or a larger `most`")
    print(f"{total:,} sequences over {len(letters)} letters", file=sys.stderr)
    every = itertools.combinations_with_replacement if symmetric else lambda a, n: itertools.product(a, repeat=n)
    sequences = [list(s) for n in sizes for s in every(letters, n)]
    labels = [f(list(s)) for s in sequences]
    words = [[str(letter) for letter in s] for s in sequences] if not all(isinstance(x, (str, int)) for x in letters) else sequences
    data = Dataset(words, labels, label_at=options.pop("label_at", "all"), all_orders=symmetric)
    return memorize(data, **options)


def memorize_text(text: str, *, split: str = "word", **options: Any) -> Model:
    """A text into a model that recites it: causal mask, no positions, each token labeled with the one that follows.

    >>> model = monolayer.memorize_text("the cat saw the dog and the dog saw the cat")
    >>> model.generate("the")
    'the cat saw the dog and the dog saw the cat'
    """
    native = _native.Dataset.text(text, split)
    data = Dataset._of(native)
    with Bar("searching") as bar:
        return Model(_native.memorize(native, bar, text=split, **options), data)


def approximate(
    f: Callable[[np.ndarray], np.ndarray] | str,
    dim: int = 1,
    length: int = 2,
    *,
    epsilon: float | None = None,
    grid: int | None = None,
    lipschitz: float | None = None,
    equivariant: bool = True,
    p: float = 2.0,
    out: str | os.PathLike | None = None,
    seed: int = 0,
    **options: Any,
) -> "Approximation":
    """A function on sequences of `length` vectors in [0, 1]^dim into a model, with a bound on its distance d_p.

    `f` is an expression, as in `monolayer approximate --help`, or a Python function from an array [batch, n, d] to one of the
    same shape. For a Python function the bound is conditional on `lipschitz`, a constant with |f(x) - f(y)| <= lipschitz *
    |x - y| in the sup norm over all entries, and says so. Without one nothing is certified: the distance is measured.
    """
    folder = Path(out) if out is not None else Path(tempfile.mkdtemp(prefix="monolayer-")) / "model"
    if isinstance(f, str):
        more = flags({"epsilon": epsilon, "grid": grid, "p": p, "seed": seed, **options})
        result = command("approximate", "--function", f, "--dim", dim, "--length", length, "--out", folder, *more)
        return Approximation(folder, None, dim, length, p, result["bound"], None)
    name = getattr(f, "__name__", "a Python function")
    call = lambda batch: np.ascontiguousarray(f(batch), dtype=np.float64)
    with Bar("approximating") as bar:
        bound, _, _, _ = _native.approximate(
            call, name, dim, length, folder, bar, grid=grid, epsilon=epsilon, lipschitz=lipschitz or 0.0,
            equivariant=equivariant, p=p, seed=seed,
        )
    if lipschitz is None:
        # Without a constant the certificate would be a guess.
        (folder / "certificate.json").unlink()
        return Approximation(folder, f, dim, length, p, None, None)
    return Approximation(folder, f, dim, length, p, bound, f"Lipschitz with constant {lipschitz} in the sup norm")


class Approximation(Model):
    """A model of a function. `bound` is the certified bound on d_p, `condition` what it takes for granted."""

    def __init__(self, directory, f, dim, length, p, bound, condition):
        super().__init__(_native.load(directory), directory=directory)
        self.f, self.dim, self.length, self.p = f, dim, length, p
        self.bound, self.condition = bound, condition

    def __call__(self, batch: np.ndarray) -> np.ndarray:
        """The model on an array [batch, n, d]."""
        return np.stack(self.predict(np.asarray(batch, dtype=np.float64)))

    def measure(self, points: int = 4096, seed: int = 0) -> float:
        """The distance d_p from the Python function, measured on random sequences."""
        batch = np.random.default_rng(seed).random((points, self.length, self.dim))
        difference = np.abs(self(batch) - self.f(batch)) ** self.p
        return float(difference.reshape(points, -1).sum(1).mean() ** (1 / self.p))
