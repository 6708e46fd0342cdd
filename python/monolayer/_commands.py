"""Commands of the command line, as functions: each runs in a process of its own and gives what `--json` prints."""
from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from ._data import Dataset
from ._native import MonolayerError


def command(*arguments: Any, input: str | None = None) -> dict:
    """What `monolayer ARGUMENTS --json` prints, as a dictionary, with its exit code as "code". A `Dataset` among the arguments
    is written to a file for it.

    >>> monolayer.command("data", "task:parity:alphabet=2,length=3")["tokens"]
    24
    """
    with ExitStack() as files:
        words = [_word(x, files) for x in arguments]
        # Before "--", if there is one: what follows is no option.
        end = words.index("--") if "--" in words else len(words)
        program = [sys.executable, "-m", "monolayer", *words[:end], "--json", *words[end:]]
        done = subprocess.run(program, input=input, stdout=subprocess.PIPE, text=True, encoding="utf-8")
    try:
        result = json.loads(done.stdout)
    except ValueError:
        raise MonolayerError(f"monolayer {' '.join(words)} ended with code {done.returncode}") from None
    if done.returncode == 2:
        raise MonolayerError(result.get("error") or str(result))
    result["code"] = done.returncode
    return result


def _word(argument: Any, files: ExitStack) -> str:
    if isinstance(argument, Dataset):
        path = Path(files.enter_context(tempfile.TemporaryDirectory(prefix="monolayer-")), "data.jsonl")
        argument.save(path)
        return str(path)
    return os.fspath(argument) if isinstance(argument, os.PathLike) else str(argument)


def claims(*names: str, data: Any = None) -> list[dict]:
    """Every statement of the paper (or those whose id starts so), run: number, the formula as printed, verdict, evidence.

    >>> [claim["verdict"] for claim in monolayer.claims("lemma-6")]
    ['holds']
    """
    more = [] if data is None else ["--data", data]
    only = [word for name in names for word in ("--only", name)]
    return command("claims", *only, *more)["claims"]


def context(data: str | os.PathLike | Dataset, scale: str = "tight", **options: Any) -> dict:
    """The contextual mapping of Theorem 2 alone, for a file, a task or a `Dataset`; scale: "tight", "certified" or "paper".

    >>> found = monolayer.context(monolayer.Dataset([["a", "b"], ["b", "b"]], [["X", "Y"], ["Z", "Z"]]))
    >>> found["log2_gap"] is not None
    True
    """
    return command("context", data, "--scale", scale, *flags(options))


def train(data: str | os.PathLike | Dataset, out: str | os.PathLike, **options: Any) -> dict:
    """Trains the same architecture on a file or a `Dataset`; options are those of `monolayer train --help`, such as
    epochs=50."""
    return command("train", data, "--out", out, *flags(options))


def flags(options: dict[str, Any]) -> list[str]:
    """Keywords as options of the command line: epochs=50 is --epochs 50, force=True is --force."""
    words: list[str] = []
    for name, value in options.items():
        flag = "--" + name.replace("_", "-")
        if value is True:
            words.append(flag)
        elif value is not False and value is not None:
            words += [flag, str(value)]
    return words
