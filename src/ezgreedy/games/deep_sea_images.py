"""DeepSea for deep agents: the grid as a picture with one bright square, as bsuite shows it.

Dynamics and rewards are those of `envs.deep_sea` with its defaults. Needs numba and gymnasium.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ezgreedy import requirements as require
from ezgreedy.games import pictures
from ezgreedy.games.environment import Environment
from ezgreedy.games.family import GameFamily
from ezgreedy.games.memory_chain import numbered
from ezgreedy.games.protocol import SMALL_WORLD, Frames, Protocol, require_small_world

PREFIX = "deep_sea/"
LARGEST = 200
LARGEST_SEED = 2**32 - 1


class DeepSeaImages(Environment):
    """DeepSea; a frame is [1, N, N], 1 where the diver is, and empty on the sea bed.

    Args:
        name: "deep_sea/" and N, where action 1 means right everywhere; or "deep_sea/N/SEED", where
            a coin decides for each square. A network that always plays one action, as fresh ones
            do, finds the treasure of the former by accident.
        protocol: the settings; `SMALL_WORLD` if None. Frames are always N × N.
        rng: random generator for sticky actions, nothing else is random; see `Environment`.
    """

    largest_pixel = 1.0
    shows_objects = True

    def __init__(
        self, name: str, protocol: Protocol | None = None, *, rng: np.random.Generator
    ) -> None:
        from ezgreedy.envs.deep_sea import DeepSea

        protocol = SMALL_WORLD if protocol is None else protocol
        require_small_world(protocol)
        size_text, has_seed, seed = name.removeprefix(PREFIX).partition("/")
        self._sea = DeepSea(
            numbered("deep_sea", size_text, LARGEST),
            action_seed=numbered(f"deep_sea/{size_text}", seed, LARGEST_SEED) if has_seed else None,
        )
        size = self._sea.size
        super().__init__(name, self._sea.num_actions, (1, size, size), protocol, rng)
        self._state = self._sea.first_state

    def picture(self) -> Frames:
        """The grid with the diver: uint8 RGB."""
        return pictures.of_planes(self._screen().transpose(1, 2, 0).astype(np.bool_))

    def _restart(self) -> None:
        self._state = self._sea.first_state

    def _act(self, action: int) -> tuple[float, bool]:
        self._state, reward, is_over = self._sea.transition(self._state, action)
        return reward, is_over

    def _screen(self) -> NDArray[Any]:
        screen = np.zeros(self.frame_shape, dtype=np.uint8)
        if self._state < screen.size:
            screen.flat[self._state] = 1
        return screen

    def _frame(self, screens: list[NDArray[Any]]) -> Frames:
        return screens[-1]

    def _lives(self) -> int:
        return 0

    def _machine_state(self) -> int:
        return int(self._state)

    def _checked_machine_state(self, state: Any) -> Callable[[], None]:
        last = self._sea.num_states - 1
        restored = require.integer("state['machine']", state, 0, last)

        def restore() -> None:
            self._state = restored

        return restore


FAMILY = GameFamily(
    "deep_sea", DeepSeaImages, lambda name: SMALL_WORLD, "deep_sea/N", is_small=True
)
