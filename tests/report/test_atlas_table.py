"""The atlas of what exploration finds: read from a summary, and refused where it is damaged."""

import json
from pathlib import Path

import pytest

from ezgreedy.cli import main
from ezgreedy.report.atlas import atlas_from_json
from support.generated_runs import generated_atlas

RESULTS = Path(__file__).parents[2] / "results" / "atari-exploration" / "summary.json"


def entry(game, policy, gain, **more):
    base = {"game": game, "epsilon": 1.0, "policy": policy, "return": [1.0, 0.5, 1.5]}
    return base | ({} if gain is None else {"gain": gain, "more_return": gain}) | more


DATA = {
    "num_steps": 500,
    "conditions": [
        entry("Freeway", "ε-greedy", None, **{"return": [0.0, 0.0, 0.0]}),
        entry("Freeway", "μ = 2, n ≤ 10,000", [8.0, 7.0, 9.0]),
        entry("Pong", "ε-greedy", None),
        entry("Pong", "μ = 2, n ≤ 10,000", [-1.0, -2.0, -0.5]),
        entry("Zaxxon", "ε-greedy", None),
        entry("Zaxxon", "μ = 2, n ≤ 10,000", [9.0, -1.0, 19.0]),
    ],
}


def test_games_stand_in_the_order_of_their_gain_with_what_is_decided_marked():
    atlas = atlas_from_json(DATA)
    (condition,) = atlas.conditions
    assert condition.label == "ε = 1, μ = 2, n ≤ 10,000"
    assert list(condition.rows) == ["Zaxxon", "Freeway", "Pong"]
    assert [row[0].sign for row in condition.rows.values()] == [0, 1, -1]
    gain, of_others, more = condition.rows["Freeway"]
    assert (gain.number, gain.value, gain.interval) == (8.0, "8.0", "[7.0, 9.0]")
    assert (of_others.number, of_others.sign) == (0.0, 0)
    assert more.sign == 1
    assert atlas.columns[0].startswith("gain")
    assert (atlas.num_games, atlas.num_steps) == (3, 500)


def test_every_condition_has_every_game_under_the_same_columns():
    atlas = atlas_from_json(generated_atlas())
    assert len(atlas.conditions) == 12
    assert len(atlas.columns) == 8
    assert atlas.conditions[atlas.first].label == "ε = 1, μ = 2, n ≤ 10,000"
    for condition in atlas.conditions:
        assert len(condition.rows) == 57
        assert {len(row) for row in condition.rows.values()} == {8}


def test_other_experiments_have_none():
    assert atlas_from_json({}) is None
    assert atlas_from_json({"num_steps": 1, "conditions": DATA["conditions"][:1]}) is None


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
    ],
)
def test_a_damaged_atlas_is_refused_by_its_file(tmp_path, capsys, damage):
    summary = json.loads(RESULTS.read_text(encoding="utf-8")) | {"figures": []}
    damage(summary["data"])
    place = tmp_path / "atari-exploration"
    place.mkdir()
    (place / "summary.json").write_text(json.dumps(summary), encoding="utf-8")
    assert main(["report", str(tmp_path)]) == 2
    told = capsys.readouterr().err
    assert str(place / "summary.json") in told
    assert told.count("\n") == 1
