"""Pipelines whose steps from Coterie get the feature names of the previous steps."""

from __future__ import annotations

import copy
from collections.abc import Callable
from inspect import signature
from typing import Any, Self

import numpy as np
import sklearn
from sklearn import pipeline as sklearn_pipeline

from coterie._sklearn import DocumentationLinkMixin
from coterie.data.memory import as_source
from coterie.inputs.naming import is_own, name_features


class Pipeline(DocumentationLinkMixin, sklearn_pipeline.Pipeline):
    """A scikit-learn pipeline whose steps from Coterie know the names of their features.

    scikit-learn's pipeline passes no names to the next step if a step returns a sparse matrix or an array, as vectorizers do.
    This one takes them from ``get_feature_names_out`` of the previous steps. Groups, reports, ``fixed_features`` and saved
    models then have the names. If a previous step has no names for its output, the features remain without names. Everything
    else is as in :class:`sklearn.pipeline.Pipeline`, so it can be cloned, searched and cross-validated.

    Parameters
    ----------
    steps : list of tuples of (str, estimator)
        Names and estimators of the steps.

    transform_input : list of str, default=None
        As in :class:`sklearn.pipeline.Pipeline`.

    memory : str or object with the joblib.Memory interface, default=None
        Cache of the fitted transformers.

    verbose : bool, default=False
        Whether to print the time of each step.

    See Also
    --------
    coterie.make_pipeline : Create a pipeline without names of the steps.
    coterie.name_features : Set the names in a fitted scikit-learn pipeline.

    Notes
    -----
    The last step gets the names before its fit, unless metadata routing is enabled. Other steps get them afterwards.

    Examples
    --------
    >>> from sklearn.feature_extraction.text import TfidfVectorizer
    >>> import coterie
    >>> texts = ["a fine film, a fine cast", "fine film", "a dull film, a dull cast", "dull story"]
    >>> steps = [("words", TfidfVectorizer()), ("groups", coterie.GroupDiscoveryClassifier(1))]
    >>> coterie.Pipeline(steps).fit(texts, [1, 1, 0, 0])["groups"].groups_
    1 group, 2 features
      1. fine ~ dull (-0.98)
    """

    def fit(self, X: Any, y: Any = None, **params: Any) -> Self:
        """Fit all steps, and name the features of those from Coterie.

        Parameters
        ----------
        X : iterable
            Training data of the first step.
        y : iterable, default=None
            Targets of all steps.
        **params : dict
            Parameters of the ``fit`` methods, as ``step__parameter``.

        Returns
        -------
        self : Pipeline
            The fitted pipeline.
        """
        super().fit(X, y, **self._with_names(params))
        return self._named()

    def fit_transform(self, X: Any, y: Any = None, **params: Any) -> Any:
        """Fit all steps, name the features of those from Coterie, and return the transformed data.

        Parameters
        ----------
        X : iterable
            Training data of the first step.
        y : iterable, default=None
            Targets of all steps.
        **params : dict
            Parameters of the ``fit`` methods, as ``step__parameter``.

        Returns
        -------
        Xt : ndarray or sparse matrix of shape (n_samples, n_transformed_features)
            Output of the last step.
        """
        found = super().fit_transform(X, y, **self._with_names(params))
        self._named()
        return found

    def _with_names(self, params: dict[str, Any]) -> dict[str, Any]:
        """Return the parameters of ``fit`` with a function that returns the names, if the last step can take it."""
        name, last = self.steps[-1]
        key = f"{name}__feature_names"
        routed = sklearn.get_config()["enable_metadata_routing"]
        if routed or key in params or len(self.steps) == 1 or not is_own(last):
            return params
        # The previous steps are fitted when the last one calls it.
        return {**params, key: lambda: self._names_before(len(self.steps) - 1)} if _takes_names(last.fit) else params

    def _named(self) -> Self:
        """Set the names of the fitted steps from Coterie that have none."""
        for position, (_, step) in enumerate(self.steps):
            if position and is_own(step) and not hasattr(step, "feature_names_in_"):
                names = self._names_before(position)
                if names is not None:
                    name_features(step, names)
        return self

    def _names_before(self, position: int) -> np.ndarray | None:
        """Return the names of the features that a step gets; None if a previous step has none."""
        return _names_of(self[:position])


def before_last(pipeline: sklearn_pipeline.Pipeline, X: Any) -> tuple[Any, Any]:
    """Return the last step of a fitted pipeline, and the data that it gets for X, both with names if these are known."""
    last = pipeline.steps[-1][1]
    if len(pipeline.steps) == 1:
        return last, X
    names, given = _names_of(pipeline[:-1]), pipeline[:-1].transform(X)
    if names is None or not is_own(last):
        return last, given
    if not hasattr(last, "feature_names_in_"):
        last = name_features(copy.copy(last), names)  # the step of the user is not changed
    return last, as_source(given, names)


def _names_of(transformers: sklearn_pipeline.Pipeline) -> np.ndarray | None:
    """Return the names of the output of fitted transformers; None if one of them has none."""
    try:
        return np.asarray(transformers.get_feature_names_out(), dtype=object)
    except (AttributeError, NotImplementedError, ValueError):
        return None


def _takes_names(method: Callable[..., object]) -> bool:
    return "feature_names" in signature(method).parameters


def make_pipeline(*steps: Any, memory: Any = None, verbose: bool = False) -> Pipeline:
    """Create a pipeline whose steps from Coterie know the names of their features.

    It is :func:`sklearn.pipeline.make_pipeline` for :class:`coterie.Pipeline`.

    Parameters
    ----------
    *steps : estimators
        The steps. Their names are those of their classes, in lower case.

    memory : str or object with the joblib.Memory interface, default=None
        Cache of the fitted transformers.

    verbose : bool, default=False
        Whether to print the time of each step.

    Returns
    -------
    pipeline : Pipeline

    Examples
    --------
    >>> from sklearn.feature_extraction.text import TfidfVectorizer
    >>> import coterie
    >>> texts = ["a fine film, a fine cast", "fine film", "a dull film, a dull cast", "dull story"]
    >>> pipeline = coterie.make_pipeline(TfidfVectorizer(), coterie.GroupDiscoveryClassifier(1))
    >>> pipeline.fit(texts, [1, 1, 0, 0])[-1].groups_
    1 group, 2 features
      1. fine ~ dull (-0.98)
    """
    return Pipeline(sklearn_pipeline.make_pipeline(*steps).steps, memory=memory, verbose=verbose)
