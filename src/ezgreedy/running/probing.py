"""How fast would agents be that no run has shown yet? Each plays a few seconds to find out."""

import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from ezgreedy.running.forecast import known_speeds, measure_speed
from ezgreedy.running.sweep_directory import DONE, RunState
from ezgreedy.running.sweep_jobs import ENDED, Job
from ezgreedy.running.sweeps import Member


def speeds_of(
    members: Sequence[Member],
    states: Mapping[str, RunState],
    seconds: float,
    say: Callable[[str], None],
) -> dict[str, float]:
    """Frames a second by agent, of those of whom no run tells.

    Each is measured by its first run that is to be done, in a process of its own, one after the
    other. One that breaks is left out: why is for its run to tell.

    Args:
        members: all runs.
        states: how those are that are known, by id.
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
        job = Job(measure_speed, (member.settings, seconds), Path(os.devnull))
        try:
            outcome = job.outcome()
        finally:
            job.stop(seconds=1.0)
        if outcome.kind == ENDED and isinstance(outcome.told, float):
            found[agent] = outcome.told
    return found
