"""Experiments with stopping rules and triggers: they run, and verdicts follow the numbers."""

import json

import pytest

from ezgreedy.cli import main
from ezgreedy.experiments.beyond import ruled_worlds as worlds
from ezgreedy.experiments.beyond import stopping, triggers
from ezgreedy.experiments.experiment import Record

FEW = [f"{name}=5" for name in worlds.QUICK]


@pytest.mark.parametrize("module", [stopping, triggers], ids=["stopping", "triggers"])
def test_a_short_run_ends_with_claims_and_figures(module, tmp_path):
    changes = [word for change in FEW for word in ("--set", change)]
    id = module.EXPERIMENT.id
    arguments = ["reproduce", id, "--quick", "--seeds", "2", "--jobs", "1", *changes]
    assert main([*arguments, "--out", str(tmp_path)]) == 0
    summary = json.loads((tmp_path / id / "summary.json").read_text())
    assert [claim["claim"] for claim in summary["claims"]] == [
        statement.claim for statement in module.STATEMENTS
    ]
    assert all((tmp_path / id / name).stat().st_size > 1000 for name in summary["figures"])


def test_stopping_is_judged_by_ratios_in_every_world():
    settings = stopping.SETTINGS

    def verdicts(costs, worse_in=()):
        records = []
        for cell in stopping.cells(settings):
            policy, world = cell.settings["policy"], cell.settings["world"]
            cost = 1.0 if world in worse_in else costs.get(policy, 1.0)
            for seed in range(5):
                result = {"cost": cost * (1.0 + 0.001 * seed), "explored": 0.2, "length": 2.0}
                records.append(Record(cell.name, cell.settings, seed, result))
        return [claim.verdict for claim in stopping.summarise(settings, records).claims]

    better = dict.fromkeys(stopping.RULES, 0.5)
    assert verdicts(better) == ["reproduced"] * 7
    worse = dict.fromkeys(stopping.RULES, 1.5)
    assert verdicts(worse) == ["contradicted"] * 7
    # One world without an effect leaves a claim about all undecided; being free holds there.
    expected = ["undecided", "reproduced", "undecided", "undecided"]
    assert verdicts(better, {worlds.ROOM})[:4] == expected


def test_triggers_are_judged_by_their_rate_and_their_costs():
    settings = triggers.SETTINGS

    def verdicts(rate, cost):
        records = []
        for cell in triggers.cells(settings):
            is_triggered = cell.settings["policy"] == "ez, trigger"
            for seed in range(5):
                noise = 1.0 + 0.001 * seed
                result = {
                    "cost": (cost if is_triggered else 1.0) * noise,
                    "explored": 0.2,
                    "rate": rate * noise,
                }
                records.append(Record(cell.name, cell.settings, seed, result))
        return [claim.verdict for claim in triggers.summarise(settings, records).claims]

    assert verdicts(1.05, 0.9) == ["reproduced"] * 3
    assert verdicts(1.2, 1.1) == ["contradicted"] * 3
    assert verdicts(1.0985, 1.0)[0] == "undecided"


def test_all_policies_share_the_map_of_a_seed_and_seeds_differ():
    for world in (worlds.MINES, worlds.MAZE, worlds.RANDOM_SEA):
        settings = {**worlds.SETTINGS, "world": world, "policy": "ez"}
        one, two = worlds.task_of(settings, 0), worlds.task_of(settings, 1)
        again = worlds.task_of({**settings, "policy": "eps"}, 0)
        assert (one.successors == again.successors).all()
        assert one.successors.shape != two.successors.shape or (
            (one.successors != two.successors).any() or (one.terminal != two.terminal).any()
        )


def test_food_stays_and_every_step_onto_it_pays():
    task = worlds.task_of({**worlds.SETTINGS, "world": worlds.FOOD}, 0)
    assert not task.terminal.any()
    assert set(task.rewards.ravel().tolist()) == {0.0, 1.0}
    assert len(set(task.successors[task.rewards == 1.0].tolist())) == 1


def test_the_control_explores_as_much_as_the_rule():
    settings = {**stopping.SETTINGS, "world": worlds.ROOM, "num_episodes": 300}
    ruled = stopping.run_seed({**settings, "kind": "learn", "policy": stopping.UNCHANGED}, 0)
    budget = stopping.BUDGET.format(stopping.UNCHANGED)
    control = stopping.run_seed({**settings, "kind": "learn", "policy": budget}, 0)
    plain = stopping.run_seed({**settings, "kind": "learn", "policy": "ez"}, 0)
    assert control["explored"] == pytest.approx(ruled["explored"], rel=0.15)
    assert plain["explored"] > 1.3 * ruled["explored"]
    assert ruled["length"] < plain["length"]
