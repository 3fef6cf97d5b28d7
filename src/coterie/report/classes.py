"""``classes.csv``: what the features of the groups are like in each class."""

from __future__ import annotations

from pathlib import Path

from coterie.metrics.class_statistics import ClassStatistics
from coterie.report.table import write_csv

CLASSES = "classes.csv"


def write_classes(path: Path, statistics: ClassStatistics) -> None:
    """Write one row for each feature of a group and each class; cells are empty where a figure has no meaning."""
    write_csv(path, statistics.rows(), statistics.columns, nan="")
