"""Running moments against NumPy on everything at once."""

import math

import numpy as np
import pytest

from ezgreedy.intrinsic.moments import RunningMoments


@pytest.mark.parametrize("offset", [0.0, 1e6])
def test_moments_of_batches_equal_those_of_everything_at_once(offset):
    rng = np.random.default_rng(0)
    moments, seen = RunningMoments(), []
    for size in (1, 7, 0, 100, 1, 3000):
        values = rng.gamma(2.0, 3.0, (size, 2)) + offset
        moments.update(values)
        seen.append(values.ravel())
        everything = np.concatenate(seen)
        assert moments.count == everything.size
        assert moments.mean == pytest.approx(everything.mean(), rel=1e-12)
        assert moments.variance == pytest.approx(everything.var(), rel=1e-9)
        assert moments.std == pytest.approx(everything.std(), rel=1e-9)


def test_before_the_first_number_there_is_no_variance():
    moments = RunningMoments()
    assert (moments.count, moments.mean, moments.variance, moments.std) == (0, 0.0, 0.0, 0.0)


def test_numbers_that_are_not_finite_are_refused_and_change_nothing():
    moments = RunningMoments()
    moments.update(np.arange(4))
    before = moments.state_dict()
    with pytest.raises(ValueError, match=r"^values must be finite"):
        moments.update(np.array([1.0, math.nan]))
    assert moments.state_dict() == before


def test_restored_moments_continue_to_the_last_bit():
    moments, restored = RunningMoments(), RunningMoments()
    moments.update(np.arange(5) / 3)
    restored.load_state_dict(moments.state_dict())
    for each in (moments, restored):
        each.update(np.arange(7) / 7)
    assert moments.state_dict() == restored.state_dict()
    with pytest.raises(ValueError, match=r"^count must be at least 0"):
        restored.load_state_dict({"count": -1, "mean": 0.0, "squares": 0.0})
    assert moments.state_dict() == restored.state_dict()
