"""Which place of a game is this? The screen as a few grey squares, and the console's RAM.

For counting what exploration finds, without learning. A screen cell is a picture of 11 columns by
8 rows whose squares hold their average grey in 8 levels, the cells of Go-Explore: similar pictures
share one, and where small figures move on a still ground, as in Freeway, nearly all do. The RAM
is the console's 128 bytes, which distinguish all states of the game, clocks and random numbers
included. Needs ale-py and numba (the `deep` extra).
"""

from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ezgreedy.compilation import jit
from ezgreedy.games.atari.emulator import Emulator, grey
from ezgreedy.games.atari.palette import NUM_COLOURS, colours
from ezgreedy.games.protocol import Frames, Protocol

# Ecoffet et al. 2019, "Go-Explore": 11 × 8 pixels of 8 intensities.
COLUMNS, ROWS, LEVELS = 11, 8, 8

# The paper's protocol as far as it concerns playing; only the last of an action's frames is read,
# and rewards are as the game gives them.
PROTOCOL = Protocol(
    pooled_frames=1,
    stacked_frames=1,
    zeroes_discount_on_life_loss=False,
    reward_bound=None,
    colour="palette",
)


class CoarseEmulator(Emulator):
    """One Atari game whose observation is its screen cell, uint8 [1, 8, 11].

    Args:
        name: one of the 57 games.
        rng: random generator for everything random; see `Environment`.
        protocol: the settings; PROTOCOL if None. Observations are cells under any of them.
    """

    def __init__(
        self, name: str, protocol: Protocol | None = None, *, rng: np.random.Generator
    ) -> None:
        super().__init__(name, PROTOCOL if protocol is None else protocol, rng=rng)

    def ram(self) -> bytes:
        """The console's 128 bytes as they are now."""
        return bytes(self._machine.getRAM())

    def _frame_form(self, protocol: Protocol) -> tuple[tuple[int, int, int], type[np.generic]]:
        return (1, ROWS, COLUMNS), np.uint8

    def _frame(self, screens: list[NDArray[Any]]) -> Frames:
        return screen_cell(screens[-1])[None]


def screen_cell(screen: NDArray[np.uint8]) -> Frames:
    """The cell of a screen of palette indices [height, width]: uint8 [8, 11], each below 8.

    A square's level is ⌊8 · mean grey / 256⌋. Where 8 or 11 do not divide the screen, squares
    differ by a pixel: square i begins at ⌊i · size / squares⌋.
    """
    return _levels(screen, _grey_by_index())


@cache
def _grey_by_index() -> NDArray[np.int64]:
    """The grey of each palette index, [256]; odd ones do not occur."""
    greys = grey(colours()[:NUM_COLOURS][None])[0]
    return np.repeat(greys, 2).astype(np.int64)


@jit
def _levels(screen: NDArray[np.uint8], greys: NDArray[np.int64]) -> NDArray[np.uint8]:
    height, width = screen.shape
    levels = np.empty((ROWS, COLUMNS), dtype=np.uint8)
    sums = np.empty(COLUMNS, dtype=np.int64)
    for row in range(ROWS):
        top, bottom = row * height // ROWS, (row + 1) * height // ROWS
        sums[:] = 0
        for y in range(top, bottom):
            for column in range(COLUMNS):
                total = 0
                for x in range(column * width // COLUMNS, (column + 1) * width // COLUMNS):
                    total += greys[screen[y, x]]
                sums[column] += total
        for column in range(COLUMNS):
            across = (column + 1) * width // COLUMNS - column * width // COLUMNS
            levels[row, column] = sums[column] * LEVELS // (256 * across * (bottom - top))
    return levels
