"""The learner of Rainbow: batches in, a better network and new priorities out.

One update draws noise three times, independently: for the online network in the state where the
action was taken, for the online network n steps later, which chooses an action, and for the target
network, which values it. Acting draws from a generator of its own, so that looking at values, say
in an evaluation, does not change what is learned.
"""

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from ezgreedy import requirements as require
from ezgreedy.learning import tensor_states
from ezgreedy.learning.gradients import NotFiniteError, clip_gradients
from ezgreedy.learning.networks import RainbowNetwork
from ezgreedy.learning.settings import LearnerSettings, NetworkSettings
from ezgreedy.learning.targets import cross_entropy, double_q_target, weighted_loss
from ezgreedy.replay.frames import ByteArray
from ezgreedy.replay.memory import Batch
from ezgreedy.requirements import FloatArray, IntArray


class Update(NamedTuple):
    """What came of one update."""

    loss: float  # the weighted mean that was descended
    losses: FloatArray  # of each transition, unweighted: its new priority, [batch]
    gradient_norm: float  # before clipping


class Learner:
    """A network, the copy that targets come from, and the optimiser between them.

    Args:
        network_settings: what both networks look like.
        settings: how they learn.
        seed: any non-negative int; determines initial parameters and all noise.
        device: where networks compute.
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

    def actor(self, generator: torch.Generator) -> RainbowNetwork:
        """The online network under noise of another generator; it follows every update.

        Args:
            generator: a CPU generator, which is also drawn from to make the network.
        """
        network = self._network(generator)
        # The tensors themselves, no copies.
        network.load_state_dict(self.online.state_dict(), assign=True)
        return network.requires_grad_(False)

    def values(self, states: ByteArray) -> NDArray[np.float32]:
        """Q under fresh noise, which all rows share, [batch, actions].

        Args:
            states: [batch, channels, height, width].
        """
        with torch.inference_mode():
            values = self._actor.values(self._tensor(states)).cpu().numpy()
        self._require_finite("values", values)
        return values

    def greedy(self, states: ByteArray) -> IntArray:
        """The actions of largest value under fresh noise, the first among equals, [batch]."""
        return self.values(states).argmax(axis=1)

    def update(self, batch: Batch) -> Update:
        """Learn from one batch; what it returns as losses belongs into the priorities.

        Raises:
            NotFiniteError: returns, losses or gradients are not finite. Nothing has changed.
        """
        self._check(batch)
        noise = self._generators["learning"].get_state()
        try:
            update = self._differentiate(batch)
        except BaseException:
            self._generators["learning"].set_state(noise)
            self._optimizer.zero_grad(set_to_none=True)
            raise
        self._optimizer.step()
        self._optimizer.zero_grad(set_to_none=True)
        self.num_updates += 1
        if self.num_updates % self.settings.updates_per_target_sync == 0:
            self._sync()
        return update

    def losses(self, batch: Batch) -> Tensor:
        """The unweighted cross-entropy of each transition, differentiable, [batch]."""
        target = self._targets(batch)
        logits_tm1 = self.online(self._tensor(batch.states))
        return cross_entropy(logits_tm1, self._tensor(batch.actions), target)

    def state_dict(self) -> dict[str, Any]:
        """Everything that later updates and actions depend on: copies, tensors only, nested."""
        return tensor_states.copied(self._state())

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Continue from a state of a learner with the same settings, of any seed."""
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
        for name in ("states", "next_states"):
            if len(getattr(batch, name)) != size:
                raise require.refuse(name, f"hold {size} rows", len(getattr(batch, name)))
        for name in ("returns", "discounts", "weights"):
            array = getattr(batch, name)
            if array.shape != (size,):
                raise require.refuse(name, f"have shape {(size,)}", array.shape)
            self._require_finite(name, array)

    def _differentiate(self, batch: Batch) -> Update:
        """Leave clipped gradients in the parameters, and tell what they come from."""
        losses = self.losses(batch)
        loss = weighted_loss(losses, self._tensor(batch.weights).to(losses.dtype))
        unweighted = losses.detach().cpu().numpy().astype(np.float64)
        self._require_finite("losses", unweighted)
        torch.autograd.backward(loss)
        norm = clip_gradients(
            self.online, self.settings.largest_gradient_norm, self.num_updates, self.seed
        )
        return Update(loss.item(), unweighted, norm)

    @torch.no_grad()
    def _targets(self, batch: Batch) -> Tensor:
        next_states = self._tensor(batch.next_states)
        logits_t = self.target(next_states)
        selector_t = self.online(next_states) if self._selects_apart else logits_t
        r_t, discount_t = self._tensor(batch.returns), self._tensor(batch.discounts)
        return double_q_target(r_t, discount_t, logits_t, selector_t, self.online.atoms)

    @property
    def _selects_apart(self) -> bool:
        """Whether choosing takes a pass of its own: not if it would repeat the target's."""
        repeats = self.target is self.online and self.network_settings.sigma0 is None
        return self.settings.uses_double_q and not repeats

    def _require_finite(self, site: str, values: NDArray[Any]) -> None:
        if not np.isfinite(values).all():
            raise NotFiniteError(site, self.num_updates, self.seed)

    def _tensor(self, array: NDArray[Any]) -> Tensor:
        return torch.as_tensor(array, device=self.device)
