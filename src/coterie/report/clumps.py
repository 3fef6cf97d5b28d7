"""Groups of SNPs in the form of PLINK's ``.clumps``."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

from coterie.report.result import DiscoveryResult

CLUMPS = "groups.clumps"
_HEADER = ["#CHROM", "POS", "ID", "SCORE", "WEIGHT", "TOTAL", "SP2"]


def write_clumps(path: Path, result: DiscoveryResult) -> None:
    """Write one line a group: place and name of the support SNP, score, weight, number of others, and these with correlations.

    As in PLINK 2, columns are separated by tabs, ``TOTAL`` counts the other SNPs, ``SP2`` lists them as ``ID(r)``, and a dot
    stands for nothing. ``SCORE`` and ``WEIGHT`` take the place of the p-values, which a multivariate model does not have.
    """
    chromosome, position = result.feature_info.get("chromosome"), result.feature_info.get("position")
    with path.open("w", encoding="utf-8", errors="backslashreplace") as file:
        print(*_HEADER, sep="\t", file=file)
        for group in result.model.groups_:
            labels = [_token(label) for label in group.labels]
            others = ",".join(f"{name}({r:+.4f})" for name, r in zip(labels[1:], group.correlation, strict=True))
            place = [_token(info[group.support]) if info is not None else "." for info in (chromosome, position)]
            figures = [_figure(group.score), _figure(group.weight), str(len(group) - 1)]
            print(*place, labels[0], *figures, others or ".", sep="\t", file=file)


def _token(value: Any) -> str:
    """A name without white space, which would break the columns."""
    return "_".join(str(value).split()) or "."


def _figure(value: float | None) -> str:
    return "." if value is None or math.isnan(value) else f"{value:.6g}"
