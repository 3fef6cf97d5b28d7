"""Stability of a selector over resampled data."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from joblib import Parallel, delayed
from sklearn.base import BaseEstimator, clone
from sklearn.model_selection import ShuffleSplit, StratifiedShuffleSplit
from sklearn.utils.multiclass import type_of_target

from coterie._parameters import Integer, Number, check
from coterie.inputs.arrays import take_samples
from coterie.inputs.types import FeaturesLike, RandomStateLike, TargetsLike
from coterie.metrics.stability import (
    group_hamming_stability,
    group_tanimoto_stability,
    group_weighted_consistency,
    hamming_stability,
    tanimoto_stability,
    weighted_consistency,
)

if TYPE_CHECKING:
    import pandas as pd


class StabilityRow(NamedTuple):
    """Stability for one size of the subsets. The fields of groups are None for selectors without ``groups_``."""

    n_selected: float
    weighted_consistency: float
    tanimoto: float
    hamming: float
    group_weighted_consistency: float | None = None
    group_tanimoto: float | None = None
    group_hamming: float | None = None


@dataclass(frozen=True)
class SelectionStability(Sequence[StabilityRow]):
    """Table of the stability of a selector: one row, or one row per requested size.

    ``pandas.DataFrame(table)`` converts it to a data frame, as :meth:`to_frame` does.

    Attributes
    ----------
    rows : tuple of StabilityRow
        ``n_selected`` (mean number of selected features), ``weighted_consistency``, ``tanimoto``, ``hamming`` and,
        for selectors with ``groups_``, the same at the level of groups.
    subsets : tuple of tuple of ndarray
        Features selected on each resample, per row.
    n_features : int
        Number of features to select from.
    """

    rows: tuple[StabilityRow, ...]
    subsets: tuple[tuple[np.ndarray, ...], ...]
    n_features: int

    def __getitem__(self, row: Any) -> Any:
        return self.rows[row]

    def __len__(self) -> int:
        return len(self.rows)

    def frequency(self, row: int = -1) -> np.ndarray:
        """Return the number of resamples in which each feature is selected, of shape (n_features,)."""
        return np.bincount(np.concatenate(self.subsets[row]), minlength=self.n_features)

    def to_frame(self) -> pd.DataFrame:
        """Return the rows as a pandas data frame."""
        try:
            import pandas as pd
        except ImportError as error:
            raise ImportError("to_frame() requires pandas: pip install 'coterie[tabular]'.") from error
        return pd.DataFrame(self.rows, columns=list(StabilityRow._fields)).dropna(axis=1, how="all")


def selection_stability(
    selector: BaseEstimator,
    X: FeaturesLike,
    y: TargetsLike = None,
    *,
    n_resamples: int = 20,
    train_size: float = 0.5,
    sizes: Sequence[int] | None = None,
    n_jobs: int | None = None,
    random_state: RandomStateLike = None,
) -> SelectionStability:
    """Compute the stability of a selector over random subsets of the samples.

    The selector is cloned and fitted on ``n_resamples`` random subsets of the samples, drawn without replacement and
    stratified by class if y contains classes. The selected features are compared by three measures of stability. For
    selectors with ``groups_``, the same measures at the level of groups are added.

    Parameters
    ----------
    selector : estimator
        A scikit-learn selector (with ``get_support``).
    X : {array-like, sparse matrix, data frame} of shape (n_samples, n_features)
        Data.
    y : array-like of shape (n_samples,), default=None
        Labels or targets. None for unsupervised selectors.
    n_resamples : int, default=20
        Number of resamples.
    train_size : float, default=0.5
        Share of the samples in a resample.
    sizes : sequence of int, default=None
        Numbers of selected features for a stability curve. This requires a selector that ranks all features (an attribute
        ``ranking_`` with the ranks 1, 2, ...), which is fitted once for all sizes. None means one row for the selection of
        the selector.
    n_jobs : int, default=None
        Number of parallel fits, as in joblib. The result does not depend on it.
    random_state : int, RandomState instance or None, default=None
        Seed of the resamples. The seed of the selector is not changed.

    Returns
    -------
    table : SelectionStability
        A sequence of rows with the fields ``n_selected``, ``weighted_consistency``, ``tanimoto``, ``hamming`` and, with
        groups, ``group_weighted_consistency``, ``group_tanimoto``, ``group_hamming``. It has the methods ``frequency()`` and
        ``to_frame()``.

    See Also
    --------
    weighted_consistency, tanimoto_stability, hamming_stability : Measures of stability.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.feature_selection import SelectKBest
    >>> from coterie.metrics import selection_stability
    >>> X, y = load_iris(return_X_y=True)
    >>> table = selection_stability(SelectKBest(k=2), X, y, n_resamples=10, random_state=0)
    >>> table[0].weighted_consistency
    1.0
    >>> table.frequency()
    array([ 0,  0, 10, 10])
    """
    check("n_resamples", n_resamples, Integer(2))
    check("train_size", train_size, Number(at_most=1))
    if not hasattr(X, "shape"):
        X = np.asarray(X)
    n_samples, n_features = X.shape
    y = None if y is None else np.asarray(y)
    parts = _parts(y, n_samples, n_resamples, train_size, random_state)
    fitted = Parallel(n_jobs=n_jobs)(delayed(_selection)(selector, X, y, part, sizes) for part in parts)
    rows, subsets = [], []
    for number in range(1 if sizes is None else len(sizes)):
        chosen = tuple(selection.subsets[number] for selection in fitted)
        groups = None if sizes is not None else [selection.groups for selection in fitted]
        rows.append(_row(chosen, groups, n_features))
        subsets.append(chosen)
    return SelectionStability(tuple(rows), tuple(subsets), n_features)


class _Selection(NamedTuple):
    """Result of one fit: one subset per size, and the groups, if any."""

    subsets: list[np.ndarray]
    groups: Any


def _parts(
    y: np.ndarray | None, n_samples: int, n_resamples: int, train_size: float, random_state: RandomStateLike
) -> list[np.ndarray]:
    """Return the samples of each resample."""
    if train_size == 1.0:
        raise ValueError("train_size=1.0 makes all resamples equal. Set a share below 1.")
    stratified = y is not None and type_of_target(y) in ("binary", "multiclass")
    kind = StratifiedShuffleSplit if stratified else ShuffleSplit
    splitter = kind(n_resamples, train_size=train_size, random_state=random_state)
    places = np.zeros((n_samples, 1))
    return [np.sort(train) for train, _ in splitter.split(places, y)]


def _selection(
    selector: BaseEstimator, X: Any, y: np.ndarray | None, part: np.ndarray, sizes: Sequence[int] | None
) -> _Selection:
    """Fit a clone on a resample."""
    model = clone(selector)
    model.fit(take_samples(X, part), *(() if y is None else (y[part],)))
    if sizes is None:
        return _Selection([np.flatnonzero(model.get_support())], getattr(model, "groups_", None))
    ranking = getattr(model, "ranking_", None)
    if ranking is None or not np.array_equal(np.sort(ranking), np.arange(1, X.shape[1] + 1)):
        raise ValueError(
            f"sizes requires a selector that ranks all features, but {type(selector).__name__} has no ranking_ with the ranks "
            f"1 to {X.shape[1]}. Omit sizes, and vary the number of features of the selector."
        )
    order = np.argsort(ranking)
    wrong = [size for size in sizes if not 1 <= size <= X.shape[1]]
    if wrong:
        raise ValueError(f"sizes contains {wrong[0]}, but sizes must be between 1 and {X.shape[1]}, the number of features.")
    return _Selection([np.sort(order[:size]) for size in sizes], None)


def _row(chosen: Sequence[np.ndarray], groups: Sequence[Any] | None, n_features: int) -> StabilityRow:
    row = StabilityRow(
        float(np.mean([len(subset) for subset in chosen])),
        weighted_consistency(chosen, n_features),
        tanimoto_stability(chosen),
        hamming_stability(chosen, n_features),
    )
    if groups is None or any(grouping is None for grouping in groups):
        return row
    return row._replace(
        group_weighted_consistency=group_weighted_consistency(groups, n_features),
        group_tanimoto=group_tanimoto_stability(groups),
        group_hamming=group_hamming_stability(groups, n_features),
    )
