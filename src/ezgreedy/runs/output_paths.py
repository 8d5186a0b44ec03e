"""Does a directory lie within another that this package made? Then it is refused.

Readers of a sweep, run, experiment or collection treat everything in it as part of it. So commands
that write results check here before they create a directory.
"""

from pathlib import Path

from ezgreedy import requirements as require
from ezgreedy.results.runs import COLLECTION_FILE, SWEEP_FILE, is_run, read_mapping

EXPERIMENT_FILE = "settings.json"
SET_ASIDE = "set-aside"  # in any of them: what `ezgreedy check --repair` has moved


def require_apart(directory: Path, name: str = "--out") -> None:
    """Refuses a directory, existing or not, that lies within other output of this package.

    Args:
        directory: directory for results; it may already hold some.
        name: name of the argument.
    """
    for parent in Path(directory).resolve().parents:
        kind = kind_of(parent)
        if kind:
            raise require.refuse(name, f"not lie within the {kind} {parent}", str(directory))


def kind_of(directory: Path) -> str:
    """The kind of output that a directory holds, in one word; "" if not ours."""
    if (directory / SWEEP_FILE).exists():
        return "sweep"
    if (directory / COLLECTION_FILE).exists():
        return "collection"
    # The other two names are common, so the contents of the files decide.
    if is_run(directory):
        return "run"
    return "experiment" if _is_experiment(directory / EXPERIMENT_FILE) else ""


def _is_experiment(path: Path) -> bool:
    try:
        return {"id", "version", "settings"} <= read_mapping(path).keys()
    except (OSError, ValueError):
        return False
