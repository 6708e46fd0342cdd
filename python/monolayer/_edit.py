"""Edits of models: another label for a context, or data forgotten, with a statement of the difference that can be checked."""
from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ._commands import command
from ._data import dataset
from ._native import MonolayerError

if TYPE_CHECKING:
    from ._model import Model


@dataclass(frozen=True)
class Change:
    """Where labels can change: a word, its place (from 0; None without positions), the lowest and the highest context id, and the
    label before and after (None where it may be any)."""

    word: str
    place: int | None
    low: float
    high: float
    before: str | None
    after: str | None

    def __str__(self) -> str:
        place = "" if self.place is None else f" at place {self.place + 1}"
        labels = "the label may change" if self.after is None else f"{self.before} -> {self.after}"
        return f"{self.word}{place} with context id in [{self.low:.6g}, {self.high:.6g}]: {labels}"


class Difference:
    """How an edited model differs from the one before, over all sequences of its vocabulary: difference.json.

    At a (word, place) that no change names, all scores are equal numbers. Elsewhere labels change as stated at most, for context
    ids in the intervals. `verify()` has that checked by an independent program.
    """

    def __init__(self, stated: dict, before: "Model", after: "Model"):
        self.stated, self._before, self._after = stated, before, after
        self.changes = [
            Change(c["word"], c["place"], c["id"][0], c["id"][1], c.get("from"), c.get("to")) for c in stated["changes"]
        ]

    @property
    def arithmetic(self) -> str:
        """The arithmetic that it speaks of: "f32" or "f64"."""
        return self.stated["arithmetic"]

    def verify(self) -> dict:
        """The independent checker's verdict, from the files of both models alone: a dictionary with the "verdict"."""
        return command("verify", self._after.directory, "--against", self._before.directory)

    def __iter__(self) -> Iterator[Change]:
        return iter(self.changes)

    def __len__(self) -> int:
        return len(self.changes)

    def __repr__(self) -> str:
        shown = [str(change) for change in self.changes[:10]]
        more = [f"and {len(self) - 10} more"] if len(self) > 10 else []
        return "\n".join([f"Difference({len(self)} changes, {self.arithmetic})", *("  " + line for line in shown + more)])


def edit(model: "Model", edits: Any, data: Any, partial: bool) -> "Model":
    """See `Model.edit`."""
    rows = [_row(entry) for entry in (edits.items() if isinstance(edits, dict) else edits)]
    lines = "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)
    with tempfile.TemporaryDirectory(prefix="monolayer-") as folder:
        path = Path(folder, "edits.jsonl")
        path.write_text(lines, encoding="utf-8")
        after, report = _run(model, ["--edits", path], data)
    if report["refused"] and not partial:
        first = report["refused"][0]
        words = [f"[{word}]" if i == first["place"] else word for i, word in enumerate(first["tokens"])]
        more = f"; {len(report['refused']) - 1} more are refused" if len(report["refused"]) > 1 else ""
        apart = ""
        if first.get("distance_found") is not None:
            apart = f" (ids {first['distance_found']:.2e} apart, {first['distance_needed']:.2e} needed)"
        raise MonolayerError(f"{' '.join(words)} to {first['label']}: {first['why']}{apart}{more}; partial=True makes the others")
    after._edit_report = report
    return after


def forget(model: "Model", sequences: Any, data: Any, fresh: int | None) -> "Model":
    """See `Model.forget`."""
    forgotten = dataset(sequences)
    after, report = _run(model, ["--forget", forgotten, *([] if fresh is None else ["--fresh", fresh])], data)
    after._edit_report = report
    return after


def diff(before: "Model", after: "Model", data: Any) -> dict:
    """See `Model.diff`."""
    found = command("diff", before.directory, after.directory, *([] if data is None else [_source(data)]))
    found.pop("code")
    return found


def _run(model: "Model", options: list, data: Any) -> tuple["Model", dict]:
    from ._model import load

    kept = model._data if data is None else data
    folder = tempfile.TemporaryDirectory(prefix="monolayer-")
    out = Path(folder.name, "model")
    more = [] if kept is None else ["--data", _source(kept)]
    report = command("edit", model.directory, *options, *more, "--out", out)
    after = load(out) if out.exists() else load(model.directory)
    after._temporary, after._label_kind, after._before = folder, model._label_kind, model
    return after, report


def _source(data: Any) -> Any:
    """A file's name, or a dataset."""
    return data if isinstance(data, (str, os.PathLike)) else dataset(*data) if isinstance(data, tuple) else dataset(data)


def _row(entry: Any) -> dict:
    """One edit: (words, place, label), ((words, place), label) or a line of the command line, "May sails:1=DATE"."""
    if isinstance(entry, str):
        return {"set": entry}
    if isinstance(entry, dict):
        return entry
    parts = tuple(entry)
    if len(parts) == 2 and isinstance(parts[0], (tuple, list)) and len(parts[0]) == 2 and not isinstance(parts[0][0], str):
        parts = (*parts[0], parts[1])
    if len(parts) != 3 or isinstance(parts[0], str):
        raise TypeError(f"{entry!r} is no edit: give (words, place, label), the place from 0")
    words, place, label = parts
    return {"tokens": [str(word) for word in words], "place": int(place), "label": str(label)}
