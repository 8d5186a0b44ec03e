"""Property 1: which option sets visit every state-action pair, and why the others do not."""

import numpy as np
import pytest

from ezgreedy import (
    ActionRepeats,
    FiniteMDP,
    FiniteOptions,
    Fixed,
    Option,
    Primitives,
    TemporallyExtended,
    TimedPolicies,
    Uniform,
    Zeta,
    follow,
    full_coverage,
    primitive,
    repeat,
    sequence,
)

RIGHT, DOWN = 0, 1


def one_way_chain(length):
    """Right moves on (and stays at the end); down ends the episode."""
    transitions = np.zeros((length + 1, 2, length + 1))
    for state in range(length):
        transitions[state, RIGHT, min(state + 1, length - 1)] = 1.0
        transitions[state, DOWN, length] = 1.0
    start, terminal = np.zeros(length + 1), np.zeros(length + 1, dtype=bool)
    start[0], terminal[length] = 1.0, True
    return FiniteMDP(transitions, start, terminal)


def ring(size):
    """Two actions around a ring, never ending."""
    transitions = np.zeros((size, 2, size))
    for state in range(size):
        transitions[state, 0, (state + 1) % size] = 1.0
        transitions[state, 1, (state - 1) % size] = 1.0
    return FiniteMDP(transitions, np.eye(size)[0])


def visited_by_playing(mdp, options, num_steps, greedy=None, epsilon=1.0):
    """Pairs that a long play of the real policy visits."""
    explore = TemporallyExtended(options, epsilon, seed=0)
    rng, state = np.random.default_rng(0), int(mdp.start.argmax())
    visited, start = np.zeros((mdp.num_states, mdp.num_actions), dtype=bool), True
    for _ in range(num_steps):
        best = 0 if greedy is None else greedy[state]
        action = int(explore(np.array([best]), starts=np.array([start]), observations=[state])[0])
        visited[state, action] = True
        state = int(rng.choice(mdp.num_states, p=mdp.transitions[state, action]))
        start = bool(mdp.ends[state])
        state = int(mdp.start.argmax()) if start else state
    return visited


def test_durations_that_are_multiples_of_k_leave_a_one_way_chain_uncovered():
    # The paper's example: options begin at multiples of k only, so down is never tried between.
    report = full_coverage(one_way_chain(9), ActionRepeats(2, Fixed(3)))
    assert not report.is_full
    assert sorted(report.missing) == [(s, DOWN) for s in (1, 2, 4, 5, 7)]
    assert np.flatnonzero(report.beginnings).tolist() == [0, 3, 6, 8]
    assert "begin only in states {0, 3, 6, 8}" in report.missing[1, DOWN]
    assert "5 state-action pairs are never visited" in report.explain()


def test_a_greedy_policy_can_mend_what_options_miss():
    mdp, options = one_way_chain(9), ActionRepeats(2, Fixed(3))
    always_right = np.zeros(10, dtype=int)
    assert full_coverage(mdp, options, greedy=always_right).is_full


@pytest.mark.parametrize(
    "options",
    [Primitives(2), ActionRepeats(2, Zeta()), ActionRepeats(2, Uniform(3))],
    ids=["primitives", "zeta", "uniform"],
)
@pytest.mark.parametrize("mdp", [one_way_chain(9), ring(7)], ids=["chain", "ring"])
def test_sets_that_contain_all_primitive_actions_cover_everything(mdp, options):
    report = full_coverage(mdp, options)
    assert report.is_full
    assert report.explain().startswith("full coverage")


def test_even_repeats_miss_half_of_an_even_ring_but_none_of_an_odd_one():
    assert full_coverage(ring(7), ActionRepeats(2, Fixed(2))).is_full
    report = full_coverage(ring(8), ActionRepeats(2, Fixed(2)))
    # Odd states are passed through with both actions, so all pairs are visited all the same.
    assert report.is_full
    assert np.flatnonzero(report.beginnings).tolist() == [0, 2, 4, 6]


def test_an_action_that_no_option_plays_is_named_as_such():
    report = full_coverage(ring(4), FiniteOptions(2, [primitive(0)]))
    assert set(report.missing.values()) == {"no option of the set ever plays this action"}
    assert sorted(report.missing) == [(s, 1) for s in range(4)]


def test_a_state_that_cannot_be_reached_at_all_is_no_fault_of_the_options():
    transitions = np.zeros((3, 1, 3))
    transitions[:, 0, 0] = 1.0
    report = full_coverage(FiniteMDP(transitions, np.eye(3)[0]), Primitives(1))
    assert "no sequence of actions leads there" in report.missing[2, 0]


def test_a_state_that_the_options_never_reach_is_explained():
    report = full_coverage(one_way_chain(5), FiniteOptions(2, [sequence([RIGHT, DOWN])]))
    assert "none of them reaches this state" in report.missing[3, RIGHT]
    assert "visited, but never with this action" in report.missing[1, RIGHT]


def test_terminal_states_are_not_asked_for():
    report = full_coverage(one_way_chain(3), Primitives(2))
    assert report.is_full
    assert not report.visited[3].any()


def test_options_that_read_the_state_are_followed():
    # Turns back at state 3 of a ring of 7, so that it never gets past it.
    pendulum = TimedPolicies(2, [lambda h: 1 if h.observation == 3 else 0], Fixed(1))
    report = full_coverage(ring(7), pendulum)
    assert report.visited[:4, 0].tolist() == [True, True, True, False]
    assert report.visited[3, 1]
    assert not report.visited[4:].any()


def test_options_that_read_the_whole_history_are_followed():
    def alternate(history):
        return len(history.actions) % 2

    options = FiniteOptions(2, [follow(alternate, 4, memory="history")])
    report = full_coverage(ring(5), options)
    assert sorted(zip(*np.nonzero(report.visited), strict=True)) == [(0, 0), (1, 1)]


def test_an_option_without_an_end_is_followed_up_to_the_horizon():
    endless = FiniteOptions(2, [Option(lambda h: 0, lambda h: 0.0, memory="length")])
    report = full_coverage(ring(6), endless, horizon=4)
    assert report.horizon_reached
    assert report.visited[:, 0].tolist() == [True] * 4 + [False] * 2
    assert "only up to the horizon" in report.explain()


@pytest.mark.parametrize(
    ("options", "greedy"),
    [
        (ActionRepeats(2, Fixed(3)), None),
        (ActionRepeats(2, Fixed(3)), np.array([0] * 9 + [0])),
        (FiniteOptions(2, [repeat(0, 2), sequence([0, 0, 0, 1])]), None),
        (TimedPolicies(2, [lambda h: int(h.observation > 4)], Fixed(2)), None),
    ],
)
def test_the_verdict_agrees_with_what_a_long_play_visits(options, greedy):
    mdp = one_way_chain(9)
    report = full_coverage(mdp, options, greedy)
    played = visited_by_playing(mdp, options, 20_000, greedy, 1.0 if greedy is None else 0.5)
    np.testing.assert_array_equal(report.visited, played)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: FiniteMDP(np.ones((2, 2)), np.eye(2)[0]), r"\[states, actions, states\]"),
        (lambda: FiniteMDP(np.ones((2, 1, 2)), np.eye(2)[0]), "probabilities that sum to 1"),
        (lambda: FiniteMDP(np.full((2, 1, 2), 0.5), [0.5, 0.2]), "start must sum to 1"),
        (lambda: FiniteMDP(np.full((2, 1, 2), 0.5), [1.0]), r"start must have shape \(2,\)"),
        (lambda: full_coverage(ring(3), Primitives(4)), "options must have 2 actions; got 4"),
        (lambda: full_coverage(ring(3), Primitives(2), horizon=0), "horizon must be at least 1"),
    ],
)
def test_bad_arguments_are_refused_by_name(make, message):
    with pytest.raises(ValueError, match=message):
        make()


@pytest.mark.parametrize("memory", ["length", "observation", "history"])
def test_truth_values_of_a_termination_count_as_numbers_and_others_are_refused(memory):
    def ends(kind):
        return Option(lambda h: 0, lambda h: kind(h.length >= 2), memory=memory, name="two on")

    told = [
        full_coverage(ring(5), FiniteOptions(2, [ends(kind), primitive(1)])).explain()
        for kind in (float, bool)
    ]
    assert told[0] == told[1]
    with pytest.raises(TypeError, match="termination of option 'two on' must be a number"):
        full_coverage(ring(5), FiniteOptions(2, [ends(str)]))
