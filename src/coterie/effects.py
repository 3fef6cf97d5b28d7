"""Effects of groups in readable units: log-odds, or units of the target, per standard deviation of the support feature.

The effects come from one regression of the target on the support features of all groups, not from the weights of the model,
which shrink with C. They are estimates after selection: the same samples chose the features, so that effects are too large
on average, and intervals do not show whether an effect exists.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from scipy import stats
from sklearn.base import is_classifier, is_regressor
from sklearn.utils.validation import check_is_fitted

from coterie._numba import one_blas_thread
from coterie._warnings import ignored
from coterie.estimators.base import GroupDiscovery, input_of
from coterie.estimators.documentation import documented
from coterie.groups import FeatureGroups
from coterie.inputs.offsets import check_offset
from coterie.inputs.opening import Input
from coterie.inputs.types import CovariatesLike, FeaturesLike, SampleGroupsLike, SamplesLike, TargetsLike

# Prior standard deviation of a log-odds per standard deviation, and of the intercept. They keep effects finite if the classes
# are separated, and hardly matter otherwise: an odds ratio of 20 is one prior standard deviation.
_PRIOR, _PRIOR_INTERCEPT = 3.0, 10.0
# Groups that are fitted jointly, and groups that get an effect at all.
_BLOCK, _MAX_GROUPS = 100, 2000
# Products of samples and squared features per Newton step, and bounds of the number of samples that follow from it.
_WORK, _MIN_SAMPLES, _MAX_SAMPLES = 2e8, 2_000, 50_000
_MAX_STEPS, _MAX_HALVINGS = 100, 40
_TOLERANCE = 1e-12
_LEVEL = 0.95


class Estimate(NamedTuple):
    """Effects of some features with standard errors (NaN if unknown), and the quantile for the limits of the interval.

    ``gap`` is the certified distance of the objective from its optimum, relative to the objective, and ``n_iter`` the number
    of Newton steps.
    """

    effect: np.ndarray
    error: np.ndarray
    quantile: float
    gap: float = 0.0
    n_iter: int = 1


@dataclass(frozen=True, eq=False)
class GroupEffects:
    """Result of :func:`group_effects`, one row per group.

    Attributes
    ----------
    effects, low, high : ndarray of shape (n_groups, n_outputs)
        Effects and limits of their 95 % intervals (NaN if unknown). More than two classes have one output per class, against
        the rest. Otherwise there is one output.
    classes : ndarray or None
        The classes; None for regression.
    n_samples : int
        Number of samples used.
    gap : float
        Largest certified relative gap of the regressions.

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

    def attach(self, groups: FeatureGroups) -> FeatureGroups:
        """Return the groups with their effects.

        With more than two classes, the effect of a group is that on the class with the largest absolute effect.
        """
        if len(groups) != len(self.effects):
            raise ValueError(f"There are {len(self.effects)} effects, but {len(groups)} groups. Pass the groups of the model.")
        found = []
        for group, effects, low, high in zip(groups, self.effects, self.low, self.high, strict=True):
            if np.isnan(effects).any():
                found.append(group)
                continue
            main = int(np.argmax(np.abs(effects)))
            interval = None if np.isnan(low[main]) else (float(low[main]), float(high[main]))
            found.append(
                replace(
                    group,
                    effect=float(effects[main]),
                    effect_interval=interval,
                    class_effects=_by_class(effects, self.classes),
                )
            )
        return FeatureGroups(found)

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
    """Estimate the effect of each group, with a 95 % interval, from one regression on all support features.

    Parameters
    ----------
    model : fitted GroupDiscoveryClassifier, GroupDiscoveryRegressor or their CV variants
        Model whose groups are described.

    %(fitted_data)s

    Returns
    -------
    effects : GroupEffects
        ``attach_to(model)`` sets ``effect``, ``effect_interval`` and ``class_effects`` of its groups.

    See Also
    --------
    coterie.discover : Computes the effects of its groups.
    coterie.group_confidence : How often groups are found again.

    Notes
    -----
    For classes, the effect is the log-odds of the second class per standard deviation of the support feature, given the
    support features of the other groups and the covariates. With more than two classes there is one effect per class, against
    the rest. It is the coefficient of a logistic regression with a weak normal prior (standard deviation 3), which keeps it
    finite if the classes are separated. For numbers, it is the coefficient of a least-squares regression, in target units.

    The intervals are Wald intervals: from the curvature for classes, and heteroscedasticity-robust (HC3) for numbers. With
    sample groups, standard errors are cluster-robust and at least those of independent samples, and the quantile is that of
    a t distribution. With no more sample groups than coefficients, there is no interval.

    The effects do not depend on C, apart from the choice of features. The same samples chose the features, so that effects
    are too large on average. An interval that excludes 0 is therefore no evidence for a group: with random labels, nearly all
    intervals of features that were chosen among many exclude it. More than 100 groups are fitted in blocks
    of 100. Many samples are represented by some of them.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from coterie import GroupDiscoveryRegressor, group_effects
    >>> X, y = load_diabetes(return_X_y=True, as_frame=True)
    >>> model = GroupDiscoveryRegressor(2).fit(X, y)
    >>> group = group_effects(model, X, y).attach_to(model).groups_[0]
    >>> group.names[0], round(group.effect, 1), [round(limit, 1) for limit in group.effect_interval]
    ('bmi', 32.1, [25.9, 38.3])
    """
    if not isinstance(model, GroupDiscovery) or not (is_classifier(model) or is_regressor(model)):
        raise TypeError(f"Effects require a classifier or a regressor of group discovery, got {type(model).__name__}.")
    check_is_fitted(model)
    with ignored(UserWarning):  # the fit has raised them already
        data = input_of(model, X, y, sample_weight, covariates=covariates, offset=offset, groups=groups)
    check_offset(model, offset)
    if "covariate_names_" not in data.attributes and hasattr(model, "covariate_names_"):
        names = ", ".join(model.covariate_names_)
        raise ValueError(f"The model was fitted with covariates ({names}). Pass them with covariates=.")
    return effects_of(model.groups_, data)


def effects_of(groups: FeatureGroups, data: Input) -> GroupEffects:
    """Return the effects of groups in opened data with classes or numbers."""
    n_classes = 0 if data.classes is None else len(data.classes)
    n_outputs = n_classes if n_classes > 2 else 1
    n_described = min(len(groups), _MAX_GROUPS)
    effects = np.full((len(groups), n_outputs), np.nan)
    low, high, gap = effects.copy(), effects.copy(), 0.0
    used = np.arange(data.n_samples) if data.weight is None else np.flatnonzero(data.weight > 0)
    n_columns = min(n_described, _BLOCK) + (0 if data.covariates is None else data.covariates.shape[1])
    most = int(np.clip(_WORK / max(1, n_columns) ** 2, _MIN_SAMPLES, _MAX_SAMPLES))
    # Sampling by class does not change the log-odds ratios of two classes. It would change those against a mixed rest.
    rows = spread_sample(used, data.targets if n_classes == 2 else None, most)
    targets, weight = np.asarray(data.targets)[rows], np.ones(len(rows)) if data.weight is None else data.weight[rows]
    targets = targets if data.offset is None else targets - data.offset[rows]
    others = np.empty((len(rows), 0)) if data.covariates is None else data.covariates[rows]
    clusters = None if data.groups is None else np.unique(data.groups[rows], return_inverse=True)[1]
    with one_blas_thread():
        for start in range(0, n_described, _BLOCK):
            part = slice(start, min(start + _BLOCK, n_described))
            columns = data.source.columns(groups.support[part])[rows]
            dense = np.asarray(columns if isinstance(columns, np.ndarray) else columns.toarray(), dtype=np.float64)
            design = np.column_stack([np.ones(len(rows)), standardised(dense, weight), standardised(others, weight)])
            for output in range(n_outputs):
                if data.classes is None:
                    found = linear_effects(design, targets.astype(np.float64), weight, clusters)
                else:
                    positive = targets == (output if n_classes > 2 else 1)
                    found = logistic_effects(design, positive.astype(np.float64), weight, clusters)
                own = slice(1, 1 + dense.shape[1])
                effects[part, output] = found.effect[own]
                low[part, output] = found.effect[own] - found.quantile * found.error[own]
                high[part, output] = found.effect[own] + found.quantile * found.error[own]
                gap = max(gap, found.gap)
    return GroupEffects(effects, low, high, data.classes, len(rows), gap)


def spread_sample(used: np.ndarray, classes: np.ndarray | None, most: int) -> np.ndarray:
    """Return at most ``most`` samples at regular steps, with equal numbers per class as far as possible."""
    if len(used) <= most:
        return used
    if classes is None:
        return used[np.linspace(0, len(used) - 1, most).round().astype(np.int64)]
    parts = [used[classes[used] == label] for label in np.unique(classes[used])]
    left, kept = most, []
    for number, part in enumerate(sorted(parts, key=len)):  # large classes take the share that small ones do not use
        size = min(len(part), left // (len(parts) - number))
        left -= size
        kept.append(part[np.linspace(0, len(part) - 1, size).round().astype(np.int64)])
    return np.sort(np.concatenate(kept))


def standardised(columns: np.ndarray, weight: np.ndarray) -> np.ndarray:
    """Return columns with weighted mean 0 and standard deviation 1; zeros for constant columns."""
    centred = columns - weight @ columns / weight.sum()
    scale = np.sqrt(weight @ centred**2 / weight.sum())
    return centred / np.where(scale > 1e-12 * np.abs(columns).max(initial=1.0), scale, np.inf)


def logistic_effects(
    design: np.ndarray, labels: np.ndarray, weight: np.ndarray, clusters: np.ndarray | None = None
) -> Estimate:
    r"""Return log-odds of a penalised logistic regression, with standard errors.

    The Newton method minimises :math:`f(b) = \sum_i w_i \log(1 + e^{-s_i x_i'b}) + \frac{1}{2} b'\Lambda b` with
    :math:`s_i = \pm 1`. Because :math:`f - \frac{1}{2} b'\Lambda b` is convex, :math:`f(b) - \min f \le \frac{1}{2} g'
    \Lambda^{-1} g` for the gradient g, which is the certified gap.

    Parameters
    ----------
    design : ndarray of shape (n_samples, n_columns)
        Standardised columns. The first is the intercept.
    labels : ndarray of shape (n_samples,)
        1 or 0.
    weight : ndarray of shape (n_samples,)
        Weights; 2 is equivalent to having the sample twice.
    clusters : ndarray of int of shape (n_samples,), optional
        Sample groups from 0.
    """
    penalty = np.full(design.shape[1], _PRIOR**-2)
    penalty[0] = _PRIOR_INTERCEPT**-2
    coef = np.zeros(design.shape[1])
    sign = 2.0 * labels - 1.0

    def objective(coef: np.ndarray) -> float:
        return float(weight @ np.logaddexp(0.0, -sign * (design @ coef)) + 0.5 * penalty @ coef**2)

    value, n_iter = objective(coef), 0
    while n_iter < _MAX_STEPS:
        n_iter += 1
        probability = _sigmoid(design @ coef)
        gradient = design.T @ (weight * (probability - labels)) + penalty * coef
        hessian = (design.T * (weight * probability * (1.0 - probability))) @ design + np.diag(penalty)
        gap = float(0.5 * (gradient**2 / penalty).sum()) / max(value, 1.0)
        if gap <= _TOLERANCE:
            break
        direction = np.linalg.solve(hessian, gradient)
        size = 1.0
        for _ in range(_MAX_HALVINGS):
            trial = objective(coef - size * direction)
            if trial <= value:
                break
            size *= 0.5
        else:  # no progress beyond rounding
            break
        coef, value = coef - size * direction, trial
    covariance = np.linalg.inv(hessian)
    error = np.sqrt(np.diag(covariance))
    if clusters is None:
        return Estimate(coef, error, float(stats.norm.ppf(0.5 + _LEVEL / 2)), gap, n_iter)
    scores = design * (weight * (labels - probability))[:, None]
    return _clustered(Estimate(coef, error, 0.0, gap, n_iter), scores, covariance, clusters)


def linear_effects(
    design: np.ndarray, targets: np.ndarray, weight: np.ndarray, clusters: np.ndarray | None = None
) -> Estimate:
    """Return coefficients of a weighted least-squares regression, with HC3 standard errors.

    The parameters are those of :func:`logistic_effects`. Constant columns (zeros) get 0. There are no standard errors if there
    are no more samples than columns, or columns are collinear.
    """
    varying = np.flatnonzero(design.any(axis=0))
    own = design[:, varying]
    root = np.sqrt(weight)
    solution, _, rank, _ = np.linalg.lstsq(own * root[:, None], targets * root, rcond=None)
    coef, error = np.zeros(design.shape[1]), np.full(design.shape[1], np.nan)
    coef[varying] = solution
    free = len(targets) - len(varying)
    if free <= 0 or rank < len(varying):
        return Estimate(coef, error, np.nan)
    covariance = np.linalg.inv((own.T * weight) @ own)
    residual = targets - own @ solution
    leverage = np.einsum("ij,jk,ik->i", own, covariance, own)
    with np.errstate(divide="ignore", invalid="ignore"):
        squares = weight * (residual / (1.0 - np.minimum(leverage, 1.0))) ** 2
    error[varying] = np.sqrt(np.einsum("ij,jk,ki->i", covariance, (own.T * squares) @ own, covariance))
    error[~np.isfinite(error)] = np.nan
    found = Estimate(coef, error, float(stats.t.ppf(0.5 + _LEVEL / 2, free)))
    if clusters is None:
        return found
    full = np.zeros((design.shape[1], design.shape[1]))
    full[np.ix_(varying, varying)] = covariance
    return _clustered(found, design * (weight * residual)[:, None], full, clusters)


def _clustered(found: Estimate, scores: np.ndarray, bread: np.ndarray, clusters: np.ndarray) -> Estimate:
    """Return the estimate with cluster-robust standard errors, which are at least those of independent samples.

    The sandwich vanishes if the classes are separated, and it is singular if there are few clusters.
    """
    n_clusters = int(clusters.max()) + 1
    if n_clusters <= scores.shape[1]:
        return found._replace(error=np.full(scores.shape[1], np.nan), quantile=np.nan)
    sums = np.zeros((n_clusters, scores.shape[1]))
    np.add.at(sums, clusters, scores)
    spread = sums @ bread
    error = np.sqrt((spread**2).sum(axis=0) * n_clusters / (n_clusters - 1))
    quantile = float(stats.t.ppf(0.5 + _LEVEL / 2, n_clusters - 1))
    return found._replace(error=np.maximum(error, found.error), quantile=quantile)


def _sigmoid(outputs: np.ndarray) -> np.ndarray:
    return 0.5 * (1.0 + np.tanh(0.5 * outputs))
