"""GRM compared with mRMR, both with their forms chosen by validation inside the folds, on data not used for GRM's defaults.

For each data set, number of features and outer fold: GRM by weights (the best of three scores and two redundancies, each
with `n_candidates="cv"` and `power="cv"`), GRM as a set (the best of three, each with `redundancy_strength="cv"`), and mRMR
with the better of MID and MIQ. All of them are validated on the same inner folds by the same models, and tested on the
held-out samples by a linear SVM and five nearest neighbours. Every part of a fold is recorded when it is finished, and a run
continues where the last one ended. Writes the tables of docs/evidence/grm-mrmr.md.
"""

from __future__ import annotations

import json
import time
import warnings
from collections.abc import Callable
from typing import Any

import _real
import numpy as np
from _record import RESULTS, caption, read_arguments
from _tables import DOCS, markdown_table, replace_section
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
# GRM by weights and as a set, mRMR, and GRM without validation by weights and as a set.
PARTS = ("sets", "mrmr", "set", "auto", "weights")
OUTER, INNER = 3, 3
# The data sets on which the pool rule and the validation grid were chosen, and those on which they are tested.
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
# Data sets too large for ReliefF, which compares all pairs of samples in all features.
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
    """Return the features of the form with the best validated score, and the choice; ``validated`` are tuned parameters."""
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
    """Return the features of MID or MIQ, whichever has the better score on the same inner folds with the same models."""
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


def part_of_fold(
    part: str, name: str, X: Any, y: np.ndarray, size: int, train: np.ndarray, test: np.ndarray
) -> dict[str, Any]:
    """Return the features that one method selects on the training part, and their held-out accuracy."""
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
    """Return the forms that can be computed on a data set."""
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
    """Replace the tables of docs/evidence/grm-mrmr.md, with held-out data sets separate from those of the choice."""
    page = DOCS / "grm-mrmr.md"
    source = (
        f"{caption()[:-1]} All tables of this page; source digests: {', '.join(sorted({row['source'] for row in done}))}.*\n\n"
    )
    summary: list[dict[str, str]] = []
    choice: dict[str, dict[str, str]] = {}
    for size in sorted({row["size"] for row in done}):
        for names in (JUDGED_ON, CHOSEN_ON):
            found = {name: _folds([row for row in done if (row["data"], row["size"]) == (name, size)]) for name in names}
            folds = {name: mine for name, mine in found.items() if mine}
            if not folds:
                continue
            numbers = np.array([_numbers(mine) for mine in folds.values()])
            summary.append(_summary_row(size, names, numbers))
            mean = numbers.mean(axis=0)
            mean[3] = numbers[:, 2].std(ddof=1) / np.sqrt(len(numbers))
            rows = {**dict(zip(folds, numbers, strict=True)), "**mean**": mean}
            if names is JUDGED_ON:
                replace_section(page, f"{size} features", markdown_table([_cells(name, row) for name, row in rows.items()]))
            else:
                for name, row in rows.items():
                    choice.setdefault(name, {"data": name})[f"{size} features"] = f"{row[0]:.1f} / {row[1]:.1f}"
    replace_section(page, "summary", source + markdown_table(summary))
    if choice:
        replace_section(page, "choice", markdown_table(list(choice.values())))
    print("Written: docs/evidence/grm-mrmr.md")


_ACCURACIES = ("weights, validated", "sets, validated", "set, default", "weights, default")
_REDUNDANCIES = {"redundancy, GRM": "grm", "redundancy, mRMR": "mrmr", "redundancy, set": "set"}


def _folds(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the folds that have results of GRM in some form and of mRMR, with all parts merged."""
    folds: dict[int, dict[str, Any]] = {}
    for row in rows:
        folds.setdefault(row["fold"], {})[row["part"]] = row
    for parts in folds.values():
        forms = [parts[part] for part in ("weights", "sets") if part in parts]
        if forms:
            parts["grm"] = max(forms, key=lambda form: form["validated"])
    return [parts for parts in folds.values() if "grm" in parts and "mrmr" in parts]


def _numbers(folds: list[dict[str, Any]]) -> list[float]:
    def mean(part: str, measure: Callable[[dict[str, Any]], float]) -> float:
        return float(np.mean([measure(fold[part]) if part in fold else np.nan for fold in folds]))

    differences = np.array([_accuracy(fold["grm"]) - _accuracy(fold["mrmr"]) for fold in folds])
    error = float(differences.std(ddof=1) / np.sqrt(len(folds))) if len(folds) > 1 else np.nan
    first = [mean(part, _accuracy) for part in ("grm", "mrmr")]
    others = [mean(part, _accuracy) for part in ("weights", "sets", "set", "auto")]
    redundancies = [mean(part, lambda row: row["redundancy"]) for part in _REDUNDANCIES.values()]
    return [*first, float(differences.mean()), error, *others, *redundancies]


def _accuracy(row: dict[str, Any]) -> float:
    return float(row["svm"] + row["knn"]) / 2


def _summary_row(size: int, names: tuple[str, ...], numbers: np.ndarray) -> dict[str, str]:
    """Return means over data sets; a difference of at most one point counts as level."""
    differences = numbers[:, 2]
    mean = numbers.mean(axis=0)
    error = differences.std(ddof=1) / np.sqrt(len(differences))
    ahead, behind = int((differences > 1).sum()), int((differences < -1).sum())
    kept = np.delete(differences, int(np.argmax(np.abs(differences))))
    return {
        "features": str(size),
        "data sets": f"{len(numbers)} held out" if names is JUDGED_ON else f"{len(numbers)} of the choice",
        "GRM": f"{mean[0]:.1f}",
        "mRMR": f"{mean[1]:.1f}",
        "difference": f"{mean[2]:+.1f} ± {error:.1f}",
        "GRM ahead, level, behind": f"{ahead}, {len(differences) - ahead - behind}, {behind}",
        "without the largest difference": f"{kept.mean():+.1f}",
        "weights − mRMR": "" if np.isnan(mean[4]) else f"{mean[4] - mean[1]:+.1f}",
        "sets − mRMR": f"{mean[5] - mean[1]:+.1f}",
    }


def _cells(name: str, numbers: np.ndarray) -> dict[str, str]:
    """Return a row of the table of one number of features; parts that were not run have an empty cell."""
    grm, mrmr, difference, error, *others = numbers
    row = {"data": name, "GRM": f"{grm:.1f}", "mRMR": f"{mrmr:.1f}", "difference": f"{difference:+.1f} ± {error:.1f}"}
    accuracies, redundancies = others[: len(_ACCURACIES)], others[len(_ACCURACIES) :]
    words = [f"{number:.1f}" for number in accuracies] + [f"{number:.3f}" for number in redundancies]
    shown = ["" if word == "nan" else word for word in words]
    return row | dict(zip([*_ACCURACIES, *_REDUNDANCIES], shown, strict=True))


if __name__ == "__main__":
    main()
