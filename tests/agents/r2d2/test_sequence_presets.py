"""The paper's R2D2 agents: the table row by row, and nothing else that differs."""

import subprocess
import sys
from dataclasses import fields, replace

import pytest

from ezgreedy.agents.r2d2.presets import (
    R2D2,
    R2D2_BOOTSTRAP,
    R2D2_EZ,
    R2D2_PRESETS,
    R2D2_RND,
    R2D2_RND_LITERAL,
    R2D2_TANH,
)
from ezgreedy.agents.registry import agent
from ezgreedy.exploration.durations import Fixed, Zeta
from ezgreedy.games.protocol import R2D2_PROTOCOL
from ezgreedy.intrinsic.settings import WORKING, DistillationSettings
from ezgreedy.runs.settings_codec import as_plain, from_plain, with_later_settings, with_setting


def test_the_base_is_the_table_of_the_paper():
    learner, returns = R2D2.learner, R2D2.returns
    assert (learner.length, learner.burn_in, R2D2.stride) == (80, 20, 40)
    assert (R2D2.replay_capacity, R2D2.sequences.stride) == (4_000_000, 40)
    assert (R2D2.priority_exponent, R2D2.importance_exponent) == (0.9, 0.6)
    assert (returns.form, returns.decay, returns.discount) == ("peng", 0.7, 0.997)
    assert (learner.batch_size, learner.learning_rate, learner.adam_epsilon) == (64, 2e-4, 1e-3)
    assert learner.updates_per_target_sync == 400
    assert (R2D2.feature_size, R2D2.memory_size, R2D2.hidden_size) == (512, 512, 512)
    assert (R2D2.samples_per_insert, R2D2.least_windows) == (0.77, 6_250)
    assert R2D2.durations == Fixed(1)
    epsilons = R2D2.epsilons(320)
    assert (epsilons[0], epsilons[-1]) == (0.4, pytest.approx(0.4**8))
    settings = R2D2.at_scale("paper", "Pong")
    assert (settings.frames, settings.lanes) == (30 * 10**9, 320)
    assert settings.protocol == R2D2_PROTOCOL
    assert settings.agent == R2D2


@pytest.mark.parametrize(
    ("variant", "expected"),
    [
        (R2D2, {}),
        (R2D2_RND, {"distillation": WORKING}),
        (R2D2_RND_LITERAL, {"distillation": DistillationSettings()}),
        (R2D2_BOOTSTRAP, {"num_heads": 8}),
        (R2D2_EZ, {"durations": Zeta(mu=2.0, cap=10_000)}),
        (R2D2_TANH, {"reward_input": "tanh"}),
    ],
    ids=lambda value: getattr(value, "name", ""),
)
def test_variants_differ_from_the_base_in_one_thing(variant, expected):
    found = {
        field.name: getattr(variant, field.name)
        for field in fields(variant)
        if field.name != "name" and getattr(variant, field.name) != getattr(R2D2, field.name)
    }
    assert found == expected
    assert agent(variant.name) is variant


def test_evaluations_take_less_time_than_a_fleet_plays_between_them():
    for name in R2D2_PRESETS:
        settings = R2D2_PRESETS[name].at_scale("paper", "Pong")
        evaluation = settings.evaluation
        assert (evaluation.frames_between, evaluation.frames) == (10**8, 500_000)
        assert evaluation.num_due(settings.frames, settings.frames) == 301
        # At the speeds of docs/scaling.md and with one evaluator, play never waits.
        assert evaluation.frames / 742 < evaluation.frames_between / 83_000
        assert R2D2_PRESETS[name].at_scale("laptop", "Pong").evaluation.frames_between == 100_000


@pytest.mark.parametrize("name", R2D2_PRESETS)
@pytest.mark.parametrize("game", ["Pong", "minatar/freeway", "memory_chain/10", "deep_sea/10"])
@pytest.mark.parametrize("scale", ["paper", "laptop"])
def test_settings_survive_being_written_down(name, game, scale):
    settings = R2D2_PRESETS[name].at_scale(scale, game)
    assert from_plain(as_plain(settings)) == settings
    assert settings.agent.durations == R2D2_PRESETS[name].durations
    assert settings.agent.num_heads == R2D2_PRESETS[name].num_heads
    assert (settings.agent.distillation is None) == (not name.startswith("r2d2-rnd"))
    assert settings.protocol.reward_bound is None
    assert not settings.protocol.zeroes_discount_on_life_loss


def test_runs_from_before_whitening_are_read_as_they_were():
    settings = R2D2_RND_LITERAL.at_scale("laptop", "minatar/breakout")
    settings = replace(settings, agent=replace(settings.agent, name="r2d2-rnd"))
    plain = as_plain(settings)
    for name in (
        "adam_epsilon",
        "whitening_bound",
        "whitening_observations",
        "initialisation",
        "warm_up_updates",
        "error_memory",
        "in_first_priorities",
    ):
        del plain["agent"]["distillation"][name]
    assert from_plain(with_later_settings(plain)) == settings
    assert settings.agent.distillation != R2D2_RND.distillation


def test_the_length_of_windows_is_said_once():
    settings = with_setting(R2D2.at_scale("laptop", "Pong"), "agent.learner.length", "120")
    assert settings.agent.sequences.length == 120
    with pytest.raises(ValueError, match="length must be a multiple of stride"):
        with_setting(settings, "agent.learner.length", "70")
    with pytest.raises(ValueError, match="burn_in must be at most stride"):
        with_setting(settings, "agent.learner.burn_in", "41")


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"ladder_base": 1.5}, r"^ladder_base must lie"),
        ({"ladder_exponent": -1.0}, r"^ladder_exponent must"),
        ({"mask_probability": 2.0}, r"^mask_probability must"),
        ({"evaluation_epsilon": -0.1}, r"^evaluation_epsilon must"),
        ({"samples_per_insert": 0.0}, r"^samples_per_insert must be positive"),
        ({"replay_capacity": 39}, r"^replay_capacity must be at least 40"),
        ({"least_windows": 100_001}, r"^least_windows must be at most .* which is 100000"),
        ({"priority_exponent": -1.0}, r"^priority_exponent must"),
        ({"importance_exponent": 1.1}, r"^importance_exponent must"),
        ({"replay_bytes_per_observation": 0}, r"^replay_bytes_per_observation must be at least 1"),
        ({"memory_size": 0}, r"^memory_size must be at least 1"),
        ({"num_heads": 9}, r"^num_heads must be at most 8"),
        ({"padding": "full"}, r"^padding must be one of"),
    ],
    ids=lambda value: next(iter(value)) if isinstance(value, dict) else "",
)
def test_presets_of_sequences_are_checked(changes, message):
    with pytest.raises(ValueError, match=message):
        replace(R2D2, **changes)


def test_a_replay_that_holds_less_than_asked_is_reported_with_what_would_be_needed():
    full = {"windows_held": 6_250.0, "effective_replay_capacity": 4e6}
    assert R2D2.warning(full) is None
    short = {**full, "effective_replay_capacity": 1.6e6}
    assert R2D2.warning(short) == (
        "the replay has room for about 1,600,000 of 4,000,000 observations; with "
        "agent.replay_bytes_per_observation=1750 instead of 700 it would hold them all"
    )
    assert R2D2.warning({**short, "windows_held": 6_249.0}) is None  # too early to say
    assert R2D2.warning({**full, "effective_replay_capacity": 3_999_960.0}) is None  # whole windows
    assert R2D2.warning({}) is None


def test_lives_that_end_the_future_are_refused():
    settings = R2D2.at_scale("laptop", "Pong")
    with pytest.raises(ValueError, match="zeroes_discount_on_life_loss must be False for r2d2"):
        with_setting(settings, "protocol.zeroes_discount_on_life_loss", "yes")


def test_presets_of_sequences_are_read_without_torch():
    code = (
        "import sys, ezgreedy.agents.r2d2.presets\n"
        "assert not {'torch', 'numba', 'gymnasium', 'ale_py'} & set(sys.modules)\n"
        "import ezgreedy.agents.registry\n"
        "assert 'torch' not in sys.modules\n"
    )
    result = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=120, check=False
    )
    assert result.returncode == 0, result.stderr
