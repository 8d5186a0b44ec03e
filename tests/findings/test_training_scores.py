from pathlib import Path

import numpy as np
import pytest

from ezgreedy.findings.scores import Missing, Reference, human_gap, mean, median
from ezgreedy.findings.training_scores import (
    by_agent,
    score_curves,
    shared_frames,
    training_scores,
)
from ezgreedy.results.runs import Run, Score

SUITE = {"a": Reference(0.0, 10.0), "b": Reference(0.0, 2.0), "c": Reference(0.0, 1.0)}


def run(game, seed, scores, frames=200, agent="rainbow", **settings):
    settings = {
        "game": game,
        "seed": seed,
        "frames": frames,
        "agent": {"name": agent},
        "lanes": 1,
        **settings,
    }
    made = [Score(at, value) for at, value in scores]
    return Run(Path(f"{game}-{agent}-{seed}"), settings, "0", made, [], {})


def three_evaluations(game, seed, *values):
    return run(game, seed, list(zip((0, 100, 200), values, strict=True)))


FULL = [
    three_evaluations("a", 0, 0.0, 10.0, 5.0),
    three_evaluations("a", 1, 0.0, 20.0, 15.0),
    three_evaluations("b", 0, 1.0, 1.0, 1.0),
    three_evaluations("b", 1, 3.0, 1.0, 2.0),
]


def test_final_is_the_last_evaluation_and_best_the_highest_of_each_run():
    found = training_scores(FULL)
    assert found.frames == 200
    np.testing.assert_array_equal(found.final.values, [[5.0, 1.0], [15.0, 2.0]])
    np.testing.assert_array_equal(found.best.values, [[10.0, 1.0], [20.0, 3.0]])


def test_after_fewer_frames_later_evaluations_do_not_count():
    found = training_scores(FULL, frames=100)
    np.testing.assert_array_equal(found.final.values, [[10.0, 1.0], [20.0, 1.0]])
    np.testing.assert_array_equal(found.best.values, [[10.0, 1.0], [20.0, 3.0]])
    np.testing.assert_array_equal(training_scores(FULL, 0).best.values, [[0.0, 1.0], [0.0, 3.0]])


def test_all_runs_are_scored_at_the_length_of_the_shortest():
    longer = run("a", 0, [(0, 0.0), (200, 4.0), (400, 8.0)], frames=400)
    found = training_scores([longer, three_evaluations("b", 0, 1.0, 1.0, 1.0)])
    assert found.frames == 200
    np.testing.assert_array_equal(found.final.values, [[4.0, 1.0]])


def evaluated_at(game, points, seed=0):
    """A run that is as long as its last evaluation; its scores are thousands of frames."""
    scores = [(1000 * point, float(point)) for point in points]
    return run(game, seed, scores, frames=1000 * points[-1])


SHORT, LONG = (0, 200, 400, 500), (0, 200, 400, 600, 800, 1000)


def test_runs_are_scored_at_the_most_frames_at_which_all_have_an_evaluation():
    found = training_scores([evaluated_at("a", LONG), evaluated_at("b", SHORT)])
    assert found.frames == 400_000
    np.testing.assert_array_equal(found.final.values, [[400.0, 400.0]])
    np.testing.assert_array_equal(found.best.values, [[400.0, 400.0]])
    assert training_scores([evaluated_at("b", SHORT)]).frames == 500_000
    # What is shared may lie several evaluations back in both.
    others = [evaluated_at("a", (0, 200, 300, 600)), evaluated_at("b", (0, 200, 400, 500))]
    assert training_scores(others).frames == shared_frames(others) == 200_000


def test_a_later_evaluation_never_stands_for_one_that_is_not_there():
    found = training_scores([evaluated_at("a", LONG), evaluated_at("b", SHORT)], frames=500_000)
    np.testing.assert_array_equal(found.final.values, [[np.nan, 500.0]])
    np.testing.assert_array_equal(found.best.values, [[np.nan, 500.0]])


def test_runs_that_share_no_evaluation_are_scored_where_most_of_them_end():
    apart = [evaluated_at("a", (0, 40, 80, 120)), evaluated_at("b", (0, 30, 60))]
    found = training_scores(apart)
    assert (found.frames, shared_frames(apart)) == (120_000, 0)
    np.testing.assert_array_equal(found.final.values, [[120.0, np.nan]])
    more = training_scores([*apart, evaluated_at("b", (0, 30, 60), seed=1)])
    assert more.frames == 60_000
    np.testing.assert_array_equal(more.final.values, [[np.nan, 60.0], [np.nan, 60.0]])


@pytest.mark.parametrize(("at", "counts"), [(100_010, True), (100_250, True), (100_251, False)])
def test_an_evaluation_a_little_late_counts_as_that_of_its_frames(at, counts):
    late = run("a", 0, [(0, 0.0), (at, 7.0), (200_000, 9.0)], frames=200_000)
    exact = run("b", 0, [(0, 0.0), (100_000, 1.0)], frames=100_000)
    found = training_scores([late, exact], frames=100_000)
    np.testing.assert_array_equal(found.final.values, [[7.0 if counts else np.nan, 1.0]])
    assert shared_frames([late, exact]) == (100_000 if counts else 0)
    assert late.score_at(100_000) == (7.0 if counts else None)


def test_frames_are_told_as_they_were_meant_where_runs_overshoot_them():
    late = [run(game, 0, [(0, 0.0), (100_008, 7.0)], frames=100_000) for game in "ab"]
    assert training_scores(late).frames == 100_000


def test_evaluations_as_near_as_dqn_zoos_are_kept_apart():
    million = run("a", 0, [(10**6 * at, float(at)) for at in range(201)], frames=200 * 10**6)
    assert million.score_at(199 * 10**6) == 199.0
    assert million.score_at(199 * 10**6 + 1) is None


def test_runs_that_are_behind_are_missing_by_name_even_if_it_is_a_whole_seed():
    behind = [run("a", 2, [(0, 9.0), (100, 9.0)]), run("b", 2, [])]
    found = training_scores(FULL + behind)
    assert found.frames == 200
    assert found.final.seeds == (0, 1, 2)
    assert np.isnan(found.final.values[2]).all()
    assert np.isnan(found.best.values[2]).all()
    assert shared_frames(FULL) == 200
    assert shared_frames([*FULL, behind[0]]) == 100
    assert shared_frames(FULL + behind) == 0


def test_seeds_that_should_be_there_are_missing_by_name():
    assert training_scores(FULL, seeds=range(4)).final.seeds == (0, 1, 2, 3)


def test_frames_that_no_run_has_played_are_refused():
    with pytest.raises(ValueError, match="frames must be those of an evaluation of a run; got 300"):
        training_scores(FULL, frames=300)
    with pytest.raises(ValueError, match="runs must hold at least one"):
        training_scores([])


def test_curves_are_statistics_at_every_shared_evaluation():
    curves = score_curves(FULL, suite=SUITE)
    np.testing.assert_array_equal(curves.frames, [0, 100, 200])
    assert curves.games == ("a", "b")
    assert curves.values.shape == (3, 2, 2)
    # Normalised means over seeds: a 0, 1.5, 1; b 1, 0.5, 0.75.
    np.testing.assert_allclose(median(curves.values), [0.5, 1.0, 0.875])
    np.testing.assert_allclose(mean(curves.values), [0.5, 1.0, 0.875])
    np.testing.assert_allclose(human_gap(curves.values), [0.5, 0.25, 0.125])
    assert curves.missing == Missing(games=("c",))


def test_curves_keep_the_same_runs_all_along():
    behind = [
        run("a", 2, [(0, 900.0), (100, 900.0)]),
        run("c", 0, [(0, 900.0)]),
    ]
    curves = score_curves(FULL + behind, suite=SUITE)
    np.testing.assert_array_equal(curves.values, score_curves(FULL, suite=SUITE).values)
    assert curves.missing == Missing(("c",), (("a", 2), ("b", 2)), ())


def test_curves_skip_frames_at_which_a_run_was_not_evaluated():
    sparse = run("b", 1, [(0, 3.0), (200, 2.0)])
    curves = score_curves([*FULL[:3], sparse], suite=SUITE)
    np.testing.assert_array_equal(curves.frames, [0, 200])
    np.testing.assert_allclose(mean(curves.values), [0.5, 0.875])


def test_evaluations_a_little_late_are_points_of_curves():
    frames = [(0, 1000, 2000, 3000), (0, 1002, 2000, 3001)]
    runs = [
        run("a", seed, [(at, float(seed)) for at in own], frames=3000)
        for seed, own in enumerate(frames)
    ]
    curves = score_curves(runs, suite=SUITE)
    np.testing.assert_array_equal(curves.frames, [0, 1000, 2000, 3000])


def test_curves_may_end_early():
    curves = score_curves(FULL, frames=100, suite=SUITE)
    np.testing.assert_array_equal(curves.frames, [0, 100])


def test_runs_stand_by_agent_in_order():
    other = run("a", 0, [(0, 1.0)], agent="r2d2")
    found = by_agent([*reversed(FULL), other])
    assert found == {"r2d2": [other], "rainbow": FULL}


def test_a_run_that_is_there_twice_is_refused():
    with pytest.raises(ValueError, match=r"once; got a, seed 0, in a-rainbow-0 and a-rainbow-0"):
        by_agent([*FULL, run("a", 0, [(0, 1.0)])])


def test_runs_with_other_settings_are_never_averaged_together():
    with pytest.raises(ValueError, match=r"evaluated; got a-rainbow-0 and b-rainbow-9.*in lanes"):
        training_scores([*FULL, run("b", 9, [(200, 1.0)], lanes=8)])
    with pytest.raises(ValueError, match="differ in agent"):
        training_scores([*FULL, run("b", 9, [(200, 1.0)], agent="r2d2")])


def test_where_a_run_is_computed_makes_no_difference():
    elsewhere = run("b", 9, [(200, 1.0)], device="cuda", threads=4)
    assert training_scores([*FULL, elsewhere]).final.seeds == (0, 1, 9)
