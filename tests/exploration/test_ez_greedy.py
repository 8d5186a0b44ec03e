"""εz-greedy decision by decision: hand-written tapes, degenerate laws, twins, exact moments."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ezgreedy import (
    EpsilonGreedy,
    EZGreedy,
    Fixed,
    Linear,
    PlusOne,
    Uniform,
    Zeta,
    exploratory_share,
    ladder,
)
from support.scripted import ScriptedStreams
from support.statistics import assert_follows
from support.twins import NaiveLane, tape

HEADS = 0.0


def scripted(explore, script):
    explore.streams = ScriptedStreams(script, explore.lanes)
    return explore


def third_of_four(n, cap):
    """The draws of an option that plays action 2 of 4 for n of Uniform(cap) steps."""
    return (HEADS, 0.5, (n - 1) / cap)


# Exact, with scripted randomness. The greedy action is always 0.


def test_an_option_of_duration_n_plays_exactly_n_times():
    explore = scripted(EZGreedy(4, 0.5, Uniform(4)), {(0, 1): third_of_four(3, 4)})
    assert tape(explore, 6)[:, 0].tolist() == [0, 2, 2, 2, 0, 0]
    explore.streams.check_used()


def test_literal_algorithm_1_plays_n_plus_one_times():
    explore = scripted(EZGreedy(4, 0.5, PlusOne(Uniform(4))), {(0, 1): third_of_four(3, 4)})
    assert tape(explore, 7)[:, 0].tolist() == [0, 2, 2, 2, 2, 0, 0]


def test_the_coin_is_tossed_again_right_after_an_option():
    script = {(0, 0): third_of_four(2, 4), (0, 2): (HEADS, 0.25, 0.0), (0, 3): (0.4999, 0.75, 0.0)}
    explore = scripted(EZGreedy(4, 0.5, Uniform(4)), script)
    assert tape(explore, 5)[:, 0].tolist() == [2, 2, 1, 3, 0]
    explore.streams.check_used()


def test_the_coin_is_not_consulted_inside_an_option():
    script = {(0, 0): third_of_four(4, 4), (0, 2): (HEADS, 0.99, 0.0)}
    explore = scripted(EZGreedy(4, 0.5, Uniform(4)), script)
    assert tape(explore, 5)[:, 0].tolist() == [2, 2, 2, 2, 0]


def test_a_coin_equal_to_epsilon_does_not_explore():
    explore = scripted(EZGreedy(4, 0.5, Fixed(1)), {(0, 0): (0.5,), (0, 1): (0.49, 0.99, 0.0)})
    assert tape(explore, 2)[:, 0].tolist() == [0, 3]


def test_remaining_counts_the_plays_after_this_one():
    explore = scripted(EZGreedy(4, 0.5, Uniform(4)), {(0, 1): third_of_four(3, 4)})
    seen = []
    for _ in range(5):
        explore(np.array([0]))
        seen.append((bool(explore.exploring[0]), int(explore.remaining[0])))
    assert seen == [(False, 0), (True, 2), (True, 1), (True, 0), (False, 0)]


def test_exploration_may_draw_the_greedy_action_and_still_repeats_it():
    explore = scripted(EZGreedy(4, 0.5, Uniform(2)), {(0, 0): (HEADS, 0.0, 0.5)})
    explore(np.array([0]))
    assert explore.exploring[0]
    assert explore(np.array([3]))[0] == 0


def test_the_repeated_action_is_the_drawn_one_not_the_greedy_one():
    explore = scripted(EZGreedy(4, 0.5, Fixed(3)), {(0, 0): (HEADS, 0.5, 0.0)})
    actions = [explore(np.array([greedy]))[0] for greedy in (0, 1, 3, 1)]
    assert actions == [2, 2, 2, 1]


def test_every_lane_has_its_own_coin_and_option():
    script = {(1, 0): (HEADS, 0.25, 0.0), (2, 1): (HEADS, 0.75, 0.0)}
    explore = scripted(EZGreedy(4, 0.5, Fixed(2), lanes=3), script)
    assert tape(explore, 4).tolist() == [[0, 1, 0], [0, 1, 3], [0, 0, 3], [0, 0, 0]]


# Episode ends.


def test_reset_ends_the_options_of_finished_lanes_only():
    script = {(lane, 0): (HEADS, 0.5, 0.0) for lane in range(3)}
    explore = scripted(EZGreedy(4, 0.5, Fixed(4), lanes=3), script)
    explore(np.zeros(3, dtype=int))
    explore.reset(np.array([False, True, False]))
    assert explore.remaining.tolist() == [3, 0, 3]
    assert explore(np.zeros(3, dtype=int)).tolist() == [2, 0, 2]
    assert explore.counters.cut_by_episode_ends == 1


def test_starts_end_options_before_the_decision():
    script = {(0, 0): (HEADS, 0.5, 0.0), (1, 0): (HEADS, 0.5, 0.0), (1, 1): (HEADS, 0.25, 0.0)}
    explore = scripted(EZGreedy(4, 0.5, Fixed(4), lanes=2), script)
    explore(np.zeros(2, dtype=int))
    # Lane 0 turns greedy; lane 1's coin says explore again on the very first step.
    assert explore(np.zeros(2, dtype=int), starts=np.array([True, True])).tolist() == [0, 1]
    assert explore.remaining.tolist() == [0, 3]


def test_surviving_options_ignore_episode_ends():
    script = {(0, 0): (HEADS, 0.5, 0.0)}
    explore = scripted(EZGreedy(4, 0.5, Fixed(3), carries_over_episodes=True), script)
    everyone = np.array([True])
    actions = []
    for _ in range(4):
        actions.append(int(explore(np.array([0]), starts=everyone)[0]))
        explore.reset(everyone)
    assert actions == [2, 2, 2, 0]
    assert explore.counters.cut_by_episode_ends == 0


def test_reset_and_starts_give_the_same_tape():
    by_reset = EZGreedy(5, 0.3, lanes=4, seed=3)
    by_starts = EZGreedy(5, 0.3, lanes=4, seed=3)
    rng = np.random.default_rng(0)
    finished = np.zeros(4, dtype=bool)
    for _ in range(300):
        greedy = rng.integers(0, 5, 4)
        np.testing.assert_array_equal(by_reset(greedy), by_starts(greedy, starts=finished))
        assert by_reset.state_dict() == by_starts.state_dict()
        finished = rng.random(4) < 0.1
        by_reset.reset(finished)
    assert by_reset.counters.cut_by_episode_ends > 0  # there was something to tell apart


def test_the_first_step_of_an_episode_starts_blocks_of_the_right_length():
    # ε = 1 and Fixed(5): every episode must consist of blocks of five counted from its first step.
    explore, rng = EZGreedy(7, 1.0, Fixed(5), lanes=6, seed=9), np.random.default_rng(1)
    episodes = [[] for _ in range(6)]
    blocks = 0
    for _ in range(400):
        actions = explore(np.zeros(6, dtype=int))
        finished = rng.random(6) < 0.04
        for lane, action in enumerate(actions):
            episodes[lane].append(action)
            if finished[lane]:
                for begin in range(0, len(episodes[lane]), 5):
                    assert len(set(episodes[lane][begin : begin + 5])) == 1
                    blocks += 1
                episodes[lane] = []
        explore.reset(finished)
    assert blocks > 300


# Frozen lanes.


def test_frozen_lanes_consume_nothing():
    script = {(0, 0): (HEADS, 0.5, 0.0), (0, 2): (HEADS, 0.25, 0.0)}
    explore = scripted(EZGreedy(4, 0.5, Fixed(2), lanes=1), script)
    frozen, awake = np.array([False]), np.array([True])
    actions = []
    for active in (awake, frozen, frozen, awake, frozen, awake):
        action = explore(np.array([0]), active=active)[0]
        if active[0]:
            actions.append(int(action))
        else:
            assert not explore.exploring[0]
            assert np.isnan(explore.probabilities[0])
    assert actions == [2, 2, 1]
    assert explore.steps.tolist() == [3]
    assert explore.counters.steps == 3


def test_a_lane_that_sleeps_sometimes_plays_its_own_tape():
    alone = tape(EZGreedy(6, 0.2, lanes=1, seed=4, first_lane=2), 200)[:, 0]
    explore, rng, played = EZGreedy(6, 0.2, lanes=4, seed=4), np.random.default_rng(0), []
    while len(played) < 200:
        active = rng.random(4) < 0.5
        actions = explore(np.zeros(4, dtype=int), active=active)
        if active[2]:
            played.append(actions[2])
    np.testing.assert_array_equal(played, alone)


# Degenerate laws, as equalities on the same stream.


def test_unit_durations_recover_epsilon_greedy():
    ones = tape(EZGreedy(18, 0.3, Fixed(1), lanes=5, seed=2), 500)
    np.testing.assert_array_equal(ones, tape(EpsilonGreedy(18, 0.3, lanes=5, seed=2), 500))
    for law in (Uniform(1), Zeta(cap=1), Zeta(mu=500.0)):
        np.testing.assert_array_equal(ones, tape(EZGreedy(18, 0.3, law, lanes=5, seed=2), 500))


def test_epsilon_zero_is_greedy_and_draws_nothing():
    explore = scripted(EZGreedy(4, 0.0, lanes=3), {})
    rng = np.random.default_rng(0)
    for _ in range(100):
        greedy = rng.integers(0, 4, 3)
        np.testing.assert_array_equal(explore(greedy), greedy)
        assert not explore.exploring.any()
    assert explore.streams.num_words == 0


def test_epsilon_one_is_never_greedy():
    def never(lanes):
        raise AssertionError("greedy was asked for")

    explore = EZGreedy(4, 1.0, lanes=3, seed=1)
    for _ in range(100):
        explore(never)
        assert explore.exploring.all()


def test_the_stream_does_not_change_when_the_feature_is_off():
    explore = EZGreedy(6, 0.0, lanes=3, seed=8)
    tape(explore, 50)
    explore.epsilon = 0.4
    late = tape(explore, 100)
    on_time = EZGreedy(6, lambda step: 0.0 if step < 50 else 0.4, lanes=3, seed=8)
    np.testing.assert_array_equal(tape(on_time, 150)[50:], late)


# Naive twin, over everything at once.

LAWS = [Zeta(), Zeta(cap=20), Fixed(3), Uniform(6), PlusOne(Zeta(cap=5))]


@given(data=st.data())
@settings(max_examples=60, deadline=None)
def test_lanes_equal_naive_ones_over_arbitrary_calls(data):
    draw = data.draw
    lanes, num_actions = draw(st.integers(1, 5)), draw(st.integers(1, 5))
    seed, first = draw(st.integers(0, 2**70)), draw(st.integers(0, 1000))
    law, carries = draw(st.sampled_from(LAWS)), draw(st.booleans())
    epsilons = np.array(draw(st.lists(st.floats(0, 1), min_size=lanes, max_size=lanes)))
    explore = EZGreedy(
        num_actions, epsilons, law, lanes, seed, first_lane=first, carries_over_episodes=carries
    )
    naive = [NaiveLane(num_actions, law, seed, first + i, carries) for i in range(lanes)]
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    for _ in range(draw(st.integers(1, 60))):
        greedy = rng.integers(0, num_actions, lanes)
        starts = rng.random(lanes) < 0.2 if rng.random() < 0.3 else None
        active = rng.random(lanes) < 0.7 if rng.random() < 0.3 else None
        ends = rng.random(lanes) < 0.3 if rng.random() < 0.3 else None
        legal = None
        if rng.random() < 0.3:
            legal = rng.random((lanes, num_actions)) < 0.6
            legal[np.arange(lanes), greedy] = True
        actions = explore(greedy, starts, active, legal, ends)
        for i in range(lanes):
            if (starts is not None and starts[i] and not carries) or (ends is not None and ends[i]):
                naive[i].remaining = 0
            if active is not None and not active[i]:
                continue
            mask = None if legal is None else legal[i]
            expected, exploring = naive[i].act(greedy[i], epsilons[i], legal=mask)
            assert actions[i] == expected
            assert explore.exploring[i] == exploring
        assert explore.remaining.tolist() == [lane.remaining for lane in naive]
        if rng.random() < 0.1:
            finished = rng.random(lanes) < 0.5
            explore.reset(finished)
            for i in np.flatnonzero(finished):
                naive[i].remaining = 0 if not carries else naive[i].remaining
    begun = [n for lane in naive for n in lane.begun]
    assert explore.counters.durations == {n: begun.count(n) for n in set(begun)}
    assert explore.counters.started == len(begun)


def test_ends_stop_options_before_the_decision():
    explore = EZGreedy(4, 1.0, Fixed(5), lanes=3, carries_over_episodes=True)
    explore(np.zeros(3, int))
    explore(np.zeros(3, int), ends=np.array([False, True, True]))
    assert explore.remaining.tolist() == [3, 4, 4]
    assert explore.counters.cut_by_caller == 2
    assert explore.counters.plays_cut == 8
    assert explore.counters.cut_by_episode_ends == 0
    assert np.isnan(explore.probabilities).sum() == 0
    assert explore.probabilities.tolist() == [1.0, 0.25, 0.25]


def test_ends_that_end_nothing_change_nothing():
    law, nowhere = Zeta(cap=30), np.zeros(6, dtype=bool)
    plain, told = (EZGreedy(4, 0.3, law, lanes=6, seed=1) for _ in range(2))
    for _ in range(300):
        greedy = np.zeros(6, dtype=int)
        np.testing.assert_array_equal(told(greedy, ends=nowhere), plain(greedy))
        # Where no option runs there is nothing to end either.
        idle = plain.remaining == 0
        np.testing.assert_array_equal(told(greedy, ends=idle), plain(greedy))
    assert told.counters == plain.counters


def test_ending_options_on_every_step_leaves_epsilon_greedy():
    always = np.ones(6, dtype=bool)
    one_step = EpsilonGreedy(4, 0.4, lanes=6, seed=1)
    stopped = EZGreedy(4, 0.4, Zeta(), lanes=6, seed=1)
    for _ in range(300):
        greedy = np.zeros(6, dtype=int)
        np.testing.assert_array_equal(stopped(greedy, ends=always), one_step(greedy))
        np.testing.assert_array_equal(stopped.probabilities, one_step.probabilities)
    assert stopped.counters.explored == one_step.counters.explored


def test_counters_add_up():
    explore, rng = EZGreedy(4, 0.2, Zeta(cap=50), lanes=6, seed=0), np.random.default_rng(0)
    explored = cut = 0
    for _ in range(700):
        explore(rng.integers(0, 4, 6))
        explored += explore.exploring.sum()
        finished = rng.random(6) < 0.05
        cut += (explore.remaining[finished] > 0).sum()
        explore.reset(finished)
    counters = explore.counters
    assert counters.steps == 6 * 700
    assert counters.explored == explored
    assert counters.cut_by_episode_ends == cut > 0
    assert counters.started == sum(counters.durations.values())


# Lanes are streams of their own.


@pytest.mark.parametrize("lanes", [1, 2, 3, 7, 320])
def test_a_lane_plays_the_same_in_any_batch(lanes):
    fleet = tape(EZGreedy(18, 0.1, lanes=320, seed=11), 300)
    first = (320 - lanes) // 2
    batch = EZGreedy(18, 0.1, lanes=lanes, seed=11, first_lane=first)
    np.testing.assert_array_equal(tape(batch, 300), fleet[:, first : first + lanes])


def test_the_ladder_of_a_fleet_may_be_dealt_out_in_slices():
    whole = tape(EZGreedy(18, ladder(16), lanes=16, seed=5), 400)
    parts = [
        tape(EZGreedy(18, ladder(16)[i : i + 4], lanes=4, seed=5, first_lane=i), 400)
        for i in range(0, 16, 4)
    ]
    np.testing.assert_array_equal(np.concatenate(parts, axis=1), whole)


def test_what_one_lane_does_leaves_the_others_alone():
    quiet, busy = (EZGreedy(5, 0.3, lanes=3, seed=6) for _ in range(2))
    for step in range(200):
        expected = quiet(np.zeros(3, dtype=int))
        actions = busy(np.array([0, step % 5, 0]))
        busy.reset(np.array([False, True, False]))
        np.testing.assert_array_equal(actions[[0, 2]], expected[[0, 2]])


def test_different_seeds_differ():
    assert (tape(EZGreedy(18, 0.5, seed=0), 100) != tape(EZGreedy(18, 0.5, seed=1), 100)).any()


def test_global_random_state_is_untouched():
    before = str(np.random.get_state())  # noqa: NPY002 (only read)
    tape(EZGreedy(4, 0.5, lanes=3), 100)
    assert str(np.random.get_state()) == before  # noqa: NPY002


# ε: numbers, ladders, schedules.


def test_the_ladder_is_that_of_r2d2():
    values = ladder(320)
    assert values[0] == 0.4
    assert np.isclose(values[-1], 0.4**8)
    assert np.isclose(values[100], 0.4 ** (1 + 7 * 100 / 319))
    assert ladder(1).tolist() == [0.4]


def test_a_schedule_may_hold_before_it_falls():
    schedule = Linear(1.0, 0.0, 100, first_step=50)
    assert [schedule(step) for step in (0, 50, 75, 100, 150, 999)] == [1, 1, 0.75, 0.5, 0, 0]
    saved = EZGreedy(3, schedule).state_dict()
    EZGreedy(3, schedule).load_state_dict(saved)
    with pytest.raises(ValueError, match="epsilon"):
        EZGreedy(3, Linear(1.0, 0.0, 100)).load_state_dict(saved)
    with pytest.raises(ValueError, match="first_step must be at least 0; got -1"):
        Linear(1.0, 0.0, 100, first_step=-1)


def test_linear_schedule_goes_from_start_to_end_and_stays():
    schedule = Linear(1.0, 0.01, 1000)
    assert schedule(0) == 1.0
    assert np.isclose(schedule(500), 0.505)
    assert schedule(1000) == schedule(10**9) == 0.01


def test_a_function_and_the_same_linear_schedule_give_the_same_tape():
    linear = Linear(1.0, 0.1, 70)
    by_function = EZGreedy(6, lambda step: linear(step), lanes=4, seed=1)
    np.testing.assert_array_equal(
        tape(EZGreedy(6, linear, lanes=4, seed=1), 200), tape(by_function, 200)
    )


def test_a_schedule_counts_each_lanes_own_steps():
    explore = EZGreedy(4, lambda step: float(step >= 2), lanes=2, seed=0)
    for _ in range(4):
        explore(np.zeros(2, dtype=int), active=np.array([True, False]))
    assert explore.exploring.tolist() == [True, False]
    explore(np.zeros(2, dtype=int))
    assert explore.exploring.tolist() == [True, False]


def test_a_function_is_asked_about_a_step_only_when_it_has_come():
    asked = []

    def schedule(step):
        asked.append(step)
        return 0.5

    explore = EZGreedy(4, schedule, lanes=3)
    tape(explore, 20)
    assert asked == list(range(20))


def test_epsilon_may_be_assigned_between_calls():
    explore = EZGreedy(4, 0.0, lanes=2, seed=0)
    tape(explore, 10)
    explore.epsilon = 1.0
    explore(np.zeros(2, dtype=int))
    assert explore.exploring.all()
    explore.epsilon = [0.0, 1.0]
    explore.reset(np.array([True, True]))
    explore(np.zeros(2, dtype=int))
    assert explore.exploring.tolist() == [False, True]


# Exact moments.


def test_share_of_exploratory_steps_is_as_computed():
    law, lanes, steps = Zeta(cap=100), 2000, 3000
    explore = EZGreedy(4, 0.1, law, lanes=lanes, seed=0)
    for _ in range(steps):
        explore(np.zeros(lanes, dtype=int))
    share = explore.counters.explored / explore.counters.steps
    # Renewal theory: the standard error is about 0.0003 here; the n + 1 reading is 0.03 away.
    assert abs(share - exploratory_share(0.1, law)) < 0.0025
    assert exploratory_share(0.1, PlusOne(law)) - share > 0.02


def test_begun_durations_follow_the_law():
    law = Zeta(cap=100)
    explore = EZGreedy(4, 0.5, law, lanes=2000, seed=0)
    for _ in range(200):
        explore(np.zeros(2000, dtype=int))
    counts = explore.counters.durations
    sample = np.repeat(list(counts), list(counts.values()))
    probabilities = law.pmf(np.arange(101))
    assert_follows(sample, probabilities, {"clip": Zeta(cap=100, tail="clip").pmf(np.arange(101))})
