"""TPAMI 2016, Figs 4 to 7: accuracy, time and redundancy on wide sparse data, and the number of affiliated features.

20 Newsgroups (19,997 x 1,619,506 word 1-2-gram counts, half for training, in place of news20.binary) and Dorothea
(1,150 x 100,000, three folds; balanced accuracy, because 10 % are positive). Methods that scale to these data, each with a
time limit. Writes sections of docs/evidence/paper-comparisons.md and docs/evidence/figures.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from _curves import draw, run, section
from _real import load
from _record import read_arguments, write_results
from _tables import DOCS, FIGURES, markdown_table, print_table, replace_section
from scipy import sparse
from sklearn.base import clone
from sklearn.model_selection import StratifiedKFold, train_test_split

from coterie import GroupDiscoveryClassifier
from coterie.comparison.trial import selector_named
from coterie.plots import affiliated_counts

SIZES = (10, 25, 50, 100, 150, 200)
SHOWN = (10, 50, 100, 200)
LIMIT = 200.0
FEATURES_PER_ROUND = 10  # as in the papers
METHODS: dict[str, Any] = {
    "GDM-PCC": GroupDiscoveryClassifier(C=1.0, n_features_per_round=FEATURES_PER_ROUND, standardize=False),
    "GDM-SU": GroupDiscoveryClassifier(
        C=1.0, correlation="su", threshold=0.6, n_features_per_round=FEATURES_PER_ROUND, standardize=False
    ),
    "GDM, τ = 0 (FGM)": selector_named("fgm", C=1.0).set_params(n_features_per_round=FEATURES_PER_ROUND, standardize=False),
    "L1-SVM": selector_named("l1-svm"),
    "SVM-RFE": selector_named("svm-rfe"),
    "mRMR": selector_named("mrmr"),
    "FCBF": selector_named("fcbf"),
    "Fisher": selector_named("fisher"),
}
WORDS = {
    "text": "20 Newsgroups: 19,997 samples, one random split in halves, 1,619,506 features.",
    "dorothea": "Dorothea: 1,150 samples, three folds, 100,000 features; *balanced* accuracy (chance level 0.5).",
}


def text(quick: bool, seed: int) -> tuple[Any, np.ndarray, list[Any], str]:
    X, y = load("20news_bigrams")
    if quick:
        X, y = X[::10, :100_000], y[::10]
    folds = [train_test_split(np.arange(len(y)), train_size=0.5, stratify=y, random_state=seed)]
    return sparse.csc_array(X), y, folds, "accuracy"


def dorothea(quick: bool, seed: int) -> tuple[Any, np.ndarray, list[Any], str]:
    X, y = load("dorothea")
    folds = list(StratifiedKFold(3, shuffle=True, random_state=seed).split(X, y))  # only 112 positive samples
    return sparse.csc_array(X), y, folds[: 1 if quick else 3], "balanced_accuracy"


DATA = {"text": text, "dorothea": dorothea}


def figure_7(name: str, X: Any, y: np.ndarray, train: np.ndarray) -> tuple[str, list[dict[str, Any]]]:
    """Draw Fig. 7: affiliated against support features, in complete groups and in the paper's ranked groups."""
    X, y = X.tocsr()[train].tocsc(), y[train]
    models = {
        (method, affiliates): clone(METHODS[method])
        .set_params(n_features_to_select=SIZES[-1], affiliates=affiliates)
        .fit(X, y)
        for affiliates in ("complete", "ranked")
        for method in ("GDM-PCC", "GDM-SU")
    }
    path = FIGURES / f"tpami-{name}-affiliated.png"
    curves = {f"{method}, {affiliates}": model for (method, affiliates), model in models.items()}
    affiliated_counts(curves, title=f"{name} (TPAMI Fig. 7)").savefig(path, dpi=100)
    rows = [
        {
            "method": method,
            "groups": affiliates,
            "support features": len(model.groups_),
            "affiliated features": len(model.groups_.members) - len(model.groups_),
        }
        for (method, affiliates), model in models.items()
    ]
    return f"![affiliated features of {name}](figures/{path.name})", rows


def main() -> None:
    options = read_arguments(__doc__, parts=(*DATA, *(f"{name}-figure-7" for name in DATA)))
    sizes = SIZES[:3] if options.quick else SIZES
    for name, make in DATA.items():
        if options.only not in (None, name, f"{name}-figure-7"):
            continue
        X, y, folds, scoring = make(options.quick, options.seed)
        if options.only in (None, name):
            limit = 20.0 if options.quick else LIMIT
            compared = run(METHODS, ["Fisher"], X, y, folds, sizes, limit, scoring=scoring)
            print(compared)
            write_results(f"tpami_{name}", options, rows=compared.table.to_dict("records"))
            if not options.quick:
                words = section(compared, SHOWN, draw(compared, f"tpami-{name}"), WORDS[name])
                replace_section(DOCS / "paper-comparisons.md", f"tpami {name}", words)
        if options.only in (None, f"{name}-figure-7") and not options.quick:
            picture, rows = figure_7(name, X, y, folds[0][0])
            print_table(f"TPAMI Fig. 7, {name}", rows)
            replace_section(DOCS / "paper-comparisons.md", f"tpami {name} figure 7", f"{picture}\n\n{markdown_table(rows)}")


if __name__ == "__main__":
    main()
