"""The paper's Rainbow agents: the table row by row, and nothing else that differs."""

import subprocess
import sys
from dataclasses import fields, is_dataclass, replace

import numpy as np
import pytest

from ezgreedy.agents.rainbow.presets import (
    RAINBOW,
    RAINBOW_CTS,
    RAINBOW_EPS,
    RAINBOW_EZ,
    RAINBOW_EZ_BUDGET,
    RAINBOW_EZ_SIGMA05,
    RAINBOW_PRESETS,
    RAINBOW_SIGMA05,
)
from ezgreedy.exploration.durations import Fixed, Zeta, exploratory_share
from ezgreedy.exploration.schedules import Linear
from ezgreedy.replay.importance import ImportanceExponent

FRAMES_A_STEP = 4
EPSILONS = {
    "epsilon": Linear(1.0, 0.01, 1_000_000, first_step=20_000),
    "evaluation_epsilon": 0.001,
}


def differences(preset, base=RAINBOW):
    """Every setting of a preset that is not the base's, settings of parts by dotted names."""
    found = {}
    for field in fields(base):
        ours, theirs = getattr(preset, field.name), getattr(base, field.name)
        if field.name == "name" or ours == theirs:
            continue
        if is_dataclass(theirs) and type(ours) is type(theirs):
            parts = differences(ours, theirs)
            found |= {f"{field.name}.{name}": value for name, value in parts.items()}
        else:
            found[field.name] = ours
    return found


def test_the_base_is_the_table_of_the_paper():
    learner = RAINBOW.learner
    assert RAINBOW.replay_capacity == 10**6
    assert RAINBOW.priority_exponent == 0.5
    assert (learner.num_steps, learner.discount, learner.batch_size) == (3, 0.99, 32)
    assert (learner.learning_rate, learner.adam_epsilon) == (6.25e-5, 1.5e-4)
    assert (RAINBOW.epsilon, RAINBOW.evaluation_epsilon) == (0.0, 0.0)
    exponent = RAINBOW.importance_exponent
    assert (exponent.start, exponent.end) == (0.4, 1.0)
    assert exponent == ImportanceExponent()
    assert (learner.largest_gradient_norm, learner.uses_double_q) == (10.0, True)


def test_counts_of_steps_and_updates_are_the_frames_of_the_paper():
    frames_an_update = FRAMES_A_STEP * RAINBOW.steps_per_update
    assert RAINBOW.learner.updates_per_target_sync * frames_an_update == 32_000
    assert RAINBOW.least_replay * FRAMES_A_STEP == 80_000
    assert RAINBOW.importance_exponent.last_addition * FRAMES_A_STEP == 200_000_000
    assert RAINBOW_EPS.epsilon.steps * FRAMES_A_STEP == 4_000_000


@pytest.mark.parametrize(
    ("preset", "expected"),
    [
        (RAINBOW, {}),
        (RAINBOW_EPS, EPSILONS),
        (RAINBOW_EZ, EPSILONS | {"durations": Zeta(mu=2.0, cap=100)}),
        (
            RAINBOW_CTS,
            EPSILONS
            | {
                "learner.num_steps": 5,
                "learner.updates_per_target_sync": 1,
                "bonus_scale": 0.0005,
                "sigma0": None,
            },
        ),
    ],
    ids=lambda value: getattr(value, "name", ""),
)
def test_variants_differ_from_the_base_in_the_bold_rows_alone(preset, expected):
    assert differences(preset) == expected


def test_presets_are_found_by_name():
    names = ["rainbow", "rainbow-eps", "rainbow-ez", "rainbow-ez-budget", "rainbow-cts"]
    names += ["rainbow-sigma05", "rainbow-ez-sigma05"]
    assert list(RAINBOW_PRESETS) == names
    assert all(RAINBOW_PRESETS[name].name == name for name in RAINBOW_PRESETS)
    assert [preset.learner.has_target_network for preset in RAINBOW_PRESETS.values()] == [
        True,
        True,
        True,
        True,
        False,
        True,
        True,
    ]


def test_controls_differ_from_their_agent_in_the_noise_alone():
    assert RAINBOW.sigma0 == RAINBOW_EZ.sigma0 == 0.1
    assert differences(RAINBOW_SIGMA05) == {"sigma0": 0.5}
    assert differences(RAINBOW_EZ_SIGMA05, RAINBOW_EZ) == {"sigma0": 0.5}
    for preset in (RAINBOW_SIGMA05, RAINBOW_EZ_SIGMA05):
        for scale in preset.scales:
            assert preset.at_scale(scale, "Freeway").agent.sigma0 == 0.5


def test_rainbow_itself_always_acts_greedily():
    explore = RAINBOW.explorer(num_actions=4, lanes=3, seed=0)
    for step in range(50):
        greedy = np.full(3, step % 4)
        np.testing.assert_array_equal(explore(greedy), greedy)


@pytest.mark.parametrize("preset", RAINBOW_PRESETS.values(), ids=list(RAINBOW_PRESETS))
def test_explorers_have_the_preset_s_law(preset):
    training = preset.explorer(6, seed=3)
    evaluating = preset.explorer(6, lanes=2, seed=3, evaluates=True)
    if not preset.matches_budget:
        assert training.epsilon == preset.epsilon
        assert evaluating.epsilon == preset.evaluation_epsilon
    assert training.durations == evaluating.durations == preset.durations
    assert (training.lanes, evaluating.lanes, training.num_actions) == (1, 2, 6)
    has_repeats = preset in (RAINBOW_EZ, RAINBOW_EZ_BUDGET, RAINBOW_EZ_SIGMA05)
    assert (preset.durations == RAINBOW_EZ.durations) == has_repeats
    assert has_repeats or preset.durations == Fixed(1)


def test_an_equal_budget_has_the_share_of_exploratory_steps_that_epsilon_has():
    training = RAINBOW_EZ_BUDGET.explorer(6, seed=3)
    evaluating = RAINBOW_EZ_BUDGET.explorer(6, seed=3, evaluates=True)
    law = RAINBOW_EZ.durations
    for step in (0, 20_000, 300_000, 1_000_000, 5_000_000):
        share = exploratory_share(training.epsilon(step), law)
        assert share == pytest.approx(RAINBOW_EPS.epsilon(step))
    assert exploratory_share(evaluating.epsilon, law) == pytest.approx(0.001)


def test_a_schedule_counts_the_steps_of_all_lanes_together():
    alone, among_four = (RAINBOW_EZ.explorer(5, lanes=lanes) for lanes in (1, 4))
    for step in (0, 20_000, 300_000, 2_000_000):
        assert among_four.epsilon(step // 4) == alone.epsilon(step)


@pytest.mark.parametrize(
    "changes",
    [
        {"epsilon": 1.5},
        {"evaluation_epsilon": -0.1},
        {"sigma0": -0.1},
        {"bonus_scale": float("nan")},
        {"replay_capacity": 0},
        {"steps_per_update": 0},
        {"priority_exponent": -1.0},
        {"bonus_form": "counts"},
        {"least_replay": 1_000_001},
    ],
    ids=lambda changes: next(iter(changes)),
)
def test_presets_are_checked(changes):
    with pytest.raises(ValueError, match=f"^{next(iter(changes))} must"):
        replace(RAINBOW, **changes)


def test_presets_are_read_without_torch():
    code = "import sys, ezgreedy.agents.rainbow.presets\nassert 'torch' not in sys.modules"
    result = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=False
    )
    assert result.returncode == 0, result.stderr
