"""Covariates through fit, validation, confidence, predict and files."""

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn import config_context
from sklearn.model_selection import cross_val_score

from coterie import (
    GroupDiscoveryClassifier,
    GroupDiscoveryClassifierCV,
    GroupDiscoveryRegressor,
    GroupDiscoveryRegressorCV,
    group_confidence,
    load,
    save,
)
from coterie.data import Dataset, as_source, open_store
from coterie.data.covariates import Covariates

CAUSAL = [10, 20, 30]


@pytest.fixture(scope="module")
def cohort():
    """Two populations with other allele frequencies and another mean of the trait."""
    rng = np.random.default_rng(1)
    n, m = 400, 300
    population = rng.integers(0, 2, n)
    shift = np.where(rng.random(m) < 0.4, rng.uniform(-0.3, 0.3, m), 0.0)
    shift[CAUSAL] = 0.0
    X = rng.binomial(2, np.clip(rng.uniform(0.2, 0.8, m) + np.outer(2 * population - 1, shift), 0.02, 0.98)).astype(np.int8)
    trait = X[:, CAUSAL] @ [0.8, -0.8, 0.8] + 3.0 * population + rng.standard_normal(n)
    return X, trait, pd.DataFrame({"population": population, "age": rng.uniform(20, 70, n)})


def classes(trait):
    return np.where(trait > np.median(trait), "high", "low")


@pytest.mark.parametrize("kind", [GroupDiscoveryRegressor, GroupDiscoveryClassifier])
def test_structure_gives_false_hits_without_covariates_and_few_with_them(cohort, kind):
    X, trait, covariates = cohort
    y = trait if kind is GroupDiscoveryRegressor else classes(trait)
    plain, adjusted = kind(3).fit(X, y), kind(3).fit(X, y, covariates=covariates)
    assert len(set(plain.support_features_) & set(CAUSAL)) <= 1
    assert sorted(adjusted.support_features_) == CAUSAL
    assert adjusted.covariate_names_.tolist() == ["population", "age"]
    assert adjusted.covariate_coef_.shape == (1, 2)
    assert adjusted.score(X, y, covariates=covariates) > plain.score(X, y)
    assert len(adjusted.groups_.support) == 3  # covariates are no groups


def test_scores_are_free_of_covariates(cohort):
    """A feature that is the covariate itself has nothing left to say."""
    X, trait, covariates = cohort
    X = np.column_stack([X, covariates["population"]]).astype(np.int8)
    model = GroupDiscoveryRegressor(3).fit(X, trait, covariates=covariates)
    assert model.scores_[-1] < 1e-9 * model.scores_.max()


def test_regression_is_that_of_residuals(cohort):
    """With everything chosen and a large C: least squares on features and covariates together."""
    X, trait, covariates = cohort
    few = X[:, [10, 20, 30, 40]].astype(float)
    model = GroupDiscoveryRegressor(4, C=1e6, threshold=1.0).fit(few, trait, covariates=covariates)
    D = np.column_stack([few, covariates, np.ones(len(few))])
    expected = np.linalg.lstsq(D, trait, rcond=None)[0]
    np.testing.assert_allclose(model.coef_, expected[:4], rtol=1e-4)
    np.testing.assert_allclose(model.covariate_coef_[0], expected[4:6], rtol=1e-4)
    np.testing.assert_allclose(model.predict(few, covariates), D @ expected, rtol=1e-4)


@pytest.mark.parametrize("kind", [GroupDiscoveryRegressorCV, GroupDiscoveryClassifierCV])
@pytest.mark.parametrize("model", ["support", "groups"])
def test_validation_adjusts_inside_the_folds(cohort, kind, model):
    """The score of a fold is that of a fit to its training samples and their covariates only."""
    X, trait, covariates = cohort
    regression = kind is GroupDiscoveryRegressorCV
    y = trait if regression else classes(trait)
    half = np.arange(len(y)) % 2 == 0
    folds = [(np.flatnonzero(half), np.flatnonzero(~half)), (np.flatnonzero(~half), np.flatnonzero(half))]
    cv = kind(4, min_features_to_select=4, Cs=[0.1], cv=folds, predict_with=model).fit(X, y, covariates=covariates)
    train, test = folds[0]
    plain = (GroupDiscoveryRegressor if regression else GroupDiscoveryClassifier)(4, C=0.1, predict_with=model)
    plain.fit(X[train], y[train], covariates=covariates.iloc[train])
    expected = plain.score(X[test], y[test], covariates=covariates.iloc[test])
    row = list(cv.cv_results_["n_features"]).index(4)
    assert cv.cv_results_["split0_test_score"][row] == pytest.approx(expected, abs=1e-7)


def test_the_baseline_of_nested_scores_are_the_covariates(cohort):
    X, trait, covariates = cohort
    model = GroupDiscoveryRegressorCV(4, Cs=[0.1], cv=3, nested=True, random_state=0)
    model.fit(X, trait, covariates=covariates)
    assert 0.4 < model.constant_scores_.mean() < model.nested_scores_.mean()
    assert model.fit(X, trait).constant_scores_.mean() < 0.05


def test_confidence(cohort):
    X, trait, covariates = cohort
    model = GroupDiscoveryRegressor(5).fit(X, trait, covariates=covariates)
    result = group_confidence(model, X, trait, covariates=covariates, n_pairs=5, n_permutations=1, random_state=0)
    by_feature = dict(zip(model.support_features_.tolist(), result.confidence.tolist(), strict=True))
    assert all(by_feature[j] >= 0.9 for j in CAUSAL)
    # The halves of a data set with covariates are searched as a fit to half of the samples is.
    again = group_confidence(
        model, Dataset(as_source(X), trait, covariates=Covariates(covariates.to_numpy(float), ("population", "age"))),
        n_pairs=5, n_permutations=1, random_state=0,
    )  # fmt: skip
    np.testing.assert_array_equal(again.confidence, result.confidence)
    with pytest.raises(ValueError, match=r"was fitted with covariates \(population, age\)\. Pass them with covariates="):
        group_confidence(model, X, trait)
    with pytest.raises(ValueError, match=r"was fitted without covariates\. Omit covariates"):
        group_confidence(GroupDiscoveryRegressor(2).fit(X, trait), X, trait, covariates=covariates)


def test_predicting_needs_them_by_name_or_in_order(cohort, tmp_path):
    X, trait, covariates = cohort
    model = GroupDiscoveryClassifier(3).fit(X, classes(trait), covariates=covariates)
    save(model, tmp_path / "m.coterie")
    model = load(tmp_path / "m.coterie")
    expected = model.decision_function(X, covariates)
    np.testing.assert_array_equal(model.decision_function(X, covariates.to_numpy()), expected)
    turned = covariates[["age", "population"]].assign(more="text is not looked at")[["age", "population"]]
    np.testing.assert_array_equal(model.decision_function(X, turned), expected)
    for given, message in [
        (None, r"fitted with covariates \(population, age\)\. Pass those of these samples as covariates="),
        (covariates[["age"]], "covariates lacks columns that the model was fitted with: population"),
        (covariates.to_numpy()[:, :1], "covariates has 1 columns, but the model was fitted with 2"),
        (covariates[:5], "covariates has 5 samples, but X has 400"),
    ]:
        with pytest.raises(ValueError, match=message):
            model.predict(X, given)
    with pytest.raises(ValueError, match=r"fitted without covariates\. Omit covariates="):
        GroupDiscoveryRegressor(2).fit(X, trait).predict(X, covariates)


def test_bad_covariates_of_a_fit(cohort):
    X, trait, covariates = cohort
    hole = covariates.assign(age=covariates["age"].where(covariates.index != 7))
    for given, message in [
        (hole, r"covariate 'age' is missing or infinite for 1 sample\(s\)\. The first is sample 7"),
        (covariates.assign(site="A"), r"covariate 'site' is not numeric .*\. Encode it"),
        (covariates[:9], "covariates has 9 samples, but X has 400"),
        (np.zeros((400, 2, 2)), "must have one or two dimensions, but has 3"),
        (np.empty((400, 0)), r"has no columns\. Omit it"),
        (covariates.assign(me=trait), r"covariates \(population, age, me\) explain y completely"),
    ]:
        with pytest.raises(ValueError, match=message):
            GroupDiscoveryRegressor(2).fit(X, trait, covariates=given)


def test_constant_and_repeated_covariates_change_nothing(cohort):
    X, trait, covariates = cohort
    more = covariates.assign(one=1.0, again=3.0 * covariates["age"] - 2.0)
    first = GroupDiscoveryRegressor(3).fit(X, trait, covariates=covariates)
    second = GroupDiscoveryRegressor(3).fit(X, trait, covariates=more)
    assert second.groups_ == first.groups_
    np.testing.assert_allclose(second.predict(X, more), first.predict(X, covariates), rtol=1e-9)


@pytest.mark.parametrize("kind", [GroupDiscoveryRegressor, GroupDiscoveryClassifier])
def test_weights_are_repetitions_and_sparse_is_dense(cohort, kind):
    X, trait, covariates = cohort
    y = trait if kind is GroupDiscoveryRegressor else np.digitize(trait, np.quantile(trait, [0.3, 0.7]))
    weight = np.random.default_rng(0).integers(0, 3, len(y))
    weighted = kind(4).fit(X, y, sample_weight=weight, covariates=covariates)
    repeated = kind(4).fit(
        np.repeat(X, weight, axis=0), np.repeat(y, weight), covariates=np.repeat(covariates.to_numpy(), weight, axis=0)
    )
    stored = kind(4).fit(sparse.csc_array(X), y, sample_weight=weight, covariates=covariates)
    for other in (repeated, stored):
        assert other.groups_ == weighted.groups_
        np.testing.assert_allclose(other.coef_, weighted.coef_, atol=1e-9)
        np.testing.assert_allclose(other.covariate_coef_, weighted.covariate_coef_, atol=1e-9)


def test_metadata_routing(cohort):
    X, trait, covariates = cohort
    with config_context(enable_metadata_routing=True):
        model = GroupDiscoveryRegressor(3).set_fit_request(covariates=True).set_score_request(covariates=True)
        scores = cross_val_score(model, X, trait, cv=3, params={"covariates": covariates.to_numpy()})
    assert scores.min() > 0.5


def test_a_store_keeps_covariates(cohort, tmp_path):
    from coterie.data.readers.plink import PlinkReader
    from coterie.data.store.writing import write_reader

    pytest.importorskip("bed_reader").to_bed(tmp_path / "x.bed", np.ascontiguousarray(cohort[0][:6, :9]))
    for row, line in enumerate(lines := (tmp_path / "x.fam").read_text().splitlines()):
        lines[row] = " ".join([f"f{row}", f"i{row}", *line.split()[2:]])
    (tmp_path / "x.fam").write_text("\n".join(lines) + "\n")
    table = [f"f{k} i{k} {k}.5 {'NA' if k == 2 else 'ab'[k % 2]}" for k in (5, 3, 2, 0, 1)]
    (tmp_path / "c.txt").write_text("#FID IID dose arm\n" + "\n".join(table) + "\n")
    reader = PlinkReader(tmp_path / "x.bed", covariates=tmp_path / "c.txt")
    assert reader.notes["samples_without_covariates_dropped"] == "2 (i2, i4)"
    assert reader.covariates.names == ("dose", "arm=b (not a)")
    assert reader.covariates.values.tolist() == [[0.5, 0.0], [1.5, 1.0], [3.5, 1.0], [5.5, 1.0]]
    write_reader(reader, tmp_path / "s", overwrite=False, memory_limit=1 << 30)
    store = open_store(tmp_path / "s")
    assert store.covariates.names == reader.covariates.names
    np.testing.assert_array_equal(store.covariates.values, reader.covariates.values)
    assert store.shape == (4, 9)
