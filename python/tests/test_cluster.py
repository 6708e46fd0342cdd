"""A cluster writes the same bytes as one process, also after a worker is lost. Workers are processes here."""
import gzip
import os
import random
import signal
import subprocess
import sys

import pytest

import monolayer

pytest.importorskip("dask", reason="needs Dask: tools/python-extras, or pip install dask distributed")
distributed = pytest.importorskip("distributed", reason="needs Dask: tools/python-extras, or pip install dask distributed")


def corpus(sequences: int, seed: int) -> str:
    """Sentences in which the label of some words depends on the words around them, and some contradict each other."""
    draw = random.Random(seed)
    lines = []
    for _ in range(sequences):
        words = [min(int(draw.paretovariate(0.7)), 900) for _ in range(draw.randint(1, 12))]
        for i, word in enumerate(words):
            label = "ABC"[word % 3] if word % 5 else "ABC"[(sum(words) + i) % 3]
            lines.append(f"w{word} {'_' if draw.random() < 0.01 else label}")
        lines.append("")
    return "\n".join(lines) + "\n"


@pytest.fixture(scope="module")
def client():
    with distributed.LocalCluster(n_workers=2, threads_per_worker=1, memory_limit="1GB", dashboard_address=None) as cluster:
        with distributed.Client(cluster) as client:
            yield client


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """A corpus in one file, in two, one of which is packed, and the model of one process."""
    folder = tmp_path_factory.mktemp("corpus")
    first, second = corpus(900, 1), corpus(300, 2)
    (folder / "all.conll").write_text(first + second)
    (folder / "part-1.conll").write_text(first)
    (folder / "part-2.conll.gz").write_bytes(gzip.compress(second.encode()))
    out = folder / "model"
    subprocess.run(
        [sys.executable, "-m", "monolayer", "memorize", folder / "all.conll", "--effort", "fast", "--memory", "512", "--unchecked", "--out", out, "--json"],
        check=True, stdout=subprocess.PIPE,
    )
    return folder


def bytes_of(folder):
    return {path.name: path.read_bytes() for path in sorted(folder.iterdir())}


def test_same_bytes_as_one_process(client, files, tmp_path):
    lines = []
    report = monolayer.cluster.memorize(files / "all.conll", client, tmp_path / "model", piece=4000, on_progress=lines.append)
    assert bytes_of(tmp_path / "model") == bytes_of(files / "model")
    assert report["shards"] > 5 and report["proved"] == report["possible"] < report["tokens"]
    assert {"reading", "contexts", "ids", "saving"} <= {stage["stage"] for stage in report["stages"]}
    assert all(stage["largest"] < 3 * stage["mean"] for stage in report["stages"] if "largest" in stage)
    assert lines and all(line.startswith("monolayer: ") for line in lines)


def test_many_files_are_one(client, files, tmp_path):
    monolayer.cluster.memorize(str(files / "part-*"), client, tmp_path / "model", on_progress=lambda _: None)
    assert bytes_of(tmp_path / "model") == bytes_of(files / "model")
    counts = monolayer.cluster.data([files / "part-1.conll", files / "part-2.conll.gz"], client, on_progress=lambda _: None)
    whole = monolayer.read(files / "all.conll")
    assert (counts["tokens"], counts["sequences"]) == (whole.tokens, whole.sequences)
    labels = monolayer.cluster.predict(tmp_path / "model", [files / "part-1.conll"], client, on_progress=lambda _: None)
    assert labels == [monolayer.load(tmp_path / "model").predict(monolayer.read(files / "part-1.conll"))]


@pytest.mark.parametrize("stage", ["contexts", "ids"])
def test_a_worker_is_lost(client, files, tmp_path, stage):
    killed = []

    def kill(line):
        if stage in line and not killed:
            killed.append(next(iter(client.run(os.getpid).values())))
            os.kill(killed[0], signal.SIGKILL)

    monolayer.cluster.memorize(files / "all.conll", client, tmp_path / "model", piece=4000, on_progress=kill)
    assert killed and bytes_of(tmp_path / "model") == bytes_of(files / "model")


def test_errors_are_those_of_the_reader(client, tmp_path):
    bad = tmp_path / "bad.conll"
    bad.write_text("a X\n\nb X Y\n\n" * 3)
    with pytest.raises(monolayer.MonolayerError, match="bad.conll:3.*3 columns where line 1 has 2"):
        monolayer.cluster.memorize(bad, client, tmp_path / "model", piece=5, on_progress=lambda _: None)
    with pytest.raises(monolayer.MonolayerError, match="no file is named"):
        monolayer.cluster.memorize(str(tmp_path / "x-*"), client, tmp_path / "model")
    with pytest.raises(TypeError, match="effort"):
        monolayer.cluster.memorize(bad, client, tmp_path / "model", effort="high")
