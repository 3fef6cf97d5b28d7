"""Features of one column of a table stay together: the measure, the groups, and the model."""

import numpy as np
import pytest

from coterie import GroupDiscoveryClassifier, GroupDiscoveryClassifierCV, GroupDiscoveryRegressor, group_confidence, imputed
from coterie.correlation import PearsonCorrelation, UnitCorrelation, column_units
from coterie.data import FeatureView, annotated, as_source
from coterie.data.encoding import annotations_of

N_LEVELS = 4


@pytest.fixture
def levels(rng):
    """Six columns of four levels, then ten numbers, two of them near a level; and the column of each feature."""
    codes = rng.integers(0, N_LEVELS, (300, 6))
    one_hot = [(codes[:, [j]] == np.arange(N_LEVELS)).astype(float) for j in range(6)]
    numbers = rng.standard_normal((300, 10))
    numbers[:, 0] = one_hot[0][:, 1] + 0.1 * numbers[:, 0]
    numbers[:, 1] = one_hot[2][:, 3] + 0.1 * numbers[:, 1]
    X = np.hstack([*one_hot, numbers])
    columns = [f"c{j}" for j in range(6) for _ in range(N_LEVELS)] + [f"x{j}" for j in range(10)]
    effects = np.array([0.0, 2.0, -2.0, 1.0])
    y = effects[codes[:, 0]] + effects[::-1][codes[:, 1]] + numbers[:, 5] + 0.5 * rng.standard_normal(300)
    return X, columns, y


def source_of(X, columns):
    return annotated(as_source(X, [f"{name}/{j}" for j, name in enumerate(columns)]), {"column": columns})


def slow_pairs(X, units, supports, threshold):
    """Pairs that reach the threshold, or are in one unit."""
    matrix = np.corrcoef(X.T)
    found = {}
    for feature in range(X.shape[1]):
        for place, support in enumerate(supports):
            if units[feature] == units[support]:
                found[feature, place] = -1.0 if matrix[feature, support] < 0 else 1.0
            elif abs(matrix[feature, support]) >= threshold:
                found[feature, place] = matrix[feature, support]
    return found


def test_the_measure(levels, rng):
    X, columns, _ = levels
    source = source_of(X, columns)
    units = column_units(source)
    assert units.tolist() == [columns.index(name) // N_LEVELS if name[0] == "c" else 6 + int(name[1:]) for name in columns]
    measure = UnitCorrelation(PearsonCorrelation(FeatureView.of(source)), units)
    supports = np.array([9, 2, 25, 30])
    pairs = measure.strong(supports, 0.6)
    expected = slow_pairs(X, units, supports, 0.6)
    assert list(zip(pairs.feature.tolist(), pairs.position.tolist(), strict=True)) == sorted(expected)
    np.testing.assert_allclose(pairs.correlation, [expected[key] for key in sorted(expected)], atol=1e-12)
    few = rng.permutation(len(columns))[:20]
    plain = np.corrcoef(X.T)
    same = units[few][:, None] == units[few][None, :]
    wanted = np.where(same, np.where(plain[np.ix_(few, few)] < 0, -1, 1), plain[np.ix_(few, few)])
    np.testing.assert_allclose(measure.within(few), wanted, atol=1e-12)
    np.testing.assert_allclose(measure.between(few[:5], few), wanted[:5], atol=1e-12)


def test_units_of_sources():
    assert column_units(as_source(np.eye(2))) is None
    assert column_units(source_of(np.eye(2), ["a", "b"])) is None  # every column is one feature
    assert column_units(source_of(np.eye(4), ["a", "", "", "a"])).tolist() == [0, 1, 2, 0]  # features without a column
    two = annotated(as_source(np.eye(3)), {"column": ["a", "a", "a"], "block": ["u", "v", "u"]})
    assert column_units(two).tolist() == [0, 1, 0]  # columns of several matrices
    assert annotations_of([]) == {}


@pytest.mark.parametrize("affiliates", ["complete", "ranked"])
@pytest.mark.parametrize("per_round", [1, 3])
def test_a_column_is_in_one_group_with_all_its_levels(levels, affiliates, per_round):
    X, columns, y = levels
    apart = GroupDiscoveryRegressor(7, affiliates=affiliates, n_features_per_round=per_round).fit(X, y)
    used = [columns[group.support] for group in apart.groups_]
    assert len(set(used)) < len(used)  # without units, a column is divided
    model = GroupDiscoveryRegressor(7, affiliates=affiliates, n_features_per_round=per_round).fit(source_of(X, columns), y)
    used = [columns[group.support] for group in model.groups_]
    assert len(set(used)) == len(used) == 7
    matrix = np.corrcoef(X.T)
    for group in model.groups_:
        own = [j for j, name in enumerate(columns) if name == columns[group.support]]
        if affiliates == "complete":
            assert set(own) <= set(group.members.tolist())
        np.testing.assert_allclose(group.correlation, matrix[group.support, group.affiliated], atol=1e-10)


def test_order_of_columns_folds_and_gaps(levels, rng):
    """Groups depend neither on the order of the columns, nor is a unit lost in the folds of imputed data."""
    X, columns, y = levels
    order = rng.permutation(len(columns))
    first = GroupDiscoveryRegressor(5).fit(source_of(X, columns), y)
    second = GroupDiscoveryRegressor(5).fit(annotated(as_source(X[:, order]), {"column": [columns[j] for j in order]}), y)
    assert [group.support for group in first.groups_] == [order[group.support] for group in second.groups_]
    holes = X.copy()
    holes[rng.random(X.shape) < 0.02] = np.nan
    classes = np.where(y > np.median(y), "b", "a")
    filled = imputed(source_of(holes, columns))
    assert column_units(filled.refilled(np.arange(100))) is not None
    model = GroupDiscoveryClassifierCV(max_features_to_select=5, nested=False, random_state=0).fit(filled, classes)
    used = [columns[group.support] for group in model.groups_]
    assert len(set(used)) == len(used)


def test_confidence_keeps_columns_together(levels):
    X, columns, y = levels
    source = source_of(X, columns)
    model = GroupDiscoveryClassifier(3).fit(source, y > np.median(y))
    found = group_confidence(model, source, y > np.median(y), n_pairs=5, n_permutations=0)
    by_column = {columns[group.support]: value for group, value in zip(model.groups_, found.confidence, strict=True)}
    assert by_column["c0"] == by_column["c1"] == 1.0
