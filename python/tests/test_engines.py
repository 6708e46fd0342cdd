"""The same labels from Rust, PyTorch, onnxruntime and TransformerLens."""
import os
import random
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import monolayer

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tools"))
import compare_engines
import random_model
import reference

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


def test_lens(task):
    pytest.importorskip("transformer_lens")
    torch = pytest.importorskip("torch")
    from monolayer import lens

    model, sequences = task
    bridge = model.to_lens()
    assert lens.predict(bridge, sequences) == named(model, model.predict(sequences))
    # In double precision, without padding: the context ids and the hidden units have names there, with the same numbers.
    module, seen = model.to_torch().double(), {}
    bridge = lens.bridge(module)
    ids, mask = lens.encode(bridge, [s for s in sequences if len(s) == 4])
    logits, cache = bridge.run_with_cache(ids, attention_mask=mask)
    module.layers[0]["attention"].context.register_forward_hook(lambda _m, _i, out: seen.update(context=out))
    module.layers[0]["feed_forward"].units.register_forward_hook(lambda _m, _i, out: seen.update(units=out))
    near = lambda a, b: torch.allclose(a, b, rtol=1e-9, atol=1e-9)
    assert near(module(ids, mask), logits)
    assert near(cache["blocks.0.attn.hook_z"], seen["context"].transpose(1, 2))
    assert near(cache["blocks.0.mlp.hook_post"], seen["units"])
    # An edit of the attention pattern is felt.
    uniform = lambda pattern, hook: torch.ones_like(pattern) / pattern.shape[-1]
    edited = bridge.run_with_hooks(ids, attention_mask=mask, fwd_hooks=[("blocks.0.attn.hook_pattern", uniform)])
    assert not near(edited, logits)


def test_lens_of_random_models(tmp_path):
    """Layers, heads, masks and start tokens against PyTorch; what TransformerLens cannot hold is refused by name."""
    pytest.importorskip("transformer_lens")
    torch = pytest.importorskip("torch")
    from monolayer import lens

    compared = refused = 0
    for seed in range(120):  # most have a layer of hardmax or one without attention
        data = random_model.make(tmp_path / str(seed), seed)
        module = monolayer.torch.load(tmp_path / str(seed)).double()
        sequences = [tokens if isinstance(tokens, list) else tokens.tolist() for tokens, _ in reference.read_data(data)]
        try:
            bridge = lens.bridge(module)
        except monolayer.MonolayerError as error:
            assert "TransformerLens" in str(error)
            refused += 1
            continue
        ids, mask = module.encode(sequences)
        with torch.no_grad():
            found, wanted = bridge(ids, attention_mask=mask), module(ids, mask)
        assert torch.allclose(found[mask.bool()], wanted[mask.bool()], rtol=1e-9, atol=1e-9), seed
        compared += 1
    assert compared >= 10 and refused >= 10


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


def test_onnx_of_random_models(tmp_path):
    """Every kind of layer, mask and start token, against the numpy reference."""
    onnx, runtime = pytest.importorskip("onnx"), pytest.importorskip("onnxruntime")
    compared = 0
    for seed in range(40):
        directory, gaps = tmp_path / str(seed), []
        data = random_model.make(directory, seed)
        model = monolayer.load(directory)
        sequences = [tokens if isinstance(tokens, list) else tokens.tolist() for tokens, _ in reference.read_data(data)]
        truth = reference.run(reference.read_model(directory, "f64"), sequences, gaps=gaps)
        file = str(model.to_onnx(tmp_path / f"{seed}.onnx"))
        onnx.checker.check_model(file, full_check=True)
        session = runtime.InferenceSession(file)
        ids = None if model.words is None else {word: i for i, word in enumerate(model.words)}
        kind = session.get_inputs()[0]
        for tokens, expected, gap in list(zip(sequences, truth, gaps))[:4]:
            unknown = None if ids is None else ids.get("<unk>")
            batch = np.array([tokens if ids is None else [ids.get(word, unknown) for word in tokens]])
            batch = batch.astype({"tensor(int64)": np.int64, "tensor(float)": np.float32, "tensor(double)": np.float64}[kind.type])
            (scores,) = session.run(None, {kind.name: batch, "attention_mask": np.ones((1, len(tokens)), dtype=np.int64)})
            tolerance = {"f32": 1e-5, "f64": 1e-12}[model.config["dtype"]]
            if gap > 10 * tolerance:  # another order of summation may choose another key
                assert np.abs(scores[0] - expected).max() <= tolerance * np.abs(expected).max(), seed
                compared += 1
    assert compared > 100


BEYOND = """
import sys, numpy as np, onnxruntime, monolayer
model = monolayer.load(sys.argv[1])
session = onnxruntime.InferenceSession(str(model.to_onnx(sys.argv[1] + ".onnx")))
size = len(model._native.mask_rows(0))
for n in (size, size + 1):
    ids = np.zeros((1, n), dtype=np.int64)
    try:
        session.run(None, {"input_ids": ids, "attention_mask": ids + 1})
        print("ran")
    except Exception as error:
        print("out of data bounds" in str(error))
"""


def test_onnx_of_a_sequence_beyond_the_mask_is_an_error(tmp_path):
    pytest.importorskip("onnxruntime")
    layer = {"kind": "softmax", "heads": 1, "head_size": 1, "mask": {"rows": np.tri(6, dtype=int).tolist()}, "hidden": 4}
    model = tmp_path / "model"
    random_model.make(model, 1, words=True, positions=False, layers=[layer], lengths=[1, 2, 6])
    # In a process of its own: with other libraries loaded, onnxruntime's errors can end the process.
    printed = subprocess.check_output([sys.executable, "-c", BEYOND, str(model)], text=True, stderr=subprocess.DEVNULL)
    assert printed.split() == ["ran", "True"]


@pytest.mark.parametrize("name", ["harbor.conll", "eng.testb"])
def test_corpus_in_every_engine(name):
    """The same labels everywhere; every disagreement is listed."""
    folder = ROOT / "examples" if name == "harbor.conll" else os.environ.get("MONOLAYER_CONLL")
    if folder is None:
        pytest.skip("set MONOLAYER_CONLL to the directory of CoNLL-2003")
    if len(compare_engines.missing()) == len(compare_engines.NEEDS):
        pytest.skip("no engine beside Rust is installed: tools/python-extras")
    data = monolayer.read(os.path.join(folder, name))
    model = monolayer.memorize(data)
    assert model.certified == model.possible and model.config["dtype"] == "f32"
    results = compare_engines.compare(model, data, [1, 32], [1, 2])
    assert {engine: result["differ"] for engine, result in results.items() if result["differ"]} == {}
    assert {result["right"] for result in results.values()} == {model.possible}
