"""Every estimator with every kind of bad input: a correct result or one clear error; all cases with ``make test-slow``."""

import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

from tests.bad_inputs.cases import Case
from tests.bad_inputs.run import ESTIMATORS, cases_of, outcome, run

NAMES = list(ESTIMATORS)


@pytest.mark.parametrize("name", NAMES)
def test_some_bad_inputs(name):
    """Each case with one of the estimators in turn."""
    cases = list(cases_of(name).values())[NAMES.index(name) :: len(NAMES)]
    assert len(cases) > 5
    outcomes = {case.name: outcome(name, case) for case in cases}
    assert not {case: result for case, result in outcomes.items() if result not in ("result", "refused")}


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_all_bad_inputs(name):
    """In a separate process, with a time limit per case."""
    faults = {case: result for _, case, result in run([name]) if result not in ("result", "refused")}
    assert not faults


@pytest.mark.parametrize("name", NAMES)
def test_before_fit(name):
    for method in ("get_support", "transform", "inverse_transform", "get_feature_names_out", "predict"):
        model = clone(ESTIMATORS[name])
        if hasattr(model, method):
            with pytest.raises(NotFittedError):
                getattr(model, method)(*([] if method.startswith("get") else [[[0.0]]]))


def test_the_table_can_fail():
    """A case that is refused although it is valid, and the reverse."""
    refused = Case("X: none", lambda fit: fit.__class__(fit.X[:0], fit.y), "result")
    assert outcome("filter, fisher", refused).startswith("FAULT refused")
    taken = Case("X: good", lambda fit: fit, "error")
    assert outcome("filter, fisher", taken) == "FAULT not refused"
