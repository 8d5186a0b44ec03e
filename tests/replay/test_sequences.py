"""Windows against a twin that keeps whole episodes and cuts them up when they are over."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ezgreedy.replay.blocks import BlockCodec
from ezgreedy.replay.cutting import SequenceSettings
from ezgreedy.replay.sequences import SequenceAccumulator
from support.sequences import (
    SHAPE,
    SMALL,
    Play,
    accumulator_of,
    observation,
    plain_windows,
    played,
    plays,
    state,
    step,
)

cuts = st.sampled_from(
    [
        SMALL,
        SequenceSettings(4, 0, 4),
        SequenceSettings(4, 4, 4),
        SequenceSettings(12, 3, 4),
        SequenceSettings(3, 1, 1),
        SequenceSettings(10, 5, 5),
    ]
)


@settings(max_examples=150, deadline=None)
@given(plays, cuts, st.randoms(use_true_random=False))
def test_windows_equal_those_of_whole_episodes(plays, cut, random):
    order = [lane for lane, play in enumerate(plays) for _ in range(sum(play.lengths))]
    random.shuffle(order)
    windows = played(accumulator_of(cut, len(plays)), plays, order)
    codec = BlockCodec(SHAPE, np.float32, cut.stride)
    for lane, play in enumerate(plays):
        expected = list(plain_windows(lane, play, cut))
        received = [window for window in windows if window.lane == lane]
        assert len(received) == len(expected)
        blocks = {}  # of the lane, by episode and first step
        for window, plain in zip(received, expected, strict=True):
            assert (window.episode, window.start) == (plain.episode, plain.start)
            assert window.length == plain.end - plain.start
            assert window.prefix_length == plain.start - plain.prefix_start
            assert window.terminated == plain.terminated
            h, c = state(lane, plain.episode, plain.prefix_start)
            np.testing.assert_array_equal(window.state_h, h)
            np.testing.assert_array_equal(window.state_c, c)
            before = (-1, 0.0)
            if plain.prefix_start:
                last = step(lane, plain.episode, plain.prefix_start - 1, 10**6, True)
                before = (last.action, last.reward)
            assert (window.previous_action, window.previous_reward) == before
            times = np.arange(plain.start, plain.end)
            np.testing.assert_array_equal(window.estimates, np.stack([times, -times], axis=1))
            for block in window.blocks:
                first = cut.stride * sum(episode == plain.episode for episode, _ in blocks)
                blocks[plain.episode, first] = block
        for (episode, first), block in blocks.items():
            count = min(cut.stride, play.lengths[episode] - first)
            out = np.empty((count + 1, *SHAPE), dtype=np.float32)
            codec.decode(block.payload, 0, out)
            times = range(first, first + count)
            seen = [observation(lane, episode, time) for time in range(first, first + count + 1)]
            np.testing.assert_array_equal(out, seen)
            steps = [step(lane, episode, time, 10**6, True) for time in times]
            np.testing.assert_array_equal(block.actions, [s.action for s in steps])
            np.testing.assert_array_equal(block.rewards, [s.reward for s in steps])
            np.testing.assert_array_equal(block.masks, [s.mask for s in steps])
            np.testing.assert_array_equal(
                block.behaviour_probabilities,
                np.array([s.behaviour_probability for s in steps], dtype=np.float32),
            )
        num_blocks = sum(-(-length // cut.stride) for length in play.lengths)
        assert len(blocks) == num_blocks  # each comes with exactly one window


@pytest.mark.parametrize(
    ("length", "expected"),
    [
        (1, [(0, 0, 1)]),
        (40, [(0, 0, 40)]),
        (80, [(0, 0, 80)]),
        (81, [(0, 0, 80), (40, 20, 81)]),
        (120, [(0, 0, 80), (40, 20, 120)]),
        (121, [(0, 0, 80), (40, 20, 120), (80, 60, 121)]),
    ],
)
@pytest.mark.parametrize("is_terminated", [True, False])
def test_windows_of_the_paper_by_hand(length, expected, is_terminated):
    windows = played(accumulator_of(SequenceSettings()), [Play([length], [is_terminated])])
    cut = [(w.start, w.start - w.prefix_length, w.start + w.length) for w in windows]
    assert cut == expected
    assert [w.terminated for w in windows] == [
        is_terminated and w.start + w.length == length for w in windows
    ]


def test_a_window_is_there_with_its_last_step():
    accumulator = accumulator_of(SequenceSettings())
    accumulator.begin(0, observation(0, 0, 0))
    at = [
        time
        for time in range(200)
        if accumulator.step(0, step(0, 0, time, 10**6, True), *state(0, 0, time))
    ]
    assert at == [79, 119, 159, 199]


def test_states_are_wanted_where_prefixes_start():
    accumulator = accumulator_of(SequenceSettings())
    accumulator.begin(0, observation(0, 0, 0))
    wanted = []
    for time in range(130):
        if accumulator.wants_state(0):
            wanted.append(time)
        accumulator.step(0, step(0, 0, time, 10**6, True), *state(0, 0, time))
    assert wanted == [0, 20, 60, 100]


def test_a_state_is_the_one_before_its_observation_whatever_is_done_to_it_later():
    accumulator = accumulator_of(SMALL)
    accumulator.begin(0, observation(0, 0, 0))
    h, c = np.zeros(3, dtype=np.float32), np.zeros(3, dtype=np.float32)
    windows = []
    for time in range(17):
        windows += accumulator.step(0, step(0, 0, time, 17, True), h, c)
        h += 1.0  # consuming an observation adds 1: before the one at time t, the state is t
        c -= 1.0
    assert [(w.start, w.state_h[0], w.state_c[0]) for w in windows] == [
        (0, 0.0, 0.0),
        (4, 2.0, -2.0),
        (8, 6.0, -6.0),
        (12, 10.0, -10.0),
    ]


def test_lanes_are_named_by_their_number_in_the_fleet():
    windows = played(accumulator_of(SMALL, 2, first_lane=7), [Play([3], [True])] * 2)
    assert [window.lane for window in windows] == [7, 8]


def assert_same_windows(one, other):
    assert len(one) == len(other)
    for left, right in zip(one, other, strict=True):
        for name in left._fields:
            if name == "blocks":
                for a, b in zip(left.blocks, right.blocks, strict=True):
                    for x, y in zip(a, b, strict=True):
                        np.testing.assert_array_equal(x, y)
            else:
                np.testing.assert_array_equal(getattr(left, name), getattr(right, name))


@pytest.mark.parametrize("stop", [0, 1, 6, 11, 13, 17, 29])
def test_a_restored_accumulator_goes_on_alike(stop):
    lanes = [Play([19, 3, 12], [True, False, True]), Play([5, 30], [False, True])]
    order = [0, 1, 1] * 40
    one = accumulator_of(SMALL, 2)
    whole = played(accumulator_of(SMALL, 2), lanes, order)
    calls = []

    class Recorder:
        def begin(self, *arguments):
            calls.append(("begin", arguments))

        def step(self, *arguments):
            calls.append(("step", arguments))
            return []

    played(Recorder(), lanes, order)

    def run(accumulator, some):
        windows = []
        for name, arguments in some:
            windows += getattr(accumulator, name)(*arguments) or []
        return windows

    before = run(one, calls[:stop])
    saved = one.state_dict()
    run(one, calls[stop : stop + 3])  # the state has moved on by itself
    other = accumulator_of(SMALL, 2)
    other.load_state_dict(saved)
    assert_same_windows(before + run(other, calls[stop:]), whole)


def test_what_is_wrong_is_refused():
    accumulator = accumulator_of(SMALL)
    good = step(0, 0, 0, 10, True)
    with pytest.raises(ValueError, match="lane 0 must begin an episode"):
        accumulator.step(0, good, *state(0, 0, 0))
    with pytest.raises(ValueError, match="observation must be float32 of shape"):
        accumulator.begin(0, np.zeros(3, dtype=np.float32))
    accumulator.begin(0, observation(0, 0, 0))
    with pytest.raises(ValueError, match="lane 0 must end its episode"):
        accumulator.begin(0, observation(0, 0, 0))
    for name, value in {
        "action": -1,
        "reward": np.nan,
        "mask": 256,
        "behaviour_probability": 1.5,
    }.items():
        with pytest.raises(ValueError, match=f"{name} must"):
            accumulator.step(0, good._replace(**{name: value}), *state(0, 0, 0))
    with pytest.raises(ValueError, match="lane must be at most 0"):
        accumulator.wants_state(1)
    with pytest.raises(ValueError, match="codec must have blocks of 4 steps; got 40"):
        SequenceAccumulator(BlockCodec(SHAPE, np.float32, 40), SMALL)


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"length": 70}, "length must be a multiple of stride, which is 40"),
        ({"length": 20}, "length must be at least 40"),
        ({"burn_in": 41}, "burn_in must be at most stride"),
        ({"burn_in": -1}, "burn_in must be at least 0"),
        ({"stride": 0}, "stride must be at least 1"),
    ],
)
def test_settings_that_cut_no_windows_are_refused(wrong, message):
    with pytest.raises(ValueError, match=message):
        SequenceSettings(**wrong)
