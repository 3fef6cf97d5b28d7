"""Group discovery for two or more classes with size, C, threshold and model chosen by cross-validation."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np

from coterie._parameters import Rule
from coterie._sklearn import with_callbacks
from coterie.estimators.classifier import GroupDiscoveryClassifier
from coterie.estimators.validated import ValidatedDiscovery, validated_rules
from coterie.inputs.reading import class_weights
from coterie.search.oracle import Representative
from coterie.search.prediction import LinearModel
from coterie.search.samples import Samples
from coterie.validation.calibration import calibration_slope
from coterie.validation.path_search import Fold


class GroupDiscoveryClassifierCV(ValidatedDiscovery, GroupDiscoveryClassifier):
    """Group discovery for two or more classes, with the number of features, C and what predicts chosen by cross-validation.

    For every C, threshold and scale each fold goes once along the path of rounds, up to ``max_features_to_select``; every size
    on the path is scored on the held-out samples. All paths go through the data together, so that many of them read it
    as often as one. The model is then fitted to all samples with what has the best mean score.

    Parameters
    ----------
    max_features_to_select : int, default=100
        The largest number of support features to try (all features where there are fewer).

    min_features_to_select : int, default=1
        The smallest number of support features to choose; as many as ``max_features_to_select`` for just that number.

    Cs : int or list of float, default=10
        Values of C, the weight of the classification errors, to choose from. A number means so many, in equal ratios from 1e-4
        to 10, over a typical variance of the features (1 for standardised ones).

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

    fit_intercept : bool, default=True
        Whether to fit an intercept.

    standardize : bool, "auto" or list of bool, default="auto"
        Judge features by their values divided by their standard deviation; ``[False, True]`` tries both. ``"auto"`` does so,
        and tries both where at least nine of ten values are zero.

    class_weight : dict, "balanced" or None, default=None
        Weights of the classes in the loss.

    cv : int or cross-validation generator, default=5
        Folds that decide. A number means so many shuffled, stratified folds.

    scoring : str, callable or None, default=None
        The score, as in scikit-learn; None for the accuracy. Sample weights are handed on to it. What a
        callable ``scorer(estimator, X, y)`` gets as X are the held-out samples' decision values, of shape
        (n_samples, n_outputs), and as estimator one that predicts from these.

    embedded_cv : int, cross-validation generator or None, default=None
        Embedded cross-validation, the ``cv`` of :class:`GroupDiscoveryClassifier`.

    cv_part : {"training", "fold"}, default="training"
        The part of the samples that each fold of ``embedded_cv`` sees: all but its own, or its own alone.

    max_rounds : int, default=None
        Limit of rounds.

    tol : float, default=1e-4
        Relative precision of the weights, given the blocks, and of the bounds for ``converged_at_``.

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
        For each fold the score of a prediction that does not look at the features; only with ``nested``.

    calibration_slope_ : float
        What decision values are multiplied by to be logits of probabilities; see :meth:`predict_proba`.

    groups_, support_features_, support_coef_, coef_, intercept_, classes_, history_, ...
        As in :class:`GroupDiscoveryClassifier`, for the model fitted to all samples.

    See Also
    --------
    GroupDiscoveryClassifier : With a given number of features, or ``"auto"``, and a given C.
    GroupDiscoveryRegressorCV : For numbers.
    sklearn.feature_selection.RFECV : Recursive elimination with the size chosen in the same way.

    Notes
    -----
    ``best_score_`` is the best of many and therefore a little too good; score the model on other data.
    Of equal scores the one with fewer features counts, then the smaller C.

    Examples
    --------
    >>> from coterie import GroupDiscoveryClassifierCV
    >>> from coterie.datasets import make_support_affiliated
    >>> data = make_support_affiliated(400, 60, n_support=3, n_true=7, random_state=0)
    >>> model = GroupDiscoveryClassifierCV(20, rule="one_se", random_state=0).fit(data.X, data.y)
    >>> model.n_features_
    3
    >>> len(model.groups_)
    3
    """

    _plain = GroupDiscoveryClassifier
    _calibrates = True
    _allowed: ClassVar[dict[str, Rule]] = validated_rules(GroupDiscoveryClassifier)

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
        fit_intercept: bool = True,
        standardize: Any = "auto",
        class_weight: Any = None,
        cv: Any = 5,
        scoring: Any = None,
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
        self.fit_intercept = fit_intercept
        self.standardize = standardize
        self.class_weight = class_weight
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
        self,
        X: Any,
        y: Any = None,
        sample_weight: Any = None,
        *,
        feature_names: Any = None,
        covariates: Any = None,
        client: Any = None,
    ) -> GroupDiscoveryClassifierCV:
        """Choose on held-out samples, then find the groups in all samples.

        Parameters
        ----------
        X : {array-like, sparse, data frame, AnnData, FeatureSource, path, Dataset, Store} of shape (n_samples, n_features)
            Training data; a path is opened with :func:`coterie.data.open_features`.
        y : array-like of shape (n_samples,) or str, default=None
            Labels of two or more classes; of AnnData also the name of a column of ``obs``, of a path that of its labels. None
            takes those that a path, data set or store has.
        sample_weight : array-like of shape (n_samples,), default=None
            Non-negative weights; a weight of 2 is the same as having the sample twice.
        feature_names : array-like of str or callable, default=None
            Names of the features, for data that have none; or a function that returns them, such as the
            ``get_feature_names_out`` of the step before in a pipeline.
        covariates : array-like or data frame of shape (n_samples, n_covariates), default=None
            What is to be accounted for and not discovered (age, sex, principal components): fitted together with the
            features, without a penalty that counts. None takes those that a data set or store has.
        client : distributed.Client, default=None
            Client of a Dask cluster whose workers hold the features of X: a store (its name, its address, or opened), or a
            Dask array chunked by features. None takes the active client, if there is one.

        Returns
        -------
        self : GroupDiscoveryClassifierCV
            The fitted estimator.
        """
        self._fit(X, y, sample_weight, feature_names, client, covariates=covariates)
        return self

    def _check_fold(self, data: Samples, weight: np.ndarray, name: str) -> None:
        """Refuse a fold whose training part lacks a class."""
        classes = data.attributes["classes_"]
        absent = classes[np.bincount(data.targets, weight, minlength=len(classes)) == 0.0]
        if len(absent):
            raise ValueError(
                f"{name} of cv leaves no samples of class {absent.tolist()[0]!r} to learn from. "
                "Shuffle the samples, or use StratifiedKFold, which a whole number stands for."
            )

    def _calibration(self, data: Samples, folds: Sequence[Fold], models: Sequence[LinearModel]) -> dict[str, Any]:
        """The calibration of the chosen models on what each of them has not seen."""
        outputs, samples = [], []
        for fold, model in zip(folds, models, strict=True):
            samples.append(fold.parts[0])
            outputs.append(model.outputs(data.source, fold.parts[0], data.covariates))
        held_out = np.concatenate(samples)
        weight = np.ones(len(data.y)) if data.weight is None else data.weight
        weight = class_weights(self.class_weight, data.attributes["classes_"], data.targets, weight)
        slope = calibration_slope(np.concatenate(outputs), data.targets[held_out], weight[held_out])
        return {"calibration_slope_": slope}
