"""Model directories and JSON, read strictly, with the standard library only: docs/format.md, "What a reader refuses"."""

import json
import math
import struct
from pathlib import Path


WIDTHS = {"F32": 4, "F64": 8, "F16": 2, "BF16": 2, "U8": 1, "I8": 1, "I16": 2, "U16": 2, "I32": 4, "U32": 4, "I64": 8, "U64": 8}


def refuse(what):
    raise ValueError(what)


def read_json(path, raw=None):
    """JSON that two readers cannot read two ways: no byte order mark, no field twice, no half of a surrogate pair."""
    def fields(pairs):
        return dict(pairs) if len({name for name, _ in pairs}) == len(pairs) else refuse("a field is named twice")

    def check(value, depth=0):
        if isinstance(value, str):
            value.encode()  # fails for half of a surrogate pair
        elif isinstance(value, (dict, list)):
            if depth == 64:
                refuse("more than 64 brackets open")
            for inner in [*value, *value.values()] if isinstance(value, dict) else value:
                check(inner, depth + 1)
        return value

    try:
        text = (Path(path).read_bytes() if raw is None else raw).decode()
        if text.startswith("\ufeff"):
            refuse("a byte order mark")
        whole = lambda digits: int(digits) if len(digits) < 25 and digits != "-0" else float(digits)
        return check(json.loads(text, object_pairs_hook=fields, parse_constant=refuse, parse_int=whole))
    except (ValueError, RecursionError) as error:
        raise ValueError(f"{path}: {error}") from None


def is_size(value, least=1):
    return type(value) is int and value >= least  # a bool is no size


def read_header(path, raw):
    """The tensors of a safetensors file, checked: {name: (dtype, shape, bytes)}."""
    length = int.from_bytes(raw[:8], "little")
    header = bytes(raw[8 : 8 + length])
    if len(raw) < 8 or len(header) < length or not header.startswith(b"{"):
        refuse(f"{path}: not a safetensors file")
    entries, data = read_json(path, header), raw[8 + length :]
    metadata = entries.pop("__metadata__", {})
    if not isinstance(metadata, dict) or not all(isinstance(text, str) for text in metadata.values()):
        refuse(f"{path}: __metadata__ is no object of strings")
    for name, entry in entries.items():
        if not isinstance(entry, dict) or set(entry) != {"dtype", "shape", "data_offsets"}:
            refuse(f"{path}: tensor {name} has other fields than dtype, shape and data_offsets")
        shape, span = entry["shape"], entry["data_offsets"]
        if entry["dtype"] not in WIDTHS or not isinstance(shape, list) or not all(map(is_size, shape)):
            refuse(f"{path}: tensor {name} has a dtype or a shape that is not read")
        if not isinstance(span, list) or len(span) != 2 or not all(is_size(end, 0) for end in span):
            refuse(f"{path}: tensor {name} has offsets that are no sizes")
    found, end = {}, 0
    for name, entry in sorted(entries.items(), key=lambda item: item[1]["data_offsets"]):
        (start, stop), size = entry["data_offsets"], math.prod(entry["shape"]) * WIDTHS[entry["dtype"]]
        if start != end or stop != start + size or stop > len(data):
            refuse(f"{path}: tensor {name} does not stand where the one before it ends, or has another size")
        found[name], end = (entry["dtype"], entry["shape"], data[start:stop]), stop
    return found if end == len(data) else refuse(f"{path}: bytes after the last tensor")


def read_config(path, config=None):
    """config.json, or what was read from it, checked; what may be left out is null. What is not run here is refused by name."""
    config = read_json(path) if config is None else config
    fail = lambda what: refuse(f"{path}: {what}")
    version = config.get("format") if isinstance(config, dict) else None
    if version not in ("monolayer/1", "monolayer/2") or config.get("dtype") not in ("f32", "f64"):
        fail(f"format {version!r} with dtype {version and config.get('dtype')!r} is not read here")
    for field in ("start", "outputs"):
        if field in config and version == "monolayer/1":
            fail(f"the field {field!r} is of monolayer/2")
    for field in ("max_length", "start", "labels", "outputs", "pre_feed_forward"):
        config.setdefault(field, None)
    labels, pre, layers = config["labels"], config["pre_feed_forward"], config.get("layers")
    if not is_size(config.get("d")) or not (config["max_length"] is None or is_size(config["max_length"])):
        fail("d and max_length must be whole numbers from 1")
    if pre is not None and not (isinstance(pre, dict) and is_size(pre.get("hidden"))):
        fail("pre_feed_forward needs hidden units")
    if labels is not None and not (isinstance(labels, list) and labels and all(isinstance(x, str) for x in labels)):
        fail("labels must be a list of names")
    if labels is not None and len(set(labels)) < len(labels):
        fail("a label stands twice")
    if config["outputs"] is not None and (labels is not None or not is_size(config["outputs"])):
        fail("outputs must be a whole number from 1, where labels is null")
    if not isinstance(layers, list) or not all(isinstance(layer, dict) for layer in layers):
        fail("layers must be a list of objects")
    for layer in layers:
        attention = layer.setdefault("attention", None)
        if not is_size(layer.get("hidden"), 0) or not (attention is None or isinstance(attention, dict)):
            fail("a layer has an attention or null, and a whole number of hidden units")
        if attention is not None:
            mask = attention.get("mask")
            known = mask in ("none", "causal") or (version == "monolayer/2" and is_mask(mask))
            if not known or attention.get("kind") not in ("softmax", "hardmax") or not is_size(attention.get("heads")) or not is_size(attention.get("head_size")):
                fail("an attention whose kind, mask, heads or head_size is not read here")
    return config


def is_mask(mask):
    """A mask that is an object: one field, a known one, with sizes or the one name that its file may have."""
    kind, value = next(iter(mask.items())) if isinstance(mask, dict) and len(mask) == 1 else (None, None)
    sizes = {"prefix": [value], "band": value if isinstance(value, list) and len(value) == 2 else [None]}.get(kind, [None])
    return all(is_size(x, 0) and x < 2**63 for x in sizes) or (kind == "file" and value == "mask.safetensors")


def read_masks(directory, config):
    """Puts {"rows": ...}, zeros and ones, in the place of every mask that is in a file."""
    path = Path(directory, "mask.safetensors")
    layers = [layer["attention"] for layer in config["layers"] if layer["attention"] is not None]
    masked = [attention for attention in layers if isinstance(attention["mask"], dict) and "file" in attention["mask"]]
    if path.exists() != bool(masked):
        refuse(f"{path}: it is missing, or no layer names it")
    if not masked:
        return
    found = read_header(path, path.read_bytes())
    dtype, shape, raw = found.pop("mask", (None, [], b""))
    if found or dtype != "U8" or len(shape) != 2 or shape[0] != shape[1] or set(raw) - {0, 1}:
        refuse(f"{path}: it is not one tensor \"mask\", U8 [n, n], of zeros and ones")
    rows = [list(raw[i : i + shape[0]]) for i in range(0, len(raw), shape[0])]
    blind = [i + 1 for i, row in enumerate(rows) if row[i] == 0]
    if blind:
        refuse(f"{path}: the mask hides token {blind[0]} from itself")
    for attention in masked:
        attention["mask"] = {"rows": rows}


def shapes_of(config, words):
    """The shape of every tensor of a model."""
    d, rows, shapes = config["d"], config["outputs"] if config["labels"] is None else len(config["labels"]), {}
    blocks = [("pre_feed_forward", config["pre_feed_forward"])]
    if words is not None:
        shapes["embedding.weight"] = [words, d]
    if config["max_length"] is not None:
        shapes["positions.weight"] = [config["max_length"], d]
    if rows is not None:
        shapes.update({"head.weight": [rows, d], "head.bias": [rows]})
    for i, layer in enumerate(config["layers"]):
        attention = layer["attention"]
        if attention is not None:
            heads, size = attention["heads"], attention["head_size"]
            shapes.update({f"layers.{i}.attention.{name}": [heads, size, d] for name in ("w_q", "w_k", "w_v")})
            shapes[f"layers.{i}.attention.w_o"] = [heads, d, size]
        blocks.append((f"layers.{i}.feed_forward", layer))
    for prefix, block in blocks:
        q = 0 if block is None else block["hidden"]
        if q > 0:
            parts = {"w1": [q, d], "b1": [q], "w2": [d, q], "b2": [d]}
            shapes.update({f"{prefix}.{name}": shape for name, shape in parts.items()})
    return shapes


def read_vocabulary(path, rows):
    """Each word once, each row with one word."""
    vocabulary = read_json(path)
    ids = list(vocabulary.values()) if isinstance(vocabulary, dict) else []
    if not all(is_size(row, 0) for row in ids) or sorted(ids) != list(range(rows)):
        refuse(f"{path}: it must give each row of embedding.weight one word, from 0")
    return vocabulary


def read_files(directory, config=None):
    """A model directory, checked: its config with the masks of files as {"rows": ...}, its vocabulary or None, its tensors as {name: (dtype, shape, bytes)}.

    Matrices stored by their nonzero entries (monolayer/2) are made dense, and numbers stored in fewer bytes are widened: every tensor
    has the shape of shapes_of and the dtype of the config.
    """
    config = read_config(Path(directory, "config.json"), config)
    read_masks(directory, config)
    path, words = Path(directory, "model.safetensors"), Path(directory, "vocabulary.json")
    tensors = read_header(path, path.read_bytes())
    embedding = tensors.get("embedding.weight")
    if (embedding is not None) != words.exists():
        refuse(f"{words}: there must be one exactly where there is a tensor embedding.weight")
    rows = None if embedding is None else [*embedding[1], 0][0]
    vocabulary = None if rows is None else read_vocabulary(words, rows)
    start = config["start"]
    if start is not None and not (isinstance(start, str) and start in (vocabulary or ())):
        refuse(f"{words}: the start token {start!r} is no word of it")
    shapes, dtype = shapes_of(config, rows), config["dtype"].upper()
    for name in shapes if config["format"] == "monolayer/2" else ():
        if name.endswith((".w1", ".w2")) and f"{name}.values" in tensors and name not in tensors:
            parts = [tensors.pop(f"{name}.{part}", None) for part in ("values", "columns", "rows")]
            tensors[name] = (parts[0][0], shapes[name], dense(path, name, shapes[name], parts))
    for name, (found, shape, raw) in tensors.items() if config["format"] == "monolayer/2" else ():
        if name in shapes and found in NARROWER[dtype]:
            tensors[name] = (dtype, shape, widened(found, dtype, raw))
    for name in [*shapes, *tensors]:
        if name not in tensors or name not in shapes or tensors[name][:2] != (dtype, shapes[name]):
            refuse(f"{path}: tensor {name} is missing, is none of the model's, or has another shape or dtype")
    for name, (_, _, raw) in tensors.items():
        if not all(map(math.isfinite, struct.unpack(f"<{len(raw) // WIDTHS[dtype]}{CODES[dtype]}", raw))):
            refuse(f"{path}: tensor {name} has a number that is not finite")
    return config, vocabulary, tensors


def read_certificate(path):
    """certificate.json, checked as far as its shape goes: what it claims is not looked at here."""
    certificate = read_json(path)
    fail = lambda what: refuse(f"{path}: {what}")
    if not isinstance(certificate, dict) or certificate.get("format") != "monolayer-certificate/1":
        fail("not a certificate of version 1")
    if not isinstance(certificate.get("claims"), list):
        fail("claims must be a list")
    is_count = lambda x: is_size(x, 0) and x < 2**63
    is_ulps = lambda x: type(x) in (int, float) and 0 <= x <= 1024 and x == int(x)
    fields = {("model", name): lambda x: isinstance(x, str) for name in ("config", "tensors", "vocabulary", "mask")}
    fields.update({("data", name): is_count for name in ("tokens", "sequences", "impossible", "free")})
    fields.update({("data", "hash"): lambda x: isinstance(x, str), ("assumptions", "exp_ulp"): is_ulps})
    for (part, name), fits in fields.items():
        inside = certificate.get(part)
        if inside is not None and not isinstance(inside, dict):
            fail(f"{part} must be an object")
        value = None if inside is None else inside.get(name)
        if value is not None and not fits(value):
            fail(f"{name} of {part} is not what it must be")
    return certificate


CODES = {"F16": "e", "F32": "f", "F64": "d", "I8": "b", "I32": "i"}
NARROWER = {"F32": ["I8", "F16", "BF16"], "F64": ["I8", "F16", "BF16", "F32"]}


def widened(dtype, wide, raw):
    """The bytes of the same numbers in a wider dtype, which has all of them."""
    if dtype == "BF16":  # the second half of a single, whose first half is 0
        single = bytearray(2 * len(raw))
        single[2::4], single[3::4] = raw[0::2], raw[1::2]
        dtype, raw = "F32", bytes(single)
    count = len(raw) // WIDTHS[dtype]
    return raw if dtype == wide else struct.pack(f"<{count}{CODES[wide]}", *struct.unpack(f"<{count}{CODES[dtype]}", raw))


def dense(path, name, shape, parts):
    """The bytes of a matrix from those of its nonzero entries, their columns, and where each row begins among them."""
    fail = lambda: refuse(f"{path}: matrix {name} is not stored by rows as docs/format.md says")
    if None in parts or [part[0] for part in parts[1:]] != ["I32", "I32"] or any(len(part[1]) != 1 for part in parts):
        fail()
    columns, rows = (struct.unpack(f"<{len(raw) // 4}i", raw) for _, _, raw in parts[1:])
    width, values = WIDTHS[parts[0][0]], parts[0][2]
    if len(rows) != shape[0] + 1 or rows[0] != 0 or list(rows) != sorted(rows):
        fail()
    if not rows[-1] == len(columns) == parts[0][1][0] or math.prod(shape) * width > 2 << 30:
        fail()
    matrix = bytearray(math.prod(shape) * width)
    for row, (start, stop) in enumerate(zip(rows, rows[1:])):
        inside = list(columns[start:stop])
        if inside != sorted(set(inside)) or not all(0 <= column < shape[1] for column in inside):
            fail()
        for i, column in zip(range(start, stop), inside):
            at = (row * shape[1] + column) * width
            matrix[at : at + width] = values[i * width : (i + 1) * width]
    return bytes(matrix)
