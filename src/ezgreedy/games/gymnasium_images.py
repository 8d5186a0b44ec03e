"""Any Gymnasium environment whose observations are images and whose actions are discrete.

Images of bytes, grey or coloured, become grey squares like the emulator's screens; binary planes
stay as they are, like MinAtar's. Such an environment has no known lives or no-ops. Its own time
limit truncates, with discount 1, in addition to the protocol's cap.
"""

from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ezgreedy import requirements as require
from ezgreedy.games import pictures
from ezgreedy.games.atari.emulator import grey, shrink
from ezgreedy.games.environment import Environment
from ezgreedy.games.family import GameFamily
from ezgreedy.games.gymnasium_machine import LARGEST_SEED, EnvironmentFault, GymnasiumMachine
from ezgreedy.games.protocol import Frames, Protocol

PREFIX = "gymnasium/"
MOST_PLANES = 64

# An environment sets the length of a step itself; four frames show motion, as on Atari.
GYMNASIUM = Protocol(frame_skip=1, pooled_frames=1, stacked_frames=4, most_noop_frames=0)


class GymnasiumImages(Environment):
    """One Gymnasium environment that shows images.

    Its states hold the seed of the episode and the actions since, and loading one replays them in
    a new environment: exact if the seed determines everything. If the replay does not end where
    the state was taken, loading fails and says so.

    Args:
        name: "gymnasium/" and the id, such as "gymnasium/CarRacing-v3".
        protocol: the settings; `GYMNASIUM` if None, with the planes' side where they are binary.
        rng: random generator for everything random, episode seeds included; see `Environment`.
    """

    def __init__(
        self, name: str, protocol: Protocol | None = None, *, rng: np.random.Generator
    ) -> None:
        if not isinstance(name, str) or not name.startswith(PREFIX):
            raise require.refuse("game", f"begin with {PREFIX!r}", name)
        machine = GymnasiumMachine(name.removeprefix(PREFIX))
        shape, self._is_binary = _image_shape(machine.name, machine.observation_space)
        if protocol is None:
            side = shape[0] if self._is_binary else GYMNASIUM.screen_size
            protocol = replace(GYMNASIUM, screen_size=side)
        _check_protocol(protocol, shape, self._is_binary)
        self._machine = machine
        self.largest_pixel = 1.0 if self._is_binary else 255.0
        self.shows_objects = self._is_binary
        size = protocol.screen_size
        planes = shape[2] if self._is_binary else 1
        super().__init__(name, machine.num_actions, (planes, size, size), protocol, rng)

    def picture(self) -> Frames:
        """The last observation, uint8 RGB; binary planes in one colour each."""
        screen = self._screen()
        return pictures.of_planes(screen) if self._is_binary else pictures.of_screen(screen)

    def _restart(self) -> None:
        self._machine.restart(int(self._rng.integers(LARGEST_SEED, endpoint=True)))

    def _act(self, action: int) -> tuple[float, bool]:
        return self._machine.act(action), self._machine.is_over

    def _is_cut_off(self) -> bool:
        return self._machine.is_cut_off

    def _screen(self) -> NDArray[Any]:
        if self._machine.observation is None:
            raise RuntimeError(f"the episode of {self.name} has not begun; call reset before this")
        if not self._is_binary:
            return self._machine.observation.copy()
        planes = self._machine.observation.astype(np.bool_)
        return planes if planes.ndim == 3 else planes[..., None]

    def _frame(self, screens: list[NDArray[Any]]) -> Frames:
        pooled = np.maximum.reduce(screens)
        if self._is_binary:
            return np.ascontiguousarray(pooled.transpose(2, 0, 1)).astype(np.uint8)
        if pooled.ndim == 3:
            pooled = grey(pooled) if pooled.shape[2] == 3 else pooled[..., 0]
        return shrink(pooled, self.protocol.screen_size)[None]

    def _lives(self) -> int:
        return 0

    def _machine_state(self) -> dict[str, Any]:
        return self._machine.state()

    def _checked_machine_state(self, state: Any) -> Callable[[], None]:
        replayed = self._machine.replayed(state)

        def swap() -> None:
            with suppress(EnvironmentFault):  # it is discarded, so its last errors do not matter
                self._machine.close()
            self._machine = replayed

        return swap


def _image_shape(name: str, space: Any) -> tuple[tuple[int, int, int], bool]:
    """(height, width, planes) of the images, and whether they are binary; refuses other spaces."""
    from gymnasium.spaces import Box, MultiBinary

    is_bytes = isinstance(space, Box) and space.dtype in (np.uint8, np.bool_)
    is_binary = isinstance(space, MultiBinary) or (is_bytes and bool((space.high <= 1).all()))
    shape = (space.shape or ()) if is_bytes or is_binary else ()
    height, width, planes = (*shape, 1)[:3] if len(shape) in (2, 3) else (0, 0, 0)
    if planes not in (range(1, MOST_PLANES + 1) if is_binary else (1, 3)):
        rule = (
            "be images: uint8 of shape (height, width), (height, width, 1) or (height, width, 3), "
            f"or binary planes of shape (height, width, at most {MOST_PLANES})"
        )
        raise require.refuse(
            f"{name}: the environment's observations", rule, require.Described(space)
        )
    return (height, width, planes), is_binary


def _check_protocol(protocol: Protocol, shape: tuple[int, int, int], is_binary: bool) -> None:
    if is_binary and shape[:2] != (protocol.screen_size, protocol.screen_size):
        height, width, _ = shape
        rule = f"be both sides of the binary planes, which are {height} × {width}"
        raise require.refuse("screen_size", rule, protocol.screen_size)
    if protocol.most_noop_frames:
        rule = "be 0: no action of a Gymnasium environment is known to do nothing"
        raise require.refuse("most_noop_frames", rule, protocol.most_noop_frames)
    if protocol.has_full_action_set:
        rule = "be False: a Gymnasium environment has one set of actions"
        raise require.refuse("has_full_action_set", rule, protocol.has_full_action_set)


def _usual_protocol(name: str) -> Protocol:
    """The usual protocol, which depends on the environment's observations."""
    return GymnasiumImages(name, rng=np.random.default_rng(0)).protocol


FAMILY = GameFamily("gymnasium", GymnasiumImages, _usual_protocol, "gymnasium/ID")
