"""Names that the benchmark scripts import from Coterie and from each other exist, without running the scripts."""

import ast
import importlib.util
from pathlib import Path

import pytest

FOLDER = Path(__file__).resolve().parents[1] / "benchmarks"
SCRIPTS = sorted(FOLDER.glob("*.py"))


def imported(path):
    """Yield the module and the names of each ``from module import names`` in a script."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom) and node.module:
            yield node.module, [alias.name for alias in node.names]


def defined(path):
    """Names that a module defines at its top level, or imports."""
    names = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            names.add(node.name)
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            names.add(node.id)
        elif isinstance(node, ast.ImportFrom):
            names.update(alias.asname or alias.name for alias in node.names)
    return names


def exists(module, name):
    """Whether a module of Coterie has an attribute or a submodule of this name."""
    if hasattr(importlib.import_module(module), name):
        return True
    return importlib.util.find_spec(f"{module}.{name}") is not None


@pytest.mark.parametrize("path", SCRIPTS, ids=lambda path: path.name)
def test_imported_names_exist(path):
    missing = []
    for module, names in imported(path):
        if module.split(".")[0] == "coterie":
            missing += [f"{module}.{name}" for name in names if not exists(module, name)]
        elif (sibling := FOLDER / f"{module}.py").exists():
            missing += [f"{module}.{name}" for name in names if name not in defined(sibling)]
    assert missing == []
