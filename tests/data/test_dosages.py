"""Dosages of VCF and PLINK 2 files: the values, their rounding and their store, and damaged files."""

import gzip

import numpy as np
import pytest

from coterie import GroupDiscoveryRegressor
from coterie.data import DataFileError, DenseSource, convert, open_features
from coterie.data.scaled import ScaledSource
from tests import naive
from tests.data.conformance import SourceConformance

pytest.importorskip("cyvcf2")
pgenlib = pytest.importorskip("pgenlib")

PEOPLE = [f"p{i}" for i in range(30)]


class TestScaled(SourceConformance):
    def make(self, X):
        return ScaledSource(DenseSource(np.asfortranarray(10 * X, dtype=np.uint8)), 10)


@pytest.fixture
def genotypes():
    rng = np.random.default_rng(0)
    X = rng.binomial(2, 0.4, (30, 12)).astype(float)
    X[:, 5] = np.where(rng.random(30) < 0.9, X[:, 4], X[:, 5])
    return X


def dosages_of(genotypes):
    """Return dosages near the genotypes, with the three decimals of imputation programs."""
    return np.clip(np.round(genotypes + np.random.default_rng(1).uniform(-0.3, 0.3, genotypes.shape), 3), 0.0, 2.0)


def write_vcf(path, genotypes=None, dosages=None, missing=()):
    """Write genotypes and dosages of PEOPLE as text."""
    n_variants = (genotypes if dosages is None else dosages).shape[1]
    keys = [*(["GT"] if genotypes is not None else []), *(["DS"] if dosages is not None else [])]
    lines = ["##fileformat=VCFv4.2", "##contig=<ID=1>", "##contig=<ID=2>"]
    lines += [
        f'##FORMAT=<ID={key},Number=1,Type={kind},Description="x">'
        for key, kind in (("GT", "String"), ("DS", "Float"))
        if key in keys
    ]
    lines.append("\t".join(["#CHROM", "POS", "ID", "REF", "ALT", "QUAL", "FILTER", "INFO", "FORMAT", *PEOPLE]))
    for j in range(n_variants):
        cells = []
        for i in range(30):
            parts = [] if genotypes is None else ["./." if (i, j) in missing else ["0/0", "0|1", "1/1"][int(genotypes[i, j])]]
            parts += [] if dosages is None else ["." if (i, j) in missing else f"{dosages[i, j]:g}"]
            cells.append(":".join(parts))
        lines.append(
            "\t".join([str(1 + j % 2), str(100 + j), f"rs{j}" if j else ".", "A", "G", ".", ".", ".", ":".join(keys), *cells])
        )
    path.write_text("\n".join(lines) + "\n")
    return path


def write_pgen(folder, dosages, missing=()):
    """Write a PLINK 2 fileset."""
    values = dosages.copy()
    for place in missing:
        values[place] = -9
    with pgenlib.PgenWriter(
        str(folder / "x.pgen").encode(), 30, variant_ct=12, dosage_present=True, nonref_flags=False
    ) as file:
        for column in values.T:
            file.append_dosages(np.ascontiguousarray(column))
    (folder / "x.psam").write_text("#IID\tSEX\tBMI\n" + "".join(f"{name}\t1\t{i}.5\n" for i, name in enumerate(PEOPLE)))
    lines = [f"{1 + j % 2}\t{100 + j}\t{f'rs{j}' if j else '.'}\tA\tG\n" for j in range(12)]
    (folder / "x.pvar").write_text("##comment\n#CHROM\tPOS\tID\tREF\tALT\n" + "".join(lines))
    return folder / "x.pgen"


def matrix(dataset):
    return naive.dense(dataset.source.block(0, dataset.shape[1]))


def test_values_names_and_alleles(tmp_path, genotypes):
    dosages = dosages_of(genotypes)
    for path in (write_vcf(tmp_path / "a.vcf", genotypes, dosages), write_pgen(tmp_path, dosages)):
        found = open_features(path)
        assert found.source.array.dtype == np.float32
        np.testing.assert_allclose(matrix(found), dosages, atol=1 / 16384 if path.suffix == ".pgen" else 1e-7)
        assert list(found.feature_names)[:2] == ["1:100", "rs1"]
        assert list(found.sample_names) == PEOPLE
        assert found.feature_info["position"].tolist() == list(range(100, 112))
        assert [list(found.feature_info[key])[1] for key in ("chromosome", "allele_1", "allele_2")] == ["2", "G", "A"]
    assert open_features(path).y.tolist() == [i + 0.5 for i in range(30)]  # of the .psam file


def test_whole_dosages_are_the_genotypes_of_a_bed_file(tmp_path, genotypes):
    bed_reader = pytest.importorskip("bed_reader")
    missing = [(3, 2), (4, 2), (0, 7)]
    hard = genotypes.copy()
    for place in missing:
        hard[place] = np.nan
    bed_reader.to_bed(
        tmp_path / "x.bed", hard, properties={"iid": PEOPLE, "fid": PEOPLE, "sid": [f"rs{j}" for j in range(12)]}
    )
    expected = matrix(open_features(tmp_path / "x.bed", label=False))
    path = write_vcf(tmp_path / "a.vcf", genotypes, missing=missing)
    (tmp_path / "a.vcf.gz").write_bytes(gzip.compress(path.read_bytes()))
    y = genotypes[:, 4] + 0.5 * genotypes[:, 9] + 0.1 * np.random.default_rng(2).standard_normal(30)
    known = GroupDiscoveryRegressor(2).fit(expected, y)
    for given in (path, tmp_path / "a.vcf.gz", write_pgen(tmp_path, genotypes, missing)):
        found = open_features(given, dtype="int8", label=False)
        assert found.source.array.dtype == np.int8
        np.testing.assert_array_equal(matrix(found), expected)
        assert found.notes == {"missing_genotypes_imputed": 3, "snps_with_missing_genotypes": 2}
        for dtype in ("uint8", "float32"):
            model = GroupDiscoveryRegressor(2).fit(open_features(given, dtype=dtype, label=False), y)
            assert [group.members.tolist() for group in model.groups_] == [group.members.tolist() for group in known.groups_]
            assert model.groups_.annotations["allele_1"][0] == "G"
    with pytest.raises(DataFileError, match=r"genotype\(s\) of SNP 'rs2' are missing\. The first is in sample 3"):
        open_features(path, missing="error")


def test_hundredths(tmp_path, genotypes):
    dosages = dosages_of(genotypes)
    path = write_vcf(tmp_path / "a.vcf", dosages=dosages, missing=[(0, 0)])
    hundredths = open_features(path, dtype="uint8")
    values = matrix(hundredths)
    assert hundredths.source.stored.array.dtype == np.uint8
    assert np.abs(values - dosages)[1:].max() <= 0.005 + 1e-6
    assert values[0, 0] == np.float32(np.floor(100 * dosages[1:, 0].mean() + 0.5) / 100)
    np.testing.assert_array_equal(np.round(values * 100).astype(np.uint8), hundredths.source.stored.array)
    store = open_features(convert(path, tmp_path / "x.store", dtype="uint8"))
    np.testing.assert_array_equal(matrix(store), values)
    np.testing.assert_array_equal(store.source.moments().norm, hundredths.source.moments().norm)
    assert list(store.feature_info["allele_1"]) == ["G"] * 12
    y = dosages[:, 4] + 0.1 * np.random.default_rng(2).standard_normal(30)
    model = GroupDiscoveryRegressor(2).fit(store, y)
    same = GroupDiscoveryRegressor(2).fit(values, y)
    assert [group.members.tolist() for group in model.groups_] == [group.members.tolist() for group in same.groups_]
    np.testing.assert_allclose(model.coef_, same.coef_, rtol=1e-5)
    np.testing.assert_allclose(model.predict(path), model.predict(store), atol=0.01)  # the same scale for all types


def test_other_files(tmp_path, genotypes):
    """Phenotypes, covariates and families are matched by IID, because VCF files have no families."""
    write_vcf(tmp_path / "a.vcf", genotypes)
    rows = [f"F{i // 3} {name} {i} {i % 7}" for i, name in reversed(list(enumerate(PEOPLE[:27])))]
    (tmp_path / "p.txt").write_text("\n".join(["FID IID height age", *rows]))
    found = open_features(
        tmp_path / "a.vcf", phenotype=tmp_path / "p.txt", covariates=tmp_path / "p.txt", sample_groups="FID", label="height"
    )
    assert found.y.tolist() == list(range(27))
    assert found.covariates.names == ("age",)
    assert found.covariates.values[:, 0].tolist() == [i % 7 for i in range(27)]
    assert found.sample_groups.tolist() == [f"F{i // 3}" for i in range(27)]
    assert found.notes == {"samples_without_phenotype_dropped": 3}
    np.testing.assert_array_equal(matrix(found), genotypes[:27])
    (tmp_path / "twice.txt").write_text("FID IID height\n" + "".join(f"{fid} {name} 1\n" for fid in "AB" for name in PEOPLE))
    with pytest.raises(DataFileError, match="matches a sample of the VCF file"):
        open_features(tmp_path / "a.vcf", phenotype=tmp_path / "twice.txt")
    with pytest.raises(DataFileError, match="'FID': column not found"):
        open_features(tmp_path / "a.vcf", sample_groups="FID")


def test_alleles(tmp_path):
    """Haploid genotypes count twice, half-missing genotypes are missing, and several alleles are left out."""
    head = write_vcf(tmp_path / "a.vcf", np.zeros((30, 1))).read_text().splitlines()[:-1]
    rest = "\t".join(["0/0"] * 26)
    (tmp_path / "a.vcf").write_text(
        "\n".join(
            [
                *head,
                f"X\t5\trs1\tA\tG\t.\t.\t.\tGT\t1\t0\t./1\t1|1\t{rest}",
                f"X\t6\trs2\tA\tG,T\t.\t.\t.\tGT\t1/2\t0\t.\t.\t{rest}",
                "",
            ]
        )
    )
    found = open_features(tmp_path / "a.vcf", dtype="float32")
    np.testing.assert_allclose(matrix(found)[:4, 0], [2.0, 0.0, 4 / 29, 2.0], rtol=1e-6)
    assert found.notes["multiallelic_variants_skipped"] == 1
    (tmp_path / "a.vcf").write_text(
        "\n".join([*head, f"X\t5\trs1\tA\tG\t.\t.\t.\tPL\t1\t0\t1\t1\t{rest.replace('0/0', '1')}", ""])
    )
    with pytest.raises(DataFileError, match="variant 'rs1' has no field DS or GT"):
        open_features(tmp_path / "a.vcf")


def test_wrong_files(tmp_path, genotypes):
    dosages = dosages_of(genotypes)
    path = write_vcf(tmp_path / "a.vcf", genotypes, dosages)
    content = path.read_bytes()
    (tmp_path / "short.vcf").write_bytes(content[:-40])
    with pytest.raises(DataFileError, match=r"short.vcf: the file is truncated"):
        open_features(tmp_path / "short.vcf")
    (tmp_path / "short.vcf.gz").write_bytes(gzip.compress(content)[:-20])
    with pytest.raises(DataFileError, match=r"short\.vcf\.gz"):
        open_features(tmp_path / "short.vcf.gz")
    with pytest.raises(DataFileError, match=r"has dosages that are not whole\. Use dtype='float32' or dtype='uint8'"):
        open_features(path, dtype="int8")
    (tmp_path / "large.vcf").write_bytes(content.replace(b":1\t", b":7\t", 1).replace(b":0\t", b":7\t", 1))
    with pytest.raises(DataFileError, match=r"has the dosage 7\. Dosages must be between 0 and 2"):
        open_features(tmp_path / "large.vcf")
    for options, message in (
        ({"dtype": "float16"}, "dtype='float16' must be one of"),
        ({"field": "GP"}, "field='GP' must be"),
    ):
        with pytest.raises(ValueError, match=message):
            open_features(path, **options)
    (tmp_path / "x.bgen").write_bytes(b"\x14\0\0\0\x14\0\0\0\0\0\0\0\0\0\0\0bgen")
    with pytest.raises(DataFileError, match=r"plink2 --bgen x.bgen ref-first --sample x.sample --make-pgen --out x\."):
        open_features(tmp_path / "x.bgen")
    pgen = write_pgen(tmp_path, dosages)
    pgen.write_bytes(pgen.read_bytes()[:-30])
    with pytest.raises(DataFileError, match="pgenlib cannot read the file"):
        open_features(pgen)
    (tmp_path / "x.psam").write_text("#IID\np1\n")
    with pytest.raises(DataFileError, match=r"x\.pgen"):
        open_features(pgen)
    (tmp_path / "x.pvar").rename(tmp_path / "y.pvar")
    with pytest.raises(FileNotFoundError, match=r"requires a \.pgen, a \.pvar and a \.psam file"):
        open_features(pgen)


def test_a_fam_file_with_further_columns(tmp_path, genotypes):
    bed_reader = pytest.importorskip("bed_reader")
    bed_reader.to_bed(tmp_path / "x.bed", genotypes, properties={"iid": PEOPLE, "fid": PEOPLE})
    fam = tmp_path / "x.fam"
    fam.write_text("".join(f"{line} 1 2 3 4 5\n" for line in fam.read_text().splitlines()))
    with pytest.raises(DataFileError, match=r"11 columns instead of 6 .*\. Name the phenotype with phenotype= \(--pheno\)\."):
        open_features(tmp_path / "x.bed")
    (tmp_path / "p.txt").write_text("".join(f"{name} {name} {i}\n" for i, name in enumerate(PEOPLE)))
    found = open_features(tmp_path / "x.bed", phenotype=tmp_path / "p.txt")
    assert found.y.tolist() == list(range(30))
    np.testing.assert_array_equal(matrix(found), genotypes)


@pytest.mark.parametrize("kind", ["vcf", "bed"])
def test_files_with_iid_only(tmp_path, genotypes, kind):
    """PLINK 2 writes phenotypes and covariates without families."""
    if kind == "vcf":
        write_vcf(tmp_path / "x.vcf", genotypes)
    else:
        bed_reader = pytest.importorskip("bed_reader")
        bed_reader.to_bed(tmp_path / "x.bed", genotypes, properties={"iid": PEOPLE, "fid": ["F"] * 30})
    path, other = tmp_path / f"x.{kind}", tmp_path / "p.txt"
    rows = "".join(f"{name} {i} {i % 3} c{i % 5}\n" for i, name in reversed(list(enumerate(PEOPLE[:27]))))
    other.write_text(f"#IID height age clinic\n{rows}")
    found = open_features(
        path, phenotype=other, covariates=other, covariate_names="age", sample_groups="clinic", label="height"
    )
    assert found.y.tolist() == list(range(27))
    assert found.covariates.values[:, 0].tolist() == [i % 3 for i in range(27)]
    assert found.sample_groups.tolist() == [f"c{i % 5}" for i in range(27)]
    other.write_text("IID\n" + "\n".join(PEOPLE))
    with pytest.raises(DataFileError, match="With a header, FID may be absent"):
        open_features(path, phenotype=other)
    if kind == "bed":
        other.write_text(f"IID height age clinic\n{rows}")
        fam = tmp_path / "x.fam"
        lines = fam.read_text().splitlines()
        fam.write_text("\n".join([lines[0].replace(PEOPLE[0], PEOPLE[1]).replace("F", "G", 1), *lines[1:]]) + "\n")
        with pytest.raises(DataFileError, match=f"'{PEOPLE[1]}', occur in several families. .* require the column FID"):
            open_features(path, phenotype=other)
