"""Group discovery for survival times, with given settings or settings chosen by cross-validation."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike

from coterie._parameters import PENALTY, Function, OneOf, Rule
from coterie._sklearn import with_callbacks
from coterie.correlation.compatibility import Compatibility
from coterie.estimators.base import GroupDiscovery
from coterie.estimators.documentation import documented
from coterie.estimators.validated import ValidatedDiscovery, validated_rules
from coterie.inputs.opening import Input
from coterie.inputs.survival import read_survival, require_events
from coterie.inputs.targets import read_sample_weight
from coterie.inputs.types import (
    ClientLike,
    CovariatesLike,
    FeaturesLike,
    FoldsLike,
    NamesLike,
    RandomStateLike,
    SampleGroupsLike,
    SamplesLike,
    ScoringLike,
    TargetsLike,
)
from coterie.search.oracle import Representative
from coterie.search.search import CorrelationLike
from coterie.solver.cox import TIES, CoxLoss
from coterie.solver.cox_regression import PartialLikelihood
from coterie.solver.loss import LossLike
from coterie.validation.held_out import HeldOutScores
from coterie.validation.path_search import Fold
from coterie.validation.survival import SCORES, PartialDeviance, SurvivalScores, linearised_concordance


@documented
class GroupDiscoverySurvival(GroupDiscovery):
    """Survival model that selects a few features and groups the features correlated with each of them.

    The Group Discovery Machine with the partial likelihood of Cox's proportional hazards. Parameters, attributes and
    certificates are those of :class:`GroupDiscoveryClassifier`.

    Parameters
    ----------
    %(n_features_to_select)s

    ties : {"breslow", "efron"}, default="breslow"
        Rule for tied event times. With ``"breslow"``, a sample weight of 2 is equivalent to having the sample twice.
        ``"efron"`` is more accurate if there are many ties.

    %(n_features_per_round)s

    %(reuse_features)s

    %(grouping)s

    %(predict_with)s

    C : float or "auto", default="auto"
        Weight of the loss, relative to the penalty on the weights. ``"auto"`` is 0.3 for standardised features, and
        otherwise 0.3 divided by the geometric mean of the variances of the features, as in
        :class:`GroupDiscoveryRegressor`.

    %(standardize)s

    %(embedded)s

    %(running)s

    Attributes
    ----------
    coef_ : ndarray of shape (n_features,)
        Weights of all features in the log hazard.

    intercept_ : float
        Minus the log hazard of the mean of the training samples, so that risks are relative to it. It has no effect on the
        likelihood.

    event_times_ : ndarray of shape (n_times,)
        Times of the events of the training samples.

    cumulative_baseline_hazard_ : ndarray of shape (n_times,) or (n_strata, n_times)
        Breslow's estimate of the cumulative hazard of a sample of risk 0 at these times.

    strata_ : ndarray of shape (n_strata,)
        Labels of the strata, if there are any.

    %(found)s

    %(adjusted)s

    See Also
    --------
    GroupDiscoverySurvivalCV : The same with settings chosen by cross-validation.
    coterie.metrics.concordance_index : The score of risks.

    Notes
    -----
    The partial likelihood does not depend on a constant, so there is no intercept to fit. Folds and half-samples keep the
    share of events.

    Examples
    --------
    >>> import numpy as np
    >>> from coterie import GroupDiscoverySurvival
    >>> rng = np.random.default_rng(0)
    >>> X = rng.standard_normal((200, 20))
    >>> X[:, 5] = X[:, 2] + 0.3 * X[:, 5]
    >>> time, end = rng.exponential(np.exp(-X[:, 2] + X[:, 7])), rng.exponential(2.0, 200)
    >>> y = np.column_stack([np.minimum(time, end), time <= end])
    >>> model = GroupDiscoverySurvival(2, n_features_per_round=1).fit(X, y)
    >>> model.groups_
    2 groups, 3 features
      1. 2 ~ 5 (+0.96)
      2. 7 (alone)
    >>> round(model.score(X, y), 2)
    0.78
    >>> model.predict_survival_function(X[:2], times=[0.5, 1.0]).round(2)
    array([[0.69, 0.43],
           [0.55, 0.26]])
    """

    _target = "survival"
    _auto_penalty = 0.3
    # Features are centred, because a constant has no effect on the likelihood.
    fit_intercept = True
    ties: str
    event_times_: np.ndarray
    cumulative_baseline_hazard_: np.ndarray
    _allowed: ClassVar[dict[str, Rule]] = {
        **GroupDiscovery._allowed,
        "C": PENALTY | OneOf("auto"),
        "ties": OneOf(*TIES),
    }

    def __init__(
        self,
        n_features_to_select: int | float | str = 100,
        *,
        ties: str = "breslow",
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

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        return tags

    @with_callbacks
    def fit(
        self,
        X: FeaturesLike,
        y: TargetsLike = None,
        sample_weight: SamplesLike = None,
        *,
        feature_names: NamesLike = None,
        covariates: CovariatesLike = None,
        offset: SamplesLike = None,
        groups: SampleGroupsLike = None,
        client: ClientLike = None,
    ) -> Self:
        """Find groups of features that predict the order of the events.

        Parameters
        ----------
        %(X)s
        y : structured array, data frame or array-like of shape (n_samples, 2) or (n_samples, 3)
            Time of the event or of the end of observation, and whether the event occurred (1 or True) or the sample is
            censored (0 or False). A structured array is that of scikit-survival. The column of events is the boolean one, the
            one named ``event`` or ``status``, or the one that contains 0 and 1 only. A third column (named ``stratum``, or the
            last one) contains strata: samples of different strata have different baseline hazards and are not compared. A
            field or column named ``entry`` or ``start`` contains entry times (delayed entry, left truncation): a sample is
            at risk from after its entry to its time.
        %(sample_weight)s
        %(feature_names)s
        covariates : array-like or data frame of shape (n_samples, n_covariates), default=None
            Covariates such as age, sex or stage. The model adjusts for them and never selects them. They are fitted together
            with the features, with a negligible penalty. None uses those of a data set or store.
        offset : array-like of shape (n_samples,), default=None
            Number per sample that is added to its log hazard.
        %(sample_groups)s
        %(client)s

        Returns
        -------
        self : estimator
            The fitted estimator.
        """
        return self._fit(lambda: self._read(X, y, sample_weight, feature_names, covariates, offset, groups, client))

    @property
    def _loss(self) -> LossLike:
        return PartialLikelihood(self.ties)

    def _discovered(self, data: Input, *args: Any, **known: Any) -> dict[str, Any]:
        fitted = super()._discovered(data, *args, **known)
        return fitted | self._baseline(data, fitted)

    def _baseline(self, data: Input, fitted: Mapping[str, Any]) -> dict[str, Any]:
        """Return the attributes of the baseline hazard, from the outputs of the training samples."""
        columns = data.source.columns(fitted["prediction_features_"])
        outputs = np.asarray(columns @ fitted["prediction_coef_"].T) + fitted["intercept_"]
        if data.covariates is not None:
            outputs = outputs + data.covariates @ fitted["covariate_coef_"].T
        weight = np.ones(data.n_samples) if data.weight is None else data.weight
        loss = CoxLoss(data.targets, weight, 1.0, self.ties, data.offset)
        stratum, time, increase = loss.baseline(outputs)
        times, place = np.unique(time, return_inverse=True)
        n_strata = len(data.attributes.get("strata_", (0,)))
        steps = np.bincount(stratum * len(times) + place, increase, minlength=n_strata * len(times))
        hazard = steps.reshape(n_strata, -1).cumsum(axis=1)
        shown = hazard if "strata_" in data.attributes else hazard[0]
        return {"event_times_": times, "cumulative_baseline_hazard_": shown}

    def _published(self, attributes: dict[str, Any], data: Input) -> dict[str, Any]:
        kept = {name: value for name, value in attributes.items() if name != "margin_"}  # defined for classifiers only
        return {**kept, "intercept_": float(attributes["intercept_"][0])}

    def predict(self, X: FeaturesLike, covariates: CovariatesLike = None, offset: SamplesLike = None) -> np.ndarray:
        """Predict the risk of samples: the logarithm of the hazard relative to the baseline.

        Parameters
        ----------
        %(new_samples)s
        %(new_covariates)s
        %(new_offset)s

        Returns
        -------
        risk : ndarray of shape (n_samples,)
            Larger for earlier events.
        """
        return self._loss.predict(self._outputs(X, covariates, offset))

    def predict_survival_function(
        self,
        X: FeaturesLike,
        times: ArrayLike | None = None,
        covariates: CovariatesLike = None,
        offset: SamplesLike = None,
        strata: ArrayLike | None = None,
    ) -> np.ndarray:
        r"""Predict the probabilities that samples have no event up to given times, with Breslow's baseline hazard.

        .. math:: S(t \mid x) = \exp(-H_0(t)\,e^{f(x)})

        Parameters
        ----------
        %(new_samples)s
        times : array-like of shape (n_times,), default=None
            Times; None for ``event_times_``. After the last event, the probability no longer decreases.
        %(new_covariates)s
        %(new_offset)s
        strata : array-like of shape (n_samples,), default=None
            Strata of these samples; required if the model was fitted with strata.

        Returns
        -------
        probabilities : ndarray of shape (n_samples, n_times)
        """
        risk = self.predict(X, covariates, offset)
        wanted = self.event_times_ if times is None else np.asarray(times, dtype=np.float64)
        if wanted.ndim != 1 or not np.isfinite(wanted).all():
            raise ValueError(f"times must be a flat list of numbers, but has the shape {wanted.shape} or infinite entries.")
        place = np.searchsorted(self.event_times_, wanted, side="right")
        hazard = np.atleast_2d(self.cumulative_baseline_hazard_)
        reached = np.hstack([np.zeros((len(hazard), 1)), hazard])[:, place]
        return np.asarray(np.exp(-reached[self._stratum_codes(strata, len(risk))] * np.exp(risk)[:, None]))

    def _stratum_codes(self, strata: ArrayLike | None, n_samples: int) -> np.ndarray:
        """Return the numbers of the strata of new samples."""
        known = getattr(self, "strata_", None)
        if (known is None) != (strata is None):
            which = "without strata. Omit them." if known is None else f"with the strata {known.tolist()}. Pass strata=."
            raise ValueError(f"The model was fitted {which}")
        if strata is None or known is None:
            return np.zeros(n_samples, dtype=np.int64)
        given = np.asarray(strata)
        if given.shape != (n_samples,):
            raise ValueError(f"strata has the shape {given.shape}, but X has {n_samples} samples.")
        position = {label: code for code, label in enumerate(known.tolist())}
        unknown = [label for label in given.tolist() if label not in position]
        if unknown:
            raise ValueError(f"strata contains {unknown[0]!r}, which the model was not fitted with ({known.tolist()}).")
        return np.array([position[label] for label in given.tolist()], dtype=np.int64)

    def score(
        self,
        X: FeaturesLike,
        y: TargetsLike = None,
        sample_weight: SamplesLike = None,
        covariates: CovariatesLike = None,
        offset: SamplesLike = None,
    ) -> float:
        """Return Harrell's concordance index: the share of comparable pairs in which the earlier event has the larger risk.

        Parameters
        ----------
        X : as for :meth:`fit`
        y : as for :meth:`fit`
            Times and events. With strata, only pairs of the same stratum are compared; with entry times, only samples at
            risk at the earlier event.
        sample_weight : array-like of shape (n_samples,), default=None
        %(new_covariates)s
        %(new_offset)s

        Returns
        -------
        score : float
            1 for the right order, 0.5 for chance.
        """
        risk, given = self._prediction_and_target(X, y, covariates, offset)
        targets, _ = read_survival(given, len(risk), self)
        weight = read_sample_weight(sample_weight, targets["time"])
        return linearised_concordance(targets, risk, np.ones(len(risk)) if weight is None else weight).value

    @property
    def coef_(self) -> np.ndarray:
        """Weights of all features in the log hazard, of shape (n_features,); computed on access."""
        return super().coef_[0]


@documented
class GroupDiscoverySurvivalCV(ValidatedDiscovery, GroupDiscoverySurvival):
    """Group discovery for survival times, with settings chosen by cross-validation.

    Cross-validation chooses the number of features, C and the features used for prediction, as in
    :class:`GroupDiscoveryRegressorCV`. The criterion is the deviance of the partial likelihood of held-out samples.

    Parameters
    ----------
    %(sizes)s

    ties : {"breslow", "efron"}, default="breslow"
        Rule for tied event times, as in :class:`GroupDiscoverySurvival`.

    %(Cs)s

    %(choice)s

    %(n_features_per_round)s

    %(reuse_features)s

    %(grouping)s

    predict_with : {"auto", "support", "groups"} or list of these, default="auto"
        Features used for prediction. From a list, validation chooses. ``"auto"`` stands for ``"groups"``, and for
        ``"support"`` with more than 2,000 samples.

    %(standardize_choice)s

    cv : int or cross-validation generator, default=5
        Folds of the cross-validation. An integer is a number of shuffled folds with equal shares of events.

    scoring : {"concordance_index", "concordance_index_ipcw"}, callable or None, default=None
        Score: Harrell's concordance index (None), or Uno's with pairs weighted by the inverse probability of censoring. A
        callable ``scorer(estimator, X, y)`` gets as X the risks of the held-out samples, of shape (n_samples, 1), as
        estimator an object that predicts them, and as y a structured array of event, time, stratum and entry. With a score of
        the user, ``rule="auto"`` means ``"best"``.

    %(embedded_choice)s

    %(running_paths)s

    Attributes
    ----------
    %(chosen)s

    groups_, support_features_, support_coef_, coef_, event_times_, history_, ...
        As in :class:`GroupDiscoverySurvival`, for the model fitted to all samples.

    See Also
    --------
    GroupDiscoverySurvival : Group discovery with a given number of features, or ``"auto"``, and a given C.

    Notes
    -----
    ``best_score_`` is the best of many scores and therefore slightly optimistic. Score the model on other data.

    Examples
    --------
    >>> import numpy as np
    >>> from coterie import GroupDiscoverySurvivalCV
    >>> rng = np.random.default_rng(0)
    >>> X = rng.standard_normal((200, 20))
    >>> time, end = rng.exponential(np.exp(-X[:, 2] + X[:, 7])), rng.exponential(2.0, 200)
    >>> y = np.column_stack([np.minimum(time, end), time <= end])
    >>> model = GroupDiscoverySurvivalCV(10, rule="one_se", random_state=0).fit(X, y)
    >>> model.support_features_
    array([2, 7])
    """

    _allowed: ClassVar[dict[str, Rule]] = {
        **validated_rules(GroupDiscoverySurvival),
        "scoring": OneOf(*SCORES, None) | Function(),
    }
    # Models of the support features alone predict less well (docs/evidence/survival-evidence.md).
    _automatic_kinds = ("groups",)

    def __init__(
        self,
        max_features_to_select: int = 100,
        *,
        ties: str = "breslow",
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

    def _held_out_scores(self, data: Input) -> HeldOutScores:
        return SurvivalScores(self.scoring, data, self._loss)

    def _held_out_deviance(self, data: Input, score: HeldOutScores) -> PartialDeviance:
        weight = np.ones(data.n_samples) if data.score_weight is None else data.score_weight
        return PartialDeviance(data.targets, weight, self.ties)

    @property
    def _stratified(self) -> bool:
        return True

    def _folds(self, data: Input) -> list[Fold]:
        folds = super()._folds(data)
        weight = np.ones(data.n_samples) if data.score_weight is None else data.score_weight
        for number, fold in enumerate(folds, start=1):
            held_out = fold.parts[0]
            pairs = linearised_concordance(data.targets[held_out], np.zeros(len(held_out)), weight[held_out])
            if np.isnan(pairs.value):
                raise ValueError(
                    f"Fold {number} of cv holds out no event with a later sample, so it cannot be scored. Use fewer folds."
                )
        return folds

    def _check_fold(self, data: Input, weight: np.ndarray, name: str) -> None:
        require_events(data.targets, weight, f"The training part of {name[0].lower()}{name[1:]}")
