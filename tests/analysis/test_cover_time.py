import math
from itertools import product

import numpy as np
import pytest

from ezgreedy import Fixed, Zeta
from ezgreedy.analysis.cover_time import CoverTimes, cover_times, exact_cover_times, pairs_to_visit
from ezgreedy.analysis.process import ExplorationProcess
from support.plain_walk import PlainWalk, processes
from support.small_mdps import corridor, deterministic, random_mdp, room


@pytest.mark.parametrize("name", processes())
def test_compiled_cover_times_equal_a_plain_loop_over_the_cores_policy(name):
    process = processes()[name]
    horizon = 400
    compiled = cover_times(process, 5, horizon, seed=3).times
    for run in range(5):
        walk, missing = (
            PlainWalk(process, 3, run),
            set(map(tuple, np.argwhere(pairs_to_visit(process)))),
        )
        while missing and walk.step_count < horizon:
            state, action, _ = walk.step()
            missing.discard((state, action))
        assert compiled[run] == (horizon + 1 if missing else walk.step_count)


@pytest.mark.parametrize("law", [Fixed(1), Zeta(2.0, 10_000), Zeta(1.0, 7)], ids=str)
@pytest.mark.parametrize("kind", ["corridor", "greedy corridor", "chance", "carried over"])
def test_simulated_and_exact_distributions_agree(kind, law):
    # 100,000 runs: a gap of .01 has probability 2·exp(−20) (Dvoretzky, Kiefer, Wolfowitz).
    right = np.ones(3, dtype=np.int64)
    process = {
        "corridor": ExplorationProcess(corridor(3), durations=law),
        "greedy corridor": ExplorationProcess(corridor(3), 0.4, law, right),
        "chance": ExplorationProcess(random_mdp(5, num_states=4), 1.0, law),
        "carried over": ExplorationProcess(random_mdp(5, num_states=4), 1.0, law, None, True),
    }[kind]
    exact = exact_cover_times(process, 80)
    sampled = cover_times(process, 100_000, 80, seed=7)
    assert np.abs(exact.cdf - sampled.cdf).max() < 0.01


@pytest.mark.parametrize("law", [Fixed(1), Fixed(2), Zeta(2.0, 3)], ids=str)
def test_the_exact_distribution_is_what_enumeration_gives(law):
    # Every sequence of four options (action, duration) of a corridor of two, cut at four steps.
    process = ExplorationProcess(corridor(2), durations=law)
    horizon = 4
    cdf = np.zeros(horizon + 1)
    options = [(a, n) for a in range(2) for n in range(1, law.cap + 1)]
    for drawn in product(options, repeat=horizon):
        weight = math.prod(float(law.pmf(n)) / 2 for _, n in drawn)
        actions = [a for a, n in drawn for _ in range(n)][:horizon]
        state, visited = 0, set()
        for step, action in enumerate(actions, start=1):
            visited.add((state, action))
            state = action  # left leads to 0, right to 1
            if len(visited) == 4:
                cdf[step:] += weight
                break
    np.testing.assert_allclose(exact_cover_times(process, horizon).cdf, cdf, atol=1e-14)


def test_one_state_with_two_actions_is_a_coin_tossed_until_both_sides_came():
    process = ExplorationProcess(deterministic([[0, 0]], 0), durations=Fixed(1))
    exact = exact_cover_times(process, 10)
    np.testing.assert_allclose(exact.cdf[1:], 1.0 - 2.0 ** -np.arange(10), rtol=1e-13)
    assert exact.cdf[0] == 0.0
    assert exact.median == 2


def test_an_option_beyond_the_horizon_is_as_good_as_endless():
    far, farther = (
        exact_cover_times(ExplorationProcess(corridor(2), durations=Zeta(0.5, cap)), 12).cdf
        for cap in (10_000, 10_001)
    )
    assert np.abs(far - farther).max() < 1e-4
    longer = exact_cover_times(ExplorationProcess(corridor(2), durations=Zeta(0.5, 10_000)), 30)
    np.testing.assert_allclose(longer.cdf[:13], far, atol=1e-14)


def test_distributions_are_distributions():
    cdf = exact_cover_times(ExplorationProcess(corridor(3)), 60).cdf
    assert cdf[0] == 0.0
    assert (np.diff(cdf) >= -1e-15).all()
    assert cdf[-1] <= 1.0


def test_pairs_of_unreachable_and_terminal_states_need_no_visit():
    mdp = deterministic([[1, 2], [0, 2], [2, 2], [0, 0]], 0, np.array([False, False, True, False]))
    np.testing.assert_array_equal(
        pairs_to_visit(ExplorationProcess(mdp)).any(axis=1), [True, True, False, False]
    )


def test_the_median_is_the_first_step_with_probability_one_half():
    assert CoverTimes(np.array([0.0, 0.2, 0.5, 0.9])).median == 2
    assert CoverTimes(np.array([0.0, 0.2, 0.49])).median == math.inf
    assert CoverTimes(np.array([0.0, 0.2, 0.5, 0.9])).quantile(0.9) == 3


def test_options_help_in_corridors_and_hurt_in_open_rooms():
    # The study: about 7 times sooner at 80 states, about 3 times later in rooms.
    def ratio(mdp):
        eps, ez = (
            cover_times(ExplorationProcess(mdp, durations=law), 1000, 200_000).median
            for law in (Fixed(1), Zeta())
        )
        return ez / eps

    assert 1 / 8 < ratio(corridor(80)) < 1 / 6
    assert 2.5 < ratio(room(10, (1, 5))) < 4.0


def test_an_exact_distribution_of_too_much_is_refused():
    with pytest.raises(ValueError, match="simulate it instead"):
        exact_cover_times(ExplorationProcess(room(4, (0, 0))), 10)
    with pytest.raises(ValueError, match="horizon must be at least 1"):
        exact_cover_times(ExplorationProcess(corridor(2)), 0)
    with pytest.raises(ValueError, match="runs must be at least 1"):
        cover_times(ExplorationProcess(corridor(2)), 0, 10)
