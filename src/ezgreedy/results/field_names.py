"""Which names do other libraries use for our numbers? TensorBoard's tags and the tidy table.

Names are CleanRL's where it has one and Stable-Baselines3's for ε; what only exploration with
options has is under `explore/`. Lines of results.jsonl keep their own keys, whichever version wrote
them, and are translated when they are shown.
"""

import csv
import io
from collections.abc import Iterable, Mapping
from typing import Any

_GROUPS = {"evaluation": "eval", "training": "training"}
_NAMES = {
    ("training", "mean_return"): "charts/episodic_return",
    ("training", "mean_length"): "charts/episodic_length",
    ("training", "episodes"): "charts/episodes",
    ("training", "epsilon"): "rollout/exploration_rate",
    ("training", "explored_share"): "explore/fraction",
    ("training", "mean_option_length"): "explore/option_len",
    ("training", "options_started"): "explore/starts",
    ("training", "options_stopped"): "explore/stopped",
    ("training", "bonus"): "explore/bonus",
    ("training", "loss"): "losses/loss",
    ("training", "gradient_norm"): "losses/gradient_norm",
    ("training", "q_values"): "losses/q_values",
    ("evaluation", "mean_return"): "eval/episodic_return",
    ("evaluation", "explored_share"): "eval/explore_fraction",
    ("evaluation", "evaluation_frames"): "eval/frames",
}
STEPS_PER_SECOND = "charts/SPS"
FRAMES_PER_SECOND = "charts/frames_per_second"
RunNames = tuple[str, str, str, int]  # directory, agent, game and seed
COLUMNS = ("run", "agent", "game", "seed", "frame", "metric", "value")


def field_name(kind: str, name: str) -> str:
    """The name of a number.

    Args:
        kind: kind of the line: training or evaluation.
        name: key of the number in results.jsonl.
    """
    return _NAMES.get((kind, name), f"{_GROUPS.get(kind, kind)}/{name}")


def named_numbers(record: Mapping[str, Any]) -> dict[str, float]:
    """The numbers of a line of results.jsonl by their names, without the frame."""
    return {
        field_name(record["kind"], key): value
        for key, value in record.items()
        if key != "frames" and isinstance(value, (int, float)) and not isinstance(value, bool)
    }


def tidy_table(runs: Iterable[tuple[RunNames, Iterable[Mapping[str, Any]]]]) -> str:
    """A table with one number in every row, as CSV with the columns `COLUMNS`.

    Args:
        runs: names and the lines of results.jsonl of each run.
    """
    text = io.StringIO()
    table = csv.writer(text, lineterminator="\n")
    table.writerow(COLUMNS)
    for run, records in runs:
        for record in records:
            for metric, value in named_numbers(record).items():
                table.writerow([*run, record["frames"], metric, value])
    return text.getvalue()
