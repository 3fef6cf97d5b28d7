"""Where results would be confidently wrong: dependent samples, rare classes, few features, structure.

Each situation is simulated with several seeds. ``discover`` is called as a new user would call it, and with what the warnings
ask for (``groups`` or ``covariates``). A claim is a group that the judgement counts: a q-value of at most 0.1. Calls that
cannot be right, and data with a strong signal, are repeated for three of ten sets.
"""

from __future__ import annotations

import os
import sys
import time
import warnings
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from typing import Any

import numpy as np
from _dependent import Problem, donors, families, few_features, noise, populations, proxies, rare_class, subjects
from _record import read_arguments, write_results
from _tables import DOCS, markdown_table, print_table, replace_section

import coterie

# Situation, and the best score that is possible without signal (None if there is a signal).
SITUATIONS: dict[str, tuple[Callable[[int], Problem], float | None]] = {
    "8 donors x 60 cells, no effect": (donors, 0.5),
    "50 subjects x 5 rows, no effect": (subjects, 0.5),
    "subjects with 3 to 10 rows, no effect": (partial(subjects, n_rows=None), 0.5),
    "families, no effect": (families, 0.0),
    "populations, no effect": (populations, 0.0),
    "30 features, shuffled labels": (noise, 0.5),
    "0.5 % positives, three planted groups": (partial(rare_class, share=0.005), None),
    "1 % positives, three planted groups": (partial(rare_class, share=0.01), None),
    "5 % positives, three planted groups": (partial(rare_class, share=0.05), None),
    "five of seven features differ": (few_features, None),
    "proxies at r = 0.6, C = 0.01": (proxies, None),
}
RIGHT_CAUTIONS = ("dependent samples", "duplicate samples", "identifier", "related samples", "population structure")


def one_run(situation: str, seed: int, informed: bool) -> dict[str, Any]:
    """Return what one discovery says."""
    make, truth = SITUATIONS[situation]
    problem = make(seed)
    known: dict[str, Any] = {"groups": problem.groups, "covariates": problem.covariates} if informed else {}
    known |= {} if problem.C is None else {"C": problem.C}
    started = time.process_time()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = coterie.discover(problem.X, problem.y, random_state=seed, n_jobs=1, **known)
    claimed = [group for group in found.groups if group.selected and group.used]
    planted = [any(set(group.members.tolist()) & set(members) for group in claimed) for members in problem.planted]
    low, high = found.held_out.interval
    return {
        "score": found.held_out.value,
        "kind": found.held_out.score,
        "low": low,
        "high": high,
        "baseline": found.held_out.constant,
        "claims": len(claimed),
        "false claims": sum(not any(set(group.members.tolist()) & set(own) for own in problem.planted) for group in claimed),
        "planted found": float(np.mean(planted)) if planted else None,
        "warned": any(caution.kind in RIGHT_CAUTIONS for caution in found.cautions),
        "judgement": found.judgement,
        "truth": truth,
        "cpu s": time.process_time() - started,
    }


def summary(situation: str, call: str, runs: list[dict[str, Any]]) -> dict[str, Any]:
    """Return one row of the table."""
    covered = [run["low"] <= run["baseline"] <= run["high"] for run in runs]
    planted = [run["planted found"] for run in runs if run["planted found"] is not None]
    return {
        "situation": situation,
        "call": call,
        "sets": len(runs),
        "score": runs[0]["kind"],
        "held-out": float(np.mean([run["score"] for run in runs])),
        "baseline": float(np.mean([run["baseline"] for run in runs])),
        "interval contains the baseline": float(np.mean(covered)),
        "any claim": float(np.mean([run["claims"] > 0 for run in runs])),
        "claims": float(np.mean([run["claims"] for run in runs])),
        "false claims": float(np.mean([run["false claims"] for run in runs])),
        "planted groups claimed": float(np.mean(planted)) if planted else None,
        "warned": float(np.mean([run["warned"] for run in runs])),
        "cpu s": float(np.mean([run["cpu s"] for run in runs])),
    }


def page_table(rows: list[dict[str, Any]]) -> str:
    """Return the table of the page."""
    shares = (
        *("interval contains the baseline", "any claim", "false claims", "claims"),
        *("planted groups claimed", "warned"),
    )
    shown = [
        {
            **{name: row[name] for name in ("situation", "call", "sets", "score")},
            **{name: f"{row[name]:.3f}" for name in ("held-out", "baseline")},
            **{name: "–" if row[name] is None else f"{row[name]:.2f}" for name in shares},
            "CPU s": f"{row['cpu s']:.1f}",
        }
        for row in rows
    ]
    return markdown_table(shown).replace("interval contains", "contains")


def main() -> None:
    options = read_arguments(__doc__, repeats=100, parts=tuple(SITUATIONS))
    n_sets = 2 if options.quick else options.repeats
    rows, examples, runs_of = [], {}, {}
    with ProcessPoolExecutor(options.threads) as pool:
        for situation in SITUATIONS if options.only is None else [options.only]:
            problem = SITUATIONS[situation][0](0)
            calls = ["plain"] + ["informed"] * (problem.groups is not None or problem.covariates is not None)
            for call in calls:
                decisive = call == "informed" or situation.startswith("30 features")
                seeds = range(options.seed, options.seed + (n_sets if decisive or options.quick else 3 * n_sets // 10))
                runs = list(pool.map(partial(one_run, situation, informed=call == "informed"), seeds))
                rows.append(summary(situation, call, runs))
                print(rows[-1], file=sys.stderr, flush=True)
                examples[f"{situation}, {call}"] = runs[0]["judgement"]
                runs_of[f"{situation}, {call}"] = runs
    print_table("What is said", rows)
    for name, text in examples.items():
        print(f"\n{name}:\n  {text}")
    write_results("pitfalls", options, rows=rows, examples=examples, runs=runs_of)
    if not options.quick and options.only is None:
        replace_section(DOCS / "pitfalls.md", "pitfalls", page_table(rows))


if __name__ == "__main__":
    os.environ.setdefault("COTERIE_NUM_THREADS", "1")
    main()
