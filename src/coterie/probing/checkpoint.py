"""Checkpoint file of a ranking: written atomically, bound to its data, and free of executable code."""

from __future__ import annotations

import hashlib
import io
import json
import re
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from coterie.bounds import DataFileError, read_regular
from coterie.data.source import FeatureSource
from coterie.files import new_file
from coterie.inputs.folds import Fold
from coterie.inputs.types import PathLike
from coterie.persistence.archive import plain_array, read_parts
from coterie.persistence.names import stable_name
from coterie.probing.adaptive import AdaptivePlan
from coterie.probing.criteria.base import Criterion
from coterie.probing.probes import Key, ProbePlan

_FORMAT = "coterie probes"
_VERSION = 1
_BLOCK = 1024

ProblemDigests = dict[str, str]
_PARTS = {
    "data": "with different data (X)",
    "labels": "with different labels (y)",
    "folds": "with different folds (cv)",
    "criterion": "with a different criterion",
    "probes": (
        "with a different max_probe_size, inclusion_probability or sampling (or n_features_to_select, which adaptive "
        "probes depend on)"
    ),
    "seed": "with a different random_state",
}


def problem_digests(
    source: FeatureSource, y: np.ndarray | None, criterion: Criterion, folds: list[Fold] | None, plan: ProbePlan
) -> ProblemDigests:
    """Return digests of everything that the values of the probes depend on.

    A function among the parameters is identified by its name. Changes of its code are not detected.
    """
    return {
        "data": source.map_tasks(_digest_of_data, [()], what="a digest of the features")[0],
        "labels": "" if y is None else _digest(str(y.dtype).encode(), repr(y.tolist()).encode()),
        "folds": _digest(*(np.asarray(part, dtype=np.int64).tobytes() + b"|" for fold in folds or [] for part in fold)),
        "criterion": _digest(_description(criterion).encode()),
        "probes": _digest(repr(_sampling_settings(plan)).encode()),
        "seed": seed_digest(plan),
    }


def _sampling_settings(plan: ProbePlan) -> tuple[Any, ...]:
    """Return the settings that determine the features of a probe, without its seed."""
    uniform = plan.n_features, plan.max_size, plan.inclusion_probability
    return (*uniform, "adaptive", plan.n_wanted) if isinstance(plan, AdaptivePlan) else uniform


def seed_digest(plan: ProbePlan) -> str:
    """Return the digest of the seed. In a checkpoint, an empty string instead stands for any seed."""
    return _digest(repr(plan.key).encode())


def difference(theirs: ProblemDigests, ours: ProblemDigests) -> str | None:
    """Return a phrase for the first difference of two sets of digests, or None if they agree."""
    return next((words for part, words in _PARTS.items() if theirs.get(part) != ours[part]), None)


def _digest(*parts: bytes) -> str:
    digest = hashlib.blake2b(digest_size=16)
    for part in parts:
        digest.update(part)
    return digest.hexdigest()


def _digest_of_data(source: FeatureSource) -> str:
    """Return the digest of all values."""
    digest = hashlib.blake2b(repr((source.shape, source.is_sparse)).encode(), digest_size=16)
    for _, block in source.blocks(_BLOCK):
        digest.update(str(block.dtype).encode())
        if not isinstance(block, np.ndarray):
            for part in (np.diff(block.indptr).astype(np.int64), block.indices.astype(np.int64), block.data):
                digest.update(np.ascontiguousarray(part).data)
        else:
            digest.update(np.ascontiguousarray(block.T).data)
    return digest.hexdigest()


def _description(value: object) -> str:
    """Return a text that is equal for equal parameters in any process."""
    if hasattr(value, "get_params") and not isinstance(value, type):
        parameters = sorted(value.get_params(deep=False).items())
        inside = ", ".join(f"{name}={_description(part)}" for name, part in parameters)
        return f"{stable_name(type(value))}({inside})"
    if isinstance(value, (list, tuple)):
        return f"[{', '.join(map(_description, value))}]"
    if isinstance(value, dict):
        return f"{{{', '.join(f'{_description(k)}: {_description(v)}' for k, v in value.items())}}}"
    if isinstance(value, np.ndarray):
        return f"array({value.dtype}, {value.shape}, {_digest(np.ascontiguousarray(value).tobytes())})"
    if callable(value) and hasattr(value, "__qualname__"):
        return f"{value.__module__}.{value.__qualname__}"
    return re.sub(r" at 0x[0-9a-fA-F]+", "", repr(value))


class SavedProbes(NamedTuple):
    """Content of a checkpoint."""

    values: np.ndarray
    key: Key


class Checkpoint:
    """File with the values of all finished probes. The probes themselves are drawn again from the seed.

    The file is an ``.npz`` archive with a JSON header and one array, read without pickle. Its folder must exist.
    """

    def __init__(self, path: PathLike, problem_digests: ProblemDigests) -> None:
        self.path = Path(path)
        self.problem_digests = problem_digests
        if not self.path.parent.is_dir():
            raise ValueError(
                f"checkpoint={str(path)!r} cannot be written: the folder {str(self.path.parent)!r} does not exist."
            )
        if self.path.is_dir():
            raise ValueError(f"checkpoint={str(path)!r} is a folder. Give the name of a file.")

    def load(self) -> SavedProbes | None:
        """Return the saved values, or None if the file does not exist.

        Raises ``ValueError`` if the file belongs to a different run or is damaged.
        """
        try:
            content = read_regular(self.path)
        except FileNotFoundError:
            return None
        except DataFileError as error:
            raise ValueError(f"{self._name} cannot be read: {str(error).removeprefix(f'{self.path}: ')}") from error
        try:
            parts, _ = read_parts(content)
            header = json.loads(plain_array(parts["header.npy"]).tobytes().decode())
            values = plain_array(parts["values.npy"])
            first, second = header["key"]
            key = int(first), int(second)
            version, theirs = int(header["version"]), dict(header["fingerprint"])
            numbers = values.dtype == np.float64 and bool(np.isfinite(values).all())
            if header["format"] != _FORMAT or not numbers or not all(0 <= part < 2**64 for part in key):
                raise ValueError("not a checkpoint")
        except Exception as error:  # damaged zip files and JSON raise many kinds of exceptions
            raise ValueError(f"{self._name} is damaged or not a Coterie checkpoint. Remove it to start again.") from error
        if version != _VERSION:
            raise ValueError(
                f"{self._name} has format version {version}, but this version of Coterie reads version {_VERSION}. Remove it."
            )
        other = difference(theirs, self.problem_digests)
        if other is not None:
            raise ValueError(
                f"{self._name} was made {other}. Use the same as before, choose another file, or remove this one."
            )
        return SavedProbes(values, key)

    def save(self, values: np.ndarray, key: Key) -> None:
        """Replace the file atomically."""
        header = {"format": _FORMAT, "version": _VERSION, "fingerprint": self.problem_digests, "key": key}
        buffer = io.BytesIO()
        np.savez(buffer, header=np.frombuffer(json.dumps(header).encode(), dtype=np.uint8), values=values)
        with new_file(self.path) as partial:
            partial.write_bytes(buffer.getbuffer())

    @property
    def _name(self) -> str:
        return f"The checkpoint {str(self.path)!r}"
