"""Result folders, written atomically."""

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
GROUPS, RESULT, MODEL, REPORT, METHODS = "groups.csv", "result.json", "model.coterie", "report.html", "methods.txt"


def check_output(path: str | os.PathLike[str], *, overwrite: bool = False) -> None:
    """Raise an error if a result cannot be written to ``path``. Called before the computation.

    An existing folder is replaced only if it is empty or a result folder that contains nothing else. A mistyped path must not
    delete other files.
    """
    check_folder(path, overwrite=overwrite, files_of=result_files)


def result_files(folder: Path) -> Collection[str]:
    """Return the names of the files that :func:`write_result` wrote; none if the folder is not a result."""
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
    """Write the result folder of a discovery.

    Parameters
    ----------
    path : path
        Result folder.
    result : coterie.Discovery
        Discovery to write.
    overwrite : bool, default=False
        Whether to replace an existing result.
    extras : callable, optional
        Function that writes more files; it is called with the temporary path of the folder.

    Returns
    -------
    files : list of str
        Names of the files.

    Notes
    -----
    ``groups.csv`` has one row per feature, ``result.json`` the complete result, ``model.coterie`` the model, ``report.html``
    the report, ``methods.txt`` the text for the methods section of a paper. :func:`coterie.load` reads the folder.
    """
    with new_folder(path, overwrite=overwrite, files_of=result_files) as folder:
        columns, rows = result.table()
        write_csv(folder / GROUPS, rows, columns, nan="")
        content = result.to_dict()
        save(result.model, folder / MODEL)
        _write_text(folder / REPORT, render(content))
        _write_text(folder / METHODS, f"{content['methods']}\n")
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
    """Return the content of ``result.json`` of a result folder, or the model.

    Parameters
    ----------
    path : path
        Result folder.
    model : bool, default=False
        Whether to return the model instead.
    """
    folder = Path(path)
    file = folder / RESULT
    if not file.is_file():
        raise FileNotFoundError(f"{folder} is not a result folder of Coterie: it has no {RESULT}.")
    content = read_record(file, FORMAT, VERSION)
    return load(folder / MODEL) if model else content


def dumps(value: object, indent: int = 0) -> str:
    """Return JSON with one line per list of plain values, so that files with matrices stay readable."""
    pad = "  " * (indent + 1)
    if isinstance(value, dict) and value:
        lines = [f"{pad}{json.dumps(str(key))}: {dumps(item, indent + 1)}" for key, item in value.items()]
        return "{\n" + ",\n".join(lines) + "\n" + pad[2:] + "}"
    if isinstance(value, list) and any(isinstance(item, (dict, list)) for item in value):
        return "[\n" + ",\n".join(pad + dumps(item, indent + 1) for item in value) + "\n" + pad[2:] + "]"
    return json.dumps(value, ensure_ascii=True, allow_nan=False)
