"""Draw the figure of the README, docs/groups.png: the groups of its example, with their confidences.

python docs/scripts/picture.py
"""

from __future__ import annotations

from pathlib import Path

from matplotlib.figure import Figure
from sklearn.datasets import load_breast_cancer

import coterie
from coterie.plots import group_graph

PICTURE = Path(__file__).resolve().parents[1] / "groups.png"


def main() -> None:
    """Run the example and draw its groups."""
    X, y = load_breast_cancer(return_X_y=True, as_frame=True)
    y = y.map({0: "malignant", 1: "benign"}).rename("diagnosis")
    groups = coterie.discover(X, y, threshold=0.8).groups
    figure = Figure(figsize=(11, 4.6), layout="constrained", facecolor="white")
    left, right = figure.subplots(1, 2, width_ratios=[2.3, 1])
    group_graph(groups, ax=left)
    left.set_title("Support features (dark) and their affiliated features", fontsize=10)
    _bars(right, [group.labels[0] for group in groups], [group.confidence for group in groups])
    figure.savefig(PICTURE, dpi=110)
    print(f"Written: {PICTURE.name}, {PICTURE.stat().st_size:,} bytes")


def _bars(axes, names, confidences) -> None:
    places = range(len(names))[::-1]
    axes.barh(places, confidences, color=["#0072B2" if value >= 0.9 else "#BBBBBB" for value in confidences])
    axes.set_yticks(places, names, fontsize=8)
    axes.axvline(0.9, color="black", linewidth=0.8, linestyle="--")
    axes.set_xlim(0, 1)
    axes.set_xlabel("share of half-samples in which the group is found again", fontsize=8)
    axes.set_title("Confidence of each group", fontsize=10)
    axes.spines[["top", "right"]].set_visible(False)


if __name__ == "__main__":
    main()
