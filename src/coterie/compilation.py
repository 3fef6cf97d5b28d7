"""Compile the kernels in advance: small problems that cover what usual fits need, run once to fill the cache of numba.

A container image whose cache is filled starts its first fit without compiling. Kernels are compiled for the types that occur,
so the problems repeat fits with the types and layouts of usual data.
"""

from __future__ import annotations

import tempfile
import time
import warnings
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse

from coterie._numba import Compilation, cache_folder, recorded_compilations
from coterie.confidence.estimation import group_confidence
from coterie.correlation.groups import CorrelationGroups
from coterie.correlation.profile import correlation_profile
from coterie.data.opening import convert, open_features
from coterie.discovery import discover
from coterie.estimators.classifier import GroupDiscoveryClassifier, GroupDiscoveryClassifierCV
from coterie.estimators.one_class import GroupDiscoveryOneClass
from coterie.estimators.one_class_cv import GroupDiscoveryOneClassCV
from coterie.estimators.regressor import GroupDiscoveryRegressor, GroupDiscoveryRegressorCV
from coterie.estimators.survival import GroupDiscoverySurvival, GroupDiscoverySurvivalCV
from coterie.kernels.columns import kth_largest
from coterie.methods import METHODS, REGRESSION
from coterie.probing.estimator import DependencyAwareSelector
from coterie.redundancy.estimator import GlobalRedundancySelector

_N_SAMPLES, _N_FEATURES, _N_SELECTED = 90, 60, 6
# Copies of the features, with noise, from which groups and profiles are computed by the kernels for many features.
_N_COPIES = 12
# Samples and features from which single fits on dense data verify rounds in batches, and support features of such a fit.
_N_BIG_SAMPLES, _N_BIG_FEATURES, _N_BIG_SELECTED = 512, 1 << 13, 10
# Features of such data that predict the labels, and the share of the samples in which they do.
_N_PREDICTIVE, _PREDICTIVE_SHARE = 200, 0.7
# Features and C of a search in which the classes become separable, and repetitions of the samples for large samples.
_N_SEPARATING, _LARGE_C, _N_REPETITIONS = 40, 1e5, 4
# Types of values, with both orders of dense arrays and with the types of indices of sparse arrays.
_DENSE_TYPES = ("float64", "float32", "int8", "uint8")
_SPARSE_TYPES = (("float64", "int32"), ("float64", "int64"), ("float32", "int32"), ("uint8", "int32"))


@dataclass(frozen=True)
class Example:
    """Features with values 0 to 3 in groups of three, which every type of values holds, with targets for every task."""

    X: np.ndarray
    sign: np.ndarray
    classes: np.ndarray
    target: np.ndarray

    @classmethod
    def make(cls) -> Example:
        """Make the data; the same ones at every call."""
        rng = np.random.default_rng(0)
        factors = rng.standard_normal((_N_SAMPLES, _N_FEATURES // 3))
        values = np.repeat(factors, 3, axis=1) + 0.3 * rng.standard_normal((_N_SAMPLES, _N_FEATURES))
        target = factors[:, :5].sum(axis=1)
        return cls(np.digitize(values, [0.3, 1.0, 2.0]), target > 0.0, np.digitize(target, [-1.0, 1.0]), target)

    def dense(self, dtype: str = "float64", order: str = "F") -> np.ndarray:
        """Return the features as a dense array."""
        return np.array(self.X, dtype=dtype, order="F" if order == "F" else "C")

    def sparse(self, dtype: str = "float64", index_type: str = "int32") -> sparse.csc_array:
        """Return the features as a sparse array."""
        matrix = sparse.csc_array(self.dense(dtype))
        matrix.indptr, matrix.indices = matrix.indptr.astype(index_type), matrix.indices.astype(index_type)
        return matrix

    def layouts(self) -> tuple[Any, ...]:
        """Return the features in both orders and as a sparse array."""
        return self.dense(order="C"), self.dense(order="F"), self.sparse()

    def counts(self) -> np.ndarray:
        """Return counts that depend on the features."""
        return np.floor(np.exp(0.5 * self.target))

    def several(self) -> np.ndarray:
        """Return two numeric targets."""
        return np.column_stack([self.target, self.X[:, 0] + 0.1 * self.target])

    def big(self, dtype: str, order: str) -> tuple[np.ndarray, np.ndarray]:
        """Return data and labels, large enough for rounds that are verified in batches."""
        rng = np.random.default_rng(0)
        X = rng.integers(0, 4, (_N_BIG_SAMPLES, _N_BIG_FEATURES), dtype=np.int8)
        y = rng.random(_N_BIG_SAMPLES) < 0.5
        known = rng.random((_N_BIG_SAMPLES, _N_PREDICTIVE)) < _PREDICTIVE_SHARE
        X[:, :_N_PREDICTIVE] = np.where(known, 3 * y[:, None], X[:, :_N_PREDICTIVE])
        return np.array(X, dtype=dtype, order="F" if order == "F" else "C"), y

    def many(self) -> tuple[Any, ...]:
        """Return more features, in the same layouts."""
        noise = np.random.default_rng(0).random((_N_SAMPLES, _N_COPIES * _N_FEATURES))
        X = np.tile(self.dense(), _N_COPIES) * (noise < 0.7)
        return np.ascontiguousarray(X), np.asfortranarray(X), sparse.csc_array(X * (noise < 0.1))


def _dense(data: Example) -> None:
    for dtype in _DENSE_TYPES:
        for order in ("C", "F"):
            X = data.dense(dtype, order)
            GroupDiscoveryClassifier(_N_SELECTED).fit(X, data.sign).predict(X)


def _sparse(data: Example) -> None:
    for dtype, index_type in _SPARSE_TYPES:
        X = data.sparse(dtype, index_type)
        GroupDiscoveryClassifier(_N_SELECTED).fit(X, data.sign).predict(X)


def _classes(data: Example) -> None:
    for X in data.layouts():
        GroupDiscoveryClassifier(_N_SELECTED).fit(X, data.classes).predict(X)


def _regression(data: Example) -> None:
    for X in data.layouts():
        GroupDiscoveryRegressor(_N_SELECTED).fit(X, data.target).predict(X)


def _losses(data: Example) -> None:
    classifier, regressor = GroupDiscoveryClassifier, GroupDiscoveryRegressor
    for X in data.layouts():
        for y in (data.sign, data.classes):
            classifier(_N_SELECTED, loss="logistic").fit(X, y).predict_proba(X)
        for loss, y in (("poisson", data.counts()), ("huber", data.target), ("squared", data.several())):
            regressor(_N_SELECTED, loss=loss).fit(X, y).predict(X)
        GroupDiscoveryClassifierCV(_N_SELECTED, cv=3, loss="logistic").fit(X, data.sign)
        for loss, y in (("poisson", data.counts()), ("huber", data.target), ("squared", data.several())):
            GroupDiscoveryRegressorCV(_N_SELECTED, cv=3, loss=loss).fit(X, y)


def _many_features(data: Example) -> None:
    for dtype in _DENSE_TYPES:
        for order in ("C", "F"):
            X, y = data.big(dtype, order)
            GroupDiscoveryClassifier(_N_BIG_SELECTED, n_features_per_round=1).fit(X, y)


def _survival(data: Example) -> None:
    y = np.column_stack([np.exp(-data.target), data.sign])
    for X in data.layouts():
        for ties in ("breslow", "efron"):
            GroupDiscoverySurvival(_N_SELECTED, ties=ties).fit(X, y).score(X, y)
        model = GroupDiscoverySurvivalCV(_N_SELECTED, cv=3, nested=True, random_state=0).fit(X, y)
        group_confidence(model, X, y, n_pairs=2, random_state=0)


def _one_class(data: Example) -> None:
    for X in data.layouts():
        GroupDiscoveryOneClass(_N_SELECTED).fit(X).predict(X)


def _correlations(data: Example) -> None:
    for X in data.layouts():
        for correlation in ("spearman", "su"):
            GroupDiscoveryClassifier(_N_SELECTED, correlation=correlation).fit(X, data.sign)
    for X in (*data.layouts(), *data.many()):
        CorrelationGroups().fit(X)


def _validation(data: Example) -> None:
    for X in data.layouts():
        GroupDiscoveryClassifierCV(_N_SELECTED, cv=3, nested=True).fit(X, data.sign)
        GroupDiscoveryClassifierCV(_N_SELECTED, cv=3).fit(X, data.classes)
        GroupDiscoveryRegressorCV(_N_SELECTED, cv=3, nested=True).fit(X, data.target)
        GroupDiscoveryOneClassCV(_N_SELECTED, cv=3).fit(X, np.where(data.sign, 1, -1))
    # Separable classes, and models of whole groups with many more samples than members.
    X = data.dense()
    GroupDiscoveryClassifierCV(_N_SEPARATING, Cs=[_LARGE_C], cv=3, predict_with="support").fit(X, data.sign)
    more = np.tile(X, (_N_REPETITIONS, 1))
    GroupDiscoveryClassifierCV(_N_SELECTED, Cs=2, cv=3, predict_with="groups").fit(more, np.tile(data.sign, _N_REPETITIONS))


def _confidence(data: Example) -> None:
    for X in data.layouts():
        for model, y in ((GroupDiscoveryClassifier, data.sign), (GroupDiscoveryRegressor, data.target)):
            group_confidence(model(_N_SELECTED).fit(X, y), X, y, n_pairs=2, n_permutations=1, random_state=0)


def _filters(data: Example) -> None:
    for X in data.layouts():
        for methods, y in ((METHODS, data.sign), (REGRESSION, data.target)):
            for method in methods.values():
                if method.place.startswith("coterie.filters."):
                    method.load()(X, y)


def _redundancy(data: Example) -> None:
    for X in data.layouts():
        for solution in ("set", "weights"):
            GlobalRedundancySelector(n_features_to_select=_N_SELECTED, fdr=None, solution=solution).fit(X, data.sign)


def _probing(data: Example) -> None:
    for X in (data.dense(order="C"), data.dense(order="F")):
        for criterion in ("knn", "svm", "ridge"):
            DependencyAwareSelector(criterion, n_probes=30, random_state=0).fit(X, data.sign)


def _profile(data: Example) -> None:
    for X in (*data.layouts(), *data.many()):
        correlation_profile(X)
        correlation_profile(X, n_pairs=20, random_state=0)


def _files(data: Example) -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        table = np.column_stack([data.sign, data.X])
        header = ",".join(["label", *(f"f{j}" for j in range(_N_FEATURES))])
        np.savetxt(folder / "data.csv", table, delimiter=",", fmt="%d", header=header, comments="")
        lines = (" ".join([str(row[0]), *(f"{j}:{row[j]}" for j in np.flatnonzero(row[1:]) + 1)]) for row in table.astype(int))
        (folder / "data.svm").write_text("\n".join(lines) + "\n", encoding="ascii")
        for path, label in ((folder / "data.csv", "label"), (folder / "data.svm", None)):
            dataset = open_features(path, label=label)
            discover(dataset, n_pairs=2, n_permutations=1, n_features_to_select=_N_SELECTED)
            store = folder / f"{path.suffix[1:]}.store"
            convert(path, store, label=label)
            GroupDiscoveryClassifier(_N_SELECTED).fit(store)


PROBLEMS: Mapping[str, Callable[[Example], None]] = {
    "dense": _dense,
    "sparse": _sparse,
    "classes": _classes,
    "regression": _regression,
    "losses": _losses,
    "many features": _many_features,
    "survival": _survival,
    "one class": _one_class,
    "correlations": _correlations,
    "validation": _validation,
    "confidence": _confidence,
    "filters": _filters,
    "redundancy": _redundancy,
    "probing": _probing,
    "profile": _profile,
    "files": _files,
}


@dataclass(frozen=True)
class WarmUp:
    """Result of :func:`warm_up`.

    Attributes
    ----------
    compilations : tuple of Compilation
        Compiled functions, including those of numba; none that were in the cache.
    seconds : float
        Wall time.
    folder : Path
        Folder of the cache.
    """

    compilations: tuple[Compilation, ...]
    seconds: float
    folder: Path

    @property
    def kernels(self) -> list[Compilation]:
        """Compiled kernels of Coterie, one entry per specialisation."""
        return [one for one in self.compilations if one.module.startswith("coterie.")]


def warm_up(problems: Iterable[str] | None = None, *, report: Callable[[str], object] = lambda name: None) -> WarmUp:
    """Run small problems so that the kernels they need are compiled and stored in the cache of numba.

    Parameters
    ----------
    problems : iterable of str, optional
        Names of :data:`PROBLEMS`. None runs all of them.
    report : callable
        Called with the name of each problem before it runs.
    """
    folder = cache_folder(kth_largest)
    started = time.perf_counter()
    data = Example.make()
    with recorded_compilations() as compilations, warnings.catch_warnings():
        warnings.simplefilter("ignore")  # The problems are too small for good models.
        for name in PROBLEMS if problems is None else problems:
            report(name)
            PROBLEMS[name](data)
    return WarmUp(tuple(compilations), time.perf_counter() - started, folder)
