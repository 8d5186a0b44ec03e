"""A kind of game of one's own: corridors with a trap beside the start and a prize at the end.

`Environment` takes care of the protocol (frame skip, stacking, sticky actions, truncation) and of
exact resuming. A game says how it restarts, acts, looks and saves itself, and `register` makes all
its games known to agents and to the command line:

    cd examples
    ezgreedy train rainbow-ez --import own_game --game corridor/12 --scale laptop --out run

A package registers without `--import` through an entry point of the group "ezgreedy.plugins".
"""

import numpy as np

from ezgreedy import requirements as require
from ezgreedy.games import SMALL_WORLD, Environment, GameFamily, register

HEIGHT, START, RIGHT = 5, 1, 1


class Corridor(Environment):
    """A walker in a corridor of N cells; a frame is [1, 5, N], bright where it stands.

    Args:
        name: "corridor/" and N.
        protocol: the settings; `SMALL_WORLD` if None.
        rng: source of everything random; nothing is, unless the protocol says so.
    """

    largest_pixel = 1.0
    shows_objects = True

    def __init__(self, name, protocol=None, *, rng):
        text = name.removeprefix("corridor/")
        self.size = require.integer("N", int(text) if text.isdecimal() else text, 4, 100)
        shape = (1, HEIGHT, self.size)
        super().__init__(name, 2, shape, SMALL_WORLD if protocol is None else protocol, rng)
        self._cell = START

    def picture(self):
        """The corridor for people: uint8 RGB."""
        return np.repeat(self._screen()[0][..., None] * np.uint8(255), 3, axis=2)

    def _restart(self):
        self._cell = START

    def _act(self, action):
        self._cell += 1 if action == RIGHT else -1
        if self._cell == 0:
            return 0.1, True
        return float(self._cell == self.size - 1), self._cell == self.size - 1

    def _screen(self):
        screen = np.zeros(self.frame_shape, dtype=np.uint8)
        screen[0, :, self._cell] = 1
        return screen

    def _frame(self, screens):
        return screens[-1]

    def _lives(self):
        return 0

    def _machine_state(self):
        return self._cell

    def _checked_machine_state(self, state):
        cell = require.integer("state['machine']", state, 0, self.size - 1)
        return lambda: setattr(self, "_cell", cell)


register(GameFamily("corridor", Corridor, lambda name: SMALL_WORLD, "corridor/N", is_small=True))


def main() -> None:
    """Trains two agents on it for a moment through the command line."""
    import tempfile

    from ezgreedy.cli import main as command

    with tempfile.TemporaryDirectory() as directory:
        for agent in ("rainbow-eps", "rainbow-ez"):
            run = f"{directory}/{agent}"
            words = f"{agent} --game corridor/12 --scale laptop --frames 3000 --out {run} --quiet"
            assert command(["train", *words.split(), "--set", "evaluation.frames=500"]) == 0
            command(["evaluate", run])


if __name__ == "__main__":
    main()
