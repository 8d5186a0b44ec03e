import re
from itertools import combinations
from pathlib import Path

import numpy as np
import pytest
from gymnasium import spaces

from ezgreedy.analysis.bins import Bins
from ezgreedy.analysis.visits import FirstVisitTimes
from ezgreedy.figures import style
from ezgreedy.figures.coverage_maps import Layout, draw_maps

PLANE = Bins.of(spaces.Box(np.float32([0, 10]), np.float32([1, 30])), 4)
STATES = Bins.of(spaces.Discrete(12))


def some_visits(bins):
    first = np.arange(2 * bins.num_cells).reshape(2, -1)
    return FirstVisitTimes(first, (first % 3).astype(np.int64), 2 * bins.num_cells, bins.counts)


def test_the_first_dimension_runs_to_the_right_and_the_second_upwards():
    values = np.zeros((4, 4))
    values[3, 0] = 1.0  # large in dimension 0, small in dimension 1
    layout = Layout(PLANE)
    assert layout.image(values)[0, 3] == 1.0  # the bottom row, the right column
    assert layout.extent == (0.0, 1.0, 10.0, 30.0)
    assert layout.labels == ("observation[0]", "observation[1]")


def test_numbered_cells_of_a_grid_are_folded_into_rows_from_the_top():
    layout = Layout(STATES, width=4)
    np.testing.assert_array_equal(layout.image(np.arange(12)), np.arange(12).reshape(3, 4))
    assert layout.extent == (-0.5, 3.5, 2.5, -0.5)
    assert layout.labels == ("column", "row")


def test_a_single_dimension_is_a_strip_with_values_in_the_middle_of_their_bins():
    layout = Layout(STATES)
    assert layout.image(np.arange(12)).shape == (1, 12)
    assert layout.extent[:2] == (-0.5, 11.5)


@pytest.mark.parametrize(
    "layout", [Layout(PLANE), Layout(STATES), Layout(STATES, 4)], ids=["plane", "strip", "grid"]
)
def test_the_same_maps_give_the_same_files(layout, tmp_path):
    results = {"ez": some_visits(layout.bins)}
    contents = []
    for name in ("once", "again"):
        (tmp_path / name).mkdir()
        files = draw_maps(results, {"ez": "εz-greedy"}, layout, "somewhere", tmp_path / name)
        contents.append({file.name: file.read_bytes() for file in files})
    assert contents[0] == contents[1]
    assert sorted(contents[0]) == [
        "coverage.png",
        "coverage.svg",
        "first_visits_ez.png",
        "first_visits_ez.svg",
    ]


def stopped(mu):
    return f"εz-greedy, Zeta({mu}, cap=100), StopOnUnchanged(1)"


NAMES = {
    "long": [stopped(1.5), stopped(3)],
    "of a module": ["a_package_with_a_long_name.policies:Deliberate", "εz-greedy"],
    "many": [stopped(1), "εz-greedy", "ε-greedy", stopped(2), "εz-greedy, Fixed(3)"],
}


def drawn(names, monkeypatch):
    """The figure of the first of these policies, and that of all of them, laid out."""
    figures = {}

    def keep(figure, path):
        figures[path.name] = figure
        return []

    monkeypatch.setattr(style, "save", keep)
    keys = {f"p{number}": name for number, name in enumerate(names)}
    draw_maps({key: some_visits(PLANE) for key in keys}, keys, Layout(PLANE), "here", Path())
    assert len(figures) == len(names) + 1
    for file in ("first_visits_p0", "coverage"):
        figures[file].draw_without_rendering()
    return figures["first_visits_p0"], figures["coverage"]


@pytest.mark.parametrize("names", NAMES.values(), ids=NAMES)
def test_titles_of_maps_neither_overlap_nor_leave_the_figure(names, monkeypatch):
    single, together = drawn(names, monkeypatch)
    for figure in (single, together):
        titles = [axis.title for axis in figure.axes if axis.get_title()]
        boxes = [title.get_window_extent() for title in titles]
        for box in boxes:
            assert figure.bbox.x0 <= box.x0
            assert box.x1 <= figure.bbox.x1
        assert not any(one.overlaps(other) for one, other in combinations(boxes, 2))
    words = [re.sub(r"\W", "", axis.get_title()) for axis in together.axes]
    for name in names:  # nothing is cut
        assert any(word.startswith(re.sub(r"\W", "", name) + "mean") for word in words)


@pytest.mark.parametrize(("number", "columns", "bands"), [(2, 2, 1), (4, 4, 1), (5, 3, 2)])
def test_many_policies_are_laid_out_in_bands(number, columns, bands, monkeypatch):
    _, figure = drawn([f"policy {n}" for n in range(number)], monkeypatch)
    titled = [axis for axis in figure.axes if axis.get_title()]
    places = [axis.get_position() for axis in titled]
    assert len(titled) == number
    assert len({round(place.x0, 3) for place in places}) == columns
    assert len({round(place.y0, 3) for place in places}) == bands
    shown = [axis for axis in figure.axes if axis.axison and axis.images]
    assert len(shown) == 2 * number
    # Every column has its axis labelled once, below its lowest map.
    labelled = [axis for axis in shown if axis.get_xlabel()]
    assert len(labelled) == columns
    for axis in labelled:
        below = [
            other
            for other in shown
            if abs(other.get_position().x0 - axis.get_position().x0) < 1e-3
            and other.get_position().y0 < axis.get_position().y0
        ]
        assert below == []


def test_a_width_that_does_not_fit_is_refused():
    with pytest.raises(ValueError, match="width must divide the number of cells"):
        Layout(STATES, 5)
    with pytest.raises(ValueError, match="width must divide the number of cells"):
        Layout(PLANE, 4)
    with pytest.raises(ValueError, match="width must be at least 1"):
        Layout(STATES, 0)
