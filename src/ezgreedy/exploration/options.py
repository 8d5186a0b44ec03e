"""What an exploratory option is: a policy and a termination over the history since it began.

Section 2 of the paper: a semi-Markov option ω = (I, π_ω, β_ω); here every option may begin in every
state. An option set Ω with its sampling distribution p is what `TemporallyExtended` draws from;
action repeats of random duration are the set that makes it εz-greedy.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal, NamedTuple

import numpy as np

from ezgreedy import requirements as require
from ezgreedy.exploration.choice import Choice
from ezgreedy.exploration.durations import DurationLaw, Fixed, Zeta, checked_law
from ezgreedy.requirements import BoolArray, FloatArray

Memory = Literal["length", "observation", "history"]


@dataclass(frozen=True)
class History:
    """h = x_t a_t x_{t+1} … x_{t+k}: what has happened since the option began, nothing before.

    Args:
        length: k, the plays made so far; 0 when the option begins.
        observation: x_{t+k}, the latest observation (None for options that read only the length).
        observations: x_t … x_{t+k}, kept only for options whose memory is "history".
        actions: a_t … a_{t+k−1}, kept only for the same options.
    """

    length: int
    observation: Any = None
    observations: tuple[Any, ...] = ()
    actions: tuple[int, ...] = ()


@dataclass(frozen=True)
class Option:
    """ω = (everywhere, π_ω, β_ω).

    Args:
        policy: history ↦ an action, or the probabilities of all actions.
        termination: history ↦ β, the probability of ending before the next play, or a bool. Asked
            from the first play on, so every option plays at least once.
        length: number of plays, if known when the option begins.
        memory: the part of the history that policy and termination read; only that is kept.
        name: name shown in messages.
        plays: the actions it may play, if known in advance; then a set that lacks one of them
            refuses the option at once.
    """

    policy: Callable[[History], "int | FloatArray"]
    termination: Callable[[History], float]
    length: int | None = None
    memory: Memory = "history"
    name: str = "option"
    plays: tuple[int, ...] | None = None

    def __post_init__(self) -> None:
        for field, value in (("policy", self.policy), ("termination", self.termination)):
            if not callable(value):
                raise require.refuse_type(self._of(field), "be a function of a History", value)
        if self.length is not None:
            require.integer(self._of("length"), self.length, least=1)
        require.one_of(self._of("memory"), self.memory, ("length", "observation", "history"))

    def _of(self, part: str) -> str:
        """The name of one of its parts in messages."""
        return f"{part} of option {self.name!r}"

    def ends(self, history: History) -> float:
        """β_ω(h), checked; True and False are 1 and 0."""
        answer = self.termination(history)
        if isinstance(answer, (bool, np.bool_)):
            return float(answer)
        return require.number(self._of("termination"), answer, 0.0, 1.0)


def repeat(action: int, n: int) -> Option:
    """ω_an: takes one action for n steps. With n = 1 this is `primitive(action)`."""
    action = require.integer("action", action, least=0)
    n = require.integer("n", n, least=1)
    name = f"repeat {action} for {n}"
    return Option(lambda _: action, ends_after(n), n, "length", name, (action,))


def primitive(action: int) -> Option:
    """A single action as an option."""
    return repeat(action, 1)


def sequence(actions: Sequence[int]) -> Option:
    """A fixed sequence of actions, then the end."""
    plays = tuple(require.integer("actions", action, least=0) for action in actions)
    if not plays:
        raise require.refuse("actions", "hold at least one action", actions)
    return Option(
        lambda history: plays[history.length],
        ends_after(len(plays)),
        len(plays),
        "length",
        f"sequence {list(plays)}",
        plays,
    )


def follow(
    policy: Callable[[History], "int | FloatArray"],
    n: int,
    memory: Memory = "observation",
    name: str = "policy",
) -> Option:
    """Any policy for n steps: a learned direction, another agent, a planner."""
    n = require.integer("n", n, least=1)
    return Option(policy, ends_after(n), n, memory, f"{name} for {n}")


def ends_after(n: int) -> Callable[[History], float]:
    """β(h) = 1[`|h|` ≥ n]."""
    return lambda history: float(history.length >= n)


def ends_by(durations: DurationLaw) -> Callable[[History], float]:
    """β(h) = P(N = `|h|`) / P(N ≥ `|h|`): the hazard that makes N ~ durations plays."""
    lengths = np.arange(1, durations.cap + 1)
    mass = durations.pmf(lengths)
    at_least = np.cumsum(mass[::-1])[::-1]
    hazard = np.divide(mass, at_least, out=np.ones_like(mass), where=at_least > 0).tolist()
    return lambda history: hazard[history.length - 1] if history.length <= len(hazard) else 1.0


def action_law(
    option: Option, history: History, num_actions: int, legal: BoolArray | None = None
) -> FloatArray:
    """π_ω(· | h) as weights [actions], zero where illegal; all zero if nothing it does is legal."""
    answer = option.policy(history)
    if isinstance(answer, (np.ndarray, list, tuple)):
        law = require.probabilities(f"policy of option {option.name!r}", answer, num_actions)
    else:
        name = f"policy of option {option.name!r}"
        law = np.zeros(num_actions)
        law[require.integer(name, answer, least=0, most=num_actions - 1)] = 1.0
    return law if legal is None else law * legal


class Branch(NamedTuple):
    """One member of an option set, with its probability."""

    probability: float
    option: Option


class OptionSet(ABC):
    """Ω with a sampling distribution p; possibly infinite.

    Args:
        num_actions: number of actions the options choose from.
    """

    num_actions: int

    def __repr__(self) -> str:
        return f"{type(self).__name__}(num_actions={self.num_actions}, ...)"

    @cached_property
    def reader(self) -> Option | None:
        """An option that needs the observations; None if none does."""
        options = (branch.option for branch in self.branches())
        return next((option for option in options if option.memory != "length"), None)

    @abstractmethod
    def draw(self, choice: float, duration: float, legal: BoolArray | None = None) -> Option:
        """The option that two uniforms of [0, 1) draw; equal uniforms draw equal options.

        Args:
            choice: uniform that selects the kind of option.
            duration: uniform that selects the length, for options of random length.
            legal: the actions allowed where it begins, [actions]; None for all.
        """

    @abstractmethod
    def branches(self) -> list[Branch]:
        """What `draw` can return, as a list of `Branch(probability, option)`.

        The probabilities are positive and sum to 1. An option of random length may be one branch
        for each length, or a single one whose termination draws the length (`ends_by`). Drawing a
        branch and following it has the same law as `draw`; exact analyses use it.
        """

    def first_actions(self, history: History, legal: BoolArray | None = None) -> FloatArray:
        """The probability that a drawn option first plays each action, [actions].

        Sums to less than 1 if some option's first action is illegal: that option is not begun.
        """
        total = np.zeros(self.num_actions)
        for probability, option in self.branches():
            law = action_law(option, history, self.num_actions, legal)
            total += probability * law / max(law.sum(), 1e-300)
        return total

    def describe(self) -> str:
        """A description that a saved state and the policy loading it must agree on."""
        names = ", ".join(
            f"{branch.probability:.6g} {branch.option.name}" for branch in self.branches()
        )
        return f"{type(self).__name__}({names})"


class ActionRepeats(OptionSet):
    """{ω_an}: every action with every duration; with it `TemporallyExtended` is εz-greedy.

    Args:
        num_actions: number of actions, or Gymnasium's `Discrete` space.
        durations: the law of the number of plays; the paper's zeta law by default.
        action_weights: one number per action, proportional to its probability; None for uniform.
    """

    def __init__(
        self,
        num_actions: object,
        durations: DurationLaw | None = None,
        action_weights: object = None,
    ) -> None:
        self.num_actions = require.num_actions(num_actions)
        self.durations = checked_law("durations", Zeta() if durations is None else durations)
        self.choice = Choice(self.num_actions, action_weights)

    def draw(self, choice: float, duration: float, legal: BoolArray | None = None) -> Option:
        """A legal action and a duration."""
        uniform = np.array([choice])
        picked = (
            self.choice.pick(uniform)
            if legal is None
            else self.choice.pick_legal(uniform, legal[None])
        )
        return repeat(int(picked[0]), int(self.durations.quantile(np.array([duration]))[0]))

    @property
    def reader(self) -> None:
        """None: repeats need no observations."""
        return

    def first_actions(self, history: History, legal: BoolArray | None = None) -> FloatArray:
        """The weights, among the legal actions."""
        every = np.arange(self.num_actions)
        if legal is None:
            return self.choice.chance(every)
        return self.choice.chance(every, np.broadcast_to(legal, (self.num_actions, len(legal))))

    def branches(self) -> list[Branch]:
        """One option per action, of random length."""
        ends, law = ends_by(self.durations), self.durations
        chances = self.choice.chance(np.arange(self.num_actions)).tolist()
        return [
            Branch(
                chance,
                Option(_always(action), ends, None, "length", f"repeat {action} for n ~ {law}"),
            )
            for action, chance in enumerate(chances)
            if chance > 0
        ]


class Primitives(ActionRepeats):
    """Single actions: with it `TemporallyExtended` is ε-greedy."""

    def __init__(self, num_actions: object, action_weights: object = None) -> None:
        super().__init__(num_actions, Fixed(1), action_weights)


class FiniteOptions(OptionSet):
    """Options written out one by one.

    Args:
        num_actions: number of actions, or Gymnasium's `Discrete` space.
        options: the members of Ω.
        weights: one number per option, proportional to its probability; None for uniform.
    """

    def __init__(
        self, num_actions: object, options: Sequence[Option], weights: object = None
    ) -> None:
        self.num_actions = require.num_actions(num_actions)
        if not options or not all(isinstance(option, Option) for option in options):
            raise require.refuse("options", "be Option objects, at least one", options)
        for option in options:
            if option.plays is not None and max(option.plays) >= self.num_actions:
                received = require.Described(f"option {option.name!r}")
                raise require.refuse(
                    "options", f"play actions in [0, {self.num_actions})", received
                )
        self.options = tuple(options)
        self.choice = Choice(len(self.options), weights, "weights")

    def draw(self, choice: float, duration: float, legal: BoolArray | None = None) -> Option:
        """One of the options."""
        return self.options[int(self.choice.pick(np.array([choice]))[0])]

    def branches(self) -> list[Branch]:
        """The options as they are."""
        return _branches(self.choice, self.options)


class TimedPolicies(OptionSet):
    """A user's own policies, each followed for a random duration.

    Args:
        num_actions: number of actions, or Gymnasium's `Discrete` space.
        policies: functions of the history (by default of its latest observation only).
        durations: the law of the number of plays; the paper's zeta law by default.
        weights: one number per policy, proportional to its probability; None for uniform.
        memory: the part of the history that the policies read.
    """

    def __init__(
        self,
        num_actions: object,
        policies: Sequence[Callable[[History], "int | FloatArray"]],
        durations: DurationLaw | None = None,
        weights: object = None,
        memory: Memory = "observation",
    ) -> None:
        self.num_actions = require.num_actions(num_actions)
        if not policies or not all(callable(policy) for policy in policies):
            raise require.refuse("policies", "be functions of a History, at least one", policies)
        self.policies = tuple(policies)
        self.durations = checked_law("durations", Zeta() if durations is None else durations)
        self.memory = memory
        self.choice = Choice(len(self.policies), weights, "weights")

    def draw(self, choice: float, duration: float, legal: BoolArray | None = None) -> Option:
        """One of the policies, for a drawn number of plays."""
        index = int(self.choice.pick(np.array([choice]))[0])
        n = int(self.durations.quantile(np.array([duration]))[0])
        return follow(self.policies[index], n, self.memory, f"policy {index}")

    def branches(self) -> list[Branch]:
        """One option per policy, of random length."""
        ends, law = ends_by(self.durations), self.durations
        options = [
            Option(policy, ends, None, self.memory, f"policy {index} for n ~ {law}")
            for index, policy in enumerate(self.policies)
        ]
        return _branches(self.choice, options)


def _branches(choice: Choice, options: Sequence[Option]) -> list[Branch]:
    chances = choice.chance(np.arange(len(options))).tolist()
    return [
        Branch(chance, option)
        for chance, option in zip(chances, options, strict=True)
        if chance > 0
    ]


def _always(action: int) -> Callable[[History], int]:
    return lambda _: action
