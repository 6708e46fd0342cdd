"""Commands of the command line, as functions: each runs in a process of its own and gives what `--json` prints."""
from __future__ import annotations

import json
import os
import subprocess
import sys
from typing import Any

from ._native import MonolayerError


def command(*arguments: Any, input: str | None = None) -> dict:
    """What `monolayer ARGUMENTS --json` prints, as a dictionary, with its exit code as "code".

    >>> monolayer.command("data", "task:parity:alphabet=2,length=3")["tokens"]
    24
    """
    words = [os.fspath(x) if isinstance(x, os.PathLike) else str(x) for x in arguments]
    program = [sys.executable, "-m", "monolayer", *words, "--json"]
    done = subprocess.run(program, input=input, stdout=subprocess.PIPE, text=True, encoding="utf-8")
    try:
        result = json.loads(done.stdout)
    except ValueError:
        raise MonolayerError(f"monolayer {' '.join(words)} ended with code {done.returncode}") from None
    if done.returncode == 2:
        raise MonolayerError(result.get("error") or str(result))
    result["code"] = done.returncode
    return result


def claims(*names: str, data: str | os.PathLike | None = None) -> list[dict]:
    """Every statement of the paper (or those whose id starts so), run: number, the formula as printed, verdict, evidence."""
    more = [] if data is None else ["--data", data]
    only = [word for name in names for word in ("--only", name)]
    return command("claims", *only, *more)["claims"]


def context(data: str | os.PathLike, scale: str = "tight", **options: Any) -> dict:
    """The contextual mapping of Theorem 2 alone, for a file or a task; scale: "tight", "certified" or "paper"."""
    return command("context", data, "--scale", scale, *flags(options))


def train(data: str | os.PathLike, out: str | os.PathLike, **options: Any) -> dict:
    """Trains the same architecture on a file; options are those of `monolayer train --help`, such as epochs=50."""
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
