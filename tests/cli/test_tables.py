"""A messy table from file to report, what info tells of it, and a quantitative trait in every command."""

import csv

import numpy as np
import pandas as pd
import pytest

pytest.importorskip("pyarrow")


@pytest.fixture
def messy(tmp_path, rng):
    z = rng.standard_normal(90)
    frame = pd.DataFrame(
        {
            "id": [f"P{i}" for i in range(90)],
            "visit": pd.date_range("2023-01-01", periods=90).strftime("%Y-%m-%d"),
            "smoker": rng.random(90) < 0.5,
            "a": z + 0.3 * rng.standard_normal(90),
            "b": z + 0.3 * rng.standard_normal(90),
            **{f"lab{j}": rng.standard_normal(90) for j in range(4)},
            "diagnosis": np.where(z > 0, "sick", "well"),
            "pressure": (120 + 10 * z).round(2),
        }
    )
    frame.loc[rng.random(90) < 0.1, "a"] = np.nan
    frame.to_csv(tmp_path / "messy.csv", index=False)
    return frame


QUICK = ("--n-pairs", "2", "--n-permutations", "0", "--cv", "3", "--max-features-to-select", "3")


def test_from_file_to_predictions(shell, messy):
    message = shell.error("discover", "messy.csv", "--label", "diagnosis")
    assert "1 of 8 columns has missing values: 'a'" in message
    assert "--impute 'median'" in message
    words = ("messy.csv", "--label", "diagnosis", "--drop", "id,visit", "--drop", "pressure", "--impute", "median")
    result = shell("discover", *words, "-o", "out", *QUICK)
    assert (
        "missing values in 1 features are filled (a). In validation, each fold is filled from its training samples"
        in result.stderr
    )
    assert "9 samples" not in result.stderr
    # The model knows what it reads, and what gaps are: the file as it is, and one without labels.
    predictions = shell.json("predict", "out", "messy.csv", "--label", "diagnosis")
    assert predictions["score"] > 0.8
    messy.drop(columns=["diagnosis", "pressure"]).to_csv("new.csv", index=False)
    assert shell.json("predict", "out", "new.csv")["predictions"] == predictions["predictions"]
    assert "applies to training only" in shell.error("predict", "out", "new.csv", "--impute", "mean")


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--label", "diagnoses"], "--label 'diagnoses': column not found. Did you mean 'diagnosis'?"),
        (["--label", "diagnosis", "--drop", "vist"], "--drop 'vist': column not found. Did you mean 'visit'?"),
        (["--label", "diagnosis", "--impute", "modal"], "--impute modal must be one of median, mean"),
    ],
)
def test_wrong_options(shell, messy, words, message):
    assert message in shell.error("discover", "messy.csv", *words)


def test_a_store_has_no_gaps_to_fill(shell, messy):
    assert "a store keeps the measured values" in shell.error("convert", "messy.csv", "s", "--impute", "mean")
    shell("convert", "messy.csv", "s", "--label", "diagnosis", "--drop", "a,id,visit")
    assert shell.json("info", "s")["features"] == 7


def test_info_about_a_table(shell, messy):
    facts = shell.json("info", "messy.csv")
    assert (facts["samples"], facts["columns"], facts["features"]) == (90, 11, 9)
    columns = {column["name"]: column for column in facts["column table"]}
    assert columns["visit"]["kind"] == "dates"
    assert columns["smoker"] == {
        "name": "smoker",
        "kind": "booleans",
        "missing": 0,
        "distinct": 2,
        "values": ["False", "True"],
        "use": "feature, true = 1, false = 0",
    }
    uses = {name: column["use"] for name, column in columns.items()}
    assert uses["diagnosis"] == "feature, well = 1, sick = 0"
    assert uses["id"] == "sample names"
    assert uses["visit"] == "left out: dates"
    assert uses["a"] == "feature"
    assert columns["a"]["missing"] == int(messy.a.isna().sum())
    assert columns["pressure"]["lowest"] == messy.pressure.min()
    assert columns["diagnosis"]["values"] == ["sick", "well"]
    assert facts["candidates for labels"].startswith("diagnosis (2 classes), smoker (2 classes); ")
    assert facts["for instance"] == "coterie discover messy.csv --label NAME --impute median"
    shown = shell("info", "messy.csv", "--label", "diagnosis").stdout
    assert "diagnosis: text, 2 distinct values, 0 missing" in shown
    assert "2023-01-01" in shown
    assert "Did you mean 'diagnosis'" in shell.error("info", "messy.csv", "--label", "diagnosi")


def test_info_shows_cautions(shell, tmp_path, rng):
    patient = np.repeat(np.arange(20), 4)
    rows = rng.standard_normal((20, 3))[patient].round(4).tolist()
    lines = [f"p{k},{','.join(map(str, row))},{k % 2}" for k, row in zip(patient.tolist(), rows, strict=True)]
    (tmp_path / "p.csv").write_text("patient,a,b,c,label\n" + "\n".join(lines) + "\n")
    found = shell.json("info", "p.csv")["cautions"]
    assert [one["kind"] for one in found] == ["identifier", "duplicate samples", "dependent samples"][: len(found)]
    assert "Caution (identifier): Column 'patient' has 20 values" in " ".join(shell("info", "p.csv").stdout.split())
    shell("convert", "p.csv", "p.store", "--drop", "patient")
    assert "identifier" not in {one["kind"] for one in shell.json("info", "p.store").get("cautions", ())}


def test_info_about_a_table_of_words(shell, tmp_path):
    (tmp_path / "w.csv").write_text("a,b\nx,y\nz,y\nv,y\n")
    facts = shell.json("info", "w.csv")
    assert facts["features"] == 0
    assert [column["use"] for column in facts["column table"]] == [
        "sample names",
        "left out: constant",
    ]


def test_info_tells_of_columns_that_are_refused(shell, tmp_path):
    (tmp_path / "m.csv").write_text("a;b;c\n" + "1,5;2;high\n1,7;low;low\n" * 5)
    facts = shell.json("info", "m.csv", "--label", "c")
    assert [column["use"] for column in facts["column table"]] == ["feature", "refused: numbers and text", "label"]
    assert facts["decimal mark"] == "comma"
    assert "'b' (numbers and text: 'low' in line 3)" in facts["problem"]


SPREADSHEET = ("--label", "Diagnose", "--covar", "Klinik", "--weight", "Gewicht", "--fast", "--n-features-to-select", "2")


def test_a_european_table_and_its_new_samples(shell, tmp_path, rng):
    """Delimiter, decimal comma, categories, covariates and weights; new samples from another format in another order."""
    n = 60
    city = rng.choice(["Ulm", "Bonn", "Graz"], n)
    frame = pd.DataFrame({"Stadt": city, "Wert": rng.standard_normal(n).round(2), "Klinik": rng.choice(["A", "B"], n)})
    frame["Gewicht"] = rng.integers(1, 3, n)
    frame["Diagnose"] = np.where((city == "Ulm") ^ (rng.random(n) < 0.1), "krank", "gesund")
    frame["Kennung"] = [f"P{i}" for i in range(n)]
    frame.to_csv(tmp_path / "p.csv", sep=";", decimal=",", index=False)
    result = shell("discover", "p.csv", *SPREADSHEET, "-o", "out")
    assert (
        "delimiter: semicolon; decimal mark: comma; sample names: Kennung; columns encoded: 2 (Stadt (one-hot" in result.stderr
    )
    assert "sample weights" in result.stderr
    rows = list(csv.DictReader((tmp_path / "out" / "groups.csv").read_text().splitlines()))
    assert {row["group"] for row in rows if row["column"] == "Stadt"} == {"1"}
    predictions = shell.json("predict", "out", "p.csv", "--label", "Diagnose")
    assert predictions["score"] > 0.8
    pytest.importorskip("openpyxl")
    frame.iloc[:, ::-1].drop(columns=["Diagnose", "Gewicht"]).to_excel(tmp_path / "n.xlsx", index=False)
    assert shell.json("predict", "out", "n.xlsx")["predictions"] == predictions["predictions"]


def test_info_about_arrays_and_annotated_data(shell, tmp_path, rng):
    np.savez(tmp_path / "x.npz", X=rng.standard_normal((6, 3)), y=np.arange(6) % 2, other=np.arange(6))
    assert shell.json("info", "x.npz")["arrays"] == "X, y, other"
    assert "Did you mean 'other'" in shell.error("discover", "x.npz", "--label", "othr")
    anndata = pytest.importorskip("anndata")
    obs = pd.DataFrame(
        {"kind": pd.Categorical(["B", "T", "NK"] * 4), "n": np.arange(12.0)}, index=[f"c{i}" for i in range(12)]
    )
    data = anndata.AnnData(rng.random((12, 4)).astype(np.float32), obs=obs)
    data.layers["counts"] = data.X.copy()
    data.write_h5ad(tmp_path / "x.h5ad")
    facts = shell.json("info", "x.h5ad")
    assert facts["layers"] == "counts"
    assert facts["candidates for labels"].startswith("kind (3 classes)")
    assert [column["name"] for column in facts["column table"]] == ["kind", "n"]


def test_a_trait_in_rank(shell, messy):
    words = ("messy.csv", "--label", "pressure", "--keep-numeric", "--impute", "mean")
    for method in ([], ["--method", "grm"], ["--method", "bif"]):
        content = shell.json("rank", *words, *method)
        assert content["task"] == "regression"
        assert {row["name"] for row in content["ranking"][:2]} == {"a", "b"}
    assert content["parameters"] == {"criterion": "ridge_regression"}
    assert shell.json("rank", *words)["method"] == "correlation"
    message = shell.error("rank", *words, "--method", "relieff")
    assert "--method relieff requires labels that are classes, but the labels are numbers. Methods for numbers:" in message
    classes = ("messy.csv", "--label", "diagnosis", "--keep-numeric", "--impute", "mean")
    assert "--method correlation requires labels that are numbers" in shell.error("rank", *classes, "--method", "correlation")
    assert "--task one-class must be one of auto" in shell.error("rank", *words, "--task", "one-class")


def test_a_trait_in_compare(shell, messy):
    words = ("messy.csv", "--label", "pressure", "--keep-numeric", "--impute", "median", "--cv", "3", "-n", "2")
    content = shell.json("compare", *words, "--methods", "gdm,correlation", "-o", "c")
    assert content["task"] == "regression"
    assert all(row["r2"] > 0.7 and row["rmse"] > 0 and row["status"] == "ok" for row in content["summary"])
    with (shell.folder / "c" / "summary.csv").open(newline="") as file:
        assert {"r2", "r2_std", "rmse"} <= set(next(csv.DictReader(file)))
    shown = shell("compare", *words, "--methods", "gdm,correlation", "-o", "c").stdout  # all rows are there already
    assert "R²" in shown
    assert "RMSE" in shown
    assert "requires classes, but the labels are numbers" in shell.error("compare", *words, "--methods", "svm-rfe", "-o", "d")
    assert "must be one of ridge, knn for regression" in shell.error(
        "compare", *words, "--classifier", "linear_svm", "-o", "d"
    )


def test_the_number_of_features_for_a_trait_by_validation(shell, messy):
    words = ("messy.csv", "--label", "pressure", "--keep-numeric", "--impute", "median", "-o", "out", *QUICK[:6])
    content = shell.json("discover", *words, "--n-features-to-select", "cv")
    assert content["task"] == "regression"
    assert content["estimator"] == "GroupDiscoveryRegressorCV"
