"""Figures of held-out predictions, names and ticks in the report, and reports of confidential data, in a real browser."""

import numpy as np
import pandas as pd
import pytest

import coterie
from coterie import compare
from coterie.report import HeldOut
from coterie.report.page import render
from tests.browser.test_report import CONTRAST
from tests.conftest import grouped_matrix

LONG = "a_gene_with_quite_a_long_name"


def discovery(kind):
    rng = np.random.default_rng(0)
    factors = rng.standard_normal((120, 6))
    X = np.repeat(factors, 3, axis=1) + 0.4 * rng.standard_normal((120, 18))
    X = pd.DataFrame(X, columns=[f"{LONG}_{j}" for j in range(18)])
    signal = factors[:, 0] - factors[:, 3]
    noise = rng.standard_normal(120)
    more = {"n_pairs": 3, "max_features_to_select": 4, "name": "genes.csv"}
    if kind == "two":
        return coterie.discover(X, np.where(signal + noise > 0, "ill", "well"), label="health", **more)
    if kind == "three":
        return coterie.discover(X, np.array(["low", "middle", "high"])[np.digitize(signal + noise, [-1, 1])], **more)
    if kind == "numbers":
        return coterie.discover(X, pd.Series(signal + noise, name="height"), **more)
    if kind == "several":
        return coterie.discover(X, pd.DataFrame({"height": signal + noise, "weight": factors[:, 1]}), **more)
    times = np.column_stack([rng.exponential(np.exp(-signal)), rng.random(120) < 0.8])
    return coterie.discover(X, times, task="survival", label="days", **more)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("held-out")


@pytest.fixture(scope="module")
def found(folder):
    """Return a function that makes each discovery once."""
    known = {}

    def get(kind):
        if kind not in known:
            known[kind] = discovery(kind)
            known[kind].report(folder / f"{kind}.html")
            known[kind].report(folder / f"{kind}-closed.html", samples=False)
        return known[kind]

    return get


FIGURES = {
    "two": ["ROC curve", "Calibration", "Classes and predicted classes"],
    "three": ["ROC curve", "Calibration", "Classes and predicted classes", "Effects by class", "Groups of each class"],
    "numbers": ["Predicted and observed"],
    "several": ["Predicted and observed: height", "Predicted and observed: weight", "Effects by target"],
    "survival": ["Survival by held-out risk"],
}


@pytest.mark.parametrize("kind", list(FIGURES))
def test_figures(quiet, found, folder, kind):
    found(kind)
    for name in (kind, f"{kind}-closed"):
        quiet.open(folder / f"{name}.html")
        titles = [
            title for title in quiet.texts("#pictures figure h3") if "Score by" not in title and "of the groups" not in title
        ]
        assert titles == FIGURES[kind]
        assert quiet.run("return [...document.querySelectorAll('svg')].every((n) => !n.outerHTML.includes('NaN'))")
        assert quiet.run("return document.documentElement.scrollWidth <= innerWidth")
        assert quiet.count("svg[role]:not([aria-label])") == 0
        for dark in (False, True):
            quiet.open(folder / f"{name}.html", dark=dark, width=390)
            assert quiet.run("return document.documentElement.scrollWidth") == 390
            assert quiet.run(CONTRAST) == []


def test_roc_curve_reaches_its_points(quiet, found, folder):
    stored = found("two").held_out.diagnostics["roc"][0]
    quiet.open(folder / "two.html")
    box = quiet.run("const b = document.querySelector('.roc path.curve').getBBox(); return [b.x, b.y, b.width, b.height]")
    path = quiet.run("return document.querySelector('.roc path.curve').getAttribute('d')")
    points = np.array([[float(v) for v in pair.split(",")] for pair in path.strip("M").split("L")])
    assert len(points) == len(stored["false_positive_rate"])
    rates = (points - [box[0], box[1] + box[3]]) / [box[2], -box[3]]
    np.testing.assert_allclose(
        rates, np.column_stack([stored["false_positive_rate"], stored["true_positive_rate"]]), atol=1e-3
    )
    assert f"{stored['area']:.3g}" in quiet.text(".roc figcaption")


def test_confusion(quiet, found, folder):
    counts = np.array(found("three").held_out.confusion["counts"])
    quiet.open(folder / "three.html")
    assert [int(text) for text in quiet.run(
        "return [...document.querySelectorAll('.confusion .cell-text')].map((n) => n.textContent)"
    )] == counts.ravel().astype(int).tolist()  # fmt: skip


def test_groups_of_each_class(quiet, found, folder):
    model = found("three").model
    quiet.open(folder / "three.html")
    rows = quiet.run(
        "return [...document.querySelectorAll('.markers tbody tr')].map((r) => [...r.cells].map((c) => c.textContent))"
    )
    assert [row[0] for row in rows] == ["high", "low", "middle"]
    for name, present, absent in rows:
        effects = {group.labels[0]: group.class_effects[name] for group in model.groups_}
        best = max(effects, key=effects.get)
        assert present.split(" ")[0] == best if effects[best] > 0 else present == "–"
        assert "\u2212" in absent or absent == "–"
        assert "\u2212" not in present


def test_class_counts(quiet, found, folder):
    counts = found("two").target["classes"]
    quiet.open(folder / "two.html")
    assert f"(ill: {counts['ill']}, well: {counts['well']})" in quiet.text("header")


def test_no_samples(quiet, found, folder):
    for kind in FIGURES:
        found(kind)
        quiet.open(folder / f"{kind}-closed.html")
        assert quiet.count("path.sample") == 0
    quiet.open(folder / "two-closed.html")
    assert "mean ± standard deviation" in quiet.text(".chosen")
    assert quiet.count(".chosen rect.box") == 2
    quiet.open(folder / "two.html")
    assert quiet.count("path.sample") == 2


def test_names_are_whole(quiet, found, folder):
    found("two")
    for width in (1280, 390):
        quiet.open(folder / "two.html", width=width)
        shown = quiet.run(
            "return [...document.querySelectorAll('.chosen svg.fixed text.tick.end')].map((n) => n.firstChild.data)"
        )
        names = [text for text in shown if LONG[:6] in text]
        assert len(names) > 1
        assert not any("…" in name for name in names)
        cut = quiet.run(
            "return [...document.querySelectorAll('.chosen svg.fixed text.tick')].filter((n) =>"
            " n.getBoundingClientRect().left < -1 || n.getBoundingClientRect().right > innerWidth + 1).length"
        )
        assert cut == 0


def test_discs_have_labels(quiet, found, folder):
    model = found("two").model
    quiet.open(folder / "two.html")
    labels = quiet.run("return [...document.querySelectorAll('.groups text.note.halo')].map((n) => n.textContent)")
    assert set(labels) & {group.labels[0] for group in model.groups_}
    boxes = quiet.run(
        "return [...document.querySelectorAll('.groups text.note.halo')].map((n) => { const b = n.getBBox();"
        " return [b.x, b.x + b.width, b.y + 3, b.y + b.height - 3] })"
    )
    for i, a in enumerate(boxes):
        for b in boxes[:i]:
            assert a[1] <= b[0] + 2 or b[1] <= a[0] + 2 or a[3] <= b[2] or b[3] <= a[2]


def test_ticks_differ(quiet, found, folder):
    content = found("two").to_dict()
    content["validation"] |= {
        "sizes": [1, 2, 3, 4], "mean": [0.99301, 0.99312, 0.99333, 0.99341], "error": [0.0001] * 4, "chosen": 3,
        "training": None, "constant": None,
    }  # fmt: skip
    content["held_out"] = HeldOut("ROC AUC", [0.9931, 0.9932], float("nan"), 1.0).to_dict() | {"constant": 0.993}
    (folder / "ticks.html").write_text(render(content), encoding="utf-8")
    quiet.open(folder / "ticks.html")
    ticks = quiet.run("return [...document.querySelectorAll('.score .axes text.end')].map((n) => n.textContent)")
    assert len(set(ticks)) == len(ticks) > 2


def test_methods_text_is_copied(quiet, found, folder):
    words = "Groups were found with Coterie.\n\nReference: <b>Doe</b> (2026)."
    content = found("two").to_dict() | {"methods": words}
    (folder / "methods.html").write_text(render(content), encoding="utf-8")
    quiet.open(folder / "methods.html")
    quiet.run("for (const d of document.querySelectorAll('details')) d.open = true")
    assert quiet.run("return document.querySelector('#methods').textContent") == words
    quiet.run("document.addEventListener('copy', () => { window.copied = getSelection().toString() })")
    quiet.run("Object.defineProperty(navigator, 'clipboard', { value: { writeText: async (t) => { window.copied = t } } })")
    quiet.click("#copy-methods")
    assert quiet.wait("return window.copied") == words
    assert quiet.text("#copy-methods") == "Copied"
    without = render(found("two").to_dict() | {"methods": None})
    assert 'id="methods"' not in without


def test_blocks_are_shown(quiet, folder):
    rng = np.random.default_rng(0)
    A, B = (pd.DataFrame(rng.standard_normal((90, 6)), columns=[f"{name}{j}" for j in range(6)]) for name in "ab")
    y = np.where(A["a2"] + B["b3"] > 0, "ill", "well")
    coterie.discover({"rna": A, "protein": B}, y, n_pairs=0, max_features_to_select=3).report(folder / "blocks.html")
    quiet.open(folder / "blocks.html", width=390)
    rows = quiet.run(
        "return [...document.querySelectorAll('.blocks tbody tr')].map((r) => [...r.cells].map((c) => c.innerText))"
    )
    assert [row[0] for row in rows] == ["rna", "protein"]
    assert all(row[4].endswith("%") for row in rows)
    assert quiet.run("return document.documentElement.scrollWidth") == 390


def test_comparison_shows_the_number_of_selected_features(quiet, folder):
    X, y = grouped_matrix(np.random.default_rng(0), n_samples=60, n_features=20)
    found = compare(["fcbf", "mrmr"], X, y, n_features=[15], cv=3, random_state=0)
    row = next(row for row in found.summary_rows() if row["method"] == "fcbf")
    assert row["n_selected"] < 15
    coterie.report(found, name="x.csv", path=folder / "comparison.html")
    quiet.open(folder / "comparison.html")
    shown = dict(zip(quiet.texts("td.kind-name"), quiet.texts("td.key-size"), strict=True))
    assert shown["fcbf"] == f"{row['n_selected']:.3g} of 15"
    assert shown["mrmr"] == "15"
