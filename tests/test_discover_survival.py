"""The whole procedure for survival times."""

import numpy as np
import pandas as pd
import pytest

import coterie
from coterie.report import report


def table(n=160, p=20):
    """Return features, times, events and strata. Groups 0 and 1 matter."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((n, p))
    X[:, p // 2 :] = X[:, : p // 2] + 0.4 * rng.standard_normal((n, p // 2))
    time, end = rng.exponential(np.exp(-X[:, 0] + 0.8 * X[:, 1])), rng.exponential(2.0, n)
    features = pd.DataFrame(X).add_prefix("gene")
    return features, pd.DataFrame({"days": np.minimum(time, end), "died": time <= end, "site": rng.choice(["a", "b"], n)})


QUICK = {"n_pairs": 3, "n_permutations": 1, "max_features_to_select": 4, "Cs": 2}


def test_discover():
    X, y = table()
    found = coterie.discover(X, y[["days", "died"]], task="survival", **QUICK)
    assert found.task == "survival"
    assert {group.names[0] for group in found.groups} >= {"gene0", "gene1"}
    assert found.held_out.score == "concordance index"
    assert found.held_out.constant == 0.5
    assert found.held_out.predicts
    assert found.held_out.training == found.model.score(X, y[["days", "died"]])
    assert "Held-out concordance index" in found.judgement
    content = found.to_dict()
    assert content["target"] == {"label": None, "classes": None, "events": int(y["died"].sum())}
    first = next(group for group in content["groups"] if group["members"][0]["name"] == "gene0")
    assert first["direction"] == "more → earlier"
    assert first["interval"].startswith(f"{np.exp(first['effect']):.3g} (")  # a hazard ratio
    assert "Report" in repr(report(found.model, X, y[["days", "died"]]))


def test_structured_targets_imply_the_task():
    X, y = table(80)
    structured = np.array(list(zip(y["died"], y["days"], strict=True)), dtype=[("event", "?"), ("time", "f8")])
    found = coterie.discover(X, structured, fast=True, n_features_to_select=2)
    assert found.task == "survival"
    assert isinstance(found.model, coterie.GroupDiscoverySurvival)


def test_each_fold_needs_an_event():
    X, y = table(60)
    y["died"] = np.arange(60) < 2
    with pytest.raises(ValueError, match=r"Fold \d of cv holds out no event"):
        coterie.discover(X, y, task="survival", n_pairs=0)


def test_a_feature_that_is_the_time_is_a_leak():
    X, y = table(80)
    leaking = X.assign(followup=y["days"] * 30.0)
    with pytest.warns(UserWarning, match="followup"):
        found = coterie.discover(leaking, y, task="survival", fast=True, n_features_to_select=2)
    assert [caution.kind for caution in found.cautions] == ["leak"]
    assert not coterie.discover(X, y, task="survival", fast=True, n_features_to_select=2).cautions
