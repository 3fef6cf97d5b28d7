"""A cluster of two worker processes on this machine, for all tests of the package."""

import logging

import pytest

distributed = pytest.importorskip("distributed", reason="dask.distributed is not installed")


def start(n_workers=2, **options):
    """A cluster of real processes, one thread each."""
    defaults = {"threads_per_worker": 1, "dashboard_address": ":0", "memory_limit": "1GB", "silence_logs": logging.CRITICAL}
    return distributed.LocalCluster(n_workers=n_workers, **{**defaults, **options})


@pytest.fixture(scope="session")
def cluster():
    with start() as cluster:
        yield cluster


@pytest.fixture(scope="session")
def session_client(cluster):
    # Not the default one: an active client would take every store of every other test to its workers.
    with distributed.Client(cluster, set_as_default=False) as client:
        yield client


@pytest.fixture
def client(session_client):
    return session_client
