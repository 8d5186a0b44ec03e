"""What every game shares: the protocol, carried out frame by frame, and exact resuming.

A subclass is a machine that restarts, acts for one raw frame, shows its screen, turns screens into
one frame of an observation or a picture for people, and reports the lives left. The length of an
action, pooling and stacking, the end of an episode and randomness are handled here, once.
"""

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import asdict
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ezgreedy import requirements as require
from ezgreedy.games.protocol import Frames, Protocol, Step

STATE_FORMAT = 1
NOOP = 0  # the first action of every action set


class Environment(ABC):
    """One game under a protocol.

        env = Emulator("Freeway", rng=np.random.default_rng(0))
        observation = env.reset()
        step = env.step(1)

    Args:
        name: the game's name, as part of the identity of its states.
        num_actions: number of actions the agent chooses from.
        frame_shape: (planes, height, width) of a single frame, or (features,) of a vector; an
            observation has stacked_frames · planes planes, and its last ones are its newest frame.
        protocol: the settings.
        rng: random generator for everything random, owned by this environment from now on.
        frame_dtype: dtype of a frame.
    """

    largest_pixel = 255.0  # what networks divide by
    shows_objects = False  # whether a plane is 1 where its object is, rather than a brightness

    def __init__(
        self,
        name: str,
        num_actions: int,
        frame_shape: tuple[int, ...],
        protocol: Protocol,
        rng: np.random.Generator,
        frame_dtype: type[np.generic] = np.uint8,
    ) -> None:
        if not isinstance(rng, np.random.Generator):
            raise require.refuse_type("rng", "be a NumPy Generator", rng)
        self.name = name
        self.num_actions = num_actions
        self.frame_shape = frame_shape
        self.protocol = protocol
        self._rng = rng
        self.frame_dtype = np.dtype(frame_dtype)
        self._stack: Frames = np.zeros((protocol.stacked_frames, *frame_shape), self.frame_dtype)
        self._has_begun = False
        self._is_running = False
        self._last_action = NOOP
        self._lives_left = 0
        self._episode_return = 0.0
        self._episode_frames = 0

    @property
    def observation_shape(self) -> tuple[int, ...]:
        """(stacked_frames · planes, height, width), or (stacked_frames · features,)."""
        planes, *sides = self.frame_shape
        return self.protocol.stacked_frames * planes, *sides

    @property
    def lives(self) -> int:
        """Lives left, as of the last reset or step; 0 in games without lives."""
        return self._lives_left

    def reset(self) -> Frames:
        """Begins an episode, no-ops included, and returns its first observation."""
        self._restart()
        for _ in range(self._draw_noops()):
            if self._act(NOOP)[1]:
                self._restart()
        self._stack[:] = 0
        self._stack[-1] = self._frame([self._screen()])
        self._has_begun = self._is_running = True
        self._last_action = NOOP
        self._lives_left = self._lives()
        self._episode_return = 0.0
        self._episode_frames = 0
        return self._observation()

    def step(self, action: object) -> Step:
        """Plays one action for `frame_skip` raw frames, or fewer if the game ends earlier."""
        if not self._is_running:
            state = "is over" if self._has_begun else "has not begun"
            raise RuntimeError(f"the episode of {self.name} {state}; call reset before step")
        index = require.integer("action", action, least=0, most=self.num_actions - 1)
        frame, reward, terminated = self._play(index)
        self._stack[:-1] = self._stack[1:].copy()
        self._stack[-1] = frame
        self._episode_return += reward

        lives = self._lives()
        has_lost_life = lives < self._lives_left
        self._lives_left = lives
        has_no_future = terminated or (has_lost_life and self.protocol.zeroes_discount_on_life_loss)
        is_capped = self._episode_frames >= self.protocol.most_episode_frames
        truncated = not terminated and (is_capped or self._is_cut_off())
        self._is_running = not (terminated or truncated)
        bound = self.protocol.reward_bound
        return Step(
            observation=self._observation(),
            reward=reward,
            clipped_reward=reward if bound is None else min(max(reward, -bound), bound),
            discount=0.0 if has_no_future else 1.0,
            terminated=terminated,
            truncated=truncated,
            lives=lives,
            episode_return=self._episode_return,
            episode_frames=self._episode_frames,
        )

    def state_dict(self) -> dict[str, Any]:
        """Everything needed to continue bit for bit: plain data, bytes and arrays, no objects."""
        return {
            "format": STATE_FORMAT,
            **self._identity(),
            "rng": self._rng.bit_generator.state,
            "stack": self._stack.copy(),
            "has_begun": self._has_begun,
            "is_running": self._is_running,
            "last_action": self._last_action,
            "lives_left": self._lives_left,
            "episode_return": self._episode_return,
            "episode_frames": self._episode_frames,
            "machine": self._machine_state(),
        }

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Continues from a `state_dict` of the same game under the same protocol."""
        self.checked_state(state)()

    def checked_state(self, state: Mapping[str, Any]) -> Callable[[], None]:
        """Refuses anything but a state of this game; returns the function that restores it."""
        self._check_identity(state)
        stack = _checked_stack(state["stack"], self._stack)
        rng_state = _checked_rng(self._rng, state["rng"])
        machine = self._checked_machine_state(state["machine"])
        most = {"last_action": self.num_actions - 1}
        scalars: dict[str, Any] = {
            key: require.integer(f"state[{key!r}]", state[key], least=0, most=most.get(key))
            for key in ("last_action", "lives_left", "episode_frames")
        }
        for key in ("has_begun", "is_running"):
            scalars[key] = require.flag(f"state[{key!r}]", state[key])
        key = "episode_return"
        scalars[key] = require.number(f"state[{key!r}]", state[key], least=-math.inf)

        def restore() -> None:
            machine()
            self._rng.bit_generator.state = rng_state
            self._stack[:] = stack
            for key, value in scalars.items():
                setattr(self, f"_{key}", value)

        return restore

    @abstractmethod
    def picture(self) -> Frames:
        """The picture for people: uint8 RGB [height, width, 3], a copy."""

    @abstractmethod
    def _restart(self) -> None:
        """Puts the machine at the beginning of a game."""

    @abstractmethod
    def _act(self, action: int) -> tuple[float, bool]:
        """Plays an action for one raw frame; returns the reward and whether the game is over."""

    @abstractmethod
    def _screen(self) -> NDArray[Any]:
        """The raw screen, a copy."""

    @abstractmethod
    def _frame(self, screens: list[NDArray[Any]]) -> Frames:
        """One frame of an observation, from the raw screens to be pooled: at least one."""

    def _is_cut_off(self) -> bool:
        """Whether the last action stopped the machine before the game's end, as time limits do."""
        return False

    @abstractmethod
    def _lives(self) -> int:
        """Lives left."""

    @abstractmethod
    def _machine_state(self) -> Any:
        """The machine itself, as plain data."""

    @abstractmethod
    def _checked_machine_state(self, state: Any) -> Callable[[], None]:
        """Checks what `_machine_state` wrote; returns the function that restores it."""

    def _play(self, action: int) -> tuple[Frames, float, bool]:
        """The frame, the raw reward and whether the game is over after one action."""
        first_pooled = self.protocol.frame_skip - self.protocol.pooled_frames
        screens: list[NDArray[Any]] = []
        reward, is_over = 0.0, False
        for position in range(self.protocol.frame_skip):
            gained, is_over = self._act(self._executed(action))
            reward += gained
            self._episode_frames += 1
            is_cut_off = not is_over and self._is_cut_off()
            if position >= first_pooled or is_cut_off:  # a cut-off bootstraps from its screen
                screens.append(self._screen())
            if is_over or is_cut_off:
                break
        frame = self._frame(screens) if screens else np.zeros(self.frame_shape, self.frame_dtype)
        return frame, reward, is_over

    def _executed(self, action: int) -> int:
        """The action, or the previous one where actions stick."""
        sticky = self.protocol.sticky_probability
        if sticky and self._rng.random() < sticky:
            return self._last_action
        self._last_action = action
        return action

    def _draw_noops(self) -> int:
        most = self.protocol.most_noop_frames
        return int(self._rng.integers(1, most, endpoint=True)) if most else 0

    def _observation(self) -> Frames:
        return self._stack.reshape(self.observation_shape).copy()

    def _identity(self) -> dict[str, Any]:
        return {"name": self.name, "protocol": asdict(self.protocol)}

    def _check_identity(self, state: object) -> None:
        if not isinstance(state, Mapping):
            raise require.refuse_type("state", "be a mapping from state_dict()", state)
        identity = {"format": STATE_FORMAT, **self._identity()}
        expected = identity.keys() | _STATE_KEYS
        missing, unknown = sorted(expected - state.keys()), sorted(state.keys() - expected)
        if missing or unknown:
            raise require.refuse(
                "state",
                f"have the keys of a {type(self).__name__} state_dict",
                require.Described(f"missing {missing}, unknown {unknown}"),
            )
        for key, value in identity.items():
            if state[key] != value:
                raise require.refuse(f"state[{key!r}]", f"equal {value!r}", state[key])


_STATE_KEYS = {
    "rng",
    "stack",
    "has_begun",
    "is_running",
    "last_action",
    "lives_left",
    "episode_return",
    "episode_frames",
    "machine",
}


def _checked_stack(stack: object, own: Frames) -> Frames:
    received = type(stack).__name__
    if isinstance(stack, np.ndarray):
        if stack.dtype == own.dtype and stack.shape == own.shape:
            return stack
        received = f"{stack.dtype} of shape {stack.shape}"
    rule = f"be a {own.dtype} array of shape {own.shape}"
    raise require.refuse("state['stack']", rule, require.Described(received))


def _checked_rng(rng: np.random.Generator, state: Any) -> Any:
    """The state, after a spare generator of the same kind has accepted it."""
    kind = type(rng.bit_generator)
    try:
        kind(0).state = state
    except (TypeError, ValueError, KeyError, OverflowError) as error:
        raise require.refuse("state['rng']", f"be the state of a {kind.__name__}", state) from error
    return state
