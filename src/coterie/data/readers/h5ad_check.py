"""A first look at an .h5ad file, by a process of its own: the HDF5 library can hang or crash on a damaged file.

Run as a script with nothing of Coterie's imported: ``h5ad_check.py SYS_PATH FILE BYTES``. It opens everything in the file
that is not a plain array, reads all strings (the heap that holds them is where HDF5 loops for ever), adds up what reading
will take, and prints one line of JSON: ``needs``, the bytes for all but the matrix, and ``largest``, those of the largest
chunk. It ends early when they exceed BYTES.
"""

from __future__ import annotations

import json
import sys
from typing import Any

# Bytes of a string in a data frame, and strings that are read at a time.
_STRING_BYTES = 100
_PIECE = 1 << 16
# Strings that HDF5 makes up where a file holds none; more than a fill value has reason to stand for.
_FREE_STRINGS = 1 << 16
# Processor time: some seconds, and more for many strings; a good file takes a hundredth of it.
_SECONDS, _STRINGS_A_SECOND = 10, 50_000


def look(path: str, most: int) -> dict[str, Any]:
    """What reading the file takes."""
    import h5py

    found = {"needs": 0, "largest": 0, "strings": 0}

    def see(name: str, item: Any) -> int | None:
        for key in item.attrs:
            try:
                item.attrs[key]
            except (OSError, TypeError, ValueError):  # of a type that h5py does not know; nobody has to read it
                continue
        if not isinstance(item, h5py.Dataset) or item.shape is None:
            return None
        is_text = h5py.check_string_dtype(item.dtype) is not None and h5py.check_string_dtype(item.dtype).length is None
        is_matrix = name in ("X", "raw/X") or (name.startswith(("X/", "raw/X/")) and not name.endswith("indptr"))
        if not is_matrix:
            found["needs"] += item.size * (_STRING_BYTES if is_text else item.dtype.itemsize)
        if item.chunks:
            size = item.dtype.itemsize
            for n in item.chunks:
                size *= n
            found["largest"] = max(found["largest"], size)
        if max(found["needs"], found["largest"]) > most:
            return 1
        if is_text and item.size:
            if item.size > _FREE_STRINGS and item.id.get_storage_size() == 0:
                raise ValueError(f"{name} claims to have {item.size} strings and holds none")
            found["strings"] += item.size
            _allow(_SECONDS + found["strings"] // _STRINGS_A_SECOND)
            if item.shape:
                for start in range(0, item.shape[0], _PIECE):
                    item[start : start + _PIECE]
            else:
                item[()]
        return None

    with h5py.File(path, "r") as file:
        see("", file)
        file.visititems(see)
    return found


def _allow(seconds: int) -> None:
    """End this process after so much processor time."""
    try:
        import resource
    except ImportError:  # Windows: the parent's clock has to do
        return
    hard = resource.getrlimit(resource.RLIMIT_CPU)[1]
    resource.setrlimit(resource.RLIMIT_CPU, (seconds if hard == resource.RLIM_INFINITY else min(seconds, hard), hard))


def main() -> None:
    """Print what was found, or what is wrong."""
    sys.path[:] = json.loads(sys.argv[1])
    _allow(_SECONDS)
    try:
        found = look(sys.argv[2], int(sys.argv[3]))
    except ImportError as error:
        found = {"skipped": str(error)}
    except Exception as error:  # h5py has many ways to fail
        lines = [line for line in str(error).splitlines() if line.strip()]
        found = {"problem": lines[0] if lines else type(error).__name__}
    print(json.dumps(found))


if __name__ == "__main__":
    main()
