"""R2D2 at work in one process: an actor, a memory and a learner that take turns.

Which of the paper's four agents this is depends on the preset alone. How often what is remembered
is learned from holds by construction: whenever windows come, as many batches are drawn as their
number allows, and nobody ever waits. Needs torch, numba and zstandard.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np

from ezgreedy.agents.agent import Surface
from ezgreedy.agents.means import Mean
from ezgreedy.agents.recurrence import Recurrence
from ezgreedy.agents.sequence_actor import (
    SequenceActor,
    Whereabouts,
    codec,
    network_settings,
    sight,
)
from ezgreedy.agents.sequence_presets import SequencePreset
from ezgreedy.atari.lanes import LaneSteps
from ezgreedy.atari.protocol import Frames
from ezgreedy.exploration.ez_greedy import EpsilonGreedy
from ezgreedy.intrinsic.rnd import RandomNetworkDistillation
from ezgreedy.learning.sequence_learner import SequenceLearner
from ezgreedy.learning.tensor_states import as_arrays, as_tensors
from ezgreedy.replay.limiter import SamplesPerInsert
from ezgreedy.replay.sequence_memory import SequenceMemory
from ezgreedy.requirements import BoolArray, IntArray
from ezgreedy.seeding import role_seed


class R2D2:
    """One of the paper's R2D2 agents, all its roles in one process.

    Args:
        preset: which.
        surface: the game that it plays.
        lanes: how many environments it acts in: the whole fleet. The paper has 320.
        seed: any non-negative int.
        device: where networks compute.
    """

    def __init__(
        self,
        preset: SequencePreset,
        surface: Surface,
        *,
        lanes: int,
        seed: int,
        device: str = "cpu",
    ) -> None:
        self.preset = preset
        self.surface = surface
        self.lanes = lanes
        self._device = device
        network = network_settings(preset, surface)
        self.learner = SequenceLearner(
            network, preset.learner, preset.returns, seed=role_seed(seed, "learner"), device=device
        )
        self.actor = SequenceActor(
            preset, surface, self.learner.values, Whereabouts(lanes), seed=seed, device=device
        )
        self.memory = SequenceMemory(
            preset.replay_capacity,
            codec(preset, surface),
            preset.sequences,
            network.state_shape,
            preset.priority_exponent,
            preset.importance_exponent,
            rng=np.random.default_rng(role_seed(seed, "replay")),
        )
        self.limiter = SamplesPerInsert(
            preset.samples_per_insert, preset.least_windows, most_sampled=preset.learner.batch_size
        )
        # What batches pass through on their way from the memory to the learner.
        self.bonuses = bonuses(preset, surface, seed, device)
        self._means = {name: Mean() for name in ("loss", "gradient_norm", "bonus")}
        self._counted = (0, 0)

    @property
    def num_updates(self) -> int:
        """How often it has learned so far."""
        return self.learner.num_updates

    def act(self, observations: Frames, starts: BoolArray) -> IntArray:
        """The actions to execute, [lanes]."""
        return self.actor.act(observations, starts)

    def observe(self, steps: LaneSteps) -> None:
        """Remember the windows that are complete, and learn as often as their number allows."""
        for window in self.actor.observe(steps):
            if self.memory.add(window) is not None:
                self.limiter.inserted()
        while self.limiter.error >= self.preset.learner.batch_size:
            self._learn()

    def evaluation_policy(
        self, lanes: int, seed: int, epsilon: float | None = None
    ) -> "R2D2Policy":
        """The agent as it is now with the ε of evaluation; nothing it does changes the agent."""
        if epsilon is None:
            epsilon = self.preset.evaluation_epsilon
        return R2D2Policy(self.learner, lanes, seed, epsilon, self._device)

    def measurements(self) -> dict[str, float]:
        """Means over the updates since the last call, and how much was explored since then."""
        counters = self.actor.explorer.counters
        steps, explored = counters.steps, counters.explored
        before_steps, before_explored = self._counted
        self._counted = (steps, explored)
        measured = {"explored_share": (explored - before_explored) / max(steps - before_steps, 1)}
        measured |= {name: mean.take() for name, mean in self._means.items() if mean.count}
        for bonus in self.bonuses:
            measured |= bonus.measurements()
        measured["windows"] = float(self.memory.num_windows)
        measured["updates"] = float(self.learner.num_updates)
        return measured

    def state_dict(self) -> dict[str, Any]:
        """Everything that the future depends on; taken between `observe` and `act`."""
        return {
            "actor": self.actor.state_dict(),
            "learner": as_arrays(self.learner.state_dict()),
            "memory": self.memory.state_dict(),
            "limiter": self.limiter.state_dict(),
            "bonuses": [as_arrays(bonus.state_dict()) for bonus in self.bonuses],
            "means": {name: mean.state() for name, mean in self._means.items()},
            "counted": list(self._counted),
        }

    def load_policy(self, state: Mapping[str, Any]) -> None:
        """Take from such a state what evaluation depends on, and leave the rest."""
        self.learner.load_state_dict(as_tensors(state["learner"]))

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Continue from a state of an agent with the same settings."""
        self.actor.load_state_dict(state["actor"])
        self.load_policy(state)
        self.memory.load_state_dict(state["memory"])
        self.limiter.load_state_dict(state["limiter"])
        for bonus, saved in zip(self.bonuses, state["bonuses"], strict=True):
            bonus.load_state_dict(as_tensors(saved))
        for name, mean in self._means.items():
            mean.restore(state["means"][name])
        self._counted = (int(state["counted"][0]), int(state["counted"][1]))

    def _learn(self) -> None:
        batch_size = self.preset.learner.batch_size
        batch = self.memory.sample(batch_size)
        self.limiter.sampled(batch_size)
        for bonus in self.bonuses:
            batch = bonus(batch)
            is_trained = batch.is_trained(self.preset.learner.burn_in)
            self._means["bonus"].add(float((batch.rewards - batch.inputs)[is_trained].mean()))
        update = self.learner.update(batch)
        self.memory.update_priorities(batch.slots, batch.generations, update.priorities)
        self._means["loss"].add(update.loss)
        self._means["gradient_norm"].add(update.gradient_norm)


class R2D2Policy:
    """R2D2 in evaluation: its network, memories of its own, and ε of its own.

    Exploratory actions are never repeated. A bootstrapped agent draws a head for every step, and
    thereby acts by the mean of its heads' ε-greedy policies: see `bootstrap.ensemble_policy`.

    Args:
        learner: whose network acts; it is followed, not copied.
        lanes: how many environments.
        seed: of exploration and heads.
        epsilon: ε.
        device: where the network computes.
    """

    def __init__(
        self, learner: SequenceLearner, lanes: int, seed: int, epsilon: float, device: str = "cpu"
    ) -> None:
        network = learner.network_settings
        self.lanes = lanes
        self._num_heads = network.num_heads
        self._recurrence = Recurrence(learner.values, network.state_shape, lanes, device)
        self._rng = np.random.default_rng(role_seed(seed, "heads"))
        self._explorer = EpsilonGreedy(
            network.num_actions, epsilon, lanes, role_seed(seed, "explorer")
        )
        self._actions: IntArray | None = None

    @property
    def exploring(self) -> BoolArray:
        """Which lanes the last actions explored in, [lanes]."""
        return self._explorer.exploring

    def act(self, observations: Frames, starts: BoolArray) -> IntArray:
        """The actions to execute, [lanes]."""
        q = self._recurrence(observations, starts)
        if self._num_heads is not None:
            q = q[np.arange(self.lanes), self._rng.integers(self._num_heads, size=self.lanes)]
        self._actions = self._explorer(q.argmax(axis=-1), starts=starts)
        return self._actions

    def hear(self, steps: LaneSteps) -> None:
        """Remember what was done and earned, as in training."""
        if self._actions is None:
            raise RuntimeError("hear must follow act")
        self._recurrence.hear(self._actions, steps.clipped_rewards.astype(np.float32))
        self._actions = None


def bonuses(
    preset: SequencePreset, surface: Surface, seed: int, device: str
) -> tuple[RandomNetworkDistillation, ...]:
    """What batches of this agent pass through on their way from the memory to the learner."""
    if preset.distillation is None:
        return ()
    bonus = RandomNetworkDistillation(
        preset.distillation,
        sight(surface),
        burn_in=preset.learner.burn_in,
        seed=role_seed(seed, "distillation"),
        device=device,
    )
    return (bonus,)
