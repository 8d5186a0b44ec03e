from pathlib import Path

import numpy as np
import pytest

from ezgreedy.results.runs import Run, Score
from ezgreedy.results.scores import Missing, Reference, human_gap, mean, median
from ezgreedy.results.training_scores import (
    by_agent,
    score_curves,
    shared_frames,
    training_scores,
)

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
    assert found.behind == ()


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


def test_an_evaluation_a_little_late_counts_as_that_of_its_frames():
    late = run("a", 0, [(0, 0.0), (203, 7.0), (400, 9.0)])
    np.testing.assert_array_equal(training_scores([late]).final.values, [[7.0]])


def test_runs_that_are_behind_are_missing_by_name_even_if_it_is_a_whole_seed():
    behind = [run("a", 2, [(0, 9.0), (100, 9.0)]), run("b", 2, [])]
    found = training_scores(FULL + behind)
    assert found.behind == (("a", 2), ("b", 2))
    assert found.final.seeds == (0, 1, 2)
    assert np.isnan(found.final.values[2]).all()
    assert np.isnan(found.best.values[2]).all()
    assert shared_frames(FULL) == 200
    assert shared_frames([*FULL, behind[0]]) == 100
    assert shared_frames(FULL + behind) == 0


def test_seeds_that_should_be_there_are_missing_by_name():
    assert training_scores(FULL, seeds=range(4)).final.seeds == (0, 1, 2, 3)


def test_frames_that_no_run_has_played_are_refused():
    with pytest.raises(ValueError, match="frames must be reached by a run; got 300"):
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
    with pytest.raises(ValueError, match=r"alone; got a-rainbow-0 and b-rainbow-9.*in lanes"):
        training_scores([*FULL, run("b", 9, [(200, 1.0)], lanes=8)])
    with pytest.raises(ValueError, match="differ in agent"):
        training_scores([*FULL, run("b", 9, [(200, 1.0)], agent="r2d2")])


def test_where_a_run_is_computed_makes_no_difference():
    elsewhere = run("b", 9, [(200, 1.0)], device="cuda", threads=4)
    assert training_scores([*FULL, elsewhere]).final.seeds == (0, 1, 9)
