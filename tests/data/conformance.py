"""What every feature source must do. A source's test class inherits this one and makes sources.

Later sources (a store, PLINK files, Dask) plug in here with a ``make`` of their own.
"""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse

from coterie.data import FeatureSource, StrongQuery
from tests import naive


def example(rng, n_samples=41, n_features=67):
    """Counts with correlated, constant and empty columns; small integers, so that any type holds them."""
    X = rng.poisson(1.0, (n_samples, n_features)) * (rng.random((n_samples, n_features)) < 0.3)
    X[:, 20:30] = X[:, :10] * (rng.random((n_samples, 10)) < 0.95)
    X[:, 5], X[:, 6] = 0, 3
    return X


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

    def test_pickle_is_not_needed_but_threads_are(self, source, X):
        """Sources are shared between threads."""
        from concurrent.futures import ThreadPoolExecutor

        V = np.random.default_rng(5).standard_normal((len(X), 2))
        expected = source.products(V)
        with ThreadPoolExecutor(4) as pool:
            for result in pool.map(lambda _: source.products(V, n_threads=2), range(8)):
                np.testing.assert_array_equal(result, expected)
