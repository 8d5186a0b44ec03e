"""What cannot be verified of the runs that a command reads, told once in a line."""

import sys
from collections.abc import Sequence
from pathlib import Path


def tell_unverified(sources: Sequence[Path]) -> None:
    """Says on stderr how many runs of these directories are of versions without checksums."""
    from ezgreedy.results.runs import read_run, run_directories, unverified_runs

    runs = [read_run(path) for source in sources for path in run_directories(source)]
    told = unverified_runs(runs)
    if told:
        print(told, file=sys.stderr)
