"""How long should an action be repeated? Skip values, learned beside Q (TempoRL).

Biedenkapp et al. (2021): Q(x, a) chooses the action, and a second table Q_J(x, a, j) the number of
steps j for which it is repeated without looking. Every piece of what was played teaches: after
each step, the pieces that end there have the returns

    Σ_{k<j} γᵏ r_k + γʲ max Q(x_j, ·)

as targets of Q_J(x, a, j) at the states where they began, and Q itself learns from single steps.
Where εz-greedy draws a duration blindly, this learns one: a baseline for "how long". Action and
skip are each chosen greedily or, with probability ε, at random.
"""

import numpy as np

from ezgreedy import requirements as require
from ezgreedy.agents.q_learning import best_value, learn, target
from ezgreedy.compilation import jit
from ezgreedy.exploration.compiled import LaneStream, heads, lane_stream, step_word, uniform
from ezgreedy.exploration.streams import Purpose
from ezgreedy.requirements import FloatArray, IntArray

LONGEST_SKIP = 7  # in the authors' tabular experiments

_ACTION, _DURATION = np.uint64(Purpose.ACTION), np.uint64(Purpose.DURATION)
_TIE = np.uint64(Purpose.GREEDY_TIE)
_SKIP_COIN, _SKIP_TIE = np.uint64(Purpose.OPTION_POLICY), np.uint64(Purpose.OPTION_TERMINATION)


@jit
def picked_best(row: FloatArray, u: float) -> int:
    """The best of a row; of several, the one that the uniform picks."""
    best, count = row[0], 1
    for index in range(1, len(row)):
        if row[index] > best:
            best, count = row[index], 1
        elif row[index] == best:
            count += 1
    skipped = int(u * count)
    for index in range(len(row)):
        if row[index] == best:
            if skipped == 0:
                return index
            skipped -= 1
    return 0


@jit
def choose(
    values: FloatArray,
    skip_values: FloatArray,
    state: int,
    epsilon: float,
    stream: LaneStream,
    step: int,
) -> tuple[int, int, bool]:
    """The action to play, how often, and whether the action was explored."""
    word = step_word(stream, step)
    explores = heads(word, epsilon)
    if explores:
        action = int(uniform(word, _ACTION) * values.shape[1])
    else:
        action = picked_best(values[state], uniform(word, _TIE))
    longest = skip_values.shape[2]
    if uniform(word, _SKIP_COIN) < epsilon:
        return action, int(uniform(word, _DURATION) * longest) + 1, explores
    return action, picked_best(skip_values[state, action], uniform(word, _SKIP_TIE)) + 1, explores


@jit
def learn_skips(
    skip_values: FloatArray,
    path: IntArray,
    rewards: FloatArray,
    action: int,
    value_after: float,
    terminated: bool,
    rates: tuple[float, float],
) -> None:
    """Moves the skip values of all pieces of a repeat that end with its latest step, in place.

    Where the episode has ended, longer skips would have been cut short here: they learn the same.

    Args:
        skip_values: Q_J, [states, actions, skips].
        path: states in which the action was played, [plays].
        rewards: what each play paid, [plays].
        action: the repeated action.
        value_after: max Q of the state arrived in, 0 if the episode has ended.
        terminated: whether it has.
        rates: step size and discount.
    """
    step_size, discount = rates
    aim = value_after
    for length in range(1, len(path) + 1):
        place = len(path) - length
        aim = rewards[place] + discount * aim
        row = skip_values[path[place], action]
        for skip in range(length, (len(row) if terminated else length) + 1):
            row[skip - 1] += step_size * (aim - row[skip - 1])


class SkipLearning:
    """Tabular TempoRL for one environment: it chooses actions and their lengths, and learns both.

        agent = SkipLearning(env.num_states, env.num_actions, 0.1, epsilon=0.1, seed=0)
        action = agent.act(state)
        ...
        agent.update(reward, next_state, terminated, truncated)

    Args:
        num_states: rows of the tables.
        num_actions: number of actions.
        step_size: α in [0, 1], of both tables.
        discount: γ in [0, 1].
        epsilon: probability of a random action, and separately of a random skip.
        longest_skip: largest number of repeats.
        seed: random seed; draws are those of lane 0.
    """

    def __init__(
        self,
        num_states: int,
        num_actions: int,
        step_size: float,
        discount: float = 1.0,
        *,
        epsilon: float = 0.1,
        longest_skip: int = LONGEST_SKIP,
        seed: int = 0,
    ) -> None:
        num_states = require.integer("num_states", num_states, least=1)
        num_actions = require.integer("num_actions", num_actions, least=1)
        longest = require.integer("longest_skip", longest_skip, least=1)
        self.step_size = require.number("step_size", step_size, 0.0, 1.0)
        self.discount = require.number("discount", discount, 0.0, 1.0)
        self.epsilon = require.number("epsilon", epsilon, 0.0, 1.0)
        self.values: FloatArray = np.zeros((num_states, num_actions))
        self.skip_values: FloatArray = np.zeros((num_states, num_actions, longest))
        self.steps = 0
        self._stream = lane_stream(require.integer("seed", seed, least=0, most=None), 0)
        self._action, self._remaining = 0, 0
        self._path: list[int] = []
        self._rewards: list[float] = []

    def act(self, state: int) -> int:
        """The action to play: the running repeat's, or a new one."""
        state = require.integer("state", state, least=0, most=len(self.values) - 1)
        if len(self._path) > len(self._rewards):
            raise require.refuse("act", "be called once for each update", "a second call")
        if self._remaining == 0:
            self._action, self._remaining, _ = choose(
                self.values, self.skip_values, state, self.epsilon, self._stream, self.steps
            )
            self._path, self._rewards = [], []
        self._path.append(state)
        return self._action

    def update(self, reward: float, next_state: int, terminated: bool, truncated: bool) -> None:
        """Learns from what the action led to; the end of an episode ends the repeat."""
        next_state = require.integer("next_state", next_state, least=0, most=len(self.values) - 1)
        reward = require.number("reward", reward, -np.inf)
        if len(self._path) == len(self._rewards):
            raise require.refuse("update", "follow a call of act", "none")
        self._rewards.append(reward)
        values, num_actions = self.values, self.values.shape[1]
        aim = target(values, reward, next_state, terminated, num_actions, self.discount)
        learn(values, self._path[-1], self._action, aim, self.step_size)
        after = 0.0 if terminated else best_value(values, next_state, num_actions)
        learn_skips(
            self.skip_values,
            np.array(self._path),
            np.array(self._rewards),
            self._action,
            after,
            terminated,
            (self.step_size, self.discount),
        )
        self.steps += 1
        self._remaining = 0 if terminated or truncated else self._remaining - 1
