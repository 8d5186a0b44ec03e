"""How networks take in observations: as numbers of about 1, in planes or vectors. Needs torch.

Bytes are divided by the largest of them. Codes of colours, which memories hold in place of three
planes, are looked up in a table here, on the network's device.
"""

from functools import cache
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
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
            # Not part of a network's state, because it never changes.
            table = torch.tensor(seen_values(sight, np.float32))
            self.register_buffer("colours", table, persistent=False)

    def forward(self, observations: Tensor) -> Tensor:
        """[rows, *sight.shape] as float32, [rows, *sight.input_shape]."""
        if not self.sight.has_codes:
            # One product of bytes and a float takes a fraction of a conversion and a division.
            return observations * (1.0 / self.sight.largest_pixel)
        # [rows, planes, height, width, 3]; the three then move next to their plane.
        seen = functional.embedding(observations.int(), self.get_buffer("colours"))
        return seen.permute(0, 1, 4, 2, 3).flatten(1, 2)


@cache
def seen_values(sight: Sight, dtype: type[np.floating[Any]]) -> NDArray[Any]:
    """What a network sees for every byte or code, [values, planes]; do not write to it.

    Args:
        sight: format of the observations.
        dtype: type of the numbers.
    """
    if sight.has_codes:
        values = colours().astype(dtype) / dtype(sight.largest_pixel)
    else:
        values = np.arange(256, dtype=dtype)[:, None] * dtype(1.0 / sight.largest_pixel)
    values.flags.writeable = False
    return values
