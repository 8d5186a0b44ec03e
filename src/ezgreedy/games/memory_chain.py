"""The memory chain: a cue at the beginning, a question at the end, and nothing in between.

Observations, question and reward are those of bsuite's memory_len experiment (Osband et al., 2020),
whose first observation comes twice. A random agent and one without memory earn 0 on average, one
that remembers earns 1.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ezgreedy import requirements as require
from ezgreedy.games import pictures
from ezgreedy.games.environment import Environment
from ezgreedy.games.family import GameFamily
from ezgreedy.games.protocol import SMALL_WORLD, Frames, Protocol, require_small_world

PREFIX = "memory_chain/"
LONGEST = 10_000
_NUM_ACTIONS = 2
_NUM_FEATURES = 3  # time left, the question's number and the cue


class MemoryChain(Environment):
    """One memory chain; an observation is (time left, 0, cue), the cue ±1 at the beginning, then 0.

    Only the last of length + 1 actions counts: it earns 1 if it names the cue, action 1 for +1, and
    −1 if not.

    Args:
        name: "memory_chain/" and the length.
        protocol: the settings; `SMALL_WORLD` if None. There is no screen to resize.
        rng: random generator for the cues; see `Environment`.
    """

    largest_pixel = 1.0

    def __init__(
        self, name: str, protocol: Protocol | None = None, *, rng: np.random.Generator
    ) -> None:
        protocol = SMALL_WORLD if protocol is None else protocol
        require_small_world(protocol)
        self.length = numbered("memory_chain", name.removeprefix(PREFIX), LONGEST)
        super().__init__(name, _NUM_ACTIONS, (_NUM_FEATURES,), protocol, rng, np.float32)
        self._time = 0
        self._cue = 0

    def picture(self) -> Frames:
        """A square for each feature, bright at the cue and at the end."""
        squares = np.abs(self._screen())[None] > 0.0
        return pictures.of_screen(np.repeat(squares * np.uint8(255), 16, 0).repeat(16, 1))

    def _restart(self) -> None:
        self._time = 0
        self._cue = int(self._rng.integers(_NUM_ACTIONS))

    def _act(self, action: int) -> tuple[float, bool]:
        self._time += 1
        if self._time <= self.length:
            return 0.0, False
        return (1.0 if action == self._cue else -1.0), True

    def _screen(self) -> NDArray[Any]:
        shown = max(self._time - 1, 0)  # bsuite: the first observation comes twice
        cue = 2 * self._cue - 1 if shown == 0 else 0
        return np.array([1.0 - shown / self.length, 0.0, cue], dtype=np.float32)

    def _frame(self, screens: list[NDArray[Any]]) -> Frames:
        return screens[-1]

    def _lives(self) -> int:
        return 0

    def _machine_state(self) -> dict[str, int]:
        return {"time": self._time, "cue": self._cue}

    def _checked_machine_state(self, state: Any) -> Callable[[], None]:
        if not isinstance(state, dict) or state.keys() != {"time", "cue"}:
            raise require.refuse("state['machine']", "hold time and cue", state)
        time = require.integer("state['machine']['time']", state["time"], 0, self.length + 1)
        cue = require.integer("state['machine']['cue']", state["cue"], 0, 1)

        def restore() -> None:
            self._time, self._cue = time, cue

        return restore


def numbered(world: str, text: str, most: int) -> int:
    """The number that gives the size of a world."""
    if not text.isdecimal() or not 1 <= int(text) <= most:
        rule = f"be {world}/ and a number in [1, {most}]"
        raise require.refuse("game", rule, f"{world}/{text}")
    return int(text)


FAMILY = GameFamily(
    "memory_chain",
    MemoryChain,
    lambda name: SMALL_WORLD,
    "memory_chain/N (R2D2 only)",
    is_small=True,
    has_pictures=False,
)
