"""The same labels from Rust, PyTorch and onnxruntime."""
import os
import random

import numpy as np
import pytest

import monolayer

LETTERS = "abc"
TASKS = {
    "histogram": (lambda s: [s.count(x) for x in s], {}),
    "shift": (lambda s: [s[i - 1] if i else "-" for i in range(len(s))], {}),
    "reverse": (lambda s: s[::-1], {"mask": "none", "embedding": "sign:16"}),
    "causal": (lambda s: [s[: i + 1].count("a") % 2 for i in range(len(s))], {"mask": "causal", "start": True}),
}


@pytest.fixture(scope="module", params=TASKS)
def task(request):
    f, options = TASKS[request.param]
    model = monolayer.compile_function(f, LETTERS, range(1, 5), **options)
    draw = random.Random(1)
    sequences = [draw.choices(LETTERS, k=draw.randint(1, 4)) for _ in range(60)]
    assert model.predict(sequences) == [f(s) for s in sequences]
    return model, sequences


def named(model, labels):
    """Labels as PyTorch and ONNX have them: names."""
    return [[str(label) for label in row] for row in labels]


def test_torch(task):
    pytest.importorskip("torch")
    model, sequences = task
    want = named(model, model.predict(sequences))
    module = model.to_torch()
    assert module.predict(sequences) == want
    assert [module.predict(s) for s in sequences] == want
    with pytest.raises(TypeError):
        module.predict("a b c")


def test_torch_hooks_and_gradients(task):
    torch = pytest.importorskip("torch")
    model, sequences = task
    module, seen = model.to_torch(), {}
    for name in ("layers.0.attention.pattern", "layers.0.attention.context", "layers.0.feed_forward.units"):
        module.get_submodule(name).register_forward_hook(lambda _m, _i, out, name=name: seen.update({name: out}))
    ids, mask = module.encode(sequences[:2])
    module(ids, mask).sum().backward()
    pattern = seen["layers.0.attention.pattern"]
    assert torch.allclose(pattern.sum(-1), torch.ones_like(pattern.sum(-1)))
    assert module.layers[0]["attention"].w_q.grad is not None and len(seen) == 3


def test_torch_saved_and_certified(task, tmp_path):
    pytest.importorskip("torch")
    model, sequences = task
    model.to_torch().save(tmp_path / "model")
    report = monolayer.certify(tmp_path / "model", sequences, named(model, model.predict(sequences)))
    assert report["refuted"] == 0 and report["verified"] == report["tokens"]


@pytest.mark.parametrize("left", [False, True], ids=["padded right", "padded left"])
def test_onnx(task, left, tmp_path):
    onnx, runtime = pytest.importorskip("onnx"), pytest.importorskip("onnxruntime")
    model, sequences = task
    file = str(model.to_onnx(tmp_path / "model.onnx"))
    onnx.checker.check_model(file, full_check=True)
    session, ids = runtime.InferenceSession(file), {word: i for i, word in enumerate(model.words)}
    longest = max(map(len, sequences))
    batch = np.zeros((2, len(sequences), longest), dtype=np.int64)
    spans = [slice(longest - len(s), longest) if left else slice(0, len(s)) for s in sequences]
    for i, (sequence, span) in enumerate(zip(sequences, spans)):
        batch[0, i, span], batch[1, i, span] = [ids[word] for word in sequence], 1
    (scores,) = session.run(["logits"], {"input_ids": batch[0], "attention_mask": batch[1]})
    found = [[model.labels[k] for k in scores[i, span].argmax(-1)] for i, span in enumerate(spans)]
    assert found == model.predict(sequences)


@pytest.mark.skipif("MONOLAYER_CONLL" not in os.environ, reason="set MONOLAYER_CONLL to the directory of CoNLL-2003")
def test_corpus_in_every_engine(tmp_path):
    torch = pytest.importorskip("torch")
    data = monolayer.read(os.path.join(os.environ["MONOLAYER_CONLL"], "eng.testb"))
    model = monolayer.memorize(data)
    assert model.certified == model.possible
    rows = [__import__("json").loads(line)["tokens"] for line in data._native.canonical().splitlines()]
    want, module = model.predict(rows), model.to_torch()
    for threads, size in ((1, 1), (1, 32), (2, 32)):
        torch.set_num_threads(threads)
        some = range(0, len(rows), 10 if size == 1 else 1)
        batches = [[rows[j] for j in list(some)[i : i + size]] for i in range(0, len(some), size)]
        found = [labels for batch in batches for labels in module.predict(batch)]
        assert found == [want[j] for j in some], (threads, size)
