"""Residuals sent as tables over classes of samples."""

import uuid

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone

from coterie import GroupDiscoveryClassifier, GroupDiscoveryClassifierCV, GroupDiscoveryRegressor
from coterie.cluster import DistributedSource, residuals
from coterie.cluster.parts import Ref, _Part, references
from coterie.data import open_store, write_store
from coterie.kernels.partition import number_pairs
from tests.cluster.conftest import differences


@pytest.fixture(autouse=True)
def small_residuals_too(monkeypatch):
    monkeypatch.setattr(residuals, "_MIN_BYTES", 0)


class Exchange:
    """Tables of a client, and a worker that expands the residuals."""

    def __init__(self, n_samples):
        self.bytes = []
        self.tables = residuals.ResidualTables(n_samples, self.share)

    def share(self, value):
        self.bytes.append(value.n_bytes if isinstance(value, residuals.Move) else value.nbytes)
        return Ref(uuid.uuid4().hex, None, value)

    def received(self, recipe):
        shared = {ref.token: ref.value for ref in references(recipe)}
        return _Part(None).resolve(recipe, shared)


def columns_of(rng, n_samples, n_columns):
    return rng.integers(0, 2, (n_samples, n_columns)) * (rng.random((n_samples, n_columns)) < 0.02)


def residual_of(rng, columns, width):
    """Return a residual that depends on some columns, with zeros of both signs."""
    _, owner = np.unique(columns, axis=0, return_inverse=True)
    values = rng.standard_normal((owner.max() + 1, width))
    values[rng.random(values.shape) < 0.3] = 0.0
    values[rng.random(values.shape) < 0.3] *= -1.0
    return values[owner]


@pytest.mark.parametrize("width", [1, 3])
def test_workers_expand_the_same_bits(width, rng):
    exchange, columns = Exchange(2000), columns_of(rng, 2000, 12)
    known = []
    for k in range(1, 13):
        residual = residual_of(rng, columns[:, :k], width)
        recipe = exchange.tables.recipe(residual)
        assert exchange.tables.recipe(residual) is recipe  # encoded once
        known.append((residual, recipe))
        assert exchange.received(recipe).tobytes() == residual.tobytes()
    for residual, recipe in rng.permutation(np.array(known, dtype=object)):  # earlier ones, as after the loss of a worker
        assert exchange.received(recipe).tobytes() == residual.tobytes()


def test_a_new_worker_makes_all_moves(rng, monkeypatch):
    exchange, columns = Exchange(1000), columns_of(rng, 1000, 5)
    for k in range(1, 6):
        recipe = exchange.tables.recipe(residual := residual_of(rng, columns[:, :k], 1))
    shared = {ref.token: ref.value for ref in references(recipe)}
    assert len(shared) > 3
    for partition in (
        residuals._Partition((), np.empty(0, np.uint16)),
        residuals._Partition(("other",), np.ones(1000, np.uint16)),
    ):
        monkeypatch.setattr(residuals, "_partition", partition)
        arguments = _Part(None).resolve(recipe.arguments, shared)
        assert residuals.expanded_residual(None, *arguments).tobytes() == residual.tobytes()


def test_a_worker_continues_with_its_partition(rng, monkeypatch):
    """Only new moves are made, and a residual is expanded once for all parts."""
    exchange, columns = Exchange(1000), columns_of(rng, 1000, 3)
    recipes = [
        exchange.tables.recipe(np.unique(columns[:, :k], axis=0, return_inverse=True)[1][:, None] + 1.0) for k in (2, 3)
    ]
    exchange.received(recipes[0])
    owner = residuals._partition.owner
    sample = np.flatnonzero((owner == 1) & (columns[:, 2] == 0))[0]
    owner[sample] = 0
    second = exchange.received(recipes[1])
    assert second[sample] == second[owner == 0][-1]  # the first move was not made again
    assert exchange.received(recipes[1]) is second


def test_many_classes_with_the_same_value():
    """Samples of different classes stay in different classes, although their values are equal."""
    n = 4000
    owner, bits = np.repeat(np.arange(n // 2), 2).astype(np.uint16), np.ones((n, 1), dtype=np.uint64)
    pair, most = np.empty(n, np.uint16), n // 2
    arrays = np.empty(most, np.uint16), np.empty((most, 1), np.uint64), np.empty(most, np.int64)
    assert number_pairs(owner, bits, pair, *arrays) == n // 2
    np.testing.assert_array_equal(pair, owner)
    assert arrays[2].tolist() == [2] * most


def test_only_samples_of_new_columns_are_sent(rng):
    n = 100_000
    exchange, columns = Exchange(n), (rng.random((n, 6)) < 0.01).astype(int)
    labels = rng.integers(0, 2, n)
    for k in range(6):
        before = len(exchange.bytes)
        residual = residual_of(rng, np.column_stack([labels, columns[:, :k]]), 1) + labels[:, None]
        exchange.tables.recipe(residual)
        sent = sum(exchange.bytes[before:])
        if k == 0:
            assert sent < n / 8 + 100  # one bit per sample
        else:
            # 4 bytes per sample of a column, and a table. Samples of earlier columns may have been equal by a zero.
            assert sent < 4 * 1.1 * columns[:, :k].sum() + 2000


def test_partitions_start_again(rng, monkeypatch):
    monkeypatch.setattr(residuals, "_MAX_MOVES", 3)
    exchange, columns = Exchange(1000), columns_of(rng, 1000, 9)
    lengths = []
    for k in range(1, 10):
        residual = np.unique(columns[:, :k], axis=0, return_inverse=True)[1].reshape(-1, 1) + 5.0
        recipe = exchange.tables.recipe(residual)
        lengths.append(len(recipe.arguments[1]))
        assert exchange.received(recipe).tobytes() == residual.tobytes()
    assert lengths == [1, 2, 3, 1, 2, 3, 1, 2, 3]


def test_other_labels_start_again_when_there_are_too_many_classes(rng):
    exchange = Exchange(800)
    first, second = (rng.integers(0, 60, (800, 1)).astype(float) for _ in range(2))
    exchange.tables.recipe(first)
    recipe = exchange.tables.recipe(second)  # pairs of both would be more than 100 classes
    assert len(recipe.arguments[1]) == 1
    assert exchange.received(recipe).tobytes() == second.tobytes()


def test_many_values_are_not_encoded(rng, monkeypatch):
    tables = Exchange(800).tables
    assert tables.recipe(rng.standard_normal((800, 1))) is None
    few = rng.integers(0, 2, (800, 1)).astype(float)
    assert tables.recipe(few) is not None
    assert tables.recipe(few[:, 0]) is None
    assert tables.recipe(few[:700]) is None
    assert tables.recipe(few.astype(np.float32)) is None
    monkeypatch.setattr(residuals, "_MIN_BYTES", 6401)
    assert tables.recipe(few + 1.0) is None
    monkeypatch.setattr(residuals, "_MIN_BYTES", 6400)
    assert tables.recipe(few + 1.0) is not None


@pytest.fixture(scope="module")
def clicks(tmp_path_factory):
    """Sparse store in which few features have many nonzeros, so that features are scored in layers."""
    rng = np.random.default_rng(0)
    n, m = 3000, 900
    order, share = rng.permutation(m), 0.4 / np.arange(1, m + 1) ** 1.2
    X = np.zeros((n, m))
    X[:, order] = rng.random((n, m)) < share
    y = (X[:, order[[0, 1, 2, 4, 7, 10]]] @ [1.0, 0.9, -0.8, 0.8, -0.7, 0.7] + 0.5 * rng.random(n) > 0.45).astype(int)
    return write_store(tmp_path_factory.mktemp("clicks") / "clicks.store", sparse.csc_array(X), y=y)


@pytest.mark.parametrize(
    "estimator", [GroupDiscoveryClassifier(8), GroupDiscoveryClassifierCV(3, Cs=2, cv=2, random_state=0)], ids=str
)
def test_the_same_bits_as_in_one_process(estimator, clicks, client):
    store = open_store(clicks)
    here = clone(estimator).fit(store.source, store.y)
    source = DistributedSource.of_store(clicks, client, n_parts=5)
    there = clone(estimator).fit(source, store.y)
    differing = differences(here, there)
    if isinstance(estimator, GroupDiscoveryClassifierCV):
        differing = [one for one in differing if one not in ("n_passes_", "history_")]
    assert differing == []


def test_a_table_is_smaller_than_the_residual(clicks, client):
    store = open_store(clicks)
    source = DistributedSource.of_store(clicks, client, n_parts=5)
    model = GroupDiscoveryClassifier(8, n_features_per_round=1).fit(source, store.y)
    assert source.engine.bytes_up < 0.5 * 8 * len(store.y) * model.n_rounds_


def test_workers_score_the_same_layers_as_one_process(clicks, client):
    store = open_store(clicks)
    estimator = GroupDiscoveryClassifier(8, n_features_per_round=1)
    here = clone(estimator).fit(store.source, store.y)
    there = clone(estimator).fit(DistributedSource.of_store(clicks, client, n_parts=7), store.y)
    assert [entry.passes for entry in here.history_] == [entry.passes for entry in there.history_]
    assert min(entry.passes for entry in here.history_) < 0.9  # layers below the first are not scored in every round


def test_targets_of_regression(clicks, client, rng):
    """Residuals with a different value per sample are sent as they are."""
    store = open_store(clicks)
    y = store.y + 0.1 * rng.standard_normal(len(store.y))
    here = GroupDiscoveryRegressor(3).fit(store.source, y)
    there = GroupDiscoveryRegressor(3).fit(DistributedSource.of_store(clicks, client), y)
    assert differences(here, there) == []
