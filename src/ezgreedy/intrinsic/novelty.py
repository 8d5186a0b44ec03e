"""How new is an observation? A predictor's error about a fixed random network. Needs torch.

Nothing is learned here: this is the part of random network distillation that actors need too.
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
from ezgreedy.intrinsic.settings import DistillationSettings
from ezgreedy.intrinsic.whitening import Whitening
from ezgreedy.learning import tensor_states
from ezgreedy.learning.layers import convolutions, linear
from ezgreedy.learning.seeing import Seeing
from ezgreedy.learning.settings import Sight
from ezgreedy.requirements import FloatArray

_MOMENTS = ("count", "mean", "squares")


class Novelty:
    """Two networks, and the statistics that turn their difference into a bonus.

    Args:
        settings: settings of the networks and of the rewards for errors.
        sight: format of the observations.
        seed: any non-negative int; determines both networks.
        device: device of the networks.
    """

    def __init__(
        self, settings: DistillationSettings, sight: Sight, *, seed: int, device: str = "cpu"
    ) -> None:
        if settings.torso and len(sight.shape) == 1:
            raise require.refuse("torso", "be empty for vectors", settings.torso)
        self.settings = settings
        self.sight = sight
        self.seed = require.integer("seed", seed, least=0, most=None)
        self.device = torch.device(device)
        streams = tensor_states.generators(self.seed, "predictor", "random")
        self.predictor = _network(settings, sight, streams["predictor"]).to(self.device)
        self.random = _network(settings, sight, streams["random"]).to(self.device)
        self.random.requires_grad_(False)
        self._seeing = Seeing(sight).to(self.device)
        self.whitening: Whitening | None = None
        if settings.whitening_bound is not None:
            shape = sight.input_shape
            self.whitening = Whitening(shape, settings.whitening_bound).to(self.device)
        self.moments = RunningMoments(settings.error_memory)

    def errors(self, observations: NDArray[Any]) -> FloatArray:
        """The predictor's error e = mean_k (f̂_k − f_k)² on each observation, [batch].

        Args:
            observations: the observations, [batch, ...].
        """
        with torch.no_grad():
            inputs = self._inputs(self._seen(observations))
            errors: FloatArray = self._errors(inputs).double().cpu().numpy()
        return errors

    def bonuses(self, errors: FloatArray) -> FloatArray:
        """Errors normalised by the moments so far and capped; 0 while all errors are the same."""
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

    def rewards(self, observations: NDArray[Any]) -> FloatArray:
        """What is added to the reward of the step that led to each observation, [batch].

        Args:
            observations: the observations, [batch, ...].
        """
        if not self.moments.variance > 0.0:
            return np.zeros(len(observations))
        return self.settings.scale * self.bonuses(self.errors(observations))

    def weights(self) -> dict[str, Any]:
        """A copy of everything that bonuses depend on, as tensors by name."""
        moments = self.moments.state_dict()
        numbers = torch.tensor([moments[name] for name in _MOMENTS], dtype=torch.float64)
        parts = tensor_states.copied(self._parts()).items()
        flat = {f"{part}.{name}": tensor for part, own in parts for name, tensor in own.items()}
        return {**flat, "moments": numbers}

    def follow(self, weights: Mapping[str, Any]) -> None:
        """Pay as the one does whose `weights` these are.

        Args:
            weights: tensors by name.
        """
        for part, own in self._parts().items():
            tensor_states.copy_into(own, {name: weights[f"{part}.{name}"] for name in own})
        count, mean, squares = weights["moments"].tolist()
        # A count of nothing forgotten is an int, and exact here up to 2⁵³.
        count = int(count) if self.moments.memory is None else count
        self.moments.load_state_dict({"count": count, "mean": mean, "squares": squares})

    def _parts(self) -> dict[str, dict[str, Tensor]]:
        """The tensors themselves that bonuses depend on."""
        parts = {"predictor": self.predictor.state_dict(), "random": self.random.state_dict()}
        if self.whitening is not None:
            parts["whitening"] = self.whitening.state_dict()
        return parts

    def _seen(self, observations: NDArray[Any]) -> Tensor:
        return self._seeing(self._tensor(observations))

    def _inputs(self, seen: Tensor) -> Tensor:
        return seen if self.whitening is None else self.whitening(seen)

    def _errors(self, inputs: Tensor) -> Tensor:
        return (self.predictor(inputs) - self.random(inputs)).square().mean(dim=1)

    def _tensor(self, array: NDArray[Any]) -> Tensor:
        return tensor_states.tensor(array, self.device)


def _network(
    settings: DistillationSettings, sight: Sight, generator: torch.Generator
) -> nn.Sequential:
    """Convolutions, then linear layers with ReLU between them."""
    how = settings.initialisation
    torso, num_features = convolutions(sight.input_shape, settings.torso, "valid", generator, how)
    layers: list[nn.Module] = [torso, nn.Flatten()]
    sizes = (num_features, *settings.hidden_sizes, settings.num_outputs)
    for num_inputs, num_outputs in itertools.pairwise(sizes):
        layers += [linear(num_inputs, num_outputs, generator, how), nn.ReLU(inplace=True)]
    return nn.Sequential(*layers[:-1])
