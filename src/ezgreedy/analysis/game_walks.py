"""What does exploration alone find in an Atari game? Rewards, places, and lives on the way.

Nobody learns: where the coin does not say explore, the greedy action is the no-op. A walk begins
episodes until it has played its number of steps, and finishes the last one, so that every episode
is whole but for those that the protocol's cap on frames cuts, which are counted; places are counted
within that number of steps alone, so that walks compare. Needs ale-py and numba (the `deep` extra).
"""

from dataclasses import dataclass

import numpy as np

from ezgreedy import requirements as require
from ezgreedy.atari.coarse import CoarseEmulator
from ezgreedy.atari.environment import NOOP
from ezgreedy.atari.protocol import Frames, Step
from ezgreedy.exploration.ez_greedy import EZGreedy


@dataclass(frozen=True)
class GameWalk:
    """What was found; steps are the agent's, of four frames each.

    Args:
        returns: raw, of each episode.
        lengths: steps of each episode.
        lives_lost: in each episode.
        first_reward: number of the step, from 1, that gave the first positive reward; None if none
            of the counted steps did.
        num_memories: different contents of the console's memory, and
        num_cells: different screen cells, among those that the counted steps began from.
        num_cut: episodes that the cap on frames ended.
    """

    returns: list[float]
    lengths: list[int]
    lives_lost: list[int]
    first_reward: int | None
    num_memories: int
    num_cells: int
    num_cut: int


def game_walk(game: CoarseEmulator, explore: EZGreedy, num_steps: int) -> GameWalk:
    """Walks through whole episodes, the last of which begins within the first `num_steps` steps.

    Args:
        game: what is played, from its next reset on.
        explore: of a single lane, with the game's number of actions.
        num_steps: how many steps are counted.
    """
    require.integer("num_steps", num_steps, least=1)
    if explore.lanes != 1:
        raise require.refuse("explore", "have a single lane", explore.lanes)
    notes = _Notes(num_steps)
    noop, ended = np.full(1, NOOP, dtype=np.int64), np.ones(1, dtype=np.bool_)
    while notes.steps < num_steps:
        place, is_running = game.reset(), True
        notes.begin(game.lives)
        while is_running:
            notes.see(game, place)
            step = game.step(int(explore(noop)[0]))
            notes.add(step)
            place, is_running = step.observation, not (step.terminated or step.truncated)
        explore.reset(ended)
    return GameWalk(
        returns=notes.returns,
        lengths=notes.lengths,
        lives_lost=notes.lives_lost,
        first_reward=notes.first_reward,
        num_memories=len(notes.memories),
        num_cells=len(notes.cells),
        num_cut=notes.num_cut,
    )


class _Notes:
    """What a walk writes down on its way."""

    def __init__(self, num_steps: int) -> None:
        self.num_steps = num_steps
        self.steps = 0
        self.returns: list[float] = []
        self.lengths: list[int] = []
        self.lives_lost: list[int] = []
        self.first_reward: int | None = None
        self.num_cut = 0
        # The places themselves rather than hashes of them: a hundred thousand are a few dozen MB.
        self.memories: set[bytes] = set()
        self.cells: set[bytes] = set()
        self._lives = 0

    def begin(self, lives: int) -> None:
        self.returns.append(0.0)
        self.lengths.append(0)
        self.lives_lost.append(0)
        self._lives = lives

    def see(self, game: CoarseEmulator, place: Frames) -> None:
        if self.steps < self.num_steps:
            self.memories.add(game.memory())
            self.cells.add(place.tobytes())

    def add(self, step: Step) -> None:
        self.steps += 1
        self.returns[-1] += step.reward
        self.lengths[-1] += 1
        self.num_cut += step.truncated
        self.lives_lost[-1] += max(self._lives - step.lives, 0)
        self._lives = step.lives
        is_first = self.first_reward is None and step.reward > 0.0
        if is_first and self.steps <= self.num_steps:
            self.first_reward = self.steps
