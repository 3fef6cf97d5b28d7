"""Several matrices as X of the estimators and of ``coterie.discover``."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

import coterie
from coterie.report import BlockContribution


@pytest.fixture(scope="module")
def data():
    """Two frames with one planted group each and one across both; the second frame is in another order."""
    rng = np.random.default_rng(0)
    names = [f"s{i}" for i in range(120)]
    rna, protein = rng.standard_normal((120, 30)), rng.standard_normal((120, 8))
    rna[:, 1], protein[:, 3] = (rna[:, 0] + noise * rng.standard_normal(120) for noise in (0.3, 0.6))
    protein[:, 5] = protein[:, 4] + 0.2 * rng.standard_normal(120)
    y = np.where(rna[:, 0] + protein[:, 4] + 0.5 * rng.standard_normal(120) > 0, "case", "control")
    frames = {
        "rna": pd.DataFrame(rna, names, [f"g{j}" for j in range(30)]),
        "protein": 100 * pd.DataFrame(protein, names, [f"g{j}" for j in range(8)]).iloc[::-1],
    }
    return frames, pd.Series(y, names, name="diagnosis"), np.hstack([rna, protein])


@pytest.fixture(scope="module")
def discovery(data):
    return coterie.discover(*data[:2], max_features_to_select=3, n_pairs=5, Cs=[1.0], predict_with="support")


def test_the_search_is_that_in_one_matrix(data):
    frames, y, whole = data
    model = coterie.GroupDiscoveryClassifier(2).fit(frames, y)
    assert [sorted(group.names) for group in model.groups_] == [
        ["protein:g3", "rna:g0", "rna:g1"],
        ["protein:g4", "protein:g5"],
    ]
    assert set(model.groups_.to_frame()["block"]) == {"rna", "protein"}
    scaled = whole * np.repeat([1.0, 100.0], [30, 8])
    np.testing.assert_allclose(model.coef_, coterie.GroupDiscoveryClassifier(2).fit(scaled, y).coef_, atol=1e-12)
    other = dict(reversed(frames.items()))  # whose first block has the samples in reverse
    np.testing.assert_array_equal(model.predict(frames), model.predict(other)[::-1])
    np.testing.assert_array_equal(model.transform(frames), scaled[:, np.sort(model.support_features_)])


def test_a_prediction_needs_only_the_blocks_that_the_model_reads(data):
    frames, y, _ = data
    model = coterie.GroupDiscoveryClassifier(1, fixed_features=["protein:g4"], predict_with="support").fit(frames, y)
    assert model.predict({"protein": frames["protein"]}).shape == (120,)
    with pytest.raises(ValueError, match=r"X lacks 1 of the 1 features .*: 'protein:g4'"):
        model.predict({"rna": frames["rna"], "protein": frames["protein"].rename(columns={"g4": "other"})})
    gap = frames["protein"].copy()
    gap.iloc[2, 4] = np.nan
    with pytest.raises(ValueError, match=r"NaN or infinity. The first is in sample 2 of feature 4 \('protein:g4'\)"):
        model.predict({"protein": gap})


def test_missing_values_are_imputed(data):
    frames, y, _ = data
    gaps = {**frames, "rna": frames["rna"].mask(np.random.default_rng(0).random((120, 30)) < 0.02)}
    model = coterie.GroupDiscoveryClassifier(2).fit(coterie.imputed(gaps), y)
    assert {name for group in model.groups_ for name in group.names} >= {"rna:g0", "protein:g3", "protein:g4"}
    assert "block" in model.groups_.annotations
    assert model.predict(gaps).shape == (120,)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda X, y: ({}, y), "X has no blocks"),
        (lambda X, y: (X, y.iloc[::-1]), r"y has the samples of the blocks in another order. Use y.loc\[...\]"),
        (lambda X, y: (X, y.rename({"s0": "t"})), "The index of y differs from the samples of the blocks: 1 of its 120 names"),
        (lambda X, y: (X, "diagnosis"), "No block has a column 'diagnosis' for the labels"),
        (
            lambda X, y: ({name: X["rna"][name] for name in X["rna"]}, y),
            "Block 'g0' has one dimension. A dictionary has several",
        ),
        (lambda X, y: ({**X, "more": {}}, y), "Block 'more' is a dictionary"),
        (lambda X, y: ({**X, "more": X["rna"].iloc[:, :0]}, y), "Block 'more' has no features"),
        (lambda X, y: ({**X, "more": X["rna"].iloc[1:]}, y), "Block 'more' lacks 1 of the samples of block 'rna': 's0'"),
        (lambda X, y: ({**X, "more": X["rna"].iloc[[0] * 120]}, y), "Block 'more' has the sample name 's0' twice"),
        (lambda X, y: ({**X, "more": X["rna"].assign(g0="text")}, y), "Block 'more': Features must be numbers"),
        (lambda X, y: ({**X, "more": np.ones((3, 2))}, y), "Block 'more' has 3 samples, but block 'rna' has 120"),
    ],
)
def test_wrong_blocks(data, change, message):
    with pytest.raises(ValueError, match=message):
        coterie.GroupDiscoveryClassifier(2).fit(*change(*data[:2]))


def test_contributions(discovery, data, tmp_path):
    rna, protein = discovery.blocks
    assert (rna.block, rna.n_features, rna.n_groups, rna.n_members) == ("rna", 30, 1, 2)
    assert (protein.block, protein.n_features, protein.n_groups, protein.n_members) == ("protein", 8, 1, 3)
    assert rna.share + protein.share == pytest.approx(1.0)
    outputs, columns = discovery.model.decision_function(data[0]), data[0]["rna"]["g0"].to_numpy()
    part = columns * discovery.model.coef_[0, 0]
    assert rna.share == pytest.approx(np.cov(part, outputs)[0, 1] / outputs.var(ddof=1))
    assert rna.alone == protein.without
    assert rna.without == protein.alone > rna.alone  # the protein g3 stands for the gene g0
    assert protein.adds > 0.05
    assert protein.adds_interval[0] < protein.adds < protein.adds_interval[1]
    discovery.save(tmp_path / "result")
    assert coterie.load(tmp_path / "result").blocks == discovery.blocks
    table = pd.read_csv(tmp_path / "result" / "groups.csv")
    assert table["block"].tolist() == [name.partition(":")[0] for name in table["name"]]


def test_scores_are_those_of_the_procedure_on_each_block(discovery, data):
    frames, y, _ = data
    settings = {"max_features_to_select": 3, "n_pairs": 0, "Cs": [1.0], "predict_with": "support"}
    alone = coterie.discover({"protein": frames["protein"].loc[y.index]}, y, **settings)
    assert discovery.blocks[1].alone == alone.held_out.value
    assert discovery.blocks[1].alone_interval == alone.held_out.interval
    expected = np.mean(np.subtract(discovery.held_out.folds, alone.held_out.folds))
    assert discovery.blocks[0].adds == pytest.approx(expected)
    assert alone.blocks[0].alone is None  # a single block


def test_report(discovery):
    html = discovery.report().html
    assert "share of the model" in html
    assert "held-out accuracy alone" in html
    content = discovery.to_dict()
    assert content["groups"][0]["block"] == "rna, protein"
    plain = replace(discovery, blocks=())
    assert "share of the model" not in plain.report().html


def test_without_validation_there_are_no_scores(data):
    found = coterie.discover(*data[:2], fast=True, n_features_to_select=2)
    assert [(one.alone, one.without, one.adds) for one in found.blocks] == [(None,) * 3] * 2
    assert found.blocks[0] == BlockContribution.from_dict(found.blocks[0].to_dict())
    assert "held-out" not in found.report().html.split("share of the model")[1][:200]
