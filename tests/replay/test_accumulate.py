"""n-step transitions against the definition, at every kind of episode boundary."""

import json
from itertools import product

import numpy as np
import pytest

from ezgreedy.replay.accumulate import Accumulator, Transition

GAMMA = 0.9
ENDINGS = ["terminated", "truncated"]


def by_definition(slots, actions, rewards, ending, n, lives_lost=()):
    """Transitions of one whole episode, written down from R and D of the module's docstring."""
    length = len(actions)
    discounts = [0.0 if k in lives_lost else GAMMA for k in range(length)]
    if ending == "terminated":
        discounts[-1] = 0.0
    transitions = []
    for t in range(length):
        k = min(n, length - t)
        total = sum(np.prod(discounts[t : t + j]) * rewards[t + j] for j in range(k))
        product_ = float(np.prod(discounts[t : t + k]))
        transitions.append(Transition(slots[t], actions[t], total, product_, slots[t + k]))
    return transitions


def play(accumulator, lane, slots, actions, rewards, ending, lives_lost=()):
    accumulator.begin(lane, slots[0])
    seen = []
    for k, (action, reward) in enumerate(zip(actions, rewards, strict=True)):
        flags = {ending: True} if k == len(actions) - 1 else {}
        flags["life_lost"] = k in lives_lost
        seen += accumulator.step(lane, action, reward, slots[k + 1], **flags)
    return seen


def assert_same(seen, expected):
    assert len(seen) == len(expected)
    for one, other in zip(seen, expected, strict=True):
        assert (one.slot, one.action, one.next_slot) == (other.slot, other.action, other.next_slot)
        assert one.n_step_return == pytest.approx(other.n_step_return, abs=1e-12)
        assert one.discount == pytest.approx(other.discount, abs=1e-12)


def episode(length, first_slot):
    slots = list(range(first_slot, first_slot + length + 1))
    return slots, [k % 3 for k in range(length)], [float(k + first_slot) for k in range(length)]


@pytest.mark.parametrize("n", [1, 3, 5])
@pytest.mark.parametrize("ending", ENDINGS)
@pytest.mark.parametrize("relation", ["shorter", "equal", "longer"])
@pytest.mark.parametrize("place", ["first", "back_to_back"])
def test_every_state_of_an_episode_starts_one_transition(n, ending, relation, place):
    length = {"shorter": max(n - 1, 1), "equal": n, "longer": 2 * n + 1}[relation]
    accumulator = Accumulator(n, GAMMA)
    if place == "back_to_back":
        for index, before in enumerate(product(ENDINGS, [1, n, n + 2])):
            play(accumulator, 0, *episode(before[1], 1000 * (index + 1)), before[0])
    played = episode(length, 10)
    seen = play(accumulator, 0, *played, ending)
    assert_same(seen, by_definition(*played, ending, n))
    assert [transition.slot for transition in seen] == played[0][:-1]


def test_tails_of_a_truncated_episode_bootstrap_and_of_a_terminated_one_do_not():
    played = episode(5, 0)
    truncated = play(Accumulator(3, GAMMA), 0, *played, "truncated")
    powers = [GAMMA**3] * 3 + [GAMMA**2, GAMMA]
    np.testing.assert_allclose([t.discount for t in truncated], powers)
    terminated = play(Accumulator(3, GAMMA), 0, *played, "terminated")
    np.testing.assert_allclose([t.discount for t in terminated], [GAMMA**3] * 2 + [0.0] * 3)


@pytest.mark.parametrize("ending", ENDINGS)
@pytest.mark.parametrize("lost", [(0,), (2,), (1, 3), (5,)])
def test_rewards_after_a_lost_life_count_nothing_and_the_episode_carries_on(ending, lost):
    played = episode(6, 1)
    seen = play(Accumulator(3, GAMMA), 0, *played, ending, lives_lost=lost)
    assert_same(seen, by_definition(*played, ending, 3, lives_lost=lost))


def test_a_lost_life_by_hand():
    accumulator = Accumulator(3, 0.5)
    accumulator.begin(0, 7)
    assert accumulator.step(0, 1, 1.0, 8) == []
    assert accumulator.step(0, 2, 10.0, 9, life_lost=True) == []
    assert accumulator.step(0, 0, 100.0, 10) == [Transition(7, 1, 6.0, 0.0, 10)]
    assert accumulator.step(0, 0, 4.0, 11) == [Transition(8, 2, 10.0, 0.0, 11)]
    assert accumulator.step(0, 0, 2.0, 12) == [Transition(9, 0, 102.5, 0.125, 12)]


def test_lanes_equal_separate_accumulators():
    rng = np.random.default_rng(0)
    together = Accumulator(3, GAMMA, lanes=3)
    apart = [Accumulator(3, GAMMA) for _ in range(3)]
    is_running, slot = [False] * 3, 0
    for _ in range(400):
        lane = int(rng.integers(3))
        slot += 1
        if not is_running[lane]:
            together.begin(lane, slot)
            apart[lane].begin(0, slot)
            is_running[lane] = True
            continue
        flags = {"truncated": bool(rng.random() < 0.1), "terminated": bool(rng.random() < 0.1)}
        reward = float(rng.random())
        one = together.step(lane, 0, reward, slot, **flags)
        assert one == apart[lane].step(0, 0, reward, slot, **flags)
        is_running[lane] = not any(flags.values())


def test_a_state_saved_inside_an_episode_continues():
    slots, actions, rewards = episode(6, 0)
    original = Accumulator(3, GAMMA)
    original.begin(0, 0)
    for k in range(2):
        original.step(0, actions[k], rewards[k], slots[k + 1])
    restored = Accumulator(3, GAMMA)
    restored.load_state_dict(json.loads(json.dumps(original.state_dict())))
    for k in range(2, 6):
        flags = {"truncated": k == 5}
        one = original.step(0, actions[k], rewards[k], slots[k + 1], **flags)
        assert one == restored.step(0, actions[k], rewards[k], slots[k + 1], **flags)
    with pytest.raises(ValueError, match="hold 2 lanes"):
        Accumulator(3, GAMMA, lanes=2).load_state_dict(original.state_dict())


def test_steps_belong_to_episodes():
    accumulator = Accumulator()
    with pytest.raises(ValueError, match="lane must be at least 0"):
        accumulator.begin(-1, 0)
    with pytest.raises(ValueError, match="must begin an episode"):
        accumulator.step(0, 0, 0.0, 1)
    accumulator.begin(0, 0)
    with pytest.raises(ValueError, match="must end its episode"):
        accumulator.begin(0, 1)
    accumulator.step(0, 0, 0.0, 1, truncated=True)
    with pytest.raises(ValueError, match="must begin an episode"):
        accumulator.step(0, 0, 0.0, 2)
