"""Small runs that rows begin with: one without any trouble, and one that paused near its end."""

from dataclasses import replace
from pathlib import Path
from typing import Any

from ezgreedy.agents.run_settings import EvaluationSettings, RunSettings
from ezgreedy.results.store import read_results
from ezgreedy.runs.interruption import Interruption
from ezgreedy.runs.run_loop import DriveOptions, train
from ezgreedy.runs.training import Training
from faults.commands import Forked, outcome
from faults.matrix import Failure
from support.small_runs import small_run

# Finished runs keep their whole state, so that every bit of it can be compared.
SELDOM = DriveOptions(1e6, is_quiet=True, keeps_replay=True)
ALWAYS = DriveOptions(0.0, is_quiet=True, checkpoint_share=1.0, keeps_replay=True)
RESUME = ("--quiet", "--keep-replay", "--checkpoint-seconds", "1e6")

STUDY = "fig3-deepsea"
STUDY_COMMAND = ("reproduce", STUDY, "--quick", "--seeds", "1")

# The agents whose runs are interrupted, by the names of groups.
SETTINGS: dict[str, tuple[str, str, dict[str, Any]]] = {
    "Rainbow on Atari": ("rainbow-ez", "Breakout", {"frames": 640}),
    "R2D2 on Atari": ("r2d2-ez", "Breakout", {"frames": 960, "lanes": 2}),
    "RND": ("r2d2-rnd", "minatar/breakout", {"frames": 300}),
    "Bootstrap": ("r2d2-bootstrap", "minatar/breakout", {"frames": 300}),
    "CTS": ("rainbow-cts", "minatar/breakout", {"frames": 240}),
}


def brief(agent: str = "rainbow-ez", game: str = "minatar/breakout", **changes: Any) -> RunSettings:
    """A run of a second that plays, learns, is evaluated, reports and fills its memory."""
    evaluation = EvaluationSettings(frames_between=120, frames=40, lanes=2)
    settings = small_run(agent, game, **{"frames": 300, **changes})
    return replace(settings, evaluation=evaluation, frames_per_report=80)


def of_group(group: str) -> RunSettings:
    """The settings of a group's runs."""
    agent, game, changes = SETTINGS[group]
    return brief(agent, game, **changes)


def whole(directory: Path, settings: RunSettings) -> tuple[bytes, Any]:
    """A run without any trouble; its results and its last state."""
    _require(Forked(directory.parent, train, directory, settings, SELDOM), 0)
    return outcome(directory)


def paused(
    directory: Path, settings: RunSettings, frames: int, options: DriveOptions | None = None
) -> None:
    """A run that was interrupted at these frames, by default with two checkpoints."""
    options = options or replace(ALWAYS, seconds_between_checkpoints=0.1)
    _require(Forked(directory.parent, train_until, directory, settings, options, frames), 130)


def train_until(directory: Path, settings: RunSettings, options: DriveOptions, frames: int) -> int:
    """Train until this many frames, as if somebody pressed Ctrl-C then; needs its own process."""
    reached: list[bool] = []
    step = Training.step

    def noting(self: Training) -> Any:
        steps = step(self)
        if self.frames >= frames:
            reached.append(True)
        return steps

    Training.step = noting  # type: ignore[method-assign]
    Interruption.requested = property(lambda self: bool(reached))  # type: ignore[assignment]
    Interruption.exit_code = 130  # type: ignore[assignment,misc]
    return train(directory, settings, options)


def study_results(out: Path) -> list[dict[str, Any]]:
    """The results of the study, in the order of its jobs and without the time that they took."""
    records = read_results(out / STUDY / "results.jsonl")
    found = [{k: v for k, v in record.items() if k != "seconds"} for record in records]
    return sorted(found, key=lambda record: (record["cell"], record["seed"]))


def _require(process: Forked, code: int) -> None:
    ended = process.ended(600.0)
    if ended.code != code:
        raise Failure(f"a run without trouble ended with {ended.code}: {ended.err[-300:]}")
