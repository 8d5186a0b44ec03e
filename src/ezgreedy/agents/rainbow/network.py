"""The networks of Rainbow: convolutions, noisy layers, and a duelling distributional head.

Frames in, logits over atoms for every action out. All randomness, in initial parameters and noise,
comes from the one generator a network is built with. It is a CPU generator even if the network
computes elsewhere, so the numbers are the same on every device, and a saved generator continues the
noise.
"""

import math
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

from ezgreedy.agents.rainbow.learner_settings import NetworkSettings
from ezgreedy.agents.rainbow.noise import noisy_product, signed_root_noise
from ezgreedy.agents.rainbow.targets import expected_values, support
from ezgreedy.learning.layers import initialised
from ezgreedy.learning.settings import Sight
from ezgreedy.learning.torso import Torso


class NoisyLinear(nn.Module):
    """y = (μ_W + σ_W ⊙ f(ε_out)f(ε_in)ᵀ)·x + μ_b + σ_b ⊙ f(ε_out), with f(e) = sign(e)·√|e|.

    Every call draws a new ε, once for the whole batch. Without noise, or with σ = 0, this is an
    ordinary linear layer with weights μ.

    Args:
        num_inputs: number of input features.
        num_outputs: number of output features.
        sigma0: σ starts as σ0/√num_inputs, for weights and biases.
        generator: CPU generator of initial means and all noise.
        has_mean_bias: whether there is a μ_b; σ_b always exists.
    """

    def __init__(
        self,
        num_inputs: int,
        num_outputs: int,
        sigma0: float,
        generator: torch.Generator,
        *,
        has_mean_bias: bool = True,
    ) -> None:
        super().__init__()
        bound, sigma = 1.0 / math.sqrt(num_inputs), sigma0 / math.sqrt(num_inputs)
        weight = torch.empty(num_outputs, num_inputs).uniform_(-bound, bound, generator=generator)
        self.weight_mean = nn.Parameter(weight)
        self.weight_sigma = nn.Parameter(torch.full((num_outputs, num_inputs), sigma))
        if has_mean_bias:
            bias = torch.empty(num_outputs).uniform_(-bound, bound, generator=generator)
            self.bias_mean: nn.Parameter | None = nn.Parameter(bias)
        else:
            self.register_parameter("bias_mean", None)
        self.bias_sigma = nn.Parameter(torch.full((num_outputs,), sigma))
        self.is_noisy = True
        self._generator = generator

    @property
    def num_noises(self) -> int:
        """Normal variables in one draw: one per input and one per output."""
        return sum(self.weight_mean.shape)

    def draw_noise(self) -> Tensor:
        """The next f(ε_in), then f(ε_out), [num_noises]."""
        return signed_root_noise(self.num_noises, self._generator, self.weight_mean.device)

    def forward(self, inputs: Tensor, noise: Tensor | None = None) -> Tensor:
        """The layer's outputs, [batch, outputs].

        Args:
            inputs: the inputs, [batch, inputs].
            noise: f(ε_in), then f(ε_out), [num_noises]; newly drawn if None.
        """
        if not self.is_noisy:
            return functional.linear(inputs, self.weight_mean, self.bias_mean)
        if noise is None:
            noise = self.draw_noise()
        noise_out = noise[self.weight_mean.shape[1] :]
        if self.bias_mean is None:
            bias = self.bias_sigma * noise_out
        else:
            bias = torch.addcmul(self.bias_mean, self.bias_sigma, noise_out)
        return noisy_product(inputs, self.weight_mean, self.weight_sigma, bias, noise)


class PlainLinear(nn.Linear):
    """A linear layer without noise, called like one with noise."""

    def forward(self, inputs: Tensor, noise: Tensor | None = None) -> Tensor:
        """The layer's outputs, [batch, outputs]."""
        return super().forward(inputs)


class RainbowNetwork(nn.Module):
    """A torso, then separate value and advantage streams, combined atom by atom.

    logits[a, i] = v[i] + adv[a, i] − mean_a adv[a, i].

    Args:
        settings: settings of the network.
        generator: its own CPU generator; two networks that share one take turns.
    """

    atoms: Tensor

    def __init__(self, settings: NetworkSettings, generator: torch.Generator) -> None:
        super().__init__()
        self.settings = settings
        sight = Sight(settings.input_shape, settings.largest_pixel)
        self.torso = Torso(sight, settings.torso, generator=generator)
        num_features = self.torso.num_features
        self.streams = nn.ModuleDict()
        hidden: nn.Module | None = None
        for name, rows in (("value", 1), ("advantage", settings.num_actions)):
            if hidden is None or not settings.shares_hidden:
                hidden = _linear(settings, num_features, settings.hidden_size, generator, True)
            num_outputs = rows * settings.num_atoms
            last = _linear(settings, settings.hidden_size, num_outputs, generator, False)
            self.streams[name] = nn.Sequential(hidden, nn.ReLU(), last)
        atoms = support(settings.least_value, settings.most_value, settings.num_atoms)
        self.register_buffer("atoms", atoms, persistent=False)
        self._generator = generator
        self._noisy_layers = [layer for layer in self.modules() if isinstance(layer, NoisyLinear)]
        self._num_noises = [layer.num_noises for layer in self._noisy_layers]
        self._is_noisy = bool(self._noisy_layers)

    def forward(self, states: Tensor) -> Tensor:
        """Logits, [batch, actions, atoms].

        Args:
            states: the states, uint8, [batch, channels, height, width].
        """
        return self.heads(self.torso(states))

    def heads(self, features: Tensor) -> Tensor:
        """Logits with fresh noise, [batch, actions, atoms].

        Args:
            features: features from the torso, [batch, features].
        """
        drawn: Sequence[Tensor | None] = self.draw_noises() or [None] * 4
        noises = iter(drawn)
        hidden: dict[nn.Module, Tensor] = {}
        outputs = {}
        for name, (first, last) in self.streams_in_layers().items():
            if first not in hidden:
                hidden[first] = first(features, next(noises)).relu_()
            outputs[name] = last(hidden[first], next(noises))
        value = outputs["value"].unsqueeze(1)
        shape = (-1, self.settings.num_actions, self.settings.num_atoms)
        advantage = outputs["advantage"].view(shape)
        return advantage + (value - advantage.mean(dim=1, keepdim=True))

    def streams_in_layers(self) -> dict[str, tuple[nn.Module, nn.Module]]:
        """The hidden layer and the last one of each stream; they may share the former."""
        streams: dict[str, Any] = dict(self.streams.items())
        return {name: (stream[0], stream[2]) for name, stream in streams.items()}

    def draw_noises(self) -> Sequence[Tensor]:
        """Noise of one pass, one part per layer, all from one draw; empty without noise."""
        if not self._is_noisy:
            return ()
        device = self.atoms.device
        noise = signed_root_noise(sum(self._num_noises), self._generator, device)
        return noise.split_with_sizes(self._num_noises)

    def values(self, states: Tensor) -> Tensor:
        """Q, [batch, actions]."""
        return expected_values(self(states), self.atoms)

    def set_noise(self, is_noisy: bool) -> None:
        """Switch noise on or off in every noisy layer, for example for an evaluation without it."""
        for layer in self._noisy_layers:
            layer.is_noisy = is_noisy
        self._is_noisy = is_noisy and bool(self._noisy_layers)


def _linear(
    settings: NetworkSettings,
    num_inputs: int,
    num_outputs: int,
    generator: torch.Generator,
    is_hidden: bool,
) -> nn.Module:
    if settings.sigma0 is not None:
        return NoisyLinear(
            num_inputs, num_outputs, settings.sigma0, generator, has_mean_bias=is_hidden
        )
    layer = PlainLinear(num_inputs, num_outputs, device="meta")
    return initialised(layer, "uniform", generator)
