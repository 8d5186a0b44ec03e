from pathlib import Path

import matplotlib
import numpy as np
import pytest

from ezgreedy.figures import curves, heatmaps, style
from ezgreedy.findings.maps import ColourScale
from ezgreedy.findings.panels import Curve, Panel

MAPS = [[np.arange(12.0).reshape(3, 4), np.full((3, 4), 50.0)]]


def maps_figure(*, is_log: bool = False) -> heatmaps.Figure:
    scale = ColourScale(100.0, is_log=is_log)
    return heatmaps.first_visit_maps(MAPS, ["εz"], ["a", "b"], scale)


def test_saving_twice_gives_the_same_bytes(tmp_path: Path) -> None:
    first = style.save(maps_figure(), tmp_path / "one" / "maps")
    second = style.save(maps_figure(), tmp_path / "two" / "maps")
    assert [file.name for file in first] == ["maps.png", "maps.svg"]
    for one, two in zip(first, second, strict=True):
        assert one.read_bytes() == two.read_bytes()


def test_drawing_leaves_matplotlib_as_it_was(tmp_path: Path) -> None:
    before = dict(matplotlib.rcParams)
    style.save(maps_figure(), tmp_path / "maps")
    assert dict(matplotlib.rcParams) == before


def test_maps_share_a_scale_and_say_their_means() -> None:
    left, right, _bar = maps_figure().axes
    assert left.get_xlabel() == "mean 6"
    assert right.get_xlabel() == "mean 50"
    for axis in (left, right):
        (image,) = axis.images
        assert (image.norm.vmin, image.norm.vmax) == (0, 100)


def test_a_log_scale_shows_zero_as_one() -> None:
    image = maps_figure(is_log=True).axes[0].images[0]
    assert image.get_array()[0, 0] == 1.0
    assert image.norm(10.0) == pytest.approx(0.5)


def test_curves_have_their_bands_and_colours() -> None:
    x = np.arange(3)
    lines = [
        Curve("ε", x, x, colour=style.EPS_COLOUR),
        Curve("εz", x, x + 1, x, x + 2, colour=style.EZ_COLOUR),
    ]
    figure = curves.learning_curves([Panel("N", lines, x_label="episode", y_label="return")])
    (axis,) = figure.axes
    assert [line.get_color() for line in axis.lines] == [style.EPS_COLOUR, style.EZ_COLOUR]
    (band,) = axis.collections
    points = band.get_paths()[0].vertices
    assert points[:, 1].min() == 0
    assert points[:, 1].max() == 4
    assert [text.get_text() for text in axis.get_legend().get_texts()] == ["ε", "εz"]


def test_panels_share_a_legend_below_that_names_each_curve_once() -> None:
    ours = Curve("ours", [0, 1], [1, None])
    theirs = Curve("theirs", [0, 1], [2, 2])
    panel = Panel("N", [ours], x_label="frames", y_label="score", references=[theirs])
    figure = curves.learning_curves([panel] * 2, shares_legend=True)
    assert [axis.get_legend() for axis in figure.axes] == [None, None]
    (legend,) = figure.legends
    assert [text.get_text() for text in legend.get_texts()] == ["ours", "theirs"]
    line, reference = figure.axes[0].lines
    assert np.isnan(line.get_ydata()[1])
    assert reference.get_linestyle() == "--"
    assert reference.get_linewidth() < line.get_linewidth()


def test_panels_fill_rows_and_no_place_is_drawn_empty() -> None:
    panel = Panel("N", [Curve("a", [0.0, 1.0], [0.0, 1.0])], x_label="x", y_label="y")
    places = [axis.get_position() for axis in curves.learning_curves([panel] * 5, columns=4).axes]
    assert len(places) == 5
    assert len({round(place.y0, 3) for place in places}) == 2
    assert places[4].x0 == pytest.approx(places[0].x0)


def test_a_figure_as_text_is_the_same_svg_every_time() -> None:
    text = style.svg(maps_figure())
    assert text == style.svg(maps_figure())
    assert text.startswith("<?xml")
    assert "<dc:date>" not in text
