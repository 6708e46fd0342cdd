"""Writes grammar/: small model directories and datasets, good and bad, and expected.json, which says what readers must do.

    python tools/make_grammar.py            writes grammar/ anew, the same bytes every time
    python tools/make_grammar.py --check    says whether grammar/ is what this script writes

Every bad case breaks one rule of "What a reader refuses" in docs/format.md, and its good neighbor stands beside it.
"""

import json
import struct
import sys
from pathlib import Path

from grammar_parts import *

ROOT = Path(__file__).resolve().parent.parent / "grammar"
RATIONAL = ["core", "library"]  # who reads exact models


# ---- JSON ------------------------------------------------------------------------------------------------------------


def json_cases():
    """Rules of every JSON file, tried on config.json, vocabulary.json and headers."""
    extra = lambda text: replaced('"d":1', f'"d":1,{text}')
    good("plain", "two words, two labels, no layer")
    good("field-unknown", "fields that a reader does not know are ignored", config_json=extra('"x":{"y":[1,"z"]}'))
    good("json-blanks", "blanks, tabs and line ends between values", config_json=replaced('"d":1', ' "d"\t:\r\n 1 ') + "\n")
    good("json-escapes", "escapes, a surrogate pair among them", config_json=extra(r'"\u0078":"\ud83d\ude00\/\u0000"'))
    good("json-number-beyond-floats", "any number of JSON in a field that is ignored", config_json=extra('"x":1e999'))
    good("json-64-deep", "64 brackets open", config_json=extra(f'"x":{"[" * 63}{"]" * 63}'))
    bad("json-65-deep", "65 brackets open", config_json=extra(f'"x":{"[" * 64}{"]" * 64}'))
    bad("json-deep", "1,000 brackets open", config_json=extra(f'"x":{"[" * 1000}{"]" * 1000}'))
    bad("config-byte-order-mark", "a byte order mark before config.json", config_json="\ufeff" + json.dumps(config()))
    bad("config-utf-16", "config.json in UTF-16", config_json=json.dumps(config()).encode("utf-16"))
    bad("config-latin-1", "a byte that is not UTF-8", config_json=replaced('"X"', '"\xe9"').encode("latin-1"))
    bad("config-field-twice", "d is named twice", config_json=extra('"d":1'))
    bad("config-field-twice-escaped", "d is named twice, once as \\u0064", config_json=extra(r'"\u0064":2'))
    bad("config-inner-field-twice", "a field is named twice in source", config_json=extra('"source":{"a":1,"a":2}'))
    bad("config-lone-surrogate", "half of a surrogate pair", config_json=replaced('"X"', r'"\ud800"'))
    bad("config-low-surrogate", "the second half of a pair alone", config_json=extra(r'"x":"\udc00"'))
    bad("config-surrogate-and-letter", "half of a pair, then a letter", config_json=extra(r'"x":"\ud83dx"'))
    bad("config-surrogate-in-name", "half of a pair in a name", config_json=extra(r'"\ud800":1'))
    bad("config-control-character", "a line end inside a string", config_json=extra('"x":"a\nb"'))
    bad("config-escape", "an escape that JSON does not have", config_json=extra(r'"x":"\x41"'))
    bad("config-nan", "NaN is no number of JSON", config_json=extra('"x":NaN'))
    bad("config-infinity", "Infinity is no number of JSON", config_json=extra('"x":-Infinity'))
    bad("config-leading-zero", "a leading zero", config_json=extra('"x":01'))
    bad("config-plus", "a plus before a number", config_json=extra('"x":+1'))
    bad("config-point", "a number that ends in a point", config_json=extra('"x":1.'))
    bad("config-comma", "a comma after the last field", config_json=replaced("}", ",}"))
    bad("config-comment", "a comment", config_json=json.dumps(config()) + "// the end")
    bad("config-two-values", "a second value after the first", config_json=json.dumps(config()) + "{}")
    bad("config-empty", "an empty file", config_json="")
    bad("config-list", "a list in place of the object", config_json='["monolayer/1",1,"f32",null,["X","Y"],[],null,null]')
    bad("vocabulary-byte-order-mark", "a byte order mark before vocabulary.json", vocabulary='\ufeff{"a":0,"b":1}')
    bad("vocabulary-lone-surrogate", "a word that is half of a surrogate pair", vocabulary=r'{"a":0,"\udfff":1}')
    good("vocabulary-surrogate-pair", "a word that is a surrogate pair", vocabulary=r'{"a":0,"\ud83d\ude00":1}')


# ---- config.json -----------------------------------------------------------------------------------------------------


def config_cases():
    absent = config(max_length=ABSENT, pre_feed_forward=ABSENT)
    good("config-absent-is-null", "max_length and pre_feed_forward left out", config_json=absent)
    bad("config-no-format", "no format", config_json=config(format=ABSENT))
    bad("config-other-format", "a format that nobody knows", config_json=config(format="monolayer/3"))
    bad("config-no-layers", "no layers", config_json=config(layers=ABSENT))
    bad("config-d-zero", "a dimension of 0", config_json=config(d=0))
    bad("config-d-float", "1.0 is no size", config_json=config(d=1.0))
    bad("config-d-exponent", "1e0 is no size", config_json=replaced('"d":1', '"d":1e0'))
    bad("config-d-text", "a string is no size", config_json=config(d="1"))
    bad("config-d-true", "true is no size", config_json=config(d=True))
    bad("config-d-negative", "a negative dimension", config_json=config(d=-1))
    bad("config-dtype-f16", "f16 is no dtype here", config_json=config(dtype="f16"))
    bad("config-dtype-capitals", "dtypes are written small", config_json=config(dtype="F32"))
    bad("config-labels-empty", "an empty list of labels", config_json=config(labels=[]))
    bad("config-label-twice", "a label that stands twice", config_json=config(labels=["X", "X"]))
    bad("config-label-number", "a label that is a number", config_json=config(labels=["X", 1]))
    bad("config-labels-text", "labels that are a string", config_json=config(labels="XY"))
    good("config-label-empty-name", "a label with an empty name", config_json=config(labels=["X", ""]))
    vectors = safetensors({"layers.0.feed_forward." + n.rsplit(".")[-1]: t for n, t in feed_forward().items()})
    good("vectors", "vectors in, vectors out", config_json=config(labels=None, layers=[LONE]), numbers=vectors, vocabulary=None)

    pre = feed_forward("pre_feed_forward")
    good("pre", "a block before the first layer", config_json=config(pre_feed_forward={"hidden": 2}), numbers=with_tensors(pre))
    bad("pre-hidden-zero", "a block of 0 hidden units", config_json=config(pre_feed_forward={"hidden": 0}))
    bad("pre-number", "a block that is no object", config_json=config(pre_feed_forward=2), numbers=with_tensors(pre))
    bad("pre-list", "a block that is a list", config_json=config(pre_feed_forward=[2]), numbers=with_tensors(pre))

    places = {"positions.weight": f32([3, 1], 0, 1, 2)}
    good("positions", "three places", config_json=config(max_length=3), numbers=with_tensors(places))
    bad("positions-zero", "a max_length of 0", config_json=config(max_length=0))
    bad("positions-missing", "max_length without positions.weight", config_json=config(max_length=3))
    bad("positions-unasked", "positions.weight without max_length", numbers=with_tensors(places))

    one = with_tensors(attention())
    good("attention", "one layer of attention alone", config_json=config(layers=[layer()]), numbers=one)
    good("attention-causal", "a causal mask", config_json=config(layers=[layer("causal")]), numbers=one)
    good("attention-hardmax", "hardmax", config_json=config(layers=[layer(kind="hardmax")]), numbers=one)
    good("layer", "attention and hidden units", config_json=config(layers=[layer(hidden=2)]), numbers=with_tensors({**attention(), **feed_forward()}))
    good("layer-attention-absent", "attention left out is null", config_json=config(layers=[{"hidden": 2}]), numbers=with_tensors(feed_forward()))
    good("layer-of-nothing", "a layer without attention and hidden units", config_json=config(layers=[{"attention": None, "hidden": 0}]))
    bad("attention-heads-zero", "0 heads", config_json=config(layers=[layer(heads=0)]), numbers=one)
    bad("attention-head-size-zero", "heads of size 0", config_json=config(layers=[layer(head_size=0)]), numbers=one)
    bad("attention-kind-linear", "a kind that nobody knows", config_json=config(layers=[layer(kind="linear")]), numbers=one)
    bad("attention-kind-object", "a kind that is an object", config_json=config(layers=[layer(kind={"softmax": None})]), numbers=one)
    bad("attention-mask-missing", "no mask", config_json=replaced(',"mask":"none"', "", json.dumps(config(layers=[layer()]), separators=(",", ":"))), numbers=one)
    bad("attention-mask-other", "a mask that nobody knows", config_json=config(layers=[layer("banded")]), numbers=one)
    bad("attention-list", "an attention that is a list", config_json=config(layers=[{"attention": ["softmax", 1, 1, "none"], "hidden": 0}]), numbers=one)
    bad("layer-list", "a layer that is a list", config_json=config(layers=[[None, 2]]), numbers=with_tensors(feed_forward()))
    bad("layer-hidden-missing", "a layer that does not say how many hidden units", config_json=config(layers=[{"attention": None}]))
    bad("layer-hidden-negative-zero", "-0 is no size", config_json=replaced('"layers":[]', '"layers":[{"attention":null,"hidden":-0}]'))
    bad("layer-hidden-null", "null is no size", config_json=config(layers=[{"attention": None, "hidden": None}]))


# ---- tensors ---------------------------------------------------------------------------------------------------------


def tensor_cases():
    good("metadata", "metadata of strings", numbers=with_tensors(metadata={"a": "b"}))
    good("metadata-empty", "metadata without fields", numbers=with_tensors(metadata={}))
    bad("metadata-number", "metadata that has a number", numbers=with_tensors(metadata={"a": 1}))
    bad("metadata-list", "metadata that is a list", numbers=with_tensors(metadata=[]))
    bad("metadata-nested", "metadata that has an object", numbers=with_tensors(metadata={"a": {"b": "c"}}))
    bad("metadata-null", "metadata that is null", numbers=with_tensors(raw_header=lambda h: replaced("{", '{"__metadata__":null,', json.dumps(h))))
    compact = lambda header: json.dumps(header, separators=(",", ":"))
    good("header-padded", "blanks after the header", numbers=with_tensors(raw_header=lambda h: compact(h) + "   "))
    bad("header-blank-before", "a blank before the header", numbers=with_tensors(before=b" "))
    bad("header-byte-order-mark", "a byte order mark before the header", numbers=with_tensors(before=b"\xef\xbb\xbf"))
    twice = lambda h: replaced("{", '{"head.bias":' + compact(h["head.bias"]) + ",", compact(h))
    bad("tensor-twice", "a tensor named twice", numbers=with_tensors(raw_header=twice))
    escaped = lambda h: replaced("{", '{"head.b\\u0069as":' + compact(h["head.bias"]) + ",", compact(h))
    bad("tensor-twice-escaped", "a tensor named twice, once with an escape", numbers=with_tensors(raw_header=escaped))
    inner = lambda h: replaced('"dtype":"F32"', '"dtype":"F32","dtype":"F32"', compact(h))
    bad("tensor-field-twice", "a tensor's field named twice", numbers=with_tensors(raw_header=inner))
    more = lambda h: replaced('"dtype":"F32"', '"dtype":"F32","unit":"m"', compact(h))
    bad("tensor-field-unknown", "a tensor with a fourth field", numbers=with_tensors(raw_header=more))
    bad("tensor-null", "a tensor that is null", numbers=with_tensors(raw_header=lambda h: replaced("{", '{"x":null,', compact(h))))
    bad("tensor-offset-float", "an offset of 0.0", numbers=with_tensors(raw_header=lambda h: replaced("[0,", "[0.0,", compact(h))))
    bad("tensor-stray", "a tensor that config.json does not ask for", numbers=with_tensors({"extra": f32([1], 1)}))
    bad("tensor-missing", "no head.bias", numbers=with_tensors(without=["head.bias"]))
    bad("tensor-wrong-shape", "head.bias as [2, 1]", numbers=with_tensors({"head.bias": f32([2, 1], 0, 0)}))
    bad("tensor-wrong-dtype", "head.bias in f64", numbers=with_tensors({"head.bias": tensor("F64", [2], floats(0, 0, kind="d"))}))
    bad("tensor-zero-size", "a stray tensor of size 0", numbers=with_tensors({"extra": f32([0])}))
    bad("tensor-too-few-bytes", "a shape of 3 for 2 numbers", numbers=with_tensors({"head.bias": f32([3], 0, 0)}))
    hole = {**f32([2], 0, 0), "bytes": floats(7, 0, 0), "span": [20, 28]}
    bad("tensors-hole", "four bytes between two tensors", numbers=with_tensors({"head.bias": hole}))
    overlap = {**f32([2], 0, 0), "bytes": floats(0), "span": [12, 20]}
    bad("tensors-overlap", "two tensors share four bytes", numbers=with_tensors({"head.bias": overlap}))
    bad("tensors-backward", "offsets that go backward", numbers=with_tensors({"head.bias": {**f32([2], 0, 0), "span": [24, 16]}}))
    bad("tensors-outside", "offsets beyond the end", numbers=with_tensors({"head.bias": {**f32([2], 0, 0), "span": [160, 168]}}))
    bad("bytes-after-the-end", "a byte after the last tensor", numbers=with_tensors(after=b"\0"))
    bad("tensors-truncated", "the last number is cut off", numbers=with_tensors()[:-4])
    bad("header-too-long", "a header longer than the file", numbers=struct.pack("<Q", 10**6) + b"{}")
    bad("tensors-seven-bytes", "seven bytes", numbers=b"\2\0\0\0\0\0\0")
    for name, number in [("infinity", "inf"), ("minus-infinity", "-inf"), ("nan", "nan")]:
        bad(f"weight-{name}", f"a weight of {number}", numbers=with_tensors({"head.bias": f32([2], 0, float(number))}))
    good("weight-subnormal", "the smallest positive number", numbers=with_tensors({"head.bias": f32([2], 0, 2**-149)}))
    double = {name: tensor("F64", t["shape"], struct.pack(f"<{len(t['bytes']) // 4}d", *struct.unpack(f"<{len(t['bytes']) // 4}f", t["bytes"]))) for name, t in tensors().items()}
    good("f64", "numbers in f64", config_json=config(dtype="f64"), numbers=safetensors(double))
    bad("f64-said-f32", "numbers in f64 where config.json says f32", numbers=safetensors(double))
    good("tensors-any-order", "tensors in another order", numbers=safetensors(dict(reversed(tensors().items()))))


def vocabulary_cases():
    good("vocabulary-any-order", "rows in any order, the empty word", vocabulary='{"b":1,"":0}')
    bad("vocabulary-missing", "an embedding without vocabulary.json", vocabulary=None)
    bad("vocabulary-unasked", "vocabulary.json without an embedding", numbers=with_tensors(without=["embedding.weight"]))
    bad("vocabulary-word-twice", "a word named twice", vocabulary='{"a":0,"b":1,"a":1}')
    bad("vocabulary-row-twice", "two words with one row", vocabulary='{"a":0,"b":1,"c":1}')
    bad("vocabulary-row-missing", "a row without a word", vocabulary='{"a":0}')
    bad("vocabulary-row-outside", "a row that the embedding does not have", vocabulary='{"a":0,"b":2}')
    bad("vocabulary-row-negative", "a negative row", vocabulary='{"a":0,"b":-1}')
    bad("vocabulary-row-minus-zero", "-0 is no row", vocabulary='{"a":-0,"b":1}')
    bad("vocabulary-row-float", "1.0 is no row", vocabulary='{"a":0,"b":1.0}')
    bad("vocabulary-row-true", "true is no row", vocabulary='{"a":0,"b":true}')
    bad("vocabulary-row-text", "a string is no row", vocabulary='{"a":0,"b":"1"}')
    bad("vocabulary-list", "a list of words", vocabulary='["a","b"]')


# ---- version 2 -------------------------------------------------------------------------------------------------------


def version_2_cases():
    two = lambda **changes: config(format=TWO, **changes)
    one = with_tensors(attention())
    good("v2-plain", "version 2 with nothing that version 1 does not have", config_json=two(layers=[layer("causal")]), numbers=one)
    good("v2-null-fields", "start and outputs that are null", config_json=two(start=None, outputs=None))
    bad("v1-start", "a start token in version 1", config_json=config(start="a"))
    bad("v1-start-null", "the field start in version 1, even null", config_json=config(start=None))
    bad("v1-outputs", "outputs in version 1", config_json=config(labels=None, outputs=2))
    bad("v1-outputs-null", "the field outputs in version 1, even null", config_json=config(outputs=None))
    bad("v1-mask-object", "a mask object in version 1", config_json=config(layers=[layer({"prefix": 1})]), numbers=one)
    bad("v1-sparse", "sparse storage in version 1", config_json=config(layers=[LONE]), numbers=with_tensors(sparse_block()))
    start = lambda word: two(start=word, layers=[layer()])
    good("v2-start", "a start token", config_json=start("a"), numbers=one)
    bad("v2-start-unknown", "a start token that is no word", config_json=start("c"), numbers=one)
    vectors = with_tensors(attention(), without=["embedding.weight"])
    bad("v2-start-vectors", "a start token without words", config_json=start("a"), numbers=vectors, vocabulary=None)
    bad("v2-start-number", "a start token that is a number", config_json=start(0), numbers=one)
    outputs = lambda **more: two(labels=None, **more)
    good("v2-outputs", "outputs of dimension 2", config_json=outputs(outputs=2))
    bad("v2-outputs-zero", "outputs of dimension 0", config_json=outputs(outputs=0), numbers=with_tensors(without=["head.weight", "head.bias"]))
    bad("v2-outputs-and-labels", "labels and outputs", config_json=two(outputs=2))
    masked = lambda mask: two(layers=[layer(mask)])
    for name, mask in [("prefix", {"prefix": 1}), ("prefix-zero", {"prefix": 0}), ("band", {"band": [1, 0]}), ("prefix-large", {"prefix": 2**63 - 1})]:
        good(f"v2-mask-{name}", f"the mask {json.dumps(mask)}", config_json=masked(mask), numbers=one)
    for name, mask in [
        ("of-two-kinds", {"prefix": 1, "band": [1, 0]}),
        ("empty", {}),
        ("unknown", {"stripes": 2}),
        ("band-of-one", {"band": [1]}),
        ("band-negative", {"band": [-1, 0]}),
        ("band-of-three", {"band": [1, 0, 0]}),
        ("band-of-floats", {"band": [1.0, 0]}),
        ("prefix-float", {"prefix": 1.0}),
        ("prefix-true", {"prefix": True}),
        ("prefix-too-large", {"prefix": 2**63}),
        ("none-object", {"none": None}),
        ("causal-object", {"causal": None}),
        ("file-elsewhere", {"file": "../mask.safetensors"}),
        ("file-missing", {"file": "mask.safetensors"}),
        ("list", ["causal"]),
    ]:
        bad(f"v2-mask-{name}", f"the mask {json.dumps(mask)}", config_json=masked(mask), numbers=one)
    in_file = masked({"file": "mask.safetensors"})
    grid = lambda *entries, dtype="U8", name="mask", shape=(2, 2): safetensors({name: tensor(dtype, list(shape), bytes(entries))})
    masks = [
        ("mask-file-good", "a mask in a file", grid(1, 0, 1, 1)),
        ("mask-file-blind", "a token that does not see itself", grid(1, 0, 1, 0)),
        ("mask-file-two", "an entry that is neither 0 nor 1", grid(1, 2, 1, 1)),
        ("mask-file-oblong", "a mask that is not square", grid(1, 1, shape=(1, 2))),
        ("mask-file-i8", "a mask of another dtype", grid(1, 0, 1, 1, dtype="I8")),
        ("mask-file-name", "a tensor of another name", grid(1, 0, 1, 1, name="masks")),
    ]
    good(f"v2-{masks[0][0]}", masks[0][1], config_json=in_file, numbers=one, files={"mask.safetensors": masks[0][2]})
    for name, why, file in masks[1:]:
        bad(f"v2-{name}", why, config_json=in_file, numbers=one, files={"mask.safetensors": file})
    stray = {"mask.safetensors": masks[0][2]}
    bad("v2-mask-file-stray", "a mask in a file that no layer names", config_json=masked("causal"), numbers=one, files=stray)
    bad("v1-mask-file-stray", "a mask in a file beside a model of version 1", files=stray)


def sparse_cases():
    two = config(format=TWO, layers=[LONE])
    good("v2-sparse", "w1 by its nonzero entries", config_json=two, numbers=with_tensors(sparse_block()))
    good("v2-sparse-empty-row", "a row without entries", config_json=two, numbers=with_tensors(sparse_block(([1], [0], [0, 0, 1]))))
    for name, why, parts in [
        ("rows-start", "rows that do not start with 0", ([1, -1], [0, 0], [1, 1, 2])),
        ("rows-end", "rows that do not end with the number of values", ([1, -1], [0, 0], [0, 1, 1])),
        ("rows-decrease", "rows that decrease", ([1, -1], [0, 0], [0, 3, 2])),
        ("rows-few", "too few rows", ([1, -1], [0, 0], [0, 2])),
        ("column-outside", "a column that the matrix does not have", ([1, -1], [0, 1], [0, 1, 2])),
        ("column-negative", "a negative column", ([1, -1], [-1, 0], [0, 1, 2])),
        ("column-twice", "a column twice in a row", ([1, -1], [0, 0], [0, 2, 2])),
        ("columns-few", "fewer columns than values", ([1, -1], [0], [0, 1, 2])),
    ]:
        bad(f"v2-sparse-{name}", why, config_json=two, numbers=with_tensors(sparse_block(parts)))
    part = sparse_block()
    del part["layers.0.feed_forward.w1.rows"]
    bad("v2-sparse-part", "a sparse matrix without its rows", config_json=two, numbers=with_tensors(part))
    both = {**sparse_block(), **feed_forward()}
    bad("v2-sparse-and-dense", "a matrix stored both ways", config_json=two, numbers=with_tensors(both))
    bias = {**feed_forward(), **sparse("layers.0.feed_forward.b1", [1], [0], [0, 1])}
    del bias["layers.0.feed_forward.b1"]
    bad("v2-sparse-bias", "a bias stored by its nonzero entries", config_json=two, numbers=with_tensors(bias))
    infinite = sparse_block(([1, float("inf")], [0, 0], [0, 1, 2]))
    bad("v2-sparse-infinity", "an infinite entry", config_json=two, numbers=with_tensors(infinite))


def narrow_cases():
    """Numbers in fewer bytes than the model computes with: in version 2, for weights alone, and finite."""
    two, block, w1 = config(format=TWO), config(format=TWO, layers=[LONE]), "layers.0.feed_forward.w1"
    whole = lambda t: map(int, struct.unpack(f"<{len(t['bytes']) // 4}f", t["bytes"]))
    for dtype, width in [("I8", 1), ("F16", 2), ("BF16", 2)]:
        name, all_of_it = dtype.lower(), {name: narrow(dtype, t["shape"], *whole(t)) for name, t in tensors().items()}
        with_bias = lambda bias: safetensors({**all_of_it, "head.bias": bias})
        good(f"v2-{name}", f"every tensor in {dtype}", config_json=two, numbers=safetensors(all_of_it))
        good(f"v2-{name}-in-f64", f"{dtype} in a model of f64", config_json=config(format=TWO, dtype="f64"), numbers=safetensors(all_of_it))
        good(f"v2-{name}-and-f32", f"some tensors in {dtype}", config_json=two, numbers=with_bias(f32([2], 0, 0.1)))
        bad(f"v1-{name}", f"{dtype} in version 1", numbers=safetensors(all_of_it))
        bad(f"v2-{name}-bytes", f"a number of {dtype} too many", config_json=two, numbers=with_bias(narrow(dtype, [2], 0, 0, 0)))
        bad(f"v2-{name}-cut", f"{dtype} with a byte too few", config_json=two, numbers=with_bias(tensor(dtype, [2], bytes(2 * width - 1))))
        bad(f"v2-{name}-overlap", f"tensors of {dtype} that share bytes", config_json=two, numbers=with_bias({**narrow(dtype, [2], 0, 0), "span": [3 * width, 5 * width]}))
        values = {**sparse_block(), f"{w1}.values": narrow(dtype, [2], 1, -1)}  # indices stay I32
        good(f"v2-sparse-{name}", f"entries in {dtype}", config_json=block, numbers=with_tensors(values))
        bad(f"v1-sparse-{name}", f"entries in {dtype} in version 1", config_json=config(layers=[LONE]), numbers=with_tensors(values))
        for part, indices in [("columns", [0, 0]), ("rows", [0, 1, 2])]:
            bad(f"v2-sparse-{name}-{part}", f"{part} in {dtype}", config_json=block, numbers=with_tensors({**values, f"{w1}.{part}": narrow(dtype, [len(indices)], *indices)}))
    bias = lambda dtype, data: {"config_json": two, "numbers": with_tensors({"head.bias": tensor(dtype, [2], data)})}
    good("v2-f32-in-f64", "numbers in f32 in a model of f64", config_json=config(format=TWO, dtype="f64"))
    bad("v2-f64-in-f32", "numbers in f64 in a model of f32", **bias("F64", bytes(16)))
    for add, name, bits in [
        (bad, "f16-infinity", 0x7C00), (bad, "f16-nan", 0xFE00), (bad, "bf16-infinity", 0xFF80), (bad, "bf16-nan", 0x7FC0), (bad, "bf16-nan-payload", 0x7F81),
        (good, "f16-subnormal", 1), (good, "f16-largest", 0x7BFF), (good, "f16-minus-zero", 0x8000), (good, "bf16-subnormal", 0x8001), (good, "bf16-largest", 0x7F7F),
    ]:
        add(f"v2-{name}", f"a weight that is {name}", **bias(name.split("-")[0].upper(), struct.pack("<2H", 0, bits)))
    for dtype, width in [("I64", 8), ("I32", 4), ("I16", 2), ("U8", 1), ("U16", 2), ("BOOL", 1), ("F8_E4M3", 1), ("F4", 1), ("bf16", 2), ("BFLOAT16", 2)]:
        bad(f"v2-dtype-{dtype.replace('_', '-').lower()}{'-small' if dtype == 'bf16' else ''}", f"weights in {dtype}", **bias(dtype, bytes(2 * width)))


# ---- exact models ----------------------------------------------------------------------------------------------------


def exact_cases():
    weights = lambda **changes: json.dumps({
        "embedding.weight": {"shape": [2, 1], "data": ["1", "-1"]},
        "head.weight": {"shape": [2, 1], "data": ["1/3", "-1.25e3"]},
        "head.bias": {"shape": [2], "data": ["0", "+.5"], **changes},
    })
    def case(name, why, text, **more):
        files = {"weights.json": text, "model.safetensors": None}
        (good if more else bad)(name, why, config_json=config(dtype="exact"), files=files, **more)
    case("exact", "decimals and fractions", weights(), readers=RATIONAL)
    case("exact-spellings", "2. and 1E+2 are decimals", weights(data=["2.", "1E+2"]), readers=RATIONAL)
    case("exact-division-by-zero", "a denominator of 0", weights(data=["0", "1/0"]))
    case("exact-signed-denominator", "a sign in a denominator", weights(data=["0", "1/+2"]))
    case("exact-fraction-of-decimals", "a fraction of decimals", weights(data=["0", "1.5/2"]))
    case("exact-no-digits", "a point alone", weights(data=["0", "."]))
    case("exact-no-exponent", "an exponent without digits", weights(data=["0", "1e"]))
    case("exact-infinity", "inf is no decimal", weights(data=["0", "inf"]))
    case("exact-blank", "a blank before a number", weights(data=["0", " 1"]))
    case("exact-other-digits", "digits that are not ASCII", weights(data=["0", "\u0661"]))
    case("exact-float", "a number that is no string", weights(data=["0", 0.5]))
    case("exact-count", "three numbers for a shape of 2", weights(data=["0", "1", "2"]))
    case("exact-zero-size", "a size of 0", weights(shape=[0], data=[]))
    case("exact-field-unknown", "a third field", weights(unit="m"))
    case("exact-list", "a tensor that is a list", replaced('{"shape": [2], "data": ["0", "+.5"]}', '[[2], ["0", "+.5"]]', weights()))
    case("exact-byte-order-mark", "a byte order mark", "\ufeff" + weights())
    case("exact-tensor-twice", "a tensor named twice", replaced('"head.bias"', '"head.bias": {"shape": [2], "data": ["0", "1"]}, "head.bias"', weights()))
    case("exact-missing", "no weights.json", None)


# ---- datasets --------------------------------------------------------------------------------------------------------


def text_data_cases():
    two = lines({"tokens": ["a", "b"], "labels": ["X", "Y"]}, {"tokens": ["a"], "labels": ["Y"]})
    data("plain.jsonl", "two sequences", two, two)
    data("blanks.jsonl", "blanks, blank lines, CRLF, fields in another order, a byte order mark, an escape",
         '\ufeff\r\n{ "labels": ["X", "\\u0059"], "tokens": ["a","b"] }\r\n \t\r\n{"tokens":["a"],"labels":["Y"]}', two)
    data("plain.conll", "the same as columns", "a X\nb Y\n\na Y\n", two)
    data("documents.conll", "documents, other columns, CRLF, a byte order mark, blank lines",
         "\ufeff-DOCSTART- -X- O\r\n\r\na NN X\r\nb\tVB  Y \r\n\r\n \r\n-DOCSTART-\r\na NN Y", two)
    data("no-labels.conll", "one column: no labels", "a\n\nb\n", lines({"tokens": ["a"]}, {"tokens": ["b"]}))
    data("no-labels.jsonl", "no labels", lines({"tokens": [""]}), lines({"tokens": [""]}))
    data("latin-1.conll", "a line that is not UTF-8 is Latin-1", b"\xe9 X\n", lines({"tokens": ["é"], "labels": ["X"]}))
    data("number-labels.conll", "labels of columns are strings", "a 7\n", lines({"tokens": ["a"], "labels": ["7"]}))
    integers = lines({"tokens": ["a", "b"], "labels": [7, -2]})
    data("integer-labels.jsonl", "integer labels stay integers", integers, integers)
    words = lines({"tokens": [7, -100], "labels": ["X", "Y"]})
    data("integer-tokens.jsonl", "integer tokens are words", words, words)
    escapes = lines({"tokens": ["\"\\/\b\f\n\r\t\x1f\x7f\u2028\U0001f600"]})
    data("escapes.jsonl", "the fewest escapes", escapes, escapes)
    data("surrogate-pair.jsonl", "a surrogate pair", r'{"tokens":["\ud83d\ude00"]}', lines({"tokens": ["\U0001f600"]}))
    vectors = '{"tokens":[[0.1,-2.0],[1e-07,1e+16]],"labels":[[5e-324,0.0],[0.0001,123456.789]]}\n'
    data("vectors.jsonl", "vectors, numbers in shortest form", vectors, vectors)
    free = '{"tokens":["a","b"],"labels":[null,"X"]}\n'
    data("free.jsonl", "a label that may be anything", free, free)
    all_free = '{"tokens":["a","b"],"labels":[null,null]}\n'
    data("all-free.jsonl", "labels that all may be anything", all_free, all_free)
    data("free-integers.jsonl", "-100 may be anything", '{"tokens":["a","b"],"labels":[-100,1]}', '{"tokens":["a","b"],"labels":[null,1]}\n')
    data("free.conll", "_ may be anything", "a _\nb X\n", free)
    underscore = lines({"tokens": ["a"], "labels": ["_"]})
    data("underscore.jsonl", "the string _ is a class", underscore, underscore)
    wide = '{"tokens":[[1.0]],"labels":[[1.0,2.0]]}\n'
    data("outputs-of-another-dimension.jsonl", "outputs of another dimension than the tokens", wide, wide, TEXT)


def bad_text_cases():
    for name, why, text in [
        ("empty", "an empty file", ""),
        ("not-an-object", "a list", "[1]"),
        ("other-field", "a field that nobody knows", '{"tokens":["a"],"text":"a"}'),
        ("field-twice", "a field named twice", '{"tokens":["a"],"tokens":["a"]}'),
        ("field-twice-escaped", "a field named twice, once with an escape", '{"tokens":["a"],"token\\u0073":["a"]}'),
        ("no-tokens", "no field tokens", '{"labels":["X"]}'),
        ("empty-sequence", "a sequence without tokens", '{"tokens":[],"labels":[]}'),
        ("fewer-labels", "one label for two tokens", '{"tokens":["a","b"],"labels":["X"]}'),
        ("labels-on-some-lines", "labels on one line of two", '{"tokens":["a"],"labels":["X"]}\n{"tokens":["a"]}'),
        ("mixed-tokens", "a word and a vector", '{"tokens":["a",[1.0]]}'),
        ("mixed-labels", "a string and an integer", '{"tokens":["a","b"],"labels":["X",1]}'),
        ("float-label", "1.0 is no class", '{"tokens":["a"],"labels":[1.0]}'),
        ("minus-zero-label", "-0 is no class", '{"tokens":["a"],"labels":[-0]}'),
        ("large-label", "an integer beyond 64 bits", '{"tokens":["a"],"labels":[18446744073709551616]}'),
        ("true-label", "true is no class", '{"tokens":["a"],"labels":[true]}'),
        ("null-token", "null is no token", '{"tokens":[null]}'),
        ("ragged-vectors", "vectors of two lengths", '{"tokens":[[1.0],[1.0,2.0]]}'),
        ("empty-vector", "a vector without entries", '{"tokens":[[]]}'),
        ("nan", "NaN", '{"tokens":[[NaN]]}'),
        ("infinity", "Infinity", '{"tokens":[[Infinity]]}'),
        ("beyond-floats", "a number beyond the floats", '{"tokens":[[1e999]]}'),
        ("text-in-vector", "a string in a vector", '{"tokens":[["1"]]}'),
        ("true-in-vector", "true in a vector", '{"tokens":[[true]]}'),
        ("lone-surrogate", "half of a surrogate pair", '{"tokens":["\\ud800"]}'),
        ("two-objects", "two objects on a line", '{"tokens":["a"]} {"tokens":["a"]}'),
        ("form-feed", "a form feed between values", '{"tokens":\f["a"]}'),
        ("byte-order-mark-inside", "a byte order mark on the second line", '{"tokens":["a"]}\n\ufeff{"tokens":["a"]}'),
        ("nul", "a NUL byte", '{"tokens":["a\0"]}'),
    ]:
        data(f"{name}.jsonl", why, text)
    data("latin-1.jsonl", "a byte that is not UTF-8", b'{"tokens":["\xe9"]}')
    data("empty.conll", "no tokens", "-DOCSTART-\n\n")
    data("ragged.conll", "a line with fewer columns", "a NN X\nb Y\n")
    data("nul.conll", "a NUL byte", "a X\nb\0 Y\n")
    data("json.conll", "JSON by mistake", '{"tokens": ["a"]}\n')


def array_cases():
    tokens = tensor("F32", [1, 2, 1], floats(1, -0.5))
    classes = tensor("I64", [1, 2], floats(3, -4, kind="q"))
    plain = '{"tokens":[[1.0],[-0.5]],"labels":[3,-4]}\n'
    data("plain.safetensors", "arrays", safetensors({"tokens": tokens, "labels": classes}), plain, ARRAYS)
    ragged = {"tokens": tensor("F64", [2, 1], floats(1, -0.5, kind="d")), "lengths": tensor("I32", [2], floats(1, 1, kind="i"))}
    data("ragged.safetensors", "ragged arrays", safetensors(ragged), '{"tokens":[[1.0]]}\n{"tokens":[[-0.5]]}\n', ARRAYS)
    data("metadata.safetensors", "malformed metadata", safetensors({"tokens": tokens}, metadata={"a": 1}))
    data("stray.safetensors", "a tensor of another name", safetensors({"tokens": tokens, "x": tokens}))
    data("no-tokens.safetensors", "no tokens", safetensors({"labels": classes}))
    data("zero.safetensors", "a size of 0", safetensors({"tokens": tensor("F32", [1, 0, 1], b"")}))
    data("nan.safetensors", "a NaN", safetensors({"tokens": tensor("F32", [1, 1, 1], floats(float("nan")))}))
    wrong = {**ragged, "lengths": tensor("I32", [2], floats(1, 2, kind="i"))}
    data("lengths.safetensors", "lengths that do not add up", safetensors(wrong))
    data("after-the-end.safetensors", "a byte after the last tensor", safetensors({"tokens": tokens}, after=b"\0"))


# ---- certificate.json ------------------------------------------------------------------------------------------------


def certificate_cases():
    """What it claims is for a checker to judge: here only whether it can be read in one way."""
    text = lambda old, new: replaced(old, new, json.dumps(claims(), separators=(",", ":")))
    reads, refuses = certificate, lambda name, why, content: certificate(name, why, content, "refused")
    reads("plain", "a certificate", claims())
    reads("least", "a format and no claims", {"format": "monolayer-certificate/1", "claims": []})
    reads("nulls", "null is as good as nothing", claims(model=None, data=None, assumptions=None, hints=None))
    reads("null-fields", "fields that are null", claims(data={"hash": None, "tokens": None}, assumptions={"exp_ulp": None}))
    reads("unknown-fields", "fields that a reader does not know", claims(x=[1], assumptions={"exp_ulp": 4, "softmax": {}}))
    reads("unknown-claim", "a claim of no known kind, or no claim at all, is unknown, and no error", claims(claims=[{"kind": "x"}, {}, 7]))
    reads("ulps-float", "4.0 is a whole number", text('"exp_ulp":4', '"exp_ulp":4.0'))
    reads("ulps-exponent", "4e0 is one too", text('"exp_ulp":4', '"exp_ulp":4e0'))
    reads("number-beyond-floats", "any number of JSON in a claim", text('"rank":1', '"rank":1e999'))
    reads("64-deep", "64 brackets open", text('"assumptions"', f'"hints":{"[" * 63}{"]" * 63},"assumptions"'))
    refuses("65-deep", "65 brackets open", text('"assumptions"', f'"hints":{"[" * 64}{"]" * 64},"assumptions"'))
    refuses("empty", "an empty file", "")
    refuses("list", "a list in place of the object", [claims()])
    refuses("two-values", "a second value after the first", json.dumps(claims()) + "{}")
    refuses("byte-order-mark", "a byte order mark", "\ufeff" + json.dumps(claims()))
    refuses("latin-1", "a byte that is not UTF-8", text("w_k", "\xe9").encode("latin-1"))
    refuses("field-twice", "claims are named twice", text('"claims"', '"claims":[],"claims"'))
    refuses("inner-field-twice", "a field of a claim is named twice", text('"rank":1', '"rank":2,"rank":1'))
    refuses("field-twice-escaped", "a hash is named twice, once with an escape", text('"config"', r'"c\u006fnfig":"x","config"'))
    refuses("hint-twice", "a field of the hints is named twice", text('"assumptions"', '"hints":{"a":1,"a":1},"assumptions"'))
    refuses("lone-surrogate", "half of a surrogate pair", text('"kind":"rank"', r'"kind":"\ud800"'))
    refuses("nan", "NaN is no number of JSON", text('"rank":1', '"rank":NaN'))
    refuses("no-format", "no format", claims(format=ABSENT))
    refuses("other-format", "a format that nobody knows", claims(format="monolayer-certificate/9"))
    refuses("no-claims", "no list of claims", claims(claims=ABSENT))
    refuses("null-claims", "claims that are null", claims(claims=None))
    refuses("object-of-claims", "claims that are an object", claims(claims={}))
    refuses("model-list", "hashes in a list", claims(model=["0" * 64]))
    refuses("data-text", "data that is a hash alone", claims(data="2" * 64))
    refuses("assumptions-number", "assumptions that are a number", claims(assumptions=4))
    refuses("hash-number", "a hash that is a number", claims(model={"config": 0}))
    refuses("tokens-negative", "a negative count", claims(data={"tokens": -1}))
    refuses("tokens-float", "5.0 is no size", claims(data={"tokens": 5.0}))
    refuses("tokens-text", "a string is no size", claims(data={"tokens": "5"}))
    refuses("tokens-true", "true is no size", claims(data={"tokens": True}))
    refuses("tokens-large", "2^63 is no size", claims(data={"tokens": 2**63}))
    refuses("ulps-part", "half a unit", claims(assumptions={"exp_ulp": 4.5}))
    refuses("ulps-negative", "less than no unit", claims(assumptions={"exp_ulp": -1}))
    refuses("ulps-many", "more than 1024 units", claims(assumptions={"exp_ulp": 1025}))
    refuses("ulps-text", "units as a string", claims(assumptions={"exp_ulp": "4"}))


# ---- the folder ------------------------------------------------------------------------------------------------------


def main():
    for cases in [json_cases, config_cases, tensor_cases, vocabulary_cases, version_2_cases, sparse_cases, narrow_cases, exact_cases,
                  text_data_cases, bad_text_cases, array_cases, certificate_cases]:
        cases()
    FILES["expected.json"] = (json.dumps(EXPECTED, indent=1, ensure_ascii=False) + "\n").encode()
    there = {str(path.relative_to(ROOT)): path for path in ROOT.rglob("*") if path.is_file() and path.name != "README.md"}
    if "--check" in sys.argv[1:]:
        wrong = [name for name in sorted({*there, *FILES}) if name not in FILES or name not in there or there[name].read_bytes() != FILES[name]]
        sys.exit("not what the script writes: " + ", ".join(wrong) if wrong else 0)
    for name in there.keys() - FILES.keys():
        there[name].unlink()
    for name, content in FILES.items():
        path = ROOT / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
    models, datasets, certificates = (len(EXPECTED[kind]) for kind in ("models", "data", "certificates"))
    print(f"{models} models, {datasets} datasets and {certificates} certificates, {sum(map(len, FILES.values()))} bytes in {len(FILES)} files")


if __name__ == "__main__":
    main()
