"""Our numbers under the names that other libraries use."""

import csv

import pytest

from ezgreedy.results.field_names import field_name, named_numbers, tidy_table


@pytest.mark.parametrize(
    ("kind", "name", "known_as"),
    [
        ("training", "mean_return", "charts/episodic_return"),
        ("training", "epsilon", "rollout/exploration_rate"),
        ("training", "explored_share", "explore/fraction"),
        ("training", "q_values", "losses/q_values"),
        ("evaluation", "mean_return", "eval/episodic_return"),
        ("evaluation", "episodes", "eval/episodes"),
        ("training", "windows_held", "training/windows_held"),
    ],
)
def test_numbers_have_the_names_of_the_field(kind, name, known_as):
    assert field_name(kind, name) == known_as


OLD = {"kind": "evaluation", "frames": 60, "mean_return": 3.5, "returns": [3.0, 4.0], "ok": True}
NEW = {"kind": "training", "frames": 80, "episodes": 2, "mean_length": 12.0}


def test_only_numbers_are_named():
    assert named_numbers(OLD) == {"eval/episodic_return": 3.5}
    assert named_numbers(NEW) == {"charts/episodes": 2, "charts/episodic_length": 12.0}


def test_the_table_has_one_number_in_every_row():
    text = tidy_table([(("pong-0", "rainbow", "Pong", 0), [OLD, NEW])])
    rows = list(csv.DictReader(text.splitlines()))
    assert [(row["frame"], row["metric"], row["value"]) for row in rows] == [
        ("60", "eval/episodic_return", "3.5"),
        ("80", "charts/episodes", "2"),
        ("80", "charts/episodic_length", "12.0"),
    ]
    assert all(
        (row["run"], row["agent"], row["seed"]) == ("pong-0", "rainbow", "0") for row in rows
    )
