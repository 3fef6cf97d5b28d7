"""Loci that families produce: simulated pedigrees without and with causal loci, analysed in six ways.

Genotypes are those of siblings: ten chromosomes with linkage, families of equal size. The trait has a part that families
share: a common environment, or a polygenic background on chromosomes 6 to 10. Chromosomes 1 to 5 have no effect, except in
the last part, in which chromosomes 1 to 3 have one locus each. A claim is a group that is selected at a false discovery rate
of 10 %, in the searches of all chromosomes together.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from _dependent import families, populations
from _models import warnings_counted
from _record import read_arguments, write_results
from _tables import DOCS, markdown_table, print_table, replace_section

import coterie
from coterie import polygenic_offset, pooled_groups

LEVEL = 0.1
N_CHROMOSOMES, N_SNPS = 10, 60
N_EMPTY = 5  # chromosomes 1 to 5 have no polygenic effects
N_HAPLOTYPES = 40
# Data sets with one account of relatedness, and with none or several: claims are frequent without, and five searches are slow.
N_SETS = {"null": 100, "classes": 100, "loci": 30, "pitfalls": 100}
N_OTHER = 30
SINGLE = ("groups", "offset")
LOCI = (20, N_SNPS + 20, 2 * N_SNPS + 20)
SETTINGS = {"max_features_to_select": 20}
METHODS = (
    "nothing",
    "groups",
    "offset",
    "groups and offset",
    "offset by chromosome",
    "groups and offset by chromosome",
)


@dataclass(frozen=True)
class Pedigrees:
    """Genotypes, families, chromosomes of the SNPs, and the trait."""

    X: np.ndarray
    family: np.ndarray
    chromosome: np.ndarray
    y: np.ndarray


def genotypes(n_families: int, n_children: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Return genotypes of siblings, and their families. Founders are mosaics of common haplotypes."""
    n_snps = N_CHROMOSOMES * N_SNPS
    own = np.arange(n_snps)
    first = own % N_SNPS == 0
    pool = rng.random((N_HAPLOTYPES, n_snps)) < rng.uniform(0.1, 0.5, n_snps)

    def founder() -> np.ndarray:
        ends = (rng.random(n_snps) < 0.15) | first
        return pool[rng.integers(0, N_HAPLOTYPES, ends.sum())[np.cumsum(ends) - 1], own]

    def gamete(parent: np.ndarray) -> np.ndarray:
        crossing = np.where(first, rng.random(n_snps) < 0.5, rng.random(n_snps) < 1.0 / N_SNPS)
        return parent[np.cumsum(crossing) % 2, own]

    rows = []
    for _ in range(n_families):
        father, mother = (np.stack([founder(), founder()]) for _ in range(2))
        rows += [gamete(father).astype(np.int8) + gamete(mother) for _ in range(n_children)]
    return np.array(rows), np.repeat(np.arange(n_families), n_children)


def simulated(trait: str, n_families: int, n_children: int, seed: int, *, classes: bool = False) -> Pedigrees:
    """Return pedigrees with a trait: ``"none"``, ``"environment"``, ``"polygenic"`` or ``"loci"``."""
    rng = np.random.default_rng(seed)
    X, family = genotypes(n_families, n_children, rng)
    chromosome = np.repeat(np.arange(1, N_CHROMOSOMES + 1), N_SNPS)
    scale = np.maximum(X.std(axis=0), 1e-9)
    Z = (X - X.mean(axis=0)) / scale
    noise = rng.standard_normal(len(X))
    shared = np.zeros(len(X))
    if trait == "environment":
        shared = rng.standard_normal(n_families)[family]
    elif trait != "none":
        shared = Z @ np.where(chromosome > N_EMPTY, rng.standard_normal(Z.shape[1]), 0.0)
        shared /= shared.std()
    y = np.sqrt(0.5) * shared + np.sqrt(0.5 if trait != "none" else 1.0) * noise
    if trait == "loci":
        y = y + 0.35 * Z[:, list(LOCI)].sum(axis=1)
    if classes:
        y = (y > np.median(y)).astype(int)
    return Pedigrees(X, family, chromosome.astype(str), y)


def analysed(data: Pedigrees, method: str, threads: int) -> tuple[list[int], bool]:
    """Return the support features of the claimed groups, and whether the held-out score is clearly above the baseline."""
    options: dict[str, Any] = {}
    if "groups" in method:
        options["groups"] = data.family
    if "by chromosome" in method:
        offset = polygenic_offset(data.X, data.y, chromosomes=data.chromosome, n_jobs=threads)
        parts = [np.flatnonzero(data.chromosome == name) for name in offset.chromosomes[:N_EMPTY]]
        results = [
            discovered(data.X[:, part], data.y, threads, offset=offset.of(data.chromosome[part[0]]), **options)
            for part in parts
        ]
        selected = pooled_groups([result.confidence for result in results if result.confidence is not None])
        found = [
            int(part[group.support])
            for part, groups in zip(parts, selected, strict=True)
            for group in groups.select(fdr=LEVEL)
        ]
        return found, any(is_better(result) for result in results)
    if "offset" in method:
        options["offset"] = polygenic_offset(data.X, data.y, n_jobs=threads).whole
    result = discovered(data.X, data.y, threads, **options)
    return [int(group.support) for group in result.select(fdr=LEVEL)], is_better(result)


def discovered(X: np.ndarray, y: np.ndarray, threads: int, **options: Any) -> coterie.Discovery:
    """Return the result of the whole procedure."""
    with warnings_counted():
        return coterie.discover(X, y, n_jobs=threads, **SETTINGS, **options)


def is_better(result: coterie.Discovery) -> bool:
    """Return True if the interval of the held-out score lies above the baseline."""
    held_out = result.held_out
    return held_out is not None and held_out.predicts


def linked(data: Pedigrees, support: int) -> int | None:
    """Return the causal locus of a claim: on the same chromosome, at most ten SNPs away. None if there is none."""
    near = [locus for locus in LOCI if data.chromosome[locus] == data.chromosome[support] and abs(locus - support) <= 10]
    return near[0] if near else None


def row_of(name: str, method: str, records: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Return the summary of some data sets."""
    n_sets = len(records)
    return {
        "trait": name,
        "accounted for by": method,
        "data sets": n_sets,
        "with a false claim": f"{sum(record['false'] > 0 for record in records)}",
        "false claims per set": float(np.mean([record["false"] for record in records])),
        "score above baseline": f"{sum(record['better'] for record in records)}",
        "loci found per set": float(np.mean([record["true"] for record in records])) if "loci" in name else None,
        "median s": float(np.median([record["seconds"] for record in records])),
    }


def run(make: Callable[[int], Pedigrees], method: str, seeds: range, threads: int, *, loci: bool) -> list[dict[str, Any]]:
    """Analyse some data sets. Claims on chromosomes 6 to 10 are neither true nor false, because these have effects."""
    records = []
    for seed in seeds:
        data, began = make(seed), time.perf_counter()
        claims, better = analysed(data, method, threads)
        tested = [support for support in claims if int(data.chromosome[support]) <= N_EMPTY]
        found = {linked(data, support) for support in tested} - {None} if loci else set()
        false = sum(not loci or linked(data, support) is None for support in tested)
        records.append({"false": false, "true": len(found), "better": better, "seconds": time.perf_counter() - began})
    return records


def other_data(quick: bool, threads: int) -> list[dict[str, Any]]:
    """Return the rows for the families and populations of pitfalls.py, which have no effects, with the default settings."""
    rows = []
    for name, make in (("60 families of 4, environment", families), ("two populations", populations)):
        for method, n_sets in (("nothing", N_OTHER), ("offset", N_SETS["pitfalls"])):
            records = []
            for seed in range(2 if quick else n_sets):
                problem, began = make(seed), time.perf_counter()
                known = {"offset": polygenic_offset(problem.X, problem.y, n_jobs=threads).whole} if method == "offset" else {}
                with warnings_counted():
                    result = coterie.discover(problem.X, problem.y, random_state=seed, n_jobs=threads, **known)
                n_claims = len(result.select(fdr=LEVEL))
                records.append({"false": n_claims, "better": is_better(result), "seconds": time.perf_counter() - began})
            rows.append(row_of(name, method, records))
    return [{name: value for name, value in row.items() if name != "loci found per set"} for row in rows]


def main() -> None:
    options = read_arguments(__doc__, parts=("null", "classes", "loci", "pitfalls"))
    size = (6, 20) if options.quick else (12, 20)
    kinds = {
        "null": [("environment", False), ("polygenic", False)],
        "classes": [("environment", True)],
        "loci": [("loci", False)],
    }
    first = options.seed or 1000
    if options.only in (None, "pitfalls"):
        rows = other_data(options.quick, options.threads)
        print_table("Families and populations of pitfalls.py", rows)
        write_results("families_pitfalls", options, rows=rows)
        if not options.quick:
            replace_section(DOCS / "families.md", "pitfalls", markdown_table(rows))
    for part, traits in kinds.items():
        if options.only not in (None, part):
            continue
        rows, details = [], {}
        for trait, classes in traits:
            name = f"{trait}, {'two classes' if classes else 'numbers'}"
            for method in METHODS:
                n_sets = 2 if options.quick else N_SETS[part] if method in SINGLE else N_OTHER
                records = run(
                    lambda seed, trait=trait, classes=classes: simulated(trait, *size, seed, classes=classes),
                    method, range(first, first + n_sets), options.threads, loci=trait == "loci",
                )  # fmt: skip
                details[f"{name}, {method}"] = records
                rows.append(row_of(name, method, records))
                print(rows[-1], flush=True)
        shown = [name for name in rows[0] if name != "loci found per set" or part == "loci"]
        rows = [{name: row[name] for name in shown} for row in rows]
        print_table(f"Claims at a false discovery rate of {LEVEL}", rows)
        write_results(f"families_{part}", options, rows=rows, details=details)
        if not options.quick:
            replace_section(DOCS / "families.md", part, markdown_table(rows))


if __name__ == "__main__":
    main()
