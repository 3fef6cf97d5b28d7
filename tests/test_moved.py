"""Modules that have moved are found under their former names, as the same objects."""

import pickle
import sys
from importlib import import_module
from pathlib import Path

import pytest

from coterie import _moved

FORMER = [
    *(old for old in _moved.MOVED if not old.endswith(".")),
    "ranking.criteria.nearest",
    "ranking.probes",
    "profile.dense",
]

# All modules as of 2026-11-16, before the packages were regrouped.
MODULES = (Path(__file__).parent / "former_modules.txt").read_text().split()


@pytest.mark.parametrize("name", MODULES)
def test_every_module_that_ever_was_can_be_imported(name):
    assert import_module(name) is sys.modules[_moved.new_name(name) or name]


@pytest.mark.parametrize("former", FORMER)
def test_a_former_name_gives_the_module_itself(former):
    new = _moved.new_name(f"coterie.{former}")
    module = import_module(f"coterie.{former}")
    assert module is sys.modules[new] is sys.modules[f"coterie.{former}"]
    assert module.__name__ == module.__spec__.name == new


def test_what_was_pickled_under_a_former_name_can_be_read():
    from coterie.groups import Purity

    old = pickle.dumps(Purity(0.1, 0.2, 0.3), protocol=0).replace(b"ccoterie.groups\n", b"ccoterie.discovery.groups\n")
    assert b"discovery" in old
    assert pickle.loads(old) == Purity(0.1, 0.2, 0.3)


def test_public_names_of_ranking_stay():
    from coterie import baselines, ranking

    assert ranking.FloatingSelector is baselines.FloatingSelector
    assert set(ranking.__all__) >= {"DependencyAwareSelector", "KNNCriterion", "BestIndividualSelector"}


def test_other_names_are_not_found():
    assert _moved.new_name("coterie.profiles") is None
    assert _moved.new_name("os.atomic") is None
    with pytest.raises(ModuleNotFoundError):
        import_module("coterie.discovery.nonsense")
