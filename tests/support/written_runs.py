"""Runs whose numbers a test writes down itself: the files of a real run, without the playing."""

from dataclasses import replace
from pathlib import Path
from typing import Any

from ezgreedy.agents.registry import run_of
from ezgreedy.runs.run_directory import RunDirectory
from ezgreedy.runs.settings_codec import with_setting


def write_run(
    path: Path,
    scores: list[tuple[int, float]],
    reports: list[tuple[int, int, float | None, float]] = (),
    agent: str = "rainbow",
    game: str = "minatar/breakout",
    scale: str = "laptop",
    **changes: Any,
) -> Path:
    """A run with these evaluations (frames, score) and reports (frames, episodes, return, share).

    Changes are of settings of the run, or of its agent by a path with two underscores for a dot.
    """
    settings = run_of(agent, scale, game)
    for name, value in changes.items():
        if "__" in name:
            settings = with_setting(settings, name.replace("__", "."), str(value))
        else:
            settings = replace(settings, **{name: value})
    place = RunDirectory(path)
    place.create(settings)
    with place.log() as log:
        for frames, episodes, mean, share in reports:
            record = {"kind": "training", "frames": frames, "episodes": episodes}
            record |= {} if mean is None else {"mean_return": mean}
            log.append({**record, "explored_share": share})
        for frames, score in scores:
            log.append(
                {"kind": "evaluation", "frames": frames, "mean_return": score, "episodes": 2}
                | {"returns": [score - 1.0, score + 1.0], "unfinished": [0.0]}
            )
        rows = log.num_records
    frames = max((score[0] for score in scores), default=0)
    place.write_status("paused", rows=rows, frames=frames, frames_to_play=settings.frames)
    return path
