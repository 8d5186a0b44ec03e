"""From the steps of lanes to windows: what does R2D2 remember of an episode?

An episode of T steps gives windows that start at s = 0, 40, 80, … as long as each trains on steps
that the one before does not: s = 0 or s + 40 < T. A window trains on [s, min(s + 80, T)) after a
prefix [max(0, s − 20), s) that only warms up the recurrent state; the stored state is the one
before the prefix's first observation was consumed. Windows never cross the end of an episode, and
an episode of one step is a window like any other.
"""

from collections import deque
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ezgreedy import requirements as require
from ezgreedy.replay.blocks import BlockCodec
from ezgreedy.replay.cutting import SequenceSettings
from ezgreedy.replay.frames import ByteArray

Floats = NDArray[np.float32]


class SequenceStep(NamedTuple):
    """One remembered step of a lane."""

    action: int
    reward: float  # the reward to learn from, which the network also sees
    observation: NDArray[Any]  # after the step, even if it ended the episode
    terminated: bool = False  # the game is over
    truncated: bool = False  # the game was cut off; later rewards still have a value
    mask: int = 255  # the bootstrap heads that learn from the step, one bit each
    behaviour_probability: float = 1.0  # of the action, under the policy that chose it
    estimates: tuple[float, ...] = ()  # float32s that initial priorities are computed from


class Block(NamedTuple):
    """A stretch of an episode: see `BlockCodec` for its observations; the rest is [steps]."""

    payload: bytes
    actions: NDArray[np.int32]
    rewards: Floats
    masks: ByteArray
    behaviour_probabilities: Floats


class Window(NamedTuple):
    """One unit of learning, with those of its blocks that no earlier window brought."""

    lane: int
    episode: int  # the lane's episode, by which a window finds the blocks of earlier ones
    start: int
    length: int
    prefix_length: int
    terminated: bool  # the last step ended the game
    previous_action: int  # before the first observation of the prefix; −1 at an episode's start
    previous_reward: float  # at the same time; 0 at an episode's start
    state_h: Floats  # before that observation was consumed
    state_c: Floats
    blocks: tuple[Block, ...]
    estimates: Floats  # estimates of the trained steps, [length, …]
    priority: float | None = None  # filled in by the maker of the window


@dataclass
class _Lane:
    """A lane's position within its episode."""

    episode: int = -1
    time: int = 0
    is_inside: bool = False
    next_start: int = 0
    states: dict[int, tuple[Floats, Floats, int, float]] = field(default_factory=dict)
    previous: tuple[int, float] = (-1, 0.0)
    fresh_blocks: list[Block] = field(default_factory=list)
    estimates: deque[tuple[float, ...]] = field(default_factory=deque)


class SequenceAccumulator:
    """Turns the steps of several lanes into windows; lanes never see each other's steps.

        accumulator.begin(lane, observation)
        windows = accumulator.step(lane, step, state_h, state_c)

    Args:
        codec: turns observations into blocks, with as many steps as the stride.
        settings: how windows are cut.
        lanes: number of environments.
        first_lane: the fleet-wide number of the first lane, by which windows name their lane.
    """

    def __init__(
        self,
        codec: BlockCodec,
        settings: SequenceSettings | None = None,
        lanes: int = 1,
        first_lane: int = 0,
    ) -> None:
        self.settings = settings or SequenceSettings()
        self.lanes = require.integer("lanes", lanes, least=1)
        self.first_lane = require.integer("first_lane", first_lane, least=0)
        self._codec = codec
        stride = self.settings.stride
        if codec.num_steps != stride:
            raise require.refuse("codec", f"have blocks of {stride} steps", codec.num_steps)
        # The open block of each lane.
        shape = codec.observation_shape
        self._observations = np.zeros((self.lanes, stride + 1, *shape), dtype=codec.dtype)
        self._actions = np.zeros((self.lanes, stride), dtype=np.int32)
        self._rewards = np.zeros((self.lanes, stride), dtype=np.float32)
        self._masks = np.zeros((self.lanes, stride), dtype=np.uint8)
        self._probabilities = np.zeros((self.lanes, stride), dtype=np.float32)
        self._lanes = [_Lane() for _ in range(self.lanes)]

    def begin(self, lane: int, observation: NDArray[Any]) -> None:
        """Start an episode of a lane with its first observation."""
        current = self._lanes[self._checked(lane)]
        if current.is_inside:
            raise ValueError(f"lane {lane} must end its episode before it begins another")
        self._check_observation(observation)
        self._lanes[lane] = _Lane(
            episode=current.episode + 1,
            is_inside=True,
            estimates=deque(maxlen=self.settings.length),
        )
        self._observations[lane, 0] = observation

    def wants_state(self, lane: int) -> bool:
        """Whether the state of the lane's next step will be kept rather than dropped."""
        return self.settings.starts_prefix(self._lanes[self._checked(lane)].time)

    def step(self, lane: int, step: SequenceStep, state_h: Floats, state_c: Floats) -> list[Window]:
        """Take one step of a lane; return the windows now complete, oldest first.

        Args:
            lane: number of the environment.
            step: the action and its outcome.
            state_h: the recurrent state *before* it consumed the observation that was acted on.
            state_c: its other half at the same time. Both are copied if needed.
        """
        current = self._lanes[self._checked(lane)]
        if not current.is_inside:
            raise ValueError(f"lane {lane} must begin an episode before it takes a step")
        self._check_step(step)
        if self.settings.starts_prefix(current.time):
            states = (np.array(state_h, np.float32), np.array(state_c, np.float32))
            current.states[current.time] = (*states, *current.previous)
        self._write(lane, step)
        current.time += 1
        current.previous = (int(step.action), float(np.float32(step.reward)))
        current.estimates.append(step.estimates)
        is_last = step.terminated or step.truncated
        current.is_inside = not is_last
        if not is_last and current.time % self.settings.stride:
            return []
        self._close_block(lane)
        return self._complete_windows(lane, is_last=is_last, terminated=step.terminated)

    def _write(self, lane: int, step: SequenceStep) -> None:
        position = self._lanes[lane].time % self.settings.stride
        self._actions[lane, position] = step.action
        self._rewards[lane, position] = step.reward
        self._masks[lane, position] = step.mask
        self._probabilities[lane, position] = step.behaviour_probability
        self._observations[lane, position + 1] = step.observation

    def _close_block(self, lane: int) -> None:
        current = self._lanes[lane]
        count = (current.time - 1) % self.settings.stride + 1
        block = Block(
            self._codec.encode(self._observations[lane, : count + 1]),
            self._actions[lane, :count].copy(),
            self._rewards[lane, :count].copy(),
            self._masks[lane, :count].copy(),
            self._probabilities[lane, :count].copy(),
        )
        current.fresh_blocks.append(block)
        self._observations[lane, 0] = self._observations[lane, count]

    def _complete_windows(self, lane: int, *, is_last: bool, terminated: bool) -> list[Window]:
        current, settings = self._lanes[lane], self.settings
        complete = []
        while current.next_start + settings.length <= current.time or (
            is_last and settings.is_window(current.next_start, current.time)
        ):
            complete.append(self._window(lane, terminated=terminated))
            current.next_start += settings.stride
        return complete

    def _window(self, lane: int, *, terminated: bool) -> Window:
        current = self._lanes[lane]
        start = current.next_start
        prefix_start = max(0, start - self.settings.burn_in)
        # With a burn-in as long as the stride, two windows share the state at time 0.
        state_h, state_c, action, reward = current.states[prefix_start]
        for time in [time for time in current.states if time < prefix_start]:
            del current.states[time]
        length = current.time - start
        fresh, current.fresh_blocks = tuple(current.fresh_blocks), []
        return Window(
            lane=self.first_lane + lane,
            episode=current.episode,
            start=start,
            length=length,
            prefix_length=start - prefix_start,
            terminated=terminated,
            previous_action=action,
            previous_reward=reward,
            state_h=state_h,
            state_c=state_c,
            blocks=fresh,
            estimates=np.array(list(current.estimates)[-length:], dtype=np.float32),
        )

    def state_dict(self) -> dict[str, Any]:
        """Open blocks and the lanes' positions: plain data, bytes and copies of arrays."""
        return {
            **{name: array.copy() for name, array in self._open_blocks().items()},
            "lanes": [_plain(lane) for lane in self._lanes],
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Continue from a state of an accumulator of the same sizes."""
        for name, array in self._open_blocks().items():
            if state[name].shape != array.shape or state[name].dtype != array.dtype:
                rule = f"hold {name} of shape {array.shape} and type {array.dtype}"
                raise require.refuse("state", rule, state[name].shape)
        lanes = [_restored(lane, self.settings.length) for lane in state["lanes"]]
        for name, array in self._open_blocks().items():
            array[...] = state[name]
        self._lanes = lanes

    def _open_blocks(self) -> dict[str, NDArray[Any]]:
        return {
            "observations": self._observations,
            "actions": self._actions,
            "rewards": self._rewards,
            "masks": self._masks,
            "behaviour_probabilities": self._probabilities,
        }

    def _checked(self, lane: int) -> int:
        return require.integer("lane", lane, 0, self.lanes - 1)

    def _check_observation(self, observation: NDArray[Any]) -> None:
        codec = self._codec
        if observation.dtype != codec.dtype or observation.shape != codec.observation_shape:
            rule = f"be {codec.dtype} of shape {codec.observation_shape}"
            received = require.Described(f"{observation.dtype} of shape {observation.shape}")
            raise require.refuse("observation", rule, received)

    def _check_step(self, step: SequenceStep) -> None:
        self._check_observation(step.observation)
        require.integer("action", step.action, 0, 2**31 - 1)
        require.number("reward", step.reward, -np.inf)
        require.integer("mask", step.mask, 0, 255)
        require.number("behaviour_probability", step.behaviour_probability, 0.0, 1.0)


def plain_window(window: Window) -> dict[str, Any]:
    """A window as data for a checkpoint."""
    return {**window._asdict(), "blocks": [list(block) for block in window.blocks]}


def restored_window(state: dict[str, Any]) -> Window:
    """The inverse of `plain_window`."""
    return Window(**{**state, "blocks": tuple(_restored_blocks(state["blocks"]))})


def _plain(lane: _Lane) -> dict[str, Any]:
    return {
        "episode": lane.episode,
        "time": lane.time,
        "is_inside": lane.is_inside,
        "next_start": lane.next_start,
        "previous": list(lane.previous),
        "states": [[time, *kept] for time, kept in lane.states.items()],
        "fresh_blocks": [list(block) for block in lane.fresh_blocks],
        "estimates": np.array(lane.estimates, dtype=np.float32),
    }


def _restored(state: dict[str, Any], length: int) -> _Lane:
    action, reward = state["previous"]
    return _Lane(
        episode=int(state["episode"]),
        time=int(state["time"]),
        is_inside=bool(state["is_inside"]),
        next_start=int(state["next_start"]),
        previous=(int(action), float(reward)),
        states={
            int(time): (np.array(h), np.array(c), int(before), float(gained))
            for time, h, c, before, gained in state["states"]
        },
        fresh_blocks=_restored_blocks(state["fresh_blocks"]),
        estimates=deque((tuple(row) for row in state["estimates"].tolist()), maxlen=length),
    )


def _restored_blocks(blocks: list[Any]) -> list[Block]:
    return [
        Block(bytes(payload), *(np.array(array) for array in arrays)) for payload, *arrays in blocks
    ]
