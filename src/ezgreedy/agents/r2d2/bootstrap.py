"""How do several heads learn from one stream, and act together? Masks and mixed policies.

Bootstrapped R2D2 follows one head for an episode. A random half of the heads learn from each step;
they are drawn once and stored in the memory as the bits of one byte. Evaluation mixes the heads'
policies, not their values. Needs only NumPy.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ezgreedy import requirements as require
from ezgreedy.agents.r2d2.learner_settings import MOST_HEADS
from ezgreedy.requirements import BoolArray, FloatArray


def draw_masks(
    shape: tuple[int, ...], num_heads: int, probability: float = 0.5, *, rng: np.random.Generator
) -> NDArray[np.uint8]:
    """Masks of steps; each bit is set independently with the given probability.

    Args:
        shape: shape of the result.
        num_heads: number of bits that may be set.
        probability: probability that a head learns from a step; ½ in the paper's table.
        rng: random generator; one uniform draw for each bit.
    """
    num_heads = require.integer("num_heads", num_heads, least=1, most=MOST_HEADS)
    probability = require.number("probability", probability, 0.0, 1.0)
    learns = rng.random((*shape, num_heads)) < probability
    return np.packbits(learns, axis=-1, bitorder="little")[..., 0]


def head_masks(masks: NDArray[np.uint8], num_heads: int) -> BoolArray:
    """Which heads learn from which steps: bit k as element k, [..., heads]."""
    bits = np.unpackbits(masks[..., None], axis=-1, count=num_heads, bitorder="little")
    return bits.astype(np.bool_)


def ensemble_policy(q: NDArray[Any], epsilon: float) -> FloatArray:
    """π̄ = (1/k)·Σ_k π_k with π_k ε-greedy for head k, ties to the first, [..., actions].

    With one head this is the ε-greedy policy.

    Args:
        q: values, [..., heads, actions].
        epsilon: ε, the same for all heads.
    """
    epsilon = require.number("epsilon", epsilon, 0.0, 1.0)
    num_actions = q.shape[-1]
    greedy = q.argmax(axis=-1)[..., None] == np.arange(num_actions)
    return (1.0 - epsilon) * greedy.mean(axis=-2) + epsilon / num_actions
