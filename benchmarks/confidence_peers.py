"""Groups with error control compared with SuSiE, knockoffs and clustered inference, in regression with known groups.

TPAMI-like data with noise 1 and SNPs with linkage (half of the variance is noise), 1,000 to 100,000 features. A reported
group is true if it shares a member with a planted one. Every run has its own process, a time limit and 16 GB of memory. A
method that fails or exceeds the time limit at one size is not run again at this or a larger size. Requires ``pip install
pysusie knockpy hidimstat``.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from _fresh_process import ChildRun, run_in_child
from _peers import METHODS, return_groups
from _record import RESULTS, read_arguments, write_results
from _tables import DOCS, columns, markdown_table, print_table, replace_section
from _truth import is_found, is_true, members_of

from coterie.datasets import make_big_dimensional, make_support_affiliated

MAX_BYTES = 16 << 30
N_SEEDS = {1000: 2}  # larger sizes have one seed


@dataclass(frozen=True)
class Data:
    """Features, a target and the planted groups."""

    X: np.ndarray
    y: np.ndarray
    planted: list[np.ndarray]


def tpami(n_samples: int, n_features: int, seed: int) -> Data:
    """Return data of twelve groups with weights from N(0, 1), and noise of standard deviation 1."""
    data = make_support_affiliated(n_samples, n_features, random_state=seed)
    supports = [group.support for group in data.groups]
    y = data.X[:, supports] @ data.weights + np.random.default_rng([seed, 4]).standard_normal(n_samples)
    return Data(data.X, y, members_of(data.groups))


def snps(n_samples: int, n_features: int, seed: int) -> Data:
    """Return genotypes with ten causal SNPs of weights 1 to 2, and as much noise as signal."""
    data = make_big_dimensional("psoriasis", n_samples=n_samples, n_features=n_features, n_support=10, random_state=seed)
    causal = data.X[:, [group.support for group in data.groups]].astype(np.float64)
    signal = (causal - causal.mean(axis=0)) / causal.std(axis=0) @ data.weights
    y = signal + signal.std() * np.random.default_rng([seed, 4]).standard_normal(n_samples)
    return Data(data.X, y, members_of(data.groups))


KINDS: dict[str, Callable[[int, int, int], Data]] = {"TPAMI, noise 1": tpami, "SNPs, half noise": snps}


def outcome(data: Data, run: ChildRun) -> dict[str, Any]:
    """Return the result of one run, or the reason of its failure."""
    if run.failure is not None or run.seconds is None:
        return {"failure": run.failure or f"stopped after {run.limit:g} s"}
    groups = run.features
    true = is_true(groups, data.planted)
    return {
        "seconds": run.seconds,
        "peak": run.peak_increase,
        "found": int(is_found(data.planted, groups).sum()),
        "planted": len(data.planted),
        "false": int((~true).sum()),
        "share": float((~true).mean()) if len(true) else 0.0,
        "largest": max(map(len, groups), default=0),
    }


def table_row(kind: str, n_features: int, method: str, runs: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Return sums over the seeds, and the first failure as a note."""
    row: dict[str, Any] = {"data": kind, "features": n_features, "method": method}
    good = [run for run in runs if "failure" not in run]
    failure = next((run["failure"] for run in runs if "failure" in run), None)
    if not good:
        return row | {"seeds": 0, "notes": failure}
    return row | {
        "seeds": len(good),
        "found": f"{sum(run['found'] for run in good)}/{sum(run['planted'] for run in good)}",
        "false": sum(run["false"] for run in good),
        "mean false share": float(np.mean([run["share"] for run in good])),
        "largest group": max(run["largest"] for run in good),
        "median s": float(np.median([run["seconds"] for run in good])),
        "peak MB": max(run["peak"] for run in good) / 1e6,
        "notes": failure,
    }


def earlier_runs(options: Any) -> list[dict[str, Any]]:
    """Return runs of other sizes from an earlier file of results."""
    path = RESULTS / "confidence_peers.json"
    if options.only is None or options.quick or not path.exists():
        return []
    return [run for run in json.loads(path.read_text(encoding="utf-8"))["details"] if str(run["m"]) not in sizes_of(options)]


def sizes_of(options: Any) -> list[str]:
    """Return the numbers of features to run, as written on the command line."""
    return ["300"] if options.quick else options.only.split("+") if options.only else ["1000", "10000", "100000"]


def write_tables(details: Sequence[dict[str, Any]], options: Any) -> None:
    """Write tables and results of all runs so far, because the next run may take long or be stopped."""
    keys = dict.fromkeys((run["m"], run["data"], run["method"]) for run in details)
    place = list(METHODS).index
    rows = [
        table_row(kind, m, method, [run for run in details if (run["m"], run["data"], run["method"]) == (m, kind, method)])
        for m, kind, method in sorted(keys, key=lambda key: (key[0], key[1], place(key[2])))
    ]
    print_table(f"Limit {options.limit:g} s", rows)
    write_results("confidence_peers", options, rows=rows, details=details)
    if not options.quick:
        names = dict.fromkeys(name for row in rows for name in row)
        replace_section(DOCS / "confidence-evidence.md", "peers", markdown_table(columns(rows, *names)))


def main() -> None:
    options = read_arguments(
        __doc__, slow="no effect; --limit sets the time limit of a run", parts=("1000", "10000", "100000", "10000+100000")
    )
    n_samples = 200 if options.quick else 1000
    details, skipped = earlier_runs(options), set()
    for name, fit in METHODS.items():
        family = name.split(", FDR")[0]  # a method has the same time at both levels
        for size in map(int, sizes_of(options)):
            for kind, make in KINDS.items():
                for seed in range(2000 + options.seed, 2000 + options.seed + N_SEEDS.get(size, 1)):
                    if (kind, family) in skipped:
                        continue
                    data = make(n_samples, size, seed)
                    run = run_in_child(fit, data.X, data.y, options.limit, summarize=return_groups, max_bytes=MAX_BYTES)
                    details.append(outcome(data, run) | {"seed": seed, "data": kind, "m": size, "method": name})
                    if "failure" in details[-1]:
                        skipped.add((kind, family))
                write_tables(details, options)


if __name__ == "__main__":
    main()
