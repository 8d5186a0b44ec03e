"""The study of directions: its worlds, its budgets, and verdicts that follow the numbers."""

import json

import numpy as np
import pytest

from ezgreedy.cli import main
from ezgreedy.experiments.beyond import direction_worlds, directions
from ezgreedy.experiments.experiment import Record

QUICK = directions.EXPERIMENT.settings_at("quick")


def cell_settings(name):
    chosen = next(cell for cell in directions.cells(QUICK) if cell.name == name)
    return {**QUICK, **chosen.settings}


def test_shortest_ways_are_those_of_the_maps():
    ways = {
        name: direction_worlds.world_of({**directions.SETTINGS, "world": name}, 1).fewest_steps
        for name in direction_worlds.WORLDS
    }
    # The maze has as many steps as its settings say, a room the sum of its sides less two.
    assert ways["sea"] == ways["random-sea"] == 10
    assert (ways["maze"], ways["corridor"], ways["room"]) == (24, 39, 20)
    assert ways["four-rooms"] == 18  # nine rows down and nine columns to the right


def test_a_seed_gives_the_same_result_every_time_and_another_seed_another():
    settings = cell_settings("random-sea, eigen")
    result = directions.run_seed(settings, 3)
    assert directions.run_seed(settings, 3) == result
    assert directions.run_seed(settings, 4) != result
    assert set(result) == {"earned", "share", "steps", "cover", "missed"}
    assert set(directions.run_seed(cell_settings("maze, skips"), 0)) == {"earned", "share"}


@pytest.mark.parametrize("policy", ["eps", "ez", "eigen", "skips"])
def test_every_policy_explores_about_a_tenth_of_its_steps(policy):
    settings = cell_settings(f"corridor, {policy}") | {"num_steps": 20_000}
    shares = [directions.run_seed(settings, seed)["share"] for seed in range(2)]
    assert 0.06 < np.mean(shares) < 0.14


def synthetic(better, worse):
    """Records in which eigenoptions, skips and weights are better or worse than the others."""
    records = []
    for cell in directions.cells(QUICK):
        settings = cell.settings
        good = (
            settings["policy"] in ("eigen", "skips")
            or settings.get("weights") in ("exploration", "both")
        ) or settings.get("copies") == 0
        for seed in range(6):
            value = (better if good else worse) + 0.001 * seed
            result = {"earned": value, "share": 0.1, "steps": 10.0 / value}
            result |= {"cover": [int(100 / value)] * 2, "missed": 0.25}
            records.append(Record(cell.name, settings, seed, result))
    return records


def test_verdicts_follow_from_the_numbers():
    good = directions.summarise(QUICK, synthetic(0.5, 0.1))
    assert [claim.statement for claim in good.claims] == list(directions.EXPERIMENT.statements)
    assert [claim.verdict for claim in good.claims] == ["reproduced"] * 7
    bad = directions.summarise(QUICK, synthetic(0.1, 0.5))
    assert [claim.verdict for claim in bad.claims[:6]] == ["contradicted"] * 6
    assert "25 % in four rooms" in good.claims[1].note


@pytest.mark.slow
def test_a_quick_look_ends_with_claims_and_a_figure(tmp_path):
    arguments = ["reproduce", "beyond-directions", "--quick", "--jobs", "1", "--out", str(tmp_path)]
    assert main(arguments) == 0
    summary = json.loads((tmp_path / "beyond-directions" / "summary.json").read_text())
    assert len(summary["claims"]) == 7
    assert summary["claims"][0]["readings"]["maze that turns every 3 steps"] == "holds"
    assert (tmp_path / "beyond-directions" / "directions.svg").stat().st_size > 5_000
