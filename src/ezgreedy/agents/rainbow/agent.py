"""Rainbow at work: it acts in lanes, remembers their steps and learns from them now and then.

The preset selects one of the paper's four agents. Needs torch and numba.
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from ezgreedy import requirements as require
from ezgreedy.agents.agent import GameSpec
from ezgreedy.agents.early_stops import EarlyStops
from ezgreedy.agents.means import ExploredSince, Mean
from ezgreedy.agents.rainbow.learner import Learner
from ezgreedy.agents.rainbow.learner_settings import NetworkSettings
from ezgreedy.agents.rainbow.network import RainbowNetwork
from ezgreedy.agents.rainbow.settings import RainbowSettings
from ezgreedy.exploration.stops import Situation
from ezgreedy.games.lanes import LaneSteps
from ezgreedy.games.protocol import Frames
from ezgreedy.intrinsic.cts import CTSModel, reduce
from ezgreedy.intrinsic.pseudo_counts import PseudoCountBonus
from ezgreedy.learning.tensor_states import as_arrays, as_tensors, load_parameters
from ezgreedy.replay.accumulate import Accumulator
from ezgreedy.replay.frames import FrameStore
from ezgreedy.replay.prioritized import Priorities
from ezgreedy.replay.transition_replay import TransitionReplay
from ezgreedy.requirements import BoolArray, FloatArray, IntArray
from ezgreedy.seeding import role_seed


class Rainbow:
    """One of the paper's Rainbow agents.

    Args:
        preset: settings of the agent.
        spec: the game that it plays.
        lanes: number of environments it acts in. The paper has one.
        seed: any non-negative int.
        device: device of the networks.
    """

    def __init__(
        self,
        preset: RainbowSettings,
        spec: GameSpec,
        *,
        lanes: int = 1,
        seed: int,
        device: str = "cpu",
    ) -> None:
        _require_frames_of_bytes(spec)
        self.preset = preset
        self.spec = spec
        self.lanes = require.integer("lanes", lanes, least=1)
        self.learner = Learner(
            network_settings(preset, spec),
            preset.learner,
            seed=role_seed(seed, "learner"),
            device=device,
        )
        self.replay = _replay(preset, spec, lanes, role_seed(seed, "replay"))
        explorer_seed = role_seed(seed, "explorer")
        self.explorer = preset.explorer(spec.num_actions, lanes, explorer_seed)
        situation = Situation(lanes, explorer_seed, discount=preset.learner.discount)
        self._stops = EarlyStops(preset.stops, situation)
        self._bonus = _bonus(preset, spec)
        self._num_steps = 0
        self._observations: Frames | None = None
        self._actions: IntArray | None = None
        self._losses = Mean()
        self._gradient_norms = Mean()
        self._bonuses = Mean()
        self._q_values = Mean()
        self._explored = ExploredSince(self.explorer)

    @property
    def num_updates(self) -> int:
        """Number of updates so far."""
        return self.learner.num_updates

    def act(self, observations: Frames, starts: BoolArray) -> IntArray:
        """The actions to execute, [lanes]; greedy ones use fresh noise."""
        for lane in np.flatnonzero(starts).tolist():
            self.replay.begin(lane, self._newest(observations[lane]))
        self._observations = observations
        values: NDArray[np.float32] | None = None
        if self._stops.read_values:
            values = self.learner.values(observations)

        def greedy(lanes: IntArray) -> IntArray:
            if values is None:
                return self.learner.greedy(observations[lanes])
            return values[lanes].argmax(axis=1)

        newest = observations[:, -self.spec.frame_shape[0] :]
        ends = self._stops(newest, starts, None if values is None else values.max(axis=1))
        self._actions = self.explorer(greedy, starts=starts, ends=ends)
        return self._actions

    def observe(self, steps: LaneSteps) -> None:
        """Remember the results of the last actions, and learn every `steps_per_update` steps."""
        if self._observations is None or self._actions is None:
            raise RuntimeError("observe must follow act")
        self._stops.observe(steps.clipped_rewards)
        rewards = self._rewards(steps.clipped_rewards)
        for lane in range(self.lanes):
            has_ended = bool(steps.terminated[lane] or steps.truncated[lane])
            self.replay.step(
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
        """The current agent with the ε of evaluation; using it does not change the agent."""
        preset = self.preset
        if epsilon is not None:
            preset = replace(preset, evaluation_epsilon=epsilon)
        return RainbowPolicy(preset, self.learner.actor(_evaluation_noise(seed)), lanes, seed)

    def measurements(self) -> dict[str, float]:
        """Means over the updates since the last call, and the share of exploration since then."""
        measured = self._explored.measurements()
        if self._losses.count:
            measured["loss"] = self._losses.take()
            measured["gradient_norm"] = self._gradient_norms.take()
        if self._q_values.count:
            measured["q_values"] = self._q_values.take()
        if self._bonuses.count:
            measured["bonus"] = self._bonuses.take()
        measured["updates"] = float(self.learner.num_updates)
        return measured

    def state_dict(self) -> dict[str, Any]:
        """Everything that later steps depend on; call it between `observe` and `act`."""
        if self._actions is not None:
            raise RuntimeError("state_dict must not come between act and observe")
        return {
            "learner": as_arrays(self.learner.state_dict()),
            "memory": self.replay.state_dict(),
            "explorer": self.explorer.state_dict(),
            "stops": self._stops.state_dict(),
            "bonus": None if self._bonus is None else self._bonus.state_dict(),
            "num_steps": self._num_steps,
            "means": [mean.state() for mean in self._means],
            "counted": self._explored.state(),
        }

    def load_policy(self, state: Mapping[str, Any]) -> None:
        """Load only the parts of such a state that evaluation depends on."""
        self.learner.load_state_dict(as_tensors(state["learner"]))

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Continue from a state of an agent with the same settings."""
        self.load_policy(state)
        self.replay.load_state_dict(state["memory"])
        self.explorer.load_state_dict(state["explorer"])
        self._stops.load_state_dict(state.get("stops"))  # earlier versions had none
        if self._bonus is not None:
            self._bonus.load_state_dict(state["bonus"])
        self._num_steps = int(state["num_steps"])
        # Earlier versions saved the first three.
        for mean, saved in zip(self._means, state["means"], strict=False):
            mean.restore(saved)
        self._explored.restore(state["counted"])
        self._observations = self._actions = None

    def _learn(self) -> None:
        if len(self.replay) < self.preset.least_replay:
            return
        batch = self.replay.sample(self.preset.learner.batch_size)
        update = self.learner.update(batch)
        self.replay.update_priorities(batch.slots, update.losses)
        self._losses.add(update.loss)
        self._gradient_norms.add(update.gradient_norm)
        self._q_values.add(update.q_values)

    @property
    def _means(self) -> tuple[Mean, ...]:
        return self._losses, self._gradient_norms, self._bonuses, self._q_values

    def _rewards(self, clipped: FloatArray) -> FloatArray:
        """Rewards plus the bonus of the frames in which actions were chosen; the sum is clipped."""
        if self._bonus is None or self._observations is None:
            return clipped
        bonuses = np.array(
            [self._bonus.of_symbols(self._symbols(frames)) for frames in self._observations]
        )
        for bonus in bonuses.tolist():
            self._bonuses.add(bonus)
        return (clipped + bonuses).clip(-1.0, 1.0)

    def _symbols(self, observation: Frames) -> Frames:
        """The newest frame for the density model: few levels of grey, or the objects."""
        frame = self._newest(observation)
        if self.spec.shows_objects:
            numbers = np.arange(1, len(frame) + 1, dtype=np.uint8)
            return np.multiply(frame, numbers[:, None, None]).max(axis=0)
        return reduce(frame[0])

    def _newest(self, observation: Frames) -> Frames:
        """The last frame of a stack."""
        return observation[-self.spec.frame_shape[0] :]


class RainbowPolicy:
    """Rainbow in evaluation: a network with its own noise and ε.

    Args:
        preset: settings of the agent.
        network: network that acts, with a generator of its own.
        lanes: number of environments.
        seed: random seed of exploration.
    """

    def __init__(
        self, preset: RainbowSettings, network: RainbowNetwork, lanes: int, seed: int
    ) -> None:
        self._network = network
        self._network.set_noise(preset.is_noisy_in_evaluation)
        self._device = next(network.parameters()).device
        num_actions = network.settings.num_actions
        explorer_seed = role_seed(seed, "explorer")
        self._explorer = preset.explorer(num_actions, lanes, explorer_seed, evaluates=True)

    @property
    def exploring(self) -> BoolArray:
        """The lanes in which the last actions explored, [lanes]."""
        return self._explorer.exploring

    def act(self, observations: Frames, starts: BoolArray) -> IntArray:
        """The actions to execute, [lanes]."""

        def greedy(lanes: IntArray) -> IntArray:
            states = torch.as_tensor(observations[lanes], device=self._device)
            with torch.inference_mode():
                return self._network.values(states).argmax(dim=1).cpu().numpy()

        return self._explorer(greedy, starts=starts)

    def observe(self, steps: LaneSteps) -> None:
        """Does nothing: the next action depends only on the observation."""


def policy_state(state: Mapping[str, Any]) -> dict[str, Any]:
    """The part of a state that `load_policy` needs."""
    return {"learner": {"online": state["learner"]["online"]}}


def load_policy(
    preset: RainbowSettings,
    spec: GameSpec,
    state: Mapping[str, Any],
    *,
    lanes: int,
    seed: int,
    device: str = "cpu",
    epsilon: float | None = None,
) -> RainbowPolicy:
    """The policy of a saved agent, without replay, target network and optimiser.

    Args:
        preset: settings of the agent.
        spec: the game that it plays.
        state: state of the agent.
        lanes: number of environments.
        seed: random seed of noise and exploration.
        device: device of the network.
        epsilon: probability of exploring; None for that of the preset.
    """
    _require_frames_of_bytes(spec)
    network = RainbowNetwork(network_settings(preset, spec), _evaluation_noise(seed))
    load_parameters(network, as_tensors(state["learner"]["online"]))
    if epsilon is not None:
        preset = replace(preset, evaluation_epsilon=epsilon)
    return RainbowPolicy(preset, network.to(device), lanes, seed)


def _evaluation_noise(seed: int) -> torch.Generator:
    return torch.Generator().manual_seed(role_seed(seed, "noise"))


def network_settings(preset: RainbowSettings, spec: GameSpec) -> NetworkSettings:
    """The networks of an agent that plays this game."""
    planes, height, width = spec.observation_shape
    return NetworkSettings(
        num_actions=spec.num_actions,
        input_shape=(planes, height, width),
        torso=preset.torso,
        hidden_size=preset.hidden_size,
        shares_hidden=preset.shares_hidden,
        num_atoms=preset.num_atoms,
        least_value=preset.least_value,
        most_value=preset.most_value,
        sigma0=preset.sigma0,
        largest_pixel=spec.largest_pixel,
    )


def _require_frames_of_bytes(spec: GameSpec) -> None:
    if len(spec.frame_shape) != 3 or spec.frame_dtype != np.uint8:
        received = require.Described(f"{spec.frame_dtype} of shape {spec.frame_shape}")
        rule = "be planes of bytes for Rainbow (R2D2 plays others too: ezgreedy train r2d2-ez)"
        raise require.refuse("frames", rule, received)


def _replay(preset: RainbowSettings, spec: GameSpec, lanes: int, seed: int) -> TransitionReplay:
    planes, height, width = spec.frame_shape
    shape = (planes, height, width)
    frames = FrameStore(preset.replay_capacity, shape, spec.stacked_frames, lanes)
    priorities = Priorities(
        frames.capacity,
        preset.priority_exponent,
        importance_exponent=preset.importance_exponent,
        rng=np.random.default_rng(seed),
    )
    learner = preset.learner
    return TransitionReplay(
        frames, Accumulator(learner.num_steps, learner.discount, lanes), priorities
    )


def _bonus(preset: RainbowSettings, spec: GameSpec) -> PseudoCountBonus | None:
    if preset.bonus_scale == 0.0:
        return None
    return PseudoCountBonus(_density_model(spec), preset.bonus_scale, preset.bonus_form)


def _density_model(spec: GameSpec) -> CTSModel:
    planes, height, width = spec.frame_shape
    if spec.shows_objects:
        return CTSModel((height, width), num_levels=planes + 1)
    if planes != 1 or height % 2 or width % 2:
        rule = "have a single plane with even sides for a bonus of rare frames"
        raise require.refuse("frame_shape", rule, spec.frame_shape)
    return CTSModel((height // 2, width // 2))
