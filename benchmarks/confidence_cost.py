"""Cost of confidences: 25 half-sample pairs in lockstep, compared with one fit and with fifty separate fits.

The TPAMI data with 20 features and 20 Newsgroups with 100, complete groups, C = 1. The fifty fits are made twice: with
sample weights of the half-samples on all rows, and on copies of their rows. On the text, only ten of the fifty are made and
their time is multiplied by five. Passes: number of passes over the features for scores.
``--only profile`` prints a profile on one thread instead.
"""

from __future__ import annotations

import cProfile
import pstats
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any, NamedTuple
from unittest.mock import patch

import numpy as np
from _models import warm_up, warnings_counted
from _real import find_data, load
from _record import read_arguments, write_results
from _tables import DOCS, columns, markdown_table, print_table, replace_section, verdict
from _timing import Timing, measure_in_turn
from scipy import sparse

from coterie import GroupDiscoveryClassifier, group_confidence
from coterie.confidence.estimation import complementary
from coterie.datasets import make_support_affiliated
from coterie.estimators.base import input_of
from coterie.search import lockstep

N_PAIRS = 25
GOAL_RATIO = 10.0


class Task(NamedTuple):
    """Data, and the number of support features to select."""

    name: str
    X: Any
    y: np.ndarray
    n_features: int
    standardize: bool
    n_timed: int  # half-samples fitted one by one or profiled; the time of the others is extrapolated

    def model(self, threads: int) -> GroupDiscoveryClassifier:
        return GroupDiscoveryClassifier(self.n_features, C=1.0, standardize=self.standardize, n_jobs=threads)


def tasks(seed: int, quick: bool) -> Iterator[Task]:
    """Yield the two data sets of the goal; only the first if the text is not available."""
    data = make_support_affiliated(*((512, 2000) if quick else (2048, 10_000)), random_state=seed)
    yield Task("TPAMI", data.X, data.y, 20, True, 2 * N_PAIRS)
    if find_data("20news_bigrams.npz") is None:
        print("20news_bigrams.npz not found. Its rows are skipped.")
        return
    X, y = load("20news_bigrams")
    train = np.sort(np.random.default_rng(seed).permutation(len(y))[: 1000 if quick else len(y) // 2])
    yield Task("20news_bigrams", sparse.csc_array(X[train]), y[train], 20 if quick else 100, False, 10)


def fit_once(task: Task, threads: int) -> GroupDiscoveryClassifier:
    """Fit all samples once."""
    return task.model(threads).fit(task.X, task.y)


def fit_in_lockstep(
    task: Task, model: GroupDiscoveryClassifier, threads: int, counts: list[float], n_pairs: int = N_PAIRS
) -> Any:
    """Fit all half-samples in lockstep, and append the passes of each batch to ``counts``."""
    with passes_noted(counts):
        return group_confidence(model, task.X, task.y, n_pairs=n_pairs, n_permutations=0, random_state=0, n_jobs=threads)


@contextmanager
def passes_noted(counts: list[float]) -> Iterator[None]:
    """Record the passes over the features of every lockstep run."""
    counts.clear()
    original = lockstep.run_together

    def noted(*args: Any, **options: Any) -> Any:
        loops, passes = original(*args, **options)
        counts.append(passes)
        return loops, passes

    with patch.object(lockstep, "run_together", noted):
        yield


def half_samples(task: Task, model: GroupDiscoveryClassifier) -> list[np.ndarray]:
    """Return the weights of the half-samples used for the confidences, or of the first of them."""
    data = input_of(model, task.X, task.y)
    halves = [half for pair in range(N_PAIRS) for half in complementary(data, 0, 0, pair, stratified=True)]
    return halves[: task.n_timed]


def one_by_one(task: Task, halves: list[np.ndarray], threads: int) -> float:
    """Fit with the weights of each half-sample, and return the passes."""
    return sum(task.model(threads).fit(task.X, task.y, sample_weight=half).n_passes_ for half in halves)


def cut_out(task: Task, by_sample: Any, halves: list[np.ndarray], threads: int) -> float:
    """Fit copies of the rows of each half-sample, copying included, and return the passes over half of the rows."""
    passes = 0.0
    for half in halves:
        rows = np.flatnonzero(half)
        part = by_sample[rows]
        part = sparse.csc_array(part) if sparse.issparse(part) else np.asfortranarray(part)
        passes += task.model(threads).fit(part, task.y[rows]).n_passes_
    return passes


def cost_rows(task: Task, threads: int, repeats: int) -> list[dict[str, Any]]:
    """Time one fit, the half-samples in lockstep and the half-samples one by one, in turn."""
    model = fit_once(task, threads)
    halves, counts = half_samples(task, model), []
    by_sample = task.X.tocsr() if sparse.issparse(task.X) else np.ascontiguousarray(task.X)
    quick: list[Callable[[], Any]] = [partial(fit_once, task, threads), partial(fit_in_lockstep, task, model, threads, counts)]
    slow = [partial(one_by_one, task, halves, threads), partial(cut_out, task, by_sample, halves, threads)]
    with warnings_counted():
        single, lockstep = measure_in_turn(quick, repeats)
        times = 2 * N_PAIRS / len(halves)
        weighted, cut = (
            scaled(timing, times) for timing in measure_in_turn(slow, 1)
        )  # no repeats, because one run has many fits
    ratio = lockstep.best / single.best
    part = "" if times == 1 else f" ({len(halves)} fits, times {times:g})"
    names = (
        "one fit",
        f"{2 * N_PAIRS} half-samples in lockstep",
        f"one by one, weights{part}",
        f"one by one, rows cut out{part}",
    )
    passes = (single.result.n_passes_, sum(counts), weighted.result, cut.result)
    rows = []
    for name, timing, n_passes in zip(names, (single, lockstep, weighted, cut), passes, strict=True):
        rows.append(_row(task, threads, name, timing, n_passes, single, lockstep))
    rows[1] |= {"goal": f"<= {GOAL_RATIO:g}", "verdict": verdict(ratio <= GOAL_RATIO)}
    return rows


def scaled(timing: Timing, times: float) -> Timing:
    """Extrapolate time and passes from some half-samples to all."""
    return Timing(tuple(times * run for run in timing.runs), times * timing.result, timing.other_cores)


def _row(
    task: Task, threads: int, name: str, timing: Timing, passes: float, single: Timing, lockstep: Timing
) -> dict[str, Any]:
    return {
        "data": task.name,
        "features": task.n_features,
        "threads": threads,
        "work": name,
        "s": timing.best,
        "over one fit": timing.best / single.best,
        "over lockstep": timing.best / lockstep.best,
        "passes": float(passes),
        "cores of other processes": timing.other_cores,
    }


def profile_rows(task: Task, n_rows: int = 30) -> list[dict[str, Any]]:
    """Return the functions with the largest own time, for half-samples in lockstep on one thread."""
    model = fit_once(task, 1)
    profiler = cProfile.Profile()
    with warnings_counted():
        profiler.runcall(fit_in_lockstep, task, model, 1, [], task.n_timed // 2)
    stats = pstats.Stats(profiler)
    total = stats.total_tt  # type: ignore[attr-defined]
    found = stats.stats  # type: ignore[attr-defined]
    own = sorted(found, key=lambda key: -found[key][2])[:n_rows]
    ours = sorted((key for key in found if "coterie" in key[0]), key=lambda key: -found[key][3])[:n_rows]
    return [
        {
            "data": task.name,
            "table": title,
            "function": f"{path.rsplit('/', 1)[-1]}:{line} {function}"[-60:],
            "calls": found[path, line, function][1],
            "own s": found[path, line, function][2],
            "own share": found[path, line, function][2] / total,
            "cumulative s": found[path, line, function][3],
            "cumulative share": found[path, line, function][3] / total,
        }
        for title, keys in (("own time", own), ("cumulative time", ours))
        for path, line, function in keys
    ]


def main() -> None:
    options = read_arguments(__doc__, parts=("times", "profile"))
    rows, profiles = [], []
    for task in tasks(options.seed, options.quick):
        warm_up(
            lambda X, y, task=task: fit_in_lockstep(task._replace(X=X, y=y), fit_once(task._replace(X=X, y=y), 1), 1, []),
            task.X,
        )
        if options.only != "profile":
            for threads in dict.fromkeys([options.threads, 1] if task.name == "TPAMI" else [options.threads]):
                rows += cost_rows(task, threads, options.repeats)
                print_table(f"{task.name}: {task.X.shape[0]:,} x {task.X.shape[1]:,}", rows[-4:])
        if options.only != "times":
            profiles.append(profile_rows(task))
            print_table(f"{task.name}: half-samples in lockstep on one thread", profiles[-1])
    name = "confidence_cost" if options.only != "profile" else "confidence_cost_profile"
    write_results(name, options, rows=rows, profiles=profiles)
    if rows and not options.quick:
        names = [
            name for name in rows[1] if name not in ("over lockstep", "cores of other processes")
        ]  # the second row has all columns
        table = markdown_table(columns([row for row in rows if "rows cut out" not in row["work"]], *names))
        replace_section(DOCS / "confidence-evidence.md", "cost", table)


if __name__ == "__main__":
    main()
