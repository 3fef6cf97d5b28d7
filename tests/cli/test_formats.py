"""Commands on the formats of their users: tables with names, AnnData, PLINK."""

import csv
import warnings
from typing import get_type_hints

import numpy as np
import pandas as pd
import pytest

from coterie.cli.data import DataOptions, DataPath
from coterie.data import FORMATS
from coterie.discovery import FEW_FEATURES
from tests.conftest import grouped_matrix

NAMES = [f"[red]gene {j}[/red] <b>" for j in range(40)]


@pytest.fixture
def table(tmp_path):
    """A CSV file with names that are markup, and classes that are words."""
    X, y = grouped_matrix(np.random.default_rng(0))
    frame = pd.DataFrame(X, columns=NAMES)
    frame.insert(3, "diagnosis", np.where(y > 0, "ill", "well"))
    frame.to_csv(tmp_path / "genes.csv", index=False)
    return frame


OPTIONS = ("--n-features-to-select", "5", "--label", "diagnosis")


def test_the_help_names_every_format_and_its_labels():
    label = get_type_hints(DataOptions, include_extras=True)["labels"]
    texts = [option.__metadata__[0].help for option in (DataPath, label)]
    assert texts[0].endswith(", or a store. Text may be compressed (.gz, .bz2, .xz).")
    for entry in FORMATS.values():
        assert entry.description in texts[0]
        assert not entry.labels or f"{entry.labels} (" in texts[1]


def test_names_come_along_as_they_are(shell, table):
    result = shell("discover", "--fast", "genes.csv", "-o", "out", *OPTIONS)
    assert "[red]gene " in result.stdout  # shown as text, not as markup
    with (shell.folder / "out" / "groups.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert all(row["name"] == NAMES[int(row["feature"])] for row in rows)
    assert "&lt;b&gt;" in (shell.folder / "out" / "report.html").read_text()
    content = shell.json("predict", "out", "genes.csv", "--label", "diagnosis")
    assert {row["prediction"] for row in content["predictions"]} == {"ill", "well"}
    assert "gene 0" in shell("info", "genes.csv", "--label", "diagnosis").stdout
    assert shell.json("discover", "--fast", "genes.csv", "--class-weight", '{"ill": 3}', *OPTIONS)["parameters"][
        "class_weight"
    ] == {"ill": 3}


def test_features_can_be_fixed_by_name(shell, table):
    fixed = NAMES[7].replace(",", "")
    content = shell.json("discover", "--fast", "genes.csv", *OPTIONS, "--fixed-features", f'["{fixed}"]')
    assert content["groups"][0]["name"] == NAMES[7]


def test_the_same_groups_from_every_format(shell, table):
    X, y = table.drop(columns="diagnosis"), table["diagnosis"]
    np.savez(shell.folder / "genes.npz", X=X.to_numpy(), y=y.to_numpy().astype("U4"))
    table.to_csv(shell.folder / "genes.tsv", index=False, sep="\t")
    table.to_parquet(shell.folder / "genes.parquet")
    shell("convert", "genes.csv", "genes.store", "--label", "diagnosis", "--quiet")
    found = {}
    for name, label in (
        ("genes.csv", "diagnosis"),
        ("genes.tsv", "diagnosis"),
        ("genes.parquet", "diagnosis"),
        ("genes.npz", "y"),
    ):
        content = shell.json("discover", "--fast", name, "-o", f"{name}-out", "--n-features-to-select", "5", "--label", label)
        found[name] = [[member["feature"] for member in group["members"]] for group in content["groups"]]
    content = shell.json("discover", "--fast", "genes.store", "--n-features-to-select", "5")
    found["genes.store"] = [[member["feature"] for member in group["members"]] for group in content["groups"]]
    assert len(set(map(str, found.values()))) == 1, found


def test_wrong_labels_and_names(shell, table):
    assert "diagnose" in shell.error("discover", "--fast", "genes.csv", "--label", "diagnose")
    assert "Name them with --label" in shell.error("discover", "--fast", "genes.csv", "--label", "none")
    np.savez(shell.folder / "genes.npz", X=np.eye(3), y=np.arange(3))
    assert "has no labels. Name them with --label" in shell.error("discover", "--fast", "genes.npz", "--label", "none")


def test_predictions_go_by_name(shell, table):
    """Another order, other columns, or only the columns used give the same predictions; missing columns are named."""
    content = shell.json("discover", "genes.csv", "-o", "out", *OPTIONS, "--n-pairs", "0", "--cv", "2", "--Cs", "1")
    expected = shell.json("predict", "out", "genes.csv", "--label", "diagnosis")
    columns = [f"probability {label}" for label in sorted(set(table["diagnosis"]))]
    assert all(abs(sum(row[column] for column in columns) - 1.0) < 1e-9 for row in expected["predictions"])
    table[[*NAMES[::-1], "diagnosis"]].assign(more=1).to_csv(shell.folder / "other.csv", index=False)
    read = [member["name"] for group in content["groups"] for member in group["members"]]
    table[[*read[::-1], "diagnosis"]].to_csv(shell.folder / "small.csv", index=False)
    for name in ("other.csv", "small.csv"):
        found = shell.json("predict", "out", name, "--label", "diagnosis")
        assert [row["prediction"] for row in found["predictions"]] == [row["prediction"] for row in expected["predictions"]]
        assert found["score"] == expected["score"]
    table[["diagnosis", *[name for name in NAMES if name not in read]]].to_csv(shell.folder / "none.csv", index=False)
    assert f"'{sorted(read, key=NAMES.index)[0]}'" in shell.error("predict", "out", "none.csv", "--label", "diagnosis")


def test_results_go_back_into_anndata(shell, table):
    anndata = pytest.importorskip("anndata")
    X = table.drop(columns="diagnosis").to_numpy()
    obs = pd.DataFrame({"diagnosis": pd.Categorical(table["diagnosis"])}, index=[f"cell{i}" for i in range(60)])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        data = anndata.AnnData(X, obs, pd.DataFrame(index=[f"g{j}" for j in range(40)]))
        data.write_h5ad(shell.folder / "cells.h5ad")
    content = shell.json("discover", "--fast", "cells.h5ad", *OPTIONS, "-o", "out")
    assert "annotated.h5ad" in content["files"]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        back = anndata.read_h5ad(shell.folder / "out" / "annotated.h5ad")
    assert back.var.index[back.var["support"]].tolist() == sorted(
        (g["name"] for g in content["groups"]), key=lambda n: int(n[1:])
    )
    for group in content["groups"]:
        for member in group["members"]:
            assert back.var.loc[member["name"], "group"] == group["group"]
            assert back.var.loc[member["name"], "correlation"] == pytest.approx(member["correlation"])
    assert (back.var["group"] == 0).sum() == 40 - sum(len(g["members"]) for g in content["groups"])
    assert back.uns["coterie"]["task"] == "classification"
    assert set(back.uns["coterie"]["names"].dtype.names) == set(table["diagnosis"])
    classes = pd.read_csv(shell.folder / "out" / "classes.csv")
    assert len(classes) == 2 * sum(len(g["members"]) for g in content["groups"])
    first = classes[(classes["name"] == content["groups"][0]["name"])].set_index("class")
    assert first["weight"].to_dict() == pytest.approx(content["groups"][0]["class_weights"])
    assert first["log_fold_change"].isna().all() == (X[:, content["groups"][0]["support"]] < 0).any()
    assert not content["warnings"]
    assert np.array_equal(back.X, X)
    rows = shell.json("predict", "out", "cells.h5ad")["predictions"]
    assert rows[0]["sample"] == "cell0"


def test_plink(shell, real_data):
    pytest.importorskip("bed_reader")
    folder = real_data / "plink_eur"
    options = ("--phenotype", folder / "EUR_subset.pheno.covars", "--label", "PHENO")
    result = shell("discover", "--fast", folder / "EUR_subset.bed", *options, "-o", "out", "--n-features-to-select", "3")
    assert "samples without phenotype dropped: 10" in result.stderr
    lines = [line.split() for line in (shell.folder / "out" / "groups.clumps").read_text().splitlines()]
    with (folder / "EUR_subset.bim").open() as file:
        places = {row[1]: (row[0], row[3]) for row in map(str.split, file)}
    assert len(lines) == 4
    assert all((line[0], line[3]) == places[line[2]] for line in lines[1:])
    shell("convert", folder / "EUR_subset.bed", "eur.store", *options, "--quiet")
    shell("discover", "--fast", "eur.store", "-o", "again", "--n-features-to-select", "3", "--quiet")
    assert (shell.folder / "again" / "groups.clumps").read_text() == (shell.folder / "out" / "groups.clumps").read_text()
    assert (shell.folder / "again" / "groups.csv").read_text() == (shell.folder / "out" / "groups.csv").read_text()


def test_plink_with_covariates(shell, rng):
    """As a user of PLINK types it: names of traits and covariates, association, clumps, prediction."""
    bed_reader = pytest.importorskip("bed_reader")
    X = rng.integers(0, 3, (60, 30)).astype(np.int8)
    X[:, 5] = np.where(rng.random(60) < 0.9, X[:, 4], X[:, 5])
    age = rng.uniform(20, 70, 60)
    y = X[:, 4] + 0.2 * age + 0.3 * rng.standard_normal(60)
    bed_reader.to_bed(shell.folder / "g.bed", X, properties={"bp_position": range(1, 31), "chromosome": ["3"] * 30})
    ids = [line.split()[:2] for line in (shell.folder / "g.fam").read_text().splitlines()]
    rows = [f"{f} {i} {a} {b}" for (f, i), a, b in zip(ids, y.tolist(), age.tolist(), strict=True)]
    (shell.folder / "t.txt").write_text("\n".join(["FID IID BMI AGE", *rows[::-1]]))
    files = ("--pheno", "t.txt", "--pheno-name", "BMI", "--covar", "t.txt", "--covar-name", "AGE")
    size = ("--fast", "--n-features-to-select", "2", "--clump-kb", "1")
    content = shell.json("discover", "g.bed", *files, *size, "-o", "out")
    assert content["data"]["covariates"] == ["AGE"]
    assert content["groups"][0]["support"] in (4, 5)
    member = content["groups"][0]["members"][0]
    assert member["annotations"]["chromosome"] == "3"
    assert member["annotations"]["p_value"] < 1e-6
    clump = (shell.folder / "out" / "groups.clumps").read_text().splitlines()[1].split()
    assert clump[:2] == ["3", "1"]
    assert float(clump[4]) == pytest.approx(member["annotations"]["p_value"], rel=1e-3)
    assert "p_value" in (shell.folder / "out" / "groups.csv").read_text().splitlines()[0].split(",")
    assert shell.json("predict", "out", "g.bed", *files)["score"] > 0.9
    result = shell("predict", "out", "g.bed", code=2)
    assert "fitted with covariates (AGE). Pass those of the new samples with --covar" in result.stderr
    assert len(content["groups"][0]["members"]) == 2
    near = shell.json("discover", "g.bed", *files, *size, "--max-distance", "0.0005", "-o", "near")
    assert [len(group["members"]) for group in near["groups"]] == [1, 1]
    assert near["parameters"]["compatibility"] == "ChromosomeDistance(30 features, max_distance=0.5)"
    shell.json("discover", "g.bed", *files, *size, "--no-association", "-o", "without")
    assert "p_value" not in (shell.folder / "without" / "groups.csv").read_text().splitlines()[0].split(",")
    for options, message in [
        ((*files[:-1], "PC1"), "covariate 'PC1' not found. The file has BMI, AGE"),
        (("--covar-name", "AGE"), "Name the file with --covar"),
        ((*files, "--clump-r2", "2"), "--clump-r2 2 must be at least 0 and at most 1"),
        ((*files, "--clump-kb", "-1"), "--clump-kb -1 must be at least 0"),
        ((*files, "--max-distance", "nan"), "--max-distance nan must be at least 0"),
        ((*files, "--task", "one-class"), "--covar cannot be used with --task one-class. Leave out the covariates."),
    ]:
        assert message in shell("discover", "g.bed", *options, "--fast", "-o", "bad", code=2).stderr
    assert "--covar: this command does not adjust for covariates" in shell("rank", "g.bed", *files, code=2).stderr


def test_the_default_is_the_estimators_for_more_features(shell, rng):
    X = rng.standard_normal((30, FEW_FEATURES + 1))
    np.savez(shell.folder / "wide.npz", X=X, y=(X[:, 0] > 0).astype(int))
    result = shell("discover", "--fast", "wide.npz", "--max-distance", "250", code=2)
    assert "--max-distance requires the chromosome of each feature, which wide.npz does not have." in result.stderr
    assert shell.json("discover", "--fast", "wide.npz")["parameters"]["n_features_to_select"] == 100


def test_read_only_folders(shell, table, monkeypatch):
    from coterie.files import claims

    def refuse(path):  # root may write anywhere: ask as somebody else
        raise PermissionError(13, "Permission denied", path)

    monkeypatch.setattr(claims, "_open_claim", refuse)
    assert "Folder is not writable (Permission denied)" in shell.error("discover", "--fast", "genes.csv", *OPTIONS)


def test_a_full_disk_is_one_line(shell, table, monkeypatch):
    from coterie.report import folder

    def full(*_):
        raise OSError(28, "No space left on device", "out")

    monkeypatch.setattr(folder, "save", full)
    assert "No space left on device" in shell.error("discover", "--fast", "genes.csv", *OPTIONS)
    assert sorted(path.name for path in shell.folder.iterdir()) == ["genes.csv"]


def test_layers_of_anndata_with_other_genes(shell, table):
    """Scaled values in X, log counts of more genes in raw, a cell without a label: what scanpy's users have."""
    anndata = pytest.importorskip("anndata")
    rng = np.random.default_rng(0)
    kind = np.repeat(["B", "NK", "T"], 30)
    counts = rng.poisson(1.0, (90, 30))
    for c, label in enumerate(["B", "NK", "T"]):
        counts[kind == label, c] += 5
    obs = pd.DataFrame({"kind": pd.Categorical(np.where(np.arange(90) == 4, None, kind))}, index=[f"c{i}" for i in range(90)])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        full = anndata.AnnData(np.log1p(counts).astype(np.float32), obs, pd.DataFrame(index=[f"g{j}" for j in range(30)]))
        part = full[:, 1:20].copy()
        part.raw = full
        part.X = (part.X - part.X.mean(axis=0)) / part.X.std(axis=0)
        part.write_h5ad(shell.folder / "cells.h5ad")
    error = shell.error("discover", "cells.h5ad", "--label", "kinds", "--fast")
    assert "Did you mean 'kind'? Available columns: kind (3 classes)" in error
    assert "1 of 90 samples have no label in obs['kind']" in shell.error("discover", "cells.h5ad", "--label", "kind", "--fast")
    given = [
        "discover",
        "--fast",
        "cells.h5ad",
        "--label",
        "kind",
        "--read",
        "missing_labels=drop",
        "--n-features-to-select",
        "3",
    ]
    scaled = shell.json(*given, "-o", "scaled")
    logs = shell.json(*given, "-o", "logs", "--read", "layer=raw")
    assert {g["name"]: g["marks"] for g in logs["groups"]} == {"g0": "B", "g1": "NK", "g2": "T"}
    for name, content in (("scaled", scaled), ("logs", logs)):
        assert not content["warnings"]
        classes = pd.read_csv(shell.folder / name / "classes.csv")
        assert classes["log_fold_change"].notna().all()  # those of raw, in both cases
        assert classes["detected"].between(0, 1).all()
        columns = pd.read_csv(shell.folder / name / "groups.csv").columns
        assert {"marks", "weight[B]", "weight[NK]", "weight[T]"} <= set(columns)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            back = anndata.read_h5ad(shell.folder / name / "annotated.h5ad")
        assert bool(back.uns["coterie"]["params"]["use_raw"]) is True
    assert back.var["support"].sum() == 2  # X does not have g0
    assert back.uns["coterie"]["names"]["B"][0] == "g0"
