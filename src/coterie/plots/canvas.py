"""Figures without pyplot, accessible colours and markers, and the groups to draw."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from sklearn.exceptions import NotFittedError

from coterie.groups import FeatureGroup, FeatureGroups

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from coterie.selection import FeatureSets

# A fitted estimator with groups, FeatureGroups, or a list of groups.
GroupsLike: TypeAlias = "FeatureSets | Iterable[FeatureGroup] | FeatureGroup"

# Okabe and Ito's colour-blind safe palette, without its yellow, which is too pale for lines on white.
BLUE, VERMILLION, GREEN, ORANGE, PURPLE, SKY, BLACK = COLOURS = (
    "#0072b2", "#d55e00", "#009e73", "#e69f00", "#cc79a7", "#56b4e9", "#000000",
)  # fmt: skip
GREY = "#9a9a9a"
# Eleven markers, because seven would repeat together with the seven colours. This gives 77 different styles.
_MARKERS = ("o", "s", "^", "D", "v", "P", "X", "<", ">", "p", "*")
_DASHES = ("-", "--", ":", "-.")


class Style(NamedTuple):
    """Style of a curve or a class."""

    color: str
    marker: str
    linestyle: str


def style(number: int) -> Style:
    """Return the style of the curve or class with this number. The first 77 styles are different."""
    dashes = _DASHES[number // len(COLOURS) % len(_DASHES)]
    return Style(COLOURS[number % len(COLOURS)], _MARKERS[number % len(_MARKERS)], dashes)


def new_figure(width: float, height: float) -> Figure:
    """Return a figure of a size in inches that is not managed by pyplot."""
    try:
        import matplotlib.figure  # noqa: F401  # imported first, so that the error names matplotlib

        from coterie._figure import Picture
    except ImportError as error:
        raise ImportError("coterie.plots requires matplotlib: pip install 'coterie[plot]'.") from error
    return Picture(figsize=(width, height), layout="constrained")


def axes_or_new(ax: Axes | None, width: float, height: float) -> Axes:
    """Return the given axes, or those of a new figure."""
    if ax is None:
        return new_figure(width, height).add_subplot()
    if not hasattr(ax, "add_artist"):
        raise TypeError(f"ax must be one matplotlib Axes, but is {type(ax).__name__}.")
    return ax


def finished(ax: Axes, title: str | None) -> Figure:
    """Set the title, if given, and return the figure of the axes."""
    if title:
        ax.set_title(title)
    return figure_of(ax)


def figure_of(ax: Axes) -> Figure:
    """Return the figure of the axes, also for axes in a subfigure."""
    return ax.figure.figure


def plain(text: object) -> str:
    """Return a name as text that matplotlib neither parses as mathematics nor hides from legends."""
    name = str(text).replace("$", r"\$")
    return f" {name}" if name.startswith("_") else name


def groups_of(found: GroupsLike) -> FeatureGroups:
    """Return the groups of a fitted estimator, or the given groups. There must be at least one."""
    groups: object = getattr(found, "groups_", found)
    if hasattr(found, "fit") and groups is found:
        raise NotFittedError(
            f"This {type(found).__name__} has no groups_. Fit it first, or use an estimator that returns groups."
        )
    if isinstance(groups, FeatureGroup):
        groups = [groups]
    if not isinstance(groups, Iterable):
        raise TypeError(f"Groups must be FeatureGroups or a fitted estimator, not {type(found).__name__}.")
    result = groups if isinstance(groups, FeatureGroups) else FeatureGroups(list(groups))
    wrong = [group for group in result if not isinstance(group, FeatureGroup)]
    if wrong:
        raise TypeError(f"Groups must be FeatureGroups or a fitted estimator, not a sequence of {type(wrong[0]).__name__}.")
    if not len(result):
        raise ValueError("There are no groups to draw.")
    return result
