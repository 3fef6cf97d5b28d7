"""Sparse linear models and elimination by weight: L1-SVM, lasso, and SVM-RFE."""

from __future__ import annotations

from numbers import Integral
from typing import Any, ClassVar

import numpy as np
from scipy import sparse
from sklearn.exceptions import ConvergenceWarning
from sklearn.svm import LinearSVC, l1_min_c

from coterie._parameters import N_FEATURES, PENALTY, AnyValue, Integer, Number, OneOf, Rule
from coterie._sklearn import fitted_svm, sample_major
from coterie._warnings import ignored
from coterie.baselines.base import LabelSelector, TargetSelector, TrainingData, search_path
from coterie.data.source import Columns
from coterie.estimators.documentation import documented
from coterie.inputs.types import RandomStateLike
from coterie.order import in_order, ranks


@documented
class L1SVMSelector(LabelSelector):
    r"""Select the features of a sparse linear SVM, with C set to obtain the requested number of features.

    Minimises :math:`\|w\|_1 + C\sum_i \max(0, 1 - y_i w'x_i)^2` (one class against the rest if there are more than two)
    along a path of increasing C until there are enough features. C is then determined by bisection.

    Parameters
    ----------
    %(n_kept)s

    tol : float, default=1e-4
        Tolerance of the solver (liblinear).

    max_iter : int, default=10000
        Largest number of iterations of the solver.

    random_state : int, RandomState or None, default=0
        Seed for the order in which the solver visits the features.

    Attributes
    ----------
    support_features_ : ndarray of shape (n_selected,)
        Indices of the selected features, in decreasing order of absolute weight.

    coef_ : ndarray of shape (n_features,)
        Weight of each feature in the model at ``C_`` (the norm over classes if there are more than two).

    C_ : float
        Selected C.

    path_ : list of (float, int)
        Each C that was tried, and its number of features with nonzero weights.

    n_iter_ : int
        Number of iterations of the solver along the whole path.

    %(seen)s

    See Also
    --------
    sklearn.feature_selection.SelectFromModel : Selection by ``LinearSVC(penalty="l1")`` for a given C.

    Notes
    -----
    The requested number of features may be skipped on the path. ``C_`` is then the C with the smallest sufficient number, and
    the features with the largest \|weight\| are selected. The path may end before there are enough features, because it uses
    at most about as many features as there are samples. The features with the steepest slope of the loss are then added.

    References
    ----------
    .. [1] G.-X. Yuan, C.-H. Ho, C.-J. Lin, "An improved GLMNET for L1-regularized logistic regression and support
       vector machines", KDD 2011.

    Examples
    --------
    >>> from coterie.baselines import L1SVMSelector
    >>> from coterie.datasets import make_support_affiliated
    >>> data = make_support_affiliated(200, 40, n_support=4, n_true=11, random_state=3)
    >>> L1SVMSelector(5).fit(data.X, data.y).transform(data.X).shape
    (200, 5)
    """

    _allowed: ClassVar[dict[str, Rule]] = {
        "n_features_to_select": N_FEATURES,
        "tol": Number(),
        "max_iter": Integer(1),
        "random_state": AnyValue(),
    }

    def __init__(
        self,
        n_features_to_select: int | float = 10,
        *,
        tol: float = 1e-4,
        max_iter: int = 10_000,
        random_state: RandomStateLike = 0,
    ) -> None:
        self.n_features_to_select = n_features_to_select
        self.tol = tol
        self.max_iter = max_iter
        self.random_state = random_state

    path_: list[tuple[float, int]]

    def _compute(self, data: TrainingData) -> dict[str, Any]:
        source = data.view.source
        X = sample_major(source.block(0, source.shape[1])).astype(np.float64, copy=False)
        models: dict[float, LinearSVC] = {}

        def solve(strength: float, _: np.ndarray | None) -> np.ndarray:
            models[strength] = fitted_svm(
                X,
                data.codes,
                penalty="l1",
                dual=False,
                C=1.0 / strength,
                tol=self.tol,
                max_iter=self.max_iter,
                random_state=self.random_state,
            )
            return np.asarray(models[strength].coef_)

        point, path = search_path(solve, 1.0 / float(l1_min_c(X, data.codes, loss="squared_hinge")), data.n_selected)
        weight = point.coef[0] if len(point.coef) == 1 else np.sqrt((point.coef**2).sum(axis=0))
        enough = point.n_features >= data.n_selected
        slopes = np.zeros(len(weight)) if enough else _slopes(models[point.strength], X, data.codes)
        order = in_order(data.view.source, np.arange(len(weight)), slopes, votes=np.abs(weight))
        return {
            "support_features_": order[: data.n_selected],
            "coef_": weight,
            "C_": 1.0 / point.strength,
            "n_iter_": int(sum(np.sum(model.n_iter_) for model in models.values())),
            "path_": [(1.0 / strength, count) for strength, count in path],
        }


def _slopes(model: LinearSVC, X: Columns, codes: np.ndarray) -> np.ndarray:
    """Return the norm over the classes of the gradient of the squared hinge loss, per feature."""
    decision = model.decision_function(X).reshape(len(codes), -1)
    positive = np.arange(decision.shape[1]) if decision.shape[1] > 1 else np.array([1])
    sign = np.where(codes[:, None] == positive, 1.0, -1.0)
    return np.linalg.norm(X.T @ (sign * np.maximum(1.0 - sign * decision, 0.0)), axis=1)


@documented
class LassoSelector(TargetSelector):
    r"""Select the features of a lasso model of a numeric target, with a penalty for the requested number of features.

    Minimises :math:`\frac{1}{2n}\|y - Zw\|^2 + \alpha\|w\|_1` over standardised features Z along a path of decreasing
    :math:`\alpha` until there are enough features. :math:`\alpha` is then determined by bisection.

    Parameters
    ----------
    %(n_kept)s

    tol : float, default=1e-4
        Tolerance of the solver (scikit-learn's coordinate descent).

    max_iter : int, default=10000
        Largest number of iterations of the solver.

    Attributes
    ----------
    support_features_ : ndarray of shape (n_selected,)
        Indices of the selected features, in decreasing order of absolute weight.

    coef_ : ndarray of shape (n_features,)
        Weight of each standardised feature in the model at ``alpha_``.

    alpha_ : float
        Selected penalty.

    path_ : list of (float, int)
        Each penalty that was tried, and its number of features with nonzero weights.

    n_iter_ : int
        Number of iterations of the solver along the whole path.

    %(seen)s

    See Also
    --------
    L1SVMSelector : Selector for classes.

    Notes
    -----
    As for :class:`L1SVMSelector`: if the requested number of features is skipped on the path, the features with the largest
    \|weight\| are selected. If the path ends before there are enough features, the features with the highest correlation with
    the residual are added.

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

    _allowed: ClassVar[dict[str, Rule]] = {"n_features_to_select": N_FEATURES, "tol": Number(), "max_iter": Integer(1)}

    def __init__(self, n_features_to_select: int | float = 10, *, tol: float = 1e-4, max_iter: int = 10_000) -> None:
        self.n_features_to_select = n_features_to_select
        self.tol = tol
        self.max_iter = max_iter

    path_: list[tuple[float, int]]

    def _compute(self, data: TrainingData) -> dict[str, Any]:
        from sklearn.linear_model import Lasso

        view = data.view
        scale = view.moments.scale
        Z = view.source.block(0, view.n_features)
        inverse = np.divide(1.0, scale, out=np.zeros(len(scale)), where=scale > 0)
        if isinstance(Z, np.ndarray):
            Z = np.asfortranarray((Z.astype(np.float64) - view.moments.mean) * inverse)
        else:  # scikit-learn centres sparse features implicitly
            Z = sparse.csc_matrix(Z, dtype=np.float64, copy=True)
            Z.data *= np.repeat(inverse, np.diff(Z.indptr))
            if max(*Z.shape, Z.nnz) <= np.iinfo(np.int32).max:  # scikit-learn refuses 64-bit indices
                Z.indices, Z.indptr = Z.indices.astype(np.int32, copy=False), Z.indptr.astype(np.int32, copy=False)
        targets = data.targets - data.targets.mean()
        spread = float(np.sqrt(np.mean(targets**2)))
        targets = targets / spread  # tol and path do not depend on the unit of the target
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


@documented
class SVMRFESelector(LabelSelector):
    """Recursive feature elimination: fit a linear SVM, drop the features with the smallest weights, and repeat.

    Parameters
    ----------
    %(n_kept)s

    step : int, float or "half", default=1
        Number of features dropped per fit: a number, a fraction of all features, or half of the remaining features (at least
        one, and never below the number to select). With ``"half"`` the number of fits is logarithmic in the number of
        features.

    C : float, default=1.0
        Weight of the loss.

    tol : float, default=1e-4
        Tolerance of the solver.

    max_iter : int, default=10000
        Largest number of iterations of the solver.

    random_state : int, RandomState or None, default=0
        Seed for the order in which the dual solver visits the samples.

    Attributes
    ----------
    support_features_ : ndarray of shape (n_selected,)
        Indices of the selected features, in decreasing order of absolute weight in the last model.

    ranking_ : ndarray of shape (n_features,)
        Rank of each feature, starting at 1: the selected features, then the others in the reverse order of elimination.

    coef_ : ndarray of shape (n_features,)
        Weight of each feature in the last model (the norm over classes if there are more than two); 0 for dropped features.

    n_iter_ : int
        Total number of iterations of the solver in all fits.

    %(seen)s

    See Also
    --------
    sklearn.feature_selection.RFE : Elimination with any estimator; the same selection for ``LinearSVC``.

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
        "step": OneOf("half") | Integer(1) | Number(at_most=1),
        "C": PENALTY,
        "tol": Number(),
        "max_iter": Integer(1),
        "random_state": AnyValue(),
    }

    def __init__(
        self,
        n_features_to_select: int | float = 10,
        *,
        step: int | float | str = 1,
        C: float = 1.0,
        tol: float = 1e-4,
        max_iter: int = 10_000,
        random_state: RandomStateLike = 0,
    ) -> None:
        self.n_features_to_select = n_features_to_select
        self.step = step
        self.C = C
        self.tol = tol
        self.max_iter = max_iter
        self.random_state = random_state

    def _compute(self, data: TrainingData) -> dict[str, Any]:
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
            # Of features with equal weights the first is dropped first, as in scikit-learn.
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
