"""Base classes of the selectors for comparison: input, number of features, and search along a path."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
from sklearn.utils import ClassifierTags

from coterie._numba import one_blas_thread, thread_count
from coterie.data.source import FeatureSource
from coterie.data.view import FeatureView
from coterie.inputs.opening import TargetKind, open_input
from coterie.inputs.types import FeaturesLike, TargetsLike
from coterie.selection import Selector, n_features_or_auto

# Largest number of bisections of an interval of the (logarithmic) path, and of steps along the path.
_MAX_BISECTIONS = 20
_MAX_STEPS = 40


@dataclass(frozen=True)
class TrainingData:
    """Input of a fit: features, labels (as codes 0, 1, …) or numbers, and number of features to select (None: "auto")."""

    attributes: dict[str, Any]
    view: FeatureView
    classes: np.ndarray | None
    codes: np.ndarray
    n_wanted: int | None

    @property
    def n_selected(self) -> int:
        """Number of features to select, if it is not "auto"."""
        assert self.n_wanted is not None
        return self.n_wanted

    @property
    def source(self) -> FeatureSource:
        """Source of the features."""
        return self.view.source

    @property
    def targets(self) -> np.ndarray:
        """Targets: numbers, or two classes as -1 and 1."""
        return self.codes if self.classes is None else np.where(self.codes == 1, 1.0, -1.0)


class BaselineSelector(Selector):
    """Base class of supervised selectors, with labels or a numeric target."""

    _target: ClassVar[TargetKind]
    _two_classes_only: ClassVar[bool] = False

    def fit(self, X: FeaturesLike, y: TargetsLike = None) -> Self:
        """Select features.

        Parameters
        ----------
        X : {array-like, sparse matrix, data frame, FeatureSource, path, …} of shape (n_samples, n_features)
            Training data.
        y : array-like of shape (n_samples,)
            Class labels of any kind, or numbers for a selector with a numeric target. None means the labels of the file or
            store.

        Returns
        -------
        self : object
            The fitted selector.
        """
        with one_blas_thread():
            return self._fit(lambda: self._read(X, y))

    def _read(self, X: FeaturesLike, y: TargetsLike) -> TrainingData:
        data = open_input(X, y, reader=self, target=self._target)
        view = FeatureView.of(data.source, n_threads=thread_count(self.get_params(deep=False).get("n_jobs", 1)))
        view.moments.require_variation()
        n_wanted = n_features_or_auto(self.n_features_to_select, view.n_features)
        if self._two_classes_only and data.classes is not None and len(data.classes) > 2:
            raise ValueError(
                f"Only binary classification is supported. y has {len(data.classes)} classes, but {type(self).__name__} is a "
                "method for 2. Use labels of one class against the rest."
            )
        return TrainingData(data.attributes, view, data.classes, data.targets, n_wanted)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        if self._two_classes_only:
            tags.classifier_tags = ClassifierTags(multi_class=False)
        return tags


class LabelSelector(BaselineSelector):
    """Base class of selectors with class labels."""

    _target = "classes"


class TargetSelector(BaselineSelector):
    """Base class of selectors with a numeric target, such as a quantitative trait."""

    _target = "number"


class PathPoint(NamedTuple):
    """Model on the path: strength of the penalty, coefficients, and number of features with nonzero coefficients."""

    strength: float
    coef: np.ndarray
    n_features: int


def search_path(
    solve: Callable[[float, np.ndarray | None], np.ndarray],
    strongest: float,
    n_wanted: int,
    factor: float = 0.5,
) -> tuple[PathPoint, list[tuple[float, int]]]:
    """Return the model with ``n_wanted`` features, or the sparsest model with more features.

    If the path ends before, the model with the most features is returned. ``solve(strength, start)`` returns coefficients of
    shape (n_features,) or (n_outputs, n_features), and may start from those of the previous point. From ``strongest``, at
    which all coefficients are zero, the strength is multiplied by ``factor`` until there are enough features. The interval is
    then bisected on the logarithmic scale. All pairs (strength, number of features) that were tried are also returned, in
    decreasing order of strength.
    """
    tried: list[PathPoint] = []

    def at(strength: float, start: np.ndarray | None) -> PathPoint:
        coef = solve(strength, start)
        tried.append(PathPoint(strength, coef, int(np.count_nonzero(np.atleast_2d(coef).any(axis=0)))))
        return tried[-1]

    low = PathPoint(strongest, np.empty(0), 0)
    high = at(strongest * factor, None)
    for _ in range(_MAX_STEPS):
        if high.n_features >= n_wanted:
            break
        low, high = high, at(high.strength * factor, high.coef)
    for _ in range(_MAX_BISECTIONS):
        if high.n_features <= n_wanted:
            break
        middle = at(float(np.sqrt(low.strength * high.strength)), high.coef)
        if middle.n_features >= n_wanted:
            high = middle
        else:
            low = middle
    enough = [point for point in tried if point.n_features >= n_wanted]
    best = min(enough, key=lambda point: point.n_features) if enough else max(tried, key=lambda point: point.n_features)
    return best, sorted(((point.strength, point.n_features) for point in tried), reverse=True)
