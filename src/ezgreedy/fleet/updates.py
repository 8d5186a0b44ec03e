"""Batches in transit from memories to the learner, and priorities in transit back."""

from typing import Any

import numpy as np

from ezgreedy.agents.means import Mean
from ezgreedy.fleet.membership import Membership
from ezgreedy.fleet.roles import ShardReport, UpdateReport
from ezgreedy.fleet.status import Status
from ezgreedy.replay.limiter import SamplesPerInsert


class Updates:
    """The learner's updates, requested while samples are not ahead of insertions.

    Args:
        membership: the processes.
        limiter: limiter and counter of samples.
        status: counter of updates.
        batch_size: windows in a batch.
        seed: random seed of the choice of memories.
    """

    def __init__(
        self,
        membership: Membership,
        limiter: SamplesPerInsert,
        status: Status,
        batch_size: int,
        seed: int,
    ) -> None:
        self._membership, self._limiter, self._status = membership, limiter, status
        self._batch_size = batch_size
        self.rng = np.random.default_rng(seed)
        self._num_samples = 0  # batches being drawn
        self._num_updates = 0  # batches waiting for the learner or in use by it
        self._means: dict[str, Mean] = {}

    @property
    def num_in_flight(self) -> int:
        """Number of batches being drawn, waiting for the learner or in use by it."""
        return self._num_samples + self._num_updates

    def ask(self, most: int) -> None:
        """Request updates until the learner has enough to do.

        Args:
            most: largest number of batches in transit to the learner or in use by it.
        """
        learner = self._membership.learner
        while (
            learner.is_ready
            and self.num_in_flight < most
            and self._limiter.may_sample(self._batch_size)
        ):
            totals = self._total_priorities()
            if not sum(totals) > 0.0:
                return
            # A batch comes from one memory, drawn in proportion to its priorities. Every window is
            # as likely as in one large memory; weights, relative within a batch, are the same.
            shard = int(self.rng.choice(len(totals), p=np.array(totals) / sum(totals)))
            self._sample(shard)

    def take_means(self) -> dict[str, float]:
        """Means over the updates since the last call."""
        return {name: mean.take() for name, mean in self._means.items() if mean.count}

    def _total_priorities(self) -> list[float]:
        """Total priority of each memory that is ready."""
        pairs = zip(self._membership.reports, self._membership.memories, strict=True)
        return [report.total_priority if memory.is_ready else 0.0 for report, memory in pairs]

    def _sample(self, shard: int) -> None:
        self._limiter.sampled(self._batch_size)
        self._num_samples += 1
        batches: list[Any] = []

        def then(_: int) -> None:
            self._num_samples -= 1
            if self._membership.learner.is_ready:
                self._update(shard, batches[0])

        def lost() -> None:
            self._num_samples -= 1

        memory, ask = self._membership.memories[shard], self._membership.supervisor.ask
        batches += ask(memory, "sample", self._batch_size, then=then, lost=lost, num_returns=2)

    def _update(self, shard: int, batch: Any) -> None:
        memory = self._membership.memories[shard]
        pid = memory.pid

        self._num_updates += 1

        def lost() -> None:
            self._num_updates -= 1

        def then(report: UpdateReport) -> None:
            self._num_updates -= 1
            self._membership.num_updates = report.num_updates
            self._membership.has_updated()
            self._status.updated(report.waited, report.seconds)
            for name, value in report.learned.measured.items():
                self._means.setdefault(name, Mean()).add(value)
            if memory.is_ready and memory.pid == pid:
                self._write_back(shard, report)

        ask = self._membership.supervisor.ask
        ask(self._membership.learner, "update", batch, then=then, lost=lost)

    def _write_back(self, shard: int, report: UpdateReport) -> None:
        def then(answer: ShardReport) -> None:
            self._membership.reports[shard] = answer

        learned, memory = report.learned, self._membership.memories[shard]
        arguments = (learned.slots, learned.generations, learned.priorities)
        self._membership.supervisor.ask(memory, "update_priorities", *arguments, then=then)
