"""AnnData and PLINK files."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

from coterie import GroupDiscoveryClassifier
from coterie.data import DataFileError, convert, open_features
from tests.conftest import grouped_matrix
from tests.data.conformance import example
from tests.data.files import assert_same, data_or_error, matrix

anndata = pytest.importorskip("anndata")
bed_reader = pytest.importorskip("bed_reader")
pd = pytest.importorskip("pandas")


@pytest.fixture
def adata(rng):
    X = example(rng).astype(np.float32)
    obs = pd.DataFrame(
        {"kind": pd.Categorical(["T", "B"] * 20 + ["T"]), "age": np.arange(41)}, index=[f"c{i}" for i in range(41)]
    )
    result = anndata.AnnData(sparse.csr_matrix(X), obs=obs, var=pd.DataFrame(index=[f"g{j}" for j in range(67)]))
    result.layers["counts"] = X * 2
    return result


@pytest.mark.parametrize("kind", ["csr", "csc", "dense"])
def test_h5ad(tmp_path, adata, kind):
    X = adata.X.toarray()
    adata.X = {"csr": sparse.csr_matrix, "csc": sparse.csc_matrix, "dense": np.asarray}[kind](X)
    adata.write_h5ad(tmp_path / "x.h5ad")
    dataset = open_features(tmp_path / "x.h5ad", label="kind")
    found = matrix(dataset)
    np.testing.assert_array_equal(found if kind == "dense" else found.toarray(), X)
    assert found.dtype == np.float32
    assert dataset.y.tolist() == adata.obs["kind"].tolist()
    assert list(dataset.feature_names) == list(adata.var_names)
    assert list(dataset.sample_names) == list(adata.obs_names)
    np.testing.assert_array_equal(matrix(open_features(tmp_path / "x.h5ad", layer="counts")), 2 * X)
    assert open_features(tmp_path / "x.h5ad", label="age").y.tolist() == list(range(41))
    assert open_features(tmp_path / "x.h5ad").y is None
    assert_same(open_features(convert(tmp_path / "x.h5ad", tmp_path / "s", label="kind")), dataset)
    with pytest.raises(DataFileError, match=r"no column 'colour' for the labels. Available columns: kind \(2 classes\), age"):
        open_features(tmp_path / "x.h5ad", label="colour")
    with pytest.raises(DataFileError, match=r"layer 'raw' not found. Available layers: counts"):
        open_features(tmp_path / "x.h5ad", layer="raw")


@pytest.mark.parametrize("kind", ["csr", "csc", "dense"])
def test_h5ad_missing_labels(tmp_path, adata, kind):
    X = adata.X.toarray()
    adata.X = {"csr": sparse.csr_matrix, "csc": sparse.csc_matrix, "dense": np.asarray}[kind](X)
    adata.obs["kind"] = adata.obs["kind"].where(adata.obs["age"] % 5 != 3)
    adata.write_h5ad(tmp_path / "x.h5ad")
    with pytest.raises(
        DataFileError, match=r"8 of 41 samples have no label in obs\['kind'\]. The first is sample 3. Drop them with"
    ):
        open_features(tmp_path / "x.h5ad", label="kind")
    dataset = open_features(tmp_path / "x.h5ad", label="kind", missing_labels="drop")
    assert dataset.notes == {"samples_without_label_dropped": 8}
    kept = np.arange(41) % 5 != 3
    found = matrix(dataset)
    np.testing.assert_array_equal(found if kind == "dense" else found.toarray(), X[kept])
    assert list(dataset.sample_names) == adata.obs_names[kept].tolist()


def test_truncated_h5ad(tmp_path, adata):
    adata.write_h5ad(tmp_path / "x.h5ad")
    content = (tmp_path / "x.h5ad").read_bytes()
    (tmp_path / "x.h5ad").write_bytes(content[: len(content) // 2])
    with pytest.raises(DataFileError, match="the file is damaged or not"):
        open_features(tmp_path / "x.h5ad")


@settings(max_examples=20)  # each example starts a process
@given(place=st.integers(0, 10**6), byte=st.integers(0, 255))
def test_a_damaged_h5ad_gives_data_or_an_error(tmp_path_factory, place, byte):
    path = tmp_path_factory.getbasetemp() / "damaged.h5ad"
    whole = path.with_name("whole.h5ad")
    if not whole.exists():
        anndata.AnnData(sparse.csr_matrix(np.eye(4, dtype=np.float32))).write_h5ad(whole)
    content = bytearray(whole.read_bytes())
    content[place % len(content)] = byte
    path.write_bytes(bytes(content))
    data_or_error(path, format="h5ad")


def test_an_anndata_object_as_x(rng):
    X, y = grouped_matrix(rng)
    names = [f"g{j}" for j in range(40)]
    expected = GroupDiscoveryClassifier(4).fit(pd.DataFrame(X, columns=names), y)
    for values in (X, sparse.csr_matrix(X)):
        adata = anndata.AnnData(values, var=pd.DataFrame(index=names))
        model = GroupDiscoveryClassifier(4).fit(adata, y)
        assert model.groups_ == expected.groups_
        assert model.feature_names_in_.tolist() == names
        np.testing.assert_array_equal(model.predict(adata), expected.predict(pd.DataFrame(X, columns=names)))
    with pytest.raises(ValueError, match=r"AnnData object: there is no X. Choose a layer: none available"):
        GroupDiscoveryClassifier(4).fit(anndata.AnnData(obs=adata.obs), y)


def test_a_dask_array_as_x(rng):
    da = pytest.importorskip("dask.array")
    X, y = grouped_matrix(rng)
    model = GroupDiscoveryClassifier(4).fit(da.from_array(X, chunks=(20, 10)), y)
    assert model.groups_ == GroupDiscoveryClassifier(4).fit(X, y).groups_
    S = da.from_array(X, chunks=(20, -1)).map_blocks(sparse.csr_matrix)
    assert GroupDiscoveryClassifier(4).fit(S, y).groups_ == model.groups_


# PLINK -----------------------------------------------------------------------------------------


def write_plink(folder, genotypes, phenotypes):
    n, m = genotypes.shape
    properties = {
        "fid": [f"F{i}" for i in range(n)], "iid": [f"I{i}" for i in range(n)], "pheno": phenotypes,
        "chromosome": [str(1 + j // 10) for j in range(m)], "sid": [f"rs{j}" for j in range(m)],
        "bp_position": range(100, 100 + m),
        "allele_1": ["A"] * m, "allele_2": ["G"] * m,
    }  # fmt: skip
    bed_reader.to_bed(folder / "x.bed", genotypes, properties=properties)
    return folder / "x.bed"


@pytest.fixture
def genotypes(rng):
    return rng.integers(0, 3, (22, 31)).astype(np.int8)


@pytest.mark.parametrize("name", ["x.bed", "x.bim", "x.fam", "x"])
def test_plink(tmp_path, genotypes, name):
    write_plink(tmp_path, genotypes, ["1", "2"] * 11)
    dataset = open_features(tmp_path / name)
    np.testing.assert_array_equal(matrix(dataset), genotypes)
    assert matrix(dataset).dtype == np.int8
    assert dataset.y.tolist() == [1, 2] * 11
    assert dataset.feature_names[3] == "rs3"
    assert dataset.sample_names[3] == "I3"
    assert dataset.feature_info["position"].tolist() == list(range(100, 131))
    assert list(dataset.feature_info["chromosome"])[9:11] == ["1", "2"]
    assert dataset.notes == {}
    store = open_features(convert(tmp_path / name, tmp_path / "s"))
    assert_same(store, dataset)
    assert store.feature_info["position"].tolist() == list(range(100, 131))
    assert list(store.feature_info["allele_1"]) == ["A"] * 31
    assert open_features(tmp_path / name, label=False).y is None


def test_missing_genotypes(tmp_path, genotypes):
    genotypes[:, 4] = [2] * 15 + [0] * 7  # mean 1.36 without the missing one
    holes = [(3, 4), (0, 9), (1, 9), (21, 30)]
    full = genotypes.astype(float)
    for i, j in holes:
        genotypes[i, j], full[i, j] = -127, np.nan
    path = write_plink(tmp_path, genotypes, ["1", "2"] * 11)
    means = np.nanmean(full, axis=0)
    for options, expected in [({}, np.floor(means + 0.5)), ({"dtype": "float32"}, means.astype(np.float32))]:
        dataset = open_features(path, **options)
        assert matrix(dataset).dtype == np.dtype(options.get("dtype", "int8"))
        np.testing.assert_array_equal(matrix(dataset), np.where(np.isnan(full), expected, full))
        assert dataset.notes == {"missing_genotypes_imputed": 4, "snps_with_missing_genotypes": 3}
        assert_same(open_features(convert(path, tmp_path / f"s{len(options)}", **options)), dataset)
    with pytest.raises(
        DataFileError, match=r"1 genotype\(s\) of SNP 'rs4' are missing. The first is in sample 3. Impute them"
    ):
        open_features(path, missing="error")
    genotypes[:, 0] = -127
    path = write_plink(tmp_path, genotypes, ["1", "2"] * 11)
    assert not matrix(open_features(path))[:, 0].any()  # no genotype is known, so the SNP is constant


def test_missing_phenotypes_are_dropped_and_counted(tmp_path, genotypes):
    path = write_plink(tmp_path, genotypes, ["1", "2"] * 9 + ["-9", "0", "1", "2"])
    dataset = open_features(path)
    assert dataset.notes == {"samples_without_phenotype_dropped": 2}
    np.testing.assert_array_equal(matrix(dataset), np.delete(genotypes, [18, 19], axis=0))
    with pytest.raises(DataFileError, match=r"2 of 22 samples have no label in column 6\. The first is sample 18"):
        open_features(path, missing_labels="error")
    assert open_features(write_plink(tmp_path, genotypes, ["0.5", "0"] * 11)).y.tolist() == [0.5, 0.0] * 11
    assert open_features(write_plink(tmp_path, genotypes, ["-9"] * 22)).y is None


def test_a_phenotype_file(tmp_path, genotypes):
    path = write_plink(tmp_path, genotypes, ["-9"] * 22)
    lines = ["FID IID height case"] + [f"F{i} I{i} {i}.5 {'NA' if i == 7 else 1 + i % 2}" for i in reversed(range(20))]
    (tmp_path / "p.txt").write_text("\n".join(lines))
    dataset = open_features(path, phenotype=tmp_path / "p.txt")
    assert dataset.y.tolist() == [i + 0.5 for i in range(20)]
    assert dataset.notes == {"samples_without_phenotype_dropped": 2}
    np.testing.assert_array_equal(matrix(dataset), genotypes[:20])
    for label in ("case", 1, -1):
        dataset = open_features(path, phenotype=tmp_path / "p.txt", label=label)
        assert dataset.y.tolist() == [1 + i % 2 for i in range(20) if i != 7]
    for label in ("weight", 2):
        with pytest.raises(DataFileError, match=f"1: phenotype {label!r} not found. The file has height, case"):
            open_features(path, phenotype=tmp_path / "p.txt", label=label)
    (tmp_path / "p.txt").write_text("\n".join(lines[1:]))  # without a header
    assert open_features(path, phenotype=tmp_path / "p.txt", label="2").y.tolist()[:2] == [1, 2]
    for text, message in [
        ("F0 I0", "at least one phenotype"), ("F0 I0 1\nF1 I1", "2: the line has 2 columns instead of 3"),
        ("F0 I0 1\nF0 I0 2", "2: sample F0 I0 occurs twice"), ("A B 1", "matches a sample of the .fam file"),
    ]:  # fmt: skip
        (tmp_path / "p.txt").write_text(text)
        with pytest.raises(DataFileError, match=message):
            open_features(path, phenotype=tmp_path / "p.txt")


def test_a_covariate_file(tmp_path, genotypes):
    path = write_plink(tmp_path, genotypes, ["1", "2"] * 11)
    rows = [f"F{i} I{i} {i}.5 {'-9' if i == 7 else i % 4} {'xy'[i % 2]}" for i in reversed(range(20))]
    (tmp_path / "c.txt").write_text("\n".join(["#FID IID age PC1 site", *rows]))
    dataset = open_features(path, covariates=tmp_path / "c.txt")
    assert dataset.covariates.names == ("age", "PC1", "site=y (not x)")
    kept = [i for i in range(20) if i != 7]
    assert dataset.covariates.values.tolist() == [[i + 0.5, i % 4, i % 2] for i in kept]
    assert dataset.y.tolist() == [1 + i % 2 for i in kept]
    assert dataset.notes == {"samples_without_covariates_dropped": "3 (I7, I20, I21)"}
    np.testing.assert_array_equal(matrix(dataset), genotypes[kept])
    assert open_features(path, covariates=tmp_path / "c.txt", covariate_names="age-PC1").covariates.names == ("age", "PC1")
    assert len(open_features(path, covariates=tmp_path / "c.txt", covariate_names=["age"]).y) == 20
    # The phenotype of the same file is no covariate.
    both = open_features(path, phenotype=tmp_path / "c.txt", label="PC1", covariates=tmp_path / "c.txt")
    assert both.covariates.names == ("age", "site=y (not x)")
    store = convert(path, tmp_path / "s")
    with pytest.raises(
        DataFileError, match=r"c.txt: covariates are missing for 3 of the 22 samples of .*: I7, I20, I21. Complete"
    ):
        open_features(store, covariates=tmp_path / "c.txt")
    (tmp_path / "c.txt").write_text("\n".join(f"F{i} I{i} {i}" for i in range(22)))  # without a header
    assert open_features(path, covariates=tmp_path / "c.txt").covariates.names == ("COV1",)
    assert open_features(store, covariates=tmp_path / "c.txt").covariates.values[:, 0].tolist() == list(range(22))
    with pytest.raises(DataFileError, match=r"1: covariate 'age' not found. The file has COV1"):
        open_features(path, covariates=tmp_path / "c.txt", covariate_names="age")
    for text, message in [
        ("F0 I0", "FID, IID and at least one covariate"), ("F0 I0 1\nF1 I1", "2: the line has 2 columns instead of 3"),
        ("F0 I0 1\nF0 I0 2", "2: sample F0 I0 occurs twice"), ("A B 1", "matches a sample of the data"),
        ("F0 I0 NA", "every sample has at least one missing covariate"),
    ]:  # fmt: skip
        (tmp_path / "c.txt").write_text(text)
        with pytest.raises(DataFileError, match=message):
            open_features(path, covariates=tmp_path / "c.txt")
    with pytest.raises(ValueError, match=r"requires a covariate file. Pass it as covariates="):
        open_features(path, covariate_names="age")
    with pytest.raises(FileNotFoundError, match="Covariate file not found"):
        open_features(path, covariates=tmp_path / "none.txt")
    (tmp_path / "t.csv").write_text("a,y\n1,2\n")
    with pytest.raises(TypeError, match="Covariate files are supported for PLINK data"):
        open_features(tmp_path / "t.csv", covariates=tmp_path / "c.txt")


@pytest.mark.parametrize("address", [False, True], ids=["folder", "address"])
def test_damaged_covariates_of_a_store(tmp_path, genotypes, address):
    """A store at an address raises the error of a store in a folder."""
    pytest.importorskip("fsspec", reason="fsspec is not installed")
    (tmp_path / "c.txt").write_text("\n".join(f"F{i} I{i} {i}" for i in range(22)))
    path = convert(write_plink(tmp_path, genotypes, ["1", "2"] * 11), tmp_path / "s", covariates=tmp_path / "c.txt")
    file = path / "covariates.npy"
    file.write_bytes(file.read_bytes()[:-8] + np.array([np.nan]).tobytes())
    with pytest.raises(DataFileError, match=r"covariates\.npy: .* values of the covariates are invalid"):
        open_features(f"file://{path}" if address else path)


def test_annotations_reach_the_groups(tmp_path, genotypes):
    """From the .bim file, or the store made of it, through a fit and a saved model."""
    from coterie import load, save

    path = write_plink(tmp_path, genotypes, ["1", "2"] * 11)
    for data in (open_features(path), path, open_features(convert(path, tmp_path / "s"))):
        model = GroupDiscoveryClassifier(3).fit(data)
        save(model, tmp_path / "m")
        frame = load(tmp_path / "m").groups_.to_frame()
        assert list(frame.columns[-4:]) == ["chromosome", "position", "allele_1", "allele_2"]
        assert (frame["position"] == 100 + frame["feature"]).all()
        assert (frame["chromosome"] == (1 + frame["feature"] // 10).astype(str)).all()


def test_bad_plink_options(tmp_path, genotypes):
    path = write_plink(tmp_path, genotypes, ["1", "2"] * 11)
    for options, message in [
        ({"missing": "zero"}, "missing='zero' must be"), ({"dtype": "int32"}, "dtype='int32' must be"),
        ({"label": "case"}, "label='case' requires a phenotype file"),
        ({"missing_labels": "keep"}, "missing_labels='keep' must be"),
    ]:  # fmt: skip
        with pytest.raises(ValueError, match=message):
            open_features(path, **options)


@pytest.mark.parametrize(
    ("file", "change", "message"),
    [
        ("bed", lambda b: b[:-1], "the file is truncated: 188 bytes instead of 189 for 22 samples"),
        ("bed", lambda b: b + b"x", "the file is too long"),
        ("bed", lambda b: b"\x00" + b[1:], "the format of the file is unknown|does not begin like|the content does not"),
        ("bed", lambda b: b[:2] + b"\x00" + b[3:], "the genotypes are stored by sample"),
        ("fam", lambda b: b.replace(b"I7", b""), r"x\.fam:8: the line has 5 columns instead of 6 \(FID IID"),
        ("fam", lambda b: b"", "the file is empty"),
        ("bim", lambda b: b.replace(b"107", b"x"), r"x\.bim:8: the position 'x' is not an integer"),
        ("bim", lambda b: b[: len(b) // 2], "x.bim:|x.bed: the file is too long"),
        ("fam", lambda b: b.replace(b"I7", b"\xff"), r"x\.fam:8: the text is not UTF-8"),
    ],
)
def test_damaged_plink_files(tmp_path, genotypes, file, change, message):
    path = write_plink(tmp_path, genotypes, ["1", "2"] * 11)
    broken = path.with_suffix(f".{file}")
    broken.write_bytes(change(broken.read_bytes()))
    with pytest.raises(DataFileError, match=message):
        open_features(path)


def test_a_missing_plink_file(tmp_path, genotypes):
    path = write_plink(tmp_path, genotypes, ["1", "2"] * 11)
    path.with_suffix(".bim").unlink()
    with pytest.raises(FileNotFoundError, match="A PLINK fileset requires a"):
        open_features(path)


@given(file=st.sampled_from(["bed", "bim", "fam"]), place=st.integers(0, 10**6), byte=st.integers(0, 255))
def test_damaged_plink_files_give_data_or_an_error(tmp_path_factory, file, place, byte):
    folder = tmp_path_factory.getbasetemp() / "plink"
    folder.mkdir(exist_ok=True)
    write_plink(folder, np.ones((5, 6), dtype=np.int8), ["1", "2", "1", "2", "1"])
    path = folder / f"x.{file}"
    content = bytearray(path.read_bytes())
    content[place % len(content)] = byte
    path.write_bytes(bytes(content))
    try:
        open_features(folder / "x.bed", format="plink")
    except (ValueError, OSError) as error:
        message = str(error)
        assert str(folder) in message
