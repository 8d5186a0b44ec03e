"""The atlas of what exploration finds: read from a summary, and refused where it is damaged."""

import json
from pathlib import Path

import pytest

from ezgreedy.cli import main
from ezgreedy.report.atlas import atlas_from_json
from ezgreedy.results.store import read_json
from support.generated_runs import generated_atlas

RESULTS = Path(__file__).parents[2] / "results" / "atari-exploration" / "summary.json"


MEASURES = (
    *("return", "reward_per_1000_steps", "first_reward", "cells", "memories"),
    "lives_lost_per_1000_steps",
)
LAW = "μ = 2, n ≤ 10,000"


def entry(game, policy, gain, without=0, cut=0, sign=0, **measures):
    made = {"game": game, "epsilon": 1.0, "policy": policy}
    made |= {"walks_without_reward": without, "cut_episodes": cut}
    made |= {measure: [1.0, 0.5, 1.5] for measure in MEASURES}
    if gain is not None:
        made |= {f"more_{measure}": gain for measure in MEASURES} | {"gain": gain}
        made["decided"] = {f"more_{measure}": sign for measure in MEASURES if sign}
    return made | measures


DATA = {
    "num_steps": 500,
    "num_seeds": 3,
    "shares": [{"epsilon": 1.0, "policy": LAW, "share": 1.0}],
    "conditions": [
        entry(
            "Freeway", "ε-greedy", None, 3, 2, **{"return": [0.0] * 3, "first_reward": [500] * 3}
        ),
        entry(
            "Freeway",
            LAW,
            [8.0, 7.0, 9.0],
            sign=1,
            **{"return": [8, 7, 9], "first_reward": [90, 50, 99]},
        ),
        entry("Pong", "ε-greedy", None),
        entry("Pong", LAW, [-1.0, -2.0, -0.5], sign=-1),
        entry("Zaxxon", "ε-greedy", None),
        entry("Zaxxon", LAW, [9.0, -1.0, 19.0]),
    ],
}


def test_one_sentence_says_what_it_shows():
    atlas = atlas_from_json(DATA)
    assert atlas.sentence == (
        f"Per step, εz-greedy with {LAW} finds more on 2 of 3 games and less on 1 at ε = 1."
    )


def test_games_stand_in_the_order_of_their_gain_with_what_is_decided_marked():
    atlas = atlas_from_json(DATA)
    (condition,) = atlas.conditions
    assert condition.label == "ε = 1, μ = 2, n ≤ 10,000"
    assert list(condition.rows) == ["Zaxxon", "Freeway", "Pong"]
    assert [row[0].sign for row in condition.rows.values()] == [0, 1, -1]
    gain = condition.rows["Freeway"][0]
    assert gain == (8.0, "8.0", "[7.0, 9.0]", 1, "", "")
    assert atlas.columns[0].startswith("gain")
    assert (atlas.num_games, atlas.num_seeds, atlas.num_steps) == (3, 3, 500)


def test_cells_tell_what_they_are_the_difference_of():
    (condition,) = atlas_from_json(DATA).conditions
    cells = dict(zip(MEASURES, condition.rows["Freeway"][1:], strict=True))
    assert cells["return"][-2:] == ("0 → 8", "2 → 0 episodes cut")
    assert cells["first_reward"][-2:] == ("≥ 500 → 90", "3 → 0 of 3 walks without")
    assert cells["cells"][-2:] == condition.rows["Pong"][3][-2:] == ("1 → 1", "")


def test_below_one_the_share_of_exploratory_steps_is_told():
    conditions = [made | {"epsilon": 0.1} for made in DATA["conditions"]]
    shares = [{"epsilon": 0.1, "policy": LAW, "share": 0.4016}]
    (condition,) = atlas_from_json(DATA | {"conditions": conditions, "shares": shares}).conditions
    assert condition.label == "ε = 0.1, μ = 2, n ≤ 10,000 (40 % of steps exploratory)"


def test_every_condition_has_every_game_under_the_same_columns():
    atlas = atlas_from_json(generated_atlas())
    assert len(atlas.conditions) == 12
    assert len(atlas.columns) == 7
    assert atlas.conditions[atlas.first].label == "ε = 1, μ = 2, n ≤ 10,000"
    for condition in atlas.conditions:
        assert len(condition.rows) == 57
        assert {len(row) for row in condition.rows.values()} == {7}


def test_other_experiments_have_none():
    assert atlas_from_json({}) is None
    assert atlas_from_json(DATA | {"conditions": DATA["conditions"][:1]}) is None


def test_the_committed_results_make_an_atlas():
    summary = json.loads(RESULTS.read_text(encoding="utf-8"))
    atlas = atlas_from_json(summary["data"])
    assert atlas.num_games == len(summary["settings"]["games"])
    assert "Freeway" in atlas.conditions[atlas.first].rows


@pytest.mark.parametrize(
    "damage",
    [
        lambda data: data["conditions"].pop(0),
        lambda data: data["conditions"][1].update(gain=[1.0]),
        lambda data: data.pop("num_steps"),
        lambda data: data.pop("shares"),
    ],
)
def test_a_damaged_atlas_is_refused_by_its_file(tmp_path, capsys, damage):
    summary = read_json(RESULTS) | {"figures": []}
    damage(summary["data"])
    place = tmp_path / "atari-exploration"
    place.mkdir()
    (place / "summary.json").write_text(json.dumps(summary), encoding="utf-8")
    assert main(["report", str(tmp_path)]) == 2
    told = capsys.readouterr().err
    assert str(place / "summary.json") in told
    assert told.count("\n") == 1
