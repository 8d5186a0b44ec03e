"""`ezgreedy list`: which experiments are there, what do they show and what do they cost?"""

import argparse

from ezgreedy.units import duration


def add_parser(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Registers the command."""
    listing = commands.add_parser(
        "list",
        help="list the experiments that `ezgreedy reproduce` can run",
        description="Lists the experiments: id, what it shows, seeds, and estimated time on one "
        "core with the paper's seeds. `ezgreedy reproduce` runs an experiment that needs a further "
        "extra of the package only if it is named.",
    )
    listing.set_defaults(run=_list)


def _list(parsed: argparse.Namespace) -> int:
    from ezgreedy.experiments import registry

    rows = [("id", "shows", "seeds", "cost", "needs")]
    for experiment in registry.experiments().values():
        cost = duration(experiment.cost_seconds)
        seeds = str(experiment.num_seeds)
        rows.append((experiment.id, experiment.shows, seeds, cost, experiment.extra))
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for name, shows, seeds, cost, extra in rows:
        told = f"{name:<{widths[0]}}  {shows:<{widths[1]}}  {seeds:>{widths[2]}}"
        print(f"{told}  {cost:>{widths[3]}}  {extra}".rstrip())
    return 0
