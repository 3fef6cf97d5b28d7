"""Options made from the parameters of estimators and functions, so that every parameter can be set.

Signatures and docstrings are read from the source text, because importing scikit-learn and numba takes two seconds, too long
for ``--help``.
"""

from __future__ import annotations

import ast
import inspect
import json
import re
import textwrap
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated, Any, NamedTuple, TypeAlias

from rich.markup import escape

from coterie.cli.options import Bundle, option, option_of
from coterie.estimators.documentation import filled
from coterie.methods import CRITERIA, Method

# Parameters of estimators by name, and the content of results; values are of any type.
Settings: TypeAlias = dict[str, Any]
_DATA = ("self", "X", "y", "sample_weight")
_CRITERION = "criterion"
# Length up to which the choices of an option are shown in place of its type. Longer ones follow the description.
_MAX_CHOICES_WIDTH = 20


class Parameter(NamedTuple):
    """A parameter of an estimator or a function: name, default, and type and description from its docstring."""

    name: str
    default: Any
    kind: str
    help: str


@lru_cache(maxsize=64)
def read_parameters(place: str) -> tuple[Parameter, ...]:
    """Return the parameters of ``"module:Class"`` or ``"module:function"``, except those for data."""
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
    """Return the file of a module. ``find_spec`` of the module itself would import its parent packages."""
    package, *inside = module.split(".")
    spec = find_spec(package)
    assert spec is not None
    file = Path(str(spec.origin)).parent.joinpath(*inside)
    return file / "__init__.py" if file.is_dir() else file.with_suffix(".py")


def parameters_of(method: Method) -> tuple[Parameter, ...]:
    """Return the parameters of a method that can be set."""
    return tuple(p for p in read_parameters(method.place) if p.name != "verbose")


def check_setting(method: Method, name: str, chosen: Settings, subject: str, hidden: Sequence[str] = ()) -> None:
    """Raise a ``ValueError`` if a method does not have a parameter; ``criterion.name`` is a parameter of its criterion.

    ``subject`` is the beginning of the message: the option and the method.
    """
    possible = [p.name for p in parameters_of(method) if p.name not in hidden]
    part, dot, option = name.partition(".")
    if not dot or part != _CRITERION or _CRITERION not in possible:
        if part not in possible:
            raise ValueError(f"{subject} has no such parameter. Its parameters are {', '.join(possible)}.")
        return
    criterion = chosen.get(_CRITERION, "knn")
    if criterion not in CRITERIA:
        raise ValueError(f"{subject} has no criterion {criterion!r}. The criteria are {', '.join(CRITERIA)}.")
    known = [p.name for p in read_parameters(CRITERIA[criterion])]
    if option not in known:
        raise ValueError(f"{subject} with criterion {criterion} has no such parameter. Its parameters are {', '.join(known)}.")


def with_criterion(chosen: Settings) -> Settings:
    """Return the parameters of a method, with the parameters of its criterion replaced by a criterion that has them.

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
    """Return the criteria with their parameters, for the lists of methods."""
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
    """Return type and description of each parameter in a NumPy-style docstring, as plain text."""
    match = re.search(r"^Parameters\n-+\n(.*?)(?=^\w[\w ]*\n-+\n|\Z)", docstring, flags=re.DOTALL | re.MULTILINE)
    found: dict[str, tuple[str, str]] = {}
    if match is None:
        return found
    for entry in re.split(r"^(?=\w[\w, ]* : )", match.group(1), flags=re.MULTILINE):
        head, _, body = entry.partition("\n")
        names, _, kind = head.partition(" : ")
        found |= {name.strip(): (re.sub(r", default=.*", "", kind), _plain(body)) for name in names.split(",")}
    return found


def _plain(body: str) -> str:
    """Return the text of a description without reStructuredText markup and references."""
    text = re.sub(r"\s+", " ", textwrap.dedent(body)).strip()
    text = re.sub(r":\w+:`~?([^`]*)`", lambda match: match[1].rpartition(".")[2], text).replace("`", "")
    return re.sub(r"(,? as in)? ?\[\d\]_", "", text)


def parameter_options(
    *places: str,
    panels: Mapping[str, str | Sequence[str]],
    common: Sequence[str] = (),
    texts: Mapping[str, str] | None = None,
    defaults: Mapping[str, object] | None = None,
    defaults_of: str | None = None,
) -> Bundle:
    """Return one option per parameter of some estimators or functions; the command gets a dictionary of the options set.

    The values are text, converted by :func:`parse_value` and checked by the estimators.

    Parameters
    ----------
    *places : str
        Estimators or functions as ``"module:name"``. The first one that has a parameter describes it.

    panels : mapping
        Names of the parameters by panel of the help. ``"*"`` stands for all other parameters. Parameters without a panel, or
        of the panel ``""``, have no option.

    common : sequence of str
        Parameters that ``--help`` shows.

    texts : mapping of str, default=None
        Descriptions for the command line, in place of the first sentences of those in the docstrings.

    defaults : mapping, default=None
        Defaults to show in place of those in the signatures.

    defaults_of : str, default=None
        Function with the defaults of parameters that are None in the signatures.
    """
    elsewhere = (
        {} if defaults_of is None else {parameter.name: parameter.default for parameter in read_parameters(defaults_of)}
    )
    panel_of = {name: panel for panel, names in panels.items() for name in ([names] if isinstance(names, str) else names)}
    known: dict[str, Parameter] = {}
    for parameter in (p for place in places for p in read_parameters(place)):
        default = elsewhere.get(parameter.name) if parameter.default is None else parameter.default
        known.setdefault(parameter.name, parameter._replace(default=default))
    options: list[inspect.Parameter] = []
    for name, parameter in known.items():
        panel = panel_of.get(name, panel_of.get("*"))
        if panel:
            text = (texts or {}).get(name) or _with_option_names(_first_sentences(parameter.help), known)
            default = _shown((defaults or {}).get(name, parameter.default))
            options.append(_option(parameter, panel, text, default, common=name in common))

    def build(**given: Any) -> Settings:
        return {
            name: _parsed(name, value) if isinstance(value, str) else _flag(known[name], value)
            for name, value in given.items()
            if value is not None and (value is not False or _is_switch(known[name]))
        }

    return Bundle(options, build)


def _parsed(name: str, value: str) -> Any:
    """Return the value of an option, whose name is added to an error message."""
    try:
        return parse_value(value)
    except ValueError as error:
        raise ValueError(f"{option_of(name)} {error}") from error


def _is_switch(parameter: Parameter) -> bool:
    """Return True if a parameter can be on, off, or decided by the estimator."""
    return parameter.default == "auto" and parameter.kind.startswith("bool")


def _flag(parameter: Parameter, value: bool) -> bool:
    """Return the value that a flag sets: its own for a switch, otherwise the opposite of the default."""
    return value if _is_switch(parameter) else not parameter.default


def _option(parameter: Parameter, panel: str, text: str, default: str, *, common: bool) -> inspect.Parameter:
    """Return an option with a value; for a boolean parameter, a flag that sets the opposite of the default."""
    name = parameter.name.replace("_", "-")
    boolean = isinstance(parameter.default, bool) or _is_switch(parameter)
    negated = parameter.default is True
    metavar, choices = ("", "") if boolean else _type_and_choices(parameter.kind)
    info = option(
        panel,
        escape(f"{text}{choices}"),
        f"--{name}/--no-{name}" if _is_switch(parameter) else f"--no-{name}" if negated else f"--{name}",
        common=common,
        default="" if boolean and not _is_switch(parameter) else escape(default),
        show_default=False,
        metavar=metavar,
    )
    kind: Any = bool | None if boolean else str | None
    return inspect.Parameter(parameter.name, inspect.Parameter.KEYWORD_ONLY, default=None, annotation=Annotated[kind, info])


def _shown(default: Any) -> str:
    """Return a default as it is typed on the command line; empty for None."""
    if isinstance(default, (list, tuple)):
        return ",".join(map(str, default))
    return "" if default is None else str(default)


def _type_and_choices(kind: str) -> tuple[str, str]:
    """Return the type of an option for the help, and text with its choices if these are too long for a type.

    Examples
    --------
    >>> from coterie.cli.parameters import _type_and_choices
    >>> _type_and_choices('int or "auto"'), _type_and_choices('{"best", "one_se"}')
    (('INTEGER|auto', ''), ('best|one_se', ''))
    >>> _type_and_choices("int or list of float"), _type_and_choices("int, RandomState instance or None")
    (('INTEGER|FLOAT,...', ''), ('INTEGER', ''))
    """
    braces = re.match(r"\{(.*?)\}", kind)
    if braces:
        choices = [choice.strip(' "') for choice in braces[1].split(",")]
        text = "|".join("none" if choice == "None" else choice for choice in choices)
        return (text, "") if len(text) <= _MAX_CHOICES_WIDTH else ("TEXT", f" One of {', '.join(text.split('|'))}.")
    parts = []
    if re.search(r"array-like of int, str", kind):
        return "FEATURE,...", ""
    if re.match(r"dict\b", kind):
        parts.append("JSON")
    if re.match(r"int\b", kind):
        parts.append("INTEGER")
    if re.search(r"\blist of float", kind):
        parts.append("FLOAT,...")
    elif re.search(r"\bfloat\b", kind):
        parts.append("FLOAT")
    words = re.findall(r'"(\w+)"', kind)
    return "|".join([*parts, *words]) or "TEXT", ""


def _with_option_names(text: str, names: Iterable[str]) -> str:
    """Return text with names of parameters that contain an underscore replaced by those of their options."""
    pattern = "|".join(name for name in names if "_" in name)
    return re.sub(rf"\b({pattern})\b", lambda match: option_of(match[1]), text) if pattern else text


def _first_sentences(text: str, length: int = 160) -> str:
    """Return as many whole sentences as fit into a length, at least one."""
    sentences = re.split(r"(?<=[.;]) (?=[A-Z])", text)
    result = sentences[0]
    for sentence in sentences[1:]:
        if len(result) + len(sentence) > length:
            break
        result += f" {sentence}"
    return result


def parse_value(value: object) -> Any:
    """Return a Python value from the text of an option.

    Numbers, ``true``, ``false`` and ``none`` become the Python values. ``{…}`` and ``[…]`` are read as JSON, ``a,b,c`` as a
    list, ``@file`` as the list of the lines of a file. Anything else is text.

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
            raise ValueError(f"{text!r} is not valid JSON: {error}.") from error
    if text.startswith("@"):
        return [parse_value(line) for line in Path(text[1:]).read_text(encoding="utf-8").splitlines() if line.strip()]
    return [parse_value(part) for part in text.split(",") if part.strip()] if "," in text else value


def parse_settings(settings: Sequence[str], option: str) -> Settings:
    """Return the values given as ``name=value``."""
    chosen = {}
    for setting in settings:
        name, equals, text = setting.partition("=")
        if not equals or not name.strip():
            raise ValueError(f"{option} {setting!r} must have the form name=value, for instance n_neighbors=7.")
        chosen[name.strip().replace("-", "_")] = parse_value(text)
    return chosen


def put_setting(chosen: Settings, name: str, value: object, option: str) -> None:
    """Set a parameter; ``name.key`` sets one entry of a parameter that is a dictionary.

    Parameters of a criterion are kept under their full names for :func:`with_criterion`.

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
        raise ValueError(f"{option} {name}.{key}: set an entry of a dictionary with name.key=value.")
