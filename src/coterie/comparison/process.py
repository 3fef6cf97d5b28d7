"""Processes of a comparison: each runs one method on its folds, within limits of time and memory."""

from __future__ import annotations

import ctypes
import itertools
import json
import os
import pickle
import signal
import subprocess
import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple, Protocol

import numpy as np
import psutil
from joblib import cpu_count

from coterie.comparison.result import FAILED, OUT_OF_MEMORY, TIMED_OUT, Row
from coterie.comparison.trial import MethodEntry, TrialSettings
from coterie.files import writing
from coterie.groups.columns import Record

# The module search path is set first, so that nothing is imported from the working directory.
_CODE = (
    "import json, sys; sys.path[:] = json.loads(sys.argv[1]); from coterie.comparison.process import main; main(*sys.argv[2:])"
)
# Seconds allowed for the start of a process, in addition to the limit.
_START = 120.0
_ALL_MEMBERS_EVERY = 0.25
_PATIENCE = 5.0
_PR_SET_PDEATHSIG = 1
try:
    import cloudpickle
except ImportError:  # joblib up to 1.5 has a copy of its own
    from joblib.externals import cloudpickle

OnRow = Callable[[Row, np.ndarray], None]
_PAUSE = 0.02
_THREADS = ("COTERIE_NUM_THREADS", "NUMBA_NUM_THREADS", "OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")


class Limits(NamedTuple):
    """Seconds per fold of a method, and bytes of its process and all its children. None means no limit."""

    seconds: float | None = None
    memory: int | None = None


class Ending(NamedTuple):
    """Reason why a process ended before its work was done."""

    status: str
    message: str


class MethodProcess:
    """Process that runs one method on one fold after the other, within limits per fold.

    The settings (``job``) and the method are pickled. Messages are written to a file beside that of the method (``.method``).
    """

    def __init__(self, job: Path, method: Path, limits: Limits, environment: dict[str, str]) -> None:
        self.limits = limits
        self._results = method.with_suffix(".jsonl")
        self._results.touch()
        self._errors = method.with_suffix(".log")
        self._position = 0
        self._since = time.monotonic()
        self._began = False
        self._next_count = 0.0
        words = [sys.executable, "-P", "-c", _CODE, json.dumps(sys.path), str(job), str(self._results)]
        with self._errors.open("wb") as log:
            self._process = subprocess.Popen(
                words, stdin=subprocess.PIPE, stdout=log, stderr=log, start_new_session=True, env=environment
            )

    def begin(self, fold: int, sizes: Sequence[int]) -> None:
        """Send a fold to the process."""
        self._since, self._began = time.monotonic(), False
        assert self._process.stdin is not None
        with suppress(BrokenPipeError):  # it has ended, which :meth:`failure` reports
            self._process.stdin.write(json.dumps({"fold": fold, "sizes": list(sizes)}).encode() + b"\n")
            self._process.stdin.flush()

    def messages(self) -> Iterator[Record]:
        """Yield the messages since the last call. An incomplete line is left for the next call."""
        with self._results.open("rb") as file:
            file.seek(self._position)
            content = file.read()
        whole = content.rfind(b"\n") + 1
        self._position += whole
        for line in content[:whole].splitlines():
            message = json.loads(line)
            if "begin" in message:
                self._since, self._began = time.monotonic(), True
            yield message

    def failure(self) -> Ending | None:
        """Return why the process has ended or must be ended, or None if it is running within its limits."""
        code = self._process.poll()
        if code is not None:
            return Ending(FAILED, self._words_of(code))
        limit = self.limits.seconds
        if limit is not None and time.monotonic() - self._since > limit + (0.0 if self._began else _START):
            return Ending(TIMED_OUT, f"over {limit:g} s for a fold")
        if self.limits.memory is not None:
            used = self._memory()
            if used > self.limits.memory:
                return Ending(OUT_OF_MEMORY, f"{_megabytes(used)} in use, over the limit of {_megabytes(self.limits.memory)}")
        return None

    def _memory(self) -> int:
        """Return the bytes of the process and, at intervals, of all processes that it started."""
        now = time.monotonic()
        if now < self._next_count:
            return own_memory(self._process.pid)
        self._next_count = now + _ALL_MEMBERS_EVERY
        return group_memory(self._process.pid)

    def _words_of(self, code: int) -> str:
        if code < 0:
            with suppress(ValueError):
                name = signal.Signals(-code).name
                hint = ", perhaps by the system because memory ran out" if -code == signal.SIGKILL else ""
                return f"its process was ended by {name}{hint}"
        lines = self._errors.read_text(encoding="utf-8", errors="replace").strip().splitlines()
        last = f": {lines[-1].strip()[:300]}" if lines else ""
        return f"its process ended with code {code}{last}"

    def kill(self) -> None:
        """Kill the process and all processes that it started."""
        _kill_group(self._process)
        self._process.wait()
        self._close_pipe()

    def finish(self) -> None:
        """Wait for the process to end, and kill it if it does not."""
        self._close_pipe()
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(_PATIENCE)
        _kill_group(self._process)
        self._process.wait()

    def _close_pipe(self) -> None:
        if self._process.stdin is not None:
            with suppress(BrokenPipeError):
                self._process.stdin.close()


def _kill_group(process: subprocess.Popen[bytes]) -> None:
    if hasattr(os, "killpg"):
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, signal.SIGKILL)  # it is the leader of its process group
    else:
        process.kill()


def own_memory(pid: int) -> int:
    """Return the private memory of a process in bytes (on Linux without mapped files), or 0 if it has ended."""
    try:
        used = psutil.Process(pid).memory_info()
    except psutil.Error:
        return 0
    return int(used.rss - getattr(used, "shared", 0))


def group_memory(pid: int) -> int:
    """Return the bytes of all processes of the group of a process."""
    return sum(own_memory(member) for member in _group(pid))


def _group(pid: int) -> Iterator[int]:
    """Yield the processes of a group or, on systems without groups, a process and its descendants."""
    if hasattr(os, "getpgid"):
        for other in psutil.pids():
            with suppress(ProcessLookupError, PermissionError):  # it has ended, or belongs to another user
                if os.getpgid(other) == pid:
                    yield other
        return
    yield pid
    with suppress(psutil.Error):
        yield from (child.pid for child in psutil.Process(pid).children(recursive=True))


def _megabytes(size: int) -> str:
    return f"{size / 1e6:,.0f} MB"


def main(job: str, results: str) -> None:
    """Run commands from the standard input until it ends.

    ``job`` is the path of the pickled settings. The method is in a file beside ``results``, to which one JSON object per
    line is written: ``{"begin": fold}``, ``{"row": …, "features": …}``, ``{"end": fold}``.
    """
    _end_with_parent(os.getppid())
    from coterie.comparison.trial import Trial

    # The parent wrote it, in a folder that only this user can write to.
    with open(job, "rb") as file:
        setting = pickle.load(file)
    with open(Path(results).with_suffix(".method"), "rb") as file:
        entry = pickle.load(file)
    with open(results, "a", encoding="utf-8") as messages:

        def tell(message: Record) -> None:
            messages.write(json.dumps(message) + "\n")
            messages.flush()

        trial = Trial(setting, entry)
        warm = not entry.known
        for line in sys.stdin:
            command = json.loads(line)
            if not warm:
                trial.warm_up()
                warm = True
            tell({"begin": command["fold"]})
            trial.run(
                command["fold"],
                command["sizes"],
                lambda row, chosen: tell({"row": row._asdict(), "features": chosen.tolist()}),
            )
            tell({"end": command["fold"]})


def _end_with_parent(parent: int) -> None:
    """End this process when its parent ends, even if the parent is killed."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() != parent:  # it ended before the call
            os._exit(1)
        return

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(1.0)
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()


@dataclass
class Unit:
    """Fold of a method, and the remaining numbers of features."""

    entry: MethodEntry
    fold: int
    sizes: list[int]


@dataclass
class Slot:
    """Slot for one process: the process, its method, and its current unit."""

    process: MethodProcess | None = None
    method: str = ""
    unit: Unit | None = None


class AnySchedule(Protocol):
    """Scheduler of units, on this machine or on the workers of a cluster."""

    setting: TrialSettings

    def run(self, units: Sequence[Unit], on_row: OnRow) -> None:
        """Run all units and call ``on_row`` with each row and its features."""
        ...


@dataclass
class Schedule:
    """Scheduler that runs units in ``n_jobs`` processes at the same time.

    ``folder`` is for files exchanged with the processes. When ``wanted`` returns False, all processes are ended.
    """

    setting: TrialSettings
    folder: Path
    limits: Limits
    n_jobs: int
    wanted: Callable[[], bool] | None = None
    _numbers: itertools.count = field(default_factory=itertools.count)

    def run(self, units: Sequence[Unit], on_row: OnRow) -> None:
        """Run all units. No process is left running, even after an error."""
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
                        self._poll(slot, on_row)
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
        """Start the next unit of a free slot, preferably of the method that its process runs."""
        unit = next((unit for unit in waiting if unit.entry.name == slot.method), waiting[0])
        waiting.remove(unit)
        if slot.process is None or slot.method != unit.entry.name:
            if slot.process is not None:
                slot.process.finish()
                slot.process = None
            method = self.folder / f"{next(self._numbers)}.method"
            with writing(method):
                method.write_bytes(pickled(unit.entry, f"selector {unit.entry.name!r}"))
            slot.process = MethodProcess(job, method, self.limits, self._environment())
            slot.method = unit.entry.name
        slot.unit = unit
        slot.process.begin(unit.fold, unit.sizes)

    def _poll(self, slot: Slot, on_row: OnRow) -> None:
        """Collect rows, end a process that exceeded its limits, and report its remaining rows as failed."""
        assert slot.process is not None
        failure = slot.process.failure()
        if failure is not None:
            slot.process.kill()
        if self._collect_rows(slot, on_row):
            slot.unit = None
        if failure is None:
            return
        unit, slot.process, slot.unit = slot.unit, None, None
        if unit is not None:
            for size in unit.sizes:
                row = Row.without_result(unit.entry.name, size, unit.fold, *failure)
                on_row(row, np.empty(0, dtype=np.int64))

    def _collect_rows(self, slot: Slot, on_row: OnRow) -> bool:
        """Pass new rows to ``on_row`` and return True if the unit is done."""
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
        """Return the environment: threads for an equal share of the cores, and a temporary folder inside ours."""
        share = max(1, cpu_count() // self.n_jobs)
        environment = dict(os.environ)
        for name in _THREADS:
            given = environment.get(name, "")
            environment[name] = str(min(share, int(given)) if given.isdigit() and int(given) > 0 else share)
        return environment | {"JOBLIB_TEMP_FOLDER": str(self.folder), "PYTHONUNBUFFERED": "1"}


def pickled(item: Any, words: str) -> bytes:
    """Return an item pickled for another process."""
    try:
        return cloudpickle.dumps(item)
    except (TypeError, AttributeError, pickle.PicklingError) as error:
        raise ValueError(f"The {words} cannot be sent to another process: {error}") from error
