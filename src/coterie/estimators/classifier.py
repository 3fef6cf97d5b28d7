"""Group discovery for two or more classes, with given settings and with settings chosen by cross-validation."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import ClassifierMixin
from sklearn.metrics import accuracy_score
from sklearn.utils.metaestimators import available_if

from coterie._parameters import AnyValue, Boolean, Rule
from coterie.estimators.base import GroupDiscovery
from coterie.estimators.documentation import documented
from coterie.estimators.validated import ValidatedDiscovery, validated_rules
from coterie.inputs.opening import Input
from coterie.inputs.targets import class_weights
from coterie.inputs.types import (
    ClassWeightLike,
    CovariatesLike,
    FeaturesLike,
    FoldsLike,
    RandomStateLike,
    SamplesLike,
    ScoringLike,
    TargetsLike,
)
from coterie.search.oracle import Representative
from coterie.search.outcome import LinearModel
from coterie.search.search import CorrelationLike
from coterie.solver.loss import LossLike
from coterie.solver.losses import LossRule
from coterie.validation.calibration import calibration_slope, probabilities
from coterie.validation.path_search import Fold


def _has_probabilities(model: Any) -> bool:
    """Whether a model has seen held-out samples, or will have in its fit; the error says what to do."""
    if "calibration_slope_" in vars(model) or (model._calibrates and "classes_" not in vars(model)):
        return True
    name = type(model).__name__
    raise AttributeError(
        f"This {name} has no predict_proba: it was fitted without held-out samples to calibrate on. Fit a "
        "GroupDiscoveryClassifierCV, or wrap it: sklearn.calibration.CalibratedClassifierCV(model, ensemble=False)."
    )


@documented
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
    %(n_features_to_select)s

    loss : str or Loss, default="squared_hinge"
        The loss: ``"squared_hinge"`` of the papers, or a subclass of :class:`coterie.solver.losses.Loss` with losses of one's
        own (``docs/development/adding-a-loss.md``).

    %(n_features_per_round)s

    %(reuse_features)s

    %(grouping)s

    %(predict_with)s

    C : float, default=1.0
        Weight of the classification errors.

    %(fit_intercept)s

    %(standardize)s

    %(class_weight)s

    %(embedded)s

    %(running)s

    Attributes
    ----------
    coef_ : ndarray of shape (n_outputs, n_features)
        Weights of all features in the prediction.

    intercept_ : ndarray of shape (n_outputs,)
        Intercept.

    margin_ : ndarray of shape (n_outputs,)
        The margin that the model leaves between the classes.

    classes_ : ndarray of shape (n_classes,)
        The classes.

    %(found)s

    %(adjusted)s

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

    _target = "classes"
    _calibrates: ClassVar[bool] = False
    classes_: np.ndarray
    calibration_slope_: float
    _allowed: ClassVar[dict[str, Rule]] = {
        **GroupDiscovery._allowed,
        "loss": LossRule("classes"),
        "fit_intercept": Boolean(),
        "class_weight": AnyValue(),
    }

    def __init__(
        self,
        n_features_to_select: int | float | str = 100,
        *,
        loss: str | LossLike = "squared_hinge",
        n_features_per_round: int | str = "auto",
        reuse_features: bool = False,
        correlation: CorrelationLike = "pearson",
        threshold: float = 0.7,
        n_bins: int = 10,
        affiliates: str = "complete",
        representative: Representative = "score",
        fixed_features: ArrayLike | None = None,
        keep: str = "support",
        predict_with: str = "support",
        C: float = 1.0,
        fit_intercept: bool = True,
        standardize: bool | str = "auto",
        class_weight: ClassWeightLike = None,
        cv: FoldsLike = None,
        cv_part: str = "training",
        max_rounds: int | None = None,
        tol: float = 1e-4,
        n_jobs: int | None = None,
        random_state: RandomStateLike = None,
        verbose: int = 0,
    ) -> None:
        self._store(locals())

    def decision_function(self, X: FeaturesLike, covariates: CovariatesLike = None) -> np.ndarray:
        """Signed score of each sample: positive for ``classes_[1]``, or the largest for the predicted class.

        Parameters
        ----------
        %(new_samples)s
        %(new_covariates)s

        Returns
        -------
        scores : ndarray of shape (n_samples,) for two classes, else (n_samples, n_classes)
        """
        outputs = self._outputs(X, covariates)
        return outputs[:, 0] if outputs.shape[1] == 1 else outputs

    def predict(self, X: FeaturesLike, covariates: CovariatesLike = None) -> np.ndarray:
        """Class of each sample.

        Parameters
        ----------
        %(new_samples)s
        %(new_covariates)s

        Returns
        -------
        labels : ndarray of shape (n_samples,)
        """
        codes = self._loss.predict(self._outputs(X, covariates))
        return np.asarray(self.classes_[codes])

    @available_if(_has_probabilities)
    def predict_proba(self, X: FeaturesLike, covariates: CovariatesLike = None) -> np.ndarray:
        """Probability of each class, for models that have seen held-out samples: :class:`GroupDiscoveryClassifierCV`.

        The decision values of the folds' held-out samples, each from the model of the fold that did not see it, tell by what
        number they must be multiplied to be logits (temperature scaling). So the most probable class is the one that
        :meth:`predict` names. Class weights count in it, as in :class:`sklearn.linear_model.LogisticRegression`. A model
        without held-out samples has no probabilities; ``CalibratedClassifierCV(model, ensemble=False)`` makes some.

        Parameters
        ----------
        %(new_samples)s
        %(new_covariates)s

        Returns
        -------
        shares : ndarray of shape (n_samples, n_classes)
            In the order of ``classes_``.
        """
        return probabilities(self._outputs(X, covariates), self.calibration_slope_)

    @available_if(_has_probabilities)
    def predict_log_proba(self, X: FeaturesLike, covariates: CovariatesLike = None) -> np.ndarray:
        """Logarithm of :meth:`predict_proba`.

        Parameters
        ----------
        %(new_samples)s
        %(new_covariates)s

        Returns
        -------
        log_probabilities : ndarray of shape (n_samples, n_classes)
        """
        with np.errstate(divide="ignore"):
            return np.log(self.predict_proba(X, covariates))

    def score(
        self,
        X: FeaturesLike,
        y: TargetsLike = None,
        sample_weight: SamplesLike = None,
        covariates: CovariatesLike = None,
    ) -> float:
        """Accuracy: the share of samples (by weight) whose class is predicted.

        Parameters
        ----------
        X : as for :meth:`fit`
        y : array-like of shape (n_samples,), str or None, default=None
            Labels, as for :meth:`fit`.
        sample_weight : array-like of shape (n_samples,), default=None
        %(new_covariates)s

        Returns
        -------
        accuracy : float
        """
        predicted, target = self._prediction_and_target(X, y, covariates)
        return float(accuracy_score(target, predicted, sample_weight=sample_weight))


@documented
class GroupDiscoveryClassifierCV(ValidatedDiscovery, GroupDiscoveryClassifier):
    """Group discovery for two or more classes, with the number of features, C and what predicts chosen by cross-validation.

    For every C, threshold and scale each fold goes once along the path of rounds, up to ``max_features_to_select``; every size
    on the path is scored on the held-out samples. All paths go through the data together, so that many of them read it
    as often as one. The model is then fitted to all samples with what has the best mean score.

    Parameters
    ----------
    %(sizes)s

    loss : str or Loss, default="squared_hinge"
        The loss, as in :class:`GroupDiscoveryClassifier`.

    %(Cs)s

    %(choice)s

    %(n_features_per_round)s

    %(reuse_features)s

    %(grouping)s

    %(predict_with_choice)s

    %(fit_intercept)s

    %(standardize_choice)s

    %(class_weight)s

    cv : int or cross-validation generator, default=5
        Folds that decide. A number means so many shuffled, stratified folds.

    scoring : str, callable or None, default=None
        The score, as in scikit-learn; None for the accuracy. Sample weights are handed on to it. What a
        callable ``scorer(estimator, X, y)`` gets as X are the held-out samples' decision values, of shape
        (n_samples, n_outputs), and as estimator one that predicts from these.

    %(embedded_choice)s

    %(running_paths)s

    Attributes
    ----------
    %(chosen)s

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

    _calibrates = True
    _allowed: ClassVar[dict[str, Rule]] = validated_rules(GroupDiscoveryClassifier)

    def __init__(
        self,
        max_features_to_select: int = 100,
        *,
        loss: str | LossLike = "squared_hinge",
        min_features_to_select: int = 1,
        Cs: int | Sequence[float] = 10,
        thresholds: Sequence[float] | None = None,
        rule: str = "best",
        nested: bool = False,
        n_features_per_round: int | str = "auto",
        reuse_features: bool = False,
        correlation: CorrelationLike = "pearson",
        threshold: float = 0.7,
        n_bins: int = 10,
        affiliates: str = "complete",
        representative: Representative = "score",
        fixed_features: ArrayLike | None = None,
        keep: str = "support",
        predict_with: str | Sequence[str] = "support",
        fit_intercept: bool = True,
        standardize: bool | str | Sequence[bool] = "auto",
        class_weight: ClassWeightLike = None,
        cv: FoldsLike = 5,
        scoring: ScoringLike = None,
        embedded_cv: FoldsLike = None,
        cv_part: str = "training",
        max_rounds: int | None = None,
        tol: float = 1e-4,
        n_jobs: int | None = None,
        random_state: RandomStateLike = None,
        verbose: int = 0,
    ) -> None:
        self._store(locals())

    def _check_fold(self, data: Input, weight: np.ndarray, name: str) -> None:
        """Refuse a fold whose training part lacks a class."""
        classes = data.classes
        assert classes is not None
        absent = classes[np.bincount(data.targets, weight, minlength=len(classes)) == 0.0]
        if len(absent):
            raise ValueError(
                f"{name} of cv leaves no samples of class {absent.tolist()[0]!r} to learn from. "
                "Shuffle the samples, or use StratifiedKFold, which a whole number stands for."
            )

    def _calibration(self, data: Input, folds: Sequence[Fold], models: Sequence[LinearModel]) -> dict[str, Any]:
        """The calibration of the chosen models on what each of them has not seen."""
        assert data.classes is not None
        outputs, samples = [], []
        for fold, model in zip(folds, models, strict=True):
            samples.append(fold.parts[0])
            outputs.append(model.outputs(data.source, fold.parts[0], data.covariates))
        held_out = np.concatenate(samples)
        weight = np.ones(data.n_samples) if data.weight is None else data.weight
        weight = class_weights(self.class_weight, data.classes, data.targets, weight)
        slope = calibration_slope(np.concatenate(outputs), data.targets[held_out], weight[held_out])
        return {"calibration_slope_": slope}
