"""After how many steps is each part of an environment first visited? Any Gymnasium environment.

Trials run side by side, each in its own environment and on the lane of its number: a seed gives the
same trials, however many there are. Environments are seeded by the policy's seed and the lane, so
that two policies with the same seed start from the same first states.

This is the plain reference: tests compare the faster walks (`analysis.grid_walks`,
`analysis.finite_walks`, `kernels.pure_exploration`) with it.
"""

from collections.abc import Callable
from contextlib import ExitStack
from typing import Any, Protocol, runtime_checkable

import gymnasium
import numpy as np
from gymnasium import spaces
from gymnasium.wrappers import TimeLimit

from ezgreedy import requirements as require
from ezgreedy.analysis.bins import Bins
from ezgreedy.analysis.visits import FirstVisitTimes, VisitTally
from ezgreedy.exploration.explorer import Explorer
from ezgreedy.exploration.ez_greedy import EZGreedy
from ezgreedy.exploration.held_actions import HeldActions
from ezgreedy.exploration.noise import ActionNoise
from ezgreedy.exploration.stopping import StoppingRule
from ezgreedy.exploration.temporally_extended import TemporallyExtended
from ezgreedy.requirements import BoolArray, IntArray

Environment = gymnasium.Env[Any, Any]
Maker = Callable[[], Environment]

_NO_GREEDY_ACTION = -1


@runtime_checkable
class Policy(Protocol):
    """What walks need of a policy: one of ours, or any object that is called and reset like them.

    Attributes:
        lanes: number of environments stepped together; each is a trial.
    """

    lanes: int

    def __call__(self, greedy: Any, /) -> IntArray:
        """The actions to execute, counted from 0, [lanes], given the greedy ones, int [lanes]."""

    def reset(self, finished: BoolArray, /) -> None:
        """Tells which lanes' episodes have ended, bool [lanes]."""


def first_visits(
    environment: str | Maker,
    explore: Policy,
    num_steps: int,
    bins: Bins | None = None,
    *,
    max_episode_steps: int | None = None,
    greedy: Callable[[Any], int] | None = None,
    stops: StoppingRule | None = None,
    progress: Callable[[int], object] | None = None,
) -> FirstVisitTimes:
    """Counts first visits of a policy, which has one lane for every trial.

    If the policy has an attribute `seed`, it seeds the environments; if not, 0 does.

    Args:
        environment: an id that `gymnasium.make` knows, or a function that makes an environment.
        explore: an unused exploration policy, ours or your own; its lanes are the trials.
        num_steps: steps of each trial, over any number of episodes.
        bins: the cells to count; `Bins.of` the observation space if None.
        max_episode_steps: limit on the length of episodes; the environment's own if None.
        greedy: the greedy action of an observation; may be None if the policy plays none, as with
            ε = 1.
        stops: an unused rule that ends running options early, given observations and rewards,
            for policies of ours; none if None.
        progress: called after every step with the number of steps taken.
    """
    require.integer("num_steps", num_steps, least=1)
    check_policy(explore)
    with ExitStack() as closing:
        envs = []
        for _ in range(explore.lanes):
            envs.append(open_environment(environment, max_episode_steps))
            closing.callback(envs[-1].close)
        trials = _Trials(envs, explore, greedy, stops)
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


def open_environment(
    environment: str | Maker,
    max_episode_steps: int | None = None,
    actions: type[spaces.Space[Any]] = spaces.Discrete,
) -> Environment:
    """An environment whose actions are of this kind, with its own time limit or a given one."""
    if max_episode_steps is not None:
        require.integer("max_episode_steps", max_episode_steps, least=1)
    if isinstance(environment, str):
        env: Environment = gymnasium.make(environment, max_episode_steps=max_episode_steps)
    else:
        _check_maker(environment)
        env = environment()
        if max_episode_steps is not None:
            env = TimeLimit(env, max_episode_steps)
    if not isinstance(env.action_space, actions):
        env.close()
        kind = "discrete actions" if actions is spaces.Discrete else "a box of actions"
        if isinstance(env.action_space, spaces.Box):
            kind += " (for boxes there is ezgreedy.analysis.box_first_visits)"
        raise require.refuse("the environment", f"have {kind}", env.action_space)
    return env


def _check_maker(environment: object) -> None:
    if not callable(environment):
        rule = "be an id that gymnasium.make knows, or a function that makes an environment"
        way = "pass lambda: gymnasium.make(...)" if hasattr(environment, "step") else ""
        raise require.refuse_type("environment", rule, environment, way)


def grid_width(env: Environment, bins: Bins) -> int | None:
    """Cells in a row, if observations number the cells of a grid and the environment says so.

    Ours have `num_columns`, Gymnasium's FrozenLake `ncol` and CliffWalking `shape`.
    """
    if len(bins.counts) != 1 or not bins.is_discrete[0]:
        return None
    inner = env.unwrapped
    shape = getattr(inner, "shape", None)
    told = [getattr(inner, "num_columns", None), getattr(inner, "ncol", None)]
    if isinstance(shape, tuple) and len(shape) == 2:
        told.append(shape[1])
    widths = [width for width in told if isinstance(width, int) and width > 0]
    return widths[0] if widths and bins.num_cells % widths[0] == 0 else None


class _Trials:
    """Environments in step with the lanes of a policy."""

    def __init__(
        self,
        envs: list[Environment],
        explore: Policy,
        greedy: Callable[[Any], int] | None,
        stops: StoppingRule | None,
    ) -> None:
        actions = envs[0].action_space
        assert isinstance(actions, spaces.Discrete)
        self.num_actions = int(actions.n)
        self.first_action = int(actions.start)
        if getattr(explore, "num_actions", self.num_actions) != self.num_actions:
            received = explore.num_actions  # type: ignore[attr-defined]
            raise require.refuse("explore", f"have {actions.n} actions", received)
        self.envs, self.explore, self.greedy, self.stops = envs, explore, greedy, stops
        _check_rule(stops, explore)
        self.rewards = np.zeros(len(envs))
        self.starts = np.ones(len(envs), dtype=np.bool_)
        self.observations = first_observations(envs, explore)

    def step(self) -> IntArray:
        """Takes one step of every trial; returns those whose episode ended with it."""
        finished = np.zeros(len(self.envs), dtype=np.bool_)
        for lane, action in enumerate(self._actions().tolist()):
            observation, reward, terminated, truncated, _ = self.envs[lane].step(
                action + self.first_action
            )
            self.observations[lane], self.rewards[lane] = observation, reward
            finished[lane] = terminated or truncated
        if finished.any():
            self.explore.reset(finished)
        self.starts = finished
        return np.flatnonzero(finished)

    def restart(self, lanes: IntArray) -> None:
        """Starts new episodes; an environment continues its own random stream."""
        for lane in lanes.tolist():
            self.observations[lane] = self.envs[lane].reset()[0]

    def _actions(self) -> IntArray:
        if isinstance(self.explore, TemporallyExtended):
            return self.explore(
                self._greedy_actions, observations=self.observations, ends=self._ends()
            )
        if isinstance(self.explore, EZGreedy):
            return self.explore(self._greedy_actions, ends=self._ends())
        greedy = np.full(len(self.envs), _NO_GREEDY_ACTION)
        if self.greedy is not None:
            greedy = self._greedy_actions(np.arange(len(self.envs)))
        played = np.asarray(self.explore(greedy))
        if self.greedy is None and (played == _NO_GREEDY_ACTION).any():
            raise require.refuse("greedy", "be given: the policy plays greedy actions", None)
        return require.actions("explore(greedy)", played, len(self.envs), self.num_actions)

    def _ends(self) -> BoolArray | None:
        """Where the rule says that options end; None without a rule."""
        if self.stops is None:
            return None
        try:
            return self.stops(
                observations=self.observations, rewards=self.rewards, starts=self.starts
            )
        except (TypeError, AttributeError) as error:
            if "NoneType" not in str(error):
                raise
            # Most likely the rule has computed with seen.values.
            told = f"{type(self.stops).__name__} failed: {error}"
            raise TypeError(f"{told} (seen.values is None here: nothing is learned)") from error

    def _greedy_actions(self, lanes: IntArray) -> IntArray:
        """The greedy actions of lanes that may act greedily; with ε = 1 there are none."""
        if self.greedy is None:
            raise require.refuse("greedy", "be given when epsilon is below 1", None)
        answers = [self.greedy(self.observations[lane]) for lane in lanes.tolist()]
        return np.array(answers, dtype=np.int64) - self.first_action


def check_policy(explore: object, name: str = "explore") -> None:
    """Refuses what is not a `Policy`.

    Args:
        explore: what may be a policy.
        name: how the error names it.
    """
    if not isinstance(explore, Policy):
        rule = "have lanes, a call and a reset, as EZGreedy has"
        raise require.refuse_type(name, rule, explore)
    require.integer(f"{name}.lanes", explore.lanes, least=1)


def _check_rule(stops: object, explore: Policy) -> None:
    if stops is None:
        return
    if not isinstance(stops, StoppingRule):
        raise require.refuse_type("stops", "be a stopping rule, such as StopOnUnchanged", stops)
    if not isinstance(explore, Explorer):
        raise require.refuse_type(
            "explore", "be a policy of ours for stops to end options", explore
        )
    if stops.lanes != explore.lanes:
        raise require.refuse(
            "stops.lanes", f"equal those of the policy, {explore.lanes}", stops.lanes
        )


def first_observations(envs: list[Environment], explore: Any) -> list[Any]:
    """Starts the first episodes, seeded by an unused policy's seed and its lanes."""
    seed, first_lane = _seed_and_first_lane(explore)
    return [
        env.reset(seed=_environment_seed(seed, first_lane + lane))[0]
        for lane, env in enumerate(envs)
    ]


def _seed_and_first_lane(explore: Any) -> tuple[int, int]:
    """What seeds the environments; refuses a policy of ours that has been used."""
    if not isinstance(explore, (Explorer, ActionNoise, HeldActions)):
        return require.integer("explore.seed", getattr(explore, "seed", 0), least=0, most=None), 0
    if explore.steps.any():
        raise require.refuse("explore", "be fresh", f"{explore.steps.max()} steps taken")
    return explore.streams.seed, explore.streams.first_lane


def _environment_seed(seed: int, lane: int) -> int:
    return int(np.random.SeedSequence(seed, spawn_key=(lane,)).generate_state(1)[0])
