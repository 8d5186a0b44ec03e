"""Does a directory lie within another that commands of this package made? Then it is in the way.

Whoever reads a sweep, a run, an experiment or a collection takes everything in it for a part of it.
So commands that write results ask here before they make a directory of their own.
"""

from pathlib import Path

from ezgreedy import requirements as require
from ezgreedy.results.runs import COLLECTION_FILE, SWEEP_FILE, is_run, read_mapping

EXPERIMENT_FILE = "settings.json"


def require_apart(directory: Path, name: str = "--out") -> None:
    """Refuses a directory, there or not, that lies within something else of this package.

    Args:
        directory: where results are to go; it may itself hold some.
        name: of the argument.
    """
    for parent in Path(directory).resolve().parents:
        kind = _kind(parent)
        if kind:
            raise require.refuse(name, f"not lie within the {kind} {parent}", str(directory))


def _kind(directory: Path) -> str:
    """What a directory is, in a word; "" if nothing of ours."""
    if (directory / SWEEP_FILE).exists():
        return "sweep"
    if (directory / COLLECTION_FILE).exists():
        return "collection"
    # The other two names are common, so what the files say decides.
    if is_run(directory):
        return "run"
    return "experiment" if _is_experiment(directory / EXPERIMENT_FILE) else ""


def _is_experiment(path: Path) -> bool:
    try:
        return {"id", "version", "settings"} <= read_mapping(path).keys()
    except (OSError, ValueError):
        return False
