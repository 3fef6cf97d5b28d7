"""Several options as one parameter of a command, so that what commands share is written once.

A parameter whose type is a dataclass stands for an option a field: a field more is an option more in every command that
takes the class. Fields that the constructor does not take (``init=False``) are no options.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from dataclasses import MISSING, fields, is_dataclass
from functools import wraps
from typing import Any, NamedTuple, TypeVar, get_type_hints

F = TypeVar("F", bound=Callable[..., Any])


class Bundle(NamedTuple):
    """Options, and what makes of their values (given by name) the one value that a command gets.

    As a mark of an annotation, ``Annotated[dict, Bundle(...)]``, it does what a dataclass does.
    """

    options: Sequence[inspect.Parameter]
    build: Callable[..., Any]


def with_single_options(command: F) -> F:
    """The command as typer wants it: every bundle among its parameters has given way to its options.

    Examples
    --------
    >>> from dataclasses import dataclass
    >>> from inspect import signature
    >>> from coterie.cli.options import with_single_options
    >>> @dataclass
    ... class Place:
    ...     x: int
    ...     y: int = 0
    >>> def go(name: str, place: Place) -> None:
    ...     print(name, place)
    >>> list(signature(with_single_options(go)).parameters)
    ['name', 'x', 'y']
    >>> with_single_options(go)(name="home", x=3, y=4)
    home Place(x=3, y=4)
    """
    signature = inspect.signature(command, eval_str=True)
    single: list[inspect.Parameter] = []
    bundles: dict[str, Bundle] = {}
    for parameter in signature.parameters.values():
        bundle = _bundle_of(parameter.annotation)
        if bundle is not None:
            bundles[parameter.name] = bundle
        single += [parameter] if bundle is None else bundle.options

    @wraps(command)
    def run(**given: Any) -> Any:
        built = {
            name: bundle.build(**{option.name: given.pop(option.name) for option in bundle.options})
            for name, bundle in bundles.items()
        }
        return command(**given, **built)

    # By keyword, a required one may come after one with a default.
    keywords = [parameter.replace(kind=inspect.Parameter.KEYWORD_ONLY) for parameter in single]
    run.__signature__ = signature.replace(parameters=keywords)  # type: ignore[attr-defined]  # what typer reads
    run.__annotations__ = {parameter.name: parameter.annotation for parameter in keywords}
    return run  # type: ignore[return-value]  # the same command with other parameters


def _bundle_of(annotation: Any) -> Bundle | None:
    """What a parameter stands for; None for one that is an option itself."""
    if not is_dataclass(annotation):
        return next((mark for mark in getattr(annotation, "__metadata__", ()) if isinstance(mark, Bundle)), None)
    types = get_type_hints(annotation, include_extras=True)
    options = [
        inspect.Parameter(
            field.name,
            inspect.Parameter.KEYWORD_ONLY,
            default=inspect.Parameter.empty if field.default is MISSING else field.default,
            annotation=types[field.name],
        )
        for field in fields(annotation)
        if field.init
    ]
    return Bundle(options, annotation)  # type: ignore[arg-type]  # a class, not an instance
