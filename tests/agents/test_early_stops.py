"""Agents that end options by rules: what rules see, how runs continue, and who they are."""

from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np
import pytest
import torch

from ezgreedy import StopWhen
from ezgreedy.agents.early_stops import EarlyStops
from ezgreedy.agents.means import ExploredSince
from ezgreedy.agents.play import Play
from ezgreedy.agents.r2d2.presets import R2D2_PRESETS
from ezgreedy.agents.rainbow.presets import RAINBOW_EZ, RAINBOW_PRESETS
from ezgreedy.agents.registry import run_of
from ezgreedy.checkpoints.store import Checkpoints
from ezgreedy.exploration import stops
from ezgreedy.exploration.durations import Fixed
from ezgreedy.exploration.ez_greedy import EZGreedy
from ezgreedy.exploration.stops import (
    DiscrepancySettings,
    RewardSettings,
    Situation,
    StopSettings,
    UnchangedSettings,
)
from ezgreedy.games.lanes import Lanes
from ezgreedy.named_settings import written
from ezgreedy.runs.command_line import train_command
from ezgreedy.runs.settings_codec import (
    as_identified,
    as_plain,
    from_plain,
    with_later_settings,
    with_setting,
)
from ezgreedy.runs.training import Training
from support.small_runs import small_run
from support.states import bits

ALL = (UnchangedSettings(2), RewardSettings(), DiscrepancySettings(0.3, steps=2))


@pytest.fixture(autouse=True)
def one_thread():
    torch.set_num_threads(1)


def ruled_run(agent, rules, game="minatar/freeway"):
    settings = small_run(agent, game)
    return replace(settings, agent=replace(settings.agent, stops=rules, durations=Fixed(9)))


def explorer_of(agent):
    return agent.actor.explorer if hasattr(agent, "actor") else agent.explorer


@pytest.mark.parametrize("agent", ["rainbow-ez", "r2d2-ez"])
def test_a_training_with_rules_continues_to_the_bit(agent, tmp_path):
    settings = ruled_run(agent, ALL)
    training = Training(settings)
    for _ in range(40):
        training.step()
    checkpoints = Checkpoints(tmp_path, {})
    checkpoints.save(1, training.state_dict())
    continued = Training(settings)
    continued.load_state_dict(Checkpoints(tmp_path, {}).load().state)
    for _ in range(60):
        training.step()
        continued.step()
    assert bits(continued.state_dict()) == bits(training.state_dict())
    counters = explorer_of(training.agent).counters
    assert counters.cut_by_caller > 0
    measured = training.agent.measurements()
    assert measured["options_stopped"] == counters.cut_by_caller
    assert measured == continued.agent.measurements()


class Watched(StopWhen):
    """Notes what it is shown; fires never."""

    notes: ClassVar = []

    def __init__(self, lanes):
        super().__init__(self.note, lanes)
        self.reads = ("observations", "rewards", "values")

    def note(self, seen):
        self.notes.append(seen)
        return np.zeros(self.lanes, dtype=bool)


@dataclass(frozen=True)
class WatchedSettings(StopSettings):
    def rule(self, situation):
        return Watched(situation.lanes)


@pytest.mark.parametrize("agent", ["rainbow-ez", "r2d2-ez"])
def test_rules_see_the_newest_frame_the_last_reward_and_the_value(agent, monkeypatch):
    monkeypatch.setattr(Watched, "notes", [])
    training = Training(ruled_run(agent, (WatchedSettings(),)))
    plain = Training(ruled_run(agent, ()))
    rewards = []
    for _ in range(30):
        observations, starts = training.play.observations, training.play.starts
        steps = training.play.step()
        seen = Watched.notes[-1]
        planes = training.play.lanes.frame_shape[0]
        np.testing.assert_array_equal(seen.observations, observations[:, -planes:])
        np.testing.assert_array_equal(seen.starts, starts)
        if rewards:
            np.testing.assert_array_equal(seen.rewards, rewards[-1].astype(np.float32))
        rewards.append(steps.clipped_rewards)
        plain.play.step()
    assert np.abs(Watched.notes[-1].values).max() > 0.0
    # A rule that never fires leaves the actions alone, except for the noise of more values.
    if agent == "r2d2-ez":
        np.testing.assert_array_equal(plain.play.observations, training.play.observations)


def test_evaluations_ask_no_rule(monkeypatch):
    monkeypatch.setattr(Watched, "notes", [])
    for agent in ("rainbow-ez", "r2d2-ez"):
        policy = Training(ruled_run(agent, (WatchedSettings(),))).agent.evaluation_policy(2, 0)
        lanes = Lanes("minatar/freeway", 2, seed=0)
        Play(policy, lanes).step()
    assert Watched.notes == []


def test_without_rules_nothing_is_computed_or_saved():
    quiet = EarlyStops((), Situation(3))
    assert not quiet.read_values
    assert quiet(np.zeros((3, 1)), np.ones(3, bool), None) is None
    quiet.observe(np.ones(3))
    assert quiet.state_dict() is None
    quiet.load_state_dict(None)


def test_only_discrepancies_need_values_within_options():
    for made, needed in zip(ALL, (False, False, True), strict=True):
        assert EarlyStops((made,), Situation(1)).read_values is needed


def test_observations_are_saved_as_arrays_not_as_numbers():
    made = EarlyStops((UnchangedSettings(), RewardSettings()), Situation(2))
    made(np.ones((2, 4, 4), dtype=np.uint8), np.ones(2, bool), None)
    saved = made.state_dict()["rule"]["rules"][0]["before"]
    assert isinstance(saved, np.ndarray)
    assert saved.dtype == np.uint8


def test_a_discrepancy_takes_the_agents_discount_unless_it_has_its_own():
    assert DiscrepancySettings().rule(Situation(1, discount=0.9)).promise.discount == 0.9
    own = DiscrepancySettings(discount=0.5).rule(Situation(1, discount=0.9))
    assert own.promise.discount == 0.5


def test_counts_of_states_without_stopped_options_are_read():
    explore = EZGreedy(2, 1.0, Fixed(5))
    for _ in range(7):
        explore(np.zeros(1, int), ends=np.array([True]))
    since = ExploredSince(explore)
    since.restore([3, 3, 1])
    assert since.take()[:3] == (4, 4, 6)
    since.restore([3, 3])
    assert since.take() == (4, 4, 0, 0)


# As settings.


@pytest.mark.parametrize("text", ["StopOnUnchanged(2), StopOnReward(above=0.5)", ""])
@pytest.mark.parametrize("agent", ["rainbow-ez", "r2d2-ez"])
def test_rules_are_set_written_and_read(agent, text):
    run = run_of(agent, "laptop", "minatar/freeway")
    settings = with_setting(run, "agent.stops", text)
    expected = (UnchangedSettings(2), RewardSettings(0.5)) if text else ()
    assert settings.agent.stops == expected
    assert from_plain(as_plain(settings)) == settings
    if text:
        kinds = [stop["kind"] for stop in as_plain(settings)["agent"]["stops"]]
        assert kinds == ["StopOnUnchanged", "StopOnReward"]
        assert written(settings.agent.stops) == "StopOnUnchanged(steps=2), StopOnReward(above=0.5)"
        command = "--set 'agent.stops=StopOnUnchanged(steps=2), StopOnReward(above=0.5)'"
        assert command in train_command(settings)


@pytest.mark.parametrize("preset", [*RAINBOW_PRESETS.values(), R2D2_PRESETS["r2d2-ez"]])
def test_settings_of_earlier_versions_are_read_and_runs_keep_their_identity(preset):
    settings = preset.at_scale("laptop", "minatar/freeway")
    plain = as_plain(settings)
    earlier = {**plain, "agent": {k: v for k, v in plain["agent"].items() if k != "stops"}}
    assert from_plain(with_later_settings(earlier)) == settings
    assert as_identified(plain) == as_identified(earlier)
    ruled = as_plain(with_setting(settings, "agent.stops", "StopOnReward()"))
    assert as_identified(ruled) != as_identified(plain)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("StopOnUnchange(2)", r"did you mean StopOnUnchanged\?\); got 'StopOnUnchange\(2\)'"),
        ("StopOnReward", "must be a call of StopOnUnchanged, StopOnReward, StopOnDiscrepancy"),
        ("StopOnUnchanged(0)", r"=StopOnUnchanged\(0\): steps must be at least 1; got 0"),
        ("StopOnUnchanged(1.5)", "steps must be an int"),
        ("StopOnReward(nan)", "above must be finite"),
        ("StopOnDiscrepancy(1.5)", r"rate must lie in \[0, 1\]; got 1.5"),
        ("StopOnDiscrepancy(0)", "rate must lie strictly between 0 and 1; got 0"),
        ("StopOnDiscrepancy(0.1, gamma=1)", "give StopOnDiscrepancy rate, steps, discount, read"),
        ("Zeta(2)", "must be a call of StopOnUnchanged"),
    ],
)
def test_rules_that_cannot_be_had_are_refused_by_name(text, message):
    settings = run_of("rainbow-ez", "laptop", "minatar/freeway")
    with pytest.raises((TypeError, ValueError), match=message):
        with_setting(settings, "agent.stops", text)


def test_an_agent_takes_settings_of_rules_and_nothing_else():
    with pytest.raises(TypeError, match="stops must be a tuple of settings of stopping rules"):
        replace(RAINBOW_EZ, stops=("StopOnReward()",))
    with pytest.raises(TypeError, match="stops must be a tuple"):
        replace(R2D2_PRESETS["r2d2"], stops=[RewardSettings()])


def test_a_rule_of_ones_own_is_named_like_ours(monkeypatch):
    monkeypatch.setattr(stops, "_stops", dict(stops._stops))

    @dataclass(frozen=True)
    class StopOnLoss(StopSettings):
        bound: float = 0.0

        def rule(self, situation):
            return StopWhen(lambda seen: seen.rewards < -self.bound, situation.lanes)

    settings = run_of("rainbow-ez", "laptop", "minatar/freeway")
    with pytest.raises(ValueError, match="StopOnLoss"):
        with_setting(settings, "agent.stops", "StopOnLoss(0.5)")
    assert stops.register(StopOnLoss) is StopOnLoss
    settings = with_setting(settings, "agent.stops", "StopOnLoss(0.5), StopOnReward()")
    assert settings.agent.stops == (StopOnLoss(0.5), RewardSettings())
    assert from_plain(as_plain(settings)) == settings
    with pytest.raises(ValueError, match="settings must have a name other than"):
        stops.register(replace_name(StopOnLoss))
    with pytest.raises(TypeError, match="settings must be a dataclass derived from StopSettings"):
        stops.register(StopWhen)


def replace_name(made):
    """Another class of the same name."""
    return dataclass(frozen=True)(type(made.__name__, (StopSettings,), {"rule": made.rule}))
