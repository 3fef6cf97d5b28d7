"""Sample groups beyond the estimators of group discovery: commands, comparison, other selectors, metadata routing."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from sklearn import config_context
from sklearn.model_selection import GridSearchCV, GroupKFold, cross_validate
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import coterie
from coterie import (
    DependencyAwareSelector,
    GlobalRedundancySelector,
    GroupDiscoveryClassifier,
    GroupDiscoveryClassifierCV,
)
from coterie.comparison import run
from coterie.data import write_store
from coterie.inputs import folds
from tests.comparison.conftest import Inline
from tests.test_sample_groups import repeated_rows


@pytest.fixture
def table(tmp_path):
    X, y, groups = repeated_rows(12, 4, 10)
    frame = pd.DataFrame(X, columns=[f"gene {j}" for j in range(10)])
    frame.insert(0, "patient", [f"p{group}" for group in groups])
    frame["label"] = np.where(y > 0, "case", "control")
    frame.to_csv(tmp_path / "t.csv", index=False)
    return frame


def group_folds(monkeypatch, module):
    """Record the sample groups that a module passes to read_folds."""
    seen = []

    def recorded(*arguments, **options):
        seen.append(options.get("groups"))
        return folds.read_folds(*arguments, **options)

    monkeypatch.setattr(module, "read_folds", recorded)
    return seen


def test_compare_divides_whole_groups(monkeypatch):
    monkeypatch.setattr(run, "Schedule", Inline)
    X, y, groups = repeated_rows(40, 5, 200)
    blind = coterie.compare(["gdm"], X, y, n_features=10).table["accuracy"].mean()
    aware = coterie.compare(["gdm"], X, y, groups=groups, n_features=10).table["accuracy"].mean()
    assert blind > 0.8
    assert aware < 0.7


def test_compare_passes_the_groups_of_the_training_samples(monkeypatch):
    monkeypatch.setattr(run, "Schedule", Inline)
    X, y, groups = repeated_rows(8, 4, 20)
    seen = []

    class Recorded(GroupDiscoveryClassifier):
        def fit(self, X, y=None, sample_weight=None, *, groups=None):
            seen.append((len(X), groups))
            return super().fit(X, y, groups=groups)

    found = coterie.compare({"one": Recorded()}, X, y, groups=groups, n_features=2, cv=GroupKFold(4))
    assert set(found.table["status"]) == {"ok"}
    assert len(seen) >= 4
    assert all(own is not None and len(own) == size and len(set(own.tolist())) == 6 for size, own in seen if size == 24)


def test_a_comparison_with_other_groups_is_not_resumed(monkeypatch, tmp_path):
    monkeypatch.setattr(run, "Schedule", Inline)
    X, y, groups = repeated_rows(8, 4, 20)
    options = {"n_features": 2, "cv": [(np.arange(16), np.arange(16, 32))], "results": tmp_path / "r"}
    coterie.compare(["fisher"], X, y, groups=groups, **options)
    coterie.compare(["fisher"], X, y, groups=groups, **options)
    for other in (None, groups // 2):
        with pytest.raises(ValueError, match="different folds"):
            coterie.compare(["fisher"], X, y, groups=other, **options)


def test_compare_of_a_store_uses_its_groups(monkeypatch, tmp_path):
    monkeypatch.setattr(run, "Schedule", Inline)
    X, y, groups = repeated_rows(8, 4, 20)
    store = write_store(tmp_path / "x.store", X, y, sample_groups=groups)
    direct = coterie.compare(["fisher"], X, y, groups=groups.astype(str), n_features=2, cv=3).table
    stored = coterie.compare(["fisher"], store, n_features=2, cv=3).table
    assert stored["accuracy"].tolist() == direct["accuracy"].tolist()
    with pytest.raises(ValueError, match="For a store, pass the sample groups themselves"):
        coterie.compare(["fisher"], store, groups="donor", n_features=2)


def test_redundancy_selector(monkeypatch):
    from coterie.redundancy import estimator

    X, y, groups = repeated_rows(12, 4, 20)
    seen = group_folds(monkeypatch, estimator)
    GlobalRedundancySelector("fisher", n_features_to_select=3, n_candidates="cv", cv=3).fit(X, y, groups=groups)
    assert [one.tolist() for one in seen] == [groups.tolist()]


def test_dependency_aware_selector():
    X, y, groups = repeated_rows(40, 5, 4)
    selector = DependencyAwareSelector("knn", n_features_to_select=2, n_probes=30, random_state=0, cv=4)
    blind = selector.fit(X, y)._sums.values
    aware = selector.fit(X, y, groups=groups)._sums.values
    assert np.mean(blind) > np.mean(aware) + 0.1
    with pytest.raises(ValueError, match=r"cv=4 exceeds the number of sample groups \(2\)"):
        selector.fit(X, y, groups=groups // 20)
    numeric = DependencyAwareSelector("knn_regression", n_features_to_select=2, n_probes=10, random_state=0)
    assert numeric.fit(X, X[:, 0], groups=groups).n_probes_ == 10


def test_metadata_routing():
    X, y, groups = repeated_rows(40, 5, 200)
    with config_context(enable_metadata_routing=True):
        model = GroupDiscoveryClassifierCV(8, cv=3, random_state=0).set_fit_request(groups=True)
        pipeline = make_pipeline(StandardScaler(), model)
        found = cross_validate(pipeline, X, y, cv=GroupKFold(3), params={"groups": groups}, return_estimator=True)
        assert found["test_score"].mean() < 0.7
        assert all(27 >= one[-1].n_sample_groups_ >= 26 for one in found["estimator"])
        assert np.mean([one[-1].best_score_ for one in found["estimator"]]) < 0.8  # the inner folds get them, too
        plain = GroupDiscoveryClassifier(4).set_fit_request(groups=True)
        search = GridSearchCV(plain, {"C": [0.1, 1.0]}, cv=GroupKFold(3)).fit(X, y, groups=groups)
        assert search.best_score_ < 0.7
        assert search.best_estimator_.n_sample_groups_ == 40


def test_discover_command(shell, table):
    found = shell.json("discover", "t.csv", "--sample-groups", "patient", "--n-pairs", 2, "--n-permutations", 1)
    assert found["data"]["sample_groups"] == 12
    assert found["data"]["features"] == 10
    fast = shell.json("discover", "t.csv", "--sample-groups", "patient", "--fast", "-o", "fast")
    assert fast["data"]["sample_groups"] == 12
    shell("convert", "t.csv", "x.store", "--sample-groups", "patient")
    stored = shell.json("discover", "x.store", "--n-pairs", 2, "--n-permutations", 1)
    assert stored["data"]["sample_groups"] == 12
    assert {**stored["summary"], "seconds": 0} == {**found["summary"], "seconds": 0}
    none = shell.json("discover", "x.store", "--sample-groups", "none", "--fast", "-o", "none")
    assert "sample_groups" not in none["data"]


def test_compare_command(shell, table, monkeypatch):
    monkeypatch.setattr(run, "Schedule", Inline)
    seen = group_folds(monkeypatch, run)
    shell.json("compare", "t.csv", "--sample-groups", "patient", "--methods", "fisher", "--n-features", 2)
    assert len(np.unique(seen[0])) == 12


def test_info_command(shell, table):
    facts = shell.json("info", "t.csv", "--sample-groups", "patient")
    assert facts["sample groups"] == "12, with 4 samples each"
    assert facts["labels within sample groups"] == "equal in all groups; permuted between groups"
    assert facts["features"] == 10
    assert "--sample-groups patient" in facts["for instance"]
    table.loc[table.index[table.patient == "p0"][:2], "label"] = "other"
    table.loc[table.index[1:]].to_csv("t.csv", index=False)
    facts = shell.json("info", "t.csv", "--sample-groups", "patient")
    assert facts["sample groups"] == "12, with 3 to 4 samples each"
    assert facts["labels within sample groups"] == ("equal in 11 of 12 groups; permuted between those, and within the others")
    table["label"] = np.arange(len(table)) % 7 / 2
    table.to_csv("t.csv", index=False)
    shell("convert", "t.csv", "x.store", "--sample-groups", "patient")
    facts = shell.json("info", "x.store")
    assert facts["labels within sample groups"] == "vary in all groups; permuted within groups"


def test_rank_command(shell, table):
    assert shell.json("rank", "t.csv", "--sample-groups", "patient", "--method", "bif")["method"] == "bif"
    expected = "coterie: --sample-groups: --method fisher divides no samples into folds. Remove --sample-groups."
    assert shell.error("rank", "t.csv", "--sample-groups", "patient") == expected
    shell("convert", "t.csv", "x.store", "--sample-groups", "patient")
    assert shell.json("rank", "x.store", "--method", "fisher")["method"] == "fisher"


def test_other_commands_refuse_groups(shell, table):
    expected = "--sample-groups: this command divides no samples into folds or halves. Remove --sample-groups"
    assert expected in shell.error("profile", "t.csv", "--sample-groups", "patient")
    shell("discover", "t.csv", "--drop", "patient", "--fast", "-o", "r")
    assert expected in shell.error("predict", "r", "t.csv", "--sample-groups", "patient")


def test_messages_name_the_option(shell, table):
    assert "--sample-groups 'patent': column not found. Did you mean 'patient'?" in shell.error(
        "discover", "t.csv", "--sample-groups", "patent"
    )
