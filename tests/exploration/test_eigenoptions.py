"""Eigenoptions: directions known in closed form, coverage, and a control without meaning."""

import numpy as np
import pytest

from ezgreedy import FiniteMDP, History, Primitives, TemporallyExtended, full_coverage
from ezgreedy.exploration.eigenoptions import eigenoptions, slow_directions
from support.small_mdps import corridor, deep_sea, deterministic, room


def rolled(mdp, option, state):
    """The states and actions of an option that begins here."""
    states, actions = [state], []
    while True:
        if actions and option.termination(History(len(actions), state)) == 1.0:
            return states, actions
        actions.append(option.policy(History(len(actions), state)))
        state = int(mdp.transitions[state, actions[-1]].argmax())
        states.append(state)
        assert len(actions) < 1000


def test_directions_of_a_corridor_are_cosines():
    length = 12
    found = slow_directions(corridor(length), 4)
    for number, direction in enumerate(found, start=1):
        cosine = np.cos(np.pi * number * (np.arange(length) + 0.5) / length)
        cosine /= np.linalg.norm(cosine)
        sign = np.sign(direction @ cosine)
        np.testing.assert_allclose(direction, sign * cosine, atol=1e-9)


def test_directions_are_smooth_orthonormal_and_not_constant():
    mdp = room(6, (0, 0))
    found = slow_directions(mdp, 8)
    np.testing.assert_allclose(found @ found.T, np.eye(8), atol=1e-9)
    np.testing.assert_allclose(found.sum(axis=1), 0.0, atol=1e-9)
    walk = mdp.transitions.mean(axis=1)
    roughness = [((row[:, None] - row[None]) ** 2 * walk).sum() for row in found]
    assert (np.diff(roughness) > -1e-9).all()


def test_a_direction_of_a_corridor_leads_to_one_end_and_the_other():
    mdp = corridor(9)
    ends = set()
    for branch in eigenoptions(mdp, 1, has_primitives=False).branches():
        states, actions = rolled(mdp, branch.option, 4)
        assert len(set(actions)) == 1
        assert len(actions) == 4
        ends.add(states[-1])
    assert ends == {0, 8}


def test_a_turning_maze_is_crossed_in_one_option():
    """A spiral corridor whose actions are those of a room: no repeat leads through it."""
    path = [(0, 0), (0, 1), (0, 2), (1, 2), (2, 2), (2, 1), (2, 0), (3, 0), (4, 0), (4, 1), (4, 2)]
    moves = [(-1, 0), (1, 0), (0, -1), (0, 1)]
    successors = [
        [path.index((r + dr, c + dc)) if (r + dr, c + dc) in path else i for dr, dc in moves]
        for i, (r, c) in enumerate(path)
    ]
    mdp = deterministic(successors, 0)
    branches = eigenoptions(mdp, 1, has_primitives=False).branches()
    lengths = {len(rolled(mdp, branch.option, 0)[1]) for branch in branches}
    assert lengths == {1, len(path) - 1}


def test_terminal_states_are_neither_goals_nor_obstacles_of_a_direction():
    mdp = deep_sea(4)
    assert (slow_directions(mdp, 2)[:, mdp.ends] == 0).all()
    for branch in eigenoptions(mdp, 2, has_primitives=False).branches():
        # In the last row every action enters an end, so no option goes on from there.
        for state in np.flatnonzero(mdp.transitions[:, :, mdp.ends].sum(axis=2).all(axis=1)):
            assert branch.option.termination(History(1, state)) == 1.0


def test_primitives_give_full_coverage_which_directions_alone_need_not_have():
    mdp = room(4, (0, 0))
    assert full_coverage(mdp, eigenoptions(mdp, 2)).is_full
    alone = full_coverage(mdp, eigenoptions(mdp, 1, has_primitives=False))
    assert not alone.is_full


def steps_to(mdp, options, goal, lanes=60, most=1000, seed=0):
    """Steps until each lane first sees the goal, exploring all the time."""
    explore = TemporallyExtended(options, 1.0, lanes=lanes, seed=seed)
    states, found = np.zeros(lanes, dtype=np.int64), np.full(lanes, most)
    successors = mdp.transitions.argmax(axis=2)
    for step in range(1, most + 1):
        actions = explore(np.zeros(lanes, dtype=int), observations=states)
        states = successors[states, actions]
        found[(states == goal) & (found == most)] = step
        if (found < most).all():
            break
    return found


def test_directions_reach_the_far_end_sooner_and_shuffled_ones_do_not():
    mdp, goal = corridor(10), 9
    meant = steps_to(mdp, eigenoptions(mdp, 2), goal).mean()
    single = steps_to(mdp, Primitives(2), goal).mean()
    control = steps_to(mdp, eigenoptions(mdp, 2, shuffled_by=0), goal).mean()
    # A random walk from the wall needs 9 · 10 = 90 steps on average, with a standard error of 9.
    assert single == pytest.approx(90, abs=45)
    assert meant < 0.5 * single
    assert control > 0.6 * single


def test_shuffling_keeps_the_values_and_is_repeatable():
    mdp = corridor(10)
    one, two = (eigenoptions(mdp, 2, shuffled_by=3) for _ in range(2))
    assert one.describe() == two.describe()
    mine, theirs = one.branches()[0].option, two.branches()[0].option
    for state in range(10):
        assert rolled(mdp, mine, state) == rolled(mdp, theirs, state)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: eigenoptions(corridor(5), 0), "count must be at least 1; got 0"),
        (lambda: eigenoptions(corridor(5), 5), "count must be at most 4; got 5"),
        (lambda: eigenoptions(corridor(5), shuffled_by=-1), "shuffled_by must be at least 0"),
        (
            lambda: slow_directions(FiniteMDP(np.ones((1, 1, 1)), np.ones(1)), 1),
            "mdp must have two states or more that hang together",
        ),
        (
            lambda: slow_directions(FiniteMDP(np.eye(3)[:, None], np.ones(3) / 3), 1),
            "mdp must have two states or more that hang together; got 3 states in several parts",
        ),
    ],
)
def test_bad_input_is_refused_by_name(call, message):
    with pytest.raises(ValueError, match=message):
        call()
