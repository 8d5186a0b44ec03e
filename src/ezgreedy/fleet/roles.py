"""What does each process of a fleet do? The roles do not depend on Ray.

They wrap the actor, memory and learner of a single process, and add what only processes need:
windows in transit, repeated deliveries and snapshots on disk. A role is created empty and starts
work with `begin`, which is called again in a restarted process; everything else that it knew is
lost.
"""

import shutil
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, ClassVar, NamedTuple, cast

import numpy as np

from ezgreedy.agents.agent import GameSpec, game_spec
from ezgreedy.agents.means import Explored, ExploredSince
from ezgreedy.agents.play import FinishedReturns, FrameCount, Play
from ezgreedy.agents.r2d2.actor import SequenceActor, Whereabouts
from ezgreedy.agents.r2d2.feed import NUM_BUFFERS, BatchFeed
from ezgreedy.agents.r2d2.roles import (
    Learned,
    NetworkCopy,
    R2D2Learner,
    Weights,
    sequence_replay,
)
from ezgreedy.agents.r2d2.settings import R2D2Settings
from ezgreedy.agents.run_settings import RunSettings
from ezgreedy.checkpoints.store import Checkpoints
from ezgreedy.fleet.transport import Packed, pack, unpack
from ezgreedy.games.lanes import Lanes, LaneSteps
from ezgreedy.learning.gradients import NotFiniteError
from ezgreedy.replay.compressed_batch import CompressedBatch
from ezgreedy.replay.sequence_batch import SequenceBatch
from ezgreedy.requirements import FloatArray, IntArray
from ezgreedy.runs.evaluation import Evaluation, evaluate_agent
from ezgreedy.runs.process_setup import prepare_process
from ezgreedy.seeding import role_seed

# Two that checkpoints refer to, and two for checkpoints that may never have been completed.
KEPT_SNAPSHOTS = 4


class Key(NamedTuple):
    """Identifies a delivery of windows, in case it arrives twice."""

    actor: int
    incarnation: int
    number: int


class PlayReport(NamedTuple):
    """Results of one call to play."""

    key: Key
    version: int  # version of the weights that acted
    frames: int
    explored: Explored
    returns: list[float]  # returns of finished episodes
    windows: int
    seconds: float


class ShardReport(NamedTuple):
    """State of a memory after a call."""

    kept: int  # windows of the last delivery that were kept
    duplicates: int  # repeated deliveries so far
    windows: int  # windows in the memory
    total_priority: float
    lost: int = 0  # windows that came without the blocks they share with earlier ones
    effective_capacity: int = 0  # observations that fit


class UpdateReport(NamedTuple):
    """Results of one update."""

    num_updates: int
    learned: Learned
    waited: float  # seconds since the previous update in which there was nothing to compute
    seconds: float


def agent_seed(settings: RunSettings) -> int:
    """Seed of all random streams of the agent: the same as in one process."""
    return settings.role_seed("agent")


def preset_of(settings: RunSettings) -> R2D2Settings:
    """Settings of the agent; only R2D2 runs on Ray, which is checked before a fleet starts."""
    return cast(R2D2Settings, settings.agent)


def network_copy(settings: RunSettings, spec: GameSpec, *, is_actor: bool = False) -> NetworkCopy:
    """A copy of the learner's network; also prepares this process.

    Args:
        settings: settings of the run.
        spec: the game.
        is_actor: whether the copy is for an actor, which may need bonuses too.
    """
    prepare_process(settings.threads)
    return NetworkCopy(preset_of(settings), spec, seed=agent_seed(settings), is_actor=is_actor)


class ActorRole:
    """Plays some lanes of the fleet, with weights that are updated from time to time."""

    def begin(
        self,
        settings: RunSettings,
        number: int,
        where: Whereabouts,
        incarnation: int,
        state: Mapping[str, Any] | None,
    ) -> None:
        """Start from a state, or from the beginning.

        Args:
            settings: settings of the run.
            number: number of the actor.
            where: lanes of the actor.
            incarnation: number of restarts of these lanes. Each has its own random streams, or lost
                play would be repeated; the first has those of a single process.
            state: state to continue from; None to start from the beginning.
        """
        self._key = Key(number, incarnation, 0)
        environments = _again(settings.role_seed("environments"), incarnation)
        first_lane = where.first_lane
        protocol = settings.protocol
        lanes = Lanes(
            settings.game, where.lanes, protocol, seed=environments, first_lane=first_lane
        )
        spec = game_spec(lanes)
        self._network = network_copy(settings, spec, is_actor=True)
        self._version = 0  # number of updates of its weights
        self._actor = SequenceActor(
            preset_of(settings),
            spec,
            self._network.values,
            where,
            self._network.first_bonus,
            seed=_again(agent_seed(settings), incarnation),
        )
        self._settings = settings
        self._frames, self._returns = FrameCount(where.lanes), FinishedReturns()
        self._explored = ExploredSince(self._actor.explorer)
        trackers = (self._frames, self._returns)
        self._play = Play(self._actor, lanes, *trackers, check=self._require_finite)
        if state is not None:
            self._load(state)

    def play(
        self, num_steps: int, version: int, weights: Weights | None
    ) -> tuple[PlayReport, Packed | None]:
        """Play every lane for some steps; returns a report and the completed windows.

        Args:
            num_steps: number of steps.
            version: number of updates of the weights to act with.
            weights: the weights; None if the actor already has them.
        """
        begun = time.monotonic()
        if weights is not None:
            self._network.follow(weights)
            self._version = version
        for _ in self._play.steps(num_steps):
            pass
        windows = self._actor.take_windows()
        self._key = self._key._replace(number=self._key.number + 1)
        report = PlayReport(
            key=self._key,
            version=self._version,
            frames=self._frames.take(),
            explored=self._explored.take(),
            returns=self._returns.take(),
            windows=len(windows),
            seconds=time.monotonic() - begun,
        )
        # Episodes of another incarnation are different, even with the same number.
        offset = self._key.incarnation << 32
        windows = [window._replace(episode=window.episode + offset) for window in windows]
        return report, pack(windows) if windows else None

    def state(self) -> dict[str, Any]:
        """Everything its future depends on, except the weights."""
        return {
            "number": self._key.number,
            "actor": self._actor.state_dict(),
            **self._play.state_dict(),
            "counted": self._frames.counted,
        }

    def _load(self, state: Mapping[str, Any]) -> None:
        state = _own(state)
        self._key = self._key._replace(number=int(state["number"]))
        self._actor.load_state_dict(state["actor"])
        self._play.load_state_dict(state)
        self._frames.counted = state["counted"]
        self._explored.take()  # earlier exploration was already reported

    def _require_finite(self, steps: LaneSteps) -> None:
        if not np.isfinite(steps.rewards).all():
            raise NotFiniteError("rewards", self._version, self._settings.seed)


class ShardRole:
    """Stores the windows of some actors."""

    def begin(
        self,
        settings: RunSettings,
        spec: GameSpec,
        number: int,
        num_shards: int,
        directory: str,
        snapshot: int | None,
    ) -> tuple[ShardReport, str | None]:
        """Start from a snapshot, or empty.

        Args:
            settings: settings of the run.
            spec: the game.
            number: number of the shard.
            num_shards: number of shards.
            directory: directory of its snapshots.
            snapshot: number of the snapshot; None to start empty and remove existing snapshots.

        Returns:
            A report, and a message if the snapshot could not be used.
        """
        place = {"shard": number, "num_shards": num_shards}
        preset, seed = preset_of(settings), agent_seed(settings)
        self._replay = sequence_replay(preset, spec, seed=seed, **place)
        self._seen: dict[tuple[int, int], int] = {}
        self._duplicates = 0
        identity = {"seed": settings.seed, "shard": number, "of": num_shards}
        self._checkpoints = Checkpoints(Path(directory), identity, KEPT_SNAPSHOTS)
        notice = None
        if snapshot is not None:
            notice = self._restore(snapshot)
        if snapshot is None or notice:
            shutil.rmtree(directory, ignore_errors=True)
        return self._report(0), notice

    def add(self, key: Key, packed: Packed) -> ShardReport:
        """Store the windows of a delivery, unless it has arrived before."""
        key = Key(*key)
        if key.number <= self._seen.get(key[:2], 0):
            self._duplicates += 1
            return self._report(0)
        self._seen[key[:2]] = key.number
        return self._report(sum(self._replay.add(window) is not None for window in unpack(packed)))

    def add_all(self, keys: Sequence[Key], *packed: Packed) -> ShardReport:
        """Store the windows of several deliveries, in order.

        Args:
            keys: keys of the deliveries.
            packed: their windows.
        """
        kept = sum(self.add(*delivery).kept for delivery in zip(keys, packed, strict=True))
        return self._report(kept)

    def sample(self, batch_size: int) -> tuple[int, CompressedBatch]:
        """The number of windows, and a batch of them."""
        return len(self._replay), self._replay.draw(batch_size)

    def update_priorities(
        self, slots: IntArray, generations: IntArray, priorities: FloatArray
    ) -> ShardReport:
        """Store the new priorities of a batch."""
        self._replay.update_priorities(slots, generations, priorities)
        return self._report(0)

    def save(self, snapshot: int) -> None:
        """Write a numbered snapshot to disk; only new data is written."""
        seen = [[*key, number] for key, number in self._seen.items()]
        state = {"memory": self._replay.state_dict(), "seen": seen}
        self._checkpoints.save(snapshot, state)

    def _restore(self, snapshot: int) -> str | None:
        try:
            loaded = self._checkpoints.load(snapshot)
        except ValueError as error:
            return f"a memory starts empty: {error}"
        if loaded is None or loaded.step != snapshot:
            return f"a memory starts empty: snapshot {snapshot} is incomplete"
        self._replay.load_state_dict(loaded.state["memory"])
        self._seen = {
            (int(actor), int(incarnation)): int(number)
            for actor, incarnation, number in loaded.state["seen"]
        }
        return None

    def _report(self, kept: int) -> ShardReport:
        memory = self._replay
        return ShardReport(
            kept,
            self._duplicates,
            len(memory),
            memory.total_priority,
            memory.num_lost,
            memory.effective_capacity,
        )


class LearnerRole:
    """Learns from batches, and provides its weights.

    A thread of its own computes, one thing after another. `update` is called from two others: they
    decode a batch while the thread learns from the one before.
    """

    calls_at_once: ClassVar[dict[str, int]] = {"update": NUM_BUFFERS}

    def begin(
        self,
        settings: RunSettings,
        spec: GameSpec,
        state: Mapping[str, Any] | None,
        decode_threads: int = 1,
    ) -> int:
        """Start from a state, or from the beginning; returns the number of updates so far.

        Args:
            settings: settings of the run.
            spec: the game.
            state: state to continue from; None to start from the beginning.
            decode_threads: number of threads that decode a batch.
        """
        self._thread = ThreadPoolExecutor(1, "learner")
        self._idle_since: float | None = None  # None before the first update
        preset, device = preset_of(settings), settings.device
        self._feed = BatchFeed(preset, spec, threads=decode_threads, device=device)
        return self._thread.submit(self._begin, settings, spec, state).result()

    def _begin(self, settings: RunSettings, spec: GameSpec, state: Mapping[str, Any] | None) -> int:
        prepare_process(settings.threads)
        preset, seed = preset_of(settings), agent_seed(settings)
        self._learner = R2D2Learner(preset, spec, seed=seed, device=settings.device)
        if state is not None:
            self._learner.load_state_dict(state)
        return self._learner.learner.num_updates

    def update(self, batch: CompressedBatch) -> UpdateReport:
        """Learn from a batch."""
        with self._feed.decoded(batch) as decoded:
            return self._thread.submit(self._update, decoded).result()

    def _update(self, batch: SequenceBatch) -> UpdateReport:
        begun = time.monotonic()
        waited = 0.0 if self._idle_since is None else begun - self._idle_since
        learned = self._learner.update(batch)
        learned.measured.update(self._learner.measurements())
        self._idle_since = time.monotonic()
        num_updates = self._learner.learner.num_updates
        return UpdateReport(num_updates, learned, waited, self._idle_since - begun)

    def weights(self) -> tuple[int, Weights]:
        """The number of updates, and the network after them."""
        return self._thread.submit(self._weights).result()

    def _weights(self) -> tuple[int, Weights]:
        begun = time.monotonic()
        found = self._learner.learner.num_updates, self._learner.weights()
        if self._idle_since is not None:
            self._idle_since += time.monotonic() - begun  # it did not wait meanwhile
        return found

    def state(self) -> dict[str, Any]:
        """Everything its future depends on."""
        return self._thread.submit(self._learner.state_dict).result()


class EvaluatorRole:
    """Plays whole games with given weights; nothing is learned from them."""

    def begin(self, settings: RunSettings, spec: GameSpec) -> None:
        """Create the network, before the first evaluation."""
        self._settings = settings
        self._network = network_copy(settings, spec)

    def evaluate(self, number: int, weights: Weights) -> Evaluation:
        """The evaluation with this number, using these weights."""
        self._network.follow(weights)
        found = evaluate_agent(self._settings, self._network, number)
        assert found is not None  # it cannot be abandoned
        return found


def _own(state: Any) -> Any:
    """A nested state with copied arrays: those of other processes are read-only."""
    if isinstance(state, np.ndarray):
        return state.copy()
    if isinstance(state, Mapping):
        return {key: _own(value) for key, value in state.items()}
    if type(state) in (list, tuple):
        return type(state)(_own(value) for value in state)
    return state


def _again(seed: int, incarnation: int) -> int:
    return seed if incarnation == 0 else role_seed(seed, "incarnation", incarnation)
