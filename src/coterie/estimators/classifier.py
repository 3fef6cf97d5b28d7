"""Group discovery for two or more classes, with given settings and with settings chosen by cross-validation."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import ClassifierMixin
from sklearn.metrics import accuracy_score
from sklearn.utils.metaestimators import available_if

from coterie._parameters import PENALTY, Boolean, ClassWeight, OneOf, Rule
from coterie.correlation.compatibility import Compatibility
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
from coterie.search.search import CorrelationLike
from coterie.solver.loss import LossLike, trait
from coterie.solver.losses import LossRule
from coterie.validation.calibration import Calibration, calibrate, scale_of
from coterie.validation.deviance import HeldOutDeviance
from coterie.validation.held_out import HeldOutScores
from coterie.validation.path_search import Fold, SizedOutputs


def _has_probabilities(model: Any) -> bool:
    """Return True if a model is calibrated on held-out samples, or will be in its fit; otherwise raise an error."""
    if "calibration_slope_" in vars(model) or (model._calibrates and "classes_" not in vars(model)):
        return True
    if trait(model._loss, "has_probabilities"):
        return True
    name = type(model).__name__
    raise AttributeError(
        f"This {name} has no predict_proba because it was fitted without held-out samples for calibration. Use "
        "loss='logistic', GroupDiscoveryClassifierCV or sklearn.calibration.CalibratedClassifierCV(model, ensemble=False)."
    )


@documented
class GroupDiscoveryClassifier(ClassifierMixin, GroupDiscovery):
    """Classifier that selects a few features and groups the features correlated with each of them.

    The Group Discovery Machine [1]_ [2]_ is a linear support vector machine that selects *support features*. No two of them
    have a correlation of ``threshold`` or more. Features that have such a correlation with a support feature are its
    *affiliated* features. The estimator is both a classifier and a feature selector, and never forms the matrix of all
    correlations.

    Every round has two certificates: the gap of the weights for the blocks of features found so far, and the distance to the
    optimum over all sets of uncorrelated features. More than two classes are treated as one-versus-rest, with the same
    support features for all classes.

    Parameters
    ----------
    %(n_features_to_select)s

    loss : str or Loss, default="squared_hinge"
        Loss function: ``"squared_hinge"`` as in the papers, ``"logistic"``, whose outputs are log-odds, or a subclass of
        :class:`coterie.solver.loss.Loss`; see "Adding a loss" in the documentation. More than two classes are each against
        the rest.

    %(n_features_per_round)s

    %(reuse_features)s

    %(grouping)s

    %(predict_with)s

    C : float or "auto", default="auto"
        Weight of the loss, relative to the penalty on the weights. ``"auto"`` is 1 for standardised features, and
        otherwise 1 divided by the geometric mean of the variances of the features. If at least nine of ten values are
        zero, it is the mean weighted by the variances. The model then does not depend on the unit of the features. For
        ``loss="logistic"`` it is also divided by the mean variance of the labels.

    %(fit_intercept)s

    %(standardize)s

    %(class_weight)s

    %(equal_classes)s

    %(embedded)s

    %(running)s

    Attributes
    ----------
    coef_ : ndarray of shape (n_outputs, n_features)
        Weights of all features in the prediction.

    intercept_ : ndarray of shape (n_outputs,)
        Intercept.

    margin_ : ndarray of shape (n_outputs,)
        Margin between the classes.

    classes_ : ndarray of shape (n_classes,)
        The classes.

    %(found)s

    %(adjusted)s

    See Also
    --------
    GroupDiscoveryRegressor : Group discovery for numeric targets.
    GroupDiscoveryOneClass : Group discovery for one class.
    coterie.metrics.group_recovery : Share of a known group structure that was found.
    sklearn.svm.LinearSVC : With ``penalty="l1"``, a sparse linear model that keeps at best one feature of
        each group.

    Notes
    -----
    Pearson correlations are computed with the sample weights. Scores that differ by less than 1e-10 of the
    best score are tied. Ties are broken by the content of the columns, then by name, so the result does
    not depend on the order of the columns.

    NumPy arrays (float64, float32, integers, booleans; C or F order; memory maps) and CSC matrices are
    used without a copy. Other sparse formats are converted to CSC, which takes one copy of the nonzeros.
    In addition to the data, memory is needed for a few numbers per feature and one dense column per
    support feature of a round.

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
    calibration_slope_: float | np.ndarray
    calibration_offset_: np.ndarray
    _allowed: ClassVar[dict[str, Rule]] = {
        **GroupDiscovery._allowed,
        "C": PENALTY | OneOf("auto"),
        "loss": LossRule("classes"),
        "fit_intercept": Boolean(),
        "class_weight": ClassWeight(),
        "equal_classes": Boolean(),
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
        compatibility: Compatibility | None = None,
        affiliates: str = "complete",
        representative: Representative = "score",
        fixed_features: ArrayLike | None = None,
        keep: str = "support",
        predict_with: str = "support",
        C: float | str = "auto",
        fit_intercept: bool = True,
        standardize: bool | str = "auto",
        class_weight: ClassWeightLike = None,
        equal_classes: bool = False,
        cv: FoldsLike = None,
        cv_part: str = "training",
        max_rounds: int | None = None,
        tol: float = 1e-4,
        n_jobs: int | None = None,
        random_state: RandomStateLike = None,
        verbose: int = 0,
    ) -> None:
        self._store(locals())

    def decision_function(self, X: FeaturesLike, covariates: CovariatesLike = None, offset: SamplesLike = None) -> np.ndarray:
        """Return the decision values of samples.

        For two classes, a positive value predicts ``classes_[1]``. For more classes, the largest value predicts the class.

        Parameters
        ----------
        %(new_samples)s
        %(new_covariates)s
        %(new_offset)s

        Returns
        -------
        scores : ndarray of shape (n_samples,) for two classes, else (n_samples, n_classes)
        """
        outputs = self._outputs(X, covariates, offset)
        return outputs[:, 0] if outputs.shape[1] == 1 else outputs

    def predict(self, X: FeaturesLike, covariates: CovariatesLike = None, offset: SamplesLike = None) -> np.ndarray:
        """Predict the class of samples.

        Parameters
        ----------
        %(new_samples)s
        %(new_covariates)s
        %(new_offset)s

        Returns
        -------
        labels : ndarray of shape (n_samples,)
        """
        codes = self._loss.predict(self._outputs(X, covariates, offset))
        return np.asarray(self.classes_[codes])

    @available_if(_has_probabilities)
    def predict_proba(self, X: FeaturesLike, covariates: CovariatesLike = None, offset: SamplesLike = None) -> np.ndarray:
        """Return the probability of each class; only for ``loss="logistic"`` and models calibrated on held-out samples.

        The logistic loss of :class:`GroupDiscoveryClassifier` has probabilities of its own, without calibration. The penalty
        shrinks them towards the shares of the classes. Those of several classes against the rest are divided by their sum.

        :class:`GroupDiscoveryClassifierCV` calibrates decision values by Platt scaling, for any loss. The slope and the
        offsets that turn them into logits are fitted to the held-out samples of the folds, whose decision values come from
        the model fitted without them. So its probabilities are not shrunk, and the mean probability of a class is close to
        its share of the samples. :meth:`predict` uses the decision values. Near the boundary between classes, where the
        offsets would make another class more probable than the predicted one, both have nearly equal probabilities. Class
        weights enter the calibration, as in :class:`sklearn.linear_model.LogisticRegression`. For other models without
        held-out samples, use
        ``CalibratedClassifierCV(model, ensemble=False)``.

        Parameters
        ----------
        %(new_samples)s
        %(new_covariates)s
        %(new_offset)s

        Returns
        -------
        probabilities : ndarray of shape (n_samples, n_classes)
            Probabilities in the order of ``classes_``.
        """
        outputs = self._outputs(X, covariates, offset)
        if "calibration_slope_" not in vars(self):
            return np.asarray(trait(self._loss, "probabilities")(outputs))
        # Files of earlier versions have no offset of the calibration.
        shift = vars(self).get("calibration_offset_", np.zeros(outputs.shape[1]))
        return Calibration(self.calibration_slope_, shift).probabilities(outputs, self._loss.predict(outputs))

    @available_if(_has_probabilities)
    def predict_log_proba(self, X: FeaturesLike, covariates: CovariatesLike = None, offset: SamplesLike = None) -> np.ndarray:
        """Return the logarithm of :meth:`predict_proba`.

        Parameters
        ----------
        %(new_samples)s
        %(new_covariates)s
        %(new_offset)s

        Returns
        -------
        log_probabilities : ndarray of shape (n_samples, n_classes)
        """
        with np.errstate(divide="ignore"):
            return np.log(self.predict_proba(X, covariates, offset))

    def score(
        self,
        X: FeaturesLike,
        y: TargetsLike = None,
        sample_weight: SamplesLike = None,
        covariates: CovariatesLike = None,
        offset: SamplesLike = None,
    ) -> float:
        """Return the accuracy: the share of samples, by weight, whose class is predicted correctly.

        Parameters
        ----------
        X : as for :meth:`fit`
        y : array-like of shape (n_samples,), str or None, default=None
            Labels, as for :meth:`fit`.
        sample_weight : array-like of shape (n_samples,), default=None
        %(new_covariates)s
        %(new_offset)s

        Returns
        -------
        accuracy : float
        """
        predicted, target = self._prediction_and_target(X, y, covariates, offset)
        return float(accuracy_score(target, predicted, sample_weight=sample_weight))


@documented
class GroupDiscoveryClassifierCV(ValidatedDiscovery, GroupDiscoveryClassifier):
    """Group discovery for two or more classes, with settings chosen by cross-validation.

    Cross-validation chooses the number of features, C and the features used for prediction. For every C, threshold and scale,
    each fold computes one path of rounds, up to ``max_features_to_select`` features. Every size on the path is scored on the
    held-out samples. All paths share each pass over the data, so many paths need as many passes as one. The model with the
    chosen settings is then fitted to all samples.

    Parameters
    ----------
    %(sizes)s

    loss : str or Loss, default="squared_hinge"
        Loss function, as in :class:`GroupDiscoveryClassifier`.

    Cs : int or list of float, default=3
        Values of C, the weight of the loss, to choose from. An integer is a number of values with equal ratios, divided by a
        typical variance of the features (1 for standardised features): between 1e-3 and 0.1 if all models use whole groups,
        otherwise between 1e-3 and 1. For ``loss="logistic"`` it is also divided by the mean variance of the labels.

    %(choice)s

    %(n_features_per_round)s

    %(reuse_features)s

    %(grouping)s

    predict_with : {"auto", "support", "groups"} or list of the last two, default="auto"
        Features used for prediction, also within the folds: the support features, or support and affiliated features. From a
        list, validation chooses. ``"groups"`` is evaluated at about a dozen sizes, each of which requires a separate linear
        model. ``"auto"`` is ``"groups"`` with up to 2,000 samples and 10⁸ values, otherwise ``"support"``.

    %(fit_intercept)s

    %(standardize_choice)s

    %(class_weight)s

    %(equal_classes)s

    cv : int or cross-validation generator, default=5
        Folds of the cross-validation. An integer is a number of shuffled, stratified folds.

    scoring : str, callable or None, default=None
        Score, as in scikit-learn. None for the accuracy, unless a class is rare (less than 20 % of the samples and less than
        60 % of an equal share): then the ROC AUC (two classes) or the balanced accuracy (several). Sample weights are
        passed to it. A callable
        ``scorer(estimator, X, y)`` gets as X the decision values of the held-out samples, of shape
        (n_samples, n_outputs), and as estimator an object that predicts from them.

    %(embedded_choice)s

    %(running_paths)s

    Attributes
    ----------
    %(chosen)s

    calibration_slope_, calibration_offset_ : float or ndarray of shape (n_outputs,), ndarray of shape (n_outputs,)
        Slopes (a number for two classes) and offsets that turn decision values into logits; see :meth:`predict_proba`.

    held_out_confusion_ : ndarray of shape (n_classes, n_classes)
        Number of held-out samples (their weight) by class (rows) and predicted class (columns); only with ``nested``.

    groups_, support_features_, support_coef_, coef_, intercept_, classes_, history_, ...
        As in :class:`GroupDiscoveryClassifier`, for the model fitted to all samples.

    See Also
    --------
    GroupDiscoveryClassifier : Group discovery with a given number of features, or ``"auto"``, and a given C.
    GroupDiscoveryRegressorCV : The same for numeric targets.
    sklearn.feature_selection.RFECV : Recursive elimination with the number of features chosen in the same way.

    Notes
    -----
    The default rule compares candidates by the held-out deviance, because accuracy on a few dozen samples is equal for many
    of them. ``best_score_`` is the score of the chosen candidate and slightly optimistic. Score the model on other data, or
    use ``nested``. Among equal candidates, the one with fewer features is chosen, then the one with the smaller C.

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
    # Models of the support features alone do not improve the choice (docs/evidence/choice-of-settings.md).
    _automatic_kinds = ("groups",)
    _allowed: ClassVar[dict[str, Rule]] = validated_rules(GroupDiscoveryClassifier)

    def __init__(
        self,
        max_features_to_select: int = 100,
        *,
        loss: str | LossLike = "squared_hinge",
        min_features_to_select: int = 1,
        Cs: int | Sequence[float] = 3,
        thresholds: Sequence[float] | None = None,
        rule: str = "auto",
        nested: bool = False,
        n_features_per_round: int | str = "auto",
        reuse_features: bool = False,
        correlation: CorrelationLike = "pearson",
        threshold: float = 0.7,
        n_bins: int = 10,
        compatibility: Compatibility | None = None,
        affiliates: str = "complete",
        representative: Representative = "score",
        fixed_features: ArrayLike | None = None,
        keep: str = "support",
        predict_with: str | Sequence[str] = "auto",
        fit_intercept: bool = True,
        standardize: bool | str | Sequence[bool] = "auto",
        class_weight: ClassWeightLike = None,
        equal_classes: bool = False,
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
        """Raise a ``ValueError`` if the training part of a fold lacks a class."""
        classes = data.classes
        assert classes is not None
        absent = classes[np.bincount(data.targets, weight, minlength=len(classes)) == 0.0]
        if len(absent):
            raise ValueError(
                f"{name} of cv has no training samples of class {absent.tolist()[0]!r}. Shuffle the samples, or pass a number "
                "of folds (stratified folds)."
            )

    def _held_out_deviance(self, data: Input, score: HeldOutScores) -> HeldOutDeviance:
        """Return the deviance, with the sample weights of the score times the class weights."""
        assert data.classes is not None
        weight = np.ones(data.n_samples) if data.score_weight is None else data.score_weight
        own = class_weights(self.class_weight, data.classes, data.targets, weight)
        return HeldOutDeviance(data.targets, own, with_offsets=score.name != "accuracy")

    def _calibration_weight(self, data: Input) -> np.ndarray:
        assert data.classes is not None
        weight = np.ones(data.n_samples) if data.weight is None else data.weight
        return class_weights(self.class_weight, data.classes, data.targets, weight)

    def _calibration(
        self, data: Input, folds: Sequence[Fold], models: Sequence[SizedOutputs], fitted: Mapping[str, Any]
    ) -> dict[str, Any]:
        """Calibrate the chosen settings by their outputs for the held-out samples of all folds."""
        held_out = np.concatenate([fold.parts[0] for fold in folds])
        weight = self._calibration_weight(data)[held_out]
        values = np.concatenate([model.outputs / scale_of(model.margin) for model in models])
        found = calibrate(values, data.targets[held_out], weight)
        found = found.in_units_of(scale_of(fitted["margin_"]))
        return {"calibration_slope_": found.slope, "calibration_offset_": found.offset}
