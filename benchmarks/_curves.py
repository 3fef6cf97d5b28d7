"""What the scripts of the papers' figures share: a comparison, its picture and its table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from _tables import DOCS, markdown_table

import coterie
from coterie.plots import comparison_curves

FIGURES = DOCS / "figures"


def run(
    methods: Mapping[str, Any],
    shared: Sequence[str],
    X: Any,
    y: np.ndarray,
    folds: Any,
    sizes: Sequence[int],
    limit: float,
    **options: Any,
) -> pd.DataFrame:
    """The table of a comparison; the ``shared`` methods, whose time does not depend on the number, are fitted once."""
    parts = []
    for share in (True, False):
        mine = {name: method for name, method in methods.items() if (name in shared) == share}
        if mine:
            limits = {"time_limit": limit, "memory_limit": "4GB"}
            found = coterie.compare(mine, X, y, n_features=sizes, cv=folds, share_fits=share, verbose=1, **limits, **options)
            parts.append(found.table)
    table = pd.concat(parts)
    table["place"] = table["method"].map({name: place for place, name in enumerate(methods)})
    return table.sort_values(["place", "n_features", "fold"], kind="stable").drop(columns="place").reset_index(drop=True)


def draw(table: pd.DataFrame, name: str, score: str = "accuracy") -> Path:
    """Accuracy (or what the score is), redundancy and time against the number of features."""
    figure = comparison_curves(table.rename(columns={"accuracy": score}), (score, "redundancy_rate", "fit_seconds"))
    path = FIGURES / f"{name}.png"
    figure.savefig(path, dpi=100)
    return path


def section(table: pd.DataFrame, sizes: Sequence[int], picture: Path, words: str) -> str:
    """The picture, and a table of accuracies at some numbers of features with redundancy and time at the last."""
    rows = []
    last = sizes[-1]
    for method, mine in table.groupby("method", sort=False):
        good = (
            mine[mine["status"] == "ok"]
            .groupby("n_features")[["accuracy", "redundancy_rate", "fit_seconds", "n_selected"]]
            .mean()
        )
        bad = mine[mine["status"] != "ok"]
        row: dict[str, Any] = {"method": method}
        for size in sizes:
            row[f"accuracy, {size}"] = f"{good.accuracy[size]:.3f}" if size in good.index else "–"
        at = last if last in good.index else (good.index.max() if len(good) else None)
        row[f"redundancy, {last}"] = "–" if at != last else f"{good.redundancy_rate[last]:.3f}"
        row[f"seconds, {last}"] = "–" if at != last else f"{good.fit_seconds[last]:.2f}"
        few = "" if at is None or good.n_selected[at] == at else f"{good.n_selected[at]:,.0f} features at {at}"
        row["notes"] = "; ".join(filter(None, [few, _troubles(bad)]))
        rows.append(row)
    return f"{words}\n\n![{picture.stem}]({picture.relative_to(DOCS).as_posix()})\n\n{markdown_table(rows)}"


def _troubles(bad: pd.DataFrame) -> str:
    return "; ".join(
        f"{status} from {part['n_features'].min()} features on"
        + (f": {part['message'].iloc[0]}" if status == "failed" else "")
        for status, part in bad.groupby("status")
    )
