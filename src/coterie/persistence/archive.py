"""The file of a model: a ZIP archive (NumPy's ``.npz``) of plain arrays and one JSON text, with checksums.

Nothing here knows what the arrays and the text mean.
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
# Bytes that a byte of JSON can take as Python objects: empty lists are the worst.
_JSON_BYTES = 30
_PLAIN_KINDS = "biufcSU"
_FIXED_TIME = (1980, 1, 1, 0, 0, 0)  # the same model makes the same bytes


class DamagedModelError(ValueError):
    """The file is not what :func:`coterie.save` wrote: damaged, cut off, or something else altogether."""


def write_archive(path: Path, content: Mapping[str, Any], arrays: Mapping[str, np.ndarray]) -> None:
    """Write the JSON text and the arrays; the digests of the arrays stand in the text, that of the text in the comment."""
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
    """The JSON text and the arrays, after all checksums; memory stays bounded by the size of the file."""
    data = read_regular(path)  # in memory, an error of the disk cannot be taken for one of the archive
    try:
        parts, comment = read_parts(data)
        if TEXT not in parts:
            raise DamagedModelError(f"it has no part {TEXT}")
        text = parts[TEXT]
        if hashlib.sha256(text).hexdigest().encode() != comment:
            raise DamagedModelError("the checksum of its text is wrong")
        require_memory(_JSON_BYTES * len(text), path, "its text")
        content = json.loads(text.decode("utf-8", "surrogatepass"))
        arrays = {}
        for name, digest in content["sha256"].items():
            part = parts[f"{name}.npy"]
            if hashlib.sha256(part).hexdigest() != digest:
                raise DamagedModelError("the checksum of an array is wrong")
            arrays[name] = plain_array(part)
    except DataFileError:  # which has the path
        raise
    except DamagedModelError as error:
        raise DamagedModelError(f"{path} is not an intact Coterie model: {error}.") from error
    # Whatever a damaged archive makes the readers stumble over, the user needs to know one thing.
    except Exception as error:
        reason = str(error) or type(error).__name__
        raise DamagedModelError(f"{path} is not an intact Coterie model: {reason.rstrip('.')}.") from error
    return content, arrays


def read_parts(data: bytes) -> tuple[dict[str, bytes], bytes]:
    """The parts of an archive that is not compressed, and its comment; all parts together are no larger than the archive."""
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        members = archive.infolist()
        names = {member.filename for member in members}
        stored = all(member.compress_type == zipfile.ZIP_STORED for member in members)
        if not stored or len(names) < len(members) or sum(member.file_size for member in members) > len(data):
            raise DamagedModelError("it has compressed parts, parts larger than the file, or a part twice")
        return {member.filename: archive.read(member) for member in members}, archive.comment


def plain_array(data: bytes) -> np.ndarray:
    """A vector from the bytes of an ``.npy`` file, which must be just as long as its header says; not copied."""
    buffer = io.BytesIO(data)
    version = np.lib.format.read_magic(buffer)
    if version != (1, 0):
        raise DamagedModelError(f"an array has version {version} of the npy format")
    shape, _, dtype = np.lib.format.read_array_header_1_0(buffer)
    if dtype.kind not in _PLAIN_KINDS or len(shape) != 1 or shape[0] * dtype.itemsize != len(data) - buffer.tell():
        raise DamagedModelError("an array is not what its header says")
    return np.frombuffer(data, dtype=dtype, offset=buffer.tell())


def is_model(path: Path) -> bool:
    """Whether a file looks like a model: an archive with the text of one, intact or not."""
    try:
        with open_regular(path) as file, zipfile.ZipFile(file) as archive:
            return TEXT in archive.namelist()
    except Exception:  # zipfile has many ways to say that this is no archive
        return False
