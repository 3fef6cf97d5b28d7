"""Figures of held-out predictions: ROC curves, calibration, table of confusions, predicted against observed numbers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from coterie.estimators.documentation import documented
from coterie.groups.columns import Content
from coterie.plots.canvas import BLUE, GREY, axes_or_new, finished, new_figure, plain, style
from coterie.report.result import Discovery

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# Largest number of classes with counts in the cells of the table.
_COUNTED = 15


@documented
def roc_curves(discovery: Discovery, *, ax: Axes | None = None, title: str | None = None) -> Figure:
    """Draw the ROC curve of held-out predictions; with more than two classes, one per class against all others.

    The curves of the folds are averaged with the numbers of their pairs as weights, so that the area is the AUC within folds.

    Parameters
    ----------
    discovery : Discovery
        Result of :func:`coterie.discover` for classes, with validation.

    %(picture)s

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> import coterie
    >>> from coterie.plots import roc_curves
    >>> found = coterie.discover(*load_breast_cancer(return_X_y=True), max_features_to_select=3, n_pairs=0)
    >>> roc_curves(found).axes[0].get_ylabel()
    'true positive rate'
    """
    curves = _diagnostics(discovery, "roc", "classes")
    ax = axes_or_new(ax, 4.0, 3.8)
    for number, curve in enumerate(curves):
        name = f"{plain(curve['of'])}: {curve['area']:.3f}"
        false, true = curve["false_positive_rate"], curve["true_positive_rate"]
        ax.plot(false, true, color=style(number).color, linestyle=style(number).linestyle, label=name)
    ax.plot([0, 1], [0, 1], color=GREY, linestyle=":", linewidth=1)
    ax.set(xlabel="false positive rate", ylabel="true positive rate", aspect="equal")
    ax.legend(frameon=False, fontsize=8, title="area under the curve", title_fontsize=8, loc="lower right")
    return finished(ax, title)


@documented
def calibration_curve(discovery: Discovery, *, ax: Axes | None = None, title: str | None = None) -> Figure:
    """Draw observed shares of a class against held-out probabilities, in bins of similar probabilities.

    With more than two classes, the probability is that of the predicted class, and the share that of correct predictions.
    Error bars are Wilson's 95 % intervals; with sample groups, a bin counts as many samples as it has groups.

    Parameters
    ----------
    discovery : Discovery
        Result of :func:`coterie.discover` for classes, with validation and at least 20 samples.

    %(picture)s

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> import coterie
    >>> from coterie.plots import calibration_curve
    >>> found = coterie.discover(*load_breast_cancer(return_X_y=True), max_features_to_select=3, n_pairs=0)
    >>> calibration_curve(found).axes[0].get_xlabel()
    'predicted probability of 1'
    """
    _diagnostics(discovery, "roc", "classes")
    (curve,) = _diagnostics(discovery, "calibration", "classes, at least 20 of them")
    ax = axes_or_new(ax, 4.0, 3.8)
    _with_intervals(ax, curve)
    ax.plot([0, 1], [0, 1], color=GREY, linestyle=":", linewidth=1)
    what = "the predicted class" if curve["of"] is None else plain(curve["of"])
    ax.set(xlabel=f"predicted probability of {what}", ylabel="observed share", aspect="equal")
    return finished(ax, title)


@documented
def confusion_table(discovery: Discovery, *, ax: Axes | None = None, title: str | None = None) -> Figure:
    """Draw the number of held-out samples by class and predicted class, coloured by their share of the class.

    Parameters
    ----------
    discovery : Discovery
        Result of :func:`coterie.discover` for classes, with validation.

    %(picture)s

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> import coterie
    >>> from coterie.plots import confusion_table
    >>> found = coterie.discover(*load_iris(return_X_y=True), n_pairs=0)
    >>> confusion_table(found).axes[0].get_xlabel()
    'predicted class'
    """
    confusion = None if discovery.held_out is None else discovery.held_out.confusion
    if confusion is None:
        raise ValueError("There are no held-out classes. Pass a result of coterie.discover for classes, with validation.")
    counts, names = np.asarray(confusion["counts"], dtype=np.float64), [plain(name) for name in confusion["classes"]]
    size = len(names)
    ax = axes_or_new(ax, 2.2 + 0.45 * size, 1.6 + 0.4 * size)
    total = counts.sum(axis=1, keepdims=True)
    share = np.divide(counts, total, out=np.zeros_like(counts), where=total > 0.0)
    ax.imshow(share, cmap="Blues", vmin=0.0, vmax=1.0, aspect="auto")
    for (row, column), count in np.ndenumerate(counts) if size <= _COUNTED else ():
        colour = "white" if share[row, column] > 0.55 else "black"
        ax.text(column, row, f"{count:g}", ha="center", va="center", fontsize=8, color=colour)
    ax.set_xticks(range(size), names, rotation=45 if max(map(len, names)) > 4 else 0, ha="right" if size > 1 else "center")
    ax.set_yticks(range(size), names)
    ax.set(xlabel="predicted class", ylabel="class")
    return finished(ax, title)


@documented
def predicted_observed(discovery: Discovery, *, title: str | None = None) -> Figure:
    """Draw observed against held-out predicted numbers or counts, with means of samples with similar predictions.

    Several targets have one panel each. Error bars are 95 % intervals of the means.

    Parameters
    ----------
    discovery : Discovery
        Result of :func:`coterie.discover` for numbers or counts, with validation.

    title : str, default=None
        Title of the figure.

    Returns
    -------
    figure : matplotlib Figure

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> import coterie
    >>> from coterie.plots import predicted_observed
    >>> found = coterie.discover(*load_diabetes(return_X_y=True), task="regression", n_pairs=0)
    >>> predicted_observed(found).axes[0].get_xlabel()
    'predicted target'
    """
    found = _diagnostics(discovery, None, "numbers")
    points, curves = ({own["of"]: own for own in found[name]} for name in ("points", "calibration"))
    owners = list(dict.fromkeys([*points, *curves]))
    if found["roc"] or not owners:
        raise ValueError("There are no held-out numbers. Pass a result of coterie.discover for numbers, with validation.")
    figure = new_figure(4.0 * min(3, len(owners)), 3.6 * -(-len(owners) // 3))
    panels = np.ravel(figure.subplots(-(-len(owners) // 3), min(3, len(owners)), squeeze=False))
    for ax, name in zip(panels, owners, strict=False):
        if name in points:
            ax.plot(points[name]["predicted"], points[name]["observed"], ".", color=BLUE, alpha=0.35, markersize=4)
        if name in curves:
            _with_intervals(ax, curves[name])
        low, high = max(ax.get_xlim()[0], ax.get_ylim()[0]), min(ax.get_xlim()[1], ax.get_ylim()[1])
        if low < high:
            ax.plot([low, high], [low, high], color=GREY, linestyle=":", linewidth=1)
        label = plain(name or discovery.target.get("label") or "target")
        ax.set(xlabel=f"predicted {label}", ylabel=f"observed {label}")
    for ax in panels[len(owners) :]:
        ax.remove()
    if title:
        figure.suptitle(title)
    return figure


def _diagnostics(discovery: Discovery, kind: str | None, what: str) -> Any:
    """Return the curves of one kind, or all."""
    held_out = getattr(discovery, "held_out", None)
    found = None if held_out is None else held_out.diagnostics
    if found is None or (kind is not None and not found[kind]):
        raise ValueError(
            f"There are no held-out predictions of {what}. Pass a result of coterie.discover for {what}, with validation."
        )
    return found if kind is None else found[kind]


def _with_intervals(ax: Axes, curve: Content) -> None:
    """Draw observed means against predicted ones."""
    observed = np.asarray(curve["observed"])
    spread = np.maximum([observed - curve["low"], curve["high"] - observed], 0.0)
    ax.errorbar(curve["predicted"], observed, spread, fmt="o", color=BLUE, markerfacecolor="white", elinewidth=1)
