import numpy as np
import pytest

from ezgreedy.results.intervals import Interval, mean_interval, ratio_interval


def test_equal_samples_have_no_width() -> None:
    rng = np.random.default_rng(0)
    assert mean_interval([2.0] * 5, rng) == Interval(2.0, 2.0, 2.0)
    assert ratio_interval([1.0] * 3, [4.0] * 7, rng) == Interval(0.25, 0.25, 0.25)


def test_intervals_cover_the_mean_as_often_as_they_say() -> None:
    rng = np.random.default_rng(0)
    intervals = [mean_interval(rng.normal(1.0, 1.0, 40), rng, repeats=300) for _ in range(400)]
    share = np.mean([interval.low <= 1.0 <= interval.high for interval in intervals])
    assert 0.90 < share < 0.97


@pytest.mark.parametrize("samples", [[], [np.nan, 1.0], [[1.0, 2.0]]])
def test_samples_must_be_a_row_of_finite_numbers(samples: list[float]) -> None:
    with pytest.raises(ValueError, match="samples must be a row of finite numbers"):
        mean_interval(samples, np.random.default_rng(0))
