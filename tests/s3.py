"""Local server that speaks the protocol of S3."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from unittest import mock


@contextmanager
def s3_bucket() -> Iterator[Any]:
    """Start a server with a bucket named "bucket". Processes that are started in the block find the server as well.

    Yields the file system of fsspec. The modules belong to the dev extra; without them a test must fail, not be skipped.
    """
    import fsspec
    import s3fs
    from moto.server import ThreadedMotoServer

    server = ThreadedMotoServer(port=0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    access = {"AWS_ACCESS_KEY_ID": "x", "AWS_SECRET_ACCESS_KEY": "x", "AWS_ENDPOINT_URL": f"http://{host}:{port}"}
    s3fs.S3FileSystem.clear_instance_cache()
    try:
        with mock.patch.dict(os.environ, access):
            system = fsspec.filesystem("s3")
            system.makedirs("bucket", exist_ok=True)  # servers of one process share their buckets
            yield system
    finally:
        s3fs.S3FileSystem.clear_instance_cache()
        server.stop()
