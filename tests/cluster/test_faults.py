"""Fits with killed and stopped workers, and their error messages."""

import signal
import time

import numpy as np
import pytest

from coterie import DependencyAwareSelector, GroupDiscoveryClassifier, correlation_profile
from coterie.cluster import ClusterError, DistributedSource
from coterie.data import open_store, write_store
from tests.cluster.conftest import start
from tests.cluster.faults import PHASES, Workers, sabotage
from tests.golden.record import digest, words

distributed = pytest.importorskip("distributed", reason="dask.distributed is not installed")


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    X, y = words(m=1200)
    return write_store(tmp_path_factory.mktemp("faults") / "words.store", X, y=y)


@pytest.fixture(scope="module")
def expected(store):
    opened = open_store(store)
    return result_of(GroupDiscoveryClassifier(4).fit(opened.source, opened.y))


def result_of(model):
    return [digest(model.groups_), digest(model.support_coef_), digest(np.asarray(model.scores_)), digest(model.intercept_)]


@pytest.fixture(scope="module")
def running():
    """Scheduler, client and two workers that can be killed."""
    with start(0) as cluster, distributed.Client(cluster, set_as_default=False) as client:
        workers = Workers(cluster.scheduler_address, 2)
        yield workers, client
        workers.close()


@pytest.fixture
def victims(running):
    """Wait until all workers are running."""
    workers, client = running
    workers.fill(2)
    client.wait_for_workers(2, timeout=120)
    return running


@pytest.mark.parametrize("min_bytes", [0, 1 << 20], ids=["tables", "residuals"])
def test_a_worker_killed_changes_no_bit(min_bytes, store, expected, victims, monkeypatch):
    """Residuals are sent as tables, whose partition another worker makes again, or as they are."""
    monkeypatch.setattr("coterie.cluster.residuals._MIN_BYTES", min_bytes)
    workers, client = victims
    with sabotage(DistributedSource, "scores", lambda: workers.signal(0), nth=3, delay=0.005) as done:
        model = GroupDiscoveryClassifier(4).fit(DistributedSource.of_store(store, client, n_parts=4), open_store(store).y)
    assert len(done) == 1
    assert result_of(model) == expected


@pytest.mark.filterwarnings("ignore:.*in none or in all")
def test_a_worker_killed_among_probes_costs_no_value(store, victims):
    workers, client = victims
    opened = open_store(store)
    selector = DependencyAwareSelector("ridge", n_probes=60, random_state=0)
    expected = digest(selector.fit(opened.source, opened.y).scores_)
    with sabotage(DistributedSource, "values of subsets", lambda: workers.signal(0), nth=2, delay=0.005) as done:
        found = digest(selector.fit(DistributedSource.of_store(store, client), opened.y).scores_)
    assert len(done) == 1
    assert found == expected


def test_a_worker_killed_among_pairs_costs_no_count(store, victims):
    workers, client = victims
    expected = correlation_profile(open_store(store)).counts.tolist()
    with sabotage(DistributedSource, "pairs of features", lambda: workers.signal(1), delay=0.005) as done:
        found = correlation_profile(DistributedSource.of_store(store, client)).counts.tolist()
    assert len(done) == 1
    assert found == expected


@pytest.mark.slow
@pytest.mark.parametrize("phase", list(PHASES))
@pytest.mark.parametrize("turn", range(20))
def test_a_worker_killed_in_every_phase(phase, turn, store, expected, victims):
    workers, client = victims
    delay = 0.001 * (turn % 10) ** 2
    with sabotage(DistributedSource, phase, lambda: workers.signal(turn), delay=delay) as done:
        model = GroupDiscoveryClassifier(4).fit(DistributedSource.of_store(store, client, n_parts=4), open_store(store).y)
    assert len(done) == 1
    assert result_of(model) == expected


def test_a_stopped_worker_is_not_waited_for(store, expected, victims):
    """Its part is requested from another worker, long before Dask removes it (worker-ttl, five minutes)."""
    workers, client = victims
    y = open_store(store).y
    source = DistributedSource.of_store(store, client, n_parts=2, patience=1.0, limit=120.0)
    try:
        with sabotage(DistributedSource, "scores", lambda: workers.signal(0, signal.SIGSTOP), nth=2) as done:
            model = GroupDiscoveryClassifier(4).fit(source, y)
            found = [digest(model.groups_), digest(model.support_coef_)]
    finally:
        workers.signal(0, signal.SIGCONT)
    assert len(done) == 1
    assert found == expected[:2]


def test_a_scheduler_that_dies(store, tmp_path):
    cluster = start(1)
    client = distributed.Client(cluster, set_as_default=False)
    model = GroupDiscoveryClassifier(4).fit(np.eye(6), [0, 1, 0, 1, 0, 1])
    before = digest(model)
    source = DistributedSource.of_store(store, client, limit=30.0)

    def end():
        cluster.close(timeout=5)

    with sabotage(DistributedSource, "scores", end, nth=2), pytest.raises(ClusterError, match=r"scheduler|No results"):
        model.fit(source, open_store(store).y)
    assert digest(model) == before  # a failed fit does not change the model
    client.close(timeout=5)


def test_no_wait_without_a_limit(store, victims):
    """A part that never responds ends the wait with an error that describes the request."""
    _, client = victims
    source = DistributedSource.of_store(store, client, n_parts=2, limit=1.0, patience=1000.0)
    began = time.monotonic()
    with pytest.raises(ClusterError, match=r"No results from the cluster for 1 s while waiting for sleepers: 2 of 2 parts"):
        source.run_on_parts(sleeping, 4.0, what="sleepers")
    assert time.monotonic() - began < 4.0


def sleeping(source, seconds):
    time.sleep(seconds)


@pytest.fixture
def ctrl_c():
    """Restore the handler of SIGINT, which is ignored if the tests were started in the background."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


def test_ctrl_c_cancels_the_tasks(store, victims, ctrl_c):
    import _thread

    _, client = victims
    source = DistributedSource.of_store(store, client, n_parts=2)
    with sabotage(DistributedSource, "sleepers", _thread.interrupt_main, delay=0.3), pytest.raises(KeyboardInterrupt):
        source.run_on_parts(sleeping, 1.5, what="sleepers")
    deadline = time.monotonic() + 30
    while any(client.processing().values()) and time.monotonic() < deadline:
        time.sleep(0.1)
    assert not any(client.processing().values())


@pytest.mark.slow
def test_a_full_worker(store):
    """A worker without enough memory (killed repeatedly, or paused by Dask) causes an error and no hang."""
    import dask

    with (
        dask.config.set({"distributed.scheduler.allowed-failures": 1}),
        start(1, memory_limit="700MB") as cluster,
        distributed.Client(cluster, set_as_default=False) as client,
    ):
        source = DistributedSource.of_store(store, client, n_parts=1, limit=40.0)
        with pytest.raises(ClusterError, match=r"killed repeatedly .*memory|running and have enough memory"):
            source.run_on_parts(hungry, what="too much")


def hungry(source):
    kept = [np.ones(1 << 24) for _ in range(16)]
    time.sleep(10.0)
    return len(kept)
