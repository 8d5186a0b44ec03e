"""How fast are agents that have no runs yet? Each plays for a few seconds to find out."""

import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from ezgreedy.sweeps.definitions import Member
from ezgreedy.sweeps.forecast import known_speeds, measure_speed
from ezgreedy.sweeps.jobs import ENDED, Engine, R, Work
from ezgreedy.sweeps.sweep_directory import DONE, RunState

_MOST_SECONDS = 120.0  # to start and warm up; on a cluster others may be first


def speeds_of(
    members: Sequence[Member],
    states: Mapping[str, RunState],
    engine: Engine[R],
    seconds: float,
    say: Callable[[str], None],
) -> dict[str, float]:
    """Frames per second of each agent that has no run with a known speed.

    Each is measured on its first unfinished run, in a separate process, one after the other. An
    agent that crashes, or finds no machine in time, is left out; its run will report why.

    Args:
        members: all runs of the sweep.
        states: states of known runs, by id.
        engine: engine of the sweep.
        seconds: time to measure each agent; 0 to measure none.
        say: called with messages for the user.
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
