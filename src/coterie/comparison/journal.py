"""Journal of a comparison: finished rows are written to disk, so that an interrupted comparison can be resumed."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import numpy as np

from coterie.comparison.process import Limits
from coterie.comparison.result import OUT_OF_MEMORY, TIMED_OUT, Row
from coterie.files import check_parent, claimed, is_leftover, new_file, read_record, resolved, sync, writing
from coterie.groups.columns import Content, Record

SETTINGS, ROWS = "settings.json", "rows.jsonl"
_FORMAT, _VERSION = "coterie comparison", 1
_WORDS = {
    "data": "data (X or y)",
    "folds": "folds (cv, groups or random_state)",
    "judging": "classifier, scoring, standardize or share_fits",
}


@contextmanager
def results_folder(path: str | os.PathLike[str]) -> Iterator[Path]:
    """Claim the folder of a comparison. A missing folder is created, and removed again if it stays empty.

    The claim file is inside the folder, because the user may not be allowed to write elsewhere. Links are followed.
    """
    folder = resolved(path)
    if folder.exists() and not folder.is_dir():
        raise FileExistsError(f"{path} is a file. Give the name of a folder for the results.")
    check_parent(path)
    _refuse_foreign(folder)
    made = not folder.exists()
    folder.mkdir(exist_ok=True)
    try:
        with claimed(folder / ROWS):
            yield Path(path)
    finally:
        if made:
            with suppress(OSError):  # it is not empty
                folder.rmdir()


def _refuse_foreign(folder: Path) -> None:
    """Raise an error if a folder without settings contains files that no killed comparison could have left."""
    if not folder.is_dir() or (folder / SETTINGS).exists():
        return
    for name in sorted(os.listdir(folder)):
        empty = name == ROWS and (folder / ROWS).stat().st_size == 0
        if not empty and not any(is_leftover(name, folder / file) for file in (ROWS, SETTINGS)):
            raise FileExistsError(
                f"{folder} contains files that do not belong to a comparison ({name}). Choose another folder."
            )


class Journal:
    """Folder of a comparison that can be resumed, from :func:`results_folder`.

    ``settings.json`` has digests of everything that a row depends on: the settings shared by all methods (``common``, with
    the names of ``_WORDS``) and each method. A run with other settings is refused without ``overwrite``. Methods and numbers
    of features can be added. ``rows.jsonl`` has one line per row, flushed after each row. An incomplete last line is dropped.
    Rows that exceeded other ``limits`` are repeated.
    """

    def __init__(
        self,
        folder: str | os.PathLike[str],
        common: Mapping[str, str],
        methods: Mapping[str, str],
        limits: Limits,
        *,
        overwrite: bool = False,
    ) -> None:
        self.folder = Path(folder)
        self.limits = limits
        self.done: dict[tuple[str, int, int], tuple[Row, np.ndarray]] = {}
        known = {} if overwrite and is_comparison(self.folder) else self._read_settings()
        self._refuse_others(known, common, methods)
        self._file = (self.folder / ROWS).open("a+b", buffering=0)
        try:
            if not known:
                self._file.truncate(0)  # before the new settings are written: the old rows do not belong to them
            self._read_rows()
            content = {"format": _FORMAT, "version": _VERSION, **common, "methods": {**known.get("methods", {}), **methods}}
            with new_file(self.folder / SETTINGS) as partial:
                partial.write_text(json.dumps(content, indent=2) + "\n", encoding="utf-8")
        except BaseException:
            self.close()
            raise

    def _read_settings(self) -> Record:
        path = self.folder / SETTINGS
        if not path.exists():
            _refuse_foreign(self.folder)
            return {}
        try:
            content = read_record(path, _FORMAT, _VERSION)
        except ValueError as error:
            raise ValueError(f"{error} Choose another folder.") from error
        if not isinstance(content.get("methods"), dict):
            raise ValueError(f"{path} is damaged: it has no list of methods. Choose another folder.")
        return content

    def _refuse_others(self, known: Content, common: Mapping[str, str], methods: Mapping[str, str]) -> None:
        if not known:
            return
        changed = [words for name, words in _WORDS.items() if known.get(name) != common[name]]
        known_methods = known["methods"]
        changed += [f"parameters of {name!r}" for name in methods if known_methods.get(name, methods[name]) != methods[name]]
        if changed:
            raise ValueError(
                f"{self.folder} contains a comparison with different {' and '.join(changed)}. Choose another folder, "
                "or replace it with overwrite=True."
            )

    def _read_rows(self) -> None:
        self._file.seek(0)
        content = self._file.read()
        whole = content.rfind(b"\n") + 1
        for number, line in enumerate(content[:whole].splitlines(), start=1):
            try:
                row, features, limits = _entry(line)
            except (ValueError, KeyError, TypeError, OverflowError, RecursionError) as error:
                raise ValueError(f"{self.folder / ROWS}, line {number}, is damaged ({error}). Remove the line.") from error
            if row.status in (TIMED_OUT, OUT_OF_MEMORY) and limits != self.limits:
                continue
            self.done[row.method, row.n_features, row.fold] = (row, features)
        if whole < len(content):
            self._file.truncate(whole)
        self._file.seek(0, os.SEEK_END)

    def add(self, row: Row, features: np.ndarray) -> None:
        """Write a row to the journal."""
        entry = {name: None if _is_nan(value) else value for name, value in row._asdict().items()}
        line = json.dumps({**entry, "features": features.tolist(), "limits": list(self.limits)})
        rest = memoryview(line.encode() + b"\n")
        with writing(self.folder / ROWS, kept="the rows before it are kept"):
            while rest:
                rest = rest[self._file.write(rest) :]
        with suppress(OSError):  # the row is written; without sync, only a power failure can lose it
            sync(self.folder / ROWS)

    def close(self) -> None:
        """Close the file, so that other processes can write to the folder."""
        self._file.close()


def is_comparison(folder: str | os.PathLike[str]) -> bool:
    """Return True if a folder contains a comparison."""
    try:
        read_record(Path(folder) / SETTINGS, _FORMAT)
    except (OSError, ValueError):
        return False
    return True


def _entry(line: bytes) -> tuple[Row, np.ndarray, Limits]:
    """Return a row, its selected features and its limits."""
    entry = json.loads(line)
    row = Row(**{name: _read(entry[name], name) for name in Row._fields})
    features = np.array(entry["features"], dtype=np.int64)
    if features.ndim != 1 or (features < 0).any():
        raise ValueError("its features are not a list of indices")
    return row, features, Limits(*entry["limits"])


def _read(value: Any, name: str) -> Any:
    if name in ("method", "status", "message"):
        return str(value)
    if name in ("n_features", "fold", "n_selected"):
        return int(value)
    return math.nan if value is None else float(value)


def _is_nan(value: Any) -> bool:
    return isinstance(value, float) and math.isnan(value)
