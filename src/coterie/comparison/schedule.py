"""Which process does what: a process serves one method, fold after fold, and is replaced when it fails."""

from __future__ import annotations

import itertools
import os
import pickle
import time
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from joblib import cpu_count

from coterie.comparison.contenders import Contender
from coterie.comparison.process import Limits, MethodProcess
from coterie.comparison.result import Row
from coterie.comparison.trial import Setting
from coterie.files import writing

try:
    import cloudpickle
except ImportError:  # joblib up to 1.5 has a copy of its own
    from joblib.externals import cloudpickle

OnRow = Callable[[Row, np.ndarray], None]
_PAUSE = 0.02
_THREADS = ("COTERIE_NUM_THREADS", "NUMBA_NUM_THREADS", "OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")


@dataclass
class Unit:
    """A fold of a method, and the numbers of features that are still to be tried."""

    contender: Contender
    fold: int
    sizes: list[int]


@dataclass
class Slot:
    """Room for one process: the process, the method it serves, and what it works on."""

    process: MethodProcess | None = None
    method: str = ""
    unit: Unit | None = None


class AnySchedule(Protocol):
    """Runs units, on this machine or on the workers of a cluster."""

    setting: Setting

    def run(self, units: Sequence[Unit], on_row: OnRow) -> None:
        """Run all units, and call ``on_row`` with each row and its features."""
        ...


@dataclass
class Schedule:
    """Runs units, several at the same time.

    Parameters
    ----------
    setting : Setting
        What all methods share.
    folder : Path
        Folder for what goes to the processes and what comes from them.
    limits : Limits
        Limits for each unit.
    n_jobs : int
        Processes at the same time.
    wanted : callable, optional
        Says whether the rows are still wanted; if not, all processes are ended.
    """

    setting: Setting
    folder: Path
    limits: Limits
    n_jobs: int
    wanted: Callable[[], bool] | None = None
    _numbers: itertools.count = field(default_factory=itertools.count)

    def run(self, units: Sequence[Unit], on_row: OnRow) -> None:
        """Run all units; whatever happens, no process is left behind."""
        job = self.folder / "job.pickle"
        with writing(job):
            job.write_bytes(pickled(self.setting, "classifier or scoring"))
        waiting = deque(units)
        slots = [Slot() for _ in range(min(self.n_jobs, max(len(units), 1)))]
        try:
            while waiting or any(slot.unit is not None for slot in slots):
                for slot in slots:
                    if slot.unit is None and waiting:
                        self._start(slot, job, waiting)
                    if slot.unit is not None:
                        self._look_after(slot, on_row)
                time.sleep(_PAUSE)
                if self.wanted is not None and not self.wanted():
                    raise InterruptedError("the rows are no longer wanted")
        except BaseException:
            for slot in slots:
                if slot.process is not None:
                    slot.process.kill()
            raise
        for slot in slots:
            if slot.process is not None:
                slot.process.finish()

    def _start(self, slot: Slot, job: Path, waiting: deque[Unit]) -> None:
        """Give a free slot its next unit: one of the method it has a process for, if there is any."""
        unit = next((unit for unit in waiting if unit.contender.name == slot.method), waiting[0])
        waiting.remove(unit)
        if slot.process is None or slot.method != unit.contender.name:
            if slot.process is not None:
                slot.process.finish()
                slot.process = None
            method = self.folder / f"{next(self._numbers)}.method"
            with writing(method):
                method.write_bytes(pickled(unit.contender, f"selector {unit.contender.name!r}"))
            slot.process = MethodProcess(job, method, self.limits, self._environment())
            slot.method = unit.contender.name
        slot.unit = unit
        slot.process.begin(unit.fold, unit.sizes)

    def _look_after(self, slot: Slot, on_row: OnRow) -> None:
        """Take in what has come; end a process that has gone over its limits, and say so for all that it has not done."""
        assert slot.process is not None
        trouble = slot.process.trouble()
        if trouble is not None:
            slot.process.kill()
        if self._take_in(slot, on_row):
            slot.unit = None
        if trouble is None:
            return
        unit, slot.process, slot.unit = slot.unit, None, None
        if unit is not None:
            for size in unit.sizes:
                row = Row.without_result(unit.contender.name, size, unit.fold, *trouble)
                on_row(row, np.empty(0, dtype=np.int64))

    def _take_in(self, slot: Slot, on_row: OnRow) -> bool:
        """Hand over the rows that have come; whether the unit is done."""
        assert slot.process is not None
        assert slot.unit is not None
        done = False
        for message in slot.process.messages():
            if "row" in message:
                row = Row(**message["row"])
                slot.unit.sizes.remove(row.n_features)
                on_row(row, np.array(message["features"], dtype=np.int64))
            done = done or "end" in message
        return done

    def _environment(self) -> dict[str, str]:
        """Threads for a fair share of the cores, and temporary files where they are removed with ours."""
        share = max(1, cpu_count() // self.n_jobs)
        environment = dict(os.environ)
        for name in _THREADS:
            given = environment.get(name, "")
            environment[name] = str(min(share, int(given)) if given.isdigit() and int(given) > 0 else share)
        return environment | {"JOBLIB_TEMP_FOLDER": str(self.folder), "PYTHONUNBUFFERED": "1"}


def pickled(item: Any, words: str) -> bytes:
    """What goes to another process."""
    try:
        return cloudpickle.dumps(item)
    except (TypeError, AttributeError, pickle.PicklingError) as error:
        raise ValueError(f"The {words} cannot be sent to another process: {error}") from error
