"""The child process: takes folds from its standard input, appends results to a file, and ends when its parent does."""

from __future__ import annotations

import ctypes
import json
import os
import pickle
import signal
import sys
import threading
import time
from pathlib import Path
from typing import Any

_PR_SET_PDEATHSIG = 1


def main(job: str, results: str) -> None:
    """Work until there are no more commands.

    Parameters
    ----------
    job : str
        Path of the pickled setting; the method lies beside ``results``, with the suffix ``.method``.
    results : str
        File to append messages to, one JSON object a line: ``{"begin": fold}``, ``{"row": …, "features": …}``,
        ``{"end": fold}``.
    """
    _end_with_parent(os.getppid())
    from coterie.comparison.trial import Trial

    # Written by the parent, in a folder that only this user can write to.
    with open(job, "rb") as file:
        setting = pickle.load(file)
    with open(Path(results).with_suffix(".method"), "rb") as file:
        contender = pickle.load(file)
    with open(results, "a", encoding="utf-8") as messages:

        def tell(message: dict[str, Any]) -> None:
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
