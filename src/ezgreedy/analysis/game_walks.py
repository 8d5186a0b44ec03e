"""What does exploration alone find in an Atari game? Rewards and places, and lives lost.

Nothing is learned: on steps that do not explore, the greedy action is the no-op. A walk starts
episodes until it has played its number of steps, and finishes the last one, so every episode is
whole except those cut by the protocol's cap on frames, which are counted. Places are counted only
within that number of steps, so that walks are comparable. Needs ale-py and numba (the `deep`
extra).
"""

from dataclasses import dataclass

import numpy as np

from ezgreedy import requirements as require
from ezgreedy.exploration.ez_greedy import EZGreedy
from ezgreedy.games.atari.screen_cells import CoarseEmulator
from ezgreedy.games.environment import NOOP
from ezgreedy.games.protocol import Frames, Step


@dataclass(frozen=True)
class GameWalk:
    """The findings of a walk; steps are agent steps of four frames each.

    Args:
        returns: raw return of each episode.
        lengths: steps of each episode.
        lives_lost: lives lost in each episode.
        first_reward: number of the step, from 1, with the first positive reward; None if none of
            the counted steps had one.
        num_memories: distinct contents of the console's RAM before counted steps.
        num_cells: distinct screen cells before counted steps.
        num_cut: episodes ended by the cap on frames.
    """

    returns: list[float]
    lengths: list[int]
    lives_lost: list[int]
    first_reward: int | None
    num_memories: int
    num_cells: int
    num_cut: int


def game_walk(game: CoarseEmulator, explore: EZGreedy, num_steps: int) -> GameWalk:
    """Walks through whole episodes, the last of which starts within the first `num_steps` steps.

    Args:
        game: the game, which is reset first.
        explore: policy with a single lane and the game's number of actions.
        num_steps: number of counted steps.
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
    """The records of a walk in progress."""

    def __init__(self, num_steps: int) -> None:
        self.num_steps = num_steps
        self.steps = 0
        self.returns: list[float] = []
        self.lengths: list[int] = []
        self.lives_lost: list[int] = []
        self.first_reward: int | None = None
        self.num_cut = 0
        # The places themselves rather than hashes: a hundred thousand take a few dozen MB.
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
            self.memories.add(game.ram())
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
