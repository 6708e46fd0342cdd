"""monolayer models as plain PyTorch modules; equations are those of Kajitsuka and Sato (ICLR 2024).

>>> model = monolayer.torch.load("model")                    # doctest: +SKIP
>>> model.predict(["EU", "rejects", "German", "call"])       # doctest: +SKIP
['I-ORG', 'O', 'I-MISC', 'O']

`model(input_ids, attention_mask)` gives scores [batch, n, labels], with gradients. Parameters have the names of the tensors in
model.safetensors. Forward hooks see what happens inside: `layers.0.attention.pattern` the attention weights [batch, heads, query,
key], `layers.0.attention.context` the weighted values [batch, heads, query, head_size] (the context id, for rank 1), and
`layers.0.feed_forward.units` the hidden units [batch, n, q].
"""
from __future__ import annotations

import json
import os
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import nn

from . import _native

DTYPES = {"f32": torch.float32, "f64": torch.float64}


class Attention(nn.Module):
    """Eq. 2: Z + sum_i W_O,i (W_V,i Z) softmax[(W_K,i Z)^T (W_Q,i Z)]; eq. 5 with hardmax; eq. 132 with a mask."""

    def __init__(self, d: int, kind: str, heads: int, head_size: int, mask: Any, rows: np.ndarray | None = None):
        super().__init__()
        self.hardmax, self.mask = kind == "hardmax", mask
        self.w_q, self.w_k, self.w_v = (nn.Parameter(torch.empty(heads, head_size, d)) for _ in range(3))
        self.w_o = nn.Parameter(torch.empty(heads, d, head_size))
        self.register_buffer("rows", None if rows is None else torch.as_tensor(rows), persistent=False)
        self.pattern, self.context = nn.Identity(), nn.Identity()

    def shown(self, place: torch.Tensor) -> torch.Tensor:
        """Which key each query sees, [batch, query, key], by their places; a start token is at place -1, and all see it."""
        query, key = place.unsqueeze(-1), place.unsqueeze(-2)
        if self.mask == "none":
            return torch.ones_like(query == key)
        if self.mask == "causal":
            return key <= query
        if "prefix" in self.mask:
            return (key < self.mask["prefix"]) | (key <= query)
        if "band" in self.mask:
            before, after = self.mask["band"]
            return ((query - key <= before) & (key - query <= after)) | (key == -1)
        if int(place.max()) >= len(self.rows):
            raise ValueError(f"a sequence of {int(place.max()) + 1} tokens, and the mask is for {len(self.rows)}")
        own = self.rows[query.clamp(min=0), key.clamp(min=0)].bool() & (query >= 0) & (key >= 0)
        return own | (key == -1)  # a start token sees itself

    def visible(self, real: torch.Tensor, place: torch.Tensor) -> torch.Tensor:
        """The same without padding, which nobody sees; it sees itself, so that it stays finite."""
        own = torch.eye(place.shape[1], dtype=torch.bool, device=place.device)
        return self.shown(place) & real.unsqueeze(-2) | own

    def forward(self, z: torch.Tensor, real: torch.Tensor, place: torch.Tensor) -> torch.Tensor:
        x = z.masked_fill(~real.unsqueeze(-1), 0).unsqueeze(1)  # 0, so that a weight of 0 leaves nothing of padding
        q, k = (self.product(x, w) for w in (self.w_q, self.w_k))  # [batch, heads, n, head_size]
        scores = self.product(q, k).masked_fill(~self.visible(real, place).unsqueeze(1), -torch.inf)
        if self.hardmax:  # only the largest are left, all equal, so that softmax gives them equal weights
            scores = scores.masked_fill(scores < scores.amax(-1, keepdim=True), -torch.inf)
        context = self.context(self.pattern(scores.softmax(-1)) @ (x @ self.w_v.transpose(-1, -2)))
        return z + (context @ self.w_o.transpose(-1, -2)).sum(1)

    def product(self, a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
        """a b^T. Hardmax needs equal rows to give equal bits, which a matrix product does not promise."""
        return (a.unsqueeze(-2) * b.unsqueeze(-3)).sum(-1) if self.hardmax else a @ b.transpose(-1, -2)


class FeedForward(nn.Module):
    """Eq. 3, token by token: h + W_2 relu(W_1 h + b_1) + b_2."""

    def __init__(self, d: int, hidden: int):
        super().__init__()
        self.w1, self.b1 = nn.Parameter(torch.empty(hidden, d)), nn.Parameter(torch.empty(hidden))
        self.w2, self.b2 = nn.Parameter(torch.empty(d, hidden)), nn.Parameter(torch.empty(d))
        self.units = nn.Identity()

    def forward(self, z: torch.Tensor, real: torch.Tensor, place: torch.Tensor) -> torch.Tensor:
        return z + (self.units(torch.relu(z @ self.w1.T + self.b1)) @ self.w2.T + self.b2)


class Transformer(nn.Module):
    """embedding + positions, pre_feed_forward, layers, head: each where the config has it."""

    def __init__(self, config: dict, words: list[str] | None, rows: list[np.ndarray | None]):
        super().__init__()
        d, n, pre = config["d"], config["max_length"], config["pre_feed_forward"]
        self.config, self.labels, self.start = config, config["labels"], config.get("start")
        self.vocabulary = None if words is None else {word: i for i, word in enumerate(words)}
        self.embedding = None if words is None else nn.Embedding(len(words), d)
        self.positions = None if n is None else nn.Embedding(n, d)
        self.pre_feed_forward = None if pre is None else FeedForward(d, pre["hidden"])
        self.layers = nn.ModuleList()
        for layer, mask_rows in zip(config["layers"], rows):
            parts = nn.ModuleDict()
            if (a := layer["attention"]) is not None:
                parts["attention"] = Attention(d, a["kind"], a["heads"], a["head_size"], a["mask"], mask_rows)
            if layer["hidden"] > 0:
                parts["feed_forward"] = FeedForward(d, layer["hidden"])
            self.layers.append(parts)
        outputs = config.get("outputs") if self.labels is None else len(self.labels)
        self.head = None if outputs is None else nn.Linear(d, outputs)

    def forward(self, input_ids: torch.Tensor, attention_mask: torch.Tensor | None = None) -> torch.Tensor:
        """Scores [batch, n, labels] (outputs [batch, n, d] without a head) of ids [batch, n], or of vectors [batch, n, d]
        where the model has no words. `attention_mask` is 0 on padding. A start token is put before the sequences here, and
        nothing is said of it."""
        real = torch.ones(input_ids.shape[:2], dtype=torch.bool, device=input_ids.device)
        real = real if attention_mask is None else attention_mask.bool()
        input_ids, real, place = self.with_start(input_ids, real)
        z = input_ids if self.embedding is None else self.embedding(input_ids)
        z = z if self.positions is None else z + self.positions(self.rows_of(place))
        z = z if self.pre_feed_forward is None else self.pre_feed_forward(z, real, place)
        for layer in self.layers:
            for step in layer.values():  # attention, then feed-forward
                z = step(z, real, place)
        z = z if self.head is None else self.head(z)
        return z if self.start is None else z[:, 1:]

    def with_start(self, input_ids: torch.Tensor, real: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        """The batch behind its start token, where there is one, and the place of each token; the start token is at -1."""
        place = (real.long().cumsum(1) - 1).clamp(min=0)  # padding may stand on either side
        if self.start is None:
            return input_ids, real, place
        first = torch.full_like(input_ids[:, :1], self.vocabulary[self.start])
        input_ids, real = torch.cat([first, input_ids], 1), torch.cat([torch.ones_like(real[:, :1]), real], 1)
        return input_ids, real, torch.cat([torch.full_like(place[:, :1], -1), place], 1)

    def rows_of(self, place: torch.Tensor) -> torch.Tensor:
        """The rows of `positions` for places."""
        rows = place + (self.start is not None)
        if int(rows.max()) >= self.positions.num_embeddings:
            start = "" if self.start is None else ", the start token included"
            raise ValueError(f"a sequence of {int(rows.max()) + 1} tokens{start}, and positions end at {self.positions.num_embeddings}")
        return rows

    def encode(self, sequences: list) -> tuple[torch.Tensor, torch.Tensor]:
        """Sequences of words (or of vectors) as one padded batch: `input_ids` and `attention_mask`."""
        like = next(self.parameters())
        rows = [self._row(tokens, like) for tokens in sequences]
        batch = nn.utils.rnn.pad_sequence(rows, batch_first=True)
        lengths = torch.tensor([len(row) for row in rows], device=like.device)
        return batch, (torch.arange(batch.shape[1], device=like.device) < lengths.unsqueeze(1)).long()

    def _row(self, tokens, like):
        if isinstance(tokens, str):
            raise TypeError(f"a string is no sequence: give a list of words, such as {tokens.split()!r}")
        if self.vocabulary is None:
            return torch.as_tensor(np.asarray(tokens), dtype=like.dtype, device=like.device).reshape(-1, self.config["d"])
        ids = [self.vocabulary.get(word, self.vocabulary.get("<unk>")) for word in tokens]
        if None in ids:
            raise KeyError(f"{tokens[ids.index(None)]!r} is not in the vocabulary, which has no <unk>")
        return torch.tensor(ids, dtype=torch.long, device=like.device)

    @torch.no_grad()
    def predict(self, tokens: list) -> list:
        """Labels (outputs where there are none) of a sequence of words or vectors, or of each of a list of sequences."""
        if isinstance(tokens, str):
            raise TypeError(f"a string is no sequence: give a list of words, such as {tokens.split()!r}")
        first = tokens[0]
        single = np.ndim(first) == 1 if self.vocabulary is None else isinstance(first, str)
        ids, mask = self.encode([tokens] if single else tokens)
        results = [y[: int(n)] for y, n in zip(self(ids, mask), mask.sum(1))]
        if self.labels is not None:  # argmax gives the lowest index on ties
            results = [[self.labels[i] for i in y.argmax(-1).tolist()] for y in results]
        return results[0] if single else results

    def save(self, directory: str | os.PathLike) -> Path:
        """Writes a model directory, whole or not at all. Its numbers may have changed, so there is no certificate:
        `monolayer.certify` says what holds of them."""
        directory, state = Path(directory), self.state_dict()
        if directory.exists():
            raise FileExistsError(f"{directory} exists; give another one")
        dtypes = {tensor.dtype for tensor in state.values()}
        dtype = next((name for name, known in DTYPES.items() if dtypes == {known}), None)
        bad = next((name for name, tensor in state.items() if not bool(torch.isfinite(tensor).all())), None)
        if dtype is None or bad is not None:
            wrong = f"{bad} is not finite" if bad else f"parameters of {', '.join(map(str, dtypes))}; model.float() or .double()"
            raise ValueError(f"{directory}: {wrong}")
        directory.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=directory.parent, prefix=".monolayer-") as folder:
            half = Path(folder, "model")
            half.mkdir()
            config = {**self.config, "dtype": dtype, "source": {"command": "torch"}}
            (half / "config.json").write_text(json.dumps(config), encoding="utf-8")
            if self.vocabulary is not None:
                (half / "vocabulary.json").write_text(json.dumps(self.vocabulary), encoding="utf-8")
            masks = [layer["attention"].rows for layer in self.layers if "attention" in layer]
            for rows in [rows for rows in masks if rows is not None][:1]:  # all layers share one file
                write_tensors(half / "mask.safetensors", {"mask": rows})
            write_tensors(half / "model.safetensors", state)
            half.rename(directory)
        return directory


def write_tensors(path: Path, tensors: dict[str, torch.Tensor]) -> None:
    """A safetensors file: the length of the header, the header, the numbers."""
    header, parts, end = {}, [], 0
    for name, tensor in tensors.items():
        raw = tensor.detach().cpu().contiguous().numpy().tobytes()
        kind = {torch.float32: "F32", torch.float64: "F64", torch.uint8: "U8"}[tensor.dtype]
        header[name] = {"dtype": kind, "shape": list(tensor.shape), "data_offsets": [end, end + len(raw)]}
        parts.append(raw)
        end += len(raw)
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    path.write_bytes(len(text).to_bytes(8, "little") + text + b"".join(parts))


def load(directory: str | os.PathLike) -> Transformer:
    """The model of a directory, in its own dtype."""
    native = _native.load(Path(directory))
    config = json.loads(native.config())
    if config["dtype"] not in DTYPES:
        raise ValueError(f"{directory}: dtype {config['dtype']!r} needs more than f64; monolayer itself runs such models")
    rows = [native.mask_rows(i) for i in range(len(config["layers"]))]
    model = Transformer(config, native.words, rows).to(DTYPES[config["dtype"]])
    model.load_state_dict({name: torch.from_numpy(x) for name, x in native.tensors().items()})
    return model.eval()
