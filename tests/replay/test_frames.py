"""The frame store against lists of whole episodes; refusals before memory runs out."""

import copy

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ezgreedy.replay import frames as module
from ezgreedy.replay.frames import FrameStore, require_memory, required_bytes

SHAPE = (2, 3, 1)


def numbered(number):
    """A frame unlike all others."""
    return (np.arange(6, dtype=np.int64).reshape(SHAPE) * 37 + number * 11 + 1).astype(np.uint8)


class PlainStore:
    """Keeps every frame of every lane for ever, and builds stacks by the rules in words."""

    def __init__(self, length, stack):
        self.length, self.stack, self.lanes = length, stack, {}

    def append(self, lane, frame, starts_episode):
        self.lanes.setdefault(lane, []).append((frame, starts_episode))

    def state(self, lane, time):
        """The stack that ends at a time, or None if a frame of it was overwritten."""
        written = self.lanes[lane]
        rows = []
        while len(rows) < self.stack:
            if time < len(written) - self.length:
                return None
            frame, starts_episode = written[time]
            rows.insert(0, frame)
            time -= 1
            if starts_episode:
                break
        return np.concatenate([np.zeros_like(frame)] * (self.stack - len(rows)) + rows)


@settings(max_examples=80, deadline=None)
@given(
    stack=st.integers(1, 4),
    extra=st.integers(1, 8),
    steps=st.lists(st.tuples(st.integers(0, 1), st.sampled_from([0, 0, 0, 1])), max_size=50),
)
def test_store_equals_lists_of_episodes(stack, extra, steps):
    length = stack + extra
    store, plain = FrameStore(2 * length, SHAPE, stack, lanes=2), PlainStore(length, stack)
    for number, (lane, is_start) in enumerate(steps):
        starts = bool(is_start) or lane not in plain.lanes
        written = len(plain.lanes.get(lane, []))
        times = range(max(written - length, 0), written)
        before = {t for t in times if plain.state(lane, t) is not None}
        expiring = store.expiring(lane)
        slot = store.append(lane, numbered(number), starts_episode=starts)
        plain.append(lane, numbered(number), starts)
        assert slot == lane * length + written % length
        lost = {t for t in before if plain.state(lane, t) is None}
        assert lost <= {t for t in before if lane * length + t % length in expiring}
        compare(store, plain, length)


def compare(store, plain, length):
    for lane, written in plain.lanes.items():
        for time in range(max(len(written) - length, 0), len(written)):
            slots = np.array([lane * length + time % length])
            out = store.new_batch(1)
            out[:] = 99  # a buffer still full of the batch before
            expected = plain.state(lane, time)
            if expected is None:
                with pytest.raises(ValueError, match="whole stack"):
                    store.gather(slots, out)
            else:
                np.testing.assert_array_equal(store.gather(slots, out)[0], expected)


def test_expiring_slots_are_exactly_those_whose_stacks_are_lost():
    store = FrameStore(8, SHAPE, stack=4)
    for number in range(8):
        store.append(0, numbered(number), starts_episode=number in (0, 2))
    assert store.expiring(0) == [0, 1]  # the episode that starts in slot 2 needs neither
    store.append(0, numbered(8), starts_episode=False)
    assert store.expiring(0) == [1]
    store.append(0, numbered(9), starts_episode=False)
    assert store.expiring(0) == [2, 3, 4, 5]


def test_batches_reuse_their_buffer():
    store = FrameStore(10, SHAPE, stack=2)
    for number in range(6):
        store.append(0, numbered(number), starts_episode=number == 0)
    buffer = store.new_batch(3)
    assert store.gather(np.array([1, 5, 1]), buffer) is buffer
    np.testing.assert_array_equal(buffer[0], np.concatenate([numbered(0), numbered(1)]))
    np.testing.assert_array_equal(buffer[0], buffer[2])
    with pytest.raises(ValueError, match="out must hold"):
        store.gather(np.array([1, 5]), buffer)
    with pytest.raises(ValueError, match="slots must have their whole stack"):
        store.gather(np.array([1, 5, 7]), buffer)
    with pytest.raises(ValueError, match="slots must lie in"):
        store.gather(np.array([1, 5, 10]), buffer)


def test_a_restored_store_gathers_the_same():
    store = FrameStore(12, SHAPE, stack=3, lanes=2)
    for number in range(20):
        store.append(number % 2, numbered(number), starts_episode=number % 7 < 2)
    state = copy.deepcopy(store.state_dict())
    restored = FrameStore(12, SHAPE, stack=3, lanes=2)
    restored.load_state_dict(state)
    for lane in range(2):
        assert restored.expiring(lane) == store.expiring(lane)
        for each in (store, restored):
            each.append(lane, numbered(50), starts_episode=False)
    for name, tails in store.state_dict().items():
        for tail, other in zip(tails, restored.state_dict()[name], strict=True):
            np.testing.assert_array_equal(tail.array, other.array)
            assert tail.num_written == other.num_written
    with pytest.raises(ValueError, match="state must hold frames of 2 lanes"):
        FrameStore(14, SHAPE, stack=3, lanes=2).load_state_dict(state)


def test_frames_of_another_kind_are_refused():
    store = FrameStore(10, SHAPE)
    with pytest.raises(ValueError, match="frame must be uint8 of shape"):
        store.append(0, np.zeros(SHAPE, dtype=np.float32), starts_episode=True)
    with pytest.raises(ValueError, match="frame must be uint8 of shape"):
        store.append(0, np.zeros((3, 2, 1), dtype=np.uint8), starts_episode=True)
    with pytest.raises(ValueError, match="first frame"):
        store.append(0, numbered(0), starts_episode=False)
    with pytest.raises(ValueError, match="lane must be at most 0"):
        store.append(1, numbered(0), starts_episode=True)
    assert store.num_written.tolist() == [0]


def test_a_million_transitions_take_at_most_seven_and_a_half_gigabytes():
    assert 7.0e9 < required_bytes(1_000_000, (1, 84, 84)) <= 7.5e9


def test_what_is_kept_is_what_was_announced():
    capacity = 4096
    store = FrameStore(capacity, (1, 84, 84))
    kept = sum(tail.array.nbytes for tails in store.state_dict().values() for tail in tails)
    assert capacity * 7056 <= kept <= required_bytes(capacity, (1, 84, 84))


def test_too_large_a_capacity_is_refused_with_one_that_fits():
    available = 4 * 2**30
    with pytest.raises(ValueError, match=r"capacity must be at most \d+ .*GB.*got 1000000") as told:
        require_memory(1_000_000, (1, 84, 84), available)
    fitting = int(str(told.value).split("at most ")[1].split()[0])
    require_memory(fitting, (1, 84, 84), available)
    with pytest.raises(ValueError, match=f"at most {fitting} "):
        require_memory(fitting + 1, (1, 84, 84), available)


def test_the_store_asks_before_it_takes(monkeypatch):
    monkeypatch.setattr(module, "available_bytes", lambda: module.RESERVED_BYTES + 10**6)
    FrameStore(100, (1, 84, 84))
    with pytest.raises(ValueError, match="capacity must be at most 140 "):
        FrameStore(200, (1, 84, 84))
