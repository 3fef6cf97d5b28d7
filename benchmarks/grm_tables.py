"""Tables of the GRM paper (TKDE 2015) for the available data: accuracy and redundancy of the scores with and without GRM.

Tables 2 to 7 (top 20 features, five folds, linear SVM and kNN) with all columns of the paper (mRMR, ReliefF on a fifth of the
labels), Table 8 (correct-move rate), the effect of the number of candidates, and substitutes for data sets that are not
available. Features are selected inside the folds.
Writes the tables of docs/evidence/grm-tables.md, and docs/evidence/grm-candidates.png.

A score is computed once per fold for all numbers of candidates, and a selection once for both classifiers. `coterie.compare`
would compute each score eight times, in one process per number of candidates.
"""

from __future__ import annotations

import json
from collections import defaultdict
from pathlib import Path
from typing import Any

import _real
import numpy as np
from _grm_page import write_page
from _grm_paper import NAMES, PAPER, SUBSTITUTES, WITHOUT_GRM
from _models import warnings_counted
from _plain_sets import real, text_file
from _record import RESULTS, read_arguments, write_results
from sklearn.model_selection import RepeatedStratifiedKFold, StratifiedShuffleSplit
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

from coterie import GlobalRedundancySelector
from coterie.baselines import MRMRSelector
from coterie.datasets import make_block_gaussian
from coterie.methods import SCORES
from coterie.metrics import correct_move_rate, squared_redundancy

N_FEATURES = 20
# Candidates per selected feature, without a chance level. 1 is the score alone, None means all features, "auto" is the growing
# pool. "default" is the growing pool of the features that are better than chance.
FACTORS = (1, 2, 3, 5, "auto", "default", 10, 20, 50, None)
REPEATS = {"GLIOMA": 2, "SRBCT": 2}
FILES = {"GLIOMA": "glioma", "SRBCT": "khan", "COIL20": "coil20", "BINALPHA": "binaryalphadigs", "DIGIT": "mfeat"}


def load(name: str) -> tuple[np.ndarray, np.ndarray]:
    if name == "Synthetic":
        data = make_block_gaussian(random_state=0)
        return data.X, data.y
    if name in SUBSTITUTES:
        file = SUBSTITUTES[name][0]
        return text_file("duke.svm") if file == "duke" else real(file)
    X, y = _real.load(FILES[name])
    return X.astype(np.float64), y


def scores_of(score: str, X: np.ndarray, y: np.ndarray, threads: int | None = None) -> np.ndarray:
    """Return non-negative scores; MCFS uses the number of classes as number of clusters, as in its paper."""
    score, options = named(score, y)
    return np.maximum(SCORES[score].load()(X, y, n_jobs=threads, **options), 0.0)


def named(score: str, y: np.ndarray) -> tuple[str, dict[str, Any]]:
    """Return the name of a score and its parameters."""
    if score == "mcfs":
        return "mcfs", {"n_clusters": len(np.unique(y))}
    if score == "lgd among samples":
        return "lgd", {"neighborhood": "samples"}
    return ("laplacian", {"graph": "full"}) if score == "laplacian, full" else (score, {})


def select(
    X: np.ndarray, y: np.ndarray, score: str, scores: np.ndarray, factor: int | str | None, threads: int | None
) -> np.ndarray:
    """Select the top features by score alone (factor 1) or with GRM."""
    if factor == 1:
        return np.argsort(-scores, kind="stable")[:N_FEATURES]
    if factor == "default":
        name, parameters = named(score, y)
        # ReliefF with 20 permutations of the labels takes minutes per fold for so many samples.
        fdr = None if name == "relieff" and len(y) > 500 else 0.01
        model = GlobalRedundancySelector(
            name, N_FEATURES, fdr=fdr, solution="weights", score_parameters=parameters, n_jobs=threads
        )
        return np.asarray(model.fit(X, y).support_features_)
    n_candidates = factor * N_FEATURES if isinstance(factor, int) else factor
    selector = GlobalRedundancySelector(scores, N_FEATURES, n_candidates=n_candidates, solution="weights")
    return np.flatnonzero(selector.fit(X).get_support())


def select_without_grm(method: str, X: np.ndarray, y: np.ndarray, options: Any) -> np.ndarray:
    """Select features by mRMR, or by ReliefF with a fifth of the labels."""
    if method in ("mid", "miq"):
        return MRMRSelector(N_FEATURES, scheme=method, n_jobs=options.threads).fit(X, y).support_features_
    classes, counts = np.unique(y, return_counts=True)
    size = max(len(y) // 5, len(classes))
    some = StratifiedShuffleSplit(1, train_size=size, random_state=options.seed).split(X, y) if counts.min() > 1 else None
    labelled = next(some)[0] if some is not None else np.arange(len(y))
    return np.argsort(-scores_of("relieff", X[labelled], y[labelled], options.threads), kind="stable")[:N_FEATURES]


def judge(X: np.ndarray, y: np.ndarray, train: np.ndarray, test: np.ndarray, features: np.ndarray) -> list[float]:
    """Return the held-out accuracies in per cent, and the redundancy on the training samples."""
    bits = set(np.unique(X[:, features])) <= {0.0, 1.0}
    found = []
    for scaler, model in (
        (None if bits else StandardScaler(), SVC(kernel="linear")),
        (StandardScaler(), KNeighborsClassifier(5)),
    ):
        pipeline = make_pipeline(scaler, model).fit(X[train][:, features], y[train])
        found.append(100.0 * pipeline.score(X[test][:, features], y[test]))
    return [*found, squared_redundancy(X[train], features)]


def evaluate(name: str, options: Any) -> dict[str, dict[str, list[float]]]:
    """Return means over the folds of the measures, by score and factor."""
    X, y = load(name)
    repeats = 1 if options.quick else REPEATS.get(name, 1)
    collected: dict[tuple[str, str], list[list[float]]] = defaultdict(list)
    for train, test in RepeatedStratifiedKFold(n_splits=5, n_repeats=repeats, random_state=options.seed).split(X, y):
        for score in NAMES:
            with warnings_counted():
                if score in WITHOUT_GRM:
                    features = select_without_grm(score, X[train], y[train], options)
                    collected[score, "1"].append(judge(X, y, train, test, features))
                    continue
                scores = scores_of(score, X[train], y[train], options.threads)
                for factor in FACTORS if name in PAPER else (1, "default"):
                    if not isinstance(factor, int) or factor * N_FEATURES <= X.shape[1] or factor == 1:
                        features = select(X[train], y[train], score, scores, factor, options.threads)
                        collected[score, str(factor)].append(judge(X, y, train, test, features))
    result: dict[str, dict[str, list[float]]] = defaultdict(dict)
    for (score, factor), rows in collected.items():
        result[score][factor] = np.mean(rows, axis=0).tolist()
    return dict(result)


def moves(name: str, score: str, strength: float, n_draws: int, seed: int) -> float:
    """Return a rate of Table 8: fifty random pairs among the best 200 features, with and without the term of the groups."""
    X, y = load(name)
    scores = scores_of(score, X, y)
    top = np.argsort(-scores, kind="stable")[:200]
    X, scores = X[:, top], scores[top]
    free = GlobalRedundancySelector(scores, N_FEATURES, n_candidates=None, solution="weights").fit(X)
    rates = []
    for draw in range(n_draws):
        pairs = np.random.default_rng(seed + draw).permutation(len(top))[: min(100, len(top) // 2 * 2)].reshape(-1, 2)
        bound = GlobalRedundancySelector(
            scores,
            N_FEATURES,
            n_candidates=None,
            solution="weights",
            groups=pairs.tolist(),
            options={"group_strength": strength},
        ).fit(X)
        rates.append(correct_move_rate(free.ranking_, bound.ranking_, pairs))
    return float(np.mean(rates))


def _part(name: str, options: Any) -> Path:
    """Return the file with the results of one data set; a run continues where the last one with the same source ended."""
    return RESULTS / f"grm_tables-{name}-{options.source}{'-quick' if options.quick else ''}.part.json"


def _known(name: str, options: Any) -> dict[str, dict[str, list[float]]] | None:
    path = _part(name, options)
    return json.loads(path.read_text(encoding="utf-8")) if path.exists() else None


def _keep(name: str, options: Any, found: dict[str, dict[str, list[float]]]) -> None:
    RESULTS.mkdir(exist_ok=True)
    _part(name, options).write_text(json.dumps(found), encoding="utf-8")


def main() -> None:
    options = read_arguments(__doc__)
    names = ["Synthetic", "GLIOMA"] if options.quick else [*PAPER, *SUBSTITUTES]
    results = {}
    for name in names:
        results[name] = _known(name, options) or evaluate(name, options)
        _keep(name, options, results[name])
        print(name, json.dumps(results[name]), flush=True)
    strengths = (1.0, 10.0, 100.0)
    shapes = {name: (len(np.unique(y)), *X.shape) for name in SUBSTITUTES if name in results for X, y in [load(name)]}
    table8 = {
        name: {
            s: [moves(name, s, g, 1 if options.quick else 5, options.seed) for g in strengths]
            for s in ("variance", "laplacian", "lgd")
        }
        for name in names
    }
    write_results("grm_tables", options, results=results, correct_moves=table8, strengths=strengths)
    if not options.quick:
        write_page(results, shapes, table8, strengths, FACTORS)


if __name__ == "__main__":
    main()
