"""How does a linear agent learn? SARSA(λ) with accumulating traces on a Fourier basis.

With features φ, weights w_a and traces e_a for every action a, each step does

    δ = r + γ·w_a′·φ′ − w_a·φ        e = γλ·e, then e_a += φ        w += α·δ·s·e

where s are the features' step-size scales, and w is the same on both sides of δ. A run whose δ is
not finite, or larger than rewards of at most 1 can explain, has diverged: the update is not made,
and `has_diverged` says so. The kernels use the same compiled pieces.
"""

import math
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ezgreedy import requirements as require
from ezgreedy.agents.features import Evaluator, FourierBasis, evaluate
from ezgreedy.compilation import jit_borrowing, jit_sums
from ezgreedy.exploration.compiled import LaneStream, lane_stream, step_word, uniform
from ezgreedy.exploration.streams import Purpose
from ezgreedy.requirements import FloatArray, IntArray

# Values of discounted rewards of at most 1 are at most 1/(1 − γ): 10,000 at γ = 0.9999.
LARGEST_ERROR = 1e6
NO_HORIZON = 2**62

Floats = NDArray[np.floating]

_GREEDY_TIE = np.uint64(Purpose.GREEDY_TIE)


@dataclass(frozen=True)
class SarsaSettings:
    """How SARSA(λ) learns.

    Args:
        step_size: α.
        discount: γ.
        decay: λ of the traces.
        scales_step_sizes: whether each feature's step size is divided by its ‖c‖.
        bounds_step_size: whether α is lowered wherever a step would overshoot its own target
            (Dabney and Barto, 2012); it never rises again.
        initial_variance: variance of the normal distribution of initial weights.
        ties: the greedy one of several best actions: a random one, or the first.
        precision: bits of weights, traces and features. With 32, traces that have decayed below
            the precision are forgotten, which saves much time with many features.
    """

    step_size: float
    discount: float
    decay: float
    scales_step_sizes: bool = True
    bounds_step_size: bool = False
    initial_variance: float = 0.0
    ties: Literal["random", "first"] = "random"
    precision: Literal[64, 32] = 64

    def __post_init__(self) -> None:
        require.number("step_size", self.step_size, 0.0)
        require.number("discount", self.discount, 0.0, 1.0)
        require.number("decay", self.decay, 0.0, 1.0)
        require.flag("scales_step_sizes", self.scales_step_sizes)
        require.flag("bounds_step_size", self.bounds_step_size)
        require.number("initial_variance", self.initial_variance, 0.0)
        require.one_of("ties", self.ties, ("random", "first"))
        if self.precision not in (32, 64):
            raise require.refuse("precision", "be 32 or 64", self.precision)

    @property
    def horizon(self) -> int:
        """The number of steps without its action after which a trace is forgotten."""
        fading = self.discount * self.decay
        if self.precision == 64 or fading == 1.0:
            return NO_HORIZON
        least = float(np.finfo(np.float32).eps) / 2.0
        return math.ceil(math.log(least) / math.log(fading)) if fading else 1


class SarsaRule(NamedTuple):
    """The settings as compiled code takes them."""

    discount: float
    fading: float  # γλ
    horizon: int
    is_bounded: bool
    has_random_ties: bool


class SarsaArrays(NamedTuple):
    """An agent's arrays, as compiled code takes them; all are written to."""

    weights: Floats  # [actions, features]
    traces: Floats  # [actions, features]
    ages: IntArray  # [actions], steps since the action was taken in this episode
    scales: Floats  # [features]
    features: Floats  # [2, features], of the states before and after a step, in turns
    values: FloatArray  # [actions], of the state of the last decision
    step_size: FloatArray  # [1], which the bound lowers


class SarsaLambda:
    """SARSA(λ) for any policy of the core: the policy decides, the agent learns and is greedy.

        action = explore(np.array([agent.greedy(state, 0)]))[0]
        agent.begin(state, action)
        ...
        agent.learn(reward, next_state, next_action)

    Args:
        basis: the features.
        num_actions: number of actions.
        settings: settings of learning.
        seed: random seed of initial weights and of ties, drawn from lane 0 of its streams.
    """

    def __init__(
        self, basis: FourierBasis, num_actions: int, settings: SarsaSettings, seed: int = 0
    ) -> None:
        self.basis = basis
        self.num_actions = require.integer("num_actions", num_actions, least=1)
        self.settings = settings
        self.seed = require.integer("seed", seed, least=0, most=None)
        self.rule = SarsaRule(
            discount=float(settings.discount),
            fading=float(settings.discount * settings.decay),
            horizon=settings.horizon,
            is_bounded=settings.bounds_step_size,
            has_random_ties=settings.ties == "random",
        )
        self.arrays = self._first_arrays()
        self.evaluator: Evaluator = basis.evaluator(self.arrays.weights.dtype)
        self.has_diverged = False
        self._stream = lane_stream(self.seed, 0)
        self._now, self._action = 0, -1

    @property
    def weights(self) -> Floats:
        """The weights, [actions, features]; a copy."""
        return self.arrays.weights.copy()

    @property
    def step_size(self) -> float:
        """α, as lowered by the bound so far."""
        return float(self.arrays.step_size[0])

    def values(self, state: ArrayLike) -> FloatArray:
        """The values of all actions in a state, [actions]."""
        self._look(state, 1 - self._now)
        fill_values(self.arrays, 1 - self._now)
        return self.arrays.values.copy()

    def greedy(self, state: ArrayLike, step: int) -> int:
        """The action of highest value; a random tie is decided by this step's own draw."""
        self.values(state)
        tie = tie_of(self._stream, step) if self.rule.has_random_ties else 0.0
        return int(greedy_action(self.arrays.values, tie))

    def begin(self, state: ArrayLike, action: int) -> None:
        """Begins an episode: no traces, and the first state and action."""
        self._action = self._checked_action(action)
        forget(self.arrays)
        self._look(state, self._now)

    def learn(
        self, reward: float, state: ArrayLike | None, action: int | None = None
    ) -> float | None:
        """Learns from a step that led to this state, where this action is taken next.

        Args:
            reward: reward of the step.
            state: the next state; None if the episode terminated.
            action: the action taken next.

        Returns:
            δ, or None if this step, or an earlier one, showed that the agent has diverged.
        """
        if self._action < 0:
            raise ValueError("learn must follow begin; no episode has begun")
        next_action, next_value = 0, 0.0
        if state is not None:
            next_action = self._checked_action(action)
            self._look(state, 1 - self._now)
            next_value = dot(self.arrays.weights, next_action, self.arrays.features, 1 - self._now)
        if self.has_diverged:
            return None
        next_step = NextStep(next_action, next_value, state is None)
        error = learn(self.arrays, self.rule, self._now, self._action, float(reward), next_step)
        self.has_diverged = not is_sound(error)
        self._now, self._action = 1 - self._now, -1 if state is None else next_action
        return None if self.has_diverged else float(error)

    def _first_arrays(self) -> SarsaArrays:
        settings, basis = self.settings, self.basis
        dtype: Any = np.float64 if settings.precision == 64 else np.float32
        shape = self.num_actions, basis.num_features
        rng = np.random.default_rng(np.random.SeedSequence(self.seed, spawn_key=(1,)))
        weights = math.sqrt(settings.initial_variance) * rng.standard_normal(shape)
        scales = basis.scales if settings.scales_step_sizes else np.ones(basis.num_features)
        return SarsaArrays(
            weights=weights.astype(dtype),
            traces=np.zeros(shape, dtype),
            ages=np.full(self.num_actions, NO_HORIZON),
            scales=scales.astype(dtype),
            features=np.zeros((2, basis.num_features), dtype),
            values=np.zeros(self.num_actions),
            step_size=np.array([float(settings.step_size)]),
        )

    def _look(self, state: ArrayLike, place: int) -> None:
        values = np.asarray(state, dtype=np.float64)
        if values.shape != (self.basis.num_dimensions,):
            raise require.refuse(
                "state", f"have shape {(self.basis.num_dimensions,)}", values.shape
            )
        evaluate(self.evaluator, values, self.arrays.features, place)

    def _checked_action(self, action: object) -> int:
        return require.integer("action", action, 0, self.num_actions - 1)


class NextStep(NamedTuple):
    """What follows a step: the action, its value (0 if none follows), and whether none follows."""

    action: int
    value: float
    is_end: bool


@jit_sums
def dot(weights: Floats, action: int, features: Floats, now: int) -> float:
    """The value of an action: Σ weights[action]·features[now]."""
    total: Any = weights.dtype.type(0.0)
    for i in range(weights.shape[1]):
        total += weights[action, i] * features[now, i]
    return total


@jit_borrowing
def fill_values(arrays: SarsaArrays, now: int) -> None:
    """Writes the values of all actions in the state whose features are at `now`."""
    weights, features, values = arrays.weights, arrays.features, arrays.values
    for action in range(len(values)):
        values[action] = dot(weights, action, features, now)


@jit_borrowing
def tie_of(stream: LaneStream, step: int) -> float:
    """The uniform that decides between equally good actions at this step."""
    return uniform(step_word(stream, step), _GREEDY_TIE)


@jit_borrowing
def greedy_action(values: FloatArray, tie: float) -> int:
    """The action of highest value; among several, the one that the uniform `tie` falls on."""
    best, num_best = values[0], 1
    for action in range(1, len(values)):
        if values[action] > best:
            best, num_best = values[action], 1
        elif values[action] == best:
            num_best += 1
    place = int(tie * num_best)
    for action in range(len(values)):
        if values[action] == best:
            if place == 0:
                return action
            place -= 1
    return 0  # only if values are NaN


@jit_borrowing
def forget(arrays: SarsaArrays) -> None:
    """Empties all traces, as at the start of an episode."""
    arrays.traces[:] = 0.0
    arrays.ages[:] = NO_HORIZON


@jit_borrowing
def is_sound(error: float) -> bool:
    """Whether a run that has not diverged can have this δ."""
    return abs(error) <= LARGEST_ERROR


@jit_borrowing
def learn(
    arrays: SarsaArrays, rule: SarsaRule, now: int, action: int, reward: float, next_step: NextStep
) -> float:
    """One update from the state at `now`; returns δ. Nothing is changed if δ is not sound."""
    weights, features = arrays.weights, arrays.features
    error = reward + rule.discount * next_step.value - dot(weights, action, features, now)
    if not is_sound(error):
        return error
    _advance_traces(arrays, rule, now, action)
    if rule.is_bounded:
        _lower_step_size(arrays, rule, now, action, next_step)
    change = arrays.step_size[0] * error
    for a in range(len(arrays.ages)):
        if arrays.ages[a] < rule.horizon:
            _move(weights, a, change, arrays.scales, arrays.traces)
    return error


@jit_borrowing
def _advance_traces(arrays: SarsaArrays, rule: SarsaRule, now: int, action: int) -> None:
    traces, ages = arrays.traces, arrays.ages
    for a in range(len(ages)):
        if a == action:
            if ages[a] >= rule.horizon:
                traces[a, :] = 0.0
            ages[a] = 0
            _renew(traces, a, rule.fading, arrays.features, now)
        elif ages[a] < rule.horizon:
            ages[a] += 1
            _fade(traces, a, rule.fading)


@jit_borrowing
def _renew(traces: Floats, a: int, fading: float, features: Floats, now: int) -> None:
    factor = traces.dtype.type(fading)
    for i in range(traces.shape[1]):
        traces[a, i] = factor * traces[a, i] + features[now, i]


@jit_borrowing
def _fade(traces: Floats, a: int, fading: float) -> None:
    factor = traces.dtype.type(fading)
    for i in range(traces.shape[1]):
        traces[a, i] *= factor


@jit_borrowing
def _move(weights: Floats, a: int, change: float, scales: Floats, traces: Floats) -> None:
    factor = weights.dtype.type(change)
    for i in range(weights.shape[1]):
        weights[a, i] += factor * scales[i] * traces[a, i]


@jit_borrowing
def _lower_step_size(
    arrays: SarsaArrays, rule: SarsaRule, now: int, action: int, next_step: NextStep
) -> None:
    """Dabney and Barto's bound: α·|s·e·(γφ′ − φ)| is at most 1 wherever that product is negative.

    The product is the change of δ with α, so a larger α would flip the sign of δ.
    """
    slope = -_scaled_dot(arrays.scales, arrays.traces, action, arrays.features, now)
    if not next_step.is_end and arrays.ages[next_step.action] < rule.horizon:
        slope += rule.discount * _scaled_dot(
            arrays.scales, arrays.traces, next_step.action, arrays.features, 1 - now
        )
    if slope < 0.0:
        arrays.step_size[0] = min(arrays.step_size[0], -1.0 / slope)


@jit_sums
def _scaled_dot(scales: Floats, traces: Floats, action: int, features: Floats, now: int) -> float:
    total: Any = traces.dtype.type(0.0)
    for i in range(traces.shape[1]):
        total += scales[i] * traces[action, i] * features[now, i]
    return total
