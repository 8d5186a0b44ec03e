"""R2D2's actors: they play lanes with one network and cut the episodes into windows.

An actor needs only a function that evaluates the network, so it can live in a different process
from the learner. ε, exploration, bootstrap heads and masks depend on a lane's number in the fleet:
how lanes are spread over actors changes nothing. Needs torch.
"""

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np
import torch

from ezgreedy import requirements as require
from ezgreedy.agents.agent import GameSpec
from ezgreedy.agents.early_stops import EarlyStops
from ezgreedy.agents.r2d2.bootstrap import draw_masks
from ezgreedy.agents.r2d2.learner import initial_priorities
from ezgreedy.agents.r2d2.learner_settings import RecurrentNetworkSettings
from ezgreedy.agents.r2d2.recurrence import Floats, Recurrence, Values
from ezgreedy.agents.r2d2.returns import unscale
from ezgreedy.agents.r2d2.settings import R2D2Settings
from ezgreedy.exploration.ez_greedy import EZGreedy
from ezgreedy.exploration.stops import Situation
from ezgreedy.games.lanes import LaneSteps
from ezgreedy.games.protocol import Frames
from ezgreedy.learning.settings import Sight
from ezgreedy.replay.blocks import BlockCodec
from ezgreedy.replay.sequences import (
    SequenceAccumulator,
    SequenceStep,
    Window,
    plain_window,
    restored_window,
)
from ezgreedy.requirements import BoolArray, FloatArray, IntArray
from ezgreedy.seeding import role_seed

# What a bonus adds to the rewards of steps, by the observations that they led to, [lanes].
Bonus = Callable[[Frames], FloatArray]

_ALL_HEADS = 255
# Action, reward with bonus and behaviour probability, before the values of a step's estimates.
_NUM_FACTS = 3


class Whereabouts(NamedTuple):
    """Which lanes of a fleet an actor plays."""

    lanes: int
    first_lane: int = 0
    fleet: int | None = None  # all lanes; None for only those of this actor

    @property
    def numbers(self) -> slice:
        """Numbers of its lanes within the fleet."""
        return slice(self.first_lane, self.first_lane + self.lanes)


class SequenceActor:
    """Plays lanes ε-greedily or εz-greedily, and makes windows with their first priorities.

        actions = actor.act(observations, starts)
        ...
        actor.observe(steps)
        windows = actor.take_windows()

    Args:
        preset: settings of the agent.
        spec: the game that it plays.
        values: the network.
        where: lanes to play.
        bonus: bonuses that count in first priorities; None for rewards of the game alone.
        seed: random seed of the whole fleet, any non-negative int.
        device: device of the network.
    """

    def __init__(
        self,
        preset: R2D2Settings,
        spec: GameSpec,
        values: Values,
        where: Whereabouts,
        bonus: Bonus | None = None,
        *,
        seed: int,
        device: str = "cpu",
    ) -> None:
        self.preset = preset
        self.spec = spec
        self._bonus = bonus
        self.where = where
        self.lanes = require.integer("lanes", where.lanes, least=1)
        fleet = where.fleet or where.first_lane + where.lanes
        if where.first_lane + where.lanes > fleet:
            rule = f"be at least {where.first_lane + where.lanes}, for the lanes of this actor"
            raise require.refuse("fleet", rule, fleet)
        explorer_seed = role_seed(seed, "explorer")
        self.explorer = EZGreedy(
            spec.num_actions,
            preset.epsilons(fleet)[where.numbers],
            preset.durations,
            where.lanes,
            explorer_seed,
            first_lane=where.first_lane,
        )
        discount = preset.returns.discount
        situation = Situation(where.lanes, explorer_seed, where.first_lane, discount)
        self._stops = EarlyStops(preset.stops, situation)
        state_shape = network_settings(preset, spec).state_shape
        self._recurrence = Recurrence(values, state_shape, where.lanes, device)
        self._accumulator = SequenceAccumulator(
            codec(preset, spec), preset.sequences, where.lanes, where.first_lane
        )
        bootstrap_seed = role_seed(seed, "bootstrap")
        self._rngs = [
            np.random.default_rng(np.random.SeedSequence(bootstrap_seed, spawn_key=(number,)))
            for number in range(where.first_lane, where.first_lane + where.lanes)
        ]
        self.heads: IntArray = np.zeros(where.lanes, dtype=np.int64)  # head of each lane
        self._q: Floats | None = None  # values of the last observations
        self._actions: IntArray | None = None
        # Windows with their lanes, waiting for the values that follow their last steps.
        self._waiting: list[tuple[int, Window]] = []
        self._ready: list[Window] = []  # with their priorities, oldest first

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
        ends = self._stops(observations, starts, self._worth(followed))
        # Within options too: memories and priorities need the network at every step.
        self._q = q
        self._actions = self.explorer(followed.argmax(axis=-1), starts=starts, ends=ends)
        return self._actions

    def observe(self, steps: LaneSteps) -> None:
        """Process the results of the last actions."""
        if self._q is None or self._actions is None:
            raise RuntimeError("observe must follow act")
        states_h, states_c = self._recurrence.before
        rewards = steps.clipped_rewards.astype(np.float32)
        self._stops.observe(rewards)
        ended: list[tuple[int, Window]] = []
        for lane, step in enumerate(self._steps(steps, rewards)):
            for window in self._accumulator.step(lane, step, states_h[lane], states_c[lane]):
                is_over = step.terminated or step.truncated
                (ended if is_over else self._waiting).append((lane, window))
        self._recurrence.observe(self._actions, rewards)
        self._q = self._actions = None
        if ended:
            lanes = np.array([lane for lane, _ in ended])
            following = self._final_values(steps, lanes)
            self._ready += self._with_priorities([window for _, window in ended], following)

    def take_windows(self) -> list[Window]:
        """Take the complete windows, with priorities, oldest first; each is returned once."""
        ready, self._ready = self._ready, []
        return ready

    @property
    def remaining(self) -> IntArray:
        """Remaining plays of the running options, [lanes]."""
        return self.explorer.remaining

    def state_dict(self) -> dict[str, Any]:
        """Everything that later actions and windows depend on; call after `take_windows`."""
        if self._actions is not None:
            raise RuntimeError("state_dict must not come between act and observe")
        if self._ready:
            raise RuntimeError("state_dict must come after take_windows")
        return {
            "explorer": self.explorer.state_dict(),
            "stops": self._stops.state_dict(),
            "recurrence": self._recurrence.state_dict(),
            "accumulator": self._accumulator.state_dict(),
            "rngs": [rng.bit_generator.state for rng in self._rngs],
            "heads": self.heads.copy(),
            "waiting": [[lane, plain_window(window)] for lane, window in self._waiting],
        }

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Continue from the state of an actor with the same lanes."""
        self.explorer.load_state_dict(state["explorer"])
        self._stops.load_state_dict(state.get("stops"))  # earlier versions had none
        self._recurrence.load_state_dict(state["recurrence"])
        self._accumulator.load_state_dict(state["accumulator"])
        for rng, saved in zip(self._rngs, state["rngs"], strict=True):
            rng.bit_generator.state = saved
        self.heads = state["heads"].copy()
        self._waiting = [(int(lane), restored_window(plain)) for lane, plain in state["waiting"]]
        self._ready = []
        self._q = self._actions = None

    def _worth(self, q: Floats) -> Floats | None:
        """Values of the observations on the scale of rewards, [lanes], if a rule needs them."""
        if not self._stops.read_values:
            return None
        largest = torch.as_tensor(q.max(axis=-1))
        return unscale(largest, self.preset.returns.rescaling).numpy()

    def _steps(self, steps: LaneSteps, rewards: Floats) -> list[SequenceStep]:
        assert self._q is not None
        assert self._actions is not None
        probabilities = self.explorer.probabilities
        # Only first priorities count bonuses: what is stored and what the network sees is earned.
        bonuses = 0.0 if self._bonus is None else self._bonus(steps.next_observations)
        facts = np.stack([self._actions, rewards + bonuses, probabilities], axis=1)
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
        """Values after the ends of episodes: they count where the game continued."""
        heads = () if self.preset.num_heads is None else (self.preset.num_heads,)
        values = np.zeros((len(lanes), *heads, self.spec.num_actions), dtype=np.float32)
        is_cut = steps.truncated[lanes]
        if is_cut.any():
            cut = lanes[is_cut]
            values[is_cut] = self._recurrence.ahead(steps.next_observations[cut], cut)
        return values

    def _with_priorities(self, windows: list[Window], following: Floats) -> list[Window]:
        """Windows with the priorities that the learner would give, as far as the actor can know.

        Args:
            windows: all windows of one step.
            following: values after their last steps, [windows, (heads,) actions].
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
            # The estimates have served their purpose and need not travel.
            window._replace(priority=priority, estimates=window.estimates[:0])
            for window, priority in zip(windows, priorities.tolist(), strict=True)
        ]


def sight(spec: GameSpec) -> Sight:
    """What the networks see of a game."""
    has_codes = spec.frame_dtype == np.uint16
    return Sight(spec.observation_shape, spec.largest_pixel, bool(has_codes))


def network_settings(preset: R2D2Settings, spec: GameSpec) -> RecurrentNetworkSettings:
    """The network of an agent that plays this game."""
    return preset.network(sight(spec), spec.num_actions)


def codec(preset: R2D2Settings, spec: GameSpec) -> BlockCodec:
    """How observations of this game are compressed."""
    dtype: np.dtype[Any] = spec.frame_dtype
    return BlockCodec(spec.observation_shape, dtype, preset.stride)
