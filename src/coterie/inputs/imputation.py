"""``coterie.imputed``: missing values filled so that no sample that a fold holds out has a say in it."""

from __future__ import annotations

from typing import Any

from coterie.data.dataset import Dataset
from coterie.data.imputation import ImputedSource
from coterie.data.memory import DenseSource
from coterie.data.opening import imputed_dataset
from coterie.inputs.opening import source_of


def imputed(X: Any, strategy: str = "median") -> Any:
    """Fill missing values, for estimators that validate: every fold fills them from its own training samples.

    A pipeline with ``SimpleImputer`` does the same for a plain estimator. But what chooses by cross-validation within
    its ``fit`` (``GroupDiscovery…CV``, :func:`coterie.compare`) sees only what the imputer has made of all samples, and a
    median that the held-out samples have shared in lets their score look better than it is. Given this, they fill
    each fold by itself, and the model fitted in the end remembers what it was fitted with: its ``predict``
    fills the gaps of new samples (``fill_values_``).

    Parameters
    ----------
    X : {array-like, data frame, DenseSource, Dataset, path} of shape (n_samples, n_features)
        Dense data; NaN (in a frame also what its library has for missing values) is a gap.

    strategy : {"median", "mean", "most_frequent"}, default="median"
        What a gap is filled with, feature by feature. Of equally frequent values the smallest one. Sample weights do not
        enter, as in scikit-learn.

    Returns
    -------
    X : ImputedSource, or Dataset for a data set
        For ``fit`` of any estimator, and for :func:`coterie.compare`.

    See Also
    --------
    open_features : Has it as the option ``impute``.

    Notes
    -----
    :func:`coterie.group_confidence` and methods with cross-validation of their own (``n_candidates="cv"`` of GRM, the criteria
    of DAF) work with what all samples say of a gap. No label enters, so shuffled labels and real ones are treated alike.

    Examples
    --------
    >>> import numpy as np
    >>> from coterie import GroupDiscoveryClassifierCV, imputed
    >>> from coterie.datasets import make_support_affiliated
    >>> data = make_support_affiliated(200, 40, n_support=3, n_true=7, random_state=0)
    >>> X = np.where(np.random.default_rng(0).random(data.X.shape) < 0.05, np.nan, data.X)
    >>> model = GroupDiscoveryClassifierCV(5, random_state=0).fit(imputed(X), data.y)
    >>> model.predict(X).shape  # the gaps of new samples are filled as well
    (200,)
    """
    if isinstance(X, Dataset):
        return imputed_dataset(X, strategy)
    source = source_of(X)
    if not isinstance(source, DenseSource):
        raise ValueError("imputed() fills dense features; in sparse data what is not there is zero.")
    return ImputedSource(source.array, strategy, source.feature_names)
