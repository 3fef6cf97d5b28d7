"""Old import paths: modules that have moved are still found under their former names.

``import coterie.discovery.losses`` gives the very module ``coterie.solver.losses``, so that classes stay the same classes, and
what was pickled by an older Coterie can be unpickled. Our own code uses the new names alone.
"""

from __future__ import annotations

import sys
from importlib import import_module
from importlib.machinery import ModuleSpec
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence
    from types import ModuleType

# Former name and new one, both below coterie; what lies in a package moves with it.
MOVED = {
    "discovery.groups": "groups",
    "discovery.correlation": "correlation.protocol",
    "discovery.pearson": "correlation.pearson",
    "discovery.uncertainty": "correlation.uncertainty",
    "discovery.losses": "solver.losses",
    "discovery.design": "solver.design",
    "discovery.master": "solver.master",
    "discovery.solution": "solver.block_problem",
    "discovery.block_problem": "solver.block_problem",
    "discovery.interior_point": "solver.interior_point",
    "discovery.ridge": "solver.ridge",
    "discovery.wide_master": "solver.wide",
    "discovery.ranking": "discovery.scores",
    "discovery.cross_validation": "discovery.voting",
    "discovery.cutting_plane": "discovery.loop",
    "data.guests": "_inputs",
    "data.libsvm": "data.readers.libsvm",
    "data.npz": "data.readers.npz",
    "data.matrix_market": "data.readers.matrix_market",
    "data.tabular": "data.readers.tabular",
    "data.h5ad": "data.readers.h5ad",
    "data.plink": "data.readers.plink",
    "data.reader": "data.readers.reader",
    "data.detection": "data.readers.detection",
    "data.collect": "data.readers.collect",
    "data.byte_stream": "data.readers.byte_stream",
    "data.labels": "data.readers.labels",
    "data.store_format": "data.store.format",
    "data.store_folder": "data.store.folder",
    "data.store_writer": "data.store.writing",
    "data.strings": "data.names",
    "data.blocks": "data.source",
    "filters.neighbors": "filters.sample_graph",
    "cli.methods": "cli.rank",
    "comparison.filter_selector": "filters.selector",
    "_validation": "_inputs",
    "amounts": "_parameters",
    "atomic": "files",
    "discovery.selector": "discovery.base",
    "discovery.size_search": "discovery.score_table",
    "filters.registry": "methods",
    "redundancy.order": "order",
    "profile.profile": "correlation.profile.count",
    "profile": "correlation.profile",
    "ranking.floating": "baselines.floating",
    "ranking.individual": "baselines.individual",
    "ranking.": "probing.",  # the package itself is still there, with its public names
}


def new_name(name: str) -> str | None:
    """The name of today of a module that has moved; None for any other."""
    package, _, rest = name.partition(".")
    if package != "coterie":
        return None
    for old, new in MOVED.items():
        if rest == old or (rest.startswith(old) and (old.endswith(".") or rest[len(old)] == ".")):
            return f"coterie.{new}{rest[len(old) :]}"
    return None


class _SameModule:
    """Loads a module under another name: it is the same object. (``importlib.abc`` would be slow to import.)"""

    def __init__(self, name: str) -> None:
        self._name = name
        self._spec: ModuleSpec | None = None

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        module = import_module(self._name)
        self._spec = module.__spec__
        return module

    def exec_module(self, module: ModuleType) -> None:
        module.__spec__ = self._spec  # which the import system has just overwritten


class _FormerNames:
    """Finds modules by their former names."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        new = new_name(fullname)
        if new is None:
            return None
        return ModuleSpec(fullname, _SameModule(new))  # type: ignore[arg-type]  # it has what a loader needs


def install() -> None:
    """Let the import system know the former names."""
    if not any(isinstance(finder, _FormerNames) for finder in sys.meta_path):
        sys.meta_path.insert(0, _FormerNames())  # before the finder of files, which would load a second copy
