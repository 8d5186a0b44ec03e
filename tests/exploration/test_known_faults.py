"""The faults of public implementations, each as a check that an implementation having it fails.

Every check runs three times: our policy and a plain correct one must pass, and a small policy with
just that fault must not. Fault 14 (a recurrent state that stands still during an option) concerns
agents, not this room: here greedy actions come as an array, for which a network sees every step.
"""

import json

import numpy as np
import pytest

from ezgreedy import EZGreedy, Fixed, Zeta, exploratory_share, matched_epsilon
from support.statistics import assert_follows


class Plain:
    """A correct per-lane εz-greedy of a few lines; faults are one-line changes of it."""

    def __init__(self, num_actions, epsilon, durations=None, lanes=1, seed=0):
        self.num_actions, self.epsilon, self.lanes = num_actions, epsilon, lanes
        self.durations = durations or Zeta()
        self.rngs = [np.random.default_rng([seed, lane]) for lane in range(lanes)]
        self.left, self.held = np.zeros(lanes, int), np.zeros(lanes, int)
        self.exploring, self.probabilities = np.zeros(lanes, bool), np.ones(lanes)

    def __call__(self, greedy, legal=None):
        actions = np.array(greedy)
        for i in range(self.lanes):
            if self.left[i] and not self.allowed(i, legal):
                self.left[i] = 0
            self.exploring[i] = self.left[i] > 0 or self.coin(i) < self.epsilon
            deciding = self.left[i] == 0
            if self.exploring[i] and deciding:
                self.left[i] = self.plays(i)
                choices = np.arange(self.num_actions) if legal is None else np.flatnonzero(legal[i])
                self.held[i] = self.draw_action(i, choices, greedy[i])
            if self.exploring[i]:
                actions[i] = self.held[i]
                self.left[i] -= 1
            chance = self.epsilon / self.num_actions + (1 - self.epsilon) * (
                actions[i] == greedy[i]
            )
            self.probabilities[i] = chance if deciding else 1.0
        return actions

    def allowed(self, i, legal):
        return legal is None or legal[i, self.held[i]]

    def coin(self, i):
        return self.rngs[i].random()

    def plays(self, i):
        return int(self.durations.quantile(self.rngs[i].random(1))[0])

    def draw_action(self, i, choices, greedy):
        return self.rngs[i].choice(choices)

    def reset(self, finished):
        self.left[finished] = 0

    def state_dict(self):
        return {
            "left": self.left.tolist(),
            "held": self.held.tolist(),
            "rngs": [rng.bit_generator.state for rng in self.rngs],
        }

    def load_state_dict(self, state):
        self.left, self.held = np.array(state["left"]), np.array(state["held"])
        for rng, saved in zip(self.rngs, state["rngs"], strict=True):
            rng.bit_generator.state = saved


def runs_from_start(make, durations, lanes=400):
    """Lengths of the first option of each lane, at ε = 1 with very many actions."""
    explore = make(10_000, 1.0, durations, lanes)
    first = explore(np.zeros(lanes, int))
    lengths, alive = np.ones(lanes, int), np.ones(lanes, bool)
    for _ in range(40):
        alive &= explore(np.zeros(lanes, int)) == first
        lengths += alive
    return lengths


def check_plays_n(make):
    assert set(runs_from_start(make, Fixed(3))) == {3}


def durations_of(make, durations, lanes=5000, steps=1):
    """Durations as begun: plays left on the first step of ε = 1, plus that step."""
    explore = make(4, 1.0, durations, lanes)
    explore(np.zeros(lanes, int))
    left = explore.remaining if hasattr(explore, "remaining") else explore.left
    return left + 1


def check_stays_within_the_cap(make):
    assert durations_of(make, Zeta(cap=100), lanes=20_000).max() <= 100


def check_truncates(make):
    law, n = Zeta(cap=100), np.arange(101)
    clipped = Zeta(cap=100, tail="clip").pmf(n)
    assert_follows(durations_of(make, law, 50_000), law.pmf(n), {"clip": clipped})


def check_follows_zeta(make):
    law = Zeta(cap=100)
    assert_follows(durations_of(make, law, 20_000), law.pmf(np.arange(101)))


def check_default_cap_is_the_papers(make):
    longest = durations_of(make, None, 20_000).max()
    assert longest > 100, f"no option longer than {longest} among 20,000"


def check_ends_with_the_episode(make):
    explore = make(1000, 1.0, Fixed(50), 50)
    before = explore(np.zeros(50, int))
    explore.reset(np.ones(50, bool))
    assert (explore(np.zeros(50, int)) != before).mean() > 0.9


def check_resets_only_finished_lanes(make):
    explore = make(1000, 1.0, Fixed(50), 50)
    before = explore(np.zeros(50, int))
    finished = np.arange(50) < 25
    explore.reset(finished)
    after = explore(np.zeros(50, int))
    assert (after[25:] == before[25:]).all()


def check_lanes_toss_their_own_coins(make):
    explore = make(4, 0.5, Fixed(1), 8)
    together = 0
    for _ in range(400):
        explore(np.zeros(8, int))
        together += np.all(explore.exploring) or not np.any(explore.exploring)
    assert together / 400 < 0.1  # 2⁻⁷ expected; one shared coin would give 1


def check_seed_decides_everything(make):
    np.random.seed(1)  # noqa: TID251, NPY002 (a fault would listen to it)
    first = [make(18, 0.5, None, 4, 7)(np.zeros(4, int)).tolist() for _ in range(20)]
    np.random.seed(2)  # noqa: TID251, NPY002
    assert first == [make(18, 0.5, None, 4, 7)(np.zeros(4, int)).tolist() for _ in range(20)]


def check_leaves_the_global_generator_alone(make):
    before = str(np.random.get_state())  # noqa: NPY002 (only read)
    explore = make(18, 0.5, None, 4)
    for _ in range(50):
        explore(np.zeros(4, int))
    assert str(np.random.get_state()) == before  # noqa: NPY002


def check_explores_away_from_greedy(make):
    explore = make(10, 1.0, Fixed(2), 200)
    assert (explore(np.zeros(200, int)) != 0).mean() > 0.7


def check_returns_what_is_executed(make):
    # A replay stores the returned action, so the option's play must be in it, not behind it.
    explore = make(10_000, 1.0, Fixed(5), 50)
    stored = np.array([explore(np.zeros(50, int)) for _ in range(5)])
    assert (stored == stored[0]).all()
    assert (stored != 0).mean() > 0.99


def check_evaluation_is_untouched_by_training(make):
    training, evaluation = make(10_000, 1.0, Fixed(50), 20, 0), make(10_000, 0.0, Fixed(50), 20, 1)
    training(np.zeros(20, int))
    assert (evaluation(np.zeros(20, int)) == 0).all()


def check_never_plays_a_masked_action(make):
    explore, rng = make(6, 0.8, Zeta(cap=20), 10), np.random.default_rng(0)
    for _ in range(300):
        legal = rng.random((10, 6)) < 0.5
        legal[:, 0] = True
        actions = explore(np.zeros(10, int), legal=legal)
        assert legal[np.arange(10), actions].all()


def check_resumes_inside_an_option(make):
    original, resumed = make(18, 0.5, None, 8, 3), make(18, 0.5, None, 8, 3)
    for _ in range(20):
        original(np.zeros(8, int))
    resumed.load_state_dict(json.loads(json.dumps(original.state_dict())))
    for _ in range(100):
        assert (original(np.zeros(8, int)) == resumed(np.zeros(8, int))).all()


def check_reports_probabilities(make):
    explore = make(4, 0.4, Fixed(3), 500)
    for _ in range(6):
        actions = explore(np.zeros(500, int))
        inside = explore.probabilities == 1.0
        expected = np.where(actions == 0, 0.7, 0.1)
        np.testing.assert_allclose(explore.probabilities[~inside], expected[~inside])
    assert 0.2 < inside.mean() < 0.9


def check_durations_are_drawn_only_when_an_option_begins(make):
    # ε-greedy and εz-greedy with unit durations must toss the same coins, and looking at a law
    # that is never used must not move them.
    tapes = []
    for law in (Fixed(1), Zeta(cap=1)):
        explore = make(18, 0.2, law, 6, 5)
        tapes.append([explore(np.zeros(6, int)).tolist() for _ in range(200)])
    assert tapes[0] == tapes[1]


class NPlusOne(Plain):
    def plays(self, i):
        return super().plays(i) + 1


class Uncapped(Plain):
    def plays(self, i):
        return int(self.rngs[i].zipf(2.0))


class Clipped(Plain):
    def plays(self, i):
        return min(int(self.rngs[i].zipf(2.0)), self.durations.cap)


class Reciprocal(Plain):
    def plays(self, i):
        return min(int(1.0 / (1.0 - self.rngs[i].random())), self.durations.cap)


class NoReset(Plain):
    def reset(self, finished):
        pass


class ResetsEveryone(Plain):
    def reset(self, finished):
        self.left[:] = 0


class OneCoin(Plain):
    def coin(self, i):
        if i == 0:
            self.shared = self.rngs[0].random()
        return self.shared


class GlobalRandom(Plain):
    def coin(self, i):
        return np.random.random()  # noqa: TID251, NPY002 (the fault)


class RepeatsGreedy(Plain):
    def draw_action(self, i, choices, greedy):
        return greedy


class Wrapper(Plain):
    def __call__(self, greedy, legal=None):
        self.executed = super().__call__(greedy, legal)
        return greedy  # the learner stores what it sent


class Leaks(Plain):
    shared_left: np.ndarray = np.zeros(20, int)
    shared_held: np.ndarray = np.zeros(20, int)

    def __call__(self, greedy, legal=None):
        self.left, self.held = Leaks.shared_left, Leaks.shared_held
        return super().__call__(greedy, legal)


class RepeatsMasked(Plain):
    def allowed(self, i, legal):
        return True


class Forgets(Plain):
    def load_state_dict(self, state):
        super().load_state_dict(state | {"left": [0] * self.lanes})


class TinyCap(Plain):
    def plays(self, i):
        return min(super().plays(i), 8)


class NoProbabilities(Plain):
    def __call__(self, greedy, legal=None):
        actions = super().__call__(greedy, legal)
        self.probabilities[:] = 1.0
        return actions


class DrawsAlways(Plain):
    def __call__(self, greedy, legal=None):
        for rng in self.rngs:
            if self.durations.cap == 1 and not isinstance(self.durations, Fixed):
                rng.random()
        return super().__call__(greedy, legal)


FAULTS = [
    ("1 plays n + 1 times", check_plays_n, NPlusOne),
    ("2 uncapped zipf", check_stays_within_the_cap, Uncapped),
    ("3 clips where truncation is said", check_truncates, Clipped),
    ("4 floor(1/u) for zeta", check_follows_zeta, Reciprocal),
    ("5 no reset at episode ends", check_ends_with_the_episode, NoReset),
    ("6a one option counter for all", check_resets_only_finished_lanes, ResetsEveryone),
    ("6b one coin for all", check_lanes_toss_their_own_coins, OneCoin),
    ("7a unseeded", check_seed_decides_everything, GlobalRandom),
    ("7b global generator", check_leaves_the_global_generator_alone, GlobalRandom),
    ("8 repeats the greedy action", check_explores_away_from_greedy, RepeatsGreedy),
    ("9 the stored action is not the executed one", check_returns_what_is_executed, Wrapper),
    ("10 leaks into evaluation", check_evaluation_is_untouched_by_training, Leaks),
    ("11 repeats a masked action", check_never_plays_a_masked_action, RepeatsMasked),
    ("12 missing from checkpoints", check_resumes_inside_an_option, Forgets),
    ("13 a tiny cap", check_default_cap_is_the_papers, TinyCap),
    ("16 no probabilities", check_reports_probabilities, NoProbabilities),
    ("17 draws always", check_durations_are_drawn_only_when_an_option_begins, DrawsAlways),
]
each_fault = pytest.mark.parametrize(
    ("check", "faulty"), [row[1:] for row in FAULTS], ids=[row[0] for row in FAULTS]
)


def make_ours(num_actions, epsilon, durations=None, lanes=1, seed=0):
    return EZGreedy(num_actions, epsilon, durations, lanes, seed)


@each_fault
def test_our_policy_is_free_of_it(check, faulty):
    check(make_ours)


@each_fault
def test_a_policy_that_has_it_is_caught(check, faulty):
    with pytest.raises(AssertionError):
        check(faulty)


@each_fault
def test_a_correct_policy_of_another_make_passes(check, faulty):
    check(Plain)


def test_equal_epsilon_is_not_equal_budget_but_matched_epsilon_is():
    # Fault 15: comparing ε- and εz-greedy at the same ε compares 10 % with 40 % of steps.
    law, lanes = Zeta(cap=100), 1000
    shares = {}
    for name, policy in {
        "eps": EZGreedy(4, 0.1, Fixed(1), lanes),
        "ez": EZGreedy(4, 0.1, law, lanes),
        "matched": EZGreedy(4, matched_epsilon(0.1, law), law, lanes),
    }.items():
        for _ in range(2000):
            policy(np.zeros(lanes, int))
        shares[name] = policy.counters.explored / policy.counters.steps
    assert abs(shares["eps"] - 0.1) < 0.002
    assert abs(shares["ez"] - exploratory_share(0.1, law)) < 0.01
    assert abs(shares["matched"] - 0.1) < 0.004
