"""A run on disk: its settings, its status, its results and its checkpoints, in one directory.

config.json     the settings, frozen: the identity of the run, apart from the device it started on
status.json     whether it is running, paused, finished or failed, and how far it got
results.jsonl   evaluations and reports, one line each, with the name of the run
checkpoints/    states to resume from
tensorboard/    the same numbers for TensorBoard
"""

import os
import socket
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import ezgreedy
from ezgreedy import requirements as require
from ezgreedy.agents.run_settings import RunSettings
from ezgreedy.checkpoints.store import Checkpoints
from ezgreedy.results.runs import CONFIG_FORMAT, require_format, run_name
from ezgreedy.results.store import ResultLog, create_json, read_sealed, write_json_atomically
from ezgreedy.runs.settings_codec import as_plain, from_plain, with_later_settings

RUNNING, PAUSED, FINISHED, FAILED = "running", "paused", "finished", "failed"


class RunDirectory:
    """The directory of a run.

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
        self.keeps_replay = False  # whether its status says that it keeps its replay at the end

    def create(self, settings: RunSettings) -> None:
        """Creates the directory of a new run; refuses a non-empty one without changing it."""
        if self.config.exists():
            differing = self._differences(settings)
            if not differing:
                raise ValueError(f"{self.path} already holds this run{self._way_on()}")
            shown = "; ".join(differing[:3]) + ("; ..." if len(differing) > 3 else "")
            raise ValueError(f"{self.path} holds a run with other settings ({shown})")
        if self.path.exists() and (not self.path.is_dir() or any(self.path.iterdir())):
            raise require.refuse("--out", "be a new or an empty directory", str(self.path))
        self.path.mkdir(parents=True, exist_ok=True)
        config = {
            "format": CONFIG_FORMAT,
            "ezgreedy": ezgreedy.__version__,
            "settings": as_plain(settings),
        }
        try:
            create_json(self.config, config)
        except FileExistsError as error:
            raise ValueError(f"{self.path} was claimed by another run just now") from error

    def require_own_files(self) -> None:
        """Refuses links in the place of files, which would write outside the directory."""
        for path in (self.results, self.checkpoints, self.tensorboard):
            if path.is_symlink():
                rule = "not be a symbolic link (link the whole directory of the run instead)"
                raise ValueError(f"{path} must {rule}")

    def settings(self, device: str | None = None) -> RunSettings:
        """The settings of the run in this directory, which an earlier version may have made.

        Args:
            device: device of the networks; None for the one that the run started on.
        """
        config, _ = self._read_config()
        try:
            settings = from_plain(with_later_settings(config["settings"]))
        except (ValueError, TypeError, RecursionError) as error:
            raise ValueError(f"{self.config}: {error}") from error
        if not isinstance(settings, RunSettings):
            raise ValueError(f"{self.config} does not hold the settings of a run")
        return settings if device is None else replace(settings, device=device)

    def identity(self) -> dict[str, Any]:
        """Data that marks checkpoints as belonging to this run."""
        config, _ = self._read_config()
        settings: dict[str, Any] = config["settings"]
        return settings

    def log(self, *, tolerates_damage: bool = False) -> ResultLog:
        """The results, to be written by this process only.

        Rows of runs that an earlier version started stay without the name of their run.
        """
        config, is_sealed = self._read_config()
        name = run_name(config["settings"]) if is_sealed else None
        return ResultLog(self.results, tolerates_damage=tolerates_damage, run=name)

    def checkpoint_store(self) -> Checkpoints:
        """The run's checkpoints, on whichever device and of however many frames."""
        return Checkpoints(self.checkpoints, self.identity(), free=("device", "frames"))

    def extend(self, frames: int) -> None:
        """Lets the run play on to this many frames; nothing else about it changes."""
        config, is_sealed = self._read_config()
        config["settings"]["frames"] = frames
        write_json_atomically(self.config, config, seals=is_sealed)

    def write_status(self, state: str, *, rows: int = 0, **details: Any) -> None:
        """Writes the status of the run; readers see either the old status or the new one.

        Args:
            state: one of the words above.
            rows: least number of rows of its results from now on.
            details: more about it.
        """
        status = {
            "state": state,
            "pid": os.getpid(),
            "host": socket.gethostname(),
            "time": time.time(),
            "rows": rows,
            **({"keeps_replay": True} if self.keeps_replay else {}),
            **details,
        }
        write_json_atomically(self.status_file, status, seals=True)

    def status(self) -> dict[str, Any]:
        """The last status written; empty if there is none."""
        if not self.status_file.exists():
            return {}
        status, _ = read_sealed(self.status_file)
        if not isinstance(status, dict):
            raise ValueError(f"{self.status_file} is damaged: not a status")
        return status

    def _read_config(self) -> tuple[dict[str, Any], bool]:
        """The contents of config.json, and whether it is sealed."""
        if not self.config.exists():
            raise require.refuse("RUN", "be a directory made by ezgreedy train", str(self.path))
        config, is_sealed = read_sealed(self.config)
        if not isinstance(config, dict) or not {"format", "settings"} <= config.keys():
            raise ValueError(f"{self.config} was not made by ezgreedy train")
        require_format(self.config, config)
        return config, is_sealed

    def _way_on(self) -> str:
        """What can be done with the run in this directory, in words."""
        status, resume = self.status(), f"ezgreedy resume {self.path}"
        if status.get("state") != FINISHED:
            return f" (continue it: {resume})"
        if not status.get("has_replay", True):
            without = "without the replay that train --keep-replay keeps, it cannot play on"
            return f", which has finished (choose another --out; {without})"
        return f", which has finished (choose another --out, or play on: {resume} --frames N)"

    def _differences(self, settings: RunSettings) -> list[str]:
        """Differences between new settings and those in the directory, in words."""
        there = flat(with_later_settings(self.identity()))
        here = flat(as_plain(settings))
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
