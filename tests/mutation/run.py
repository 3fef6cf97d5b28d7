"""Mutation score: the share of small changes of the code that the tests notice.

``python tests/mutation/run.py solver --seed 1 --mutants 60`` measures one part, ``python tests/mutation/run.py --report
--seed 1`` prints the table of all parts measured so far. The results are JSON lines in the output folder; an interrupted run
continues where it stopped.

A run copies ``src`` and ``tests`` to a temporary folder and changes files there only. It first records which tests execute
which lines. Then it draws places of the code at random, each with one of its changes (see ``mutants.py``), and runs the
quickest of the tests that execute the changed line until one fails. A test run that exceeds its time limit counts as a
failure, because such a change usually causes an endless loop.

Every test run is a forked child of this process, which has the large libraries loaded. Compiled kernels are kept in one
cache folder. A change of a kernel gets a copy of that folder without the kernels of that file and of the files that import
it: numba does not recompile a cached kernel when a kernel that it calls has changed.
"""

from __future__ import annotations

import argparse
import compileall
import hashlib
import importlib
import json
import os
import random
import re
import resource
import shutil
import signal
import sys
import tempfile
import time
import traceback
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

ROOT = Path(__file__).resolve().parents[2]
if not __package__:  # run as a script
    sys.path.insert(0, str(ROOT))

from tests.mutation.mutants import Mutant, mutants_of  # noqa: E402


class Part(NamedTuple):
    """A part of the package and the tests that should kill its mutants."""

    sources: tuple[str, ...]  # files and folders in src/coterie
    tests: tuple[str, ...]  # files and folders in tests, the nearest first


PARTS = {
    "solver": Part(
        ("solver", "kernels/blocks.py", "kernels/hinge.py"),
        ("kernels/test_hinge.py", "kernels/test_blocks.py", "solver", "estimators/test_covariates.py", "search/test_oracle.py",
         "search/test_outcome.py", "search/test_reuse.py"),
    ),
    "discovery": Part(
        ("search", "discovery.py"),
        ("search", "test_discover.py", "test_order.py", "estimators/test_covariates.py", "estimators/test_classifier.py",
         "estimators/test_classifier_cv.py", "estimators/test_regressor_cv.py", "validation/test_nested.py"),
    ),
    "confidence": Part(("confidence",), ("confidence", "estimators/test_covariates.py")),
    "redundancy": Part(
        ("redundancy", "kernels/descent.py"),
        ("kernels/test_descent.py", "kernels/test_shrinkage.py", "redundancy", "cluster/test_scores.py"),
    ),
    "probing": Part(("probing", "kernels/neighbours.py"), ("kernels/test_neighbours.py", "probing", "cluster/test_probes.py")),
    "store": Part(
        ("data/store",),
        ("data/test_store.py", "data/test_store_parts.py", "data/test_store_addresses.py", "data/test_structure.py",
         "data/test_borders.py", "data/test_bombs.py", "data/test_opening.py"),
    ),
}  # fmt: skip

PRELOADED = ("numba", "pytest", "scipy.optimize", "scipy.sparse", "scipy.stats", "sklearn.svm",
             "sklearn.linear_model", "sklearn.model_selection", "sklearn.ensemble")  # fmt: skip


# Running pytest ----------------------------------------------------------------------------------


class Workspace:
    """Copy of sources and tests in a temporary folder, with a cache of compiled kernels."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.source = folder, folder / "src" / "coterie"
        self.cache = folder / "kernels"
        for name in ("src", "tests"):
            ignore = shutil.ignore_patterns("__pycache__")
            shutil.rmtree(folder / name, ignore_errors=True)
            shutil.copytree(ROOT / name, folder / name, ignore=ignore)
        for path in ROOT.iterdir():
            if path.name in {"pyproject.toml", "docs", "examples", "benchmarks"} and not (folder / path.name).exists():
                (folder / path.name).symlink_to(path)
        compileall.compile_dir(folder / "src", quiet=1)

    def coverage(self, part: Part) -> Coverage:
        """Return which tests of a part execute which of its lines. Test files without a record are run once."""
        sources = files_of(part.sources, self.source)
        records = {}
        for path in files_of(part.tests, self.folder / "tests", "test_*.py"):
            digest = hashlib.sha256(b"".join(file.read_bytes() for file in [path, *sources])).hexdigest()[:16]
            records[str(path.relative_to(self.folder))] = self.folder / f"lines-{path.stem}-{digest}.json"
        new = {name: record for name, record in records.items() if not record.exists()}
        if new and self.run_tests(new, Recorder(sources, new), 3600) != 0:
            for record in new.values():
                record.unlink(missing_ok=True)
            raise SystemExit(f"The tests fail without a mutant; see {self.folder / 'log.txt'}.")
        return Coverage(list(records.values()))

    def prepare(self) -> None:
        """Set the environment of the test runs and load the libraries that all of them import."""
        data = ROOT.parent / "shared" / "data"
        os.environ |= dict.fromkeys(("COTERIE_NUM_THREADS", "OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"), "1")
        os.environ |= {"PYTHONPATH": str(self.folder / "src"), "NUMBA_CACHE_DIR": str(self.cache)}
        if data.is_dir():
            os.environ.setdefault("COTERIE_DATA", str(data))
        os.chdir(self.folder)
        sys.path[0] = str(self.folder)  # the tests of the copy, not those of the checkout
        sys.path.insert(1, str(self.folder / "src"))
        for name in [name for name in sys.modules if name == "tests" or name.startswith("tests.")]:
            del sys.modules[name]
        for name in PRELOADED:
            importlib.import_module(name)

    def run_tests(self, paths: Iterable[str], plugin: object, limit: float, *, cache: Path | None = None) -> int | None:
        """Run tests in a forked child and return pytest's exit status; None after the time limit."""
        child = os.fork()
        if child == 0:
            self._run_child(list(paths), plugin, cache)
        end = time.monotonic() + limit
        ended = 0
        try:
            while time.monotonic() < end:
                ended, status = os.waitpid(child, os.WNOHANG)
                if ended:
                    return os.waitstatus_to_exitcode(status)
                time.sleep(0.02)
        finally:  # also after an interrupt
            if not ended:
                os.killpg(child, signal.SIGKILL)
                os.waitpid(child, 0)
        return None

    def _run_child(self, paths: list[str], plugin: object, cache: Path | None) -> None:
        status = 70
        try:
            os.setsid()
            signal.signal(signal.SIGTERM, signal.SIG_DFL)
            resource.setrlimit(resource.RLIMIT_DATA, (8 << 30, 8 << 30))  # a mutant may allocate without end
            log = os.open(self.folder / "log.txt", os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
            os.dup2(log, 1)
            os.dup2(log, 2)
            if cache is not None:
                os.environ["NUMBA_CACHE_DIR"] = sys.modules["numba"].config.CACHE_DIR = str(cache)
            options = ["-x", "-q", "-p", "no:cacheprovider", "-m", "not slow and not browser", "--basetemp=tmp"]
            status = int(sys.modules["pytest"].main([*options, *paths], plugins=[plugin]))
        except BaseException:
            traceback.print_exc()
        finally:
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(status)


def file_of(test: str) -> str:
    """Return the file of a test."""
    return test.partition("::")[0]


class Recorder:
    """Pytest plugin that records which tests execute which lines, and the time of each test.

    Lines that run in the setup of a test count for all tests of its file, because the fixture may be shared.
    """

    def __init__(self, sources: list[Path], outputs: dict[str, Path]) -> None:
        self.sources, self.outputs = {str(source) for source in sources}, outputs
        self.lines: dict[tuple[str, int], set[str]] = defaultdict(set)
        self.seconds: dict[str, float] = defaultdict(float)
        self.current = ""

    def trace(self, frame: Any, event: str, argument: Any) -> Any:
        """Trace function of the interpreter; follows the functions of the part only."""
        return self.trace_line if frame.f_code.co_filename in self.sources else None

    def trace_line(self, frame: Any, event: str, argument: Any) -> Any:
        """Record one executed line."""
        if event == "line":
            self.lines[frame.f_code.co_filename, frame.f_lineno].add(self.current)
        return self.trace_line

    def pytest_collection_finish(self) -> None:
        """Start to trace, in all threads."""
        import threading

        threading.settrace(self.trace)

    def pytest_runtest_logstart(self, nodeid: str) -> None:
        """Attribute the following lines to the file of the test."""
        self.current = file_of(nodeid)
        sys.settrace(self.trace)

    def pytest_runtest_call(self, item: Any) -> None:
        """Attribute the following lines to the test."""
        self.current = item.nodeid
        sys.settrace(self.trace)

    def pytest_runtest_teardown(self, item: Any) -> None:
        """Attribute the following lines to the file of the test."""
        self.current = file_of(item.nodeid)

    def pytest_runtest_logreport(self, report: Any) -> None:
        """Add the time of a phase of a test."""
        self.seconds[report.nodeid] += report.duration

    def pytest_sessionfinish(self) -> None:
        """Write one record per test file."""
        sys.settrace(None)
        for name, output in self.outputs.items():
            here = [(key, sorted(test for test in tests if file_of(test) == name)) for key, tests in self.lines.items()]
            seconds = {test: value for test, value in self.seconds.items() if file_of(test) == name}
            output.write_text(json.dumps({"lines": [[*key, tests] for key, tests in here if tests], "seconds": seconds}))


class Selection:
    """Pytest plugin that runs some tests in a given order and writes the name of the first failure."""

    def __init__(self, tests: list[str], output: Path) -> None:
        self.order, self.output = {name: position for position, name in enumerate(tests)}, output

    def pytest_collection_modifyitems(self, items: list[Any]) -> None:
        """Keep the selected tests, in their order."""
        items[:] = sorted((item for item in items if item.nodeid in self.order), key=lambda item: self.order[item.nodeid])

    def pytest_runtest_logreport(self, report: Any) -> None:
        """Write the name of a failed test."""
        if report.failed:
            self.output.write_text(report.nodeid)


class Coverage:
    """Tests that execute a line, nearest files first and the quickest tests of a file first."""

    def __init__(self, records: list[Path]) -> None:
        self.seconds: dict[str, float] = {}
        self.lines: dict[tuple[str, int], set[str]] = defaultdict(set)
        for record in records:
            content = json.loads(record.read_text())
            self.seconds |= dict(sorted(content["seconds"].items(), key=lambda item: item[1]))
            for file, line, tests in content["lines"]:
                self.lines[file, line].update(tests)

    def tests_of(self, file: Path, mutant: Mutant) -> list[str]:
        """Return the tests that execute the lines of a mutant; all tests for kernels and lines executed on import."""
        if mutant.on_import or file.parent.name == "kernels":
            return list(self.seconds)
        first, last = mutant.lines
        found: set[str] = set().union(*(self.lines[str(file), line] for line in range(first, last + 1)))
        return [test for test in self.seconds if test in found or file_of(test) in found]

    def quickest(self, tests: list[str], budget: float) -> tuple[list[str], float]:
        """Return the quickest of the tests, as many as the seconds allow, in the given order; and their seconds."""
        chosen: set[str] = set()
        total = 0.0
        for test in sorted(tests, key=self.seconds.__getitem__):
            if chosen and total + self.seconds[test] > budget:
                break
            chosen.add(test)
            total += self.seconds[test]
        return [test for test in tests if test in chosen], total


# Measuring ---------------------------------------------------------------------------------------


def files_of(names: Iterable[str], folder: Path, pattern: str = "*.py") -> list[Path]:
    """Return the files with these names and those of the folders with these names."""
    paths = [folder / name for name in names]
    return [file for path in paths for file in ([path] if path.is_file() else sorted(path.rglob(pattern)))]


def sample(part: Part, source: Path, n_mutants: int, seed: int) -> Iterator[Mutant]:
    """Draw places without replacement, each with one of its changes."""
    places: list[list[Callable[[], Mutant]]] = []
    for file in files_of(part.sources, source):
        places += mutants_of(file.read_text(), str(file.relative_to(source)))
    generator = random.Random(seed)
    for place in generator.sample(places, min(n_mutants, len(places))):
        yield generator.choice(place)()


def kernels_without(workspace: Workspace, file: Path) -> Path:
    """Return a copy of the cache without the kernels of a file and of the files that import it."""
    stale, grew = {file.stem}, True
    while grew:
        importers = {
            path.stem for path in file.parent.glob("*.py")
            if any(re.search(rf"coterie\.kernels(\.| import .*\b){name}\b", path.read_text()) for name in stale)
        }  # fmt: skip
        grew, stale = not importers <= stale, stale | importers
    cache = workspace.folder / "kernels-of-mutant"
    shutil.rmtree(cache, ignore_errors=True)
    shutil.copytree(workspace.cache, cache, ignore=shutil.ignore_patterns(*(f"{name}.*" for name in stale)))
    return cache


def result_of(mutant: Mutant, workspace: Workspace, coverage: Coverage, budget: float) -> dict[str, Any]:
    """Run the tests against one mutant."""
    file, failed = workspace.source / mutant.file, workspace.folder / "failed.txt"
    tests = coverage.tests_of(file, mutant)
    if not tests:
        return {"name": mutant.name, "kind": mutant.kind, "line": mutant.lines[0], "killed": False, "by": "not executed",
                "tests": 0, "left_out": 0, "seconds": 0.0}  # fmt: skip
    chosen, total = coverage.quickest(tests, budget)
    original = workspace.folder / "original.py"
    shutil.copy2(file, original)
    start = time.monotonic()
    try:
        file.write_text(mutant.source)
        kernel = file.parent.name == "kernels"
        cache = kernels_without(workspace, file) if kernel else None
        limit = 20 + 100 * kernel + 3 * total
        failed.unlink(missing_ok=True)
        status = workspace.run_tests(sorted({file_of(test) for test in chosen}), Selection(chosen, failed), limit, cache=cache)
    finally:
        shutil.copy2(original, file)
    killer = "time limit" if status is None else failed.read_text() if failed.exists() else "import" if status else ""
    return {
        "name": mutant.name, "kind": mutant.kind, "line": mutant.lines[0], "killed": bool(status != 0), "by": killer,
        "status": status, "tests": len(chosen), "left_out": len(tests) - len(chosen),
        "seconds": round(time.monotonic() - start, 1),
    }  # fmt: skip


def measure(name: str, args: argparse.Namespace) -> None:
    """Measure the mutants of one part and append them to its file."""
    part, output = PARTS[name], args.output / f"{name}-seed{args.seed}.jsonl"
    args.output.mkdir(parents=True, exist_ok=True)
    done = {json.loads(line)["name"] for line in output.read_text().splitlines()} if output.exists() else set()
    if args.only:
        done = set()
    workspace = Workspace(args.work)
    mutants = list(sample(part, workspace.source, args.mutants, args.seed))
    workspace.prepare()
    coverage = workspace.coverage(part)
    sys.dont_write_bytecode = True  # bytecode is checked by seconds; two changes can be closer
    os.environ["PYTHONDONTWRITEBYTECODE"] = "1"
    for number, mutant in enumerate(mutants, 1):
        if mutant.name in done or (args.only and args.only not in mutant.name):
            continue
        result = result_of(mutant, workspace, coverage, args.budget)
        print(
            f"{number:3d} {'killed' if result['killed'] else 'SURVIVED'} {result['seconds']:5.1f} s  {mutant.name}", flush=True
        )
        if not args.only:
            with output.open("a") as stream:
                stream.write(json.dumps(result) + "\n")


def report(args: argparse.Namespace) -> None:
    """Print the score of each part, and the survivors with the reasons listed in ``survivors.json``.

    The kind of a survivor is ``equivalent`` (no result can change), ``cost`` (only time, memory or a starting point changes)
    or ``hole`` (a test is missing).
    """
    path = Path(__file__).with_name("survivors.json")
    known = json.loads(path.read_text()) if path.exists() else {}
    print("| part | mutants | killed | equivalent | cost | score | without equivalent | without both |\n" + "|---" * 8 + "|")
    survivors = []
    for name in PARTS:
        file = args.output / f"{name}-seed{args.seed}.jsonl"
        results = [json.loads(line) for line in file.read_text().splitlines()] if file.exists() else []
        alive = [result["name"] for result in results if not result["killed"]]
        survivors += alive
        kinds = [known.get(mutant, {}).get("kind", "hole") for mutant in alive]
        n, killed, equal, cost = len(results), len(results) - len(alive), kinds.count("equivalent"), kinds.count("cost")
        if n:
            scores = " | ".join(f"{100 * killed / max(1, n - less):.0f} %" for less in (0, equal, equal + cost))
            print(f"| {name} | {n} | {killed} | {equal} | {cost} | {scores} |")
    for mutant in survivors:
        entry = known.get(mutant, {"kind": "hole", "reason": "No reason recorded."})
        print(f"- {entry['kind']}: `{mutant}`. {entry['reason']}")


def main() -> None:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("part", nargs="?", choices=PARTS)
    parser.add_argument("--mutants", type=int, default=60, help="Number of mutants.")
    parser.add_argument("--seed", type=int, default=0, help="Seed of the sample of mutants.")
    parser.add_argument("--budget", type=float, default=30, help="Seconds of tests (without a mutant) per mutant, at most.")
    parser.add_argument("--only", help="Run only the mutants whose description contains this text, and store nothing.")
    parser.add_argument("--report", action="store_true", help="Print the table of all parts measured so far.")
    folder = Path(tempfile.gettempdir()) / "coterie-mutation"
    parser.add_argument("--work", type=Path, default=folder / "work", help="Folder of the copy; for one run at a time.")
    parser.add_argument("--output", type=Path, default=folder / "results", help="Folder of the results.")
    args = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    if args.part:
        measure(args.part, args)
    if args.report or not args.part:
        report(args)


if __name__ == "__main__":
    main()
