"""The tabular experiments run end to end, and their verdicts follow the numbers."""

import json
from pathlib import Path
from typing import Any

import pytest

from ezgreedy.cli import main
from ezgreedy.experiments import registry
from ezgreedy.experiments.experiment import Experiment, Record
from ezgreedy.experiments.paper import (
    ablation_readings,
    appendix_deepsea_randomized,
    chain_census,
    fig2_chain_durations,
    fig3_deepsea,
    fig3_gridworld,
    limitations,
    sequence_probabilities,
)
from ezgreedy.experiments.readings import EZ_SETTINGS, binned, law_of
from ezgreedy.exploration.durations import Fixed, PlusOne, Zeta
from ezgreedy.findings.judging import verdict_of

MODULES = [
    sequence_probabilities,
    fig2_chain_durations,
    chain_census,
    fig3_deepsea,
    fig3_gridworld,
    appendix_deepsea_randomized,
    limitations,
    ablation_readings,
]
EXPERIMENTS = [module.EXPERIMENT for module in MODULES]
each_experiment = pytest.mark.parametrize("experiment", EXPERIMENTS, ids=lambda e: e.id)

# What even a quick look must find; with fewer than five seeds it has no verdict.
QUICK_SIDES = {
    "fig2-chain-durations": {0: "reading-dependent", 1: "contradicted"},
    "fig3-deepsea": {2: "reproduced", 3: "reproduced"},
    "fig3-gridworld": {},
    "sequence-probabilities": {0: "reproduced", 1: "reproduced"},
    "chain-census": {},
    "appendix-deepsea-randomized": {1: "undecided"},
    "limitations": {3: "reproduced"},
    "ablation-readings": {2: "reproduced"},
}


@each_experiment
def test_a_quick_look_ends_with_claims_and_figures(experiment: Experiment, tmp_path: Path) -> None:
    arguments = ["reproduce", experiment.id, "--quick", "--jobs", "1", "--out", str(tmp_path)]
    assert main(arguments) == 0
    directory = tmp_path / experiment.id
    summary = json.loads((directory / "summary.json").read_text())
    assert summary["id"] == experiment.id
    for claim in summary["claims"]:
        assert claim["claim"].endswith(".")
        assert claim["criterion"]
        assert claim["numbers"]
        for number in claim["numbers"].values():
            if isinstance(number, dict):
                assert number["low"] <= number["value"] <= number["high"]
    for index, verdict in QUICK_SIDES[experiment.id].items():
        claim = summary["claims"][index]
        assert verdict_of(claim["readings"].values()) == verdict, claim
        assert claim["verdict"] == (verdict if claim["seeds"] >= 5 else None)
    assert [claim["claim"] for claim in summary["claims"]] == [
        statement.claim for statement in experiment.statements
    ]
    assert {Path(name).suffix for name in summary["figures"]} == {".png", ".svg"}
    for name in summary["figures"]:
        assert (directory / name).stat().st_size > 5_000


@each_experiment
def test_a_seed_gives_the_same_result_every_time_and_another_seed_another(
    experiment: Experiment,
) -> None:
    settings = experiment.settings_at("quick")
    cell = next(
        cell
        for cell in experiment.cells(settings)
        if "ez" in cell.name or "zeta" in cell.name or "policy" not in cell.settings
    )
    merged = {**settings, **cell.settings}
    result = experiment.run_seed(merged, 3)
    assert experiment.run_seed(merged, 3) == result
    assert experiment.run_seed(merged, 4) != result


def test_experiments_stand_in_the_order_of_the_paper() -> None:
    ids = list(registry.experiments())
    ours = [experiment.id for experiment in EXPERIMENTS]
    assert [name for name in ids if name in ours] == ours


def changes_for(experiment: Experiment, cell: str, changes: dict[str, Any]) -> None:
    """Asserts that each changed setting changes what a cell gives."""
    settings = experiment.settings_at("quick")
    chosen = next(one for one in experiment.cells(settings) if one.name == cell)
    settings = {**settings, **chosen.settings}
    result = experiment.run_seed(settings, 0)
    for name, value in changes.items():
        assert name in settings
        assert experiment.run_seed({**settings, name: value}, 0) != result, name


EZ_CHANGES = {
    "policy": "eps",
    "mu": 1.5,
    "cap": 2,
    "plays": "n+1",
    "carries_over_episodes": True,
}


def test_every_setting_of_a_run_changes_the_result() -> None:
    changes_for(
        fig3_gridworld.EXPERIMENT,
        "ez, random ties",
        EZ_CHANGES
        | {"ties": "first", "step_size": 0.2, "epsilon": 0.2, "step_limit": 500, "size": 25}
        | {"start": [2, 11], "goal": [20, 18], "num_episodes": 310, "num_bins": 10}
        | {"num_early_episodes": 50},
    )
    changes_for(
        fig3_gridworld.EXPERIMENT,
        "walks ez, no goal",
        {"num_walks_per_seed": 5, "num_walk_steps": 4000, "goal_ends": True, "num_maps": 0},
    )
    changes_for(
        fig3_deepsea.EXPERIMENT,
        "ez, cost on right, N = 10",
        EZ_CHANGES
        | {"step_size": 0.5, "epsilon_times": 2.0, "cost_on": "step", "initial_value": -1.0}
        | {"size": 11, "num_episodes": 10},
    )
    changes_for(fig3_deepsea.EXPERIMENT, "eps, cost on every step, N = 10", {"ties": "first"})
    changes_for(fig3_deepsea.EXPERIMENT, "walk ez", {"other_move": "down", "size": 19})
    changes_for(
        appendix_deepsea_randomized.EXPERIMENT,
        "ez, randomised, N = 10",
        {"effects": "consistent", "policy": "eps", "mu": 1.5, "cost_on": "step", "num_bins": 5},
    )
    chain = next(iter(fig2_chain_durations.SETTINGS["readings"]))
    changes_for(
        fig2_chain_durations.EXPERIMENT,
        f"{chain}: zeta",
        {"length": 60, "discount": 0.95, "cap": 20, "epsilon": 0.02, "step_size": 0.5}
        | {"carries_over_episodes": False, "num_steps": 50_000, "num_episodes": 100}
        | {"zeta": [2.0], "family": "uniform"},
    )
    changes_for(
        ablation_readings.EXPERIMENT,
        f"ez, {ablation_readings.DEFAULT}",
        EZ_CHANGES | {"matches_budget": True, "cost_on": "step", "ties": "first"},
    )


def test_grid_world_verdicts_follow_the_numbers() -> None:
    settings = {**fig3_gridworld.SETTINGS, "num_bins": 2}

    def verdicts(eps: float, ez: float, eps_steps: int, ez_steps: int) -> list[str]:
        records = []
        for cell in fig3_gridworld.cells(settings):
            is_ez = cell.settings["policy"] == "ez"
            gained, steps = (ez, ez_steps) if is_ez else (eps, eps_steps)
            learning = dict.fromkeys(("early", "all", "late", "late_steps"), gained)
            measures = ("all_cells", "bottom_corners", "goal_cell", "never_visited")
            walks = {measure: [float(steps)] for measure in measures}
            result = {**learning, "curve": [gained] * 2, **walks, "first_visits": [[steps]]}
            records += [Record(cell.name, cell.settings, seed, result) for seed in range(5)]
        summary = fig3_gridworld.summarise(settings, records)
        return [claim.verdict for claim in summary.claims]

    assert verdicts(0.5, 0.7, 2000, 1000) == ["reproduced"] * 4
    assert verdicts(0.7, 0.5, 1000, 2000) == ["contradicted"] * 4


def test_deep_sea_verdicts_follow_the_numbers() -> None:
    settings = fig3_deepsea.EXPERIMENT.settings_at("quick") | {"num_bins": 2}

    def verdicts(learned: dict[tuple[str, str], float], late: float) -> list[str]:
        """`learned` says the power of N that (policy, cost_on) takes."""
        records = []
        for cell in fig3_deepsea.cells(settings):
            policy, size = cell.settings["policy"], cell.settings["size"]
            power = learned[policy, cell.settings.get("cost_on", "right")]
            count = min(int(size**power), settings["num_episodes"])
            steps = 100 if policy == "ez" else 10_000
            result = {
                "learned": count if count < settings["num_episodes"] else None,
                "curve": [0.0, late],
                "late": late if policy == "ez" else 0.0,
                "first_visits": [[steps, -1], [steps, steps]],
                "all_cells": steps,
                "corner": steps,
                "never_visited": 0.0,
            }
            records += [Record(cell.name, cell.settings, seed, result) for seed in range(5)]
        summary = fig3_deepsea.summarise(settings, records)
        (first_visits,) = summary.maps
        assert first_visits.maps["εz-greedy"][0][0] == [100, None]
        return [claim.verdict for claim in summary.claims]

    apart = {("eps", "right"): 5.0, ("ez", "right"): 3.0}
    alike = {("eps", "step"): 2.0, ("ez", "step"): 2.0}
    hard = {("eps", "step"): 5.0, ("ez", "step"): 2.0}
    assert verdicts(apart | hard, 0.6) == ["reproduced"] * 4
    # A cost on every step is a control, with values that begin at −1 it is a reading.
    assert verdicts(apart | alike, 0.6) == ["reading-dependent", *["reproduced"] * 3]
    assert verdicts(dict.fromkeys(apart, 3.0) | alike, 0.0)[0] == "undecided"
    worse = {("eps", "right"): 2.0, ("ez", "right"): 3.0}
    assert verdicts(worse | alike, 0.0)[0] == "contradicted"
    assert verdicts(apart | alike, 0.0)[2:] == ["undecided", "reproduced"]
    assert verdicts(apart | alike, -0.1)[2] == "contradicted"


@pytest.mark.parametrize(
    ("eps", "ez", "verdicts"),
    [
        (None, None, ["undecided", "undecided"]),
        (5, 5, ["reproduced", "undecided"]),
        (5, 8, ["reproduced", "undecided"]),
        (8, 5, ["contradicted", "undecided"]),
        (None, 5, ["contradicted", "contradicted"]),
    ],
)
def test_a_sea_that_nobody_learns_decides_nothing(
    eps: int | None, ez: int | None, verdicts: list[str]
) -> None:
    module = appendix_deepsea_randomized
    settings = {**module.SETTINGS, "num_bins": 2}
    learned = {"eps": eps, "ez": ez, "ez, equal budget": 9}
    records = [
        Record(
            cell.name,
            cell.settings,
            seed,
            {"learned": learned[cell.settings["policy"]], "first_success": None}
            | {"return": 0.0, "curve": [0.0, 0.0]},
        )
        for cell in module.cells(settings)
        for seed in range(60)
    ]
    claims = module.summarise(settings, records).claims
    assert [claim.verdict for claim in claims] == verdicts


def test_randomised_effects_take_an_advantage_back_if_it_was_there_and_is_gone() -> None:
    module = appendix_deepsea_randomized
    settings = {**module.SETTINGS, "num_bins": 2}

    def verdict(num_seeds: int, randomised: int | None, consistent: int | None) -> str | None:
        records = []
        for cell in module.cells(settings):
            is_ez, effects = cell.settings["policy"] == "ez", cell.settings["effects"]
            learned = (randomised if effects == "randomised" else consistent) if is_ez else None
            result = {"learned": learned, "first_success": None, "return": 0.0, "curve": [0.0, 0.0]}
            records += [Record(cell.name, cell.settings, seed, result) for seed in range(num_seeds)]
        return module.summarise(settings, records).claims[1].verdict

    assert verdict(100, None, 5) == "reproduced"
    assert verdict(5, None, 5) == "undecided"
    assert verdict(100, 5, 5) == "contradicted"
    assert verdict(100, None, None) == "undecided"


def test_limitations_are_judged_by_the_difference_on_shared_maps() -> None:
    settings = limitations.SETTINGS

    def verdicts(eps: float, ez: float, budget: float, growth: float) -> list[str]:
        gained = {"eps": eps, "ez": ez, "ez, equal budget": budget}
        records = []
        for cell in limitations.cells(settings):
            steps = 100.0 + growth * cell.settings["level"]
            result = {"all": gained[cell.settings["policy"]], "steps_to_goal": steps}
            records += [Record(cell.name, cell.settings, seed, result) for seed in range(5)]
        return [claim.verdict for claim in limitations.summarise(settings, records).claims]

    assert verdicts(0.9, 0.5, 0.9, 5.0) == ["reproduced"] * 4
    assert verdicts(0.5, 0.9, 0.1, -1.0) == ["contradicted"] * 4
    assert verdicts(0.0, 0.0, 0.0, 5.0) == ["undecided"] * 3 + ["reproduced"]


def test_the_census_tells_clear_leads_and_inverted_us() -> None:
    settings = chain_census.EXPERIMENT.settings_at("quick")
    first, *others = chain_census.cells(settings)

    def entry(zeta: list[float], other: float, variance: float) -> dict[str, Any]:
        def rows(means: list[float]) -> list[list[list[float]]]:
            return [[[mean] * 4, [variance] * 4] for mean in means]

        return {"zeta": rows(zeta), "geometric": rows([other] * 3), "uniform": rows([0.5] * 3)}

    def claims(result: dict[str, Any], rest: dict[str, Any]) -> list[Any]:
        records = [Record(first.name, first.settings, 0, result)]
        records += [Record(cell.name, cell.settings, 0, rest) for cell in others]
        summary = chain_census.summarise(settings, records)
        assert summary.data["best"]["online"][0] == "zeta"
        return [claim.verdict for claim in summary.claims]

    peak, flat = entry([1.0, 2.0, 1.0], 1.5, 0.1), entry([1.0, 1.02, 1.0], 1.5, 0.1)
    noisy = entry([1.0, 2.0, 1.0], 1.5, 10.0)
    assert claims(peak, peak) == ["reproduced", "reproduced"]
    assert claims(peak, flat) == ["contradicted", "contradicted"]
    assert claims(peak, noisy) == ["undecided", "contradicted"]


def test_laws_are_named_by_settings() -> None:
    ez = {**EZ_SETTINGS, "policy": "ez"}
    assert law_of(ez) == Zeta(2.0, 10_000)
    assert law_of({**ez, "plays": "n+1", "cap": 100}) == PlusOne(Zeta(2.0, 100))
    assert law_of({**ez, "tail": "clip"}) == Zeta(2.0, 10_000, "clip")
    assert law_of({**ez, "policy": "eps", "plays": "n+1"}) == Fixed(1)
    with pytest.raises(ValueError, match=r"plays must be one of 'n', 'n\+1'; got '2n'"):
        law_of({**ez, "plays": "2n"})


def test_bins_are_means_of_equal_parts() -> None:
    assert binned([1.0, 3.0, 5.0, 7.0, 100.0], 2) == [2.0, 6.0]
