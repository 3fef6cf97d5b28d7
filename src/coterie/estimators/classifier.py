"""Group discovery for two or more classes."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
from sklearn.base import ClassifierMixin
from sklearn.metrics import accuracy_score
from sklearn.utils.metaestimators import available_if

from coterie._parameters import Anything, Flag, Rule
from coterie._sklearn import with_callbacks
from coterie.estimators.base import GroupDiscovery
from coterie.inputs.reading import class_weights, opened, read_features, read_labels, read_sample_weight, with_covariates
from coterie.search.oracle import Representative
from coterie.search.prediction import classes_of
from coterie.search.samples import Samples
from coterie.solver.losses import Loss, OneVsRestHinge, SquaredHinge
from coterie.validation.calibration import probabilities


def _has_probabilities(model: Any) -> bool:
    """Whether a model has seen held-out samples, or will have in its fit; the error says what to do."""
    if "calibration_slope_" in vars(model) or (model._calibrates and "classes_" not in vars(model)):
        return True
    name = type(model).__name__
    raise AttributeError(
        f"This {name} has no predict_proba: it was fitted without held-out samples to calibrate on. Fit a "
        "GroupDiscoveryClassifierCV, or wrap it: sklearn.calibration.CalibratedClassifierCV(model, ensemble=False)."
    )


class GroupDiscoveryClassifier(ClassifierMixin, GroupDiscovery):
    """Find the few features that predict the class, and around each one its correlated features.

    The Group Discovery Machine [1]_ [2]_: a linear support vector machine that selects *support
    features*, no two of them correlated at or over ``threshold``, and collects around each one
    every *affiliated* feature that is. It is a classifier and a selector at once, and never forms a
    matrix of all correlations. Every round is certified twice: how exactly the weights solve the problem
    over the blocks of features found so far, and how far that is from the optimum over all sets of
    uncorrelated features. Several classes are told apart one against the rest, with the same support
    features for all.

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
        Whether a block, the features of a round, may have features of earlier blocks. False, as in [2]_: every feature is
        chosen once, no two support features are correlated at or over ``threshold``, and the weights are optimal for the
        blocks that were found. True, as in [1]_: each round takes the most violated of all sets of uncorrelated features,
        a feature's weight is the sum over its blocks, and the search can reach the optimum over all these sets
        (``converged_at_``). Then only the features of one block are uncorrelated; support features of different blocks
        may be correlated.

    correlation : {"pearson", "spearman", "su", None} or callable, default="pearson"
        Measure of correlation: Pearson's coefficient, Spearman's (of the ranks, ties averaged), or symmetrical uncertainty
        (mutual information over the mean entropy, on bins), which sees nonlinear relations too. None lifts the constraint,
        which is the feature generating machine (FGM): no groups, the features with the best scores. A function of two blocks
        of columns, or a class, is a measure of one's own: ``docs/development/adding-a-correlation.md``.

    threshold : float, default=0.7
        Absolute correlation in (0, 1] from which on two features belong to the same group. The paper
        uses 0.7 for Pearson's coefficient and 0.6 for symmetrical uncertainty.

    n_bins : int, default=10
        Bins of equal width over a feature's range, for symmetrical uncertainty.

    affiliates : {"complete", "ranked"}, default="complete"
        ``"complete"`` collects every feature that is correlated with a support feature; ``"ranked"``
        only those met while looking for support features, as in [2]_.

    representative : {"score", "medoid"} or callable, default="score"
        Which member of a would-be group is its support feature: the one with the best score, the
        one most correlated with the others, or the one that a callable picks. It is called with a
        named tuple with the fields ``features``, ``names``, ``scores`` and ``correlation`` and
        returns one of ``features``. Anything but ``"score"`` takes one or two passes over the data
        for each support feature.

    fixed_features : array-like of int, str or bool, default=None
        Features (indices, names or a mask) that are support features from the start, whatever their
        scores and correlations; the others are judged beside them. They count towards
        ``n_features_to_select``.

    keep : {"support", "groups"}, default="support"
        What :meth:`transform` keeps: the support features, or these and the affiliated ones.

    predict_with : {"support", "groups"}, default="support"
        What the prediction rests on: the support features with the weights of the discovery, or support and
        affiliated features together, in a linear support vector machine with the same loss, ``C`` and weights.
        The groups do not depend on it. ``"groups"`` holds all their columns in memory, dense ones as float64.

    C : float, default=1.0
        Weight of the classification errors.

    fit_intercept : bool, default=True
        Whether to fit an intercept. The papers have none.

    standardize : bool or "auto", default="auto"
        Judge features by their values divided by their standard deviation. X is not copied, and the weights are those of
        the original features. ``"auto"`` does so unless at least nine of ten values are zero (words, clicks): otherwise
        features in small units could not win, but rare things must not be blown up. The papers do not (False).

    class_weight : dict, "balanced" or None, default=None
        Weights of the classes in the loss.

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
        Number of threads. None: all cores, but one in a worker of a parallel job. The result does
        not depend on it.

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

    support_coef_ : ndarray of shape (n_outputs, n_support)
        Their weights, sums over the blocks that a feature is in. There is one output for two classes, else one for each
        class.

    coef_ : ndarray of shape (n_outputs, n_features)
        Weights of all features in the prediction.

    prediction_features_, prediction_coef_ : ndarray of shape (n_used,), (n_outputs, n_used)
        The features that the prediction reads, and their weights: those of the support features unless
        ``predict_with="groups"``.

    prediction_gap_ : float
        Certified relative optimality gap of the model that predicts, given its features (and blocks).

    intercept_ : ndarray of shape (n_outputs,)
        Intercept.

    margin_ : ndarray of shape (n_outputs,)
        The margin that the model leaves between the classes.

    classes_ : ndarray of shape (n_classes,)
        The classes.

    objective_ : float
        Objective (the dual one, the papers' theta) of the problem over the blocks that were found.

    standardize_ : bool
        Whether features were judged by their values over their standard deviation.

    dual_gap_ : float
        Certified relative optimality gap of that problem: of the weights, given the blocks.

    lower_bound_, upper_bound_ : float
        Bounds of the optimum over all admissible sets, found or not (the papers' beta and phi): sets of at most as many
        features as the largest block, no two of them correlated at or over ``threshold``.

    block_weights_ : ndarray of shape (n_blocks,)
        The papers' mu: the share of each block of ``history_`` in the model. They add up to 1.

    history_ : list of Round
        What happened in each round; ``pandas.DataFrame(model.history_)`` makes a table of it.

    n_rounds_ : int
        Number of rounds.

    converged_at_ : int or None
        The first round after which these bounds lay within ``tol`` of each other, relative to the objective: the optimum
        over all admissible sets was reached. None if it was not, or not known to be.

    scores_ : ndarray of shape (n_features,)
        Scores of all features for the final dual variables: what each could still add.

    dual_coef_ : ndarray of shape (n_outputs, n_samples)
        Dual variables with the signs of their classes.

    n_correlations_evaluated_, n_correlations_possible_ : int
        Correlations that were computed (one that is computed again counts again, up to the number of pairs), and all pairs
        of features.

    n_passes_ : float
        Times the data were read, all told.

    correlated_feature_sets_, correlated_feature_dict_ : list of set, dict
        Groups of two and more in feature-engine's form.

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
    GroupDiscoveryRegressor : For numbers.
    GroupDiscoveryOneClass : For one class.
    coterie.metrics.group_recovery : How much of a known group structure was found.
    sklearn.svm.LinearSVC : With ``penalty="l1"``, a sparse linear model that keeps one feature of
        each group at best.

    Notes
    -----
    Pearson correlations are computed with the sample weights. Two scores closer than 1e-10 of the
    best one are tied; ties are broken by the content of the columns, then by name, so the result does
    not depend on the order of the columns.

    Memory: NumPy arrays (float64, float32, integers, booleans; C or F order; memory maps) and CSC
    matrices are used as they are. Other sparse formats are converted to CSC, which takes one copy of
    the nonzeros. On top of the data come a few numbers for each feature and one dense column for
    each support feature of a round.

    References
    ----------
    .. [1] Y. Zhai, M. Tan, I. Tsang, Y. S. Ong, "Discovering support and affiliated features from
       very high dimensions", ICML 2012.
    .. [2] Y. Zhai, Y.-S. Ong, I. W. Tsang, "Making trillion correlations feasible in feature
       grouping and selection", IEEE TPAMI 38(12), 2016.

    Examples
    --------
    >>> from coterie import GroupDiscoveryClassifier
    >>> from coterie.datasets import make_support_affiliated
    >>> data = make_support_affiliated(400, 60, n_support=3, n_true=7, random_state=0)
    >>> model = GroupDiscoveryClassifier(n_features_to_select=3, n_features_per_round=1)
    >>> model.fit(data.X, data.y).groups_ == data.groups
    True
    >>> model.transform(data.X).shape
    (400, 3)
    """

    _calibrates: ClassVar[bool] = False
    calibration_slope_: float
    _allowed: ClassVar[dict[str, Rule]] = {
        **GroupDiscovery._allowed,
        "fit_intercept": Flag(),
        "class_weight": Anything(),
    }

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
        class_weight: Any = None,
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
        self.class_weight = class_weight
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
    ) -> GroupDiscoveryClassifier:
        """Find groups of features that separate the classes.

        Parameters
        ----------
        X : {array-like, sparse, data frame, AnnData, FeatureSource, path, Dataset, Store} of shape (n_samples, n_features)
            Training data; a path is opened with :func:`coterie.data.open_features`, which also chooses a layer of AnnData.
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
        self : GroupDiscoveryClassifier
            The fitted estimator.
        """
        self._fit(X, y, sample_weight, feature_names, client, covariates=covariates)
        return self

    def _read(self, X: Any, y: Any, sample_weight: Any = None, covariates: Any = None) -> Samples:
        X, covariates, y = with_covariates(X, covariates, y)
        reading, labels = read_features(self, X, y)
        weight = read_sample_weight(sample_weight, labels)
        classes, codes = read_labels(labels, weight)
        values, known = self._read_covariates(covariates, codes)
        return Samples({**reading.attributes, "classes_": classes, **known}, reading.source, labels, codes, weight, values)

    def _loss(self, data: Samples, weight: np.ndarray) -> Loss:
        classes, codes = data.attributes["classes_"], data.targets
        loss_weight = class_weights(self.class_weight, classes, codes, weight)
        if len(classes) == 2:
            return SquaredHinge(np.where(codes == 1, 1.0, -1.0), loss_weight, self.C, bool(self.fit_intercept))
        return OneVsRestHinge(codes, len(classes), loss_weight, self.C, bool(self.fit_intercept))

    def decision_function(self, X: Any, covariates: Any = None) -> np.ndarray:
        """Signed score of each sample: positive for ``classes_[1]``, or the largest for the predicted class.

        Parameters
        ----------
        X : {array-like, sparse matrix, data frame} of shape (n_samples, n_features)
        covariates : array-like or data frame of shape (n_samples, n_covariates), default=None
            Those of these samples; needed where the model was fitted with covariates.

        Returns
        -------
        scores : ndarray of shape (n_samples,) for two classes, else (n_samples, n_classes)
        """
        outputs = self._outputs(X, covariates)
        return outputs[:, 0] if outputs.shape[1] == 1 else outputs

    def predict(self, X: Any, covariates: Any = None) -> np.ndarray:
        """Class of each sample.

        Parameters
        ----------
        X : {array-like, sparse matrix, data frame} of shape (n_samples, n_features)
        covariates : array-like or data frame of shape (n_samples, n_covariates), default=None
            Those of these samples; needed where the model was fitted with covariates.

        Returns
        -------
        labels : ndarray of shape (n_samples,)
        """
        scores = self.decision_function(X, covariates)
        return classes_of(self.classes_, scores)

    @available_if(_has_probabilities)
    def predict_proba(self, X: Any, covariates: Any = None) -> np.ndarray:
        """Probability of each class, for models that have seen held-out samples: :class:`GroupDiscoveryClassifierCV`.

        The decision values of the folds' held-out samples, each from the model of the fold that did not see it, tell by what
        number they must be multiplied to be logits (temperature scaling). So the most probable class is the one that
        :meth:`predict` names. Class weights count in it, as in :class:`sklearn.linear_model.LogisticRegression`. A model
        without held-out samples has no probabilities; ``CalibratedClassifierCV(model, ensemble=False)`` makes some.

        Parameters
        ----------
        X : {array-like, sparse matrix, data frame} of shape (n_samples, n_features)
        covariates : array-like or data frame of shape (n_samples, n_covariates), default=None
            Those of these samples; needed where the model was fitted with covariates.

        Returns
        -------
        shares : ndarray of shape (n_samples, n_classes)
            In the order of ``classes_``.
        """
        return probabilities(self._outputs(X, covariates), self.calibration_slope_)

    @available_if(_has_probabilities)
    def predict_log_proba(self, X: Any, covariates: Any = None) -> np.ndarray:
        """Logarithm of :meth:`predict_proba`.

        Parameters
        ----------
        X : {array-like, sparse matrix, data frame} of shape (n_samples, n_features)
        covariates : array-like or data frame of shape (n_samples, n_covariates), default=None
            Those of these samples; needed where the model was fitted with covariates.

        Returns
        -------
        log_probabilities : ndarray of shape (n_samples, n_classes)
        """
        with np.errstate(divide="ignore"):
            return np.log(self.predict_proba(X, covariates))

    def score(self, X: Any, y: Any = None, sample_weight: Any = None, covariates: Any = None) -> float:
        """Accuracy: the share of samples (by weight) whose class is predicted.

        Parameters
        ----------
        X : as for :meth:`fit`
        y : array-like of shape (n_samples,), str or None, default=None
            Labels, as for :meth:`fit`.
        sample_weight : array-like of shape (n_samples,), default=None
        covariates : array-like or data frame of shape (n_samples, n_covariates), default=None
            Those of these samples; needed where the model was fitted with covariates.

        Returns
        -------
        accuracy : float
        """
        X, covariates, y = with_covariates(X, covariates, y)
        X, y = opened(X, y)
        return float(accuracy_score(y, self.predict(X, covariates), sample_weight=sample_weight))
