"""Workers killed with SIGKILL in every phase of a fit, of probes and of a profile: whether results change or runs hang.

    python benchmarks/cluster_faults.py --times 20 --seconds 1500

Four worker processes of this machine; in each run one of them is killed some milliseconds after the tasks of a phase were
sent. Prints one line per run and writes its table at the end. Stops after ``--seconds`` with the runs finished by then.

    python benchmarks/cluster_faults.py --only probes,filter > some.log     # some phases, without the page
    python benchmarks/cluster_faults.py --page some.log others.log          # the table from printed lines
"""

from __future__ import annotations

import argparse
import logging
import re
import statistics
import tempfile
import time
import warnings
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from _record import caption
from _tables import DOCS, markdown_table, replace_section

from coterie import (
    DependencyAwareSelector,
    GlobalRedundancySelector,
    GroupDiscoveryClassifier,
    GroupDiscoveryClassifierCV,
    correlation_profile,
    group_confidence,
)
from coterie.cluster import DistributedSource
from coterie.data import open_store, write_store
from coterie.filters.selector import FilterSelector
from tests.cluster.faults import PHASES, Workers, sabotage
from tests.golden.record import digest, words

PAGE = DOCS / "cluster-faults.md"


def fitted(X: Any, y: Any) -> Any:
    model = GroupDiscoveryClassifier(4).fit(X, y)
    return [digest(model.groups_), digest(model.support_coef_), digest(np.asarray(model.scores_))]


def validated(X: Any, y: Any) -> Any:
    model = GroupDiscoveryClassifierCV(4, Cs=[1.0], standardize=False, cv=3, random_state=0).fit(X, y)
    return [digest(model.groups_), digest(model.support_coef_), digest(model.cv_results_)]


def confident(X: Any, y: Any) -> Any:
    model = GroupDiscoveryClassifier(3).fit(X, y)
    return digest(group_confidence(model, X, y, n_pairs=2, n_permutations=0, random_state=0).confidence)


def scored(X: Any, y: Any) -> Any:
    model = FilterSelector("fisher", 8).fit(X, y)
    return [digest(model.support_features_), digest(np.asarray(model.scores_))]


def refined(X: Any, y: Any) -> Any:
    model = GlobalRedundancySelector("fisher", 8).fit(X, y)
    return [digest(model.support_features_), digest(np.asarray(model.refined_scores_)), digest(model.objective_)]


def probed(X: Any, y: Any) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # warning about few probes
        model = DependencyAwareSelector("ridge", n_probes=100, random_state=0).fit(X, y)
    return [digest(model.scores_), digest(model.ranking_)]


def profiled(X: Any, y: Any) -> Any:
    return [correlation_profile(X).counts.tolist(), correlation_profile(X, n_pairs=5000, random_state=0).counts.tolist()]


RUNS = {phase: (phase, fitted) for phase in PHASES} | {
    "validation": ("the features with the best scores for", validated),
    "confidence": ("the features with the best scores for", confident),
    "filter": ("values per feature", scored),
    "pool of GRM": ("the columns", refined),
    "probes": ("values of subsets", probed),
    "pairs of the profile": ("pairs of features", profiled),
    "drawn pairs": ("correlations of pairs", profiled),
}


WORDS = {
    "moments": "group discovery: means and norms",
    "scores": "group discovery: best scores of a round",
    "columns": "group discovery: columns of the best features",
    "correlations": "group discovery: correlated features",
    "final scores": "group discovery: scores of all features",
    "groups": "group discovery: largest scores of each part",
    "validation": "folds in lockstep (`GroupDiscoveryClassifierCV`)",
    "confidence": "half-samples in lockstep (`group_confidence`)",
    "filter": "filter scores",
    "pool of GRM": "columns of the GRM candidates",
    "probes": "DAF probes",
    "pairs of the profile": "correlation profile, all pairs",
    "drawn pairs": "correlation profile, drawn pairs",
}


def write_page(lines: list[str]) -> None:
    """Replace the table of docs/evidence/cluster-faults.md from the printed lines of runs."""
    runs: dict[str, list[tuple[bool, float]]] = {name: [] for name in WORDS}
    for line in lines:
        if found := re.fullmatch(r"\d+ (.+): (True|False), ([\d.]+) s", line.strip()):
            runs[found[1]].append((found[2] == "True", float(found[3])))
    rows = [
        {
            "phase": WORDS[name],
            "killed": len(own),
            "same bits": sum(same for same, _ in own),
            "median s": f"{statistics.median(seconds for _, seconds in own):.1f}",
            "longest s": f"{max(seconds for _, seconds in own):.0f}",
        }
        for name, own in runs.items()
        if own
    ]
    replace_section(PAGE, "kills", f"{caption('--times', str(max(row['killed'] for row in rows)))}\n\n{markdown_table(rows)}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--times", type=int, default=20)
    parser.add_argument("--seconds", type=float, default=3600.0)
    parser.add_argument("--only", help="phases, separated by commas")
    parser.add_argument("--page", type=Path, nargs="+", help="write the table from files of printed lines")
    arguments = parser.parse_args()
    if arguments.page:
        write_page([line for file in arguments.page for line in file.read_text(encoding="utf-8").splitlines()])
        return
    printed: list[str] = []
    runs = RUNS if arguments.only is None else {name: RUNS[name] for name in arguments.only.split(",")}
    from distributed import Client, LocalCluster

    began = time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        X, y = words(m=1200)
        store = open_store(write_store(Path(folder) / "words.store", X, y=y))
        expected = {function: function(store.source, store.y) for _, function in runs.values()}
        options = {"n_workers": 0, "dashboard_address": ":0", "silence_logs": logging.CRITICAL}
        with LocalCluster(**options) as cluster, Client(cluster, set_as_default=False) as client:
            workers = Workers(cluster.scheduler_address, 4)
            for turn in range(arguments.times):
                for name, (phase, function) in runs.items():
                    if time.monotonic() - began > arguments.seconds:
                        break
                    workers.fill(4)
                    client.wait_for_workers(3, timeout=300)
                    source = DistributedSource.of_store(store, client, n_parts=4)
                    victim = partial(workers.signal, 0)
                    start = time.monotonic()
                    with sabotage(DistributedSource, phase, victim, delay=0.001 * (turn % 10) ** 2) as killed:
                        found = function(source, store.y)
                    assert len(killed) == 1, name
                    printed.append(f"{turn} {name}: {found == expected[function]}, {time.monotonic() - start:.1f} s")
                    print(printed[-1], flush=True)
            workers.close()
    if arguments.only is None:
        write_page(printed)


if __name__ == "__main__":
    main()
