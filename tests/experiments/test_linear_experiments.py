"""Figure 3's MountainCar and CartPole, and the figure of the environments."""

import json
from pathlib import Path

import numpy as np
import pytest

from ezgreedy.cli import main
from ezgreedy.experiments.experiment import Record
from ezgreedy.experiments.paper import (
    appendix_domains,
    appendix_mountaincar_dense,
    fig3_cartpole,
    fig3_mountaincar,
    linear_study,
)

CAR, POLE = fig3_mountaincar.EXPERIMENT, fig3_cartpole.EXPERIMENT
DENSE = appendix_mountaincar_dense.EXPERIMENT


@pytest.fixture(scope="module")
def summaries(tmp_path_factory):
    """What a quick look gives, through the command line."""
    out = tmp_path_factory.mktemp("out")
    ids = ["fig3-mountaincar", "fig3-cartpole", "appendix-domains", DENSE.id]
    assert main(["reproduce", *ids, "--quick", "--jobs", "1", "--out", str(out)]) == 0
    found = {}
    for name in ids:
        found[name] = json.loads((out / name / "summary.json").read_text())
        for figure in found[name]["figures"]:
            assert (out / name / figure).stat().st_size > 5_000
    return found


def test_mountain_car_has_curves_and_maps_for_both_policies(summaries):
    summary = summaries["fig3-mountaincar"]
    assert len(summary["figures"]) == 6
    assert len(summary["claims"]) == 2
    data = summary["data"]
    *blocks, maps = data["interactive"]
    assert [block["y_label"] for block in blocks] == [
        "return",
        "steps to the goal or limit",
        *["return"] * 3,
    ]
    assert all(len(block["series"]) == 2 for block in blocks)
    assert np.shape([entry["values"] for entry in maps["maps"]]) == (2, 1, 12, 12)
    drawn = {Path(name).stem for name in summary["figures"]}
    assert {block["figure"] for block in (*blocks, maps)} == drawn
    coverage = summary["claims"][1]["numbers"]["map: ratio εz/ε of mean first visits"]
    assert coverage["low"] <= coverage["value"] <= coverage["high"]


def test_cart_pole_labels_both_bases_and_tells_the_selection(summaries):
    summary = summaries["fig3-cartpole"]
    performance = summary["claims"][0]
    for basis in fig3_cartpole.BASES.values():
        assert f"{basis}: mean return, εz-greedy" in performance["numbers"]
    assert "SELECTION" in performance["note"]
    maps = [block for block in summary["data"]["interactive"] if block["kind"] == "maps"]
    assert [len(block["maps"]) for block in maps] == [2, 2]


def test_the_environments_are_drawn_and_nothing_is_claimed(summaries):
    summary = summaries["appendix-domains"]
    assert summary["claims"] == []
    assert list(summary["data"]["panels"]) == [
        *appendix_domains.SETTINGS["domains"],
        "(e) Atari-57",
    ]


def test_without_an_emulator_the_atari_panel_says_what_it_needs(monkeypatch, tmp_path):
    monkeypatch.setattr(appendix_domains, "find_spec", lambda name: None)
    settings = {**appendix_domains.SETTINGS, "label": "(e) Atari-57"}
    assert appendix_domains.run_seed(settings, 0) == {"shape": None}
    summary = appendix_domains.summarise(settings, [])
    files = appendix_domains.draw(settings, summary, tmp_path)
    assert "deep" in files[1].read_text()


def made_up(experiment, returns, first_visit, diverged_in=None):
    """Records in which each policy has the same return and first-visit time throughout."""
    entries = []
    for cell in experiment.cells(experiment.settings):
        policy = cell.settings["policy"]
        if cell.settings["kind"] == "learning":
            value = returns[policy]
            value = value[cell.name.split(", ")[1]] if isinstance(value, dict) else value
            merged = {**experiment.settings, **cell.settings}
            block = linear_study.block_of(merged)
            num_blocks = merged["num_episodes"] // block
            result = {
                "returns": [value * block] * num_blocks,
                "lengths": [10 * block] * num_blocks,
                "diverged_in": diverged_in,
                "final_step_size": 0.1,
            }
        else:
            steps = first_visit[policy]
            result = {"map": [[steps]], "means": [steps], "rewarded": [1], "never": [0.0]}
        entries += [Record(cell.name, cell.settings, seed, result) for seed in range(5)]
    return entries


def verdicts(experiment, *args, **kwargs):
    records = made_up(experiment, *args, **kwargs)
    return [c.verdict for c in experiment.summarise(experiment.settings, records).claims]


def test_verdicts_follow_the_numbers():
    fewer, more = {"eps": 200, "ez": 100}, {"eps": 100, "ez": 200}
    good, bad = {"eps": 0.1, "ez": 0.9}, {"eps": 0.9, "ez": 0.9}
    assert verdicts(CAR, good, fewer) == ["reproduced", "reproduced"]
    assert verdicts(CAR, bad, more) == ["undecided", "contradicted"]
    worse = {"eps": 0.9, "ez": 0.1}
    assert verdicts(CAR, worse, more)[0] == "contradicted"
    split = {"eps": 1.0, "ez": {"full": 1.0, "pairs": 9.0, "state": 9.0}}
    assert verdicts(POLE, split, fewer) == ["reading-dependent", "reproduced"]


def test_diverged_runs_are_counted_and_never_plotted():
    records = made_up(POLE, {"eps": 5.0, "ez": 9.0}, {"eps": 2, "ez": 1}, diverged_in=60)
    summary = POLE.summarise(POLE.settings, records)
    claim = summary.claims[0]
    assert set(claim.readings.values()) == {"undecided"}
    assert claim.verdict is None, "nothing is left to judge"
    label = f"{fig3_cartpole.BASES['pairs']}: diverged runs, εz-greedy"
    assert summary.claims[0].numbers[label] == 5
    assert not summary.panels


def test_dense_mountain_car_is_judged_by_how_soon_episodes_are_short() -> None:
    settings = DENSE.settings
    assert appendix_mountaincar_dense.episodes_to_solve([900] * 5 + [150] * 20, settings) == 6
    assert appendix_mountaincar_dense.episodes_to_solve([250, 150] * 20, settings) is None

    def verdicts(eps, ez, num_seeds=100):
        records = []
        for cell in DENSE.cells(settings):
            slow = eps if cell.settings["policy"] == "eps" else ez
            result = {"lengths": [1000] * slow + [150] * (50 - slow), "diverged_in": None}
            seeds = range(num_seeds)
            records += [Record(cell.name, cell.settings, seed, result) for seed in seeds]
        return [claim.verdict for claim in DENSE.summarise(settings, records).claims]

    assert verdicts(10, 10) == ["reproduced", "reproduced"]
    assert verdicts(10, 10, num_seeds=30)[0] == "undecided"
    assert verdicts(30, 40) == ["contradicted", "contradicted"]


def test_a_quick_look_at_dense_mountain_car_has_both_sentences(summaries):
    summary = summaries["appendix-mountaincar-dense"]
    assert len(summary["claims"]) == 2
    assert len(summary["claims"][0]["controls"]) == 1


def test_a_seed_decides_its_result_and_settings_matter():
    # Long enough that the goal is reached, before which only chance decides.
    settings = {**CAR.settings, "policy": "ez", "kind": "learning", "num_episodes": 12}
    result = CAR.run_seed(settings, 1)
    assert CAR.run_seed(settings, 1) == result
    changes = {
        "step_size": 0.5,
        "epsilon": 0.2,
        "discount": 0.9,
        "decay": 0.2,
        "order": 3,
        "step_limit": 150,
        "num_episodes": 13,
        "scales_step_sizes": False,
        "coupling": 1,
        "ranges": [[-1.3, 0.6], [-0.08, 0.07]],
        "ties": "first",
        "initial_variance": 0.1,
        "mu": 1.5,
        "policy": "eps",
    }
    for name, value in changes.items():
        assert CAR.run_seed({**settings, name: value}, 1) != result, name
    assert CAR.run_seed(settings, 2) != result


def test_results_add_up_blocks_of_episodes_and_means_are_those_of_episodes():
    settings = {"num_episodes": 7, "num_curve_points": 3}
    assert linear_study.block_of(settings) == 2
    sums = linear_study._block_sums([1, 0, 0, 1, 1, 1, 0], 2)
    assert sums == [1, 1, 2, 0]
    entries = [{"returns": sums, "diverged_in": None}, {"returns": [1], "diverged_in": 1}]
    blocks = linear_study.finished(entries, settings)
    assert blocks.tolist() == [[0.5, 0.5, 1.0, 0.0]]
    assert linear_study.mean_of(blocks, settings).tolist() == [pytest.approx(4 / 7)]
    assert linear_study.mean_of(blocks, settings, 4).tolist() == [0.5]


def test_the_trials_of_a_map_are_dealt_out_until_there_are_enough():
    settings = {**CAR.settings, "policy": "eps", "kind": "map", "num_walk_steps": 50}
    counts = [len(CAR.run_seed(settings, seed)["means"]) for seed in range(30)]
    assert counts == [2] * 25 + [0] * 5
    first, second = (CAR.run_seed(settings, seed)["map"] for seed in (0, 1))
    assert first != second
