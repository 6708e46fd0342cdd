"""Checks the numpy reference on cases known by hand: python tools/test_reference.py"""

import math
import os
import tempfile
import unittest
from unittest import mock

import numpy as np

import random_model
import reference


def model(kind="softmax", mask="none", d=1):
    """One head of size 1 in which every weight is 1, in f64, with nothing else around it."""
    attention = {"kind": kind, "heads": 1, "head_size": 1, "mask": mask}
    config = {
        "d": d,
        "max_length": None,
        "labels": None,
        "layers": [{"attention": attention, "hidden": 0}],
        "pre_feed_forward": None,
    }
    shapes = {"w_q": (1, 1, d), "w_k": (1, 1, d), "w_v": (1, 1, d), "w_o": (1, d, 1)}
    tensors = {f"layers.0.attention.{name}": np.ones(shape) for name, shape in shapes.items()}
    return {"config": config, "tensors": tensors, "vocabulary": None, "dtype": np.float64}


class Attention(unittest.TestCase):
    def test_softmax_is_the_boltzmann_mean(self):
        """Two tokens 0 and 1, query 1: weights 1 and e."""
        out = reference.run(model(), [[[0.0], [1.0]]])[0]
        self.assertAlmostEqual(out[0, 0], 0.5, places=15)
        self.assertAlmostEqual(out[1, 0], 1 + math.e / (1 + math.e), places=15)

    def test_causal_tokens_see_themselves_and_the_past(self):
        out = reference.run(model(mask="causal"), [[[3.0], [0.0], [-3.0]]])[0]
        self.assertEqual(out[0, 0], 6.0)
        self.assertAlmostEqual(out[1, 0], 1.5, places=15)

    def test_masks_show_what_they_say(self):
        """Each token comes out as it would among the tokens alone that it sees, in a padded batch, too."""
        x = [[3.0], [0.0], [-3.0], [1.0]]
        for mask, seen in [
            ({"prefix": 2}, [[0, 1], [0, 1], [0, 1, 2], [0, 1, 2, 3]]),
            ({"band": [1, 0]}, [[0], [0, 1], [1, 2], [2, 3]]),
            ({"band": [0, 9]}, [[0, 1, 2, 3], [1, 2, 3], [2, 3], [3]]),
            ({"rows": [[1, 0, 1, 0], [0, 1, 0, 0], [1, 1, 1, 1], [0, 0, 1, 1]]}, [[0, 2], [1], [0, 1, 2, 3], [2, 3]]),
        ]:
            out = reference.run(model(mask=mask), [x, x[:2]], batch=2)
            for t, places in enumerate(seen):
                alone = reference.run(model(), [[x[i] for i in places]])[0][places.index(t)]
                self.assertAlmostEqual(out[0][t, 0], alone[0], places=14)
            self.assertTrue(np.isfinite(out[1]).all())

    def test_a_mask_that_is_too_small(self):
        with self.assertRaisesRegex(SystemExit, "2 tokens, but the mask is for 1"):
            reference.run(model(mask={"rows": [[1]]}), [[[3.0], [0.0]]])

    def test_a_start_token_is_seen_and_not_given_back(self):
        """Behind 0 a token 1 sees weights 1 and e, whatever the mask; one more 1 changes what it sees."""
        for mask in ("none", "causal", {"prefix": 0}, {"band": [0, 0]}, {"rows": [[1]]}):
            m = model(mask=mask)
            m["config"]["start"], m["vocabulary"] = "<s>", {"a": 0, "<s>": 1}
            m["tensors"]["embedding.weight"] = np.array([[1.0], [0.0]])
            out = reference.run(m, [["a"]])[0]
            self.assertEqual(out.shape, (1, 1))
            self.assertAlmostEqual(out[0, 0], 1 + math.e / (1 + math.e), places=15)
            if mask in ("none", "causal"):
                longer = reference.run(m, [["a"], ["a", "a"]], batch=2)
                self.assertAlmostEqual(longer[0][0, 0], out[0, 0], places=15)
                self.assertAlmostEqual(longer[1][1, 0], 1 + 2 * math.e / (1 + 2 * math.e), places=15)

    def test_what_a_start_token_sees(self):
        real, rows = np.ones(4, bool), {"rows": [[1, 0, 0], [1, 1, 0], [0, 0, 1]]}
        for mask, seen in [
            ("none", ["1111", "1111", "1111", "1111"]),
            ("causal", ["1000", "1100", "1110", "1111"]),
            ({"prefix": 2}, ["1110", "1110", "1110", "1111"]),
            ({"band": [0, 1]}, ["1100", "1110", "1011", "1001"]),
            (rows, ["1000", "1100", "1110", "1001"]),
        ]:
            shown = reference.visibility(real, mask, start=True)
            self.assertEqual(["".join(str(int(x)) for x in row) for row in shown], seen, mask)

    def test_a_start_token_takes_a_place(self):
        m = model()
        m["config"] |= {"start": "a", "max_length": 2}
        m["vocabulary"] = {"a": 0}
        m["tensors"] |= {"embedding.weight": np.zeros((1, 1)), "positions.weight": np.array([[0.0], [1.0]])}
        self.assertAlmostEqual(reference.run(m, [["a"]])[0][0, 0], 1 + math.e / (1 + math.e), places=15)
        with self.assertRaisesRegex(SystemExit, "needs 3 places, but max_length is 2"):
            reference.run(m, [["a", "a"]])

    def test_hardmax_ties_share_equally(self):
        out = reference.run(model("hardmax"), [[[0.0], [1.0], [3.0], [4.0]]])[0]
        self.assertEqual(out[:, 0].tolist(), [2.0, 5.0, 7.0, 8.0])

    def test_theorem_1_counterexample(self):
        """(1, 2, 5, 6) v and (1, 3, 4, 6) v: a hardmax layer gives their ends the same output, softmax does not."""
        a, b = ([[x, 2 * x] for x in values] for values in ([1.0, 2.0, 5.0, 6.0], [1.0, 3.0, 4.0, 6.0]))
        for kind, same in [("hardmax", True), ("softmax", False)]:
            m = model(kind, d=2)
            m["tensors"]["layers.0.attention.w_q"] *= 1 / 64
            x, y = reference.run(m, [a, b])
            self.assertEqual(np.array_equal(x[[0, 3]], y[[0, 3]]), same)

    def test_padding_and_order_change_rounding_only(self):
        for seed in range(20):
            with tempfile.TemporaryDirectory() as directory:
                data = [tokens for tokens, _ in reference.read_data(random_model.make(directory, seed, dtype="f64"))]
                m, gaps = reference.read_model(directory), []
                alone = reference.run(m, data, gaps=gaps)
                for other in (reference.run(m, data, batch=4), reference.run(m, data, seed=1)):
                    for a, b, gap in zip(alone, other, gaps):
                        if gap > 1e-11:
                            self.assertLess(np.abs(a - b).max(), 1e-12 * np.abs(a).max(), f"seed {seed}")


class Readers(unittest.TestCase):
    def read(self, name, content):
        with tempfile.TemporaryDirectory() as directory:
            path = os.path.join(directory, name)
            with open(path, "wb") as file:
                file.write(content)
            return reference.read_data(path)

    def test_conll(self):
        expected = [(["EU", "é"], ["I-ORG", "O"]), (["x"], ["O"])]
        plain = "-DOCSTART- -X- O O\n\nEU NNP I-ORG\né\tNN  O\n \t\n\nx NN O".encode()
        for content in (
            plain,
            b"\xef\xbb\xbf" + plain,
            plain.replace(b"\n", b"\r\n"),
            plain.replace("é".encode(), b"\xe9"),
        ):
            self.assertEqual(self.read("data.conll", content), expected)
        self.assertEqual(self.read("data.txt", b"a\nb\n"), [(["a", "b"], None)])
        self.assertEqual(self.read("data.txt", "a\u00a0b X\n".encode()), [(["a\u00a0b"], ["X"])])

    def test_json_lines(self):
        content = b'{"tokens": ["a"], "labels": [3]}\n\n{"tokens": ["b"], "labels": [4]}\n'
        self.assertEqual(self.read("data.jsonl", content), [(["a"], ["3"]), (["b"], ["4"])])
        content = b'{"tokens": [[0.5, 1]], "labels": [[1, 2]]}\n'
        self.assertEqual(self.read("data.jsonl", content), [([[0.5, 1]], [[1, 2]])])

    def test_arrays(self):
        arrays = {"tokens": np.arange(6.0).reshape(3, 2), "lengths": np.array([1, 2]), "labels": np.array([4, 5, 4])}
        with tempfile.TemporaryDirectory() as directory:
            path = os.path.join(directory, "data.safetensors")
            random_model.write_safetensors(path, arrays)
            (x, y), (z, w) = reference.read_data(path)
        self.assertEqual([x.tolist(), y, z.tolist(), w], [[[0, 1]], ["4"], [[2, 3], [4, 5]], ["5", "4"]])


class RandomModel(unittest.TestCase):
    def test_same_seed_same_bytes(self):
        with tempfile.TemporaryDirectory() as first, tempfile.TemporaryDirectory() as second:
            random_model.make(first, 5), random_model.make(second, 5)
            self.assertEqual(sorted(os.listdir(first)), sorted(os.listdir(second)))
            for name in os.listdir(first):
                with open(os.path.join(first, name), "rb") as a, open(os.path.join(second, name), "rb") as b:
                    self.assertEqual(a.read(), b.read(), name)

    def small_scores(self, *inputs, scores_of=reference.attention_scores):
        """The scores themselves, once they are seen to be small."""
        scores = scores_of(*inputs)
        self.assertLess(np.abs(scores).max(), 10)
        return scores

    def test_scores_stay_below_10(self):
        for seed in range(20):
            with tempfile.TemporaryDirectory() as directory:
                data = [tokens for tokens, _ in reference.read_data(random_model.make(directory, seed))]
                m = reference.read_model(directory, "f64")
                with mock.patch.object(reference, "attention_scores", side_effect=self.small_scores):
                    out = reference.run(m, data)
                self.assertLess(max(np.abs(y).max() for y in out), 100)


if __name__ == "__main__":
    unittest.main()
