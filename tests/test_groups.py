import json
import sys

import numpy as np
import pytest

from coterie import FeatureGroup, FeatureGroups


@pytest.fixture
def groups():
    return FeatureGroups(
        [
            FeatureGroup(4, [9, 2], [0.95, -0.8], ("four", "nine", "two"), 1.5, np.array([1.2, 1.0]), -0.25, 1),
            FeatureGroup(7, [], [], ("seven",), 0.5, np.empty(0), 0.125, 2),
        ]
    )


def test_sequence(groups):
    assert len(groups) == 2
    assert groups[0].support == 4
    assert groups[-1].members.tolist() == [7]
    assert isinstance(groups[:1], FeatureGroups)
    assert [g.support for g in groups] == groups.support.tolist() == [4, 7]
    assert groups.members.tolist() == [2, 4, 7, 9]
    assert FeatureGroups().members.tolist() == []


def test_equality_is_that_of_members(groups):
    same = FeatureGroups([FeatureGroup(4, [2, 9]), FeatureGroup(7, [])])
    assert groups == same
    assert hash(groups) == hash(same)
    assert groups != FeatureGroups([FeatureGroup(7, []), FeatureGroup(4, [2, 9])])
    assert groups[0] != FeatureGroup(2, [4, 9])
    assert groups != [1]
    assert groups[0] != 4


def test_frame(groups):
    pytest.importorskip("pandas")
    frame = groups.to_frame()
    assert frame["feature"].tolist() == [4, 9, 2, 7]
    assert frame["group"].tolist() == [1, 1, 1, 2]
    assert frame["role"].tolist() == ["support", "affiliated", "affiliated", "support"]
    assert frame["correlation"].tolist() == [1.0, 0.95, -0.8, 1.0]
    assert frame["name"].tolist() == ["four", "nine", "two", "seven"]
    assert frame["weight"].isna().tolist() == [False, True, True, False]
    assert FeatureGroups().to_frame().columns.tolist() == frame.columns.tolist()


def test_frame_without_pandas(groups, monkeypatch):
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(ImportError, match=r"coterie\[tabular\]"):
        groups.to_frame()


def test_json(groups):
    content = json.loads(groups.to_json(indent=1))
    assert content[0]["affiliated"] == [9, 2]
    assert content[0]["names"] == ["four", "nine", "two"]
    assert content[1]["weight"] == 0.125
    assert json.loads(FeatureGroups([FeatureGroup(1, [2])]).to_json())[0]["correlation"] == [None]


def test_repr_is_for_people(groups):
    assert repr(groups).splitlines() == ["2 groups, 4 features", "  1. four ~ nine (+0.95), two (-0.80)", "  2. seven (alone)"]
    many = FeatureGroups([FeatureGroup(j, range(100 + 20 * j, 120 + 20 * j), [0.9] * 20) for j in range(20)])
    text = repr(many)
    assert "… 14 more" in text
    assert text.endswith("… and 8 more")
    assert repr(FeatureGroups()) == "0 groups, 0 features"


@pytest.fixture
def by_class():
    weights = [{"B": 0.5, "T": -0.1, "NK": 0.0}, {"B": -0.2, "T": -0.3, "NK": -0.1}]
    return FeatureGroups(
        [FeatureGroup(4, [9], [0.9], weight=0.6, class_weights=weights[0]), FeatureGroup(7, [], class_weights=weights[1])]
    )


def test_signed_weights_by_class(by_class):
    pytest.importorskip("pandas")
    assert by_class.classes == ["B", "T", "NK"]
    np.testing.assert_array_equal(by_class.class_weights, [[0.5, -0.1, 0.0], [-0.2, -0.3, -0.1]])
    assert [group.marks for group in by_class] == ["B", None]  # nothing speaks for a class that all weights are against
    assert repr(by_class[0]) == "4 (marks B) ~ 9 (+0.90)"
    assert repr(by_class[1]) == "7 (alone)"
    frame = by_class.to_frame()
    assert frame.columns.tolist()[-4:] == ["marks", "weight[B]", "weight[T]", "weight[NK]"]
    assert frame["marks"].tolist() == ["B", None, None]
    assert frame["weight[T]"].dtype == float
    assert frame["weight[T]"].dropna().tolist() == [-0.1, -0.3]
    assert by_class.columns == frame.columns.tolist()
    content = json.loads(by_class.to_json())
    assert content[0]["class_weights"] == {"B": 0.5, "T": -0.1, "NK": 0.0}
    assert content[0]["marks"] == "B"
    assert by_class[1:].classes == ["B", "T", "NK"]  # parts of groups know them, too


def test_of_two_classes_one_weight_says_all(groups):
    pytest.importorskip("pandas")
    from dataclasses import replace

    two = FeatureGroups([replace(group, class_weights={0: -group.weight, 1: group.weight}) for group in groups])
    assert [group.marks for group in two] == [0, 1]
    frame = two.to_frame()
    assert frame.columns.tolist()[-1] == "marks"
    assert not [name for name in frame.columns if name.startswith("weight[")]
    assert repr(two) == repr(groups)  # numbers as labels say nothing to a reader of groups
    assert groups.classes is None
    assert groups.class_weights is None
    assert "marks" not in groups.to_frame()
