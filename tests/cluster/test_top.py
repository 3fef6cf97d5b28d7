"""Best features of parts, merged: the same order statistics as in one process, from the same layers."""

import numpy as np
import pytest
from scipy import sparse

from coterie.cluster import DistributedSource, values
from coterie.data import FeatureView, as_source, write_store
from coterie.data.top import CandidateMask, LayeredTop, TopQuery


def levels(rng):
    """Features of norms 1, 1/2, 1/4, ... times the largest, many of them equal."""
    X = rng.choice([-1.0, 1.0], (64, 300)) * 0.5 ** rng.integers(0, 6, 300)
    X[:, 100:200] = X[:, :100]  # ties in other parts
    X[:, 7] = 3.0
    return np.asfortranarray(X)  # the storage order of stores


def clicks(rng):
    return sparse.csc_array((rng.random((200, 300)) < 0.5 / np.arange(1, 301)).astype(float))


@pytest.fixture(params=[levels, clicks], ids=["levels", "clicks"])
def views(request, rng, client, tmp_path):
    """View in one process, and on a cluster."""
    X = request.param(rng)
    source = DistributedSource.of_store(write_store(tmp_path / "x.store", X), client, n_parts=3)
    return FeatureView.of(as_source(X)), FeatureView.of(source)


@pytest.mark.parametrize("size", [1, 5, 40])
@pytest.mark.parametrize("first_floor", [np.inf, 0.3, 0.01])
def test_the_same_requests_give_the_same_results(views, size, first_floor, rng):
    here, there = views
    residual = rng.standard_normal((here.n_samples, 1))
    residual -= residual.mean()
    for taken in (np.array([3, 150, 299]), np.array([4, 150])):  # other candidates for the same residual
        queries = [
            TopQuery(view, residual, CandidateMask(view.moments, taken), size, first_floor=first_floor) for view in views
        ]
        one, many = LayeredTop(queries[0]), there.source.top(queries[1])
        below = np.inf
        while True:
            low = one.kth(below, size)
            assert many.kth(below, size) == low
            assert many.n_scored == one.n_scored
            assert many.best == one.best
            if low < 0.0:
                break
            expected, found = one.between(low, below), many.between(low, below)
            order, found_order = np.argsort(expected[0]), np.argsort(found[0])
            np.testing.assert_array_equal(found[0][found_order], expected[0][order])
            np.testing.assert_array_equal(found[1][found_order], expected[1][order])
            assert sorted(zip(*many.excluded(), strict=True)) == sorted(zip(*one.excluded(), strict=True))
            below = low


def test_another_view_with_the_same_residual(views, rng):
    """Scores kept by a worker are not used for other weights or other candidates."""
    here = views[0]
    weight = rng.integers(1, 3, here.n_samples).astype(float)
    residual = rng.standard_normal((here.n_samples, 1)) + 1.0
    for own_weight in (None, weight, None):
        one, many = (
            view.source.top(TopQuery(own, residual, CandidateMask(own.moments), 5))
            for view in views
            for own in [FeatureView.of(view.source, own_weight, centred=own_weight is None)]
        )
        assert many.kth(np.inf, 5) == one.kth(np.inf, 5)
        assert many.n_scored == one.n_scored


def test_many_ties_are_omitted_from_a_first_result(rng, client, tmp_path):
    """Features tied with the last score are sent only if they are requested."""
    X = np.tile(rng.standard_normal((30, 1)), (1, 200))
    X[:, :3] *= -2.0
    view = FeatureView.of(DistributedSource.of_store(write_store(tmp_path / "x.store", X), client, n_parts=2))
    residual = rng.standard_normal((30, 1))
    residual -= residual.mean()
    top = view.source.top(TopQuery(view, residual, CandidateMask(view.moments), 2))
    assert isinstance(top, values.ClusterTop)
    high = top.kth(np.inf, 2)
    assert top.between(high, np.inf)[0].tolist() == [0, 1, 2]
    assert top.known.tolist() == [0, 1, 2]
    low = top.kth(np.inf, 5)
    assert low < high
    top = view.source.top(TopQuery(view, residual, CandidateMask(view.moments), 2))
    assert top.kth(np.inf, 2) == high
    assert len(top.between(low, np.inf)[0]) == 200
    low = top.kth(high, 2)
    assert sorted(top.between(low, high)[0].tolist()) == list(range(3, 200))
