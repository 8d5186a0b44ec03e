"""R2D2's actors: they play lanes with one network and cut what happens into windows.

An actor needs a function that evaluates the network and nothing else of the learner, so that it
may as well live in another process. ε, exploration, bootstrap heads and masks belong to the number
that a lane has in the fleet: how lanes are spread over actors changes nothing. Needs torch.
"""

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from ezgreedy import requirements as require
from ezgreedy.agents.agent import Surface
from ezgreedy.agents.recurrence import Floats, Recurrence, Values
from ezgreedy.agents.sequence_presets import SequencePreset
from ezgreedy.atari.lanes import LaneSteps
from ezgreedy.atari.protocol import Frames
from ezgreedy.exploration.ez_greedy import EZGreedy
from ezgreedy.learning.bootstrap import draw_masks
from ezgreedy.learning.sequence_learner import initial_priorities
from ezgreedy.learning.sequence_settings import RecurrentNetworkSettings
from ezgreedy.learning.settings import Sight
from ezgreedy.replay.blocks import BlockCodec
from ezgreedy.replay.sequences import (
    SequenceAccumulator,
    SequenceStep,
    Window,
    plain_window,
    restored_window,
)
from ezgreedy.requirements import BoolArray, IntArray
from ezgreedy.seeding import role_seed

_ALL_HEADS = 255
_NUM_FACTS = 3  # action, reward and behaviour probability, before the values of a step's estimates


class Whereabouts(NamedTuple):
    """Which lanes of a fleet an actor plays."""

    lanes: int
    first_lane: int = 0
    fleet: int | None = None  # lanes in all; None for those of this actor

    @property
    def numbers(self) -> slice:
        """Of its lanes within the fleet."""
        return slice(self.first_lane, self.first_lane + self.lanes)


class SequenceActor:
    """Plays lanes ε-greedily or εz-greedily, and makes windows with their first priorities.

        actions = actor.act(observations, starts)
        ...
        windows = actor.observe(steps)

    Args:
        preset: which agent.
        surface: the game that it plays.
        values: the network.
        where: which lanes.
        seed: any non-negative int, the same for the whole fleet.
        device: where the network computes.
    """

    def __init__(
        self,
        preset: SequencePreset,
        surface: Surface,
        values: Values,
        where: Whereabouts,
        *,
        seed: int,
        device: str = "cpu",
    ) -> None:
        self.preset = preset
        self.surface = surface
        self.where = where
        self.lanes = require.integer("lanes", where.lanes, least=1)
        fleet = where.fleet or where.first_lane + where.lanes
        if where.first_lane + where.lanes > fleet:
            rule = f"be at least {where.first_lane + where.lanes}, for those of this actor"
            raise require.refuse("fleet", rule, fleet)
        self.explorer = EZGreedy(
            surface.num_actions,
            preset.epsilons(fleet)[where.numbers],
            preset.durations,
            where.lanes,
            role_seed(seed, "explorer"),
            first_lane=where.first_lane,
        )
        state_shape = network_settings(preset, surface).state_shape
        self._recurrence = Recurrence(values, state_shape, where.lanes, device)
        self._accumulator = SequenceAccumulator(
            codec(preset, surface), preset.sequences, where.lanes, where.first_lane
        )
        bootstrap_seed = role_seed(seed, "bootstrap")
        self._rngs = [
            np.random.default_rng(np.random.SeedSequence(bootstrap_seed, spawn_key=(number,)))
            for number in range(where.first_lane, where.first_lane + where.lanes)
        ]
        self.heads: IntArray = np.zeros(where.lanes, dtype=np.int64)  # whom each lane follows
        self._q: Floats | None = None  # of the last observations
        self._actions: IntArray | None = None
        # Windows, each with its lane, that lack the values of what follows their last step.
        self._waiting: list[tuple[int, Window]] = []
        self._ready: list[Window] = []

    def act(self, observations: Frames, starts: BoolArray) -> IntArray:
        """The actions to execute, [lanes]."""
        for lane in np.flatnonzero(starts).tolist():
            self._accumulator.begin(lane, observations[lane])
            if self.preset.num_heads is not None:
                self.heads[lane] = self._rngs[lane].integers(self.preset.num_heads)
        q = self._recurrence(observations, starts)
        if self._waiting:
            lanes = np.array([lane for lane, _ in self._waiting])
            self._ready += self._with_priorities([w for _, w in self._waiting], q[lanes])
            self._waiting = []
        followed = q if self.preset.num_heads is None else q[np.arange(self.lanes), self.heads]
        # Within options too: memories and priorities need the network at every step.
        self._q, self._actions = q, self.explorer(followed.argmax(axis=-1), starts=starts)
        return self._actions

    def observe(self, steps: LaneSteps) -> list[Window]:
        """Take in what the last actions led to; windows with priorities, oldest first."""
        if self._q is None or self._actions is None:
            raise RuntimeError("observe must follow act")
        states_h, states_c = self._recurrence.before
        rewards = steps.clipped_rewards.astype(np.float32)
        ended: list[tuple[int, Window]] = []
        for lane, step in enumerate(self._steps(steps, rewards)):
            for window in self._accumulator.step(lane, step, states_h[lane], states_c[lane]):
                is_over = step.terminated or step.truncated
                (ended if is_over else self._waiting).append((lane, window))
        self._recurrence.hear(self._actions, rewards)
        self._q = self._actions = None
        ready, self._ready = self._ready, []
        if ended:
            lanes = np.array([lane for lane, _ in ended])
            following = self._final_values(steps, lanes)
            ready += self._with_priorities([window for _, window in ended], following)
        return ready

    @property
    def remaining(self) -> IntArray:
        """Plays of running options still to come, [lanes]."""
        return self.explorer.remaining

    def state_dict(self) -> dict[str, Any]:
        """Everything that later actions and windows depend on; taken after `observe`."""
        if self._actions is not None:
            raise RuntimeError("state_dict must not come between act and observe")
        return {
            "explorer": self.explorer.state_dict(),
            "recurrence": self._recurrence.state_dict(),
            "accumulator": self._accumulator.state_dict(),
            "rngs": [rng.bit_generator.state for rng in self._rngs],
            "heads": self.heads.copy(),
            "waiting": [[lane, plain_window(window)] for lane, window in self._waiting],
        }

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Continue from a state of an actor of the same lanes."""
        self.explorer.load_state_dict(state["explorer"])
        self._recurrence.load_state_dict(state["recurrence"])
        self._accumulator.load_state_dict(state["accumulator"])
        for rng, saved in zip(self._rngs, state["rngs"], strict=True):
            rng.bit_generator.state = saved
        self.heads = state["heads"].copy()
        self._waiting = [(int(lane), restored_window(plain)) for lane, plain in state["waiting"]]
        self._ready = []
        self._q = self._actions = None

    def _steps(self, steps: LaneSteps, rewards: Floats) -> list[SequenceStep]:
        assert self._q is not None
        assert self._actions is not None
        probabilities = self.explorer.probabilities
        facts = np.stack([self._actions, rewards, probabilities], axis=1)
        estimates = np.concatenate([facts, self._q.reshape(self.lanes, -1)], axis=1).tolist()
        return [
            SequenceStep(
                action=action,
                reward=reward,
                observation=steps.next_observations[lane],
                terminated=terminated,
                truncated=truncated,
                mask=self._mask(lane),
                behaviour_probability=probability,
                estimates=tuple(estimates[lane]),
            )
            for lane, (action, reward, terminated, truncated, probability) in enumerate(
                zip(
                    self._actions.tolist(),
                    rewards.tolist(),
                    steps.terminated.tolist(),
                    steps.truncated.tolist(),
                    probabilities.tolist(),
                    strict=True,
                )
            )
        ]

    def _mask(self, lane: int) -> int:
        """Which heads learn from a step."""
        num_heads = self.preset.num_heads
        if num_heads is None:
            return _ALL_HEADS
        probability = self.preset.mask_probability
        return int(draw_masks((), num_heads, probability, rng=self._rngs[lane]))

    def _final_values(self, steps: LaneSteps, lanes: IntArray) -> Floats:
        """Values of what ended episodes led to: where the game went on, they count."""
        heads = () if self.preset.num_heads is None else (self.preset.num_heads,)
        values = np.zeros((len(lanes), *heads, self.surface.num_actions), dtype=np.float32)
        is_cut = steps.truncated[lanes]
        if is_cut.any():
            cut = lanes[is_cut]
            values[is_cut] = self._recurrence.ahead(steps.next_observations[cut], cut)
        return values

    def _with_priorities(self, windows: list[Window], following: Floats) -> list[Window]:
        """Windows with the learner's priorities, as far as the actor can know them.

        Args:
            windows: all of one step.
            following: values of what their last steps led to, [windows, (heads,) actions].
        """
        longest = max(window.length for window in windows)
        width = _NUM_FACTS + following[0].size
        facts = np.zeros((len(windows), longest + 1, width), dtype=np.float32)
        lengths = np.array([window.length for window in windows])
        for row, window in enumerate(windows):
            facts[row, : window.length] = window.estimates
        facts[np.arange(len(windows)), lengths, _NUM_FACTS:] = following.reshape(len(windows), -1)
        priorities = initial_priorities(
            facts[..., _NUM_FACTS:].reshape(len(windows), longest + 1, *following.shape[1:]),
            facts[:, :-1, 0].astype(np.int64),
            facts[:, :-1, 1],
            lengths,
            np.array([window.terminated for window in windows]),
            settings=self.preset.learner,
            return_settings=self.preset.returns,
            behaviour=facts[:, :-1, 2],
        )
        return [
            # What priorities were made of has served its purpose, and need not travel.
            window._replace(priority=priority, estimates=window.estimates[:0])
            for window, priority in zip(windows, priorities.tolist(), strict=True)
        ]


def sight(surface: Surface) -> Sight:
    """What networks see of a game."""
    has_codes = surface.frame_dtype == np.uint16
    return Sight(surface.observation_shape, surface.largest_pixel, bool(has_codes))


def network_settings(preset: SequencePreset, surface: Surface) -> RecurrentNetworkSettings:
    """The network of an agent that plays this game."""
    return preset.network(sight(surface), surface.num_actions)


def codec(preset: SequencePreset, surface: Surface) -> BlockCodec:
    """How observations of this game are kept."""
    dtype: np.dtype[Any] = surface.frame_dtype
    return BlockCodec(surface.observation_shape, dtype, preset.stride)
