"""Selection of the columns that a fitted selector reads by name, and names for fitted models without names."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.utils import check_array
from sklearn.utils.validation import check_is_fitted

from coterie.data.memory import as_source
from coterie.data.names import check_names
from coterie.data.source import FeatureSource
from coterie.inputs.arrays import SPARSE_FORMATS, add_remedy, check_features, fill_missing, require_numeric, take_columns
from coterie.inputs.types import NamesLike

if TYPE_CHECKING:
    from coterie.persistence.slim import KeptNames

# Maximum number of names listed in a message.
_MAX_NAMES_SHOWN = 5


def names_at(estimator: Any, features: np.ndarray) -> list[str] | None:
    """Return the names of some features of a fitted selector; None if it has no names."""
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
    """Return the checked columns of X that correspond to some features of a fitted selector.

    If both have names, columns are selected by name: they may be in any order, there may be additional columns, and columns
    that are not read may be missing. Without names, X must have all features in the order of the training data, because a
    matrix with only the columns that the model reads could have them in any order.

    Parameters
    ----------
    estimator : estimator
        Fitted selector.
    given : array, sparse matrix, data frame or source
        Unwrapped data.
    features : ndarray of int
        Features to read, in order.
    as_given : bool, default=False
        Whether to return columns of a data frame as a data frame, each with its own type.
    any_kind : bool, default=False
        Whether columns may hold values of any type.
    allow_nan : bool, default=False
        Whether values may be missing.
    """
    allow_nan = allow_nan or hasattr(estimator, "fill_values_")  # missing values are imputed as in the fit
    wanted, names = names_at(estimator, features), names_in(given)
    if wanted is None or names is None:
        checked = check_features(estimator, given, any_kind=any_kind, allow_nan=allow_nan)
        if isinstance(given, FeatureSource):
            return _complete_columns(estimator, given, features, features, allow_nan)
        if as_given:
            return take_columns(given, features)
        return fill_missing(estimator, take_columns(checked, features), features)
    positions = _column_positions(estimator, names, features, wanted)
    if isinstance(given, FeatureSource):
        return _complete_columns(estimator, given, positions, features, allow_nan)
    chosen = take_columns(given, positions)
    if any_kind:
        return chosen
    require_numeric(chosen)
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
        raise add_remedy(error) from error
    return chosen if as_given else fill_missing(estimator, values, features)


def _complete_columns(
    estimator: Any, source: FeatureSource, positions: np.ndarray, features: np.ndarray, allow_nan: bool
) -> Any:
    """Return columns of a source, imputed as in the fit. Raise ``ValueError`` for other missing or infinite values."""
    columns = source.columns(positions)
    values = columns if isinstance(columns, np.ndarray) else columns.data
    if not allow_nan and values.dtype.kind == "f" and not np.isfinite(values).all():
        dense = columns if isinstance(columns, np.ndarray) else columns.toarray()
        sample, place = np.argwhere(~np.isfinite(dense))[0].tolist()
        name = "" if source.feature_names is None else f" ({source.feature_names[int(positions[place])]!r})"
        raise ValueError(
            f"Input X contains NaN or infinity. The first is in sample {sample} of feature {positions[place]}{name}. Impute "
            "such values, or drop these samples."
        )
    return fill_missing(estimator, columns, features)


def names_in(X: Any) -> Sequence[str] | None:
    """Return the column names of a source or a data frame, or None unless all are strings."""
    if isinstance(X, FeatureSource):
        return X.feature_names
    if not (hasattr(X, "columns") and hasattr(X, "dtypes")):
        return None
    names = list(X.columns)
    return names if names and all(isinstance(name, str) for name in names) else None


def _column_positions(estimator: Any, names: Sequence[str], features: np.ndarray, wanted: list[str]) -> np.ndarray:
    """Return the positions of the wanted names among all names."""
    if len(names) == estimator.n_features_in_ and all(names[int(j)] == name for j, name in zip(features, wanted, strict=True)):
        return features  # same order as in the training data, so no table of a million names is needed
    positions = positions_of(estimator, names, wanted)
    missing = [name for name, position in zip(wanted, positions.tolist(), strict=True) if position < 0]
    if missing:
        raise AbsentFeaturesError(estimator, missing, len(wanted))
    return positions


class AbsentFeaturesError(ValueError):
    """Error for data that lack features which a fitted selector reads.

    Attributes
    ----------
    problem : str
        The message without the remedy, which is another one on the command line.
    has_substitutes : bool
        Whether other members of groups can take the place of absent features.
    """

    def __init__(self, estimator: Any, missing: Sequence[str], n_wanted: int) -> None:
        shown = ", ".join(repr(name) for name in missing[:_MAX_NAMES_SHOWN])
        more = f" and {len(missing) - _MAX_NAMES_SHOWN} more" if len(missing) > _MAX_NAMES_SHOWN else ""
        reader = type(estimator).__name__
        self.problem = f"X lacks {len(missing)} of the {n_wanted} features that {reader} reads: {shown}{more}."
        self.has_substitutes = hasattr(estimator, "member_moments_")
        remedy = (
            " Members of their groups can take their place: coterie.substituted(model, X)." if self.has_substitutes else ""
        )
        super().__init__(f"{self.problem}{remedy}")


def positions_of(estimator: Any, names: Sequence[str], wanted: Sequence[str]) -> np.ndarray:
    """Return the positions of the wanted names among all names; -1 for those that are absent."""
    positions: dict[str, int] = {}
    required = set(wanted)
    for position, name in enumerate(names):
        if name in required:
            if name in positions:
                raise ValueError(
                    f"X: columns {positions[name]} and {position} have the same name {name!r}, which "
                    f"{type(estimator).__name__} reads. Rename or drop one of them."
                )
            positions[name] = position
    return np.array([positions.get(name, -1) for name in wanted], dtype=np.int64)


def name_features(model: Any, feature_names: Any = None) -> Any:
    """Set the feature names of a fitted model, including those in its groups.

    A pipeline passes no names to the next step if a step returns a sparse matrix or an array, as the vectorizers of
    scikit-learn do. After the fit, the names are available from the previous steps.

    Parameters
    ----------
    model : estimator or Pipeline
        Fitted estimator of Coterie, or fitted pipeline with such estimators among its steps. Each of them gets its names from
        ``get_feature_names_out`` of the previous steps.
    feature_names : array-like of str, callable or transformer, default=None
        Names of all features of X, a function that returns them, or a fitted transformer with ``get_feature_names_out``.
        Optional for a pipeline.

    Returns
    -------
    model : estimator or Pipeline
        The same object.

    See Also
    --------
    coterie.Pipeline : A pipeline that sets the names in its fit.
    coterie.as_source : Set the names of a matrix before the fit.
    coterie.FeatureGroups.with_names : Change the names in the groups only.

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
    positions = [k for k, (_, step) in enumerate(steps) if is_own(step)]
    if not positions:
        raise ValueError("The pipeline has no step that is an estimator of Coterie.")
    names = None if feature_names is None else names_from(feature_names)
    for k in positions:
        if k == 0 and names is None:
            raise ValueError("The first step of the pipeline is an estimator of Coterie. Pass its names as feature_names.")
        _name(steps[k][1], model[:k].get_feature_names_out(names) if k else names)
    return model


def names_from(feature_names: Any) -> Any:
    """Return names that are given as such, by a function, or by a fitted transformer."""
    names = getattr(feature_names, "get_feature_names_out", feature_names)
    return names() if callable(names) else names


def is_own(model: object) -> bool:
    """Return True for an estimator of Coterie."""
    return type(model).__module__.split(".")[0] == "coterie"


def _name(model: Any, feature_names: Any) -> None:
    """Set the names of a fitted estimator, in one assignment."""
    from coterie.persistence.slim import names_digest

    if not is_own(model):
        raise TypeError(
            f"name_features() requires an estimator of Coterie or a pipeline with one, but got {type(model).__name__}."
        )
    check_is_fitted(model)
    if feature_names is None:
        raise ValueError("name_features() requires the names of all features: name_features(model, names).")
    names = np.array(check_names(names_from(feature_names), model.n_features_in_), dtype=object)
    known, kept = getattr(model, "feature_names_in_", None), getattr(model, "kept_names_", None)
    if (known is not None and not np.array_equal(known, names)) or (kept is not None and kept.digest != names_digest(names)):
        raise ValueError(
            f"{type(model).__name__} was fitted to data with other names. To rename the features of its groups, use "
            "model.groups_.with_names(names)."
        )
    state = {key: value for key, value in vars(model).items() if key != "kept_names_"}
    state |= {"feature_names_in_": names, "names_given_": True}
    if "groups_" in state:
        state["groups_"] = state["groups_"].with_names(names)
    model.__dict__ = state


def named(source: FeatureSource, feature_names: NamesLike) -> FeatureSource:
    """Return a source over the same features with these names."""
    return as_source(source, names_from(feature_names))
