import inspect
import sys

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse
from scipy.sparse.linalg import ArpackError
from sklearn.feature_selection import SelectKBest, f_classif
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline

from coterie.data import as_source
from coterie.filters import (
    fisher_score,
    information_gain_score,
    laplacian_score,
    lgd_score,
    mcfs_score,
    relieff_score,
    variance_score,
)
from coterie.filters.selector import FilterSelector
from coterie.methods import SCORES
from tests.conftest import sparse_counts
from tests.filters import naive_scores

mcfs = sys.modules["coterie.filters.graph"]
NAIVE = {
    "variance": naive_scores.variance,
    "lgd": naive_scores.lgd,
    "laplacian": naive_scores.laplacian,
    "fisher": naive_scores.fisher,
    "relieff": naive_scores.relieff,
    "information_gain": naive_scores.information_gain,
}
NAMES = [name for name in SCORES if name != "correlation"]  # for numbers; tested separately


@pytest.fixture
def data(rng):
    y = np.array(["ant", "bee", "cow"])[rng.integers(0, 3, 70)]
    X = rng.standard_normal((70, 12)) + 2.0
    X[:, 3] += 2 * (y == "bee")
    X[:, 5] -= y == "cow"
    return X, y


@pytest.mark.parametrize("name", NAIVE)
def test_definition(name, data):
    X, y = data
    np.testing.assert_allclose(SCORES[name].load()(X, y), NAIVE[name](X, y), rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("name", NAIVE)
def test_definition_on_sparse_data(name, rng):
    """Sparse data with negative values, and distinct distances to avoid ties."""
    X = rng.standard_normal((60, 20)) * (rng.random((60, 20)) < 0.3)
    X[:, 0] = rng.standard_normal(60)
    y = rng.integers(0, 3, 60)
    X[:, 4] *= 1 + y
    scores = SCORES[name].load()(sparse.csc_array(X), y)
    np.testing.assert_allclose(scores, NAIVE[name](X, y), rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("form", ["F", "float32", "csc", "csr", "list", "source", "threads", "frame"])
def test_any_form_of_data(name, form, rng):
    X, y = sparse_counts(rng, 60, 40, density=0.3)
    X[:, 0] = rng.permutation(60)  # integer distances have ties, which must be broken equally in all formats
    expected = SCORES[name].load()(X, y, n_jobs=1)
    options = {}
    if form == "frame":
        X = pytest.importorskip("pandas").DataFrame(X)
    elif form == "threads":
        options = {"n_jobs": 3}
    else:
        X = {
            "F": np.asfortranarray,
            "float32": lambda X: X.astype(np.float32),
            "csc": sparse.csc_array,
            "csr": sparse.csr_matrix,
            "list": lambda X: X.tolist(),
            "source": as_source,
        }[form](X)
    np.testing.assert_allclose(SCORES[name].load()(X, y, **options), expected, rtol=1e-6, atol=1e-9)


@pytest.mark.parametrize("name", NAMES)
def test_bytes_are_used_as_they_are(name, rng):
    X = rng.integers(-3, 4, (50, 15)).astype(np.int8)
    y = rng.integers(0, 2, 50)
    np.testing.assert_allclose(SCORES[name].load()(X, y), SCORES[name].load()(X.astype(float), y), rtol=1e-12, atol=1e-15)


@pytest.mark.parametrize("name", NAMES)
def test_order_of_columns_and_samples(name, data, rng):
    X, y = data
    X[:, 7] = X[:, 3]
    expected = SCORES[name].load()(X, y)
    columns = rng.permutation(X.shape[1])
    scores = SCORES[name].load()(X[:, columns], y)
    np.testing.assert_allclose(scores, expected[columns], rtol=1e-6)
    assert scores[list(columns).index(3)] == pytest.approx(scores[list(columns).index(7)])
    rows = rng.permutation(len(X))
    scores = SCORES[name].load()(X[rows], y[rows])
    np.testing.assert_allclose(scores, expected, rtol=1e-6)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("kind", [np.asarray, sparse.csc_array])
def test_constant_features(name, kind, data):
    X, y = data
    X[:, 2], X[:, 8] = 0.1, 0.0
    scores = SCORES[name].load()(kind(X), y)
    assert scores[2] == scores[8] == 0.0
    assert np.isfinite(scores).all()


@pytest.mark.parametrize("name", NAMES)
def test_as_a_score_func_of_scikit_learn(name, data):
    X, y = data
    model = make_pipeline(SelectKBest(SCORES[name].load(), k=4), LogisticRegression()).fit(X, y)
    assert model[0].transform(X).shape == (70, 4)
    np.testing.assert_allclose(model[0].scores_, SCORES[name].load()(X, y))


def test_fisher_is_the_f_statistic(data):
    X, y = data
    np.testing.assert_allclose(fisher_score(X, y), f_classif(X, y)[0] * 2 / 67)


def test_fisher_of_perfect_features():
    X = np.array([[0, 5.0, 0.1], [0, 5.0, 0.4], [1, 5.0, 0.2], [1, 5.0, 0.9]])
    scores = fisher_score(X, [0, 0, 1, 1])
    assert scores[0] == pytest.approx(1e10)
    assert scores[1] == 0.0


def test_fisher_with_many_classes(rng):
    X, y = rng.standard_normal((120, 5)), np.repeat(np.arange(40), 3)
    np.testing.assert_allclose(fisher_score(X, y), naive_scores.fisher(X, y))


def test_lgd_of_few_values(rng):
    """Bits have no local variance; with the lower limit, the score depends on the variance."""
    X = (rng.random((100, 6)) < np.linspace(0.1, 0.6, 6)).astype(float)
    ratio = lgd_score(X) / variance_score(X)
    np.testing.assert_allclose(ratio, ratio[0])
    np.testing.assert_allclose(lgd_score(sparse.csc_array(X)), lgd_score(X))


def test_lgd_of_two_values_by_hand():
    X = np.array([[0.0, 0.0, 0.0, 0.0, 0.0, 1.0, 1.0, 1.0, 1.0, 1.0]]).T
    # The scatter is 2.5; a tenth of that of ten windows of 0, 1/9, 2/9, 3/9, 4/9, which is 10/81 each.
    assert lgd_score(X) == pytest.approx(2.5 / (0.1 * 10 * 10 / 81))


@pytest.mark.parametrize("neighborhood", ["values", "samples"])
def test_lgd_of_bits_equals_that_of_bits_with_noise(neighborhood, rng):
    bits = np.repeat([0.0, 1.0], 50)
    noise = rng.uniform(size=100)
    X = np.column_stack([bits, bits + 1e-6 * rng.standard_normal(100), bits + 1e-3 * noise, noise])
    exact, close, farther, even = lgd_score(X, neighborhood=neighborhood)
    assert close == pytest.approx(exact, rel=1e-3)
    assert farther == pytest.approx(exact, rel=0.02)
    assert exact > 3 * even  # two clusters have a higher score than noise


@given(st.lists(st.booleans(), min_size=8, max_size=30), st.integers(2, 6), st.floats(0.1, 50), st.integers(0, 99))
def test_lgd_changes_little_if_bits_change(bits, width, size, seed):
    f = size * np.array(bits, dtype=float)
    noisy = f + 1e-9 * size * np.random.default_rng(seed).uniform(-1, 1, len(f))
    if np.ptp(f) > 0.0:
        ours, theirs = (lgd_score(values[:, None], n_neighbors=width) for values in (f, noisy))
        assert theirs == pytest.approx(ours, rel=1e-6)


@pytest.mark.parametrize("kind", [np.asarray, sparse.csc_array])
def test_lgd_among_samples(kind, rng):
    X = np.round(3 * rng.random((40, 7))) + np.arange(40)[:, None] // 10 * (rng.random((40, 7)) < 0.5)
    X[:, 6] = 2.0
    np.testing.assert_allclose(
        lgd_score(kind(X), n_neighbors=4, neighborhood="samples")[:6], naive_scores.lgd_among_samples(X[:, :6], 4)
    )
    assert lgd_score(kind(X), neighborhood="samples")[6] == 0.0


def test_lgd_refuses_unknown_neighborhoods(data):
    with pytest.raises(ValueError, match="neighborhood='rows'"):
        lgd_score(data[0], neighborhood="rows")


def test_laplacian_by_hand():
    """Two distant pairs of samples: neighbours are the samples of a pair, and all weights are equal."""
    X = np.array([[0.0, 0.0], [0.0, 1.0], [9.0, 0.0], [9.0, 1.0]])
    # f1 is constant along edges; f2 changes along both: f'Lf = 2 w, f'Df = 4 w / 4.
    np.testing.assert_allclose(laplacian_score(X, n_neighbors=1), [1.0, 1.0 - 2.0])


@pytest.mark.parametrize("kind", [np.asarray, sparse.csc_array])
def test_laplacian_on_the_full_graph(kind, data):
    X = data[0]
    ours = laplacian_score(kind(X), graph="full", sigma=1.7)
    np.testing.assert_allclose(ours, naive_scores.laplacian(X, W=naive_scores.full_graph(X, 1.7)), rtol=1e-7, atol=1e-9)
    squared = ((X[:, None] - X[None]) ** 2).sum(axis=2)
    width = np.sqrt(squared.sum() / (len(X) * (len(X) - 1)) / 2)
    np.testing.assert_allclose(laplacian_score(X, graph="full"), laplacian_score(X, graph="full", sigma=width), rtol=1e-9)


def test_width_of_the_heat_kernel(data):
    X = data[0]
    W = naive_scores.graph(X)
    squared = ((X[:, None] - X[None]) ** 2).sum(axis=2)
    linked = np.where(W > 0, np.exp(-squared / (2 * 0.9**2)), 0.0)
    np.testing.assert_allclose(laplacian_score(X, sigma=0.9), naive_scores.laplacian(X, W=linked), rtol=1e-7, atol=1e-9)


def test_full_graphs_have_a_maximum_size(monkeypatch, data):
    monkeypatch.setattr("coterie.filters.graph._MAX_FULL", 10)
    with pytest.raises(ValueError, match="graph='full' supports up to 10 samples"):
        laplacian_score(data[0], graph="full")


@pytest.mark.parametrize(("options", "message"), [({"graph": "all"}, "graph='all'"), ({"sigma": 0}, "sigma=0")])
def test_laplacian_refuses_invalid_parameters(options, message, data):
    with pytest.raises(ValueError, match=message):
        laplacian_score(data[0], **options)


def test_relieff_by_hand():
    X = np.array([[0.0, 0.0], [0.0, 1.0], [4.0, 0.0], [4.0, 1.0]])
    y = [0, 0, 1, 1]
    # Hit: the other of the class, at distance 1 in the second feature; nearest miss: equal in the second.
    np.testing.assert_allclose(relieff_score(X, y, n_neighbors=1), [1.0, -1.0])


def test_relieff_probes(data):
    X, y = data
    some = relieff_score(X, y, n_probes=20, random_state=3)
    np.testing.assert_array_equal(some, relieff_score(X, y, n_probes=20, random_state=3))
    probes = np.sort(np.random.RandomState(3).choice(70, 20, replace=False))
    np.testing.assert_allclose(some, naive_scores.relieff(X, y, probes=probes))


def test_relieff_with_a_class_of_one(rng):
    X, y = rng.standard_normal((20, 4)), np.array([0] * 10 + [1] * 9 + [2])
    with pytest.warns(UserWarning, match="Class 2 has one sample"):
        np.testing.assert_allclose(relieff_score(X, y), naive_scores.relieff(X, y))


def test_mcfs_path_equals_that_of_all_features(rng):
    """The path on few features with checks equals scikit-learn's on all."""
    from sklearn.linear_model import lars_path

    from coterie.filters.graph import _path_end

    X = rng.standard_normal((40, 300))
    source = as_source(X)
    moments = source.moments()
    response = rng.standard_normal(40)
    response -= response.mean()
    features, coef = _path_end(source, moments, np.arange(300), response, 8, 1)
    unit = (X - moments.mean) / moments.norm
    expected = lars_path(unit, response, method="lar", max_iter=8)[2][:, -1]
    full = np.zeros(300)
    full[features] = coef
    np.testing.assert_allclose(full, expected, atol=1e-10)
    assert len(features) < 300


def test_mcfs_of_a_disconnected_graph(rng):
    """Three distant clusters are distinguished by the eigenvectors and by the selected features."""
    X = rng.standard_normal((90, 10))
    X[:30, 1] += 60
    X[30:60, 2] += 60
    scores = mcfs_score(X, n_clusters=2, n_neighbors=3, n_nonzero=2)
    assert set(np.argsort(-scores)[:2]) == {1, 2}


def test_mcfs_finds_late_features(rng):
    """A feature that is weak alone enters after others, although it is not in the first working set."""
    hidden = rng.standard_normal((60, 1))
    noise = rng.standard_normal((60, 400))
    X = np.hstack([hidden + 0.5 * noise[:, :200], noise[:, 200:]])
    from coterie.filters.graph import _path_end

    source = as_source(X)
    moments = source.moments()
    response = (hidden[:, 0] - hidden.mean()) + 0.3 * (noise[:, 300] - noise[:, 300].mean())
    features, coef = _path_end(source, moments, np.arange(400), response, 3, 1)
    from sklearn.linear_model import lars_path

    unit = (X - moments.mean) / moments.norm
    expected = lars_path(unit, response, method="lar", max_iter=3)[2][:, -1]
    np.testing.assert_array_equal(np.sort(features[coef != 0]), np.flatnonzero(expected))


def test_information_gain_bins(data):
    X, y = data
    np.testing.assert_allclose(information_gain_score(X, y, n_bins=3), naive_scores.information_gain(X, y, 3))


@pytest.mark.parametrize("name", NAMES)
def test_missing_values(name, data):
    X, y = data
    X[4, 6] = np.nan
    for form in (X, sparse.csc_array(X)):
        with pytest.raises(ValueError, match=r"1 NaN or infinite value\(s\).*sample 4 of feature 6"):
            SCORES[name].load()(form, y)


@pytest.mark.parametrize("name", [name for name in NAMES if SCORES[name].supervised])
@pytest.mark.parametrize(
    ("labels", "message"),
    [
        (None, "requires y to be passed"),
        ([1] * 70, "only one class"),
        ([0, 1], "inconsistent numbers of samples"),
        ([None] + ["a", "b", "c"] * 23, "1 label.s. are missing"),
        (np.linspace(0, 1, 70), "Unknown label type"),
    ],
)
def test_bad_labels(name, labels, message, data):
    with pytest.raises(ValueError, match=message):
        SCORES[name].load()(data[0], labels)


@pytest.mark.parametrize("name", [name for name in NAMES if not SCORES[name].supervised])
def test_labels_are_not_needed(name, data):
    X, y = data
    np.testing.assert_array_equal(SCORES[name].load()(X), SCORES[name].load()(X, y))


@pytest.mark.parametrize(
    "call",
    [
        lambda X, y: lgd_score(X, n_neighbors=1),
        lambda X, y: laplacian_score(X, n_neighbors=0),
        lambda X, y: mcfs_score(X, n_clusters=0),
        lambda X, y: mcfs_score(X, n_nonzero=1.5),
        lambda X, y: relieff_score(X, y, n_neighbors=0),
        lambda X, y: relieff_score(X, y, n_probes=71),
        lambda X, y: information_gain_score(X, y, n_bins=1),
    ],
)
def test_bad_parameters(call, data):
    with pytest.raises(ValueError, match=r"n_\w+="):
        call(*data)


@pytest.mark.parametrize("name", NAMES)
def test_text(name, data):
    with pytest.raises(ValueError, match="Features must be numbers"):
        SCORES[name].load()([["a", "b"], ["c", "d"]], [0, 1])


@pytest.mark.filterwarnings("ignore:Class 0 and 1 other")
@pytest.mark.parametrize("name", NAMES)
def test_two_samples_and_one_feature(name):
    scores = SCORES[name].load()([[0.0], [1.0]], [0, 1])
    assert scores.shape == (1,)
    assert np.isfinite(scores).all()


FAR = ["lgd", "laplacian", "mcfs", "relieff"]


@pytest.mark.parametrize("name", FAR)
@pytest.mark.parametrize("kind", [np.asarray, sparse.csc_array])
def test_means_far_above_the_deviations(name, kind, rng):
    """Distances between samples do not depend on the means, even for 0.3 + 1e-12 X."""
    near = np.round(rng.standard_normal((40, 6)) * 8)
    near[:20, 2] += 32
    y = np.arange(40) // 20
    step = 2.0**-50 if name == "relieff" else 2.0**-42  # the other scores require a representable mean
    far = 0.375 + near * step
    assert ((far - 0.375) / step == near).all()
    options = {"neighborhood": "samples"} if name == "lgd" else {}
    score = SCORES[name].load()
    np.testing.assert_allclose(score(kind(far), y, **options), score(near, y, **options), rtol=1e-6, atol=1e-9)


def test_relieff_of_a_negligible_range(data):
    """The inverse of the smallest numbers is infinite; a feature that varies by less than 1e-75 is constant."""
    X, y = data
    tiny = X.copy()
    tiny[:, 0] *= 1e-320
    constant = X.copy()
    constant[:, 0] = 0.0
    np.testing.assert_array_equal(relieff_score(tiny, y), relieff_score(constant, y))


@pytest.mark.parametrize("error", [ArpackError(-9), np.linalg.LinAlgError("x"), RuntimeError("Factor is exactly singular")])
def test_mcfs_if_the_iterative_solver_fails(error, monkeypatch, rng):
    X = rng.standard_normal((40, 6)) + np.repeat([0, 3], 20)[:, None]
    expected = mcfs_score(X, n_clusters=2)

    def fail(*_, **__):
        raise error

    monkeypatch.setattr(mcfs, "spectral_embedding", fail)
    np.testing.assert_allclose(mcfs_score(X, n_clusters=2), expected, rtol=1e-6)
    monkeypatch.setattr(mcfs, "_MAX_DENSE", 39)
    with pytest.raises(ValueError, match=r"mcfs_score cannot be computed, .* Increase n_neighbors"):
        mcfs_score(X, n_clusters=2)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("wrong", ["2", 2.5, True, float("nan"), [1]])
def test_wrong_numbers_of_threads(name, wrong, data):
    with pytest.raises(ValueError, match=r"n_jobs=.* must be a whole number"):
        SCORES[name].load()(*data, n_jobs=wrong)


@pytest.mark.parametrize("name", NAMES)
def test_huge_parameters(name, data):
    """No parameter overflows in a kernel."""
    score = SCORES[name].load()
    for parameter in inspect.signature(score).parameters:
        if parameter in ("n_neighbors", "n_clusters", "n_nonzero", "n_jobs"):
            assert np.isfinite(score(*data, **{parameter: 10**30})).all()
        elif parameter in ("n_bins", "n_probes"):
            with pytest.raises(ValueError, match=parameter):
                score(*data, **{parameter: 10**30})


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ("n_neighbors", "parameters='n_neighbors' must be a dictionary of names and values or None"),
        (np.arange(3), "parameters=.* must be a dictionary"),
        ({1: 2}, "parameters={1: 2} must be a dictionary of names"),
        (
            {"n_neighbours": 3},
            "parameters has the key 'n_neighbours', which is not a parameter of relieff_score. Its parameters are n_neighbors",
        ),
        ({"X": 3}, "parameters has the key 'X'"),
        ({"n_neighbors": 0}, "n_neighbors=0"),
    ],
)
def test_wrong_parameters_of_a_selector(parameters, message, data):
    with pytest.raises(ValueError, match=message):
        FilterSelector("relieff", 2, parameters=parameters).fit(*data)
