"""Results without values of single samples: planted values are searched for in all files."""

import base64
import gzip
import json
import re

import numpy as np
import pytest

import coterie
from coterie.report.confidential import FEWEST, without_samples

N = 101  # odd, so that medians are values of samples


def data_of(kind):
    """Return features, target and task; all values have many digits, so that equality is no coincidence."""
    rng = np.random.default_rng(5)
    X = rng.standard_normal((N, 12)) * 7.3
    signal = X[:, 3] - X[:, 8]
    if kind == "classes":
        return X, np.where(signal + rng.standard_normal(N) > 0, "ill", "well"), {}
    if kind == "survival":
        times = rng.exponential(40 * np.exp(-signal / 10))
        return X, np.column_stack([times, rng.random(N) < 0.8]), {"task": "survival"}
    if kind == "several":
        return X, np.column_stack([signal, X[:, 3]]) + 8 * rng.standard_normal((N, 2)), {}
    return X, signal + rng.standard_normal(N), {}


def numbers_in(value):
    """Return all numbers of a JSON object."""
    if isinstance(value, dict):
        return [number for item in value.values() for number in numbers_in(item)]
    if isinstance(value, list):
        return [number for item in value for number in numbers_in(item)]
    return [float(value)] if isinstance(value, (int, float)) and not isinstance(value, bool) else []


def page_data(text):
    packed = re.search(r'<script type="application/x-coterie" id="data">([A-Za-z0-9+/=]*)</script>', text)[1]
    return json.loads(gzip.decompress(base64.b64decode(packed)))


def leaked(content, values, digits):
    """Return the numbers of a JSON object that are values, as they are or with the digits of figures."""
    known = {float(f"{value:.{d}g}") for value in values for d in digits}
    return [number for number in numbers_in(content) if number in known]


@pytest.fixture(scope="module", params=["classes", "numbers", "several", "survival"])
def found(request):
    X, y, more = data_of(request.param)
    values = [*X[:, [3, 8]].ravel().tolist()]
    if y.dtype.kind == "f":
        values += (y[:, 0] if request.param == "survival" else y).ravel().tolist()
    return coterie.discover(X, y, n_pairs=2, max_features_to_select=4, **more), values, request.param


def test_no_value_of_a_sample_is_left(found, tmp_path):
    discovery, values, kind = found
    discovery.save(tmp_path / "open")
    discovery.save(tmp_path / "closed", samples=False)
    opened, closed = (json.loads((tmp_path / name / "result.json").read_text()) for name in ("open", "closed"))
    expected = 20 if kind == "several" else 60  # predictions and targets of several targets, else also features
    assert len(leaked(opened, values, [4, 5, 17])) > expected
    page = (tmp_path / "closed" / "report.html").read_text()
    data = page_data(page)
    for curves in (closed["held_out"]["curves"], data["score"]["curves"]):
        for own in curves["groups"] if curves else ():
            times = own.pop("times")  # multiples of a round number
            assert times == pytest.approx(np.linspace(0, float(f"{times[-1]:.2g}"), 21))
    for own in (closed["held_out"]["diagnostics"] or {}).pop("calibration", ()):  # means of several samples
        assert min(own["samples"]) >= FEWEST
    assert leaked(closed, values, [4, 5, 6, 17]) == []
    (data["score"]["diagnostics"] or {}).pop("calibration", ())
    assert leaked(data, values, [5, 6, 17]) == []
    visible = re.sub(r"<script.*?</script>|<style.*?</style>", "", page, flags=re.DOTALL)
    assert not {f"{value:.4g}" for value in values} & set(re.findall(r"[-−]?\d+\.\d+", visible))
    model = coterie.load(tmp_path / "closed").model
    assert hasattr(discovery.model, "held_out_predictions_")
    assert not any(hasattr(model, name) for name in ("held_out_predictions_", "held_out_tertiles_"))
    assert discovery.report(samples=False).html.count("<svg") == 0


def test_what_remains(found):
    discovery, _, kind = found
    less = without_samples(discovery)
    assert less.judgement == discovery.judgement
    assert less.held_out.value == discovery.held_out.value
    full, content = (page_data(one.report().html) for one in (discovery, less))
    assert content["values"] is None
    assert content["curve"] == full["curve"]
    assert content["groups"] == full["groups"]
    if kind == "classes":
        (row,) = content["statistics"][:1]
        assert [sorted(own) for own in row] == [["mean", "n", "sd"]] * 2
        assert content["score"]["diagnostics"] == full["score"]["diagnostics"]
    if kind == "numbers":
        assert len(full["score"]["diagnostics"]["points"][0]["observed"]) == N
        assert content["score"]["diagnostics"]["points"] == []
        assert content["score"]["diagnostics"]["calibration"] == full["score"]["diagnostics"]["calibration"]
    if kind == "survival":
        for own, other in zip(content["score"]["curves"]["groups"], full["score"]["curves"]["groups"], strict=True):
            for time, share in zip(own["times"], own["survival"], strict=True):
                before = [s for t, s in zip(other["times"], other["survival"], strict=True) if t <= time]
                assert share == before[-1]
            assert own["median"] == pytest.approx(other["median"], abs=own["times"][1])


def test_rare_values_are_left_out():
    rng = np.random.default_rng(0)
    X = rng.binomial(2, 0.5, (80, 6)).astype(float)
    y = np.where(X[:, 2] + rng.standard_normal(80) > 1, "ill", "well")
    X[7, 2] = 7777.0
    model = coterie.GroupDiscoveryClassifier(1, fixed_features=[2]).fit(X, y)
    assert "7777" in json.dumps(page_data(coterie.report(model, X, y).html))
    assert "7777" not in json.dumps(page_data(coterie.report(model, X, y, samples=False).html))
    X[7, 2] = 1.0
    kept = page_data(coterie.report(model.fit(X, y), X, y, samples=False).html)
    assert kept["levels"][0]["names"] == ["0", "1", "2"]


def test_means_of_few_samples_are_left_out():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((60, 5))
    y = np.array(["rare"] * (FEWEST - 1) + ["a"] * 28 + ["b"] * 28)
    model = coterie.GroupDiscoveryClassifier(2).fit(X, y)
    content = page_data(coterie.report(model, X, y, samples=False).html)
    for row in content["statistics"]:
        assert [own["mean"] is None for own in row] == [False, False, True]
