import warnings

import numpy as np
import pytest
from joblib import parallel_config
from scipy import sparse
from sklearn.base import clone
from sklearn.feature_selection import chi2, f_classif
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.utils.estimator_checks import parametrize_with_checks

from coterie import FeatureGroup, FeatureGroups
from coterie.data import FeatureView, as_source
from coterie.datasets import make_block_gaussian
from coterie.filters import fisher_score
from coterie.methods import SCORES
from coterie.metrics import correct_move_rate, squared_redundancy
from tests import naive
from tests.redundancy import by_weights


@pytest.mark.filterwarnings("ignore:.*better than chance")
@parametrize_with_checks(
    [
        by_weights(n_features_to_select=1),
        by_weights("variance", 0.5, n_candidates=None),
    ]
)
def test_scikit_learn_contract(estimator, check):
    check(estimator)


@pytest.fixture(scope="module")
def blocks():
    return make_block_gaussian(200, 8, 6, random_state=1)


def mrmr(s, A, k):
    """Greedy minimum redundancy, maximum relevance, in its quotient form."""
    chosen = [int(np.argmax(s))]
    while len(chosen) < k:
        value = s / np.maximum(A[:, chosen].mean(axis=1), 1e-3)
        value[chosen] = -np.inf
        chosen.append(int(np.argmax(value)))
    return sorted(chosen)


def test_example_of_the_paper():
    """Scores 10, 9.8, 9.5 and 1; the first feature is correlated with the second and the third (section 2, figure 1)."""
    s = np.array([10, 9.8, 9.5, 1])
    A = np.eye(4)
    A[0, 1:3] = A[1:3, 0] = 0.45
    model = by_weights(s, 2, redundancy="precomputed", n_candidates=None).fit(A)
    assert list(np.flatnonzero(model.get_support())) == [1, 2]
    assert mrmr(s, A, 2) == [0, 3]


def test_example_of_the_paper_from_data(rng):
    a, b, c, d = np.linalg.qr(rng.standard_normal((50, 4)) - 0.0)[0].T
    a, b, c, d = (v - v.mean() for v in (a, b, c, d))
    X = np.column_stack([a + b, a + 0.2 * c, b - 0.2 * c, d])
    model = by_weights([10, 9.8, 9.5, 1], 2).fit(X)
    assert list(model._kept()) == [1, 2]


def test_fitted_attributes(blocks):
    model = by_weights("fisher", 8, n_candidates=None).fit(blocks.X, blocks.y)
    np.testing.assert_allclose(model.scores_, fisher_score(blocks.X, blocks.y))
    z, r = model.refined_scores_, model.relevance_
    A = naive.correlation(blocks.X) ** 2
    assert z.sum() == pytest.approx(1.0)
    assert model.objective_ == pytest.approx((z @ A @ z) / (z @ r))
    assert 0 <= model.duality_gap_ <= 1e-5
    assert model.n_iter_ >= 1
    assert model.working_set_size_ <= 48
    assert sorted(model.ranking_) == list(range(1, 49))
    np.testing.assert_array_equal(np.flatnonzero(model.ranking_ <= 8), model._kept())
    assert model.transform(blocks.X).shape == (200, 8)
    assert list(model.get_feature_names_out()) == [f"x{j}" for j in model._kept()]


def test_ranking_is_by_weight_then_score(blocks):
    model = by_weights("fisher", 3, n_candidates=12).fit(blocks.X, blocks.y)
    order = np.argsort(model.ranking_)
    positive = int((model.refined_scores_ > 0).sum())
    assert (np.diff(model.refined_scores_[order[:positive]]) <= 1e-12).all()
    assert (np.diff(model.scores_[order[positive:]]) <= 1e-12).all()
    assert len(model.candidates_) == 12
    assert set(np.flatnonzero(model.refined_scores_)) <= set(model.candidates_)
    np.testing.assert_array_equal(np.sort(model.candidates_), np.sort(np.argsort(-model.scores_)[:12]))


def test_one_of_each_block(blocks):
    model = by_weights("fisher", 8, n_candidates=None).fit(blocks.X, blocks.y)
    best = np.argsort(-model.scores_)[:8]
    ours, theirs = (
        {g for g, group in enumerate(blocks.groups) if np.isin(group.members, chosen).any()}
        for chosen in (model._kept(), best)
    )
    assert len(ours) > len(theirs)
    assert squared_redundancy(blocks.X, model._kept()) < 0.5 * squared_redundancy(blocks.X, best)


@pytest.mark.parametrize("name", SCORES)
def test_scores_by_name(name, blocks):
    model = by_weights(name, 5).fit(blocks.X, blocks.y if SCORES[name].supervised else None)
    np.testing.assert_allclose(model.scores_, np.maximum(SCORES[name].load()(blocks.X, blocks.y), 0), atol=1e-12)
    assert model.get_support().sum() == 5


def test_scores_of_scikit_learn(blocks):
    model = by_weights(f_classif, 5).fit(blocks.X, blocks.y)
    np.testing.assert_allclose(model.scores_, f_classif(blocks.X, blocks.y)[0])
    same = by_weights("fisher", 5).fit(blocks.X, blocks.y)
    np.testing.assert_array_equal(model.relevance_ > 0.0, same.relevance_ > 0.0)  # the same p-values
    model = by_weights(f_classif, 5, fdr=None).fit(blocks.X, blocks.y)
    given = by_weights(list(model.scores_), 5).fit(blocks.X)
    np.testing.assert_array_equal(model.ranking_, given.ranking_)
    counts = np.abs(blocks.X).round()
    assert by_weights(chi2, 5, fdr=None).fit(sparse.csr_array(counts), blocks.y).get_support().sum() == 5


def test_callable_gets_y_or_none(blocks):
    seen = []

    def score(X, y):
        seen.append((X.shape, y is None))
        return X.var(axis=0)

    by_weights(score, 5).fit(blocks.X)
    by_weights(score, 5).fit(blocks.X.tolist(), blocks.y)
    assert seen == [((200, 48), True), ((200, 48), False)]


@pytest.mark.parametrize("form", ["F", "float32", "csc", "csr", "frame", "source", "threads"])
def test_any_form_of_data(form, blocks):
    X = blocks.X.round(2)
    expected = by_weights("fisher", 8, n_jobs=1).fit(X, blocks.y)
    options = {"n_jobs": 3} if form == "threads" else {}
    if form == "frame":
        data = pytest.importorskip("pandas").DataFrame(X, columns=[f"gene{j}" for j in range(48)])
    else:
        convert = {
            "F": np.asfortranarray,
            "float32": lambda X: X.astype(np.float32),
            "csc": sparse.csc_array,
            "csr": sparse.csr_matrix,
            "source": as_source,
            "threads": np.asarray,
        }
        data = convert[form](X)
    model = by_weights("fisher", 8, **options).fit(data, blocks.y)
    np.testing.assert_array_equal(model.ranking_, expected.ranking_)
    np.testing.assert_allclose(model.refined_scores_, expected.refined_scores_, atol=1e-5)
    if form in ("csc", "csr"):
        assert model.transform(data).format == form
    if form == "frame":
        assert list(model.get_feature_names_out()) == [f"gene{j}" for j in model._kept()]
        out = model.set_output(transform="pandas").transform(data)
        assert list(out.columns) == list(model.get_feature_names_out())


def test_bytes_are_used_as_they_are(rng):
    X = rng.integers(0, 3, (60, 40)).astype(np.int8)
    y = rng.integers(0, 2, 60)
    a, b = (by_weights("fisher", 5, n_candidates=None, fdr=None).fit(data, y) for data in (X, X.astype(float)))
    np.testing.assert_array_equal(a.ranking_, b.ranking_)
    assert a.transform(X).dtype == np.int8


@pytest.mark.parametrize("score", ["fisher", "lgd", "mcfs", "ties"])
@pytest.mark.parametrize("kind", [np.asarray, sparse.csc_array])
def test_order_of_columns(score, kind, rng):
    """Ties, copies and constant features among the columns; the ranking of contents is the same in any order."""
    X = rng.standard_normal((50, 30)).round(1)
    X[:, 7], X[:, 20], X[:, 25] = X[:, 3], -X[:, 3], 4.0
    y = rng.integers(0, 2, 50)
    columns = rng.permutation(30)
    if score == "ties":
        given = np.repeat([3.0, 2.0, 1.0], 10)
        a = by_weights(given, 6, n_candidates=None).fit(kind(X))
        b = by_weights(given[columns], 6, n_candidates=None).fit(kind(X[:, columns]))
    else:
        a = by_weights(score, 6, n_candidates=None, fdr=None).fit(kind(X), y)
        b = by_weights(score, 6, n_candidates=None, fdr=None).fit(kind(X[:, columns]), y)
    first, second = X[:, np.argsort(a.ranking_)], X[:, columns][:, np.argsort(b.ranking_)]
    np.testing.assert_array_equal(first, second)
    np.testing.assert_allclose(np.sort(a.refined_scores_), np.sort(b.refined_scores_), atol=1e-9)


def test_names_decide_between_copies(rng):
    pd = pytest.importorskip("pandas")
    X = pd.DataFrame(rng.standard_normal((30, 4)), columns=list("bdac"))
    X["e"] = X["a"]
    for order in (list("bdace"), list("ecadb")):
        model = by_weights("variance", 4, n_candidates=None).fit(X[order])
        weights = dict(zip(order, model.refined_scores_, strict=True))
        assert weights["a"] > 0
        assert weights["e"] == 0


def test_constant_features_are_last(blocks):
    X = blocks.X.copy()
    X[:, [3, 11]] = 7.0
    for scores in ("fisher", np.ones(48), np.where(np.isin(np.arange(48), [3, 11]), np.nan, 1.0)):
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", message="Only .* candidates have a refined score above 0")
            model = by_weights(scores, 46, n_candidates=None).fit(X, blocks.y)
        assert set(np.flatnonzero(model.ranking_ > 46)) == {3, 11}
        assert (model.scores_[[3, 11]] == 0).all()
        assert (model.refined_scores_[[3, 11]] == 0).all()


def test_pool_excludes_scores_of_zero(blocks):
    scores = np.zeros(48)
    scores[:5] = [5, 4, 3, 2, 1]
    model = by_weights(scores, 4).fit(blocks.X)
    assert len(model.candidates_) == 5
    everyone = by_weights(scores, 4, n_candidates=None).fit(blocks.X)
    assert len(everyone.candidates_) == 48


def test_one_feature():
    model = by_weights("variance", 1).fit([[1.0], [2.0], [4.0]])
    assert model.ranking_ == [1]
    assert model.refined_scores_ == [1.0]
    assert model.objective_ == pytest.approx(1.0)


def test_in_pipelines_and_searches(blocks):
    pipeline = make_pipeline(by_weights("fisher", 5), LogisticRegression())
    search = GridSearchCV(
        pipeline,
        {
            "globalredundancyselector__score_func": ["fisher", "variance", f_classif],
            "globalredundancyselector__n_features_to_select": [2, 0.25],
        },
        cv=3,
    ).fit(blocks.X, blocks.y)
    assert search.best_score_ > 0.7
    with parallel_config(backend="threading"):
        assert cross_val_score(pipeline, blocks.X, blocks.y, cv=3, n_jobs=2).min() > 0.7
    array = by_weights(np.ones(48), 3)
    again = clone(array).fit(blocks.X)
    assert again.get_support().sum() == 3
    assert "score_func" in repr(array)


def test_alm_agrees(blocks):
    ours = by_weights("fisher", 8, n_candidates=None).fit(blocks.X, blocks.y)
    theirs = by_weights("fisher", 8, n_candidates=None, options={"method": "alm"}).fit(blocks.X, blocks.y)
    assert theirs.objective_ == pytest.approx(ours.objective_, rel=1e-5)
    np.testing.assert_allclose(theirs.refined_scores_, ours.refined_scores_, atol=1e-4)


def test_groups_move_together(blocks):
    rng = np.random.default_rng(0)
    pairs = rng.permutation(48)[:20].reshape(10, 2)
    free = by_weights("fisher", 8, n_candidates=None).fit(blocks.X, blocks.y)
    bound = by_weights("fisher", 8, n_candidates=None, groups=pairs.tolist(), options={"group_strength": 50.0})
    bound.fit(blocks.X, blocks.y)
    assert correct_move_rate(free.ranking_, bound.ranking_, pairs) >= 0.8
    spread = [abs(np.diff(model.refined_scores_[pairs])).sum() for model in (free, bound)]
    assert spread[1] < 0.2 * spread[0]
    as_groups = FeatureGroups([FeatureGroup(int(a), [int(b)]) for a, b in pairs])
    same = clone(bound).set_params(groups=as_groups).fit(blocks.X, blocks.y)
    np.testing.assert_array_equal(same.ranking_, bound.ranking_)


def test_groups_by_name(blocks):
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame(blocks.X, columns=[f"g{j}" for j in range(48)])
    a = by_weights("fisher", 8, groups=[["g1", "g5"]]).fit(frame, blocks.y)
    b = by_weights("fisher", 8, groups=[[1, 5]]).fit(frame, blocks.y)
    np.testing.assert_array_equal(a.ranking_, b.ranking_)


def test_matrices_of_the_user(blocks):
    A = naive.correlation(blocks.X) ** 2
    expected = by_weights("fisher", 8).fit(blocks.X, blocks.y)
    precomputed = by_weights(expected.relevance_, 8, redundancy="precomputed").fit(A)
    np.testing.assert_array_equal(precomputed.ranking_, expected.ranking_)
    assert precomputed.objective_ == pytest.approx(expected.objective_ * expected.relevance_.max())
    for model in (
        by_weights("fisher", 8, redundancy=A).fit(blocks.X, blocks.y),
        by_weights("fisher", 8, redundancy=lambda X: np.corrcoef(X.T) ** 2).fit(blocks.X, blocks.y),
    ):
        np.testing.assert_array_equal(model.ranking_, expected.ranking_)
        assert model.objective_ == pytest.approx(expected.objective_)
    assert model.transform(blocks.X).shape == (200, 8)


def test_mutual_information_detects_nonlinear_dependence(rng):
    a = rng.uniform(-1, 1, 300)
    X = np.column_stack([a, a**2, rng.uniform(-1, 1, 300)])
    scores = [1.0, 0.9, 0.6]
    linear = by_weights(scores, 2, redundancy="cosine2").fit(X)
    binned = by_weights(scores, 2, redundancy="mutual_info").fit(X)
    assert list(linear._kept()) == [0, 1]
    assert list(binned._kept()) == [0, 2]
    assert binned.duality_gap_ <= 1e-5


def test_mutual_information_matrix(rng):
    from coterie.redundancy.measures import mutual_information
    from tests.filters.naive_scores import entropy

    X = rng.standard_normal((80, 6))
    X[:, 1] += X[:, 0]
    source = as_source(X)
    M = mutual_information(FeatureView.of(source), np.arange(6))
    bins = np.minimum(((X - X.min(axis=0)) / np.ptp(X, axis=0) * 10).astype(int), 9)
    H = [entropy(b) for b in bins.T]
    for i in range(6):
        for j in range(i):
            information = H[i] + H[j] - entropy(bins[:, i] * 10 + bins[:, j])
            assert M[i, j] == pytest.approx(information / np.sqrt(H[i] * H[j]))
    assert np.linalg.eigvalsh(M)[0] >= 0


def test_unconverged(blocks):
    from sklearn.exceptions import ConvergenceWarning

    with pytest.warns(ConvergenceWarning, match="relative gap"):
        model = by_weights("fisher", 8, n_candidates=None, options={"tol": 1e-300, "max_iter": 1}).fit(blocks.X, blocks.y)
    assert model.duality_gap_ > 0
