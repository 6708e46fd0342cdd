"""Data as users have it, into models and back."""
import json

import numpy as np
import pytest

import monolayer
from conftest import LABELS, SENTENCES


def test_three_lines(model):
    assert model.predict(SENTENCES) == LABELS
    assert model.predict(SENTENCES[0]) == LABELS[0]
    assert model.certified == model.possible == 14
    assert model.verify()["verdict"] == "verified"


def test_saved_and_loaded(model, tmp_path):
    again = monolayer.load(model.save(tmp_path / "model"))
    assert again.predict(SENTENCES) == LABELS
    assert again.certificate["claims"][0]["right"] == 14
    assert monolayer.verify(again, SENTENCES, LABELS)["verdict"] == "verified"
    wrong = [["O"] * len(row) for row in LABELS]
    assert monolayer.verify(again, SENTENCES, wrong)["verdict"] == "refuted"


def test_same_bytes_as_the_command_line(tmp_path):
    data = monolayer.Dataset(SENTENCES, LABELS)
    data.save(tmp_path / "data.jsonl")
    monolayer.memorize(data, seed=3).save(tmp_path / "python")
    result = monolayer.command("memorize", tmp_path / "data.jsonl", "--seed", 3, "--out", tmp_path / "program")
    assert result["code"] == 0
    for name in ("model.safetensors", "vocabulary.json", "certificate.json", "config.json"):
        assert (tmp_path / "python" / name).read_bytes() == (tmp_path / "program" / name).read_bytes(), name


def test_one_label_per_sequence():
    sequences, labels = [["a", "b"], ["b", "b"], ["a"]], ["X", "Y", "Z"]
    assert monolayer.memorize(sequences, labels).predict(sequences) == [["X", "X"], ["Y", "Y"], ["Z"]]
    last = monolayer.memorize(sequences, labels, label_at="last").predict(sequences)
    assert [row[-1] for row in last] == labels


def test_ids_with_padding_and_free_labels():
    ids = np.array([[5, 7, 0, 0], [7, 5, 5, 0]])
    labels = np.array([[1, 0, -100, -100], [0, -100, 1, -100]])
    model = monolayer.memorize(ids, labels, padding=0)
    first, second = model.predict([[5, 7], [7, 5, 5]])
    assert first == [1, 0] and second[0] == 0 and second[2] == 1
    assert model.possible == 4


def test_vectors_and_outputs():
    tokens = np.random.default_rng(0).random((4, 3, 2))
    model = monolayer.memorize(tokens, tokens[:, ::-1].copy())
    assert np.allclose(np.stack(model.predict(tokens)), tokens[:, ::-1], atol=1e-6)
    classes = monolayer.memorize(tokens, [["x", "y", "z"]] * 4)
    assert classes.predict(tokens) == [["x", "y", "z"]] * 4


def test_columns_of_tables():
    class Column:  # as pandas and Hugging Face have them
        def __init__(self, rows):
            self.rows = rows

        def __iter__(self):
            return iter(self.rows)

        def __len__(self):
            return len(self.rows)

    assert monolayer.memorize(Column(SENTENCES), Column(LABELS)).predict(SENTENCES) == LABELS
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({"tokens": SENTENCES, "labels": LABELS})
    assert monolayer.memorize(frame.tokens, frame.labels).predict(frame.tokens) == LABELS


@pytest.mark.parametrize(
    "call, error, says",
    [
        (lambda: monolayer.memorize("May sails", "O O"), TypeError, "monolayer.read"),
        (lambda: monolayer.memorize(["May sails"], ["O"]), TypeError, "['May', 'sails']"),
        (lambda: monolayer.memorize([["a"], []], [["X"], []]), ValueError, "sequence 2"),
        (lambda: monolayer.memorize([["a"]], [["X", "Y"]]), ValueError, "1 tokens with 2 labels"),
        (lambda: monolayer.memorize([["a"]], [["X"]], method="magic"), ValueError, "gated"),
        (lambda: monolayer.memorize([["a", 1]], [["X", "Y"]]), ValueError, "sequence 1"),
        (lambda: monolayer.memorize(np.full((1, 2, 2), np.nan), [["X", "Y"]]), ValueError, "nan"),
        (lambda: monolayer.load("nowhere"), ValueError, "nowhere"),
        (lambda: monolayer.read("nowhere.conll"), ValueError, "nowhere.conll"),
    ],
)
def test_bad_input_says_what_is_wrong(call, error, says):
    with pytest.raises(error, match="(?i)" + __import__("re").escape(says)):
        call()


def test_masks_and_effort(tmp_path):
    rows, labels = np.tri(5, dtype=int), [[f"{i}{word}" for i, word in enumerate(s)] for s in SENTENCES]
    np.save(tmp_path / "mask.npy", rows)
    for mask in ("causal", "prefix:2", "band:3,1", rows, rows.tolist(), rows.astype(bool), tmp_path / "mask.npy"):
        model = monolayer.memorize(SENTENCES, labels, mask=mask, effort="fast")
        found = model.config["layers"][0]["attention"]["mask"]
        assert found == {"causal": "causal", "prefix:2": {"prefix": 2}, "band:3,1": {"band": [3, 1]}}.get(
            mask if isinstance(mask, str) else "", {"file": "mask.safetensors"}
        )
        assert model.predict(SENTENCES) == labels and model.verify()["verdict"] == "verified"
    for mask in ("all", rows[:2], rows + 1, 3.5, tmp_path / "none.npy"):
        with pytest.raises(ValueError):
            monolayer.memorize(SENTENCES, LABELS, mask=mask)
    with pytest.raises(ValueError, match="fast"):
        monolayer.memorize(SENTENCES, LABELS, effort="much")


def test_conflicting_labels_are_answered():
    model = monolayer.memorize([["a"], ["a"], ["a"]], [["X"], ["Y"], ["X"]])
    assert model.predict(["a"]) == ["X"] and model.impossible == [(1, 0)]


def test_estimator():
    memorizer = monolayer.Memorizer(seed=2).fit(SENTENCES, LABELS)
    assert memorizer.score(SENTENCES, LABELS) == 1.0 and memorizer.get_params() == {"seed": 2}


def test_text():
    text = "the cat saw the dog and the dog saw the cat"
    assert monolayer.memorize_text(text).generate("the") == text


def test_claims_are_the_papers():
    claims = monolayer.claims("lemma-6")
    assert claims and all(claim["verdict"] for claim in claims)
    assert json.dumps(claims)


def test_what_a_model_says_of_itself(model, tmp_path):
    trace = model.explain(SENTENCES[0])
    assert [token["label"] for token in trace["tokens"]] == LABELS[0]
    assert monolayer.explain(model.save(tmp_path / "model"), SENTENCES[0]) == trace
    near = model.explain(SENTENCES[0], data=monolayer.Dataset(SENTENCES, LABELS))["tokens"][0]["nearest"]
    assert "May" in near["sentence"]
    names = model.names
    assert len(names["units"]) == model.hidden and len(names["coordinates"]) == model.config["d"]
    assert {claim["kind"] for claim in model.certificate["claims"]} >= {"labels", "rank"}
    page = model._repr_html_()
    assert page.startswith("<iframe srcdoc=") and "&lt;html" in page and len(page) < 1_000_000
    assert "14 of 14 possible tokens proved right" in repr(model)


def test_texts_by_letters_and_from_the_middle():
    model = monolayer.memorize_text("a man, a plan, a canal: panama", split="char")
    assert model.generate("a") == "a man, a plan, a canal: panama" == monolayer.generate(model)
    assert model.explain(list("a man"))["tokens"][0]["label"] == " "
    words = monolayer.memorize_text("the cat saw the dog and the dog saw the cat")
    assert words.generate("the", "cat", tokens=4) == "the cat saw the"


def test_context_and_train(tmp_path):
    data = monolayer.Dataset(SENTENCES, LABELS)
    assert monolayer.context(data)["log2_gap"] is not None
    found = monolayer.train(data, tmp_path / "trained", epochs=2, dim=8, hidden=16)
    assert found["epochs"] == 2 and monolayer.load(tmp_path / "trained").predict(SENTENCES)
