"""The folder of a discovery: written whole or not at all."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

from coterie.files import check_parent, new_folder, read_record
from coterie.persistence.model import load, save
from coterie.report.result import FORMAT, VERSION, DiscoveryResult
from coterie.report.table import write_csv

GROUPS, RESULT, MODEL, REPORT = "groups.csv", "result.json", "model.coterie", "report.html"
_COLUMNS = ["group", "feature", "name", "role", "correlation", "score", "weight", "round"]


def check_output(path: str | os.PathLike[str], *, overwrite: bool = False) -> None:
    """Raise unless a result can be written there; before the work, not after it.

    What is to be replaced must be a result folder (or empty): a slip of the keyboard must not cost a home folder.
    """
    folder = Path(path)
    check_parent(folder)
    if not os.access(folder.parent, os.W_OK):
        raise PermissionError(f"The folder {folder.parent} is read-only; choose another place with --output.")
    if not folder.exists():
        return
    if not folder.is_dir():
        raise FileExistsError(f"{folder} is a file; choose another name for the result folder.")
    if any(folder.iterdir()) and not is_result(folder):
        raise FileExistsError(f"{folder} holds something else than a result of Coterie; choose another name.")
    if not overwrite:
        raise FileExistsError(f"{folder} exists; choose another name, or replace it with --overwrite.")


def is_result(folder: Path) -> bool:
    """Whether a folder was written by :func:`write_result`."""
    try:
        read_result(folder)
    except (OSError, ValueError):
        return False
    return True


def write_result(
    path: str | os.PathLike[str],
    result: DiscoveryResult,
    *,
    overwrite: bool = False,
    extras: Callable[[Path], None] | None = None,
) -> list[str]:
    """Write the folder of a discovery.

    Parameters
    ----------
    path : path
        The folder.
    result : DiscoveryResult
        What to write.
    overwrite : bool, default=False
        Whether a result that is there already may be replaced.
    extras : callable, optional
        Called with the folder under its temporary name, to write more files to it.

    Returns
    -------
    files : list of str
        Names of the files.

    Notes
    -----
    ``groups.csv`` has one row a feature, ``result.json`` everything as text, ``model.coterie`` is for :func:`coterie.load`,
    ``report.html`` for people (it needs ``pip install coterie[report]``).
    """
    check_output(path, overwrite=overwrite)
    with new_folder(path, overwrite=overwrite) as folder:
        write_csv(folder / GROUPS, result.model.groups_.rows(), _COLUMNS, nan="")
        content = result.to_dict()
        text = json.dumps(content, indent=2, ensure_ascii=True, allow_nan=False)
        (folder / RESULT).write_text(text + "\n", encoding="utf-8")
        save(result.model, folder / MODEL)
        page = _page(content)
        if page is not None:
            (folder / REPORT).write_text(page, encoding="utf-8", errors="replace")
        if extras is not None:
            extras(folder)
        return sorted(file.name for file in folder.iterdir())


def read_result(path: str | os.PathLike[str], *, model: bool = False) -> Any:
    """The content of a result folder's ``result.json``, or its model.

    Parameters
    ----------
    path : path
        The folder.
    model : bool, default=False
        Whether to load the model instead.
    """
    folder = Path(path)
    file = folder / RESULT
    if not file.is_file():
        raise FileNotFoundError(f"{folder} is no result folder of Coterie: it has no {RESULT}.")
    content = read_record(file, FORMAT, VERSION)
    return load(folder / MODEL) if model else content


def _page(content: dict[str, Any]) -> str | None:
    try:
        from coterie.report.page import render
    except ImportError:  # the extra is not installed
        return None
    return render(content)
