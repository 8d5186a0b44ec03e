"""The limiter's band, by hand; and that one side may always proceed."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ezgreedy.replay.limiter import SamplesPerInsert


def test_the_band_by_hand():
    limiter = SamplesPerInsert(2.0, least_size=3, band=2.0)
    for _ in range(3):
        assert not limiter.may_sample()
        assert limiter.may_insert()
        limiter.inserted()
    assert limiter.error == 0.0
    assert limiter.may_insert()  # 8 − 6 = 2
    limiter.inserted()
    assert not limiter.may_insert()
    limiter.sampled(2)
    assert limiter.error == 0.0
    limiter.sampled(2)
    assert (limiter.error, limiter.may_sample(), limiter.may_insert()) == (-2.0, False, True)


def test_tenths_are_exact():
    """0.1 · 3 samples for 30 insertions, not one sample early or late."""
    limiter = SamplesPerInsert(0.1, least_size=10, band=1.0)
    limiter.inserted(20)
    assert not limiter.may_insert()
    limiter.sampled(2)
    assert not limiter.may_sample()


@settings(max_examples=200, deadline=None)
@given(
    st.floats(0.01, 20.0),
    st.integers(1, 30),
    st.integers(1, 5),
    st.integers(1, 70),
    st.floats(0.0, 3.0),
    st.lists(st.tuples(st.booleans(), st.integers(1, 70)), max_size=120),
)
def test_one_side_may_always_proceed(ratio, least, inserted, sampled, wider, wishes):
    at_once = {"most_inserted": inserted, "most_sampled": sampled}
    try:
        limiter = SamplesPerInsert(ratio, least, wider * max(1.0, ratio), **at_once)
    except ValueError:
        limiter = SamplesPerInsert(ratio, least, **at_once)
    for inserts, count in wishes:
        assert limiter.may_insert(inserted) or limiter.may_sample(sampled)
        count = min(count, inserted if inserts else sampled)
        if inserts and limiter.may_insert(count):
            limiter.inserted(count)
        elif not inserts and limiter.may_sample(count):
            limiter.sampled(count)
        assert limiter.num_sampled == 0 or limiter.num_inserted >= least
        if limiter.num_inserted > least:
            assert abs(limiter.error) <= limiter.band + 1e-9


def test_greedy_sides_keep_the_ratio():
    limiter = SamplesPerInsert(least_size=100, most_sampled=64)
    for _ in range(20_000):
        if limiter.may_sample(64):
            limiter.sampled(64)
        else:
            limiter.inserted()
    inserted = limiter.num_inserted - 100
    assert abs(limiter.num_sampled - 0.77 * inserted) <= float(limiter.band)


def test_bands_that_deadlock_are_refused():
    for ratio, band, least in ((0.77, 0.99, "1"), (3.0, 2.9, "3"), (10.0, 9.0, "10")):
        with pytest.raises(ValueError, match=f"band must be at least {least}, or both sides"):
            SamplesPerInsert(ratio, band=band)
    with pytest.raises(ValueError, match=r"band must be at least 32\.385"):
        SamplesPerInsert(0.77, band=30.0, most_sampled=64)
    with pytest.raises(ValueError, match="ratio must be more than 0"):
        SamplesPerInsert(0.0)
    with pytest.raises(ValueError, match="count must be at most 1"):
        SamplesPerInsert().may_sample(2)


def test_counts_are_restored():
    limiter = SamplesPerInsert(least_size=2)
    limiter.inserted(5)
    limiter.sampled(1)
    other = SamplesPerInsert(least_size=2)
    other.load_state_dict(limiter.state_dict())
    assert (other.error, other.may_insert(), other.may_sample()) == (
        limiter.error,
        limiter.may_insert(),
        limiter.may_sample(),
    )
