"""Selector that refines scores by global redundancy minimisation."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, ClassVar, Self

import numpy as np
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
from coterie.inputs.types import ClientLike, FeaturesLike, FoldsLike, SampleGroupsLike, TargetsLike
from coterie.methods import SCORES, score_on_cluster
from coterie.order import ranks
from coterie.redundancy import validation
from coterie.redundancy.chance import RelevanceScale, at_chance_level, has_chance_level, relevance_of
from coterie.redundancy.measures import (
    MAX_MATRIX,
    MAX_REPRESENTATION,
    MatrixRedundancy,
    Redundancy,
    SquaredCosine,
    checked_matrix,
    given_matrix,
)
from coterie.redundancy.options import (
    MEASURE_OPTIONS,
    MEASURES,
    METHOD_OPTIONS,
    GroupsLike,
    RedundancyLike,
    RefinementOptions,
    ScoreLike,
    check_given_options,
    checked_scores,
    group_positions,
    warn_about_groups,
)
from coterie.redundancy.refinement import (
    DistributedScores,
    LocalFeatures,
    Refined,
    Refinement,
    TopFeatures,
    order_by_score,
    warn_about_result,
)
from coterie.redundancy.solver import ChosenSet, solve, solve_alm
from coterie.selection import Selector, feature_label, n_features_wanted


@dataclass(frozen=True)
class _Candidates:
    """Input of a fit. ``X`` and ``y`` are as passed by the user, because user-defined scores receive them."""

    attributes: dict[str, Any]
    view: FeatureView
    n_selected: int
    matrix: np.ndarray | None  # redundancies of all features, if given
    groups: list[np.ndarray]  # positions of features
    X: Any
    y: Any
    sample_groups: np.ndarray | None

    @property
    def source(self) -> FeatureSource:
        """Source of the features."""
        return self.view.source


@documented
class GlobalRedundancySelector(Selector):
    r"""Select features with high scores and low redundancy.

    Global redundancy minimisation (GRM, [1]_) computes refined scores z from the scores s of any filter:

    .. math:: \min_{z \ge 0,\ \sum z = 1} \frac{z'Az}{z'r},

    where A is the matrix of squared correlations of the features and r is the relevance: the score on a scale from 0 to 1, in
    excess of what chance reaches. A feature gets a high z if its relevance is high and its correlation with other features
    of positive z is low. The problem is convex. It is solved exactly, with a certified gap, for any number of candidates,
    without forming the matrix of all pairs.

    By default, the redundancy *within* the k selected features is penalised, not that with all candidates:

    .. math:: \max_{|S| = k}\ \frac1k \sum_{i \in S} r_i - \lambda\,\frac{1}{k(k-1)} \sum_{i \ne j \in S} A_{ij},

    Single features are exchanged until no exchange is an improvement.

    Parameters
    ----------
    score_func : str, callable or array-like of shape (n_features,), default="fisher"
        Scores to refine. They must be at least 0; higher scores are better.

        - A name: ``"fisher"``, ``"information_gain"``, ``"relieff"`` (which require y), ``"laplacian"``, ``"lgd"``,
          ``"mcfs"`` or ``"variance"`` (which do not). Negative scores of ``"relieff"`` and ``"laplacian"``, which are worse
          than noise, are set to 0.
        - A callable ``(X, y) -> scores`` or, as in scikit-learn, ``(X, y) -> (scores, p-values)``. With p-values, ``fdr``
          applies.
        - An array of scores.

    n_features_to_select : int or float, default=20
        Number of features to select, or their fraction of all features.

    n_candidates : "auto", "cv", int or None, default="auto"
        Number of candidates: the features with the highest scores and a positive relevance, which enter the problem. The
        other features follow in the ranking by their own scores. The certificate holds for the problem of the candidates.
        See Notes.

        - ``"auto"`` starts with 5 candidates per feature to select. It adds half as many again until as many refined scores
          are positive as there are features to select. For a set it is 20 per feature to select (at most 2,000 with measures
          that need the matrix of all pairs).
        - ``"cv"`` selects the initial number by held-out accuracy: 1 (the score alone), 3, 5, 10 or 20 per feature to select,
          or all (at most 50,000). For a set it selects among 20, 5, 50, all, and 1.
        - An integer is used as given.
        - None means all features with a positive relevance; with ``fdr=None`` also those with a score of 0.

    fdr : float or None, default=0.01
        Largest expected share of features without effect among those with a positive relevance. It determines the chance
        level of scores that use y, from their distribution (``"fisher"``, ``"correlation"``), from permuted labels
        (``"relieff"``, ``"information_gain"``), or from the p-values that a callable returns. Other scores have no chance
        level. None means no chance level. See Notes.

    solution : {"set", "weights"}, default="set"
        Kind of solution: a set of ``n_features_to_select`` candidates, or weights z of all candidates (the problem of the
        paper, with a certificate). A set is built greedily and improved by exchanges, until no set that differs in one
        feature is better.

    redundancy_strength : float, "auto" or "cv", default="auto"
        Factor λ of the redundancy within a set. ``"auto"`` is half the number of classes, at most 3; 1 for numbers; 2
        without labels. ``"cv"`` selects among this value and 2, 1, 4 and 0.5.

    score_parameters : dict or None, default=None
        Parameters of a score given by name, for instance ``{"n_neighbors": 7}`` for ``"lgd"``.

    redundancy : {"cosine2", "mutual_info", "sparse_representation", "precomputed"}, callable or array-like, default="cosine2"
        Redundancy matrix A. Matrices must be symmetric and positive semidefinite. All measures except ``"cosine2"`` need
        the matrix of all pairs of candidates, and allow at most 10,000 candidates.

        - ``"cosine2"``: squared Pearson correlation.
        - ``"mutual_info"``: mutual information of binned features, divided by the geometric mean of their entropies.
        - ``"sparse_representation"``: mean absolute weight of two features in each other's representation as a sparse sum
          of the other candidates (one elastic net per candidate, at most 2,000 candidates).
        - A callable: it is called with the columns of the candidates and returns their matrix.
        - An array: the matrix of all features.
        - ``"precomputed"``: the matrix of all features is passed as X to ``fit``, and ``score_func`` must be an array.

    groups : FeatureGroups or sequence of groups, default=None
        Prior groups of features, each a list of indices or names. Differences of the refined scores within a group are
        penalised: :math:`\gamma \sum_g \sum_{i<j \in g} (z_i - z_j)^2` is added to z'Az. Groups may overlap. Their members
        are always candidates, unless they are constant. Only for ``solution="weights"``.

    cv : int, splitter or iterable, default=5
        Folds for ``"cv"``: a number (stratified for classes), a scikit-learn splitter, or pairs of training and test
        samples. Features are scored and refined on the training samples of each fold. The default setting is 5 candidates
        per feature and a power of 1; for a set 20 candidates per feature, a power of 1 and the strength of ``"auto"``. The
        best setting replaces the default if it is better by more than two standard errors of the differences over the folds.

    options : dict or None, default=None
        Options that are rarely changed, by name.

        - ``power`` (1.0): exponent of the relevances in the problem. Values above 1 increase their weight relative to
          redundancy. ``"cv"`` selects among 1, 2 and 4.
        - ``group_strength`` (1.0): factor γ of the groups.
        - ``n_bins`` (10) of ``"mutual_info"``; ``alpha`` (0.1) and ``l1_ratio`` (0.9) of ``"sparse_representation"``.
        - ``method`` (``"working_set"``): solver. ``"alm"`` is the paper's augmented Lagrangian method, for comparison. It
          decomposes the matrix of all candidates. Its ``penalty_growth`` is the paper's ρ between 1 and 2 (1.03), its
          ``penalty_start`` the initial µ relative to the mean eigenvalue of A (0.01).
        - ``tol`` (1e-5): tolerance of the relative duality gap.
        - ``max_iter`` (100): largest number of rounds of the working set (or of the outer loop of ``"alm"``), or of exchanges
          per member of a set.
        - ``estimator`` and ``scoring`` for ``"cv"``: estimator that predicts held-out samples from the selected features, and
          its score, as in scikit-learn. The default is the mean accuracy (or R²) of two estimators on standardised features:
          a linear discriminant with shrinkage (or ridge regression) and five nearest neighbours.

    n_jobs : int or None, default=None
        Number of threads. None means all cores available to the process, or one inside a joblib worker.

    Attributes
    ----------
    scores_ : ndarray of shape (n_features,)
        Scores before refinement; 0 for constant features.

    relevance_ : ndarray of shape (n_features,)
        Relevances r. For ``"fisher"``, the share of variance between the classes, and for ``"correlation"`` the squared
        score: squared correlations, like the redundancies. Other scores are divided by the largest. The chance level is
        subtracted, and the result divided by the largest possible value.

    chance_score_ : float
        Score up to which features are no better than chance; 0 for scores without a chance level.

    refined_scores_ : ndarray of shape (n_features,)
        Weights z; 0 for most features, and for all features that are not candidates. For a set, 1/k for each member.

    ranking_ : ndarray of shape (n_features,)
        Rank of each feature, starting at 1: by refined score, then by score, with constant features last. The members of a
        set come first, in the reverse order of removal: the last member is the one whose removal leaves the best set.

    candidates_ : ndarray of shape (n_candidates,)
        Candidates, in decreasing order of their scores.

    pool_sizes_ : ndarray of int
        Numbers of candidates that were tried. The last one is that of ``candidates_``.

    n_weighted_ : int
        Number of positive refined scores. If it is smaller than the number of features to select, the remaining features
        are selected by their own scores, with a warning.

    power_ : float
        Exponent of the relevances.

    redundancy_strength_ : float
        Factor of the redundancy. For a set only.

    cv_results_ : dict of str to ndarray
        Initial ``n_candidates``, ``power``, ``mean_test_score``, ``std_test_score`` and the score of each fold, with one row
        per setting. It can be converted to a data frame. With ``"cv"`` only. ``validation_score_`` is the mean score of the
        selected setting.

    objective_ : float
        Minimised value z'Az / z'r (with the group penalty, if any, and r to the power); for a set, the maximised value of
        relevance minus redundancy. NaN if no feature has a positive relevance.

    duality_gap_ : float
        Certified relative gap: the difference between the objective and the optimum is at most this share of the objective.
        For weights only.

    n_iter_ : int
        Number of rounds; for a set, number of searches for an exchange, which is one more than the number of exchanges.

    working_set_size_ : int
        Size of the last working set. The matrix of its pairs is the largest matrix formed. For weights only.

    %(seen)s

    See Also
    --------
    coterie.filters : Scores.
    coterie.metrics.squared_redundancy : Mean of A over the selected pairs.
    GroupDiscoveryClassifier : Returns correlated features as groups.

    Notes
    -----
    Features without any effect are correlated with nothing, so that a problem that includes them selects them. They have a
    relevance of 0 and are not candidates. If fewer features are better than chance than are to be selected, the others are
    selected by their own scores, with a warning.

    ``n_candidates`` has a strong effect. With all features, the optimum includes many weak features that are uncorrelated
    with the others. With few candidates, only the best features can be selected. If these are copies of each other, there
    are too few distinct candidates; the growing pool handles this case. See ``docs/evidence/redundancy-evidence.md`` for
    measurements.

    A set is optimised for one number of features. Its first members are those that remain when others are dropped, not the
    best set of a smaller number.

    With ``"cv"``, ``validation_score_`` is the score of the best of many settings and therefore slightly optimistic.

    The result does not depend on the order of the columns. Ties (scores closer than 1e-10 of the best) are broken by the
    content of the columns, then by name. (With ``"precomputed"``, ties are broken by position.)

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
    >>> best_scores = selector.scores_.argsort()[-10:]
    >>> bool(squared_redundancy(data.X, best_scores) > 2 * squared_redundancy(selector.transform(data.X)))
    True
    >>> weights = GlobalRedundancySelector("fisher", 10, solution="weights").fit(data.X, data.y)
    >>> bool(weights.duality_gap_ <= 1e-5)
    True
    """

    _allowed: ClassVar[dict[str, Rule]] = {
        "score_func": OneOf(*SCORES) | NotString("a function, or the scores themselves"),
        "n_features_to_select": N_FEATURES,
        "n_candidates": Integer(1) | OneOf("auto", "cv", None),
        "fdr": Number(below=1.0) | OneOf(None),
        "solution": OneOf("set", "weights"),
        "redundancy_strength": Number(at_most=1e6) | OneOf("auto", "cv"),
        "score_parameters": Options() | OneOf(None),
        "redundancy": OneOf("cosine2", "mutual_info", "sparse_representation", "precomputed")
        | NotString("a function, or a matrix"),
        "groups": AnyValue(),
        "cv": AnyValue(),
        "options": Options() | OneOf(None),
        "n_jobs": N_JOBS,
    }

    def __init__(
        self,
        score_func: ScoreLike = "fisher",
        n_features_to_select: int | float = 20,
        *,
        n_candidates: int | str | None = "auto",
        fdr: float | None = 0.01,
        solution: str = "set",
        redundancy_strength: float | str = "auto",
        score_parameters: dict[str, Any] | None = None,
        redundancy: RedundancyLike = "cosine2",
        groups: GroupsLike = None,
        cv: FoldsLike = 5,
        options: dict[str, Any] | None = None,
        n_jobs: int | None = None,
    ) -> None:
        self.score_func = score_func
        self.n_features_to_select = n_features_to_select
        self.n_candidates = n_candidates
        self.fdr = fdr
        self.solution = solution
        self.redundancy_strength = redundancy_strength
        self.score_parameters = score_parameters
        self.redundancy = redundancy
        self.groups = groups
        self.cv = cv
        self.options = options
        self.n_jobs = n_jobs

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = not _is(self.redundancy, "precomputed")
        score = SCORES.get(self.score_func) if isinstance(self.score_func, str) else None
        tags.target_tags.required = score is not None and score.supervised
        return tags

    def fit(
        self, X: FeaturesLike, y: TargetsLike = None, *, groups: SampleGroupsLike = None, client: ClientLike = None
    ) -> Self:
        """Score the features, refine the scores and select features.

        Parameters
        ----------
        X : {array-like, sparse matrix, data frame, FeatureSource} of shape (n_samples, n_features)
            Training data; with ``redundancy="precomputed"`` the matrix of shape (n_features, n_features).
        y : array-like of shape (n_samples,), default=None
            Labels. Not required by unsupervised scores.
        groups : array-like of shape (n_samples,) or str, default=None
            Sample groups, which the folds of ``"cv"`` keep together. The parameter ``groups`` has groups of features.
        client : distributed.Client, default=None
            Client of a Dask cluster whose workers hold the features of X: a store (name, address or open store), or a Dask
            array chunked by features. None means the active client, if any. The columns of the candidates are sent to this
            process; the scores stay on the workers. Requires a score by name (any except ``"mcfs"``), a number of
            candidates or ``"auto"``, and no groups.

        Returns
        -------
        self : GlobalRedundancySelector
            The fitted selector.
        """
        return self._fit(lambda: self._read(X, y, groups, client))

    def _read(self, X: FeaturesLike, y: TargetsLike, sample_groups: SampleGroupsLike, client: ClientLike) -> _Candidates:
        if _is(self.redundancy, "precomputed") and (isinstance(self.score_func, str) or callable(self.score_func)):
            message = "redundancy='precomputed' means that X is a matrix of features by features. Pass scores as score_func."
            raise ValueError(message)
        check_given_options(self, self._options)
        data = open_input(X, y, reader=self, target="any", groups=sample_groups, client=client)
        n_selected = n_features_wanted(self.n_features_to_select, data.n_features)
        view = FeatureView.of(data.source, n_threads=thread_count(self.n_jobs))
        if isinstance(self.n_candidates, (int, np.integer)) and self.n_candidates < n_selected:
            raise ValueError(
                f"n_candidates={self.n_candidates} is less than the {n_selected} features to select. Increase n_candidates."
            )
        matrix, groups = given_matrix(self.redundancy, data.X, view.n_features), group_positions(self.groups, data.source)
        return _Candidates(data.attributes, view, n_selected, matrix, groups, data.X, data.y, data.groups)

    @property
    def _on_cluster(self) -> str:
        """Kind of input supported on a cluster; empty unless workers can compute the scores and few features suffice."""
        there = score_on_cluster(self.score_func, self.score_parameters) if isinstance(self.score_func, str) else ""
        few = self.n_candidates is not None and not any(self._validated)
        computed = callable(self.redundancy) or (isinstance(self.redundancy, str) and self.redundancy != "precomputed")
        return there if few and computed and self.groups is None else ""

    @property
    def _options(self) -> RefinementOptions:
        return RefinementOptions.of(self.options)

    def _compute(self, data: _Candidates) -> dict[str, Any]:
        if data.view.source.n_workers is not None:
            return self._compute_on_cluster(data)
        usable = self._usable(data.view, data.matrix)
        warn_about_groups(data.groups, usable, data.view.feature_names)
        refinement, scale = self._scored(data, data.view, data.X, data.y, usable)
        setting, results = self._setting(data, refinement)
        found = refinement.refine(data.n_selected, *setting)
        warn_about_result(
            found, setting.rule, scale.chance_score, data.n_selected, int(np.count_nonzero(usable)), self._options.tol
        )
        return {
            "scores_": refinement.scores,
            "relevance_": refinement.relevance,
            "ranking_": ranks(found.order, data.view.n_features),
            **self._attributes(found, setting, scale, data),
            **results,
        }

    def _compute_on_cluster(self, data: _Candidates) -> dict[str, Any]:
        """Compute the result with features on the workers of a cluster. Only the best features are sent to this process."""
        assert isinstance(self.score_func, str)
        parameters = self.score_parameters or {}
        distributed = DistributedScores(data.view, self.score_func, parameters, data.y)
        scale, limited = RelevanceScale.of(self.score_func, distributed.largest), False
        if self.fdr is not None and has_chance_level(self.score_func):
            scale, limited = at_chance_level(
                scale, self.score_func, parameters, data.view, data.y, distributed.scores, distributed.n_usable, self.fdr
            ), True  # fmt: skip
        refinement_of = partial(self._refinement_of_top, data.view, scale, limited)
        setting, _ = self._setting(data, refinement_of(distributed.first(1)))
        found = distributed.refined(data.n_selected, *setting, refinement_of)
        warn_about_result(found, setting.rule, scale.chance_score, data.n_selected, distributed.n_usable, self._options.tol)
        return {
            "scores_": distributed.scores,
            "relevance_": distributed.relevance(scale),
            "ranking_": distributed.ranks(found),
            **self._attributes(found, setting, scale, data),
        }

    def _refinement_of_top(self, view: FeatureView, scale: RelevanceScale, limited: bool, top: TopFeatures) -> Refinement:
        count = len(top.scores)
        plain = self._refinement(
            view, top.scores, scale.relevance(top.scores), limited, np.ones(count, dtype=bool), None, [], np.arange(count)
        )
        return replace(plain, redundancy=lambda pool: self._redundancy(view, None, top.features[pool]))

    @staticmethod
    def _attributes(
        found: Refined, setting: validation.RefinementSettings, scale: RelevanceScale, data: _Candidates
    ) -> dict[str, Any]:
        """Return the fitted attributes of a solution."""
        solution = found.solution
        common = {
            "refined_scores_": found.weights,
            "support_features_": found.order[: data.n_selected],
            "candidates_": found.pool,
            "pool_sizes_": np.array(found.sizes),
            "n_weighted_": found.n_weighted,
            "power_": setting.power,
            "chance_score_": scale.chance_score,
        }
        if isinstance(solution, ChosenSet):
            own = {"redundancy_strength_": setting.strength, "objective_": solution.objective}
            return common | own | {"n_iter_": solution.n_exchanges + 1}
        return common | {
            "objective_": solution.objective,
            "duality_gap_": solution.gap,
            "n_iter_": solution.n_iter,
            "working_set_size_": solution.working_set_size,
        }

    def _setting(self, data: _Candidates, refinement: Refinement) -> tuple[validation.RefinementSettings, dict[str, Any]]:
        """Return the settings, as given or selected by validation, and the attributes with validation results."""
        paired = refinement.max_candidates is not None and data.matrix is None
        options = self._options
        powers = validation.POWERS if options.power == "cv" else (float(options.power),)
        strengths: Sequence[float | None] = (None,)
        if self.solution == "set":
            strengths = validation.strengths_of(self.redundancy_strength, validation.strength_for(self.score_func, data.y))
        pools = validation.pool_rules(self.n_candidates, data.n_selected, is_set=self.solution == "set", paired=paired)
        settings = validation.settings_of(pools, powers, int(np.count_nonzero(refinement.relevance)), paired, strengths)
        if not any(self._validated):
            return settings[0], {}
        y, folds = self._labels_and_folds(data)
        models = (
            [options.estimator]
            if options.estimator is not None
            else validation.default_models(y, min(len(train) for train, _ in folds))
        )
        table = validation.validated_scores(
            data.view.source, y, folds, partial(self._refinement_of, data), settings, data.n_selected, models, options.scoring
        )
        best = validation.best_setting(table)
        results = validation.results_of(settings, table, int(np.count_nonzero(refinement.usable)))
        return settings[best], {"cv_results_": results, "validation_score_": float(table[best].mean())}

    @property
    def _validated(self) -> tuple[bool, bool, bool]:
        """Whether the pool, the power and the strength of redundancy are selected by validation."""
        strength = self.solution == "set" and _is(self.redundancy_strength, "cv")
        return _is(self.n_candidates, "cv"), self._options.power == "cv", strength

    def _labels_and_folds(self, data: _Candidates) -> tuple[np.ndarray, list[Fold]]:
        """Return the class codes (or the numbers to predict) and the folds."""
        if _is(self.redundancy, "precomputed"):
            raise ValueError(f"{self._validated_parameter} requires samples, but redundancy='precomputed' has none.")
        y = data.y
        if y is None:
            raise ValueError(
                f"{self._validated_parameter} requires y to be passed, but the target y is None. Pass y, or set a number."
            )
        check_consistent_length(np.empty((data.view.n_samples, 0)), y)
        numeric = validation.is_numeric(np.asarray(y))
        known = read_targets(np.asarray(y)) if numeric else class_codes(y, data.view.n_samples, "n_candidates='cv'")[1]
        return known, read_folds(self.cv, known, classifier=not numeric, groups=data.sample_groups)

    @property
    def _validated_parameter(self) -> str:
        """First parameter that is selected by validation, as shown in messages."""
        names = ("n_candidates", "power", "redundancy_strength")
        return next(f"{name}='cv'" for name, given in zip(names, self._validated, strict=True) if given)

    def _refinement_of(self, data: _Candidates, X: Any, y: np.ndarray) -> Refinement:
        """Return the refinement for the training samples of a fold."""
        view = FeatureView.of(as_source(X, data.view.feature_names), n_threads=data.view.n_threads)
        return self._scored(data, view, X, y, self._usable(view, data.matrix))[0]

    def _scored(
        self, data: _Candidates, view: FeatureView, X: Any, y: Any, usable: np.ndarray
    ) -> tuple[Refinement, RelevanceScale]:
        """Return the refinement of the scores for some samples, and the scale of the relevances."""
        parameters = self.score_parameters or {}
        scores, p_values = checked_scores(self.score_func, parameters, view, X, y, usable)
        relevance, scale = relevance_of(scores, p_values, self.score_func, parameters, view, y, usable, self.fdr)
        # The rows of a matrix passed as X have the order of its columns, hence ties by position.
        order = order_by_score(view, scores, usable, by_position=_is(self.redundancy, "precomputed"))
        limited = scale.level > 0.0
        return self._refinement(view, scores, relevance, limited, usable, data.matrix, data.groups, order), scale

    def _refinement(
        self,
        view: FeatureView,
        scores: np.ndarray,
        relevance: np.ndarray,
        limited: bool,
        usable: np.ndarray,
        matrix: np.ndarray | None,
        groups: list[np.ndarray],
        order: np.ndarray,
    ) -> Refinement:
        options = self._options
        max_candidates = None
        if options.method == "alm" or not _is(self.redundancy, "cosine2"):
            max_candidates = MAX_REPRESENTATION if _is(self.redundancy, "sparse_representation") else MAX_MATRIX
        penalties = {name: getattr(options, name) for name in METHOD_OPTIONS["alm"]}
        return Refinement(
            scores=scores,
            relevance=relevance,
            limited=limited,
            order=order,
            usable=usable,
            redundancy=partial(self._redundancy, view, matrix),
            groups=groups,
            group_strength=float(options.group_strength),
            solve=solve if options.method == "working_set" else partial(solve_alm, **penalties),
            tol=float(options.tol),
            max_iter=int(options.max_iter),
            max_candidates=max_candidates,
        )

    def _usable(self, view: FeatureView, matrix: np.ndarray | None) -> np.ndarray:
        """Return a mask of the features that can be candidates: not constant, and with a positive diagonal of A."""
        varying = view.moments.norm > 0
        usable = varying if matrix is None else np.diag(matrix) > 0
        if matrix is not None and not _is(self.redundancy, "precomputed"):
            usable = usable & varying
        if not usable.any():
            view.moments.require_variation()
            raise ValueError("No feature has a positive redundancy with itself. The diagonal of redundancy must be positive.")
        return usable

    def _redundancy(self, view: FeatureView, matrix: np.ndarray | None, pool: np.ndarray) -> Redundancy:
        if matrix is not None:
            return MatrixRedundancy(matrix[np.ix_(pool, pool)])
        local = LocalFeatures(view, pool)
        if _is(self.redundancy, "cosine2"):
            return SquaredCosine(local.view, local.positions)
        if isinstance(self.redundancy, str):
            options = self._options
            parameters = {name: getattr(options, name) for name in MEASURE_OPTIONS[self.redundancy]}
            return MatrixRedundancy(MEASURES[self.redundancy](local.view, local.positions, **parameters))
        assert callable(self.redundancy)
        returned = self.redundancy(local.view.columns(local.positions))
        matrix = checked_matrix(returned, len(pool), "The matrix returned by redundancy")
        zeros = np.flatnonzero(np.diag(matrix) <= 0.0)
        if len(zeros):
            label = feature_label(view.feature_names, pool[zeros[0]])
            raise ValueError(f"redundancy returned 0 for feature {label!r} with itself. The diagonal must be positive.")
        return MatrixRedundancy(matrix)


def _is(value: object, name: str) -> bool:
    """Return True if a parameter is the given string (arrays would be compared elementwise)."""
    return isinstance(value, str) and value == name
