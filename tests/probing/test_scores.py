"""Probes and the three scores, compared with a table of all probes by all features."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from coterie.probing.probes import ProbePlan, ProbeSums, read_key
from coterie.probing.scores import daf_scores, summarise


def plan_of(n_features=12, max_size=8, probability=None, seed=0):
    return ProbePlan(n_features, max_size, probability, read_key(seed))


def naive_scale(values, sizes):
    """Standard deviation over each size, pooled with its neighbours as documented."""
    scale = {}
    for size in np.unique(sizes):
        for reach in range(max(sizes) + 1):
            window = values[np.abs(sizes - size) <= reach]
            if len(window) == len(values) or (len(window) >= 10 and window.std() > 1e-12 * np.abs(values).max()):
                break
        scale[size] = window.std() if window.std() > 1e-12 * np.abs(values).max() else 1.0
    return np.array([scale[size] for size in sizes])


def naive_scores(member, values):
    """The paper's formulas on a matrix of probes by features."""
    K, m = member.shape
    scaled = values / naive_scale(values, member.sum(axis=1))
    daf0, daf1, daf2 = np.zeros(m), np.zeros(m), np.zeros(m)
    for f in range(m):
        inside, outside = values[member[:, f]], values[~member[:, f]]
        if len(inside) == 0 or len(outside) == 0:
            continue
        daf0[f] = inside.mean() - outside.mean()
        daf1[f] = daf0[f] * K / (len(inside) * inside.std() + len(outside) * outside.std())
        daf2[f] = scaled[member[:, f]].mean() - scaled[~member[:, f]].mean()
    return daf0, daf1, daf2


def naive_errors(member, values):
    """Standard errors of differences of two means with a pooled variance, by name of the score."""
    K, m = member.shape
    scaled = values / naive_scale(values, member.sum(axis=1))
    errors = {name: np.full(m, np.inf) for name in ("daf0", "daf1", "daf2")}
    for f in range(m):
        mine = member[:, f]
        if mine.any() and not mine.all():
            factor = np.sqrt(1 / mine.sum() + 1 / (~mine).sum())
            for name, numbers in (("daf0", values), ("daf2", scaled)):
                pooled = (mine.sum() * numbers[mine].var() + (~mine).sum() * numbers[~mine].var()) / K
                errors[name][f] = np.sqrt(pooled) * factor
            divisor = (mine.sum() * values[mine].std() + (~mine).sum() * values[~mine].std()) / K
            errors["daf1"][f] = errors["daf0"][f] / divisor if divisor > 0 else np.nan
    return errors


def members(plan, n_probes):
    matrix = np.zeros((n_probes, plan.n_features), dtype=bool)
    for i in range(n_probes):
        matrix[i, plan.draw(i)] = True
    return matrix


@given(st.integers(0, 10**6), st.integers(2, 60), st.integers(2, 15), st.integers(1, 15), st.sampled_from([0.0, 1e3]))
def test_scores_against_the_formulas(seed, n_probes, n_features, max_size, offset):
    plan = plan_of(n_features, min(max_size, n_features), seed=seed)
    values = offset + np.random.default_rng(seed).random(n_probes)
    sums = ProbeSums.replay(plan, values)
    member = members(plan, n_probes)
    found, errors = daf_scores(sums, summarise(sums))
    with np.errstate(divide="ignore", invalid="ignore"):
        daf0, daf1, daf2 = naive_scores(member, values)
    np.testing.assert_allclose(found["daf0"], daf0, atol=1e-9)
    decided = ~np.isfinite(daf1)  # one probe on each side: the standard deviation is 0
    np.testing.assert_allclose(found["daf1"][~decided], daf1[~decided], rtol=1e-5, atol=1e-9)
    assert np.isfinite(found["daf1"]).all()
    np.testing.assert_allclose(found["daf2"], daf2, rtol=1e-7, atol=1e-7 * (1 + offset))
    for name, error in naive_errors(member, values).items():
        np.testing.assert_allclose(errors[name][~decided], error[~decided], rtol=1e-4, atol=1e-7)
        assert np.isinf(errors[name][~sums.known]).all()
    for half, scores in enumerate(sums.halves):
        with np.errstate(divide="ignore", invalid="ignore"):
            expected = naive_scores(member[half::2], values[half::2])[0]
        np.testing.assert_allclose(scores, np.nan_to_num(expected), atol=1e-9)
    np.testing.assert_array_equal(sums.count, member.sum(axis=0))
    assert sums.coverage == min(member.sum(axis=0).min(), n_probes - member.sum(axis=0).max())


def test_equal_values_give_no_scores():
    sums = ProbeSums.replay(plan_of(), np.full(40, 0.7))
    assert all(np.abs(scores).max() < 1e-14 for scores in daf_scores(sums, summarise(sums)).scores.values())
    assert {entry.scale for entry in summarise(sums)} == {1.0}


def test_summary_counts_and_pools():
    plan = plan_of(50, 30)
    values = np.random.default_rng(1).random(200)
    sums = ProbeSums.replay(plan, values)
    summary = summarise(sums)
    assert sum(entry.n_probes for entry in summary) == 200
    for entry in summary:
        mine = values[sums.sizes == entry.size]
        assert entry.n_probes == len(mine)
        assert entry.mean == pytest.approx(mine.mean())
        assert entry.std == pytest.approx(mine.std())
        pooled = values[np.abs(sums.sizes - entry.size) <= entry.reach]
        assert len(pooled) >= 10
        assert entry.scale == pytest.approx(pooled.std())
        assert entry.reach == 0 or (np.abs(sums.sizes - entry.size) <= entry.reach - 1).sum() < 10


def test_draws_depend_on_seed_and_number_only():
    plan = plan_of(100, 20)
    first = [plan.draw(i) for i in range(50)]
    again = [plan.draw(i) for i in reversed(range(50))][::-1]
    for a, b in zip(first, again, strict=True):
        np.testing.assert_array_equal(a, b)
        assert len(np.unique(a)) == len(a)
        assert (np.diff(a) > 0).all()
    assert not np.array_equal(plan_of(100, 20, seed=1).draw(0), first[0])
    assert read_key(3) == read_key(np.int64(3)) != read_key(4)
    assert read_key(np.random.RandomState(0)) == read_key(np.random.RandomState(0))
    assert read_key(None) != read_key(None)


def test_sizes_are_uniform_and_features_equal():
    plan = plan_of(30, 10)
    draws = [plan.draw(i) for i in range(6000)]
    sizes = np.bincount([len(d) for d in draws], minlength=11)
    assert sizes[0] == 0
    assert abs(sizes[1:] - 600).max() < 100  # 4 standard deviations
    held = np.bincount(np.concatenate(draws), minlength=30)
    assert abs(held - 1100).max() < 4.5 * np.sqrt(1100)


def test_inclusion_probability():
    plan = plan_of(40, 40, probability=0.25)
    sizes = [len(plan.draw(i)) for i in range(3000)]
    assert np.mean(sizes) == pytest.approx(10, abs=0.2)
    assert np.var(sizes) == pytest.approx(7.5, abs=0.7)
    assert {len(plan_of(5, 5, probability=1e-9).draw(i)) for i in range(20)} == {1}


def test_coverage_is_met_at_the_right_probe():
    plan = plan_of(9, 5)
    sums, member = ProbeSums(plan), members(plan, 200)
    for i in range(200):
        sums.add(0.5)
        held = member[: i + 1].sum(axis=0)
        for least in (1, 3, 10):
            assert sums.covers(least) == (min(held.min(), i + 1 - held.max()) >= least)


def test_values_must_be_finite():
    sums = ProbeSums.replay(plan_of(), [0.1, 0.2])
    with pytest.raises(ValueError, match=r"returned nan for probe 2 .* finite"):
        sums.add(np.nan)


@pytest.mark.parametrize("size", [5, 6])
def test_a_bad_value_is_shown_with_the_first_features_of_its_probe(size):
    sums = ProbeSums(plan_of(size, size, probability=1.0))
    with pytest.raises(ValueError, match=rf"for probe 0 \({size} feature\(s\): 0, 1, 2, 3, 4{'' if size == 5 else ', …'}\)"):
        sums.add(np.inf)


@pytest.mark.parametrize("factor", [1e-20, 1e-3, 1e6])
def test_scales_follow_the_unit_of_the_values(factor):
    """A spread that is small because all values are small is not a rounding error."""
    values = np.random.default_rng(2).random(120)
    plain, other = (summarise(ProbeSums.replay(plan_of(), scale * values)) for scale in (1.0, factor))
    for one, two in zip(plain, other, strict=True):
        assert (two.size, two.n_probes, two.reach) == (one.size, one.n_probes, one.reach)
        assert two.scale == pytest.approx(factor * one.scale, rel=1e-9)
        assert two.std == pytest.approx(factor * one.std, rel=1e-9)


def test_records_grow_beyond_their_first_room():
    plan = plan_of(6, 4)
    values = np.random.default_rng(3).random(2500)
    sums = ProbeSums.replay(plan, values)
    np.testing.assert_array_equal(sums.values, values)
    np.testing.assert_array_equal(sums.sizes, members(plan, 2500).sum(axis=1))
