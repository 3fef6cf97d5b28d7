"""Subsets evaluated by the workers of a cluster: DAF, and searches with the same criteria."""

import warnings

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression

from coterie import DependencyAwareSelector
from coterie.baselines import BestIndividualSelector, FloatingSelector
from coterie.cluster import DistributedSource
from coterie.data import open_store, write_store
from coterie.inputs.targets import LoneClassWarning
from tests.cluster.conftest import differences

pytestmark = pytest.mark.filterwarnings("ignore:.*in none or in all:sklearn.exceptions.ConvergenceWarning")

SELECTORS = [
    ("words", DependencyAwareSelector(n_probes=60, random_state=0)),
    ("dense", DependencyAwareSelector("ridge", n_probes=60, sampling="uniform", variant="daf2", random_state=0)),
    ("genotypes", DependencyAwareSelector("reconstruction", n_probes=40, random_state=0)),
    pytest.param(
        "dense",
        DependencyAwareSelector(LogisticRegression(max_iter=5, tol=1.0), n_probes=10, cv=2, random_state=0),
        marks=pytest.mark.slow,
    ),
    pytest.param("few", FloatingSelector("ridge", n_features_to_select=2), marks=pytest.mark.slow),
    ("few", BestIndividualSelector("knn", n_features_to_select=2)),
]


@pytest.fixture(scope="module")
def few(tmp_path_factory, stores):
    store = open_store(stores["dense"])
    return write_store(tmp_path_factory.mktemp("few") / "few.store", store.source.columns(np.arange(12)), y=store.y)


@pytest.mark.parametrize(("name", "selector"), SELECTORS, ids=str)
def test_the_same_bits_as_in_one_process(name, selector, stores, few, client):
    path = few if name == "few" else stores[name]
    store = open_store(path)
    here, there = clone(selector).fit(store.source, store.y), clone(selector).fit(path, client=client)
    assert differences(here, there) == []
    assert getattr(here, "_marks", None) == getattr(there, "_marks", None)


def test_a_run_goes_on_elsewhere(few, client, tmp_path):
    """A checkpoint of one process is continued on a cluster, with the same folds for all workers."""
    options = {"random_state": 3, "checkpoint": tmp_path / "probes.npz", "criterion": "ridge"}
    store = open_store(few)
    DependencyAwareSelector(n_probes=30, **options).fit(store.source, store.y)
    there = DependencyAwareSelector(n_probes=60, **options).fit(few, client=client)
    here = DependencyAwareSelector("ridge", n_probes=60, random_state=3).fit(store.source, store.y)
    assert differences(here, there) == []


def test_warnings_and_errors_come_from_the_workers(client, tmp_path):
    X = np.random.default_rng(0).standard_normal((9, 4))
    lone = write_store(tmp_path / "lone.store", X, y=[0, 0, 0, 0, 1, 1, 1, 1, 2])
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        DependencyAwareSelector("ridge", n_features_to_select=1, n_probes=20, random_state=0).fit(lone, client=client)
    assert [one.category for one in caught if issubclass(one.category, LoneClassWarning)] == [LoneClassWarning]
    with pytest.raises(ValueError, match=r"cv=99 exceeds the number of samples \(9\)"):
        DependencyAwareSelector(n_features_to_select=1, cv=99).fit(lone, client=client)


def test_a_dask_array_has_no_worker_with_all_features(client):
    da = pytest.importorskip("dask.array")
    X = np.asfortranarray(np.random.default_rng(0).standard_normal((20, 6)))
    y = np.tile([0, 1], 10)
    with pytest.raises(ValueError, match=r"of a Dask array .* Write the array to a store"):
        DependencyAwareSelector("ridge", n_features_to_select=1, n_probes=9).fit(
            da.from_array(X, chunks=(-1, 3)), y, client=client
        )


def test_every_task_has_all_features(stores, client):
    source = DistributedSource.of_store(stores["words"], client, n_parts=3)
    shapes = source.map_tasks(shape_and_more, [(1,), (2,), (3,)], what="shapes")
    assert shapes == [(source.shape, 1), (source.shape, 2), (source.shape, 3)]


def shape_and_more(source, more):
    return source.shape, more
