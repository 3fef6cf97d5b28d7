"""Options of named scores, redundancies and methods."""

import numpy as np
import pytest
from sklearn.linear_model import ElasticNet

from coterie.data import FeatureView, as_source
from coterie.datasets import make_block_gaussian
from coterie.filters import laplacian_score, lgd_score, mcfs_score
from coterie.redundancy.measures import mutual_information, sparse_representation
from tests.redundancy import by_weights


@pytest.fixture(scope="module")
def blocks():
    return make_block_gaussian(120, 5, 6, random_state=2)


@pytest.mark.parametrize(
    ("name", "options", "scores"),
    [
        ("lgd", {"n_neighbors": 8, "neighborhood": "samples"}, lgd_score),
        ("mcfs", {"n_clusters": 2, "n_jobs": 1}, mcfs_score),
        ("laplacian", {"graph": "full", "sigma": 4.0}, laplacian_score),
    ],
)
def test_parameters_of_a_named_score(name, options, scores, blocks):
    model = by_weights(name, 4, score_parameters=options).fit(blocks.X)
    np.testing.assert_allclose(model.scores_, np.maximum(scores(blocks.X, **options), 0.0))
    assert not np.allclose(model.scores_, np.maximum(scores(blocks.X), 0.0))


def test_bins_of_mutual_information(blocks):
    view = FeatureView.of(as_source(blocks.X))
    few, many = (mutual_information(view, np.arange(8), n_bins=n) for n in (4, 10))
    assert not np.allclose(few, many)
    np.testing.assert_array_equal(mutual_information(view, np.arange(8)), many)
    options = {"redundancy": "mutual_info", "options": {"n_bins": 4}, "n_candidates": None}
    model = by_weights("fisher", 4, **options).fit(blocks.X[:, :8], blocks.y)
    given = by_weights("fisher", 4, redundancy=few, n_candidates=None).fit(blocks.X[:, :8], blocks.y)
    np.testing.assert_allclose(model.refined_scores_, given.refined_scores_, atol=1e-6)


def test_sparse_representation_by_its_definition(blocks):
    X = blocks.X[:, :9]
    A = sparse_representation(FeatureView.of(as_source(X)), np.arange(9), alpha=0.2, l1_ratio=0.8)
    unit = (X - X.mean(axis=0)) / X.std(axis=0)
    C = np.zeros((9, 9))
    for i in range(9):
        others = np.delete(np.arange(9), i)
        model = ElasticNet(alpha=0.2, l1_ratio=0.8, fit_intercept=False, tol=1e-10, max_iter=100_000)
        C[i, others] = np.abs(model.fit(unit[:, others], unit[:, i]).coef_)
    expected = 0.5 * (C + C.T)
    np.testing.assert_allclose(A - np.diag(np.diag(A)), expected, atol=1e-3)
    assert np.linalg.eigvalsh(A)[0] >= 0


def test_sparse_representation_of_copies(rng):
    """Each copy is represented by the others in equal parts, in any order."""
    f = rng.standard_normal((40, 1))
    X = np.hstack([f, rng.standard_normal((40, 2)), f, -2 * f])
    A = sparse_representation(FeatureView.of(as_source(X)), np.arange(5))
    assert A[0, 3] == pytest.approx(A[0, 4], rel=1e-3)
    assert A[0, 3] == pytest.approx(A[3, 4], rel=1e-3)
    assert A[0, 3] > 0.3
    model = by_weights([1.0, 0.5, 0.5, 0.9, 0.8], 3, redundancy="sparse_representation").fit(X)
    assert sorted(model._kept()) == [0, 1, 2]
    assert model.duality_gap_ <= 1e-5


@pytest.mark.parametrize("seed", range(3))
def test_the_diagonal_is_raised_by_just_what_is_missing(seed):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((30, 2)) @ rng.standard_normal((2, 5)) + 0.1 * rng.standard_normal((30, 5))
    A = sparse_representation(FeatureView.of(as_source(X)), np.arange(5), alpha=0.01, l1_ratio=0.5)
    assert np.ptp(np.diag(A)) == 0.0
    assert A[0, 0] > 1.0
    assert 0.0 <= np.linalg.eigvalsh(A)[0] <= 1e-6


def test_a_single_candidate_needs_no_representation(rng):
    A = sparse_representation(FeatureView.of(as_source(rng.standard_normal((10, 1)))), np.arange(1))
    np.testing.assert_array_equal(A, [[1.0]])


@pytest.mark.parametrize(
    "options", [{"penalty_growth": 1.2}, {"penalty_start": 1.0}, {"penalty_growth": 1.5, "penalty_start": 0.1}]
)
def test_alm_agrees_for_any_penalty(options, blocks):
    ours = by_weights("fisher", 4, n_candidates=None).fit(blocks.X, blocks.y)
    theirs = by_weights(
        "fisher", 4, n_candidates=None, options={"method": "alm", "tol": 1e-3, "max_iter": 500, **options}
    ).fit(blocks.X, blocks.y)
    assert theirs.objective_ == pytest.approx(ours.objective_, rel=2e-3)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (
            {"score_parameters": {"k": 3}},
            "score_parameters has the key 'k', which is not a parameter of fisher_score. Its parameters are n_jobs",
        ),
        ({"score_func": "lgd", "score_parameters": {"n_neighbors": 0}}, "n_neighbors=0"),
        ({"score_parameters": 3}, "score_parameters=3 must be a dictionary"),
        ({"score_func": np.ones(30), "score_parameters": {"n_jobs": 1}}, "only apply to .* not to a function or an array"),
        ({"options": {"n_bins": 3}}, "The option n_bins only applies to redundancy='mutual_info'"),
        ({"redundancy": "mutual_info", "options": {"n_bins": 1}}, "n_bins=1"),
        ({"redundancy": "sparse_representation", "options": {"alpha": 2}}, "alpha=2"),
        ({"redundancy": "sparse_representation", "options": {"l1_ratio": 1}}, "l1_ratio=1"),
        ({"options": {"penalty_growth": 1.1}}, "The option penalty_growth only applies to method='alm'"),
        ({"options": {"method": "alm", "penalty_growth": 2.5}}, "penalty_growth=2.5"),
        ({"options": {"method": "alm", "penalty_start": 0}}, "penalty_start=0"),
        ({"options": {"power": 0}}, "power=0"),
        ({"options": {"power": "auto"}}, "power='auto'"),
        ({"options": {"tolerance": 1}}, "options has the key 'tolerance', which is not an option. The options are power"),
        ({"options": {"tol": 0}}, "tol=0"),
        ({"options": {"max_iter": 0}}, "max_iter=0"),
        ({"fdr": 0}, "fdr=0 must be"),
        ({"fdr": 1.0}, "fdr=1.0 must be"),
    ],
)
def test_wrong_options(options, message, blocks):
    with pytest.raises(ValueError, match=message):
        by_weights(**{"n_features_to_select": 3, **options}).fit(blocks.X, blocks.y)
