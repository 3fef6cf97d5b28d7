"""Graph of correlated pairs, compared with the whole matrix, for several block sizes."""

import numpy as np
import pytest
from scipy import sparse

from coterie.baselines import graph
from coterie.correlation.pearson import PearsonCorrelation
from coterie.data import FeatureView, as_source
from tests.conftest import grouped_matrix, sparse_counts


@pytest.mark.parametrize("block", [7, 512])
@pytest.mark.parametrize("kind", [np.asfortranarray, np.ascontiguousarray, sparse.csc_array])
def test_pairs_are_those_of_the_whole_matrix(rng, monkeypatch, block, kind):
    monkeypatch.setattr(graph, "_BATCH", block)
    X = grouped_matrix(rng, n_features=45)[0] if kind is not sparse.csc_array else sparse_counts(rng, density=0.3)[0]
    X[:, 3] = 1.0  # constant: no pairs
    with np.errstate(invalid="ignore"):
        rho = np.corrcoef(X.T)
    expected = np.argwhere(np.triu(np.abs(rho) >= 0.6, 1))
    source = as_source(kind(X))
    for n_threads in (1, 2):
        measure = PearsonCorrelation(FeatureView.of(source, n_threads=n_threads))
        pairs = graph.correlated_pairs(measure, 0.6)
        np.testing.assert_array_equal(np.column_stack(pairs[:2]), expected)
        np.testing.assert_allclose(pairs.correlation, rho[tuple(expected.T)], atol=1e-10)
    assert len(expected) > 10


def test_no_pairs():
    view = FeatureView.of(as_source(np.ones((4, 3))))
    assert len(graph.correlated_pairs(PearsonCorrelation(view), 0.5).first) == 0
