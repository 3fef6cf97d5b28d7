"""Groups of SNPs in the form of PLINK's ``.clumped``."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from coterie.groups.feature_groups import CLUMP_COLUMNS
from coterie.report.result import Discovery

CLUMPS = "groups.clumps"
# Widths that PLINK gives its columns; the last has none.
_WIDTHS = (4, 4, 14, 10, 10, 8, 6, 6, 6, 6, 7)


def write_clumps(path: Path, result: Discovery, **windows: Any) -> None:
    """Write one line a group in PLINK 1.9's columns, the smallest p-value first.

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
        print(_line(CLUMP_COLUMNS), file=file)
        for row in groups.clumps(**windows):
            print(_line([_token(row[name]) for name in CLUMP_COLUMNS]), file=file)


def _line(words: list[str]) -> str:
    return " ".join([*(word.rjust(width) for word, width in zip(words[:-1], _WIDTHS, strict=True)), "  " + words[-1]])


def _token(value: Any) -> str:
    """A word without white space, which would break the columns."""
    if value is None:
        return "NA"
    return f"{value:.4g}" if isinstance(value, float) else "_".join(str(value).split()) or "."
