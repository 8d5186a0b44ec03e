"""Colour screens in two bytes per pixel: the console's palette, closed under the pooling of frames.

The console draws with 128 colours. An observation that shows the maximum of two screens, taken in
each of red, green and blue, may show a colour that the console does not have; but its pixel depends
only on the two indices. So every colour that two screens can make together has a code, 4,335 in
all; the first 128 are the console's own, and black is the first. A table of three bytes for each
code gives the colours back, without loss: see `colours` and `expand`.
"""

from functools import cache

import numpy as np
from numpy.typing import NDArray

Codes = NDArray[np.uint16]

SCREEN = (210, 160)

# Red, green and blue of the NTSC console's colours as the emulator shows them, one hue per line
# from dark to light; the index on a screen is twice the number here. Read off the emulator's own
# screens, on which all of them occur.
_PALETTE = """
    000000 4a4a4a 6f6f6f 8e8e8e aaaaaa c0c0c0 d6d6d6 ececec
    484800 69690f 86861d a2a22a bbbb35 d2d240 e8e84a fcfc54
    7c2c00 904811 a26221 b47a30 c3903d d2a44a dfb755 ecc860
    901c00 a33915 b55328 c66c3a d5824a e39759 f0aa67 fcbc74
    940000 a71a1a b83232 c84848 d65c5c e46f6f f08080 fc9090
    840064 97197a a8308f b846a2 c659b3 d46cc3 e07cd2 ec8ce0
    500084 68199a 7d30ad 9246c0 a459d0 b56ce0 c57cee d48cfc
    140090 331aa3 4e32b5 6848c6 7f5cd5 956fe3 a980f0 bc90fc
    000094 181aa7 2d32b8 4248c8 545cd6 656fe4 7580f0 8490fc
    001c88 183b9d 2d57b0 4272c2 548ad2 65a0e1 75b5ef 84c8fc
    003064 185080 2d6d98 4288b0 54a0c5 65b7d9 75cceb 84e0fc
    004030 18624e 2d8169 429e82 54b899 65d1ae 75e7c2 84fcd4
    004400 1a661a 328432 48a048 5cba5c 6fd26f 80e880 90fc90
    143c00 355f18 527e2d 6e9c42 87b754 9ed065 b4e775 c8fc84
    303800 505916 6d762b 88923e a0ab4f b7c25f ccd86e e0ec7c
    482c00 694d14 866a26 a28638 bb9f47 d2b656 e8cc63 fce070
"""
NUM_COLOURS = 128


def colours() -> NDArray[np.uint8]:
    """Red, green and blue of every code, [codes, 3]; do not write to it."""
    return _tables()[0]


def pooled_codes(screen: NDArray[np.uint8], other: NDArray[np.uint8]) -> Codes:
    """The codes of the maximum of two screens of palette indices, in their shape.

    For the same screen twice, these are half its indices: a screen is its own maximum.
    """
    # An index is even, so shifting by 6 puts half of it above the 7 bits of the other's half.
    pairs = (screen.astype(np.uint16) << 6) | (other >> 1)
    return _tables()[1].take(pairs)


def expand(codes: Codes) -> NDArray[np.uint8]:
    """The colours of codes as planes, [..., planes, height, width] to [..., 3·planes, …].

    Each plane of codes becomes three of colour: red, green, blue.
    """
    planes = np.moveaxis(colours()[codes], -1, -3)
    return planes.reshape(*codes.shape[:-3], -1, *codes.shape[-2:])


@cache
def _tables() -> tuple[NDArray[np.uint8], Codes]:
    """Colours by code, [codes, 3], and codes by pair of colour numbers, [128 · 128]."""
    own = np.frombuffer(bytes.fromhex(_PALETTE), dtype=np.uint8).reshape(NUM_COLOURS, 3)
    pooled = np.maximum(own[:, None], own[None]).reshape(-1, 3).astype(np.int64)
    keys = pooled @ np.array([1 << 16, 1 << 8, 1])
    own_keys = keys[:: NUM_COLOURS + 1]
    mixed_keys = np.setdiff1d(keys, own_keys)
    ordered = np.concatenate([own_keys, mixed_keys])
    by_key = np.argsort(ordered)
    codes = by_key[np.searchsorted(ordered, keys, sorter=by_key)].astype(np.uint16)
    table = np.stack([ordered >> 16, ordered >> 8, ordered], axis=1).astype(np.uint8)
    for array in (table, codes):
        array.flags.writeable = False
    return table, codes
