"""How do planes, greys and colours become a picture for people?"""

import numpy as np
from numpy.typing import NDArray

from ezgreedy.games.protocol import Frames

SIDE = 160  # about as many pixels as the console's screen is wide

# Far apart in hue or in brightness, so that neighbouring planes look different; further planes
# reuse the colours from the first.
_COLOURS = np.array(
    [
        (86, 180, 233),
        (240, 228, 66),
        (213, 94, 0),
        (0, 158, 115),
        (204, 121, 167),
        (255, 255, 255),
        (0, 114, 178),
        (230, 159, 0),
        (148, 103, 189),
        (127, 127, 127),
    ],
    dtype=np.uint8,
)


def of_planes(planes: NDArray[np.bool_]) -> Frames:
    """Binary planes [height, width, planes] as RGB: one colour for each, later ones on top.

    Every square becomes a block of pixels, so that the longer side has about `SIDE` pixels.
    """
    height, width, count = planes.shape
    picture = np.zeros((height, width, 3), dtype=np.uint8)
    for plane in range(count):
        picture[planes[..., plane]] = _COLOURS[plane % len(_COLOURS)]
    block = max(1, SIDE // max(height, width))
    return picture.repeat(block, axis=0).repeat(block, axis=1)


def of_screen(screen: Frames) -> Frames:
    """A grey [height, width] or coloured [height, width, 3] screen as RGB, a copy."""
    coloured = screen if screen.ndim == 3 else screen[..., None]
    return np.broadcast_to(coloured, (*screen.shape[:2], 3)).copy()
