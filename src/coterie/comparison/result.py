"""Result of a comparison: one row per fit, and means over the folds."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from coterie.groups.columns import Content, Record, data_frame
from coterie.markup import notebook_table, of_requested
from coterie.metrics.stability import hamming_stability, tanimoto_stability, weighted_consistency

if TYPE_CHECKING:
    import pandas as pd

OK, FAILED, TIMED_OUT, OUT_OF_MEMORY = "ok", "failed", "timed out", "out of memory"
MEASURES = ("accuracy", "redundancy_rate", "squared_redundancy", "fit_seconds")


class Row(NamedTuple):
    """One method on one fold with one number of features. Measures that were not reached are NaN."""

    method: str
    n_features: int
    fold: int
    n_selected: int
    accuracy: float
    redundancy_rate: float
    squared_redundancy: float
    fit_seconds: float
    status: str
    message: str
    rmse: float = math.nan  # only for regression

    @classmethod
    def without_result(cls, method: str, n_features: int, fold: int, status: str, message: str) -> Row:
        """Return a row with a failure message."""
        return cls(method, n_features, fold, 0, math.nan, math.nan, math.nan, math.nan, status, message)


@dataclass(frozen=True, eq=False, repr=False)
class Comparison:
    """Result of :func:`coterie.compare`.

    Attributes
    ----------
    rows : tuple of Row
        One row per method, number of features and fold, in this order.
    selections : dict of (method, n_features, fold) to ndarray
        Selected features, in order of selection if the method has one.
    n_features_in : int
        Number of features of the data.
    interrupted : bool
        Whether Ctrl-C ended the comparison. Unfinished rows are missing.
    scoring : str
        Score in the column ``accuracy``.
    task : {"classification", "regression"}
        Kind of labels. For regression, the column ``accuracy`` has the name of its score (``r2``), and the column ``rmse`` has
        the root mean squared error.

    Examples
    --------
    >>> from coterie.comparison import Comparison, Row
    >>> rows = (
    ...     Row("gdm", 5, 0, 5, 0.9, 0.1, 0.02, 0.5, "ok", ""),
    ...     Row.without_result("slow", 5, 0, "timed out", "over 60 s"),
    ... )
    >>> Comparison(rows, {("gdm", 5, 0): [3, 1, 4, 15, 9]}, 20)
    Comparison of 2 methods, 1 fold, 5 of 20 features
    method    n  accuracy          redundancy  seconds  stability
    gdm       5  0.900             0.100          0.50  -
    slow      5  timed out (1 of 1): over 60 s
    """

    rows: tuple[Row, ...]
    selections: dict[tuple[str, int, int], np.ndarray]
    n_features_in: int
    interrupted: bool = False
    scoring: str = "accuracy"
    task: str = "classification"
    _cache: Record = field(default_factory=dict)

    @property
    def table(self) -> pd.DataFrame:
        """Pandas data frame with one row per method, number of features and fold."""
        return data_frame(self.row_dicts(), columns=[self._called(name) for name in self._fields])

    @property
    def _fields(self) -> list[str]:
        return [name for name in Row._fields if name != "rmse" or self.task == "regression"]

    def _called(self, name: str) -> str:
        """Return the name of a column. For regression, the score column has the name of the score."""
        if self.task != "regression" or not name.startswith("accuracy"):
            return name
        return name.replace("accuracy", self.scoring)

    def row_dicts(self) -> list[Record]:
        """Return the rows as dictionaries with the column names of the table."""
        return [{self._called(name): getattr(row, name) for name in self._fields} for row in self.rows]

    def summary_dicts(self) -> list[Record]:
        """Return the content of :meth:`summary` as dictionaries."""
        return [{self._called(name): value for name, value in row.items()} for row in self.summary_rows()]

    def summary_rows(self) -> list[Record]:
        """Return the means over the folds as dictionaries, with the score under the name ``accuracy``."""
        if "summary" not in self._cache:
            keys = dict.fromkeys((row.method, row.n_features) for row in self.rows)
            self._cache["summary"] = [self._summary_of(*key) for key in keys]
        return [dict(row) for row in self._cache["summary"]]

    def summary(self) -> pd.DataFrame:
        """Return means over the successful folds, with one row per method and number of features.

        ``n_ok`` of ``n_folds`` folds were successful. Each measure has its standard deviation in a column ``_std`` (with the
        divisor ``n_ok - 1``). ``weighted_consistency`` (CW_rel), ``tanimoto_stability`` (ATI) and ``hamming_stability``
        (ANHI) compare the features selected on the folds. ``status`` is ``"ok"``, or the failure of the other folds.
        """
        return data_frame(self.summary_dicts())

    def _summary_of(self, method: str, n_features: int) -> Record:
        mine = [row for row in self.rows if (row.method, row.n_features) == (method, n_features)]
        good = [row for row in mine if row.status == OK]
        result: Record = {
            "method": method,
            "n_features": n_features,
            "n_folds": len(mine),
            "n_ok": len(good),
            "n_selected": _mean([row.n_selected for row in good]),
        }
        for measure in (*MEASURES, "rmse") if self.task == "regression" else MEASURES:
            values = [getattr(row, measure) for row in good]
            result |= {measure: _mean(values), f"{measure}_std": float(np.std(values, ddof=1)) if len(good) > 1 else math.nan}
        subsets = [self.selections[method, n_features, row.fold] for row in good]
        several = len(subsets) > 1
        return result | {
            "weighted_consistency": weighted_consistency(subsets, self.n_features_in) if several else math.nan,
            "tanimoto_stability": tanimoto_stability(subsets) if several else math.nan,
            "hamming_stability": hamming_stability(subsets, self.n_features_in) if several else math.nan,
            "status": " and ".join(dict.fromkeys(row.status for row in mine if row.status != OK)) or OK,
            "message": next((row.message for row in mine if row.status != OK), ""),
        }

    def best(self, n_features: int | None = None) -> str:
        """Return the method with the best mean accuracy at a number of features, or at any number."""
        rows = [row for row in self.summary_rows() if row["n_ok"] and n_features in (None, row["n_features"])]
        if not rows:
            raise ValueError("No method succeeded" + ("." if n_features is None else f" with {n_features} features."))
        return str(max(rows, key=lambda row: row["accuracy"])["method"])

    def plot(self, metrics: Sequence[str] = ("accuracy", "redundancy_rate", "fit_seconds"), **options: Any) -> Any:
        """Plot measures by number of features. See :func:`coterie.plots.comparison_curves`."""
        from coterie.plots import comparison_curves

        metrics = [metrics] if isinstance(metrics, str) else metrics
        return comparison_curves(self.table, [self._called(metric) for metric in metrics], **options)

    def __repr__(self) -> str:
        summary = self.summary_rows()
        methods = list(dict.fromkeys(row["method"] for row in summary))
        sizes = sorted({row["n_features"] for row in summary})
        n_folds = len({row.fold for row in self.rows})
        words = [f"{len(methods)} method{'s' * (len(methods) != 1)}", f"{n_folds} fold{'s' * (n_folds != 1)}"]
        numbers = ", ".join(str(size) for size in sizes)
        head = f"Comparison of {', '.join(words)}, {numbers} of {self.n_features_in:,} features"
        if self.interrupted:
            head += " (interrupted)"
        width = max([len("method"), *(len(name) for name in methods)]) + 2
        lines = [head, f"{'method':<{width}}{'n':>3}  {self.scoring[:16]:<16}  redundancy  seconds  stability"]
        lines += [f"{row['method']:<{width}}{row['n_features']:>3}  {summary_text(row)}" for row in summary]
        sizes = [(row["method"], of_requested(row["n_selected"], row["n_features"])) for row in summary]
        fewer = [f"{method} {size}" for method, size in sizes if " of " in size]
        lines += [f"Other numbers of features than requested: {', '.join(fewer)}."] if fewer else []
        return "\n".join(line.rstrip() for line in lines)

    def _repr_html_(self) -> str:
        heads = ["method", "features", self.scoring, "redundancy", "seconds", "stability", "notes"]
        summary = self.summary_rows()
        rows = [[row["method"], of_requested(row["n_selected"], row["n_features"]), *summary_cells(row)] for row in summary]
        title = f"Comparison of {len({row['method'] for row in summary})} methods, {self.n_features_in:,} features"
        return notebook_table(title + (" (interrupted)" if self.interrupted else ""), heads, rows, most=200)


def summary_text(row: Record) -> str:
    """Return the measures of a row of the summary in one line, or its failure."""
    if not row["n_ok"]:
        return f"{row['status']} ({row['n_folds']} of {row['n_folds']}): {row['message']}"
    accuracy, redundancy, seconds, stability, _ = summary_cells(row)
    failed = row["n_folds"] - row["n_ok"]
    note = f"  {row['status']} ({failed} of {row['n_folds']})" if failed else ""
    return f"{accuracy:<16}  {redundancy:<10}  {seconds:>7}  {stability.replace('–', '-')}{note}"


def summary_cells(row: Content) -> list[str]:
    """Return accuracy, redundancy, seconds, stability and failure of a row of the summary."""
    failed = row["n_folds"] - row["n_ok"]
    spread = "" if math.isnan(row["accuracy_std"]) else f" ± {row['accuracy_std']:.3f}"
    digits = {"accuracy": 3, "redundancy_rate": 3, "fit_seconds": 2, "weighted_consistency": 3}
    accuracy, *others = ("–" if math.isnan(row[name]) else f"{row[name]:.{count}f}" for name, count in digits.items())
    note = f"{row['status']} ({failed} of {row['n_folds']} folds): {row['message']}" if failed else ""
    return [accuracy + spread, *others, note]


def _mean(values: Sequence[float]) -> float:
    return float(np.mean(values)) if len(values) else math.nan
