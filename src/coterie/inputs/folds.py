"""Folds of cross-validation, from whatever scikit-learn takes for ``cv``."""

from __future__ import annotations

from numbers import Integral
from typing import Any, TypeAlias

import numpy as np
from sklearn.model_selection import check_cv

# Training and test samples.
Fold: TypeAlias = tuple[np.ndarray, np.ndarray]


def read_folds(cv: Any, y: np.ndarray, *, classifier: bool, shuffle: bool = False, random_state: Any = None) -> list[Fold]:
    """Training and test samples of each fold.

    Parameters
    ----------
    cv : int, splitter or iterable
        A number of folds, a splitter of scikit-learn's, or pairs of training and test samples.
    y : ndarray of shape (n_samples,)
        Labels or targets.
    classifier : bool
        Whether a number of folds means stratified ones, and y are labels (of any kind).
    shuffle : bool, default=False
        Whether a number of folds means shuffled ones; else they are those of ``cross_val_score``.
    random_state : int, RandomState instance or None
        Seed of the shuffling.
    """
    cv = cv.item() if isinstance(cv, np.generic) else cv  # as messages show it
    if classifier and y.dtype.kind != "f":
        y = np.unique(y.astype(str), return_inverse=True)[1]  # labels of any kind as numbers
    whole = isinstance(cv, Integral) and not isinstance(cv, bool)
    if whole and int(cv) > len(y):
        raise ValueError(f"cv={cv} folds are more than the {len(y)} samples.")
    try:
        if isinstance(cv, (str, bytes)):  # they have a split of their own
            raise TypeError(cv)
        splitter = check_cv(cv, y, classifier=classifier)
    except (TypeError, ValueError) as error:
        message = f"cv={cv!r} must be a number of folds of at least 2, or a splitter of scikit-learn's."
        raise ValueError(message) from error
    if whole and shuffle:
        splitter = type(splitter)(int(cv), shuffle=True, random_state=random_state)
    given = not (whole or cv is None or hasattr(cv, "split"))  # then scikit-learn has a list of what the iterable gave
    parts = splitter.cv if given else splitter.split(np.zeros((len(y), 1)), y)
    folds = [_checked_fold(fold, number, len(y)) for number, fold in enumerate(parts)]
    if not folds:
        raise ValueError(f"cv={cv!r} has no folds.")
    return folds


def _checked_fold(fold: Any, number: int, n_samples: int) -> Fold:
    """Training and test samples of a fold that came from anywhere."""
    try:
        train, test = (np.asarray(part) for part in fold)
    except (TypeError, ValueError) as error:
        raise ValueError(f"Fold {number} of cv is not a pair of training and test samples.") from error
    for name, part in (("train", train), ("test", test)):
        if part.ndim != 1 or not len(part):
            raise ValueError(f"Fold {number} of cv has no samples to {name} on.")
        if part.dtype == np.bool_ and len(part) == n_samples:
            continue
        if part.dtype.kind not in "iu" or part.min() < -n_samples or part.max() >= n_samples:
            raise ValueError(f"Fold {number} of cv has samples to {name} on that are no indices of the {n_samples} samples.")
    return train, test
