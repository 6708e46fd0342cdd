"""A script written from help(monolayer.memorize) and nothing else, as a new user would."""
import pydoc

import numpy as np
import pytest

import monolayer

REVIEWS = [["a", "fine", "boat"], ["a", "poor", "boat"], ["fine", "weather"], ["poor", "weather", "today"]]
TAGS = [["DET", "ADJ", "N"], ["DET", "ADJ", "N"], ["ADJ", "N"], ["ADJ", "N", "ADV"]]


def test_script(tmp_path):
    tagger = monolayer.memorize(REVIEWS, TAGS, unknown=True, seed=4)
    assert (tagger.right, tagger.possible, tagger.certified, tagger.impossible) == (11, 11, 11, [])
    assert tagger.predict(["a", "fine", "submarine"])[:2] == ["DET", "ADJ"]
    assert tagger.score(REVIEWS, TAGS) == 1.0 and tagger.verify()["verdict"] == "verified"
    tagger.save(tmp_path / "tagger")
    again = monolayer.load(tmp_path / "tagger")
    assert again.predict(REVIEWS) == TAGS
    assert again.explain(REVIEWS[0])["tokens"][1]["label"] == "ADJ"
    assert "embedding.weight" in again.tensors() and again.names and again.certificate

    sentiment = monolayer.memorize(REVIEWS, ["+", "-", "+", "-"], label_at="last")
    assert [row[-1] for row in sentiment.predict(REVIEWS)] == ["+", "-", "+", "-"]

    batch = np.array([[4, 9, 9, 0], [9, 4, 0, 0]])
    parity = monolayer.memorize(batch, np.where(batch == 0, -100, batch % 2), padding=0)
    assert parity.predict([[4, 9, 9], [9, 4]]) == [[0, 1, 1], [1, 0]]

    points = np.random.default_rng(0).random((5, 3, 2))
    sums = points.sum(-1, keepdims=True)
    assert np.abs(np.stack(monolayer.memorize(points, sums).predict(points)) - sums).max() < 1e-6
    with pytest.raises(monolayer.MonolayerError, match="sequence 1"):
        monolayer.memorize([["a", "b"]], [["X"]])


def test_every_option_is_explained():
    text = pydoc.plain(pydoc.render_doc(monolayer.memorize))
    heads = {name.strip() for line in text.splitlines() if line.startswith("    ") and line[4:5] != " " for name in line.split(",")}
    parameters = set(__import__("inspect").signature(monolayer.memorize).parameters)
    assert parameters <= heads, parameters - heads
