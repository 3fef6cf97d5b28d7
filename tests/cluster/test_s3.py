"""Fits from a store on an S3 server, whose parts are fetched by the workers."""

import numpy as np
import pytest

from coterie import GroupDiscoveryClassifier
from coterie.cluster import ClusterError, DistributedSource
from coterie.data import open_store, write_store
from tests.cluster.conftest import differences, distributed, start
from tests.golden.record import words
from tests.s3 import s3_bucket

pytestmark = [
    pytest.mark.slow,
    pytest.mark.filterwarnings(
        "ignore::DeprecationWarning", "ignore::ResourceWarning", "ignore::pytest.PytestUnraisableExceptionWarning"
    ),
]


@pytest.fixture(scope="module")
def bucket():
    with s3_bucket() as system:
        yield system


@pytest.fixture(scope="module")
def workers(bucket):
    """Workers that were started after the server, whose address is in their environment."""
    with start() as cluster, distributed.Client(cluster, set_as_default=False) as client:
        yield client


def test_the_same_bits_as_from_a_folder(bucket, workers, tmp_path):
    X, y = words(m=600)
    path = write_store(tmp_path / "x.store", X, y=y)
    bucket.put(str(path), "bucket/words.store", recursive=True)
    here = GroupDiscoveryClassifier(4).fit(open_store(path).source, y)
    for there in (
        GroupDiscoveryClassifier(4).fit("s3://bucket/words.store"),
        GroupDiscoveryClassifier(4).fit("s3://bucket/words.store", client=workers),
    ):
        assert differences(here, there) == []


def test_a_store_that_changes_is_refused(bucket, workers, tmp_path):
    """A worker that opens another store than the client raises an error."""
    X, y = words(m=600)
    bucket.put(str(write_store(tmp_path / "x.store", X, y=y)), "bucket/changed.store", recursive=True)
    source = DistributedSource.of_store("s3://bucket/changed.store", workers)
    bucket.rm("bucket/changed.store", recursive=True)
    bucket.put(str(write_store(tmp_path / "z.store", X[:, ::-1], y=y)), "bucket/changed.store", recursive=True)
    with pytest.raises(ClusterError, match="differs from that of this process"):
        source.columns(np.array([0]))
