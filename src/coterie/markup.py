"""HTML from Python: text is escaped wherever it comes from."""

from __future__ import annotations

import html
import re
from collections.abc import Iterable, Sequence
from typing import Any

# Controls, marks that turn the direction of writing, spaces of no width, and halves of characters: written out, so that
# nothing in a name can hide, or move what stands beside it.
_HIDDEN = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200b-\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff\ufeff\ufffe\uffff]"
)
_EMPTY = ("meta", "br", "link", "input")
# Letters of a name in a table.
_SHOWN_LETTERS = 120


class Markup(str):
    """Text that is HTML already."""

    __slots__ = ()


def text(value: Any) -> Markup:
    """Anything as text of a page.

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
    """An element with its children, which are escaped unless they are markup; None is left out.

    Attributes are named as in HTML, with an underscore at the end where Python needs one and for the hyphen inside.

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
    """Parts one after the other."""
    return Markup(text(between).join(text(part) for part in parts if part is not None))


def shortened(name: Any, most: int = _SHOWN_LETTERS) -> str:
    """A name that fits on a line."""
    words = str(name)
    return f"{words[:most]}… ({len(words):,} characters)" if len(words) > most else words


def notebook_table(
    title: str,
    heads: Sequence[str],
    rows: Sequence[Sequence[Any]],
    *,
    n_rows: int | None = None,
    most: int = 12,
    right: Sequence[bool] | None = None,
) -> str:
    """What a notebook shows of a result: a title, the first rows of a table, and what was left out.

    Numbers stand to the right, and text in columns that ``right`` says so of. ``n_rows`` is how many rows there are, where not
    all are given; ``most`` how many are shown.

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
