"""The choice of settings with a rare class: by the deviance with offsets (the default) and by the ROC AUC.

Training sets have 4 to 18 % positives: the smaller class of a set (or its first class), of which all but some samples are left
out. The remaining samples are the test set, with the same share of positives as far as they suffice. Four draws per set.

The sets of CHOOSE were used to decide on the rule, those of REPORT were evaluated once, after the decision.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping

import numpy as np
from _record import read_arguments, write_results
from _tables import DOCS, markdown_table, print_table, replace_section
from choice_of_settings import read
from sklearn.metrics import balanced_accuracy_score, brier_score_loss, roc_auc_score

from coterie import GroupDiscoveryClassifierCV

# Share of positives, and number of training samples, if there are enough.
CHOOSE = {
    "shipp": (0.15, 60),
    "gravier": (0.15, 120),
    "khan": (0.18, 60),
    "christensen": (0.15, 150),
    "madelon": (0.1, 300),
    "basehock": (0.1, 200),
    "coil20": (0.05, 300),
    "spambase": (0.08, 200),
}
REPORT = {
    "gordon": (0.17, 181),
    "dorothea": (0.09, 300),
    "chowdary": (0.12, 80),
    "duke": (0.18, 40),
    "su": (0.15, 90),
    "gisette_valid": (0.1, 200),
    "mnist_3v8": (0.08, 200),
    "usps": (0.1, 200),
    "mfeat": (0.1, 200),
    "breast_cancer": (0.12, 150),
    "pbmc68k_reduced": (0.1, 200),
    "wine": (0.15, 80),
    "glioma": (0.18, 45),
}
# The positive class of sets with several classes, by its code.
POSITIVE = {"pbmc68k_reduced": 1}
N_TEST, MIN_POSITIVES, TRAINING_SHARE = 600, 8, 0.6
RULES = {"deviance with offsets": "auto", "ROC AUC": "best"}
MEASURES = ("ROC AUC", "balanced accuracy", "accuracy", "Brier score", "log loss")


def draw(name: str, share: float, n_train: int, seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Return features, the rare class as 1, and the samples for training and for testing."""
    X, codes = read(name)
    sizes = np.bincount(codes)
    rare = codes == (POSITIVE.get(name, 0) if len(sizes) > 2 else int(np.argmin(sizes)))
    rng = np.random.default_rng(seed)
    positive, negative = (rng.permutation(np.flatnonzero(part)) for part in (rare, ~rare))
    n_positive = min(max(MIN_POSITIVES, round(share * n_train)), int(len(positive) * TRAINING_SHARE))
    n_negative = min(int(n_positive * (1 - share) / share), int(len(negative) * TRAINING_SHARE))
    others = negative[n_negative : n_negative + N_TEST]
    left = positive[n_positive:][: max(4, int(len(others) * share / (1 - share)))]
    return X, rare.astype(int), np.append(positive[:n_positive], negative[:n_negative]), np.append(left, others)


def measured(model: GroupDiscoveryClassifierCV, X: np.ndarray, y: np.ndarray) -> dict[str, float]:
    """Return the measures of a fitted model on test samples."""
    predicted, positive = model.predict(X), np.clip(model.predict_proba(X)[:, 1], 1e-6, 1 - 1e-6)
    values = (
        roc_auc_score(y, model.decision_function(X)),
        balanced_accuracy_score(y, predicted),
        np.mean(predicted == y),
        brier_score_loss(y, positive),
        -np.mean(np.log(np.where(y == 1, positive, 1 - positive))),
    )
    return dict(zip(MEASURES, map(float, values), strict=True))


def results(sets: Mapping[str, tuple[float, int]], n_draws: int, threads: int) -> Iterator[dict[str, object]]:
    """Yield one row per set and rule."""
    for name, (share, n_train) in sets.items():
        draws = [draw(name, share, n_train, seed) for seed in range(n_draws)]
        for label, rule in RULES.items():
            found = []
            for X, y, train, test in draws:
                model = GroupDiscoveryClassifierCV(rule=rule, scoring=None, random_state=0, n_jobs=threads)
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")
                    found.append(measured(model.fit(X[train], y[train]), X[test], y[test]) | {"features": model.n_features_})
            mean = {key: float(np.mean([one[key] for one in found])) for key in found[0]}
            size = {"data": name, "positives": int(draws[0][1][draws[0][2]].sum()), "samples": len(draws[0][2])}
            yield {**size, "rule": label, **mean}


def table(rows: list[dict[str, object]]) -> list[dict[str, object]]:
    """Return rows with both rules side by side, and the means over the sets."""
    by_rule = {label: [row for row in rows if row["rule"] == label] for label in RULES}
    first, second = by_rule.values()
    shown = [
        {
            "data": f"{one['data']} ({one['positives']} of {one['samples']})",
            **{key: f"{one[key]:.3f} / {other[key]:.3f}" for key in MEASURES},
        }
        for one, other in zip(first, second, strict=True)
    ]
    means = {key: " / ".join(f"{np.mean([row[key] for row in own]):.4f}" for own in (first, second)) for key in MEASURES}
    return [*shown, {"data": "mean", **means}]


def main() -> None:
    options = read_arguments(__doc__, repeats=4)
    content = {}
    for part, sets in (("choose", CHOOSE), ("report", REPORT)):
        used = {"khan": CHOOSE["khan"]} if options.quick else sets
        rows = list(results(used, options.repeats, options.threads))
        print_table(f"{part}: {' / '.join(RULES)}", table(rows))
        content[part] = rows
    write_results("rare_classes", options, **content)
    if not options.quick:
        for part, rows in content.items():
            replace_section(DOCS / "choice-of-settings.md", f"rare {part}", markdown_table(table(rows)))


if __name__ == "__main__":
    main()
