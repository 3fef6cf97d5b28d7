"""Effects of groups: log-odds, logarithms of hazard or rate ratios, or units of the target, per standard deviation.

The effects come from regressions of the target on the support features, not from the weights of the model, which shrink with
C. Significant groups are estimated together, and every other group beside them: many features without an effect in one
regression would leave too small errors. The intervals are adjusted for the selection of the groups among all features. The
effects themselves are too large on average, because the same samples chose the features.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from coterie._numba import one_blas_thread
from coterie._warnings import ignored
from coterie.confidence.association import outputs_of
from coterie.estimators.base import GroupDiscovery, input_of, settings_of, task_of
from coterie.estimators.documentation import documented
from coterie.groups import FeatureGroup, FeatureGroups
from coterie.inputs.offsets import by_output, check_offset
from coterie.inputs.opening import Input
from coterie.inputs.targets import spread_sample
from coterie.inputs.types import CovariatesLike, FeaturesLike, SampleGroupsLike, SamplesLike, TargetsLike
from coterie.solver.families import Family
from coterie.solver.losses import family_of
from coterie.solver.regression import standardised

# Groups that are fitted jointly, groups that get an effect at all, and regressions for groups that are not significant.
_BLOCK, _MAX_GROUPS, _MAX_SINGLE = 100, 2000, 200
# Expected share of intervals that miss their effect, and the false discovery rate of significant groups by default.
_MISSED, _FDR = 0.05, 0.1
# Products of samples and squared features per Newton step, and bounds of the number of samples that follow from it.
_WORK, _MIN_SAMPLES, _MAX_SAMPLES = 2e8, 2_000, 50_000


@dataclass(frozen=True, eq=False)
class GroupEffects:
    """Result of :func:`group_effects`, one row per group.

    Attributes
    ----------
    effects, low, high : ndarray of shape (n_groups, n_outputs)
        Effects and limits of their intervals (NaN if unknown). More than two classes have one output per class, against the
        rest, and several targets have one output each. Otherwise there is one output.
    classes : ndarray or None
        The classes; None for numbers and survival times.
    n_samples : int
        Number of samples used.
    gap : float
        Largest certified relative gap of the regressions.
    target_names : tuple of str or None
        Names of several targets.
    target_scale : ndarray of shape (n_outputs,) or None
        Scales of several targets, relative to which their effects are compared.
    ratio_kind : {"odds", "hazard", "rate", "mean"} or None
        What the exponential of an effect is a ratio of.
    level : float
        Level of each interval, for an expected share of 95 % of the intervals that contain their effect.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from coterie import GroupDiscoveryClassifier, group_effects
    >>> X, y = load_iris(return_X_y=True, as_frame=True)
    >>> model = GroupDiscoveryClassifier(2, threshold=0.9).fit(X, y)
    >>> found = group_effects(model, X, y)
    >>> found.effects.shape, found.n_samples
    ((2, 3), 150)
    >>> [group.marks for group in found.attach(model.groups_)]
    [2, 0]
    """

    effects: np.ndarray
    low: np.ndarray
    high: np.ndarray
    classes: np.ndarray | None
    n_samples: int
    gap: float = 0.0
    target_names: tuple[str, ...] | None = None
    target_scale: np.ndarray | None = None
    ratio_kind: str | None = None
    level: float = 1.0 - _MISSED

    def attach(self, groups: FeatureGroups) -> FeatureGroups:
        """Return the groups with their effects.

        With more than two classes, the effect of a group is that on the class with the largest absolute effect. With several
        targets, it is that on the target with the largest absolute effect relative to the scale of the target.
        """
        if len(groups) != len(self.effects):
            raise ValueError(f"There are {len(self.effects)} effects, but {len(groups)} groups. Pass the groups of the model.")
        found, scale = [], 1.0 if self.target_scale is None else self.target_scale
        for group, effects, low, high in zip(groups, self.effects, self.low, self.high, strict=True):
            if np.isnan(effects).any():
                found.append(group)
                continue
            main = int(np.argmax(np.abs(effects / scale)))
            interval = None if np.isnan(low[main]) else (float(low[main]), float(high[main]))
            found.append(
                replace(
                    group,
                    effect=float(effects[main]),
                    effect_interval=interval,
                    class_effects=_by_class(effects, self.classes),
                    target_effects=self._by_target(effects),
                    ratio_kind=self.ratio_kind,
                )
            )
        return FeatureGroups(found)

    def _by_target(self, effects: np.ndarray) -> dict[str, float] | None:
        return None if self.target_names is None else dict(zip(self.target_names, effects.tolist(), strict=True))

    def attach_to(self, model: GroupDiscovery) -> GroupDiscovery:
        """Set the effects of the groups of a model, and return the model."""
        model.groups_ = self.attach(model.groups_)
        return model


def _by_class(effects: np.ndarray, classes: np.ndarray | None) -> dict[Any, float] | None:
    if classes is None:
        return None
    signed = effects if len(classes) > 2 else np.array([-effects[0], effects[0]])
    return dict(zip(classes.tolist(), (signed + 0.0).tolist(), strict=True))  # + 0.0 turns -0.0 into 0.0


@documented
def group_effects(
    model: GroupDiscovery,
    X: FeaturesLike,
    y: TargetsLike = None,
    sample_weight: SamplesLike = None,
    *,
    covariates: CovariatesLike = None,
    offset: SamplesLike = None,
    groups: SampleGroupsLike = None,
) -> GroupEffects:
    """Estimate the effect of each group, with a 95 % interval that is adjusted for the selection of the groups.

    Parameters
    ----------
    model : fitted GroupDiscoveryClassifier, GroupDiscoveryRegressor, GroupDiscoverySurvival or their CV variants
        Model whose groups are described.

    %(fitted_data)s

    Returns
    -------
    effects : GroupEffects
        ``attach_to(model)`` sets ``effect``, ``effect_interval``, ``class_effects`` and ``target_effects`` of its groups.

    See Also
    --------
    coterie.discover : Computes the effects of its groups.
    coterie.group_confidence : How often groups are found again.

    Notes
    -----
    For classes, the effect is the log-odds of the second class per standard deviation of the support feature, given the
    support features of the other significant groups and the covariates. Groups are significant if :func:`group_confidence` has
    selected them. Fixed features are always given. Without evidence, all groups are estimated together. With more than two
    classes there is one effect per class, against the rest. It is the coefficient of a logistic regression with a weak normal
    prior (standard deviation 3), which keeps it finite if the classes are separated. For numbers, it is the coefficient of a
    least-squares regression, in target units. For survival times, it is the log hazard ratio of a Cox regression with Efron's
    rule for ties and the same prior. For counts (``loss="poisson"``), it is the logarithm of a rate ratio, from a Poisson
    regression with the same prior, and for positive numbers (``loss="gamma"``) that of a ratio of means, from a gamma
    regression. Each of several targets has a regression of its own.

    The intervals are Wald intervals: from the curvature for classes and survival times, and heteroscedasticity-robust (HC3)
    for numbers. Those of counts and positive numbers are the wider of robust and quasi-likelihood intervals. With sample
    groups, standard errors are cluster-robust and at least those of independent samples, and the quantile is that of a t
    distribution. With no more sample groups than coefficients, there is no interval.

    The same samples chose the features and give the effects. If R groups were selected among m features, the level of each
    interval is therefore :math:`1 - 0.05 R / m` (for K > 1 outputs, :math:`1 - 0.05 R / (m K)`), so that an expected share of
    5 % of the intervals miss their effect (false coverage rate, Benjamini and Yekutieli 2005). Without evidence, more of them
    do if many groups are estimated from few samples. The effects themselves remain too large on average. They do not depend
    on C, apart from the choice of features. More than 100 significant groups are fitted in blocks of 100. Many samples are
    represented by some of them.

    References
    ----------
    Y. Benjamini and D. Yekutieli, "False discovery rate-adjusted multiple confidence intervals for selected parameters",
    Journal of the American Statistical Association 100, 2005.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from coterie import GroupDiscoveryRegressor, group_effects
    >>> X, y = load_diabetes(return_X_y=True, as_frame=True)
    >>> model = GroupDiscoveryRegressor(2).fit(X, y)
    >>> group = group_effects(model, X, y).attach_to(model).groups_[0]
    >>> group.names[0], round(group.effect, 1), [round(limit, 1) for limit in group.effect_interval]
    ('bmi', 32.1, [24.0, 40.2])
    """
    if not isinstance(model, GroupDiscovery) or task_of(model) == "one-class":
        raise TypeError(
            f"Effects require a classifier, a regressor or a survival model of group discovery, got {type(model).__name__}."
        )
    check_is_fitted(model)
    with ignored(UserWarning):  # the fit has raised them already
        data = input_of(model, X, y, sample_weight, covariates=covariates, offset=offset, groups=groups)
    check_offset(model, offset)
    if "covariate_names_" not in data.attributes and hasattr(model, "covariate_names_"):
        names = ", ".join(model.covariate_names_)
        raise ValueError(f"The model was fitted with covariates ({names}). Pass them with covariates=.")
    return effects_of(model.groups_, data, family_of(settings_of(model).loss, data.classes is not None))


def effects_of(groups: FeatureGroups, data: Input, family: Family, level: float | None = None) -> GroupEffects:
    """Return the effects of groups in opened data; ``family`` is the regression.

    ``level`` is that of each interval. By default it is adjusted for a selection of the groups among all features.
    """
    n_classes = 0 if data.classes is None else len(data.classes)
    names = data.target_names
    n_outputs = n_classes if n_classes > 2 else 1 if names is None else len(names)
    n_described = min(len(groups), _MAX_GROUPS)
    if level is None:
        level = 1.0 - _MISSED * len(groups) / (max(data.source.shape[1], len(groups)) * (n_outputs if n_outputs > 1 else 1))
    effects = np.full((len(groups), n_outputs), np.nan)
    low, high, gap = effects.copy(), effects.copy(), 0.0
    used = np.arange(data.n_samples) if data.weight is None else np.flatnonzero(data.weight > 0)
    regressions = _regressions(groups, n_described)
    n_columns = max((len(given) + len(own) for given, own in regressions), default=0)
    n_columns += 0 if data.covariates is None else data.covariates.shape[1]
    most = int(np.clip(_WORK / max(1, n_columns) ** 2, _MIN_SAMPLES, _MAX_SAMPLES))
    # Sampling by class does not change the log-odds ratios of two classes. It would change those against a mixed rest.
    rows = spread_sample(used, data.targets if n_classes == 2 else None, most)
    targets, weight = outputs_of(data, rows), np.ones(len(rows)) if data.weight is None else data.weight[rows]
    offsets = None if data.offset is None else by_output(data.offset[rows])
    others = np.empty((len(rows), 0)) if data.covariates is None else data.covariates[rows]
    clusters = None if data.groups is None else np.unique(data.groups[rows], return_inverse=True)[1]
    with one_blas_thread():
        others = standardised(others, weight)
        for given, own in regressions:
            columns = data.source.columns(groups.support[np.append(own, given)])[rows]
            dense = np.asarray(columns if isinstance(columns, np.ndarray) else columns.toarray(), dtype=np.float64)
            design = np.column_stack([np.ones(len(rows)), standardised(dense, weight), others])
            first = slice(1, 1 + len(own))
            for output in range(n_outputs):
                offset = None if offsets is None else offsets[:, output]
                found = family.effects(design, targets[output], weight, clusters, offset)
                effects[own, output] = found.effect[first]
                low[own, output], high[own, output] = (limits[first] for limits in found.interval(level))
                gap = max(gap, found.gap)
    effects, low, high = (data.in_units(values) for values in (effects, low, high))
    return GroupEffects(effects, low, high, data.classes, len(rows), gap, names, data.target_scale, family.ratio_kind, level)


def _regressions(groups: FeatureGroups, n_described: int) -> list[tuple[np.ndarray, np.ndarray]]:
    """Return the regressions as pairs: positions of the groups that are given only, and of those whose effects are estimated.

    Significant groups and fixed features are estimated together, in blocks. They are given in the regressions of the others.
    """
    together = np.array([_is_significant(group) is not False for group in groups][:n_described], dtype=bool)
    joint, single = np.flatnonzero(together), np.flatnonzero(~together)
    blocks = [joint[start : start + _BLOCK] for start in range(0, len(joint), _BLOCK)]
    width = max(1, -(-len(single) // _MAX_SINGLE))
    given = joint[:_BLOCK]
    return [(given[:0], block) for block in blocks] + [
        (given, single[start : start + width]) for start in range(0, len(single), width)
    ]


def _is_significant(group: FeatureGroup) -> bool | None:
    """Return True if a group is significant, and None if that is unknown, as for fixed features."""
    if group.selected is not None:
        return group.selected
    return None if group.q_value is None or np.isnan(group.q_value) else group.q_value <= _FDR
