"""Several options as one parameter of a command, so that what commands share is written once.

A parameter whose type is a dataclass stands for an option a field: a field more is an option more in every command that
takes the class. Fields that the constructor does not take (``init=False``) are no options.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Sequence
from dataclasses import MISSING, fields, is_dataclass
from functools import wraps
from typing import Any, NamedTuple, TypeVar, get_type_hints

import typer

F = TypeVar("F", bound=Callable[..., Any])
# Parameters whose option has another name.
_OPTIONS = {"covariates": "--covar"}


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


def option(panel: str | None, text: str, names: str = "", **more: Any) -> Any:
    """An option under a heading (panel) of the help; its names are such as ``"--output -o"``, by default the parameter's."""
    return typer.Option(*names.split(), help=text, rich_help_panel=panel, **more)


def option_of(parameter: str) -> str:
    """The option for a parameter of a function or an estimator."""
    return _OPTIONS.get(parameter, f"--{parameter.replace('_', '-')}")


def as_options(text: str, parameters: Sequence[str] = ()) -> str:
    """A message of a Python function with its parameters as the options they are here.

    Parameters
    ----------
    text : str
        The message.
    parameters : sequence of str
        Names of parameters in the message, if they are known: its first word, or ``name=value``.

    Examples
    --------
    >>> from coterie.cli.options import as_options
    >>> as_options("label='sex' is wrong. Say drop='id' or keep_numeric=True, or overwrite=True; or state label=.")
    "--label 'sex' is wrong. Say --drop 'id' or --keep-numeric, or --overwrite; or state --label."
    >>> as_options("n_features_to_select='cv' does not go with fast=True.", ["n_features_to_select", "fast"])
    '--n-features-to-select cv does not go with --fast.'
    """
    for place, name in enumerate(parameters):
        option = option_of(name)
        text = re.sub(rf"\b{name}=True\b", option, text)
        text = re.sub(rf"\b{name}='([\w-]*)'", rf"{option} \1", text)
        text = re.sub(rf"\b{name}=", f"{option} ", text)
        text = re.sub(rf"^{name}(?= )", option, text) if place == 0 else text
    text = text.replace("missing_labels='drop'", "--read missing_labels=drop")
    text = re.sub(r"\b(overwrite|keep_numeric|standardize)=True", lambda found: option_of(found[1]), text)
    text = re.sub(r"\b(label|format|phenotype|drop|impute)=(?=[\w'\"])", r"--\1 ", text)
    return re.sub(r"\b(label|format|phenotype|drop|impute)=(?=\W|$)", r"--\1", text)
