from typing import Any

import numpy as np

from ezgreedy.experiments.experiment import Record
from ezgreedy.experiments.paper.fig1_gridworld_coverage import EXPERIMENT, SETTINGS

SMALL = {**SETTINGS, "size": 7, "num_steps": 300, "band_half_widths": [1]}
SMALL["num_walks_per_seed"] = 5


def test_a_seed_gives_the_same_result_every_time_and_another_seed_another() -> None:
    settings = {**SMALL, "policy": "ez", "epsilon": 0.5}
    result = EXPERIMENT.run_seed(settings, 3)
    assert EXPERIMENT.run_seed(settings, 3) == result
    assert EXPERIMENT.run_seed(settings, 4) != result


def test_walk_measures_agree_with_the_map() -> None:
    result = EXPERIMENT.run_seed({**SMALL, "policy": "eps", "epsilon": 0.5}, 0)
    first = np.array(result["first_visits"])
    assert first.shape == (7, 7)
    assert first[1, 3] == 0
    assert np.isclose(np.mean(result["all_cells"]), first.mean(), atol=0.01)
    assert np.isclose(np.mean(result["bottom_corners"]), first[-1, [0, -1]].mean())


def test_every_setting_of_the_walk_changes_the_result() -> None:
    settings = {**SMALL, "policy": "ez", "epsilon": 0.5}
    result = EXPERIMENT.run_seed(settings, 0)
    changes: dict[str, Any] = {
        "policy": "eps",
        "epsilon": 0.6,
        "size": 9,
        "num_steps": 301,
        "num_walks_per_seed": 6,
        "start_row": 0,
        "mu": 1.5,
        "cap": 2,
        "carries_over_episodes": True,
        "band_half_widths": [2],
    }
    for name, value in changes.items():
        assert EXPERIMENT.run_seed({**settings, name: value}, 0) != result, name
    assert set(settings) - set(changes) == {"epsilons"}


def records(eps: float, ez: float, beyond: float, narrow: float) -> list[Record]:
    """Made-up results in which every cell is first visited after so many steps."""
    entries = []
    for cell in EXPERIMENT.cells(SETTINGS):
        steps = ez if cell.settings["policy"] == "ez" else eps
        result = {
            "first_visits": [[steps, steps], [steps, steps]],
            "all_cells": [steps],
            "bottom_corners": [steps],
            "visited_beyond": {"3": [beyond], "5": [beyond], "7": [narrow]},
        }
        entries += [Record(cell.name, cell.settings, seed, result) for seed in range(5)]
    return entries


def verdicts(eps: float, ez: float, beyond: float, narrow: float | None = None) -> list[str | None]:
    made = records(eps, ez, beyond, beyond if narrow is None else narrow)
    summary = EXPERIMENT.summarise(SETTINGS, made)
    return [claim.verdict for claim in summary.claims]


def test_verdicts_follow_the_numbers() -> None:
    assert verdicts(eps=4000, ez=1000, beyond=0.0) == ["reproduced"] * 4
    assert verdicts(eps=1000, ez=4000, beyond=0.5) == ["contradicted"] * 4
    assert verdicts(eps=4000, ez=4500, beyond=0.05) == [
        "reproduced",
        "contradicted",
        "contradicted",
        "contradicted",
    ]
    assert verdicts(eps=4000, ez=1000, beyond=0.5, narrow=0.05)[0] == "reading-dependent"


def test_every_epsilon_has_its_own_streams_and_policies_share_them() -> None:
    at = {**SMALL, "num_steps": 2000}
    gentle, pure = (
        EXPERIMENT.run_seed({**at, "policy": "ez", "epsilon": epsilon, "cap": 1}, 0)
        for epsilon in (0.999999, 1.0)
    )
    assert gentle != pure, "the same coins would give the same walks"
    eps = EXPERIMENT.run_seed({**at, "policy": "eps", "epsilon": 1.0}, 0)
    assert eps == pure, "a cap of 1 is ε-greedy"
