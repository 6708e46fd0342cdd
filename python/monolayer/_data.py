"""What users have, as a dataset: lists, NumPy and PyTorch arrays, pandas and Hugging Face columns, files."""
from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

import numpy as np

from . import _native
from ._native import MonolayerError

FREE = -100  # the integer label that means "any", as in Hugging Face's collators


class Dataset:
    """Sequences of tokens with their labels. `memorize`, `verify` and `Model.predict` make one of whatever they are given."""

    def __init__(
        self, sequences: Any, labels: Any = None, *, label_at: str = "all", padding: Any = None, all_orders: bool = False
    ):
        tokens, lengths, kept, integer_tokens = _tokens(sequences, padding)
        names, integer_labels = (None, False) if labels is None else _labels(labels, lengths, kept, label_at)
        self._native = _native.Dataset(
            tokens, lengths, names, integer_tokens=integer_tokens, integer_labels=integer_labels, all_orders=all_orders
        )
        self.lengths = lengths
        self.integer_labels = integer_labels

    @classmethod
    def _of(cls, native, lengths=None, integer_labels=False):
        data = cls.__new__(cls)
        data._native, data.lengths, data.integer_labels = native, lengths or native.lengths, integer_labels
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
        with open(path, "w", encoding="utf-8", newline="\n") as file:
            file.write(self._native.canonical())

    def __repr__(self):
        return f"Dataset({self.sequences:,} sequences, {self.tokens:,} tokens)"


def read(source: str | os.PathLike, **options) -> Dataset:
    """A dataset from a file, recognized by its content: CoNLL columns, CSV, TSV, JSON, NumPy arrays or safetensors, also
    compressed; or a task such as "task:sort:alphabet=4,length=1..6".

    Options, where the file leaves a choice: format, columns=["word", "tag"], tokens_from, labels_from, sentence, label_at,
    padding; see `monolayer data --help`. Parquet files are read through pyarrow: give tokens_from and labels_from.
    """
    source = os.fspath(source)
    if source.endswith(".parquet"):
        return _parquet(source, **options)
    native = _native.Dataset.open(source, **options)
    return Dataset._of(native)


def _parquet(source, tokens_from="tokens", labels_from="labels", **options):
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
    columns = [table.column(name).to_pylist() for name in wanted]
    return Dataset(*columns, **options)


def dataset(sequences: Any, labels: Any = None, **options) -> Dataset:
    """What was given, as a dataset."""
    if isinstance(sequences, Dataset):
        if labels is not None:
            raise TypeError("a Dataset has its own labels; leave `labels` out")
        return sequences
    return Dataset(sequences, labels, **options)


def is_one_sequence(sequences: Any) -> bool:
    """Whether this is a single sequence of words or vectors, not a list of sequences."""
    if isinstance(sequences, Dataset):
        return False
    array = _array(sequences)
    if array is not None:
        return array.ndim == (2 if array.dtype.kind == "f" else 1)
    first = next(iter(sequences), None)
    return isinstance(first, (str, int, np.integer))


def _array(values: Any) -> np.ndarray | None:
    """A NumPy array where the values are an array of some library; PyTorch's are taken to the CPU."""
    if isinstance(values, np.ndarray):
        return values if values.dtype != object else None
    if hasattr(values, "detach") and hasattr(values, "cpu"):
        return values.detach().cpu().numpy()
    if hasattr(values, "__array_interface__"):
        return np.asarray(values)
    return None


def _rows(sequences: Any) -> list:
    """The sequences as a list; pandas and Hugging Face columns are iterated over."""
    if isinstance(sequences, (str, bytes)):
        raise TypeError("a string is no list of sequences: give lists of words, or monolayer.read(path) for a file")
    if hasattr(sequences, "to_list"):
        return sequences.to_list()
    return list(sequences)


def _tokens(sequences, padding):
    """All tokens in a row, the lengths of sequences, which tokens of each were kept, and whether they are integers."""
    array = _array(sequences)
    if array is not None and array.dtype.kind == "f":
        if array.ndim != 3:
            raise MonolayerError(f"an array of floats of {array.ndim} dimensions; give [sequences, tokens, d], or a list of [tokens, d]")
        count, n, d = array.shape
        return np.ascontiguousarray(array.reshape(count * n, d), dtype=np.float64), [n] * count, None, False
    rows = list(array) if array is not None else _rows(sequences)
    if rows and _is_vectors(rows[0]):
        vectors = [np.asarray(_array(row) if _array(row) is not None else row, dtype=np.float64) for row in rows]
        bad = next((i for i, row in enumerate(vectors) if row.ndim != 2 or row.shape[1] != vectors[0].shape[1]), None)
        if bad is not None:
            raise MonolayerError(f"sequence {bad + 1}: no array [tokens, d] with the d of the first sequence")
        return np.ascontiguousarray(np.concatenate(vectors)), [len(row) for row in vectors], None, False
    kept = None
    if padding is not None:
        kept = [_unpadded(row, padding, i) for i, row in enumerate(rows)]
        rows = [row[:keep] for row, keep in zip(rows, kept)]
    words, integers = [], None
    for i, row in enumerate(rows):
        if isinstance(row, (str, bytes)):
            raise TypeError(f"sequence {i + 1} is the string {row!r}: give a list of words, such as {str(row).split()!r}")
        values = _array(row)
        values = values.tolist() if values is not None else list(row)
        is_integer = [isinstance(x, (int, np.integer)) and not isinstance(x, bool) for x in values]
        if any(is_integer) and not all(is_integer):
            raise MonolayerError(f"sequence {i + 1}: integers among other tokens; give words, or ids, or vectors")
        if values and integers is not None and integers != is_integer[0]:
            raise MonolayerError(f"sequence {i + 1}: {'ids' if is_integer[0] else 'words'} after {'ids' if integers else 'words'}; give one kind")
        if values:
            integers = is_integer[0]
        bad = next((x for x in values if not isinstance(x, (str, int, np.integer))), None)
        if bad is not None:
            raise TypeError(f"sequence {i + 1}: the token {bad!r} is neither a word, an id nor a vector")
        words.extend(map(str, values) if integers else values)
    return words, [len(row) for row in rows], kept, bool(integers)


def _is_vectors(row) -> bool:
    array = _array(row)
    if array is not None:
        return array.dtype.kind == "f"
    first = next(iter(row), None) if isinstance(row, Sequence) else None
    return isinstance(first, (list, tuple)) or (_array(first) is not None and np.ndim(_array(first)) == 1)


def _unpadded(row, padding, i):
    """How many tokens stand before the padding at the end."""
    keep = len(row)
    while keep > 0 and row[keep - 1] == padding:
        keep -= 1
    if keep == 0:
        raise MonolayerError(f"sequence {i + 1}: nothing but padding; leave it out")
    return keep


def _labels(labels, lengths, kept, label_at):
    """All labels in a row, as names, None where any will do, or vectors; and whether they are integers."""
    array = _array(labels)
    if array is not None and array.dtype.kind == "f":
        flat = array.reshape(-1, array.shape[-1]) if array.ndim == 3 else None
        if flat is None or len(flat) != sum(lengths):
            raise MonolayerError(f"labels of shape {array.shape}; give floats [sequences, tokens, k]")
        return np.ascontiguousarray(flat, dtype=np.float64), False
    rows = list(array) if array is not None else _rows(labels)
    if len(rows) != len(lengths):
        raise MonolayerError(f"{len(lengths)} sequences with labels of {len(rows)}; give labels for every sequence")
    if rows and all(_is_class(row) for row in rows):
        if label_at not in ("all", "first", "last"):
            raise MonolayerError(f"label_at {label_at!r}; give \"all\", \"first\" or \"last\"")
        rows = [_spread(label, n, label_at) for label, n in zip(rows, lengths)]
    elif rows and _is_vectors(rows[0]):
        vectors = [np.asarray(_array(row) if _array(row) is not None else row, dtype=np.float64) for row in rows]
        return np.ascontiguousarray(np.concatenate(vectors)), False
    else:
        rows = [list(row) if _array(row) is None else _array(row).tolist() for row in rows]
        if kept is not None:
            rows = [row[:keep] for row, keep in zip(rows, kept)]
    for i, (row, n) in enumerate(zip(rows, lengths)):
        if len(row) != n:
            raise MonolayerError(f"sequence {i + 1}: {n} tokens with {len(row)} labels; give a label for every token")
    flat = [_free(label) for row in rows for label in row]
    integers = all(isinstance(label, (int, np.integer)) for label in flat if label is not None)
    integers = integers and any(label is not None for label in flat)
    bad = next((label for label in flat if not (label is None or isinstance(label, (str, int, np.integer)))), None)
    if bad is not None:
        raise TypeError(f"the label {bad!r} is neither a name, an integer, None nor a vector")
    return [None if label is None else str(label) for label in flat], integers


def _is_class(value) -> bool:
    return value is None or isinstance(value, (str, int, np.integer))


def _free(label):
    """None where any label will do; booleans are not integers."""
    if isinstance(label, (int, np.integer)) and not isinstance(label, bool):
        return None if label == FREE else int(label)
    return None if label is None or (isinstance(label, float) and np.isnan(label)) else (str(label) if isinstance(label, bool) else label)


def _spread(label, n, at):
    """The one label of a sequence at the tokens that get it."""
    if at == "all":
        return [label] * n
    row = [None] * n
    row[0 if at == "first" else -1] = label
    return row
