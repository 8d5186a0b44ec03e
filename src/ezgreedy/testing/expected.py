"""The actions that εz-greedy must play: one lane, one step at a time, written as plainly as can be.

It shares with the policies only the addressed random numbers and the tables of the laws.
"""

from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np

from ezgreedy.exploration.durations import DurationLaw
from ezgreedy.exploration.streams import Purpose, Streams
from ezgreedy.testing.recording import Place, Step


class Play(NamedTuple):
    """An action to be played, and why.

    Args:
        place: lane, episode and step within the episode.
        action: the action.
        reason: "greedy", or which play of which option.
    """

    place: Place
    action: int
    reason: str


class Lane(NamedTuple):
    """What determines the actions of one lane.

    Args:
        seed: seed of the exploration.
        number: number of the lane.
        first_step: steps that the lane had taken before this recording.
        durations: law of the options' durations.
        num_actions: number of actions.
    """

    seed: int
    number: int
    first_step: int
    durations: DurationLaw
    num_actions: int


def expected_plays(
    lane: Lane, episodes: list[list[Step]], greedy: Callable[[Place], int]
) -> Iterator[Play]:
    """What the lane must have played in these episodes, given the ε of each of its steps."""
    streams = Streams(lane.seed, lanes=1, first_lane=lane.number)
    clock = lane.first_step
    for episode, steps in enumerate(episodes):
        option_action, num_plays, num_played = 0, 0, 0
        for position, step in enumerate(steps):
            place = (lane.number, episode, position)
            if num_played == num_plays:
                word = streams.words(np.array([clock]))
                num_plays, num_played = 0, 0
                if streams.uniforms(word, Purpose.COIN)[0] < step.epsilon:
                    picked = streams.uniforms(word, Purpose.ACTION)[0] * lane.num_actions
                    drawn = lane.durations.quantile(streams.uniforms(word, Purpose.DURATION))
                    option_action, num_plays = int(picked), int(drawn[0])
            if num_plays:
                num_played += 1
                reason = f"play {num_played} of an option of {num_plays}"
                yield Play(place, option_action, reason)
            else:
                yield Play(place, greedy(place), "greedy")
            clock += 1
