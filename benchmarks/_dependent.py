"""Data with samples that are not independent, rare classes and few features, with known truth."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np


class Problem(NamedTuple):
    """Simulated data.

    Attributes
    ----------
    X : ndarray of shape (n_samples, n_features)
        Features.
    y : ndarray of shape (n_samples,)
        Labels or numbers.
    groups : ndarray of shape (n_samples,) or None
        Sample groups that a user would pass.
    covariates : ndarray of shape (n_samples, n_covariates) or None
        Covariates that a user would pass.
    planted : tuple of tuple of int
        Groups of features that carry the signal; empty for data without signal.
    C : float or None
        Weight of the loss that a user would choose; None for the default.
    """

    X: np.ndarray
    y: np.ndarray
    groups: np.ndarray | None = None
    covariates: np.ndarray | None = None
    planted: tuple[tuple[int, ...], ...] = ()
    C: float | None = None


def donors(seed: int, *, n_donors: int = 8, n_cells: int = 60, n_features: int = 300) -> Problem:
    """Return cells with effects of their donor. The disease is assigned to donors at random, without any effect."""
    rng = np.random.default_rng([seed, 1])
    groups = np.repeat(np.arange(n_donors), n_cells)
    X = 0.5 * rng.standard_normal((n_donors, n_features))[groups] + rng.standard_normal((len(groups), n_features))
    return Problem(X, rng.permutation(np.arange(n_donors) % 2)[groups], groups)


def subjects(seed: int, *, n_subjects: int = 50, n_rows: int | None = 5, n_features: int = 300) -> Problem:
    """Return repeated rows of subjects with a random label per subject. Without ``n_rows``, subjects have 3 to 10 rows."""
    rng = np.random.default_rng([seed, 2])
    sizes = rng.integers(3, 11, n_subjects) if n_rows is None else np.full(n_subjects, n_rows)
    groups = np.repeat(np.arange(n_subjects), sizes)
    X = rng.standard_normal((n_subjects, n_features))[groups] + rng.standard_normal((len(groups), n_features))
    return Problem(X, rng.permutation(np.arange(n_subjects) % 2)[groups], groups)


def families(seed: int, *, n_families: int = 60, n_children: int = 4, n_snps: int = 500) -> Problem:
    """Return genotypes of siblings, with a trait that siblings share by their environment. No SNP has an effect."""
    rng = np.random.default_rng([seed, 3])
    frequency = rng.uniform(0.1, 0.5, n_snps)
    parents = rng.random((n_families, 2, 2, n_snps)) < frequency  # family, parent, chromosome, SNP
    groups = np.repeat(np.arange(n_families), n_children)
    # Blocks of 20 SNPs are inherited together.
    block = np.arange(n_snps) // 20
    X = np.zeros((len(groups), n_snps))
    for parent in range(2):
        strand = rng.integers(0, 2, (len(groups), block[-1] + 1))[:, block]
        X += np.where(strand == 0, parents[groups, parent, 0], parents[groups, parent, 1])
    shared = rng.standard_normal(n_families)[groups]
    return Problem(X, shared + 0.7 * rng.standard_normal(len(groups)), groups)


def populations(seed: int, *, n_samples: int = 300, n_snps: int = 500) -> Problem:
    """Return genotypes of two populations, and a trait whose mean differs between them. No SNP has an effect.

    The covariate is the population.
    """
    rng = np.random.default_rng([seed, 4])
    population = rng.integers(0, 2, n_samples)
    ancestral = rng.uniform(0.1, 0.5, n_snps)
    frequency = np.clip(ancestral + 0.1 * rng.standard_normal((2, n_snps)), 0.02, 0.98)
    X = rng.binomial(2, frequency[population]).astype(float)
    return Problem(X, population + rng.standard_normal(n_samples), covariates=population[:, None].astype(float))


def rare_class(seed: int, *, share: float = 0.01, n_samples: int = 4000, n_features: int = 100) -> Problem:
    """Return three planted groups of five features, and a rare class that depends on them."""
    rng = np.random.default_rng([seed, 5])
    factors = rng.standard_normal((n_samples, 3))
    X = rng.standard_normal((n_samples, n_features))
    planted = tuple(tuple(range(5 * k, 5 * k + 5)) for k in range(3))
    for k, members in enumerate(planted):
        X[:, list(members)] = factors[:, [k]] + 0.4 * rng.standard_normal((n_samples, 5))
    risk = factors.sum(axis=1) + 0.8 * rng.standard_normal(n_samples)
    return Problem(X, (risk > np.quantile(risk, 1.0 - share)).astype(int), planted=planted)


def proxies(seed: int, *, n_samples: int = 250, n_features: int = 600) -> Problem:
    """Return five causal features, each with six proxies whose correlation of 0.6 is just below the threshold."""
    rng = np.random.default_rng([seed, 8])
    X = rng.standard_normal((n_samples, n_features))
    for k in range(5):
        X[:, 5 + 6 * k : 11 + 6 * k] = 0.6 * X[:, [k]] + 0.8 * X[:, 5 + 6 * k : 11 + 6 * k]
    y = X[:, :5].sum(axis=1) + 1.5 * rng.standard_normal(n_samples) > 0.0
    return Problem(X, y.astype(int), planted=tuple((k,) for k in range(5)), C=0.01)


def few_features(seed: int, *, n_samples: int = 330) -> Problem:
    """Return three classes that differ in five of seven features, as in measurements of species."""
    rng = np.random.default_rng([seed, 6])
    y = rng.integers(0, 3, n_samples)
    centres = np.array([[0, 0, 0], [3, 0, 1], [0, 3, 2], [2, 2, 0], [0, 1, 3], [0, 0, 0], [0, 0, 0]])
    X = centres[:, y].T + rng.standard_normal((n_samples, 7))
    return Problem(X, y, planted=tuple((j,) for j in range(5)))


def noise(seed: int, *, n_samples: int = 100, n_features: int = 30) -> Problem:
    """Return independent features and labels."""
    rng = np.random.default_rng([seed, 7])
    return Problem(rng.standard_normal((n_samples, n_features)), rng.permutation(np.arange(n_samples) % 2))
