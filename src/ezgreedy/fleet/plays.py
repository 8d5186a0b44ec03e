"""Calls to play: which actors are free, and when they may go on.

A call gets the newest weights when it is made. If calls are short, an actor has a second one
waiting, so that it need not wait for the coordinator between two; the age of weights counts the
steps of both. Actors that may be asked wait in a queue; nobody looks at the others.
"""

from typing import Any

from ezgreedy.agents.means import Explored
from ezgreedy.fleet.deliveries import Deliveries
from ezgreedy.fleet.membership import Membership
from ezgreedy.fleet.roles import PlayReport
from ezgreedy.fleet.status import Status
from ezgreedy.fleet.weights import Allowance, PublishedWeights
from ezgreedy.replay.limiter import SamplesPerInsert
from ezgreedy.runs.ledger import Ledger

MOST_DELIVERIES_PER_ACTOR = 2  # beyond these, play waits for the memories
# The limiter may let all actors play at the same moment. Asking a thousand takes half a second, in
# which the learner must not run out of batches.
MOST_CALLS_PER_TURN = 32


class Plays:
    """The actors' play, requested while insertions are not ahead of samples.

    Args:
        membership: the processes.
        weights: weights to play with.
        deliveries: where windows go.
        limiter: limiter of insertions.
        ledger: counter of frames.
        status: counter of calls.
    """

    def __init__(
        self,
        membership: Membership,
        weights: PublishedWeights,
        deliveries: Deliveries,
        limiter: SamplesPerInsert,
        ledger: Ledger,
        status: Status,
    ) -> None:
        self._membership, self._weights, self._deliveries = membership, weights, deliveries
        self._limiter, self._ledger, self._status = limiter, ledger, status
        self._frames_per_step = membership.settings.protocol.frame_skip
        self._most_deliveries = MOST_DELIVERIES_PER_ACTOR * membership.fleet.actors
        self._free: dict[int, None] = {}  # numbers of actors that may be asked, the next one first
        self._num_calls = [0] * membership.fleet.actors  # in flight
        self._starved: list[int] = []  # those that wait for newer weights
        self._explored = Explored(0, 0)  # since it was last taken
        weights.has_come = self._feed

    def take_explored(self) -> Explored:
        """How much was explored since the last call."""
        explored, self._explored = self._explored, Explored(0, 0)
        return explored

    def begin(self, number: int) -> None:
        """Let an actor play that has started, or started again.

        Args:
            number: number of the actor.
        """
        self._weights.forget_actor(number)
        self._num_calls[number] = 0
        self._free[number] = None

    def ask(self) -> None:
        """Let the free actors play, as long as the limiter accepts windows."""
        supervisor = self._membership.supervisor
        if self._weights.weights is None:
            return
        num_asked = 0
        while self._free and self._may_play():
            if num_asked == MOST_CALLS_PER_TURN:
                supervisor.has_more = True
                return
            num_asked += 1
            number = next(iter(self._free))
            del self._free[number]
            if not self._membership.actors[number].is_ready:
                continue  # it comes back when it has started again
            if self._num_calls[number] >= self._weights.calls_in_flight:
                continue  # it comes back when one of them has ended
            allowance = self._weights.take(number)
            if allowance is None:
                self._starved.append(number)
            else:
                self._play(number, allowance)

    def _may_play(self) -> bool:
        return len(self._deliveries) < self._most_deliveries and self._limiter.may_insert()

    def _feed(self) -> None:
        """Frees the actors that waited for newer weights."""
        self._free |= dict.fromkeys(self._starved)
        self._starved = []

    def _play(self, number: int, allowance: Allowance) -> None:
        actor = self._membership.actors[number]
        chunks: list[Any] = []
        self._num_calls[number] += 1
        if self._num_calls[number] < self._weights.calls_in_flight:
            self._free[number] = None  # after all others that wait

        def ended() -> None:
            self._weights.give_back(number, allowance.steps)
            if actor.is_ready:
                self._num_calls[number] -= 1
                self._free[number] = None

        def then(report: PlayReport) -> None:
            ended()
            self._ledger.add(report.frames, report.returns)
            self._explored = self._explored.plus(report.explored)
            lag = max(self._membership.num_updates - report.version, 0)
            oldest = (allowance.age + allowance.steps - 1) * self._frames_per_step
            youngest = allowance.age * self._frames_per_step
            self._status.played(report.frames, lag, youngest, oldest)
            if report.windows:
                self._deliveries.add(report.key, chunks[0], report.windows)

        arguments = (allowance.steps, allowance.version, allowance.weights)
        ask = self._membership.supervisor.ask
        chunks += ask(actor, "play", *arguments, then=then, lost=ended, num_returns=2)
