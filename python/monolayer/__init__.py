"""Transformers with ONE rank-1 self-attention layer, computed instead of trained, with a proof.

>>> import monolayer
>>> model = monolayer.memorize([["May", "sails", "in", "May"]], [["PER", "O", "O", "DATE"]])
>>> model.predict(["May", "sails", "in", "May"])
['PER', 'O', 'O', 'DATE']

The theorem: Kajitsuka and Sato, "Are Transformers with One Layer Self-Attention Using Low-Rank Weight Matrices Universal
Approximators?", ICLR 2024, arXiv 2307.14023.

=====================  ==============================================================================
`memorize`             a dataset into a model: every token gets its label, and that is proved
`compile_function`     any Python function from a sequence to labels, enumerated and memorized
`memorize_text`        a text into a model that recites it
`approximate`          a function on vectors into a model, with a bound on the distance
`attention`            rank-1 softmax attention in linear time, on NumPy arrays and PyTorch tensors
`load`                 a model from its directory
`verify`, `certify`    an independent checker's verdict on a model and its data
`read`                 a dataset from a file: CoNLL columns, CSV, TSV, JSON, NumPy arrays, safetensors
`Memorizer`            the same in the manner of scikit-learn: fit, predict, score
`explain`, `generate`  one sequence through a model; the text that a model recites
`claims`               every statement of the paper, run
`context`, `train`     the contextual mapping alone; the same architecture, trained
=====================  ==============================================================================

`monolayer.torch` has the same models as plain PyTorch modules, `monolayer.lens` in TransformerLens. `monolayer.cluster` memorizes
large files on a Dask cluster.
"""
from ._attention import attention
from ._commands import claims, command, context, train
from ._data import Dataset, read
from ._estimator import Memorizer
from ._functions import Approximation, approximate, compile_function, memorize_text
from ._model import Model, certify, explain, generate, load, memorize, verify
from ._native import MonolayerError

Compiled = Model

__all__ = [
    "Approximation", "Compiled", "Dataset", "Memorizer", "Model", "MonolayerError", "approximate", "attention", "certify", "claims", "command",
    "compile_function", "context", "explain", "generate", "load", "memorize", "memorize_text", "read", "train", "verify",
]


def __getattr__(name: str):
    """These modules are imported when they are first used: they need PyTorch, TransformerLens and Dask."""
    if name in ("torch", "lens", "cluster"):
        import importlib

        return importlib.import_module(f"{__name__}.{name}")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return [*globals(), "cluster", "lens", "torch"]
