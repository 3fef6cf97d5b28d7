"""GRM next to mRMR, both with their forms chosen by validation inside the folds, on sets that had no part in GRM's defaults.

For each set, number of features and outer fold: GRM by weights (the best of three scores and two redundancies, each with
`n_candidates="cv"` and `power="cv"`) and as a set (the best of three, each with `redundancy_strength="cv"`); mRMR with the
better of MID and MIQ; all of them validated on the same inner folds by the same models. Judged on the held-out samples by a
linear SVM and five nearest neighbours. Every part of a fold is written down when it is done, and a run goes on where the last
one ended. Writes docs/evidence/grm-mrmr.md.
"""

from __future__ import annotations

import json
import time
import warnings
from typing import Any

import _real
import numpy as np
from _record import RESULTS, read_arguments
from _tables import DOCS, markdown_table
from scipy import sparse
from sklearn.model_selection import StratifiedKFold
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

from coterie import GlobalRedundancySelector
from coterie.baselines import MRMRSelector
from coterie.metrics import squared_redundancy
from coterie.redundancy.validation import default_models

SIZES = (20, 10, 50)
# GRM by weights and as a set, the other one; and GRM without validation, by weights and as a set.
PARTS = ("sets", "mrmr", "set", "auto", "weights")
OUTER, INNER = 3, 3
# The sets on which the pool rule and the grid of validation were chosen, and those on which they are judged.
CHOSEN_ON = ("khan", "su", "christensen", "gravier", "shipp", "glioma", "coil20", "madelon", "binaryalphadigs")
JUDGED_ON = (
    "chowdary", "gordon", "orl", "mfeat", "pbmc68k_reduced", "gisette_valid", "spambase", "basehock", "usps", "dorothea",
)  # fmt: skip
FORMS = {
    "Fisher": ("fisher", "cosine2"),
    "IG": ("information_gain", "cosine2"),
    "ReliefF": ("relieff", "cosine2"),
    "IG, MI": ("information_gain", "mutual_info"),
}
SET_FORMS = {
    "Fisher, set": ("fisher", "cosine2"),
    "ReliefF, set": ("relieff", "cosine2"),
    "IG, MI, set": ("information_gain", "mutual_info"),
}
# Sets too large for ReliefF, which compares all pairs of samples in all features.
WITHOUT_RELIEFF = ("usps", "dorothea", "basehock")


def load(name: str) -> tuple[Any, np.ndarray]:
    X, y = _real.load(name, "bulk_labels" if name.startswith("pbmc") else "y")
    codes = np.unique(y, return_inverse=True)[1]
    return (sparse.csc_array(X, dtype=np.float64) if sparse.issparse(X) else X.astype(np.float64)), codes


def rows_of(X: Any, samples: np.ndarray) -> Any:
    return sparse.csc_array(sparse.csr_array(X)[samples]) if sparse.issparse(X) else X[samples]


def dense(X: Any, features: np.ndarray) -> np.ndarray:
    return X[:, features].toarray() if sparse.issparse(X) else X[:, features]


def judge(X: Any, y: np.ndarray, train: np.ndarray, test: np.ndarray, features: np.ndarray) -> dict[str, float]:
    columns = dense(X, features)
    found = {}
    for name, model in (("svm", SVC(kernel="linear")), ("knn", KNeighborsClassifier(5))):
        pipeline = make_pipeline(StandardScaler(), model).fit(columns[train], y[train])
        found[name] = 100.0 * float(pipeline.score(columns[test], y[test]))
    return found | {"redundancy": float(squared_redundancy(columns[train]))}


def best_grm(
    X: Any, y: np.ndarray, size: int, forms: dict[str, tuple[str, str]], **validated: Any
) -> tuple[np.ndarray, dict[str, Any]]:
    """The form with the best validated score, and what it was; ``validated`` says what validation chooses in each."""
    inner = StratifiedKFold(INNER, shuffle=True, random_state=1)
    fitted = {}
    for form, (score, redundancy) in forms.items():
        fitted[form] = GlobalRedundancySelector(
            score, size, redundancy=redundancy, cv=inner, tol=1e-4, n_jobs=1, **validated
        ).fit(X, y)
    chosen = max(fitted, key=lambda form: fitted[form].validation_score_)
    model = fitted[chosen]
    words = {"form": chosen, "pool": int(model.pool_sizes_[0]), "power": model.power_, "validated": model.validation_score_}
    if "solution" in validated:
        words["strength"] = model.redundancy_strength_
    return model.support_features_, words


def best_mrmr(X: Any, y: np.ndarray, size: int) -> tuple[np.ndarray, dict[str, Any]]:
    """MID or MIQ, whichever the same models like better on the same inner folds."""
    folds = list(StratifiedKFold(INNER, shuffle=True, random_state=1).split(np.zeros(len(y)), y))
    models = default_models(y, min(len(train) for train, _ in folds))
    validated = {}
    for scheme in ("mid", "miq"):
        scores = []
        for train, test in folds:
            chosen = MRMRSelector(size, scheme=scheme, n_jobs=1).fit(rows_of(X, train), y[train]).support_features_
            columns = dense(X, chosen)
            scores += [model.fit(columns[train], y[train]).score(columns[test], y[test]) for model in models]
        validated[scheme] = float(np.mean(scores))
    scheme = max(validated, key=lambda one: validated[one])
    model = MRMRSelector(size, scheme=scheme, n_jobs=1).fit(X, y)
    return model.support_features_, {"form": scheme.upper(), "validated": validated[scheme]}


def part_of_fold(part: str, name: str, X: Any, y: np.ndarray, size: int, train: np.ndarray, test: np.ndarray) -> dict[str, Any]:
    """What one of the contenders selects on the training part, and what it is worth."""
    mine, labels = rows_of(X, train), y[train]
    start = time.process_time()
    if part == "weights":
        features, words = best_grm(mine, labels, size, _fitting(FORMS, name), n_candidates="cv", power="cv")
    elif part == "sets":
        features, words = best_grm(mine, labels, size, _fitting(SET_FORMS, name), solution="set", redundancy_strength="cv")
    elif part == "mrmr":
        features, words = best_mrmr(mine, labels, size)
    else:
        options = {"solution": "set"} if part == "set" else {}
        features, words = GlobalRedundancySelector("fisher", size, n_jobs=1, **options).fit(mine, labels).support_features_, {}
    return {**words, "seconds": time.process_time() - start, **judge(X, y, train, test, features)}


def _fitting(forms: dict[str, tuple[str, str]], name: str) -> dict[str, tuple[str, str]]:
    """The forms that can be had of a set."""
    return {form: one for form, one in forms.items() if "ReliefF" not in form or name not in WITHOUT_RELIEFF}


def main() -> None:
    options = read_arguments(__doc__, parts=[str(size) for size in SIZES])
    warnings.simplefilter("ignore")
    RESULTS.mkdir(exist_ok=True)
    journal = RESULTS / f"grm_mrmr{'-quick' if options.quick else ''}.jsonl"
    done = [json.loads(line) for line in journal.read_text(encoding="utf-8").splitlines()] if journal.exists() else []
    known = {(row["data"], row["size"], row["fold"], row["seed"], row["part"]) for row in done}
    sizes = [int(options.only)] if options.only else SIZES[: 1 if options.quick else None]
    names = ["khan", "chowdary"] if options.quick else [*JUDGED_ON, *CHOSEN_ON]
    for size in sizes:
        for name in names:
            if _real.find_data(f"{name}.npz") is None and _real.find_data(f"{name}.h5ad") is None:
                continue
            X, y = load(name)
            if X.shape[1] <= 2 * size:
                continue
            folds = StratifiedKFold(OUTER, shuffle=True, random_state=options.seed).split(np.zeros(len(y)), y)
            for fold, (train, test) in enumerate(folds):
                facts = {"data": name, "size": size, "fold": fold, "seed": options.seed, "source": options.source}
                for part in PARTS:
                    if (name, size, fold, options.seed, part) in known:
                        continue
                    done.append(facts | {"part": part} | part_of_fold(part, name, X, y, size, train, test))
                    with journal.open("a", encoding="utf-8") as file:
                        file.write(json.dumps(done[-1]) + "\n")
                    print(json.dumps(done[-1]), flush=True)
    if not options.quick:
        write_page(done)


def write_page(done: list[dict[str, Any]]) -> None:
    """Tables of accuracy (mean of both classifiers) and redundancy, sets that chose the defaults apart from the others."""
    parts = [_HEAD.format(sources=", ".join(sorted({row["source"] for row in done})))]
    for size in sorted({row["size"] for row in done}):
        for title, names in (("judged", JUDGED_ON), ("used to choose the defaults", CHOSEN_ON)):
            rows = [_row(name, [row for row in done if (row["data"], row["size"]) == (name, size)]) for name in names]
            rows = [row for row in rows if row]
            if rows:
                numbers = np.array([row["numbers"] for row in rows])
                mean = _cells("**mean**", numbers.mean(axis=0)) | {"GRM's forms": "", "mRMR's": ""}
                parts.append(
                    f"## {size} features, sets {title}\n\n" + markdown_table([*(row["cells"] for row in rows), mean]).strip()
                )
                wins, level = int((numbers[:, 2] > 1).sum()), int((np.abs(numbers[:, 2]) <= 1).sum())
                behind = len(rows) - wins - level
                absent = [name for name in names if name not in {row["data"] for row in done if row["size"] == size}]
                left_out = f" Not run, or not to the end: {', '.join(absent)}." if absent and title == "judged" else ""
                parts.append(
                    f"GRM ahead by more than a point on {wins}, within a point on {level}, behind on {behind}. The largest "
                    f"difference aside, the mean is {_without_largest(numbers[:, 2]):+.1f}.{left_out}"
                )
    (DOCS / "grm-mrmr.md").write_text("\n\n".join(parts) + "\n", encoding="utf-8")
    print("Written: docs/evidence/grm-mrmr.md")


_HEAD = """# GRM and mRMR

Written by `benchmarks/grm_mrmr.py` (source {sources}). Three outer folds; everything is selected, and every choice made, on
the training part. GRM: the best of Fisher's score, information gain, ReliefF (not on the largest sets) with squared
correlations, and information gain with mutual information, each with `n_candidates="cv"` and `power="cv"`; mRMR: the better of
MID and MIQ; both by the same models on the same three inner folds. Accuracy: mean of a linear SVM and five nearest
neighbours on the held-out samples, in per cent. auto: Fisher's score with the default `n_candidates="auto"`. Standard error:
of the difference over the folds. What it means: [redundancy-evidence.md](redundancy-evidence.md)."""


def _without_largest(differences: np.ndarray) -> float:
    """The mean of all but the one that is furthest from zero."""
    kept = np.delete(differences, int(np.argmax(np.abs(differences))))
    return float(kept.mean()) if len(kept) else float("nan")


def _row(name: str, folds: list[dict[str, Any]]) -> dict[str, Any]:
    if not folds:
        return {}
    accuracy = {m: np.array([(row[m]["svm"] + row[m]["knn"]) / 2 for row in folds]) for m in ("grm", "mrmr", "auto")}
    difference = accuracy["grm"] - accuracy["mrmr"]
    error = float(difference.std(ddof=1) / np.sqrt(len(folds))) if len(folds) > 1 else np.nan
    redundancy = [float(np.mean([row[m]["redundancy"] for row in folds])) for m in ("grm", "mrmr", "auto")]
    numbers = [accuracy["grm"].mean(), accuracy["mrmr"].mean(), difference.mean(), error, accuracy["auto"].mean(), *redundancy]
    forms = [", ".join(sorted({row[m]["form"] for row in folds})) for m in ("grm", "mrmr")]
    return {"numbers": numbers, "cells": _cells(name, np.array(numbers)) | {"GRM's forms": forms[0], "mRMR's": forms[1]}}


def _cells(name: str, numbers: np.ndarray) -> dict[str, str]:
    heads = ("GRM", "mRMR", "difference", "standard error", "auto", "redundancy GRM", "mRMR ", "auto ")
    words = [
        f"{number:+.1f}" if head == "difference" else f"{number:.1f}" for head, number in zip(heads[:5], numbers, strict=False)
    ]
    return {"": name} | dict(zip(heads, [*words, *(f"{number:.3f}" for number in numbers[5:])], strict=True))


if __name__ == "__main__":
    main()
