"""``coterie.imputed``: imputation that does not use the held-out samples of a fold."""

from __future__ import annotations

from typing import Any

from coterie.data.dataset import Dataset
from coterie.data.imputation import ImputedSource
from coterie.data.memory import DenseSource
from coterie.data.opening import imputed_dataset
from coterie.data.source import annotated
from coterie.inputs.opening import source_of


def imputed(X: Any, strategy: str = "median") -> Any:
    """Impute missing values so that every fold of a validation uses only its own training samples.

    A pipeline with ``SimpleImputer`` does the same for a plain estimator. However, methods that cross-validate within their
    ``fit`` (``GroupDiscovery…CV``, :func:`coterie.compare`) would receive data imputed from all samples. Held-out samples
    then influence the imputed values, and held-out scores are too optimistic. With the result of this function, such methods
    impute each fold separately. The final model stores its values (``fill_values_``), with which ``predict`` imputes missing
    values of new samples.

    Parameters
    ----------
    X : {array-like, data frame, DenseSource, Dataset, path, mapping of these} of shape (n_samples, n_features)
        Dense data. NaN, and in a data frame any missing value of its library, is imputed.

    strategy : {"median", "mean", "most_frequent"}, default="median"
        Statistic of each feature that replaces its missing values. Of equally frequent values, the smallest is used. Sample
        weights are ignored, as in scikit-learn.

    Returns
    -------
    X : ImputedSource, or Dataset for a data set
        Imputed data, for ``fit`` of any estimator and for :func:`coterie.compare`.

    See Also
    --------
    open_features : Read a file, with this imputation as the option ``impute``.

    Notes
    -----
    :func:`coterie.group_confidence` and methods with their own cross-validation (``n_candidates="cv"`` of GRM, the criteria
    of DAF) use values imputed from all samples. Labels are not used, so permuted and true labels are treated alike.

    Examples
    --------
    >>> import numpy as np
    >>> from coterie import GroupDiscoveryClassifierCV, imputed
    >>> from coterie.datasets import make_support_affiliated
    >>> data = make_support_affiliated(200, 40, n_support=3, n_true=7, random_state=0)
    >>> X = np.where(np.random.default_rng(0).random(data.X.shape) < 0.05, np.nan, data.X)
    >>> model = GroupDiscoveryClassifierCV(5, random_state=0).fit(imputed(X), data.y)
    >>> model.predict(X).shape  # missing values of new samples are imputed
    (200,)
    """
    if isinstance(X, Dataset):
        return imputed_dataset(X, strategy)
    source = source_of(X)
    if not isinstance(source, DenseSource):
        raise ValueError("imputed() applies only to dense features. In sparse data, entries that are not stored are zero.")
    return annotated(ImputedSource(source.array, strategy, source.feature_names), source.annotations)
