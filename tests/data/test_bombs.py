"""Small files that would require much memory are rejected before it is allocated, with a helpful message."""

import gzip
import subprocess
import sys
import zipfile

import numpy as np
import pytest

from coterie import bounds
from coterie.data import DataFileError, convert, open_features
from coterie.data.readers import h5ad, h5ad_check

LIMIT = 1 << 24  # smallest limit of convert, in addition to bounds.MIN_CHECKED_BYTES
REMEDY = r"memory_limit is 16\.78 MB\. If the file is not damaged, increase memory_limit\."


def refused(path, match, **options):
    """Assert that opening the file under a memory limit raises an error."""
    with pytest.raises(DataFileError, match=match) as caught:
        convert(path, path.parent / "store", memory_limit=LIMIT, **options)
    assert str(caught.value).startswith(str(path))
    assert "\n" not in str(caught.value)
    assert not (path.parent / "store").exists()
    return caught.value


def test_a_line_that_does_not_end(tmp_path):
    path = tmp_path / "x.svm.gz"
    path.write_bytes(gzip.compress(b"1 1:1\n-1 2:1\n1" + b" " * 40_000_000, 1))
    assert refused(path, f"a line of more than [0-9.]+ MB would take .* {REMEDY}").line == 3


def test_a_line_is_as_long_as_memory_allows(tmp_path, monkeypatch):
    path = tmp_path / "x.svm"
    path.write_bytes(b"1 1:1\n-1 2:1" + b" " * 40_000_000 + b"3:1\n1 1:2\n")
    assert open_features(path).shape == (3, 3)
    monkeypatch.setattr(bounds, "free_memory", lambda: 10**8)
    with pytest.raises(DataFileError, match=r"100 MB are free\. If the file is not damaged, use a machine with more memory"):
        open_features(path)


def test_a_header_with_more_columns_than_memory(tmp_path):
    path = tmp_path / "x.csv"
    path.write_text(",".join(f"c{j}" for j in range(100_000)) + "\n")
    refused(path, f"x.csv:1: a table of 100000 columns would take 200 MB of memory, but {REMEDY}")
    path.write_bytes(b"a" * 30_000_000)
    refused(path, "x.csv:1: a line of more than", format="csv")


def test_rows_without_end(tmp_path, monkeypatch):
    monkeypatch.setattr(bounds, "MIN_CHECKED_BYTES", 0)
    path = tmp_path / "x.csv.gz"
    path.write_bytes(gzip.compress(b"a,y\n" + b"1,u\n" * 1_500_000, 1))
    refused(path, f"labels .*would take .* {REMEDY}")
    path = tmp_path / "x.svm.gz"
    path.write_bytes(gzip.compress(b"1 1:1\n" * 1_500_000, 1))
    refused(path, f"labels of more than [0-9]+ samples would take .* {REMEDY}")


def test_rows_of_parquet(tmp_path):
    pa, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    zeros = pa.array(np.zeros(4_000_000, dtype=np.int8))
    parquet.write_table(pa.table({"a": zeros, "y": zeros}), tmp_path / "x.parquet")
    refused(tmp_path / "x.parquet", f"a column of 4000000 samples would take 128 MB of memory, but {REMEDY}")


def test_large_groups_of_rows_are_read_by_pages(tmp_path, monkeypatch):
    pa, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    from coterie.data.readers import typed_tables

    values = np.arange(100_000) * 1.5
    parquet.write_table(pa.table({"a": values, "y": values > 9}), tmp_path / "x.parquet")
    monkeypatch.setattr(typed_tables, "MIN_CHECKED_BYTES", 1000)
    data = open_features(tmp_path / "x.parquet")
    np.testing.assert_array_equal(data.source.array[:, 0], values)


def test_sheets_that_unpack_to_more_than_memory(tmp_path):
    openpyxl = pytest.importorskip("openpyxl")
    book = openpyxl.Workbook()
    for row in (("a", "y"), (1, 0), (2, 1)):
        book.active.append(row)
    book.save(tmp_path / "x.xlsx")
    assert open_features(tmp_path / "x.xlsx").shape == (2, 1)
    with zipfile.ZipFile(tmp_path / "x.xlsx", "a", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("xl/more.xml", bytes(32_000_000))
    refused(tmp_path / "x.xlsx", rf"the sheets would take 96\.\d+ MB of memory, but {REMEDY}")
    (tmp_path / "x.xlsx").write_bytes((tmp_path / "x.xlsx").read_bytes()[:400])
    with pytest.raises(DataFileError, match=r"the file is damaged or not a \.xlsx file"):
        open_features(tmp_path / "x.xlsx")


def test_zeros_that_unpack_to_more_than_memory(tmp_path):
    np.savez_compressed(tmp_path / "x.npz", X=np.zeros((1000, 6000)))
    refused(tmp_path / "x.npz", f"the unpacked content would take 96 MB of memory, but {REMEDY}")


def test_more_entries_than_a_matrix_has(tmp_path):
    path = tmp_path / "x.mtx"
    text = "%%MatrixMarket matrix coordinate real general\n2000 2000 {}\n"
    entries = "".join(f"{i} {j} 1\n" for i in range(1, 1001) for j in range(1, 1401))
    path.write_text(text.format(10**12) + entries)
    refused(path, f"a matrix of more than [0-9]+ entries would take .* {REMEDY}")
    path.write_text(text.format(3) + entries)
    refused(path, "too long: it has at least [0-9]+ entries instead of the 3 stated in line 2")


def test_names_of_another_file(tmp_path):
    path = tmp_path / "x.svm"
    path.write_text("1 1:1\n")
    (tmp_path / "names.gz").write_bytes(gzip.compress(b"a\n" * 10_000_000, 1))
    with pytest.raises(DataFileError, match=rf"names.gz: the text would take .* {REMEDY}"):
        convert(path, tmp_path / "s", feature_names=tmp_path / "names.gz", memory_limit=LIMIT)


def test_number_of_features_from_one_index(tmp_path, monkeypatch):
    path = tmp_path / "x.svm"
    path.write_text("1 30000000:1\n")
    monkeypatch.setattr(bounds, "free_memory", lambda: 10**9)
    for reading in (open_features, lambda path: convert(path, tmp_path / "s")):
        with pytest.raises(DataFileError, match=r"would take 1\.2 GB of memory, but 1 GB are free"):
            reading(path)


class TestH5ad:
    """Damaged files on which HDF5 hangs or crashes are detected in another process."""

    @pytest.fixture
    def path(self, tmp_path):
        anndata = pytest.importorskip("anndata")
        import pandas as pd

        obs, var = (pd.DataFrame(index=list(names)) for names in ("abc", "de"))
        anndata.AnnData(np.ones((3, 2), dtype=np.float32), obs=obs, var=var).write_h5ad(tmp_path / "x.h5ad")
        return tmp_path / "x.h5ad"

    def change(self, path, name, shape, dtype, **options):
        import h5py

        with h5py.File(path, "a") as file:
            attributes = dict(file[name].attrs)
            del file[name]
            file.create_dataset(name, shape=shape, dtype=dtype, **options).attrs.update(attributes)

    def test_names_that_are_not_there(self, path):
        import h5py

        self.change(path, "var/_index", (10**9,), h5py.string_dtype(), chunks=(1 << 16,))
        with pytest.raises(DataFileError, match="the content other than X would take 100 GB of memory"):
            open_features(path)
        self.change(path, "var/_index", (10**5,), h5py.string_dtype(), chunks=(1 << 16,))
        with pytest.raises(DataFileError, match="var/_index states 100000 strings but stores none"):
            open_features(path)

    def test_a_chunk_that_is_larger_than_memory(self, path):
        self.change(path, "X", (3, 2), np.float32, chunks=(10_000, 10_000), maxshape=(None, None))
        refused(path, f"a chunk of the matrix would take 1.2 GB of memory, but {REMEDY}")

    @pytest.mark.parametrize("code", ["import os; os.abort()", "raise SystemExit(1)"])
    def test_a_crash_of_the_library_is_not_ours(self, path, code, tmp_path, monkeypatch):
        (tmp_path / "crash.py").write_text(code)
        monkeypatch.setattr(h5ad, "_SCRIPT", tmp_path / "crash.py")
        with pytest.raises(DataFileError, match="the HDF5 library hangs or crashes"):
            open_features(path)

    def test_a_library_that_sleeps(self, path, tmp_path, monkeypatch):
        (tmp_path / "sleep.py").write_text("import time; time.sleep(100)")
        monkeypatch.setattr(h5ad, "_SCRIPT", tmp_path / "sleep.py")
        monkeypatch.setattr(h5ad, "_CHECK_TIMEOUT", 0.1)
        with pytest.raises(DataFileError, match="hangs or crashes"):
            open_features(path)

    def test_a_library_that_loops_is_ended(self):
        begin = f"import sys; sys.path.insert(0, {str(h5ad._SCRIPT.parent)!r})"
        code = f"{begin}; import h5ad_check; h5ad_check._limit_cpu_time(1)\nwhile 1: pass"
        assert subprocess.run([sys.executable, "-c", code], check=False, timeout=60).returncode < 0

    def test_what_the_look_finds(self, path, monkeypatch):
        monkeypatch.setattr(h5ad_check, "_limit_cpu_time", lambda seconds: None)  # do not limit this process
        found = h5ad_check.measure(str(path), 1 << 40)
        assert found["strings"] == 5
        assert 500 <= found["needs"] < 10_000


@pytest.mark.parametrize("method", [zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA, 99])
def test_zip_files_packed_in_other_ways(tmp_path, method):
    import io

    buffer = io.BytesIO()
    np.save(buffer, np.eye(3))
    path = tmp_path / "x.npz"
    with zipfile.ZipFile(path, "w", method if method != 99 else zipfile.ZIP_STORED) as archive:
        archive.writestr("X.npy", buffer.getvalue())
    if method != 99:
        assert open_features(path).shape == (3, 3)
        return
    content = bytearray(path.read_bytes())
    for place in (8, content.index(b"PK\x01\x02") + 10):
        content[place] = 99
    path.write_bytes(content)
    with pytest.raises(DataFileError, match=r"the file is damaged or not an \.npz file \(That compression method"):
        open_features(path)


def test_index_pointers_that_scipy_does_not_check(tmp_path):
    """SciPy skips its check if the last pointer is 0, and its conversion then writes out of bounds."""
    pointers = np.array([0, 2, 1 << 30, 0], dtype=np.int32)
    indices = np.array([0, 1], dtype=np.int32)
    for kind, data in (("csr", np.ones(2)), ("csc", np.ones(2)), ("bsr", np.ones((2, 1, 1)))):
        path = tmp_path / f"{kind}.npz"
        np.savez(path, format=kind.encode(), shape=(3, 3), data=data, indices=indices, indptr=pointers)
        with pytest.raises(DataFileError, match="not a valid sparse matrix: indptr decreases"):
            open_features(path)


def test_memory_of_a_snp_table_is_checked_before_it_is_split(tmp_path):
    pytest.importorskip("bed_reader")
    (tmp_path / "g.bed").write_bytes(b"\x6c\x1b\x01")
    (tmp_path / "g.fam").write_text("f s 0 0 0 1\n")
    (tmp_path / "g.bim").write_text("1 rs 0 1 A C\n" * 600_000)
    refusal = r"g\.bim: the table would take 156 MB of memory, but memory_limit is 1.049 MB"
    with bounds.memory_limit(1 << 20), pytest.raises(ValueError, match=refusal):
        open_features(tmp_path / "g.bed")
