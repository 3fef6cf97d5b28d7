"""The one rule for classes of one sample: a warning that says what it means, in every selector that learns from classes."""

import warnings

import numpy as np
import pytest
from sklearn.base import clone, is_regressor

from coterie.filters import fisher_score
from coterie.inputs.targets import LoneClassWarning, read_labels
from coterie.methods import SCORES
from tests.bad_inputs.cases import good
from tests.bad_inputs.run import ESTIMATORS, NUMBERS, TARGETS

# These learn from two classes only, and refuse a third one whatever its size.
TWO_CLASSES = ("oscar", "gflasso", "ncfgs", "nctfgs")
WITHOUT_CLASSES = (
    "one class",
    "one class, validated",
    "groups",
    "groups, variance",
    "daf, clustering",
    "daf, reconstruction",
    "grm, variance",
    *(f"filter, {name}" for name, score in SCORES.items() if not score.supervised),
    *NUMBERS,
    *TARGETS,
)
NAMES = [name for name, one in ESTIMATORS.items() if not is_regressor(one) and name not in WITHOUT_CLASSES]


@pytest.mark.parametrize("name", NAMES)
def test_a_class_of_one_sample(name):
    fit = good(regression=False)
    y = np.where(fit.y > 0, "ill", "well")
    if name in TWO_CLASSES:
        y[:] = "well"
    y[3] = "odd"
    model = clone(ESTIMATORS[name])
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        if name == "classifier, validated":  # some fold cannot learn the class
            with pytest.raises(ValueError, match="has no training samples of class 'odd'"):
                model.fit(fit.X, y)
            model.support_features_ = [0]
        else:
            model.fit(fit.X, y)
    said = [str(w.message) for w in caught if issubclass(w.category, LoneClassWarning)]
    assert said
    assert "Class 'odd' has one sample. It is used like any other class" in said[0]
    assert len(model.support_features_)


def test_how_many_there_are():
    with pytest.warns(LoneClassWarning, match=r"Class 5 and 1 other class\(es\) have one sample"):
        fisher_score(np.arange(12.0).reshape(6, 2), [0, 0, 1, 1, 5, 6])


def test_weights_count():
    y = np.array(["a", "a", "b"])
    with pytest.warns(LoneClassWarning, match="Class 'b' has one sample"):
        read_labels(y, np.ones(3))
    with pytest.warns(LoneClassWarning, match="Class 'a' has one sample"):
        read_labels(np.array(["a", "a", "b", "b"]), np.array([0.0, 1.0, 1.0, 1.0]))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        read_labels(y, np.array([1.0, 1.0, 2.0]))  # a sample of weight 2 counts as two
    with pytest.raises(ValueError, match="Class 'a' has no samples of positive weight"):
        read_labels(y, np.array([0.0, 0.0, 1.0]))
