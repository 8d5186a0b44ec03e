"""How a run is spread over processes, which is no part of its identity but for the lanes in all.

ε, exploration and environments belong to the number of a lane within the fleet. How many processes
the lanes are spread over changes when things happen, and nothing about who explores how.
"""

from dataclasses import dataclass

from ezgreedy import requirements as require
from ezgreedy.agents.sequence_actor import Whereabouts

# Reliability over speed: measured on one machine, a killed process is back after some 2 seconds.
HEARTBEAT_SECONDS = 5.0
SILENT_SECONDS = 30.0


@dataclass(frozen=True)
class Patience:
    """How long whom is waited for, in seconds, and how many crashes are borne.

    Args:
        heartbeat: between two questions to a role whether it is alive.
        silence: a role that has not answered for so long is killed and started again.
        call: a role that has been at one task for so long is killed and started again.
        start: for a role to start, environments and networks included.
        most_crashes: of one role within `crash_period`; one more and the run fails.
        crash_period: see there.
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
    """Which processes there are.

    Args:
        actors: processes that play; lanes are dealt out evenly.
        shards: processes that remember.
        address: HOST:PORT of a Ray cluster; None to start one on this machine, for it alone.
        object_store_megabytes: what a Ray started here sets aside for things in transit; None for
            as much as the run needs.
        patience: when processes are given up.
    """

    actors: int = 2
    shards: int = 1
    address: str | None = None
    object_store_megabytes: int | None = None
    patience: Patience = Patience()

    def __post_init__(self) -> None:
        require.integer("actors", self.actors, least=1)
        require.integer("shards", self.shards, least=1)
        if self.object_store_megabytes is not None:
            require.integer("object_store_megabytes", self.object_store_megabytes, least=1)
        if self.shards > self.actors:
            # An actor's windows all go to one shard, so others would stay empty.
            rule = f"be at most {self.actors}, the number of actors"
            raise require.refuse("shards", rule, self.shards)

    @property
    def num_processes(self) -> int:
        """Actors, shards, the learner and the evaluator."""
        return self.actors + self.shards + 2


def spread(lanes: int, actors: int) -> list[Whereabouts]:
    """Which lanes each actor plays: consecutive ones, as evenly as can be.

    Args:
        lanes: of the fleet.
        actors: how many.
    """
    require.integer("lanes", lanes, least=1)
    if require.integer("actors", actors, least=1) > lanes:
        raise require.refuse("actors", f"be at most {lanes}, the number of lanes", actors)
    each, more = divmod(lanes, actors)
    sizes = [each + (actor < more) for actor in range(actors)]
    return [Whereabouts(size, sum(sizes[:actor]), fleet=lanes) for actor, size in enumerate(sizes)]
