"""Texts of parameters and attributes that several estimators share, written once.

A docstring holds ``%(name)s`` on a line of its own where an entry, or a list of entries, of :data:`TEXTS` belongs;
:func:`documented` puts it in. The command line reads docstrings from the source text and fills them in the same way, so this
module imports nothing.
"""

from __future__ import annotations

import re
from typing import TypeVar

T = TypeVar("T")

TEXTS: dict[str, str] = {
    "n_features_to_select": """
n_features_to_select : int, float or "auto", default=100
    Number of support features, or their fraction of all features; where there are fewer, all that can be
    had, with a warning. ``"auto"`` goes on until the optimum over all admissible sets is reached to
    ``tol``; without ``reuse_features``, which may never get there, until new features change the objective by less.
""",
    "n_features_per_round": """
n_features_per_round : int or "auto", default="auto"
    Support features chosen in a round, and so the step between sizes on a path. Those of one round are chosen without regard
    to each other, so fewer per round take longer and choose more carefully. ``"auto"`` is one per round up to ten, then a
    tenth of those found so far, rounded up (fixed ones aside), so that the first features are the same for every number.
""",
    "reuse_features": """
reuse_features : bool, default=False
    Whether a block, the features of a round, may have features of earlier blocks. False, as in TPAMI 2016: every feature
    is chosen once, no two support features are correlated at or over ``threshold``, and the weights are optimal for the
    blocks that were found. True, as in ICML 2012: each round takes the most violated of all sets of uncorrelated features,
    a feature's weight is the sum over its blocks, and the search can reach the optimum over all these sets
    (``converged_at_``). Then only the features of one block are uncorrelated; support features of different blocks
    may be correlated.
""",
    "grouping": """
correlation : {"pearson", "spearman", "su", None} or callable, default="pearson"
    Measure of correlation: Pearson's coefficient, Spearman's (of the ranks, ties averaged), or symmetrical uncertainty
    (mutual information over the mean entropy, on bins), which sees nonlinear relations too. None lifts the constraint,
    which is the feature generating machine (FGM): no groups, the features with the best scores. A function of two blocks
    of columns, or a class, is a measure of one's own: ``docs/development/adding-a-correlation.md``.

threshold : float, default=0.7
    Absolute correlation in (0, 1] from which on two features belong to the same group. The paper
    uses 0.7 for Pearson's coefficient and 0.6 for symmetrical uncertainty.

n_bins : int, default=10
    Bins of equal width over a feature's range, for symmetrical uncertainty.

affiliates : {"complete", "ranked"}, default="complete"
    ``"complete"`` collects every feature that is correlated with a support feature; ``"ranked"``
    only those encountered while looking for support features, as in TPAMI 2016.

representative : {"score", "medoid"} or callable, default="score"
    Which member of a would-be group is its support feature: the one with the best score, the
    one most correlated with the others, or the one that a callable picks. It is called with a
    named tuple with the fields ``features``, ``names``, ``scores`` and ``correlation`` and
    returns one of ``features``. Anything but ``"score"`` takes one or two passes over the data
    for each support feature.

fixed_features : array-like of int, str or bool, default=None
    Features (indices, names or a mask) that are support features from the start, whatever their
    scores and correlations; the others are judged beside them. They count towards the number of features.

keep : {"support", "groups"}, default="support"
    What :meth:`transform` keeps: the support features, or these and the affiliated ones.
""",
    "predict_with": """
predict_with : {"support", "groups"}, default="support"
    What the prediction rests on: the support features with the weights of the discovery, or support and
    affiliated features together, in a linear model with the usual form of the loss and the same ``C`` and weights.
    The groups do not depend on it. ``"groups"`` holds all their columns in memory, dense ones as float64.
""",
    "predict_with_choice": """
predict_with : {"support", "groups"} or list of both, default="support"
    What the prediction rests on, in the folds as well: the support features, or these and the affiliated ones; of a
    list, the better one. ``"groups"`` is tried at about a dozen sizes, each of which takes a linear model of its own.
""",
    "fit_intercept": """
fit_intercept : bool, default=True
    Whether to fit an intercept. The papers have none.
""",
    "standardize": """
standardize : bool or "auto", default="auto"
    Judge features by their values divided by their standard deviation. X is not copied, and the weights are those of
    the original features. ``"auto"`` does so unless at least nine of ten values are zero (words, clicks): otherwise
    features in small units could not win, but rare things must not be blown up. The papers do not (False).
""",
    "standardize_choice": """
standardize : bool, "auto" or list of bool, default="auto"
    Judge features by their values divided by their standard deviation; ``[False, True]`` tries both. ``"auto"`` does so,
    and tries both where at least nine of ten values are zero.
""",
    "class_weight": """
class_weight : dict, "balanced" or None, default=None
    Weights of the classes in the loss.
""",
    "embedded": """
cv : int, cross-validation generator or None, default=None
    Embedded cross-validation: in each round every fold proposes support features from its part of the
    samples, and those with the most votes are taken. A number means so many shuffled folds. A round
    may then choose fewer features than ``n_features_per_round``.

cv_part : {"training", "fold"}, default="training"
    The part of the samples that each fold of ``cv`` sees: all but its own, or its own alone (the paper's
    partitions, which find less: a fifth of the samples with five folds).
""",
    "running": """
max_rounds : int, default=None
    Limit of rounds.

tol : float, default=1e-4
    Relative precision: of the weights, given the blocks (a warning says where it is missed), of the bounds for
    ``converged_at_``, and of the objective for ``"auto"``.

n_jobs : int, default=None
    Number of threads. None: all cores, but one in a worker of a parallel job. The result does not depend on it.

random_state : int, RandomState instance or None, default=None
    Seed of the folds; nothing else is random.

verbose : int, default=0
    Show progress: a bar on a terminal, lines elsewhere.
""",
    "sizes": """
max_features_to_select : int, default=100
    The largest number of support features to try (all features where there are fewer).

min_features_to_select : int, default=1
    The smallest number of support features to choose; as many as ``max_features_to_select`` for just that number.
""",
    "Cs": """
Cs : int or list of float, default=10
    Values of C, the weight of the loss, to choose from. A number means so many, in equal ratios from 1e-4
    to 10, over a typical variance of the features (1 for standardised ones).
""",
    "choice": """
thresholds : list of float or None, default=None
    Thresholds to choose from; None for ``threshold`` alone.

rule : {"best", "one_se"}, default="best"
    Which candidate is chosen: that of the best mean score, or the one with the fewest features whose mean score is
    within one standard error of the best.

nested : bool, default=False
    Whether to measure the score of the whole procedure, the choice included, on samples that had no part in it, too
    (``nested_scores_``). It takes about (n_folds + 1) / 2 times as long.
""",
    "embedded_choice": """
embedded_cv : int, cross-validation generator or None, default=None
    Embedded cross-validation, the ``cv`` of the estimator without a choice.

cv_part : {"training", "fold"}, default="training"
    The part of the samples that each fold of ``embedded_cv`` sees: all but its own, or its own alone.
""",
    "running_paths": """
max_rounds : int, default=None
    Limit of rounds.

tol : float, default=1e-4
    Relative precision of the weights, given the blocks, and of the bounds for ``converged_at_``.

n_jobs : int, default=None
    Number of threads. None: all cores, but one in a worker of a parallel job. Inside
    ``joblib.parallel_config("loky", n_jobs=...)`` so many processes share the paths of the folds, where these are many
    enough. The result does not depend on it.

random_state : int, RandomState instance or None, default=None
    Seed of the folds.

verbose : int, default=0
    Show progress: a bar on a terminal, lines elsewhere.
""",
    "fitted_data": """
X : {array-like, sparse matrix, data frame, FeatureSource, path, Dataset, Store} of shape (n_samples, n_features)
    The data that the model was fitted to.

y : array-like of shape (n_samples,) or str, default=None
    Their labels or targets; of AnnData also the name of a column of ``obs``. None takes those of a path, data set or store.

sample_weight : array-like of shape (n_samples,), default=None
    Weights of the samples in the fit.

covariates : array-like or data frame of shape (n_samples, n_covariates), default=None
    Covariates of the fit, if there were any; None takes those of a data set or store.
""",
    "about_data": """
name : str, default=None
    Name of the data in the report; by default that of their file.

label : str, default=None
    Name of what is predicted; by default the name of ``y``, if it has one.

image_shape : (int, int), default=None
    Rows and columns of the image whose pixels the features are: the report then has a map of them.

image_order : {"C", "F"}, default="C"
    Whether pixels are numbered along the rows or down the columns.
""",
    "picture": """
ax : matplotlib Axes, optional
    Where to draw; a new figure by default.

title : str, optional
    Title of the picture.

Returns
-------
figure : matplotlib Figure
""",
    "found": """
groups_ : FeatureGroups
    Groups in order of selection.

support_features_ : ndarray of shape (n_support,)
    Indices of the support features in order of selection.

support_coef_ : ndarray of shape (n_outputs, n_support)
    Their weights, sums over the blocks that a feature is in. There is one output, but one per class for more than two.

prediction_features_, prediction_coef_ : ndarray of shape (n_used,), (n_outputs, n_used)
    The features that the prediction reads, and their weights: those of the support features unless
    ``predict_with="groups"``.

prediction_gap_ : float
    Certified relative optimality gap of the model that predicts, given its features (and blocks).

objective_ : float
    Objective (the dual one, the papers' theta) of the problem over the blocks that were found.

standardize_ : bool
    Whether features were judged by their values over their standard deviation.

dual_gap_ : float
    Certified relative optimality gap of that problem: of the weights, given the blocks.

lower_bound_, upper_bound_ : float
    Bounds of the optimum over all admissible sets, found or not (the papers' beta and phi): sets of at most as many
    features as the largest block, no two of them correlated at or over ``threshold``.

block_weights_ : ndarray of shape (n_blocks,)
    The papers' mu: the share of each block of ``history_`` in the model. They add up to 1.

history_ : list of Round
    What happened in each round; ``pandas.DataFrame(model.history_)`` makes a table of it.

n_rounds_ : int
    Number of rounds.

converged_at_ : int or None
    The first round after which these bounds lay within ``tol`` of each other, relative to the objective: the optimum
    over all admissible sets was reached. None if it was not, or not known to be.

scores_ : ndarray of shape (n_features,)
    Scores of all features for the final dual variables: what each could still add.

dual_coef_ : ndarray of shape (n_outputs, n_samples)
    Dual variables, with the signs of their classes; of numbers, C times the weighted errors.

n_correlations_evaluated_, n_correlations_possible_ : int
    Correlations that were computed (one that is computed again counts again, up to the number of pairs), and all pairs
    of features.

n_passes_ : float
    Times the data were read, all told.

correlated_feature_sets_, correlated_feature_dict_ : list of set, dict
    Groups of two and more in feature-engine's form.

votes_ : ndarray of int of shape (n_features,)
    How often each feature was proposed by a fold; only with embedded cross-validation.

n_features_in_ : int
    Number of features seen in ``fit``.

feature_names_in_ : ndarray of shape (n_features_in_,)
    Names of the features, when X has names that are all strings.
""",
    "adjusted": """
covariate_coef_, covariate_names_ : ndarray of shape (n_outputs, n_covariates), (n_covariates,)
    Weights and names of the covariates; only with ``covariates``.
""",
    "chosen": """
n_features_ : int
    The number of support features chosen.

C_, threshold_ : float
    C and threshold chosen.

standardize_ : bool
    Whether features are judged by their values over their standard deviation.

predict_with_ : {"support", "groups"}
    What the prediction rests on.

best_score_ : float
    Mean score of what was chosen.

cv_results_ : dict of ndarray
    A row for each candidate; ``pandas.DataFrame(model.cv_results_)`` makes a table of it. The columns are ``C``,
    ``threshold``, ``standardize``, ``predict_with``, ``n_features``, the mean and the standard deviation of the scores
    (``mean_test_score``, ``std_test_score``) and those of each fold (``split0_test_score``, ...).

nested_scores_ : ndarray of shape (n_folds,)
    For each fold the score of what is chosen and fitted without its samples; only with ``nested``.

constant_scores_ : ndarray of shape (n_folds,)
    For each fold the score of a prediction that does not look at the features (of one class: that all samples are normal);
    only with ``nested``.
""",
    "X": """
X : {array-like, sparse, data frame, AnnData, FeatureSource, path, Dataset, Store} of shape (n_samples, n_features)
    Training data; a path is opened with :func:`coterie.data.open_features`, which also chooses a layer of AnnData.
""",
    "sample_weight": """
sample_weight : array-like of shape (n_samples,), default=None
    Non-negative weights; a weight of 2 is the same as having the sample twice.
""",
    "feature_names": """
feature_names : array-like of str or callable, default=None
    Names of the features, for data that have none; or a function that returns them, such as the
    ``get_feature_names_out`` of the step before in a pipeline.
""",
    "client": """
client : distributed.Client, default=None
    Client of a Dask cluster whose workers hold the features of X: a store (its name, its address, or opened), or a
    Dask array chunked by features. None takes the active client, if there is one.
""",
    "new_samples": """
X : {array-like, sparse matrix, data frame} of shape (n_samples, n_features)
    Samples with the features seen in ``fit``. Where both have names, the columns go by them.
""",
    "new_covariates": """
covariates : array-like or data frame of shape (n_samples, n_covariates), default=None
    Those of these samples; needed where the model was fitted with covariates.
""",
    "n_kept": """
n_features_to_select : int or float, default=10
    Number of features to keep, or their fraction of all features.
""",
    "criterion_kept": """
criterion : {"knn", "linear_svm", "svm", "ridge", "clustering", "reconstruction"}, criterion, estimator or callable, \
        default="knn"
    What evaluates a subset; see :class:`DependencyAwareSelector`.

n_features_to_select : int or float, default=10
    Number of features to keep, or their fraction of all features.
""",
    "penalized": """
n_features_to_select : int, float or "auto", default=10
    Number of features to keep, or their fraction of all features. ``"auto"``, together with ``alpha``, keeps all
    features with a coefficient.

alpha : float or None, default=None
    Strength of the penalty. None: the one that gives the number of features asked for, by bisection along the path.
""",
    "seen": """
n_features_in_ : int
    Number of features seen in ``fit``.

feature_names_in_ : ndarray of shape (n_features_in_,)
    Names of the features, when X has names that are all strings.
""",
    "penalized_found": """
path_ : list of (float, int)
    Each alpha that was tried, and the number of features with a coefficient.

n_iter_ : int
    Steps of the solver along the whole path.
""",
    "mrmr_found": """
support_features_ : ndarray of shape (n_selected,)
    Indices of the selected features, in order of selection.

scores_ : ndarray of shape (n_selected,)
    Value of the scheme for each of them when it was selected (for the first one its relevance).

ranking_ : ndarray of shape (n_features,)
    1 for the first feature selected, and so on; all that were not selected share the next rank.
""",
}


def filled(docstring: str) -> str:
    """A docstring with the shared texts in their places, indented as the lines that name them."""

    def text(match: re.Match[str]) -> str:
        indent, name = match.groups()
        return "\n".join(f"{indent}{line}" if line else "" for line in TEXTS[name].strip("\n").split("\n"))

    return re.sub(r"^( *)%\((\w+)\)s$", text, docstring, flags=re.MULTILINE)


def documented(item: T) -> T:
    """Fill in the shared texts of a class, and of the methods that it defines; or of a function."""
    for part in [item, *(vars(item).values() if isinstance(item, type) else ())]:
        for place in {id(one): one for one in (part, getattr(part, "fn", part))}.values():  # of scikit-learn's available_if
            docstring = getattr(place, "__doc__", None)
            if isinstance(docstring, str) and "%(" in docstring:
                place.__doc__ = filled(docstring)
    return item
