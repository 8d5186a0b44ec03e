"""Batches against a store that keeps every episode whole, and what becomes of windows in time."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ezgreedy.checkpoints.append_only_ring import AppendOnlyRing
from ezgreedy.replay.blocks import BlockCodec
from ezgreedy.replay.cutting import SequenceSettings
from ezgreedy.replay.sequence_batch import SequenceBatch
from ezgreedy.replay.sequence_replay import SequenceReplay
from ezgreedy.replay.sequences import SequenceAccumulator, SequenceStep
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

CUTS = st.sampled_from([SMALL, SequenceSettings(4, 0, 4), SequenceSettings(12, 4, 4)])


def memory_of(num_windows, cut=SMALL, seed=0, **kwargs):
    codec = BlockCodec(SHAPE, np.float32, cut.stride)
    rng = np.random.default_rng(seed)
    return SequenceReplay(num_windows * cut.stride, codec, cut, (3,), rng=rng, **kwargs)


def plain_row(plain, cut):
    """One row of a batch, position by position."""
    lane, episode = plain.lane, plain.episode
    time = cut.burn_in + cut.length
    row = {
        "observations": np.zeros((time + 1, *SHAPE)),
        "actions": np.zeros(time),
        "rewards": np.zeros(time),
        "masks": np.zeros(time),
        "behaviour_probabilities": np.ones(time, dtype=np.float32),
    }
    for at in range(plain.prefix_start, plain.end):
        position = cut.burn_in + at - plain.start
        taken = step(lane, episode, at, 10**6, True)
        row["observations"][position] = observation(lane, episode, at)
        row["actions"][position] = taken.action
        row["rewards"][position] = taken.reward
        row["masks"][position] = taken.mask
        row["behaviour_probabilities"][position] = taken.behaviour_probability
    end = cut.burn_in + plain.end - plain.start
    row["observations"][end] = observation(lane, episode, plain.end)  # what to bootstrap from
    row["inputs"] = row["rewards"]
    row["state_h"], row["state_c"] = state(lane, episode, plain.prefix_start)
    row["prefix_lengths"] = plain.start - plain.prefix_start
    row["lengths"] = plain.end - plain.start
    row["terminated"] = plain.terminated
    row["previous_action"], row["previous_reward"] = -1, 0.0
    if plain.prefix_start:
        before = step(lane, episode, plain.prefix_start - 1, 10**6, True)
        row["previous_action"], row["previous_reward"] = before.action, before.reward
    return row


def assert_batch(batch, by_slot, cut):
    for position, slot in enumerate(batch.slots):
        for name, value in plain_row(by_slot[slot], cut).items():
            np.testing.assert_array_equal(getattr(batch, name)[position], value, err_msg=name)


@settings(max_examples=60, deadline=None)
@given(plays, CUTS, st.integers(1, 12), st.randoms(use_true_random=False))
def test_batches_equal_those_of_a_store_that_keeps_everything(plays, cut, num_windows, random):
    memory = memory_of(num_windows, cut)
    order = [lane for lane, play in enumerate(plays) for _ in range(sum(play.lengths))]
    random.shuffle(order)
    plain = {
        (window.lane, window.episode, window.start): window
        for lane, play in enumerate(plays)
        for window in plain_windows(lane, play, cut)
    }
    by_slot = {}
    windows = played(accumulator_of(cut, len(plays)), plays, order)
    for count, window in enumerate(windows):
        slot = memory.add(window._replace(priority=1.0 + count % 3))
        assert slot == count % num_windows  # first in, first out
        by_slot[slot] = plain[window.lane, window.episode, window.start]
        assert len(memory) == min(count + 1, num_windows)
        if count % 5 == 0:
            assert_batch(memory.sample(4), by_slot, cut)
    assert memory.num_lost == 0
    batch = memory.sample(40)
    assert_batch(batch, by_slot, cut)
    for slot, generation in zip(batch.slots, batch.generations, strict=True):
        newest = [n for n in range(len(windows)) if n % num_windows == slot][-1]
        assert generation == newest


def consumed(h, c, seen, action, reward):
    """A recurrence on exact numbers, which forgets nothing that it is given."""
    h = (3.0 * h + 5.0 * seen + 7.0 * action + 11.0 * reward + c) % 1009.0
    return h, (c + h) % 997.0


def test_unrolling_a_stored_window_gives_what_the_actor_had():
    """From the stored state, over the prefix, then the trained steps: the same at every step."""
    rng = np.random.default_rng(4)
    cut = SequenceSettings(8, 3, 4)
    codec = BlockCodec((1,), np.float32, 4)
    accumulator = SequenceAccumulator(codec, cut)
    memory = SequenceReplay(400, codec, cut, (1,), rng=rng)
    acted = []  # of each window: the actor's h after each of its trained observations, o_T included
    for length in (1, 3, 8, 9, 12, 13, 25, 40):
        h, c, action, reward, outputs = np.zeros(1), np.zeros(1), -1, 0.0, []
        seen = rng.integers(100, size=1).astype(np.float32)
        accumulator.begin(0, seen)
        for time in range(length + 1):
            before = h, c
            h, c = consumed(h, c, seen, action, reward)
            outputs.append(h.item())
            if time == length:
                break
            action, reward = int(rng.integers(18)), float(rng.integers(9))
            seen = rng.integers(100, size=1).astype(np.float32)
            taken = SequenceStep(action, reward, seen, terminated=time + 1 == length)
            for window in accumulator.step(0, taken, *before):
                memory.add(window)
                acted.append((outputs, window.start, window.length))
    batch = memory.sample(1000)
    assert set(batch.generations) == set(range(len(acted)))
    for row, generation in enumerate(batch.generations):
        h, c = batch.state_h[row].astype(np.float64), batch.state_c[row].astype(np.float64)
        action, reward = batch.previous_action[row], batch.previous_reward[row]
        outputs = []
        first, end = cut.burn_in - batch.prefix_lengths[row], cut.burn_in + batch.lengths[row]
        for position in range(first, end + 1):
            h, c = consumed(h, c, batch.observations[row, position], action, reward)
            outputs.append(h.item())
            if position < end:
                action = batch.actions[row, position]
                reward = batch.inputs[row, position]
        expected, start, length = acted[generation]
        whole = expected[start : start + length + 1]
        assert len(whole) == length + 1
        assert outputs[batch.prefix_lengths[row] :] == whole


def test_shapes_and_types_are_those_that_learners_rely_on():
    codec = BlockCodec((1, 21, 16), np.uint16)
    memory = SequenceReplay(400, codec, state_shape=(2, 8), rng=np.random.default_rng(0))
    accumulator = SequenceAccumulator(codec)
    picture = np.arange(21 * 16, dtype=np.uint16).reshape(1, 21, 16)
    accumulator.begin(0, picture)
    half = np.zeros((2, 8), dtype=np.float32)
    for time in range(130):
        taken = SequenceStep(1, 1.0, picture + time, terminated=time == 129)
        for window in accumulator.step(0, taken, half, half):
            memory.add(window._replace(priority=1.0))
    batch = memory.sample(5)
    expected = {
        "observations": (np.uint16, (5, 101, 1, 21, 16)),
        "actions": (np.int64, (5, 100)),
        "rewards": (np.float32, (5, 100)),
        "previous_action": (np.int64, (5,)),
        "previous_reward": (np.float32, (5,)),
        "state_h": (np.float32, (5, 2, 8)),
        "state_c": (np.float32, (5, 2, 8)),
        "prefix_lengths": (np.int64, (5,)),
        "lengths": (np.int64, (5,)),
        "terminated": (np.bool_, (5,)),
        "weights": (np.float64, (5,)),
        "masks": (np.uint8, (5, 100)),
        "behaviour_probabilities": (np.float32, (5, 100)),
        "slots": (np.int64, (5,)),
        "generations": (np.int64, (5,)),
    }
    assert set(expected) == set(SequenceBatch._fields) - {"seen_rewards"}
    assert batch.seen_rewards is None  # networks see what is learned from
    for name, (dtype, shape) in expected.items():
        array = getattr(batch, name)
        assert (array.dtype, array.shape) == (dtype, shape), name
    assert memory.sample(5).observations is batch.observations  # the same buffer again
    assert memory.capacity == 10  # 400 observations, not 400 sequences of 101 each


def filled(priorities, num_windows=None, **kwargs):
    """A memory of one-step episodes with these priorities, in slots from 0 on."""
    memory = memory_of(num_windows or len(priorities), **kwargs)
    lengths = [1] * len(priorities)
    windows = played(accumulator_of(SMALL), [Play(lengths, [True] * len(lengths))])
    for window, priority in zip(windows, priorities, strict=True):
        memory.add(window._replace(priority=priority))
    return memory


def test_draws_and_weights_follow_the_priorities_that_windows_come_with():
    given_priorities = np.array([0.1, 1.0, 3.0, 20.0])
    memory = filled(given_priorities)
    batch = memory.sample(40_000)
    share = given_priorities**0.9 / (given_priorities**0.9).sum()
    counts = np.bincount(batch.slots, minlength=4)
    expected = 40_000 * share
    assert ((counts - expected) ** 2 / expected).sum() < 31.0  # χ², 3 degrees, p = 10⁻⁶
    weights = (4 * share[batch.slots]) ** -0.6
    np.testing.assert_allclose(batch.weights, weights / weights.max())


def test_windows_without_a_priority_come_with_the_largest():
    memory = filled([4.0, 0.5, None])
    batch = memory.sample(2000)
    np.testing.assert_allclose(
        batch.weights[batch.slots == 0][0], batch.weights[batch.slots == 2][0]
    )


def test_no_window_is_so_unsurprising_that_it_is_never_seen_again():
    memory = filled([0.0, 0.0])
    assert set(memory.sample(100).slots) == {0, 1}


def priorities_of(memory):
    return memory.state_dict()["priorities"]["tree"]["leaves"]


def test_what_was_overwritten_since_it_was_drawn_keeps_its_own_priority():
    memory = filled([1.0, 1.0, 1.0])
    batch = memory.sample(30)
    assert set(batch.slots) == {0, 1, 2}
    newer = played(accumulator_of(SMALL, first_lane=5), [Play([2], [True])])[0]
    assert memory.add(newer._replace(priority=2.0)) == 0
    memory.update_priorities(batch.slots, batch.generations, np.full(30, 5.0))
    np.testing.assert_allclose(priorities_of(memory), np.array([2.0, 5.0, 5.0]) ** 0.9)
    again = memory.sample(30)
    memory.update_priorities(again.slots, again.generations, np.full(30, 7.0))
    np.testing.assert_allclose(priorities_of(memory), np.full(3, 7.0) ** 0.9)


def test_of_several_losses_for_one_window_the_last_stays():
    memory = filled([1.0])
    memory.update_priorities(np.zeros(3, int), np.zeros(3, int), np.array([9.0, 4.0, 2.0]))
    np.testing.assert_allclose(priorities_of(memory), [2.0**0.9])


def noisy_windows(num_steps, lanes=1):
    """Windows whose observations cannot be compressed."""
    cut = SequenceSettings(8, 2, 4)
    codec = BlockCodec((200,), np.uint8, 4)
    accumulator = SequenceAccumulator(codec, cut, lanes)
    rng, half, windows = np.random.default_rng(0), np.zeros(1, dtype=np.float32), []
    for lane in range(lanes):
        accumulator.begin(lane, rng.integers(256, size=200).astype(np.uint8))
    for _ in range(num_steps):
        for lane in range(lanes):
            seen = rng.integers(256, size=200).astype(np.uint8)
            windows += accumulator.step(lane, SequenceStep(0, 0.0, seen), half, half)
    return codec, cut, windows


def test_where_bytes_run_out_the_oldest_windows_leave():
    codec, cut, windows = noisy_windows(400, lanes=3)
    memory = SequenceReplay(
        400, codec, cut, (1,), bytes_per_observation=50, rng=np.random.default_rng(0)
    )
    for count, window in enumerate(windows):
        assert memory.add(window._replace(priority=1.0)) == count % 100
    assert memory.num_bytes <= 400 * 50
    assert 10 < len(memory) < 30
    batch = memory.sample(200)
    newest = len(windows) - len(memory)
    assert batch.generations.min() >= newest
    assert len(set(batch.slots)) == len(memory)
    # A loss for a window that has left changes nothing.
    before = priorities_of(memory)
    gone = np.array([(newest - 1) % 100])
    memory.update_priorities(gone, np.array([newest - 1]), np.array([50.0]))
    np.testing.assert_array_equal(priorities_of(memory), before)


@pytest.mark.parametrize("length", [6, 60])
def test_the_observations_that_fit_are_known_before_bytes_run_out(length):
    """Short episodes have two blocks to a window, long ones one."""
    rng, half = np.random.default_rng(0), np.zeros(1, dtype=np.float32)
    cut, codec = SequenceSettings(8, 2, 4), BlockCodec((200,), np.uint8, 4)
    accumulator = SequenceAccumulator(codec, cut)
    memory = SequenceReplay(4000, codec, cut, (1,), bytes_per_observation=100, rng=rng)
    assert memory.effective_capacity == 4000
    early = None
    for time in range(12_000):
        seen = rng.integers(256, size=200).astype(np.uint8)
        if time % length == 0:
            accumulator.begin(0, seen)
        taken = SequenceStep(0, 0.0, seen, terminated=time % length == length - 1)
        for window in accumulator.step(0, taken, half, half):
            memory.add(window)
        if time == 600:
            early, held_early = memory.effective_capacity, len(memory)
    assert held_early * 4 < 0.5 * early
    assert early == pytest.approx(len(memory) * 4, rel=0.1)
    assert memory.effective_capacity == pytest.approx(len(memory) * 4, rel=0.1)


def test_a_window_whose_earlier_blocks_never_came_is_dropped():
    windows = played(accumulator_of(SMALL), [Play([20, 9], [True, True])])
    assert [(w.episode, w.start) for w in windows][:4] == [(0, 0), (0, 4), (0, 8), (0, 12)]
    memory = memory_of(10)
    assert memory.add(windows[0]) == 0
    assert memory.add(windows[2]) is None  # the one before it got lost on the way
    assert memory.add(windows[3]) is None
    assert memory.add(windows[1]) is None
    assert (len(memory), memory.num_lost) == (1, 3)
    assert memory.add(windows[4]) == 1  # a new episode
    assert memory.add(windows[5]) == 2
    other = memory_of(10)
    assert other.add(windows[0]) == 0
    assert windows[5].start == windows[1].start  # and yet of another episode
    assert other.add(windows[5]) is None


def blocks_of(plain, cut):
    """The numbers within the episode of the blocks that a window reads, from its definition."""
    return {at // cut.stride for at in range(plain.prefix_start, plain.end)}


def blocks_brought(plain, cut):
    """Those of its blocks that no earlier window of the episode reads as trained steps."""
    end = plain.start - cut.stride + cut.length if plain.start else 0
    return {at // cut.stride for at in range(end, plain.end)}


@settings(max_examples=100, deadline=None)
@given(plays, CUTS, st.randoms(use_true_random=False))
def test_after_losses_exactly_the_windows_whose_blocks_have_come_are_kept(plays, cut, random):
    memory = memory_of(100, cut)
    plain = {
        (window.lane, window.episode, window.start): window
        for lane, play in enumerate(plays)
        for window in plain_windows(lane, play, cut)
    }
    share = random.choice([0.1, 0.3, 0.6])
    arrived, by_slot, num_lost = set(), {}, 0
    for window in played(accumulator_of(cut, len(plays)), plays):
        if random.random() < share:
            continue
        if random.random() < 0.2:  # a restart from a snapshot
            memory, state = memory_of(100, cut), memory.state_dict()
            memory.load_state_dict(state)
        expected = plain[window.lane, window.episode, window.start]
        episode = (window.lane, window.episode)
        arrived |= {(episode, block) for block in blocks_brought(expected, cut)}
        slot = memory.add(window._replace(priority=1.0))
        is_whole = {(episode, block) for block in blocks_of(expected, cut)} <= arrived
        assert (slot is not None) == is_whole
        if slot is None:
            num_lost += 1
        else:
            by_slot[slot] = expected
    assert (memory.num_lost, len(memory)) == (num_lost, len(by_slot))
    if by_slot:
        assert_batch(memory.sample(40), by_slot, cut)


def kept_of_a_long_episode(is_lost):
    """Windows of an episode of 27,000 steps: how many are kept, how many come, and all."""
    half, picture = np.zeros(1, dtype=np.float32), np.zeros((1,), dtype=np.float32)
    codec = BlockCodec((1,), np.float32)
    accumulator = SequenceAccumulator(codec)
    memory = SequenceReplay(40_000, codec, state_shape=(1,), rng=np.random.default_rng(0))
    accumulator.begin(0, picture)
    windows = [
        window
        for time in range(27_000)
        for window in accumulator.step(
            0, SequenceStep(0, 0.0, picture, truncated=time == 26_999), half, half
        )
    ]
    come = [window for number, window in enumerate(windows) if not is_lost(number)]
    return sum(memory.add(window) is not None for window in come), len(come), len(windows)


def test_a_gap_costs_few_windows_of_the_longest_episode():
    assert kept_of_a_long_episode(lambda number: False) == (674, 674, 674)
    # A memory that starts empty after 100 windows.
    assert kept_of_a_long_episode(lambda number: number < 100) == (572, 574, 674)
    # The lost window itself, and the two that share its block.
    assert kept_of_a_long_episode(lambda number: number == 100) == (671, 673, 674)


def test_a_window_that_comes_twice_disturbs_nothing():
    windows = played(accumulator_of(SMALL), [Play([40], [True])])
    memory = memory_of(20)
    for window in windows[:5]:
        assert memory.add(window) is not None
    assert memory.add(windows[4]) is None
    assert memory.add(windows[2]) is None
    assert memory.add(windows[5]) == 5


def test_a_lane_that_rests_too_long_loses_a_window_but_nothing_else():
    lanes = [Play([30], [True]), Play([1] * 2000, [True] * 2000)]
    memory = memory_of(2)
    slow = played(accumulator_of(SMALL, 2), lanes[:1])
    fast = played(accumulator_of(SMALL, first_lane=1), lanes[1:])
    assert memory.add(slow[0]) == 0
    for window in fast:
        memory.add(window)
    assert memory.add(slow[1]) is None
    assert memory.add(slow[2]) is None  # shares a block with the first
    assert memory.add(slow[3]) is not None
    assert memory.num_lost == 2


@pytest.mark.parametrize("stop", [1, 5, 9, 14])
def test_a_restored_memory_draws_the_same_and_goes_on_alike(stop):
    lanes = [Play([19, 3, 12], [True, False, True]), Play([5, 30], [False, True])]
    windows = [
        window._replace(priority=1.0 + count % 4)
        for count, window in enumerate(played(accumulator_of(SMALL, 2), lanes))
    ]
    one, other = memory_of(6), memory_of(6, seed=9)
    for window in windows[:stop]:
        one.add(window)
    one.sample(3)
    other.load_state_dict(one.state_dict())
    for window in windows[stop:]:
        for memory in (one, other):
            memory.add(window)
        left, right = one.sample(4), other.sample(4)
        for name in SequenceBatch._fields:
            np.testing.assert_array_equal(getattr(left, name), getattr(right, name), err_msg=name)
        for memory in (one, other):
            memory.update_priorities(left.slots, left.generations, left.weights * 3.0)
    assert one.num_lost == other.num_lost == 0


def assert_plain(value):
    if isinstance(value, (dict, list)):
        for item in value.values() if isinstance(value, dict) else value:
            assert_plain(item)
    else:
        assert type(value) in (int, float, str, np.ndarray, AppendOnlyRing), type(value)


def test_states_are_plain_and_of_one_size():
    memory = filled([1.0, 2.0])
    assert_plain(memory.state_dict())
    with pytest.raises(ValueError, match="state must hold"):
        memory_of(3).load_state_dict(memory.state_dict())
    with pytest.raises(ValueError, match="state must hold actions of shape"):
        memory_of(2, SequenceSettings(12, 2, 4)).load_state_dict(memory_of(2).state_dict())


def test_rows_of_steps_and_windows_never_change_once_written():
    """What a saver that writes new rows alone relies on."""
    windows = played(accumulator_of(SMALL), [Play([30, 30], [True, True])])
    memory = memory_of(4)
    for window in windows[:7]:
        memory.add(window._replace(priority=1.0))
    saved = tails(memory)
    before = {
        name: AppendOnlyRing(tail.array.copy(), tail.num_written) for name, tail in saved.items()
    }
    for window in windows[7:9]:
        memory.add(window._replace(priority=1.0))
    batch = memory.sample(8)
    memory.update_priorities(batch.slots, batch.generations, np.full(8, 3.0))
    for name, now in tails(memory).items():
        then = before[name]
        assert now.num_written > then.num_written
        kept = range(now.window.start, then.num_written)
        for item in kept:
            row = item % len(now.array)
            np.testing.assert_array_equal(then.array[row], now.array[row], err_msg=name)


def tails(memory):
    state = memory.state_dict()
    parts = {"steps": state["steps"], "windows": state["windows"], "blocks": state["blocks"]}
    return {
        f"{part}.{name}": value
        for part, values in parts.items()
        for name, value in values.items()
        if isinstance(value, AppendOnlyRing)
    }


def test_what_does_not_fit_is_refused_with_what_would(monkeypatch):
    monkeypatch.setattr("ezgreedy.replay.frames.available_bytes", lambda: 2**29 + 10**9)
    codec = BlockCodec((1, 210, 160), np.uint16)
    with pytest.raises(ValueError, match=r"capacity must be at most (\d+) to fit") as refusal:
        SequenceReplay(4_000_000, codec, rng=np.random.default_rng(0))
    fitting = int(str(refusal.value).split("at most ")[1].split()[0])
    assert 1_000_000 < fitting < 10**9 / 700
    with pytest.raises(ValueError, match="to fit"):
        SequenceReplay(fitting + 1, codec, rng=np.random.default_rng(0))
    SequenceReplay(fitting, codec, rng=np.random.default_rng(0))
    with pytest.raises(ValueError, match="to fit"):  # states of eight heads take more
        SequenceReplay(fitting, codec, state_shape=(8, 512), rng=np.random.default_rng(0))


def test_the_papers_buffer_fits_in_4_gigabytes(monkeypatch):
    monkeypatch.setattr("ezgreedy.replay.frames.available_bytes", lambda: 2**29 + 4 * 10**9)
    codec = BlockCodec((1, 210, 160), np.uint16)
    memory = SequenceReplay(4_000_000, codec, rng=np.random.default_rng(0))
    assert memory.capacity == 100_000


def test_what_is_wrong_is_refused():
    memory = filled([1.0])
    with pytest.raises(ValueError, match="must be added before"):
        memory_of(3).sample(2)
    window = played(accumulator_of(SMALL), [Play([1], [True])])[0]
    with pytest.raises(ValueError, match="priority must be finite"):
        memory.add(window._replace(priority=np.nan))
    with pytest.raises(ValueError, match=r"window must have states of shape \(3,\)"):
        memory.add(window._replace(state_c=np.zeros(4, dtype=np.float32)))
    with pytest.raises(ValueError, match="losses must have shape"):
        memory.update_priorities(np.zeros(2, int), np.zeros(2, int), np.ones(3))
    with pytest.raises(ValueError, match="capacity must be at least 4"):
        memory_of(0)
    with pytest.raises(ValueError, match="codec must have blocks of 4 steps"):
        SequenceReplay(40, BlockCodec(SHAPE), SMALL, rng=np.random.default_rng(0))
    assert len(memory) == 1
