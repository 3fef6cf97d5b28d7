"""Recursive feature elimination with a linear support vector machine (SVM-RFE)."""

from __future__ import annotations

from numbers import Integral
from typing import Any, ClassVar

import numpy as np

from coterie._parameters import N_FEATURES, PENALTY, Anything, Number, OneOf, Rule, Whole
from coterie._sklearn import fitted_svm, sample_major
from coterie.baselines.base import LabelledData, LabelSelector
from coterie.order import in_order, ranks


class SVMRFESelector(LabelSelector):
    """Train a linear SVM, drop the features of smallest weight, and start again with the rest.

    Parameters
    ----------
    n_features_to_select : int or float, default=10
        Number of features to keep, or their fraction of all features.

    step : int, float or "half", default=1
        Features dropped at a time: a number, a fraction of all features, or half of those that are left (at
        least one; never below the number to keep). With ``"half"`` the number of trainings is the logarithm of
        that of the features.

    C : float, default=1.0
        Weight of the loss.

    tol : float, default=1e-4
        Tolerance of the solver.

    max_iter : int, default=10000
        Largest number of iterations of the solver.

    random_state : int, RandomState or None, default=0
        Order in which the dual solver takes the samples.

    Attributes
    ----------
    support_features_ : ndarray of shape (n_selected,)
        Indices of the selected features, that of the largest weight in the last model first.

    ranking_ : ndarray of shape (n_features,)
        Rank of each feature from 1: the selected ones, then the others, the last to be dropped first.

    coef_ : ndarray of shape (n_features,)
        Weight of each feature in the last model (the norm over classes where there are several); 0 for those dropped.

    n_iter_ : int
        Iterations of the solver in all trainings together.

    n_features_in_ : int
        Number of features seen in ``fit``.

    feature_names_in_ : ndarray of shape (n_features_in_,)
        Names of the features, when X has names that are all strings.

    See Also
    --------
    sklearn.feature_selection.RFE : With any estimator; the same selection for ``LinearSVC``.

    References
    ----------
    .. [1] I. Guyon, J. Weston, S. Barnhill, V. Vapnik, "Gene selection for cancer classification using support vector
       machines", Machine Learning 46, 2002.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from coterie.baselines import SVMRFESelector
    >>> X, y = load_iris(return_X_y=True)
    >>> SVMRFESelector(2).fit(X, y).ranking_
    array([4, 2, 3, 1])
    """

    _allowed: ClassVar[dict[str, Rule]] = {
        "n_features_to_select": N_FEATURES,
        "step": OneOf("half") | Whole(1) | Number(at_most=1),
        "C": PENALTY,
        "tol": Number(),
        "max_iter": Whole(1),
        "random_state": Anything(),
    }

    def __init__(
        self,
        n_features_to_select: int | float = 10,
        *,
        step: int | float | str = 1,
        C: float = 1.0,
        tol: float = 1e-4,
        max_iter: int = 10_000,
        random_state: Any = 0,
    ) -> None:
        self.n_features_to_select = n_features_to_select
        self.step = step
        self.C = C
        self.tol = tol
        self.max_iter = max_iter
        self.random_state = random_state

    def _compute(self, data: LabelledData) -> dict[str, Any]:
        source, n_features = data.view.source, data.view.n_features
        left = np.arange(n_features)
        dropped: list[np.ndarray] = []
        n_iter = 0
        while True:
            model = fitted_svm(
                sample_major(source.columns(left)).astype(np.float64, copy=False),
                data.codes,
                C=self.C,
                tol=self.tol,
                dual="auto",
                max_iter=self.max_iter,
                random_state=self.random_state,
            )
            coef = model.coef_
            n_iter += int(np.sum(model.n_iter_))
            # Of equal weights the first feature is dropped first, as scikit-learn does.
            rising = np.argsort((coef**2).sum(axis=0), kind="stable")
            n_drop = min(self._n_dropped(n_features, len(left)), len(left) - data.n_selected)
            if n_drop == 0:
                break
            dropped.append(left[rising[:n_drop]][::-1])
            left = np.sort(left[rising[n_drop:]])
        weight = np.zeros(n_features)
        weight[left] = coef[0] if len(coef) == 1 else np.sqrt((coef**2).sum(axis=0))
        support = left[in_order(source, left, np.abs(weight[left]))]
        order = np.concatenate([support, *dropped[::-1]])
        ranking = ranks(order, n_features)
        return {"support_features_": support, "ranking_": ranking, "coef_": weight, "n_iter_": n_iter}

    def _n_dropped(self, n_features: int, n_left: int) -> int:
        if isinstance(self.step, str):
            return max(1, n_left // 2)
        return int(self.step) if isinstance(self.step, Integral) else max(1, int(self.step * n_features))
