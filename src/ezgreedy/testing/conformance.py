"""The checks that every adapter must pass, with the real library.

Each check lets the library play in environments that record what is executed, and compares the
record with what εz-greedy must play. A mean run length would not do: it hides options that outlive
episodes and lanes that are mixed up.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path
from tempfile import TemporaryDirectory

from ezgreedy import requirements as require
from ezgreedy.exploration.durations import Fixed, Uniform
from ezgreedy.testing.expected import Lane, expected_plays
from ezgreedy.testing.recording import (
    Place,
    RecordedEnv,
    Recording,
    Step,
    observation_at,
    place_of,
)
from ezgreedy.testing.trial import AdaptedAgent, Trial

Build = type[AdaptedAgent]


class NonConforming(AssertionError):
    """An adapter that does not explore as it should; the message says where and how."""


@dataclass(frozen=True)
class Conformance:
    """What was checked.

    Args:
        agent: name of the adapted agent.
        passed: what each check saw, by name of the check.
        skipped: reasons for checks left out, by name of the check.
    """

    agent: str
    passed: Mapping[str, str]
    skipped: Mapping[str, str]

    def __str__(self) -> str:
        lines = [f"{self.agent} conforms:"]
        lines += [f"  {name}: {seen}" for name, seen in self.passed.items()]
        lines += [f"  {name}: not checked, {reason}" for name, reason in self.skipped.items()]
        return "\n".join(lines)


def check_adapter(
    agent: Build, lanes: int = 3, without: Mapping[str, str] | None = None
) -> Conformance:
    """Checks an adapter; raises `NonConforming` at the first fault.

    The checks: "runs" (options last exactly as long as drawn, and end with their episode), "lanes"
    (each environment explores on its own), "storage" (the library's buffer holds the executed
    action), "epsilon" (ε follows the library's schedule), "evaluation" (it is greedy and leaves
    exploration as it was), "saving" (a restored agent continues the same sequence of actions, and
    ε does not jump back).

    Args:
        agent: a subclass of `AdaptedAgent`.
        lanes: number of environments; a library that takes one only is checked with 1.
        without: checks to leave out, with the reasons.
    """
    lanes = require.integer("lanes", lanes, least=1)
    skipped = dict(without or {})
    for name in skipped:
        require.one_of("without", name, tuple(_CHECKS))
    passed = {name: check(agent, lanes) for name, check in _CHECKS.items() if name not in skipped}
    return Conformance(agent.__name__, passed, skipped)


def _runs(build: Build, lanes: int) -> str:
    num_blocks = num_episodes = 0
    for num_lanes in {1, lanes}:
        trial = Trial(num_lanes, Fixed(5))
        _collected(build, trial)
        for lane, episodes in enumerate(trial.recording.lanes):
            for episode, steps in enumerate(episodes):
                actions = [step.action for step in steps]
                num_blocks += _check_blocks(actions, 5, (lane, episode, 0))
                num_episodes += bool(actions)
    varied = Trial(lanes, Uniform(4))
    _check_plays(_collected(build, varied), varied)
    return f"{num_blocks} options of 5 plays in {num_episodes} episodes, and options of 1 to 4"


def _check_blocks(actions: list[int], length: int, place: Place) -> int:
    """Each block from the episode's first step on is one action; returns the number of blocks."""
    for start in range(0, len(actions), length):
        block = actions[start : start + length]
        if len(set(block)) > 1:
            raise NonConforming(
                f"{_where((*place[:2], start))}: an option of {length} plays one action, "
                f"cut only by the end of the episode; executed {block}"
            )
    return -(-len(actions) // length)


def _lanes(build: Build, lanes: int) -> str:
    if lanes == 1:
        return "there is one"
    coins = Trial(lanes, Fixed(1), epsilon=(0.5, 0.5))
    trial = Trial(lanes, Uniform(4))
    others = replace(trial, shift=3)
    for each in (coins, trial, others):
        _check_plays(_collected(build, each), each)
    tapes = [_tape(trial.recording, lane) for lane in range(lanes)]
    if len({tuple(tape[: trial.num_steps // 2]) for tape in tapes}) < lanes:
        raise NonConforming("two environments executed the same actions: they share a coin")
    if not _agree(trial.recording.lanes[0], others.recording.lanes[0]):
        raise NonConforming("lane 0 depends on when the episodes of other lanes end")
    return f"{lanes} with coins of their own"


def _agree(episodes: list[list[Step]], others: list[list[Step]]) -> bool:
    """Whether two records of a lane are the same up to where a library ends an episode early."""
    for episode, other in zip(episodes, others, strict=False):
        shorter = min(len(episode), len(other))
        if [step.action for step in episode[:shorter]] != [step.action for step in other[:shorter]]:
            return False
        if len(episode) != len(other):
            break
    return True


def _storage(build: Build, lanes: int) -> str:
    trial = Trial(lanes, Fixed(3), epsilon=(0.5, 0.5))
    agent = _collected(build, trial)
    places = set()
    for observation, action in agent.stored():
        place = place_of(observation)
        executed = trial.recording.action_at(place)
        if executed is None:
            raise NonConforming(f"{_where(place)}: stored {action}, but no action was executed")
        if executed != int(action):
            raise NonConforming(f"{_where(place)}: stored {action}, executed {executed}")
        places.add(place)
    taken = sum(trial.recording.num_steps)
    if len(places) < taken // 2:
        raise NonConforming(f"{len(places)} of {taken} executed actions were stored")
    return f"{len(places)} executed actions of {taken} are in the buffer"


def _epsilon(build: Build, lanes: int) -> str:
    trial = Trial(lanes, Fixed(2), epsilon=(1.0, 0.0))
    _check_plays(_collected(build, trial), trial)
    values = _epsilons(trial.recording)
    _check_never_rises(values)
    first, last, distinct = values[0], values[-1], len(set(values))
    if first < 0.9 or last > 0.2 or distinct < 10:
        raise NonConforming(
            "epsilon must go from 1 to 0 by the library's schedule; "
            f"went from {first:.3f} to {last:.3f} in {distinct} values"
        )
    return f"from {first:.3f} to {last:.3f} in {distinct} values"


def _evaluation(build: Build, lanes: int) -> str:
    trial = Trial(lanes, Fixed(5), epsilon=(0.5, 0.5), num_steps=100)
    agent = _collected(build, trial)
    before = agent.exploration_state()
    evaluation = Recording(1)
    agent.evaluate(RecordedEnv(evaluation, 0))
    if agent.exploration_state() != before:
        raise NonConforming("evaluation changed the state of the exploration")
    for episode, steps in enumerate(evaluation.lanes[0]):
        for position, step in enumerate(steps):
            place = (0, episode, position)
            greedy = agent.greedy(observation_at(place))
            if step.action != greedy:
                raise NonConforming(
                    f"evaluation, {_where(place)}: executed {step.action}, greedy is {greedy}"
                )
    agent.collect(trial.num_steps)
    _check_plays(agent, trial)
    taken = evaluation.num_steps[0]
    if not taken:
        raise NonConforming("evaluate() took no step in the environment it was given")
    return f"{taken} greedy steps, and exploration as if they had not been"


def _saving(build: Build, lanes: int) -> str:
    trial = Trial(lanes, Fixed(5), epsilon=(1.0, 0.0))
    agent = build(trial)
    trial.recording.epsilon = agent.epsilon
    agent.collect(trial.num_steps // 2)
    saved = agent.exploration_state()
    continued = replace(trial)
    with TemporaryDirectory() as directory:
        agent.save(Path(directory))
        restored = build.restored(Path(directory), continued)
        continued.recording.epsilon = restored.epsilon
        if restored.exploration_state() != saved:
            raise NonConforming("the restored state of the exploration is not the saved one")
        restored.collect(trial.num_steps // 2)
    _check_plays(restored, continued, trial.recording.num_steps)
    _check_never_rises(_epsilons(trial.recording) + _epsilons(continued.recording))
    return f"{sum(continued.recording.num_steps)} steps continue where the saved agent stopped"


_CHECKS: dict[str, Callable[[Build, int], str]] = {
    "runs": _runs,
    "lanes": _lanes,
    "storage": _storage,
    "epsilon": _epsilon,
    "evaluation": _evaluation,
    "saving": _saving,
}


def _collected(build: Build, trial: Trial) -> AdaptedAgent:
    """An agent that has played its trial."""
    agent = build(trial)
    trial.recording.epsilon = agent.epsilon
    agent.collect(trial.num_steps)
    fewest = min(trial.recording.num_steps)
    if fewest < trial.num_steps // 2:
        raise NonConforming(f"asked for {trial.num_steps} steps of each lane, got {fewest}")
    return agent


def _check_plays(agent: AdaptedAgent, trial: Trial, first_steps: Iterable[int] = ()) -> None:
    starts = list(first_steps) or [0] * trial.lanes
    for number, episodes in enumerate(trial.recording.lanes):
        lane = Lane(trial.seed, number, starts[number], trial.durations, trial.num_actions)
        plays = expected_plays(lane, episodes, lambda place: agent.greedy(observation_at(place)))
        for play in plays:
            executed = trial.recording.action_at(play.place)
            if executed != play.action:
                raise NonConforming(
                    f"{_where(play.place)}: executed {executed}, "
                    f"expected {play.action} ({play.reason})"
                )


def _check_never_rises(values: list[float]) -> None:
    for before, after in pairwise(values):
        if after > before:
            raise NonConforming(f"epsilon jumped from {before:.4f} back to {after:.4f}")


def _epsilons(recording: Recording) -> list[float]:
    """ε of the first lane's steps."""
    return [step.epsilon for episode in recording.lanes[0] for step in episode]


def _tape(recording: Recording, lane: int) -> list[int]:
    return [step.action for episode in recording.lanes[lane] for step in episode]


def _where(place: Place) -> str:
    lane, episode, step = place
    return f"lane {lane}, episode {episode}, step {step}"
