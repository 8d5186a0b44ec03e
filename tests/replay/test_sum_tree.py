"""The sum tree against a plain array and its cumulative sum."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ezgreedy.replay.sum_tree import SumTree

weight = st.one_of(
    st.just(0.0), st.integers(0, 8).map(float), st.floats(0.0, 1e6, allow_subnormal=False)
)


@st.composite
def histories(draw):
    """A capacity, and batches of writes into it, with duplicates."""
    capacity = draw(st.integers(1, 21))
    write = st.tuples(st.integers(0, capacity - 1), weight)
    return capacity, draw(st.lists(st.lists(write, min_size=1, max_size=12), max_size=8))


@settings(max_examples=150, deadline=None)
@given(histories())
def test_tree_equals_an_array(history):
    capacity, batches = history
    tree, plain = SumTree(capacity), np.zeros(capacity)
    for batch in batches:
        tree.set(np.array([i for i, _ in batch]), np.array([w for _, w in batch]))
        for index, value in batch:  # one by one: the last write stays
            plain[index] = value
        tree.check_valid()
        np.testing.assert_array_equal(tree.leaves, plain)
        np.testing.assert_array_equal(tree.get(np.arange(capacity)), plain)
        assert tree.total == pytest.approx(plain.sum(), rel=1e-12)


@settings(max_examples=150, deadline=None)
@given(st.lists(st.integers(0, 5), min_size=1, max_size=20).filter(any))
def test_found_is_where_the_cumulative_sum_exceeds_the_target(weights):
    tree = SumTree(len(weights))
    tree.set(np.arange(len(weights)), np.array(weights, dtype=np.float64))
    targets = np.arange(0.0, sum(weights), 0.25)  # sums of quarters are exact
    expected = np.searchsorted(np.cumsum(weights), targets, side="right")
    np.testing.assert_array_equal(tree.find(targets), expected)


@settings(max_examples=150, deadline=None)
@given(st.lists(weight, min_size=1, max_size=20).filter(any), st.integers(0, 2**32))
def test_nothing_without_weight_is_found_wherever_the_target_lies(weights, seed):
    tree = SumTree(len(weights))
    tree.set(np.arange(len(weights)), np.array(weights))
    edges = np.cumsum(weights)
    targets = np.concatenate(
        [
            np.random.default_rng(seed).random(50) * tree.total,
            edges,
            np.nextafter(edges, 0.0),
            np.nextafter(edges, np.inf),
            [0.0, tree.total, 2.0 * tree.total, np.nextafter(tree.total, np.inf)],
        ]
    )
    assert (tree.get(tree.find(targets)) > 0.0).all()


def test_sums_do_not_drift():
    """A float32 tree, or one that adds differences, is off after a million such writes."""
    tree, rng = SumTree(64), np.random.default_rng(1)
    for _ in range(200):
        tree.set(rng.integers(0, 64, 5000), 10.0 ** rng.uniform(-10, 2, 5000))
    tree.check_valid()
    tree.set(np.arange(64), np.zeros(64))
    assert tree.total == 0.0
    assert tree.leaves.dtype == np.float64


def test_samples_follow_the_weights():
    tree, weights = SumTree(5), np.array([1.0, 0.0, 3.0, 0.5, 5.5])
    tree.set(np.arange(5), weights)
    found = tree.sample((np.arange(1000) + 0.5) / 1000)  # a grid of uniforms: counts are exact
    np.testing.assert_array_equal(np.bincount(found, minlength=5), weights * 100)


def test_a_restored_tree_is_the_same_to_the_last_bit():
    tree, rng = SumTree(37), np.random.default_rng(2)
    tree.set(rng.integers(0, 37, 100), rng.random(100))
    restored = SumTree(37)
    restored.load_state_dict(tree.state_dict())
    assert restored.total == tree.total
    uniforms = rng.random(1000)
    np.testing.assert_array_equal(restored.sample(uniforms), tree.sample(uniforms))
    with pytest.raises(ValueError, match="hold 36 leaves"):
        SumTree(36).load_state_dict(tree.state_dict())


@pytest.mark.parametrize("value", [-1.0, np.nan, np.inf])
def test_weights_that_are_none_are_refused_and_nothing_changes(value):
    tree = SumTree(3)
    tree.set(np.arange(3), np.ones(3))
    with pytest.raises(ValueError, match="finite and not negative"):
        tree.set(np.array([0, 1]), np.array([5.0, value]))
    with pytest.raises(ValueError, match=r"indices must lie in \[0, 3\)"):
        tree.set(np.array([0, 3]), np.ones(2))
    np.testing.assert_array_equal(tree.leaves, np.ones(3))


def test_an_empty_tree_cannot_be_sampled():
    with pytest.raises(ValueError, match="not all be 0"):
        SumTree(3).sample(np.array([0.5]))


def test_damage_is_noticed():
    tree = SumTree(4)
    tree.set(np.arange(4), np.ones(4))
    tree._nodes[2] += 1e-9
    with pytest.raises(ValueError, match="node 1 is not the sum"):
        tree.check_valid()
