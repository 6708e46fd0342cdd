"""Stubs say what is compiled, every public name has a docstring and types, and mypy agrees."""
import ast
import importlib.util
import inspect
import subprocess
import sys
from pathlib import Path

import pytest

import monolayer
from monolayer import _native

PACKAGE = Path(__file__).resolve().parents[1] / "monolayer"
STUB = ast.parse((PACKAGE / "_native.pyi").read_text(encoding="utf-8"))


def parameters(function: ast.FunctionDef) -> list[str]:
    given = function.args
    names = [x.arg for x in (*given.posonlyargs, *given.args, *given.kwonlyargs)] + [x.arg for x in (given.vararg, given.kwarg) if x]
    return [name for name in names if name not in ("self", "cls")]


def test_the_stub_has_what_is_compiled():
    in_stub = {node.name for node in STUB.body if isinstance(node, (ast.FunctionDef, ast.ClassDef))}
    assert in_stub == {name for name in dir(_native) if not name.startswith("__")}


def test_parameters_of_the_stub_are_those_of_what_is_compiled():
    compared = 0
    for node in STUB.body:
        if isinstance(node, ast.FunctionDef):
            assert parameters(node) == list(inspect.signature(getattr(_native, node.name)).parameters), node.name
            compared += 1
        if isinstance(node, ast.ClassDef) and node.name != "MonolayerError":
            kind = getattr(_native, node.name)
            members = {x.name: x for x in node.body if isinstance(x, ast.FunctionDef)}
            assert set(members) - {"__init__"} == {name for name in dir(kind) if not name.startswith("_")}, node.name
            for name, member in members.items():
                if name != "__init__" and not member.decorator_list:
                    found = [x for x in inspect.signature(getattr(kind, name)).parameters if x != "self"]
                    assert parameters(member) in (found, [*found]) or "options" in parameters(member), (node.name, name)
                    compared += 1
    assert compared > 10


@pytest.mark.parametrize("name", monolayer.__all__)
def test_public_names_are_explained(name):
    thing = getattr(monolayer, name)
    assert inspect.getdoc(thing)
    if inspect.isfunction(thing):
        signature = inspect.signature(thing)
        assert signature.return_annotation is not signature.empty, name
        assert all(x.annotation is not x.empty for x in signature.parameters.values()), name
    if inspect.isclass(thing):
        for member, value in vars(thing).items():
            if not member.startswith("_") and (inspect.isfunction(value) or isinstance(value, property)):
                assert inspect.getdoc(value), f"{name}.{member}"
    assert f"`{name}`" in monolayer.__doc__ or name in ("Approximation", "Compiled", "Dataset", "Model", "MonolayerError", "command")


def test_mypy():
    if importlib.util.find_spec("mypy") is None:
        pytest.skip("needs mypy: tools/python-extras")
    # PyTorch's modules have whatever attributes they are given; mypy knows no types for them.
    files = sorted(str(path) for path in PACKAGE.glob("*.py*") if path.suffix in (".py", ".pyi") and path.stem not in ("torch", "lens"))
    options = ["--no-error-summary", "--ignore-missing-imports", "--follow-imports=skip", "--check-untyped-defs", "--python-version=3.10"]
    done = subprocess.run([sys.executable, "-m", "mypy", *options, *files], capture_output=True, text=True, cwd=PACKAGE.parent)
    assert done.stdout == "" and done.returncode == 0, done.stdout + done.stderr
