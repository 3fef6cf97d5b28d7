"""Statistics of the data in a report, compared with naive code."""

import numpy as np
import pytest
from scipy import sparse
from sklearn.linear_model import LinearRegression
from sklearn.metrics import accuracy_score, r2_score

import coterie
from coterie import GroupDiscoveryClassifier, GroupDiscoveryClassifierCV, GroupDiscoveryRegressor
from coterie.inputs.targets import spread_sample
from coterie.report import Discovery, describe
from coterie.report.assembly import data_digest
from coterie.report.details import genome_of
from coterie.report.held_out import score_curve
from tests.conftest import grouped_matrix


def data_of(kind, seed=0):
    X, y = grouped_matrix(np.random.default_rng(seed), n_features=40)
    if kind == "classes":
        y = np.array(["a", "b", "c"])[np.digitize(X[:, 0] + X[:, 5], [-0.7, 0.7])]
    return X, y


@pytest.mark.parametrize("kind", ["two", "classes", "sparse"])
def test_statistics_by_class(kind):
    X, y = data_of(kind)
    X = np.where(np.abs(X) < 0.6, 0.0, X) if kind == "sparse" else X
    model = GroupDiscoveryClassifier(4).fit(X, y)
    details = describe(model, sparse.csc_array(X) if kind == "sparse" else X, y)
    for g, support in enumerate(model.groups_.support):
        assert details.scale[g] == pytest.approx(X[:, support].std())
        for c, label in enumerate(model.classes_):
            own = X[y == label, support]
            row = details.statistics[g][c]
            assert (row["n"], row["mean"], row["sd"]) == pytest.approx((len(own), own.mean(), own.std()))
            assert [row["q1"], row["median"], row["q3"]] == pytest.approx(np.quantile(own, [0.25, 0.5, 0.75]).tolist())
        np.testing.assert_array_equal(details.values[g], X[details.samples, support])


@pytest.mark.parametrize("measure", ["pearson", "spearman"])
def test_correlations_between_members(measure):
    X, y = data_of("two")
    model = GroupDiscoveryClassifier(3, threshold=0.4, correlation=measure).fit(X, y)
    ranks = np.argsort(np.argsort(X, axis=0), axis=0) if measure == "spearman" else X
    kept = 0
    for group, entry in zip(model.groups_, describe(model, X, y).correlations, strict=True):
        assert (entry is None) == (len(group) == 1)
        if entry is not None:
            members, matrix = entry
            np.testing.assert_allclose(matrix, np.corrcoef(ranks[:, group.members[members]].T), atol=1e-9)
            kept += 1
    assert kept


@pytest.mark.parametrize("kind", ["two", "classes", "regression", "sparse"])
@pytest.mark.parametrize("standardize", [True, False])
def test_training_curve_is_that_of_smaller_models(kind, standardize):
    X, y = data_of(kind)
    X, y = (
        (sparse.csc_array(np.where(X < 0.5, 0.0, X)) if kind == "sparse" else X),
        (X[:, 1] + y if kind == "regression" else y),
    )
    make = GroupDiscoveryRegressor if kind == "regression" else GroupDiscoveryClassifier
    score = r2_score if kind == "regression" else accuracy_score
    curve = describe(model := make(6, standardize=standardize).fit(X, y), X, y).training
    assert curve["sizes"] == [entry.n_support for entry in model.history_]
    for size, value in zip(curve["sizes"], curve["score"], strict=True):
        assert value == pytest.approx(score(y, make(size, standardize=standardize).fit(X, y).predict(X)))


def test_discrete_values_are_counted():
    rng = np.random.default_rng(0)
    y = np.repeat([0, 1], 100)
    snp = rng.binomial(2, 0.2 + 0.5 * y)
    words = rng.poisson(0.3 + 0.4 * y) * np.where(rng.random(200) < 0.1, 7, 1)
    X = np.column_stack([snp, words, rng.standard_normal((200, 3))]).astype(float)
    details = describe(model := GroupDiscoveryClassifier(5).fit(X, y), X, y)
    places = model.groups_.support.tolist()
    genotypes, counts = details.levels[places.index(0)], details.levels[places.index(1)]
    assert genotypes == {"names": ["0", "1", "2"], "counts": [np.bincount(snp[y == c], minlength=3).tolist() for c in (0, 1)]}
    assert counts["names"] == ["0", "1", "2", "3 or more"]
    assert counts["counts"][1] == np.bincount(np.minimum(words[y == 1], 3), minlength=4).tolist()
    assert all(details.levels[places.index(j)] is None for j in (2, 3, 4))


def test_sample_covers_all_classes():
    classes = np.repeat([0, 1, 2], [5, 900, 95])
    kept = spread_sample(np.arange(1000), classes, 200)
    assert np.bincount(classes[kept]).tolist() == [5, 100, 95]
    assert len(np.unique(kept)) == 200
    assert spread_sample(np.arange(50), None, 200).tolist() == list(range(50))


def test_table_of_a_result(tmp_path):
    X, y = data_of("classes")
    model = GroupDiscoveryClassifier(3).fit(X, y)
    coterie.group_effects(model, X, y).attach_to(model)
    info = {"chromosome": [str(j // 20 + 1) for j in range(40)], "position": np.arange(40) * 10, "score": ["no"] * 40}
    result = Discovery(model, {"path": "x"}, "classification", feature_info=info, details=describe(model, X, y))
    columns, rows = result.table()
    assert [name for name in columns if name != "note"][-12:] == [
        "direction", "effect[a]", "effect[b]", "effect[c]", "mean[a]", "sd[a]", "mean[b]", "sd[b]", "mean[c]", "sd[c]",
        "chromosome", "position",
    ]  # fmt: skip
    for row in rows:
        assert row["position"] == row["feature"] * 10
        assert row["score"] != "no"  # the column of the groups has precedence
        assert (row["direction"] is None) == (row["role"] == "affiliated")
    content = result.to_dict()
    assert content["genome"] == [
        {"chromosome": "1", "low": 0.0, "high": 190.0},
        {"chromosome": "2", "low": 200.0, "high": 390.0},
    ]
    for number, group in enumerate(content["groups"]):
        own = result.details.statistics[number]
        assert group["statistics"] == own
        assert rows[[row["feature"] for row in rows].index(group["support"])]["mean[b]"] == own[1]["mean"]
        members, matrix = result.details.correlations[number] or (np.arange(1), np.ones((1, 1)))
        below = [] if group["correlations"] is None else group["correlations"]["below_diagonal"]
        assert below == [round(matrix[i, j], 3) for i in range(len(members)) for j in range(i)]
    effects = content["groups"][0]["class_effects"]
    assert f"more → {'abc'[int(np.argmax(effects))]}" in content["groups"][0]["direction"]


def test_chromosomes_in_their_natural_order():
    names = ["X", "10", "2", "1", "MT"]
    found = genome_of({"chromosome": names, "position": [1, 2, 3, 4, 5]})
    assert [part["chromosome"] for part in found] == ["1", "2", "10", "MT", "X"]
    assert genome_of({"chromosome": names}) is None


def test_curve_of_validation():
    X, y = data_of("two")
    model = GroupDiscoveryClassifierCV(max_features_to_select=6, cv=3, Cs=[0.1, 1.0], nested=True, random_state=0).fit(X, y)
    curve = score_curve(model)
    own = model.cv_results_["C"] == model.C_
    assert curve["sizes"] == sorted(model.cv_results_["n_features"][own].tolist())
    chosen = curve["sizes"].index(curve["chosen"])
    assert curve["mean"][chosen] == pytest.approx(model.best_score_)
    folds = [model.cv_results_[f"split{k}_test_score"][own][chosen] for k in range(3)]
    assert curve["error"][chosen] == pytest.approx(np.std(folds, ddof=1) / np.sqrt(3))
    page = model.report(X, y, label="illness").html
    assert "<strong><bdi>illness</bdi></strong>" in page
    assert "may be predictable from" in page
    assert "held-out accuracy <strong>" in page
    assert score_curve(GroupDiscoveryClassifier(2).fit(X, y)) is None


def test_digest_depends_on_values_only():
    X, y = data_of("two")
    source = coterie.data.as_source
    mark = data_digest(source(X), y)
    assert mark == data_digest(source(sparse.csc_array(X)), y) == data_digest(source(np.asfortranarray(X)), y)
    other = X.copy()
    other[3, 7] += 1e-9
    assert mark != data_digest(source(other), y)
    assert mark != data_digest(source(X), 1 - y)


def test_what_cannot_be_reported_is_refused():
    X, y = data_of("two")
    model = GroupDiscoveryClassifier(2).fit(X, y)
    for arguments, options, message in [
        ((model,), {}, "requires its training data"),
        ((model, X[:, :5], y), {}, "5 features"),
        ((model, X, np.where(y == y[0], "p", "q")), {}, "classes of y differ"),
        ((model, X, y), {"image_shape": (4, 4)}, "16 pixels, but X has 40"),
        ((model, X, y), {"image_shape": "8x5"}, "rows and columns"),
        ((model, X, y), {"image_shape": (8, 5), "image_order": "A"}, "image_order='A'"),
    ]:
        with pytest.raises(ValueError, match=message):
            coterie.report(*arguments, **options)
    with pytest.raises(TypeError, match="group-discovery estimator, got LinearRegression"):
        coterie.report(LinearRegression(), X, y)


def test_reports_are_saved_and_shown(tmp_path):
    X, y = data_of("two")
    page = coterie.report(GroupDiscoveryClassifier(2).fit(X, y), X, y, tmp_path / "r.html", image_shape=(8, 5), name="<i>")
    assert page.path.read_text(encoding="utf-8") == page.html
    assert f"saved to {page.path}" in repr(page)
    frame = page._repr_html_()
    assert frame.startswith('<iframe srcdoc="&lt;!DOCTYPE html&gt;')
    assert 'sandbox="allow-scripts allow-downloads"' in frame
    assert "<i>" not in frame
    assert "<i>" not in page.html


def test_names_and_positions_of_data_sets(tmp_path):
    X, y = data_of("two")
    info = {"chromosome": np.repeat(["1", "X"], 20), "position": np.arange(40)}
    dataset = coterie.data.Dataset(coterie.data.as_source(X), y, path=tmp_path / "cohort.bed", feature_info=info)
    model = GroupDiscoveryClassifier(2).fit(dataset)
    page = model.report(dataset).html
    assert "What predicts the label in cohort.bed" in page
    coterie.data.write_store(tmp_path / "x.store", dataset.source, y)
    assert "in x.store" in model.report(tmp_path / "x.store").html
