"""Rows that are kept on the disk as they come, so that a comparison can go on where it ended."""

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
from coterie.files import check_parent, claimed, is_trace, new_file, read_record, resolved, sync, writing

SETTINGS, ROWS = "settings.json", "rows.jsonl"
_FORMAT, _VERSION = "coterie comparison", 1
_WORDS = {
    "data": "data (X or y)",
    "folds": "folds (cv or random_state)",
    "judging": "classifier, scoring, standardize or share_fits",
}


@contextmanager
def results_folder(path: str | os.PathLike[str]) -> Iterator[Path]:
    """The folder of a comparison, claimed; one that is not there is made, and goes again if nothing has come into it.

    The claim lies in the folder, because whoever gives it may be allowed to write nowhere else.

    Parameters
    ----------
    path : path
        The folder. A link is followed.
    """
    folder = resolved(path)
    if folder.exists() and not folder.is_dir():
        raise FileExistsError(f"{path} is a file; give the name of a folder for the results.")
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
    """Raise if a folder without settings has anything in it but what a run leaves that was killed before it had any."""
    if not folder.is_dir() or (folder / SETTINGS).exists():
        return
    for name in sorted(os.listdir(folder)):
        empty = name == ROWS and (folder / ROWS).stat().st_size == 0
        if not empty and not any(is_trace(name, folder / file) for file in (ROWS, SETTINGS)):
            raise FileExistsError(f"{folder} holds something else than a comparison ({name}); choose another folder.")


class Journal:
    """The folder of a comparison that can be resumed.

    ``settings.json`` has digests of everything that a row depends on; a run with others is refused. Methods and numbers of
    features may be added. ``rows.jsonl`` has a line a row, flushed when it is written; a last line that a kill has cut is
    dropped.

    Parameters
    ----------
    folder : path
        The folder, from :func:`results_folder`.
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
        known = {} if overwrite and is_comparison(self.folder) else self._read_settings()
        self._refuse_others(known, common, methods)
        self._file = (self.folder / ROWS).open("a+b", buffering=0)
        try:
            if not known:
                self._file.truncate(0)  # before there are other settings, to which the old rows do not belong
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
            _refuse_foreign(self.folder)
            return {}
        try:
            content = read_record(path, _FORMAT, _VERSION)
        except ValueError as error:
            raise ValueError(f"{error} Choose another folder.") from error
        if not isinstance(content.get("methods"), dict):
            raise ValueError(f"{path} is damaged: it lists no methods. Choose another folder.")
        return content

    def _refuse_others(self, known: Mapping[str, Any], common: Mapping[str, str], methods: Mapping[str, str]) -> None:
        if not known:
            return
        changed = [words for name, words in _WORDS.items() if known.get(name) != common[name]]
        known_methods = known["methods"]
        changed += [f"parameters of {name!r}" for name in methods if known_methods.get(name, methods[name]) != methods[name]]
        if changed:
            raise ValueError(
                f"{self.folder} holds a comparison with other {' and other '.join(changed)}; choose another folder, "
                "or start anew with overwrite=True."
            )

    def _read_rows(self) -> None:
        self._file.seek(0)
        content = self._file.read()
        whole = content.rfind(b"\n") + 1
        for number, line in enumerate(content[:whole].splitlines(), start=1):
            try:
                row, features, limits = _entry(line)
            except (ValueError, KeyError, TypeError, OverflowError, RecursionError) as error:
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
        rest = memoryview(line.encode() + b"\n")
        with writing(self.folder / ROWS, kept="the rows before it are kept"):
            while rest:
                rest = rest[self._file.write(rest) :]
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


def _entry(line: bytes) -> tuple[Row, np.ndarray, Limits]:
    """A row, the features that it selected, and the limits that it had."""
    entry = json.loads(line)
    row = Row(**{name: _read(entry[name], name) for name in Row._fields})
    features = np.array(entry["features"], dtype=np.int64)
    if features.ndim != 1 or (features < 0).any():
        raise ValueError("its features are no list of indices")
    return row, features, Limits(*entry["limits"])


def _read(value: Any, name: str) -> Any:
    if name in ("method", "status", "message"):
        return str(value)
    if name in ("n_features", "fold", "n_selected"):
        return int(value)
    return math.nan if value is None else float(value)


def _is_nan(value: Any) -> bool:
    return isinstance(value, float) and math.isnan(value)
