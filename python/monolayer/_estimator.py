"""In the manner of scikit-learn."""
from __future__ import annotations

from typing import Any

from ._model import Model, memorize


class Memorizer:
    """`Memorizer(**options).fit(X, y).predict(X)`: the options are those of `memorize`.

    >>> memorizer = monolayer.Memorizer(seed=1).fit([["a", "b"], ["b", "b"]], [["X", "Y"], ["Z", "Z"]])
    >>> memorizer.predict([["a", "b"], ["b", "b"]])
    [['X', 'Y'], ['Z', 'Z']]
    """

    def __init__(self, **options: Any):
        self.options = options

    def get_params(self, deep: bool = True) -> dict:
        """The options."""
        return dict(self.options)

    def set_params(self, **options: Any) -> "Memorizer":
        """Changes some options."""
        self.options.update(options)
        return self

    def fit(self, X: Any, y: Any) -> "Memorizer":
        """Memorizes sequences X with labels y, one per token or one per sequence."""
        self.model_: Model = memorize(X, y, **self.options)
        self.classes_ = self.model_.labels
        return self

    def predict(self, X: Any) -> Any:
        """The labels of sequences."""
        return self.model_.predict(X)

    def score(self, X: Any, y: Any) -> float:
        """The share of labeled tokens that get their label."""
        return self.model_.score(X, y)
