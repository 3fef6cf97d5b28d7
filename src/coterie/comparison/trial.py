"""Methods of a comparison, and the run of one method on the folds, in its own process."""

from __future__ import annotations

import hashlib
import inspect
import math
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

import joblib
import numpy as np
from sklearn.base import BaseEstimator, clone
from sklearn.metrics import check_scoring

from coterie._warnings import ignored, recorded
from coterie.comparison.result import FAILED, OK, OUT_OF_MEMORY, Row
from coterie.data.imputation import ImputedSource
from coterie.data.source import FeatureSource
from coterie.data.store.reading import open_store
from coterie.filters.selector import FilterSelector
from coterie.inputs.sample_groups import accepts_groups
from coterie.methods import METHODS, REGRESSION, Method, method_named, methods_for
from coterie.metrics.recovery import redundancy_rate, squared_redundancy
from coterie.persistence.names import stable_name

# Fast methods of every kind.
DEFAULT = ("gdm", "fgm", "mrmr", "fcbf", "l1-svm", "svm-rfe", "grm", "fisher")
DEFAULT_FOR_NUMBERS = ("gdm", "fgm", "mrmr", "lasso", "grm", "correlation")
# Names, selectors, or a mapping of names to either; None for some fast methods.
MethodsLike: TypeAlias = "str | BaseEstimator | Iterable[str | BaseEstimator] | Mapping[str, str | BaseEstimator] | None"
_SIZE_PARAMETERS = ("n_features_to_select", "k", "max_features")
Report = Callable[[Row, np.ndarray], None]
_NO_FEATURES = np.empty(0, dtype=np.int64)
# Samples per class, and features, of the warm-up fit that loads compiled kernels before the timing.
_WARM_SAMPLES, _WARM_FEATURES = 20, 12


class MethodEntry(NamedTuple):
    """Method of a comparison: its name in the table, and an unfitted selector."""

    name: str
    selector: Any
    size: str  # parameter with the number of features to select
    nested: str  # how one fit provides all numbers of features ("support", "ranking"); see coterie.methods.Method
    known: bool  # whether it is a method of the package, which can be warmed up

    @property
    def digest(self) -> str:
        """Return a digest of the selector and its parameters."""
        return estimator_digest(self.selector, without=self.size)


def estimator_digest(estimator: BaseEstimator, without: str | None = None) -> str:
    """Return a digest of an estimator's class and parameters, the same in every process."""
    parameters = {name: value for name, value in estimator.get_params(deep=True).items() if name != without}
    plain = sorted((name, joblib.hash(value)) for name, value in parameters.items())
    module, _, name = stable_name(type(estimator)).rpartition(".")
    content = f"{module}:{name} {plain}"
    return hashlib.blake2b(content.encode(), digest_size=12).hexdigest()


def check_for_task(read: Callable[[str], object], task: str) -> None:
    """Raise the error of ``read`` for a task. For ``"auto"``, raise that for classes if numbers fail as well."""
    try:
        read("classification" if task == "auto" else task)
    except ValueError as error:
        if task != "auto":
            raise
        try:
            read("regression")
        except ValueError:
            raise error from None


def default_methods(task: str) -> list[str]:
    """Return the names of fast methods for a task."""
    return list(DEFAULT_FOR_NUMBERS if task == "regression" else DEFAULT)


def read_methods(methods: MethodsLike, seed: int, task: str = "classification") -> list[MethodEntry]:
    """Return the methods in order, from names, selectors, or a mapping of names to either."""
    if methods is None:
        methods = default_methods(task)
    elif isinstance(methods, str):
        methods = list(methods_for(task)) if methods.strip().lower() == "all" else [methods]
    elif hasattr(methods, "fit"):
        methods = [methods]
    pairs: list[tuple[str, Any]] = []
    if isinstance(methods, Mapping):
        pairs = [(str(name), method) for name, method in methods.items()]
    else:
        for method in methods:
            name = method if isinstance(method, str) else type(method).__name__
            pairs.append((_free_name(str(name).strip(), [taken for taken, _ in pairs], isinstance(method, str)), method))
    if not pairs:
        raise ValueError(f"methods is empty. Name at least one of {', '.join(methods_for(task))}, or pass selectors.")
    return [_method_entry(name, method, seed, task) for name, method in pairs]


def _free_name(name: str, taken: list[str], named: bool) -> str:
    if name not in taken:
        return name
    if named:
        raise ValueError(f"methods contains {name!r} twice. Remove one of them, or pass a dictionary with different names.")
    return next(f"{name} {number}" for number in range(2, len(taken) + 3) if f"{name} {number}" not in taken)


def _method_entry(name: str, method: Any, seed: int, task: str) -> MethodEntry:
    selector = selector_named(method, task=task) if isinstance(method, str) else _checked(name, method)
    parameters = selector.get_params(deep=True)
    size = next((parameter for parameter in _SIZE_PARAMETERS if parameter in parameters), None)
    if size is None:
        raise ValueError(
            f"The selector {name!r} ({type(selector).__name__}) has no parameter {', '.join(_SIZE_PARAMETERS[:-1])} or "
            f"{_SIZE_PARAMETERS[-1]}, so its number of features cannot be set. Add one of these parameters."
        )
    unseeded = [key for key, value in parameters.items() if key.split("__")[-1] == "random_state" and value is None]
    selector.set_params(**dict.fromkeys(unseeded, seed))
    known = type(selector).__module__.startswith("coterie.")
    return MethodEntry(name, selector, size, "ranking" if isinstance(selector, FilterSelector) else _nested(selector), known)


def selector_named(name: str, *, task: str = "classification", **parameters: Any) -> Any:
    """Return the selector of a named method for a task, with parameters of its class or score.

    Examples
    --------
    >>> from coterie.comparison.trial import selector_named
    >>> selector_named("fgm", C=10.0)
    GroupDiscoveryClassifier(C=10.0, correlation=None)
    >>> selector_named("relieff", n_neighbors=7)
    FilterSelector(parameters={'n_neighbors': 7}, score_func='relieff')
    >>> selector_named("gdm", task="regression")
    GroupDiscoveryRegressor()
    """
    method = method_named(name, task)
    target = method.load()
    if not inspect.isclass(target):
        return FilterSelector(name.strip().lower().replace("-", "_"), parameters=parameters or None)
    known = inspect.signature(target).parameters
    for parameter in parameters:
        if parameter not in known:
            raise ValueError(f"{name} has no parameter {parameter!r}. Its parameters are {', '.join(known)}.")
    return target(**{**method.settings, **parameters})


def _checked(name: str, selector: Any) -> Any:
    if not name:
        raise ValueError("The name of a method is empty.")
    if inspect.isclass(selector) or not (hasattr(selector, "fit") and hasattr(selector, "get_support")):
        raise ValueError(
            f"The method {name!r} is {selector!r}, which is neither a selector with fit and get_support nor the name of a "
            f"method ({', '.join(METHODS)})."
        )
    try:
        return clone(selector)
    except TypeError as error:
        raise ValueError(f"The selector {name!r} cannot be cloned: {error}") from error


def _nested(selector: BaseEstimator) -> str:
    """Return how one fit of this selector provides all numbers of features, if it does."""
    for method in (*METHODS.values(), *REGRESSION.values()):
        if _is_of(method, selector):
            parameters = selector.get_params(deep=False)
            holds = all(_same(parameters.get(name), value) for name, value in method.nested_if.items())
            return method.nested if holds else ""
    return ""


def _is_of(method: Method, selector: BaseEstimator) -> bool:
    return method.place == f"{type(selector).__module__}:{type(selector).__name__}"


def _same(given: object, value: object) -> bool:
    return given is value or (isinstance(given, (str, int, float)) and not isinstance(given, bool) and given == value)


@dataclass(frozen=True)
class Gaps:
    """Positions of missing values, and the strategy that filled them."""

    samples: np.ndarray
    features: np.ndarray
    strategy: str


@dataclass(frozen=True)
class TrialSettings:
    """Settings shared by all methods: data store, conversion to a data frame (for names), folds, predictor and scorer."""

    store: Path | str
    frame: bool
    y: np.ndarray
    folds: Sequence[tuple[np.ndarray, np.ndarray]]
    classifier: Any
    scoring: Any
    standardize: bool
    share_fits: bool
    task: str = "classification"
    gaps: Gaps | None = None
    groups: np.ndarray | None = None  # sample groups


class Trial:
    """Method and its data."""

    def __init__(self, setting: TrialSettings, entry: MethodEntry) -> None:
        self.setting = setting
        self.entry = entry
        self.source: FeatureSource = open_store(setting.store).source
        self._filled: tuple[int, FeatureSource] | None = None

    def run(self, fold: int, sizes: Sequence[int], report: Report) -> None:
        """Run all numbers of features on a fold and report each row when it is finished."""
        try:
            X, y = self._training_part(fold)
        except MemoryError as error:
            self._without_result(fold, sizes, error, report)
            return
        if self.entry.nested and self.setting.share_fits:
            self._run_shared(X, y, fold, sizes, report)
            return
        for size in sizes:
            try:
                model, seconds, note = self._fitted(X, y, size, self._groups_of(fold))
                row, chosen = self._judged(_selection(model), fold, size, seconds, note)
            except BaseException as error:
                self._without_result(fold, [size], error, report)
            else:
                report(row, chosen)

    def _run_shared(self, X: Any, y: np.ndarray, fold: int, sizes: Sequence[int], report: Report) -> None:
        """Run one fit for all numbers of features."""
        by_ranking = self.entry.nested == "ranking"
        try:
            fitted = min(sizes) if by_ranking else max(sizes)
            model, seconds, note = self._fitted(X, y, fitted, self._groups_of(fold))
            order = np.argsort(model.ranking_, kind="stable") if by_ranking else np.asarray(model.support_features_)
        except BaseException as error:
            self._without_result(fold, sizes, error, report)
            return
        for size in sizes:
            try:
                # A warning of this fit (for example, about too few features) may not apply to the other numbers.
                its_own = size == fitted or len(order) < size
                row, chosen = self._judged(order[:size], fold, size, seconds, note if its_own else "")
            except BaseException as error:
                self._without_result(fold, [size], error, report)
            else:
                report(row, chosen)

    def _fitted(self, X: Any, y: np.ndarray, size: int, groups: np.ndarray | None = None) -> tuple[Any, float, str]:
        """Return the fitted selector, its time in seconds and its first warning."""
        model = clone(self.entry.selector).set_params(**{self.entry.size: size})
        # Selectors that divide the training samples once more keep sample groups together, too.
        options = {} if groups is None or not accepts_groups(model) else {"groups": groups}
        with recorded() as told:
            began = time.perf_counter()
            model.fit(X, y, **options)
            seconds = time.perf_counter() - began
        notes = [one.message for one in told if not issubclass(one.category, (DeprecationWarning, FutureWarning))]
        return model, seconds, " ".join(notes[0].split()) if notes else ""

    def _judged(self, chosen: np.ndarray, fold: int, size: int, seconds: float, note: str) -> tuple[Row, np.ndarray]:
        if len(chosen) == 0:
            raise ValueError("The method selected no features.")
        train, test = self.setting.folds[fold]
        columns = self._source_of(fold).columns(np.sort(chosen))  # the classifier does not depend on their order
        columns = columns if isinstance(columns, np.ndarray) else columns.tocsr()
        y = self.setting.y
        with ignored():
            classifier = clone(self.setting.classifier).fit(columns[train], y[train])
            score = check_scoring(classifier, self.setting.scoring)(classifier, columns[test], y[test])
            seen = columns[train].astype(np.float64)
            row = Row(
                self.entry.name,
                size,
                fold,
                len(chosen),
                float(score),
                redundancy_rate(seen),
                squared_redundancy(seen),
                seconds,
                OK,
                note,
                _rmse(y[test], classifier.predict(columns[test])) if self.setting.task == "regression" else math.nan,
            )
        return row, chosen

    def _without_result(self, fold: int, sizes: Sequence[int], error: BaseException, report: Report) -> None:
        status = OUT_OF_MEMORY if isinstance(error, MemoryError) else FAILED
        words = " ".join(str(error).split())
        kind = type(error).__name__
        message = words if isinstance(error, ValueError) and words else f"{kind}: {words}" if words else kind
        for size in sizes:
            report(Row.without_result(self.entry.name, size, fold, status, message), _NO_FEATURES)

    def _training_part(self, fold: int) -> tuple[Any, np.ndarray]:
        train = self.setting.folds[fold][0]
        y = self.setting.y[train]
        everything: Any = (
            self._everything if self.setting.gaps is None else self._source_of(fold).block(0, self.source.shape[1])
        )
        if self.source.is_sparse:
            X = everything.tocsr()[train].tocsc()
        else:
            X = np.take(everything.T, train, axis=1).T  # feature-major, as in the store
        if self.setting.standardize:
            X = _standardized(X)
        if self.setting.frame:
            import pandas as pd

            X = pd.DataFrame(X, columns=[str(name) for name in self.source.feature_names or []])
        return X, y

    def _groups_of(self, fold: int) -> np.ndarray | None:
        """Return the sample groups of the training samples; None if there are none, or only one."""
        groups = None if self.setting.groups is None else self.setting.groups[self.setting.folds[fold][0]]
        return None if groups is None or (groups == groups[0]).all() else groups

    def _source_of(self, fold: int) -> FeatureSource:
        """Return the features of a fold. Missing values are filled from its training samples."""
        if self.setting.gaps is None:
            return self.source
        if self._filled is None or self._filled[0] != fold:
            self._filled = fold, self._with_gaps.refilled(self.setting.folds[fold][0])
        return self._filled[1]

    @cached_property
    def _with_gaps(self) -> ImputedSource:
        gaps = self.setting.gaps
        assert gaps is not None
        values = np.array(self._everything, dtype=np.result_type(self._everything.dtype, np.float32))
        values[gaps.samples, gaps.features] = np.nan
        return ImputedSource(values, gaps.strategy, self.source.feature_names)

    @cached_property
    def _everything(self) -> Any:
        return self.source.block(0, self.source.shape[1])

    def warm_up(self) -> None:
        """Fit a few samples and features, so that the time of the first fold excludes loading compiled code."""
        if self.entry.selector.get_params(deep=False).get("checkpoint") is not None:
            return  # a checkpoint would store this fit
        train = self.setting.folds[0][0]
        y = self.setting.y[train]
        some = np.arange(min(len(y), 2 * _WARM_SAMPLES))
        if self.setting.task == "classification":
            some = np.sort(np.concatenate([np.flatnonzero(y == label)[:_WARM_SAMPLES] for label in np.unique(y)]))
        features = np.sort(np.argsort(-self.source.moments().norm, kind="stable")[:_WARM_FEATURES])
        X = self.source.columns(features)
        X = X[train[some]] if isinstance(X, np.ndarray) else X.tocsr()[train[some]].tocsc()
        X = _standardized(X) if self.setting.standardize else X
        try:
            self._fitted(X if not isinstance(X, np.ndarray) else np.asfortranarray(X), y[some], 2)
        except Exception:  # the folds report it
            return


def _selection(model: Any) -> np.ndarray:
    """Return the selected features of a fitted selector, in order of selection if it has one."""
    kept = np.flatnonzero(np.asarray(model.get_support()))
    order = getattr(model, "support_features_", None)
    if order is not None and np.array_equal(np.sort(order), kept):
        return np.asarray(order)
    return kept


def _rmse(y: np.ndarray, predicted: np.ndarray) -> float:
    """Return the root mean squared error."""
    return float(np.sqrt(np.mean((np.asarray(y, dtype=np.float64) - predicted) ** 2)))


def _standardized(X: Any) -> Any:
    """Scale columns to mean 0 and standard deviation 1. Sparse columns are only scaled."""
    from sklearn.preprocessing import StandardScaler

    if isinstance(X, np.ndarray):
        return np.asfortranarray(StandardScaler().fit_transform(X.astype(np.float64)))
    return StandardScaler(with_mean=False).fit_transform(X.astype(np.float64)).tocsc()
