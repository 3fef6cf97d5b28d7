"""Least squares with an L1 penalty (the lasso), for a numeric target."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
from scipy import sparse
from sklearn.exceptions import ConvergenceWarning

from coterie._parameters import N_FEATURES, Number, Rule, Whole
from coterie._quiet import ignored
from coterie.baselines.base import NumericData, TargetSelector
from coterie.baselines.penalty_path import search_path
from coterie.order import in_order


class LassoSelector(TargetSelector):
    r"""Keep the features that a sparse linear model of a numeric target uses, with the penalty chosen for their number.

    Minimises :math:`\frac{1}{2n}\|y - Zw\|^2 + \alpha\|w\|_1` over standardised features Z along a path of falling
    :math:`\alpha`, until there are enough features; then :math:`\alpha` is searched by bisection.

    Parameters
    ----------
    n_features_to_select : int or float, default=10
        Number of features to keep, or their fraction of all features.

    tol : float, default=1e-4
        Tolerance of the solver (scikit-learn's coordinate descent).

    max_iter : int, default=10000
        Largest number of its iterations.

    Attributes
    ----------
    support_features_ : ndarray of shape (n_selected,)
        Indices of the selected features, that of the largest weight first.

    coef_ : ndarray of shape (n_features,)
        Weight of each standardised feature in the model at ``alpha_``.

    alpha_ : float
        The penalty that was chosen.

    path_ : list of (float, int)
        Each penalty that was tried, and the number of features with a weight.

    n_iter_ : int
        Iterations of the solver along the whole path.

    n_features_in_ : int
        Number of features seen in ``fit``.

    feature_names_in_ : ndarray of shape (n_features_in_,)
        Names of the features, when X has names that are all strings.

    See Also
    --------
    L1SVMSelector : For classes.

    Notes
    -----
    As for :class:`L1SVMSelector`: where the number of features jumps past the one asked for, those of largest \|weight\|
    are kept; a path that ends before there are enough is filled up with the features most correlated with the residual.

    References
    ----------
    .. [1] R. Tibshirani, "Regression shrinkage and selection via the lasso", Journal of the Royal Statistical Society B
       58(1), 1996.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from coterie.baselines import LassoSelector
    >>> X, y = load_diabetes(return_X_y=True)
    >>> LassoSelector(3).fit(X, y).support_features_
    array([2, 8, 3])
    """

    _allowed: ClassVar[dict[str, Rule]] = {"n_features_to_select": N_FEATURES, "tol": Number(), "max_iter": Whole(1)}

    def __init__(self, n_features_to_select: int | float = 10, *, tol: float = 1e-4, max_iter: int = 10_000) -> None:
        self.n_features_to_select = n_features_to_select
        self.tol = tol
        self.max_iter = max_iter

    path_: list[tuple[float, int]]

    def _compute(self, data: NumericData) -> dict[str, Any]:
        from sklearn.linear_model import Lasso

        view = data.view
        scale = view.moments.scale
        Z = view.source.block(0, view.n_features)
        inverse = np.divide(1.0, scale, out=np.zeros(len(scale)), where=scale > 0)
        if isinstance(Z, np.ndarray):
            Z = np.asfortranarray((Z.astype(np.float64) - view.moments.mean) * inverse)
        else:  # scikit-learn centres sparse features without filling them
            Z = sparse.csc_matrix(Z, dtype=np.float64, copy=True)
            Z.data *= np.repeat(inverse, np.diff(Z.indptr))
            if max(*Z.shape, Z.nnz) <= np.iinfo(np.int32).max:  # others it refuses
                Z.indices, Z.indptr = Z.indices.astype(np.int32, copy=False), Z.indptr.astype(np.int32, copy=False)
        targets = data.targets - data.targets.mean()
        spread = float(np.sqrt(np.mean(targets**2)))
        targets = targets / spread  # tol and path are the same for all units of the target
        residuals: dict[float, np.ndarray] = {}
        n_iter = 0

        def solve(strength: float, start: np.ndarray | None) -> np.ndarray:
            nonlocal n_iter
            model = Lasso(strength, tol=self.tol, max_iter=min(int(self.max_iter), np.iinfo(np.int32).max), warm_start=True)
            if start is not None:
                model.coef_ = start.copy()
            with ignored(ConvergenceWarning):  # weak penalties at the end of the path
                model.fit(Z, targets)
            n_iter += int(model.n_iter_)
            residuals[strength] = targets - model.predict(Z)
            return np.asarray(model.coef_)

        relevance = np.abs(view.products(targets[:, None])[:, 0]) * inverse / len(targets)
        point, path = search_path(solve, float(relevance.max()), data.n_selected, factor=0.7)
        weight = point.coef * (scale > 0)
        left = residuals[point.strength]
        slopes = np.abs(view.products((left - left.mean())[:, None])[:, 0]) * inverse
        enough = point.n_features >= data.n_selected
        order = in_order(
            view.source, np.arange(len(weight)), np.zeros(len(weight)) if enough else slopes, votes=np.abs(weight)
        )
        return {
            "support_features_": order[: data.n_selected],
            "coef_": weight * spread,
            "alpha_": point.strength * spread,
            "n_iter_": n_iter,
            "path_": [(strength * spread, count) for strength, count in path],
        }
