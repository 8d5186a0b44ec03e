"""Stopping rules and triggers for one lane, as compiled code takes them.

The same rules as those of `exploration.stopping` and `exploration.triggers`, one number at a time.
A kernel asks `judge` before every decision, with what it knows of the step that led there.
"""

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from ezgreedy import requirements as require
from ezgreedy.compilation import jit
from ezgreedy.exploration.compiled import LaneStream, step_word, uniform
from ezgreedy.exploration.homeostasis import LARGEST_EXPONENT, LEAST_SPREAD, MEMORY
from ezgreedy.exploration.stops import (
    DiscrepancySettings,
    RewardSettings,
    StopSettings,
    UnchangedSettings,
)
from ezgreedy.exploration.streams import Purpose
from ezgreedy.requirements import FloatArray, IntArray

_STOP = np.uint64(Purpose.STOP)
_LENGTH, _UNCHANGED = 0, 1  # places in `Memory.counts`
_STOPS, _STARTS = 0, 1  # rows of `Memory.averages`
_COUNT, _MEAN, _VARIANCE, _EXPONENTIAL = 0, 1, 2, 3


class Rules(NamedTuple):
    """Which rules a run has; see `rules`."""

    unchanged_steps: int  # 0 for none
    reward_above: float  # infinity for none
    stop_rate: float  # of value discrepancies; 0 for none
    trigger_rate: float  # in place of ε; 0 for ε itself
    promise_steps: int
    promise_discount: float


class Memory(NamedTuple):
    """What rules remember in one lane."""

    values: FloatArray  # of the last k + 1 states, oldest first
    rewards: FloatArray  # of the steps between them
    averages: FloatArray  # [stops or starts, count, mean, variance, exponential]
    counts: IntArray  # states of this episode, steps without a change


class Seen(NamedTuple):
    """What a lane knows when a decision is due."""

    is_start: bool
    is_unchanged: bool
    reward: float
    value: float


def rules(
    stops: Sequence[StopSettings] = (), *, discount: float = 0.99, trigger_rate: float = 0.0
) -> Rules:
    """Rules for compiled runs.

    Args:
        stops: stopping rules, at most one of each kind.
        discount: γ of the agent, for discrepancies that name none.
        trigger_rate: rate of a `DiscrepancyTrigger` in place of ε, with the discrepancy of the
            stopping rule if there is one and else over five steps; 0 to keep ε.
    """
    known = (UnchangedSettings, RewardSettings, DiscrepancySettings)
    kinds = [type(stop) for stop in stops]
    if any(kind not in known for kind in kinds) or len(set(kinds)) < len(kinds):
        rule = "be StopOnUnchanged, StopOnReward or StopOnDiscrepancy, each at most once"
        raise require.refuse("stops", rule, [kind.__name__ for kind in kinds])
    promise = DiscrepancySettings()
    made = Rules(0, math.inf, 0.0, 0.0, promise.steps, discount)
    for stop in stops:
        if isinstance(stop, UnchangedSettings):
            made = made._replace(unchanged_steps=stop.steps)
        elif isinstance(stop, RewardSettings):
            made = made._replace(reward_above=stop.above)
        elif isinstance(stop, DiscrepancySettings):
            require.one_of("reading", stop.reading, ("consistent",))
            gamma = discount if stop.discount is None else stop.discount
            made = made._replace(
                stop_rate=stop.rate, promise_steps=stop.steps, promise_discount=gamma
            )
    require.number("trigger_rate", trigger_rate, 0.0, 1.0)
    if trigger_rate == 1.0:
        raise require.refuse("trigger_rate", "lie below 1", trigger_rate)
    return made._replace(trigger_rate=trigger_rate)


@jit
def new_memory(made: Rules) -> Memory:
    """The memory of a lane before its first step."""
    averages = np.zeros((2, 4))
    averages[:, _VARIANCE] = 1.0
    averages[:, _EXPONENTIAL] = 1.0
    return Memory(
        np.zeros(made.promise_steps + 1),
        np.zeros(made.promise_steps),
        averages,
        np.zeros(2, dtype=np.int64),
    )


@jit
def judge(
    made: Rules,
    memory: Memory,
    seen: Seen,
    draw: tuple[LaneStream, int],
    epsilon: float,
    remaining: int,
) -> tuple[float, int, bool]:
    """What rules say before a decision.

    Args:
        made: the rules.
        memory: what they remember; changed in place.
        seen: what led here.
        draw: the lane's stream and its absolute step count.
        epsilon: probability of starting an option.
        remaining: plays of the running option still to come.

    Returns:
        ε for this step, the plays still to come (0 if a rule ends the option), and whether a rule
        ended one.
    """
    if seen.is_start:
        memory.counts[_LENGTH] = 0
    fires = _is_stuck(made, memory, seen)
    if not seen.is_start and seen.reward > made.reward_above:
        fires = True
    discrepancy = -1.0
    if made.stop_rate > 0.0 or made.trigger_rate > 0.0:
        discrepancy = _discrepancy(made, memory, seen)
        if made.stop_rate > 0.0 and discrepancy >= 0.0:
            chance = _switches(memory.averages[_STOPS], made.stop_rate, discrepancy)
            fires = uniform(step_word(draw[0], draw[1]), _STOP) < chance or fires
    stopped = fires and remaining > 0
    if stopped:
        remaining = 0
    if made.trigger_rate > 0.0:
        epsilon = made.trigger_rate
        if remaining == 0 and discrepancy >= 0.0:
            epsilon = _switches(memory.averages[_STARTS], made.trigger_rate, discrepancy)
    return epsilon, remaining, stopped


@jit
def _is_stuck(made: Rules, memory: Memory, seen: Seen) -> bool:
    """Whether the last steps have changed nothing; having said so, it counts from zero."""
    unchanged = 0
    if seen.is_unchanged and not seen.is_start:
        unchanged = memory.counts[_UNCHANGED] + 1
    fires = 0 < made.unchanged_steps <= unchanged
    memory.counts[_UNCHANGED] = 0 if fires else unchanged
    return fires


@jit
def _discrepancy(made: Rules, memory: Memory, seen: Seen) -> float:
    """The value promise discrepancy; −1 within the first k steps of an episode."""
    values, rewards, steps = memory.values, memory.rewards, made.promise_steps
    for i in range(steps):
        values[i] = values[i + 1]
    values[steps] = seen.value
    for i in range(steps - 1):
        rewards[i] = rewards[i + 1]
    rewards[steps - 1] = seen.reward
    memory.counts[_LENGTH] = min(memory.counts[_LENGTH] + 1, steps + 1)
    if memory.counts[_LENGTH] <= steps:
        return -1.0
    met, weight = 0.0, 1.0
    for i in range(steps):
        met += weight * rewards[i]
        weight *= made.promise_discount
    return abs(values[0] - (met + weight * values[steps]))


@jit
def _switches(averages: FloatArray, rate: float, x: float) -> float:
    """The probability of switching; see `Homeostat`."""
    averages[_COUNT] += 1.0
    share = 1.0 / min(averages[_COUNT], MEMORY / rate)
    averages[_MEAN] += share * (x - averages[_MEAN])
    mean = averages[_MEAN]
    averages[_VARIANCE] += share * ((x - mean) * (x - mean) - averages[_VARIANCE])
    spread = max(math.sqrt(averages[_VARIANCE]), LEAST_SPREAD)
    e = math.exp(min((x - mean) / spread, LARGEST_EXPONENT))
    average = averages[_EXPONENTIAL]
    average += share * (min(e, average / rate) - average)
    averages[_EXPONENTIAL] = average
    return min(1.0, rate * e / average)
