"""Options of a finite MDP as tables: the same tape as `TemporallyExtended`, from compiled code.

An option of a finite MDP that looks only at the state is a row of actions and a row of states in
which it ends. As tables, eigenoptions and weighted repeats are as quick to simulate as εz-greedy.
Needs the `study` extra.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from ezgreedy import requirements as require
from ezgreedy.compilation import jit
from ezgreedy.exploration.compiled import LaneStream, duration, heads, step_word, uniform
from ezgreedy.exploration.durations import Fixed, InverseTable
from ezgreedy.exploration.options import (
    ActionRepeats,
    FiniteOptions,
    History,
    Option,
    OptionSet,
    TimedPolicies,
    action_law,
    primitive,
)
from ezgreedy.exploration.streams import Purpose
from ezgreedy.requirements import BoolArray, FloatArray, IntArray

DRAWN = 0  # the length of an option whose number of plays is drawn when it begins
ENDLESS = 2**62  # of an option that ends only where its table says

_ACTION, _DURATION = np.uint64(Purpose.ACTION), np.uint64(Purpose.DURATION)
# A table has no room for a dependence on the number of plays; it is looked for at these.
_PROBED_LENGTHS = (1, 2, 3, 10, 1000)


class OptionTables(NamedTuple):
    """An option set over a finite state space, in the form that compiled code takes."""

    actions: IntArray  # [options, states]
    ends: BoolArray  # [options, states], once the option has played
    lengths: IntArray  # [options]: plays, DRAWN or ENDLESS
    cumulative: IntArray  # [options], running sums of the options' weights
    durations: InverseTable  # of options whose length is drawn

    @property
    def probabilities(self) -> FloatArray:
        """The probability of drawing each option, [options]."""
        return np.diff(self.cumulative, prepend=0) / self.cumulative[-1]


def option_tables(options: OptionSet, num_states: int) -> OptionTables:
    """An option set as tables.

    Args:
        options: options that observe the number of the state, and read nothing else of their
            history: action repeats, eigenoptions, timed policies, or a list of such options.
        num_states: number of states.
    """
    num_states = require.integer("num_states", num_states, least=1)
    law = Fixed(1).inverse
    if isinstance(options, ActionRepeats):
        members: Sequence[Option] = [primitive(a) for a in range(options.num_actions)]
        law = options.durations.inverse
    elif isinstance(options, TimedPolicies):
        members = [
            Option(policy, lambda _: 0.0, None, options.memory, f"policy {number}")
            for number, policy in enumerate(options.policies)
        ]
        law = options.durations.inverse
    elif isinstance(options, FiniteOptions):
        members = options.options
    else:
        rule = "be ActionRepeats, TimedPolicies or FiniteOptions to become tables"
        raise require.refuse_type("options", rule, options)
    rows = [_row(option, num_states, options.num_actions) for option in members]
    actions, ends, lengths = (np.array(part) for part in zip(*rows, strict=True))
    if not isinstance(options, FiniteOptions):
        lengths = np.full(len(rows), 1 if options.durations.cap == 1 else DRAWN)
    return OptionTables(actions, ends, lengths, options.choice.cumulative, law)


@jit
def explore_options(
    stream: LaneStream,
    step: int,
    epsilon: float,
    tables: OptionTables,
    state: int,
    option: int,
    remaining: int,
) -> tuple[int, int, bool]:
    """One decision of temporally-extended ε-greedy in one lane.

    Args:
        stream: the lane's stream.
        step: the lane's absolute step count.
        epsilon: probability of starting an option if none runs.
        tables: the options.
        state: the state to act in.
        option: number of the running option (anything if none runs).
        remaining: most plays that the running option has left; 0 if none runs.

    Returns:
        The new option and remaining, and whether to play the option (else be greedy).
    """
    if remaining > 0 and not tables.ends[option, state]:
        return option, remaining - 1, True
    word = step_word(stream, step)
    if not heads(word, epsilon):
        return option, 0, False
    target = uniform(word, _ACTION) * tables.cumulative[-1]
    option = 0
    while tables.cumulative[option] <= target:
        option += 1
    length = tables.lengths[option]
    if length == DRAWN:
        length = duration(uniform(word, _DURATION), tables.durations)
    return option, length - 1, True


def mean_plays(
    tables: OptionTables, successors: IntArray, acting: BoolArray, most: int = 10_000
) -> float:
    """The mean number of plays of an option drawn in a state drawn uniformly.

    Plays are counted up to the end of the episode. With it, start probabilities can be matched:
    `matched_start` gives policies over different options the same share of exploratory steps.

    Args:
        tables: the options.
        successors: the state that each action leads to, [states, actions].
        acting: states that have to act, [states]; others end the episode.
        most: plays for which an option is followed.
    """
    begins = np.flatnonzero(acting)
    drawn = 1.0 - np.concatenate([[0.0], tables.durations.cumulative[:-1]])
    total = 0.0
    for number, chance in enumerate(tables.probabilities):
        length, states, weight = tables.lengths[number], begins, 1.0
        for plays in range(min(most, len(drawn)) if length == DRAWN else min(most, length)):
            weight = drawn[plays] if length == DRAWN else 1.0
            total += float(chance) * weight * len(states)
            states = successors[states, tables.actions[number, states]]
            states = states[acting[states] & ~tables.ends[number, states]]
            if not states.size:
                break
    return total / len(begins)


def matched_start(share: float, plays: float) -> float:
    """The ε at which options of this mean number of plays take this share of all steps.

    `matched_epsilon` is the same for a duration law.

    Args:
        share: share of exploratory steps.
        plays: mean number of plays of an option.
    """
    share = require.number("share", share, 0.0, 1.0)
    plays = require.number("plays", plays, 1.0)
    return share / (plays * (1.0 - share) + share)


def _row(option: Option, num_states: int, num_actions: int) -> tuple[list[int], list[bool], int]:
    """The actions, the ends and the length of one option."""
    if option.memory == "history":
        raise _refused(option, "read only the state, not their history")
    length = ENDLESS if option.length is None else option.length
    probed = [plays for plays in _PROBED_LENGTHS if plays < length]
    seen = range(num_states) if option.memory == "observation" else [None]
    actions, ends = [], []
    for state in seen:
        played = {_action(option, History(k, state), num_actions) for k in (0, *probed)}
        ended = {option.ends(History(k, state)) for k in probed}
        if len(played) > 1 or len(ended) > 1:
            raise _refused(option, "act and end by the state, whatever the number of plays")
        if not ended <= {0.0, 1.0}:
            raise _refused(option, "end in a state for certain or not at all")
        actions.append(played.pop())
        ends.append(ended == {1.0})
    if option.memory == "length":
        return actions * num_states, ends * num_states, length
    return actions, ends, length


def _action(option: Option, history: History, num_actions: int) -> int:
    law = action_law(option, history, num_actions)
    if np.count_nonzero(law) != 1:
        raise _refused(option, "play one action for certain in each state")
    return int(law.argmax())


def _refused(option: Option, rule: str) -> ValueError:
    described = require.Described(f"option {option.name!r}")
    return require.refuse("options", f"{rule}, to become tables", described)
