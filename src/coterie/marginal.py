"""Association of single features with a trait: linear or logistic regression on one feature and the covariates."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike
from scipy import linalg, special, stats
from sklearn.base import BaseEstimator
from sklearn.utils import check_consistent_length, column_or_1d

from coterie._parameters import OneOf, check
from coterie.data.covariates import as_covariates
from coterie.data.source import FeatureSource
from coterie.groups import FeatureGroups
from coterie.inputs.offsets import read_offset
from coterie.inputs.opening import source_of, unwrap
from coterie.inputs.types import CovariatesLike, FeaturesLike, SamplesLike, TargetsLike
from coterie.selection import feature_positions

if TYPE_CHECKING:
    import pandas as pd

# Number of features per block, and number of Newton steps after which a logistic regression is taken to have no optimum.
_BLOCK = 256
_MAX_STEPS = 25
# Smallest share of a feature's variation that the covariates must leave unexplained.
_MIN_SHARE = 1e-10
# Directions of the covariates with smaller singular values are linearly dependent on others.
_MIN_SINGULAR_VALUE = 1e-10
STATISTICS = ("effect", "standard_error", "statistic", "p_value")


@dataclass(frozen=True, eq=False)
class Association:
    """Result of :func:`association`, with one entry per feature.

    Attributes
    ----------
    feature : ndarray of int of shape (k,)
        Indices of the features.
    effect : ndarray of shape (k,)
        Slope of the trait, or log odds ratio, per unit of the feature. For a SNP, a unit is one copy of ``allele_1``.
    standard_error, statistic, p_value : ndarray of shape (k,)
        Standard error of the effect, ratio of the two (t, or Wald's z) and two-sided p-value. NaN if there is no estimate,
        because the feature is constant, explained by the covariates, or separates the classes.
    model : {"linear", "logistic"}
        Fitted model.
    n_samples : int
        Number of samples.
    covariates : tuple of str
        Names of the covariates.
    names : tuple of str or None
        Names of the features, if the data have names.
    annotations : dict of str to list
        Annotations of the features in the data, such as chromosome, position and alleles.

    Examples
    --------
    >>> from coterie import association
    >>> found = association([[0, 1], [1, 1], [2, 0], [1, 0]], [0.1, 1.2, 1.9, 0.8])
    >>> [round(float(effect), 2) for effect in found.effect]
    [0.9, -0.7]
    """

    feature: np.ndarray
    effect: np.ndarray
    standard_error: np.ndarray
    statistic: np.ndarray
    p_value: np.ndarray
    model: str
    n_samples: int
    covariates: tuple[str, ...] = ()
    names: tuple[str, ...] | None = None
    annotations: dict[str, list[Any]] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.feature)

    def rows(self) -> list[dict[str, Any]]:
        """Return one dictionary per feature: feature, name, annotations, effect, standard_error, statistic, p_value."""
        columns: dict[str, Sequence[Any]] = {
            "feature": self.feature.tolist(),
            "name": [None] * len(self) if self.names is None else self.names,
            **self.annotations,
            **{name: getattr(self, name).tolist() for name in STATISTICS},
        }
        return [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]

    def to_frame(self) -> pd.DataFrame:
        """Return a pandas data frame with one row per feature (requires ``pip install coterie[tabular]``)."""
        try:
            import pandas as pd
        except ImportError as error:
            raise ImportError("to_frame() requires pandas: pip install 'coterie[tabular]'.") from error
        return pd.DataFrame(self.rows(), columns=["feature", "name", *self.annotations, *STATISTICS])

    def attach(self, groups: FeatureGroups) -> FeatureGroups:
        """Return the groups with marginal_effect, standard_error, statistic and p_value of their features as annotations.

        The name is ``marginal_effect``, because groups have an ``effect`` already, that of the joint model.
        """
        place = {int(feature): k for k, feature in enumerate(self.feature)}
        members = groups.members.tolist()
        missing = [j for j in members if j not in place]
        if missing:
            raise ValueError(f"The association lacks feature {missing[0]} of the groups. Compute it with features=groups.")
        columns = {f"marginal_{name}" if name == "effect" else name: getattr(self, name) for name in STATISTICS}
        return groups.annotated({name: {j: values[place[j]] for j in members} for name, values in columns.items()})

    def __repr__(self) -> str:
        adjusted = f", adjusted for {', '.join(self.covariates)}" if self.covariates else ""
        best = "" if np.isnan(self.p_value).all() else f", smallest p-value {np.nanmin(self.p_value):.3g}"
        return f"<Association of {len(self):,} features, {self.model}, {self.n_samples:,} samples{adjusted}{best}>"


def association(
    X: FeaturesLike,
    y: TargetsLike = None,
    features: ArrayLike | FeatureGroups | BaseEstimator | None = None,
    *,
    covariates: CovariatesLike = None,
    offset: SamplesLike = None,
    model: str = "auto",
) -> Association:
    """Compute the association of each single feature with a trait, adjusted for covariates.

    For every feature, a regression on an intercept, the covariates and this feature alone is fitted, as in
    ``plink --linear`` and ``plink --logistic``.

    Parameters
    ----------
    X : {array-like, sparse matrix, data frame, FeatureSource, path, Dataset, Store} of shape (n_samples, n_features)
        Data.

    y : array-like of shape (n_samples,), default=None
        Trait: numbers, or two classes. None means the labels of the path, data set or store.

    features : FeatureGroups, fitted selector, or array-like of int, str or bool, default=None
        Features to test: all members of groups (or of the groups of a selector), indices, names or a mask. All features by
        default.

    covariates : array-like or data frame of shape (n_samples, n_covariates), default=None
        Covariates to adjust for. None means those of the data set or store.

    offset : array-like of shape (n_samples,), default=None
        Offset, as in ``fit``: subtracted from y in a linear regression, a further covariate in a logistic regression.

    model : {"auto", "linear", "logistic"}, default="auto"
        Regression model. ``"auto"`` is logistic if y has two different values, otherwise linear.

    Returns
    -------
    association : Association
        Effect, standard error, statistic and p-value of each feature.

    Notes
    -----
    **The p-values of features that were selected on the same samples are too small**, because the features were selected for
    their association. Use p-values of all features, with a threshold for the number of tests, or of other samples.
    :func:`coterie.group_confidence` measures how reliable a group is in these samples.

    The p-values are those of Student's t for a linear regression, and of Wald's test for a logistic regression. Missing
    genotypes are imputed by the reader of .bed files. PLINK instead omits the samples with missing values, per SNP.

    Examples
    --------
    >>> import numpy as np
    >>> from coterie import association
    >>> rng = np.random.default_rng(0)
    >>> X, age = rng.integers(0, 3, (200, 5)), rng.uniform(20, 70, 200)
    >>> y = 0.5 * X[:, 3] + 0.1 * age + rng.standard_normal(200)
    >>> found = association(X, y, covariates=age)
    >>> int(found.p_value.argmin()), round(float(found.effect[3]), 1)
    (3, 0.5)
    """
    check("model", model, OneOf("auto", "linear", "logistic"))
    found = unwrap(X, y)
    source, y = source_of(found.X), found.y
    covariates = found.covariates if covariates is None else covariates
    if y is None:
        raise ValueError("association requires y. Pass the trait of each sample.")
    trait = column_or_1d(y, warn=True)
    check_consistent_length(trait, np.empty(source.shape[0]))
    known = None if covariates is None else as_covariates(covariates, source.shape[0])
    chosen, (kind, targets) = _chosen(features, source), _targets(trait, model)
    columns_of = [] if known is None else [known.values]
    if offset is not None:
        added = read_offset(offset, source.shape[0])
        if kind == "linear":
            targets = targets - added
        else:
            columns_of.append(added[:, None])
    basis = _basis(source.shape[0], np.hstack(columns_of) if columns_of else None)
    fit = _linear if kind == "linear" else _logistic
    estimates = np.full((3, len(chosen)), np.nan)  # effect, standard error, p-value
    for start in range(0, len(chosen), _BLOCK):
        own = slice(start, start + _BLOCK)
        columns = source.columns(chosen[own])
        dense = np.asarray(columns if isinstance(columns, np.ndarray) else columns.toarray(), dtype=np.float64)
        if not np.isfinite(dense).all():
            place = int(np.argmax(~np.isfinite(dense).all(axis=0)))
            raise ValueError(f"Feature {chosen[start + place]} has missing or infinite values. Impute them.")
        estimates[:, own] = fit(dense, targets, basis)
    effect, error, p_value = estimates
    with np.errstate(all="ignore"):
        statistic = effect / error
    names = source.feature_names
    return Association(
        chosen,
        effect,
        error,
        statistic,
        p_value,
        kind,
        source.shape[0],
        () if known is None else known.names,
        None if names is None else tuple(str(names[j]) for j in chosen.tolist()),
        {name: [_plain(values[j]) for j in chosen.tolist()] for name, values in source.annotations.items()},
    )


def _plain(value: Any) -> Any:
    return value.item() if isinstance(value, np.generic) else value


def _chosen(features: ArrayLike | FeatureGroups | BaseEstimator | None, source: FeatureSource) -> np.ndarray:
    if features is None:
        return np.arange(source.shape[1])
    groups = getattr(features, "groups_", features)
    if isinstance(groups, FeatureGroups):
        if len(groups) and groups.members[-1] >= source.shape[1]:
            raise ValueError(f"The groups have feature {groups.members[-1]}, but X has {source.shape[1]} features.")
        return groups.members
    if hasattr(features, "get_support"):
        features = features.get_support(indices=True)
    return feature_positions(features, source.shape[1], source.feature_names, "features")


def _targets(trait: np.ndarray, model: str) -> tuple[str, np.ndarray]:
    """Return the model and its targets: numbers, or 0 and 1."""
    values, codes = np.unique(trait.astype(str) if trait.dtype.kind == "O" else trait, return_inverse=True)
    if len(values) < 2:
        raise ValueError("y is constant. An association requires different values of y.")
    if model == "logistic" or (model == "auto" and len(values) == 2):
        if len(values) != 2:
            raise ValueError(f"A logistic regression requires two classes, but y has {len(values)}.")
        return "logistic", codes.astype(np.float64)
    try:
        numbers = trait.astype(np.float64)
    except (TypeError, ValueError) as error:
        raise ValueError(f"y has {len(values)} classes, but an association requires two classes or numbers.") from error
    if not np.isfinite(numbers).all():
        raise ValueError("y contains NaN or infinity. Remove these samples.")
    return "linear", numbers


def _basis(n_samples: int, covariates: np.ndarray | None) -> np.ndarray:
    """Return orthonormal columns that span the intercept and the covariates."""
    ones = np.full((n_samples, 1), 1.0 / np.sqrt(n_samples))
    if covariates is None:
        return ones
    centred = covariates - covariates.mean(axis=0)
    scale = np.sqrt((centred**2).sum(axis=0))
    vectors, values, _ = linalg.svd(centred / np.where(scale > 0.0, scale, 1.0), full_matrices=False)
    return np.hstack([ones, vectors[:, values > _MIN_SINGULAR_VALUE]])


def _without(columns: np.ndarray, basis: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the columns minus their projection on the basis, and a mask of those that are not explained by it."""
    centred = columns - columns.mean(axis=0)  # centred first to avoid cancellation for large means
    left = centred - basis @ (basis.T @ centred)
    before, after = (centred**2).sum(axis=0), (left**2).sum(axis=0)
    return left, after > _MIN_SHARE * np.maximum(before, np.finfo(float).tiny)


def _linear(columns: np.ndarray, y: np.ndarray, basis: np.ndarray) -> np.ndarray:
    """Return effect, standard error and p-value by least squares (exact by the Frisch–Waugh–Lovell theorem)."""
    left, varies = _without(columns, basis)
    rest = _without(y[:, None], basis)[0][:, 0]
    freedom = len(y) - basis.shape[1] - 1
    if freedom < 1:
        raise ValueError(f"{len(y)} samples are too few for {basis.shape[1] - 1} covariates and a feature.")
    with np.errstate(all="ignore"):
        squares = np.where(varies, (left**2).sum(axis=0), np.nan)
        effect = left.T @ rest / squares
        errors = ((rest[:, None] - left * effect) ** 2).sum(axis=0)
        error = np.sqrt(errors / freedom / squares)
        p_value = 2.0 * stats.t.sf(np.abs(effect / error), freedom)
    return np.stack([effect, error, p_value])


def _logistic(columns: np.ndarray, y: np.ndarray, basis: np.ndarray) -> np.ndarray:
    """Return effect, standard error and p-value by maximum likelihood, with Newton's method for all columns together."""
    left, varies = _without(columns, basis)
    if len(y) <= basis.shape[1] + 1:
        raise ValueError(f"{len(y)} samples are too few for {basis.shape[1] - 1} covariates and a feature.")
    # The coefficient of the residual feature equals that of the feature. The residual is scaled to unit variance.
    scale = np.where(varies, np.sqrt((left**2).mean(axis=0)), 1.0)
    own = left / scale
    shared = basis * np.sqrt(len(y))
    r = shared.shape[1]
    pairs = (shared[:, :, None] * shared[:, None, :]).reshape(len(y), r * r)
    coef = np.zeros((own.shape[1], r + 1))
    mean = y.mean()
    coef[:, 0] = np.log(mean / (1.0 - mean))
    hessian = np.empty((own.shape[1], r + 1, r + 1))
    step = np.full_like(coef, np.inf)
    for _ in range(_MAX_STEPS):
        chance = special.expit(shared @ coef[:, :r].T + own * coef[:, r])
        weight = np.maximum(chance * (1.0 - chance), 1e-12)
        errors = y[:, None] - chance
        hessian[:, :r, :r] = (weight.T @ pairs).reshape(-1, r, r)
        hessian[:, :r, r] = hessian[:, r, :r] = (weight * own).T @ shared
        hessian[:, r, r] = np.where(varies, (weight * own**2).sum(axis=0), 1.0)
        slope = np.hstack([errors.T @ shared, (errors * own).sum(axis=0)[:, None]])
        step = np.linalg.solve(hessian, slope[:, :, None])[:, :, 0]
        step *= np.minimum(
            1.0, 5.0 / np.maximum(np.abs(step).max(axis=1, keepdims=True), 1e-300)
        )  # long steps lead to flat regions
        coef += step
        if np.abs(step).max() < 1e-10:
            break
    settled = varies & (np.abs(step).max(axis=1) < 1e-6)
    with np.errstate(all="ignore"):
        effect = np.where(settled, coef[:, r] / scale, np.nan)
        error = np.where(settled, np.sqrt(np.linalg.inv(hessian)[:, r, r]) / scale, np.nan)
        p_value = 2.0 * stats.norm.sf(np.abs(effect / error))
    return np.stack([effect, error, p_value])
