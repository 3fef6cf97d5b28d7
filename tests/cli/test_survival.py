"""``coterie discover`` and ``coterie predict`` for survival times."""

import csv
import json

import numpy as np
import pytest

import coterie
from tests.test_discover_survival import table


@pytest.mark.parametrize("form", ["csv", "parquet"])
def test_command(shell, form):
    X, y = table()
    path, whole = shell.folder / f"data.{form}", X.assign(**y)
    whole.to_csv(path, index=False) if form == "csv" else whole.to_parquet(path)
    columns = ["--time", "days", "--event", "died", "--strata", "site"]
    options = ["--n-pairs", "2", "--n-permutations", "0", "--max-features-to-select", "3", "--Cs", "2"]
    result = shell("discover", path, *columns, "-o", shell.folder / "out", *options)
    assert "concordance index" in result.output
    content = json.loads((shell.folder / "out" / "result.json").read_text())
    assert content["task"] == "survival"
    assert content["target"]["label"] == "days"
    names = {member["name"] for group in content["groups"] for member in group["members"]}
    assert names.isdisjoint({"days", "died", "site"})
    predicted = shell.folder / "risks.csv"
    result = shell("predict", shell.folder / "out", path, *columns, "--at", "0.5,2", "-o", predicted)
    assert "concordance index: 0." in result.stderr
    with predicted.open(newline="") as file:
        rows = list(csv.DictReader(file))
    model = coterie.load(shell.folder / "out" / "model.coterie")
    assert [float(row["prediction"]) for row in rows] == pytest.approx(model.predict(X))
    expected = model.predict_survival_function(X, [0.5, 2.0], strata=y["site"])
    assert [float(row["survival 2"]) for row in rows] == pytest.approx(expected[:, 1])


def test_entry_times(shell):
    X, y = table(120)
    y["joined"] = 0.3 * y["days"] * (np.arange(120) % 2)
    X.assign(**y).to_csv(shell.folder / "data.csv", index=False)
    columns = ["--time", "days", "--event", "died", "--strata", "site", "--entry", "joined"]
    options = ["--n-pairs", "2", "--n-permutations", "0", "--max-features-to-select", "3", "--Cs", "2"]
    shell("discover", shell.folder / "data.csv", *columns, "-o", shell.folder / "out", *options)
    content = json.loads((shell.folder / "out" / "result.json").read_text())
    assert content["target"]["delayed"] == 60
    assert "joined" not in {member["name"] for group in content["groups"] for member in group["members"]}
    model = coterie.load(shell.folder / "out" / "model.coterie")
    risk, first = model.predict(X), y["died"] & (y["site"] == "a")
    steps = [1.0 / np.exp(risk[(y["site"] == "a") & (y["days"] >= t) & (y["joined"] < t)]).sum() for t in y["days"][first]]
    assert model.cumulative_baseline_hazard_[0, -1] == pytest.approx(sum(steps))
    own = y.rename(columns={"days": "time", "died": "event", "site": "stratum", "joined": "entry"})
    result = shell("predict", shell.folder / "out", shell.folder / "data.csv", *columns, "-o", shell.folder / "risks.csv")
    assert f"concordance index: {model.score(X, own):.4f}" in result.stderr
    assert "60 samples with delayed entry" in (shell.folder / "out" / "methods.txt").read_text()


def test_command_with_other_columns(shell):
    X, y = table(60)
    np.savez(shell.folder / "data.npz", X=X.to_numpy(), days=y["days"], died=y["died"].astype(int))
    quick = ["--fast", "--n-features-to-select", "2"]
    shell("discover", shell.folder / "data.npz", "--time", "days", "--event", "died", "-o", shell.folder / "a", *quick)
    coterie.data.convert(shell.folder / "data.npz", shell.folder / "x.store", label="days")
    (shell.folder / "died.txt").write_text("\n".join(str(int(value)) for value in y["died"]))
    (shell.folder / "days.txt").write_text("\n".join(map(repr, y["days"].tolist())))
    columns = ["--time", shell.folder / "days.txt", "--event", shell.folder / "died.txt"]
    shell("discover", shell.folder / "x.store", *columns, "-o", shell.folder / "b", *quick)
    groups = [json.loads((shell.folder / name / "result.json").read_text())["groups"] for name in "ab"]
    assert [group["support"] for group in groups[0]] == [group["support"] for group in groups[1]]


@pytest.mark.parametrize(
    ("options", "text"),
    [
        (["--task", "survival", "--time", "days"], "Survival times require both --time and --event."),
        (["--entry", "days"], "Survival times require both --time and --event."),
        (["--event", "died"], "Survival times require both --time and --event."),
        (["--time", "days", "--event", "died", "--label", "site"], "--label and --time cannot be combined."),
        (["--time", "days", "--event", "died", "--task", "regression"], "require --task survival, not regression."),
        (["--time", "days", "--event", "wrong"], "column not found"),
        (["--time", "days", "--event", "site"], "The values of event must be numbers"),
    ],
)
def test_wrong_options(shell, options, text):
    X, y = table(40)
    X.assign(**y).to_csv(shell.folder / "data.csv", index=False)
    assert text in shell.error("discover", shell.folder / "data.csv", *options, "--drop", "gene3", "-o", "out")
