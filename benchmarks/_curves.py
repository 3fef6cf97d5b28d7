"""Parts shared by the scripts of the papers' figures: a comparison, its figure and its table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from _tables import DOCS, FIGURES, markdown_table

import coterie
from coterie.comparison import Comparison
from coterie.plots import comparison_curves


def run(
    methods: Mapping[str, Any],
    shared: Sequence[str],
    X: Any,
    y: np.ndarray,
    folds: Any,
    sizes: Sequence[int],
    limit: float,
    *,
    untimed: Sequence[str] = (),
    **options: Any,
) -> Comparison:
    """Compare methods; the ``shared`` ones, whose time does not depend on the number of features, are fitted once.

    The times of ``untimed`` methods are removed.
    """
    limits = {"time_limit": limit, "memory_limit": "4GB"}
    parts = []
    for share in (True, False):
        mine = {name: method for name, method in methods.items() if (name in shared) == share}
        if mine:
            found = coterie.compare(mine, X, y, n_features=sizes, cv=folds, share_fits=share, verbose=1, **limits, **options)
            parts.append(found)
    place = list(methods).index
    rows = sorted((row for part in parts for row in part.rows), key=lambda row: place(row.method))
    rows = [row._replace(fit_seconds=np.nan) if row.method in untimed else row for row in rows]
    selections = {key: features for part in parts for key, features in part.selections.items()}
    interrupted = any(part.interrupted for part in parts)
    return Comparison(tuple(rows), selections, parts[0].n_features_in, interrupted, parts[0].scoring)


def draw(comparison: Comparison, name: str) -> Path:
    """Draw score (accuracy by default), redundancy and time against the number of features."""
    table = comparison.table.rename(columns={"accuracy": comparison.scoring})
    path = FIGURES / f"{name}.png"
    comparison_curves(table, (comparison.scoring, "redundancy_rate", "fit_seconds")).savefig(path, dpi=100)
    return path


def section(comparison: Comparison, sizes: Sequence[int], picture: Path, words: str) -> str:
    """Return figure and table: accuracies at some numbers of features, redundancy and time at the last one."""
    methods = dict.fromkeys(row.method for row in comparison.rows)
    table = markdown_table([_table_row(comparison, method, sizes) for method in methods])
    return f"{words}\n\n![{picture.stem}]({picture.relative_to(DOCS).as_posix()})\n\n{table}"


def _table_row(comparison: Comparison, method: str, sizes: Sequence[int]) -> dict[str, Any]:
    """Return accuracies, redundancy, time and notes of one method; a dash if no fold succeeded."""
    good = {row["n_features"]: row for row in comparison.summary_rows() if row["method"] == method and row["n_ok"]}
    last = sizes[-1]
    at = max(good, default=None) if last not in good else last
    few = "" if at is None or good[at]["n_selected"] == at else f"{good[at]['n_selected']:,.0f} features at {at}"
    return {
        "method": method,
        **{f"accuracy, {size}": f"{good[size]['accuracy']:.3f}" if size in good else "–" for size in sizes},
        f"redundancy, {last}": f"{good[last]['redundancy_rate']:.3f}" if last in good else "–",
        f"seconds, {last}": f"{good[last]['fit_seconds']:.2f}" if last in good else "–",
        "notes": "; ".join(filter(None, [few, *_failures(comparison, method)])),
    }


def _failures(comparison: Comparison, method: str) -> list[str]:
    """Return the smallest numbers of features at which a method failed or exceeded a limit."""
    table = comparison.table
    bad = table[(table["method"] == method) & (table["status"] != "ok")]
    return [
        f"{status} at {part['n_features'].min()} features and more"
        + (f": {part['message'].iloc[0]}" if status == "failed" else "")
        for status, part in bad.groupby("status")
    ]
