"""What each process of a fleet does. The roles know nothing of Ray, and work without it.

They are the same actor, memory and learner as in one process. A role is made empty and begins when
it is told to, so that a process that was started again is told again; what it knew is gone but for
what it is given.
"""

import shutil
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ezgreedy.agents.agent import Surface
from ezgreedy.agents.r2d2 import R2D2Policy, bonuses
from ezgreedy.agents.sequence_actor import SequenceActor, Whereabouts, codec, network_settings
from ezgreedy.agents.sequence_presets import SequencePreset
from ezgreedy.atari.lanes import Lanes
from ezgreedy.fleet.transport import Packed, pack, unpack
from ezgreedy.learning import tensor_states
from ezgreedy.learning.gradients import NotFiniteError
from ezgreedy.learning.sequence_learner import SequenceLearner
from ezgreedy.learning.tensor_states import as_arrays, as_tensors
from ezgreedy.replay.sequence_batch import SequenceBatch
from ezgreedy.replay.sequence_memory import SequenceMemory
from ezgreedy.requirements import FloatArray, IntArray
from ezgreedy.running.checkpoints import Checkpoints
from ezgreedy.running.evaluation import evaluate
from ezgreedy.running.own_process import prepare_process
from ezgreedy.running.settings import RunSettings
from ezgreedy.running.training import surface as surface_of
from ezgreedy.seeding import role_seed

Weights = dict[str, NDArray[Any]]
# Two that checkpoints name, and as many that may have been saved for one that never came to be.
KEPT_SNAPSHOTS = 4


class Key(NamedTuple):
    """What a delivery of windows is recognised by, should it come twice."""

    actor: int
    incarnation: int
    number: int


class PlayReport(NamedTuple):
    """What a stretch of play came to."""

    key: Key
    version: int  # of the weights that acted
    frames: int
    steps: int
    explored: int  # steps that were
    returns: list[float]  # of episodes that finished
    windows: int
    seconds: float


class ShardReport(NamedTuple):
    """How a memory is after something was done to it."""

    kept: int  # windows of the last delivery that were kept
    duplicates: int  # deliveries that had come before, so far
    windows: int  # that it holds
    total_priority: float


class UpdateReport(NamedTuple):
    """What came of one update."""

    num_updates: int
    slots: IntArray
    generations: IntArray
    priorities: FloatArray
    measured: dict[str, float]
    waited: float  # seconds since the update before
    seconds: float


def agent_seed(settings: RunSettings) -> int:
    """What all of an agent's streams come from: the same as in one process."""
    return settings.role_seed("agent")


def preset_of(settings: RunSettings) -> SequencePreset:
    """The agent, which is one that learns from sequences."""
    assert isinstance(settings.agent, SequencePreset)
    return settings.agent


def make_learner(settings: RunSettings, surface: Surface, device: str) -> SequenceLearner:
    """The learner of a run, as it is at the beginning."""
    preset = preset_of(settings)
    prepare_process(settings.threads)
    return SequenceLearner(
        network_settings(preset, surface),
        preset.learner,
        preset.returns,
        seed=role_seed(agent_seed(settings), "learner"),
        device=device,
    )


class ActorRole:
    """Plays some lanes of the fleet, with weights that come now and then."""

    def begin(
        self,
        settings: RunSettings,
        number: int,
        where: Whereabouts,
        incarnation: int,
        state: Mapping[str, Any] | None,
    ) -> None:
        """Play from a state on, or from the beginning.

        Args:
            settings: of the run.
            number: which actor this is.
            where: which lanes are its own.
            incarnation: how often these lanes have begun anew. Every time has streams of its own,
                or what was lost would be played again; the first has those of a single process.
            state: to go on from.
        """
        self._key = Key(number, incarnation, 0)
        environments = _again(settings.role_seed("environments"), incarnation)
        first_lane = where.first_lane
        protocol = settings.protocol
        self._lanes = Lanes(
            settings.game, where.lanes, protocol, seed=environments, first_lane=first_lane
        )
        surface = surface_of(self._lanes)
        # Actors compute on processors; the one device is the learner's.
        self._learner = make_learner(settings, surface, "cpu")
        self._version = 0
        self._actor = SequenceActor(
            preset_of(settings),
            surface,
            self._learner.values,
            where,
            seed=_again(agent_seed(settings), incarnation),
        )
        self._settings = settings
        if state is None:
            self._observations = self._lanes.reset()
            self._starts = np.ones(where.lanes, dtype=np.bool_)
            self._counted = np.zeros(where.lanes, dtype=np.int64)
        else:
            self._load(state)

    def play(
        self, num_steps: int, version: int, weights: Weights | None
    ) -> tuple[PlayReport, Packed | None]:
        """So many steps of every lane; a report, and the windows that they completed.

        Args:
            num_steps: how many.
            version: of the weights to act with.
            weights: None if they have come before.
        """
        begun = time.monotonic()
        if weights is not None:
            self._follow(version, weights)
        frames, returns, windows = 0, [], []
        before = self._actor.explorer.counters
        before_steps, before_explored = before.steps, before.explored
        for _ in range(num_steps):
            steps = self._lanes.step(self._actor.act(self._observations, self._starts))
            if not np.isfinite(steps.rewards).all():
                raise NotFiniteError("rewards", version, self._settings.seed)
            windows += self._actor.observe(steps)
            frames += int((steps.episode_frames - self._counted).sum())
            returns += steps.episode_returns[steps.finished].tolist()
            self._counted = np.where(steps.finished, 0, steps.episode_frames)
            self._observations, self._starts = steps.observations, steps.finished
        self._key = self._key._replace(number=self._key.number + 1)
        counters = self._actor.explorer.counters
        report = PlayReport(
            key=self._key,
            version=self._version,
            frames=frames,
            steps=counters.steps - before_steps,
            explored=counters.explored - before_explored,
            returns=returns,
            windows=len(windows),
            seconds=time.monotonic() - begun,
        )
        # Episodes of another incarnation are other episodes, whatever their number.
        offset = self._key.incarnation << 32
        windows = [window._replace(episode=window.episode + offset) for window in windows]
        return report, pack(windows) if windows else None

    def state(self) -> dict[str, Any]:
        """Everything that its future depends on but the weights."""
        return {
            "number": self._key.number,
            "actor": self._actor.state_dict(),
            "lanes": self._lanes.state_dict(),
            "observations": self._observations,
            "starts": self._starts,
            "counted": self._counted,
        }

    def _load(self, state: Mapping[str, Any]) -> None:
        state = _own(state)
        self._key = self._key._replace(number=int(state["number"]))
        self._actor.load_state_dict(state["actor"])
        self._lanes.load_state_dict(state["lanes"])
        self._observations = state["observations"]
        self._starts = state["starts"]
        self._counted = state["counted"]

    def _follow(self, version: int, weights: Weights) -> None:
        load_weights(self._learner, weights)
        self._version = version


class ShardRole:
    """Remembers the windows of some actors."""

    def begin(
        self,
        settings: RunSettings,
        surface: Surface,
        number: int,
        num_shards: int,
        directory: str,
        snapshot: int | None,
    ) -> tuple[ShardReport, str | None]:
        """Remember what a snapshot holds, or nothing yet.

        Args:
            settings: of the run.
            surface: what is played.
            number: which shard this is.
            num_shards: of how many.
            directory: where its snapshots are.
            snapshot: which of them; None for none, and to remove those that are there.

        Returns:
            A report, and a sentence if the snapshot could not be used.
        """
        preset = preset_of(settings)
        seed = role_seed(agent_seed(settings), "replay", number)
        stride = preset.stride
        self._memory = SequenceMemory(
            max(preset.replay_capacity // num_shards, stride),
            codec(preset, surface),
            preset.sequences,
            network_settings(preset, surface).state_shape,
            preset.priority_exponent,
            preset.importance_exponent,
            rng=np.random.default_rng(seed),
        )
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
        """Keep the windows of a delivery, unless it has come before."""
        key = Key(*key)
        if key.number <= self._seen.get(key[:2], 0):
            self._duplicates += 1
            return self._report(0)
        self._seen[key[:2]] = key.number
        return self._report(sum(self._memory.add(window) is not None for window in unpack(packed)))

    def sample(self, batch_size: int) -> tuple[int, SequenceBatch]:
        """How many windows there are, and a batch of them."""
        return len(self._memory), self._memory.sample(batch_size)

    def update_priorities(
        self, slots: IntArray, generations: IntArray, priorities: FloatArray
    ) -> ShardReport:
        """Take back what was learned from a batch."""
        self._memory.update_priorities(slots, generations, priorities)
        return self._report(0)

    def save(self, snapshot: int) -> None:
        """Bring everything to the disk, under a number; only what is new is written."""
        seen = [[*key, number] for key, number in self._seen.items()]
        state = {"memory": self._memory.state_dict(), "seen": seen}
        self._checkpoints.save(snapshot, state)

    def _restore(self, snapshot: int) -> str | None:
        try:
            loaded = self._checkpoints.load(snapshot)
        except ValueError as error:
            return f"a memory begins empty: {error}"
        if loaded is None or loaded.step != snapshot:
            return f"a memory begins empty: snapshot {snapshot} is not whole"
        self._memory.load_state_dict(loaded.state["memory"])
        self._seen = {
            (int(actor), int(incarnation)): int(number)
            for actor, incarnation, number in loaded.state["seen"]
        }
        return None

    def _report(self, kept: int) -> ShardReport:
        memory = self._memory
        return ShardReport(kept, self._duplicates, len(memory), memory.total_priority)


class LearnerRole:
    """Learns from batches, and tells what it has learned."""

    def begin(
        self, settings: RunSettings, surface: Surface, state: Mapping[str, Any] | None
    ) -> int:
        """Learn from a state on, or from the beginning; how many updates it has made."""
        self._preset = preset_of(settings)
        self._learner = make_learner(settings, surface, settings.device)
        self._bonuses = bonuses(self._preset, surface, agent_seed(settings), settings.device)
        if state is not None:
            self._learner.load_state_dict(as_tensors(state["learner"]))
            for bonus, saved in zip(self._bonuses, state["bonuses"], strict=True):
                bonus.load_state_dict(as_tensors(saved))
        self._last_end: float | None = None
        return self._learner.num_updates

    def update(self, batch: SequenceBatch) -> UpdateReport:
        """Learn from a batch."""
        begun = time.monotonic()
        waited = 0.0 if self._last_end is None else begun - self._last_end
        measured: dict[str, float] = {}
        for bonus in self._bonuses:
            batch = bonus(batch)
            is_trained = batch.is_trained(self._preset.learner.burn_in)
            measured["bonus"] = float((batch.rewards - batch.inputs)[is_trained].mean())
            measured |= bonus.measurements()
        update = self._learner.update(batch)
        measured |= {"loss": update.loss, "gradient_norm": update.gradient_norm}
        self._last_end = time.monotonic()
        return UpdateReport(
            self._learner.num_updates,
            np.array(batch.slots),
            np.array(batch.generations),
            update.priorities,
            measured,
            waited,
            self._last_end - begun,
        )

    def weights(self) -> tuple[int, Weights]:
        """How many updates were made, and the network after them."""
        online: Weights = as_arrays(tensor_states.copied(dict(self._learner.online.state_dict())))
        return self._learner.num_updates, online

    def state(self) -> dict[str, Any]:
        """Everything that its future depends on."""
        return {
            "learner": as_arrays(self._learner.state_dict()),
            "bonuses": [as_arrays(bonus.state_dict()) for bonus in self._bonuses],
        }


class EvaluatorRole:
    """Plays whole games with weights that it is given; what it sees is never learned from."""

    def begin(self, settings: RunSettings, surface: Surface) -> None:
        """Be ready."""
        self._settings = settings
        self._learner = make_learner(settings, surface, "cpu")

    def evaluate(self, number: int, weights: Weights) -> dict[str, Any]:
        """The evaluation of this number, as a line of results without frames."""
        settings = self._settings
        load_weights(self._learner, weights)
        seed = settings.role_seed("evaluation", number)
        num_lanes = settings.evaluation.lanes
        lanes = Lanes(settings.game, num_lanes, settings.protocol, seed=seed)
        epsilon = preset_of(settings).evaluation_epsilon
        policy = R2D2Policy(self._learner, num_lanes, seed, epsilon)
        found = evaluate(policy, lanes, settings.evaluation)
        assert found is not None
        return {"kind": "evaluation", **found.record()}


def load_weights(learner: SequenceLearner, weights: Weights) -> None:
    """Let a learner's network be that of another."""
    tensor_states.copy_into(dict(learner.online.state_dict()), as_tensors(weights))


def _own(state: Any) -> Any:
    """A nested state with arrays of its own: those of other processes cannot be written to."""
    if isinstance(state, np.ndarray):
        return state.copy()
    if isinstance(state, Mapping):
        return {key: _own(value) for key, value in state.items()}
    if type(state) in (list, tuple):
        return type(state)(_own(value) for value in state)
    return state


def _again(seed: int, incarnation: int) -> int:
    return seed if incarnation == 0 else role_seed(seed, "incarnation", incarnation)
