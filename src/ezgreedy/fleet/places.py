"""Where is there room for the processes of a fleet? CPUs of a cluster, and those reserved in it."""

import socket
import time
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, Protocol

SECONDS_UNTIL_FREE = 20.0
_ANSWER_SECONDS = 1.0


class Places(NamedTuple):
    """CPUs of the cluster that this process is connected to.

    Args:
        machines: CPUs of each machine that is alive, by its id.
        free: number of processes for which there is a free CPU.
        with_gpus: ids of the machines that have GPUs.
    """

    machines: Mapping[str, int]
    free: int
    with_gpus: frozenset[str] = frozenset()

    @property
    def cpus(self) -> int:
        """CPUs of all machines, free or not."""
        return sum(self.machines.values())

    def __str__(self) -> str:
        number = len(self.machines)
        on = "1 machine" if number == 1 else f"{number} machines"
        return f"the cluster has {self.cpus} on {on}, {self.free} of them free"


def places() -> Places:
    """The places of the cluster; waits for as long as its head does not answer."""
    import ray

    alive = [told for told in ray.nodes() if told["Alive"]]
    machines = {told["NodeID"]: int(told["Resources"].get("CPU", 0)) for told in alive}
    with_gpus = [told["NodeID"] for told in alive if told["Resources"].get("GPU", 0) > 0]
    free = int(ray.available_resources().get("CPU", 0.0))
    return Places(machines, free, frozenset(with_gpus))


def cpus_for(num_processes: int, seconds: float = SECONDS_UNTIL_FREE) -> int:
    """Number of CPUs that are free for this many processes.

    If the cluster has enough of them but they are in use, waits for a while: the processes of
    another run may just be ending.

    Args:
        num_processes: number of CPUs wanted.
        seconds: longest time to wait.
    """
    end = time.monotonic() + seconds
    while True:
        there = places()
        if there.free >= num_processes or there.free == there.cpus or time.monotonic() > end:
            return there.free
        time.sleep(0.2)


def head_address() -> str:
    """HOST:PORT of the head of the cluster that this process is connected to."""
    import ray

    return str(ray.get_runtime_context().gcs_address)


def answers(address: str) -> bool:
    """Whether something listens at HOST:PORT."""
    host, _, port = address.rpartition(":")
    try:
        socket.create_connection((host, int(port)), timeout=_ANSWER_SECONDS).close()
    except OSError:
        return False
    return True


class Reserved(Protocol):
    """Places that no other process can take: see `Reservation`."""

    def options(self, number: int) -> dict[str, Any]:
        """Options that launch a process in the place with this number."""

    @property
    def num_lacking(self) -> int:
        """Number of places that are not reserved yet, or no longer: their machine is gone."""


class Reservation:
    """Places for processes that Ray keeps free for them while they are restarted.

    If a machine is lost, Ray looks for others; until it has found them, `num_lacking` is positive.

    Args:
        bundles: resources of each place.
        strategy: "PACK" to prefer one machine for all, "SPREAD" to prefer different ones.
    """

    def __init__(self, bundles: Sequence[Mapping[str, float]], strategy: str) -> None:
        from ray.util.placement_group import placement_group

        self._group = placement_group([dict(bundle) for bundle in bundles], strategy=strategy)

    def options(self, number: int) -> dict[str, Any]:
        """Options that launch a process in the place with this number."""
        from ray.util.scheduling_strategies import PlacementGroupSchedulingStrategy

        return {"scheduling_strategy": PlacementGroupSchedulingStrategy(self._group, number)}

    @property
    def num_lacking(self) -> int:
        """Number of places that are not reserved yet, or no longer: their machine is gone."""
        from ray.util.placement_group import placement_group_table

        where = placement_group_table(self._group)["bundles_to_node_id"]
        return sum(not node for node in where.values())
