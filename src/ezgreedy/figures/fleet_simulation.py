"""Simulated fleets in figures: speed and waiting by the number of actors."""

from collections.abc import Sequence

from matplotlib.figure import Figure
from matplotlib.ticker import NullLocator, StrMethodFormatter

from ezgreedy.figures import style
from ezgreedy.fleet.simulation import Simulated


def fleets(found: Sequence[Simulated]) -> Figure:
    """Frames per second, and the share of time in which each role works, by number of actors.

    Args:
        found: simulated fleets that differ in their number of actors.
    """
    found = sorted(found, key=lambda one: one.actors)
    actors = [one.actors for one in found]
    with style.voice():
        figure = style.new_figure(7.2, 3.4)
        speed, work = figure.subplots(1, 2)
        speed.plot(actors, [one.frames_per_second for one in found], "o-")
        speed.set_ylabel("frames per second")
        speed.set_ylim(bottom=0.0)
        speed.yaxis.set_major_formatter(StrMethodFormatter("{x:,.0f}"))
        for role in found[0].waiting:
            work.plot(actors, [1.0 - one.waiting[role] for one in found], "o-", label=role)
        work.set_ylabel("share of time at work")
        work.set_ylim(0.0, 1.05)
        work.legend(loc="lower center", bbox_to_anchor=(0.5, 1.0), ncols=3)
        for axis in (speed, work):
            axis.set_xscale("log")
            axis.set_xticks(actors, [f"{number:,}" for number in actors], minor=False)
            axis.xaxis.set_minor_locator(NullLocator())
            axis.set_xlabel("actors")
    return figure
