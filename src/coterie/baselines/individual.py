"""Best individual features (BIF): each feature by its value alone."""

from __future__ import annotations

from typing import Any

import numpy as np

from coterie.order import ranked, ranks
from coterie.probing.base import CriterionSelector, Problem
from coterie.probing.evaluation import evaluate_subsets
from coterie.progress import RoundProgress

# Features evaluated between two signs of life.
_WAVE = 256


class BestIndividualSelector(CriterionSelector):
    """Rank features by the criterion's value of each one alone, and keep the best.

    The usual ranking of single features (best individual features, BIF). It is fast and stable, and blind to features that are
    of use only together.

    Parameters
    ----------
    criterion : {"knn", "linear_svm", "svm", "ridge", "clustering", "reconstruction"}, criterion, estimator or callable, \
            default="knn"
        What evaluates a subset; see :class:`DependencyAwareSelector`.

    n_features_to_select : int or float, default=10
        Number of features to keep, or their fraction of all features.

    cv : int or cross-validation generator, default=3
        Folds of the criterion.

    n_jobs : int or None, default=None
        Number of features evaluated at the same time, through joblib. The result does not depend on it.

    verbose : int, default=0
        Show progress.

    Attributes
    ----------
    scores_ : ndarray of shape (n_features,)
        Value of each feature alone.

    ranking_ : ndarray of shape (n_features,)
        Rank of each feature, 1 for the best; ties by the content of the columns.

    support_features_ : ndarray of shape (n_selected,)
        Indices of the selected features, the best first.

    n_features_in_ : int
        Number of features seen in ``fit``.

    feature_names_in_ : ndarray of shape (n_features_in_,)
        Names of the features, when X has names that are all strings.

    See Also
    --------
    DependencyAwareSelector : Ranks features by what they add to others.
    FloatingSelector : Sequential floating search.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from coterie.baselines import BestIndividualSelector
    >>> X, y = load_iris(return_X_y=True)
    >>> BestIndividualSelector(n_features_to_select=2).fit(X, y).get_support()
    array([False, False,  True,  True])
    """

    def __init__(
        self,
        criterion: Any = "knn",
        *,
        n_features_to_select: int | float = 10,
        cv: Any = 3,
        n_jobs: int | None = None,
        verbose: int = 0,
    ) -> None:
        self.criterion = criterion
        self.n_features_to_select = n_features_to_select
        self.cv = cv
        self.n_jobs = n_jobs
        self.verbose = verbose

    scores_: np.ndarray
    ranking_: np.ndarray

    def _compute(self, data: Problem) -> dict[str, Any]:
        n_features = data.source.shape[1]
        scores = np.empty(n_features)
        with (
            data.workers.parallel() as pool,
            RoundProgress(n_features, int(self.verbose), type(self).__name__, unit="features") as bar,
        ):
            for start in range(0, n_features, _WAVE):
                wave = np.arange(start, min(start + _WAVE, n_features))
                alone = [wave[i : i + 1] for i in range(len(wave))]
                scores[wave] = evaluate_subsets(data.evaluate, alone, data.workers, pool)
                bar.update(int(wave[-1]) + 1, f"best {scores[: wave[-1] + 1].max():.4g}")
        order = ranked(data.source, scores)
        return {"scores_": scores, "ranking_": ranks(order, n_features), "support_features_": order[: data.n_wanted]}
