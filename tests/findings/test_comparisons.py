"""Many comparisons: equal to SciPy's tests, and rarely wrong where nothing differs."""

import numpy as np
import pytest
from scipy import stats

from ezgreedy.findings.comparisons import (
    LARGEST_FALSE_SHARE,
    SignTest,
    adjusted,
    decided,
    difference_p,
    sign_test,
    welch_p,
)


def test_adjusted_p_values_are_benjamini_and_hochberg_s():
    raw = np.random.default_rng(0).random(20) ** 3
    found = adjusted({place: float(p) for place, p in enumerate(raw)})
    np.testing.assert_allclose(list(found.values()), stats.false_discovery_control(raw))
    assert adjusted({}) == {}
    with pytest.raises(ValueError, match=r"p-values must lie in \[0, 1\]"):
        adjusted({"a": 1.5})


def test_a_sign_test_is_binomial_and_leaves_ties_out():
    found = sign_test([1.0, 2.0, 0.0, -1.0, 5.0, 3.0, 0.1, 9.0])
    assert found[:2] == (6, 1)
    assert found.p == pytest.approx(stats.binomtest(6, 7).pvalue)
    assert sign_test([0.0, 0.0]) == SignTest(0, 0, 1.0)


def test_the_side_of_a_sign_test_follows_its_p_value():
    assert sign_test([1.0] * 10).side() == "holds"
    assert sign_test([-1.0] * 10).side() == "contradicted"
    assert sign_test([1.0] * 4).side() == "undecided"
    assert sign_test([1.0] * 10).side(p=0.2) == "undecided", "once it is adjusted"


def test_a_difference_has_the_p_value_of_student_s_test():
    samples = np.random.default_rng(1).normal(1.0, size=6)
    found = difference_p(float(samples.mean()), samples - samples.mean())
    assert found == pytest.approx(stats.ttest_1samp(samples, 0.0).pvalue)


def test_without_spread_nothing_is_more_certain_than_permutations_allow():
    assert difference_p(1.0, np.zeros(3)) == 0.25
    assert difference_p(0.0, np.zeros(3)) == difference_p(1.0, np.zeros(1)) == 1.0
    assert welch_p([1.0] * 3, [0.0] * 3) == pytest.approx(0.1)
    assert welch_p([1.0] * 3, [1.0] * 3) == 1.0


def test_independent_samples_have_welch_s_p_value():
    above, below = np.random.default_rng(2).normal([[1.0], [0.0]], size=(2, 5))
    assert welch_p(above, below) == stats.ttest_ind(above, below, equal_var=False).pvalue


def test_where_nothing_differs_a_family_of_57_seldom_has_a_decided_member():
    """At most q of all such families, by Benjamini and Hochberg; 200 families, 3 σ are 0.064.

    Without the correction nearly every family has one, which this test would reject.
    """
    generator = np.random.default_rng(3)
    num_families = 200
    hits = raw_hits = 0
    for _ in range(num_families):
        samples = generator.normal(size=(57, 5))
        means = samples.mean(axis=1)
        p_values = stats.ttest_1samp(samples, 0.0, axis=1).pvalue
        values = dict(enumerate(means.tolist()))
        found = decided(values, dict(enumerate(p_values.tolist())))
        hits += any(found.values())
        raw_hits += bool((p_values < 0.05).any())
    assert hits / num_families < LARGEST_FALSE_SHARE + 0.064
    assert raw_hits / num_families > 0.9


def test_decided_differences_keep_their_sign():
    assert decided({"a": 2.0, "b": -3.0, "c": 1.0}, {"a": 0.001, "b": 0.002, "c": 0.9}) == {
        "a": 1,
        "b": -1,
        "c": 0,
    }
