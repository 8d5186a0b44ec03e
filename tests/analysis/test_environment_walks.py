import gymnasium
import numpy as np
import pytest
from gymnasium import spaces

from ezgreedy import (
    ActionRepeats,
    EpsilonGreedy,
    EZGreedy,
    Fixed,
    StopOnUnchanged,
    StopWhen,
    TemporallyExtended,
    Zeta,
)
from ezgreedy.analysis.bins import Bins
from ezgreedy.analysis.environment_walks import first_visits
from ezgreedy.analysis.exact import expected_first_visits
from ezgreedy.analysis.finite_walks import tabular_first_visits
from ezgreedy.analysis.process import ExplorationProcess
from ezgreedy.analysis.visits import PAPER_SETTINGS, FirstVisitTimes
from support.small_mdps import deep_sea, room


class Walk(gymnasium.Env):
    """A deterministic FiniteMDP as an environment; its actions begin at `first_action`."""

    def __init__(self, mdp, first_action=0):
        self.mdp, self.state = mdp, 0
        self.action_space = spaces.Discrete(mdp.num_actions, start=first_action)
        self.observation_space = spaces.Discrete(mdp.num_states)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.state = int(self.mdp.start.argmax())
        return self.state, {}

    def step(self, action):
        assert self.action_space.contains(action)
        self.state = int(
            self.mdp.transitions[self.state, action - self.action_space.start].argmax()
        )
        return self.state, 0.0, bool(self.mdp.ends[self.state]), False, {}


class Plain:
    """Somebody's own policy: what ours has to offer behind the least that is needed."""

    def __init__(self, explore):
        self.explore, self.lanes, self.seed = explore, explore.lanes, explore.streams.seed

    def __call__(self, greedy):
        return self.explore(greedy)

    def reset(self, finished):
        self.explore.reset(finished)


class Scripted:
    """Plays these actions, whatever the greedy ones are; −1 stands for the greedy action."""

    lanes = 2

    def __init__(self, actions):
        self.actions = actions

    def __call__(self, greedy):
        return np.where(np.array(self.actions) < 0, greedy, self.actions)

    def reset(self, finished):
        pass


def naive(make, explore, bins, num_steps, seed, stops=None):
    """One trial in the most obvious way; the policy has a single lane."""
    first, visits = [num_steps] * bins.num_cells, [0] * bins.num_cells

    def see(observation, step):
        cell = int(bins.cells([observation])[0])
        first[cell] = min(first[cell], step)
        visits[cell] += 1

    env = make()
    observation, _ = env.reset(seed=seed)
    see(observation, 0)
    for step in range(1, num_steps + 1):
        action = explore(np.zeros(1, dtype=np.int64))[0]
        before = observation
        observation, _, terminated, truncated, _ = env.step(int(action))
        see(observation, step)
        if stops is not None and stops(before, observation):
            explore.reset(np.array([True]))
        if terminated or truncated:
            explore.reset(np.array([True]))
            observation, _ = env.reset()
            see(observation, step)
    return first, visits


@pytest.mark.parametrize("env_id", ["MountainCar-v0", "FrozenLake-v1", "Blackjack-v1"])
@pytest.mark.parametrize("durations", [Fixed(1), Zeta()], ids=["eps", "ez"])
def test_trials_equal_a_naive_loop_of_one_lane_each(env_id, durations):
    env = gymnasium.make(env_id, max_episode_steps=60)
    bins, num_actions = Bins.of(env.observation_space), int(env.action_space.n)
    result = first_visits(
        env_id, EZGreedy(num_actions, 1.0, durations, 3, 9), 250, bins, max_episode_steps=60
    )
    for trial in range(3):
        explore = EZGreedy(num_actions, 1.0, durations, 1, 9, first_lane=trial)
        seed = int(np.random.SeedSequence(9, spawn_key=(trial,)).generate_state(1)[0])
        first, visits = naive(
            lambda: gymnasium.make(env_id, max_episode_steps=60), explore, bins, 250, seed
        )
        assert result.first[trial].tolist() == first
        assert result.visits[trial].tolist() == visits


@pytest.mark.parametrize("first_action", [0, 5])
@pytest.mark.parametrize("mdp", [room(5, (0, 2)), deep_sea(5)], ids=["room", "deep sea"])
def test_environments_and_compiled_walks_give_the_same_trials(mdp, first_action):
    explore = EZGreedy(mdp.num_actions, 1.0, lanes=4, seed=2)
    stepped = first_visits(lambda: Walk(mdp, first_action), explore, 300)
    compiled = tabular_first_visits(ExplorationProcess(mdp), 4, 300, seed=2)
    np.testing.assert_array_equal(stepped.first, compiled.first)
    np.testing.assert_array_equal(stepped.visits, compiled.visits)


def test_time_limits_truncate_and_end_options():
    mdp = room(5, (0, 2))
    explore = EZGreedy(4, 1.0, lanes=4, seed=2)
    stepped = first_visits(lambda: Walk(mdp), explore, 300, max_episode_steps=9)
    compiled = tabular_first_visits(ExplorationProcess(mdp), 4, 300, 2, max_episode_steps=9)
    np.testing.assert_array_equal(stepped.first, compiled.first)
    assert explore.counters.cut_by_episode_ends > 0


def test_greedy_steps_ask_the_greedy_function():
    mdp, greedy = room(4, (0, 1)), np.arange(16) % 4
    explore = EZGreedy(4, 0.3, lanes=3, seed=1)
    stepped = first_visits(lambda: Walk(mdp, 2), explore, 200, greedy=lambda s: 2 + s % 4)
    compiled = tabular_first_visits(ExplorationProcess(mdp, 0.3, Zeta(), greedy), 3, 200, 1)
    np.testing.assert_array_equal(stepped.first, compiled.first)


def test_the_general_policy_gives_the_trials_of_the_vectorised_one():
    mdp = room(4, (0, 1))
    special = first_visits(lambda: Walk(mdp), EZGreedy(4, 1.0, lanes=2, seed=3), 100)
    general = first_visits(
        lambda: Walk(mdp), TemporallyExtended(ActionRepeats(4), 1.0, lanes=2, seed=3), 100
    )
    np.testing.assert_array_equal(special.first, general.first)


def test_options_end_where_a_rule_says_so():
    mdp, explore = room(5, (0, 2)), EZGreedy(4, 1.0, lanes=3, seed=9)
    bins = Bins.of(Walk(mdp).observation_space)
    found = first_visits(lambda: Walk(mdp), explore, 300, stops=StopOnUnchanged(lanes=3))
    for trial in range(3):
        single = EZGreedy(4, 1.0, lanes=1, seed=9, first_lane=trial)
        first, visits = naive(lambda: Walk(mdp), single, bins, 300, 0, lambda old, new: old == new)
        assert found.first[trial].tolist() == first
        assert found.visits[trial].tolist() == visits
    assert explore.counters.cut_by_caller > 0
    assert explore.counters.cut_by_episode_ends == 0
    # Long repeats against a wall are what the rule is for.
    never = first_visits(lambda: Walk(mdp), EZGreedy(4, 1.0, lanes=3, seed=9), 300)
    assert found.trial_means().mean() < never.trial_means().mean()


@pytest.mark.parametrize(
    ("stops", "explore", "message"),
    [
        (np.array_equal, EZGreedy(4, 1.0, lanes=3), "stops must be a stopping rule"),
        (StopOnUnchanged(lanes=2), EZGreedy(4, 1.0, lanes=3), "stops.lanes must equal .* 3; got 2"),
        (StopOnUnchanged(lanes=2), Scripted([0, 0]), "explore must be a policy of ours"),
    ],
)
def test_rules_that_cannot_end_these_options_are_refused(stops, explore, message):
    with pytest.raises((TypeError, ValueError), match=message):
        first_visits(lambda: Walk(room(5, (0, 2))), explore, 10, stops=stops)


def test_a_rule_that_reads_values_is_told_that_there_are_none():
    def walk(function):
        rule = StopWhen(function, lanes=3)
        first_visits(lambda: Walk(room(5, (0, 2))), EZGreedy(4, 1.0, lanes=3), 10, stops=rule)

    for function in (lambda seen: seen.values > 0, lambda seen: seen.values.max() > 0):
        with pytest.raises(TypeError, match=r"StopWhen failed: .*\(seen\.values is None here: "):
            walk(function)
    with pytest.raises(TypeError, match=r"^unrelated$"):
        walk(lambda seen: raised(TypeError("unrelated")))


def raised(error):
    raise error


@pytest.mark.parametrize("env_id", ["MountainCar-v0", "FrozenLake-v1"])
@pytest.mark.parametrize("epsilon", [0.3, 1.0])
def test_an_own_policy_is_called_and_reset_like_ours(env_id, epsilon):
    num_actions = int(gymnasium.make(env_id).action_space.n)
    ours, own = (EZGreedy(num_actions, epsilon, lanes=3, seed=4) for _ in range(2))
    expected, found = (
        first_visits(env_id, policy, 150, max_episode_steps=40, greedy=lambda _: 1)
        for policy in (ours, Plain(own))
    )
    np.testing.assert_array_equal(found.first, expected.first)
    np.testing.assert_array_equal(found.visits, expected.visits)


def test_own_policies_that_cannot_walk_are_refused():
    def make():
        return Walk(room(3, (0, 0)), first_action=5)

    assert first_visits(make, Scripted([0, 3]), 5).num_trials == 2
    assert first_visits(make, Scripted([0, -1]), 5, greedy=lambda _: 6).num_trials == 2
    with pytest.raises(ValueError, match="greedy must be given: the policy plays greedy actions"):
        first_visits(make, Scripted([0, -1]), 5)
    with pytest.raises(ValueError, match=r"explore\(greedy\) must .*got 4"):
        first_visits(make, Scripted([0, 4]), 5)
    with pytest.raises(TypeError, match="explore must have lanes, a call and a reset"):
        first_visits(make, lambda greedy: greedy, 5)
    own = Scripted([0, 0])
    own.seed = -1
    with pytest.raises(ValueError, match=r"explore.seed must be at least 0; got -1"):
        first_visits(make, own, 5)


def test_mean_first_visits_are_the_exact_ones():
    # 300 trials, five standard errors in each of 16 cells.
    mdp = room(4, (0, 1))
    times = first_visits(lambda: Walk(mdp), EpsilonGreedy(4, 1.0, 300, 4), 400).first
    exact = expected_first_visits(ExplorationProcess(mdp, durations=Fixed(1)))
    errors = times.std(axis=0) / np.sqrt(300)
    assert (np.abs(times.mean(axis=0) - exact) <= 5 * errors + 1e-9).all()


def test_mountain_car_is_covered_sooner_by_options():
    # The study: a ratio of .707 ± .028 (400 trials), 46 % and 29 % of cells never visited.
    ez, eps = (
        first_visits("MountainCar-v0", policy, 5000, max_episode_steps=5000)
        for policy in (EZGreedy(3, 1.0, lanes=6), EpsilonGreedy(3, 1.0, lanes=6))
    )
    assert ez.shape == (12, 12)
    assert ez.trial_means().mean() < 0.9 * eps.trial_means().mean()


def test_progress_hears_of_every_step():
    heard = []
    explore = EZGreedy(4, 1.0)
    first_visits(lambda: Walk(room(3, (0, 0))), explore, 5, progress=heard.append)
    assert heard == [1, 2, 3, 4, 5]


def test_never_visited_cells_count_the_maximum():
    first = np.array([[0, 3, 10, 10], [0, 10, 10, 10]])
    visits = np.array([[5, 1, 0, 1], [9, 0, 0, 0]])
    times = FirstVisitTimes(first, visits, 10, (2, 2))
    np.testing.assert_array_equal(times.mean_map(), [[0.0, 6.5], [10.0, 10.0]])
    # A cell first seen after the very last step has been visited all the same.
    np.testing.assert_array_equal(times.never_map(), [[0.0, 0.5], [1.0, 0.5]])
    np.testing.assert_array_equal(times.trial_means(), [5.75, 7.5])
    np.testing.assert_array_equal(times.trial_never(), [0.25, 0.75])
    corner = np.array([[True, True], [False, False]])
    np.testing.assert_array_equal(times.trial_means(corner), [1.5, 5.0])
    with pytest.raises(ValueError, match="cells must hold at least one cell"):
        times.trial_means(np.zeros((2, 2), dtype=bool))


def test_the_papers_table_is_the_papers():
    assert PAPER_SETTINGS["DeepSea"].at_size(20)[:4] == (5, 10_000_000, 20, "log")
    assert PAPER_SETTINGS["GridWorld"] == (100, 5000, 5000, "linear", None, False)
    assert PAPER_SETTINGS["MountainCar"].at_size(3) == (50, 5000, 5000, "linear", 12, False)
    assert PAPER_SETTINGS["CartPole"][:5] == (100, 5000, 5000, "linear", 20)


def test_what_cannot_be_counted_is_refused():
    def make():
        return Walk(room(3, (0, 0)))

    with pytest.raises(ValueError, match="the environment must have discrete actions"):
        first_visits("Pendulum-v1", EZGreedy(4, 1.0), 5)
    with pytest.raises(TypeError, match=r"environment must be an id .* \(pass lambda: gymnasium"):
        first_visits(gymnasium.make("MountainCar-v0"), EZGreedy(3, 1.0), 5)
    with pytest.raises(TypeError, match=r"environment must be an id that .*; got int 3$"):
        first_visits(3, EZGreedy(3, 1.0), 5)
    with pytest.raises(ValueError, match="explore must have 4 actions; got 3"):
        first_visits(make, EZGreedy(3, 1.0), 5)
    with pytest.raises(ValueError, match="num_steps must be at least 1"):
        first_visits(make, EZGreedy(4, 1.0), 0)
    with pytest.raises(ValueError, match="greedy must be given when epsilon is below 1"):
        first_visits(make, EZGreedy(4, 0.5), 5)
    used = EZGreedy(4, 1.0)
    used(np.zeros(1, dtype=np.int64))
    with pytest.raises(ValueError, match="explore must be fresh"):
        first_visits(make, used, 5)
