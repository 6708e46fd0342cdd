"""The examples in docstrings know the package by its name."""
import pytest

import monolayer


@pytest.fixture(autouse=True)
def _package(doctest_namespace):
    doctest_namespace["monolayer"] = monolayer
