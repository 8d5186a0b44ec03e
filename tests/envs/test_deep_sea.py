from itertools import product

import numpy as np
import pytest
from bsuite.environments.deep_sea import DeepSea as BsuiteDeepSea

from ezgreedy.envs import deep_sea
from ezgreedy.envs.deep_sea import DeepSea


def bsuite_twin(size, mapping_seed):
    """The real one; randomised if a seed is given."""
    if mapping_seed is not None:
        return BsuiteDeepSea(size, randomize_actions=True, mapping_seed=mapping_seed)
    # Consistent actions are the paper's main variant; bsuite calls them a debug mode.
    with pytest.warns(UserWarning, match="debug mode"):
        return BsuiteDeepSea(size, randomize_actions=False)


def bsuite_place(timestep):
    """Row · size + column, or None at the end, which bsuite shows as all zeros."""
    return None if not timestep.observation.any() else int(timestep.observation.argmax())


@pytest.mark.parametrize("mapping_seed", [None, 0, 1])
@pytest.mark.parametrize("size", [1, 2, 5, 20])
def test_transitions_and_rewards_are_those_of_bsuite(size, mapping_seed):
    theirs = bsuite_twin(size, mapping_seed)
    ours = DeepSea(size)
    ours.mapping = theirs._action_mapping.astype(np.int8)
    rng = np.random.default_rng(size)
    for episode in range(200):
        # Now and then the way to the treasure, which chance would not find.
        goes_right = np.ones(size) if episode % 10 == 0 else rng.integers(2, size=size)
        state, timestep = ours.reset()[0], theirs.reset()
        assert state == bsuite_place(timestep)
        for right in goes_right:
            where = ours.mapping[divmod(state, size)]
            action = int(where if right else 1 - where)
            state, reward, terminated, _, _ = ours.step(action)
            timestep = theirs.step(action)
            assert reward == timestep.reward
            assert terminated == timestep.last()
            assert bsuite_place(timestep) == (None if terminated else state)


SETTINGS = [
    {"cost_on": cost_on, "other_move": other_move, "action_seed": action_seed}
    for cost_on, other_move, action_seed in product(
        ("right", "step"), ("left", "down"), (None, 0, 5)
    )
]


def returns_of_all_sequences(env):
    totals = []
    for actions in product((0, 1), repeat=env.size):
        env.reset()
        totals.append(sum(env.step(action)[1] for action in actions))
    return np.array(totals)


@pytest.mark.parametrize("settings", SETTINGS)
def test_exactly_one_action_sequence_earns_the_optimum_099(settings):
    totals = returns_of_all_sequences(DeepSea(size=9, **settings))
    assert totals.max() == pytest.approx(0.99, abs=1e-12)
    assert np.count_nonzero(totals > 0.0) == 1


def test_with_consistent_actions_the_optimum_is_always_action_1():
    assert returns_of_all_sequences(DeepSea(size=6)).argmax() == 2**6 - 1


def test_only_moves_to_the_right_cost_unless_every_step_does():
    totals = returns_of_all_sequences(DeepSea(size=4, action_seed=None))
    rights = np.array([sum(actions) for actions in product((0, 1), repeat=4)])
    assert totals[:-1] == pytest.approx(-0.01 / 4 * rights[:-1])
    totals = returns_of_all_sequences(DeepSea(size=4, cost_on="step"))
    assert totals[:-1] == pytest.approx([-0.01] * 15)


def test_the_move_cost_is_a_setting():
    assert returns_of_all_sequences(DeepSea(size=5, move_cost=0.0)).max() == 1.0
    assert returns_of_all_sequences(DeepSea(size=5, move_cost=0.5)).max() == pytest.approx(0.5)


@pytest.mark.parametrize(("other_move", "column"), [("left", 1), ("down", 2)])
def test_the_other_action_goes_left_in_bsuite_and_straight_down_in_the_paper(other_move, column):
    env = DeepSea(size=5, other_move=other_move)
    env.reset()
    states = [env.step(action)[0] for action in (1, 1, 0)]
    assert divmod(states[-1], 5) == (3, column)


def test_the_left_wall_stops_the_other_action():
    assert deep_sea.step(2, 0, 0, deep_sea.consistent_mapping(5), 0.0, 0.0, 1) == (3, 0, 0.0, False)


def test_an_episode_lasts_as_many_steps_as_there_are_rows():
    env = DeepSea(size=7)
    env.reset()
    assert [env.step(0)[2] for _ in range(7)] == [False] * 6 + [True]


def test_random_action_effects_depend_on_their_seed_alone():
    first, again, other = (DeepSea(30, action_seed=seed).mapping for seed in (1, 1, 2))
    assert np.array_equal(first, again)
    assert not np.array_equal(first, other)
    env = DeepSea(30, action_seed=1)
    env.reset(seed=99)
    env.reset()
    assert np.array_equal(env.mapping, first)


def test_random_action_effects_are_fair_coins():
    heads = int(deep_sea.random_mapping(200, seed=0).sum())
    # 40,000 coins: a fair mapping strays this far once in a million seeds.
    assert abs(heads - 20_000) < 4.9 * 100


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"size": 0}, "size must be at least 1; got 0"),
        ({"cost_on": "left"}, "cost_on must be one of 'right', 'step'; got 'left'"),
        ({"other_move": "up"}, "other_move must be one of 'left', 'down'; got 'up'"),
        ({"move_cost": -1.0}, "move_cost must be finite and be at least 0; got -1.0"),
        ({"action_seed": -1}, "action_seed must be at least 0; got -1"),
    ],
)
def test_bad_settings_are_refused_by_name(settings, message):
    with pytest.raises(ValueError, match=message):
        DeepSea(**settings)
