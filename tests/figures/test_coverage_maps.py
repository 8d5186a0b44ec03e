import numpy as np
import pytest
from gymnasium import spaces

from ezgreedy.analysis.bins import Bins
from ezgreedy.analysis.visits import FirstVisitTimes
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


def test_a_width_that_does_not_fit_is_refused():
    with pytest.raises(ValueError, match="width must divide the number of cells"):
        Layout(STATES, 5)
    with pytest.raises(ValueError, match="width must divide the number of cells"):
        Layout(PLANE, 4)
    with pytest.raises(ValueError, match="width must be at least 1"):
        Layout(STATES, 0)
