"""Lanes that play made-up episodes, in which every number says where it belongs."""

from typing import NamedTuple

import numpy as np
from hypothesis import strategies as st

from ezgreedy.replay.blocks import BlockCodec
from ezgreedy.replay.cutting import SequenceSettings
from ezgreedy.replay.sequences import SequenceAccumulator, SequenceStep

SMALL = SequenceSettings(length=8, burn_in=2, stride=4)
SHAPE = (2,)


class Play(NamedTuple):
    """What one lane does: the lengths of its episodes, and whether each is terminated."""

    lengths: list[int]
    terminated: list[bool]


def number(lane, episode, time, salt=0):
    """A number that no other observation, reward or state has."""
    return float(((lane * 50 + episode) * 200 + time) * 4 + salt)


def observation(lane, episode, time):
    return np.full(SHAPE, number(lane, episode, time), dtype=np.float32)


def state(lane, episode, time):
    """As it is before the observation at this time is consumed."""
    return np.full(3, number(lane, episode, time, 1)), np.full(3, number(lane, episode, time, 2))


def step(lane, episode, time, length, is_terminated):
    is_last = time + 1 == length
    return SequenceStep(
        action=(lane + 3 * episode + time) % 18,
        reward=number(lane, episode, time, 3),
        observation=observation(lane, episode, time + 1),
        terminated=is_last and is_terminated,
        truncated=is_last and not is_terminated,
        mask=(7 * time + lane) % 256,
        behaviour_probability=1.0 / (1 + time % 5),
        estimates=(float(time), -float(time)),
    )


def played(accumulator, plays, order=None):
    """Plays the lanes in turns; all windows, in the order in which they were complete."""
    progress = [(0, 0)] * len(plays)
    turns = order or list(range(len(plays))) * sum(sum(play.lengths) for play in plays)
    windows = []
    for lane in turns:
        episode, time = progress[lane]
        play = plays[lane]
        if episode == len(play.lengths):
            continue
        if time == 0:
            accumulator.begin(lane, observation(lane, episode, 0))
        length, is_terminated = play.lengths[episode], play.terminated[episode]
        states = state(lane, episode, time)
        windows += accumulator.step(lane, step(lane, episode, time, length, is_terminated), *states)
        progress[lane] = (episode, time + 1) if time + 1 < length else (episode + 1, 0)
    return windows


class Plain(NamedTuple):
    """A window with everything in it, and nothing clever."""

    lane: int
    episode: int
    start: int
    prefix_start: int
    end: int
    terminated: bool


def plain_windows(lane, play, cut):
    """The windows of a lane, straight from their definition."""
    for episode, (length, is_terminated) in enumerate(
        zip(play.lengths, play.terminated, strict=True)
    ):
        start = 0
        while start == 0 or start + cut.length - cut.stride < length:
            end = min(start + cut.length, length)
            prefix_start = max(0, start - cut.burn_in)
            ends_game = end == length and is_terminated
            yield Plain(lane, episode, start, prefix_start, end, ends_game)
            start += cut.stride


def accumulator_of(cut, lanes=1, **kwargs):
    return SequenceAccumulator(BlockCodec(SHAPE, np.float32, cut.stride), cut, lanes, **kwargs)


plays = st.lists(
    st.lists(st.tuples(st.integers(1, 30), st.booleans()), min_size=1, max_size=5).map(
        lambda episodes: Play([n for n, _ in episodes], [end for _, end in episodes])
    ),
    min_size=1,
    max_size=3,
)
