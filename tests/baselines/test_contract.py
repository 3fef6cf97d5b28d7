"""Common behaviour of the selectors: the same features for any order of columns and any format."""

import pickle

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone

from coterie import baselines
from coterie.baselines import (
    FCBFSelector,
    FeatureGroupingSelector,
    GraphFusedLassoSelector,
    L1SVMSelector,
    MRMRSelector,
    OSCARSelector,
    RCFSSelector,
    SVMRFESelector,
)
from coterie.baselines.base import LabelSelector
from coterie.data import as_source
from coterie.groups import FeatureGroups

SELECTORS = [
    MRMRSelector(4),
    FCBFSelector(n_bins=3),
    RCFSSelector(4),
    SVMRFESelector(4),
    L1SVMSelector(4),
    OSCARSelector(4),
    GraphFusedLassoSelector(4),
    FeatureGroupingSelector(4),
    FeatureGroupingSelector(4, truncated=True),
]


def test_all_selectors_are_tested():
    public = {getattr(baselines, name) for name in baselines.__all__}
    assert {type(selector) for selector in SELECTORS} == {one for one in public if issubclass(one, LabelSelector)}


@pytest.mark.parametrize("selector", SELECTORS, ids=repr)
def test_same_features_in_any_order_and_format(planted, rng, selector):
    X, y = planted.X[:150], planted.y[:150]
    model = clone(selector).fit(X, np.where(y > 0, "well", "ill"))
    kept = set(model.support_features_.tolist())
    assert model.get_support().sum() == len(kept) == len(model.support_features_)
    order = rng.permutation(X.shape[1])
    assert set(order[clone(selector).fit(X[:, order], y > 0).support_features_].tolist()) == kept
    for data in (np.asfortranarray(X), sparse.csr_array(X), sparse.csc_matrix(X), as_source(X)):
        assert set(clone(selector).fit(data, y).support_features_.tolist()) == kept
    again = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(again.transform(X), X[:, sorted(kept)])
    if hasattr(model, "groups_"):
        assert isinstance(model.groups_, FeatureGroups)
        assert model.groups_.to_json()


@pytest.mark.parametrize("selector", SELECTORS, ids=repr)
def test_wrong_input_changes_nothing(planted, selector):
    X, y = planted.X[:60, :20], planted.y[:60]
    model = clone(selector).fit(X, y)
    before = model.support_features_
    bad = X[:, :10].copy()
    bad[3, 4] = np.nan
    for data, labels, match in [
        (bad, y, "sample 3 of feature 4"),
        (X[:, :10], np.zeros(60), "only one class"),
        (X[:, :10], None, "requires y"),
        (X[:, :10], y[:-1], "inconsistent numbers of samples"),
    ]:
        with pytest.raises(ValueError, match=match):
            model.fit(data, labels)
    assert model.n_features_in_ == 20
    assert model.support_features_ is before


@pytest.mark.parametrize("selector", SELECTORS, ids=repr)
def test_more_features_requested_than_available(planted, selector):
    with pytest.warns(
        UserWarning, match="n_features_to_select=11 is more than the 10 feature.* n_features_to_select=10 is used"
    ):
        model = clone(selector).set_params(n_features_to_select=11).fit(planted.X[:60, :10], planted.y[:60])
    assert len(model.support_features_) <= 10
