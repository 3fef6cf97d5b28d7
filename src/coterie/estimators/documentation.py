"""Descriptions of parameters and attributes that several estimators share.

A docstring contains ``%(name)s`` on a separate line where an entry, or a list of entries, of :data:`TEXTS` is inserted by
:func:`documented`. The command line reads docstrings from the source text and fills them in the same way, so this module has
no dependencies.
"""

from __future__ import annotations

import re
from typing import TypeVar

T = TypeVar("T")

TEXTS: dict[str, str] = {
    "n_features_to_select": """
n_features_to_select : int, float or "auto", default=100
    Number of support features, or their fraction of all features. If fewer can be found, a warning gives their number.
    ``"auto"`` continues until the optimum over all admissible sets is reached to within ``tol``. Without
    ``reuse_features``, which may never reach that optimum, it continues until new features change the objective by less
    than ``tol``.
""",
    "n_features_per_round": """
n_features_per_round : int or "auto", default="auto"
    Number of support features selected per round, which is also the step between sizes on a path. Features of one round
    are selected independently of each other, so fewer features per round take longer and give a better selection.
    ``"auto"`` selects one feature per round up to ten features, then a tenth of those found so far (without fixed
    features), rounded up. The first features are therefore the same for every number of features.
""",
    "reuse_features": """
reuse_features : bool, default=False
    Whether a block (the features of a round) may contain features of earlier blocks. With False, as in TPAMI 2016, every
    feature is selected at most once, no two support features have a correlation of ``threshold`` or more, and the weights
    are optimal for the blocks that were found. With True, as in ICML 2012, each round adds the most violated of all sets of
    uncorrelated features, the weight of a feature is the sum over its blocks, and the search can reach the optimum over all
    these sets (``converged_at_``). In that case support features of different blocks may be correlated.
""",
    "grouping": """
correlation : {"pearson", "spearman", "su", None} or callable, default="pearson"
    Measure of correlation: Pearson's coefficient, Spearman's coefficient (of the ranks, with ties averaged), or symmetrical
    uncertainty (mutual information divided by the mean entropy, on bins), which also detects nonlinear relations. None
    removes the constraint: the feature generating machine (FGM), which selects the features with the best scores and forms
    no groups. A function of two blocks of columns, or a class, defines a custom measure; see "Adding a correlation" in the
    documentation.

threshold : float, default=0.7
    Smallest absolute correlation, in (0, 1], of two features of the same group. The paper uses 0.7 for Pearson's
    coefficient and 0.6 for symmetrical uncertainty.

n_bins : int, default=10
    Number of bins of equal width over the range of a feature, for symmetrical uncertainty.

compatibility : Compatibility or None, default=None
    Pairs of features that may be in one group: two features belong together if they are correlated and compatible.
    :class:`coterie.ChromosomeDistance` and :class:`coterie.PixelDistance` limit the distance of a feature from its support
    feature; see "Compatibility" in the documentation for rules of your own.

affiliates : {"complete", "ranked"}, default="complete"
    Affiliated features to collect: ``"complete"`` for all features that are correlated with a support feature, ``"ranked"``
    for those encountered during the search only, as in TPAMI 2016.

representative : {"score", "medoid"} or callable, default="score"
    Rule that selects the support feature of a new group: the member with the best score, the member most correlated with
    the others (medoid), or a callable. A callable gets a named tuple with the fields ``features``, ``names``, ``scores``
    and ``correlation`` and returns one of ``features``. Rules other than ``"score"`` take one or two passes over the data
    per support feature.

fixed_features : array-like of int, str or bool, default=None
    Features (indices, names or a mask) that are always support features, regardless of their scores and correlations. The
    other features are selected in addition to them. Fixed features count towards the number of features.

keep : {"support", "groups"}, default="support"
    Features that :meth:`transform` returns: the support features, or support and affiliated features.
""",
    "predict_with": """
predict_with : {"support", "groups"}, default="support"
    Features used for prediction. ``"support"`` uses the support features with the weights of the search. ``"groups"`` uses
    support and affiliated features in a linear model with the usual form of the loss, the same ``C`` and the same sample
    weights. It keeps all columns of the groups in memory, dense ones as float64. The groups do not depend on this
    parameter.
""",
    "predict_with_choice": """
predict_with : {"auto", "support", "groups"} or list of the last two, default="auto"
    Features used for prediction, also within the folds: the support features, or support and affiliated features. From a
    list, validation chooses. ``"groups"`` is evaluated at about a dozen sizes, each of which requires a separate linear
    model. ``"auto"`` stands for ``"support"`` with one class, and with more than 2,000 samples or 10⁸ values. Otherwise it
    stands for ``"groups"`` (classes) or both (numbers).
""",
    "fit_intercept": """
fit_intercept : bool, default=True
    Whether to fit an intercept. The models of the papers have none.
""",
    "standardize": """
standardize : bool or "auto", default="auto"
    Whether to divide features by their standard deviation. X is not copied, and the weights refer to the original
    features. ``"auto"`` standardises unless at least nine of ten values are zero (word counts, clicks). Without scaling,
    features with small values would not be selected, but scaling sparse data would inflate rare features. The papers do
    not standardise (False).
""",
    "standardize_choice": """
standardize : bool, "auto" or list of bool, default="auto"
    Whether to divide features by their standard deviation. From ``[False, True]``, validation chooses. ``"auto"`` is True,
    but validation chooses if at least nine of ten values are zero.
""",
    "class_weight": """
class_weight : dict, "balanced" or None, default=None
    Weights of the classes in the loss.
""",
    "equal_classes": """
equal_classes : bool, default=False
    Whether each of more than two classes has an equal share in the scores of features. Otherwise, frequent classes decide
    about more features than rare ones. The loss does not change.
""",
    "embedded": """
cv : int, cross-validation generator or None, default=None
    Embedded cross-validation: in each round every fold proposes support features from its part of the samples, and the
    features with the most votes are selected. An integer is a number of shuffled folds. A round may then select fewer
    features than ``n_features_per_round``.

cv_part : {"training", "fold"}, default="training"
    Samples from which each fold of ``cv`` proposes features: all samples outside the fold, or the samples of the fold only
    (the paper's partitions, which find less: a fifth of the samples with five folds).
""",
    "running": """
max_rounds : int, default=None
    Largest number of rounds; None for no limit.

tol : float, default=1e-4
    Relative tolerance of the solver for the weights, given the blocks. A warning is raised if it is not reached. It is also
    the tolerance of the bounds for ``converged_at_`` and of the objective for ``"auto"``.

n_jobs : int, default=None
    Number of threads. None uses all cores, or one thread in a worker of a parallel job. The result does not depend on it.

random_state : int, RandomState instance or None, default=None
    Seed of the folds. Nothing else is random.

verbose : int, default=0
    Show progress: a bar on a terminal, plain lines otherwise.
""",
    "sizes": """
max_features_to_select : int, default=100
    Largest number of support features to try, at most the number of features.

min_features_to_select : int, default=1
    Smallest number of support features to choose. Equal to ``max_features_to_select``, it fixes the number.
""",
    "Cs": """
Cs : int or list of float, default=4
    Values of C, the weight of the loss, to choose from. An integer is a number of values between 1e-3 and 1 with equal
    ratios, divided by a typical variance of the features (1 for standardised features) and, for other losses than
    ``"squared"``, by the mean curvature of the loss (for counts, their mean).
""",
    "choice": """
thresholds : list of float or None, default=None
    Thresholds to choose from; None for ``threshold`` only.

rule : {"auto", "deviance", "best", "one_se"}, default="auto"
    Rule of choice. ``"deviance"``: the smallest mean held-out deviance, with the outputs of each fold calibrated by a slope
    (for other scores than the accuracy, such as those of rare classes, also by offsets); for classes only. ``"best"``: the
    best mean score. ``"auto"``: ``"deviance"`` for classes if ``scoring`` is None, otherwise ``"best"``. ``"one_se"``: the
    fewest features within one standard error of the best value of the criterion of ``"auto"``.

nested : bool, default=False
    Whether to measure the nested score: the held-out score of the whole procedure, including the choice of settings
    (``nested_scores_``). It takes about (n_folds + 1) / 2 times as long.
""",
    "embedded_choice": """
embedded_cv : int, cross-validation generator or None, default=None
    Embedded cross-validation, which is ``cv`` in the estimator without validation.

cv_part : {"training", "fold"}, default="training"
    Samples from which each fold of ``embedded_cv`` proposes features: all samples outside the fold, or the samples of the
    fold only.
""",
    "running_paths": """
max_rounds : int, default=None
    Largest number of rounds; None for no limit.

tol : float, default=1e-4
    Relative tolerance of the solver for the weights, given the blocks. It is also the tolerance of the bounds for
    ``converged_at_``.

n_jobs : int, default=None
    Number of threads. None uses all cores, or one thread in a worker of a parallel job. Within
    ``joblib.parallel_config("loky", n_jobs=...)``, that number of processes shares the paths of the folds if there are
    enough of them. The result does not depend on it.

random_state : int, RandomState instance or None, default=None
    Seed of the folds.

verbose : int, default=0
    Show progress: a bar on a terminal, plain lines otherwise.
""",
    "fitted_data": """
X : {array-like, sparse matrix, data frame, FeatureSource, path, Dataset, Store} of shape (n_samples, n_features)
    Data of the fit.

y : array-like of shape (n_samples,) or str, default=None
    Labels or targets of the fit. For AnnData, also the name of a column of ``obs``. None uses those of a path, data set or
    store.

sample_weight : array-like of shape (n_samples,), default=None
    Weights of the samples in the fit.

covariates : array-like or data frame of shape (n_samples, n_covariates), default=None
    Covariates of the fit. None uses those of a data set or store.

offset : array-like of shape (n_samples,), default=None
    Offset of the fit.

groups : array-like of shape (n_samples,) or str, default=None
    Sample groups of the fit. Half-samples consist of whole groups. Labels that are constant within groups are permuted
    between groups, others within groups. Standard errors are cluster-robust. None uses those of a data set or store.
""",
    "about_data": """
name : str, default=None
    Name of the data in the report; by default the name of their file.

label : str, default=None
    Name of the target in the report; by default the name of ``y``, if it has one.

image_shape : (int, int), default=None
    Rows and columns of the images whose pixels are the features. The report then has a map of them.

image_order : {"C", "F"}, default="C"
    Order of the pixels: row by row ("C") or column by column ("F").
""",
    "picture": """
ax : matplotlib Axes, optional
    Axes to draw on; a new figure by default.

title : str, optional
    Title of the figure.

Returns
-------
figure : matplotlib Figure
""",
    "scale_targets": """
scale_targets : bool, default=True
    Whether the units of several targets have no effect on the selected features: targets are divided by the standard
    deviations of their residuals at the best constant prediction, and the model is multiplied by them afterwards. For counts,
    the losses of the targets are divided by these standard deviations instead. No effect on one target.
""",
    "found": """
groups_ : FeatureGroups
    Groups in order of selection.

support_features_ : ndarray of shape (n_support,)
    Indices of the support features in order of selection.

support_coef_ : ndarray of shape (n_outputs, n_support)
    Weights of the support features, summed over the blocks of a feature. There is one output, or one per class for more than
    two classes.

prediction_features_, prediction_coef_ : ndarray of shape (n_used,), (n_outputs, n_used)
    Features used for prediction and their weights: the support features unless ``predict_with="groups"``.

prediction_gap_ : float
    Certified relative duality gap of the model used for prediction, given its features (and blocks).

member_moments_ : MemberMoments
    Mean, standard deviation and correlation of the members of the groups, from which one member predicts another; see
    :func:`coterie.substituted`.

objective_ : float
    Dual objective (theta in the papers) of the problem over the blocks that were found.

standardize_ : bool
    Whether features were divided by their standard deviation.

C_ : float
    Weight of the loss.

dual_gap_ : float
    Certified relative duality gap of that problem: of the weights, given the blocks.

lower_bound_, upper_bound_ : float
    Bounds on the optimum over all admissible sets, found or not (beta and phi in the papers). An admissible set has at most
    as many features as the largest block, and no two of them have a correlation of ``threshold`` or more.

block_weights_ : ndarray of shape (n_blocks,)
    Weight of each block of ``history_`` in the model (mu in the papers). The weights sum to 1.

history_ : list of Round
    Record of each round. ``pandas.DataFrame(model.history_)`` converts it to a table.

n_rounds_ : int
    Number of rounds.

converged_at_ : int or None
    First round after which these bounds were within ``tol`` of each other, relative to the objective, so that the optimum
    over all admissible sets was reached. None if it was not reached, or not proved to be.

scores_ : ndarray of shape (n_features,)
    Scores of all features for the final dual variables, which measure how much each feature could still add.

dual_coef_ : ndarray of shape (n_outputs, n_samples)
    Dual variables, with the signs of their classes. For regression, C times the weighted errors.

n_correlations_evaluated_, n_correlations_possible_ : int
    Number of correlations that were computed, and number of pairs of features. A correlation that is computed again counts
    again, up to the number of pairs.

n_passes_ : float
    Total number of passes over the data.

correlated_feature_sets_, correlated_feature_dict_ : list of set, dict
    Groups of two or more features in the form of feature-engine.

votes_ : ndarray of int of shape (n_features,)
    Number of times each feature was proposed by a fold; only with embedded cross-validation.

n_features_in_ : int
    Number of features seen in ``fit``.

feature_names_in_ : ndarray of shape (n_features_in_,)
    Names of the features, if X has names that are all strings.
""",
    "adjusted": """
covariate_coef_, covariate_names_ : ndarray of shape (n_outputs, n_covariates), (n_covariates,)
    Weights and names of the covariates; only with ``covariates``.

offset_coef_ : ndarray of shape (n_outputs,)
    Weights of the offset, which are 1 for numbers; only with ``offset``.
""",
    "chosen": """
n_features_ : int
    Chosen number of support features.

smallest_n_features_ : int
    Fewest features with which the criterion of the choice is within one standard error of its best value; ``rule="one_se"``
    chooses them.

C_, threshold_ : float
    Chosen C and threshold.

standardize_ : bool
    Whether features are divided by their standard deviation.

predict_with_ : {"support", "groups"}
    Features used for prediction.

best_score_ : float
    Mean score of the chosen candidate.

cv_results_ : dict of ndarray
    One row per candidate. ``pandas.DataFrame(model.cv_results_)`` converts it to a table. The columns are ``C``,
    ``threshold``, ``standardize``, ``predict_with``, ``n_features``, the mean and the standard deviation of the scores
    (``mean_test_score``, ``std_test_score``) and the scores of each fold (``split0_test_score``, ...). If the deviance
    decides, its columns (``mean_test_deviance``, ...) follow.

nested_scores_ : ndarray of shape (n_folds,)
    Score on each fold of the candidate that is chosen and fitted without the samples of that fold; only with ``nested``.

constant_scores_ : ndarray of shape (n_folds,)
    Score on each fold of a prediction that does not use the features (for one class, that all samples are normal); only with
    ``nested``.

scoring_ : str
    Name of the score that settings are chosen by.

held_out_predictions_ : ndarray of shape (n_samples,) or (n_samples, n_outputs)
    Predicted numbers or decision values of each sample, by the model that is chosen and fitted without its fold. NaN for a
    sample that no fold holds out, the mean for a sample of several folds; only with ``nested``.

held_out_scores_ : dict of str to float
    Scores of these predictions, all samples together: for classes ``accuracy`` and ``balanced_accuracy``, with two classes
    also ``roc_auc`` and ``brier_score`` (of probabilities calibrated without the fold), for numbers ``r2`` and
    ``mean_absolute_error``. A ``scoring`` of another kind is a mean over the folds; only with ``nested``.

held_out_curves_ : dict of str to list of dict
    Curves of these predictions: ``roc``, one per class (two classes: of the second one), and ``calibration``, observed
    against predicted shares of classes or means of targets, in bins of similar predictions; only with ``nested``, not for
    survival times.

held_out_intervals_ : dict of str to tuple of float
    Intervals (95 %) of these scores on new samples, or on new sample groups if there are ``groups``; only with ``nested``.

baseline_scores_ : dict of str to float
    The same scores of a prediction that does not use the features; only with ``nested``.
""",
    "X": """
X : {array-like, sparse, data frame, AnnData, FeatureSource, path, Dataset, Store} of shape (n_samples, n_features)
    Training data. A path is opened with :func:`coterie.data.open_features`, which can also select a layer of AnnData.
""",
    "sample_weight": """
sample_weight : array-like of shape (n_samples,), default=None
    Non-negative weights. A weight of 2 is equivalent to having the sample twice.
""",
    "sample_groups": """
groups : array-like of shape (n_samples,) or str, default=None
    Sample groups: labels of samples that belong together, such as the donor of a cell or the patient of a visit. Folds
    consist of whole groups, so that a held-out score is one for new groups. A string is the name of a column, for an
    AnnData object (``obs``) or a path. None uses those of a data set or store.
""",
    "feature_names": """
feature_names : array-like of str, callable or transformer, default=None
    Names of the features, for data without names; or a function that returns them; or the fitted transformer that made X,
    such as a vectorizer, with ``get_feature_names_out``.
""",
    "client": """
client : distributed.Client, default=None
    Client of a Dask cluster whose workers hold the features of X: a store (path, address, or opened store), or a Dask array
    chunked by features. None uses the active client, if there is one.
""",
    "new_samples": """
X : {array-like, sparse matrix, data frame} of shape (n_samples, n_features)
    Samples with the features seen in ``fit``. If both have feature names, columns are matched by name.
""",
    "new_covariates": """
covariates : array-like or data frame of shape (n_samples, n_covariates), default=None
    Covariates of these samples; required if the model was fitted with covariates.
""",
    "offset": """
offset : array-like of shape (n_samples,), default=None
    Number per sample that the model takes into account, such as a polygenic prediction. For numbers it is added to the
    outputs with weight 1; for counts, it is the logarithm of an exposure. For classes, whose decision values have no scale,
    it is a covariate with a fitted weight.
""",
    "new_offset": """
offset : array-like of shape (n_samples,), default=None
    Offset of these samples; required if the model was fitted with an offset.
""",
    "n_kept": """
n_features_to_select : int or float, default=10
    Number of features to keep, or their fraction of all features.
""",
    "criterion_kept": """
criterion : {"knn", "linear_svm", "svm", "ridge", "clustering", "reconstruction"}, criterion, estimator or callable, \
        default="knn"
    Criterion that evaluates a feature subset; see :class:`DependencyAwareSelector`.

n_features_to_select : int or float, default=10
    Number of features to keep, or their fraction of all features.
""",
    "penalized": """
n_features_to_select : int, float or "auto", default=10
    Number of features to keep, or their fraction of all features. ``"auto"``, together with ``alpha``, keeps all features
    with a nonzero coefficient.

alpha : float or None, default=None
    Strength of the penalty. None finds the strength that gives the requested number of features, by bisection along the
    path.
""",
    "seen": """
n_features_in_ : int
    Number of features seen in ``fit``.

feature_names_in_ : ndarray of shape (n_features_in_,)
    Names of the features, if X has names that are all strings.
""",
    "penalized_found": """
path_ : list of (float, int)
    Each alpha that was tried, and the number of features with a nonzero coefficient.

n_iter_ : int
    Number of iterations of the solver along the whole path.
""",
    "mrmr_found": """
support_features_ : ndarray of shape (n_selected,)
    Indices of the selected features, in order of selection.

scores_ : ndarray of shape (n_selected,)
    Value of the scheme for each selected feature when it was selected (for the first one, its relevance).

ranking_ : ndarray of shape (n_features,)
    Rank of each feature: 1 for the first feature selected, and so on. Features that were not selected share the next rank.
""",
}


def filled(docstring: str) -> str:
    """Return a docstring with the shared texts inserted, indented like the lines that name them."""

    def text(match: re.Match[str]) -> str:
        indent, name = match.groups()
        return "\n".join(f"{indent}{line}" if line else "" for line in TEXTS[name].strip("\n").split("\n"))

    return re.sub(r"^( *)%\((\w+)\)s$", text, docstring, flags=re.MULTILINE)


def documented(item: T) -> T:
    """Insert the shared texts into the docstrings of a function, or of a class and the methods that it defines."""
    for part in [item, *(vars(item).values() if isinstance(item, type) else ())]:
        for owner in {id(one): one for one in (part, getattr(part, "fn", part))}.values():  # "fn": sklearn's available_if
            docstring = getattr(owner, "__doc__", None)
            if isinstance(docstring, str) and "%(" in docstring:
                owner.__doc__ = filled(docstring)
    return item
