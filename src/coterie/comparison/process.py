"""The processes of a comparison: each serves one method, fold after fold, within limits of time and memory."""

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
from coterie.comparison.trial import Contender, TrialSettings
from coterie.files import writing
from coterie.groups.columns import Record

# The module path comes first: nothing may be imported from the folder that the command happens to run in.
_CODE = (
    "import json, sys; sys.path[:] = json.loads(sys.argv[1]); from coterie.comparison.process import main; main(*sys.argv[2:])"
)
# Seconds that a process may take to start, on top of the limit.
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
    """Seconds for one fold of a method, and bytes of its process with all its children; None for no limit."""

    seconds: float | None = None
    memory: int | None = None


class Ending(NamedTuple):
    """Why a process ended before its work was done."""

    status: str
    message: str


class MethodProcess:
    """A process that tries one method on one fold after the other, within limits for each fold.

    The setting (``job``) and the method are pickled; messages go to a file beside the method's, which ends in ``.method``.
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
        """Ask for a fold."""
        self._since, self._began = time.monotonic(), False
        assert self._process.stdin is not None
        with suppress(BrokenPipeError):  # it has ended; that will be found out
            self._process.stdin.write(json.dumps({"fold": fold, "sizes": list(sizes)}).encode() + b"\n")
            self._process.stdin.flush()

    def messages(self) -> Iterator[Record]:
        """What has come since the last time; a line that is not whole yet is left for later."""
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

    def trouble(self) -> Ending | None:
        """Why it has ended, or is to be ended; None while all is well."""
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
        """Bytes of the process; now and then of all processes that it has started, too."""
        now = time.monotonic()
        if now < self._next_count:
            return own_memory(self._process.pid)
        self._next_count = now + _ALL_MEMBERS_EVERY
        return group_memory(self._process.pid)

    def _words_of(self, code: int) -> str:
        if code < 0:
            with suppress(ValueError):
                name = signal.Signals(-code).name
                hint = ", perhaps by the system for lack of memory" if -code == signal.SIGKILL else ""
                return f"its process was ended by {name}{hint}"
        lines = self._errors.read_text(encoding="utf-8", errors="replace").strip().splitlines()
        last = f": {lines[-1].strip()[:300]}" if lines else ""
        return f"its process ended with code {code}{last}"

    def kill(self) -> None:
        """End the process and all that it has started, at once."""
        _kill_group(self._process)
        self._process.wait()
        self._close_pipe()

    def finish(self) -> None:
        """Let the process end by itself, and see to it that it does."""
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
            os.killpg(process.pid, signal.SIGKILL)  # it leads a group of its own
    else:
        process.kill()


def own_memory(pid: int) -> int:
    """Bytes of memory that a process has for itself (on Linux not those of mapped files); 0 if it cannot be seen any more."""
    try:
        used = psutil.Process(pid).memory_info()
    except psutil.Error:
        return 0
    return int(used.rss - getattr(used, "shared", 0))


def group_memory(pid: int) -> int:
    """Bytes of all processes of a group, named by its first process."""
    return sum(own_memory(member) for member in _group(pid))


def _group(pid: int) -> Iterator[int]:
    """The processes of a group; where the system has no groups, a process and all that it has started."""
    if hasattr(os, "getpgid"):
        for other in psutil.pids():
            with suppress(ProcessLookupError, PermissionError):  # it has ended meanwhile, or is none of our business
                if os.getpgid(other) == pid:
                    yield other
        return
    yield pid
    with suppress(psutil.Error):
        yield from (child.pid for child in psutil.Process(pid).children(recursive=True))


def _megabytes(size: int) -> str:
    return f"{size / 1e6:,.0f} MB"


def main(job: str, results: str) -> None:
    """Work until there are no more commands.

    ``job`` is the path of the pickled setting, and the method lies beside ``results``, a file that gets one JSON object per
    line: ``{"begin": fold}``, ``{"row": …, "features": …}``, ``{"end": fold}``.
    """
    _end_with_parent(os.getppid())
    from coterie.comparison.trial import Trial

    # Written by the parent, in a folder that only this user can write to.
    with open(job, "rb") as file:
        setting = pickle.load(file)
    with open(Path(results).with_suffix(".method"), "rb") as file:
        contender = pickle.load(file)
    with open(results, "a", encoding="utf-8") as messages:

        def tell(message: Record) -> None:
            messages.write(json.dumps(message) + "\n")
            messages.flush()

        trial = Trial(setting, contender)
        warm = not contender.known
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
    """Have no orphan, even if the parent is killed."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() != parent:  # it has ended meanwhile
            os._exit(1)
        return

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(1.0)
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()


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

    setting: TrialSettings

    def run(self, units: Sequence[Unit], on_row: OnRow) -> None:
        """Run all units, and call ``on_row`` with each row and its features."""
        ...


@dataclass
class Schedule:
    """Runs units in ``n_jobs`` processes at the same time.

    ``folder`` is for what goes to the processes and comes from them. If ``wanted`` says that the rows are no longer wanted,
    all processes are ended.
    """

    setting: TrialSettings
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
