"""
Digits
======

Which pixels distinguish a 3 from an 8, and a 0 from a 1 (ICML section 5, Fig. 6).

The support pixels are few. Together with their affiliated pixels they show the regions that the classifier uses. Without the
data folder, scikit-learn's small digits are used instead of MNIST and USPS.
"""

import numpy as np
from _gallery import data_file, load, write
from matplotlib.figure import Figure
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

from coterie import GroupDiscoveryClassifier
from coterie.plots import feature_scatter, pixel_map

SIZE = 20


def digits(file, one, other):
    """Return images of two digits, scaled to [0, 1], from the data folder if it exists, otherwise from scikit-learn."""
    path = data_file(file)
    X, y = load(path) if path else load_digits(return_X_y=True)
    chosen = (y == one) | (y == other)
    X = X[chosen].astype(np.float32)
    side = round(X.shape[1] ** 0.5)
    return (path.stem if path else "load_digits"), (X - X.min()) / np.ptp(X), y[chosen], side


figure = Figure(figsize=(10.5, 7.6), layout="constrained")
panels = figure.subplots(2, 3)
for row, (file, one, other) in zip(panels, [("mnist_3v8.npz", 3, 8), ("usps.npz", 0, 1)], strict=True):
    name, X, y, side = digits(file, one, other)
    X_train, X_test, y_train, y_test = train_test_split(X, y, test_size=0.3, random_state=0, stratify=y)
    model = GroupDiscoveryClassifier(SIZE, n_features_per_round=5).fit(X_train, y_train)
    whole = GroupDiscoveryClassifier(SIZE, n_features_per_round=5, predict_with="groups").fit(X_train, y_train)
    n_support, n_members = len(model.support_features_), len(model.groups_.members)
    print(
        f"{name}, {one} or {other}: test accuracy {model.score(X_test, y_test):.2%} with {n_support} support pixels, "
        f"{whole.score(X_test, y_test):.2%} with these and {n_members - n_support} affiliated ones (of {side}²)"
    )
    difference = X_train[y_train == one].mean(axis=0) - X_train[y_train == other].mean(axis=0)
    pixel_map(model, (side, side), background=difference, ax=row[0], title=f"{name}: {one} (bright) or {other} (dark)")
    pixel_map(model, (side, side), by="group", ax=row[1])
    few = np.random.default_rng(0).choice(len(X_test), min(600, len(X_test)), replace=False)
    feature_scatter(X_test[few], y_test[few], model, ax=row[2], title=f"test digits by {n_support} support pixels")
write(figure, "digits")
