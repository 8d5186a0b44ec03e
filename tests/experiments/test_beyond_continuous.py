"""Noise in continuous worlds: how it is judged, and worlds that are dm_control's own."""

import os
from dataclasses import replace

import numpy as np
import pytest

os.environ.setdefault("MUJOCO_GL", "disabled")  # dm_control looks for a display when imported

from dm_control import suite
from scipy.stats import ttest_rel

from ezgreedy.experiments import registry
from ezgreedy.experiments.beyond import continuous, control_suite
from ezgreedy.experiments.experiment import Record

ID = "beyond-continuous"
STEPS = {"car": 100, "pole": 100, "ball": 100}
SETTINGS = {**continuous.SETTINGS, "num_points": 4, "num_steps": STEPS}
SETTINGS["num_bins"] = {"car": 2, "pole": 2, "ball": 2}
OFFSETS = (0.0, 3.0, -1.0, 2.0, 5.0)  # one for each seed


def summary_of(levels, rewards=None):
    """Every noise has its mean first visit in every world."""
    records = []
    for world in SETTINGS["worlds"]:
        for noise in continuous.NOISES:
            level = levels.get((world, noise), levels.get(noise, 50.0))
            for seed, offset in enumerate(OFFSETS):
                reward = (rewards or {}).get(noise, 100)
                result = {
                    "first_visits": [0, 2 * level, level + offset, level - offset + offset / 2],
                    "covered": [0.25, 0.5, 0.5, 0.75],
                    "first_reward": reward - seed if reward < 100 else 100,
                    "power": 0.32,
                }
                records.append(Record(f"{world}, {noise}", {}, seed, result))
    return continuous.summarise(SETTINGS, records)


def test_it_is_run_only_when_it_is_named_and_says_what_it_needs(monkeypatch):
    experiment = registry.experiments()[ID]
    assert ID not in [other.id for other in registry.find([])]
    experiment.check_installed()
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(ValueError, match=r"needs dm_control, which is not installed .*oracles\]"):
        experiment.check_installed()


def test_each_world_is_judged_on_its_own():
    levels = {"white": 50.0, "held": 40.0, ("ball", "held"): 60.0, "pink": 60.0}
    uniform, held, pink, ou, as_soon, paid = summary_of(levels).claims
    assert list(held.readings.values()) == ["holds", "holds", "contradicted"]
    assert held.verdict == "reading-dependent"
    assert set(pink.readings.values()) == {"contradicted"}
    assert set(ou.readings.values()) == set(uniform.readings.values()) == {"undecided"}  # equal
    assert set(as_soon.readings.values()) == {"holds"}
    assert set(paid.readings.values()) == {"undecided"}  # no trial was ever paid


def test_held_noise_may_be_a_tenth_later_than_pink_noise():
    sides = [
        summary_of({"held": level, "pink": 50.0}).claims[4].readings.values()
        for level in (54.0, 56.0)
    ]
    assert [set(side) for side in sides] == [{"holds"}, {"contradicted"}]


def test_first_rewards_are_compared_seed_by_seed():
    claim = summary_of({}, rewards={"held": 40, "white": 80}).claims[5]
    assert set(claim.readings.values()) == {"holds"}
    held, white = (np.arange(level, level - 5, -1) for level in (40, 80))
    ratio = held.mean() / white.mean()
    scaled = ttest_rel(held, ratio * white).confidence_interval()
    interval = claim.numbers["MountainCarContinuous-v0: ratio held/white"]
    assert interval.value == pytest.approx(ratio)
    assert interval.high - ratio == pytest.approx(scaled.high / white.mean())


def test_trials_that_are_paid_are_counted():
    rows = summary_of({}, rewards={"held": 40}).tables[0].rows
    assert [row[4] for row in rows[:6]] == [*["0 of 5"] * 3, "5 of 5", *["0 of 5"] * 2]


@pytest.mark.parametrize("noise", continuous.NOISES)
def test_all_have_the_power_of_a_uniform_action_on_every_step(noise):
    settings = {**continuous.SETTINGS, "noise": noise, "world": "car"}
    values = []
    for seed in range(150):
        explore = continuous.explorer_of(settings, 2, seed)
        explore_once = explore if noise != "uniform" else lambda e=explore: e(np.zeros((1, 2)))
        values.append([explore_once()[0] for _ in range(8)])
    # 300 independent draws a step: the standard error of a variance is at most 8 %.
    np.testing.assert_allclose(np.var(values, axis=(0, 2)), 1 / 3, rtol=0.35)
    assert np.var(values) == pytest.approx(1 / 3, rel=0.25)


def test_a_trial_depends_only_on_its_settings_and_seed():
    settings = {**registry.experiments()[ID].settings_at("quick"), "world": "car"}
    once, again, other = (
        continuous.run_seed({**settings, "noise": "held"}, seed) for seed in (0, 0, 1)
    )
    assert once == again != other
    white = continuous.run_seed({**settings, "noise": "white"}, 0)
    assert white != once
    # The same first state.
    assert white["first_visits"].index(0) == once["first_visits"].index(0)


# The worlds.


def played(env, num_steps, seed=3):
    rng = np.random.default_rng(0)
    observation, _ = env.reset(seed=seed)
    steps = [observation]
    rewards = []
    for _ in range(num_steps):
        outcome = env.step(rng.uniform(-1.0, 1.0, env.action_space.shape))
        steps.append(outcome[0])
        rewards.append(outcome[1])
    return np.array(steps), np.array(rewards), outcome[2:4]


def told(domain, task, num_steps, seed=3):
    """The same with dm_control alone: time steps and the physics' own observations."""
    env = suite.load(domain, task, task_kwargs={"random": seed})
    rng = np.random.default_rng(0)
    steps = [env.reset()]
    size = env.action_spec().shape
    for _ in range(num_steps):
        steps.append(env.step(rng.uniform(-1.0, 1.0, size)))
    return env, steps


def test_the_pole_s_angle_and_velocity_are_dm_control_s():
    seen, rewards, ended = played(control_suite.swing_up(), 30)
    _, steps = told("cartpole", "swingup_sparse", 30)
    cosines = [step.observation["position"][1] for step in steps]
    sines = [step.observation["position"][2] for step in steps]
    np.testing.assert_allclose(np.cos(seen[:, 0]), cosines, atol=1e-12)
    np.testing.assert_allclose(np.sin(seen[:, 0]), sines, atol=1e-12)
    np.testing.assert_array_equal(seen[:, 1], [s.observation["velocity"][1] for s in steps])
    np.testing.assert_array_equal(rewards, [step.reward for step in steps[1:]])
    assert ended == (False, False)
    assert np.abs(seen[:, 0]).max() <= np.pi


def test_the_ball_is_seen_from_the_cup_on_its_string():
    seen, rewards, _ = played(control_suite.catch(), 60)
    _, steps = told("ball_in_cup", "catch", 60)
    for (angle, distance), step in zip(seen, steps, strict=True):
        cup_x, cup_z, ball_x, ball_z = step.observation["position"]
        # The model's heights: the ball's origin is at 0.2, the string's end at 0.6 − 0.108.
        across, above = ball_x - cup_x, ball_z + 0.2 - (cup_z + 0.6 - 0.108)
        assert distance * np.sin(angle) == pytest.approx(across, abs=1e-9)
        assert distance * np.cos(angle) == pytest.approx(above, abs=1e-9)
    np.testing.assert_array_equal(rewards, [step.reward for step in steps[1:]])
    assert seen[:, 1].max() < 0.35  # 0.3, and MuJoCo's string gives a little


def test_suite_episodes_are_cut_and_seeds_repeat_them():
    env = control_suite.swing_up()
    first, again, other = (env.reset(seed=seed)[0].tolist() for seed in (1, 1, 2))
    assert first == again != other
    env.reset(seed=1)
    ends = [env.step(np.zeros(1))[2:4] for _ in range(1000)]
    assert ends[-1] == (False, True)
    assert set(ends[:-1]) == {(False, False)}
    assert env.reset()[0].tolist() != first  # the task's stream continues


def test_figures_are_drawn(tmp_path):
    summary = summary_of({"held": 40.0})
    one_world = replace(summary, blocks=[summary.panels[0], summary.maps[0]])
    files = continuous.draw(SETTINGS, one_world, tmp_path)
    names = ["coverage", "first_visits_car"]
    assert [file.name for file in files] == [f"{n}.{s}" for n in names for s in ("png", "svg")]
    assert all(file.stat().st_size > 5000 for file in files)


def test_maps_have_the_first_coordinate_to_the_right_and_the_second_upwards():
    (cells, *_) = summary_of({}).maps[0].maps["first visits"]
    # Cells are numbered along the second coordinate first: 0 is low and left, 1 high and left.
    assert cells[1][0] == 0.0
    assert cells[0][0] == 100.0
