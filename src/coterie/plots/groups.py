"""Figures of groups: stars of a support feature and its affiliated features (TPAMI Figs 2, 3, 7)."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import numpy as np

from coterie._parameters import Integer, check
from coterie.estimators.documentation import documented
from coterie.metrics.recovery import correct_members
from coterie.plots.canvas import (
    BLACK,
    BLUE,
    GREY,
    VERMILLION,
    GroupsLike,
    axes_or_new,
    figure_of,
    finished,
    groups_of,
    plain,
    style,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from matplotlib.lines import Line2D

    from coterie.groups import FeatureGroup, FeatureGroups

# The layout is in inches, because the space for names does not depend on the size of the figure.
_LETTER_WIDTH, _HUB_LETTER_WIDTH = 0.058, 0.071
_MARGIN = 0.1
_MIN_WIDTH = 4.2
_MAX_NAME_LENGTH = 22
_THIN, _THICK = 0.5, 3.0
# Colour of incorrect features, if the truth is given.
_PALE = "0.55"


def group_graph(
    groups: GroupsLike,
    *,
    max_groups: int = 20,
    max_affiliated: int = 24,
    truth: GroupsLike | None = None,
    ax: Axes | None = None,
    title: str | None = None,
) -> Figure:
    """Draw groups as stars: support features as hubs, their affiliated features around them.

    The thickness of a line shows the absolute correlation, its colour the sign. The affiliated feature with the highest
    absolute correlation is on the right; the others follow clockwise. Hubs are numbered in the order of the groups.

    Parameters
    ----------
    groups : FeatureGroups or fitted estimator
        Groups, or an estimator with ``groups_``.

    max_groups : int, default=20
        Largest number of groups to draw. The first ones are drawn, and the title shows their number.

    max_affiliated : int, default=24
        Largest number of affiliated features to draw per group. Those with the highest absolute correlations are drawn, and
        a label such as "+ 80 more" stands for the others.

    truth : FeatureGroups, optional
        True groups, if known. Incorrect features (see :func:`coterie.metrics.success_hits`) are drawn pale, with a cross
        instead of a ring.

    ax : matplotlib Axes, optional
        Axes to draw on. By default, a new figure with a size that fits the names.

    title : str, optional
        Title. By default, the number of groups and features.

    Returns
    -------
    figure : matplotlib Figure

    See Also
    --------
    pixel_map : Groups of pixels on their image.

    Examples
    --------
    >>> from coterie import FeatureGroup, FeatureGroups
    >>> from coterie.plots import group_graph
    >>> groups = FeatureGroups([FeatureGroup(3, [7, 5], [0.9, -0.8]), FeatureGroup(1, [])])
    >>> figure = group_graph(groups)
    >>> figure.axes[0].get_title()
    '2 groups, 4 features'
    """
    check("max_groups", max_groups, Integer(1))
    check("max_affiliated", max_affiliated, Integer(1))
    found = groups_of(groups)
    correct = (
        [set(group.members.tolist()) for group in found] if truth is None else correct_members(groups_of(truth), list(found))
    )
    stars = [
        _star(group, number, max_affiliated, own)
        for number, (group, own) in enumerate(zip(found[:max_groups], correct, strict=False), start=1)
    ]
    width, height = _place(stars)
    ax = axes_or_new(ax, width + 0.2, height + 0.9)
    _draw(ax, stars, width)
    ax.set_xlim(0.0, width)
    ax.set_ylim(-height, 0.0)
    ax.set_aspect("equal")
    ax.set_axis_off()
    ax.set_title(_title(found, stars) if title is None else title, fontsize=10)
    return figure_of(ax)


@dataclass
class _Star:
    """Group with its ring around the hub at (x, y), and its extent to the left, right, top and bottom, in inches."""

    hub: str
    names: list[str]
    correlation: np.ndarray
    n_left_out: int
    radii: tuple[float, float]
    hub_true: bool
    true: list[bool]
    left: float = 0.0
    right: float = 0.0
    up: float = 0.0
    down: float = 0.0
    x: float = 0.0
    y: float = 0.0

    @property
    def labels(self) -> list[str]:
        """Labels around the ring: the affiliated features, and the number of those omitted."""
        return [*self.names, f"+ {self.n_left_out:,} more"] if self.n_left_out else self.names

    def offset(self, place: int) -> tuple[float, float]:
        """Return the offset of a position on the ring from the hub. The first is on the right, the others clockwise."""
        turn = -2.0 * math.pi * place / len(self.labels)
        return self.radii[0] * math.cos(turn), self.radii[1] * math.sin(turn)

    def measure(self, hub_half: float) -> None:
        """Compute the extent of the hub and the names."""
        xs, ys = [-hub_half, hub_half], [-0.13, 0.13]
        for place, label in enumerate(self.labels):
            dx, dy = self.offset(place)
            length = 1.0 + (0.1 + _LETTER_WIDTH * len(label)) / math.hypot(dx, dy)
            xs += [dx * length - 0.05, dx * length + 0.05]
            ys += [dy * length - 0.05, dy * length + 0.05]
        self.left, self.right = _MARGIN - min(xs), _MARGIN + max(xs)
        self.down, self.up = _MARGIN - min(ys), _MARGIN + max(ys)


def _star(group: FeatureGroup, number: int, max_affiliated: int, correct: set[int]) -> _Star:
    """Return the star of a group, with its correct members. A wide hub makes the ring an ellipse."""
    support, *others = (_short(label) for label in group.labels)
    order = np.argsort(-np.abs(np.nan_to_num(group.correlation)), kind="stable")[:max_affiliated]
    hub = f"{number} · {support}"
    hub_half = 0.5 * _HUB_LETTER_WIDTH * len(hub) + 0.1
    height = max(0.34, 0.14 * (len(order) + 1) / (2.0 * math.pi))
    radii = (max(height, hub_half + 0.3), height)
    star = _Star(
        hub,
        [others[i] for i in order],
        group.correlation[order],
        len(others) - len(order),
        radii,
        group.support in correct,
        [int(j) in correct for j in group.affiliated[order]],
    )
    star.measure(hub_half)
    return star


def _short(name: str) -> str:
    name = " ".join(name.split())
    return name if len(name) <= _MAX_NAME_LENGTH else name[: _MAX_NAME_LENGTH - 1] + "…"


def _place(stars: Sequence[_Star]) -> tuple[float, float]:
    """Place the stars in rows, those with affiliated features first. Return the total size."""
    area = sum((star.left + star.right) * (star.up + star.down) for star in stars)
    limit = max(*(star.left + star.right for star in stars), math.sqrt(2.6 * area), _MIN_WIDTH)
    shelves: list[list[_Star]] = []
    used = math.inf
    for star in sorted(stars, key=lambda one: not one.names):
        new_kind = bool(shelves) and bool(shelves[-1][-1].names) != bool(star.names)
        if used + star.left + star.right > limit + 1e-9 or new_kind:
            shelves.append([])
            used = 0.0
        shelves[-1].append(star)
        used += star.left + star.right
    widest = max(_MIN_WIDTH, *(sum(star.left + star.right for star in shelf) for shelf in shelves))
    top = 0.0
    for shelf in shelves:
        gap = (widest - sum(star.left + star.right for star in shelf)) / (len(shelf) + 1)
        x = gap
        for star in shelf:
            star.x, star.y = x + star.left, -top - max(one.up for one in shelf)
            x += star.left + star.right + gap
        top += max(star.up for star in shelf) + max(star.down for star in shelf)
    return widest, top


def _draw(ax: Axes, stars: Sequence[_Star], width: float) -> None:
    from matplotlib.collections import LineCollection

    correlation = np.concatenate([star.correlation for star in stars])
    known = np.abs(correlation[np.isfinite(correlation)])
    low, high = (float(known.min()), float(known.max())) if len(known) else (0.0, 1.0)
    lines = []
    for star in stars:
        for place, label in enumerate(star.labels):
            dx, dy = star.offset(place)
            if place < len(star.names):
                lines.append([(star.x, star.y), (star.x + dx, star.y + dy)])
                _radial_text(ax, star, place, label, color=BLACK if star.true[place] else _PALE)
            else:
                _radial_text(ax, star, place, label, style="italic", color="0.35")
    if lines:
        widths = [_line_width(abs(r), low, high) for r in correlation.tolist()]
        colours = [_colour(r) for r in correlation.tolist()]
        ax.add_collection(LineCollection(lines, linewidths=widths, colors=colours, zorder=1, gid="correlations"))
        ends = np.array([line[1] for line in lines])
        good = np.concatenate([star.true for star in stars]).astype(bool)
        ax.scatter(
            ends[good, 0],
            ends[good, 1],
            s=14,
            facecolors="white",
            edgecolors=BLACK,
            linewidths=0.7,
            zorder=2,
            gid="affiliated",
        )
        if not good.all():
            bad = ends[~good]
            ax.scatter(bad[:, 0], bad[:, 1], s=16, marker="x", color=_PALE, linewidths=1.0, zorder=2, gid="wrong")
    for star in stars:
        box = {"boxstyle": "round,pad=0.3", "facecolor": BLACK if star.hub_true else "white", "edgecolor": "none"}
        if not star.hub_true:
            box |= {"edgecolor": _PALE, "linestyle": ":"}
        ax.text(
            star.x, star.y, plain(star.hub), ha="center", va="center", fontsize=7.5,
            color="white" if star.hub_true else _PALE, bbox=box, gid="support",
        )  # fmt: skip
    handles = _handles(correlation, low, high)
    if not all(star.hub_true and all(star.true) for star in stars):
        from matplotlib.lines import Line2D

        handles.append(Line2D([], [], color=_PALE, marker="x", linestyle="none", ms=4, label="wrong"))
    n_columns = min(len(handles), int(width / 1.4))  # width of an entry in inches
    ax.legend(handles=handles, loc="upper center", bbox_to_anchor=(0.5, 0.0), ncols=n_columns, frameon=False, fontsize=7.5)


def _radial_text(
    ax: Axes, star: _Star, place: int, text: str, color: str, style: Literal["normal", "italic"] = "normal"
) -> None:
    """Draw a name that points away from the hub and is never upside down."""
    dx, dy = star.offset(place)
    away = 1.0 + 0.07 / math.hypot(dx, dy)
    left = dx < -1e-9
    degrees = math.degrees(math.atan2(dy, dx)) + (180.0 if left else 0.0)
    ax.text(
        star.x + away * dx, star.y + away * dy, plain(text), rotation=degrees, rotation_mode="anchor",
        ha="right" if left else "left", va="center", fontsize=6.5, color=color, style=style,
    )  # fmt: skip


def _line_width(strength: float, low: float, high: float) -> float:
    """Return the line width: thin for the lowest correlation of the graph, thick for the highest."""
    if not math.isfinite(strength) or high <= low:
        return 0.5 * (_THIN + _THICK)
    return _THIN + (_THICK - _THIN) * (strength - low) / (high - low)


def _colour(r: float) -> str:
    return GREY if not math.isfinite(r) else BLUE if r >= 0.0 else VERMILLION


def _handles(correlation: np.ndarray, low: float, high: float) -> list[Line2D]:
    """Return legend entries for the elements of the graph."""
    from matplotlib.lines import Line2D

    result = [Line2D([], [], color=BLACK, marker="s", linestyle="none", label="support")]
    if len(correlation):
        result.append(
            Line2D([], [], color=BLACK, marker="o", markerfacecolor="white", linestyle="none", ms=4, label="affiliated")
        )
    finite = correlation[np.isfinite(correlation)]
    for sign, colour, mine in ((1, BLUE, finite[finite >= 0.0]), (-1, VERMILLION, finite[finite < 0.0])):
        for r in dict.fromkeys([sign * float(np.abs(mine).min()), sign * float(np.abs(mine).max())] if len(mine) else []):
            width = _line_width(abs(r), low, high)
            result.append(Line2D([], [], color=colour, linewidth=width, label=f"correlation {r:+.2f}"))
    if len(finite) < len(correlation):
        result.append(Line2D([], [], color=GREY, linewidth=1.5, label="correlation unknown"))
    return result


def _title(groups: FeatureGroups, stars: Sequence[_Star]) -> str:
    n_features = sum(len(group) for group in groups)
    text = f"{len(groups)} group{'s' * (len(groups) != 1)}, {n_features:,} feature{'s' * (n_features != 1)}"
    n_shown = sum(1 + len(star.names) for star in stars)
    cut = []
    if len(stars) < len(groups):
        cut.append(f"{len(stars)} groups")
    if n_shown < n_features:
        cut.append(f"{n_shown:,} features")
    return f"{text} ({' and '.join(cut)} shown)" if cut else text


@documented
def affiliated_counts(found: GroupsLike, *, ax: Axes | None = None, title: str | None = None) -> Figure:
    """Draw the number of affiliated features against the number of support features, in order of selection.

    Parameters
    ----------
    found : fitted estimator, FeatureGroups, or mapping of names to these
        Groups to draw: one curve, or one curve per name.

    %(picture)s

    Notes
    -----
    The curve at k counts the members of the first k groups of the result. A feature that is correlated with several support
    features is a member of one group only, that of the support feature with the highest correlation. With only k support
    features, some members of later groups would therefore be counted already. The last point is always exact.

    Examples
    --------
    >>> from coterie import FeatureGroup, FeatureGroups
    >>> from coterie.plots import affiliated_counts
    >>> groups = FeatureGroups([FeatureGroup(3, [7, 5], [0.9, -0.8]), FeatureGroup(1, []), FeatureGroup(2, [4], [0.7])])
    >>> figure = affiliated_counts({"Pearson": groups, "half": groups[:2]})
    >>> figure.axes[0].lines[0].get_ydata().tolist()
    [0, 2, 2, 3]
    """
    if isinstance(found, Mapping) and not found:
        raise ValueError("found is an empty mapping. Pass at least one set of groups.")
    named = (
        {str(name): groups_of(one) for name, one in found.items()} if isinstance(found, Mapping) else {"": groups_of(found)}
    )
    ax = axes_or_new(ax, 4.8, 3.6)
    from matplotlib.ticker import MaxNLocator

    start = len(ax.lines)  # on axes with curves, continue with the next style
    for number, (name, groups) in enumerate(named.items(), start=start):
        counts = np.append(0, np.cumsum([len(group) - 1 for group in groups]))
        look = style(number)
        ax.plot(
            np.arange(len(counts)), counts, color=look.color, linestyle=look.linestyle, marker=look.marker, markersize=3.5,
            linewidth=1.4, markevery=max(1, len(counts) // 12), label=plain(name) if name else None, clip_on=False,
        )  # fmt: skip
    ax.set_xlabel("support features")
    ax.set_ylabel("affiliated features")
    ax.xaxis.set_major_locator(MaxNLocator(integer=True))
    ax.yaxis.set_major_locator(MaxNLocator(integer=True))
    ax.set_xlim(left=0)
    ax.set_ylim(bottom=0)
    ax.grid(alpha=0.25)
    if any(named):
        ax.legend(frameon=False)
    return finished(ax, title)
