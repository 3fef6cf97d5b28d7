"""Stores behind an address, in fsspec's file system in memory: parts, names and errors are those of a folder."""

import uuid

import numpy as np
import pytest
from scipy import sparse

from coterie import GroupDiscoveryClassifier
from coterie.data import DataFileError, check_store, open_features, open_store, write_store
from coterie.data.store import reading
from coterie.data.store.format import Address
from tests.data.conformance import example

fsspec = pytest.importorskip("fsspec", reason="fsspec is not installed")


@pytest.fixture
def system():
    return fsspec.filesystem("memory")


def upload(system, path):
    """Copy a store to memory and return its address."""
    name = f"/bucket-{uuid.uuid4().hex}/x.store"
    system.put(str(path), name, recursive=True)
    return f"memory:/{name}"


@pytest.fixture(params=["sparse", "dense"])
def both(request, system, tmp_path):
    """A store in a folder, and its address."""
    X = example(np.random.default_rng(0)).astype(np.float32)
    path = write_store(
        tmp_path / "x.store",
        sparse.csc_array(X) if request.param == "sparse" else X,
        ["a", "b"] * 20 + ["b"],
        feature_names=[f"f{j}" * (j % 3) for j in range(67)],
        sample_names=[f"s{i}" for i in range(41)],
        feature_info={"position": range(67)},
    )
    return open_store(path), upload(system, path)


def columns(source):
    block = source.block(0, source.shape[1])
    return block if isinstance(block, np.ndarray) else block.toarray()


def test_a_store_behind_an_address_is_that_of_the_folder(both):
    here, address = both
    there = open_store(address + "/")
    assert there.path == address
    assert there.shape == here.shape
    assert there.header == here.header
    assert there.n_bytes == here.n_bytes == sum(file.stat().st_size for file in here.path.glob("*.npy"))
    assert there.y.tolist() == here.y.tolist()
    assert list(there.feature_names) == list(here.feature_names)
    assert list(there.sample_names) == list(here.sample_names)
    assert there.feature_info["position"].tolist() == list(range(67))
    np.testing.assert_array_equal(there.source.moments().norm, here.source.moments().norm)
    for first, last in ((0, 67), (10, 20), (66, 67), (30, 30)):
        np.testing.assert_array_equal(columns(there.part(first, last)), columns(here.part(first, last)))
    expected = GroupDiscoveryClassifier(3).fit(here.source, here.y).groups_
    assert GroupDiscoveryClassifier(3).fit(address).groups_ == expected
    assert open_features(address).feature_names[2] == here.feature_names[2]


def test_missing_stores_and_unknown_protocols(system):
    with pytest.raises(FileNotFoundError, match="Folder not found"):
        open_store("memory://nowhere/x.store")
    system.makedirs("/not-a-store")
    with pytest.raises(FileNotFoundError, match=r"The folder has no header\.json, so it is not a Coterie store"):
        open_store("memory://not-a-store")
    with pytest.raises(DataFileError, match="fsspec cannot open this URL"):
        open_store("nonsense://bucket/x.store")


def test_damage_behind_an_address_is_named(both, system, monkeypatch):
    here, address = both
    name = address.removeprefix("memory:/") + "/values.npy"
    whole = system.cat_file(name)
    system.pipe_file(name, whole[:-3])
    with pytest.raises(DataFileError, match=rf"{address}/values\.npy: .*the file has {len(whole) - 3} bytes"):
        open_store(address)
    system.rm(name)
    with pytest.raises(DataFileError, match=rf"{address}/values\.npy: .*the file is missing"):
        open_store(address)
    system.pipe_file(name, whole)
    store = open_store(address)
    system.pipe_file(name, whole[:200])  # it shrinks after it was opened
    with pytest.raises(DataFileError, match=rf"{address}/values\.npy.* were requested, but .* were received"):
        store.part(0, 67)
    system.pipe_file(name, whole)
    with pytest.raises(DataFileError, match="only a store in a folder can be checked"):
        check_store(address)

    def gone(*args, **options):
        raise ConnectionError("the line is dead")

    monkeypatch.setattr(type(system), "cat_file", gone)
    with pytest.raises(DataFileError, match=r"the file could not be fetched .*the line is dead"):
        open_store(address)
    assert here.shape == (41, 67)


def test_a_small_file_behind_an_address_has_a_largest_size(system):
    system.pipe_file("/sizes/small", b"0123456789")
    place = Address("memory://sizes")
    assert place.read("small", 10) == b"0123456789"
    with pytest.raises(DataFileError, match=r"the file has 10 bytes\. The maximum is 9"):
        place.read("small", 9)
    assert place.start("small", 4) == (b"0123", 10)


@pytest.mark.parametrize("where", ["folder", "address"])
def test_names_that_are_read_one_by_one(both, where, monkeypatch):
    here, address = both
    store = open_store(here.path if where == "folder" else address)
    assert store.name_list() is store.feature_names  # few enough to be held
    monkeypatch.setattr(reading, "_MAX_NAMES_IN_MEMORY", 66)
    names = open_store(store.path).name_list()
    assert len(names) == 67
    assert [names[j] for j in range(67)] == list(here.feature_names)
    assert list(names) == list(here.feature_names)
    for place in (-1, 67):
        with pytest.raises(IndexError):
            names[place]


def test_names_whose_offsets_do_not_fit(tmp_path, monkeypatch):
    monkeypatch.setattr(reading, "_MAX_NAMES_IN_MEMORY", 0)
    path = write_store(tmp_path / "x.store", np.eye(3), feature_names=["ab", "c", "def"])
    file = path / "feature_names_offsets.npy"
    good = np.load(file)
    for bad in ([0, 4, 3, 6], [-1, 2, 3, 6], [0, 2, 3, 7]):
        file.write_bytes(file.read_bytes()[:128] + np.array(bad, dtype=good.dtype).tobytes())
        names = open_store(path).name_list()
        with pytest.raises(DataFileError, match="the string offsets are invalid"):
            [names[j] for j in range(3)]
    file.write_bytes(file.read_bytes()[:128] + good.tobytes())
    assert list(open_store(path).name_list()) == ["ab", "c", "def"]
