"""What is known of features beside their values: a table of columns that a source carries along.

No algorithm reads it. Groups get the rows of their own features, so that of millions only a few become Python objects.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping
from typing import Any

from coterie.data.source import FeatureSource


def annotated(source: FeatureSource, columns: Mapping[str, Any]) -> FeatureSource:
    """The source with columns about its features, beside those that it has.

    Parameters
    ----------
    source : FeatureSource
        The features; what is returned shares their values.
    columns : mapping of str to sequence of length n_features
        Arrays, packed strings, columns of a frame: whatever ``column[j]`` works on.

    Returns
    -------
    source : FeatureSource
        The same one where there are no columns.

    Examples
    --------
    >>> import numpy as np
    >>> from coterie import GroupDiscoveryRegressor
    >>> from coterie.data import annotated, as_source
    >>> X = np.array([[0.0, 1.0], [1.0, 0.0], [2.0, 1.0], [3.0, 0.0]])
    >>> source = annotated(as_source(X), {"unit": ["cm", "kg"]})
    >>> GroupDiscoveryRegressor(1).fit(source, [0.0, 1.0, 2.0, 3.0]).groups_.annotations
    {'unit': ['cm']}
    """
    if not columns:
        return source
    for name, values in columns.items():
        if len(values) != source.shape[1]:
            raise ValueError(f"The annotation {name!r} has {len(values)} values, but there are {source.shape[1]} features.")
    result = copy.copy(source)
    result.annotations = {**annotations_of(source), **columns}  # type: ignore[attr-defined]  # no part of the protocol
    return result


def annotations_of(source: Any) -> Mapping[str, Any]:
    """The columns that a source carries; none for most."""
    found = getattr(source, "annotations", None)
    return found if isinstance(found, Mapping) else {}
