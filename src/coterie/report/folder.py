"""The folder of a discovery: written whole or not at all."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Collection
from pathlib import Path
from typing import TYPE_CHECKING, Any

from coterie.files import check_folder, new_folder, read_record, writing
from coterie.persistence.model import load, save
from coterie.report.page import render
from coterie.report.table import write_csv

if TYPE_CHECKING:
    from coterie.report.result import Discovery

FORMAT = "coterie result"
VERSION = 1
GROUPS, RESULT, MODEL, REPORT = "groups.csv", "result.json", "model.coterie", "report.html"


def check_output(path: str | os.PathLike[str], *, overwrite: bool = False) -> None:
    """Raise unless a result can be written there; before the work, not after it.

    What is to be replaced must be a result folder (or empty), with nothing else in it: a slip of the keyboard must not cost a
    home folder.
    """
    check_folder(path, overwrite=overwrite, files_of=result_files)


def result_files(folder: Path) -> Collection[str]:
    """The names of what :func:`write_result` has written to a folder; none if it is no result."""
    try:
        content = read_result(folder)
    except (OSError, ValueError):
        return ()
    listed = content.get("files")
    return [str(name) for name in listed] if isinstance(listed, list) else ()


def write_result(
    path: str | os.PathLike[str],
    result: Discovery,
    *,
    overwrite: bool = False,
    extras: Callable[[Path], None] | None = None,
) -> list[str]:
    """Write the folder of a discovery.

    Parameters
    ----------
    path : path
        The folder.
    result : coterie.Discovery
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
    ``groups.csv`` has one row per feature, ``result.json`` everything as text, ``model.coterie`` the model, ``report.html`` a
    page for people. :func:`coterie.load` opens the folder again.
    """
    with new_folder(path, overwrite=overwrite, files_of=result_files) as folder:
        columns, rows = result.table()
        write_csv(folder / GROUPS, rows, columns, nan="")
        content = result.to_dict()
        save(result.model, folder / MODEL)
        _write_text(folder / REPORT, render(content))
        if extras is not None:
            with writing(folder):
                extras(folder)
        files = sorted({RESULT, *(file.name for file in folder.iterdir())})
        _write_text(folder / RESULT, dumps({**content, "files": files}) + "\n")
        return files


def _write_text(path: Path, text: str) -> None:
    with writing(path):
        path.write_text(text, encoding="utf-8", errors="replace")


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


def dumps(value: object, indent: int = 0) -> str:
    """JSON with lists of plain values in one line each, so that people can read a file with matrices in it."""
    pad = "  " * (indent + 1)
    if isinstance(value, dict) and value:
        lines = [f"{pad}{json.dumps(str(key))}: {dumps(item, indent + 1)}" for key, item in value.items()]
        return "{\n" + ",\n".join(lines) + "\n" + pad[2:] + "}"
    if isinstance(value, list) and any(isinstance(item, (dict, list)) for item in value):
        return "[\n" + ",\n".join(pad + dumps(item, indent + 1) for item in value) + "\n" + pad[2:] + "]"
    return json.dumps(value, ensure_ascii=True, allow_nan=False)
