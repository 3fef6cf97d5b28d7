r"""Score tests: the association of single features with the outcome, given covariates and some other features.

The null model contains an intercept, the covariates and the given features. It is a least-squares regression for numbers, a
logistic regression for classes (each class against the others), and otherwise the regression of the loss
(:mod:`coterie.solver.families`); for survival times see :class:`CoxNullModel`. With residuals
:math:`r_i`, variances :math:`v_i`, sample weights :math:`\omega_i` and the part :math:`\tilde x_j` of a feature that the null
model leaves unexplained (by a regression with the weights :math:`\omega v`), the statistic is

.. math:: z_j = \sum_i \omega_i \tilde x_{ij} r_i \Big/ \Big(\sum_i \omega_i v_i \tilde x_{ij}^2\Big)^{1/2}.

Its p-value is the largest of up to three. The first comes from the t distribution (numbers) or the normal distribution
(others). The second comes from a gamma distribution with the skewness of :math:`z_j`, which matters for rare values and rare
classes. The third comes from the sums over sample groups, if there are any, with as many degrees of freedom as there are
groups less one. For counts, the variances are the larger of :math:`\phi\mu_i` with Pearson's dispersion :math:`\phi \ge 1`
(quasi-Poisson) and :math:`\mu_i + \kappa\mu_i^2` with a :math:`\kappa \ge 0` from the squared residuals (negative binomial).
Given another feature k, the statistic is :math:`(z_j - \rho z_k)/\sqrt{1 - \rho^2}`, where :math:`\rho` is the correlation of
:math:`\tilde x_j` and :math:`\tilde x_k`.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
from scipy import stats

from coterie.data.source import Columns
from coterie.data.view import FeatureView
from coterie.inputs.offsets import by_output
from coterie.inputs.opening import Input
from coterie.order import in_order
from coterie.solver.cox_regression import CoxRegression, information
from coterie.solver.families import Family
from coterie.solver.regression import standardised

# Smallest unexplained share of a feature's norm.
_MIN_SHARE = 1e-6
# Smallest standard deviation of a feature that varies, relative to its values.
_MIN_SCALE = 1e-12
# Skewness below which the gamma distribution is not needed.
_MIN_SKEWNESS = 1e-3


class Scored(NamedTuple):
    """Features and their absolute statistics."""

    features: np.ndarray
    statistic: np.ndarray


@dataclass(frozen=True)
class NullModel:
    """A model of one output without the tested features, on the samples of nonzero weight.

    Attributes
    ----------
    rows : ndarray of int
        The samples.
    weight, residual, variance, third : ndarray of shape (n_rows,)
        Sample weights, residuals, and the second and third central moments of the output under the null hypothesis.
    design : ndarray of shape (n_rows, n_columns)
        Columns of the model. The first is the intercept.
    freedom : float
        Degrees of freedom of the residuals; infinite for classes.
    clusters : ndarray of int of shape (n_rows,) or None
        Sample groups from 0.
    """

    rows: np.ndarray
    weight: np.ndarray
    residual: np.ndarray
    variance: np.ndarray
    third: np.ndarray
    design: np.ndarray
    freedom: float
    clusters: np.ndarray | None

    @cached_property
    def basis(self) -> np.ndarray:
        """Orthonormal basis of the weighted columns of the model."""
        left, values, _ = np.linalg.svd(self.design * self._root[:, None], full_matrices=False)
        return left[:, values > 1e-10 * values.max(initial=0.0)]

    @property
    def _root(self) -> np.ndarray:
        return np.sqrt(self.weight * self.variance)

    def tests(self, columns: np.ndarray) -> ScoreTests:
        """Return the tests of some features, given as columns of the rows of the model."""
        root = self._root
        scaled = columns * root[:, None]
        left = scaled - self.basis @ (self.basis.T @ scaled)
        norm = np.sqrt((left**2).sum(axis=0))
        whole = np.sqrt(((scaled - root[:, None] * (root @ scaled) / (root @ root)) ** 2).sum(axis=0))
        varying = (norm > _MIN_SHARE * whole) & (whole > _MIN_SCALE * np.sqrt((scaled**2).sum(axis=0)))
        unit = left / np.where(varying, norm, np.inf)
        errors = self.residual * np.sqrt(self.weight / self.variance)
        skewness = (self.third / (np.sqrt(self.weight) * self.variance**1.5)) @ unit**3
        return ScoreTests(unit, unit * errors[:, None], norm, skewness, self.freedom, self.clusters)

    def projections(self, unit: np.ndarray, n_samples: int) -> tuple[np.ndarray, float]:
        """Return vectors whose products with features are correlations, except for the norms of the features and a factor.

        ``unit`` has columns of :attr:`ScoreTests.unit`. The norms are those with the weights of :attr:`scan_weight`.
        """
        vectors = np.zeros((n_samples, unit.shape[1]))
        vectors[self.rows] = unit * self._root[:, None]
        return vectors, float(np.sqrt(self.variance.max()))

    def score_vector(self, n_samples: int) -> np.ndarray:
        """Return the vector whose products with features are the numerators of their statistics."""
        vector = np.zeros(n_samples)
        vector[self.rows] = self.weight * self.residual
        return vector

    def best(self, view: FeatureView, size: int, excluded: np.ndarray) -> Scored:
        """Return the features with the largest statistics, approximately: without the given features in the denominator.

        ``view`` has the weights of :attr:`scan_weight`.
        """
        parts = view.map_blocks(_best_of_block, self.score_vector(view.n_samples)[:, None], int(size), excluded)
        features, statistic = (np.concatenate([part[k] for part in parts]) for k in range(2))
        order = in_order(view.source, features, statistic, sample_weight=view.sample_weight)[:size]
        return Scored(features[order], statistic[order])

    def scan_weight(self, n_samples: int) -> np.ndarray | None:
        """Return the weights of the samples in norms of features; None if they are all equal to one."""
        if np.ptp(self.variance) == 0.0 and np.all(self.weight == 1.0) and len(self.rows) == n_samples:
            return None
        weight = np.zeros(n_samples)
        weight[self.rows] = self.weight * self.variance / self.variance.max()
        return weight


@dataclass(frozen=True)
class CoxNullModel(NullModel):
    r"""A Cox regression without the tested features.

    Residuals are those of the partial likelihood (martingale residuals), and variances the diagonal of its second derivative
    H. The statistic of a feature is :math:`\tilde x'r/\sqrt{\tilde x'H\tilde x}`, where H also determines the part
    :math:`\tilde x` that the null model leaves unexplained. Its skewness is the sum of the third central moments over the risk
    sets. Contributions of samples are score residuals (Lin and Wei 1989).

    Attributes
    ----------
    model : CoxRegression
        The fitted regression.
    """

    model: CoxRegression

    def tests(self, columns: np.ndarray) -> ScoreTests:
        """Return the tests of some features, given as columns of the rows of the model."""
        state, others = self.model.state, self.design[:, 1:]
        assert state.coupling is not None
        centred = columns - (self.weight @ columns) / self.weight.sum()
        whole = np.sqrt(np.maximum(np.diag(information(state, centred, centred)), 0.0))
        if others.shape[1]:
            basis = np.linalg.pinv(information(state, others, others), rcond=1e-10, hermitian=True)
            left = centred - others @ (basis @ information(state, others, centred))
        else:
            left = centred
        coupled = state.coupling.apply(left)
        scaled = np.vstack([left * np.sqrt(state.curvature), coupled])
        metric = np.append(np.ones(len(left)), -np.ones(len(coupled)))
        norm = np.sqrt(np.maximum(metric @ scaled**2, 0.0))
        size = np.sqrt((state.curvature * columns**2).sum(axis=0))
        varying = (norm > _MIN_SHARE * whole) & (whole > _MIN_SCALE * size)
        norm_or_infinity = np.where(varying, norm, np.inf)
        contributions = self.model.loss.score_residuals(state, left) / norm_or_infinity
        skewness = self._third_moment(left) / norm_or_infinity**3
        return ScoreTests(scaled / norm_or_infinity, contributions, norm, skewness, np.inf, self.clusters, metric)

    def projections(self, unit: np.ndarray, n_samples: int) -> tuple[np.ndarray, float]:
        """Return vectors whose products with features are correlations; see :meth:`NullModel.projections`."""
        state, size = self.model.state, len(self.rows)
        assert state.coupling is not None
        vectors = np.zeros((n_samples, unit.shape[1]))
        vectors[self.rows] = np.sqrt(state.curvature) * unit[:size] - state.coupling.adjoint(unit[size:])
        return vectors, float(np.sqrt(self.variance.max()))

    def _third_moment(self, columns: np.ndarray) -> np.ndarray:
        """Return the sums of the third central moments over the risk sets."""
        loss, coupling = self.model.loss, self.model.state.coupling
        assert coupling is not None
        root = np.sqrt(loss.term_masses)[:, None]
        first, second, third = (coupling.apply(columns**power) / root for power in (1, 2, 3))
        return np.asarray((root**2 * (third - 3.0 * second * first + 2.0 * first**3)).sum(axis=0))


def _best_of_block(view: FeatureView, vector: np.ndarray, size: int, excluded: np.ndarray) -> Scored:
    """Return the features of a block with the largest products, divided by their norms."""
    first = view.source.first_feature
    norm = view.moments.norm
    statistic = np.abs(view.products(vector)[:, 0])
    np.divide(statistic, norm, out=statistic, where=norm > 0.0)
    statistic[norm == 0.0] = -1.0
    own = excluded[(excluded >= first) & (excluded < first + len(statistic))] - first
    statistic[own] = -1.0
    size = min(size, len(statistic))
    # Features tied with the last one are included, so that ties can be broken by the common rule.
    floor = np.partition(statistic, -size)[-size] * (1.0 - 1e-9)
    features = np.flatnonzero((statistic >= floor) & (statistic > 0.0))
    return Scored(first + features, statistic[features])


class ScoreTests:
    """Score tests of some features in a null model, alone and given one another.

    Attributes
    ----------
    unit : ndarray of shape (n_samples, n_features)
        Unexplained parts of the weighted features, of norm 1.
    z : ndarray of shape (n_features,)
        Statistics.
    information : ndarray of shape (n_features,)
        Norms of the unexplained parts of the features: the reciprocals of the standard errors of their effects.
    """

    def __init__(
        self,
        unit: np.ndarray,
        contributions: np.ndarray,
        norm: np.ndarray,
        skewness: np.ndarray,
        freedom: float,
        clusters: np.ndarray | None,
        metric: np.ndarray | None = None,
    ) -> None:
        self.unit, self._skewness, self._freedom = unit, skewness, freedom
        self._metric = np.ones(len(unit)) if metric is None else metric  # signs of the squares of ``unit`` in products
        self.z, self.information = contributions.sum(axis=0), norm
        self._sums: np.ndarray | None = None
        if clusters is not None:
            self._sums = np.zeros((int(clusters.max()) + 1, unit.shape[1]))
            np.add.at(self._sums, clusters, contributions)

    @cached_property
    def p_value(self) -> np.ndarray:
        """Two-sided p-value of each feature alone."""
        found = np.maximum(tail(self.z, self._freedom), skewed_tail(self.z, self._skewness))
        return found if self._sums is None else np.maximum(found, clustered_tail(self._sums))

    def given(self, feature: int, others: np.ndarray) -> np.ndarray:
        """Return the two-sided p-values of a feature given each of some others."""
        share = self.unit[:, others].T @ (self._metric * self.unit[:, feature])
        rest = np.sqrt(np.maximum(1.0 - share**2, 1e-12))
        found = tail((self.z[feature] - share * self.z[others]) / rest, self._freedom - 1.0)
        if self._sums is None:
            return found
        return np.maximum(found, clustered_tail(self._sums[:, [feature]] - share * self._sums[:, others]))


def tail(z: np.ndarray, freedom: float) -> np.ndarray:
    """Return two-sided p-values of statistics: t with one degree of freedom less than the residuals, or normal.

    Examples
    --------
    >>> import numpy as np
    >>> from coterie.confidence.association import tail
    >>> tail(np.array([0.0, 1.96]), np.inf).round(3).tolist(), tail(np.array([2.0]), 10.0).round(4).tolist()
    ([1.0, 0.05], [0.0368])
    """
    if not np.isfinite(freedom):
        return np.asarray(2.0 * stats.norm.sf(np.abs(z)))
    if freedom <= 1.0:
        return np.ones(len(z))
    share = np.minimum(z**2 / freedom, 1.0 - 1e-15)
    return np.asarray(2.0 * stats.t.sf(np.sqrt((freedom - 1.0) * share / (1.0 - share)), freedom - 1.0))


def skewed_tail(z: np.ndarray, skewness: np.ndarray) -> np.ndarray:
    """Return two-sided p-values from a gamma distribution of unit variance; 0 if it has no heavier tail than the normal.

    Examples
    --------
    >>> import numpy as np
    >>> from coterie.confidence.association import skewed_tail
    >>> skewed_tail(np.array([4.0, 4.0, -4.0]), np.array([1.0, 0.0, 1.0])).round(4).tolist()
    [0.0046, 0.0, 0.0]
    """
    found = np.zeros(len(z))
    heavy = (z * skewness > 0.0) & (np.abs(skewness) > _MIN_SKEWNESS)
    shape = 4.0 / skewness[heavy] ** 2
    found[heavy] = 2.0 * stats.gamma.sf(shape + np.abs(z[heavy]) * np.sqrt(shape), shape)
    return np.minimum(found, 1.0)


def clustered_tail(sums: np.ndarray) -> np.ndarray:
    """Return two-sided p-values from the sums of the contributions of each sample group, of shape (n_groups, n_features)."""
    n_groups = len(sums)
    if n_groups < 3:
        return np.ones(sums.shape[1])
    with np.errstate(divide="ignore", invalid="ignore"):
        z = sums.sum(axis=0) / np.sqrt((sums**2).sum(axis=0) * n_groups / (n_groups - 1))
    return np.asarray(2.0 * stats.t.sf(np.abs(np.nan_to_num(z)), n_groups - 1))


def outputs_of(data: Input, rows: np.ndarray) -> list[np.ndarray]:
    """Return the targets of some samples: numbers, records of survival times, or an indicator for each class (one for two).

    Each of several targets is an output.
    """
    targets = np.asarray(data.targets)[rows]
    if data.is_survival:
        return [targets]
    if data.classes is None:
        return list(by_output(np.asarray(targets, dtype=np.float64)).T)
    n_classes = len(data.classes)
    return [(targets == label).astype(np.float64) for label in (range(n_classes) if n_classes > 2 else (1,))]


def offsets_of(data: Input, rows: np.ndarray) -> Iterator[np.ndarray | None]:
    """Return the offsets of some samples, in the order of :func:`outputs_of`, without an end if there are none."""
    return itertools.repeat(None) if data.offset is None else iter(by_output(data.offset[rows]).T)


def dense_columns(data: Input, features: np.ndarray, rows: np.ndarray) -> np.ndarray:
    """Return columns of features for some samples, as a dense float64 array."""
    columns: Columns = data.source.columns(np.asarray(features, dtype=np.int64))
    own = columns if isinstance(columns, np.ndarray) else columns.toarray()
    return np.asarray(own[rows], dtype=np.float64)


def design_of(data: Input, features: np.ndarray, rows: np.ndarray, weight: np.ndarray) -> np.ndarray:
    """Return an intercept, standardised features, and standardised covariates, for some samples."""
    others = np.empty((len(rows), 0)) if data.covariates is None else data.covariates[rows]
    columns = dense_columns(data, features, rows)
    return np.column_stack([np.ones(len(rows)), standardised(columns, weight), standardised(others, weight)])


def null_models(data: Input, given: Sequence[int] | np.ndarray, rows: np.ndarray, family: Family) -> list[NullModel]:
    """Return the null model of each output, given some features (besides the covariates)."""
    weight = np.ones(len(rows)) if data.weight is None else data.weight[rows]
    design = design_of(data, np.asarray(given, dtype=np.int64), rows, weight)
    clusters = None if data.groups is None else np.unique(data.groups[rows], return_inverse=True)[1]
    found: list[NullModel] = []
    for output, offset in zip(outputs_of(data, rows), offsets_of(data, rows), strict=False):
        fit = family.null(design, output, weight, offset)
        common = rows, weight, fit.residual, fit.variance, fit.third, design, fit.freedom, clusters
        found.append(NullModel(*common) if fit.regression is None else CoxNullModel(*common, fit.regression))
    return found
