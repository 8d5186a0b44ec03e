"""Atari games on the Arcade Learning Environment, one emulator at a time, resumable to the bit.

The emulator's single-game interface is slower than its vectorised one but can be cloned and gives
raw rewards, which training that resumes exactly needs. Needs ale-py and Pillow (the `deep` extra).
"""

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ezgreedy import packages
from ezgreedy import requirements as require
from ezgreedy.games.atari.atari57 import Game, game, games
from ezgreedy.games.atari.palette import SCREEN, pooled_codes
from ezgreedy.games.environment import Environment
from ezgreedy.games.family import GameFamily, NamedSuite
from ezgreedy.games.protocol import Frames, Protocol

# Thousandths, so that the weighted sum and its truncation are exact on every machine.
_GREY_WEIGHTS = (299, 587, 114)


class Emulator(Environment):
    """One Atari game.

    Args:
        name: one of the 57 games, as in `games`.
        protocol: the settings; the paper's if None.
        rng: random generator for everything random; see `Environment`.
    """

    def __init__(
        self, name: str, protocol: Protocol | None = None, *, rng: np.random.Generator
    ) -> None:
        protocol = Protocol() if protocol is None else protocol
        self.game = game(name)
        self._machine = _machine(self.game)
        self._actions = (
            full_action_set()
            if protocol.has_full_action_set
            else self._machine.getMinimalActionSet()
        )
        self._is_coloured = protocol.colour == "palette"
        shape, dtype = self._frame_form(protocol)
        super().__init__(name, len(self._actions), shape, protocol, rng, dtype)

    def picture(self) -> Frames:
        """The console's screen, uint8 RGB [210, 160, 3]. A loaded state shows after one step."""
        return np.asarray(self._machine.getScreenRGB(), dtype=np.uint8)

    def _frame_form(self, protocol: Protocol) -> tuple[tuple[int, int, int], type[np.generic]]:
        """Shape and dtype of what `_frame` returns."""
        if self._is_coloured:
            return (1, *SCREEN), np.uint16
        return (1, protocol.screen_size, protocol.screen_size), np.uint8

    def _restart(self) -> None:
        self._machine.reset_game()

    def _act(self, action: int) -> tuple[float, bool]:
        reward = self._machine.act(self._actions[action])
        return float(reward), bool(self._machine.game_over())

    def _screen(self) -> NDArray[Any]:
        return np.asarray(self._machine.getScreen(), dtype=np.uint8)

    def _frame(self, screens: list[NDArray[Any]]) -> Frames:
        if self._is_coloured:
            return pooled_codes(screens[0], screens[-1])[None]
        from ezgreedy.games.atari.pooling import pooled_greys  # which loads numba

        return shrink(pooled_greys(screens), self.protocol.screen_size)[None]

    def _lives(self) -> int:
        return int(self._machine.lives())

    def _machine_state(self) -> bytes:
        return bytes(self._machine.cloneSystemState().serialize())

    def _checked_machine_state(self, state: Any) -> Callable[[], None]:
        from ale_py import ALEState

        if not isinstance(state, bytes):
            raise require.refuse_type("state['machine']", "be bytes of the emulator", state)
        try:
            machine_state = ALEState(state)
            is_whole = machine_state.serialize() == state
        except SystemError:  # the emulator's error for foreign bytes arrives as this one
            is_whole = False
        if not is_whole:
            rule = "be a whole cloned system state of the emulator"
            received = require.Described(f"{len(state)} other bytes")
            raise require.refuse("state['machine']", rule, received)
        return lambda: self._machine.restoreSystemState(machine_state)


def full_action_set() -> list[Any]:
    """The console's 18 actions; the emulator plays those a game does not allow as no-ops."""
    from ale_py import Action

    actions: Any = Action  # an enumeration, which its annotations do not show
    return list(actions)


def grey(picture: Frames) -> Frames:
    """0.299 R + 0.587 G + 0.114 B of a picture [height, width, 3], truncated, exactly."""
    return (picture @ np.array(_GREY_WEIGHTS, dtype=np.uint32) // 1000).astype(np.uint8)


def shrink(picture: Frames, size: int) -> Frames:
    """A grey picture as a square of this side, by Pillow's bilinear filter."""
    from PIL import Image

    image = Image.fromarray(picture).resize((size, size), Image.Resampling.BILINEAR)
    return np.asarray(image, dtype=np.uint8)


def _machine(played: Game) -> Any:
    """An emulator with the cartridge in, without randomness, frame skip or limits of its own."""
    ale_py: Any = packages.imported("ale_py", played.name, "deep")
    ale_py.ALEInterface.setLoggerMode(ale_py.LoggerMode.Error)
    cartridge = ale_py.roms.get_rom_path(played.rom)
    if cartridge is None:
        raise FileNotFoundError(f"ale-py has no cartridge of {played.name}")
    machine = ale_py.ALEInterface()
    machine.setInt("random_seed", 0)
    machine.setInt("frame_skip", 1)
    machine.setInt("max_num_frames_per_episode", 0)
    machine.setFloat("repeat_action_probability", 0.0)
    machine.loadROM(cartridge)
    return machine


def _suite() -> NamedSuite:
    return NamedSuite(
        "Atari-57",
        "atari57",
        games(),
        "a person's score",
        "Random and human scores are those of dqn_zoo's atari_data.py, which nearly every "
        "table since 2015 shares.",
        "human-gap",
        True,
    )


FAMILY = GameFamily(
    "atari",
    Emulator,
    lambda name: Protocol(),
    "an Atari game (Freeway, MontezumaRevenge, ...)",
    has_prefix=False,
    games=lambda: tuple(games()),
    suite=_suite,
)
