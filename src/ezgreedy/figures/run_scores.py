"""Atari-100k in figures: scores beside published ones, and when agents cross Freeway."""

from collections.abc import Mapping, Sequence

import numpy as np
from matplotlib.figure import Figure

from ezgreedy.figures import style
from ezgreedy.figures.colours import AGENT_COLOURS, REFERENCE_COLOUR
from ezgreedy.games.atari.atari100k import published
from ezgreedy.units import counted


def scores_by_game(scores: Mapping[str, Mapping[str, Sequence[float]]]) -> Figure:
    """Every run's final score as a share of DER's, both above a random agent's.

    Args:
        scores: game ↦ agent ↦ the final score of every seed; games of the benchmark.
    """
    games = sorted(scores, reverse=True)
    agents = list(dict.fromkeys(agent for game in games for agent in scores[game]))
    with style.voice():
        figure = style.new_figure(7.2, 1.2 + 0.42 * len(games))
        axis = figure.subplots()
        axis.axvline(1.0, color=REFERENCE_COLOUR, linewidth=1.0, linestyle="--")
        for number, agent in enumerate(agents):
            lift = 0.22 * (number - (len(agents) - 1) / 2)
            colour = AGENT_COLOURS.get(agent, REFERENCE_COLOUR)
            for place, game in enumerate(games):
                runs = [published()[game].share_of_der(s) for s in scores[game].get(agent, ())]
                if not runs:
                    continue
                axis.plot(runs, np.full(len(runs), place - lift), ".", color=colour, alpha=0.5)
                axis.plot(np.mean(runs), place - lift, "|", color=colour, markersize=11, mew=2.2)
            axis.plot([], [], "|", color=colour, markersize=11, mew=2.2, label=agent)
        drq = [published()[game].share_of_der(published()[game].drq_eps) for game in games]
        axis.plot(drq, np.arange(len(games)), "x", color=REFERENCE_COLOUR, label="DrQ(ε)")
        axis.set_yticks(np.arange(len(games)), games)
        axis.set_xlabel("(score − random) / (DER − random); dashed: DER as published")
        axis.legend(loc="lower center", bbox_to_anchor=(0.5, 1.0), ncols=len(agents) + 1)
    return figure


def share_still_without(first: Mapping[str, Sequence[int | None]], most: int, what: str) -> Figure:
    """The share of seeds for which an event has not happened yet, by agent steps.

    Args:
        first: agent ↦ the step of the event for each seed; None if it never happened.
        most: number of steps.
        what: label of the vertical axis, which names the event.
    """
    with style.voice():
        figure = style.new_figure(7.2, 3.4)
        axis = figure.subplots()
        for agent, steps in first.items():
            if not steps:
                continue
            ends = sorted(step for step in steps if step is not None)
            shares = 1.0 - np.arange(len(ends) + 1) / len(steps)
            axis.step(
                [0, *ends, most],
                [*shares, shares[-1]],
                where="post",
                label=f"{agent} ({counted(len(steps), 'seed')})",
                color=AGENT_COLOURS.get(agent, REFERENCE_COLOUR),
            )
        axis.set_xlim(0, most)
        axis.set_ylim(-0.02, 1.02)
        axis.set_xlabel("agent steps")
        axis.set_ylabel(what)
        axis.legend()
    return figure
