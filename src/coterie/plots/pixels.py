"""Support and affiliated pixels on their image (ICML Figs 1, 6; TPAMI Fig. 9)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from coterie._parameters import OneOf, check
from coterie.plots.canvas import BLACK, SKY, VERMILLION, axes_or_new, figure_of
from coterie.plots.found import groups_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_AFFILIATED, _SUPPORT = 1, 2
_ROLES = {_AFFILIATED: ("affiliated", SKY), _SUPPORT: ("support", VERMILLION)}
_EMPTY = "#f0f0f0"


def pixel_map(
    groups: Any,
    shape: Sequence[int],
    *,
    order: Literal["C", "F"] = "C",
    background: Any = None,
    by: Literal["role", "group"] = "role",
    ax: Any = None,
    title: str | None = None,
) -> Figure:
    """Show which pixels of an image are support features, and which are affiliated with them.

    Parameters
    ----------
    groups : FeatureGroups or fitted estimator
        Groups whose features are the pixels of an image.

    shape : (int, int)
        Rows and columns of the image.

    order : {"C", "F"}, default="C"
        How pixels are numbered: along the rows, or down the columns (as images from MATLAB are).

    background : array-like of shape (n_pixels,) or of the image's shape, optional
        A picture to see the pixels on, such as the mean of a class. A flat one is numbered like the pixels.

    by : {"role", "group"}, default="role"
        What colours stand for: support and affiliated pixels, or the groups; these have a dot on their support pixel.

    ax : matplotlib Axes, optional
        Where to draw; a new figure by default.

    title : str, optional
        Title of the picture.

    Returns
    -------
    figure : matplotlib Figure

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
            f"The groups have feature {largest}, but an image of {rows} x {columns} has {rows * columns} pixels; check shape."
        )
    picture = None if background is None else _picture(background, (rows, columns), order)
    values = np.zeros(rows * columns, dtype=np.int64)
    for number, group in enumerate(found, start=1):
        values[group.affiliated] = number if by == "group" else _AFFILIATED
    for number, group in enumerate(found, start=1):  # last, so that a support pixel is one in any case
        values[group.support] = number if by == "group" else _SUPPORT
    ax = axes_or_new(ax, 3.2, 3.2 * min(2.0, max(0.5, rows / columns)) + 0.4)
    if picture is not None:
        ax.imshow(picture, cmap="gray", interpolation="nearest", gid="background")
    _overlay(ax, values.reshape((rows, columns), order=order), len(found) if by == "group" else 0, picture is not None)
    if by == "group":
        place = np.unravel_index(found.support, (rows, columns), order=order)
        ax.scatter(place[1], place[0], s=5, color=BLACK, linewidths=0, gid="support")
    ax.set(xticks=[], yticks=[], xlim=(-0.5, columns - 0.5), ylim=(rows - 0.5, -0.5))
    _legend(ax, values, by, len(found))
    if title:
        ax.set_title(title)
    return figure_of(ax)


def _image_shape(shape: Any) -> tuple[int, int]:
    sizes = np.atleast_1d(np.asarray(shape))
    if sizes.shape != (2,) or sizes.dtype.kind not in "iu" or (sizes < 1).any():
        raise ValueError(f"shape={shape!r} must be the rows and columns of an image, such as (28, 28).")
    return int(sizes[0]), int(sizes[1])


def _picture(background: Any, shape: tuple[int, int], order: Literal["C", "F"]) -> np.ndarray:
    picture = np.asarray(background, dtype=np.float64)
    if picture.shape == (shape[0] * shape[1],):
        return picture.reshape(shape, order=order)
    if picture.shape != shape:
        raise ValueError(f"background has the shape {picture.shape}; it must have {shape}, or be flat with as many pixels.")
    return picture


def _overlay(ax: Axes, values: np.ndarray, n_groups: int, transparent: bool) -> None:
    """The coloured pixels; the others are left out of the image."""
    from matplotlib.colors import ListedColormap, hsv_to_rgb

    if n_groups:
        # Hues a golden section apart: neighbours in order of selection look different, whatever their number.
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
        text = f"{n_groups} group{'s' * (n_groups != 1)} in colours; dots: support pixels"
        ax.set_xlabel(text, fontsize=8)
        return
    counts = {role: int(np.sum(values == role)) for role in (_SUPPORT, _AFFILIATED)}
    handles = [Patch(color=_ROLES[role][1], label=f"{count} {_ROLES[role][0]}") for role, count in counts.items()]
    ax.legend(handles=handles, loc="upper center", bbox_to_anchor=(0.5, 0.0), ncols=2, frameon=False, fontsize=8)
