"""The selector: scores refined by global redundancy minimisation."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_array, check_consistent_length

from coterie._inputs import feature_positions, n_features_wanted, read_source
from coterie._numba import one_blas_thread, thread_count
from coterie._parameters import N_FEATURES, N_JOBS, Anything, NotText, Number, OneOf, Rule, Whole
from coterie.data.source import FeatureSource
from coterie.data.view import FeatureView
from coterie.groups import FeatureGroup
from coterie.methods import SCORES
from coterie.order import TIE, in_order, ranks
from coterie.redundancy.alm import solve_alm
from coterie.redundancy.measures import (
    LARGEST_MATRIX,
    MatrixRedundancy,
    Redundancy,
    SquaredCosine,
    as_numbers,
    checked_matrix,
    mutual_information,
)
from coterie.redundancy.objective import GroupPenalty, Objective
from coterie.redundancy.solver import RefinedWeights, solve
from coterie.selection import Selector, feature_label

# Candidates for each feature asked for, with n_candidates="auto".
AUTO_FACTOR = 5
# Weights closer than this part of the largest are tied.
_WEIGHT_TIE = 1e-9
# Seed of the vector that breaks ties: another one than elsewhere, so that selections stay what they have been.
_TIE_SEED = 20150427


@dataclass(frozen=True)
class _Candidates:
    """What a fit works on.

    ``X`` and ``y`` are as the user gave them (a score of the user's wants them so); ``matrix`` is that of all features, where
    the user brings one.
    """

    attributes: dict[str, Any]
    view: FeatureView
    n_selected: int
    matrix: np.ndarray | None
    X: Any
    y: Any


class GlobalRedundancySelector(Selector):
    r"""Select features with high scores that do not repeat each other.

    Global redundancy minimisation (GRM, [1]_) takes the scores s of any filter and finds refined scores z with

    .. math:: \min_{z \ge 0,\ \sum z = 1} \frac{z'Az}{z's},

    where A holds the squared correlations of the features. A feature gets a high z when its score is high
    and it is little correlated with the other features that have one. The problem is convex and is solved
    exactly, with a certified gap, for any number of candidates; no matrix of all pairs is formed.

    Parameters
    ----------
    score_func : str, callable or array-like of shape (n_features,), default="fisher"
        The scores to refine, at least 0, higher is better. A name: ``"fisher"``, ``"information_gain"``, ``"relieff"``
        (which need y), ``"laplacian"``, ``"lgd"``, ``"mcfs"``, ``"variance"`` (which do not); negative scores of
        ``"relieff"`` and ``"laplacian"``, worse than noise, count as 0. A callable ``(X, y) -> scores`` or, as in
        scikit-learn, ``(X, y) -> (scores, p-values)``. Or the scores themselves.

    n_features_to_select : int or float, default=20
        Number of features, or their fraction of all features.

    n_candidates : "auto", int or None, default="auto"
        How many features, those with the best scores above 0, enter the problem; the others follow in the ranking by
        their own scores. ``"auto"`` is 5 for each feature to select; None lets all features in, those with a score of 0 too.
        The certificate holds for the problem of the candidates. See Notes.

    redundancy : {"cosine2", "mutual_info", "precomputed"}, callable or array-like, default="cosine2"
        The matrix A. ``"cosine2"``: squared Pearson correlation. ``"mutual_info"``: mutual information on ten bins over
        the geometric mean of the entropies. A callable is called with the columns of the candidates and returns their
        matrix. An array is the matrix of all features; with ``"precomputed"`` that is what is passed as X in ``fit``, and
        ``score_func`` must be an array. Matrices must be symmetric and positive semidefinite. Everything but
        ``"cosine2"`` needs a matrix of all pairs of candidates, and allows 10,000 of them.

    groups : FeatureGroups or sequence of groups, default=None
        Features that belong together, each group a list of indices or names: the refined scores of a group are
        drawn to each other. Groups may overlap; members that are no candidates do not count.

    group_strength : float, default=1.0
        Factor γ of the groups: :math:`\gamma \sum_g \sum_{i<j \in g} (z_i - z_j)^2` is added to z'Az.

    method : {"working_set", "alm"}, default="working_set"
        How the problem is solved. ``"alm"`` is the paper's augmented Lagrangian method, for comparison; it decomposes the
        matrix of all candidates.

    tol : float, default=1e-5
        Relative gap at which the solution is good enough.

    max_iter : int, default=100
        Most rounds of the working set (or of the outer loop of ``"alm"``).

    n_jobs : int or None, default=None
        Number of threads. None means all cores the process may use, but one inside joblib's workers.

    Attributes
    ----------
    scores_ : ndarray of shape (n_features,)
        The scores that were refined; 0 for constant features.

    refined_scores_ : ndarray of shape (n_features,)
        The weights z; 0 for most features, and for all that are no candidates.

    ranking_ : ndarray of shape (n_features,)
        Place of each feature, 1 for the best: by refined score, those without one by their score, constant features last.

    candidates_ : ndarray of shape (n_candidates,)
        The features that entered the problem, best score first.

    objective_ : float
        Value z'Az / z's (with the groups' part, if any).

    duality_gap_ : float
        Certified: the objective is at most this part of it above the optimum.

    n_iter_ : int
        Rounds taken.

    working_set_size_ : int
        Size of the last working set; the matrix of its pairs is the largest one formed.

    n_features_in_ : int
        Number of features seen in ``fit``.

    feature_names_in_ : ndarray of shape (n_features_in_,)
        Names of the features, when X has names that are all strings.

    See Also
    --------
    coterie.filters : The scores.
    coterie.metrics.squared_redundancy : The mean of A over the selected pairs.
    GroupDiscoveryClassifier : Hands the correlated features back as groups.

    Notes
    -----
    ``n_candidates`` matters: with all features the optimum spreads over many weak features that are correlated with
    nothing, with few it can only choose among the best. Measured in ``docs/redundancy.md``.

    The result does not depend on the order of the columns: of tied features (scores closer than 1e-10 of the best) the
    one that comes first is decided by the content of the columns, then by name. (Ties with ``"precomputed"`` go by position.)

    Memory: X is read in blocks, in its own type, dense or sparse; on top of it come a few numbers for each feature and
    the matrix of the working set.

    References
    ----------
    .. [1] D. Wang, F. Nie, H. Huang, "Feature selection via global redundancy minimization", IEEE TKDE
       27(10), 2015.

    Examples
    --------
    >>> from coterie import GlobalRedundancySelector
    >>> from coterie.datasets import make_block_gaussian
    >>> from coterie.metrics import squared_redundancy
    >>> data = make_block_gaussian(random_state=0)
    >>> selector = GlobalRedundancySelector("fisher", n_features_to_select=10).fit(data.X, data.y)
    >>> bool(selector.duality_gap_ <= 1e-5)
    True
    >>> best_scores = selector.scores_.argsort()[-10:]
    >>> bool(squared_redundancy(data.X, best_scores) > 2 * squared_redundancy(selector.transform(data.X)))
    True
    """

    _allowed: ClassVar[dict[str, Rule]] = {
        "score_func": OneOf(*SCORES) | NotText("a function, or the scores themselves"),
        "n_features_to_select": N_FEATURES,
        "n_candidates": Whole(1) | OneOf("auto", None),
        "redundancy": OneOf("cosine2", "mutual_info", "precomputed") | NotText("a function, or a matrix"),
        "groups": Anything(),
        "group_strength": Number(),
        "method": OneOf("working_set", "alm"),
        "tol": Number(),
        "max_iter": Whole(1),
        "n_jobs": N_JOBS,
    }

    def __init__(
        self,
        score_func: Any = "fisher",
        n_features_to_select: int | float = 20,
        *,
        n_candidates: int | str | None = "auto",
        redundancy: Any = "cosine2",
        groups: Any = None,
        group_strength: float = 1.0,
        method: str = "working_set",
        tol: float = 1e-5,
        max_iter: int = 100,
        n_jobs: int | None = None,
    ) -> None:
        self.score_func = score_func
        self.n_features_to_select = n_features_to_select
        self.n_candidates = n_candidates
        self.redundancy = redundancy
        self.groups = groups
        self.group_strength = group_strength
        self.method = method
        self.tol = tol
        self.max_iter = max_iter
        self.n_jobs = n_jobs

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = not _is(self.redundancy, "precomputed")
        named = isinstance(self.score_func, str) and self.score_func in SCORES
        tags.target_tags.required = named and SCORES[self.score_func].supervised
        return tags

    def fit(self, X: Any, y: Any = None) -> GlobalRedundancySelector:
        """Score the features and refine the scores.

        Parameters
        ----------
        X : {array-like, sparse matrix, data frame, FeatureSource} of shape (n_samples, n_features)
            Training data; with ``redundancy="precomputed"`` the matrix of shape (n_features, n_features).
        y : array-like of shape (n_samples,), default=None
            Labels; not needed by scores that do not learn from them.

        Returns
        -------
        self : GlobalRedundancySelector
            The fitted selector.
        """
        return self._fit(X, y)

    def _read(self, X: Any, y: Any, sample_weight: Any = None) -> _Candidates:
        if _is(self.redundancy, "precomputed") and (isinstance(self.score_func, str) or callable(self.score_func)):
            raise ValueError(
                "redundancy='precomputed' means that X is a matrix of features by features; pass an array of scores as "
                "score_func."
            )
        reading = read_source(self, X)
        n_selected = n_features_wanted(self.n_features_to_select, reading.source.shape[1])
        view = FeatureView.of(reading.source, n_threads=thread_count(self.n_jobs))
        return _Candidates(reading.attributes, view, n_selected, self._matrix(X, view.n_features), X, y)

    def _compute(self, data: _Candidates) -> dict[str, Any]:
        n_features, n_selected = data.view.n_features, data.n_selected
        usable = self._usable(data)
        scores = self._scores(data, usable)
        order = self._order(data.view, scores, usable)
        pool = self._pool(order, scores, usable, n_selected)
        solution = self._solve(data, scores, pool)

        refined = np.zeros(n_features)
        refined[pool[solution.support]] = solution.weights
        steps = np.rint(refined[pool] / (_WEIGHT_TIE * refined.max()))
        pool_order = pool[np.argsort(-steps, kind="stable")]
        entered = np.zeros(n_features, dtype=bool)
        entered[pool] = True
        order = np.concatenate([pool_order, order[~entered[order]]])
        return {
            "scores_": scores,
            "refined_scores_": refined,
            "ranking_": ranks(order, n_features),
            "support_features_": order[:n_selected],
            "candidates_": pool,
            "objective_": solution.objective / float(scores.max()),
            "duality_gap_": solution.gap,
            "n_iter_": solution.n_iter,
            "working_set_size_": solution.working_set_size,
        }

    @staticmethod
    def _from_older_file(attributes: dict[str, Any]) -> dict[str, Any]:
        """Files had the selected features without their order."""
        kept = attributes.pop("_selected", None)
        if kept is not None:
            attributes["support_features_"] = kept[np.argsort(attributes["ranking_"][kept])]
        return attributes

    def _usable(self, data: _Candidates) -> np.ndarray:
        """Which features can be candidates: not constant, and with a redundancy of their own."""
        varying = data.view.moments.norm > 0
        usable = varying if data.matrix is None else np.diag(data.matrix) > 0
        if data.matrix is not None and not _is(self.redundancy, "precomputed"):
            usable = usable & varying
        if not usable.any():
            data.view.moments.require_variation()
            raise ValueError("No feature has a redundancy above 0 with itself; the diagonal of redundancy must be positive.")
        return usable

    def _matrix(self, X: Any, n_features: int) -> np.ndarray | None:
        """The matrix of all features, where the user brings it."""
        if _is(self.redundancy, "precomputed"):
            if isinstance(X, FeatureSource):
                raise ValueError("redundancy='precomputed' needs X to be an array of features by features.")
            return checked_matrix(X, n_features, "X, the redundancy matrix,")
        if isinstance(self.redundancy, str) or callable(self.redundancy):
            return None
        return checked_matrix(self.redundancy, n_features, "redundancy")

    def _scores(self, data: _Candidates, usable: np.ndarray) -> np.ndarray:
        """Checked scores, 0 for features that cannot be used."""
        clip = False
        if isinstance(self.score_func, str):
            score = SCORES[self.score_func]
            given = score.load()(data.view.source, data.y, n_jobs=data.view.n_threads)
            clip = score.signed
        elif callable(self.score_func):
            X, y = data.X, data.y
            if y is not None:
                check_consistent_length(np.empty((data.view.n_samples, 0)), y)
            if not isinstance(X, FeatureSource):
                X = check_array(X, accept_sparse=True, dtype=None, ensure_all_finite=False)
            given = self.score_func(X, y)
            given = given[0] if isinstance(given, tuple) else given
        else:
            given = self.score_func
        scores = as_numbers(given, "score_func must give numbers")
        if scores.shape != (len(usable),):
            raise ValueError(f"score_func gives scores of shape {scores.shape}, but X has {len(usable)} features.")
        scores[~usable] = 0.0
        if clip:
            np.maximum(scores, 0.0, out=scores)
        _refuse_bad_scores(scores, data.view.feature_names)
        return scores

    def _order(self, view: FeatureView, scores: np.ndarray, usable: np.ndarray) -> np.ndarray:
        """All features, best score first, unusable ones last."""
        tie = TIE * float(scores.max(initial=0.0))
        parts = []
        for features in (np.flatnonzero(usable), np.flatnonzero(~usable)):
            if _is(self.redundancy, "precomputed"):  # its rows are in the order of its columns
                parts.append(features[np.argsort(-scores[features], kind="stable")])
            else:
                own = scores[features]
                order = in_order(view.source, features, own, tie=tie, seed=_TIE_SEED, n_threads=view.n_threads)
                parts.append(features[order])
        return np.concatenate(parts)

    def _pool(self, order: np.ndarray, scores: np.ndarray, usable: np.ndarray, n_selected: int) -> np.ndarray:
        """The candidates, best first."""
        if self.n_candidates is None:
            return order[usable[order]]
        n_candidates = AUTO_FACTOR * n_selected if _is(self.n_candidates, "auto") else int(self.n_candidates)
        if n_candidates < n_selected:
            raise ValueError(
                f"n_candidates={n_candidates} is less than the {n_selected} features to select; ask for more candidates."
            )
        return order[scores[order] > 0][:n_candidates]

    def _solve(self, data: _Candidates, scores: np.ndarray, pool: np.ndarray) -> RefinedWeights:
        method: Callable[[Objective, float, int], RefinedWeights] = solve if self.method == "working_set" else solve_alm
        if len(pool) > LARGEST_MATRIX and (self.method == "alm" or not _is(self.redundancy, "cosine2")):
            raise ValueError(
                f"The matrix of all pairs of {len(pool)} candidates is too large; set n_candidates to at most "
                f"{LARGEST_MATRIX}, or use redundancy='cosine2' with method='working_set', which does not need it."
            )
        groups = self._groups(data.view.source, pool)
        with one_blas_thread():
            redundancy = self._redundancy(data, pool)
            penalty = GroupPenalty(groups, len(pool), float(self.group_strength)) if groups else None
            objective = Objective(scores[pool] / scores.max(), redundancy, penalty)
            solution = method(objective, float(self.tol), int(self.max_iter))
        if not solution.converged:
            warnings.warn(
                f"The relative gap is {solution.gap:.1e} after {solution.n_iter} rounds, above tol={self.tol}; "
                "raise max_iter or tol.",
                ConvergenceWarning,
                stacklevel=5,
            )
        return solution

    def _redundancy(self, data: _Candidates, pool: np.ndarray) -> Redundancy:
        if data.matrix is not None:
            return MatrixRedundancy(data.matrix[np.ix_(pool, pool)])
        if _is(self.redundancy, "cosine2"):
            return SquaredCosine(data.view, pool)
        if _is(self.redundancy, "mutual_info"):
            return MatrixRedundancy(mutual_information(data.view, pool))
        made = self.redundancy(data.view.columns(pool))
        matrix = checked_matrix(made, len(pool), "The matrix that redundancy returned")
        alone = np.flatnonzero(np.diag(matrix) <= 0.0)
        if len(alone):
            label = feature_label(data.view.feature_names, pool[alone[0]])
            raise ValueError(f"redundancy gives feature {label!r} a redundancy of 0 with itself; it must be positive.")
        return MatrixRedundancy(matrix)

    def _groups(self, source: FeatureSource, pool: np.ndarray) -> list[np.ndarray]:
        """The groups as positions in the pool."""
        if self.groups is None:
            return []
        if not isinstance(self.groups, Sequence):
            raise ValueError("groups must be FeatureGroups or a list of lists of feature indices or names.")
        n_features = source.shape[1]
        place = np.full(n_features, -1)
        place[pool] = np.arange(len(pool))
        result = []
        for number, group in enumerate(self.groups):
            members = group.members if isinstance(group, FeatureGroup) else group
            positions = place[feature_positions(members, n_features, source.feature_names, f"groups[{number}]")]
            result.append(positions[positions >= 0])
        return result


def _is(value: Any, name: str) -> bool:
    """Whether a parameter is the given word (and not an array, which compares item by item)."""
    return isinstance(value, str) and value == name


def _refuse_bad_scores(scores: np.ndarray, names: Sequence[str] | None) -> None:
    """Raise unless all scores are finite, none is negative, and one is above 0."""
    for bad, what, remedy in (
        (np.isnan(scores), "NaN", "Give every feature a score, 0 for the worst."),
        (np.isinf(scores), "infinite", "Cap the scores at a finite value."),
        (scores < 0, "negative", "Clip the scores at 0 or shift them, so that higher is better and 0 is worst."),
    ):
        if bad.any():
            first = int(np.argmax(bad))
            count = int(np.count_nonzero(bad))
            raise ValueError(
                f"score_func gives {count} {what} score(s), the first to feature {feature_label(names, first)!r}. {remedy}"
            )
    if not scores.any():
        raise ValueError("All scores are 0, so no feature is better than another. Use another score_func, or check y.")
