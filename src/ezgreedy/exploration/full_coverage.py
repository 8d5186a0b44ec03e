"""Does an option set visit everything? Property 1 of the paper, for finite MDPs.

Full coverage means that every state-action pair is visited with positive probability for every
greedy policy and every ε > 0. Greedy steps can only add visits, so the hardest case is ε = 1, and
the check is which pairs options reach when nothing else acts. A failure comes with its reason.
"""

from dataclasses import dataclass

import numpy as np

from ezgreedy import requirements as require
from ezgreedy.exploration.options import History, Option, OptionSet, action_law
from ezgreedy.finite_mdp import FiniteMDP
from ezgreedy.requirements import BoolArray, FloatArray, IntArray

_MOST_HISTORIES = 100_000


@dataclass(frozen=True, eq=False)
class CoverageReport:
    """The state-action pairs that an option set can visit in an MDP.

    Args:
        visited: pairs visited with positive probability, [states, actions].
        beginnings: states in which options can begin, [states].
        missing: the reason for each pair that is never visited.
        horizon_reached: whether some option was still running when the analysis stopped following
            it, so that a missing pair might be visited later.
    """

    visited: BoolArray
    beginnings: BoolArray
    missing: dict[tuple[int, int], str]
    horizon_reached: bool

    @property
    def is_full(self) -> bool:
        """Whether every state-action pair is visited."""
        return not self.missing

    def explain(self, most: int = 8) -> str:
        """The verdict in words, with the reasons for the first few missing pairs."""
        if self.is_full:
            return "full coverage: every state-action pair is visited with positive probability"
        lines = [f"no full coverage: {len(self.missing)} state-action pairs are never visited"]
        for (state, action), reason in list(self.missing.items())[:most]:
            lines.append(f"  state {state}, action {action}: {reason}")
        if len(self.missing) > most:
            lines.append(f"  … and {len(self.missing) - most} more")
        if self.horizon_reached:
            lines.append("  (options were followed only up to the horizon)")
        return "\n".join(lines)


def full_coverage(
    mdp: FiniteMDP, options: OptionSet, greedy: IntArray | None = None, horizon: int = 10_000
) -> CoverageReport:
    """Whether an option set has Property 1 in this MDP.

    Args:
        mdp: the process; options see the state's index as their observation.
        options: Ω with its sampling distribution.
        greedy: None to ask about every ε > 0 and every greedy policy; or one greedy action per
            state, [states], to ask about that policy with 0 < ε < 1.
        horizon: number of plays for which a single option is followed.
    """
    if options.num_actions != mdp.num_actions:
        raise require.refuse("options", f"have {mdp.num_actions} actions", options.num_actions)
    search = _Search(mdp, options, horizon)
    if greedy is not None:
        greedy = require.actions("greedy", greedy, mdp.num_states, mdp.num_actions, "state")
    beginnings = np.zeros(mdp.num_states, dtype=np.bool_)
    fresh = mdp.start > 0
    while fresh.any():
        beginnings |= fresh
        reached = search.spread(fresh)
        if greedy is not None:
            reached |= search.step_greedily(fresh, greedy)
        fresh = reached & ~beginnings
    visited: BoolArray = np.logical_or.reduce(search.visited)
    return CoverageReport(
        visited, beginnings, _missing(mdp, search, beginnings, visited), search.horizon_reached
    )


class _Search:
    """Follows every option from states where it can begin, remembering which pairs it plays."""

    def __init__(self, mdp: FiniteMDP, options: OptionSet, horizon: int) -> None:
        self.mdp = mdp
        self.possible = mdp.transitions > 0  # [states, actions, states]
        self.options = [branch.option for branch in options.branches()]
        self.horizon = require.integer("horizon", horizon, least=1)
        self.horizon_reached = False
        # One layer per option, and a last one for greedy steps.
        self.visited = np.zeros(
            (len(self.options) + 1, mdp.num_states, mdp.num_actions), dtype=np.bool_
        )

    def spread(self, fresh: BoolArray) -> BoolArray:
        """States in which options that begin in `fresh` can end, [states]."""
        reached = np.zeros_like(fresh)
        for index, option in enumerate(self.options):
            follow = self._follow_histories if option.memory == "history" else self._follow_layers
            reached |= follow(option, fresh, self.visited[index])
        return reached

    def step_greedily(self, fresh: BoolArray, greedy: IntArray) -> BoolArray:
        """States that one greedy step from `fresh` can reach, [states]."""
        states = np.flatnonzero(fresh)
        self.visited[-1, states, greedy[states]] = True
        return self.possible[states, greedy[states]].any(axis=0) & ~self.mdp.ends

    def _follow_layers(self, option: Option, fresh: BoolArray, visited: BoolArray) -> BoolArray:
        """Layer k holds the states in which the option can be after k plays."""
        reached, layer = np.zeros_like(fresh), fresh
        successors: dict[bytes, BoolArray] = {}  # a repeated action soon revisits its layers
        for length in range(self.horizon):
            plays = self._plays(option, length, layer)
            visited |= plays
            key = plays.tobytes()
            if key not in successors:
                successors[key] = self.possible[plays].any(axis=0) & ~self.mdp.ends
            ends = self._endings(option, length + 1, successors[key])
            reached |= successors[key] & (ends > 0.0)
            layer = successors[key] & (ends < 1.0)
            if not layer.any():
                return reached
        self.horizon_reached = True
        return reached

    def _plays(self, option: Option, length: int, layer: BoolArray) -> BoolArray:
        """The pairs that the option can play after `length` plays, [states, actions]."""
        num_actions = self.mdp.num_actions
        if option.memory == "length":
            law = action_law(option, History(length), num_actions)
            return layer[:, None] & (law > 0)
        plays = np.zeros((len(layer), num_actions), dtype=np.bool_)
        for state in np.flatnonzero(layer).tolist():
            plays[state] = action_law(option, History(length, state), num_actions) > 0
        return plays

    def _endings(self, option: Option, length: int, layer: BoolArray) -> FloatArray:
        """β after `length` plays in each state of the layer, [states]."""
        if option.memory == "length":
            return np.full(len(layer), option.ends(History(length)))
        ends = np.ones(len(layer))
        for state in np.flatnonzero(layer).tolist():
            ends[state] = option.ends(History(length, state))
        return ends

    def _follow_histories(self, option: Option, fresh: BoolArray, visited: BoolArray) -> BoolArray:
        """Follows every history separately, for options that read all of it."""
        reached = np.zeros_like(fresh)
        pending = [History(0, int(s), (int(s),)) for s in np.flatnonzero(fresh)]
        for _ in range(_MOST_HISTORIES):
            if not pending:
                return reached
            history = pending.pop()
            for longer in self._continuations(option, history, visited):
                ends = option.ends(longer)
                reached[longer.observation] |= ends > 0.0
                if ends < 1.0 and longer.length < self.horizon:
                    pending.append(longer)
                self.horizon_reached |= ends < 1.0 and longer.length >= self.horizon
        rule = f"have at most {_MOST_HISTORIES} histories per option; lower the horizon"
        raise require.refuse("horizon", rule, self.horizon)

    def _continuations(self, option: Option, history: History, visited: BoolArray) -> list[History]:
        state = history.observation
        law = action_law(option, history, self.mdp.num_actions)
        visited[state] |= law > 0
        return [
            History(
                history.length + 1,
                int(successor),
                (*history.observations, int(successor)),
                (*history.actions, int(action)),
            )
            for action in np.flatnonzero(law)
            for successor in np.flatnonzero(self.possible[state, action] & ~self.mdp.ends)
        ]


def _missing(
    mdp: FiniteMDP, search: _Search, beginnings: BoolArray, visited: BoolArray
) -> dict[tuple[int, int], str]:
    reachable = mdp.reachable_states()
    begin = _listed(np.flatnonzero(beginnings))
    reasons: dict[tuple[int, int], str] = {}
    for state, action in np.argwhere(~visited & ~mdp.ends[:, None]).tolist():
        players = [
            option.name
            for option, pairs in zip(search.options, search.visited, strict=False)
            if pairs[:, action].any()
        ]
        if not reachable[state]:
            reason = "no sequence of actions leads there, so no option set could"
        elif not visited[state].any():
            reason = f"options begin only in {begin}, and none of them reaches this state"
        elif not players:
            reason = "no option of the set ever plays this action"
        else:
            reason = (
                f"the state is visited, but never with this action: options that play it "
                f"elsewhere ({', '.join(players[:3])}) begin only in {begin}"
            )
        reasons[state, action] = reason
    return reasons


def _listed(states: IntArray) -> str:
    shown = ", ".join(str(state) for state in states[:8])
    return f"states {{{shown}{', …' if len(states) > 8 else ''}}}"
