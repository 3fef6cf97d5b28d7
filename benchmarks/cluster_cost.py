"""Cost of a cluster: bytes per round, time per exchange, fits on workers and in one process, memory of the client.

    python benchmarks/cluster_cost.py                    # shapes at a small scale; prints one JSON line per fit
    python benchmarks/cluster_cost.py --memory 30e6      # memory of the client with this number of features
    python benchmarks/cluster_cost.py --page some.log    # the tables of docs/evidence/cluster-cost.md from printed lines

Bytes are counted when they are passed to Dask or returned by it: shared values (each worker fetches them once) and results.
The workers are processes of this machine, so the times are those of the protocol, without a network.
"""

from __future__ import annotations

import argparse
import json
import logging
import os
import statistics
import tempfile
import threading
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import psutil
from _record import caption
from _tables import DOCS, markdown_table, replace_section

from coterie import GroupDiscoveryClassifier
from coterie.cluster import DistributedSource
from coterie.cluster.parts import StorePart
from coterie.data import open_store, write_store
from coterie.datasets import make_big_dimensional

SCALES = {"news20": 0.1, "webspam": 0.005, "kdd2010": 0.005, "psoriasis": 0.1}
N_SUPPORT = 10
PAGE = DOCS / "cluster-cost.md"


def start(n_workers: int) -> tuple[Any, Any]:
    from distributed import Client, LocalCluster

    cluster = LocalCluster(
        n_workers=n_workers, threads_per_worker=1, dashboard_address=":0", memory_limit="4GB", silence_logs=logging.CRITICAL
    )
    return cluster, Client(cluster, set_as_default=False)


def fit(source: Any, y: np.ndarray, n_support: int = N_SUPPORT) -> tuple[Any, float]:
    began = time.perf_counter()
    model = GroupDiscoveryClassifier(n_support, C=1.0, n_features_per_round=1, n_jobs=1).fit(source, y)
    return model, time.perf_counter() - began


def of_shape(shape: str, folder: Path) -> list[dict[str, Any]]:
    """Fit in one process and on 1, 2 and 4 workers, in one run."""
    return of_store(
        shape, make_big_dimensional(shape, scale=SCALES[shape], path=folder / f"{shape}.store", random_state=0).path
    )


def of_store(shape: str, path: Any, numbers: Sequence[int] = (1, 2, 4)) -> list[dict[str, Any]]:
    """Fit an existing store in one process and on each number of workers."""
    store = open_store(path)
    fit(store.source, store.y)  # compile
    alone, seconds = fit(store.source, store.y)
    n, m = store.shape
    rows: list[dict[str, Any]] = [{"shape": shape, "samples": n, "features": m, "workers": 0, "seconds": seconds}]
    print(json.dumps(rows[0]), flush=True)
    for n_workers in numbers:
        cluster, client = start(n_workers)
        try:
            source = DistributedSource.of_store(store, client)
            fit(source, store.y)  # let the workers compile and open their parts
            before = counts(source)
            source._columns.clear()
            model, took = fit(source, store.y)
            up, down, trips = (now - then for now, then in zip(counts(source), before, strict=True))
            idle = []
            for _ in range(20):
                began = time.perf_counter()
                source.run_on_parts(_idle, what="nothing")
                idle.append(time.perf_counter() - began)
            rows.append(
                {
                    "shape": shape, "samples": n, "features": m, "workers": n_workers, "parts": len(source.parts),
                    "seconds": took,
                    "same": bool(np.array_equal(model.support_coef_, alone.support_coef_) and model.groups_ == alone.groups_),
                    "rounds": N_SUPPORT, "shared_bytes_per_round": up / N_SUPPORT,
                    "answered_bytes_per_round": down / N_SUPPORT, "exchanges_per_round": trips / N_SUPPORT,
                    "ms_per_exchange": 1e3 * statistics.median(idle),
                }
            )  # fmt: skip
            print(json.dumps(rows[-1]), flush=True)
        finally:
            client.close()
            cluster.close()
    return rows


def counts(source: Any) -> tuple[int, int, int]:
    """Return the bytes shared, the bytes returned, and the exchanges so far."""
    return source.engine.bytes_up, source.engine.bytes_down, source.round_trips


def _idle(source: Any) -> int:
    return 0


class Peak:
    """Peak resident memory of this process within a ``with`` block."""

    def __enter__(self) -> Peak:
        self.process = psutil.Process()
        self.start = self.peak = self.process.memory_info().rss
        self.done = threading.Event()
        self.thread = threading.Thread(target=self._watch)
        self.thread.start()
        return self

    def _watch(self) -> None:
        while not self.done.wait(0.02):
            self.peak = max(self.peak, self.process.memory_info().rss)

    def __exit__(self, *_: Any) -> None:
        self.done.set()
        self.thread.join()


def client_memory(n_features: int, folder: Path) -> dict[str, Any]:
    """Fit repeated parts with ``n_features`` features in total; the client does not treat repeated parts differently."""
    rng = np.random.default_rng(0)
    base, n_samples = 1_000_000, 200
    from scipy import sparse

    # Four values in different quarters of the samples, so that no two columns of a part are the same.
    rows = (rng.integers(0, n_samples // 4, (base, 4)) + np.arange(4) * (n_samples // 4)).ravel().astype(np.int32)
    values = rng.standard_normal(4 * base).astype(np.float32)
    X = sparse.csc_array((values, rows, np.arange(0, 4 * base + 1, 4)), shape=(n_samples, base))
    y = rng.integers(0, 2, n_samples)
    path = write_store(folder / "repeated.store", X, y=y, overwrite=True)
    store = open_store(path)
    cluster, client = start(2)
    try:
        template = DistributedSource.of_store(store, client, n_parts=1)
        n_parts = n_features // base
        check = str(store.header["header_crc32"])
        parts = [StorePart(str(path), check, k * base, (k + 1) * base, k * base) for k in range(n_parts)]
        source = DistributedSource(template.engine, parts, [None] * n_parts, (n_samples, n_parts * base), True)
        small = DistributedSource(template.engine, parts[:1], [None], (n_samples, base), True)
        fit(small, y, 4)
        with Peak() as peak:
            _, seconds = fit(source, y, 4)
        found = {
            "features": n_parts * base, "parts": n_parts, "seconds": seconds,
            "client_before_mb": peak.start / 1e6, "client_peak_mb": peak.peak / 1e6,
            "one_array_mb": 8 * n_parts * base / 1e6,
        }  # fmt: skip
        print(json.dumps(found), flush=True)
        return found
    finally:
        client.close()
        cluster.close()


def write_page(files: list[Path]) -> None:
    """Replace the tables of docs/evidence/cluster-cost.md from the printed lines of earlier runs."""
    rows = [json.loads(line) for file in files for line in file.read_text().splitlines() if line.startswith("{")]
    fits, memory = [row for row in rows if "shape" in row], [row for row in rows if "client_peak_mb" in row]
    head = caption("--shapes", *dict.fromkeys(row["shape"] for row in fits))
    replace_section(PAGE, "fits", f"{head}\n\n{markdown_table([_fit_row(row) for row in fits])}")
    if memory:
        cells = [
            {
                "features": f"{row['features']:,}",
                "client before, MB": f"{row['client_before_mb']:.0f}",
                "client's peak, MB": f"{row['client_peak_mb']:.0f}",
                "one array of scores, MB": f"{row['one_array_mb']:.0f}",
            }
            for row in memory
        ]
        head = caption("--memory", *(str(row["features"]) for row in memory))
        replace_section(PAGE, "memory", f"{head}\n\n{markdown_table(cells)}")


def _fit_row(row: dict[str, Any]) -> dict[str, str]:
    """Return the row of one fit; only the first row of a shape, that of one process, names the shape."""
    alone = not row["workers"]
    return {
        "shape": row["shape"] if alone else "",
        "samples × features": f"{row['samples']:,} × {row['features']:,}" if alone else "",
        "workers": "one process" if alone else str(row["workers"]),
        "seconds": f"{row['seconds']:.1f}",
        "same bits": "" if alone else "yes" if row["same"] else "NO",
        "shared per round, kB": "" if alone else f"{row['shared_bytes_per_round'] / 1e3:.1f}",
        "answered per round, kB": "" if alone else f"{row['answered_bytes_per_round'] / 1e3:.1f}",
        "exchanges per round": "" if alone else f"{row['exchanges_per_round']:.1f}",
        "ms per idle exchange": "" if alone else f"{row['ms_per_exchange']:.0f}",
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--memory", type=float, nargs="*", default=None)
    parser.add_argument("--shapes", nargs="*", default=list(SCALES))
    parser.add_argument("--stores", nargs="*", default=None, help="fit these stores instead, each given as NAME=PATH")
    parser.add_argument("--workers", type=int, nargs="+", default=[1, 2, 4], help="with --stores: numbers of workers")
    parser.add_argument("--output", type=Path, default=None)
    parser.add_argument(
        "--page", type=Path, nargs="+", default=None, help="write the tables of the page from files of earlier runs"
    )
    arguments = parser.parse_args()
    if arguments.page is not None:
        write_page(arguments.page)
        return
    with tempfile.TemporaryDirectory() as folder:
        if arguments.memory is not None:
            found: Any = [client_memory(int(n), Path(folder)) for n in arguments.memory]
        elif arguments.stores is not None:
            named = [text.split("=", 1) for text in arguments.stores]
            found = [row for name, path in named for row in of_store(name, path, arguments.workers)]
        else:
            found = [row for shape in arguments.shapes for row in of_shape(shape, Path(folder))]
    if arguments.output is not None:
        arguments.output.write_text(json.dumps(found, indent=1))


if __name__ == "__main__":
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    main()
