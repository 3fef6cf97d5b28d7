"""A process that has all modules loaded and starts commands as child processes, so that a test can kill many of them."""

import json
import os
import subprocess
import sys
import time


class ProcessStarter:
    """Starts commands in a folder. ``started`` returns the process id, ``ended`` waits for the process."""

    def __init__(self, folder):
        self._process = subprocess.Popen(
            [sys.executable, "-u", __file__], cwd=folder, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self._process.communicate()

    def _request(self, request):
        self._process.stdin.write(json.dumps(request) + "\n")
        self._process.stdin.flush()
        return json.loads(self._process.stdout.readline())

    def started(self, *words):
        """Start a command and return its process id."""
        return self._request(list(words))

    def ended(self):
        """Wait for the command and return its exit code, negative for a signal."""
        return self._request(None)

    def run(self, *words):
        """Run a command and return its exit code and its time."""
        began = time.perf_counter()
        self.started(*words)
        return self.ended(), time.perf_counter() - began


def run(app, words):
    try:
        app(words)
    except SystemExit as ending:
        return ending.code or 0
    return 99


def main():
    answers = os.fdopen(os.dup(1), "w", buffering=1)
    nowhere = os.open(os.devnull, os.O_RDWR)
    os.dup2(nowhere, 1)
    os.dup2(nowhere, 2)
    from coterie.cli.app import app

    child, warm = 0, False
    for line in sys.stdin:
        request = json.loads(line)
        if request is None:
            print(json.dumps(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])), file=answers)
            continue
        if not warm:  # load and compile everything once for all child processes
            warm = run(app, request) == 0
        child = os.fork()
        if child == 0:
            os._exit(run(app, request))
        print(json.dumps(child), file=answers)


if __name__ == "__main__":
    main()
