"""Greedy functions, probabilities, masks and weights of εz-greedy."""

import numpy as np

from ezgreedy import (
    EZGreedy,
    Fixed,
)
from support.scripted import ALMOST_ONE, ScriptedStreams
from support.statistics import assert_follows
from support.twins import tape

HEADS = 0.0


def scripted(explore, script):
    explore.streams = ScriptedStreams(script, explore.lanes)
    return explore


# Greedy as a function.


def test_greedy_is_asked_only_for_lanes_that_decide():
    script = {(1, 0): (HEADS, 0.5, 0.0), (2, 1): (HEADS, 0.5, 0.0)}
    explore = scripted(EZGreedy(4, 0.5, Fixed(2), lanes=3), script)
    asked = []

    def greedy(lanes):
        asked.append(lanes.tolist())
        return np.full(len(lanes), 1)

    actions = [explore(greedy).tolist() for _ in range(3)]
    assert actions == [[1, 2, 1], [1, 2, 2], [1, 1, 2]]
    # Lane 1 is inside its option on the second call, lane 2 on the third.
    assert asked == [[0, 1, 2], [0, 2], [0, 1]]


def test_greedy_function_and_array_give_the_same_tape_and_probabilities():
    by_array, by_function = (EZGreedy(6, 0.3, lanes=5, seed=2) for _ in range(2))
    rng = np.random.default_rng(0)
    for _ in range(200):
        greedy = rng.integers(0, 6, 5)
        np.testing.assert_array_equal(by_array(greedy), by_function(lambda i, g=greedy: g[i]))
        np.testing.assert_array_equal(by_array.probabilities, by_function.probabilities)


# Probabilities.


def test_probabilities_of_decisions_and_options():
    script = {(1, 0): (HEADS, 0.5, 0.0), (2, 0): (HEADS, 0.0, 0.0)}
    explore = scripted(EZGreedy(4, np.array([0.2, 0.4, 0.4]), Fixed(2), lanes=3), script)
    assert explore(np.zeros(3, dtype=int)).tolist() == [0, 2, 0]
    # Greedy by choice; explored away from greedy; explored and hit the greedy action.
    np.testing.assert_allclose(explore.probabilities, [0.8 + 0.05, 0.1, 0.6 + 0.1])
    explore(np.zeros(3, dtype=int))
    np.testing.assert_allclose(explore.probabilities, [0.85, 1.0, 1.0])


def test_probabilities_survive_what_the_caller_does_to_its_arrays():
    explore = EZGreedy(4, 0.3, lanes=6, seed=0)
    greedy, active = np.arange(6) % 4, np.ones(6, dtype=bool)
    actions = explore(greedy, active=active)
    before = explore.probabilities
    greedy[:], active[:], actions[:] = 3, False, 0
    np.testing.assert_array_equal(explore.probabilities, before)


def test_importance_weights_average_to_one_over_decisions():
    # E[1/p] over the drawn action is the number of actions that can be drawn, here 3.
    explore = EZGreedy(3, 0.4, Fixed(1), lanes=1000, seed=0)
    weights = []
    for _ in range(200):
        explore(np.zeros(1000, dtype=int))
        weights.append(1.0 / explore.probabilities)
    assert abs(np.mean(weights) - 3.0) < 6 * np.std(weights) / np.sqrt(200_000)


# Masks and weights.


def test_an_options_action_is_drawn_among_legal_ones():
    legal = np.array([[True, False, True, False, True]])
    for u, expected in ((0.0, 0), (0.33, 0), (0.34, 2), (0.67, 4), (ALMOST_ONE, 4)):
        explore = scripted(EZGreedy(5, 0.5, Fixed(1)), {(0, 0): (HEADS, u, 0.0)})
        assert explore(np.array([0]), legal=legal).tolist() == [expected]
        np.testing.assert_allclose(explore.probabilities, 0.5 / 3 + 0.5 * (expected == 0))


def test_a_draw_on_a_boundary_goes_to_the_action_that_begins_there():
    legal = np.array([[False, True, False, True]])
    for u, expected in ((0.0, 1), (np.nextafter(0.5, 0.0), 1), (0.5, 3)):
        for weights in (None, [7.0, 2.0, 1.0, 2.0]):
            explore = EZGreedy(4, 0.5, Fixed(1), action_weights=weights)
            scripted(explore, {(0, 0): (HEADS, u, 0.0)})
            assert explore(np.array([1]), legal=legal).tolist() == [expected]


def test_a_positive_weight_is_never_too_small_to_be_drawn():
    explore = EZGreedy(3, 1.0, Fixed(1), action_weights=[1.0, 1e-30, 0.0])
    scripted(explore, {(0, 0): (HEADS, ALMOST_ONE, 0.0)})
    assert explore(np.array([0])).tolist() == [1]
    assert 0.0 < explore.probabilities[0] < 1e-11


def test_an_option_whose_action_becomes_illegal_ends():
    script = {(0, 0): (HEADS, 0.5, 0.0), (1, 0): (HEADS, 0.5, 0.0), (1, 1): (HEADS, 0.0, 0.0)}
    explore = scripted(EZGreedy(4, 0.5, Fixed(3), lanes=2), script)
    explore(np.array([1, 1]))
    legal = np.ones((2, 4), dtype=bool)
    legal[:, 2] = False
    assert explore(np.array([1, 1]), legal=legal).tolist() == [1, 0]
    assert explore.remaining.tolist() == [0, 2]
    assert explore.counters.cut_by_masks == 2


def test_a_mask_that_allows_everything_changes_nothing():
    plain, masked = (EZGreedy(7, 0.4, lanes=5, seed=0) for _ in range(2))
    weighted, both = (
        EZGreedy(7, 0.4, lanes=5, seed=0, action_weights=[1, 2, 0, 1, 5, 1, 0.3]) for _ in range(2)
    )
    everything = np.ones((5, 7), dtype=bool)
    for _ in range(200):
        greedy = np.zeros(5, dtype=int)
        np.testing.assert_array_equal(plain(greedy), masked(greedy, legal=everything))
        np.testing.assert_array_equal(weighted(greedy), both(greedy, legal=everything))
        np.testing.assert_allclose(weighted.probabilities, both.probabilities)


def test_equal_weights_are_uniform():
    plain = tape(EZGreedy(8, 0.5, lanes=4, seed=3), 300)
    weighted = EZGreedy(8, 0.5, lanes=4, seed=3, action_weights=np.full(8, 0.1))
    np.testing.assert_array_equal(tape(weighted, 300), plain)


def test_actions_follow_their_weights():
    weights = np.array([1.0, 0.0, 2.0, 5.0])
    explore = EZGreedy(4, 1.0, Fixed(1), lanes=1000, action_weights=weights)
    drawn = tape(explore, 100).ravel()
    uniform = np.full(4, 0.25)
    assert_follows(drawn, weights / 8, rejects={"uniform": uniform})


def test_exploratory_actions_are_uniform():
    drawn = tape(EZGreedy(18, 1.0, Fixed(1), lanes=1000, seed=1), 100).ravel()
    without_greedy = np.append(0.0, np.full(17, 1 / 17))
    assert_follows(drawn, np.full(18, 1 / 18), rejects={"never the greedy one": without_greedy})
