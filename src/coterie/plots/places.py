"""Figures of groups by location: pixels of an image (ICML Figs 1, 6; TPAMI Fig. 9), SNPs on chromosomes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import ArrayLike

from coterie._parameters import OneOf, check
from coterie.data.source import FeatureSource
from coterie.estimators.documentation import documented
from coterie.groups import FeatureGroups
from coterie.inputs.opening import unwrap
from coterie.inputs.types import FeaturesLike
from coterie.marginal import Association
from coterie.plots.canvas import (
    BLACK,
    BLUE,
    GREY,
    SKY,
    VERMILLION,
    GroupsLike,
    axes_or_new,
    finished,
    groups_of,
    plain,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_AFFILIATED, _SUPPORT = 1, 2
_ROLES = {_AFFILIATED: ("affiliated", SKY), _SUPPORT: ("support", VERMILLION)}
_EMPTY = "#f0f0f0"
# Gap between chromosomes as a share of the genome's length, and largest number of support SNPs with names.
_GAP = 0.01
_MAX_NAMES = 25
# Lower limit of p-values, for their logarithms.
_MIN_P_VALUE = 1e-300
_SEX = {"X": 23, "Y": 24, "XY": 25, "MT": 26, "M": 26}


@documented
def pixel_map(
    groups: GroupsLike,
    shape: Sequence[int],
    *,
    order: Literal["C", "F"] = "C",
    background: ArrayLike | None = None,
    by: Literal["role", "group"] = "role",
    ax: Axes | None = None,
    title: str | None = None,
) -> Figure:
    """Draw the support and affiliated features of groups as pixels of an image.

    Parameters
    ----------
    groups : FeatureGroups or fitted estimator
        Groups whose features are the pixels of an image.

    shape : (int, int)
        Rows and columns of the image.

    order : {"C", "F"}, default="C"
        Order of the pixels: along the rows, or down the columns (as in MATLAB).

    background : array-like of shape (n_pixels,) or of the image's shape, optional
        Background image, such as the mean of a class. A one-dimensional array has the order of the pixels.

    by : {"role", "group"}, default="role"
        Meaning of the colours: role (support or affiliated) or group. With "group", a dot marks the support pixel.

    %(picture)s

    See Also
    --------
    group_graph : Groups of features that are not pixels.

    Examples
    --------
    >>> from coterie import FeatureGroup, FeatureGroups
    >>> from coterie.plots import pixel_map
    >>> groups = FeatureGroups([FeatureGroup(0, [1, 4], [0.9, 0.8]), FeatureGroup(11, [])])
    >>> figure = pixel_map(groups, (3, 4))
    >>> figure.axes[0].images[-1].get_array().filled(0)
    array([[2, 1, 0, 0],
           [1, 0, 0, 0],
           [0, 0, 0, 2]])
    """
    check("order", order, OneOf("C", "F"))
    check("by", by, OneOf("role", "group"))
    found = groups_of(groups)
    rows, columns = _image_shape(shape)
    largest = int(found.members.max())
    if largest >= rows * columns:
        raise ValueError(
            f"The groups have feature {largest}, but an image of {rows} x {columns} has {rows * columns} pixels. Check shape."
        )
    image = None if background is None else _background_image(background, (rows, columns), order)
    values = np.zeros(rows * columns, dtype=np.int64)
    for number, group in enumerate(found, start=1):
        values[group.affiliated] = number if by == "group" else _AFFILIATED
    for number, group in enumerate(found, start=1):  # last, because a support pixel may be affiliated with another group
        values[group.support] = number if by == "group" else _SUPPORT
    ax = axes_or_new(ax, 3.2, 3.2 * min(2.0, max(0.5, rows / columns)) + 0.4)
    if image is not None:
        ax.imshow(image, cmap="gray", interpolation="nearest", gid="background")
    _overlay(ax, values.reshape((rows, columns), order=order), len(found) if by == "group" else 0, image is not None)
    if by == "group":
        place = np.unravel_index(found.support, (rows, columns), order=order)
        ax.scatter(place[1], place[0], s=5, color=BLACK, linewidths=0, gid="support")
    ax.set(xticks=[], yticks=[], xlim=(-0.5, columns - 0.5), ylim=(rows - 0.5, -0.5))
    _legend(ax, values, by, len(found))
    return finished(ax, title)


def _image_shape(shape: Sequence[int]) -> tuple[int, int]:
    sizes = np.atleast_1d(np.asarray(shape))
    if sizes.shape != (2,) or sizes.dtype.kind not in "iu" or (sizes < 1).any():
        raise ValueError(f"shape={shape!r} must be the numbers of rows and columns of an image, such as (28, 28).")
    return int(sizes[0]), int(sizes[1])


def _background_image(background: ArrayLike, shape: tuple[int, int], order: Literal["C", "F"]) -> np.ndarray:
    image = np.asarray(background, dtype=np.float64)
    n_pixels = shape[0] * shape[1]
    if image.shape == (n_pixels,):
        return image.reshape(shape, order=order)
    if image.shape != shape:
        raise ValueError(f"background has shape {image.shape}, but must have shape {shape} or ({n_pixels},).")
    return image


def _overlay(ax: Axes, values: np.ndarray, n_groups: int, transparent: bool) -> None:
    """Draw the coloured pixels. The other pixels are masked."""
    from matplotlib.colors import ListedColormap, hsv_to_rgb

    if n_groups:
        # Hues that differ by the golden ratio: consecutive groups have different colours for any number of groups.
        hues = (0.58 + 0.6180339887 * np.arange(n_groups)) % 1.0
        colours: Any = hsv_to_rgb(np.column_stack([hues, np.full(n_groups, 0.6), 0.95 - 0.25 * (np.arange(n_groups) % 2)]))
    else:
        colours = [colour for _, colour in _ROLES.values()]
    ax.set_facecolor(_EMPTY)
    ax.imshow(
        np.ma.masked_equal(values, 0),
        cmap=ListedColormap(colours),
        vmin=0.5,
        vmax=len(colours) + 0.5,
        interpolation="nearest",
        alpha=0.65 if transparent else 1.0,
        gid="pixels",
    )


def _legend(ax: Axes, values: np.ndarray, by: str, n_groups: int) -> None:
    from matplotlib.patches import Patch

    if by == "group":
        text = f"{n_groups} group{'s' * (n_groups != 1)}, one colour per group; dots: support pixels"
        ax.set_xlabel(text, fontsize=8)
        return
    counts = {role: int(np.sum(values == role)) for role in (_SUPPORT, _AFFILIATED)}
    handles = [Patch(color=_ROLES[role][1], label=f"{count} {_ROLES[role][0]}") for role, count in counts.items()]
    ax.legend(handles=handles, loc="upper center", bbox_to_anchor=(0.5, 0.0), ncols=2, frameon=False, fontsize=8)


@documented
def manhattan(
    values: Association | ArrayLike,
    data: FeaturesLike | Mapping[str, Sequence[object]] | None = None,
    *,
    groups: GroupsLike | None = None,
    threshold: float | None = 5e-8,
    ax: Axes | None = None,
    title: str | None = None,
) -> Figure:
    """Draw p-values (or scores) of SNPs by position on the chromosomes, and mark the members of groups.

    Parameters
    ----------
    values : Association, or array-like of shape (n_features,)
        Result of :func:`coterie.association`, drawn as -log10 of the p-values, or scores of all features, such as a model's
        ``scores_``, drawn without transformation.

    data : path, Dataset, Store, FeatureSource, mapping or data frame, optional
        Source of ``"chromosome"`` and ``"position"`` of the features. Not required for an association of a .bed file, which
        contains them.

    groups : fitted estimator or FeatureGroups, optional
        Groups whose members are marked: support SNPs by a diamond and their name, affiliated SNPs by colour.

    threshold : float or None, default=5e-8
        Level of a dashed line (for p-values only). None means no line.

    %(picture)s

    Notes
    -----
    The p-values of group members are computed from the samples in which the groups were found. Compare them with the
    threshold for all tests, not with 0.05.

    Examples
    --------
    >>> import numpy as np
    >>> from coterie import association
    >>> from coterie.data import annotated, as_source
    >>> from coterie.plots import manhattan
    >>> rng = np.random.default_rng(0)
    >>> X = rng.integers(0, 3, (100, 6)).astype(np.int8)
    >>> positions = {"chromosome": ["1", "1", "1", "2", "2", "X"], "position": [5, 90, 400, 3, 70, 8]}
    >>> found = association(annotated(as_source(X), positions), X[:, 4] + rng.standard_normal(100))
    >>> figure = manhattan(found, threshold=0.01)
    >>> [label.get_text() for label in figure.axes[0].get_xticklabels()]
    ['1', '2', 'X']
    """
    feature, height, known, axis_label = _heights(values)
    places = _places(data, feature, known)
    shown = np.isfinite(height)
    if not shown.any():
        raise ValueError("values has no finite value to draw.")
    x, chromosomes, ticks = _along(places["chromosome"], places["position"])
    own = ax is None
    ax = axes_or_new(ax, 8.4, 3.6)
    for number, chromosome in enumerate(ticks):
        here = shown & (chromosomes == chromosome)
        # Rasterised, because vector graphics of many points are large.
        ax.scatter(x[here], height[here], s=4, color=(BLUE, SKY)[number % 2], linewidths=0, rasterized=True)
    if groups is not None:
        _mark(ax, groups_of(groups), dict(zip(feature.tolist(), range(len(feature)), strict=True)), x, height)
    if threshold is not None and isinstance(values, Association):
        if not 0.0 < threshold <= 1.0:
            raise ValueError(f"threshold={threshold!r} must be a p-value above 0 and at most 1, or None.")
        ax.axhline(-np.log10(threshold), color=GREY, linestyle="--", linewidth=0.9)
    ax.set_xticks(list(ticks.values()), [plain(name) for name in ticks], fontsize=8)
    ax.set_xlabel("chromosome")
    ax.set_ylabel(axis_label)
    ax.set_ylim(bottom=min(0.0, float(height[shown].min())))
    if own:
        ax.spines[["top", "right"]].set_visible(False)
    return finished(ax, title)


def _heights(values: Association | ArrayLike) -> tuple[np.ndarray, np.ndarray, Mapping[str, Sequence[object]], str]:
    """Return the features, the values to draw, the annotations with their positions, and the axis label."""
    if isinstance(values, Association):
        with np.errstate(invalid="ignore"):
            height = -np.log10(np.maximum(values.p_value, _MIN_P_VALUE))
        return values.feature, height, values.annotations, "$-\\log_{10}$ p-value"
    scores = np.asarray(values, dtype=np.float64)
    if scores.ndim != 1:
        raise ValueError("values must be an Association, or a one-dimensional array with one score per feature.")
    return np.arange(len(scores)), scores, {}, "score"


def _places(data: Any, feature: np.ndarray, known: Mapping[str, Any]) -> dict[str, list[Any]]:
    """Return chromosome and position of the features."""
    if data is None:
        table, rows = known, range(len(feature))
    elif isinstance(data, Mapping):  # columns by name; elsewhere, a mapping has several matrices
        table, rows = data, feature.tolist()
    else:
        found = unwrap(data)
        own = found.X.annotations if isinstance(found.X, FeatureSource) else None
        table = getattr(found.origin, "feature_info", None) or own or found.X
        rows = feature.tolist()
    result = {}
    for name in ("chromosome", "position"):
        try:
            column = table[name]
        except (KeyError, TypeError, IndexError, ValueError) as error:
            raise ValueError(
                f"The features have no {name}. Pass data: the .bed file, the result of open_features, or a table with the "
                "columns chromosome and position."
            ) from error
        if len(column) <= max(rows, default=-1):
            raise ValueError(f"data has {len(column)} features, but values has feature {max(rows)}.")
        column = column if isinstance(column, Sequence) else np.asarray(column)
        result[name] = [column[j] for j in rows]
    return result


def _along(chromosome: Sequence[object], position: Sequence[object]) -> tuple[np.ndarray, np.ndarray, dict[str, float]]:
    """Return positions on one axis, the chromosome of each feature as text, and the tick positions of chromosomes."""
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
    """Return a key that sorts chromosomes in their usual order."""
    bare = name[3:] if name.lower().startswith("chr") else name
    return (int(bare), "") if bare.isdigit() else (_SEX.get(bare.upper(), 1000), bare)


def _mark(ax: Axes, groups: FeatureGroups, place: Mapping[int, int], x: np.ndarray, height: np.ndarray) -> None:
    """Draw members in another colour, and support SNPs as diamonds with their names."""
    members = [place[j] for group in groups for j in group.affiliated.tolist() if j in place]
    supports = [(group, place[group.support]) for group in groups if group.support in place]
    ax.scatter(x[members], height[members], s=9, color=VERMILLION, linewidths=0, label="affiliated")
    at = [k for _, k in supports]
    ax.scatter(
        x[at], height[at], s=26, color=VERMILLION, marker="D", edgecolors="black", linewidths=0.6, label="support", zorder=3
    )
    for group, k in supports[:_MAX_NAMES]:
        if np.isfinite(height[k]):
            ax.annotate(plain(group.labels[0]), (x[k], height[k]), (3, 3), textcoords="offset points", fontsize=6)
