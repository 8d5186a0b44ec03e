"""How soon does exploration reach states? First visits and cover times, sampled and exact.

    from ezgreedy.analysis import Bins, Layout, draw_maps, first_visits

`first_visits` takes any Gymnasium environment with discrete actions and any policy, `Bins.of` cuts
its observations into cells, and `draw_maps` draws them (examples/coverage_of_your_policy.py);
`box_first_visits` does the same for noise and held actions in a box of actions. The other names are
about finite MDPs. Names are loaded when first asked for: the demonstration needs
one module of this package, and only NumPy.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ezgreedy.analysis.bins import Bins
    from ezgreedy.analysis.box_walks import BoxWalks, box_first_visits
    from ezgreedy.analysis.cover_time import CoverTimes, cover_times, exact_cover_times
    from ezgreedy.analysis.distinct_actions import (
        ActionEffects,
        combined_effects,
        distinct_actions,
        game_actions,
        probed_actions,
    )
    from ezgreedy.analysis.environment_walks import Policy, first_visits, grid_width
    from ezgreedy.analysis.exact import expected_first_visits
    from ezgreedy.analysis.finite_walks import tabular_first_visits
    from ezgreedy.analysis.option_walks import expected_option_visit, option_cover_times
    from ezgreedy.analysis.process import ExplorationProcess
    from ezgreedy.analysis.visits import PAPER_SETTINGS, FirstVisitTimes

_LOADED_ON_DEMAND = {
    "ezgreedy.analysis.bins": ("Bins",),
    "ezgreedy.analysis.box_walks": ("BoxWalks", "box_first_visits"),
    "ezgreedy.analysis.cover_time": ("CoverTimes", "cover_times", "exact_cover_times"),
    "ezgreedy.analysis.distinct_actions": (
        "ActionEffects",
        "combined_effects",
        "distinct_actions",
        "game_actions",
        "probed_actions",
    ),
    "ezgreedy.analysis.environment_walks": ("Policy", "first_visits", "grid_width"),
    "ezgreedy.analysis.exact": ("expected_first_visits",),
    "ezgreedy.analysis.finite_walks": ("tabular_first_visits",),
    "ezgreedy.analysis.option_walks": ("expected_option_visit", "option_cover_times"),
    "ezgreedy.analysis.process": ("ExplorationProcess",),
    "ezgreedy.analysis.visits": ("PAPER_SETTINGS", "FirstVisitTimes"),
    # For users, who look for it here; nothing in this room draws.
    "ezgreedy.figures.coverage_maps": ("Layout", "draw_maps"),
}

__all__ = [
    "PAPER_SETTINGS",
    "ActionEffects",
    "Bins",
    "BoxWalks",
    "CoverTimes",
    "ExplorationProcess",
    "FirstVisitTimes",
    "Layout",
    "Policy",
    "box_first_visits",
    "combined_effects",
    "cover_times",
    "distinct_actions",
    "draw_maps",
    "exact_cover_times",
    "expected_first_visits",
    "expected_option_visit",
    "first_visits",
    "game_actions",
    "grid_width",
    "option_cover_times",
    "probed_actions",
    "tabular_first_visits",
]


def __getattr__(name: str) -> Any:
    for module, names in _LOADED_ON_DEMAND.items():
        if name in names:
            value = getattr(import_module(module), name)
            globals()[name] = value
            return value
    raise AttributeError(f"module 'ezgreedy.analysis' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(set(globals()) | set(__all__))
