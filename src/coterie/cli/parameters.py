"""Options made from the parameters of estimators and functions, so that every one can be reached.

The signatures are read from the source text: importing scikit-learn and numba takes two seconds, which nobody wants to wait
for ``--help``.
"""

from __future__ import annotations

import ast
import inspect
import json
import re
import textwrap
from collections.abc import Sequence
from functools import lru_cache
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated, Any, NamedTuple, TypeAlias

import typer
from rich.markup import escape

from coterie.cli.options import Bundle
from coterie.estimators.documentation import filled
from coterie.methods import CRITERIA, Method

# Parameters of estimators by name, and the content of results; values are of any kind.
Settings: TypeAlias = dict[str, Any]
_DATA = ("self", "X", "y", "sample_weight")
_CRITERION = "criterion"


class Parameter(NamedTuple):
    """A parameter of an estimator or a function: name, default, and what its docstring says."""

    name: str
    default: Any
    kind: str
    help: str


@lru_cache(maxsize=64)
def read_parameters(place: str) -> tuple[Parameter, ...]:
    """Parameters of ``"module:Class"`` or ``"module:function"``, without those for the data."""
    module, _, name = place.partition(":")
    tree = ast.parse(_file(module).read_text(encoding="utf-8"))
    node = next(n for n in tree.body if isinstance(n, (ast.ClassDef, ast.FunctionDef)) and n.name == name)
    function = node
    if isinstance(node, ast.ClassDef):
        function = next(n for n in node.body if isinstance(n, ast.FunctionDef) and n.name == "__init__")
    assert isinstance(function, ast.FunctionDef)
    texts = _described(filled(ast.get_docstring(node) or ""))
    positional = function.args.posonlyargs + function.args.args
    defaults: list[ast.expr | None] = [None] * (len(positional) - len(function.args.defaults)) + list(function.args.defaults)
    pairs = [*zip(positional, defaults, strict=True), *zip(function.args.kwonlyargs, function.args.kw_defaults, strict=True)]
    return tuple(
        Parameter(argument.arg, _literal(default), *texts.get(argument.arg, ("", "")))
        for argument, default in pairs
        if argument.arg not in _DATA
    )


def _file(module: str) -> Path:
    """The file of a module in a package; ``find_spec`` of the module would import the packages between."""
    package, *inside = module.split(".")
    spec = find_spec(package)
    assert spec is not None
    file = Path(str(spec.origin)).parent.joinpath(*inside)
    return file / "__init__.py" if file.is_dir() else file.with_suffix(".py")


def parameters_of(method: Method) -> tuple[Parameter, ...]:
    """What can be set in a method."""
    return tuple(p for p in read_parameters(method.place) if p.name != "verbose")


def check_setting(method: Method, name: str, chosen: Settings, said: str, hidden: Sequence[str] = ()) -> None:
    """Refuse a parameter that a method has not; ``criterion.name`` is a parameter of its criterion."""
    possible = [p.name for p in parameters_of(method) if p.name not in hidden]
    part, dot, option = name.partition(".")
    if not dot or part != _CRITERION or _CRITERION not in possible:
        if part not in possible:
            raise ValueError(f"{said} has no such parameter; it has {', '.join(possible)}.")
        return
    criterion = chosen.get(_CRITERION, "knn")
    if criterion not in CRITERIA:
        raise ValueError(f"{said} has no criterion {criterion!r}; it has {', '.join(CRITERIA)}.")
    known = [p.name for p in read_parameters(CRITERIA[criterion])]
    if option not in known:
        raise ValueError(f"{said} has no such parameter; {criterion} has {', '.join(known)}.")


def with_criterion(chosen: Settings) -> Settings:
    """Parameters of a method, with those of its criterion put into it.

    Examples
    --------
    >>> from coterie.cli.parameters import with_criterion
    >>> with_criterion({"n_probes": 500, "criterion.n_neighbors": 7})
    {'n_probes': 500, 'criterion': KNNCriterion(n_neighbors=7)}
    """
    options = {name.partition(".")[2]: value for name, value in chosen.items() if name.startswith(f"{_CRITERION}.")}
    if not options:
        return chosen
    from coterie.probing.criteria import criterion_named

    plain = {name: value for name, value in chosen.items() if "." not in name}
    return {**plain, _CRITERION: criterion_named(chosen.get(_CRITERION, "knn"), **options)}


def criteria_text() -> str:
    """The criteria with their parameters, for the lists of methods."""
    listed = (
        f"{name} ({', '.join(f'{p.name}={p.default}' for p in read_parameters(place))})" for name, place in CRITERIA.items()
    )
    return f"Criteria of daf, bif and sffs (criterion=name, criterion.parameter=value): {'; '.join(listed)}."


def _literal(node: ast.expr | None) -> Any:
    try:
        return None if node is None else ast.literal_eval(node)
    except ValueError:
        return None


def _described(docstring: str) -> dict[str, tuple[str, str]]:
    """Type and description of each parameter in a docstring of scikit-learn's form."""
    match = re.search(r"^Parameters\n-+\n(.*?)(?=^\w[\w ]*\n-+\n|\Z)", docstring, flags=re.DOTALL | re.MULTILINE)
    found: dict[str, tuple[str, str]] = {}
    if match is None:
        return found
    for entry in re.split(r"^(?=\w[\w, ]* : )", match.group(1), flags=re.MULTILINE):
        head, _, body = entry.partition("\n")
        names, _, kind = head.partition(" : ")
        text = re.sub(r"\s+", " ", textwrap.dedent(body)).strip().replace("``", "").replace(":meth:", "").replace("`", "")
        text = re.sub(r"(,? as in)? ?\[\d\]_", "", text)
        found |= {name.strip(): (re.sub(r", default=.*", "", kind), text) for name in names.split(",")}
    return found


def parameter_options(
    *places: str,
    only: Sequence[str] | None = None,
    skip: Sequence[str] = (),
    defaults: str | None = None,
    panel: str = "Method",
) -> Bundle:
    """An option for each parameter of some estimators or functions; a command gets a dictionary of those that were set.

    The values are text that :func:`parse_value` reads; the estimators say what is wrong with them. Of several ``places``
    (``"module:name"``) the first one that has a parameter describes it. A default of None stands for that of the function at
    ``defaults``.
    """
    elsewhere = {} if defaults is None else {parameter.name: parameter.default for parameter in read_parameters(defaults)}
    known: dict[str, Parameter] = {}
    for parameter in (p for place in places for p in read_parameters(place)):
        if parameter.name not in skip and (only is None or parameter.name in only):
            default = elsewhere.get(parameter.name) if parameter.default is None else parameter.default
            known.setdefault(parameter.name, parameter._replace(default=default))

    def build(**given: Any) -> Settings:
        return {
            name: parse_value(value) if isinstance(value, str) else _flag(known[name], value)
            for name, value in given.items()
            if value is not None and (value is not False or _is_switch(known[name]))
        }

    return Bundle([_option(parameter, panel) for parameter in known.values()], build)


def _is_switch(parameter: Parameter) -> bool:
    """Whether a parameter is on, off, or left to the estimator."""
    return parameter.default == "auto" and parameter.kind.startswith("bool")


def _flag(parameter: Parameter, value: bool) -> bool:
    """What a flag says: itself for a switch, else what the parameter is not by default."""
    return value if _is_switch(parameter) else not parameter.default


def _option(parameter: Parameter, panel: str) -> inspect.Parameter:
    """An option with a value, or for a parameter that is on or off, a flag for what it is not by default."""
    name = parameter.name.replace("_", "-")
    boolean = isinstance(parameter.default, bool) or _is_switch(parameter)
    choices = re.match(r"\{(.*?)\}", parameter.kind)
    hint = f" ({choices.group(1)})" if choices else ""
    option = typer.Option(
        f"--{name}/--no-{name}" if _is_switch(parameter) else f"--no-{name}" if parameter.default is True else f"--{name}",
        help=escape(f"{_first_sentences(parameter.help)}{hint}")
        + f" [dim]\\[default: {escape(str(parameter.default))}][/dim]",
        show_default=False,
        rich_help_panel=panel,
        metavar=None if boolean else "VALUE",
    )
    kind: Any = bool | None if boolean else str | None
    return inspect.Parameter(parameter.name, inspect.Parameter.KEYWORD_ONLY, default=None, annotation=Annotated[kind, option])


def _first_sentences(text: str, length: int = 160) -> str:
    """As many whole sentences as make about a line or two, at least one."""
    sentences = re.split(r"(?<=[.;]) (?=[A-Z])", text)
    result = sentences[0]
    for sentence in sentences[1:]:
        if len(result) + len(sentence) > length:
            break
        result += f" {sentence}"
    return result


def parse_value(value: object) -> Any:
    """A Python value from the text of an option.

    Numbers, ``true``, ``false`` and ``none`` are what they look like; ``{…}`` and ``[…]`` are JSON; ``a,b,c`` is a list;
    ``@file`` is the list of the lines of a file; anything else is text.

    Examples
    --------
    >>> from coterie.cli.parameters import parse_value
    >>> parse_value("10"), parse_value("0.5"), parse_value("none"), parse_value("3,gene7"), parse_value("pearson")
    (10, 0.5, None, [3, 'gene7'], 'pearson')
    """
    if not isinstance(value, str):
        return value
    text = value.strip()
    words = {"none": None, "null": None, "true": True, "false": False}
    if text.lower() in words:
        return words[text.lower()]
    for number in (int, float):
        try:
            return number(text)
        except ValueError:
            continue
    if text[:1] in "{[" and text:
        try:
            return json.loads(text)
        except ValueError as error:
            raise ValueError(f"{text!r} looks like JSON, but is not: {error}.") from error
    if text.startswith("@"):
        return [parse_value(line) for line in Path(text[1:]).read_text(encoding="utf-8").splitlines() if line.strip()]
    return [parse_value(part) for part in text.split(",") if part.strip()] if "," in text else value


def parse_settings(settings: Sequence[str], option: str) -> Settings:
    """Values given as ``name=value``."""
    chosen = {}
    for setting in settings:
        name, equals, text = setting.partition("=")
        if not equals or not name.strip():
            raise ValueError(f"{option} {setting!r} must have the form name=value, for instance n_neighbors=7.")
        chosen[name.strip().replace("-", "_")] = parse_value(text)
    return chosen


def put_setting(chosen: Settings, name: str, value: object, option: str) -> None:
    """Set a parameter, or with ``name.key`` one entry of a parameter that is a dictionary.

    Those of a criterion are left as they are, for :func:`with_criterion`.

    Examples
    --------
    >>> from coterie.cli.parameters import put_setting
    >>> chosen = {}
    >>> put_setting(chosen, "score_parameters.n_neighbors", 7, "--set")
    >>> chosen
    {'score_parameters': {'n_neighbors': 7}}
    """
    name, dot, key = name.partition(".")
    if not dot or name == _CRITERION:
        chosen[f"{name}{dot}{key}"] = value
    elif key and isinstance(chosen.setdefault(name, {}), dict):
        chosen[name][key] = value
    else:
        raise ValueError(f"{option} {name}.{key}: write name.key=value for one entry of a dictionary.")
