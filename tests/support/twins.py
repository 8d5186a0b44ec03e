"""Plain implementations to hold the fast ones against."""

from dataclasses import dataclass, field

import numpy as np

from ezgreedy.exploration.streams import MULTIPLIER_A, MULTIPLIER_B, WEYL, Purpose

MASK = 2**64 - 1


def finalised(word: int) -> int:
    word = ((word ^ (word >> 30)) * MULTIPLIER_A) & MASK
    word = ((word ^ (word >> 27)) * MULTIPLIER_B) & MASK
    return word ^ (word >> 31)


def lane_keys(seed: int, lane: int) -> tuple[int, int]:
    """The lane's key from its definition, in Python's unbounded ints."""
    state, rest = WEYL, seed
    while True:
        state = finalised(((state ^ (rest & MASK)) + WEYL) & MASK)
        rest >>= 64
        if not rest:
            break
    offset = finalised(finalised((lane + WEYL) & MASK) ^ state)
    return offset, finalised((offset + WEYL) & MASK) | 1


def uniform(seed: int, lane: int, step: int, purpose: Purpose) -> float:
    """One draw from its definition."""
    offset, multiplier = lane_keys(seed, lane)
    word = (offset + step * WEYL) & MASK
    word = ((word ^ (word >> 30)) * MULTIPLIER_A) & MASK
    word = ((word ^ (word >> 27)) * multiplier) & MASK
    if purpose != Purpose.COIN:
        word = finalised((word + purpose * WEYL) & MASK)
    return (word >> 11) * 2.0**-53


@dataclass
class NaiveLane:
    """εz-greedy in one lane, as one would first write it down."""

    num_actions: int
    durations: object
    seed: int
    lane: int
    carries_over_episodes: bool = False
    step: int = 0
    action: int = 0
    remaining: int = 0
    begun: list[int] = field(default_factory=list)

    def act(self, greedy, epsilon, *, legal=None):
        if self.remaining > 0 and legal is not None and not legal[self.action]:
            self.remaining = 0
        step, self.step = self.step, self.step + 1
        if self.remaining > 0:
            self.remaining -= 1
            return self.action, True
        if not uniform(self.seed, self.lane, step, Purpose.COIN) < epsilon:
            return greedy, False
        allowed = [a for a in range(self.num_actions) if legal is None or legal[a]]
        u = uniform(self.seed, self.lane, step, Purpose.ACTION)
        self.action = allowed[int(u * len(allowed))]
        u, n = uniform(self.seed, self.lane, step, Purpose.DURATION), 1
        while self.durations.cdf(n) <= u:
            n += 1
        self.begun.append(n)
        self.remaining = n - 1
        return self.action, True


def tape(explore, num_steps, greedy=0):
    """The actions of a policy whose greedy action is constant, [steps, lanes]."""
    constant = np.full(explore.lanes, greedy)
    return np.array([explore(constant) for _ in range(num_steps)])
