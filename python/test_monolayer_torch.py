"""Checks monolayer_torch against the fixtures and against the numpy reference: python python/test_monolayer_torch.py"""

import json
import math
import sys
import tempfile
import unittest
from pathlib import Path

import torch

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tools"))
import monolayer_torch
import random_model
import reference

FIXTURES = ROOT / "crates/monolayer/tests/fixtures"
TOLERANCE = {torch.float32: 1e-5, torch.float64: 1e-12}


def fixtures():
    """(name, model, sequences, expected) of each fixture."""
    for directory in sorted(path.parent for path in FIXTURES.glob("*/expected.json")):
        lines = (directory / "data.jsonl").read_text(encoding="utf-8").splitlines()
        expected = json.loads((directory / "expected.json").read_text(encoding="utf-8"))
        yield directory.name, monolayer_torch.load(directory), [json.loads(line)["tokens"] for line in lines], expected


class TestCase(unittest.TestCase):
    def assert_near(self, got, expected):
        """The error of a sequence relative to its largest output."""
        expected = torch.as_tensor(expected, dtype=torch.float64)
        self.assertEqual(got.shape, expected.shape)
        error = ((got.double() - expected).abs().max() / expected.abs().max()).item()
        self.assertLessEqual(error, TOLERANCE[got.dtype])


class Fixtures(TestCase):
    def test_outputs(self):
        names = []
        for name, model, sequences, expected in fixtures():
            names.append(name)
            with self.subTest(name), torch.no_grad():
                alone = [model([tokens])[0] for tokens in sequences]
                padded = model(sequences)
                for results in (alone, padded):
                    self.assertEqual(len(results), len(expected["outputs"]))
                    for got, outputs in zip(results, expected["outputs"]):
                        self.assert_near(got, outputs)
        self.assertGreaterEqual(len(names), 8, f"fixtures are missing from {FIXTURES}")

    def test_labels(self):
        for name, model, sequences, expected in fixtures():
            if "labels" in expected:
                with self.subTest(name):
                    self.assertEqual(model.predict(sequences), expected["labels"])
                    self.assertEqual(model.predict(sequences[-1]), expected["labels"][-1])

    def test_padding_is_never_visible(self):
        """Whatever padding holds, infinities included, no real token changes."""
        for name, model, _, _ in fixtures():
            for layer in (layer["attention"] for layer in model.layers if "attention" in layer):
                with self.subTest(name), torch.no_grad():
                    z = torch.randn(2, 6, model.d, dtype=layer.w_q.dtype)
                    real = torch.arange(6) < torch.tensor([[6], [4]])
                    hostile = z.clone()
                    hostile[1, 4:] = torch.inf
                    self.assertTrue(torch.equal(layer(z, real)[real], layer(hostile, real)[real]))


class RandomModels(TestCase):
    def test_against_the_numpy_reference(self):
        compared = near_ties = 0
        for seed in range(60):
            with self.subTest(seed=seed), tempfile.TemporaryDirectory() as directory, torch.no_grad():
                data = random_model.make(directory, seed)
                sequences = [
                    tokens if isinstance(tokens, list) else tokens.tolist() for tokens, _ in reference.read_data(data)
                ]
                model, gaps = monolayer_torch.load(directory), []
                truth = reference.run(reference.read_model(directory, "f64"), sequences, gaps=gaps)
                padded = model(sequences)
                for got, expected, gap in zip(padded, truth, gaps):
                    if gap <= 10 * TOLERANCE[got.dtype]:  # another order of summation may choose another key
                        near_ties += 1
                    else:
                        self.assert_near(got, expected)
                        compared += 1
        self.assertGreater(compared, 20 * near_ties)


class Small(TestCase):
    """A model whose outputs are known by hand."""

    def model(self, vocabulary=None, **changes):
        attention = {"kind": "hardmax", "heads": 1, "head_size": 1, "mask": "none"}
        config = {"d": 1, "max_length": None, "labels": None, "pre_feed_forward": None}
        config |= {"layers": [{"attention": attention, "hidden": 0}], **changes}
        model = monolayer_torch.Transformer(config, vocabulary).double()
        model.load_state_dict({name: torch.ones_like(p) for name, p in model.state_dict().items()})
        return model

    def test_hardmax_ties_share_equally(self):
        model = self.model()
        # 0 sees the mean, 2; the others see the largest, 4
        self.assertEqual(model.predict([[0.0], [1.0], [3.0], [4.0]]).tolist(), [[2.0], [5.0], [7.0], [8.0]])
        self.assertEqual(model.predict([[-1.0], [1.0], [1.0]]).tolist(), [[-2.0], [2.0], [2.0]])

    def test_label_ties_go_to_the_lowest_index(self):
        self.assertEqual(self.model(labels=["a", "b", "c"]).predict([[1.0], [-2.0]]), ["a", "a"])

    def test_causal(self):
        layer = {"attention": {"kind": "softmax", "heads": 1, "head_size": 1, "mask": "causal"}, "hidden": 0}
        out = self.model(layers=[layer]).predict([[3.0], [0.0], [-3.0]])
        self.assertEqual(out[0].item(), 6.0)
        self.assertAlmostEqual(out[1].item(), 1.5, places=15)

    def test_masks_show_what_they_say(self):
        layer = lambda mask: {"attention": {"kind": "softmax", "heads": 1, "head_size": 1, "mask": mask}, "hidden": 0}
        x = [[3.0], [0.0], [-3.0]]
        for mask, seen in [
            ({"prefix": 2}, [[0, 1], [0, 1], [0, 1, 2]]),
            ({"band": [1, 0]}, [[0], [0, 1], [1, 2]]),
            ({"rows": [[1, 0, 1], [0, 1, 0], [1, 1, 1]]}, [[0, 2], [1], [0, 1, 2]]),
        ]:
            model = self.model(layers=[layer(mask)])
            out = model.predict([x, x[:1]])  # the second with padding
            for t, places in enumerate(seen):
                alone = self.model(layers=[layer("none")]).predict([x[i] for i in places])[places.index(t)]
                self.assertAlmostEqual(out[0][t].item(), alone.item(), places=14)
            self.assertEqual(out[1].tolist(), [[6.0]])
        with self.assertRaisesRegex(ValueError, "3 tokens, and the mask is for 1"):
            self.model(layers=[layer({"rows": [[1]]})]).predict(x)

    def test_a_start_token_is_seen_and_not_given_back(self):
        """Behind 0 a token 1 sees weights 1 and e, whatever the mask; it takes a place of its own."""
        layer = lambda mask: {"attention": {"kind": "softmax", "heads": 1, "head_size": 1, "mask": mask}, "hidden": 0}
        for mask in ("none", "causal", {"prefix": 0}, {"band": [0, 0]}, {"rows": [[1]]}):
            model = self.model({"a": 0, "<s>": 1}, start="<s>", layers=[layer(mask)])
            with torch.no_grad():
                model.embedding.weight.copy_(torch.tensor([[1.0], [0.0]]))
            out = model.predict([["a"], ["a"]])
            self.assertEqual([y.shape for y in out], [(1, 1), (1, 1)])
            self.assertAlmostEqual(out[0].item(), 1 + math.e / (1 + math.e), places=14)
        model = self.model({"a": 0}, start="a", max_length=2)
        self.assertEqual(model.predict(["a"]).shape, (1, 1))
        with self.assertRaisesRegex(ValueError, "3 tokens, the start token included"):
            model.predict(["a", "a"])

    def test_errors_name_what_is_wrong(self):
        directory = FIXTURES / "rank_one"
        with self.assertRaisesRegex(KeyError, "never-seen"):
            monolayer_torch.load(directory).predict(["never-seen"])
        with self.assertRaisesRegex(ValueError, "99 tokens"):
            monolayer_torch.load(directory).predict(["the"] * 99)
        with tempfile.TemporaryDirectory() as copy:
            for path in directory.iterdir():
                Path(copy, path.name).write_bytes(path.read_bytes())
            config = json.loads(Path(copy, "config.json").read_text(encoding="utf-8"))
            config["layers"][0]["hidden"] += 1
            Path(copy, "config.json").write_text(json.dumps(config), encoding="utf-8")
            with self.assertRaisesRegex(ValueError, "layers.0.feed_forward.w1"):
                monolayer_torch.load(copy)


class Grammar(TestCase):
    def test_files_are_read_or_refused_as_expected(self):
        folder = ROOT / "grammar"
        expected = json.loads((folder / "expected.json").read_text(encoding="utf-8"))["models"]
        for name, case in expected.items():
            with self.subTest(name, why=case["why"]):
                if "torch" in case.get("readers", []):
                    monolayer_torch.load(folder / "models" / name)
                else:
                    with self.assertRaises((ValueError, FileNotFoundError)):
                        monolayer_torch.load(folder / "models" / name)
        self.assertGreater(len(expected), 100)

    def test_certificates_are_read_as_by_the_others(self):
        folder = ROOT / "grammar"
        for name, case in json.loads((folder / "expected.json").read_text(encoding="utf-8"))["certificates"].items():
            with self.subTest(name, why=case["why"]):
                path = folder / "certificates" / f"{name}.json"
                if "torch" in case.get("readers", []):
                    monolayer_torch.read_certificate(path)
                else:
                    self.assertRaises(ValueError, monolayer_torch.read_certificate, path)


if __name__ == "__main__":
    sys.exit(unittest.main())
