"""False replications and power of Discovery.replicate, on simulated pairs of cohorts.

The first cohort has 200 samples with 300 features: 60 blocks of five features, which have a correlation of 0.8 within a block.
Four blocks have an effect. A model of eight groups is fitted to it (coterie.discover with fast=True), so that about half of
the groups are false, and all are tested in the second cohort. Nothing of the procedure was chosen by these data. Each cell
has one hundred pairs of cohorts (seeds 0 to 99). Lines are kept in results/replication.jsonl.

In the null designs no group has an effect in the second cohort. With repeated rows, every subject has five rows and one label.
With a batch, the outcome of both cohorts depends on a covariate, which also shifts half of the blocks of the second cohort.
"""

from __future__ import annotations

import argparse
import json
import time
import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np
from _record import RESULTS
from _tables import DOCS, markdown_table, print_table, replace_section

import coterie

N_FIRST, N_BLOCKS, BLOCK, N_CAUSAL, N_GROUPS = 200, 60, 5, 4, 8
EFFECT = 0.6
SEEDS = 100
PAGE = DOCS / "replication.md"
JOURNAL = RESULTS / "replication.jsonl"
VERSION = 1  # of the journal: raise it if the same lines would have other values
NULL = (
    "numbers",
    "two classes",
    "three classes",
    "counts",
    "survival",
    "repeated rows",
    "batch",
    "rare class",
    "support absent",
)
SIZES = (60, 150)
LEVEL = 0.05


def features(rng: np.random.Generator, n: int, proxies: bool = False) -> tuple[np.ndarray, np.ndarray]:
    """Return features and the factors of the blocks. With proxies, each causal block has one with a correlation of 0.6."""
    factors = rng.standard_normal((n, N_BLOCKS))
    if proxies:
        own = slice(N_CAUSAL, 2 * N_CAUSAL)
        factors[:, own] = 0.75 * factors[:, :N_CAUSAL] + np.sqrt(1 - 0.75**2) * factors[:, own]
    noise = rng.standard_normal((n, N_BLOCKS, BLOCK))
    X = np.sqrt(0.8) * factors[:, :, None] + np.sqrt(0.2) * noise
    return X.reshape(n, -1), factors


def outcome(kind: str, rng: np.random.Generator, score: np.ndarray) -> np.ndarray:
    """Return an outcome of a kind, given the linear predictor of each sample."""
    if kind in ("two classes", "repeated rows"):
        return (score + rng.logistic(size=len(score)) > 0.0).astype(int)
    if kind == "rare class":
        return (score + rng.logistic(size=len(score)) > 2.0).astype(int)
    if kind == "three classes":
        return np.digitize(score + rng.logistic(size=len(score)), (-0.8, 0.8))
    if kind == "counts":
        return rng.negative_binomial(3, 3 / (3 + np.exp(0.5 + 0.6 * score))).astype(float)
    if kind == "survival":
        time, end = rng.exponential(np.exp(-score)), rng.exponential(2.0, len(score))
        return np.column_stack([np.minimum(time, end), time <= end])
    return score + rng.standard_normal(len(score))


def cohorts(design: str, seed: int, n_second: int, effect: float) -> tuple[coterie.Discovery, Any, Any, dict[str, Any]]:
    """Return the discovery in the first cohort, and the second one with arguments of ``replicate``.

    ``effect`` is the effect of the causal blocks in the second cohort, relative to that in the first one.
    """
    rng = np.random.default_rng([seed, n_second])
    proxies = design == "proxies"
    first, factors = features(rng, N_FIRST, proxies)
    second, others = features(rng, n_second, proxies)
    options: list[dict[str, Any]] = [{}, {}]
    weights = np.array([EFFECT if block % 2 else -EFFECT for block in range(N_CAUSAL)])
    scores = [factors[:, :N_CAUSAL] @ weights, effect * (others[:, :N_CAUSAL] @ weights)]
    if design == "batch":
        batches = [rng.integers(0, 2, N_FIRST).astype(float), rng.integers(0, 2, n_second).astype(float)]
        scores = [own + 1.5 * batch for own, batch in zip(scores, batches, strict=True)]
        options = [{"covariates": batch[:, None]} for batch in batches]
        shifted = np.repeat(np.arange(N_BLOCKS) % 2 == 0, BLOCK)
        second = second + np.outer(batches[1], shifted)
    y_first, y_second = (outcome(design, rng, own) for own in scores)
    if design == "repeated rows":
        subject = np.repeat(np.arange(n_second // 5), 5)
        second = second[subject] + 0.2 * rng.standard_normal(second.shape)[: len(subject)]
        y_second, options[1]["groups"] = y_second[subject], subject
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        task = {"counts": "counts", "survival": "survival"}.get(design, "auto")
        found = coterie.discover(first, y_first, task=task, fast=True, n_features_to_select=N_GROUPS, **options[0])
    if design == "support absent":
        second[:, found.groups.support] = np.nan
    return found, second, y_second, options[1]


def lines_of(design: str, n_second: int, effect: float, joint: bool | str, seed: int) -> dict[str, Any]:
    """Return what was replicated in one pair of cohorts."""
    found, X, y, options = cohorts(design, seed, n_second, effect)
    began = time.process_time()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        result = found.replicate(X, y, which="all", joint=joint, fwer=LEVEL, **options)
    block = [int(group.support) // BLOCK for group in found.groups]
    tested = [group for group in result if group.p_value is not None]
    done = {group.group - 1 for group in result.replicated}
    opposite = {group.group - 1 for group in result if group.status == "opposite direction"}
    causal = {number for number, own in enumerate(block) if own < N_CAUSAL}
    proxies = {number for number, own in enumerate(block) if N_CAUSAL <= own < 2 * N_CAUSAL}
    return {
        "tested": len(tested),
        "joint": result.joint,
        "causal": len(causal),
        "replicated": len(done),
        "true": len(done & causal),
        "false": len(done - causal),
        "proxies": len(proxies),
        "false proxies": len(done & proxies) if design == "proxies" else 0,
        "opposite": len(opposite),
        "seconds": time.process_time() - began,
    }


def collected(cells: list[dict[str, Any]], n_seeds: int) -> Iterator[tuple[dict[str, Any], list[dict[str, Any]]]]:
    """Yield each cell with its lines, computing those that are not in the journal."""
    RESULTS.mkdir(exist_ok=True)
    known = [json.loads(line) for line in JOURNAL.read_text().splitlines()] if JOURNAL.exists() else []
    by_key = {json.dumps([line["version"], line["cell"], line["seed"]]): line for line in known}
    with JOURNAL.open("a") as file:
        for cell in cells:
            found = []
            for seed in range(n_seeds):
                key = json.dumps([VERSION, cell, seed])
                if key not in by_key:
                    by_key[key] = {"version": VERSION, "cell": cell, "seed": seed, **lines_of(**cell, seed=seed)}
                    file.write(json.dumps(by_key[key]) + "\n")
                    file.flush()
                found.append(by_key[key])
            print(cell, flush=True)
            yield cell, found


def share(lines: list[dict[str, Any]], name: str) -> float:
    """Return the share of pairs of cohorts with at least one such group."""
    return float(np.mean([line[name] > 0 for line in lines]))


def ratio(lines: list[dict[str, Any]], name: str, among: str) -> float:
    """Return the share of groups."""
    return sum(line[name] for line in lines) / max(1, sum(line[among] for line in lines))


def tables(n_seeds: int, only: str | None) -> dict[str, list[dict[str, Any]]]:
    """Return all tables."""
    found: dict[str, list[dict[str, Any]]] = {"null": [], "power": [], "proxies": [], "direction": []}
    sizes = SIZES if n_seeds > 10 else SIZES[:1]
    cells = [{"design": d, "n_second": n, "effect": 0.0, "joint": "auto"} for d in NULL for n in sizes]
    for cell, lines in collected(cells if only in (None, "null") else [], n_seeds):
        found["null"].append(
            {
                "design": cell["design"],
                "samples": cell["n_second"],
                "tested groups": float(np.mean([line["tested"] for line in lines])),
                "jointly": f"{np.mean([line['joint'] for line in lines]):.0%}",
                "pairs with a false replication": f"{share(lines, 'replicated'):.2f}",
                "… of the opposite sign": f"{share(lines, 'opposite'):.2f}",
            }
        )
    cells = [
        {"design": d, "n_second": n, "effect": 1.0, "joint": "auto"}
        for d in ("numbers", "two classes", "survival", "support absent")
        for n in sizes
    ]
    for cell, lines in collected(cells if only in (None, "power") else [], n_seeds):
        found["power"].append(
            {
                "design": cell["design"],
                "samples": cell["n_second"],
                "true groups replicated": f"{ratio(lines, 'true', 'causal'):.2f}",
                "pairs with a false replication": f"{share(lines, 'false'):.2f}",
            }
        )
    cells = [
        {"design": "proxies", "n_second": n, "effect": 1.0, "joint": joint} for joint in (True, False) for n in sizes[-1:]
    ]
    for cell, lines in collected(cells if only in (None, "proxies") else [], n_seeds):
        found["proxies"].append(
            {
                "tests": "joint" if cell["joint"] else "alone",
                "samples": cell["n_second"],
                "true groups replicated": f"{ratio(lines, 'true', 'causal'):.2f}",
                "proxies replicated": f"{ratio(lines, 'false proxies', 'proxies'):.2f}",
                "pairs with a false replication": f"{share(lines, 'false'):.2f}",
            }
        )
    cells = [{"design": d, "n_second": 150, "effect": -1.0, "joint": "auto"} for d in ("numbers", "two classes")]
    for cell, lines in collected(cells if only in (None, "direction") else [], n_seeds):
        found["direction"].append(
            {
                "design": cell["design"],
                "samples": cell["n_second"],
                "pairs with a replicated group": f"{share(lines, 'replicated'):.2f}",
                "opposite effects per real group": f"{ratio(lines, 'opposite', 'causal'):.2f}",
            }
        )
    return {name: rows for name, rows in found.items() if rows}


def main() -> None:
    """Run the simulation and write the tables."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--seeds", type=int, default=SEEDS, help=f"pairs of cohorts per cell (default {SEEDS})")
    parser.add_argument("--only", choices=("null", "power", "proxies", "direction"), default=None, help="one table only")
    parser.add_argument("--page", action="store_true", help="write the tables into docs/evidence/replication.md")
    options = parser.parse_args()
    for name, rows in tables(options.seeds, options.only).items():
        print_table(name, rows)
        if options.page:
            replace_section(PAGE, name, markdown_table(rows))


if __name__ == "__main__":
    main()
