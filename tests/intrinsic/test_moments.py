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


@pytest.mark.parametrize("memory", [1, 3, 50])
def test_forgetting_equals_a_naive_exponential_average(memory):
    rng = np.random.default_rng(0)
    moments, seen = RunningMoments(memory), []
    for batch, size in enumerate((1, 7, 100, 1, 30, 5)):
        values = rng.gamma(2.0, 3.0, size) + 10.0 * batch
        moments.update(values)
        seen.append(values)
        ages = np.repeat(np.arange(len(seen))[::-1], [len(each) for each in seen])
        weights, everything = (1.0 - 1.0 / memory) ** ages, np.concatenate(seen)
        mean = np.average(everything, weights=weights)
        variance = np.average((everything - mean) ** 2, weights=weights)
        assert moments.count == pytest.approx(weights.sum(), rel=1e-12)
        assert moments.mean == pytest.approx(mean, rel=1e-12)
        assert moments.variance == pytest.approx(variance, rel=1e-9)
    restored = RunningMoments(memory)
    restored.load_state_dict(moments.state_dict())
    for each in (moments, restored):
        each.update(np.arange(7) / 7)
    assert moments.state_dict() == restored.state_dict()


def test_a_memory_of_no_batches_is_refused():
    with pytest.raises(ValueError, match=r"^memory must be at least 1; got 0"):
        RunningMoments(0)
