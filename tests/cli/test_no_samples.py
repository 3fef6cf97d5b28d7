"""``coterie discover --no-samples``."""

import json

import numpy as np
import pandas as pd
import pytest

from tests.report.test_confidential import leaked


def test_command(shell):
    rng = np.random.default_rng(1)
    table = pd.DataFrame(rng.standard_normal((60, 6)), columns=[f"gene{j}" for j in range(6)])
    table["illness"] = np.where(table["gene2"] > 0, "ill", "well")
    table.to_csv("genes.csv", index=False)
    shell("discover", "genes.csv", "--label", "illness", "--n-pairs", "0", "--no-samples", "-o", "closed", "--quiet")
    content = json.loads((shell.folder / "closed" / "result.json").read_text())
    assert content["pictures"]["values"] == []
    assert leaked(content, table["gene2"].tolist(), [4, 17]) == []
    assert (shell.folder / "closed" / "classes.csv").exists()


def test_command_with_cells(shell):
    anndata = pytest.importorskip("anndata")
    rng = np.random.default_rng(1)
    counts = rng.poisson(2.0, (60, 5)).astype(np.float32)
    kind = pd.Categorical(np.where(counts[:, 1] > 2, "B", "T"))
    names = pd.Index([f"c{i}" for i in range(60)])
    anndata.AnnData(counts, obs=pd.DataFrame({"kind": kind}, index=names)).write_h5ad("cells.h5ad")
    words = ["discover", "cells.h5ad", "--label", "kind", "--fast", "--n-features-to-select", "1", "--quiet"]
    shell(*words, "-o", "open")
    shell(*words, "--no-samples", "-o", "closed")
    assert (shell.folder / "open" / "annotated.h5ad").exists()
    assert sorted(path.name for path in (shell.folder / "closed").iterdir()) == [
        "classes.csv", "groups.csv", "methods.txt", "model.coterie", "report.html", "result.json",
    ]  # fmt: skip
