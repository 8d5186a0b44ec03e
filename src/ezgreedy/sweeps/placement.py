"""Which resources does a run need, and which machines of a Ray cluster have them?

Ray would wait forever for a machine that is large enough. Instead, a run that fits nowhere is
refused, with the resources it asked for and those available.
"""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from ezgreedy import requirements as require
from ezgreedy.agents.run_settings import RunSettings
from ezgreedy.runs.memory import memory_bytes
from ezgreedy.units import size

LEAST_SHARE = 0.001  # Ray counts in ten-thousandths
MOST_CPUS = 4096
MOST_GPUS = 64
GIGABYTE = 1_000_000_000


class Demand(NamedTuple):
    """Resources that a run needs or a machine has."""

    cpus: float
    memory: int  # bytes
    gpus: float

    def __str__(self) -> str:
        return f"{self.cpus:g} CPUs, {size(self.memory)} of memory and {self.gpus:g} GPUs"

    def times_within(self, other: "Demand") -> int:
        """Number of these that fit into another."""
        pairs = [(mine, its) for mine, its in zip(self, other, strict=True) if mine > 0]
        return min((math.floor(its / mine + 1e-9) for mine, its in pairs), default=0)


@dataclass(frozen=True)
class Share:
    """Resources of each run of a sweep, as far as the user chose them.

    Args:
        cpus: number of processors; None for one per thread of the run.
        gigabytes: memory in gigabytes; None for the forecast of a run with a full replay.
        gpus: number of GPUs, a fraction if several runs share one; None for one per run with device
            cuda.
    """

    cpus: float | None = None
    gigabytes: float | None = None
    gpus: float | None = None

    def __post_init__(self) -> None:
        if self.cpus is not None:
            require.number("--cpus-per-run", self.cpus, LEAST_SHARE, MOST_CPUS)
        if self.gigabytes is not None:
            require.number("--memory-per-run", self.gigabytes, LEAST_SHARE)
        if self.gpus is not None and self.gpus != 0.0:
            require.number("--gpus-per-run", self.gpus, LEAST_SHARE, MOST_GPUS)
            if self.gpus > 1.0 and self.gpus != int(self.gpus):
                raise require.refuse("--gpus-per-run", "be a whole number above 1", self.gpus)

    def of(self, settings: RunSettings, frame_shape: tuple[int, ...]) -> Demand:
        """Resources of a run with these settings."""
        needs_gpu = settings.device == "cuda"
        gpus = float(needs_gpu) if self.gpus is None else self.gpus
        if needs_gpu and gpus == 0.0:
            raise require.refuse("--gpus-per-run", "be positive if device is cuda", gpus)
        memory = (
            memory_bytes(settings, frame_shape)
            if self.gigabytes is None
            else int(self.gigabytes * GIGABYTE)
        )
        return Demand(float(settings.threads) if self.cpus is None else self.cpus, memory, gpus)


class Node(NamedTuple):
    """A machine of a cluster."""

    id: str
    host: str
    has: Demand


def nodes() -> list[Node]:
    """The current machines of the cluster that this process is connected to."""
    import ray

    return [_node(told) for told in ray.nodes() if told["Alive"]]


def require_place(demands: Iterable[Demand], there: Sequence[Node]) -> None:
    """Refuses runs that fit on no machine, even an idle one."""
    for demand in sorted(set(demands), reverse=True):
        lack = lacking(demand, there)
        if lack:
            options = "--cpus-per-run, --memory-per-run and --gpus-per-run"
            raise ValueError(f"{options} must fit on one machine of the cluster; {lack}")


def lacking(demand: Demand, there: Sequence[Node]) -> str:
    """Why this fits on no machine; "" if it does fit."""
    if any(demand.times_within(node.has) for node in there):
        return ""
    if not there:
        return f"a run asks for {demand}, and the cluster has no machine"
    largest = max(there, key=lambda node: (_num_met(demand, node.has), node.has))
    of_how_many = f"the largest of {len(there)}" if len(there) > 1 else "the only one"
    return f"a run asks for {demand}; {of_how_many}, {largest.host}, has {largest.has}"


def num_places(demand: Demand, there: Sequence[Node]) -> int:
    """Number of such runs that fit on the cluster at once."""
    return sum(demand.times_within(node.has) for node in there)


def _num_met(demand: Demand, has: Demand) -> int:
    return sum(asked <= its for asked, its in zip(demand, has, strict=True))


def _node(told: dict[str, Any]) -> Node:
    has = told["Resources"]
    demand = Demand(has.get("CPU", 0.0), int(has.get("memory", 0)), has.get("GPU", 0.0))
    return Node(told["NodeID"], told["NodeManagerHostname"], demand)
