"""A run on disk: its settings, its status, its results and its checkpoints, in one directory.

config.json     the settings, frozen: what makes two runs the same
status.json     whether it is running, paused, finished or failed, and how far it came
results.jsonl   evaluations and reports, a line each
checkpoints/    from where it continues
tensorboard/    the same numbers for TensorBoard
"""

import json
import os
import socket
import time
from pathlib import Path
from typing import Any

import ezgreedy
from ezgreedy import requirements as require
from ezgreedy.results.store import write_json_atomically
from ezgreedy.running.plain import as_plain, from_plain
from ezgreedy.running.settings import RunSettings

CONFIG_FORMAT = 1
RUNNING, PAUSED, FINISHED, FAILED = "running", "paused", "finished", "failed"


class RunDirectory:
    """Where a run lives.

    Args:
        path: the directory.
    """

    def __init__(self, path: Path) -> None:
        self.path = Path(path)
        self.config = self.path / "config.json"
        self.status_file = self.path / "status.json"
        self.results = self.path / "results.jsonl"
        self.checkpoints = self.path / "checkpoints"
        self.tensorboard = self.path / "tensorboard"

    def create(self, settings: RunSettings) -> None:
        """Makes the directory of a new run; one that holds anything is refused untouched."""
        if self.config.exists():
            differing = self._differences(settings)
            if not differing:
                raise ValueError(
                    f"{self.path} already holds this run (continue it: ezgreedy resume {self.path})"
                )
            shown = "; ".join(differing[:3]) + ("; ..." if len(differing) > 3 else "")
            raise ValueError(f"{self.path} holds a run of another configuration ({shown})")
        if self.path.exists() and (not self.path.is_dir() or any(self.path.iterdir())):
            raise require.refuse("--out", "be a new or an empty directory", str(self.path))
        self.path.mkdir(parents=True, exist_ok=True)
        config = {
            "format": CONFIG_FORMAT,
            "ezgreedy": ezgreedy.__version__,
            "settings": as_plain(settings),
        }
        write_json_atomically(self.config, config)

    def settings(self) -> RunSettings:
        """The settings of the run that the directory holds."""
        config = self._read_config()
        settings = from_plain(config["settings"])
        if not isinstance(settings, RunSettings):
            raise ValueError(f"{self.config} holds no settings of a run")
        return settings

    def identity(self) -> dict[str, Any]:
        """What checkpoints of this run, and of no other, carry."""
        settings: dict[str, Any] = self._read_config()["settings"]
        return settings

    def write_status(self, state: str, **details: Any) -> None:
        """Says how the run is; readers see the old status or the new one."""
        status = {
            "state": state,
            "pid": os.getpid(),
            "host": socket.gethostname(),
            "time": time.time(),
            **details,
        }
        write_json_atomically(self.status_file, status)

    def status(self) -> dict[str, Any]:
        """What `write_status` said last; empty if nothing was said."""
        if not self.status_file.exists():
            return {}
        status: dict[str, Any] = json.loads(self.status_file.read_text(encoding="utf-8"))
        return status

    def _read_config(self) -> dict[str, Any]:
        if not self.config.exists():
            raise require.refuse("RUN", "be a directory made by ezgreedy train", str(self.path))
        try:
            config = json.loads(self.config.read_text(encoding="utf-8"))
        except ValueError as error:
            raise ValueError(f"{self.config} is damaged: not JSON") from error
        if not isinstance(config, dict) or not {"format", "settings"} <= config.keys():
            raise ValueError(f"{self.config} was not made by ezgreedy train")
        if config["format"] != CONFIG_FORMAT:
            raise ValueError(
                f"{self.config} has format {config['format']}, which needs another version of "
                f"ezgreedy (this is {ezgreedy.__version__}, for format {CONFIG_FORMAT})"
            )
        return config

    def _differences(self, settings: RunSettings) -> list[str]:
        """Where a new configuration departs from the one that is there, in words."""
        there, here = flat(self._read_config()["settings"]), flat(as_plain(settings))
        return [
            f"{name}: {there.get(name)!r} there, {here.get(name)!r} here"
            for name in sorted(there.keys() | here.keys())
            if there.get(name) != here.get(name)
        ]


def flat(data: Any, name: str = "") -> dict[str, Any]:
    """Nested plain data as one mapping with dotted names."""
    if isinstance(data, dict):
        pairs = [(f"{name}.{key}" if name else key, value) for key, value in data.items()]
    elif isinstance(data, list):
        pairs = [(f"{name}[{number}]", value) for number, value in enumerate(data)]
    else:
        return {name: data}
    found: dict[str, Any] = {}
    for key, value in pairs:
        found |= flat(value, key)
    return found
