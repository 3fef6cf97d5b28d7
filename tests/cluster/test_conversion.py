"""Conversion of a text file to a store by the workers of a cluster: the same bytes and errors."""

import bz2

import numpy as np
import pytest

from coterie.cluster import convert as convert_there
from coterie.data import DataFileError, convert
from tests.cluster.conftest import start
from tests.cluster.faults import Workers

distributed = pytest.importorskip("distributed", reason="dask.distributed is not installed")


def lines(rng, n=400, m=300):
    """LIBSVM text with lines of all lengths, empty lines, comments and query ids."""
    for i in range(n):
        columns = np.sort(rng.choice(np.arange(1, m), rng.integers(0, 30), replace=False))
        values = rng.integers(1, 9, len(columns)) / (1 if i < n // 2 else 4)
        entries = " ".join(f"{j}:{v:g}" for j, v in zip(columns, values, strict=True))
        yield f"{i % 3}{' qid:3' * (i % 7 == 0)} {entries}{' # word' * (i % 5 == 0)}\n"


def contents(store):
    """Return the bytes of all files of a store."""
    return {file.name: file.read_bytes() for file in sorted(store.rglob("*")) if file.is_file()}


@pytest.fixture
def text(tmp_path, rng):
    path = tmp_path / "a.svm"
    path.write_text("".join(lines(rng)).rstrip("\n"))  # without a last line end
    return path


@pytest.mark.parametrize("memory_limit", [None, 1 << 24], ids=["", "little memory"])
def test_the_same_bytes_as_of_one_process(text, tmp_path, client, memory_limit, monkeypatch):
    if memory_limit is not None:
        monkeypatch.setattr("coterie.data.readers.collect._MIN_ENTRIES", 16)
        monkeypatch.setattr("coterie.data.readers.collect._ENTRY_BYTES", 1 << 18)  # runs of the client's merge
    here = convert(text, tmp_path / "here.store", memory_limit=memory_limit)
    there = convert_there(text, tmp_path / "there.store", client, memory_limit=memory_limit)
    assert contents(here) == contents(there)
    assert len(contents(here)) > 4
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.svm", "here.store", "there.store"]


def test_a_wrong_line_is_named(text, tmp_path, client):
    wrong = text.read_text().split("\n")
    wrong[300] = "1 4:2 x:3"
    wrong[350] = "1 nonsense"
    text.write_text("\n".join(wrong))
    messages = []
    for function, more in ((convert, ()), (convert_there, (client,))):
        with pytest.raises(DataFileError) as error:
            function(text, tmp_path / "x.store", *more)
        messages.append(str(error.value))
    assert messages[0] == messages[1]
    assert "a.svm:301:7: 'x:3' is not 'index:value'" in messages[0]
    assert not (tmp_path / "x.store").exists()


def test_few_lines_and_options(tmp_path, client):
    small = tmp_path / "small.svm"
    small.write_text("1 0:1 2:1\n")
    convert_there(small, tmp_path / "one.store", client, zero_based=True, n_features=9)
    assert contents(tmp_path / "one.store") == contents(convert(small, tmp_path / "b.store", zero_based=True, n_features=9))
    with pytest.raises(DataFileError, match="index 0 occurs, but zero_based=False"):
        convert_there(small, tmp_path / "c.store", client, zero_based=False)


@pytest.mark.slow
def test_the_part_of_a_killed_worker_is_read_again(tmp_path, rng):
    text = tmp_path / "long.svm"
    text.write_text("".join(lines(rng, n=20_000)))
    expected = contents(convert(text, tmp_path / "here.store"))
    with start(0) as cluster, distributed.Client(cluster, set_as_default=False) as client:
        workers = Workers(cluster.scheduler_address, 2)
        client.wait_for_workers(2, timeout=120)
        began = []

        def kill(done, total, what):
            if not began:
                began.append(done)
                workers.signal(0)

        there = convert_there(text, tmp_path / "there.store", client, progress=kill)
        workers.close()
    assert began
    assert contents(there) == expected


def test_files_that_cannot_be_divided_are_rejected(text, tmp_path, client):
    packed = tmp_path / "a.svm.bz2"
    packed.write_bytes(bz2.compress(text.read_bytes()))
    with pytest.raises(DataFileError, match="bzip2 data cannot be read in parts"):
        convert_there(packed, tmp_path / "x.store", client)
    table = tmp_path / "a.csv"
    table.write_text("y,a\n1,2\n0,3\n")
    with pytest.raises(DataFileError, match="workers can only convert LIBSVM text, but the format is csv"):
        convert_there(table, tmp_path / "x.store", client, label="y")
    assert not (tmp_path / "x.store").exists()
