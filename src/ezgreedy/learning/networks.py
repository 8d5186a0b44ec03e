"""The networks of Rainbow: convolutions, noisy layers, and a duelling distributional head.

Frames in, logits over atoms for every action out. All randomness, initial parameters and noise
alike, comes from the one generator a network is built with, and from the processor's also when the
network computes elsewhere: numbers are then the same on every device, and a saved generator
continues the noise.
"""

import math
from collections.abc import Sequence
from typing import cast

import torch
from torch import Tensor, nn
from torch.nn import functional

from ezgreedy import requirements as require
from ezgreedy.learning.noise import noisy_product, signed_root_noise
from ezgreedy.learning.settings import NetworkSettings
from ezgreedy.learning.targets import expected_values, support

# Up to here two products with a batch cost less than adding up the weights first.
_LARGEST_BATCH_OF_TWO_PRODUCTS = 8


class NoisyLinear(nn.Module):
    """y = (μ_W + σ_W ⊙ f(ε_out)f(ε_in)ᵀ)·x + μ_b + σ_b ⊙ f(ε_out), with f(e) = sign(e)·√|e|.

    Every call draws ε anew, once for the whole batch. Without noise, or with σ = 0, this is an
    ordinary linear layer with weights μ.

    Args:
        num_inputs: features in.
        num_outputs: features out.
        sigma0: σ starts as σ0/√num_inputs, for weights and biases.
        generator: where initial means and all noise come from; a CPU generator.
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
        """How many normal variables one draw takes: one an input and one an output."""
        return sum(self.weight_mean.shape)

    def draw_noise(self) -> Tensor:
        """The next f(ε_in), then f(ε_out), [num_noises]."""
        return signed_root_noise(self.num_noises, self._generator, self.weight_mean.device)

    def forward(self, inputs: Tensor, noise: Tensor | None = None) -> Tensor:
        """The layer's outputs, [batch, outputs].

        Args:
            inputs: [batch, inputs].
            noise: f(ε_in), then f(ε_out), [num_noises]; drawn anew if None.
        """
        if not self.is_noisy:
            return functional.linear(inputs, self.weight_mean, self.bias_mean)
        if noise is None:
            noise = self.draw_noise()
        noise_in, noise_out = noise.split_with_sizes(self.weight_mean.shape[::-1])
        if len(inputs) <= _LARGEST_BATCH_OF_TWO_PRODUCTS:
            mean = functional.linear(inputs, self.weight_mean, self.bias_mean)
            sigma = functional.linear(inputs * noise_in, self.weight_sigma, self.bias_sigma)
            return torch.addcmul(mean, sigma, noise_out)
        if self.bias_mean is None:
            bias = self.bias_sigma * noise_out
        else:
            bias = torch.addcmul(self.bias_mean, self.bias_sigma, noise_out)
        return noisy_product(inputs, self.weight_mean, self.weight_sigma, bias, noise)


class Stream(nn.Sequential):
    """Hidden layer, ReLU, and the layer of atoms."""

    def forward(self, features: Tensor, noises: Sequence[Tensor] = ()) -> Tensor:
        """Atoms of one row or of several, one after the other, [batch, rows · atoms].

        Args:
            features: [batch, features].
            noises: of the two layers; if there are none, each does what it does by itself.
        """
        hidden, _, head = self
        if not noises:
            return cast(Tensor, head(hidden(features).relu_()))
        return cast(Tensor, head(hidden(features, noises[0]).relu_(), noises[1]))


class RainbowNetwork(nn.Module):
    """Torso, then a value and an advantage stream of their own, combined atom by atom.

    logits[a, i] = v[i] + adv[a, i] − mean_a adv[a, i].

    Args:
        settings: what the network looks like.
        generator: a CPU generator of its own; two networks that share one take turns.
    """

    atoms: Tensor

    def __init__(self, settings: NetworkSettings, generator: torch.Generator) -> None:
        super().__init__()
        self.settings = settings
        self.torso, num_features = _torso(settings, generator)
        outputs = {"value": 1, "advantage": settings.num_actions}
        self.streams = nn.ModuleDict(
            {
                name: Stream(
                    _linear(settings, num_features, settings.hidden_size, generator, True),
                    nn.ReLU(),
                    _linear(
                        settings, settings.hidden_size, rows * settings.num_atoms, generator, False
                    ),
                )
                for name, rows in outputs.items()
            }
        )
        atoms = support(settings.least_value, settings.most_value, settings.num_atoms)
        self.register_buffer("atoms", atoms, persistent=False)
        self._generator = generator
        self._noisy_layers = [layer for layer in self.modules() if isinstance(layer, NoisyLinear)]
        self._num_noises = [layer.num_noises for layer in self._noisy_layers]
        self._is_noisy = bool(self._noisy_layers)

    def forward(self, states: Tensor) -> Tensor:
        """Logits, [batch, actions, atoms].

        Args:
            states: uint8, [batch, channels, height, width].
        """
        if states.shape[1:] != self.settings.input_shape:
            rule = f"have shape [batch, {', '.join(map(str, self.settings.input_shape))}]"
            raise require.refuse("states", rule, tuple(states.shape))
        # One product instead of a conversion and a quotient.
        pixels = states * (1.0 / self.settings.largest_pixel)
        if len(self.settings.torso) > 1:
            # Deep torsos are faster with the channels of a pixel side by side; a single
            # convolution does not earn back the rearrangement.
            pixels = pixels.contiguous(memory_format=torch.channels_last)
        features = self.torso(pixels).flatten(1)
        noises = self.draw_noises()
        value = self.streams["value"](features, noises[:2]).unsqueeze(1)
        advantage = self.streams["advantage"](features, noises[2:])
        advantage = advantage.view(-1, self.settings.num_actions, self.settings.num_atoms)
        return advantage + (value - advantage.mean(dim=1, keepdim=True))

    def draw_noises(self) -> Sequence[Tensor]:
        """Noise of one pass, a part for each layer, all from one draw; nothing without noise."""
        if not self._is_noisy:
            return ()
        device = self.atoms.device
        noise = signed_root_noise(sum(self._num_noises), self._generator, device)
        return noise.split_with_sizes(self._num_noises)

    def values(self, states: Tensor) -> Tensor:
        """Q, [batch, actions]."""
        return expected_values(self(states), self.atoms)

    def set_noise(self, is_noisy: bool) -> None:
        """Switch noise on or off in every layer that has any, say for an evaluation without it."""
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
    layer = nn.Linear(num_inputs, num_outputs, device="meta").to_empty(device="cpu")
    _initialise(layer, num_inputs, generator)
    return layer


def _torso(settings: NetworkSettings, generator: torch.Generator) -> tuple[nn.Sequential, int]:
    """The convolutions, and how many features come out of them."""
    channels, height, width = settings.input_shape
    layers: list[nn.Module] = []
    for row in settings.torso:
        layer = nn.Conv2d(channels, row.channels, row.size, row.stride, device="meta")
        layer.to_empty(device="cpu")
        _initialise(layer, channels * row.size**2, generator)
        layers += [layer, nn.ReLU(inplace=True)]
        channels = row.channels
        height, width = ((n - row.size) // row.stride + 1 for n in (height, width))
        if height < 1 or width < 1:
            raise require.refuse("torso", f"fit {settings.input_shape}", settings.torso)
    return nn.Sequential(*layers), channels * height * width


def _initialise(layer: nn.Module, fan_in: int, generator: torch.Generator) -> None:
    """Weights and biases from U(±1/√fan_in), torch's own law, without torch's own generator.

    Layers come here without values, by way of the meta device, lest that generator be drawn from.
    """
    bound = 1.0 / math.sqrt(fan_in)
    for parameter in layer.parameters():
        nn.init.uniform_(parameter, -bound, bound, generator=generator)
