"""Small data sets whose samples depend on each other or not."""

import numpy as np


def repeated_rows(rng, n_subjects=40, n_rows=5, within=0.5, n_features=200):
    """Return several similar rows per subject in random order, a random label per subject, and the subjects."""
    subject = np.repeat(np.arange(n_subjects), n_rows)
    X = np.sqrt(within) * rng.standard_normal((n_subjects, n_features))[subject]
    X += np.sqrt(1 - within) * rng.standard_normal((len(subject), n_features))
    order = rng.permutation(len(subject))
    return X[order], (rng.permutation(n_subjects) % 2)[subject][order], subject[order]


def independent_rows(rng, n_rows=200, n_features=200):
    """Return correlated features, of which the first ones predict the label."""
    X = rng.standard_normal((n_rows, n_features)) + 0.5 * rng.standard_normal((n_rows, 1))
    return X, (X[:, :10].sum(axis=1) + rng.standard_normal(n_rows) > 0).astype(int)


def subtypes(rng, n_rows=240, n_features=200):
    """Return independent rows of two classes with three subtypes each; the classes differ as much as the subtypes."""
    y, kind = rng.integers(0, 2, n_rows), rng.integers(0, 3, n_rows)
    X = rng.standard_normal((n_rows, n_features)) + rng.standard_normal((2, n_features))[y]
    return X + rng.standard_normal((6, n_features))[3 * y + kind], y


def siblings(rng, n_pairs=50, n_snps=1500):
    """Return genotypes of pairs of siblings, with crossovers, and a trait with a component per pair."""
    frequency = rng.uniform(0.1, 0.5, n_snps)
    rows = []
    for _ in range(n_pairs):
        parents = (rng.random((2, 2, n_snps)) < frequency).astype(int)
        for _ in range(2):
            which = (np.cumsum(rng.random((2, n_snps)) < 0.01, axis=1) + rng.integers(0, 2, (2, 1))) % 2
            rows.append(sum(parents[side, which[side], np.arange(n_snps)] for side in (0, 1)))
    y = np.repeat(rng.standard_normal(n_pairs), 2) + rng.standard_normal(2 * n_pairs)
    return np.array(rows, dtype=np.int8), y


def populations(rng, n_rows=120, n_snps=600, shift=2.0):
    """Return genotypes of two populations, and a trait whose mean differs by ``shift``."""
    frequency = np.clip(rng.uniform(0.2, 0.8, n_snps) + rng.uniform(-0.15, 0.15, (2, n_snps)), 0.05, 0.95)
    population = np.arange(n_rows) % 2
    X = rng.binomial(2, frequency[population]).astype(np.int8)
    return X, shift * population + rng.standard_normal(n_rows), population
