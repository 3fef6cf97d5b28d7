"""GRM with its defaults beside its base scores and mRMR, on data sets to choose with and on others to report.

For each data set, number of features and outer fold: the base score alone, GRM by weights and as a set, and mRMR, all on the
training samples, tested on the held-out samples by a linear SVM and nearest neighbours. Also the noise case, in which few
features are relevant and one of them is very strong. Every fold is recorded when it is finished, and a run continues where the
last one with the same source ended. Writes the tables of docs/evidence/grm-mrmr.md.
"""

from __future__ import annotations

import json
import time
import warnings
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np
from _plain_sets import Data, news, real, small, text_file
from _real import find_data
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
from coterie.filters.selector import FilterSelector
from coterie.metrics import squared_redundancy

SIZES = (10, 20, 50)
N_FOLDS = 3
# The first eight were also the sets on which earlier defaults of GRM were chosen.
CHOSEN_ON: dict[str, Callable[[], Data]] = {
    **{
        name: partial(real, name)
        for name in ("khan", "su", "christensen", "gravier", "shipp", "glioma", "coil20", "binaryalphadigs")
    },
    "news, two classes": partial(news, "y", 0),
    "breast_cancer": partial(small, "breast_cancer"),
}
REPORTED: dict[str, Callable[[], Data]] = {
    **{name: partial(real, name) for name in ("chowdary", "gordon", "orl", "mfeat")},
    "pbmc68k": partial(real, "pbmc68k_reduced", "bulk_labels"),
    "gisette": partial(real, "gisette_valid"),
    **{name: partial(real, name) for name in ("spambase", "basehock", "usps", "dorothea")},
    "mnist, 3 and 8": partial(real, "mnist_3v8"),
    "duke": partial(text_file, "duke.svm"),
}
FILES = {"pbmc68k": "pbmc68k_reduced.h5ad", "gisette": "gisette_valid.npz", "mnist, 3 and 8": "mnist_3v8.npz"}
METHODS: dict[str, Callable[[int], Any]] = {
    "fisher": lambda k: FilterSelector("fisher", k),
    "weights": lambda k: GlobalRedundancySelector("fisher", k, solution="weights", n_jobs=1),
    "set": lambda k: GlobalRedundancySelector("fisher", k, n_jobs=1),
    "set, λ = 2": lambda k: GlobalRedundancySelector("fisher", k, redundancy_strength=2.0, n_jobs=1),
    "weights, no chance level": lambda k: GlobalRedundancySelector("fisher", k, fdr=None, solution="weights", n_jobs=1),
    "MID": lambda k: MRMRSelector(k, n_jobs=1),
    "MIQ": lambda k: MRMRSelector(k, scheme="miq", n_jobs=1),
}
OTHER_SCORES = ("information_gain", "laplacian", "lgd")
OTHERS: dict[str, Callable[[int], Any]] = {}
for _score in OTHER_SCORES:
    OTHERS[_score] = partial(FilterSelector, _score)
    OTHERS[f"GRM, {_score}"] = partial(GlobalRedundancySelector, _score, solution="weights", n_jobs=1)


def noise_case(seed: int, n_samples: int = 120, n_features: int = 200) -> Data:
    """Return four classes and 16 relevant features, the first of which has 98 % of its variance between the classes."""
    rng = np.random.default_rng(seed)
    y = np.arange(n_samples) % 4
    X = rng.standard_normal((n_samples, n_features))
    for feature in range(16):
        share = 0.98 if feature == 0 else rng.uniform(0.15, 0.5)
        means = rng.standard_normal(4)
        means -= means.mean()
        means /= np.sqrt(np.mean(means**2))
        X[:, feature] = np.sqrt(share) * means[y] + np.sqrt(1.0 - share) * X[:, feature]
    return X, y


def samples_of(X: Any, samples: np.ndarray) -> Any:
    return sparse.csc_array(sparse.csr_array(X)[samples]) if sparse.issparse(X) else X[samples]


def judge(
    X: Any, y: np.ndarray, train: np.ndarray, test: np.ndarray, features: np.ndarray, n_neighbors: int
) -> dict[str, float]:
    """Return the held-out accuracies in per cent, and the redundancy on the training samples."""
    columns = X[:, features].toarray() if sparse.issparse(X) else X[:, features]
    found = {}
    for name, model in (("svm", SVC(kernel="linear")), ("knn", KNeighborsClassifier(n_neighbors))):
        pipeline = make_pipeline(StandardScaler(), model).fit(columns[train], y[train])
        found[name] = 100.0 * float(pipeline.score(columns[test], y[test]))
    return found | {"redundancy": float(squared_redundancy(columns[train]))}


class Journal:
    """Results by data, size, fold and method, recorded line by line."""

    def __init__(self, name: str, source: str) -> None:
        RESULTS.mkdir(exist_ok=True)
        self.path = RESULTS / f"{name}-{source}.jsonl"
        lines = self.path.read_text(encoding="utf-8").splitlines() if self.path.exists() else []
        self.rows: dict[tuple[Any, ...], dict[str, Any]] = {tuple(row.pop("key")): row for row in map(json.loads, lines)}

    def get(self, key: tuple[Any, ...], measure: Callable[[], dict[str, Any]]) -> dict[str, Any]:
        """Return the recorded result, or measure and record it."""
        if key not in self.rows:
            start = time.process_time()
            row = measure() | {"seconds": time.process_time() - start}
            with self.path.open("a", encoding="utf-8") as file:
                file.write(json.dumps({"key": key} | row) + "\n")
            self.rows[key] = row
        return self.rows[key]


def run(journal: Journal, name: str, load: Callable[[], Data], n_folds: int, n_neighbors: int, seed: int, quick: bool) -> None:
    """Measure all methods on one data set."""
    X, y = load()
    X = sparse.csc_array(X) if sparse.issparse(X) else X
    folds = StratifiedKFold(n_folds, shuffle=True, random_state=seed).split(np.zeros(len(y)), y)
    for fold, (train, test) in enumerate(folds):
        mine = samples_of(X, train)
        for size in SIZES[: 1 if quick else None]:
            if X.shape[1] <= 2 * size:
                continue
            for method, selector in (METHODS | OTHERS).items():

                def measure(selector: Any = selector, size: int = size, mine: Any = mine, part: Any = (train, test)) -> Any:
                    features = np.sort(selector(size).fit(mine, y[part[0]]).support_features_)
                    return judge(X, y, *part, features, n_neighbors)

                journal.get((name, size, fold, method), measure)
    print(name, f"{time.process_time():.0f} s", flush=True)


def means(journal: Journal, name: str, size: int, method: str) -> tuple[float, float]:
    """Return the mean accuracy of both classifiers and the mean redundancy over the folds."""
    rows = [row for key, row in journal.rows.items() if (key[0], key[1], key[3]) == (name, size, method)]
    return float(np.mean([(row["svm"] + row["knn"]) / 2 for row in rows])), float(np.mean([row["redundancy"] for row in rows]))


def measured(journal: Journal, names: Sequence[str], size: int) -> list[str]:
    """Return the data sets with results for a number of features."""
    return [name for name in names if any(key[:2] == (name, size) for key in journal.rows)]


def summary_row(journal: Journal, names: Sequence[str], size: int, part: str) -> dict[str, str]:
    """Return means over data sets of one part, with the standard errors of the differences."""
    table = {method: np.array([means(journal, name, size, method) for name in names]) for method in METHODS}
    row = {"features": str(size), "data sets": f"{len(names)} {part}"}
    row |= {method: f"{table[method][:, 0].mean():.1f}" for method in ("fisher", "weights", "set", "MID", "MIQ")}
    for first, second in (("weights", "fisher"), ("weights", "MID"), ("set", "MID")):
        difference = table[first][:, 0] - table[second][:, 0]
        error = difference.std(ddof=1) / np.sqrt(len(difference))
        row[f"{first} − {second}"] = f"{difference.mean():+.1f} ± {error:.1f}"
    return row


def cells(journal: Journal, name: str, size: int) -> dict[str, str]:
    """Return one row of the table of one number of features. † marks less accurate than Fisher's score alone."""
    found = {method: means(journal, name, size, method) for method in METHODS}
    row = {"data": name}
    for method, (accuracy, _) in found.items():
        lower = method in ("weights", "set") and round(accuracy, 1) < round(found["fisher"][0], 1)
        row[method] = f"{accuracy:.1f}{'†' if lower else ''}"
    return row | {f"redundancy, {method}": f"{found[method][1]:.3f}" for method in ("fisher", "weights", "set", "MID")}


def other_rows(journal: Journal, names: Sequence[str], part: str) -> list[dict[str, str]]:
    """Return gains in accuracy and numbers of cells with lower redundancy, for all base scores."""
    rows = []
    for base, refined in (("fisher", "weights"), *((score, f"GRM, {score}") for score in OTHER_SCORES)):
        row = {"score": base, "data sets": part}
        lower = equal = total = below = 0
        for size in SIZES:
            pairs = [
                (means(journal, name, size, base), means(journal, name, size, refined))
                for name in measured(journal, names, size)
            ]
            gains = np.array([after[0] - before[0] for before, after in pairs])
            row[f"{size} features"] = f"{gains.mean():+.1f} ± {gains.std(ddof=1) / np.sqrt(len(gains)):.1f}"
            below += int(np.count_nonzero(np.round(gains, 1) < 0))
            lower += sum(after[1] < before[1] - 1e-9 for before, after in pairs)
            equal += sum(abs(after[1] - before[1]) <= 1e-9 for before, after in pairs)
            total += len(pairs)
        row |= {"less accurate": f"{below} of {total}", "redundancy lower, equal": f"{lower}, {equal} of {total}"}
        rows.append(row)
    return rows


def noise_rows(journal: Journal, seeds: Sequence[int]) -> list[dict[str, str]]:
    """Return the number of features without effect among ten selected ones."""
    rows = []
    for method, selector in METHODS.items():
        counts = []
        for seed in seeds:

            def measure(selector: Any = selector, seed: int = seed) -> dict[str, Any]:
                X, y = noise_case(seed)
                return {"noise": int(np.count_nonzero(selector(10).fit(X, y).support_features_ >= 16))}

            counts.append(journal.get(("noise case", 10, seed, method), measure)["noise"])
        rows.append(
            {"method": method, "mean": f"{np.mean(counts):.2f}", "most": str(max(counts)),
             "seeds with any": f"{np.count_nonzero(counts)} of {len(counts)}"}
        )  # fmt: skip
    return rows


def madelon_rows(journal: Journal) -> list[dict[str, str]]:
    """Return the accuracy of three nearest neighbours on Madelon."""
    rows = []
    for method in METHODS:
        row = {"method": method}
        for size in SIZES[:2]:
            found = [r["knn"] for key, r in journal.rows.items() if (key[0], key[1], key[3]) == ("madelon", size, method)]
            row[f"{size} features"] = f"{np.mean(found):.1f}"
        rows.append(row)
    return rows


def whole_madelon() -> Data:
    """Return all 2,600 samples."""
    from _real import load

    X, y = load("madelon")
    return X.astype(np.float64), np.unique(y, return_inverse=True)[1]


def main() -> None:
    options = read_arguments(__doc__)
    warnings.simplefilter("ignore")
    journal = Journal(f"grm_mrmr{'-quick' if options.quick else ''}", options.source)
    noise = noise_rows(journal, range(3 if options.quick else 20))
    parts = {"to report": REPORTED, "to choose": CHOSEN_ON}
    for sets in parts.values():
        for name, load in list(sets.items())[: 1 if options.quick else None]:
            if load.func is not real or find_data(FILES.get(name, f"{name}.npz")) is not None:
                run(journal, name, load, N_FOLDS, 5, options.seed, options.quick)
    if options.quick:
        return
    run(journal, "madelon", whole_madelon, 5, 3, options.seed, options.quick)
    page, source = DOCS / "grm-mrmr.md", f"{caption()[:-1]} Source digest {options.source}.*\n\n"
    replace_section(page, "noise", source + markdown_table(noise))
    replace_section(page, "madelon", source + markdown_table(madelon_rows(journal)))
    summary = [
        summary_row(journal, measured(journal, list(sets), size), size, part) for size in SIZES for part, sets in parts.items()
    ]
    replace_section(page, "summary", source + markdown_table(summary))
    for size in SIZES:
        rows = [cells(journal, name, size) for name in measured(journal, list(REPORTED), size)]
        replace_section(page, f"{size} features", source + markdown_table(rows))
    others = [row for part, sets in parts.items() for row in other_rows(journal, list(sets), part)]
    replace_section(page, "scores", source + markdown_table(others))
    print("Written: docs/evidence/grm-mrmr.md")


if __name__ == "__main__":
    main()
