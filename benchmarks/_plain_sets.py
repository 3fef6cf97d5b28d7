"""Data sets for the defaults of the plain estimators: some to choose the defaults with, the others to report.

The split of the sets of classes was made before any result. Regressions were added to both parts after the first curves of the
planted ones to choose with. Rows of one source (20 Newsgroups) are divided: even rows to choose, odd rows to report.
Sets of more than 2,000 samples are subsamples of that number.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from _real import data_path, load
from scipy import sparse
from sklearn import datasets
from sklearn.feature_extraction.text import TfidfTransformer
from sklearn.model_selection import train_test_split

Data = tuple[Any, np.ndarray]

N_SAMPLES = 2000
N_WORDS = 20_000


def subsample(X: Any, y: np.ndarray, n_samples: int = N_SAMPLES) -> Data:
    """Return at most ``n_samples`` samples, stratified."""
    if len(y) <= n_samples:
        return X, y
    kept = np.sort(train_test_split(np.arange(len(y)), train_size=n_samples, stratify=y, random_state=0)[0])
    return X[kept], y[kept]


def real(name: str, label: str = "y", classes: tuple[int, ...] | None = None) -> Data:
    """Return a data set as float64 with labels as integers, possibly with some of its classes only."""
    X, y = load(name, label)
    if classes is not None:
        chosen = np.isin(y, classes)
        X, y = X[chosen], y[chosen]
    X, y = subsample(X, np.unique(y, return_inverse=True)[1])
    return (sparse.csr_array(X, dtype=np.float64) if sparse.issparse(X) else np.asarray(X, dtype=np.float64)), y


def news(label: str, part: int, classes: tuple[int, ...] | None = None) -> Data:
    """Return tf-idf of 20 Newsgroups: even (0) or odd (1) rows, and the most frequent words and pairs of words."""
    X, y = load("20news_bigrams", label)
    chosen = np.arange(len(y)) % 2 == part
    if classes is not None:
        chosen &= np.isin(y, classes)
    X, y = subsample(sparse.csr_array(X)[np.flatnonzero(chosen)], np.unique(y[chosen], return_inverse=True)[1])
    frequent = np.sort(np.argsort(-np.bincount(X.indices, minlength=X.shape[1]), kind="stable")[:N_WORDS])
    return sparse.csr_array(TfidfTransformer().fit_transform(X[:, frequent].astype(np.float64))), y


def text_file(name: str) -> Data:
    """Return a data set in LIBSVM format as a dense array."""
    X, y = datasets.load_svmlight_file(str(data_path(name)))
    return X.toarray(), np.unique(y, return_inverse=True)[1]


def small(name: str) -> Data:
    """Return a data set of scikit-learn."""
    X, y = getattr(datasets, f"load_{name}")(return_X_y=True)
    return X, y


CHOOSE: dict[str, Callable[[], Data]] = {
    "shipp": partial(real, "shipp"),
    "christensen": partial(real, "christensen"),
    "khan": partial(real, "khan"),
    "basehock": partial(real, "basehock"),
    "spambase": partial(real, "spambase"),
    "usps, 0 and 1": partial(real, "usps", "y", (0, 1)),
    "usps": partial(real, "usps"),
    "madelon": partial(real, "madelon"),
    "news, two classes": partial(news, "y", 0),
}
REPORT: dict[str, Callable[[], Data]] = {
    "gordon": partial(real, "gordon"),
    "gravier": partial(real, "gravier"),
    "chowdary": partial(real, "chowdary"),
    "su": partial(real, "su"),
    "glioma": partial(real, "glioma"),
    "duke": partial(text_file, "duke.svm"),
    "gisette": partial(real, "gisette_valid"),
    "dorothea": partial(real, "dorothea"),
    "coil20": partial(real, "coil20"),
    "orl": partial(real, "orl"),
    "mfeat": partial(real, "mfeat"),
    "binaryalphadigs": partial(real, "binaryalphadigs"),
    "mnist, 3 and 8": partial(real, "mnist_3v8"),
    "pbmc68k": partial(real, "pbmc68k_reduced", "bulk_labels"),
    "news, 20 classes": partial(news, "y20", 1),
    "news, religion": partial(news, "y20", 1, (0, 15)),
    "breast_cancer": partial(small, "breast_cancer"),
    "wine": partial(small, "wine"),
    "digits": partial(small, "digits"),
}


def planted(seed: int, lowest: float = 0.3, highest: float = 2.0) -> Data:
    """Return a regression with eight weighted features, each in a block of five correlated ones, among 300 features.

    The number of samples (60 to 500), the noise (relative to the signal) and the scale of the features vary with the seed.
    """
    rng = np.random.default_rng(seed)
    n_samples, noise = int(rng.integers(60, 500)), float(rng.uniform(lowest, highest))
    X = rng.standard_normal((n_samples, 300))
    for first in range(0, 300, 5):
        X[:, first + 1 : first + 5] = 0.9 * X[:, [first]] + np.sqrt(1 - 0.81) * X[:, first + 1 : first + 5]
    weights = rng.standard_normal(8)
    y = X[:, :40:5] @ weights
    y += noise * np.linalg.norm(weights) * rng.standard_normal(n_samples)
    return X * 10.0 ** rng.uniform(-3, 3), y


def diabetes() -> Data:
    """Return the diabetes data of scikit-learn with all products of two features (65 features)."""
    X, y = datasets.load_diabetes(return_X_y=True)
    first, second = np.triu_indices(X.shape[1])
    return np.hstack([X, X[:, first] * X[:, second]]), y


def column(name: str, label: str = "y") -> Data:
    """Return the feature of largest variance as the target, and the other features of a data set."""
    X, _ = real(name, label)
    target = int(np.argmax(X.var(axis=0)))
    return np.delete(X, target, axis=1), X[:, target]


CHOOSE_NUMBERS: dict[str, Callable[[], Data]] = {
    **{f"planted {seed}": partial(planted, seed) for seed in range(12)},
    **{f"strong {seed}": partial(planted, seed, 0.03, 0.3) for seed in range(20, 26)},
    **{f"column of {name}": partial(column, name) for name in ("shipp", "khan", "christensen")},
}
REPORT_NUMBERS: dict[str, Callable[[], Data]] = {
    "diabetes": diabetes,
    **{f"planted {seed}": partial(planted, seed) for seed in range(100, 110)},
    **{f"strong {seed}": partial(planted, seed, 0.03, 0.3) for seed in range(120, 126)},
    **{f"column of {name}": partial(column, name) for name in ("gravier", "su", "glioma")},
    "column of pbmc68k": partial(column, "pbmc68k_reduced", "bulk_labels"),
}
