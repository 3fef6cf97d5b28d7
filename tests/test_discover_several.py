"""``coterie.discover`` and the command with several targets: tables, files, report and cautions."""

import csv
import json

import numpy as np
import pandas as pd
import pytest
from sklearn.metrics import r2_score

import coterie
from coterie.cautions import AboutSamples, find_cautions
from coterie.groups import FeatureGroup
from coterie.groups.columns import Context, flat_table, items_of
from coterie.inputs.targets import settle_by_labels, task_of
from coterie.report.payload import discovery_data
from tests.cli.conftest import Shell

QUICK = {"n_pairs": 2, "max_features_to_select": 3, "Cs": 2, "predict_with": "support"}


@pytest.fixture(scope="module")
def tables():
    """Feature 2 (with its copy 5) acts on height and dose, 7 on height and weight."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((90, 12))
    X[:, 5] = X[:, 2] + 0.3 * X[:, 5]
    signal = np.column_stack([2 * X[:, 2] - X[:, 7], X[:, 7], X[:, 2]])
    Y = (signal + 0.6 * rng.standard_normal((90, 3))) * [1.0, 1e4, 1e-3]
    return pd.DataFrame(X).add_prefix("gene"), pd.DataFrame(Y, columns=["height", "weight", "dose"])


@pytest.fixture(scope="module")
def found(tables):
    return coterie.discover(*tables, **QUICK)


def test_discovery(tables, found):
    assert found.task == "regression"
    assert found.target == {"label": "height, weight, dose", "classes": None, "targets": ["height", "weight", "dose"]}
    assert found.held_out.score == "R²"
    assert found.held_out.predicts
    assert set(found.held_out.figures) == {
        "R²", *(f"R² of {name}" for name in tables[1]), *(f"mean absolute error of {name}" for name in tables[1]),
    }  # fmt: skip
    assert found.training_score == pytest.approx(r2_score(tables[1], found.predict(tables[0])))
    rows = found.to_frame()
    first = rows[rows.role == "support"].set_index("name")
    assert first.loc["gene7", "main_target"] == "weight"
    assert first.loc["gene7", "direction"] == "more → higher weight"
    assert first.loc["gene7", "effect"] == first.loc["gene7", "effect[weight]"]
    assert first.loc["gene7", "effect[height]"] < 0.0
    # The order of the columns of a frame does not matter for the score.
    backwards = tables[1][["dose", "weight", "height"]]
    assert found.model.score(tables[0], backwards) == pytest.approx(found.training_score)


def test_result_and_report(found, tmp_path):
    found.save(tmp_path / "out")
    content = json.loads((tmp_path / "out" / "result.json").read_text())
    assert content["target"]["targets"] == ["height", "weight", "dose"]
    data = discovery_data(content)
    assert data["targets"] == ["height", "weight", "dose"]
    support = [group["support"] for group in content["groups"]]
    scale = found.model.target_scale_
    for position, group in enumerate(found.groups):
        effects = np.array(list(group.target_effects.values()))
        np.testing.assert_allclose(data["target_effects"][position], effects, rtol=1e-2)
        np.testing.assert_allclose(data["class_effects"][position], effects / scale, rtol=1e-2)  # the colours
    loaded = coterie.load(tmp_path / "out")
    assert [group.support for group in loaded.groups] == support
    assert loaded.groups[0].target_effects == found.groups[0].target_effects
    assert loaded.held_out.figures.keys() == found.held_out.figures.keys()
    page = (tmp_path / "out" / "report.html").read_text()
    assert "height, weight, dose" in page


def test_what_columns_mean():
    y = np.column_stack([np.arange(6.0), np.arange(6.0)[::-1]])
    assert task_of(y) == "regression"
    assert settle_by_labels(y) == ("regression", "")
    survival = np.column_stack([np.arange(6.0), [0, 1, 0, 1, 1, 0]])
    assert "task='survival'" in settle_by_labels(survival).note
    assert settle_by_labels(np.hstack([survival, survival])).note == ""


def test_leaks_of_any_target_are_found(tables):
    X, Y = tables
    Y = Y.assign(weight=np.random.default_rng(1).standard_normal(len(Y)))
    leaky = coterie.data.as_source(np.column_stack([X, 2.0 * Y["weight"]]))
    (found,) = find_cautions(leaky, AboutSamples(Y, "regression"))
    assert found.kind == "leak"
    assert found.text.startswith("Target 'weight': feature 12 alone has a correlation of 1.000")
    assert find_cautions(coterie.data.as_source(X.to_numpy()), AboutSamples(Y, "regression")) == []


@pytest.mark.parametrize("kind", ["odds", "hazard", "rate", "mean"])
def test_ratios(kind):
    name = f"{kind}_ratio"
    effects = {"class_effects": {"a": -0.5, "b": 0.5}} if kind == "odds" else {}
    group = FeatureGroup(3, [], effect=0.5, effect_interval=(0.2, 0.8), ratio_kind=kind, **effects)
    assert getattr(group, name) == pytest.approx(np.exp(0.5))
    assert group.ratio_interval == pytest.approx(np.exp([0.2, 0.8]))
    names, (row,) = flat_table([group])
    assert {"hazard_ratio", "rate_ratio", "mean_ratio"} & set(names) == {name} - {"odds_ratio"}
    assert (row[name], row["ratio_low"], row["ratio_high"]) == pytest.approx(np.exp([0.5, 0.2, 0.8]))
    (item,) = items_of([group], Context("regression"))
    interval = coterie.groups.columns.COLUMNS["interval"]
    assert interval.value(item) == "1.65 (1.22 to 2.23)"
    plain = FeatureGroup(3, [], effect=0.5, effect_interval=(0.2, 0.8))
    assert flat_table([plain])[0] == [n for n in names if not n.startswith(("ratio", "hazard", "rate", "mean"))]
    assert plain.ratio_interval is None


def test_effects_of_counts_have_rate_ratios():
    rng = np.random.default_rng(1)
    X = rng.standard_normal((200, 6))
    y = rng.poisson(np.exp(0.5 + 0.4 * X[:, 2]))
    model = coterie.GroupDiscoveryRegressor(1, loss="poisson").fit(X, y)
    (group,) = coterie.group_effects(model, X, y).attach(model.groups_)
    assert group.rate_ratio == pytest.approx(np.exp(group.effect))
    assert (group.odds_ratio, group.hazard_ratio) == (None, None)
    several = coterie.GroupDiscoveryRegressor(1, loss="poisson").fit(X, np.column_stack([y, y[::-1]]))
    (group,) = coterie.group_effects(several, X, np.column_stack([y, y[::-1]])).attach(several.groups_)
    assert group.main_target == "target_0"
    assert group.rate_ratio == pytest.approx(np.exp(group.target_effects["target_0"]))


@pytest.mark.parametrize("form", ["csv", "parquet", "npz"])
def test_command(tables, tmp_path, monkeypatch, form):
    X, Y = tables
    shell, path, whole = Shell(tmp_path, monkeypatch), tmp_path / f"data.{form}", X.join(Y)
    if form == "npz":
        np.savez(path, X=X.to_numpy(), **{name: Y[name].to_numpy() for name in Y})
    else:
        whole.to_csv(path, index=False) if form == "csv" else whole.to_parquet(path)
    labels = ["--label", "height", "--label", "weight", "--label", "dose"]
    options = ["--n-pairs", "0", "--max-features-to-select", "3", "--Cs", "2", "--predict-with", "support"]
    shell("discover", path, *labels, "-o", "out", *options)
    content = json.loads((tmp_path / "out" / "result.json").read_text())
    assert content["target"]["targets"] == ["height", "weight", "dose"]
    assert content["data"]["features"] == 12
    model = coterie.load(tmp_path / "out" / "model.coterie")
    result = shell("predict", "out", path, *labels[2:], *labels[:2], "-o", "predicted.csv")
    features = X if form != "npz" else X.to_numpy()
    assert f"R²: {model.score(features, Y):.4f}" in result.stderr
    with open(tmp_path / "predicted.csv", newline="") as file:
        rows = list(csv.DictReader(file))
    predicted = np.array([[float(row[f"prediction {name}"]) for name in Y] for row in rows])
    np.testing.assert_allclose(predicted, model.predict(features))


@pytest.mark.parametrize(
    ("command", "text"),
    [
        ("rank data.csv --label height --label dose", "this command takes one label"),
        ("discover data.csv --label height --label height", "Column 'height' is named twice"),
        ("discover data.csv --label height --label nothing", "column not found"),
        ("discover data.csv --label height --label dose --task classification --fast", "1d array"),
        ("discover data.csv --label height --label dose --association --fast", "one numeric target"),
        ("discover data.csv --label height --time dose --event weight", "cannot be combined"),
    ],
)
def test_wrong_options(tables, tmp_path, monkeypatch, command, text):
    tables[0].join(tables[1]).to_csv(tmp_path / "data.csv", index=False)
    assert text in Shell(tmp_path, monkeypatch).error(*command.split())
