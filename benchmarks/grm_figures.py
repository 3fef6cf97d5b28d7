"""Figures 2 to 7 of the GRM paper (TKDE 2015): covariances, LGD's neighbours, and samples in the plane of two components.

The paper's Figs 4 to 7 show LUNG, which is not available. SRBCT (`khan`), another data set of the paper, replaces it. Its
Fig. 3 shows two data sets that the text does not name. Here they are COIL20 and SRBCT. Writes
docs/evidence/figures/grm-*.png.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import _real
import numpy as np
from _models import warnings_counted
from _record import read_arguments
from _tables import FIGURES
from grm_tables import judge, scores_of
from sklearn.model_selection import StratifiedKFold

from coterie import GlobalRedundancySelector
from coterie.baselines import MRMRSelector
from coterie.datasets import make_block_gaussian
from coterie.filters import lgd_score
from coterie.plots import feature_scatter
from coterie.plots.canvas import new_figure

NEIGHBOURS = (2, 3, 4, 5, 6, 7, 8, 10, 12, 15, 20)
UNSUPERVISED, SUPERVISED = ("laplacian", "lgd among samples", "mcfs"), ("relieff", "fisher", "information_gain")


def draw_covariance(seed: int) -> None:
    """Draw Fig. 2: covariances of the synthetic features, in the order of their groups."""
    data = make_block_gaussian(random_state=seed)
    order = np.concatenate([group.members for group in data.groups])
    covariance = np.cov(data.X[:, order].T)
    figure = new_figure(4.4, 3.6)
    axis = figure.add_subplot()
    shown = axis.imshow(covariance, cmap="RdBu_r", vmin=-abs(covariance).max(), vmax=abs(covariance).max())
    figure.colorbar(shown, ax=axis)
    axis.set_title("Fig. 2: covariance of the synthetic features", fontsize=9)
    figure.savefig(FIGURES / "grm-2-covariance.png", dpi=70)


def draw_neighbours(names: Sequence[str], seed: int, quick: bool) -> None:
    """Draw Fig. 3: accuracy of the top 20 features by LGD against the number of neighbours, for both neighbourhoods."""
    figure = new_figure(4.0 * len(names), 3.2)
    for axis, name in zip(figure.subplots(1, len(names), squeeze=False)[0], names, strict=True):
        X, y = _real.load(name)
        X, y = X.astype(np.float64), np.unique(y, return_inverse=True)[1]
        folds = list(StratifiedKFold(3 if quick else 5, shuffle=True, random_state=seed).split(X, y))
        for neighborhood in ("values", "samples"):
            rows = []
            for k in NEIGHBOURS:
                found = []
                for train, test in folds:
                    scores = lgd_score(X[train], n_neighbors=k, neighborhood=neighborhood)
                    found.append(judge(X, y, train, test, np.argsort(-scores, kind="stable")[:20])[:2])
                rows.append(np.mean(found, axis=0))
            for line, classifier, style in zip(np.array(rows).T, ("linear SVM", "kNN"), ("-o", "--s"), strict=True):
                colour = "#0072b2" if neighborhood == "values" else "#d55e00"
                axis.plot(NEIGHBOURS, line, style, markersize=3, color=colour, label=f"{classifier}, among {neighborhood}")
        axis.set_title(f"Fig. 3: LGD on {name}", fontsize=9)
        axis.set_xlabel("neighbours", fontsize=8)
        axis.set_ylabel("accuracy (%)", fontsize=8)
        axis.tick_params(labelsize=7)
        axis.legend(fontsize=6)
    figure.savefig(FIGURES / "grm-3-neighbours.png", dpi=70)


def draw_components(number: int, scores: Sequence[str], n_features: int, X: np.ndarray, y: np.ndarray) -> None:
    """Draw Figs 4 to 7: all samples, as in the paper, on two components of the top features, without and with GRM."""
    with_mrmr = scores == SUPERVISED
    figure = new_figure(9.0, 2.6 * (len(scores) + with_mrmr))
    axes = figure.subplots(len(scores) + with_mrmr, 2)
    panels: list[tuple[str, np.ndarray]] = []
    for score in scores:
        found = scores_of(score, X, y)
        panels.append((score, np.argsort(-found, kind="stable")[:n_features]))
        with warnings_counted():
            panels.append(
                (f"{score} with GRM", GlobalRedundancySelector(found, n_features, solution="weights").fit(X).support_features_)
            )
    if with_mrmr:
        panels += [
            (f"mRMR {scheme.upper()}", MRMRSelector(n_features, scheme=scheme).fit(X, y).support_features_)
            for scheme in ("mid", "miq")
        ]
    for place, (axis, (title, features)) in enumerate(zip(axes.ravel(), panels, strict=True)):
        feature_scatter(X, y, features, standardize=True, ax=axis, title=title)
        axis.title.set_fontsize(8)
        axis.tick_params(labelsize=6)
        axis.xaxis.label.set_fontsize(7)
        axis.yaxis.label.set_fontsize(7)
        if place != 1:
            axis.get_legend().remove()
    figure.suptitle(f"Fig. {number}: SRBCT, top {n_features} features", fontsize=10)
    figure.savefig(FIGURES / f"grm-{number}-components.png", dpi=60)


def main() -> None:
    options: Any = read_arguments(__doc__)
    FIGURES.mkdir(exist_ok=True)
    draw_covariance(options.seed)
    draw_neighbours(["khan"] if options.quick else ["coil20", "khan"], options.seed, options.quick)
    X, y = _real.load("khan")
    X = X.astype(np.float64)
    for number, (scores, n_features) in enumerate(
        [(UNSUPERVISED, 20), (UNSUPERVISED, 40), (SUPERVISED, 20), (SUPERVISED, 40)], start=4
    ):
        draw_components(number, scores, n_features, X, y)
    print(f"Written: {FIGURES.name}/grm-2 to grm-7")


if __name__ == "__main__":
    main()
