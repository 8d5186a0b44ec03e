"""Where randomness comes from: a number for every (seed, lane, step, purpose).

A counter-based generator: the draw is a hash of its address, so lane i's tape depends only on the
seed and the lane's number, not on other draws, their order, the process or the backend. Only the
step count has to be stored. It uses 64-bit wrapping addition, multiplication, exclusive-or and
shifts, which give the same result in every backend.
"""

from enum import IntEnum

import numpy as np
from numpy.typing import NDArray

from ezgreedy import requirements as require

UInt64Array = NDArray[np.uint64]

# A Weyl increment (2⁶⁴/φ, odd) spreads successive steps; the two multipliers are those of a widely
# tested 64-bit finaliser.
WEYL = 0x9E3779B97F4A7C15
MULTIPLIER_A = 0xBF58476D1CE4E5B9
MULTIPLIER_B = 0x94D049BB133111EB
SHIFT_A, SHIFT_B, SHIFT_C = 30, 27, 31

LARGEST_STEP = 2**60

RESOLUTION_BITS = 53
UNIT = 2.0**-RESOLUTION_BITS

_MASK_64 = 2**64 - 1
_DISCARDED = np.uint64(64 - RESOLUTION_BITS)


class Purpose(IntEnum):
    """What a draw decides; each purpose has its own number at every step of every lane."""

    COIN = 0
    ACTION = 1
    DURATION = 2
    OPTION_POLICY = 3
    OPTION_TERMINATION = 4
    GREEDY_TIE = 5  # for agents: which of several equally good actions is the greedy one
    STOP = 6  # for stopping rules: whether a running option ends early
    NOISE = 64  # and all numbers above: continuous actions need many draws on one step


def finalise(words: UInt64Array) -> UInt64Array:
    """Scrambles 64-bit words in place, so that related inputs give unrelated outputs."""
    scramble(words, np.uint64(MULTIPLIER_B))
    words ^= words >> np.uint64(SHIFT_C)
    return words


def scramble(words: UInt64Array, multiplier: UInt64Array | np.uint64) -> UInt64Array:
    """The steps of `finalise` up to its last multiplication, in place: good high bits."""
    folded = words >> np.uint64(SHIFT_A)
    words ^= folded
    words *= np.uint64(MULTIPLIER_A)
    words ^= np.right_shift(words, np.uint64(SHIFT_B), out=folded)
    words *= multiplier
    return words


def lane_keys(seed: int, lanes: int, first_lane: int = 0) -> tuple[UInt64Array, UInt64Array]:
    """The offset and the odd multiplier that make lanes first_lane, first_lane + 1, … streams.

    A lane's own multiplier keeps two lanes apart even where their counters overlap.
    """
    state = np.array([WEYL], dtype=np.uint64)
    remaining = seed
    while True:  # absorbs the seed 64 bits at a time
        state ^= np.uint64(remaining & _MASK_64)
        state += np.uint64(WEYL)
        state = finalise(state)
        remaining >>= 64
        if not remaining:
            break
    lane_numbers = np.arange(first_lane, first_lane + lanes, dtype=np.uint64)
    lane_numbers += np.uint64(WEYL)
    offsets = finalise(finalise(lane_numbers) ^ state)
    multipliers = finalise(offsets + np.uint64(WEYL)) | np.uint64(1)
    return offsets, multipliers


class Streams:
    """The streams of a batch of lanes within a fleet that shares a seed.

    Args:
        seed: any non-negative int.
        lanes: number of lanes in this batch.
        first_lane: the fleet-wide number of this batch's first lane.
    """

    def __init__(self, seed: int, lanes: int, first_lane: int = 0) -> None:
        self.seed = require.integer("seed", seed, least=0, most=None)
        self.lanes = require.integer("lanes", lanes, least=1)
        self.first_lane = require.integer("first_lane", first_lane, least=0, most=2**62)
        self.offsets, self.multipliers = lane_keys(self.seed, self.lanes, self.first_lane)

    def words(
        self, steps: NDArray[np.int64], lanes: NDArray[np.int64] | None = None
    ) -> UInt64Array:
        """One word for each lane and step, from which the draws of all purposes are made.

        Its high bits are the coin; the low ones need `finalise`.

        Args:
            steps: absolute step counts, in a shape that broadcasts against the lanes'.
            lanes: positions within this batch; all of them, in order, if None.
        """
        offsets, multipliers = self.offsets, self.multipliers
        if lanes is not None:
            offsets, multipliers = offsets[lanes], multipliers[lanes]
        return scramble(offsets + steps.astype(np.uint64) * np.uint64(WEYL), multipliers)

    def uniforms(self, words: UInt64Array, purpose: Purpose) -> NDArray[np.float64]:
        """The draws, uniform on [0, 1), that these words hold for one purpose."""
        if purpose != Purpose.COIN:
            words = finalise(words + np.uint64(purpose * WEYL & _MASK_64))
        return (words >> _DISCARDED).astype(np.float64) * UNIT

    def heads(self, words: UInt64Array, epsilon: NDArray[np.float64]) -> NDArray[np.bool_]:
        """Where the coin says explore: u < ε, compared as integers.

        Scaling ε by a power of two is exact, so no rounding separates the integer coin from the
        real one: ε = 0 never explores and ε = 1 always does.
        """
        threshold = np.ceil(epsilon * 2.0**RESOLUTION_BITS).astype(np.uint64)
        return (words >> _DISCARDED) < threshold

    def noise_uniforms(self, words: UInt64Array, count: int) -> NDArray[np.float64]:
        """`count` draws for continuous actions from every word, [words, count]."""
        addresses = (np.uint64(Purpose.NOISE) + np.arange(count, dtype=np.uint64)) * np.uint64(WEYL)
        return (finalise(words[:, None] + addresses) >> _DISCARDED).astype(np.float64) * UNIT

    def normals(self, words: UInt64Array, count: int) -> NDArray[np.float64]:
        """`count` standard normal draws from every word, [words, count], by Box and Muller."""
        pairs = (count + 1) // 2
        uniforms = self.noise_uniforms(words, 2 * pairs)
        radii = np.sqrt(-2.0 * np.log1p(-uniforms[:, :pairs]))
        angles = 2.0 * np.pi * uniforms[:, pairs:]
        both = np.stack([radii * np.cos(angles), radii * np.sin(angles)], axis=2)
        return both.reshape(len(words), 2 * pairs)[:, :count]
