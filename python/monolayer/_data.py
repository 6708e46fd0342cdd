"""What users have, as a dataset: lists, arrays, columns of tables, files."""
from __future__ import annotations

import json
import os
from collections.abc import Iterator
from typing import Any

import numpy as np

from . import _convert, _native
from ._native import MonolayerError


class Dataset:
    """Sequences of tokens with their labels. `memorize`, `verify` and `Model.predict` make one of whatever they are given.

    >>> data = monolayer.Dataset([["a", "b"], ["b"]], [["X", None], ["Y"]])
    >>> data
    Dataset(2 sequences, 3 tokens)
    >>> list(data)
    [(['a', 'b'], ['X', None]), (['b'], ['Y'])]
    """

    def __init__(
        self, sequences: Any, labels: Any = None, *, label_at: str = "all", padding: Any = None, all_orders: bool = False
    ):
        tokens = _convert.tokens(sequences, padding)
        flat, kind, per_sequence = None, None, False
        if labels is not None:
            flat, kind, per_sequence = _convert.labels(labels, tokens.lengths, tokens.padded, label_at)
        try:
            self._native = _native.Dataset(tokens.flat, tokens.lengths, flat, all_orders=all_orders)
        except UnicodeEncodeError:
            raise MonolayerError(_convert.surrogate(tokens, flat)) from None
        self.lengths: list[int] = tokens.lengths
        self._label_kind: str | None = kind
        self._per_sequence: bool = per_sequence

    @classmethod
    def _of(cls, native: _native.Dataset) -> "Dataset":
        data = cls.__new__(cls)
        data._native, data.lengths, data._label_kind, data._per_sequence = native, native.lengths, None, False
        return data

    @property
    def sequences(self) -> int:
        """How many sequences there are."""
        return self._native.sequences

    @property
    def tokens(self) -> int:
        """How many tokens there are."""
        return self._native.tokens

    @property
    def hash(self) -> str:
        """The hash of the canonical form, which certificates name."""
        return self._native.hash

    def save(self, path: str | os.PathLike) -> None:
        """Writes the canonical form: one JSON line per sequence."""
        text = self._native.canonical()
        with open(path, "w", encoding="utf-8", newline="\n") as file:
            file.write(text)

    def __iter__(self) -> Iterator[tuple[list, list | None]]:
        """Its sequences: (tokens, labels), labels None where it has none."""
        for line in self._native.canonical().splitlines():
            row = json.loads(line)
            yield row["tokens"], row.get("labels")

    def __len__(self) -> int:
        return self.sequences

    def __repr__(self) -> str:
        return f"Dataset({self.sequences:,} sequences, {self.tokens:,} tokens)"


def read(source: str | os.PathLike, **options: Any) -> Dataset:
    """A dataset from a file, recognized by its content: CoNLL columns, CSV, TSV, JSON, NumPy arrays or safetensors, also
    compressed; or a task such as "task:sort:alphabet=4,length=1..6".

    Options, where the file leaves a choice: format, columns=["word", "tag"], tokens_from, labels_from, sentence, documents,
    label_at, padding; see `monolayer data --help`. Parquet files are read through pyarrow: give tokens_from and labels_from.

    >>> monolayer.read("task:parity:alphabet=2,length=3")
    Dataset(8 sequences, 24 tokens)
    """
    source = os.fspath(source)
    if source.endswith(".parquet"):
        return _parquet(source, **options)
    if "padding" in options and options["padding"] is not None:
        options["padding"] = str(options["padding"])
    return Dataset._of(_native.Dataset.open(source, **options))


def _parquet(source: str, tokens_from: str = "tokens", labels_from: str = "labels", **options: Any) -> Dataset:
    try:
        import pyarrow.parquet
    except ImportError as error:
        raise ImportError(f"{source}: Parquet files are read through pyarrow; pip install pyarrow") from error
    names = pyarrow.parquet.read_schema(source).names
    missing = [name for name in (tokens_from, labels_from) if name != "none" and name not in names]
    if missing:
        raise MonolayerError(f"{source}: no column {missing[0]!r}; it has {', '.join(names)}: give tokens_from and labels_from")
    wanted = [name for name in (tokens_from, labels_from) if name != "none"]
    table = pyarrow.parquet.read_table(source, columns=wanted)
    return Dataset(*(table.column(name) for name in wanted), **options)


def dataset(sequences: Any, labels: Any = None, **options: Any) -> Dataset:
    """What was given, as a dataset."""
    if isinstance(sequences, Dataset):
        given = [name for name, value in {"labels": labels, **options}.items() if value is not None]
        if given:
            raise TypeError(f"a Dataset has its own labels and padding; leave `{given[0]}` out")
        return sequences
    return Dataset(sequences, labels, **options)


def is_one_sequence(sequences: Any) -> bool:
    """Whether this is a single sequence of words or vectors, not a list of sequences."""
    if isinstance(sequences, Dataset):
        return False
    array = _convert.array_of(sequences)
    if array is not None:
        return array.ndim == (2 if array.dtype.kind == "f" else 1)
    try:
        first = next(iter(sequences), None)
    except TypeError:
        raise TypeError(f"{sequences!r} is no sequence: give a list of words, ids or vectors") from None
    if isinstance(first, (str, int, np.integer)):
        return True
    # A list of vectors; a list of sequences has one more level.
    vector = _convert.array_of(first)
    if vector is not None:
        return vector.ndim == 1 and vector.dtype.kind == "f"
    return isinstance(first, (list, tuple)) and bool(first) and isinstance(first[0], (float, np.floating))
