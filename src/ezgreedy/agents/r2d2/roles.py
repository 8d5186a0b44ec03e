"""R2D2's roles besides the actor: replay, learner, and copies of the learner's network.

These are plain objects. `agent.R2D2` calls them in turn within one process; a fleet puts each into
its own process. Needs torch, numba and zstandard.
"""

from collections.abc import Mapping
from math import prod
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ezgreedy import requirements as require
from ezgreedy.agents.agent import GameSpec
from ezgreedy.agents.r2d2.actor import Bonus, codec, network_settings, sight
from ezgreedy.agents.r2d2.learner import SequenceLearner
from ezgreedy.agents.r2d2.policy import Acting, PolicyNetwork, R2D2Policy
from ezgreedy.agents.r2d2.settings import R2D2Settings
from ezgreedy.checkpoints.state_tree import require_finite
from ezgreedy.intrinsic.novelty import Novelty
from ezgreedy.intrinsic.rnd import RandomNetworkDistillation
from ezgreedy.learning import tensor_states
from ezgreedy.learning.tensor_states import as_arrays, as_tensors
from ezgreedy.replay.sequence_batch import SequenceBatch
from ezgreedy.replay.sequence_replay import SequenceReplay
from ezgreedy.replay.sequence_sizes import least_bytes_per_observation
from ezgreedy.requirements import FloatArray, IntArray
from ezgreedy.seeding import role_seed

Weights = dict[str, NDArray[Any]]
# Fields of an update that are reported.
MEASURED_UPDATES = ("loss", "gradient_norm", "q_values")
_NOVELTY = "novelty."  # begins the names of those weights that bonuses depend on


def sequence_replay(
    preset: R2D2Settings, spec: GameSpec, *, seed: int, shard: int = 0, num_shards: int = 1
) -> SequenceReplay:
    """The replay of an agent, or one of several shards that divide its capacity.

    Args:
        preset: settings of the agent.
        spec: the game that it plays.
        seed: random seed of the agent.
        shard: number of this replay.
        num_shards: number of replays.
    """
    require_replay_bytes(preset, spec, num_shards)
    return SequenceReplay(
        _capacity(preset, num_shards),
        codec(preset, spec),
        preset.sequences,
        network_settings(preset, spec).state_shape,
        preset.priority_exponent,
        preset.importance_exponent,
        preset.replay_bytes_per_observation,
        rng=np.random.default_rng(role_seed(seed, "replay", shard)),
    )


def require_replay_bytes(preset: R2D2Settings, spec: GameSpec, num_shards: int = 1) -> None:
    """Refuse a number of bytes per observation with which not even one window may fit.

    Args:
        preset: settings of the agent.
        spec: the game that it plays.
        num_shards: number of replays that divide the capacity.
    """
    observation_bytes = prod(spec.observation_shape) * spec.frame_dtype.itemsize
    capacity = _capacity(preset, num_shards)
    least = least_bytes_per_observation(capacity, preset.sequences, observation_bytes)
    each = preset.replay_bytes_per_observation
    require.integer("replay_bytes_per_observation", each, least)


def _capacity(preset: R2D2Settings, num_shards: int) -> int:
    return max(preset.replay_capacity // num_shards, preset.stride)


def sequence_learner(
    preset: R2D2Settings, spec: GameSpec, *, seed: int, device: str = "cpu"
) -> SequenceLearner:
    """The learner of an agent in its initial state: networks and optimiser.

    Args:
        preset: settings of the agent.
        spec: the game that it plays.
        seed: random seed of the agent.
        device: device of the networks.
    """
    return SequenceLearner(
        network_settings(preset, spec),
        preset.learner,
        preset.returns,
        seed=role_seed(seed, "learner"),
        device=device,
    )


class Learned(NamedTuple):
    """Results of one update; shares no memory with the batch."""

    slots: IntArray  # slots of the windows in their replay
    generations: IntArray
    priorities: FloatArray  # new priorities of the windows
    measured: dict[str, float]


class R2D2Learner:
    """A learner, and the bonuses that batches pass through on their way to it.

    Args:
        preset: settings of the agent.
        spec: the game that it plays.
        seed: random seed of the agent.
        device: device of the networks.
    """

    def __init__(
        self, preset: R2D2Settings, spec: GameSpec, *, seed: int, device: str = "cpu"
    ) -> None:
        self._preset = preset
        self._burn_in = preset.learner.burn_in
        self.learner = sequence_learner(preset, spec, seed=seed, device=device)
        self.bonuses = _bonuses(preset, spec, seed, device)

    def update(self, batch: SequenceBatch) -> Learned:
        """Learn from a batch."""
        measured: dict[str, float] = {}
        for bonus in self.bonuses:
            batch = bonus(batch)
            is_trained = batch.is_trained(self._burn_in)
            measured["bonus"] = float((batch.rewards - batch.inputs)[is_trained].mean())
        update = self.learner.update(batch)
        measured |= {name: getattr(update, name) for name in MEASURED_UPDATES}
        slots, generations = np.array(batch.slots), np.array(batch.generations)
        return Learned(slots, generations, update.priorities, measured)

    def measurements(self) -> dict[str, float]:
        """Current measurements of the bonuses."""
        measured: dict[str, float] = {}
        for bonus in self.bonuses:
            measured |= bonus.measurements()
        return measured

    @property
    def first_bonus(self) -> Bonus | None:
        """Bonuses for an actor in the same process; None if its priorities count none."""
        return self.bonuses[0].rewards if _counts_first_bonuses(self._preset) else None

    def weights(self) -> Weights:
        """A copy of everything that actors depend on: the network, and bonuses if they count."""
        online: Weights = as_arrays(tensor_states.copied(dict(self.learner.online.state_dict())))
        if not _counts_first_bonuses(self._preset):
            return online
        novelty: Weights = as_arrays(self.bonuses[0].weights())
        return online | {_NOVELTY + name: array for name, array in novelty.items()}

    def state_dict(self) -> dict[str, Any]:
        """Everything that later updates depend on: arrays and plain data."""
        return {
            "learner": as_arrays(self.learner.state_dict()),
            "bonuses": [as_arrays(bonus.state_dict()) for bonus in self.bonuses],
        }

    def load_network(self, state: Mapping[str, Any]) -> None:
        """Load the networks and their optimiser from a state, but not the bonuses."""
        self.learner.load_state_dict(as_tensors(state["learner"]))

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Continue from the state of a learner with the same settings."""
        self.load_network(state)
        for bonus, saved in zip(self.bonuses, state["bonuses"], strict=True):
            bonus.load_state_dict(as_tensors(saved))


class NetworkCopy:
    """A copy of a learner's online network in another process, for actors and evaluations.

    It runs on the CPU; the device is reserved for the learner. Until it is given weights, it has
    the initial parameters of a learner with this seed.

    Args:
        preset: settings of the agent.
        spec: the game that it plays.
        seed: random seed of the agent.
        is_actor: whether it also needs the bonuses that first priorities count.
    """

    def __init__(
        self, preset: R2D2Settings, spec: GameSpec, *, seed: int, is_actor: bool = False
    ) -> None:
        self._preset = preset
        # The same initial parameters as the learner's.
        self._network = PolicyNetwork(network_settings(preset, spec), role_seed(seed, "learner"))
        self.values = self._network.values
        self._novelty: Novelty | None = None
        if is_actor and _counts_first_bonuses(preset):
            assert preset.distillation is not None
            own = role_seed(seed, "distillation")
            self._novelty = Novelty(preset.distillation, sight(spec), seed=own)

    @property
    def first_bonus(self) -> Bonus | None:
        """Bonuses for an actor; None if its priorities count none."""
        return None if self._novelty is None else self._novelty.rewards

    @property
    def num_parameters(self) -> int:
        """Number of parameters."""
        return self._network.num_parameters

    def follow(self, weights: Weights) -> None:
        """Copy these weights, as returned by `R2D2Learner.weights`; refuses NaN and infinities.

        Saturating layers may hide these from the values, so that an actor would play on with them.
        """
        for name, array in weights.items():
            require_finite(f"weights {name}", array)
        tensors = as_tensors(weights)
        novelty = {name for name in tensors if name.startswith(_NOVELTY)}
        self._network.load({name: tensors[name] for name in tensors.keys() - novelty})
        if self._novelty is not None:
            self._novelty.follow({name.removeprefix(_NOVELTY): tensors[name] for name in novelty})

    def evaluation_policy(self, lanes: int, seed: int, epsilon: float | None = None) -> R2D2Policy:
        """The current network with the ε of evaluation; see `Agent`."""
        return evaluation_policy(self._preset, self._network, lanes, seed, epsilon)


def evaluation_policy(
    preset: R2D2Settings,
    learner: Acting,
    lanes: int,
    seed: int,
    epsilon: float | None = None,
    device: str = "cpu",
) -> R2D2Policy:
    """The policy of an agent in evaluation.

    Args:
        preset: settings of the agent.
        learner: learner or network that acts; it is shared, not copied.
        lanes: number of environments.
        seed: random seed of the policy.
        epsilon: probability of exploring; None for that of the preset.
        device: device of the network.
    """
    chosen = preset.evaluation_epsilon if epsilon is None else epsilon
    return R2D2Policy(learner, lanes, seed, chosen, device)


def _counts_first_bonuses(preset: R2D2Settings) -> bool:
    return preset.distillation is not None and preset.distillation.in_first_priorities


def _bonuses(
    preset: R2D2Settings, spec: GameSpec, seed: int, device: str
) -> tuple[RandomNetworkDistillation, ...]:
    """The bonuses that batches pass through on their way from the replay to the learner."""
    if preset.distillation is None:
        return ()
    bonus = RandomNetworkDistillation(
        preset.distillation,
        sight(spec),
        burn_in=preset.learner.burn_in,
        seed=role_seed(seed, "distillation"),
        device=device,
    )
    return (bonus,)
