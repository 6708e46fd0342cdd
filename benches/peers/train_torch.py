"""Trains the rank-1 Transformer of eq. 20 on CoNLL columns with PyTorch, as fast as plain PyTorch goes on a CPU.

    python train_torch.py --data train.conll                         one JSON line
    python train_torch.py --data train.conll --mode compile --layers 3
    python train_torch.py --data train.conll --epochs 1 --steps 50 --export DIR

--export writes DIR/initial and DIR/final (model directories) and DIR/steps.jsonl, a line per step: the sentences of its
batch, counted from 0, and its mean loss. Another trainer that starts from DIR/initial and takes the same batches can be
compared step by step.
"""

import argparse
import json
import os
import time

import numpy as np
import torch
from torch import nn
from torch.nn import functional as F

from common import Corpus, Others


class Layer(nn.Module):
    """Eq. 20, then eq. 3. Tokens are packed [tokens, d]; only their two projections are padded, to [batch, longest]."""

    def __init__(self, d, q):
        super().__init__()
        self.project = nn.Linear(d, 2, bias=False)  # rows v1 (key and value) and v2 (query)
        self.w_o = nn.Parameter(torch.empty(d).uniform_(-1, 1))
        self.widen, self.narrow = nn.Linear(d, q), nn.Linear(q, d)

    def forward(self, z, place, padding):
        batch, _, longest = padding.shape
        padded = z.new_zeros(batch * longest, 2).index_copy(0, place, self.project(z))
        key, query = padded.view(batch, longest, 2).unbind(-1)
        weights = torch.softmax(query.unsqueeze(2) * key.unsqueeze(1) + padding, dim=-1)  # [batch, query, key]
        context = torch.bmm(weights, key.unsqueeze(2)).view(-1).index_select(0, place)
        h = z + context.unsqueeze(1) * self.w_o
        return h + self.narrow(F.relu(self.widen(h)))


class Rank1Transformer(nn.Module):
    """Embedding (and positions), layers, head."""

    def __init__(self, words, labels, d, q, layers, max_length):
        super().__init__()
        self.embedding = nn.Embedding(words, d)
        self.positions = nn.Embedding(max_length, d) if max_length else None
        self.layers = nn.ModuleList(Layer(d, q) for _ in range(layers))
        self.head = nn.Linear(d, labels)

    def forward(self, words, place, padding):
        z = self.embedding(words)
        if self.positions is not None:
            z = z + self.positions(place % padding.shape[2])
        for layer in self.layers:
            z = layer(z, place, padding)
        return self.head(z)


def batches(corpus, order, size):
    """Batches of `size` sentences in the given order: words, labels, place in the padded batch, padding of keys."""
    lengths = corpus.lengths[order]
    ends = np.cumsum(lengths)
    inside = np.arange(ends[-1]) - np.repeat(ends - lengths, lengths)  # place in its own sentence
    tokens = np.repeat(corpus.starts[order], lengths) + inside
    words, labels = torch.from_numpy(corpus.word_ids[tokens]), torch.from_numpy(corpus.label_ids[tokens])
    for first in range(0, len(order), size):
        n = lengths[first : first + size]
        begin, end = ends[first] - lengths[first], ends[first + len(n) - 1]
        longest = n.max()
        place = np.repeat(np.arange(len(n)) * longest, n) + inside[begin:end]
        padding = np.where(np.arange(longest) < n[:, None], np.float32(0), np.float32(-1e30))
        yield words[begin:end], labels[begin:end], torch.from_numpy(place), torch.from_numpy(padding[:, None, :])


@torch.no_grad()
def accuracy(model, corpus):
    """The share of right tokens, in batches of sentences of like length."""
    right = 0
    for words, labels, place, padding in batches(corpus, np.argsort(corpus.lengths, kind="stable"), 256):
        right += int((model(words, place, padding).argmax(-1) == labels).sum())
    return right / len(corpus.word_ids)


def export(model, corpus, directory, args):
    """The model as a directory of the project's own format."""
    from safetensors.torch import save_file

    os.makedirs(directory, exist_ok=True)
    attention = {"kind": "softmax", "heads": 1, "head_size": 1, "mask": "none"}
    config = {
        "format": "monolayer/1",
        "d": args.d,
        "dtype": "f32",
        "max_length": None if model.positions is None else model.positions.num_embeddings,
        "labels": list(corpus.labels),
        "layers": [{"attention": attention, "hidden": args.q} for _ in model.layers],
        "pre_feed_forward": None,
        "source": {"command": "benches/peers/train_torch.py", "seed": args.seed},
    }
    tensors = {
        "embedding.weight": model.embedding.weight,
        "head.weight": model.head.weight,
        "head.bias": model.head.bias,
    }
    if model.positions is not None:
        tensors["positions.weight"] = model.positions.weight
    for i, layer in enumerate(model.layers):
        v1, v2 = layer.project.weight.view(2, 1, 1, args.d)
        attention = {"w_q": v2, "w_k": v1, "w_v": v1, "w_o": layer.w_o.view(1, args.d, 1)}
        feed_forward = {
            "w1": layer.widen.weight,
            "b1": layer.widen.bias,
            "w2": layer.narrow.weight,
            "b2": layer.narrow.bias,
        }
        tensors |= {f"layers.{i}.attention.{name}": w for name, w in attention.items()}
        tensors |= {f"layers.{i}.feed_forward.{name}": w for name, w in feed_forward.items()}
    save_file(
        {name: w.detach().clone().contiguous() for name, w in tensors.items()},
        os.path.join(directory, "model.safetensors"),
    )
    for name, content in {"config.json": config, "vocabulary.json": corpus.words}.items():
        with open(os.path.join(directory, name), "w", encoding="utf-8") as file:
            json.dump(content, file, ensure_ascii=False, indent=1)


def train_epoch(net, optimizer, corpus, order, args, record):
    """One pass; gives tokens, steps, mean loss and running accuracy, read only at the end so that no step waits."""
    tokens, steps, loss_sum, right = 0, 0, torch.zeros(()), torch.zeros((), dtype=torch.long)
    for words, labels, place, padding in batches(corpus, order, args.batch):
        scores = net(words, place, padding)
        loss = F.cross_entropy(scores, labels)
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        optimizer.step()
        loss_sum += loss.detach() * len(words)
        right += (scores.detach().argmax(-1) == labels).sum()
        if record is not None:
            sentences = order[steps * args.batch : (steps + 1) * args.batch].tolist()
            record.append({"sequences": sentences, "loss": loss.detach()})
        tokens, steps = tokens + len(words), steps + 1
        if steps == args.steps:
            break
    return tokens, steps, loss_sum.item() / tokens, right.item() / tokens


def parse():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", required=True, help="CoNLL columns: token first, label last")
    parser.add_argument("--mode", choices=["eager", "compile"], default="eager")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--layers", type=int, default=1)
    parser.add_argument("--d", type=int, default=64)
    parser.add_argument("--q", type=int, default=256)
    parser.add_argument("--batch", type=int, default=32, help="sentences per step")
    parser.add_argument("--rate", type=float, default=1e-3, help="of Adam, constant")
    parser.add_argument("--epochs", type=int, default=5)
    parser.add_argument(
        "--steps", type=int, default=0, help="stop every epoch after this many steps (0: the whole epoch)"
    )
    parser.add_argument(
        "--evaluate-every",
        type=int,
        default=0,
        metavar="E",
        help="accuracy over the file every E epochs (0: at the end)",
    )
    parser.add_argument("--positions", action="store_true")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--export", metavar="DIR")
    return parser.parse_args()


def main():
    args = parse()
    torch.set_num_threads(args.threads)
    torch.manual_seed(args.seed)
    torch.set_flush_denormal(True)
    rng = np.random.default_rng(args.seed)
    corpus = Corpus(args.data)
    max_length = int(corpus.lengths.max()) if args.positions else 0
    model = Rank1Transformer(len(corpus.words), len(corpus.labels), args.d, args.q, args.layers, max_length)
    net = torch.compile(model, dynamic=True) if args.mode == "compile" else model
    optimizer = torch.optim.Adam(model.parameters(), lr=args.rate, fused=True)
    record = [] if args.export else None
    if args.export:
        export(model, corpus, os.path.join(args.export, "initial"), args)

    seconds, rates, others, losses, running, curve = [], [], [], [], [], []
    for epoch in range(1, args.epochs + 1):
        watch, start = Others(), time.perf_counter()
        order = rng.permutation(len(corpus.lengths))
        tokens, steps, loss, share = train_epoch(net, optimizer, corpus, order, args, record)
        seconds.append(time.perf_counter() - start)
        rates.append(tokens / seconds[-1])
        others.append(watch.cores())
        losses.append(round(loss, 6))
        running.append(round(share, 5))
        if epoch == args.epochs or (args.evaluate_every and epoch % args.evaluate_every == 0):
            curve.append([epoch, round(accuracy(model, corpus), 5)])

    if args.export:
        export(model, corpus, os.path.join(args.export, "final"), args)
        with open(os.path.join(args.export, "steps.jsonl"), "w", encoding="utf-8") as file:
            file.writelines(json.dumps({**step, "loss": step["loss"].item()}) + "\n" for step in record)
    warm = range(1, args.epochs) if args.epochs > 1 else range(1)  # the first epoch warms up (and compiles)
    fastest = max(warm, key=lambda i: rates[i])
    report = {
        **vars(args),
        "torch": torch.__version__,
        "parameters": sum(p.numel() for p in model.parameters()),
        "tokens": round(rates[fastest] * seconds[fastest]),
        "steps_per_epoch": steps,
        "seconds_per_epoch": round(seconds[fastest], 4),
        "seconds_per_epoch_median": round(float(np.median([seconds[i] for i in warm])), 4),
        "seconds_first_epoch": round(seconds[0], 4),
        "tokens_per_second": round(rates[fastest]),
        "others_cores": others[fastest],
        "loss": losses,
        "running_accuracy": running,
        "accuracy": curve,
    }
    print(json.dumps(report))


if __name__ == "__main__":
    main()
