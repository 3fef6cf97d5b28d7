"""Saved and loaded models are bit-identical, and files run no code."""

import inspect
import io
import json
import pickle
import threading
import zipfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse
from sklearn.base import BaseEstimator, is_regressor
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import StratifiedKFold
from sklearn.pipeline import Pipeline, make_pipeline

import coterie
from coterie import GroupDiscoveryClassifier, GroupDiscoveryOneClass, GroupDiscoveryRegressor, load, save
from coterie.bounds import DEFAULT_MAX_LENGTH
from coterie.comparison.trial import selector_named
from coterie.methods import METHODS
from coterie.persistence import fitted, names
from coterie.persistence.archive import DamagedModelError, read_archive, write_archive
from tests.persistence import models


@pytest.fixture(scope="module")
def original(tmp_path_factory):
    """File of a small model."""
    path = tmp_path_factory.mktemp("model") / "model.coterie"
    save(models.small(), path)
    return path


def same(a, b):
    """Assert recursively that values and types are equal, with NaN equal to NaN."""
    if type(a) is not type(b):
        return False
    if isinstance(a, np.ndarray):
        return a.dtype == b.dtype and a.shape == b.shape and all(map(same, a.ravel().tolist(), b.ravel().tolist()))
    if isinstance(a, (list, tuple)) or type(a).__name__ == "FeatureGroups":
        return len(a) == len(b) and all(same(x, y) for x, y in zip(a, b, strict=True))
    if isinstance(a, dict):
        return list(a) == list(b) and all(same(a[k], b[k]) for k in a)
    if isinstance(a, float):
        return a == b or (a != a and b != b)
    if hasattr(a, "__dict__"):
        return same(vars(a), vars(b))
    return a == b


def round_trip(model, folder):
    save(model, folder / "model.coterie")
    return load(folder / "model.coterie")


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(1)
    X = rng.standard_normal((120, 40))
    X[:, 20:30] = X[:, :10] + 0.3 * X[:, 20:30]
    return X, X[:, 0] - X[:, 1] + 0.2 * rng.standard_normal(120)


def fitted_models(X, target):
    two, three = np.where(target > 0, "yes", "no"), np.digitize(target, [-0.5, 0.5])
    names = [f"gene <{j}> ü" for j in range(X.shape[1])]
    weird = np.array([None] * len(target), dtype=object)
    weird[:] = [(1, "a") if value > 0 else "b" for value in target]
    yield GroupDiscoveryClassifier(5).fit(X, two), X
    yield GroupDiscoveryClassifier(0.2, class_weight={0: 1.0, 1: 2.0, 2: 1}, cv=3, random_state=4).fit(X, three), X
    yield GroupDiscoveryClassifier(4, cv=StratifiedKFold(3, shuffle=True, random_state=0)).fit(X, two), X
    yield GroupDiscoveryClassifier(5, fixed_features=[names[3]]).fit(pd.DataFrame(X, columns=names), two), X
    yield GroupDiscoveryClassifier(5, standardize=True).fit(X, weird), X
    yield GroupDiscoveryClassifier(5, correlation="su", n_bins=np.int64(4)).fit(sparse.csc_array(X), two), sparse.csr_array(X)
    yield GroupDiscoveryRegressor(5, tol=np.float32(1e-3), random_state=np.random.RandomState(3)).fit(X, target), X
    yield GroupDiscoveryOneClass(5).set_output(transform="pandas").fit(np.abs(X)), X


@pytest.mark.filterwarnings("ignore:X does not have valid feature names")
@pytest.mark.filterwarnings("ignore:.* have the weight 0:UserWarning")
def test_every_estimator_is_restored_bit_for_bit(data, tmp_path):
    for number, (model, X) in enumerate(fitted_models(*data)):
        again = round_trip(model, tmp_path)
        assert type(again) is type(model)
        assert list(vars(again)) == list(vars(model))
        for name, value in vars(model).items():
            if name == "random_state" and isinstance(value, np.random.RandomState):
                assert same(value.get_state(), again.random_state.get_state())
            elif name != "cv":
                assert same(value, getattr(again, name)), (number, name)
        assert repr(again.cv) == repr(model.cv)
        assert same(again.predict(X), model.predict(X))
        assert np.array_equal(again.support_coef_, model.support_coef_)
        assert again.support_coef_.flags.f_contiguous == model.support_coef_.flags.f_contiguous
        assert again.groups_.to_json() == model.groups_.to_json()


def test_an_unfitted_model_keeps_its_parameters(tmp_path):
    model = GroupDiscoveryClassifier("auto", C=np.inf, class_weight="balanced", threshold=0.1 + 0.2, cv=Path("folds"))
    assert round_trip(model, tmp_path).get_params() == model.get_params()


def test_the_same_model_makes_the_same_bytes(data, tmp_path):
    model = GroupDiscoveryRegressor(3).fit(*data)
    save(model, tmp_path / "a")
    save(load(tmp_path / "a"), tmp_path / "b")
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()


def test_numpy_can_read_the_arrays(data, tmp_path):
    model = GroupDiscoveryRegressor(3).fit(*data)
    save(model, tmp_path / "model.coterie")
    with np.load(tmp_path / "model.coterie", allow_pickle=False) as file:
        place = json.loads(file["model.json"])["model"]["attributes"]["scores_"]
        pool = file[place["pool"]]
    assert np.array_equal(pool[place["start"] :][: place["shape"][0]], model.scores_)


def test_every_kind_of_record_is_restored(tmp_path):
    for name, model in models.models():
        again = round_trip(model, tmp_path)
        assert same(again.get_support(), model.get_support()), name
        assert all(same(value, getattr(again, key)) for key, value in vars(model).items() if key not in ("cv", "criterion"))


def test_the_format_has_version_1_and_no_other_is_read(tmp_path):
    path = tmp_path / "model.coterie"
    save(GroupDiscoveryRegressor(), path)
    content, arrays = read_archive(path)
    assert (content["format"], content["version"]) == ("coterie model", 1)
    for other in (0, 2, "1", None, True):
        write_archive(path, {**content, "version": other}, arrays)
        with pytest.raises(
            ValueError, match=r"has model format version .*, but this version of Coterie reads version 1\. Update Coterie\."
        ):
            load(path)


def test_files_name_no_modules(data, tmp_path):
    """The name of a class in a file does not contain its module."""
    X, y, _ = models.data()
    selectors = [selector_named(name) for name in METHODS if name not in ("daf", "sffs")]
    for model in [*(model for _, model in models.models()), *selectors]:
        if not hasattr(model, "n_features_in_"):
            model.set_params(n_features_to_select=2).fit(X, y)
        save(model, tmp_path / "model.coterie")
        with zipfile.ZipFile(tmp_path / "model.coterie") as archive:
            text = archive.read("model.json").decode()
        assert "coterie." not in text.replace(coterie.__version__, "")
        assert same(load(tmp_path / "model.coterie").get_support(), model.get_support())
    save(coterie.GlobalRedundancySelector(coterie.filters.fisher_score), tmp_path / "model.coterie")
    assert load(tmp_path / "model.coterie").score_func is coterie.filters.fisher_score


def test_every_name_refers_to_its_class():
    for name in names._HOMES:
        assert names.name_of(names.named(name)) == name
    assert names.named("os.Round") is None
    assert names.named("coterie.search.loop.Round") is None


def test_digests_use_the_name_in_files():
    assert names.stable_name(coterie.KNNCriterion) == "KNNCriterion"
    assert names.stable_name(LogisticRegression) == "sklearn.linear_model._logistic.LogisticRegression"


def test_what_cannot_be_saved_is_named(data, tmp_path):
    model = GroupDiscoveryRegressor(3, representative=lambda group: group.features[0])
    with pytest.raises(TypeError, match=r"representative is a function .* Set it to a plain value"):
        save(model, tmp_path / "model.coterie")
    model = GroupDiscoveryClassifier(class_weight={"a": [1, {2: object()}]})
    with pytest.raises(TypeError, match=r"class_weight\['a'\]\[1\]\[2\] is an object"):
        save(model, tmp_path / "model.coterie")
    with pytest.raises(TypeError, match=r"an estimator of Coterie, but got sklearn.pipeline.Pipeline.*skops"):
        save(make_pipeline(GroupDiscoveryRegressor()), tmp_path / "model.coterie")
    fitted = LogisticRegression().fit([[0], [1]], [0, 1])
    with pytest.raises(TypeError, match="cv is a fitted LogisticRegression"):
        save(GroupDiscoveryRegressor(cv=fitted), tmp_path / "model.coterie")
    circle = []
    circle.append(circle)
    with pytest.raises(TypeError, match="nested too deeply"):
        save(GroupDiscoveryRegressor(cv=circle), tmp_path / "model.coterie")
    assert list(tmp_path.iterdir()) == []


def test_unfitted_estimators_of_scikit_learn_are_kept_by_their_parameters(tmp_path):
    model = GroupDiscoveryRegressor(cv=LogisticRegression(C=3.0))  # any parameter will do
    assert round_trip(model, tmp_path).cv.get_params() == model.cv.get_params()


def test_files_that_are_not_models(tmp_path):
    path = tmp_path / "model.coterie"
    with pytest.raises(FileNotFoundError, match=r"Model file .* not found"):
        load(path)
    with pytest.raises(FileNotFoundError, match="not a result folder"):
        load(tmp_path)
    path.write_bytes(b"")
    with pytest.raises(DamagedModelError, match="not an intact Coterie model"):
        load(path)
    path.write_bytes(pickle.dumps({"a": 1}))
    with pytest.raises(DamagedModelError, match="not an intact Coterie model"):
        load(path)
    np.savez(tmp_path / "x.npz", X=np.eye(3))
    path.write_bytes((tmp_path / "x.npz").read_bytes())
    with pytest.raises(DamagedModelError, match=r"model\.json is missing"):
        load(path)


def rewritten(original, path, change, arrays=None):
    """Write the file with changed text and valid checksums, as an attacker could."""
    content, old = read_archive(original)
    change(content)
    content.pop("sha256")
    write_archive(path, content, old if arrays is None else arrays)
    return path


def nested(content, value):
    content["model"]["parameters"]["cv"] = value


FORGERIES = {
    "another format": (lambda c: c.update(format="x"), "is not a Coterie model"),
    "foreign class": (lambda c: c["model"].update(type="os.system"), "names the type 'os.system'"),
    "private class": (lambda c: c["model"].update(type="coterie._validation.x"), "cannot create"),
    "module as class": (lambda c: c["model"].update(type="sklearn.tests.test_base.MyEstimator"), "cannot create"),
    "not an estimator": (lambda c: c["model"].update(type="FeatureGroup"), "cannot create"),
    "unknown parameter": (lambda c: c["model"]["parameters"].update(shape=3), "no parameter 'shape' in this version"),
    "dunder attribute": (lambda c: c["model"]["attributes"].update(__class__=3), "sets the attribute"),
    "foreign object": (lambda c: nested(c, {"$": "object", "type": "pathlib.Path", "fields": {}}), "cannot create"),
    "object with dunder": (
        lambda c: nested(c, {"$": "object", "type": "FeatureGroups", "fields": {"__class__": 1}}),
        "cannot be read",
    ),
    "unknown kind": (lambda c: nested(c, {"$": "code"}), "unknown kind 'code'"),
    "no kind": (lambda c: nested(c, {"a": 1}), "cannot be read"),
    "function": (lambda c: nested(c, {"$": "function", "type": "os.system"}), "not a public function"),
    "method": (lambda c: nested(c, {"$": "function", "type": "load"}), "not a public function"),
    "foreign record": (lambda c: nested(c, {"$": "record", "type": "subprocess.Popen", "fields": {}}), "cannot create"),
    "no splitter": (lambda c: nested(c, {"$": "splitter", "type": "sklearn.svm.SVC", "fields": {}}), "cannot create"),
    "wrong fields": (
        lambda c: nested(c, {"$": "record", "type": "FeatureGroup", "fields": {"a": 1}}),
        "cannot be read",
    ),
    "deep": (lambda c: nested(c, json.loads("[" * 300 + "]" * 300)), "cannot be read"),
    "many objects": (
        lambda c: nested(c, {"$": "objects", "shape": [10**9], "items": []}),
        "does not match its shape",
    ),
    "same array twice": (
        lambda c: nested(c, [{"$": "array", "pool": "float64", "start": 0, "shape": [9], "order": "C"}] * 20_000),
        "overlaps with another",
    ),
    "array before the pool": (
        lambda c: nested(c, {"$": "array", "pool": "float64", "start": -3, "shape": [2], "order": "C"}),
        "overlaps with another",
    ),
    "method as attribute": (
        lambda c: c["model"]["attributes"].update(predict={"$": "function", "type": "fisher_score"}),
        "a fitted attribute is a function",
    ),
    "data as method": (lambda c: c["model"]["attributes"].update(predict=3), "'predict', which belongs to"),
    "data as property": (lambda c: c["model"]["attributes"].update(coef_=3), "'coef_', which belongs to"),
    "object with a method": (
        lambda c: nested(c, {"$": "object", "type": "ProbeSums", "fields": {"add": 1}}),
        "'add', which belongs to the class ProbeSums",
    ),
    "estimator without its constructor": (
        lambda c: nested(c, {"$": "object", "type": "KNNCriterion", "fields": {}}),
        "cannot create",
    ),
    "another package behind scikit-learn": (
        lambda c: nested(c, {"$": "record", "type": "sklearn.externals.array_api_compat.torch.Tensor", "fields": {}}),
        "cannot create",
    ),
    "a model of scikit-learn": (
        lambda c: c["model"].update(type="sklearn.svm.SVC", parameters={}, attributes={}),
        "a SVC of another package",
    ),
    "missing attribute": (lambda c: c["model"]["attributes"].pop("prediction_coef_"), "'prediction_coef_' is missing"),
    "features that are none": (lambda c: c["model"]["attributes"].update(n_features_in_=2), "is invalid or inconsistent"),
    "wrong count": (lambda c: c["model"]["attributes"].update(n_features_in_=True), "'n_features_in_' is invalid"),
    "groups of nothing": (lambda c: c["model"]["attributes"].update(groups_=[]), "'groups_' is invalid"),
    "classes of nothing": (lambda c: c["model"]["attributes"].update(classes_="ab"), "'classes_' is invalid"),
    "huge array": (
        lambda c: nested(c, {"$": "array", "pool": "float64", "start": 0, "shape": [10**12], "order": "C"}),
        "cannot be read",
    ),
}


@pytest.mark.parametrize("name", FORGERIES)
def test_forged_files_create_no_other_objects(original, tmp_path, name):
    change, message = FORGERIES[name]
    path = rewritten(original, tmp_path / "model.coterie", change)
    with pytest.raises(ValueError, match=message):
        load(path)


def large_keys(n_keys):
    return [[k * (2**61 - 1), 0] for k in range(1, n_keys + 1)]


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        ({"$": "dict", "items": large_keys(30_000)}, "an integer key of more than 64 bits"),
        ({"$": "set", "items": [key for key, _ in large_keys(20)]}, "an integer key of more than 64 bits"),
        ({"$": "frozenset", "items": [-key for key, _ in large_keys(20)]}, "an integer key of more than 64 bits"),
        ({"$": "set", "items": [{"$": "tuple", "items": [k]} for k in range(1001)]}, "more than 1000 keys other than"),
        ({"$": "dict", "items": [[{"$": "tuple", "items": [k]}, 0] for k in range(1001)]}, "more than 1000 keys other than"),
    ],
    ids=["dict", "set", "negative", "set of tuples", "dict of tuples"],
)
def test_keys_whose_hashes_may_collide_are_rejected(original, tmp_path, value, reason):
    """Building a dictionary of keys with equal hashes takes quadratic time: 12 s for a file of 896 kB."""
    path = rewritten(original, tmp_path / "m", lambda c: nested(c, value))
    with pytest.raises(ValueError, match=f"a dictionary or set with {reason}"):
        load(path)


def test_keys_that_cannot_be_loaded_are_not_saved(tmp_path):
    with pytest.raises(TypeError, match="class_weight is a dict with an integer key of more than 64 bits"):
        save(GroupDiscoveryClassifier(class_weight={2**64: 1.0}), tmp_path / "m")
    with pytest.raises(TypeError, match="cv is a set with more than 1000 keys"):
        save(GroupDiscoveryClassifier(cv={(k,) for k in range(1001)}), tmp_path / "m")
    kept = {-(2**63): 1, 2**64 - 1: 2, "a": 3, 0.5: 4, None: 5, np.int64(7): 6} | {(k,): k for k in range(1000)}
    assert round_trip(GroupDiscoveryClassifier(class_weight=kept), tmp_path).class_weight == kept


@pytest.fixture
def sized(original, tmp_path):
    """Function that writes a file with a number of features, without any array per feature."""

    def change(n_features, **attributes):
        def forge(content):
            own = content["model"]["attributes"]
            own.pop("feature_names_in_")
            own.update(n_features_in_=n_features, **attributes)

        return rewritten(original, tmp_path / f"{n_features}", forge)

    return change


@pytest.mark.parametrize("n_features", [DEFAULT_MAX_LENGTH + 1, 2**33, 2**47])
def test_more_features_than_values_are_rejected(sized, n_features):
    """``get_support``, ``coef_`` and others allocate by this number."""
    path = sized(n_features)
    with pytest.raises(ValueError, match=rf"too few for a model of {n_features} features\. .*max_features={n_features}"):
        load(path)
    assert load(path, max_features=n_features).n_features_in_ == n_features
    with pytest.raises(ValueError, match=f"it has {n_features} features, more than max_features={n_features - 1}"):
        load(path, max_features=n_features - 1)


def test_as_many_features_as_any_file_may_have_are_accepted(sized):
    assert load(sized(DEFAULT_MAX_LENGTH)).get_support().sum() == 2


def test_weights_that_do_not_fit_into_memory_are_rejected(sized, monkeypatch):
    monkeypatch.setattr(fitted, "free_memory", lambda: 8 * DEFAULT_MAX_LENGTH - 1)
    with pytest.raises(ValueError, match=r"coef_ would take 268.4 MB, more than the free memory\. If you trust"):
        load(sized(DEFAULT_MAX_LENGTH))
    monkeypatch.setattr(fitted, "free_memory", lambda: 8 * DEFAULT_MAX_LENGTH)
    assert load(sized(DEFAULT_MAX_LENGTH)).coef_.shape == (1, DEFAULT_MAX_LENGTH)


def test_names_with_decreasing_ends_are_rejected(original, tmp_path):
    """A megabyte of text, which every second name would repeat."""
    ends = np.tile(np.array([1_000_000, 0]), 50_000)
    arrays = {"uint8": np.zeros(1_000_000, dtype=np.uint8), "int64": ends}
    value = {
        "$": "names",
        "text": {"$": "array", "pool": "uint8", "start": 0, "shape": [1_000_000], "order": "C"},
        "ends": {"$": "array", "pool": "int64", "start": 0, "shape": [100_000], "order": "C"},
    }
    content = {"parameters": {"cv": value}, "type": "GroupDiscoveryRegressor", "attributes": {}, "$": "estimator"}
    path = rewritten(original, tmp_path / "m", lambda c: c.update(model=content), arrays)
    with pytest.raises(ValueError, match="ends of its names"):
        load(path)


@pytest.mark.parametrize(
    "change",
    [
        {2: 10**7},
        {2: -1},
        {2: True},
        {0: "PCG64"},
        {1: np.zeros(3, dtype=np.uint32)},
        {1: np.zeros(624)},
        {3: 2},
        {4: "x"},
    ],
)
def test_random_states_that_crash_numpy_are_rejected(tmp_path, change, monkeypatch):
    state = list(np.random.RandomState(0).get_state())
    for place, value in change.items():
        state[place] = value

    class Forged:
        def get_state(self):
            return tuple(state)

    monkeypatch.setattr(np.random, "RandomState", Forged)
    save(GroupDiscoveryRegressor(random_state=Forged()), tmp_path / "m")
    monkeypatch.undo()
    with pytest.raises(ValueError, match="state of a random number generator"):
        load(tmp_path / "m")


def test_custom_attributes_are_not_part_of_the_model(original, tmp_path):
    model = GroupDiscoveryRegressor()
    model.note = "mine"
    assert not hasattr(round_trip(model, tmp_path), "note")
    path = rewritten(original, tmp_path / "forged", lambda c: c["model"]["attributes"].update(note="mine"))
    assert not hasattr(load(path), "note")


def test_overlapping_members_are_rejected(tmp_path):
    """A thousand entries for one member of a megabyte."""
    path = tmp_path / "m"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("model.json", bytes(1_000_000))
        first = archive.infolist()[0]
        for number in range(1000):
            other = zipfile.ZipInfo(f"{number}.npy")
            other.header_offset, other.CRC = first.header_offset, first.CRC
            other.file_size = other.compress_size = first.file_size
            archive.filelist.append(other)
            archive.NameToInfo[other.filename] = other
    with pytest.raises(DamagedModelError, match="larger than the file"):
        load(path)


def test_arrays_with_objects_or_wrong_headers_are_rejected(tmp_path):
    import hashlib

    for array, lie in ((np.array([{}], dtype=object), None), (np.zeros(3), b"(9,)")):
        buffer = io.BytesIO()
        np.lib.format.write_array(buffer, array, allow_pickle=True)
        data = buffer.getvalue() if lie is None else buffer.getvalue().replace(b"(3,)", lie)
        text = json.dumps({"sha256": {"a": hashlib.sha256(data).hexdigest()}}).encode()
        with zipfile.ZipFile(tmp_path / "m", "w") as archive:
            archive.writestr("a.npy", data)
            archive.writestr("model.json", text)
            archive.comment = hashlib.sha256(text).hexdigest().encode()
        with pytest.raises(DamagedModelError, match="does not match its header"):
            load(tmp_path / "m")


def test_compressed_members_are_rejected(tmp_path):
    with zipfile.ZipFile(tmp_path / "m", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("model.json", b"0" * 10_000_000)
    with pytest.raises(DamagedModelError, match="compressed or repeated members"):
        load(tmp_path / "m")


@given(st.data())
def test_damaged_bytes_give_a_clear_error_or_the_same_model(original, tmp_path_factory, data):
    """Any changed byte is an error, unless it is not read (a date in the archive)."""
    damaged = bytearray(original.read_bytes())
    n_bytes = len(damaged)
    if data.draw(st.booleans()):
        for _ in range(data.draw(st.integers(1, 3))):
            damaged[data.draw(st.integers(0, n_bytes - 1))] = data.draw(st.integers(0, 255))
    else:
        cut = sorted(data.draw(st.tuples(*[st.integers(0, n_bytes)] * 2)))
        damaged[cut[0] : cut[1]] = data.draw(st.binary(max_size=40))
    path = tmp_path_factory.getbasetemp() / "damaged.coterie"
    path.write_bytes(damaged)
    try:
        model = load(path)
    except DamagedModelError:
        return
    assert same(model.groups_, load(original).groups_)
    assert same(vars(model), vars(load(original)))


def test_any_bytes_are_rejected(tmp_path):
    rng = np.random.default_rng(0)
    path = tmp_path / "m"
    for head in (b"", b"PK\x03\x04", b"\x93NUMPY"):
        path.write_bytes(head + rng.bytes(300))
        with pytest.raises(DamagedModelError):
            load(path)


def test_a_failed_save_leaves_the_old_file(data, tmp_path):
    path = tmp_path / "model.coterie"
    save(GroupDiscoveryRegressor(3).fit(*data), path)
    before = path.read_bytes()
    with pytest.raises(TypeError):
        save(GroupDiscoveryRegressor(representative=print), path)
    assert path.read_bytes() == before
    assert [file.name for file in tmp_path.iterdir()] == ["model.coterie"]


def test_two_threads_save_to_one_path(tmp_path):
    path, barrier = tmp_path / "model.coterie", threading.Barrier(2)

    def write(size):
        barrier.wait()
        save(GroupDiscoveryClassifier(size, fixed_features=list(range(50 * size))), path)

    with ThreadPoolExecutor(2) as pool:
        for _ in range(100):
            list(pool.map(write, [10, 20]))
            model = load(path)
            assert len(model.fixed_features) == 50 * model.n_features_to_select
    assert [file.name for file in tmp_path.iterdir()] == ["model.coterie"]


def test_names_are_public():
    assert coterie.save is save
    assert coterie.load is load


def every_estimator():
    """Return all public estimators of the package."""
    found = {}
    for module in (coterie, *(getattr(coterie, name) for name in coterie._MODULES)):
        for name in getattr(module, "__all__", []):
            value = getattr(module, name)
            is_estimator = inspect.isclass(value) and issubclass(value, BaseEstimator) and not inspect.isabstract(value)
            if is_estimator and not issubclass(value, Pipeline):  # a pipeline has steps of other packages
                found[value.__name__] = value
    return list(found.values())


@pytest.mark.parametrize("kind", every_estimator(), ids=lambda kind: kind.__name__)
def test_every_public_estimator_can_be_saved(kind, data, tmp_path):
    X, target = data
    small = {"n_features_to_select": 3, "n_probes": 20, "random_state": 0, "estimator": LogisticRegression()}
    model = kind(**{name: value for name, value in small.items() if name in inspect.signature(kind).parameters})
    if hasattr(model, "fit"):
        survival = np.column_stack([np.exp(target), target < 1])
        is_survival = "Survival" in kind.__name__
        model.fit(X, survival if is_survival else target if is_regressor(model) else np.where(target > 0, 1, -1))
    again = round_trip(model, tmp_path)
    save(again, tmp_path / "second")
    assert (tmp_path / "second").read_bytes() == (tmp_path / "model.coterie").read_bytes()
    for name in ("predict", "transform"):
        if hasattr(model, name):
            assert same(getattr(again, name)(X), getattr(model, name)(X))
