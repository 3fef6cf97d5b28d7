"""Comparison of methods on the workers of a cluster, with one fold of one method per task."""

import threading
import time

import numpy as np
import psutil
import pytest

from coterie import compare
from coterie.data import open_store, write_store
from tests.cluster.conftest import start
from tests.cluster.faults import Workers

distributed = pytest.importorskip("distributed", reason="dask.distributed is not installed")
OPTIONS = {"n_features": [2], "cv": 2}


@pytest.fixture(scope="module")
def small(tmp_path_factory, stores):
    store = open_store(stores["dense"])
    return write_store(tmp_path_factory.mktemp("small") / "small.store", store.source.columns(np.arange(60)), y=store.y)


def untimed(comparison):
    return [row._replace(fit_seconds=0.0, rmse=0.0) for row in comparison.rows]


def children(workers):
    """Return the running processes of methods."""
    alive = [psutil.Process(one.pid) for one in workers.processes if one.poll() is None]
    return [child.pid for one in alive for child in one.children(recursive=True)]


@pytest.mark.parametrize("address", [False, True], ids=["folder", "address"])
def test_rows_of_workers_are_kept_here(small, client, tmp_path, address):
    options = {"n_features": [2], "cv": [(np.arange(0, 150, 2), np.arange(1, 150, 2))], "results": tmp_path / "kept"}
    X = open_store(f"file://{small}") if address else small
    there = compare(["variance"], X, client=client, **options)
    assert [row.status for row in there.rows] == ["ok"]
    again = compare(["variance"], small, **options)  # the row exists, so no process is started
    assert again.rows[0].fit_seconds == there.rows[0].fit_seconds
    assert untimed(again) == untimed(there)


def test_other_data_than_stores_are_rejected(client):
    with pytest.raises(ValueError, match="compare with a client requires X to be a store"):
        compare(["variance"], np.eye(6), [0, 1] * 3, client=client, **OPTIONS)


@pytest.mark.slow
def test_the_same_rows_as_in_one_process(small, client):
    methods = ["fisher", "gdm"]
    here, there = compare(methods, small, **OPTIONS), compare(methods, small, client=client, **OPTIONS)
    assert untimed(here) == untimed(there)
    assert {key: value.tolist() for key, value in here.selections.items()} == {
        key: value.tolist() for key, value in there.selections.items()
    }


@pytest.mark.slow
def test_workers_enforce_the_limits(small, client):
    late = compare(["sffs"], small, client=client, n_features=[30], cv=2, time_limit=0.05)
    assert [row.status for row in late.rows] == ["timed out", "timed out"]
    fat = compare(["fisher"], small, client=client, memory_limit="1MB", **OPTIONS)
    assert [row.status for row in fat.rows] == ["out of memory", "out of memory"]


@pytest.fixture
def two_workers():
    with start(0) as cluster, distributed.Client(cluster, set_as_default=False) as client:
        workers = Workers(cluster.scheduler_address, 2)
        client.wait_for_workers(2, timeout=120)
        yield workers, client
        workers.close()


def until(happens, seconds=120.0):
    deadline = time.monotonic() + seconds
    while not happens() and time.monotonic() < deadline:
        time.sleep(0.1)
    return happens()


@pytest.mark.slow
def test_the_unit_of_a_killed_worker_is_repeated(small, two_workers):
    workers, client = two_workers
    expected = compare(["fisher"], small, **OPTIONS)

    def kill():
        until(lambda: children(workers))
        workers.signal(0)

    thread = threading.Thread(target=kill)
    thread.start()
    found = compare(["fisher"], small, client=client, **OPTIONS)
    thread.join()
    assert workers.processes[0].poll() is not None
    assert untimed(found) == untimed(expected)


@pytest.mark.slow
def test_ctrl_c_ends_the_processes_on_workers(small, two_workers):
    import _thread

    workers, client = two_workers

    def interrupt():
        until(lambda: children(workers))
        _thread.interrupt_main()

    thread = threading.Thread(target=interrupt)
    thread.start()
    with pytest.raises(KeyboardInterrupt):
        compare(["sffs"], small, client=client, n_features=[30], cv=2)
    thread.join()
    assert until(lambda: not children(workers), 30.0)
