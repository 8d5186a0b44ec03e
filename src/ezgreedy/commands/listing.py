"""`ezgreedy list`: which experiments there are, what they show and what they cost."""

import argparse


def add_parser(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Registers the command."""
    listing = commands.add_parser(
        "list",
        help="the experiments that `ezgreedy reproduce` can run",
        description="Lists the experiments: id, what it shows, seeds, and estimated time on one "
        "core with the paper's seeds. What needs a further extra of the package is run by "
        "`ezgreedy reproduce` only when it is named.",
    )
    listing.set_defaults(run=_list)


def _list(parsed: argparse.Namespace) -> int:
    from ezgreedy.experiments import registry

    rows = [("id", "shows", "seeds", "cost", "needs")]
    for experiment in registry.experiments().values():
        cost = _duration(experiment.cost_seconds)
        seeds = str(experiment.num_seeds)
        rows.append((experiment.id, experiment.shows, seeds, cost, experiment.extra))
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for name, shows, seeds, cost, extra in rows:
        told = f"{name:<{widths[0]}}  {shows:<{widths[1]}}  {seeds:>{widths[2]}}"
        print(f"{told}  {cost:>{widths[3]}}  {extra}".rstrip())
    return 0


def _duration(seconds: float) -> str:
    return f"{seconds:.0f} s" if seconds < 90 else f"{seconds / 60:.0f} min"
