"""Kills ``convert`` at random moments, as often as one likes: a store is there whole, as it was, or not at all.

``python tests/fuzz/kill_convert.py --times 100 --seed 1``. Every second run replaces an existing store of other data. After
each kill the store, if there is one, must pass its check and hold exactly the old or the new data.
"""

from __future__ import annotations

import argparse
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

import numpy as np

from coterie.data import DataFileError, check_store, convert, open_features

CODE = """
import sys
from coterie.data import convert
print("ready", flush=True)
convert(sys.argv[1], sys.argv[2], overwrite=True, memory_limit=1 << 24)
print("done", flush=True)
"""


def write_text(path: Path, seed: int, n_samples: int) -> np.ndarray:
    """A LIBSVM file; returns the sums of its features, by which it is known again."""
    rng = np.random.default_rng(seed)
    with open(path, "w") as file:
        for _ in range(n_samples):
            indices = np.unique(rng.integers(1, 50_000, 60))
            entries = " ".join(f"{j}:{v:.4f}" for j, v in zip(indices, rng.random(len(indices)), strict=True))
            file.write(f"{rng.integers(2)} {entries}\n")
    source = open_features(path, n_features=50_000).source
    return source.products(np.ones((n_samples, 1))).ravel()


def killed_convert(text: Path, store: Path, delay: float) -> bool:
    """Convert in a process that is killed after some time; whether it was killed before its end."""
    with subprocess.Popen([sys.executable, "-c", CODE, str(text), str(store)], stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        process.stdout.readline()
        time.sleep(delay)
        process.send_signal(signal.SIGKILL)
        finished = b"done" in process.stdout.read()
    return not finished


def whole_convert(text: Path, store: Path) -> float:
    """Seconds that an undisturbed convert takes, from the moment that it begins."""
    with subprocess.Popen([sys.executable, "-c", CODE, str(text), str(store)], stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        process.stdout.readline()
        began = time.monotonic()
        process.stdout.readline()
        return time.monotonic() - began


def state_of(store: Path, known: dict[str, np.ndarray]) -> str:
    """Which data a store holds; raises if it opens and is wrong."""
    if not store.exists():
        return "none"
    found = check_store(store).source.products(np.ones((open_features(store).shape[0], 1))).ravel()
    for name, sums in known.items():
        if len(found) == len(sums) and np.allclose(found, sums, rtol=1e-12):
            return name
    raise DataFileError("it opens and is wrong.", store)


def main() -> None:
    """Kill and look, many times."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--times", type=int, default=100)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--samples", type=int, default=20_000)
    options = parser.parse_args()
    rng = random.Random(options.seed)
    counts: Counter[str] = Counter()
    with tempfile.TemporaryDirectory() as folder:
        files = {name: Path(folder) / f"{name}.svm" for name in ("old", "new")}
        known = {name: write_text(path, seed, options.samples + seed) for seed, (name, path) in enumerate(files.items())}
        for name, path in files.items():  # the stores have as many features as occur
            known[name] = np.trim_zeros(known[name], "b")
            convert(path, Path(folder) / f"{name}.store", overwrite=True)
        whole = min(whole_convert(files["new"], Path(folder) / "whole") for _ in range(3))
        for number in range(options.times):
            target = Path(folder) / "target"
            if number % 2:
                if not target.exists():
                    shutil.copytree(Path(folder) / "old.store", target)
            else:
                shutil.rmtree(target, ignore_errors=True)
            # Half of the kills aim at the last part, where the store is put in its place.
            delay = whole * (rng.uniform(0.0, 1.0) if rng.random() < 0.5 else rng.uniform(0.7, 1.05))
            killed = killed_convert(files["new"], target, delay)
            counts[f"{'killed' if killed else 'finished'}, then {state_of(target, known)}"] += 1
        left = [path.name for path in Path(folder).iterdir() if path.name.endswith(".partial")]
        convert(files["new"], Path(folder) / "target", overwrite=True)
        assert state_of(Path(folder) / "target", known) == "new"
        still = [path.name for path in Path(folder).iterdir() if path.name.endswith(".partial")]
    print(f"{options.times} kills of a convert of {whole:.2f} s: {dict(counts)}")
    print(f"{len(left)} temporary folder(s) left by the last kills, {len(still)} after one more run")


if __name__ == "__main__":
    main()
