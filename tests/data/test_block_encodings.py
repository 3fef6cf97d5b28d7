"""Tables with categories as blocks: the encoding of the training data, and sample names, for new files."""

import numpy as np
import pandas as pd
import pytest

import coterie
from coterie import GroupDiscoveryClassifier
from coterie.data import open_features
from coterie.data.blocks import join_blocks

N = 60


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Return the folder of two tables of training samples, and two of new ones in another order with fewer levels."""
    folder = tmp_path_factory.mktemp("tables")
    rng = np.random.default_rng(0)
    site = np.array(["north", "south", "east"])[np.arange(N) % 3]
    X = rng.standard_normal((N, 4))
    y = np.where(X[:, 1] + 2.0 * (site == "north") + 0.3 * rng.standard_normal(N) > 0.7, "case", "control")
    names = [f"P{i}" for i in range(N)]
    genes = pd.DataFrame(X, columns=list("abcd")).assign(id=names, y=y)
    clinical = pd.DataFrame({"id": names, "site": site, "age": rng.integers(20, 80, N)})
    genes.to_csv(folder / "rna.csv", index=False)
    clinical.sample(frac=1.0, random_state=1).to_csv(folder / "clinical.csv", index=False)
    kept = site != "east"
    genes[kept].drop(columns="y").to_csv(folder / "new.csv", index=False)
    clinical[kept].sample(frac=1.0, random_state=2).to_csv(folder / "new-clinical.csv", index=False)
    return folder


@pytest.fixture(scope="module")
def model(folder):
    data = join_blocks(
        {"rna": open_features(folder / "rna.csv", label="y"), "clinical": open_features(folder / "clinical.csv", label=False)}
    )
    assert "clinical:site=north" in list(data.feature_names)
    return GroupDiscoveryClassifier(4, standardize=True).fit(data)


def expected(model, folder):
    """Return the decision values of the training samples from sites other than the east."""
    data = join_blocks(
        {"rna": open_features(folder / "rna.csv", label="y"), "clinical": open_features(folder / "clinical.csv", label=False)}
    )
    column = list(data.feature_names).index("clinical:site=east")
    return model.decision_function(data)[data.source.columns(np.array([column]))[:, 0] == 0.0]


@pytest.mark.parametrize("kind", ["files", "frames", "saved"])
def test_new_files_are_encoded_like_the_training_data(model, folder, tmp_path, kind):
    X = {"rna": folder / "new.csv", "clinical": folder / "new-clinical.csv"}
    if kind == "frames":
        X = {name: pd.read_csv(path).set_index("id") for name, path in X.items()}
    if kind == "saved":
        coterie.save(model, tmp_path / "model.coterie")
        model = coterie.load(tmp_path / "model.coterie")
    np.testing.assert_allclose(model.decision_function(X), expected(model, folder), rtol=1e-9)


def test_predictions_of_a_table_keep_the_sample_names(folder):
    data = open_features(folder / "clinical.csv", label=False)
    again = open_features(folder / "new-clinical.csv", label=False, columns=data.encoding.reading(["site=north"]))
    assert list(again.sample_names) == list(pd.read_csv(folder / "new-clinical.csv")["id"])
    assert list(again.feature_names) == ["site=east", "site=north", "site=south"]
