"""Pages of comparisons and correlation profiles."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, TypeVar

from coterie.groups.columns import Content
from coterie.markup import Markup, join, of_requested, shortened, tag
from coterie.report.page import failed, file_name, fold, header, kicker, number, page
from coterie.report.payload import stem
from coterie.report.result import now, writer

if TYPE_CHECKING:
    from coterie.comparison.result import Comparison
    from coterie.correlation.profile import CorrelationProfile

T = TypeVar("T")
# Largest number of rows in the plain table, and of characters in a cell.
_PLAIN_ROWS = 50
_LETTERS = 200


def comparison_page(found: Comparison, path: str, command: str | None = None) -> str:
    """Return the page of a comparison on data with this path or name."""
    rows, scoring = found.summary_rows(), found.scoring
    methods = list(dict.fromkeys(str(row["method"]) for row in rows))
    columns = {name: [_plain(row[name]) for row in rows] for name in rows[0] if name != "method"} if rows else {}
    folds = max((row["n_folds"] for row in rows), default=0)
    good = [row for row in rows if row["n_ok"]]
    best = max(good, key=lambda row: row["accuracy"], default=None)
    first = join(
        [
            f"{len(methods)} feature selection methods on ",
            tag("bdi", shortened(file_name(path), 60)),
            f" ({number(found.n_features_in)} features), scored on the held-out samples of {folds} folds. ",
            None
            if best is None
            else join(
                [
                    "Best mean: ",
                    tag("strong", tag("bdi", shortened(best["method"], 60))),
                    f" with {_size(best)}, {scoring} ",
                    tag("strong", _with_spread(best["accuracy"], best["accuracy_std"])),
                    ".",
                ]
            ),
        ]
    )
    care = ["A signal ended the comparison early. The remaining runs are missing."] if found.interrupted else []
    failing = [str(row["method"]) for row in rows if row["n_ok"] < row["n_folds"]]
    if failing:
        names = ", ".join(shortened(name, 40) for name in dict.fromkeys(failing))
        care.append(f"Some runs failed ({names}). See the notes.")
    data = {
        "kind": "comparison",
        "stem": stem(path),
        "scoring": scoring,
        "methods": methods,
        "failures": [_failure(rows, name) for name in methods],
        "measures": [
            {"key": "accuracy", "title": f"Held-out {scoring}", "unit": scoring, "logarithmic": False,
             "words": "Mean over the folds. Whiskers: standard deviation."},
            {"key": "redundancy_rate", "title": "Redundancy of the selected features", "unit": "redundancy rate",
             "logarithmic": False, "words": "Mean absolute correlation between the selected features. Lower is better."},
            {"key": "fit_seconds", "title": "Fit time", "unit": "seconds per fit", "logarithmic": True,
             "words": "Logarithmic axis."},
            {"key": "weighted_consistency", "title": "Stability of the selection across folds",
             "unit": "weighted consistency", "logarithmic": False, "words": "1 means the same features in every fold."},
        ],
        "rows": {"method": [methods.index(str(row["method"])) for row in rows], **columns},
    }  # fmt: skip
    heads = ["method", "features", scoring, "redundancy", "seconds", "stability", "notes"]
    cells = [
        [
            row["method"],
            of_requested(row["n_selected"], row["n_features"]),
            _with_spread(row["accuracy"], row["accuracy_std"]),
            number(_plain(row["redundancy_rate"])),
            number(_plain(row["fit_seconds"])),
            number(_plain(row["weighted_consistency"])),
            "" if row["status"] == "ok" else f"{row['status']}: {row['message']}",
        ]
        for row in rows
    ]
    return _smaller_page("Method comparison", path, command, [first], care, ("Means over the folds", heads, cells), data)


def profile_page(found: CorrelationProfile, path: str, command: str | None = None) -> str:
    """Return the page of a correlation profile of data with this path or name."""
    content = found.to_dict()
    bins = content["bins"]
    counted = content["n_pairs"] if content["exact"] else content["n_drawn"]
    how = "All" if content["exact"] else f"{number(counted)} of"
    strongest = next((row for row in bins if row["low"] >= 0.7 - 1e-9), None)
    share = None
    if strongest is not None and strongest["share_at_least"] is not None:
        percent = tag("strong", f"{100 * strongest['share_at_least']:.2g} %")
        share = join([percent, f" have an absolute correlation of at least {strongest['low']:g}."])
    first = join(
        [
            f"{how} {number(content['n_pairs'])} pairs of {number(content['n_features'])} features of ",
            tag("bdi", shortened(file_name(path), 60)),
            " were counted. " if content["exact"] else " were drawn at random. ",
            share,
        ]
    )
    care = [f"{number(content['n_constant'])} constant features were omitted."] if content["n_constant"] else []
    heads = list(bins[0]) if bins else []
    data = {
        "kind": "profile",
        "stem": stem(path),
        "exact": content["exact"],
        "bins": {name: [_plain(row[name]) for row in bins] for name in heads},
    }
    cells = [[number(_plain(value)) for value in row.values()] for row in bins]
    return _smaller_page("Correlation profile", path, command, [first], care, ("Bins", heads, cells), data)


def _smaller_page(
    heading: str,
    path: str,
    command: str | None,
    sentences: Sequence[Markup],
    care: Sequence[str],
    table: tuple[str, Sequence[str], Sequence[Sequence[object]]],
    data: Content,
) -> str:
    """Return the page of a comparison or a profile."""
    name, heads, cells = table
    rows = [tag("tr", *(tag("td", shortened(cell, _LETTERS)) for cell in row)) for row in cells[:_PLAIN_ROWS]]
    plain = tag("table", tag("thead", tag("tr", *(tag("th", head) for head in heads))), tag("tbody", *rows))
    body = join(
        [
            header(kicker(path, now()), heading, sentences, care),
            failed(),
            tag("section", id="pictures", aria_label="Figures"),
            tag("section", tag("h2", name), tag("div", id="groups")),
            tag("div", plain, id="plain"),
            tag("section", tag("h2", "Details"), *fold("Command", tag("pre", command)), class_="made") if command else None,
            tag("footer", f"{writer()}, {now()}."),
        ]
    )
    return page(f"{heading}: {shortened(file_name(path), 80)} – Coterie", body, data)


def _failure(rows: Sequence[Content], method: str) -> str | None:
    own = [row for row in rows if str(row["method"]) == method and row["n_ok"] < row["n_folds"]]
    return f"{own[0]['status']}" if own else None


def _size(row: Content) -> str:
    """Return the number of features for a sentence."""
    words = of_requested(row["n_selected"], row["n_features"])
    return f"{words} requested features" if " of " in words else f"{words} features"


def _with_spread(mean: float | None, spread: float | None) -> str:
    mean, spread = _plain(mean), _plain(spread)
    return "–" if mean is None else f"{mean:.3f}" + ("" if spread is None else f" ± {spread:.3f}")


def _plain(value: T) -> T | None:
    """Return None for NaN, which JSON does not have."""
    return None if isinstance(value, float) and math.isnan(value) else value
