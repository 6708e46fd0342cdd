"""`monolayer.attention` against plain NumPy and PyTorch."""
import numpy as np
import pytest

import monolayer


def plain(keys, values, queries, causal=False):
    scores = np.multiply.outer(queries, keys)
    if causal:
        scores[np.triu_indices(len(keys), 1)] = -np.inf
    weights = np.exp(scores - scores.max(axis=1, keepdims=True))
    return weights @ values / weights.sum(axis=1)


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("n", [1, 7, 2000])
def test_as_plain_numpy(n, causal):
    keys, values, queries = np.random.default_rng(n).normal(size=(3, n))
    found = monolayer.attention(keys, values, queries, causal=causal)
    assert np.abs(found - plain(keys, values, queries, causal)).max() <= 1e-13 * np.abs(values).max()
    single = monolayer.attention(*(x.astype(np.float32) for x in (keys, values, queries)), causal=causal)
    assert single.dtype == np.float32 and np.abs(single - found).max() <= 1e-5


def test_rows_are_apart():
    keys, values, queries = np.random.default_rng(1).normal(size=(3, 2, 3, 50))
    found = monolayer.attention(keys, values, queries)
    assert found.shape == (2, 3, 50)
    assert (found[1, 2] == monolayer.attention(keys[1, 2], values[1, 2], queries[1, 2])).all()


def test_bad_input():
    with pytest.raises(ValueError, match="do not go together"):
        monolayer.attention([1.0, 2.0], [1.0], [1.0])
    with pytest.raises(ValueError, match="key 1"):
        monolayer.attention([1.0, np.nan], [1.0, 2.0], [1.0])
    assert (monolayer.attention([], [], [1.0, 2.0]) == 0).all()


@pytest.mark.parametrize("causal", [False, True])
def test_gradients_as_pytorch(causal):
    torch = pytest.importorskip("torch")
    for n in (5, 3000):
        numbers = np.random.default_rng(n).normal(size=(4, n))
        ours = [torch.tensor(x, requires_grad=True) for x in numbers[:3]]
        theirs = [torch.tensor(x, requires_grad=True) for x in numbers[:3]]
        upstream = torch.tensor(numbers[3])
        monolayer.attention(*ours, causal=causal).backward(upstream)
        scores = torch.outer(theirs[2], theirs[0])
        if causal:
            scores = scores.masked_fill(torch.ones_like(scores, dtype=torch.bool).triu(1), -torch.inf)
        (torch.softmax(scores, -1) @ theirs[1]).backward(upstream)
        for a, b in zip(ours, theirs):
            assert (a.grad - b.grad).abs().max() <= 1e-12 * b.grad.abs().max()
