"""Checks the numpy reference on the files of grammar/: python tools/test_grammar.py"""

import json
import subprocess
import sys
import unittest
from pathlib import Path

import numpy as np

import reference
import strict_data
import strict_files

ROOT = Path(__file__).resolve().parent.parent
GRAMMAR = ROOT / "grammar"
EXPECTED = json.loads((GRAMMAR / "expected.json").read_text(encoding="utf-8"))


def answer(read, path):
    """Whether a file is read; what is refused is refused with an error that says why, never with another one."""
    try:
        read(str(path))
        return True
    except (ValueError, FileNotFoundError) as error:
        assert str(error), path
        return False


class Grammar(unittest.TestCase):
    def test_models(self):
        for name, case in EXPECTED["models"].items():
            with self.subTest(name, why=case["why"]):
                reads = "numpy" in case.get("readers", [])
                self.assertEqual(answer(reference.read_model, GRAMMAR / "models" / name), reads)

    def test_datasets(self):
        for name, case in EXPECTED["data"].items():
            with self.subTest(name, why=case["why"]):
                reads = "numpy" in case.get("readers", [])
                self.assertEqual(answer(reference.read_data, GRAMMAR / "data" / name), reads)

    def test_canonical_forms(self):
        for name, case in EXPECTED["data"].items():
            if "numpy" in case.get("readers", []) and not name.endswith(".safetensors"):
                with self.subTest(name):
                    sequences = reference.read_text(str(GRAMMAR / "data" / name))
                    self.assertEqual(strict_data.canonical(sequences, name.endswith(".conll")), case["canonical"])

    def test_certificates(self):
        for name, case in EXPECTED["certificates"].items():
            with self.subTest(name, why=case["why"]):
                path = GRAMMAR / "certificates" / f"{name}.json"
                self.assertEqual(answer(strict_files.read_certificate, path), "numpy" in case.get("readers", []))

    def test_narrow_numbers_are_widened_exactly(self):
        """Every pattern of 8 and of 16 bits, against numpy."""
        shorts = np.arange(2**16, dtype="<u2")
        singles = {"I8": np.arange(2**8, dtype="u1").view("i1"), "F16": shorts.view("<f2"), "BF16": (shorts.astype("<u4") << 16).view("<f4")}
        raws = {"I8": bytes(range(2**8)), "F16": shorts.tobytes(), "BF16": shorts.tobytes()}
        for wide, kind in [("F32", "<f4"), ("F64", "<f8")]:
            for dtype, raw in raws.items():
                with np.errstate(invalid="ignore"):
                    expected = singles[dtype].astype(kind)
                found = np.frombuffer(strict_files.widened(dtype, wide, raw), kind)
                finite = np.isfinite(expected)
                self.assertTrue((np.isfinite(found) == finite).all())
                self.assertEqual(found[finite].tobytes(), expected[finite].tobytes(), f"{dtype} as {wide}")

    def test_the_folder_is_what_the_script_writes(self):
        done = subprocess.run([sys.executable, ROOT / "tools/make_grammar.py", "--check"], capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stderr)


if __name__ == "__main__":
    unittest.main()
