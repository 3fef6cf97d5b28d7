"""A file from which a ranking goes on after a kill: written whole or not at all, bound to its data, no code in it."""

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
    "data": "with other data (X)",
    "labels": "with other labels (y)",
    "folds": "with other folds (cv)",
    "criterion": "with another criterion",
    "probes": "with another max_probe_size, inclusion_probability or sampling (or, adaptive, n_features_to_select)",
    "seed": "with another random_state",
}


def problem_digests(
    source: FeatureSource, y: np.ndarray | None, criterion: Criterion, folds: list[Fold] | None, plan: ProbePlan
) -> ProblemDigests:
    """What the values of the probes depend on, in short hashes.

    A function among the parameters counts by its name: whether its code is the same cannot be checked.
    """
    return {
        "data": source.map_tasks(_digest_of_data, [()], what="a digest of the features")[0],
        "labels": "" if y is None else _digest(str(y.dtype).encode(), repr(y.tolist()).encode()),
        "folds": _digest(*(np.asarray(part, dtype=np.int64).tobytes() + b"|" for fold in folds or [] for part in fold)),
        "criterion": _digest(_description(criterion).encode()),
        "probes": _digest(repr(_drawing(plan)).encode()),
        "seed": seed_mark(plan),
    }


def _drawing(plan: ProbePlan) -> tuple[Any, ...]:
    """What the features of a probe depend on besides its seed; uniform probes have no further parts."""
    uniform = plan.n_features, plan.max_size, plan.inclusion_probability
    return (*uniform, "adaptive", plan.n_wanted) if isinstance(plan, AdaptivePlan) else uniform


def seed_mark(plan: ProbePlan) -> str:
    """The part of a fingerprint that is the seed; an empty one in its place stands for any seed."""
    return _digest(repr(plan.key).encode())


def difference(theirs: ProblemDigests, ours: ProblemDigests) -> str | None:
    """What two fingerprints differ in, in words; None if they agree."""
    return next((words for part, words in _PARTS.items() if theirs.get(part) != ours[part]), None)


def _digest(*parts: bytes) -> str:
    digest = hashlib.blake2b(digest_size=16)
    for part in parts:
        digest.update(part)
    return digest.hexdigest()


def _digest_of_data(source: FeatureSource) -> str:
    """The digest of all values."""
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
    """A text that is the same for the same parameters in any process."""
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


class Saved(NamedTuple):
    """What a checkpoint holds."""

    values: np.ndarray
    key: Key


class Checkpoint:
    """The values of all finished probes in a file; the probes themselves are drawn again from the seed.

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
            raise ValueError(f"checkpoint={str(path)!r} is a folder; give the name of a file.")

    def load(self) -> Saved | None:
        """What was saved; None if there is no file. Raises ``ValueError`` if it belongs to another run, or is damaged."""
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
                raise ValueError("not ours")
        except Exception as error:  # zip files and JSON have many ways to be damaged
            raise ValueError(f"{self._name} is damaged, or no checkpoint of Coterie. Remove it to start afresh.") from error
        if version != _VERSION:
            raise ValueError(f"{self._name} has format version {version}; this Coterie reads version {_VERSION}. Remove it.")
        other = difference(theirs, self.problem_digests)
        if other is not None:
            raise ValueError(f"{self._name} was made {other}. Give the same as then, or another file, or remove this one.")
        return Saved(values, key)

    def save(self, values: np.ndarray, key: Key) -> None:
        """Replace the file at one stroke."""
        header = {"format": _FORMAT, "version": _VERSION, "fingerprint": self.problem_digests, "key": key}
        buffer = io.BytesIO()
        np.savez(buffer, header=np.frombuffer(json.dumps(header).encode(), dtype=np.uint8), values=values)
        with new_file(self.path) as partial:
            partial.write_bytes(buffer.getbuffer())

    @property
    def _name(self) -> str:
        return f"The checkpoint {str(self.path)!r}"
