import math
from itertools import product

import numpy as np
import pytest

from ezgreedy import FiniteMDP, Fixed, Geometric, PlusOne, Uniform, Zeta
from ezgreedy.analysis.exact import (
    episode_law,
    expected_first_visit,
    expected_first_visits,
    visit_probability,
)
from ezgreedy.analysis.finite_walks import tabular_first_visits
from ezgreedy.analysis.process import ExplorationProcess
from support.small_mdps import corridor, deep_sea, deterministic, random_mdp, ring, room


class AllUnknowns:
    """The plain way: one unknown for every (state, option action, plays remaining).

    Unknowns are those before a play; action and remaining 0 stand for deciding.
    """

    def __init__(self, process: ExplorationProcess, target: int) -> None:
        self.process, self.mdp, self.target = process, process.mdp, target
        cap, actions = process.durations.cap, range(self.mdp.num_actions)
        options = [(0, 0)] + [(a, left) for a in actions for left in range(1, cap + 1)]
        keys = [(state, *option) for state in range(self.mdp.num_states) for option in options]
        self.number = {key: row for row, key in enumerate(keys)}
        self.system, self.steps = np.eye(len(keys)), np.ones(len(keys))
        for (state, action, left), row in self.number.items():
            if state == target or self.mdp.ends[state]:
                self.steps[row] = 0.0
            elif left:
                self.play(row, (state, action), left - 1, 1.0)
            else:
                self.decide(row, state)

    def decide(self, row, state):
        epsilon, law = self.process.epsilon, self.process.durations
        self.play(row, (state, self.process.greedy_actions[state]), 0, 1.0 - epsilon)
        for action, n in product(range(self.mdp.num_actions), range(1, law.cap + 1)):
            weight = epsilon / self.mdp.num_actions * float(law.pmf(n))
            self.play(row, (state, action), n - 1, weight)

    def play(self, row, pair, left, weight):
        for following in np.flatnonzero(self.mdp.transitions[pair]):
            chance = weight * self.mdp.transitions[pair][following]
            if following == self.target or not self.mdp.ends[following]:
                self.lead(row, (following, pair[1], left), chance)
                continue
            left_over = left if self.process.carries_over_episodes else 0
            for first in np.flatnonzero(self.mdp.start):
                self.lead(row, (first, pair[1], left_over), chance * self.mdp.start[first])

    def lead(self, row, place, chance):
        state, action, left = place
        if state != self.target:
            self.system[row, self.number[state, action if left else 0, left]] -= chance

    def expected_first_visit(self):
        times = np.linalg.solve(self.system, self.steps)
        deciding = [times[self.number[state, 0, 0]] for state in range(self.mdp.num_states)]
        return float(self.mdp.start @ deciding)


LAWS = [Fixed(1), Fixed(3), Zeta(2.0, 6), Geometric(0.5, 5), Uniform(4), PlusOne(Zeta(1.5, 3))]
MDPS = {
    "corridor": corridor(5),
    "ring": ring(5),
    "room": room(3, (0, 1)),
    "deep sea": deep_sea(3),
    "random": random_mdp(0),
    "random with two ends": random_mdp(1, num_states=6, num_actions=3, ends=2),
}


@pytest.mark.parametrize("carries_over", [False, True])
@pytest.mark.parametrize("law", LAWS, ids=str)
@pytest.mark.parametrize("name", MDPS)
def test_unknowns_at_decisions_alone_equal_unknowns_for_every_remaining_play(
    name, law, carries_over
):
    mdp = MDPS[name]
    greedy = np.arange(mdp.num_states) % mdp.num_actions
    for epsilon in (1.0, 0.3):
        process = ExplorationProcess(mdp, epsilon, law, greedy, carries_over)
        for target in (1, mdp.num_states // 2, mdp.num_states - 1):
            exact = expected_first_visit(process, target)
            if math.isinf(exact):
                continue  # the plain system is singular there; see the test of infinities
            assert exact == pytest.approx(
                AllUnknowns(process, target).expected_first_visit(), rel=1e-9
            )


def test_hitting_times_of_the_open_room_are_those_of_the_study():
    # The study's prototype: 2559.3 and 2049.0.
    mdp = room(23, (1, 11))
    target = 20 * 23 + 20
    eps = expected_first_visit(ExplorationProcess(mdp, durations=Fixed(1)), target)
    ez = expected_first_visit(ExplorationProcess(mdp, durations=Zeta(2.0, 10_000)), target)
    assert eps == pytest.approx(2559.3, abs=0.05)
    assert ez == pytest.approx(2049.0, abs=0.05)


def test_deep_seas_corner_is_a_matter_of_exponential_or_of_modest_luck():
    corner = 19 * 20 + 19
    eps = ExplorationProcess(deep_sea(20), durations=Fixed(1))
    ez = ExplorationProcess(deep_sea(20))
    assert visit_probability(eps, corner) == pytest.approx(2.0**-19, rel=1e-12)
    assert visit_probability(ez, corner) == pytest.approx(0.04112, abs=5e-6)
    # All episodes last 20 steps, the successful one 19 up to the corner.
    for process in (eps, ez):
        expected = 20.0 / visit_probability(process, corner) - 1.0
        assert expected_first_visit(process, corner) == pytest.approx(expected, rel=1e-10)


def test_tiny_probabilities_keep_their_digits():
    corner = 49 * 50 + 49
    process = ExplorationProcess(deep_sea(50), durations=Fixed(1))
    assert expected_first_visit(process, corner) == pytest.approx(50 * 2.0**49 - 1, rel=1e-12)


def test_a_random_walk_between_walls_takes_quadratically_many_steps():
    # From a reflecting wall, k·(k + 1) steps to a distance k for a walk that waits at the wall.
    process = ExplorationProcess(corridor(9), durations=Fixed(1))
    expected = [k * (k + 1) for k in range(9)]
    np.testing.assert_allclose(expected_first_visits(process), expected, rtol=1e-12)


def test_greedy_walks_need_no_exploration():
    process = ExplorationProcess(corridor(9), 0.0, Zeta(), np.ones(9, dtype=np.int64))
    np.testing.assert_array_equal(expected_first_visits(process), np.arange(9))


def test_unit_durations_under_any_name_are_epsilon_greedy():
    mdp, greedy = random_mdp(3), np.zeros(5, dtype=np.int64)
    laws = (Fixed(1), Zeta(2.0, 1), Geometric(0.0, 50), Uniform(1))
    times = [expected_first_visits(ExplorationProcess(mdp, 0.4, law, greedy)) for law in laws]
    for other in times[1:]:
        np.testing.assert_allclose(other, times[0], rtol=1e-12)


def test_a_law_capped_far_beyond_the_walls_costs_no_more_than_the_walls():
    # Whatever outlasts the corridor stands at its end; only the time spent there differs.
    short, long = (ExplorationProcess(corridor(4), durations=Uniform(n)) for n in (4, 100_000))
    assert expected_first_visit(short, 3) < expected_first_visit(long, 3) < math.inf


def test_the_default_cap_is_feasible_where_transitions_are_random():
    slippery = 0.8 * ring(24).transitions + 0.2 * ring(24).transitions[:, ::-1]
    process = ExplorationProcess(FiniteMDP(slippery, np.eye(24)[0]))
    exact = expected_first_visit(process, 12)
    sample = tabular_first_visits(process, 3000, 20_000).first[:, 12]
    assert exact == pytest.approx(sample.mean(), abs=5 * sample.std() / np.sqrt(len(sample)))


def test_what_may_never_be_visited_takes_for_ever():
    # 0 → 1 (a trap) or 2 (the end); 3 is unreachable.
    mdp = deterministic([[1, 2], [1, 1], [2, 2], [3, 3]], 0, np.array([False, False, True, False]))
    process = ExplorationProcess(mdp, durations=Zeta(2.0, 10))
    np.testing.assert_array_equal(expected_first_visits(process), [0.0, 2.0, math.inf, math.inf])
    assert visit_probability(process, 2) == pytest.approx(0.5)
    assert visit_probability(process, 3) == 0.0


def test_visits_and_ends_of_an_episode_exhaust_what_can_happen():
    law = episode_law(ExplorationProcess(deep_sea(6)), 5 * 6 + 3)
    np.testing.assert_allclose(law.visits + law.ends, 1.0, rtol=1e-12)


def test_a_terminal_target_is_visited_when_it_is_entered():
    mdp = deterministic([[1, 0], [1, 1]], 0, np.array([False, True]))
    assert expected_first_visit(ExplorationProcess(mdp, durations=Fixed(1)), 1) == pytest.approx(2)


@pytest.mark.parametrize("carries_over", [False, True])
@pytest.mark.parametrize("name", ["room", "deep sea", "random", "random with two ends"])
def test_simulated_first_visits_have_the_exact_means(name, carries_over):
    # 20,000 trials; five standard errors, so that 60 comparisons misfire once in 30,000 seeds.
    mdp = MDPS[name]
    greedy = np.arange(mdp.num_states) % mdp.num_actions
    process = ExplorationProcess(mdp, 0.6, Zeta(2.0, 20), greedy, carries_over)
    exact = expected_first_visits(process)
    sampled = tabular_first_visits(process, 20_000, 1500, seed=11)
    reached = np.flatnonzero(np.isfinite(exact))
    for state in reached:
        times = sampled.first[:, state]
        assert (times < 1500).all()
        assert abs(times.mean() - exact[state]) <= 5 * times.std() / np.sqrt(len(times)) + 1e-9
    assert (sampled.visits[:, np.isinf(exact)] == 0).all()


@pytest.mark.parametrize("target", [-1, 5, 1.0, True])
def test_targets_are_states(target):
    with pytest.raises((ValueError, TypeError), match="target must"):
        expected_first_visit(ExplorationProcess(corridor(5)), target)


def test_greedy_steps_need_a_greedy_policy():
    with pytest.raises(ValueError, match="greedy must be given when epsilon is below 1"):
        ExplorationProcess(corridor(5), epsilon=0.5)
    with pytest.raises(ValueError, match=r"greedy must lie in \[0, 2\)"):
        ExplorationProcess(corridor(3), 0.5, Zeta(), np.array([0, 1, 2]))
    with pytest.raises(TypeError, match="durations must be a duration law"):
        ExplorationProcess(corridor(3), durations=3)
