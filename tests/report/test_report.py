"""The result folder of a discovery and its page."""

import base64
import csv
import gzip
import hashlib
import html
import json
import re
import shutil
from copy import copy
from dataclasses import replace
from html.parser import HTMLParser
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import coterie
from coterie import GroupDiscoveryClassifier, GroupDiscoveryOneClass, GroupDiscoveryRegressor
from coterie.cli.discover import show_groups
from coterie.data import as_source
from coterie.groups import FeatureGroup, Purity, columns
from coterie.report import Discovery, read_result, write_result
from coterie.report.folder import dumps
from coterie.report.page import number, render
from coterie.report.table import write_clumps
from tests.conftest import grouped_matrix

HOSTILE_NAMES = [
    "<script>alert(1)</script>",
    "\"><img src=x onerror='alert(1)'>",
    "{{ 7 * 7 }}",
    "{% raw %}",
    "&lt;b&gt;",
    "]]>",
    "-->",
    "[bold]x[/bold]",
    "=cmd()",
    "a\tb\nc,d\"e'",
    "Ångström µ 基因",
    "\udcff lone",
]


class Page(HTMLParser):
    """Parser that collects the tags and the text of a page."""

    def __init__(self, text):
        super().__init__(convert_charrefs=True)
        self.tags, self.attributes, self.words = [], [], []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag, attributes):
        self.tags.append(tag)
        self.attributes += attributes

    def handle_data(self, data):
        self.words.append(data)


def fitted(names=None, n_features=40, **options):
    X, y = grouped_matrix(np.random.default_rng(0), n_features=n_features)
    source = as_source(X) if names is None else as_source(X, names)  # pandas refuses lone surrogates
    model = GroupDiscoveryClassifier(6, **options).fit(source, y)
    return coterie.group_effects(model, source, y).attach_to(model)


def result_of(model, **more):
    return Discovery(model, {"path": "data.svm", "samples": 60, "notes": {"missing": 3}}, "classification", 1.5, 0.9, **more)


@pytest.fixture(scope="module")
def hostile():
    names = [f"{HOSTILE_NAMES[j % len(HOSTILE_NAMES)]}{j}" for j in range(40)]
    return names, fitted(names)


def test_names_cannot_inject_html(hostile, tmp_path):
    names, model = hostile
    result = Discovery(
        model,
        {"path": HOSTILE_NAMES[0], HOSTILE_NAMES[1]: HOSTILE_NAMES[0]},
        HOSTILE_NAMES[2],
        warnings=[HOSTILE_NAMES[0]],
        command=HOSTILE_NAMES[1],
    )
    write_result(tmp_path / "out", result)
    text = (tmp_path / "out" / "report.html").read_text(encoding="utf-8")
    page = Page(text)
    harmless = Page(render(result_of(fitted()).to_dict()))
    assert set(page.tags) <= set(harmless.tags) | {"aside", "ul", "li", "h2", "pre"}
    assert page.tags.count("script") == 2
    assert not {"img", "iframe", "a", "object", "embed", "form"} & set(page.tags)
    assert not any(name.startswith("on") or "javascript" in str(value) for name, value in page.attributes)
    shown = "".join(page.words)
    for group in model.groups_:
        assert visible(names[group.support]) in shown
    data = page_data(text)
    assert data["groups"]["label"] == [names[j] for j in model.groups_.support]


def visible(name):
    return re.sub("[\ud800-\udfff]", lambda found: f"\\u{ord(found[0]):04x}", name)


def page_data(text):
    """Return the data that the script of a page reads."""
    packed = re.search(r'<script type="application/x-coterie" id="data">([A-Za-z0-9+/=]*)</script>', text)[1]
    return json.loads(gzip.decompress(base64.b64decode(packed)))


@given(st.text(max_size=40))
def test_any_name_is_escaped(name):
    content = result_of(MODEL).to_dict()
    content["groups"][0]["members"][0]["name"] = name
    content["data"]["path"] = name
    content["groups"][0]["direction"] = name
    page = Page(render(content))
    assert page.tags == Page(render(result_of(MODEL).to_dict())).tags


MODEL = fitted()


def test_page_is_self_contained():
    text = render(result_of(MODEL).to_dict())
    outside = re.sub(r"<(script|style)\b[^>]*>.*?</\1>", "", text, flags=re.DOTALL)
    assert re.findall(r"(?:src|href)=[\"']([^\"']{5})", outside) == ["data:"]
    assert not re.search(r"url\(|@import", text)
    assert not re.search(r"https?://(?!www\.w3\.org/)", text)  # XML namespaces are not requested


def test_policy_allows_the_own_script_and_style_only():
    text = render(result_of(MODEL).to_dict())
    policy = dict(part.split(" ", 1) for part in html.unescape(re.search(r'Policy" content="([^"]*)"', text)[1]).split("; "))
    assert policy["default-src"] == "'none'"
    assert not any("unsafe" in value or "*" in value or "http" in value for value in policy.values())
    for name, kind in (("script", "script-src"), ("style", "style-src")):
        inside = re.search(rf"<{name}>(.*?)</{name}>", text, flags=re.DOTALL)[1]
        digest = base64.b64encode(hashlib.sha256(inside.encode()).digest()).decode()
        assert policy[kind] == f"'sha256-{digest}'"
    assert "style=" not in re.sub(
        r"<(script|style)>.*?</\1>", "", text, flags=re.DOTALL
    )  # inline styles are blocked by the policy


def test_page_contains_the_main_results():
    text = render(result_of(MODEL, warnings=["Only 6 of 9 were found."], interrupted=True).to_dict())
    words = " ".join("".join(Page(text).words).split())
    assert "Found: 6 groups with" in words
    assert "accuracy on the training data: 0.9" in words
    assert "Only 6 of 9 were found." in words
    assert "A signal ended the search early" in words
    assert "All figures are from the training data" in words
    assert "missing: 3" in words


@pytest.mark.parametrize("kind", ["regression", "one-class", "no groups", "su", "many"])
def test_pages_of_the_whole_family(kind):
    X, y = grouped_matrix(np.random.default_rng(0), n_features=300 if kind == "many" else 40, n_factors=4)
    X = np.abs(X) if kind == "one-class" else X
    model = {
        "regression": GroupDiscoveryRegressor(4),
        "one-class": GroupDiscoveryOneClass(5),
        "no groups": GroupDiscoveryClassifier(5, correlation=None),
        "su": GroupDiscoveryClassifier(3, correlation="su", fixed_features=[3]),
        "many": GroupDiscoveryClassifier(2, threshold=0.5),
    }[kind].fit(X, y)
    text = coterie.report(model, X, None if kind == "one-class" else y).html
    data = page_data(text)
    assert data["groups"]["n"] == len(model.groups_)
    assert data["members"]["feature"] == [int(j) for group in model.groups_ for j in group.members]
    assert Page(text).tags.count("tr") > len(model.groups_)


def test_number_format():
    assert [number(v) for v in (None, 3, 12345678, 0.5, 1e-9, 12345.678, 0.0, True, "x")] == [
        "–", "3", "12,345,678", "0.5", "1.00e-09", "12,345.7", "0", "True", "x",
    ]  # fmt: skip


def test_formatted_json_is_valid():
    content = {"a": [1, 2.5, None], "b": [[1], {}], "c": {"d": "é", "e": []}, "f": []}
    assert json.loads(dumps(content)) == content
    assert '"a": [1, 2.5, null]' in dumps(content)


def test_a_failure_leaves_nothing(tmp_path):
    def fail(folder):
        raise OSError(28, "No space left on device")

    with pytest.raises(OSError, match="No space left"):
        write_result(tmp_path / "out", result_of(MODEL), extras=fail)
    assert list(tmp_path.iterdir()) == []
    write_result(tmp_path / "out", result_of(MODEL))
    before = (tmp_path / "out" / "result.json").read_text()
    with pytest.raises(OSError, match="No space left"):
        write_result(tmp_path / "out", result_of(MODEL), overwrite=True, extras=fail)
    assert (tmp_path / "out" / "result.json").read_text() == before
    assert [path.name for path in tmp_path.iterdir()] == ["out"]


def test_foreign_results_are_refused(tmp_path):
    write_result(tmp_path / "out", result_of(MODEL))
    assert read_result(tmp_path / "out", model=True).groups_ == MODEL.groups_
    assert read_result(tmp_path / "out")["version"] == 1
    for change, message in (
        ({"version": 2}, r"has format version 2, but this version of Coterie reads version 1\. Update Coterie"),
        ({"format": "x"}, "does not have the format 'coterie result'"),
    ):
        shutil.copytree(tmp_path / "out", tmp_path / "copy")
        content = json.loads((tmp_path / "copy" / "result.json").read_text()) | change
        (tmp_path / "copy" / "result.json").write_text(json.dumps(content))
        with pytest.raises(ValueError, match=message):
            read_result(tmp_path / "copy")
        shutil.rmtree(tmp_path / "copy")
    with pytest.raises(FileNotFoundError, match="not a result folder"):
        read_result(tmp_path)


def test_clumps(tmp_path):
    """The columns are PLINK's for any names; members on other chromosomes or far away are not counted."""
    names = [f"rs {j}\t{j}" for j in range(40)]
    info = {"chromosome": np.arange(40) // 10, "position": np.arange(40) * 1000}
    model = fitted(names)
    write_clumps(tmp_path / "x.clumps", result_of(model, feature_info=info))
    lines = [line.split() for line in (tmp_path / "x.clumps").read_text().splitlines()]
    assert lines[0] == ["CHR", "F", "SNP", "BP", "P", "TOTAL", "NSIG", "S05", "S01", "S001", "S0001", "SP2", "CS95"]
    assert len(lines) == 7
    for line, group in zip(lines[1:], model.groups_, strict=True):
        j = group.support
        own = [k for k in group.affiliated if k // 10 == j // 10]
        assert line[:5] == [str(j // 10), "1", f"rs_{j}_{j}", str(j * 1000), "NA"]
        assert line[5:11] == [str(len(own)), *["NA"] * 5]
        assert line[11:] == [",".join(f"rs_{k}_{k}(1)" for k in own) or "NONE", "NA"]
    write_clumps(tmp_path / "y.clumps", result_of(model, feature_info=info), kb=0)
    assert all(line.split()[5] == "0" for line in (tmp_path / "y.clumps").read_text().splitlines()[1:])
    with pytest.raises(ValueError, match="have no chromosome and position"):
        write_clumps(tmp_path / "z.clumps", result_of(fitted()))


def test_a_new_column_is_in_all_files_and_on_the_terminal(tmp_path, monkeypatch):
    """A column of the registry is written to groups.csv, result.json, the page and the terminal."""
    twice = columns.Column("twice", "doubled size", "Twice the size.", lambda item: 2 * len(item.group), kind="count")
    monkeypatch.setitem(columns.COLUMNS, "twice", twice)
    for where in ("table", "result", "terminal", "page"):
        monkeypatch.setitem(columns.SHOWN, where, [*columns.SHOWN[where], "twice"])
    result, output = result_of(MODEL), tmp_path / "out"
    write_result(output, result)
    sizes = [2 * len(group) for group in MODEL.groups_]
    with (output / "groups.csv").open(newline="") as file:
        rows = [int(row["twice"]) for row in csv.DictReader(file) if row["role"] == "support"]
    assert rows == [group["twice"] for group in read_result(output)["groups"]] == sizes
    text = (output / "report.html").read_text(encoding="utf-8")
    assert "Doubled size: twice the size." in text
    assert text.count(f"<td>{sizes[0]}</td>") >= 1
    data = page_data(text)
    assert data["groups"]["twice"] == sizes
    assert data["columns"][-1] == {
        "key": "twice", "title": "doubled size", "hint": "Twice the size.", "kind": "count", "missing": "–",
    }  # fmt: skip
    shown = []
    show_groups(result, SimpleNamespace(show=shown.append, quiet=False))
    assert [column.header for column in shown[0].columns][-1] == "doubled size"
    assert [cell.plain for cell in shown[0].columns[-1].cells] == [str(size) for size in sizes]


def test_places_sort_by_chromosome_and_position():
    info = {"chromosome": ["10"] * 20 + ["2"] * 20, "position": np.arange(40)[::-1]}
    text = render(result_of(MODEL, feature_info=info).to_dict())
    support = MODEL.groups_.support.tolist()
    ranks = page_data(text)["orders"]["place"]
    keys = [(info["chromosome"][j] == "10", 39 - j) for j in support]
    assert [support[k] for k in np.argsort(ranks)] == [support[k] for k in sorted(range(len(keys)), key=keys.__getitem__)]


def test_the_page_has_the_columns_with_values():
    data = page_data(render(result_of(MODEL).to_dict()))
    assert [column["key"] for column in data["columns"]] == ["group", "label", "direction", "effect", "size"]
    groups = [replace(group, confidence=0.5, purity=Purity(0.25, 0.5, 0.75)) for group in MODEL.groups_]
    model = copy(MODEL)
    model.groups_ = coterie.FeatureGroups(groups)
    data = page_data(render(result_of(model).to_dict()))
    expected = ["group", "label", "direction", "effect", "confidence", "size"]
    assert [column["key"] for column in data["columns"]] == expected
    assert [column["key"] for column in data["details"] if column["key"] != "note"] == ["interval", "purity", "round"]
    assert data["groups"]["purity"] == [0.25] * len(groups)


def test_a_page_without_scripts_lists_some_members():
    model = copy(MODEL)
    model.groups_ = coterie.FeatureGroups([FeatureGroup(0, range(1, 1 + n), np.full(n, 0.9)) for n in (11, 12, 13)])
    rows = re.findall("<tr>(.*?)</tr>", render(result_of(model).to_dict()).split('id="plain"')[1])[1:4]
    assert [row.count("+0.90") for row in rows] == [11, 12, 12]
    assert ["… 1 more" in row for row in rows] == [False, False, True]
