"""How fast would agents be that no run has shown yet? Each plays a few seconds to find out."""

import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from ezgreedy.running.forecast import known_speeds, measure_speed
from ezgreedy.running.sweep_directory import DONE, RunState
from ezgreedy.running.sweep_jobs import ENDED, Engine, R, Work
from ezgreedy.running.sweeps import Member

_MOST_SECONDS = 120.0  # to begin and to warm up; on a cluster others may be first


def speeds_of(
    members: Sequence[Member],
    states: Mapping[str, RunState],
    engine: Engine[R],
    seconds: float,
    say: Callable[[str], None],
) -> dict[str, float]:
    """Frames a second by agent, of those of whom no run tells.

    Each is measured by its first run that is to be done, in a process of its own, one after the
    other. One that breaks, or finds no place in time, is left out: why is for its run to tell.

    Args:
        members: all runs.
        states: how those are that are known, by id.
        engine: where they would run.
        seconds: how long each is measured; with 0, none is.
        say: where lines for people go.
    """
    known = known_speeds(list(states.values()))
    first: dict[str, Member] = {}
    for member in members:
        if member.id not in states or states[member.id].state != DONE:
            first.setdefault(member.settings.agent.name, member)
    found: dict[str, float] = {}
    for agent, member in first.items():
        if agent in known or seconds == 0.0:
            continue
        say(f"measuring the speed of {agent} on {member.settings.game}")
        work = Work(measure_speed, (member.settings, seconds), Path(os.devnull))
        job = engine.begin(work, member.settings)
        try:
            outcomes = [ended.outcome() for ended in engine.wait([job], seconds + _MOST_SECONDS)]
        finally:
            job.stop(seconds=1.0)
        for kind, told in outcomes:
            if kind == ENDED and isinstance(told, float):
                found[agent] = told
    return found
