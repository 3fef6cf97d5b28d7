"""The fast correlation-based filter (FCBF)."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from coterie._parameters import N_BINS, N_FEATURES_OR_AUTO, N_JOBS, Number, Rule
from coterie.baselines.base import LabelledData, LabelSelector
from coterie.baselines.information import BinnedFeatures
from coterie.correlation.protocol import ROUNDING
from coterie.groups import FeatureGroup, FeatureGroups
from coterie.order import in_order, ranked
from coterie.selection import names_of

# Features compared with a predominant one at a time.
_BLOCK = 1024


class FCBFSelector(LabelSelector):
    r"""Keep predominant features: those that no more relevant feature makes redundant.

    Features are taken by falling symmetrical uncertainty with the labels, :math:`U(f, y)`. A feature that is still there is
    predominant, and it removes every less relevant feature g with :math:`U(f, g) \ge U(g, y)` [1]_.

    Parameters
    ----------
    n_features_to_select : int, float or "auto", default="auto"
        Largest number of features to keep, or the fraction of all features. ``"auto"`` keeps every predominant feature; there
        may be fewer of them than asked for.

    threshold : float, default=0.0
        Features need a symmetrical uncertainty with the labels above this.

    n_bins : int, default=10
        Bins of equal width over the range of each feature, at most 255.

    n_jobs : int or None, default=None
        Number of threads. The result does not depend on it.

    Attributes
    ----------
    support_features_ : ndarray of shape (n_selected,)
        Indices of the predominant features, the most relevant first.

    groups_ : FeatureGroups
        Each predominant feature with the features it removed; ``correlation`` is their symmetrical uncertainty with it.

    scores_ : ndarray of shape (n_features,)
        Symmetrical uncertainty of each feature with the labels.

    n_features_in_ : int
        Number of features seen in ``fit``.

    feature_names_in_ : ndarray of shape (n_features_in_,)
        Names of the features, when X has names that are all strings.

    See Also
    --------
    coterie.GroupDiscoveryClassifier : With ``correlation="su"``, around features that predict together.

    Notes
    -----
    The paper bins by minimum description length; here bins have equal width, as everywhere in Coterie. Of equally relevant
    features the first comes first. Where no feature is above the threshold, the most relevant one is kept.

    References
    ----------
    .. [1] L. Yu, H. Liu, "Feature selection for high-dimensional data: a fast correlation-based filter solution",
       ICML 2003.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from coterie.baselines import FCBFSelector
    >>> X, y = load_iris(return_X_y=True)
    >>> selector = FCBFSelector().fit(X, y)
    >>> selector.support_features_
    array([3, 2])
    >>> selector.groups_
    2 groups, 4 features
      1. 3 ~ 0 (+0.35), 1 (+0.28)
      2. 2 (alone)
    """

    groups_: FeatureGroups

    _allowed: ClassVar[dict[str, Rule]] = {
        "n_features_to_select": N_FEATURES_OR_AUTO,
        "threshold": Number(at_least=0, at_most=1),
        "n_bins": N_BINS,
        "n_jobs": N_JOBS,
    }

    def __init__(
        self,
        n_features_to_select: int | float | str = "auto",
        *,
        threshold: float = 0.0,
        n_bins: int = 10,
        n_jobs: int | None = None,
    ) -> None:
        self.n_features_to_select = n_features_to_select
        self.threshold = threshold
        self.n_bins = n_bins
        self.n_jobs = n_jobs

    def _compute(self, data: LabelledData) -> dict[str, Any]:
        binned = BinnedFeatures(data.view, n_bins=int(self.n_bins))
        scores = binned.uncertainty(data.codes)
        groups = self._groups(binned, scores, data.n_wanted or len(scores))
        return {"support_features_": groups.support, "groups_": groups, "scores_": scores}

    def _groups(self, binned: BinnedFeatures, scores: np.ndarray, n_wanted: int) -> FeatureGroups:
        source = binned.view.source
        order = ranked(source, scores)
        left = order[scores[order] > max(float(self.threshold), ROUNDING)]
        left = left if len(left) else order[:1]
        groups: list[FeatureGroup] = []
        while len(left) and len(groups) < n_wanted:
            best, others = int(left[0]), left[1:]
            shared = _uncertainties(binned, others, best)
            removed = shared >= scores[others] - ROUNDING
            affiliated, shared = others[removed], shared[removed]
            closest = in_order(source, affiliated, shared)
            affiliated = affiliated[closest]
            groups.append(
                FeatureGroup(
                    best,
                    affiliated,
                    shared[closest],
                    names=names_of(source.feature_names, np.append(best, affiliated)),
                    score=float(scores[best]),
                    affiliated_scores=scores[affiliated],
                    round=len(groups) + 1,
                )
            )
            left = others[~removed]
        return FeatureGroups(groups)


def _uncertainties(binned: BinnedFeatures, features: np.ndarray, other: int) -> np.ndarray:
    """Symmetrical uncertainty of some features with one."""
    parts = [
        binned.between(features[first : first + _BLOCK], np.array([other]))[:, 0] for first in range(0, len(features), _BLOCK)
    ]
    return np.concatenate([np.empty(0), *parts])
