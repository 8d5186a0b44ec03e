"""How networks take in observations: as numbers of about 1, in planes or vectors. Needs torch.

Bytes are divided by the largest of them. Codes of colours, which memories hold in place of three
planes, are looked up in a table here, on the network's device.
"""

import torch
from torch import Tensor, nn
from torch.nn import functional

from ezgreedy.games.atari.palette import colours
from ezgreedy.learning.settings import Sight


class Seeing(nn.Module):
    """The first layer of every network, without parameters.

    Args:
        sight: format of the observations.
    """

    def __init__(self, sight: Sight) -> None:
        super().__init__()
        self.sight = sight
        if sight.has_codes:
            table = torch.tensor(colours(), dtype=torch.float32) / sight.largest_pixel
            # Not part of a network's state, because it never changes.
            self.register_buffer("colours", table, persistent=False)

    def forward(self, observations: Tensor) -> Tensor:
        """[rows, *sight.shape] as float32, [rows, *sight.input_shape]."""
        if not self.sight.has_codes:
            # One product of bytes and a float takes a fraction of a conversion and a division.
            return observations * (1.0 / self.sight.largest_pixel)
        # [rows, planes, height, width, 3]; the three then move next to their plane.
        seen = functional.embedding(observations.int(), self.get_buffer("colours"))
        return seen.permute(0, 1, 4, 2, 3).flatten(1, 2)
