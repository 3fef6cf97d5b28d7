"""Folders of replications, written atomically."""

from __future__ import annotations

import os
from collections.abc import Collection
from pathlib import Path

from coterie.files import check_folder, new_folder, read_record, writing
from coterie.replication.result import Replication
from coterie.report.folder import dumps
from coterie.report.result import now, versions, writer
from coterie.report.table import write_csv

FORMAT, VERSION = "coterie replication", 1
GROUPS, MEMBERS, RESULT = "replication.csv", "members.csv", "replication.json"


def check_output(path: str | os.PathLike[str], *, overwrite: bool = False) -> None:
    """Raise an error if a replication cannot be written to ``path``. Called before the computation."""
    check_folder(path, overwrite=overwrite, files_of=replication_files)


def replication_files(folder: Path) -> Collection[str]:
    """Return the names of the files that :func:`write_replication` wrote; none if the folder is not a replication."""
    try:
        content = read_record(folder / RESULT, FORMAT, VERSION)
    except (OSError, ValueError):
        return ()
    return () if content is None else (GROUPS, MEMBERS, RESULT)


def write_replication(path: str | os.PathLike[str], result: Replication, *, overwrite: bool = False) -> list[str]:
    """Write the folder of a replication and return the names of its files; see :meth:`Replication.save`."""
    content = {"format": FORMAT, "version": VERSION, "written_by": writer(), "written_at": now(), "versions": versions()}
    with new_folder(path, overwrite=overwrite, files_of=replication_files) as folder:
        rows, members = result.rows(), result.member_rows()
        write_csv(folder / GROUPS, rows, list(rows[0]), nan="")
        write_csv(folder / MEMBERS, members, list(members[0]), nan="")
        with writing(folder / RESULT):
            (folder / RESULT).write_text(dumps({**content, **result.to_dict()}) + "\n", encoding="utf-8")
    return [MEMBERS, GROUPS, RESULT]
