"""Which optional packages are missing? Commands refuse to start, and say how to install them."""

import importlib.util
import json
from collections.abc import Sequence
from importlib import import_module, metadata
from pathlib import Path
from types import ModuleType
from urllib.parse import unquote, urlsplit

# What the `deep` extra installs.
DEEP = ("torch", "ale_py", "numba", "rich", "safetensors", "tensorboardX", "zstandard")


def require_deep(needed_by: str) -> None:
    """Refuses to continue without the packages of the `deep` extra.

    Args:
        needed_by: the command that needs them.
    """
    require_installed(needed_by, DEEP, "deep")


def require_installed(needed_by: str, modules: Sequence[str], extra: str) -> None:
    """Refuses to continue unless all of these modules can be imported; imports none of them.

    Args:
        needed_by: the command, experiment or option that needs them.
        modules: names of the modules.
        extra: extras of ezgreedy that install them, such as "study" or "study,deep".
    """
    missing = [name for name in modules if importlib.util.find_spec(name) is None]
    if missing:
        raise _not_installed(needed_by, missing, extra)


def imported(module: str, needed_by: str, extra: str) -> ModuleType:
    """The imported module; the error for a missing package says how to install it."""
    try:
        return import_module(module)
    except ModuleNotFoundError as error:
        package = module.partition(".")[0]
        if error.name is None or error.name.partition(".")[0] != package:
            raise  # the package exists, but something it needs does not
        raise _not_installed(needed_by, [package], extra) from error


def _not_installed(needed_by: str, packages: Sequence[str], extra: str) -> ValueError:
    are = "is" if len(packages) == 1 else "are"
    return ValueError(
        f"{needed_by} needs {' and '.join(packages)}, which {are} not installed "
        f"({install_command(extra)})"
    )


def install_command(extra: str) -> str:
    """The command that adds extras to this installation: a checkout, a file or a published package.

    Args:
        extra: extras of ezgreedy, such as "study" or "study,deep".
    """
    checkout = Path(__file__).parents[2]
    if (checkout / "pyproject.toml").is_file():
        place = "." if checkout == Path.cwd() else str(checkout)
        return f"pip install -e '{place}[{extra}]'"
    return f"pip install '{_origin() or 'ezgreedy'}[{extra}]'"


def _origin() -> str | None:
    """The directory or file that the package was installed from; None if from an index."""
    try:
        text = metadata.distribution("ezgreedy").read_text("direct_url.json")
    except metadata.PackageNotFoundError:
        return None
    url = urlsplit(json.loads(text)["url"]) if text else None
    if url is None or url.scheme != "file":
        return None
    path = Path(unquote(url.path))
    return str(path) if path.exists() else None
