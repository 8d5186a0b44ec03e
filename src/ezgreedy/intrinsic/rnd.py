"""Random network distillation: what a network cannot yet predict is new (Burda et al., 2018).

A predictor learns the outputs of a fixed random network on the observations that a learner's
batches hold, and its error there is a reward. This stands between memory and learner and changes
nothing but what is learned from: the learner does not know of it, and neither do actors, whose
networks go on to see the rewards of the game. Needs torch.
"""

import itertools
from collections.abc import Mapping
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from ezgreedy import requirements as require
from ezgreedy.intrinsic.moments import RunningMoments
from ezgreedy.intrinsic.rnd_settings import DistillationSettings
from ezgreedy.learning import tensor_states
from ezgreedy.learning.gradients import NotFiniteError, clip_gradients
from ezgreedy.learning.recurrent_network import convolutions, linear
from ezgreedy.learning.seeing import Seeing
from ezgreedy.learning.settings import Sight
from ezgreedy.replay.sequence_batch import Float32Array, SequenceBatch
from ezgreedy.requirements import BoolArray, FloatArray

_ADAM_EPSILON = 1e-8  # torch's own; the paper gives none for the predictor


class RandomNetworkDistillation:
    """Adds a bonus to the rewards of batches, and learns from the same batches.

    The bonus of step t is for the observation that it led to, the last of a game too, and comes
    from the predictor before it learns from this batch. With scale 0 rewards stay as they are, and
    the predictor still learns.

    Args:
        settings: what networks look like, how they learn and how errors are rewarded.
        sight: what observations are.
        burn_in: the longest prefix of a window; its observations are neither learned nor rewarded.
        seed: any non-negative int; determines both networks.
        device: where networks compute.
    """

    def __init__(
        self,
        settings: DistillationSettings,
        sight: Sight,
        *,
        burn_in: int,
        seed: int,
        device: str = "cpu",
    ) -> None:
        if settings.torso and len(sight.shape) == 1:
            raise require.refuse("torso", "be empty for vectors", settings.torso)
        self.settings = settings
        self.sight = sight
        self.burn_in = require.integer("burn_in", burn_in, least=0)
        self.seed = require.integer("seed", seed, least=0, most=None)
        self.device = torch.device(device)
        self.num_updates = 0
        streams = tensor_states.generators(self.seed, "predictor", "random")
        self.predictor = _network(settings, sight, streams["predictor"]).to(self.device)
        self.random = _network(settings, sight, streams["random"]).to(self.device)
        self.random.requires_grad_(False)
        self._seeing = Seeing(sight).to(self.device)
        self.moments = RunningMoments()
        self._optimizer = tensor_states.adam(self.predictor, settings.learning_rate, _ADAM_EPSILON)

    def __call__(self, batch: SequenceBatch) -> SequenceBatch:
        """The batch with bonuses in what is learned from; what networks see stays the game's.

        Raises:
            NotFiniteError: errors or gradients are not finite. Nothing has changed.
        """
        is_trained = batch.is_trained(self.burn_in)
        reached = np.zeros((len(is_trained), is_trained.shape[1] + 1), dtype=np.bool_)
        reached[:, 1:] = is_trained
        observations = self._tensor(batch.observations[reached])
        try:
            errors = self._differentiate(observations, self._teaches(batch, is_trained))
        except BaseException:
            self._optimizer.zero_grad(set_to_none=True)
            raise
        self._optimizer.step()
        self._optimizer.zero_grad(set_to_none=True)
        self.num_updates += 1
        self.moments.update(errors)
        rewards: Float32Array = batch.rewards.copy()
        rewards[is_trained] += (self.settings.scale * self.bonuses(errors)).astype(np.float32)
        return batch._replace(rewards=rewards, seen_rewards=batch.inputs)

    def errors(self, observations: NDArray[Any]) -> FloatArray:
        """How far off the predictor is: e = mean_k (f̂_k − f_k)² of each observation, [batch].

        Args:
            observations: [batch, ...].
        """
        with torch.no_grad():
            errors: FloatArray = self._errors(self._tensor(observations)).double().cpu().numpy()
        return errors

    def bonuses(self, errors: FloatArray) -> FloatArray:
        """Errors normalised by the moments so far and cut; 0 while all errors were the same."""
        variance = self.moments.variance
        if not variance > 0.0:
            return np.zeros_like(errors)
        forms = {
            "var": lambda: errors / variance,
            "std": lambda: errors / self.moments.std,
            "ngu": lambda: (errors - self.moments.mean) / self.moments.std,
        }
        normalised = forms[self.settings.normalisation]()
        return normalised.clip(0.0, self.settings.largest_bonus)

    def measurements(self) -> dict[str, float]:
        """The moments of errors so far, by which bonuses are divided."""
        return {
            "prediction_error": self.moments.mean,
            "prediction_error_std": self.moments.std,
        }

    def state_dict(self) -> dict[str, Any]:
        """Everything that later bonuses depend on: copies, nested."""
        return {**tensor_states.copied(self._state()), "moments": self.moments.state_dict()}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Continue from a state of an object with the same settings, of any seed."""
        own = self._state()
        tensors = {name: part for name, part in state.items() if name != "moments"}
        tensor_states.check_like("state", tensors, own)
        self.moments.load_state_dict(state["moments"])
        self.num_updates = int(state["num_updates"])
        for part in ("predictor", "random", "optimizer"):
            tensor_states.copy_into(own[part], state[part])

    def _state(self) -> dict[str, Any]:
        """The tensors themselves, where there are any."""
        return {
            "predictor": self.predictor.state_dict(),
            "random": self.random.state_dict(),
            "optimizer": tensor_states.moments(self._optimizer, self.predictor),
            "num_updates": torch.tensor(self.num_updates),
        }

    def _errors(self, observations: Tensor) -> Tensor:
        seen = self._seeing(observations)
        return (self.predictor(seen) - self.random(seen)).square().mean(dim=1)

    def _teaches(self, batch: SequenceBatch, is_trained: BoolArray) -> BoolArray:
        """Which of the trained steps train the predictor too, [steps of all windows]."""
        ends = self.burn_in + batch.lengths[:, None]
        positions = np.arange(is_trained.shape[1])
        most = self.settings.steps_per_window or is_trained.shape[1]
        return (positions >= ends - most)[is_trained]

    def _differentiate(self, observations: Tensor, teaches: BoolArray) -> FloatArray:
        """Leave clipped gradients in the predictor's parameters; the errors of all observations."""
        if teaches.all():
            errors = taught = self._errors(observations)
        else:
            with torch.no_grad():
                errors = self._errors(observations)
            taught = self._errors(observations[self._tensor(teaches)])
        self._require_finite("errors", errors.detach())
        torch.autograd.backward(taught.mean())
        clip_gradients(
            self.predictor, self.settings.largest_gradient_norm, self.num_updates, self.seed
        )
        return errors.detach().double().cpu().numpy()

    def _require_finite(self, site: str, values: Tensor) -> None:
        if not torch.isfinite(values).all():
            raise NotFiniteError(site, self.num_updates, self.seed)

    def _tensor(self, array: NDArray[Any]) -> Tensor:
        return tensor_states.tensor(array, self.device)


def _network(
    settings: DistillationSettings, sight: Sight, generator: torch.Generator
) -> nn.Sequential:
    """Convolutions, then linear layers with ReLU between them."""
    torso, num_features = convolutions(sight.input_shape, settings.torso, "valid", generator)
    layers: list[nn.Module] = [torso, nn.Flatten()]
    sizes = (num_features, *settings.hidden_sizes, settings.num_outputs)
    for num_inputs, num_outputs in itertools.pairwise(sizes):
        layers += [linear(num_inputs, num_outputs, generator), nn.ReLU(inplace=True)]
    return nn.Sequential(*layers[:-1])
