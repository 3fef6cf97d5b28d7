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
from coterie.correlation.missing import KnownContent, imputed, pairwise_measure, view_of_known
from coterie.correlation.protocol import Correlation
from coterie.data.names import refuse_repeated
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

_SHOWN = 5


@dataclass(frozen=True)
class _Features:
    """What a fit works on: the columns that take part, as a view and as the user gave them (X)."""

    attributes: dict[str, Any]  # of X, for the fitted selector
    view: FeatureView
    X: Any
    features: np.ndarray  # their places in the whole table
    others: np.ndarray  # the places of all other columns
    holes: bool  # whether values are missing, so that correlations are those of what is known

    @property
    def source(self) -> FeatureSource:
        """The features that take part."""
        return self.view.source


class CorrelationGroups(FeatureSets, Selector):
    r"""Group correlated features without labels, and keep one representative of each group.

    No two representatives are correlated at or over ``threshold`` (fixed ones aside), every other feature is correlated with
    one of them, and belongs to the one that it is closest to. The groups are exact, the same for any order of the
    columns, and found without a matrix of all pairs, on dense and sparse data that are not copied. A data frame goes in as it
    is: columns that are no numbers are passed through or dropped, and values may be missing.

    Parameters
    ----------
    threshold : float, default=0.7
        Absolute correlation in (0, 1] from which on two features belong together.

    correlation : {"pearson", "spearman", "su"} or callable, default="pearson"
        Measure of correlation: Pearson's coefficient, Spearman's (of the ranks, ties averaged), or symmetrical uncertainty
        (mutual information over the mean entropy, on bins). A function of two blocks of columns, or a class, is a measure
        of one's own: ``docs/development/adding-a-correlation.md``.

    n_bins : int, default=10
        Bins of equal width over a feature's range, for symmetrical uncertainty.

    representative : {"neighbours", "variance"}, callable or array-like of shape (n_features,), default="neighbours"
        Who is a representative before others: the feature with the most correlated features around it (of those with as
        many the one with the largest variance), or the one with the largest variance. Or scores, higher is better: an
        array with one for each column of X, or a function that makes them of the columns that take part.

    fixed_features : array-like of int, str or bool, default=None
        Features (indices, names or a mask) that are representatives from the start, whatever their correlations.

    variables : array-like of int, str or bool, default=None
        The features (indices, names or a mask) that take part. None: all columns of numbers (and of True and False); columns
        of a data frame with anything else are left to ``remainder``.

    remainder : {"passthrough", "drop", "refuse"}, default="passthrough"
        What becomes of the columns that take no part: :meth:`transform` keeps them as they are, or drops them; or they are an
        error, which names them.

    missing_values : {"raise", "ignore", "mean", "median", "most_frequent"}, default="raise"
        What to do about NaN: an error that says how many there are and where; for Pearson's and Spearman's coefficient each
        pair over the samples in which both are known (at least three, else they are not correlated); or they are replaced,
        for the grouping alone, by that value of their column. :meth:`transform` never changes a value.

    n_jobs : int or None, default=None
        Number of threads. None means all cores the process may use, but one inside joblib's workers. The result does not
        depend on it.

    verbose : int, default=0
        Show progress: a bar on a terminal, lines elsewhere.

    Attributes
    ----------
    groups_ : FeatureGroups
        The groups, fixed representatives first, then by score; a feature that is correlated with no other is a group of its
        own. Constant features are in none.

    support_features_ : ndarray of shape (n_groups,)
        The representatives, in the same order; what :meth:`transform` keeps.

    other_features_ : ndarray of int
        The columns that took no part.

    scores_ : ndarray of shape (n_features,)
        What the representatives were chosen by: numbers of neighbours, variances, or the scores given; 0 for columns that
        took no part.

    correlated_feature_sets_, correlated_feature_dict_ : list of set, dict
        Groups of two and more in feature-engine's form.

    n_correlations_evaluated_, n_correlations_possible_ : int
        Correlations that were computed (one that is computed again counts again, up to the number of pairs), and all pairs
        of features.

    n_features_in_ : int
        Number of features seen in ``fit``.

    feature_names_in_ : ndarray of shape (n_features_in_,)
        Names of the features, when X has names that are all strings.

    See Also
    --------
    GroupDiscoveryClassifier : Groups around the features that predict.
    correlation_profile : How many pairs are how correlated; to choose the threshold.

    Notes
    -----
    Features are walked by score; one that is correlated with a representative is taken, any other is a representative. Batches
    of features share a pass over the data (``docs/do/correlation-groups.md``). Of features with equal scores the one that
    comes first is decided by the content of the columns, then by name.

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
            Names of the features, for data that have none; or a function that returns them, such as the
            ``get_feature_names_out`` of the step before in a pipeline.

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
        part = participants(self, given, self.variables, self.remainder)
        source, n_threads = part.reading.source, thread_count(self.n_jobs)
        weight = read_sample_weight(sample_weight, np.ones(source.shape[0]))
        view = None
        if self.missing_values == "ignore":
            view = view_of_known(source, weight, n_threads)
        elif self.missing_values != "raise":
            source = imputed(source, self.missing_values)
        holes = view is not None
        try:
            view = FeatureView.of(source, weight, n_threads=n_threads) if view is None else view
        except ValueError as error:
            if "NaN" not in str(error) or self.missing_values != "raise":
                raise
            raise ValueError(f"{error} Or set missing_values='ignore': each pair over what is known of both.") from error
        return _Features(part.reading.attributes, view, part.X, part.features, part.others, holes)

    def _compute(self, data: _Features) -> dict[str, Any]:
        view, threshold = data.view, float(self.threshold)
        view.moments.require_variation()
        fixed = fixed_positions(self._fixed(data), view)
        varying = np.setdiff1d(np.flatnonzero(view.moments.norm > 0.0), fixed, assume_unique=True)
        measure: Correlation
        if data.holes:
            measure = pairwise_measure(self.correlation, view)
        else:
            measure = measure_of(self.correlation, view, int(self.n_bins))
        with one_blas_thread():
            scores = self._scores(data, measure)
            variance = view.moments.scale**2
            votes = scores if _is(self.representative, "neighbours") else None
            content: Any = KnownContent(view) if data.holes else view.source
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
            # Who has no neighbours need not be asked who they are.
            alone = order[len(order) :] if votes is None else order[votes[order] == 0]
            walked = order if votes is None else order[votes[order] > 0]
            with RoundProgress(len(walked), int(self.verbose), "groups", "features") as bar:
                found = group_features(
                    measure, walked, fixed, threshold, lambda done, n: bar.update(done, f"{n:,} representatives")
                )
            found = found._replace(supports=np.concatenate([found.supports, alone]))
            groups = _assembled(found, scores, len(fixed), measure)
        n_pairs = view.n_features * (view.n_features - 1) // 2  # some of them may have been looked at from both sides
        all_scores = np.zeros(data.attributes["n_features_in_"])
        all_scores[data.features] = scores
        return {
            "groups_": groups if not len(data.others) else _placed(groups, data.features),
            "scores_": all_scores,
            "support_features_": data.features[found.supports],
            "other_features_": data.others,
            "n_correlations_evaluated_": min(measure.n_evaluated, n_pairs),
            "n_correlations_possible_": n_pairs,
        }

    def _scores(self, data: _Features, measure: Correlation) -> np.ndarray:
        """What representatives are chosen by."""
        view = data.view
        if _is(self.representative, "variance"):
            return np.asarray(view.moments.scale**2)
        if _is(self.representative, "neighbours"):
            n_varying = int(np.count_nonzero(view.moments.norm))
            with RoundProgress(n_varying, int(self.verbose), "neighbours", "features") as bar:
                return count_neighbours(measure, float(self.threshold), lambda done: bar.update(done, "neighbours counted"))
        given = self.representative(data.X) if callable(self.representative) else self.representative
        n_features = view.n_features if callable(self.representative) else data.attributes["n_features_in_"]
        try:
            scores = np.asarray(given, dtype=np.float64)
        except (TypeError, ValueError):
            raise ValueError("representative must give numbers, a score for each feature.") from None
        if scores.shape != (n_features,):
            raise ValueError(f"representative gives scores of shape {scores.shape}, but X has {n_features} features.")
        scores = scores if callable(self.representative) else scores[data.features]
        if not np.isfinite(scores).all():
            raise ValueError("representative gives scores that are NaN or infinite; every feature needs a finite one.")
        return scores

    def _fixed(self, data: _Features) -> Any:
        """The fixed features as places among those that take part."""
        if self.fixed_features is None or not len(data.others):
            return self.fixed_features
        names, n_features = data.attributes.get("feature_names_in_"), data.attributes["n_features_in_"]
        fixed = feature_positions(self.fixed_features, n_features, names, "fixed_features")
        absent = np.intersect1d(fixed, data.others)
        if len(absent):
            label = feature_label(names, absent[0])
            raise ValueError(f"fixed_features has feature {label!r}, which takes no part in the grouping; leave it out.")
        return np.searchsorted(data.features, fixed)

    def _kept(self) -> np.ndarray:
        check_is_fitted(self)
        others = self.other_features_ if self.remainder == "passthrough" else self.other_features_[:0]
        return np.union1d(self.support_features_, others)

    def transform(self, X: Any) -> Any:
        """Keep the representatives, and the columns that took no part unless they are dropped, in the order of the columns.

        Parameters
        ----------
        X : {array-like, sparse matrix, data frame} of shape (n_samples, n_features)
            Data with the features seen in ``fit``. Where both have names, the columns go by them: in any order, with others
            among them, or only those that are kept.

        Returns
        -------
        X_selected : of shape (n_samples, n_kept)
            The columns, with their values as they are. CSC stays CSC, CSR stays CSR, arrays keep their type; data frames come
            back as arrays unless ``set_output`` says otherwise, as everywhere in scikit-learn, or unless columns were passed
            through, of which an array could not keep the types.
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
        """Names (or indices) of the columns that took part, as in feature-engine."""
        check_is_fitted(self)
        return [self._label(int(j)) for j in np.setdiff1d(np.arange(self.n_features_in_), self.other_features_)]

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = False
        tags.input_tags.allow_nan = self.missing_values != "raise"
        return tags


def _placed(groups: FeatureGroups, features: np.ndarray) -> FeatureGroups:
    """Groups of some columns as groups of the table that they come from."""
    return FeatureGroups(
        [replace(group, support=int(features[group.support]), affiliated=features[group.affiliated]) for group in groups]
    )


def _assembled(found: Grouping, scores: np.ndarray, n_fixed: int, measure: Correlation) -> FeatureGroups:
    """The groups that users see."""
    order = np.lexsort((-np.abs(found.correlation), found.position))  # then by feature, which they come in order of
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
            purity=purity.get(position) or _of_pair(found.correlation[own]),
        )
        for position, own in enumerate(parts)
    ]
    return FeatureGroups(groups)


def _of_pair(correlation: np.ndarray) -> Purity:
    """The purity of a group of one or two, from the correlation with its representative."""
    return Purity(*(abs(float(correlation[0])) if len(correlation) else 1.0,) * 3)


def _is(value: object, word: str) -> bool:
    return isinstance(value, str) and value == word


class Participants(NamedTuple):
    """The columns that take part in their own format, the source over them, and their places and those of all others.

    The attributes of ``reading`` are those of the whole table.
    """

    X: Any
    reading: Reading
    features: np.ndarray
    others: np.ndarray


def participants(estimator: BaseEstimator, given: Any, variables: Any, remainder: str) -> Participants:
    """The columns that ``variables`` name; without any, all columns of numbers."""
    is_frame = hasattr(given, "columns") and hasattr(given, "dtypes") and not isinstance(given, FeatureSource)
    if not is_frame and variables is None:
        reading = read_source(estimator, given)
        return Participants(given, reading, np.arange(reading.source.shape[1]), np.empty(0, dtype=np.int64))
    names = list(given.columns) if is_frame else getattr(given, "feature_names", None)
    all_text = names is not None and all(isinstance(name, str) for name in names)
    if is_frame and all_text:
        refuse_repeated(names or [], of="X: ")
    n_features = given.shape[1] if hasattr(given, "shape") else np.shape(given)[1]
    numbers = np.flatnonzero([is_number(dtype) for dtype in given.dtypes]) if is_frame else np.arange(n_features)
    features = numbers if variables is None else _asked(given, variables, names if all_text else None, numbers, n_features)
    others = np.setdiff1d(np.arange(n_features), features)
    if len(others) and remainder == "refuse":
        raise _refusal(given, others, variables is None)
    if not len(features):
        raise ValueError(
            "X has no columns of numbers to group. Columns of objects that hold numbers must be converted first "
            "(X.infer_objects() or X.astype(float))."
        )
    if not len(others):
        return Participants(given, read_source(estimator, given), features, others)
    chosen = take_columns(given if hasattr(given, "shape") else np.asarray(given), features)
    reading = read_source(estimator, chosen)
    attributes: dict[str, Any] = {"n_features_in_": n_features}
    if all_text:
        attributes["feature_names_in_"] = np.array([str(name) for name in names or []], dtype=object)
    return Participants(chosen, Reading(reading.source, attributes), features, others)


def is_number(dtype: object) -> bool:
    """Whether a column of this type has numbers (or True and False), of pandas as well as of polars."""
    if hasattr(dtype, "is_numeric"):  # polars
        return bool(dtype.is_numeric()) or str(dtype) == "Boolean"
    return getattr(dtype, "kind", "O") in "biuf"


def _asked(X: Any, variables: Any, names: Sequence[str] | None, numbers: np.ndarray, n_features: int) -> np.ndarray:
    """The places of the columns that a user names, all of which must be numbers."""
    asked = np.sort(feature_positions(variables, n_features, names, "variables"))
    if not len(asked):
        raise ValueError("variables has no features; None takes all columns of numbers.")
    wrong = np.setdiff1d(asked, numbers)
    if len(wrong):
        raise ValueError(f"variables has {_listed(X, wrong)}, whose values are no numbers. Leave out or encode it.")
    return asked


def _refusal(X: Any, others: np.ndarray, by_kind: bool) -> ValueError:
    what = "are no numbers" if by_kind else "are not among the variables"
    return ValueError(f"remainder='refuse', and these columns of X {what}: {_listed(X, others)}. Drop or encode them.")


def _listed(X: Any, places: np.ndarray) -> str:
    columns = list(X.columns) if hasattr(X, "columns") and hasattr(X, "dtypes") else None
    kinds = list(X.dtypes) if columns is not None else []
    shown = [str(int(j)) if columns is None else f"{columns[int(j)]!r} ({kinds[int(j)]})" for j in places[:_SHOWN]]
    return ", ".join(shown) + (f" and {len(places) - _SHOWN} more" if len(places) > _SHOWN else "")
