"""The registry of formats: entries are complete, and messages and pages agree with them."""

import gzip
import subprocess
import sys
from pathlib import Path

import pytest

import coterie.data
from coterie.data import FORMATS, DataFileError, open_features
from coterie.data.readers import formats
from coterie.data.readers.byte_stream import read_lines
from coterie.data.readers.reader import Reader
from coterie.data.readers.tabular import TabularReader

PAGE = Path(__file__).resolve().parents[2] / "docs" / "reference" / "store.md"
every_format = pytest.mark.parametrize("entry", FORMATS.values(), ids=list(FORMATS))


@every_format
def test_an_entry_loads_its_reader(entry):
    reader = entry.load()
    assert issubclass(reader, Reader)
    assert reader.format == entry.name
    assert ("label" in entry.options()) == bool(entry.labels)  # without the option, labels come from a text file
    assert entry.table == issubclass(reader, TabularReader)
    assert entry.description
    assert entry.suffixes


# First bytes of formats with the same magic bytes: a zip archive with its first entry.
HEADS = {
    "xlsx": b"PK\x03\x04" + bytes(22) + b"\x13\0\0\0[Content_Types].xml",
    "npz": b"PK\x03\x04" + bytes(22) + b"\x05\0\0\0X.npy",
}


@every_format
def test_an_entry_can_be_recognised(entry):
    assert entry.magic or entry.looks_like
    for magic in entry.magic:
        head = HEADS.get(entry.name, magic + b"...")
        assert next(other.name for other in FORMATS.values() if other.begins(head)) == entry.name
        assert not any(magic.startswith(refused) for refused in formats.REFUSED)
    for suffix in entry.suffixes:
        assert suffix == suffix.lower()
        assert [other.name for other in FORMATS.values() if suffix in other.suffixes] == [entry.name]


@every_format
def test_the_page_about_files_has_the_format_and_its_options(entry):
    rows = [line for line in PAGE.read_text().splitlines() if f"`{entry.name}`" in line.partition("|")[2].partition("|")[0]]
    assert len(rows) == 1, f"docs/reference/store.md has no row, or several, for {entry.name}"
    for option in set(entry.options()) - {"label"}:
        assert f"`{option}=`" in rows[0], f"docs/reference/store.md does not tell of {option}= for {entry.name}"


@every_format
def test_options_are_described_where_the_docstring_sends_readers(entry):
    described = entry.load().__doc__
    if ":class:`CsvReader`" in described:
        described += FORMATS["csv"].load().__doc__
    for option in entry.options():
        assert option in described


def test_descriptions(monkeypatch):
    monkeypatch.setattr(formats, "FORMATS", {name: FORMATS[name] for name in ("libsvm", "npz", "csv", "plink", "tsv")})
    assert formats.describe_formats() == "LIBSVM text, .npz, CSV, PLINK .bed, TSV"
    assert formats.describe_labels() == (
        "a key (.npz), a column (CSV, TSV), a column of the phenotypes (PLINK .bed), or a text file with one label per line"
    )


def test_a_new_entry_suffices_for_opening(tmp_path, monkeypatch):
    """A format is detected, opened and listed by its entry alone."""
    entry = formats.Format(
        name="semicolons",
        reader=f"{__name__}:SemicolonReader",
        description="semicolons",
        suffixes=(".ssv",),
        magic=(b"#SSV",),
        text=True,
    )
    monkeypatch.setitem(FORMATS, "semicolons", entry)
    (tmp_path / "a.txt").write_text("#ssv\n1;2\n3;4\n")
    dataset = coterie.data.open_features(tmp_path / "a.txt", label=False, factor=2)
    assert dataset.format == "semicolons"
    assert dataset.source.block(0, 2).tolist() == [[2, 4], [6, 8]]
    (tmp_path / "b.ssv").write_text("1;2\n3;4\n")
    assert coterie.data.open_features(tmp_path / "b.ssv").shape == (2, 2)
    (tmp_path / "c.txt").write_text("?")
    with pytest.raises(coterie.data.DataFileError, match=r"Set format= to one of .*, semicolons\."):
        coterie.data.open_features(tmp_path / "c.txt")
    with pytest.raises(TypeError, match="Its options are factor, feature_names"):
        coterie.data.open_features(tmp_path / "b.ssv", colour=1)
    assert formats.describe_formats().endswith(", semicolons")


class SemicolonReader(Reader):
    """Reader of numbers separated by semicolons."""

    format = "semicolons"

    def __init__(self, path, *, factor=1):
        super().__init__(path)
        self.factor = factor

    def blocks(self, n_values, progress=None):
        import numpy as np

        lines = [line for line in self.path.read_text().splitlines() if not line.startswith("#")]
        yield self.factor * np.array([line.split(";") for line in lines], dtype=float)


def test_public_names_are_there():
    assert sorted(coterie.data._HOMES) == sorted(coterie.data.__all__) == dir(coterie.data)
    for name in coterie.data.__all__:
        assert getattr(coterie.data, name) is not None
    with pytest.raises(AttributeError, match=r"module 'coterie\.data' has no attribute 'nonsense'"):
        _ = coterie.data.nonsense


def test_listing_the_formats_imports_nothing_heavy():
    code = (
        "import sys; from coterie.data.readers.formats import describe_formats; describe_formats()\n"
        "assert not {'numpy', 'numba', 'scipy', 'sklearn'} & set(sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


@pytest.mark.parametrize("name", ["a.csv", "a.tsv", "a.svm", "a.mtx", "a", "a.csv.gz"])
@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-le", "utf-16-be", "utf-32", "utf-32-le", "utf-32-be"])
def test_utf16_and_utf32_are_rejected(tmp_path, name, encoding):
    text = "gène,b,label\n1,2,x\n2,1,y\n" * 1000
    path = tmp_path / name
    path.write_bytes((gzip.compress if name.endswith(".gz") else bytes)(text.encode(encoding)))
    kind = encoding[:6].upper()
    with pytest.raises(DataFileError, match=rf"{name}: the file is encoded as {kind}. Save it as UTF-8\.$"):
        open_features(path)
    with pytest.raises(DataFileError, match=f"the file is encoded as {kind}. Save it as UTF-8"):
        open_features(path, format="csv")


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-le"])
def test_utf16_labels_are_rejected(tmp_path, encoding):
    (tmp_path / "names.txt").write_bytes("yes\nno\n".encode(encoding))
    with pytest.raises(DataFileError, match=r"names\.txt: the file is encoded as UTF-16. Save it as UTF-8"):
        read_lines(tmp_path / "names.txt")
    for text in ("", "a", "ab\n", "é\n" * 3):
        (tmp_path / "names.txt").write_text(text, encoding="utf-8")
        assert read_lines(tmp_path / "names.txt") == text.splitlines()
