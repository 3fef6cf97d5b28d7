"""A worker that loses its network during a phase; requires root and ``ip`` for a separate network."""

import os
import shutil
import subprocess
import sys

import pytest

from coterie import GroupDiscoveryClassifier
from coterie.cluster import DistributedSource
from coterie.data import open_store, write_store
from tests.cluster.conftest import start
from tests.cluster.faults import Workers, sabotage
from tests.golden.record import digest, words

distributed = pytest.importorskip("distributed", reason="dask.distributed is not installed")
HOST, GUEST, NET = "10.77.19.1", "10.77.19.2", "coterie-test"


def ip(*words):
    subprocess.run(["ip", *words], check=True, capture_output=True)


@pytest.fixture
def network():
    """A network namespace with a link to this one."""
    if os.geteuid() != 0 or shutil.which("ip") is None:
        pytest.skip("a network of its own needs root and ip")
    try:
        ip("netns", "add", NET)
    except subprocess.CalledProcessError as error:
        pytest.skip(f"no network namespaces here: {error.stderr.decode().strip()}")
    try:
        ip("link", "add", "cot0", "type", "veth", "peer", "name", "cot1", "netns", NET)
        ip("addr", "add", f"{HOST}/24", "dev", "cot0")
        ip("link", "set", "cot0", "up")
        ip("-n", NET, "addr", "add", f"{GUEST}/24", "dev", "cot1")
        ip("-n", NET, "link", "set", "cot1", "up")
        ip("-n", NET, "link", "set", "lo", "up")
        yield ["ip", "netns", "exec", NET]
    finally:
        subprocess.run(["ip", "link", "del", "cot0"], check=False, capture_output=True)
        subprocess.run(["ip", "netns", "del", NET], check=False, capture_output=True)


@pytest.mark.slow
def test_a_cut_link(network, tmp_path):
    X, y = words(m=1200)
    path = write_store(tmp_path / "words.store", X, y=y)
    store = open_store(path)
    here = GroupDiscoveryClassifier(4).fit(store.source, store.y)
    with start(0, host=HOST) as cluster, distributed.Client(cluster, set_as_default=False) as client:
        near = Workers(cluster.scheduler_address, 1)
        far = subprocess.Popen(
            [*network, sys.executable, "-m", "dask", "worker", cluster.scheduler_address, "--no-nanny", "--nthreads", "1"],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        try:
            client.wait_for_workers(2, timeout=120)
            source = DistributedSource.of_store(path, client, n_parts=4, patience=1.0, limit=240.0)
            with sabotage(DistributedSource, "scores", lambda: ip("link", "set", "cot0", "down"), nth=2) as done:
                there = GroupDiscoveryClassifier(4).fit(source, store.y)
            assert len(done) == 1
            assert digest(there.groups_) == digest(here.groups_)
            assert digest(there.support_coef_) == digest(here.support_coef_)
        finally:
            far.kill()
            far.wait()
            near.close()
