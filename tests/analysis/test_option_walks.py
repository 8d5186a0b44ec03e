"""Cover times and first visits of options: exact where small, and bound to the plain policy."""

import numpy as np
import pytest

from ezgreedy import (
    ActionRepeats,
    FiniteOptions,
    Fixed,
    Option,
    Primitives,
    TemporallyExtended,
    Zeta,
    eigenoptions,
    full_coverage,
    primitive,
    repeat,
)
from ezgreedy.analysis import (
    ExplorationProcess,
    cover_times,
    exact_cover_times,
    expected_first_visits,
    expected_option_visit,
    option_cover_times,
)
from ezgreedy.exploration.option_tables import option_tables
from support.small_mdps import corridor, deep_sea, deterministic, random_mdp, room

MDPS = {
    "corridor": corridor(4),
    "room": room(3, (0, 0)),
    "DeepSea": deep_sea(3),
    "a stochastic MDP": random_mdp(1),
}
each_mdp = pytest.mark.parametrize("name", MDPS)


@each_mdp
def test_action_repeats_have_the_cover_times_of_ez_greedy(name):
    mdp = MDPS[name]
    for law in (Fixed(1), Zeta(2.0, 20)):
        found = option_cover_times(mdp, ActionRepeats(mdp.num_actions, law), 40, 3000, seed=5)
        expected = cover_times(ExplorationProcess(mdp, durations=law), 40, 3000, seed=5)
        np.testing.assert_array_equal(found.times, expected.times)


def plain_cover_time(mdp, options, seed, horizon):
    """One run with the policy object, as one would first write it down."""
    explore = TemporallyExtended(options, 1.0, seed=seed)
    successors = mdp.transitions.argmax(axis=2)
    start = state = int(mdp.start.argmax())
    missing = {(s, a) for s in np.flatnonzero(mdp.reachable_states() & ~mdp.ends) for a in (0, 1)}
    for step in range(1, horizon + 1):
        action = int(explore([0], observations=[state])[0])
        missing.discard((state, action))
        if not missing:
            return step
        state = int(successors[state, action])
        explore.reset(np.array([mdp.ends[state]]))
        state = start if mdp.ends[state] else state
    return horizon + 1


@pytest.mark.parametrize("mdp", [corridor(5), deep_sea(4)], ids=["corridor", "DeepSea"])
def test_a_run_is_lane_0_of_the_plain_policy(mdp):
    options = eigenoptions(mdp, 2)
    for seed in range(4):
        found = option_cover_times(mdp, options, 1, 400, seed=seed)
        assert found.times.tolist() == [plain_cover_time(mdp, options, seed, 400)]


def exact_distribution(mdp, options, horizon):
    """P(covered within t) from a chain over (pairs visited, state, running option or none)."""
    tables = option_tables(options, mdp.num_states)
    acting = np.flatnonzero(mdp.reachable_states() & ~mdp.ends)
    bits = {(s, a): 1 << i for i, (s, a) in enumerate((s, a) for s in acting for a in (0, 1))}
    everything = sum(bits.values())
    start = int(mdp.start.argmax())
    mass, cdf = {(0, start, None): 1.0}, [0.0]
    for _ in range(horizon):
        after = {}
        for (seen, state, running), chance in mass.items():
            drawn = enumerate(tables.probabilities) if running is None else [(running, 1.0)]
            for option, probability in drawn:
                action = int(tables.actions[option, state])
                now = seen | bits[state, action]
                following = int(mdp.transitions[state, action].argmax())
                ended = mdp.ends[following]
                following = start if ended else following
                over = ended or tables.lengths[option] == 1 or tables.ends[option, following]
                key = (now, following, None if over else option)
                after[key] = after.get(key, 0.0) + chance * probability
        mass = after
        cdf.append(sum(p for (seen, *_), p in mass.items() if seen == everything))
    return np.array(cdf)


def test_cover_times_of_eigenoptions_have_their_exact_distribution():
    for mdp in (corridor(4), deep_sea(2)):
        options = eigenoptions(mdp, 1)
        exact = exact_distribution(mdp, options, 60)
        found = option_cover_times(mdp, options, 20_000, 60, seed=2)
        # 20,000 runs: 5 standard errors of a share are at most 0.018.
        np.testing.assert_allclose(found.cdf, exact, atol=0.018)
        assert exact[30] > 0.3


def test_the_exact_distribution_is_that_of_the_library_for_single_actions():
    mdp = corridor(4)
    expected = exact_cover_times(ExplorationProcess(mdp, durations=Fixed(1)), 40)
    np.testing.assert_allclose(exact_distribution(mdp, Primitives(2), 40), expected.cdf, atol=1e-12)


@each_mdp
def test_first_visits_of_single_actions_are_those_of_epsilon_greedy(name):
    mdp = MDPS[name]
    expected = expected_first_visits(ExplorationProcess(mdp, durations=Fixed(1)))
    found = [
        expected_option_visit(mdp, Primitives(mdp.num_actions), s) for s in range(mdp.num_states)
    ]
    np.testing.assert_allclose(found, expected, rtol=1e-9)


def test_first_visits_of_directions_by_hand():
    """Two states; left, right, and both ways of the direction: three of four options differ.

    From the left state, "right" and one way of the direction lead right: probability 1/2 a step.
    """
    assert expected_option_visit(corridor(2), eigenoptions(corridor(2), 1), 1) == pytest.approx(2.0)


def test_first_visits_of_eigenoptions_are_what_the_plain_policy_needs():
    mdp = room(4, (0, 0))
    options, goal, lanes = eigenoptions(mdp, 2), 15, 150
    explore = TemporallyExtended(options, 1.0, lanes=lanes, seed=0)
    successors = mdp.transitions.argmax(axis=2)
    states, found = np.zeros(lanes, dtype=np.int64), np.zeros(lanes, dtype=np.int64)
    active = np.ones(lanes, dtype=np.bool_)
    for step in range(1, 2000):
        actions = explore(np.zeros(lanes, dtype=int), observations=states, active=active)
        states = np.where(active, successors[states, actions], states)
        found[active & (states == goal)] = step
        active &= states != goal
        if not active.any():
            break
    exact = expected_option_visit(mdp, options, goal)
    assert not active.any()
    assert found.mean() == pytest.approx(exact, abs=5 * found.std() / lanes**0.5)


def test_options_without_coverage_are_refused_with_the_reason():
    mdp = room(4, (0, 0))
    alone = eigenoptions(mdp, 1, has_primitives=False)
    assert not full_coverage(mdp, alone).is_full
    for options in (alone, FiniteOptions(4, [repeat(3, 2)])):
        with pytest.raises(ValueError, match="options must have full coverage; got state 0, "):
            option_cover_times(mdp, options, 1, 10)
        with pytest.raises(ValueError, match="options must have full coverage"):
            expected_option_visit(mdp, options, 3)


def test_an_option_that_never_ends_is_refused():
    endless = Option(lambda _: 0, lambda _: 0.0, None, "observation", "left forever")
    options = FiniteOptions(2, [endless, primitive(0), primitive(1)])
    with pytest.raises(ValueError, match="options must end, or lead out of the episode"):
        expected_option_visit(corridor(3), options, 2)


def test_bad_arguments_are_refused_by_name():
    mdp = corridor(3)
    for call, message in (
        (lambda: option_cover_times(np.eye(3), Primitives(2), 1, 9), "mdp must be a FiniteMDP"),
        (
            lambda: option_cover_times(mdp, Primitives(3), 1, 9),
            "options must have 2 actions; got 3",
        ),
        (lambda: option_cover_times(mdp, Primitives(2), 0, 9), "runs must be at least 1; got 0"),
        (lambda: expected_option_visit(mdp, Primitives(2), 3), "target must"),
        (
            lambda: expected_option_visit(mdp, ActionRepeats(2, Fixed(3)), 1),
            "play once or until a state",
        ),
    ):
        with pytest.raises((ValueError, TypeError), match=message):
            call()


def test_a_state_that_nothing_reaches_is_never_visited():
    mdp = deterministic([[1, 1], [0, 0], [0, 1]], 0)
    assert expected_option_visit(mdp, Primitives(2), 2) == np.inf
    assert expected_option_visit(mdp, Primitives(2), 0) == 0.0
