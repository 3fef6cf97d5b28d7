"""The selector: scores refined by global redundancy minimisation."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils import check_consistent_length

from coterie._numba import thread_count
from coterie._parameters import N_FEATURES, N_JOBS, AnyValue, Integer, NotString, Number, OneOf, Options, Rule
from coterie.data.memory import as_source
from coterie.data.source import FeatureSource
from coterie.data.view import FeatureView
from coterie.estimators.documentation import documented
from coterie.inputs.folds import Fold, read_folds
from coterie.inputs.opening import open_input
from coterie.inputs.targets import class_codes, read_targets
from coterie.inputs.types import ClientLike, FeaturesLike, FoldsLike, ScoringLike, TargetsLike
from coterie.methods import SCORES, score_on_cluster
from coterie.order import ranks
from coterie.redundancy import validation
from coterie.redundancy.measures import (
    LARGEST_MATRIX,
    LARGEST_REPRESENTATION,
    MatrixRedundancy,
    Redundancy,
    SquaredCosine,
    checked_matrix,
)
from coterie.redundancy.options import (
    MEASURES,
    GroupsLike,
    RedundancyLike,
    ScoreLike,
    check_given_options,
    checked_scores,
    group_positions,
    on_redundancy_scale,
    warn_about_groups,
)
from coterie.redundancy.refinement import (
    Leaders,
    Leading,
    LocalFeatures,
    Refined,
    Refinement,
    order_by_score,
    warn_about_pool,
    warn_about_solution,
)
from coterie.redundancy.solver import ChosenSet, solve, solve_alm
from coterie.selection import Selector, feature_label, n_features_wanted


@dataclass(frozen=True)
class _Candidates:
    """What a fit works on.

    ``X`` and ``y`` are as the user gave them (a score of the user's wants them so); ``matrix`` is that of all features, where
    the user brings one; ``groups`` are positions of features.
    """

    attributes: dict[str, Any]
    view: FeatureView
    n_selected: int
    matrix: np.ndarray | None
    groups: list[np.ndarray]
    X: Any
    y: Any

    @property
    def source(self) -> FeatureSource:
        """The features."""
        return self.view.source


@documented
class GlobalRedundancySelector(Selector):
    r"""Select features with high scores that do not repeat each other.

    Global redundancy minimisation (GRM, [1]_) takes the scores s of any filter and finds refined scores z with

    .. math:: \min_{z \ge 0,\ \sum z = 1} \frac{z'Az}{z's},

    where A holds the squared correlations of the features. A feature gets a high z when its score is high
    and it is little correlated with the other features that have one. The problem is convex and is solved
    exactly, with a certified gap, for any number of candidates; no matrix of all pairs is formed.

    With ``solution="set"`` redundancy counts *within* the k features that are selected, and not with all candidates:

    .. math:: \max_{|S| = k}\ \frac1k \sum_{i \in S} r_i - \lambda\,\frac{1}{k(k-1)} \sum_{i \ne j \in S} A_{ij},

    with the scores as relevances r on the scale of A, by exchanges of single features until none is a gain.

    Parameters
    ----------
    score_func : str, callable or array-like of shape (n_features,), default="fisher"
        The scores to refine, at least 0, higher is better. A name: ``"fisher"``, ``"information_gain"``, ``"relieff"``
        (which need y), ``"laplacian"``, ``"lgd"``, ``"mcfs"``, ``"variance"`` (which do not); negative scores of
        ``"relieff"`` and ``"laplacian"``, worse than noise, count as 0. A callable ``(X, y) -> scores`` or, as in
        scikit-learn, ``(X, y) -> (scores, p-values)``. Or the scores themselves.

    n_features_to_select : int or float, default=20
        Number of features, or their fraction of all features.

    n_candidates : "auto", "cv", int or None, default="auto"
        How many features, those with the best scores above 0, enter the problem; the others follow in the ranking by
        their own scores. ``"auto"`` starts with 5 for each feature to select and takes half as many more until as many
        refined scores are above 0 as features are wanted. ``"cv"`` chooses the start among 1 (the score alone), 3, 5, 10, 20
        for each feature, and all (no more than 50,000), by held-out accuracy. A number is taken as it is; None lets all
        features in, those with a score of 0 too. The certificate holds for the problem of the candidates. For a set
        ``"auto"`` is 20 for each feature (at most 2,000 with measures that take a matrix of all pairs), and ``"cv"`` chooses
        among 20, 5, 50, all, and 1. See Notes.

    solution : {"weights", "set"}, default="weights"
        What is found: weights z of all candidates, or a set of ``n_features_to_select`` of them. A set is found greedily and
        improved by exchanges; it is the best of those that differ in one feature. As relevance r of a feature counts, for
        ``"fisher"``, the share of its variance that lies between the classes, for ``"correlation"`` the square: squared
        correlations like the redundancies; other scores are divided by the largest.

    redundancy_strength : float or "cv", default=2.0
        Factor λ of the redundancy within a set. ``"cv"`` chooses among 2, 1, 4 and 0.5.

    power : float or "cv", default=1.0
        The scores enter the problem with this power: above 1 they count for more against redundancy, below 1 for less.
        ``"cv"`` chooses among 1, 2 and 4.

    score_parameters : dict or None, default=None
        Parameters of a score given by name, for instance ``{"n_neighbors": 7}`` for ``"lgd"``.

    redundancy : {"cosine2", "mutual_info", "sparse_representation", "precomputed"}, callable or array-like, default="cosine2"
        The matrix A. ``"cosine2"``: squared Pearson correlation. ``"mutual_info"``: mutual information on bins over the
        geometric mean of the entropies. ``"sparse_representation"``: how much two features take part in writing each other
        as sparse sums of all candidates (an elastic net for each, at most 2,000). A callable is called with the columns of
        the candidates and returns their matrix. An array is the matrix of all features; with ``"precomputed"`` that is
        what is passed as X in ``fit``, and ``score_func`` must be an array. Matrices must be symmetric and positive
        semidefinite. Everything but ``"cosine2"`` needs a matrix of all pairs of candidates, and allows 10,000 of them.

    redundancy_parameters : dict or None, default=None
        ``n_bins`` (10) of ``"mutual_info"``; ``alpha`` (0.1) and ``l1_ratio`` (0.9) of ``"sparse_representation"``.

    groups : FeatureGroups or sequence of groups, default=None
        Features that belong together, each group a list of indices or names: the refined scores of a group are
        drawn to each other. Groups may overlap. Their members are candidates whatever their scores, unless they are constant.
        For weights only.

    group_strength : float, default=1.0
        Factor γ of the groups: :math:`\gamma \sum_g \sum_{i<j \in g} (z_i - z_j)^2` is added to z'Az.

    method : {"working_set", "alm"}, default="working_set"
        How the problem is solved. ``"alm"`` is the paper's augmented Lagrangian method, for comparison; it decomposes the
        matrix of all candidates.

    method_parameters : dict or None, default=None
        Of ``"alm"``: ``penalty_growth``, the paper's ρ between 1 and 2 (1.03), and ``penalty_start``, the µ of the first step
        relative to the mean eigenvalue of A (0.01).

    cv : int, splitter or iterable, default=5
        Folds for ``"cv"``: a number (stratified for classes), a splitter of scikit-learn's, or pairs of training and test
        samples. Features are scored and refined on the training part of each fold. The best setting is taken if it is better
        than the first (5 for each feature and a power of 1; for a set 20, a power of 1 and a strength of 2) by more than two
        standard errors of the differences over the folds.

    estimator : estimator or None, default=None
        What predicts held-out samples from the selected features for ``"cv"``. None is the mean of two on standardised
        features: a linear discriminant with shrinkage (or ridge regression) and five nearest neighbours.

    scoring : str, callable or None, default=None
        Score of the predictions, as in scikit-learn; None for the accuracy (or R²).

    tol : float, default=1e-5
        Relative gap at which the solution is good enough.

    max_iter : int, default=100
        Most rounds of the working set (or of the outer loop of ``"alm"``), or exchanges for each member of a set.

    n_jobs : int or None, default=None
        Number of threads. None means all cores the process may use, but one inside joblib's workers.

    Attributes
    ----------
    scores_ : ndarray of shape (n_features,)
        The scores that were refined; 0 for constant features.

    refined_scores_ : ndarray of shape (n_features,)
        The weights z; 0 for most features, and for all that are no candidates. Of a set, 1/k for its members.

    ranking_ : ndarray of shape (n_features,)
        Place of each feature, 1 for the best: by refined score, those without one by their score, constant features last.
        The members of a set come first: last of them the one that the set can do without best, and so on.

    candidates_ : ndarray of shape (n_candidates,)
        The features that entered the problem, best score first.

    pool_sizes_ : ndarray of int
        Numbers of candidates that were tried, the last one that of ``candidates_``.

    n_weighted_ : int
        How many refined scores are above 0. Where there are fewer than features to select, the rest go by their own scores,
        and a warning says so.

    power_ : float
        The power of the scores.

    redundancy_strength_ : float
        Of a set only: the factor of the redundancy.

    cv_results_ : dict of str to ndarray
        With ``"cv"`` only: ``n_candidates`` at the start, ``power``, ``mean_test_score``, ``std_test_score`` and the score of
        each fold, a row for each setting; makes a data frame. ``validation_score_`` is the mean score of the chosen one.

    objective_ : float
        Value z'Az / z's (with the groups' part, if any; s to the power), to be small; or relevance less redundancy of the
        set, to be large.

    duality_gap_ : float
        Of weights only. Certified: the objective is at most this part of it above the optimum.

    n_iter_ : int
        Rounds taken; of a set, searches for an exchange, one more than were made.

    working_set_size_ : int
        Of weights only: size of the last working set; the matrix of its pairs is the largest one formed.

    %(seen)s

    See Also
    --------
    coterie.filters : The scores.
    coterie.metrics.squared_redundancy : The mean of A over the selected pairs.
    GroupDiscoveryClassifier : Hands the correlated features back as groups.

    Notes
    -----
    ``n_candidates`` matters: with all features the optimum spreads over many weak features that are correlated with
    nothing, with few it can only choose among the best, and where they are copies of each other it has not enough to choose
    from; that is what the growing pool is for. Measured in ``docs/evidence/redundancy-evidence.md``.

    A set asks less of the pool, since what is not chosen does no harm in it. It is made for one number of features: its first
    members are what is left of it when others are dropped, not the best set of a smaller number.

    With ``"cv"`` the training samples of a fold are copied. The score of the chosen setting, ``validation_score_``, is that of
    the best of many and so a little too good; judge the selection on other samples.

    The result does not depend on the order of the columns: of tied features (scores closer than 1e-10 of the best) the
    one that comes first is decided by the content of the columns, then by name. (Ties with ``"precomputed"`` go by position.)

    Memory: X is read in blocks, in its own type, dense or sparse; on top of it come a few numbers for each feature and
    the matrix of the working set, or that of the members of a set by all candidates.

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
        "score_func": OneOf(*SCORES) | NotString("a function, or the scores themselves"),
        "n_features_to_select": N_FEATURES,
        "n_candidates": Integer(1) | OneOf("auto", "cv", None),
        "solution": OneOf("weights", "set"),
        "redundancy_strength": Number(at_most=1e6) | OneOf("cv"),
        "power": Number(at_most=64.0) | OneOf("cv"),
        "score_parameters": Options() | OneOf(None),
        "redundancy": OneOf("cosine2", "mutual_info", "sparse_representation", "precomputed")
        | NotString("a function, or a matrix"),
        "redundancy_parameters": Options() | OneOf(None),
        "groups": AnyValue(),
        "group_strength": Number(),
        "method": OneOf("working_set", "alm"),
        "method_parameters": Options() | OneOf(None),
        "cv": AnyValue(),
        "estimator": NotString("an estimator") | OneOf(None),
        "scoring": AnyValue(),
        "tol": Number(),
        "max_iter": Integer(1),
        "n_jobs": N_JOBS,
    }

    def __init__(
        self,
        score_func: ScoreLike = "fisher",
        n_features_to_select: int | float = 20,
        *,
        n_candidates: int | str | None = "auto",
        solution: str = "weights",
        redundancy_strength: float | str = 2.0,
        power: float | str = 1.0,
        score_parameters: dict[str, Any] | None = None,
        redundancy: RedundancyLike = "cosine2",
        redundancy_parameters: dict[str, Any] | None = None,
        groups: GroupsLike = None,
        group_strength: float = 1.0,
        method: str = "working_set",
        method_parameters: dict[str, Any] | None = None,
        cv: FoldsLike = 5,
        estimator: BaseEstimator | None = None,
        scoring: ScoringLike = None,
        tol: float = 1e-5,
        max_iter: int = 100,
        n_jobs: int | None = None,
    ) -> None:
        self.score_func = score_func
        self.n_features_to_select = n_features_to_select
        self.n_candidates = n_candidates
        self.solution = solution
        self.redundancy_strength = redundancy_strength
        self.power = power
        self.score_parameters = score_parameters
        self.redundancy = redundancy
        self.redundancy_parameters = redundancy_parameters
        self.groups = groups
        self.group_strength = group_strength
        self.method = method
        self.method_parameters = method_parameters
        self.cv = cv
        self.estimator = estimator
        self.scoring = scoring
        self.tol = tol
        self.max_iter = max_iter
        self.n_jobs = n_jobs

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = not _is(self.redundancy, "precomputed")
        score = SCORES.get(self.score_func) if isinstance(self.score_func, str) else None
        tags.target_tags.required = score is not None and score.supervised
        return tags

    def fit(self, X: FeaturesLike, y: TargetsLike = None, *, client: ClientLike = None) -> Self:
        """Score the features and refine the scores.

        Parameters
        ----------
        X : {array-like, sparse matrix, data frame, FeatureSource} of shape (n_samples, n_features)
            Training data; with ``redundancy="precomputed"`` the matrix of shape (n_features, n_features).
        y : array-like of shape (n_samples,), default=None
            Labels; not needed by scores that do not learn from them.
        client : distributed.Client, default=None
            Client of a Dask cluster whose workers hold the features of X: a store (its name, its address, or opened), or a
            Dask array chunked by features. None takes the active client, if there is one. The columns of the candidates
            come to this process, the scores stay. For scores by name (all but ``"mcfs"``), a number of candidates or
            ``"auto"``, and no groups.

        Returns
        -------
        self : GlobalRedundancySelector
            The fitted selector.
        """
        return self._fit(lambda: self._read(X, y, client))

    def _read(self, X: FeaturesLike, y: TargetsLike, client: ClientLike = None) -> _Candidates:
        if _is(self.redundancy, "precomputed") and (isinstance(self.score_func, str) or callable(self.score_func)):
            raise ValueError(
                "redundancy='precomputed' means that X is a matrix of features by features; pass an array of scores as "
                "score_func."
            )
        check_given_options(self)
        data = open_input(X, y, reader=self, target="any", client=client)
        n_selected = n_features_wanted(self.n_features_to_select, data.n_features)
        view = FeatureView.of(data.source, n_threads=thread_count(self.n_jobs))
        if isinstance(self.n_candidates, (int, np.integer)) and self.n_candidates < n_selected:
            raise ValueError(
                f"n_candidates={self.n_candidates} is less than the {n_selected} features to select; ask for more candidates."
            )
        matrix, groups = self._matrix(data.X, view.n_features), group_positions(self.groups, data.source)
        return _Candidates(data.attributes, view, n_selected, matrix, groups, data.X, data.y)

    @property
    def _on_cluster(self) -> str:
        """Whether the workers of a cluster can compute the scores, and the best features are all that enters."""
        there = score_on_cluster(self.score_func, self.score_parameters) if isinstance(self.score_func, str) else ""
        few = self.n_candidates is not None and not any(self._validated)
        computed = callable(self.redundancy) or (isinstance(self.redundancy, str) and self.redundancy != "precomputed")
        return there if few and computed and self.groups is None else ""

    def _compute(self, data: _Candidates) -> dict[str, Any]:
        if data.view.source.n_workers is not None:
            return self._compute_from_leaders(data)
        usable = self._usable(data.view, data.matrix)
        warn_about_groups(data.groups, usable, data.view.feature_names)
        scores = checked_scores(self.score_func, self.score_parameters or {}, data.view, data.X, data.y, usable)
        refinement = self._refinement(data.view, scores, usable, data.matrix, data.groups)
        setting, results = self._setting(data, refinement)
        found = refinement.refine(data.n_selected, *setting)
        warn_about_solution(found.solution, self.tol)
        warn_about_pool(found, setting.rule, data.n_selected, int(np.count_nonzero(usable)))
        ranking = ranks(found.order, data.view.n_features)
        return {"scores_": scores, "ranking_": ranking, **self._found(found, setting, data, float(scores.max())), **results}

    def _compute_from_leaders(self, data: _Candidates) -> dict[str, Any]:
        """The same where the features are with the workers of a cluster: all but the best stay there."""
        assert isinstance(self.score_func, str)
        leaders = Leaders(data.view, self.score_func, self.score_parameters or {}, data.y)
        best = leaders.first(1)
        setting, _ = self._setting(data, self._refinement_of_leaders(data.view, best))
        refinement_of = partial(self._refinement_of_leaders, data.view)
        found = leaders.refined(data.n_selected, *setting, refinement_of)
        warn_about_solution(found.solution, self.tol)
        warn_about_pool(found, setting.rule, data.n_selected, data.view.moments.n_varying)
        ranking = leaders.ranks(found)
        return {"scores_": leaders.scores, "ranking_": ranking, **self._found(found, setting, data, float(best.scores[0]))}

    def _refinement_of_leaders(self, view: FeatureView, leading: Leading) -> Refinement:
        count = len(leading.scores)
        plain = self._refinement(view, leading.scores, np.ones(count, dtype=bool), None, [], order=np.arange(count))
        return replace(plain, redundancy=lambda pool: self._redundancy(view, None, leading.features[pool]))

    @staticmethod
    def _found(found: Refined, setting: validation.RefinementSettings, data: _Candidates, highest: float) -> dict[str, Any]:
        """The attributes that the solution makes."""
        solution = found.solution
        common = {
            "refined_scores_": found.weights,
            "support_features_": found.order[: data.n_selected],
            "candidates_": found.pool,
            "pool_sizes_": np.array(found.sizes),
            "n_weighted_": found.n_weighted,
            "power_": setting.power,
        }
        if isinstance(solution, ChosenSet):
            own = {"redundancy_strength_": setting.strength, "objective_": solution.objective}
            return common | own | {"n_iter_": solution.n_exchanges + 1}
        return common | {
            "objective_": solution.objective / highest**setting.power,
            "duality_gap_": solution.gap,
            "n_iter_": solution.n_iter,
            "working_set_size_": solution.working_set_size,
        }

    def _setting(self, data: _Candidates, refinement: Refinement) -> tuple[validation.RefinementSettings, dict[str, Any]]:
        """The pool and the power, as given or chosen by validation, and what validation has found."""
        paired = refinement.most is not None and data.matrix is None
        powers = validation.POWERS if _is(self.power, "cv") else (float(self.power),)
        strengths: Sequence[float | None] = (None,)
        if self.solution == "set":
            strengths = validation.STRENGTHS if _is(self.redundancy_strength, "cv") else (float(self.redundancy_strength),)
        pools = validation.pool_rules(self.n_candidates, data.n_selected, is_set=self.solution == "set", paired=paired)
        settings = validation.settings_of(pools, powers, int(np.count_nonzero(refinement.scores)), paired, strengths)
        if not any(self._validated):
            return settings[0], {}
        y, folds = self._labels_and_folds(data)
        models = (
            [self.estimator]
            if self.estimator is not None
            else validation.default_models(y, min(len(train) for train, _ in folds))
        )
        table = validation.validated_scores(
            data.view.source, y, folds, partial(self._refinement_of, data), settings, data.n_selected, models, self.scoring
        )
        best = validation.best_setting(table)
        results = validation.results_of(settings, table, int(np.count_nonzero(refinement.usable)))
        return settings[best], {"cv_results_": results, "validation_score_": float(table[best].mean())}

    @property
    def _validated(self) -> tuple[bool, bool, bool]:
        """Whether the pool, the power and the strength of redundancy are chosen by validation."""
        strength = self.solution == "set" and _is(self.redundancy_strength, "cv")
        return _is(self.n_candidates, "cv"), _is(self.power, "cv"), strength

    def _labels_and_folds(self, data: _Candidates) -> tuple[np.ndarray, list[Fold]]:
        """Labels as numbers (or the numbers to predict), and the folds."""
        if _is(self.redundancy, "precomputed"):
            raise ValueError(f"{self._validated_words} needs samples, and redundancy='precomputed' has none.")
        y = data.y
        if y is None:
            raise ValueError(f"requires y to be passed, but the target y is None: {self._validated_words} predicts it.")
        check_consistent_length(np.empty((data.view.n_samples, 0)), y)
        numeric = validation.is_numeric(np.asarray(y))
        known = read_targets(np.asarray(y)) if numeric else class_codes(y, data.view.n_samples, "n_candidates='cv'")[1]
        return known, read_folds(self.cv, known, classifier=not numeric)

    @property
    def _validated_words(self) -> str:
        names = ("n_candidates", "power", "redundancy_strength")
        return next(f"{name}='cv'" for name, given in zip(names, self._validated, strict=True) if given)

    def _refinement_of(self, data: _Candidates, X: Any, y: np.ndarray) -> Refinement:
        """The scores of the training part of a fold, ready to be refined."""
        view = FeatureView.of(as_source(X, data.view.feature_names), n_threads=data.view.n_threads)
        usable = self._usable(view, data.matrix)
        scores = checked_scores(self.score_func, self.score_parameters or {}, view, X, y, usable)
        return self._refinement(view, scores, usable, data.matrix, data.groups)

    def _refinement(
        self,
        view: FeatureView,
        scores: np.ndarray,
        usable: np.ndarray,
        matrix: np.ndarray | None,
        groups: list[np.ndarray],
        order: np.ndarray | None = None,
    ) -> Refinement:
        most = None
        if order is None:  # the rows of a matrix that is passed as X are in the order of its columns
            order = order_by_score(view, scores, usable, by_position=_is(self.redundancy, "precomputed"))
        if self.method == "alm" or not _is(self.redundancy, "cosine2"):
            most = LARGEST_REPRESENTATION if _is(self.redundancy, "sparse_representation") else LARGEST_MATRIX
        return Refinement(
            scores=scores,
            relevance=on_redundancy_scale(self.score_func, scores),
            order=order,
            usable=usable,
            redundancy=partial(self._redundancy, view, matrix),
            groups=groups,
            group_strength=float(self.group_strength),
            solve=solve if self.method == "working_set" else partial(solve_alm, **(self.method_parameters or {})),
            tol=float(self.tol),
            max_iter=int(self.max_iter),
            most=most,
        )

    def _usable(self, view: FeatureView, matrix: np.ndarray | None) -> np.ndarray:
        """Which features can be candidates: not constant, and with a redundancy of their own."""
        varying = view.moments.norm > 0
        usable = varying if matrix is None else np.diag(matrix) > 0
        if matrix is not None and not _is(self.redundancy, "precomputed"):
            usable = usable & varying
        if not usable.any():
            view.moments.require_variation()
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

    def _redundancy(self, view: FeatureView, matrix: np.ndarray | None, pool: np.ndarray) -> Redundancy:
        if matrix is not None:
            return MatrixRedundancy(matrix[np.ix_(pool, pool)])
        near = LocalFeatures(view, pool)
        if _is(self.redundancy, "cosine2"):
            return SquaredCosine(near.view, near.places)
        if isinstance(self.redundancy, str):
            measure, parameters = MEASURES[self.redundancy], self.redundancy_parameters or {}
            return MatrixRedundancy(measure(near.view, near.places, **parameters))
        assert callable(self.redundancy)
        made = self.redundancy(near.view.columns(near.places))
        matrix = checked_matrix(made, len(pool), "The matrix that redundancy returned")
        alone = np.flatnonzero(np.diag(matrix) <= 0.0)
        if len(alone):
            label = feature_label(view.feature_names, pool[alone[0]])
            raise ValueError(f"redundancy gives feature {label!r} a redundancy of 0 with itself; it must be positive.")
        return MatrixRedundancy(matrix)


def _is(value: object, name: str) -> bool:
    """Whether a parameter is the given word (and not an array, which compares item by item)."""
    return isinstance(value, str) and value == name
