"""Lists, arrays and columns into what the compiled part takes: all tokens in a row, the lengths of sequences, all labels in a
row. Words are a list of strings, ids an array of int64, vectors an array [tokens, d] of float64."""
from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from ._native import MonolayerError

FREE = -100  # the integer label that means "any", as in Hugging Face's collators


@dataclass
class Tokens:
    """All tokens in a row, and how many each sequence has, without padding and with it."""

    flat: Any
    lengths: list[int]
    padded: list[int]


def array_of(values: Any) -> np.ndarray | None:
    """A NumPy array, where the values are an array of some library that is not one of objects."""
    if isinstance(values, np.ma.MaskedArray):
        raise TypeError("a masked array: fill it and give `padding`, or give lists of different lengths")
    if isinstance(values, np.ndarray):
        return None if values.dtype == object else values
    if hasattr(values, "detach") and hasattr(values, "cpu"):
        return _of_torch(values)
    if hasattr(values, "__array_interface__") and not isinstance(values, np.generic):
        return np.asarray(values)
    return None


def _of_torch(tensor: Any) -> np.ndarray:
    """A PyTorch tensor, of whatever dtype, layout and device."""
    tensor = tensor.detach()
    if tensor.is_quantized:
        tensor = tensor.dequantize()
    if str(tensor.layout) != "torch.strided":
        tensor = tensor.to_dense()
    if tensor.device.type == "meta":
        raise TypeError("a tensor on the device meta has no numbers")
    tensor = tensor.cpu().resolve_conj().resolve_neg()
    return (tensor.double() if tensor.is_floating_point() else tensor).numpy()


def _checked(array: np.ndarray, what: str) -> np.ndarray:
    """Of a kind that tokens and labels can have: floats, integers, texts; booleans only for labels."""
    kinds = "fiuUT" + ("b" if what == "labels" else "")
    if array.dtype.kind not in kinds:
        help = {"S": "decode it: array.astype(str)", "c": "give its real and imaginary parts", "b": "give ids or words"}
        raise TypeError(f"{what} of dtype {array.dtype}; {help.get(array.dtype.kind, 'give words, integers or floats')}")
    return array


def _rows(values: Any, what: str) -> list:
    """The sequences as a list; columns of pandas, Hugging Face and Arrow are iterated over."""
    if isinstance(values, (str, bytes)):
        raise TypeError(f"{what}: a string is no list of sequences: give lists of words, or monolayer.read(path) for a file")
    if isinstance(values, (dict, set, frozenset)) or hasattr(values, "columns") or hasattr(values, "column_names"):
        raise TypeError(f"{what}: a {type(values).__name__} is no list of sequences: give one of its columns, such as x[\"tokens\"]")
    for method in ("to_pylist", "to_list"):
        if hasattr(values, method):
            return getattr(values, method)()
    try:
        return list(values)
    except TypeError:
        raise TypeError(f"{what}: {values!r} is no list of sequences") from None


def _row(values: Any, i: int, what: str) -> Any:
    """One sequence: a list, or an array of floats [tokens, d]."""
    where = f"sequence {i + 1}"
    if isinstance(values, (str, bytes)):
        words = values.split() if isinstance(values, str) else "words"
        raise TypeError(f"{where} is the string {values!r}: give a list of words, such as {words!r}; a single sequence goes into a list")
    if isinstance(values, (dict, set, frozenset)):
        raise TypeError(f"{where} is a {type(values).__name__}: give a list of {what}")
    array = array_of(values)
    if array is not None:
        array = _checked(array, what)
        if array.ndim != (2 if array.dtype.kind == "f" else 1):
            raise MonolayerError(f"{where}: {what} of shape {array.shape} and dtype {array.dtype}; give [tokens] or, of floats, [tokens, d]")
        return array if array.dtype.kind == "f" else array.tolist()
    try:
        return values.to_pylist() if hasattr(values, "to_pylist") else list(values)
    except TypeError:
        raise TypeError(f"{where}: {values!r} is no list of {what}") from None


# ---- tokens


def tokens(sequences: Any, padding: Any) -> Tokens:
    """Tokens of whatever users have."""
    array = array_of(sequences)
    if array is None:
        rows: Any = [_row(row, i, "tokens") for i, row in enumerate(_rows(sequences, "tokens"))]
    elif _checked(array, "tokens").dtype.kind == "f":
        if array.ndim != 3:
            raise MonolayerError(f"an array of floats of shape {array.shape}; give [sequences, tokens, d], or a list of [tokens, d]")
        rows = list(array)
    elif array.ndim != 2:
        raise MonolayerError(f"an array of {array.dtype} of shape {array.shape}; give [sequences, tokens]")
    elif array.dtype.kind in "iu" and padding is None:
        lengths = [array.shape[1]] * len(array)
        return Tokens(_int64(array.ravel()), lengths, lengths)
    else:
        rows = array.tolist()
    kind = next((_kind_of_row(row, i) for i, row in enumerate(rows) if len(row)), "words")
    if kind == "vectors":
        if padding is not None:
            raise MonolayerError("`padding` is for words and ids; give vectors as a list of arrays [tokens, d]")
        flat = _vectors(rows)
        return Tokens(flat, [len(row) for row in rows], [len(row) for row in rows])
    for i, row in enumerate(rows):
        if len(row) and (found := _kind_of_row(row, i)) != kind:
            raise MonolayerError(f"sequence {i + 1}: {found} after {kind}; give one kind")
    padded = [len(row) for row in rows]
    if padding is not None:
        rows = _unpadded(rows, padding)
    words = [word for row in rows for word in row]
    return Tokens(_integers(words, rows, "the id") if kind == "ids" else words, [len(row) for row in rows], padded)


def _kind_of_row(row: Any, i: int) -> str:
    """What the tokens of a sequence are, all of them: "words", "ids" or "vectors"."""
    if isinstance(row, np.ndarray):
        return "vectors"
    types = set(map(type, row))
    if types == {str}:
        return "words"
    if types == {int}:
        return "ids"
    kinds = [_kind(token, i, t) for t, token in enumerate(row)]
    other = next((t for t, kind in enumerate(kinds) if kind != kinds[0]), None)
    if other is not None:
        raise MonolayerError(f"sequence {i + 1}: {kinds[other]} among {kinds[0]}, at token {other + 1}; give one kind")
    return kinds[0]


def _kind(token: Any, i: int, t: int) -> str:
    if isinstance(token, str):
        return "words"
    if isinstance(token, (int, np.integer)) and not isinstance(token, (bool, np.bool_)):
        return "ids"
    array = array_of(token)
    if isinstance(token, (list, tuple)) or (array is not None and array.ndim == 1 and array.dtype.kind in "fiu"):
        return "vectors"
    raise TypeError(f"sequence {i + 1}, token {t + 1}: {token!r} is neither a word, an id nor a vector")


def _unpadded(rows: list[list], padding: Any) -> list[list]:
    """Sequences without the padding at their ends."""
    cut = []
    for i, row in enumerate(rows):
        keep = len(row)
        while keep > 0 and row[keep - 1] == padding:
            keep -= 1
        if keep == 0 and row:
            raise MonolayerError(f"sequence {i + 1}: nothing but padding; leave it out")
        if padding in row[:keep]:
            at = row.index(padding) + 1
            raise MonolayerError(f"sequence {i + 1}: the padding {padding!r} at token {at}, before other tokens; only padding at the end is cut off")
        cut.append(row[:keep])
    if rows and all(len(a) == len(b) for a, b in zip(rows, cut)):
        raise MonolayerError(f"no sequence ends with the padding {padding!r}; leave `padding` out, or give the one that is there")
    return cut


def _vectors(rows: list) -> np.ndarray:
    """All vectors below each other, [tokens, d]. One array is not copied."""
    found: list[np.ndarray] = []
    for i, row in enumerate(rows):
        try:
            arrays = row if isinstance(row, np.ndarray) else [x if array_of(x) is None else array_of(x) for x in row]
            vectors = np.asarray(arrays, dtype=np.float64)
        except (ValueError, TypeError, OverflowError):
            vectors = np.empty(0)
        if vectors.ndim != 2 or (found and vectors.shape[1] != found[0].shape[1]):
            like = f"like the first sequence, [tokens, {found[0].shape[1]}]" if found else "[tokens, d]"
            raise MonolayerError(f"sequence {i + 1}: give vectors of one dimension, {like}")
        if not np.isfinite(vectors).all():
            token = int(np.argwhere(~np.isfinite(vectors))[0][0])
            raise MonolayerError(f"sequence {i + 1}, token {token + 1}: {vectors[token].tolist()}; give finite numbers, not nan or inf")
        found.append(vectors)
    return np.ascontiguousarray(found[0] if len(found) == 1 else np.concatenate(found))


def _integers(values: list, rows: list, what: str) -> np.ndarray:
    try:
        return np.array(values, dtype=np.int64)
    except OverflowError:
        big = next((i, x) for i, row in enumerate(rows) for x in row if not -(2**63) <= x < 2**63)
        raise MonolayerError(f"sequence {big[0] + 1}: {what} {big[1]} does not fit 64 bits; give it as a word") from None


def _int64(array: np.ndarray) -> np.ndarray:
    if array.dtype == np.uint64 and array.size and array.max() >= 2**63:
        raise MonolayerError(f"the integer {array.max()} does not fit 64 bits with a sign; give words")
    return np.ascontiguousarray(array, dtype=np.int64)


# ---- labels


def labels(values: Any, lengths: list[int], padded: list[int], label_at: str) -> tuple[Any, str | None, bool]:
    """Labels of whatever users have: flat, what they are ("int", "bool" or None), and whether there was one per sequence."""
    if label_at not in ("all", "first", "last"):
        raise MonolayerError(f"label_at {label_at!r}; give \"all\", \"first\" or \"last\"")
    array = array_of(values)
    if array is not None:
        kind = _checked(array, "labels").dtype.kind
        if array.ndim not in ((3,) if kind == "f" else (1, 2)):
            give = "[sequences, tokens, k]; integers for classes" if kind == "f" else "[sequences, tokens] or [sequences]"
            raise MonolayerError(f"labels of dtype {array.dtype} and shape {array.shape}; give {give}")
    rows: Any = _rows(values, "labels") if array is None else list(array) if array.dtype.kind == "f" else array.tolist()
    if len(rows) != len(lengths):
        raise MonolayerError(f"{len(lengths)} sequences with labels of {len(rows)}; give labels for every sequence")
    per_sequence = bool(rows) and all(_is_class(row) for row in rows)
    if per_sequence:
        rows = [_spread(label, n, label_at) for label, n in zip(rows, lengths)]
    else:
        rows = [_row(row, i, "labels") for i, row in enumerate(rows)]
        for i, (row, n, whole) in enumerate(zip(rows, lengths, padded)):
            if len(row) not in (n, whole):
                raise MonolayerError(f"sequence {i + 1}: {whole} tokens with {len(row)} labels; give a label for every token")
        rows = [row[:n] for row, n in zip(rows, lengths)]
    if rows and any(_is_vector(row) for row in rows):
        return _vectors(rows), None, False
    flat = [label for row in rows for label in row]
    return *_classes(flat, rows), per_sequence


def _is_vector(row: Any) -> bool:
    if isinstance(row, np.ndarray):
        return True
    first = row[0] if len(row) else None
    return isinstance(first, (list, tuple)) or array_of(first) is not None


def _is_class(value: Any) -> bool:
    return value is None or isinstance(value, (str, int, np.integer, np.bool_)) or _is_missing(value)


def _is_missing(value: Any) -> bool:
    """None, nan, and what pandas has for a missing value."""
    if value is None or type(value).__name__ in ("NAType", "NaTType"):
        return True
    return isinstance(value, (float, np.floating)) and bool(np.isnan(value))


def _classes(flat: list, rows: list) -> tuple[Any, str | None]:
    """Names, None where any will do; or integers, -100 there. All of one kind."""
    types = set(map(type, flat))
    if types <= {str, type(None)} and str in types:
        return flat, None
    if types == {int}:
        return _integers(flat, rows, "the label"), "int"
    kinds: set[str] = set()
    for i, row in enumerate(rows):
        for t, label in enumerate(row):
            kinds.add(_kind_of_label(label, i, t))
            if len(kinds - {"free"}) > 1:
                raise MonolayerError(f"sequence {i + 1}, token {t + 1}: the label {label!r} among {' and '.join(sorted(kinds - {'free'}))}; give one kind")
    if "int" in kinds:
        ints = [FREE if _is_missing(label) else int(label) for label in flat]
        return _integers(ints, [[FREE if _is_missing(x) else int(x) for x in row] for row in rows], "the label"), "int"
    names = [None if _kind_of_label(label, 0, 0) == "free" else str(label) for label in flat]
    return names, "bool" if "bool" in kinds else None


def _kind_of_label(label: Any, i: int, t: int) -> str:
    if isinstance(label, (bool, np.bool_)):
        return "bool"
    if isinstance(label, str):
        return "names"
    if isinstance(label, (int, np.integer)):
        return "free" if label == FREE else "int"
    if _is_missing(label):
        return "free"
    help = "; integers for classes: int(label)" if isinstance(label, (float, np.floating)) else ""
    raise TypeError(f"sequence {i + 1}, token {t + 1}: the label {label!r} is neither a name, an integer, None nor a vector{help}")


def _spread(label: Any, n: int, at: str) -> list:
    """The one label of a sequence at the tokens that get it."""
    if at == "all":
        return [label] * n
    row = [None] * n
    if n:
        row[0 if at == "first" else -1] = label
    return row


def surrogate(tokens: Tokens, flat: Any) -> str:
    """Where the half of a character is that no file can hold."""
    ends = np.cumsum(tokens.lengths)
    for what, words in (("token", tokens.flat), ("label", flat)):
        for t, word in enumerate(words if isinstance(words, list) else []):
            if isinstance(word, str) and any("\ud800" <= letter <= "\udfff" for letter in word):
                i = int(np.searchsorted(ends, t, side="right"))
                return f"sequence {i + 1}: the {what} {word!r} holds half of a surrogate pair, which UTF-8 cannot write"
    return "a token or label that UTF-8 cannot write"
