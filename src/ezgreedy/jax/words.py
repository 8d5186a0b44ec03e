"""64-bit unsigned integers as pairs of 32-bit ones, which JAX always has.

Randomness is a hash in 64-bit arithmetic (`exploration.streams`). Outside its 64-bit mode JAX has
no such integers, and some devices have no 64-bit floats, so products, comparisons and roundings are
written out here.
"""

from typing import NamedTuple

import jax.numpy as jnp
import numpy as np
from jax import Array

from ezgreedy.exploration.streams import (
    MULTIPLIER_A,
    MULTIPLIER_B,
    RESOLUTION_BITS,
    SHIFT_A,
    SHIFT_B,
    SHIFT_C,
)

_LOW_16 = np.uint32(0xFFFF)
_HIGH_BITS = RESOLUTION_BITS - 32


class Word(NamedTuple):
    """high · 2³² + low, elementwise over two uint32 arrays of one shape."""

    high: Array
    low: Array


def word(values: object) -> Word:
    """Words of ints or uint64 values known beforehand."""
    array = np.asarray(values, dtype=np.uint64)
    return Word(jnp.uint32(array >> np.uint64(32)), jnp.uint32(array & np.uint64(0xFFFFFFFF)))


def add(a: Word, b: Word) -> Word:
    """The sum, wrapping."""
    low = a.low + b.low
    return Word(a.high + b.high + (low < a.low), low)


def exclusive_or(a: Word, b: Word) -> Word:
    """The bitwise exclusive or."""
    return Word(a.high ^ b.high, a.low ^ b.low)


def shifted(a: Word, bits: int) -> Word:
    """Shifted right by 0 < bits < 64."""
    if bits >= 32:
        return Word(jnp.zeros_like(a.high), a.high >> np.uint32(bits - 32))
    low = (a.low >> np.uint32(bits)) | (a.high << np.uint32(32 - bits))
    return Word(a.high >> np.uint32(bits), low)


def product_of_32(a: Array, b: Array) -> Word:
    """The whole product of two uint32 arrays."""
    a_low, a_high, b_low, b_high = a & _LOW_16, a >> 16, b & _LOW_16, b >> 16
    low, cross, crossed, high = a_low * b_low, a_low * b_high, a_high * b_low, a_high * b_high
    middle = (low >> 16) + (cross & _LOW_16) + (crossed & _LOW_16)
    return Word(
        high + (cross >> 16) + (crossed >> 16) + (middle >> 16),
        (low & _LOW_16) | (middle << 16),
    )


def multiply(a: Word, b: Word) -> Word:
    """The product, wrapping."""
    low = product_of_32(a.low, b.low)
    return Word(low.high + a.low * b.high + a.high * b.low, low.low)


def at_most(a: Word, b: Word) -> Array:
    """Where a ≤ b."""
    return (a.high < b.high) | ((a.high == b.high) & (a.low <= b.low))


def below(a: Word, b: Word) -> Array:
    """Where a < b."""
    return ~at_most(b, a)


def scramble(words: Word, multiplier: Word) -> Word:
    """As `streams.scramble`."""
    words = multiply(exclusive_or(words, shifted(words, SHIFT_A)), word(MULTIPLIER_A))
    return multiply(exclusive_or(words, shifted(words, SHIFT_B)), multiplier)


def finalise(words: Word) -> Word:
    """As `streams.finalise`."""
    words = scramble(words, word(MULTIPLIER_B))
    return exclusive_or(words, shifted(words, SHIFT_C))


def threshold(epsilon: object) -> Word:
    """⌈ε · 2⁵³⌉: the coin says explore for draws below it.

    Numbers and NumPy arrays count in double precision, as in NumPy; JAX arrays in their own.
    """
    if not isinstance(epsilon, Array):
        return word(np.ceil(np.asarray(epsilon, dtype=np.float64) * 2.0**RESOLUTION_BITS))
    # Scaling by powers of two and taking off the integer part are exact in any precision.
    scaled = jnp.clip(epsilon, 0.0, 1.0) * 2.0**_HIGH_BITS
    high = jnp.floor(scaled)
    return Word(high.astype(jnp.uint32), jnp.ceil((scaled - high) * 2.0**32).astype(jnp.uint32))


def scaled_draw(draw: Word, total: Word) -> Word:
    """⌊u · total⌋ for u = draw · 2⁻⁵³, where u · total is rounded as doubles are.

    The double next to an exact product may be the integer above it. That is so if what is missing,
    in units of 2⁻⁵³, is at most half the spacing of doubles there: the highest power of two in the
    integer part.
    """
    parts = [
        product_of_32(draw.low, total.low),
        product_of_32(draw.high, total.low),
        product_of_32(draw.low, total.high),
        product_of_32(draw.high, total.high),
    ]
    zero = jnp.zeros_like(parts[0].low)
    middle = add(add(parts[1], Word(zero, parts[0].high)), Word(zero, parts[2].low))
    upper = add(add(parts[3], Word(zero, middle.high)), Word(zero, parts[2].high))
    # The product is upper · 2⁶⁴ + middle.low · 2³² + parts[0].low; split it at bit 53.
    split = np.uint32(_HIGH_BITS)
    whole = Word(
        (upper.high << (32 - split)) | (upper.low >> split),
        (upper.low << (32 - split)) | (middle.low >> split),
    )
    rest = Word(middle.low & np.uint32(2**_HIGH_BITS - 1), parts[0].low)
    negated = add(Word(~rest.high, ~rest.low), word(1))
    missing = add(negated, word(2**RESOLUTION_BITS))
    rounds_up = at_most(missing, _highest_power(whole)) & ((whole.high | whole.low) > 0)
    return add(whole, Word(zero, rounds_up.astype(jnp.uint32)))


def _highest_power(a: Word) -> Word:
    """The highest power of two that is at most a; 0 for 0."""
    for bits in (1, 2, 4, 8, 16, 32):
        further = shifted(a, bits)
        a = Word(a.high | further.high, a.low | further.low)
    half = shifted(a, 1)
    return Word(a.high ^ half.high, a.low ^ half.low)
