"""Checks the second opinion, with the standard library only: python tools/test_second_opinion.py

Its intervals hold what they must, and on the hostile models of attacks/ it never contradicts the verdict that is stored there.
"""

import json
import random
import unittest
from fractions import Fraction
from pathlib import Path

import intervals
import second_opinion
from intervals import Interval, UndecidedError, hull, less, number

ATTACKS = Path(__file__).resolve().parent.parent / "attacks"


def fraction(x):
    return Fraction(x[0]) * Fraction(2) ** x[1]


def holds(interval, exact):
    return fraction(interval.a) <= exact <= fraction(interval.b)


def draw(random, scale=60):
    """A float of any size, and a narrow interval around it."""
    x = random.uniform(-1, 1) * 2.0 ** random.randint(-scale, scale)
    return x, hull([Interval.of(x), Interval.of(x * (1 + random.random() * 2**-30))])


class Intervals(unittest.TestCase):
    def setUp(self):
        self.before, intervals.BITS = intervals.BITS, 60

    def tearDown(self):
        intervals.BITS = self.before

    def test_operations_hold_the_exact_result(self):
        rng = random.Random(1)
        for _ in range(3000):
            (x, a), (y, b) = draw(rng), draw(rng)
            x, y = Fraction(x), Fraction(y)
            self.assertTrue(holds(a + b, x + y) and holds(a - b, x - y) and holds(a * b, x * y))
            self.assertTrue(holds(a.times(number(float(y))), x * y))
            self.assertTrue(holds(a.positive(), max(x, 0)))
            self.assertEqual(less(a.a, b.a), fraction(a.a) < fraction(b.a))
            if y > 0:
                self.assertTrue(holds(a / b, x / y))

    def test_far_terms_are_rounded_outward(self):
        tiny, one = (1, -10**6), (1, 0)
        for x, y in [(tiny, one), ((-1, -10**6), one), (tiny, (-1, 0)), ((-1, -10**6), (-1, 0))]:
            found = Interval(x) + Interval(y)
            self.assertTrue(not less(y, found.a) if x[0] > 0 else less(found.a, y))
            self.assertTrue(less(y, found.b) if x[0] > 0 else not less(found.b, y))

    def test_exponentials(self):
        rng = random.Random(2)
        for x in [0.0, 1.0, -1.0, 700.0, -745.0, *(rng.uniform(-50, 50) for _ in range(200))]:
            found = Interval.of(x).exp()
            # exp(x) = exp(x / 2^k)^(2^k), with the remainder of the series explicit.
            small = Fraction(x) / 1024
            term, low = Fraction(1), Fraction(0)
            for i in range(1, 60):
                low, term = low + term, term * small / i
            rest = abs(term) * 2
            below, above = (cut(low - rest) ** 1024, cut(low + rest) ** 1024)
            self.assertLessEqual(fraction(found.a), above)
            self.assertGreaterEqual(fraction(found.b), below)
            self.assertLess(fraction(found.b) - fraction(found.a), fraction(found.b) / 2**50)
        self.assertEqual(Interval.of(-1e7).exp().a, (0, 0))
        with self.assertRaises(UndecidedError):
            Interval.of(1e7).exp()


def cut(x, bits=400):
    return Fraction(int(x * 2**bits), 2**bits)


class Attacks(unittest.TestCase):
    """What may be said where attacks/ says something else about everything: labels in real arithmetic."""

    # The stored verdict speaks of the certificate too, of which this program knows nothing.
    ALLOWED = {
        "verified": {"verified", "unknown"},
        "refuted": {"refuted", "unknown"},
        # In floats it is open; real arithmetic may decide it either way.
        "unknown": {"verified", "refuted", "unknown"},
        "error": set(),
    }

    def opinion(self, folder, data):
        try:
            return second_opinion.check(folder, data)["verdict"]
        except (OSError, ValueError) as error:
            self.assertTrue(str(error), folder)
            return "error"

    def test_it_never_contradicts(self):
        decided = refused = 0
        for folder in sorted(path for path in ATTACKS.iterdir() if path.is_dir()):
            data = next(iter(folder.glob("data.*")), None)
            if data is None:
                continue
            stored = json.loads((folder / "expect.json").read_text("utf-8"))["verdict"]
            stored = [stored] if isinstance(stored, str) else stored
            found = self.opinion(folder, data)
            with self.subTest(folder.name, stored=stored, found=found):
                allowed = set().union(*(self.ALLOWED[verdict] for verdict in stored))
                if (folder / "certificate.json").exists() and stored[0] != "verified":
                    # The fault may lie in the certificate.
                    allowed |= {"verified"}
                if found == "error":
                    self.assertTrue("error" in stored or self.is_strange(folder))
                else:
                    self.assertIn(found, allowed)
            decided += found in ("verified", "refuted")
            refused += found == "error"
        self.assertGreater(decided, 30)
        self.assertGreater(refused, 30)

    def is_strange(self, folder):
        """A model that this program does not read: of exact numbers, of vectors, without labels."""
        config = json.loads((folder / "config.json").read_text("utf-8"))
        return config["dtype"] == "exact" or config["labels"] is None or not (folder / "vocabulary.json").exists()


if __name__ == "__main__":
    unittest.main()
