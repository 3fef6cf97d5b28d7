"""AnnData objects: labels by column of obs, layers, and messages if they are missing."""

import re
import warnings
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.base import clone, is_regressor
from sklearn.exceptions import ConvergenceWarning

import coterie
from coterie import GroupDiscoveryClassifier, GroupDiscoveryRegressor, baselines, group_confidence
from coterie.data import open_features
from coterie.data.readers.h5ad import values_and_names
from coterie.filters import fisher_score, information_gain_score, relieff_score
from tests.conftest import grouped_matrix
from tests.test_selection import SELECTORS

anndata = pytest.importorskip("anndata")


@pytest.fixture
def adata():
    rng = np.random.default_rng(7)
    X, y = grouped_matrix(rng, n_samples=50, n_features=20)
    X = (X - X.min()).astype(np.float32)
    kind = pd.Categorical(np.where(y > 0, "T cell", "B cell"), categories=["unseen", "T cell", "B cell"])
    obs = pd.DataFrame(
        {"cell_type": kind, "batch": y, "age": rng.random(50), "nullable": pd.array(range(50), dtype="Int64")},
        index=[f"c{i}" for i in range(50)],
    )
    result = anndata.AnnData(X, obs=obs, var=pd.DataFrame(index=[f"g{j}" for j in range(20)]))
    result.layers["double"] = sparse.csr_matrix(2 * X)
    result.raw = result.copy()
    return result[:, :15].copy()  # raw has more genes, as is common


@pytest.mark.parametrize("selector", SELECTORS, ids=repr)
def test_every_selector_takes_the_name_of_a_column(selector, adata):
    if "OneClass" in repr(selector) or "CorrelationGroups" in repr(selector) or "variance" in repr(selector):
        pytest.skip("it needs no labels")
    if "Survival" in repr(selector):
        pytest.skip("it needs two columns")
    numbers = is_regressor(selector) or isinstance(selector, (baselines.LassoSelector, baselines.MRMRRegressionSelector))
    column = "age" if numbers else "cell_type"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        by_name = clone(selector).fit(adata, column)
        by_value = clone(selector).fit(pd.DataFrame(adata.X, columns=adata.var_names), adata.obs[column].to_numpy())
    np.testing.assert_array_equal(by_name.support_features_, by_value.support_features_)
    if hasattr(by_name, "classes_"):
        assert by_name.classes_.tolist() == ["B cell", "T cell"]  # without categories that no cell has
        assert by_name.score(adata, "cell_type") == by_value.score(adata, adata.obs["cell_type"])


def test_functions_accept_column_names(adata, tmp_path):
    for score in (fisher_score, relieff_score, information_gain_score):
        np.testing.assert_array_equal(score(adata, "cell_type"), score(adata.X, np.asarray(adata.obs["cell_type"])))
    model = GroupDiscoveryClassifier(3).fit(adata, "cell_type")
    found = group_confidence(model, adata, "cell_type", n_pairs=2, n_permutations=0, random_state=0)
    assert model.groups_.class_weights.shape == (3, 2)  # confidences are added to what is known
    again = group_confidence(model, adata, adata.obs["cell_type"], n_pairs=2, n_permutations=0, random_state=0)
    np.testing.assert_array_equal(found.confidence, again.confidence)
    compared = [
        coterie.compare(["fisher"], adata, labels, n_features=[2], cv=2) for labels in ("cell_type", adata.obs["cell_type"])
    ]
    assert compared[0].rows[0].accuracy == compared[1].rows[0].accuracy > 0.5
    adata.write_h5ad(tmp_path / "cells.h5ad")  # column names are supported for paths, too
    assert GroupDiscoveryClassifier(3).fit(tmp_path / "cells.h5ad", "cell_type").groups_ == model.groups_
    assert model.score(tmp_path / "cells.h5ad", "cell_type") == model.score(adata, "cell_type")
    assert GroupDiscoveryRegressor(2).fit(adata, "nullable").score(adata, "nullable") <= 1.0


def test_layers(adata):
    double = open_features(adata, label="cell_type", layer="double")
    assert double.source.is_sparse
    assert double.notes == {"layer": "double"}
    model = GroupDiscoveryClassifier(3).fit(double)
    assert model.groups_ == GroupDiscoveryClassifier(3).fit(adata, "cell_type").groups_
    raw = open_features(adata, label="cell_type", layer="raw")
    assert raw.shape == (50, 20)
    assert list(raw.feature_names) == [f"g{j}" for j in range(20)]
    assert np.shares_memory(open_features(adata).source.array, adata.X)


def test_samples_without_a_label(adata):
    adata.obs.loc[["c3", "c8"], "cell_type"] = None
    message = (
        "2 of 50 samples have no label in obs['cell_type']. The first is 'c3'. "
        "Drop them: adata = adata[adata.obs['cell_type'].notna()]."
    )
    with pytest.raises(ValueError, match=re.escape(message)):
        GroupDiscoveryClassifier(3).fit(adata, "cell_type")
    dropped = open_features(adata, label="cell_type", missing_labels="drop")
    assert dropped.shape == (48, 15)
    assert len(dropped.y) == len(dropped.sample_names) == 48
    assert dropped.notes == {"samples_without_label_dropped": 2}
    kept = adata[adata.obs["cell_type"].notna()]
    assert GroupDiscoveryClassifier(3).fit(dropped).groups_ == GroupDiscoveryClassifier(3).fit(kept, "cell_type").groups_
    adata.obs["cell_type"] = None
    with pytest.raises(ValueError, match=r"no sample has a label in obs\['cell_type'\]"):
        GroupDiscoveryClassifier(3).fit(adata, "cell_type")


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda a: GroupDiscoveryClassifier().fit(a, "cell_typ"), "'cell_type'? Available columns: cell_type (2 classes), "),
        (lambda a: GroupDiscoveryClassifier().fit(a, "Cell_Type"), "Did you mean 'cell_type'? Available columns:"),
        (
            lambda a: GroupDiscoveryClassifier().fit(a, "diagnosis"),
            "'diagnosis' for the labels. Available columns: cell_type (2 classes), ",
        ),
        (lambda a: GroupDiscoveryClassifier().fit(a), "Pass the name of a column of obs: cell_type (2 classes), batch (2 cl"),
        (
            lambda a: GroupDiscoveryClassifier().fit(a.X, "cell_type"),
            "y is the string 'cell_type'. A column name is supported",
        ),
        (lambda a: GroupDiscoveryClassifier().fit(a.to_df(), "g1"), "pass the labels themselves (X['g1']) and X without them"),
        (lambda a: GroupDiscoveryRegressor().fit(a, "cell_type"), "Targets must be numbers"),
        (lambda a: open_features(a, layer="duble"), "'duble' not found. Did you mean 'double'? Available layers: double, raw"),
        (lambda a: open_features(a, format="csv"), "format='csv' does not apply to an AnnData object"),
        (lambda a: open_features(a, label="cell_type", missing_labels="keep"), "must be 'error' or 'drop'"),
    ],
)
def test_messages(adata, call, message):
    with pytest.raises(ValueError, match=re.escape(message)):
        call(adata)


def test_no_warnings(adata):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        GroupDiscoveryClassifier(3).fit(adata, "cell_type").predict(adata)


def test_pbmc_without_a_warning(real_data):
    """Ten cell types, the rarest with eight cells."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # warnings of anndata about old files
        cells = anndata.read_h5ad(real_data / "pbmc68k_reduced.h5ad")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model = GroupDiscoveryClassifier(8, C=0.03).fit(cells, "bulk_labels")
    marked = {group.labels[0]: group.marks for group in model.groups_}
    assert marked["CD79A"] == "CD19+ B"
    assert marked["NKG7"] == "CD56+ NK"


def test_layers_without_the_key_of_x():
    """anndata 0.13 lists X among the layers, under the key None."""
    data = SimpleNamespace(layers={None: None, "counts": None}, raw=None, X=None, var_names=["a"])
    with pytest.raises(ValueError, match=r"layer 'count' not found. Did you mean 'counts'\? Available layers: counts\.$"):
        values_and_names(data, "count")
