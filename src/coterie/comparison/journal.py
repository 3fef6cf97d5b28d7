"""Rows that are kept on the disk as they come, so that a comparison can go on where it ended."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from coterie.comparison.process import Limits
from coterie.comparison.result import OUT_OF_MEMORY, TIMED_OUT, Row
from coterie.files import lock, new_file, read_record, sync, writer_of

SETTINGS, ROWS = "settings.json", "rows.jsonl"
_FORMAT, _VERSION = "coterie comparison", 1
_WORDS = {
    "data": "data (X or y)",
    "folds": "folds (cv or random_state)",
    "judging": "classifier, scoring, standardize or share_fits",
}


class Journal:
    """The folder of a comparison that can be resumed.

    ``settings.json`` has digests of everything that a row depends on; a run with others is refused. Methods and numbers of
    features may be added. ``rows.jsonl`` has a line a row, flushed when it is written; a last line that a kill has cut is
    dropped.

    Parameters
    ----------
    folder : path
        The folder; made where it is not there.
    common : mapping
        Digests of what all methods share, by the names of ``_WORDS``.
    methods : mapping
        Digest of each method.
    limits : Limits
        The limits of this run; rows that went over other limits are tried again.
    overwrite : bool, default=False
        Whether to forget what the folder has.
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
        if self.folder.exists() and not self.folder.is_dir():
            raise FileExistsError(f"{self.folder} is a file; give the name of a folder for the results.")
        if not self.folder.parent.is_dir():
            raise FileNotFoundError(f"There is no folder {self.folder.parent}; make it first.")
        known = {} if overwrite and is_comparison(self.folder) else self._read_settings()
        self._refuse_others(known, common, methods)
        self.folder.mkdir(exist_ok=True)
        self._file = self._locked()
        try:
            if not known:
                self._file.truncate(0)
            self._read_rows()
            content = {"format": _FORMAT, "version": _VERSION, **common, "methods": {**known.get("methods", {}), **methods}}
            with new_file(self.folder / SETTINGS) as partial:
                partial.write_text(json.dumps(content, indent=2) + "\n", encoding="utf-8")
        except BaseException:
            self.close()
            raise

    def _read_settings(self) -> dict[str, Any]:
        path = self.folder / SETTINGS
        if not path.exists():
            names = sorted(os.listdir(self.folder)) if self.folder.is_dir() else []
            others = [name for name in names if name != ROWS and writer_of(name, path) is None]
            if others:
                raise FileExistsError(
                    f"{self.folder} holds something else than a comparison ({others[0]}); choose another folder."
                )
            return {}
        try:
            return read_record(path, _FORMAT, _VERSION)
        except ValueError as error:
            raise ValueError(f"{error} Choose another folder.") from error

    def _refuse_others(self, known: Mapping[str, Any], common: Mapping[str, str], methods: Mapping[str, str]) -> None:
        if not known:
            return
        changed = [words for name, words in _WORDS.items() if known.get(name) != common[name]]
        known_methods = known.get("methods", {})
        changed += [f"parameters of {name!r}" for name in methods if known_methods.get(name, methods[name]) != methods[name]]
        if changed:
            raise ValueError(
                f"{self.folder} holds a comparison with other {' and other '.join(changed)}; choose another folder, "
                "or start anew with overwrite=True."
            )

    def _locked(self) -> BinaryIO:
        file = (self.folder / ROWS).open("a+b")
        if lock(file, wait=False) is False:
            file.close()
            raise ValueError(f"Another comparison is writing to {self.folder}; wait for it, or choose another.")
        return file

    def _read_rows(self) -> None:
        self._file.seek(0)
        content = self._file.read()
        whole = content.rfind(b"\n") + 1
        for number, line in enumerate(content[:whole].splitlines(), start=1):
            try:
                entry = json.loads(line)
                fields = {name: _read(entry[name], name) for name in Row._fields}
                row, limits = Row(**fields), Limits(*entry["limits"])
                features = np.array(entry["features"], dtype=np.int64)
            except (ValueError, KeyError, TypeError) as error:
                raise ValueError(f"{self.folder / ROWS}, line {number}: damaged ({error}). Remove that line.") from error
            if row.status in (TIMED_OUT, OUT_OF_MEMORY) and limits != self.limits:
                continue
            self.done[row.method, row.n_features, row.fold] = (row, features)
        if whole < len(content):
            self._file.truncate(whole)
        self._file.seek(0, os.SEEK_END)

    def add(self, row: Row, features: np.ndarray) -> None:
        """Keep a row."""
        entry = {name: None if _is_nan(value) else value for name, value in row._asdict().items()}
        line = json.dumps({**entry, "features": features.tolist(), "limits": list(self.limits)})
        self._file.write(line.encode() + b"\n")
        self._file.flush()
        with suppress(OSError):  # the row is in the file; only a failure of the power can still cost it
            sync(self.folder / ROWS)

    def close(self) -> None:
        """Let others write to the folder."""
        self._file.close()


def is_comparison(folder: str | os.PathLike[str]) -> bool:
    """Whether a folder holds a comparison."""
    try:
        read_record(Path(folder) / SETTINGS, _FORMAT)
    except (OSError, ValueError):
        return False
    return True


def _read(value: Any, name: str) -> Any:
    if name in ("method", "status", "message"):
        return str(value)
    if name in ("n_features", "fold", "n_selected"):
        return int(value)
    return math.nan if value is None else float(value)


def _is_nan(value: Any) -> bool:
    return isinstance(value, float) and math.isnan(value)
