"""One seed for a run, and unrelated seeds for everything that draws in it."""

from zlib import crc32

import numpy as np

from ezgreedy import requirements as require


def role_seed(seed: int, role: str, index: int = 0) -> int:
    """The seed of one role of a run: other roles, indices and runs get unrelated ones.

    Never seed + i, which gives the second environment of one run the stream of the first of the
    next.

    Args:
        seed: the run's seed, any non-negative int.
        role: purpose of the draws, such as "environments".
        index: number that distinguishes several of the same role.
    """
    seed = require.integer("seed", seed, least=0, most=None)
    index = require.integer("index", index, least=0)
    key = (crc32(role.encode()), index)
    return int(np.random.SeedSequence(seed, spawn_key=key).generate_state(1, np.uint64)[0])
