"""Wall times of several functions, measured in turn.

Timings are noisy, so no time is asserted. Functions are timed in turn (all of them once, then all of them again), so that a
busy period affects all of them, and the ratio is the result. Turns do not help if other processes use a core all the time:
this slows a fit on two threads, but hardly one on a single thread. Every timing therefore includes the number of cores that
other processes used. Ratios are only reliable if this number is near 0.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Any

import numpy as np
import psutil

from coterie.data import as_source


@dataclass(frozen=True)
class Timing:
    """Wall times of the runs of one function, cores used by other processes during them, and the last result."""

    runs: tuple[float, ...]
    result: Any = None
    other_cores: float | None = None

    @property
    def best(self) -> float:
        return min(self.runs)

    @property
    def median(self) -> float:
        return median(self.runs)


def measure(function: Callable[[], Any], repeats: int) -> Timing:
    """Measure the wall time of several runs."""
    return measure_in_turn([function], repeats)[0]


def measure_in_turn(functions: Sequence[Callable[[], Any]], repeats: int) -> list[Timing]:
    """Measure the wall times of several functions in turn, so that noise affects all of them."""
    runs: list[list[float]] = [[] for _ in functions]
    results: list[Any] = [None] * len(functions)
    busy = [0.0] * len(functions)
    for _ in range(max(repeats, 1)):
        for number, function in enumerate(functions):
            results[number] = None  # free the previous result before the next run
            busy_before, start = _other_processes_seconds(), time.perf_counter()
            results[number] = function()
            runs[number].append(time.perf_counter() - start)
            busy[number] += _other_processes_seconds() - busy_before
    return [Timing(tuple(t), result, round(max(0.0, b / sum(t)), 2)) for t, result, b in zip(runs, results, busy, strict=True)]


def _other_processes_seconds() -> float:
    """Return the processor time of all other processes so far, in steps of about 0.01 s.

    Child processes that have ended count as this process.
    """
    everything, mine = psutil.cpu_times(), os.times()
    return everything.user + everything.system + getattr(everything, "nice", 0.0) - sum(mine[:4])


def measure_bare_pass(X: Any, n_threads: int, repeats: int) -> Timing:
    """Time one ``X'v`` by Coterie's own kernel, the unit of the performance goals."""
    source = as_source(X)
    vector = np.random.default_rng(0).standard_normal((source.shape[0], 1))
    source.products(vector, n_threads=n_threads)  # compiles
    return measure(lambda: source.products(vector, n_threads=n_threads), max(3, repeats))
