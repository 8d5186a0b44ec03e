"""What did a training run write down? Its settings and scores, read as plain data.

A run is a directory made by `ezgreedy train`, or the copy of one made by `ezgreedy collect`; both
hold config.json and results.jsonl. Reading them needs neither agents nor networks, so figures can
be redrawn where nothing can be trained.
"""

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import ezgreedy
from ezgreedy import requirements as require
from ezgreedy.results.store import IntactPart, intact_part, read_json, read_sealed

CONFIG_FILE, RESULTS_FILE, MANIFEST_FILE = "config.json", "results.jsonl", "manifest.json"
STATUS_FILE = "status.json"
CONFIG_FORMAT = 1
# In the directory of a run on Ray: the numbers of its processes.
ENGINE_FILE = "engine.json"
# Marks a directory made by `ezgreedy collect`.
COLLECTION_FILE = "collection.json"
# Marks a directory made by `ezgreedy sweep`, next to the directory of its runs.
SWEEP_FILE, SWEEP_RUNS = "sweep.json", "runs"

# Settings that may change while a run goes on: it is extended, or moves to another device.
CHANGEABLE = ("frames", "device")
# Settings that do not affect learning: runs that differ only in these are one run.
NO_IDENTITY = ("frames", "device", "threads")
# Settings that may differ between games: the length of episodes decides how often, and for how
# long, an agent is evaluated. The manner of evaluation decides its scores, and is not included.
OF_THE_GAME = ("game", "frames_per_report")
OF_THE_GAME_IN_EVALUATION = ("frames_between", "frames")
# Settings added since the first runs, by the kind of the settings, with the value that stands for
# what runs without them did.
ADDED_SETTINGS: Mapping[str, Mapping[str, Any]] = {
    "RunSettings": {"streams": "paired"},
    "EvaluationSettings": {"episodes": None},
    "Preset": {"matches_budget": False, "shares_hidden": False, "stops": []},
    "SequencePreset": {"replay_bytes_per_observation": 700, "stops": []},
    "DistillationSettings": {
        "adam_epsilon": 1e-8,
        "error_memory": None,
        "in_first_priorities": False,
        "initialisation": "uniform",
        "warm_up_updates": 0,
        "whitening_bound": None,
        "whitening_observations": 10_000,
    },
}

# An evaluation starts after the step of all lanes in which it is due, so it is a few frames late:
# at most 10 of 6,000 in results/deep, 0.17 %. It must not be mistaken for the one before: in a run
# with 200 evaluations, as in DQN Zoo, they are as close as 0.5 %.
LATEST = 1.0025


@dataclass(frozen=True)
class Score:
    """One evaluation: the training frames before it, and its mean return."""

    frames: int
    mean_return: float


@dataclass(frozen=True)
class Report:
    """One period of training: its end, its finished episodes and their mean return."""

    frames: int
    episodes: int
    mean_return: float | None  # None if no episode finished
    explored_share: float


@dataclass(frozen=True)
class Run:
    """One run, as read from its files.

    Args:
        path: directory of the run.
        settings: all settings, as plain data.
        version: version of the package that started the run.
        scores: evaluations, in order.
        reports: reports on training, in order.
        manifest: manifest of a collected run; empty for others.
        unverified: what cannot be verified, because an earlier version made the run.
    """

    path: Path
    settings: Mapping[str, Any]
    version: str
    scores: Sequence[Score]
    reports: Sequence[Report]
    manifest: Mapping[str, Any]
    unverified: Sequence[str] = ()

    @property
    def game(self) -> str:
        """Name of the game."""
        return str(self.settings["game"])

    @property
    def agent(self) -> str:
        """Name of the agent."""
        return str(self.settings["agent"]["name"])

    @property
    def seed(self) -> int:
        """Random seed."""
        return int(self.settings["seed"])

    @property
    def frames_to_play(self) -> int:
        """Total frames of the run."""
        return int(self.settings["frames"])

    @property
    def frames(self) -> int:
        """Frames played, by the last line of its results."""
        ends = [score.frames for score in self.scores] + [entry.frames for entry in self.reports]
        return max(ends, default=0)

    @property
    def code(self) -> str:
        """The code that made it: the package version, and the commit if recorded."""
        commit = self.manifest.get("commit")
        return f"{self.version}, commit {commit}" if commit else self.version

    @property
    def last_evaluated(self) -> int:
        """Training frames before the last evaluation; -1 if there is none."""
        return max((score.frames for score in self.scores), default=-1)

    def score_at(self, frames: int) -> float | None:
        """The score at these frames, or as little later as is possible; None if there is none."""
        found = [score for score in self.scores if frames <= score.frames <= LATEST * frames]
        return min(found, key=lambda score: score.frames).mean_return if found else None

    @property
    def is_finished(self) -> bool:
        """Whether its last evaluation was at its very end."""
        return bool(self.scores) and self.scores[-1].frames >= self.frames_to_play

    def identity(self, *, has_seed: bool = True, has_game: bool = True) -> str:
        """Identity of the run: equal for runs that differ only in length or device.

        Args:
            has_seed: whether the seed is part of the identity.
            has_game: whether the game, and how often and for how long it is evaluated, are part of
                the identity.
        """
        return json.dumps(self.telling(has_seed=has_seed, has_game=has_game), sort_keys=True)

    def telling(self, *, has_seed: bool = True, has_game: bool = True) -> dict[str, Any]:
        """The settings that distinguish runs; see `identity`."""
        left_out = {*NO_IDENTITY, *(() if has_seed else ("seed",))}
        left_out |= {*(() if has_game else OF_THE_GAME)}
        kept = {name: value for name, value in self.settings.items() if name not in left_out}
        if not has_game and isinstance(kept.get("evaluation"), Mapping):
            kept["evaluation"] = {
                name: value
                for name, value in kept["evaluation"].items()
                if name not in OF_THE_GAME_IN_EVALUATION
            }
        return dict(_without_added(kept))


def _without_added(settings: Any) -> Any:
    """Settings without those that say the same as their absence in earlier versions."""
    if isinstance(settings, list):
        return [_without_added(item) for item in settings]
    if not isinstance(settings, Mapping):
        return settings
    added = ADDED_SETTINGS.get(settings.get("kind", ""), {})
    return {
        name: _without_added(value)
        for name, value in settings.items()
        if name not in added or value != added[name]
    }


def is_run(directory: Path) -> bool:
    """Whether a directory holds a run, by the shape of its config.json."""
    try:
        config = read_json(directory / CONFIG_FILE)
    except (OSError, ValueError):
        return False
    return isinstance(config, dict) and _is_of_run(config.get("settings"))


def run_directories(source: Path) -> list[Path]:
    """The runs that a directory is or holds, including those of sweeps and nested collections.

    A directory with a config.json that does not belong to a run is included, so that reading it
    reports the problem.
    """
    if (source / CONFIG_FILE).exists():
        return [source]
    if (source / SWEEP_FILE).exists():
        source = source / SWEEP_RUNS
    places = [source, *(path.parent for path in sorted(source.glob(f"*/{COLLECTION_FILE}")))]
    places += [path.parent / SWEEP_RUNS for path in sorted(source.glob(f"*/{SWEEP_FILE}"))]
    return [path.parent for place in places for path in sorted(place.glob(f"*/{CONFIG_FILE}"))]


def not_begun(source: Path) -> dict[str, list[tuple[str, int]]]:
    """Game and seed, by agent, of the runs of sweeps that have no directory yet.

    Empty if the directory neither is a sweep nor holds any. An agent with another duration law is
    named by both.
    """
    is_sweep = (source / SWEEP_FILE).exists()
    files = [source / SWEEP_FILE] if is_sweep else sorted(source.glob(f"*/{SWEEP_FILE}"))
    absent: dict[str, list[tuple[str, int]]] = {}
    for file in files:
        planned = read_mapping(file).get("runs", {})
        try:
            for name, entry in planned.items():
                if not (file.parent / SWEEP_RUNS / name / CONFIG_FILE).exists():
                    agent = " ".join(word for word in (entry["agent"], entry["variant"]) if word)
                    absent.setdefault(agent, []).append((entry["game"], entry["seed"]))
        except (KeyError, TypeError, AttributeError) as error:
            raise ValueError(f"{file} was not made by ezgreedy sweep") from error
    return absent


def run_name(settings: Mapping[str, Any]) -> str:
    """The name that every row of a run's results has: a digest of what makes it this run."""
    kept = {name: value for name, value in settings.items() if name not in CHANGEABLE}
    text = json.dumps(kept, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode("utf-8")).hexdigest()[:16]


def read_run(directory: Path) -> Run:
    """Reads a run, finished or not.

    Refuses a damaged one, naming the file: changed settings, rows that are damaged, missing or of
    another run.
    """
    config, is_sealed = read_config(directory)
    settings = config["settings"]
    path = directory / RESULTS_FILE
    manifest_path = directory / MANIFEST_FILE
    manifest = read_mapping(manifest_path) if manifest_path.exists() else {}
    if manifest.get("settings", run_name(settings)) != run_name(settings):
        raise ValueError(f"{manifest_path} is of a run with settings other than {CONFIG_FILE}")
    intact, counted = _rows(directory, run_name(settings))
    doubts = (is_sealed or "settings" in manifest, intact.names_run, counted is not None)
    try:
        return Run(
            path=directory,
            settings=settings,
            version=str(config.get("ezgreedy", "")),
            scores=[_score(row) for row in intact.records if row["kind"] == "evaluation"],
            reports=[_report(row) for row in intact.records if row["kind"] == "training"],
            manifest=manifest,
            unverified=[what for what, known in zip(_DOUBTS, doubts, strict=True) if not known],
        )
    except KeyError as error:
        raise ValueError(f"{path} does not hold a run's results: no {error.args[0]!r}") from error
    except TypeError as error:
        raise ValueError(f"{path} does not hold a run's results: {error}") from error


# What may be unknown of a run made by an earlier version.
_DOUBTS = ("settings", "to which run its rows belong", "number of rows")


def read_config(directory: Path) -> tuple[dict[str, Any], bool]:
    """The contents of a run's config.json, and whether it has a checksum."""
    path = directory / CONFIG_FILE
    config, is_sealed = read_sealed(path)
    if not isinstance(config, dict):
        raise ValueError(f"{path} is damaged: not a mapping")
    require_format(path, config)
    if not _is_of_run(config.get("settings")):
        raise ValueError(f"{path} was not made by ezgreedy train")
    return config, is_sealed


def require_format(path: Path, config: Mapping[str, Any]) -> None:
    """Refuses a config.json of another version's format; one without any is as old as the first."""
    found = config.get("format", CONFIG_FORMAT)
    if found != CONFIG_FORMAT:
        raise ValueError(
            f"{path} has format {found}, which needs another version of "
            f"ezgreedy (this is {ezgreedy.__version__}, for format {CONFIG_FORMAT})"
        )


def unverified_runs(runs: Sequence[Run]) -> str:
    """A sentence about runs that cannot be verified; "" if there are none."""
    old = [run for run in runs if run.unverified]
    if not old:
        return ""
    what = ", ".join(what for what in _DOUBTS if any(what in run.unverified for run in old))
    return (
        f"{len(old)} of {len(runs)} runs were made or collected before files had checksums and "
        f"cannot be verified ({what})"
    )


def _rows(directory: Path, name: str) -> tuple[IntactPart, int | None]:
    """The rows of a run, and their recorded number; refuses damaged and missing ones."""
    counted = _num_rows(directory)
    while True:
        intact = _intact_rows(directory / RESULTS_FILE, name)
        if counted is None or len(intact.records) >= counted:
            return intact, counted
        # A run that goes on may have returned to an older checkpoint in the meantime.
        before, counted = counted, _num_rows(directory)
        if counted == before:
            raise ValueError(
                f"{directory / RESULTS_FILE} has lost rows: {len(intact.records)} of {counted} are "
                "there"
            )


def _intact_rows(path: Path, name: str) -> IntactPart:
    if not path.exists():
        return IntactPart([], 0, None, True)
    intact = intact_part(path, name)
    if intact.damage:
        raise ValueError(intact.damage)
    return intact


def _num_rows(directory: Path) -> int | None:
    """The least number of rows that a run or its copy must have; None if it is not recorded."""
    for file in (MANIFEST_FILE, STATUS_FILE):
        path = directory / file
        if path.exists():
            rows = read_mapping(path).get("rows")
            return None if rows is None else require.integer(f"rows in {path}", rows, least=0)
    return None


def read_mapping(path: Path) -> dict[str, Any]:
    """The contents of a JSON file that holds a mapping."""
    data = read_json(path)
    if not isinstance(data, dict):
        raise ValueError(f"{path} is damaged: not a mapping")
    return data


def _is_of_run(settings: Any) -> bool:
    return (
        isinstance(settings, dict)
        and {"agent", "game", "seed", "frames"} <= settings.keys()
        and isinstance(settings["agent"], dict)
        and "name" in settings["agent"]
    )


def _score(record: Mapping[str, Any]) -> Score:
    return Score(
        require.integer("frames", record["frames"], least=0),
        require.number("mean_return", record["mean_return"], least=-float("inf")),
    )


def _report(record: Mapping[str, Any]) -> Report:
    mean = record.get("mean_return")
    return Report(
        require.integer("frames", record["frames"], least=0),
        require.integer("episodes", record["episodes"], least=0),
        None if mean is None else require.number("mean_return", mean, least=-float("inf")),
        require.number("explored_share", record["explored_share"], 0.0, 1.0),
    )
