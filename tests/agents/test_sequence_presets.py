"""The paper's R2D2 agents: the table row by row, and nothing else that differs."""

import subprocess
import sys
from dataclasses import fields, replace

import pytest

from ezgreedy.agents.sequence_presets import (
    R2D2,
    R2D2_BOOTSTRAP,
    R2D2_EZ,
    R2D2_RND,
    SEQUENCE_PRESETS,
)
from ezgreedy.atari.protocol import R2D2_PROTOCOL
from ezgreedy.exploration.durations import Fixed, Zeta
from ezgreedy.intrinsic.rnd_settings import DistillationSettings
from ezgreedy.running.plain import as_plain, from_plain, with_setting
from ezgreedy.running.scales import laptop_scale, paper_scale, preset


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
    settings = paper_scale(R2D2, "Pong")
    assert (settings.frames, settings.lanes) == (30 * 10**9, 320)
    assert settings.protocol == R2D2_PROTOCOL
    assert settings.agent == R2D2


@pytest.mark.parametrize(
    ("variant", "expected"),
    [
        (R2D2, {}),
        (R2D2_RND, {"distillation": DistillationSettings()}),
        (R2D2_BOOTSTRAP, {"num_heads": 8}),
        (R2D2_EZ, {"durations": Zeta(mu=2.0, cap=10_000)}),
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
    assert preset(variant.name) is variant


@pytest.mark.parametrize("name", SEQUENCE_PRESETS)
@pytest.mark.parametrize("game", ["Pong", "minatar/freeway", "memory_chain/10", "deep_sea/10"])
@pytest.mark.parametrize("scale", [paper_scale, laptop_scale])
def test_settings_survive_being_written_down(name, game, scale):
    settings = scale(SEQUENCE_PRESETS[name], game)
    assert from_plain(as_plain(settings)) == settings
    assert settings.agent.durations == SEQUENCE_PRESETS[name].durations
    assert settings.agent.num_heads == SEQUENCE_PRESETS[name].num_heads
    assert (settings.agent.distillation is None) == (name != "r2d2-rnd")
    assert settings.protocol.reward_bound is None
    assert not settings.protocol.zeroes_discount_on_life_loss


def test_the_length_of_windows_is_said_once():
    settings = with_setting(laptop_scale(R2D2, "Pong"), "agent.learner.length", "120")
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
        ({"memory_size": 0}, r"^memory_size must be at least 1"),
        ({"num_heads": 9}, r"^num_heads must be at most 8"),
        ({"padding": "full"}, r"^padding must be one of"),
    ],
    ids=lambda value: next(iter(value)) if isinstance(value, dict) else "",
)
def test_presets_of_sequences_are_checked(changes, message):
    with pytest.raises(ValueError, match=message):
        replace(R2D2, **changes)


def test_lives_that_end_the_future_are_refused():
    settings = laptop_scale(R2D2, "Pong")
    with pytest.raises(ValueError, match="zeroes_discount_on_life_loss must be False for r2d2"):
        with_setting(settings, "protocol.zeroes_discount_on_life_loss", "yes")


def test_presets_of_sequences_are_read_without_torch():
    code = (
        "import sys, ezgreedy.agents.sequence_presets\n"
        "assert not {'torch', 'numba', 'gymnasium', 'ale_py'} & set(sys.modules)\n"
        "import ezgreedy.running.scales\n"
        "assert 'torch' not in sys.modules\n"
    )
    result = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=120, check=False
    )
    assert result.returncode == 0, result.stderr
