"""Check of an .h5ad file in a separate process, because the HDF5 library can hang or crash on a damaged file.

Run as a script that does not import Coterie: ``h5ad_check.py SYS_PATH FILE BYTES``. It opens everything in the file that is
not a plain array, and reads all strings, because HDF5 can loop forever in the heap that holds them. It prints one line of
JSON: ``needs``, the bytes required for everything except the matrix, and ``largest``, the bytes of the largest chunk. It
stops early if they exceed BYTES.
"""

from __future__ import annotations

import json
import sys
from typing import Any

# Bytes per string in a data frame, and number of strings read at a time.
_STRING_BYTES = 100
_CHUNK_STRINGS = 1 << 16
# Maximum number of strings in a dataset without storage, whose strings HDF5 replaces by a fill value.
_MAX_EMPTY_STRINGS = 1 << 16
# Limit of processor time: some seconds, and more for many strings. A valid file takes a hundredth of it.
_MIN_SECONDS, _STRINGS_PER_SECOND = 10, 50_000


def measure(path: str, max_bytes: int) -> dict[str, Any]:
    """Return the memory required to read the file."""
    import h5py

    found = {"needs": 0, "largest": 0, "strings": 0}

    def visit(name: str, item: Any) -> int | None:
        for key in item.attrs:
            try:
                item.attrs[key]
            except (OSError, TypeError, ValueError):  # a type that h5py does not support and that is not read later
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
        if max(found["needs"], found["largest"]) > max_bytes:
            return 1
        if is_text and item.size:
            if item.size > _MAX_EMPTY_STRINGS and item.id.get_storage_size() == 0:
                raise ValueError(f"{name} states {item.size} strings but stores none")
            found["strings"] += item.size
            _limit_cpu_time(_MIN_SECONDS + found["strings"] // _STRINGS_PER_SECOND)
            if item.shape:
                for start in range(0, item.shape[0], _CHUNK_STRINGS):
                    item[start : start + _CHUNK_STRINGS]
            else:
                item[()]
        return None

    with h5py.File(path, "r") as file:
        visit("", file)
        file.visititems(visit)
    return found


def _limit_cpu_time(seconds: int) -> None:
    """Limit the processor time of this process."""
    try:
        import resource
    except ImportError:  # Windows, where only the timeout of the parent process applies
        return
    hard = resource.getrlimit(resource.RLIMIT_CPU)[1]
    resource.setrlimit(resource.RLIMIT_CPU, (seconds if hard == resource.RLIM_INFINITY else min(seconds, hard), hard))


def main() -> None:
    """Print the result, or the problem with the file."""
    sys.path[:] = json.loads(sys.argv[1])
    _limit_cpu_time(_MIN_SECONDS)
    try:
        found = measure(sys.argv[2], int(sys.argv[3]))
    except ImportError as error:
        found = {"skipped": str(error)}
    except Exception as error:  # h5py raises errors of many types
        lines = [line for line in str(error).splitlines() if line.strip()]
        found = {"problem": lines[0] if lines else type(error).__name__}
    print(json.dumps(found))


if __name__ == "__main__":
    main()
