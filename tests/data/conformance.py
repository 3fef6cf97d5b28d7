"""Conformance tests of feature sources. The test class of a source inherits from this class."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse

from coterie.data import FeatureSource, FeatureView, StrongQuery, annotated
from coterie.data.top import CandidateMask, TopQuery
from tests import naive


def example(rng, n_samples=41, n_features=67):
    """Return counts with correlated, constant and empty columns, as small integers that fit into any type."""
    X = rng.poisson(1.0, (n_samples, n_features)) * (rng.random((n_samples, n_features)) < 0.3)
    X[:, 20:30] = X[:, :10] * (rng.random((n_samples, 10)) < 0.95)
    X[:, 5], X[:, 6] = 0, 3
    return X


def residuals(X):
    V = np.random.default_rng(6).standard_normal((len(X), 3))
    return V - V.mean(axis=0)


def slow_scores(X, residual, standardize, centred):
    scores = np.abs((X - (X.mean(axis=0) if centred else 0)).T @ residual[:, 0])
    return scores / np.where(X.std(axis=0) > 0, X.std(axis=0), 1.0) if standardize else scores


def weighted_sums(view, weight):
    return view.source.first_feature, view.source.products(weight[:, None])[:, 0]


def last_of(view, function, *arguments):
    return function(view, *arguments)[-1]


def doubled_with(view, values, mean):
    return 2.0 * values, mean


def first_and_sum(source, weight, feature, values):
    return source.shape, float((weight @ naive.dense(source.columns(np.array([feature]))))[0]) + values[feature]


def means(source, moments, factor):
    return factor * moments.mean


def count_values(source):
    return sum(int(np.count_nonzero(naive.dense(block))) for _, block in source.blocks(10))


class SourceConformance:
    """Mix this in and define ``make(X) -> FeatureSource`` for an integer matrix X."""

    def make(self, X: np.ndarray) -> FeatureSource:
        raise NotImplementedError  # each source's test class defines it

    @pytest.fixture
    def X(self):
        return example(np.random.default_rng(1))

    @pytest.fixture
    def source(self, X):
        return self.make(X)

    def test_protocol(self, source, X):
        assert isinstance(source, FeatureSource)
        assert source.shape == X.shape
        assert source.feature_names is None
        assert source.array is None or source.array.shape == X.shape
        assert source.n_workers is None or source.n_workers > 0
        assert dict(source.annotations) == {}

    def test_annotations(self, source, X):
        columns = {"position": np.arange(X.shape[1])}
        found = annotated(annotated(source, columns), {"unit": ["cm"] * X.shape[1]})
        assert list(found.annotations) == ["position", "unit"]
        assert found.annotations["position"][7] == 7
        assert dict(source.annotations) == {}
        np.testing.assert_array_equal(naive.dense(found.columns(np.array([3]))), X[:, [3]])
        with pytest.raises(ValueError, match=r"'unit' has 2 values, but there are 67 features"):
            annotated(source, {"unit": ["cm", "kg"]})

    @pytest.mark.parametrize("n_weights", [1, 40])
    def test_many_moments(self, source, X, n_weights):
        weights = list(np.random.default_rng(9).integers(0, 3, (n_weights, len(X))).astype(float))
        weights[0][:] = X[:, 0] == X[0, 0]  # feature 0 is constant where the weight is
        for weight, moments in zip(weights, source.many_moments(weights, n_threads=2), strict=True):
            np.testing.assert_allclose(np.asarray(moments.mean), naive.mean(X, weight), atol=1e-11)
            np.testing.assert_allclose(np.asarray(moments.norm), naive.norm(X, weight), atol=1e-10)
            assert moments.total_weight == weight.sum()
            assert moments.norm[5] == moments.norm[6] == 0.0
        assert source.many_moments(weights)[0].norm[0] == 0.0

    @pytest.mark.parametrize("n_threads", [1, 2, 3])
    @pytest.mark.parametrize("weighted", [False, True])
    def test_moments(self, source, X, weighted, n_threads):
        weight = np.random.default_rng(2).integers(0, 3, len(X)).astype(float) if weighted else None
        moments = source.moments(weight, n_threads=n_threads)
        np.testing.assert_allclose(moments.mean, naive.mean(X, weight), atol=1e-12)
        np.testing.assert_allclose(moments.norm, naive.norm(X, weight), atol=1e-11)
        assert moments.norm[5] == moments.norm[6] == 0.0
        assert moments.total_weight == (len(X) if weight is None else weight.sum())
        np.testing.assert_allclose(moments.scale, moments.norm / np.sqrt(moments.total_weight))
        if source.is_sparse:
            assert moments.nonnegative

    @pytest.mark.parametrize("n_threads", [1, 2])
    @pytest.mark.parametrize("n_vectors", [1, 2, 6])
    def test_products(self, source, X, n_vectors, n_threads):
        V = np.random.default_rng(3).standard_normal((len(X), n_vectors))
        plain = source.products(V, n_threads=n_threads)
        np.testing.assert_allclose(plain, X.T @ V, atol=1e-11)
        centre = X.mean(axis=0)
        np.testing.assert_allclose(source.products(V, centre=centre), (X - centre).T @ V, atol=1e-11)
        some = np.array([60, 2, 2, 31])
        np.testing.assert_allclose(source.products(V, features=some), X.T[some] @ V, atol=1e-11)
        out = np.empty((X.shape[1], n_vectors))
        assert source.products(V, out=out) is out
        np.testing.assert_array_equal(out, source.products(V))

    def test_threads_change_no_bit(self, source, X):
        V = np.random.default_rng(4).standard_normal((len(X), 3))
        for n_threads in (2, 5):
            np.testing.assert_array_equal(source.products(V, n_threads=n_threads), source.products(V))

    def test_columns(self, source, X):
        some = np.array([3, 66, 0, 3])
        columns = source.columns(some)
        assert sparse.issparse(columns) == source.is_sparse
        if source.is_sparse:
            assert columns.format == "csc"
        else:
            assert columns.flags.f_contiguous
        np.testing.assert_array_equal(naive.dense(columns), X[:, some])
        assert source.columns(np.empty(0, dtype=np.int64)).shape == (len(X), 0)

    @pytest.mark.parametrize("size", [1, 10, 67, 1000])
    def test_blocks(self, source, X, size):
        seen = 0
        for first, block in source.blocks(size):
            assert first == seen
            assert 0 < block.shape[1] <= size
            np.testing.assert_array_equal(naive.dense(block), X[:, first : first + block.shape[1]])
            seen += block.shape[1]
        assert seen == X.shape[1]

    @pytest.mark.parametrize("n_threads", [1, 2])
    @pytest.mark.parametrize("threshold", [0.3, 0.7, 0.95])
    def test_strong_products(self, source, X, threshold, n_threads):
        moments = source.moments()
        supports = np.array([0, 1, 2, 3, 4, *range(7, 24)])  # more than one batch of 16
        norm, mean = moments.norm[supports], moments.mean[supports]
        centred = X - X.mean(axis=0)
        k = len(supports)
        query = StrongQuery(
            columns=source.columns(supports).astype(float) if source.is_sparse else centred[:, supports] / norm,
            means=mean,
            limits=threshold * norm if source.is_sparse else np.full(k, threshold),
            fewest=np.zeros(k, dtype=np.int64),
            exemplar=None,
            lowest=np.full(k, -np.inf),
            highest=np.full(k, np.inf),
            tail_bound=True,
        )
        pairs = source.strong_products(query, moments, n_threads=n_threads)
        correlation = naive.correlation(X)[:, supports]
        expected = [(f, j) for f in range(X.shape[1]) for j in range(k) if abs(correlation[f, j]) >= threshold]
        assert list(zip(pairs.feature.tolist(), pairs.position.tolist(), strict=True)) == expected
        scale = moments.norm[pairs.feature] * (norm[pairs.position] if source.is_sparse else 1.0)
        np.testing.assert_allclose(pairs.product / scale, [correlation[f, j] for f, j in expected], atol=1e-11)
        assert 0 < pairs.n_evaluated <= k * X.shape[1]

    @pytest.mark.parametrize("centred", [False, True])
    @pytest.mark.parametrize("standardize", [False, True])
    def test_top(self, source, X, standardize, centred):
        """The best of the free features, by slow obvious code."""
        view = FeatureView.of(source, standardize=standardize, centred=centred)
        residual = residuals(X)[:, :1]
        candidates = CandidateMask(view.moments, np.array([3, 20, 64]))
        scores = slow_scores(X, residual, standardize, centred)
        expected = sorted((j for j in np.flatnonzero(X.std(axis=0)) if j not in (3, 20, 64)), key=lambda j: -scores[j])
        top = source.top(TopQuery(view, residual, candidates, 4))
        below, seen = np.inf, []
        for size in (4, 8, 16, 100):
            low = top.kth(below, size)
            wanted = expected[len(seen) : len(seen) + size]
            assert low <= scores[wanted[0]] + 1e-9
            features, values = top.between(low, below)
            assert len(features)
            np.testing.assert_allclose(values, scores[features], atol=1e-10)
            seen += features.tolist()
            below = low
        while (low := top.kth(below, 100)) >= 0.0:
            seen += top.between(low, below)[0].tolist()
            below = low
        assert sorted(seen) == sorted(expected)
        assert top.best == pytest.approx(scores[expected[0]])
        excluded, values = top.excluded()
        assert set(excluded.tolist()) == {3, 20, 64}
        np.testing.assert_allclose(values, scores[excluded], atol=1e-10)

    def test_shared_top(self, source, X):
        weight = np.random.default_rng(8).integers(0, 3, len(X)).astype(float)
        views = [FeatureView.of(source), FeatureView.of(source, weight), FeatureView.of(source, standardize=True)]
        V = residuals(X)
        queries = [
            TopQuery(view, V[:, k : k + 1], CandidateMask(view.moments, np.array([k])), 5) for k, view in enumerate(views)
        ]
        shared = source.shared_top(views)
        for query, top in zip(queries, shared.best(queries), strict=True):
            alone = query.view.source.top(query)
            below = np.inf
            for size in (5, 20, 200):
                low = top.kth(below, size)
                assert low == alone.kth(below, size)
                for mine, theirs in zip(top.between(low, below), alone.between(low, below), strict=True):
                    np.testing.assert_array_equal(np.sort(mine), np.sort(theirs))
                below = low
        assert shared.n_passes > 0

    def test_map_blocks(self, source, X):
        view = FeatureView.of(source)
        weight = np.arange(len(X), dtype=float)
        parts = view.map_blocks(weighted_sums, weight)
        assert [first for first, _ in parts] == sorted(first for first, _ in parts)
        np.testing.assert_allclose(np.concatenate([values for _, values in parts]), X.T @ weight)
        kept = view.map_features(last_of, weighted_sums, weight)
        np.testing.assert_allclose(kept[np.array([66, 0, 31])], (X.T @ weight)[[66, 0, 31]])
        doubled, mean = view.map_features(doubled_with, kept, view.moments.mean)
        np.testing.assert_allclose(np.asarray(doubled), 2.0 * X.T @ weight)
        np.testing.assert_allclose(mean[np.array([5, 7])], X.mean(axis=0)[[5, 7]])
        assert sum(source.map_blocks(count_values, None)) == np.count_nonzero(X)

    #: Whether tasks can have all features; those of a Dask array are apart.
    has_tasks = True

    @pytest.mark.parametrize("n_threads", [1, 3])
    def test_tasks(self, source, X, n_threads):
        if not self.has_tasks:
            with pytest.raises(ValueError, match="Write the array to a store"):
                source.map_tasks(first_and_sum, [(1, 2, 3)], what="sums")
            return
        weight = np.arange(len(X), dtype=float)
        doubled = source.prepare(means, source.moments(), 2.0, large=True)
        told = {}
        found = source.map_tasks(
            first_and_sum,
            [(weight, feature, doubled) for feature in (66, 0, 31)],
            what="sums",
            n_threads=n_threads,
            on_answer=told.__setitem__,
        )
        assert [shape for shape, _ in found] == [X.shape] * 3
        np.testing.assert_allclose([value for _, value in found], [X[:, j] @ weight + 2 * X[:, j].mean() for j in (66, 0, 31)])
        assert [told[place] for place in range(3)] == found
        assert source.map_tasks(first_and_sum, [], what="nothing") == []
        assert source.concurrency(n_threads) >= 1

    def test_spread_and_prefetch(self, source, X):
        votes = source.spread(np.array([2, 40]), np.array([3, 1], dtype=np.int32))
        assert votes[np.array([2, 3, 40])].tolist() == [3, 0, 1]
        assert np.asarray(votes).sum() == 4
        source.prefetch(np.array([4, 50, 4]))
        np.testing.assert_array_equal(naive.dense(source.columns(np.array([50, 4]))), X[:, [50, 4]])

    def test_pickle_is_not_needed_but_threads_are(self, source, X):
        """Sources are shared between threads."""
        from concurrent.futures import ThreadPoolExecutor

        V = np.random.default_rng(5).standard_normal((len(X), 2))
        expected = source.products(V)
        with ThreadPoolExecutor(4) as pool:
            for result in pool.map(lambda _: source.products(V, n_threads=2), range(8)):
                np.testing.assert_array_equal(result, expected)
