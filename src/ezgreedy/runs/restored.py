"""The policy of a run, restored from its newest checkpoint to evaluate or watch.

Only what plays is built: one network, and the lanes that it plays in.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ezgreedy.agents.agent import Policy, game_spec
from ezgreedy.agents.registry import load_policy
from ezgreedy.agents.run_settings import RunSettings
from ezgreedy.games.lanes import Lanes
from ezgreedy.runs.run_directory import RunDirectory
from ezgreedy.runs.run_loop import require_device


@dataclass(frozen=True)
class Restored:
    """The saved agent of a run.

    Args:
        settings: settings of the run.
        state: state of the agent, without append-only rings.
        frames: frames that it was trained for.
        notices: messages about checkpoints that were skipped.
    """

    settings: RunSettings
    state: Mapping[str, Any]
    frames: int
    notices: tuple[str, ...]

    def evaluation_policy(self, lanes: int, seed: int, epsilon: float | None = None) -> Policy:
        """The policy of the agent; see `Agent`."""
        settings = self.settings
        return load_policy(
            settings.agent,
            game_spec(Lanes(settings.game, 1, settings.protocol, seed=0)),
            self.state,
            lanes=lanes,
            seed=seed,
            device=settings.device,
            epsilon=epsilon,
        )


def restore(directory: Path, device: str | None = None) -> Restored:
    """Reads the newest complete checkpoint of a run, which may be running; changes nothing.

    Args:
        directory: directory of the run.
        device: device of the network; None for the one that the run started on.
    """
    place = RunDirectory(directory)
    settings = place.settings(device)
    require_device(settings)
    loaded = place.checkpoint_store().load(reads_tails=False)
    if loaded is None:
        raise ValueError(f"{directory} has no checkpoint yet")
    state = loaded.state["training"]
    return Restored(settings, state["agent"], state["frames"], loaded.notices)
