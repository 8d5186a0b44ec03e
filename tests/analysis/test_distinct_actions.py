"""Actions sorted by their effects: exactly, by probing, and on the real Atari."""

import gymnasium
import numpy as np
import pytest
from gymnasium import spaces

import ezgreedy.envs  # noqa: F401 (registers the worlds)
from ezgreedy import EZGreedy, FiniteMDP
from ezgreedy.analysis.distinct_actions import (
    ActionEffects,
    combined_effects,
    distinct_actions,
    game_actions,
    probed_actions,
)
from ezgreedy.envs.finite import finite_model
from ezgreedy.games.atari.emulator import Emulator
from ezgreedy.games.protocol import Protocol
from support.small_mdps import corridor, deterministic, room


def test_actions_of_a_room_all_differ():
    effects = distinct_actions(room(4, (1, 1)))
    assert effects.labels.tolist() == [0, 1, 2, 3]
    assert effects.num_distinct == 4
    np.testing.assert_array_equal(effects.action_weights, 1.0)


def test_copies_are_found_wherever_they_stand():
    mdp = room(4, (1, 1))
    order = [0, 1, 0, 2, 3, 0, 2]
    copied = FiniteMDP(mdp.transitions[:, order], mdp.start)
    effects = distinct_actions(copied)
    assert effects.labels.tolist() == [0, 1, 0, 3, 4, 0, 3]
    assert effects.groups == [[0, 2, 5], [1], [3, 6], [4]]
    np.testing.assert_allclose(effects.action_weights, [1 / 3, 1, 1 / 3, 1 / 2, 1, 1 / 3, 1 / 2])


def test_differences_in_places_that_cannot_be_reached_do_not_count():
    successors = [[1, 1], [0, 0], [0, 1]]  # the third state is never entered
    assert distinct_actions(deterministic(successors, 0)).num_distinct == 1
    terminal = np.array([False, False, True])
    assert distinct_actions(deterministic([[1, 1], [2, 2], [0, 1]], 0, terminal)).num_distinct == 1


def test_probabilities_tell_actions_apart():
    mdp = corridor(3)
    slippery = 0.9 * mdp.transitions[:, 1] + 0.1 * mdp.transitions[:, 0]
    transitions = np.stack([mdp.transitions[:, 1], slippery], axis=1)
    assert distinct_actions(FiniteMDP(transitions, mdp.start)).num_distinct == 2


def test_weights_make_effects_uniform():
    effects = ActionEffects(np.array([0, 0, 0, 3]))
    explore = EZGreedy(4, 1.0, lanes=20_000, seed=0, action_weights=effects.action_weights)
    actions = explore(np.zeros(20_000, dtype=int))
    assert (actions == 3).mean() == pytest.approx(0.5, abs=0.018)  # 5 standard errors


def test_examinations_combine_to_what_none_of_them_told_apart():
    first, second = ActionEffects(np.array([0, 0, 0, 3])), ActionEffects(np.array([0, 1, 1, 1]))
    combined = combined_effects([first, second])
    assert combined.labels.tolist() == [0, 1, 1, 3]
    assert combined_effects([first]).labels.tolist() == first.labels.tolist()
    with pytest.raises(ValueError, match="found must hold at least one examination"):
        combined_effects([])
    with pytest.raises(ValueError, match="found must be about the same number of actions"):
        combined_effects([first, ActionEffects(np.array([0]))])


def test_only_finite_mdps_have_exact_effects():
    with pytest.raises(TypeError, match="mdp must be a FiniteMDP; others can be probed"):
        distinct_actions(gymnasium.make("CartPole-v1"))
    broken = corridor(3).transitions.copy()
    broken[0, 0, 0] = np.nan
    with pytest.raises(ValueError, match="transitions must hold probabilities that sum to 1"):
        FiniteMDP(broken, corridor(3).start)


# By probing.


@pytest.mark.parametrize("num_copies", [1, 5])
def test_probing_finds_what_the_table_says(num_copies):
    env_id = "ezgreedy/RepeatedActions-v0"
    model = finite_model(gymnasium.make(env_id, num_copies=num_copies).unwrapped)
    mdp = FiniteMDP(model.transitions(), model.start, model.terminal)
    exact = distinct_actions(mdp)
    probed = probed_actions(lambda: gymnasium.make(env_id, num_copies=num_copies))
    np.testing.assert_array_equal(probed.labels, exact.labels)
    assert exact.num_distinct == 4


def test_all_actions_of_classic_tasks_differ():
    for env_id in ("MountainCar-v0", "CartPole-v1", "Acrobot-v1"):
        effects = probed_actions(lambda env_id=env_id: gymnasium.make(env_id), num_places=3)
        assert effects.num_distinct == effects.labels.size


class Stubborn(gymnasium.Env):
    """Cannot be copied; actions 1 and 2 are the same, 0 differs from the second step on."""

    observation_space = spaces.Dict({"place": spaces.Discrete(100), "pair": spaces.Box(0, 9, (2,))})
    action_space = spaces.Discrete(3)

    def __init__(self, is_erratic=False):
        self.is_erratic, self.erratic = is_erratic, np.random.default_rng(0)

    def __deepcopy__(self, memo):
        raise TypeError("not this one")

    def _seen(self):
        noise = self.erratic.random() if self.is_erratic else 0.0
        return {"place": self.place, "pair": np.array([self.count + noise, 0.0])}

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.place, self.count = int(self.np_random.integers(5)), 0
        return self._seen(), {}

    def step(self, action):
        self.count += 1
        if action > 0 and self.count > 1:
            self.place += 1
        return self._seen(), 0.0, self.count >= 9, False, {}


def test_environments_that_cannot_be_copied_are_led_back():
    assert probed_actions(Stubborn).labels.tolist() == [0, 1, 1]


def test_effects_that_come_later_need_more_steps():
    first = probed_actions(Stubborn, num_places=1)
    assert first.num_distinct == 1
    assert probed_actions(Stubborn, num_places=1, num_steps=2).num_distinct == 2


def test_an_environment_that_can_be_neither_copied_nor_led_back_is_refused():
    with pytest.raises(ValueError, match="the environment must give the same observations"):
        probed_actions(lambda: Stubborn(is_erratic=True))


def test_continuous_actions_are_refused():
    with pytest.raises(TypeError, match="num_actions must be an int or a Discrete space"):
        probed_actions(lambda: gymnasium.make("MountainCarContinuous-v0"))


# Real games.


@pytest.mark.parametrize(("name", "num_distinct"), [("Freeway", 3), ("Skiing", 3)])
def test_the_full_set_of_a_game_has_the_effects_of_its_own_set(name, num_distinct):
    """In these games the emulator's list of a game's own actions is exactly what can be seen."""
    full = Emulator(name, Protocol(has_full_action_set=True), rng=np.random.default_rng(0))
    effects = game_actions(full, num_places=20)
    own = Emulator(name, Protocol(has_full_action_set=False), rng=np.random.default_rng(0))
    assert own.num_actions == effects.num_distinct == num_distinct
    assert game_actions(own, num_places=20).num_distinct == num_distinct


def test_a_games_place_is_left_as_it_was():
    played, tried = (Emulator("Pong", rng=np.random.default_rng(0)) for _ in range(2))
    game_actions(tried, num_places=1)  # a place, and the walk to the next
    played.reset()
    walk = int(np.random.default_rng(0).integers(played.num_actions))
    for _ in range(8):
        played.step(walk)
    for action in range(played.num_actions):
        one, other = played.step(action), tried.step(action)
        np.testing.assert_array_equal(one.observation, other.observation)
