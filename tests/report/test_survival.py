"""Survival by held-out risk: tertiles, log-rank test, curves in the report and as a figure."""

import numpy as np
import pytest
from scipy import stats

import coterie
from coterie.inputs.survival import survival_targets
from coterie.plots import survival_curves
from coterie.report import HeldOut
from coterie.report.page import render
from coterie.validation.survival import log_rank_p_value, risk_tertiles


def slow_log_rank(time, event, group, stratum):
    """The log-rank statistic by its definition, with hypergeometric variances."""
    names = np.unique(group)
    excess, variance = np.zeros(len(names)), np.zeros((len(names), len(names)))
    for s in np.unique(stratum):
        for t in np.unique(time[event & (stratum == s)]):
            at_risk = (time >= t) & (stratum == s)
            dead = event & (time == t) & (stratum == s)
            n, d = at_risk.sum(), dead.sum()
            own = np.array([np.sum(at_risk & (group == g)) for g in names])
            excess += [np.sum(dead & (group == g)) - d * own[k] / n for k, g in enumerate(names)]
            if n > 1:
                factor = d * (n - d) / (n - 1)
                variance += factor * (np.diag(own / n) - np.outer(own, own) / n**2)
    reduced = excess[:-1] @ np.linalg.solve(variance[:-1, :-1], excess[:-1])
    return stats.chi2.sf(reduced, len(names) - 1)


@pytest.mark.parametrize("n_groups", [2, 3])
def test_log_rank(rng, n_groups):
    n = 80
    time, event = np.ceil(8 * rng.random(n)), rng.random(n) < 0.6
    group, stratum = np.arange(n) % n_groups, rng.integers(0, 2, n)
    targets = survival_targets(event, time, stratum)
    found = log_rank_p_value(targets, group, np.ones(n))
    assert found == pytest.approx(slow_log_rank(time, event, group, stratum), rel=1e-8)
    weight = rng.integers(0, 3, n)
    repeated = log_rank_p_value(np.repeat(targets, weight), np.repeat(group, weight), np.ones(weight.sum()))
    assert log_rank_p_value(targets, group, weight.astype(float)) == pytest.approx(repeated, rel=1e-8)
    assert np.isnan(log_rank_p_value(targets, np.zeros(n, dtype=int), np.ones(n)))


def test_tertiles_are_those_of_each_part(rng):
    part, risk = np.repeat([0, 1], 30), np.append(rng.random(30), 100 + rng.random(30))
    found = risk_tertiles(risk, part)
    assert np.bincount(found[:30]).tolist() == np.bincount(found[30:]).tolist() == [10, 10, 10]
    assert risk[:30][found[:30] == 0].max() < risk[:30][found[:30] == 2].min()
    assert set(risk_tertiles(np.zeros(9), np.zeros(9)).tolist()) == {1}  # equal risks are medium


@pytest.fixture(scope="module")
def discovery():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((150, 12))
    time, end = rng.exponential(np.exp(-1.5 * X[:, 2])), rng.exponential(3.0, 150)
    y = np.column_stack([np.minimum(time, end), time <= end])
    return coterie.discover(X, y, task="survival", max_features_to_select=3, n_pairs=0), y


def test_curves_of_a_discovery(discovery):
    found, y = discovery
    curves, tertile = found.held_out.curves, found.model.held_out_tertiles_
    assert [own["name"] for own in curves["groups"]] == ["low risk", "medium risk", "high risk"]
    assert [own["samples"] for own in curves["groups"]] == np.bincount(tertile).tolist()
    assert [own["events"] for own in curves["groups"]] == [int(y[tertile == k, 1].sum()) for k in range(3)]
    medians = [own["median"] for own in curves["groups"]]
    assert medians[2] < medians[1]
    assert curves["p_value"] < 1e-6
    for own in curves["groups"]:
        assert np.all(np.diff(own["survival"]) <= 0.0)
        assert np.all(np.diff(own["times"]) >= 0.0)
    assert HeldOut.from_dict(found.held_out.to_dict()).curves == curves


def test_page_and_figure_show_the_curves(discovery):
    found, _ = discovery
    page = render(found.to_dict())
    assert "Survival by held-out risk" in page
    assert "median survival" in page
    assert "Log-rank test of the three groups" in page
    figure = survival_curves(found)
    assert len(figure.axes[0].lines) == 3
    without = coterie.discover(np.random.default_rng(0).standard_normal((40, 4)), np.arange(40) % 2, fast=True)
    with pytest.raises(ValueError, match="There are no held-out risks"):
        survival_curves(without)
    assert "Survival by held-out risk</h3>" not in render(without.to_dict())
