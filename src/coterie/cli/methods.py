"""The methods that rank all features, by name, and what can be set in them."""

from __future__ import annotations

from coterie.cli.parameters import Parameter, read_parameters
from coterie.methods import METHODS, Method

_ALL = {name: method for name, method in METHODS.items() if method.ranks}


def known_methods() -> dict[str, Method]:
    """The methods that rank."""
    return dict(_ALL)


def parameters_of(method: Method) -> tuple[Parameter, ...]:
    """What can be set."""
    return tuple(p for p in read_parameters(method.place) if p.name != "verbose")
