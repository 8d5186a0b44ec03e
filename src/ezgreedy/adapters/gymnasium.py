"""εz-greedy inside a Gymnasium environment, for agents that cannot be changed.

    env = EZGreedyActions(gymnasium.make("MountainCar-v0"), epsilon=0.1, seed=0)
    observation, reward, terminated, truncated, info = env.step(greedy_action)
    replay.add(..., action=info["executed_action"])

An environment is the wrong place for exploration: the agent learns from the action that it chose,
unless it is told which one was executed. If you can change how your agent acts, use an adapter for
its library or the policy itself. If you can only change what it stores, use this.
"""

from typing import Any

import numpy as np

from ezgreedy.adapters.libraries import GYMNASIUM
from ezgreedy.adapters.saved_lanes import fresh_seed
from ezgreedy.exploration.durations import DurationLaw
from ezgreedy.exploration.ez_greedy import EZGreedy

GYMNASIUM.check(__name__)

from gymnasium import Env, Wrapper


class EZGreedyActions(Wrapper):
    """Replaces actions by those of options, and says so.

    Every `info` of a step has "executed_action", which replay must store, and "exploring". Evaluate
    in an environment without this wrapper.

    Args:
        env: an environment with discrete actions.
        epsilon: as for `EZGreedy`: a number, or a function of the steps taken. It can be assigned
            later, in a vector environment by `envs.set_attr("epsilon", ...)`.
        durations: law of the number of plays; `Zeta()` if None.
        seed: seed of the exploration; fresh if None.
        lane: number of this environment among those that share the seed.
    """

    def __init__(
        self,
        env: Env[Any, Any],
        epsilon: object,
        durations: DurationLaw | None = None,
        seed: int | None = None,
        lane: int = 0,
    ) -> None:
        super().__init__(env)
        number = fresh_seed(seed)
        self.explore = EZGreedy(env.action_space, epsilon, durations, 1, number, first_lane=lane)

    @property
    def epsilon(self) -> Any:
        """ε as given; may be assigned."""
        return self.explore.epsilon

    @epsilon.setter
    def epsilon(self, value: object) -> None:
        self.explore.epsilon = value

    def reset(self, **settings: Any) -> Any:
        """As in the environment; a running option ends."""
        self.explore.reset(np.array([True]))
        return self.env.reset(**settings)

    def step(self, action: Any) -> Any:
        """As in the environment, but for the action where an option acts."""
        executed = int(self.explore(np.array([int(action)]))[0])
        *outcome, info = self.env.step(executed)
        exploring = bool(self.explore.exploring[0])
        return *outcome, {**info, "executed_action": executed, "exploring": exploring}
