"""Samples in the plane of the chosen features' first two principal components (GRM Figs 4-7)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.decomposition import PCA
from sklearn.utils.multiclass import type_of_target
from sklearn.utils.validation import check_array, check_consistent_length, column_or_1d

from coterie.groups import FeatureGroups
from coterie.inputs.opening import opened, source_of
from coterie.plots.canvas import BLUE, axes_or_new, figure_of, plain, style
from coterie.selection import feature_positions

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_NAMED_CLASSES = 20


def feature_scatter(
    X: Any, y: Any = None, features: Any = None, *, standardize: bool = False, ax: Any = None, title: str | None = None
) -> Figure:
    """Scatter the samples over the first two principal components of some features, by class.

    Features that tell the classes apart without repeating each other make separate clouds.

    Parameters
    ----------
    X : {array-like, sparse matrix, data frame, path, store} of shape (n_samples, n_features)
        The data; only the chosen columns are read.

    y : array-like of shape (n_samples,), optional
        Classes, each with its colour and mark, or numbers, which get a colour scale.

    features : fitted selector, FeatureGroups, or array-like of int, str or bool, optional
        The features: those that a selector keeps, the support features of groups, indices, names or a mask. All by
        default. At least two.

    standardize : bool, default=False
        Whether to divide features by their standard deviation first.

    ax : matplotlib Axes, optional
        Where to draw; a new figure by default.

    title : str, optional
        Title of the picture.

    Returns
    -------
    figure : matplotlib Figure

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from coterie import GroupDiscoveryClassifier
    >>> from coterie.plots import feature_scatter
    >>> X, y = load_iris(return_X_y=True, as_frame=True)
    >>> model = GroupDiscoveryClassifier(2, n_features_per_round=1, threshold=0.9).fit(X, y)
    >>> figure = feature_scatter(X, y, model)
    >>> figure.axes[0].get_xlabel()
    'component 1 (95 % of the variance)'
    """
    X, y = opened(X, y)
    source = source_of(X)
    columns = source.columns(_chosen(features, source.shape[1], source.feature_names))
    values = check_array(columns if isinstance(columns, np.ndarray) else columns.toarray(), dtype=np.float64)
    if values.shape[1] < 2:
        raise ValueError(f"features has {values.shape[1]} feature(s); a plane needs at least 2.")
    if standardize:
        spread = values.std(axis=0)
        values = values / np.where(spread > 0.0, spread, 1.0)
    pca = PCA(2, svd_solver="full").fit(values)
    points, shares = pca.transform(values), np.nan_to_num(pca.explained_variance_ratio_)
    own = ax is None
    ax = axes_or_new(ax, 5.2, 4.2)
    if y is None:
        ax.scatter(points[:, 0], points[:, 1], s=14, color=BLUE, linewidths=0, alpha=0.8)
    else:
        labels = column_or_1d(y, warn=True)
        check_consistent_length(values, labels)
        if labels.dtype.kind == "f" and type_of_target(labels) == "continuous":
            drawn = ax.scatter(points[:, 0], points[:, 1], s=14, c=labels, cmap="cividis", linewidths=0)
            ax.figure.colorbar(drawn, ax=ax, label="y")
        else:
            _classes(ax, points, labels, own)
    for axis, share, number in zip((ax.xaxis, ax.yaxis), shares, (1, 2), strict=True):
        axis.set_label_text(f"component {number} ({100 * share:.0f} % of the variance)")
    if title:
        ax.set_title(title)
    return figure_of(ax)


def _chosen(features: Any, n_features: int, names: Any) -> np.ndarray:
    """Indices of the features meant."""
    if features is None:
        return np.arange(n_features)
    if isinstance(features, FeatureGroups):
        features = features.support
    elif hasattr(features, "get_support"):
        features = features.get_support(indices=True)
    return feature_positions(features, n_features, names, "features")


def _classes(ax: Axes, points: np.ndarray, labels: np.ndarray, own: bool) -> None:
    """One colour and mark a class; the legend is left out where it would cover the picture."""
    classes = list(dict.fromkeys(labels.tolist())) if labels.dtype.kind == "O" else np.unique(labels).tolist()
    if labels.dtype.kind == "O":
        classes.sort(key=lambda label: (type(label).__name__, str(label)))
    for number, label in enumerate(classes):
        look = style(number)
        mine = points[labels == label]
        ax.scatter(
            mine[:, 0], mine[:, 1], s=16, color=look.color, marker=look.marker, linewidths=0, alpha=0.75, label=plain(label)
        )
    if len(classes) <= _NAMED_CLASSES:
        if own:  # the names go beside the panel, not at its expense
            width, height = figure_of(ax).get_size_inches()
            figure_of(ax).set_size_inches(width + 0.06 * max(len(str(label)) for label in classes), height)
        ax.legend(fontsize=8, loc="upper left", bbox_to_anchor=(1.0, 1.0), frameon=False, borderaxespad=0.2)
