"""The agent of a run as its newest checkpoint has it, to be looked at."""

from dataclasses import dataclass
from pathlib import Path

from ezgreedy.agents.agent import Agent
from ezgreedy.running.checkpoints import Checkpoints
from ezgreedy.running.driver import require_device
from ezgreedy.running.run_directory import RunDirectory
from ezgreedy.running.settings import RunSettings
from ezgreedy.running.training import Training


@dataclass(frozen=True)
class Restored:
    """An agent, how far it has come, and what had to be passed over to get it."""

    settings: RunSettings
    agent: Agent
    frames: int
    notices: tuple[str, ...]


def restore(directory: Path) -> Restored:
    """Reads the newest whole checkpoint of a run, which may be going on; changes nothing."""
    place = RunDirectory(directory)
    settings = place.settings()
    require_device(settings)
    loaded = Checkpoints(place.checkpoints, place.identity()).load(reads_tails=False)
    if loaded is None:
        raise ValueError(f"{directory} has no checkpoint yet")
    training, state = Training(settings), loaded.state["training"]
    training.agent.load_policy(state["agent"])
    return Restored(settings, training.agent, state["frames"], loaded.notices)
