"""Files and folders that are there whole or not at all, whenever the process is killed or the disk fills up.

Everything is made in a folder with a temporary name beside its place, flushed to the disk, and then renamed, which the file
system does in one step. A writer holds a lock on its temporary folder as long as it lives; the next writer of the same place
removes what killed ones have left. Long work claims its place first, so that a second writer is told so before it begins.
Nothing is deleted or replaced that Coterie did not write.
"""

from coterie.files.atomic import check_folder, new_file, new_folder, read_record
from coterie.files.claims import claimed, claimed_files
from coterie.files.disk import AnyPath, WriteError, check_file, check_parent, full_disk, lock, locked, resolved, sync, writing
from coterie.files.temporary import is_trace, temporary_folder, writer_of

__all__ = [
    "AnyPath",
    "WriteError",
    "check_file",
    "check_folder",
    "check_parent",
    "claimed",
    "claimed_files",
    "full_disk",
    "is_trace",
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
