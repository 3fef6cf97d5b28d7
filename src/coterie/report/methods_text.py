"""The text for the methods section of a paper: what was done, with settings, versions and references."""

from __future__ import annotations

import re
from collections.abc import Sequence
from numbers import Integral
from typing import TYPE_CHECKING, Any

import numpy as np

from coterie.estimators.base import is_model_of_counts, settings_of
from coterie.estimators.validated import ValidatedDiscovery
from coterie.report.judgement import interval_text

if TYPE_CHECKING:
    from coterie.report.result import Discovery

_MAX_LISTED = 12
_LOSSES = {
    "squared_hinge": "squared hinge loss",
    "logistic": "logistic loss",
    "squared": "squared loss",
    "huber": "Huber loss",
    "poisson": "Poisson loss (logarithmic link)",
    "gamma": "gamma deviance (logarithmic link)",
    "quantile": "smoothed pinball loss",
}
_MEASURES = {
    "pearson": "Pearson correlation",
    "spearman": "Spearman correlation",
    "su": "symmetrical uncertainty",
}
# Values of settings in words.
_VALUES = {"groups": "whole groups", "support": "support features", True: "standardised", False: "not scaled"}
_PACKAGES = {"python": "Python", "numpy": "NumPy", "scipy": "SciPy", "scikit-learn": "scikit-learn", "numba": "numba"}
# Effects and their regressions, by kind of ratio.
_EFFECTS = {
    "odds": ("log-odds", "a logistic regression with a weak normal prior"),
    "hazard": ("log hazard ratios", "a Cox regression with a weak normal prior (Efron's rule for ties)"),
    "rate": ("logarithms of rate ratios", "a Poisson regression with a weak normal prior"),
    "mean": ("logarithms of ratios of means", "a gamma regression with a weak normal prior"),
}
# Regressions of effects without a ratio, by loss.
_REGRESSIONS = {"huber": "a Huber regression", "quantile": "a quantile regression"}
# References by key, in the order of their numbers.
REFERENCES = {
    "icml": (
        "Zhai Y, Tan M, Tsang IW, Ong Y-S. Discovering support and affiliated features from very high dimensions. Proceedings "
        "of the 29th International Conference on Machine Learning (ICML), 1455–1462, 2012."
    ),
    "tpami": (
        "Zhai Y, Ong Y-S, Tsang IW. Making trillion correlations feasible in feature grouping and selection. IEEE "
        "Transactions on Pattern Analysis and Machine Intelligence 38(12), 2016."
    ),
    "coterie": "The Coterie developers. Coterie, version {version}.",
    "pairs": (
        "Shah RD, Samworth RJ. Variable selection with error control: another look at stability selection. Journal of the "
        "Royal Statistical Society, Series B 75(1), 2013."
    ),
    "splits": (
        "Meinshausen N, Meier L, Bühlmann P. p-Values for high-dimensional regression. Journal of the American Statistical "
        "Association 104(488), 1671–1681, 2009."
    ),
    "coverage": (
        "Benjamini Y, Yekutieli D. False discovery rate-adjusted multiple confidence intervals for selected parameters. "
        "Journal of the American Statistical Association 100, 2005."
    ),
}


def methods_text(discovery: Discovery) -> str:
    """Return the methods paragraph of a discovery; see :meth:`coterie.Discovery.methods_text`."""
    parts = (_data, _grouping, _choice, _score, _evidence, _effects, _software)
    text = " ".join(sentence for part in parts for sentence in part(discovery))
    keys = list(dict.fromkeys(re.findall(r"\[@(\w+)\]", text)))
    for number, key in enumerate(keys, start=1):
        text = text.replace(f"[@{key}]", f"[{number}]")
    version = discovery.versions.get("coterie", "unknown")
    references = [f"[{number}] {REFERENCES[key]}".format(version=version) for number, key in enumerate(keys, start=1)]
    return "\n".join([text, "", "References", *references])


def _data(found: Discovery) -> list[str]:
    """Return sentences about data and target."""
    data, model = found.data, found.model
    size = [f"{data[name]:,} {name}" for name in ("samples", "features") if name in data]
    applied = f" was applied to {' with '.join(size)}." if size else " was applied."
    sentences = [
        f"Group discovery [@icml][@tpami], as implemented in Coterie [@coterie],{applied}",
        f"It finds groups of correlated features that {_purpose(found)}.",
    ]
    if found.blocks:
        names = _listed([f"{block.block} ({block.n_features:,} features)" for block in found.blocks])
        sentences.append(f"The features are those of {len(found.blocks)} matrices of the same samples: {names}.")
    if hasattr(model, "covariate_names_"):
        sentences.append(f"All models were adjusted for {_listed(model.covariate_names_.tolist())}.")
    if hasattr(model, "offset_coef_"):
        counts = is_model_of_counts(model)
        kind = "the logarithm of an exposure or another offset" if counts else "an offset (a given number per sample)"
        sentences.append(f"The models include {kind}.")
    if hasattr(model, "fill_values_"):
        folds = ", in each fold from its training samples" if isinstance(model, ValidatedDiscovery) else ""
        sentences.append(f"Missing values were imputed from the values of the same feature{folds}.")
    weight = getattr(model, "class_weight", None)
    if weight is not None:
        if isinstance(weight, str):
            shown = "inversely to their frequencies"
        else:
            shown = f"by {_listed([f'{label}: {value:.3g}' for label, value in weight.items()])}"
        sentences.append(f"Classes were weighted {shown}.")
    return sentences


def _purpose(found: Discovery) -> str:
    """Return what the groups do, with the target."""
    target = found.target
    label = target.get("label")
    name = f"{label!r}" if label else "the target"
    if found.task == "one-class":
        return "are typical of the samples"
    if found.task == "survival":
        counts = [f"{target['events']:,} events"] if "events" in target else []
        counts += [f"{target['delayed']:,} samples with delayed entry"] if target.get("delayed") else []
        return f"predict the survival time ({', '.join(counts)})" if counts else "predict the survival time"
    if target.get("targets"):
        return f"predict {len(target['targets'])} targets together ({_listed(list(target['targets']))})"
    if target.get("classes"):
        sizes = _listed([f"{own}: {count:,}" for own, count in target["classes"].items()])
        what = f"the class of the samples ({sizes})" if not label else f"the classes of {name} ({sizes})"
        return f"predict {what}"
    return f"predict {'the counts of ' if _is_counts(found) else ''}{name}"


def _is_counts(found: Discovery) -> bool:
    return is_model_of_counts(found.model)


def _grouping(found: Discovery) -> list[str]:
    """Return sentences about groups, scale and loss."""
    model, settings = found.model, settings_of(found.model)
    sentences = []
    if settings.correlation is None:
        sentences.append("Features were not grouped: every group is a single feature.")
    else:
        measure = settings.correlation
        name = _MEASURES.get(measure, measure) if isinstance(measure, str) else "correlation of a measure defined by the user"
        threshold = getattr(model, "threshold_", model.get_params(deep=False)["threshold"])
        also = " and that are compatible by a rule of the user" if settings.compatibility is not None else ""
        sentences.append(
            f"A group consists of a support feature and its affiliated features, whose absolute {name} with it is at least "
            f"{threshold:.3g}{also}."
        )
    scaled = "standardised to unit variance" if model.standardize_ else "not scaled"
    loss = getattr(model, "loss", None)
    if found.task == "survival":
        sentences.append(f"Features were {scaled}. The loss is the negative partial likelihood of Cox's model.")
    elif isinstance(loss, str) and loss in _LOSSES:
        predicted = f" of the quantile {model.quantile:g}" if loss == "quantile" else ""
        sentences.append(f"Features were {scaled}. The loss is the {_LOSSES[loss]}{predicted}.")
    elif found.task == "one-class":
        sentences.append(f"Features were {scaled}. The loss is the squared hinge loss of one class.")
    else:
        sentences.append(f"Features were {scaled}. The loss was defined by the user.")
    if settings.fixed_features is not None and np.size(np.asarray(settings.fixed_features, dtype=object)):
        sentences.append("Some support features were fixed in advance.")
    return sentences


def _choice(found: Discovery) -> list[str]:
    """Return sentences about the choice of the settings and about the final model."""
    model = found.model
    n_groups, n_members = len(found.groups), sum(len(group) for group in found.groups)
    used = model.get_params(deep=False).get("predict_with")
    used = getattr(model, "predict_with_", used)
    predictor = "all features of the groups" if used == "groups" else "the support features"
    size = f"{n_groups:,} group{'s' * (n_groups != 1)} with {n_members:,} feature{'s' * (n_members != 1)}"
    final = f"The final model, a linear model of {predictor}, has {size} and C = {model.C_:.3g}."
    early = ["The search was ended early by the user."] if found.interrupted else []
    if not isinstance(model, ValidatedDiscovery):
        number = model.get_params(deep=False)["n_features_to_select"]
        how = (
            f"with {number} support features requested" if number != "auto" else "with an automatic number of support features"
        )
        if number == "auto" and getattr(model, "converged_at_", None) is not None:
            how = "until convergence"
        return [f"The search ran {how}. Settings were not chosen by validation.", final, *early]
    results = model.cv_results_
    deviance = model.rule != "best" and "mean_test_deviance" in results
    criterion = "held-out deviance" if deviance else f"held-out {_score_name(model)}"
    best = f"{'smallest' if deviance else 'best'} mean {criterion}"
    rule = f"the fewest features within one standard error of the {best}" if model.rule == "one_se" else f"the {best}"
    sizes = np.unique(results["n_features"])
    values = _listed([f"{value:.3g}" for value in np.unique(results["C"])])
    chosen = "C" if len(np.unique(results["C"])) > 1 else ""
    what = [f"the number of support features (from {sizes.min():,} to {sizes.max():,})"] if len(sizes) > 1 else []
    what += [f"C (from {values})"] if chosen else []
    for name, words in (("threshold", "the threshold"), ("standardize", "the scaling"), ("predict_with", "the features used")):
        own = np.unique(results[name])
        shown = [_VALUES.get(value, str(value)) for value in own.tolist()]
        what += [f"{words} (from {_listed(shown)})"] if len(own) > 1 else []
    folds = _folds(found)
    if not what:
        return [f"All settings were given, and assessed by {folds}.", final, *early]
    return [f"By {folds}, {_and(what)} were chosen for {rule}.", final, *early]


def _folds(found: Discovery) -> str:
    """Return the kind of cross-validation."""
    model = found.model
    cv = getattr(model, "cv", None)
    n_folds = sum(bool(re.fullmatch(r"split\d+_test_score", name)) for name in model.cv_results_)
    if not (cv is None or isinstance(cv, Integral)):
        return f"cross-validation with {n_folds} folds given by the user"
    kind = "stratified " if found.task in ("classification", "survival", "one-class") else ""
    groups = (
        f", which keep the {model.n_sample_groups_:,} sample groups together" if hasattr(model, "n_sample_groups_") else ""
    )
    return f"cross-validation with {n_folds} {kind}folds{groups}"


def _score(found: Discovery) -> list[str]:
    """Return a sentence about the held-out score."""
    held_out = found.held_out
    if held_out is None:
        return ["No score on held-out samples was computed."]
    if np.isnan(held_out.value):
        return ["The score of the whole procedure on held-out samples (nested cross-validation) is undefined."]
    baseline = "a constant prediction" if held_out.baseline == "constant" else f"the prediction from {held_out.baseline}"
    interval = held_out.interval
    known = None if interval is None or not np.isfinite(interval).all() else interval
    sentences = [
        f"Nested cross-validation, in which each outer fold repeats the choice of settings, gave a held-out {held_out.score} "
        f"of {held_out.value:.3g}{interval_text(known, held_out.level)}."
    ]
    if not np.isnan(held_out.constant):
        sentences.append(f"That of {baseline} is {held_out.constant:.3g}.")
    return sentences


def _score_name(model: Any) -> str:
    from coterie.report.held_out import score_name

    return score_name(model)


def _evidence(found: Discovery) -> list[str]:
    """Return sentences about half-samples, p-values and q-values."""
    confidence = found.confidence
    if confidence is None:
        return ["The groups were not tested."]
    pairs = confidence.n_pairs
    keeps = " of whole sample groups" if hasattr(found.model, "n_sample_groups_") else ""
    sentences = [
        f"The search was repeated on {pairs} pair{'s' * (pairs != 1)} of complementary half-samples{keeps} [@pairs]. The "
        "confidence of a group is the share of half-samples in which it is found again."
    ]
    if confidence.n_permutations:
        number = confidence.n_permutations
        sentences.append(
            f"Fits to {number} permutation{'s' * (number != 1)} of the labels estimate the number of groups found by chance."
        )
    tested = ~np.isnan(confidence.q_value)
    if not tested.any():
        sentences.append("The groups have no p-values.")
        return sentences
    robust = ", with cluster-robust standard errors" if hasattr(found.model, "n_sample_groups_") else ""
    selected = sum(bool(group.selected) for group in found.groups if group.used)
    n_tested = sum(bool(known) for known, group in zip(tested, found.groups, strict=True) if group.used)
    which = f"{selected:,} of {n_tested:,} groups {'was' if selected == 1 else 'were'}"
    which = which if n_tested != 1 else f"the group was{'' if selected else ' not'}"
    sentences.append(
        f"Family-wise p-values come from joint regressions in the halves that took no part in the selection, aggregated over "
        f"all halves [@splits]{robust}. q-values estimate the false discovery rate by conditional score tests. At a false "
        f"discovery rate of {100 * found.fdr:.3g}%, {which} significant."
    )
    return sentences


def _effects(found: Discovery) -> list[str]:
    """Return a sentence about the effects."""
    group = next((group for group in found.groups if group.effect is not None), None)
    if group is None or found.task == "one-class":
        return []
    kind, regression = _EFFECTS.get(group.ratio_kind or "", ("units of the target", "a linear regression"))
    loss = getattr(found.model, "loss", None)
    if group.ratio_kind is None and isinstance(loss, str):
        regression = _REGRESSIONS.get(loss, regression)
    evidence = any(group.selected is not None for group in found.groups)
    which = "the support features of significant groups" if evidence else "all support features"
    beside = " Each other group was estimated beside them." if evidence else ""
    return [
        f"Effects are {kind} per standard deviation of the support feature, from {regression} on {which}.{beside} The "
        "level of their intervals is adjusted for the selection of the groups (false coverage rate 5% [@coverage]). The same "
        "samples selected the features, so that effects are too large on average."
    ]


def _software(found: Discovery) -> list[str]:
    """Return sentences about seed and versions."""
    seed = getattr(found.model, "random_state", None)
    if isinstance(seed, Integral):
        words = f"The random seed is {seed}."
    else:
        words = "The random numbers were not fixed by a seed." if seed is None else "The random state was given by the user."
    packages = [f"{name} {found.versions[key]}" for key, name in _PACKAGES.items() if key in found.versions]
    coterie = f"Coterie {found.versions['coterie']}" if "coterie" in found.versions else "Coterie"
    return [words, f"Software: {', '.join([coterie, *packages])}."]


def _listed(names: Sequence[Any]) -> str:
    """Return names as a list in a sentence; many are cut."""
    shown = [str(name) for name in names[:_MAX_LISTED]]
    return ", ".join(shown) + (f" and {len(names) - _MAX_LISTED:,} more" if len(names) > _MAX_LISTED else "")


def _and(parts: Sequence[str]) -> str:
    return parts[0] if len(parts) == 1 else f"{', '.join(parts[:-1])} and {parts[-1]}"
