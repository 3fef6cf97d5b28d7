"""Container format of model files: a ZIP archive (NumPy ``.npz``) of plain arrays and one JSON text, with checksums.

The meaning of the arrays and the text is defined in :mod:`coterie.persistence.encoding`.
"""

from __future__ import annotations

import hashlib
import io
import json
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from coterie.bounds import DataFileError, open_regular, read_regular, require_memory

TEXT = "model.json"
# Memory per byte of JSON as Python objects. Empty lists are the worst case.
_MEMORY_PER_JSON_BYTE = 30
_PLAIN_KINDS = "biufcSU"
_FIXED_TIME = (1980, 1, 1, 0, 0, 0)  # so that equal models make equal files


class DamagedModelError(ValueError):
    """A file that is not a model written by :func:`coterie.save`, or is damaged or truncated."""


def write_archive(path: Path, content: Mapping[str, Any], arrays: Mapping[str, np.ndarray]) -> None:
    """Write the JSON text, which contains digests of the arrays, the arrays, and a digest of the text as comment."""
    with zipfile.ZipFile(path, "w", zipfile.ZIP_STORED) as archive:
        digests = {}
        for name, array in arrays.items():
            buffer = io.BytesIO()
            np.lib.format.write_array(buffer, array, allow_pickle=False)
            digests[name] = hashlib.sha256(buffer.getbuffer()).hexdigest()
            archive.writestr(zipfile.ZipInfo(f"{name}.npy", _FIXED_TIME), buffer.getbuffer())
        text = json.dumps({**content, "sha256": digests}, ensure_ascii=False, allow_nan=False).encode("utf-8", "surrogatepass")
        archive.writestr(zipfile.ZipInfo(TEXT, _FIXED_TIME), text)
        archive.comment = hashlib.sha256(text).hexdigest().encode()


def read_archive(path: Path) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    """Read the JSON text and the arrays and verify all checksums, in memory bounded by the size of the file."""
    data = read_regular(path)  # in memory, so that errors of the disk are not mistaken for errors of the archive
    try:
        parts, comment = read_parts(data)
        if TEXT not in parts:
            raise DamagedModelError(f"{TEXT} is missing")
        text = parts[TEXT]
        if hashlib.sha256(text).hexdigest().encode() != comment:
            raise DamagedModelError(f"the checksum of {TEXT} is wrong")
        require_memory(_MEMORY_PER_JSON_BYTE * len(text), path, TEXT)
        content = json.loads(text.decode("utf-8", "surrogatepass"))
        arrays = {}
        for name, digest in content["sha256"].items():
            part = parts[f"{name}.npy"]
            if hashlib.sha256(part).hexdigest() != digest:
                raise DamagedModelError("the checksum of an array is wrong")
            arrays[name] = plain_array(part)
    except DataFileError:  # includes the path
        raise
    except DamagedModelError as error:
        raise DamagedModelError(f"{path} is not an intact Coterie model: {error}.") from error
    # A damaged archive can cause errors of any type. All of them mean that the file is not a valid model.
    except Exception as error:
        reason = str(error) or type(error).__name__
        raise DamagedModelError(f"{path} is not an intact Coterie model: {reason.rstrip('.')}.") from error
    return content, arrays


def read_parts(data: bytes) -> tuple[dict[str, bytes], bytes]:
    """Return the members and the comment of an uncompressed archive. Their total size is at most that of the archive."""
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        members = archive.infolist()
        names = {member.filename for member in members}
        stored = all(member.compress_type == zipfile.ZIP_STORED for member in members)
        if not stored or len(names) < len(members) or sum(member.file_size for member in members) > len(data):
            raise DamagedModelError("the archive has compressed or repeated members, or members larger than the file")
        return {member.filename: archive.read(member) for member in members}, archive.comment


def plain_array(data: bytes) -> np.ndarray:
    """Return a vector over the bytes of an ``.npy`` file, whose length must match its header; not copied."""
    buffer = io.BytesIO(data)
    version = np.lib.format.read_magic(buffer)
    if version != (1, 0):
        raise DamagedModelError(f"an array has version {version} of the npy format")
    shape, _, dtype = np.lib.format.read_array_header_1_0(buffer)
    if dtype.kind not in _PLAIN_KINDS or len(shape) != 1 or shape[0] * dtype.itemsize != len(data) - buffer.tell():
        raise DamagedModelError("an array does not match its header")
    return np.frombuffer(data, dtype=dtype, offset=buffer.tell())


def is_model(path: Path) -> bool:
    """Return True if a file is an archive with the text of a model, intact or not."""
    try:
        with open_regular(path) as file, zipfile.ZipFile(file) as archive:
            return TEXT in archive.namelist()
    except Exception:  # zipfile raises errors of several types for other files
        return False
