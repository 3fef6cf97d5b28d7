"""What the benchmarks share: timing, peak memory, tuning, accuracy, tables and JSON.

Machines are noisy, so nothing here asserts a time. Contenders are timed in turn (first all of them
once, then all of them again), so that a busy minute hits everyone, and what counts is the ratio. Turns do not help when other
work holds a core all the time: that slows a fit on two threads, and hardly one on a single thread. So every timing says how
many cores other processes used meanwhile; ratios from a machine where that is not near 0 are not to be trusted.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import multiprocessing
import os
import platform
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from importlib.metadata import PackageNotFoundError, version
from math import sqrt
from multiprocessing.connection import Connection
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
import psutil
from scipy import sparse
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import GridSearchCV
from sklearn.svm import LinearSVC, l1_min_c

import coterie
from coterie import GroupDiscoveryClassifier
from coterie.data import as_source

Fit = Callable[[Any, np.ndarray], Any]

RESULTS = Path(__file__).parent / "results"
LIBRARIES = ("coterie", "numpy", "scipy", "scikit-learn", "numba", "celer", "sortedl1", "feature-engine")
MEGABYTE = 1e6


# Command line -----------------------------------------------------------------------------------


def read_arguments(
    description: str | None, *, slow: str | None = None, repeats: int = 3, parts: Sequence[str] = ()
) -> argparse.Namespace:
    """The options that all benchmarks have; ``slow`` says what the flag ``--slow`` adds, ``parts`` what ``--only`` names."""
    parser = argparse.ArgumentParser(description=(description or "").split("\n")[0])
    parser.add_argument("--quick", action="store_true", help="small sizes, about 20 seconds; says little about speed")
    parser.add_argument("--repeats", type=int, default=None, help=f"runs of everything timed (default {repeats}; quick: 1)")
    parser.add_argument("--threads", type=int, default=os.cpu_count(), help="threads of Coterie (default: all cores)")
    parser.add_argument("--seed", type=int, default=0, help="seed of data and splits (default 0)")
    if parts:
        parser.add_argument("--only", choices=parts, default=None, help="this part alone (default: all)")
    if slow is not None:
        parser.add_argument("--slow", action="store_true", help=slow)
        parser.add_argument("--limit", type=float, default=300.0, help="seconds after which a slow one is ended (default 300)")
    options = parser.parse_args()
    options.source = source_digest()
    if options.repeats is None:
        options.repeats = 1 if options.quick else repeats
    return options


# Time -------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Timing:
    """Wall times of some runs of one function, the cores that other processes used meanwhile, and the last result."""

    runs: tuple[float, ...]
    result: Any = None
    others: float | None = None

    @property
    def best(self) -> float:
        return min(self.runs)

    @property
    def median(self) -> float:
        return median(self.runs)


def measure(function: Callable[[], Any], repeats: int) -> Timing:
    """Best and median wall time of some runs."""
    return measure_in_turn([function], repeats)[0]


def measure_in_turn(functions: Sequence[Callable[[], Any]], repeats: int) -> list[Timing]:
    """Wall times of several functions that take turns, so that noise hits all of them."""
    runs: list[list[float]] = [[] for _ in functions]
    results: list[Any] = [None] * len(functions)
    busy = [0.0] * len(functions)
    for _ in range(max(repeats, 1)):
        for number, function in enumerate(functions):
            results[number] = None  # the old result must not take memory during the new run
            busy_before, start = _others_seconds(), time.perf_counter()
            results[number] = function()
            runs[number].append(time.perf_counter() - start)
            busy[number] += _others_seconds() - busy_before
    return [Timing(tuple(t), result, round(max(0.0, b / sum(t)), 2)) for t, result, b in zip(runs, results, busy, strict=True)]


def _others_seconds() -> float:
    """Processor time of all other processes so far (in steps of about 0.01 s); children that have ended count as ours."""
    everything, mine = psutil.cpu_times(), os.times()
    return everything.user + everything.system + getattr(everything, "nice", 0.0) - sum(mine[:4])


def measure_bare_pass(X: Any, n_threads: int, repeats: int) -> Timing:
    """Time of one ``X'v`` by Coterie's own kernel: the unit in which performance.md counts."""
    source = as_source(X)
    vector = np.random.default_rng(0).standard_normal((source.shape[0], 1))
    source.products(vector, n_threads=n_threads)  # compiles
    return measure(lambda: source.products(vector, n_threads=n_threads), max(3, repeats))


# Models: functions of the module, so that they can be sent to a fresh process ---------------------


def fit_ours(X: Any, y: np.ndarray, **parameters: Any) -> GroupDiscoveryClassifier:
    """Coterie's group discovery."""
    return GroupDiscoveryClassifier(**parameters).fit(X, y)


def fit_l1_svm(X: Any, y: np.ndarray, C: float) -> LinearSVC:
    """The L1-regularised linear SVM of liblinear; likes sample-major data (CSR, C order)."""
    return LinearSVC(penalty="l1", dual=False, C=C, random_state=0).fit(X, y)


def fit_celer(X: Any, y: np.ndarray, C: float) -> Any:
    """Celer's L1 logistic regression; likes feature-major data (CSC, F order)."""
    from celer import LogisticRegression

    return LogisticRegression(penalty="l1", C=C).fit(X, y)


def fit_slope(X: Any, y: np.ndarray, C: float) -> Any:
    """SLOPE with the logistic loss; ``C`` is the inverse of its penalty."""
    from sortedl1 import Slope

    return Slope(alpha=1.0 / C, loss="logistic").fit(X, (y > 0).astype(np.float64))


def selected_features(model: Any) -> np.ndarray | None:
    """Indices of the features that a model chose, in order of selection where it has one."""
    if hasattr(model, "support_features_"):
        return np.asarray(model.support_features_)
    if hasattr(model, "coef_"):
        return np.flatnonzero(np.ravel(model.coef_))
    if hasattr(model, "get_support"):
        return np.flatnonzero(model.get_support())
    return None


def toy_like(X: Any, n_samples: int = 200, n_features: int = 300) -> tuple[Any, np.ndarray]:
    """Small random data of the same value type and layout: to compile kernels and load libraries before timing."""
    rng = np.random.default_rng(0)
    y = np.where(np.arange(n_samples) % 2, 1, -1)
    if not sparse.issparse(X):
        values = (10 * rng.standard_normal((n_samples, n_features))).astype(X.dtype)
        return np.asarray(values, order="F" if X.flags.f_contiguous else "C"), y
    values = rng.integers(1, 5, size=(n_samples, n_features)) * (rng.random((n_samples, n_features)) < 0.2)
    toy = sparse.csc_array(values.astype(X.dtype)).asformat(X.format)
    toy.indices, toy.indptr = toy.indices.astype(X.indices.dtype), toy.indptr.astype(X.indptr.dtype)
    return toy, y


def warm_up(fit: Fit, X: Any) -> None:
    """Fit toy data of the kind of X once."""
    with warnings_counted():
        fit(*toy_like(X))


@contextmanager
def warnings_counted() -> Iterator[list[Any]]:
    """Keep warnings off the screen; the list of those about convergence is complete when the block ends."""
    unconverged: list[Any] = []
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        yield unconverged
    unconverged += [one for one in caught if issubclass(one.category, ConvergenceWarning)]


# Tuning -----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Tuned:
    """A regularised model with about the wanted number of features, and the time of that one fit."""

    model: Any
    C: float
    n_features: int
    seconds: float
    n_fits: int


def tune(
    fit: Callable[..., Any],
    X: Any,
    y: np.ndarray,
    n_features: int,
    start: float,
    max_fits: int = 16,
    max_seconds: float = np.inf,
) -> Tuned:
    """Choose C by bisection on log C so that ``fit(X, y, C)`` selects about ``n_features``.

    From ``start`` the search doubles or halves C until the wanted number lies between two fits. Starting low is cheap:
    models with few features are fitted fast. It ends within 2 % of the number, or when C hardly moves; no fit
    begins after ``max_seconds``.
    """
    low = high = best = None
    C, n_fits, began = start, 0, time.perf_counter()
    while n_fits < max_fits and (not n_fits or time.perf_counter() - began < max_seconds):
        with warnings_counted():
            timing = measure(partial(fit, X, y, C), 1)
        n_fits += 1
        features = selected_features(timing.result)
        count = 0 if features is None else len(features)
        if best is None or abs(count - n_features) < abs(best.n_features - n_features):
            best = Tuned(timing.result, C, count, timing.best, n_fits)
        if abs(count - n_features) <= 0.02 * n_features or (low and high and high / low < 1.002):
            break
        low, high = (C, high) if count < n_features else (low, C)
        C = sqrt(low * high) if low and high else 2.0 * C if low else 0.5 * C
    assert best is not None
    return Tuned(best.model, best.C, best.n_features, best.seconds, n_fits)


def tune_l1_svm(X: Any, y: np.ndarray, n_features: int) -> Tuned:
    """L1-SVM with about ``n_features`` features."""
    return tune(fit_l1_svm, X, y, n_features, 2.0 * l1_min_c(X, y, loss="squared_hinge"))


def tune_celer(X: Any, y: np.ndarray, n_features: int) -> Tuned:
    """Celer's L1 logistic regression with about ``n_features`` features."""
    return tune(fit_celer, X, y, n_features, 1.5 * l1_min_c(X, y, loss="log", fit_intercept=False))


# A fresh process: peak memory, and runs that may have to be ended -----------------------------------


@dataclass(frozen=True)
class ChildRun:
    """What one fit took in a fresh process.

    ``seconds`` is None where there is no time to tell: the run was ended at ``limit`` seconds (then its time is known to be
    longer), or it failed, which says nothing about speed.
    """

    seconds: float | None = None
    peak_increase: int | None = None
    features: np.ndarray | None = None
    limit: float | None = None
    failure: str | None = None


def run_in_child(fit: Fit, X: Any, y: np.ndarray, limit: float | None = None) -> ChildRun:
    """Fit once in a fresh process that holds X and little else, for the increase of its peak memory.

    The data go through a file and not through a pipe, whose buffers would count. ``fit`` must be picklable.
    """
    context = multiprocessing.get_context("spawn")
    with tempfile.TemporaryDirectory() as folder:
        _save(Path(folder), X, y)
        receiver, sender = context.Pipe(duplex=False)
        child = context.Process(target=_fit_and_tell, args=(folder, fit, sender))
        child.start()
        sender.close()
        try:
            if not receiver.poll(limit):
                return ChildRun(limit=limit)
            return receiver.recv()
        except EOFError:  # it ended without a word: killed, or it could not even start
            child.join()
            return ChildRun(failure=f"process ended with exit code {child.exitcode}")
        finally:
            child.terminate()
            child.join()


def _fit_and_tell(folder: str, fit: Fit, sender: Connection) -> None:
    """The child's work: load, fit toy data (imports and compiled code do not count), fit, tell."""
    try:
        X, y = _load(Path(folder))
        warm_up(fit, X)
        before = _reset_peak()
        with warnings_counted():
            timing = measure(partial(fit, X, y), 1)
        answer = ChildRun(timing.best, max(0, _peak_memory() - before), selected_features(timing.result))
    except Exception as error:
        answer = ChildRun(failure=f"{type(error).__name__}: {error}")
    sender.send(answer)


def _save(folder: Path, X: Any, y: np.ndarray) -> None:
    parts = {"y": y}
    if sparse.issparse(X):
        parts |= {"data": X.data, "indices": X.indices, "indptr": X.indptr, "shape": np.array(X.shape)}
        (folder / "format").write_text(X.format)
    else:
        parts["X"] = X
    for name, part in parts.items():
        np.save(folder / f"{name}.npy", part)


def _load(folder: Path) -> tuple[Any, np.ndarray]:
    parts = {path.stem: np.load(path) for path in folder.glob("*.npy")}
    if "X" in parts:
        return parts["X"], parts["y"]
    kind = {"csc": sparse.csc_array, "csr": sparse.csr_array}[(folder / "format").read_text()]
    return kind((parts["data"], parts["indices"], parts["indptr"]), shape=tuple(parts["shape"])), parts["y"]


def _reset_peak() -> int:
    """Forget earlier peaks where the system allows it; returns the memory in use now, in bytes."""
    with suppress(OSError):
        Path("/proc/self/clear_refs").write_text("5")
    return psutil.Process().memory_info().rss


def _peak_memory() -> int:
    """Largest resident memory of this process so far, in bytes.

    Linux tells it in /proc. Its ``ru_maxrss`` would be wrong: a child inherits the value of its parent.
    """
    try:
        lines = Path("/proc/self/status").read_text().splitlines()
        return next(int(line.split()[1]) * 1024 for line in lines if line.startswith("VmHWM"))
    except (OSError, StopIteration):
        import resource

        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)


# Comparison -------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Contender:
    """A name, a picklable fit, and the data in the layout that suits it best (converting them is not timed)."""

    name: str
    fit: Fit
    X: Any


@dataclass(frozen=True)
class Outcome:
    """A contender's model, times and peak memory."""

    name: str
    model: Any
    timing: Timing
    peak_increase: int | None
    converged: bool

    @property
    def features(self) -> np.ndarray:
        features = selected_features(self.model)
        assert features is not None
        return features


def compare(contenders: Sequence[Contender], y: np.ndarray, repeats: int) -> list[Outcome]:
    """Time all contenders in turn, then take the peak memory of each in a fresh process."""
    for one in contenders:
        warm_up(one.fit, one.X)
    peaks = [_peak_of(one, y) for one in contenders]
    converged = []
    for one in contenders:  # a run that is not timed, for the caches and for warnings
        with warnings_counted() as unconverged:
            one.fit(one.X, y)
        converged.append(not unconverged)
    with warnings_counted():
        timings = measure_in_turn([partial(one.fit, one.X, y) for one in contenders], repeats)
    return [
        Outcome(one.name, timing.result, timing, peak, good)
        for one, timing, peak, good in zip(contenders, timings, peaks, converged, strict=True)
    ]


def _peak_of(contender: Contender, y: np.ndarray) -> int | None:
    """Peak memory of a contender; a failure is said aloud, since an empty cell would hide it."""
    run = run_in_child(contender.fit, contender.X, y)
    if run.failure is not None:
        print(f"No peak memory of {contender.name}: {run.failure}")
    return run.peak_increase


def comparison_row(outcome: Outcome, ours: Outcome, goal: float | None) -> dict[str, Any]:
    """A table row; a rival's (one with a goal) has the ratio of our time to its; a goal of 1 means faster."""
    row: dict[str, Any] = {
        "method": outcome.name + ("" if outcome.converged else " *"),
        "features": len(outcome.features),
        "best s": outcome.timing.best,
        "median s": outcome.timing.median,
    }
    ratio = ours.timing.best / outcome.timing.best
    row["ours/theirs"] = None if goal is None else ratio
    row["goal"] = None if goal is None else "< 1" if goal == 1.0 else f"<= {goal:g}"
    row["verdict"] = None if goal is None else verdict(ratio < goal if goal == 1.0 else ratio <= goal)
    row["others' cores"] = outcome.timing.others
    row["peak MB"] = None if outcome.peak_increase is None else outcome.peak_increase / MEGABYTE
    return row


def slow_row(name: str, run: ChildRun, ours: Outcome) -> dict[str, Any]:
    """A table row of a run in a child.

    One that was ended counts with its limit, which flatters it. One that failed has no time, no ratio and no verdict.
    """
    row: dict[str, Any] = {"method": name, "features": None if run.features is None else len(run.features)}
    if run.failure is not None:
        return row | {"verdict": "failed", "failure": run.failure}
    seconds = run.limit if run.seconds is None else run.seconds
    assert seconds is not None
    return row | {
        "best s": f"> {seconds:g}" if run.seconds is None else seconds,
        "ours/theirs": ours.timing.best / seconds,
        "goal": "< 1",
        "verdict": verdict(ours.timing.best < seconds),
        "peak MB": None if run.peak_increase is None else run.peak_increase / MEGABYTE,
    }


def verdict(good: bool) -> str:
    """How a goal of performance.md came out."""
    return "met" if good else "missed"


def held_out_accuracy(
    X_train: Any, y_train: np.ndarray, X_test: Any, y_test: np.ndarray, features: np.ndarray | None
) -> float | None:
    """Accuracy on held-out data of a linear SVM on the chosen features, its C by cross-validation on the training part.

    The same judge for all selectors: what counts is which features they chose, not how they shrink the weights.
    """
    if features is None or not len(features):
        return None
    search = GridSearchCV(LinearSVC(dual=False), {"C": [0.01, 0.1, 1.0, 10.0]}, cv=3)
    with warnings_counted():
        search.fit(X_train[:, features].astype(np.float64), y_train)
    return float(search.score(X_test[:, features].astype(np.float64), y_test))


def work_facts(model: GroupDiscoveryClassifier, outcome: Outcome, bare_pass: Timing, X: Any) -> dict[str, Any]:
    """What a fit of ours took, in the units that do not depend on the machine."""
    size = data_bytes(X)
    return {
        "rounds": model.n_rounds_,
        "passes": model.n_passes_,
        "passes a round": model.n_passes_ / model.n_rounds_,
        "bare pass s": bare_pass.best,
        "fit in bare passes": outcome.timing.best / bare_pass.best,
        "pairs evaluated": model.n_correlations_evaluated_,
        "pairs possible": model.n_correlations_possible_,
        "share of pairs": model.n_correlations_evaluated_ / model.n_correlations_possible_,
        "features in groups": len(model.groups_.members),
        "largest gap": max(entry.gap for entry in model.history_),
        "data MB": size / MEGABYTE,
        "peak increase / data": None if outcome.peak_increase is None else outcome.peak_increase / size,
    }


def data_bytes(X: Any) -> int:
    """Memory of the data themselves."""
    return X.data.nbytes + X.indices.nbytes + X.indptr.nbytes if sparse.issparse(X) else X.nbytes


# Output -----------------------------------------------------------------------------------------


def print_table(title: str, rows: Sequence[dict[str, Any]]) -> None:
    """Plain text, one line a row; columns in order of first appearance, those without any value left out."""
    names = list(dict.fromkeys(name for row in rows for name in row))
    names = [name for name in names if any(row.get(name) is not None for row in rows)]
    cells = [[_text(row.get(name)) for name in names] for row in rows]
    widths = [max(len(name), *(len(line[i]) for line in cells)) for i, name in enumerate(names)]
    print(f"\n{title}")
    for line in [names, ["-" * width for width in widths], *cells]:
        sized = [text.rjust(width) for text, width in zip(line, widths, strict=True)]
        print("  ".join([line[0].ljust(widths[0]), *sized[1:]]).rstrip())


def print_facts(title: str, facts: dict[str, Any]) -> None:
    """One fact a line."""
    print(f"\n{title}")
    width = max(map(len, facts))
    for name, value in facts.items():
        print(f"  {name.ljust(width)}  {_text(value)}")


def _text(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, (float, np.floating)):
        return f"{value:.0f}" if abs(value) >= 1000 else f"{value:.3g}" if abs(value) < 0.1 else f"{value:.3f}"
    return f"{value:,}" if isinstance(value, (int, np.integer)) and not isinstance(value, bool) else str(value)


def write_results(name: str, options: argparse.Namespace, **content: Any) -> None:
    """Write JSON next to the facts of the machine; a quick run does not replace the results of a full one."""
    RESULTS.mkdir(exist_ok=True)
    path = RESULTS / f"{name}{'-quick' if options.quick else ''}.json"
    unchanged = source_digest() == options.source
    if not unchanged:
        print("\nCoterie's source changed during this run: the numbers may mix two versions. Run it again.")
    facts = {"benchmark": name, "options": vars(options), "source_unchanged": unchanged, "machine": machine_facts()}
    document = {**facts, **content}
    path.write_text(json.dumps(document, indent=2, default=_plain) + "\n", encoding="utf-8")
    print(f"\nWritten: {path.relative_to(RESULTS.parent.parent)}")


def machine_facts() -> dict[str, Any]:
    """What a reader needs to know about the machine, and nothing that names it."""
    return {
        "cores": os.cpu_count(),
        "memory_gb": round(psutil.virtual_memory().total / 1e9, 1),
        "system": platform.system(),
        "architecture": platform.machine(),
        "python": platform.python_version(),
        "libraries": {name: found for name in LIBRARIES if (found := _version(name)) is not None},
    }


def source_digest() -> str:
    """A short hash of Coterie's Python source: which code the numbers belong to."""
    folder = Path(coterie.__file__).parent
    digest = hashlib.sha256()
    for path in sorted(folder.rglob("*.py")):
        digest.update(path.relative_to(folder).as_posix().encode() + b"\0" + path.read_bytes())
    return digest.hexdigest()[:12]


def _version(name: str) -> str | None:
    try:
        return version(name)
    except PackageNotFoundError:
        return None


def _plain(value: Any) -> Any:
    """NumPy's numbers and arrays for JSON."""
    if isinstance(value, (np.generic, np.ndarray)):
        return value.tolist()
    raise TypeError(f"{type(value).__name__} has no place in the results.")
