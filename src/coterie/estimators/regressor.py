"""Group discovery for numeric targets, with given settings or settings chosen by cross-validation."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import RegressorMixin
from sklearn.metrics import r2_score
from sklearn.utils import Tags

from coterie._parameters import PENALTY, Boolean, Fraction, OneOf, Rule
from coterie.correlation.compatibility import Compatibility
from coterie.estimators.base import GroupDiscovery
from coterie.estimators.documentation import documented
from coterie.estimators.validated import ValidatedDiscovery, validated_rules
from coterie.inputs.opening import Input
from coterie.inputs.types import (
    CovariatesLike,
    FeaturesLike,
    FoldsLike,
    RandomStateLike,
    SamplesLike,
    ScoringLike,
    TargetsLike,
)
from coterie.search.oracle import Representative
from coterie.search.search import CorrelationLike, targets_of
from coterie.solver.error_measures import SQUARED_ERROR
from coterie.solver.loss import LossLike, trait
from coterie.solver.losses import LossRule, known_losses
from coterie.solver.quantile import Quantile
from coterie.solver.several import target_scales
from coterie.validation.metrics import explained

# Fitted attributes with one entry per target in the first axis, which are in the units of the targets.
_IN_UNITS = ("support_coef_", "prediction_coef_", "intercept_", "covariate_coef_")


def scaled(data: Input, loss: LossLike) -> Input:
    """Return data of several targets whose scales are equal (:mod:`coterie.solver.several`)."""
    weight = np.ones(data.n_samples) if data.weight is None else data.weight
    scale = target_scales(loss, targets_of(data), weight)
    if not trait(loss, "is_equivariant"):
        return replace(data, target_factors=np.exp(np.log(scale).mean()) / scale)
    offset = None if data.offset is None else data.offset / scale
    attributes = {**data.attributes, "target_scale_": scale}
    return replace(data, targets=data.targets / scale, offset=offset, attributes=attributes, target_scale=scale)


@documented
class GroupDiscoveryRegressor(RegressorMixin, GroupDiscovery):
    """Regressor that selects a few features and groups the features correlated with each of them.

    The Group Discovery Machine with a loss for numbers or counts. Parameters, attributes and certificates are those of
    :class:`GroupDiscoveryClassifier`.

    Parameters
    ----------
    %(n_features_to_select)s

    loss : str or Loss, default="squared"
        Loss function: ``"squared"``; ``"huber"``, which is linear for errors of more than 1.345 robust standard deviations of
        the target; ``"poisson"`` for counts and ``"gamma"`` for positive numbers with errors in proportion to the mean, both
        with the logarithm as link; ``"quantile"`` for a quantile of the target instead of its mean; or a subclass of
        :class:`coterie.solver.loss.Loss` (see "Adding a loss" in the documentation).

    quantile : float, default=0.5
        Share of the targets below the prediction, with ``loss="quantile"`` only. The default predicts the median.

    %(n_features_per_round)s

    %(reuse_features)s

    %(grouping)s

    %(predict_with)s

    C : float or "auto", default="auto"
        Weight of the loss, relative to the penalty on the weights. ``"auto"`` is 0.3 for standardised features, and
        otherwise 0.3 divided by the geometric mean of the variances of the features. If at least nine of ten values are
        zero, it is the mean weighted by the variances. The model then does not depend on the unit of the features. For
        other losses than ``"squared"`` it is also divided by the mean curvature of the loss (for counts, their mean).

    %(fit_intercept)s

    %(scale_targets)s

    %(standardize)s

    %(embedded)s

    %(running)s

    Attributes
    ----------
    coef_ : ndarray of shape (n_features,) or (n_targets, n_features)
        Weights of all features in the prediction.

    intercept_ : float or ndarray of shape (n_targets,)
        Intercept.

    target_names_ : ndarray of str of shape (n_targets,)
        Names of several targets: those of the columns of a data frame, or ``target_0``, ``target_1``, ...

    target_scale_ : ndarray of shape (n_targets,)
        Numbers by which several targets were divided (``scale_targets``); not for counts.

    %(found)s

    %(adjusted)s

    See Also
    --------
    GroupDiscoveryClassifier : Group discovery for classes.
    sklearn.linear_model.Lasso : A sparse linear model that keeps at best one feature of each group.

    Notes
    -----
    **Several targets.** If y has several columns, one model predicts all targets from the same features, as a classifier does
    for several classes: the norm of a block of features is that of its weights for all targets. Scores are means over the
    targets. The weight of a group is the norm of its weights, in units of the scaled targets, and so are ``history_``,
    ``dual_coef_``, ``objective_`` and the bounds. With one target per model, features may differ between the targets. A
    column-shaped y of one target is treated as one-dimensional.

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

    Counts:

    >>> counts = rng.poisson(np.exp(1 + 0.5 * X[:, 7]))
    >>> GroupDiscoveryRegressor(1, loss="poisson").fit(X, counts).support_features_
    array([7])

    Two targets:

    >>> several = GroupDiscoveryRegressor(2).fit(X, np.column_stack([y, 100 * X[:, 7]]))
    >>> several.support_features_, several.coef_.shape, several.predict(X[:4]).shape
    (array([7, 2]), (2, 20), (4, 2))
    """

    _target = "numbers"
    _auto_penalty = 0.3
    _allowed: ClassVar[dict[str, Rule]] = {
        **GroupDiscovery._allowed,
        "C": PENALTY | OneOf("auto"),
        "loss": LossRule("numbers"),
        "quantile": Fraction(),
        "fit_intercept": Boolean(),
        "scale_targets": Boolean(),
    }
    scale_targets: bool
    quantile: float
    target_names_: np.ndarray
    target_scale_: np.ndarray

    def __init__(
        self,
        n_features_to_select: int | float | str = 100,
        *,
        loss: str | LossLike = "squared",
        quantile: float = 0.5,
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
        scale_targets: bool = True,
        standardize: bool | str = "auto",
        cv: FoldsLike = None,
        cv_part: str = "training",
        max_rounds: int | None = None,
        tol: float = 1e-4,
        n_jobs: int | None = None,
        random_state: RandomStateLike = None,
        verbose: int = 0,
    ) -> None:
        self._store(locals())

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.target_tags.positive_only = LossRule("numbers").allows(self.loss) and trait(self._loss, "positive_targets")
        # Counts may have several columns, too, but scikit-learn's check of several targets has negative ones.
        tags.target_tags.multi_output = not tags.target_tags.positive_only
        return tags

    @property
    def _loss(self) -> LossLike:
        return Quantile(float(self.quantile)) if self._predicts_quantile else super()._loss

    @property
    def _predicts_quantile(self) -> bool:
        return isinstance(self.loss, str) and self.loss == "quantile"

    def _read(self, *args: Any, **options: Any) -> Input:
        if self.quantile != 0.5 and not self._predicts_quantile:
            raise ValueError(f"quantile={self.quantile!r} requires loss='quantile', not loss={self.loss!r}.")
        data = super()._read(*args, **options)
        names = data.target_names
        if names is None:
            return data
        if not trait(self._loss, "takes_several_targets"):
            raise ValueError(
                f"y has {len(names)} targets, but the loss has one. Fit one model per target, or use a loss for several "
                f"targets: {known_losses('numbers')}."
            )
        return scaled(data, self._loss) if self.scale_targets else data

    def _published(self, attributes: dict[str, Any], data: Input) -> dict[str, Any]:
        kept = {name: value for name, value in attributes.items() if name != "margin_"}  # defined for classifiers only
        if data.target_names is None:
            return {**kept, "intercept_": float(attributes["intercept_"][0])}
        moments = kept["member_moments_"]
        moments = replace(moments, output_scale=data.in_units(moments.output_scale))
        return (
            kept | {name: data.in_units(kept[name].T).T for name in _IN_UNITS if name in kept} | {"member_moments_": moments}
        )

    def predict(self, X: FeaturesLike, covariates: CovariatesLike = None, offset: SamplesLike = None) -> np.ndarray:
        """Predict the target, or all targets, of samples.

        Parameters
        ----------
        %(new_samples)s
        %(new_covariates)s
        %(new_offset)s

        Returns
        -------
        values : ndarray of shape (n_samples,) or (n_samples, n_targets)
        """
        return self._loss.predict(self._outputs(X, covariates, offset))

    def score(
        self,
        X: FeaturesLike,
        y: TargetsLike = None,
        sample_weight: SamplesLike = None,
        covariates: CovariatesLike = None,
        offset: SamplesLike = None,
    ) -> float:
        """Return R², the share of the variance of the target that is predicted.

        It is the share of the deviance for ``loss="poisson"`` and ``"gamma"``, of the absolute error for ``loss="huber"``, and
        of the pinball loss for ``loss="quantile"``.
        The score of several targets is the mean of their scores.

        Parameters
        ----------
        X : as for :meth:`fit`
        y : array-like of shape (n_samples,) or (n_samples, n_targets), str or None, default=None
            Targets, as for :meth:`fit`.
        sample_weight : array-like of shape (n_samples,), default=None
        %(new_covariates)s
        %(new_offset)s

        Returns
        -------
        score : float
        """
        predicted, target = self._prediction_and_target(X, y, covariates, offset)
        if hasattr(target, "columns") and hasattr(self, "target_names_"):
            target = np.column_stack([np.asarray(target[name]) for name in self.target_names_])
        weight = None if sample_weight is None else np.asarray(sample_weight, dtype=np.float64)
        measure = trait(self._loss, "error_measure")
        if measure is SQUARED_ERROR:
            return float(r2_score(target, predicted, sample_weight=sample_weight))
        return explained(measure, np.asarray(target, dtype=np.float64), predicted, weight)

    @property
    def coef_(self) -> np.ndarray:
        """Weights of all features in the prediction, of shape (n_features,) or (n_targets, n_features); computed on access."""
        return super().coef_ if hasattr(self, "target_names_") else super().coef_[0]


@documented
class GroupDiscoveryRegressorCV(ValidatedDiscovery, GroupDiscoveryRegressor):
    """Group discovery for numeric targets, with settings chosen by cross-validation.

    Cross-validation chooses the number of features, C and the features used for prediction. For every C, threshold and scale,
    each fold computes one path of rounds, up to ``max_features_to_select`` features. Every size on the path is scored on the
    held-out samples. All paths share each pass over the data, so many paths need as many passes as one. The model with the
    chosen settings is then fitted to all samples.

    Parameters
    ----------
    %(sizes)s

    loss : str or Loss, default="squared"
        Loss function, as in :class:`GroupDiscoveryRegressor`.

    quantile : float, default=0.5
        Quantile that ``loss="quantile"`` predicts.

    %(Cs)s

    %(choice)s

    %(n_features_per_round)s

    %(reuse_features)s

    %(grouping)s

    %(predict_with_choice)s

    %(fit_intercept)s

    %(scale_targets)s

    %(standardize_choice)s

    cv : int or cross-validation generator, default=5
        Folds of the cross-validation. An integer is a number of shuffled folds.

    scoring : str, callable or None, default=None
        Score, as in scikit-learn; None for R², or D² for ``loss="huber"`` (absolute error), ``"quantile"`` (pinball
        loss), ``"poisson"`` and ``"gamma"`` (deviance). Sample weights are passed to it. A callable
        ``scorer(estimator, X, y)`` gets as X the predicted values of the held-out samples, of shape
        (n_samples, 1), and as estimator an object that predicts from them.

    %(embedded_choice)s

    %(running_paths)s

    Attributes
    ----------
    %(chosen)s

    groups_, support_features_, support_coef_, coef_, intercept_, history_, ...
        As in :class:`GroupDiscoveryRegressor`, for the model fitted to all samples.

    See Also
    --------
    GroupDiscoveryRegressor : Group discovery with a given number of features, or ``"auto"``, and a given C.
    GroupDiscoveryClassifierCV : The same for classes.
    sklearn.feature_selection.RFECV : Recursive elimination with the number of features chosen in the same way.

    Notes
    -----
    ``best_score_`` is the best of many scores and therefore slightly optimistic. Score the model on other data.
    Among equal scores, the candidate with fewer features is chosen, then the one with the smaller C.

    Examples
    --------
    >>> import numpy as np
    >>> from coterie import GroupDiscoveryRegressorCV
    >>> rng = np.random.default_rng(0)
    >>> X = rng.standard_normal((100, 20))
    >>> y = 3 * X[:, 2] - X[:, 7] + rng.standard_normal(100)
    >>> model = GroupDiscoveryRegressorCV(10, rule="one_se", random_state=0).fit(X, y)
    >>> model.support_features_
    array([2, 7])
    """

    _allowed: ClassVar[dict[str, Rule]] = validated_rules(GroupDiscoveryRegressor)

    def __init__(
        self,
        max_features_to_select: int = 100,
        *,
        loss: str | LossLike = "squared",
        quantile: float = 0.5,
        min_features_to_select: int = 1,
        Cs: int | Sequence[float] = 4,
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
        scale_targets: bool = True,
        standardize: bool | str | Sequence[bool] = "auto",
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
