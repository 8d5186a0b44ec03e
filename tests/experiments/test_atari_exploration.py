import importlib.util
import json

import pytest
from scipy.stats import ttest_1samp

from ezgreedy.cli import main
from ezgreedy.experiments import registry
from ezgreedy.experiments.deep import atari_conditions, atari_exploration, atari_measures
from ezgreedy.experiments.experiment import Record
from ezgreedy.exploration.durations import Zeta
from ezgreedy.findings.intervals import Interval, mean_interval
from ezgreedy.packages import install_command

ID = "atari-exploration"
SMALL = {
    "games": ["Pong"],
    "epsilons": [1.0],
    "mus": [2.0],
    "caps": [100],
    "num_steps": 60,
    "most_episode_frames": 400,
}


def settings_of(**changes):
    return {**atari_exploration.SETTINGS, **SMALL, **changes}


def condition(**changes):
    return settings_of(game="Pong", epsilon=1.0, mu=2.0, cap=100, **changes)


def found_walk(returns, first_reward=None, num_cells=10, lengths=None, lives_lost=0, num_cut=0):
    return {
        "returns": returns,
        "lengths": lengths or [10] * len(returns),
        "lives_lost": [lives_lost] * len(returns),
        "first_reward": first_reward,
        "num_cells": num_cells,
        "num_memories": 50,
        "num_cut": num_cut,
    }


def summary_of(settings, walks):
    """A summary in which walks[policy] are those of every game and ε."""
    records = [
        Record(atari_conditions.cell_name(name, epsilon, policy), {}, seed, walk)
        for name in settings["games"]
        for epsilon in settings["epsilons"]
        for policy in atari_conditions.policies(settings)
        for seed, walk in enumerate(walks["ez" if "μ" in policy else "eps"])
    ]
    return atari_exploration.summarise(settings, records)


# The experiment among others.


def test_it_is_run_only_when_it_is_named():
    assert ID in registry.experiments()
    assert ID not in [experiment.id for experiment in registry.find([])]
    assert [experiment.id for experiment in registry.find([ID])] == [ID]


def test_the_list_names_the_extra_that_it_needs(capsys):
    assert main(["list"]) == 0
    head, *rows = capsys.readouterr().out.splitlines()
    needs = {row.split()[0]: row[head.index("needs") :].strip() for row in rows}
    assert needs.pop(ID) == needs.pop("atari-actions") == "deep"
    assert set(needs.values()) == {"", "oracles", "sb3"}


def test_without_the_emulator_it_says_what_to_install(tmp_path, monkeypatch, capsys):
    real = importlib.util.find_spec
    monkeypatch.setattr(
        importlib.util, "find_spec", lambda name, *rest: None if name == "ale_py" else real(name)
    )
    assert main(["reproduce", ID, "--quick", "--out", str(tmp_path / "out")]) == 2
    told = capsys.readouterr().err
    assert f"{ID} needs ale_py, which is not installed ({install_command('study,deep')})" in told
    assert not (tmp_path / "out").exists()


def test_the_grid_is_every_game_at_every_epsilon_with_every_policy():
    experiment = registry.experiments()[ID]
    for scale, num_mus, name in (
        ("paper", 1, "Freeway, ε = 0.1, μ = 2, n ≤ 10,000"),
        ("full", 3, "Freeway, ε = 0.1, μ = 1.5, n ≤ 10,000"),
    ):
        cells = experiment.cells(experiment.settings_at(scale))
        assert len(cells) == 57 * 2 * (1 + num_mus * 2)
        assert len({cell.name for cell in cells}) == len(cells)
        assert name in {cell.name for cell in cells}


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"games": ["Freewy"]}, "did you mean Freeway"),
        ({"games": []}, "games must hold at least one value, each once"),
        ({"games": ["Pong", "Pong"]}, "games must hold at least one value, each once"),
        ({"epsilons": [1.5]}, r"epsilons must lie in \[0, 1\]; got 1.5"),
        ({"caps": [1]}, "caps must be at least 2; got 1"),
        ({"mus": [-1.0], "judged_mu": -1.0}, "mu must"),
        ({"judged_mu": 2.5}, "judged_mu must be one of mus; got 2.5"),
        ({"num_steps": 0}, "num_steps must be at least 1; got 0"),
    ],
)
def test_impossible_settings_are_refused_before_anything_runs(changes, message):
    with pytest.raises(ValueError, match=message):
        atari_exploration.cells(settings_of(**changes))


# One walk.


def test_a_seed_gives_the_same_walk_and_another_gives_another():
    result = atari_exploration.run_seed(condition(), 0)
    assert atari_exploration.run_seed(condition(), 0) == result
    assert atari_exploration.run_seed(condition(), 1) != result
    assert json.loads(json.dumps(result)) == result


@pytest.mark.parametrize(
    "changes",
    [
        {"game": "Freeway"},
        {"epsilon": 0.1},
        {"mu": 1.5},
        {"cap": 1},
        {"num_steps": 40},
        {"most_episode_frames": 200},
    ],
    ids=str,
)
def test_every_setting_of_a_walk_changes_it(changes):
    before = atari_exploration.run_seed(condition(), 0)
    assert atari_exploration.run_seed({**condition(), **changes}, 0) != before


def test_a_cap_of_one_is_epsilon_greedy_whatever_mu():
    results = [
        atari_exploration.run_seed({**condition(), "mu": mu, "cap": 1}, 0) for mu in (1.5, 3.0)
    ]
    assert results[0] == results[1]


# What walks come to.


def test_returns_per_episode_weigh_every_episode_alike():
    seeds = atari_measures.table([found_walk([1.0, 2.0, 3.0]), found_walk([10.0])], 60)
    assert atari_measures.estimate(seeds, "return").value == 4.0
    assert atari_measures.estimate(seeds, "reward_per_1000_steps").value == 1000 * 16 / 40


def test_a_measure_of_one_column_has_student_s_interval():
    walks = [found_walk([0.0], num_cells=cells) for cells in (3, 7, 8, 20)]
    found = atari_measures.estimate(atari_measures.table(walks, 60), "cells")
    assert found == pytest.approx(mean_interval([3, 7, 8, 20]))


def test_a_walk_without_a_reward_counts_with_all_its_steps():
    seeds = atari_measures.table([found_walk([1.0], 20), found_walk([0.0])], 60)
    assert atari_measures.estimate(seeds, "first_reward").value == 40.0


def test_lives_are_counted_per_thousand_steps():
    seeds = atari_measures.table([found_walk([0.0, 0.0], lives_lost=3)], 60)
    told = atari_measures.estimate(seeds, "lives_lost_per_1000_steps")
    assert told == Interval(300.0, 300.0, 300.0)


def test_differences_pair_the_seeds():
    one = atari_measures.table([found_walk([value + 1.0]) for value in (0.0, 50.0, 100.0)], 60)
    other = atari_measures.table([found_walk([value]) for value in (0.0, 50.0, 100.0)], 60)
    found = atari_measures.difference(one, other, "return")
    assert found.interval == pytest.approx(Interval(1.0, 1.0, 1.0))
    uneven = atari_measures.table([found_walk([value]) for value in (1.0, 52.0, 103.0)], 60)
    found = atari_measures.difference(uneven, other, "return")
    assert found.interval == pytest.approx(mean_interval([1.0, 2.0, 3.0]))
    assert found.p == pytest.approx(ttest_1samp([1.0, 2.0, 3.0], 0.0).pvalue)


def test_typical_ratios_are_geometric_means():
    ratio = atari_measures.typical_ratio([4.0, 1.0, 0.25])
    assert ratio.value == pytest.approx(1.0)
    assert ratio.low * ratio.high == pytest.approx(1.0)


# Enough for a sign test to be decided once it is corrected.
TEN = [
    "Freeway",
    "Pong",
    "Boxing",
    "Krull",
    "Hero",
    "Alien",
    "Amidar",
    "Asterix",
    "Zaxxon",
    "Qbert",
]


def test_claims_hold_where_ez_greedy_finds_more_and_fail_where_it_finds_less():
    settings = settings_of(games=TEN)
    rich = [found_walk([5.0], 7, 20), found_walk([6.0], 9, 24), *[found_walk([5.0], 7, 20)] * 3]
    poor = [found_walk([0.0]), found_walk([1.0], 50), *[found_walk([0.0])] * 3]
    ahead = summary_of(settings, {"ez": rich, "eps": poor})
    behind = summary_of(settings, {"ez": poor, "eps": rich})
    assert [claim.verdict for claim in ahead.claims] == ["reproduced"] * 5
    assert [claim.verdict for claim in behind.claims] == ["contradicted"] * 5
    freeway, rewards, _, firsts, places = ahead.claims
    policy = "μ = 2, n ≤ 100"
    assert freeway.numbers[f"difference to ε-greedy, {policy}"].value == pytest.approx(5.0)
    assert rewards.numbers[f"{policy}: games more / less"] == "10 / 0"
    assert rewards.numbers[f"{policy}: p of the sign test"] == pytest.approx(2 / 2**10, abs=1e-6)
    assert behind.claims[1].numbers[f"{policy}: games more / less"] == "0 / 10"
    assert firsts.numbers[f"{policy}: games sooner / later"] == "10 / 0"
    assert places.numbers[f"{policy}: screen cells, ratio εz/ε"].value == pytest.approx(104 / 50)
    assert all(claim.readings == {policy: "holds"} for claim in ahead.claims)
    assert all(claim.readings == {policy: "contradicted"} for claim in behind.claims)


def test_reward_per_step_and_per_episode_may_point_to_different_sides():
    # εz-greedy earns more in each episode, of which there are fewer in as many steps.
    settings = settings_of(games=TEN)
    walks = {"ez": [found_walk([5.0])] * 5, "eps": [found_walk([4.0, 4.0], lengths=[3, 3])] * 5}
    _, episode, step, *_ = summary_of(settings, walks).claims
    assert (episode.verdict, step.verdict) == ("reproduced", "contradicted")


def test_few_games_decide_nothing():
    walks = {"ez": [found_walk([5.0], 7)] * 2, "eps": [found_walk([0.0])] * 2}
    freeway, *others = summary_of(settings_of(games=TEN[:4]), walks).claims
    assert freeway.verdict is None
    assert {claim.verdict for claim in others} == {None}
    _, rewards, *_ = summary_of(settings_of(games=TEN[:5]), walks).claims
    assert rewards.verdict == "undecided", "p = 2/2⁵ before correction"


def test_below_one_budgets_differ_and_the_claims_say_by_how_much():
    settings = settings_of(games=["Freeway", "Pong"], epsilons=[0.1])
    walks = {"ez": [found_walk([5.0], 7)], "eps": [found_walk([0.0])]}
    m = Zeta(2.0, 100).mean
    share = 0.1 * m / (0.9 + 0.1 * m)
    for claim in summary_of(settings, walks).claims:
        told = claim.numbers["μ = 2, n ≤ 100: share of exploratory steps"]
        assert told == pytest.approx(share, abs=1e-4)
        assert "Equal ε is not an equal budget: ε-greedy at ε = 0.1 explores in 10 %" in claim.note


def test_walks_without_a_reward_and_episodes_that_were_cut_are_counted():
    walks = {
        "ez": [found_walk([5.0], 7), found_walk([5.0], num_cut=2)],
        "eps": [found_walk([0.0])] * 2,
    }
    rows = summary_of(settings_of(games=["Pong"]), walks).data["conditions"]
    assert [row["walks_without_reward"] for row in rows] == [2, 1]
    assert [row["cut_episodes"] for row in rows] == [0, 2]


def test_a_single_game_is_no_claim_about_games():
    walks = {"ez": [found_walk([5.0])], "eps": [found_walk([0.0])]}
    (claim,) = summary_of(settings_of(games=["Freeway"]), walks).claims
    assert claim.claim.endswith("on Freeway.")
    assert not summary_of(settings_of(games=["Pong"]), walks).claims


def test_gains_are_in_percent_of_what_a_person_gains_on_a_random_agent():
    walks = {"ez": [found_walk([14.8])], "eps": [found_walk([0.0])]}
    rows = summary_of(settings_of(games=["Freeway"]), walks).data["conditions"]
    assert [row["gain"] for row in rows if "gain" in row] == [[50.0, 50.0, 50.0]]  # human: 29.6


# From the command line.


def rows_of(directory):
    lines = (directory / ID / "results.jsonl").read_text().splitlines()
    rows = [json.loads(line) for line in lines]
    return {(row["cell"], row["seed"]): row["result"] for row in rows}


def test_rows_depend_neither_on_processes_nor_on_other_games(tmp_path):
    common = ["reproduce", ID, "--quick", "--seeds", "1", "--set", "most_episode_frames=400"]
    both = [*common, "--set", "games=Pong,MontezumaRevenge", "--set", "num_steps=20"]
    one = [*common, "--set", "games=MontezumaRevenge", "--set", "num_steps=20"]
    assert main([*both, "--jobs", "2", "--out", str(tmp_path / "both")]) == 0
    assert main([*one, "--jobs", "1", "--out", str(tmp_path / "one")]) == 0
    rows = rows_of(tmp_path / "one")
    assert len(rows) == 2
    assert rows.items() <= rows_of(tmp_path / "both").items()
    summary = json.loads((tmp_path / "one" / ID / "summary.json").read_text())
    assert summary["command"] == "ezgreedy " + " ".join(one)


def test_a_quick_look_runs_from_end_to_end(tmp_path):
    assert main(["reproduce", ID, "--quick", "--jobs", "1", "--out", str(tmp_path)]) == 0
    summary = json.loads((tmp_path / ID / "summary.json").read_text())
    assert len(summary["claims"]) == 5
    assert len(summary["data"]["conditions"]) == 3 * 2
    for figure in summary["figures"]:
        assert (tmp_path / ID / figure).stat().st_size > 10_000
    freeway = summary["claims"][0]["numbers"]
    assert freeway["return per episode, μ = 2, n ≤ 100"]["value"] >= 0.0
    for row in summary["data"]["conditions"]:
        assert 1 <= row["cells"][0] <= row["memories"][0] <= 500
        assert row["episodes"] >= 2


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ("game=Pong", "--set must name a setting of atari-exploration: games, epsilons"),
        ("game=Pong", "(did you mean games?)"),
        ("games", "--set must be NAME=VALUE; got 'games'"),
        ("games=Pong,Breakot", "did you mean Breakout"),
        ("num_steps=many", "--set num_steps must be an int; got 'many'"),
        ("epsilons=1,x", "each item of --set epsilons must be a number; got 'x'"),
    ],
)
def test_wrong_changes_are_one_line_and_leave_nothing(tmp_path, capsys, change, message):
    out = tmp_path / "out"
    assert main(["reproduce", ID, "--set", change, "--out", str(out)]) == 2
    told = capsys.readouterr().err
    assert message in told
    assert told.count("\n") == 1
    assert not out.exists()


def test_changes_need_a_single_experiment(tmp_path, capsys):
    ids = ["cover-times", ID]
    assert main(["reproduce", *ids, "--set", "num_steps=3", "--out", str(tmp_path / "out")]) == 2
    assert "--set must go with a single experiment; got 2" in capsys.readouterr().err
