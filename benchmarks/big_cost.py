"""Cost of the big shapes at full size, from stores: time in bare passes, passes per round, memory, planted groups; growth.

    python benchmarks/big_cost.py --folder DIR             # all four; stores are created in DIR unless they exist
    python benchmarks/big_cost.py --growth                 # exponents when samples, features, nonzeros or K double

A bare pass is one ``X'v`` by the same kernel from the same store in the same run. Fits have 20 support features in ten
rounds of two (psoriasis: twenty rounds of one) and complete groups. Growth refers to the processor seconds of one thread at
a small scale; an exponent of 1 is linear. Rows are kept in a journal with the other results. The tables of
docs/evidence/big-shapes.md are made from it.
"""

from __future__ import annotations

import argparse
import json
import os
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
from _big_stores import SHAPES, big_store, measure_cost
from _record import RESULTS, caption
from _tables import DOCS, markdown_table, replace_section
from _timing import measure_bare_pass

from coterie import GroupDiscoveryClassifier
from coterie.data import open_store
from coterie.datasets import make_big_dimensional
from coterie.metrics import group_recovery, success_hits

N_SUPPORT = 20
FEATURES_PER_ROUND = {"news20": 2, "kdd2010": 2, "webspam": 2, "psoriasis": 1}
SEED = 0
DOUBLED = ("samples", "features", "nonzeros", "support features")
# Small enough that eight sizes of each shape take minutes, large enough that a pass takes most of a round.
GROWTH_SCALES = {"news20": 1.0, "kdd2010": 0.02, "webspam": 0.02, "psoriasis": 0.1}


def full_store(folder: Path, name: str) -> tuple[Any, Any]:
    """Return the store of ``big_shapes.py`` with training and test samples, and the planted groups."""
    if name in SHAPES:
        whole = big_store(folder, name, 1.0, False, SEED)
        return whole.store, whole.groups
    path = folder / f"{name}-full.store"
    made = make_big_dimensional(name, path=path, overwrite=True, random_state=SEED)
    return open_store(path), made.groups


def at_full_size(folder: Path, name: str, threads: int) -> dict[str, Any]:
    store, groups = full_store(folder, name)
    source, y = store.source, np.asarray(store.y)
    with tempfile.TemporaryDirectory() as temporary:  # compile with a small store
        warm = make_big_dimensional(name, scale=0.005, random_state=SEED, path=Path(temporary) / "warm.store")
        GroupDiscoveryClassifier(2, C=1.0, standardize=False, n_jobs=threads).fit(warm.X, warm.y)
    bare = measure_bare_pass(source, threads, 3).best
    model = GroupDiscoveryClassifier(
        N_SUPPORT, C=1.0, n_features_per_round=FEATURES_PER_ROUND[name], standardize=False, n_jobs=threads
    )
    with measure_cost() as cost:
        model.fit(source, y)
    n, m = source.shape
    size = sum(file.stat().st_size for file in Path(store.path).rglob("*") if file.is_file())
    supports = set(model.support_features_.tolist())
    return {
        "shape": name, "samples": n, "features": m, "threads": threads, "store_gb": size / 1e9,
        "bare_pass_s": bare, "fit_s": cost.seconds, "bare_passes": cost.seconds / bare,
        "passes": model.n_passes_, "rounds": model.n_rounds_, "passes_per_round": model.n_passes_ / model.n_rounds_,
        "gb_beside": (cost.memory or 0) / 1e9, "share_beside": (cost.memory or 0) / size,
        "hits": str(success_hits(groups, model.groups_)), "recovery": float(group_recovery(groups, model.groups_)),
        "by_own_support": sum(int(group.support) in supports for group in groups), "gap": float(model.dual_gap_),
        "load": os.getloadavg()[0],
    }  # fmt: skip


def seconds_of(data: Any, name: str, n_support: int) -> float:
    """Return the processor seconds of the fastest of three fits on one thread."""
    took = []
    for _ in range(3):
        began = time.process_time()
        GroupDiscoveryClassifier(
            n_support, C=1.0, n_features_per_round=FEATURES_PER_ROUND[name], standardize=False, n_jobs=1
        ).fit(data.X, data.y)
        took.append(time.process_time() - began)
    return min(took)


def growth(name: str) -> dict[str, Any]:
    """Return the exponents of the processor seconds: log2 of their ratio when one size doubles and the others are fixed."""
    scale = GROWTH_SCALES[name]
    sizes = make_big_dimensional(name, scale=scale, random_state=SEED)
    n, m = sizes.X.shape
    shape: dict[str, Any] = {"n_samples": n, "n_features": m}
    doubled = [("samples", {"n_samples": 2 * n}), ("features", {"n_features": 2 * m})]
    if name != "psoriasis":  # the number of values of a dense shape is fixed
        shape["n_values"] = int(sizes.X.nnz)
        doubled.append(("nonzeros", {"n_values": 2 * shape["n_values"]}))
    base_data = make_big_dimensional(name, random_state=SEED, **shape)
    seconds_of(base_data, name, 2)  # compile
    base = seconds_of(base_data, name, N_SUPPORT)
    row: dict[str, Any] = {"growth": name, "samples": n, "features": m, "cpu_s": base}
    row["by support features"] = float(np.log2(seconds_of(base_data, name, 2 * N_SUPPORT) / base))
    for words, change in doubled:
        data = make_big_dimensional(name, random_state=SEED, **shape | change)
        row[f"by {words}"] = float(np.log2(seconds_of(data, name, N_SUPPORT) / base))
    return row


def write_page(rows: list[dict[str, Any]]) -> None:
    """Replace the two tables of docs/evidence/big-shapes.md."""
    fits = [
        {
            "shape": row["shape"],
            "samples × features": f"{row['samples']:,} × {row['features']:,}",
            "store, GB": row["store_gb"],
            "bare pass, s": row["bare_pass_s"],
            "fit, s": row["fit_s"],
            "fit / bare pass": f"{row['bare_passes']:.0f}",
            "passes per round": row["passes_per_round"],
            "GB beside the store": row["gb_beside"],
            "share of the store": row["share_beside"],
            "success hits": row["hits"],
            "recovery": row["recovery"],
            "gap": f"{row['gap']:.0e}",
        }
        for row in rows
        if "shape" in row
    ]
    grown = [
        {
            "shape": row["growth"],
            "from": f"{row['samples']:,} × {row['features']:,}",
            "CPU s": row["cpu_s"],
            **{words: f"{row[f'by {words}']:.2f}" if f"by {words}" in row else "–" for words in DOUBLED},
        }
        for row in rows
        if "growth" in row
    ]
    for name, table, options in (("full size", fits, ("--folder", "DIR")), ("growth", grown, ("--growth",))):
        if table:
            replace_section(DOCS / "big-shapes.md", name, f"{caption(*options)}\n\n{markdown_table(table)}")


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--folder", type=Path, default=None, help="folder of the stores, which are created unless they exist")
    parser.add_argument("--only", choices=tuple(FEATURES_PER_ROUND), default=None, help="shape to run (default: all)")
    parser.add_argument("--growth", action="store_true", help="measure the exponents instead")
    parser.add_argument(
        "--threads", type=int, default=os.cpu_count() or 1, help="threads of full-size fits (default: all cores)"
    )
    options = parser.parse_args()
    RESULTS.mkdir(exist_ok=True)
    journal = RESULTS / "big_cost.jsonl"
    with tempfile.TemporaryDirectory() as temporary:
        for name in [options.only] if options.only else list(FEATURES_PER_ROUND):
            folder = options.folder or Path(temporary)
            row = growth(name) if options.growth else at_full_size(folder, name, options.threads)
            print(json.dumps(row), flush=True)
            with journal.open("a", encoding="utf-8") as file:
                file.write(json.dumps(row) + "\n")
    newest = {(row.get("shape"), row.get("growth")): row for row in map(json.loads, journal.read_text().splitlines())}
    write_page(
        sorted(newest.values(), key=lambda row: list(FEATURES_PER_ROUND).index(str(row.get("shape") or row.get("growth"))))
    )


if __name__ == "__main__":
    main()
