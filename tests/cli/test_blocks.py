"""``--block`` of ``coterie discover`` and ``coterie predict``."""

import numpy as np
import pandas as pd
import pytest

import coterie


@pytest.fixture
def files(shell):
    """Write expression with labels, and proteins of most samples in another order."""
    rng = np.random.default_rng(0)
    names = [f"s{i}" for i in range(60)]
    rna, protein = rng.standard_normal((60, 12)), rng.standard_normal((60, 6))
    rna = pd.DataFrame(rna, names, [f"g{j}" for j in range(12)])
    protein = pd.DataFrame(protein, names, [f"p{j}" for j in range(6)])
    rna["dx"] = np.where(rna["g2"] + protein["p3"] > 0, "case", "control")
    rna.to_csv(shell.folder / "rna.csv")
    protein.iloc[::-1].to_csv(shell.folder / "protein.csv")
    protein.iloc[3:].to_csv(shell.folder / "part.csv")
    protein.iloc[3:].to_csv(shell.folder / "unnamed.csv", index=False)
    return rna, protein


SETTINGS = ("--label", "dx", "--fast", "--n-features-to-select", "2")


def test_discover_and_predict(shell, files):
    content = shell.json("discover", "rna.csv", *SETTINGS, "--block", "protein.csv", "-o", "out")
    assert {group["name"] for group in content["groups"]} == {"rna:g2", "protein:p3"}
    assert [block["n_features"] for block in content["blocks"]] == [12, 6]
    new = ("new.csv", "--block-name", "rna", "--block", "protein=protein.csv", "--label", "dx")
    files[0].iloc[::-1].to_csv(shell.folder / "new.csv")
    predicted = shell.json("predict", "out", *new)
    assert predicted["score"] > 0.9
    assert predicted["predictions"][0]["sample"] == "s59"
    assert "X lacks 1 of the 2 features" in shell.error(
        "predict", "out", "rna.csv", "--label", "dx", "--block", "x=protein.csv"
    )


def test_the_table_of_matrices_is_shown(shell, files):
    shown = shell("discover", "rna.csv", *SETTINGS, "--block", "protein.csv", "-o", "out").stdout
    assert "Matrices" in shown
    assert "share of the model" in shown


def test_common_samples(shell, files):
    command = ("discover", "rna.csv", *SETTINGS, "--block", "protein=part.csv")
    assert "Block 'protein' lacks 3 of the samples of block 'rna': 's0', 's1', 's2'" in shell.error(*command)
    content = shell.json(*command, "--common-samples", "-o", "out")
    assert content["data"]["samples"] == 57
    assert content["data"]["notes"]["samples_not_in_all_blocks_dropped"] == 3


def test_wrong_blocks(shell, files):
    start = ("discover", "rna.csv", *SETTINGS)
    assert "two matrices with the name 'rna'" in shell.error(*start, "--block", "rna=protein.csv")
    assert "absent.csv" in shell.error(*start, "--block", "absent.csv")
    assert "require --block" in shell.error(*start, "--common-samples")
    assert "Block 'unnamed' has 57 samples, but block 'rna' has 60" in shell.error(*start, "--block", "unnamed.csv")


def test_samples_are_matched_by_a_column_of_names(shell, tmp_path, rng):
    names = [f"p{i}" for i in range(60)]
    a, b = rng.standard_normal((60, 3)), rng.standard_normal((60, 2))
    frame = pd.DataFrame(a, columns=["x", "y", "z"]).assign(label=np.where(b[:, 1] > 0, "ill", "well"))
    frame.insert(0, "id", names)
    frame.to_csv(tmp_path / "a.csv", index=False)
    other = pd.DataFrame(b, columns=["v", "w"]).assign(id=names).sample(frac=1.0, random_state=0)
    other.to_csv(tmp_path / "b.csv", index=False)
    arguments = ["discover", "a.csv", "--label", "label", "--block", "b=b.csv", "--fast", "--overwrite"]
    assert [group["members"][0]["name"] for group in shell.json(*arguments)["groups"]][:1] == ["b:w"]
    words = [" ".join(["much", "free", "text", str(i)]) for i in range(60)]
    frame.assign(id=words).to_csv(tmp_path / "a.csv", index=False)
    message = "Block 'a' has no sample names and can only be matched by position, but columns of it are left out: 1 (id)."
    assert message in shell.error(*arguments)  # the other block has names
    other.drop(columns="id").to_csv(tmp_path / "b.csv", index=False)
    assert message in shell.error(*arguments)
    frame[["x", "z"]].assign(id=words).to_csv(tmp_path / "c.csv", index=False)
    with pytest.raises(ValueError, match=r"left out: 1 \(id\)"):
        coterie.discover({"c": tmp_path / "c.csv", "b": tmp_path / "b.csv"}, frame.label, fast=True)
    assert shell.json(*arguments, "--drop", "id")["groups"]


def test_new_tables_are_encoded_like_the_training_data(shell, tmp_path, rng):
    """New samples have fewer levels, and the files have them in different orders."""
    site, x = np.array(["north", "south", "east"])[np.arange(60) % 3], rng.standard_normal((60, 2))
    labels = np.where(x[:, 1] + 2.0 * (site == "north") > 0.7, "case", "control")
    genes = pd.DataFrame({"id": [f"P{i}" for i in range(60)], "a": x[:, 0], "b": x[:, 1], "y": labels})
    clinical = genes[["id"]].assign(site=site)
    genes.to_csv(tmp_path / "rna.csv", index=False)
    clinical[::-1].to_csv(tmp_path / "clinical.csv", index=False)
    genes[site != "east"].to_csv(tmp_path / "new.csv", index=False)
    clinical[site != "east"].sample(frac=1.0, random_state=0).to_csv(tmp_path / "some.csv", index=False)
    blocks = ["--label", "y", "--block", "clinical=clinical.csv"]
    shell("discover", "rna.csv", *blocks, "--fast", "--n-features-to-select", "3", "-o", "out")
    known = {row["sample"]: row["decision"] for row in shell.json("predict", "out", "rna.csv", *blocks)["predictions"]}
    new = ["predict", "out", "new.csv", "--block", "clinical=some.csv"]
    assert "DATA is the matrix 'new' here: --block-name renames it." in shell.error(*new)
    found = {row["sample"]: row["decision"] for row in shell.json(*new, "--block-name", "rna")["predictions"]}
    assert found == pytest.approx({name: known[name] for name in found}, rel=1e-9)
    assert set(found) == set(genes["id"][site != "east"])
