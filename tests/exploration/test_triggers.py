"""Homeostats hold their rate; triggers start options as often as ε would, where it matters."""

import json
import math

import numpy as np
import pytest

from ezgreedy import DiscrepancyTrigger, EZGreedy, Homeostat, Zeta


def naive_homeostat(signal, rate, as_published):
    """The recursion, one number at a time."""
    mean, variance, average = 0.0, 1.0, 1.0
    chances = []
    for t, x in enumerate(signal, start=1):
        tau = min(t, 100 / rate)
        mean = (1 - 1 / tau) * mean + x / tau
        variance = (1 - 1 / tau) * variance + (x - mean) ** 2 / tau
        e = math.exp((x - mean) / math.sqrt(variance)) if variance > 0 else 1.0
        counted = e if as_published else min(e, average / rate)
        average = (1 - 1 / tau) * average + counted / tau
        chances.append(min(1.0, rate * e / average))
    return chances


@pytest.mark.parametrize("as_published", [False, True], ids=["ours", "published"])
@pytest.mark.parametrize("rate", [0.5, 0.01])
def test_a_homeostat_follows_its_recursion(rate, as_published):
    signals = np.random.default_rng(0).gamma(0.5, size=(1000, 3))
    homeostat = Homeostat(3, rate=rate, as_published=as_published)
    found = np.array([homeostat(row) for row in signals])
    for lane in range(3):
        expected = naive_homeostat(signals[:, lane], rate, as_published)
        np.testing.assert_allclose(found[:, lane], expected)


def test_both_recursions_agree_while_no_signal_is_large():
    signals = np.random.default_rng(0).random((1000, 3))
    ours, published = Homeostat(3, rate=0.01), Homeostat(3, rate=0.01, as_published=True)
    for row in signals:
        np.testing.assert_array_equal(ours(row), published(row))


def test_the_published_recursion_misses_its_rate_on_a_long_tail():
    signals = np.random.default_rng(1).gamma(0.3, size=(20_000, 60))
    homeostat = Homeostat(60, rate=0.01, as_published=True)
    mean = np.mean([homeostat(row) for row in signals])
    assert mean == pytest.approx(0.0029, rel=0.1)


SIGNALS = {
    "normal": lambda rng, shape: rng.normal(3.0, 2.0, shape),
    "rare": lambda rng, shape: (rng.random(shape) < 0.01) * 5.0,
    "skewed": lambda rng, shape: rng.gamma(0.3, size=shape),
    "tiny": lambda rng, shape: 1e-9 * rng.random(shape),
    "drifting": lambda rng, shape: np.linspace(0, 50, shape[0])[:, None] + rng.random(shape),
}


@pytest.mark.parametrize("rate", [0.2, 0.05])
@pytest.mark.parametrize("signal", SIGNALS.values(), ids=SIGNALS)
def test_a_homeostat_holds_its_rate(signal, rate):
    # The averages reach back over 100/rate steps, at most 2,000; five times that settles them.
    signals = signal(np.random.default_rng(1), (20_000, 60))
    homeostat = Homeostat(60, rate=rate)
    chances = np.array([homeostat(row) for row in signals])
    assert chances[10_000:].mean() == pytest.approx(rate, rel=0.1)


def test_a_constant_signal_is_a_coin():
    homeostat = Homeostat(2, rate=0.07)
    for _ in range(500):
        np.testing.assert_array_equal(homeostat(np.full(2, 4.2)), 0.07)


def test_one_enormous_value_does_not_silence_a_homeostat():
    homeostat, rng = Homeostat(1, rate=0.1), np.random.default_rng(0)
    for _ in range(2000):
        homeostat(rng.random(1))
    assert homeostat(np.array([1e6]))[0] == 1.0
    later = [homeostat(rng.random(1))[0] for _ in range(20_000)]
    assert np.mean(later[-5000:]) == pytest.approx(0.1, rel=0.1)


def test_lanes_without_a_signal_keep_their_averages():
    some, all_ = Homeostat(2, rate=0.1), Homeostat(2, rate=0.1)
    rng = np.random.default_rng(0)
    for _ in range(100):
        signal = rng.random(2)
        some(np.array([np.nan, 7.0]), np.zeros(2, dtype=bool))
        np.testing.assert_array_equal(some(signal), all_(signal))
    assert some(np.array([np.nan, 0.0]), np.array([False, True]))[0] == 0.1


# Triggers.


def walk(explore, trigger, num_steps, seed=0):
    """A loop whose values fail now and then, in episodes of some length."""
    rng, lanes = np.random.default_rng(seed), explore.lanes
    starts, surprised, decided, started = np.ones(lanes, dtype=bool), [], [], []
    for _ in range(num_steps):
        surprise = rng.random(lanes) < 0.02
        rewards, values = 3.0 * surprise, 0.1 * rng.random(lanes)
        deciding = starts | (explore.remaining == 0)
        explore.epsilon = trigger(rewards=rewards, values=values, starts=starts, deciding=deciding)
        explore(np.zeros(lanes, dtype=int), starts=starts)
        decided.append(deciding)
        started.append(deciding & explore.exploring)
        surprised.append(surprise)
        starts = rng.random(lanes) < 0.01
    return np.array(decided), np.array(started), np.array(surprised)


def test_a_trigger_starts_as_many_options_as_epsilon_would_but_at_surprises():
    lanes, num_steps, rate = 40, 5000, 0.05
    explore = EZGreedy(4, 0.0, Zeta(cap=20), lanes=lanes, seed=1)
    trigger = DiscrepancyTrigger(lanes, rate=rate, steps=1)
    decided, started, surprised = walk(explore, trigger, num_steps)
    share = started.sum() / decided.sum()
    assert share == pytest.approx(rate, rel=0.06)  # 6,500 starts: the standard error is 1.2 %
    at_surprises = started[surprised].sum() / decided[surprised].sum()
    assert at_surprises > 4 * rate
    assert explore.counters.started == started.sum()


def test_probabilities_know_the_epsilon_that_was_in_force():
    explore, trigger = EZGreedy(4, 0.0, lanes=3, seed=1), DiscrepancyTrigger(3, rate=0.2)
    walk(explore, trigger, 50)
    deciding = explore.remaining == 0
    epsilon = trigger(rewards=np.zeros(3), values=np.zeros(3), deciding=deciding)
    explore.epsilon = epsilon
    actions = explore(np.ones(3, dtype=int))
    expected = np.where(deciding, (1 - epsilon) * (actions == 1) + epsilon / 4, 1.0)
    np.testing.assert_allclose(explore.probabilities, expected)


@pytest.mark.parametrize("saved_at", [1, 60])
def test_a_saved_trigger_and_policy_continue_exactly(saved_at):
    def make():
        return EZGreedy(4, 0.0, lanes=5, seed=1), DiscrepancyTrigger(5, rate=0.1, steps=2)

    original, restored = make(), make()
    walk(*original, saved_at)
    for old, new in zip(original, restored, strict=True):
        new.load_state_dict(json.loads(json.dumps(old.state_dict())))
    for old, new in zip(walk(*original, 100, 5), walk(*restored, 100, 5), strict=True):
        np.testing.assert_array_equal(new, old)
    assert [part.state_dict() for part in restored] == [part.state_dict() for part in original]


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: Homeostat(rate=0), "rate must lie strictly between 0 and 1; got 0"),
        (lambda: Homeostat(rate=-0.1), r"rate must lie in \[0, 1\]; got -0.1"),
        (lambda: Homeostat(rate=np.nan), r"rate must lie in \[0, 1\]; got nan"),
        (lambda: Homeostat(2, rate=0.1)(np.zeros(3)), r"signal must have shape \(2,\); got \(3,\)"),
        (lambda: Homeostat(2, rate=0.1)(np.array([0.0, np.nan])), "signal must be finite"),
        (lambda: DiscrepancyTrigger(2, rate=1.0), "rate must lie strictly between 0 and 1"),
        (
            lambda: DiscrepancyTrigger(2, rate=0.1)(rewards=[0.0, np.nan], values=[0.0, 0.0]),
            "rewards must be finite",
        ),
        (
            lambda: DiscrepancyTrigger(2, rate=0.1)(rewards=[0.0, 0.0], values=None),
            "values must be given",
        ),
        (
            lambda: DiscrepancyTrigger(2, rate=0.1).load_state_dict({}),
            "state must have the keys",
        ),
    ],
)
def test_bad_input_is_refused_by_name(call, message):
    with pytest.raises((TypeError, ValueError), match=message):
        call()
