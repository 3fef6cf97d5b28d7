"""Sentences of the judgement."""

import numpy as np
import pytest

from coterie import GroupDiscoveryClassifier, group_confidence, group_effects
from coterie.datasets import make_support_affiliated
from coterie.report import Discovery, HeldOut, judge, judgement, read_result, write_result
from coterie.report.page import cautions, lead
from coterie.report.payload import discovery_data


def confidence_of(values, shares, n_permutations=5, n_features=1000):
    expected = [None if share is None else 1.0 if share > 0.25 else 0.0 for share in shares]
    counts = {"n_permutations": n_permutations, "n_features": n_features, "sizes": [1] * len(values)}
    return {"confidence": values, "false_share": shares, "expected_false": expected, **counts}


@pytest.mark.parametrize(
    ("values", "shares", "n_permutations", "sentence"),
    [
        ([1.0, 0.97, 0.3, 0.2], [0.1, 0.1, 0.8, 1.0], 5, "2 of 4 groups are found again in at least 97% of the half-samples"
         " (false discovery rate at most 10%). "
         "The others are found about as often with permuted labels."),
        ([1.0, 0.5], [0.1, 0.2], 5, "1 of 2 groups is found again in 100% of the half-samples"
         " (false discovery rate at most 10%). The others are less certain."),
        ([0.95, 0.92], [0.6, 0.6], 5, "None of the 2 groups is reliably found again in other samples. They are found about as "
         "often with permuted labels."),
        ([0.7, 0.6, 0.4], [0.1, 0.15, 0.19], 5, "1 of 3 groups is found again in at least 70% of the half-samples"
         " (false discovery rate at most 10%). "
         "The others are less certain."),
        ([0.95, None], [None, None], 0, "The group is found again in at least 95% of the half-samples."),
        ([1.0], [0.25], 3, "The group is not reliably found again in other samples."),
        ([1.0], [0.1], 9, "The group is found again in 100% of the half-samples (false discovery rate at most 10%)."),
        ([0.6], [0.25], 3, "The group is not reliably found again in other samples."),
        ([0.2, 0.1], [0.3, 0.4], 5, "None of the 2 groups is reliably found again in other samples. Inspect them one by one."),
        ([None], [None], 0, ""),
    ],
)  # fmt: skip
def test_groups(values, shares, n_permutations, sentence):
    assert judgement(None, confidence_of(values, shares, n_permutations)) == sentence


@pytest.mark.parametrize(
    ("value", "interval", "constant", "prediction", "sentence", "warning"),
    [
        (0.85, (0.8, 0.9), 0.5, "predicts",
         "Held-out accuracy 0.85 (95% interval 0.8 to 0.9), constant 0.5 (training 1).", ""),
        (0.85, None, 0.5, "predicts", "Held-out accuracy 0.85, constant 0.5 (training 1).", ""),
        (0.778, (0.6, 0.89), 0.633, "may predict", "The groups may predict better than a constant, but the interval includes "
         "it: held-out accuracy 0.778 (95% interval 0.6 to 0.89), constant 0.633 (training 1).",
         "Held-out accuracy 0.778 (95% interval 0.6 to 0.89) may be no better than a constant prediction (0.633)."),
        (0.7, (0.5, 0.8), 0.5, "may predict", "The groups may predict better than a constant, but the interval includes it: "
         "held-out accuracy 0.7 (95% interval 0.5 to 0.8), constant 0.5 (training 1).",
         "Held-out accuracy 0.7 (95% interval 0.5 to 0.8) may be no better than a constant prediction (0.5)."),
        (0.5, (0.4, 0.6), 0.5, "does not predict", "On held-out samples the groups predict no better than a constant: "
         "accuracy 0.5 (95% interval 0.4 to 0.6), constant 0.5 (training 1).",
         "Held-out accuracy 0.5 (95% interval 0.4 to 0.6) is not better than a constant prediction (0.5)."),
        (0.5, None, 0.6, "does not predict", "On held-out samples the groups predict no better than a constant: accuracy 0.5, "
         "constant 0.6 (training 1).", "Held-out accuracy 0.5 is not better than a constant prediction (0.6)."),
    ],
)  # fmt: skip
def test_scores(value, interval, constant, prediction, sentence, warning):
    held_out = HeldOut("accuracy", [], constant, 1.0, value=value, interval=interval)
    verdict = judge(held_out.to_dict(), None)
    assert verdict.score.prediction == prediction
    assert verdict.sentence == judgement(held_out.to_dict(), None) == sentence
    assert verdict.warning == warning
    assert held_out.predicts == (prediction == "predicts") == (not verdict.caution)
    assert verdict.to_dict()["score"]["sentence"] == sentence
    assert verdict.to_dict()["groups"] is None
    assert HeldOut.from_dict(held_out.to_dict()) == held_out


def test_scores_of_folds():
    held_out = HeldOut("R²", [0.05, 0.02, np.nan, 0.04], 0.0, 0.9)
    assert held_out.value == held_out.mean == pytest.approx(0.11 / 3)
    assert held_out.error == pytest.approx(np.std([0.05, 0.02, 0.04], ddof=1) / np.sqrt(3))
    low, high = held_out.interval
    assert low + high == pytest.approx(2 * held_out.value)
    assert (high - low) / 2 > 4.30 * held_out.error  # Student's quantile for three folds
    single = HeldOut("accuracy", [0.7], 0.5, 1.0)
    assert np.isnan(single.error)
    assert single.interval is None
    assert single.predicts
    old = {"score": "accuracy", "mean": 0.7, "error": 0.1, "constant": 0.5, "training": None, "baseline": "constant"}
    read = HeldOut.from_dict({**old, "folds": [0.6, 0.8]})
    assert read.value == pytest.approx(0.7)
    assert read.interval is not None
    assert judgement(None, None) == ""


def test_few_features_are_no_evidence_against_the_groups():
    """With most of the features in groups, permuted labels select the same groups."""
    values, shares = [1.0, 1.0, 0.9, 0.8, 0.8], [0.9, 0.9, 0.9, 1.0, 1.0]
    few, many = (judge(None, confidence_of(values, shares, n_features=n)).groups for n in (7, 12))
    assert few.reliability == "undecided"
    assert few.sentence.startswith("7 features are too few for permuted labels to tell groups apart")
    assert many.reliability == "not found again"
    assert many.sentence.startswith("None of the 5 groups is reliably found again")
    sure = judge(None, confidence_of([1.0, 0.9], [0.1, 0.9], n_features=3)).groups
    assert (sure.reliability, sure.n_found, sure.chance) == ("found again", 1, False)


def test_the_chart_does_not_shade_what_is_undecided():
    model = GroupDiscoveryClassifier(2).fit(np.random.default_rng(0).standard_normal((40, 3)), np.arange(40) % 2)
    content = Discovery(model, {"path": "x"}, "classification").to_dict()
    content["confidence"] = confidence_of([1.0, 1.0], [0.9, 0.9], n_features=3) | {"permuted": [[1.0, 1.0]] * 5}
    assert discovery_data(content)["chance"] is None
    content["confidence"]["n_features"] = 30
    assert discovery_data(content)["chance"] == {"level": 1.0, "n_permutations": 5}


def test_result_has_all_judgements(tmp_path):
    data = make_support_affiliated(300, 60, n_support=3, n_true=7, random_state=0)
    model = GroupDiscoveryClassifier(6).fit(data.X, data.y)
    group_confidence(model, data.X, data.y, n_pairs=5, n_permutations=1, random_state=0).attach_to(model)
    group_effects(model, data.X, data.y).attach_to(model)
    target = {"label": "<b>ill</b>", "classes": {"no": 140, "yes": 160}}
    result = Discovery(
        model, {"path": "x"}, "classification", held_out=HeldOut("accuracy", [0.9, 0.8, 0.85], 0.5, 1.0), target=target
    )
    write_result(tmp_path / "out", result)
    content = read_result(tmp_path / "out")
    assert content["held_out"]["mean"] == pytest.approx(0.85)
    assert content["target"] == target
    assert content["groups"][0]["confidence"] == content["confidence"]["confidence"][0] == model.groups_[0].confidence
    assert content["groups"][0]["members"][0]["share"] == model.confidence_.support_confidence[0]
    assert "3 of 6 groups are significant at a false discovery rate of 10%" in content["judgement"]
    table = (tmp_path / "out" / "groups.csv").read_text().splitlines()
    assert ",confidence,q_value,group_p_value,selected,share,probability,marks,direction" in table[0]
    page = (tmp_path / "out" / "report.html").read_text()
    assert content["judgement"].split(". ")[1] in page
    low, high = content["held_out"]["interval"]
    assert (
        f"held-out accuracy of <strong>0.85</strong> (95% interval {low:.3g} to {high:.3g}, constant prediction: 0.5" in page
    )
    assert content["verdict"]["score"]["prediction"] == ("predicts" if low > 0.5 else "may predict")
    assert content["verdict"]["groups"]["sentence"] == content["judgement"].split("). ", 1)[1]
    assert "&lt;b&gt;ill" in page
    assert "<b>ill" not in page
    assert "(no: 140, yes: 160)" in page.replace("<bdi>", "").replace("</bdi>", "")
    assert "Q-value: estimated share of false groups (false discovery rate) among all groups with at least this" in page
    assert "Half-samples: 10, permutations: 1." in page


@pytest.mark.parametrize("training", [None, float("nan")])
def test_unknown_training_score_is_omitted(training):
    held_out = HeldOut("ROC AUC", [], 0.5, 1.0, value=0.85, interval=(0.8, 0.9), reason="Because.").to_dict()
    held_out["training"] = training
    assert judgement(held_out, None) == "Held-out ROC AUC 0.85 (95% interval 0.8 to 0.9), constant 0.5. Because."


def test_page_names_the_baseline():
    held_out = HeldOut("accuracy", [0.5, 0.5, 0.5], 0.5, 1.0).to_dict()
    warned = judge(held_out, None).warning
    assert warned == "Held-out accuracy 0.5 (95% interval 0.5 to 0.5) is not better than a constant prediction (0.5)."
    content = {"held_out": held_out, "task": "classification", "data": {"path": "x/y.csv"}, "groups": [], "summary": {}}
    content |= {"confidence": None, "warnings": [warned]}
    assert " (95% interval 0.5 to 0.5, constant prediction: 0.5, training: 1)." in lead(content)[0]
    (caution,) = cautions(content)
    assert caution == "On held-out samples the groups predict no better than a constant. Do not interpret them."
    content["held_out"] = {**held_out, "baseline": "covariates alone"}
    assert "0.5 to 0.5, covariates alone: 0.5, training: 1)." in lead(content)[0]
    assert cautions(content)[0].startswith("On held-out samples the groups predict no better than the covariates alone.")


def test_caution_agrees_with_significant_groups():
    """The box does not dismiss groups that the sentence calls significant."""
    held_out = HeldOut("accuracy", [0.5, 0.48, 0.52], 0.55, 0.9).to_dict()
    confidence = {"confidence": [0.9, 0.4], "q_value": [0.01, 0.8], "false_share": [None, None], "fdr": 0.1}
    verdict = judge(held_out, confidence)
    assert verdict.groups.n_found == 1
    assert "1 of 2 groups is significant" in verdict.sentence
    assert "Do not interpret them" not in verdict.caution
    assert "Confirm the significant groups in other samples" in verdict.caution
    none = judge(held_out, confidence | {"q_value": [0.5, 0.8]})
    assert none.caution.endswith("Do not interpret them.")


def test_small_figures_are_zero():
    assert "constant 0 (" in judge(HeldOut("R²", [0.4, 0.5, 0.45], -0.000267, 0.5).to_dict(), None).sentence


def test_cautions_that_make_figures_too_good_are_named():
    held_out = HeldOut("accuracy", [0.9, 0.92, 0.91], 0.5, 0.99).to_dict()
    cautions = [{"kind": "dependent samples", "text": "…"}, {"kind": "small classes", "text": "…"}]
    verdict = judge(held_out, None, cautions)
    assert verdict.doubts == ("dependent samples",)
    assert verdict.sentence.endswith("These figures are too good if a caution applies: dependent samples.")
    assert judge(None, None, cautions).sentence == ""
    assert verdict.to_dict()["doubts"] == ["dependent samples"]


def test_results_of_earlier_versions_are_judged():
    """Their confidences lack the number of features."""
    verdict = judge(None, {"n_permutations": 5, "confidence": [0.9, 0.95], "false_share": [0.05, 0.05]})
    assert verdict.groups.n_features is None
    assert "2 of 2 groups" in verdict.sentence
