"""How ε changes with the absolute step count of a lane.

A schedule is a function of the steps that the lane has taken since the policy was made, counted
across episodes and restarts, never of a training budget: a resumed run continues where it was. Any
function of an int will do; the classes here also work elementwise, which tensors need.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from ezgreedy import requirements as require
from ezgreedy.requirements import FloatArray

Schedule = Callable[[int], float]
Epsilon = float | FloatArray | Schedule

_NUMBERS = (int, float, np.integer, np.floating)


@dataclass(frozen=True)
class Linear:
    """From `start` to `end` over `steps` steps of the lane, constant before and after.

    The paper's Rainbow agents use Linear(1.0, 0.01, 1_000_000, first_step=20_000): 4M frames at
    four frames a step, once there is something to learn from.
    """

    start: float
    end: float
    steps: int
    first_step: int = 0

    def __post_init__(self) -> None:
        object.__setattr__(self, "start", require.number("start", self.start, 0.0, 1.0))
        object.__setattr__(self, "end", require.number("end", self.end, 0.0, 1.0))
        object.__setattr__(self, "steps", require.integer("steps", self.steps, least=1))
        first_step = require.integer("first_step", self.first_step, least=0)
        object.__setattr__(self, "first_step", first_step)

    def __call__(self, step: int) -> float:
        """ε at one absolute step."""
        return float(self.at(np.float64(step)))

    def at(self, steps: Any) -> Any:
        """ε at many steps at once: a float64 NumPy array or tensor in, the same out."""
        fraction = ((steps - float(self.first_step)) / float(self.steps)).clip(0.0, 1.0)
        return self.start * (1.0 - fraction) + self.end * fraction


def ladder(lanes: int, base: float = 0.4, alpha: float = 7.0) -> FloatArray:
    """ε_i = base^(1 + α·i/(lanes − 1)): the fleet of R2D2 actors, from curious to greedy.

    A single lane gets `base`. Slice it when a batch holds part of the fleet:
    `EZGreedy(..., epsilon=ladder(320)[40:48], lanes=8, first_lane=40)`.
    """
    lanes = require.integer("lanes", lanes, least=1)
    base = require.number("base", base, 0.0, 1.0)
    alpha = require.number("alpha", alpha, 0.0)
    return base ** (1.0 + alpha * np.arange(lanes) / max(lanes - 1, 1))


def checked_epsilon(epsilon: object, lanes: int) -> Epsilon:
    """A number in [0, 1], one per lane, or a function of the step; anything else is refused."""
    if callable(epsilon):
        return epsilon
    if not isinstance(epsilon, (np.ndarray, list, tuple)):
        if isinstance(epsilon, (bool, np.bool_)) or not isinstance(epsilon, _NUMBERS):
            rule = "be a number, one number per lane, or a schedule (a function of the step)"
            raise require.refuse_type("epsilon", rule, epsilon)
        return require.number("epsilon", epsilon, 0.0, 1.0)
    array = np.asarray(epsilon)
    if array.dtype.kind not in "iuf":
        raise require.refuse_type("epsilon", f"hold numbers, not {array.dtype}", epsilon)
    if array.shape != (lanes,):
        raise require.refuse("epsilon", f"have shape {(lanes,)}, one number per lane", array.shape)
    outside = ~((array >= 0.0) & (array <= 1.0))  # also true for NaN
    if outside.any():
        lane = int(np.flatnonzero(outside)[0])
        received = require.Described(f"{array[lane]} at position {lane}")
        raise require.refuse("epsilon", "lie in [0, 1]", received)
    checked: FloatArray = array.astype(np.float64)
    checked.setflags(write=False)  # to change it, assign to the policy's `epsilon`
    return checked


def epsilon_at(epsilon: Epsilon, steps: np.ndarray[Any, np.dtype[np.int64]]) -> FloatArray:
    """ε for lanes at their absolute steps, in a shape that broadcasts against `steps`.

    Args:
        epsilon: as `checked_epsilon` returns it.
        steps: [lanes], or [rows, lanes] for several steps ahead.
    """
    if not callable(epsilon):
        return np.asarray(epsilon, dtype=np.float64)
    if isinstance(epsilon, Linear):
        return np.asarray(epsilon.at(steps.astype(np.float64)))
    distinct, where = np.unique(steps, return_inverse=True)
    values = np.empty(len(distinct))
    for position, step in enumerate(distinct.tolist()):
        name = f"epsilon(step={step})"
        values[position] = require.number(name, epsilon(step), 0.0, 1.0)
    return values[where.reshape(steps.shape)]
