"""Offsets on the command line: files, polygenic offsets, chromosomes, and prediction."""

from __future__ import annotations

import json

import numpy as np
import pytest

import coterie
from coterie.data import open_features

SIZE = ("--fast", "--n-features-to-select", "2")


@pytest.fixture
def cohort(shell):
    """Write siblings with a family effect and a locus on chromosome 2; return their genotypes, trait and ids."""
    bed_reader = pytest.importorskip("bed_reader")
    rng = np.random.default_rng(0)
    family = np.repeat(np.arange(20), 4)
    X = rng.integers(0, 2, (20, 60))[family] + rng.integers(0, 2, (80, 60))
    y = 2.0 * rng.standard_normal(20)[family] + X[:, 30] + 0.2 * rng.standard_normal(80)
    properties = {"bp_position": range(1, 61), "chromosome": [str(1 + k // 20) for k in range(60)]}
    ids = {"fid": [f"f{k}" for k in family], "iid": [f"s{k}" for k in range(80)]}
    bed_reader.to_bed(shell.folder / "g.bed", X.astype(np.int8), properties={**properties, **ids})
    samples = list(zip(ids["fid"], ids["iid"], strict=True))
    rows = [f"{f} {i} {value!r}" for (f, i), value in zip(samples, y.tolist(), strict=True)]
    (shell.folder / "t.txt").write_text("\n".join(["FID IID BMI", *rows]))
    return X, y, samples


def test_polygenic_offset_of_a_chromosome(shell, cohort):
    X, y, _ = cohort
    data = ("g.bed", "--pheno", "t.txt")
    content = shell.json("discover", *data, *SIZE, "--chromosome", "2", "--polygenic-offset", "-o", "out")
    assert content["data"]["features"] == 20
    assert content["data"]["notes"]["offset"].startswith("polygenic, without chromosome 2, heritability 0.")
    assert content["groups"][0]["members"][0]["annotations"]["chromosome"] == "2"
    dataset = open_features(shell.folder / "g.bed", phenotype=shell.folder / "t.txt")
    offset = coterie.polygenic_offset(dataset)
    model = coterie.GroupDiscoveryRegressor(2).fit(X[:, 20:40].astype(np.int8), y, offset=offset.of("2"))
    assert [group["support"] for group in content["groups"]] == model.groups_.support.tolist()
    assert model.groups_.support[0] == 10
    # The offset of a file gives the same result.
    offset.save(shell.folder / "own.loco", dataset.sample_names)
    again = shell.json("discover", *data, *SIZE, "--chromosome", "2", "--offset", "own.loco", "-o", "again")
    assert again["groups"] == content["groups"]
    assert again["data"]["notes"]["offset"] == "own.loco"
    # The marginal effects are those beside the offset.
    found = coterie.association(X[:, 20:40], y, [10], offset=offset.of("2"))
    assert content["groups"][0]["members"][0]["annotations"]["p_value"] == pytest.approx(found.p_value[0])


def test_prediction_requires_the_offset(shell, cohort):
    _, _, samples = cohort
    values = np.random.default_rng(1).standard_normal(80)
    rows = [f"{f} {i} {value!r}" for (f, i), value in zip(samples, values.tolist(), strict=True)]
    (shell.folder / "prs.txt").write_text("\n".join(["FID IID PRS", *rows[::-1]]))
    data = ("g.bed", "--pheno", "t.txt")
    shell("discover", *data, *SIZE, "--offset", "prs.txt", "-o", "out", "--quiet")
    rows = shell.json("predict", "out", *data, "--offset", "prs.txt")["predictions"]
    model = coterie.load(shell.folder / "out").model
    expected = model.predict(open_features(shell.folder / "g.bed").source, offset=values)
    np.testing.assert_allclose([row["prediction"] for row in rows], expected)
    assert "fitted with an offset. Pass that of the new samples with --offset" in shell("predict", "out", *data, code=2).stderr
    shell("discover", *data, *SIZE, "-o", "plain", "--quiet")
    message = shell("predict", "plain", *data, "--offset", "prs.txt", code=2).stderr
    assert "fitted without an offset. Remove --offset" in message


def test_whole_procedure_with_a_polygenic_offset(shell, cohort):
    counts = ("--n-pairs", "2", "--n-permutations", "1", "--max-features-to-select", "3", "--Cs", "[0.1]")
    content = shell.json("discover", "g.bed", "--pheno", "t.txt", "--polygenic-offset", *counts, "-o", "out")
    assert content["held_out"]["baseline"] == "offset alone"
    assert json.loads((shell.folder / "out" / "result.json").read_text())["data"]["notes"]["offset"].startswith(
        "polygenic, all"
    )
    assert "offset alone" in (shell.folder / "out" / "report.html").read_text()


def test_store(shell, cohort):
    shell("convert", "g.bed", "g.store", "--pheno", "t.txt", "--quiet")
    options = (*SIZE, "--chromosome", "chr2", "--polygenic-offset")
    from_store = shell.json("discover", "g.store", *options, "-o", "a")
    from_bed = shell.json("discover", "g.bed", "--pheno", "t.txt", *options, "-o", "b")
    assert from_store["groups"] == from_bed["groups"]


def test_mistakes(shell, cohort):
    (shell.folder / "p.loco").write_text("FID_IID f0_s0\n1 0.5\n")
    table = "\n".join(["a,b,y", *(f"{k % 7},{k % 5},{k % 2}" for k in range(40))])
    (shell.folder / "t.csv").write_text(table)
    data = ("g.bed", "--pheno", "t.txt")
    for options, message in [
        ((*data, "--offset", "p.loco", "--polygenic-offset"), "--polygenic-offset and --offset cannot be combined"),
        ((*data, "--offset", "p.loco"), "p.loco: the file has one offset per chromosome. Choose the chromosome to analyse"),
        (
            (*data, "--offset", "p.loco", "--chromosome", "1"),
            "the offset is missing for 79 of 80 samples: s1, s2, s3, s4, s5, …",
        ),
        ((*data, "--offset", "absent"), "absent: Offset file not found"),
        ((*data, "--chromosome", "9"), "--chromosome 9: the data have no such SNPs. They have 1, 2, 3"),
        ((*data, "--polygenic-offset", "--task", "one-class"), "--polygenic-offset cannot be used with --task one-class"),
        (("t.csv", "--label", "y", "--polygenic-offset"), "--polygenic-offset requires genotypes"),
        (("t.csv", "--label", "y", "--chromosome", "1"), "--chromosome requires genotypes"),
        ((*data, "--polygenic-offset", "--dask", "local"), "--polygenic-offset needs all features in this process"),
    ]:
        assert message in shell("discover", *options, "--fast", "-o", "bad", code=2).stderr
