"""A short run of ``mutate.py``."""

import random
import warnings

import pytest

from tests.fuzz import mutate

KINDS = sorted(set(mutate.KINDS) - {"h5ad"})  # takes half a second per file


@pytest.fixture(scope="module")
def seeds(tmp_path_factory):
    pytest.importorskip("pyarrow")
    pytest.importorskip("bed_reader")
    return mutate.make_seeds(tmp_path_factory.mktemp("seeds"), KINDS)


@pytest.mark.parametrize("kind", KINDS)
def test_mutated_files_give_data_or_one_clear_error(kind, seeds, tmp_path):
    outcomes = set()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for seed in range(60):
            outcomes.add(mutate.run_case(seed, {kind: seeds[kind]}, tmp_path)[1])
    assert "error" in outcomes


def test_models_are_forged_in_many_ways(seeds):
    original = next(file for file in seeds["model"] if file.name == "named.coterie").read_bytes()
    assert len({mutate.forged_model(original, random.Random(seed)) for seed in range(50)}) > 40
