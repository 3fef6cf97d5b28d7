"""p-values or scores of SNPs along the chromosomes, with the groups marked."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from coterie.data.source import FeatureSource
from coterie.groups import FeatureGroups
from coterie.inputs.opening import unwrapped
from coterie.marginal import Association
from coterie.plots.canvas import BLUE, GREY, SKY, VERMILLION, axes_or_new, figure_of, plain
from coterie.plots.found import groups_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# The part of the genome's length that is left free between chromosomes, and support SNPs that are named at most.
_GAP = 0.01
_MOST_NAMES = 25
# Values that a p-value is not smaller than, for its logarithm.
_SMALLEST = 1e-300
_SEX = {"X": 23, "Y": 24, "XY": 25, "MT": 26, "M": 26}


def manhattan(
    values: Any,
    data: Any = None,
    *,
    groups: Any = None,
    threshold: float | None = 5e-8,
    ax: Any = None,
    title: str | None = None,
) -> Figure:
    """Draw p-values (or scores) of SNPs by their places on the chromosomes, with the members of groups marked.

    Parameters
    ----------
    values : Association, or array-like of shape (n_features,)
        What :func:`coterie.association` found, drawn as -log10 of the p-values; or any scores of all features, such as a
        model's ``scores_``, drawn as they are.

    data : path, Dataset, Store, FeatureSource, mapping or data frame, optional
        Where ``"chromosome"`` and ``"position"`` of the features stand; an association of a .bed file knows them itself.

    groups : fitted estimator or FeatureGroups, optional
        Groups whose members are marked: support SNPs by a diamond with the name, the others by their colour.

    threshold : float or None, default=5e-8
        Level of a dashed line (of p-values only); None for no line.

    ax : matplotlib Axes, optional
        Where to draw; a new figure by default.

    title : str, optional
        Title of the picture.

    Returns
    -------
    figure : matplotlib Figure

    Notes
    -----
    The p-values of members of groups are of the same samples that the groups were found in. Compare them with the line for
    all tests, not with 0.05.

    Examples
    --------
    >>> import numpy as np
    >>> from coterie import association
    >>> from coterie.data import annotated, as_source
    >>> from coterie.plots import manhattan
    >>> rng = np.random.default_rng(0)
    >>> X = rng.integers(0, 3, (100, 6)).astype(np.int8)
    >>> places = {"chromosome": ["1", "1", "1", "2", "2", "X"], "position": [5, 90, 400, 3, 70, 8]}
    >>> found = association(annotated(as_source(X), places), X[:, 4] + rng.standard_normal(100))
    >>> figure = manhattan(found, threshold=0.01)
    >>> [label.get_text() for label in figure.axes[0].get_xticklabels()]
    ['1', '2', 'X']
    """
    feature, height, known, words = _heights(values)
    places = _places(data, feature, known)
    shown = np.isfinite(height)
    if not shown.any():
        raise ValueError("There is no finite value to draw.")
    x, chromosomes, ticks = _along(places["chromosome"], places["position"])
    own = ax is None
    ax = axes_or_new(ax, 8.4, 3.6)
    for number, chromosome in enumerate(ticks):
        here = shown & (chromosomes == chromosome)
        # One picture of many points, not as many drawings.
        ax.scatter(x[here], height[here], s=4, color=(BLUE, SKY)[number % 2], linewidths=0, rasterized=True)
    if groups is not None:
        _mark(ax, groups_of(groups), dict(zip(feature.tolist(), range(len(feature)), strict=True)), x, height)
    if threshold is not None and isinstance(values, Association):
        if not 0.0 < threshold <= 1.0:
            raise ValueError(f"threshold={threshold!r} must be a p-value, over 0 and at most 1, or None.")
        ax.axhline(-np.log10(threshold), color=GREY, linestyle="--", linewidth=0.9)
    ax.set_xticks(list(ticks.values()), [plain(name) for name in ticks], fontsize=8)
    ax.set_xlabel("chromosome")
    ax.set_ylabel(words)
    ax.set_ylim(bottom=min(0.0, float(height[shown].min())))
    if own:
        ax.spines[["top", "right"]].set_visible(False)
    if title:
        ax.set_title(title)
    return figure_of(ax)


def _heights(values: Any) -> tuple[np.ndarray, np.ndarray, Mapping[str, Any], str]:
    """Features, what to draw of them, what is known of their places, and the words for the axis."""
    if isinstance(values, Association):
        with np.errstate(invalid="ignore"):
            height = -np.log10(np.maximum(values.p_value, _SMALLEST))
        return values.feature, height, values.annotations, "$-\\log_{10}$ p-value"
    scores = np.asarray(values, dtype=np.float64)
    if scores.ndim != 1:
        raise ValueError("values must be an Association, or one score for each feature.")
    return np.arange(len(scores)), scores, {}, "score"


def _places(data: Any, feature: np.ndarray, known: Mapping[str, Any]) -> dict[str, list[Any]]:
    """Chromosome and position of the features drawn."""
    if data is None:
        table, rows = known, range(len(feature))
    else:
        found = unwrapped(data)
        own = found.X.annotations if isinstance(found.X, FeatureSource) else None
        table = getattr(found.origin, "feature_info", None) or own or found.X
        rows = feature.tolist()
    result = {}
    for name in ("chromosome", "position"):
        try:
            column = table[name]
        except (KeyError, TypeError, IndexError, ValueError) as error:
            raise ValueError(
                f"There is no {name} of the features. Give data: the .bed file or what open_features made of it, or a table "
                "with the columns chromosome and position."
            ) from error
        if len(column) <= max(rows, default=-1):
            raise ValueError(f"data has {len(column)} features, but values has feature {max(rows)}.")
        column = column if isinstance(column, Sequence) else np.asarray(column)
        result[name] = [column[j] for j in rows]
    return result


def _along(chromosome: Sequence[Any], position: Sequence[Any]) -> tuple[np.ndarray, np.ndarray, dict[str, float]]:
    """Places on one axis, the chromosome of each feature as text, and where the names of the chromosomes go."""
    names = np.array([str(name) for name in chromosome], dtype=object)
    base = np.asarray(position, dtype=np.float64)
    order = sorted(set(names), key=_rank)
    ends = {name: (base[names == name].min(), base[names == name].max()) for name in order}
    gap = _GAP * max(sum(high - low for low, high in ends.values()), 1.0)
    x, ticks, start = np.empty(len(base)), {}, 0.0
    for name in order:
        low, high = ends[name]
        here = names == name
        x[here] = start + base[here] - low
        ticks[name] = start + 0.5 * (high - low)
        start += high - low + gap
    return x, names, ticks


def _rank(name: str) -> tuple[int, str]:
    """Chromosomes in their usual order."""
    bare = name[3:] if name.lower().startswith("chr") else name
    return (int(bare), "") if bare.isdigit() else (_SEX.get(bare.upper(), 1000), bare)


def _mark(ax: Axes, groups: FeatureGroups, place: Mapping[int, int], x: np.ndarray, height: np.ndarray) -> None:
    """Members in another colour, support SNPs as diamonds with their names."""
    members = [place[j] for group in groups for j in group.affiliated.tolist() if j in place]
    supports = [(group, place[group.support]) for group in groups if group.support in place]
    ax.scatter(x[members], height[members], s=9, color=VERMILLION, linewidths=0, label="affiliated")
    at = [k for _, k in supports]
    ax.scatter(
        x[at], height[at], s=26, color=VERMILLION, marker="D", edgecolors="black", linewidths=0.6, label="support", zorder=3
    )
    for group, k in supports[:_MOST_NAMES]:
        if np.isfinite(height[k]):
            ax.annotate(plain(group.labels[0]), (x[k], height[k]), (3, 3), textcoords="offset points", fontsize=6)
