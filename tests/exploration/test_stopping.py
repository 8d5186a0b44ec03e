"""Rules that end options early: each against its definition, saved anywhere, refusing nonsense."""

import json

import numpy as np
import pytest

from ezgreedy import (
    AnyStop,
    EZGreedy,
    Fixed,
    StopOnDiscrepancy,
    StopOnReward,
    StopOnUnchanged,
    StopWhen,
)
from support.twins import tape

LANES = 4


def steps_of(num_steps, seed=0):
    """What a loop might know, step by step: few distinct observations, some episode starts."""
    rng = np.random.default_rng(seed)
    starts = np.ones(LANES, dtype=bool)
    for _ in range(num_steps):
        yield {
            "observations": rng.integers(0, 2, (LANES, 2)),
            "rewards": rng.integers(-1, 2, LANES).astype(float),
            "values": rng.normal(size=LANES),
            "starts": starts,
            "active": rng.random(LANES) < 0.8,
        }
        starts = rng.random(LANES) < 0.1


# Each rule against what it says.


@pytest.mark.parametrize("k", [1, 2, 3])
def test_unchanged_fires_after_k_equal_steps_and_counts_anew(k):
    rule = StopOnUnchanged(LANES, k)
    histories = [[] for _ in range(LANES)]  # since the episode began or the rule fired
    fired = 0
    for step in steps_of(400):
        ends = rule(observations=step["observations"], starts=step["starts"], active=step["active"])
        for lane in range(LANES):
            if step["starts"][lane]:
                histories[lane] = []
            if not step["active"][lane]:
                assert not ends[lane]
                continue
            seen = histories[lane] + [step["observations"][lane].tolist()]
            expected = len(seen) > k and all(item == seen[-1] for item in seen[-k - 1 :])
            assert ends[lane] == expected
            histories[lane] = seen[-1:] if expected else seen
            fired += expected
    assert fired > 10


@pytest.mark.parametrize("shape", [(), (1,), (2,), (3,), (2, 2), (8,), (9,), (3, 3, 3)])
def test_unchanged_compares_every_number_of_an_observation(shape):
    rule, rng = StopOnUnchanged(50), np.random.default_rng(0)
    before = rng.integers(0, 3, (50, *shape))
    rule(observations=before)
    now = np.where(rng.random(before.shape) < 0.1, 9, before)
    expected = [np.array_equal(a, b) for a, b in zip(before, now, strict=True)]
    assert rule(observations=now).tolist() == expected


def test_unchanged_looks_at_whole_observations():
    rule = StopOnUnchanged(2)
    rule(observations=np.zeros((2, 3, 3)))
    changed = np.zeros((2, 3, 3))
    changed[1, 2, 2] = 1e-9
    assert rule(observations=changed).tolist() == [True, False]


def test_unchanged_does_not_trust_an_array_that_the_caller_reuses():
    rule, frame = StopOnUnchanged(1), np.zeros((1, 2))
    rule(observations=frame)
    frame[:] = 1.0
    assert rule(observations=frame).tolist() == [False]


def test_reward_fires_above_its_bound_but_not_for_the_episode_before():
    rule = StopOnReward(4, above=0.5)
    starts = np.array([False, False, False, True])
    ends = rule(rewards=[0.5, 0.6, -3.0, 9.0], starts=starts)
    assert ends.tolist() == [False, True, False, False]


@pytest.mark.parametrize("reading", ["consistent", "printed"])
def test_the_discrepancy_is_that_of_the_formula(reading):
    rule = StopOnDiscrepancy(LANES, discount=0.9, steps=3, reading=reading)
    values, rewards = ([[] for _ in range(LANES)] for _ in range(2))
    compared = 0
    for step in steps_of(200):
        for lane in np.flatnonzero(step["starts"]):
            values[lane], rewards[lane] = [], []
        for lane in np.flatnonzero(step["active"]):
            values[lane].append(step["values"][lane])
            rewards[lane].append(step["rewards"][lane])
        rule(**{name: step[name] for name in ("rewards", "values", "starts", "active")})
        for lane in range(LANES):
            if len(values[lane]) <= 3:
                continue
            last = rewards[lane][-3:]
            if reading == "consistent":
                met = sum(0.9**i * r for i, r in enumerate(last)) + 0.9**3 * values[lane][-1]
            else:
                met = sum(0.9**i * r for i, r in enumerate(last[::-1])) + values[lane][-1]
            expected = abs(values[lane][-4] - met)
            held = rule.promise.state_dict()
            row, between = np.array(held["values"][lane]), np.array(held["rewards"][lane])
            np.testing.assert_array_equal(row, values[lane][-4:])
            np.testing.assert_array_equal(between, last)
            assert rule.promise.discrepancies()[lane] == pytest.approx(expected)
            compared += 1
    assert compared > 100


def test_values_that_keep_their_promise_have_no_discrepancy():
    # Reward 1 on every step for ever is worth 1/(1 − γ) everywhere.
    rule = StopOnDiscrepancy(1, discount=0.9, steps=5)
    for _ in range(50):
        rule(rewards=[1.0], values=[10.0])
    assert rule.promise.discrepancies()[0] == pytest.approx(0.0, abs=1e-12)


@pytest.mark.parametrize("rate", [0.3, 0.05])
def test_the_discrepancy_rule_fires_at_its_rate(rate):
    lanes, num_steps = 50, 4000
    rule, rng = StopOnDiscrepancy(lanes, rate=rate, seed=3), np.random.default_rng(0)
    fired = np.zeros(lanes)
    for _ in range(num_steps):
        fired += rule(rewards=np.zeros(lanes), values=rng.gamma(2.0, size=lanes))
    # Five standard errors of lanes that toss independent coins, and more for the settling-in.
    bound = 5 * np.sqrt(rate / (lanes * num_steps)) + 0.02 * rate
    assert fired.sum() / (lanes * num_steps) == pytest.approx(rate, abs=bound)


def test_the_discrepancy_rule_prefers_surprises():
    rule, rng = StopOnDiscrepancy(1, rate=0.05, steps=1, discount=1.0), np.random.default_rng(0)
    fired = {True: [], False: []}
    for _ in range(20_000):
        surprise = bool(rng.random() < 0.05)
        ends = rule(rewards=[5.0 if surprise else 0.0], values=[0.01 * rng.random()])
        fired[surprise].append(bool(ends[0]))
    assert np.mean(fired[True]) > 10 * np.mean(fired[False])


def test_any_fires_when_one_does_and_shows_every_step_to_all():
    one, two = StopOnUnchanged(LANES), StopOnReward(LANES)
    both = AnyStop(StopOnUnchanged(LANES), StopOnReward(LANES))
    for step in steps_of(200):
        shared = {name: step[name] for name in ("starts", "active")}
        expected = one(observations=step["observations"], **shared)
        expected |= two(rewards=step["rewards"], **shared)
        found = both(observations=step["observations"], rewards=step["rewards"], **shared)
        np.testing.assert_array_equal(found, expected)


def test_a_function_sees_what_the_loop_knows():
    rule = StopWhen(lambda seen: seen.values < seen.rewards, lanes=3)
    ends = rule(rewards=[1, 1, 1], values=[0, 2, 0], starts=np.array([False, False, True]))
    assert ends.tolist() == [True, False, False]


# With a policy.


def test_one_line_in_a_loop_ends_options():
    explore, stop = EZGreedy(4, 1.0, Fixed(50), lanes=3, seed=0), StopOnReward(lanes=3)
    for step in range(20):
        rewards = [float(step == 5), float(step == 7), 0.0]
        explore(np.zeros(3, int), ends=stop(rewards=rewards))
    assert explore.remaining.tolist() == [50 - 15, 50 - 13, 50 - 20]
    assert explore.counters.cut_by_caller == 2


def test_rules_leave_the_tape_alone_until_they_fire():
    explore, stop = EZGreedy(4, 0.5, lanes=3, seed=0), StopOnReward(lanes=3)
    played = [explore(np.zeros(3, int), ends=stop(rewards=np.zeros(3))) for _ in range(100)]
    np.testing.assert_array_equal(played, tape(EZGreedy(4, 0.5, lanes=3, seed=0), 100))


# Checkpoints.


class Third:
    """Fires on every third step of a lane: a function with a state of its own."""

    def __init__(self):
        self.count = np.zeros(LANES, dtype=np.int64)

    def __call__(self, seen):
        self.count = self.count + seen.active
        return self.count % 3 == 0

    def reset(self, finished):
        self.count = np.where(finished, 0, self.count)

    def state_dict(self):
        return {"count": self.count.tolist()}

    def load_state_dict(self, state):
        self.count = np.array(state["count"])


MAKERS = {
    "unchanged": lambda: StopOnUnchanged(LANES, 2),
    "reward": lambda: StopOnReward(LANES),
    "discrepancy": lambda: StopOnDiscrepancy(LANES, rate=0.3, seed=7, first_lane=11),
    "function": lambda: StopWhen(Third(), LANES),
    "stateless": lambda: StopWhen(lambda seen: seen.rewards > 0, LANES),
    "any": lambda: AnyStop(StopOnUnchanged(LANES), StopOnDiscrepancy(LANES), StopWhen(Third(), 4)),
}


@pytest.mark.parametrize("make", MAKERS.values(), ids=MAKERS)
@pytest.mark.parametrize("saved_at", [0, 1, 37])
def test_a_saved_rule_continues_exactly(make, saved_at):
    original, restored = make(), make()
    steps = list(steps_of(150, seed=saved_at))
    for step in steps[:saved_at]:
        original(**step)
    restored.load_state_dict(json.loads(json.dumps(original.state_dict())))
    fired = 0
    for step in steps[saved_at:]:
        expected = original(**step)
        np.testing.assert_array_equal(restored(**step), expected)
        fired += expected.sum()
    assert fired > 0
    assert restored.state_dict() == original.state_dict()


@pytest.mark.parametrize("make", MAKERS.values(), ids=MAKERS)
def test_reset_and_starts_are_the_same(make):
    told, reset = make(), make()
    for step in steps_of(100):
        reset.reset(step["starts"])
        without = {name: value for name, value in step.items() if name != "starts"}
        expected = told(**step)
        found = reset(**without)
        # Only `starts` tells a rule that the reward at hand belongs to the episode before.
        np.testing.assert_array_equal(found[~step["starts"]], expected[~step["starts"]])


@pytest.mark.parametrize("make", MAKERS.values(), ids=MAKERS)
def test_lanes_are_independent(make):
    """What other lanes see changes nothing in a lane."""
    rule, other = make(), make()
    for step in steps_of(120):
        changed = {name: np.array(value) for name, value in step.items()}
        for value in changed.values():
            value[1:] = value[1:][::-1]
        assert rule(**step)[0] == other(**changed)[0]


# Bad input.


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: StopOnUnchanged(0), "lanes must be at least 1; got 0"),
        (lambda: StopOnUnchanged(1, 0), "steps must be at least 1; got 0"),
        (lambda: StopOnReward(1, np.nan), "above must be finite"),
        (lambda: StopOnDiscrepancy(1, rate=0.0), "rate must lie strictly between 0 and 1; got 0.0"),
        (lambda: StopOnDiscrepancy(1, rate=1.5), r"rate must lie in \[0, 1\]; got 1.5"),
        (lambda: StopOnDiscrepancy(1, discount=2.0), r"discount must lie in \[0, 1\]; got 2.0"),
        (lambda: StopOnDiscrepancy(1, reading="x"), "reading must be one of 'consistent', 'pr"),
        (lambda: StopWhen("x"), "function must be callable; got str 'x'"),
        (lambda: AnyStop(), "rules must be one or more"),
        (lambda: AnyStop(StopOnReward(1), StopOnReward(2)), "same number of lanes; got .1, 2."),
        (lambda: AnyStop(max), "rules must be stopping rules"),
    ],
)
def test_bad_arguments_are_refused_by_name(make, message):
    with pytest.raises((TypeError, ValueError), match=message):
        make()


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"observations": None}, "observations must be given: AnyStop reads them"),
        ({"observations": np.zeros((3, 2))}, "observations must have 4 entries"),
        ({"observations": np.zeros((4, 3))}, r"observations must have shape \(4, 2\)"),
        ({"rewards": None}, "rewards must be given"),
        ({"rewards": [1.0, np.nan, 0.0, 0.0]}, "rewards must be finite"),
        ({"rewards": ["a"] * 4}, "rewards must hold numbers"),
        ({"values": np.zeros(5)}, r"values must have shape \(4,\); got \(5,\)"),
        ({"values": [0.0, 0.0, np.inf, 0.0]}, "values must be finite"),
        ({"starts": [1, 0, 0, 0]}, "starts must be a bool array"),
        ({"active": np.ones(3, bool)}, r"active must have shape \(4,\)"),
    ],
)
def test_bad_calls_are_refused_by_name_and_change_nothing(changes, message):
    rule = AnyStop(StopOnDiscrepancy(LANES), StopOnUnchanged(LANES), StopOnReward(LANES))
    steps = list(steps_of(20))
    for step in steps[:-1]:
        rule(**step)
    state = rule.state_dict()
    with pytest.raises((TypeError, ValueError), match=message):
        rule(**(steps[-1] | changes))
    assert rule.state_dict() == state


def test_observations_of_another_shape_are_refused():
    rule = StopOnUnchanged(2)
    rule(observations=np.zeros((2, 3)))
    with pytest.raises(ValueError, match=r"observations must have shape \(2, 3\); got \(2, 4\)"):
        rule(observations=np.zeros((2, 4)))


def test_a_state_of_another_rule_is_refused():
    with pytest.raises(ValueError, match=r"state must have the keys"):
        StopOnReward(2).load_state_dict(StopOnUnchanged(2).state_dict())
    with pytest.raises(ValueError, match=r"state\['lanes'\] must equal 2; got 3"):
        StopOnReward(2).load_state_dict(StopOnReward(3).state_dict())
    with pytest.raises(ValueError, match=r"state\['steps'\] must equal 1; got 2"):
        StopOnUnchanged(2).load_state_dict(StopOnUnchanged(2, 2).state_dict())
    with pytest.raises(ValueError, match=r"state\['above'\] must equal 0; got 0.5"):
        StopOnReward(2).load_state_dict(StopOnReward(2, 0.5).state_dict())
    with pytest.raises(ValueError, match=r"state\['discount'\] must equal 0.99; got 0.9"):
        StopOnDiscrepancy(2).load_state_dict(StopOnDiscrepancy(2, discount=0.9).state_dict())
    with pytest.raises(ValueError, match=r"state\['rate'\] must equal 0.1; got 0.3"):
        StopOnDiscrepancy(2).load_state_dict(StopOnDiscrepancy(2, rate=0.3).state_dict())
    with pytest.raises(ValueError, match=r"state\['seed'\] must equal 0; got 1"):
        StopOnDiscrepancy(2).load_state_dict(StopOnDiscrepancy(2, seed=1).state_dict())
