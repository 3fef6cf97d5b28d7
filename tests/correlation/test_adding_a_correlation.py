"""The code of the page on correlation measures works: dense, sparse, complete, ranked, with folds and weights."""

import re
from pathlib import Path

import numpy as np
import pytest
from scipy import sparse

from coterie import GroupDiscoveryClassifier, GroupDiscoveryClassifierCV, GroupDiscoveryOneClass, GroupDiscoveryRegressor, save
from coterie.correlation import FunctionCorrelation, PearsonCorrelation, measures
from coterie.data import FeatureView, as_source
from tests import naive
from tests.conftest import grouped_matrix, sparse_counts

PAGE = Path(__file__).resolve().parents[2] / "docs" / "development" / "adding-a-correlation.md"


@pytest.fixture(scope="module")
def page():
    names = {}
    for block in re.findall(r"```python\n(.*?)```", PAGE.read_text(), flags=re.DOTALL):
        exec(compile(block, str(PAGE.name), "exec"), names)
    return names


def cosine(X, weight=None):
    """Return all cosines by naive code, 0 for constant columns."""
    w = np.ones(len(X)) if weight is None else weight
    products = X.T @ (w[:, None] * X)
    length = np.sqrt(np.diag(products))
    result = products / np.outer(length, np.where(length > 0, length, 1)).clip(1e-300)
    constant = naive.norm(X, weight) == 0
    result[constant] = 0
    result[:, constant] = 0
    return result


def check_groups(model, matrix, threshold):
    """Check that support features are uncorrelated and other features belong to the closest support feature."""
    supports = model.support_features_
    assert (np.abs(matrix[np.ix_(supports, supports)][~np.eye(len(supports), dtype=bool)]) < threshold).all()
    owner = {}
    for group in model.groups_:
        np.testing.assert_allclose(group.correlation, matrix[group.support, group.affiliated], atol=1e-9)
        owner |= dict.fromkeys(group.affiliated.tolist(), group.support)
    if model.affiliates == "complete":
        close = np.abs(matrix[:, supports]).max(axis=1) >= threshold - 1e-10
        assert set(owner) == set(np.flatnonzero(close).tolist()) - set(supports.tolist())
        for j, support in owner.items():
            assert abs(matrix[j, support]) == pytest.approx(np.abs(matrix[j, supports]).max(), abs=1e-9)
    assert owner


@pytest.mark.parametrize("affiliates", ["complete", "ranked"])
@pytest.mark.parametrize("layout", ["dense", "sparse"])
@pytest.mark.parametrize("name", ["biweight", "Cosine"])
def test_groups_by_the_measures_of_the_page(page, rng, name, layout, affiliates):
    X, y = grouped_matrix(rng, 60, 40) if layout == "dense" else sparse_counts(rng)
    X[:, 7] = 1.0
    varying = np.flatnonzero(naive.norm(X) > 0)
    matrix = np.zeros((X.shape[1], X.shape[1]))
    matrix[np.ix_(varying, varying)] = page["biweight"](X[:, varying], X[:, varying])
    matrix = matrix if name == "biweight" else cosine(X)
    form = X if layout == "dense" else sparse.csc_array(X)
    size = 6 if layout == "dense" else 40
    model = GroupDiscoveryClassifier(size, correlation=page[name], threshold=0.6, affiliates=affiliates)
    check_groups(model.fit(form, y), matrix, 0.6)
    assert page["model"].get_params()["correlation"] is page["Cosine"]
    assert model.n_correlations_evaluated_ > 0
    first = X[:, model.support_features_]
    order = rng.permutation(X.shape[1])
    again = model.fit(form[:, order], y).support_features_  # Equal columns may replace each other.
    np.testing.assert_array_equal(X[:, order[again]], first)


@pytest.mark.parametrize("name", ["biweight", "Cosine"])
def test_all_estimators_take_them(page, rng, name):
    X, y = grouped_matrix(rng, 60, 30)
    X[1:, 5], X[0, 5] = 0.0, 1.0  # constant in the folds without the first sample
    options = {"correlation": page[name], "threshold": 0.6}
    for model in (
        GroupDiscoveryClassifier(4, cv=3, random_state=0, **options),
        GroupDiscoveryClassifierCV(4, Cs=2, cv=2, predict_with=["support", "groups"], random_state=0, **options),
        GroupDiscoveryRegressor(4, fixed_features=[5], representative="medoid", **options),
        GroupDiscoveryOneClass(4, **options),
    ):
        model.fit(X, y.astype(float))
        assert np.isfinite(np.concatenate([group.correlation for group in model.groups_])).all()


def test_samples_of_weight_zero_do_not_reach_a_function(rng):
    X, y = grouped_matrix(rng, 50, 20)
    weight = (rng.random(50) < 0.6).astype(float)
    seen = set()

    def plain(columns, others):
        seen.add(len(columns))
        return np.corrcoef(columns.T, others.T)[: columns.shape[1], columns.shape[1] :]

    model = GroupDiscoveryClassifier(4, correlation=plain, standardize=True).fit(X, y, sample_weight=weight)
    expected = GroupDiscoveryClassifier(4, standardize=True).fit(X, y, sample_weight=weight)
    assert seen == {int(weight.sum())}
    assert model.support_features_.tolist() == expected.support_features_.tolist()
    assert [g.affiliated.tolist() for g in model.groups_] == [g.affiliated.tolist() for g in expected.groups_]

    def weighted(columns, others, sample_weight=None):
        both = np.cov(np.hstack([columns, others]).T, aweights=sample_weight)
        scale = np.sqrt(np.diag(both))
        return (both / np.outer(scale, scale))[: columns.shape[1], columns.shape[1] :]

    weight = rng.random(50)
    model = GroupDiscoveryClassifier(4, correlation=weighted, standardize=True).fit(X, y, sample_weight=weight)
    expected = GroupDiscoveryClassifier(4, standardize=True).fit(X, y, sample_weight=weight)
    assert [g.affiliated.tolist() for g in model.groups_] == [g.affiliated.tolist() for g in expected.groups_]
    with pytest.raises(ValueError, match="different weights, but correlation=plain has no parameter sample_weight"):
        GroupDiscoveryClassifier(4, correlation=plain).fit(X, y, sample_weight=weight)


@pytest.mark.parametrize("is_sparse", [True, False])
def test_blocks_and_threads_do_not_matter(rng, monkeypatch, is_sparse):
    X, _ = sparse_counts(rng, n_samples=30)
    X[:, 3] = 0.0
    form = sparse.csc_array(X) if is_sparse else X
    varying = np.flatnonzero(naive.norm(X) > 0)
    supports = rng.permutation(varying)[:20]

    def plain(columns, others):
        assert not columns.flags.writeable
        return np.corrcoef(columns.T, others.T)[: columns.shape[1], columns.shape[1] :]

    expected = PearsonCorrelation(FeatureView.of(as_source(form))).strong(supports, 0.4)
    for columns in (1, 7, 512):
        monkeypatch.setattr(measures, "_MAX_COLUMNS", columns)
        measure = FunctionCorrelation(FeatureView.of(as_source(form), n_threads=2), plain)
        found = measure.strong(supports, 0.4)
        assert found.feature.tolist() == expected.feature.tolist()
        assert found.position.tolist() == expected.position.tolist()
        np.testing.assert_allclose(found.correlation, expected.correlation, atol=1e-12)
        assert measure.n_evaluated == 20 * len(varying)
        np.testing.assert_allclose(
            measure.between(varying[:9], supports), naive.correlation(X)[np.ix_(varying[:9], supports)], atol=1e-9
        )


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (lambda a, b: np.full((a.shape[1], b.shape[1]), np.nan), "returned NaN"),
        (lambda a, b: np.full((a.shape[1], b.shape[1]), -1.5), "returned the value -1.5"),
        (lambda a, b: 0.5, r"shape \(\) for"),
        (lambda a, b: np.zeros((b.shape[1] + 1, a.shape[1])), "returned an array of shape"),
        (lambda a, b: None, "not an array of real numbers"),
        (lambda a, b: [[1.0], [1.0, 2.0]], "not an array of real numbers"),
        (lambda a, b: np.clip(np.outer(a[0], 0.1 * b[1]), -1, 1), "in the two orders"),
    ],
)
def test_results_of_a_function_are_checked(rng, wrong, message):
    X, y = grouped_matrix(rng)
    with pytest.raises(ValueError, match=rf"correlation=<lambda> .*{message}"):
        GroupDiscoveryClassifier(4, correlation=wrong).fit(X, y)


def test_results_of_a_class_are_checked(rng, page):
    X, y = grouped_matrix(rng)

    def refused(message, **methods):
        kind = type("Mine", (page["Cosine"],), methods)
        with pytest.raises(ValueError, match=f"correlation=Mine .*{message}"):
            GroupDiscoveryClassifier(4, correlation=kind, threshold=0.9).fit(X, y)

    refused("NaN", within=lambda self, features: np.full((len(features), len(features)), np.nan))
    refused("in the two orders", within=lambda self, features: np.tri(len(features)))
    refused("three arrays", strong=lambda self, *_: (np.arange(2), np.arange(3), np.zeros(2)))
    refused("three arrays", strong=lambda self, *_: (np.zeros(2), np.zeros(2), np.zeros(2)))
    refused("out of range", strong=lambda self, *_: (np.array([len(X)]), np.array([0]), np.ones(1)))
    refused("the value 3", strong=lambda self, *_: (np.array([1]), np.array([0]), np.array([3.0])))
    with pytest.raises(ValueError, match="correlation=int is a class without the method 'between'"):
        GroupDiscoveryClassifier(4, correlation=int).fit(X, y)


def test_a_user_defined_measure_is_not_saved(page, tmp_path):
    for name, what in (("biweight", "a function"), ("Cosine", "")):
        with pytest.raises(TypeError, match=rf"correlation is {what}"):
            save(GroupDiscoveryClassifier(correlation=page[name]), tmp_path / "model.coterie")
