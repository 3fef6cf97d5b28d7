"""Features on a cluster: the conformance tests, and results bit-identical to one process."""

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone

from coterie import (
    GroupDiscoveryClassifier,
    GroupDiscoveryClassifierCV,
    GroupDiscoveryOneClass,
    GroupDiscoveryRegressor,
    group_confidence,
)
from coterie.cluster import ClusterError, DaskEngine, DistributedSource, FeatureValues
from coterie.data import open_store, write_store
from tests.cluster.conftest import differences
from tests.data.conformance import SourceConformance
from tests.golden.record import classes, digest


class OnCluster(SourceConformance):
    """Three parts on two workers."""

    @pytest.fixture(autouse=True)
    def _place(self, client, tmp_path):
        self.client, self.folder = client, tmp_path

    def store(self, X):
        return write_store(self.folder / "x.store", X)

    def make(self, X):
        return DistributedSource.of_store(self.store(self.matrix(X)), self.client, n_parts=3)


class TestSparse(OnCluster):
    def matrix(self, X):
        return sparse.csc_array(X.astype(float))


class TestInt8(OnCluster):
    def matrix(self, X):
        return X.astype(np.int8)


class TestDaskArray(OnCluster):
    has_tasks = False

    def make(self, X):
        da = pytest.importorskip("dask.array")
        from coterie.cluster.opening import dask_source

        return dask_source(da.from_array(np.asfortranarray(X.astype(float)), chunks=(-1, 30)), self.client)


SLOW = pytest.mark.slow
ESTIMATORS = [
    ("words", GroupDiscoveryClassifier(6)),
    ("dense", GroupDiscoveryClassifier(6)),
    ("genotypes", GroupDiscoveryRegressor(6)),
    ("words", GroupDiscoveryClassifier(5, correlation="su", threshold=0.3)),
    ("dense", GroupDiscoveryClassifier(5, correlation="spearman")),
    ("words", GroupDiscoveryClassifier(5, standardize=True, affiliates="ranked", representative="medoid")),
    pytest.param("words", GroupDiscoveryClassifierCV(6, Cs=2, cv=3, random_state=0, predict_with="groups"), marks=SLOW),
    ("dense", GroupDiscoveryClassifierCV(5, Cs=2, cv=3, random_state=0)),
    ("words", GroupDiscoveryOneClass(5)),
]


@pytest.mark.parametrize(("name", "estimator"), ESTIMATORS, ids=str)
def test_the_same_bits_as_in_one_process(name, estimator, stores, client):
    store = open_store(stores[name])
    here, there = clone(estimator).fit(store.source, store.y), clone(estimator).fit(stores[name], client=client)
    differing = differences(here, there)
    if isinstance(estimator, GroupDiscoveryClassifierCV) or estimator.correlation != "pearson":
        differing = [one for one in differing if one not in ("n_passes_", "history_")]  # how often features are read
    for attribute in ("calibration_slope_", "calibration_offset_"):
        if attribute in differing:  # Held-out outputs of compiled paths agree to rounding.
            differing.remove(attribute)
            assert getattr(there, attribute) == pytest.approx(getattr(here, attribute), rel=1e-9, abs=1e-9)
    assert differing == []
    assert isinstance(there.scores_, FeatureValues)
    np.testing.assert_array_equal(there.predict(store.source), here.predict(store.source))


def test_folds_vote_alike(stores, client):
    store = open_store(stores["dense"])
    estimator = GroupDiscoveryClassifier(4, cv=3, random_state=0)
    here, there = clone(estimator).fit(store.source, store.y), clone(estimator).fit(store, client=client)
    assert here.groups_ == there.groups_
    np.testing.assert_array_equal(here.votes_, np.asarray(there.votes_))
    np.testing.assert_array_equal(here.support_coef_, there.support_coef_)


def test_confidence_is_the_same(stores, client):
    store = open_store(stores["words"])
    model = GroupDiscoveryClassifier(4).fit(store.source, store.y)
    here = group_confidence(model, store.source, store.y, n_pairs=2, n_permutations=1, random_state=0)
    there = group_confidence(model, stores["words"], n_pairs=2, n_permutations=1, random_state=0, client=client)
    assert here.confidence.tolist() == there.confidence.tolist()
    assert digest(here.permuted) == digest(there.permuted)


def test_values_per_feature_are_never_fetched(stores, client, monkeypatch):
    """Values per feature remain with the workers in every step of a fit."""

    def refuse(self, *args, **options):
        raise AssertionError("all numbers were fetched")

    monkeypatch.setattr(FeatureValues, "__array__", refuse)
    monkeypatch.setattr(FeatureValues, "blocks", refuse)
    monkeypatch.setattr(DistributedSource, "block", refuse)
    for estimator in (
        GroupDiscoveryClassifier(4),
        GroupDiscoveryClassifier(3, correlation="su", threshold=0.3, predict_with="groups"),
        GroupDiscoveryClassifierCV(3, Cs=1, cv=3, random_state=0),
    ):
        model = estimator.fit(stores["words"], client=client)
    group_confidence(model, stores["words"], n_pairs=1, n_permutations=0, random_state=0, client=client)


def test_parts_change_no_bit(stores, client):
    y = open_store(stores["words"]).y
    sources = [DistributedSource.of_store(stores["words"], client, n_parts=n) for n in (1, 2, 7)]
    models = [GroupDiscoveryClassifier(5).fit(source, y) for source in sources]
    assert models[0].groups_ == models[1].groups_ == models[2].groups_
    np.testing.assert_array_equal(np.asarray(models[0].scores_), np.asarray(models[2].scores_))


def test_an_active_client_is_used(stores, cluster):
    import distributed

    with distributed.Client(cluster):
        model = GroupDiscoveryClassifier(2).fit(stores["words"])
        assert isinstance(model.scores_, FeatureValues)
    assert not isinstance(GroupDiscoveryClassifier(2).fit(stores["words"]).scores_, FeatureValues)


def test_dask_arrays(client):
    da = pytest.importorskip("dask.array")
    X, y = classes(n=80, m=300)
    X = np.asfortranarray(X)
    here = GroupDiscoveryClassifier(4).fit(X, y)
    there = GroupDiscoveryClassifier(4).fit(da.from_array(X, chunks=(-1, 100)), y, client=client)
    assert here.groups_ == there.groups_
    np.testing.assert_array_equal(here.scores_, np.asarray(there.scores_))
    with pytest.raises(ValueError, match=r"chunked by samples .*coterie convert"):
        GroupDiscoveryClassifier(4).fit(da.from_array(X, chunks=(40, 300)), y, client=client)
    bad = X.copy()
    bad[7, 250] = np.nan
    with pytest.raises(ValueError, match=r"1 NaN or infinite .* sample 7 of feature 250"):
        GroupDiscoveryClassifier(4).fit(da.from_array(bad, chunks=(-1, 100)), y, client=client)


def test_other_data_than_stores_and_dask_arrays_are_rejected(client):
    with pytest.raises(ValueError, match=r"X is of type ndarray. With a client, X must be a store"):
        GroupDiscoveryClassifier(2).fit(np.eye(4), [0, 1, 0, 1], client=client)
    with pytest.raises(TypeError, match=r"must be a distributed\.Client"):
        DaskEngine("tcp://127.0.0.1:1")


def test_another_version_is_refused(stores, client, monkeypatch):
    import coterie

    monkeypatch.setattr(coterie, "__version__", "9.9")
    with pytest.raises(ClusterError, match=r"workers have coterie .*, but this process has 9\.9"):
        GroupDiscoveryClassifier(2).fit(stores["words"], client=client)


def test_other_processors_are_reported(stores, client, monkeypatch):
    monkeypatch.setattr("coterie.cluster.dask_engine.code_digest", lambda: "another")
    with pytest.warns(UserWarning, match="sum in another order"):
        DistributedSource.of_store(stores["words"], client)


def test_a_worker_that_joins_meanwhile(stores, client, monkeypatch):
    there = DaskEngine(client).workers
    lists = iter([there[:1]] * 2)
    monkeypatch.setattr(DaskEngine, "workers", property(lambda _: next(lists, there)))
    assert DistributedSource.of_store(stores["words"], client).shape == open_store(stores["words"]).source.shape


def test_several_targets_are_the_same_bits(stores, client):
    """One residual per target, as per class, and the same evidence."""
    store = open_store(stores["dense"])
    first = np.asarray(store.y == store.y[0], dtype=float) + 0.3 * np.random.default_rng(0).standard_normal(len(store.y))
    y = np.column_stack([first, 1e3 * first[::-1]])
    here, there = GroupDiscoveryRegressor(4).fit(store.source, y), GroupDiscoveryRegressor(4).fit(store, y, client=client)
    assert differences(here, there) == []
    one = group_confidence(here, store.source, y, n_pairs=1, random_state=0)
    two = group_confidence(there, store, y, n_pairs=1, random_state=0, client=client)
    assert one.confidence.tolist() == two.confidence.tolist()
    np.testing.assert_array_equal(one.q_value, two.q_value)
