"""The loop of act, step and observe, and what trackers count along it."""

import math
from types import SimpleNamespace

import numpy as np
import pytest

from ezgreedy.agents.play import ExploredSteps, FinishedReturns, FirstEpisodes, FrameCount, Play
from ezgreedy.games.lanes import Lanes
from support.states import bits


class Cycling:
    """A player that takes one action after the other, and writes down what it sees."""

    def __init__(self, num_actions, lanes, log=None):
        self.num_actions, self.count = num_actions, 0
        self.exploring = np.arange(lanes) % 2 == 0
        self.log = [] if log is None else log

    def act(self, observations, starts):
        self.log.append(("act", observations.tobytes(), starts.tolist()))
        self.count += 1
        return np.full(len(starts), self.count % self.num_actions)

    def observe(self, steps):
        self.log.append(("observe", steps))


def playing(num_lanes=3, seed=2, *, player=None, **options):
    lanes = Lanes("minatar/breakout", num_lanes, seed=seed)
    player = player or Cycling(lanes.num_actions, num_lanes)
    trackers = FrameCount(num_lanes), FinishedReturns(), ExploredSteps(player)
    return Play(player, lanes, *trackers, **options), *trackers


def test_a_player_acts_on_what_the_last_step_left_and_on_first_observations_as_such():
    play, *_ = playing()
    first = play.observations.tobytes()
    before = list(play.steps(80))
    acts = [entry for entry in play.player.log if entry[0] == "act"]
    assert acts[0] == ("act", first, [True] * 3)
    for entry, steps in zip(acts[1:], before, strict=False):
        assert entry == ("act", steps.observations.tobytes(), steps.finished.tolist())
    assert sum(steps.finished.sum() for steps in before) > 5


def finished_returns(steps):
    return np.concatenate([one.episode_returns[one.finished] for one in steps]).tolist()


def test_trackers_count_every_frame_return_and_explored_step_once():
    play, frames, returns, explored = playing()
    steps = list(play.steps(50))
    taken = frames.take(), returns.take()
    more = list(play.steps(50))
    assert taken == (50 * 3, finished_returns(steps))  # every step of MinAtar is a frame
    assert (frames.take(), returns.take()) == (50 * 3, finished_returns(more))
    assert (frames.take(), returns.take()) == (0, [])
    assert explored.share == pytest.approx(2 / 3)


def test_a_step_that_is_refused_is_neither_observed_nor_counted():
    def refuse(steps):
        raise ArithmeticError

    play, frames, *_ = playing(check=refuse)
    with pytest.raises(ArithmeticError):
        play.step()
    assert [kind for kind, *_ in play.player.log] == ["act"]
    assert frames.frames == 0


def test_a_play_continues_from_its_state_to_the_bit():
    play, frames, *_ = playing()
    list(play.steps(33))
    other, other_frames, *_ = playing(seed=9)
    other.load_state_dict(play.state_dict())
    other.player.count, other_frames.counted = play.player.count, frames.counted
    frames.take()
    expected = [bits(vars(steps)) for steps in play.steps(40)]
    assert [bits(vars(steps)) for steps in other.steps(40)] == expected
    assert other_frames.take() == frames.take()


def episodes_of(lengths, most_episodes, num_steps):
    """Episodes in lanes that take a number of steps each, and score their number."""
    tracker = FirstEpisodes(len(lengths), most_episodes)
    numbers, clocks, num_begun = list(range(len(lengths))), [0] * len(lengths), len(lengths)
    for _ in range(num_steps):
        clocks = [clock + 1 for clock in clocks]
        finished = np.array(
            [clock == length for clock, length in zip(clocks, lengths, strict=True)]
        )
        tracker.track(SimpleNamespace(finished=finished, episode_returns=np.array(numbers, float)))
        for lane in np.flatnonzero(finished):
            numbers[lane], clocks[lane], num_begun = num_begun, 0, num_begun + 1
    return tracker


def test_the_first_episodes_are_those_that_begin_first():
    assert episodes_of([2, 3, 10], 5, 9).returns == [0.0, 1.0, 3.0, 4.0]
    assert episodes_of([2, 3, 10], 5, 9).unfinished == [2.0]
    assert not episodes_of([2, 3, 10], 5, 9).are_complete
    complete = episodes_of([2, 3, 10], 5, 10)
    assert complete.are_complete
    assert (complete.returns[-1], complete.unfinished) == (2.0, [])


def test_without_a_limit_all_episodes_count():
    tracker = episodes_of([1, 2], math.inf, 4)
    assert tracker.returns == [0.0, 2.0, 1.0, 3.0, 5.0, 4.0]
    assert len(tracker.unfinished) == 2
    assert not tracker.are_complete
