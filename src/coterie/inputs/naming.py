"""Features by name: which columns of X a fitted selector reads, and names for models that were fitted without."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from sklearn.utils import check_array
from sklearn.utils.validation import check_is_fitted

from coterie.data.memory import as_source
from coterie.data.names import check_names
from coterie.data.source import FeatureSource
from coterie.inputs.arrays import SPARSE_FORMATS, check_features, filled, refuse_kinds, take_columns, with_remedy
from coterie.inputs.types import NamesLike
from coterie.persistence.slim import KeptNames, names_digest

# Names that a message lists.
_SHOWN = 5


def names_at(estimator: Any, features: np.ndarray) -> list[str] | None:
    """What a fitted selector calls some features; None where it knows no names."""
    names = getattr(estimator, "feature_names_in_", None)
    if names is not None:
        return [str(names[int(j)]) for j in features]
    kept: KeptNames | None = getattr(estimator, "kept_names_", None)
    return None if kept is None else kept.at(np.asarray(features))


def columns_read(
    estimator: Any,
    given: Any,
    features: np.ndarray,
    *,
    as_given: bool = False,
    any_kind: bool = False,
    allow_nan: bool = False,
) -> Any:
    """The columns of X that are some features of a fitted selector, checked.

    Where both have names, these alone decide: the columns may stand in any order, others may stand among them, and those that
    are not read may be missing. Without names X must have all features, in the order of the training data: a matrix with as
    many columns as the model reads could have them in any order.

    Parameters
    ----------
    estimator : estimator
        A fitted selector.
    given : array, sparse matrix, data frame or source
        The data, out of their container.
    features : ndarray of int
        The features to read, in order.
    as_given : bool, default=False
        Whether a frame stays the frame it is, every column with its own type.
    any_kind : bool, default=False
        Whether columns may hold anything.
    allow_nan : bool, default=False
        Whether values may be missing.
    """
    allow_nan = allow_nan or hasattr(estimator, "fill_values_")  # gaps are filled as they were in the fit
    wanted, names = names_at(estimator, features), _names_of(given)
    if wanted is None or names is None:
        checked = check_features(estimator, given, any_kind=any_kind, allow_nan=allow_nan)
        return take_columns(given, features) if as_given else filled(estimator, take_columns(checked, features), features)
    chosen = take_columns(given, _places(estimator, names, features, wanted))
    if isinstance(given, FeatureSource):
        return filled(estimator, chosen, features)
    if any_kind:
        return chosen
    refuse_kinds(chosen)
    finite: Any = "allow-nan" if allow_nan else True
    try:
        values = check_array(
            chosen,
            dtype="numeric",
            accept_sparse=SPARSE_FORMATS,
            ensure_all_finite=finite,
            estimator=estimator,
            input_name="X",
        )
    except (ValueError, OverflowError) as error:
        raise with_remedy(error) from error
    return chosen if as_given else filled(estimator, values, features)


def _names_of(X: Any) -> Sequence[str] | None:
    """Names of the columns of a source or a data frame, if all are text."""
    if isinstance(X, FeatureSource):
        return X.feature_names
    if not (hasattr(X, "columns") and hasattr(X, "dtypes")):
        return None
    names = list(X.columns)
    return names if names and all(isinstance(name, str) for name in names) else None


def _places(estimator: Any, names: Sequence[str], features: np.ndarray, wanted: list[str]) -> np.ndarray:
    """Where the wanted names stand among all names."""
    if len(names) == estimator.n_features_in_ and all(names[int(j)] == name for j, name in zip(features, wanted, strict=True)):
        return features  # as in the training data: no table of a million names is needed
    places: dict[str, int] = {}
    needed = set(wanted)
    for place, name in enumerate(names):
        if name in needed:
            if name in places:
                raise ValueError(
                    f"X: columns {places[name]} and {place} are both called {name!r}, which "
                    f"{type(estimator).__name__} reads. Rename or drop one of them."
                )
            places[name] = place
    missing = [name for name in wanted if name not in places]
    if missing:
        shown = ", ".join(repr(name) for name in missing[:_SHOWN])
        more = f" and {len(missing) - _SHOWN} more" if len(missing) > _SHOWN else ""
        reader = type(estimator).__name__
        raise ValueError(f"X lacks {len(missing)} of the {len(wanted)} features that {reader} reads, by name: {shown}{more}.")
    return np.array([places[name] for name in wanted], dtype=np.int64)


def name_features(model: Any, feature_names: Any = None) -> Any:
    """Give the features of a fitted model their names, in its groups and everywhere else.

    A pipeline hands no names to the next step where a step before makes a sparse matrix or an array, as scikit-learn's
    vectorizers do. After the fit they can be had from the steps before.

    Parameters
    ----------
    model : estimator or Pipeline
        A fitted estimator of Coterie's, or a fitted pipeline with such among its steps, all of which get their names from
        ``get_feature_names_out`` of the steps before.
    feature_names : array-like of str or callable, default=None
        Names of all features of X (or a function that returns them). A pipeline may do without.

    Returns
    -------
    model : estimator or Pipeline
        The same object.

    See Also
    --------
    coterie.as_source : Names for a matrix, before the fit.
    coterie.FeatureGroups.with_names : Other names in the groups alone.

    Examples
    --------
    >>> from sklearn.feature_extraction.text import TfidfVectorizer
    >>> from sklearn.pipeline import make_pipeline
    >>> import coterie
    >>> texts = ["a fine film, a fine cast", "fine film", "a dull film, a dull cast", "dull story"]
    >>> pipe = make_pipeline(TfidfVectorizer(), coterie.GroupDiscoveryClassifier(1)).fit(texts, [1, 1, 0, 0])
    >>> coterie.name_features(pipe)[-1].groups_
    1 group, 2 features
      1. fine ~ dull (-0.98)
    """
    steps = getattr(model, "steps", None)
    if steps is None:
        _name(model, feature_names)
        return model
    ours = [place for place, (_, step) in enumerate(steps) if type(step).__module__.split(".")[0] == "coterie"]
    if not ours:
        raise ValueError("name_features() found no estimator of Coterie's among the steps of the pipeline.")
    names = feature_names() if callable(feature_names) else feature_names
    for place in ours:
        if place == 0 and names is None:
            raise ValueError("The pipeline has no step before Coterie's that could know names; give them as feature_names.")
        _name(steps[place][1], model[:place].get_feature_names_out(names) if place else names)
    return model


def _name(model: Any, feature_names: Any) -> None:
    """Set the names of one fitted estimator, in one step."""
    if type(model).__module__.split(".")[0] != "coterie":
        raise TypeError(f"name_features() takes an estimator of Coterie's or a pipeline with one, not {type(model).__name__}.")
    check_is_fitted(model)
    if feature_names is None:
        raise ValueError("name_features() needs the names of all features: name_features(model, names).")
    names = np.array(check_names(feature_names, model.n_features_in_), dtype=object)
    known, kept = getattr(model, "feature_names_in_", None), getattr(model, "kept_names_", None)
    if (known is not None and not np.array_equal(known, names)) or (kept is not None and kept.digest != names_digest(names)):
        raise ValueError(
            f"{type(model).__name__} was fitted to data with other names. model.groups_.with_names(names) has the groups with "
            "names of your own."
        )
    state = {key: value for key, value in vars(model).items() if key != "kept_names_"}
    state |= {"feature_names_in_": names, "names_given_": True}
    if "groups_" in state:
        state["groups_"] = state["groups_"].with_names(names)
    model.__dict__ = state


def named(source: FeatureSource, feature_names: NamesLike) -> FeatureSource:
    """A source over the same features with these names."""
    return as_source(source, feature_names() if callable(feature_names) else feature_names)
