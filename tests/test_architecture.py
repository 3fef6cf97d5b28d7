"""The layers, and further rules of the architecture that linters do not check."""

import ast
import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

import coterie

ROOT = Path(coterie.__file__).parent
# From bottom to top: a module imports only from its own package and from earlier layers. A package is one layer.
LAYERS = [
    ["_compiler", "_figure", "markup"],
    ["_numba", "_parameters", "_warnings", "bounds", "groups", "interruption", "methods", "terminal"],
    ["files", "progress"],
    ["persistence"],
    ["kernels"],
    ["data"],
    ["_sklearn", "order"],
    ["inputs"],
    ["cautions"],
    ["selection"],
    ["correlation"],
    ["filters"],
    ["solver"],
    ["search"],
    ["validation"],
    ["estimators"],
    ["confidence", "probing"],
    ["baselines"],
    ["redundancy"],
    ["datasets", "effects", "marginal", "metrics", "polygenic"],
    ["report"],
    ["replication"],
    ["plots"],
    ["discovery"],
    ["comparison"],
    ["compilation"],
    ["cluster"],
    ["cli"],
    ["__main__"],
]
MODULES = sorted(path for path in ROOT.rglob("*.py"))


def name_of(path):
    parts = ["coterie", *path.relative_to(ROOT).with_suffix("").parts]
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def package_of(module):
    """Return the package or module directly below ``coterie`` that contains a module; "" for other modules."""
    parts = module.split(".")
    return parts[1] if parts[0] == "coterie" and len(parts) > 1 else ""


def layer_of(module):
    return next((level for level, names in enumerate(LAYERS) if package_of(module) in names), None)


def is_for_types(node):
    return isinstance(node, ast.If) and isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING"


def imports_of(path):
    """Return the modules that a module imports at run time; imports for type checkers are ignored."""
    tree = ast.parse(path.read_text())
    for_types = {id(inner) for node in ast.walk(tree) if is_for_types(node) for inner in ast.walk(node)}
    for node in (node for node in ast.walk(tree) if id(node) not in for_types):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield node.module
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def test_every_package_has_one_layer():
    packages = {package_of(name_of(path)) for path in MODULES} - {""}
    assert sorted(packages) == sorted(name for names in LAYERS for name in names)


@pytest.mark.parametrize("path", MODULES, ids=name_of)
def test_imports_go_one_way(path):
    mine, package = layer_of(name_of(path)), package_of(name_of(path))
    for imported in imports_of(path):
        theirs = layer_of(imported)
        if mine is not None and theirs is not None and package_of(imported) != package:
            assert theirs < mine, f"{name_of(path)} imports {imported}, which is not in an earlier layer"


def test_algorithms_do_not_import_the_cluster():
    """Algorithms use workers through a source; one module loads the cluster package by name to open it."""
    outside = [path for path in MODULES if package_of(name_of(path)) != "cluster"]
    importers = [name_of(path) for path in outside if any(package_of(name) == "cluster" for name in imports_of(path))]
    assert importers == ["coterie.cli.app", "coterie.cli.data"]
    by_name = [name_of(path) for path in outside if '"coterie.cluster' in path.read_text()]
    assert by_name == ["coterie.inputs.placement"]
    assert not [name_of(path) for path in outside if re.search(r"isinstance\([^)]*DistributedSource", path.read_text())]


@pytest.mark.parametrize("path", MODULES, ids=name_of)
def test_only_two_modules_import_numba(path):
    if name_of(path) not in ("coterie._compiler", "coterie._numba"):
        assert not any(name == "numba" or name.startswith("numba.") for name in imports_of(path))


@pytest.mark.parametrize("path", MODULES, ids=name_of)
def test_files_are_short(path):
    assert len(path.read_text().splitlines()) <= 600


def test_public_names_are_documented_with_examples():
    for name in [name for name in coterie.__all__ if name[0].isupper()]:
        assert ">>> " in getattr(coterie, name).__doc__
    for module in (coterie.baselines, coterie.datasets, coterie.filters, coterie.metrics, coterie.plots, coterie.probing):
        for name in module.__all__:
            assert ">>> " in getattr(module, name).__doc__, name


def test_unknown_names_raise():
    with pytest.raises(AttributeError, match="no attribute 'nonsense'"):
        _ = coterie.nonsense
    assert "GroupDiscoveryClassifier" in dir(coterie)


def test_a_fit_on_arrays_imports_only_what_it_needs():
    """Readers, stores, saved models and other measures are imported when they are used, and scikit-learn's imports suffice."""
    code = """
import json, sys
import numpy as np
import sklearn.base, sklearn.feature_selection, sklearn.metrics, sklearn.model_selection
before = {name.partition(".")[0] for name in sys.modules}
from coterie import GroupDiscoveryClassifier
packages = {name.partition(".")[0] for name in sys.modules} - before
X = np.random.default_rng(0).standard_normal((30, 5))
GroupDiscoveryClassifier(2).fit(X, X[:, 0] > 0).predict(X)
print(json.dumps([sorted(packages), [name for name in sys.modules if name.startswith("coterie.")]]))
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    packages, modules = json.loads(done.stdout)
    assert {"coterie", "numba"} <= set(packages)
    assert not set(packages) & {"dask", "distributed", "pandas", "pyarrow", "rich", "typer"}
    needless = ("cluster", "files", "persistence", "report", "data.readers", "data.store", "data.opening", "filters")
    needless += ("correlation.spearman", "correlation.uncertainty", "kernels.information")
    assert not [name for name in modules if name.removeprefix("coterie.").startswith(needless)]
