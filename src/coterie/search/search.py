"""A search for groups as a value: its data, its settings and its number of features.

Estimators, cross-validation and confidences all use this search. They differ in the sample weights, the targets and some
settings.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from coterie._numba import one_blas_thread
from coterie.correlation.compatibility import Compatibility, CompatibleCorrelation
from coterie.correlation.measures import measure_of
from coterie.correlation.protocol import Correlation
from coterie.correlation.units import UnitCorrelation, column_units
from coterie.data.source import Moments
from coterie.data.view import FeatureView
from coterie.inputs.opening import Input
from coterie.inputs.targets import class_weights
from coterie.inputs.types import ClassWeightLike, FoldsLike, RandomStateLike
from coterie.progress import RoundProgress
from coterie.search.loop import CuttingPlane, Round, StoppingRule
from coterie.search.oracle import Oracle, OracleOptions, Representative
from coterie.search.penalty import mean_variance, relative_penalty, typical_variance
from coterie.search.shares import EqualSharesOracle
from coterie.search.speculation import run_loop
from coterie.search.voting import VotingOracle, fold_parts
from coterie.selection import fixed_positions
from coterie.solver.adjusted import AdjustedLoss
from coterie.solver.design import design_of
from coterie.solver.loss import Loss, LossLike, Targets, trait
from coterie.solver.master import Master

# A name, a function of two column blocks, a class with the methods of Correlation, or None for no constraint.
CorrelationLike: TypeAlias = "str | Callable[..., np.ndarray] | type[Correlation] | None"


@dataclass(frozen=True)
class SearchSettings:
    """Settings of a search, independent of the data.

    Attributes
    ----------
    loss : type of Loss
        The loss.
    C : float
        Weight of the loss.
    fit_intercept : bool
        Whether the model has an intercept.
    class_weight : dict, "balanced" or None
        Weights of the classes in the loss.
    equal_classes : bool
        Whether several classes have equal shares in the scores of features.
    n_features_per_round : int or None
        Number of features per block. None selects the automatic schedule.
    reuse_features : bool
        Whether blocks may share features.
    correlation : str, callable, class or None
        Correlation measure. None removes the constraint.
    threshold : float
        Smallest absolute correlation of two features of the same group.
    n_bins : int
        Number of bins of symmetrical uncertainty.
    compatibility : Compatibility or None
        Pairs of features that may be in one group. None allows all.
    affiliates : {"complete", "ranked"}
        Which affiliated features are collected.
    representative : {"score", "medoid"} or callable
        Rule that selects the support feature of a group.
    fixed_features : array-like or None
        Features that are always support features. They are added first.
    predict_with : {"support", "groups"}
        Features of the predictive model.
    standardize : bool or None
        Whether features are divided by their standard deviations. None means True unless most values are zero.
    cv, cv_part, random_state
        Folds of embedded cross-validation (None for none), the part of the samples that each fold uses, and the seed.
    max_rounds : int or None
        Maximum number of rounds.
    tol : float
        Relative tolerance.
    """

    loss: LossLike
    C: float = 1.0
    fit_intercept: bool = True
    class_weight: ClassWeightLike = None
    equal_classes: bool = False
    n_features_per_round: int | None = None
    reuse_features: bool = False
    correlation: CorrelationLike = "pearson"
    threshold: float = 0.7
    n_bins: int = 10
    compatibility: Compatibility | None = None
    affiliates: str = "complete"
    representative: Representative = "score"
    fixed_features: ArrayLike | None = None
    predict_with: str = "support"
    standardize: bool | None = None
    cv: FoldsLike = None
    cv_part: str = "training"
    random_state: RandomStateLike = None
    max_rounds: int | None = None
    tol: float = 1e-4

    def measure(self, view: FeatureView) -> Correlation:
        """Return the correlation measure on a view. Features of one column of a table count as correlated.

        Without a constraint this is Pearson's correlation, which is then used for purities only.
        """
        measure = measure_of("pearson" if self.correlation is None else self.correlation, view, self.n_bins)
        if self.compatibility is not None:
            measure = CompatibleCorrelation(measure, self.compatibility)
        units = column_units(view.source)
        return measure if units is None else UnitCorrelation(measure, units)

    def loss_of(self, data: Input) -> Loss:
        """Return the loss of the samples of ``data``, with its offset and its covariates eliminated."""
        weight = np.ones(data.n_samples) if data.weight is None else data.weight
        used = weight if data.classes is None else class_weights(self.class_weight, data.classes, data.targets, weight)
        loss = self.loss.of(targets_of(data), used, self.C, self.fit_intercept)
        return loss if data.covariates is None else AdjustedLoss(loss, data.covariates, weight)

    def curvature(self, data: Input) -> float:
        """Return the mean second derivative of the loss, per unit of weight, at the best constant prediction.

        Automatic values of C are divided by it. It is 1 for losses whose C has a scale of its own.
        """
        if trait(self.loss, "has_unit_penalty"):
            return 1.0
        loss = replace(self, C=1.0).loss_of(data)
        total = data.n_samples if data.weight is None else float(data.weight.sum())
        mean = float(loss.evaluate(np.zeros((data.n_samples, loss.n_outputs))).curvature.sum()) / (total * loss.n_outputs)
        return mean if mean > 0.0 else 1.0


def targets_of(data: Input) -> Targets:
    """Return the targets of data for a loss."""
    return Targets(data.targets, 0 if data.classes is None else len(data.classes), data.offset, data.target_factors)


@dataclass(frozen=True)
class Search:
    """A search with given data and settings.

    Attributes
    ----------
    data : Input
        Features, targets and sample weights. Searches that share an array of weights share the moments of the features.
    settings : SearchSettings
        Settings of the search.
    n_features : int or None
        Number of support features to find. None searches until convergence.
    n_threads : int
        Number of threads. The result does not depend on it.
    records_members : bool
        Whether the group members at every size are required. If they are known only from the walk (``"ranked"`` groups), they
        are recorded in each round.
    """

    data: Input
    settings: SearchSettings
    n_features: int | None
    n_threads: int = 1
    records_members: bool = False

    @property
    def standardizes(self) -> bool:
        """Whether features are divided by their standard deviations."""
        return not self.data.mostly_zero if self.settings.standardize is None else self.settings.standardize

    def loop(self, moments: Moments | None = None, view: FeatureView | None = None) -> CuttingPlane:
        """Return the loop over rounds, ready to run.

        ``moments`` or ``view`` are used instead of being computed, if given.
        """
        settings = self.settings
        loss = settings.loss_of(self.data)
        if view is None:
            view = self._view(loss, moments)
        fixed = self._fixed(view)
        view.moments.require_variation()
        wanted = None if self.n_features is None else min(self.n_features, view.n_features) - len(fixed)
        rule = StoppingRule(wanted, settings.n_features_per_round, settings.max_rounds, settings.tol)
        return CuttingPlane(self._oracle(view), Master(loss, design_of(view)), rule, fixed)

    def relative_penalty(self, factor: float) -> tuple[float, Moments]:
        """Return a multiple of the reciprocal of a typical variance of the features as C, and the moments used for it.

        If most values are zero, most features vary little because they are rare, and the mean over the features is weighted
        by their variances, as for the candidates of cross-validation.
        """
        view = self._view(self.settings.loss_of(self.data), None)
        view.moments.require_variation()
        exact = view.centred and view.scale is not None
        variance = typical_variance if not exact and self.data.mostly_zero else mean_variance
        return relative_penalty(factor, variance(view) * self.settings.curvature(self.data)), view.moments

    def _view(self, loss: Loss, moments: Moments | None) -> FeatureView:
        """Return the features as the loss requires them."""
        return FeatureView.of(
            self.data.source,
            self.data.weight,
            standardize=self.standardizes,
            centred=loss.centred,
            n_threads=self.n_threads,
            moments=moments,
        )

    def _fixed(self, view: FeatureView) -> np.ndarray:
        fixed = fixed_positions(self.settings.fixed_features, view)
        if self.n_features is not None and len(fixed) > self.n_features:
            raise ValueError(
                f"fixed_features has {len(fixed)} features, more than n_features_to_select={self.n_features}, which includes "
                "them. Increase n_features_to_select or fix fewer features."
            )
        return fixed

    def _oracle(self, view: FeatureView) -> Oracle:
        settings, data = self.settings, self.data
        options: OracleOptions = {
            "threshold": np.inf if settings.correlation is None else settings.threshold,
            "affiliates": settings.affiliates,
            "representative": settings.representative,
            "reuse": settings.reuse_features,
        }
        measure = settings.measure(view)
        if settings.cv is None:
            equal = settings.equal_classes and data.classes is not None and len(data.classes) > 2
            return EqualSharesOracle(measure, **options) if equal else Oracle(measure, **options)
        parts = fold_parts(
            view,
            data.labels if data.balanced is None else data.balanced,
            settings.cv,
            settings.cv_part,
            classifier=data.balanced is not None,
            random_state=settings.random_state,
            groups=data.groups,
        )
        return VotingOracle(measure, [settings.measure(part) for part in parts], **options)


def run_with_progress(
    loop: CuttingPlane, title: str, verbose: int, on_round: Callable[[Round], bool], *, one_by_one: bool = False
) -> None:
    """Run a loop to its end and display its progress. The loop stops early if ``on_round`` returns True.

    If ``one_by_one``, each round is published before the next one begins. Otherwise, some may be verified together.
    """
    source = loop.oracle.view.source

    def after(entry: Round) -> bool:
        n_workers = source.n_workers
        workers = "" if n_workers is None else f", {n_workers} workers"
        bar.update(entry.n_support, f"objective {entry.objective:.6g}, gap {entry.gap:.1e}{workers}")
        return on_round(entry)

    loop.on_round = after
    total = None if loop.rule.n_features is None else loop.rule.n_features + len(loop.fixed)
    with one_blas_thread(), RoundProgress(total, verbose, title) as bar:
        if one_by_one:
            loop.run()
        else:
            run_loop(loop)
