"""Minimum redundancy, maximum relevance (mRMR)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

import numpy as np

from coterie._parameters import N_BINS, N_FEATURES, N_JOBS, OneOf, Rule
from coterie.baselines.base import LabelledData, LabelSelector
from coterie.baselines.information import BinnedFeatures
from coterie.data.source import FeatureSource
from coterie.order import best_of, ranks

# Mean information below this counts as none: rounding of entropies is far below it.
_NO_REDUNDANCY = 1e-10


class MRMRSelector(LabelSelector):
    r"""Add, one at a time, the feature that tells most about the labels and least about the features already there.

    With S the features so far, the next one maximises

    .. math:: I(f; y) - \frac{1}{|S|}\sum_{s\in S} I(f; s) \quad\text{(MID)}\qquad\text{or}\qquad
        I(f; y) \Big/ \frac{1}{|S|}\sum_{s\in S} I(f; s) \quad\text{(MIQ)}

    [1]_, [2]_. One pass over the features for each feature selected: sums are kept, never a matrix of all pairs.

    Parameters
    ----------
    n_features_to_select : int or float, default=10
        Number of features to keep, or their fraction of all features.

    scheme : {"mid", "miq"}, default="mid"
        Difference or quotient of relevance and redundancy.

    n_bins : int, default=10
        Bins of equal width over the range of each feature, at most 255. Whole numbers with a range below ``n_bins``
        keep a bin each.

    n_jobs : int or None, default=None
        Number of threads. The result does not depend on it.

    Attributes
    ----------
    support_features_ : ndarray of shape (n_selected,)
        Indices of the selected features, in order of selection.

    scores_ : ndarray of shape (n_selected,)
        Value of the scheme for each of them when it was selected (for the first one its relevance).

    relevance_ : ndarray of shape (n_features,)
        Mutual information of each feature with the labels, in nats.

    ranking_ : ndarray of shape (n_features,)
        1 for the first feature selected, and so on; all that were not selected share the next rank.

    n_features_in_ : int
        Number of features seen in ``fit``.

    feature_names_in_ : ndarray of shape (n_features_in_,)
        Names of the features, when X has names that are all strings.

    See Also
    --------
    FCBFSelector : Removes redundant features by symmetrical uncertainty.

    Notes
    -----
    Ties go by the content of the columns. A mean redundancy below 1e-10 counts as 1e-10 in the quotient, so that of
    features without redundancy the most relevant one comes first. Some programs add a constant to the denominator instead.

    References
    ----------
    .. [1] C. Ding, H. Peng, "Minimum redundancy feature selection from microarray gene expression data", Journal of
       Bioinformatics and Computational Biology 3(2), 2005.
    .. [2] H. Peng, F. Long, C. Ding, "Feature selection based on mutual information: criteria of max-dependency,
       max-relevance, and min-redundancy", IEEE TPAMI 27(8), 2005.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from coterie.baselines import MRMRSelector
    >>> X, y = load_iris(return_X_y=True)
    >>> MRMRSelector(n_features_to_select=2).fit(X, y).support_features_
    array([3, 2])
    """

    _allowed: ClassVar[dict[str, Rule]] = {
        "n_features_to_select": N_FEATURES,
        "scheme": OneOf("mid", "miq"),
        "n_bins": N_BINS,
        "n_jobs": N_JOBS,
    }

    def __init__(
        self,
        n_features_to_select: int | float = 10,
        *,
        scheme: str = "mid",
        n_bins: int = 10,
        n_jobs: int | None = None,
    ) -> None:
        self.n_features_to_select = n_features_to_select
        self.scheme = scheme
        self.n_bins = n_bins
        self.n_jobs = n_jobs

    def _compute(self, data: LabelledData) -> dict[str, Any]:
        binned = BinnedFeatures(data.view, n_bins=int(self.n_bins))
        relevance = binned.information(data.codes)
        order, scores = greedy_order(data.view.source, relevance, binned.information_with, data.n_selected, self.scheme)
        return {
            "support_features_": order,
            "scores_": scores,
            "relevance_": relevance,
            "ranking_": ranks(order, len(relevance)),
        }


def greedy_order(
    source: FeatureSource,
    relevance: np.ndarray,
    redundancy_with: Callable[[int], np.ndarray],
    n_wanted: int,
    scheme: str,
) -> tuple[np.ndarray, np.ndarray]:
    """Features in order of selection and the value of each; ``redundancy_with(s)`` is that of all features with s."""
    order, scores = np.empty(n_wanted, dtype=np.int64), np.empty(n_wanted)
    left = np.ones(len(relevance), dtype=bool)
    redundancy = np.zeros(len(relevance))
    for place in range(n_wanted):
        value = relevance
        if place:
            redundancy += redundancy_with(int(order[place - 1]))
            mean = redundancy / place
            value = relevance - mean if scheme == "mid" else relevance / np.maximum(mean, _NO_REDUNDANCY)
        features = np.flatnonzero(left)
        best = best_of(source, features, value[features])
        order[place], scores[place], left[best] = best, value[best], False
    return order, scores
