import json

import numpy as np

from ezgreedy.cli import main
from ezgreedy.experiments.experiment import Record
from ezgreedy.experiments.paper import cover_times
from support.small_mdps import corridor, deep_sea, room


def test_processes_are_the_corridor_the_room_and_deep_sea():
    for family, size, expected in (
        ("corridor", 7, corridor(7)),
        ("room", 5, room(5, (1, 2))),
        ("deep-sea", 4, deep_sea(4)),
    ):
        mdp = cover_times._mdp(family, size)
        acting = mdp.reachable_states() & ~mdp.ends
        assert acting.sum() >= size
        np.testing.assert_array_equal(mdp.start, expected.start)
        np.testing.assert_array_equal(mdp.transitions[acting], expected.transitions[acting])


def test_a_quick_run_says_where_repeats_pay_and_where_they_do_not(tmp_path):
    arguments = ["reproduce", "cover-times", "--quick", "--jobs", "1", "--out", str(tmp_path)]
    assert main(arguments) == 0
    summary = json.loads((tmp_path / "cover-times" / "summary.json").read_text())
    corridors, rooms = summary["claims"]
    assert rooms["readings"] == {"εz-greedy, n ≤ 10,000": "contradicted"}
    assert list(rooms["controls"]) == ["εz-greedy, n ≤ 100"]
    assert rooms["verdict"] is None, "two seeds"
    assert corridors["numbers"]["corridor 20: εz-greedy, n ≤ 100 / ε-greedy"]["high"] < 1.0
    assert rooms["numbers"]["room 6: εz-greedy, n ≤ 10,000 / ε-greedy"]["low"] > 1.0
    assert (tmp_path / "cover-times" / "cover_times.svg").exists()


def test_the_summary_takes_medians_over_all_runs_of_all_seeds():
    settings = {**cover_times.SETTINGS, "corridor": [3], "room": [], "deep-sea": [], "caps": [5]}
    records = [
        Record(cell.name, {}, seed, {"times": times})
        for cell in cover_times.cells(settings)
        for seed, times in enumerate([[1, 9], [5, 7, 2]])
    ]
    panels = cover_times.summarise(
        settings | {"room": [3], "deep-sea": [3]},
        [
            *records,
            *(
                Record(f"{family} 3, {policy}", {}, 0, {"times": [4]})
                for family in ("room", "deep-sea")
                for policy in ("ε-greedy", "εz-greedy, n ≤ 5")
            ),
        ],
    ).panels
    assert panels[0].curves[0].label == "ε-greedy"
    assert panels[0].curves[0].mean == [5]
