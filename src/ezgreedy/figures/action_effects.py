"""How many actions of each game differ? Dots beside those of the emulator's own list."""

from collections.abc import Mapping

import numpy as np
from matplotlib.figure import Figure

from ezgreedy.figures import style

_ROW = 0.17  # inches for one game


def actions_by_game(
    counts: Mapping[str, tuple[int, int]], *, is_narrow: bool = False, columns: int = 3
) -> Figure:
    """A row for each game, from few actions that differ to many.

    Args:
        counts: actions that differ, and actions in the emulator's list, by game.
        is_narrow: whether to put all games below each other, for a phone.
        columns: columns of games, unless narrow.
    """
    order = sorted(counts, key=lambda name: (counts[name], name))
    num_columns = 1 if is_narrow else min(columns, len(order))
    num_rows = -(-len(order) // num_columns)
    with style.voice():
        width = 4.2 if is_narrow else 3.7 * num_columns
        figure = style.new_figure(width, _ROW * num_rows + 1.1)
        axes = figure.subplots(1, num_columns, squeeze=False, sharex=True).ravel()
        for number, axis in enumerate(axes):
            names = order[number * num_rows : (number + 1) * num_rows]
            found, listed = np.array([counts[name] for name in names]).T
            places = np.arange(len(names))
            axis.hlines(places, found, listed, color=style.FAINT_COLOUR, linewidth=2.0)
            axis.plot(
                listed, places, "o", color=style.OTHER_COLOURS[2], fillstyle="none", markersize=6.0
            )
            axis.plot(found, places, "o", color=style.EZ_COLOUR, markersize=3.5)
            axis.set_yticks(places, names)
            axis.set_ylim(num_rows - 0.5, -0.5)
            axis.set_xticks([3, 6, 9, 12, 15, 18])
            axis.set_xlim(2.2, 18.8)
            axis.grid(axis="x", color=style.FAINT_COLOUR, linewidth=0.5)
            axis.set_axisbelow(True)
        figure.legend(
            axes[0].lines[::-1],
            ["actions that differ, of 18", "actions in the emulator's list for the game"],
            loc="outside lower center",
            ncols=1 if is_narrow else 2,
        )
    return figure
