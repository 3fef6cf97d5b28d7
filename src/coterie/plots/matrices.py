"""Matrices of a report as figures: correlations between the members of a group, and signed effects by class."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.base import is_classifier

from coterie._parameters import Whole, check
from coterie.data import as_source
from coterie.data.view import FeatureView
from coterie.estimators.base import settings_of
from coterie.inputs.opening import opened, source_of
from coterie.plots.canvas import axes_or_new, figure_of, plain
from coterie.plots.found import groups_of
from coterie.search.outcome import group_effects

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_LETTERS = 28
# From orange over white to blue: told apart by all kinds of sight.
_COLOURS = ("#c25100", "#f4b183", "#f7f7f7", "#74add1", "#0b5d93")


def member_correlations(
    model: Any, X: Any, group: int = 0, *, max_members: int = 24, ax: Any = None, title: str | None = None
) -> Figure:
    """Draw the correlations between the members of a group, by the measure that made the groups.

    Parameters
    ----------
    model : fitted group-discovery estimator
        With ``groups_``.

    X : {array-like, sparse matrix, data frame, path, store} of shape (n_samples, n_features)
        The data; only the members' columns are read.

    group : int, default=0
        Which group, in order of selection.

    max_members : int, default=24
        Members to draw: the support feature and those that are most correlated with it.

    ax : matplotlib Axes, optional
        Where to draw; a new figure by default.

    title : str, optional
        Title of the picture.

    Returns
    -------
    figure : matplotlib Figure

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from coterie import GroupDiscoveryClassifier
    >>> from coterie.plots import member_correlations
    >>> X, y = load_breast_cancer(return_X_y=True, as_frame=True)
    >>> figure = member_correlations(GroupDiscoveryClassifier(2).fit(X, y), X)
    >>> figure.axes[0].images[0].get_array().diagonal().tolist()[:2]
    [1.0, 1.0]
    """
    check("max_members", max_members, Whole(1))
    groups = groups_of(model)
    check("group", group, Whole(0, len(groups) - 1))
    chosen = groups[int(group)]
    members = chosen.members[: int(max_members)]
    source = source_of(opened(X, None)[0])
    measure = settings_of(model).measure(FeatureView.of(as_source(source.columns(members))))
    matrix = np.asarray(measure.within(np.arange(len(members))), dtype=float)
    np.fill_diagonal(matrix, 1.0)
    names = [_short(name) for name in chosen.labels[: len(members)]]
    size = min(9.0, 2.2 + 0.24 * len(names))
    ax = axes_or_new(ax, size + 0.8, size)
    drawn = _matrix(ax, matrix, 1.0, names, names)
    ax.figure.colorbar(drawn, ax=ax, label="correlation", shrink=0.8)
    more = len(chosen) - len(members)
    ax.set_title(
        title if title is not None else f"{names[0]}: {len(chosen)} features" + (f", {more} not drawn" if more else "")
    )
    return figure_of(ax)


def class_effects(model: Any, X: Any, *, max_groups: int = 40, ax: Any = None, title: str | None = None) -> Figure:
    """Draw which group speaks for which class, and which against: signed effects on standardised features.

    Parameters
    ----------
    model : fitted GroupDiscoveryClassifier or GroupDiscoveryClassifierCV
        For more than two classes.

    X : {array-like, sparse matrix, data frame, path, store} of shape (n_samples, n_features)
        The data, for the scales of the features that predict.

    max_groups : int, default=40
        Groups to draw, in order of selection.

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
    >>> from coterie.plots import class_effects
    >>> X, y = load_iris(return_X_y=True, as_frame=True)
    >>> figure = class_effects(GroupDiscoveryClassifier(2, threshold=0.9).fit(X, y), X)
    >>> figure.axes[0].images[0].get_array().shape
    (2, 3)
    """
    check("max_groups", max_groups, Whole(1))
    groups = groups_of(model)
    if not is_classifier(model) or len(model.classes_) < 3:
        raise ValueError("class_effects needs a classifier of more than two classes; of two, groups have one signed effect.")
    source = source_of(opened(X, None)[0])
    features = np.asarray(model.prediction_features_)
    scale = as_source(source.columns(features)).moments().scale
    effects = group_effects(groups, features, np.asarray(model.prediction_coef_), scale)[: int(max_groups)]
    names = [_short(group.labels[0]) for group in groups[: int(max_groups)]]
    classes = [_short(label) for label in model.classes_.tolist()]
    ax = axes_or_new(ax, 2.6 + 0.42 * len(classes), 1.6 + 0.22 * len(names))
    drawn = _matrix(ax, effects, float(np.abs(effects).max()) or 1.0, names, classes)
    ax.figure.colorbar(drawn, ax=ax, label="effect (blue: for the class)", shrink=0.8)
    if title:
        ax.set_title(title)
    return figure_of(ax)


def _matrix(ax: Axes, values: np.ndarray, largest: float, rows: list[str], columns: list[str]) -> Any:
    from matplotlib.colors import LinearSegmentedColormap

    colours = LinearSegmentedColormap.from_list("coterie", _COLOURS)
    drawn = ax.imshow(values, cmap=colours, vmin=-largest, vmax=largest, aspect="auto", interpolation="nearest")
    ax.set_yticks(np.arange(len(rows)), rows, fontsize=8)
    ax.set_xticks(np.arange(len(columns)), columns, fontsize=8, rotation=45, ha="right", rotation_mode="anchor")
    ax.tick_params(length=0)
    for side in ax.spines.values():
        side.set_visible(False)
    return drawn


def _short(name: Any) -> str:
    text = " ".join(plain(name).split()) or " "
    return text if len(text) <= _LETTERS else f"{text[: _LETTERS - 1]}…"
