"""A loss with a link: all scores and reports use ``Loss.predict``."""

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.metrics import r2_score

import coterie
from coterie import GroupDiscoveryClassifier, GroupDiscoveryRegressor, GroupDiscoveryRegressorCV
from coterie.solver.losses import SquaredHinge, SquaredLoss


class LogLinkLoss(SquaredLoss):
    """The squared loss of the logarithms of positive targets."""

    @classmethod
    def of(cls, targets, weight, C, fit_intercept):
        return SquaredLoss(np.log(targets.values), weight, C, fit_intercept)

    @staticmethod
    def predict(outputs):
        return np.exp(outputs[:, 0])

    @classmethod
    def constant_outputs(cls, targets, weight):
        return np.array([np.log(np.average(targets.values, weights=weight))])


@pytest.fixture
def prices(rng):
    X = rng.standard_normal((80, 30))
    return X, np.exp(0.5 * X[:, 3] - 0.4 * X[:, 7] + 0.1 * rng.standard_normal(80))


def test_predictions_and_scores_are_on_the_scale_of_the_targets(prices):
    X, y = prices
    model = GroupDiscoveryRegressor(2, loss=LogLinkLoss).fit(X, y)
    assert set(model.support_features_) == {3, 7}
    by_hand = GroupDiscoveryRegressor(2).fit(X, np.log(y))
    np.testing.assert_allclose(model.predict(X), np.exp(by_hand.predict(X)), rtol=1e-10)
    assert model.score(X, y) == pytest.approx(r2_score(y, np.exp(by_hand.predict(X))))


@pytest.mark.parametrize("scoring", [None, "r2"])
def test_held_out_scores_go_through_the_link(prices, scoring):
    X, y = prices
    folds = [(np.arange(20, 80), np.arange(20)), (np.r_[:20, 40:80], np.arange(20, 40)), (np.arange(40), np.arange(40, 80))]
    options = {"Cs": [1.0], "cv": folds, "scoring": scoring, "nested": True, "standardize": False, "n_features_per_round": 1}
    model = GroupDiscoveryRegressorCV(2, loss=LogLinkLoss, **options).fit(X, y)
    plain = GroupDiscoveryRegressor(2, loss=LogLinkLoss, C=1.0, standardize=False, n_features_per_round=1)
    for number, (train, test) in enumerate(folds):
        fitted = clone(plain).fit(X[train], y[train])
        row = model.cv_results_["n_features"].tolist().index(2)
        assert model.cv_results_[f"split{number}_test_score"][row] == pytest.approx(fitted.score(X[test], y[test]), rel=1e-6)
        constant = r2_score(y[test], np.full(len(test), y[train].mean()))
        assert model.constant_scores_[number] == pytest.approx(constant)


def test_the_report_shows_training_scores_through_the_link(prices):
    X, y = prices
    model = GroupDiscoveryRegressor(2, loss=LogLinkLoss, n_features_per_round=1).fit(X, y)
    details = coterie.report.describe(model, X, y)
    assert details.training["score"][-1] == pytest.approx(model.score(X, y))


def test_a_loss_by_name_by_class_and_by_object(prices):
    X, y = prices

    class Maker:
        def of(self, targets, weight, C, fit_intercept):
            return SquaredLoss(targets.values, weight, C, fit_intercept)

        predict = staticmethod(SquaredLoss.predict)
        constant_outputs = staticmethod(SquaredLoss.constant_outputs)

    first, *others = (GroupDiscoveryRegressor(2, loss=loss).fit(X, y) for loss in ("squared", SquaredLoss, Maker()))
    for other in others:
        np.testing.assert_array_equal(first.coef_, other.coef_)
    labels = y > 1
    one, two = (GroupDiscoveryClassifier(2, loss=loss).fit(X, labels) for loss in ("squared_hinge", SquaredHinge))
    np.testing.assert_array_equal(one.coef_, two.coef_)


@pytest.mark.parametrize("loss", ["squared_hinge", "hinge", 3, None, dict])
def test_invalid_losses_raise(prices, loss):
    with pytest.raises(ValueError, match=r"loss=.* must be 'squared', 'huber', 'quantile', 'poisson' or 'gamma', or a Loss"):
        GroupDiscoveryRegressor(2, loss=loss).fit(*prices)
