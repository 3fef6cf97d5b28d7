"""Survival by held-out risk."""

from __future__ import annotations

from typing import TYPE_CHECKING

from coterie.estimators.documentation import documented
from coterie.plots.canvas import BLUE, ORANGE, VERMILLION, axes_or_new, finished
from coterie.report.result import Discovery

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_STYLES = ((BLUE, "-"), (ORANGE, "--"), (VERMILLION, ":"))


@documented
def survival_curves(discovery: Discovery, *, ax: Axes | None = None, title: str | None = None) -> Figure:
    """Draw Kaplan–Meier curves of samples of low, medium and high held-out risk, with the p-value of the log-rank test.

    Each sample has the tertile of its risk in its fold, by the model that was chosen and fitted without the fold.

    Parameters
    ----------
    discovery : Discovery
        Result of :func:`coterie.discover` for survival times, with validation.

    %(picture)s

    Examples
    --------
    >>> import numpy as np
    >>> import coterie
    >>> from coterie.plots import survival_curves
    >>> rng = np.random.default_rng(0)
    >>> X = rng.standard_normal((150, 10))
    >>> y = np.column_stack([rng.exponential(np.exp(-X[:, 2])), np.ones(150)])
    >>> found = coterie.discover(X, y, task="survival", max_features_to_select=3, n_pairs=0)
    >>> survival_curves(found).axes[0].get_ylabel()
    'probability of survival'
    """
    held_out = getattr(discovery, "held_out", None)
    curves = None if held_out is None else held_out.curves
    if curves is None:
        raise ValueError("There are no held-out risks. Pass a result of coterie.discover(task='survival') with validation.")
    ax = axes_or_new(ax, 4.8, 3.4)
    for own, (colour, dashes) in zip(curves["groups"], _STYLES, strict=True):
        label = f"{own['name']} ({own['events']} of {own['samples']})"
        ax.step(own["times"], own["survival"], where="post", color=colour, linestyle=dashes, label=label)
    ax.set(xlabel="time", ylabel="probability of survival", ylim=(0.0, 1.02))
    p_value = curves["p_value"]
    ax.legend(frameon=False, title=None if p_value is None else f"log-rank p = {p_value:.2g}")
    return finished(ax, title)
