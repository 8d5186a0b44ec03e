"""Scores over many games against numbers worked out by hand, and what is missing by its name."""

import csv
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from ezgreedy.findings.scores import (
    Missing,
    Reference,
    Scores,
    complete,
    human_gap,
    human_gap_of_runs,
    human_normalised,
    interquartile_mean,
    mean,
    median,
    performance_profile,
    probability_of_improvement,
    scores_of,
)
from ezgreedy.games.atari.atari57 import games

NAN = float("nan")
# Two seeds of three games, normalised. Means over seeds: 0.5, 2, 0.75.
BY_HAND = np.array([[0.0, 1.0, 0.5], [1.0, 3.0, 1.0]])

tables = arrays(np.float64, (3, 4), elements=st.floats(-5, 50))


def published(column):
    with (Path(__file__).parent / "published_rainbow.csv").open() as file:
        return scores_of(
            (row["game"], 0, float(row[column])) for row in csv.DictReader(file) if row[column]
        )


def test_scores_by_hand():
    assert median(BY_HAND) == 0.75
    assert mean(BY_HAND) == pytest.approx(6.5 / 6)
    assert human_gap(BY_HAND) == pytest.approx(1 - (0.5 + 1 + 0.75) / 3)
    assert human_gap_of_runs(BY_HAND) == pytest.approx(1 - 4.5 / 6)


def test_the_median_is_of_means_over_seeds_and_no_mean_of_medians():
    assert median(np.array([[0.0, 1.0, 8.0], [6.0, 7.0, 0.0]])) == 4.0  # of 3, 4, 4; not of 1 and 6


def test_the_median_of_an_even_number_of_games_is_between_two():
    assert median(np.array([[1.0, 9.0, 2.0, 4.0]])) == 3.0


def test_the_human_gap_averages_seeds_before_it_cuts_off_at_1():
    """One seed at 0 and one at 2 are a human on average, though one run is not."""
    values = np.array([[0.0], [2.0]])
    assert human_gap(values) == 0.0
    assert human_gap_of_runs(values) == 0.5


@given(tables)
def test_averaging_first_never_widens_the_gap(values):
    assert human_gap(values) <= human_gap_of_runs(values) + 1e-12


@given(tables)
def test_with_one_seed_both_gaps_are_one(values):
    assert human_gap(values[:1]) == pytest.approx(human_gap_of_runs(values[:1]))


def test_a_gap_is_above_1_for_agents_worse_than_random():
    assert human_gap(np.array([[-1.0, 0.0]])) == 1.5


def test_the_interquartile_mean_leaves_out_a_quarter_at_either_end():
    assert interquartile_mean(np.array([[100.0, 1.0], [2.0, -70.0]])) == 1.5
    nine = np.array([[9.0, 1.0, 8.0], [2.0, 7.0, 3.0], [6.0, 4.0, 5000.0]])
    assert interquartile_mean(nine) == pytest.approx((3 + 4 + 6 + 7 + 8) / 5)  # 9 // 4 = 2 each


def test_a_profile_is_the_share_of_runs_above_a_threshold():
    thresholds = np.array([-1.0, 0.0, 0.5, 1.0, 3.0])
    expected = [1.0, 5 / 6, 4 / 6, 1 / 6, 0.0]
    np.testing.assert_allclose(performance_profile(BY_HAND, thresholds), expected)


def test_the_area_under_a_profile_is_what_the_gap_of_runs_leaves():
    values = np.random.default_rng(0).gamma(1.0, size=(5, 9))
    steps = (np.arange(20_000) + 0.5) / 20_000
    area = performance_profile(values, steps).mean()
    assert area == pytest.approx(1 - human_gap_of_runs(values), abs=1e-4)


def test_the_probability_of_improvement_by_hand():
    above = np.array([[1.0, 5.0], [3.0, 5.0]])
    below = np.array([[2.0, 5.0], [0.0, 6.0], [1.0, 1.0]])
    first = (0 + 1 + 0.5 + 1 + 1 + 1) / 6
    second = 2 * (0.5 + 0 + 1) / 6
    assert probability_of_improvement(above, below) == pytest.approx((first + second) / 2)
    assert probability_of_improvement(below, above) == pytest.approx(1 - (first + second) / 2)


@given(tables)
def test_nobody_improves_on_himself(values):
    assert probability_of_improvement(values, values) == pytest.approx(0.5)


@pytest.mark.parametrize(
    "statistic", [median, mean, human_gap, human_gap_of_runs, interquartile_mean]
)
def test_statistics_of_many_tables_are_those_of_each(statistic):
    many = np.random.default_rng(1).normal(1.0, 2.0, size=(4, 6, 5, 7))
    one_by_one = [[statistic(table) for table in row] for row in many]
    np.testing.assert_allclose(statistic(many), one_by_one, rtol=1e-13)


def test_normalised_scores_are_those_of_the_game():
    scores = scores_of([("Pong", 0, 3.5), ("Skiing", 0, -9000.0), ("Pong", 1, -21.0)])
    normal = human_normalised(scores)
    assert normal.games == tuple(games())
    for game in scores.games:
        expected = [games()[game].human_normalised(x) for x in column(scores, game)]
        np.testing.assert_allclose(column(normal, game), expected)
    assert np.isnan(normal.values).sum() == 2 * 57 - 3


def column(scores, game):
    return scores.values[:, scores.games.index(game)]


def test_other_suites_bring_their_own_measures():
    suite = {"a": Reference(10.0, 20.0), "b": Reference(0.0, -4.0)}
    normal = human_normalised(scores_of([("a", 3, 25.0), ("b", 3, -1.0)]), suite)
    np.testing.assert_allclose(normal.values, [[1.5, 0.25]])


def test_games_outside_the_suite_and_measures_without_a_span_are_refused():
    with pytest.raises(ValueError, match=r"did you mean Pong\?\); got 'PongNoFrameskip-v4'"):
        human_normalised(scores_of([("PongNoFrameskip-v4", 0, 1.0)]))
    with pytest.raises(ValueError, match="human_score of a must differ"):
        human_normalised(scores_of([("a", 0, 1.0)]), {"a": Reference(2.0, 2.0)})


def test_scores_of_a_list_stand_in_rows_of_seeds_and_columns_of_games():
    scores = scores_of([("b", 7, 4.0), ("a", 2, 1.0), ("b", 2, 3.0)])
    assert (scores.games, scores.seeds) == (("a", "b"), (2, 7))
    np.testing.assert_array_equal(scores.values, [[1.0, 3.0], [NAN, 4.0]])


def test_a_run_twice_and_scores_that_are_no_numbers_are_refused():
    with pytest.raises(ValueError, match=r"hold each game and seed once; got \('a', 1\)"):
        scores_of([("a", 1, 1.0), ("a", 1, 2.0)])
    with pytest.raises(ValueError, match="score of a must be finite"):
        scores_of([("a", 1, NAN)])


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ((("a", "a"), (0,), np.zeros((1, 2))), "games must name each once; got 'a'"),
        ((("a",), (3, 3), np.zeros((2, 1))), "seeds must name each once; got 3"),
        ((("a",), (0, 1), np.zeros((1, 2))), "values must have shape"),
        ((("a",), (0,), np.full((1, 1), np.inf)), "values must be finite"),
    ],
)
def test_malformed_tables_are_refused(arguments, words):
    with pytest.raises(ValueError, match=words):
        Scores(*arguments)


def test_nothing_is_missing_from_a_full_table():
    found = complete(Scores(("a", "b", "c"), (0, 1), BY_HAND))
    np.testing.assert_array_equal(found.values, BY_HAND)
    assert found.games == ("a", "b", "c")
    assert found.missing == Missing() == ((), (), ())
    assert str(found.missing) == ""


def test_what_is_missing_is_named_and_every_game_counts_the_same_number_of_runs():
    values = np.array(
        [
            [1.0, NAN, 2.0, NAN],
            [3.0, 4.0, NAN, NAN],
            [5.0, 6.0, 7.0, NAN],
        ]
    )
    found = complete(Scores(("a", "b", "c", "d"), (0, 1, 2), values))
    assert found.games == ("a", "b", "c")
    np.testing.assert_array_equal(found.values, [[1.0, 4.0, 2.0], [3.0, 6.0, 7.0]])
    assert found.missing == Missing(("d",), (("b", 0), ("c", 1)), (("a", 2),))
    assert str(found.missing) == "d; b seed 0; c seed 1; a seed 2 (not used)"


def test_runs_keep_the_order_of_their_seeds():
    values = np.arange(120.0).reshape(60, 2)
    values[::2, 0] = NAN
    found = complete(Scores(("a", "b"), tuple(range(60)), values))
    np.testing.assert_array_equal(found.values[:, 0], values[1::2, 0])
    np.testing.assert_array_equal(found.values[:, 1], values[:30, 1])


def test_a_game_with_fewer_seeds_than_asked_for_is_missing():
    values = np.array([[1.0, NAN], [3.0, 4.0]])
    found = complete(Scores(("a", "b"), (0, 1), values), least_seeds=2)
    assert found.games == ("a",)
    np.testing.assert_array_equal(found.values, [[1.0], [3.0]])
    assert found.missing == Missing(("b",), (), (("b", 1),))
    with pytest.raises(ValueError, match="hold a game with at least 3 runs"):
        complete(Scores(("a", "b"), (0, 1), values), least_seeds=3)


def test_seeds_that_are_nowhere_are_missing_where_they_are_expected():
    found = complete(scores_of([("a", 0, 1.0), ("b", 0, None)], seeds=[0, 1, 2]))
    assert found.missing == Missing(("b",), (("a", 1), ("a", 2)), ())
    assert str(found.missing) == "b; a seeds 1, 2"


def test_the_published_median_of_rainbow_comes_out():
    """Hessel et al. say 223 % over 57 games; 54 of their scores are at hand, with median 227 %.

    Whatever the other three games scored, the median over 57 is one of four scores in the middle
    of the 54, or between them, and 223 % is the second of these: Frostbite's. So both numbers
    agree if one of the three is above Frostbite and two are below.
    """
    found = complete(human_normalised(published("hessel2018")))
    assert found.missing.games == ("Jamesbond", "Riverraid", "UpNDown")
    assert found.values.shape == (1, 54)
    assert round(float(median(found.values)), 2) == 2.27
    middle = np.sort(found.values[0])
    assert games()["Frostbite"].human_normalised(9590.5) == middle[26]
    assert round(float(middle[26]), 2) == 2.23
    for three, expected in [((0, 0, 0), 25), ((0, 0, 99), 26), ((0, 99, 99), 27), ((99,) * 3, 28)]:
        assert median(np.append(middle, three)[None]) == middle[expected]


def test_the_median_of_another_implementation_comes_out():
    found = complete(human_normalised(published("pfrl")))
    assert found.missing.games == ("Defender", "Surround")
    assert round(float(median(found.values)), 2) == 2.47


def test_one_extreme_game_decides_the_mean_and_nothing_else():
    """In VideoPinball a person is hardly better than chance: Rainbow's score there is 367."""
    found = complete(human_normalised(published("hessel2018")))
    extreme = found.games.index("VideoPinball")
    assert found.values[0, extreme] == pytest.approx(366.89, abs=0.01)
    assert found.values[0, extreme] > 0.4 * found.values.sum()
    tamed = found.values.copy()
    tamed[0, extreme] = 60.0
    assert mean(tamed) < 0.7 * mean(found.values)
    for statistic in (median, human_gap, human_gap_of_runs, interquartile_mean):
        assert statistic(tamed) == statistic(found.values)
