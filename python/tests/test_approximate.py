"""Python functions, approximated with a constant: the bound is above what is measured."""
import numpy as np
import pytest

import monolayer

FUNCTIONS = [
    ("mean", lambda x: x.mean(1, keepdims=True) + 0 * x, 1.0),
    ("largest", lambda x: x.max(1, keepdims=True) + 0 * x, 1.0),
    ("difference", lambda x: x - x.mean(1, keepdims=True), 2.0),
    ("product", lambda x: np.prod(x, 1, keepdims=True) + 0 * x, 2.0),
    ("sine", lambda x: np.sin(x.sum(1, keepdims=True)) * np.ones_like(x), 2.0),
]


@pytest.mark.parametrize("name, f, constant", FUNCTIONS, ids=[name for name, _, _ in FUNCTIONS])
def test_bound_is_above_the_measurement(name, f, constant, tmp_path):
    model = monolayer.approximate(f, dim=1, length=2, grid=16, lipschitz=constant, out=tmp_path / name)
    assert model.measure(20_000) <= model.bound < 0.2
    assert str(constant) in model.condition
    assert "Lipschitz" in str(model.certificate["assumptions"])


def test_without_a_constant_nothing_is_certified(tmp_path):
    model = monolayer.approximate(FUNCTIONS[0][1], dim=1, length=2, grid=8, out=tmp_path / "model")
    assert model.bound is None and model.certificate is None and model.measure() < 0.1


def test_an_exception_of_the_function_is_heard(tmp_path):
    def broken(x):
        raise ZeroDivisionError("mine")

    with pytest.raises(ZeroDivisionError, match="mine"):
        monolayer.approximate(broken, dim=1, length=2, grid=4, lipschitz=1.0, out=tmp_path / "model")
    assert not (tmp_path / "model").exists()


def test_expression(tmp_path):
    model = monolayer.approximate("mean(x1)", dim=1, length=2, grid=8, out=tmp_path / "model")
    assert model.bound < 0.1 and monolayer.verify(model)["verdict"] == "verified"
