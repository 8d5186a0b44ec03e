"""`ezgreedy sweep`: all games of a study with all its agents, interruptibly, on this machine."""

import argparse
import sys
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from ezgreedy import requirements as require
from ezgreedy.commands.reproducing import num_cores
from ezgreedy.commands.training import require_packages

# Named here, so that `--help` needs NumPy alone; a test holds the list to the registry.
SWEEPS = ("atari57-rainbow", "atari57-r2d2", "atari-durations", "minatar")
ENGINES = ("local",)
STATUS = "status"


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
        "--scale", metavar="SCALE", help="paper or laptop (default: paper; of minatar: laptop)"
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
        "--engine", default="local", metavar="ENGINE", help="where runs go: local, this machine"
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
    sweep.set_defaults(run=_run)


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

    jobs = num_cores() if parsed.jobs is None else parsed.jobs
    require.number("--probe-seconds", parsed.probe_seconds, 0.0)
    sweep = _asked(parsed)
    runs = members(sweep, parsed.changes)
    place = SweepDirectory(parsed.out)
    sweeping = Sweeping(place, jobs, parsed.checkpoint_seconds, _say)
    place.check(sweep, parsed.changes)
    shapes = forecast.frame_shapes(runs)  # refuses games that do not exist
    if not _is_agreed(parsed, runs, place, shapes, jobs):
        return 2
    with place:
        place.open(sweep, parsed.changes, runs)
        changed = place.made_by_other_code()
        if changed:
            told = "their results may differ from those of this code; sweep.json says which"
            _say(f"warning: the code has changed since {len(changed)} runs were begun: {told}")
        return sweeping.to_the_end(runs)


def _asked(parsed: argparse.Namespace) -> Any:
    """The sweep of that name, with whatever the command line puts in place of its own."""
    from ezgreedy.running.sweeps import find

    changes: dict[str, Any] = {
        "games": _names(parsed.games),
        "agents": _names(parsed.agents),
        "num_seeds": parsed.seeds,
        "frames": parsed.frames,
        "scale": parsed.scale,
    }
    given = {name: value for name, value in changes.items() if value is not None}
    return replace(find(parsed.name), **given)


def _names(text: str | None) -> tuple[str, ...] | None:
    return None if text is None else tuple(name.strip() for name in text.split(","))


def _is_agreed(
    parsed: argparse.Namespace,
    runs: Sequence[Any],
    place: Any,
    shapes: Mapping[str, tuple[int, ...]],
    jobs: int,
) -> bool:
    """Tells the cost, and asks where it is high; False if the answer is no."""
    from ezgreedy.running.forecast import forecast
    from ezgreedy.running.probing import speeds_of

    states = {}
    if place.file.exists():
        place.read()
        states = {state.id: state for state in place.states()}
    probed = speeds_of(runs, states, parsed.probe_seconds, _say)
    cost = forecast(runs, states, shapes, probed, jobs, parsed.out)
    _say(str(cost) if cost.num_runs else f"all {len(runs)} runs are done")
    doubts = cost.doubts if cost.num_runs else []
    if not doubts or parsed.yes:
        return True
    if not sys.stdin.isatty():
        raise ValueError(f"--yes must be given where nobody can be asked: {'; '.join(doubts)}")
    answer = input(f"{'; '.join(doubts)}. Begin? [y/N] ")
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
