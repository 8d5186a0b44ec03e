"""A small fleet on Ray, and how long it takes until something holds."""

import time

from ezgreedy.fleet.fleet_settings import FleetSettings, Patience
from support.small_runs import small_sequence_run

SETTINGS = small_sequence_run("r2d2-ez", lanes=8, frames=10**9, frames_per_report=10**8)
PATIENCE = Patience(heartbeat=0.5, silence=6.0, most_crashes=100)
FLEET = FleetSettings(actors=2, shards=2, patience=PATIENCE)
SECONDS = 120.0  # for anything; the machine may be busy


def turn_until(training, condition, seconds=SECONDS):
    """How long it took."""
    begun = time.monotonic()
    while not condition():
        assert time.monotonic() - begun < seconds, (training.pids(), training.take_notices())
        training.step()
    return time.monotonic() - begun


def goes_on(training, seconds=SECONDS):
    """Everybody lives, plays and learns."""
    frames, updates = training.frames, training.num_updates
    turn_until(
        training,
        lambda: (
            all(training.pids().values())
            and training.frames > frames + 200
            and training.num_updates > updates + 3
        ),
        seconds,
    )
