"""Polygenic offsets: equal to refits without each sample, and independent of threads."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import optimize, sparse

import coterie
from coterie import GroupDiscoveryRegressor, polygenic_offset
from coterie.data import Dataset, as_source
from coterie.polygenic import left_out_predictions


def families(n_families=12, n_children=5, n_chromosomes=4, n_snps=15, seed=0):
    """Return genotypes of siblings, their families, the chromosomes of the SNPs, and a trait with a family effect."""
    rng = np.random.default_rng(seed)
    family = np.repeat(np.arange(n_families), n_children)
    n_features = n_chromosomes * n_snps
    parents = rng.integers(0, 2, (n_families, 4, n_features))
    own = np.arange(n_features)
    X = sum(
        parents[family][:, 2 * side : 2 * side + 2][
            np.arange(len(family))[:, None], rng.integers(0, 2, (len(family), n_features)), own
        ]
        for side in (0, 1)
    )
    y = rng.standard_normal(n_families)[family] + 0.5 * rng.standard_normal(len(family))
    return X.astype(np.int8), family, np.repeat([str(1 + k) for k in range(n_chromosomes)], n_snps), y


def relationship(X):
    scale = X.std(axis=0)
    Z = (X - X.mean(axis=0))[:, scale > 0] / scale[scale > 0]
    return Z @ Z.T / Z.shape[1]


def naive_prediction(K, y, A, h, i):
    """Return the genetic part of the prediction of sample i by a fit to all others."""
    rest = np.delete(np.arange(len(y)), i)
    V = h * K[np.ix_(rest, rest)] + (1 - h) * np.eye(len(rest))
    inverse = np.linalg.inv(V)
    coef = np.linalg.solve(A[rest].T @ inverse @ A[rest], A[rest].T @ inverse @ y[rest])
    return h * K[i, rest] @ inverse @ (y[rest] - A[rest] @ coef)


def naive_deviance(h, K, y, A):
    V = h * K + (1 - h) * np.eye(len(y))
    inverse = np.linalg.inv(V)
    gram = A.T @ inverse @ A
    rest = y - A @ np.linalg.solve(gram, A.T @ inverse @ y)
    freedom = len(y) - A.shape[1]
    return freedom * np.log(rest @ inverse @ rest) + np.linalg.slogdet(V)[1] + np.linalg.slogdet(gram)[1]


@pytest.mark.parametrize("adjusted", [False, True])
def test_predictions_are_those_of_refits_without_each_sample(adjusted):
    X, _, chromosomes, y = families()
    age = np.random.default_rng(1).uniform(20, 70, len(y))
    y = y + 0.1 * age * adjusted
    found = polygenic_offset(X, y, chromosomes=chromosomes, covariates=age if adjusted else None)
    A = np.column_stack([np.ones(len(y)), *([age] if adjusted else [])])
    K = relationship(X)
    best = optimize.minimize_scalar(naive_deviance, bounds=(0, 0.99), args=(K, y, A), method="bounded")
    assert found.heritability == pytest.approx(best.x, abs=2e-3)
    for name, relation, offset in [
        ("", K, found.whole),
        *((name, relationship(X[:, chromosomes != name]), found.of(name)) for name in ("1", "4")),
    ]:
        expected = [naive_prediction(relation, y, A, found.heritability, i) for i in range(len(y))]
        np.testing.assert_allclose(offset, expected, rtol=1e-8, atol=1e-10, err_msg=name)


def test_own_value_does_not_enter():
    X, _, _, y = families()
    A = np.ones((len(y), 1))
    changed = y.copy()
    changed[3] += 100.0
    before, after = (left_out_predictions(relationship(X), trait, A, 0.5) for trait in (y, changed))
    assert after[3] == pytest.approx(before[3], abs=1e-9)
    assert abs(after[4] - before[4]) > 1.0  # a sibling


def test_threads_and_formats_do_not_matter():
    X, _, chromosomes, y = families(n_families=70)  # more samples than a tile has rows
    found = polygenic_offset(X, y, chromosomes=chromosomes, n_jobs=1)
    for other in (
        polygenic_offset(X, y, chromosomes=chromosomes, n_jobs=2),
        polygenic_offset(sparse.csc_array(X), y, chromosomes=chromosomes),
        polygenic_offset(Dataset(as_source(X), y, feature_info={"chromosome": chromosomes.astype(object)})),
    ):
        np.testing.assert_array_equal(other.whole, found.whole)
        np.testing.assert_array_equal(other.by_chromosome, found.by_chromosome)
        assert other.chromosomes == ("1", "2", "3", "4")


def test_unrelated_samples_without_effects_have_no_offset():
    rng = np.random.default_rng(2)
    X, y = rng.integers(0, 3, (100, 2000)), rng.standard_normal(100)
    found = polygenic_offset(X, y)
    assert found.by_chromosome.shape == (100, 0)
    assert np.std(found.whole) < 0.3 * np.std(y)


def test_families_are_accounted_for():
    X, family, _, y = families(n_families=30, n_snps=60)
    rest = y - polygenic_offset(X, y).whole

    def between(values):
        means = np.array([values[family == k].mean() for k in range(30)])
        return means.var() / values.var()

    assert between(y) > 0.6
    assert between(rest) < 0.3


def test_two_classes_count_as_0_and_1():
    X, _, _, y = families()
    labels = np.where(y > np.median(y), "case", "control")
    found = polygenic_offset(X, labels).whole
    np.testing.assert_allclose(found, polygenic_offset(X, (labels == "control").astype(float)).whole)


def test_part_of_the_chromosomes():
    X, _, chromosomes, y = families()
    found = polygenic_offset(X, y, chromosomes=chromosomes, leave_out=["3"])
    assert found.chromosomes == ("3",)
    np.testing.assert_array_equal(found.of(3), polygenic_offset(X, y, chromosomes=chromosomes).of("3"))
    with pytest.raises(ValueError, match=r"chromosome='1' has no offset\. Those with an offset are: 3"):
        found.of(1)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"y": None}, "requires y"),
        ({"y": np.ones(60)}, "y is constant"),
        ({"y": np.array(list("abc") * 20)}, "y has 3 classes, but a polygenic offset requires two classes or numbers"),
        ({"y": np.append(np.arange(59.0), np.nan)}, "NaN or infinity"),
        ({"chromosomes": ["1"]}, "chromosomes has 1 entries, but X has 60 features"),
        ({"leave_out": ["9"]}, "chromosome '9' must be that of some features, but not of all"),
        ({"chromosomes": ["1"] * 60, "leave_out": ["1"]}, "but not of all"),
        ({"X": np.where(np.arange(60) == 5, np.nan, 1.0)[None].repeat(60, axis=0)}, "Feature 5 has missing"),
    ],
)
def test_mistakes(options, message):
    X, _, chromosomes, y = families()
    given = {"X": X, "y": y, "chromosomes": chromosomes, **options}
    with pytest.raises(ValueError, match=message):
        polygenic_offset(**given)


def test_a_locus_is_found_beside_the_offset_of_the_other_chromosomes():
    X, _, chromosomes, y = families(n_families=60, n_snps=30)
    y = y + 0.5 * X[:, 40]  # on chromosome 2
    own = np.flatnonzero(chromosomes == "2")
    offset = polygenic_offset(X, y, chromosomes=chromosomes).of("2")
    model = GroupDiscoveryRegressor(1).fit(X[:, own], y, offset=offset)
    assert own[model.support_features_].tolist() == [40]
    assert isinstance(coterie.polygenic_offset(X, y), coterie.PolygenicOffset)
