"""`ezgreedy fleet simulate`: what would a fleet do that does not fit on this machine?"""

import argparse
import json
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING

from ezgreedy import requirements as require
from ezgreedy.packages import require_deep, require_installed

if TYPE_CHECKING:
    from ezgreedy.fleet.costs import Costs
    from ezgreedy.fleet.simulation import Scenario, Simulated

_SUMMARY = "simulation.json"
MOST_MACHINES = 1_000
# simulation.FAULTS, without torch
_FAULTS = ("actor-lost", "slow-evaluator", "stalled-shard", "machine-lost")


def add_parser(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Registers the command."""
    fleet = commands.add_parser("fleet", help="say what a fleet of --engine ray would do")
    kinds = fleet.add_subparsers(title="commands", required=True, metavar="COMMAND")
    simulate = kinds.add_parser(
        "simulate",
        help="run the real coordinator in virtual time",
        description="Runs the coordinator of `ezgreedy train --engine ray` in virtual time, with "
        "processes whose work takes as long as docs/scaling.md measured, or as you say, and shows "
        "speed, the age of weights, waiting times, and what limits the fleet. Nothing is played or "
        "learned.",
    )
    simulate.add_argument(
        "--actors",
        type=int,
        nargs="+",
        default=[320],
        metavar="N",
        help="processes that play, 2 to 1,000; several numbers give a row each (default: 320)",
    )
    simulate.add_argument(
        "--lanes-per-actor", type=int, default=1, metavar="E", help="lanes of each (default: 1)"
    )
    simulate.add_argument(
        "--shards", type=int, default=1, metavar="S", help="replay memories, 1 to 8 (default: 1)"
    )
    simulate.add_argument(
        "--evaluators", type=int, default=1, metavar="N", help="evaluators (default: 1)"
    )
    simulate.add_argument(
        "--decode-threads",
        type=int,
        default=2,
        metavar="N",
        help="threads of the learner that decode batches (default: 2)",
    )
    simulate.add_argument(
        "--machines",
        type=int,
        metavar="M",
        help="machines of the cluster (default: one that holds everybody)",
    )
    simulate.add_argument(
        "--cpus-per-machine", type=int, metavar="C", help="processes that each of them holds"
    )
    simulate.add_argument(
        "--learner",
        choices=("gpu", "cpu"),
        default="gpu",
        help="speed of the learner: 0.16 s an update, or 5.8 s on one core (default: gpu)",
    )
    simulate.add_argument(
        "--cost",
        action="append",
        default=[],
        metavar="NAME=SECONDS",
        help="change what something takes, such as step=0.001 or update=0.1; repeatable",
    )
    simulate.add_argument(
        "--fault",
        dest="faults",
        action="append",
        choices=_FAULTS,
        default=[],
        help="an actor is lost every minute; evaluators are ten times slower; the first memory "
        "does nothing for 10 of every 30 s; the learner's machine is lost, for two minutes; "
        "repeatable",
    )
    simulate.add_argument(
        "--seconds",
        type=float,
        default=60.0,
        metavar="S",
        help="virtual seconds to measure after a warm-up (default: 60, at least 20 updates)",
    )
    simulate.add_argument(
        "--game", default="Breakout", metavar="GAME", help="game of the run (default: Breakout)"
    )
    simulate.add_argument("--out", type=Path, metavar="DIR", help="directory for figure and JSON")
    simulate.set_defaults(run=_simulate)


def _simulate(parsed: argparse.Namespace) -> int:
    require_deep("fleet simulate")
    if parsed.out is not None:
        require_installed("fleet simulate --out", ["matplotlib"], "study")
        if parsed.out.exists() and not parsed.out.is_dir():
            raise ValueError(f"--out must be a directory; got the file {str(parsed.out)!r}")
    from ezgreedy.agents.registry import run_of
    from ezgreedy.fleet.simulation import simulate

    settings = run_of("r2d2-ez", "paper", parsed.game)
    scenarios = [_scenario(parsed, actors) for actors in parsed.actors]  # all are checked first
    found = [simulate(scenario, settings) for scenario in scenarios]
    print(table(found))
    if parsed.out is not None:
        for file in _write(parsed.out, scenarios, found):
            print(f"wrote {file}")
    return 0


def _scenario(parsed: argparse.Namespace, actors: int) -> "Scenario":
    from ezgreedy.fleet.fleet_settings import FleetSettings
    from ezgreedy.fleet.simulation import Scenario

    return Scenario(
        FleetSettings(
            actors=actors,
            shards=parsed.shards,
            evaluators=parsed.evaluators,
            decode_threads=parsed.decode_threads,
        ),
        parsed.lanes_per_actor,
        _costs(parsed),
        tuple(parsed.faults),
        parsed.seconds,
        _cpus(parsed),
    )


def _cpus(parsed: argparse.Namespace) -> tuple[int, ...]:
    """CPUs of each machine; none if the machines do not matter."""
    if (parsed.machines is None) != (parsed.cpus_per_machine is None):
        raise ValueError("--machines and --cpus-per-machine must be given together")
    if parsed.machines is None:
        return ()
    require.integer("--machines", parsed.machines, 1, MOST_MACHINES)
    each = require.integer("--cpus-per-machine", parsed.cpus_per_machine, least=1)
    return (each,) * parsed.machines


def _costs(parsed: argparse.Namespace) -> "Costs":
    from ezgreedy.fleet.costs import Costs, on_gpu

    costs = on_gpu(Costs(), is_gpu=parsed.learner == "gpu")
    known = asdict(costs)
    for change in parsed.cost:
        name, _, value = change.partition("=")
        if name not in known:
            rule = f"be NAME=SECONDS, with a name of {', '.join(known)}"
            raise require.refuse_name("--cost", rule, change, known)
        try:
            costs = replace(costs, **{name: float(value)})
        except ValueError as error:
            rule = "be NAME=SECONDS, with seconds of at least 0"
            raise require.refuse("--cost", rule, change) from error
    return costs


def table(found: "list[Simulated]") -> str:
    """Simulated fleets as a table, one below another.

    Args:
        found: the fleets.
    """
    roles = list(found[0].waiting)
    rows = [
        ["", *(f"{one.actors} × {one.lanes // one.actors} lanes" for one in found)],
        ["frames/s", *(f"{one.frames_per_second:,.0f}" for one in found)],
        ["updates/s", *(f"{one.updates_per_second:,.2f}" for one in found)],
        ["age of weights, frames", *(f"{one.weight_age:,.0f}" for one in found)],
        ["  at most", *(f"{one.largest_weight_age:,.0f}" for one in found)],
    ]
    for role in roles:
        rows.append([f"{role} wait", *(f"{one.waiting[role]:.0%}" for one in found)])
    rows += [
        ["evaluations made", *(str(one.evaluations) for one in found)],
        ["evaluations skipped", *(str(one.skipped) for one in found)],
        ["processes lost", *(str(one.restarts) for one in found)],
        ["saturated first", *(one.saturated for one in found)],
        ["days for 30,000M frames", *(f"{one.days:,.1f}" for one in found)],
    ]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = []
    for name, *cells in rows:
        shown = [f"{cell:>{width}}" for cell, width in zip(cells, widths[1:], strict=True)]
        lines.append("  ".join([f"{name:<{widths[0]}}", *shown]))
    return "\n".join(lines)


def _write(directory: Path, scenarios: "list[Scenario]", found: "list[Simulated]") -> list[Path]:
    from ezgreedy.figures import style
    from ezgreedy.figures.fleet_simulation import fleets
    from ezgreedy.results.store import write_json_atomically

    directory.mkdir(parents=True, exist_ok=True)
    files = style.save(fleets(found), directory / "simulation")
    said = [
        {"scenario": json.loads(json.dumps(asdict(one))), "found": other.record()}
        for one, other in zip(scenarios, found, strict=True)
    ]
    write_json_atomically(directory / _SUMMARY, {"fleets": said})
    return [*files, directory / _SUMMARY]
