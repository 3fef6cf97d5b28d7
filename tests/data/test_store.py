"""The store: round trips, atomic writing, and detection of damage."""

import errno
import json
import mmap
import os
import re
import shutil
import subprocess
import sys
import tempfile
import textwrap
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse

from coterie import GroupDiscoveryClassifier
from coterie.data import (
    DataFileError,
    as_source,
    check_store,
    convert,
    open_features,
    open_store,
    write_store,
)
from coterie.data.readers import collect
from coterie.data.readers.reader import RowBlock
from coterie.data.store import format as store_format
from coterie.data.store.format import read_header, write_header
from tests.conftest import sparse_counts
from tests.data.conformance import SourceConformance, example
from tests.data.files import matrix

OLD_STORES = Path(__file__).parent / "stores"


class _StoreConformance(SourceConformance):
    @pytest.fixture(autouse=True)
    def _folder(self, tmp_path):
        self.folder = tmp_path


class TestSparseStore(_StoreConformance):
    def make(self, X):
        return open_store(write_store(self.folder / "s", sparse.csc_array(X.astype(np.int16)))).source


class TestDenseStore(_StoreConformance):
    def make(self, X):
        return open_store(write_store(self.folder / "s", X.astype(np.float32))).source


class TestStoreOfSparseRows(_StoreConformance):
    """Rows in blocks of 5, with a memory limit that writes a run for every one or two blocks."""

    def make(self, X):
        rows = sparse.csr_array(X.astype(np.float64))
        collect_limit, collect._MIN_ENTRIES = collect._MIN_ENTRIES, 100
        try:
            path = write_store(self.folder / "s", (rows[i : i + 5] for i in range(0, len(X), 5)), memory_limit=1 << 24)
        finally:
            collect._MIN_ENTRIES = collect_limit
        return open_store(path).source


class TestStoreOfDenseRows(_StoreConformance):
    def make(self, X):
        return open_store(write_store(self.folder / "s", (X[i : i + 7] for i in range(0, len(X), 7)))).source


class TestStoreOfFeatureBlocks(_StoreConformance):
    def make(self, X):
        S = sparse.csc_array(X.astype(np.uint8))
        return open_store(write_store(self.folder / "s", (S[:, j : j + 9] for j in range(0, 67, 9)), by="features")).source


@pytest.mark.parametrize("capacity", [1, 50, 300, 10_000])
@pytest.mark.parametrize("size", [1, 7, 41])
def test_runs_on_the_disk_change_nothing(tmp_path, rng, monkeypatch, capacity, size):
    X = sparse.csr_array(example(rng).astype(np.float64) * rng.standard_normal((41, 67)))
    monkeypatch.setattr(collect, "_MIN_ENTRIES", capacity)
    monkeypatch.setattr(collect, "_ENTRY_BYTES", 1 << 24)
    path = write_store(tmp_path / "s", (X[i : i + size] for i in range(0, 41, size)), memory_limit=1 << 24)
    expected = X.tocsc()
    store = check_store(path)
    for name, array in [("indptr", expected.indptr), ("indices", expected.indices), ("values", expected.data)]:
        np.testing.assert_array_equal(store.array(name), array)
        assert store.array(name).dtype == array.dtype
    assert os.listdir(tmp_path) == ["s"]
    assert {file.suffix for file in path.iterdir()} == {".json", ".npy"}  # no run is left behind
    assert len(list(path.iterdir())) == 6


def test_dense_rows_through_the_disk(tmp_path, rng):
    X = rng.standard_normal((30_000, 40)).astype(np.float32)  # a block is larger than a quarter of the memory
    store = check_store(
        write_store(tmp_path / "s", (X[i : i + 14_999] for i in range(0, 30_000, 14_999)), memory_limit=1 << 24)
    )
    np.testing.assert_array_equal(store.array("values"), X)
    assert sorted(file.name for file in store.path.iterdir()) == [
        "feature_mean.npy", "feature_norm.npy", "header.json", "values.npy",
    ]  # fmt: skip


def test_a_store_is_used_without_a_copy(tmp_path, rng):
    X = sparse.csc_array(example(rng).astype(np.uint8))
    source = open_store(write_store(tmp_path / "s", X)).source
    assert all(is_mapped(array) for array in source.arrays)
    source = open_store(write_store(tmp_path / "d", X.toarray())).source
    assert is_mapped(source.array)
    assert source.array.flags.f_contiguous
    assert not is_mapped(X.data)


def is_mapped(array):
    """Return True if the memory of an array is a mapped file."""
    while isinstance(array, np.ndarray):
        array = array.base
    return isinstance(array, mmap.mmap)


def test_moments_are_stored_and_equal(tmp_path, rng):
    X = sparse.csc_array(example(rng) * rng.standard_normal((41, 67)))
    stored, computed = open_store(write_store(tmp_path / "s", X)).source.moments(), as_source(X).moments()
    np.testing.assert_array_equal(stored.mean, computed.mean)
    np.testing.assert_array_equal(stored.norm, computed.norm)
    assert stored.nonnegative == computed.nonnegative
    weight = rng.random(41)
    weighted = open_store(tmp_path / "s").source.moments(weight)
    np.testing.assert_array_equal(weighted.mean, as_source(X).moments(weight).mean)


@pytest.mark.parametrize("labels", [[1, -1, 1], [0.5, 2, 3], ["ä", "b", "ä"], [True, False, True]])
def test_labels_names_and_info(tmp_path, labels):
    path = write_store(
        tmp_path / "s", np.eye(3), labels, feature_names=["α", "", "c"], sample_names=["x", "y", "z"],
        feature_info={"position": [7, 8, 9], "chromosome": ["1", "1", "X"]}, notes={"dropped": 4},
    )  # fmt: skip
    dataset = open_features(path)
    assert dataset.y.tolist() == labels
    assert dataset.feature_names == ["α", "", "c"]
    assert list(dataset.feature_names) == ["α", "", "c"]
    assert dataset.feature_names[-1] == "c"
    assert list(dataset.sample_names) == ["x", "y", "z"]
    assert dataset.feature_info["position"].tolist() == [7, 8, 9]
    assert list(dataset.feature_info["chromosome"]) == ["1", "1", "X"]
    assert dataset.notes == {"dropped": 4}
    assert dataset.format == "store"
    assert "3 samples x 3 features, dense, with labels, dropped=4" in repr(dataset)


def test_numpy_alone_can_read_it(tmp_path, rng):
    X = sparse.csc_array(example(rng).astype(np.float32))
    path = write_store(tmp_path / "s", X, range(41), feature_names=[f"f{j}" for j in range(67)])
    parts = {file.stem: np.load(file, allow_pickle=False) for file in path.glob("*.npy")}
    again = sparse.csc_array((parts["values"], parts["indices"], parts["indptr"]), shape=X.shape)
    assert (again != X).nnz == 0
    name = parts["feature_names_utf8"][slice(*parts["feature_names_offsets"][5:7])].tobytes().decode()
    assert name == "f5"
    assert (path / "values.npy").stat().st_size == X.data.nbytes + 128


def test_estimators_take_a_path_a_store_and_a_data_set(tmp_path, rng):
    X, y = sparse_counts(rng)
    path = write_store(tmp_path / "s", sparse.csc_array(X), y, feature_names=[f"w{j}" for j in range(120)])
    expected = GroupDiscoveryClassifier(5).fit(X, y)
    for data in (str(path), path, open_store(path), open_features(path), open_store(path).source):
        labels = y if data is not None and not hasattr(data, "y") and not isinstance(data, (str, Path)) else None
        model = GroupDiscoveryClassifier(5).fit(data, labels)
        assert model.groups_ == expected.groups_
        assert model.feature_names_in_[7] == "w7"
        np.testing.assert_array_equal(model.predict(data), expected.predict(X))
        assert model.transform(data).shape == (80, 5)
    with pytest.raises(ValueError, match="the target y is None"):
        GroupDiscoveryClassifier(5).fit(write_store(tmp_path / "t", X))


@pytest.mark.parametrize("name", sorted(folder.name for folder in OLD_STORES.iterdir()))
def test_stores_of_version_1_open(name):
    """The format of the first release; the files never change."""
    expected = json.loads((OLD_STORES / name / "expected.json").read_text())
    store = check_store(OLD_STORES / name)
    assert store.header["version"] == expected["version"]
    columns = store.source.block(0, store.shape[1])
    dense = columns.toarray() if store.is_sparse else columns
    assert dense.tolist() == expected["X"]
    assert dense.dtype == expected["dtype"]
    assert store.y.tolist() == expected["y"]
    assert list(store.feature_names) == expected["feature_names"]
    np.testing.assert_allclose(store.source.moments().norm, as_source(dense.astype(float)).moments().norm)


# Writing ---------------------------------------------------------------------------------------


def test_an_existing_store_is_replaced_only_if_requested(tmp_path):
    path = write_store(tmp_path / "s", np.eye(3))
    with pytest.raises(FileExistsError, match="overwrite=True"):
        write_store(path, np.eye(4))
    assert open_store(path).shape == (3, 3)
    mapped = open_store(path).source
    for size in (4, 5):
        write_store(path, np.eye(size), overwrite=True)
        assert check_store(path).shape == (size, size)
        assert len(list(path.glob("*.npy"))) == 3  # those of the old one are gone
        assert read_header(path).keys() == read_header(write_store(tmp_path / f"new-{size}", np.eye(size))).keys()
    np.testing.assert_array_equal(mapped.block(0, 3), np.eye(3))  # open maps remain valid


@pytest.mark.parametrize("kind", ["file", "folder"])
def test_other_things_are_never_overwritten(tmp_path, kind):
    target = tmp_path / "thing"
    target.write_text("mine") if kind == "file" else target.mkdir()
    with pytest.raises(FileExistsError, match="not a Coterie store"):
        write_store(target, np.eye(3), overwrite=True)
    assert target.exists()


def test_a_damaged_store_with_a_valid_header_can_be_overwritten(tmp_path):
    path = write_store(tmp_path / "s", np.eye(3))
    (path / "values.npy").write_bytes(b"")
    write_store(path, np.eye(4), overwrite=True)
    assert check_store(path).shape == (4, 4)
    (path / "header.json").write_text((path / "header.json").read_text().replace("4", "5", 1))
    with pytest.raises(FileExistsError, match=r"not a Coterie store \(or its header is damaged\)"):
        write_store(path, np.eye(5), overwrite=True)


@pytest.mark.parametrize("header", ["{}", "mine", '{"format": "coterie-store", "version": 1, "arrays": {}}'])
def test_a_folder_with_another_header_is_no_store(tmp_path, header):
    folder = tmp_path / "m"
    folder.mkdir()
    (folder / "header.json").write_text(header)
    (folder / "precious.npy").write_bytes(b"precious")
    with pytest.raises(FileExistsError, match="not a Coterie store"):
        write_store(folder, np.eye(3), overwrite=True)
    assert sorted(os.listdir(folder)) == ["header.json", "precious.npy"]
    assert (folder / "header.json").read_text() == header


def test_other_files_in_a_store_stay(tmp_path):
    path = write_store(tmp_path / "s", np.eye(3))
    (path / "precious.npy").write_bytes(b"precious")
    (path / "values-0123abcd.npy").write_bytes(b"looks like ours")
    for size in (4, 5):
        write_store(path, np.eye(size), overwrite=True)
        assert (path / "precious.npy").read_bytes() == b"precious"
        assert (path / "values-0123abcd.npy").exists()
        assert len(os.listdir(path)) == 3 + 1 + 2


@pytest.mark.parametrize("step", [pytest.param(k, marks=() if k in (0, 2, 4, 7) else pytest.mark.slow) for k in range(8)])
def test_leftovers_of_a_killed_replacement_are_removed(tmp_path, step):
    """Killed before each rename of the exchange, and after the last."""
    path = write_store(tmp_path / "s", np.eye(3))
    (path / "precious.npy").write_bytes(b"precious")
    code = f"""
        import os, signal, numpy as np
        from coterie.data import write_store
        renames = [0]
        def counted(original):
            def call(*names, **options):
                if renames[0] == {step}:
                    os.kill(os.getpid(), signal.SIGKILL)
                renames[0] += 1
                return original(*names, **options)
            return call
        os.rename, os.replace = counted(os.rename), counted(os.replace)
        write_store({str(path)!r}, np.eye(4), overwrite=True)
        os.kill(os.getpid(), signal.SIGKILL)
    """
    assert subprocess.run([sys.executable, "-c", textwrap.dedent(code)], check=False).returncode == -9
    assert check_store(path).shape == ((3, 3) if step < 5 else (4, 4))  # old header, 3 arrays, new header, clean header
    write_store(path, np.eye(5), overwrite=True)
    assert check_store(path).shape == (5, 5)
    assert len(os.listdir(path)) == 3 + 1 + 1
    assert (path / "precious.npy").read_bytes() == b"precious"
    assert os.listdir(tmp_path) == ["s"]


def test_a_header_cannot_have_files_elsewhere_removed(tmp_path):
    path = write_store(tmp_path / "s", np.eye(3))
    (tmp_path / "precious.npy").write_bytes(b"precious")
    header = read_header(path)
    write_header(path, header | {"leftover": ["../precious.npy", str(tmp_path / "precious.npy"), 5, "gone.npy"]})
    write_store(path, np.eye(4), overwrite=True)
    assert sorted(os.listdir(tmp_path)) == ["precious.npy", "s"]


def test_a_failure_leaves_nothing_behind(tmp_path):
    def blocks():
        yield np.eye(3)
        raise RuntimeError("the source has gone")

    with pytest.raises(RuntimeError, match="has gone"):
        write_store(tmp_path / "s", blocks())
    assert os.listdir(tmp_path) == []
    path = write_store(tmp_path / "s", np.eye(3))
    with pytest.raises(RuntimeError, match="has gone"):
        write_store(path, blocks(), overwrite=True)
    assert os.listdir(tmp_path) == ["s"]
    np.testing.assert_array_equal(check_store(path).array("values"), np.eye(3))


def test_leftovers_of_killed_runs_are_removed_and_those_of_running_ones_are_not(tmp_path):
    code = f"""
        import os, signal, numpy as np
        from coterie.data import write_store
        def blocks():
            yield np.eye(3)
            os.kill(os.getpid(), signal.SIGKILL)
        write_store({str(tmp_path / "s")!r}, blocks())
    """
    assert subprocess.run([sys.executable, "-c", textwrap.dedent(code)], check=False).returncode == -9
    assert sorted(name.rpartition(".")[2] for name in os.listdir(tmp_path)) == ["claim", "partial"]

    def blocks():
        yield np.eye(3)
        assert len(list(tmp_path.glob(".s.*.partial"))) == 1  # of this test
        with ThreadPoolExecutor(1) as pool:
            other = pool.submit(write_store, tmp_path / "s", np.eye(2))
            with pytest.raises(BlockingIOError, match="Another writer"):
                other.result()
        yield np.eye(3)

    write_store(tmp_path / "s", blocks())
    assert os.listdir(tmp_path) == ["s"]
    assert check_store(tmp_path / "s").shape == (6, 3)


def test_what_another_host_is_writing_is_not_removed(tmp_path):
    """Locks may not work across hosts, so the lock of another host appears to be free."""
    theirs = tmp_path / ".s.elsewhere.4711.0123abcd.partial"
    (theirs / "scratch").mkdir(parents=True)
    write_store(tmp_path / "s", np.eye(3))
    assert sorted(os.listdir(tmp_path)) == [theirs.name, "s"]


def test_a_file_system_without_locks(tmp_path, monkeypatch):
    fcntl = pytest.importorskip("fcntl")

    def refuse(file, operation):
        raise OSError(errno.ENOLCK, os.strerror(errno.ENOLCK))

    monkeypatch.setattr(fcntl, "flock", refuse)
    for size in (3, 4):
        assert check_store(write_store(tmp_path / "s", np.eye(size), overwrite=True)).shape == (size, size)
    assert os.listdir(tmp_path) == ["s"]


def test_bad_values_are_counted_and_placed(tmp_path, rng):
    X = np.ones((6, 4))
    X[:, 1] = range(6)
    X[2, 1], X[5, 1], X[3, 3] = np.nan, np.inf, -np.inf
    message = r"3 NaN or infinite value\(s\) in 2 feature\(s\)\. The first is in sample 2 of feature 1"
    for data in (X, sparse.csc_array(X), (X[i : i + 2] for i in range(0, 6, 2)), (sparse.csr_array(X) for _ in range(1))):
        with pytest.raises(ValueError, match=message):
            write_store(tmp_path / "s", data)
    with pytest.raises(ValueError, match=r"feature 1 \('b'\)"):
        write_store(tmp_path / "s", X, feature_names="abcd")
    blocks = (np.array([[1.0, 2.0], [3.0, k * 1e200]]) for k in (0, 1))
    with pytest.raises(ValueError, match="feature 3 are too large"):
        write_store(tmp_path / "s", blocks, by="features")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"X": np.eye(3), "y": [1, 2]}, "there are 2 labels, but 3 samples"),
        ({"X": np.eye(3), "feature_names": ["a"]}, "there are 1 feature names, but 3 features"),
        ({"X": np.eye(3), "sample_names": ["a"]}, "there are 1 sample names, but 3 samples"),
        ({"X": np.empty((0, 3))}, "contains no data"),
        ({"X": iter(())}, "contains no data"),
        ({"X": np.eye(3), "by": "rows"}, "by='rows' must be"),
        ({"X": [np.eye(3), np.eye(4)]}, "A block of samples has 4 features, but previous blocks have 3"),
        ({"X": [sparse.eye_array(3), sparse.eye_array(4)]}, "A block of samples has 4 features, but previous blocks have 3"),
        ({"X": [np.eye(3), np.eye(4)], "by": "features"}, "A block of features has 4 samples, but previous blocks have 3"),
        ({"X": [np.eye(3, dtype=np.int8), np.eye(3)]}, "A block has values of type float64, but previous blocks have int8"),
        ({"X": np.eye(3), "memory_limit": 10}, "memory_limit=10 must be at least"),
    ],
)
def test_wrong_arguments(tmp_path, arguments, message):
    with pytest.raises(ValueError, match=message):
        write_store(tmp_path / "s", **arguments)
    assert os.listdir(tmp_path) == []


def test_a_folder_that_is_not_there(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"Folder .*no does not exist\. Create it before writing s"):
        write_store(tmp_path / "no" / "s", np.eye(3))


def in_a_process(code):
    """Run code in another process and return its output."""
    run = subprocess.run([sys.executable, "-c", textwrap.dedent(code)], capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stderr
    return run.stdout


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs POSIX limits")
@pytest.mark.parametrize("limit", [1, 100, 5_000, 100_000])
def test_a_full_disk(tmp_path, limit):
    """A limit on file sizes simulates a full disk: the write fails at the same place."""
    old = write_store(tmp_path / "old", np.eye(3))
    code = f"""
        import resource, signal, numpy as np
        from coterie.data import write_store
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, ({limit}, {limit}))
        for name, overwrite in [("new", False), ("old", True)]:
            try:
                write_store({str(tmp_path)!r} + "/" + name, np.ones((500, 500)), overwrite=overwrite)
            except OSError as error:
                print(error)
    """
    lines = in_a_process(code).splitlines()
    assert len(lines) == 2
    for line in lines:
        assert re.search(
            r"\(\d+\.\d MB were written, [\d,.]+ MB are free\)\. Nothing was saved\. Free some space or write", line
        )
        assert str(tmp_path) in line
    assert os.listdir(tmp_path) == ["old"]
    assert check_store(old).shape == (3, 3)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs POSIX permissions")
def test_a_read_only_folder():
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o755)
        (Path(folder) / "locked").mkdir(mode=0o555)
        code = f"""
            import os, numpy as np
            from coterie.data import write_store
            if os.getuid() == 0:
                os.setuid(65534)
            try:
                write_store({folder + "/locked/s"!r}, np.eye(3))
            except PermissionError as error:
                print(error)
        """
        output = in_a_process(code)
        assert "locked" in output
        assert "Folder is not writable (Permission denied). Choose another folder" in output
        assert os.listdir(Path(folder) / "locked") == []


# Damage ----------------------------------------------------------------------------------------


@pytest.fixture
def store(tmp_path, rng):
    X = sparse.csc_array(example(rng).astype(np.float32))
    return write_store(tmp_path / "s", X, ["a", "b"] * 20 + ["c"], feature_names=[f"f{j}" for j in range(67)])


def test_an_additional_blank_in_the_header_is_found(store):
    """Found by the mutation loop: blanks do not change the parsed content, so its checksum does not detect them."""
    header = store / "header.json"
    header.write_text(header.read_text().replace(": ", ":  ", 1))
    open_store(store)
    with pytest.raises(DataFileError, match=r"header\.json.*changed after it was written"):
        check_store(store)


def test_every_flipped_byte_is_found(store):
    for file in store.iterdir():
        content = file.read_bytes()
        for place in range(0, len(content), max(1, len(content) // 40)):
            broken = bytearray(content)
            broken[place] ^= 1 << (place % 8)
            file.write_bytes(bytes(broken))
            with pytest.raises((DataFileError, OSError)) as caught:
                check_store(store)
            assert str(store) in str(caught.value)
        file.write_bytes(content)
    check_store(store)


@given(
    name=st.sampled_from(["indptr", "indices", "feature_names_offsets", "labels"]),
    place=st.integers(0, 10**6),
    value=st.integers(-(2**31), 2**31 - 1),
)
def test_a_damaged_store_never_crashes(tmp_path_factory, name, place, value):
    """Without checksums, opening raises an error or returns data of the right shape, without invalid memory access."""
    folder = tmp_path_factory.getbasetemp() / "damage"
    shutil.rmtree(folder, ignore_errors=True)
    X = sparse.csc_array(example(np.random.default_rng(0)).astype(np.float32))
    write_store(folder, X, ["a", "b"] * 20 + ["c"], feature_names=[f"f{j}" for j in range(67)])
    array = np.load(folder / f"{name}.npy", mmap_mode="r+")
    array[place % len(array)] = value
    array.flush()
    message = ""
    try:
        dataset = open_features(folder)
        list(dataset.feature_names)
        assert len(dataset.y) == 41
        assert dataset.source.products(np.ones((41, 2))).shape == (67, 2)
    except DataFileError as error:
        message = str(error)
    assert not message or "the store is damaged" in message


def set_header(store, change):
    """Change the header and update its checksum."""
    header = json.loads((store / "header.json").read_text())
    change(header)
    header["header_crc32"] = store_format._header_checksum(header)
    (store / "header.json").write_text(json.dumps(header))


HEADERS = [
    (lambda h: h.update(format="zip"), "not a Coterie store"),
    (lambda h: h.update(version=2), "format version 2, but this version of Coterie reads version 1. Update Coterie"),
    (lambda h: h.update(version=0), "format version 0, but this version of Coterie reads version 1"),
    (lambda h: h.update(version="x"), "format version 'x', but this version of Coterie reads version 1"),
    (lambda h: h.update(shape=[1]), r"the shape is \[1\]"),
    (lambda h: h.update(shape=[41, 67, 1]), r"the shape is \[41, 67, 1\]"),
    (lambda h: h.update(shape=[-1, 67]), r"the shape is \[-1, 67\]"),
    (lambda h: h.update(shape=[41.0, 67]), r"the shape is \[41.0, 67\]"),
    (lambda h: h.update(shape=[0, 67]), "array 'labels' is missing or its shape is not \\[0\\]"),
    (lambda h: h.update(shape=[41, 0]), "missing or its shape is not \\[0\\]"),
    (lambda h: h.update(shape=[41, 10**12]), "missing or its shape is not"),
    (lambda h: h.update(arrays=None), "the header lists no arrays"),
    (lambda h: h["arrays"].pop("values"), "missing or its shape is not"),
    (lambda h: h["arrays"].pop("indices"), "missing or its shape is not"),
    (lambda h: h["arrays"].pop("feature_mean"), "missing or its shape is not"),
    (lambda h: h["arrays"]["values"].update(file="../values.npy"), "has the file name"),
    (lambda h: h["arrays"]["values"].update(file="/etc/passwd"), "has the file name"),
    (lambda h: h["arrays"]["values"].update(dtype="|O"), "has the type '|O'"),
    (lambda h: h["arrays"]["values"].update(dtype="<f8"), "the file has"),
    (lambda h: h["arrays"]["values"].update(shape=[-1]), r"has the shape \[-1\]"),
    (lambda h: h["arrays"]["values"].update(shape=[10**30]), "the file has"),
    (lambda h: h["arrays"]["values"].update(fortran_order=True), "npy header does not match"),
    (lambda h: h["arrays"]["values"].pop("crc32"), "the entry of array 'values' is incomplete"),
    (lambda h: h["arrays"].update(labels=h["arrays"]["values"]), "array 'labels' is missing or its shape is not"),
]


@pytest.mark.parametrize(("change", "message"), HEADERS)
def test_invalid_headers(store, change, message):
    set_header(store, change)
    with pytest.raises(DataFileError, match=message):
        open_store(store)


@pytest.mark.parametrize(("label", "good"), [(-1, False), (0, True), (1, True), (2, False)])
def test_labels_beyond_the_classes(tmp_path, label, good):
    path = write_store(tmp_path / "s", np.eye(3), ["no", "yes", "no"])
    labels = np.load(path / "labels.npy")
    labels[1] = label
    with open(path / "labels.npy", "r+b") as file:
        file.seek(store_format.NPY_HEADER_BYTES)
        file.write(labels.tobytes())
    if good:
        assert open_store(path).y[1] == ["no", "yes"][label]
    else:
        with pytest.raises(DataFileError, match=r"labels\.npy: the store is damaged: a label is not one of the classes"):
            open_store(path).y  # noqa: B018


def test_missing_and_truncated_files(store):
    (store / "values.npy").rename(store / "gone")
    with pytest.raises(DataFileError, match=r"values\.npy: the store is damaged: the file is missing"):
        open_store(store)
    (store / "values.npy").write_bytes((store / "gone").read_bytes()[:-3])
    with pytest.raises(DataFileError, match=r"the file has \d+ bytes instead of \d+"):
        open_store(store)
    (store / "header.json").unlink()
    with pytest.raises(FileNotFoundError, match=r"not a Coterie store\. Create a store with"):
        open_store(store)
    with pytest.raises(FileNotFoundError, match="Folder not found"):
        open_store(store / "nowhere")
    with pytest.raises(DataFileError, match="not a Coterie store"):
        open_features(store)


def test_a_store_is_not_converted_again(store, tmp_path):
    with pytest.raises(DataFileError, match="this is a store already"):
        convert(store, tmp_path / "t")
    with pytest.raises(TypeError, match="does not apply to a store"):
        open_features(store, zero_based=True)


def test_labels_from_a_separate_file(store, tmp_path):
    (tmp_path / "y.txt").write_text("\n".join(["yes", "no"][k % 2] for k in range(41)))
    assert open_features(store, label=tmp_path / "y.txt").y[:3].tolist() == ["yes", "no", "yes"]
    assert open_features(store, label=False).y is None
    (tmp_path / "y.txt").write_text("1\n2")
    with pytest.raises(DataFileError, match=r"the file has 2 labels, but .* has 41 samples"):
        open_features(store, label=tmp_path / "y.txt")


def test_row_blocks_are_not_converted(tmp_path):
    block = RowBlock(np.array([1, 3]), np.array([2, 0, 1], dtype=np.int32), np.array([1.0, 2.0, 3.0]))
    np.testing.assert_array_equal(
        matrix(open_features(write_store(tmp_path / "s", iter([block])))).toarray(), [[0, 0, 1], [2, 3, 0]]
    )


@pytest.mark.parametrize("kind", ["dense", "sparse"])
@pytest.mark.parametrize("name", ["feature_mean", "feature_norm", "values"])
@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_bad_values_in_a_store_are_found_in_use(tmp_path, kind, name, value):
    X = np.arange(1.0, 13.0).reshape(4, 3)
    path = write_store(tmp_path / "s", X if kind == "dense" else sparse.csc_array(X), [0, 0, 1, 1])
    with open(path / f"{name}.npy", "r+b") as file:
        file.seek(128 + 8)
        file.write(np.float64(value).tobytes())
    store = open_store(path)
    with pytest.raises(DataFileError, match=rf"{name}\.npy: the store is damaged: .*feature [01].* NaN"):
        store.source.products(np.zeros((4, 1)))
    if name == "values":
        with pytest.raises(DataFileError, match="the store is damaged: feature 0 has a NaN"):
            store.source.products(np.ones((4, 1)), features=np.array([2, 0]))
        with pytest.raises(DataFileError, match="the store is damaged: a feature has a NaN"):
            store.source.columns(np.array([0]))
        with pytest.raises(ValueError, match="NaN"):
            GroupDiscoveryClassifier(1).fit(store)


def test_a_negative_norm_is_found(tmp_path):
    path = write_store(tmp_path / "s", np.eye(3))
    file = path / "feature_norm.npy"
    file.write_bytes(file.read_bytes()[:-8] + np.float64(-1).tobytes())
    with pytest.raises(DataFileError, match="the value of feature 2 is NaN, infinite or negative"):
        _ = open_store(path).source


def test_a_header_of_any_size_or_content(tmp_path):
    path = write_store(tmp_path / "s", np.eye(3), feature_info={"gene": list("abc")})

    def rewrite(**changes):
        read_header, write_header = store_format.read_header, store_format.write_header
        content = {key: value for key, value in read_header(path).items() if key not in ("format", "version", "header_crc32")}
        write_header(path, {**content, **changes})

    read_header = store_format.read_header
    original = (path / "header.json").read_bytes()
    for changes, words in (
        ({"feature_info": ["other"]}, "array 'info_other' is missing"),
        ({"feature_info": 3}, "feature_info is 3"),
        ({"arrays": {"values": {**read_header(path)["arrays"]["values"], "dtype": {}}}}, "has the type {}"),
    ):
        rewrite(**changes)
        with pytest.raises(DataFileError, match=words):
            _ = open_store(path).feature_info
        (path / "header.json").write_bytes(original)
    (path / "header.json").write_bytes(original + b" " * (1 << 24))
    with pytest.raises(DataFileError, match="The maximum for its kind is"):
        open_store(path)
