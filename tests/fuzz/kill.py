"""Kill commands at every step and at random moments: no result may be lost or incomplete.

``python tests/fuzz/kill.py --times 100 --seed 1 --command convert``. A command runs in a child of a process that has loaded
everything. The child counts its operations on the file system (open for writing, create, rename, remove, flush, lock) and
kills itself before the k-th one, so that kills also occur between a write and its rename. Half of the kills cover all steps
in turn, the others occur at random moments. Every second run replaces an earlier result. After each kill the target must be
complete, either the old or the new one. The next run must succeed and leave no temporary files.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import shutil
import signal
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from contextlib import ExitStack, redirect_stderr, redirect_stdout
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

# Steps with audit events of Python; count_steps adds the others.
EVENTS = frozenset(["open", "os.mkdir", "os.rename", "os.remove", "os.rmdir", "os.truncate", "fcntl.flock", "shutil.rmtree"])


class Case(NamedTuple):
    """A command, and the possible states after a kill."""

    words: tuple[str, ...]
    earlier: tuple[str, ...]  # the command that makes the earlier result
    progress: Callable[[Path], int]  # progress of the target: 0 if it does not exist; raises if it is damaged
    whole: int  # the progress after a complete run
    kept: frozenset[str]  # the names in the folder after a complete run, except the data


# Progress --------------------------------------------------------------------------------------


def progress_of_store(path: Path) -> int:
    """Return 0 for no store, 1 for the old one, 2 for the new one."""
    from coterie.data import check_store

    return 0 if not path.exists() else {60: 1, 80: 2}[check_store(path).shape[0]]


def progress_of_result(path: Path) -> int:
    """Return 0 for no result, 1 for the old one, 2 for the new one."""
    from coterie import load
    from coterie.report import read_result

    if not path.exists():
        return 0
    content = read_result(path)
    if content["files"] != sorted(os.listdir(path)):
        raise AssertionError(f"The files differ from those of result.json: {os.listdir(path)}")
    if len(load(path / "model.coterie").groups_) != len(content["groups"]):
        raise AssertionError("The model belongs to another result.")
    return {3: 1, 6: 2}[len(content["groups"])]


def progress_of_comparison(path: Path) -> int:
    """Return the number of complete rows, plus one for the settings."""
    if not (path / "settings.json").exists():
        return 0
    json.loads((path / "settings.json").read_text())
    lines = (path / "rows.jsonl").read_bytes().split(b"\n")[:-1] if (path / "rows.jsonl").exists() else []
    rows = [json.loads(line) for line in lines]
    if any(row["status"] != "ok" for row in rows):
        raise AssertionError(f"A row has failed: {rows}")
    for name in ("comparison.csv", "summary.csv"):
        if (path / name).exists() and not (path / name).read_text().endswith("\n"):
            raise AssertionError(f"{name} is truncated.")
    return 1 + len(rows)


def progress_of_checkpoint(path: Path) -> int:
    """Return the number of probes, plus one for the file."""
    if not path.exists():
        return 0
    with np.load(path, allow_pickle=False) as archive:
        return 1 + len(archive["values"])


def make_data(folder: Path) -> None:
    """Write two files of different lengths."""
    from sklearn.datasets import dump_svmlight_file

    rng = np.random.default_rng(0)
    X = rng.standard_normal((80, 60))
    y = np.sign(X[:, :4].sum(axis=1)).astype(int)
    dump_svmlight_file(X, y, str(folder / "data.svm"), zero_based=False)
    dump_svmlight_file(X[:60], y[:60], str(folder / "other.svm"), zero_based=False)


DATA = frozenset({"data.svm", "other.svm", "tmp"})


def cases(folder: Path) -> dict[str, Case]:
    """Return the commands, with absolute paths, by which the child recognises its steps."""
    data, other, target = str(folder / "data.svm"), str(folder / "other.svm"), str(folder / "target")
    discover = ("discover", "--fast", data, "-o", target, "--overwrite", "--n-jobs", "1", "--n-features-to-select")
    compare = ("compare", data, "-o", target, "--methods", "fisher", "--cv", "2", "--n-features")
    rank = ("rank", data, "--method", "daf", "--set", f"checkpoint={target}", "--set", "random_state=0", "--set", "n_jobs=1",
            "-o", str(folder / "ranking.csv"), "--set")  # fmt: skip
    only = frozenset({"target"})
    return {
        "convert": Case(("convert", data, target, "--overwrite"), ("convert", other, target), progress_of_store, 2, only),
        "discover": Case((*discover, "6"), (*discover, "3"), progress_of_result, 2, only),
        "compare": Case((*compare, "2,3"), (*compare, "2"), progress_of_comparison, 5, only),
        "rank": Case((*rank, "n_probes=40"), (*rank, "n_probes=20"), progress_of_checkpoint, 41, only | {"ranking.csv"}),
    }


# Children --------------------------------------------------------------------------------------


def in_child(words: tuple[str, ...], folder: Path, kill_at: int | None = None) -> tuple[int, int]:
    """Start a command in a forked child; return its process and a pipe with the number of its steps."""
    reader, writer = os.pipe()
    child = os.fork()
    if child:
        os.close(writer)
        return child, reader
    code = 99
    try:
        os.close(reader)
        nowhere = os.open(os.devnull, os.O_RDWR)
        os.dup2(nowhere, 1)
        if "KILL_SHOW" not in os.environ:
            os.dup2(nowhere, 2)
        counter = count_steps(folder, kill_at)
        from coterie.cli.app import app

        try:
            app([*words, "--quiet"])
        except SystemExit as ending:
            code = int(ending.code or 0)
        os.write(writer, str(counter[0]).encode())
    finally:
        os._exit(code)


def count_steps(folder: Path, kill_at: int | None) -> list[int]:
    """Count the steps that can change a folder, and kill the process before the k-th one."""
    from coterie.files import atomic

    counter, inside = [0], str(folder)

    def step() -> None:
        counter[0] += 1
        if counter[0] == kill_at:
            os.kill(os.getpid(), signal.SIGKILL)

    def hook(event: str, arguments: tuple[Any, ...]) -> None:
        if event not in EVENTS:
            return
        if event == "fcntl.flock":
            step()
        elif event == "open" and not arguments[2] & (os.O_WRONLY | os.O_RDWR | os.O_CREAT):
            return  # opened for reading
        elif arguments and isinstance(arguments[0], (str, bytes, os.PathLike)):
            path = os.fsdecode(arguments[0])
            if path.startswith(inside) or (event in ("os.remove", "os.rmdir") and not os.path.isabs(path)):
                step()

    sys.addaudithook(hook)
    for place, name in ((os, "fsync"), (atomic, "_exchange")):  # which Python does not announce
        wrapped = getattr(place, name)

        def counted(*arguments: Any, wrapped: Any = wrapped) -> Any:
            step()
            result = wrapped(*arguments)
            step()
            return result

        setattr(place, name, counted)
    return counter


def ended(child: int, reader: int) -> tuple[int, int]:
    """Return the exit code of a child (negative for a signal) and its number of steps."""
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    with os.fdopen(reader, "rb") as pipe:
        steps = pipe.read()
    return code, int(steps or 0)


def run(words: tuple[str, ...], folder: Path) -> int:
    """Run a command to its end in a child, and return the number of its steps."""
    code, steps = ended(*in_child(words, folder))
    if code:
        raise AssertionError(f"{' '.join(words)} ended with {code}")
    return steps


# Killing ---------------------------------------------------------------------------------------


def kill_many(name: str, times: int, seed: int, random_share: float = 0.5) -> Counter[str]:
    """Kill a command many times and count the states of the target.

    Raises if a target is lost or damaged, or if files are left behind.
    """
    rng = random.Random(seed)
    counts: Counter[str] = Counter()
    with ExitStack() as stack:
        folder = Path(os.path.realpath(stack.enter_context(tempfile.TemporaryDirectory())))
        (folder / "tmp").mkdir()  # for the data copies of comparisons
        before, tempfile.tempdir = tempfile.tempdir, str(folder / "tmp")
        stack.callback(setattr, tempfile, "tempdir", before)
        make_data(folder)
        case = cases(folder)[name]
        target = folder / "target"
        warm_up(case)
        clear(folder)
        began = time.monotonic()
        steps = {False: run(case.words, folder)}
        whole = time.monotonic() - began
        clear(folder)
        run(case.earlier, folder)
        earlier = Path(os.path.realpath(stack.enter_context(tempfile.TemporaryDirectory(dir=folder.parent)))) / "earlier"
        shutil.copytree(folder, earlier)
        steps[True] = run(case.words, folder)
        n_aimed = round(times * (1 - random_share))
        for number in range(times):
            replaces = number % 2 == 1
            clear(folder)
            if replaces:
                shutil.copytree(earlier, folder, dirs_exist_ok=True)
            old = case.progress(target)
            if number >= n_aimed:
                child, reader = in_child(case.words, folder)
                time.sleep(rng.uniform(0.0, 1.1 * whole))
                os.kill(child, signal.SIGKILL)
            else:  # spread evenly over all steps
                share = steps[replaces] / ((n_aimed + 1 - replaces) // 2)
                place = 1 + int((number // 2 + rng.random()) * share)
                child, reader = in_child(case.words, folder, place)
            code, _ = ended(child, reader)
            new = case.progress(target)
            if new < old:
                raise AssertionError(f"kill {number}: The old target is lost.")
            done = "whole" if new == case.whole else "old" if new == old > 0 else "none" if new == 0 else "part"
            counts[f"{'over nothing' if not old else 'over an old one'}: {done}"] += 1
            counts["killed at a step" if number < n_aimed else "killed at random"] += code == -signal.SIGKILL
            counts["with leftovers"] += bool(leftovers(folder, case))
            run(case.words, folder)
            if case.progress(target) != case.whole:
                raise AssertionError(f"kill {number}: The target is incomplete after the next run.")
            if left := leftovers(folder, case):
                raise AssertionError(f"kill {number}: {left} still exists after the next run.")
        counts["steps over nothing"], counts["steps over an old one"] = steps[False], steps[True]
    return counts


def warm_up(case: Case) -> None:
    """Load and compile everything once in this process, for all children."""
    from coterie.cli.app import app

    with open(os.devnull, "w") as nowhere, redirect_stdout(nowhere), redirect_stderr(nowhere):
        try:
            app(list(case.words))
        except SystemExit as ending:
            if ending.code:
                raise AssertionError(f"{case.words} ended with {ending.code}") from ending


def clear(folder: Path) -> None:
    """Remove everything except the data."""
    for path in folder.iterdir():
        if path.name not in DATA:
            shutil.rmtree(path) if path.is_dir() else path.unlink()


def leftovers(folder: Path, case: Case) -> list[str]:
    """Return the files left by a killed command: hidden files, copies of data, array files not listed in the store."""
    found = [str(path.relative_to(folder)) for path in folder.rglob(".*")]
    found += [path.name for path in folder.iterdir() if path.name not in DATA | case.kept]
    found += [f"tmp/{name}" for name in os.listdir(folder / "tmp") if not name.startswith(".")]
    header = folder / "target" / "header.json"
    if header.exists():
        from coterie.data.store.format import read_header

        known = {entry["file"] for entry in read_header(header.parent)["arrays"].values()}
        found += [name for name in os.listdir(header.parent) if name not in known | {"header.json"}]
    return found


def main() -> None:
    """Run the command line."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--times", type=int, default=100)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--command", choices=["convert", "discover", "compare", "rank"], help="all by default")
    parser.add_argument("--random-share", type=float, default=0.5, help="share of kills at random moments")
    parser.add_argument("--inline", action="store_true", help="compare without child processes, which is faster")
    options = parser.parse_args()
    if options.inline:
        sys.path.insert(0, str(Path(__file__).parents[2]))
        from coterie.comparison import run as comparison
        from tests.comparison.conftest import Inline

        comparison.Schedule = Inline  # type: ignore[misc]  # inherited by the children
    for name in [options.command] if options.command else ["convert", "discover", "compare", "rank"]:
        counts = kill_many(name, options.times, options.seed, options.random_share)
        print(f"{options.times} kills of {name}: {dict(sorted(counts.items()))}", flush=True)


if __name__ == "__main__":
    main()
