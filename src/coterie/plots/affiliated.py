"""How many affiliated features come with the support features (TPAMI Fig. 7)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from coterie.plots.canvas import axes_or_new, figure_of, plain, style
from coterie.plots.found import groups_of

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def affiliated_counts(found: Any, *, ax: Any = None, title: str | None = None) -> Figure:
    """Draw the number of affiliated features against the number of support features, in order of selection.

    Parameters
    ----------
    found : fitted estimator, FeatureGroups, or mapping of names to these
        One curve, or one for each name.

    ax : matplotlib Axes, optional
        Where to draw; a new figure by default.

    title : str, optional
        Title of the picture.

    Returns
    -------
    figure : matplotlib Figure

    Notes
    -----
    The curve at k counts the members of the first k groups *as found*. A feature that is correlated with several support
    features is a member of the closest one's group, so with k support features alone some members of later groups would count
    already. The last point is exact in any case.

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
        raise ValueError("found is an empty mapping, so there is nothing to draw.")
    named = (
        {str(name): groups_of(one) for name, one in found.items()} if isinstance(found, Mapping) else {"": groups_of(found)}
    )
    ax = axes_or_new(ax, 4.8, 3.6)
    from matplotlib.ticker import MaxNLocator

    start = len(ax.lines)  # on axes with curves already, go on with the next style
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
    if title:
        ax.set_title(title)
    return figure_of(ax)
