"""How is a run spread over processes? Only the total number of lanes is part of its identity.

ε, exploration and environments depend on the number of a lane within the fleet. The number of
processes changes when things happen, but not how each lane explores.
"""

from dataclasses import dataclass, replace

from ezgreedy import requirements as require
from ezgreedy.agents.r2d2.actor import Whereabouts

# Reliability over speed: measured on one machine, a killed process is back after about 2 seconds.
HEARTBEAT_SECONDS = 5.0
# With the time until the next check, a process that hangs is found within half a minute.
SILENT_SECONDS = 20.0


@dataclass(frozen=True)
class Patience:
    """How long to wait for processes, in seconds, and how many crashes to tolerate.

    Args:
        heartbeat: time between two checks that a process is alive.
        silence: a process that has not answered for this long is killed and restarted.
        call: a process that has worked on one call for this long is killed and restarted.
        start: time that a process may take to start, environments and networks included.
        most_crashes: crashes of one process tolerated within `crash_period`; one more and the run
            fails.
        crash_period: see `most_crashes`.
    """

    heartbeat: float = HEARTBEAT_SECONDS
    silence: float = SILENT_SECONDS
    call: float = 600.0
    start: float = 180.0
    most_crashes: int = 5
    crash_period: float = 600.0

    def __post_init__(self) -> None:
        for name in ("heartbeat", "silence", "call", "start", "crash_period"):
            if not require.number(name, getattr(self, name), 0.0) > 0.0:
                raise require.refuse(name, "be positive", getattr(self, name))
        if self.silence <= self.heartbeat:
            rule = f"be more than heartbeat, which is {self.heartbeat:g}"
            raise require.refuse("silence", rule, self.silence)
        require.integer("most_crashes", self.most_crashes, least=0)


@dataclass(frozen=True)
class FleetSettings:
    """Numbers and resources of the processes.

    Args:
        actors: number of processes that play; lanes are divided evenly.
        shards: number of replay memory processes.
        evaluators: number of processes that evaluate; each makes one evaluation at a time.
        decode_threads: number of threads of the learner that decode batches while it computes.
        spread_shards: whether memories are spread over the machines of a cluster; otherwise they
            are with the learner, if its machine has the CPUs.
        evaluation_seconds: least time between the starts of two evaluations; None for all that are
            due by frames.
        address: HOST:PORT of a Ray cluster; None to start one on this machine.
        object_store_megabytes: shared memory of a local Ray for data in transit; None for as much
            as the run needs.
        patience: time limits for processes.
    """

    actors: int = 2
    shards: int = 1
    evaluators: int = 1
    decode_threads: int = 2
    spread_shards: bool = False
    evaluation_seconds: float | None = None
    address: str | None = None
    object_store_megabytes: int | None = None
    patience: Patience = Patience()

    def __post_init__(self) -> None:
        require.integer("actors", self.actors, least=1)
        require.integer("shards", self.shards, least=1)
        require.integer("evaluators", self.evaluators, least=1)
        require.integer("decode_threads", self.decode_threads, least=1)
        require.flag("spread_shards", self.spread_shards)
        if self.evaluation_seconds is not None:
            require.number("evaluation_seconds", self.evaluation_seconds, 0.0)
        if self.object_store_megabytes is not None:
            require.integer("object_store_megabytes", self.object_store_megabytes, least=1)
        if self.shards > self.actors:
            # All windows of an actor go to one shard, so further shards would stay empty.
            rule = f"be at most {self.actors}, the number of actors"
            raise require.refuse("shards", rule, self.shards)

    @property
    def num_processes(self) -> int:
        """Number of processes: actors, shards, the learner and evaluators."""
        return self.actors + self.shards + 1 + self.evaluators

    @property
    def num_others(self) -> int:
        """Number of processes that are not actors."""
        return self.num_processes - self.actors

    def require_room(self, num_cpus: int, where: str) -> None:
        """Refuse a cluster that has no room for all others and as many actors as shards.

        Args:
            num_cpus: CPUs of the cluster, one for each process.
            where: what it is called.
        """
        least = self.num_others + self.shards
        if num_cpus < least:
            mine = f"{_count(self.shards, 'shard')} and {_count(self.evaluators, 'evaluator')}"
            actors = _count(self.shards, "actor")
            rule = f"leave room for the learner and {actors}, {least} CPUs in all"
            raise ValueError(f"{mine} must {rule}; {where} has {_count(num_cpus, 'CPU')}")

    def fitting(self, num_cpus: int) -> "FleetSettings":
        """The same fleet with as many of its actors as there is room for.

        Args:
            num_cpus: number of CPUs; see `require_room` for the least.
        """
        room = max(num_cpus - self.num_others, self.shards)
        return replace(self, actors=min(self.actors, room))


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}" + ("" if number == 1 else "s")


def spread(lanes: int, actors: int) -> list[Whereabouts]:
    """Lanes of each actor: consecutive, and divided as evenly as possible.

    Args:
        lanes: number of lanes of the fleet.
        actors: number of actors.
    """
    require.integer("lanes", lanes, least=1)
    if require.integer("actors", actors, least=1) > lanes:
        raise require.refuse("actors", f"be at most {lanes}, the number of lanes", actors)
    each, more = divmod(lanes, actors)
    sizes = [each + (actor < more) for actor in range(actors)]
    return [Whereabouts(size, sum(sizes[:actor]), fleet=lanes) for actor, size in enumerate(sizes)]
