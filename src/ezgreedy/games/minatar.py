"""MinAtar: five games of 10 × 10 squares, small enough for an agent to learn on a laptop.

The games are those of the `minatar` package. They draw from our generator, and their state is read
and written as plain data, so they resume to the bit like the emulator. The package has its own
extra because it is under the GPL 3 and needs pandas and seaborn.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ezgreedy import packages
from ezgreedy import requirements as require
from ezgreedy.games import pictures
from ezgreedy.games.environment import Environment
from ezgreedy.games.family import GameFamily, NamedSuite
from ezgreedy.games.protocol import Frames, Protocol

PREFIX = "minatar/"
GAMES = ("asterix", "breakout", "freeway", "seaquest", "space_invaders")

# Every frame is a step, one action in ten sticks and games grow harder: the defaults of the
# package's Environment. All six actions are available in every game: its README says that the
# published results use them. One difference: the first action of an episode sticks to the no-op
# here, and in the package to the last action of the previous episode.
MINATAR = Protocol(
    frame_skip=1,
    pooled_frames=1,
    screen_size=10,
    stacked_frames=1,
    most_noop_frames=0,
    sticky_probability=0.1,
    has_full_action_set=True,
)

_NUM_FULL_ACTIONS = 6
# Attributes of a game that are not state: constants, and the generator, which is ours.
_NO_STATE = {"channels", "action_map", "random"}


class MinAtar(Environment):
    """One MinAtar game; the planes of a frame are its channels, 0 or 1. There are no lives.

    Args:
        name: "minatar/" and one of `GAMES`.
        protocol: the settings; `MINATAR` if None. Frames are always 10 × 10.
        rng: random generator for everything random; see `Environment`.
    """

    largest_pixel = 1.0
    shows_objects = True

    def __init__(
        self, name: str, protocol: Protocol | None = None, *, rng: np.random.Generator
    ) -> None:
        protocol = MINATAR if protocol is None else protocol
        if protocol.screen_size != MINATAR.screen_size:
            raise require.refuse("screen_size", "be 10 for MinAtar", protocol.screen_size)
        if protocol.colour != MINATAR.colour:
            raise require.refuse("colour", "be 'grey' for MinAtar", protocol.colour)
        known = [PREFIX + item for item in GAMES]
        if name not in known:
            raise require.refuse_name("game", "be a MinAtar game", name, known)
        module = f"minatar.environments.{name.removeprefix(PREFIX)}"
        self._machine: Any = packages.imported(module, name, "minatar").Env(ramping=True)
        self._actions = (
            list(range(_NUM_FULL_ACTIONS))
            if protocol.has_full_action_set
            else self._machine.minimal_action_set()
        )
        height, width, planes = self._machine.state_shape()
        super().__init__(name, len(self._actions), (planes, height, width), protocol, rng)
        # The old interface that the games use, on the bits of our generator.
        self._machine.random = np.random.RandomState(rng.bit_generator)
        self._machine.reset()

    def picture(self) -> Frames:
        """The planes in one colour each, later ones on top: uint8 RGB [160, 160, 3]."""
        return pictures.of_planes(self._screen())

    def _restart(self) -> None:
        self._machine.reset()

    def _act(self, action: int) -> tuple[float, bool]:
        reward, is_over = self._machine.act(self._actions[action])
        return float(reward), bool(is_over)

    def _screen(self) -> NDArray[Any]:
        return np.asarray(self._machine.state(), dtype=np.bool_)

    def _frame(self, screens: list[NDArray[Any]]) -> Frames:
        pooled = np.logical_or.reduce(screens)
        return np.ascontiguousarray(pooled.transpose(2, 0, 1)).astype(np.uint8)

    def _lives(self) -> int:
        return 0

    def _machine_state(self) -> dict[str, Any]:
        return {
            key: _plain(value) for key, value in vars(self._machine).items() if key not in _NO_STATE
        }

    def _checked_machine_state(self, state: Any) -> Callable[[], None]:
        expected = vars(self._machine).keys() - _NO_STATE
        if not isinstance(state, dict) or state.keys() != expected:
            received = sorted(state) if isinstance(state, dict) else state
            raise require.refuse("state['machine']", f"have the keys {sorted(expected)}", received)
        restored = {key: _plain(value) for key, value in state.items()}
        return lambda: vars(self._machine).update(restored)


def _plain(value: Any) -> Any:
    """A deep copy: Python numbers, lists of them, or an array."""
    if isinstance(value, np.ndarray):
        return value.copy()
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, (list, tuple)):
        return [_plain(item) for item in value]
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    raise require.refuse_type("the state of a MinAtar game", "be plain data", value)


def _suite() -> NamedSuite:
    from ezgreedy.games.minatar_scores import minatar_scores  # which plays these games

    return NamedSuite(
        "MinAtar",
        "minatar",
        minatar_scores(),
        "the training return of DQN at a million frames",
        "Random scores are our own, means of 500 episodes of minatar 1.0.15. DQN's are those "
        "of Young and Tian (2019), 30 seeds, read off their figure to about 5 %; Seaquest's is "
        "from before version 1.0.11, which mended the game, and serves as a unit only.",
        "DQN-gap",
        False,
    )


FAMILY = GameFamily(
    "minatar",
    MinAtar,
    lambda name: MINATAR,
    "minatar/NAME",
    games=lambda: tuple(PREFIX + name for name in GAMES),
    suite=_suite,
)
