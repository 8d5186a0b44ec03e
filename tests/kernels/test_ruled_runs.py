"""Compiled runs with rules equal the plain loop with the rules' own objects."""

import numpy as np
import pytest
from gymnasium.wrappers import TimeLimit

from ezgreedy import DiscrepancyTrigger, EZGreedy, Fixed, Zeta
from ezgreedy.agents.q_learning import QLearning
from ezgreedy.analysis.bins import Bins
from ezgreedy.analysis.environment_walks import first_visits
from ezgreedy.envs.chain import Chain
from ezgreedy.envs.deep_sea import DeepSea
from ezgreedy.envs.grid_map import GridMap
from ezgreedy.envs.grid_world import GridWorld
from ezgreedy.envs.mountain_car import MountainCar
from ezgreedy.exploration.stops import (
    DiscrepancySettings,
    RewardSettings,
    Situation,
    UnchangedSettings,
    rule_of,
)
from ezgreedy.kernels.policies import exploration
from ezgreedy.kernels.pure_exploration import Axis
from ezgreedy.kernels.q_learning_runs import Budget, finite_task, rule, run_finite
from ezgreedy.kernels.ruled_runs import (
    binned_first_visits_with_rules,
    finite_first_visits_with_rules,
    run_finite_with_rules,
)
from ezgreedy.kernels.rules import rules
from ezgreedy.kernels.sarsa_runs import Domain

SEED, LIMIT, NUM_STEPS, DISCOUNT = 3, 17, 600, 0.9
STOPS = {
    "none": (),
    "unchanged": (UnchangedSettings(1),),
    "unchanged twice": (UnchangedSettings(2),),
    "reward": (RewardSettings(),),
    "discrepancy": (DiscrepancySettings(0.3, steps=3),),
    "any": (UnchangedSettings(1), RewardSettings(0.1), DiscrepancySettings(0.1)),
}
each_rule = pytest.mark.parametrize("stops", STOPS.values(), ids=STOPS)
ENVS = {
    "room": lambda: GridWorld(5, (1, 2), (3, 4)),
    "mines": lambda: GridMap(["S...", ".*.*", "...G"]),
    "deep sea": lambda: DeepSea(5),
    "chain": lambda: Chain(7),
}


def plain_loop(env, explore, stops, trigger):
    """Q-learning with objects; returns the table after every step, and the policy's counters."""
    agent = QLearning(
        env.unwrapped.num_states,
        env.unwrapped.num_actions,
        0.5,
        DISCOUNT,
        0.25,
        streams=explore.streams,
    )
    stop = rule_of(stops, Situation(1, SEED, discount=DISCOUNT))
    state, _ = env.reset()
    starts, rewards, tables = np.array([True]), np.zeros(1), []
    for _ in range(NUM_STEPS):
        states = np.array([state])
        values = agent.values[states].max(axis=1)
        ends = None
        if stop is not None:
            ends = stop(observations=states, rewards=rewards, values=values, starts=starts)
        if trigger is not None:
            remaining = explore.remaining
            deciding = starts | (remaining == 0) | (False if ends is None else ends)
            explore.epsilon = trigger(
                rewards=rewards, values=values, starts=starts, deciding=deciding
            )
        actions = explore(agent.greedy(states, explore.steps), ends=ends)
        state, reward, terminated, truncated, _ = env.step(int(actions[0]))
        agent.update(states, actions, [reward], np.array([state]), np.array([terminated]))
        tables.append(agent.values.copy())
        rewards, starts = np.array([float(reward)]), np.array([terminated or truncated])
        explore.reset(starts)
        if starts[0]:
            state, _ = env.reset()
    return tables, explore.counters


@each_rule
@pytest.mark.parametrize("make", ENVS.values(), ids=ENVS)
@pytest.mark.parametrize(("law", "carries"), [(Zeta(), False), (Fixed(9), True)], ids=str)
def test_q_learning_with_rules_is_the_plain_loop(stops, make, law, carries):
    explore = EZGreedy(make().num_actions, 0.3, law, 1, SEED, carries_over_episodes=carries)
    tables, counters = plain_loop(TimeLimit(make(), LIMIT), explore, stops, None)
    check(make(), law, carries, rules(stops, discount=DISCOUNT), tables, counters)
    if stops and stops != STOPS["reward"] and isinstance(law, Fixed):
        assert counters.cut_by_caller > 0 or isinstance(make(), DeepSea | Chain)


@pytest.mark.parametrize("make", ENVS.values(), ids=ENVS)
@pytest.mark.parametrize("stops", [(), STOPS["any"]], ids=["alone", "with rules"])
def test_a_trigger_in_q_learning_is_the_plain_loop(make, stops):
    explore = EZGreedy(make().num_actions, 0.3, Zeta(), 1, SEED)
    trigger = DiscrepancyTrigger(rate=0.2, discount=DISCOUNT)
    tables, counters = plain_loop(TimeLimit(make(), LIMIT), explore, stops, trigger)
    made = rules(stops, discount=DISCOUNT, trigger_rate=0.2)
    check(make(), Zeta(), False, made, tables, counters)


def check(env, law, carries, made, tables, counters):
    """Equal tables after every tenth step and the last, and equal counts at the end."""
    task, policy = finite_task(env, LIMIT), exploration(0.3, law, carries)
    how = rule(0.5, DISCOUNT, 0.25)
    for step in [*range(1, NUM_STEPS, 10), NUM_STEPS]:
        run = run_finite_with_rules(SEED, task, policy, made, how, Budget(NUM_STEPS, step))
        np.testing.assert_array_equal(run.values, tables[step - 1], f"step {step}")
    assert (run.num_steps, run.num_explored) == (counters.steps, counters.explored)
    assert (run.num_started, run.num_stopped) == (counters.started, counters.cut_by_caller)


def test_without_rules_the_run_is_the_one_without():
    task, policy, how = (
        finite_task(GridWorld(9, (1, 4), (7, 4)), 100),
        exploration(0.2, Zeta()),
        rule(0.3, 0.9),
    )
    found = run_finite_with_rules(1, task, policy, rules(), how, Budget(30))
    expected = run_finite(1, task, policy, how, Budget(30))
    np.testing.assert_array_equal(found.values, expected.values)
    np.testing.assert_array_equal(found.returns, expected.returns)
    np.testing.assert_array_equal(found.lengths, expected.lengths)


WALKS = {name: STOPS[name] for name in ("none", "unchanged", "unchanged twice", "reward")}


@pytest.mark.parametrize("stops", WALKS.values(), ids=WALKS)
@pytest.mark.parametrize("make", ENVS.values(), ids=ENVS)
@pytest.mark.parametrize("carries", [False, True])
def test_walks_with_rules_are_the_plain_ones(stops, make, carries):
    explore = EZGreedy(make().num_actions, 1.0, Zeta(), 3, SEED, carries_over_episodes=carries)
    stop = rule_of(stops, Situation(3))
    expected = first_visits(make, explore, 400, stops=stop).first
    policy, task = exploration(1.0, Zeta(), carries), finite_task(make())
    for lane in range(3):
        found = finite_first_visits_with_rules(SEED, lane, task, policy, rules(stops), 400)
        reached = task.reachable & (found < 400)
        np.testing.assert_array_equal(found[reached], expected[lane][reached])


@pytest.mark.parametrize("stops", WALKS.values(), ids=WALKS)
def test_mountain_car_walks_with_rules_are_the_plain_ones(stops):
    axes = (Axis(0, -1.2, 0.6, 12), Axis(1, -0.07, 0.07, 12))
    bins = Bins((1, 0), (-0.07, -1.2), (0.07, 0.6), (12, 12), (False, False))

    def make():
        env = MountainCar()
        env.np_random = np.random.default_rng(np.random.SeedSequence(SEED, spawn_key=(2, 4)))
        reset = env.reset
        env.reset = lambda *, seed=None, options=None: reset(options=options)
        return env

    explore = EZGreedy(3, 1.0, Zeta(), 1, SEED, first_lane=4)
    expected = first_visits(make, explore, 3000, bins, stops=rule_of(stops, Situation(1)))
    found = binned_first_visits_with_rules(
        Domain.MOUNTAIN_CAR, exploration(1.0, Zeta()), rules(stops), axes, 3000, 4, SEED
    )
    np.testing.assert_array_equal(found.ravel(), expected.first[0])


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: rules([UnchangedSettings(), UnchangedSettings(2)]), "stops must be StopOnUnch"),
        (lambda: rules(trigger_rate=1.0), "trigger_rate must lie below 1; got 1.0"),
        (lambda: rules(trigger_rate=-0.1), r"trigger_rate must lie in \[0, 1\]; got -0.1"),
        (
            lambda: rules([DiscrepancySettings(reading="printed")]),
            "reading must be one of 'consistent'",
        ),
        (
            lambda: finite_first_visits_with_rules(
                0,
                0,
                finite_task(GridWorld(3, (1, 1), None)),
                exploration(1.0, Zeta()),
                rules([DiscrepancySettings()]),
                5,
            ),
            "rules must be StopOnUnchanged or StopOnReward where nothing is learned",
        ),
    ],
)
def test_what_kernels_cannot_do_is_refused_by_name(make, message):
    with pytest.raises(ValueError, match=message):
        make()
