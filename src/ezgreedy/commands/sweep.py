"""`ezgreedy sweep`: train all agents of a study on all its games, interruptibly, here or on Ray."""

import argparse
import sys
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ezgreedy import requirements as require
from ezgreedy.agents.registry import scales
from ezgreedy.commands.game_names import game_of, of_other_kinds
from ezgreedy.commands.imports import add_import_option
from ezgreedy.commands.parsing import whole_number
from ezgreedy.commands.reproduce import num_cores
from ezgreedy.commands.train import (
    add_checkpoint_options,
    add_evaluation_options,
    missing_scores,
    shortened,
)
from ezgreedy.named_settings import HOW_TO_SET
from ezgreedy.packages import require_deep
from ezgreedy.sweeps.definitions import sweeps

if TYPE_CHECKING:
    from ezgreedy.agents.run_settings import RunSettings
    from ezgreedy.fleet.fleet_settings import FleetSettings
    from ezgreedy.sweeps.definitions import Sweep
    from ezgreedy.sweeps.jobs import Runs

_RAY_OPTIONS = ("address", "cpus_per_run", "memory_per_run", "gpus_per_run")
_FLEET_OPTIONS = ("actors", "shards", "evaluators", "evaluation_seconds")
ENGINES = ("local", "ray")
STATUS = "status"
_NAMES_TOLD = 3


def add_parser(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Registers the command."""
    sweep = commands.add_parser(
        "sweep",
        help="train many agents on many games, or show their progress",
        description="Trains every agent on every game with every seed, each as a separate run in "
        "DIR/runs, several at once. To continue after Ctrl-C or a crash, or to add games, agents "
        "or seeds, repeat the command: finished runs are skipped and interrupted ones resumed. A "
        "run that fails is tried three times and does not stop the others. The command first shows "
        "the expected cost and asks for confirmation if it takes more than an hour or may not fit. "
        "`ezgreedy sweep status DIR` shows the progress.",
        epilog=HOW_TO_SET,
    )
    sweep.add_argument(
        "name", metavar="NAME", help=f"one of {', '.join(sweeps())}; or status, followed by DIR"
    )
    sweep.add_argument(
        "directory", nargs="?", type=Path, metavar="DIR", help="directory of the sweep, for status"
    )
    sweep.add_argument("--out", type=Path, metavar="DIR", help="directory of the sweep")
    sweep.add_argument("--games", metavar="A,B", help="games, instead of the sweep's")
    sweep.add_argument("--agents", metavar="A,B", help="agents, instead of the sweep's")
    sweep.add_argument(
        "--seeds",
        type=int,
        metavar="N",
        help="number of seeds (0 to N - 1); random streams also depend on game and agent, unless "
        "--set streams=paired",
    )
    sweep.add_argument(
        "--frames", type=whole_number, metavar="N", help="emulator frames of each run"
    )
    sweep.add_argument(
        "--scale",
        metavar="SCALE",
        help=f"{', '.join(scales())} (default: the sweep's)",
    )
    sweep.add_argument(
        "--set",
        dest="changes",
        action="append",
        default=[],
        metavar="NAME=VALUE",
        help="change any other setting of all runs, as for train; repeatable; see below",
    )
    sweep.add_argument(
        "--jobs", type=int, metavar="N", help="number of concurrent runs (default: one per core)"
    )
    sweep.add_argument(
        "--engine",
        default="local",
        metavar="ENGINE",
        help="where to run: local, on this machine; ray, on the machines of a Ray cluster "
        "(default: local)",
    )
    sweep.add_argument("--yes", action="store_true", help="start without asking")
    sweep.add_argument(
        "--probe-seconds",
        type=float,
        default=3.0,
        metavar="S",
        help="seconds to measure the speed of each agent before starting (default: 3)",
    )
    add_checkpoint_options(sweep)
    add_import_option(sweep)
    _add_ray_options(sweep)
    _add_fleet_options(sweep)
    sweep.set_defaults(run=_run)


def _add_ray_options(parser: argparse.ArgumentParser) -> None:
    ray = parser.add_argument_group(
        "--engine ray",
        "Each run waits for a machine with enough free resources. DIR must be on a file system "
        "that all machines share, with locks that hold between them; this is checked before "
        "anything starts. By default, --jobs is as many as fit.",
    )
    ray.add_argument(
        "--address",
        metavar="HOST:PORT",
        help="Ray cluster with the same versions of Ray, Python and ezgreedy (default: a private "
        "Ray on this machine)",
    )
    ray.add_argument(
        "--cpus-per-run",
        type=float,
        metavar="N",
        help="processors (default: one per thread of the run)",
    )
    ray.add_argument(
        "--memory-per-run",
        type=float,
        metavar="GB",
        help="memory in gigabytes (default: enough for a full replay)",
    )
    ray.add_argument(
        "--gpus-per-run",
        type=float,
        metavar="N",
        help="graphics processors; 0.25 lets four runs share one (default: 1 with --set "
        "device=cuda, else 0)",
    )


def _add_fleet_options(parser: argparse.ArgumentParser) -> None:
    sizes = [f"{sweep.fleet.actors} in {sweep.name}" for sweep in sweeps().values() if sweep.fleet]
    fleets = parser.add_argument_group(
        "runs that are fleets, with --engine ray",
        "Each run of R2D2 is then many processes on the cluster, as with `train --engine ray`: a "
        "CPU for each of them and one for the process that directs them. This is the default of "
        "atari57-r2d2 and atari-durations at the paper's scale. --jobs is the number of fleets at "
        "once; if the cluster cannot hold one, the sweep is refused.",
    )
    fleets.add_argument(
        "--actors",
        type=int,
        metavar="N",
        help=f"processes that play in each run (default: {', '.join(sizes)}; else none); 0 for "
        "runs in one process",
    )
    fleets.add_argument(
        "--shards", type=int, metavar="S", help="replay memory processes of each run"
    )
    add_evaluation_options(fleets, "1, or as many as shards", "every one that is due by frames")


def _run(parsed: argparse.Namespace) -> int:
    require_deep("sweep")
    if parsed.name == STATUS:
        return _status(parsed)
    if parsed.directory is not None:
        raise require.refuse("DIR", f"only follow {STATUS} (else --out DIR)", str(parsed.directory))
    if parsed.out is None:
        raise ValueError("--out must be given: the directory of the sweep")
    require.one_of("--engine", parsed.engine, ENGINES)
    return _sweep(parsed)


def _sweep(parsed: argparse.Namespace) -> int:
    from ezgreedy.sweeps import forecast
    from ezgreedy.sweeps.definitions import members
    from ezgreedy.sweeps.sweep_directory import SweepDirectory
    from ezgreedy.sweeps.sweep_loop import Sweeping

    require.number("--probe-seconds", parsed.probe_seconds, 0.0)
    sweep = _asked(parsed)
    place = SweepDirectory(parsed.out)
    place.check(sweep, parsed.changes)
    runs = members(sweep, parsed.changes, has_earlier_streams=place.has_earlier_streams)
    place.require_writable()
    shapes = forecast.frame_shapes(runs)  # refuses games that do not exist
    fleet = _fleet(parsed, sweep)
    _require_alike(place, runs, are_fleets=fleet is not None)
    engine_of_runs, execution = _engine(parsed, runs, shapes, fleet)
    with engine_of_runs as engine:
        jobs = _num_jobs(parsed, engine, are_fleets=fleet is not None)
        sweeping = Sweeping(place, engine, jobs, _saving(parsed), _say, execution)
        for note in _notes(parsed, sweep, [run.settings for run in runs]):
            _say(note)
        if not _is_agreed(parsed, runs, place, shapes, sweeping):
            return 2
        with place:
            engine.require_directory(place.path)
            place.open(sweep, parsed.changes, runs)
            _warn(place, runs)
            return sweeping.to_the_end(runs)


def _notes(parsed: argparse.Namespace, sweep: "Sweep", runs: "Sequence[RunSettings]") -> list[str]:
    """Lines about games that are not the sweep's, and about runs shorter than their scale."""
    from ezgreedy.sweeps.definitions import find

    notes = of_other_kinds(sweep.games, find(sweep.name).games)
    notes += missing_scores(sweep.scale, sweep.games)
    changed = [change.partition("=")[0] for change in parsed.changes]
    if parsed.frames is not None or "frames" in changed:
        notes += shortened(sweep.scale, runs, parsed.changes)
    return notes


def _saving(parsed: argparse.Namespace) -> Any:
    from ezgreedy.sweeps.jobs import Saving

    return Saving(parsed.checkpoint_seconds, parsed.checkpoint_share, parsed.keep_replay)


def _warn(place: Any, runs: Sequence[Any]) -> None:
    """Warns about runs in the directory made by other code or with other settings."""
    changed = place.made_by_other_code()
    if changed:
        told = "their results may differ from those of this code; sweep.json says which"
        _say(f"warning: the code has changed since {len(changed)} runs were started: {told}")
    outdated = place.outdated(runs)
    if outdated:
        names = ", ".join(outdated[:_NAMES_TOLD]) + (", ..." if outdated[_NAMES_TOLD:] else "")
        told = "their settings differ from those now; new runs are started and the old ones"
        _say(f"warning: {len(outdated)} unfinished runs ({names}): {told} left unchanged")


def _engine(
    parsed: argparse.Namespace,
    runs: Sequence[Any],
    shapes: Mapping[str, tuple[int, ...]],
    fleet: "FleetSettings | None",
) -> "tuple[AbstractContextManager[Any], Runs]":
    """The engine that runs the sweep, and how it executes runs."""
    from ezgreedy.sweeps.jobs import EmbeddedRuns, LocalEngine

    if fleet is not None:
        return _fleet_engine(parsed, [run.settings for run in runs], shapes, fleet)
    if parsed.engine == "local":
        for name in _RAY_OPTIONS:
            if getattr(parsed, name) is not None:
                raise ValueError(f"{_option(name)} must come with --engine ray")
        return nullcontext(LocalEngine()), EmbeddedRuns()
    from ezgreedy.sweeps.placement import Share
    from ezgreedy.sweeps.ray_engine import RayEngine, session_at

    share = Share(parsed.cpus_per_run, parsed.memory_per_run, parsed.gpus_per_run)
    settings = [run.settings for run in runs]
    engine = RayEngine(
        session_at(parsed.address), lambda run: share.of(run, shapes[run.game]), settings
    )
    return engine, EmbeddedRuns()


def _fleet(parsed: argparse.Namespace, sweep: "Sweep") -> "FleetSettings | None":
    """The size of each run; None if runs are single processes."""
    given = {name: getattr(parsed, name) for name in _FLEET_OPTIONS}
    given = {name: value for name, value in given.items() if value is not None}
    if given.get("actors") == 0:
        for name in given.keys() - {"actors"}:
            raise ValueError(f"{_option(name)} must come with --actors of at least 1")
        return None
    usual = sweep.fleet._asdict() if sweep.fleet and sweep.scale == "paper" else {}
    if not usual and not given:
        return None
    from ezgreedy.fleet.fleet_settings import FleetSettings

    if "actors" in given and "shards" not in given:
        usual["shards"] = max(min(usual.get("shards", 1), given["actors"]), 1)
    return FleetSettings(**usual | given)


def _fleet_engine(
    parsed: argparse.Namespace,
    settings: "Sequence[RunSettings]",
    shapes: Mapping[str, tuple[int, ...]],
    fleet: "FleetSettings",
) -> "tuple[AbstractContextManager[Any], Runs]":
    """The engine of a sweep whose runs are fleets; refuses a machine that cannot hold one."""
    for name in ("cpus_per_run", "memory_per_run", "gpus_per_run"):
        if getattr(parsed, name) is not None:
            raise ValueError(f"{_option(name)} must come with runs in one process (--actors 0)")
    from ezgreedy.fleet.session import require_ray
    from ezgreedy.sweeps import fleets

    require_ray()
    wanted = fleets.needs(settings, shapes, fleet)
    if parsed.engine == "local":
        run = f"each run is a fleet of {fleet.num_processes} processes, for {max(wanted)}"
        rule = f"be ray ({run}; --actors changes their number, and 0 means one process)"
        raise require.refuse("--engine", rule, parsed.engine)
    is_private = parsed.address is None
    session = fleets.fleet_session(parsed.address, settings, wanted, fleet)
    engine = fleets.FleetEngine(session, wanted, is_private=is_private)
    return engine, fleets.FleetRuns(fleet, session, is_private=is_private)


def _require_alike(place: Any, runs: Sequence[Any], *, are_fleets: bool) -> None:
    """Refuses to continue fleets as single processes, and the reverse."""
    others = place.others(runs, are_fleets=are_fleets)
    if others:
        rule = "be 0" if are_fleets else "be at least 1"
        kind = "one process" if are_fleets else "a fleet"
        raise ValueError(f"--actors must {rule}: {others[0]} was started as {kind}")


def _option(name: str) -> str:
    return f"--{name.replace('_', '-')}"


def _num_jobs(parsed: argparse.Namespace, engine: Any, *, are_fleets: bool) -> int:
    from ezgreedy.sweeps.sweep_loop import MOST_JOBS

    if parsed.jobs is not None:
        if are_fleets:
            from ezgreedy.sweeps.fleets import require_jobs

            require_jobs(int(parsed.jobs), engine)
        return int(parsed.jobs)
    return num_cores() if parsed.engine == "local" else min(engine.capacity.num_runs, MOST_JOBS)


def _asked(parsed: argparse.Namespace) -> Any:
    """The sweep of that name, with the changes from the command line."""
    from ezgreedy.sweeps.definitions import find

    sweep = find(parsed.name)
    changes: dict[str, Any] = {
        "games": _games(parsed.games, sweep.games),
        "agents": _names(parsed.agents),
        "num_seeds": parsed.seeds,
        "frames": parsed.frames,
        "scale": parsed.scale,
    }
    given = {name: value for name, value in changes.items() if value is not None}
    return replace(sweep, **given)


def _games(text: str | None, own: Sequence[str]) -> tuple[str, ...] | None:
    """Games by name; in the minatar sweep, breakout means minatar/breakout."""
    names = _names(text)
    return None if names is None else tuple(game_of(name, own) for name in names)


def _names(text: str | None) -> tuple[str, ...] | None:
    return None if text is None else tuple(name.strip() for name in text.split(","))


def _is_agreed(
    parsed: argparse.Namespace,
    runs: Sequence[Any],
    place: Any,
    shapes: Mapping[str, tuple[int, ...]],
    sweeping: Any,
) -> bool:
    """Shows the cost, and asks if it is high; False if the answer is no."""
    from ezgreedy.sweeps.forecast import forecast
    from ezgreedy.sweeps.jobs import EmbeddedRuns
    from ezgreedy.sweeps.probing import speeds_of

    states = {}
    if place.file.exists():
        place.read()
        states = {state.id: state for state in place.states()}
    engine = sweeping.engine
    # A few seconds of one process say nothing about a fleet.
    seconds = parsed.probe_seconds if isinstance(sweeping.runs, EmbeddedRuns) else 0.0
    probed = speeds_of(runs, states, engine, seconds, _say)
    jobs = sweeping.num_jobs
    cost = forecast(
        runs,
        states,
        shapes,
        probed,
        jobs,
        parsed.out,
        engine.capacity,
        keeps_replay=parsed.keep_replay,
    )
    _say(str(cost) if cost.num_runs else f"all {len(runs)} runs are done")
    doubts = cost.doubts if cost.num_runs else []
    if not doubts or parsed.yes:
        return True
    if not sys.stdin.isatty():
        raise ValueError(f"--yes must be given without a terminal: {'; '.join(doubts)}")
    try:
        answer = input(f"{'; '.join(doubts)}. Start? [y/N] ")
    except EOFError:  # Ctrl-D
        answer = ""
        print()
    return answer.strip().lower() in ("y", "yes")


def _status(parsed: argparse.Namespace) -> int:
    from ezgreedy.sweeps.sweep_directory import FAILED, SweepDirectory
    from ezgreedy.sweeps.sweep_loop import summary

    if parsed.directory is None:
        raise ValueError("DIR must be given: ezgreedy sweep status DIR")
    place = SweepDirectory(parsed.directory)
    place.read()
    print(f"{parsed.directory}: {summary(place)}")
    states = place.states()
    for state in states:
        if state.state == FAILED:
            print(f"  {state.id} failed: {state.reason}")
        elif 0 < state.frames < state.frames_to_play:
            share = state.frames / state.frames_to_play
            print(f"  {state.id} {state.state}: {state.frames:,} frames, {share:.0%}")
    return 0


def _say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)
