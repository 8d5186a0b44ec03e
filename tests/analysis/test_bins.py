import numpy as np
import pytest
from gymnasium import spaces
from hypothesis import given
from hypothesis import strategies as st

from ezgreedy.analysis.bins import Bins

PLANE = spaces.Box(np.array([-1.0, 0.0], dtype=np.float32), np.array([1.0, 3.0], dtype=np.float32))


def test_cells_are_numbered_along_the_last_dimension_first():
    bins = Bins.of(PLANE, 3)
    assert bins.counts == (3, 3)
    observations = [[-0.9, 0.5], [-0.9, 2.5], [0.0, 0.5], [0.9, 2.9]]
    np.testing.assert_array_equal(bins.cells(observations), [0, 2, 3, 8])


def test_what_lies_outside_falls_into_the_nearest_bin():
    bins = Bins.of(PLANE, 3)
    np.testing.assert_array_equal(bins.cells([[-9.0, -9.0], [1.0, 3.0], [9.0, 99.0]]), [0, 8, 8])


@given(
    low=st.floats(-1e3, 1e3),
    width=st.floats(1e-3, 1e3),
    count=st.integers(1, 50),
    share=st.floats(0.0, 1.0, exclude_max=True),
)
def test_a_number_lies_within_its_bin(low, width, count, share):
    space = spaces.Box(-np.inf, np.inf, (1,))
    bins = Bins.of(space, count, ranges={0: (low, low + width)})
    number = low + share * width
    cell = bins.cells([[number]])[0]
    slack = 1e-9 * (abs(low) + width)
    edges = low + np.array([cell, cell + 1]) * width / count
    assert edges[0] - slack <= number <= edges[1] + slack


@pytest.mark.parametrize("start", [0, 3, -2])
def test_discrete_values_are_their_own_bins(start):
    space = spaces.Discrete(49, start=start)
    bins = Bins.of(space)
    assert bins.counts == (49,)
    np.testing.assert_array_equal(bins.cells(range(start, start + 49)), np.arange(49))


def test_spaces_of_several_values_are_mapped_on_their_first_two():
    several = spaces.MultiDiscrete([4, 5, 6])
    bins = Bins.of(several)
    assert bins.counts == (4, 5)
    np.testing.assert_array_equal(bins.cells([[1, 2, 0], [3, 4, 5]]), [7, 19])
    assert Bins.of(several, dims=(2, 0)).counts == (6, 4)
    cards = spaces.Tuple([spaces.Discrete(32), spaces.Discrete(11), spaces.Discrete(2)])
    np.testing.assert_array_equal(Bins.of(cards).cells([(3, 4, 1)]), [3 * 11 + 4])
    assert Bins.of(spaces.MultiBinary(3)).counts == (2, 2)


def test_only_dimensions_that_are_looked_at_need_bounds():
    high = np.array([4.0, np.inf, 0.5, 3.4e38])
    cart = spaces.Box(-high, high, dtype=np.float64)
    assert Bins.of(cart, dims=(0, 2)).high == (4.0, 0.5)
    for dim in (1, 3):
        with pytest.raises(
            ValueError, match=rf"or be given a range: ranges={{{dim}: \(low, high\)}};"
        ):
            Bins.of(cart, dims=(0, dim))
    assert Bins.of(cart, ranges={1: (-2.0, 2.0)}).low == (-4.0, -2.0)


def test_ranges_replace_bounds():
    bins = Bins.of(PLANE, 4, ranges={0: (0.0, 0.4)})
    assert bins.low == (0.0, 0.0)
    np.testing.assert_array_equal(bins.cells([[0.15, 0.0]]) // 4, [1])


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"count": 0}, "bins must be at least 1"),
        ({"dims": (0, 2)}, "dims must be at most 1"),
        ({"dims": (0, 0)}, "dims must name one or two different dimensions"),
        ({"dims": ()}, "dims must name one or two different dimensions"),
        ({"ranges": {0: (1.0, 1.0)}}, "range of dimension 0 must be a low below a high"),
        ({"ranges": {5: (0.0, 1.0)}}, "range dimension must be at most 1"),
        ({"ranges": {0: (0.0, np.inf)}}, "range high must lie in"),
        ({"count": 10_000}, "bins must make at most 1000000 cells"),
    ],
)
def test_bins_that_make_no_sense_are_refused_by_name(arguments, message):
    with pytest.raises(ValueError, match=message):
        Bins.of(PLANE, **arguments)


@pytest.mark.parametrize("ranges", [[(0, 2), (1, 3)], [(1, -3, 3)], (0.0, 1.0), 3])
def test_ranges_that_are_no_mapping_are_refused_with_its_form(ranges):
    message = r"ranges must be a mapping \{dimension: \(low, high\)\}; got"
    with pytest.raises(TypeError, match=message):
        Bins.of(PLANE, 10, (0, 1), ranges)


@pytest.mark.parametrize("ends", [3.0, (1.0, 2.0, 3.0), "ab"])
def test_a_range_that_is_no_pair_is_refused(ends):
    with pytest.raises(TypeError, match=r"ranges\[0\] must be \(low, high\); got"):
        Bins.of(PLANE, ranges={0: ends})


def test_spaces_without_numbers_in_them_are_refused():
    with pytest.raises(ValueError, match="the observation space must be a Box, Discrete"):
        Bins.of(spaces.Dict({"a": spaces.Discrete(2)}))
    with pytest.raises(ValueError, match="dimension 0 of the observation must vary"):
        Bins.of(spaces.Box(1.0, 1.0, (2,)))


def test_an_observation_that_is_no_number_is_refused():
    with pytest.raises(ValueError, match="observation must hold numbers"):
        Bins.of(PLANE).cells([[np.nan, 0.0]])
