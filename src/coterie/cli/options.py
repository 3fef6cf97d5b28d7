"""Bundles of options: several options of a command as one parameter, so that shared options are defined once.

A parameter whose type is a dataclass stands for one option per field. A new field is a new option of every command that
has such a parameter. Fields that the constructor does not take (``init=False``) are not options.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Sequence
from dataclasses import MISSING, fields, is_dataclass
from functools import wraps
from pathlib import Path
from types import UnionType
from typing import Any, NamedTuple, TypeVar, Union, get_args, get_origin, get_type_hints

import typer
from typer.models import OptionInfo

F = TypeVar("F", bound=Callable[..., Any])
# Parameters whose option has another name.
_OPTIONS = {"covariates": "--covar"}
# Parameters of open_features whose options have their names.
_TABLE_OPTIONS = "label|format|phenotype|drop|impute|categories|dates|weight|delimiter|decimal|sheet"
# Names of types in the help. Flags have none.
_TYPES: dict[Any, str] = {bool: "", int: "INTEGER", float: "FLOAT", str: "TEXT", Path: "PATH"}


class Bundle(NamedTuple):
    """Options, and a function that builds one value from their values, which are passed by name.

    ``Annotated[dict, Bundle(...)]`` is used like a dataclass.
    """

    options: Sequence[inspect.Parameter]
    build: Callable[..., Any]


def with_single_options(command: F) -> F:
    """Return a command for typer, with every bundle among its parameters replaced by its options.

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
    for parameter in single:
        _name_type(parameter)

    @wraps(command)
    def run(**given: Any) -> Any:
        built = {
            name: bundle.build(**{option.name: given.pop(option.name) for option in bundle.options})
            for name, bundle in bundles.items()
        }
        return command(**given, **built)

    # Keyword-only parameters without a default may follow parameters with one.
    keywords = [parameter.replace(kind=inspect.Parameter.KEYWORD_ONLY) for parameter in single]
    run.__signature__ = signature.replace(parameters=keywords)  # type: ignore[attr-defined]  # typer reads it
    run.__annotations__ = {parameter.name: parameter.annotation for parameter in keywords}
    return run  # type: ignore[return-value]  # the same command with other parameters


def _bundle_of(annotation: Any) -> Bundle | None:
    """Return the bundle that a parameter stands for; None if the parameter is an option itself."""
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


def _name_type(parameter: inspect.Parameter) -> None:
    """Name the type of an option in the help, unless it has a name already, and hide a default of None."""
    info = option_info(parameter)
    if info is not None and parameter.default is None:
        info.show_default = False
    if info is None or info.metavar is not None:
        return
    kind = get_args(parameter.annotation)[0]
    if get_origin(kind) in (Union, UnionType):
        kind = next(one for one in get_args(kind) if one is not type(None))
    kind = get_args(kind)[0] if get_origin(kind) is list else kind
    info.metavar = _TYPES.get(kind)


def option_info(parameter: inspect.Parameter) -> OptionInfo | None:
    """Return typer's description of an option; None for a parameter without one."""
    return next((mark for mark in getattr(parameter.annotation, "__metadata__", ()) if isinstance(mark, OptionInfo)), None)


def option(panel: str | None, text: str, names: str = "", *, common: bool = False, default: str = "", **settings: Any) -> Any:
    """Return an option of a command.

    Parameters
    ----------
    panel : str or None
        Panel of the help page.
    text : str
        Description, in rich's markup.
    names : str
        Names such as ``"--output -o"``; by default the name of the parameter.
    common : bool
        Whether ``--help`` shows the option. ``--help-all`` shows all.
    default : str
        Default to show in place of the parameter's own.
    **settings
        As for ``typer.Option``.
    """
    if default:
        text, settings["show_default"] = with_default(text, default), False
    info = typer.Option(*names.split(), help=text, rich_help_panel=panel, **settings)
    info.common = common
    return info


def with_default(text: str, default: str) -> str:
    """Return a description, in rich's markup, followed by a default as typer shows it."""
    return f"{text} \\[default: {default}]"


def option_of(parameter: str) -> str:
    """Return the option for a parameter of a function or an estimator."""
    return _OPTIONS.get(parameter, f"--{parameter.replace('_', '-')}")


def as_options(text: str, parameters: Sequence[str] = ()) -> str:
    """Return a message of a Python function with parameters replaced by the options of the command line.

    Parameters
    ----------
    text : str
        The message.
    parameters : sequence of str
        Names of parameters in the message, if they are known. They are replaced where the message begins with the first one,
        or has ``name=value``.

    Examples
    --------
    >>> from coterie.cli.options import as_options
    >>> as_options("label='sex' is wrong. Use drop='id' or keep_numeric=True, or overwrite=True; or pass label=.")
    "--label 'sex' is wrong. Use --drop 'id' or --keep-numeric, or --overwrite; or pass --label."
    >>> as_options("n_features_to_select='cv' cannot be used with fast=True.", ["n_features_to_select", "fast"])
    '--n-features-to-select cv cannot be used with --fast.'
    """
    for place, name in enumerate(parameters):
        option = option_of(name)
        text = re.sub(rf"\b{name}=True\b", option, text)
        text = re.sub(rf"\b{name}='([\w-]*)'", rf"{option} \1", text)
        text = re.sub(rf"\b{name}=", f"{option} ", text)
        text = re.sub(rf"^{name}(?= )", option, text) if place == 0 else text
    text = text.replace("missing_labels='drop'", "--read missing_labels=drop")
    text = re.sub(r"\bsample_groups=(?=[\w'\"])", "--sample-groups ", text)
    text = re.sub(r"\btask='(classification|regression|counts)'", r"--task \1", text)
    text = re.sub(r"\b(overwrite|keep_numeric|standardize)=True", lambda found: option_of(found[1]), text)
    text = re.sub(r"\bcovariates=(?=[\w'\"])", "--covar ", text)
    text = re.sub(r"\bdates=True", "--dates auto", text)
    text = re.sub(rf"\b({_TABLE_OPTIONS})=(?=[\w'\"])", r"--\1 ", text)
    return re.sub(rf"\b({_TABLE_OPTIONS})=(?=\W|$)", r"--\1", text)
