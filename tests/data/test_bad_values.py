"""NaN, infinite and too large values: one message with their number and place in the whole matrix."""

import itertools

import numpy as np
import pytest
from scipy import sparse

from coterie.data import DenseSource, SparseSource, as_source, convert, write_store

NAMES = ["a", "b", "c", "d", "e"]
KINDS = {"dense": DenseSource, "sparse": lambda X, names=None: SparseSource(sparse.csc_array(X), names)}


def message_of(do, *arguments, **options):
    with pytest.raises(ValueError, match="feature") as caught:
        do(*arguments, **options)
    return str(caught.value)


@pytest.fixture
def X():
    X = np.arange(30.0).reshape(6, 5)
    X[4, 3], X[1, 4], X[2, 4] = np.nan, np.inf, -np.inf
    return X


@pytest.fixture
def huge(X):
    X[~np.isfinite(X)] = 0.0
    X[2, 3] = 1e200
    return X


@pytest.mark.parametrize("kind", KINDS)
def test_a_part_names_the_feature_of_the_whole(X, kind):
    part = KINDS[kind](X[:, 2:])
    part.first_feature = 2
    assert "3 NaN or infinite value(s) in 2 feature(s). The first is in sample 4 of feature 3." in message_of(part.moments)
    part.feature_names = NAMES[2:]
    assert "The first is in sample 4 of feature 3 ('d')." in message_of(part.moments)


@pytest.mark.parametrize("kind", KINDS)
def test_too_large_values_of_a_part(huge, kind):
    part = KINDS[kind](huge[:, 2:])
    part.first_feature = 2
    assert message_of(part.moments).startswith("The values of feature 3 are too large to compute with")
    part.feature_names = NAMES[2:]
    assert message_of(part.moments).startswith("The values of feature 3 ('d') are too large")


def parts(X, bounds, make):
    return (make(X[:, a:b]) for a, b in itertools.pairwise(bounds))


@pytest.mark.parametrize("make", [np.asfortranarray, sparse.csc_array])
@pytest.mark.parametrize("bounds", [[0, 5], [0, 3, 5], [0, 1, 2, 3, 4, 5], [0, 4, 5]])
def test_the_message_does_not_depend_on_the_parts(tmp_path, X, make, bounds):
    X[0, 0] = 1e200  # too large as well, but NaN and infinity are reported first
    alone = message_of(as_source(make(X), NAMES).moments)
    assert alone.startswith(
        "Input X contains 3 NaN or infinite value(s) in 2 feature(s). The first is in sample 4 of feature 3 ('d'). Impute them"
    )
    written = message_of(write_store, tmp_path / "s", parts(X, bounds, make), by="features", feature_names=NAMES)
    assert written == alone.replace("Input X contains", f"{tmp_path / 's'}: the file contains")
    X[~np.isfinite(X)] = 0.0
    alone = message_of(as_source(make(X), NAMES).moments)
    written = message_of(write_store, tmp_path / "s", parts(X, bounds, make), by="features", feature_names=NAMES)
    assert written == alone.replace("The values", f"{tmp_path / 's'}: the values")
    assert list(tmp_path.iterdir()) == []


def test_too_large_values_of_a_file_are_named(tmp_path, huge):
    np.savez(tmp_path / "x.npz", X=huge)
    written = message_of(convert, tmp_path / "x.npz", tmp_path / "s", feature_names=NAMES)
    assert written.startswith(f"{tmp_path / 'x.npz'}: the values of feature 3 ('d') are too large")


def test_too_few_names_do_not_hide_the_message(tmp_path, X):
    written = message_of(write_store, tmp_path / "s", X, feature_names=NAMES[:2])
    assert "The first is in sample 4 of feature 3." in written


def test_many_bad_features_are_counted(rng):
    X = rng.standard_normal((3, 2_000))
    X[1, ::2] = np.nan
    X[2, 1_000:] = np.inf
    for source in (as_source(X), as_source(sparse.csc_array(X))):
        message = message_of(source.moments)
        assert "contains 2000 NaN or infinite value(s) in 1500 feature(s). The first is in sample 1 of feature 0." in message
