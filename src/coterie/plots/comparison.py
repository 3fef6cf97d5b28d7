"""Accuracy, redundancy and time against the number of features (GDM: ICML Figs 2-5, TPAMI Figs 4-6)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from coterie.plots.canvas import Style, figure_of, new_figure, plain, style

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from matplotlib.lines import Line2D

_WORDS = {
    "accuracy": "accuracy",
    "redundancy_rate": "redundancy rate",
    "squared_redundancy": "squared redundancy",
    "fit_seconds": "fit time (seconds)",
    "n_selected": "features selected",
}
_LOGARITHMIC = ("fit_seconds",)
_NEEDED = ("method", "n_features", "status")


def comparison_curves(
    table: Any, metrics: Sequence[str] = ("accuracy", "redundancy_rate", "fit_seconds"), *, axes: Any = None
) -> Figure:
    """Draw the metrics of a comparison against the number of features, with one panel per metric and one curve per method.

    A curve is the mean over the folds. Its band extends from the lowest to the highest fold. Runs that failed or exceeded a
    limit of time or memory are omitted from the curves and counted in the legend.

    Parameters
    ----------
    table : data frame
        One row per run, as returned by :func:`coterie.compare`, with the columns ``method``, ``n_features``, ``status`` and
        the metrics. The styles of the first 77 methods are different.

    metrics : sequence of str, default=("accuracy", "redundancy_rate", "fit_seconds")
        Columns to draw. ``fit_seconds`` has a logarithmic axis.

    axes : sequence of matplotlib Axes, optional
        Axes to draw on, one per metric. The legend is drawn in the last one. By default, a new figure with the legend
        below the panels.

    Returns
    -------
    figure : matplotlib Figure

    Examples
    --------
    >>> import pandas as pd
    >>> from coterie.plots import comparison_curves
    >>> table = pd.DataFrame(
    ...     {
    ...         "method": ["ours", "ours", "RFE", "RFE"],
    ...         "n_features": [5, 10, 5, 10],
    ...         "accuracy": [0.8, 0.9, 0.7, None],
    ...         "fit_seconds": [0.1, 0.2, 3.0, None],
    ...         "status": ["ok", "ok", "ok", "timed out"],
    ...     }
    ... )
    >>> figure = comparison_curves(table, ["accuracy", "fit_seconds"])
    >>> [text.get_text() for text in figure.legends[0].get_texts()]
    ['ours', 'RFE (1 of 2 runs timed out)']
    >>> figure.savefig("comparison.png")  # doctest: +SKIP
    """
    metrics = [metrics] if isinstance(metrics, str) else list(metrics)
    columns = _columns(table, metrics)
    panels, figure = _panels(axes, len(metrics))
    handles = []
    for number, method in enumerate(dict.fromkeys(columns["method"].tolist())):
        look = style(number)
        mine = {name: values[columns["method"] == method] for name, values in columns.items()}
        for ax, metric in zip(panels, metrics, strict=True):
            _draw(ax, mine, metric, look)
        handles.append(_handle(str(method), mine["status"], look))
    for ax, metric in zip(panels, metrics, strict=True):
        ax.set_xlabel("number of features")
        ax.set_ylabel(_WORDS.get(metric, metric.replace("_", " ")))
        ax.grid(alpha=0.25)
        if metric in _LOGARITHMIC:
            ax.set_yscale("log")
    if axes is None:
        _legend_below(figure, handles)
    else:
        panels[-1].legend(handles=handles, frameon=False)
    return figure


def _columns(table: Any, metrics: Sequence[str]) -> dict[str, np.ndarray]:
    """Return the columns to draw as arrays, metrics as floats."""
    names = getattr(table, "columns", None)
    if names is None:
        raise TypeError(f"table must be a data frame as returned by coterie.compare, not {type(table).__name__}.")
    if not metrics:
        raise ValueError("metrics is empty. Name at least one column of the table.")
    known = [str(name) for name in names]
    missing = [name for name in (*_NEEDED, *metrics) if name not in known]
    if missing:
        raise ValueError(f"The table has no column {missing[0]!r}. Its columns are {', '.join(known)}.")
    if not len(table):
        raise ValueError("The table has no rows to draw.")
    result = {name: np.asarray(table[name]) for name in _NEEDED}
    for name in ("n_features", *metrics):
        try:
            result[name] = np.asarray(table[name], dtype=np.float64)
        except (TypeError, ValueError) as error:
            raise ValueError(f"The column {name!r} of the table must contain numbers: {error}.") from error
    return result


def _panels(axes: Any, n_metrics: int) -> tuple[list[Axes], Figure]:
    """Return the axes of the metrics, given or new, and their figure."""
    if axes is None:
        figure = new_figure(4.3 * n_metrics, 3.3)
        return [figure.add_subplot(1, n_metrics, number + 1) for number in range(n_metrics)], figure
    given = list(np.atleast_1d(np.asarray(axes, dtype=object)).ravel())
    if len(given) != n_metrics or not all(hasattr(ax, "plot") for ax in given):
        raise ValueError(f"axes must be {n_metrics} matplotlib Axes, one per metric, but has {len(given)} object(s).")
    return given, figure_of(given[0])


def _draw(ax: Axes, rows: dict[str, np.ndarray], metric: str, look: Style) -> None:
    """Draw the curve and the band of a method."""
    good = (rows["status"] == "ok") & np.isfinite(rows[metric])
    if metric in _LOGARITHMIC:
        good &= rows[metric] > 0.0
    sizes = np.unique(rows["n_features"][good])
    if not len(sizes):
        return
    folds = [rows[metric][good & (rows["n_features"] == size)] for size in sizes]
    lowest, mean, highest = ([function(values) for values in folds] for function in (np.min, np.mean, np.max))
    ax.plot(sizes, mean, **look._asdict(), markersize=4.5, linewidth=1.4, gid="curve")
    ax.fill_between(sizes, lowest, highest, color=look.color, alpha=0.12, linewidth=0)


def _handle(method: str, status: np.ndarray, look: Style) -> Line2D:
    """Return the legend entry of a method, pale if it has no curve."""
    from matplotlib.lines import Line2D

    alpha = 1.0 if (status == "ok").any() else 0.3
    return Line2D([], [], **look._asdict(), markersize=4.5, linewidth=1.4, alpha=alpha, label=plain(_label(method, status)))


def _legend_below(figure: Figure, handles: Sequence[Line2D]) -> None:
    """Draw a legend below the panels and enlarge the figure for it."""
    width, height = figure.get_size_inches()
    longest = max(len(str(handle.get_label())) for handle in handles)
    n_columns = min(len(handles), max(1, int(width / (0.65 + 0.075 * longest))))
    figure.set_size_inches(width, height + 0.21 * -(-len(handles) // n_columns))
    figure.legend(handles=handles, loc="outside lower center", ncols=n_columns, frameon=False, fontsize=9)


def _label(method: str, status: np.ndarray) -> str:
    """Return the name of a method with the number of unsuccessful runs."""
    counts = {word: int(np.sum(status == word)) for word in sorted(set(status.tolist())) if word != "ok"}
    if not counts:
        return method
    if len(counts) == 1 and sum(counts.values()) == len(status):
        return f"{method} ({next(iter(counts))})"
    listed = ", ".join(f"{count} {word}" for word, count in counts.items())
    first, rest = listed.split(" ", 1)
    return f"{method} ({first} of {len(status)} runs {rest})"
