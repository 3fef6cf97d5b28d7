"""Fits in several threads do not change the warning filters, and warn as in a single thread."""

import threading
import warnings
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning
from sklearn.naive_bayes import GaussianNB

import coterie
from coterie._warnings import _FILTERS, ignored, recorded
from coterie.filters.selector import FilterSelector
from coterie.probing.criteria import ClusteringCriterion
from tests.conftest import grouped_matrix

N_THREADS = 8


def together(*functions):
    """Call each function in its own thread. All start at the same time."""
    barrier = threading.Barrier(len(functions))

    def begin(function):
        barrier.wait()
        return function()

    with ThreadPoolExecutor(len(functions)) as pool:
        return [future.result() for future in [pool.submit(begin, function) for function in functions]]


def effective_filters():
    """Return the filters without those that scikit-learn's blocks leave behind, and ours, which then have no effect."""
    foreign = (np.exceptions.ComplexWarning, np.exceptions.VisibleDeprecationWarning)
    return [one for one in warnings.filters if one not in _FILTERS and one[2] not in foreign]


@pytest.fixture
def same_filters():
    before = effective_filters(), warnings.showwarning
    yield
    assert (effective_filters(), warnings.showwarning) == before


def make_fit(estimator, X, y):
    def fit():
        for _ in range(3):
            estimator.fit(X, y)

    return fit


@pytest.mark.usefixtures("same_filters")
def test_selectors():
    X, y = grouped_matrix(np.random.default_rng(0), n_features=20)
    target = X[:, 0] + 0.1 * y
    probes = {"n_features_to_select": 2, "n_probes": 40, "random_state": 0}
    fits = [
        make_fit(
            coterie.GlobalRedundancySelector("fisher", 3, fdr=None, n_candidates="cv", options={"estimator": GaussianNB()}),
            X,
            y,
        ),
        make_fit(
            coterie.GlobalRedundancySelector("fisher", 3, fdr=None, redundancy="sparse_representation", n_candidates=10), X, y
        ),
        make_fit(coterie.DependencyAwareSelector(coterie.LinearSVMCriterion(), **probes), X, y),
        make_fit(coterie.DependencyAwareSelector(ClusteringCriterion(3), **probes), X, y),
        make_fit(coterie.baselines.LassoSelector(3), X, target),
        make_fit(FilterSelector("mcfs", 3), X, y),
    ]
    together(*fits, *fits[:2])


def test_validated_fits_and_confidences():
    before = effective_filters()
    X, y = grouped_matrix(np.random.default_rng(0), n_features=20)
    model = coterie.GroupDiscoveryClassifier(3, n_jobs=1).fit(X, y)

    def confidence():
        coterie.group_confidence(model, X, y, n_pairs=3, n_permutations=1, random_state=0, n_jobs=1)

    fit = make_fit(coterie.GroupDiscoveryClassifierCV(4, Cs=2, cv=3, n_jobs=1), X, y)
    together(*[fit, confidence] * (N_THREADS // 2))
    assert effective_filters() == before


@pytest.mark.usefixtures("same_filters")
def test_blocks_that_overlap():
    """The block that starts first ends first: catch_warnings would leave its filter behind."""
    inside, ended = threading.Event(), threading.Event()

    def first():
        with ignored(ConvergenceWarning):
            assert inside.wait(10)
        ended.set()

    def second():
        with ignored(RuntimeWarning):
            inside.set()
            assert ended.wait(10)
            warnings.warn("ignored here", RuntimeWarning, stacklevel=1)
            with pytest.warns(ConvergenceWarning, match="not ignored here"):
                warnings.warn("not ignored here", ConvergenceWarning, stacklevel=1)

    together(first, second)
    assert not set(_FILTERS) & set(warnings.filters)


@pytest.mark.usefixtures("same_filters")
def test_warnings_of_other_threads_are_neither_ignored_nor_recorded():
    begun, warned = threading.Event(), threading.Event()

    def quiet():
        with recorded() as record, ignored(ConvergenceWarning):
            begun.set()
            assert warned.wait(10)
            warnings.warn("mine", UserWarning, stacklevel=1)
            warnings.warn("ignored", ConvergenceWarning, stacklevel=1)
        return record

    def loud():
        assert begun.wait(10)
        try:
            warnings.warn("theirs", ConvergenceWarning, stacklevel=1)  # an error in tests
        finally:
            warned.set()

    with ThreadPoolExecutor(2) as pool:
        first, second = pool.submit(quiet), pool.submit(loud)
        with pytest.raises(ConvergenceWarning, match="theirs"):
            second.result()
        assert first.result() == [(UserWarning, "mine")]


@pytest.mark.usefixtures("same_filters")
def test_ignored_categories_and_nesting():
    with ignored(UserWarning):
        warnings.warn("a", UserWarning, stacklevel=1)
        with pytest.raises(RuntimeWarning, match="b"):
            warnings.warn("b", RuntimeWarning, stacklevel=1)
        with recorded() as record, ignored(RuntimeWarning):
            warnings.warn("c", UserWarning, stacklevel=1)
            warnings.warn("d", RuntimeWarning, stacklevel=1)
        assert record == [(UserWarning, "c")]
    with ignored():
        warnings.warn("anything", RuntimeWarning, stacklevel=1)
    with pytest.raises(ZeroDivisionError), ignored():
        1 / 0  # noqa: B018
    with pytest.raises(UserWarning, match="e"):
        warnings.warn("e", UserWarning, stacklevel=1)


@pytest.mark.usefixtures("same_filters")
def test_a_warning_is_recorded_each_time():
    def warn():
        warnings.warn("again", UserWarning, stacklevel=1)

    with warnings.catch_warnings():
        warnings.simplefilter("default")
        with pytest.warns(UserWarning, match="again"):
            warn()
        for _ in range(2):
            with recorded() as record:
                warn()
            assert record == [(UserWarning, "again")]
