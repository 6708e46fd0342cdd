"""What users may hand over by accident: answered right, or with an exception that says what and where."""
import collections
import re

import numpy as np
import pytest

import monolayer

X, Y = [["a", "b"], ["b", "b", "a"]], [["X", "Y"], ["Z", "Z", "X"]]
IDS = [[5, 7], [7, 7, 5]]


class Words(list):
    """A subclass of list."""


class Word(str):
    """A subclass of str."""


def memorized(sequences, labels, **options):
    """What the model of the data says about the data."""
    model = monolayer.memorize(sequences, labels, **options)
    assert model.certified == model.possible
    return model


# ---- answered right

SAME_WORDS = {
    "tuples": lambda: (tuple(map(tuple, X)), tuple(map(tuple, Y))),
    "generators": lambda: ((iter(s) for s in X), (iter(s) for s in Y)),
    "iterators of iterators": lambda: (iter([iter(s) for s in X]), iter([iter(s) for s in Y])),
    "subclasses": lambda: (Words(Words(map(Word, s)) for s in X), Words(Words(map(Word, s)) for s in Y)),
    "deques": lambda: (collections.deque(collections.deque(s) for s in X), Y),
    "arrays of objects": lambda: (np.array([np.array(s, dtype=object) for s in X], dtype=object), Y),
    "arrays of texts": lambda: ([np.array(s) for s in X], [np.array(s) for s in Y]),
    "NumPy's strings": lambda: ([[np.str_(w) for w in s] for s in X], Y),
    "keys of a dictionary": lambda: ({"x": 0}.keys() and X, Y),
}


@pytest.mark.parametrize("name", SAME_WORDS)
def test_containers_of_words(name):
    sequences, labels = SAME_WORDS[name]()
    model = memorized(sequences, labels)
    assert model.predict(X) == Y
    assert monolayer.Dataset(*SAME_WORDS[name]()).hash == monolayer.Dataset(X, Y).hash


@pytest.mark.parametrize("dtype", [np.int8, np.uint8, np.int16, np.int32, np.int64, np.uint32, np.uint64, ">i4", ">i8"])
def test_ids_of_any_integer_type(dtype):
    array = np.array([[5, 7, 7], [7, 7, 5]], dtype=dtype)
    model = memorized(array, np.array([[0, 1, 1], [1, 1, 2]], dtype=dtype))
    assert model.predict(array) == [[0, 1, 1], [1, 1, 2]] == model.predict(array.tolist())
    assert model.predict(array[0]) == [0, 1, 1]


def test_arrays_that_are_not_contiguous():
    whole = np.arange(24).reshape(4, 6)
    for view in (whole[::2, ::-2], whole.T[1:4], np.asfortranarray(whole)[:, 1:4], np.broadcast_to(np.array([1, 2, 3]), (2, 3))):
        assert list(monolayer.Dataset(view)) == list(monolayer.Dataset(view.tolist()))
    vectors = np.random.default_rng(0).random((4, 3, 6))[::2, :, ::-2]
    assert not vectors.flags["C_CONTIGUOUS"]
    assert monolayer.Dataset(vectors).hash == monolayer.Dataset(vectors.tolist()).hash


def test_arrays_are_not_changed_and_may_be_read_only():
    vectors = np.random.default_rng(0).random((2, 3, 2))
    vectors[0, 0, 0] = -0.0
    before = vectors.tobytes()
    vectors.flags.writeable = False
    monolayer.memorize(vectors, [["x", "y", "z"]] * 2).predict(vectors)
    assert vectors.tobytes() == before


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64, np.longdouble, ">f8"])
def test_vectors_of_any_float_type(dtype):
    vectors = np.array([[[0.25, 1.0], [0.5, -2.0]], [[3.0, 0.125], [0.5, 0.0]]], dtype=dtype)
    model = memorized(vectors, [["x", "y"], ["y", "x"]])
    assert model.predict(vectors) == [["x", "y"], ["y", "x"]] == model.predict(vectors.tolist())
    assert model.predict(vectors[0]) == ["x", "y"] == model.predict(vectors[0].tolist())


@pytest.mark.parametrize("free", [None, -100, np.nan, np.float64("nan"), np.int32(-100)], ids=repr)
def test_free_labels_among_integers(free):
    model = memorized(IDS, [[0, free], [free, 1, 2]])
    assert model.possible == 3
    first, second = model.predict(IDS)
    assert (first[0], second[1], second[2]) == (0, 1, 2)


def test_free_labels_among_names():
    assert memorized(X, [["X", None], [float("nan"), "Z", "X"]]).possible == 3
    assert memorized(X, ["Q", None], label_at="first").possible == 1


def test_nothing_but_free_labels():
    assert memorized(X, [[None] * 2, [-100] * 3]).possible == 0


def test_booleans_are_labels_that_come_back():
    model = memorized(X, [[True, False], [False, False, True]])
    assert model.predict(X) == [[True, False], [False, False, True]]
    assert memorized(IDS, [np.array([True, False]), np.array([False, False, True])]).predict(IDS[0]) == [True, False]


def test_large_and_negative_ids():
    ids = [[2**63 - 1, -(2**63)], [0, -1]]
    assert memorized(ids, [[1, 2], [3, 4]]).predict(ids) == [[1, 2], [3, 4]]
    assert memorized(ids, [[2**63 - 1, -5], [0, 7]]).predict(ids) == [[2**63 - 1, -5], [0, 7]]


def test_strange_words_are_words():
    words = ["", " ", "\n", "\t", "\0", "a b", "é", "e\u0301", "日本", "🙂", "\u2028", "<s>", "<unk>", "-DOCSTART-", "_", "-100", "x" * 10_000]
    labels = [f"L{i}" for i in range(len(words))]
    model = memorized([words], [labels])
    assert model.predict(words) == labels
    strange = memorized([["a", "b"]], [[" ", "\n"]])
    assert strange.predict(["a", "b"]) == [" ", "\n"]


def test_a_token_many_times():
    assert memorized([["a"] * 500], [["X"] * 500]).predict(["a"] * 500) == ["X"] * 500


def test_padding():
    for ids in ([[5, 7, 0], [7, 7, 5]], np.array([[5, 7, 0], [7, 7, 5]])):
        for labels in ([["X", "Y", "pad"], Y[1]], Y):  # with labels for the padding, or without
            model = memorized(ids, labels, padding=0)
            assert model.predict(IDS) == Y
    assert memorized([["a", "b", "<p>"], X[1]], Y, padding="<p>").predict(X) == Y


# ---- refused

REFUSED = {
    "nothing": (lambda: monolayer.memorize([], []), "no sequences"),
    "no tokens": (lambda: monolayer.memorize([[]], [[]]), "sequence 1: no tokens"),
    "an empty array": (lambda: monolayer.memorize(np.zeros((0, 3), dtype=int), np.zeros((0, 3), dtype=int)), "no sequences"),
    "no columns": (lambda: monolayer.memorize(np.zeros((2, 0), dtype=int), np.zeros((2, 0), dtype=int)), "no tokens"),
    "no labels": (lambda: monolayer.memorize(X), "labels"),
    "None": (lambda: monolayer.memorize(None, None), "None"),
    "a number": (lambda: monolayer.memorize(5, 5), "5"),
    "None as a sequence": (lambda: monolayer.memorize([["a"], None], [["X"], ["Y"]]), "sequence 2"),
    "None as a token": (lambda: monolayer.memorize([["a", None]], [["X", "Y"]]), "sequence 1, token 2"),
    "nan as a token": (lambda: monolayer.memorize([["a", float("nan")]], [["X", "Y"]]), "sequence 1, token 2"),
    "a float as a token": (lambda: monolayer.memorize([[1.5, 2.5]], [["X", "Y"]]), "1.5"),
    "bytes as a token": (lambda: monolayer.memorize([[b"a"]], [["X"]]), "b'a'"),
    "bytes as a sequence": (lambda: monolayer.memorize([b"ab"], [["X", "Y"]]), "sequence 1"),
    "an array of bytes": (lambda: monolayer.memorize(np.array([[b"a"]]), [["X"]]), "decode"),
    "booleans as tokens": (lambda: monolayer.memorize([[True, False]], [["X", "Y"]]), "True"),
    "an array of booleans": (lambda: monolayer.memorize(np.array([[True]]), [["X"]]), "bool"),
    "complex numbers": (lambda: monolayer.memorize(np.ones((1, 1, 1), dtype=complex), [["X"]]), "complex"),
    "dates": (lambda: monolayer.memorize(np.array([["2020-01-01"]], dtype="datetime64[D]"), [["X"]]), "datetime64"),
    "a masked array": (lambda: monolayer.memorize(np.ma.masked_equal([[1, 0]], 0), [["X", "Y"]]), "masked"),
    "one sequence": (lambda: monolayer.memorize(["a", "b"], ["X", "Y"]), "goes into a list"),
    "one sequence of ids": (lambda: monolayer.memorize(np.array([1, 2]), np.array([1, 2])), "[sequences, tokens]"),
    "one sequence of vectors": (lambda: monolayer.memorize(np.ones((2, 2)), ["X", "Y"]), "[sequences, tokens, d]"),
    "a set": (lambda: monolayer.memorize([{"a", "b"}], [["X", "Y"]]), "set"),
    "a dictionary": (lambda: monolayer.memorize({"tokens": X}, Y), "columns"),
    "words among ids": (lambda: monolayer.memorize([[1, "a"]], [["X", "Y"]]), "words among ids, at token 2"),
    "ids after words": (lambda: monolayer.memorize([["a"], [1]], [["X"], ["Y"]]), "sequence 2: ids after words"),
    "ids beyond 64 bits": (lambda: monolayer.memorize([[1], [2**63]], [["X"], ["Y"]]), "sequence 2: the id 9223372036854775808"),
    "unsigned beyond 63 bits": (lambda: monolayer.memorize(np.array([[2**64 - 1]], dtype=np.uint64), [["X"]]), "18446744073709551615"),
    "labels beyond 64 bits": (lambda: monolayer.memorize([["a"]], [[2**70]]), "the label 1180591620717411303424"),
    "ragged vectors": (lambda: monolayer.memorize([[[1.0, 2.0], [1.0]]], [["X", "Y"]]), "sequence 1"),
    "vectors of two dimensions": (lambda: monolayer.memorize([np.ones((1, 2)), np.ones((1, 3))], [["X"], ["Y"]]), "sequence 2"),
    "vectors of words": (lambda: monolayer.memorize([[["a", "b"]]], [["X"]]), "sequence 1"),
    "vectors without entries": (lambda: monolayer.memorize(np.ones((1, 2, 0)), [["X", "Y"]]), "without entries"),
    "nan in a vector": (lambda: monolayer.memorize([np.ones((2, 2)), np.array([[1.0, np.nan]])], [["X", "Y"], ["Z"]]), "sequence 2, token 1"),
    "inf in a vector": (lambda: monolayer.memorize(np.array([[[1.0], [-np.inf]]]), [["X", "Y"]]), "sequence 1, token 2"),
    "a surrogate": (lambda: monolayer.memorize([["a"], ["b", "\ud800"]], [["X"], ["Y", "Z"]]), "sequence 2: the token '\\ud800'"),
    "a surrogate as a label": (lambda: monolayer.memorize([["a"]], [["\udc80"]]), "the label '\\udc80'"),
    "labels of two kinds": (lambda: monolayer.memorize([["a", "b"]], [["1", 1]]), "sequence 1, token 2"),
    "integers and booleans": (lambda: monolayer.memorize([["a", "b"]], [[1, True]]), "one kind"),
    "floats as labels": (lambda: monolayer.memorize([["a", "b"]], [[1.0, 2.0]]), "1.0"),
    "an array of floats as labels": (lambda: monolayer.memorize([["a", "b"]], np.ones((1, 2))), "integers for classes"),
    "too few labels": (lambda: monolayer.memorize(X, [Y[0], Y[1][:2]]), "sequence 2: 3 tokens with 2 labels"),
    "labels of too few sequences": (lambda: monolayer.memorize(X, Y[:1]), "2 sequences with labels of 1"),
    "too few output vectors": (lambda: monolayer.memorize(np.ones((1, 2, 2)), [np.ones((1, 2))]), "2 tokens with 1 labels"),
    "labels for padding in part": (lambda: monolayer.memorize([[1, 2, 0, 0]], [[1, 2, 0]], padding=0), "4 tokens with 3 labels"),
    "nothing but padding": (lambda: monolayer.memorize([[1], [0]], [[1], [1]], padding=0), "sequence 2: nothing but padding"),
    "padding on the left": (lambda: monolayer.memorize([[0, 1], [1, 0]], [[1, 1], [1, 1]], padding=0), "sequence 1: the padding 0 at token 1"),
    "padding that is not there": (lambda: monolayer.memorize([[1, 2]], [[1, 2]], padding=0), "no sequence ends with the padding"),
    "padding of vectors": (lambda: monolayer.memorize(np.ones((1, 2, 2)), [["X", "Y"]], padding=0), "padding"),
    "label_at": (lambda: monolayer.memorize(X, ["A", "B"], label_at="middle"), "middle"),
    "labels of a Dataset": (lambda: monolayer.memorize(monolayer.Dataset(X, Y), Y), "leave `labels` out"),
    "padding of a Dataset": (lambda: monolayer.memorize(monolayer.Dataset(X, Y), padding=0), "leave `padding` out"),
    "an unknown method": (lambda: monolayer.memorize(X, Y, method="magic"), "gated"),
    "a negative seed": (lambda: monolayer.memorize(X, Y, seed=-1), ""),
    "predict a string": (lambda: monolayer.memorize(X, Y).predict("a b"), "['a', 'b']"),
    "predict bytes": (lambda: monolayer.memorize(X, Y).predict(b"a b"), "string"),
    "predict nothing": (lambda: monolayer.memorize(X, Y).predict([]), "no sequences"),
    "predict a number": (lambda: monolayer.memorize(X, Y).predict(3), "3"),
    "predict an unknown word": (lambda: monolayer.memorize(X, Y).predict(["q"]), "q"),
    "predict vectors for words": (lambda: monolayer.memorize(X, Y).predict(np.ones((1, 2, 2))), ""),
    "explain a string": (lambda: monolayer.memorize(X, Y).explain("a b"), "['a', 'b']"),
    "explain sequences": (lambda: monolayer.memorize(X, Y).explain(X), "one sequence"),
    "explain a word with a space": (lambda: monolayer.memorize([["a b"]], [["X"]]).explain(["a b"]), "white space"),
    "score without labels": (lambda: monolayer.memorize(X, Y).score(X), "labels"),
    "an alphabet of pairs": (lambda: monolayer.compile_function(len, [(1, 2)], 2), "alphabet"),
    "a letter twice": (lambda: monolayer.compile_function(len, "aa", 2), "alphabet"),
    "length 0": (lambda: monolayer.compile_function(len, "ab", [0, 1]), "lengths"),
    "too many sequences": (lambda: monolayer.compile_function(len, "abcdefghij", 12), "1,000,000,000,000 sequences"),
    "not symmetric": (lambda: monolayer.compile_function(lambda s: s[::-1], "ab", 4, symmetric=True), "not symmetric"),
    "a file that is none": (lambda: monolayer.read("/dev/null"), "/dev/null"),
    "a directory that is no model": (lambda: monolayer.load("/tmp"), "/tmp"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_refused(name):
    call, says = REFUSED[name]
    with pytest.raises((ValueError, TypeError, OverflowError), match="(?i)" + re.escape(says)) as caught:
        call()
    assert len(str(caught.value)) > 10


# ---- libraries that may be there


def test_torch_tensors():
    torch = pytest.importorskip("torch")
    ids = torch.tensor([[5, 7, 0], [7, 7, 5]])
    labels = torch.tensor([[1, 0, -100], [0, 0, 1]])
    for dtype in (torch.int8, torch.uint8, torch.int16, torch.int32, torch.int64):
        assert memorized(ids.to(dtype), labels.tolist(), padding=0).predict([[5, 7], [7, 7, 5]]) == [[1, 0], [0, 0, 1]]
    assert memorized(ids.T.contiguous().T, labels, padding=0).predict([[5, 7]]) == [[1, 0]]
    vectors = torch.tensor([[[0.25, 1.0], [0.5, -2.0]], [[3.0, 0.125], [0.5, 0.0]]], requires_grad=True)
    names = [["x", "y"], ["y", "x"]]
    for dtype in (torch.float16, torch.bfloat16, torch.float32, torch.float64):
        assert memorized(vectors.to(dtype), names).predict(vectors.to(dtype)) == names
    assert memorized(vectors.to_sparse(), names).predict([list(row) for row in vectors]) == names
    assert memorized(vectors.transpose(0, 1), names).predict(vectors[:, 0]) == names[0]
    assert memorized(torch.ones(2, 2, 3).expand(2, 2, 3), [["x", "x"]] * 2).certified == 4
    for bad in (torch.ones(1, 1, 1, dtype=torch.cfloat), torch.ones(1, 2, dtype=torch.bool), torch.ones(1, 1, 1, device="meta")):
        with pytest.raises(TypeError):
            monolayer.memorize(bad, [["X"]])


def test_pandas():
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({"tokens": X, "labels": Y, "one": ["A", None]})
    assert memorized(frame.tokens, frame["labels"]).predict(frame.tokens) == Y
    assert memorized(frame.tokens, frame.one).possible == 2
    assert memorized(frame.tokens[::-1], frame.labels[::-1]).predict(X) == Y
    nullable = pandas.Series([3, pandas.NA], dtype="Int64")
    assert memorized(frame.tokens, nullable).predict(X[0]) == [3, 3]
    assert memorized(X, [[1, pandas.NA], [2, 2, 1]]).possible == 4
    assert monolayer.memorize(X, Y).predict(pandas.Series(["a", "b"])) == ["X", "Y"]
    for call in (
        lambda: monolayer.memorize(frame, frame),
        lambda: monolayer.memorize(pandas.Series([["a"], None]), [["X"], ["Y"]]),
        lambda: monolayer.memorize(pandas.Series([["a", pandas.NA]]), [["X", "Y"]]),
        lambda: monolayer.memorize(frame.tokens, pandas.Series([1.5, 2.0])),
    ):
        with pytest.raises((TypeError, ValueError)):
            call()


def test_hugging_face_datasets():
    datasets = pytest.importorskip("datasets")
    data = datasets.Dataset.from_dict({"tokens": X, "tags": [[1, 0], [2, 2, -100]]})
    model = memorized(data["tokens"], data["tags"])
    assert model.predict(data["tokens"])[0] == [1, 0] and model.possible == 4
    table = datasets.Dataset.from_dict({"input_ids": [[5, 7, 0], [7, 7, 5]], "labels": [[1, 0, -100], [0, 0, 1]]})
    for kind in (None, "numpy", *(["torch"] if __import__("importlib").util.find_spec("torch") else [])):
        formatted = table.with_format(kind)
        assert memorized(formatted["input_ids"], formatted["labels"], padding=0).predict([[5, 7]]) == [[1, 0]]
    with pytest.raises(TypeError, match="column"):
        monolayer.memorize(data, data)


def test_arrow_and_parquet(tmp_path):
    arrow = pytest.importorskip("pyarrow")
    table = arrow.table({"tokens": X, "labels": Y})
    assert memorized(table["tokens"], table["labels"]).predict(table["tokens"]) == Y
    assert memorized(arrow.array(X), arrow.array(Y)).predict(X) == Y
    parquet = pytest.importorskip("pyarrow.parquet")
    parquet.write_table(table, tmp_path / "x.parquet")
    assert monolayer.memorize(monolayer.read(tmp_path / "x.parquet")).predict(X) == Y
    with pytest.raises(ValueError, match="no column 'words'"):
        monolayer.read(tmp_path / "x.parquet", tokens_from="words")


def test_scikit_learn():
    sklearn = pytest.importorskip("sklearn")
    from sklearn.base import clone
    from sklearn.model_selection import GridSearchCV, cross_val_score

    sequences, labels = [["a", "b"], ["b"], ["a"], ["b", "b"]] * 3, ["X", "Y", "X", "Y"] * 3
    memorizer = monolayer.Memorizer(seed=1, unknown=True)
    assert clone(memorizer).get_params() == {"seed": 1, "unknown": True}
    assert memorizer.fit(sequences, labels).predict([["b"], ["a"]]) == ["Y", "X"]
    assert memorizer.score(sequences, labels) == 1.0
    assert cross_val_score(memorizer, sequences, labels, cv=3).tolist() == [1.0, 1.0, 1.0]
    assert GridSearchCV(memorizer, {"seed": [1, 2]}, cv=3).fit(sequences, labels).best_score_ == 1.0
    with pytest.raises(ValueError, match="fit"):
        monolayer.Memorizer().predict(X)
    assert sklearn.__version__


def test_tokenizers():
    """Batches of Hugging Face's tokenizers, padded at the end; padding in front is refused by name."""
    transformers = pytest.importorskip("transformers")
    tokenizers = pytest.importorskip("tokenizers")
    words = {"[PAD]": 0, "[UNK]": 1, "a": 2, "b": 3}
    plain = tokenizers.Tokenizer(tokenizers.models.WordLevel(words, unk_token="[UNK]"))
    plain.pre_tokenizer = tokenizers.pre_tokenizers.Whitespace()
    tokenizer = transformers.PreTrainedTokenizerFast(tokenizer_object=plain, pad_token="[PAD]", unk_token="[UNK]")
    batch = tokenizer(["a b", "b b a"], padding=True, return_tensors="np")
    model = memorized(batch["input_ids"], ["X", "Y"], padding=tokenizer.pad_token_id)
    assert model.predict([tokenizer.encode("a b"), tokenizer.encode("b b a")]) == [["X", "X"], ["Y", "Y", "Y"]]
    tokenizer.padding_side = "left"
    with pytest.raises(ValueError, match="only padding at the end"):
        monolayer.memorize(tokenizer(["a b", "b b a"], padding=True)["input_ids"], ["X", "Y"], padding=0)
