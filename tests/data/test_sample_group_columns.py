"""Sample groups from files: columns, keys and text files, and errors about them."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from coterie import GroupDiscoveryClassifierCV
from coterie.data import DataFileError, convert, open_features
from tests.data.test_bio import write_plink

N = 24
GROUPS = [f"p{i // 3}" for i in range(N)]
LABELS = np.where(np.arange(N) // 3 % 2, "case", "control")


@pytest.fixture
def folder(tmp_path):
    X = np.random.default_rng(0).standard_normal((N, 4))
    frame = pd.DataFrame(X, columns=list("abcd"))
    frame.insert(1, "patient", GROUPS)
    frame["label"] = LABELS
    frame.to_csv(tmp_path / "t.csv", index=False)
    frame.to_csv(tmp_path / "t.tsv", index=False, sep="\t")
    frame.to_parquet(tmp_path / "t.parquet")
    np.savez(tmp_path / "t.npz", X=X, y=LABELS, patient=GROUPS)
    (tmp_path / "groups.txt").write_text("\n".join(GROUPS) + "\n")
    lines = [f"{i % 2} " + " ".join(f"{j + 1}:{x}" for j, x in enumerate(row)) for i, row in enumerate(X)]
    (tmp_path / "t.svm").write_text("\n".join(lines) + "\n")
    return tmp_path


@pytest.mark.parametrize("name", ["t.csv", "t.tsv", "t.parquet", "t.npz", "t.svm"])
def test_groups_of_a_file_and_of_its_store(folder, name):
    groups = folder / "groups.txt" if name == "t.svm" else "patient"
    dataset = open_features(folder / name, sample_groups=groups)
    assert dataset.shape == (N, 4)
    assert dataset.sample_groups.tolist() == GROUPS
    store = open_features(convert(folder / name, folder / "x.store", sample_groups=groups))
    assert store.sample_groups.tolist() == GROUPS
    assert open_features(folder / "x.store", sample_groups=False).sample_groups is None
    other = open_features(folder / "x.store", sample_groups=folder / "groups.txt")
    assert other.sample_groups.tolist() == GROUPS


def test_a_position_and_dropped_samples(folder):
    frame = pd.read_csv(folder / "t.csv")
    frame.loc[4, "label"] = None
    frame.to_csv(folder / "gap.csv", index=False)
    dataset = open_features(folder / "gap.csv", sample_groups=1, missing_labels="drop")
    assert dataset.sample_groups.tolist() == GROUPS[:4] + GROUPS[5:]


def test_numbers_are_text_as_in_a_store(tmp_path):
    frame = pd.DataFrame({"x": np.arange(6.0), "donor": [10, 10, 2, 2, 1, 1], "y": [0, 0, 1, 1, 0, 1]})
    frame.to_parquet(tmp_path / "t.parquet")
    dataset = open_features(tmp_path / "t.parquet", sample_groups="donor")
    assert dataset.sample_groups.tolist() == ["10", "10", "2", "2", "1", "1"]
    assert dataset.shape == (6, 1)


@pytest.mark.parametrize(
    ("name", "groups", "message"),
    [
        ("t.csv", "patent", "sample_groups='patent': column not found. Did you mean 'patient'?"),
        ("t.csv", "label", "sample_groups='label' is the column of the labels"),
        ("t.npz", "patent", "Did you mean 'patient'?"),
        ("t.npz", "X", "there is no such array with one value per sample"),
        ("t.svm", "patient", "Text file with one sample group per line not found"),
    ],
)
def test_unknown_groups(folder, name, groups, message):
    with pytest.raises((DataFileError, FileNotFoundError), match=r"(?s).*" + message.replace("?", r"\?")):
        open_features(folder / name, sample_groups=groups)


def test_missing_groups(folder):
    frame = pd.read_csv(folder / "t.csv")
    frame.loc[[4, 7], "patient"] = None
    frame.to_csv(folder / "gap.csv", index=False)
    with pytest.raises(DataFileError, match=r"missing in column 'patient' for 2 of 24 samples. The first is sample 4"):
        open_features(folder / "gap.csv", sample_groups="patient")


def test_a_text_file_of_the_wrong_length(folder):
    (folder / "short.txt").write_text("a\nb\n")
    with pytest.raises(ValueError, match="there are 2 sample groups, but 24 samples"):
        open_features(folder / "t.svm", sample_groups=folder / "short.txt")
    convert(folder / "t.svm", folder / "x.store")
    with pytest.raises(DataFileError, match=r"2 sample groups, but .* has 24 samples"):
        open_features(folder / "x.store", sample_groups=folder / "short.txt")


def test_anndata(tmp_path):
    from anndata import AnnData

    obs = pd.DataFrame({"kind": LABELS, "donor": pd.Categorical(GROUPS)}, index=[f"c{i}" for i in range(N)])
    adata = AnnData(np.random.default_rng(0).standard_normal((N, 5)), obs)
    adata.write_h5ad(tmp_path / "t.h5ad")
    assert open_features(adata, sample_groups="donor").sample_groups.tolist() == GROUPS
    assert open_features(tmp_path / "t.h5ad", sample_groups="donor").sample_groups.tolist() == GROUPS
    model = GroupDiscoveryClassifierCV(2, cv=3, random_state=0)
    scores = [model.fit(X, "kind", groups="donor").best_score_ for X in (adata, tmp_path / "t.h5ad", str(tmp_path / "t.h5ad"))]
    assert scores == [model.fit(adata.X, LABELS, groups=GROUPS).best_score_] * 3
    assert model.fit(adata, LABELS, groups="donor").n_sample_groups_ == 8
    for opened in (adata, tmp_path / "t.h5ad"):
        with pytest.raises(ValueError, match=r"obs has no column 'doner' for the sample groups. Did you mean 'donor'\?"):
            open_features(opened, sample_groups="doner")


def test_a_string_requires_a_container(folder):
    frame = pd.read_csv(folder / "t.csv")
    with pytest.raises(ValueError, match=r"groups is the string 'patient'.*sample groups themselves \(X\['patient'\]\)"):
        GroupDiscoveryClassifierCV(2).fit(frame[list("abcd")], frame["label"], groups="patient")
    model = GroupDiscoveryClassifierCV(2, cv=3, random_state=0).fit(folder / "t.csv", groups="patient")
    assert model.n_sample_groups_ == 8
    assert model.n_features_in_ == 4


def test_plink(tmp_path):
    rng = np.random.default_rng(0)
    bed = write_plink(tmp_path, rng.integers(0, 3, (6, 4)), ["1", "2", "1", "-9", "2", "1"])
    fam = [line.split() for line in (tmp_path / "x.fam").read_text().splitlines()]
    for k, row in enumerate(fam):
        row[0] = f"f{k // 2}"
    (tmp_path / "x.fam").write_text("".join(" ".join(row) + "\n" for row in fam))
    assert open_features(bed, sample_groups="FID").sample_groups.tolist() == ["f0", "f0", "f1", "f2", "f2"]
    rows = [f"{row[0]} {row[1]} site{k % 3} {k}.5" for k, row in enumerate(fam)]
    (tmp_path / "covar.txt").write_text("FID IID site age\n" + "\n".join(rows) + "\n")
    dataset = open_features(bed, sample_groups="site", covariates=tmp_path / "covar.txt")
    assert dataset.sample_groups.tolist() == ["site0", "site1", "site2", "site1", "site2"]
    assert dataset.covariates.names == ("age",)
    store = open_features(convert(bed, tmp_path / "x.store"), sample_groups="site", covariates=tmp_path / "covar.txt")
    assert store.sample_groups.tolist() == dataset.sample_groups.tolist()
    assert store.covariates.names == ("age",)
    with pytest.raises(DataFileError, match=r"sample_groups='sit': column not found. Did you mean 'site'\?"):
        open_features(bed, sample_groups="sit", covariates=tmp_path / "covar.txt")
    with pytest.raises(DataFileError, match="Pass phenotype= or covariates="):
        open_features(bed, sample_groups="site")
