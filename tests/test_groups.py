import json
import sys
from dataclasses import replace

import numpy as np
import pytest

from coterie import FeatureGroup, FeatureGroups
from coterie.groups.columns import COLUMNS, SHOWN, Column, direction, listed, place, shown


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


def test_repr(groups):
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
    assert [group.marks for group in by_class] == ["B", None]  # no class has a positive weight
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
    assert by_class[1:].classes == ["B", "T", "NK"]  # also for a slice


def test_two_classes_have_one_signed_weight(groups):
    pytest.importorskip("pandas")
    from dataclasses import replace

    two = FeatureGroups([replace(group, class_weights={0: -group.weight, 1: group.weight}) for group in groups])
    assert [group.marks for group in two] == [0, 1]
    frame = two.to_frame()
    assert frame.columns.tolist()[-1] == "marks"
    assert not [name for name in frame.columns if name.startswith("weight[")]
    assert repr(two) == repr(groups)  # Numeric labels of two classes are not shown.
    assert groups.classes is None
    assert groups.class_weights is None
    assert "marks" not in groups.to_frame()


def annotated_groups():
    groups = FeatureGroups(
        [
            FeatureGroup(2, [0, 3], [0.9, -0.8], names=("c", "a", "d")),
            FeatureGroup(1, [], names=("b",)),
            FeatureGroup(4, [5], [0.7]),
        ]
    )
    columns = {
        "chromosome": ["1", "2", "1", "1", "X", "X"], "position": np.array([1000, 5, 2000, 400_000, 7, 8]),
        "p_value": np.array([0.02, 0.5, 1e-9, 0.0005, np.nan, 0.3]), "score": list("abcdef"),
    }  # fmt: skip
    return groups.annotated(columns)


def test_annotations_are_of_the_members_alone():
    class Counted(list):
        read = 0

        def __getitem__(self, index):
            Counted.read += 1
            return super().__getitem__(index)

    groups = annotated_groups()
    assert groups.annotations["position"] == [2000, 1000, 400_000, 5, 7, 8]
    assert list(groups.annotations) == ["chromosome", "position", "p_value", "info_score"]  # rows() has a column named score.
    assert type(groups[0].annotations["position"][0]) is int
    assert [row["chromosome"] for row in groups.rows()] == ["1", "1", "1", "2", "X", "X"]
    frame = groups.to_frame()
    assert list(frame.columns) == groups.columns
    assert frame["info_score"].tolist() == ["c", "a", "d", "b", "e", "f"]
    assert groups[1:].annotations["position"] == [5, 7, 8]
    assert json.loads(groups.to_json())[2]["annotations"]["p_value"] == [None, 0.3]
    groups.annotated({"more": Counted("x" * 10**6)})
    assert Counted.read == 6
    mixed = FeatureGroups([groups[0], FeatureGroup(9, [8], [0.9])])
    assert mixed.annotations["position"] == [2000, 1000, 400_000, None, None]


def test_clumps_in_plinks_columns():
    first, second, third = annotated_groups().clumps()
    assert list(first) == ["CHR", "F", "SNP", "BP", "P", "TOTAL", "NSIG", "S05", "S01", "S001", "S0001", "SP2", "CS95"]
    assert list(first.values()) == ["1", 1, "c", 2000, 1e-9, 1, 0, 1, 0, 0, 0, "a(1)", None]  # d is 398 kb away
    assert list(second.values()) == ["2", 1, "b", 5, 0.5, 0, 0, 0, 0, 0, 0, "NONE", None]
    assert list(third.values()) == ["X", 1, "4", 7, None, 1, 1, 0, 0, 0, 0, "5(1)", None]
    assert annotated_groups().clumps(kb=None)[0]["SP2"] == "a(1),d(1)"
    assert annotated_groups().clumps(kb=398)[0]["S001"] == 1
    assert annotated_groups().clumps(kb=None, r2=0.7)[0]["SP2"] == "a(1)"
    assert annotated_groups().clumps(kb=None, p2=0.01)[0]["SP2"] == "d(1)"
    group = annotated_groups()[0]  # c with a and d
    known = replace(group, probabilities=np.array([0.3, 0.05, 0.65]))
    assert FeatureGroups([known]).clumps()[0]["CS95"] == "d,c"
    for options in ({"kb": -1}, {"r2": 1.1}, {"p2": 2}):
        with pytest.raises(ValueError, match="must be a number"):
            annotated_groups().clumps(**options)
    at_levels = FeatureGroups([FeatureGroup(0, [1, 2, 3], [0.9] * 3)]).annotated(
        {"chromosome": ["1"] * 4, "position": [1, 2, 3, 4], "p_value": [0.0, 0.05, 0.01, 0.001]}
    )
    assert [at_levels.clumps()[0][name] for name in ("NSIG", "S05", "S01", "S001", "S0001")] == [1, 1, 1, 0, 0]
    elsewhere = FeatureGroups([FeatureGroup(0, [1], [0.9])]).annotated({"chromosome": ["1", "2"], "position": [5, 5]})
    assert elsewhere.clumps()[0]["TOTAL"] == 0
    with pytest.raises(ValueError, match="have no chromosome and position"):
        FeatureGroups([FeatureGroup(0, [])]).clumps()


def test_every_column_is_shown_somewhere_and_all_that_is_shown_are_columns():
    lists = {"affiliated", "correlation", "names", "shares", "probabilities"}  # of members, which to_json() adds
    named = {name for where, names in SHOWN.items() for name in names if where != "json" or name not in lists}
    assert named == set(COLUMNS)
    assert [column.name for column in shown("members")] == list(SHOWN["members"])


def test_a_new_column_is_in_all_tables(groups, monkeypatch):
    pytest.importorskip("pandas")
    spread = Column("spread", "range", "", lambda item: np.ptp(item.group.correlation) if len(item.group) > 1 else None,
                    kind="figure")  # fmt: skip
    monkeypatch.setitem(COLUMNS, "spread", spread)
    for where in ("table", "json", "notebook"):
        monkeypatch.setitem(SHOWN, where, [*SHOWN[where], "spread"])
    assert [row["spread"] for row in groups.rows()] == [1.75, 1.75, 1.75, None]
    assert groups.to_frame()["spread"].dtype == float
    assert [group["spread"] for group in json.loads(groups.to_json())] == [1.75, None]
    page = groups._repr_html_()
    assert "<th>range</th>" in page
    assert '<td style="text-align: right">1.8</td>' in page
    assert '<td style="text-align: right">–</td>' in page
    assert "range" not in groups[1:]._repr_html_()  # The column has no values.


def test_values_as_text():
    effect, share, count = (COLUMNS[name] for name in ("effect", "confidence", "size"))
    assert [effect.text(value) for value in (0.25, -1e-5, 0.0, None, float("nan"))] == ["+0.25", "-1e-05", "0", "–", "–"]
    assert [share.text(value) for value in (0.456, None, float("nan"))] == ["0.46", "fixed", "fixed"]
    assert count.text(12345) == "12,345"
    assert listed(["a", "b"], [0.9, 0.8], 2) == "a (+0.90), b (+0.80)"
    assert listed([], [], 2) == "–"
    assert place({"position": 5}) is None
    assert place({"chromosome": "X", "position": None, "allele_1": "A"}) == "X"
    assert place({"chromosome": 7, "position": "12 cM"}) == "7:12 cM"


def test_direction_in_words():
    assert direction(None, 0.3, None, ["a", "b"]) is None
    assert direction("classification", np.float64(0.3), None, ["a", "b"]) == "more → b"
    assert direction("classification", 0.3, None, ["a", "b", "c"]) is None
    assert direction("classification", 0.3, [-0.1, -0.2, -0.3], ["a", "b", "c"]) == "less → c"
    assert direction("classification", 0.3, [0.3, -0.3, 0.0], ["a", "b", "c"]) == "more → a"
    assert direction("regression", -0.3, None, None) == "more → lower"
    assert direction("one-class", -0.3, None, None) == "less → normal"
    assert direction("regression", 0.0, None, None) is None


def test_annotations_cannot_take_the_name_of_a_column():
    pytest.importorskip("pandas")
    groups = FeatureGroups([FeatureGroup(0, [1], [0.9], class_weights={"a": 1.0, "b": -1.0})])
    frame = groups.annotated({"marks": ["x", "y"], "weight_class": ["light", "heavy"]}).to_frame()
    assert frame["marks"].tolist() == ["a", None]
    assert frame["info_marks"].tolist() == ["x", "y"]
    assert frame["weight_class"].tolist() == ["light", "heavy"]
