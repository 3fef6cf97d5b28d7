"""TPAMI 2016, Figs 4 to 8 on SNPs: PCC, SU and embedded cross-validation.

Real genotypes (369 Europeans, 54,051 SNPs) with a simulated trait split at its median, and data of the psoriasis shape
(2,721 x 529,651, four fifths for training, as in Table 3) with labels as planted. A tenth of the SNPs, with three in ten
labels redrawn at random, has more splits. A curve has ten points as in the paper: ten rounds of 1, 2, …, 10 features, each a
separate fit. Our defaults, whose path has all sizes, are added. Embedded cross-validation (Fig. 8) has five folds that use
their training parts (ours) or their own parts only (the paper's partitions). Roughness is the mean absolute second difference
of a curve. Selected SNPs are tested with a linear SVM. A stopped run continues after the last finished split. Writes sections
of docs/evidence/paper-comparisons.md and docs/evidence/figures.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from _models import warnings_counted
from _real import data_path
from _record import RESULTS, read_arguments, write_results
from _smoothness import paired, roughness, spread
from _tables import DOCS, FIGURES, markdown_table, print_table, replace_section
from sklearn.model_selection import StratifiedShuffleSplit
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import LinearSVC

from coterie import GroupDiscoveryClassifier
from coterie.data import open_features
from coterie.datasets import make_big_dimensional
from coterie.metrics import redundancy_rate, success_hits
from coterie.plots import affiliated_counts, comparison_curves

ROUNDS = 10
SIZES = tuple(ROUNDS * k for k in range(1, 11))
SHOWN = (10, 20, 50, 100)
FLIPPED = 0.3
SU = {"correlation": "su", "threshold": 0.6}
METHODS: dict[str, dict[str, Any]] = {
    "GDM-PCC": {},
    "GDM-SU": SU,
    "GDM, τ = 0 (FGM)": {"correlation": None},
    "ECV, training parts": {"cv": 5},
    "ECV, fold parts": {"cv": 5, "cv_part": "fold"},
}
PATH = "GDM-PCC, Coterie's defaults"
FIRST = "GDM-PCC"


class Genotypes(NamedTuple):
    """Feature-major data, labels, planted groups if any, and a description for the page."""

    X: np.ndarray
    y: np.ndarray
    groups: Any
    n_splits: int
    words: str
    standardize: bool = False


def psoriasis(quick: bool, seed: int, flipped: float = 0.0, n_features: int | None = None, n_splits: int = 1) -> Genotypes:
    size = {"n_samples": 500, "n_features": 4000} if quick else {"n_samples": 2721, "n_features": n_features}
    data = make_big_dimensional("psoriasis", random_state=seed, **size)
    rng = np.random.default_rng(seed)
    anew = rng.random(len(data.y)) < flipped
    y = np.where(anew, rng.choice([-1, 1], size=len(data.y)), data.y)
    labels = f"{flipped:.0%} of the labels redrawn at random" if flipped else "labels as planted"
    words = f"Psoriasis shape: {data.X.shape[0]:,} samples, 80 % for training, {data.X.shape[1]:,} SNPs (int8); {labels}."
    return Genotypes(data.X, y, data.groups, 2 if quick else n_splits, words)


def europeans(quick: bool, seed: int) -> Genotypes:
    folder = data_path("plink_eur")
    data = open_features(folder / "EUR_subset.bed", phenotype=folder / "EUR_subset.pheno.covars")
    X = np.asarray(data.source.columns(np.arange(4000 if quick else data.source.shape[1])))
    y = np.where(data.y > np.median(data.y), 1, -1)
    words = f"1000 Genomes: {X.shape[0]:,} Europeans, 80 % for training, {X.shape[1]:,} SNPs, standardised; "
    words += "a simulated trait, split at its median."
    return Genotypes(X, y, None, 2 if quick else 20, words, standardize=True)


DATA: dict[str, Callable[[bool, int], Genotypes]] = {
    "europeans": europeans,
    "tenth": partial(psoriasis, flipped=FLIPPED, n_features=52_965, n_splits=5),
    "psoriasis": psoriasis,
}


def group_discovery(**parameters: Any) -> GroupDiscoveryClassifier:
    """Return the paper's settings: no standardisation, and groups from the search (complete groups in Fig. 7 only)."""
    return GroupDiscoveryClassifier(**{"C": 1.0, "standardize": False, "affiliates": "ranked", **parameters})


def fits(
    X: np.ndarray, y: np.ndarray, seed: int, sizes: tuple[int, ...], threads: int, standardize: bool
) -> Iterator[tuple[str, int, Any, float]]:
    """Yield every method at every number of features: name, number, selected features, seconds."""
    for name, parameters in METHODS.items():
        for size in sizes:
            model = group_discovery(
                n_features_to_select=size,
                n_features_per_round=size // ROUNDS,
                random_state=seed,
                n_jobs=threads,
                standardize=standardize,
                **parameters,
            )
            began = time.perf_counter()
            model.fit(X, y)
            yield name, size, model.support_features_, time.perf_counter() - began
    began = time.perf_counter()
    model = GroupDiscoveryClassifier(sizes[-1], C=1.0, affiliates="ranked", n_jobs=threads).fit(X, y)
    seconds = time.perf_counter() - began
    for size in sizes:
        yield PATH, size, model.support_features_[:size], seconds


def run(data: Genotypes, sizes: tuple[int, ...], options: Any, name: str) -> list[dict[str, Any]]:
    """Return one row per split, method and number of features; rows are saved after each split."""
    rows = earlier_rows(data, options, name)
    done = {row["fold"] for row in rows}
    splits = StratifiedShuffleSplit(data.n_splits, test_size=0.2, random_state=options.seed)
    for fold, (train, test) in enumerate(splits.split(np.zeros((len(data.y), 1)), data.y)):
        if fold in done:
            continue
        X = np.take(data.X.T, train, axis=1).T  # feature-major, without a sample-major copy of all data
        for method, size, features, seconds in fits(X, data.y[train], fold, sizes, options.threads, data.standardize):
            chosen = np.sort(features)
            judge = make_pipeline(StandardScaler(), LinearSVC(C=1.0, random_state=0))
            judge.fit(X[:, chosen].astype(np.float64), data.y[train])
            accuracy = judge.score(data.X[:, chosen][test].astype(np.float64), data.y[test])
            redundancy = redundancy_rate(X[:, chosen].astype(np.float64))
            row = {"method": method, "n_features": size, "fold": fold, "status": "ok", "n_selected": len(chosen)}
            row |= {"accuracy": accuracy, "redundancy_rate": redundancy, "fit_seconds": seconds}
            row |= {"hits": None if data.groups is None else str(success_hits(data.groups, features))}
            rows.append(row)
            print(f"{name}, split {fold}: {method}, {size} features: {accuracy:.3f} in {seconds:.1f} s", flush=True)
        write_results(f"snp_{name}", options, words=data.words, rows=rows)
    return rows


def earlier_rows(data: Genotypes, options: Any, name: str) -> list[dict[str, Any]]:
    """Return the finished splits of an earlier run of the same code on the same data."""
    path = RESULTS / f"snp_{name}.json"
    if options.quick or not path.exists():
        return []
    earlier = json.loads(path.read_text(encoding="utf-8"))
    same = (earlier["options"]["source"], earlier["options"]["seed"], earlier.get("words"))
    return earlier["rows"] if same == (options.source, options.seed, data.words) else []


def table(rows: list[dict[str, Any]], sizes: tuple[int, ...]) -> list[dict[str, Any]]:
    """Return accuracies at some sizes, mean and roughness of the curves, and differences to plain GDM-PCC by split."""
    curves = {
        method: np.array(
            [
                [r["accuracy"] for r in rows if (r["method"], r["fold"]) == (method, fold)]
                for fold in sorted({r["fold"] for r in rows})
            ]
        )
        for method in dict.fromkeys(r["method"] for r in rows)
    }
    base = curves[FIRST]
    result = []
    for method, mine in curves.items():
        last = [r for r in rows if r["method"] == method and r["n_features"] == sizes[-1]]
        roughnesses = [roughness(curve) for curve in mine]
        same = method == FIRST
        result.append(
            {
                "method": method,
                **{f"accuracy, {size}": f"{mine[:, sizes.index(size)].mean():.3f}" for size in SHOWN if size in sizes},
                "mean of the curve": f"{mine.mean():.4f}",
                f"minus {FIRST}": "" if same else paired(mine.mean(axis=1), base.mean(axis=1)),
                "roughness": spread(roughnesses),
                f"roughness minus {FIRST}": "" if same else paired(roughnesses, [roughness(curve) for curve in base]),
                f"redundancy, {sizes[-1]}": f"{np.mean([r['redundancy_rate'] for r in last]):.3f}",
                f"seconds, {sizes[-1]}": f"{np.mean([r['fit_seconds'] for r in last]):.1f}",
            }
        )
    return result


def affiliated(data: Genotypes, name: str, size: int, options: Any) -> tuple[str, list[dict[str, Any]]]:
    """Return Fig. 7 (affiliated against support features, complete groups, first split) and rows with planted groups hit."""
    train, _ = next(
        StratifiedShuffleSplit(1, test_size=0.2, random_state=options.seed).split(np.zeros((len(data.y), 1)), data.y)
    )
    X = np.take(data.X.T, train, axis=1).T
    found, rows = {}, []
    for method in (FIRST, "GDM-SU"):
        model = group_discovery(
            n_features_to_select=size,
            n_features_per_round=size // ROUNDS,
            affiliates="complete",
            n_jobs=options.threads,
            standardize=data.standardize,
            **METHODS[method],
        )
        began = time.perf_counter()
        model.fit(X, data.y[train])
        seconds = time.perf_counter() - began
        found[method] = model.groups_
        row = {"method": method, "support": len(model.groups_), "affiliated": len(model.groups_.members) - len(model.groups_)}
        row |= {"seconds": f"{seconds:.1f}", "pairs evaluated": model.n_correlations_evaluated_}
        if data.groups is not None:
            hit = sum(bool(np.isin(group.members, model.groups_.members).any()) for group in data.groups)
            row |= {
                "success hits": str(success_hits(data.groups, model.groups_)),
                "planted groups hit": f"{hit} of {len(data.groups)}",
            }
        rows.append(row)
    path = FIGURES / f"tpami-snp-{name}-affiliated.png"
    if not options.quick:
        affiliated_counts(found, title=f"{name} (TPAMI Fig. 7)").savefig(path, dpi=100)
    return f"![affiliated SNPs, {name}](figures/{path.name})", rows


def draw(rows: list[dict[str, Any]], name: str) -> str:
    import pandas as pd

    path = FIGURES / f"tpami-snp-{name}.png"
    comparison_curves(pd.DataFrame(rows), ("accuracy", "redundancy_rate", "fit_seconds")).savefig(path, dpi=100)
    return f"![{path.stem}](figures/{path.name})"


def main() -> None:
    options = read_arguments(__doc__, parts=tuple(DATA))
    sizes = SIZES[:4] if options.quick else SIZES
    with warnings_counted():
        for name in [options.only] if options.only else list(DATA):
            data = DATA[name](options.quick, options.seed)
            rows = run(data, sizes, options, name)
            judged = table(rows, sizes)
            print_table(data.words, judged)
            picture, counts = affiliated(data, name, sizes[-1], options)
            print_table("Fig. 7", counts)
            write_results(f"snp_{name}", options, words=data.words, rows=rows, table=judged, affiliated=counts)
            if not options.quick:
                text = "\n\n".join([data.words, draw(rows, name), markdown_table(judged), markdown_table(counts), picture])
                replace_section(DOCS / "paper-comparisons.md", f"snp {name}", text)


if __name__ == "__main__":
    main()
