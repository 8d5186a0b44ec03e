"""Which runs belong together, and what are the groups called? Settings decide, not just names."""

from collections.abc import Mapping, Sequence
from typing import Any

from ezgreedy.named_settings import flattened
from ezgreedy.results.runs import Run

_MOST_DIFFERENCES = 2  # shown in a label


def variants(runs: Sequence[Run], *, across_games: bool = False) -> dict[str, list[Run]]:
    """Groups of runs that differ only in seed, by unique label.

    Args:
        runs: runs, in the order in which groups should appear.
        across_games: whether runs of a group may also differ in game.
    """
    together: dict[str, list[Run]] = {}
    for run in runs:
        key = run.identity(has_seed=False, has_game=not across_games)
        together.setdefault(key, []).append(run)
    named: dict[str, list[Run]] = {}
    for alike in together.values():
        kin = [other[0] for other in together.values() if other[0].agent == alike[0].agent]
        own, *others = [
            flattened(run.telling(has_seed=False, has_game=not across_games))
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
