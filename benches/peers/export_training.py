"""Small training runs in PyTorch for a trainer to be compared with, step by step.

    python export_training.py ../../crates/monolayer-train/tests/fixtures

Writes data.conll, and for each case a directory: the weights before the first step (a model directory, in f32) and
training.json: the options, the sentences of each batch counted from 0, the rate of each step, and the mean loss of each
step in f32 and in f64, both from the same weights. Layer norms, which a model directory has no place for, start with gains
of 1 and biases of 0.
"""

import json
import math
import os
import sys

import numpy as np
import torch
from safetensors.torch import save_file
from torch import nn
from torch.nn import functional as F

from common import Corpus

STEPS, BATCH, DIM, HIDDEN = 100, 6, 8, 16
DEFAULTS = {
    "layers": 1,
    "heads": 1,
    "head_size": 1,
    "tied": True,
    "positions": False,
    "layer_norm": False,
    "optimizer": "adam",
    "rate": 1e-2,
    "schedule": "constant",
    "warmup": 0,
    "betas": [0.9, 0.999],
    "epsilon": 1e-8,
    "weight_decay": 0.0,
    "momentum": 0.0,
    "clip": None,
}
CASES = {
    "rank_one": {},
    "three_layers": {"layers": 3},
    "full_rank": {"head_size": DIM, "tied": False, "positions": True},
    "heads": {"layers": 2, "heads": 2, "head_size": 3, "tied": False, "rate": 3e-3},
    "layer_norm": {"layers": 2, "head_size": 4, "tied": False, "layer_norm": True},
    "adam_betas": {"betas": [0.8, 0.95], "epsilon": 1e-6},
    "adamw": {"optimizer": "adamw", "weight_decay": 0.05, "clip": 0.5, "schedule": "cosine", "warmup": 10},
    "sgd": {"optimizer": "sgd", "rate": 0.1, "momentum": 0.9, "schedule": "linear"},
}


def corpus_text(rng):
    """Sentences of 1 to 9 words out of 40; a label depends on the word, and on whether "w0" is in the sentence."""
    sentences = []
    for _ in range(60):
        words = np.minimum(rng.geometric(0.12, size=rng.integers(1, 10)) - 1, 39)
        label = lambda w: ["O", "I-A", "I-B"][(w + (0 in words and w % 4 == 1)) % 3]
        sentences.append("".join(f"w{w} {label(w)}\n" for w in words))
    return "\n".join(sentences)


class Layer(nn.Module):
    """Eq. 2, then eq. 3, each with an optional layer norm after its skip; one sentence [n, d] at a time."""

    def __init__(self, case):
        super().__init__()
        shape = (case["heads"], case["head_size"], DIM)
        uniform = lambda shape, fan_in: nn.Parameter(torch.empty(shape).uniform_(-1, 1) / math.sqrt(fan_in))
        self.w_q, self.w_k = uniform(shape, DIM), uniform(shape, DIM)
        self.w_v = self.w_k if case["tied"] else uniform(shape, DIM)
        self.w_o = uniform((case["heads"], DIM, case["head_size"]), case["heads"] * case["head_size"])
        self.widen, self.narrow = nn.Linear(DIM, HIDDEN), nn.Linear(HIDDEN, DIM)
        self.norms = nn.ModuleList(nn.LayerNorm(DIM) if case["layer_norm"] else nn.Identity() for _ in range(2))

    def forward(self, z):
        q, k, v = (torch.einsum("hsd,nd->hns", w, z) for w in (self.w_q, self.w_k, self.w_v))
        mixed = torch.softmax(q @ k.transpose(1, 2), dim=-1) @ v  # no division by the root of the head size
        h = self.norms[0](z + torch.einsum("hds,hns->nd", self.w_o, mixed))
        return self.norms[1](h + self.narrow(F.relu(self.widen(h))))


class Transformer(nn.Module):
    """Embedding (and positions), layers, head."""

    def __init__(self, case, corpus):
        super().__init__()
        self.embedding = nn.Embedding(len(corpus.words), DIM)
        longest = int(corpus.lengths.max())
        self.positions = nn.Parameter(torch.randn(longest, DIM)) if case["positions"] else None
        self.layers = nn.ModuleList(Layer(case) for _ in range(case["layers"]))
        self.head = nn.Linear(DIM, len(corpus.labels))

    def forward(self, words):
        z = self.embedding(words)
        if self.positions is not None:
            z = z + self.positions[: len(words)]
        for layer in self.layers:
            z = layer(z)
        return self.head(z)

    def tensors(self):
        """By the names of a model directory."""
        tensors = {"embedding.weight": self.embedding.weight, "head.weight": self.head.weight, "head.bias": self.head.bias}
        if self.positions is not None:
            tensors["positions.weight"] = self.positions
        for i, layer in enumerate(self.layers):
            for name in ("w_q", "w_k", "w_v", "w_o"):
                tensors[f"layers.{i}.attention.{name}"] = getattr(layer, name)
            widen, narrow = layer.widen, layer.narrow
            for name, w in {"w1": widen.weight, "b1": widen.bias, "w2": narrow.weight, "b2": narrow.bias}.items():
                tensors[f"layers.{i}.feed_forward.{name}"] = w
        return {name: w.detach().clone().contiguous() for name, w in tensors.items()}


def factor(case, step):
    """The share of the rate at a step, counted from 0: a linear rise, then the schedule over the rest."""
    if step < case["warmup"]:
        return (step + 1) / case["warmup"]
    done = (step - case["warmup"]) / (STEPS - case["warmup"])
    return {"constant": 1.0, "linear": 1 - done, "cosine": 0.5 * (1 + math.cos(math.pi * done))}[case["schedule"]]


def optimizer_of(case, parameters):
    """The optimizer of a case."""
    if case["optimizer"] == "sgd":
        return torch.optim.SGD(parameters, lr=case["rate"], momentum=case["momentum"])
    shared = {"lr": case["rate"], "betas": case["betas"], "eps": case["epsilon"]}
    if case["optimizer"] == "adamw":
        return torch.optim.AdamW(parameters, weight_decay=case["weight_decay"], **shared)
    return torch.optim.Adam(parameters, **shared)


def train(model, case, corpus, batches, rates):
    """The mean loss of each step."""
    words, labels = torch.from_numpy(corpus.word_ids), torch.from_numpy(corpus.label_ids)
    optimizer, losses = optimizer_of(case, model.parameters()), []
    for batch, rate in zip(batches, rates):
        ranges = [slice(corpus.starts[i], corpus.starts[i] + corpus.lengths[i]) for i in batch]
        scores = torch.cat([model(words[r]) for r in ranges])
        loss = F.cross_entropy(scores, torch.cat([labels[r] for r in ranges]))
        optimizer.zero_grad()
        loss.backward()
        if case["clip"]:
            torch.nn.utils.clip_grad_norm_(model.parameters(), case["clip"])
        for group in optimizer.param_groups:
            group["lr"] = rate
        optimizer.step()
        losses.append(loss.item())
    return losses


def write(directory, name, content):
    with open(os.path.join(directory, name), "w", encoding="utf-8") as file:
        file.write(content)


def main():
    torch.set_num_threads(1)
    (root,) = sys.argv[1:]
    os.makedirs(root, exist_ok=True)
    rng = np.random.default_rng(0)
    write(root, "data.conll", corpus_text(rng))
    corpus = Corpus(os.path.join(root, "data.conll"))
    for name, changes in CASES.items():
        case = DEFAULTS | changes
        directory = os.path.join(root, name)
        os.makedirs(directory, exist_ok=True)
        torch.manual_seed(1)
        model = Transformer(case, corpus)
        attention = {"kind": "softmax", "heads": case["heads"], "head_size": case["head_size"], "mask": "none"}
        config = {
            "format": "monolayer/1",
            "d": DIM,
            "dtype": "f32",
            "max_length": len(model.positions) if case["positions"] else None,
            "labels": list(corpus.labels),
            "layers": [{"attention": attention, "hidden": HIDDEN} for _ in range(case["layers"])],
            "pre_feed_forward": None,
            "source": {"command": "benches/peers/export_training.py"},
        }
        save_file(model.tensors(), os.path.join(directory, "model.safetensors"))
        write(directory, "config.json", json.dumps(config, indent=1) + "\n")
        write(directory, "vocabulary.json", json.dumps(corpus.words) + "\n")
        epochs = [rng.permutation(len(corpus.lengths)) for _ in range(-(-STEPS * BATCH // len(corpus.lengths)))]
        batches = [list(map(int, b)) for order in epochs for b in np.split(order, range(BATCH, len(order), BATCH))]
        rates = [case["rate"] * factor(case, step) for step in range(STEPS)]
        double = Transformer(case, corpus).double()
        double.load_state_dict(model.state_dict())
        training = {
            "options": {**case, "dim": DIM, "hidden": HIDDEN},
            "torch": torch.__version__,
            "batches": batches[:STEPS],
            "rates": rates,
            "losses_f32": train(model, case, corpus, batches[:STEPS], rates),
            "losses_f64": train(double, case, corpus, batches[:STEPS], rates),
        }
        write(directory, "training.json", json.dumps(training) + "\n")
        ends = [f"{training['losses_f64'][i]:.4f}" for i in (0, -1)]
        worst = max(abs(a - b) / b for a, b in zip(training["losses_f32"], training["losses_f64"]))
        print(f"{name}: loss {ends[0]} to {ends[1]}, f32 against f64 {worst:.1e}")


if __name__ == "__main__":
    main()
