"""Priorities, probabilities and importance weights against their definitions."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ezgreedy.replay.importance import ImportanceExponent
from ezgreedy.replay.prioritized import Priorities

CONSTANT_ONE = ImportanceExponent(1.0, 1.0, 0, 1)


def filled(losses, capacity=None, **kwargs):
    priorities = Priorities(
        capacity or len(losses), rng=kwargs.pop("rng", np.random.default_rng(0)), **kwargs
    )
    for slot in range(len(losses)):
        priorities.add(slot)
    priorities.update(np.arange(len(losses)), np.array(losses))
    return priorities


def test_probabilities_by_hand():
    priorities = filled([1.0, 4.0, 0.0, 9.0])
    proportional = np.array([1.0, 2.0, 0.0, 3.0]) / 6.0
    expected = 0.999 * proportional + 0.001 / 4
    np.testing.assert_allclose(priorities.probabilities(np.arange(4)), expected, rtol=1e-14)


def test_draws_follow_the_probabilities():
    priorities = filled([1.0, 4.0, 0.0, 9.0], uniform_share=0.1)
    sample = priorities.sample(200_000)
    counts = np.bincount(sample.slots, minlength=4)
    expected = priorities.probabilities(np.arange(4)) * 200_000
    assert ((counts - expected) ** 2 / expected).sum() < 31.0  # χ², 3 degrees, p = 10⁻⁶
    np.testing.assert_allclose(sample.probabilities, priorities.probabilities(sample.slots))


def test_weights_by_hand():
    priorities = filled([1.0, 4.0, 0.0, 9.0], importance_exponent=ImportanceExponent(0.5, 0.5))
    sample = priorities.sample(64)
    weights = (1.0 / (4 * sample.probabilities)) ** 0.5
    np.testing.assert_allclose(sample.weights, weights / weights.max(), rtol=1e-14)
    assert sample.weights.max() == 1.0


def test_weights_make_samples_unbiased():
    priorities = filled([1.0, 4.0, 25.0, 9.0], importance_exponent=CONSTANT_ONE)
    p = priorities.probabilities(np.arange(4))
    np.testing.assert_allclose(p * (1.0 / (4 * p)), 0.25)
    sample = priorities.sample(32)
    np.testing.assert_allclose(sample.weights, sample.probabilities.min() / sample.probabilities)


def test_weights_are_divided_by_the_largest_of_the_batch_not_of_the_memory():
    priorities = filled([1e-8] + [1.0] * 9, uniform_share=0.0)
    sample = priorities.sample(8)
    assert 0 not in sample.slots
    np.testing.assert_array_equal(sample.weights, np.ones(8))


def test_tiny_priorities_are_not_drowned():
    """No constant is added to losses: a loss of 10⁻¹⁰ keeps its proportion to one of 10⁻⁸."""
    priorities = filled([1e-10, 1e-8], uniform_share=0.0)
    np.testing.assert_allclose(priorities.probabilities(np.arange(2)), np.array([1, 10]) / 11)


def test_importance_exponent_0_makes_all_weights_1():
    priorities = filled([1.0, 4.0, 9.0], importance_exponent=ImportanceExponent(0.0, 0.0))
    np.testing.assert_array_equal(priorities.sample(100).weights, np.ones(100))


def test_exponent_0_is_uniform():
    priorities = filled([0.0, 1.0, 50.0, 1e-9], exponent=0.0)
    np.testing.assert_allclose(priorities.probabilities(np.arange(4)), np.full(4, 0.25))
    np.testing.assert_array_equal(priorities.sample(50).weights, np.ones(50))


def test_new_slots_come_with_the_largest_priority_seen_and_the_exponent_once():
    priorities = Priorities(6, uniform_share=0.0, rng=np.random.default_rng(0))
    priorities.add(0)
    assert priorities.largest_loss == 1.0
    priorities.update(np.array([0]), np.array([16.0]))
    priorities.add(1)
    np.testing.assert_allclose(priorities.probabilities(np.arange(2)), [0.5, 0.5])
    priorities.update(np.array([0, 1]), np.array([0.25, 0.25]))
    priorities.add(2)  # the maximum never falls: 16^½ = 4 against ½ and ½
    np.testing.assert_allclose(priorities.probabilities(np.arange(3)), [0.1, 0.1, 0.8])


def test_a_slot_may_come_with_a_loss_of_its_own():
    priorities = Priorities(4, uniform_share=0.0, rng=np.random.default_rng(0))
    for slot, loss in enumerate([0.25, 4.0, 1e9]):
        priorities.add(slot, loss)
    np.testing.assert_allclose(
        priorities.probabilities(np.arange(3)), np.array([0.5, 2.0, 10.0]) / 12.5
    )
    assert priorities.largest_loss == 100.0
    for wrong in (np.nan, -1.0):
        with pytest.raises(ValueError, match="loss must be finite and be at least 0"):
            priorities.add(3, wrong)
    assert 3 not in priorities


def test_losses_are_brought_within_the_bounds():
    priorities = filled([0.0, 1.0, 1e9], exponent=1.0, uniform_share=0.0, bounds=(0.5, 2.0))
    np.testing.assert_allclose(priorities.probabilities(np.arange(3)), np.array([1, 2, 4]) / 7)
    with pytest.raises(ValueError, match="bounds must be finite and be at least 2"):
        Priorities(3, bounds=(2.0, 1.0), rng=np.random.default_rng(0))


def test_losses_are_cut_off_at_100():
    priorities = filled([1e9, 100.0])
    np.testing.assert_allclose(priorities.probabilities(np.arange(2)), [0.5, 0.5])
    assert priorities.largest_loss == 100.0


def test_of_several_losses_for_one_slot_the_last_stays():
    priorities = filled([1.0, 1.0], uniform_share=0.0)
    priorities.update(np.array([0, 0]), np.array([81.0, 9.0]))
    np.testing.assert_allclose(priorities.probabilities(np.arange(2)), [0.75, 0.25])


def test_beta_rises_from_additions_not_frames():
    beta = ImportanceExponent()
    assert [beta(n) for n in (0, 20_000, 50_000_000, 10**9)] == [0.4, 0.4, 1.0, 1.0]
    assert beta((20_000 + 50_000_000) // 2) == pytest.approx(0.7)
    priorities = filled([1.0] * 5, importance_exponent=ImportanceExponent(0.0, 1.0, 0, 10))
    assert priorities.beta == pytest.approx(0.5)
    priorities.remove(0)
    priorities.add(0)
    assert priorities.beta == pytest.approx(0.6)


def test_draws_are_not_stratified():
    """With one slot of half the mass, the number of its draws varies as a binomial one."""
    priorities = filled([1.0, 1.0], uniform_share=0.0)
    hits = np.array([(priorities.sample(32).slots == 0).sum() for _ in range(2000)])
    assert 7.0 < hits.var() < 9.0  # 32·½·½ = 8; one draw from each of 32 segments gives 0


@settings(max_examples=100, deadline=None)
@given(st.lists(st.tuples(st.sampled_from("aru"), st.integers(0, 6), st.floats(0, 120))))
def test_members_equal_a_dictionary(operations):
    priorities = Priorities(7, rng=np.random.default_rng(0))
    twin, largest = {}, 1.0
    for operation, slot, loss in operations:
        if operation == "a" and slot not in twin:
            priorities.add(slot)
            twin[slot] = largest
        elif operation == "r":
            priorities.remove(slot)
            twin.pop(slot, None)
        elif operation == "u":
            priorities.update(np.array([slot]), np.array([loss]))
            largest = max(largest, min(loss, 100.0))
            if slot in twin:
                twin[slot] = min(loss, 100.0)
        priorities.check_valid()
        assert len(priorities) == len(twin)
        assert {slot for slot in range(7) if slot in priorities} == set(twin)
        if twin:
            slots = np.array(sorted(twin))
            raised = np.array([twin[slot] ** 0.5 for slot in slots])
            share = raised / raised.sum() if raised.any() else np.full(len(slots), 1 / len(slots))
            expected = 0.999 * share + 0.001 / len(slots)
            np.testing.assert_allclose(priorities.probabilities(slots), expected, rtol=1e-9)
            assert set(priorities.sample(4).slots) <= set(twin)


def test_a_restored_object_draws_the_same():
    original = filled([1.0, 4.0, 0.5, 9.0, 2.0], capacity=9)
    original.remove(1)
    original.sample(3)
    restored = Priorities(9, rng=np.random.default_rng(77))
    restored.load_state_dict(original.state_dict())
    for _ in range(20):
        one, other = original.sample(5), restored.sample(5)
        for left, right in zip(one, other, strict=True):
            np.testing.assert_array_equal(left, right)
        for priorities in (original, restored):
            priorities.update(one.slots, one.weights * 3.0)


def test_what_is_wrong_is_refused():
    priorities = Priorities(3, rng=np.random.default_rng(0))
    with pytest.raises(ValueError, match="must be added before"):
        priorities.sample(1)
    priorities.add(0)
    with pytest.raises(ValueError, match="removed before it is added again"):
        priorities.add(0)
    with pytest.raises(ValueError, match="losses must be finite"):
        priorities.update(np.array([0]), np.array([np.nan]))
    with pytest.raises(ValueError, match=r"slots must lie in \[0, 3\)"):
        priorities.update(np.array([-1]), np.array([50.0]))
    with pytest.raises(ValueError, match="slot must be at least 0"):
        priorities.remove(-1)
    assert priorities.largest_loss == 1.0
