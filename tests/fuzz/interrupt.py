"""Ctrl-C at random moments of validated fits and confidences: the work stops, and nothing is left behind.

``python -m tests.fuzz.interrupt --times 500 --seed 1``. The work runs in the main thread, in a worker thread, in an executor
of asyncio, and in a Jupyter kernel. SIGINT is sent at a random moment of each run. The main thread must raise
``KeyboardInterrupt`` within seconds (a confidence with finished half-samples may return these with a warning instead). There
must be no remaining child process, no thread except those of Coterie's pool, no open file, no changed warning filter, no
changed number of BLAS threads, and no partially fitted estimator.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import random
import signal
import sys
import threading
import time
import warnings
from collections import Counter
from collections.abc import Callable

import numpy as np
import psutil
from threadpoolctl import threadpool_info

from coterie import (
    GroupConfidence,
    GroupDiscoveryClassifier,
    GroupDiscoveryClassifierCV,
    GroupDiscoveryRegressorCV,
    group_confidence,
)

# Seconds within which an interrupt must stop the work, on a busy machine.
MAX_SECONDS = 30.0
MODES = ("main", "thread", "asyncio", "jupyter")


def data(seed: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((80, 400))
    return X, X[:, :4].sum(axis=1) + rng.standard_normal(80)


def works(seed: int) -> dict[str, Callable[[], object]]:
    """Return functions that take some tenths of a second each, on one and on two threads."""
    X, target = data(seed)
    labels = target > 0
    fitted = GroupDiscoveryClassifier(6).fit(X, labels)
    return {
        "cv": lambda: GroupDiscoveryClassifierCV(8, Cs=4, cv=4, nested=True, random_state=0, n_jobs=2).fit(X, labels),
        "cv, groups": lambda: GroupDiscoveryRegressorCV(
            6, Cs=3, cv=3, predict_with=["support", "groups"], random_state=0, n_jobs=1
        ).fit(X, target),
        "confidence": lambda: group_confidence(fitted, X, labels, n_pairs=8, n_permutations=1, random_state=0, n_jobs=2),
    }


def traces() -> dict[str, object]:
    """Return the state of the process that an interrupt must not change."""
    process = psutil.Process()
    return {
        "children": len(process.children(recursive=True)),
        "threads": sorted(one.name for one in threading.enumerate() if not one.name.startswith(("coterie-pool", "asyncio"))),
        "files": process.num_fds(),
        "filters": list(warnings.filters),
        "blas": sorted((one["prefix"], one["num_threads"]) for one in threadpool_info()),
    }


def is_cut_short(result: object) -> bool:
    """Return True if the result is a confidence that an interrupt ended early."""
    return isinstance(result, GroupConfidence) and (result.n_pairs < 8 or result.n_permutations < 1)


def interrupt_after(seconds: float) -> threading.Timer:
    timer = threading.Timer(seconds, lambda: os.kill(os.getpid(), signal.SIGINT))
    timer.daemon = True
    timer.start()
    return timer


def in_main_thread(work: Callable[[], object], delay: float) -> str:
    """Interrupt work in the main thread; return "interrupted", "cut short" or "LOST"."""
    try:
        timer = interrupt_after(delay)
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            work()
            timer.join()
            if any("Stopped after" in str(one.message) for one in caught):
                return "cut short"
            time.sleep(MAX_SECONDS)  # the signal may still arrive
    except KeyboardInterrupt:
        return "interrupted"
    return "LOST"


def in_worker_thread(work: Callable[[], object], delay: float) -> str:
    """Interrupt the main thread while it waits for a working thread, which runs to its end."""
    done: list[object] = []

    def run() -> None:
        try:
            done.append(work())
        except BaseException as error:
            done.append(error)

    thread = threading.Thread(target=run)
    thread.start()
    deadline = time.monotonic() + delay + MAX_SECONDS
    try:
        interrupt_after(delay)
        while time.monotonic() < deadline:
            time.sleep(0.01)
        return "LOST"
    except KeyboardInterrupt:
        thread.join(MAX_SECONDS)
        return "HANGS" if thread.is_alive() else "FAILED" if isinstance(done[0], BaseException) else "interrupted"


def in_asyncio(work: Callable[[], object], delay: float) -> str:
    """Interrupt work in an executor of an event loop; Ctrl-C cancels the main task."""

    async def main() -> None:
        await asyncio.get_running_loop().run_in_executor(None, work)
        await asyncio.sleep(MAX_SECONDS)

    try:
        interrupt_after(delay)
        asyncio.run(main())
    except KeyboardInterrupt:
        return "interrupted"
    return "LOST"


RUNNERS = {"main": in_main_thread, "thread": in_worker_thread, "asyncio": in_asyncio}


def run_in_process(mode: str, times: int, rng: random.Random) -> Counter[str]:
    signal.signal(signal.SIGINT, signal.default_int_handler)
    found: Counter[str] = Counter()
    for number in range(times):
        name, work = rng.choice(list(works(number % 5).items()))
        began = time.monotonic()
        work()  # compile, and measure the duration
        delay = rng.uniform(0.0, 0.9 * (time.monotonic() - began))
        before = traces()
        result = RUNNERS[mode](work, delay)
        deadline = time.monotonic() + 5.0
        while (after := traces()) != before and time.monotonic() < deadline:
            time.sleep(0.05)
        left = [key for key in before if before[key] != after[key]]
        found[f"{result}{f', left behind: {left}' if left else ''}"] += 1
        if left or result.isupper():
            print(f"{mode}, {name}, run {number}: {result} {left}", flush=True)
    return found


def run_in_jupyter(times: int, rng: random.Random) -> Counter[str]:
    """Interrupt a kernel in the same way as the button of a notebook."""
    from jupyter_client.manager import start_new_kernel

    manager, client = start_new_kernel(kernel_name="python3")
    found: Counter[str] = Counter()
    try:
        client.execute_interactive("from tests.fuzz.interrupt import is_cut_short, traces, works", timeout=120)
        for number in range(times):
            name = rng.choice(list(works(0)))
            client.execute_interactive(f"work = works({number % 5})[{name!r}]; before = traces()", timeout=120)
            began = time.monotonic()
            client.execute_interactive("work()", timeout=120, output_hook=lambda _: None)
            delay = rng.uniform(0.0, 0.8 * (time.monotonic() - began))
            request = client.execute("cut = is_cut_short(work())\nif not cut:\n    import time; time.sleep(60)")
            time.sleep(delay)
            manager.interrupt_kernel()
            reply = client.get_shell_msg(timeout=MAX_SECONDS + 60)
            while reply["parent_header"].get("msg_id") != request:
                reply = client.get_shell_msg(timeout=MAX_SECONDS + 60)
            obeyed = reply["content"]["status"] == "ok" or reply["content"]["ename"] == "KeyboardInterrupt"
            same = "now = traces()\nassert all(now[key] == before[key] for key in now if key != 'files'), (before, now)"
            checked = client.execute_interactive(same, timeout=60, output_hook=lambda _: None)
            while checked["content"]["status"] == "aborted":  # requests right after an error are aborted
                time.sleep(0.2)
                checked = client.execute_interactive(same, timeout=60, output_hook=lambda _: None)
            clean = checked["content"]["status"] == "ok"
            found["interrupted" if obeyed and clean else f"{'LOST' if not obeyed else 'LEFT'}"] += 1
            if not (obeyed and clean):
                print(f"jupyter, {name}, run {number}: {reply['content'].get('ename')} {checked['content']}", flush=True)
    finally:
        client.stop_channels()
        manager.shutdown_kernel(now=True)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--times", type=int, default=500)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--modes", nargs="+", default=list(MODES), choices=MODES)
    options = parser.parse_args()
    rng = random.Random(options.seed)
    lost = 0
    share = dict.fromkeys(options.modes, options.times // len(options.modes))
    share[options.modes[0]] += options.times - sum(share.values())
    for mode, times in share.items():
        found = run_in_jupyter(times, rng) if mode == "jupyter" else run_in_process(mode, times, rng)
        print(f"{mode}: {times} interrupts: {dict(found)}", flush=True)
        lost += sum(count for result, count in found.items() if result not in ("interrupted", "cut short"))
    print(f"{options.times - lost} passed, {lost} failed")
    sys.exit(bool(lost))


if __name__ == "__main__":
    main()
