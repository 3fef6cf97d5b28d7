"""Warnings about data: how often dependent samples are noticed, and how often independent ones are suspected.

Each design is drawn 100 times, those of more than 1,000 rows 20 times. Thresholds were chosen with seeds below 100 and with
the data sets marked "choose". This script uses other seeds and, for most designs, other settings. Writes the tables of
docs/evidence/cautions.md.
"""

from __future__ import annotations

import time
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np
from _dependent_data import (
    Simulated,
    class_clusters,
    donors,
    families,
    genotypes,
    heavy_tails,
    independent,
    populations,
    repeated_rows,
)
from _real import find_data, load
from _record import read_arguments, write_results
from _tables import DOCS, markdown_table, print_table, replace_section
from scipy import sparse

from coterie.cautions import AboutSamples, find_cautions
from coterie.data import as_source, open_features

PAGE = DOCS / "cautions.md"
FIRST_SEED, MANY_ROWS = 20_000, 1000
Draw = Callable[[np.random.Generator], Simulated]
# Designs with the kind of caution that is right.
DEPENDENT: dict[str, tuple[Draw, str]] = {
    "50 subjects × 5 rows, correlation 0.3": (repeated_rows, "dependent samples"),
    "50 subjects × 3–10 rows, 0.3": (partial(repeated_rows, rows=(3, 10)), "dependent samples"),
    "50 subjects × 3–10 rows, 0.5, neighbouring features correlated": (
        partial(repeated_rows, rows=(3, 10), within=0.5, noise="neighbours"),
        "dependent samples",
    ),
    "50 subjects × 3–10 rows, 0.5, five factors": (
        partial(repeated_rows, rows=(3, 10), within=0.5, noise="factors"),
        "dependent samples",
    ),
    "100 subjects × 2 rows, 0.5": (partial(repeated_rows, n_subjects=100, rows=(2, 2), within=0.5), "dependent samples"),
    "50 subjects × 3–10 rows, 0.3, numeric target": (
        partial(repeated_rows, rows=(3, 10), task="regression"),
        "dependent samples",
    ),
    "600 subjects × 3–10 rows, 0.5": (partial(repeated_rows, n_subjects=600, rows=(3, 10), within=0.5), "dependent samples"),
    "50 subjects × 5 rows, 0.5, 100 features": (partial(repeated_rows, within=0.5, n_features=100), "dependent samples"),
    "8 donors × 60 cells, 0.2": (donors, "dependent samples"),
    "8 donors × 60 cells, 0.1": (partial(donors, within=0.1), "dependent samples"),
    "10 donors × 20–120 cells, 0.2": (partial(donors, n_donors=10, cells=(20, 120)), "dependent samples"),
    "8 donors × 60 cells of 4 types, 0.2": (partial(donors, n_types=4), "dependent samples"),
    "8 donors × 300 cells, log counts (sparse)": (partial(donors, cells=(300, 300), counts=True), "dependent samples"),
    "60 families, 2 parents and 3 children": (families, "related samples"),
    "80 pairs of siblings": (partial(families, n_families=80, children=2, parents=False), "related samples"),
    "20 trios and 200 unrelated": (partial(families, n_families=20, children=1, single=200), "related samples"),
    "3 populations, distance (FST) 0.05": (populations, "population structure"),
    "2 populations, FST 0.02": (partial(populations, n_populations=2, distance=0.02), "population structure"),
}
INDEPENDENT: dict[str, Draw] = {
    "independent features": independent,
    "neighbouring features correlated": partial(independent, noise="neighbours"),
    "five factors, one predicts": partial(independent, noise="factors"),
    "heavy tails, random labels": heavy_tails,
    "10 features": partial(independent, n_features=10, signal=3.0),
    "2 classes": class_clusters,
    "10 classes": partial(class_clusters, n_classes=10, n_samples=400),
    "2 classes × 3 subtypes": partial(class_clusters, n_subtypes=3),
    "4 classes × 3 subtypes": partial(class_clusters, n_classes=4, n_subtypes=3, n_samples=400),
    "2 classes × 6 subtypes": partial(class_clusters, n_subtypes=6, n_samples=400),
    "2 classes × 6 subtypes, 2,400 rows": partial(class_clusters, n_subtypes=6, n_samples=2400),
    "genotypes of one population, heritable trait": genotypes,
    "3 populations, trait does not differ": partial(populations, shift=0.0),
}


def with_leak(rng: np.random.Generator, *, errors: float = 0.0, noise: float = 0.0, task: str = "classification") -> Simulated:
    """Return independent samples and a copy of the label with errors (a share of the labels) or noise (in their spread)."""
    X, y = independent(rng)[:2]
    if task == "regression":
        y = X[:, ::50].sum(axis=1) + 3.0 * rng.standard_normal(len(y))
    copy = np.where(rng.random(len(y)) < errors, rng.permutation(y), y) + noise * y.std() * rng.standard_normal(len(y))
    return Simulated(np.column_stack([X, copy]), y, task)


LEAKS: dict[str, Draw] = {
    "classes, copied": with_leak,
    **{f"classes, {errors:.0%} replaced by random labels": partial(with_leak, errors=errors) for errors in (0.02, 0.05, 0.1)},
    **{f"classes, noise of {noise} standard deviations": partial(with_leak, noise=noise) for noise in (0.3, 0.6, 1.0)},
    **{
        f"numbers, noise of {noise} standard deviations": partial(with_leak, noise=noise, task="regression")
        for noise in (0.05, 0.2, 0.3, 0.5)
    },
}
CHOSEN_WITH = ("gordon", "khan", "chowdary", "madelon", "usps", "orl", "basehock", "christensen")
OTHERS = ("glioma", "coil20", "binaryalphadigs", "mfeat", "gisette_valid", "spambase", "gravier", "shipp", "su", "mnist_3v8")
OTHERS += ("dorothea", "20news_bigrams")
BUILT_IN = ("breast_cancer", "digits", "wine", "iris", "diabetes")


def kinds(data: Simulated) -> set[str]:
    """Return the kinds of the cautions about a data set."""
    return {caution.kind for caution in find_cautions(as_source(data.X), AboutSamples(data.y, data.task))}


def rate(name: str, draw: Draw, right: str | None, options: Any, n_sets: int) -> dict[str, Any]:
    """Return a row with the numbers of cautions over many draws."""
    counts: Counter[str] = Counter()
    if len(draw(np.random.default_rng(0)).y) > MANY_ROWS:
        n_sets = max(1, n_sets // 5)
    began = time.process_time()
    for seed in range(n_sets):
        counts.update(kinds(draw(np.random.default_rng(FIRST_SEED + 1000 * options.seed + seed))))
    others = ", ".join(f"{kind}: {count}" for kind, count in sorted(counts.items()) if kind != right) or "none"
    row: dict[str, Any] = {"design": name}
    if right is not None:
        row |= {"right caution": right, "sets": n_sets, "noticed": counts[right], "other cautions": others}
    else:
        row |= {"sets": n_sets, "cautions": others}
    row["CPU s per set (with drawing)"] = (time.process_time() - began) / n_sets
    print(row, flush=True)
    return row


def real_sets(options: Any) -> Iterator[tuple[str, str, Any, AboutSamples]]:
    """Yield the real data sets that are available: name, use, features, and what is known about the samples."""
    import sklearn.datasets

    for name in ("khan", "gravier") if options.quick else (*CHOSEN_WITH, *OTHERS):
        if find_data(f"{name}.npz") is not None:
            X, y = load(name)
            source = as_source(sparse.csc_array(X) if sparse.issparse(X) else X)
            yield name, "choose" if name in CHOSEN_WITH else "report", source, AboutSamples(y, "classification")
    for name in BUILT_IN:
        X, y = getattr(sklearn.datasets, f"load_{name}")(return_X_y=True)
        yield name, "report", as_source(X), AboutSamples(y, "regression" if name == "diabetes" else "classification")
    cells, snps = find_data("pbmc68k_reduced.h5ad"), find_data("plink_eur")
    if cells is not None:
        data = open_features(cells, label="bulk_labels")
        yield "pbmc68k_reduced", "report", data.source, AboutSamples(data.y, "classification", columns=data.other_columns)
    if snps is not None:
        data = open_features(snps / "EUR_subset.bed", phenotype=snps / "EUR_subset.pheno.covars", label="PHENO")
        yield "plink_eur", "report", data.source, AboutSamples(data.y, "regression", is_genetic=True)


def real_row(name: str, use: str, source: Any, about: AboutSamples) -> dict[str, Any]:
    """Return the cautions about a real data set."""
    began = time.process_time()
    found = find_cautions(source, about)
    n_samples, n_features = source.shape
    return {
        "data": name,
        "to": use,
        "samples × features": f"{n_samples:,} × {n_features:,}",
        "cautions": ", ".join(f"{caution.kind}{_figure(caution.text)}" for caution in found) or "none",
        "CPU s": time.process_time() - began,
    }


def _figure(text: str) -> str:
    """Return the share of duplicates, if the caution is about them."""
    return f" ({text.split()[1]} %)" if text.startswith("About") else ""


def main() -> None:
    options = read_arguments(__doc__, parts=("dependent", "independent", "leaks", "real"))
    n_sets = 3 if options.quick else 100
    tables: dict[str, list[dict[str, Any]]] = {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        if options.only in (None, "dependent"):
            tables["dependent"] = [rate(name, draw, kind, options, n_sets) for name, (draw, kind) in DEPENDENT.items()]
        if options.only in (None, "independent"):
            tables["independent"] = [rate(name, draw, None, options, n_sets) for name, draw in INDEPENDENT.items()]
        if options.only in (None, "leaks"):
            tables["leaks"] = [rate(name, draw, "leak", options, n_sets) for name, draw in LEAKS.items()]
        if options.only in (None, "real"):
            tables["real"] = [real_row(*one) for one in real_sets(options)]
    for name, rows in tables.items():
        print_table(name, rows)
        if not options.quick:
            replace_section(PAGE, name, markdown_table(rows))
    write_results("cautions", options, **tables)


if __name__ == "__main__":
    main()
