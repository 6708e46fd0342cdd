"""The examples in docstrings know the package by its name; modules that need a package which is not there are left out."""
import importlib.util

import pytest

import monolayer

collect_ignore = [
    f"monolayer/{name}.py"
    for name, needs in (("torch", "torch"), ("lens", "transformer_lens"), ("cluster", "distributed"))
    if importlib.util.find_spec(needs) is None
]


@pytest.fixture(autouse=True)
def _package(doctest_namespace):
    doctest_namespace["monolayer"] = monolayer
