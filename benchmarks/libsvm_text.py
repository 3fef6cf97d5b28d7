"""LIBSVM text: our parser and scikit-learn's in one run, then a text of some gigabytes converted to a store.

The text has power-law indices and values of 6 digits. The large file repeats the lines of a small one in other orders.
Conversion and fit run in their own processes. Their peak memory is split into private memory and mapped files, which are part
of the page cache and can be reclaimed by the system.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import tempfile
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from _record import read_arguments, write_results
from _tables import print_facts, print_table, verdict
from _timing import measure_in_turn
from sklearn.datasets import load_svmlight_file

from coterie.data import open_features
from coterie.data.readers.libsvm import LibsvmReader

GOAL = 10.0
N_FEATURES = 1_000_000

WATCHED = """
import json, sys, threading, time
import psutil
import coterie.data
peaks = {"own": 0, "mapped": 0, "both": 0}
def watch():
    while True:
        used = psutil.Process().memory_info()
        now = {"own": used.rss - used.shared, "mapped": used.shared, "both": used.rss}
        peaks.update({name: max(peaks[name], now[name]) for name in peaks})
        time.sleep(0.01)
threading.Thread(target=watch, daemon=True).start()
began = time.perf_counter()
exec(sys.argv[1])
print(json.dumps({"seconds": time.perf_counter() - began, **peaks}))
"""


def make_lines(n_bytes: int, seed: int) -> list[bytes]:
    """Return random lines of ``n_bytes`` bytes in total."""
    rng = np.random.default_rng(seed)
    lines, size = [], 0
    while size < n_bytes:
        indices = np.unique((rng.pareto(0.5, rng.integers(20, 200)) * 100).astype(np.int64) % N_FEATURES + 1)
        entries = " ".join(f"{j}:{v:.6g}" for j, v in zip(indices, rng.random(len(indices)), strict=True))
        lines.append(f"{'+1' if (indices < 50).sum() % 2 else '-1'} {entries}\n".encode())
        size += len(lines[-1])
    return lines


def write_text(path: Path, lines: list[bytes], n_bytes: int, seed: int) -> None:
    """Write the lines repeatedly, in other orders, up to ``n_bytes`` bytes."""
    rng = np.random.default_rng(seed)
    written = 0
    with open(path, "wb") as file:
        while written < n_bytes:
            written += file.write(b"".join(lines[i] for i in rng.permutation(len(lines))))


def parse_only(path: Path) -> int:
    """Parse to rows (CSR), the output of scikit-learn's parser."""
    return sum(len(block.columns) for block in LibsvmReader(path).blocks(1 << 24))  # type: ignore[union-attr]  # blocks of rows


def in_a_process(code: str) -> dict[str, Any]:
    """Run code in a fresh process, and return its time and peak memory."""
    run = subprocess.run([sys.executable, "-c", WATCHED, code], check=True, capture_output=True, text=True)
    return json.loads(run.stdout.splitlines()[-1])


def main() -> None:
    options = read_arguments(__doc__)
    small_bytes, large_bytes = (10**7, 10**8) if options.quick else (15 * 10**7, 3 * 10**9)
    folder = Path(tempfile.mkdtemp())
    try:
        lines = make_lines(min(small_bytes, 6 * 10**7), options.seed)
        small, large = folder / "small.svm", folder / "large.svm"
        write_text(small, lines, small_bytes, options.seed)
        rows = compare_readers(small, options.repeats)
        print_table(f"Reading {small.stat().st_size / 1e6:.0f} MB of text", rows)
        write_text(large, lines, large_bytes, options.seed)
        facts = convert_and_fit(large, folder / "store")
        print_facts(f"{large.stat().st_size / 1e9:.2f} GB of text to a store, and 20 support features from it", facts)
        write_results("libsvm_text", options, rows=rows, facts=facts)
    finally:
        shutil.rmtree(folder)


def compare_readers(path: Path, repeats: int) -> list[dict[str, Any]]:
    """Return seconds, megabytes per second and the ratio, measured in turn."""
    contenders = {
        "ours, to rows (as scikit-learn)": partial(parse_only, path),
        "ours, to features (open_features)": partial(open_features, path),
        "scikit-learn": partial(load_svmlight_file, str(path)),
    }
    parse_only(path), open_features(path)  # compile
    timings = measure_in_turn(list(contenders.values()), repeats)
    theirs = timings[-1]
    ours, (X, y) = timings[1].result, theirs.result
    same = (ours.source.block(0, X.shape[1]) != X.tocsc()).nnz == 0 and np.array_equal(ours.y, y)
    megabytes = path.stat().st_size / 1e6
    return [
        {
            "reader": name,
            "seconds": timing.best,
            "MB/s": megabytes / timing.best,
            "times scikit-learn": theirs.best / timing.best,
            "goal": "" if name == "scikit-learn" else f">= {GOAL:g}: {verdict(theirs.best / timing.best >= GOAL)}",
            "cores of other processes": timing.other_cores,
            "equal": "" if name == "scikit-learn" else str(same),
        }
        for name, timing in zip(contenders, timings, strict=True)
    ]


def convert_and_fit(text: Path, store: Path) -> dict[str, Any]:
    """Return time and peak memory of conversion and fit, and the size of the data."""
    facts: dict[str, Any] = {"text, GB": text.stat().st_size / 1e9}
    jobs = {
        "convert": f"coterie.data.convert({str(text)!r}, {str(store)!r})",
        "check": f"coterie.data.check_store({str(store)!r})",
        "fit": f"import coterie; coterie.GroupDiscoveryClassifier(20, C=1.0).fit({str(store)!r})",
    }
    for name, code in jobs.items():
        result = in_a_process(code)
        facts[f"{name}, s"] = result["seconds"]
        facts[f"{name}, peak of its own memory, GB"] = result["own"] / 1e9
        facts[f"{name}, peak of mapped files, GB"] = result["mapped"] / 1e9
        facts[f"{name}, peak of both, GB"] = result["both"] / 1e9
        if name == "convert":
            facts["store, GB"] = sum(file.stat().st_size for file in store.iterdir()) / 1e9
    return facts


if __name__ == "__main__":
    main()
