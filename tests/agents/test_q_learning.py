"""Q-learning's equation, its fixed point, and its ties."""

import numpy as np
import pytest

from ezgreedy.agents.q_learning import (
    QLearning,
    greedy_action,
    greedy_return,
    weighted_greedy_action,
)
from ezgreedy.envs.chain import Chain
from ezgreedy.exploration.compiled import lane_stream
from ezgreedy.exploration.ez_greedy import EpsilonGreedy, EZGreedy
from ezgreedy.exploration.options import ActionRepeats
from ezgreedy.exploration.streams import Purpose, Streams
from ezgreedy.exploration.temporally_extended import TemporallyExtended
from support.twins import uniform


def test_one_update_is_the_equation() -> None:
    agent = QLearning(3, 2, 0.25, 0.5, 2.0, "first")
    agent.values[1] = [3.0, 7.0]
    agent.update([0], [1], [10.0], [1], np.array([False]))
    assert agent.values[0].tolist() == [2.0, 2.0 + 0.25 * (10.0 + 0.5 * 7.0 - 2.0)]
    agent.update([0], [0], [10.0], [1], np.array([True]))
    assert agent.values[0, 0] == 2.0 + 0.25 * (10.0 - 2.0)


def test_lanes_learn_in_their_order_from_one_table() -> None:
    agent = QLearning(2, 1, 1.0, 1.0, 0.0, "first")
    agent.update([1, 0], [0, 0], [5.0, 1.0], [0, 1], np.array([True, False]))
    assert agent.values[:, 0].tolist() == [6.0, 5.0]


def test_q_star_of_three_states_is_reached() -> None:
    """Chain of three: stop for 0, 1, 0. Q*(0, right) = γ, Q*(1, down) = 1, and so on."""
    env, discount = Chain(3), 0.9
    explore = EZGreedy(2, 1.0, seed=1)
    agent = QLearning(env.num_states, 2, 1.0, discount, streams=explore.streams)
    state, _ = env.reset()
    for _ in range(500):
        states = np.array([state])
        actions = explore(agent.greedy(states, explore.steps))
        state, reward, terminated, _, _ = env.step(int(actions[0]))
        agent.update(states, actions, [reward], [state], np.array([terminated]))
        explore.reset(np.array([terminated]))
        if terminated:
            state, _ = env.reset()
    np.testing.assert_allclose(agent.values[:3], [[discount, 0.0], [0.0, 1.0], [0.0, 0.0]])
    assert greedy_return(env, agent.values, discount, 3) == discount


@pytest.mark.parametrize("seed", [0, 2**70])
def test_random_ties_pick_by_the_uniform_of_their_step(seed) -> None:
    agent = QLearning(2, 4, 0.5, streams=Streams(seed, 3, first_lane=2))
    agent.values[0] = [1.0, 3.0, 3.0, 3.0]
    agent.values[1] = [2.0, 1.0, 0.0, 2.0]
    for step in range(50):
        steps = np.full(3, step)
        found = agent.greedy([0, 1, 0], steps).tolist()
        draws = [uniform(seed, lane, step, Purpose.GREEDY_TIE) for lane in (2, 3, 4)]
        best = [[1, 2, 3], [0, 3], [1, 2, 3]]
        expected = [best[i][int(draws[i] * len(best[i]))] for i in range(3)]
        assert found == expected
        compiled = [
            greedy_action(agent.values, state, 4, True, lane_stream(seed, 2 + i), step)
            for i, state in enumerate((0, 1, 0))
        ]
        assert compiled == expected


def test_weights_of_ties_make_equal_actions_as_likely_as_one() -> None:
    weights = [0.25, 0.25, 0.25, 0.25, 1.0]
    agent = QLearning(1, 5, 0.5, streams=Streams(0, 1), tie_weights=weights)
    found = [int(agent.greedy([0], np.array([step]))[0]) for step in range(2000)]
    stream = lane_stream(0, 0)
    compiled = [
        weighted_greedy_action(agent.values, 0, np.array(weights), stream, step)
        for step in range(2000)
    ]
    assert found == compiled
    assert found.count(4) / 2000 == pytest.approx(0.5, abs=0.056)  # 5 standard errors
    agent.values[0, 2] = 1.0
    assert agent.greedy([0], np.array([0])).tolist() == [2]


def test_equal_weights_of_ties_change_nothing() -> None:
    plain, weighed = (
        QLearning(1, 3, 0.5, streams=Streams(1, 1), tie_weights=weights)
        for weights in (None, [1.0, 1.0, 1.0])
    )
    for step in range(100):
        steps = np.array([step])
        assert plain.greedy([0], steps).tolist() == weighed.greedy([0], steps).tolist()


def test_first_ties_pick_the_first_and_need_no_steps() -> None:
    agent = QLearning(2, 3, 0.5, ties="first")
    agent.values[1] = [0.0, 4.0, 4.0]
    assert agent.greedy([0, 1]).tolist() == [0, 1]
    assert greedy_action(agent.values, 1, 3, False, lane_stream(0, 0), 0) == 1


def test_any_policy_of_the_core_takes_its_greedy_actions() -> None:
    env = Chain(5)
    for explore in (
        EpsilonGreedy(2, 0.5, lanes=2),
        EZGreedy(2, 0.5, lanes=2),
        TemporallyExtended(ActionRepeats(2), 0.5, lanes=2),
    ):
        agent = QLearning(env.num_states, 2, 0.5, streams=explore.streams)
        greedy = agent.greedy([0, 1], explore.steps)
        actions = explore(greedy)
        agent.update([0, 1], actions, [0.0, 1.0], [1, 2], np.array([False, True]))


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: QLearning(0, 2, 0.5, ties="first"), "num_states must be at least 1; got 0"),
        (lambda: QLearning(2, 2, 1.5, ties="first"), "step_size must lie in [0, 1]; got 1.5"),
        (lambda: QLearning(2, 2, 0.5), "streams must be given when ties are random; got None"),
        (lambda: QLearning(2, 2, 0.5, ties="last"), "ties must be one of"),  # type: ignore[arg-type]
        (
            lambda: QLearning(2, 2, 0.5, streams=Streams(0, 1), tie_weights=[1.0, 0.0]),
            "tie_weights must be positive",
        ),
        (lambda: _agent().greedy([2]), "states must lie in [0, 2)"),
        (lambda: _agent().greedy(1), "states must be a row with one entry for each lane; got 1"),
        (lambda: _random_agent().greedy([0]), "steps must be given when ties are random"),
        (lambda: _agent().update([0], [2], [0.0], [0], np.array([True])), "actions must lie in"),
        (lambda: _agent().update([0], [0], [np.nan], [0], np.array([True])), "rewards must be"),
        (lambda: _agent().update([0], [0], [0.0], [5], np.array([True])), "next_states must lie"),
        (lambda: _agent().update([0], [0], [0.0], [1], [1]), "terminated must be a bool array"),
    ],
)
def test_bad_arguments_are_refused_by_name(call, message) -> None:
    with pytest.raises((ValueError, TypeError)) as caught:
        call()
    assert message in str(caught.value)


def _agent() -> QLearning:
    return QLearning(2, 2, 0.5, ties="first")


def _random_agent() -> QLearning:
    return QLearning(2, 2, 0.5, streams=Streams(0, 1))
