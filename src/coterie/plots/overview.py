"""What a report shows first, as figures: the score against the number of features, and the groups by effect and confidence."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from coterie.plots.canvas import BLACK, BLUE, GREY, VERMILLION, axes_or_new, figure_of, plain
from coterie.plots.found import groups_of
from coterie.validation.score_table import standard_error

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_NAMED = 6
_LETTERS = 24


def score_curve(model: Any, *, ax: Any = None, title: str | None = None) -> Figure:
    """Draw the held-out score against the number of features, with the size that was chosen.

    Parameters
    ----------
    model : fitted GroupDiscoveryClassifierCV, GroupDiscoveryRegressorCV or GroupDiscoveryOneClassCV
        With ``cv_results_``. The curve is that of the settings that were chosen, its band the standard error over the folds;
        with ``nested=True`` a diamond shows the score of the whole procedure, a line that of a constant prediction.

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
    >>> from coterie import GroupDiscoveryClassifierCV
    >>> from coterie.plots import score_curve
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> model = GroupDiscoveryClassifierCV(5, Cs=[0.1], cv=3, random_state=0).fit(X, y)
    >>> score_curve(model).axes[0].get_xlabel()
    'number of support features'
    """
    results = getattr(model, "cv_results_", None)
    if results is None or "n_features" not in results or not hasattr(model, "n_features_"):
        raise ValueError(f"This {type(model).__name__} has no cv_results_ by number of features; fit a GroupDiscovery…CV.")
    own = np.ones(len(results["n_features"]), dtype=bool)
    for name in ("C", "threshold", "standardize", "predict_with"):
        if name in results and hasattr(model, f"{name}_"):
            own &= np.asarray(results[name]) == getattr(model, f"{name}_")
    order = np.flatnonzero(own)[np.argsort(results["n_features"][own], kind="stable")]
    sizes, mean = results["n_features"][order], results["mean_test_score"][order]
    folds = np.array([results[name][order] for name in results if name.startswith("split")])
    ax = axes_or_new(ax, 4.8, 3.4)
    if len(folds) > 1:
        error = standard_error(folds)
        ax.fill_between(sizes, mean - error, mean + error, color=BLUE, alpha=0.18, linewidth=0)
    ax.plot(sizes, mean, "o-", color=BLUE, markersize=3.5, linewidth=1.6, gid="curve", label="held out")
    chosen = int(model.n_features_)
    ax.axvline(chosen, color=BLACK, linestyle=":", linewidth=1, label=f"chosen: {chosen}")
    if hasattr(model, "nested_scores_"):
        scores, constant = model.nested_scores_, float(model.constant_scores_.mean())
        spread = float(standard_error(scores))
        ax.errorbar([chosen], [scores.mean()], [spread], fmt="D", color=BLACK, markersize=5, label="whole procedure")
        ax.axhline(constant, color=GREY, linestyle="--", linewidth=1, label="constant prediction")
    if sizes.max() > 20 * max(1, sizes.min()):
        ax.set_xscale("log")
    ax.set_xlabel("number of support features")
    ax.set_ylabel(plain(getattr(model, "scoring", None) or "held-out score"))
    ax.grid(alpha=0.25)
    ax.legend(frameon=False, fontsize=8)
    if title:
        ax.set_title(title)
    return figure_of(ax)


def effect_confidence(found: Any, *, ax: Any = None, title: str | None = None) -> Figure:
    """Draw the groups by effect and confidence, with the level that shuffled labels reach.

    Parameters
    ----------
    found : fitted estimator or FeatureGroups
        Groups with confidences (see :func:`coterie.group_confidence`). The level of shuffled labels is drawn where ``found``
        is the estimator.

    ax : matplotlib Axes, optional
        Where to draw; a new figure by default.

    title : str, optional
        Title of the picture.

    Returns
    -------
    figure : matplotlib Figure

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
            "The groups have no confidence or no effect yet. Call group_confidence(model, X, y).attach_to(model) first."
        )
    known = [group for group in groups if group.confidence == group.confidence]  # NaN: fixed features have none
    ax = axes_or_new(ax, 5.2, 3.6)
    level = getattr(getattr(found, "confidence_", None), "reached_by_chance", float("nan"))
    if not np.isnan(level):
        ax.axhspan(0, level, color=GREY, alpha=0.15, linewidth=0)
        ax.axhline(level, color=GREY, linestyle="--", linewidth=1)
        ax.annotate(
            f"shuffled labels: up to {level:.2f}", (1, 0), (-4, 4), xycoords="axes fraction", textcoords="offset points",
            ha="right", fontsize=8, color="#555555",
        )  # fmt: skip
    effects = np.array([group.effect for group in known], dtype=float)
    confidences = np.array([group.confidence for group in known], dtype=float)
    sizes = np.array([len(group) for group in known], dtype=float)
    colours = np.where(effects < 0, VERMILLION, BLUE)
    ax.scatter(
        effects, confidences, s=18 + 60 * np.sqrt(sizes / max(1.0, sizes.max(initial=1.0))), c=colours, alpha=0.6, gid="groups"
    )
    for k in np.argsort(-np.abs(effects) * confidences, kind="stable")[:_NAMED]:
        text = plain(known[k].labels[0])
        ax.annotate(
            text if len(text) <= _LETTERS else f"{text[: _LETTERS - 1]}…", (effects[k], confidences[k]), (6, 3),
            textcoords="offset points", fontsize=8,
        )  # fmt: skip
    ax.set_ylim(-0.03, 1.05)
    ax.set_xlabel("effect on standardised features")
    ax.set_ylabel("confidence")
    ax.grid(alpha=0.25)
    if title:
        ax.set_title(title)
    return figure_of(ax)
