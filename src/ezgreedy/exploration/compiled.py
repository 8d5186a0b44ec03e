"""The same tape from numba-compiled code, for kernels that run one lane at a time.

A kernel holds a lane's option as two ints, the action and the plays left, and asks `explore` on
every step. The words, uniforms and tables are those of `streams` and `durations`, so an `EZGreedy`
with the same seed and lane plays the same actions. Needs the `study` extra.
"""

from typing import NamedTuple

import numpy as np

from ezgreedy.compilation import jit
from ezgreedy.exploration.durations import InverseTable
from ezgreedy.exploration.streams import (
    MULTIPLIER_A,
    MULTIPLIER_B,
    RESOLUTION_BITS,
    SHIFT_A,
    SHIFT_B,
    SHIFT_C,
    UNIT,
    WEYL,
    Purpose,
    lane_keys,
)

# Mixing signed and unsigned ints would make numba compute in floats, so all of these are unsigned.
_WEYL = np.uint64(WEYL)
_MULTIPLIER_A = np.uint64(MULTIPLIER_A)
_MULTIPLIER_B = np.uint64(MULTIPLIER_B)
_SHIFT_A, _SHIFT_B, _SHIFT_C = np.uint64(SHIFT_A), np.uint64(SHIFT_B), np.uint64(SHIFT_C)
_DISCARDED = np.uint64(64 - RESOLUTION_BITS)
_ACTION, _DURATION = np.uint64(Purpose.ACTION), np.uint64(Purpose.DURATION)


class LaneStream(NamedTuple):
    """One lane's stream, as compiled code takes it."""

    offset: np.uint64
    multiplier: np.uint64


def lane_stream(seed: int, lane: int) -> LaneStream:
    """The stream of one lane of the fleet with this seed."""
    offsets, multipliers = lane_keys(seed, 1, lane)
    return LaneStream(offsets[0], multipliers[0])


@jit
def step_word(stream: LaneStream, step: int) -> np.uint64:
    """The word of a lane's step, from which the draws of all purposes are made."""
    word = stream.offset + np.uint64(step) * _WEYL
    word = (word ^ (word >> _SHIFT_A)) * _MULTIPLIER_A
    return (word ^ (word >> _SHIFT_B)) * stream.multiplier


@jit
def _fraction(word: np.uint64) -> float:
    # Processors convert signed integers to floats in one instruction, unsigned ones in several.
    return np.float64(np.int64(word >> _DISCARDED)) * UNIT


@jit
def coin(word: np.uint64) -> float:
    """The uniform that decides whether to explore."""
    return _fraction(word)


@jit
def heads(word: np.uint64, epsilon: float) -> bool:
    """Whether the coin says explore; compared as integers, so that loops compute ε's side once."""
    return bool((word >> _DISCARDED) < np.uint64(np.ceil(epsilon * 2.0**RESOLUTION_BITS)))


@jit
def uniform(word: np.uint64, purpose: np.uint64) -> float:
    """The uniform of a step's word for a purpose other than the coin."""
    word = word + purpose * _WEYL
    word = (word ^ (word >> _SHIFT_A)) * _MULTIPLIER_A
    word = (word ^ (word >> _SHIFT_B)) * _MULTIPLIER_B
    word = word ^ (word >> _SHIFT_C)
    return _fraction(word)


@jit
def duration(u: float, table: InverseTable) -> int:
    """The duration that a uniform draws."""
    count: int = table.guide[int(u * (len(table.guide) - 1))]
    while table.cumulative[count] <= u:
        count += 1
    return count + 1


@jit
def explore(
    stream: LaneStream,
    step: int,
    epsilon: float,
    table: InverseTable,
    num_actions: int,
    option_action: int,
    remaining: int,
) -> tuple[int, int, bool]:
    """One decision of εz-greedy in one lane.

    Args:
        stream: the lane's stream.
        step: the lane's absolute step count.
        epsilon: probability of starting an option if none runs.
        table: the duration law.
        num_actions: number of actions, all equally likely to be explored.
        option_action: the running option's action (anything if none runs).
        remaining: plays of the running option still to come; 0 if none runs.

    Returns:
        The new option_action and remaining, and whether to play option_action (else be greedy).
    """
    if remaining > 0:
        return option_action, remaining - 1, True
    word = step_word(stream, step)
    if not heads(word, epsilon):
        return option_action, 0, False
    option_action = int(uniform(word, _ACTION) * num_actions)
    return option_action, duration(uniform(word, _DURATION), table) - 1, True
