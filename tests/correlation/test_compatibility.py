"""Groups of correlated and compatible features equal brute force; the shipped distances; errors; saved models."""

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone

import coterie
from coterie import (
    ChromosomeDistance,
    GroupDiscoveryClassifier,
    GroupDiscoveryClassifierCV,
    GroupDiscoveryOneClass,
    PixelDistance,
    group_confidence,
)
from coterie.correlation import CompatibleCorrelation, PearsonCorrelation
from coterie.data import FeatureView, as_source
from tests import naive
from tests.conftest import grouped_matrix, sparse_counts


def distances(n_features, rng):
    """Return a compatibility over some features, and its matrix by brute force."""
    chromosome, position = rng.integers(1, 3, n_features), rng.integers(0, 100, n_features)
    matrix = np.array(
        [[a == b and abs(p - q) <= 30 for b, q in zip(chromosome, position, strict=True)]
         for a, p in zip(chromosome, position, strict=True)]
    )  # fmt: skip
    return ChromosomeDistance(chromosome.astype(str), position, 30), matrix


def in_order(compatibility, order):
    return ChromosomeDistance(
        np.asarray(compatibility.chromosome)[order], np.asarray(compatibility.position)[order], compatibility.max_distance
    )


def members_by_brute_force(C, supports, threshold):
    """Return the closest support feature of every feature that reaches the threshold, except support features."""
    owner = {}
    for j in sorted(set(range(len(C))) - set(supports)):
        best = max(abs(C[j, z]) for z in supports)
        if best >= threshold - 1e-10:
            owner[j] = next(z for z in supports if abs(C[j, z]) >= best - 1e-10)
    return owner


@pytest.mark.parametrize("affiliates", ["complete", "ranked"])
@pytest.mark.parametrize("layout", ["dense", "sparse"])
@pytest.mark.parametrize("options", [{}, {"n_features_per_round": 4}, {"cv": 3}, {"representative": "medoid"}])
def test_groups_equal_brute_force(rng, layout, affiliates, options):
    X, y = grouped_matrix(rng, 60, 40) if layout == "dense" else sparse_counts(rng)
    X[:, 7] = 1.0
    compatibility, allowed = distances(X.shape[1], rng)
    C = np.where(allowed, naive.correlation(X), 0.0)
    form = X if layout == "dense" else sparse.csc_array(X)
    settings = {"compatibility": compatibility, "threshold": 0.6, "affiliates": affiliates, "random_state": 0, **options}
    model = GroupDiscoveryClassifier(14 if layout == "dense" else 70, **settings).fit(form, y)
    supports = model.support_features_.tolist()
    assert (np.abs(C[np.ix_(supports, supports)])[~np.eye(len(supports), dtype=bool)] < 0.6).all()
    owner = members_by_brute_force(C, supports, 0.6)
    found = {j: group.support for group in model.groups_ for j in group.affiliated.tolist()}
    assert found
    assert found == (owner if affiliates == "complete" else {j: owner[j] for j in found})
    for group in model.groups_:
        np.testing.assert_allclose(group.correlation, naive.correlation(X)[group.support, group.affiliated], atol=1e-9)
        pairs = np.abs(naive.correlation(X))[np.ix_(group.members, group.members)]  # compatible or not
        assert group.purity.minimum == pytest.approx(pairs.min() if len(group) > 1 else 1.0, abs=1e-9)
    if layout == "dense":  # Incompatible features of one factor belong to different groups.
        plain = np.abs(naive.correlation(X)[np.ix_(supports, supports)])
        assert (plain[~np.eye(len(supports), dtype=bool)] >= 0.6).any()
    order = rng.permutation(X.shape[1])
    again = clone(model).set_params(compatibility=in_order(compatibility, order)).fit(form[:, order], y)
    np.testing.assert_array_equal(X[:, order[again.support_features_]], X[:, supports])  # Equal columns may be exchanged.


def test_ranked_groups_are_those_of_the_walk(rng):
    X, y = grouped_matrix(rng, 60, 40)
    compatibility, allowed = distances(40, rng)
    C = np.where(allowed, naive.correlation(X), 0.0)
    model = GroupDiscoveryClassifier(
        5, compatibility=compatibility, threshold=0.6, affiliates="ranked", n_features_per_round=5, standardize=False
    ).fit(X, y)
    first = np.where(y > 0, 0.5 / (y > 0).sum(), -0.5 / (y < 0).sum())
    supports, encountered = naive.walk((X - X.mean(axis=0)).T @ first, C, [], 5, 0.6)
    assert model.support_features_.tolist() == supports
    owner = members_by_brute_force(C, supports, 0.6)
    found = {j: group.support for group in model.groups_ for j in group.affiliated.tolist()}
    assert found == {j: owner[j] for j in encountered}


class Everything:
    """All pairs are compatible."""

    def compatible(self, features, others):
        return np.ones(np.broadcast_shapes(features.shape, others.shape), dtype=bool)


@pytest.mark.parametrize("layout", ["dense", "sparse"])
def test_a_rule_that_allows_everything_changes_nothing(rng, layout):
    X, y = sparse_counts(rng)
    form = X if layout == "dense" else sparse.csc_array(X)
    plain = GroupDiscoveryClassifierCV(8, cv=3, random_state=0).fit(form, y)
    model = GroupDiscoveryClassifierCV(8, cv=3, random_state=0, compatibility=Everything()).fit(form, y)
    assert [group.members.tolist() for group in model.groups_] == [group.members.tolist() for group in plain.groups_]
    np.testing.assert_allclose(model.support_coef_, plain.support_coef_, rtol=1e-9)
    np.testing.assert_allclose(model.cv_results_["mean_test_score"], plain.cv_results_["mean_test_score"])
    assert [group.purity for group in model.groups_] == [group.purity for group in plain.groups_]


def test_confidences_and_one_class(rng):
    X, y = grouped_matrix(rng, 80, 30, noise=0.3)
    compatibility, _ = distances(30, rng)
    model = GroupDiscoveryClassifier(5, compatibility=compatibility, threshold=0.6).fit(X, y)
    result = group_confidence(model, X, y, n_pairs=3, n_permutations=0, random_state=0)
    assert len(result.confidence) == 5
    one = GroupDiscoveryOneClass(5, compatibility=compatibility, threshold=0.6).fit(X)
    for group in one.groups_:
        assert compatibility.compatible(np.array(group.support), group.affiliated).all()


def test_models_keep_the_rule(rng, tmp_path):
    X, y = grouped_matrix(rng, 60, 12)
    for rule in (ChromosomeDistance(["1", "X"] * 6, np.arange(12) * 1000, 2500), PixelDistance((3, 4), 1.5, order="F")):
        model = GroupDiscoveryClassifier(4, compatibility=rule).fit(X, y)
        coterie.save(model, tmp_path / "m.coterie")
        loaded = coterie.load(tmp_path / "m.coterie")
        assert repr(loaded.compatibility) == repr(rule)
        pairs = np.arange(12)[:, None], np.arange(12)
        np.testing.assert_array_equal(loaded.compatibility.compatible(*pairs), rule.compatible(*pairs))
        refitted = clone(loaded).fit(X, y)
        np.testing.assert_array_equal(refitted.support_coef_, model.support_coef_)
    with pytest.raises(TypeError, match="compatibility"):
        coterie.save(clone(model).set_params(compatibility=Everything()).fit(X, y), tmp_path / "m.coterie")


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("shape", [(4, 5), (3, 2, 4)])
@pytest.mark.parametrize("distance", [0, 1, 1.5, 2.2])
def test_distances_of_pixels(shape, order, distance):
    size = int(np.prod(shape))
    places = np.array([np.unravel_index(j, shape, order=order) for j in range(size)], dtype=float)
    expected = np.linalg.norm(places[:, None] - places[None], axis=2) <= distance
    rule = PixelDistance(shape, distance, order=order)
    np.testing.assert_array_equal(rule.compatible(np.arange(size)[:, None], np.arange(size)[None]), expected)


def test_incompatible_pairs_are_not_evaluated(rng):
    X = rng.standard_normal((20, 10))
    measure = PearsonCorrelation(FeatureView.of(as_source(X)))
    correlation = CompatibleCorrelation(measure, ChromosomeDistance([1] * 5 + [2] * 5, np.zeros(10), 0))
    assert not correlation.between(np.arange(5), np.arange(5, 10)).any()
    assert measure.n_evaluated == 0
    correlation.between(np.array([1, 6, 7]), np.array([2, 3]))
    assert measure.n_evaluated == 2


class Answer:
    """A rule with a given result."""

    n_features = 40

    def __init__(self, function):
        self.compatible = function


@pytest.mark.parametrize(
    ("rule", "message"),
    [
        (5, "compatibility=5 must be None or an object with a method compatible"),
        (ChromosomeDistance, "must be None or an object with a method compatible"),
        (PixelDistance((2, 2), 1), "has 4 features, but X has 40"),
        (Answer(lambda a, b: True), r"returned an array of type bool and shape \(\)"),
        (Answer(lambda a, b: (a - b) * 1.0), "returned an array of type float64"),
        (Answer(lambda a, b: a <= b), "must be symmetric"),
        (Answer(lambda a, b: a != b), "every feature compatible with itself"),
    ],
)
def test_wrong_rules(rng, rule, message):
    X, y = grouped_matrix(rng, 60, 40)
    with pytest.raises(ValueError, match=message):
        GroupDiscoveryClassifier(12, n_features_per_round=12, compatibility=rule).fit(X, y)


def test_a_rule_requires_a_correlation(rng):
    X, y = grouped_matrix(rng, 60, 12)
    with pytest.raises(ValueError, match="compatibility has no effect with correlation=None"):
        GroupDiscoveryClassifier(3, compatibility=PixelDistance((3, 4), 1), correlation=None).fit(X, y)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: ChromosomeDistance(["1"], [1, 2], 5), r"one entry per feature, got arrays of shape \(1,\) and \(2,\)"),
        (lambda: ChromosomeDistance(["1", "1"], [1, np.nan], 5), "position must be an array of finite numbers"),
        (lambda: ChromosomeDistance(["1"], ["a"], 5), "position must be an array of finite numbers"),
        (lambda: ChromosomeDistance(["1"], [1], -1), "max_distance=-1 must be a finite number of at least 0"),
        (lambda: PixelDistance((3,), np.inf), "max_distance=inf must be a finite number"),
        (lambda: PixelDistance((3, 0), 1), r"shape=\(3, 0\) must be positive whole numbers"),
        (lambda: PixelDistance("33", 1), "shape='33' must be positive whole numbers"),
        (lambda: PixelDistance((3, 3), 1, order="A"), "order='A' must be 'C' or 'F'"),
    ],
)
def test_wrong_distances(make, message):
    with pytest.raises(ValueError, match=message):
        make()
