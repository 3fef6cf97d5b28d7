r"""Polygenic offsets: what the other samples predict for a sample, by all features or by those of the other chromosomes.

The model is that of genomic best linear unbiased prediction (GBLUP), which is a ridge regression on all features:
:math:`y = Ab + g + e` with covariates A, :math:`g \sim N(0, hK)` and :math:`e \sim N(0, (1-h)I)`, up to a common scale. K
contains the products of standardised features between samples (genomic relationship matrix). The heritability h maximises the
restricted likelihood.

Let :math:`V = hK + (1-h)I` and :math:`P = V^{-1} - V^{-1}A(A'V^{-1}A)^{-1}A'V^{-1}`. The error of the prediction of sample i
from all others is :math:`(Py)_i / P_{ii}`, without a refit per sample. The score test of the linear mixed model correlates
:math:`Py` with each feature, and :math:`P_{ii}` is nearly constant. So a model with this offset does not attribute to single
features what relatives or populations have in common.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple, cast

import numpy as np
from numpy.typing import ArrayLike
from scipy import linalg, optimize
from sklearn.utils import check_consistent_length, column_or_1d

from coterie._numba import one_blas_thread, run_chunks, thread_count
from coterie._parameters import N_JOBS, check
from coterie.data.covariates import as_covariates
from coterie.data.offset_file import chromosome_key, write_loco
from coterie.data.source import FeatureSource
from coterie.inputs.opening import source_of, unwrap
from coterie.inputs.types import CovariatesLike, FeaturesLike, PathLike, TargetsLike

# Values of a block of features, and rows of the product matrix per task.
_BLOCK_VALUES = 1 << 22
_TILE = 256
# Candidates of the heritability, and the precision of their refinement.
_HERITABILITIES = np.linspace(0.0, 0.99, 12)
_PRECISION = 1e-3


@dataclass(frozen=True, eq=False)
class PolygenicOffset:
    """Result of :func:`polygenic_offset`.

    Attributes
    ----------
    whole : ndarray of shape (n_samples,)
        Prediction of each sample from all features.
    chromosomes : tuple of str
        Names of the chromosomes.
    by_chromosome : ndarray of shape (n_samples, n_chromosomes)
        Prediction of each sample from the features of all *other* chromosomes (leave one chromosome out).
    heritability : float
        Share of the variance that the features explain in the model, which covariates do not.

    Examples
    --------
    >>> import numpy as np
    >>> from coterie import polygenic_offset
    >>> rng = np.random.default_rng(0)
    >>> family = np.repeat(np.arange(20), 5)
    >>> X = rng.integers(0, 3, (20, 60))[family] + rng.integers(0, 2, (100, 60))
    >>> y = rng.standard_normal(20)[family] + 0.5 * rng.standard_normal(100)
    >>> found = polygenic_offset(X, y, chromosomes=np.repeat(["1", "2", "3"], 20))
    >>> found
    <PolygenicOffset of 100 samples, 3 chromosomes, heritability 0.7>
    >>> bool(np.corrcoef(found.of("2"), y)[0, 1] > 0.5)
    True
    """

    whole: np.ndarray
    chromosomes: tuple[str, ...]
    by_chromosome: np.ndarray
    heritability: float

    def of(self, chromosome: object) -> np.ndarray:
        """Return the offset for the features of a chromosome, which is made from those of all others."""
        keys = [chromosome_key(name) for name in self.chromosomes]
        if chromosome_key(chromosome) not in keys:
            known = ", ".join(self.chromosomes) or "none"
            raise ValueError(f"chromosome={str(chromosome)!r} has no offset. Those with an offset are: {known}.")
        return self.by_chromosome[:, keys.index(chromosome_key(chromosome))]

    def save(self, path: PathLike, sample_names: Sequence[str]) -> None:
        """Write the offsets by chromosome in the format of REGENIE, for ``coterie discover --offset``.

        Parameters
        ----------
        path : path
            The file.
        sample_names : sequence of str
            Names of the samples: IID, or FID:IID.
        """
        check_consistent_length(sample_names, self.whole)
        write_loco(path, sample_names, self.chromosomes, self.by_chromosome)

    def __repr__(self) -> str:
        n_samples, n_chromosomes = self.by_chromosome.shape
        return f"<PolygenicOffset of {n_samples:,} samples, {n_chromosomes} chromosomes, heritability {self.heritability:.2g}>"


def polygenic_offset(
    X: FeaturesLike,
    y: TargetsLike = None,
    *,
    covariates: CovariatesLike = None,
    chromosomes: ArrayLike | None = None,
    leave_out: Sequence[object] | None = None,
    n_jobs: int | None = None,
) -> PolygenicOffset:
    """Predict each sample from all other samples by a ridge regression on all features.

    Passed as ``offset``, the prediction accounts for relatives, populations and polygenic background, so that these do not
    make single features predictive. For the features of one chromosome, use :meth:`PolygenicOffset.of`, to which the features
    of that chromosome do not contribute. Otherwise the offset contains a part of the effects to be found.

    Parameters
    ----------
    X : {array-like, sparse matrix, data frame, FeatureSource, path, Dataset, Store} of shape (n_samples, n_features)
        Data.

    y : array-like of shape (n_samples,), default=None
        Trait: numbers, or two classes, which count as 0 and 1. None means the labels of the path, data set or store.

    covariates : array-like or data frame of shape (n_samples, n_covariates), default=None
        Covariates to adjust for. None means those of the data set or store. The offset does not contain their effects.

    chromosomes : array-like of shape (n_features,), default=None
        Chromosome of each feature. None means the annotation ``chromosome`` of the data.

    leave_out : sequence of str, default=None
        Chromosomes to leave out, each in turn. None means all, if there are at least two.

    n_jobs : int, default=None
        Number of threads. None means all cores. The result does not depend on it.

    Returns
    -------
    offset : PolygenicOffset
        Predictions from all features, and from all but those of each chromosome.

    Notes
    -----
    The prediction of a sample uses the other samples only (leave one out), including its relatives. It is the best linear
    unbiased prediction with the heritability of the largest restricted likelihood.

    Time grows with the square of the number of samples times the number of features, and with its cube for each chromosome.
    Three matrices of n_samples × n_samples are held, which are 10 GB for 20,000 samples.

    References
    ----------
    .. [1] J. Yang, N. A. Zaitlen, M. E. Goddard, P. M. Visscher, A. L. Price, "Advantages and pitfalls in the application of
       mixed-model association methods", Nature Genetics 46(2), 2014.

    Examples
    --------
    >>> import numpy as np
    >>> from coterie import GroupDiscoveryRegressor, polygenic_offset
    >>> rng = np.random.default_rng(0)
    >>> X, y = rng.integers(0, 3, (80, 40)), rng.standard_normal(80)
    >>> offset = polygenic_offset(X, y).whole
    >>> model = GroupDiscoveryRegressor(3).fit(X, y, offset=offset)
    """
    check("n_jobs", n_jobs, N_JOBS)
    found = unwrap(X, y)
    source = source_of(found.X)
    if found.y is None:
        raise ValueError("polygenic_offset requires y. Pass the trait of each sample.")
    trait = column_or_1d(found.y, warn=True)
    check_consistent_length(trait, np.empty(source.shape[0]))
    covariates = found.covariates if covariates is None else covariates
    fixed = np.ones((source.shape[0], 1))
    if covariates is not None:
        fixed = np.hstack([fixed, _standardised(as_covariates(covariates, source.shape[0]).values)])
    own = _chromosomes(chromosomes, source)
    names = tuple(dict.fromkeys(own.tolist())) if leave_out is None else tuple(str(name) for name in leave_out)
    if leave_out is None and len(names) < 2:
        names = ()
    for name in names:
        if not (own == name).any() or (own == name).all():
            raise ValueError(f"leave_out: chromosome {name!r} must be that of some features, but not of all.")
    return _offsets(source, _numbers(trait), fixed, own, names, thread_count(n_jobs))


def _offsets(
    source: FeatureSource, y: np.ndarray, fixed: np.ndarray, own: np.ndarray, names: tuple[str, ...], n_threads: int
) -> PolygenicOffset:
    """Return the offsets from all features and without each named chromosome."""
    with one_blas_thread():  # the sums do not depend on the number of cores
        total = _products(source, np.arange(source.shape[1]), n_threads)
        relation = total.matrix / max(total.n_features, 1)
        heritability = _heritability(relation, y, fixed)
        whole = left_out_predictions(relation, y, fixed, heritability)
        del relation
        without = np.empty((source.shape[0], len(names)))
        for k, name in enumerate(names):
            part = _products(source, np.flatnonzero(own == name), n_threads)
            rest = (total.matrix - part.matrix) / max(total.n_features - part.n_features, 1)
            del part
            without[:, k] = left_out_predictions(rest, y, fixed, heritability)
    return PolygenicOffset(whole, names, without, heritability)


def left_out_predictions(relation: np.ndarray, y: np.ndarray, fixed: np.ndarray, heritability: float) -> np.ndarray:
    """Return the genetic part of the prediction of each sample from all others.

    Parameters
    ----------
    relation : ndarray of shape (n_samples, n_samples)
        Relationship matrix K.
    y : ndarray of shape (n_samples,)
        Trait.
    fixed : ndarray of shape (n_samples, n_fixed)
        Intercept and covariates A.
    heritability : float
        Heritability h.
    """
    if heritability == 0.0:
        return np.zeros(len(y))
    factor = _factor(relation, heritability)
    inverse, failed = linalg.lapack.dpotri(factor, lower=1, overwrite_c=1)
    if failed:
        raise linalg.LinAlgError("The relationship matrix cannot be inverted.")
    diagonal = np.diag(inverse).copy()
    weighted = np.column_stack([y, fixed])
    # The factor is zero above the diagonal, and dpotri only writes below it.
    weighted = inverse @ weighted + inverse.T @ weighted - diagonal[:, None] * weighted
    of_y, of_fixed = weighted[:, 0], weighted[:, 1:]
    gram = np.linalg.pinv(fixed.T @ of_fixed, hermitian=True)
    coef = gram @ (fixed.T @ of_y)
    error = (of_y - of_fixed @ coef) / (diagonal - ((of_fixed @ gram) * of_fixed).sum(axis=1))
    # The fixed effects without sample i are coef - gram @ of_fixed[i] * error[i].
    constant = fixed @ coef - ((fixed @ gram) * of_fixed).sum(axis=1) * error
    return np.asarray(y - error - constant)


def _heritability(relation: np.ndarray, y: np.ndarray, fixed: np.ndarray) -> float:
    """Return the heritability with the largest restricted likelihood."""
    values = [_deviance(h, relation, y, fixed) for h in _HERITABILITIES.tolist()]
    best = int(np.argmin(values))
    low, high = _HERITABILITIES[max(best - 1, 0)], _HERITABILITIES[min(best + 1, len(values) - 1)]
    refined = optimize.minimize_scalar(
        _deviance, bounds=(low, high), args=(relation, y, fixed), method="bounded", options={"xatol": _PRECISION}
    )
    return float(refined.x) if refined.fun < values[best] else float(_HERITABILITIES[best])


def _deviance(heritability: float, relation: np.ndarray, y: np.ndarray, fixed: np.ndarray) -> float:
    """Return minus twice the restricted log-likelihood, up to a constant, with the scale at its optimum."""
    factor = _factor(relation, heritability)
    white = linalg.solve_triangular(factor, np.column_stack([fixed, y]), lower=True)
    design, target = white[:, :-1], white[:, -1]
    coef, _, rank, singular = np.linalg.lstsq(design, target, rcond=None)
    freedom = len(y) - int(rank)
    rest = float(((target - design @ coef) ** 2).sum())
    inner = 2.0 * float(np.log(singular[: int(rank)]).sum())
    return freedom * float(np.log(max(rest, np.finfo(float).tiny))) + 2.0 * float(np.log(np.diag(factor)).sum()) + inner


def _factor(relation: np.ndarray, heritability: float) -> np.ndarray:
    """Return the lower Cholesky factor of ``heritability * relation + (1 - heritability) * I``."""
    variance = heritability * relation
    variance[np.diag_indices_from(variance)] += 1.0 - heritability
    return np.asarray(linalg.cholesky(variance, lower=True, overwrite_a=True, check_finite=False))


class _Products(NamedTuple):
    """Products of standardised features between samples, and the number of features that vary."""

    matrix: np.ndarray
    n_features: int


def _products(source: FeatureSource, features: np.ndarray, n_threads: int) -> _Products:
    """Return the sums of products of some features. Each tile of the matrix is computed by one thread."""
    n_samples, n_features = source.shape[0], 0
    matrix = np.zeros((n_samples, n_samples))
    for block in _blocks(source, features):
        n_features += block.shape[1]

        def task(start: int, stop: int, block: np.ndarray = block) -> None:
            matrix[start:stop, :stop] += block[start:stop] @ block[:stop].T

        run_chunks(task, [*range(0, n_samples, _TILE), n_samples], n_threads)
    for start in range(0, n_samples, _TILE):
        matrix[:start, start : start + _TILE] = matrix[start : start + _TILE, :start].T
    return _Products(matrix, n_features)


def _blocks(source: FeatureSource, features: np.ndarray) -> Iterator[np.ndarray]:
    """Yield standardised columns of the features that vary, some at a time."""
    width = max(1, _BLOCK_VALUES // max(1, source.shape[0]))
    for start in range(0, len(features), width):
        chosen = features[start : start + width]
        columns = source.columns(chosen)
        dense = np.asarray(columns if isinstance(columns, np.ndarray) else columns.toarray(), dtype=np.float64)
        if not np.isfinite(dense).all():
            place = int(np.argmax(~np.isfinite(dense).all(axis=0)))
            raise ValueError(f"Feature {chosen[place]} has missing or infinite values. Impute them.")
        yield _standardised(dense)


def _standardised(columns: np.ndarray) -> np.ndarray:
    """Return the columns that vary, with mean 0 and variance 1."""
    centred = columns - columns.mean(axis=0)
    scale = np.sqrt((centred**2).mean(axis=0))
    varies = scale > 1e-10 * np.maximum(np.abs(columns).max(axis=0, initial=0.0), np.finfo(float).tiny)
    return np.ascontiguousarray(centred[:, varies] / scale[varies])


def _chromosomes(given: ArrayLike | None, source: FeatureSource) -> np.ndarray:
    """Return the name of the chromosome of each feature; "" if it is not known."""
    known = source.annotations.get("chromosome") if given is None else given
    if known is None:
        return np.full(source.shape[1], "", dtype=object)
    names = np.array([str(name) for name in cast("Sequence[object]", known)], dtype=object)
    if len(names) != source.shape[1]:
        raise ValueError(f"chromosomes has {len(names)} entries, but X has {source.shape[1]} features.")
    return names


def _numbers(trait: np.ndarray) -> np.ndarray:
    """Return the trait as numbers; 0 and 1 for two classes."""
    values, codes = np.unique(trait.astype(str) if trait.dtype.kind == "O" else trait, return_inverse=True)
    if len(values) < 2:
        raise ValueError("y is constant. A polygenic offset requires different values of y.")
    if len(values) == 2:
        return codes.astype(np.float64)
    try:
        numbers = trait.astype(np.float64)
    except (TypeError, ValueError) as error:
        raise ValueError(f"y has {len(values)} classes, but a polygenic offset requires two classes or numbers.") from error
    if not np.isfinite(numbers).all():
        raise ValueError("y contains NaN or infinity. Remove these samples.")
    return numbers
