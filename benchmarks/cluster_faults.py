"""Workers killed −9 in every phase of a fit, many times each: the same bits, and no hang.

    python benchmarks/cluster_faults.py --times 20 --seconds 1500

Four worker processes of this machine; in each run one is killed some milliseconds after the tasks of a phase were sent.
Prints a line a run and a table at the end; ends early after so many seconds, with what is done.
"""

from __future__ import annotations

import argparse
import json
import logging
import tempfile
import time
from collections import Counter
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from coterie import GroupDiscoveryClassifier, GroupDiscoveryClassifierCV, group_confidence
from coterie.cluster import DistributedSource
from coterie.data import open_store, write_store
from tests.cluster.faults import PHASES, Workers, sabotage
from tests.golden.record import digest, words


def fitted(X: Any, y: Any) -> Any:
    model = GroupDiscoveryClassifier(4).fit(X, y)
    return [digest(model.groups_), digest(model.support_coef_), digest(np.asarray(model.scores_))]


def validated(X: Any, y: Any) -> Any:
    model = GroupDiscoveryClassifierCV(4, Cs=[1.0], standardize=False, cv=3, random_state=0).fit(X, y)
    return [digest(model.groups_), digest(model.support_coef_), digest(model.cv_results_)]


def confident(X: Any, y: Any) -> Any:
    model = GroupDiscoveryClassifier(3).fit(X, y)
    return digest(group_confidence(model, X, y, n_pairs=2, n_permutations=0, random_state=0).confidence)


RUNS = {phase: (phase, fitted) for phase in PHASES} | {
    "validation": ("the features with the best scores for", validated),
    "confidence": ("the features with the best scores for", confident),
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--times", type=int, default=20)
    parser.add_argument("--seconds", type=float, default=3600.0)
    arguments = parser.parse_args()
    from distributed import Client, LocalCluster

    began = time.monotonic()
    done: Counter[str] = Counter()
    same: Counter[str] = Counter()
    with tempfile.TemporaryDirectory() as folder:
        X, y = words(m=1200)
        store = open_store(write_store(Path(folder) / "words.store", X, y=y))
        expected = {function: function(store.source, store.y) for _, function in RUNS.values()}
        options = {"n_workers": 0, "dashboard_address": ":0", "silence_logs": logging.CRITICAL}
        with LocalCluster(**options) as cluster, Client(cluster, set_as_default=False) as client:
            workers = Workers(cluster.scheduler_address, 4)
            for turn in range(arguments.times):
                for name, (phase, function) in RUNS.items():
                    if time.monotonic() - began > arguments.seconds:
                        break
                    workers.fill(4)
                    client.wait_for_workers(3, timeout=300)
                    source = DistributedSource.of_store(store, client, n_parts=4)
                    victim = partial(workers.signal, 0)
                    start = time.monotonic()
                    with sabotage(DistributedSource, phase, victim, delay=0.001 * (turn % 10) ** 2) as killed:
                        found = function(source, store.y)
                    done[name] += len(killed)
                    same[name] += found == expected[function]
                    print(f"{turn} {name}: {found == expected[function]}, {time.monotonic() - start:.1f} s", flush=True)
            workers.close()
    print(json.dumps({name: {"killed": done[name], "same bits": same[name]} for name in RUNS}))


if __name__ == "__main__":
    main()
