"""Noise to add to continuous actions: white, held, Ornstein–Uhlenbeck, or of any colour.

    noise = HeldNoise(size=2, scale=0.3, durations=Zeta(cap=16), lanes=8, seed=0)
    actions = (policy_actions + noise(starts=starts)).clip(-1, 1)

All kinds have the same interface and the same standard deviation on every step, `scale`, and differ
in how they are correlated in time. A lane's noise depends on the seed, the lane and its steps
alone; correlation ends with the episode and nowhere else. NumPy is all it needs.
"""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any

import numpy as np

from ezgreedy import requirements as require
from ezgreedy.exploration.durations import DurationLaw
from ezgreedy.exploration.explorer import refuse_saved
from ezgreedy.exploration.held_actions import Holding
from ezgreedy.exploration.streams import Streams
from ezgreedy.requirements import BoolArray, FloatArray, IntArray

PINK = 1.0  # the β of pink noise


class ActionNoise(ABC):
    """Noise for the actions of a batch of lanes; subclasses define its correlation in time.

    Args:
        size: numbers in an action.
        scale: standard deviation, one for all dimensions or one for each.
        lanes: number of environments stepped together.
        seed: any non-negative int; with the lane's number it determines the lane's noise.
        first_lane: the fleet-wide number of this batch's first lane.
    """

    def __init__(
        self, size: int, scale: object = 0.3, lanes: int = 1, seed: int = 0, *, first_lane: int = 0
    ) -> None:
        self.size = require.integer("size", size, least=1)
        self.scale = _scales(scale, self.size)
        self.lanes = require.integer("lanes", lanes, least=1)
        self.streams = Streams(seed, self.lanes, first_lane)
        self._steps: IntArray = np.zeros(self.lanes, dtype=np.int64)

    def __call__(
        self, starts: BoolArray | None = None, active: BoolArray | None = None
    ) -> FloatArray:
        """The noise of this step, [lanes, size].

        Args:
            starts: bool [lanes], true where this step is the first of an episode: what came
                before does not count. The alternative to `reset`.
            active: bool [lanes], the lanes that take a step now. The others are frozen, and what
                is returned for them is meaningless.
        """
        if starts is not None:
            starts = require.mask("starts", starts, (self.lanes,))
        if active is None:
            active = np.ones(self.lanes, dtype=np.bool_)
        active = require.mask("active", active, (self.lanes,))
        if starts is not None:
            self._forget(starts)
        sample = self._sample(np.flatnonzero(active))
        self._steps = self._steps + active
        return self.scale * sample

    @property
    def steps(self) -> IntArray:
        """Steps that each lane has taken, [lanes]."""
        return self._steps.copy()

    @abstractmethod
    def _sample(self, lanes: IntArray) -> FloatArray:
        """Noise of unit variance, [all lanes, size], of which those given are used."""

    def reset(self, finished: BoolArray) -> None:
        """Ends the correlation in lanes whose episode has ended."""
        self._forget(require.mask("finished", finished, (self.lanes,)))

    @abstractmethod
    def _forget(self, finished: BoolArray) -> None:
        """Begins anew in these lanes."""

    def _normals(self, lanes: IntArray, count: int) -> FloatArray:
        """Standard normal draws at the present steps of these lanes, [these lanes, count]."""
        return self.streams.normals(self.streams.words(self._steps[lanes], lanes), count)

    def state_dict(self) -> dict[str, Any]:
        """Everything a later process needs to continue the same noise, as plain JSON-able data."""
        return {
            "noise": type(self).__name__,
            "size": self.size,
            "lanes": self.lanes,
            "seed": self.streams.seed,
            "first_lane": self.streams.first_lane,
            "steps": self._steps.tolist(),
            **self._own_state(),
        }

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Continues from a `state_dict` of noise made with the same arguments."""
        expected = self.state_dict()
        if not isinstance(state, Mapping) or state.keys() != expected.keys():
            raise require.refuse("state", f"have the keys {sorted(expected)}", state)
        for key in ("noise", "size", "lanes", "seed", "first_lane"):
            if state[key] != expected[key]:
                raise refuse_saved(key, state[key], expected[key], "noise")
        steps = _whole_numbers("state['steps']", state["steps"], self.lanes, least=0)
        self._restore(state)
        self._steps = steps

    def _own_state(self) -> dict[str, Any]:
        return {}

    def _restore(self, state: Mapping[str, Any]) -> None:  # noqa: B027 (white noise has no state)
        pass


class WhiteNoise(ActionNoise):
    """Independent on every step; arguments are those of `ActionNoise`."""

    def _sample(self, lanes: IntArray) -> FloatArray:
        sample = np.zeros((self.lanes, self.size))
        sample[lanes] = self._normals(lanes, self.size)
        return sample

    def _forget(self, finished: BoolArray) -> None:
        pass


class HeldNoise(ActionNoise):
    """Drawn once and held for n ~ z steps.

    Args:
        size: numbers in an action.
        scale: standard deviation, one for all dimensions or one for each.
        durations: the law of the number of steps; `Zeta()` by default.
        lanes: number of environments stepped together.
        seed: any non-negative int; with the lane's number it determines the lane's noise.
        first_lane: the fleet-wide number of this batch's first lane.
    """

    def __init__(
        self,
        size: int,
        scale: object = 0.3,
        durations: DurationLaw | None = None,
        lanes: int = 1,
        seed: int = 0,
        *,
        first_lane: int = 0,
    ) -> None:
        super().__init__(size, scale, lanes, seed, first_lane=first_lane)
        self._holding = Holding(size, 1.0, durations, lanes, seed, first_lane)

    def _sample(self, lanes: IntArray) -> FloatArray:
        active = np.zeros(self.lanes, dtype=np.bool_)
        active[lanes] = True
        fresh, _ = self._holding.begins(None, active, None)
        self._holding.held[fresh] = self._normals(fresh, self.size)
        return self._holding.held.copy()

    def _forget(self, finished: BoolArray) -> None:
        self._holding.options.reset(finished)

    def _own_state(self) -> dict[str, Any]:
        return self._holding.state_dict()

    def _restore(self, state: Mapping[str, Any]) -> None:
        self._holding.load_state_dict(state)


class OrnsteinUhlenbeck(ActionNoise):
    """A random walk that is drawn back to zero: exponentially correlated.

    It begins in its stationary distribution, so that every step has the same variance.

    Args:
        size: numbers in an action.
        scale: standard deviation, one for all dimensions or one for each.
        lanes: number of environments stepped together.
        seed: any non-negative int; with the lane's number it determines the lane's noise.
        first_lane: the fleet-wide number of this batch's first lane.
        theta: share by which the noise is drawn back on every step, in (0, 1]: θ·dt elsewhere.
    """

    def __init__(
        self,
        size: int,
        scale: object = 0.3,
        lanes: int = 1,
        seed: int = 0,
        *,
        first_lane: int = 0,
        theta: float = 0.15,
    ) -> None:
        super().__init__(size, scale, lanes, seed, first_lane=first_lane)
        self.theta = require.number("theta", theta, 0.0, 1.0)
        if self.theta == 0.0:
            raise require.refuse("theta", "be above 0", theta)
        self._state: FloatArray = np.zeros((self.lanes, self.size))
        self._is_new: BoolArray = np.ones(self.lanes, dtype=np.bool_)

    def _sample(self, lanes: IntArray) -> FloatArray:
        kept = np.where(self._is_new[lanes], 0.0, 1.0 - self.theta)[:, None]
        state = self._state.copy()
        state[lanes] *= kept
        state[lanes] += np.sqrt(1.0 - kept**2) * self._normals(lanes, self.size)
        self._state = state
        self._is_new[lanes] = False
        return state

    def _forget(self, finished: BoolArray) -> None:
        self._is_new = self._is_new | finished

    def _own_state(self) -> dict[str, Any]:
        return {"state": self._state.tolist(), "is_new": self._is_new.tolist()}

    def _restore(self, state: Mapping[str, Any]) -> None:
        values = np.array(state["state"], dtype=np.float64)
        if values.shape != self._state.shape or not np.isfinite(values).all():
            rule = f"be finite numbers of shape {self._state.shape}"
            raise require.refuse("state['state']", rule, values.shape)
        is_new = require.mask("state['is_new']", state["is_new"], (self.lanes,))
        self._state, self._is_new = values, is_new.copy()


class ColouredNoise(ActionNoise):
    """Power ∝ 1/f^β: white for β = 0, pink for β = 1, red for β = 2.

    A sequence of `length` steps is drawn for every episode by the method of Timmer and König
    (1995); a longer episode continues with another. Pink noise is the default of Eberhard et al.
    (2023), with `length` the length of an episode.

    Args:
        size: numbers in an action.
        scale: standard deviation, one for all dimensions or one for each.
        lanes: number of environments stepped together.
        seed: any non-negative int; with the lane's number it determines the lane's noise.
        first_lane: the fleet-wide number of this batch's first lane.
        beta: β, at least 0.
        length: steps of a sequence, at least 2.
        as_published: whether `scale` leaves out the power of a sequence's mean, as usual elsewhere:
            pink noise of 1,000 steps then has a standard deviation of 1.036 times the scale.
    """

    def __init__(
        self,
        size: int,
        scale: object = 0.3,
        lanes: int = 1,
        seed: int = 0,
        *,
        first_lane: int = 0,
        beta: float = PINK,
        length: int = 1000,
        as_published: bool = False,
    ) -> None:
        super().__init__(size, scale, lanes, seed, first_lane=first_lane)
        self.beta = require.number("beta", beta, 0.0)
        self.length = require.integer("length", length, least=2)
        self.as_published = require.flag("as_published", as_published)
        self._sequences: FloatArray = np.zeros((self.lanes, self.size, self.length))
        # The step on which each lane's sequence began; −1 where a new one is due.
        self._began: IntArray = np.full(self.lanes, -1)

    def _sample(self, lanes: IntArray) -> FloatArray:
        ended = self._steps - self._began >= self.length
        due = lanes[(self._began[lanes] < 0) | ended[lanes]]
        self._began[due] = self._steps[due]
        self._draw(due)
        sample = np.zeros((self.lanes, self.size))
        positions = self._steps[lanes] - self._began[lanes]
        sample[lanes] = self._sequences[lanes, :, positions]
        return sample

    def _draw(self, lanes: IntArray) -> None:
        """The sequences of these lanes, from the words of the steps on which they began."""
        if not lanes.size:
            return
        num_frequencies = self.length // 2 + 1
        words = self.streams.words(self._began[lanes], lanes)
        draws = self.streams.normals(words, self.size * 2 * num_frequencies)
        real, imaginary = np.moveaxis(draws.reshape(-1, self.size, 2, num_frequencies), 2, 0)
        self._sequences[lanes] = power_law_sequences(
            real, imaginary, self.beta, self.length, as_published=self.as_published
        )

    def _forget(self, finished: BoolArray) -> None:
        self._began = np.where(finished, -1, self._began)

    def _own_state(self) -> dict[str, Any]:
        names = ("beta", "length", "as_published")
        return {name: getattr(self, name) for name in names} | {"began": self._began.tolist()}

    def _restore(self, state: Mapping[str, Any]) -> None:
        for name in ("beta", "length", "as_published"):
            if state[name] != getattr(self, name):
                raise require.refuse(
                    f"state[{name!r}]", f"equal {getattr(self, name)}", state[name]
                )
        self._began = _whole_numbers("state['began']", state["began"], self.lanes, least=-1)
        self._draw(np.flatnonzero(self._began >= 0))


def power_law_sequences(
    real: FloatArray, imaginary: FloatArray, beta: float, length: int, *, as_published: bool
) -> FloatArray:
    """Sequences with power ∝ 1/f^β and unit variance on every step, [..., length].

    Args:
        real: standard normal draws, [..., length // 2 + 1], lowest frequency first.
        imaginary: more of them.
        beta: β.
        length: number of steps.
        as_published: whether to leave the mean out of the variance.
    """
    # The mean gets the power of the lowest frequency: 1/0 is none.
    frequencies = np.maximum(np.fft.rfftfreq(length), 1.0 / length)
    amplitudes = frequencies ** (-beta / 2.0)
    imaginary, real = imaginary.copy(), real.copy()
    # The mean, and for even lengths the highest frequency, are real: all their power is there.
    powers = 4.0 * amplitudes**2
    for alone in (0, -1) if length % 2 == 0 else (0,):
        imaginary[..., alone] = 0.0
        real[..., alone] *= np.sqrt(2.0)
        powers[alone] /= 2.0
    if as_published:
        powers[0] = 0.0
        powers[-1] /= 1.0 if length % 2 else 2.0
    spectrum = (real + 1j * imaginary) * amplitudes
    return np.fft.irfft(spectrum, n=length, axis=-1) * (length / np.sqrt(powers.sum()))


def _scales(scale: object, size: int) -> FloatArray:
    array = np.asarray(scale, dtype=np.float64)
    if array.shape not in ((), (size,)):
        raise require.refuse("scale", f"be a number or {size} numbers", array.shape)
    if not np.isfinite(array).all() or (array < 0.0).any():
        raise require.refuse("scale", "be finite and at least 0", array.tolist())
    return np.broadcast_to(array, (size,))


def _whole_numbers(name: str, value: object, lanes: int, least: int) -> IntArray:
    array = np.array(value)
    if array.shape != (lanes,) or array.dtype.kind not in "iu" or (array < least).any():
        raise require.refuse(name, f"hold {lanes} ints of at least {least}", value)
    return array.astype(np.int64)
