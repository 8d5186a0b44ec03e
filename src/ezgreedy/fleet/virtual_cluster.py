"""Machines in virtual time: who has which CPU, and who waits for one.

As on Ray, reserved places stay reserved while their processes are restarted, those that are lost
with a machine are looked for together, and whoever else waits takes a CPU the moment it is free.
"""

from collections.abc import Callable, Hashable, Sequence
from typing import Any

from ezgreedy.fleet.places import Places

BOUNDLESS = 10**9  # CPUs of a machine that holds everybody

Placed = Callable[[str], None]  # called with the machine


class VirtualCluster:
    """CPUs of machines that may be lost and come back.

    Args:
        cpus: CPUs of each machine; none for a single machine that holds everybody.
    """

    def __init__(self, cpus: Sequence[int] = ()) -> None:
        self._cpus = {f"machine {n}": each for n, each in enumerate(cpus or [BOUNDLESS])}
        self._alive = dict.fromkeys(self._cpus)
        self._taken: dict[Hashable, str] = {}  # machines by claimant
        self._waiting: dict[Hashable, Placed] = {}
        self._reservations: list[VirtualReservation] = []

    def places(self) -> Places:
        """Its places."""
        machines = {name: self._cpus[name] for name in self._alive}
        return Places(machines, sum(map(self.num_free, self._alive)))

    def num_free(self, machine: str) -> int:
        """Number of free CPUs of a machine."""
        return self._cpus[machine] - sum(name == machine for name in self._taken.values())

    def claim(self, claimant: Hashable, placed: Placed) -> None:
        """Ask for a CPU.

        Args:
            claimant: who gets it.
            placed: called when it does.
        """
        self._waiting[claimant] = placed
        self._serve()

    def release(self, claimant: Hashable) -> None:
        """Give a CPU back, or no longer wait for one."""
        self._waiting.pop(claimant, None)
        self._taken.pop(claimant, None)
        self._serve()

    def reserve(self, number: int) -> "VirtualReservation":
        """Places that are kept free; as many as possible on one machine.

        Args:
            number: number of places.
        """
        reservation = VirtualReservation(number)
        self._reservations.append(reservation)
        self._serve()
        return reservation

    def lose(self, machine: str) -> None:
        """Have a machine leave with everybody on it."""
        del self._alive[machine]
        self._taken = {who: name for who, name in self._taken.items() if name != machine}
        for reservation in self._reservations:
            reservation.lose(machine)
        self._serve()

    def bring_back(self, machine: str) -> None:
        """Have a machine return, empty."""
        self._alive[machine] = None
        self._serve()

    def _serve(self) -> None:
        for claimant, placed in list(self._waiting.items()):
            machine = self._roomiest()
            if not self.num_free(machine):
                break
            del self._waiting[claimant]
            self._taken[claimant] = machine
            placed(machine)
        for reservation in self._reservations:
            if 0 < reservation.num_lacking <= self.places().free:
                self._place(reservation)

    def _place(self, reservation: "VirtualReservation") -> None:
        machine = self._roomiest()
        for number in reservation.lacking:
            machine = machine if self.num_free(machine) else self._roomiest()
            self._taken[reservation, number] = machine
            reservation.place(number, machine)

    def _roomiest(self) -> str:
        return max(self._alive, key=self.num_free)


class VirtualReservation:
    """Places that are kept free for processes.

    Args:
        number: number of places.
    """

    def __init__(self, number: int) -> None:
        self._machines: list[str | None] = [None] * number
        self._waiting: dict[int, Placed] = {}

    @property
    def lacking(self) -> list[int]:
        """Numbers of the places that have no machine."""
        return [number for number, machine in enumerate(self._machines) if machine is None]

    @property
    def num_lacking(self) -> int:
        """Number of places that have no machine."""
        return len(self.lacking)

    def options(self, number: int) -> dict[str, Any]:
        """Options that launch a process in the place with this number."""
        return {"place": (self, number)}

    def enter(self, number: int, placed: Placed) -> None:
        """Have a process started in a place, as soon as that has a machine."""
        machine = self._machines[number]
        if machine is None:
            self._waiting[number] = placed
        else:
            placed(machine)

    def place(self, number: int, machine: str) -> None:
        """Give a machine to a place."""
        self._machines[number] = machine
        if number in self._waiting:
            self._waiting.pop(number)(machine)

    def lose(self, machine: str) -> None:
        """Take the machine from all places that are on it."""
        self._machines = [None if name == machine else name for name in self._machines]
