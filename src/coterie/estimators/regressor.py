"""Group discovery for regression."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
from sklearn.base import RegressorMixin
from sklearn.metrics import r2_score

from coterie._parameters import Flag, Rule
from coterie._sklearn import with_callbacks
from coterie.estimators.base import GroupDiscovery
from coterie.inputs.reading import opened, read_features, read_sample_weight, read_targets, with_covariates
from coterie.search.oracle import Representative
from coterie.search.samples import Samples
from coterie.solver.losses import Loss, SquaredLoss


class GroupDiscoveryRegressor(RegressorMixin, GroupDiscovery):
    """Find the few features that predict a number, and around each one its correlated features.

    The Group Discovery Machine with squared loss: the parameters and attributes are those of
    :class:`GroupDiscoveryClassifier`, and so are the guarantees.

    Parameters
    ----------
    n_features_to_select : int, float or "auto", default=100
        Number of support features, or their fraction of all features; where there are fewer, all that can be
        had, with a warning. ``"auto"`` goes on until the optimum over all admissible sets is reached to
        ``tol``; without ``reuse_features``, which may never get there, until new features change the objective by less.

    n_features_per_round : int or "auto", default="auto"
        Support features chosen in a round. Those of one round do not know of each other, so fewer a round take longer
        and choose more carefully. ``"auto"`` is one a round up to ten, then a tenth of those found so far, rounded up
        (fixed ones aside), so that the first features are the same for every ``n_features_to_select``.

    reuse_features : bool, default=False
        Whether a block, the features of a round, may have features of earlier blocks. False, as in TPAMI 2016: every feature
        is chosen once, no two support features are correlated at or over ``threshold``, and the weights are optimal for the
        blocks that were found. True, as in ICML 2012: each round takes the most violated of all sets of uncorrelated features,
        a feature's weight is the sum over its blocks, and the search can reach the optimum over all these sets
        (``converged_at_``). Then only the features of one block are uncorrelated; support features of different blocks
        may be correlated.

    correlation : str, callable or None, default="pearson"
        Measure of correlation, one of those of :class:`GroupDiscoveryClassifier`. None lifts the
        constraint: no groups, the best features only.

    threshold : float, default=0.7
        Absolute correlation in (0, 1] from which on two features belong to the same group. The paper
        uses 0.7 for Pearson's coefficient and 0.6 for symmetrical uncertainty.

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

    predict_with : {"support", "groups"}, default="support"
        What the prediction rests on: the support features with the weights of the discovery, or support and
        affiliated features together, in ridge regression with the same ``C`` and weights.
        The groups do not depend on it. ``"groups"`` holds all their columns in memory, dense ones as float64.

    C : float, default=1.0
        Weight of the squared errors. The regulariser grows with the square of the targets' scale
        over the features' scale.

    fit_intercept : bool, default=True
        Whether to fit an intercept.

    standardize : bool or "auto", default="auto"
        Judge features by their values divided by their standard deviation. X is not copied, and the weights are those of
        the original features. ``"auto"`` does so unless at least nine of ten values are zero (words, clicks): otherwise
        features in small units could not win, but rare things must not be blown up. The papers do not (False).

    cv : int, cross-validation generator or None, default=None
        Embedded cross-validation: in each round every fold proposes support features from its part of the
        samples, and those with the most votes are taken. A number means so many shuffled folds. A round
        may then choose fewer features than ``n_features_per_round``.

    cv_part : {"training", "fold"}, default="training"
        The part of the samples that each fold of ``cv`` sees: all but its own, or its own alone (the paper's
        partitions, which find less: a fifth of the samples with five folds).

    max_rounds : int, default=None
        Limit of rounds.

    tol : float, default=1e-4
        Relative precision: of the weights, given the blocks (a warning says where it is missed), of the bounds for
        ``converged_at_``, and of the objective for ``"auto"``.

    n_jobs : int, default=None
        Number of threads; the result does not depend on it.

    random_state : int, RandomState instance or None, default=None
        Seed of the folds of ``cv``; nothing else is random.

    verbose : int, default=0
        Show progress: a bar on a terminal, lines elsewhere.

    Attributes
    ----------
    groups_ : FeatureGroups
        Groups in order of selection.

    support_features_ : ndarray of shape (n_support,)
        Indices of the support features in order of selection.

    support_coef_ : ndarray of shape (1, n_support)
        Their weights, sums over the blocks that a feature is in.

    coef_ : ndarray of shape (n_features,)
        Weights of all features in the prediction.

    prediction_features_, prediction_coef_ : ndarray of shape (n_used,), (1, n_used)
        The features that the prediction reads, and their weights: those of the support features unless
        ``predict_with="groups"``.

    prediction_gap_ : float
        Certified relative optimality gap of the model that predicts, given its features (and blocks).

    intercept_ : float
        Intercept.

    standardize_ : bool
        Whether features were judged by their values over their standard deviation.

    objective_, dual_gap_ : float
        Dual objective of the problem over the blocks that were found, and its certified relative optimality gap.

    lower_bound_, upper_bound_ : float
        Bounds of the optimum over all admissible sets, found or not (the papers' beta and phi): sets of at most as many
        features as the largest block, no two of them correlated at or over ``threshold``.

    block_weights_ : ndarray of shape (n_blocks,)
        The papers' mu: the share of each block of ``history_`` in the model. They add up to 1.

    history_ : list of Round
        What happened in each round.

    n_rounds_, converged_at_ : int
        Number of rounds, and the first one after which the bounds lay within ``tol`` of each other, relative to the
        objective: the optimum over all admissible sets was reached (or None).

    scores_ : ndarray of shape (n_features,)
        Scores of all features for the final dual variables.

    dual_coef_ : ndarray of shape (1, n_samples)
        Dual variables: C times the weighted errors.

    n_correlations_evaluated_, n_correlations_possible_ : int
        Correlations that were computed (one that is computed again counts again, up to the number of pairs), and all pairs
        of features.

    votes_ : ndarray of int of shape (n_features,)
        How often each feature was proposed by a fold; only with ``cv``.

    n_features_in_ : int
        Number of features seen in ``fit``.

    feature_names_in_ : ndarray of shape (n_features_in_,)
        Names of the features, when X has names that are all strings.

    covariate_coef_, covariate_names_ : ndarray of shape (n_outputs, n_covariates), (n_covariates,)
        Weights and names of the covariates; only with ``covariates``.

    See Also
    --------
    GroupDiscoveryClassifier : For classes.
    sklearn.linear_model.Lasso : A sparse linear model that keeps one feature of each group at best.

    Examples
    --------
    >>> import numpy as np
    >>> from coterie import GroupDiscoveryRegressor
    >>> rng = np.random.default_rng(0)
    >>> X = rng.standard_normal((100, 20))
    >>> X[:, 5] = X[:, 2] + 0.3 * X[:, 5]
    >>> y = 3 * X[:, 2] - X[:, 7]
    >>> model = GroupDiscoveryRegressor(2, n_features_per_round=1).fit(X, y)
    >>> model.groups_
    2 groups, 3 features
      1. 2 ~ 5 (+0.97)
      2. 7 (alone)
    """

    _allowed: ClassVar[dict[str, Rule]] = {**GroupDiscovery._allowed, "fit_intercept": Flag()}

    def __init__(
        self,
        n_features_to_select: int | float | str = 100,
        *,
        n_features_per_round: int | str = "auto",
        reuse_features: bool = False,
        correlation: Any = "pearson",
        threshold: float = 0.7,
        n_bins: int = 10,
        affiliates: str = "complete",
        representative: Representative = "score",
        fixed_features: Any = None,
        keep: str = "support",
        predict_with: str = "support",
        C: float = 1.0,
        fit_intercept: bool = True,
        standardize: bool | str = "auto",
        cv: Any = None,
        cv_part: str = "training",
        max_rounds: int | None = None,
        tol: float = 1e-4,
        n_jobs: int | None = None,
        random_state: Any = None,
        verbose: int = 0,
    ) -> None:
        self.n_features_to_select = n_features_to_select
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
        self.C = C
        self.fit_intercept = fit_intercept
        self.standardize = standardize
        self.cv = cv
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
    ) -> GroupDiscoveryRegressor:
        """Find groups of features that predict a number.

        Parameters
        ----------
        X : {array-like, sparse, data frame, AnnData, FeatureSource, path, Dataset, Store} of shape (n_samples, n_features)
            Training data; a path is opened with :func:`coterie.data.open_features`.
        y : array-like of shape (n_samples,) or str, default=None
            Targets; of AnnData also the name of a column of ``obs``, of a path that of its labels. None takes those that a
            path, data set or store has.
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
        self : GroupDiscoveryRegressor
            The fitted estimator.
        """
        self._fit(X, y, sample_weight, feature_names, client, covariates=covariates)
        return self

    def _read(self, X: Any, y: Any, sample_weight: Any = None, covariates: Any = None) -> Samples:
        X, covariates, y = with_covariates(X, covariates, y)
        reading, y = read_features(self, X, y)
        targets = read_targets(y)
        values, known = self._read_covariates(covariates, targets)
        weight = read_sample_weight(sample_weight, targets)
        return Samples({**reading.attributes, **known}, reading.source, y, targets, weight, values)

    def _loss(self, data: Samples, weight: np.ndarray) -> Loss:
        return SquaredLoss(data.targets, weight, self.C, bool(self.fit_intercept))

    def _fitted_state(self, loop: Any) -> dict[str, Any]:
        state = super()._fitted_state(loop)
        del state["margin_"]  # a classifier's
        return {**state, "intercept_": float(state["intercept_"][0])}

    def predict(self, X: Any, covariates: Any = None) -> np.ndarray:
        """Predicted value of each sample.

        Parameters
        ----------
        X : {array-like, sparse matrix, data frame} of shape (n_samples, n_features)
        covariates : array-like or data frame of shape (n_samples, n_covariates), default=None
            Those of these samples; needed where the model was fitted with covariates.

        Returns
        -------
        values : ndarray of shape (n_samples,)
        """
        return self._outputs(X, covariates)[:, 0]

    def score(self, X: Any, y: Any = None, sample_weight: Any = None, covariates: Any = None) -> float:
        """R², the share of the targets' variance that is predicted.

        Parameters
        ----------
        X : as for :meth:`fit`
        y : array-like of shape (n_samples,), str or None, default=None
            Targets, as for :meth:`fit`.
        sample_weight : array-like of shape (n_samples,), default=None
        covariates : array-like or data frame of shape (n_samples, n_covariates), default=None
            Those of these samples; needed where the model was fitted with covariates.

        Returns
        -------
        score : float
        """
        X, covariates, y = with_covariates(X, covariates, y)
        X, y = opened(X, y)
        return float(r2_score(y, self.predict(X, covariates), sample_weight=sample_weight))

    @property
    def coef_(self) -> np.ndarray:
        """Weights of all features, of shape (n_features,); built on demand."""
        return super().coef_[0]
