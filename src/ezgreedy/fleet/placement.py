"""What does a run need of a machine, and which machines of a Ray cluster have it?

Ray would wait for ever for a machine that is large enough. A run that fits nowhere is refused
instead, with what was asked and what there is.
"""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from ezgreedy import requirements as require
from ezgreedy.running.forecast import memory_bytes, size
from ezgreedy.running.settings import RunSettings

LEAST_SHARE = 0.001  # Ray counts in ten-thousandths
MOST_CPUS = 4096
MOST_GPUS = 64
GIGABYTE = 1_000_000_000


class Demand(NamedTuple):
    """What one run needs, or what a machine has."""

    cpus: float
    memory: int  # bytes
    gpus: float

    def __str__(self) -> str:
        return f"{self.cpus:g} CPUs, {size(self.memory)} of memory and {self.gpus:g} GPUs"

    def times_within(self, other: "Demand") -> int:
        """How many of these fit into another."""
        pairs = [(mine, its) for mine, its in zip(self, other, strict=True) if mine > 0]
        return min((math.floor(its / mine + 1e-9) for mine, its in pairs), default=0)


@dataclass(frozen=True)
class Share:
    """What the runs of a sweep may use each, as far as somebody said so.

    Args:
        cpus: processors; None for as many as a run has threads.
        gigabytes: of memory; None for what the forecast says of a run with a full replay.
        gpus: graphics processors, a fraction if several runs share one; None for one for every run
            whose device is cuda.
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
                raise require.refuse("--gpus-per-run", "be whole above 1", self.gpus)

    def of(self, settings: RunSettings, frame_shape: tuple[int, ...]) -> Demand:
        """What a run of these settings is given."""
        needs_gpu = settings.device == "cuda"
        gpus = float(needs_gpu) if self.gpus is None else self.gpus
        if needs_gpu and gpus == 0.0:
            raise require.refuse("--gpus-per-run", "be positive where device is cuda", gpus)
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
    """The machines of the cluster that this process is connected to, as they are now."""
    import ray

    return [_node(told) for told in ray.nodes() if told["Alive"]]


def require_place(demands: Iterable[Demand], there: Sequence[Node]) -> None:
    """Refuses runs that no machine has room for, even if nothing else ran on it."""
    for demand in sorted(set(demands), reverse=True):
        lack = lacking(demand, there)
        if lack:
            options = "--cpus-per-run, --memory-per-run and --gpus-per-run"
            raise ValueError(f"{options} must fit on one machine of the cluster; {lack}")


def lacking(demand: Demand, there: Sequence[Node]) -> str:
    """Why no machine has room for this; "" if one has."""
    if any(demand.times_within(node.has) for node in there):
        return ""
    if not there:
        return f"a run asks for {demand}, and the cluster has no machine"
    largest = max(there, key=lambda node: (_num_met(demand, node.has), node.has))
    of_how_many = f"the largest of {len(there)}" if len(there) > 1 else "the only one"
    return f"a run asks for {demand}; {of_how_many}, {largest.host}, has {largest.has}"


def num_places(demand: Demand, there: Sequence[Node]) -> int:
    """How many such runs a cluster has room for at once."""
    return sum(demand.times_within(node.has) for node in there)


def _num_met(demand: Demand, has: Demand) -> int:
    return sum(asked <= its for asked, its in zip(demand, has, strict=True))


def _node(told: dict[str, Any]) -> Node:
    has = told["Resources"]
    demand = Demand(has.get("CPU", 0.0), int(has.get("memory", 0)), has.get("GPU", 0.0))
    return Node(told["NodeID"], told["NodeManagerHostname"], demand)
