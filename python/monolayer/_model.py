"""Models: compiled, loaded, run, checked."""
from __future__ import annotations

import html
import json
import os
import shutil
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

from . import _edit, _native
from ._commands import command
from ._convert import array_of
from ._data import Dataset, dataset, is_one_sequence
from ._native import MonolayerError
from ._progress import Bar


class Model:
    """A Transformer in a directory, or on its way there. Made by `memorize`, `memorize_text`, `compile_function` or `load`."""

    def __init__(self, native: _native.Model, data: Dataset | None = None, directory: Path | None = None):
        self._native, self._data, self._directory = native, data, directory
        self._temporary: tempfile.TemporaryDirectory | None = None
        self._label_kind = None if data is None else data._label_kind
        self._before: Model | None = None
        self._edit_report: dict | None = None

    # ---- what it says

    def predict(self, sequences: Any) -> Any:
        """The labels of a sequence (a list of words, ids or vectors), or of each of a list of sequences. Models without
        labels give arrays of outputs."""
        if isinstance(sequences, (str, bytes)):
            words = sequences.split() if isinstance(sequences, str) else "words"
            raise TypeError(f"a string is no sequence: give a list of words, such as {words!r}")
        single = is_one_sequence(sequences)
        data = dataset([sequences] if single else sequences)
        with Bar("predicting") as bar:
            found = self._native.predict(data._native, bar)
        parts = np.split(found, np.cumsum(data.lengths)[:-1])
        names = self.labels
        results = parts if names is None else [[names[i] for i in part.tolist()] for part in parts]
        return results[0] if single else results

    def score(self, sequences: Any, labels: Any = None, **options: Any) -> float:
        """The share of labeled tokens that get their label; options `label_at` and `padding` as for `memorize`."""
        data, names = dataset(sequences, labels, **options), self._native.labels
        if names is None:
            raise MonolayerError("the model has outputs, not labels; compare them with model.predict")
        with Bar("predicting") as bar:
            found = self._native.predict(data._native, bar).tolist()
        asked = [label for _, row in data for label in row or []]
        counted = [(str(label), names[i]) for label, i in zip(asked, found) if label is not None]
        if not counted:
            raise MonolayerError("no labels to compare with; give `labels`")
        return sum(a == b for a, b in counted) / len(counted)

    def explain(self, tokens: Any, data: Any = None) -> dict:
        """One sequence through the model: for each token its context id, the units that fire, its score and margin. With
        `data` (a file or a `Dataset`), also the sequence in it whose context is closest."""
        return command("explain", self.directory, self._sentence(tokens), *([] if data is None else ["--data", data]))

    def generate(self, *words: str, tokens: int | None = None) -> str:
        """The text that a model of next tokens recites, from its beginning or from these words."""
        more = [] if tokens is None else ["--tokens", tokens]
        return command("generate", self.directory, *more, "--", *words)["text"]

    def _sentence(self, tokens: Any) -> str:
        """Tokens as the command line takes them: words with spaces between, letters without."""
        if isinstance(tokens, (str, bytes)):
            raise TypeError(f"a string is no sequence: give a list of words, such as {str(tokens).split()!r}")
        if not is_one_sequence(tokens):
            raise TypeError("explain takes one sequence: a list of words or ids")
        words = [str(token) for token in (tokens.tolist() if hasattr(tokens, "tolist") else tokens)]
        letters = self.config["source"].get("text", {}).get("split") == "char"
        if not letters and (bad := next((word for word in words if len(word.split()) != 1), None)) is not None:
            raise MonolayerError(f"the word {bad!r} holds white space, and explain reads words between spaces")
        return ("" if letters else " ").join(words)

    # ---- what it is

    @property
    def labels(self) -> list | None:
        """The labels, in the order of the head's rows; integers or booleans where such were memorized here."""
        names, kind = self._native.labels, self._label_kind
        if names is None or kind is None:
            return names
        return [int(name) if kind == "int" else name == "True" for name in names]

    @property
    def words(self) -> list[str] | None:
        """The words it knows, by id."""
        return self._native.words

    @property
    def config(self) -> dict:
        """config.json: layers, dimensions, mask, how it was made."""
        return json.loads(self._native.config())

    @property
    def hidden(self) -> int:
        """Hidden units of the last layer, without the spare ones."""
        return self.config["layers"][-1]["hidden"] - self.spare

    @property
    def spare(self) -> int:
        """Hidden units of zeros at the end of the last layer, which edits fill."""
        layers = self.config["layers"]
        if self.config["dtype"] == "exact" or not layers[-1]["hidden"]:
            return 0
        part = {name: x for name, x in self.tensors().items() if name.startswith(f"layers.{len(layers) - 1}.feed_forward.")}
        w1, b1, w2 = (next(x for name, x in part.items() if name.endswith(end)) for end in (".w1", ".b1", ".w2"))
        used = np.flatnonzero(w1.any(axis=1) | (b1 != 0) | w2.any(axis=0))
        return len(b1) - (int(used[-1]) + 1 if len(used) else 0)

    def tensors(self) -> dict[str, np.ndarray]:
        """Its numbers, by the names of model.safetensors."""
        return self._native.tensors()

    @property
    def right(self) -> int | None:
        """Tokens of the memorized data that come out right; None for a loaded model."""
        return self._native.counts and self._native.counts[0]

    @property
    def possible(self) -> int | None:
        """Tokens that some weights can get right: all but those whose context has another label more often."""
        return self._native.counts and self._native.counts[1]

    @property
    def certified(self) -> int | None:
        """Tokens that are proved right, rounding included, in any order of summation."""
        return self._native.counts and self._native.counts[2]

    @property
    def impossible(self) -> list[tuple[int, int]]:
        """(sequence, token), from 0, of the tokens that no weights get right."""
        ends = np.cumsum(self._data.lengths) if self._data is not None else np.array([], dtype=int)
        places = []
        for t in self._native.impossible:
            s = int(np.searchsorted(ends, t, side="right"))
            places.append((s, t - (int(ends[s - 1]) if s else 0)))
        return places

    @property
    def certificate(self) -> dict | None:
        """certificate.json: what was proved. `verify` has it checked independently."""
        path = self.directory / "certificate.json"
        return json.loads(path.read_text(encoding="utf-8")) if path.exists() else None

    @property
    def names(self) -> dict | None:
        """names.json: what each coordinate and each hidden unit means; None where the model has none."""
        path = self.directory / "names.json"
        return json.loads(path.read_text(encoding="utf-8")) if path.exists() else None

    # ---- what is changed

    def edit(self, edits: Any, *, data: Any = None, partial: bool = False) -> "Model":
        """The same model with other labels for some contexts, and nothing else changed but what `difference` states.

        `edits` is a list of (words, place, label), places from 0: that token of that sequence gets that label, and so does every
        token of the same context. `data` (by default what the model was memorized from) is compared with: tokens of other contexts
        keep their labels, or the edit is refused, which is an error; with `partial` the others are made and `refused` lists it.

        >>> model = monolayer.memorize([["May", "sails"], ["in", "May"]], [["PER", "O"], ["O", "DATE"]])
        >>> edited = model.edit([(["May", "sails"], 0, "DATE")])
        >>> edited.predict([["May", "sails"], ["in", "May"]])
        [['DATE', 'O'], ['O', 'DATE']]
        >>> edited.difference.verify()["verdict"]
        'verified'
        """
        return _edit.edit(self, edits, data, partial)

    def forget(self, sequences: Any, *, data: Any = None, fresh: int | None = None) -> "Model":
        """The model that the rest of the data would have given, with the same words, codes and attention: the same tensors, byte
        for byte. `data` is what was memorized, these sequences included. With `fresh`, a seed, the attention is searched for anew.

        >>> model = monolayer.memorize([["May", "sails"], ["in", "May"]], [["PER", "O"], ["O", "DATE"]])
        >>> model.forget([["May", "sails"]]).predict(["in", "May"])
        ['O', 'DATE']
        """
        return _edit.forget(self, sequences, data, fresh)

    def diff(self, other: "Model", data: Any = None) -> dict:
        """How another model differs from this one: "changes" and, with data, the "tokens" whose labels differ."""
        return _edit.diff(self, other, data)

    @property
    def difference(self) -> "_edit.Difference | None":
        """What an edited model differs in from the one before, stated for all sequences; None where it states nothing."""
        path = self.directory / "difference.json"
        if self._before is None or not path.exists():
            return None
        return _edit.Difference(json.loads(path.read_text(encoding="utf-8")), self._before, self)

    @property
    def refused(self) -> list[dict]:
        """The edits that were refused, with the distance of ids found and needed."""
        return (self._edit_report or {}).get("refused", [])

    # ---- where it goes

    @property
    def directory(self) -> Path:
        """Where it is on disk; a model that was not saved yet is put into a temporary directory."""
        if self._directory is None:
            self._temporary = tempfile.TemporaryDirectory(prefix="monolayer-")
            self._directory = Path(self._temporary.name) / "model"
            self._native.save(self._directory)
        return self._directory

    def save(self, directory: str | os.PathLike) -> Path:
        """Writes the model directory, with its certificate, whole or not at all."""
        path = Path(directory)
        if self._before is None:
            self._native.save(path)
        else:
            # With what is stated of the difference, which names the bytes of these files.
            shutil.copytree(self.directory, path)
        self._directory, self._temporary = path, None
        return path

    def to_torch(self):
        """The same model as a PyTorch module: see `monolayer.torch`."""
        from . import torch

        return torch.load(self.directory)

    def to_onnx(self, file: str | os.PathLike) -> Path:
        """Writes an ONNX file: inputs `input_ids` and `attention_mask` [batch, n], output `logits` [batch, n, labels]."""
        path, content = Path(file), self._native.onnx()
        path.write_bytes(content)
        return path

    def to_lens(self):
        """The same model in TransformerLens: see `monolayer.lens`."""
        from . import lens

        return lens.bridge(self)

    def verify(self, sequences: Any = None, labels: Any = None, **options: Any) -> dict:
        """The independent checker's verdict, on the data it was compiled from unless other data is given."""
        return verify(self, self._data if sequences is None else sequences, labels, **options)

    def __repr__(self):
        size = f"d = {self.config['d']}, {self.hidden:,} hidden units, {self.config['dtype']}"
        if self._native.counts is None:
            return f"Model({size})"
        return f"Model({size}; {self.certified:,} of {self.possible:,} possible tokens proved right)"

    def _repr_html_(self) -> str:
        """The tour of `monolayer report`, for notebooks."""
        with tempfile.TemporaryDirectory() as folder:
            page = Path(folder, "page.html")
            more = [] if self._data is None else ["--data", self._data]
            try:
                command("report", self.directory, "--out", page, *more)
            except MonolayerError as error:
                return f"<pre>{html.escape(f'{self!r}: {error}')}</pre>"
            source = html.escape(page.read_text(encoding="utf-8"), quote=True)
        return f'<iframe srcdoc="{source}" style="width:100%;height:640px;border:0"></iframe>'


def memorize(
    sequences: Any,
    labels: Any = None,
    *,
    label_at: str = "all",
    padding: Any = None,
    method: str | None = None,
    embedding: str | None = None,
    positions: str | None = None,
    mask: Any = None,
    start: bool | None = None,
    precision: str | None = None,
    effort: str | None = None,
    unknown: bool = False,
    seed: int = 0,
    candidates: int | None = None,
    spare: int | None = None,
    progress: bool | None = None,
) -> Model:
    """Computes a Transformer with one rank-1 attention layer that gives every token of the data its label, and proves it.

    Nothing is trained: the weights follow from the data. All a token can see of its sequence is its *context*: which tokens
    occur in it, in what proportions (and where, with positions). Every token whose context has one label gets it.

    Parameters
    ----------
    sequences
        Lists of words; lists or arrays of integer ids; lists of arrays [tokens, d], or an array [sequences, tokens, d], of
        vectors; columns of pandas, Arrow or Hugging Face datasets with these; a `Dataset` with its labels, such as
        `monolayer.read("train.conll")`. Lists, arrays of NumPy and tensors of PyTorch will do for each.
    labels
        A label for each token: strings, integers or booleans, with None or -100 where any label will do. Or one label for each
        sequence. Or vectors, for regression: lists of arrays [tokens, k] or an array [sequences, tokens, k].
    label_at
        Where there is one label per sequence, the tokens that get it: "all", the "first" or the "last".
    padding
        The word or id that fills sequences up at their ends. It is cut off, with its labels.
    method
        "gated" (words with classes), "plateau", "interpolate", "deep" or "paper"; by default what suits the data.
    embedding
        Vectors for words: "sign:64", "random:D", "one-hot", "free" (the compiler may encode labels in them), or a file.
    positions
        "auto" (only if labels conflict without), "none", "sign:D", "random:D" or a file.
    mask
        Which tokens a token attends to: "none" (all of its sequence), "causal" (itself and those before), "prefix:K" (the first
        K, too), "band:B,A" (B before it and A after it), a file, or a matrix [n, n] of zeros and ones.
    start
        Whether a start token stands before every sequence; by default what needs fewer hidden units.
    precision
        "f32", "f64" or "auto": f32 where every possible token is proved right in it.
    effort
        "fast", "default" or "high": how long to look for fewer hidden units.
    unknown
        Adds a row for words that are not in the data, which are an error otherwise. They get the most frequent label.
    seed, candidates
        Seed and length of the search; the same seed gives the same bytes.
    spare
        Hidden units of zeros that are left for edits, 64 by default.
    progress
        Whether a bar is drawn on stderr; by default in terminals and notebooks, after a second.

    Returns
    -------
    Model
        `predict(sequence)` gives a list with a label for each token, `predict(sequences)` a list of such lists.
        `right`, `possible` and `certified` count the tokens that come out right, that can be right, and that are proved right
        with rounding included. `impossible` lists the others as (sequence, token), counted from 0: their context has another
        label more often, which is memorized instead.
        `verify()` has an independent program check the proof: a dictionary, with the "verdict" "verified".
        `score(sequences, labels)` is the share of right labels. `explain(sequence)` says for each token why.
        `save(directory)` writes the model, and `monolayer.load(directory)` reads it again.
        `to_torch()`, `to_onnx(file)` and `to_lens()` hand it to other programs. `tensors()` has its numbers, `config` its
        sizes, `names` what each of its parts is for, `certificate` what was proved.

    Raises
    ------
    MonolayerError
        A ValueError: what is wrong with the data, in which sequence, and what would help. TypeError for what is no data.

    Examples
    --------
    Words, a label for each:

    >>> model = monolayer.memorize([["May", "sails"], ["in", "May"]], [["PER", "O"], ["O", "DATE"]])
    >>> model.predict(["in", "May"])
    ['O', 'DATE']
    >>> model.certified == model.possible == 4
    True
    >>> model.verify()["verdict"]
    'verified'

    One label per sequence, and words that were not seen:

    >>> model = monolayer.memorize([["good", "boat"], ["bad", "boat"]], ["+", "-"], label_at="last", unknown=True)
    >>> model.predict([["good", "boat"], ["bad", "boat"]])[1][-1]
    '-'

    Padded ids, as tokenizers give them:

    >>> ids, labels = [[5, 7, 0], [7, 7, 5]], [[1, 2, -100], [2, 2, 1]]
    >>> monolayer.memorize(ids, labels, padding=0).predict([5, 7])
    [1, 2]
    """
    data = dataset(sequences, labels, **_given(label_at=label_at if label_at != "all" else None, padding=padding))
    mask = mask if mask is None or isinstance(mask, str) else _mask(mask)
    options = _given(
        method=method, embedding=embedding, positions=positions, mask=mask, start=start, precision=precision, effort=effort,
        candidates=candidates, spare=spare,
    )
    with Bar("searching", progress) as bar:
        native = _native.memorize(data._native, bar, seed=seed, unknown=unknown, **options)
    return Model(native, data)


def _mask(mask: Any) -> Any:
    """A file's name, or a matrix of zeros and ones."""
    if isinstance(mask, os.PathLike):
        return os.fspath(mask)
    rows = np.asarray(array_of(mask) if array_of(mask) is not None else mask)
    if rows.ndim != 2 or not np.isin(rows, (0, 1)).all():
        raise MonolayerError(f"the mask {mask!r}; give a name, a file, or a matrix [n, n] of zeros and ones")
    return rows.astype(np.uint8)


def _given(**options):
    return {name: value for name, value in options.items() if value is not None}


def load(directory: str | os.PathLike) -> Model:
    """The model of a directory."""
    return Model(_native.load(Path(directory)), directory=Path(directory))


def verify(model: Model | str | os.PathLike, sequences: Any = None, labels: Any = None, **options: Any) -> dict:
    """An independent checker's verdict on a model and its certificate: "verified", "refuted", "unknown" or "error".

    Everything is recomputed from the weights and the data, with rounding errors bounded for every order of summation; nothing
    in the certificate is taken on trust. Options: precision ("f32", "f64", "real"), claims (a list of kinds),
    ignore_certificate (judge the tokens alone, for weights that were changed elsewhere), label_at and padding as for `memorize`.

    >>> model = monolayer.memorize([["a", "b"], ["b", "b"]], [["X", "Y"], ["Z", "Z"]])
    >>> monolayer.verify(model, [["a", "b"]], [["X", "Z"]])["verdict"]
    'refuted'
    """
    directory = model.directory if isinstance(model, Model) else Path(model)
    given = {name: options.pop(name) for name in ("label_at", "padding") if name in options}
    data = None if sequences is None else dataset(sequences, labels, **given)
    with Bar("checking") as bar:
        report = _native.verify(directory, None if data is None else data._native, bar, **options)
    return json.loads(report)


def certify(directory: str | os.PathLike | Model, sequences: Any, labels: Any = None, **options: Any) -> dict:
    """Which tokens a model gets provably right, whatever made its weights: `verify` without a certificate."""
    return verify(directory, sequences, labels, ignore_certificate=True, **options)


def explain(model: Model | str | os.PathLike, tokens: Any, data: Any = None) -> dict:
    """One sequence through a model, see `Model.explain`.

    >>> model = monolayer.memorize([["a", "b"], ["b", "b"]], [["X", "Y"], ["Z", "Z"]])
    >>> [token["label"] for token in monolayer.explain(model, ["a", "b"])["tokens"]]
    ['X', 'Y']
    """
    return (model if isinstance(model, Model) else load(model)).explain(tokens, data)


def generate(model: Model | str | os.PathLike, *words: str, tokens: int | None = None) -> str:
    """The text that a model of next tokens recites, see `Model.generate`."""
    return (model if isinstance(model, Model) else load(model)).generate(*words, tokens=tokens)


__all__ = ["Model", "MonolayerError", "certify", "explain", "generate", "load", "memorize", "verify"]
