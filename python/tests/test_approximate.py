"""Python functions, approximated with a constant: the bound is above what is measured."""
import numpy as np
import pytest

import monolayer

# Name, function, constant from sup norm to sup norm, dim, length, grid.
FUNCTIONS = [
    ("mean", lambda x: x.mean(1, keepdims=True) + 0 * x, 1.0, 1, 2, 16),
    ("largest", lambda x: x.max(1, keepdims=True) + 0 * x, 1.0, 1, 3, 8),
    ("difference", lambda x: x - x.mean(1, keepdims=True), 2.0, 1, 2, 16),
    ("product", lambda x: np.prod(x, 1, keepdims=True) + 0 * x, 2.0, 1, 2, 16),
    ("sine", lambda x: np.sin(x.sum(1, keepdims=True)) * np.ones_like(x), 2.0, 1, 2, 16),
    ("swapped coordinates", lambda x: x[:, :, ::-1] * 0.5 + 0.25 * x.min(1, keepdims=True), 0.75, 2, 2, 6),
]
BY_NAME = [pytest.param(*function, id=function[0]) for function in FUNCTIONS]


@pytest.mark.parametrize("name, f, constant, dim, length, grid", BY_NAME)
@pytest.mark.parametrize("p", [1.0, 2.0, 3.0])
def test_bound_is_above_the_measurement(name, f, constant, dim, length, grid, p):
    model = monolayer.approximate(f, dim, length, grid=grid, lipschitz=constant, p=p)
    batch = np.random.default_rng(7).random((20_000, length, dim))
    difference = np.abs(model(batch) - f(batch)) ** p
    measured = difference.reshape(len(batch), -1).sum(1).mean() ** (1 / p)
    assert 0 < measured <= model.bound < 0.35
    # The certificate says what the bound takes for granted; the checker knows that it cannot check it.
    assumed = model.certificate["assumptions"]["function"]
    assert all(f"Lipschitz with constant {constant:g}" in said and "equivariant" in said for said in (model.condition, assumed))
    assert "certified if" in repr(model)


def test_a_larger_constant_gives_a_larger_bound_and_an_epsilon_is_met():
    f = FUNCTIONS[0][1]
    bounds = [monolayer.approximate(f, grid=8, lipschitz=constant).bound for constant in (1.0, 2.0, 8.0)]
    assert bounds == sorted(bounds) and bounds[0] < bounds[2]
    model = monolayer.approximate(f, epsilon=0.05, lipschitz=1.0)
    assert model.measured <= model.bound <= 0.05


def test_the_function_is_called_on_batches():
    sizes = []

    def f(x):
        sizes.append(len(x))
        return x

    monolayer.approximate(f, dim=1, length=2, grid=32, lipschitz=1.0)
    assert sum(sizes) > 1000 and sum(sizes) / len(sizes) > 200


def test_the_same_bytes_as_one_sequence_at_a_time(tmp_path):
    """Batches are for speed: what is found does not depend on them."""
    for name in ("a", "b"):
        monolayer.approximate(FUNCTIONS[4][1], grid=8, lipschitz=2.0, out=tmp_path / name)
    for file in sorted((tmp_path / "a").iterdir()):
        assert file.read_bytes() == (tmp_path / "b" / file.name).read_bytes()


def test_without_a_constant_nothing_is_certified():
    model = monolayer.approximate(FUNCTIONS[0][1], grid=8)
    assert model.bound is None and model.certificate is None and model.measured < 0.1
    assert "no Lipschitz constant" in model.condition and "measured only" in repr(model)
    assert monolayer.verify(model)["verdict"] != "verified"


def test_torch_functions():
    torch = pytest.importorskip("torch")
    model = monolayer.approximate(lambda x: torch.tensor(x).mean(1, keepdim=True).expand(x.shape), grid=8, lipschitz=1.0)
    assert model.measured <= model.bound


def broken(x):
    raise ZeroDivisionError("mine")


def broken_later(x):
    return broken(x) if len(x) > 300 else x


REFUSED = {
    "an exception": (broken, dict(lipschitz=1.0), ZeroDivisionError, "mine"),
    "an exception in the end": (broken_later, dict(lipschitz=1.0, grid=64), ZeroDivisionError, "mine"),
    "another shape": (lambda x: x[:, :1], dict(lipschitz=1.0), ValueError, "dimension d for every token"),
    "one number": (lambda x: 0.5, dict(lipschitz=1.0), ValueError, "dimension d"),
    "nan": (lambda x: x * np.nan, dict(lipschitz=1.0), ValueError, "finite"),
    "inf": (lambda x: x / 0.0, dict(lipschitz=1.0), ValueError, "finite"),
    "words": (lambda x: [["a"]], dict(lipschitz=1.0), ValueError, "string"),
    "too small a constant": (lambda x: 2 * x, dict(lipschitz=1.9), ValueError, "larger constant"),
    "a jump": (lambda x: (x > 0.5).astype(float), dict(lipschitz=10.0), ValueError, "larger constant"),
    "a negative constant": (lambda x: x, dict(lipschitz=-1.0), ValueError, "-1"),
    "no finite constant": (lambda x: x, dict(lipschitz=float("inf")), ValueError, "finite"),
    "not equivariant": (lambda x: np.cumsum(x, 1), dict(lipschitz=2.0), ValueError, "equivariant=False"),
    "not one by one": (lambda x: x - x.mean(0), dict(lipschitz=2.0), ValueError, "one by one"),
    "grid and epsilon": (lambda x: x, dict(lipschitz=1.0, epsilon=0.1), ValueError, "one of them"),
    "no cells": (lambda x: x, dict(lipschitz=1.0, grid=0), ValueError, "grid"),
    "too many cells": (lambda x: x, dict(lipschitz=1.0, grid=10**9), ValueError, "coarser"),
    "length 0": (lambda x: x, dict(lipschitz=1.0, length=0), ValueError, "length"),
    "p below 1": (lambda x: x, dict(lipschitz=1.0, p=0.5), ValueError, "at least 1"),
    "an unknown option": (lambda x: x, dict(lipschitz=1.0, magic=1), TypeError, "magic"),
    "an expression with a constant": ("mean(x1)", dict(lipschitz=1.0), TypeError, "lipschitz"),
    "an expression that is none": ("mean(", dict(), ValueError, "mean"),
}


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("name", REFUSED)
def test_refused(name, tmp_path):
    f, options, error, says = REFUSED[name]
    with pytest.raises(error, match=says):
        monolayer.approximate(f, **{"dim": 1, "length": 2, "grid": 4, "out": tmp_path / "model", **options})
    assert not (tmp_path / "model").exists()


def test_order_may_count():
    model = monolayer.approximate(lambda x: np.cumsum(x, 1) / 2, dim=1, length=2, grid=12, lipschitz=1.0, equivariant=False)
    assert model.measured <= model.bound < 0.2 and "equivariant" not in model.condition


def test_expression(tmp_path):
    model = monolayer.approximate("mean(x1)", dim=1, length=2, grid=8, out=tmp_path / "model")
    assert model.measured <= model.bound < 0.1 and model.condition is None
    assert monolayer.verify(model)["verdict"] == "verified"
    assert monolayer.approximate("-x1", dim=1, length=1, grid=4).bound < 0.2
