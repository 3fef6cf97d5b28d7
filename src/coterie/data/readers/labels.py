"""Labels as they come in files: numbers or words, some of them missing."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from coterie.data.errors import DataFileError
from coterie.data.readers.byte_stream import read_lines

# What people write where there is no value; compared in lower case.
MISSING_WORDS = frozenset(["", "na", "n/a", "nan", "null", "none", "<na>"])


def parse_labels(texts: Sequence[str]) -> np.ndarray:
    """Labels as integers or floats where all of them are finite numbers, else as strings."""
    for kind in (np.int64, np.float64):
        try:
            labels = np.fromiter(map(kind, texts), dtype=kind, count=len(texts))
        except (ValueError, OverflowError):
            continue
        if np.isfinite(labels).all():
            return labels
    return np.array(texts, dtype=object)


def labels_in_file(label: Any, path: Path) -> np.ndarray:
    """Labels from a text file with one a line."""
    if not isinstance(label, (str, os.PathLike)):
        raise ValueError(
            f"label={label!r}: the labels of {path.name} come from the file itself or from a text file with one a line."
        )
    file = Path(label)
    if not file.exists():
        raise FileNotFoundError(2, "label= names a text file with one label a line, but there is no such file", str(file))
    lines = [line.strip() for line in read_lines(file)]
    for number, line in enumerate(lines, start=1):
        if line.lower() in MISSING_WORDS:
            raise DataFileError("the label is missing. Give every sample one.", file, line=number)
    return parse_labels(lines)


def is_missing(label: Any) -> bool:
    """Whether a label is None, NaN, pandas.NA or a word for nothing."""
    return label is None or str(label).strip().lower() in MISSING_WORDS


def missing_labels(missing: np.ndarray, policy: str, path: Path, what: str) -> np.ndarray:
    """The samples to keep: all but those without a label, which are dropped or refused."""
    if policy not in ("error", "drop"):
        raise ValueError(f"missing_labels={policy!r} must be 'error' or 'drop'.")
    count = int(np.count_nonzero(missing))
    if count and policy == "error":
        first = int(np.argmax(missing))
        raise DataFileError(
            f"{count} of {len(missing)} samples have no label in {what}, the first is sample {first}. Drop them with "
            "missing_labels='drop', or complete them.",
            path,
        )
    if count == len(missing):
        raise DataFileError(f"no sample has a label in {what}.", path)
    return np.flatnonzero(~missing)
