"""HTML generation in which all text is escaped."""

from __future__ import annotations

import html
import math
import re
from collections.abc import Iterable, Sequence
from typing import Any

# Control characters, direction marks, zero-width spaces and surrogates. They are shown as escapes, so that a name cannot hide
# text or reorder its surroundings.
_HIDDEN = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200b-\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff\ufeff\ufffe\uffff]"
)
_EMPTY = ("meta", "br", "link", "input")
# Largest number of characters of a name in a table.
_SHOWN_LETTERS = 120


class Markup(str):
    """String that is HTML and is not escaped again."""

    __slots__ = ()


def text(value: Any) -> Markup:
    """Return a value as escaped text.

    Examples
    --------
    >>> from coterie.markup import text
    >>> text("<script>a\\u202eb")
    '&lt;script&gt;a\\\\u202eb'
    """
    if isinstance(value, Markup):
        return value
    return Markup(html.escape(_HIDDEN.sub(lambda found: f"\\u{ord(found[0]):04x}", str(value)), quote=True))


def tag(name: str, /, *children: Any, **attributes: Any) -> Markup:
    """Return an element with its children, which are escaped unless they are markup. None is omitted.

    Attribute names are those of HTML, with underscores for hyphens and a trailing underscore for Python keywords.

    Examples
    --------
    >>> from coterie.markup import tag
    >>> tag("td", "a < b", tag("b", 1), class_="n", aria_label=None)
    '<td class="n">a &lt; b<b>1</b></td>'
    """
    words = "".join(
        f' {key.rstrip("_").replace("_", "-")}="{text(value)}"' for key, value in attributes.items() if value is not None
    )
    inside = "".join(text(child) for child in children if child is not None)
    return Markup(f"<{name}{words}>" if name in _EMPTY else f"<{name}{words}>{inside}</{name}>")


def join(parts: Iterable[Any], between: str = "") -> Markup:
    """Concatenate parts with a separator."""
    return Markup(text(between).join(text(part) for part in parts if part is not None))


def shortened(name: Any, most: int = _SHOWN_LETTERS) -> str:
    """Truncate a name to ``most`` characters and add its length."""
    full = str(name)
    return f"{full[:most]}… ({len(full):,} characters)" if len(full) > most else full


def wide_table(head: Markup, rows: Iterable[Markup]) -> Markup:
    """Return a table of several columns, which scrolls on narrow screens."""
    return tag("div", tag("table", head, tag("tbody", *rows)), class_="wide-table")


def of_requested(selected: float, requested: int) -> str:
    """Return a number of selected features, and the number requested if it differs. NaN stands for unknown.

    Examples
    --------
    >>> from coterie.markup import of_requested
    >>> of_requested(20.0, 20), of_requested(3.6, 20), of_requested(float("nan"), 20)
    ('20', '3.6 of 20', '20')
    """
    known = not math.isnan(selected) and selected != requested
    return f"{round(selected, 1):g} of {requested:,}" if known else f"{requested:,}"


def notebook_table(
    title: str,
    heads: Sequence[str],
    rows: Sequence[Sequence[Any]],
    *,
    n_rows: int | None = None,
    most: int = 12,
    right: Sequence[bool] | None = None,
) -> str:
    """Return the notebook display of a result: title, first rows of a table and number of omitted rows.

    Numbers are right-aligned, and so is text in columns marked in ``right``. ``n_rows`` is the total number of rows if not
    all are given, and ``most`` the number of rows to show.

    Examples
    --------
    >>> from coterie.markup import notebook_table
    >>> notebook_table("1 group", ["name"], [["<b>"]])
    '<div class="coterie"><p><strong>1 group</strong></p><table><thead><tr><th>name</th>...&lt;b&gt;...</table></div>'
    """
    sides = [False] * len(heads) if right is None else right
    body = [tag("tr", *(_cell(value, side) for value, side in zip(row, sides, strict=True))) for row in rows[:most]]
    left_out = (len(rows) if n_rows is None else n_rows) - len(body)
    return str(
        tag(
            "div",
            tag("p", tag("strong", title)),
            tag("table", tag("thead", tag("tr", *(tag("th", head) for head in heads))), tag("tbody", *body)),
            tag("p", tag("small", f"… and {left_out:,} more")) if left_out > 0 else None,
            class_="coterie",
        )
    )


def _cell(value: Any, right: bool) -> Markup:
    if isinstance(value, Markup):
        return tag("td", value)
    number = right or (isinstance(value, (int, float)) and not isinstance(value, bool))
    return tag("td", "–" if value is None else shortened(value), style="text-align: right" if number else "text-align: left")
