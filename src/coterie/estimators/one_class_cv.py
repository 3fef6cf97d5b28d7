"""Group discovery with one class, with size, C, threshold, scale and model chosen on held-out samples of both kinds."""

from __future__ import annotations

from dataclasses import dataclass
from numbers import Integral
from typing import Any, ClassVar

import numpy as np

from coterie._parameters import Rule
from coterie._sklearn import with_callbacks
from coterie.data.totals import Total, exact_sum, totals
from coterie.data.view import FeatureView
from coterie.estimators.one_class import GroupDiscoveryOneClass
from coterie.estimators.validated import ValidatedDiscovery, grid, validated_rules
from coterie.inputs.reading import opened, read_normality, read_sample_weight, read_source
from coterie.search.oracle import Representative
from coterie.search.samples import Samples
from coterie.validation.held_out import HeldOutScores, NormalityScores
from coterie.validation.nested import pairs_of
from coterie.validation.path_search import Fold

# Values of C that a number of them stands for, in units of 1 / (n sigma): from rejecting all training samples to hardly any.
_LOWEST_C, _HIGHEST_C = 0.1, 1000.0
_KINDS = {1: "normal samples", -1: "outliers"}


@dataclass(frozen=True)
class JudgedSamples(Samples):
    """Samples of which the normal ones are learnt from, and all are judged by.

    Attributes
    ----------
    y : ndarray of shape (n_samples,)
        1 for normal samples and -1 for outliers, whose ``weight`` is zero. All ``targets`` are 1.
    given_weight : ndarray of shape (n_samples,) or None
        Weights of the samples of both kinds; None where all are one.
    """

    given_weight: np.ndarray | None = None

    @property
    def score_weight(self) -> np.ndarray | None:
        """Weights of the samples in a held-out score."""
        return self.given_weight


class GroupDiscoveryOneClassCV(ValidatedDiscovery, GroupDiscoveryOneClass):
    r"""One-class group discovery, with the number of features, C and what predicts chosen by cross-validation.

    Every search learns from normal samples alone; known outliers serve to judge. For every C, threshold and scale each
    fold goes once along the path of rounds, up to ``max_features_to_select``; every size on the path is scored on the held-out
    samples, normal ones and outliers. All paths go through the data together, so that many of them read it as often
    as one. The model is then fitted to all normal samples with what has the best mean score.

    Parameters
    ----------
    max_features_to_select : int, default=100
        The largest number of support features to try (all features where there are fewer).

    min_features_to_select : int, default=1
        The smallest number of support features to choose; as many as ``max_features_to_select`` for just that number.

    Cs : int or list of float, default=10
        Values of C to choose from. A number means so many, in equal ratios from 0.1 to 1000, over the number of normal samples
        times the standard deviation of a typical feature's share in :math:`x \cdot \bar x`, the likeness of a sample to
        the mean. Over this range the share of training samples that are accepted rises from none to nearly all.

    thresholds : list of float or None, default=None
        Thresholds to choose from; None for ``threshold`` alone.

    rule : {"best", "one_se"}, default="best"
        Which candidate is chosen: that of the best mean score, or the one with the fewest features whose mean score is
        within one standard error of the best.

    nested : bool, default=False
        Whether to measure the score of the whole procedure, the choice included, on samples that had no part in it, too
        (``nested_scores_``). It takes about (n_folds + 1) / 2 times as long.

    n_features_per_round : int or "auto", default="auto"
        Support features chosen in a round, and so the step between sizes. ``"auto"`` is one a round up to ten, then
        a tenth of those found so far.

    reuse_features : bool, default=False
        Whether a block may have features of earlier blocks, as in :class:`GroupDiscoveryClassifier`.

    correlation : str, callable or None, default="pearson"
        Measure of correlation, one of those of :class:`GroupDiscoveryClassifier`; None lifts the constraint.

    threshold : float, default=0.7
        Absolute correlation in (0, 1] from which on two features belong to the same group.

    n_bins : int, default=10
        Bins of equal width over a feature's range, for symmetrical uncertainty.

    affiliates : {"complete", "ranked"}, default="complete"
        Collect every feature that is correlated with a support feature, or only those met while
        looking for support features.

    representative : {"score", "medoid"} or callable, default="score"
        Which member of a would-be group is its support feature.

    fixed_features : array-like of int, str or bool, default=None
        Features (indices, names or a mask) that are support features from the start.

    keep : {"support", "groups"}, default="support"
        What :meth:`transform` keeps: the support features, or these and the affiliated ones.

    predict_with : {"support", "groups"} or list of both, default="support"
        What the prediction rests on, in the folds as well: the support features, or these and the affiliated ones; of a
        list, the better one. ``"groups"`` is tried at about a dozen sizes, each of which takes a linear model of its own.

    standardize : bool, "auto" or list of bool, default="auto"
        Judge features by their values divided by their standard deviation; ``"auto"`` and ``[False, True]`` try both.

    cv : int or cross-validation generator, default=5
        Folds that decide. A number means so many shuffled folds, with their part of the outliers in each.

    scoring : str, callable or None, default="balanced_accuracy"
        The score, as in scikit-learn, of predicted labels or decision values: ``"balanced_accuracy"`` (or None),
        ``"roc_auc"``, ``"average_precision"``, ...; normal samples are the positive class. All of these need samples of
        both kinds. What a callable ``scorer(estimator, X, y)`` gets as X are the held-out samples' decision values, of
        shape (n_samples, 1), and as estimator one that predicts from these; it may do without outliers. Sample weights
        are handed on to it.

    embedded_cv : int, cross-validation generator or None, default=None
        Embedded cross-validation, the ``cv`` of :class:`GroupDiscoveryOneClass`.

    cv_part : {"training", "fold"}, default="training"
        The part of the samples that each fold of ``embedded_cv`` sees: all but its own, or its own alone.

    max_rounds : int, default=None
        Limit of rounds.

    tol : float, default=1e-4
        Relative precision of the optimality gap.

    n_jobs : int, default=None
        Number of threads, or of processes that share the paths where they can be forked (Linux; the environment
        variable ``COTERIE_FORK=0`` forbids it). None: all cores, but one in a worker of a parallel job. The result does
        not depend on it.

    random_state : int, RandomState instance or None, default=None
        Seed of the folds.

    verbose : int, default=0
        Show progress: a bar on a terminal, lines elsewhere.

    Attributes
    ----------
    n_features_ : int
        The number of support features chosen.

    C_, threshold_ : float
        C and threshold chosen.

    standardize_ : bool
        Whether features are judged by their values over their standard deviation.

    predict_with_ : {"support", "groups"}
        What the prediction rests on.

    best_score_ : float
        Mean score of what was chosen.

    cv_results_ : dict of ndarray
        A row for each candidate; ``pandas.DataFrame(model.cv_results_)`` makes a table of it. The columns are ``C``,
        ``threshold``, ``standardize``, ``predict_with``, ``n_features``, the mean and the standard deviation of the scores
        (``mean_test_score``, ``std_test_score``) and those of each fold (``split0_test_score``, ...).

    nested_scores_ : ndarray of shape (n_folds,)
        For each fold the score of what is chosen and fitted without its samples; only with ``nested``.

    constant_scores_ : ndarray of shape (n_folds,)
        For each fold the score of taking all samples for normal (0.5 for the default and ``"roc_auc"``); only with ``nested``.

    offset_ : float
        The margin: ``decision_function = score_samples - offset_``.

    groups_, support_features_, support_coef_, coef_, history_, ...
        As in :class:`GroupDiscoveryOneClass`, for the model fitted to all normal samples.

    See Also
    --------
    GroupDiscoveryOneClass : With a given number of features, or ``"auto"``, and a given C; needs no outliers.
    GroupDiscoveryClassifierCV : For classes of which each has samples enough to learn from.

    Notes
    -----
    ``best_score_`` is the best of many and therefore a little too good; score the model on other data.
    Of equal scores the one with fewer features counts, then the smaller C. The outliers choose the settings, so these suit
    outliers of their kind.

    ``"roc_auc"`` and ``"average_precision"`` look at the order of the samples and not at the margin. What they choose
    may have the better ``decision_function`` and a small C, with which :meth:`predict` rejects nearly all samples.

    Examples
    --------
    >>> import numpy as np
    >>> from coterie import GroupDiscoveryOneClassCV
    >>> rng = np.random.default_rng(0)
    >>> X = rng.random((150, 30)) < 0.05
    >>> X[:120, :3] |= rng.random((120, 3)) < 0.9
    >>> y = np.repeat([1, -1], [120, 30])
    >>> model = GroupDiscoveryOneClassCV(10, rule="one_se", random_state=0).fit(X, y)
    >>> sorted(model.support_features_.tolist())
    [0, 1, 2]
    >>> model.predict([[1] * 3 + [0] * 27, [0] * 30]).tolist()
    [1, -1]

    Without outliers the score must be a function that needs none, such as one that wants 95 % of them accepted:

    >>> def accepts(model, X, y):
    ...     return -abs((model.predict(X) == 1).mean() - 0.95)
    >>> model = GroupDiscoveryOneClassCV(10, scoring=accepts, random_state=0).fit(X[:120])
    >>> bool((model.predict(X[:120]) == 1).mean() > 0.8)
    True
    """

    _plain = GroupDiscoveryOneClass
    _allowed: ClassVar[dict[str, Rule]] = validated_rules(GroupDiscoveryOneClass)
    _stratified = True
    _centred = False

    def __init__(
        self,
        max_features_to_select: int = 100,
        *,
        min_features_to_select: int = 1,
        Cs: Any = 10,
        thresholds: Any = None,
        rule: str = "best",
        nested: bool = False,
        n_features_per_round: int | str = "auto",
        reuse_features: bool = False,
        correlation: Any = "pearson",
        threshold: float = 0.7,
        n_bins: int = 10,
        affiliates: str = "complete",
        representative: Representative = "score",
        fixed_features: Any = None,
        keep: str = "support",
        predict_with: Any = "support",
        standardize: Any = "auto",
        cv: Any = 5,
        scoring: Any = "balanced_accuracy",
        embedded_cv: Any = None,
        cv_part: str = "training",
        max_rounds: int | None = None,
        tol: float = 1e-4,
        n_jobs: int | None = None,
        random_state: Any = None,
        verbose: int = 0,
    ) -> None:
        self.max_features_to_select = max_features_to_select
        self.min_features_to_select = min_features_to_select
        self.Cs = Cs
        self.thresholds = thresholds
        self.rule = rule
        self.nested = nested
        self.n_features_per_round = n_features_per_round
        self.reuse_features = reuse_features
        self.correlation = correlation
        self.threshold = threshold
        self.n_bins = n_bins
        self.affiliates = affiliates
        self.representative = representative
        self.fixed_features = fixed_features
        self.keep = keep
        self.predict_with = predict_with
        self.standardize = standardize
        self.cv = cv
        self.scoring = scoring
        self.embedded_cv = embedded_cv
        self.cv_part = cv_part
        self.max_rounds = max_rounds
        self.tol = tol
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose

    @with_callbacks
    def fit(
        self, X: Any, y: Any = None, sample_weight: Any = None, *, feature_names: Any = None, client: Any = None
    ) -> GroupDiscoveryOneClassCV:
        """Choose on held-out samples of both kinds, then find the groups in all normal samples.

        Parameters
        ----------
        X : {array-like, sparse matrix, data frame, FeatureSource, path, Dataset, Store} of shape (n_samples, n_features)
            Normal samples, and known outliers if there are any; a path is opened with :func:`coterie.data.open_features`.
        y : array-like of shape (n_samples,), default=None
            1 for normal samples and -1 for outliers. None takes the labels that a path, data set or store has; without any,
            all samples are normal, and ``scoring`` must be a function that works so.
        sample_weight : array-like of shape (n_samples,), default=None
            Non-negative weights; a weight of 2 is the same as having the sample twice.
        feature_names : array-like of str or callable, default=None
            Names of the features, for data that have none; or a function that returns them, such as the
            ``get_feature_names_out`` of the step before in a pipeline.
        client : distributed.Client, default=None
            Client of a Dask cluster whose workers hold the features of X: a store (its name, its address, or opened), or a
            Dask array chunked by features. None takes the active client, if there is one.

        Returns
        -------
        self : GroupDiscoveryOneClassCV
            The fitted estimator.
        """
        self._fit(X, y, sample_weight, feature_names, client)
        return self

    def fit_predict(self, X: Any, y: Any = None, sample_weight: Any = None) -> np.ndarray:
        """Fit to X and y, and predict X: 1 for normal samples, -1 for outliers.

        Parameters
        ----------
        X, y, sample_weight
            As in :meth:`fit`.

        Returns
        -------
        labels : ndarray of shape (n_samples,)
        """
        return self.fit(X, y, sample_weight).predict(X)

    def _read(self, X: Any, y: Any, sample_weight: Any = None) -> JudgedSamples:
        X, y = opened(X, y)
        reading = read_source(self, X)
        labels = read_normality(y, reading.source.shape[0])
        given = read_sample_weight(sample_weight, labels)
        normal = labels == 1
        weight = given if normal.all() else np.where(normal, 1.0 if given is None else given, 0.0)
        if weight is not None and not weight.any():
            raise ValueError("There are no normal samples (label 1) of positive weight to learn from.")
        return JudgedSamples(reading.attributes, reading.source, labels, np.ones(len(labels)), weight, given_weight=given)

    def _held_out_scores(self, data: Samples) -> HeldOutScores:
        scores = NormalityScores(self.scoring, data)
        if self._compares and data.weight is data.score_weight:  # all samples are learnt from
            raise ValueError(
                f"scoring={self.scoring!r} compares normal samples with outliers, but no sample is known to be an outlier. "
                "Give y with 1 for normal samples and -1 for known outliers, or as scoring a function (estimator, X, y) that "
                "works without them, or take GroupDiscoveryOneClass, which needs no score."
            )
        return scores

    @property
    def _compares(self) -> bool:
        """Whether the score needs both kinds of samples; a function of the user's may not."""
        return not callable(self.scoring)

    def _folds(self, data: Samples) -> list[Fold]:
        if not self._compares:
            return super()._folds(data)
        if isinstance(self.cv, Integral) and not isinstance(self.cv, bool):
            for label, kind in _KINDS.items():
                count = int(np.count_nonzero(data.y == label))
                if int(self.cv) > count:
                    raise ValueError(f"cv={self.cv} folds are more than the {count} {kind}; each is scored on both kinds.")
        folds = super()._folds(data)
        self._check_kinds(data, [("A fold", fold) for fold in folds])
        if self.nested:
            self._check_kinds(data, [("A pair of folds", pair) for pair in pairs_of(folds)])
        return folds

    def _check_kinds(self, data: Samples, folds: list[tuple[str, Fold]]) -> None:
        """Refuse folds that cannot be scored."""
        weight = np.ones(len(data.y)) if data.score_weight is None else data.score_weight
        for name, fold in folds:
            for part in fold.parts:
                for label, kind in _KINDS.items():
                    if not weight[part][data.y[part] == label].any():
                        raise ValueError(
                            f"{name} of cv holds out no {kind} of positive weight, which scoring={self.scoring!r} needs; "
                            "choose fewer or other folds."
                        )

    def _scales(self, data: Samples) -> list[bool]:
        # What a class has much of, and what it has with little spread, are both typical of it: neither way is the better one.
        return [False, True] if isinstance(self.standardize, str) else super()._scales(data)

    def _penalties(self, view: FeatureView) -> list[float]:
        return grid(self.Cs, _LOWEST_C, _HIGHEST_C, lambda: _unit(view))


def _unit(view: FeatureView) -> float:
    r"""The number of samples times a typical standard deviation of :math:`x \cdot \bar x`.

    With a small C all samples have the dual variable 1/n, and the weights are the features' means. To a first approximation
    a larger C moves the dual variable of sample i by C times what :math:`x_i \cdot \bar x` is short of its mean, which
    matters when it is as large as 1/n. A single feature adds its mean times its standard deviation to that; the typical one is
    a mean in which features count by their squared means, since those of large means are the first to be selected. A mean
    counts as no smaller than its standard error, so that features about zero have a unit, too.
    """
    largest, widest = (max(values) for values in zip(*view.map_blocks(_largest), strict=True))
    products, shares = totals(view.map_blocks(_shares, largest, widest))
    return view.moments.total_weight * (products / shares) * largest * widest


def _mean_and_spread(view: FeatureView) -> tuple[np.ndarray, np.ndarray]:
    """Means (at least their standard errors) and standard deviations of the features that vary, as the view has them."""
    moments, total = view.moments, view.moments.total_weight
    varies = moments.norm > 0.0
    spread = moments.norm[varies] / np.sqrt(total)
    mean = np.hypot(moments.mean[varies], spread / np.sqrt(total))
    return (mean, spread) if view.scale is None else (mean / view.scale[varies], spread / view.scale[varies])


def _largest(view: FeatureView) -> tuple[float, float]:
    """The largest mean and standard deviation of a block."""
    mean, spread = _mean_and_spread(view)
    return float(mean.max(initial=0.0)), float(spread.max(initial=0.0))


def _shares(view: FeatureView, largest: float, widest: float) -> list[Total]:
    """Sums over the features of a block: of what counts, by its share, and of the shares."""
    mean, spread = _mean_and_spread(view)
    share = (mean / largest) ** 2  # products of large features would overflow
    return [exact_sum(share * ((mean / largest) * (spread / widest))), exact_sum(share)]
