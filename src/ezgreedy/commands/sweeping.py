"""`ezgreedy sweep`: all games of a study with all its agents, interruptibly, here or on Ray."""

import argparse
import sys
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Any

from ezgreedy import requirements as require
from ezgreedy.commands.reproducing import num_cores
from ezgreedy.commands.training import SCALES, note_missing_scores, require_packages

# Named here, so that `--help` needs NumPy alone; a test holds the list to the registry.
SWEEPS = (
    *("atari57-rainbow", "atari57-r2d2", "atari-durations", "small-durations"),
    *("atari100k", "minatar"),
)
ENGINES = ("local", "ray")
STATUS = "status"
_NAMES_TOLD = 3


def add_parser(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Registers the command."""
    sweep = commands.add_parser(
        "sweep",
        help="train many agents on many games, or see how that goes",
        description="Trains every agent on every game with every seed, each a run of its own in "
        "DIR/runs, several at once. The same command goes on after Ctrl-C, a crash or with more "
        "games, agents or seeds: runs that are done are skipped, interrupted ones continued. A run "
        "that fails is tried three times, and does not stop the others. Before anything begins, "
        "it tells what all will cost, and asks if that is more than an hour. `ezgreedy sweep "
        "status DIR` tells how far it is.",
    )
    sweep.add_argument(
        "name", metavar="NAME", help=f"one of {', '.join(SWEEPS)}; or status, with a DIR"
    )
    sweep.add_argument(
        "directory", nargs="?", type=Path, metavar="DIR", help="of status: the sweep's directory"
    )
    sweep.add_argument("--out", type=Path, metavar="DIR", help="the sweep's directory")
    sweep.add_argument("--games", metavar="A,B", help="these games in place of the sweep's")
    sweep.add_argument("--agents", metavar="A,B", help="these agents in place of the sweep's")
    sweep.add_argument("--seeds", type=int, metavar="N", help="seeds 0 to N - 1")
    sweep.add_argument("--frames", type=int, metavar="N", help="emulator frames of each run")
    sweep.add_argument(
        "--scale",
        metavar="SCALE",
        help=f"{', '.join(SCALES)} (default: that of the sweep)",
    )
    sweep.add_argument(
        "--set",
        dest="changes",
        action="append",
        default=[],
        metavar="PATH=VALUE",
        help="any other setting of all runs, as for train; repeatable",
    )
    sweep.add_argument(
        "--jobs", type=int, metavar="N", help="runs at once (default: one for every core)"
    )
    sweep.add_argument(
        "--engine",
        default="local",
        metavar="ENGINE",
        help="where runs go: local, this machine; ray, the machines of a Ray cluster "
        "(default: local)",
    )
    sweep.add_argument("--yes", action="store_true", help="begin without asking")
    sweep.add_argument(
        "--probe-seconds",
        type=float,
        default=3.0,
        metavar="S",
        help="how long to measure the speed of each agent before beginning (default: 3)",
    )
    sweep.add_argument(
        "--checkpoint-seconds",
        type=float,
        default=60.0,
        metavar="S",
        help="time between checkpoints (default: 60)",
    )
    _add_ray_options(sweep)
    sweep.set_defaults(run=_run)


def _add_ray_options(parser: argparse.ArgumentParser) -> None:
    ray = parser.add_argument_group(
        "--engine ray",
        "Every run is placed on a machine that has what it needs free, and waits until there is "
        "one. DIR must be on a file system that all machines share, with locks that hold between "
        "them; this is checked before anything begins. --jobs is as many as fit, unless given.",
    )
    ray.add_argument(
        "--address",
        metavar="HOST:PORT",
        help="a Ray cluster with the same versions of Ray, Python and ezgreedy (default: a Ray of "
        "its own, bound to this machine)",
    )
    ray.add_argument(
        "--cpus-per-run", type=float, metavar="N", help="processors (default: the run's threads)"
    )
    ray.add_argument(
        "--memory-per-run",
        type=float,
        metavar="GB",
        help="memory in gigabytes (default: what a run with a full replay takes)",
    )
    ray.add_argument(
        "--gpus-per-run",
        type=float,
        metavar="N",
        help="graphics processors; 0.25 lets four runs share one (default: 1 with --set "
        "device=cuda, else 0)",
    )


def _run(parsed: argparse.Namespace) -> int:
    require_packages("sweep")
    if parsed.name == STATUS:
        return _status(parsed)
    if parsed.directory is not None:
        raise require.refuse("DIR", f"follow {STATUS} alone (--out DIR)", str(parsed.directory))
    if parsed.out is None:
        raise ValueError("--out must be given: the sweep's directory")
    require.one_of("--engine", parsed.engine, ENGINES)
    return _sweep(parsed)


def _sweep(parsed: argparse.Namespace) -> int:
    from ezgreedy.running import forecast
    from ezgreedy.running.sweep_directory import SweepDirectory
    from ezgreedy.running.sweeping import Sweeping
    from ezgreedy.running.sweeps import members

    require.number("--probe-seconds", parsed.probe_seconds, 0.0)
    sweep = _asked(parsed)
    note_missing_scores(sweep.scale, sweep.games)
    runs = members(sweep, parsed.changes)
    place = SweepDirectory(parsed.out)
    place.check(sweep, parsed.changes)
    shapes = forecast.frame_shapes(runs)  # refuses games that do not exist
    with _engine(parsed, runs, shapes) as engine:
        jobs = _num_jobs(parsed, engine)
        sweeping = Sweeping(place, engine, jobs, parsed.checkpoint_seconds, _say)
        if not _is_agreed(parsed, runs, place, shapes, sweeping):
            return 2
        with place:
            engine.require_directory(place.path)
            place.open(sweep, parsed.changes, runs)
            _warn(place, runs)
            return sweeping.to_the_end(runs)


def _warn(place: Any, runs: Sequence[Any]) -> None:
    """Of runs in the directory that are not what this command would make of them."""
    changed = place.made_by_other_code()
    if changed:
        told = "their results may differ from those of this code; sweep.json says which"
        _say(f"warning: the code has changed since {len(changed)} runs were begun: {told}")
    outdated = place.outdated(runs)
    if outdated:
        names = ", ".join(outdated[:_NAMES_TOLD]) + (", ..." if outdated[_NAMES_TOLD:] else "")
        told = "their settings differ from those now; they are begun anew and the old ones left"
        _say(f"warning: {len(outdated)} unfinished runs ({names}): {told} as they are")


def _engine(
    parsed: argparse.Namespace, runs: Sequence[Any], shapes: Mapping[str, tuple[int, ...]]
) -> AbstractContextManager[Any]:
    """Where the runs go."""
    if parsed.engine == "local":
        from ezgreedy.running.sweep_jobs import LocalEngine

        for name in ("address", "cpus_per_run", "memory_per_run", "gpus_per_run"):
            if getattr(parsed, name) is not None:
                raise ValueError(f"--{name.replace('_', '-')} must come with --engine ray")
        return nullcontext(LocalEngine())
    from ezgreedy.fleet.hosts import RayEngine, session_at
    from ezgreedy.fleet.placement import Share

    share = Share(parsed.cpus_per_run, parsed.memory_per_run, parsed.gpus_per_run)
    settings = [run.settings for run in runs]
    return RayEngine(
        session_at(parsed.address), lambda run: share.of(run, shapes[run.game]), settings
    )


def _num_jobs(parsed: argparse.Namespace, engine: Any) -> int:
    from ezgreedy.running.sweeping import MOST_JOBS

    if parsed.jobs is not None:
        return int(parsed.jobs)
    return num_cores() if parsed.engine == "local" else min(engine.room.num_runs, MOST_JOBS)


def _asked(parsed: argparse.Namespace) -> Any:
    """The sweep of that name, with whatever the command line puts in place of its own."""
    from ezgreedy.running.sweeps import find

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
    """Games by name; in minatar's sweep breakout is minatar/breakout."""
    names = _names(text)
    full = {name.rpartition("/")[2]: name for name in own}
    return None if names is None else tuple(full.get(name, name) for name in names)


def _names(text: str | None) -> tuple[str, ...] | None:
    return None if text is None else tuple(name.strip() for name in text.split(","))


def _is_agreed(
    parsed: argparse.Namespace,
    runs: Sequence[Any],
    place: Any,
    shapes: Mapping[str, tuple[int, ...]],
    sweeping: Any,
) -> bool:
    """Tells the cost, and asks where it is high; False if the answer is no."""
    from ezgreedy.running.forecast import forecast
    from ezgreedy.running.probing import speeds_of

    states = {}
    if place.file.exists():
        place.read()
        states = {state.id: state for state in place.states()}
    engine = sweeping.engine
    probed = speeds_of(runs, states, engine, parsed.probe_seconds, _say)
    jobs = sweeping.num_jobs
    cost = forecast(runs, states, shapes, probed, jobs, parsed.out, engine.room)
    _say(str(cost) if cost.num_runs else f"all {len(runs)} runs are done")
    doubts = cost.doubts if cost.num_runs else []
    if not doubts or parsed.yes:
        return True
    if not sys.stdin.isatty():
        raise ValueError(f"--yes must be given where nobody can be asked: {'; '.join(doubts)}")
    try:
        answer = input(f"{'; '.join(doubts)}. Begin? [y/N] ")
    except EOFError:  # Ctrl-D
        answer = ""
        print()
    return answer.strip().lower() in ("y", "yes")


def _status(parsed: argparse.Namespace) -> int:
    from ezgreedy.running.sweep_directory import FAILED, SweepDirectory
    from ezgreedy.running.sweeping import summary

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
