"""An experiment of a few milliseconds whose jobs can pause, fail, or take their process down."""

import os
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from ezgreedy.experiments.experiment import (
    Cell,
    Experiment,
    Record,
    Settings,
    results_by_cell,
)
from ezgreedy.experiments.runner import Plan, reproduce
from ezgreedy.findings.claims import AS_STATED, OURS, Claim, Statement, Summary
from ezgreedy.findings.intervals import mean_interval
from ezgreedy.findings.panels import Curve, Panel

SHIFTS = Statement("Shifts shift.", OURS, "There are numbers.")


def cells(settings: Settings) -> list[Cell]:
    return [Cell(f"shift {shift}", {"shift": shift}) for shift in settings["shifts"]]


def run_seed(settings: Settings, seed: int) -> Mapping[str, Any]:
    time.sleep(settings["pause"])
    if settings["meeting"]:
        _finish_second_after_first(Path(settings["meeting"]), settings["shift"], seed)
    trouble = settings["trouble"] if (settings["shift"], seed) == (1, 1) else ""
    if trouble == "raise":
        raise ArithmeticError("the sum diverged")
    if trouble == "exit":
        os._exit(3)
    value = np.random.default_rng([seed, settings["shift"]]).random() + settings["shift"]
    return {"value": np.nan if trouble == "nan" else value}


def _finish_second_after_first(meeting: Path, shift: int, seed: int) -> None:
    """Makes the first job finish after the second, whatever the load; needs two processes."""
    if (shift, seed) == (1, 0):
        meeting.touch()
    while (shift, seed) == (0, 0) and not meeting.exists():
        time.sleep(0.01)
    time.sleep(0.3 if (shift, seed) == (0, 0) else 0.0)


def summarise(settings: Settings, records: Sequence[Record]) -> Summary:
    values = {
        cell: [result["value"] for result in results]
        for cell, results in results_by_cell(records).items()
    }
    numbers = {cell: mean_interval(samples) for cell, samples in values.items()}
    num_seeds = min(map(len, values.values()))
    claim = Claim(SHIFTS, {AS_STATED: "holds"}, {**numbers, "cells": len(values)}, num_seeds)
    block = Panel(
        "Values of every seed",
        [
            Curve(cell, range(len(y)), y, np.subtract(y, 0.1), np.add(y, 0.1))
            for cell, y in values.items()
        ],
        x_label="seed",
        y_label="value",
    )
    return Summary([claim], [block], {"values": values})


def draw(settings: Settings, summary: Summary, directory: Path) -> list[Path]:
    from ezgreedy.figures import curves, style

    lines = [
        Curve(cell, range(len(values)), values) for cell, values in summary.data["values"].items()
    ]
    panel = Panel("Values", lines, x_label="seed", y_label="value")
    return style.save(curves.learning_curves([panel]), directory / "values")


TINY = Experiment(
    id="tiny",
    title="Nothing of the paper",
    shows="that the machinery runs",
    settings={"shifts": [0, 1, 2], "pause": 0.0, "meeting": "", "trouble": ""},
    quick={"shifts": [0, 1]},
    num_seeds=4,
    statements=(SHIFTS,),
    num_quick_seeds=1,
    cost_seconds=0.1,
    cells=cells,
    run_seed=run_seed,
    summarise=summarise,
    draw=draw,
)


def tiny(**settings: Any) -> Experiment:
    """The experiment with some settings changed."""
    return replace(TINY, settings={**TINY.settings, **settings})


def main() -> int:
    """Runs it as a program: OUT PROCESSES PAUSE [--resume]."""
    out, processes, pause = sys.argv[1:4]
    plan = Plan(Path(out), num_processes=int(processes), resumes="--resume" in sys.argv)
    return reproduce([tiny(pause=float(pause))], plan)


if __name__ == "__main__":
    sys.exit(main())
