"""Related samples and population structure of genotypes, estimated from a sample of SNPs."""

from __future__ import annotations

import numpy as np
from scipy import stats

from coterie.cautions.caution import RELATIVES, STRUCTURE, Caution, percent
from coterie.cautions.sampling import DrawnRows

# Smallest number of SNPs, and smallest frequency of the rarer allele.
_MIN_SNPS, _MIN_FREQUENCY = 100, 0.05
# Smallest share of values that are 0, 1 or 2, and of features with all three values, for data without chromosomes.
_MIN_WHOLE, _MIN_VARYING = 0.99, 0.5
# Kinship from which on two samples are relatives of second degree or closer (KING), share of unrelated samples that may have
# a larger estimate with some other sample, and smallest share of samples with a relative for a caution.
_MIN_KINSHIP, _BY_CHANCE, _MIN_RELATED = 0.0884, 0.005, 0.05
# Ratio of an eigenvalue to the largest one expected without structure, largest number of principal components, and p-value of
# their association with the labels.
_EDGE_RATIO, _MAX_COMPONENTS, _MAX_P_VALUE = 1.1, 10, 1e-3


def are_genotypes(part: DrawnRows) -> bool:
    """Return True if nearly all values are 0, 1 or 2 and most features have all three."""
    if part.values.shape[1] < _MIN_SNPS:
        return False
    counts = [(part.values == value).sum(axis=0) for value in (0, 1, 2)]
    whole = float(np.sum(counts)) / part.values.size
    varying = np.mean((counts[0] > 0) & (counts[1] > 0) & (counts[2] > 0))
    return bool(whole >= _MIN_WHOLE and varying >= _MIN_VARYING)


def _common(part: DrawnRows) -> np.ndarray:
    """Return the genotypes of common SNPs, rounded."""
    values = np.rint(part.values)
    frequency = values.mean(axis=0) / 2
    return values[:, (frequency >= _MIN_FREQUENCY) & (frequency <= 1 - _MIN_FREQUENCY)]


def share_with_relatives(part: DrawnRows) -> float:
    """Return the share of samples with a relative of second degree or closer.

    The kinship is KING's robust estimate (Manichaikul et al., 2010), which population structure does not increase.
    """
    values = _common(part)
    if values.shape[1] < _MIN_SNPS or len(values) < 2:
        return 0.0
    mixed = (values == 1).astype(np.float32)
    first, second = ((values == allele).astype(np.float32) for allele in (0, 2))
    opposite = first @ second.T
    heterozygous = mixed.sum(axis=1, dtype=np.float64)
    fewest = np.maximum(np.minimum(heterozygous[:, None], heterozygous), 1.0)
    shared = (mixed @ mixed.T).astype(np.float64) - 2.0 * (opposite + opposite.T)
    kinship = shared / (2 * fewest) + 0.5 - (heterozygous[:, None] + heterozygous) / (4 * fewest)
    pairs = kinship[np.triu_indices(len(kinship), k=1)]
    deviation = 1.4826 * float(np.median(np.abs(pairs - np.median(pairs))))
    np.fill_diagonal(kinship, -np.inf)
    limit = max(_MIN_KINSHIP, deviation * float(stats.norm.isf(_BY_CHANCE / len(values))))
    return float((kinship.max(axis=1) > limit).mean())


def relatives_caution(share: float) -> Caution | None:
    """Return the caution about relatives, if there are many."""
    if share < _MIN_RELATED:
        return None
    return Caution(
        RELATIVES,
        f"About {percent(share)} of the samples have a close relative in the data (kinship of second degree or more). "
        "Relatives share genotypes and phenotypes, so scores are too good and loci may be false. Pass families as sample "
        "groups (groups=, --sample-groups FID) or a polygenic offset.",
    )


def structure_p_value(part: DrawnRows, targets: np.ndarray, covariates: np.ndarray | None) -> float:
    """Return the p-value of the association of labels with principal components that exceed chance; 1 without these.

    Covariates are accounted for. The largest eigenvalue that is expected without structure is that of as many independent
    SNPs as the eigenvalues imply (Patterson et al., 2006).
    """
    values = _common(part)
    n_samples = len(values)
    if values.shape[1] < _MIN_SNPS or n_samples < 3 * _MAX_COMPONENTS:
        return 1.0
    scaled = (values - values.mean(axis=0)) / np.maximum(values.std(axis=0), 1e-12)
    eigenvalues, vectors = np.linalg.eigh(scaled @ scaled.T)
    eigenvalues = np.maximum(eigenvalues[1:], 0.0)  # without the smallest, which is 0 because the columns are centred
    total, squares = eigenvalues.sum(), (eigenvalues**2).sum()
    n_independent = (n_samples + 1) * total**2 / max((n_samples - 1) * squares - total**2, 1e-300)
    edge = eigenvalues.mean() * (1 + np.sqrt(n_samples / n_independent)) ** 2
    n_found = min(int((eigenvalues > _EDGE_RATIO * edge).sum()), _MAX_COMPONENTS)
    if not n_found:
        return 1.0
    known = np.ones((n_samples, 1)) if covariates is None else np.column_stack([np.ones(n_samples), covariates])
    outside, components = _residual(targets, known), _residual(vectors[:, -n_found:], known)
    rest = _residual(outside, components)
    degrees = n_samples - known.shape[1] - n_found
    before, after = (outside**2).sum(axis=0), (rest**2).sum(axis=0)
    usable = (before > 1e-10 * n_samples * np.maximum(targets.var(axis=0), 1e-300)) & (degrees > 0)
    if not usable.any():
        return 1.0
    ratio = ((before - after) / n_found)[usable] / np.maximum(after[usable] / degrees, 1e-300)
    return float(min(1.0, usable.sum() * stats.f.sf(ratio, n_found, degrees).min()))


def _residual(values: np.ndarray, known: np.ndarray) -> np.ndarray:
    """Return values minus their projection on the columns of ``known``."""
    return np.asarray(values - known @ np.linalg.lstsq(known, values, rcond=None)[0])


def structure_caution(p_value: float, *, with_covariates: bool) -> Caution | None:
    """Return the caution about population structure, if it is associated with the labels."""
    if p_value > _MAX_P_VALUE:
        return None
    despite = ", also beyond the covariates" if with_covariates else ""
    more = "more " if with_covariates else ""
    return Caution(
        STRUCTURE,
        f"The samples have population structure, and its principal components are associated with the labels{despite} "
        f"(p = {p_value:.1g}). SNPs that differ between populations then predict without an effect. Pass {more}principal "
        "components as covariates (covariates=, --covar).",
    )
