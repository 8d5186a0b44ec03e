"""Windows in transit from actors to memories, until they arrive or are given up."""

from collections import deque
from dataclasses import dataclass
from typing import Any

from ezgreedy.fleet.membership import Membership
from ezgreedy.fleet.roles import Key, ShardReport
from ezgreedy.replay.limiter import SamplesPerInsert

_MOST_ATTEMPTS = 3
_MOST_TOGETHER = 256  # deliveries in one call


@dataclass
class Delivery:
    """Windows to be stored in a memory."""

    key: Key
    chunk: Any  # reference to the windows
    num_windows: int
    num_attempts: int = 0


class Deliveries:
    """Pending deliveries of each memory, oldest first; each gets one call at a time.

    Args:
        membership: the processes.
        limiter: counter of the windows that are kept.
    """

    def __init__(self, membership: Membership, limiter: SamplesPerInsert) -> None:
        self._membership, self._limiter = membership, limiter
        shards = membership.fleet.shards
        self._waiting: list[deque[Delivery]] = [deque() for _ in range(shards)]
        self._num_waiting = 0
        self._sent: list[list[Delivery]] = [[] for _ in range(shards)]
        self.num_windows = 0  # windows of all deliveries so far
        self._is_busy = [False] * shards

    def __len__(self) -> int:
        """Number of deliveries not sent yet."""
        return self._num_waiting

    @property
    def num_windows_in_transit(self) -> int:
        """Number of windows that wait or are on their way."""
        lists = (*self._waiting, *self._sent)
        return sum(delivery.num_windows for deliveries in lists for delivery in deliveries)

    def add(self, key: Key, chunk: Any, num_windows: int) -> None:
        """Deliver windows to the memory of their actor.

        Args:
            key: key that identifies the delivery.
            chunk: a reference to the windows.
            num_windows: number of windows.
        """
        self.num_windows += num_windows
        shard = key.actor % len(self._waiting)
        self._waiting[shard].append(Delivery(key, chunk, num_windows))
        self._num_waiting += 1

    def send(self) -> None:
        """Send what waits for each memory that is free, oldest first, so that it arrives in order.

        A memory may be busy with batches for long, and actors with few lanes deliver few windows;
        therefore what has come together in the meantime goes in one call.
        """
        for memory, waiting in zip(self._membership.memories, self._waiting, strict=True):
            if waiting and memory.is_ready and not self._is_busy[memory.number]:
                self._send(memory.number, self._next(waiting))

    def _next(self, waiting: deque[Delivery]) -> list[Delivery]:
        """Takes the next deliveries for one call; one that was lost goes alone.

        If a delivery was lost because its windows were, the others of that call must not be lost
        with it again.
        """
        together = [waiting.popleft()]
        if not together[0].num_attempts:
            while waiting and len(together) < _MOST_TOGETHER and not waiting[0].num_attempts:
                together.append(waiting.popleft())
        self._num_waiting -= len(together)
        return together

    def _send(self, shard: int, together: list[Delivery]) -> None:
        membership = self._membership
        self._is_busy[shard], self._sent[shard] = True, together
        for delivery in together:
            delivery.num_attempts += 1

        def then(report: ShardReport) -> None:
            self._is_busy[shard], self._sent[shard] = False, []
            membership.reports[shard] = report
            if report.kept:
                self._limiter.inserted(report.kept)

        def lost() -> None:
            # They are sent again; a memory that already has them recognises them. That does not
            # help if the windows were lost with their machine.
            self._is_busy[shard], self._sent[shard] = False, []
            again = [one for one in together if one.num_attempts < _MOST_ATTEMPTS]
            self._waiting[shard].extendleft(reversed(again))
            self._num_waiting += len(again)

        keys = [delivery.key for delivery in together]
        chunks = [delivery.chunk for delivery in together]
        ask = membership.supervisor.ask
        ask(membership.memories[shard], "add_all", keys, *chunks, then=then, lost=lost)
