"""The concordance index compared with a slow definition."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import chi2

from coterie.inputs.survival import survival_targets
from coterie.metrics import concordance_index
from coterie.validation.survival import linearised_concordance, log_rank_p_value, survival_curve


def random_data(seed, with_entry, n=25):
    rng = np.random.default_rng(seed)
    time = 1 + rng.integers(0, 8, n)
    entry = np.floor(rng.random(n) * time) if with_entry else None
    targets = survival_targets(rng.random(n) < 0.6, time, rng.integers(0, 2, n), entry)
    return targets, rng.integers(0, 6, n).astype(float), rng.choice([0.0, 1.0, 2.5], n), rng


def slow(targets, risk, weight, first, part):
    right = total = 0.0
    for i in np.flatnonzero(targets["event"]):
        for j in range(len(targets)):
            later = targets["time"][j] > targets["time"][i]
            later |= targets["time"][j] == targets["time"][i] and not targets["event"][j]
            later &= targets["entry"][j] < targets["time"][i]
            if later and targets["stratum"][i] == targets["stratum"][j] and part[i] == part[j]:
                total += first[i] * weight[j]
                right += first[i] * weight[j] * (0.5 * (risk[i] == risk[j]) + (risk[i] > risk[j]))
    return right / total if total else np.nan


@given(st.integers(0, 10**6), st.booleans())
@settings(max_examples=80, deadline=None)
def test_concordance(seed, with_entry):
    targets, risk, weight, rng = random_data(seed, with_entry)
    part, first = rng.integers(0, 2, len(risk)), weight * rng.random(len(risk))
    found = linearised_concordance(targets, risk, weight, part, first)
    assert found.value == pytest.approx(slow(targets, risk, weight, first, part), rel=1e-12, nan_ok=True)
    if np.isnan(found.value):
        return
    assert found.influence.sum() == pytest.approx(0.0, abs=1e-12)
    for k in range(len(risk)):
        factor = 1.0 + 1e-6 * (np.arange(len(risk)) == k)
        change = slow(targets, risk, weight * factor, first * factor, part) - found.value
        assert found.influence[k] == pytest.approx(change / 1e-6, abs=1e-5)


def test_index_of_targets_in_any_form(rng):
    time, event, risk = rng.random(30), rng.random(30) < 0.7, rng.random(30)
    y = np.column_stack([time, event])
    expected = slow(survival_targets(event, time), risk, np.ones(30), np.ones(30), np.zeros(30))
    assert concordance_index(y, risk) == pytest.approx(expected)
    weight = rng.integers(0, 3, 30)
    repeated = concordance_index(np.repeat(y, weight, axis=0), np.repeat(risk, weight))
    assert concordance_index(y, risk, sample_weight=weight) == pytest.approx(repeated)
    assert np.isnan(concordance_index(y, risk, tau=0.0))
    with pytest.raises(ValueError, match="risk must be one finite number per sample"):
        concordance_index(y, np.full(30, np.nan))


def test_unos_index_weights_pairs_by_the_censoring(rng):
    n = 40
    time, event, risk = np.ceil(10 * rng.random(n)), rng.random(n) < 0.6, rng.random(n)
    known = np.column_stack([np.ceil(10 * rng.random(n)), rng.random(n) < 0.5])

    def uncensored_before(t):
        share = 1.0
        for s in np.unique(known[known[:, 1] == 0, 0]):
            if s < t:
                at_risk = np.sum((known[:, 0] > s) | ((known[:, 0] == s) & (known[:, 1] == 0)))
                share *= 1.0 - np.sum((known[:, 0] == s) & (known[:, 1] == 0)) / at_risk
        return share

    left = np.array([uncensored_before(t) for t in time])
    first = np.divide(1.0, left**2, out=np.zeros(n), where=left > 0)
    targets = survival_targets(event, time)
    expected = slow(targets, risk, np.ones(n), first, np.zeros(n))
    found = concordance_index(np.column_stack([time, event]), risk, censoring=known)
    assert found == pytest.approx(expected, rel=1e-12)
    early = slow(targets, risk, np.ones(n), np.where(time < 5, first, 0.0), np.zeros(n))
    assert concordance_index(np.column_stack([time, event]), risk, censoring=known, tau=5.0) == pytest.approx(early)


def test_unos_index_refuses_entry_times(rng):
    table = {"time": [1.0, 2.0, 3.0], "event": [1, 1, 0], "entry": [0.5, 0.0, 1.0]}
    with pytest.raises(ValueError, match="does not support entry times"):
        concordance_index(table, [3.0, 2.0, 1.0], censoring=table)
    assert concordance_index(table, [3.0, 2.0, 1.0]) == 1.0


@pytest.mark.parametrize("with_entry", [False, True])
def test_survival_curve(rng, with_entry):
    time, event = np.ceil(10 * rng.random(50)), rng.random(50) < 0.5
    entry = np.floor(rng.random(50) ** 3 * time) if with_entry else np.full(50, -np.inf)
    times, share = survival_curve(time, event, np.ones(50), entry)
    left = 1.0
    for t, found in zip(times, share, strict=True):
        left *= 1.0 - np.sum(event & (time == t)) / np.sum((time >= t) & (entry < t))
        assert found == pytest.approx(left)


def test_log_rank_with_entry_times(rng):
    """Log-rank statistic by definition: expected and observed events of the samples at risk."""
    time = 1.0 + rng.integers(0, 12, 60)
    event, group, entry = rng.random(60) < 0.7, rng.integers(0, 2, 60), np.floor(rng.random(60) ** 2 * time)
    excess = variance = 0.0
    for t in np.unique(time[event]):
        at_risk, dies = (time >= t) & (entry < t), event & (time == t)
        n, d, share = at_risk.sum(), dies.sum(), group[at_risk].mean()
        excess += group[dies].sum() - d * share
        variance += d * share * (1 - share) * (n - d) / max(n - 1, 1)
    found = log_rank_p_value(survival_targets(event, time, entry=entry), group, np.ones(60))
    assert found == pytest.approx(chi2.sf(excess**2 / variance, 1))
