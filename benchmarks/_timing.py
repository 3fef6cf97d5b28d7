"""Wall times side by side.

Machines are noisy, so nothing here asserts a time. Contenders are timed in turn (first all of them
once, then all of them again), so that a busy minute hits everyone, and what counts is the ratio. Turns do not help when other
work holds a core all the time: that slows a fit on two threads, and hardly one on a single thread. So every timing says how
many cores other processes used meanwhile; ratios from a machine where that is not near 0 are not to be trusted.
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
