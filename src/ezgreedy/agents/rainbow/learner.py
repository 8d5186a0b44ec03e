"""The learner of Rainbow: batches in, a better network and new priorities out.

One update draws noise three times, independently: for the online network in the state where the
action was taken, for the online network n steps later, which chooses an action, and for the target
network, which values it. Acting draws from its own generator, so that reading values, as in an
evaluation, does not change what is learned.
"""

import math
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from ezgreedy import requirements as require
from ezgreedy.agents.rainbow.heads import Heads, loss_gradient, target_distribution
from ezgreedy.agents.rainbow.learner_settings import LearnerSettings, NetworkSettings
from ezgreedy.agents.rainbow.network import RainbowNetwork
from ezgreedy.agents.rainbow.noisy_adam import Gradient, NoisyAdam, gradient_norm
from ezgreedy.agents.rainbow.targets import (
    cross_entropy,
    double_q_target,
    expected_values,
    weighted_loss,
)
from ezgreedy.learning import tensor_states
from ezgreedy.learning.gradients import NotFiniteError, clip_gradients
from ezgreedy.replay.frames import ByteArray
from ezgreedy.replay.transition_replay import Batch
from ezgreedy.requirements import FloatArray, IntArray


class Update(NamedTuple):
    """The result of one update."""

    loss: float  # the weighted mean that was minimised
    losses: FloatArray  # unweighted loss of each transition: its new priority, [batch]
    gradient_norm: float  # before clipping
    q_values: float  # greedy values of the states before the update, their mean


class Learner:
    """A network, the copy that targets come from, and the optimiser between them.

    Args:
        network_settings: settings of both networks.
        settings: settings of learning.
        seed: any non-negative int; determines initial parameters and all noise.
        device: device of the networks.
    """

    def __init__(
        self,
        network_settings: NetworkSettings,
        settings: LearnerSettings,
        *,
        seed: int,
        device: str = "cpu",
    ) -> None:
        self.seed = require.integer("seed", seed, least=0, most=None)
        self.network_settings = network_settings
        self.settings = settings
        self.device = torch.device(device)
        self.num_updates = 0
        self._generators = tensor_states.generators(self.seed, "learning", "acting")
        self.online = self._network(self._generators["learning"])
        self.target = self.online
        if settings.has_target_network:
            self.target = self._network(self._generators["learning"])
            self.target.requires_grad_(False)
            self._sync()
        self._actor = self.actor(self._generators["acting"])
        self._optimizer = tensor_states.adam(
            self.online, settings.learning_rate, settings.adam_epsilon
        )
        self._written: tuple[Heads, Heads] | None = None
        if self.device.type == "cpu":
            self._written = Heads(self.online), Heads(self.target)
            self._adam = NoisyAdam(self._optimizer)

    def actor(self, generator: torch.Generator) -> RainbowNetwork:
        """The online network with noise from another generator; it follows every update.

        Args:
            generator: a CPU generator, also used to make the network.
        """
        network = self._network(generator)
        # The tensors themselves, not copies.
        network.load_state_dict(self.online.state_dict(), assign=True)
        return network.requires_grad_(False)

    def values(self, states: ByteArray) -> NDArray[np.float32]:
        """Q with fresh noise, which all rows share, [batch, actions].

        Args:
            states: the states, [batch, channels, height, width].
        """
        with torch.inference_mode():
            values = self._actor.values(self._tensor(states)).cpu().numpy()
        self._require_finite("values", values)
        return values

    def greedy(self, states: ByteArray) -> IntArray:
        """The actions of largest value with fresh noise, the first among equals, [batch]."""
        return self.values(states).argmax(axis=1)

    def update(self, batch: Batch) -> Update:
        """Learn from one batch; the losses returned are its new priorities.

        Raises:
            NotFiniteError: returns, losses or gradients are not finite. Nothing has changed.
        """
        self._check(batch)
        noise = self._generators["learning"].get_state()
        try:
            if self._written is not None:
                update, gradients, scale = self._write_out(batch, *self._written)
            else:
                update = self._differentiate(batch)
        except BaseException:
            self._generators["learning"].set_state(noise)
            self._optimizer.zero_grad(set_to_none=True)
            raise
        if self._written is not None:
            self._adam.step(gradients, scale)
        else:
            self._optimizer.step()
        self._optimizer.zero_grad(set_to_none=True)
        self.num_updates += 1
        if self.num_updates % self.settings.updates_per_target_sync == 0:
            self._sync()
        return update

    def losses(self, batch: Batch) -> Tensor:
        """The unweighted cross-entropy of each transition, differentiable, [batch]."""
        return self._losses_and_logits(batch)[0]

    def state_dict(self) -> dict[str, Any]:
        """Everything that later updates and actions depend on: copies, tensors only, nested."""
        return tensor_states.copied(self._state())

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Continue from a state of a learner with the same settings and any seed."""
        own = self._state()
        tensor_states.check_like("state", state, own)
        for name, generator in self._generators.items():
            generator.set_state(state["generators"][name].cpu())
        self.num_updates = int(state["num_updates"])
        for part in ("online", "target", "optimizer"):
            tensor_states.copy_into(own.get(part, {}), state.get(part, {}))

    def _state(self) -> dict[str, Any]:
        """The tensors themselves, where there are any."""
        networks = {"online": self.online.state_dict()}
        if self.target is not self.online:
            networks["target"] = self.target.state_dict()
        generators = {name: made.get_state() for name, made in self._generators.items()}
        return {
            **networks,
            "optimizer": tensor_states.moments(self._optimizer, self.online),
            "generators": generators,
            "num_updates": torch.tensor(self.num_updates),
        }

    def _network(self, generator: torch.Generator) -> RainbowNetwork:
        return RainbowNetwork(self.network_settings, generator).to(self.device)

    def _sync(self) -> None:
        if self.target is not self.online:
            self.target.load_state_dict(self.online.state_dict())

    def _check(self, batch: Batch) -> None:
        size = self.settings.batch_size
        require.actions("actions", batch.actions, size, self.network_settings.num_actions)
        if batch.frames.shape[:2] != (2, size):
            raise require.refuse("frames", f"hold 2 times {size} states", batch.frames.shape[:2])
        for name in ("returns", "discounts", "weights"):
            array = getattr(batch, name)
            if array.shape != (size,):
                raise require.refuse(name, f"have shape {(size,)}", array.shape)
            self._require_finite(name, array)

    def _differentiate(self, batch: Batch) -> Update:
        """Leave clipped gradients in the parameters, and return their losses and norm."""
        losses, logits_tm1 = self._losses_and_logits(batch)
        loss = weighted_loss(losses, self._tensor(batch.weights).to(losses.dtype))
        unweighted = losses.detach().cpu().numpy().astype(np.float64)
        self._require_finite("losses", unweighted)
        torch.autograd.backward(loss)
        norm = clip_gradients(self.online, self._largest_norm, self.num_updates, self.seed)
        return Update(loss.item(), unweighted, norm, self._greedy_mean(logits_tm1.detach()))

    def _losses_and_logits(self, batch: Batch) -> tuple[Tensor, Tensor]:
        features_tm1, features_t, target_features_t = self._features(batch)
        target = self._targets(batch, features_t, target_features_t)
        logits_tm1 = self.online.heads(features_tm1)
        return cross_entropy(logits_tm1, self._tensor(batch.actions), target), logits_tm1

    def _greedy_mean(self, logits: Tensor) -> float:
        return expected_values(logits, self.online.atoms).amax(dim=-1).mean().item()

    def _write_out(
        self, batch: Batch, online: Heads, target: Heads
    ) -> tuple[Update, list[Gradient], float]:
        """The same on a CPU: the gradients, and the factor to multiply them by."""
        features_tm1, features_t, target_features_t = self._features(batch)
        (of_target,) = target.run(target_features_t)
        inputs = [features_t] if self._selects_apart else []
        *of_selector, passed = online.run(*inputs, features_tm1.detach())
        selector_t = (of_selector or [of_target])[0].logits
        a_t = expected_values(selector_t, self.online.atoms).argmax(dim=-1)
        arguments = batch.returns, batch.discounts, of_target.logits, a_t, self.online.atoms
        weights = batch.weights.astype(np.float32)
        losses, of_outputs = loss_gradient(
            passed.logits, batch.actions, target_distribution(*arguments), weights
        )
        self._require_finite("losses", losses)
        of_features, gradients = online.gradients(passed, of_outputs)
        torch.autograd.backward(features_tm1, of_features)
        for parameter in self.online.torso.parameters():
            assert parameter.grad is not None
            gradients.append(Gradient(parameter, parameter.grad.view(len(parameter), -1)))
        norm = gradient_norm(gradients, self.online, self.num_updates, self.seed)
        scale = self._largest_norm / norm if norm > self._largest_norm else 1.0
        loss = float((weights * losses).mean())
        q_values = self._greedy_mean(passed.logits)
        return Update(loss, losses.astype(np.float64), norm, q_values), gradients, scale

    def _features(self, batch: Batch) -> tuple[Tensor, Tensor, Tensor]:
        """Features of states and next states, and of the latter in the target network.

        The torso has no noise, so one pass of the online network serves both; repeated fields in
        the frames are found once for all passes.
        """
        online, target = self.online.torso, self.target.torso
        frames = self._tensor(batch.frames)
        fields = online.fields(frames.flatten(0, 1), split=len(batch.states))
        if fields is not None:
            features_tm1, features_t = online.of_fields(fields)
            is_same = target is online
            return features_tm1, features_t, features_t if is_same else target.of_second(fields)
        with torch.no_grad():
            target_features_t = target.dense(frames[1])
            features_t = online.dense(frames[1]) if self._selects_apart else target_features_t
        return online.dense(frames[0]), features_t, target_features_t

    @torch.no_grad()
    def _targets(self, batch: Batch, features_t: Tensor, target_features_t: Tensor) -> Tensor:
        logits_t = self.target.heads(target_features_t)
        selector_t = self.online.heads(features_t) if self._selects_apart else logits_t
        r_t, discount_t = self._tensor(batch.returns), self._tensor(batch.discounts)
        return double_q_target(r_t, discount_t, logits_t, selector_t, self.online.atoms)

    @property
    def _selects_apart(self) -> bool:
        """Whether choosing needs its own pass: not if it would repeat the target's."""
        repeats = self.target is self.online and self.network_settings.sigma0 is None
        return self.settings.uses_double_q and not repeats

    @property
    def _largest_norm(self) -> float:
        largest = self.settings.largest_gradient_norm
        return math.inf if largest is None else largest

    def _require_finite(self, site: str, values: NDArray[Any]) -> None:
        if not np.isfinite(values).all():
            raise NotFiniteError(site, self.num_updates, self.seed)

    def _tensor(self, array: NDArray[Any]) -> Tensor:
        return torch.as_tensor(array, device=self.device)
