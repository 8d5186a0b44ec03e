"""Grey pictures of pooled screens, looked up by pairs of palette indices. Needs numba."""

from functools import cache, reduce

import numpy as np
from numpy.typing import NDArray

from ezgreedy.compilation import jit
from ezgreedy.games.atari.emulator import grey
from ezgreedy.games.atari.palette import NUM_COLOURS, colours, pooled_codes
from ezgreedy.games.protocol import Frames


def pooled_greys(screens: list[NDArray[np.uint8]]) -> Frames:
    """The grey picture of the maximum, in each of red, green and blue, of screens of indices."""
    if len(screens) > 2:
        return grey(reduce(np.maximum, (colours()[screen >> 1] for screen in screens)))
    return _looked_up(screens[0], screens[-1], _greys_of_pairs())


@cache
def _greys_of_pairs() -> NDArray[np.uint8]:
    """The grey of two colours' maximum, by their numbers, [128, 128]."""
    numbers = 2 * np.arange(NUM_COLOURS, dtype=np.uint8)
    pairs = np.broadcast_arrays(numbers[:, None], numbers)
    return grey(colours()[pooled_codes(*pairs)])


@jit
def _looked_up(
    screen: NDArray[np.uint8], other: NDArray[np.uint8], table: NDArray[np.uint8]
) -> Frames:
    """One pass; arithmetic with whole pictures would take a dozen."""
    found = np.empty_like(screen)
    for row in range(screen.shape[0]):
        for column in range(screen.shape[1]):
            found[row, column] = table[screen[row, column] >> 1, other[row, column] >> 1]
    return found
