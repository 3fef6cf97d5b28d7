"""Figures of groups show the groups that were found."""

import numpy as np
import pytest
from sklearn.exceptions import NotFittedError

from coterie import FeatureGroup, FeatureGroups, GroupDiscoveryClassifier
from coterie.baselines import MRMRSelector
from coterie.plots import affiliated_counts, canvas, group_graph, pixel_map


@pytest.fixture
def groups():
    return FeatureGroups(
        [
            FeatureGroup(3, [7, 5, 8], [0.95, -0.8, np.nan], names=("hub", "close", "opposite", "unknown")),
            FeatureGroup(1, [], names=("alone",)),
            FeatureGroup(11, [0], [0.7], names=("$5_hub$", "_a $ b")),
        ]
    )


@pytest.fixture(scope="module")
def model(planted):
    return GroupDiscoveryClassifier(4, n_features_per_round=1).fit(planted.X, planted.y)


def artist(ax, gid):
    return next(one for one in (*ax.collections, *ax.images) if one.get_gid() == gid)


def texts(ax):
    return [text.get_text() for text in ax.texts]


# Graph ------------------------------------------------------------------------------------------


def test_graph_connects_affiliated_features_with_their_hub(groups, tmp_path):
    figure = group_graph(groups)
    ax = figure.axes[0]
    hubs = {text.get_text().replace("\\", ""): text.get_position() for text in ax.texts if text.get_gid() == "support"}
    assert set(hubs) == {"1 · hub", "2 · alone", "3 · $5_hub$"}
    lines = artist(ax, "correlations").get_segments()
    assert [tuple(line[0]) for line in lines] == [hubs["1 · hub"]] * 3 + [hubs["3 · $5_hub$"]]
    np.testing.assert_allclose(artist(ax, "affiliated").get_offsets(), [line[1] for line in lines])
    names = [text for text in ax.texts if text.get_gid() != "support"]
    assert [text.get_text().strip() for text in names] == ["close", "opposite", "unknown", "_a \\$ b"]
    for text, line in zip(names, lines, strict=True):  # each name beside its own feature
        assert np.argmin([np.hypot(*(np.subtract(text.get_position(), other[1]))) for other in lines]) == [
            np.array_equal(line, other) for other in lines
        ].index(True)
    assert ax.get_title() == "3 groups, 7 features"
    figure.savefig(tmp_path / "graph.png")


def test_graph_strength_is_width_and_sign_is_colour(groups):
    from matplotlib.colors import to_hex

    lines = artist(group_graph(groups).axes[0], "correlations")
    widths = lines.get_linewidths()
    assert widths[0] > widths[1] > widths[3]  # 0.95, 0.8, 0.7
    assert [to_hex(colour) for colour in lines.get_colors()] == [canvas.BLUE, canvas.VERMILLION, canvas.GREY, canvas.BLUE]


def test_graph_shows_numbers_of_omitted_features(rng):
    r = rng.uniform(0.7, 1, 300)
    many = FeatureGroups([FeatureGroup(1000 + g, np.arange(300), r) for g in range(30)])
    ax = group_graph(many, max_groups=10, max_affiliated=12).axes[0]
    assert ax.get_title() == "30 groups, 9,030 features (10 groups and 130 features shown)"
    assert texts(ax).count("+ 288 more") == 10
    strongest = np.argsort(-r)[:12]
    assert texts(ax)[:12] == [str(j) for j in strongest]
    assert len(artist(ax, "correlations").get_segments()) == 120


@pytest.mark.parametrize(("length", "most"), [(3, 24), (15, 24), (5, 80)])
def test_graph_names_do_not_overlap(rng, length, most):
    """Ten groups of hundreds: no name covers another, and none extends beyond the figure."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg

    def named(g, n):
        names = tuple(f"{g}{'x' * length}{i}" for i in range(n + 1))
        return FeatureGroup(500 * g, 500 * g + 1 + np.arange(n), rng.uniform(0.7, 1, n), names=names)

    found = [named(g, n) for g, n in enumerate([300, 1, 2, 3, 24, 25, 0, 0, 8, 100])]
    figure = group_graph(found, max_affiliated=most)
    drawer = FigureCanvasAgg(figure)
    drawer.draw()
    boxes = []
    for text in figure.axes[0].texts:
        turned = text.get_rotation()
        text.set_rotation(0)
        flat = text.get_window_extent(drawer.get_renderer())
        text.set_rotation(turned)
        middle = (text.get_window_extent(drawer.get_renderer()).get_points()).mean(axis=0)
        # Points along the middle line of the name, a little less than its length.
        reach = 0.45 * flat.width * np.array([np.cos(np.radians(turned)), np.sin(np.radians(turned))])
        boxes.append((middle + np.linspace(-1, 1, 9)[:, None] * reach, flat.height))
    frame = figure.bbox
    for points, _ in boxes:
        assert (points > 0).all()
        assert (points < [frame.width, frame.height]).all()
    for i, (points, height) in enumerate(boxes):
        for others, _ in boxes[:i]:
            assert np.linalg.norm(points[:, None] - others[None], axis=2).min() > 0.8 * height
    dots = figure.axes[0].transData.transform(artist(figure.axes[0], "affiliated").get_offsets())
    for hub in [text.get_bbox_patch().get_window_extent() for text in figure.axes[0].texts if text.get_gid() == "support"]:
        assert not hub.count_contains(dots)


def test_graph_accepts_an_estimator_and_axes(model, axes):
    figure = group_graph(model, ax=axes[1], title="found")
    assert figure is axes[1].figure
    assert axes[1].get_title() == "found"
    assert not axes[0].texts
    hubs = [text.get_text() for text in axes[1].texts if text.get_gid() == "support"]
    assert hubs == [f"{n} · {j}" for n, j in enumerate(model.support_features_, start=1)]


def test_graph_marks_wrong_features():
    truth = FeatureGroups([FeatureGroup(0, [1, 2], [0.9, 0.8]), FeatureGroup(3, [4], [0.9])])
    found = FeatureGroups([FeatureGroup(0, [1, 9], [0.9, 0.8]), FeatureGroup(4, [3], [0.9]), FeatureGroup(7, [])])
    ax = group_graph(found, truth=truth).axes[0]
    colours = {text.get_text(): text.get_color() for text in ax.texts}
    assert [name for name, colour in colours.items() if colour == "0.55"] == ["9", "3", "2 · 4", "3 · 7"]
    lines = artist(ax, "correlations").get_segments()  # 0-1, 0-9, 4-3
    np.testing.assert_allclose(artist(ax, "affiliated").get_offsets(), [lines[0][1]])
    np.testing.assert_allclose(artist(ax, "wrong").get_offsets(), [lines[1][1], lines[2][1]])
    assert [text.get_text() for text in ax.get_legend().get_texts()][-1] == "wrong"
    right = group_graph(truth, truth=truth).axes[0]
    assert all(one.get_gid() != "wrong" for one in right.collections)
    assert "wrong" not in [text.get_text() for text in right.get_legend().get_texts()]


def test_graph_of_single_features():
    ax = group_graph(FeatureGroup(4, [])).axes[0]
    assert texts(ax) == ["1 · 4"]
    assert not ax.collections


# Pixels -----------------------------------------------------------------------------------------


def test_pixels_by_role(groups):
    figure = pixel_map(groups, (3, 4))
    assert artist(figure.axes[0], "pixels").get_array().filled(0).tolist() == [[1, 2, 0, 2], [0, 1, 0, 1], [1, 0, 0, 2]]
    labels = [text.get_text() for text in figure.axes[0].get_legend().get_texts()]
    assert labels == ["3 support", "4 affiliated"]


def test_pixels_in_column_major_order_with_a_background(groups):
    picture = np.arange(12.0).reshape(3, 4)
    for background in (picture, picture.ravel(order="F")):
        ax = pixel_map(groups, (3, 4), order="F", background=background).axes[0]
        assert artist(ax, "background").get_array().tolist() == picture.tolist()
        values = artist(ax, "pixels").get_array().filled(0)
        assert values.ravel(order="F").tolist() == [1, 2, 0, 2, 0, 1, 0, 1, 1, 0, 0, 2]


def test_pixels_by_group(groups):
    ax = pixel_map(groups, (3, 4), by="group", title="digits").axes[0]
    assert artist(ax, "pixels").get_array().filled(0).tolist() == [[3, 2, 0, 1], [0, 1, 0, 1], [1, 0, 0, 3]]
    assert artist(ax, "support").get_offsets().tolist() == [[3, 0], [1, 0], [3, 2]]  # column, row
    assert len(set(map(tuple, artist(ax, "pixels").get_cmap().colors))) == 3
    assert ax.get_title() == "digits"


def test_support_pixel_that_is_affiliated_elsewhere_is_drawn_as_support():
    both = FeatureGroups([FeatureGroup(0, []), FeatureGroup(1, [0], [0.9])])
    assert artist(pixel_map(both, (1, 2)).axes[0], "pixels").get_array().tolist() == [[2, 2]]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"shape": (2, 3)}, "feature 11, but an image of 2 x 3 has 6 pixels"),
        ({"shape": (12,)}, "must be the numbers of rows and columns"),
        ({"shape": (3.0, 4.0)}, "must be the numbers of rows and columns"),
        ({"shape": (3, 0)}, "must be the numbers of rows and columns"),
        ({"shape": (3, 4), "order": "K"}, "order='K' must be one of 'C', 'F'"),
        ({"shape": (3, 4), "by": "name"}, "by='name' must be one of"),
        (
            {"shape": (3, 4), "background": np.zeros((4, 3))},
            r"background has shape \(4, 3\), but must have shape \(3, 4\) or \(12,\)",
        ),
    ],
)
def test_wrong_images(groups, arguments, message):
    with pytest.raises(ValueError, match=message):
        pixel_map(groups, **arguments)


# Counts -----------------------------------------------------------------------------------------


def test_counts_add_up(groups, model):
    ax = affiliated_counts({"three": groups, "planted": model}).axes[0]
    assert ax.lines[0].get_xydata().tolist() == [[0, 0], [1, 3], [2, 3], [3, 4]]
    assert ax.lines[1].get_ydata().tolist() == [0, *np.cumsum([len(group) - 1 for group in model.groups_])]
    assert [text.get_text() for text in ax.get_legend().get_texts()] == ["three", "planted"]


def test_axes_of_a_subfigure_return_the_whole_figure(groups):
    from matplotlib.figure import Figure

    whole = Figure()
    part = whole.subfigures(1, 2)[1]
    assert affiliated_counts(groups, ax=part.add_subplot()) is whole


def test_counts_one_after_the_other_on_the_same_axes(groups, axes):
    affiliated_counts(groups, ax=axes[0])
    assert axes[0].get_legend() is None
    assert affiliated_counts({"again": groups[:1]}, ax=axes[0]) is axes[0].figure
    assert len({line.get_color() for line in axes[0].lines}) == 2


# Wrong input ------------------------------------------------------------------------------------


def draw_pixels(groups):
    return pixel_map(groups, (3, 4))


@pytest.mark.parametrize("draw", [group_graph, draw_pixels, affiliated_counts])
def test_objects_without_groups_are_refused(draw, rng):
    with pytest.raises(ValueError, match="no groups"):
        draw(FeatureGroups([]))
    with pytest.raises(NotFittedError, match=r"GroupDiscoveryClassifier has no groups_\. Fit it first"):
        draw(GroupDiscoveryClassifier())
    with pytest.raises(NotFittedError, match="an estimator that returns groups"):
        draw(MRMRSelector(2).fit(rng.standard_normal((20, 4)), np.arange(20) % 2))
    with pytest.raises(TypeError, match="not int"):
        draw(3)
    with pytest.raises(TypeError, match="a sequence of int"):
        draw([1, 2])


def test_other_wrong_arguments(groups, axes):
    with pytest.raises(ValueError, match="empty mapping"):
        affiliated_counts({})
    with pytest.raises(ValueError, match="max_groups=0 must be a whole number of at least 1"):
        group_graph(groups, max_groups=0)
    with pytest.raises(ValueError, match=r"max_affiliated=2\.5"):
        group_graph(groups, max_affiliated=2.5)
    for draw in (group_graph, affiliated_counts):
        with pytest.raises(TypeError, match="ax must be one matplotlib Axes, but is ndarray"):
            draw(groups, ax=axes)
