"""Layers of torch whose initial parameters come from our own generator. Needs torch."""

import math

import torch
from torch import nn

from ezgreedy import requirements as require
from ezgreedy.learning.settings import INITIALISATIONS, Convolution


def convolutions(
    input_shape: tuple[int, ...],
    torso: tuple[Convolution, ...],
    padding: str,
    generator: torch.Generator | None,
    initialisation: str = "uniform",
) -> tuple[nn.Sequential, int]:
    """Convolutions with a ReLU after each, none for vectors, and their number of features.

    Args:
        input_shape: [channels, height, width] or [features].
        torso: the convolutions, first to last.
        padding: "valid" or "same".
        generator: random generator of the initial parameters; torch's own generator if None.
        initialisation: one of `settings.INITIALISATIONS`.
    """
    channels, *sides = input_shape
    layers: list[nn.Module] = []
    for row in torso:
        if padding == "same":
            before_after = [_same_padding(side, row) for side in reversed(sides)]
            layers.append(nn.ZeroPad2d((*before_after[0], *before_after[1])))
            sides = [side + sum(_same_padding(side, row)) for side in sides]
        layer = nn.Conv2d(channels, row.channels, row.size, row.stride, device="meta")
        layers += [initialised(layer, initialisation, generator), nn.ReLU(inplace=True)]
        channels = row.channels
        sides = [(side - row.size) // row.stride + 1 for side in sides]
        if min(sides) < 1:
            raise require.refuse("torso", f"fit {input_shape}", torso)
    return nn.Sequential(*layers), channels * math.prod(sides)


def linear(
    num_inputs: int,
    num_outputs: int,
    generator: torch.Generator,
    initialisation: str = "uniform",
) -> nn.Module:
    """A linear layer with initial parameters from our generator.

    Args:
        num_inputs: number of inputs.
        num_outputs: number of outputs.
        generator: random generator of the initial parameters.
        initialisation: one of `settings.INITIALISATIONS`.
    """
    layer = nn.Linear(num_inputs, num_outputs, device="meta")
    return initialised(layer, initialisation, generator)


def _same_padding(side: int, row: Convolution) -> tuple[int, int]:
    """Zeros before and after, for ⌈side / stride⌉ places; an odd one goes after."""
    total = max((math.ceil(side / row.stride) - 1) * row.stride + row.size - side, 0)
    return total // 2, total - total // 2


def initialised(
    layer: nn.Conv2d | nn.Linear, initialisation: str, generator: torch.Generator | None
) -> nn.Module:
    """Initial values for a layer of the meta device, so that torch draws none itself."""
    layer.to_empty(device="cpu")
    require.one_of("initialisation", initialisation, INITIALISATIONS)
    if initialisation == "orthogonal":
        nn.init.orthogonal_(layer.weight, math.sqrt(2.0), generator=generator)
        assert layer.bias is not None
        nn.init.zeros_(layer.bias)
        return layer
    bound = 1.0 / math.sqrt(layer.weight[0].numel())
    for parameter in layer.parameters():
        nn.init.uniform_(parameter, -bound, bound, generator=generator)
    return layer
