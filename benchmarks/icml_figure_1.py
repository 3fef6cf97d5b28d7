"""ICML 2012, Fig. 1: support and affiliated pixels that distinguish women's faces from men's (ORL).

As in the paper, pixels are not standardised and the threshold is 0.75. The paper does not give its number of support features.
The data do not record sex: persons 8, 10, 32 and 35 were identified as the four women from the pictures. Accuracy is measured
on the training faces (the paper's "perfect prediction") and on held-out people: four folds, each with one woman and nine men.
The adjacency of affiliated pixels is the share of them that touch another one, compared with as many random pixels. Writes a
section of docs/evidence/paper-comparisons.md and its figure.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from _models import warnings_counted
from _real import load
from _record import read_arguments, write_results
from _tables import DOCS, FIGURES, markdown_table, print_table, replace_section

from coterie import GroupDiscoveryClassifier
from coterie.plots.canvas import new_figure

SIDE = 32
WOMEN = (8, 10, 32, 35)
THRESHOLD = 0.75
SIZES = (10, 20, 40, 80)
DRAWN = 40
SHOWN = (26, 10)  # a bearded man and a woman


def fit(X: np.ndarray, y: np.ndarray, size: int, **parameters: Any) -> GroupDiscoveryClassifier:
    return GroupDiscoveryClassifier(size, threshold=THRESHOLD, **{"C": 1.0, "standardize": False, **parameters}).fit(X, y)


def unseen_people(X: np.ndarray, y: np.ndarray, person: np.ndarray, size: int, predict_with: str) -> float:
    """Return the balanced accuracy on held-out people, one woman and nine men per fold."""
    men = np.setdiff1d(person, WOMEN)
    right: dict[int, list[bool]] = {-1: [], 1: []}
    for fold, woman in enumerate(WOMEN):
        out = np.isin(person, [woman, *men[fold::4]])
        predicted = fit(X[~out], y[~out], size, predict_with=predict_with).predict(X[out])
        for label, guess in zip(y[out], predicted, strict=True):
            right[int(label)].append(bool(guess == label))
    return float(np.mean([np.mean(one) for one in right.values()]))


def share_touching(pixels: np.ndarray) -> float:
    """Return the share of pixels with another one of them above, below, to the left or to the right."""
    if not len(pixels):
        return float("nan")
    image = np.zeros((SIDE + 2, SIDE + 2), dtype=bool)
    rows, columns = 1 + pixels % SIDE, 1 + pixels // SIDE  # pixels are stored by columns
    image[rows, columns] = True
    touching = image[rows - 1, columns] | image[rows + 1, columns] | image[rows, columns - 1] | image[rows, columns + 1]
    return float(touching.mean())


def row(X: np.ndarray, y: np.ndarray, person: np.ndarray, size: int, seed: int) -> dict[str, Any]:
    model = fit(X, y, size)
    affiliated = np.setdiff1d(model.groups_.members, model.support_features_)
    rng = np.random.default_rng(seed)
    drawn = [share_touching(rng.choice(SIDE**2, len(affiliated), replace=False)) for _ in range(200)]
    return {
        "support pixels": len(model.groups_),
        "affiliated": len(affiliated),
        "accuracy, training faces": f"{model.score(X, y):.3f}",
        "balanced accuracy, held-out people": f"{unseen_people(X, y, person, size, 'support'):.3f}",
        "the same, groups predict": f"{unseen_people(X, y, person, size, 'groups'):.3f}",
        "support pixels adjacent to another": f"{share_touching(model.support_features_):.2f}",
        "affiliated pixels adjacent to another": f"{share_touching(affiliated):.2f}",
        "random pixels, as many": f"{np.mean(drawn):.2f}",
    }


def draw(X: np.ndarray, person: np.ndarray, model: GroupDiscoveryClassifier) -> None:
    """Draw faces, the same faces with white support pixels, and with white affiliated pixels."""
    affiliated = np.setdiff1d(model.groups_.members, model.support_features_)
    figure = new_figure(6.3, 4.4)
    titles = ("face", f"{len(model.support_features_)} support pixels", f"{len(affiliated)} affiliated pixels")
    for line, shown_person in enumerate(SHOWN):
        face = X[np.flatnonzero(person == shown_person)[0]]
        for place, (title, pixels) in enumerate(zip(titles, ([], model.support_features_, affiliated), strict=True)):
            # Half the brightness, so that white stands out.
            image = face.astype(np.float64) if not len(pixels) else 0.5 * face
            image[np.asarray(pixels, dtype=np.int64)] = 255.0
            ax = figure.add_subplot(2, 3, 3 * line + place + 1)
            ax.imshow(image.reshape(SIDE, SIDE, order="F"), cmap="gray", vmin=0, vmax=255)
            ax.set(xticks=[], yticks=[], title=title if not line else "")
    figure.savefig(FIGURES / "icml-figure-1.png", dpi=110)


def main() -> None:
    options = read_arguments(__doc__)
    X, person = load("orl")
    y = np.where(np.isin(person, WOMEN), 1, -1)
    with warnings_counted():
        rows = [row(X, y, person, size, options.seed) for size in (SIZES[:1] if options.quick else SIZES)]
        model = fit(X, y, DRAWN)
    print_table(f"ICML Fig. 1: ORL, {np.sum(y > 0)} faces of women, {np.sum(y < 0)} of men", rows)
    write_results("icml_figure_1", options, rows=rows)
    if not options.quick:
        draw(X, person, model)
        picture = "![support and affiliated pixels of faces](figures/icml-figure-1.png)"
        replace_section(DOCS / "paper-comparisons.md", "icml figure 1", f"{picture}\n\n{markdown_table(rows)}")


if __name__ == "__main__":
    main()
