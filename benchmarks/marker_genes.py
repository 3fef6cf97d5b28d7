"""Marker genes: Coterie and scanpy's ``rank_genes_groups`` with the same number of genes, selected in the training folds.

Requires scanpy, which is not part of any extra. All methods use the same log counts. The first genes of each cell type are
compared with known markers, and a linear SVM on the same total number of genes predicts the types of held-out cells. Coterie
chooses C, scale and the number of support genes by cross-validation inside the training part. Its genes per type are those of
this model in the order of ``coterie.report.annotate``; its gene sets are from a path with the same settings. The gene sets of
scanpy are the first genes of each type in turn, without repeats. Writes the tables of
docs/evidence/marker-genes-evidence.md.
"""

from __future__ import annotations

import time
import warnings
from itertools import zip_longest
from typing import Any

import numpy as np
from _cells import Cells, blood, simulated
from _record import caption, read_arguments, write_results
from _tables import DOCS, markdown_table, print_table, replace_section
from sklearn.model_selection import StratifiedKFold
from sklearn.preprocessing import MaxAbsScaler
from sklearn.svm import LinearSVC

from coterie import GroupDiscoveryClassifier, GroupDiscoveryClassifierCV
from coterie.metrics import redundancy_rate
from coterie.report import annotate

SIZES = (10, 20, 50)
FIRST = (3, 10)
# Models by the beginning of their names in the tables.
OURS: dict[str, dict[str, Any]] = {"Coterie": {}, "Coterie, equal classes": {"equal_classes": True}}
THEIRS = {"t-test": {}, "wilcoxon": {}, "logreg": {"max_iter": 1000}}
PAGE = DOCS / "marker-genes-evidence.md"


def rankings(
    adata: Any, size: int, threads: int
) -> tuple[dict[str, dict[str, list[str]]], dict[str, list[str]], dict[str, float]]:
    """Return for each method the genes by cell type, the ordered genes of all types, and processor seconds."""
    import scanpy as sc

    by_kind: dict[str, dict[str, list[str]]] = {}
    in_all: dict[str, list[str]] = {}
    seconds: dict[str, float] = {}
    for name, options in THEIRS.items():
        began = time.process_time()
        sc.tl.rank_genes_groups(adata, "kind", method=name, key_added=name, use_raw=False, **options)
        seconds[name] = time.process_time() - began
        by_kind[name] = _lists(adata, name)
        in_all[name] = _in_turn(by_kind[name])
    for name, options in OURS.items():
        began = time.process_time()
        search = GroupDiscoveryClassifierCV(
            20, Cs=[0.03, 0.3], standardize=[False, True], rule="one_se", cv=3, random_state=0, n_jobs=threads, **options
        ).fit(adata, "kind")
        chosen = {"C": search.C_, "standardize": search.standardize_, "threshold": search.threshold_, "n_jobs": threads}
        model = GroupDiscoveryClassifier(size, **chosen, **options).fit(adata, "kind")
        used = time.process_time() - began
        in_all[f"{name}, support"] = [group.labels[0] for group in model.groups_]
        in_all[f"{name}, groups"] = list(dict.fromkeys(gene for group in model.groups_ for gene in group.labels))
        for keep in ("support", "groups"):
            seconds[f"{name}, {keep}"] = used
            annotate(adata, search, "kind", key=keep, keep=keep)
            by_kind[f"{name}, {keep}"] = _lists(adata, keep)
    return by_kind, in_all, seconds


def _lists(adata: Any, key: str) -> dict[str, list[str]]:
    """Return the genes of each type with a positive score, best first."""
    found = adata.uns[key]
    return {
        kind: [str(gene) for gene, score in zip(found["names"][kind], found["scores"][kind], strict=True) if score > 0]
        for kind in found["names"].dtype.names
    }


def _in_turn(lists: dict[str, list[str]]) -> list[str]:
    """Return the first genes of all types, then the second ones, and so on, without repeats."""
    return list(dict.fromkeys(gene for genes in zip_longest(*lists.values()) for gene in genes if gene is not None))


def accuracy(adata: Any, train: np.ndarray, test: np.ndarray, genes: list[str]) -> float:
    """Return the accuracy of a linear SVM on some genes on held-out cells."""
    values, kind = adata[:, genes].X, np.asarray(adata.obs["kind"])
    scaler = MaxAbsScaler().fit(values[train])
    svm = LinearSVC(C=1.0, max_iter=5000, random_state=0).fit(scaler.transform(values[train]), kind[train])
    return float(svm.score(scaler.transform(values[test]), kind[test]))


def measure(cells: Cells, seed: int, threads: int, n_folds: int) -> dict[str, list[dict[str, Any]]]:
    adata = cells.adata
    folds = StratifiedKFold(n_folds, shuffle=True, random_state=seed).split(np.zeros(adata.n_obs), adata.obs["kind"])
    raw: list[dict[str, Any]] = []
    hits: list[dict[str, Any]] = []
    for train, test in folds:
        part = adata[train].copy()
        by_kind, in_all, seconds = rankings(part, max(SIZES), threads)
        for method, genes in in_all.items():
            for size in SIZES:
                chosen = genes[:size]
                known = {name: set().union(*lists.values()) for name, lists in cells.markers.items()}
                raw.append(
                    {
                        "method": method,
                        "genes": size,
                        "accuracy": accuracy(adata, train, test, chosen),
                        "redundancy": float(redundancy_rate(part[:, chosen].X)),
                        **{f"known ({name})": len(set(chosen) & one) for name, one in known.items()},
                        "seconds": seconds[method],
                    }
                )
        for method, lists in by_kind.items():
            for kind, genes in lists.items():
                row: dict[str, Any] = {"method": method, "kind": kind}
                for name, markers in cells.markers.items():
                    row |= {f"{name}, first {k}": len(set(genes[:k]) & markers[kind]) for k in FIRST}
                hits.append(row)
    methods = list(dict.fromkeys(row["method"] for row in raw))
    numbers = [name for name in raw[0] if name not in ("method", "genes")]
    sets = [
        {
            "data": cells.name,
            "genes": size,
            "method": method,
            **{
                name: round(float(np.mean([r[name] for r in raw if (r["method"], r["genes"]) == (method, size)])), 3)
                for name in numbers
            },
        }
        for size in SIZES
        for method in methods
    ]
    for row in sets:  # standard error of the mean over the folds
        own = [r["accuracy"] for r in raw if (r["method"], r["genes"]) == (row["method"], row["genes"])]
        row["error"] = round(float(np.std(own, ddof=1) / np.sqrt(len(own))), 3)
    kinds = list(dict.fromkeys(row["kind"] for row in hits))
    found = []
    for name, markers in cells.markers.items():
        for k in FIRST:
            column = f"{name}, first {k}"
            for kind in kinds:
                means = {
                    m: round(float(np.mean([r[column] for r in hits if (r["method"], r["kind"]) == (m, kind)])), 1)
                    for m in methods
                }
                found.append({"list": name, "first": k, "kind": kind, "known": len(markers[kind]), **means})
            total = {m: round(sum(row[m] for row in found if (row["list"], row["first"]) == (name, k)), 1) for m in methods}
            found.append({"list": name, "first": k, "kind": "all", "known": sum(map(len, markers.values())), **total})
    return {"sets": sets, "found": found}


def missing_rows(cells: Cells) -> list[dict[str, Any]]:
    return [
        {
            "cell type": kind,
            "classic, in the data": ", ".join(sorted(cells.markers["classic"][kind])) or "none",
            "classic, not there": ", ".join(sorted(cells.missing["classic"][kind])) or "none",
            "Azimuth, in the data": ", ".join(sorted(cells.markers["Azimuth"][kind])) or "none",
        }
        for kind in cells.markers["classic"]
    ]


def sets_table(rows: list[dict[str, Any]]) -> str:
    """Return the table of gene sets for the page, with the standard error of the accuracy."""
    known = [name for name in rows[0] if name.startswith("known")]
    return markdown_table(
        [
            {
                "genes": row["genes"],
                "method": row["method"],
                "accuracy": f"{row['accuracy']:.3f} ± {row['error']:.3f}",
                "redundancy": f"{row['redundancy']:.3f}",
                **{name: f"{row[name]:.1f}" for name in known},
                "seconds": f"{row['seconds']:.2f}",
            }
            for row in rows
        ]
    )


def found_table(rows: list[dict[str, Any]]) -> str:
    """Return the table of known markers for the page: those among the first 3 / the first 10 genes in one cell."""
    facts = ("list", "first", "kind", "known")
    merged: dict[tuple[str, str], dict[str, Any]] = {}
    for row in rows:
        head = {"list": row["list"], "cell type": row["kind"], "known": row["known"]}
        line = merged.setdefault((row["list"], row["kind"]), head)
        for method in row:
            if method not in facts:
                line[method] = " / ".join(filter(None, [line.get(method), f"{row[method]:.1f}"]))
    return markdown_table(list(merged.values()))


def main() -> None:
    options = read_arguments(__doc__, parts=["blood", "simulated"])
    results: dict[str, Any] = {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for name in ("simulated",) if options.quick else ("blood", "simulated"):
            if options.only not in (None, name):
                continue
            cells = blood() if name == "blood" else simulated(options.seed, *((300, 200) if options.quick else ()))
            found = measure(cells, options.seed, options.threads, 2 if options.quick else 5)
            print_table(f"{name}: same total number of genes, selected in the training part", found["sets"])
            print_table(f"{name}: known markers among the first genes of each type", found["found"])
            results[name] = found
            if not options.quick:
                replace_section(PAGE, f"{name} sets", f"{caption()}\n\n{sets_table(found['sets'])}")
                replace_section(PAGE, f"{name} found", f"{caption()}\n\n{found_table(found['found'])}")
                if name == "blood":
                    replace_section(PAGE, "lists", markdown_table(missing_rows(cells)))
    write_results("marker_genes", options, **results)


if __name__ == "__main__":
    main()
