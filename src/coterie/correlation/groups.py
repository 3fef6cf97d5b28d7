"""Groups of correlated features and their representatives, without labels."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike
from scipy import sparse
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from coterie._numba import one_blas_thread, thread_count
from coterie._parameters import N_BINS, N_JOBS, VERBOSE, AnyValue, NotString, Number, OneOf, Rule
from coterie._sklearn import stays_frame
from coterie.correlation.grouping import Grouping, count_neighbours, group_features, group_purities
from coterie.correlation.measures import CORRELATION, measure_of
from coterie.correlation.missing import ContentWithMissing, imputed, pairwise_measure, view_with_missing
from coterie.correlation.protocol import Correlation
from coterie.data.names import require_unique_names
from coterie.data.source import FeatureSource
from coterie.data.view import FeatureView
from coterie.groups import FeatureGroup, FeatureGroups, Purity
from coterie.inputs.arrays import Reading, read_source, take_columns
from coterie.inputs.naming import columns_read, named
from coterie.inputs.opening import opened
from coterie.inputs.targets import read_sample_weight
from coterie.inputs.types import FeaturesLike, NamesLike, SamplesLike
from coterie.order import in_order
from coterie.progress import RoundProgress
from coterie.selection import FeatureSets, Selector, feature_label, feature_positions, fixed_positions, names_of

_MAX_LISTED = 5


@dataclass(frozen=True)
class _Features:
    """Data of a fit: the grouped columns, as a view and in the user's format (X)."""

    attributes: dict[str, Any]  # Attributes of X for the fitted selector.
    view: FeatureView
    X: Any
    features: np.ndarray  # Positions of the grouped columns in the whole table.
    others: np.ndarray  # Positions of all other columns.
    has_missing: bool  # Whether values are missing, so that correlations use known values only.

    @property
    def source(self) -> FeatureSource:
        """The grouped columns."""
        return self.view.source


class CorrelationGroups(FeatureSets, Selector):
    r"""Group correlated features without labels, and keep one representative of each group.

    The absolute correlation of two representatives is below ``threshold``, except between fixed representatives. Every other
    feature is correlated with a representative and belongs to the closest one. The groups are exact and do not depend on the
    order of the columns. They are found without a matrix of all pairs, on dense and sparse data that are not copied. Data
    frames need no preparation: columns without numbers are passed through or dropped, and values may be missing.

    Parameters
    ----------
    threshold : float, default=0.7
        Smallest absolute correlation, in (0, 1], of a feature with its representative.

    correlation : {"pearson", "spearman", "su"} or callable, default="pearson"
        Correlation measure: Pearson's coefficient, Spearman's coefficient (of the ranks, ties averaged), or symmetrical
        uncertainty (mutual information over the mean entropy, on bins). A function of two column blocks, or a class, is a
        user-defined measure: see ``docs/development/adding-a-correlation.md``.

    n_bins : int, default=10
        Number of bins of equal width over a feature's range, for symmetrical uncertainty.

    representative : {"neighbours", "variance"}, callable or array-like of shape (n_features,), default="neighbours"
        Priority of features as representatives. ``"neighbours"`` prefers the feature with the most correlated features (ties:
        the largest variance), ``"variance"`` the feature with the largest variance. Or scores, where higher is better: an
        array with one score per column of X, or a function that computes them from the grouped columns.

    fixed_features : array-like of int, str or bool, default=None
        Features (indices, names or a mask) that are always representatives, regardless of their correlations.

    variables : array-like of int, str or bool, default=None
        Features to group (indices, names or a mask). None means all numeric and boolean columns. Other columns of a data
        frame are handled by ``remainder``.

    remainder : {"passthrough", "drop", "refuse"}, default="passthrough"
        Treatment of the columns that are not grouped: :meth:`transform` keeps them unchanged, or drops them, or ``fit`` raises
        an error that names them.

    missing_values : {"raise", "ignore", "mean", "median", "most_frequent"}, default="raise"
        Treatment of NaN. ``"raise"``: an error with their number and position. ``"ignore"``: each pair is computed over the
        samples in which both values are known (with fewer than three such samples the features count as uncorrelated); for
        Pearson's and Spearman's coefficient only. Otherwise: they are replaced by this statistic of their column, for the
        grouping only. :meth:`transform` never changes a value.

    n_jobs : int or None, default=None
        Number of threads. None means all cores available to the process, but one thread inside joblib's workers. The result
        does not depend on it.

    verbose : int, default=0
        Show progress: a bar on a terminal, lines elsewhere.

    Attributes
    ----------
    groups_ : FeatureGroups
        The groups, fixed representatives first, then by score. A feature that is correlated with no other forms its own
        group. Constant features are in no group.

    support_features_ : ndarray of shape (n_groups,)
        The representatives, in the same order. :meth:`transform` keeps these columns.

    other_features_ : ndarray of int
        The columns that were not grouped.

    scores_ : ndarray of shape (n_features,)
        Scores by which the representatives were selected: numbers of neighbours, variances, or the given scores. 0 for columns
        that were not grouped.

    correlated_feature_sets_, correlated_feature_dict_ : list of set, dict
        Groups of at least two features in the format of feature-engine.

    n_correlations_evaluated_, n_correlations_possible_ : int
        Number of computed correlations (repeated computations count again, up to the number of pairs), and number of all pairs
        of features.

    n_features_in_ : int
        Number of features seen in ``fit``.

    feature_names_in_ : ndarray of shape (n_features_in_,)
        Names of the features, if X has names that are all strings.

    See Also
    --------
    GroupDiscoveryClassifier : Groups around predictive features.
    correlation_profile : Distribution of the correlations, to choose the threshold.

    Notes
    -----
    Features are visited in order of their scores. A feature that is correlated with a representative is grouped; any other
    becomes a representative. Batches of features share a pass over the data (``docs/do/correlation-groups.md``). Equal scores
    are ordered by the content of the columns, then by name.

    Examples
    --------
    >>> import numpy as np
    >>> from coterie import CorrelationGroups
    >>> rng = np.random.default_rng(0)
    >>> a, b, c = rng.standard_normal((3, 200))
    >>> X = np.column_stack([a, b, a + 0.4 * c, -a + 0.3 * b])
    >>> selector = CorrelationGroups(threshold=0.8).fit(X)
    >>> selector.groups_
    2 groups, 4 features
      1. 2 ~ 0 (+0.93), 3 (-0.88)
      2. 1 (alone)
    >>> selector.transform(X).shape
    (200, 2)
    """

    _allowed: ClassVar[dict[str, Rule]] = {
        "threshold": Number(at_most=1),
        "correlation": CORRELATION,
        "n_bins": N_BINS,
        "representative": OneOf("neighbours", "variance") | NotString("a function of X, or the scores themselves"),
        "fixed_features": AnyValue(),
        "variables": AnyValue(),
        "remainder": OneOf("passthrough", "drop", "refuse"),
        "missing_values": OneOf("raise", "ignore", "mean", "median", "most_frequent"),
        "n_jobs": N_JOBS,
        "verbose": VERBOSE,
    }

    def __init__(
        self,
        threshold: float = 0.7,
        *,
        correlation: Any = "pearson",
        n_bins: int = 10,
        representative: Any = "neighbours",
        fixed_features: ArrayLike | None = None,
        variables: ArrayLike | None = None,
        remainder: str = "passthrough",
        missing_values: str = "raise",
        n_jobs: int | None = None,
        verbose: int = 0,
    ) -> None:
        self.threshold = threshold
        self.correlation = correlation
        self.n_bins = n_bins
        self.representative = representative
        self.fixed_features = fixed_features
        self.variables = variables
        self.remainder = remainder
        self.missing_values = missing_values
        self.n_jobs = n_jobs
        self.verbose = verbose

    def fit(
        self, X: FeaturesLike, y: object = None, sample_weight: SamplesLike = None, feature_names: NamesLike = None
    ) -> Self:
        """Find the groups.

        Parameters
        ----------
        X : {array-like, sparse matrix, data frame, FeatureSource, path, store} of shape (n_samples, n_features)
            The data.
        y : None
            Ignored.
        sample_weight : array-like of shape (n_samples,), default=None
            Weights of the samples in the correlations and variances.
        feature_names : array-like of str or callable, default=None
            Names of the features, for data without names, or a function that returns them, such as the
            ``get_feature_names_out`` of the previous step of a pipeline.

        Returns
        -------
        self : CorrelationGroups
            The fitted selector.
        """
        return self._fit(lambda: self._read(X, sample_weight, feature_names))

    def _read(self, X: FeaturesLike, sample_weight: SamplesLike = None, feature_names: NamesLike = None) -> _Features:
        given = opened(X)[0]
        if feature_names is not None:
            given = named(read_source(self, given).source, feature_names)
        part = select_columns(self, given, self.variables, self.remainder)
        source, n_threads = part.reading.source, thread_count(self.n_jobs)
        weight = read_sample_weight(sample_weight, np.ones(source.shape[0]))
        view = None
        if self.missing_values == "ignore":
            view = view_with_missing(source, weight, n_threads)
        elif self.missing_values != "raise":
            source = imputed(source, self.missing_values)
        has_missing = view is not None
        try:
            view = FeatureView.of(source, weight, n_threads=n_threads) if view is None else view
        except ValueError as error:
            if "NaN" not in str(error) or self.missing_values != "raise":
                raise
            raise ValueError(f"{error} Or set missing_values='ignore' to use the samples with both values known.") from error
        return _Features(part.reading.attributes, view, part.X, part.features, part.others, has_missing)

    def _compute(self, data: _Features) -> dict[str, Any]:
        view, threshold = data.view, float(self.threshold)
        view.moments.require_variation()
        fixed = fixed_positions(self._fixed_positions(data), view)
        varying = np.setdiff1d(np.flatnonzero(view.moments.norm > 0.0), fixed, assume_unique=True)
        measure: Correlation
        if data.has_missing:
            measure = pairwise_measure(self.correlation, view)
        else:
            measure = measure_of(self.correlation, view, int(self.n_bins))
        with one_blas_thread():
            scores = self._scores(data, measure)
            variance = view.moments.scale**2
            votes = scores if _equals(self.representative, "neighbours") else None
            content: Any = ContentWithMissing(view) if data.has_missing else view.source
            order = varying[
                in_order(
                    content,
                    varying,
                    (scores if votes is None else variance)[varying],
                    votes=None if votes is None else votes[varying],
                    sample_weight=view.sample_weight,
                    n_threads=view.n_threads,
                )
            ]
            # Features without neighbours are groups of their own and need no comparison.
            isolated = order[len(order) :] if votes is None else order[votes[order] == 0]
            connected = order if votes is None else order[votes[order] > 0]
            with RoundProgress(len(connected), int(self.verbose), "groups", "features") as bar:
                found = group_features(
                    measure, connected, fixed, threshold, lambda done, n: bar.update(done, f"{n:,} representatives")
                )
            found = found._replace(supports=np.concatenate([found.supports, isolated]))
            groups = _make_groups(found, scores, len(fixed), measure)
        n_pairs = view.n_features * (view.n_features - 1) // 2  # An upper limit: some pairs may have been computed twice.
        all_scores = np.zeros(data.attributes["n_features_in_"])
        all_scores[data.features] = scores
        return {
            "groups_": groups if not len(data.others) else _in_table(groups, data.features),
            "scores_": all_scores,
            "support_features_": data.features[found.supports],
            "other_features_": data.others,
            "n_correlations_evaluated_": min(measure.n_evaluated, n_pairs),
            "n_correlations_possible_": n_pairs,
        }

    def _scores(self, data: _Features, measure: Correlation) -> np.ndarray:
        """Return the scores by which representatives are selected."""
        view = data.view
        if _equals(self.representative, "variance"):
            return np.asarray(view.moments.scale**2)
        if _equals(self.representative, "neighbours"):
            n_varying = int(np.count_nonzero(view.moments.norm))
            with RoundProgress(n_varying, int(self.verbose), "neighbours", "features") as bar:
                return count_neighbours(measure, float(self.threshold), lambda done: bar.update(done, "neighbours counted"))
        given = self.representative(data.X) if callable(self.representative) else self.representative
        n_features = view.n_features if callable(self.representative) else data.attributes["n_features_in_"]
        try:
            scores = np.asarray(given, dtype=np.float64)
        except (TypeError, ValueError):
            raise ValueError("representative must provide one numeric score per feature.") from None
        if scores.shape != (n_features,):
            raise ValueError(f"representative provides scores of shape {scores.shape}, but X has {n_features} features.")
        scores = scores if callable(self.representative) else scores[data.features]
        if not np.isfinite(scores).all():
            raise ValueError("representative provides NaN or infinite scores. Every feature requires a finite score.")
        return scores

    def _fixed_positions(self, data: _Features) -> Any:
        """Return the positions of the fixed features among the grouped columns."""
        if self.fixed_features is None or not len(data.others):
            return self.fixed_features
        names, n_features = data.attributes.get("feature_names_in_"), data.attributes["n_features_in_"]
        fixed = feature_positions(self.fixed_features, n_features, names, "fixed_features")
        absent = np.intersect1d(fixed, data.others)
        if len(absent):
            label = feature_label(names, absent[0])
            raise ValueError(
                f"fixed_features has feature {label!r}, which is not grouped (see variables). Remove it from fixed_features."
            )
        return np.searchsorted(data.features, fixed)

    def _kept(self) -> np.ndarray:
        check_is_fitted(self)
        others = self.other_features_ if self.remainder == "passthrough" else self.other_features_[:0]
        return np.union1d(self.support_features_, others)

    def transform(self, X: Any) -> Any:
        """Return the representatives and, unless they are dropped, the columns that were not grouped, in column order.

        Parameters
        ----------
        X : {array-like, sparse matrix, data frame} of shape (n_samples, n_features)
            Data with the features seen in ``fit``. If both have feature names, columns are matched by name: they may be in
            any order, with additional columns, or only those that are kept.

        Returns
        -------
        X_selected : of shape (n_samples, n_kept)
            The columns with unchanged values. CSC stays CSC, CSR stays CSR, and arrays keep their type. Data frames are
            returned as arrays unless ``set_output`` is used, as in scikit-learn. They remain data frames if columns are
            passed through, because an array could not keep their types.
        """
        check_is_fitted(self)
        X, _ = opened(X)
        kept = self._kept()
        mixed = len(kept) > len(self.support_features_) and hasattr(X, "columns") and hasattr(X, "dtypes")
        as_given = mixed or stays_frame(self, X)
        columns = columns_read(self, X, kept, as_given=as_given, any_kind=mixed, allow_nan=self.missing_values != "raise")
        return columns.asformat(X.format) if sparse.issparse(X) else columns

    @property
    def features_to_drop_(self) -> list[Any]:
        """Names (or indices) of the columns that :meth:`transform` drops, as in feature-engine."""
        return [self._label(int(j)) for j in np.flatnonzero(~self._get_support_mask())]

    @property
    def variables_(self) -> list[Any]:
        """Names (or indices) of the grouped columns, as in feature-engine."""
        check_is_fitted(self)
        return [self._label(int(j)) for j in np.setdiff1d(np.arange(self.n_features_in_), self.other_features_)]

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = False
        tags.input_tags.allow_nan = self.missing_values != "raise"
        return tags


def _in_table(groups: FeatureGroups, features: np.ndarray) -> FeatureGroups:
    """Return groups of some columns with the indices of the whole table."""
    return FeatureGroups(
        [replace(group, support=int(features[group.support]), affiliated=features[group.affiliated]) for group in groups]
    )


def _make_groups(found: Grouping, scores: np.ndarray, n_fixed: int, measure: Correlation) -> FeatureGroups:
    """Return the groups as public objects."""
    # Features are sorted, so the stable sort orders members of equal correlation by feature.
    order = np.lexsort((-np.abs(found.correlation), found.position))
    bounds = np.searchsorted(found.position[order], np.arange(len(found.supports) + 1))
    names = measure.view.feature_names
    parts = [order[bounds[position] : bounds[position + 1]] for position in range(len(found.supports))]
    members = [np.append(support, found.feature[own]) for support, own in zip(found.supports, parts, strict=True)]
    large = [position for position, own in enumerate(parts) if len(own) > 1]
    purity = dict(zip(large, group_purities(measure, [members[position] for position in large]), strict=True))
    groups = [
        FeatureGroup(
            support=int(found.supports[position]),
            affiliated=found.feature[own],
            correlation=found.correlation[own],
            names=names_of(names, members[position]),
            score=float(scores[found.supports[position]]),
            affiliated_scores=scores[found.feature[own]].astype(np.float64),
            round=int(position >= n_fixed),
            purity=purity.get(position) or _small_purity(found.correlation[own]),
        )
        for position, own in enumerate(parts)
    ]
    return FeatureGroups(groups)


def _small_purity(correlation: np.ndarray) -> Purity:
    """Return the purity of a group of one or two features, from the correlation with its representative."""
    return Purity(*(abs(float(correlation[0])) if len(correlation) else 1.0,) * 3)


def _equals(value: object, word: str) -> bool:
    return isinstance(value, str) and value == word


class SelectedColumns(NamedTuple):
    """The grouped columns in their format, their source, their positions, and the positions of all other columns.

    The attributes of ``reading`` are those of the whole table.
    """

    X: Any
    reading: Reading
    features: np.ndarray
    others: np.ndarray


def select_columns(estimator: BaseEstimator, given: Any, variables: Any, remainder: str) -> SelectedColumns:
    """Return the columns given by ``variables``, or all numeric columns if it is None."""
    is_frame = hasattr(given, "columns") and hasattr(given, "dtypes") and not isinstance(given, FeatureSource)
    if not is_frame and variables is None:
        reading = read_source(estimator, given)
        return SelectedColumns(given, reading, np.arange(reading.source.shape[1]), np.empty(0, dtype=np.int64))
    names = list(given.columns) if is_frame else getattr(given, "feature_names", None)
    all_text = names is not None and all(isinstance(name, str) for name in names)
    if is_frame and all_text:
        require_unique_names(names or [], of="X: ")
    n_features = given.shape[1] if hasattr(given, "shape") else np.shape(given)[1]
    numbers = np.flatnonzero([is_number(dtype) for dtype in given.dtypes]) if is_frame else np.arange(n_features)
    features = (
        numbers
        if variables is None
        else _requested_features(given, variables, names if all_text else None, numbers, n_features)
    )
    others = np.setdiff1d(np.arange(n_features), features)
    if len(others) and remainder == "refuse":
        raise _remainder_error(given, others, variables is None)
    if not len(features):
        raise ValueError(
            "X has no numeric columns to group. Convert object columns that contain numbers first, with X.infer_objects() or "
            "X.astype(float)."
        )
    if not len(others):
        return SelectedColumns(given, read_source(estimator, given), features, others)
    chosen = take_columns(given if hasattr(given, "shape") else np.asarray(given), features)
    reading = read_source(estimator, chosen)
    attributes: dict[str, Any] = {"n_features_in_": n_features}
    if all_text:
        attributes["feature_names_in_"] = np.array([str(name) for name in names or []], dtype=object)
    return SelectedColumns(chosen, Reading(reading.source, attributes), features, others)


def is_number(dtype: object) -> bool:
    """Return True if a dtype of pandas or polars is numeric or boolean."""
    if hasattr(dtype, "is_numeric"):  # polars
        return bool(dtype.is_numeric()) or str(dtype) == "Boolean"
    return getattr(dtype, "kind", "O") in "biuf"


def _requested_features(
    X: Any, variables: Any, names: Sequence[str] | None, numbers: np.ndarray, n_features: int
) -> np.ndarray:
    """Return the positions of the columns in ``variables``, all of which must be numeric."""
    requested = np.sort(feature_positions(variables, n_features, names, "variables"))
    if not len(requested):
        raise ValueError("variables has no features. Use None for all numeric columns.")
    invalid = np.setdiff1d(requested, numbers)
    if len(invalid):
        raise ValueError(f"variables has {_listed(X, invalid)}, whose values are not numbers. Remove or encode it.")
    return requested


def _remainder_error(X: Any, others: np.ndarray, by_kind: bool) -> ValueError:
    what = "are not numeric" if by_kind else "are not among the variables"
    return ValueError(f"remainder='refuse', but these columns of X {what}: {_listed(X, others)}. Drop or encode them.")


def _listed(X: Any, positions: np.ndarray) -> str:
    columns = list(X.columns) if hasattr(X, "columns") and hasattr(X, "dtypes") else None
    kinds = list(X.dtypes) if columns is not None else []
    shown = [str(int(j)) if columns is None else f"{columns[int(j)]!r} ({kinds[int(j)]})" for j in positions[:_MAX_LISTED]]
    return ", ".join(shown) + (f" and {len(positions) - _MAX_LISTED} more" if len(positions) > _MAX_LISTED else "")
