"""``coterie.discover``: the whole procedure from Python, the same as the command's."""

import json
import signal
import subprocess
import sys
import threading
import warnings

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.model_selection import KFold

import coterie
from coterie import discovery
from coterie._warnings import RecordedWarning, recorded
from coterie.data import Dataset, FeatureView, as_source, write_store
from coterie.interruption import stopping_gracefully
from coterie.report import HeldOut, read_result
from tests.conftest import grouped_matrix

QUICK = {"max_features_to_select": 4, "Cs": [0.1, 1.0], "cv": 3, "n_pairs": 2, "n_permutations": 1}


@pytest.fixture(scope="module")
def table():
    X, y = grouped_matrix(np.random.default_rng(0), n_samples=90)
    return pd.DataFrame(X, columns=[f"gene {j}" for j in range(40)]), pd.Series(np.where(y > 0, "ill", "well"), name="health")


@pytest.fixture(scope="module")
def found(table):
    return coterie.discover(*table, **QUICK)


def outliers():
    rng = np.random.default_rng(0)
    X = np.repeat(rng.gamma(2.0, size=(90, 5)), 2, axis=1) + rng.random((90, 10))
    X[:60, :4] += 3.0
    return X, np.repeat([1, -1], [60, 30])


def test_classes(table, found):
    X, y = table
    assert found.task == "classification"
    assert isinstance(found.model, coterie.GroupDiscoveryClassifierCV)
    assert found.groups is found.model.groups_
    assert isinstance(found.held_out, HeldOut)
    assert found.held_out.folds == found.model.nested_scores_.tolist()
    assert isinstance(found.confidence, coterie.GroupConfidence)
    assert (found.confidence.n_pairs, found.confidence.n_permutations) == (2, 1)
    assert found.groups[0].confidence == found.confidence.confidence[0]
    assert found.judgement.startswith(f"Held-out accuracy {found.held_out.mean:.3g}")
    assert found.target == {"label": "health", "classes": {"ill": int((y == "ill").sum()), "well": int((y == "well").sum())}}
    assert (found.data["samples"], found.data["features"], found.data["path"]) == (90, 40, "the data")
    assert found.training_score == found.model.score(X, y)
    assert found.predict(X).tolist() == found.model.predict(X).tolist()
    assert found.command.startswith("coterie.discover(X, y, task='classification', n_pairs=2, n_permutations=1, max_feat")
    assert not found.interrupted


def test_it_is_the_estimator_and_its_confidence(table, found):
    """With the settings that the procedure gives them."""
    X, y = table
    model = coterie.GroupDiscoveryClassifierCV(4, Cs=[0.1, 1.0], cv=3, rule="one_se", nested=True, random_state=0).fit(X, y)
    confidence = coterie.group_confidence(model, X, y, n_pairs=2, n_permutations=1, random_state=0)
    assert found.model.get_params() == model.get_params()
    assert found.groups == model.groups_
    assert found.confidence.confidence.tolist() == confidence.confidence.tolist()


def test_numbers():
    rng = np.random.default_rng(0)
    X = sparse.csc_array(rng.standard_normal((80, 12)) * (rng.random((80, 12)) < 0.6))
    y = X[:, [3]].toarray()[:, 0] * 2 + rng.standard_normal(80)
    found = coterie.discover(X, y, **QUICK)
    assert found.task == "regression"
    assert found.held_out.score == "R²"
    assert found.groups[0].support == 3
    assert "R² on the training data" in found.summary


def test_one_class():
    X, y = outliers()
    found = coterie.discover(X, y, task="one-class", **QUICK)
    assert isinstance(found.model, coterie.GroupDiscoveryOneClassCV)
    assert found.held_out.score == "balanced accuracy"
    assert found.confidence.n_permutations == 0
    alone = coterie.discover(X, task="one-class", n_pairs=0)
    assert isinstance(alone.model, coterie.GroupDiscoveryOneClass)
    assert alone.held_out is alone.confidence is alone.training_score is None
    with pytest.raises(ValueError, match=r"^covariates cannot be used with task='one-class'\. Leave out the covariates\.$"):
        coterie.discover(X, y, task="one-class", covariates=np.ones((90, 1)))


def timeless(content):
    """A result without the entries that differ between runs or calls."""
    content = {name: value for name, value in content.items() if name not in ("written_at", "command", "files", "data")}
    content["summary"] = {name: value for name, value in content["summary"].items() if name != "seconds"}
    return content


@pytest.mark.parametrize("fast", [False, True])
def test_the_command_finds_the_same(table, tmp_path, fast):
    X, y = table
    X.assign(health=y).to_csv(tmp_path / "genes.csv", index=False)
    words = ["--label", "health", "-o", tmp_path / "out", "--quiet", "--C", "0.5"]
    words += ["--fast"] if fast else ["--max-features-to-select", "4", "--n-pairs", "2", "--n-permutations", "1", "--cv", "3"]
    command = [sys.executable, "-m", "coterie", "discover", tmp_path / "genes.csv", *words]
    subprocess.run(list(map(str, command)), check=True)
    options = {"fast": True} if fast else {name: value for name, value in QUICK.items() if name != "Cs"}
    found = coterie.discover(tmp_path / "genes.csv", "health", C=0.5, **options)
    expected = read_result(tmp_path / "out")
    assert timeless(found.to_dict()) == timeless(expected)
    assert found.to_dict()["data"] == expected["data"]
    assert found.save(tmp_path / "mine") == ["groups.csv", "methods.txt", "model.coterie", "report.html", "result.json"]
    assert (tmp_path / "mine" / "groups.csv").read_text() == (tmp_path / "out" / "groups.csv").read_text()


@pytest.mark.parametrize("kind", ["classes", "three", "numbers", "one-class", "fast", "image"])
def test_saved_and_loaded(table, found, tmp_path, kind):
    X, y = table
    if kind == "three":
        y = np.digitize(X["gene 0"] + X["gene 3"], [-0.7, 0.7])
    before = {
        "classes": lambda: found,
        "three": lambda: coterie.discover(X, y, fast=True, n_features_to_select=5, name="<b>", label="size"),
        "numbers": lambda: coterie.discover(X, X["gene 3"] + X["gene 5"], **QUICK),
        "one-class": lambda: coterie.discover(*outliers(), task="one-class", **QUICK),
        "fast": lambda: coterie.discover(X.to_numpy(), y, fast=True, n_features_to_select=3),
        "image": lambda: coterie.discover(X, y, fast=True, n_features_to_select=3, image_shape=(8, 5)),
    }[kind]()
    before.save(tmp_path / "out")
    after = coterie.load(tmp_path / "out")
    assert isinstance(after, coterie.Discovery)
    assert after.to_dict() == before.to_dict()
    assert after.report().html == before.report().html
    assert repr(after) == repr(before)
    assert after.warnings == before.warnings
    assert after.groups == before.groups
    for kept, own in zip(after.details.correlations, before.details.correlations, strict=True):
        assert (kept is None) == (own is None)
        assert kept is None or np.allclose(kept[1], own[1], atol=6e-4)
    pd.testing.assert_frame_equal(after.to_frame(), before.to_frame(), check_exact=True)
    after.save(tmp_path / "again")
    for name in ("groups.csv", "result.json", "report.html"):
        assert (tmp_path / "again" / name).read_bytes() == (tmp_path / "out" / name).read_bytes()
    assert coterie.load(tmp_path / "out" / "model.coterie").groups_ == before.groups


def test_genotypes_are_saved_with_their_places(table, tmp_path):
    X, y = table
    info = {"chromosome": np.repeat(["1", "X"], 20), "position": np.arange(40)}
    data = Dataset(as_source(X.to_numpy()), y.to_numpy(), format="plink", path=tmp_path / "cohort.bed", feature_info=info)
    before = coterie.discover(data, fast=True, n_features_to_select=3)
    assert before.data["path"] == str(tmp_path / "cohort.bed")
    assert [part["chromosome"] for part in before.to_dict()["genome"]] == ["1", "X"]
    before.save(tmp_path / "out")
    after = coterie.load(tmp_path / "out")
    assert after.to_dict() == before.to_dict()
    pd.testing.assert_frame_equal(after.to_frame(), before.to_frame())


def test_folders_that_are_no_result_are_refused(found, tmp_path):
    with pytest.raises(FileNotFoundError, match="is not a result folder of Coterie"):
        coterie.load(tmp_path)
    found.save(tmp_path / "out")
    with pytest.raises(FileExistsError, match="out exists"):
        found.save(tmp_path / "out")
    found.save(tmp_path / "out", overwrite=True)
    content = json.loads((tmp_path / "out" / "result.json").read_text())
    del content["summary"]
    (tmp_path / "out" / "result.json").write_text(json.dumps(content))
    with pytest.raises(
        ValueError, match=r"result\.json is damaged or does not match model\.coterie in the same folder \('summary'\)"
    ):
        coterie.load(tmp_path / "out")


def test_what_a_notebook_shows(table):
    X, y = table
    names = ["<script>alert(1)</script>" if j == 0 else name for j, name in enumerate(X.columns)]
    found = coterie.discover(X.set_axis(names, axis=1), y, fast=True, fixed_features=[0], n_features_to_select=2)
    shown = found._repr_html_()
    assert "<strong>Discovery (classification, 90 samples x 40 features)</strong>" in shown
    assert "Training figures only" in shown
    assert "&lt;script&gt;alert" in shown
    assert "<script" not in shown
    assert repr(found).startswith("Discovery: 2 groups with ")
    assert repr(found).splitlines()[1].startswith("Training figures only")
    with pytest.warns(match="Classes with few samples"):
        warned = coterie.discover(X.iloc[:12], np.repeat(["<b>", "c"], [9, 3]), fast=True, n_features_to_select=1)
    assert "<li>Classes with few samples: &lt;b&gt; (9), c (3)." in warned._repr_html_()


def test_the_page_is_shown_and_saved(found, tmp_path):
    page = found.report(tmp_path / "report.html")
    assert (tmp_path / "report.html").read_text(encoding="utf-8") == page.html
    assert "groups.csv; everything for programs" not in page.html  # a page alone has no files beside it
    assert found.judgement.split(". ")[1] in page.html


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"task": "clustering"}, ValueError, "^task='clustering' must be one of auto, classification, "
         "regression, survival, counts, one-class.$"),
        ({"fast": "yes"}, ValueError, "^fast='yes' must be "),
        ({"n_pairs": -1}, ValueError, "^n_pairs=-1 must be a whole number of at least 0"),
        ({"n_permutations": 1.5}, ValueError, "^n_permutations=1.5 must be a whole number of at least 0"),
        ({"C": "abc", "fast": True}, ValueError, "C='abc' must be a number"),
        ({"n_features_to_select": "all"}, ValueError, "n_features_to_select='all' must be a whole number, a fraction, 'auto' "
         "or 'cv'"),
        ({"n_features_to_select": "cv", "fast": True}, ValueError, "^n_features_to_select='cv' requires validation, which "
         "fast=True skips"),
        ({"max_features_to_select": 9, "fast": True}, ValueError, "^max_features_to_select only applies to validation, which "
         "fast=True and n_features_to_select='auto' skip. Omit it, or allow validation.$"),
        ({"class_weight": "balanced", "task": "regression"}, ValueError, "^class_weight cannot be used with "
         "task='regression'"),
        ({"treshold": 0.5}, TypeError, "unexpected keyword argument 'treshold'. Did you mean 'threshold'?"),
        ({"treshold": 0.5, "fast": True}, TypeError, "unexpected keyword argument 'treshold'. Did you mean 'threshold'?"),
        ({"xyzzy": 0.5}, TypeError, "unexpected keyword argument 'xyzzy'.$"),
        ({"image_shape": (4, 4)}, ValueError, "16 pixels, but X has 40 features"),
        ({"image_shape": (8, 5), "image_order": "A"}, ValueError, "image_order='A'"),
    ],
)  # fmt: skip
def test_wrong_parameters(table, options, error, message):
    with pytest.raises(error, match=message):
        coterie.discover(*table, **options)


def test_labels_are_needed(table):
    with pytest.raises(ValueError, match=r"y is None and the data have no labels\. Pass y, or use task='one-class'\."):
        coterie.discover(table[0])


def test_warnings_are_collected_and_stay_warnings():
    """Regardless of the filters of the user, and of earlier warnings from the same line."""
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((40, 30)) * np.logspace(-3, 3, 30), np.repeat([0, 1], [35, 5])
    options = {"standardize": False, "n_features_to_select": 30, "threshold": 0.1, "fast": True}
    with pytest.warns() as caught:
        found = coterie.discover(X, y, **options)
    assert [str(one.message) for one in caught] == list(found.warnings)
    assert [warning.split(":")[0].split(" of ")[0] for warning in found.warnings] == [
        "Classes with few samples", "The features have very different scales, so features with large values are preferred. "
        "standardize=True scales all features to unit variance.", f"Only {len(found.groups)}",
    ]  # fmt: skip
    assert {one.filename for one in caught} == {__file__}
    assert caught[-1].category.__name__ == "ConvergenceWarning"
    for _ in range(2):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            assert coterie.discover(X, y, **options).warnings == found.warnings
    with pytest.raises(UserWarning, match="Classes with few samples"):
        coterie.discover(X, y, **options)  # as everywhere in the tests, warnings are errors


def test_no_better_than_a_constant():
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((60, 20)), np.arange(60) % 2
    with pytest.warns(match="^Held-out accuracy .* better than a constant prediction"):
        found = coterie.discover(X, y, max_features_to_select=2, C=1.0, n_pairs=0)
    assert found.confidence is None
    held_out = found.held_out
    low, high = held_out.interval
    score = f"{held_out.value:.3g} (95% interval {low:.3g} to {high:.3g})"
    better = "may be no" if held_out.value > held_out.constant else "is not"
    expected = f"Held-out accuracy {score} {better} better than a constant prediction ({held_out.constant:.3g})."
    assert found.warnings == (expected,)
    age = np.where(y == 1, 1.0, -1.0)[:, None] + 0.1 * rng.standard_normal((60, 1))
    with pytest.warns(match="better than the covariates alone"):
        found = coterie.discover(X, y, covariates=age, max_features_to_select=2, C=1.0, n_pairs=0)
    assert found.held_out.baseline == "covariates alone"


@pytest.mark.filterwarnings("ignore:Classes with few samples")
def test_threads_leave_the_filters_as_they_were(planted):
    """They begin and end in any order, and each has its own warnings."""
    results, ready = {}, threading.Barrier(4)
    filters, shown = list(warnings.filters), warnings.showwarning

    def run(number):
        y = np.repeat([0, 1], [291 + number, 9 - number])
        ready.wait()
        results[number] = coterie.discover(planted.X, y, fast=True, n_features_to_select=2 + 3 * number)

    threads = [threading.Thread(target=run, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert warnings.filters == filters
    assert warnings.showwarning is shown
    assert {number: found.warnings for number, found in results.items()} == {
        number: (f"Classes with few samples: 1 ({9 - number}). Results for these classes are unreliable.",)
        for number in range(4)
    }


def test_recorders_that_leave_in_the_order_in_which_they_came():
    filters, shown = list(warnings.filters), warnings.showwarning
    first, second = recorded(UserWarning, RuntimeWarning), recorded(UserWarning, RuntimeWarning)
    inside, outside = threading.Event(), threading.Event()

    def run():
        with second as caught:
            inside.set()
            outside.wait()
            warnings.warn("mine", UserWarning, stacklevel=1)
        assert [one.message for one in caught] == ["mine"]

    thread = threading.Thread(target=run)
    with first as caught:
        thread.start()
        inside.wait()
        warnings.warn("yours", RuntimeWarning, stacklevel=1)
        with recorded(UserWarning, RuntimeWarning) as inner:
            warnings.warn("inner", UserWarning, stacklevel=1)
        warnings.warn("yours again", UserWarning, stacklevel=1)
    outside.set()
    thread.join()
    assert [one.message for one in caught] == ["yours", "yours again"]
    assert [one.message for one in inner] == ["inner"]
    assert warnings.filters == filters
    assert warnings.showwarning is shown


@pytest.mark.parametrize(("action", "expected"), [("ignore", []), ("always", ["theirs"]), ("error", ["raised"])])
def test_other_threads_keep_their_filters(action, expected):
    results = []

    def run():
        try:
            warnings.warn("theirs", UserWarning, stacklevel=1)
        except UserWarning:
            results.append("raised")

    with warnings.catch_warnings(record=True) as shown:
        warnings.resetwarnings()
        warnings.filterwarnings(action, "their", UserWarning)
        with recorded(UserWarning, RuntimeWarning) as caught:
            thread = threading.Thread(target=run)
            thread.start()
            thread.join()
    assert caught == []
    assert [str(one.message) for one in shown] + results == expected


def test_the_same_warning_is_raised_once():
    reported = discovery._ReportedWarnings()
    with pytest.warns(match="lines") as shown:
        reported.warn(["two\n  lines", RecordedWarning(UserWarning, "two lines")])
    assert len(shown) == 1
    assert reported.texts == ["two lines"]


def test_other_warnings_are_shown_at_once():
    with pytest.warns(FutureWarning, match="soon") as shown, recorded(UserWarning, RuntimeWarning) as caught:
        warnings.warn("soon", FutureWarning, stacklevel=1)
    assert caught == []
    assert len(shown) == 1


def test_a_signal_ends_it_with_what_has_been_found(table, monkeypatch):
    """Where signals are to end it gracefully, as for the command."""
    fitted, options = discovery._fitted, {"n_features_to_select": 2, "C": 1.0, "cv": 3}

    def interrupted(*arguments):
        model = fitted(*arguments)
        signal.raise_signal(signal.SIGTERM)
        return model

    monkeypatch.setattr(discovery, "_fitted", interrupted)
    with stopping_gracefully(str):
        found = coterie.discover(*table, **options)
    assert found.interrupted
    assert found.confidence is None
    assert found.held_out is not None
    monkeypatch.setattr(discovery, "_fitted", fitted)

    def none_yet(*arguments, **options):
        if stop:
            signal.raise_signal(signal.SIGTERM)
        raise KeyboardInterrupt

    monkeypatch.setattr(discovery, "group_confidence", none_yet)
    stop = True
    with stopping_gracefully(str):
        assert coterie.discover(*table, **options).confidence is None
    stop = False
    with pytest.raises(KeyboardInterrupt):
        coterie.discover(*table, **options)


def test_defaults_of_the_confidences(planted):
    with pytest.warns(match="may be no better than a constant prediction"):  # 60 samples
        found = coterie.discover(planted.X[:60, :10], planted.y[:60], n_features_to_select=2, C=1.0, cv=3)
    assert (found.confidence.n_pairs, found.confidence.seed) == (25, 0)
    assert found.confidence.n_permutations == 0


class Chosen(Exception):
    """Raised instead of a fit, with the estimator."""


@pytest.fixture
def chosen(monkeypatch):
    """The estimator that the procedure would fit to some data."""

    def stop(self, X, y=None, sample_weight=None, **options):
        raise Chosen(self)

    for task in ("Classifier", "Regressor", "OneClass"):
        monkeypatch.setattr(getattr(coterie, f"GroupDiscovery{task}"), "fit", stop)
        monkeypatch.setattr(getattr(coterie, f"GroupDiscovery{task}CV"), "fit", stop)

    def estimator_for(X, y, **options):
        with pytest.raises(Chosen) as found:
            coterie.discover(X, y, **options)
        return found.value.args[0]

    return estimator_for


def some(n_samples, n_features, density=1.0):
    X = np.ones((n_samples, n_features), dtype=np.int8)
    X[:, : round(n_features * (1 - density))] = 0
    return X, np.arange(n_samples) % 2


@pytest.mark.filterwarnings("ignore:Classes with few samples")
def test_defaults_of_the_validation(chosen):
    model = chosen(*some(30, 5))
    assert (model.rule, model.Cs, model.cv, model.nested, model.random_state) == ("one_se", 3, 5, True, 0)
    assert chosen(*some(30, 5), rule="best", Cs=3, nested=False).get_params()["nested"] is False
    model = chosen(*some(30, 5), n_features_to_select=0.4, C=2.0)
    assert (model.min_features_to_select, model.max_features_to_select, model.Cs) == (2, 2, [2.0])
    assert not chosen(*some(30, 5), cv=2).nested
    assert not chosen(some(30, 5)[0], np.repeat([0, 1], [28, 2]), cv=2).nested
    assert chosen(some(30, 5)[0], np.repeat([0, 1], [27, 3]), cv=3).nested
    assert chosen(*some(30, 5), random_state=None).random_state is None


def test_few_features_go_on_to_convergence(chosen):
    assert chosen(*some(30, 100), fast=True).n_features_to_select == "auto"
    assert chosen(*some(30, 101), fast=True).n_features_to_select == 100
    assert chosen(*some(30, 100), fast=True, n_features_to_select=7).n_features_to_select == 7


@pytest.mark.parametrize(("counts", "validated"), [((60, 5), True), ((60, 4), False), ((4, 60), False)])
def test_one_class_is_validated_with_enough_outliers(chosen, counts, validated):
    model = chosen(some(sum(counts), 5)[0], np.repeat([1, -1], counts), task="one-class")
    assert isinstance(model, coterie.GroupDiscoveryOneClassCV) is validated


def test_classes_with_few_samples_are_named(chosen):
    X = some(40, 5)[0]
    with pytest.warns(match=r"^Classes with few samples: 1 \(9\)\. Results"):
        chosen(X, np.repeat([0, 1, 2], [10, 9, 21]))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        chosen(X, np.repeat([0, 1, 2], [10, 10, 20]))
    with pytest.warns(match=r"samples: 0 \(4\), 1 \(4\), 2 \(4\), 3 \(4\), 4 \(4\), …\. Results"):
        chosen(X, np.arange(40) // 4)


@pytest.mark.parametrize(("ratio", "apart"), [(99.0, False), (101.0, True)])
def test_scales_far_apart(ratio, apart):
    X = np.random.default_rng(0).standard_normal((50, 1)) * np.array([[1.0, ratio, 0.0]])
    assert discovery.scales_differ(as_source(X)) is apart
    assert discovery.scales_differ(as_source(1e-4 * X)) is apart
    assert discovery.scales_differ(as_source(1e4 * X)) is apart
    assert not discovery.scales_differ(as_source(sparse.csc_array(X)))
    assert not discovery.scales_differ(as_source(np.ones((5, 2))))
    assert not discovery.scales_differ(as_source(np.array([[1.0, 100.0], [-1.0, -100.0]])))


def test_any_input(table, tmp_path):
    X, y = table
    options = {"fast": True, "n_features_to_select": 3}
    expected = coterie.discover(X, y, **options)
    store = write_store(tmp_path / "x.store", X.to_numpy(), y.to_numpy(), feature_names=X.columns)
    for given in ((store,), (str(store),), (X.to_numpy(), y), (sparse.csr_array(X.to_numpy()), y), (X.to_numpy().tolist(), y)):
        found = coterie.discover(*given, **options, feature_names=None if len(given) == 1 else list(X.columns))
        assert found.groups == expected.groups
        assert found.groups[0].names == expected.groups[0].names
        assert found.data["fingerprint"] == expected.data["fingerprint"]
    assert coterie.discover(store, **options).data["format"] == "store"


def test_weights_and_covariates_reach_the_model(table):
    X, y = table
    weight = np.where(np.arange(90) < 60, 1.0, 0.0)
    found = coterie.discover(X, y, sample_weight=weight, fast=True, n_features_to_select=3)
    assert found.groups == coterie.GroupDiscoveryClassifier(3).fit(X, y, weight).groups_
    assert found.training_score == found.model.score(X, y, sample_weight=weight)
    age = pd.DataFrame({"age": np.random.default_rng(0).standard_normal(90)})
    found = coterie.discover(X, y, covariates=age, n_features_to_select=3, C=1.0, cv=3, n_pairs=2, n_permutations=1)
    assert found.model.covariate_names_.tolist() == ["age"]
    assert found.data["covariates"] == ["age"]
    assert found.confidence is not None
    assert len(found.predict(X, covariates=age)) == 90


def test_the_name_is_a_function():
    """A module of that name would take the place of the function once it is imported."""
    code = "import coterie, coterie.discovery, coterie.cli.discover; assert coterie.discover is coterie.discovery.discover"
    subprocess.run([sys.executable, "-c", code], check=True)


# Parts of the procedure


@pytest.mark.parametrize(
    ("task", "labels", "settings", "expected"),
    [
        ("classification", [0, 1], {}, True),
        ("regression", [0.5, 1.0], {}, True),
        ("classification", [0, 1], {"fast": True}, False),
        ("classification", [0, 1], {"n_features_to_select": "auto"}, False),
        ("classification", [0, 1], {"n_features_to_select": 3}, True),
        ("one-class", None, {}, False),
        ("one-class", np.array(["a", None, 1], dtype=object), {}, False),
        ("one-class", ["normal", "outlier"] * 5, {}, False),
        ("one-class", [1, -1] * 5, {}, True),
        ("one-class", [1, -1] * 4, {}, False),
        ("one-class", [1, -1] * 4, {"cv": 4}, True),
        ("one-class", [1, -1] * 3, {"cv": KFold(4)}, True),  # The number of folds of a splitter is unknown.
        ("one-class", [1, -1] * 2, {"cv": KFold(4)}, False),
        ("one-class", [1.0, -1.0] * 5, {}, True),
        ("one-class", [1, 0] * 5, {}, False),
        ("one-class", [1, -1, 0] * 5, {}, False),
        ("one-class", [1] * 10, {}, False),
    ],
)
def test_whether_settings_are_validated(task, labels, settings, expected):
    parameters = {name: value for name, value in settings.items() if name != "fast"}
    assert discovery.validates(task, labels, parameters, fast=settings.get("fast", False)) is expected


@pytest.mark.parametrize(
    ("task", "parameters", "fast", "message"),
    [
        ("auto", {"C": -1.0}, False, "^C=-1.0 must be "),
        ("auto", {"n_features_to_select": 0}, False, "^n_features_to_select=0 must be "),
        ("regression", {"n_features_to_select": 1.5}, False, "^n_features_to_select=1.5 must be "),
        ("auto", {"nested": True}, True, "^nested only applies to validation, .* skip. Omit it, or allow validation.$"),
        ("one-class", {"nested": True}, True, "^nested only applies .* requires labels 1 and -1, with as many"),
        ("one-class", {"n_features_to_select": "cv"}, True, "^n_features_to_select='cv' requires validation"),
        ("one-class", {"class_weight": "balanced"}, False, "^class_weight cannot be used with task='one-class'"),
        ("auto", {"threshold": 2.0}, True, "^threshold=2.0 must be "),
        ("auto", {"threshold": 2.0}, False, "^threshold=2.0 must be "),
    ],
)
def test_settings_are_checked_without_data(task, parameters, fast, message):
    with pytest.raises(ValueError, match=message):
        discovery.check_settings(task, parameters, fast=fast)


@pytest.mark.parametrize(
    ("task", "parameters", "fast"),
    [
        ("auto", {}, False),
        ("auto", {"n_features_to_select": 7, "C": 2.0}, False),
        ("auto", {"n_features_to_select": 0.25}, True),
        ("auto", {"n_features_to_select": "cv", "nested": True}, False),
        ("auto", {"n_features_to_select": "auto"}, True),
        ("one-class", {}, False),
        ("one-class", {"n_features_to_select": "cv", "nested": True}, False),
        ("regression", {"max_features_to_select": 3}, False),
    ],
)
def test_settings_that_are_allowed(task, parameters, fast):
    discovery.check_settings(task, parameters, fast=fast, n_pairs=0, n_permutations=0)


def test_given_settings_are_the_only_candidates():
    assert discovery._searched({}, 100) == {}
    assert discovery._searched({"n_features_to_select": "cv", "tol": 0.1}, 100) == {"tol": 0.1}
    both = {"min_features_to_select": 7, "max_features_to_select": 7}
    assert discovery._searched({"n_features_to_select": 7, "C": 2.0}, 100) == {**both, "Cs": [2.0]}
    share = {"min_features_to_select": 25, "max_features_to_select": 25}
    assert discovery._searched({"n_features_to_select": 0.25}, 100) == share


def test_one_class_without_enough_outliers_cannot_be_validated():
    X, y = outliers()
    with pytest.raises(ValueError, match=r"requires labels 1 and -1, with at least 40 samples of each\.$"):
        coterie.discover(X, y, task="one-class", n_features_to_select="cv", cv=40)


def test_command_lists_what_differs_from_the_defaults(table):
    found = coterie.discover(*table, fast=True, random_state=3, n_features_to_select=2)
    expected = "coterie.discover(X, y, task='classification', fast=True, random_state=3, n_features_to_select=2)"
    assert found.command == expected
    assert discovery._call(fast=None) == "coterie.discover(X, y)"


def test_fast_discovery_has_no_confidences(table, monkeypatch):
    monkeypatch.setattr(discovery, "group_confidence", lambda *arguments, **options: 1 / 0)
    assert coterie.discover(*table, fast=True, n_features_to_select=2, n_pairs=3).confidence is None
    assert coterie.discover(*table, n_features_to_select=2, C=1.0, cv=2, nested=False, n_pairs=0).confidence is None


def test_scales_of_blocks_are_compared_with_each_other(monkeypatch):
    """The smallest and the largest scale may be in different blocks. Constant features do not count."""
    X = np.random.default_rng(0).standard_normal((50, 1)) * np.array([[1.0, 50.0, 0.0, 150.0]])

    def blocks(self, function, *arguments):
        return [
            function(FeatureView.of(as_source(X[:, part])), *arguments) for part in (slice(0, 2), slice(2, 3), slice(3, 4))
        ]

    monkeypatch.setattr(FeatureView, "map_blocks", blocks)
    assert discovery.scales_differ(as_source(X))
    X[:, 3] = 90.0 * X[:, 0]
    assert not discovery.scales_differ(as_source(X))


def test_different_scales_are_reported_without_scaling_only(chosen):
    X, y = some(30, 5)
    X = X * np.random.default_rng(0).standard_normal((30, 5)) * np.array([1.0, 1.0, 1.0, 1.0, 1e4])
    with pytest.warns(match="^The features have very different scales") as shown:
        chosen(X, y, standardize=False)
    assert len(shown) == 1
    for standardize in (True, "auto"):
        chosen(X, y, standardize=standardize)
    chosen(X[:, :4], y, standardize=False)


@pytest.mark.filterwarnings("ignore:Classes with few samples")
def test_a_rare_class_is_judged_by_the_auc():
    """With 0.7 % positives the accuracy of a constant is 0.993, so the accuracy cannot show that three groups predict."""
    rng = np.random.default_rng(0)
    latent = rng.standard_normal((2000, 8))
    risk = latent[:, :3].sum(axis=1) + 0.7 * rng.standard_normal(2000)
    y = np.where(risk >= np.sort(risk)[-14], "ill", "well")
    X = np.repeat(latent, 3, axis=1) + 0.3 * rng.standard_normal((2000, 24))
    options = {"Cs": 2, "max_features_to_select": 4, "n_pairs": 0, "predict_with": "support"}
    found = coterie.discover(X, y, **options)
    assert found.model.scoring_ == "roc_auc"
    assert found.verdict.score.prediction == "predicts"
    assert found.held_out.score == "ROC AUC"
    assert found.held_out.interval[0] > 0.7
    assert found.held_out.constant == 0.5
    assert {feature // 3 for feature in found.model.support_features_[:3]} == {0, 1, 2}
    reason = "The score is the ROC AUC, not the accuracy, because class ill has 0.007 of the samples."
    assert found.judgement.endswith(reason)
    assert found.summary["score"] == reason
    assert reason in found.report().html
    assert found.held_out.confusion["classes"] == ["ill", "well"]
    assert set(found.held_out.figures) == {"accuracy", "balanced accuracy", "ROC AUC", "Brier score"}
    named = coterie.discover(X, y, scoring="accuracy", **options)  # AUC decides, whatever validation uses.
    assert named.model.scoring_ == "accuracy"
    assert named.held_out.score == "ROC AUC"
    assert named.held_out.folds == []
    assert not any("constant prediction" in warning for warning in named.warnings)
