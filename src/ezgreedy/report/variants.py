"""Which runs are of one kind, and what are the kinds called? Settings decide, never names alone."""

from collections.abc import Mapping, Sequence
from typing import Any

from ezgreedy.results.runs import Run

_MOST_DIFFERENCES = 2  # that a label tells


def variants(runs: Sequence[Run], *, across_games: bool = False) -> dict[str, list[Run]]:
    """Runs that differ in their seed alone, under labels of which no two are alike.

    Args:
        runs: in the order in which kinds are to come.
        across_games: whether runs of one kind may be of different games as well.
    """
    together: dict[str, list[Run]] = {}
    for run in runs:
        key = run.identity(has_seed=False, has_game=not across_games)
        together.setdefault(key, []).append(run)
    named: dict[str, list[Run]] = {}
    for alike in together.values():
        kin = [other[0] for other in together.values() if other[0].agent == alike[0].agent]
        own, *others = [
            _flat(run.telling(has_seed=False, has_game=not across_games))
            for run in (alike[0], *kin)
        ]
        label = _label(alike[0].agent, own, others)
        namesakes = sum(name == label or name.startswith(f"{label} #") for name in named)
        named[f"{label} #{namesakes + 1}" if namesakes else label] = alike
    return named


def _label(agent: str, own: Mapping[str, Any], others: Sequence[Mapping[str, Any]]) -> str:
    """The agent's name, with the first settings in which runs of this name differ."""
    names = [
        name
        for name in own
        if name != "game" and any(other.get(name) != own[name] for other in others)
    ]
    shown = [f"{name.rpartition('.')[2]} {own[name]}" for name in names[:_MOST_DIFFERENCES]]
    ending = ", …" if len(names) > len(shown) else ""
    return f"{agent} ({', '.join(shown)}{ending})" if shown else agent


def _flat(settings: Any, name: str = "") -> dict[str, Any]:
    """Nested plain data as one mapping with dotted names."""
    if not isinstance(settings, Mapping):
        return {name: settings}
    found: dict[str, Any] = {}
    for key, value in settings.items():
        found |= _flat(value, f"{name}.{key}" if name else key)
    return found
