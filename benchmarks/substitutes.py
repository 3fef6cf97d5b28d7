"""Accuracy lost when columns are absent: substitutes against L1 and ridge with mean imputation, on eight gene sets.

The rule for substitutes was chosen on the sets of CHOOSE, before any set of REPORT was evaluated (--rules compares the
candidates there): one member per absent feature, or several members jointly. Each data set adds lines to
results/substitutes.jsonl. Folds with lines of the same VERSION are not run again.

Protocol: five stratified folds. A share of the columns of the held-out samples is absent: random columns (the same for all
models, three draws), or columns that the model itself uses most, which is the hardest case for it. For Coterie
these are support features. For L1 they are the features with nonzero weights, for ridge as many of the largest weights as
Coterie has support features. Coterie uses substitutes, the others the training means. All models are fitted to complete data.
"""

from __future__ import annotations

import argparse
import json
import time
import warnings
from collections import defaultdict
from collections.abc import Iterator
from itertools import product
from typing import Any

import numpy as np
from _real import data_path, load
from _record import RESULTS
from _tables import DOCS, markdown_table, print_table, replace_section
from sklearn.datasets import load_svmlight_file
from sklearn.linear_model import LogisticRegressionCV
from sklearn.model_selection import StratifiedKFold
from sklearn.multiclass import OneVsRestClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from coterie import GroupDiscoveryClassifierCV, substituted

CHOOSE, REPORT = ("shipp", "gravier", "khan", "glioma"), ("gordon", "su", "chowdary", "duke")
SHARES = (0.1, 0.3, 0.5)
DRAWS, N_FOLDS = 3, 5
VERSION = 1  # of the journal: raise it if the same lines would have other values
PAGE = DOCS / "substitutes.md"
JOURNAL = RESULTS / "substitutes.jsonl"
MODELS = ("coterie", "coterie, support only", "L1", "ridge")
RULES = ("mean", "one member", "several, one factor", "several, regression")


def read(name: str) -> tuple[np.ndarray, np.ndarray]:
    """Return features and labels of a set."""
    if name == "duke":
        X, y = load_svmlight_file(str(data_path("duke.svm")))
        return X.toarray(), y
    X, y = load(name)
    return np.asarray(X, dtype=np.float64), y


def models(seed: int) -> dict[str, Any]:
    """Return the models of the comparison."""
    options: dict[str, Any] = {"Cs": 10, "cv": 5, "random_state": seed, "max_iter": 500}
    lasso = LogisticRegressionCV(penalty="l1", solver="liblinear", **options)
    ridge = LogisticRegressionCV(solver="lbfgs", **options)
    return {
        "coterie": GroupDiscoveryClassifierCV(random_state=seed, predict_with="groups"),
        "coterie, support only": GroupDiscoveryClassifierCV(random_state=seed, predict_with="support"),
        "L1": make_pipeline(StandardScaler(), OneVsRestClassifier(lasso)),
        "ridge": make_pipeline(StandardScaler(), ridge),
    }


def is_coterie(name: str) -> bool:
    """Return True for models with substitutes."""
    return name.startswith("coterie")


def most_used(name: str, model: Any, n_wanted: int) -> np.ndarray:
    """Return the features that a model uses most, the first ones first."""
    if is_coterie(name):
        return np.asarray(model.support_features_)
    last = model[-1]
    coef = np.vstack([own.coef_ for own in last.estimators_]) if name == "L1" else last.coef_
    size = np.linalg.norm(np.atleast_2d(coef), axis=0)
    order = np.argsort(-size, kind="stable")
    return order[: int(np.count_nonzero(size)) if name == "L1" else n_wanted]


def without(X: np.ndarray, absent: np.ndarray) -> np.ndarray:
    """Return a copy in which all values of some columns are missing."""
    found = X.copy()
    found[:, absent] = np.nan
    return found


def patterns(
    name: str, model: Any, n_features: int, n_support: int, seed: int
) -> Iterator[tuple[str, float, int, np.ndarray]]:
    """Yield the absent columns: kind, share, draw, features."""
    own = most_used(name, model, n_support)
    for share in SHARES:
        for draw in range(DRAWS):
            rng = np.random.default_rng([seed, draw])
            yield "random", share, draw, rng.permutation(n_features)[: round(share * n_features)]
            yield "used most", share, draw, rng.permutation(own)[: round(share * len(own))]


def parts(y: np.ndarray, seed: int) -> list[tuple[np.ndarray, np.ndarray]]:
    """Return the training and held-out samples of the folds."""
    return list(StratifiedKFold(N_FOLDS, shuffle=True, random_state=seed).split(np.zeros(len(y)), y))


def compare(name: str, fold: int, seed: int = 0) -> Iterator[dict[str, Any]]:
    """Yield the accuracies of all models in a fold of a set, with complete data and without columns."""
    X, y = read(name)
    train, test = parts(y, seed)[fold]
    n_support, mean = 0, X[train].mean(axis=0)
    for which, model in models(seed).items():
        began = time.process_time()
        model.fit(X[train], y[train])
        seconds = time.process_time() - began
        n_support = len(model.support_features_) if which == "coterie" else n_support
        facts = {"set": name, "fold": fold, "model": which, "n": len(test), "seconds": seconds}
        right = float((model.predict(X[test]) == y[test]).sum())
        yield {**facts, "kind": "complete", "share": 0.0, "draw": 0, "right": right}
        for kind, share, draw, absent in patterns(which, model, X.shape[1], n_support, 100 * seed + fold):
            gaps = without(X[test], absent)
            if is_coterie(which):
                new = substituted(model, gaps)
                predicted = model.predict(new)
                facts |= {"agreement": new.substitutes.agreement, "actual": _agreement(model, X[test], new)}
            else:
                predicted = model.predict(np.where(np.isnan(gaps), mean, gaps))
            right = float((predicted == y[test]).sum())
            yield {**facts, "kind": kind, "share": share, "draw": draw, "right": right}


def _agreement(model: Any, X: np.ndarray, new: Any) -> float:
    """Return the correlation of the decision values with substitutes and with complete data, over all outputs."""
    complete, own = (np.atleast_2d(model.decision_function(data).T) for data in (X, new))
    complete, own = (values - values.mean(axis=1, keepdims=True) for values in (complete, own))
    norm = float(np.sqrt((complete**2).sum() * (own**2).sum()))
    return float((complete * own).sum()) / norm if norm > 0.0 else 1.0


def rules(name: str, fold: int, seed: int = 0) -> Iterator[dict[str, Any]]:
    """Yield the accuracies of several rules for substitutes, in a fold of a set."""
    X, y = read(name)
    train, test = parts(y, seed)[fold]
    for which in MODELS[:2]:
        model = models(seed)[which].fit(X[train], y[train])
        facts = {"set": name, "fold": fold, "model": which, "n": len(test)}
        n_support = len(model.support_features_)
        for kind, share, draw, absent in patterns(which, model, X.shape[1], n_support, 100 * seed + fold):
            for rule in RULES:
                right = float((model.predict(fill(rule, model, X[train], X[test], absent)) == y[test]).sum())
                yield {**facts, "rule": rule, "kind": kind, "share": share, "draw": draw, "right": right}


def _mask(n_features: int, absent: np.ndarray) -> np.ndarray:
    mask = np.zeros(n_features, dtype=bool)
    mask[absent] = True
    return mask


def fill(rule: str, model: Any, train: np.ndarray, test: np.ndarray, absent: np.ndarray) -> np.ndarray:
    """Return held-out samples in which absent features of the groups are predicted by a rule, and others are means."""
    mean, scale = train.mean(axis=0), train.std(axis=0)
    filled = np.where(_mask(train.shape[1], absent), mean, test)
    for group in () if rule == "mean" else model.groups_:
        lacking = np.intersect1d(group.members, absent)
        present = np.setdiff1d(group.members, absent)
        if not len(lacking) or not len(present):
            continue
        z = (test[:, present] - mean[present]) / scale[present]
        by_support = dict(zip(group.members.tolist(), np.append(1.0, group.correlation), strict=True))
        r = np.array([by_support[j] for j in present])
        if rule == "several, regression":
            centred = (train[:, present] - mean[present]) / scale[present]
            gram = centred.T @ centred / len(train) + 0.1 * np.eye(len(present))
            target = (train[:, lacking] - mean[lacking]) / scale[lacking]
            predicted = z @ np.linalg.solve(gram, centred.T @ target / len(train))
        else:
            if rule == "one member" or group.support in present:
                best = int(np.argmax(np.abs(r)))
                support = r[best] * z[:, best]
            else:
                precision = r / np.maximum(1.0 - r**2, 1e-6)
                support = z @ precision / (1.0 + precision @ r)
            predicted = support[:, None] * np.array([by_support[j] for j in lacking])
        filled[:, lacking] = mean[lacking] + scale[lacking] * predicted
    return filled


def collected(task: str, names: tuple[str, ...]) -> list[dict[str, Any]]:
    """Return the lines of some sets, running those that are not in the journal."""
    RESULTS.mkdir(exist_ok=True)
    run = rules if task == "rules" else compare
    known = [json.loads(line) for line in JOURNAL.read_text().splitlines()] if JOURNAL.exists() else []
    found = []
    for name, fold in product(names, range(N_FOLDS)):
        wanted = {"task": task, "set": name, "fold": fold, "version": VERSION}
        own = [line for line in known if wanted.items() <= line.items()]
        if not own:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                own = [{**wanted, **line} for line in run(name, fold)]
            with JOURNAL.open("a") as file:
                file.writelines(json.dumps(line) + "\n" for line in own)
            print(f"{name}, fold {fold}: {len(own)} lines", flush=True)
        found += own
    return found


def accuracy(lines: list[dict[str, Any]], **wanted: Any) -> float | None:
    """Return the share of correct predictions of some lines, in percent; each draw counts alike."""
    own = [line for line in lines if all(line[name] == value for name, value in wanted.items())]
    return 100.0 * sum(line["right"] for line in own) / sum(line["n"] for line in own) if own else None


def table_of_rules(lines: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the mean accuracy over the sets by rule, kind and share."""
    rows = []
    for model in MODELS[:2]:
        for kind in ("random", "used most"):
            for share in SHARES:
                row: dict[str, Any] = {"model": model, "absent": kind, "share": f"{share:.0%}"}
                for rule in RULES:
                    own = [accuracy(lines, set=name, model=model, kind=kind, share=share, rule=rule) for name in CHOOSE]
                    row[rule] = round(float(np.mean([value for value in own if value is not None])), 1)
                rows.append(row)
    return rows


def table_of_losses(lines: list[dict[str, Any]], names: tuple[str, ...]) -> list[dict[str, Any]]:
    """Return the mean accuracy over the sets with complete data, and the points lost."""
    rows = []
    for model in MODELS:
        complete = {name: accuracy(lines, set=name, model=model, kind="complete") or 0.0 for name in names}
        row: dict[str, Any] = {"model": model, "complete": f"{np.mean(list(complete.values())):.1f}"}
        for kind in ("random", "used most"):
            for share in SHARES:
                own = [
                    (accuracy(lines, set=name, model=model, kind=kind, share=share) or 0.0) - complete[name] for name in names
                ]
                row[f"{kind} {share:.0%}"] = f"{np.mean(own):+.1f}"
        rows.append(row)
    return rows


def table_of_sets(lines: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return accuracies by set: complete, and without half of the columns."""
    rows = []
    for name in (*REPORT, *CHOOSE):
        row: dict[str, Any] = {"set": name + (" (chosen with)" if name in CHOOSE else "")}
        for model in MODELS:
            values = [accuracy(lines, set=name, model=model, kind="complete")]
            values += [accuracy(lines, set=name, model=model, kind=kind, share=0.5) for kind in ("random", "used most")]
            row[model] = " / ".join(f"{value:.1f}" for value in values if value is not None)
        rows.append(row)
    return rows


def table_of_agreement(lines: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return stated and actual correlations of decision values with those from complete data."""
    cells: dict[tuple[str, str, str], list[tuple[float, float]]] = defaultdict(list)
    for line in lines:
        if line["kind"] != "complete" and is_coterie(line["model"]) and line["set"] in REPORT:
            cells[line["model"], line["kind"], f"{line['share']:.0%}"].append((line["agreement"], line["actual"]))
    return [
        {
            "model": key[0],
            "absent": key[1],
            "share": key[2],
            "stated": f"{np.mean([own[0] for own in values]):.3f}",
            "actual": f"{np.mean([own[1] for own in values]):.3f}",
        }
        for key, values in sorted(cells.items())
    ]


def main() -> None:
    """Run the comparison and write the tables."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--rules", action="store_true", help="compare rules for substitutes, on the sets of CHOOSE only")
    parser.add_argument("--sets", default=None, help="sets to run, separated by commas; no page is written")
    parser.add_argument("--page", action="store_true", help="write the tables into docs/evidence/substitutes.md")
    options = parser.parse_args()
    if options.rules:
        rows = table_of_rules(collected("rules", CHOOSE if options.sets is None else tuple(options.sets.split(","))))
        print_table("Accuracy by rule, mean over the sets to choose with", rows)
        if options.page:
            replace_section(PAGE, "rules", markdown_table(rows))
        return
    names = (*CHOOSE, *REPORT) if options.sets is None else tuple(options.sets.split(","))
    lines = collected("compare", names)
    if options.sets is not None:
        print_table("Points of accuracy lost", table_of_losses(lines, names))
        return
    tables = {
        "losses": table_of_losses(lines, REPORT),
        "losses chosen": table_of_losses(lines, CHOOSE),
        "sets": table_of_sets(lines),
        "agreement": table_of_agreement(lines),
    }
    for name, rows in tables.items():
        print_table(name, rows)
        if options.page:
            replace_section(PAGE, name, markdown_table(rows))


if __name__ == "__main__":
    main()
