"""Detection of formats by content and name, and equal groups from all formats."""

import gzip

import numpy as np
import pytest
import scipy.io
from scipy import sparse
from sklearn.datasets import dump_svmlight_file

from coterie import GroupDiscoveryClassifier, GroupDiscoveryRegressor
from coterie.data import DataFileError, DenseSource, convert, open_features
from coterie.data.readers.formats import detect_format
from tests.conftest import sparse_counts


@pytest.mark.parametrize(
    ("name", "content", "expected"),
    [
        ("a.svm", b"1 1:2\n", "libsvm"),
        ("a", b"# c\n-1 3:4.5 7:1\n", "libsvm"),
        ("a.txt", b"1\n2 1:3\n", "libsvm"),
        ("a.csv", b"1 1:2\n", "csv"),  # the name decides where the content cannot
        ("a.txt", b"a,b\n1,2\n", "csv"),
        ("a.txt", b"a\tb\n1\t2\n", "tsv"),
        ("a.csv.gz", gzip.compress(b"a,b\n1,2\n", mtime=0), "csv"),
        ("a.gz", gzip.compress(b"1 1:2", mtime=0), "libsvm"),
        ("a.txt", b"%%matrixmarket matrix coordinate real general\n", "matrix-market"),
        ("a.svm", b"PK\x03\x04...", "npz"),
        ("a.svm", b"\x89HDF\r\n\x1a\n...", "h5ad"),
        ("a.svm", b"PAR1...", "parquet"),
        ("a.svm", b"\x6c\x1b\x01...", "plink"),
    ],
)
def test_formats(tmp_path, name, content, expected):
    (tmp_path / name).write_bytes(content)
    assert detect_format(tmp_path / name) == expected


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("a.txt", b"hello world\n", "the format of the file is unknown. Set format= to one of libsvm, xlsx, npz"),
        ("a.txt", b"\x00\x01\x02", "the format of the file is unknown"),
        ("a.npz", b"hello", "the suffix indicates npz, but the content does not"),
        ("a.h5ad", b"1 1:2\n", "the suffix indicates h5ad, but the content does not"),
        ("a.svm", b"", "the file is empty"),
    ],
)
def test_files_that_are_no_data(tmp_path, name, content, message):
    (tmp_path / name).write_bytes(content)
    with pytest.raises(DataFileError, match=message):
        open_features(tmp_path / name)


def test_other_mistakes(tmp_path):
    with pytest.raises(FileNotFoundError, match="File not found"):
        open_features(tmp_path / "nothing.svm")
    with pytest.raises(DataFileError, match=r"this folder has no header\.json"):
        open_features(tmp_path)
    (tmp_path / "a.svm").write_text("1 1:2\n")
    with pytest.raises(ValueError, match="format='excel' must be one of store, libsvm"):
        open_features(tmp_path / "a.svm", format="excel")
    with pytest.raises(ValueError, match=r"label=7 is not supported for a\.svm\. Omit it, or pass a text file"):
        open_features(tmp_path / "a.svm", label=7)
    assert open_features(tmp_path / "a.svm", label=False).y is None


def test_names_from_a_file(tmp_path):
    (tmp_path / "a.svm").write_text("1 1:2 3:1\n")
    (tmp_path / "names.gz").write_bytes(gzip.compress("alpha\nβ\r\nc".encode()))
    assert open_features(tmp_path / "a.svm", feature_names=tmp_path / "names.gz").feature_names == ["alpha", "β", "c"]
    with pytest.raises(ValueError, match="there are 2 feature names, but 3 features"):
        open_features(tmp_path / "a.svm", feature_names=["a", "b"])


def test_progress_is_reported(tmp_path):
    (tmp_path / "a.svm").write_text("1 1:2 3:1\n" * 1000)
    seen = []
    convert(tmp_path / "a.svm", tmp_path / "s", progress=lambda *told: seen.append(told))
    assert seen == [(10_000, 10_000, "reading"), (3, 3, "writing features")]


@pytest.mark.parametrize("package", ["anndata", "bed_reader", "pyarrow"])
def test_a_missing_library_is_named_with_its_extra(tmp_path, monkeypatch, package):
    import sys

    monkeypatch.setitem(sys.modules, package, None)
    name, extra = {"anndata": ("a.h5ad", "bio"), "bed_reader": ("a.bed", "bio"), "pyarrow": ("a.csv", "tabular")}[package]
    (tmp_path / name).write_bytes({"a.h5ad": b"\x89HDF\r\n\x1a\n", "a.bed": b"\x6c\x1b\x01\x00", "a.csv": b"a,b\n1,2"}[name])
    (tmp_path / "a.fam").write_text("1 1 0 0 1 1\n")
    (tmp_path / "a.bim").write_text("1 rs1 0 5 A G\n")
    with pytest.raises(ImportError, match=rf"requires .*: pip install 'coterie\[{extra}\]'"):
        open_features(tmp_path / name)


def every_format(folder, X, y, names):
    """Write the same sparse data in all formats that support them; return paths and options."""
    S = sparse.csr_array(X)
    folder.mkdir()
    dump_svmlight_file(S, y, str(folder / "x.svm"), zero_based=False)
    (folder / "x.svm.gz").write_bytes(gzip.compress((folder / "x.svm").read_bytes()))
    np.savez(folder / "x.npz", data=S.data, indices=S.indices, indptr=S.indptr, shape=S.shape, y=y)
    sparse.save_npz(folder / "scipy.npz", S)
    scipy.io.mmwrite(folder / "x.mtx", S.astype(np.float64), precision=17)
    np.savetxt(folder / "y.txt", y, fmt="%d")
    (folder / "names.txt").write_text("\n".join(names))
    extra = {"feature_names": folder / "names.txt"}
    yield folder / "x.svm", {"n_features": S.shape[1], **extra}
    yield folder / "x.svm.gz", {"n_features": S.shape[1], **extra}
    yield folder / "x.npz", extra
    yield folder / "scipy.npz", {"label": folder / "y.txt", **extra}
    yield folder / "x.mtx", {"label": folder / "y.txt", **extra}


def tables(folder, X, y, names):
    """Write the same data as tables and as AnnData."""
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame(X, columns=names).assign(y=y)
    frame.to_csv(folder / "x.csv", index=False)
    frame.to_csv(folder / "x.tsv.xz", index=False, sep="\t")
    frame.to_parquet(folder / "x.parquet")
    yield folder / "x.csv", {}
    yield folder / "x.tsv.xz", {}
    yield folder / "x.parquet", {"label": "y"}
    anndata = pytest.importorskip("anndata")
    obs = pd.DataFrame({"kind": y}, index=[str(i) for i in range(len(y))])
    anndata.AnnData(X, obs=obs, var=pd.DataFrame(index=names)).write_h5ad(folder / "x.h5ad")
    yield folder / "x.h5ad", {"label": "kind"}


def test_the_same_groups_from_every_format(tmp_path, rng):
    X, y = sparse_counts(rng)
    names = [f"w{j}" for j in range(X.shape[1])]
    expected = GroupDiscoveryClassifier(10).fit(DenseSource(X, names), y)  # names break ties between equal columns
    for number, (path, options) in enumerate(
        [*every_format(tmp_path / "f", X, y, names), *tables(tmp_path / "f", X, y, names)]
    ):
        for where in (path, convert(path, tmp_path / f"store{number}", **options)):
            model = GroupDiscoveryClassifier(10).fit(open_features(where, **(options if where is path else {})))
            assert model.groups_ == expected.groups_, where
            assert list(model.feature_names_in_) == names
            np.testing.assert_allclose(model.support_coef_, expected.support_coef_, rtol=1e-9)


@pytest.mark.slow  # small files of every format are opened in every run
def test_duke_in_every_format(tmp_path, real_data):
    original = open_features(real_data / "duke.svm")
    X, y = original.source.block(0, 7129).toarray(), original.y
    names = [f"g{j}" for j in range(7129)]
    expected = GroupDiscoveryClassifier(8).fit(original)
    for path, options in [*every_format(tmp_path / "f", X, y, names), *tables(tmp_path / "f", X, y, names)]:
        assert GroupDiscoveryClassifier(8).fit(open_features(path, **options)).groups_ == expected.groups_, path
        store = convert(path, tmp_path / "s", overwrite=True, **options)
        assert GroupDiscoveryClassifier(8).fit(store).groups_ == expected.groups_, path


@pytest.mark.slow  # small files of every format are opened in every run
def test_pbmc_in_every_format(tmp_path, real_data):
    pytest.importorskip("anndata")
    original = open_features(real_data / "pbmc68k_reduced.h5ad", label="bulk_labels")
    X, names = original.source.block(0, 765), list(original.feature_names)
    expected = GroupDiscoveryClassifier(10).fit(original)
    assert list(expected.feature_names_in_) == names
    codes = np.unique(original.y, return_inverse=True)[1]
    for path, options in [*every_format(tmp_path / "f", X, codes, names), *tables(tmp_path / "f", X, codes, names)]:
        assert GroupDiscoveryClassifier(10).fit(open_features(path, **options)).groups_ == expected.groups_, path
    store = convert(real_data / "pbmc68k_reduced.h5ad", tmp_path / "s", label="bulk_labels")
    assert GroupDiscoveryClassifier(10).fit(store).groups_ == expected.groups_


def test_plink_in_other_formats(tmp_path, real_data):
    pytest.importorskip("bed_reader")
    folder = real_data / "plink_eur"
    original = open_features(folder / "EUR_subset", phenotype=folder / "EUR_subset.pheno.covars")
    assert original.shape == (369, 54_051)
    assert original.notes == {"samples_without_phenotype_dropped": 10}
    expected = GroupDiscoveryRegressor(10, C=1.0, standardize=False).fit(original)
    assert expected.feature_names_in_[0] == "rs34151105"
    store = convert(folder / "EUR_subset.bed", tmp_path / "s", phenotype=folder / "EUR_subset.pheno.covars")
    assert open_features(store).source.array.dtype == np.int8
    assert GroupDiscoveryRegressor(10, C=1.0, standardize=False).fit(store).groups_ == expected.groups_
    X = original.source.block(0, 54_051)
    np.savez(tmp_path / "dense.npz", X=X, y=original.y)
    S = sparse.csr_array(X)
    np.savez(tmp_path / "sparse.npz", data=S.data, indices=S.indices, indptr=S.indptr, shape=S.shape, y=original.y)
    for name in ("dense.npz", "sparse.npz"):
        assert GroupDiscoveryRegressor(10, C=1.0, standardize=False).fit(tmp_path / name).groups_ == expected.groups_, name
