"""Statistics of the groups in the data: values by class, correlations between members, score along the path.

Reports show them, so their size is bounded: they cover a limited number of groups, members and samples.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import is_classifier, is_regressor
from sklearn.metrics import accuracy_score
from sklearn.utils.validation import check_is_fitted

from coterie._numba import one_blas_thread
from coterie._warnings import ignored
from coterie.data import as_source
from coterie.data.source import Columns
from coterie.data.view import FeatureView
from coterie.estimators.base import GroupDiscovery, input_of, settings_of
from coterie.groups.columns import Content, Context, Record
from coterie.inputs.opening import Input
from coterie.inputs.targets import spread_sample
from coterie.inputs.types import FeaturesLike, SamplesLike, TargetsLike
from coterie.solver.loss import LossLike, trait
from coterie.validation.metrics import explained

# Largest number of members in a heat map, of features in all heat maps, of groups with stored values, and of stored samples.
_HEAT_MEMBERS = 24
_HEAT_FEATURES = 4000
_VALUE_GROUPS = 200
_VALUE_SAMPLES = 400
# Largest number of groups with statistics per class, and of samples that these are computed from.
_STATISTICS = 50_000
_STATISTICS_SAMPLES = 50_000
# Largest number of values in memory at a time.
_ENTRIES = 20_000_000
# Largest number of distinct values that are counted instead of summarised by quartiles, and of pixels of a mean image.
_LEVELS = 6
_PIXELS = 40_000


@dataclass(frozen=True, eq=False)
class GroupDetails:
    """Result of :func:`describe`. Lists have one entry per group, in the order of ``groups_``.

    Attributes
    ----------
    scale : ndarray of shape (n_groups,)
        Standard deviations of the support features.
    classes : list of str or None
        Classes, or None for other tasks.
    statistics : list of list of dict, or None
        Per class: number of samples, mean, standard deviation and quartiles of the support feature.
    levels : list of dict or None
        For a support feature with few values: their ``names`` and their ``counts`` per class.
    correlations : list of (ndarray, ndarray) or None
        Members of a group (positions in it) and their correlation matrix; None if it was not stored.
    samples : ndarray of int
        Samples whose values are stored.
    values : ndarray of shape (n_stored_groups, n_stored_samples)
        Values of the support features of the first groups.
    target : ndarray of shape (n_stored_samples,)
        Class codes or targets of these samples. Empty for several targets.
    training : dict or None
        ``sizes`` and training ``score`` of the models of the rounds.
    image : dict or None
        Rows, columns and pixel order, and the mean of all images.
    trait : dict or None
        Mean, standard deviation and range of a numerical target; None for several.
    """

    scale: np.ndarray
    classes: list[str] | None = None
    statistics: list[list[dict[str, float]]] | None = None
    levels: list[Record | None] = field(default_factory=list)
    correlations: list[tuple[np.ndarray, np.ndarray] | None] = field(default_factory=list)
    samples: np.ndarray = field(default_factory=lambda: np.empty(0, dtype=np.int64))
    values: np.ndarray = field(default_factory=lambda: np.empty((0, 0)))
    target: np.ndarray = field(default_factory=lambda: np.empty(0))
    training: Record | None = None
    image: Record | None = None
    trait: dict[str, float] | None = None


def describe(
    model: GroupDiscovery,
    X: FeaturesLike,
    y: TargetsLike = None,
    sample_weight: SamplesLike = None,
    *,
    image_shape: tuple[int, int] | None = None,
    image_order: str = "C",
) -> GroupDetails:
    """Compute statistics of the groups of a fitted model on its training data.

    Parameters
    ----------
    model : group-discovery estimator
        Fitted estimator.
    X, y, sample_weight
        Training data of the estimator.
    image_shape : (int, int), optional
        Rows and columns of the image, if the features are its pixels.
    image_order : {"C", "F"}, default="C"
        Pixel order: ``"C"`` along the rows, ``"F"`` down the columns.

    Returns
    -------
    details : GroupDetails

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from coterie import GroupDiscoveryClassifier
    >>> from coterie.report import describe
    >>> X, y = load_iris(return_X_y=True, as_frame=True)
    >>> details = describe(GroupDiscoveryClassifier(2, threshold=0.9).fit(X, y), X, y)
    >>> [round(row["mean"], 2) for row in details.statistics[0]]
    [1.46, 4.26, 5.55]
    """
    if not isinstance(model, GroupDiscovery):
        raise TypeError(f"A report requires a group-discovery estimator, got {type(model).__name__}.")
    check_is_fitted(model)
    with ignored(UserWarning):  # the fit has raised them already
        data = input_of(model, X, y, sample_weight)
    if data.source.shape[1] != model.n_features_in_:
        given, known = data.source.shape[1], model.n_features_in_
        raise ValueError(
            f"X has {given} features, but the model was fitted with {known}. Pass the training data of the model."
        )
    image = None if image_shape is None else _image(data, image_shape, image_order)
    with one_blas_thread():
        return _described(model, data, image)


def _described(model: GroupDiscovery, data: Input, image: Record | None) -> GroupDetails:
    groups, source = model.groups_, data.source
    labelled = is_classifier(model)
    classes = None if data.classes is None else [str(label) for label in data.classes.tolist()]
    if labelled and classes != [str(label) for label in getattr(model, "classes_", np.empty(0)).tolist()]:
        raise ValueError("The classes of y differ from those of the model. Pass the training data of the model.")
    targets, numeric = np.asarray(data.targets), is_regressor(model) and data.targets.ndim == 1
    used = np.arange(len(targets)) if data.weight is None else np.flatnonzero(data.weight > 0)
    judged = spread_sample(used, targets if labelled else None, _STATISTICS_SAMPLES)
    shown = spread_sample(used, targets if labelled else None, _VALUE_SAMPLES)
    pictured = min(len(groups), _VALUE_GROUPS)
    scale = np.empty(len(groups))
    statistics: list[list[dict[str, float]]] = []
    levels: list[Record | None] = []
    values = np.empty((pictured, len(shown)))
    step = max(1, _ENTRIES // max(1, source.shape[0]))
    for start in range(0, len(groups), step):
        columns = source.columns(groups.support[start : start + step])
        part = slice(start, start + columns.shape[1])
        scale[part] = as_source(columns).moments(data.weight).scale
        if start < _STATISTICS and labelled:
            table = _dense(columns[judged])
            statistics += [_statistics(column, targets[judged], len(classes or ())) for column in table.T]
            levels += [_levels(column, targets[judged], len(classes or ())) for column in table.T]
        if start < pictured:
            values[part] = _dense(columns[shown]).T[: max(0, pictured - start)]
    return GroupDetails(
        scale=scale,
        classes=classes,
        statistics=statistics if labelled else None,
        levels=levels,
        correlations=_correlations(model, data),
        samples=shown,
        values=values,
        target=targets[shown] if labelled or numeric else np.empty(0),
        training=_training_curve(model, data),
        image=image,
        trait=_trait(targets[used]) if numeric else None,
    )


def _dense(columns: Columns) -> np.ndarray:
    return np.asarray(columns if isinstance(columns, np.ndarray) else columns.toarray(), dtype=np.float64)


def _statistics(column: np.ndarray, classes: np.ndarray, n_classes: int) -> list[dict[str, float]]:
    """Return summary statistics of a column per class."""
    result = []
    for label in range(n_classes):
        own = column[classes == label]
        if not len(own):
            result.append(dict.fromkeys(("n", "mean", "sd", "q1", "median", "q3"), float("nan")) | {"n": 0})
            continue
        q1, median, q3 = np.quantile(own, [0.25, 0.5, 0.75]).tolist()
        result.append({"n": len(own), "mean": float(own.mean()), "sd": float(own.std()), "q1": q1, "median": median, "q3": q3})
    return result


def _levels(column: np.ndarray, classes: np.ndarray, n_classes: int) -> Record | None:
    """Return counts per value if there are few values (genotypes, presence) or mostly zeros (counts of rare words)."""
    if not np.array_equal(column, np.round(column)):
        return None
    known = np.unique(column)
    if len(known) > _LEVELS:
        if (column == 0).mean() < 0.5 or known[0] < 0 or (column > 3).mean() > 0.1:
            return None
        known, names = np.arange(4.0), ["0", "1", "2", "3 or more"]
        column = np.minimum(column, 3.0)
    else:
        names = [f"{value:g}" for value in known]
    counts = [[int(np.sum(column[classes == label] == value)) for value in known] for label in range(n_classes)]
    return {"names": names, "counts": counts}


def _correlations(model: GroupDiscovery, data: Input) -> list[tuple[np.ndarray, np.ndarray] | None]:
    """Return correlations between the first members of the first groups, by the model's correlation measure."""
    budget = min(_HEAT_FEATURES, _ENTRIES // max(1, data.source.shape[0]))
    wanted: list[np.ndarray | None] = []
    for group in model.groups_:
        size = min(len(group), _HEAT_MEMBERS)
        kept = 1 < size <= budget
        wanted.append(group.members[:size] if kept else None)
        budget -= size if kept else 0
    features = np.unique(np.concatenate([part for part in wanted if part is not None] or [np.empty(0, dtype=np.int64)]))
    if not len(features):
        return [None] * len(wanted)
    view = FeatureView.of(as_source(data.source.columns(features)), data.weight)
    measure = replace(settings_of(model), compatibility=None).measure(view)  # indices of X have no meaning in this view
    result: list[tuple[np.ndarray, np.ndarray] | None] = []
    for part in wanted:
        matrix = None if part is None else np.asarray(measure.within(np.searchsorted(features, part)))
        result.append(None if part is None or matrix is None else (np.arange(len(part)), matrix))
    return result


def _training_curve(model: GroupDiscovery, data: Input) -> Record | None:
    """Return the training score of the model of each round, which is optimistic."""
    predicts = getattr(model, "predict_with_", model.predict_with)
    n_samples, n_support = data.source.shape[0], len(model.groups_)
    plain_score = getattr(model, "scoring", None) is None and (is_classifier(model) or is_regressor(model))
    # Covariates and offset are not available here.
    adjusted = hasattr(model, "covariate_names_") or hasattr(model, "offset_coef_")
    if predicts != "support" or not plain_score or adjusted or n_samples * n_support > _ENTRIES:
        return None
    settings = settings_of(model)
    columns = data.source.columns(model.groups_.support)
    view = FeatureView.of(
        as_source(columns),
        data.weight,
        standardize=bool(getattr(model, "standardize_", model.standardize is True)),
        centred=settings.loss_of(data).centred,
    )
    centre, scales = (np.asarray(part) for part in (view.centre(np.arange(n_support)), view.scales(np.arange(n_support))))
    sizes, scores = [], []
    for entry in model.history_:
        coef = np.asarray(entry.coef)
        if coef.ndim != 2 or not len(coef) or len(coef) > n_support:
            return None
        own = coef / scales[: len(coef), None]
        outputs = np.asarray(columns[:, : len(coef)] @ own) + entry.intercept - centre[: len(coef)] @ own
        sizes.append(len(coef))
        scores.append(_score(settings.loss, outputs, data))
    return {"sizes": sizes, "score": scores}


def _score(loss: LossLike, outputs: np.ndarray, data: Input) -> float:
    predicted = loss.predict(outputs)
    if data.classes is not None:
        return float(accuracy_score(data.targets, predicted, sample_weight=data.weight))
    return explained(trait(loss, "error_measure"), data.targets, predicted, data.weight)


def _trait(targets: np.ndarray) -> dict[str, float]:
    low, high = float(targets.min()), float(targets.max())
    return {"mean": float(targets.mean()), "sd": float(targets.std()), "min": low, "max": high}


def _image(data: Input, shape: Sequence[int], order: str) -> Record:
    """Return shape and pixel order of the image, and the mean of all images as grey levels."""
    rows, columns = check_image(shape, order, data.source.shape[1])
    grey = None
    if rows * columns <= _PIXELS:
        mean = data.source.moments(data.weight).mean
        span = float(np.ptp(mean))
        grey = np.round(255 * (mean - mean.min()) / span).astype(np.int64) if span > 0 else None
    return {"rows": rows, "columns": columns, "order": order, "background": grey}


def check_image(shape: ArrayLike, order: str, n_features: int) -> tuple[int, int]:
    """Return rows and columns of an image, which must have one pixel per feature."""
    sizes = np.atleast_1d(np.asarray(shape))
    if sizes.shape != (2,) or sizes.dtype.kind not in "iu" or (sizes < 1).any():
        raise ValueError(f"image_shape={shape!r} must be the numbers of rows and columns, such as (28, 28).")
    if order not in ("C", "F"):
        raise ValueError(f"image_order={order!r} must be 'C' (pixels along the rows) or 'F' (down the columns).")
    rows, columns = int(sizes[0]), int(sizes[1])
    if rows * columns != n_features:
        raise ValueError(
            f"An image of {rows} x {columns} has {rows * columns} pixels, but X has {n_features} features. The product of "
            "rows and columns must be the number of features."
        )
    return rows, columns


def context_of(model: GroupDiscovery, task: str, details: GroupDetails | None, feature_info: Content) -> Context:
    """Return the information beyond the groups that their columns show (see :mod:`coterie.groups.columns`)."""
    labels = getattr(model, "classes_", None)
    classes = None if labels is None else [str(label) for label in labels.tolist()]
    scale = dict(zip(getattr(model, "target_names_", ()), getattr(model, "target_scale_", np.empty(0)).tolist(), strict=False))
    if details is None:
        return Context(task, classes, feature_info=feature_info, target_scale=scale)
    return Context(
        task,
        classes,
        statistics=details.statistics,
        levels=details.levels,
        correlations=details.correlations,
        feature_info=feature_info,
        target_scale=scale,
    )


def genome_of(feature_info: Content, most: int = 200) -> list[Record] | None:
    """Return the chromosomes in natural order with their ranges of positions, or None for none or too many."""
    if "chromosome" not in feature_info or "position" not in feature_info:
        return None
    chromosome = np.asarray([str(name) for name in feature_info["chromosome"]])
    position = np.asarray(feature_info["position"], dtype=np.float64)
    names, number = np.unique(chromosome, return_inverse=True)
    if len(names) > most:
        return None
    order = sorted(range(len(names)), key=lambda i: natural(str(names[i])))
    return [
        {"chromosome": str(names[i]), "low": float(position[number == i].min()), "high": float(position[number == i].max())}
        for i in order
    ]


def natural(name: str) -> tuple[bool, int, str]:
    """Return a sort key that puts numbers first, by size, then names."""
    return (not name.isdecimal(), int(name) if name.isdecimal() else 0, name)
