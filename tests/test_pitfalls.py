"""Situations in which results were confidently wrong, in small forms; ``benchmarks/pitfalls.py`` has the full ones."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

import coterie
from coterie import GroupDiscoveryClassifierCV
from coterie.cautions import Caution
from coterie.report.judgement import DOES_NOT_PREDICT, PREDICTS


def repeated_rows(rng, n_groups=30, n_rows=5, n_features=150):
    """Rows of subjects with effects of the subject, and a random label per subject."""
    groups = np.repeat(np.arange(n_groups), n_rows)
    X = rng.standard_normal((n_groups, n_features))[groups] + 0.7 * rng.standard_normal((len(groups), n_features))
    return X, rng.permutation(np.arange(n_groups) % 2)[groups], {"groups": groups}


def donors(rng):
    """Many cells of few donors; the disease is assigned to donors at random."""
    return repeated_rows(rng, 8, 25)


def families(rng, n_families=40, n_children=4, n_snps=300):
    """Genotypes of siblings, and a trait that siblings share by their environment."""
    frequency = rng.uniform(0.1, 0.5, n_snps)
    parents = rng.random((n_families, 2, 2, n_snps)) < frequency
    groups, block = np.repeat(np.arange(n_families), n_children), np.arange(n_snps) // 20
    X = np.zeros((len(groups), n_snps))
    for parent in range(2):
        strand = rng.integers(0, 2, (len(groups), block[-1] + 1))[:, block]
        X += np.where(strand == 0, parents[groups, parent, 0], parents[groups, parent, 1])
    return X, rng.standard_normal(n_families)[groups] + 0.5 * rng.standard_normal(len(groups)), {"groups": groups}


def populations(rng, n_samples=200, n_snps=300):
    """Genotypes of two populations, and a trait whose mean differs between them."""
    population = rng.integers(0, 2, n_samples)
    frequency = np.clip(rng.uniform(0.1, 0.5, n_snps) + 0.12 * rng.standard_normal((2, n_snps)), 0.02, 0.98)
    X = rng.binomial(2, frequency[population]).astype(float)
    return X, 1.5 * population + rng.standard_normal(n_samples), {"covariates": population[:, None].astype(float)}


def discovered(X, y, **options):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return coterie.discover(X, y, n_pairs=10, n_permutations=4, max_features_to_select=20, **options)


def kinds(cautions: tuple[Caution, ...]) -> set[str]:
    return {caution.kind for caution in cautions}


@pytest.mark.parametrize(
    ("make", "caution"),
    [
        (repeated_rows, "dependent samples"),
        (donors, "dependent samples"),
        (families, "related samples"),
        (populations, "population structure"),
    ],
)
def test_data_without_effect(make, caution):
    X, y, known = make(np.random.default_rng(0))
    blind, informed = discovered(X, y), discovered(X, y, **known)
    assert blind.held_out.value > informed.held_out.value or make is populations
    assert caution in kinds(blind.cautions)
    assert any(caution.text in text for caution in blind.cautions for text in blind.warnings)
    assert caution not in kinds(informed.cautions)
    assert informed.verdict.score.prediction != PREDICTS
    assert informed.verdict.groups is None or informed.verdict.groups.n_found == 0


def rare(rng, n_samples=3000, share=0.01):
    """Three groups of four features that determine a rare class, among noise."""
    factors = rng.standard_normal((n_samples, 3))
    X = np.hstack([np.repeat(factors, 4, axis=1), np.zeros((n_samples, 38))]) + 0.4 * rng.standard_normal((n_samples, 50))
    risk = factors.sum(axis=1) + 0.6 * rng.standard_normal(n_samples)
    return X, (risk > np.quantile(risk, 1.0 - share)).astype(int)


def test_a_rare_class_is_judged_by_the_area_under_the_curve():
    found = discovered(*rare(np.random.default_rng(0)))
    assert found.held_out.score == "ROC AUC"
    assert found.verdict.score.prediction == PREDICTS
    assert {int(group.support) // 4 for group in found.groups[:3]} == {0, 1, 2}
    assert "no better than" not in found.judgement


def test_few_features_are_not_called_irreproducible():
    rng = np.random.default_rng(0)
    y = rng.integers(0, 3, 200)
    X = np.array([[0, 0, 0], [3, 0, 1], [0, 3, 2], [2, 2, 0], [0, 1, 3], [0, 0, 0], [1, 1, 0]])[:, y].T
    found = discovered(X + rng.standard_normal((200, 7)), y)
    assert found.verdict.score.prediction == PREDICTS
    assert "None of the" not in found.judgement


def test_labels_without_signal_are_not_claimed():
    """At a false discovery rate of 10 %, about one set in ten has a claim."""
    claims = 0
    for seed in range(8):
        rng = np.random.default_rng(seed)
        found = discovered(rng.standard_normal((80, 60)), rng.permutation(np.arange(80) % 2), random_state=seed)
        claims += found.verdict.groups is not None and found.verdict.groups.n_found > 0
        assert found.verdict.score.prediction in (DOES_NOT_PREDICT, "may predict")
    assert claims <= 2


def test_probabilities_of_a_rare_class_have_its_share():
    X, y = rare(np.random.default_rng(1), 1500, 0.09)
    model = GroupDiscoveryClassifierCV(10, random_state=0).fit(X[:500], y[:500])
    probability = model.predict_proba(X[500:])[:, 1]
    assert probability.mean() == pytest.approx(y[500:].mean(), abs=0.02)
