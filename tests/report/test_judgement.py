"""Sentences of the judgement."""

import numpy as np
import pytest

from coterie import GroupDiscoveryClassifier, group_confidence, group_effects
from coterie.datasets import make_support_affiliated
from coterie.report import Discovery, HeldOut, judgement, read_result, write_result
from coterie.report.judgement import score_warning
from coterie.report.page import cautions, lead


def confidence_of(values, shares, n_permutations=5):
    expected = [None if share is None else 1.0 if share > 0.25 else 0.0 for share in shares]
    return {"confidence": values, "false_share": shares, "expected_false": expected, "n_permutations": n_permutations}


@pytest.mark.parametrize(
    ("values", "shares", "n_permutations", "sentence"),
    [
        ([1.0, 0.97, 0.3, 0.2], [0.1, 0.1, 0.8, 1.0], 5, "2 of 4 groups are found again in at least 97% of the half-samples. "
         "The others are found about as often with permuted labels."),
        ([1.0, 0.5], [0.1, 0.2], 5, "1 of 2 groups is found again in 100% of the half-samples. The others are less certain."),
        ([0.95, 0.92], [0.6, 0.6], 5, "None of the 2 groups is reliably found again in other samples. They are found about as "
         "often with permuted labels."),
        ([0.7, 0.6, 0.4], [0.1, 0.15, 0.19], 5, "2 of 3 groups are found again in at least 60% of the half-samples. "
         "The others are less certain."),
        ([0.95, None], [None, None], 0, "The group is found again in at least 95% of the half-samples."),
        ([1.0], [0.25], 3, "The group is found again in 100% of the half-samples."),
        ([0.6], [0.25], 3, "The group is not reliably found again in other samples."),
        ([0.2, 0.1], [0.3, 0.4], 5, "None of the 2 groups is reliably found again in other samples. Inspect them one by one."),
        ([None], [None], 0, ""),
    ],
)  # fmt: skip
def test_groups(values, shares, n_permutations, sentence):
    assert judgement(None, confidence_of(values, shares, n_permutations)) == sentence


def test_scores():
    good = HeldOut("accuracy", [0.9, 0.8, 0.85], 0.5, 1.0)
    assert judgement(good.to_dict(), None) == "Held-out accuracy 0.85 ± 0.029, constant 0.5 (training 1)."
    poor = HeldOut("R²", [-0.1, 0.1], 0.0, 0.97)
    assert not poor.predicts
    assert judgement(poor.to_dict(), None).startswith("On held-out samples the groups predict no better than a constant: R² 0")
    little = HeldOut("R²", [0.05, 0.0, 0.04], 0.0, 0.9)  # nearly two standard errors
    assert not little.predicts
    assert "the groups do not predict clearly better than a constant: R² 0.03 ± 0.015" in judgement(little.to_dict(), None)
    assert HeldOut("R²", [0.05, 0.02, 0.04], 0.0, 0.9).predicts
    assert np.isnan(HeldOut("accuracy", [0.7], 0.5, 1.0).error)
    assert HeldOut("accuracy", [0.7], 0.5, 1.0).predicts
    assert (
        judgement(HeldOut("accuracy", [0.7], 0.5, 1.0).to_dict(), None) == "Held-out accuracy 0.7, constant 0.5 (training 1)."
    )
    assert judgement(None, None) == ""


def test_result_has_all_judgements(tmp_path):
    data = make_support_affiliated(300, 60, n_support=3, n_true=7, random_state=0)
    model = GroupDiscoveryClassifier(6).fit(data.X, data.y)
    group_confidence(model, data.X, data.y, n_pairs=5, n_permutations=1, random_state=0).attach_to(model)
    group_effects(model, data.X, data.y).attach_to(model)
    target = {"label": "<b>ill</b>", "classes": {"no": 140, "yes": 160}}
    result = Discovery(
        model, {"path": "x"}, "classification", held_out=HeldOut("accuracy", [0.9, 0.8], 0.5, 1.0), target=target
    )
    write_result(tmp_path / "out", result)
    content = read_result(tmp_path / "out")
    assert content["held_out"]["mean"] == pytest.approx(0.85)
    assert content["target"] == target
    assert content["groups"][0]["confidence"] == content["confidence"]["confidence"][0] == model.groups_[0].confidence
    assert content["groups"][0]["members"][0]["share"] == model.confidence_.support_confidence[0]
    assert "groups are found again" in content["judgement"]
    table = (tmp_path / "out" / "groups.csv").read_text().splitlines()
    assert ",confidence,share,marks,direction" in table[0]
    page = (tmp_path / "out" / "report.html").read_text()
    assert content["judgement"].split(". ")[1] in page
    assert "held-out accuracy of <strong>0.850 ± 0.050</strong> (constant prediction: 0.5" in page
    assert "&lt;b&gt;ill" in page
    assert "<b>ill" not in page
    assert "(no 140, yes 160)" in page.replace("<bdi>", "").replace("</bdi>", "")
    assert "By chance: mean number of groups that reach this confidence with permuted labels." in page
    assert "Half-samples: 10, permutations: 1." in page


@pytest.mark.parametrize("training", [None, float("nan")])
def test_unknown_training_score_is_omitted(training):
    held_out = {**HeldOut("roc_auc", [0.9, 0.8], 0.5, 1.0).to_dict(), "training": training}
    assert judgement(held_out, None) == "Held-out roc_auc 0.85 ± 0.05, constant 0.5."


def test_page_names_the_baseline():
    held_out = HeldOut("accuracy", [0.5, 0.5, 0.5], 0.5, 1.0).to_dict()
    warned = score_warning(held_out)
    assert warned == "Held-out accuracy 0.5 ± 0 is not better than a constant prediction (0.5)."
    content = {"held_out": held_out, "task": "classification", "data": {"path": "x/y.csv"}, "groups": [], "summary": {}}
    content |= {"confidence": None, "warnings": [warned]}
    assert " (constant prediction: 0.5, training: 1)." in lead(content)[0]
    (caution,) = cautions(content)
    assert caution == "On held-out samples the groups predict no better than a constant. Do not interpret them."
    content["held_out"] = {**held_out, "baseline": "covariates alone"}
    assert " (covariates alone: 0.5, training: 1)." in lead(content)[0]
    assert cautions(content)[0].startswith("On held-out samples the groups predict no better than the covariates alone.")
