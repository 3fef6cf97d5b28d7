"""ICML 2012, Figs 2 to 6: accuracy, time and redundancy by number of features, and the selected pixels.

The synthetic data (2,048 training and 2,048 test samples, 10,000 features, 200 groups of which 30 have correlated features),
MNIST 3 against 8, and USPS 0 against 1. "MethodA" is FGM on the synthetic data without the true redundant features. Selected
features are tested with a linear SVM. Writes sections of docs/evidence/paper-comparisons.md and docs/evidence/figures.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from _curves import draw, run, section
from _real import load
from _record import read_arguments, write_results
from _tables import DOCS, FIGURES, replace_section
from sklearn.base import BaseEstimator
from sklearn.model_selection import train_test_split

from coterie import FeatureGroup, FeatureGroups, GroupDiscoveryClassifier
from coterie.comparison.trial import selector_named
from coterie.datasets import make_feature_groups
from coterie.plots import pixel_map
from coterie.plots.canvas import new_figure

THRESHOLD = 0.75  # the paper's 1 - τ
FEATURES_PER_ROUND = 10  # as in the papers
SIZES = (10, 25, 50, 100, 150, 200)
SHOWN = (10, 50, 100, 200)
LIMIT = 150.0


class MethodA(BaseEstimator):
    """FGM on the features without the true redundant ones."""

    def __init__(self, left=None, n_features_to_select=10):
        self.left = left
        self.n_features_to_select = n_features_to_select

    def fit(self, X, y):
        self.model_ = (
            selector_named("fgm", C=1.0)
            .set_params(n_features_per_round=FEATURES_PER_ROUND, standardize=False)
            .set_params(n_features_to_select=self.n_features_to_select)
        )
        self.model_.fit(X[:, self.left], y)
        self.support_features_ = np.asarray(self.left)[self.model_.support_features_]
        self.mask_ = np.isin(np.arange(X.shape[1]), self.support_features_)
        return self

    def get_support(self):
        return self.mask_


def methods() -> dict[str, Any]:
    return {
        "GDM": GroupDiscoveryClassifier(
            C=1.0, threshold=THRESHOLD, standardize=False, n_features_per_round=FEATURES_PER_ROUND
        ),
        "GDM with affiliated": GroupDiscoveryClassifier(
            C=1.0, threshold=THRESHOLD, standardize=False, n_features_per_round=FEATURES_PER_ROUND, keep="groups"
        ),
        "FGM": selector_named("fgm", C=1.0).set_params(n_features_per_round=FEATURES_PER_ROUND, standardize=False),
        "L1-SVM": selector_named("l1-svm"),
        "SVM-RFE": selector_named("svm-rfe"),
        "RCFS": selector_named("rcfs"),
        "FCBF": selector_named("fcbf", n_bins=3),
        "mRMR": selector_named("mrmr"),
        "ReliefF": selector_named("relieff"),
    }


def synthetic(quick: bool, seed: int) -> tuple[Any, np.ndarray, list[Any], dict[str, Any]]:
    n_samples, n_features = (400, 1000) if quick else (2048, 10_000)
    data = make_feature_groups(2 * n_samples, n_features, random_state=seed)
    redundant = np.concatenate([group.affiliated for group in data.groups])
    left = np.setdiff1d(np.arange(n_features), redundant)
    folds = [(np.arange(n_samples), np.arange(n_samples, 2 * n_samples))]
    return data.X, data.y, folds, {**methods(), "MethodA": MethodA(left)}


def mnist(quick: bool, seed: int) -> tuple[Any, np.ndarray, list[Any], dict[str, Any]]:
    X, y = load("mnist_3v8")
    _, train = load("mnist_3v8", "train")
    part = np.random.default_rng(seed).permutation(np.flatnonzero(train))[: 600 if quick else 4000]
    return (X / 255.0).astype(np.float32), y, [(np.sort(part), np.flatnonzero(~train))], methods()


def usps(quick: bool, seed: int) -> tuple[Any, np.ndarray, list[Any], dict[str, Any]]:
    X, y = load("usps")
    X, y = X[y < 2], y[y < 2]
    folds = [train_test_split(np.arange(len(y)), train_size=0.5, stratify=y, random_state=seed + fold) for fold in range(3)]
    return X, y, folds[: 1 if quick else 3], methods()


DATA = {"synthetic": synthetic, "mnist": mnist, "usps": usps}
WORDS = {
    "synthetic": "ICML synthetic data (Fig. 2), 2,048 training samples, 2,048 test samples, 10,000 features.",
    "mnist": "MNIST, 3 against 8 (Figs 3a, 4a, 5a): 4,000 of the 11,982 training samples, drawn at random; all test samples.",
    "usps": "USPS, 0 against 1 (Figs 3b, 4b, 5b): 2,199 samples, three random splits in halves.",
}


def draw_pixels(name: str, side: int, n_features: int, seed: int) -> str:
    """Draw Fig. 6: the selected pixels of each method, and the affiliated ones of GDM."""
    X, y, folds, contenders = DATA[name](False, seed)
    train = folds[0][0]
    shown = ("GDM", "FGM", "L1-SVM", "SVM-RFE", "mRMR", "RCFS")
    figure = new_figure(9.0, 6.4)
    background = X[train][y[train] == np.unique(y)[0]].mean(axis=0)
    for number, method in enumerate(shown, start=1):
        model = contenders[method].set_params(n_features_to_select=n_features).fit(X[train], y[train])
        groups = (
            model.groups_ if method == "GDM" else FeatureGroups([FeatureGroup(int(j), []) for j in model.support_features_])
        )
        ax = figure.add_subplot(2, 3, number)
        pixel_map(groups, (side, side), background=background, ax=ax, title=method)
    path = FIGURES / f"icml-{name}-pixels.png"
    figure.savefig(path, dpi=100)
    return f"![pixels of {name}](figures/{path.name})"


def main() -> None:
    options = read_arguments(__doc__, parts=tuple(DATA))
    sizes = SIZES[:3] if options.quick else SIZES
    for name in [options.only] if options.only else list(DATA):
        X, y, folds, contenders = DATA[name](options.quick, options.seed)
        limit = 20.0 if options.quick else LIMIT
        # MethodA is not warmed up, so its first time would include the loading of libraries.
        found = run(contenders, ["ReliefF"], X, y, folds, sizes, limit, untimed=["MethodA"])
        print(found)
        write_results(f"icml_{name}", options, rows=found.table.to_dict("records"))
        if options.quick:
            continue
        text = section(found, SHOWN, draw(found, f"icml-{name}"), WORDS[name])
        if name != "synthetic":
            text += "\n" + draw_pixels(name, 28 if name == "mnist" else 16, 50 if name == "mnist" else 30, options.seed)
        replace_section(DOCS / "paper-comparisons.md", f"icml {name}", text)


if __name__ == "__main__":
    main()
