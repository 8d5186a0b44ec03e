"""After how many steps is each part of an environment first visited? Any Gymnasium environment.

Trials run side by side, each in its own environment and on the lane of its number: a seed gives the
same trials, however many there are. Environments are seeded by the policy's seed and the lane, so
that two policies with the same seed start from the same first states.

This is the plain reference: tests compare the faster walks (`analysis.grid_walks`,
`analysis.finite_walks`, `kernels.pure_exploration`) with it.
"""

from collections.abc import Callable
from contextlib import ExitStack
from typing import Any

import gymnasium
import numpy as np
from gymnasium import spaces
from gymnasium.wrappers import TimeLimit

from ezgreedy import requirements as require
from ezgreedy.analysis.bins import Bins
from ezgreedy.analysis.visits import PAPER_SETTINGS, FirstVisitTimes, PaperSetting, VisitTally
from ezgreedy.exploration.ez_greedy import EZGreedy
from ezgreedy.exploration.temporally_extended import TemporallyExtended
from ezgreedy.requirements import IntArray

__all__ = ["PAPER_SETTINGS", "Bins", "FirstVisitTimes", "PaperSetting", "first_visits"]

Environment = gymnasium.Env[Any, Any]
Maker = Callable[[], Environment]
Policy = EZGreedy | TemporallyExtended


def first_visits(
    environment: str | Maker,
    explore: Policy,
    num_steps: int,
    bins: Bins | None = None,
    *,
    max_episode_steps: int | None = None,
    greedy: Callable[[Any], int] | None = None,
    progress: Callable[[int], object] | None = None,
) -> FirstVisitTimes:
    """Counts first visits of a policy, which has one lane for every trial.

    Args:
        environment: an id that `gymnasium.make` knows, or a function that makes an environment.
        explore: an unused exploration policy; its lanes are the trials.
        num_steps: steps of each trial, over any number of episodes.
        bins: the cells to count; `Bins.of` the observation space if None.
        max_episode_steps: limit on the length of episodes; the environment's own if None.
        greedy: the greedy action of an observation; may be None if ε = 1.
        progress: called after every step with the number of steps taken.
    """
    require.integer("num_steps", num_steps, least=1)
    with ExitStack() as closing:
        envs = []
        for _ in range(explore.lanes):
            envs.append(open_environment(environment, max_episode_steps))
            closing.callback(envs[-1].close)
        trials = _Trials(envs, explore, greedy)
        bins = Bins.of(envs[0].observation_space) if bins is None else bins
        tally = VisitTally(explore.lanes, bins.counts)
        lanes = np.arange(explore.lanes)
        tally.add(0, lanes, bins.cells(trials.observations))
        for step in range(1, num_steps + 1):
            finished = trials.step()
            tally.add(step, lanes, bins.cells(trials.observations))
            if finished.size:
                trials.restart(finished)
                begun = [trials.observations[lane] for lane in finished]
                tally.add(step, finished, bins.cells(begun))
            if progress is not None:
                progress(step)
    return tally.result(num_steps)


def open_environment(environment: str | Maker, max_episode_steps: int | None = None) -> Environment:
    """An environment with discrete actions, with its own time limit or a given one."""
    if max_episode_steps is not None:
        require.integer("max_episode_steps", max_episode_steps, least=1)
    if isinstance(environment, str):
        env: Environment = gymnasium.make(environment, max_episode_steps=max_episode_steps)
    else:
        env = environment()
        if max_episode_steps is not None:
            env = TimeLimit(env, max_episode_steps)
    if not isinstance(env.action_space, spaces.Discrete):
        env.close()
        raise require.refuse("the environment", "have discrete actions", env.action_space)
    return env


class _Trials:
    """Environments in step with the lanes of a policy."""

    def __init__(
        self, envs: list[Environment], explore: Policy, greedy: Callable[[Any], int] | None
    ) -> None:
        actions = envs[0].action_space
        assert isinstance(actions, spaces.Discrete)
        if explore.num_actions != actions.n:
            raise require.refuse("explore", f"have {actions.n} actions", explore.num_actions)
        if explore.steps.any():
            raise require.refuse("explore", "be fresh", f"{explore.steps.max()} steps taken")
        self.envs, self.explore, self.greedy = envs, explore, greedy
        self.first_action = int(actions.start)
        first_lane = explore.streams.first_lane
        self.observations: list[Any] = [
            env.reset(seed=_environment_seed(explore.streams.seed, first_lane + lane))[0]
            for lane, env in enumerate(envs)
        ]

    def step(self) -> IntArray:
        """Takes one step of every trial; returns those whose episode ended with it."""
        finished = np.zeros(len(self.envs), dtype=np.bool_)
        for lane, action in enumerate(self._actions().tolist()):
            observation, _, terminated, truncated, _ = self.envs[lane].step(
                action + self.first_action
            )
            self.observations[lane] = observation
            finished[lane] = terminated or truncated
        lanes = np.flatnonzero(finished)
        if lanes.size:
            self.explore.reset(finished)
        return lanes

    def restart(self, lanes: IntArray) -> None:
        """Starts new episodes; an environment continues its own random stream."""
        for lane in lanes.tolist():
            self.observations[lane] = self.envs[lane].reset()[0]

    def _actions(self) -> IntArray:
        if isinstance(self.explore, TemporallyExtended):
            return self.explore(self._greedy_actions, observations=self.observations)
        return self.explore(self._greedy_actions)

    def _greedy_actions(self, lanes: IntArray) -> IntArray:
        """The greedy actions of lanes that may act greedily; with ε = 1 there are none."""
        if self.greedy is None:
            raise require.refuse("greedy", "be given when epsilon is below 1", None)
        answers = [self.greedy(self.observations[lane]) for lane in lanes.tolist()]
        return np.array(answers, dtype=np.int64) - self.first_action


def _environment_seed(seed: int, lane: int) -> int:
    return int(np.random.SeedSequence(seed, spawn_key=(lane,)).generate_state(1)[0])
