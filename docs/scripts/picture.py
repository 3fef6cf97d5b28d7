"""The README's picture: groups of a real run, with their confidences. Writes docs/groups.png.

python docs/scripts/picture.py
"""

from __future__ import annotations

from pathlib import Path

from matplotlib.figure import Figure
from sklearn.datasets import load_breast_cancer

from coterie import GroupDiscoveryClassifier, group_confidence
from coterie.plots import group_graph

PICTURE = Path(__file__).resolve().parents[1] / "groups.png"


def main() -> None:
    """Fit, judge and draw."""
    X, y = load_breast_cancer(return_X_y=True, as_frame=True)
    y = y.map({0: "malignant", 1: "benign"})
    model = GroupDiscoveryClassifier(6, threshold=0.8).fit(X, y)
    confidence = group_confidence(model, X, y, random_state=0)
    figure = Figure(figsize=(11, 4.6), layout="constrained", facecolor="white")
    left, right = figure.subplots(1, 2, width_ratios=[2.3, 1])
    group_graph(model, ax=left)
    left.set_title("Six support features (dark) and the features that go along with them", fontsize=10)
    _bars(right, [group.labels[0] for group in model.groups_], confidence.confidence)
    figure.savefig(PICTURE, dpi=110)
    print(f"Written: {PICTURE.name}, {PICTURE.stat().st_size:,} bytes")


def _bars(axes, names, confidences) -> None:
    places = range(len(names))[::-1]
    axes.barh(places, confidences, color=["#0072B2" if value >= 0.9 else "#BBBBBB" for value in confidences])
    axes.set_yticks(places, names, fontsize=8)
    axes.axvline(0.9, color="black", linewidth=0.8, linestyle="--")
    axes.set_xlim(0, 1)
    axes.set_xlabel("confidence: found again on half of the samples", fontsize=8)
    axes.set_title("Which of them are real?", fontsize=10)
    axes.spines[["top", "right"]].set_visible(False)


if __name__ == "__main__":
    main()
