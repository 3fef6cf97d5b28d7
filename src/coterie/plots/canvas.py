"""Figures without pyplot, colours and marks that everyone can tell apart, and the groups to draw."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from sklearn.exceptions import NotFittedError

from coterie.groups import FeatureGroup, FeatureGroups

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from coterie.selection import FeatureSets

# What has groups: a fitted estimator, its groups, or a list of some.
GroupsLike: TypeAlias = "FeatureSets | Iterable[FeatureGroup] | FeatureGroup"

# Okabe and Ito's colours for all kinds of sight, without their yellow, which is too pale for lines on white.
BLUE, VERMILLION, GREEN, ORANGE, PURPLE, SKY, BLACK = COLOURS = (
    "#0072b2", "#d55e00", "#009e73", "#e69f00", "#cc79a7", "#56b4e9", "#000000",
)  # fmt: skip
GREY = "#9a9a9a"
# Seven colours and as many marks would repeat together, so there are eleven marks: 77 styles before one comes again.
_MARKS = ("o", "s", "^", "D", "v", "P", "X", "<", ">", "p", "*")
_DASHES = ("-", "--", ":", "-.")


class Style(NamedTuple):
    """How a curve or a class is drawn."""

    color: str
    marker: str
    linestyle: str


def style(number: int) -> Style:
    """The style of the curve or class of that number; no two of the first 77 are the same."""
    return Style(COLOURS[number % len(COLOURS)], _MARKS[number % len(_MARKS)], _DASHES[number // len(COLOURS) % len(_DASHES)])


def new_figure(width: float, height: float) -> Figure:
    """A figure of that size in inches, which pyplot does not know of."""
    try:
        import matplotlib.figure  # noqa: F401  # named first, so that its absence is what is told

        from coterie._figure import Picture
    except ImportError as error:
        raise ImportError("coterie.plots needs matplotlib: pip install 'coterie[plot]'.") from error
    return Picture(figsize=(width, height), layout="constrained")


def axes_or_new(ax: Axes | None, width: float, height: float) -> Axes:
    """The axes given, or those of a new figure."""
    if ax is None:
        return new_figure(width, height).add_subplot()
    if not hasattr(ax, "add_artist"):
        raise TypeError(f"ax must be one matplotlib Axes, got {type(ax).__name__}.")
    return ax


def finished(ax: Axes, title: str | None) -> Figure:
    """The figure of axes that get a title, if there is one."""
    if title:
        ax.set_title(title)
    return figure_of(ax)


def figure_of(ax: Axes) -> Figure:
    """The figure that axes belong to; that of the whole, where they lie in a part of it."""
    return ax.figure.figure


def plain(text: object) -> str:
    """A name from the data as text that matplotlib takes neither for mathematics nor for something to hide."""
    name = str(text).replace("$", r"\$")
    return f" {name}" if name.startswith("_") else name


def groups_of(found: GroupsLike) -> FeatureGroups:
    """The groups of a fitted estimator, or the groups that were given; at least one."""
    groups: object = getattr(found, "groups_", found)
    if hasattr(found, "fit") and groups is found:
        raise NotFittedError(
            f"This {type(found).__name__} has no groups_: fit it first, or take an estimator that finds groups."
        )
    if isinstance(groups, FeatureGroup):
        groups = [groups]
    if not isinstance(groups, Iterable):
        raise TypeError(f"Groups must be FeatureGroups or a fitted estimator, got {type(found).__name__}.")
    result = groups if isinstance(groups, FeatureGroups) else FeatureGroups(list(groups))
    wrong = [group for group in result if not isinstance(group, FeatureGroup)]
    if wrong:
        raise TypeError(f"Groups must be FeatureGroups or a fitted estimator, got a sequence with {type(wrong[0]).__name__}.")
    if not len(result):
        raise ValueError("There are no groups, so there is nothing to draw.")
    return result
