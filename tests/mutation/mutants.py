"""Mutants of a source file: small changes of its syntax tree that tests should notice.

A *place* is a node of the syntax tree to which one or more changes apply. Docstrings, messages, annotations, decorators,
``if TYPE_CHECKING`` blocks, ``__all__`` and the text of ``__repr__`` are left out: changes there are invisible or trivial.
"""

from __future__ import annotations

import ast
import copy
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

COMPARISONS: dict[type[ast.cmpop], tuple[type[ast.cmpop], ...]] = {
    ast.Lt: (ast.LtE, ast.GtE),
    ast.LtE: (ast.Lt, ast.Gt),
    ast.Gt: (ast.GtE, ast.LtE),
    ast.GtE: (ast.Gt, ast.Lt),
    ast.Eq: (ast.NotEq,),
    ast.NotEq: (ast.Eq,),
    ast.Is: (ast.IsNot,),
    ast.IsNot: (ast.Is,),
    ast.In: (ast.NotIn,),
    ast.NotIn: (ast.In,),
}
ARITHMETIC: dict[type[ast.operator], type[ast.operator]] = {
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.Div,
    ast.Div: ast.Mult,
    ast.FloorDiv: ast.Div,
    ast.Pow: ast.Mult,
    ast.BitAnd: ast.BitOr,
    ast.BitOr: ast.BitAnd,
}
OPPOSITES = {"min": "max", "minimum": "maximum", "argmin": "argmax", "nanmin": "nanmax", "fmin": "fmax"}
OPPOSITES |= {value: key for key, value in OPPOSITES.items()}
ABSOLUTE = {"abs", "fabs", "absolute"}

Change = Callable[[ast.AST], ast.AST | None]  # of a copy of the node; None: the node with its attributes changed


@dataclass(frozen=True)
class Mutant:
    """One change of one file."""

    file: str  # relative to the folder of the sources
    function: str  # qualified name of the function or class around it; "" at module level
    kind: str
    before: str
    after: str
    lines: tuple[int, int]  # of the statement, or of the head of a compound statement
    on_import: bool  # executed on import, as constants and default values are
    source: str  # of the whole mutated file

    @property
    def name(self) -> str:
        """Description without line numbers, so that edits elsewhere in the file do not change it."""
        return f"{self.file} {self.function}: {self.before} -> {self.after}"


def mutants_of(source: str, file: str) -> list[list[Callable[[], Mutant]]]:
    """Return the places of a file; each is a list of functions that make its mutants."""
    tree = ast.parse(source)
    return [
        [_maker(tree, file, place, kind, change) for kind, change in changes] for place, changes in _places(tree) if changes
    ]


@dataclass(frozen=True)
class _Place:
    path: tuple[tuple[str, int | None], ...]  # attributes and positions from the root to the node
    function: str
    stores: frozenset[str]  # names that the function assigns more than once, its parameters included
    lines: tuple[int, int]
    on_import: bool


def _maker(tree: ast.Module, file: str, place: _Place, kind: str, change: Change) -> Callable[[], Mutant]:
    def make() -> Mutant:
        mutated = copy.deepcopy(tree)
        nodes: list[ast.AST] = [mutated]
        for attribute, index in place.path:
            nodes.append(_child(nodes[-1], attribute, index))
        level = _shown(nodes)
        before = ast.unparse(nodes[level])
        (name, position), parent = place.path[-1], nodes[-2]
        new = change(nodes[-1]) or nodes[-1]
        if position is None:
            setattr(parent, name, new)
        else:
            getattr(parent, name)[position] = new
        ast.fix_missing_locations(mutated)
        after = ast.unparse(new if level == len(nodes) - 1 else nodes[level])
        return Mutant(file, place.function, kind, before, after, place.lines, place.on_import, ast.unparse(mutated) + "\n")

    return make


def _shown(nodes: list[ast.AST]) -> int:
    """Return the position of the innermost node whose text tells where the last node is."""
    level = len(nodes) - 1
    while len(ast.unparse(nodes[level])) < 15 and not isinstance(nodes[level], ast.stmt):
        if hasattr(nodes[level - 1], "body") and not isinstance(nodes[level - 1], (ast.Lambda, ast.IfExp)):
            break
        level -= 1
    return level


def _child(node: ast.AST, attribute: str, index: int | None) -> ast.AST:
    value = getattr(node, attribute)
    return value if index is None else value[index]


def _places(tree: ast.Module) -> Iterator[tuple[_Place, list[tuple[str, Change]]]]:
    def visit(node: ast.AST, place: _Place) -> Iterator[tuple[_Place, list[tuple[str, Change]]]]:
        if _is_left_out(node):
            return
        if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
            place = replace(place, function=f"{place.function}.{node.name}".lstrip("."), stores=_stored_again(node))
        if isinstance(node, ast.stmt):
            place = replace(place, lines=_head(node))
        yield place, list(_changes(node, place.stores))
        for name, value in ast.iter_fields(node):
            if name in {"annotation", "returns", "decorator_list"} or isinstance(node, ast.Raise):
                continue
            if isinstance(node, ast.Slice) and isinstance(value, ast.Constant):  # its change is one of the slice's
                continue
            on_import = place.on_import and not (isinstance(node, ast.FunctionDef) and name == "body")
            children = enumerate(value) if isinstance(value, list) else [(None, value)]
            for index, child in children:
                if isinstance(child, ast.AST) and not _is_docstring(child, index, name):
                    yield from visit(child, replace(place, path=(*place.path, (name, index)), on_import=on_import))

    yield from visit(tree, _Place((), "", frozenset(), (1, 1), True))


def _is_docstring(node: ast.AST, index: int | None, field: str) -> bool:
    return index == 0 and field == "body" and isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)


def _is_left_out(node: ast.AST) -> bool:
    if isinstance(node, ast.If):
        return isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING"
    if isinstance(node, ast.FunctionDef):
        return node.name in {"__repr__", "__str__"}
    if isinstance(node, ast.Assign):
        return isinstance(node.targets[0], ast.Name) and node.targets[0].id in {"__all__", "__slots__"}
    if isinstance(node, ast.Call):
        called = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
        return called == "warn" or called.endswith(("Error", "Warning")) or called in {"TypeVar", "cast"}
    return isinstance(node, ast.JoinedStr)


def _stored_again(node: ast.AST) -> frozenset[str]:
    names: list[str] = []
    for inner in ast.walk(node):
        if isinstance(inner, ast.Name) and isinstance(inner.ctx, ast.Store):
            names.append(inner.id)
        elif isinstance(inner, ast.arg):
            names.append(inner.arg)
    return frozenset(name for name in names if names.count(name) > 1)


def _head(node: ast.stmt) -> tuple[int, int]:
    body = getattr(node, "body", None)
    last = (node.end_lineno or node.lineno) if not body else max(node.lineno, body[0].lineno - 1)
    return node.lineno, last


# Changes ---------------------------------------------------------------------------------------


def _set(name: str, value: object, index: int | None = None) -> Change:
    def change(node: ast.AST) -> None:
        if index is None:
            setattr(node, name, value)
        else:
            getattr(node, name)[index] = value

    return change


def _shifted(bound: str, by: int) -> Change:
    def change(node: ast.AST) -> None:
        operator = ast.Add() if by > 0 else ast.Sub()
        setattr(node, bound, ast.BinOp(getattr(node, bound), operator, ast.Constant(1)))

    return change


def _changes(node: ast.AST, stores: frozenset[str]) -> Iterator[tuple[str, Change]]:
    if isinstance(node, ast.Compare):
        for index, operator in enumerate(node.ops):
            for other in COMPARISONS.get(type(operator), ()):
                yield "comparison", _set("ops", other(), index)
    elif isinstance(node, (ast.BinOp, ast.AugAssign)):
        if type(node.op) in ARITHMETIC:
            yield "arithmetic", _set("op", ARITHMETIC[type(node.op)]())
        if isinstance(node, ast.AugAssign):
            yield "statement", lambda _: ast.Pass()
    elif isinstance(node, ast.BoolOp):
        yield "boolean", _set("op", ast.Or() if isinstance(node.op, ast.And) else ast.And())
    elif isinstance(node, ast.UnaryOp):
        yield "boolean" if isinstance(node.op, (ast.Not, ast.Invert)) else "arithmetic", lambda node: node.operand
    elif isinstance(node, ast.Constant):
        if isinstance(node.value, bool):
            yield "constant", _set("value", not node.value)
        elif isinstance(node.value, (int, float)):
            yield "constant", _set("value", node.value + 1)
    elif isinstance(node, ast.Slice):
        for bound in ("lower", "upper"):
            if getattr(node, bound) is not None:
                yield "slice", _shifted(bound, 1)
                yield "slice", _shifted(bound, -1)
    elif isinstance(node, ast.Call):
        function = node.func
        name = function.attr if isinstance(function, ast.Attribute) else getattr(function, "id", "")
        if name in ABSOLUTE and len(node.args) == 1:
            yield "abs", lambda node: node.args[0]
        elif name in OPPOSITES:
            yield "extremum", _opposite
    else:
        yield from _removals(node, stores)


def _opposite(node: ast.AST) -> None:
    function = node.func
    attribute = "attr" if isinstance(function, ast.Attribute) else "id"
    setattr(function, attribute, OPPOSITES[getattr(function, attribute)])


def _removals(node: ast.AST, stores: frozenset[str]) -> Iterator[tuple[str, Change]]:
    """Statements that can be left out without an undefined name at once."""
    if isinstance(node, ast.Return):
        if node.value is not None and not (isinstance(node.value, ast.Constant) and node.value.value is None):
            yield "return", _set("value", ast.Constant(None))
    elif isinstance(node, ast.Assign):
        names = [target.id for target in node.targets if isinstance(target, ast.Name)]
        if stores.issuperset(names) and not any(isinstance(target, ast.Tuple) for target in node.targets):
            yield "statement", lambda _: ast.Pass()
    elif isinstance(node, (ast.Expr, ast.Raise, ast.Break, ast.Continue, ast.Delete)):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):  # the body of a protocol's method
            return
        yield "statement", lambda _: ast.Pass()
