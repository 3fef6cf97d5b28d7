"""Cross-validation folds, from any value of ``cv`` that scikit-learn supports."""

from __future__ import annotations

from numbers import Integral
from typing import Any, TypeAlias

import numpy as np
from sklearn.model_selection import GroupKFold, StratifiedGroupKFold, check_cv

# Indices of the training and of the test samples.
Fold: TypeAlias = tuple[np.ndarray, np.ndarray]


def read_folds(
    cv: Any,
    y: np.ndarray,
    *,
    classifier: bool,
    shuffle: bool = False,
    random_state: Any = None,
    groups: np.ndarray | None = None,
) -> list[Fold]:
    """Return the training and test samples of each fold.

    Parameters
    ----------
    cv : int, splitter or iterable
        Number of folds, scikit-learn splitter, or pairs of training and test samples.
    y : ndarray of shape (n_samples,)
        Labels or targets.
    classifier : bool
        Whether y holds labels (of any type), so that a number of folds means stratified folds.
    shuffle : bool, default=False
        Whether a number of folds means shuffled folds. Otherwise they are those of ``cross_val_score``.
    random_state : int, RandomState instance or None
        Seed of the shuffling.
    groups : ndarray of int of shape (n_samples,), optional
        Sample groups. A number of folds then means folds of whole groups, shuffled if ``shuffle``. A splitter gets them.
    """
    cv = cv.item() if isinstance(cv, np.generic) else cv  # shown without the NumPy type in messages
    if classifier and y.dtype.kind != "f":
        # Class codes, for labels of any type. ``astype(str)`` does not accept labels that are tuples.
        texts = np.array([str(label) for label in y]) if y.dtype.kind == "O" else y.astype(str)
        y = np.unique(texts, return_inverse=True)[1]
    whole = isinstance(cv, Integral) and not isinstance(cv, bool)
    if whole and int(cv) > len(y):
        raise ValueError(f"cv={cv} exceeds the number of samples ({len(y)}). Use fewer folds.")
    if whole and groups is not None and int(cv) > (n_groups := len(np.unique(groups))):
        raise ValueError(f"cv={cv} exceeds the number of sample groups ({n_groups}). Use fewer folds.")
    try:
        if isinstance(cv, (str, bytes)):  # strings have a method "split", so check_cv would accept them
            raise TypeError(cv)
        splitter = check_cv(cv, y, classifier=classifier)
    except (TypeError, ValueError) as error:
        message = f"cv={cv!r} must be a number of folds (at least 2) or a scikit-learn splitter."
        raise ValueError(message) from error
    if whole and groups is not None:
        kind = StratifiedGroupKFold if classifier else GroupKFold
        splitter = kind(int(cv), shuffle=shuffle, random_state=random_state if shuffle else None)
    elif whole and shuffle:
        splitter = type(splitter)(int(cv), shuffle=True, random_state=random_state)
    given = not (whole or cv is None or hasattr(cv, "split"))  # check_cv has converted an iterable of folds to a list
    parts = splitter.cv if given else splitter.split(np.zeros((len(y), 1)), y, groups)
    folds = [_checked_fold(fold, number, len(y)) for number, fold in enumerate(parts)]
    if not folds:
        raise ValueError(f"cv={cv!r} has no folds.")
    return folds


def _checked_fold(fold: Any, number: int, n_samples: int) -> Fold:
    """Check and return the training and test samples of a fold."""
    try:
        train, test = (np.asarray(part) for part in fold)
    except (TypeError, ValueError) as error:
        raise ValueError(f"Fold {number} of cv is not a pair of training and test samples.") from error
    for name, part in (("train", train), ("test", test)):
        if part.ndim != 1 or not len(part):
            raise ValueError(f"Fold {number} of cv has no {name} samples.")
        if part.dtype == np.bool_ and len(part) == n_samples:
            continue
        if part.dtype.kind not in "iu" or part.min() < -n_samples or part.max() >= n_samples:
            raise ValueError(f"Fold {number} of cv has {name} indices outside the range of the {n_samples} samples.")
    return train, test
