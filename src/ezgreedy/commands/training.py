"""`ezgreedy train` and `ezgreedy resume`: a deep agent on a game, until it is done."""

import argparse
import importlib.util
from dataclasses import replace
from pathlib import Path
from typing import Any

# Named here, so that `--help` needs NumPy alone; a test holds the list to the presets.
AGENTS = (
    *("rainbow", "rainbow-eps", "rainbow-ez", "rainbow-cts"),
    *("r2d2", "r2d2-rnd", "r2d2-bootstrap", "r2d2-ez"),
)
_SCALES = ("paper", "laptop")


def add_parsers(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Registers both commands."""
    train = commands.add_parser(
        "train",
        help="train one of the paper's deep agents on a game",
        description="Trains an agent and writes RUN/: config.json, status.json, results.jsonl (a "
        "line for every evaluation and report), checkpoints/ and tensorboard/. The settings are "
        "the paper's unless --scale laptop is given: for Rainbow 200M frames and a million "
        "transitions of replay, 7 GB of memory; for R2D2 30,000M frames, 320 lanes and 4 million "
        "observations, 4 GB. Ctrl-C saves and stops; `ezgreedy resume RUN` continues bit for bit, "
        "also after a crash.",
        epilog="Settings are named by dots: --set agent.learner.learning_rate=1e-4 --set "
        "agent.durations='Zeta(1.5, cap=100)' --set protocol.sticky_probability=0.25 --set "
        "evaluation.frames=100000. RUN/config.json lists all of them.",
    )
    train.add_argument("agent", metavar="AGENT", help=f"one of {', '.join(AGENTS)}")
    train.add_argument(
        "--game",
        required=True,
        metavar="GAME",
        help="an Atari game (Freeway, MontezumaRevenge, ...), minatar/NAME, deep_sea/N, or, for "
        "R2D2, memory_chain/N",
    )
    train.add_argument(
        "--out", type=Path, required=True, metavar="RUN", help="the run's directory, a new one"
    )
    train.add_argument("--frames", type=int, metavar="N", help="emulator frames to play")
    train.add_argument("--seed", type=int, default=0, help="of everything random (default: 0)")
    train.add_argument(
        "--scale",
        choices=_SCALES,
        default="paper",
        help="paper: the published settings; laptop: a million frames, a replay of 100,000, "
        "schedules and evaluations shortened to match (default: paper)",
    )
    train.add_argument("--device", metavar="DEVICE", help="cpu or cuda (default: cpu)")
    train.add_argument(
        "--set",
        dest="changes",
        action="append",
        default=[],
        metavar="PATH=VALUE",
        help="any other setting, repeatable",
    )
    _add_drive_options(train)
    train.set_defaults(run=_train)

    resume = commands.add_parser(
        "resume",
        help="continue a run that was interrupted",
        description="Continues a run from its newest whole checkpoint, to the very bytes that it "
        "would have written without the interruption. A damaged checkpoint is named, and the one "
        "before it taken.",
    )
    resume.add_argument("directory", type=Path, metavar="RUN", help="a directory of ezgreedy train")
    _add_drive_options(resume)
    resume.set_defaults(run=_resume)


def _add_drive_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--checkpoint-seconds",
        type=float,
        default=60.0,
        metavar="S",
        help="time between checkpoints (default: 60)",
    )
    parser.add_argument("--quiet", action="store_true", help="no progress, warnings alone")


def _train(parsed: argparse.Namespace) -> int:
    require_packages("train")
    from ezgreedy.running.driver import train

    return train(parsed.out, _settings(parsed), _options(parsed))


def _resume(parsed: argparse.Namespace) -> int:
    require_packages("resume")
    from ezgreedy.running.driver import resume

    return resume(parsed.directory, _options(parsed))


def _settings(parsed: argparse.Namespace) -> Any:
    from ezgreedy.running.plain import with_setting
    from ezgreedy.running.scales import SCALES, preset

    settings = replace(SCALES[parsed.scale](preset(parsed.agent), parsed.game), seed=parsed.seed)
    if parsed.frames is not None:
        settings = replace(settings, frames=parsed.frames)
    if parsed.device is not None:
        settings = replace(settings, device=parsed.device)
    for change in parsed.changes:
        path, has_value, text = change.partition("=")
        if not has_value:
            raise ValueError(f"--set must be PATH=VALUE; got {change!r}")
        settings = with_setting(settings, path, text)
    return settings


def _options(parsed: argparse.Namespace) -> Any:
    from ezgreedy.running.driver import DriveOptions

    return DriveOptions(parsed.checkpoint_seconds, parsed.quiet)


def require_packages(command: str) -> None:
    """Refuses to go on without the packages of the `deep` extra."""
    for module in ("torch", "ale_py", "numba", "rich", "safetensors", "tensorboardX", "zstandard"):
        if importlib.util.find_spec(module) is None:
            raise ValueError(
                f"{command} needs {module}, which is not installed (pip install 'ezgreedy[deep]')"
            )
