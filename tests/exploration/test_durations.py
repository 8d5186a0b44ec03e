import math
import pickle

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats
from scipy.special import zeta as riemann_zeta

from ezgreedy import (
    Fixed,
    Geometric,
    PlusOne,
    Uniform,
    Zeta,
    exploratory_share,
    matched_epsilon,
)
from support.statistics import assert_follows

LAWS = [
    Zeta(),
    Zeta(mu=2.0, cap=100),
    Zeta(mu=2.0, cap=100, tail="clip"),
    Zeta(mu=1.0, cap=50),
    Zeta(mu=0.5, cap=7),
    Zeta(mu=30.0, cap=1000),
    Geometric(0.9, cap=200),
    Geometric(0.016),  # its tail vanishes before the cap, and its rounded sum falls short of 1
    Uniform(17),
    Fixed(1),
    Fixed(5),
    PlusOne(Zeta(cap=10)),
]
each_law = pytest.mark.parametrize("law", LAWS, ids=repr)


def draws(law, num_draws, seed=0):
    return law.quantile(np.random.default_rng(seed).random(num_draws))


# Laws that hold for every member of the family.


@each_law
def test_probabilities_sum_to_one_within_the_support(law):
    n = np.arange(-3, law.cap + 10)
    assert math.isclose(law.pmf(n).sum(), 1.0, rel_tol=1e-12)
    assert not law.pmf(n)[(n < 1) | (n > law.cap)].any()


@each_law
def test_cdf_is_the_running_sum_of_the_pmf(law):
    n = np.arange(-2, law.cap + 3)
    np.testing.assert_allclose(law.cdf(n), np.cumsum(law.pmf(n)), atol=1e-12)
    assert law.cdf(law.cap) == 1.0
    assert law.cdf(0) == 0.0


@each_law
def test_mean_is_the_sum_of_n_times_pmf(law):
    n = np.arange(1, law.cap + 1)
    assert math.isclose(law.mean, float((n * law.pmf(n)).sum()), rel_tol=1e-12)


@each_law
@given(u=st.floats(0.0, 1.0, exclude_max=True))
def test_quantile_is_the_smallest_n_whose_cdf_exceeds_u(law, u):
    n = int(law.quantile(np.array([u]))[0])
    assert law.cdf(n) > u
    assert law.cdf(n - 1) <= u


@each_law
def test_quantile_at_every_step_of_the_cdf(law):
    steps = law.inverse.cumulative[:-1]
    n = np.arange(1, law.cap)
    below, above = np.nextafter(steps, 0.0), steps
    for u in (below[below >= 0], above[above < 1]):
        expected = np.searchsorted(law.inverse.cumulative, u, side="right") + 1
        np.testing.assert_array_equal(law.quantile(u), expected)
    assert len(n) == len(steps)


@each_law
def test_extreme_uniforms_stay_within_the_support(law):
    u = np.array([0.0, 1.0 - 2.0**-53])
    assert (law.pmf(law.quantile(u)) > 0).all()


@each_law
def test_equal_laws_are_equal_and_hashable(law):
    assert law == eval(repr(law))
    assert len({law, eval(repr(law))}) == 1


# Analytic truth.


@each_law
def test_a_pickled_law_leaves_its_tables_behind(law):
    _ = law.mean, law.inverse
    pickled = pickle.dumps(law)
    assert len(pickled) < 400
    restored = pickle.loads(pickled)
    assert restored == law
    np.testing.assert_array_equal(restored.inverse.cumulative, law.inverse.cumulative)


def test_zeta_is_the_normalised_power_law():
    law = Zeta(mu=2.0, cap=100)
    n = np.arange(1, 101)
    np.testing.assert_allclose(law.pmf(n), n**-2.0 / (n**-2.0).sum(), rtol=1e-13)


def test_clipped_zeta_moves_the_tail_to_the_cap():
    for mu, cap in ((2.0, 100), (1.5, 10_000), (3.0, 1), (1.1, 5)):
        law = Zeta(mu, cap, tail="clip")
        n = np.arange(1, cap)
        np.testing.assert_allclose(law.pmf(n), n**-mu / riemann_zeta(mu), rtol=1e-10)
        tail = riemann_zeta(mu, cap) / riemann_zeta(mu)
        assert math.isclose(float(law.pmf(cap)), tail, rel_tol=1e-10)


@pytest.mark.parametrize(
    ("law", "mean"),
    [
        (Zeta(cap=100), 3.173),
        (Zeta(cap=100, tail="clip"), 3.758),
        (Zeta(cap=10_000), 5.951),
        (Zeta(cap=10_000, tail="clip"), 6.558),
    ],
)
def test_mean_of_the_capped_zeta_laws(law, mean):
    assert round(law.mean, 3) == mean


def test_geometric_agrees_with_scipy_far_from_the_cap():
    n = np.arange(1, 60)
    expected = stats.geom(1 - 0.8).pmf(n)
    np.testing.assert_allclose(Geometric(0.8, cap=2000).pmf(n), expected, rtol=1e-12)


# Degenerate cases are equalities.


def same_law(left, right):
    n = np.arange(0, max(left.cap, right.cap) + 1)
    np.testing.assert_allclose(left.pmf(n), right.pmf(n), atol=1e-15)


def test_mu_zero_is_uniform():
    same_law(Zeta(mu=0.0, cap=20), Uniform(20))


def test_decay_one_is_uniform_and_decay_zero_is_one():
    same_law(Geometric(1.0, cap=20), Uniform(20))
    same_law(Geometric(0.0, cap=20), Fixed(1))


def test_cap_one_is_one():
    for law in (Zeta(cap=1), Zeta(cap=1, tail="clip"), Uniform(1), Geometric(0.7, cap=1)):
        same_law(law, Fixed(1))


def test_plus_one_shifts_every_duration_by_one():
    base = Zeta(cap=30)
    u = np.random.default_rng(0).random(1000)
    np.testing.assert_array_equal(PlusOne(base).quantile(u), base.quantile(u) + 1)
    assert math.isclose(PlusOne(base).mean, base.mean + 1)


# Sampling, against named wrong samplers.


def shifted(law):
    return np.concatenate([[0.0, 0.0], law.pmf(np.arange(1, law.cap + 1))])


def table(law):
    return law.pmf(np.arange(0, law.cap + 1))


def reciprocal_of_uniform(cap):
    """⌊1/u⌋, capped: often called zeta, but P(n) = 1/n − 1/(n+1)."""
    n = np.arange(1, cap + 1)
    mass = 1.0 / n - 1.0 / (n + 1)
    return np.concatenate([[0.0], mass / mass.sum()])


@pytest.mark.parametrize(("cap", "num_draws"), [(100, 100_000), (10_000, 1_000_000)])
def test_zeta_samples_follow_the_truncated_law(cap, num_draws):
    law = Zeta(2.0, cap)
    assert_follows(
        draws(law, num_draws),
        table(law),
        rejects={
            "off by one": shifted(law),
            "clip for truncate": table(Zeta(2.0, cap, tail="clip")),
            "mu = 1.9": table(Zeta(1.9, cap)),
            "floor(1/u)": reciprocal_of_uniform(cap),
            "a cap of 10": table(Zeta(2.0, 10)),
        },
    )


@pytest.mark.parametrize(("cap", "num_draws"), [(100, 100_000), (10_000, 8_000_000)])
def test_clipped_zeta_samples_follow_the_clipped_law(cap, num_draws):
    law = Zeta(2.0, cap, tail="clip")
    assert_follows(draws(law, num_draws), table(law), {"truncate": table(Zeta(2.0, cap))})


@pytest.mark.parametrize("law", [Geometric(0.9, 200), Uniform(17), Zeta(0.5, 40)], ids=repr)
def test_other_samples_follow_their_law(law):
    assert_follows(draws(law, 100_000), table(law), {"off by one": shifted(law)})


# How much is explored.


@pytest.mark.parametrize(("epsilon", "share"), [(0.01, 0.057), (0.1, 0.398), (0.4, 0.799)])
def test_exploratory_share_of_the_paper_settings(epsilon, share):
    assert round(exploratory_share(epsilon, Zeta()), 3) == share


@given(share=st.floats(0.0, 1.0))
def test_matched_epsilon_inverts_exploratory_share(share):
    for law in (Zeta(), Fixed(1), Uniform(9)):
        assert math.isclose(
            exploratory_share(matched_epsilon(share, law), law), share, abs_tol=1e-12
        )


def test_unit_durations_explore_a_share_of_epsilon():
    assert exploratory_share(0.3, Fixed(1)) == 0.3


# Refusals.


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Zeta(mu=-0.1), r"mu must be finite and be at least 0; got -0\.1"),
        (lambda: Zeta(mu=math.nan), "mu must be finite"),
        (lambda: Zeta(mu=math.inf), "mu must be finite"),
        (lambda: Zeta(cap=0), "cap must be at least 1; got 0"),
        (lambda: Zeta(cap=10**9), "cap must be at most"),
        (lambda: Zeta(tail="wrap"), "tail must be one of 'truncate', 'clip'; got 'wrap'"),
        (lambda: Zeta(mu=1.0, tail="clip"), r"mu must exceed 1 when tail is 'clip'; got 1\.0"),
        (lambda: Geometric(1.5), r"decay must lie in \[0, 1\]; got 1\.5"),
        (lambda: Uniform(-4), "cap must be at least 1; got -4"),
        (lambda: Fixed(0), "n must be at least 1; got 0"),
        (lambda: exploratory_share(1.5, Zeta()), r"epsilon must lie in \[0, 1\]; got 1\.5"),
        (lambda: matched_epsilon(-1, Zeta()), r"share must lie in \[0, 1\]; got -1"),
    ],
)
def test_values_out_of_range_are_refused_by_name(make, message):
    with pytest.raises(ValueError, match=message):
        make()


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Zeta(cap=100.0), r"cap must be an int; got float 100\.0"),
        (lambda: Zeta(cap=True), "cap must be an int; got bool True"),
        (lambda: Zeta(mu="2"), "mu must be a number; got str '2'"),
        (lambda: Fixed(2.5), "n must be an int"),
        (lambda: PlusOne(3), "base must be a duration law"),
        (lambda: Zeta().pmf(1.5), "n must hold ints"),
        (lambda: Zeta().cdf([1.0]), "n must hold ints"),
    ],
)
def test_wrong_types_are_refused_by_name(make, message):
    with pytest.raises(TypeError, match=message):
        make()
