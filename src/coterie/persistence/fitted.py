"""Checks of loaded fitted attributes, which ``predict``, ``transform`` and the groups use without further checks.

A file may contain anything. So an attribute must not replace an attribute of the class, such as a method. Attributes that
index others must be consistent, as they are after every fit.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from sklearn.base import ClassifierMixin, OutlierMixin

from coterie.bounds import DEFAULT_MAX_LENGTH, MIN_CHECKED_BYTES, format_bytes, free_memory
from coterie.groups.effects import RATIO_KINDS

# Saved attributes whose names do not end with an underscore: that of set_output, and the state with which DAF continues.
_PRIVATE = frozenset(["_sklearn_output_config", "_marks", "_sums"])


def is_fitted_name(name: str) -> bool:
    """Return True if an attribute is part of the model: set by a fit or by ``set_output``."""
    return (name.endswith("_") and not name.startswith("_")) or name in _PRIVATE


def check_attribute_names(kind: type, names: Any) -> None:
    """Raise if a name is an attribute of the class or a special name of Python."""
    for name in names:
        if name.startswith("__") or any(name in vars(base) for base in kind.__mro__):
            raise ValueError(f"it sets the attribute {name!r}, which belongs to the class {kind.__name__}")


def check_fitted(kind: type, attributes: Mapping[str, Any]) -> None:
    """Raise if fitted attributes are inconsistent, or if one is missing."""
    missing = [name for name in _required_attributes(kind) if name not in attributes] if set(attributes) - _PRIVATE else []
    if missing:
        raise ValueError(f"its attribute {missing[0]!r} is missing")
    for name, rule in _RULES.items():
        if name in attributes and not rule(attributes[name], attributes):
            raise ValueError(f"its attribute {name!r} is invalid or inconsistent with others")


def check_size(attributes: Mapping[str, Any], n_values: int, max_features: int | None) -> None:
    """Raise if arrays would be allocated for more features than the file has values.

    Parameters
    ----------
    attributes : mapping
        Fitted attributes, checked by :func:`check_fitted`.
    n_values : int
        Number of values in the arrays of the file.
    max_features : int or None
        Largest number of features accepted by the user.
    """
    n_features = int(attributes.get("n_features_in_", 0))
    if max_features is not None and n_features > max_features:
        raise ValueError(f"it has {n_features} features, more than max_features={max_features}")
    if max_features is not None or n_features <= n_values:
        return
    remedy = f"If you trust the file, load it in Python with coterie.load(path, max_features={n_features})"
    if n_features > DEFAULT_MAX_LENGTH:
        raise ValueError(f"it has {n_values} values, too few for a model of {n_features} features. {remedy}")
    n_bytes = 8 * n_features * max(1, _n_outputs(attributes))
    if n_bytes > max(MIN_CHECKED_BYTES, free_memory()):
        raise ValueError(f"its coef_ would take {format_bytes(n_bytes)}, more than the free memory. {remedy}")


def _required_attributes(kind: type) -> list[str]:
    """Return the attributes that ``predict`` and ``transform`` of a fitted estimator require."""
    names = ["n_features_in_", "support_features_"] if hasattr(kind, "transform") else []
    if hasattr(kind, "predict"):
        names += ["groups_", "prediction_features_", "prediction_coef_", "intercept_"]
    names += ["classes_"] if issubclass(kind, ClassifierMixin) else []
    names += ["other_features_"] if kind.__name__ == "CorrelationGroups" else []
    return names + (["offset_"] if issubclass(kind, OutlierMixin) else [])


def _is_count(value: Any, attributes: Mapping[str, Any]) -> bool:
    return isinstance(value, (int, np.integer)) and not isinstance(value, bool) and 0 <= int(value) < 2**48


def _is_number(value: Any, attributes: Mapping[str, Any]) -> bool:
    return isinstance(value, (int, float, np.integer, np.floating)) and not isinstance(value, bool)


def _is_vector(value: Any, kinds: str) -> bool:
    return isinstance(value, np.ndarray) and value.ndim == 1 and value.dtype.kind in kinds


def _are_features(value: Any, attributes: Mapping[str, Any]) -> bool:
    """Return True if these are indices of features."""
    if not _is_vector(value, "iu") or "n_features_in_" not in attributes:
        return False
    return not len(value) or bool(value.min() >= 0 and value.max() < attributes["n_features_in_"])


def _are_names(value: Any, attributes: Mapping[str, Any]) -> bool:
    fits = _is_vector(value, "O") and len(value) == attributes.get("n_features_in_")
    return fits and all(isinstance(name, str) for name in value)


def _are_kept_names(value: Any, attributes: Mapping[str, Any]) -> bool:
    fits = type(value).__name__ == "KeptNames" and "feature_names_in_" not in attributes
    return fits and bool(value.fits(attributes.get("n_features_in_")))


def _are_fill_values(value: Any, attributes: Mapping[str, Any]) -> bool:
    return _is_vector(value, "f") and len(value) == attributes.get("n_features_in_")


def _are_groups(value: Any, attributes: Mapping[str, Any]) -> bool:
    return type(value).__name__ == "FeatureGroups" and all(_is_group(group, attributes) for group in value)


def _is_group(group: Any, attributes: Mapping[str, Any]) -> bool:
    if type(group).__name__ != "FeatureGroup" or group.affiliated.ndim != 1:
        return False
    scores, names, n_affiliated = group.affiliated_scores, group.names, len(group.affiliated)
    return (
        _are_features(group.members, attributes)
        and group.correlation.shape == (n_affiliated,)
        and (scores is None or (_is_vector(scores, "f") and len(scores) == n_affiliated))
        and (names is None or (isinstance(names, tuple) and len(names) == len(group) and all(type(n) is str for n in names)))
        and _is_number(group.score, attributes)
        and (group.weight is None or _is_number(group.weight, attributes))
        and _is_count(group.round, attributes)
        and (group.purity is None or type(group.purity).__name__ == "Purity")
        and (group.confidence is None or _is_number(group.confidence, attributes))
        and (group.shares is None or (_is_vector(group.shares, "f") and len(group.shares) == len(group)))
        and all(value is None or _is_number(value, attributes) for value in (group.p_value, group.q_value))
        and (group.probabilities is None or (_is_vector(group.probabilities, "f") and len(group.probabilities) == len(group)))
        and group.selected in (None, True, False)
        and _are_class_weights(group.class_weights, attributes)
        and _are_effects(group, attributes)
        and (group.annotations is None or _are_annotations(group.annotations, len(group)))
    )


def _are_annotations(value: Any, n_members: int) -> bool:
    return isinstance(value, dict) and all(
        isinstance(name, str) and isinstance(column, tuple) and len(column) == n_members for name, column in value.items()
    )


def _are_effects(group: Any, attributes: Mapping[str, Any]) -> bool:
    interval = group.effect_interval
    return (
        (group.effect is None or _is_number(group.effect, attributes))
        and (
            interval is None
            or (isinstance(interval, tuple) and len(interval) == 2 and all(_is_number(x, attributes) for x in interval))
        )
        and _are_class_weights(group.class_effects, attributes)
        and _are_target_effects(group.target_effects, attributes)
        and group.ratio_kind in (None, *RATIO_KINDS)
        and isinstance(group.used, bool)
    )


def _are_class_weights(value: Any, attributes: Mapping[str, Any]) -> bool:
    """Return True if these are numbers, one per class of the model."""
    classes = attributes.get("classes_")
    if value is None:
        return True
    if not isinstance(value, dict) or not isinstance(classes, np.ndarray) or len(value) != len(classes):
        return False
    return list(value) == classes.tolist() and all(_is_number(weight, attributes) for weight in value.values())


def _are_target_effects(value: Any, attributes: Mapping[str, Any]) -> bool:
    """Return True if these are numbers, one per target of the model."""
    if value is None:
        return True
    names = attributes.get("target_names_")
    if not isinstance(value, dict) or not isinstance(names, np.ndarray) or list(value) != names.tolist():
        return False
    return all(_is_number(effect, attributes) for effect in value.values())


def _are_target_names(value: Any, attributes: Mapping[str, Any]) -> bool:
    fits = _is_vector(value, "O") and len(value) == _n_outputs(attributes) and len(value) > 1
    return fits and all(isinstance(name, str) for name in value)


def _are_target_scales(value: Any, attributes: Mapping[str, Any]) -> bool:
    fits = _are_calibration_offsets(value, attributes) and "target_names_" in attributes
    return fits and bool((value > 0.0).all())


def _is_confidence(value: Any, attributes: Mapping[str, Any]) -> bool:
    return type(value).__name__ == "GroupConfidence" and value.fits(attributes.get("groups_"))


def _n_outputs(attributes: Mapping[str, Any]) -> int:
    coef = attributes.get("prediction_coef_")
    return len(coef) if isinstance(coef, np.ndarray) and coef.ndim == 2 else -1


def _are_member_moments(value: Any, attributes: Mapping[str, Any]) -> bool:
    fits = type(value).__name__ == "MemberMoments" and "groups_" in attributes
    return fits and bool(value.fits(attributes["groups_"], _n_outputs(attributes)))


def _are_weights(value: Any, attributes: Mapping[str, Any]) -> bool:
    features = attributes.get("prediction_features_")
    fits = isinstance(value, np.ndarray) and value.ndim == 2 and value.dtype.kind == "f" and len(value) > 0
    return fits and isinstance(features, np.ndarray) and value.shape[1:] == features.shape


def _are_offsets(value: Any, attributes: Mapping[str, Any]) -> bool:
    if _is_number(value, attributes):
        return True
    return _is_vector(value, "f") and len(value) == _n_outputs(attributes)


def _is_slope(value: Any, attributes: Mapping[str, Any]) -> bool:
    if isinstance(value, float):
        return 0.0 <= value < np.inf
    return _are_calibration_offsets(value, attributes) and bool((value >= 0.0).all())


def _are_calibration_offsets(value: Any, attributes: Mapping[str, Any]) -> bool:
    return _is_vector(value, "f") and len(value) == _n_outputs(attributes) and bool(np.isfinite(value).all())


def _are_covariate_weights(value: Any, attributes: Mapping[str, Any]) -> bool:
    fits = isinstance(value, np.ndarray) and value.ndim == 2 and value.dtype.kind == "f"
    return fits and len(value) == _n_outputs(attributes) and "covariate_names_" in attributes


def _are_covariate_names(value: Any, attributes: Mapping[str, Any]) -> bool:
    coef = attributes.get("covariate_coef_")
    fits = _is_vector(value, "O") and isinstance(coef, np.ndarray) and coef.ndim == 2 and len(value) == coef.shape[1]
    return fits and all(isinstance(name, str) for name in value)


def _are_offset_weights(value: Any, attributes: Mapping[str, Any]) -> bool:
    return _is_vector(value, "f") and len(value) == _n_outputs(attributes)


def _are_classes(value: Any, attributes: Mapping[str, Any]) -> bool:
    n_outputs = _n_outputs(attributes)
    return isinstance(value, np.ndarray) and value.shape == (2 if n_outputs == 1 else n_outputs,)


def _is_output_config(value: Any, attributes: Mapping[str, Any]) -> bool:
    return isinstance(value, dict) and all(k == "transform" and v in ("default", "pandas", "polars") for k, v in value.items())


# Checks by attribute, in an order in which each may use the attributes before it.
_RULES: dict[str, Callable[[Any, Mapping[str, Any]], bool]] = {
    "n_features_in_": _is_count,
    "feature_names_in_": _are_names,
    "kept_names_": _are_kept_names,
    "names_given_": lambda value, attributes: isinstance(value, bool),
    "fill_values_": _are_fill_values,
    "encoding_": lambda value, attributes: type(value).__name__ == "TableEncoding" and value.fits(),
    "support_features_": _are_features,
    "other_features_": _are_features,
    "prediction_features_": _are_features,
    "prediction_coef_": _are_weights,
    "intercept_": _are_offsets,
    "covariate_coef_": _are_covariate_weights,
    "covariate_names_": _are_covariate_names,
    "offset_coef_": _are_offset_weights,
    "offset_": _is_number,
    "calibration_slope_": _is_slope,
    "calibration_offset_": _are_calibration_offsets,
    "classes_": _are_classes,
    "target_names_": _are_target_names,
    "target_scale_": _are_target_scales,
    "groups_": _are_groups,
    "member_moments_": _are_member_moments,
    "confidence_": _is_confidence,
    "_sklearn_output_config": _is_output_config,
}
