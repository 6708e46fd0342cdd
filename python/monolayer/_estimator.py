"""In the manner of scikit-learn."""
from __future__ import annotations

from typing import Any

from ._data import Dataset
from ._model import Model, memorize


class Memorizer:
    """`Memorizer(**options).fit(X, y).predict(X)`: the options are those of `memorize`.

    Where y has one label per sequence, so has what is predicted: the label of the last token with label_at="last", else of the
    first.

    >>> memorizer = monolayer.Memorizer(seed=1).fit([["a", "b"], ["b", "b"]], [["X", "Y"], ["Z", "Z"]])
    >>> memorizer.predict([["a", "b"], ["b", "b"]])
    [['X', 'Y'], ['Z', 'Z']]
    >>> monolayer.Memorizer().fit([["a", "b"], ["b", "b"]], ["X", "Y"]).predict([["b", "b"]])
    ['Y']
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

    def __sklearn_tags__(self):
        """What scikit-learn asks its estimators: a classifier of sequences, which are no tables."""
        from sklearn.utils import ClassifierTags, InputTags, Tags, TargetTags

        return Tags("classifier", TargetTags(required=True), classifier_tags=ClassifierTags(), input_tags=InputTags(two_d_array=False))

    def fit(self, X: Any, y: Any) -> "Memorizer":
        """Memorizes sequences X with labels y, one per token or one per sequence."""
        data = {name: self.options[name] for name in ("label_at", "padding") if name in self.options}
        options = {name: value for name, value in self.options.items() if name not in data}
        dataset = Dataset(X, y, **data)
        self.per_sequence_: bool = dataset._per_sequence
        self.model_: Model = memorize(dataset, **options)
        self.classes_ = self.model_.labels
        return self

    def predict(self, X: Any) -> Any:
        """The labels of sequences."""
        if not hasattr(self, "model_"):
            raise ValueError("this Memorizer has nothing memorized yet; call fit first")
        labels = self.model_.predict(X)
        if not self.per_sequence_:
            return labels
        at = -1 if self.options.get("label_at") == "last" else 0
        return [row[at] for row in labels]

    def score(self, X: Any, y: Any) -> float:
        """The share of labeled tokens (of sequences, where each has one label) that get their label."""
        if not self.per_sequence_:
            return self.model_.score(X, y)
        found = self.predict(X)
        return sum(a == b for a, b in zip(found, y, strict=True)) / len(found)
