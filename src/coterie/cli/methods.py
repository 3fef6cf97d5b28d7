"""The methods that rank features, by name: scores of single features, and selectors that look at them together."""

from __future__ import annotations

from importlib import import_module
from importlib.util import find_spec
from typing import Any, NamedTuple

from coterie.cli.parameters import Parameter, read_parameters


class Method(NamedTuple):
    """A method: where it is (``module:name``), what it does, whether it needs labels."""

    place: str
    words: str
    supervised: bool

    @property
    def parameters(self) -> tuple[Parameter, ...]:
        """What can be set."""
        return tuple(p for p in read_parameters(self.place) if p.name != "verbose")

    def load(self) -> Any:
        """The function or class."""
        module, _, name = self.place.partition(":")
        return getattr(import_module(module), name)


_ALL = {
    "variance": Method("coterie.filters.variance:variance_score", "variance", False),
    "lgd": Method("coterie.filters.lgd:lgd_score", "local and global discriminative score", False),
    "laplacian": Method("coterie.filters.laplacian:laplacian_score", "smoothness on a graph of the samples", False),
    "mcfs": Method("coterie.filters.mcfs:mcfs_score", "multi-cluster feature selection", False),
    "fisher": Method("coterie.filters.fisher:fisher_score", "Fisher's ratio of variances", True),
    "relieff": Method("coterie.filters.relieff:relieff_score", "ReliefF", True),
    "information_gain": Method("coterie.filters.information_gain:information_gain_score", "information gain", True),
    "grm": Method(
        "coterie.redundancy.estimator:GlobalRedundancySelector", "global redundancy minimisation over any of the scores", True
    ),
    "daf": Method("coterie.ranking.estimator:DependencyAwareSelector", "dependency-aware ranking by random probes", True),
}


def known_methods() -> dict[str, Method]:
    """The methods of this installation."""
    return {name: method for name, method in _ALL.items() if _exists(method.place.partition(":")[0])}


def _exists(module: str) -> bool:
    try:
        return find_spec(module) is not None
    except ModuleNotFoundError:
        return False
