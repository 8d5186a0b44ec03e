"""Consistent states of all processes, taken while all of them are idle."""

from collections.abc import Callable
from typing import Any

import numpy as np

from ezgreedy.fleet.deliveries import Deliveries
from ezgreedy.fleet.membership import Membership
from ezgreedy.fleet.roles import preset_of
from ezgreedy.fleet.supervision import FleetError

_MOST_SAVED_LANE_BYTES = 256_000_000
_MOST_ATTEMPTS = 3


class Barrier:
    """Lets all processes finish, and then asks for their states.

    Memories are large, so they write themselves to disk as numbered snapshots.

    Args:
        membership: the processes.
        deliveries: deliveries that must arrive first.
        meanwhile: called in every turn while it waits.
    """

    def __init__(
        self, membership: Membership, deliveries: Deliveries, meanwhile: Callable[[], None]
    ) -> None:
        self._membership, self._deliveries, self._meanwhile = membership, deliveries, meanwhile
        self.num_snapshots = 0  # including incomplete ones

    def turn(self) -> None:
        """Send pending deliveries and handle the results that have come back."""
        self._deliveries.send()
        self._membership.turn()

    def gather(self) -> tuple[Any, list[Any]]:
        """States of the learner and the actors; None for actors that are dead or too large."""
        supervisor = self._membership.supervisor
        for _ in range(_MOST_ATTEMPTS):
            while self._deliveries or not self._membership.is_idle:
                self.turn()
                self._meanwhile()
            restarts = supervisor.num_restarts
            learner_state, actor_states = self._ask()
            if restarts == supervisor.num_restarts:
                self._membership.begin_from(learner_state, self.num_snapshots)
                return learner_state, actor_states
        raise FleetError("no moment was found in which all processes lived")

    def learner_state(self) -> Any:
        """State of the learner alone; asked for again if it is lost meanwhile."""
        learner, found = self._membership.learner, list[Any]()
        is_asked = False

        def lost() -> None:
            nonlocal is_asked
            is_asked = False

        while not found:
            if learner.is_ready and not is_asked:
                is_asked = True
                self._membership.supervisor.ask(learner, "state", then=found.append, lost=lost)
            self.turn()
            self._meanwhile()
        return found[0]

    def _ask(self) -> tuple[Any, list[Any]]:
        """States of all processes; not valid if one was lost in the meantime."""
        self.num_snapshots += 1
        membership, ask = self._membership, self._membership.supervisor.ask
        actor_states: list[Any] = [None] * len(membership.actors)
        learner_states: list[Any] = [None]

        def keep(states: list[Any], number: int) -> Callable[[Any], None]:
            return lambda state: states.__setitem__(number, state)

        is_small = self._lane_bytes <= _MOST_SAVED_LANE_BYTES
        for number, actor in enumerate(membership.actors if is_small else []):
            if actor.is_ready:
                ask(actor, "state", then=keep(actor_states, number))
        ask(membership.learner, "state", then=keep(learner_states, 0))
        for memory in membership.memories:
            ask(memory, "save", self.num_snapshots, then=lambda _: None)
        restarts = membership.supervisor.num_restarts
        while not membership.is_idle and membership.supervisor.num_restarts == restarts:
            self.turn()
            self._meanwhile()
        return learner_states[0], actor_states

    @property
    def _lane_bytes(self) -> int:
        """Size of the open blocks: a stride of observations for each lane."""
        spec, settings = self._membership.spec, self._membership.settings
        each = int(np.prod(spec.observation_shape)) * spec.frame_dtype.itemsize
        return settings.lanes * (preset_of(settings).stride + 1) * each
