"""The report in a real browser, with mouse, keyboard, the width of a phone, and print."""

import base64
import csv
import io
import re
import time

import numpy as np
import pytest

import coterie
from coterie import compare, correlation_profile
from coterie.groups import columns
from coterie.report.table import guarded
from tests.browser import pages
from tests.conftest import grouped_matrix


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("pages")


@pytest.fixture(scope="module")
def small(folder):
    return folder / "small.html", pages.small(folder / "small.html")


@pytest.fixture(scope="module")
def hostile(folder):
    return folder / "hostile.html", *pages.hostile(folder / "hostile.html")


@pytest.fixture(scope="module")
def many(folder):
    pages.many(folder / "many.html")
    return folder / "many.html"


def names(browser):
    return browser.texts("#groups tbody tr[data-row] td.kind-name")


def test_page_content(quiet, small):
    path, model = small
    quiet.open(path)
    assert quiet.text("h1") == "What predicts diagnosis in genes.csv"
    assert re.search(r"held-out accuracy of 0\.850? \(95% interval 0\.", quiet.text("header"))
    assert "constant prediction: 0.5" in quiet.text("header")
    titles = quiet.texts("#pictures h3")
    assert titles[:4] == [
        "Score by number of features", "Effect and confidence of the groups", "Positions in the image",
        "Positions on the genome",
    ]  # fmt: skip
    assert titles[4] == f"Group 1: {model.groups_[0].labels[0]}"
    assert names(quiet) == [group.labels[0] for group in model.groups_]
    assert quiet.count("#plain") == 0
    assert quiet.count("svg[role]:not([aria-label])") == 0
    policy = quiet.run("return document.querySelector('meta[http-equiv]').content")
    assert "unsafe" not in policy
    assert "default-src 'none'" in policy


def test_the_policy_is_enforced(browser, small):
    """Injected scripts do not run, and the browser reports them."""
    browser.open(small[0])
    browser.run("const s = document.createElement('script'); s.textContent = 'window.hacked = 1'; document.body.append(s)")
    browser.run("document.body.insertAdjacentHTML('beforeend', '<img src=x onerror=\"window.hacked = 1\">')")
    time.sleep(0.2)
    assert browser.run("return window.hacked") is None
    assert any("Content Security Policy" in message for message in browser.messages())
    browser.requests()


def test_search(quiet, small):
    path, model = small
    quiet.open(path)
    member = model.groups_[0].labels[-1]
    quiet.type("#search", member.upper())
    quiet.wait("return document.querySelector('#count').innerText.includes(' of ')")
    expected = [group.labels[0] for group in model.groups_ if any(member in name for name in group.labels)]
    assert names(quiet) == expected
    quiet.type("#search", "no such gene")
    quiet.wait("return document.querySelector('#count').innerText.startsWith('0 of 8 groups')")
    assert names(quiet) == []
    quiet.type("#search", "")
    quiet.wait("return document.querySelector('#count').innerText.startsWith('8 groups')")


@pytest.mark.parametrize(
    ("key", "value"), [("effect", lambda g: abs(g.effect)), ("confidence", lambda g: g.confidence), ("size", len)]
)
def test_sort(quiet, small, key, value):
    path, model = small
    quiet.open(path)
    button = f"th[data-key={key}] button"
    down = sorted(model.groups_, key=lambda group: -round(value(group), 9))
    quiet.click(button)
    assert [value(by_name(model, name)) for name in names(quiet)] == pytest.approx([value(group) for group in down])
    assert quiet.run("return document.querySelector(arguments[0]).ariaSort", f"th[data-key={key}]") == "descending"
    quiet.click(button)
    assert [value(by_name(model, name)) for name in names(quiet)] == pytest.approx([value(group) for group in down[::-1]])


def by_name(model, name):
    return next(group for group in model.groups_ if group.labels[0] == name)


def test_filter_by_confidence(quiet, small):
    path, model = small
    quiet.open(path)
    level = float(np.sort([group.confidence for group in model.groups_])[4])
    quiet.run("const f = document.querySelector('#least'); f.value = arguments[0]; f.dispatchEvent(new Event('input'))", level)
    assert names(quiet) == [group.labels[0] for group in model.groups_.at_least(round(level, 2))]
    assert quiet.text("#least-text") == f"{level:.2f}"


def test_expand(quiet, small):
    path, model = small
    quiet.open(path)
    g = int(np.argmax([len(group) for group in model.groups_]))
    opener = f"tr[data-row='{g}'] .opener"
    quiet.click(opener)
    rows = quiet.run(
        "return [...document.querySelectorAll('tr.details .scroller:first-child tbody tr')].map((r) => r.cells[0].innerText)"
    )
    assert [re.sub(r"support$", "", name).strip() for name in rows] == model.groups_[g].labels
    assert quiet.run("return document.querySelector(arguments[0]).ariaExpanded", opener) == "true"
    assert "ill" in quiet.text("tr.details")
    quiet.click(opener)
    assert quiet.count("tr.details") == 0


def test_the_chosen_group_follows_pointer_and_keys(quiet, small):
    path, model = small
    quiet.open(path)
    quiet.run("document.querySelector('tr[data-row=\"2\"]').dispatchEvent(new PointerEvent('pointerenter'))")
    quiet.wait("return document.querySelector('#chosen-title').innerText.startsWith('Group 3:')")
    quiet.run("document.querySelector('.groups svg').focus()")
    for key in ("\ue014", "\ue014"):  # arrow right
        quiet.driver.switch_to.active_element.send_keys(key)
    quiet.wait("return document.querySelector('#chosen-title').innerText.startsWith('Group 5:')")
    assert model.groups_[4].labels[0] in quiet.text("#chosen-title")
    assert quiet.run("return document.querySelector('[aria-live]').textContent").startswith("Group 5")
    disc = quiet.run(
        "const b = document.querySelector('.groups .ring').getBoundingClientRect(); return [b.x + b.width / 2, b.y]"
    )
    assert disc[0] > 0
    quiet.click("[aria-label='next group']")
    quiet.wait("return document.querySelector('#chosen-title').innerText.startsWith('Group 6:')")


def test_keyboard_alone_reaches_everything(quiet, small):
    quiet.open(small[0])
    seen = set()
    body = quiet.driver.find_element("css selector", "body")
    body.send_keys("\ue004")
    for _ in range(40):
        node = quiet.run("const a = document.activeElement; return a.id || a.className.baseVal || a.className || a.tagName")
        seen.add(str(node))
        quiet.driver.switch_to.active_element.send_keys("\ue004")  # tab
    assert {"search", "least", "csv", "opener", "sort"} <= seen, seen


def test_download_is_what_is_shown(quiet, small):
    path, model = small
    quiet.open(path)
    quiet.click("th[data-key=size] button")
    saved = quiet.downloads / "genes-groups.csv"
    saved.unlink(missing_ok=True)
    order = names(quiet)
    quiet.click("#csv")
    rows = read_csv(saved)
    assert list(dict.fromkeys(row["group"] for row in rows)) == [
        str(1 + [g.labels[0] for g in model.groups_].index(name)) for name in order
    ]
    assert [row["name"] for row in rows] == [name for first in order for name in by_name(model, first).labels]


def read_csv(path):
    until = time.monotonic() + 20
    while not path.exists() and time.monotonic() < until:
        time.sleep(0.05)
    return list(csv.DictReader(io.StringIO(path.read_bytes().decode("utf-8"), newline="")))


def test_hostile_names_are_harmless(quiet, hostile):
    path, model, all_names = hostile
    quiet.open(path)
    for row in range(len(model.groups_)):
        quiet.run("document.querySelector(`tr[data-row='${arguments[0]}'] .opener`)?.click()", row)
        quiet.run("document.querySelector('[aria-label=\"next group\"]').click()")
    quiet.wait("return document.querySelectorAll('tr.details').length > 3")
    assert quiet.run("return window.hacked") is None
    assert quiet.count("main img, main script, iframe, main a") == 0
    assert quiet.run("return document.documentElement.scrollWidth <= innerWidth")
    shown = quiet.run("return document.querySelector('main').textContent")
    assert not set("\u202e\u2066\x00\x1b") & set(shown)
    assert "<script>window.hacked = 1</script>" in shown
    quiet.click("#csv")
    rows = read_csv(next(iter(wait_for(quiet.downloads, "*script*"))))
    expected = [all_names[j] for group in model.groups_ for j in group.members]
    assert [row["name"] for row in rows] == [guarded(name).replace("\udcff", "\ufffd") for name in expected]
    for row in rows:
        for value in row.values():
            assert not re.match(r"[=+@\t\r]|-(?![\d.])", value or ""), value


def wait_for(folder, pattern):
    until = time.monotonic() + 20
    while time.monotonic() < until:
        found = [path for path in folder.glob(pattern) if path.suffix == ".csv"]
        if found:
            return found
        time.sleep(0.05)
    raise AssertionError(f"nothing was saved: {list(folder.iterdir())}")


@pytest.mark.parametrize("page", ["small", "hostile", "many"])
def test_phone(quiet, request, page):
    given = request.getfixturevalue(page)
    quiet.open(given[0] if isinstance(given, tuple) else given, width=390, height=844)
    assert quiet.run("return document.documentElement.scrollWidth") == 390
    quiet.run("for (const d of document.querySelectorAll('details')) d.open = true")
    wide = quiet.run(
        "const clipped = (n) => { while ((n = n.parentElement)) { if (getComputedStyle(n).overflowX !== 'visible')"
        " return n.getBoundingClientRect().right < 391; } return false; };"
        "return [...document.querySelectorAll('main *')].filter((n) => n.getBoundingClientRect().right > 391)"
        ".filter((n) => !n.closest('svg, .visually-hidden') && !clipped(n)).map((n) => `${n.tagName}.${n.className}`)"
    )
    assert wide == []
    # In a narrow row, only one of position and direction is shown, in the same place.
    both = quiet.run(
        "return [...document.querySelectorAll('td.key-place ~ td.key-direction')].filter((n) => n.offsetParent).length"
    )
    assert both == 0
    small_text = quiet.run(
        "return [...document.querySelectorAll('main *')]"
        ".filter((n) => n.childNodes.length && parseFloat(getComputedStyle(n).fontSize) < 10).length"
    )
    assert small_text == 0


@pytest.mark.parametrize("dark", [False, True])
@pytest.mark.parametrize("page", ["small", "hostile"])
def test_contrast(quiet, request, dark, page):
    """WCAG AA: contrast of at least 4.5 to 1 between text and background."""
    quiet.open(request.getfixturevalue(page)[0], dark=dark)
    quiet.click(".opener")
    quiet.run("for (const d of document.querySelectorAll('details')) d.open = true")
    poor = quiet.run(CONTRAST)
    assert poor == []
    paper = quiet.run("return getComputedStyle(document.body).backgroundColor")
    assert (sum(map(int, re.findall(r"\d+", paper)[:3])) < 200) == dark


CONTRAST = """
const light = ([r, g, b]) => [r, g, b].map((v) => (v /= 255, v <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4))
  .reduce((sum, v, i) => sum + v * [0.2126, 0.7152, 0.0722][i], 0);
const parts = (text) => (text.match(/[\\d.]+/g) || []).map(Number);
const ground = (node) => { for (; node; node = node.parentElement) { const c = parts(getComputedStyle(node).backgroundColor);
  if (c.length === 3 || c[3] > 0.9) return c; } return [255, 255, 255]; };
const poor = [];
for (const node of document.querySelectorAll("main *")) {
  const own = [...node.childNodes].some((c) => c.nodeType === 3 && c.textContent.trim());
  if (!own || node.closest(".cell-text, .visually-hidden, title")) continue;
  const style = getComputedStyle(node);
  const [a, b] = [light(parts(node.namespaceURI.includes("svg") ? style.fill : style.color)), light(ground(node))];
  const ratio = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
  if (ratio < 4.5) poor.push([node.tagName, node.getAttribute("class"), node.textContent.slice(0, 30), ratio.toFixed(2)]);
}
return poor;
"""


def test_controls_have_accessible_names(quiet, small):
    quiet.open(small[0])
    unnamed = quiet.run(
        "return [...document.querySelectorAll('button, input, svg[role], section, summary')].filter((n) => !(n.ariaLabel ||"
        " n.textContent.trim() || n.labels?.length || n.getAttribute('aria-labelledby'))).map((n) => n.outerHTML.slice(0, 80))"
    )
    assert unnamed == []
    assert quiet.run("return document.documentElement.lang") == "en"
    levels = quiet.run("return [...document.querySelectorAll('h1, h2, h3, h4')].map((n) => Number(n.tagName[1]))")
    assert levels.count(1) == 1
    assert quiet.run("return document.querySelector('table.windowed').ariaRowCount") == "9"


def test_print(quiet, many):
    quiet.open(many)
    pdf = quiet.cdp("Page.printToPDF", printBackground=True, paperWidth=8.27, paperHeight=11.69)["data"]
    text = base64.b64decode(pdf)
    n_pages = len(re.findall(rb"/Type\s*/Page[^s]", text))
    assert 4 <= n_pages <= 16  # two hundred rows, not ten thousand
    quiet.wait("return document.querySelectorAll('tr[data-row]').length < 150")
    quiet.open(many, print_media=True)
    assert quiet.run("return getComputedStyle(document.querySelector('.controls')).display") == "none"


def test_ten_thousand_groups(quiet, many):
    assert many.stat().st_size < 15_000_000
    quiet.open(many)
    assert quiet.text("#count") == "10,000 groups, 400,000 features"
    assert quiet.count("*") < 3000
    quiet.run("scrollTo(0, document.documentElement.scrollHeight / 2)")
    quiet.wait("return [...document.querySelectorAll('tr[data-row]')].some((r) => r.dataset.row > 3000)")
    middle = quiet.run(
        "return [...document.querySelectorAll('tr[data-row]')].filter((r) => { const b = r.getBoundingClientRect();"
        " return b.top >= 0 && b.bottom <= innerHeight }).length"
    )
    assert middle > 10
    quiet.run("scrollTo(0, 0)")
    quiet.type("#search", f"rs{37 * 399_999 + 1_000_000}")
    quiet.wait("return document.querySelector('#count').innerText.startsWith('1 of 10,000 groups')")
    quiet.click(".opener")
    assert quiet.count("tr.details .scroller tbody tr") == 40


def test_rows_below_an_open_row_keep_their_positions(quiet, many):
    quiet.open(many)
    quiet.click("tr[data-row='3'] .opener")
    quiet.wait("return document.querySelectorAll('tr.details').length === 1")
    quiet.run("document.querySelector('#groups table').scrollIntoView(); scrollBy(0, 6000)")
    quiet.wait("return [...document.querySelectorAll('tr[data-row]')].some((r) => r.dataset.row > 120)")
    seen = quiet.run("return [...document.querySelectorAll('tr[data-row]')].map((r) => Number(r.dataset.row))")
    assert seen == list(range(seen[0], seen[-1] + 1))
    quiet.run("document.querySelector('#groups table').scrollIntoView()")
    quiet.wait("return document.querySelectorAll('tr.details').length === 1")


def test_a_trait(quiet, folder):
    pages.regression(folder / "trait.html")
    quiet.open(folder / "trait.html")
    assert "is predicted from 150 samples × 30 features" in quiet.text("header")
    assert "All figures are from the training data" in quiet.text("aside")
    assert quiet.count(".chosen .trend") == 1


def test_comparison_and_profile(quiet, folder):
    X, y = grouped_matrix(np.random.default_rng(0), n_samples=60, n_features=20)
    found = compare(["gdm", "mrmr"], X, y, n_features=[2, 4], cv=2, random_state=0)
    coterie.report(found, name="x.csv", path=folder / "comparison.html", command="coterie compare x.csv")
    quiet.open(folder / "comparison.html")
    assert quiet.count("#pictures figure") == 4
    assert len(names(quiet)) == 4
    quiet.click("th[data-key=accuracy] button")
    values = [float(text.split(" ")[0]) for text in quiet.texts("td.confidence-wide")]
    assert values == sorted(values, reverse=True)
    assert quiet.run(CONTRAST) == []
    coterie.report(correlation_profile(X), name="x.csv", path=folder / "profile.html")
    quiet.open(folder / "profile.html", width=390)
    assert quiet.count("rect.bar") > 2
    assert quiet.run("return document.documentElement.scrollWidth") == 390
    assert quiet.run(CONTRAST) == []


def test_a_column_of_the_registry_needs_no_change_of_the_script(quiet, folder, monkeypatch):
    column = columns.Column("spread", "spread", "Range of the correlations.", lambda item: np.ptp(item.group.correlation),
                            kind="figure")  # fmt: skip
    monkeypatch.setitem(columns.COLUMNS, "spread", column)
    for place in ("result", "page", "page download"):
        monkeypatch.setitem(columns.SHOWN, place, [*columns.SHOWN[place], "spread"])
    rng = np.random.default_rng(0)
    X = rng.standard_normal((80, 4))
    X = np.repeat(X, 3, axis=1) + 0.3 * rng.standard_normal((80, 12))
    model = coterie.GroupDiscoveryRegressor(4).fit(X, X[:, ::3].sum(axis=1))
    coterie.report(model, X, X[:, ::3].sum(axis=1), folder / "spread.html", name="spread.csv")
    quiet.open(folder / "spread.html")
    assert quiet.text("th[data-key=spread]").strip() == "Spread"
    shown = [float(words) for words in quiet.texts("td.key-spread")]
    assert shown == pytest.approx([np.ptp(group.correlation) for group in model.groups_], rel=0.06)
    quiet.click("th[data-key=spread] button")
    assert [float(words) for words in quiet.texts("td.key-spread")] == sorted(shown, reverse=True)
    quiet.click("#csv")
    saved = {float(row["spread"]) for row in read_csv(quiet.downloads / "spread-groups.csv")}
    assert sorted(saved) == pytest.approx(sorted(np.ptp(group.correlation) for group in model.groups_), rel=1e-3)


def test_table_without_scripts(quiet, small):
    path, model = small
    quiet.cdp("Emulation.setScriptExecutionDisabled", value=True)
    try:
        quiet.driver.get(path.as_uri())
        rows = quiet.driver.find_elements("css selector", "#plain tbody tr")
        assert len(rows) == len(model.groups_)
        assert "The figures require a recent browser" in quiet.driver.find_element("css selector", "noscript").text
    finally:
        quiet.cdp("Emulation.setScriptExecutionDisabled", value=False)


def test_in_a_notebook_frame(quiet, small, folder):
    """In a sandboxed frame, as notebooks show it."""
    from coterie.report import Report

    (folder / "frame.html").write_text(
        f"<!DOCTYPE html><html><body>{Report(small[0].read_text(encoding='utf-8'))._repr_html_()}</body></html>",
        encoding="utf-8",
    )
    quiet.driver.get((folder / "frame.html").as_uri())
    quiet.driver.switch_to.frame(0)
    try:
        quiet.wait("return document.documentElement.dataset.ready")
        assert len(names(quiet)) == 8
    finally:
        quiet.driver.switch_to.default_content()
