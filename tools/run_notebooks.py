"""Runs the notebooks of python/notebooks without Jupyter: python tools/run_notebooks.py [--write] [FILE...]

Each notebook runs in a process of its own, in its folder, and must print what is stored in it; --write stores what it prints.
A notebook names the packages it needs beside NumPy in its metadata, {"monolayer": {"needs": ["torch"]}}. Where one is missing
the notebook is skipped, and said. Exit code 1 if a cell fails or prints something else. Needs the package.
"""
import ast
import contextlib
import importlib.util
import io
import json
import subprocess
import sys
import traceback
from pathlib import Path

FOLDER = Path(__file__).resolve().parent.parent / "python/notebooks"


def read(path: Path) -> dict:
    return json.loads(path.read_text(encoding="utf-8"))


def missing(notebook: dict) -> list[str]:
    """The packages that a notebook needs and that are not installed."""
    needs = notebook["metadata"].get("monolayer", {}).get("needs", [])
    return [name for name in needs if importlib.util.find_spec(name) is None]


def cell_output(source: str, names: dict) -> list[dict]:
    """What a cell prints, and the value of its last expression, as Jupyter stores them."""
    tree, printed, outputs = ast.parse(source), io.StringIO(), []
    last = tree.body.pop() if tree.body and isinstance(tree.body[-1], ast.Expr) and not source.rstrip().endswith(";") else None
    with contextlib.redirect_stdout(printed):
        exec(compile(tree, "<cell>", "exec"), names)
        value = None if last is None else eval(compile(ast.Expression(last.value), "<cell>", "eval"), names)
    if printed.getvalue():
        outputs.append({"name": "stdout", "output_type": "stream", "text": printed.getvalue().splitlines(keepends=True)})
    if value is not None:
        data = {"text/plain": repr(value).splitlines(keepends=True)}
        outputs.append({"data": data, "execution_count": None, "metadata": {}, "output_type": "execute_result"})
    return outputs


def run(path: Path) -> None:
    """In a process of its own: prints the outputs of all code cells as JSON, or the failure of one."""
    cells = [cell for cell in read(path)["cells"] if cell["cell_type"] == "code"]
    names: dict = {"__name__": "__main__"}
    found = []
    for number, cell in enumerate(cells, 1):
        try:
            found.append(cell_output("".join(cell["source"]), names))
        except Exception:
            print(json.dumps({"failed": number, "why": traceback.format_exc()}))
            return
    print(json.dumps({"outputs": found}))


def text(outputs: list[dict]) -> str:
    return "\n".join("".join(output.get("text") or output["data"]["text/plain"]) for output in outputs)


def check(path: Path, write: bool = False) -> str | None:
    """What is wrong with a notebook; None if nothing is."""
    notebook = read(path)
    program = [sys.executable, "-W", "ignore", str(Path(__file__).resolve()), "--one", str(path)]
    done = subprocess.run(program, cwd=path.parent, capture_output=True, text=True, encoding="utf-8")
    try:
        result = json.loads(done.stdout.splitlines()[-1])
    except (IndexError, ValueError):
        return f"it ended with code {done.returncode}: {done.stderr}"
    if "failed" in result:
        return f"cell {result['failed']}: {result['why']}"
    cells = [cell for cell in notebook["cells"] if cell["cell_type"] == "code"]
    if write:
        for cell, outputs in zip(cells, result["outputs"], strict=True):
            cell["outputs"] = outputs
        path.write_text(json.dumps(notebook, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
        return None
    for number, (cell, outputs) in enumerate(zip(cells, result["outputs"], strict=True), 1):
        if text(cell["outputs"]) != text(outputs):
            return f"cell {number} prints\n{text(outputs)}\nand not\n{text(cell['outputs'])}"
    return None


def main() -> int:
    arguments = sys.argv[1:]
    if arguments[:1] == ["--one"]:
        run(Path(arguments[1]))
        return 0
    write = "--write" in arguments
    paths = [Path(x).resolve() for x in arguments if x != "--write"] or sorted(FOLDER.glob("*.ipynb"))
    wrong = 0
    for path in paths:
        absent = missing(read(path))
        why = None if absent else check(path, write)
        wrong += why is not None
        print(f"{path.name}: " + (f"SKIPPED, it needs {', '.join(absent)}" if absent else why or "ok"))
    return int(wrong > 0)


if __name__ == "__main__":
    sys.exit(main())
