"""Clusters with encrypted connections, and clusters that have no worker yet."""

import pytest

from coterie import GroupDiscoveryClassifier
from coterie.cluster import ClusterError, DistributedSource
from coterie.data import open_store
from tests.cluster.conftest import differences, distributed, start


@pytest.fixture
def certificate(tmp_path):
    """Files of a certificate, signed by itself, and of its key."""
    import datetime

    from cryptography import x509
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import ec
    from cryptography.x509.oid import NameOID

    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "coterie tests")])
    now = datetime.datetime.now(datetime.UTC)
    end = now + datetime.timedelta(hours=1)
    builder = x509.CertificateBuilder(name, name, key.public_key(), x509.random_serial_number(), now, end)
    signed = builder.sign(key, hashes.SHA256())
    pem = serialization.Encoding.PEM
    plain = serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    (tmp_path / "certificate.pem").write_bytes(signed.public_bytes(pem))
    (tmp_path / "key.pem").write_bytes(key.private_bytes(pem, *plain))
    return str(tmp_path / "certificate.pem"), str(tmp_path / "key.pem")


def test_tls(stores, certificate):
    """All connections are encrypted, the bits are the same, and a client without the certificate is refused."""
    from distributed.security import Security

    own, key = certificate
    roles = ("client", "scheduler", "worker")
    files = {f"tls_{role}_cert": own for role in roles} | {f"tls_{role}_key": key for role in roles}
    security = Security(require_encryption=True, tls_ca_file=own, **files)
    store = open_store(stores["words"])
    here = GroupDiscoveryClassifier(3).fit(store.source, store.y)
    with (
        start(2, security=security, protocol="tls://") as cluster,
        distributed.Client(cluster, security=security, set_as_default=False) as client,
    ):
        source = DistributedSource.of_store(stores["words"], client)
        assert cluster.scheduler_address.startswith("tls://")
        assert all(worker.startswith("tls://") for worker in source.engine.workers)
        assert differences(here, GroupDiscoveryClassifier(3).fit(source, store.y)) == []
        with pytest.raises((OSError, TypeError, RuntimeError)):
            distributed.Client(cluster.scheduler_address, timeout=2, set_as_default=False)


def test_a_cluster_that_starts_workers_on_demand(stores):
    store = open_store(stores["words"])
    here = GroupDiscoveryClassifier(3).fit(store.source, store.y)
    with start(0) as cluster, distributed.Client(cluster, set_as_default=False) as client:
        cluster.adapt(minimum=0, maximum=2, interval="100 ms")
        assert not client.nthreads()
        there = GroupDiscoveryClassifier(3).fit(stores["words"], client=client)
        assert differences(here, there) == []


def test_a_cluster_without_workers_is_not_waited_for_forever(stores):
    with start(0) as cluster, distributed.Client(cluster, set_as_default=False) as client:
        with pytest.raises(ClusterError, match=r"has no workers, and none has joined for 0\.5 s"):
            DistributedSource.of_store(stores["words"], client, wait=0.5)
        assert not client.processing()
