"""Merging equal samples gives the same problem with fewer samples."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse

from coterie.data import FeatureView, as_source
from coterie.solver.design import Rows, design_of
from coterie.solver.losses import OneVsRestHinge, SquaredHinge, SquaredLoss
from coterie.solver.master import Master


def classes_of(kinds, columns):
    """Return the classes of equal samples by naive code: by kind and values, in order of first appearance."""
    numbers, owner = {}, []
    for kind, values in zip(kinds.tolist(), columns.tolist(), strict=True):
        owner.append(-1 if kind < 0 else numbers.setdefault((kind, *values), len(numbers)))
    return np.array(owner)


@given(st.integers(0, 10_000), st.integers(1, 40), st.booleans(), st.lists(st.integers(1, 3), min_size=1, max_size=4))
def test_rows_are_the_classes_of_equal_samples(seed, n, is_sparse, widths):
    rng = np.random.default_rng(seed)
    kinds = rng.integers(-1, 3, n)
    X = np.where(rng.random((n, sum(widths))) < 0.2, rng.integers(-1, 3, (n, sum(widths))), 0).astype(float)
    rows = Rows(kinds)
    first = 0
    for width in widths:
        block = X[:, first : first + width]
        before = rows.owner
        before = before.copy()
        parent = rows.refine(sparse.csc_array(block) if is_sparse else block)
        first += width
        expected = classes_of(kinds, X[:, :first])
        kept = np.flatnonzero(kinds >= 0)
        if expected.max(initial=-1) + 1 > 0.75 * len(kept):  # From here on, rows are not merged.
            expected = np.full(n, -1)
            expected[kept] = np.arange(len(kept))
        np.testing.assert_array_equal(rows.owner, expected)
        np.testing.assert_array_equal(rows.owner[rows.first], np.arange(len(rows.first)))
        np.testing.assert_array_equal(before[rows.first], np.arange(len(rows.first)) if parent is None else parent)
        if not rows._merging:
            break


@pytest.mark.parametrize("limit", [2**30, 1])
def test_row_numbers_are_small(limit, rng, monkeypatch):
    """Row numbers have 32 bits, unless there are too many samples, and are expanded and summed as by NumPy."""
    monkeypatch.setattr("coterie.solver.design._MAX_INT32_SAMPLES", limit)
    rows = Rows(rng.integers(-1, 2, 50))
    rows.refine(rng.integers(0, 2, (50, 3)).astype(float))
    assert rows.owner.dtype == (np.int32 if limit > 50 else np.int64)
    values, table = rng.standard_normal(50), rng.standard_normal((len(rows.first), 2))
    kept = rows.owner >= 0
    expected = np.bincount(rows.owner[kept], values[kept])
    np.testing.assert_array_equal(rows.sums(values), expected)
    np.testing.assert_array_equal(rows.expand(table), table[rows.owner])
    np.testing.assert_array_equal(rows.expand(table[:, 0]), table[rows.owner, 0])


def test_many_columns_do_not_need_large_row_numbers(rng, monkeypatch):
    numbers, number = [], Rows._number
    monkeypatch.setattr(Rows, "_number", lambda rows, n_names: (numbers.append(n_names), number(rows, n_names)))
    Rows(np.zeros(40, dtype=int)).refine(rng.integers(0, 2, (40, 1)) * np.ones((40, 200)))
    assert max(numbers) <= 80


def losses(kind, rng, n):
    weight = rng.integers(0, 4, n) * rng.choice([0.5, 1.0, 1.7], n)
    weight[:6] = 1.0
    if kind == "hinge":
        return SquaredHinge(np.r_[[1, -1] * 3, rng.choice([-1.0, 1.0], n - 6)], weight, 0.7, True)
    if kind == "one class":
        return SquaredHinge(np.ones(n), weight, 0.7, False)
    if kind == "classes":
        return OneVsRestHinge(np.r_[[0, 1, 2] * 2, rng.integers(0, 3, n - 6)], 3, weight, 0.7, True)
    return SquaredLoss(rng.standard_normal(n) + 5.0, weight, 0.7, kind == "squares")


@pytest.mark.parametrize("kind", ["hinge", "one class", "classes", "squares", "squares without offset"])
def test_a_merged_loss_is_the_loss_where_merged_samples_have_equal_outputs(kind, rng):
    n = 80
    loss = losses(kind, rng, n)
    rows = Rows(loss.kinds())
    rows.refine(rng.integers(0, 3, (n, 2)).astype(float))
    assert len(rows.first) < 0.6 * n
    merged = loss.merged(rows)
    outputs = rng.standard_normal((len(rows.first), loss.n_outputs))
    few, all_of_them = merged.evaluate(outputs), loss.evaluate(outputs[rows.owner])
    assert few.value == pytest.approx(all_of_them.value, rel=1e-12)
    assert few.conjugate == pytest.approx(all_of_them.conjugate, rel=1e-12)
    np.testing.assert_allclose(few.intercept, all_of_them.intercept, rtol=1e-12)
    np.testing.assert_allclose(few.margin, all_of_them.margin, rtol=1e-12)
    np.testing.assert_allclose(loss.spread(few.residual, rows), all_of_them.residual, rtol=1e-10, atol=1e-12)
    if "conjugate" in loss.parts:
        assert loss.conjugate(loss.spread(few.residual, rows)) == pytest.approx(all_of_them.conjugate, rel=1e-12)


@pytest.mark.parametrize("kind", ["hinge", "one class", "classes", "squares", "squares without offset"])
@pytest.mark.parametrize("is_sparse", [False, True])
def test_the_master_finds_the_same_on_merged_samples(kind, is_sparse, rng, monkeypatch):
    n = 120
    X = np.where(rng.random((n, 12)) < 0.15, rng.integers(1, 3, (n, 12)), 0).astype(float)
    loss = losses(kind, rng, n)
    weight = rng.integers(0, 2, n).astype(float)  # Mean and scale are the same for both designs.
    view = FeatureView.of(as_source(sparse.csc_array(X) if is_sparse else X), np.maximum(weight, 0.1), centred=loss.centred)

    def solutions():
        master = Master(loss, design_of(view))
        found = [master.start]
        for block in (np.array([3]), np.array([0, 5]), np.arange(6, 12)):
            master.add_block(block)
            found.append(master.solve())
        return found, master

    merged, small = solutions()
    assert small.design.output(np.zeros((9, loss.n_outputs))).shape[0] < n
    monkeypatch.setattr(type(loss), "parts", frozenset(loss.parts - {"merged"}))
    for one, other in zip(merged, solutions()[0], strict=True):
        assert one.gap <= 1e-9
        assert one.objective == pytest.approx(other.objective, rel=1e-9)
        np.testing.assert_allclose(one.coef, other.coef, rtol=1e-5, atol=1e-7)
        np.testing.assert_allclose(one.residual, other.residual, rtol=1e-5, atol=1e-7)
        assert not one.residual[loss.kinds() < 0].any()


def test_continuous_columns_are_not_compared_for_long(rng):
    rows = Rows(np.zeros(100, dtype=int))
    X = rng.standard_normal((100, 5))
    np.testing.assert_array_equal(rows.refine(X), np.zeros(100))
    assert rows.is_all
    assert rows.refine(np.ones((100, 1))) is None


def test_samples_without_a_row_have_no_residual():
    """Also if their weight is positive, such as that of samples censored before the first event."""
    rows = Rows(np.array([0, -1, 0, 1, -1]))
    found = rows.divide(np.array([[3.0, 6.0], [8.0, 2.0]]), np.array([1.0, 5.0, 2.0, 4.0, 0.0]))
    assert found.tolist() == [[1.0, 2.0], [0.0, 0.0], [2.0, 4.0], [8.0, 2.0], [0.0, 0.0]]
