"""How soon does noise take an agent everywhere, and to a reward? Boxes of continuous actions.

Trials run side by side as in `analysis.environment_walks`, with the same first states for the same
seed. Actions that leave the box are clipped to it, as agents do; how much power is left of them is
counted, so that equal power can be checked.
"""

from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from gymnasium import spaces

from ezgreedy import requirements as require
from ezgreedy.analysis.bins import Bins
from ezgreedy.analysis.environment_walks import (
    Environment,
    Maker,
    check_policy,
    first_observations,
    open_environment,
)
from ezgreedy.analysis.visits import FirstVisitTimes, VisitTally
from ezgreedy.exploration.noise import ActionNoise
from ezgreedy.requirements import BoolArray, FloatArray, IntArray


class BoxPolicy(Protocol):
    """What walks need of a policy that is not a noise: it is called and reset like `HeldActions`.

    Attributes:
        lanes: number of environments stepped together; each is a trial.
    """

    lanes: int

    def __call__(self, greedy: FloatArray, /) -> FloatArray:
        """The actions to execute, [lanes, size], given the greedy ones."""

    def reset(self, finished: BoolArray, /) -> None:
        """Tells which lanes' episodes have ended, bool [lanes]."""


@dataclass(frozen=True, eq=False)
class BoxWalks:
    """What the trials saw.

    Args:
        visits: first visits and visit counts of all cells.
        first_rewards: the step of the first reward above 0, the number of steps if there was none,
            [trials].
        powers: mean square of the executed actions over all steps and dimensions, measured from
            the middle of the box in halves of its width, [trials].
    """

    visits: FirstVisitTimes
    first_rewards: IntArray
    powers: FloatArray


def box_first_visits(
    environment: str | Maker,
    explore: ActionNoise | BoxPolicy,
    num_steps: int,
    bins: Bins | None = None,
    *,
    max_episode_steps: int | None = None,
    greedy: Callable[[Any], Any] | None = None,
) -> BoxWalks:
    """Counts first visits of noise or held actions, which have one lane for every trial.

    Args:
        environment: an id that `gymnasium.make` knows, or a function that makes an environment.
        explore: an unused noise, which is added to the greedy actions, or policy, whose actions
            take their place; its lanes are the trials.
        num_steps: steps of each trial, over any number of episodes.
        bins: the cells to count; `Bins.of` the observation space if None.
        max_episode_steps: limit on the length of episodes; the environment's own if None.
        greedy: the greedy action of an observation; the middle of the box if None.
    """
    require.integer("num_steps", num_steps, least=1)
    check_policy(explore)
    with ExitStack() as closing:
        envs = []
        for _ in range(explore.lanes):
            envs.append(open_environment(environment, max_episode_steps, spaces.Box))
            closing.callback(envs[-1].close)
        trials = _Trials(envs, explore, greedy)
        bins = Bins.of(envs[0].observation_space) if bins is None else bins
        tally = VisitTally(explore.lanes, bins.counts)
        lanes = np.arange(explore.lanes)
        tally.add(0, lanes, bins.cells(trials.observations))
        for step in range(1, num_steps + 1):
            finished = trials.step(step)
            tally.add(step, lanes, bins.cells(trials.observations))
            if finished.size:
                trials.restart(finished)
                begun = [trials.observations[lane] for lane in finished]
                tally.add(step, finished, bins.cells(begun))
    first_rewards = np.minimum(trials.first_rewards, num_steps)
    return BoxWalks(tally.result(num_steps), first_rewards, trials.squares / num_steps)


class _Trials:
    """Environments in step with the lanes of a noise or a policy."""

    def __init__(
        self,
        envs: list[Environment],
        explore: ActionNoise | BoxPolicy,
        greedy: Callable[[Any], Any] | None,
    ) -> None:
        space = envs[0].action_space
        self.low, self.high = _bounds(space)
        self.middle, self.half = (self.low + self.high) / 2.0, (self.high - self.low) / 2.0
        self.shape = len(envs), len(self.low)
        self.dtype = space.dtype
        if isinstance(explore, ActionNoise) and explore.size != self.shape[1]:
            rule = f"equal {self.shape[1]}, as in {space}"
            raise require.refuse("explore.size", rule, explore.size)
        self.envs, self.explore, self.greedy = envs, explore, greedy
        self.first_rewards: IntArray = np.full(len(envs), np.iinfo(np.int64).max)
        self.squares: FloatArray = np.zeros(len(envs))
        self.observations: list[Any] = first_observations(envs, explore)

    def step(self, number: int) -> IntArray:
        """Takes one step of every trial; returns those whose episode ended with it."""
        actions = np.clip(self._actions(), self.low, self.high)
        self.squares += (((actions - self.middle) / self.half) ** 2).mean(axis=1)
        finished = np.zeros(len(self.envs), dtype=np.bool_)
        for lane, env in enumerate(self.envs):
            observation, reward, terminated, truncated, _ = env.step(
                actions[lane].astype(self.dtype)
            )
            self.observations[lane] = observation
            finished[lane] = terminated or truncated
            if float(reward) > 0.0:
                self.first_rewards[lane] = min(self.first_rewards[lane], number)
        if finished.any():
            self.explore.reset(finished)
        return np.flatnonzero(finished)

    def restart(self, lanes: IntArray) -> None:
        """Starts new episodes; an environment continues its own random stream."""
        for lane in lanes.tolist():
            self.observations[lane] = self.envs[lane].reset()[0]

    def _actions(self) -> FloatArray:
        chosen = np.broadcast_to(self.middle, self.shape)
        if self.greedy is not None:
            answers = [self.greedy(observation) for observation in self.observations]
            chosen = _rows("greedy(observation)", answers, self.shape)
        if isinstance(self.explore, ActionNoise):
            return chosen + self.explore()
        return _rows("explore(greedy)", self.explore(chosen), self.shape)


def _bounds(space: Any) -> tuple[FloatArray, FloatArray]:
    """The ends of a bounded row of numbers."""
    low, high = (np.asarray(end, dtype=np.float64) for end in (space.low, space.high))
    ends = np.concatenate([low.ravel(), high.ravel()])
    if low.ndim != 1 or not np.isfinite(ends).all() or not (low < high).all():
        raise require.refuse("the environment's actions", "be a bounded row of numbers", space)
    return low, high


def _rows(name: str, values: Any, shape: tuple[int, int]) -> FloatArray:
    array = np.asarray(values, dtype=np.float64)
    if array.shape != shape:
        raise require.refuse(name, f"have shape {shape}", array.shape)
    if not np.isfinite(array).all():
        raise require.refuse(name, "be finite", array.tolist())
    return array
