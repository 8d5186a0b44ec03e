"""R2D2 in one process: an actor, a replay and a learner that take turns.

Only the preset decides which of the paper's four agents this is. The ratio of samples to insertions
holds by construction: whenever windows arrive, as many batches are drawn as their number allows,
and nothing ever waits. Needs torch, numba and zstandard.
"""

from collections.abc import Mapping
from typing import Any

from ezgreedy.agents.agent import GameSpec
from ezgreedy.agents.means import ExploredSince, Mean
from ezgreedy.agents.r2d2.actor import SequenceActor, Whereabouts
from ezgreedy.agents.r2d2.learner import SequenceLearner
from ezgreedy.agents.r2d2.policy import R2D2Policy
from ezgreedy.agents.r2d2.roles import (
    MEASURED_UPDATES,
    R2D2Learner,
    evaluation_policy,
    sequence_replay,
)
from ezgreedy.agents.r2d2.settings import R2D2Settings
from ezgreedy.games.lanes import LaneSteps
from ezgreedy.games.protocol import Frames
from ezgreedy.replay.limiter import SamplesPerInsert
from ezgreedy.requirements import BoolArray, IntArray


class R2D2:
    """One of the paper's R2D2 agents, all its roles in one process.

    Args:
        preset: settings of the agent.
        spec: the game that it plays.
        lanes: number of environments, the whole fleet; 320 in the paper.
        seed: random seed, any non-negative int.
        device: device of the networks.
    """

    def __init__(
        self,
        preset: R2D2Settings,
        spec: GameSpec,
        *,
        lanes: int,
        seed: int,
        device: str = "cpu",
    ) -> None:
        self.preset = preset
        self.spec = spec
        self.lanes = lanes
        self._device = device
        # The learner, with the bonuses that batches pass through.
        self.learning = R2D2Learner(preset, spec, seed=seed, device=device)
        self.actor = SequenceActor(
            preset,
            spec,
            self.learner.values,
            Whereabouts(lanes),
            self.learning.first_bonus,
            seed=seed,
            device=device,
        )
        self.replay = sequence_replay(preset, spec, seed=seed)
        self.limiter = SamplesPerInsert(
            preset.samples_per_insert, preset.least_windows, most_sampled=preset.learner.batch_size
        )
        self._means = {name: Mean() for name in (*MEASURED_UPDATES, "bonus")}
        self._explored = ExploredSince(self.actor.explorer)

    @property
    def learner(self) -> SequenceLearner:
        """The networks and what trains them."""
        return self.learning.learner

    @property
    def num_updates(self) -> int:
        """Number of updates so far."""
        return self.learner.num_updates

    def act(self, observations: Frames, starts: BoolArray) -> IntArray:
        """The actions to execute, [lanes]."""
        return self.actor.act(observations, starts)

    def observe(self, steps: LaneSteps) -> None:
        """Store complete windows and make as many updates as their number allows."""
        self.actor.observe(steps)
        for window in self.actor.take_windows():
            if self.replay.add(window) is not None:
                self.limiter.inserted()
        while self.limiter.error >= self.preset.learner.batch_size:
            self._learn()

    def evaluation_policy(self, lanes: int, seed: int, epsilon: float | None = None) -> R2D2Policy:
        """The current agent with the ε of evaluation; nothing it does changes the agent."""
        return evaluation_policy(self.preset, self.learner, lanes, seed, epsilon, self._device)

    def measurements(self) -> dict[str, float]:
        """Means over the updates, and the share of exploration, since the last call."""
        measured = self._explored.measurements()
        measured |= {name: mean.take() for name, mean in self._means.items() if mean.count}
        measured |= self.learning.measurements()
        measured["windows"] = float(self.replay.num_windows)
        measured["windows_held"] = float(len(self.replay))
        measured["windows_lost"] = float(self.replay.num_lost)
        measured["effective_replay_capacity"] = float(self.replay.effective_capacity)
        measured["updates"] = float(self.learner.num_updates)
        return measured

    def state_dict(self) -> dict[str, Any]:
        """Everything the future depends on; call between `observe` and `act`."""
        learning = self.learning.state_dict()
        return {
            "actor": self.actor.state_dict(),
            "learner": learning["learner"],
            "memory": self.replay.state_dict(),
            "limiter": self.limiter.state_dict(),
            "bonuses": learning["bonuses"],
            "means": {name: mean.state() for name, mean in self._means.items()},
            "counted": self._explored.state(),
        }

    def load_policy(self, state: Mapping[str, Any]) -> None:
        """Load only the part of a state that evaluation depends on."""
        self.learning.load_network(state)

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Continue from the state of an agent with the same settings."""
        self.actor.load_state_dict(state["actor"])
        self.learning.load_state_dict(state)
        self.replay.load_state_dict(state["memory"])
        self.limiter.load_state_dict(state["limiter"])
        for name, mean in self._means.items():
            if name in state["means"]:  # earlier versions had no q_values
                mean.restore(state["means"][name])
        self._explored.restore(state["counted"])

    def _learn(self) -> None:
        batch_size = self.preset.learner.batch_size
        batch = self.replay.sample(batch_size)
        self.limiter.sampled(batch_size)
        learned = self.learning.update(batch)
        self.replay.update_priorities(learned.slots, learned.generations, learned.priorities)
        for name, value in learned.measured.items():
            self._means[name].add(value)
