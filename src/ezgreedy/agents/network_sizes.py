"""How large are networks, and what surrounds them in memory? Arithmetic only, without torch."""

from math import prod
from typing import NamedTuple

from ezgreedy.learning.settings import Convolution

MOST_ACTIONS = 18  # Atari's; a forecast does not know the game's own, and these weigh little
FLOAT_BYTES = 4
# Online and target network, gradients and Adam's two moments; and, while a checkpoint is written,
# copies of all of these but the gradients.
COPIES_OF_PARAMETERS = 9


class TorsoSize(NamedTuple):
    """The numbers of a torso: its parameters, its outputs, and all activations of one input."""

    num_parameters: int
    num_features: int
    num_activations: int


def torso_size(
    input_shape: tuple[int, ...], torso: tuple[Convolution, ...], padding: str = "valid"
) -> TorsoSize:
    """The numbers of a torso of convolutions.

    Args:
        input_shape: [channels, height, width] or [features].
        torso: the convolutions, first to last; none for vectors.
        padding: "valid" or "same".
    """
    channels, *sides = input_shape
    num_parameters = num_activations = 0
    for row in torso:
        num_parameters += row.channels * (channels * row.size**2 + 1)
        if padding == "same":
            sides = [-(-side // row.stride) for side in sides]
        else:
            sides = [(side - row.size) // row.stride + 1 for side in sides]
        channels = row.channels
        num_activations += channels * prod(sides)
    return TorsoSize(num_parameters, channels * prod(sides), num_activations)
