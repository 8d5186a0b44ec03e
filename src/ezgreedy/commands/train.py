"""`ezgreedy train` and `ezgreedy resume`: train a deep agent on a game to the end."""

import argparse
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ezgreedy import requirements as require
from ezgreedy.agents.registry import agents, scales, smaller_scales
from ezgreedy.commands.imports import add_import_option
from ezgreedy.commands.parsing import whole_number
from ezgreedy.games.registry import families, full_name
from ezgreedy.named_settings import HOW_TO_SET
from ezgreedy.packages import require_deep

if TYPE_CHECKING:
    from ezgreedy.agents.run_settings import RunSettings


def add_parsers(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Registers both commands."""
    train = commands.add_parser(
        "train",
        help="train one of the paper's deep agents on a game",
        description="Trains an agent and writes RUN/: config.json, status.json, results.jsonl (a "
        "line for every evaluation and report), checkpoints/ and tensorboard/. By default, the "
        "settings are the paper's: for Rainbow, 200M frames and a replay of a million transitions, "
        "7 GB of memory; for R2D2, 30,000M frames, 320 lanes and a replay of 4 million "
        "observations, 4 GB. Ctrl-C saves and stops; `ezgreedy resume RUN` continues, also after a "
        "crash.",
        epilog=f"{HOW_TO_SET} For example --set agent.learner.learning_rate=1e-4 --set "
        "agent.durations='Zeta(1.5, cap=100)' --set protocol.sticky_probability=0.25 --set "
        "evaluation.frames=100000. RUN/config.json lists all settings.",
    )
    train.add_argument("agent", metavar="AGENT", help=f"one of {', '.join(agents())}")
    train.add_argument(
        "--game",
        required=True,
        metavar="GAME",
        help=", ".join(family.shown_as for family in families()),
    )
    train.add_argument(
        "--out", type=Path, required=True, metavar="RUN", help="new directory for the run"
    )
    train.add_argument(
        "--frames",
        type=whole_number,
        metavar="N",
        help="emulator frames to play (default: the scale's)",
    )
    train.add_argument(
        "--seed",
        type=int,
        default=0,
        help="random seed; random streams also depend on game and agent, unless --set "
        "streams=paired (default: 0)",
    )
    train.add_argument(
        "--scale",
        choices=scales(),
        default="paper",
        help="paper: published settings; laptop: a million frames, a replay of 100,000, and "
        "schedules and evaluations to match; atari100k: data-efficient Rainbow, 100,000 steps and "
        "an evaluation of 100 episodes at the end; atari100k-dopamine: the same with Dopamine's "
        "network and numbers (default: paper)",
    )
    train.add_argument("--device", metavar="DEVICE", help="cpu or cuda (default: cpu)")
    train.add_argument(
        "--set",
        dest="changes",
        action="append",
        default=[],
        metavar="NAME=VALUE",
        help="change any other setting; repeatable; see below",
    )
    add_import_option(train)
    _add_drive_options(train)
    _add_fleet_options(train)
    train.set_defaults(run=_train)

    resume = commands.add_parser(
        "resume",
        help="continue an interrupted run",
        description="Continues a run from its newest complete checkpoint. With the embedded "
        "engine, results.jsonl ends up the same, byte for byte, as without the interruption. A "
        "damaged checkpoint is reported and the previous one used.",
    )
    resume.add_argument("directory", type=Path, metavar="RUN", help="directory of a run")
    resume.add_argument(
        "--frames",
        type=whole_number,
        metavar="N",
        help="play on to this many frames in all (default: as before); a finished run needs the "
        "replay that train --keep-replay keeps",
    )
    add_device_option(resume)
    add_import_option(resume)
    _add_drive_options(resume)
    fleet = resume.add_argument_group("runs of --engine ray", "to change how the run was started")
    fleet.add_argument("--address", metavar="HOST:PORT", help="Ray cluster (default: as before)")
    fleet.add_argument(
        "--actors", type=int, metavar="N", help="processes that play (default: as before)"
    )
    add_evaluation_options(fleet, "as before", "as before")
    resume.set_defaults(run=_resume)


def add_device_option(parser: argparse.ArgumentParser) -> None:
    """Adds the option to play or continue a run on another device."""
    parser.add_argument(
        "--device",
        metavar="DEVICE",
        help="cpu or cuda (default: that of the run); on another kind of device, numbers are the "
        "same only up to rounding",
    )


def _add_drive_options(parser: argparse.ArgumentParser) -> None:
    add_checkpoint_options(parser)
    parser.add_argument("--quiet", action="store_true", help="show only warnings")


def add_checkpoint_options(parser: argparse.ArgumentParser) -> None:
    """Adds the options about when and what to save."""
    parser.add_argument(
        "--checkpoint-seconds",
        type=float,
        default=60.0,
        metavar="S",
        help="least seconds between checkpoints (default: 60)",
    )
    parser.add_argument(
        "--checkpoint-share",
        type=float,
        default=0.02,
        metavar="P",
        help="largest share of time to spend on checkpoints, so that large ones are rarer; 1 for "
        "no limit (default: 0.02)",
    )
    parser.add_argument(
        "--keep-replay",
        action="store_true",
        help="keep everything in the last checkpoint (default: when a run has finished, only what "
        "evaluate and watch need)",
    )


def _add_fleet_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--engine",
        choices=("embedded", "ray"),
        default="embedded",
        help="embedded: everything in this process, with bit-for-bit reproducible results; ray: "
        "R2D2 in many processes, on this machine or a cluster (default: embedded)",
    )
    fleet = parser.add_argument_group("--engine ray")
    fleet.add_argument(
        "--actors", type=int, metavar="N", help="number of processes that play (default: 2)"
    )
    fleet.add_argument(
        "--lanes-per-actor",
        type=int,
        metavar="E",
        help="environments of each actor, which makes N times E lanes (default: the run's lanes, "
        "divided evenly)",
    )
    fleet.add_argument(
        "--shards", type=int, metavar="S", help="number of replay memory processes (default: 1)"
    )
    add_evaluation_options(fleet, "1", "every one that is due by frames")
    fleet.add_argument(
        "--decode-threads",
        type=int,
        metavar="N",
        help="threads of the learner that decode batches while it computes (default: 2)",
    )
    fleet.add_argument(
        "--spread-shards",
        action="store_true",
        default=None,
        help="spread the memories over the machines (default: with the learner, if they fit)",
    )
    fleet.add_argument(
        "--address",
        metavar="HOST:PORT",
        help="Ray cluster with the same versions of Ray and Python; RUN must be on a file system "
        "that all its machines share (default: a private Ray on this machine)",
    )
    fleet.add_argument(
        "--object-store-megabytes",
        type=int,
        metavar="MB",
        help="shared memory for data in transit (default: as much as the run needs)",
    )


def add_evaluation_options(group: "argparse._ArgumentGroup", evaluators: str, seconds: str) -> None:
    """Adds the options about evaluations of runs on Ray; the strings are the defaults."""
    group.add_argument(
        "--evaluators",
        type=int,
        metavar="N",
        help="processes that evaluate while the others play; evaluations for which none is free "
        f"are skipped (default: {evaluators})",
    )
    group.add_argument(
        "--evaluation-seconds",
        type=float,
        metavar="S",
        help=f"least time between the starts of two evaluations (default: {seconds})",
    )


def _train(parsed: argparse.Namespace) -> int:
    require_deep("train")
    given, parsed.game = parsed.game, full_name(parsed.game)
    changes = _fleet_changes(parsed)
    if parsed.engine == "ray":
        from ezgreedy.fleet.fleet_settings import FleetSettings
        from ezgreedy.fleet.ray_run_loop import train as train_fleet

        fleet = FleetSettings(**changes)
        settings = _settings(parsed)
        if parsed.lanes_per_actor is not None:
            lanes = fleet.actors * require.integer(
                "--lanes-per-actor", parsed.lanes_per_actor, least=1
            )
            settings = replace(settings, lanes=lanes)
        notes = _notes(parsed, given, settings)
        return train_fleet(parsed.out, settings, fleet, _options(parsed), lambda: _tell(notes))
    for name in changes | ({"lanes_per_actor": 0} if parsed.lanes_per_actor is not None else {}):
        raise ValueError(f"--{name.replace('_', '-')} must come with --engine ray")
    settings = _settings(parsed)
    _require_memory(settings)
    from ezgreedy.runs.run_loop import train

    notes = _notes(parsed, given, settings)
    return train(parsed.out, settings, _options(parsed), lambda: _tell(notes))


def _tell(notes: Sequence[str]) -> None:
    for note in notes:
        print(note)


def _require_memory(settings: "RunSettings") -> None:
    """Refuses a run that does not fit, before PyTorch is loaded or a lane is built."""
    from ezgreedy.runs.memory import require_enough

    require_enough(settings)


def _resume(parsed: argparse.Namespace) -> int:
    require_deep("resume")
    from ezgreedy.fleet.ray_run_loop import is_fleet_run
    from ezgreedy.fleet.ray_run_loop import resume as resume_fleet
    from ezgreedy.runs.run_loop import resume

    changes = _fleet_changes(parsed)
    _require_no_sweep(parsed.directory)
    if is_fleet_run(parsed.directory):
        if parsed.device is not None:
            raise ValueError("--device must come with a run of --engine embedded")
        if parsed.frames is not None:
            raise ValueError("--frames must come with a run of --engine embedded")
        return resume_fleet(parsed.directory, _options(parsed), **changes)
    for name in changes:
        raise ValueError(f"--{name.replace('_', '-')} must come with a run of --engine ray")
    return resume(parsed.directory, _options(parsed), parsed.device, parsed.frames)


def _require_no_sweep(directory: Path) -> None:
    from ezgreedy.runs.output_paths import kind_of

    if kind_of(directory) == "sweep":
        rule = "be the directory of one run; to continue a sweep, repeat its `ezgreedy sweep`"
        raise require.refuse("RUN", f"{rule} command", str(directory))


def _fleet_changes(parsed: argparse.Namespace) -> dict[str, Any]:
    """The fleet options that were given."""
    names = (
        "actors",
        "shards",
        "evaluators",
        "evaluation_seconds",
        "decode_threads",
        "spread_shards",
        "address",
        "object_store_megabytes",
    )
    said = {name: getattr(parsed, name, None) for name in names}
    return {name: value for name, value in said.items() if value is not None}


def _settings(parsed: argparse.Namespace) -> Any:
    from ezgreedy.agents.registry import run_of
    from ezgreedy.runs.settings_codec import with_settings

    settings = replace(run_of(parsed.agent, parsed.scale, parsed.game), seed=parsed.seed)
    if parsed.frames is not None:
        settings = replace(settings, frames=parsed.frames)
    if parsed.device is not None:
        settings = replace(settings, device=parsed.device)
    return with_settings(settings, parsed.changes)


def _notes(parsed: argparse.Namespace, given: str, settings: "RunSettings") -> list[str]:
    """Lines about a run that begins, from the game's name as it was given."""
    notes = []
    if given != parsed.game:
        played = f"{given} is played as {parsed.game}"
        notes.append(f"{played}; protocol.* are its settings (see --set)")
    notes += missing_scores(parsed.scale, [parsed.game])
    if not parsed.quiet:
        notes += shortened(parsed.scale, [settings], parsed.changes)
    return notes


def shortened(scale: str, runs: "Sequence[RunSettings]", changes: Sequence[str]) -> list[str]:
    """A line on what runs keep of their scale, if they are much shorter than it is.

    Args:
        scale: name of the scale.
        runs: settings of the runs, which have equally many frames.
        changes: changes to the settings as "NAME=VALUE".
    """
    from ezgreedy.agents.registry import run_of

    frames = runs[0].frames
    cells = {(run.agent.name, run.game): run for run in runs}
    wholes = sorted({run_of(agent, scale, game).frames for agent, game in cells})
    if frames >= wholes[0] / 2:
        return []
    share = f"{frames / wholes[0]:.1%}" if frames >= wholes[0] / 1000 else "less than 0.1%"
    share = f"at most {share}" if wholes[1:] and not share.startswith("less") else share
    lengths = " or ".join(f"{whole:,}" for whole in wholes)
    line = f"{frames:,} frames are {share} of this scale's {lengths}"
    told = _kept(list(cells.values()), changes)
    if told:
        line += f", and nothing else is shortened: {', '.join(told)} (--set changes them"
        # A few frames are a first try, and nobody means to keep the rest of a large scale.
        if frames < wholes[0] / 100:
            smaller = [smaller_scales(agent, scale, game) for agent, game in cells]
            shared = [name for name in smaller[0] if all(name in own for own in smaller)]
            line += f"; --scale {shared[0]} is smaller" if shared else ""
        line += ")"
    return [line]


def _kept(runs: "Sequence[RunSettings]", changes: Sequence[str]) -> list[str]:
    """Settings that go with the length of a run, with their values if all runs share them."""
    from ezgreedy.named_settings import written

    values: dict[str, set[str]] = {}
    for run in runs:
        epsilon = getattr(run.agent, "epsilon", 0.0)
        if not isinstance(epsilon, float):  # a constant has no length
            values.setdefault("agent.epsilon", set()).add(f"'{written(epsilon)}'")
        values.setdefault("evaluation.frames", set()).add(str(run.evaluation.frames))
    changed = tuple(change.partition("=")[0] for change in changes)
    return [
        f"{name}={own.pop()}" if len(own) == 1 else name
        for name, own in values.items()
        if not name.startswith(changed)
    ]


def missing_scores(scale: str, games: Sequence[str]) -> list[str]:
    """A line on games without published scores, at scales meant for comparison with them."""
    from ezgreedy.games.atari import atari100k

    others = [game for game in games if game not in atari100k.published()]
    if scale not in atari100k.SCALES or not others:
        return []
    are = "is" if len(others) == 1 else "are"
    return [f"{', '.join(others)} {are} not among Atari-100k's 26 games: no published scores"]


def _options(parsed: argparse.Namespace) -> Any:
    from ezgreedy.runs.run_loop import DriveOptions

    require.number("--checkpoint-share", parsed.checkpoint_share, 0.0, 1.0)
    return DriveOptions(
        parsed.checkpoint_seconds, parsed.quiet, parsed.checkpoint_share, parsed.keep_replay
    )
