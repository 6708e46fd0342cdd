"""The notebooks print what is stored in them. After a change of the compiler: python tools/run_notebooks.py --write"""
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tools"))
import run_notebooks

NOTEBOOKS = sorted(run_notebooks.FOLDER.glob("*.ipynb"))


def test_there_are_six():
    assert len(NOTEBOOKS) == 6


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_notebook(path):
    notebook = run_notebooks.read(path)
    if absent := run_notebooks.missing(notebook):
        pytest.skip(f"needs {', '.join(absent)}: tools/python-extras")
    assert path.stat().st_size < 30_000
    assert run_notebooks.check(path) is None


def test_a_cell_that_fails_or_prints_something_else_is_said(tmp_path):
    def notebook(source, outputs):
        cell = {"cell_type": "code", "source": [source], "outputs": outputs}
        path = tmp_path / "x.ipynb"
        path.write_text(__import__("json").dumps({"cells": [cell], "metadata": {}}), encoding="utf-8")
        return path

    assert "ZeroDivisionError" in run_notebooks.check(notebook("1 / 0", []))
    assert "and not" in run_notebooks.check(notebook("print(1)", [{"text": ["2\n"]}]))
    assert run_notebooks.check(notebook("print(1)", [{"text": ["1\n"]}])) is None
    assert "ended with code" in run_notebooks.check(notebook("import os; os._exit(3)", []))
