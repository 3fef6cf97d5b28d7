"""Base class of the group-discovery estimators: reads the data, builds the settings, searches, and sets the attributes."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from dataclasses import replace
from numbers import Integral
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.metadata_routing import UNUSED
from sklearn.utils.validation import check_is_fitted

from coterie._numba import one_blas_thread, thread_count
from coterie._parameters import (
    N_BINS,
    N_FEATURES_OR_AUTO,
    N_JOBS,
    PENALTY,
    VERBOSE,
    AnyValue,
    Boolean,
    Function,
    Integer,
    Number,
    OneOf,
    ParameterError,
    Rule,
)
from coterie._sklearn import CallbackSupportMixin, RoundReport, with_callbacks
from coterie.correlation.compatibility import COMPATIBILITY, Compatibility
from coterie.correlation.measures import CORRELATION_OR_NONE
from coterie.data.covariates import match_covariates
from coterie.data.source import Moments
from coterie.estimators.documentation import documented
from coterie.groups import FeatureGroups
from coterie.groups.moments import MemberMoments
from coterie.inputs.naming import columns_read
from coterie.inputs.offsets import match_offset
from coterie.inputs.opening import Input, TargetKind, open_input, unwrap_new
from coterie.inputs.several_targets import errors_of
from coterie.inputs.types import (
    ClassWeightLike,
    ClientLike,
    CovariatesLike,
    FeaturesLike,
    FoldsLike,
    NamesLike,
    RandomStateLike,
    SampleGroupsLike,
    SamplesLike,
    TargetsLike,
)
from coterie.interruption import stop_requested
from coterie.methods import load
from coterie.search.loop import CuttingPlane, Round
from coterie.search.oracle import Representative
from coterie.search.outcome import outcome_of
from coterie.search.search import CorrelationLike, Search, SearchSettings, run_with_progress
from coterie.selection import FeatureSets, Selector, features_of_share
from coterie.solver.families import POISSON
from coterie.solver.loss import LossLike, trait
from coterie.solver.losses import family_of, known_losses, loss_of
from coterie.validation.threshold import Threshold

if TYPE_CHECKING:
    from coterie.confidence.result import GroupConfidence
    from coterie.report.result import Report

# Share of support features with weight 0 above which a fit warns.
_MAX_ZERO_SHARE = 0.5


@documented
class GroupDiscovery(CallbackSupportMixin, FeatureSets, Selector):
    """Base class that runs a search; subclasses define the kind of target and the loss."""

    # Parameters that the constructors of all subclasses store.
    n_features_to_select: int | float | str
    n_features_per_round: int | str
    reuse_features: bool
    correlation: CorrelationLike
    threshold: float
    n_bins: int
    compatibility: Compatibility | None
    affiliates: str
    representative: Representative
    fixed_features: ArrayLike | None
    keep: str
    predict_with: str
    C: float | str
    standardize: bool | str
    cv: FoldsLike
    cv_part: str
    max_rounds: int | None
    tol: float
    n_jobs: int | None
    random_state: RandomStateLike
    verbose: int
    # Parameters that some subclasses lack.
    loss: str | LossLike
    fit_intercept: bool = False
    class_weight: ClassWeightLike = None
    equal_classes: bool = False
    # Fitted attributes.
    groups_: FeatureGroups
    confidence_: GroupConfidence
    standardize_: bool
    C_: float
    prediction_features_: np.ndarray
    prediction_coef_: np.ndarray
    member_moments_: MemberMoments
    intercept_: np.ndarray
    covariate_coef_: np.ndarray
    offset_coef_: np.ndarray
    # Kind of target for the estimator and its loss, and whether the estimator adjusts for covariates.
    _target: ClassVar[TargetKind]
    _adjusts: ClassVar[bool] = True
    _on_cluster: ClassVar[str] = "parts"
    # C="auto" is this number divided by a typical variance of the features.
    _auto_penalty: ClassVar[float] = 1.0
    # Exclude the client from metadata routing, because it is not a property of samples.
    __metadata_request__fit: ClassVar[dict[str, Any]] = {"client": UNUSED}
    _allowed: ClassVar[dict[str, Rule]] = {
        "n_features_to_select": N_FEATURES_OR_AUTO,
        "n_features_per_round": Integer(1) | OneOf("auto"),
        "reuse_features": Boolean(),
        "correlation": CORRELATION_OR_NONE,
        "threshold": Number(at_most=1),
        "n_bins": N_BINS,
        "compatibility": COMPATIBILITY,
        "affiliates": OneOf("complete", "ranked"),
        "representative": OneOf("score", "medoid") | Function(),
        "fixed_features": AnyValue(),
        "keep": OneOf("support", "groups"),
        "predict_with": OneOf("support", "groups"),
        "C": PENALTY,
        "standardize": Boolean() | OneOf("auto"),
        "cv": AnyValue(),
        "cv_part": OneOf("training", "fold"),
        "max_rounds": Integer(1) | OneOf(None),
        "tol": Number(),
        "n_jobs": N_JOBS,
        "random_state": AnyValue(),
        "verbose": VERBOSE,
    }

    def _store(self, parameters: Mapping[str, Any]) -> None:
        """Store the parameters of a constructor, passed as its ``locals()``."""
        for name, value in parameters.items():
            if name not in ("self", "__class__"):
                setattr(self, name, value)

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
        """Find groups of features that predict the target.

        Parameters
        ----------
        %(X)s
        y : array-like of shape (n_samples,) or (n_samples, n_targets), or str, default=None
            Labels of two or more classes, or numbers; for a regressor, the columns may be several targets. For AnnData, also
            the name of a column of ``obs``; for a path, also the name of its labels. None uses the labels of a
            path, data set or store.
        %(sample_weight)s
        %(feature_names)s
        covariates : array-like or data frame of shape (n_samples, n_covariates), default=None
            Covariates such as age, sex or principal components. The model adjusts for them and never selects them. They are
            fitted together with the features, with a negligible penalty. None uses those of a data set or store.
        %(offset)s
        %(sample_groups)s
        %(client)s

        Returns
        -------
        self : estimator
            The fitted estimator.
        """
        return self._fit(lambda: self._read(X, y, sample_weight, feature_names, covariates, offset, groups, client))

    def _read(
        self,
        X: FeaturesLike,
        y: TargetsLike,
        sample_weight: SamplesLike = None,
        feature_names: NamesLike = None,
        covariates: CovariatesLike = None,
        offset: SamplesLike = None,
        groups: SampleGroupsLike = None,
        client: ClientLike = None,
    ) -> Input:
        data = open_input(
            X,
            y,
            reader=self,
            target=self._target,
            sample_weight=sample_weight,
            covariates=covariates,
            adjusts=self._adjusts,
            offset=offset,
            groups=groups,
            feature_names=feature_names,
            client=client,
        )
        if data.offset is not None and not trait(self._loss, "takes_offset"):
            raise ValueError(f"offset= for numbers requires a loss that uses it: {known_losses(self._target)}.")
        self._check_targets(data)
        return data

    def _check_targets(self, data: Input) -> None:
        """Raise a ``ValueError`` for targets for which the loss is not defined."""
        check = trait(self._loss, "check")
        if data.target_names is None:
            check(data.targets, data.weight)
            return
        for name, target in zip(data.target_names, data.targets.T, strict=True):
            with errors_of(name):
                check(target, data.weight)

    @property
    def _loss(self) -> LossLike:
        """Loss of the estimator."""
        return loss_of(self.loss, self._target)

    @property
    def _embedded_cv(self) -> FoldsLike:
        """Folds of embedded cross-validation, or None."""
        return self.cv

    def _shared_settings(self) -> SearchSettings:
        """Return the settings of the search from the parameters, without those that validation may choose."""
        per_round = self.n_features_per_round
        if self.compatibility is not None and self.correlation is None:
            raise ParameterError(
                "compatibility has no effect with correlation=None, which forms no groups. Remove one of them.",
                "compatibility",
                "correlation",
            )
        if self.equal_classes and self._embedded_cv is not None:
            name = "cv" if self._embedded_cv is getattr(self, "cv", None) else "embedded_cv"
            shown = f"{name}={self._embedded_cv}" if isinstance(self._embedded_cv, Integral) else name
            raise ParameterError(
                f"equal_classes=True cannot be combined with {shown}, whose folds vote for features. Remove one of them.",
                "equal_classes",
                name,
            )
        return SearchSettings(
            loss=self._loss,
            fit_intercept=bool(self.fit_intercept),
            class_weight=self.class_weight,
            equal_classes=bool(self.equal_classes),
            n_features_per_round=None if isinstance(per_round, str) else int(per_round),
            reuse_features=bool(self.reuse_features),
            correlation=self.correlation,
            threshold=float(self.threshold),
            n_bins=int(self.n_bins),
            compatibility=self.compatibility,
            affiliates=self.affiliates,
            representative=self.representative,
            fixed_features=self.fixed_features,
            cv=self._embedded_cv,
            cv_part=self.cv_part,
            random_state=self.random_state,
            max_rounds=self.max_rounds,
            tol=float(self.tol),
        )

    def _settings(self) -> SearchSettings:
        """Return the settings of the search from the parameters, with the default C for ``"auto"``."""
        standardize = None if isinstance(self.standardize, str) else bool(self.standardize)
        settings = replace(self._shared_settings(), predict_with=self.predict_with, standardize=standardize)
        return settings if isinstance(self.C, str) else replace(settings, C=float(self.C))

    def _fitted_settings(self) -> SearchSettings:
        """Return the settings of the search that produced this fitted model."""
        settings = self._settings()
        # Models saved by earlier versions have no C_. Their C is a number.
        return replace(settings, C=getattr(self, "C_", settings.C), standardize=self.standardize_)

    def _compute(self, data: Input) -> dict[str, Any]:
        settings, moments = self._settings(), None
        if isinstance(self.C, str):
            C, moments = Search(data, settings, None, thread_count(self.n_jobs)).relative_penalty(self._auto_penalty)
            settings = replace(settings, C=C)
        n_features = self._n_features_wanted(data.n_features)
        fitted = self._discovered(data, settings, n_features, moments=moments, C_=settings.C)
        if n_features is not None and settings.predict_with == "support":
            self._warn_if_unused(fitted["support_coef_"], n_features, settings.C)
        return fitted

    def _warn_if_unused(self, coef: np.ndarray, n_features: int, C: float) -> None:
        """Warn if most of the requested support features have the weight 0; fewer than requested have a warning already."""
        n_zeros = coef.shape[1] - np.count_nonzero(coef.any(axis=0))
        if coef.shape[1] < n_features or n_zeros <= _MAX_ZERO_SHARE * n_features:
            return
        may_scale = not isinstance(self.C, str) and self._allowed["C"].allows("auto")
        hint = ' (C="auto" follows the scale of the features)' if may_scale else ""
        warnings.warn(
            f"{n_zeros} of {n_features} support features have the weight 0 and do not contribute to predictions: "
            f"the penalty is strong at C={C:.3g}. Use a larger C{hint} or request fewer features.",
            UserWarning,
            stacklevel=6,
        )

    def _n_features_wanted(self, n_features: int) -> int | None:
        """Return the requested number of support features, which may exceed ``n_features``; None for ``"auto"``."""
        requested = self.n_features_to_select
        if isinstance(requested, str):
            return None
        return int(requested) if isinstance(requested, Integral) else features_of_share(requested, n_features)

    def _discovered(
        self,
        data: Input,
        settings: SearchSettings,
        n_features: int | None,
        *,
        moments: Moments | None = None,
        stoppable: bool = True,
        **known: Any,
    ) -> dict[str, Any]:
        """Run the search and return the fitted attributes, including those already ``known``.

        ``moments`` are the moments of the features, if they have been computed. If ``stoppable``, a signal ends the search
        after the current round.
        """
        loop = Search(data, settings, n_features, thread_count(self.n_jobs)).loop(moments)
        known = {**data.attributes, **({} if data.classes is None else {"classes_": data.classes}), **known}
        # With embedded cross-validation or reused features, a round may add fewer new features than requested. The number of
        # rounds is then unknown.
        bounded = not settings.reuse_features and settings.cv is None
        one_class = task_of(self) == "one-class"
        most_rounds = loop.rule.most_rounds() if bounded else settings.max_rounds
        report = RoundReport(self, most_rounds if most_rounds is None else most_rounds + (len(loop.fixed) > 0), data.labels)

        def state() -> dict[str, Any]:
            outcome = outcome_of(loop, settings.predict_with, data.classes, one_class=one_class)
            return {**known, **self._published(_offset_apart(outcome.attributes(), data), data)}

        def on_round(_: Round) -> bool:
            return report.round_done(state) or (stoppable and stop_requested())

        # Callbacks compute the groups after each round, which counts in the history of the next one.
        run_with_progress(loop, type(self).__name__, int(self.verbose), on_round, one_by_one=report.context is not None)
        with one_blas_thread():
            fitted = state()
        _warn_if_short(loop, n_features, settings.max_rounds)
        _warn_if_inexact(settings, fitted["prediction_gap_"], fitted["standardize_"])
        report.done(fitted)
        return fitted

    def _published(self, attributes: dict[str, Any], data: Input) -> dict[str, Any]:
        """Return the fitted attributes in the form of this estimator; ``data`` are those of the search."""
        return attributes

    def _threshold_rule(self) -> Threshold | None:
        """Return the rule for the threshold of one-class models; None for other models."""
        return None

    def report(self, X: FeaturesLike, y: TargetsLike = None, path: Any = None, **options: Any) -> Report:
        """Create a report of the model; see :func:`coterie.report` for the options.

        Parameters
        ----------
        X, y
            The data of the fit.
        path : path, default=None
            File to save the report to.
        **options
            Further arguments of :func:`coterie.report`.

        Returns
        -------
        report : coterie.report.Report
            Report, which a notebook displays.
        """
        make: Callable[..., Report] = load("coterie.report.assembly:report")
        return make(self, X, y, path, **options)

    def _kept(self) -> np.ndarray:
        check_is_fitted(self)
        return self.groups_.members if self.keep == "groups" else np.sort(self.groups_.support)

    def _outputs(self, X: FeaturesLike, covariates: CovariatesLike = None, offset: SamplesLike = None) -> np.ndarray:
        """Return ``X @ coef + intercept``, of shape (n_samples, n_outputs), plus the outputs of covariates and offset.

        Only the features used for prediction are read.
        """
        check_is_fitted(self)
        found = unwrap_new(self, X, features=self.prediction_features_, covariates=covariates is None)
        columns = columns_read(self, found.X, self.prediction_features_)
        outputs = np.asarray(columns @ self.prediction_coef_.T) + self.intercept_
        if covariates is None and hasattr(self, "covariate_names_"):
            covariates = found.covariates
        known = match_covariates(self, covariates, len(outputs))
        if known is not None:
            outputs = outputs + known @ self.covariate_coef_.T
        added = match_offset(self, offset, len(outputs))
        return outputs if added is None else outputs + added * self.offset_coef_

    def _prediction_and_target(
        self, X: FeaturesLike, y: TargetsLike, covariates: CovariatesLike, offset: SamplesLike
    ) -> tuple[np.ndarray, Any]:
        """Return the predictions and the labels or targets of samples."""
        found = unwrap_new(self, X, y, features=self.prediction_features_, covariates=covariates is None)
        if covariates is None and hasattr(self, "covariate_names_"):
            covariates = found.covariates
        return self.predict(found.X, covariates, offset), found.y

    @property
    def coef_(self) -> np.ndarray:
        """Weights of all features in the prediction, of shape (n_outputs, n_features); computed on access."""
        check_is_fitted(self)
        coef = np.zeros((len(self.prediction_coef_), self.n_features_in_))
        coef[:, self.prediction_features_] = self.prediction_coef_
        return coef


def task_of(model: GroupDiscovery) -> str:
    """Return the task of an estimator: ``"classification"``, ``"regression"``, ``"survival"`` or ``"one-class"``."""
    known = {"classes": "classification", "numbers": "regression", "survival": "survival"}
    return known.get(getattr(model, "_target", ""), "one-class")


def is_model_of_counts(model: GroupDiscovery) -> bool:
    """Return True for a model of counts, whose offset may be the logarithm of an exposure."""
    return task_of(model) == "regression" and family_of(settings_of(model).loss, has_classes=False) is POISSON


def settings_of(model: GroupDiscovery) -> SearchSettings:
    """Return the settings of the search that produced a fitted model, to repeat it on other samples."""
    check_is_fitted(model)
    return model._fitted_settings()


def input_of(
    model: GroupDiscovery,
    X: FeaturesLike,
    y: TargetsLike = None,
    sample_weight: SamplesLike = None,
    *,
    covariates: CovariatesLike = None,
    offset: SamplesLike = None,
    groups: SampleGroupsLike = None,
    client: ClientLike = None,
) -> Input:
    """Return data opened and checked as in the fit of a model."""
    data = model._read(X, y, sample_weight, None, covariates, offset, groups, client)
    if hasattr(model, "groups_"):
        names = getattr(model, "target_names_", None), data.target_names
        known, given = (1 if own is None else len(own) for own in names)
        if known != given:
            raise ValueError(f"The model was fitted with {known} target(s), but y has {given}. Pass the y of the fit.")
    return data


def _offset_apart(attributes: dict[str, Any], data: Input) -> dict[str, Any]:
    """Return fitted attributes in which the weights of a fitted offset are not among those of the covariates."""
    if "offset_coef_" not in data.attributes or data.offset is not None:
        return attributes
    coef = attributes.pop("covariate_coef_")
    others = {"covariate_coef_": coef[:, :-1]} if "covariate_names_" in data.attributes else {}
    return {**attributes, **others, "offset_coef_": coef[:, -1]}


def _warn_if_short(loop: CuttingPlane, n_features: int | None, max_rounds: int | None) -> None:
    found = len(loop.oracle.supports)
    if n_features is None or found >= n_features:
        return
    if found == loop.oracle.view.n_features:
        reason = "X has no more features."
    elif loop.exhausted:
        reason = (
            "every other feature is constant or correlated with one of them. Raise threshold to split groups, or request "
            "fewer features."
        )
    else:
        limit = "" if max_rounds is None else f"max_rounds={max_rounds}, "
        reason = f"the search was ended by {limit}a callback or a signal."
    warnings.warn(f"Only {found} of {n_features} support features were found: {reason}", ConvergenceWarning, stacklevel=6)


def _warn_if_inexact(settings: SearchSettings, gap: float, standardized: bool) -> None:
    if settings.predict_with == "groups" and gap > settings.tol:
        remedy = "Choose" if standardized else "Scale the features (standardize=True), or choose"
        warnings.warn(
            f"The model on support and affiliated features stopped at a relative gap of {gap:.1e}, which exceeds "
            f"tol={settings.tol:g}. {remedy} a smaller C or a larger tol.",
            ConvergenceWarning,
            stacklevel=6,
        )
