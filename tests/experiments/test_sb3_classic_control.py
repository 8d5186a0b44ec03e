"""How the comparison with SB3's DQN is judged; tests/adapters trains with SB3 itself."""

import importlib.util

import pytest
from scipy.stats import ttest_rel

from ezgreedy.cli import main
from ezgreedy.experiments import registry
from ezgreedy.experiments.deep import sb3_classic_control
from ezgreedy.experiments.deep.sb3_training import first_goal
from ezgreedy.experiments.experiment import Record
from ezgreedy.findings.intervals import Interval

ID = "sb3-classic-control"
SETTINGS = {**sb3_classic_control.SETTINGS, "num_evaluations": 4}
OFFSETS = (0.0, 3.0, -1.0, 2.0, 5.0)  # one for each seed


def found(level, offset, first_goal=None):
    return {
        "evaluations": [level + offset, level + offset, level, level + 4.0],
        "training_return": level,
        "first_goal": first_goal,
        "exploratory_share": 0.25,
    }


def summary_of(gains, spread=1.0):
    """εz-greedy gains this much over ε-greedy on every task; seeds differ by offsets."""
    records = []
    for task in SETTINGS["timesteps"]:
        for policy, gain in {"eps": 0.0, **gains}.items():
            for seed, offset in enumerate(OFFSETS):
                own = offset * (spread if policy != "eps" else 1.0)
                goal = None if seed == 0 else 100 * seed
                cell = f"{task}, {policy}"
                records.append(Record(cell, {}, seed, found(-150.0 + gain, own, goal)))
    return sb3_classic_control.summarise(SETTINGS, records)


def test_it_is_run_only_when_it_is_named():
    assert ID in registry.experiments()
    assert ID not in [experiment.id for experiment in registry.find([])]


@pytest.mark.skipif(importlib.util.find_spec("stable_baselines3") is not None, reason="has SB3")
def test_without_sb3_it_says_what_to_install(tmp_path, capsys):
    assert main(["reproduce", ID, "--quick", "--out", str(tmp_path / "out")]) != 0
    # From a checkout the command names the checkout, elsewhere the package.
    assert "[study,sb3]')" in capsys.readouterr().err


def test_a_task_is_judged_at_equal_epsilon_and_at_equal_budget():
    claims = summary_of({"ez": 10.0, "ez, equal budget": -10.0}).claims
    car, pole, acrobot = claims
    for claim in (car, acrobot):
        assert claim.readings == {"equal ε": "holds", "equal budget": "contradicted"}
        assert claim.verdict == "reading-dependent"
    assert pole.readings == {"equal ε": "holds", "equal budget": "holds"}  # 10 of 25 points
    assert car.numbers["equal ε: εz − ε, mean evaluation"] == Interval(10.0, 10.0, 10.0)


def test_on_cartpole_a_loss_of_more_than_25_points_counts_against_it():
    pole = summary_of({"ez": -24.0, "ez, equal budget": -26.0}).claims[1]
    assert pole.readings == {"equal ε": "holds", "equal budget": "contradicted"}


def test_seeds_are_paired():
    car = summary_of({"ez": 1.0, "ez, equal budget": 0.0}, spread=2.0).claims[0]
    eps = [-150.0 + 0.5 * offset + 1.0 for offset in OFFSETS]
    ez = [-149.0 + offset + 1.0 for offset in OFFSETS]
    expected = ttest_rel(ez, eps).confidence_interval()
    interval = car.numbers["equal ε: εz − ε, mean evaluation"]
    assert interval[1:] == pytest.approx((expected.low, expected.high))
    assert car.readings["equal ε"] == ("holds" if expected.low > 0 else "undecided")


def test_runs_that_never_reach_the_goal_are_counted():
    rows = summary_of({"ez": 0.0, "ez, equal budget": 0.0}).tables[0].rows
    assert [row[-1] for row in rows[:3]] == ["250 steps (4 of 5 runs)"] * 3
    assert rows[3][:1] + rows[3][-1:] == ["CartPole-v1", "–"]


def test_the_first_goal_is_the_end_of_the_first_early_episode():
    assert first_goal([200, 200, 150, 120], 200) == 550
    assert first_goal([200, 200], 200) is None


def test_the_figure_is_drawn(tmp_path):
    summary = summary_of({"ez": 1.0, "ez, equal budget": 0.0}, spread=2.0)
    files = sb3_classic_control.draw(SETTINGS, summary, tmp_path)
    assert [file.name for file in files] == ["evaluations.png", "evaluations.svg"]
    assert all(file.stat().st_size > 5000 for file in files)
