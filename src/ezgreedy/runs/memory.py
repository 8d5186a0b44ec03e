"""How much memory does a run take, and is there enough? Asked before anything is built.

Sizes follow from the settings, so the answer takes a moment even for a run that would take minutes
to begin. Neither PyTorch nor more than one environment is needed for it.
"""

import numpy as np

from ezgreedy import requirements as require
from ezgreedy.agents.run_settings import RunSettings
from ezgreedy.games.registry import make
from ezgreedy.replay.available_memory import available_bytes
from ezgreedy.units import size

# Python, PyTorch, numba and games: 0.58 GB measured for MinAtar, which imports pandas, and up to
# 0.03 more while numba compiles; some of it is shared between processes. Chosen so that forecasts
# are rather above the peak than below it.
PROCESS_BYTES = 600_000_000
_LANE_BYTES = 1_000_000  # an emulator


def memory_bytes(settings: RunSettings, frame_shape: tuple[int, ...]) -> int:
    """Peak memory of a run's process once its replay is full."""
    agent, lanes = settings.agent, settings.lanes
    working = agent.working_bytes(frame_shape, settings.protocol, lanes)
    return agent.replay_bytes(frame_shape) + working + lanes * _LANE_BYTES + PROCESS_BYTES


def require_enough(settings: RunSettings, available: int | None = None) -> None:
    """Refuses a run that does not fit into memory, and says what would.

    Args:
        settings: settings of the run, in one process.
        available: available bytes; None to ask the machine.
    """
    available = available_bytes() if available is None else available
    rng = np.random.default_rng(0)
    shape = make(settings.game, settings.protocol, rng=rng).frame_shape
    needed = memory_bytes(settings, shape)
    if needed <= available:
        return
    replay = settings.agent.replay_bytes(shape)
    rest = needed - replay
    told = f"the run needs {size(needed)}: {size(replay)} for its replay, {size(rest)} beside it"
    capacity = getattr(settings.agent, "replay_capacity", None)
    if capacity is None or rest >= available:
        lanes = f"with {settings.lanes} lanes"
        raise ValueError(f"a run must fit into the {size(available)} of memory; {told} {lanes}")
    fitting = int(capacity * (available - rest) / replay)
    rule = f"be at most {fitting} to fit into the {size(available)} of memory ({told})"
    raise require.refuse("agent.replay_capacity", rule, capacity)
