"""Simulated data whose samples depend on each other or not; no feature has an effect on the labels unless stated."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from scipy import sparse


class Simulated(NamedTuple):
    """Features, labels, and the task."""

    X: Any
    y: np.ndarray
    task: str = "classification"


def _noise(rng: np.random.Generator, n_rows: int, n_features: int, kind: str) -> np.ndarray:
    """Return noise of variance 1: independent, correlated between neighbouring features, or with five common factors."""
    noise = rng.standard_normal((n_rows, n_features))
    if kind == "neighbours":
        for feature in range(1, n_features):
            noise[:, feature] = 0.8 * noise[:, feature - 1] + 0.6 * noise[:, feature]
    elif kind == "factors":
        noise = (noise + rng.standard_normal((n_rows, 5)) @ rng.standard_normal((5, n_features)) / np.sqrt(5)) / np.sqrt(2)
    return noise


def _two_classes(rng: np.random.Generator, n_groups: int) -> np.ndarray:
    return rng.permutation(np.arange(n_groups) % 2)


def repeated_rows(
    rng: np.random.Generator,
    n_subjects: int = 50,
    rows: tuple[int, int] = (5, 5),
    within: float = 0.3,
    noise: str = "independent",
    task: str = "classification",
    n_features: int = 500,
) -> Simulated:
    """Return several rows per subject, correlated by ``within``, and a random label per subject."""
    subject = np.repeat(np.arange(n_subjects), rng.integers(rows[0], rows[1] + 1, n_subjects))
    X = np.sqrt(within) * _noise(rng, n_subjects, n_features, noise)[subject]
    X += np.sqrt(1 - within) * _noise(rng, len(subject), n_features, noise)
    labels = _two_classes(rng, n_subjects) if task == "classification" else rng.standard_normal(n_subjects)
    order = rng.permutation(len(subject))
    return Simulated(X[order], labels[subject][order], task)


def donors(
    rng: np.random.Generator,
    n_donors: int = 8,
    cells: tuple[int, int] = (60, 60),
    within: float = 0.2,
    n_types: int = 1,
    counts: bool = False,
    n_features: int = 500,
) -> Simulated:
    """Return cells of donors, with a disease assigned per donor; every donor has cells of all types."""
    donor = np.repeat(np.arange(n_donors), rng.integers(cells[0], cells[1] + 1, n_donors))
    effect = np.sqrt(within) * rng.standard_normal((n_donors, n_features))[donor]
    effect += 0.7 * rng.standard_normal((n_types, n_features))[rng.integers(0, n_types, len(donor))] * (n_types > 1)
    y = _two_classes(rng, n_donors)[donor]
    if counts:
        rate = np.exp(rng.normal(-0.5, 1, n_features) + effect + rng.normal(0, 0.3, (len(donor), 1)))
        return Simulated(sparse.csc_array(np.log1p(rng.poisson(rate))), y)
    return Simulated(effect + np.sqrt(1 - within) * rng.standard_normal(effect.shape), y)


def _gamete(rng: np.random.Generator, parent: np.ndarray) -> np.ndarray:
    """Return one of two haplotypes per SNP, with about 20 crossovers."""
    n_snps = parent.shape[1]
    which = (np.cumsum(rng.random(n_snps) < 20 / n_snps) + int(rng.random() < 0.5)) % 2
    return parent[which, np.arange(n_snps)]


def families(
    rng: np.random.Generator,
    n_families: int = 60,
    children: int = 3,
    parents: bool = True,
    single: int = 0,
    n_snps: int = 2000,
) -> Simulated:
    """Return genotypes of families with a trait that has a component per family, and of ``single`` unrelated samples."""
    frequency = rng.uniform(0.05, 0.5, n_snps)
    rows, family = [], []
    for number in range(n_families + single):
        pair = [(rng.random((2, n_snps)) < frequency).astype(np.int8) for _ in range(2)]
        members = [person.sum(axis=0) for person in pair] if parents else []
        members += [_gamete(rng, pair[0]) + _gamete(rng, pair[1]) for _ in range(children)]
        members = members[:1] if number >= n_families else members
        rows += members
        family += [number] * len(members)
    y = rng.standard_normal(n_families + single)[family] + rng.standard_normal(len(rows))
    return Simulated(np.array(rows, dtype=np.int8), y, "regression")


def populations(
    rng: np.random.Generator, n_populations: int = 3, distance: float = 0.05, shift: float = 1.0, n_samples: int = 300
) -> Simulated:
    """Return genotypes of populations (Balding and Nichols) with a trait whose mean differs by ``shift`` between them."""
    n_snps = 2000
    ancestral = rng.uniform(0.05, 0.95, n_snps)
    spread = (1 - distance) / distance
    frequency = rng.beta(ancestral * spread, (1 - ancestral) * spread, (n_populations, n_snps))
    population = rng.integers(0, n_populations, n_samples)
    X = rng.binomial(2, frequency[population]).astype(np.int8)
    return Simulated(X, shift * population + rng.standard_normal(n_samples), "regression")


def genotypes(rng: np.random.Generator, n_samples: int = 300, n_causal: int = 20) -> Simulated:
    """Return genotypes of unrelated samples of one population, in blocks of correlated SNPs, with a heritable trait."""
    n_snps, block = 2000, 10
    frequency = rng.uniform(0.05, 0.5, n_snps // block)
    haplotypes = np.repeat(rng.random((2, n_samples, n_snps // block)) < frequency, block, axis=2)
    flipped = rng.random(haplotypes.shape) < 0.05
    X = (haplotypes ^ flipped).sum(axis=0).astype(np.int8)
    effect = X[:, rng.permutation(n_snps)[:n_causal]] @ rng.standard_normal(n_causal)
    return Simulated(X, effect / effect.std() + rng.standard_normal(n_samples), "regression")


def independent(
    rng: np.random.Generator, n_samples: int = 250, n_features: int = 500, noise: str = "independent", signal: float = 1.0
) -> Simulated:
    """Return independent rows; the labels depend on ten features (on a common factor, if there are factors)."""
    X = _noise(rng, n_samples, n_features, noise)
    if noise == "factors":
        score = np.linalg.svd(X, full_matrices=False)[0][:, 0]
    else:
        score = X[:, :: n_features // min(10, n_features)].sum(axis=1)
    y = (signal * score / score.std() + rng.standard_normal(n_samples) > 0).astype(int)
    return Simulated(X, y)


def heavy_tails(rng: np.random.Generator) -> Simulated:
    """Return independent rows of t distributed features, with random labels."""
    return Simulated(rng.standard_t(3, (250, 500)), rng.integers(0, 2, 250))


def class_clusters(
    rng: np.random.Generator, n_classes: int = 2, n_subtypes: int = 1, n_samples: int = 300, shift: float = 0.5
) -> Simulated:
    """Return independent rows of classes, each with subtypes that differ as much from each other as the classes do."""
    y, subtype = rng.integers(0, n_classes, n_samples), rng.integers(0, n_subtypes, n_samples)
    X = rng.standard_normal((n_samples, 500)) + shift * rng.standard_normal((n_classes, 500))[y]
    X += 0.5 * (n_subtypes > 1) * rng.standard_normal((n_classes * n_subtypes, 500))[y * n_subtypes + subtype]
    return Simulated(X, y)
