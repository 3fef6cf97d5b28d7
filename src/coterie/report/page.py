"""Report pages: self-contained HTML files in which every name from the data is escaped.

The content security policy allows the inline script and the inline style of the page by their digests, and nothing else.
Browsers without scripts show a plain table of the first groups. The script in ``report-js/`` draws the figures and the table
of all groups.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Mapping, Sequence
from functools import lru_cache
from importlib import resources
from pathlib import PurePath
from typing import NamedTuple

from coterie.groups.columns import COLUMNS, Column, Content, shown
from coterie.markup import Markup, join, shortened, tag, text, wide_table
from coterie.report.blocks import blocks_markup
from coterie.report.judgement import (
    DOES_NOT_PREDICT,
    MAY_PREDICT,
    PREDICTS,
    Verdict,
    figure_text,
    interval_text,
    judge,
)
from coterie.report.payload import discovery_data, member_name, packed, page_records, with_values
from coterie.report.survival import curves_markup

_SHOWN_CLASSES = 8
_SHOWN_LETTERS = 60
# Verbs of the first sentence, by what the score shows.
_VERBS = {
    "": " is predicted from ",
    PREDICTS: " is predicted from ",
    MAY_PREDICT: " may be predictable from ",
    DOES_NOT_PREDICT: " is not predicted from ",
}
# Names of targets without a name.
_UNNAMED = {"classification": "the label", "survival": "the time"}
# Largest number of classes whose table of confusions is shown.
_CONFUSED_CLASSES = 20
# Number of groups and of members per group in the plain table.
_PLAIN_GROUPS, _PLAIN_MEMBERS = 50, 12
_ROUNDS = 200
_LETTERS = 200
_ICON = (
    "data:image/svg+xml,%3Csvg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 32 32'%3E%3Cg fill='%230072b2'%3E"
    "%3Ccircle cx='16' cy='16' r='7'/%3E%3Ccircle cx='5' cy='9' r='3'/%3E%3Ccircle cx='27' cy='8' r='3'/%3E"
    "%3Ccircle cx='8' cy='27' r='3'/%3E%3Ccircle cx='26' cy='25' r='3'/%3E%3C/g%3E%3C/svg%3E"
)


def number(value: object) -> str:
    """Format a number for readers."""
    if value is None:
        return "–"
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return str(value)
    if isinstance(value, int):
        return f"{value:,}"
    if value != 0 and not 1e-3 <= abs(value) < 1e6:
        return f"{value:.2e}"
    return f"{value:,.4g}" if abs(value) < 1000 else f"{value:,.1f}"


def file_name(path: str) -> str:
    """Return the file name of a path, or ``"data"``."""
    return PurePath(path).name or path or "data"


def _path(content: Content) -> str:
    return str(content["data"].get("path") or "")


def title(content: Content) -> str:
    """Return the title of the page."""
    label = (content.get("target") or {}).get("label")
    if content["task"] == "one-class":
        return f"What is typical of {shortened(file_name(_path(content)), _SHOWN_LETTERS)}"
    unnamed = _UNNAMED.get(content["task"], "the target")
    what = shortened(label, _SHOWN_LETTERS) if label else unnamed
    return f"What predicts {what} in {shortened(file_name(_path(content)), _SHOWN_LETTERS)}"


def lead(content: Content) -> list[Markup]:
    """Return one or two sentences about target, data, held-out score and groups."""
    return [part for part in (_prediction(content), _findings(content)) if part]


def cautions(content: Content) -> list[str]:
    """Return the cautions of a result, the most important one first."""
    found = []
    held_out, confidence = content.get("held_out"), content.get("confidence")
    if held_out is None and confidence is None:
        found.append(
            "All figures are from the training data. Neither the prediction of other samples nor the reliability of the "
            "groups was assessed."
        )
    verdict = _verdict(content)
    if verdict.caution:
        found.append(verdict.caution)
    untested = verdict.groups is not None and not verdict.groups.tested
    if confidence is not None and untested and not confidence.get("n_permutations") and content["task"] != "one-class":
        found.append("No labels were permuted, so the confidence that groups reach by chance is unknown.")
    if content.get("interrupted"):
        found.append("A signal ended the search early. These are the groups found until then.")
    repeated = verdict.warning  # the first caution states the same
    return [*found, *(warning for warning in content.get("warnings", ()) if warning != repeated)]


def _verdict(content: Content) -> Verdict:
    return judge(content.get("held_out"), content.get("confidence"), content.get("cautions") or ())


def _prediction(content: Content) -> Markup:
    target, data, score = content.get("target") or {}, content["data"], _verdict(content).score
    samples, features = data.get("samples"), data.get("features")
    size = f"{number(samples)} samples × {number(features)} features" if samples and features else "the features"
    source = join([size, " of ", tag("bdi", shortened(file_name(_path(content)), _SHOWN_LETTERS))])
    if content["task"] == "one-class":
        start = join(["Typical samples are distinguished from others by ", source])
    else:
        fallback = {"classification": "The class", "survival": "The time"}.get(content["task"], "The target")
        name = tag("strong", tag("bdi", shortened(target.get("label") or fallback, _SHOWN_LETTERS)))
        verb = _VERBS["" if score is None else score.prediction]
        start = join(
            [name, _counts(target, content), verb.replace(" is ", " are ") if target.get("targets") else verb, source]
        )
    if score is None:
        training = _training(content)
        return join([start, f"; {training}." if training else "."])
    # With covariates, the baseline is not a constant.
    baseline = "constant prediction" if score.baseline == "constant" else score.baseline
    interval = interval_text(score.interval, score.level).strip(" ()")
    compared = [
        f"{name}: {_score(value)}"
        for name, value in ((baseline, score.constant), ("training", score.training))
        if value is not None
    ]
    others = ", ".join([*([interval] if interval else []), *compared]).replace("-", "−")
    value = tag("strong", _score(score.value))
    reason = f" {score.reason}" if score.reason else ""
    link = f" with a held-out {score.score} of " if score.prediction == PREDICTS else f": held-out {score.score} "
    return join([start, link, value, f" ({others}).", reason])


def _score(value: float) -> str:
    return figure_text(value).replace("-", "−")


def _counts(target: Content, content: Content) -> Markup:
    """Return the classes with their counts, or mean and standard deviation of a trait, in brackets."""
    classes = target.get("classes")
    if classes:
        shown = list(classes.items())[:_SHOWN_CLASSES]
        more = [f"{len(classes) - len(shown)} more classes"] if len(classes) > len(shown) else []
        parts = [join([tag("bdi", shortened(name, 40)), f": {number(count)}"]) for name, count in shown]
        return join([" (", join([*parts, *more], ", "), ")"])
    if target.get("events") is not None:
        return text(f" ({number(target['events'])} events)")
    trait = (content.get("pictures") or {}).get("trait")
    if trait:
        return text(f" (mean {_score(trait['mean'])}, standard deviation {_score(trait['sd'])})")
    return Markup("")


def _training(content: Content) -> str:
    """Return the training score with its name."""
    for words, value in content["summary"].items():
        if words.endswith("on the training data") and value is not None:
            return f"{words}: {value:.3g}"
    return ""


def _findings(content: Content) -> Markup:
    """Return a sentence about the number of groups and their confidences."""
    n_groups, n_features = len(content["groups"]), sum(group["size"] for group in content["groups"])
    count = f"{number(n_groups)} group{'s' * (n_groups != 1)}"
    groups = _verdict(content).groups
    said = "" if groups is None else groups.sentence
    head = join(["Found: ", tag("strong", count), f" with {number(n_features)} feature{'s' * (n_features != 1)} in all. "])
    return join([head, said])


class Assets(NamedTuple):
    """Script and style of all pages, and the content security policy that allows them."""

    script: Markup
    style: Markup
    policy: str


@lru_cache(maxsize=1)
def assets() -> Assets:
    """Return the bundled script and style. Node is needed only to build them."""
    folder = resources.files("coterie.report") / "assets"
    script, style = ((folder / name).read_text(encoding="utf-8") for name in ("report.js", "report.css"))
    allowed = "; ".join(
        [
            "default-src 'none'",
            f"script-src {_source(script)}",
            f"style-src {_source(style)}",
            "img-src data:",
            "base-uri 'none'",
            "form-action 'none'",
        ]
    )
    return Assets(Markup(script), Markup(style), allowed)


def _source(part: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(part.encode()).digest()).decode()}'"


def page(heading: str, body: Markup, data: Content) -> str:
    """Return a page whose script draws ``data`` into the elements ``pictures`` and ``groups`` and removes ``plain``."""
    script, style, policy = assets()
    head = [
        tag("meta", charset="utf-8"),
        tag("meta", http_equiv="Content-Security-Policy", content=policy),
        tag("meta", name="viewport", content="width=device-width, initial-scale=1"),
        tag("meta", name="referrer", content="no-referrer"),
        tag("title", heading),
        tag("link", rel="icon", href=Markup(_ICON)),
        tag("style", style),
    ]
    block = tag("script", Markup(packed(data)), type="application/x-coterie", id="data")
    parts = [tag("head", *head), tag("body", tag("main", body), block, tag("script", script))]
    return f"<!DOCTYPE html>\n{tag('html', *parts, lang='en')}\n"


def render(content: Content) -> str:
    """Return the report of a discovery, given as the dictionary of its ``result.json``."""
    groups = page_records(content)
    columns = with_values(shown("page"), groups)
    body = join(
        [
            header(kicker(_path(content), content["written_at"]), title(content), lead(content), cautions(content)),
            failed(),
            tag("section", id="pictures", aria_label="Figures"),
            tag("section", tag("h2", "Blocks"), _blocks(content), class_="blocks") if content.get("blocks") else None,
            tag("section", tag("h2", "Groups"), _about_groups(content, columns), tag("div", id="groups")),
            _plain_table(groups, columns),
            tag("section", tag("h2", "Details"), *_folded(content), class_="made"),
            _footer(content),
        ]
    )
    return page(f"{title(content)} – Coterie", body, discovery_data(content))


def header(above: str, heading: str, sentences: Sequence[Markup], care: Sequence[str]) -> Markup:
    """Return the head of a page: title, summary sentences and cautions."""
    warned = (
        tag("aside", tag("h2", "Caution"), tag("ul", *(tag("li", shortened(item, 1000)) for item in care)), class_="care")
        if care
        else None
    )
    lines = (tag("p", sentence, class_="lead") for sentence in sentences)
    return tag("header", tag("p", above, class_="kicker"), tag("h1", heading), *lines, warned)


def kicker(path: str, written_at: str) -> str:
    """Return the line above the title: name of the data and date."""
    return " · ".join(part for part in ("Coterie", shortened(file_name(path), 100), written_at[:10]) if part)


def failed() -> Markup:
    """Return the notice for browsers that cannot draw the figures."""
    note = "The figures require a recent browser with scripts enabled. The table below shows the first rows."
    return join([tag("noscript", tag("p", note, class_="care")), tag("p", note, class_="care", id="failed", hidden="hidden")])


def _about_groups(content: Content, columns: Sequence[Column]) -> Markup:
    """Return a paragraph that defines groups and the columns of the table."""
    confidence, parameters = content["confidence"], content["parameters"]
    threshold = content["summary"].get("threshold", parameters.get("threshold"))
    around = (
        f"A group consists of a support feature and all features with {parameters['correlation']} |correlation| ≥ {threshold} "
        "to it."
        if parameters.get("correlation")
        else "No correlation constraint was set, so every group has one feature."
    )
    meanings = [f"{c.title.capitalize()}: {c.description[0].lower()}{c.description[1:]}" for c in columns if c.description]
    counts = f"Half-samples: {2 * confidence['n_pairs']}, permutations: {confidence['n_permutations']}." if confidence else ""
    return tag("p", " ".join([around, *meanings, counts]).strip(), class_="quiet")


def _plain_table(groups: Sequence[Content], columns: Sequence[Column]) -> Markup:
    """Return a table of the first groups for browsers without scripts."""
    rows = [
        tag("tr", *(tag("td", _cell(column, group[column.name])) for column in columns), tag("td", _affiliated(group)))
        for group in groups[:_PLAIN_GROUPS]
    ]
    heads = [*(column.title for column in columns), COLUMNS["affiliated"].title]
    unseen = len(groups) - len(rows)
    rest = tag("p", f"… and {unseen:,} more groups in groups.csv.") if unseen else None
    head = tag("thead", tag("tr", *(tag("th", name) for name in heads)))
    return tag("div", tag("table", head, tag("tbody", *rows)), rest, id="plain")


def _cell(column: Column, value: object) -> Markup:
    words = shortened(column.text(value), _LETTERS)
    return tag("bdi", words) if column.kind == "name" else text(words)


def _affiliated(group: Content) -> Markup:
    others = [
        join([tag("bdi", shortened(member_name(member), 60)), f" ({COLUMNS['correlation'].text(member['correlation'])})"])
        for member in group["members"][1 : _PLAIN_MEMBERS + 1]
    ]
    unseen = group["size"] - 1 - len(others)
    return join([*others, f"… {unseen:,} more"] if unseen else others, ", ")


def _folded(content: Content) -> list[Markup]:
    """Return the collapsed sections: certificate, rounds, parameters, data, versions, command."""
    data = {name: value for name, value in content["data"].items() if not isinstance(value, Mapping)}
    notes = content["data"].get("notes") or {}
    if notes:
        data["notes"] = "; ".join(f"{name}: {value}" for name, value in notes.items())
    seed = content["parameters"].get("random_state")
    seeds = {"seed of the search": seed if seed is not None else "none"}
    if content["confidence"]:
        seeds["seed of half-samples and permutations"] = content["confidence"]["seed"]
    parts = [
        fold("Certificate and figures", _facts(content["summary"])),
        *([fold("Held-out predictions", _held_out(content["held_out"]))] if content.get("held_out") else []),
        fold("Rounds", _rounds(content["rounds"])),
        fold("Parameters", _facts({"estimator": content["estimator"], "task": content["task"], **content["parameters"]})),
        fold("Data, versions and seed", _facts({**data, **seeds, **content["versions"]})),
    ]
    if content.get("methods"):
        parts.append(fold("Methods", _methods(content["methods"])))
    if content["command"]:
        parts.append(fold("Reproduce", tag("pre", content["command"])))
    return [part for group in parts for part in group]


def _methods(words: str) -> Markup:
    """Return the methods text with a button that copies it, which the script shows."""
    button = tag("button", "Copy", type="button", id="copy-methods", hidden="hidden")
    return join([tag("div", words, id="methods", class_="prose"), button])


def _held_out(held_out: Content) -> Markup:
    """Return the figures of the held-out predictions, the table of confusions of classes, and the survival by risk."""
    figures = held_out.get("figures") or {held_out["score"]: held_out}
    level = held_out.get("level")
    rows = []
    for name, figure in figures.items():
        bounds, constant = figure.get("interval"), figure.get("constant")
        known = "–" if not bounds or None in bounds else f"{_score(bounds[0])} to {_score(bounds[1])}"
        cells = (name, number(figure["value"]), known, "–" if constant is None else _score(constant))
        rows.append(tag("tr", *(tag("td", cell) for cell in cells)))
    heads = ("score", "value", "interval" if level is None else f"{level:.0%} interval", held_out["baseline"])
    table = wide_table(tag("thead", tag("tr", *(tag("th", head) for head in heads))), rows)
    return join([table, _confusion(held_out.get("confusion")), curves_markup(held_out.get("curves"))])


def _blocks(content: Content) -> Markup:
    """Return the table of the blocks of several matrices."""
    held_out = content.get("held_out")
    return blocks_markup(content["blocks"], None if held_out is None else held_out["score"])


def _confusion(confusion: Content | None) -> Markup:
    """Return the number of samples by class and predicted class, for few classes."""
    if not confusion or len(confusion["classes"]) > _CONFUSED_CLASSES:
        return Markup("")
    names = [tag("bdi", shortened(name, 40)) for name in confusion["classes"]]
    head = tag("tr", tag("th", "class (rows), predicted (columns)"), *(tag("th", name) for name in names))
    rows = (
        tag("tr", tag("td", name), *(tag("td", number(int(count) if count == int(count) else count)) for count in counts))
        for name, counts in zip(names, confusion["counts"], strict=True)
    )
    return wide_table(tag("thead", head), rows)


def fold(name: str, inside: Markup) -> list[Markup]:
    """Return a section that is collapsed at first."""
    return [tag("details", tag("summary", name), tag("div", inside), class_="fold")]


def _facts(facts: Content) -> Markup:
    rows = (tag("tr", tag("td", words), tag("td", shortened(number(value), 2000))) for words, value in facts.items())
    return tag("table", tag("tbody", *rows), class_="facts-table")


def _rounds(rounds: Sequence[Content]) -> Markup:
    heads = ["round", "support features", "objective", "gap", "Newton steps", "correlations evaluated"]
    keys = ["round", "n_support", "objective", "gap", "n_iter", "n_correlations_evaluated"]
    rows = [tag("tr", *(tag("td", number(entry.get(key)), class_="n") for key in keys)) for entry in rounds[:_ROUNDS]]
    table = tag(
        "table",
        tag("thead", tag("tr", *(tag("th", head, class_="n") for head in heads))),
        tag("tbody", *rows),
        class_="plain roomy",
    )
    more = tag("p", f"… and {len(rounds) - _ROUNDS:,} more in result.json.", class_="quiet") if len(rounds) > _ROUNDS else None
    return join([table, more])


def _footer(content: Content) -> Markup:
    written = f"{content['written_by']}, {content['written_at']}. "
    if not content.get("files", True):  # a page without a result folder
        return tag("footer", written)
    files = "Table of the groups: groups.csv. Machine-readable result: result.json. Model: "
    return tag("footer", written, files, tag("code", 'coterie.load("model.coterie")'), ".")
