"""The parts of which tools/make_grammar.py makes its cases: tensors, files, models and datasets with what is expected."""

import json
import struct

FILES, EXPECTED = {}, {"models": {}, "data": {}, "certificates": {}}

ALL = ["core", "library", "numpy"]
CORE = ["core"]  # what no engine runs yet


# ---- a model and its parts -------------------------------------------------------------------------------------------


def floats(*numbers, kind="f"):
    return struct.pack(f"<{len(numbers)}{kind}", *numbers)


def tensor(dtype, shape, data):
    return {"dtype": dtype, "shape": shape, "bytes": data}


def f32(shape, *numbers):
    return tensor("F32", shape, floats(*numbers))


NARROW = {"I8": lambda x: floats(x, kind="b"), "F16": lambda x: floats(x, kind="e"), "BF16": lambda x: floats(x)[2:]}


def narrow(dtype, shape, *numbers):
    """Whole numbers in fewer bytes."""
    return tensor(dtype, shape, b"".join(map(NARROW[dtype], numbers)))


def tensors():
    """Two words of dimension 1, two labels."""
    return {
        "embedding.weight": f32([2, 1], 1, -1),
        "head.weight": f32([2, 1], 1, -1),
        "head.bias": f32([2], 0, 0),
    }


def attention(layer=0):
    names = ["w_q", "w_k", "w_v", "w_o"]
    return {f"layers.{layer}.attention.{name}": f32([1, 1, 1], 0.5) for name in names}


def feed_forward(prefix="layers.0.feed_forward", d=1):
    return {
        f"{prefix}.w1": f32([2, d], 1, -1),
        f"{prefix}.b1": f32([2], 0, 0),
        f"{prefix}.w2": f32([d, 2], 1, 1),
        f"{prefix}.b2": f32([d], 0),
    }


def sparse(name, values, columns, rows):
    """A matrix by its nonzero entries."""
    return {
        f"{name}.values": f32([len(values)], *values),
        f"{name}.columns": tensor("I32", [len(columns)], floats(*columns, kind="i")),
        f"{name}.rows": tensor("I32", [len(rows)], floats(*rows, kind="i")),
    }


def sparse_block(w1=([1, -1], [0, 0], [0, 1, 2])):
    """A block of two hidden units whose first matrix is stored by its nonzero entries."""
    block = feed_forward()
    del block["layers.0.feed_forward.w1"]
    return {**block, **sparse("layers.0.feed_forward.w1", *w1)}


def safetensors(entries, metadata=None, raw_header=None, before=b"", after=b""):
    """The file: 8 bytes of length, a JSON header, the numbers."""
    header, data = {}, b""
    if metadata is not None:
        header["__metadata__"] = metadata
    for name, entry in entries.items():
        span = entry.get("span", [len(data), len(data) + len(entry["bytes"])])
        header[name] = {"dtype": entry["dtype"], "shape": entry["shape"], "data_offsets": span}
        data += entry["bytes"]
    text = raw_header(header) if raw_header else json.dumps(header, separators=(",", ":"))
    text = text.encode() if isinstance(text, str) else text
    return struct.pack("<Q", len(before + text)) + before + text + data + after


def config(**changes):
    base = {
        "format": "monolayer/1",
        "d": 1,
        "dtype": "f32",
        "max_length": None,
        "labels": ["X", "Y"],
        "layers": [],
        "pre_feed_forward": None,
    }
    base.update(changes)
    return {key: value for key, value in base.items() if value is not ABSENT}


ABSENT = object()


def layer(mask="none", hidden=0, **changes):
    return {"attention": {"kind": "softmax", "heads": 1, "head_size": 1, "mask": mask, **changes}, "hidden": hidden}


LONE = {"attention": None, "hidden": 2}  # a feed-forward layer alone
TWO = "monolayer/2"


def model(name, why, answer="read", readers=None, config_json=None, numbers=None, vocabulary='{"a":0,"b":1}', files=None):
    """One model directory. Bytes and text are written as they are; None leaves a file out."""
    config_json = config() if config_json is None else config_json
    numbers = safetensors(tensors()) if numbers is None else numbers
    content = {"config.json": config_json, "model.safetensors": numbers, "vocabulary.json": vocabulary, **(files or {})}
    for file, what in content.items():
        if what is not None:
            what = json.dumps(what, separators=(",", ":")) if isinstance(what, dict) else what
            FILES[f"models/{name}/{file}"] = what.encode() if isinstance(what, str) else what
    expected = {"answer": answer, "why": why}
    if answer == "read":
        expected["readers"] = readers or ALL
    EXPECTED["models"][name] = expected


def good(name, why, **parts):
    model(name, why, **parts)


def bad(name, why, **parts):
    model(name, why, answer="refused", **parts)


def replaced(old, new, text=None):
    """A text of the plain config with one piece changed, which must be there."""
    text = json.dumps(config(), separators=(",", ":")) if text is None else text
    assert old in text, old
    return text.replace(old, new, 1)


def with_tensors(more=None, without=(), **how):
    entries = {name: entry for name, entry in tensors().items() if name not in without}
    return safetensors({**entries, **(more or {})}, **how)


# ---- a dataset -----------------------------------------------------------------------------------------------------


TEXT = ["core", "library", "numpy"]
ARRAYS = ["library", "numpy"]


def data(name, why, content, canonical=None, readers=None):
    """A dataset; one that is read has its canonical form beside it."""
    FILES[f"data/{name}"] = content.encode() if isinstance(content, str) else content
    expected = {"answer": "refused" if canonical is None else "read", "why": why}
    if canonical is not None:
        expected["readers"] = readers or TEXT
        expected["canonical"] = canonical
    EXPECTED["data"][name] = expected


# ---- a certificate -------------------------------------------------------------------------------------------------


def claims(**changes):
    """A certificate with a claim."""
    base = {
        "format": "monolayer-certificate/1",
        "model": {"config": "0" * 64, "tensors": "1" * 64, "vocabulary": None},
        "data": {"hash": "2" * 64, "tokens": 5, "sequences": 2, "impossible": 0},
        "claims": [{"kind": "rank", "tensor": "layers.0.attention.w_k", "rank": 1}],
        "assumptions": {"exp_ulp": 4},
    }
    return {name: value for name, value in {**base, **changes}.items() if value is not ABSENT}


def certificate(name, why, content, answer="read"):
    content = json.dumps(content, separators=(",", ":")) if isinstance(content, (dict, list)) else content
    FILES[f"certificates/{name}.json"] = content.encode() if isinstance(content, str) else content
    EXPECTED["certificates"][name] = {"answer": answer, "why": why, **({"readers": ALL} if answer == "read" else {})}


def lines(*sequences):
    return "".join(json.dumps(s, ensure_ascii=False, separators=(",", ":")) + "\n" for s in sequences)
