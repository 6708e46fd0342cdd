"""The PyTorch module: fixtures, random models against numpy, models known by hand, files that must be refused."""
import json
import math
import shutil
import sys
from pathlib import Path

import pytest

torch = pytest.importorskip("torch")

import monolayer
import monolayer.torch

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tools"))
import random_model
import reference

FIXTURES = sorted(path.parent for path in (ROOT / "crates/monolayer/tests/fixtures").glob("*/expected.json"))
TOLERANCE = {torch.float32: 1e-5, torch.float64: 1e-12}


def scores(model, sequences):
    """What the model gives for each sequence, from one padded batch."""
    ids, mask = model.encode(sequences)
    return [y[:n] for y, n in zip(model(ids, mask), mask.sum(1).tolist())]


def assert_near(got, expected):
    """The error of a sequence relative to its largest output."""
    expected = torch.as_tensor(expected, dtype=torch.float64)
    assert got.shape == expected.shape
    error = ((got.double() - expected).abs().max() / expected.abs().max()).item()
    assert error <= TOLERANCE[got.dtype]


def test_there_are_fixtures():
    assert len(FIXTURES) >= 8


@pytest.mark.parametrize("directory", FIXTURES, ids=lambda path: path.name)
@torch.no_grad()
def test_fixture(directory):
    model = monolayer.torch.load(directory)
    lines = (directory / "data.jsonl").read_text(encoding="utf-8").splitlines()
    sequences = [json.loads(line)["tokens"] for line in lines]
    expected = json.loads((directory / "expected.json").read_text(encoding="utf-8"))
    for results in ([scores(model, [tokens])[0] for tokens in sequences], scores(model, sequences)):
        for got, outputs in zip(results, expected["outputs"], strict=True):
            assert_near(got, outputs)
    if "labels" in expected:
        assert model.predict(sequences) == expected["labels"]
        assert model.predict(sequences[-1]) == expected["labels"][-1]
    # Whatever padding holds, infinities included, no real token changes.
    for layer in (layer["attention"] for layer in model.layers if "attention" in layer):
        z = torch.randn(2, 6, model.config["d"], dtype=layer.w_q.dtype)
        real = torch.arange(6) < torch.tensor([[6], [4]])
        place, hostile = torch.arange(6).expand(2, 6), z.clone()
        hostile[1, 4:] = torch.inf
        assert torch.equal(layer(z, real, place)[real], layer(hostile, real, place)[real])


@torch.no_grad()
def test_random_models_against_numpy(tmp_path):
    compared = near_ties = 0
    for seed in range(60):
        directory = tmp_path / str(seed)
        data = random_model.make(directory, seed)
        sequences = [tokens if isinstance(tokens, list) else tokens.tolist() for tokens, _ in reference.read_data(data)]
        model, gaps = monolayer.torch.load(directory), []
        truth = reference.run(reference.read_model(directory, "f64"), sequences, gaps=gaps)
        for got, expected, gap in zip(scores(model, sequences), truth, gaps):
            if gap <= 10 * TOLERANCE[got.dtype]:  # another order of summation may choose another key
                near_ties += 1
            else:
                assert_near(got, expected)
                compared += 1
    assert compared > 20 * near_ties


# ---- models whose outputs are known by hand


def attention(kind="softmax", mask="none"):
    return {"attention": {"kind": kind, "heads": 1, "head_size": 1, "mask": mask}, "hidden": 0}


def by_hand(words=None, rows=None, **changes):
    """d = 1, and all numbers are 1."""
    config = {"d": 1, "max_length": None, "labels": None, "pre_feed_forward": None, "layers": [attention("hardmax")], **changes}
    masks = [None if rows is None else torch.tensor(rows, dtype=torch.uint8).numpy()] * len(config["layers"])
    model = monolayer.torch.Transformer(config, words, masks).double()
    model.load_state_dict({name: torch.ones_like(p) for name, p in model.state_dict().items()})
    return model


def test_hardmax_ties_share_equally():
    # 0 sees the mean, 2; the others see the largest, 4
    assert by_hand().predict([[0.0], [1.0], [3.0], [4.0]]).tolist() == [[2.0], [5.0], [7.0], [8.0]]
    assert by_hand().predict([[-1.0], [1.0], [1.0]]).tolist() == [[-2.0], [2.0], [2.0]]


def test_label_ties_go_to_the_lowest_index():
    assert by_hand(labels=["a", "b", "c"]).predict([[1.0], [-2.0]]) == ["a", "a"]


def test_causal():
    out = by_hand(layers=[attention(mask="causal")]).predict([[3.0], [0.0], [-3.0]])
    assert out[0].item() == 6.0 and math.isclose(out[1].item(), 1.5, abs_tol=1e-15)


MASKS = [
    ({"prefix": 2}, None, [[0, 1], [0, 1], [0, 1, 2]]),
    ({"band": [1, 0]}, None, [[0], [0, 1], [1, 2]]),
    ({"file": "mask.safetensors"}, [[1, 0, 1], [0, 1, 0], [1, 1, 1]], [[0, 2], [1], [0, 1, 2]]),
]


@pytest.mark.parametrize("mask, rows, seen", MASKS, ids=["prefix", "band", "matrix"])
def test_masks_show_what_they_say(mask, rows, seen):
    x = [[3.0], [0.0], [-3.0]]
    out = by_hand(rows=rows, layers=[attention(mask=mask)]).predict([x, x[:1]])  # the second with padding
    for t, places in enumerate(seen):
        alone = by_hand(layers=[attention()]).predict([x[i] for i in places])[places.index(t)]
        assert math.isclose(out[0][t].item(), alone.item(), abs_tol=1e-14)
    assert out[1].tolist() == [[6.0]]


def test_a_mask_for_fewer_tokens_is_an_error():
    with pytest.raises(ValueError, match="3 tokens, and the mask is for 1"):
        by_hand(rows=[[1]], layers=[attention(mask={"file": "mask.safetensors"})]).predict([[3.0], [0.0], [-3.0]])


START_MASKS = [("none", None), ("causal", None), ({"prefix": 0}, None), ({"band": [0, 0]}, None), ({"file": "mask.safetensors"}, [[1]])]


@pytest.mark.parametrize("mask, rows", START_MASKS)
def test_a_start_token_is_seen_and_not_given_back(mask, rows):
    """Behind 0 a token 1 sees weights 1 and e, whatever the mask."""
    model = by_hand(["a", "<s>"], rows, start="<s>", layers=[attention(mask=mask)])
    with torch.no_grad():
        model.embedding.weight.copy_(torch.tensor([[1.0], [0.0]]))
    out = model.predict([["a"], ["a"]])
    assert [y.shape for y in out] == [(1, 1), (1, 1)]
    assert math.isclose(out[0].item(), 1 + math.e / (1 + math.e), abs_tol=1e-14)


def test_a_start_token_takes_a_place():
    model = by_hand(["a"], start="a", max_length=2)
    assert model.predict(["a"]).shape == (1, 1)
    with pytest.raises(ValueError, match="3 tokens, the start token included"):
        model.predict(["a", "a"])


# ---- what is refused


def test_errors_name_what_is_wrong(tmp_path):
    directory = ROOT / "crates/monolayer/tests/fixtures/rank_one"
    model = monolayer.torch.load(directory)
    with pytest.raises(KeyError, match="never-seen"):
        model.predict(["never-seen"])
    with pytest.raises(ValueError, match="99 tokens"):
        model.predict(["the"] * 99)
    with pytest.raises(TypeError, match="the"):
        model.predict("the")
    copy = tmp_path / "copy"
    shutil.copytree(directory, copy)
    config = json.loads((copy / "config.json").read_text(encoding="utf-8"))
    config["layers"][0]["hidden"] += 1
    (copy / "config.json").write_text(json.dumps(config), encoding="utf-8")
    with pytest.raises(ValueError, match="layers.0.feed_forward.w1"):
        monolayer.torch.load(copy)


def test_models_are_read_or_refused_as_by_the_library():
    expected = json.loads((ROOT / "grammar/expected.json").read_text(encoding="utf-8"))["models"]
    for name, case in expected.items():
        directory = ROOT / "grammar/models" / name
        # Exact numbers are the library's alone: the numpy reference refuses them, too.
        if "numpy" in case.get("readers", []):
            monolayer.torch.load(directory)
        else:
            with pytest.raises(ValueError):
                monolayer.torch.load(directory)
    assert len(expected) > 100


# ---- saved


@pytest.mark.parametrize("directory", FIXTURES, ids=lambda path: path.name)
def test_saved_and_read_again(directory, tmp_path):
    model = monolayer.torch.load(directory)
    again = monolayer.torch.load(model.save(tmp_path / "model"))
    assert all(torch.equal(a, b) for a, b in zip(model.state_dict().values(), again.state_dict().values(), strict=True))
    with pytest.raises(FileExistsError):
        model.save(tmp_path / "model")


def test_what_cannot_be_saved_leaves_nothing(tmp_path):
    model = monolayer.torch.load(FIXTURES[0])
    with pytest.raises(ValueError, match="float16"):
        model.half().save(tmp_path / "half")
    model = monolayer.torch.load(FIXTURES[0])
    with torch.no_grad():
        next(model.parameters()).view(-1)[0] = torch.nan
    with pytest.raises(ValueError, match="not finite"):
        model.save(tmp_path / "nan")
    assert list(tmp_path.iterdir()) == []


def test_double_precision_is_saved_as_such(tmp_path):
    model = monolayer.memorize([["a", "b"], ["b", "b"]], [["X", "Y"], ["Z", "Z"]]).to_torch()
    saved = model.double().save(tmp_path / "model")
    assert monolayer.load(saved).config["dtype"] == "f64"
    assert monolayer.certify(saved, [["a", "b"], ["b", "b"]], [["X", "Y"], ["Z", "Z"]])["verdict"] == "verified"
