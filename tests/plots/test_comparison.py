"""Curves of a comparison show the values of the table."""

import numpy as np
import pandas as pd
import pytest

from coterie.plots import canvas, comparison_curves

COLUMNS = ["method", "n_features", "fold", "accuracy", "redundancy_rate", "fit_seconds", "status", "message"]


def run(method, n_features, fold, status="ok"):
    nothing = status != "ok"
    value = 0.0 if nothing else len(method) / 10 + n_features / 100 + fold**2 / 50
    return [method, n_features, fold, value, value / 2, 10 * value, status, "why" if nothing else ""]


@pytest.fixture
def table():
    rows = [run(m, k, f) for m in ("ours", "RFE") for k in (10, 5) for f in range(3)]
    rows += [run("slow", k, f, "ok" if k == 5 else "timed out") for k in (5, 10) for f in range(3)]
    rows += [run("broken", 5, 0, "failed"), run("broken", 10, 0, "failed")]
    rows += [run("both", 5, 0, "failed"), run("both", 5, 1, "out of memory"), run("both", 5, 2)]
    return pd.DataFrame(rows, columns=COLUMNS).sample(frac=1, random_state=0, ignore_index=True)


def curves(ax):
    return [line for line in ax.lines if line.get_gid() == "curve"]


def test_curves_are_means_and_bands_extend_from_lowest_to_highest_fold(table):
    figure = comparison_curves(table)
    good = table[table.status == "ok"]
    methods = [m for m in dict.fromkeys(table.method) if m in set(good.method)]
    for ax, metric in zip(figure.axes, ["accuracy", "redundancy_rate", "fit_seconds"], strict=True):
        assert len(curves(ax)) == len(ax.collections) == len(methods) == 4
        for method, line, band in zip(methods, curves(ax), ax.collections, strict=True):
            folds = good[good.method == method].groupby("n_features")[metric]
            np.testing.assert_allclose(line.get_xdata(), sorted(folds.groups))
            np.testing.assert_allclose(line.get_ydata(), folds.mean())
            for size in folds.groups:
                points = band.get_paths()[0].vertices
                values = points[points[:, 0] == size, 1]
                assert values.min() == pytest.approx(folds.min()[size])
                assert values.max() == pytest.approx(folds.max()[size])
    assert [ax.get_yscale() for ax in figure.axes] == ["linear", "linear", "log"]
    assert "second" in figure.axes[2].get_ylabel()


def test_unsuccessful_runs_are_counted_and_not_drawn_as_zeros(table):
    figure = comparison_curves(table)
    labels = {text.get_text() for text in figure.legends[0].get_texts()}
    counted = {"slow (3 of 6 runs timed out)", "broken (failed)", "both (1 of 3 runs failed, 1 out of memory)"}
    assert labels == {"ours", "RFE", *counted}
    for ax in figure.axes:
        assert min(line.get_ydata().min() for line in curves(ax)) > 0.1
        assert all(np.isfinite(line.get_ydata()).all() for line in curves(ax))


def test_comparison_of_failed_runs_has_a_legend():
    figure = comparison_curves(pd.DataFrame([run("broken", 5, 0, "failed")], columns=COLUMNS))
    assert [text.get_text() for text in figure.legends[0].get_texts()] == ["broken (failed)"]
    assert not any(ax.lines for ax in figure.axes)
    figure.savefig("/dev/null", format="png")


def test_each_method_has_its_own_style_in_all_panels():
    methods = [f"method {i}" for i in range(30)]
    table = pd.DataFrame([run(m, k, 0) for m in methods for k in (5, 10)], columns=COLUMNS)
    figure = comparison_curves(table, ["accuracy", "fit_seconds"])
    looks = [[(ln.get_color(), ln.get_marker(), ln.get_linestyle()) for ln in curves(ax)] for ax in figure.axes]
    looks.append([(h.get_color(), h.get_marker(), h.get_linestyle()) for h in figure.legends[0].legend_handles])
    assert looks[0] == looks[1] == looks[2]
    assert len(set(looks[0])) == 30
    assert len({canvas.style(i) for i in range(77)}) == 77


def test_given_axes_are_used(table, axes):
    figure = comparison_curves(table, ["accuracy", "fit_seconds"], axes=axes)
    assert figure is axes[0].figure
    assert len(figure.axes) == 2
    assert len(curves(axes[1])) == 4
    assert axes[0].get_legend() is None
    assert len(axes[1].get_legend().get_texts()) == 5
    alone = comparison_curves(table, "accuracy", axes=axes[0])
    assert alone is figure


def test_names_are_drawn_verbatim(tmp_path):
    table = pd.DataFrame([run("_hidden $x_{1$", k, 0) for k in (1, 2)], columns=COLUMNS)
    figure = comparison_curves(table, ["accuracy"])
    figure.savefig(tmp_path / "figure.svg")  # invalid mathematics would raise an error
    assert len(figure.legends[0].get_texts()) == 1


def test_polars_frames(table):
    polars = pytest.importorskip("polars")
    ours = comparison_curves(table[["method", "n_features", "status", "accuracy"]], ["accuracy"])
    theirs = comparison_curves(polars.from_pandas(table[["method", "n_features", "status", "accuracy"]]), ["accuracy"])
    for mine, other in zip(curves(ours.axes[0]), curves(theirs.axes[0]), strict=True):
        np.testing.assert_array_equal(mine.get_xydata(), other.get_xydata())


@pytest.mark.parametrize(
    ("change", "metrics", "message"),
    [
        (lambda t: t.drop(columns="status"), ["accuracy"], "no column 'status'. Its columns are method, "),
        (lambda t: t, ["accurracy"], "no column 'accurracy'"),
        (lambda t: t, [], "metrics is empty"),
        (lambda t: t.iloc[:0], ["accuracy"], "no rows"),
        (lambda t: t, ["message"], "column 'message' of the table must contain numbers"),
    ],
)
def test_wrong_tables(table, change, metrics, message):
    with pytest.raises(ValueError, match=message):
        comparison_curves(change(table), metrics)


def test_wrong_arguments(table, axes):
    with pytest.raises(TypeError, match=r"must be a data frame.*not list"):
        comparison_curves([1, 2])
    with pytest.raises(ValueError, match=r"axes must be 3 matplotlib Axes.*but has 2"):
        comparison_curves(table, axes=axes)


def test_without_matplotlib_the_error_names_the_extra(table, monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "matplotlib.figure", None)
    with pytest.raises(ImportError, match=r"pip install 'coterie\[plot\]'"):
        comparison_curves(table)
