"""Groups with a promise beside those of SuSiE, knockoffs and clustered inference, in regression with known groups.

TPAMI-like data with noise 1 and SNPs with linkage (half of the variation is noise), 1,000 to 100,000 features. A reported
group is true when it shares a member with a planted one. Every run has a process, a limit of time and 16 GB for itself; a
method that fails or runs out of time at a size is not tried again there, nor at larger sizes. Needs ``pip install pysusie
knockpy hidimstat``.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from _fresh_process import ChildRun, run_in_child
from _peers import METHODS, as_they_are
from _record import RESULTS, read_arguments, write_results
from _tables import DOCS, columns, markdown_table, print_table, replace_section
from _truth import is_found, is_true, members_of

from coterie.datasets import make_big_dimensional, make_support_affiliated

MAX_BYTES = 16 << 30
N_SEEDS = {1000: 2}  # one seed of the larger sizes


@dataclass(frozen=True)
class Data:
    """Features, a target and the planted groups."""

    X: np.ndarray
    y: np.ndarray
    planted: list[np.ndarray]


def tpami(n_samples: int, n_features: int, seed: int) -> Data:
    """Twelve groups with weights of N(0, 1), and noise of standard deviation 1."""
    data = make_support_affiliated(n_samples, n_features, random_state=seed)
    supports = [group.support for group in data.groups]
    y = data.X[:, supports] @ data.weights + np.random.default_rng([seed, 4]).standard_normal(n_samples)
    return Data(data.X, y, members_of(data.groups))


def snps(n_samples: int, n_features: int, seed: int) -> Data:
    """Ten causal SNPs with weights of 1 to 2, and as much noise as signal."""
    data = make_big_dimensional("psoriasis", n_samples=n_samples, n_features=n_features, n_support=10, random_state=seed)
    causal = data.X[:, [group.support for group in data.groups]].astype(np.float64)
    signal = (causal - causal.mean(axis=0)) / causal.std(axis=0) @ data.weights
    y = signal + signal.std() * np.random.default_rng([seed, 4]).standard_normal(n_samples)
    return Data(data.X, y, members_of(data.groups))


KINDS: dict[str, Callable[[int, int, int], Data]] = {"TPAMI, noise 1": tpami, "SNPs, half noise": snps}


def outcome(data: Data, run: ChildRun) -> dict[str, Any]:
    """What one run found, or why it did not."""
    if run.failure is not None or run.seconds is None:
        return {"trouble": run.failure or f"stopped after {run.limit:g} s"}
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
    """Sums over the seeds; the trouble where there was one."""
    row: dict[str, Any] = {"data": kind, "features": n_features, "method": method}
    good = [run for run in runs if "trouble" not in run]
    trouble = next((run["trouble"] for run in runs if "trouble" in run), None)
    if not good:
        return row | {"seeds": 0, "notes": trouble}
    return row | {
        "seeds": len(good),
        "found": f"{sum(run['found'] for run in good)}/{sum(run['planted'] for run in good)}",
        "false": sum(run["false"] for run in good),
        "mean false share": float(np.mean([run["share"] for run in good])),
        "largest group": max(run["largest"] for run in good),
        "median s": float(np.median([run["seconds"] for run in good])),
        "peak MB": max(run["peak"] for run in good) / 1e6,
        "notes": trouble,
    }


def earlier(options: Any) -> list[dict[str, Any]]:
    """The runs of an earlier file of results that this one, of one size only, leaves as they are."""
    path = RESULTS / "confidence_peers.json"
    if options.only is None or options.quick or not path.exists():
        return []
    return [run for run in json.loads(path.read_text(encoding="utf-8"))["details"] if str(run["m"]) not in sizes_of(options)]


def sizes_of(options: Any) -> list[str]:
    """The numbers of features to run, as they are written on the command line."""
    return ["300"] if options.quick else options.only.split("+") if options.only else ["1000", "10000", "100000"]


def tell(details: Sequence[dict[str, Any]], options: Any) -> None:
    """Write tables and results of all runs so far: the next run may take long, or be the last."""
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
        __doc__, slow="nothing more; the limit of a run is --limit", parts=("1000", "10000", "100000", "10000+100000")
    )
    n_samples = 200 if options.quick else 1000
    details, given_up = earlier(options), set()
    for name, fit in METHODS.items():
        family = name.split(", FDR")[0]  # what is too slow at one level is so at the other
        for size in map(int, sizes_of(options)):
            for kind, make in KINDS.items():
                for seed in range(2000 + options.seed, 2000 + options.seed + N_SEEDS.get(size, 1)):
                    if (kind, family) in given_up:
                        continue
                    data = make(n_samples, size, seed)
                    run = run_in_child(fit, data.X, data.y, options.limit, tell=as_they_are, most_bytes=MAX_BYTES)
                    details.append(outcome(data, run) | {"seed": seed, "data": kind, "m": size, "method": name})
                    if "trouble" in details[-1]:
                        given_up.add((kind, family))
                tell(details, options)


if __name__ == "__main__":
    main()
