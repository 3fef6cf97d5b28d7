"""Filters and GRM on a cluster: bit-identical to one process, without transferring one value per feature."""

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone

from coterie import DependencyAwareSelector, GlobalRedundancySelector, GroupDiscoveryRegressor, correlation_profile
from coterie.baselines import RCFSSelector
from coterie.cluster import DistributedSource, FeatureValues
from coterie.cluster.values import SparseValues
from coterie.data import as_source, convert, open_store, write_store
from coterie.filters import fisher_score, mcfs_score
from coterie.filters.selector import FilterSelector
from coterie.order import FeatureRanks, Ranked, ranked
from coterie.persistence import load, save
from tests.cluster.conftest import differences
from tests.golden.record import classes

distributed = pytest.importorskip("distributed", reason="dask.distributed is not installed")

SLOW = pytest.mark.slow
SELECTORS = [
    ("words", FilterSelector("fisher", 12)),
    ("dense", FilterSelector("fisher", 12)),
    ("words", FilterSelector("information_gain", 12)),
    ("genotypes", FilterSelector("correlation", 12)),
    ("genotypes", FilterSelector("lgd", 12)),
    pytest.param("dense", FilterSelector("variance", 0.01), marks=SLOW),
    ("words", FilterSelector("relieff", 12, parameters={"n_probes": 140, "random_state": 0})),
    pytest.param("dense", FilterSelector("relieff", 12), marks=SLOW),
    ("genotypes", FilterSelector("laplacian", 12)),
    pytest.param("words", FilterSelector("laplacian", 12, parameters={"graph": "full"}), marks=SLOW),
    ("dense", FilterSelector("lgd", 12, parameters={"neighborhood": "samples"})),
    ("words", GlobalRedundancySelector("fisher", 10, fdr=None, solution="weights")),
    ("words", GlobalRedundancySelector("fisher", 10, fdr=None)),
    pytest.param(
        "dense",
        GlobalRedundancySelector("fisher", 10, solution="weights", redundancy="mutual_info", options={"power": 2.0}),
        marks=SLOW,
    ),
    ("genotypes", GlobalRedundancySelector("correlation", 10, solution="weights", n_candidates=40)),
]


@pytest.mark.parametrize(("name", "selector"), SELECTORS, ids=str)
def test_the_same_bits_as_in_one_process(name, selector, stores, client):
    store = open_store(stores[name])
    here = selector.fit(store.source, store.y)
    there = type(selector)(**selector.get_params()).fit(stores[name], client=client)
    assert isinstance(there.scores_, FeatureValues)
    assert isinstance(there.ranking_, FeatureRanks)
    assert there.ranking_[there.support_features_].tolist() == list(range(1, len(there.support_features_) + 1))
    assert differences(here, there) == []


def test_a_pool_that_grows_beyond_the_first_leaders(tmp_path, client, monkeypatch):
    """Most features with the best scores are copies of two features, so the pool must be deep."""
    rng = np.random.default_rng(0)
    y = np.repeat([0, 1], 40)
    X = rng.standard_normal((80, 300)) + y[:, None] * np.linspace(0.5, 0.0, 300)
    copies = np.repeat(y[:, None] + 0.5 * rng.standard_normal((80, 2)), 60, axis=1)
    X = np.hstack([X, copies + 0.01 * rng.standard_normal(copies.shape)])
    path = write_store(tmp_path / "copies.store", X, y=y)
    monkeypatch.setattr("coterie.redundancy.refinement._FIRST", 20)
    monkeypatch.setattr("coterie.redundancy.refinement._GROWTH", 2)
    here = GlobalRedundancySelector("fisher", 6, solution="weights").fit(open_store(path).source, y)
    there = GlobalRedundancySelector("fisher", 6, solution="weights").fit(path, client=client)
    assert here.pool_sizes_[-1] > 100
    assert isinstance(there.refined_scores_, SparseValues)
    assert differences(here, there) == []


def test_values_per_feature_are_never_fetched(stores, client, monkeypatch):
    def refuse(self, *args, **options):
        raise AssertionError("all numbers were fetched")

    monkeypatch.setattr(FeatureValues, "__array__", refuse)
    monkeypatch.setattr(FeatureValues, "blocks", refuse)
    monkeypatch.setattr(DistributedSource, "block", refuse)
    monkeypatch.setattr("coterie.redundancy.refinement._FIRST", 100)
    FilterSelector("fisher", 5).fit(stores["words"], client=client)
    GlobalRedundancySelector("fisher", 5, fdr=None).fit(stores["words"], client=client)


def test_ties_are_broken_as_in_one_process(tmp_path, client):
    """Hundreds of tied scores, including copies, with the cut among them."""
    rng = np.random.default_rng(3)
    X = np.repeat((rng.random((30, 40)) < 0.2).astype(float), 10, axis=1)[:, rng.permutation(400)]
    path = write_store(tmp_path / "tied.store", sparse.csc_array(X))
    source = DistributedSource.of_store(path, client, n_parts=5)
    scores = FilterSelector("variance", 1).fit(source).scores_
    expected = ranked(as_source(X), np.asarray(scores))
    for count in (1, 17, 100, 399, 400):
        np.testing.assert_array_equal(Ranked(source, scores).first(count), expected[:count])


def test_constant_features(tmp_path, client):
    path = write_store(tmp_path / "flat.store", np.ones((5, 6)), y=[0, 1, 0, 1, 0])
    for selector in (FilterSelector("variance", 1), GlobalRedundancySelector("variance", 1)):
        with pytest.raises(ValueError, match="All features of X are constant"):
            selector.fit(path, client=client)


def test_a_saved_selector_has_all_numbers(stores, client, tmp_path):
    there = FilterSelector("fisher", 5).fit(stores["dense"], client=client)
    save(there, tmp_path / "model.coterie")
    loaded = load(tmp_path / "model.coterie")
    np.testing.assert_array_equal(loaded.scores_, np.asarray(there.scores_))
    np.testing.assert_array_equal(loaded.ranking_, np.asarray(there.ranking_))


def test_dask_arrays(client):
    da = pytest.importorskip("dask.array")
    X, y = classes(n=60, m=200)
    array = da.from_array(np.asfortranarray(X), chunks=(-1, 70))
    for selector in (FilterSelector("fisher", 4), GlobalRedundancySelector("fisher", 4)):
        here, there = clone(selector).fit(np.asfortranarray(X), y), clone(selector).fit(array, y, client=client)
        assert differences(here, there) == []
    with pytest.raises(ValueError, match="the parts of a Dask array are on different workers"):
        FilterSelector("laplacian", 4).fit(array, client=client)


def test_an_active_client_is_used(stores, cluster, monkeypatch):
    da = pytest.importorskip("dask.array")
    X, y = classes(n=60, m=200)
    array = da.from_array(np.asfortranarray(X), chunks=(-1, 70))
    with distributed.Client(cluster):
        assert isinstance(FilterSelector("fisher", 4).fit(stores["words"]).scores_, FeatureValues)
        assert isinstance(FilterSelector("fisher", 4).fit(array, y).scores_, FeatureValues)
        # Methods that require the whole store compute an array in this process, as without a cluster.
        assert isinstance(FilterSelector("laplacian", 4).fit(array).scores_, np.ndarray)
        monkeypatch.setattr(DistributedSource, "map_tasks", lambda *given, **options: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            correlation_profile(stores["words"])


def test_unsupported_methods_raise_errors(stores, client):
    source, y = DistributedSource.of_store(stores["words"], client), open_store(stores["words"]).y
    for selector in (
        FilterSelector("mcfs"),
        GlobalRedundancySelector(solution="weights", groups=[[0, 1]]),
        GlobalRedundancySelector("mcfs"),
        RCFSSelector(),
        GlobalRedundancySelector(n_candidates="cv"),
        GlobalRedundancySelector(solution="set", redundancy_strength="cv"),
    ):
        with pytest.raises(ValueError, match=r"does not support features held by the workers .*without client="):
            selector.fit(source, y)
    with pytest.raises(ValueError, match="mcfs_score requires all features in one process"):
        mcfs_score(source)
    assert isinstance(fisher_score(source, y), FeatureValues)


def test_genotypes_of_plink(client, tmp_path, rng):
    """Stores of SNPs: int8, with names and positions of the features."""
    pytest.importorskip("bed_reader")
    from tests.data.test_bio import write_plink

    genotypes = np.repeat(rng.integers(0, 3, (30, 12)), 3, axis=1).astype(np.int8)
    genotypes[rng.random(genotypes.shape) < 0.05] = 1
    trait = genotypes[:, 4] + 0.1 * rng.standard_normal(30)
    path = convert(write_plink(tmp_path, genotypes, trait), tmp_path / "snps.store")
    store = open_store(path)
    for estimator in (
        GroupDiscoveryRegressor(2),
        FilterSelector("correlation", 3),
        GlobalRedundancySelector("correlation", 3),
        DependencyAwareSelector("ridge_regression", n_probes=40, random_state=0),
    ):
        here, there = clone(estimator).fit(store.source, store.y), clone(estimator).fit(path, client=client)
        assert differences(here, there) == []
        if hasattr(here, "groups_"):
            assert there.groups_.annotations == here.groups_.annotations != {}
