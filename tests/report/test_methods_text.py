"""The methods paragraph agrees with the settings, for all tasks and options."""

import re
import warnings

import numpy as np
import pytest

import coterie
from coterie import imputed

WORDS = re.compile(r"\b(None|nan|NaN|inf|True|False)\b|\[@|\{|\}|  |\.\.|array\(|<")


def cohort(kind, n=60):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((n, 10))
    X[:, 4] = X[:, 1] + 0.3 * X[:, 4]
    score = 2.0 * X[:, 1] - X[:, 6]
    if kind == "classes":
        return X, np.where(score + rng.logistic(size=n) > 0, "case", "control")
    if kind == "counts":
        return X, rng.poisson(np.exp(0.4 * score)).astype(float)
    if kind == "positive":
        return X, np.exp(0.3 * score) * rng.gamma(3.0, 1.0, n)
    if kind == "survival":
        return X, np.column_stack([rng.exponential(np.exp(-score)), rng.random(n) < 0.8])
    if kind == "several":
        return X, np.column_stack([score, X[:, 7]])
    return X, score + rng.standard_normal(n)


FAST = {"fast": True, "n_features_to_select": 3}
SLOW = {"max_features_to_select": 3, "n_pairs": 5}
GROUPS = np.arange(60) // 3
CASES = [
    ("classes", FAST, ["60 samples with 10 features", "case: ", "squared hinge", "at least 0.7", "The random seed is 0"]),
    ("classes", {**FAST, "loss": "logistic", "class_weight": "balanced"}, ["logistic loss", "inversely to their frequencies"]),
    ("classes", {**FAST, "class_weight": {"case": 2.0, "control": 1.0}}, ["Classes were weighted by case: 2, control: 1"]),
    ("classes", {**FAST, "standardize": False, "threshold": 0.85, "C": 0.05}, ["not scaled", "at least 0.85", "C = 0.05"]),
    ("classes", {**FAST, "label": "status"}, ["the classes of 'status'"]),
    ("numbers", {**FAST, "loss": "huber"}, ["Huber loss", "a Huber regression", "units of the target"]),
    ("numbers", {**FAST, "loss": "quantile", "quantile": 0.8}, ["pinball loss", "the quantile 0.8", "a quantile regression"]),
    ("positive", {**FAST, "loss": "gamma"}, ["gamma deviance", "ratios of means", "a gamma regression"]),
    ("numbers", {**FAST, "correlation": None}, ["every group is a single feature"]),
    ("numbers", {**FAST, "correlation": "spearman"}, ["absolute Spearman correlation"]),
    ("numbers", {**FAST, "fixed_features": [2]}, ["fixed in advance"]),
    ("numbers", {**FAST, "covariates": np.random.default_rng(5).standard_normal((60, 1))}, ["adjusted for covariate_0"]),
    ("numbers", {**FAST, "offset": np.linspace(0, 1, 60)}, ["include an offset"]),
    ("numbers", {**FAST, "predict_with": "groups"}, ["all features of the groups"]),
    ("numbers", {**FAST, "random_state": None}, ["not fixed by a seed"]),
    ("numbers", {**FAST, "random_state": np.random.RandomState(3)}, ["was given by the user"]),
    ("counts", {**FAST, "exposure": np.linspace(1, 2, 60)}, ["counts", "Poisson loss", "exposure", "rate ratios"]),
    ("survival", FAST, ["survival time", "events)", "partial likelihood", "hazard ratios"]),
    ("several", FAST, ["2 targets together"]),
    ("one-class", {"n_pairs": 0}, ["typical of the samples", "squared hinge loss of one class"]),
    ("classes", {**SLOW, "groups": GROUPS}, ["folds, which keep the 20 sample groups", "cluster-robust", "5 pairs"]),
    ("numbers", {**SLOW, "n_permutations": 2, "fdr": 0.2}, ["2 permutations of the labels", "discovery rate of 20%", "R²"]),
    ("numbers", {**SLOW, "n_pairs": 0, "rule": "auto", "cv": 4}, ["4 folds", "for the best mean held-out R²", "not tested"]),
    ("survival", {**SLOW, "C": 0.1, "thresholds": [0.5, 0.8]}, ["the threshold (from 0.5, 0.8)"]),
]  # fmt: skip


@pytest.mark.parametrize(("kind", "options", "expected"), CASES, ids=[f"{kind}-{k}" for k, (kind, *_) in enumerate(CASES)])
def test_the_text_agrees_with_the_settings(kind, options, expected, tmp_path):
    X, y = cohort(kind)
    task = kind if kind in ("counts", "survival", "one-class") else "auto"
    options = {"task": task, **options}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = coterie.discover(X, None if kind == "one-class" else y, **options)
    text = found.methods_text()
    for words in expected:
        assert words in text
    paragraph, references = text.split("\n\nReferences\n")
    assert not WORDS.search(paragraph), WORDS.search(paragraph)
    assert "\n" not in paragraph
    numbers = list(dict.fromkeys(re.findall(r"\[(\d+)\]", paragraph)))
    assert [line.split()[0] for line in references.splitlines()] == [f"[{number}]" for number in numbers]
    assert numbers == [str(k) for k in range(1, len(numbers) + 1)]
    # Contradictions.
    validated = hasattr(found.model, "cv_results_")
    assert ("not chosen by validation" in text) == (not validated)
    assert ("Nested cross-validation" in text) == (found.held_out is not None)
    assert ("half-samples" in text) == (found.confidence is not None)
    assert ("Meinshausen" in text) == (found.confidence is not None and not np.isnan(found.confidence.q_value).all())
    assert f"C = {found.model.C_:.3g}" in text
    assert f"{len(found.groups)} group" in text
    assert ("seed is 0" in text) == ("random_state" not in options)
    assert f"Coterie {coterie.__version__}" in text
    sentences = re.split(r"(?<=[a-z\d)%\]])\. (?=[A-Zq])", paragraph)
    assert max(len(sentence.split()) for sentence in sentences if "chosen for" not in sentence) <= 40
    if not isinstance(options.get("random_state"), np.random.RandomState):
        found.save(tmp_path / "result")
        assert coterie.load(tmp_path / "result").methods_text() == text == found.to_dict()["methods"]
        assert (tmp_path / "result" / "methods.txt").read_text(encoding="utf-8") == text + "\n"


def test_imputation_and_matrices():
    X, y = cohort("numbers")
    gap = X.copy()
    gap[3, 2] = np.nan
    text = coterie.discover(imputed(gap), y, **FAST).methods_text()
    assert "Missing values were imputed from the values of the same feature." in text
    two = {"rna": X[:, :5], "protein": X[:, 5:]}
    assert (
        "2 matrices of the same samples: rna (5 features), protein (5 features)."
        in coterie.discover(two, y, **FAST).methods_text()
    )
