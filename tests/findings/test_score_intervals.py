import functools
from collections import Counter

import numpy as np
import pytest

from ezgreedy.findings.intervals import bootstrap_interval
from ezgreedy.findings.score_intervals import (
    improvement,
    stratified_band,
    stratified_bootstrap,
    stratified_interval,
    summary,
)
from ezgreedy.findings.scores import (
    Missing,
    Scores,
    human_gap,
    human_gap_of_runs,
    interquartile_mean,
    mean,
    median,
    performance_profile,
    probability_of_improvement,
)

NAN = float("nan")


def rng(seed=0):
    return np.random.default_rng(seed)


def table(seed=1, shape=(5, 8)):
    return rng(seed).gamma(1.5, size=shape)


def test_runs_are_resampled_within_their_game_each_game_by_itself():
    values = np.arange(12.0).reshape(3, 4)  # a run tells its game: value % 4
    seen = stratified_bootstrap(lambda x: x, values, rng=rng(), repeats=3000)
    assert seen.shape == (3000, 3, 4)
    np.testing.assert_array_equal(seen % 4, np.broadcast_to(np.arange(4.0), seen.shape))
    counts = Counter((row[0, 0] // 4, row[0, 1] // 4) for row in seen)
    expected = 3000 / 9
    assert len(counts) == 9  # χ² of pairs of games, 8 degrees, p = 10⁻⁶
    assert sum((count - expected) ** 2 / expected for count in counts.values()) < 42.7


def test_the_bootstrap_equals_a_plain_loop_over_the_same_draws():
    values = table()
    draws = rng(3).integers(5, size=(40, 5, 8))
    expected = [
        median(np.array([[values[row[s, g], g] for g in range(8)] for s in range(5)]))
        for row in draws
    ]
    found = stratified_bootstrap(median, values, rng=rng(3), repeats=40)
    np.testing.assert_allclose(found, expected, rtol=1e-13)


def test_one_game_has_the_bootstrap_interval_of_a_mean():
    values = table(shape=(9, 1))
    assert stratified_interval(mean, values, rng=rng(5)) == pytest.approx(
        bootstrap_interval(values[:, 0], rng(5))
    )


def test_the_width_of_the_mean_is_the_one_of_theory():
    """Within games alone: however much games differ, only seeds are drawn."""
    values = rng(2).normal(size=(10, 30)) + 1000.0 * np.arange(30)
    sd = np.sqrt(values.var(axis=0).sum() / 10) / 30
    found = stratified_interval(mean, values, rng=rng(), repeats=8000)
    assert (found.high - found.low) / (2 * 1.95996 * sd) == pytest.approx(1.0, abs=0.05)
    assert found.low < found.value < found.high


def test_the_same_generator_gives_the_same_interval_and_another_a_new_one():
    values = table()
    found = stratified_interval(interquartile_mean, values, rng=rng(4))
    assert found == stratified_interval(interquartile_mean, values, rng=rng(4))
    assert found != stratified_interval(interquartile_mean, values, rng=rng(5))


def test_batches_bound_memory_and_change_no_draw(monkeypatch):
    values = table()
    whole = stratified_bootstrap(mean, values, rng=rng(6), repeats=100)
    monkeypatch.setattr("ezgreedy.findings.score_intervals._LARGEST_BATCH", 7 * values.size)
    np.testing.assert_array_equal(
        whole, stratified_bootstrap(mean, values, rng=rng(6), repeats=100)
    )


def test_points_of_a_curve_stay_with_their_run():
    values = table()
    curve = np.stack([values, values + 10.0])
    band = stratified_band(mean, curve, rng=rng(7))
    alone = stratified_interval(mean, values, rng=rng(7))
    for part, end in zip(band, alone, strict=True):
        np.testing.assert_allclose(part, [end, end + 10.0])


def test_a_profile_has_a_band():
    thresholds = np.array([0.0, 1.0, 2.0])
    profile = functools.partial(performance_profile, thresholds=thresholds)
    band = stratified_band(profile, table(), rng=rng())
    assert band.values.shape == band.low.shape == band.high.shape == (3,)
    assert (band.low <= band.values).all()
    assert (band.values <= band.high).all()
    assert band[0][0] == band[1][0] == band[2][0] == 1.0
    assert band.low[1] < band.high[1]


def test_one_seed_leaves_an_interval_of_no_width():
    found = stratified_interval(median, table(shape=(1, 6)), rng=rng())
    assert found.low == found.value == found.high


@pytest.mark.parametrize("bad", [np.zeros(3), np.zeros((0, 4)), np.full((2, 2), NAN)])
def test_gaps_never_reach_a_statistic(bad):
    with pytest.raises(ValueError, match="without gaps"):
        stratified_bootstrap(mean, bad, rng=rng())


def test_a_summary_is_every_statistic_of_what_is_complete():
    values = table()
    values[0, 0] = NAN
    scores = Scores(tuple("abcdefgh"), (0, 1, 2, 3, 4), values)
    found = summary(scores, rng=rng())
    rest = np.column_stack([values[1:, 0], values[:4, 1:]])
    names = ("median", "mean", "human_gap", "interquartile_mean")
    for name, statistic in zip(names, (median, mean, human_gap, interquartile_mean), strict=True):
        interval = getattr(found, name)
        assert interval.value == pytest.approx(statistic(rest))
        assert interval.low < interval.value < interval.high
    assert (found.num_games, found.num_seeds) == (8, 4)
    assert found.missing == Missing((), (("a", 0),), tuple((game, 4) for game in "bcdefgh"))


def test_the_other_reading_of_the_human_gap_is_reachable():
    values = table()
    scores = Scores(tuple("abcdefgh"), (0, 1, 2, 3, 4), values)
    found = summary(scores, rng=rng(), clips_runs=True).human_gap.value
    assert found == pytest.approx(human_gap_of_runs(values))
    assert found > summary(scores, rng=rng()).human_gap.value + 0.01


def test_improvement_is_over_the_games_that_both_have():
    above = Scores(("a", "b", "c"), (0, 1), np.array([[1.0, 5.0, NAN], [3.0, 6.0, NAN]]))
    below = Scores(("d", "b", "a"), (7,), np.array([[9.0, 5.5, 2.0]]))
    found = improvement(above, below, rng=rng())
    assert found.games == ("a", "b")
    assert found.probability.value == 0.5
    assert (found.probability.low, found.probability.high) == (0.0, 1.0)
    assert found.missing["above"].games == ("c", "d")
    assert found.missing["below"].games == ()
    with pytest.raises(ValueError, match="below must share a game"):
        improvement(above, Scores(("d",), (0,), np.ones((1, 1))), rng=rng())


def test_a_clear_improvement_is_certain_and_both_sides_are_resampled():
    first, second = table(1) + 100.0, table(2)
    scores = [Scores(tuple("abcdefgh"), (0, 1, 2, 3, 4), x) for x in (first, second)]
    assert improvement(*scores, rng=rng()).probability == (1.0, 1.0, 1.0)
    # The first has one seed: all doubt about it is the second's.
    found = stratified_interval(probability_of_improvement, table(3)[:1], second, rng=rng())
    assert found.low < found.high


class TestAgainstRliable:
    """The library of Agarwal et al.; CONTRIBUTING.md says how to install one that imports."""

    @pytest.fixture
    def metrics(self):
        return pytest.importorskip(
            "rliable.metrics", reason="rliable is not installed", exc_type=ImportError
        )

    def test_numbers_are_equal(self, metrics):
        values, other = table(shape=(5, 57)), table(2, (3, 57))
        pairs = [
            (median, metrics.aggregate_median),
            (mean, metrics.aggregate_mean),
            (human_gap_of_runs, metrics.aggregate_optimality_gap),
            (interquartile_mean, metrics.aggregate_iqm),
        ]
        for ours, theirs in pairs:
            assert ours(values) == pytest.approx(theirs(values), rel=1e-12)
        assert probability_of_improvement(values, other) == pytest.approx(
            metrics.probability_of_improvement(values, other), rel=1e-12
        )

    def test_profiles_are_equal(self, metrics):
        from rliable import library

        values, thresholds = table(shape=(5, 57)), np.linspace(0, 4, 23)
        np.testing.assert_allclose(
            performance_profile(values, thresholds),
            [library.run_score_deviation(values, threshold) for threshold in thresholds],
        )

    def test_intervals_agree(self, metrics):
        from rliable import library

        values = table(shape=(5, 57))
        _, ends = library.get_interval_estimates(
            {"agent": values}, lambda x: np.array([metrics.aggregate_iqm(x)]), reps=4000
        )
        ours = stratified_interval(interquartile_mean, values, rng=rng(), repeats=20_000)
        low, high = ends["agent"][:, 0]
        # Theirs draws from NumPy's global generator whatever its seed is said to be, so ends
        # differ by a few percent of the width; to resample games as well would widen it by half.
        width = high - low
        assert abs(ours.low - low) < 0.12 * width
        assert abs(ours.high - high) < 0.12 * width
