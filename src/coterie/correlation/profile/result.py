"""What :func:`coterie.correlation_profile` returns."""

from __future__ import annotations

import json
import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from coterie.markup import notebook_table

if TYPE_CHECKING:
    import pandas as pd

_COLUMNS = ["low", "high", "pairs", "share", "share_at_least", "share_low", "share_high"]


@dataclass(frozen=True, eq=False)
class CorrelationProfile:
    """How the absolute correlations of all pairs of features are distributed.

    Attributes
    ----------
    edges : ndarray of shape (n_bins + 1,)
        Edges of the bins, from 0 to 1. A bin holds its lower edge, the last one both.
    counts : ndarray of int of shape (n_bins,)
        Pairs in each bin: of all pairs, or of those drawn.
    n_features : int
        Number of features.
    n_constant : int
        Constant features. They have no correlation, so pairs with them are left out.
    n_pairs : int
        Number of pairs of features that are not constant.
    n_drawn : int or None
        Number of pairs drawn at random; None when all pairs were counted.
    confidence : float
        Probability with which each share of a sample lies within its limits.
    limits : ndarray of shape (n_bins, 2)
        Confidence limits (Clopper and Pearson's) of the shares; the shares themselves when all pairs were counted.

    Examples
    --------
    >>> import numpy as np
    >>> from coterie import correlation_profile
    >>> X = np.array([[0, 0, 1], [0, 0, 0], [1, 2, 1], [1, 2, 0]])
    >>> profile = correlation_profile(X, bins=2)
    >>> profile.counts
    array([2, 1])
    >>> profile.share_at_least(0.5)
    0.3333333333333333
    >>> print(profile)
    |correlation|  share of pairs
    0.0 - 0.5      66.667 %        ##########################  2
    0.5 - 1.0      33.333 %        ####################        1
    3 of 3 pairs of 3 features; bars are logarithmic
    """

    edges: np.ndarray
    counts: np.ndarray
    n_features: int
    n_constant: int
    n_pairs: int
    n_drawn: int | None
    confidence: float
    limits: np.ndarray

    @property
    def n_counted(self) -> int:
        """Number of pairs behind the counts."""
        return self.n_pairs if self.n_drawn is None else self.n_drawn

    @property
    def exact(self) -> bool:
        """Whether all pairs were counted."""
        return self.n_drawn is None

    @property
    def fractions(self) -> np.ndarray:
        """Share of the pairs in each bin."""
        return self.counts / self.n_counted if self.n_counted else np.full(len(self.counts), np.nan)

    @property
    def survival(self) -> np.ndarray:
        """Share of the pairs at or over the lower edge of each bin: one minus the distribution function, as in Fig. 1."""
        totals = np.cumsum(self.counts[::-1])[::-1]
        return totals / self.n_counted if self.n_counted else np.full(len(self.counts), np.nan)

    def share_at_least(self, threshold: float) -> float:
        """Share of the pairs with an absolute correlation of at least ``threshold``, which must be an edge of a bin.

        Parameters
        ----------
        threshold : float
            An edge.
        """
        place = np.flatnonzero(np.isclose(self.edges[:-1], threshold, rtol=0, atol=1e-9))
        if not len(place):
            raise ValueError(f"threshold={threshold} is no edge of the profile's bins; ask for bins with that edge.")
        return float(self.survival[place[0]])

    def rows(self) -> list[dict[str, Any]]:
        """One dictionary a bin."""
        columns = (self.edges[:-1], self.edges[1:], self.counts, self.fractions, self.survival, *self.limits.T)
        values = zip(*(np.asarray(column).tolist() for column in columns), strict=True)
        return [dict(zip(_COLUMNS, row, strict=True)) for row in values]

    def to_frame(self) -> pd.DataFrame:
        """A pandas data frame with one row a bin (needs ``pip install coterie[tabular]``)."""
        try:
            import pandas as pd
        except ImportError as error:
            raise ImportError("to_frame() needs pandas: pip install 'coterie[tabular]'.") from error
        return pd.DataFrame(self.rows(), columns=_COLUMNS)

    def to_dict(self) -> dict[str, Any]:
        """All of it as plain numbers."""
        return {
            "n_features": self.n_features,
            "n_constant": self.n_constant,
            "n_pairs": self.n_pairs,
            "n_drawn": self.n_drawn,
            "exact": self.exact,
            "confidence": self.confidence,
            "bins": [
                {k: None if isinstance(v, float) and math.isnan(v) else v for k, v in row.items()} for row in self.rows()
            ],
        }

    def to_json(self, *, indent: int | None = None) -> str:
        """All of it as JSON text."""
        return json.dumps(self.to_dict(), indent=indent)

    def text(self, width: int = 30, mark: str = "#") -> str:
        """A histogram in text, with bars on a logarithmic scale (the shares span many orders of magnitude).

        Parameters
        ----------
        width : int, default=30
            Length of the longest bar.
        mark : str, default="#"
            What bars are made of.
        """
        digits = max(1, *(len(f"{edge:.4f}".rstrip("0")) - 2 for edge in self.edges))
        longest = math.log10(max(self.n_counted, 1)) + 1.0
        lines = []
        for row in self.rows():
            length = 0 if not row["pairs"] else max(1, round(width * (math.log10(row["pairs"]) + 1.0) / longest))
            share = f"{100 * row['share']:.3f} %" if not 0 < row["share"] < 1e-5 else f"{100 * row['share']:.1e} %"
            if not self.exact:
                share += f" ({100 * row['share_low']:.3g} to {100 * row['share_high']:.3g})"
            lines.append((f"{row['low']:.{digits}f} - {row['high']:.{digits}f}", share, mark * length, f"{row['pairs']:,}"))
        lines.insert(0, ("|correlation|", "share of pairs", "", ""))
        sizes = [max(len(line[i]) for line in lines) for i in range(3)]
        text = [
            f"{a.ljust(sizes[0])}  {b.ljust(sizes[1])}  {bar.ljust(sizes[2])}  {count}".rstrip() for a, b, bar, count in lines
        ]
        return "\n".join([*text, self._summary()])

    def _summary(self) -> str:
        some = f" ({self.n_constant:,} constant, left out)" if self.n_constant else ""
        how = "" if self.exact else f" drawn at random; in brackets: limits of {self.confidence:.0%} confidence"
        return f"{self.n_counted:,} of {self.n_pairs:,} pairs of {self.n_features:,} features{some}{how}; bars are logarithmic"

    def __str__(self) -> str:
        return self.text()

    def _repr_html_(self) -> str:
        rows = [
            [
                f"{row['low']:.3g} – {row['high']:.3g}",
                f"{100 * row['share']:.3g} %",
                f"{100 * row['share_at_least']:.3g} %",
                f"{row['pairs']:,}",
            ]
            for row in self.rows()
        ]
        heads = ["|correlation|", "share of pairs", "at or over", "pairs"]
        kind = "all pairs" if self.exact else f"{self.n_counted:,} pairs drawn"
        return notebook_table(f"Correlations of {self.n_features:,} features, {kind}", heads, rows, most=50)

    def plot(self, ax: Any = None, *, title: str | None = None) -> Any:
        """Draw the shares as bars on a logarithmic axis, as in the paper's Fig. 1 (needs ``pip install coterie[plot]``).

        Parameters
        ----------
        ax : matplotlib axes, optional
            Where to draw; a new figure when there are none.
        title : str, optional
            Title of the drawing.

        Returns
        -------
        figure : matplotlib Figure
            As of every plot; ``figure.axes`` has the axes.
        """
        try:
            import matplotlib.figure  # noqa: F401  # named first, so that its absence is what is told

            from coterie._figure import Picture
        except ImportError as error:
            raise ImportError("plot() needs matplotlib: pip install 'coterie[plot]'.") from error
        if ax is None:
            ax = Picture(figsize=(6.4, 3.6), layout="constrained").add_subplot()
        shown = self.counts > 0
        share = 100 * self.fractions
        errors = None if self.exact else np.abs(100 * self.limits.T - share)[:, shown]
        middle, width = (self.edges[:-1] + self.edges[1:]) / 2, np.diff(self.edges)
        ax.bar(middle[shown], share[shown], 0.92 * width[shown], yerr=errors, color="#4477aa", label="pairs in the bin")
        over = self.survival > 0
        ax.plot(
            self.edges[:-1][over], 100 * self.survival[over], "o-", color="#cc6677", markersize=3, label="pairs at or over"
        )
        ax.set_yscale("log")
        ax.set_xlim(-0.01, 1.01)
        ax.set_xlabel("absolute Pearson correlation")
        ax.set_ylabel("% of feature pairs")
        ax.legend(frameon=False)
        if title:
            ax.set_title(title)
        return ax.figure.figure
