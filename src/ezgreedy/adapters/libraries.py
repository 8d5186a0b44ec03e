"""Which releases of other libraries have the adapters been tested with?

The extras of pyproject.toml ask for the same ranges; a test compares the two.
"""

import re
import warnings
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version


@dataclass(frozen=True)
class Library:
    """A library with the range of releases that the conformance suite has passed on.

    Args:
        distribution: name under which it is installed.
        extra: extra of ezgreedy that installs it.
        least: the first release tested.
        below: the first release not tested.
    """

    distribution: str
    extra: str
    least: str
    below: str

    def check(self, adapter: str) -> None:
        """Refuses to continue without the library; warns if its release is untested.

        Args:
            adapter: name of the module that needs it.
        """
        install = f"pip install 'ezgreedy[{self.extra}]'"
        try:
            found = version(self.distribution)
        except PackageNotFoundError:
            message = f"{adapter} needs {self.distribution}, which is not installed ({install})"
            raise ModuleNotFoundError(message, name=self.distribution) from None
        if not _numbers(self.least) <= _numbers(found) < _numbers(self.below):
            warnings.warn(
                f"{adapter} is tested with {self.distribution} >= {self.least}, < {self.below}; "
                f"found {found}. Get a tested one with {install}, or check this one with "
                "ezgreedy.testing.check_adapter",
                stacklevel=3,
            )


def _numbers(release: str) -> tuple[int, ...]:
    """The leading numbers of a release: (2, 13, 0) for 2.13.0+cpu."""
    leading = re.match(r"\d+(\.\d+)*", release)
    return tuple(int(part) for part in leading[0].split(".")) if leading else ()


SB3 = Library("stable-baselines3", "sb3", "2.9", "2.10")
SB3_CONTRIB = Library("sb3-contrib", "sb3", "2.9", "2.10")
TORCHRL = Library("torchrl", "torchrl", "0.14", "0.15")
TIANSHOU = Library("tianshou", "tianshou", "2.0", "2.1")
PFRL = Library("pfrl", "pfrl", "0.4", "0.5")
JAX = Library("jax", "jax", "0.10", "0.11")
RLLIB = Library("ray", "rllib", "2.60", "2.61")
GYMNASIUM = Library("gymnasium", "gymnasium", "1.2", "1.5")
