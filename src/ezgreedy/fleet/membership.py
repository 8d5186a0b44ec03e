"""The processes of a fleet, and the state each gets when it starts or restarts."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from ezgreedy.agents.agent import GameSpec, game_spec
from ezgreedy.agents.run_settings import RunSettings
from ezgreedy.fleet.fleet_settings import FleetSettings, spread
from ezgreedy.fleet.roles import ActorRole, EvaluatorRole, LearnerRole, ShardReport, ShardRole
from ezgreedy.fleet.roster import Roster
from ezgreedy.fleet.supervision import Process, Supervisor
from ezgreedy.games.lanes import Lanes


class Membership:
    """The processes of a fleet by role.

    Args:
        settings: settings of the run.
        fleet: number and kinds of processes.
        directory: directory of the memories' snapshots.
        supervisor: supervisor of the processes; None for Ray's.
    """

    def __init__(
        self,
        settings: RunSettings,
        fleet: FleetSettings,
        directory: Path,
        supervisor: Supervisor | None = None,
    ) -> None:
        self.settings, self.fleet = settings, fleet
        self.where = spread(settings.lanes, fleet.actors)
        self.spec: GameSpec = game_spec(Lanes(settings.game, 1, settings.protocol, seed=0))
        self.supervisor = supervisor or Supervisor(fleet.patience)
        self._notices: list[str] = []
        self.num_updates = 0
        self.reports = [ShardReport(0, 0, 0, 0.0)] * fleet.shards  # last report of each memory
        self.is_poorer = False  # a memory could not restore its snapshot
        # States to start from.
        self._snapshot = 0
        self._learner_state: Mapping[str, Any] | None = None
        self._actor_states: list[Any] = [None] * fleet.actors
        self.has_begun: Callable[[Process], None] = lambda process: None
        self.has_updated: Callable[[], None] = lambda: None  # called after each update
        self.directory = directory.resolve()
        self.supervisor.has_lost = self._note_loss

    def start(self) -> None:
        """Start all processes; they begin work as soon as they answer.

        The learner and the memories are on one machine if it has the CPUs, unless told otherwise:
        batches then need no network. Actors start once all others have places.
        """
        num_gpus = 1.0 if self.settings.device == "cuda" else 0.0
        fleet, launch, reserve = self.fleet, self.supervisor.launch, self.supervisor.reserve
        cpu = {"CPU": 1.0}
        first = cpu | ({"GPU": num_gpus} if num_gpus else {})
        shards = [cpu] * fleet.shards
        together = reserve([first, *([] if fleet.spread_shards else shards)], "PACK")
        memories = reserve(shards, "SPREAD") if fleet.spread_shards else together
        first_memory = 0 if fleet.spread_shards else 1
        apart = reserve([cpu] * fleet.evaluators, "SPREAD")
        learner = launch(LearnerRole, num_gpus=num_gpus, **together.options(0))
        self.learner = self._add("the learner", learner)
        self.memories = [
            self._add(
                "memory", launch(ShardRole, **memories.options(first_memory + number)), number
            )
            for number in range(fleet.shards)
        ]
        evaluators = [launch(EvaluatorRole, **apart.options(n)) for n in range(fleet.evaluators)]
        if fleet.evaluators == 1:
            self.evaluators = [self._add("the evaluator", evaluators[0])]
        else:
            self.evaluators = [self._add("evaluator", h, n) for n, h in enumerate(evaluators)]
        self.actors = [self._add("actor", None, number) for number in range(fleet.actors)]
        self._roster = Roster(
            self.supervisor,
            self.actors,
            tuple(dict.fromkeys((together, memories, apart))),
            lambda: launch(ActorRole, scheduling_strategy="SPREAD"),
            self.say,
            needs_gpu=num_gpus > 0.0,
        )

    def turn(self) -> None:
        """Look after the processes, and handle the results that have come back."""
        self._roster.turn()
        self.supervisor.turn()

    def num_calls(self, process: Process) -> int:
        """Number of pending calls to a process."""
        return self.supervisor.num_calls(process)

    @property
    def is_idle(self) -> bool:
        """Whether all living processes are ready and idle, except for evaluations."""
        evaluations = sum(map(self.num_calls, self.evaluators))
        if self.supervisor.num_pending > evaluations:
            return False
        actors = [actor for actor in self.actors if actor.pid is not None]
        return self.has_core and all(actor.is_ready for actor in actors)

    @property
    def has_core(self) -> bool:
        """Whether the learner and all memories live, whose states cannot be left out."""
        return self.learner.is_ready and all(memory.is_ready for memory in self.memories)

    @property
    def held(self) -> dict[str, float]:
        """What the memories hold together, have lost and have room for, by their last reports."""
        return {
            "windows_held": float(sum(one.windows for one in self.reports)),
            "windows_lost": float(sum(one.lost for one in self.reports)),
            "effective_replay_capacity": float(sum(one.effective_capacity for one in self.reports)),
        }

    def say(self, text: str) -> None:
        """Have a message shown to the user."""
        self._notices.append(text)

    def take_notices(self) -> list[str]:
        """Take the messages about processes for the user; each is returned once."""
        notices, self._notices = self._notices, []
        return notices

    def begin_from(self, learner_state: Mapping[str, Any], snapshot: int) -> None:
        """Set the states from which a restarted learner and memories begin.

        Args:
            learner_state: state of the learner.
            snapshot: number of the memories' snapshot.
        """
        self._learner_state, self._snapshot = learner_state, snapshot

    def state_dict(self, actor_states: list[Any]) -> dict[str, Any]:
        """Lanes and states of the actors, and the snapshots that memories have on disk."""
        return {
            "snapshot": self._snapshot,
            "shards": self.fleet.shards,
            "lanes": self._lanes,
            "incarnations": [actor.incarnation for actor in self.actors],
            "actors": actor_states,
        }

    def load_state_dict(self, state: Mapping[str, Any], learner_state: Mapping[str, Any]) -> None:
        """Start from a state; if the actors have changed, their lanes start new episodes.

        Args:
            state: state from `state_dict`.
            learner_state: state of the learner.
        """
        if state["shards"] != self.fleet.shards:
            rule = f"be {state['shards']}, as before, to restore the replay memories"
            raise ValueError(f"--shards must {rule}; got {self.fleet.shards}")
        self.begin_from(learner_state, int(state["snapshot"]))
        incarnations, states = state["incarnations"], state["actors"]
        is_alike = state["lanes"] == self._lanes
        for number, actor in enumerate(self.actors):
            if is_alike and states[number] is not None:
                actor.incarnation = int(incarnations[number])
                self._actor_states[number] = states[number]
            else:
                actor.incarnation = max(map(int, incarnations)) + 1

    @property
    def _lanes(self) -> list[list[int]]:
        """Number of lanes and first lane of each actor."""
        return [list(where[:2]) for where in self.where]

    def _add(self, role: str, handle: Any, number: int | None = None) -> Process:
        """One more process, with a number if there may be several of its role."""
        begin = {
            "actor": self._begin_actor,
            "memory": self._begin_memory,
            "the learner": self._begin_learner,
        }.get(role, self._begin_evaluator)
        name = role if number is None else f"{role} {number}"
        return self.supervisor.add(Process(name, handle, begin, number or 0))

    def _note_loss(self, process: Process) -> None:
        self.say(f"{process.name} was lost and is being restarted ({process.last_reason})")

    def _ask(self, process: Process, *arguments: Any, then: Callable[[Any], None]) -> None:
        def begun(answer: Any) -> None:
            process.is_ready = True
            then(answer)
            self.has_begun(process)

        self.supervisor.ask(process, "begin", self.settings, *arguments, then=begun)

    def _begin_actor(self, process: Process) -> None:
        number = process.number
        if process.past_lives:
            process.incarnation += 1
            self._actor_states[number] = None
        state = self._actor_states[number]

        def then(_: None) -> None:
            self._actor_states[number] = None  # the actor has it now

        self._ask(process, number, self.where[number], process.incarnation, state, then=then)

    def _begin_memory(self, process: Process) -> None:
        number = process.number
        directory = str(self.directory / f"memory-{number}")

        def then(answer: tuple[ShardReport, str | None]) -> None:
            self.reports[number], notice = answer
            if notice:
                self.is_poorer = True
                self.say(f"{process.name}: {notice}")

        place = (number, self.fleet.shards, directory, self._snapshot or None)
        self._ask(process, self.spec, *place, then=then)

    def _begin_learner(self, process: Process) -> None:
        def then(num_updates: int) -> None:
            self.num_updates = num_updates

        self._ask(process, self.spec, self._learner_state, self.fleet.decode_threads, then=then)

    def _begin_evaluator(self, process: Process) -> None:
        self._ask(process, self.spec, then=lambda _: None)
