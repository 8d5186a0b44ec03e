import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ezgreedy.envs import chain
from ezgreedy.envs.chain import DOWN, RIGHT, Chain


def test_rewards_are_n_zeros_and_then_n_for_n_from_one_on():
    pattern = np.concatenate([[0] * n + [n] for n in range(1, 60)])
    assert [chain.stop_reward(state) for state in range(len(pattern))] == pattern.tolist()


@given(st.integers(1, 2**22), st.integers(-1, 1))
def test_rewards_stay_exact_far_out(n, offset):
    state = n * (n + 3) // 2 - 1 + offset
    assert chain.stop_reward(state) == (n if offset == 0 else exact_reward(state))


def exact_reward(state):
    n = (math.isqrt(8 * state + 17) - 3) // 2
    return n if n * (n + 3) // 2 - 1 == state else 0


def test_the_best_stop_at_discount_99_is_state_53_worth_528():
    values = [0.99**state * chain.stop_reward(state) for state in range(1000)]
    assert np.argmax(values) == 53
    assert values[53] == pytest.approx(5.28, abs=0.005)


def test_right_moves_on_for_nothing_and_down_ends_with_the_reward():
    env = Chain()
    assert env.reset()[0] == 0
    for state in range(1, 9):
        assert env.step(RIGHT)[:3] == (state, 0.0, False)
    assert env.step(DOWN)[:3] == (1000, 3.0, True)


def test_the_action_that_terminates_can_be_the_other_one():
    env, mirrored = Chain(8), Chain(8, down=0)
    for state in range(8):
        for action in (RIGHT, DOWN):
            assert mirrored.transition(state, 1 - action) == env.transition(state, action)
    with pytest.raises(ValueError, match="down must be at most 1; got 2"):
        Chain(8, down=2)


def test_right_of_the_last_state_there_is_nothing():
    env = Chain(length=5)
    env.reset()
    moves = [env.step(RIGHT)[:3] for _ in range(5)]
    assert moves[-2:] == [(4, 0.0, False), (5, 0.0, True)]
    assert env.observation_space.contains(5)


def test_the_last_state_can_be_stopped_in():
    assert chain.step(4, DOWN, 5) == (5, 2.0, True)


@pytest.mark.parametrize("length", [0, -3])
def test_a_chain_has_at_least_one_state(length):
    with pytest.raises(ValueError, match=f"length must be at least 1; got {length}"):
        Chain(length=length)
