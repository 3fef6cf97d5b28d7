"""Atomic writing of files and folders: they are complete or absent, even if the process is killed or the disk is full.

Output is written to a temporary folder next to its final path, flushed to disk, and renamed, which is atomic. A writer holds
a lock on its temporary folder as long as it runs. The next writer of the same path removes what killed writers have left.
Long computations claim their output path first, so that a second writer fails before it starts. Only files that Coterie wrote
are deleted or replaced.
"""

from coterie.files.atomic import check_folder, new_file, new_folder, read_record
from coterie.files.claims import claimed, claimed_files
from coterie.files.disk import AnyPath, WriteError, check_file, check_parent, full_disk, lock, locked, resolved, sync, writing
from coterie.files.temporary import is_leftover, temporary_folder, writer_of

__all__ = [
    "AnyPath",
    "WriteError",
    "check_file",
    "check_folder",
    "check_parent",
    "claimed",
    "claimed_files",
    "full_disk",
    "is_leftover",
    "lock",
    "locked",
    "new_file",
    "new_folder",
    "read_record",
    "resolved",
    "sync",
    "temporary_folder",
    "writer_of",
    "writing",
]
