"""The whole memory against a list of everything that ever happened."""

import copy

import numpy as np
import pytest

from ezgreedy.checkpoints.append_only_ring import AppendOnlyRing
from ezgreedy.replay.accumulate import Accumulator
from ezgreedy.replay.frames import FrameStore
from ezgreedy.replay.prioritized import Priorities
from ezgreedy.replay.transition_replay import TransitionReplay

SHAPE = (1, 1, 4)
STACK, N, GAMMA = 4, 3, 0.9


def frame(lane, time):
    """Says which lane and time it belongs to; never 0, which is what padding looks like."""
    return np.array([lane + 1, time % 256, time // 256, 7], dtype=np.uint8).reshape(SHAPE)


def make(length, lanes=1, num_steps=N, seed=0):
    return TransitionReplay(
        FrameStore(length * lanes, SHAPE, STACK, lanes),
        Accumulator(num_steps, GAMMA, lanes),
        Priorities(length * lanes, rng=np.random.default_rng(seed)),
    )


class Lane:
    """A lane's whole past: when episodes started, rewards, discounts, lives."""

    def __init__(self, lane):
        self.lane, self.time, self.start, self.steps = lane, -1, None, {}
        self.episode_of, self.last_of = {}, {}

    def state(self, time):
        times = range(time - STACK + 1, time + 1)
        start = self.episode_of[time]
        rows = [frame(self.lane, t) if t >= start else np.zeros(SHAPE, np.uint8) for t in times]
        return np.concatenate(rows)

    def transition(self, time):
        """(action, R, D, time of s′) by definition."""
        last = min(time + N, self.last_of[self.episode_of[time]])
        total, product = 0.0, 1.0
        for t in range(time, last):
            _, reward, discount = self.steps[t]
            total += product * reward
            product *= discount
        return self.steps[time][0], total, product, last


def live(memory, lane, rng):
    """One frame of a lane: a first one or a step, ended or not."""
    lane.time += 1
    seen = frame(lane.lane, lane.time)
    if lane.start is None:
        memory.begin(lane.lane, seen)
        lane.start = lane.time
        lane.episode_of[lane.time] = lane.time
        return
    action, reward = int(rng.integers(5)), float(rng.integers(-3, 4))
    terminated, truncated, life_lost = (bool(x) for x in rng.random(3) < 0.12)
    memory.step(
        lane.lane,
        action,
        reward,
        seen,
        terminated=terminated,
        truncated=truncated,
        life_lost=life_lost,
    )
    lane.steps[lane.time - 1] = (action, reward, 0.0 if terminated or life_lost else GAMMA)
    lane.episode_of[lane.time] = lane.start
    if terminated or truncated:
        lane.last_of[lane.start] = lane.time
        lane.start = None
    else:
        lane.last_of[lane.start] = 10**9


def check_batch(batch, lanes):
    for row in range(len(batch.slots)):
        newest = batch.states[row].reshape(STACK, 4)[-1].astype(int)
        lane, time = lanes[newest[0] - 1], newest[1] + 256 * newest[2]
        action, total, product, last = lane.transition(time)
        assert batch.actions[row] == action
        assert batch.returns[row] == pytest.approx(total, abs=1e-5)
        assert batch.discounts[row] == pytest.approx(product, abs=1e-6)
        np.testing.assert_array_equal(batch.states[row], lane.state(time))
        np.testing.assert_array_equal(batch.next_states[row], lane.state(last))


@pytest.mark.parametrize("lanes", [1, 3])
@pytest.mark.parametrize("length", [7, 12, 40])
def test_every_batch_is_what_happened(lanes, length):
    rng, memory = np.random.default_rng(length), make(length, lanes)
    past = [Lane(lane) for lane in range(lanes)]
    seen = set()
    for _ in range(10 * length):
        live(memory, past[int(rng.integers(lanes))], rng)
        if len(memory):
            batch = memory.sample(16)
            check_batch(batch, past)
            seen |= set(batch.slots.tolist())
            memory.update_priorities(batch.slots, rng.random(16) * 3)
    assert len(seen) > 0.9 * length * lanes


def test_every_step_is_kept_until_its_frames_are_overwritten():
    memory = make(50)
    memory.begin(0, frame(0, 0))
    for time in range(1, 11):
        memory.step(0, 0, 0.0, frame(0, time), truncated=time == 10)
    assert len(memory) == 10  # tails included; the last frame starts nothing
    memory.begin(0, frame(0, 11))
    for time in range(12, 500):
        memory.step(0, 0, 0.0, frame(0, time))
    assert len(memory) == 50 - N - (STACK - 1)


def test_a_restored_memory_hands_out_the_same_batches():
    rng, original = np.random.default_rng(5), make(20, 2)
    past = [Lane(0), Lane(1)]
    for number in range(70):
        live(original, past[number % 2], rng)
    restored = make(20, 2, seed=99)
    restored.load_state_dict(copy.deepcopy(original.state_dict()))
    tapes = []
    for memory in (original, restored):
        rng, lanes = np.random.default_rng(6), copy.deepcopy(past)
        tape = []
        for number in range(50):
            live(memory, lanes[number % 2], rng)
            batch = memory.sample(4)
            memory.update_priorities(batch.slots, rng.random(4))
            tape.append([np.array(part).tolist() for part in batch])
        tapes.append(tape)
    assert tapes[0] == tapes[1]


def test_a_state_of_another_size_is_refused():
    with pytest.raises(ValueError, match="state must hold actions of shape"):
        make(20).load_state_dict(make(21).state_dict())


def test_pieces_that_do_not_fit_are_refused():
    rng = np.random.default_rng(0)
    store = FrameStore(20, SHAPE, STACK)
    with pytest.raises(ValueError, match="priorities must have capacity 20"):
        TransitionReplay(store, Accumulator(), Priorities(21, rng=rng))
    with pytest.raises(ValueError, match="accumulator must have 1 lanes"):
        TransitionReplay(store, Accumulator(lanes=2), Priorities(20, rng=rng))
    with pytest.raises(ValueError, match="at least 7 frames"):
        make(6)


def repr_of(memory):
    """Every bit of a memory's state."""
    parts = []

    def walk(part):
        if isinstance(part, AppendOnlyRing):
            parts.extend([part.num_written, part.array.tobytes()])
        elif isinstance(part, np.ndarray):
            parts.append(part.tobytes())
        elif isinstance(part, dict):
            for name in sorted(part):
                walk(part[name])
        elif isinstance(part, list):
            for item in part:
                walk(item)
        else:
            parts.append(part)

    walk(memory.state_dict())
    return parts


def test_a_refused_step_changes_nothing():
    memory = make(20)
    with pytest.raises(ValueError, match="must begin an episode"):
        memory.step(0, 0, 0.0, frame(0, 0))
    memory.begin(0, frame(0, 0))
    before = repr_of(memory)
    with pytest.raises(ValueError, match="reward must be finite"):
        memory.step(0, 0, np.nan, frame(0, 1))
    with pytest.raises(ValueError, match="must end its episode"):
        memory.begin(0, frame(0, 1))
    with pytest.raises(ValueError, match="frame must be uint8"):
        memory.step(0, 0, 0.0, np.zeros(SHAPE))
    assert repr_of(memory) == before


def test_stacks_carry_on_over_a_lost_life_and_not_over_a_truncation():
    memory = make(30, num_steps=1)
    memory.begin(0, frame(0, 0))
    for time in range(1, 6):
        memory.step(0, 0, 0.0, frame(0, time), life_lost=time == 3, truncated=time == 5)
    memory.begin(0, frame(0, 6))
    memory.step(0, 0, 0.0, frame(0, 7))
    batch = memory.sample(200)
    times = batch.states.reshape(200, STACK, 4)[:, :, 1]
    stacks = {int(stack[-1]): stack.tolist() for stack in times}
    assert stacks[4] == [1, 2, 3, 4]
    assert stacks[6] == [0, 0, 0, 6]
    worth = {
        int(stack[-1]): float(discount)
        for stack, discount in zip(times, batch.discounts, strict=True)
    }
    expected = {0: 0.9, 1: 0.9, 2: 0.0, 3: 0.9, 4: 0.9, 6: 0.9}
    assert worth == pytest.approx(expected)
