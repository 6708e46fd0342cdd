"""`memorize` on a Dask cluster: the stages of `monolayer memorize --effort fast` as tasks, and the same bytes.

>>> from dask.distributed import Client                            # doctest: +SKIP
>>> report = monolayer.cluster.memorize("corpus-*.conll", Client("scheduler:8786"), out="model")  # doctest: +SKIP

Files are read by workers, in pieces, and stay there. Dask keeps them, moves them, writes them to disk where memory is short,
and computes again what is lost with a worker. The process that calls has the contexts of ambiguous words and the model.
"""
from __future__ import annotations

import glob
import os
import sys
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from . import _native
from ._native import MonolayerError

try:
    import dask
    import distributed
except ImportError as error:  # pragma: no cover
    raise ImportError("monolayer.cluster needs Dask: pip install monolayer[cluster]") from error

__all__ = ["data", "memorize", "predict"]

#: Bytes of a piece of a file, at most about.
PIECE = 8 << 20
#: So many results become one at a time.
FAN_IN = 8

Files = str | os.PathLike | Iterable[str | os.PathLike]


class TaskError(Exception):
    """What monolayer could not do in a task; unlike its own exceptions it travels between processes."""


def memorize(
    files: Files, client: distributed.Client, out: str | os.PathLike, *, piece: int = PIECE,
    on_progress: Callable[[str], None] | None = None, **options: Any,
) -> dict:
    """Files of words with class labels into a model directory, the same to the byte as that of
    `monolayer memorize FILE --effort fast --memory 512 --unchecked --out DIR` for all of them in one file.

    `files` is a path, a pattern such as "part-*.conll.gz", or a list of these, in order; workers must see them under the same
    names. CoNLL columns and JSON lines are cut into pieces of about `piece` bytes; all other files are read as a whole, one
    worker each. Options are those of `monolayer.memorize`: seed, candidates, precision, positions, mask, ... `on_progress`
    hears a line now and then, at least every two seconds; without one they go to stderr.

    The result says what was memorized, and for each stage its seconds, tasks, and the bytes that came back from workers.
    """
    if "effort" in options or "method" in options:
        raise TypeError("a cluster runs `effort` fast and `method` gated; leave them out")
    work = _Work(client, on_progress)
    paths = _paths(files)
    summary, shards = _numbered(work, paths, piece)
    tokens, (sequences, words, labels) = _native.cluster_counts(summary)
    engine = _Engine(work, shards)
    try:
        model = _native.cluster_compile(str(paths[0]), summary, engine, work.alone, **options)
    except TaskError as error:
        raise MonolayerError(str(error)) from None
    with work.stage("saving"):
        model.save(Path(out))
    counts = model.counts
    assert counts is not None, "a compiled model has counts"
    right, possible, proved = counts
    return {
        "out": os.fspath(out), "tokens": sum(tokens), "sequences": sequences, "words": words, "labels": labels,
        "right": right, "possible": possible, "proved": proved, "shards": len(tokens), "largest_shard": max(tokens),
        "mean_shard": sum(tokens) / len(tokens), "seconds": work.seconds(), "stages": work.stages,
    }


def data(files: Files, client: distributed.Client, *, piece: int = PIECE, on_progress: Callable[[str], None] | None = None) -> dict:
    """How many tokens, sequences, words and labels files have."""
    work = _Work(client, on_progress)
    summary, _ = _read(work, _paths(files), piece)
    tokens, (sequences, words, labels) = _native.cluster_counts(summary)
    return {"tokens": sum(tokens), "sequences": sequences, "words": words, "labels": labels, "seconds": work.seconds(), "stages": work.stages}


def predict(directory: str | os.PathLike, files: Files, client: distributed.Client, *, on_progress: Callable[[str], None] | None = None) -> list:
    """The labels of each file, as `monolayer.load(directory).predict(monolayer.read(file))` gives them, a task per file. Workers
    must see the directory."""
    work = _Work(client, on_progress)
    with work.stage("predicting") as gather:
        return gather(client.map(_predict_file, _paths(files), directory=Path(directory), pure=False))


def _paths(files: Files) -> list[Path]:
    """The files, in order; those of a pattern by name."""
    given = [files] if isinstance(files, (str, os.PathLike)) else list(files)
    paths: list[Path] = []
    for name in (str(os.fspath(file)) for file in given):
        found = sorted(glob.glob(name)) if glob.has_magic(name) and not os.path.exists(name) else [name]
        if not found:
            raise MonolayerError(f"no file is named {name!r}; give files that are there")
        paths += map(Path, found)
    if not paths:
        raise MonolayerError("no files; give at least one")
    return paths


def _read(work: _Work, paths: list[Path], piece: int) -> tuple[Any, list[distributed.Future]]:
    """The summary of all shards, and the shards, on the workers."""
    client = work.client
    try:
        jobs: list[tuple[Path, tuple[int, int] | None]] = []
        for path in paths:
            parts = _native.cluster_pieces(path, piece)
            # A file in one piece is read as the command line reads it.
            jobs += [(path, part) for part in parts] if len(parts) > 1 else [(path, None)]
        for whole in (False, True):
            if whole:
                jobs = [(path, None) for path in paths]
            with work.stage("reading") as gather:
                shards = client.map(_read_shard, *zip(*jobs), pure=False, retries=2)
                summaries = _tree(client, "summary", client.map(_summary, shards, pure=False))
                found = _native_merge("summary", gather(summaries))
            if found is not None:
                return found, shards
        raise MonolayerError("a file that cannot be read in pieces or as a whole")
    except TaskError as error:
        raise MonolayerError(str(error)) from None


def _numbered(work: _Work, paths: list[Path], piece: int) -> tuple[Any, list[distributed.Future]]:
    """The same with the numbers of all words and labels together."""
    summary, shards = _read(work, paths, piece)
    tokens, _ = _native.cluster_counts(summary)
    with work.stage("numbering") as gather:
        names = work.hold(_native.cluster_names(summary))
        first = [sum(tokens[:i]) for i in range(len(tokens))]
        numbered = work.client.map(_number, shards, first, names=names, pure=False)
        del shards
        gather(numbered, results=False)
    return summary, numbered


class _Work:
    """A client, and what was done with it so far."""

    def __init__(self, client: distributed.Client, on_progress: Callable[[str], None] | None):
        self.client, self.start, self.spoken = client, time.monotonic(), 0.0
        self.on_progress = on_progress or (lambda line: print(line, file=sys.stderr, flush=True))
        self.stages: list[dict] = []
        self.busy: str | None = None

    def seconds(self) -> float:
        return time.monotonic() - self.start

    def say(self, what: str, every: float = 2.0) -> None:
        """A line, unless one came just before."""
        if self.seconds() - self.spoken >= every:
            self.spoken = self.seconds()
            self.on_progress(f"monolayer: {what}, {self.spoken:.1f} s")

    def alone(self, done: int, total: int) -> None:
        """Heard while the driver works: it searches, or makes units for words."""
        if self.busy is None:
            self.say(f"searching, {done:,} of {total:,} projections" if done < total else "making units", 1.5)

    def stage(self, name: str) -> _Stage:
        return _Stage(self, name)

    def hold(self, request: Any) -> distributed.Future:
        """Bytes that many tasks need, as the result of a task: so they are there again after a worker is lost."""
        return self.client.submit(_hold, request, pure=False)


class _Stage:
    """Waits for tasks, says how many are done, and notes what they took."""

    def __init__(self, work: _Work, name: str):
        self.work, self.name = work, name
        self.note: dict[str, Any] = {"stage": name, "seconds": 0.0, "tasks": 0, "bytes": 0}

    def __enter__(self) -> _Stage:
        self.start, self.work.busy = time.monotonic(), self.name
        # Requests are part of the graph, so that they outlive workers.
        self.config = dask.config.set({"distributed.admin.large-graph-warning-threshold": "4GB"})
        self.work.say(self.name, 0.0)
        return self

    def __call__(self, futures: list[distributed.Future], results: bool = True) -> list:
        self.note["tasks"] += len(futures)
        while any(not future.done() for future in futures):
            try:
                distributed.wait(futures, timeout=1.0)
            except (TimeoutError, distributed.TimeoutError):
                done = sum(future.done() for future in futures)
                self.work.say(f"{self.name}, {done:,} of {len(futures):,} tasks", 1.0)
        if not results:
            for future in futures:
                if future.status == "error":
                    future.result()
            return []
        found = self.work.client.gather(futures)
        self.note["bytes"] += sum(getattr(value, "nbytes", 0) for value in found)
        return found

    def __exit__(self, *_: Any) -> None:
        self.config.__exit__(None, None, None)
        self.note["seconds"] = time.monotonic() - self.start
        self.work.stages.append(self.note)
        self.work.busy = None


class _Engine:
    """Runs tasks over shards for the compiler."""

    def __init__(self, work: _Work, shards: list[distributed.Future]):
        self.work, self.client, self.shards = work, work.client, shards

    def workers(self) -> int:
        return max(1, sum(self.client.nthreads().values()))

    def each_shard(self, name: str, request: Any, own: list, shrinks: bool) -> list:
        with self.work.stage(name) as gather:
            request = self.work.hold(request)
            found = self.client.map(_task, self.shards, own or [None] * len(self.shards), name=name, request=request, pure=False)
            return gather(_tree(self.client, name, found) if shrinks else found)

    def shuffle(self, request: Any, parts: int) -> list:
        with self.work.stage("contexts") as gather:
            splits = self.client.map(_split, self.shards, request=self.work.hold(request), pure=False)
            lists = [self.client.map(_part, splits, [j] * len(splits), pure=False) for j in range(parts)]
            found = [self.client.submit(_resolve, of_part, pure=False) for of_part in lists]
            del splits, lists
            results = gather(found)
            sizes = [size for _, size in results]
            gather.note["bytes"] += sum(array.nbytes for array, _ in results)
            gather.note |= {"shuffled": sum(sizes), "largest": max(sizes), "mean": sum(sizes) / len(sizes)}
            return [array for array, _ in results]


def _tree(client: distributed.Client, name: str, parts: list[distributed.Future]) -> list[distributed.Future]:
    """Results of neighbors as one, until few are left: they become smaller before they travel."""
    while len(parts) > FAN_IN:
        groups = [parts[i : i + FAN_IN] for i in range(0, len(parts), FAN_IN)]
        parts = [client.submit(_native_merge, name, group, pure=False) for group in groups]
    return parts


# What workers do.


def _said(function: Callable, *arguments: Any) -> Any:
    try:
        return function(*arguments)
    except MonolayerError as error:
        raise TaskError(str(error)) from None


def _hold(request: Any) -> Any:
    return request


def _read_shard(path: Path, part: tuple[int, int] | None) -> Any:
    return _said(_native.cluster_read, path, part)


def _summary(shard: Any) -> Any:
    return None if shard is None else _said(_native.cluster_summary, shard)


def _native_merge(name: str, parts: list) -> Any:
    return None if any(part is None for part in parts) else _said(_native.cluster_merge, name, parts)


def _number(shard: Any, first: int, names: Any) -> Any:
    return _said(_native.cluster_number, shard, names, first)


def _task(shard: Any, own: Any, name: str, request: Any) -> Any:
    return _said(_native.cluster_task, name, request, shard, own)


def _split(shard: Any, request: Any) -> list:
    return _said(_native.cluster_split, request, shard)


def _part(splits: list, j: int) -> Any:
    return splits[j]


def _resolve(parts: list) -> tuple[Any, int]:
    return _said(_native.cluster_resolve, parts), sum(part.nbytes for part in parts)


def _predict_file(path: Path, directory: Path) -> list:
    import monolayer

    return _said(lambda: monolayer.load(directory).predict(monolayer.read(path)))
