"""Minimum redundancy, maximum relevance for a numeric target."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from coterie._parameters import N_FEATURES, N_JOBS, OneOf, Rule
from coterie.baselines.base import NumericData, TargetSelector
from coterie.baselines.mrmr import greedy_order
from coterie.data.view import FeatureView
from coterie.order import ranks


class MRMRRegressionSelector(TargetSelector):
    r"""Add, one at a time, the feature most correlated with a numeric target and least with the features already there.

    The form of mRMR for numbers [1]_, with absolute correlations in the place of mutual information: with S the features so
    far, the next one maximises

    .. math:: |\rho(f, y)| - \frac{1}{|S|}\sum_{s\in S} |\rho(f, s)| \qquad\text{or}\qquad
        |\rho(f, y)| \Big/ \frac{1}{|S|}\sum_{s\in S} |\rho(f, s)|.

    One pass over the features for each feature selected: sums are kept, never a matrix of all pairs.

    Parameters
    ----------
    n_features_to_select : int or float, default=10
        Number of features to keep, or their fraction of all features.

    scheme : {"mid", "miq"}, default="mid"
        Difference or quotient of relevance and redundancy.

    n_jobs : int or None, default=None
        Number of threads. The result does not depend on it.

    Attributes
    ----------
    support_features_ : ndarray of shape (n_selected,)
        Indices of the selected features, in order of selection.

    scores_ : ndarray of shape (n_selected,)
        Value of the scheme for each of them when it was selected (for the first one its relevance).

    relevance_ : ndarray of shape (n_features,)
        Absolute correlation of each feature with the target.

    ranking_ : ndarray of shape (n_features,)
        1 for the first feature selected, and so on; all that were not selected share the next rank.

    n_features_in_ : int
        Number of features seen in ``fit``.

    feature_names_in_ : ndarray of shape (n_features_in_,)
        Names of the features, when X has names that are all strings.

    See Also
    --------
    MRMRSelector : For classes, with mutual information.

    References
    ----------
    .. [1] C. Ding, H. Peng, "Minimum redundancy feature selection from microarray gene expression data", Journal of
       Bioinformatics and Computational Biology 3(2), 2005.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from coterie.baselines import MRMRRegressionSelector
    >>> X, y = load_diabetes(return_X_y=True)
    >>> MRMRRegressionSelector(n_features_to_select=3).fit(X, y).support_features_
    array([2, 8, 3])
    """

    _allowed: ClassVar[dict[str, Rule]] = {
        "n_features_to_select": N_FEATURES,
        "scheme": OneOf("mid", "miq"),
        "n_jobs": N_JOBS,
    }

    def __init__(self, n_features_to_select: int | float = 10, *, scheme: str = "mid", n_jobs: int | None = None) -> None:
        self.n_features_to_select = n_features_to_select
        self.scheme = scheme
        self.n_jobs = n_jobs

    def _compute(self, data: NumericData) -> dict[str, Any]:
        view = data.view
        relevance = _correlations(view, data.targets - data.targets.mean())

        def redundancy_with(feature: int) -> np.ndarray:
            column = view.columns(np.array([feature]))
            values = np.asarray(column if isinstance(column, np.ndarray) else column.toarray(), dtype=np.float64)[:, 0]
            return _correlations(view, values - view.moments.mean[feature])

        order, scores = greedy_order(view.source, relevance, redundancy_with, data.n_selected, self.scheme)
        return {
            "support_features_": order,
            "scores_": scores,
            "relevance_": relevance,
            "ranking_": ranks(order, len(relevance)),
        }


def _correlations(view: FeatureView, centred: np.ndarray) -> np.ndarray:
    """Absolute correlations of all features with a centred vector; 0 for constant ones."""
    norm = float(np.linalg.norm(centred))
    if norm == 0.0:
        return np.zeros(view.n_features)
    products = np.abs(view.products((centred / norm)[:, None])[:, 0])
    scale = view.moments.norm
    return np.minimum(np.divide(products, scale, out=np.zeros(len(products)), where=scale > 0), 1.0)
