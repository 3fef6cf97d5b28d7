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

TEXT = "model.json"
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
    data = path.read_bytes()  # in memory, an error of the disk cannot be taken for one of the archive
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            members = {member.filename: member for member in archive.infolist()}
            if any(m.compress_type != zipfile.ZIP_STORED or m.file_size > len(data) for m in members.values()):
                raise DamagedModelError("it has compressed parts or parts larger than the file")
            if TEXT not in members:
                raise DamagedModelError(f"it has no part {TEXT}")
            text = archive.read(TEXT)
            if hashlib.sha256(text).hexdigest().encode() != archive.comment:
                raise DamagedModelError("the checksum of its text is wrong")
            content = json.loads(text.decode("utf-8", "surrogatepass"))
            arrays = {name: _read_array(archive.read(f"{name}.npy"), digest) for name, digest in content["sha256"].items()}
    except DamagedModelError as error:
        raise DamagedModelError(f"{path} is not an intact Coterie model: {error}.") from error
    # Whatever a damaged archive makes the readers stumble over, the user needs to know one thing.
    except Exception as error:
        reason = str(error) or type(error).__name__
        raise DamagedModelError(f"{path} is not an intact Coterie model: {reason.rstrip('.')}.") from error
    return content, arrays


def _read_array(data: bytes, digest: str) -> np.ndarray:
    """An array from the bytes of an ``.npy`` file, which must be just as long as its header says."""
    if hashlib.sha256(data).hexdigest() != digest:
        raise DamagedModelError("the checksum of an array is wrong")
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
        with zipfile.ZipFile(path) as archive:
            return TEXT in archive.namelist()
    except (OSError, zipfile.BadZipFile, ValueError, NotImplementedError):
        return False
