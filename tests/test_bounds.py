"""Limits on files that are opened and memory that is allocated."""

import errno
import os
import resource
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from coterie import bounds, load
from coterie.bounds import DataFileError, memory_limit, open_regular, require_memory
from coterie.data import convert, open_features, open_store
from coterie.data.readers.byte_stream import read_lines
from coterie.data.readers.formats import detect_format
from coterie.persistence.archive import is_model
from coterie.probing.checkpoint import Checkpoint


def irregular(folder):
    """Paths that are not regular files."""
    os.mkfifo(folder / "pipe")
    path = folder / "socket"
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(path))
    return {"a pipe": folder / "pipe", "a socket": path, "a device": Path("/dev/zero")}


READINGS = {
    "open_features": open_features,
    "stated format": lambda path: open_features(path, format="npz"),
    "h5ad": lambda path: open_features(path, format="h5ad"),
    "parquet": lambda path: open_features(path, format="parquet"),
    "convert": lambda path: convert(path, path.parent / "store" if os.access(path.parent, os.W_OK) else "store"),
    "load": load,
    "names": read_lines,
    "checkpoint": lambda path: Checkpoint(path, {}).load(),
}


@pytest.mark.parametrize("reading", READINGS)
def test_only_regular_files_are_read(tmp_path, reading):
    for words, path in irregular(tmp_path).items():
        with pytest.raises(ValueError, match=f"this is {words}, not a file"):
            READINGS[reading](path)
        assert not is_model(path)


def test_the_parts_of_a_store_are_regular_files(tmp_path):
    import numpy as np

    from coterie.data import write_store

    path = write_store(tmp_path / "s", np.eye(3))
    (path / "values.npy").unlink()
    os.mkfifo(path / "values.npy")
    with pytest.raises(DataFileError, match="this is a pipe"):
        open_store(path)


def test_required_memory_is_compared_with_limit_and_free_memory(monkeypatch):
    require_memory(bounds.MIN_CHECKED_BYTES, "f", "everything")
    monkeypatch.setattr(bounds, "free_memory", lambda: 10**9)
    require_memory(10**9, "f", "everything")
    with pytest.raises(DataFileError, match=r"^f: a line would take 2 GB of memory, but 1 GB are free\. If .* more memory\.$"):
        require_memory(2 * 10**9, "f", "a line")
    with (
        memory_limit(10**8),
        pytest.raises(DataFileError, match=r"^f:7: .* memory_limit is 100 MB\. If .* increase memory_limit\.$"),
    ):
        require_memory(5 * 10**8, "f", "a line", line=lambda: 7)


def test_free_memory_respects_the_limit_of_the_process():
    code = "from coterie.bounds import free_memory; print(free_memory())"

    def free(limit):
        run = subprocess.run(
            [sys.executable, "-c", code],
            capture_output=True,
            text=True,
            check=True,
            preexec_fn=None if limit is None else lambda: resource.setrlimit(resource.RLIMIT_AS, (limit, limit)),
        )
        return int(run.stdout)

    assert 0 < free(2 << 30) < 2 << 30
    assert free(None) > 0


def test_memory_of_machine_and_container(monkeypatch):
    texts = {
        "/proc/meminfo": "MemTotal: 9 kB\nMemAvailable: 3000 kB\nSwapFree: 1000 kB\n",
        "/proc/self/cgroup": "0::/a\n",
        "/sys/fs/cgroup/a/memory.max": "max\n",
        "/sys/fs/cgroup/a/memory.current": "4000000\n",
        "/sys/fs/cgroup/a/memory.stat": "anon 1\ninactive_file 500000\nactive_file 500000\n",
    }

    def read(path):
        if str(path) not in texts:
            raise FileNotFoundError(path)
        return texts[str(path)]

    monkeypatch.setattr(Path, "read_text", read)
    assert bounds._machine_memory() == 4000 << 10
    assert bounds._container_memory() == bounds._UNLIMITED
    texts["/sys/fs/cgroup/a/memory.max"] = "5000000\n"
    assert bounds._container_memory() == 2_000_000
    texts.clear()
    assert bounds._container_memory() == bounds._UNLIMITED
    assert bounds._machine_memory() == os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")


@pytest.mark.skipif(sys.platform != "linux", reason="needs /proc")
def test_errors_of_reading_name_the_file():
    """The first bytes of this file cannot be read: EIO."""
    with open_regular("/proc/self/mem") as file, pytest.raises(OSError, match="/proc/self/mem") as caught:
        file.read(6)
    assert (caught.value.errno, caught.value.filename) == (errno.EIO, "/proc/self/mem")
    for read in (lambda file: file.read(), lambda file: file.readinto(bytearray(1 << 20)), lambda file: file.readline()):
        with open_regular("/proc/self/mem") as file, pytest.raises(OSError, match="/proc/self/mem"):
            read(file)
    for function in (open_features, detect_format):
        with pytest.raises(OSError, match="/proc/self/mem"):
            function(Path("/proc/self/mem"))
