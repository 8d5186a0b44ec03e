"""Probabilities of sequences add up, match a naive sum over options, and match what is played."""

from itertools import product

import numpy as np
import pytest

from ezgreedy import EpsilonGreedy, EZGreedy, Fixed, Geometric, Uniform, Zeta
from ezgreedy.analysis.action_sequences import sequence_probability

LAWS = [Fixed(1), Fixed(3), Zeta(), Zeta(1.5, 4), Geometric(0.7), Uniform(3)]


def naive(actions, num_actions, epsilon, law):
    """Every list of durations whose sum reaches the end, one by one."""
    num_steps, total = len(actions), 0.0
    durations = [*range(1, num_steps), "rest"]

    def tail(n):
        return 1.0 - sum(float(law.pmf(m)) for m in range(1, n))

    def extend(first, chance):
        nonlocal total
        for n in durations:
            last = num_steps if n == "rest" else first + n
            if n != "rest" and last >= num_steps:
                continue
            if len(set(actions[first:last])) != 1:
                continue
            weight = tail(num_steps - first) if n == "rest" else float(law.pmf(n))
            weight *= chance * epsilon / num_actions
            if last == num_steps:
                total += weight
            else:
                extend(last, weight)

    extend(0, 1.0)
    return total


@pytest.mark.parametrize("law", LAWS, ids=str)
@pytest.mark.parametrize("epsilon", [0.1, 1.0])
def test_it_is_the_sum_over_all_ways_to_cut_the_sequence_into_options(law, epsilon):
    for actions in product(range(2), repeat=6):
        assert sequence_probability(actions, 2, epsilon, law) == pytest.approx(
            naive(actions, 2, epsilon, law), rel=1e-12, abs=1e-18
        )


@pytest.mark.parametrize("law", LAWS, ids=str)
def test_under_pure_exploration_all_sequences_together_are_certain(law):
    for num_actions, num_steps in ((2, 9), (3, 5), (4, 4)):
        chances = [
            sequence_probability(actions, num_actions, 1.0, law)
            for actions in product(range(num_actions), repeat=num_steps)
        ]
        assert sum(chances) == pytest.approx(1.0, rel=1e-12)


def test_with_epsilon_greedy_every_sequence_has_the_paper_s_probability():
    for epsilon in (0.05, 0.5, 1.0):
        for actions in product(range(4), repeat=4):
            chance = sequence_probability(actions, 4, epsilon, Fixed(1))
            assert chance == pytest.approx((epsilon / 4) ** 4, rel=1e-12)


def test_repeating_one_action_is_at_least_as_likely_as_one_long_option():
    law = Zeta()
    for num_steps in (2, 10, 100):
        lasting = float(law.pmf(np.arange(num_steps, law.cap + 1)).sum())
        chance = sequence_probability([1] * num_steps, 2, 1.0, law)
        assert lasting / 2 < chance < 2 * lasting


def test_dives_of_deep_sea_have_the_probability_that_is_known_of_them():
    """Twenty rows need nineteen moves to the right at ε = 1 to see the corner (0.04112)."""
    assert sequence_probability([1] * 19, 2, 1.0, Zeta()) == pytest.approx(0.04112, abs=5e-6)


@pytest.mark.parametrize("epsilon", [0.4, 1.0])
def test_the_policies_play_sequences_that_often(epsilon):
    """Frequencies of all sequences of four steps, at five standard errors."""
    lanes, num_actions, num_steps = 40_000, 2, 4
    for explore, law in (
        (EZGreedy(num_actions + 1, epsilon, Zeta(), lanes, seed=3), Zeta()),
        (EpsilonGreedy(num_actions + 1, epsilon, lanes, seed=3), Fixed(1)),
    ):
        greedy = np.full(lanes, num_actions)
        tape, exploring = [], np.ones(lanes, dtype=bool)
        for _ in range(num_steps):
            tape.append(explore(greedy))
            exploring &= explore.exploring
        for actions in product(range(num_actions), repeat=num_steps):
            played = np.equal(np.array(tape).T, actions).all(axis=1) & exploring
            chance = sequence_probability(actions, num_actions + 1, epsilon, law)
            error = np.sqrt(chance * (1 - chance) / lanes)
            assert abs(played.mean() - chance) < 5 * error


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (([], 2, 0.1, Zeta()), "actions must hold at least one action"),
        (([2], 2, 0.1, Zeta()), "actions must be at most 1; got 2"),
        (([0], 2, 1.5, Zeta()), r"epsilon must lie in \[0, 1\]; got 1.5"),
    ],
)
def test_bad_arguments_are_refused_by_name(arguments, message):
    with pytest.raises(ValueError, match=message):
        sequence_probability(*arguments)
