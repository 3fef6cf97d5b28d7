"""Groups in AnnData, in the form that scanpy's functions accept."""

import json
import warnings

import numpy as np
import pandas as pd
import pytest
from scipy import sparse

from coterie import GroupDiscoveryClassifier, GroupDiscoveryRegressor, class_statistics
from coterie.data import open_features
from coterie.report import annotate

anndata = pytest.importorskip("anndata")
TABLES = ["names", "scores", "logfoldchanges", "pvals", "pvals_adj"]


@pytest.fixture
def cells():
    """Return 120 cells of three types, each with a marker and a correlated gene.

    X has scaled values, raw has log counts and more genes.
    """
    rng = np.random.default_rng(1)
    kind = np.repeat(["B", "NK", "T"], 40)
    counts = rng.poisson(1.0, (120, 30))
    for c, label in enumerate(["B", "NK", "T"]):
        strength = np.where(kind == label, rng.poisson(8.0, 120), 0)
        counts[:, c] += strength
        counts[:, 10 + c] += strength
    names = [f"g{j}" for j in range(30)]
    obs = pd.DataFrame({"kind": pd.Categorical(kind)}, index=[f"c{i}" for i in range(120)])
    full = anndata.AnnData(sparse.csr_matrix(np.log1p(counts).astype(np.float32)), obs=obs, var=pd.DataFrame(index=names))
    result = full[:, ::-1][:, 5:].copy()
    result.raw = full
    values = result.X.toarray()
    result.X = (values - values.mean(axis=0)) / values.std(axis=0)
    return result


@pytest.fixture
def model(cells):
    return GroupDiscoveryClassifier(3, threshold=0.7).fit(cells, "kind")


def test_tables_in_scanpys_form(cells, model):
    found = annotate(cells, model, "kind").uns["coterie"]
    assert found["params"] == {
        "groupby": "kind", "reference": "rest", "method": "coterie", "use_raw": True, "corr_method": "benjamini-hochberg"
    }  # fmt: skip
    members = {name for group in model.groups_ for name in group.names}
    everything = class_statistics(open_features(cells, label="kind", layer="raw"))
    place = {name: i for i, name in enumerate(everything.names)}
    for c, label in enumerate(["B", "NK", "T"]):
        assert set(found["names"][label]) == members
        assert set(found["names"][label][:2]) == {f"g{c}", f"g{10 + c}"}
        assert (np.diff(found["scores"][label]) <= 0).all()
        rows = [place[name] for name in found["names"][label]]
        np.testing.assert_allclose(found["logfoldchanges"][label], everything.log_fold_change[rows, c], rtol=1e-6)
        np.testing.assert_allclose(found["pvals"][label], everything.p_value[rows, c])
        assert (found["pvals_adj"][label] >= found["pvals"][label]).all()
        np.testing.assert_allclose(found["pts"].loc[found["names"][label], label], everything.detected[rows, c])
    marks = cells.var["marks"]
    assert {marks[group.names[0]]: True for group in model.groups_}.keys() == {"B", "NK", "T"}
    assert (marks[~cells.var["support"]] == "").all()
    assert json.loads(found["parameters"])["threshold"] == 0.7


def test_scores_are_parts_of_the_gap_of_decision_values(cells):
    model = GroupDiscoveryClassifier(3, threshold=0.7).fit(open_features(cells, label="kind", layer="raw"))
    found = annotate(cells, model, "kind", layer="raw", keep="support").uns["coterie"]
    values, kind = cells.raw.X.toarray().astype(float), np.asarray(cells.obs["kind"])
    for c, label in enumerate(["B", "NK", "T"]):
        assert len(found["names"][label]) == 3
        for name, score in zip(found["names"][label], found["scores"][label], strict=True):
            j = cells.raw.var_names.get_loc(name)
            weight = model.support_coef_[c, model.support_features_.tolist().index(j)]
            gap = values[kind == label, j].mean() - values[kind != label, j].mean()
            assert score == pytest.approx(weight * abs(gap) if weight * gap > 0 else 0.0, rel=1e-5)
    # Genes that are only in raw are ranked, but var has no row for them.
    only_raw = set(found["names"]["B"]) - set(cells.var_names)
    assert cells.var["support"].sum() == 3 - len(only_raw)


def test_two_classes_and_other_keys(cells):
    two = cells[cells.obs["kind"] != "T"].copy()
    model = GroupDiscoveryClassifier(2).fit(two, "kind")
    annotate(two, model, "kind", key="markers", use_raw=False)
    assert two.uns["markers"]["names"].dtype.names == ("B", "NK")
    assert two.uns["markers"]["params"]["use_raw"] is False
    assert two.uns["markers"]["names"]["B"][0] == two.uns["markers"]["names"]["NK"][-1]
    assert np.isnan(two.uns["markers"]["logfoldchanges"]["B"]).all()  # scaled values have no fold change
    two.layers["log"] = two.raw[:, two.var_names].X
    annotate(two, GroupDiscoveryClassifier(2).fit(open_features(two, label="kind", layer="log")), "kind", layer="log")
    assert two.uns["coterie"]["params"]["layer"] == "log"
    assert two.uns["coterie"]["params"]["use_raw"] is False
    assert np.isfinite(two.uns["coterie"]["logfoldchanges"]["B"]).all()


def test_a_model_without_names_gets_those_of_the_data(cells, model):
    nameless = GroupDiscoveryClassifier(3, threshold=0.7).fit(cells.X, np.asarray(cells.obs["kind"]))
    expected = annotate(cells.copy(), model, "kind")
    annotate(cells, nameless, "kind")
    for name in TABLES:
        np.testing.assert_array_equal(cells.uns["coterie"][name], expected.uns["coterie"][name])
    pd.testing.assert_frame_equal(cells.var, expected.var)


@pytest.mark.parametrize("labels", [["B", "NK", "T"], ["CD4+/CD25 T", "NK", "T"]])
def test_annotations_survive_files(cells, tmp_path, labels):
    cells.obs["kind"] = cells.obs["kind"].cat.rename_categories(dict(zip(["B", "NK", "T"], labels, strict=True)))
    annotate(cells, GroupDiscoveryClassifier(3).fit(cells, "kind"), "kind")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        cells.write_h5ad(tmp_path / "cells.h5ad")
        back = anndata.read_h5ad(tmp_path / "cells.h5ad")
    assert set(back.uns["coterie"]["names"].dtype.names) == set(labels)
    for name in TABLES:
        for label in labels:
            np.testing.assert_array_equal(back.uns["coterie"][name][label], cells.uns["coterie"][name][label])
    assert back.uns["coterie"]["params"]["groupby"] == "kind"
    assert bool(back.uns["coterie"]["params"]["use_raw"]) is True
    assert back.var["marks"].tolist() == cells.var["marks"].tolist()


def test_messages(cells, model):
    with pytest.raises(ValueError, match="Did you mean 'kind'"):
        annotate(cells, model, "kinds")
    with pytest.raises(ValueError, match="keep='all' must be"):
        annotate(cells, model, "kind", keep="all")
    with pytest.raises(ValueError, match=r"groupby='kind' requires a classifier. GroupDiscoveryRegressor has no classes"):
        annotate(cells, GroupDiscoveryRegressor(2).fit(cells, np.arange(120.0)), "kind")
    with pytest.raises(ValueError, match="The model has the classes 'B', 'NK', 'T', but y has 'B', 'NK'"):
        annotate(cells[cells.obs["kind"] != "T"].copy(), model, "kind")
    with pytest.raises(ValueError, match="No feature of the groups is a variable"):
        annotate(anndata.AnnData(np.eye(3)), model)
    with pytest.raises(ValueError, match="has 3 variables, but the model was fitted with 25 features"):
        annotate(anndata.AnnData(np.eye(3)), GroupDiscoveryClassifier(2).fit(cells.X, np.asarray(cells.obs["kind"])))
    cells.layers["log"] = cells.X
    with pytest.raises(ValueError, match="use_raw=True and layer='log' exclude each other"):
        annotate(cells, model, "kind", layer="log", use_raw=True)
    del cells.raw
    with pytest.raises(ValueError, match="use_raw=True, but the AnnData object has no raw"):
        annotate(cells, model, "kind", use_raw=True)
    assert "coterie" not in cells.uns  # nothing is written after an error


def test_scanpy_functions_accept_the_tables(cells, model, tmp_path):
    sc = pytest.importorskip("scanpy", reason="scanpy is not installed")
    plt = pytest.importorskip("matplotlib.pyplot")
    plt.switch_backend("agg")
    annotate(cells, model, "kind")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        cells.write_h5ad(tmp_path / "cells.h5ad")
        for one in (cells, anndata.read_h5ad(tmp_path / "cells.h5ad")):
            sc.tl.rank_genes_groups(one, "kind", method="t-test", pts=True, key_added="theirs")
            columns = ["logfoldchanges", "pvals", "pvals_adj", "pct_nz_group", "pct_nz_reference"]
            ours, theirs = (
                sc.get.rank_genes_groups_df(one, None, key=key).set_index(["group", "names"]) for key in ("coterie", "theirs")
            )
            np.testing.assert_allclose(ours[columns], theirs.loc[ours.index, columns], rtol=1e-3, atol=1e-30)
            for draw in (
                sc.pl.rank_genes_groups, sc.pl.rank_genes_groups_dotplot, sc.pl.rank_genes_groups_matrixplot,
                sc.pl.rank_genes_groups_heatmap, sc.pl.rank_genes_groups_stacked_violin,
            ):  # fmt: skip
                draw(one, key="coterie", n_genes=2, show=False)
                assert plt.get_fignums(), draw
                plt.close("all")
            sc.tl.filter_rank_genes_groups(one, key="coterie", key_added="filtered", groupby="kind")
            assert set(one.uns["filtered"]["names"].dtype.names) == {"B", "NK", "T"}


def test_presence_comes_before_absence(cells, model):
    """Genes higher in the class come first, then those without a score, then those whose absence marks it."""
    found = annotate(cells.copy(), model, "kind").uns["coterie"]
    order = {"presence": 0, "": 1, "absence": 2}
    for label in found["names"].dtype.names:
        marks = [order[mark] for mark in found["marks_by"][label]]
        assert marks == sorted(marks)
        for mark, score in zip(found["marks_by"][label], found["scores"][label], strict=True):
            assert mark == ("presence" if score > 0 else "absence" if score < 0 else "")
    assert any("absence" in found["marks_by"][label] for label in found["names"].dtype.names)
