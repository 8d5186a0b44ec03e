import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ezgreedy.agents.features import FourierBasis, evaluate

RANGES = [(-2.0, 2.0), (-1.0, 1.0), (0.0, 3.0), (-10.0, 10.0), (-20.0, 20.0)]


def naive_features(basis, state):
    """Each feature from its definition."""
    shares = [
        min(max((value - low) / (high - low), 0.0), 1.0)
        for value, (low, high) in zip(state, basis.ranges, strict=True)
    ]
    return [math.cos(math.pi * sum(c * x for c, x in zip(row, shares, strict=True)))
            for row in basis.coefficients]  # fmt: skip


@pytest.mark.parametrize(
    ("order", "dimensions", "coupling"),
    [(5, 2, None), (3, 1, None), (0, 2, None), (3, 4, None), (7, 5, 2), (2, 5, 3), (4, 3, 0)],
)
@settings(deadline=None)  # the first example compiles
@given(state=st.lists(st.floats(-30.0, 30.0), min_size=5, max_size=5))
def test_features_equal_their_definition(order, dimensions, coupling, state):
    basis = FourierBasis(order, RANGES[:dimensions], coupling)
    features = basis(state[:dimensions])
    assert features.shape == (basis.num_features,)
    np.testing.assert_allclose(features, naive_features(basis, state[:dimensions]), atol=1e-12)


def test_single_precision_features_of_the_full_basis_are_those_of_the_definition():
    basis = FourierBasis(7, RANGES)
    state = np.array([0.3, -0.2, 1.0, 4.0, -7.0])
    features = np.zeros((2, basis.num_features), dtype=np.float32)
    evaluate(basis.evaluator(np.float32), state, features, 1)
    np.testing.assert_allclose(features[1], naive_features(basis, state), atol=2e-6)
    assert not features[0].any()


@pytest.mark.parametrize(("coupling", "expected"), [(None, 8**5), (1, 36), (2, 526), (3, 3956)])
def test_order_7_in_five_dimensions_has_the_known_numbers_of_features(coupling, expected):
    basis = FourierBasis(7, RANGES, coupling)
    assert basis.num_features == len(np.unique(basis.coefficients, axis=0)) == expected


def test_coefficients_are_all_vectors_with_few_enough_entries():
    every = itertools.product(range(4), repeat=3)
    wanted = [c for c in every if sum(entry > 0 for entry in c) <= 2]
    basis = FourierBasis(3, RANGES[:3], 2)
    assert sorted(map(tuple, basis.coefficients.tolist())) == sorted(wanted)


def test_states_outside_the_ranges_look_like_those_on_the_edge():
    basis = FourierBasis(5, RANGES[:2])
    np.testing.assert_array_equal(basis([9.0, -7.0]), basis([2.0, -1.0]))


def test_scales_are_reciprocal_norms():
    basis = FourierBasis(5, RANGES[:2])
    norms = np.linalg.norm(basis.coefficients, axis=1)
    assert basis.scales[norms == 0.0].tolist() == [1.0]
    np.testing.assert_allclose((basis.scales * norms)[norms > 0.0], 1.0)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"order": -1}, "order must be at least 0; got -1"),
        ({"order": 50}, "order must give at most 4194304 features"),
        ({"ranges": []}, "ranges must hold a"),
        ({"ranges": [(0.0, 1.0), (1.0, 1.0)]}, r"ranges\[1\] must have low < high"),
        ({"ranges": [(0.0, math.inf)]}, r"ranges\[0\] must"),
        ({"ranges": [3.0]}, r"ranges\[0\] must be a pair"),
        ({"coupling": 6}, "coupling must be at most 5; got 6"),
    ],
)
def test_bad_bases_are_refused(arguments, message):
    with pytest.raises(ValueError, match=message):
        FourierBasis(**{"order": 2, "ranges": RANGES, **arguments})


def test_states_of_another_shape_are_refused():
    with pytest.raises(ValueError, match=r"state must have shape \(2,\); got \(3,\)"):
        FourierBasis(2, RANGES[:2])([0.0, 0.0, 0.0])
