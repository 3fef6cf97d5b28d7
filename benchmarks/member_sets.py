"""Coverage and size of the likely members of groups beside SuSiE's credible sets, on simulated and real linkage blocks.

Genotypes are simulated (mosaics of founder haplotypes, in blocks of 40 SNPs), or taken from the 1000 Genomes subset of the
shared data (2,000 neighbouring SNPs without duplicates). Three SNPs have an effect on a number or, by a threshold on the
liability, on a label. A set of Coterie has the likely members (95 %) of a group selected at a false discovery rate of 10 %.
SuSiE (numbers only) has up to 10 effects and a coverage of 95 %. A set is right if it contains a SNP with an effect.

Seeds from 1000 on ("report") were not used for any decision. Every draw adds a line to results/member_sets.jsonl.
"""

from __future__ import annotations

import argparse
import json
import time
import warnings
from collections.abc import Callable, Sequence
from functools import lru_cache, partial
from itertools import pairwise
from typing import Any

import numpy as np
from _real import find_data
from _record import RESULTS, caption, source_digest, write_results
from _tables import DOCS, markdown_table, print_table, replace_section

import coterie

FDR, COVERAGE, N_CAUSAL = 0.1, 0.95, 3
FIRST_SEED = {"choose": 0, "report": 1000}
Sets = list[np.ndarray]


def simulated_genotypes(rng: np.random.Generator, n_samples: int, n_features: int = 1000, block: int = 40) -> np.ndarray:
    """Return dosages of two mosaics of eight founder haplotypes per block; the founder changes at a rate of 5 % per SNP."""
    n_blocks = -(-n_features // block)
    frequency = rng.uniform(0.05, 0.5, (n_blocks, 1, block))
    founders = rng.random((n_blocks, 8, block)) < frequency
    dosage = np.zeros((n_samples, n_blocks, block), dtype=np.int8)
    for _ in range(2):
        current = rng.integers(8, size=(n_samples, n_blocks))
        for position in range(block):
            moved = rng.random(current.shape) < 0.05
            current = np.where(moved, rng.integers(8, size=current.shape), current)
            dosage[:, :, position] += founders[np.arange(n_blocks), current, position]
    return dosage.reshape(n_samples, -1)[:, :n_features]


@lru_cache(maxsize=1)
def _real_genotypes() -> np.ndarray:
    """Return the genotypes of the shared PLINK files, missing calls as the most frequent genotype."""
    from bed_reader import open_bed

    path = find_data("plink_eur")
    if path is None:
        raise FileNotFoundError("The folder plink_eur of the shared data is missing.")
    values = np.asarray(open_bed(next(path.glob("*.bed"))).read(dtype="int8"))
    values[values < 0] = 0
    return values


def real_genotypes(rng: np.random.Generator, n_samples: int, n_features: int = 2000) -> np.ndarray:
    """Return different neighbouring SNPs with a minor allele frequency of at least 5 %, from a random place."""
    del n_samples  # all of them
    every = _real_genotypes()
    first = int(rng.integers(every.shape[1] - 2 * n_features))
    own = every[:, first : first + 2 * n_features]
    share = own.mean(axis=0) / 2
    own = own[:, np.minimum(share, 1 - share) >= 0.05]
    return np.asarray(own[:, np.sort(np.unique(own, axis=1, return_index=True)[1])][:, :n_features])


def draw(make: Callable[..., np.ndarray], binary: bool, n_samples: int, explained: float, seed: int) -> Any:
    """Return genotypes, an outcome, and the SNPs with an effect, each of which explains the same share of the liability."""
    rng = np.random.default_rng([seed, 11])
    X = make(rng, n_samples)
    places = np.linspace(0, X.shape[1], N_CAUSAL + 1).astype(int)
    causal = np.array([rng.integers(first, last) for first, last in pairwise(places)])
    while (X[:, causal].std(axis=0) == 0).any():
        causal = np.array([rng.integers(first, last) for first, last in pairwise(places)])
    own = (X[:, causal] - X[:, causal].mean(axis=0)) / X[:, causal].std(axis=0)
    liability = np.sqrt(explained) * own @ rng.choice([-1.0, 1.0], N_CAUSAL)
    liability += np.sqrt(1 - N_CAUSAL * explained) * rng.standard_normal(len(X))
    return X, (liability > np.median(liability)).astype(int) if binary else liability, causal


def coterie_sets(X: np.ndarray, y: np.ndarray, binary: bool, seed: int) -> tuple[Sets, Sets]:
    """Return the likely members of the selected groups, and all their members."""
    model = (coterie.GroupDiscoveryClassifier if binary else coterie.GroupDiscoveryRegressor)(20).fit(X, y)
    found = coterie.group_confidence(model, X, y, random_state=seed).select(fdr=FDR)
    return [group.likely_members(COVERAGE) for group in found], [group.members for group in found]


def susie_sets(X: np.ndarray, y: np.ndarray, binary: bool, seed: int) -> tuple[Sets, Sets] | None:
    """Return SuSiE's credible sets for numbers."""
    if binary:
        return None
    from pysusie import susie

    del seed
    own = X[:, X.std(axis=0) > 0].astype(np.float64)
    varying = np.flatnonzero(X.std(axis=0) > 0)
    sets = susie((own - own.mean(axis=0)) / own.std(axis=0), y - y.mean(), L=10, coverage=COVERAGE)["sets"]["cs"]
    found = [varying[np.asarray(members, dtype=int)] for members in (sets.values() if isinstance(sets, dict) else sets or [])]
    return found, found


METHODS = {"Coterie": coterie_sets, "SuSiE": susie_sets}
SITUATIONS: dict[str, Callable[[int], Any]] = {
    f"{name}, {kind}, {size} samples, {explained:.0%} each": partial(draw, make, kind == "label", size, explained)
    for name, make, size, strengths in (
        ("simulated", simulated_genotypes, 500, (0.04, 0.08)),
        ("simulated", simulated_genotypes, 2000, (0.02, 0.04)),
        ("1000 Genomes", real_genotypes, 379, (0.06, 0.12)),
    )
    for explained in strengths
    for kind in ("number", "label")
}


def one_run(situation: str, method: str, seed: int) -> dict[str, Any] | None:
    """Return the sets of one method in one draw, judged by the SNPs with an effect."""
    X, y, causal = SITUATIONS[situation](seed)
    start = time.process_time()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = METHODS[method](X, y, ", label," in situation, seed)
    if found is None:
        return None
    likely, groups = found
    return {
        "sizes": [len(own) for own in likely],
        "group_sizes": [len(own) for own in groups],
        "right": [bool(np.isin(causal, own).any()) for own in likely],
        "group_right": [bool(np.isin(causal, own).any()) for own in groups],
        "found": float(np.mean([any(snp in own for own in likely) for snp in causal])),
        "cpu_s": time.process_time() - start,
    }


def summary(situation: str, method: str, runs: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Return one row of the table."""
    joined = {name: np.concatenate([run[name] for run in runs]) for name in ("sizes", "group_sizes", "right", "group_right")}
    whole = joined["group_right"].astype(bool)
    n_sets = len(whole)
    return {
        "situation": situation,
        "method": method,
        "draws": len(runs),
        "sets": n_sets,
        "coverage": float(joined["right"].mean()) if n_sets else None,
        "coverage within right groups": float(joined["right"][whole].mean()) if whole.any() else None,
        "median size": float(np.median(joined["sizes"])) if n_sets else None,
        "mean size": float(joined["sizes"].mean()) if n_sets else None,
        "mean group": float(joined["group_sizes"].mean()) if n_sets else None,
        "effects found": float(np.mean([run["found"] for run in runs])),
        "CPU s": float(np.mean([run["cpu_s"] for run in runs])),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--draws", type=int, default=50, help="data sets per situation (default 50)")
    parser.add_argument("--seeds", choices=tuple(FIRST_SEED), default="report", help="seeds to decide with or to publish")
    parser.add_argument("--methods", nargs="+", choices=tuple(METHODS), default=list(METHODS))
    parser.add_argument("--quick", action="store_true", help="one draw per situation")
    parser.add_argument("--page", action="store_true", help="write the table of docs/evidence/error-control.md")
    options = parser.parse_args()
    options.source = source_digest()
    RESULTS.mkdir(exist_ok=True)
    path = RESULTS / f"member_sets{'-quick' if options.quick else ''}.jsonl"
    lines = [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []
    known = {
        (x["situation"], x["method"], x["seed"]): x for x in lines if x["source"] == options.source or x["method"] != "Coterie"
    }
    first = FIRST_SEED[options.seeds]
    rows = []
    for situation in SITUATIONS:
        for method in options.methods:
            runs = []
            for seed in range(first, first + (1 if options.quick else options.draws)):
                key = situation, method, seed
                found = known.get(key) or one_run(*key)
                if found is None:
                    break
                if key not in known:
                    found |= {"situation": situation, "method": method, "seed": seed, "source": options.source}
                    with path.open("a", encoding="utf-8") as file:
                        file.write(json.dumps(found) + "\n")
                runs.append(found)
            if runs:
                rows.append(summary(situation, method, runs))
                print_table("", rows[-1:])
    print_table("Likely members and credible sets", rows)
    write_results("member_sets", options, rows=rows)
    if options.page:
        shown = [{name: f"{value:.2f}" if isinstance(value, float) else value for name, value in row.items()} for row in rows]
        replace_section(DOCS / "error-control.md", "member sets", f"{caption()}\n\n{markdown_table(shown)}")


if __name__ == "__main__":
    main()
