"""Many writers of one target at the same time: one complete result, and the others are refused before they start work.

``python tests/fuzz/writers.py --writers 10``. The processes load everything, wait for each other and start together. They run
once in a common PID namespace, and once in separate ones, as in containers, where all of them have the same PID.
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
import tempfile
from collections import Counter
from contextlib import ExitStack
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
from kill import cases, leftovers, make_data

CODE = """
import sys
from coterie.cli.app import app
import coterie.comparison, coterie.data, coterie.report, coterie.probing.estimator
print("ready", flush=True)
sys.stdin.readline()
app(sys.argv[1:])
"""
# Between the lock and the writing of a claim, the PID of its holder is unknown.
REFUSED = re.compile(r"coterie: (Another writer( \(PID \d+ on .+\))? is writing to .+\. Wait until it has finished or .*"
                     r"|.*exists( already)?\. Choose another name, or .*)\.?")  # fmt: skip
NAMESPACE = ("unshare", "-rpf", "--mount-proc")


def can_unshare() -> bool:
    """Return True if this system permits PID namespaces."""
    try:
        return subprocess.run([*NAMESPACE, "true"], capture_output=True, check=False).returncode == 0
    except FileNotFoundError:
        return False


def race(name: str, n_writers: int, *, overwrite: bool, apart: bool) -> Counter[str]:
    """Start writers together, and count those that wrote and those that were refused.

    Raises if there is any other outcome.

    Parameters
    ----------
    name : str
        The command.
    n_writers : int
        Number of processes.
    overwrite : bool
        Whether they may replace an existing target.
    apart : bool
        Whether each writer has its own PID namespace.
    """
    with tempfile.TemporaryDirectory() as place, ExitStack() as stack:
        folder = Path(os.path.realpath(place))
        (folder / "tmp").mkdir()
        make_data(folder)
        case = cases(folder)[name]
        words = [word for word in case.words if word != "--overwrite"]
        words += ["--overwrite"] if overwrite and name != "rank" else []
        prefix = NAMESPACE if apart else ()
        command = [*prefix, sys.executable, "-c", CODE, *words]
        environment = {**os.environ, "TMPDIR": str(folder / "tmp")}
        pipes = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.PIPE)
        writers = [
            stack.enter_context(subprocess.Popen(command, text=True, env=environment, **pipes)) for _ in range(n_writers)
        ]
        for writer in writers:
            assert writer.stdout is not None
            if writer.stdout.readline() != "ready\n":
                raise AssertionError(writer.communicate()[1])
        for writer in writers:
            assert writer.stdin is not None
            print(file=writer.stdin, flush=True)
        counts: Counter[str] = Counter()
        for writer in writers:
            _, errors = writer.communicate()
            if writer.returncode == 0:
                counts["wrote"] += 1
            elif writer.returncode == 2 and REFUSED.fullmatch(errors.rstrip("\n")):  # one line, so no work was started
                counts["told that another writes" if "Another writer" in errors else "told that it exists"] += 1
            else:
                raise AssertionError(f"A writer ended with {writer.returncode}: {errors}")
        may_follow = overwrite or name in ("compare", "rank")  # later writers may replace or continue the result
        if counts["wrote"] < 1 or (counts["wrote"] > 1 and not may_follow):
            raise AssertionError(f"{counts['wrote']} writers have written.")
        if case.progress(folder / "target") != case.whole:
            raise AssertionError("The result is incomplete.")
        if left := leftovers(folder, case):
            raise AssertionError(f"{left} was left behind.")
    return counts


def main() -> None:
    """Run all commands with and without --overwrite and PID namespaces."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--writers", type=int, default=10)
    parser.add_argument("--command", choices=["convert", "discover", "compare", "rank"], help="all by default")
    options = parser.parse_args()
    apart = [False, True] if can_unshare() else [False]
    if len(apart) == 1:
        print("PID namespaces are skipped, because this system does not permit `unshare`.")
    for name in [options.command] if options.command else ["convert", "discover", "compare", "rank"]:
        for overwrite in (False, True):
            for alone in apart:
                counts = race(name, options.writers, overwrite=overwrite, apart=alone)
                how = f"{'with' if overwrite else 'without'} --overwrite, {'PID namespaces' if alone else 'one namespace'}"
                print(f"{options.writers} writers of {name}, {how}: {dict(counts)}", flush=True)


if __name__ == "__main__":
    main()
