"""Tabular Q-learning: what is each action worth in each state, and which is best?

Q(x, a) ← Q(x, a) + α·(r + γ·max Q(x', ·) − Q(x, a)), without the bootstrap where x' ends the
episode. The paper uses it on DeepSea and GridWorld, and does not say what a greedy policy does when
several actions are equally good, as they are everywhere at the start. Both answers are offered.
"""

from typing import Literal

import numpy as np

from ezgreedy import requirements as require
from ezgreedy.compilation import jit
from ezgreedy.envs.finite import FiniteEnv
from ezgreedy.exploration.compiled import LaneStream, step_word, uniform
from ezgreedy.exploration.streams import Purpose, Streams
from ezgreedy.requirements import BoolArray, FloatArray, IntArray

Ties = Literal["random", "first"]

_TIE = np.uint64(Purpose.GREEDY_TIE)


@jit
def best_value(values: FloatArray, state: int, num_actions: int) -> float:
    """Max Q(state, ·)."""
    best = values[state, 0]
    for action in range(1, num_actions):
        best = max(best, values[state, action])
    return best


@jit
def learn(
    values: FloatArray,
    state: int,
    action: int,
    target: float,
    step_size: float,
) -> None:
    """Moves Q(state, action) towards its target by a share `step_size`, in place."""
    values[state, action] += step_size * (target - values[state, action])


@jit
def target(
    values: FloatArray,
    reward: float,
    next_state: int,
    terminated: bool,
    num_actions: int,
    discount: float,
) -> float:
    """R + γ·max Q(next_state, ·), or r where the episode has ended."""
    if terminated:
        return reward
    return reward + discount * best_value(values, next_state, num_actions)


@jit
def greedy_action(
    values: FloatArray,
    state: int,
    num_actions: int,
    has_random_ties: bool,
    stream: LaneStream,
    step: int,
) -> int:
    """The best action; of several, the first or the one that the step's own uniform picks."""
    best, choice, count = values[state, 0], 0, 1
    for action in range(1, num_actions):
        value = values[state, action]
        if value > best:
            best, choice, count = value, action, 1
        elif value == best:
            count += 1
    if count > 1 and has_random_ties:
        skipped = int(uniform(step_word(stream, step), _TIE) * count)
        for action in range(choice + 1, num_actions):
            if skipped > 0 and values[state, action] == best:
                choice = action
                skipped -= 1
    return choice


@jit
def weighted_greedy_action(
    values: FloatArray, state: int, weights: FloatArray, stream: LaneStream, step: int
) -> int:
    """The best action; of several, the one that the step's own uniform picks by weight."""
    num_actions = values.shape[1]
    best = best_value(values, state, num_actions)
    total = 0.0
    for action in range(num_actions):
        total += weights[action] if values[state, action] == best else 0.0
    target = uniform(step_word(stream, step), _TIE) * total
    passed, choice = 0.0, 0
    for action in range(num_actions):
        if values[state, action] == best:
            passed += weights[action]
            choice = action
            if passed > target:
                break
    return choice


class QLearning:
    """Q-learning over a table, for one lane or many that share it.

        explore = EZGreedy(env.num_actions, 0.1, seed=0)
        agent = QLearning(env.num_states, env.num_actions, 0.1, streams=explore.streams)
        actions = explore(agent.greedy(states, explore.steps))
        ...
        agent.update(states, actions, rewards, next_states, terminated)

    Args:
        num_states: rows of the table.
        num_actions: columns of the table.
        step_size: α in [0, 1].
        discount: γ in [0, 1].
        initial_value: initial value of every action.
        ties: the greedy one of several best actions: a "random" one or the "first".
        streams: streams that break random ties, usually the policy's own `streams`.
        tie_weights: one positive number per action, proportional to its chance among equally good
            ones, such as the `action_weights` of `distinct_actions`; None for equal chances.
    """

    def __init__(
        self,
        num_states: int,
        num_actions: int,
        step_size: float,
        discount: float = 1.0,
        initial_value: float = 0.0,
        ties: Ties = "random",
        streams: Streams | None = None,
        tie_weights: object = None,
    ) -> None:
        self.num_states = require.integer("num_states", num_states, least=1)
        self.num_actions = require.integer("num_actions", num_actions, least=1)
        self.step_size = require.number("step_size", step_size, 0.0, 1.0)
        self.discount = require.number("discount", discount, 0.0, 1.0)
        self.ties = require.one_of("ties", ties, ("random", "first"))
        if ties == "random" and streams is None:
            raise require.refuse("streams", "be given when ties are random", streams)
        self.streams = streams
        self.tie_weights = np.ones(self.num_actions)
        if tie_weights is not None:
            self.tie_weights = require.probabilities("tie_weights", tie_weights, self.num_actions)
            if (self.tie_weights <= 0.0).any():
                raise require.refuse("tie_weights", "be positive", tie_weights)
        initial_value = require.number("initial_value", initial_value, -np.inf)
        self.values: FloatArray = np.full((self.num_states, self.num_actions), initial_value)

    def greedy(self, states: object, steps: IntArray | None = None) -> IntArray:
        """The greedy actions, [lanes].

        Args:
            states: state of each lane, int [lanes].
            steps: the policy's `steps`, absolute counts [lanes]; only random ties need them.
        """
        lanes = self._num_lanes("states", states)
        values = self.values[require.actions("states", states, lanes, self.num_states)]
        if self.streams is None or self.ties == "first":
            return values.argmax(axis=1)
        if steps is None:
            raise require.refuse("steps", "be given when ties are random", steps)
        is_best = values == values.max(axis=1, keepdims=True)
        uniforms = self.streams.uniforms(self.streams.words(steps), Purpose.GREEDY_TIE)
        passed = (is_best * self.tie_weights).cumsum(axis=1)
        return (passed > (uniforms * passed[:, -1])[:, None]).argmax(axis=1)

    def update(
        self,
        states: object,
        actions: object,
        rewards: object,
        next_states: object,
        terminated: object,
    ) -> None:
        """Learns from one transition of each lane, in the order of lanes; all are [lanes].

        A truncated episode has not terminated: the value of its last state still counts.
        """
        lanes = self._num_lanes("states", states)
        before = require.actions("states", states, lanes, self.num_states)
        played = require.actions("actions", actions, lanes, self.num_actions)
        after = require.actions("next_states", next_states, lanes, self.num_states)
        ended: BoolArray = require.mask("terminated", terminated, (lanes,))
        paid = np.asarray(rewards, dtype=np.float64)
        if paid.shape != (lanes,) or not np.isfinite(paid).all():
            raise require.refuse("rewards", f"be {lanes} finite numbers", rewards)
        values, num_actions = self.values, self.num_actions
        for i in range(lanes):
            aim = target(values, paid[i], after[i], ended[i], num_actions, self.discount)
            learn(values, before[i], played[i], aim, self.step_size)

    def _num_lanes(self, name: str, states: object) -> int:
        if not isinstance(states, (np.ndarray, list, tuple)) or np.ndim(states) != 1:
            raise require.refuse(name, "be a row with one entry for each lane", states)
        return len(states)


def greedy_return(env: FiniteEnv, values: FloatArray, discount: float, most_steps: int) -> float:
    """The discounted return of one episode that takes the first of the best actions throughout."""
    state, total, weight = env.first_state, 0.0, 1.0
    for _ in range(most_steps):
        state, reward, terminated = env.transition(state, int(values[state].argmax()))
        total += weight * reward
        weight *= discount
        if terminated:
            break
    return total
