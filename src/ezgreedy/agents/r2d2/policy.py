"""R2D2 in evaluation. Needs torch."""

from collections.abc import Mapping
from typing import Any, Protocol

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from ezgreedy.agents.agent import GameSpec
from ezgreedy.agents.r2d2.actor import network_settings
from ezgreedy.agents.r2d2.learner import acted_values
from ezgreedy.agents.r2d2.learner_settings import RecurrentNetworkSettings
from ezgreedy.agents.r2d2.network import RecurrentNetwork, State
from ezgreedy.agents.r2d2.recurrence import Floats, Recurrence, Values
from ezgreedy.agents.r2d2.settings import R2D2Settings
from ezgreedy.exploration.ez_greedy import EpsilonGreedy
from ezgreedy.games.lanes import LaneSteps
from ezgreedy.games.protocol import Frames
from ezgreedy.learning.gradients import NotFiniteError
from ezgreedy.learning.tensor_states import as_tensors, generators, load_parameters
from ezgreedy.requirements import BoolArray, IntArray
from ezgreedy.seeding import role_seed


class Acting(Protocol):
    """Evaluates a network: see `SequenceLearner` and `PolicyNetwork`."""

    network_settings: RecurrentNetworkSettings

    @property
    def values(self) -> Values:
        """Rescaled values of one step of all lanes, and the next state."""


class R2D2Policy:
    """R2D2 in evaluation: its network, with separate LSTM states and ε.

    Exploratory actions are never repeated. A bootstrapped agent draws a head for every step,
    which amounts to the mean of its heads' ε-greedy policies: see `bootstrap.ensemble_policy`.

    Args:
        learner: learner or network that acts; it is shared, not copied.
        lanes: number of environments.
        seed: random seed of exploration and heads.
        epsilon: probability of exploring.
        device: device of the network.
    """

    def __init__(
        self, learner: Acting, lanes: int, seed: int, epsilon: float, device: str = "cpu"
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
        """Whether the last action of each lane was exploratory, [lanes]."""
        return self._explorer.exploring

    def act(self, observations: Frames, starts: BoolArray) -> IntArray:
        """The actions to execute, [lanes]."""
        q = self._recurrence(observations, starts)
        if self._num_heads is not None:
            q = q[np.arange(self.lanes), self._rng.integers(self._num_heads, size=self.lanes)]
        self._actions = self._explorer(q.argmax(axis=-1), starts=starts)
        return self._actions

    def observe(self, steps: LaneSteps) -> None:
        """Remember the last actions and rewards, as in training."""
        if self._actions is None:
            raise RuntimeError("observe must follow act")
        self._recurrence.observe(self._actions, steps.clipped_rewards.astype(np.float32))
        self._actions = None


class PolicyNetwork:
    """One network for acting: no target network and no optimiser.

    Until it is given parameters, it has the initial ones of a learner with this seed.

    Args:
        network_settings: architecture of the network.
        seed: random seed of the initial parameters.
        device: device of the network.
    """

    def __init__(
        self, network_settings: RecurrentNetworkSettings, seed: int, device: str = "cpu"
    ) -> None:
        self.network_settings = network_settings
        self._seed, self._num_updates = seed, 0
        generator = generators(seed, "parameters")["parameters"]
        self._network = RecurrentNetwork(network_settings, generator).requires_grad_(False)
        self._network.to(device)

    @property
    def num_parameters(self) -> int:
        """Number of parameters."""
        return sum(parameter.numel() for parameter in self._network.parameters())

    def load(self, parameters: Mapping[str, Tensor], num_updates: int = 0) -> None:
        """Copy the parameters of a learner's network; refuses those that do not fit.

        Args:
            parameters: tensors by name.
            num_updates: number of updates that they had, for messages.
        """
        load_parameters(self._network, parameters)
        self._num_updates = num_updates

    def values(
        self, observations: NDArray[Any], actions: IntArray, rewards: Floats, state: State
    ) -> tuple[Floats, State]:
        """See `SequenceLearner.values`."""
        q, following = acted_values(self._network, observations, actions, rewards, state)
        if not torch.isfinite(q).all():
            raise NotFiniteError("values", self._num_updates, self._seed)
        return q.cpu().numpy(), following


def policy_state(state: Mapping[str, Any]) -> dict[str, Any]:
    """The part of a state that `load_policy` needs."""
    return {"learner": {name: state["learner"][name] for name in ("online", "num_updates")}}


def load_policy(
    preset: R2D2Settings,
    spec: GameSpec,
    state: Mapping[str, Any],
    *,
    lanes: int,
    seed: int,
    device: str = "cpu",
    epsilon: float | None = None,
) -> R2D2Policy:
    """The policy of a saved agent, without replay, bonuses, target network and optimiser.

    Args:
        preset: settings of the agent.
        spec: the game that it plays.
        state: state of the agent.
        lanes: number of environments.
        seed: random seed of exploration and heads.
        device: device of the network.
        epsilon: probability of exploring; None for that of the preset.
    """
    network = PolicyNetwork(network_settings(preset, spec), seed, device)
    saved = state["learner"]
    network.load(as_tensors(saved["online"]), int(saved["num_updates"]))
    chosen = preset.evaluation_epsilon if epsilon is None else epsilon
    return R2D2Policy(network, lanes, seed, chosen, device)
