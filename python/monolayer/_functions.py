"""Functions and texts into models."""
from __future__ import annotations

import itertools
import math
import os
import random
import sys
import tempfile
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import numpy as np

from . import _native
from ._commands import command, flags
from ._convert import array_of
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
    per multiset is enumerated, the model has no mask and no positions, and the certificate covers every order. The numbers of
    sequences and of contexts are printed before it starts; more than `most` sequences are an error. Options are those of
    `memorize`.

    >>> model = monolayer.compile_function(lambda s: [s.count(x) for x in s], "ab", range(1, 5))
    >>> model.predict(["a", "b", "a"])
    [2, 1, 2]
    """
    letters = list(alphabet)
    sizes = [lengths] if isinstance(lengths, int) else list(lengths)
    if len(set(letters)) < len(letters) or not all(type(x) in (str, int) for x in letters):
        raise MonolayerError(f"the alphabet {letters!r}; give different letters, all words or all integers")
    if not letters or not sizes or not all(isinstance(n, int) and n > 0 for n in sizes):
        raise MonolayerError(f"an alphabet of {len(letters)} letters and lengths {sizes!r}; give letters, and lengths from 1 on")
    k = len(letters)
    total = sum(math.comb(k + n - 1, n) if symmetric else k**n for n in sizes)
    contexts = sum(k * math.comb(k + n - 2, n - 1) if symmetric else n * k**n for n in sizes)
    if total > most:
        raise MonolayerError(f"{total:,} sequences; shorter ones, a smaller alphabet, symmetric=True, or a larger `most`")
    print(f"{total:,} sequences over {k} letters, at most {contexts:,} contexts", file=sys.stderr)
    every = itertools.combinations_with_replacement if symmetric else lambda a, n: itertools.product(a, repeat=n)
    sequences = [list(s) for n in sizes for s in every(letters, n)]
    if symmetric:
        _check_symmetric(f, sequences)
    labels = []
    with Bar("calling the function", options.get("progress")) as bar:
        for i, sequence in enumerate(sequences):
            labels.append(f(list(sequence)))
            if i % 1024 == 0:
                bar(i, total)
    data = Dataset(sequences, labels, label_at=options.pop("label_at", "all"), all_orders=symmetric)
    # The function is known on every sequence: there is nothing to edit.
    options.setdefault("spare", 0)
    return memorize(data, **options)


def _check_symmetric(f: Callable[[list], Any], sequences: list[list]) -> None:
    """An error if another order changes the labels, on some sequences."""
    draw = random.Random(0)
    for sequence in draw.sample(sequences, min(100, len(sequences))):
        labels = f(list(sequence))
        per_token = isinstance(labels, (list, tuple, np.ndarray))
        for _ in range(8):
            order = draw.sample(range(len(sequence)), len(sequence))
            other = [sequence[i] for i in order]
            found, wanted = f(list(other)), [labels[i] for i in order] if per_token else labels
            if (list(found) if per_token else found) != wanted:
                raise MonolayerError(f"the function is not symmetric: see {sequence} and {other}; leave `symmetric` out")


def memorize_text(text: str, *, split: str = "word", **options: Any) -> Model:
    """A text into a model that recites it: causal mask, no positions, each token labeled with the one that follows. A token is
    a word, or with split="char" a letter. Options are those of `memorize`.

    >>> model = monolayer.memorize_text("the cat saw the dog and the dog saw the cat")
    >>> model.generate("the")
    'the cat saw the dog and the dog saw the cat'
    """
    native = _native.Dataset.text(text, split)
    with Bar("searching", options.pop("progress", None)) as bar:
        return Model(_native.memorize(native, bar, text=split, **options), Dataset._of(native))


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
    progress: bool | None = None,
    **options: Any,
) -> "Approximation":
    """A function on sequences of `length` vectors in [0, 1]^dim into a model, with a bound on its distance d_p.

    `f` is an expression, as in `monolayer approximate --help`, or a Python function from an array [batch, n, d] to one of the
    same shape. Give either `grid`, the parts of each coordinate, or `epsilon`, the distance to reach.

    For a Python function the bound is conditional on `lipschitz`, a constant with |f(x) - f(y)| <= lipschitz * |x - y| in the
    sup norm over all entries: `condition` and the certificate say so. Without one nothing is certified: `bound` and
    `certificate` are None, and `measured` is the distance on random sequences. The constant, and that permuting the tokens
    permutes the outputs (unless equivariant=False), are tried on random sequences first; what fails is an error.

    >>> import numpy as np
    >>> model = monolayer.approximate(lambda x: x - x.mean(1, keepdims=True), dim=1, length=2, grid=8, lipschitz=2.0)
    >>> model.measured <= model.bound
    True
    >>> model.condition
    'f is Lipschitz with constant 2 in the sup norm, and equivariant; its values are exact'
    """
    temporary = tempfile.TemporaryDirectory(prefix="monolayer-") if out is None else None
    folder = Path(temporary.name, "model") if temporary else Path(out or "")
    if isinstance(f, str):
        if lipschitz is not None or not equivariant:
            raise TypeError("an expression is bounded by itself; leave `lipschitz` and `equivariant` out")
        more = flags({"epsilon": epsilon, "grid": grid, "p": p, "seed": seed, **options})
        result = command("approximate", f"--function={f}", "--dim", dim, "--length", length, "--out", folder, *more)
        return Approximation(folder, None, dim, length, p, result["bound"], None, result["measured"], temporary)
    if options:
        raise TypeError(f"no option {next(iter(options))!r} for a Python function")
    name = getattr(f, "__name__", "a Python function")

    def call(batch: np.ndarray) -> np.ndarray:
        found = f(batch)
        array = array_of(found)
        return np.ascontiguousarray(found if array is None else array, dtype=np.float64)

    _check_function(call, dim, length, lipschitz, equivariant)
    with Bar("approximating", progress) as bar:
        bound, _, _, _ = _native.approximate(
            call, name, dim, length, folder, bar, grid=grid, epsilon=epsilon, lipschitz=lipschitz or 0.0,
            equivariant=equivariant, p=p, seed=seed,
        )
    if lipschitz is None:
        # Without a constant the certificate would be a guess.
        (folder / "certificate.json").unlink()
        return Approximation(folder, call, dim, length, p, None, "nothing is certified: no Lipschitz constant was given", None, temporary)
    condition = f"f is Lipschitz with constant {lipschitz:g} in the sup norm{', and equivariant' if equivariant else ''}; its values are exact"
    return Approximation(folder, call, dim, length, p, bound, condition, None, temporary)


def _check_function(f: Callable[[np.ndarray], np.ndarray], dim: int, length: int, lipschitz: float | None, equivariant: bool) -> None:
    """Tries what a bound takes for granted: an error if it fails."""
    if not all(isinstance(x, (int, np.integer)) and x > 0 for x in (dim, length)):
        raise MonolayerError(f"dim {dim!r} and length {length!r}; give numbers from 1 on")
    draw = np.random.default_rng(0)
    x = draw.random((256, length, dim))
    y = np.clip(x + draw.normal(size=x.shape) * 10.0 ** draw.uniform(-6, 0, (256, 1, 1)), 0, 1)
    fx, fy = f(x), f(y)
    if fx.shape != x.shape:
        raise MonolayerError(f"the function gives an array {list(fx.shape)} for one of {list(x.shape)}; give an output of dimension d for every token")
    if not np.isfinite(fx).all():
        raise MonolayerError(f"the function gives {fx[~np.isfinite(fx)][0]}; it must be finite on the cube")
    near = 1e-9 * max(1.0, float(np.abs(fx).max()))
    if np.abs(f(x[:1]) - fx[:1]).max() > near:
        raise MonolayerError("the function gives another output for a sequence alone than in a batch; it must treat sequences one by one")
    # All permutations are made of these two.
    orders = [[1, 0, *range(2, length)], [*range(1, length), 0]] if equivariant and length > 1 else []
    if any(np.abs(f(x[:, order]) - fx[:, order]).max() > near for order in orders):
        raise MonolayerError("permuting the tokens does not permute the outputs; give equivariant=False")
    if lipschitz is not None:
        change, distance = (np.abs(a - b).reshape(256, -1).max(1) for a, b in ((fx, fy), (x, y)))
        steepest = int(np.argmax(change - lipschitz * distance))
        if change[steepest] > lipschitz * distance[steepest] + near:
            slope = change[steepest] / distance[steepest]
            raise MonolayerError(f"lipschitz {lipschitz}, and two sequences at distance {distance[steepest]:.3g} have outputs {slope:.3g} times as far apart; give a larger constant")


class Approximation(Model):
    """A model of a function. `bound` is the certified bound on d_p, `condition` what it takes for granted."""

    def __init__(
        self, directory: Path, f: Callable | None, dim: int, length: int, p: float, bound: float | None, condition: str | None,
        measured: float | None, temporary: tempfile.TemporaryDirectory | None,
    ):
        super().__init__(_native.load(directory), directory=directory)
        self.f, self.dim, self.length, self.p = f, dim, length, p
        self.bound: float | None = bound
        self.condition: str | None = condition
        self._measured, self._temporary = measured, temporary

    def __call__(self, batch: Any) -> np.ndarray:
        """The model on an array [batch, n, d]."""
        return np.stack(self.predict(np.asarray(batch, dtype=np.float64)))

    @property
    def measured(self) -> float:
        """The distance d_p from the function, measured on random sequences."""
        if self._measured is None:
            self._measured = self.measure()
        return self._measured

    def measure(self, points: int = 4096, seed: int = 0) -> float:
        """The distance d_p from a Python function, measured on so many random sequences."""
        if self.f is None:
            raise TypeError("the distance from an expression was measured by the program: see `measured`")
        batch = np.random.default_rng(seed).random((points, self.length, self.dim))
        difference = np.abs(self(batch) - self.f(batch)) ** self.p
        return float(difference.reshape(points, -1).sum(1).mean() ** (1 / self.p))

    def __repr__(self) -> str:
        says = f"d_{self.p:g} <= {self.bound:.4g}, certified" if self.bound is not None else f"d_{self.p:g} about {self.measured:.4g}, measured only"
        return f"Approximation({self.hidden:,} hidden units; {says}{f' if {self.condition}' if self.bound is not None and self.condition else ''})"
