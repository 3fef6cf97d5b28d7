"""Group discovery with one class: what is like the training data, and what is not."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.base import OutlierMixin

from coterie._sklearn import with_callbacks
from coterie.estimators.base import GroupDiscovery
from coterie.inputs.reading import read_sample_weight, read_source
from coterie.search.oracle import Representative
from coterie.search.samples import Samples
from coterie.solver.losses import Loss, SquaredHinge


class GroupDiscoveryOneClass(OutlierMixin, GroupDiscovery):
    r"""Find the few features that are typical of one class, and tell what does not belong to it.

    The one-class Group Discovery Machine (TPAMI 2016, section 3.8): all samples have the label 1 and
    there is no intercept, so a feature scores by :math:`f_j \cdot \alpha` and a sample is normal where
    :math:`w \cdot x \ge \gamma`, the margin learnt with the weights.

    Parameters
    ----------
    n_features_to_select : int, float or "auto", default="auto"
        Number of support features, or their fraction of all features. ``"auto"`` goes on until the
        optimum over all admissible sets is reached to ``tol``; without ``reuse_features``, which may never get there, until
        new features change the objective by less, as in the paper.

    n_features_per_round : int or "auto", default=10
        Support features chosen in a round (2, 5 or 10 in the paper). ``"auto"`` is one a round up to ten, then a
        tenth of those found so far, rounded up.

    reuse_features : bool, default=True
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
        affiliated features together, in a one-class machine with the same loss, ``C`` and weights.
        The groups do not depend on it. ``"groups"`` holds all their columns in memory, dense ones as float64.

    C : float, default=1.0
        Plays the part of 1 / (nu n) in the one-class SVM: the smaller it is, the more training
        samples lie below the margin.

    standardize : bool, default=False
        Judge features by their values divided by their standard deviation; X is not copied.

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

    coef_ : ndarray of shape (1, n_features)
        Weights of all features in the prediction.

    prediction_features_, prediction_coef_ : ndarray of shape (n_used,), (1, n_used)
        The features that the prediction reads, and their weights: those of the support features unless
        ``predict_with="groups"``.

    prediction_gap_ : float
        Certified relative optimality gap of the model that predicts, given its features (and blocks).

    offset_ : float
        The margin: ``decision_function = score_samples - offset_``.

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

    votes_ : ndarray of int of shape (n_features,)
        How often each feature was proposed by a fold; only with ``cv``.

    n_features_in_ : int
        Number of features seen in ``fit``.

    feature_names_in_ : ndarray of shape (n_features_in_,)
        Names of the features, when X has names that are all strings.

    See Also
    --------
    sklearn.svm.OneClassSVM : Uses all features.

    Examples
    --------
    >>> import numpy as np
    >>> from coterie import GroupDiscoveryOneClass
    >>> rng = np.random.default_rng(0)
    >>> X = rng.random((100, 30)) < 0.05
    >>> X[:, :3] = rng.random((100, 3)) < 0.9
    >>> model = GroupDiscoveryOneClass(3).fit(X)
    >>> sorted(model.support_features_.tolist())
    [0, 1, 2]
    >>> model.predict([[1] * 3 + [0] * 27, [0] * 30]).tolist()
    [1, -1]
    """

    def __init__(
        self,
        n_features_to_select: int | float | str = "auto",
        *,
        n_features_per_round: int | str = 10,
        reuse_features: bool = True,
        correlation: Any = "pearson",
        threshold: float = 0.7,
        n_bins: int = 10,
        affiliates: str = "complete",
        representative: Representative = "score",
        fixed_features: Any = None,
        keep: str = "support",
        predict_with: str = "support",
        C: float = 1.0,
        standardize: bool = False,
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
        self.standardize = standardize
        self.cv = cv
        self.cv_part = cv_part
        self.max_rounds = max_rounds
        self.tol = tol
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = False
        return tags

    @with_callbacks
    def fit(
        self, X: Any, y: Any = None, sample_weight: Any = None, *, feature_names: Any = None, client: Any = None
    ) -> GroupDiscoveryOneClass:
        """Find groups of features that are typical of the samples.

        Parameters
        ----------
        X : {array-like, sparse matrix, data frame, FeatureSource} of shape (n_samples, n_features)
            Samples of one class.
        y : ignored
            For the common interface.
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
        self : GroupDiscoveryOneClass
            The fitted estimator.
        """
        self._fit(X, None, sample_weight, feature_names, client)
        return self

    def _read(self, X: Any, y: Any, sample_weight: Any = None) -> Samples:
        reading = read_source(self, X)
        labels = np.ones(reading.source.shape[0])
        return Samples(reading.attributes, reading.source, labels, labels, read_sample_weight(sample_weight, labels))

    def _loss(self, data: Samples, weight: np.ndarray) -> Loss:
        return SquaredHinge(data.targets, weight, self.C, fit_intercept=False)

    def _fitted_state(self, loop: Any) -> dict[str, Any]:
        state = super()._fitted_state(loop)
        return {**state, "offset_": float(state.pop("margin_")[0])}

    def score_samples(self, X: Any) -> np.ndarray:
        """How typical each sample is: ``w · x``.

        Parameters
        ----------
        X : {array-like, sparse matrix, data frame} of shape (n_samples, n_features)

        Returns
        -------
        scores : ndarray of shape (n_samples,)
        """
        return self._outputs(X)[:, 0]

    def decision_function(self, X: Any) -> np.ndarray:
        """``score_samples(X) - offset_``: negative for outliers.

        Parameters
        ----------
        X : {array-like, sparse matrix, data frame} of shape (n_samples, n_features)

        Returns
        -------
        scores : ndarray of shape (n_samples,)
        """
        return self.score_samples(X) - self.offset_

    def predict(self, X: Any) -> np.ndarray:
        """1 for samples like the training data, -1 for outliers.

        Parameters
        ----------
        X : {array-like, sparse matrix, data frame} of shape (n_samples, n_features)

        Returns
        -------
        labels : ndarray of shape (n_samples,)
        """
        return np.where(self.decision_function(X) >= 0, 1, -1)
