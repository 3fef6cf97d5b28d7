"""Groups with a promise beside those of SuSiE, knockoffs and clustered inference, in regression with known groups.

TPAMI-like data with noise 1 and SNPs with linkage (half of the variation is noise), 1,000 to 100,000 features. A reported
group is true when it shares a member with a planted one. Every run has a process, a limit of time and 16 GB for itself; a
method that fails or runs out of time at a size is not tried again there, nor at larger sizes. Needs ``pip install pysusie
knockpy hidimstat``.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from _fresh_process import ChildRun, run_in_child
from _peers import METHODS, as_they_are
from _record import read_arguments, write_results
from _tables import DOCS, columns, markdown_table, print_table, replace_section
from _truth import is_found, is_true, members_of

from coterie.datasets import make_big_dimensional, make_support_affiliated

MOST_BYTES = 16 << 30


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
        return {"trouble": run.failure or f"ended after {run.limit:g} s"}
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
    row: dict[str, Any] = {"data": kind, "m": n_features, "method": method}
    good = [run for run in runs if "trouble" not in run]
    trouble = next((run["trouble"] for run in runs if "trouble" in run), None)
    if not runs:
        return row | {"seeds": 0, "trouble": "not tried: trouble at a smaller size"}
    if not good:
        return row | {"seeds": 0, "trouble": trouble}
    return row | {
        "seeds": len(good),
        "found": f"{sum(run['found'] for run in good)}/{sum(run['planted'] for run in good)}",
        "false": sum(run["false"] for run in good),
        "mean false share": float(np.mean([run["share"] for run in good])),
        "largest group": max(run["largest"] for run in good),
        "median s": float(np.median([run["seconds"] for run in good])),
        "peak MB": max(run["peak"] for run in good) / 1e6,
        "trouble": trouble,
    }


def main() -> None:
    options = read_arguments(__doc__, slow="nothing more; the limit of a run is --limit")
    sizes = {300: 2} if options.quick else {1000: 2, 10_000: 1, 100_000: 1}
    n_samples = 200 if options.quick else 1000
    rows, details, given_up = [], [], set()
    for n_features, n_seeds in sizes.items():
        for kind, make in KINDS.items():
            found: dict[str, list[dict[str, Any]]] = {name: [] for name in METHODS}
            for seed in range(2000 + options.seed, 2000 + options.seed + n_seeds):
                data = make(n_samples, n_features, seed)
                for name, fit in METHODS.items():
                    family = name.split(", FDR")[0]  # what is too slow at one level is so at the other
                    if (kind, family) in given_up:
                        continue
                    run = run_in_child(fit, data.X, data.y, options.limit, tell=as_they_are, most_bytes=MOST_BYTES)
                    found[name].append(outcome(data, run) | {"seed": seed, "data": kind, "m": n_features, "method": name})
                    if "trouble" in found[name][-1]:
                        given_up.add((kind, family))
                        print(f"{kind}, {n_features:,}, {name}: {found[name][-1]['trouble']}", flush=True)
            rows += [table_row(kind, n_features, name, runs) for name, runs in found.items()]
            details += [run for runs in found.values() for run in runs]
            print_table(f"{kind}, {n_samples:,} x {n_features:,}, limit {options.limit:g} s", rows[-len(METHODS) :])
            write_results("confidence_peers", options, rows=rows, details=details)  # after each size: the next may take long
            if not options.quick:
                names = dict.fromkeys(name for row in rows for name in row)
                replace_section(DOCS / "confidence-evidence.md", "peers", markdown_table(columns(rows, *names)))


if __name__ == "__main__":
    main()
