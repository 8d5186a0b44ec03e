"""Eigenoptions: directions known in closed form, coverage, and a control without meaning."""

import numpy as np
import pytest
from scipy.linalg import eigh as scipy_eigh
from scipy.sparse import csgraph

from ezgreedy import FiniteMDP, History, Primitives, TemporallyExtended, full_coverage
from ezgreedy.envs.deep_sea import DeepSea
from ezgreedy.envs.finite import finite_model
from ezgreedy.envs.grid_map import GridMap
from ezgreedy.envs.obstacle_maps import turning_maze
from ezgreedy.exploration.eigenoptions import eigenoptions, slow_directions
from ezgreedy.exploration.option_tables import option_tables
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


def test_directions_of_a_room_are_products_of_cosines():
    """Roughness on a grid is a sum over both axes: (2 − 2 cos πi/n + 2 − 2 cos πj/n) / 4."""
    size = 5
    mdp = room(size, (0, 0))
    found = slow_directions(mdp, 8)
    axis = 2.0 - 2.0 * np.cos(np.pi * np.arange(size) / size)
    expected = np.sort((axis[:, None] + axis[None]).ravel())[1:9] / 4.0
    walk = mdp.transitions.mean(axis=1)
    roughness = [((row[:, None] - row[None]) ** 2 * walk).sum() / 2.0 for row in found]
    np.testing.assert_allclose(roughness, expected, atol=1e-12)


def test_directions_of_four_rooms_are_those_of_scipy():
    model = finite_model(GridMap("four-rooms"))
    mdp = FiniteMDP(model.transitions(), model.start, model.terminal)
    acting = np.flatnonzero(model.acting)
    walk = mdp.transitions.mean(axis=1)[np.ix_(acting, acting)]
    expected = csgraph.laplacian((walk + walk.T) / 2.0)
    values, vectors = scipy_eigh(expected)
    found = slow_directions(mdp, 3)[:, acting]
    # These three eigenvalues are single ones, so that vectors are equal up to their sign.
    assert (np.diff(values[:5]) > 1e-6).all()
    np.testing.assert_allclose(np.abs(np.diag(found @ vectors[:, 1:4])), 1.0, atol=1e-9)


def test_only_finite_mdps_have_directions():
    with pytest.raises(TypeError, match="mdp must be a FiniteMDP"):
        eigenoptions(np.eye(3))


WORLDS = {
    "randomised DeepSea": DeepSea(5, action_seed=3),
    "four rooms": GridMap("four-rooms"),
    "turning maze": turning_maze(3, 12, seed=1),
    "corridor": GridMap(["S......G"], ("left", "right")),
    "open room": GridMap(["S....", ".....", "....G"]),
}


@pytest.mark.parametrize("name", WORLDS)
def test_eigenoptions_have_property_1_in_every_world_and_so_has_their_control(name):
    model = finite_model(WORLDS[name])
    mdp = FiniteMDP(model.transitions(), model.start, model.terminal)
    for shuffled_by in (None, 0):
        report = full_coverage(mdp, eigenoptions(mdp, 2, shuffled_by=shuffled_by))
        assert report.visited[model.acting].all()


def test_the_control_has_the_same_heights_elsewhere():
    mdp = room(4, (0, 0))
    options, control = eigenoptions(mdp, 2), eigenoptions(mdp, 2, shuffled_by=0)
    assert len(options.options) == len(control.options)
    assert [o.name for o in options.options] == [o.name for o in control.options]
    tables, shuffled = (option_tables(some, mdp.num_states) for some in (options, control))
    assert (tables.actions != shuffled.actions).any()


def test_a_direction_of_randomised_deep_sea_leads_to_the_treasure():
    """Whatever actions mean: some direction goes along the diagonal, and no repeat does."""
    env = DeepSea(8, action_seed=5)
    model = finite_model(env)
    mdp = FiniteMDP(model.transitions(), model.start, model.terminal)
    treasure = env.size * env.size - 1
    assert treasure in {
        state
        for branch in eigenoptions(mdp, 4, has_primitives=False).branches()
        for state in rolled(mdp, branch.option, 0)[0]
    }
    for action in (0, 1):
        state = 0
        while model.acting[state]:
            state = int(model.successors[state, action])
            assert state != treasure


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
