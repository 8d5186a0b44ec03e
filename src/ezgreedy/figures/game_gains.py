"""In which games does one policy find more than another? Every game, and all of them together.

Drawn from the data in the summary of `atari-exploration`.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from ezgreedy.figures import style

Data = Mapping[str, Any]

_COLOURS = (style.EZ_COLOUR, *style.OTHER_COLOURS)
_ROW = 0.17  # inches for one game
_LINEAR_UP_TO = 0.1  # percent of the human score; logarithmic beyond
_PALE = 0.35  # games that differ, but not by themselves

# Name in the data, title, and the words under the axis.
_SIGN_TESTS = (
    ("episode", "reward per episode", "games with less · with more"),
    ("step", "reward per step", "games with less · with more"),
    ("first", "first reward", "games later · sooner"),
)


def gains_by_game(data: Data, policies: Sequence[str], *, is_narrow: bool = False) -> Figure:
    """Dots with intervals: how much more each policy finds than ε-greedy, game by game.

    Games are sorted by their mean gain at the first ε, the largest on top. A narrow figure has its
    panels below each other.
    """
    rows = [row for row in data["conditions"] if row["policy"] in policies]
    epsilons = list(dict.fromkeys(row["epsilon"] for row in rows))
    order = _by_gain([row for row in rows if row["epsilon"] == epsilons[0]])
    with style.voice():
        rows_of_panels = len(epsilons) if is_narrow else 1
        columns = len(epsilons) // rows_of_panels
        width = 4.2 if is_narrow else 3.5 * columns + 1.5
        figure = style.new_figure(width, (_ROW * len(order) + 0.7) * rows_of_panels + 0.7)
        axes = figure.subplots(
            rows_of_panels, columns, squeeze=False, sharex=True, sharey=True
        ).ravel()
        for axis, epsilon in zip(axes, epsilons, strict=True):
            for number, policy in enumerate(policies):
                chosen = {
                    row["game"]: row["gain"]
                    for row in rows
                    if (row["epsilon"], row["policy"]) == (epsilon, policy)
                }
                shift = 0.32 * (number / max(len(policies) - 1, 1) - 0.5)
                places = np.arange(len(order)) + shift
                _dots(
                    axis, [chosen[game] for game in order], places, number, f"εz-greedy, {policy}"
                )
            _rows_of(axis, order, f"ε = {epsilon:g}")
            axis.axvline(0.0, color=style.TEXT_COLOUR, linewidth=0.8, zorder=0)
            axis.set_xscale("symlog", linthresh=_LINEAR_UP_TO, linscale=0.7)
            axis.xaxis.set_major_formatter(lambda value, position: f"{value:g}".replace("-", "−"))
        figure.supxlabel("return per episode, more than ε-greedy's\n(% of human − random)", size=9)
        handles, labels = axes[0].get_legend_handles_labels()
        ncols = 1 if is_narrow else len(policies)
        figure.legend(handles, labels, loc="outside upper center", ncols=ncols)
    return figure


def over_games(data: Data, *, is_narrow: bool = False) -> Figure:
    """A row for each ε: games with more and less reward, sooner and later ones, and places.

    Solid bars are games that differ by themselves, corrected for the number of games.
    """
    epsilons = list(dict.fromkeys(row["epsilon"] for row in data["overall"]))
    num_policies = len(data["overall"]) // len(epsilons)
    with style.voice():
        panel = 0.28 * num_policies + 1.0
        num_panels = 4 * len(epsilons)
        size = (4.2, panel * num_panels) if is_narrow else (12.5, panel * len(epsilons) + 0.2)
        figure = style.new_figure(*size)
        shape = (num_panels, 1) if is_narrow else (len(epsilons), 4)
        axes = figure.subplots(*shape, squeeze=False).reshape(len(epsilons), 4)
        for line, epsilon in zip(axes, epsilons, strict=True):
            rows = [row for row in data["overall"] if row["epsilon"] == epsilon]
            names = [row["policy"] for row in rows]
            for axis, (name, title, words) in zip(line, _SIGN_TESTS, strict=False):
                _counts(axis, rows, name)
                _rows_of(axis, names, f"ε = {epsilon:g}: {title}")
                axis.set_xlabel(words)
            places = np.arange(len(rows))
            _dots(line[3], [row["cells_ratio"] for row in rows], places - 0.12, 0, "screen cells")
            _dots(line[3], [row["memories_ratio"] for row in rows], places + 0.12, 1, "memory")
            _rows_of(line[3], names, f"ε = {epsilon:g}: distinct places")
            line[3].axvline(1.0, color=style.TEXT_COLOUR, linewidth=0.8, zorder=0)
            line[3].set_xlabel("ratio εz/ε, mean over games")
            for axis in line[1:] if not is_narrow else ():
                axis.tick_params(labelleft=False)
        handles, labels = axes[0][3].get_legend_handles_labels()
        figure.legend(handles, labels, loc="outside upper right", ncols=2)
    return figure


def _by_gain(rows: Sequence[Mapping[str, Any]]) -> list[str]:
    gains: dict[str, list[float]] = {}
    for row in rows:
        gains.setdefault(row["game"], []).append(row["gain"][0])
    return sorted(gains, key=lambda game: (-float(np.mean(gains[game])), game))


def _dots(
    axis: Any, intervals: Sequence[Sequence[float]], places: Any, number: int, label: str
) -> None:
    """Intervals [value, low, high], one at each height."""
    values, lows, highs = np.array(intervals).T
    colour = _COLOURS[number % len(_COLOURS)]
    axis.hlines(places, lows, highs, color=colour, linewidth=1.1, alpha=0.7)
    axis.plot(values, places, "o", markersize=3.2, color=colour, label=label)


def _counts(axis: Any, rows: Sequence[Mapping[str, Any]], name: str) -> None:
    """Bars to both sides: ε-greedy's games to the left, εz-greedy's to the right."""
    places = np.arange(len(rows))
    for key, side, colour in (("down", -1, style.EPS_COLOUR), ("up", 1, style.EZ_COLOUR)):
        counts = [row[f"{name}_{key}"] for row in rows]
        surely = [row[f"{name}_surely_{key}"] for row in rows]
        axis.barh(places, np.multiply(side, counts), height=0.62, color=colour, alpha=_PALE)
        axis.barh(places, np.multiply(side, surely), height=0.62, color=colour)
        for place, count in zip(places, counts, strict=True):
            axis.annotate(
                str(count),
                (side * count, place),
                (3 * side, 0),
                textcoords="offset points",
                ha="left" if side > 0 else "right",
                va="center",
                fontsize=8,
            )
    axis.axvline(0.0, color=style.TEXT_COLOUR, linewidth=0.8)
    most = max(max(row[f"{name}_down"], row[f"{name}_up"]) for row in rows)
    axis.set_xlim(-1.25 * max(most, 1), 1.25 * max(most, 1))
    axis.xaxis.set_major_locator(_whole_numbers())
    axis.xaxis.set_major_formatter(lambda value, position: f"{abs(value):g}")


def _whole_numbers() -> Any:
    from matplotlib.ticker import MaxNLocator

    return MaxNLocator(integer=True, nbins=6)


def _rows_of(axis: Any, names: Sequence[str], title: str) -> None:
    """Names at the left, the first on top."""
    axis.set_yticks(range(len(names)), names)
    axis.set_ylim(len(names) - 0.4, -0.6)
    axis.set_title(title)
    axis.grid(axis="x", color=style.FAINT_COLOUR, linewidth=0.5)
    axis.set_axisbelow(True)
