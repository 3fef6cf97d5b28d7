"""Figures of a fitted model and its data: scores, effects, correlations of members, samples (GRM Figs 4-7)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike
from sklearn.decomposition import PCA
from sklearn.utils.multiclass import type_of_target
from sklearn.utils.validation import check_array, check_consistent_length, column_or_1d

from coterie._parameters import Integer, check
from coterie.data import as_source
from coterie.data.view import FeatureView
from coterie.estimators.base import GroupDiscovery, settings_of
from coterie.estimators.documentation import documented
from coterie.groups import FeatureGroups
from coterie.inputs.opening import opened, source_of
from coterie.inputs.types import FeaturesLike, TargetsLike
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
from coterie.report.held_out import HeldOut
from coterie.report.held_out import score_curve as validation_curve
from coterie.selection import Selector, feature_positions

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from matplotlib.image import AxesImage

_MAX_NAMED_GROUPS, _MAX_GROUP_NAME_LENGTH = 6, 24
_MAX_NAME_LENGTH = 28
# Diverging colour-blind safe colour map from orange over white to blue.
_COLOURS = ("#c25100", "#f4b183", "#f7f7f7", "#74add1", "#0b5d93")
_MAX_NAMED_CLASSES = 20


@documented
def score_curve(model: GroupDiscovery, *, ax: Axes | None = None, title: str | None = None) -> Figure:
    """Draw the held-out score against the number of features, with the selected number.

    Parameters
    ----------
    model : fitted GroupDiscoveryClassifierCV, GroupDiscoveryRegressorCV or GroupDiscoveryOneClassCV
        Model with ``cv_results_``. The curve shows the selected settings, its band the standard error over the folds. With
        ``nested=True``, a diamond shows the nested score, and a line the score of a constant prediction.

    %(picture)s

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from coterie import GroupDiscoveryClassifierCV
    >>> from coterie.plots import score_curve
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> model = GroupDiscoveryClassifierCV(5, Cs=[0.1], cv=3, random_state=0).fit(X, y)
    >>> score_curve(model).axes[0].get_xlabel()
    'number of support features'
    """
    curve = validation_curve(model)
    if curve is None:
        raise ValueError(f"This {type(model).__name__} has no cv_results_ by number of features. Fit a GroupDiscovery…CV.")
    sizes, mean, chosen = np.array(curve["sizes"]), np.array(curve["mean"]), curve["chosen"]
    ax = axes_or_new(ax, 4.8, 3.4)
    if curve["folds"] > 1:
        error = np.array(curve["error"])
        ax.fill_between(sizes, mean - error, mean + error, color=BLUE, alpha=0.18, linewidth=0)
    ax.plot(sizes, mean, "o-", color=BLUE, markersize=3.5, linewidth=1.6, gid="curve", label="held-out score")
    ax.axvline(chosen, color=BLACK, linestyle=":", linewidth=1, label=f"chosen: {chosen}")
    if hasattr(model, "nested_scores_"):
        value, (low, high), constant = _nested_score(model)
        spread = [[max(value - low, 0.0)], [max(high - value, 0.0)]]
        ax.errorbar([chosen], [value], spread, fmt="D", color=BLACK, markersize=5, label="nested score, 95% interval")
        ax.axhline(constant, color=GREY, linestyle="--", linewidth=1, label="constant prediction")
    if sizes.max() > 20 * max(1, sizes.min()):
        ax.set_xscale("log")
    ax.set_xlabel("number of support features")
    ax.set_ylabel(plain(curve["score"]))
    ax.grid(alpha=0.25)
    ax.legend(frameon=False, fontsize=8)
    return finished(ax, title)


def _nested_score(model: GroupDiscovery) -> tuple[float, tuple[float, float], float]:
    """Return the held-out score of the whole procedure, its interval and the score of the baseline."""
    if hasattr(model, "held_out_scores_"):
        figures = (model.held_out_scores_, model.held_out_intervals_, model.baseline_scores_)
        value, interval, constant = (own[model.scoring_] for own in figures)
    else:  # a file of an earlier version
        held_out = HeldOut("", model.nested_scores_.tolist(), float(np.nanmean(model.constant_scores_)), float("nan"))
        value, interval, constant = held_out.value, held_out.interval or (np.nan, np.nan), held_out.constant
    return value, (value, value) if np.isnan(interval[0]) else interval, constant


@documented
def effect_confidence(found: GroupsLike, *, ax: Axes | None = None, title: str | None = None) -> Figure:
    """Draw the groups by effect and confidence, with the level reached with permuted labels.

    Parameters
    ----------
    found : fitted estimator or FeatureGroups
        Groups with confidences (see :func:`coterie.group_confidence`). The level of permuted labels is drawn if ``found`` is
        an estimator.

    %(picture)s

    Examples
    --------
    >>> from coterie import FeatureGroup, FeatureGroups
    >>> from coterie.plots import effect_confidence
    >>> groups = [FeatureGroup(3, [7], [0.9], confidence=0.96, effect=0.4), FeatureGroup(1, [], confidence=0.1, effect=-0.1)]
    >>> effect_confidence(FeatureGroups(groups)).axes[0].get_ylabel()
    'confidence'
    """
    groups = groups_of(found)
    if any(group.confidence is None or group.effect is None for group in groups):
        raise ValueError(
            "The groups have no confidences or no effects. Call group_confidence(model, X, y).attach_to(model) and "
            "group_effects(model, X, y).attach_to(model) first."
        )
    known = [group for group in groups if group.confidence == group.confidence]  # NaN: fixed features have no confidence
    ax = axes_or_new(ax, 5.2, 3.6)
    level = getattr(getattr(found, "confidence_", None), "reached_by_chance", float("nan"))
    if not np.isnan(level):
        ax.axhspan(0, level, color=GREY, alpha=0.15, linewidth=0)
        ax.axhline(level, color=GREY, linestyle="--", linewidth=1)
        ax.annotate(
            f"permuted labels: up to {level:.2f}", (1, 0), (-4, 4), xycoords="axes fraction", textcoords="offset points",
            ha="right", fontsize=8, color="#555555",
        )  # fmt: skip
    effects = np.array([group.effect for group in known], dtype=float)
    confidences = np.array([group.confidence for group in known], dtype=float)
    sizes = np.array([len(group) for group in known], dtype=float)
    colours = np.where(effects < 0, VERMILLION, BLUE)
    ax.scatter(
        effects, confidences, s=18 + 60 * np.sqrt(sizes / max(1.0, sizes.max(initial=1.0))), c=colours, alpha=0.6, gid="groups"
    )
    for k in np.argsort(-np.abs(effects) * confidences, kind="stable")[:_MAX_NAMED_GROUPS]:
        place, name = (effects[k], confidences[k]), _short(known[k].labels[0], _MAX_GROUP_NAME_LENGTH)
        ax.annotate(name, place, (6, 3), textcoords="offset points", fontsize=8)
    ax.set_ylim(-0.03, 1.05)
    ax.set_xlabel("effect per standard deviation")
    ax.set_ylabel("confidence")
    ax.grid(alpha=0.25)
    return finished(ax, title)


@documented
def member_correlations(
    model: GroupDiscovery,
    X: FeaturesLike,
    group: int = 0,
    *,
    max_members: int = 24,
    ax: Axes | None = None,
    title: str | None = None,
) -> Figure:
    """Draw the correlations between the members of a group, by the correlation measure of the model.

    Parameters
    ----------
    model : fitted group-discovery estimator
        Model with ``groups_``.

    X : {array-like, sparse matrix, data frame, path, store} of shape (n_samples, n_features)
        Data. Only the columns of the members are read.

    group : int, default=0
        Index of the group, in order of selection.

    max_members : int, default=24
        Largest number of members to draw: the support feature and the members with the highest correlations with it.

    %(picture)s

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
    check("max_members", max_members, Integer(1))
    groups = groups_of(model)
    check("group", group, Integer(0, len(groups) - 1))
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


@documented
def class_effects(found: GroupsLike, *, max_groups: int = 40, ax: Axes | None = None, title: str | None = None) -> Figure:
    """Draw the effect of each group on each class or target.

    Effects on classes are log-odds per standard deviation. Those on several targets, which may have different units, are
    relative to the largest absolute effect on the target.

    Parameters
    ----------
    found : fitted estimator or FeatureGroups
        Groups of more than two classes, or of several targets, with effects (see :func:`coterie.group_effects`).

    max_groups : int, default=40
        Largest number of groups to draw, in order of selection.

    %(picture)s

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from coterie import GroupDiscoveryClassifier, group_effects
    >>> from coterie.plots import class_effects
    >>> X, y = load_iris(return_X_y=True, as_frame=True)
    >>> model = GroupDiscoveryClassifier(2, threshold=0.9).fit(X, y)
    >>> figure = class_effects(group_effects(model, X, y).attach_to(model))
    >>> figure.axes[0].images[0].get_array().shape
    (2, 3)
    """
    check("max_groups", max_groups, Integer(1))
    groups = [group for group in groups_of(found) if group.effect is not None][: int(max_groups)]
    by_class = [group.class_effects for group in groups if group.class_effects is not None and len(group.class_effects) > 2]
    by_target = [group.target_effects for group in groups if group.target_effects is not None]
    known = by_class or by_target
    if not known:
        raise ValueError(
            "class_effects requires the effects of a model of more than two classes or of several targets. Call "
            "group_effects(model, X, y).attach_to(model) first. With two classes or one target, a group has one signed effect."
        )
    effects, unit = np.array([list(own.values()) for own in known]), "log-odds per standard deviation"
    if by_target:
        largest = np.abs(effects).max(axis=0)
        effects, unit = effects / np.where(largest > 0.0, largest, 1.0), "effect relative to the largest one on the target"
    names = [_short(group.labels[0]) for group in groups]
    classes = [_short(label) for label in known[0]]
    ax = axes_or_new(ax, 2.6 + 0.42 * len(classes), 1.6 + 0.22 * len(names))
    drawn = _matrix(ax, effects, float(np.abs(effects).max()) or 1.0, names, classes)
    ax.figure.colorbar(drawn, ax=ax, label=unit, shrink=0.8)
    return finished(ax, title)


def _matrix(ax: Axes, values: np.ndarray, largest: float, rows: list[str], columns: list[str]) -> AxesImage:
    from matplotlib.colors import LinearSegmentedColormap

    colours = LinearSegmentedColormap.from_list("coterie", _COLOURS)
    drawn = ax.imshow(values, cmap=colours, vmin=-largest, vmax=largest, aspect="auto", interpolation="nearest")
    ax.set_yticks(np.arange(len(rows)), rows, fontsize=8)
    ax.set_xticks(np.arange(len(columns)), columns, fontsize=8, rotation=45, ha="right", rotation_mode="anchor")
    ax.tick_params(length=0)
    for side in ax.spines.values():
        side.set_visible(False)
    return drawn


def _short(name: object, max_length: int = _MAX_NAME_LENGTH) -> str:
    text = " ".join(plain(name).split()) or " "
    return text if len(text) <= max_length else f"{text[: max_length - 1]}…"


@documented
def feature_scatter(
    X: FeaturesLike,
    y: TargetsLike = None,
    features: FeatureGroups | Selector | ArrayLike | None = None,
    *,
    standardize: bool = False,
    ax: Axes | None = None,
    title: str | None = None,
) -> Figure:
    """Draw the samples by class, on the first two principal components of selected features.

    Classes form separate clusters if the features distinguish them and are not redundant.

    Parameters
    ----------
    X : {array-like, sparse matrix, data frame, path, store} of shape (n_samples, n_features)
        Data. Only the selected columns are read.

    y : array-like of shape (n_samples,), optional
        Classes, shown by colours and markers, or numbers, shown by a colour scale.

    features : fitted selector, FeatureGroups, or array-like of int, str or bool, optional
        At least two features: the selected features of a selector, the support features of groups, indices, names or a
        mask. All features by default.

    standardize : bool, default=False
        Whether to divide features by their standard deviation first.

    %(picture)s

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
        raise ValueError(f"features has {values.shape[1]} feature(s). At least 2 are required.")
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
    return finished(ax, title)


def _chosen(features: FeatureGroups | Selector | ArrayLike | None, n_features: int, names: Sequence[str] | None) -> np.ndarray:
    """Return the indices of the requested features."""
    if features is None:
        return np.arange(n_features)
    if isinstance(features, FeatureGroups):
        features = features.support
    elif hasattr(features, "get_support"):
        features = features.get_support(indices=True)
    return feature_positions(features, n_features, names, "features")


def _classes(ax: Axes, points: np.ndarray, labels: np.ndarray, own: bool) -> None:
    """Draw one colour and marker per class, and a legend unless there are too many classes."""
    classes = list(dict.fromkeys(labels.tolist())) if labels.dtype.kind == "O" else np.unique(labels).tolist()
    if labels.dtype.kind == "O":
        classes.sort(key=lambda label: (type(label).__name__, str(label)))
    for number, label in enumerate(classes):
        look = style(number)
        mine = points[labels == label]
        ax.scatter(
            mine[:, 0], mine[:, 1], s=16, color=look.color, marker=look.marker, linewidths=0, alpha=0.75, label=plain(label)
        )
    if len(classes) <= _MAX_NAMED_CLASSES:
        if own:  # the figure is enlarged for the names beside the panel
            width, height = figure_of(ax).get_size_inches()
            figure_of(ax).set_size_inches(width + 0.06 * max(len(str(label)) for label in classes), height)
        ax.legend(fontsize=8, loc="upper left", bbox_to_anchor=(1.0, 1.0), frameon=False, borderaxespad=0.2)
