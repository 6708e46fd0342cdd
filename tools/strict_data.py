"""Datasets that are text, read strictly, and their canonical form: docs/format.md, "Datasets". Standard library only."""

import json
import math
import re
from pathlib import Path

from strict_files import read_json, refuse

LONGEST_LINE = 16 << 20


def lines_of(path):
    """(number, bytes) of each line, without LF or CRLF, without a byte order mark at the start of the file."""
    raw = Path(path).read_bytes().removeprefix(b"\xef\xbb\xbf")
    for number, line in enumerate(raw.split(b"\n"), 1):
        line = line.removesuffix(b"\r")
        if b"\0" in line or len(line) > LONGEST_LINE:
            refuse(f"{path}:{number}: a NUL byte, or a line longer than 16 MiB")
        yield number, line


def read_conll(path):
    """Columns split on spaces and tabs, token first, label last, a blank line between sequences: a list of (words, labels)."""
    sequences, rows, width = [], [], None

    def end():
        if rows:
            sequences.append(([row[0] for row in rows], [row[-1] for row in rows] if width > 1 else None))
        rows.clear()

    for number, line in lines_of(path):
        if line.startswith(b"-DOCSTART-") or not line.strip(b" \t"):
            end()
            continue
        try:
            text = line.decode()
        except UnicodeDecodeError:
            text = line.decode("latin-1")
        columns = re.split("[ \t]+", text.strip(" \t"))
        if width is None and line.startswith((b'{"tokens"', b'{"labels"')):
            refuse(f"{path}:{number}: JSON where columns were expected")
        width = len(columns) if width is None else width
        if len(columns) != width:
            refuse(f"{path}:{number}: {len(columns)} columns where the first token has {width}")
        rows.append(columns)
    end()
    return sequences or refuse(f"{path}: no tokens")


def read_json_lines(path):
    """One object per line: {"tokens": [...], "labels": [...]}, as a list of (tokens, labels); an integer stays one."""
    sequences, kinds = [], (set(), set())
    for number, line in lines_of(path):
        if not line.strip(b" \t\r"):
            continue
        place = f"{path}:{number}"
        entry = read_json(place, line)
        if not isinstance(entry, dict) or "tokens" not in entry or set(entry) - {"tokens", "labels"}:
            refuse(f"{place}: not an object of tokens and labels")
        tokens, labels = entry["tokens"], entry.get("labels")
        if not isinstance(tokens, list) or not tokens or ("labels" in entry and not isinstance(labels, list)):
            refuse(f"{place}: tokens and labels are lists, and there is at least one token")
        if labels is not None and len(labels) != len(tokens):
            refuse(f"{place}: {len(labels)} labels for {len(tokens)} tokens")
        kinds[0].update(kind_of(place, value) for value in tokens)
        kinds[1].update(kind_of(place, value) for value in labels or [] if value is not None)
        if any(len(kind) > 1 for kind in kinds) or (sequences and (sequences[0][1] is None) != (labels is None)):
            refuse(f"{place}: tokens, or labels, of two kinds, or labels on some lines only")
        sequences.append((tokens, labels))
    token, label = (next(iter(kind), None) for kind in kinds)
    if token is None:
        refuse(f"{path}: no sequence")
    if isinstance(label, int) and any(label is None for _, labels in sequences for label in labels):
        refuse(f"{path}: null among vectors")
    return [(with_floats(tokens), labels and with_floats(labels)) for tokens, labels in sequences]


def kind_of(place, value):
    """"string", "integer", the dimension of a vector, or None for null, which is no token."""
    if value is None or isinstance(value, str):
        return None if value is None else "string"
    if type(value) is int and -(2**63) <= value < 2**64:
        return "integer"
    if not isinstance(value, list) or not value or not all(type(x) in (int, float) for x in value):
        refuse(f"{place}: {value!r} is no word, class or vector")
    if not all(math.isfinite(x) for x in value):
        refuse(f"{place}: a number that is not finite")
    return len(value)


def with_floats(values):
    """Vectors with entries that are floats; adding 0 turns -0 into 0."""
    return [[float(x) + 0.0 for x in value] if isinstance(value, list) else value for value in values]


def is_free(label, columns=False):
    """Whether any label will do; `_` says so in columns."""
    return label is None or (type(label) is int and label == -100) or (columns and label == "_")


def canonical(sequences, columns=False):
    """The canonical form: a line of JSON per sequence; labels that may be anything are null."""
    text = ""
    for tokens, labels in sequences:
        entry = {"tokens": with_floats(tokens)}
        if labels is not None:
            entry["labels"] = [None if is_free(label, columns) else label for label in with_floats(labels)]
        text += json.dumps(entry, ensure_ascii=False, separators=(",", ":")) + "\n"
    return text
