"""Replication in a second cohort: tests against slow reference code, matching of features, scores and errors."""

import json
import warnings

import numpy as np
import pandas as pd
import pytest
from scipy import stats
from sklearn.metrics import accuracy_score, r2_score, roc_auc_score

import coterie
from coterie.data import as_source
from coterie.replication.multiplicity import benjamini_hochberg, holm

NAMES = [f"f{j}" for j in range(24)]


def cohort(seed, n=150, kind="numbers", strength=1.0, sign=1.0):
    """Return a frame with eight blocks of three features, and an outcome of the first two blocks."""
    rng = np.random.default_rng(seed)
    factors = rng.standard_normal((n, 8))
    X = factors[:, :, None] + 0.4 * rng.standard_normal((n, 8, 3))
    X[:, :, 2] *= -1.0
    score = sign * strength * (2.0 * factors[:, 0] - 1.5 * factors[:, 1])
    frame = pd.DataFrame(X.reshape(n, -1), columns=NAMES)
    if kind == "classes":
        return frame, np.where(score + rng.logistic(size=n) > 0.0, "case", "control")
    if kind == "several classes":
        return frame, np.array(["a", "b", "c"])[np.digitize(score + rng.logistic(size=n), (-1.0, 1.0))]
    if kind == "counts":
        return frame, rng.poisson(np.exp(0.3 * score + 0.5)).astype(float)
    if kind == "survival":
        time, end = rng.exponential(np.exp(-score)), rng.exponential(3.0, n)
        return frame, np.column_stack([np.minimum(time, end), time <= end])
    if kind == "several targets":
        return frame, pd.DataFrame(
            {"height": score + rng.standard_normal(n), "width": 50 * factors[:, 2] + rng.standard_normal(n)}
        )
    return frame, score + rng.standard_normal(n)


def discovered(kind="numbers", n_groups=3, **options):
    task = kind if kind in ("counts", "survival") else "auto"
    options = {"fast": True, "n_features_to_select": n_groups, "threshold": 0.6, "n_features_per_round": 1, **options}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return coterie.discover(*cohort(0, kind=kind), task=task, **options)


@pytest.fixture(scope="module")
def first():
    return discovered()


def naive_t(X, y, clusters=None):
    """t statistics and degrees of freedom of least squares, with the larger of robust and classical standard errors."""
    n, k = X.shape
    X = np.column_stack([np.ones(n), (X - X.mean(axis=0)) / X.std(axis=0)])
    bread = np.linalg.inv(X.T @ X)
    beta = bread @ X.T @ y
    residual = y - X @ beta
    classical = np.sqrt(np.diag(bread) * (residual @ residual) / (n - k - 1))
    leverage = np.array([row @ bread @ row for row in X])
    meat = sum((r / (1 - h)) ** 2 * np.outer(row, row) for row, r, h in zip(X, residual, leverage, strict=True))
    error, freedom = np.sqrt(np.diag(bread @ meat @ bread)), n - k - 1
    if clusters is not None:
        labels = np.unique(clusters)
        sums = [X[clusters == label].T @ residual[clusters == label] for label in labels]
        meat = len(labels) / (len(labels) - 1) * sum(np.outer(own, own) for own in sums)
        error, freedom = np.maximum(error, np.sqrt(np.diag(bread @ meat @ bread))), len(labels) - 1
        left = [np.linalg.lstsq(X[clusters != label], y[clusters != label], rcond=None)[0] for label in labels]
        variance = (len(labels) - 1) / len(labels) * sum((own - beta) ** 2 for own in left)
        error = np.maximum(error, np.sqrt(variance))
    return (beta / np.maximum(error, classical))[1:], freedom


@pytest.mark.parametrize("clustered", [False, True])
@pytest.mark.parametrize("kind", ["numbers", "classes"])
def test_p_values_are_those_of_a_regression_by_hand(kind, clustered):
    found = discovered(kind)
    X, y = cohort(7, 120, kind, strength=0.3)
    clusters = np.arange(120) // 4 if clustered else None
    result = found.replicate(X, y, groups=clusters, which="all", joint=True)
    signs = np.sign([group.effect for group in found.groups])
    target = (y == "control").astype(float) if kind == "classes" else y
    t, freedom = naive_t(X.to_numpy()[:, found.groups.support], target, clusters)
    expected = stats.t.sf(signs * t, freedom)
    np.testing.assert_allclose([group.p_value for group in result], expected, rtol=1e-8)
    np.testing.assert_allclose([group.adjusted_p_value for group in result], holm(expected), rtol=1e-8)
    alone = found.replicate(X, y, groups=clusters, which="all", joint=False)
    for group, sign, feature in zip(alone, signs, found.groups.support, strict=True):
        t, freedom = naive_t(X.to_numpy()[:, [feature]], target, clusters)
        assert group.p_value == pytest.approx(stats.t.sf(sign * t[0], freedom), rel=1e-8)
    assert "tested alone" in alone.judgement
    assert "tested alone" not in result.judgement
    assert ("only 30 sample groups" in result.judgement) == clustered


def test_adjusted_p_values_are_those_of_their_definitions():
    for seed in range(20):
        p = np.random.default_rng(seed).random(7) ** 3
        for level in (0.01, 0.05, 0.2):
            rejected = set()
            for step, k in enumerate(np.argsort(p)):  # Holm's procedure, step by step
                if p[k] > level / (7 - step):
                    break
                rejected.add(k)
            assert set(np.flatnonzero(holm(p) <= level)) == rejected
            ranked = np.sort(p)
            passing = [k for k in range(7) if ranked[k] <= level * (k + 1) / 7]  # Benjamini and Hochberg's
            limit = ranked[passing[-1]] if passing else -1.0
            assert set(np.flatnonzero(benjamini_hochberg(p) <= level)) == set(np.flatnonzero(p <= limit))
    assert holm(np.empty(0)).size == benjamini_hochberg(np.empty(0)).size == 0


KINDS = ["numbers", "classes", "several classes", "counts", "survival", "several targets"]


@pytest.mark.parametrize("kind", KINDS)
def test_outcomes(kind):
    found = discovered(kind)
    X, y = cohort(3, 300, kind)
    result = found.replicate(X, y, which="all")
    blocks = {group.group: int(str(group.feature)[1:]) // 3 for group in result}
    true = {0, 1, 2} if kind == "several targets" else {0, 1}
    assert {blocks[group.group] for group in result.replicated} == true & set(blocks.values())
    assert len(true & set(blocks.values())) >= 2
    for group in result.replicated:
        assert group.low < group.effect < group.high
        assert group.effect * group.first_effect > 0.0
    assert result.score.prediction == "predicts"
    opposite = found.replicate(*cohort(3, 300, kind, sign=-1.0), which="all")
    if kind != "several targets":
        assert not opposite.replicated
        assert {group.status for group in opposite if blocks[group.group] in true} <= {"opposite direction", "not replicated"}
        assert "opposite sign" in opposite.judgement


def test_order_scale_and_names_do_not_matter(first):
    X, y = cohort(3, 100)
    known = first.replicate(X, y, which="all")
    rng = np.random.default_rng(0)
    changed = X[rng.permutation(X.columns)] * 3.0 + 1.0
    order = rng.permutation(len(X))
    moved = first.replicate(changed.iloc[order].assign(other="text"), y[order], which="all")
    for one, other in zip(known, moved, strict=True):
        np.testing.assert_allclose([one.p_value, one.effect], [other.p_value, other.effect], rtol=1e-9)
        assert (one.status, one.representative) == (other.status, other.representative)
    by_position = discovered_array().replicate(X.to_numpy(), y, which="all")
    assert [group.feature for group in by_position] == [NAMES.index(group.feature) for group in known]
    np.testing.assert_allclose([g.p_value for g in by_position], [g.p_value for g in known], rtol=1e-9)


def discovered_array():
    X, y = cohort(0)
    options = {"fast": True, "n_features_to_select": 3, "threshold": 0.6, "n_features_per_round": 1}
    return coterie.discover(X.to_numpy(), y, **options)


def test_another_member_represents_a_group_with_its_own_sign(first):
    X, y = cohort(3, 100)
    group = first.groups[0]
    order = list(group.names)
    for absent in range(len(order)):
        given = X.drop(columns=order[:absent]) if absent % 2 else X.assign(**dict.fromkeys(order[:absent], 1.0))
        entry = first.replicate(given, y, which="all")[0]
        assert entry.representative == order[absent]
        assert entry.n_present == len(order) - absent
        assert entry.status == "replicated"
        assert entry.effect * entry.first_effect > 0.0
        # The correlation with the support feature has the sign of the member.
        assert entry.correlation == pytest.approx(np.append(1.0, group.correlation)[absent])
    # The mirror image of the support feature gives the same test.
    mirrored = X.drop(columns=order[0]).assign(**{order[1]: np.sign(group.correlation[0]) * X[order[0]]})
    known, mirror = (first.replicate(given, y, which="all")[0] for given in (X, mirrored))
    assert (mirror.p_value, mirror.effect) == pytest.approx((known.p_value, known.effect))
    gone = first.replicate(X.drop(columns=order), y, which="all")
    assert (gone[0].status, gone[0].representative, gone[0].p_value) == ("no member present", None, None)
    assert f"Without a member that varies in the second cohort: '{order[0]}'" in gone.judgement
    assert len(gone.tested) == len(first.groups) - 1


def test_correlations_within_the_groups(first):
    X, y = cohort(3, 100)
    entry = first.replicate(X, y)[0]
    names = list(first.groups[0].names)
    expected = X[names].corr().iloc[0].to_numpy()
    np.testing.assert_allclose([member["correlation"] for member in entry.members], expected, rtol=1e-9)
    assert entry.coherence == pytest.approx(np.abs(expected[1:]).mean())
    assert entry.first_coherence == pytest.approx(np.abs(first.groups[0].correlation).mean())
    weights = np.random.default_rng(0).integers(0, 3, 100).astype(float)
    weighted = first.replicate(X, y, sample_weight=weights)
    assert weighted.n_samples == int(np.count_nonzero(weights))
    repeated = X.loc[np.repeat(np.arange(100), weights.astype(int))]
    expected = np.abs(repeated[names].corr().iloc[0, 1:]).mean()
    assert weighted[0].coherence == pytest.approx(expected)


def test_which_groups_are_tested():
    X, y = cohort(0)
    found = coterie.discover(X, y, max_features_to_select=5, min_features_to_select=5, threshold=0.6, n_pairs=5)
    n_significant = sum(bool(group.selected) for group in found.groups)
    assert 0 < n_significant < len(found.groups)
    second = cohort(3, 100)
    assert len(found.replicate(*second).tested) == n_significant
    assert len(found.replicate(*second, which="significant").tested) == n_significant
    assert len(found.replicate(*second, which="all").tested) == sum(group.used for group in found.groups)
    assert {group.status for group in found.replicate(*second)} >= {"replicated", "not tested"}


def test_few_samples_are_tested_one_by_one(first):
    many, few = (first.replicate(*cohort(3, n), which="all") for n in (30, 29))
    assert (many.joint, few.joint) == (True, False)
    assert "because 29 samples are too few for all together" in few.judgement


def test_scores_are_those_of_scikit_learn():
    X, y = cohort(3, 120, "classes")
    found = discovered("classes")
    weight = np.random.default_rng(0).random(120)
    result = found.replicate(X, y, sample_weight=weight)
    predicted = found.predict(X)
    assert result.score.value == pytest.approx(accuracy_score(y, predicted, sample_weight=weight))
    auc = roc_auc_score(y == "control", found.model.decision_function(X), sample_weight=weight)
    assert result.score.figures["ROC AUC"]["value"] == pytest.approx(auc)
    assert result.score.constant == pytest.approx(max(weight[y == label].sum() for label in set(y)) / weight.sum())
    assert result.score.interval[0] < result.score.value < result.score.interval[1]
    numbers = discovered()
    X, y = cohort(3, 100)
    assert numbers.replicate(X, y).score.value == pytest.approx(r2_score(y, numbers.predict(X)))
    assert numbers.replicate(X, np.random.default_rng(0).permutation(y)).score.prediction == "does not predict"


@pytest.mark.slow
def test_the_interval_of_a_fixed_model_has_its_coverage():
    """The 95 % interval of the accuracy covers that of very many samples in 95 % of cohorts, within random error."""
    found = discovered("classes")
    truth = found.replicate(*cohort(99, 20_000, "classes")).score.value
    inside = 0
    for seed in range(100, 220):
        low, high = found.replicate(*cohort(seed, 80, "classes"), which="all").score.interval
        inside += low <= truth <= high
    assert 0.90 <= inside / 120 <= 0.99


def test_covariates_are_the_baseline():
    rng = np.random.default_rng(0)
    age = [rng.standard_normal((n, 1)) for n in (150, 200)]
    (X, y), (new, target) = cohort(0), cohort(3, 200)
    options = {"fast": True, "n_features_to_select": 3, "threshold": 0.6}
    found = coterie.discover(X, y + 3 * age[0][:, 0], covariates=age[0], **options)
    result = found.replicate(new, target + 3 * age[1][:, 0], covariates=age[1])
    assert result.score.baseline == "covariates alone"
    assert 0.3 < result.score.constant < result.score.value
    assert result.score.prediction == "predicts"
    with pytest.raises(ValueError, match="fitted with covariates"):
        found.replicate(new, target)
    noise = found.replicate(new, 3 * age[1][:, 0] + rng.standard_normal(200), covariates=age[1], which="all")
    assert noise.score.prediction != "predicts"
    assert not noise.replicated


def test_exposures_and_offsets():
    X, y = cohort(0, kind="counts")
    exposure = np.linspace(0.5, 2.0, len(X))
    options = {"task": "counts", "fast": True, "n_features_to_select": 2, "threshold": 0.6}
    found = coterie.discover(X, y, exposure=exposure, **options)
    result = found.replicate(*cohort(3, kind="counts"), exposure=exposure)
    same = found.replicate(*cohort(3, kind="counts"), offset=np.log(exposure))
    assert result.to_dict() == same.to_dict()
    assert result.replicated
    with pytest.raises(ValueError, match="exposure and offset"):
        found.replicate(*cohort(3, kind="counts"), exposure=exposure, offset=exposure)
    with pytest.raises(ValueError, match="requires a model of counts"):
        discovered().replicate(*cohort(3), exposure=exposure)


def test_a_class_may_be_absent_from_several():
    found = discovered("several classes")
    X, y = cohort(3, 300, "several classes")
    kept = y != "b"
    result = found.replicate(X[kept], y[kept], which="all")
    assert "Classes without samples in the second cohort: b." in result.judgement
    assert result.replicated
    for group in result.tested:
        assert group.outcome in ("a", "c")


def test_a_loaded_discovery_replicates_alike(first, tmp_path):
    X, y = cohort(3, 100)
    first.save(tmp_path / "result")
    again = coterie.load(tmp_path / "result")
    given = X.drop(columns=first.groups[0].names[0])
    one, other = (found.replicate(given, y, fdr=0.1) for found in (first, again))
    assert one.to_dict() == other.to_dict()
    assert one.substitutes[0].feature == first.groups[0].names[0]
    files = one.save(tmp_path / "out")
    assert files == ["members.csv", "replication.csv", "replication.json"]
    content = json.loads((tmp_path / "out" / "replication.json").read_text())
    assert {name: content[name] for name in one.to_dict()} == json.loads(json.dumps(one.to_dict()))
    table = pd.read_csv(tmp_path / "out" / "replication.csv")
    assert table["status"].tolist() == one.to_frame()["status"].tolist()
    assert len(pd.read_csv(tmp_path / "out" / "members.csv")) == sum(len(group) for group in first.groups)
    with pytest.raises(FileExistsError):
        one.save(tmp_path / "out")
    one.save(tmp_path / "out", overwrite=True)
    assert "replicated" in repr(one)
    assert "<table>" in one._repr_html_()


def test_errors(first):
    X, y = cohort(3, 100)
    cases = [
        (lambda: first.replicate(X.rename(columns=str.upper), y), "none of the .* features in the groups"),
        (lambda: first.replicate(*cohort(0)), "those of the first cohort"),
        (lambda: first.replicate(cohort(0)[0][list(first.groups[0].names[:1])], cohort(0)[1]), "those of the first cohort"),
        (lambda: first.replicate(X), "requires the labels of the second cohort"),
        (lambda: first.replicate(X, y[:50]), "inconsistent numbers of samples"),
        (lambda: first.replicate(X, y, which="some"), "which='some'"),
        (lambda: first.replicate(X, y, joint="yes"), "joint='yes'"),
        (lambda: first.replicate(X, y, fwer=0.05, fdr=0.1), "fwer and fdr cannot be combined"),
        (lambda: first.replicate(X, y, fdr=0.0), "fdr=0.0"),
        (lambda: first.replicate(X, y, which="significant"), "which='significant' requires q-values"),
        (lambda: first.replicate(X, np.column_stack([y, y + X["f7"]])), "1 target"),
        (lambda: first.replicate(X, y, offset=X["f20"]), "without an offset"),
        (lambda: discovered("classes").replicate(X, y > 0), "y has the label False, but the classes"),
        (lambda: discovered("classes").replicate(X, np.full(100, "case")), "one class"),
        (lambda: discovered("survival").replicate(X, y), "Survival|columns|structured"),
        (lambda: coterie.discover(X, task="one-class", n_pairs=0).replicate(X, y), "one-class model has no target"),
    ]
    for call, message in cases:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            with pytest.raises(ValueError, match=message):
                call()
    targets = cohort(3, 100, "several targets")[1]
    with pytest.raises(ValueError, match="same targets in the same order"):
        discovered("several targets").replicate(X, targets[["width", "height"]])


def test_other_scales_are_noted(first):
    X, y = cohort(3, 100)
    assert "Check that both are on the same scale" in first.replicate(X + 10.0, y).judgement
    assert "Check that both" not in first.replicate(X, y).judgement
    X, y = cohort(3, 200, "classes")
    shifted = discovered("classes").replicate(X + 3.0, y)
    if shifted.score.prediction != "predicts":
        assert "orders the samples" in shifted.judgement


def test_sources_and_sparse_data(first):
    X, y = cohort(3, 100)
    known = first.replicate(X, y).to_dict()["groups"]
    source = as_source(X.to_numpy(), NAMES)
    assert first.replicate(source, y).to_dict()["groups"] == known


def test_raw_tables_are_encoded_as_in_the_first_cohort():
    (X, y), (new, target) = cohort(0, kind="classes"), cohort(3, kind="classes")
    rng = np.random.default_rng(0)
    first, second = (frame.assign(dx=label, sex=rng.choice(["f", "m"], 150)) for frame, label in ((X, y), (new, target)))
    found = coterie.discover(first, "dx", fast=True, n_features_to_select=3, threshold=0.6)
    support = found.groups[0].names[0]
    result = found.replicate(second.drop(columns=support), "dx", which="all")
    assert result[0].representative == found.groups[0].names[1]
    assert result[0].status == "replicated"
