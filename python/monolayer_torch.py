"""A monolayer model directory as a plain PyTorch module; equations are those of Kajitsuka and Sato (ICLR 2024).

    import monolayer_torch
    model = monolayer_torch.load("model")
    model.predict(["EU", "rejects", "German", "call"])
"""
import json
from pathlib import Path

import torch
from torch import nn

DTYPES = {"F32": torch.float32, "F64": torch.float64}


def product(a, b, row_by_row=False):
    """a b^T. Row by row, equal rows give equal bits: exact ties need it, and a matrix product does not promise it."""
    return (a.unsqueeze(-2) * b.unsqueeze(-3)).sum(-1) if row_by_row else a @ b.transpose(-1, -2)


class Attention(nn.Module):
    """Eq. 2: Z + sum_i W_O,i (W_V,i Z) softmax[(W_K,i Z)^T (W_Q,i Z)]; eq. 5 with hardmax."""
    def __init__(self, d, kind, heads, head_size, mask):
        super().__init__()
        self.hardmax, self.causal = {"softmax": False, "hardmax": True}[kind], {"none": False, "causal": True}[mask]
        self.w_q, self.w_k, self.w_v = (nn.Parameter(torch.empty(heads, head_size, d)) for _ in range(3))
        self.w_o = nn.Parameter(torch.empty(heads, d, head_size))

    def forward(self, z, real):
        x = z.masked_fill(~real.unsqueeze(-1), 0).unsqueeze(1)  # 0, so that a weight of 0 leaves nothing of padding
        q, k = (product(x, w, self.hardmax) for w in (self.w_q, self.w_k))  # [batch, heads, n, head_size]
        visible = real[:, None, None, :].expand(-1, -1, z.shape[1], -1)  # [batch, 1, query, key]
        scores = product(q, k, self.hardmax).masked_fill(~(visible.tril() if self.causal else visible), -torch.inf)
        if self.hardmax:  # only the largest are left, all equal, so that softmax gives them equal weights
            scores = scores.masked_fill(scores < scores.amax(-1, keepdim=True), -torch.inf)
        return z + product(scores.softmax(-1) @ product(x, self.w_v), self.w_o).sum(1)


class FeedForward(nn.Module):
    """Eq. 3, token by token: h + W_2 relu(W_1 h + b_1) + b_2."""
    def __init__(self, d, hidden):
        super().__init__()
        self.w1, self.b1 = nn.Parameter(torch.empty(hidden, d)), nn.Parameter(torch.empty(hidden))
        self.w2, self.b2 = nn.Parameter(torch.empty(d, hidden)), nn.Parameter(torch.empty(d))

    def forward(self, z, real):
        return z + (torch.relu(z @ self.w1.T + self.b1) @ self.w2.T + self.b2)


class Transformer(nn.Module):
    """embedding + positions, pre_feed_forward, layers, head: each where the config has it."""
    def __init__(self, config, vocabulary):
        super().__init__()
        d, n, labels, pre = (config[key] for key in ("d", "max_length", "labels", "pre_feed_forward"))
        self.d, self.max_length, self.labels, self.vocabulary = d, n, labels, vocabulary
        self.embedding = None if vocabulary is None else nn.Embedding(max(vocabulary.values()) + 1, d)
        self.positions = None if n is None else nn.Embedding(n, d)
        self.pre_feed_forward = None if pre is None else FeedForward(d, pre["hidden"])
        self.layers = nn.ModuleList()
        for c in config["layers"]:
            attention = {"attention": Attention(d, **c["attention"])} if c["attention"] is not None else {}
            feed_forward = {"feed_forward": FeedForward(d, c["hidden"])} if c["hidden"] > 0 else {}
            self.layers.append(nn.ModuleDict(attention | feed_forward))
        self.head = None if labels is None else nn.Linear(d, len(labels))

    def forward(self, sequences):
        """Scores of the labels [n, labels] of each sequence, or F(X) [n, d] without a head, from one padded batch."""
        inputs = [self.embed(tokens) for tokens in sequences]
        z = nn.utils.rnn.pad_sequence(inputs, batch_first=True)  # [batch, n, d]
        real = nn.utils.rnn.pad_sequence([x.new_ones(len(x)) for x in inputs], batch_first=True) > 0  # false on padding
        z = z if self.pre_feed_forward is None else self.pre_feed_forward(z, real)
        for layer in self.layers:
            for step in layer.values():  # attention, then feed-forward
                z = step(z, real)
        z = z if self.head is None else self.head(z)
        return [y[: len(x)] for x, y in zip(inputs, z)]

    def embed(self, tokens):  # one sequence, of words or of vectors, as [n, d]
        like = next(self.parameters())
        if self.vocabulary is None:
            rows = [torch.as_tensor(x, dtype=like.dtype, device=like.device) for x in tokens]
            z = torch.stack(rows).reshape(len(rows), self.d)
        else:
            ids = [self.vocabulary.get(word, self.vocabulary.get("<unk>")) for word in tokens]
            if None in ids:
                raise KeyError(f"{tokens[ids.index(None)]!r} is not in the vocabulary, which has no <unk>")
            z = self.embedding(torch.tensor(ids, dtype=torch.long, device=like.device))
        if self.positions is not None and len(z) > self.max_length:
            raise ValueError(f"a sequence of {len(z)} tokens, and positions end at {self.max_length}")
        return z if self.positions is None else z + self.positions.weight[: len(z)]

    @torch.no_grad()
    def predict(self, tokens):
        """Labels (outputs without a head) of a sequence of words or vectors, or of each of a list of sequences."""
        single = torch.as_tensor(tokens[0]).ndim == 1 if self.vocabulary is None else isinstance(tokens[0], str)
        results = self([tokens] if single else tokens)
        if self.labels is not None:  # argmax gives the lowest index on ties
            results = [[self.labels[i] for i in y.argmax(-1).tolist()] for y in results]
        return results[0] if single else results


def load(directory):
    """The model of a directory, in its own dtype; a missing, surplus or misshapen tensor is an error that names it."""
    config = json.loads(Path(directory, "config.json").read_bytes())
    if config["format"] != "monolayer/1" or config["dtype"].upper() not in DTYPES:
        raise ValueError(f"{directory}: format {config['format']!r} with dtype {config['dtype']!r} is not read here")
    words = Path(directory, "vocabulary.json")
    model = Transformer(config, json.loads(words.read_bytes()) if words.exists() else None)
    model.to(DTYPES[config["dtype"].upper()]).load_state_dict(read_safetensors(Path(directory, "model.safetensors")))
    return model.eval()


def read_safetensors(path):
    """8 bytes of header length, a JSON header, then the numbers."""
    raw = bytearray(path.read_bytes())
    start = 8 + int.from_bytes(raw[:8], "little")
    data = raw[start:]
    tensor = lambda e: torch.frombuffer(data[slice(*e["data_offsets"])], dtype=DTYPES[e["dtype"]]).reshape(e["shape"])
    return {name: tensor(e) for name, e in json.loads(raw[8:start]).items() if name != "__metadata__"}
