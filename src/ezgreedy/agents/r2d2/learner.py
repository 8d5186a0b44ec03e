"""The learner of R2D2: windows of episodes in, a better network and new priorities out.

LSTM states start from those of the actors, which older parameters computed. So each network, online
and target, first runs over a window's prefix with its own parameters and without gradients, and
only then over the trained steps. Only the initial parameters are random.
"""

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn import functional

from ezgreedy import requirements as require
from ezgreedy.agents.r2d2 import returns as equations
from ezgreedy.agents.r2d2.bootstrap import head_masks
from ezgreedy.agents.r2d2.learner_settings import (
    RecurrentNetworkSettings,
    ReturnSettings,
    SequenceLearnerSettings,
)
from ezgreedy.agents.r2d2.network import RecurrentNetwork, State
from ezgreedy.learning import tensor_states
from ezgreedy.learning.distinct_fields import Fields
from ezgreedy.learning.gradients import NotFiniteError, clip_gradients
from ezgreedy.replay import sequence_batch
from ezgreedy.replay.sequence_batch import NO_ACTION, SequenceBatch
from ezgreedy.requirements import BoolArray, FloatArray, IntArray


class SequenceUpdate(NamedTuple):
    """Results of one update."""

    loss: float  # the weighted mean that was minimised
    priorities: FloatArray  # new priority of each window, [batch]
    gradient_norm: float  # before clipping
    q_values: float  # greedy values before the update, unscaled, their mean over trained steps


class Windows(NamedTuple):
    """A batch as networks take it: time first, with padding cleared."""

    observations: Tensor  # [prefix + T + 1, batch, ...]
    actions: Tensor  # before each observation, [prefix + T + 1, batch]
    rewards: Tensor  # before each observation, [prefix + T + 1, batch]
    state: State
    prefix_lengths: IntArray
    steps: equations.Steps
    weights: Tensor  # [batch]
    masks: Tensor  # heads that learn, [T, batch, heads]
    # Distinct fields of the observations, those of prefixes last; None where they do not matter.
    fields: Fields | None


class SequenceLearner:
    """A recurrent network, its target copy, and its optimiser.

    Args:
        network_settings: architecture of both networks.
        settings: settings of the updates.
        return_settings: settings of the targets.
        seed: random seed of the initial parameters, any non-negative int.
        device: device of the networks.
    """

    def __init__(
        self,
        network_settings: RecurrentNetworkSettings,
        settings: SequenceLearnerSettings,
        return_settings: ReturnSettings | None = None,
        *,
        seed: int,
        device: str = "cpu",
    ) -> None:
        self.seed = require.integer("seed", seed, least=0, most=None)
        self.network_settings = network_settings
        self.settings = settings
        self.return_settings = return_settings or ReturnSettings()
        self.device = torch.device(device)
        self.num_updates = 0
        self.online = self._network()
        self.target = self._network().requires_grad_(False)
        self._optimizer = tensor_states.adam(
            self.online, settings.learning_rate, settings.adam_epsilon
        )
        self._actor = self.actor()

    def actor(self) -> RecurrentNetwork:
        """The online network, for acting only; it shares tensors and follows every update."""
        network = self._network()
        network.load_state_dict(self.online.state_dict(), assign=True)
        return network.requires_grad_(False)

    def values(
        self,
        observations: NDArray[Any],
        actions: IntArray,
        rewards: NDArray[np.float32],
        state: State,
    ) -> tuple[NDArray[np.float32], State]:
        """Rescaled values of one step of all lanes, [batch, (heads,) actions], and the next state.

        Args:
            observations: [batch, ...].
            actions: previous actions, −1 where an episode starts, [batch].
            rewards: previous rewards, 0 where an episode starts, [batch].
            state: LSTM state before these observations.
        """
        q, following = acted_values(self._actor, observations, actions, rewards, state)
        self._require_finite("values", q)
        return q.cpu().numpy(), following

    def update(self, batch: SequenceBatch) -> SequenceUpdate:
        """Learn from one batch; the returned priorities go back to the memory.

        Raises:
            NotFiniteError: inputs, losses or gradients are not finite. Nothing has changed.
        """
        self._check(batch)
        try:
            update = self._differentiate(batch)
        except BaseException:
            self._optimizer.zero_grad(set_to_none=True)
            raise
        self._optimizer.step()
        self._optimizer.zero_grad(set_to_none=True)
        self.num_updates += 1
        if self.num_updates % self.settings.updates_per_target_sync == 0:
            self.target.load_state_dict(self.online.state_dict())
        return update

    def errors(self, windows: Windows) -> Tensor:
        """δ of each trained step, differentiable, 0 for padding, [T, batch, heads]."""
        return self._errors_and_values(windows)[0]

    def losses(self, windows: Windows, errors: Tensor) -> Tensor:
        """Σ_t δ²/2 over steps and the heads that learn from them, [batch]."""
        if self.settings.loss == "huber":
            each = functional.huber_loss(errors, torch.zeros_like(errors), reduction="none")
        else:
            each = 0.5 * errors.square()
        return (each * windows.masks).sum(dim=(0, 2))

    def windows(self, batch: SequenceBatch) -> Windows:
        """A batch as tensors; steps beyond every window are dropped."""
        burn_in, trained = self.settings.burn_in, int(batch.lengths.max())
        end = burn_in + trained
        used, is_seen = batch.is_used(burn_in), _is_seen(batch, burn_in)
        actions = np.where(used, batch.actions, 0)
        rewards = np.where(used, batch.rewards, 0.0)
        behaviour = np.where(used, batch.behaviour_probabilities, 1.0)
        previous_actions, previous_rewards = _previous(batch, actions, used, burn_in)
        steps = equations.Steps(
            actions=self._time_first(actions[:, burn_in:end]),
            rewards=self._time_first(rewards[:, burn_in:end]).float(),
            behaviour=self._time_first(behaviour[:, burn_in:end]).float(),
            lengths=self._tensor(batch.lengths),
            terminated=self._tensor(batch.terminated),
        )
        frames = self._tensor(batch.observations)
        observations = frames[:, : end + 1]
        if observations.is_floating_point():
            # Bytes are always finite; unwritten floats may be anything.
            unseen = self._tensor(~is_seen[:, : end + 1]).unsqueeze(-1)
            observations = observations.flatten(2).masked_fill(unseen, 0.0).view_as(observations)
        return Windows(
            observations=observations.transpose(0, 1),
            actions=self._time_first(previous_actions[:, : end + 1]),
            rewards=self._time_first(previous_rewards[:, : end + 1]).float(),
            state=State(self._tensor(batch.state_h).float(), self._tensor(batch.state_c).float()),
            prefix_lengths=batch.prefix_lengths,
            steps=steps,
            weights=self._tensor(batch.weights).float(),
            masks=self._masks(batch.masks[:, burn_in:end]),
            fields=self._fields(frames, is_seen[:, : end + 1]),
        )

    def state_dict(self) -> dict[str, Any]:
        """Everything that later updates and actions depend on, as nested copies of tensors."""
        return tensor_states.copied(self._state())

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Continue from the state of a learner with the same settings and any seed."""
        own = self._state()
        tensor_states.check_like("state", state, own)
        self.num_updates = int(state["num_updates"])
        for part in ("online", "target", "optimizer"):
            tensor_states.copy_into(own[part], state[part])

    def _state(self) -> dict[str, Any]:
        """The tensors themselves, as far as they exist."""
        return {
            "online": self.online.state_dict(),
            "target": self.target.state_dict(),
            "optimizer": tensor_states.moments(self._optimizer, self.online),
            "num_updates": torch.tensor(self.num_updates),
        }

    def _network(self) -> RecurrentNetwork:
        """A network with the initial parameters, the same on every call."""
        generator = tensor_states.generators(self.seed, "parameters")["parameters"]
        return RecurrentNetwork(self.network_settings, generator).to(self.device)

    def _fields(self, frames: Tensor, is_seen: BoolArray) -> Fields | None:
        """The distinct fields of all windows, for both networks.

        Args:
            frames: observations, [batch, ...].
            is_seen: whether each of the first observations matters, [batch, ...].
        """
        burn_in, (size, steps) = self.settings.burn_in, is_seen.shape
        numbers = np.arange(size * frames.shape[1]).reshape(size, -1)
        # The first trained observation stands for those that do not matter.
        numbers = np.where(is_seen, numbers[:, :steps], numbers[:, burn_in, None]).T
        # Gradients flow to the observations after the prefixes only.
        rows = np.concatenate([numbers[burn_in:], numbers[:burn_in]]).reshape(-1)
        split = (steps - burn_in) * size
        return self.online.torso.fields(frames.flatten(0, 1), split, rows=rows, lanes=size)

    def _look(self, network: RecurrentNetwork, windows: Windows) -> tuple[Tensor, Tensor]:
        """Features of the prefixes, without gradients, and of all later observations."""
        burn_in, torso = self.settings.burn_in, network.torso
        num_steps, batch_size = windows.observations.shape[:2]
        if windows.fields is not None:
            trained, prefixes = torso.of_fields(windows.fields)
        else:
            with torch.no_grad():
                prefixes = torso.dense(windows.observations[:burn_in].flatten(0, 1))
            trained = torso.dense(windows.observations[burn_in:].flatten(0, 1))
        return (
            prefixes.view(burn_in, batch_size, torso.num_features),
            trained.view(num_steps - burn_in, batch_size, torso.num_features),
        )

    def _unroll(self, network: RecurrentNetwork, windows: Windows) -> Tensor:
        """Rescaled values from the first trained observation on, [T + 1, batch, heads, actions]."""
        burn_in = self.settings.burn_in
        prefixes, trained = self._look(network, windows)
        state = _warm_up(network, prefixes, windows)
        q, _ = network.values(trained, windows.actions[burn_in:], windows.rewards[burn_in:], state)
        return q if self.network_settings.num_heads is not None else q.unsqueeze(2)

    def _masks(self, masks: NDArray[np.uint8]) -> Tensor:
        num_heads = self.network_settings.num_heads
        if num_heads is None:
            return torch.ones((1, 1, 1), device=self.device)
        return self._time_first(head_masks(masks, num_heads)).float()

    def _differentiate(self, batch: SequenceBatch) -> SequenceUpdate:
        """Leave clipped gradients in the parameters; return the loss they come from."""
        windows = self.windows(batch)
        errors, q = self._errors_and_values(windows)
        losses = self.losses(windows, errors)
        self._require_finite("losses", losses.detach())
        # Paper: Adam's ε is large, so that means over time would silently shorten its steps.
        loss = (windows.weights * losses).mean()
        torch.autograd.backward(loss)
        settings = self.settings
        norm = clip_gradients(
            self.online, settings.largest_gradient_norm, self.num_updates, self.seed
        )
        priorities = equations.priorities(
            windows.steps, errors.detach(), settings.max_share, settings.least_priority
        )
        greedy = equations.greedy_mean(windows.steps, q, self.return_settings.rescaling)
        return SequenceUpdate(loss.item(), priorities.double().cpu().numpy(), norm, greedy.item())

    def _errors_and_values(self, windows: Windows) -> tuple[Tensor, Tensor]:
        """Errors, and the values of the online network, without gradients."""
        q = self._unroll(self.online, windows)
        with torch.no_grad():
            target_q = self._unroll(self.target, windows)
        targets = equations.targets(windows.steps, q.detach(), target_q, self.return_settings)
        return equations.td_errors(windows.steps, q, targets), q.detach()

    def _check(self, batch: SequenceBatch) -> None:
        settings, network = self.settings, self.network_settings
        if len(batch.actions) != settings.batch_size:
            raise require.refuse("batch", f"hold {settings.batch_size} rows", len(batch.actions))
        sequence_batch.check(
            batch, burn_in=settings.burn_in, length=settings.length, num_actions=network.num_actions
        )
        shape = network.sight.shape
        if batch.observations.shape[2:] != shape:
            rule = f"have shape [batch, steps + 1, {', '.join(map(str, shape))}]"
            raise require.refuse("observations", rule, batch.observations.shape)
        used, trained = batch.is_used(settings.burn_in), batch.is_trained(settings.burn_in)
        sites: dict[str, Any] = {
            "rewards": batch.rewards[trained],
            "seen_rewards": batch.inputs[used],
            "previous_reward": batch.previous_reward,
            "weights": batch.weights,
            "state_h": batch.state_h,
            "state_c": batch.state_c,
        }
        if self._tensor(batch.observations[:0]).is_floating_point():
            sites["observations"] = batch.observations[_is_seen(batch, settings.burn_in)]
        for site, values in sites.items():
            self._require_finite(site, self._tensor(values))
        if self.return_settings.form == "retrace":
            probabilities = batch.behaviour_probabilities[trained]
            if not ((probabilities > 0.0) & (probabilities <= 1.0)).all():
                raise require.refuse("behaviour_probabilities", "lie in (0, 1]", probabilities)

    def _require_finite(self, site: str, values: Tensor) -> None:
        if not torch.isfinite(values).all():
            raise NotFiniteError(site, self.num_updates, self.seed)

    def _tensor(self, array: NDArray[Any] | Tensor) -> Tensor:
        return tensor_states.tensor(array, self.device)

    def _time_first(self, array: NDArray[Any]) -> Tensor:
        return self._tensor(np.ascontiguousarray(array.swapaxes(0, 1)))


def acted_values(
    network: RecurrentNetwork,
    observations: NDArray[Any],
    actions: IntArray,
    rewards: NDArray[np.float32],
    state: State,
) -> tuple[Tensor, State]:
    """The values of `SequenceLearner.values`, of any network and on its device."""
    device = state.h.device
    before = tensor_states.tensor(actions, device), tensor_states.tensor(rewards, device)
    # Not in inference mode: its tensors could not be written to when an episode starts.
    with torch.no_grad():
        return network.step(tensor_states.tensor(observations, device), *before, state)


def initial_priorities(
    q: NDArray[np.float32],
    actions: IntArray,
    rewards: NDArray[np.float32],
    lengths: IntArray,
    terminated: BoolArray,
    *,
    settings: SequenceLearnerSettings,
    return_settings: ReturnSettings,
    behaviour: NDArray[np.float32] | None = None,
) -> FloatArray:
    """An actor's priorities for new windows: as the learner's, with its own values as targets.

    Args:
        q: rescaled values that the actor acted on, [batch, T + 1, (heads,) actions].
        actions: [batch, T].
        rewards: [batch, T].
        lengths: trained steps of each window, [batch].
        terminated: whether its last step ended the game, [batch].
        settings: settings of the learner.
        return_settings: return settings of the learner.
        behaviour: probabilities of the actions when chosen, needed by retrace, [batch, T].

    Returns:
        [batch].
    """
    values = torch.as_tensor(q).transpose(0, 1)
    values = values.unsqueeze(2) if values.ndim == 3 else values
    if behaviour is None:
        if return_settings.form == "retrace":
            raise require.refuse("behaviour", "be given for retrace", behaviour)
        behaviour = np.ones(actions.shape, dtype=np.float32)
    is_there = np.arange(actions.shape[1]) < lengths[:, None]
    done, earned = np.where(is_there, actions, 0), np.where(is_there, rewards, 0.0)
    steps = equations.Steps(
        actions=torch.as_tensor(done).T,
        rewards=torch.as_tensor(earned).T.to(values.dtype),
        behaviour=torch.as_tensor(np.where(is_there, behaviour, 1.0)).T.to(values.dtype),
        lengths=torch.as_tensor(lengths),
        terminated=torch.as_tensor(terminated),
    )
    targets = equations.targets(steps, values, values, return_settings)
    errors = equations.td_errors(steps, values, targets)
    mixed = equations.priorities(steps, errors, settings.max_share, settings.least_priority)
    return mixed.double().numpy()


@torch.no_grad()
def _warm_up(network: RecurrentNetwork, prefixes: Tensor, windows: Windows) -> State:
    """States after the prefixes; rows with equal prefix lengths run together, unpadded.

    Args:
        network: the network.
        prefixes: features of the prefixes, [longest, batch, features].
        windows: the windows.
    """
    burn_in = len(prefixes)
    inputs = (prefixes, windows.actions, windows.rewards)
    h, c = (part.clone() for part in windows.state)
    for length in np.unique(windows.prefix_lengths):
        if length > 0:
            is_chosen = windows.prefix_lengths == length
            rows: slice | Tensor = slice(None)  # most batches need no indexing, which copies
            if not is_chosen.all():
                rows = torch.as_tensor(np.flatnonzero(is_chosen), device=h.device)
            span = slice(burn_in - int(length), burn_in)
            seen, actions, rewards = (part[span, rows] for part in inputs)
            h[rows], c[rows] = network.advance(seen, actions, rewards, State(h[rows], c[rows]))
    return State(h, c)


def _is_seen(batch: SequenceBatch, burn_in: int) -> BoolArray:
    """Which observations matter: those acted on, and the last if the game continues after it."""
    seen = np.zeros((len(batch.actions), batch.actions.shape[1] + 1), dtype=np.bool_)
    seen[:, :-1] = batch.is_used(burn_in)
    seen[np.arange(len(seen)), burn_in + batch.lengths] = ~batch.terminated
    return seen


def _previous(
    batch: SequenceBatch, actions: IntArray, used: BoolArray, burn_in: int
) -> tuple[IntArray, NDArray[np.float32]]:
    """Actions and rewards before each observation, as the actor saw them, [batch, steps + 1]."""
    rows, firsts = np.arange(len(actions)), burn_in - batch.prefix_lengths
    before = np.full((len(actions), actions.shape[1] + 1), NO_ACTION, dtype=np.int64)
    before[:, 1:] = actions
    before[rows, firsts] = batch.previous_action
    earned = np.zeros(before.shape, dtype=np.float32)
    earned[:, 1:] = np.where(used, batch.inputs, 0.0)
    earned[rows, firsts] = batch.previous_reward
    return before, earned
