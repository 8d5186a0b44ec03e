"""`ezgreedy train` and `ezgreedy resume`: a deep agent on a game, until it is done."""

import argparse
import importlib.util
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from ezgreedy import requirements as require

# Named here, so that `--help` needs NumPy alone; a test holds the list to the presets.
AGENTS = (
    *("rainbow", "rainbow-eps", "rainbow-ez", "rainbow-ez-budget", "rainbow-cts"),
    *("r2d2", "r2d2-rnd", "r2d2-bootstrap", "r2d2-ez"),
)
SCALES = ("paper", "laptop", "atari100k", "atari100k-dopamine")


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
        choices=SCALES,
        default="paper",
        help="paper: the published settings; laptop: a million frames, a replay of 100,000, "
        "schedules and evaluations shortened to match; atari100k: data-efficient Rainbow, 100,000 "
        "steps and an evaluation of 100 episodes at the end; atari100k-dopamine: the same with "
        "the network and numbers of Dopamine (default: paper)",
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
    _add_fleet_options(train)
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
    fleet = resume.add_argument_group("runs of --engine ray", "only if it is to be otherwise")
    fleet.add_argument("--address", metavar="HOST:PORT", help="another Ray cluster")
    fleet.add_argument("--actors", type=int, metavar="N", help="another number of processes")
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


def _add_fleet_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--engine",
        choices=("embedded", "ray"),
        default="embedded",
        help="embedded: everything in this process, the same to the last bit every time; ray: "
        "R2D2 in many processes, on this machine or a cluster (default: embedded)",
    )
    fleet = parser.add_argument_group("--engine ray")
    fleet.add_argument("--actors", type=int, metavar="N", help="processes that play (default: 2)")
    fleet.add_argument(
        "--lanes-per-actor",
        type=int,
        metavar="E",
        help="environments of each; N times E is then the number of lanes (default: the run's "
        "lanes, dealt out evenly)",
    )
    fleet.add_argument(
        "--shards", type=int, metavar="S", help="processes that remember (default: 1)"
    )
    fleet.add_argument(
        "--address",
        metavar="HOST:PORT",
        help="a Ray cluster with the same versions of Ray and Python, and RUN on a file system "
        "that all its machines share (default: a Ray of its own, bound to this machine)",
    )
    fleet.add_argument(
        "--object-store-megabytes",
        type=int,
        metavar="MB",
        help="shared memory for what is in transit (default: what the run needs)",
    )


def _train(parsed: argparse.Namespace) -> int:
    require_packages("train")
    changes = _fleet_changes(parsed)
    if parsed.engine == "ray":
        from ezgreedy.fleet.driving import train as train_fleet
        from ezgreedy.fleet.settings import FleetSettings

        fleet = FleetSettings(**changes)
        settings = _settings(parsed)
        if parsed.lanes_per_actor is not None:
            lanes = fleet.actors * require.integer(
                "--lanes-per-actor", parsed.lanes_per_actor, least=1
            )
            settings = replace(settings, lanes=lanes)
        return train_fleet(parsed.out, settings, fleet, _options(parsed))
    note_missing_scores(parsed.scale, [parsed.game])
    for name in changes | ({"lanes_per_actor": 0} if parsed.lanes_per_actor is not None else {}):
        raise ValueError(f"--{name.replace('_', '-')} must come with --engine ray")
    from ezgreedy.running.driver import train

    return train(parsed.out, _settings(parsed), _options(parsed))


def _resume(parsed: argparse.Namespace) -> int:
    require_packages("resume")
    from ezgreedy.fleet.driving import is_fleet_run
    from ezgreedy.fleet.driving import resume as resume_fleet
    from ezgreedy.running.driver import resume

    changes = _fleet_changes(parsed)
    if is_fleet_run(parsed.directory):
        return resume_fleet(parsed.directory, _options(parsed), **changes)
    for name in changes:
        raise ValueError(f"--{name} must come with a run of --engine ray")
    return resume(parsed.directory, _options(parsed))


def _fleet_changes(parsed: argparse.Namespace) -> dict[str, Any]:
    """What was said about the fleet."""
    names = ("actors", "shards", "address", "object_store_megabytes")
    said = {name: getattr(parsed, name, None) for name in names}
    return {name: value for name, value in said.items() if value is not None}


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


def note_missing_scores(scale: str, games: Sequence[str]) -> None:
    """Says which games have no published scores at a scale that is meant for comparing them."""
    from ezgreedy.atari.atari100k import published

    others = [game for game in games if game not in published()]
    if scale.startswith("atari100k") and others:
        are = "is" if len(others) == 1 else "are"
        print(f"{', '.join(others)} {are} not among Atari-100k's 26 games: no published scores")


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
