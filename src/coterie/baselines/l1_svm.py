"""The linear support vector machine with an L1 penalty (L1-SVM)."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
from sklearn.svm import LinearSVC, l1_min_c

from coterie._parameters import N_FEATURES, Anything, Number, Rule, Whole
from coterie._sklearn import fitted_svm, sample_major
from coterie.baselines.base import LabelledData, LabelSelector
from coterie.baselines.penalty_path import search_path
from coterie.order import in_order


class L1SVMSelector(LabelSelector):
    r"""Keep the features that a sparse linear SVM uses, with C chosen to give the number asked for.

    Minimises :math:`\|w\|_1 + C\sum_i \max(0, 1 - y_i w'x_i)^2` (one class against the rest where there are more
    than two) along a path of growing C, until there are enough features; then C is searched by bisection.

    Parameters
    ----------
    n_features_to_select : int or float, default=10
        Number of features to keep, or their fraction of all features.

    tol : float, default=1e-4
        Tolerance of the solver (liblinear).

    max_iter : int, default=10000
        Largest number of iterations of the solver.

    random_state : int, RandomState or None, default=0
        Order in which the solver takes the features.

    Attributes
    ----------
    support_features_ : ndarray of shape (n_selected,)
        Indices of the selected features, that of the largest weight first.

    coef_ : ndarray of shape (n_features,)
        Weight of each feature in the model at ``C_`` (the norm over classes where there are several).

    C_ : float
        The C that was chosen.

    path_ : list of (float, int)
        Each C that was tried, and the number of features with a weight.

    n_iter_ : int
        Iterations of the solver along the whole path.

    n_features_in_ : int
        Number of features seen in ``fit``.

    feature_names_in_ : ndarray of shape (n_features_in_,)
        Names of the features, when X has names that are all strings.

    See Also
    --------
    sklearn.feature_selection.SelectFromModel : With ``LinearSVC(penalty="l1")``, for a given C.

    Notes
    -----
    The number of features may jump past the one asked for. Then ``C_`` is the C with the fewest features that are
    enough, and those of largest \|weight\| are kept. A path that ends before there are enough features (it uses about as many
    features as there are samples at most) is filled up with the features whose loss has the steepest slope.

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
        "max_iter": Whole(1),
        "random_state": Anything(),
    }

    def __init__(
        self, n_features_to_select: int | float = 10, *, tol: float = 1e-4, max_iter: int = 10_000, random_state: Any = 0
    ) -> None:
        self.n_features_to_select = n_features_to_select
        self.tol = tol
        self.max_iter = max_iter
        self.random_state = random_state

    path_: list[tuple[float, int]]

    def _compute(self, data: LabelledData) -> dict[str, Any]:
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


def _slopes(model: LinearSVC, X: Any, codes: np.ndarray) -> np.ndarray:
    """Norm over the classes of the gradient of the squared hinge loss for each feature."""
    decision = model.decision_function(X).reshape(len(codes), -1)
    positive = np.arange(decision.shape[1]) if decision.shape[1] > 1 else np.array([1])
    sign = np.where(codes[:, None] == positive, 1.0, -1.0)
    return np.linalg.norm(X.T @ (sign * np.maximum(1.0 - sign * decision, 0.0)), axis=1)
