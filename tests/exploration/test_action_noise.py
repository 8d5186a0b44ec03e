"""Noise for continuous actions: right in distribution and correlation, lane by lane, resumable."""

import json
from functools import partial

import colorednoise
import numpy as np
import pytest

from ezgreedy import (
    ColouredNoise,
    EZGreedy,
    Fixed,
    HeldActions,
    HeldNoise,
    OrnsteinUhlenbeck,
    WhiteNoise,
    Zeta,
)
from ezgreedy.exploration.noise import power_law_sequences
from ezgreedy.exploration.streams import Streams

KINDS = {
    "white": WhiteNoise,
    "held": partial(HeldNoise, durations=Zeta(cap=16)),
    "held for three": partial(HeldNoise, durations=Fixed(3)),
    "ornstein-uhlenbeck": OrnsteinUhlenbeck,
    "pink": partial(ColouredNoise, length=40),
    "red, odd": partial(ColouredNoise, beta=2.0, length=41),
    "beta 0.5": partial(ColouredNoise, beta=0.5, length=2),
}
each_kind = pytest.mark.parametrize("make", KINDS.values(), ids=KINDS)


def sampled(noise, num_steps, **masks):
    """[steps, lanes, size]."""
    return np.array([noise(**masks) for _ in range(num_steps)])


# Draws.


def test_normals_are_normal_and_independent():
    streams = Streams(5, lanes=2000)
    draws = streams.normals(streams.words(np.zeros(2000, dtype=np.int64)), 51)
    assert draws.shape == (2000, 51)
    # 102,000 draws: standard errors of the moments are 0.003, 0.0044, 0.0077 and 0.031.
    assert draws.mean() == pytest.approx(0.0, abs=0.016)
    assert draws.var() == pytest.approx(1.0, abs=0.022)
    assert (draws**3).mean() == pytest.approx(0.0, abs=0.04)
    assert (draws**4).mean() == pytest.approx(3.0, abs=0.16)
    off_diagonal = np.corrcoef(draws.T)[~np.eye(51, dtype=bool)]
    assert np.abs(off_diagonal).max() < 5.0 / np.sqrt(2000)


# Each kind.


@each_kind
def test_every_step_has_the_standard_deviation_that_was_asked_for(make):
    noise = make(size=2, scale=[0.5, 2.0], lanes=20_000, seed=1)
    # The first steps of an episode, and those beyond a sequence's end; 20,000 independent lanes
    # have a standard error of 0.5 %.
    for step in range(45):
        values = noise()
        if step in (0, 1, 7, 44):
            np.testing.assert_allclose(values.std(axis=0), [0.5, 2.0], rtol=0.025)
            np.testing.assert_allclose(values.mean(axis=0), 0.0, atol=0.075)
            assert abs(np.corrcoef(values.T)[0, 1]) < 0.04


def test_held_noise_changes_when_its_durations_say_so_and_only_then():
    law = Zeta(cap=16)
    values = sampled(HeldNoise(1, 1.0, law, lanes=3, seed=4), 300)[:, :, 0]
    options = EZGreedy(1, 1.0, law, lanes=3, seed=4)
    for step in range(300):
        begins = options.remaining == 0
        options(np.zeros(3, dtype=int))
        if step:
            np.testing.assert_array_equal(values[step] != values[step - 1], begins)


def test_ornstein_uhlenbeck_noise_is_exponentially_correlated():
    values = sampled(OrnsteinUhlenbeck(1, 1.0, lanes=4000, seed=2, theta=0.3), 12)[:, :, 0]
    for lag in (1, 2, 5):
        found = (values[3] * values[3 + lag]).mean()
        assert found == pytest.approx(0.7**lag, abs=0.08)  # 5 standard errors


@pytest.mark.parametrize("length", [16, 17])
@pytest.mark.parametrize("beta", [0.0, 1.0, 2.0])
def test_coloured_noise_has_the_covariance_of_its_spectrum(beta, length):
    """The covariance at lag t is the sum of the powers times cosines; computed frequency by one."""
    values = sampled(ColouredNoise(1, 1.0, 20_000, 3, beta=beta, length=length), length)[:, :, 0]
    found = values @ values.T / 20_000
    powers = [
        (1.0 if f == 0 or 2 * f == length else 2.0) * (max(f, 1) / length) ** -beta
        for f in range(length // 2 + 1)
    ]
    covariance = np.array(
        [
            sum(p * np.cos(2 * np.pi * f * lag / length) for f, p in enumerate(powers))
            for lag in range(length)
        ]
    ) / sum(powers)
    lags = np.abs(np.subtract.outer(np.arange(length), np.arange(length)))
    np.testing.assert_allclose(found, covariance[lags], atol=0.05)


class Drawn(np.random.Generator):
    """Hands out given draws, in place of a random generator's own."""

    def __init__(self, *draws):
        super().__init__(np.random.PCG64(0))
        self.draws = list(draws)

    def normal(self, loc=0.0, scale=1.0, size=None):
        draws = self.draws.pop(0)
        assert draws.shape == tuple(size)
        return loc + scale * draws


@pytest.mark.parametrize("length", [2, 3, 40, 41, 1000])
@pytest.mark.parametrize("beta", [0.0, 0.5, 1.0, 2.0])
def test_published_coloured_noise_equals_that_of_another_library(beta, length):
    rng = np.random.default_rng(0)
    real, imaginary = rng.normal(size=(2, 3, length // 2 + 1))
    expected = colorednoise.powerlaw_psd_gaussian(
        beta, (3, length), random_state=Drawn(real, imaginary)
    )
    found = power_law_sequences(real, imaginary, beta, length, as_published=True)
    np.testing.assert_allclose(found, expected, rtol=1e-10, atol=1e-12)


def test_a_sequence_lasts_for_an_episode_and_another_follows_a_longer_one():
    noise = ColouredNoise(1, 1.0, lanes=2, seed=0, length=10)
    values = sampled(noise, 7)
    values = np.concatenate([values, [noise(starts=np.array([True, False]))], sampled(noise, 9)])
    one, two = values[:, :, 0].T
    began = {0: [0, 7], 1: [0, 10]}
    for lane, sequence in ((0, one), (1, two)):
        for start in began[lane]:
            streams = Streams(0, 2)
            words = streams.words(np.array([start]), np.array([lane]))
            draws = streams.normals(words, 12).reshape(2, 6)
            expected = power_law_sequences(*draws, 1.0, 10, as_published=False)
            stretch = sequence[start : start + 7]
            np.testing.assert_allclose(stretch, expected[: len(stretch)])


# What all kinds share.


@each_kind
def test_a_lane_has_the_same_noise_in_any_batch(make):
    fleet = sampled(make(size=2, lanes=5, seed=7, first_lane=10), 50)
    for lane in (0, 3):
        alone = sampled(make(size=2, lanes=1, seed=7, first_lane=10 + lane), 50)
        np.testing.assert_array_equal(alone[:, 0], fleet[:, lane])


@each_kind
def test_frozen_lanes_wait(make):
    rng = np.random.default_rng(0)
    noise, alone = make(size=2, lanes=3, seed=7), make(size=2, lanes=3, seed=7)
    steady = sampled(alone, 80)
    counts = np.zeros(3, dtype=int)
    for _ in range(80):
        active = rng.random(3) < 0.6
        values = noise(active=active)
        for lane in np.flatnonzero(active):
            np.testing.assert_array_equal(values[lane], steady[counts[lane], lane])
        counts += active


@each_kind
def test_episodes_are_independent(make):
    noise = make(size=1, lanes=10_000, seed=3)
    before = noise()[:, 0]
    after = noise(starts=np.ones(10_000, dtype=bool))[:, 0]
    assert abs(np.corrcoef(before, after)[0, 1]) < 0.05  # 5 standard errors


@each_kind
def test_reset_and_starts_are_the_same(make):
    told, reset = make(size=2, lanes=4, seed=1), make(size=2, lanes=4, seed=1)
    rng = np.random.default_rng(0)
    for _ in range(100):
        starts = rng.random(4) < 0.1
        reset.reset(starts)
        np.testing.assert_array_equal(told(starts=starts), reset())


@each_kind
@pytest.mark.parametrize("saved_at", [0, 1, 50])
def test_saved_noise_continues_exactly(make, saved_at):
    original, restored = make(size=2, lanes=3, seed=2), make(size=2, lanes=3, seed=2)
    sampled(original, saved_at)
    original.reset(np.array([True, False, False]))
    restored.load_state_dict(json.loads(json.dumps(original.state_dict())))
    np.testing.assert_array_equal(sampled(restored, 60), sampled(original, 60))
    assert restored.state_dict() == original.state_dict()


# Held actions.


def test_held_actions_are_ez_greedy_with_a_box_of_actions():
    law, low, high = Zeta(cap=20), np.array([-1.0, 0.0]), np.array([1.0, 5.0])
    explore = HeldActions(low, high, 0.3, law, lanes=4, seed=6)
    options = EZGreedy(1, 0.3, law, lanes=4, seed=6)
    rng, held = np.random.default_rng(0), np.zeros((4, 2))
    for step in range(300):
        greedy, starts, ends = rng.normal(size=(4, 2)), rng.random(4) < 0.05, rng.random(4) < 0.05
        running = (options.remaining > 0) & ~starts & ~ends
        options(np.zeros(4, dtype=int), starts=starts, ends=ends)
        actions = explore(greedy, starts=starts, ends=ends)
        np.testing.assert_array_equal(explore.exploring, options.exploring)
        np.testing.assert_array_equal(explore.remaining, options.remaining)
        for lane in np.flatnonzero(options.exploring & ~running):
            words = options.streams.words(np.array([step]), np.array([lane]))
            held[lane] = low + options.streams.noise_uniforms(words, 2)[0] * (high - low)
        expected = np.where(options.exploring[:, None], held, greedy)
        np.testing.assert_array_equal(actions, expected)
    assert explore.counters == options.counters
    assert explore.counters.cut_by_caller > 0


def test_held_actions_are_uniform_over_the_box():
    explore = HeldActions([-2.0], [1.0], 1.0, Fixed(1), lanes=20_000, seed=0)
    actions = explore(np.zeros((20_000, 1)))[:, 0]
    counts, _ = np.histogram(actions, bins=10, range=(-2.0, 1.0))
    # χ² with 9 degrees of freedom exceeds 33.7 with probability 10⁻⁴.
    assert ((counts - 2000) ** 2 / 2000).sum() < 33.7


@pytest.mark.parametrize("saved_at", [0, 1, 50])
def test_a_saved_holder_continues_exactly(saved_at):
    def make():
        return HeldActions([-1, -1], [1, 1], 0.2, lanes=3, seed=1)

    original, restored = make(), make()
    greedy = np.zeros((3, 2))
    for _ in range(saved_at):
        original(greedy)
    restored.load_state_dict(json.loads(json.dumps(original.state_dict())))
    for _ in range(100):
        np.testing.assert_array_equal(restored(greedy), original(greedy))


# Bad input.


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: WhiteNoise(0), "size must be at least 1; got 0"),
        (lambda: WhiteNoise(2, [1.0, 2.0, 3.0]), "scale must be a number or 2 numbers"),
        (lambda: WhiteNoise(2, -1.0), "scale must be finite and at least 0; got -1.0"),
        (lambda: WhiteNoise(2, np.nan), "scale must be finite and at least 0; got nan"),
        (lambda: WhiteNoise(2, [0.1, -0.2]), "scale must be finite and at least 0; got .0.1, -0.2"),
        (lambda: WhiteNoise(2, lanes=0), "lanes must be at least 1; got 0"),
        (lambda: WhiteNoise(2)(starts=[1]), "starts must be a bool array"),
        (lambda: WhiteNoise(2)(active=[True, True]), r"active must have shape \(1,\)"),
        (lambda: HeldNoise(2, durations=3), "durations must be"),
        (lambda: OrnsteinUhlenbeck(1, theta=0), "theta must be above 0; got 0"),
        (lambda: OrnsteinUhlenbeck(1, theta=1.5), r"theta must lie in \[0, 1\]; got 1.5"),
        (lambda: ColouredNoise(1, beta=-1), "beta must be finite and be at least 0; got -1"),
        (lambda: ColouredNoise(1, beta=np.nan), "beta must be finite and be at least 0; got nan"),
        (lambda: ColouredNoise(1, beta="purple"), "beta must be a number; got str 'purple'"),
        (lambda: ColouredNoise(1, length=1), "length must be at least 2; got 1"),
        (lambda: HeldActions([0, 1], [1], 0.1), r"shapes \(2,\) and \(1,\)"),
        (lambda: HeldActions([2], [1], 0.1), "low below high; got .2.0. and .1.0."),
        (lambda: HeldActions([0], [np.inf], 0.1), "low and high must be finite"),
        (lambda: HeldActions([0], [1], 1.5), r"epsilon must lie in \[0, 1\]; got 1.5"),
        (lambda: HeldActions([0], [1], 0.1)(np.zeros((2, 1))), r"greedy must have shape \(1, 1\)"),
        (lambda: HeldActions([0], [1], 0.1)([[np.nan]]), "greedy must be finite"),
        (lambda: HeldActions([0], [1], 0.1).load_state_dict({}), "state must have the keys"),
        (
            lambda: WhiteNoise(1).load_state_dict(OrnsteinUhlenbeck(1).state_dict()),
            "state must have the keys",
        ),
        (
            lambda: WhiteNoise(1, seed=1).load_state_dict(WhiteNoise(1).state_dict()),
            r"state\['seed'\] must equal 1; got 0",
        ),
        (
            lambda: ColouredNoise(1).load_state_dict(ColouredNoise(1, beta=2).state_dict()),
            r"state\['beta'\] must equal 1.0; got 2",
        ),
    ],
)
def test_bad_input_is_refused_by_name(call, message):
    with pytest.raises((TypeError, ValueError), match=message):
        call()


@each_kind
@pytest.mark.parametrize("steps", [[3], [3, -1], [0.5, 1.0], [[1, 2]], None])
def test_a_damaged_state_is_refused_and_changes_nothing(make, steps):
    noise = make(size=2, lanes=2, seed=2)
    sampled(noise, 5)
    before = noise.state_dict()
    with pytest.raises(ValueError, match=r"state\['steps'\] must hold 2 ints of at least 0"):
        noise.load_state_dict(make(size=2, lanes=2, seed=2).state_dict() | {"steps": steps})
    assert noise.state_dict() == before


def test_damaged_sequences_are_refused():
    noise = ColouredNoise(1, lanes=2, length=8)
    before = noise.state_dict()
    for began in ([0], [0, -2], [0.5, 1.0]):
        with pytest.raises(ValueError, match=r"state\['began'\] must hold 2 ints of at least -1"):
            noise.load_state_dict(before | {"began": began})
        assert noise.state_dict() == before


def test_steps_are_counted():
    noise = HeldNoise(1, lanes=2)
    sampled(noise, 3)
    noise(active=np.array([True, False]))
    assert noise.steps.tolist() == [4, 3]
    held = HeldActions([0], [1], 0.5, lanes=1)
    held(np.zeros((1, 1)))
    assert held.steps.tolist() == [1]
