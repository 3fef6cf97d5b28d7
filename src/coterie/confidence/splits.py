r"""P-values from half-samples (Meinshausen, Meier and Bühlmann 2009).

One half selects features, and the other half tests them jointly by a regression with robust standard errors: least squares for
numbers and classes, otherwise the regression of the loss (:mod:`coterie.solver.families`). A p-value is multiplied by the
number of tested features. The p-value of a group in a half is the smallest of its members, or 1 if none was selected. The
values :math:`P_h` of all halves are combined by the quantile rule :math:`(1 - \log\gamma_0)\min_{\gamma\ge\gamma_0}
q_\gamma(P_h/\gamma)`.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from coterie.confidence.association import design_of, offsets_of, outputs_of
from coterie.inputs.opening import Input
from coterie.inputs.targets import spread_sample
from coterie.interruption import stop_requested
from coterie.solver.families import Family
from coterie.solver.regression import Estimate, jackknife_errors

# Samples (or sample groups) of the smallest class, or events, times two, per tested feature.
_SAMPLES_PER_TEST = 10
# Most samples per test, which limits the memory of dense columns.
_MOST_SAMPLES = 100_000
# Smallest quantile of the p-values of the halves. A smaller one confirms groups that represent a neighbour in a few halves.
_SMALLEST_QUANTILE = 0.25


class SplitTests:
    """Corrected p-values of the features selected in each half-sample, and the p-value of a group.

    Parameters
    ----------
    features : sequence of ndarray of int
        The features selected in each half-sample.
    values : sequence of ndarray of float
        The corrected p-value of each of them.

    Examples
    --------
    >>> import numpy as np
    >>> from coterie.confidence.splits import SplitTests
    >>> tests = SplitTests([np.array([3, 1]), np.array([1])], [np.array([0.01, 0.2]), np.array([0.03])])
    >>> tests.smallest(np.array([2, 3])), tests.smallest(np.array([1, 3]))
    (array([0.01, 1.  ]), array([0.01, 0.03]))
    """

    def __init__(self, features: Sequence[np.ndarray], values: Sequence[np.ndarray]) -> None:
        halves = np.repeat(np.arange(len(features)), [len(own) for own in features])
        every = np.concatenate(features)
        order = np.argsort(every, kind="stable")
        self._features, self._halves, self._values = every[order], halves[order], np.concatenate(values)[order]
        self._n = len(features)

    def smallest(self, members: np.ndarray) -> np.ndarray:
        """Return the smallest p-value of the members in each half-sample; 1 if none was selected."""
        entries = np.flatnonzero(np.isin(self._features, members))
        best = np.ones(self._n)
        np.minimum.at(best, self._halves[entries], self._values[entries])
        return best

    def p_value(self, members: np.ndarray) -> float:
        """Return the p-value of a group."""
        return combined_p_value(self.smallest(members))


def combined_p_value(values: np.ndarray, smallest: float = _SMALLEST_QUANTILE) -> float:
    """Return the p-value that combines those of several halves by the quantile rule.

    Examples
    --------
    >>> import numpy as np
    >>> from coterie.confidence.splits import combined_p_value
    >>> round(combined_p_value(np.array([0.001, 0.001, 1.0, 1.0])), 4)
    0.0048
    """
    ordered, n = np.sort(values), len(values)
    counts = np.arange(max(1, int(np.ceil(smallest * n))), n + 1)
    return float(min(1.0, (1.0 - np.log(smallest)) * (ordered[counts - 1] * n / counts).min()))


def tested_samples(data: Input, rows: np.ndarray) -> np.ndarray:
    """Return the samples for tests: all, or a sample of very many with equal numbers per class as far as possible."""
    return spread_sample(rows, None if data.classes is None else np.asarray(data.targets), _MOST_SAMPLES)


def n_testable(data: Input, rows: np.ndarray, most: int) -> int:
    """Return the number of features that some samples can test jointly."""
    n_units = len(rows) if data.groups is None else len(np.unique(data.groups[rows]))
    if data.classes is not None:
        n_units = min(n_units, 2 * int(np.bincount(data.targets[rows], minlength=2).min()))
    elif data.is_survival:
        n_units = min(n_units, 2 * int(data.targets["event"][rows].sum()))
    return max(1, min(most, n_units // _SAMPLES_PER_TEST))


def split_tests(
    data: Input,
    weights: Sequence[np.ndarray],
    selected: Sequence[np.ndarray],
    fixed: np.ndarray,
    most: int,
    family: Family,
) -> SplitTests | None:
    """Test the features selected in each half in the other half of the pair; None after a signal.

    Parameters
    ----------
    data : Input
        The data.
    weights : sequence of ndarray of shape (n_samples,)
        Sample weights of the halves. Halves 2k and 2k + 1 are complementary.
    selected : sequence of ndarray of int
        The features that each half has selected, the first one first.
    fixed : ndarray of int
        Features that are given in every test.
    most : int
        Most features per test.
    family : Family
        The regression of the tests.
    """
    features, values = [], []
    for number, own in enumerate(selected):
        if stop_requested():
            return None
        rows = tested_samples(data, np.flatnonzero(weights[number ^ 1] > 0))
        tested = own[: n_testable(data, rows, most)]
        features.append(tested)
        values.append(_corrected(data, rows, tested, fixed, family))
    return SplitTests(features, values)


def _corrected(data: Input, rows: np.ndarray, features: np.ndarray, fixed: np.ndarray, family: Family) -> np.ndarray:
    """Return the p-values of features in some samples, times the number of features and of outputs tested."""
    if len(features) == 0:
        return np.empty(0)
    tests = joint_tests(data, rows, np.append(features, fixed), family)
    found = [test.p_value[: len(features)] for test in tests]
    return np.minimum(1.0, np.min(found, axis=0) * len(features) * len(found))


def joint_tests(
    data: Input, rows: np.ndarray, features: np.ndarray, family: Family, *, jackknife: bool = False
) -> list[Estimate]:
    """Return the effects of features in a regression of each output on all of them and the covariates, in some samples.

    Their standard errors are those of tests. With sample groups and ``jackknife``, standard errors of least squares are at
    least those of leaving out one sample group at a time.
    """
    weight = np.ones(len(rows)) if data.weight is None else data.weight[rows]
    design = design_of(data, features, rows, weight)
    clusters = None if data.groups is None else np.unique(data.groups[rows], return_inverse=True)[1]
    own, found = slice(1, 1 + len(features)), []
    for output, offset in zip(outputs_of(data, rows), offsets_of(data, rows), strict=False):
        estimate = family.tests(design, output, weight, clusters, offset)
        if jackknife and clusters is not None and family.tests_linearly:
            known = output if offset is None else output - offset
            error = jackknife_errors(design, known, weight, clusters)
            estimate = estimate._replace(error=np.maximum(estimate.error, error))
        found.append(estimate.part(own))
    return found
