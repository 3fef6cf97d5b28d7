"""Groups of SNPs in the form of PLINK's ``.clumped``: its rows, and a file of them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from coterie.groups import FeatureGroup, FeatureGroups
from coterie.report.result import Discovery

CLUMPS = "groups.clumps"
_COLUMNS = ("CHR", "F", "SNP", "BP", "P", "TOTAL", "NSIG", "S05", "S01", "S001", "S0001", "SP2")
# p-values that the members are counted by.
_LEVELS = (0.0001, 0.001, 0.01, 0.05)
# Widths that PLINK gives its columns; the last has none.
_WIDTHS = (4, 4, 14, 10, 10, 8, 6, 6, 6, 6, 7)


def write_clumps(path: Path, result: Discovery, **windows: Any) -> None:
    """Write one line per group in PLINK 1.9's columns, the smallest p-value first.

    Parameters
    ----------
    path : Path
        The file.
    result : Discovery
        With groups that are annotated, or a ``feature_info`` that they can be annotated with.
    **windows
        ``kb``, ``r2`` and ``p2`` as for :meth:`coterie.FeatureGroups.clumps`.

    Notes
    -----
    ``SNP`` is the support feature. ``P`` and the columns that count p-values are NA where there was no association; they are
    of the samples that the groups were found in, and so too small.
    """
    groups = result.model.groups_
    if "chromosome" not in groups.annotations:
        groups = groups.annotated(result.feature_info)
    with path.open("w", encoding="utf-8", errors="backslashreplace") as file:
        print(_line(list(_COLUMNS)), file=file)
        for row in groups.clumps(**windows):
            print(_line([_token(row[name]) for name in _COLUMNS]), file=file)


def clumps_of(groups: FeatureGroups, *, kb: float | None, r2: float | None, p2: float) -> list[dict[str, Any]]:
    """The rows of PLINK's table, the smallest p-value first: see :meth:`coterie.FeatureGroups.clumps`."""
    for name, value, most in (("kb", kb, np.inf), ("r2", r2, 1.0), ("p2", p2, 1.0)):
        if value is not None and not 0.0 <= value <= most:
            limit = "" if most == np.inf else " and at most 1"
            raise ValueError(f"{name}={value!r} must be a number of at least 0{limit}.")
    rows = [{name: row[name] for name in _COLUMNS} for row in (_clump(group, kb, r2, p2) for group in groups)]
    return sorted(rows, key=lambda row: np.inf if row["P"] is None else row["P"])


def _clump(group: FeatureGroup, kb: float | None, r2: float | None, p2: float) -> dict[str, Any]:
    """A row of PLINK's table."""
    known = group.annotations or {}
    if "chromosome" not in known or "position" not in known:
        raise ValueError(
            "The features of the groups have no chromosome and position. Fit to what coterie.open_features makes of a .bed "
            "file, or add them: groups.annotated({'chromosome': ..., 'position': ...})."
        )
    chromosome, position = known["chromosome"], known["position"]
    p_values = known.get("p_value", (None,) * len(group))
    p_values = tuple(None if p is None or np.isnan(p) else float(p) for p in p_values)
    squares = [1.0, *(group.correlation**2).tolist()]
    inside = [
        k
        for k in range(1, len(group))
        if chromosome[k] == chromosome[0]
        and (kb is None or abs(position[k] - position[0]) <= 1000.0 * kb)
        and (r2 is None or squares[k] >= r2)
    ]
    known_p = [p for k in inside if (p := p_values[k]) is not None]
    counts = np.bincount(np.searchsorted(_LEVELS, known_p, side="right"), minlength=len(_LEVELS) + 1).tolist()
    counted = counts if len(known_p) == len(inside) and (inside or p_values[0] is not None) else [None] * len(counts)
    labels = group.labels
    listed = [f"{labels[k]}(1)" for k in inside if (p := p_values[k]) is None or p < p2 or p2 >= 1.0]
    return {
        "CHR": chromosome[0],
        "F": 1,
        "SNP": labels[0],
        "BP": position[0],
        "P": p_values[0],
        "TOTAL": len(inside),
        **dict(zip(("S0001", "S001", "S01", "S05", "NSIG"), counted, strict=True)),
        "SP2": ",".join(listed) or "NONE",
    }


def _line(words: list[str]) -> str:
    return " ".join([*(word.rjust(width) for word, width in zip(words[:-1], _WIDTHS, strict=True)), "  " + words[-1]])


def _token(value: Any) -> str:
    """A word without white space, which would break the columns."""
    if value is None:
        return "NA"
    return f"{value:.4g}" if isinstance(value, float) else "_".join(str(value).split()) or "."
