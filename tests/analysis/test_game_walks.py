from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest

from ezgreedy.analysis.game_walks import game_walk
from ezgreedy.exploration.durations import Fixed, Zeta
from ezgreedy.exploration.ez_greedy import EpsilonGreedy, EZGreedy
from ezgreedy.games.atari.screen_cells import PROTOCOL, CoarseEmulator

SHORT = replace(PROTOCOL, most_episode_frames=1000)


def walked(name, num_steps, epsilon=1.0, law=None, seed=0, **protocol):
    rng = np.random.default_rng(seed)
    game = CoarseEmulator(name, replace(PROTOCOL, **protocol), rng=rng)
    explore = EZGreedy(game.num_actions, epsilon, law or Zeta(2.0, 100), seed=seed)
    return game_walk(game, explore, num_steps)


def plain_walk(name, num_steps, law, seed):
    """Lists of everything seen in whole episodes, and counts made of them afterwards."""
    game = CoarseEmulator(name, rng=np.random.default_rng(seed))
    explore = EZGreedy(game.num_actions, 1.0, law, seed=seed)
    episodes, rewards, memories, cells = [], [], [], []
    while len(rewards) < num_steps:
        place, lives, steps = game.reset(), [game.lives], []
        starts = np.ones(1, dtype=bool)
        while True:
            memories.append(bytes(game._machine.getRAM()))
            cells.append(place.copy())
            step = game.step(int(explore(np.zeros(1, dtype=np.int64), starts)[0]))
            starts = np.zeros(1, dtype=bool)
            steps.append(step.reward)
            rewards.append(step.reward)
            lives.append(step.lives)
            place = step.observation
            if step.terminated or step.truncated:
                break
        episodes.append((steps, lives))
    return episodes, rewards, memories[:num_steps], cells[:num_steps]


@pytest.mark.parametrize(("name", "num_steps"), [("Pong", 600), ("MontezumaRevenge", 450)])
def test_a_walk_counts_what_lists_of_everything_hold(name, num_steps):
    found = walked(name, num_steps, law=Zeta(2.0, 100), seed=5)
    episodes, rewards, memories, cells = plain_walk(name, num_steps, Zeta(2.0, 100), 5)
    assert found.returns == [sum(steps) for steps, _ in episodes]
    assert found.lengths == [len(steps) for steps, _ in episodes]
    assert found.lives_lost == [
        sum(max(before - after, 0) for before, after in pairwise(lives)) for _, lives in episodes
    ]
    assert found.num_memories == len({tuple(memory) for memory in memories})
    assert found.num_cells == len({tuple(cell.ravel().tolist()) for cell in cells})
    positive = [step for step, reward in enumerate(rewards[:num_steps], start=1) if reward > 0]
    assert found.first_reward == (positive[0] if positive else None)
    assert sum(found.lengths[:-1]) < num_steps <= sum(found.lengths)
    assert found.num_cut == 0


def test_going_up_all_the_time_scores_in_freeway_when_the_chicken_arrives():
    # Of no-op, up and down, an explorer of these weights plays up alone.
    game = CoarseEmulator("Freeway", SHORT, rng=np.random.default_rng(0))
    explore = EZGreedy(3, 1.0, Fixed(1), action_weights=[0.0, 1.0, 0.0])
    found = game_walk(game, explore, 250)
    twin = CoarseEmulator("Freeway", SHORT, rng=np.random.default_rng(0))
    twin.reset()
    rewards = [twin.step(1).reward for _ in range(250)]
    assert found.first_reward == rewards.index(1.0) + 1
    assert found.returns[0] > 1.0


def test_a_reward_after_the_counted_steps_is_not_a_first_reward():
    game = CoarseEmulator("Freeway", SHORT, rng=np.random.default_rng(0))
    found = game_walk(game, EZGreedy(3, 1.0, Fixed(1), action_weights=[0.0, 1.0, 0.0]), 5)
    assert found.first_reward is None
    assert found.returns[0] > 1.0
    assert found.num_memories == 5


def test_nobody_moves_without_exploration():
    # Montezuma's first room goes round in circles if nobody moves, and nobody dies in it.
    found = walked("MontezumaRevenge", 100, epsilon=0.0, most_episode_frames=400)
    assert found.lengths == [100]
    assert found.lives_lost == [0]
    assert found.first_reward is None


def test_the_cap_on_frames_ends_an_episode_and_the_next_begins():
    found = walked("Pong", 100, most_episode_frames=160)
    assert found.lengths == [40, 40, 40]
    assert found.num_cut == 3


def test_unit_durations_walk_as_epsilon_greedy_does():
    game = CoarseEmulator("Pong", SHORT, rng=np.random.default_rng(2))
    plain = game_walk(game, EpsilonGreedy(game.num_actions, 0.4, seed=2), 250)
    settings = {"epsilon": 0.4, "seed": 2, "most_episode_frames": SHORT.most_episode_frames}
    assert walked("Pong", 250, law=Fixed(1), **settings) == plain
    assert walked("Pong", 250, law=Zeta(2.0, 100), **settings) != plain


def test_several_lanes_and_no_steps_are_refused():
    game = CoarseEmulator("Pong", rng=np.random.default_rng(2))
    with pytest.raises(ValueError, match="explore must have a single lane; got 2"):
        game_walk(game, EZGreedy(game.num_actions, 1.0, lanes=2), 10)
    with pytest.raises(ValueError, match="num_steps must be at least 1; got 0"):
        game_walk(game, EZGreedy(game.num_actions, 1.0), 0)
