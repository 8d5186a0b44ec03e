"""Who is in a fleet, and what each is told when it begins, the first time or again."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from ezgreedy.agents.agent import Surface
from ezgreedy.atari.lanes import Lanes
from ezgreedy.fleet.crew import Crew, Member, recruit
from ezgreedy.fleet.roles import ActorRole, EvaluatorRole, LearnerRole, ShardReport, ShardRole
from ezgreedy.fleet.settings import FleetSettings, spread
from ezgreedy.running.settings import RunSettings
from ezgreedy.running.training import surface


class Staff:
    """The members of a fleet by their roles.

    Args:
        settings: of the run.
        fleet: of its processes.
        directory: where memories keep their snapshots.
    """

    def __init__(self, settings: RunSettings, fleet: FleetSettings, directory: Path) -> None:
        self.settings, self.fleet = settings, fleet
        self.where = spread(settings.lanes, fleet.actors)
        self.surface: Surface = surface(Lanes(settings.game, 1, settings.protocol, seed=0))
        self.crew = Crew(fleet.patience)
        self.notices: list[str] = []
        self.num_updates = 0
        self.reports = [ShardReport(0, 0, 0, 0.0)] * fleet.shards  # the last of each memory
        self.is_poorer = False  # a memory could not find what it had saved
        # What to go on from.
        self.snapshot = 0
        self.learner_state: Mapping[str, Any] | None = None
        self.actor_states: list[Any] = [None] * fleet.actors
        self.has_begun: Callable[[Member], None] = lambda member: None
        self._directory = directory.resolve()

    def recruit(self) -> None:
        """Start all processes; they begin as soon as they answer."""
        num_gpus = 1.0 if self.settings.device == "cuda" else 0.0
        self.actors = [
            self._join(
                f"actor {number}",
                recruit(ActorRole, scheduling_strategy="SPREAD"),
                self._begin_actor,
            )
            for number in range(self.fleet.actors)
        ]
        self.memories = [
            self._join(f"memory {number}", recruit(ShardRole), self._begin_memory)
            for number in range(self.fleet.shards)
        ]
        learner = recruit(LearnerRole, num_gpus=num_gpus)
        self.learner = self._join("the learner", learner, self._begin_learner)
        self.evaluator = self._join("the evaluator", recruit(EvaluatorRole), self._begin_evaluator)

    def _join(self, name: str, handle: Any, begin: Callable[[Member], None]) -> Member:
        return self.crew.join(Member(name, handle, begin))

    def _ask(self, member: Member, *arguments: Any, then: Callable[[Any], None]) -> None:
        if member.dead_pids:
            reason = member.last_reason
            self.notices.append(f"{member.name} was lost and is started again ({reason})")

        def begun(answer: Any) -> None:
            member.is_ready = True
            then(answer)
            self.has_begun(member)

        self.crew.ask(member, "begin", self.settings, *arguments, then=begun)

    def _begin_actor(self, member: Member) -> None:
        number = self.actors.index(member)
        if member.dead_pids:
            member.incarnation += 1
            self.actor_states[number] = None
        state = self.actor_states[number]

        def then(_: None) -> None:
            self.actor_states[number] = None  # it has it now

        self._ask(member, number, self.where[number], member.incarnation, state, then=then)

    def _begin_memory(self, member: Member) -> None:
        number = self.memories.index(member)
        directory = str(self._directory / f"memory-{number}")

        def then(answer: tuple[ShardReport, str | None]) -> None:
            self.reports[number], notice = answer
            if notice:
                self.is_poorer = True
                self.notices.append(f"{member.name}: {notice}")

        place = (number, self.fleet.shards, directory, self.snapshot or None)
        self._ask(member, self.surface, *place, then=then)

    def _begin_learner(self, member: Member) -> None:
        def then(num_updates: int) -> None:
            self.num_updates = num_updates

        self._ask(member, self.surface, self.learner_state, then=then)

    def _begin_evaluator(self, member: Member) -> None:
        self._ask(member, self.surface, then=lambda _: None)
