"""Which duration laws can be named in settings? The one place that knows; see `plugins`."""

from dataclasses import is_dataclass
from typing import TypeVar

from ezgreedy import plugins
from ezgreedy import requirements as require
from ezgreedy.exploration.durations import (
    DurationLaw,
    Fixed,
    Geometric,
    PlusOne,
    Uniform,
    Zeta,
)

Law = TypeVar("Law", bound=type[DurationLaw])

_laws: dict[str, type[DurationLaw]] = {
    law.__name__: law for law in (Zeta, Geometric, Uniform, Fixed, PlusOne)
}


def register(law: Law) -> Law:
    """Let settings name a law, as in `--set agent.durations='MyLaw(3)'`.

    Args:
        law: a frozen dataclass derived from `DurationLaw`; it is returned, so that this works as a
            decorator.
    """
    if not _is_law(law):
        raise require.refuse_type("law", "be a dataclass derived from DurationLaw", law)
    if _laws.get(law.__name__, law) is not law:
        raise require.refuse("law", f"have a name other than {', '.join(_laws)}", law.__name__)
    _laws[law.__name__] = law
    return law


def laws() -> dict[str, type[DurationLaw]]:
    """All laws by name."""
    plugins.load()
    return dict(_laws)


def _is_law(law: object) -> bool:
    return isinstance(law, type) and issubclass(law, DurationLaw) and is_dataclass(law)
