"""Rainbow at work: it acts in lanes, remembers their steps and learns from them now and then.

Which of the paper's four agents this is depends on the preset alone. Needs torch and numba.
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import torch

from ezgreedy import requirements as require
from ezgreedy.agents.agent import Surface
from ezgreedy.agents.means import Mean
from ezgreedy.agents.presets import Preset, explorer
from ezgreedy.atari.lanes import LaneSteps
from ezgreedy.atari.protocol import Frames
from ezgreedy.intrinsic.cts import CTSModel, reduce
from ezgreedy.intrinsic.pseudo_counts import PseudoCountBonus
from ezgreedy.learning.learner import Learner
from ezgreedy.learning.networks import RainbowNetwork
from ezgreedy.learning.settings import NetworkSettings
from ezgreedy.learning.tensor_states import as_arrays, as_tensors
from ezgreedy.replay.accumulate import Accumulator
from ezgreedy.replay.frames import FrameStore
from ezgreedy.replay.memory import ReplayMemory
from ezgreedy.replay.prioritized import Priorities
from ezgreedy.requirements import BoolArray, FloatArray, IntArray
from ezgreedy.seeding import role_seed


class Rainbow:
    """One of the paper's Rainbow agents.

    Args:
        preset: which.
        surface: the game that it plays.
        lanes: how many environments it acts in. The paper has one.
        seed: any non-negative int.
        device: where networks compute.
    """

    def __init__(
        self, preset: Preset, surface: Surface, *, lanes: int = 1, seed: int, device: str = "cpu"
    ) -> None:
        _require_frames_of_bytes(surface)
        self.preset = preset
        self.surface = surface
        self.lanes = require.integer("lanes", lanes, least=1)
        self.learner = Learner(
            network_settings(preset, surface),
            preset.learner,
            seed=role_seed(seed, "learner"),
            device=device,
        )
        self.memory = _memory(preset, surface, lanes, role_seed(seed, "replay"))
        self.explorer = explorer(preset, surface.num_actions, lanes, role_seed(seed, "explorer"))
        self._bonus = _bonus(preset, surface)
        self._num_steps = 0
        self._observations: Frames | None = None
        self._actions: IntArray | None = None
        self._losses = Mean()
        self._gradient_norms = Mean()
        self._bonuses = Mean()
        self._counted = (0, 0)

    @property
    def num_updates(self) -> int:
        """How often it has learned so far."""
        return self.learner.num_updates

    def act(self, observations: Frames, starts: BoolArray) -> IntArray:
        """The actions to execute, [lanes]; greedy ones are under fresh noise."""
        for lane in np.flatnonzero(starts).tolist():
            self.memory.begin(lane, self._newest(observations[lane]))
        self._observations = observations
        self._actions = self.explorer(
            lambda lanes: self.learner.greedy(observations[lanes]), starts=starts
        )
        return self._actions

    def observe(self, steps: LaneSteps) -> None:
        """Remember what the last actions led to, and learn every `steps_per_update` steps."""
        if self._observations is None or self._actions is None:
            raise RuntimeError("observe must follow act")
        rewards = self._rewards(steps.clipped_rewards)
        for lane in range(self.lanes):
            has_ended = bool(steps.terminated[lane] or steps.truncated[lane])
            self.memory.step(
                lane,
                int(self._actions[lane]),
                float(rewards[lane]),
                self._newest(steps.next_observations[lane]),
                terminated=bool(steps.terminated[lane]),
                truncated=bool(steps.truncated[lane]),
                life_lost=not has_ended and steps.discounts[lane] == 0.0,
            )
        self._observations = self._actions = None
        for _ in range(self.lanes):
            self._num_steps += 1
            if self._num_steps % self.preset.steps_per_update == 0:
                self._learn()

    def evaluation_policy(
        self, lanes: int, seed: int, epsilon: float | None = None
    ) -> "RainbowPolicy":
        """The agent as it is now with the ε of evaluation; nothing it does changes the agent."""
        preset = self.preset
        if epsilon is not None:
            preset = replace(preset, evaluation_epsilon=epsilon)
        return RainbowPolicy(preset, self.learner, lanes, seed)

    def measurements(self) -> dict[str, float]:
        """Means over the updates since the last call, and how much was explored since then."""
        counters = self.explorer.counters
        steps, explored = counters.steps, counters.explored
        before_steps, before_explored = self._counted
        self._counted = (steps, explored)
        measured = {"explored_share": (explored - before_explored) / max(steps - before_steps, 1)}
        if self._losses.count:
            measured["loss"] = self._losses.take()
            measured["gradient_norm"] = self._gradient_norms.take()
        if self._bonuses.count:
            measured["bonus"] = self._bonuses.take()
        measured["updates"] = float(self.learner.num_updates)
        return measured

    def state_dict(self) -> dict[str, Any]:
        """Everything that the future depends on; taken between `observe` and `act`."""
        if self._actions is not None:
            raise RuntimeError("state_dict must not come between act and observe")
        return {
            "learner": as_arrays(self.learner.state_dict()),
            "memory": self.memory.state_dict(),
            "explorer": self.explorer.state_dict(),
            "bonus": None if self._bonus is None else self._bonus.state_dict(),
            "num_steps": self._num_steps,
            "means": [mean.state() for mean in (self._losses, self._gradient_norms, self._bonuses)],
            "counted": list(self._counted),
        }

    def load_policy(self, state: Mapping[str, Any]) -> None:
        """Take from such a state what evaluation depends on, and leave the rest."""
        self.learner.load_state_dict(as_tensors(state["learner"]))

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Continue from a state of an agent with the same settings."""
        self.load_policy(state)
        self.memory.load_state_dict(state["memory"])
        self.explorer.load_state_dict(state["explorer"])
        if self._bonus is not None:
            self._bonus.load_state_dict(state["bonus"])
        self._num_steps = int(state["num_steps"])
        means = (self._losses, self._gradient_norms, self._bonuses)
        for mean, saved in zip(means, state["means"], strict=True):
            mean.restore(saved)
        self._counted = (int(state["counted"][0]), int(state["counted"][1]))
        self._observations = self._actions = None

    def _learn(self) -> None:
        if len(self.memory) < self.preset.least_replay:
            return
        batch = self.memory.sample(self.preset.learner.batch_size)
        update = self.learner.update(batch)
        self.memory.update_priorities(batch.slots, update.losses)
        self._losses.add(update.loss)
        self._gradient_norms.add(update.gradient_norm)

    def _rewards(self, clipped: FloatArray) -> FloatArray:
        """With the bonus of the frames in which the actions were chosen; clipped as a whole."""
        if self._bonus is None or self._observations is None:
            return clipped
        bonuses = np.array(
            [self._bonus.of_symbols(self._symbols(frames)) for frames in self._observations]
        )
        for bonus in bonuses.tolist():
            self._bonuses.add(bonus)
        return (clipped + bonuses).clip(-1.0, 1.0)

    def _symbols(self, observation: Frames) -> Frames:
        """The newest frame as the density model sees it: few levels of grey, or what is where."""
        frame = self._newest(observation)
        if _shows_objects(self.surface):
            numbers = np.arange(1, len(frame) + 1, dtype=np.uint8)
            return np.multiply(frame, numbers[:, None, None]).max(axis=0)
        return reduce(frame[0])

    def _newest(self, observation: Frames) -> Frames:
        """The last frame of a stack."""
        return observation[-self.surface.frame_shape[0] :]


class RainbowPolicy:
    """Rainbow in evaluation: its networks, noise of its own, and ε of its own.

    Args:
        preset: which agent.
        learner: whose network acts; it is followed, not copied.
        lanes: how many environments.
        seed: of noise and exploration.
    """

    def __init__(self, preset: Preset, learner: Learner, lanes: int, seed: int) -> None:
        generator = torch.Generator().manual_seed(role_seed(seed, "noise"))
        self._network: RainbowNetwork = learner.actor(generator)
        self._network.set_noise(preset.is_noisy_in_evaluation)
        self._device = learner.device
        num_actions = learner.network_settings.num_actions
        explorer_seed = role_seed(seed, "explorer")
        self._explorer = explorer(preset, num_actions, lanes, explorer_seed, evaluates=True)

    @property
    def exploring(self) -> BoolArray:
        """Which lanes the last actions explored in, [lanes]."""
        return self._explorer.exploring

    def act(self, observations: Frames, starts: BoolArray) -> IntArray:
        """The actions to execute, [lanes]."""

        def greedy(lanes: IntArray) -> IntArray:
            states = torch.as_tensor(observations[lanes], device=self._device)
            with torch.inference_mode():
                return self._network.values(states).argmax(dim=1).cpu().numpy()

        return self._explorer(greedy, starts=starts)

    def hear(self, steps: LaneSteps) -> None:
        """Nothing: what to do next depends on what is seen alone."""


def network_settings(preset: Preset, surface: Surface) -> NetworkSettings:
    """The networks of an agent that plays this game."""
    planes, height, width = surface.observation_shape
    return NetworkSettings(
        num_actions=surface.num_actions,
        input_shape=(planes, height, width),
        torso=preset.torso,
        hidden_size=preset.hidden_size,
        shares_hidden=preset.shares_hidden,
        num_atoms=preset.num_atoms,
        least_value=preset.least_value,
        most_value=preset.most_value,
        sigma0=preset.sigma0,
        largest_pixel=surface.largest_pixel,
    )


def _require_frames_of_bytes(surface: Surface) -> None:
    if len(surface.frame_shape) != 3 or surface.frame_dtype != np.uint8:
        received = require.Described(f"{surface.frame_dtype} of shape {surface.frame_shape}")
        raise require.refuse("frames", "be planes of bytes for Rainbow", received)


def _memory(preset: Preset, surface: Surface, lanes: int, seed: int) -> ReplayMemory:
    planes, height, width = surface.frame_shape
    shape = (planes, height, width)
    frames = FrameStore(preset.replay_capacity, shape, surface.stacked_frames, lanes)
    priorities = Priorities(
        frames.capacity,
        preset.priority_exponent,
        importance_exponent=preset.importance_exponent,
        rng=np.random.default_rng(seed),
    )
    learner = preset.learner
    return ReplayMemory(frames, Accumulator(learner.num_steps, learner.discount, lanes), priorities)


def _bonus(preset: Preset, surface: Surface) -> PseudoCountBonus | None:
    if preset.bonus_scale == 0.0:
        return None
    return PseudoCountBonus(_density_model(surface), preset.bonus_scale, preset.bonus_form)


def _density_model(surface: Surface) -> CTSModel:
    planes, height, width = surface.frame_shape
    if _shows_objects(surface):
        return CTSModel((height, width), num_levels=planes + 1)
    if planes != 1 or height % 2 or width % 2:
        rule = "have a single plane with even sides for a bonus of rare frames"
        raise require.refuse("frame_shape", rule, surface.frame_shape)
    return CTSModel((height // 2, width // 2))


def _shows_objects(surface: Surface) -> bool:
    """Whether planes say what is where, as MinAtar's do, and not how bright it is."""
    return surface.largest_pixel == 1.0
