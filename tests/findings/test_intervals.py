import numpy as np
import pytest

from ezgreedy.findings.intervals import (
    Interval,
    bootstrap_interval,
    difference_interval,
    mean_interval,
    ratio_interval,
)


def rng(seed=0):
    return np.random.default_rng(seed)


def naive_means(samples, generator, repeats):
    """One resample after the other, from the same draws."""
    draws = generator.integers(len(samples), size=(repeats, len(samples)))
    return sorted(float(np.mean([samples[i] for i in row])) for row in draws)


def test_an_interval_is_the_percentiles_of_resampled_means():
    samples = rng(1).normal(size=23)
    means = naive_means(samples, rng(2), 200)
    interval = mean_interval(samples, rng(2), level=0.5, repeats=200)
    assert interval == Interval(
        pytest.approx(samples.mean()), pytest.approx(means[49]), pytest.approx(means[150])
    )


def test_equal_samples_leave_no_doubt():
    assert mean_interval([3.0] * 9, rng()) == (3.0, 3.0, 3.0)
    assert mean_interval([7], rng()) == (7.0, 7.0, 7.0)


def test_the_same_generator_gives_the_same_interval():
    samples = rng(1).random(30)
    assert mean_interval(samples, rng(5)) == mean_interval(samples, rng(5))
    assert mean_interval(samples, rng(5)) != mean_interval(samples, rng(6))


def test_intervals_cover_the_truth_as_often_as_they_say():
    # 400 intervals from 60 normals each: 95 % nominal, about 94.3 % for a percentile bootstrap of
    # this size; outside [.90, .985] is beyond 3.5 standard errors on both sides.
    generator = rng(8)
    hits = 0
    for _ in range(400):
        interval = mean_interval(generator.normal(size=60), generator, repeats=400)
        hits += interval.low <= 0.0 <= interval.high
    assert 0.90 < hits / 400 < 0.985


def test_a_wider_level_holds_the_narrower_one():
    samples = rng(1).random(30)
    narrow, wide = (mean_interval(samples, rng(0), level=level) for level in (0.5, 0.99))
    assert wide.low < narrow.low < narrow.value < narrow.high < wide.high


def test_proportional_pairs_have_a_certain_ratio():
    below = rng(3).random(20) + 0.1
    interval = ratio_interval(0.4 * below, below, rng())
    np.testing.assert_allclose(interval, 0.4, rtol=1e-12)


def test_a_ratio_is_one_of_means_not_a_mean_of_ratios():
    assert ratio_interval([1.0, 3.0], [1.0, 1.0], rng()).value == 2.0
    assert ratio_interval([1.0, 1.0], [1.0, 3.0], rng()).value == 0.5


def test_ratios_to_zero_are_infinite_or_undefined():
    assert ratio_interval([1.0, 2.0], [0.0, 0.0], rng()) == (np.inf, np.inf, np.inf)
    assert np.isnan(ratio_interval([0.0], [0.0], rng())).all()


def test_batches_change_nothing_but_memory(monkeypatch):
    samples = rng(1).random(10)
    whole = mean_interval(samples, rng(4), repeats=50)
    monkeypatch.setattr("ezgreedy.findings.intervals._LARGEST_BATCH", 70)
    assert mean_interval(samples, rng(4), repeats=50) == whole


def test_any_statistic_has_an_interval():
    samples = rng(1).normal(size=101)
    interval = bootstrap_interval(samples, rng(0), lambda resamples: np.median(resamples, axis=1))
    assert interval.value == np.median(samples)
    assert interval.low <= interval.value <= interval.high


def test_bad_samples_are_refused_by_name():
    with pytest.raises(ValueError, match="samples must hold at least one sample"):
        mean_interval([], rng())
    with pytest.raises(TypeError, match="samples must hold numbers"):
        mean_interval(["a"], rng())
    with pytest.raises(ValueError, match="denominator must have the numerator's shape"):
        ratio_interval([1.0, 2.0], [1.0], rng())
    with pytest.raises(ValueError, match=r"level must lie in \[0, 1\]"):
        mean_interval([1.0], rng(), level=2.0)
    with pytest.raises(ValueError, match="repeats must be at least 1"):
        mean_interval([1.0], rng(), repeats=0)


def test_a_difference_resamples_each_side_on_its_own():
    above, below = rng(1).normal(3.0, size=7), rng(2).normal(size=5)
    draws = rng(3)
    resampled = [
        [row[i].mean() for i in draws.integers(len(row), size=(200, len(row)))]
        for row in (above, below)
    ]
    differences = np.sort(np.subtract(*resampled))
    interval = difference_interval(above, below, rng(3), level=0.5, repeats=200)
    assert interval == Interval(
        pytest.approx(above.mean() - below.mean()),
        pytest.approx(differences[49]),
        pytest.approx(differences[150]),
    )


def test_a_difference_does_not_pair_its_samples():
    samples = [0.0, 10.0, 20.0]
    interval = difference_interval(samples, samples, rng())
    assert interval.value == 0.0
    assert (interval.low, interval.high) != (0.0, 0.0)


def test_sides_of_a_difference_that_are_no_rows_are_refused():
    with pytest.raises(ValueError, match="below must hold at least one sample"):
        difference_interval([1.0], [], rng())
    with pytest.raises(ValueError, match="above and below must be rows"):
        difference_interval([[1.0]], [1.0], rng())
