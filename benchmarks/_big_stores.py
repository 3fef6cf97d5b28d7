"""Stores with the shapes of kdd2010 and webspam, split into training and test samples, and the cost of a fit."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from coterie import FeatureGroup, FeatureGroups
from coterie.data import open_store, write_store
from coterie.datasets import make_big_dimensional

_FEATURES_PER_BLOCK = 200_000


class Shape(NamedTuple):
    """Sizes of TPAMI Table 3 and ICML Table 1: training samples (all, ICML's number), test samples, features, nonzeros."""

    n_train: int
    n_train_icml: int
    n_test: int
    n_features: int
    n_values: int

    def scaled(self, scale: float) -> Shape:
        return Shape(*(max(20, int(size * scale)) for size in self))


SHAPES = {
    "kdd2010": Shape(19_264_097, 10_000, 748_401, 29_890_095, 586_000_000),
    "webspam": Shape(280_000, 80_000, 70_000, 16_609_143, 1_040_000_000),
}


class Split(NamedTuple):
    """A store of training samples, a store of test samples, and the planted groups."""

    train: Any
    y_train: np.ndarray
    test: Any
    y_test: np.ndarray
    groups: FeatureGroups


class FullStore(NamedTuple):
    """A store of all samples, the number of training samples (the first ones), and the planted groups."""

    store: Any
    n_train: int
    groups: FeatureGroups


def big_store(folder: Path, name: str, scale: float, icml: bool, seed: int) -> FullStore:
    """Return the store of all samples; create it if it does not exist."""
    size = SHAPES[name].scaled(scale)
    n_train = min(size.n_train_icml, size.n_train) if icml else size.n_train
    n_all = n_train + size.n_test
    path = folder / f"{name}-{scale:g}-{seed}-{n_all}.store"
    truth = path.with_suffix(".groups.npz")
    if not (path.exists() and truth.exists()):
        n_values = int(size.n_values * n_all / size.n_train)
        shape = {"n_samples": n_all, "n_features": size.n_features, "n_values": n_values}
        data = make_big_dimensional(name, path=path, overwrite=True, random_state=seed, **shape)
        _save_groups(truth, data.groups)
    return FullStore(open_store(path), n_train, _load_groups(truth))


def big_split(folder: Path, name: str, scale: float, icml: bool, seed: int) -> Split:
    """Return the stores of training and test samples; create them if they do not exist.

    The samples are drawn independently, so the first ones are a random subset.
    """
    whole = big_store(folder, name, scale, icml, seed)
    store, n_all = whole.store, len(whole.store.y)
    parts = {part: Path(store.path).with_name(f"{Path(store.path).stem}-{part}.store") for part in ("train", "test")}
    for part, first, last in (("train", 0, whole.n_train), ("test", whole.n_train, n_all)):
        if not parts[part].exists():
            write_store(parts[part], _rows(store.source, first, last), store.y[first:last], by="features")
    train, test = (open_store(path) for path in parts.values())
    return Split(train.source, np.asarray(train.y), test.source, np.asarray(test.y), whole.groups)


def _rows(source: Any, first: int, last: int) -> Iterator[sparse.csc_array]:
    """Yield blocks of features, restricted to the samples from ``first`` up to ``last``."""
    for _, block in source.blocks(_FEATURES_PER_BLOCK):
        mine = (block.indices >= first) & (block.indices < last)
        ends = np.concatenate([[0], np.cumsum(mine)])[block.indptr]
        yield sparse.csc_array((block.data[mine], block.indices[mine] - first, ends), shape=(last - first, block.shape[1]))


def _save_groups(path: Path, groups: FeatureGroups) -> None:
    members = [group.members for group in groups]
    np.savez(path, members=np.concatenate(members), sizes=[len(one) for one in members])


def _load_groups(path: Path) -> FeatureGroups:
    with np.load(path) as file:
        parts = np.split(file["members"], np.cumsum(file["sizes"])[:-1])
    return FeatureGroups([FeatureGroup(int(part[0]), part[1:]) for part in parts])


class Cost:
    """Seconds and peak memory without mapped files (None if the system does not report it)."""

    seconds = float("nan")
    memory: int | None = None


@contextmanager
def measure_cost(interval: float = 0.1) -> Iterator[Cost]:
    """Measure time and peak anonymous memory of a block; pages of a mapped store are not counted."""
    cost, done = Cost(), threading.Event()
    before = _own_memory()

    def watch() -> None:
        while not done.wait(interval):
            now = _own_memory()
            if now is not None and before is not None:
                cost.memory = max(cost.memory or 0, now - before)

    watcher = threading.Thread(target=watch, daemon=True)
    watcher.start()
    began = time.perf_counter()
    try:
        yield cost
    finally:
        cost.seconds = time.perf_counter() - began
        done.set()
        watcher.join()


def _own_memory() -> int | None:
    try:
        lines = Path("/proc/self/status").read_text().splitlines()
    except OSError:
        return None
    return next((int(line.split()[1]) * 1024 for line in lines if line.startswith("RssAnon")), None)
