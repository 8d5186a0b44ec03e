"""How much do duration laws earn? Return by law and hyper-parameter, game by game."""

from collections.abc import Mapping
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from ezgreedy.figures import style

# As in the paper: a panel for each family, and the symbol of its hyper-parameter.
_PANELS = {"zeta": "μ", "exponential": "λ", "uniform": "N"}
_COLOURS = {
    "zeta": style.EZ_COLOUR,
    "exponential": style.OTHER_COLOURS[0],
    "uniform": style.OTHER_COLOURS[2],
}


def by_hyperparameter(games: Mapping[str, Mapping[str, Any]]) -> Figure:
    """A row for each game and a column for each family, with one axis of returns per row.

    Args:
        games: game ↦ family ↦ its hyper-parameters ("numbers") and the final scores of every seed
            for each of them ("scores").
    """
    with style.voice():
        figure = style.new_figure(7.2, 0.5 + 2.1 * len(games))
        axes = figure.subplots(len(games), len(_PANELS), squeeze=False, sharey="row")
        for row, (game, families) in zip(axes, games.items(), strict=True):
            for axis, (family, symbol) in zip(row, _PANELS.items(), strict=True):
                if family in families:
                    _draw_family(axis, families[family], _COLOURS[family])
                axis.set_xlabel(f"{family}, {symbol}")
            row[0].set_ylabel(f"{game}\nfinal score")
    return figure


def _draw_family(axis: Any, found: Mapping[str, Any], colour: str) -> None:
    places = np.arange(len(found["numbers"]))
    means = [float(np.mean(scores)) for scores in found["scores"]]
    axis.plot(places, means, color=colour, marker="o", markersize=5)
    for place, scores in zip(places, found["scores"], strict=True):
        axis.plot(np.full(len(scores), place), scores, ".", color=colour, alpha=0.45, markersize=4)
    axis.set_xticks(places, [f"{number:g}" for number in found["numbers"]])
    axis.margins(x=0.2)
