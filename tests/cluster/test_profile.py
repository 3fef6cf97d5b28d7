"""Pairs of features counted by the workers of a cluster."""

import numpy as np
import pytest
from scipy import sparse

from coterie import correlation_profile
from coterie.cluster import DistributedSource, FeatureValues
from coterie.data import open_store, write_store
from tests.conftest import sparse_counts


@pytest.mark.parametrize("name", ["words", "dense", "genotypes"])
@pytest.mark.parametrize("options", [{}, {"n_pairs": 70_000, "random_state": 1}], ids=["all", "drawn"])
def test_the_same_counts_as_in_one_process(name, options, stores, client, monkeypatch):
    here = correlation_profile(open_store(stores[name]), **options)

    def refuse(self, *args, **options):
        raise AssertionError("all of it was fetched")

    monkeypatch.setattr(FeatureValues, "__array__", refuse)
    monkeypatch.setattr(DistributedSource, "columns", refuse)
    monkeypatch.setattr(DistributedSource, "block", refuse)
    there = correlation_profile(stores[name], client=client, **options)
    assert there.to_dict() == here.to_dict()


def test_constant_and_equal_columns(rng, client, tmp_path):
    X, _ = sparse_counts(rng)
    X[:, 3], X[:, 4] = 0, X[:, 5]
    path = write_store(tmp_path / "x.store", sparse.csc_array(X))
    assert correlation_profile(path, client=client).to_dict() == correlation_profile(X).to_dict()
    flat = write_store(tmp_path / "flat.store", np.ones((5, 6)))
    with pytest.raises(ValueError, match="at least 2 features that are not constant, but X has 0"):
        correlation_profile(flat, client=client)
