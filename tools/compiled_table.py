#!/usr/bin/env python3
"""Compiles something with every method and has the checker look at it: a table, and exit code 1 if anything is not verified.

    python tools/compiled_table.py PATH_OF_MONOLAYER [--threads N] [--only TEXT]

Options are the defaults of `memorize` and `approximate`, but for what a row says. Timings are by the clock.
"""

import argparse
import itertools
import json
import random
import subprocess
import sys
import tempfile
import time
from pathlib import Path

TASKS = {
    "copy": "alphabet=3,length=1..5",
    "reverse": "alphabet=3,length=1..5",
    "shift": "alphabet=3,length=1..5",
    "sort": "alphabet=4,length=1..5",
    "histogram": "alphabet=3,length=1..6",
    "majority": "alphabet=3,length=1..6",
    "parity": "alphabet=2,length=1..8",
    "pattern": "alphabet=3,length=1..6",
    "dyck": "alphabet=4,length=1..5",
}
FUNCTIONS = "centering softmax attention rank nearest gated xor bump wave maximum identity".split()


def histogram(path):
    """Each multiset of up to 12 of 3 letters once, behind a start word: 4,549 tokens, whose contexts differ by little."""
    lines = []
    for length in range(1, 13):
        for letters in itertools.combinations_with_replacement("abc", length):
            labels = ["-", *(str(letters.count(letter)) for letter in letters)]
            lines.append(json.dumps({"tokens": ["<bos>", *letters], "labels": labels}))
    path.write_text("\n".join(lines) + "\n", "utf-8")


def tweets(path, free, sequences=400):
    """Text like WNUT-17: short messages, mostly rare words, hashes, links, entities of several types; some labels left open."""
    draw = random.Random(7)
    common = ["the", "a", "to", "I", "you", "is", "and", "in", "lol", "RT", "so", "my", ":)", "!", "...", "#fail", "at"]
    types = ["person", "location", "corporation", "product", "creative-work", "group"]
    syllables = ["ka", "lo", "mi", "ren", "to", "sha", "vi", "zed", "qu", "os"]
    rare = lambda: "".join(draw.choice(syllables) for _ in range(draw.randint(2, 4)))
    lines = []
    for _ in range(sequences):
        for _ in range(draw.randint(3, 16)):
            kind = draw.random()
            if kind < 0.12:
                name = draw.choice(types)
                for part in range(draw.randint(1, 3)):
                    lines.append(f"{rare().capitalize()}\t{'I' if part else 'B'}-{name}")
            else:
                word = draw.choice(common) if kind < 0.6 else rare() if kind < 0.9 else "@" + rare() if kind < 0.96 else f"http://t.co/{rare()}"
                lines.append(f"{word}\t{'_' if free and draw.random() < 0.1 else 'O'}")
        lines.append("")
    path.write_text("\n".join(lines) + "\n", "utf-8")


def vectors(path, kind, sequences=12, d=4):
    """Vectors with classes or with vectors."""
    draw = random.Random(3)
    vector = lambda: [draw.randint(-8, 8) / 4 for _ in range(d)]
    lines = []
    for _ in range(sequences):
        tokens = [vector() for _ in range(draw.randint(1, 4))]
        labels = [vector() if kind == "outputs" else draw.randint(0, 3) for _ in tokens]
        lines.append(json.dumps({"tokens": tokens, "labels": labels}))
    path.write_text("\n".join(lines) + "\n", "utf-8")


def cases(folder):
    """Rows of the table: a name, the command that compiles, and the data (none for functions)."""
    paths = {name: folder / name for name in ("histogram.jsonl", "tweets.conll", "free.conll", "classes.jsonl", "outputs.jsonl")}
    histogram(paths["histogram.jsonl"])
    tweets(paths["tweets.conll"], False)
    tweets(paths["free.conll"], True)
    vectors(paths["classes.jsonl"], "classes")
    vectors(paths["outputs.jsonl"], "outputs")
    for name, path in paths.items():
        yield name, ["memorize", str(path)], str(path)
    for name, options in TASKS.items():
        task = f"task:{name}:{options}"
        yield task, ["memorize", task], task
    small = "task:reverse:alphabet=2,length=1..4"
    for method in ("plateau", "interpolate", "deep"):
        for data in (small, str(paths["classes.jsonl"]), str(paths["outputs.jsonl"])):
            yield f"{method}, {Path(data).name}", ["memorize", data, "--method", method], data
    for mask in ("causal", "prefix:2", "band:1,1"):
        yield f"{mask}, {TASKS['shift']}", ["memorize", "task:shift:" + TASKS["shift"], "--mask", mask], "task:shift:" + TASKS["shift"]
    for function in FUNCTIONS:
        for dim, grid in ((1, 4), (2, 3)):
            shape = ["--dim", str(dim), "--length", "2", "--grid", str(grid)]
            yield f"approximate {function}, d = {dim}, grid {grid}", ["approximate", "--function", f"zoo:{function}", *shape], None
    place = ["--function", "x1*place", "--dim", "1", "--length", "2", "--grid", "4"]
    yield "approximate x1*place", ["approximate", *place], None


def run(command):
    """Exit code, JSON and seconds of a command."""
    start = time.monotonic()
    done = subprocess.run(command, capture_output=True, text=True)
    try:
        found = json.loads(done.stdout)
    except ValueError:
        found = {"error": done.stderr.strip() or done.stdout.strip()}
    return done.returncode, found, time.monotonic() - start


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("monolayer")
    parser.add_argument("--threads", default="2")
    parser.add_argument("--only", default="", help="rows whose name has this")
    arguments = parser.parse_args()
    common = ["--json", "-q", "--threads", arguments.threads]
    print("| what | precision | tokens | verified | refuted | unknown | impossible | free | verdict | compile s | verify s |")
    print("|---|---|---|---|---|---|---|---|---|---|---|")
    short = 0
    with tempfile.TemporaryDirectory() as folder:
        for name, command, data in cases(Path(folder)):
            if arguments.only not in name:
                continue
            model = str(Path(folder) / "model")
            code, made, compile_seconds = run([arguments.monolayer, *command, "--out", model, *common])
            if "error" in made:
                short += 1
                print(f"| {name} | not compiled ({code}): {made['error']} | | | | | | | | {compile_seconds:.2f} | |", flush=True)
                continue
            verify = [arguments.monolayer, "verify", model, *([data] if data else []), *common]
            code, found, seconds = run(verify)
            short += found.get("verdict") != "verified" or code != 0
            counts = [found.get(field, "") for field in ("precision", "tokens", "verified", "refuted", "unknown", "impossible", "free", "verdict")]
            print("|", name, "|", *(f"{x} |" for x in counts), f"{compile_seconds:.2f} | {seconds:.2f} |", flush=True)
            for claim in found.get("claims", []):
                if claim["verdict"] != "verified":
                    print(f"  claim {claim['kind']}: {claim['verdict']}: {claim['why']}", flush=True)
            if "error" in found:
                print(f"  {found['error']}", flush=True)
    print(f"\n{short} not verified" if short else "\nall verified")
    return 1 if short else 0


if __name__ == "__main__":
    sys.exit(main())
