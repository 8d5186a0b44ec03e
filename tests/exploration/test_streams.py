"""The generator: exact against its definition, and good enough for a fleet of 320 actors."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from ezgreedy.exploration.streams import Purpose, Streams
from support import twins

SIZE = 1e-6

LANES = 320
STEPS = 4096


@given(
    seed=st.integers(0, 2**200),
    lane=st.integers(0, 2**40),
    step=st.integers(0, 2**59),
    purpose=st.sampled_from(Purpose),
)
def test_draws_equal_their_definition_in_unbounded_integers(seed, lane, step, purpose):
    streams = Streams(seed, lanes=3, first_lane=lane)
    words = streams.words(np.array([step, step, step]))
    drawn = streams.uniforms(words, purpose)
    assert drawn.tolist() == [twins.uniform(seed, lane + i, step, purpose) for i in range(3)]


@given(seed=st.integers(0, 2**70), first=st.integers(0, 500), count=st.integers(1, 40))
def test_a_lane_draws_the_same_in_any_batch(seed, first, count):
    fleet = Streams(seed, lanes=first + count)
    batch = Streams(seed, lanes=count, first_lane=first)
    steps = np.arange(5)[:, None]
    np.testing.assert_array_equal(fleet.words(steps)[:, first:], batch.words(steps))


def test_positions_select_lanes():
    streams = Streams(7, lanes=10)
    lanes, steps = np.array([9, 0, 4]), np.array([3, 8, 8])
    grid = streams.words(np.arange(9)[:, None])
    np.testing.assert_array_equal(streams.words(steps, lanes), grid[steps, lanes])


def test_the_coin_compares_exactly():
    streams = Streams(0, lanes=1)
    lowest, highest = np.array([0], dtype=np.uint64), np.array([2**64 - 1], dtype=np.uint64)
    assert not streams.heads(lowest, np.array(0.0))[0]
    assert streams.heads(highest, np.array(1.0))[0]
    assert not streams.heads(highest, np.array(1.0 - 2.0**-53))[0]
    for epsilon in (0.1, 1 / 3, 2.0**-53, 1e-30):
        words = streams.words(np.arange(2000), np.zeros(2000, dtype=np.int64))
        expected = streams.uniforms(words, Purpose.COIN) < epsilon
        np.testing.assert_array_equal(streams.heads(words, np.array(epsilon)), expected)


def test_different_seeds_lanes_steps_and_purposes_give_different_draws():
    draws = [
        tuple(Streams(seed, 4).uniforms(Streams(seed, 4).words(np.arange(4)[:, None]), p).ravel())
        for seed in (0, 1, 2**64, 2**64 + 1)
        for p in Purpose
    ]
    flat = np.array(draws).ravel()
    assert len(np.unique(flat)) == len(flat)


# Quality over (lane, step) grids, as the fleet uses them. Each test has size 1e-6.


@pytest.fixture(scope="module", params=[0, 1, 123456789], ids=lambda seed: f"seed{seed}")
def grids(request):
    streams = Streams(request.param, LANES)
    words = streams.words(np.arange(STEPS)[:, None])
    return {purpose: streams.uniforms(words, purpose) for purpose in Purpose}


@pytest.mark.parametrize("purpose", Purpose)
def test_draws_are_uniform(grids, purpose):
    counts = np.bincount((grids[purpose].ravel() * 4096).astype(int), minlength=4096)
    assert stats.chisquare(counts).pvalue > SIZE
    assert stats.kstest(grids[purpose].ravel()[:200_000], "uniform").pvalue > SIZE


@pytest.mark.parametrize("purpose", Purpose)
def test_every_lane_is_uniform_by_itself(grids, purpose):
    cells = (grids[purpose] * 64).astype(int) + 64 * np.arange(LANES)
    counts = np.bincount(cells.ravel(), minlength=64 * LANES).reshape(LANES, 64)
    expected = STEPS / 64
    statistic = ((counts - expected) ** 2 / expected).sum(axis=1)
    smallest = stats.chi2.sf(statistic, 63).min()
    assert smallest > SIZE / LANES


@pytest.mark.parametrize(
    ("step_lag", "lane_lag"), [(1, 0), (2, 0), (7, 0), (64, 0), (0, 1), (1, 1), (0, 64), (3, 160)]
)
@pytest.mark.parametrize("purpose", [Purpose.COIN, Purpose.ACTION, Purpose.DURATION])
def test_pairs_at_a_distance_are_independent(grids, purpose, step_lag, lane_lag):
    grid = grids[purpose]
    first = grid[: STEPS - step_lag, : LANES - lane_lag].ravel()
    second = grid[step_lag:, lane_lag:].ravel()
    assert pair_p_value(first, second) > SIZE


@pytest.mark.parametrize("other", [p for p in Purpose if p != Purpose.COIN])
def test_what_is_drawn_does_not_depend_on_the_coin(grids, other):
    assert pair_p_value(grids[Purpose.COIN].ravel(), grids[other].ravel()) > SIZE
    heads = grids[Purpose.COIN] < 0.01
    assert stats.kstest(grids[other][heads], "uniform").pvalue > SIZE


def test_actions_do_not_depend_on_durations(grids):
    first, second = grids[Purpose.ACTION].ravel(), grids[Purpose.DURATION].ravel()
    assert pair_p_value(first, second) > SIZE


def test_lanes_explore_independently(grids):
    heads = (grids[Purpose.COIN] < 0.1).astype(float)
    correlations = np.corrcoef(heads.T)[np.triu_indices(LANES, 1)]
    # Under independence each is about normal with variance 1/STEPS.
    largest = np.abs(correlations).max() * np.sqrt(STEPS)
    assert 2 * stats.norm.sf(largest) > SIZE / len(correlations)
    assert stats.kstest(correlations * np.sqrt(STEPS), "norm").pvalue > SIZE


def test_runs_of_heads_have_geometric_lengths(grids):
    heads = grids[Purpose.COIN] < 0.5
    waits = np.concatenate([np.diff(np.flatnonzero(lane)) for lane in heads.T])
    counts = np.bincount(np.minimum(waits, 15))[1:]
    law = 0.5 ** np.arange(1, 15)
    assert stats.chisquare(counts, np.append(law, 0.5**14) * counts.sum()).pvalue > SIZE


def test_every_bit_of_a_draw_is_fair(grids):
    for purpose in Purpose:
        integers = (grids[purpose] * 2.0**53).astype(np.uint64).ravel()
        ones = np.array([((integers >> np.uint64(b)) & np.uint64(1)).sum() for b in range(53)])
        z = (ones - integers.size / 2) / np.sqrt(integers.size / 4)
        lowest = 0 if purpose != Purpose.COIN else 8
        assert 2 * stats.norm.sf(np.abs(z[lowest:])).min() > SIZE / 53


def pair_p_value(first, second, cells=32):
    joint = (first * cells).astype(int) * cells + (second * cells).astype(int)
    return stats.chisquare(np.bincount(joint, minlength=cells**2)).pvalue


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"seed": -1, "lanes": 1}, ValueError, "seed must be at least 0; got -1"),
        ({"seed": 1.0, "lanes": 1}, TypeError, "seed must be an int"),
        ({"seed": None, "lanes": 1}, TypeError, "seed must be an int; got NoneType None"),
        ({"seed": 0, "lanes": 0}, ValueError, "lanes must be at least 1; got 0"),
        ({"seed": 0, "lanes": 1, "first_lane": -1}, ValueError, "first_lane must be at least 0"),
    ],
)
def test_bad_arguments_are_refused_by_name(arguments, error, message):
    with pytest.raises(error, match=message):
        Streams(**arguments)
