"""Cluster of two local worker processes for all tests of the package."""

import logging

import numpy as np
import pytest

from coterie.cluster.values import FeatureValues, SparseValues
from coterie.data import write_store
from coterie.order import FeatureRanks
from tests.golden.record import classes, digest, genotypes, words

distributed = pytest.importorskip("distributed", reason="dask.distributed is not installed")


def start(n_workers=2, **options):
    """Cluster of processes with one thread each."""
    defaults = {"threads_per_worker": 1, "dashboard_address": ":0", "memory_limit": "1GB", "silence_logs": logging.CRITICAL}
    return distributed.LocalCluster(n_workers=n_workers, **{**defaults, **options})


@pytest.fixture(scope="session")
def cluster():
    with start() as cluster:
        yield cluster


@pytest.fixture(scope="session")
def session_client(cluster):
    # Not the default client: otherwise stores of all other tests would be opened on its workers.
    with distributed.Client(cluster, set_as_default=False) as client:
        yield client


@pytest.fixture
def client(session_client):
    return session_client


DATA = {
    "words": lambda: words(m=1500),
    "dense": lambda: classes(n=150, m=2100),
    "genotypes": lambda: genotypes(n=150, m=2400),
}


@pytest.fixture(scope="session")
def stores(tmp_path_factory):
    """Stores with sparse, dense and int8 features and labels."""
    folder = tmp_path_factory.mktemp("stores")
    return {name: write_store(folder / f"{name}.store", (data := make())[0], y=data[1]) for name, make in DATA.items()}


def differences(here, there):
    """Return the fitted attributes that differ in any bit."""
    names = [name for name in vars(here) if name.endswith("_") and not name.startswith("_")]
    far = (FeatureRanks, FeatureValues, SparseValues)
    plain = {name: np.asarray(value) if isinstance(value := getattr(there, name), far) else value for name in names}
    return [name for name in names if digest(getattr(here, name)) != digest(plain[name])]
