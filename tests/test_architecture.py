"""The layers, and the rules of the house that no linter knows."""

import ast
from pathlib import Path

import pytest

import coterie

ROOT = Path(coterie.__file__).parent
# source -> scores -> oracle -> master -> groups -> estimator -> CLI: a module imports only from layers above its own.
LAYERS = [
    ["coterie._numba", "coterie.amounts", "coterie.atomic", "coterie.interruption", "coterie.methods"],
    ["coterie.kernels"],
    ["coterie.data"],
    ["coterie._validation", "coterie.progress"],
    ["coterie.selection"],
    ["coterie.discovery.correlation"],
    ["coterie.discovery.pearson", "coterie.discovery.uncertainty", "coterie.discovery.ranking"],
    ["coterie.filters"],
    ["coterie.discovery.oracle"],
    ["coterie.discovery.cross_validation"],
    ["coterie.discovery.losses", "coterie.discovery.design"],
    ["coterie.discovery.block_problem", "coterie.discovery.interior_point", "coterie.discovery.solution"],
    ["coterie.discovery.ridge"],
    ["coterie.discovery.wide_master"],
    ["coterie.discovery.master"],
    ["coterie.discovery.cutting_plane"],
    ["coterie.discovery.groups"],
    ["coterie.discovery.assembly", "coterie.discovery.prediction", "coterie.discovery.selector"],
    ["coterie.discovery.base", "coterie.discovery.size_search"],
    ["coterie.discovery.classifier", "coterie.discovery.one_class", "coterie.discovery.regressor"],
    ["coterie.discovery.classifier_cv"],
    ["coterie.persistence"],
    ["coterie.ranking.probes", "coterie.ranking.criteria"],
    ["coterie.ranking.scores", "coterie.ranking.checkpoint", "coterie.ranking.evaluation"],
    ["coterie.ranking.base"],
    ["coterie.ranking"],
    ["coterie.baselines"],
    ["coterie.redundancy.measures", "coterie.redundancy.order"],
    ["coterie.redundancy.objective"],
    ["coterie.redundancy.solver"],
    ["coterie.redundancy.alm"],
    ["coterie.redundancy.estimator"],
    ["coterie.datasets", "coterie.metrics"],
    ["coterie.profile"],
    ["coterie.report", "coterie.plots"],
    ["coterie.comparison"],
    ["coterie.cli", "coterie.__main__"],
]
MODULES = sorted(path for path in ROOT.rglob("*.py"))


def name_of(path):
    parts = ["coterie", *path.relative_to(ROOT).with_suffix("").parts]
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def layer_of(module):
    for level, names in enumerate(LAYERS):
        if any(module == name or module.startswith(name + ".") for name in names):
            return level
    return None


def imports_of(path):
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield node.module
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def test_every_module_has_a_layer():
    homeless = [name_of(p) for p in MODULES if layer_of(name_of(p)) is None]
    assert homeless == ["coterie", "coterie.discovery", "coterie.redundancy"]


@pytest.mark.parametrize("path", MODULES, ids=name_of)
def test_imports_go_one_way(path):
    mine = layer_of(name_of(path))
    if mine is None:
        return
    for imported in imports_of(path):
        theirs = layer_of(imported)
        if theirs is not None:
            assert theirs <= mine, f"{name_of(path)} imports {imported}, which lies in a later layer"


@pytest.mark.parametrize("path", MODULES, ids=name_of)
def test_only_one_module_imports_numba(path):
    if name_of(path) != "coterie._numba":
        assert not any(name == "numba" or name.startswith("numba.") for name in imports_of(path))


@pytest.mark.parametrize("path", MODULES, ids=name_of)
def test_files_hold_one_idea(path):
    assert len(path.read_text().splitlines()) <= 600


def test_public_names_are_documented_with_examples():
    for name in [name for name in coterie.__all__ if name[0].isupper()]:
        assert ">>> " in getattr(coterie, name).__doc__
    for module in (coterie.baselines, coterie.datasets, coterie.filters, coterie.metrics, coterie.plots, coterie.ranking):
        for name in module.__all__:
            assert ">>> " in getattr(module, name).__doc__, name


def test_unknown_names_are_refused():
    with pytest.raises(AttributeError, match="no attribute 'nonsense'"):
        _ = coterie.nonsense
    assert "GroupDiscoveryClassifier" in dir(coterie)
