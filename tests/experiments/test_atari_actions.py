"""The committed table of which Atari actions differ is what the emulator shows."""

import json
from pathlib import Path

import numpy as np
import pytest

from ezgreedy.analysis.distinct_actions import ActionEffects, combined_effects
from ezgreedy.experiments.beyond import atari_actions
from ezgreedy.experiments.experiment import Record
from ezgreedy.games.atari.atari57 import games
from ezgreedy.results.store import read_json

PUBLISHED = Path(__file__).parents[2] / "results" / "atari-actions"


def published_labels():
    return read_json(PUBLISHED / "summary.json")["data"]["labels"]


def published_walks(name):
    lines = (PUBLISHED / "results.jsonl").read_text(encoding="utf-8").splitlines()
    entries = [json.loads(line) for line in lines]
    return {entry["seed"]: entry["result"]["labels"] for entry in entries if entry["cell"] == name}


def test_the_table_has_all_games_and_each_is_the_sum_of_its_walks():
    labels = published_labels()
    assert list(labels) == list(games())
    for name, row in labels.items():
        walks = [ActionEffects(np.array(walk)) for walk in published_walks(name).values()]
        assert len(walks) == 3
        assert combined_effects(walks).labels.tolist() == row


@pytest.mark.parametrize(
    ("name", "seed"),
    [
        ("Gravitar", 0),
        ("DoubleDunk", 2),
        pytest.param("Freeway", 1, marks=pytest.mark.slow),
        pytest.param("MontezumaRevenge", 0, marks=pytest.mark.slow),
    ],
)
def test_a_game_tried_again_gives_the_published_walk(name, seed):
    pytest.importorskip("ale_py")
    found = atari_actions.run_seed({**atari_actions.SETTINGS, "game": name}, seed)
    assert found["labels"] == published_walks(name)[seed]


def test_weights_of_the_table_make_effects_uniform():
    for name, row in published_labels().items():
        effects = ActionEffects(np.array(row))
        for group in effects.groups:
            assert effects.action_weights[group].sum() == pytest.approx(1.0), name


def test_verdicts_follow_from_the_games():
    rows = {"Freeway": [0, 0, 2], "Pong": [0, 1, 2]}
    records = [
        Record(name, {}, seed, {"labels": row}) for name, row in rows.items() for seed in (0, 1)
    ]
    summary = atari_actions.summarise(atari_actions.SETTINGS, records)
    assert [claim.statement for claim in summary.claims] == list(
        atari_actions.EXPERIMENT.statements
    )
    assert summary.tables[0].rows[0] == ["Freeway", 2, 3, 2, "2"]
    assert summary.claims[0].numbers["games in which at most 9 differ"] == 2
    assert summary.data["labels"]["Freeway"] == [0, 0, 2]


def test_games_are_checked_before_anything_runs():
    with pytest.raises(ValueError, match="games must hold at least one game, each once"):
        atari_actions.cells({"games": ["Pong", "Pong"]})
    with pytest.raises(ValueError, match="Pnog"):
        atari_actions.cells({"games": ["Pnog"]})
