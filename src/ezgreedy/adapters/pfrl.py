"""εz-greedy in PFRL: `explore_with_options` gives an agent's explorer options.

    agent = pfrl.agents.DoubleDQN(..., explorer=LinearDecayEpsilonGreedy(1.0, 0.05, 10_000, sample))
    explore_with_options(agent, num_actions=env.action_space, seed=0)

ε is that of the agent's own explorer. A PFRL explorer is told neither which environment it acts for
nor when episodes end, so this one looks at its agent.
"""

import os
import warnings
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from ezgreedy import requirements as require
from ezgreedy.adapters.libraries import PFRL
from ezgreedy.adapters.saved_lanes import fresh_seed
from ezgreedy.exploration.durations import DurationLaw, Zeta, checked_law
from ezgreedy.exploration.ez_greedy import EZGreedy

PFRL.check(__name__)

from pfrl.agent import AttributeSavingMixin
from pfrl.agents import DQN
from pfrl.explorer import Explorer


def explore_with_options(
    agent: Any,
    num_actions: object,
    durations: DurationLaw | None = None,
    seed: int | None = None,
) -> "EZGreedyExplorer":
    """Replaces the ε-greedy explorer of an agent, and returns the new one.

    Args:
        agent: a DQN agent or one of its relatives, with an ε-greedy explorer.
        num_actions: number of actions, or the environment's discrete space.
        durations: law of the number of plays; `Zeta()` if None.
        seed: seed of the exploration; fresh if None.
    """
    if not isinstance(agent, DQN):
        raise require.refuse_type("agent", "be a DQN agent or one of its relatives", agent)
    agent.explorer = EZGreedyExplorer(agent, num_actions, durations, seed)
    agent.saved_attributes = (*agent.saved_attributes, "explorer")
    return agent.explorer


class EZGreedyExplorer(AttributeSavingMixin, Explorer):
    """An explorer with one option per environment; see `explore_with_options`."""

    saved_attributes = ("exploration",)

    def __init__(
        self,
        agent: Any,
        num_actions: object,
        durations: DurationLaw | None,
        seed: int | None,
    ) -> None:
        if not hasattr(agent.explorer, "epsilon"):
            raise require.refuse_type("agent.explorer", "be ε-greedy", agent.explorer)
        self._agent, self._schedule = agent, agent.explorer
        law = checked_law("durations", Zeta() if durations is None else durations)
        self.exploration = _Exploration(require.num_actions(num_actions), law, fresh_seed(seed))
        self._time: int | None = None
        self._lane = 0
        self._num_environments: int | None = None

    @property
    def policies(self) -> list[EZGreedy]:
        """The policy of each environment that has been acted in."""
        return self.exploration.lanes

    @property
    def epsilon(self) -> float:
        """ε of the last step."""
        return float(self._schedule.epsilon)

    def select_action(
        self, t: int, greedy_action_func: Callable[[], Any], action_value: Any = None
    ) -> int:
        """The action of the next environment of the batch."""
        # The agent asks for its environments in turn, and its clock moves on only after all.
        if t != self._time:
            self._count_environments()
        self._lane = 0 if t != self._time else self._lane + 1
        self._time = t
        if hasattr(self._schedule, "compute_epsilon"):
            self._schedule.epsilon = self._schedule.compute_epsilon(t)
        explore = self.exploration.lane(self._lane)
        if explore.epsilon != self.epsilon:
            explore.epsilon = self.epsilon
        greedy = np.array([int(greedy_action_func())])
        return int(explore(greedy, starts=np.array([self._starts()]))[0])

    def _count_environments(self) -> None:
        """Warns if the step that is now complete had another number of environments."""
        if self._time is None:
            return
        before, now = self._num_environments, self._lane + 1
        if before not in (None, now):
            warnings.warn(
                f"{before} environments before, {now} now: environments that both have continue "
                "their exploration, others begin theirs",
                stacklevel=3,
            )
        self._num_environments = now

    def _starts(self) -> bool:
        """Whether an episode begins: the agent forgets the last observation of one that ended."""
        last = getattr(self._agent, "batch_last_obs", ())  # it has none before its first action
        return len(last) <= self._lane or last[self._lane] is None

    def load(self, dirname: str) -> None:
        """As agents load; a checkpoint from before there were options is fine."""
        if os.path.isdir(dirname):
            super().load(dirname)
            self._num_environments = len(self.policies) or None
        else:
            warnings.warn(
                "this agent was saved without εz-greedy: its options begin now", stacklevel=4
            )


class _Exploration:
    """One policy per environment, made when it is first acted in."""

    def __init__(self, num_actions: int, durations: DurationLaw, seed: int) -> None:
        self._num_actions, self._durations, self._seed = num_actions, durations, seed
        self.lanes: list[EZGreedy] = []

    def lane(self, number: int) -> EZGreedy:
        while len(self.lanes) <= number:
            self.lanes.append(self._made(self._seed, len(self.lanes)))
        return self.lanes[number]

    def _made(self, seed: int, number: int) -> EZGreedy:
        return EZGreedy(self._num_actions, 0.0, self._durations, 1, seed, first_lane=number)

    def state_dict(self) -> dict[str, Any]:
        return {"seed": self._seed, "lanes": [lane.state_dict() for lane in self.lanes]}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        lanes = [self._made(state["seed"], number) for number in range(len(state["lanes"]))]
        for lane, saved in zip(lanes, state["lanes"], strict=True):
            lane.load_state_dict(saved)
        self.lanes, self._seed = lanes, state["seed"]
