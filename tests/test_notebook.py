"""Notebook output: tables, figures, progress bars and reports, without injection by names."""

import pickle
import sys
import types
from html.parser import HTMLParser

import numpy as np
import pytest

import coterie
from coterie import FeatureGroup, FeatureGroups, GroupDiscoveryClassifier, correlation_profile, group_confidence
from coterie.comparison import Comparison, Row
from coterie.progress import RoundProgress, StepProgress
from tests.conftest import grouped_matrix

HOSTILE_NAMES = [
    "<script>alert(1)</script>",
    "\"'><img src=x onerror=alert(1)>",
    "a\nb\u202ec\x00",
    "=cmd()",
    "x" * 10_000,
    "&amp;",
]
ALLOWED = {"div", "p", "strong", "table", "thead", "tbody", "tr", "th", "td", "b", "small"}


class Tags(HTMLParser):
    def __init__(self, text):
        super().__init__(convert_charrefs=True)
        self.tags, self.attributes, self.words = [], [], ""
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        self.tags.append(tag)
        self.attributes += [name for name, _ in attributes]

    def handle_data(self, data):
        self.words += data


class Frames(HTMLParser):
    def __init__(self, text):
        super().__init__(convert_charrefs=True)
        self.found = []
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        self.found.append((tag, attributes))


def shown(thing):
    text = thing._repr_html_()
    page = Tags(text)
    assert set(page.tags) <= ALLOWED
    assert set(page.attributes) <= {"class", "style"}
    assert not set("\u202e\x00") & set(text)
    assert len(text) < 30_000
    return page


def hostile_groups():
    groups = [FeatureGroup(0, [1, 2, 3, 4, 5], [0.9, 0.8, -0.7, 0.6, 0.5], names=tuple(HOSTILE_NAMES), confidence=0.9,
                           effect=-0.3, shares=np.linspace(1, 0, 6))]  # fmt: skip
    groups += [FeatureGroup(k, [], names=(name,), confidence=float("nan"), effect=0.1) for k, name in enumerate(HOSTILE_NAMES)]
    return FeatureGroups(groups)


def test_groups():
    page = shown(hostile_groups())
    assert page.words.startswith("7 groups, 12 features")
    assert "<script>alert(1)</script>" in page.words
    assert "-0.3" in page.words
    assert "fixed" in page.words
    assert "a\nb\\u202ec\\u0000" in page.words
    assert "(10,000 characters)" in page.words
    plain = shown(FeatureGroups([FeatureGroup(3, [7], [0.9])]))
    assert "confidence" not in plain.words
    assert shown(FeatureGroups()).words == "0 groups, 0 features"


def test_many_groups_and_members_are_cut():
    many = shown(FeatureGroups([FeatureGroup(k, []) for k in range(40)]))
    assert many.tags.count("tr") == 26
    assert many.words.endswith("… and 15 more")
    large = shown(FeatureGroup(0, np.arange(1, 1000), np.full(999, 0.9)))
    assert large.words.endswith("… and 975 more")


def test_a_group():
    page = shown(hostile_groups()[0])
    assert "6 features, effect -0.3, confidence 0.90" in page.words
    assert page.tags.count("tr") == 7
    assert shown(FeatureGroup(4, [5], [-0.75])).words.endswith("5affiliated-0.75")


def test_confidence():
    X, y = grouped_matrix(np.random.default_rng(0))
    model = GroupDiscoveryClassifier(3).fit(X, y)
    without = shown(group_confidence(model, X, y, n_pairs=2, n_permutations=0, random_state=0))
    assert without.words.startswith("3 groups, 2 pairs of half-samples, 0 permutations")
    assert "by chance" not in without.words
    result = group_confidence(model, X, y, n_pairs=2, n_permutations=1, random_state=0)
    assert "expected by chance" in shown(result).words
    result.attach_to(model)
    assert f"{model.groups_[0].confidence:.2f}" in shown(model.groups_).words


def test_comparison_and_profile():
    rows = (
        Row(HOSTILE_NAMES[0], 5, 0, 5, 0.9, 0.1, 0.02, 0.5, "ok", ""),
        Row.without_result("slow", 5, 0, "timed out", HOSTILE_NAMES[1]),
    )
    page = shown(found := Comparison(rows, {(HOSTILE_NAMES[0], 5, 0): [3, 1]}, 20))
    assert "Comparison of 2 methods, 20 features" in page.words
    assert "timed out (1 of 1 folds): " + HOSTILE_NAMES[1] in page.words
    assert HOSTILE_NAMES[0] not in coterie.report(found, name=HOSTILE_NAMES[0]).html
    X, _ = grouped_matrix(np.random.default_rng(0))
    for profile in (correlation_profile(X), correlation_profile(X, n_pairs=50, random_state=0)):
        assert shown(profile).tags.count("tr") == 11
        assert HOSTILE_NAMES[0] not in coterie.report(profile, name=HOSTILE_NAMES[0]).html


def test_figures_are_pictures():
    X, y = grouped_matrix(np.random.default_rng(0))
    model = GroupDiscoveryClassifier(3).fit(X, y)
    for figure in (coterie.plots.affiliated_counts(model), correlation_profile(X).plot(), coterie.plots.group_graph(model)):
        picture, size = figure._repr_png_()
        assert picture[:4] == b"\x89PNG"
        assert size["width"] == round(96 * figure.get_size_inches()[0])
        assert type(pickle.loads(pickle.dumps(figure))) is type(figure)


@pytest.fixture
def notebook(monkeypatch):
    """Simulate a notebook kernel and collect the displayed output."""
    displayed = []

    class Handle:
        def __init__(self, number):
            self.number = number

        def update(self, page):
            displayed[self.number] = page

    def display(page, display_id):
        displayed.append(page)
        return Handle(len(displayed) - 1)

    kernel = types.SimpleNamespace(get_ipython=lambda: types.SimpleNamespace(kernel=object()))
    monkeypatch.setitem(sys.modules, "IPython", kernel)
    monkeypatch.setitem(sys.modules, "IPython.display", types.SimpleNamespace(HTML=str, display=display))
    return displayed


def test_bars(notebook, capsys):
    with RoundProgress(4, 1, "<discover>", "features") as bar:
        bar.update(1, "gap 0.1")
        bar.update(4, "gap <0>")
    with StepProgress(1, "convert") as steps:
        steps.update(10, 200, "reading")
        steps.update(3, None, "writing")
    with RoundProgress(4, 0, "quiet") as bar:
        bar.update(4, "")
    rounds, work = notebook
    assert '<progress value="4" max="4"></progress>' in rounds
    assert "&lt;discover&gt; · 4 of 4 · 0." in rounds
    assert "gap &lt;0&gt;" in rounds
    assert work.count("<progress") == 2
    assert capsys.readouterr() == ("", "")


CELLS = [
    "import coterie\nfrom sklearn.datasets import load_breast_cancer as read\nX, y = read(return_X_y=True, as_frame=True)",
    "model = coterie.GroupDiscoveryClassifier(4, threshold=0.9, verbose=1).fit(X, y)\nmodel.groups_",
    "model.groups_[0]",
    "coterie.group_confidence(model, X, y, n_pairs=2, n_permutations=1, random_state=0, verbose=1)",
    "coterie.plots.affiliated_counts(model)",
    "profile = coterie.correlation_profile(X)\nprofile",
    "profile.plot()",
    "model.report(X, y, 'report.html', name='breast cancer', label='diagnosis')",
]


@pytest.mark.slow
def test_a_notebook_run_by_nbconvert(tmp_path):
    """The output has groups, reports, figures and progress bars as HTML and PNG."""
    nbformat, nbconvert = pytest.importorskip("nbformat"), pytest.importorskip("nbconvert")
    pytest.importorskip("ipykernel")
    from nbconvert.preprocessors import ExecutePreprocessor

    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(cell) for cell in CELLS])
    notebook.metadata.kernelspec = {"name": "python3", "display_name": "Python 3", "language": "python"}
    ExecutePreprocessor(timeout=300, kernel_name="python3").preprocess(notebook, {"metadata": {"path": str(tmp_path)}})
    kinds = [[set(output.get("data", ())) for output in cell.outputs] for cell in notebook.cells]
    for cell in (1, 3):  # a progress bar, then a table
        assert "text/html" in kinds[cell][0]
        assert "<progress" in notebook.cells[cell].outputs[0].data["text/html"]
    for cell in (1, 2, 3, 5, 7):
        assert "text/html" in kinds[cell][-1], CELLS[cell]
    for cell in (4, 6):
        assert "image/png" in kinds[cell][-1], CELLS[cell]
    page, _ = nbconvert.HTMLExporter().from_notebook_node(notebook)
    assert page.count('<div class="coterie">') >= 4
    inside = next(dict(attributes)["srcdoc"] for tag, attributes in Frames(page).found if tag == "iframe")
    assert (
        inside.strip() == (tmp_path / "report.html").read_text(encoding="utf-8").strip()
    )  # unchanged, because the policy has digests
    assert page.count("data:image/png;base64") >= 2
    assert page.count("<progress") >= 3
