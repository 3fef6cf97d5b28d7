"""Each kind of caution is found where it is right, and only there."""

import numpy as np
import pytest
from scipy import sparse

import coterie
from coterie.cautions import AboutSamples, Caution, find_cautions
from coterie.cautions.columns import id_caution
from coterie.cautions.dependence import find_dependence, share_of_duplicates
from coterie.cautions.genotypes import share_with_relatives
from coterie.cautions.sampling import DrawnRows, draw_features, read_contents, read_rows, row_parts
from coterie.data import FeatureView, as_source
from coterie.inputs.opening import source_of
from tests.cautions.designs import independent_rows, populations, repeated_rows, siblings, subtypes

SEEDS = range(3)


def kinds(X, y=None, task="classification", **about):
    return [one.kind for one in find_cautions(source_of(X), AboutSamples(y, None if y is None else task, **about))]


def rng_of(seed):
    return np.random.default_rng(seed)


class TestDependence:
    @pytest.mark.parametrize("seed", SEEDS)
    @pytest.mark.parametrize("options", [{}, {"n_rows": 2, "n_subjects": 80}, {"n_subjects": 8, "n_rows": 30, "within": 0.3}])
    def test_rows_of_subjects_are_noticed(self, seed, options):
        X, y, subject = repeated_rows(rng_of(seed), **options)
        assert kinds(X, y) == ["dependent samples"]
        assert kinds(X, y, groups=subject) == []

    def test_numbers_and_text_and_other_formats(self):
        X, y, subject = repeated_rows(rng_of(0))
        assert kinds(X, rng_of(1).standard_normal(40)[subject], "regression") == ["dependent samples"]
        assert kinds(X, np.array(["ill", "well"])[y]) == ["dependent samples"]
        assert kinds(X.astype(np.float32), y) == ["dependent samples"]
        counts = np.maximum(np.rint(2 * X + 1), 0)
        assert kinds(sparse.csc_array(counts), y) == kinds(counts, y) == ["dependent samples"]

    def test_small_sets_of_rows_are_noticed_among_many(self):
        X, y, _ = repeated_rows(rng_of(0), n_subjects=500, n_rows=3, within=0.7)
        assert len(X) > 800
        assert kinds(X, y) == ["dependent samples"]

    def test_types_of_cells_do_not_hide_donors(self):
        rng = rng_of(0)
        X, y, _ = repeated_rows(rng, n_subjects=8, n_rows=40, within=0.3)
        assert kinds(X + rng.standard_normal((3, 200))[rng.integers(0, 3, len(X))], y) == ["dependent samples"]

    @pytest.mark.parametrize("seed", SEEDS)
    @pytest.mark.parametrize("design", [independent_rows, subtypes])
    def test_independent_rows_are_not_suspected(self, design, seed):
        assert kinds(*design(rng_of(seed))) == []

    def test_labels_that_vary_within_subjects_are_no_problem(self):
        X, _, _ = repeated_rows(rng_of(0))
        assert kinds(X, rng_of(1).integers(0, 2, len(X))) == []

    def test_a_cluster_per_class_is_a_signal(self):
        X, _, subject = repeated_rows(rng_of(0), n_subjects=12, n_rows=15)
        assert kinds(X, subject) == []

    def test_figures_of_the_text(self):
        X, y, _ = repeated_rows(rng_of(0))
        targets = np.stack([y == 0, y == 1], axis=1) - [[1 - y.mean(), y.mean()]]
        found = find_dependence(DrawnRows(np.arange(len(X)), X), targets, 2)
        assert abs(found.n_clusters - 40) <= 4
        assert found.by_sample > 0.6
        assert found.by_cluster < 0.2
        text = find_cautions(as_source(X), AboutSamples(y, "classification"))[0].text
        assert f"{found.n_clusters} tight clusters" in text
        assert f"{found.by_sample:.2f} with the labels" in text
        assert "--sample-groups" in text

    def test_left_out_predictions_are_those_of_separate_fits(self):
        from coterie.cautions.dependence import _left_out

        rng = rng_of(0)
        Z, targets = rng.standard_normal((30, 50)), rng.standard_normal((30, 2))
        kernel = Z @ Z.T / 50
        penalised = kernel + 100.0 + np.eye(30)
        inverse, clusters = np.linalg.inv(penalised), np.arange(30) // 4
        predictions = _left_out(inverse, inverse @ targets, targets, clusters)
        out = clusters == 2
        expected = (kernel + 100.0)[np.ix_(out, ~out)] @ np.linalg.solve(penalised[np.ix_(~out, ~out)], targets[~out])
        np.testing.assert_allclose(predictions[out], expected, rtol=1e-7, atol=1e-9)


class TestDuplicates:
    def test_equal_rows_are_counted(self):
        X = rng_of(0).standard_normal((100, 20))
        y = np.arange(100) % 2
        assert kinds(X, y) == []
        X[10:20] = X[:10]
        assert kinds(X, y) == ["duplicate samples"]
        drawn = DrawnRows(np.arange(100), X)
        assert share_of_duplicates(drawn, is_sparse=False) == pytest.approx(0.2)
        assert "20 % of the samples" in find_cautions(as_source(X), AboutSamples(y, "classification"))[0].text
        assert kinds(X) == ["duplicate samples"]

    def test_equal_rows_by_chance_are_not_counted(self):
        X = rng_of(0).integers(0, 2, (200, 5)).astype(float)
        assert kinds(X, np.arange(200) % 2) == []

    def test_short_rows_of_sparse_data_are_not_counted(self):
        X = np.zeros((60, 400))
        X[np.arange(60), np.arange(60) % 7] = 1.0
        assert kinds(sparse.csc_array(X), np.arange(60) % 2) == []


class TestIdentifiers:
    patient = np.repeat(np.arange(30), 4)
    y = (rng_of(0).permutation(30) % 2)[patient]

    def found(self, name, values, y=None, **options):
        return id_caution(name, np.asarray(values), self.y if y is None else y, **{"is_feature": False, **options})

    def test_constant_labels_within_a_column(self):
        text = self.found("patient", self.patient).text
        assert "'patient' has 30 values that repeat, and all samples with the same value have the same label" in text
        assert "--sample-groups patient" in text
        assert self.found("letters", self.patient) is not None  # because the label is constant in small sets
        assert "--drop patient" in self.found("patient", self.patient, is_feature=True).text

    def test_other_columns(self):
        mixed = rng_of(1).integers(0, 2, 120)
        assert self.found("patient", self.patient, mixed) is None
        assert self.found("patient", self.patient, mixed, is_feature=True) is not None
        assert self.found("age", rng_of(2).integers(20, 60, 120).astype(float), is_feature=True) is None
        assert self.found("patient", np.arange(120)) is None  # no value repeats
        assert self.found("patient", self.patient % 3) is None  # few values are classes
        assert self.found("grade", np.sort(self.patient), np.arange(120) // 60, is_feature=True) is None  # a threshold
        assert self.found("size", self.patient + 0.5, is_feature=True) is None
        assert self.found("patient", np.where(self.patient < 28, -1, self.patient)) is None  # mostly missing
        gaps = np.where(rng_of(3).random(120) < 0.2, -1, self.patient)
        assert "30 values" in self.found("patient", gaps).text  # missing values are not a value whose labels differ

    def test_row_numbers(self):
        assert "row number" in self.found("anything", np.arange(5.0, 125.0), is_feature=True).text
        assert self.found("sample_id", 3 * np.arange(120), is_feature=True) is not None
        assert self.found("counts", 3 * np.arange(120), is_feature=True) is None

    def test_many_such_features_are_something_else(self):
        pytest.importorskip("pandas")
        import pandas as pd

        X = pd.DataFrame(rng_of(0).standard_normal((120, 3)), columns=["a", "b", "c"])
        assert kinds(X.assign(patient=self.patient), self.y) == ["identifier"]
        assert kinds(X.assign(**{f"id {k}": np.arange(120) for k in range(5)}), self.y) == []
        assert kinds(X, self.y, columns={"patient": self.patient, "kind": self.patient % 3}) == ["identifier"]
        assert kinds(X, self.y, columns={"patient": self.patient}, groups=self.patient) == []


class TestLeaks:
    def test_a_feature_that_separates_the_classes(self):
        X, y = independent_rows(rng_of(0))
        assert kinds(np.column_stack([X, y * 2.0 + 1]), y) == ["leak"]
        names = [f"f{j}" for j in range(200)] + ["outcome"]
        source = as_source(np.column_stack([X, y + 0.1 * rng_of(1).random(200)]), names)
        (found,) = find_cautions(source, AboutSamples(y, "classification"))
        assert "Feature 'outcome' alone separates the classes (100.0 % of the samples)" in found.text

    @pytest.mark.parametrize(("n_wrong", "is_noticed"), [(0, True), (2, True), (20, False)])
    def test_a_copy_of_the_label_with_errors(self, n_wrong, is_noticed):
        """The errors of a leak are at most a tenth of those of the next feature."""
        X, y = independent_rows(rng_of(0))
        copy = y.astype(float)
        copy[:n_wrong] = 1 - copy[:n_wrong]
        assert ("leak" in kinds(np.column_stack([X, copy + 0.1 * rng_of(1).random(200)]), y)) == is_noticed

    def test_several_classes_in_any_order(self):
        X, _ = independent_rows(rng_of(0))
        y = np.arange(200) % 4
        assert kinds(np.column_stack([X, np.array([2, 0, 3, 1])[y]]), y) == ["leak"]
        y[:20] = 0  # ten percent do not fit
        assert kinds(np.column_stack([X, np.arange(200) % 4]), y) == []

    def test_several_perfect_features_are_a_signal(self):
        X, y = independent_rows(rng_of(0))
        assert kinds(np.column_stack([X, y[:, None] + 0.95 * rng_of(1).random((200, 3))]), y) == []

    def test_rare_classes_are_separated_by_chance(self):
        X, y = independent_rows(rng_of(0), 60, 2000)
        y = (np.arange(60) < 2).astype(int)
        assert "leak" not in kinds(X, y)

    def test_numbers(self):
        X, _ = independent_rows(rng_of(0))
        y = X[:, :10].sum(axis=1) + 3.0 * rng_of(1).standard_normal(200)
        assert kinds(X, y, "regression") == []
        leak = y + 0.2 * y.std() * rng_of(2).standard_normal(200)
        assert kinds(np.column_stack([X, leak]), y, "regression") == ["leak"]
        noisy = y + 0.5 * y.std() * rng_of(2).standard_normal(200)
        assert kinds(np.column_stack([X, noisy]), y, "regression") == []


class TestGenotypes:
    @pytest.mark.parametrize("seed", SEEDS)
    def test_relatives(self, seed):
        X, y = siblings(rng_of(seed))
        assert "related samples" in kinds(X, y, "regression")
        assert share_with_relatives(DrawnRows(np.arange(100), X)) > 0.95
        assert share_with_relatives(DrawnRows(np.arange(50), X[::2])) == 0.0
        assert kinds(X[::2], y[::2], "regression") == []
        for about in ({"groups": np.arange(100) // 2}, {"offset": True}):
            assert "related samples" not in kinds(X, y, "regression", **about)

    @pytest.mark.parametrize("seed", SEEDS)
    def test_populations(self, seed):
        X, y, population = populations(rng_of(seed))
        assert kinds(X, y, "regression") == ["population structure"]
        assert kinds(X, (y > np.median(y)).astype(int)) == ["population structure"]
        assert kinds(X, y, "regression", covariates=population.astype(float)) == []
        assert kinds(X, y, "regression", covariates=rng_of(9).standard_normal(120)) == ["population structure"]
        assert kinds(X, populations(rng_of(seed), shift=0.0)[1], "regression") == []

    def test_other_data_with_the_same_signal_have_no_structure(self):
        X, y, _ = populations(rng_of(0))
        assert kinds(X + 0.5, y, "regression") == []
        assert kinds(X + 0.5, y, "regression", is_genetic=False) == []


class TestSampling:
    def draw(self, X):
        source = as_source(X)
        moments = FeatureView.of(source).moments
        return draw_features(source, moments, read_contents(source, moments, None).content)

    @pytest.mark.parametrize("make", [np.asarray, sparse.csc_array])
    def test_the_order_of_columns_does_not_matter(self, make):
        X = np.maximum(rng_of(0).standard_normal((30, 5000)), 0)
        order = rng_of(1).permutation(5000)
        drawn = self.draw(make(X))
        assert len(drawn) == len(set(drawn.tolist())) == 2000
        np.testing.assert_array_equal(order[self.draw(make(X[:, order]))], drawn)
        assert not np.array_equal(np.sort(drawn), np.arange(2000))

    def test_neither_do_scales_and_constant_columns(self):
        X = rng_of(0).standard_normal((30, 3000))
        drawn = self.draw(X)
        np.testing.assert_array_equal(self.draw(X * 2.0 ** (np.arange(3000) % 7)), drawn)
        np.testing.assert_array_equal(self.draw(np.hstack([X, np.ones((30, 5))])), drawn)

    def test_frequent_features_of_sparse_data_are_preferred(self):
        X = (rng_of(0).random((200, 4000)) < np.where(np.arange(4000) < 500, 0.5, 0.01)).astype(float)
        assert (self.draw(sparse.csc_array(X)) < 500).sum() > 450

    def test_many_rows(self):
        X = rng_of(0).standard_normal((1500, 20))
        random, near = row_parts(read_rows(as_source(X), np.arange(20)))
        assert len(random.rows) == 800
        assert 250 < len(near.rows) <= 750
        for part in (random, near):
            assert (np.diff(part.rows) > 0).all()
            np.testing.assert_allclose(part.values, X[part.rows], rtol=1e-6)

    def test_passes_of_some_features(self, monkeypatch):
        X, y, _ = repeated_rows(rng_of(0))
        source, targets = as_source(X), (y - y.mean())[:, None]
        moments = source.moments()
        whole = read_contents(source, moments, targets)
        monkeypatch.setattr("coterie.cautions.sampling._PASS_FEATURES", 7)
        parts = read_contents(source, moments, targets)
        np.testing.assert_allclose(parts.content, whole.content, rtol=1e-9)
        np.testing.assert_allclose(whole.correlation, np.abs(np.corrcoef(X.T, y)[-1, :-1]), rtol=1e-9)


class TestWholeProcedure:
    def test_discover_warns_and_keeps_the_cautions(self, tmp_path):
        X, y, subject = repeated_rows(rng_of(0))
        with pytest.warns(UserWarning, match="Samples form .* tight clusters"):
            found = coterie.discover(X, y, fast=True, n_features_to_select=3)
        (caution,) = found.cautions
        assert caution.kind == "dependent samples"
        assert caution.text in found.warnings
        assert found.to_dict()["cautions"] == [{"kind": caution.kind, "text": caution.text}]
        page = found.report().html
        box = page[page.index('class="care"') : page.index("</header>")]
        assert "tight clusters" in box
        assert "--sample-groups" in box
        found.save(tmp_path / "out")
        assert coterie.load(tmp_path / "out").cautions == (Caution(caution.kind, caution.text),)
        assert coterie.discover(X, y, groups=subject, fast=True, n_features_to_select=3).cautions == ()

    def test_column_order_and_threads_do_not_matter(self):
        X, y, _ = repeated_rows(rng_of(0), n_features=300)
        texts = {
            find_cautions(as_source(X[:, order]), AboutSamples(y, "classification"))[0].text
            for order in (np.arange(300), np.arange(300)[::-1], rng_of(3).permutation(300))
        }
        assert len(texts) == 1

    def test_invalid_data_have_no_cautions(self):
        X, y = independent_rows(rng_of(0))
        X[3, 4] = np.nan
        assert kinds(X, y) == []
        assert kinds(X[:, :3], y[:50]) == []
        with pytest.raises(ValueError, match="NaN"):
            coterie.discover(X, y)

    def test_labels_of_obs(self):
        anndata = pytest.importorskip("anndata")
        import pandas as pd

        X, y, donor = repeated_rows(rng_of(0), n_subjects=10, n_rows=12)
        obs = pd.DataFrame({"state": y.astype(str), "donor_id": [f"d{k}" for k in donor], "depth": X[:, 0]})
        obs.index = obs.index.astype(str)
        data = coterie.data.open_features(anndata.AnnData(X, obs), label="state")
        assert list(data.other_columns) == ["donor_id"]
        assert len(set(zip(data.other_columns["donor_id"].tolist(), donor.tolist(), strict=True))) == 10
        with pytest.warns(UserWarning, match="tight clusters|'donor_id' has 10 values") as caught:
            coterie.discover(data, fast=True, n_features_to_select=3)
        assert any("--sample-groups donor_id" in str(one.message) for one in caught)


@pytest.mark.parametrize("format", ["csv", "parquet"])
def test_columns_of_tables_that_are_not_features(tmp_path, format):
    pytest.importorskip("pyarrow")
    pd = pytest.importorskip("pandas")
    X, y, patient = repeated_rows(rng_of(0), n_subjects=20, n_rows=4, n_features=30)
    table = pd.DataFrame(X, columns=[f"g{j}" for j in range(30)])
    table["patient"] = [None if k == 3 else f"p{k}" for k in patient]
    table["number"], table["label"] = patient, y
    path = tmp_path / f"table.{format}"
    (table.to_csv if format == "csv" else table.to_parquet)(path, index=False)
    data = coterie.data.open_features(path, keep_numeric=True, drop="number")
    assert data.shape == (80, 30)
    assert sorted(data.other_columns) == ["number", "patient"]
    codes = data.other_columns["patient"]
    assert set(codes[patient == 3].tolist()) == {-1}
    pairs = set(zip(codes.tolist(), patient.tolist(), strict=True))
    assert len(pairs) == 20
    found = find_cautions(data.source, AboutSamples(data.y, "classification", columns=data.other_columns))
    assert {one.kind for one in found} == {"identifier"}
    wanted = coterie.data.open_features(path, columns=["g1", "g2"], drop="number")
    assert wanted.other_columns == {}
