"""Table of bad inputs: mistakes in X, y, weights, folds and parameters.

A case changes one thing in a valid fit. ``fate`` is the expected outcome: an error, a result, or either, if that depends on
the method.
"""

from __future__ import annotations

import datetime
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal

import numpy as np
import pandas as pd
from scipy import sparse
from sklearn.base import BaseEstimator

Fate = Literal["error", "result", "either"]
N_SAMPLES, N_FEATURES = 40, 12


@dataclass(frozen=True)
class Fit:
    """Arguments of a fit, and the data for predictions afterwards."""

    X: Any
    y: Any
    sample_weight: Any = None
    parameters: Mapping[str, Any] = field(default_factory=dict)
    offset: Any = None
    later: Any = Ellipsis  # data to predict and transform, if not X


@dataclass(frozen=True)
class Case:
    """One mistake."""

    name: str
    change: Callable[[Fit], Fit]
    fate: Fate = "either"


def good(*, regression: bool) -> Fit:
    """Return data that every estimator can be fitted to: dense, nonnegative, correlated, two classes or numbers."""
    rng = np.random.default_rng(5)
    factors = rng.standard_normal((N_SAMPLES, 4))
    X = np.repeat(factors, N_FEATURES // 4, axis=1) + 0.5 * rng.standard_normal((N_SAMPLES, N_FEATURES))
    target = factors[:, 0] - factors[:, 1] + 0.3 * rng.standard_normal(N_SAMPLES)
    return Fit(X - X.min(), target if regression else np.where(target > 0, 1, -1))


def good_targets(kind: str) -> Fit:
    """Return data as :func:`good` does, with survival times (censored by a third), counts or several targets."""
    fit = good(regression=True)
    rng = np.random.default_rng(6)
    if kind == "survival":
        return replace(fit, y=np.column_stack([np.exp(fit.y).round(3), (np.arange(N_SAMPLES) % 3 > 0) * 1.0]))
    if kind == "counts":
        return replace(fit, y=rng.poisson(np.exp(1.0 + 0.4 * fit.y)) * 1.0, offset=rng.standard_normal(N_SAMPLES))
    return replace(fit, y=np.column_stack([fit.y, 100.0 * fit.X[:, 0], rng.standard_normal(N_SAMPLES)]))


def _x(name: str, change: Callable[[np.ndarray], Any], fate: Fate = "either") -> Case:
    """Return a case with another X."""
    return Case(f"X: {name}", lambda fit: replace(fit, X=change(fit.X.copy())), fate)


def _y(name: str, change: Callable[[np.ndarray], Any], fate: Fate = "either") -> Case:
    """Return a case with another y."""
    return Case(f"y: {name}", lambda fit: replace(fit, y=change(fit.y.copy())), fate)


def _weight(name: str, change: Callable[[np.ndarray], Any], fate: Fate = "either") -> Case:
    """Return a case with sample weights."""
    return Case(f"weights: {name}", lambda fit: replace(fit, sample_weight=change(np.ones(N_SAMPLES))), fate)


def _later(name: str, change: Callable[[np.ndarray], Any], fate: Fate = "error") -> Case:
    """Return a case with another X after a valid fit."""
    return Case(f"later: {name}", lambda fit: replace(fit, later=change(fit.X.copy())), fate)


def _put(array: np.ndarray, where: Any, value: Any) -> np.ndarray:
    array[where] = value
    return array


def _scales() -> Iterator[Case]:
    """Scales at the limits of floating point."""
    for power in (-320, -308, -300, -200, -160, -100, -30, -12, 12, 30, 100, 150, 160, 200, 300, 307):
        factor = float(f"1e{power}")
        yield _x(f"times 1e{power}", lambda X, f=factor: X * f)
        yield _x(f"first column times 1e{power}", lambda X, f=factor: _put(X, np.s_[:, 0], X[:, 0] * f))
        yield _x(f"one value 1e{power}", lambda X, f=factor: _put(X, (3, 2), f))
        yield _x(f"sparse, times 1e{power}", lambda X, f=factor: sparse.csc_array(np.where(X.mean() < X, X * f, 0.0)))
        yield _y(f"times 1e{power}", lambda y, f=factor: y * f)
        yield _weight(f"all 1e{power}", lambda w, f=factor: w * f)
        yield _weight(f"one 1e{power}", lambda w, f=factor: _put(w, 3, f))
    for offset in ("1e3", "1e6", "1e8", "1e11", "1e15", "1e100"):
        yield _x(f"plus {offset}", lambda X, o=float(offset): X + o)
        yield _y(f"plus {offset}", lambda y, o=float(offset): y + o)
    for spread in ("1e-3", "1e-6", "1e-8", "1e-12", "1e-15"):
        yield _x(f"1 + {spread} X", lambda X, s=float(spread): 1.0 + s * X)
    yield _x("columns of scales 1e-150 to 1e150", lambda X: X * np.logspace(-150, 150, N_FEATURES))
    yield _x("columns of scales 1e-9 to 1e9", lambda X: X * np.logspace(-9, 9, N_FEATURES))
    yield _x("rows of scales 1e-9 to 1e9", lambda X: X * np.logspace(-9, 9, N_SAMPLES)[:, np.newaxis])


def _values() -> Iterator[Case]:
    """Missing and infinite values, and constant columns."""
    for word in ("nan", "inf", "-inf"):
        yield _x(f"one {word}", lambda X, v=float(word): _put(X, (3, 2), v), "error")
        yield _x(f"all {word}", lambda X, v=float(word): X * 0 + v, "error")
        yield _x(f"float32, one {word}", lambda X, v=float(word): _put(X.astype(np.float32), (3, 2), v), "error")
        yield _x(f"sparse, one {word}", lambda X, v=float(word): sparse.csr_array(_put(X, (3, 2), v)), "error")
        yield _later(f"one {word}", lambda X, v=float(word): _put(X, (3, slice(None)), v))
        yield _weight(f"one {word}", lambda w, v=float(word): _put(w, 3, v), "error")
    yield _x("all zero", lambda X: X * 0, "error")
    yield _x("all one", lambda X: X * 0 + 1, "error")
    yield _x("all 1e10", lambda X: X * 0 + 1e10, "error")
    yield _x("all 0.1", lambda X: X * 0 + 0.1, "error")
    yield _x("constant columns of different values", lambda X: X * 0 + X[0], "error")
    yield _x("sparse, all zero", lambda X: sparse.csc_array(X.shape), "error")
    yield _x("sparse, all explicit zeros", lambda X: sparse.csc_array(X) * 0.0, "error")
    yield _x("one column is not constant", lambda X: _put(X * 0, np.s_[:, 4], X[:, 4]))
    yield _x("three columns are not constant", lambda X: _put(X * 0, np.s_[:, 4:7], X[:, 4:7]))
    yield _x("half of the columns constant", lambda X: _put(X, np.s_[:, ::2], 1.0), "result")
    yield _x("all columns equal", lambda X: np.repeat(X[:, :1], N_FEATURES, axis=1))
    yield _x("all rows equal but one", lambda X: _put(X * 0 + X[0], 3, X[3]))
    yield _x("columns and their negatives", lambda X: np.hstack([X[:, :6], 8 - X[:, :6]]))
    yield _x("negative values", lambda X: -X)
    yield _x("two values", lambda X: (X.mean() < X).astype(float))
    yield _x("ranks", lambda X: X.argsort(axis=0).argsort(axis=0))


def _shapes() -> Iterator[Case]:
    """Too few, too many, and the wrong number of dimensions."""
    yield _x("no samples", lambda X: X[:0], "error")
    yield _x("no features", lambda X: X[:, :0], "error")
    yield _x("one dimension", lambda X: X[:, 0], "error")
    yield _x("three dimensions", lambda X: X[:, :, np.newaxis], "error")
    yield _x("no dimension", lambda X: X[0, 0], "error")
    yield _x("one sample too few", lambda X: X[:-1])  # unsupervised methods do not read y
    yield _x("one sample too many", lambda X: np.vstack([X, X[:1]]))
    yield _x("ragged rows", lambda X: [[1.0, 2.0], [3.0]], "error")
    yield _x("rows of text", lambda X: ["1 2", "3 4"], "error")
    yield _x("None", lambda X: None, "error")
    yield _x("a number", lambda X: 7, "error")
    yield _x("a dictionary", lambda X: {"a": X[:, 0].tolist()}, "error")
    yield _x("an object", lambda X: object(), "error")
    yield _x("a file that is not there", lambda X: "no/such/file.csv", "error")
    yield _x("one feature", lambda X: X[:, :1])
    yield _x("two features", lambda X: X[:, :2])
    yield _x("more features than samples", lambda X: np.hstack([X] * 5 + [X**2]))
    for n in (1, 2, 3, 4, 5):
        yield Case(f"samples: {n}", lambda fit, n=n: replace(fit, X=fit.X[:n], y=_balanced(fit.y)[:n]))
    yield _later("too few features", lambda X: X[:, :-1])
    yield _later("too many features", lambda X: np.hstack([X, X[:, :1]]))
    yield _later("no samples", lambda X: X[:0])
    yield _later("one dimension", lambda X: X[0])
    yield _later("a file that is not there", lambda X: "no/such/file.csv")
    yield _later("one sample", lambda X: X[:1], "result")


def _balanced(y: np.ndarray) -> np.ndarray:
    """Return alternating labels, or numbers unchanged."""
    return np.resize([1, -1], len(y)) if y.dtype.kind == "i" else y


def _types() -> Iterator[Case]:
    """Types of values that are accepted, and those that are not."""
    for kind in ("float32", "int8", "uint8", "int16", "int32", "int64", "uint64", "bool", "float16", "longdouble", "object"):
        yield _x(f"of type {kind}", lambda X, k=kind: (X.mean() < X).astype(k), "result")
        yield _later(f"of type {kind}", lambda X, k=kind: (X.mean() < X).astype(k), "result")
    yield _x("big-endian", lambda X: X.astype(">f8"), "result")
    yield _x("read-only", lambda X: np.lib.stride_tricks.as_strided(X, writeable=False), "result")
    yield _x("every second row and column backwards", lambda X: np.repeat(np.repeat(X, 2, 0), 2, 1)[::-2, ::-2], "result")
    yield _x("a list", lambda X: X.tolist(), "result")
    yield _x("np.matrix", lambda X: _matrix(X), "error")
    yield _x("a frame", lambda X: pd.DataFrame(X, columns=[f"f{j}" for j in range(N_FEATURES)]), "result")
    yield _x("a frame of numbered columns", lambda X: pd.DataFrame(X), "result")
    yield _x("a frame of mixed numbers", lambda X: _frame(X).assign(f0=range(N_SAMPLES), f1=True), "result")
    yield _x("a frame of nullable numbers", lambda X: _frame(X).convert_dtypes(), "result")
    yield _x("a frame with NA", lambda X: _frame(X).convert_dtypes().astype("Float64").replace(X[3, 2], pd.NA), "error")
    yield _x("a frame with names twice", lambda X: pd.DataFrame(X, columns=[*"aabcdefghijk"]), "error")
    yield _x("a frame with text", lambda X: _frame(X).assign(f3="word"), "error")
    yield _x("a frame with dates", lambda X: _frame(X).assign(f3=datetime.datetime(2020, 1, 1)), "error")
    yield _x("a frame with durations", lambda X: _frame(X).assign(f3=pd.Timedelta("1h")), "error")
    yield _x("a frame with categories", lambda X: _frame(X).assign(f3=pd.Categorical(["a"] * N_SAMPLES)), "error")
    yield _x("complex", lambda X: X + 1j, "error")
    yield _x("sparse, complex", lambda X: sparse.csc_array(X + 1j), "error")
    yield _x("dates", lambda X: X.astype("datetime64[s]"), "error")
    yield _x("durations", lambda X: X.astype("timedelta64[s]"), "error")
    yield _x("text", lambda X: X.astype(str).astype(object) + "x", "error")
    yield _x("text of numbers", lambda X: X.astype(str), "error")
    yield _x("bytes", lambda X: X.astype("S8"), "error")
    yield _x("structured", lambda X: np.zeros((N_SAMPLES, N_FEATURES), dtype=[("a", "f8")]), "error")
    yield _x("objects with None", lambda X: _put(X.astype(object), (3, 2), None), "error")
    yield _x("objects with text", lambda X: _put(X.astype(object), (3, 2), "word"), "error")
    yield _x("objects with lists", lambda X: _put_object(X, [1, 2]), "error")
    yield _x("objects with huge integers", lambda X: _put(X.astype(object), (3, 2), 10**400), "error")
    yield _x("integers past 2**53", lambda X: (X * 1e3).astype(np.int64) + 2**60)
    yield _x("masked, with a mask", lambda X: np.ma.masked_array(X, mask=X.mean() < X), "error")
    yield _x("masked, nothing masked", lambda X: np.ma.masked_array(X, mask=np.zeros(X.shape, bool)), "result")
    yield _later("masked, with a mask", lambda X: np.ma.masked_array(X, mask=X.mean() < X))
    yield _later("text", lambda X: X.astype(str).astype(object) + "x")
    yield _later("dates", lambda X: X.astype("datetime64[s]"))
    yield _later("complex", lambda X: X + 1j)
    yield _later("None", lambda X: None)
    yield _later("an object", lambda X: object())


def _frame(X: np.ndarray) -> pd.DataFrame:
    return pd.DataFrame(X, columns=[f"f{j}" for j in range(N_FEATURES)])


def _matrix(X: np.ndarray) -> Any:
    import warnings

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return np.asmatrix(X)


def _put_object(X: np.ndarray, value: Any) -> np.ndarray:
    objects = X.astype(object)
    objects[3, 2] = value
    return objects


def _sparse() -> Iterator[Case]:
    """Sparse formats, and invalid structures."""

    def small(X: np.ndarray) -> sparse.csc_array:
        return sparse.csc_array(np.where(X.mean() < X, X, 0.0))

    for format in ("csc", "csr", "coo", "bsr", "dia", "lil", "dok"):
        yield _x(f"sparse, {format}", lambda X, f=format: small(X).asformat(f), "result")
        yield _x(f"sparse matrix, {format}", lambda X, f=format: sparse.csc_matrix(small(X)).asformat(f), "result")
        yield _later(f"sparse, {format}", lambda X, f=format: small(X).asformat(f), "result")
    yield _x("sparse, int8", lambda X: small(X).astype(np.int8), "result")
    yield _x("sparse, bool", lambda X: small(X).astype(bool), "result")
    yield _x("sparse, 64-bit indices", lambda X: _indices(small(X), np.int64), "result")
    yield _x("sparse, unsorted", lambda X: _reordered(small(X)), "result")
    yield _x("sparse, entries twice", lambda X: _repeated(small(X)), "result")
    for format in ("csc", "csr"):
        for where, make in (("", _x), ("later, ", _later)):
            for name, change in {
                "index past the end": lambda S: _put(S.indices, 3, 10_000),
                "index one past the end": lambda S: _put(S.indices, S.indptr[1] - 1, S.shape[S.format == "csr"]),
                "index huge": lambda S: _put(S.indices, 3, 2**31 - 1),
                "index -1": lambda S: _put(S.indices, 0, -1),
                "index hugely negative": lambda S: _put(S.indices, 0, -(2**31)),
                "pointers fall": lambda S: _put(S.indptr, 3, S.indptr[-1]),
                "pointer negative": lambda S: _put(S.indptr, 1, -5),
                "first pointer not 0": lambda S: _put(S.indptr, 0, 3),
                "last pointer past the end": lambda S: _put(S.indptr, -1, 10**6),
            }.items():
                if where and name not in ("index past the end", "index -1", "pointers fall", "last pointer past the end"):
                    continue
                yield make(
                    f"{where}sparse {format}, {name}", lambda X, f=format, c=change: _broken(small(X).asformat(f), c), "error"
                )
    yield _x("sparse coo, row past the end", lambda X: _broken_coo(small(X).tocoo(), 10_000), "error")
    yield _x("sparse coo, row -1", lambda X: _broken_coo(small(X).tocoo(), -1), "error")
    yield _x("sparse, values missing", lambda X: _shorter(small(X)), "error")


def _indices(S: sparse.csc_array, kind: Any) -> sparse.csc_array:
    S.indices, S.indptr = S.indices.astype(kind), S.indptr.astype(kind)
    return S


def _reordered(S: sparse.csc_array) -> sparse.csc_array:
    for start, stop in zip(S.indptr[:-1], S.indptr[1:], strict=True):
        S.indices[start:stop], S.data[start:stop] = S.indices[start:stop][::-1].copy(), S.data[start:stop][::-1].copy()
    S.has_sorted_indices = False
    return S


def _repeated(S: sparse.csc_array) -> sparse.csc_array:
    return sparse.csc_array((np.repeat(S.data, 2), np.repeat(S.indices, 2), S.indptr * 2), shape=S.shape)


def _broken(S: Any, change: Callable[[Any], Any]) -> Any:
    change(S)
    return S


def _broken_coo(S: Any, row: int) -> Any:
    S.coords[0][3] = row
    return S


def _shorter(S: sparse.csc_array) -> sparse.csc_array:
    S.data = S.data[:-5]
    return S


def _targets() -> Iterator[Case]:
    """Labels, numbers and weights."""
    yield _y("None", lambda y: None)
    yield _y("constant", lambda y: y * 0 + 1)
    yield _y("constant 0.1", lambda y: y * 0 + 0.1)
    yield _y("nearly constant", lambda y: 1.0 + 1e-13 * y)
    yield _y("one NaN", lambda y: _put(y.astype(float), 3, np.nan))
    yield _y("one inf", lambda y: _put(y.astype(float), 3, np.inf))
    yield _y("all NaN", lambda y: y * np.nan)
    yield _y("one None", lambda y: _put(y.astype(object), 3, None))
    yield _y("one pandas.NA", lambda y: pd.Series(y).astype("Float64").where(np.arange(len(y)) != 3))
    yield _y("too short", lambda y: y[:-1])
    yield _y("too long", lambda y: np.append(y, y[:1]))
    yield _y("empty", lambda y: y[:0])
    yield _y("two columns", lambda y: np.column_stack([y, y]))
    yield _y("one column", lambda y: y[:, np.newaxis])
    yield _y("a number", lambda y: 3)
    yield _y("words", lambda y: np.where(y > 0, "yes", "no"))
    yield _y("words as objects", lambda y: np.where(y > 0, "yes", "no").astype(object))
    yield _y("words and numbers", lambda y: np.array([1, "no"] * (N_SAMPLES // 2), dtype=object))
    yield _y("bytes", lambda y: np.where(y > 0, b"yes", b"no"))
    yield _y("bool", lambda y: y > 0)
    yield _y("booleans and words", lambda y: np.array([True, "no"] * (N_SAMPLES // 2), dtype=object))
    yield _y("dates", lambda y: np.where(y > 0, np.datetime64("2020-01-01"), np.datetime64("2021-01-01")))
    yield _y("complex", lambda y: y + 1j)
    yield _y("lists", lambda y: [[1], [2]] * (N_SAMPLES // 2))
    yield _y("ragged", lambda y: [[1], [2, 3]] * (N_SAMPLES // 2))
    yield _y("objects", lambda y: np.array([object()] * N_SAMPLES))
    yield _y("tuples", lambda y: _tuples(y))
    yield _y("categories", lambda y: pd.Categorical(np.where(y > 0, "yes", "no")))
    yield _y("a frame of two columns", lambda y: pd.DataFrame({"a": y, "b": y}))
    yield _y("sparse", lambda y: sparse.csr_array(y[:, np.newaxis].astype(float)))
    yield _y("masked", lambda y: np.ma.masked_array(y, mask=y > 0))
    yield _y("every sample its own class", lambda y: np.arange(N_SAMPLES))
    yield _y("every sample its own word", lambda y: np.array([f"w{i}" for i in range(N_SAMPLES)]))
    yield _y("a class of one sample", lambda y: _put(np.where(y > 0, 1, 0), 3, 7))
    yield _y("all but one sample in one class", lambda y: _put(np.zeros(N_SAMPLES, int), 3, 1))
    yield _y("ten classes", lambda y: np.arange(N_SAMPLES) % 10)
    yield _y("fractions", lambda y: np.linspace(0, 1, N_SAMPLES))
    yield _y("integers past 2**53", lambda y: np.where(y > 0, 2**60, 2**60 + 1))
    yield _y("uint64", lambda y: np.where(y > 0, 2**64 - 1, 0).astype(np.uint64))
    yield _weight("zero", lambda w: w * 0)
    yield _weight("one negative", lambda w: _put(w, 3, -1.0), "error")
    yield _weight("too short", lambda w: w[:-1], "error")
    yield _weight("two columns", lambda w: np.column_stack([w, w]), "error")
    yield _weight("words", lambda w: np.array(["heavy"] * N_SAMPLES), "error")
    yield _weight("None among them", lambda w: _put(w.astype(object), 3, None), "error")
    yield _weight("a word", lambda w: "balanced", "error")
    yield _weight("a number", lambda w: 2.0, "result")
    yield _weight("complex", lambda w: w + 1j, "error")
    yield _weight("one sample alone", lambda w: _put(w * 0, 3, 1.0))
    yield _weight("two samples alone", lambda w: _put(w * 0, slice(3, 5), 1.0))
    yield _weight("bool", lambda w: w > 0, "result")
    yield _weight("from 1e-200 to 1e200", lambda w: np.logspace(-200, 200, len(w)))
    yield Case("weights: one class has none", lambda fit: replace(fit, sample_weight=(np.asarray(fit.y) > 0).astype(float)))


def _offset(name: str, change: Callable[[np.ndarray], Any], fate: Fate = "error") -> Case:
    """Return a case with another offset."""
    return Case(f"offset: {name}", lambda fit: replace(fit, offset=change(np.zeros(N_SAMPLES))), fate)


def _survival_times() -> Iterator[Case]:
    """Survival times, as two columns: the time, and 1 for an event."""
    yield _y("a negative time", lambda y: _put(y, (3, 0), -1.0), "error")
    yield _y("a time of zero", lambda y: _put(y, (3, 0), 0.0), "result")
    yield _y("a missing time", lambda y: _put(y, (3, 0), np.nan), "error")
    yield _y("an infinite time", lambda y: _put(y, (3, 0), np.inf), "error")
    yield _y("a missing event", lambda y: _put(y, (3, 1), np.nan), "error")
    yield _y("an event of 2", lambda y: _put(y, (3, 1), 2.0), "error")
    yield _y("all censored", lambda y: _put(y, np.s_[:, 1], 0.0), "error")
    yield _y("one event", lambda y: _put(y * [1.0, 0.0], (1, 1), 1.0))
    yield _y("all events", lambda y: _put(y, np.s_[:, 1], 1.0), "result")
    yield _y("the same time for all", lambda y: _put(y, np.s_[:, 0], 5.0), "error")
    yield _y("two times", lambda y: _put(y, np.s_[:, 0], np.arange(N_SAMPLES) % 2), "either")
    yield _y("times but no events", lambda y: y[:, 0], "error")
    yield _y("four columns", lambda y: np.hstack([y, y]), "error")
    yield _y("columns of different lengths", lambda y: {"time": y[:, 0], "event": y[:-1, 1]}, "error")
    yield _y("a stratum per sample", lambda y: np.column_stack([y, np.arange(N_SAMPLES)]), "error")
    yield _y("two strata", lambda y: np.column_stack([y, np.arange(N_SAMPLES) % 2]), "result")


def _counts() -> Iterator[Case]:
    """Counts, and the logarithms of their exposures."""
    yield _y("a negative count", lambda y: _put(y, 3, -1.0), "error")
    yield _y("a count that is not whole", lambda y: _put(y, 3, 1.5), "result")  # with a warning
    yield _y("all counts are zero", lambda y: y * 0.0, "error")
    yield _y("one count is not zero", lambda y: _put(y * 0.0, 3, 2.0))
    yield _y("a count of 1e12", lambda y: _put(y, 3, 1e12))
    yield _offset("exposure of zero", lambda o: _put(o, 3, -np.inf))
    yield _offset("missing", lambda o: _put(o, 3, np.nan))
    yield _offset("too short", lambda o: o[:-1])
    yield _offset("two columns", lambda o: np.column_stack([o, o]))
    yield _offset("words", lambda o: np.array(["long"] * N_SAMPLES))
    yield _offset("from -300 to 300", lambda o: np.linspace(-300, 300, N_SAMPLES), "either")


def _several_targets() -> Iterator[Case]:
    """Three targets as columns."""
    yield _y("NaN in one target", lambda y: _put(y, (3, 1), np.nan), "error")
    yield _y("inf in one target", lambda y: _put(y, (3, 1), np.inf), "error")
    yield _y("one target is constant", lambda y: _put(y, np.s_[:, 1], 5.0), "error")
    yield _y("equal targets", lambda y: y[:, [0, 0, 0]], "result")
    yield _y("targets of different lengths", lambda y: [row[: 1 + i % 3] for i, row in enumerate(y.tolist())], "error")
    yield _y("one sample too few", lambda y: y[:-1], "error")
    yield _y("one target of text", lambda y: _put(y.astype(object), np.s_[:, 1], "high"), "error")
    yield _y("names twice", lambda y: pd.DataFrame(y, columns=["a", "b", "b"]), "error")
    yield _y("a frame with a date", lambda y: pd.DataFrame(y).assign(when=datetime.datetime(2020, 1, 1)), "error")
    yield _y("three dimensions", lambda y: y[:, :, np.newaxis], "error")
    yield _y("no columns", lambda y: y[:, :0], "error")
    yield _y("scales of 1e-60 and 1e60", lambda y: y * [1e-60, 1.0, 1e60], "result")
    yield _offset("a column too few", lambda o: np.column_stack([o, o]))
    yield _offset("one for all targets", lambda o: o + np.arange(N_SAMPLES), "result")


def _tuples(y: np.ndarray) -> np.ndarray:
    labels = np.empty(len(y), dtype=object)
    for i, value in enumerate(y):
        labels[i] = ("a", 1) if value > 0 else ("b", 2)
    return labels


DATA: list[Case] = [
    *_values(), *_shapes(), *_types(), *_sparse(), *_targets(), *_scales(),
]  # fmt: skip

# Further cases by kind of target (:func:`good_targets`).
OF_TARGETS: dict[str, list[Case]] = {
    "survival": [*_survival_times()],
    "counts": [*_counts()],
    "several": [*_several_targets()],
}

# Values of parameters that are wrong or extreme, depending on the rule of the estimator.
WRONG: dict[str, Any] = {
    "None": None, "a word": "nonsense", "'false'": "false", "'1'": "1", "True": True, "False": False, "0": 0, "-1": -1,
    "2.5": 2.5, "NaN": float("nan"), "inf": float("inf"), "-inf": float("-inf"), "1e-309": 1e-309, "1e-300": 1e-300,
    "1e300": 1e300, "1e-10": 1e-10, "1e10": 1e10, "10**12": 10**12, "an empty list": [], "[1]": [1], "a list of words": ["a"],
    "an array": np.arange(3.0), "an object": object(), "a type": int, "a tuple of NaN": (float("nan"),), "1j": 1j,
    "a pair out of range": [([0, 1], [10_000])], "a pair of words": [("a", "b")], "an empty pair": [([], [])],
    "a dictionary": {"a": 1}, "bytes": b"x", "a NumPy word": np.str_("nonsense"), "a NumPy NaN": np.float32("nan"),
}  # fmt: skip
# Parameters that only change the running time or the place of a file. (Without n_probes, DAF makes 1000 probes.)
_LONGER = {"max_iter", "max_rounds", "verbose", "n_jobs", "checkpoint", "max_seconds", "n_probes", "max_probe_size"}


def of_parameters(estimator: BaseEstimator) -> list[Case]:
    """Return cases with wrong values for each parameter of an estimator."""
    return [
        Case(f"{parameter}: {name}", lambda fit, p=parameter, v=value: replace(fit, parameters={p: v}))
        for parameter in estimator.get_params(deep=False)
        for name, value in WRONG.items()
        if not (parameter in _LONGER and name in ("10**12", "1e10", "1e300")) and (parameter, name) != ("n_probes", "None")
    ]
