"""One step of εz-greedy as a pure function: the same draws and decisions as the NumPy policy."""

from typing import NamedTuple

import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.typing import ArrayLike

from ezgreedy import requirements as require
from ezgreedy.exploration.choice import Choice
from ezgreedy.exploration.durations import DurationLaw, Zeta, checked_law
from ezgreedy.exploration.streams import RESOLUTION_BITS, WEYL, Purpose, Streams
from ezgreedy.jax.words import (
    Word,
    add,
    at_most,
    below,
    finalise,
    multiply,
    scaled_draw,
    scramble,
    shifted,
    threshold,
    word,
)

_MASK_64 = 2**64 - 1


class State(NamedTuple):
    """All that exploration remembers: a pytree of arrays [lanes], to be carried and saved.

    Args:
        steps: steps taken by each lane.
        remaining: plays of the running option still to come, int32.
        option_actions: action of the running option, int32.
        exploring: whether an option acted on the last step, bool.
        offsets: what makes a lane's stream, together with the multipliers.
        multipliers: see offsets.
    """

    steps: Word
    remaining: Array
    option_actions: Array
    exploring: Array
    offsets: Word
    multipliers: Word


class EZGreedy:
    """εz-greedy for JAX; the arguments are those of `ezgreedy.EZGreedy`.

    An object holds only settings and tables. What changes is in the `State`, so methods can be
    transformed freely: `jax.jit(ez.step)`, `jax.vmap(ez.step)`, `ez.step` in the body of a scan.

    Args:
        num_actions: number of actions, or a discrete space.
        durations: law of the number of plays; `Zeta()` if None.
        action_weights: one number per action, proportional to its chance of being explored;
            uniform if None.
        carries_over_episodes: let options survive episode ends.
    """

    def __init__(
        self,
        num_actions: object,
        durations: DurationLaw | None = None,
        *,
        action_weights: object = None,
        carries_over_episodes: bool = False,
    ) -> None:
        self.num_actions = require.num_actions(num_actions)
        self.durations = checked_law("durations", Zeta() if durations is None else durations)
        self.carries_over_episodes = require.flag("carries_over_episodes", carries_over_episodes)
        self._choice = Choice(self.num_actions, action_weights)
        # A draw is an integer below 2⁵³, so the table can be one of integers too.
        self._table = np.ceil(self.durations.inverse.cumulative * 2.0**RESOLUTION_BITS)

    def __repr__(self) -> str:
        settings: dict[str, object] = {"num_actions": self.num_actions, "durations": self.durations}
        if self._choice.weights is not None:
            settings["action_weights"] = self._choice.weights.tolist()
        if self.carries_over_episodes:
            settings["carries_over_episodes"] = True
        shown = ", ".join(f"{name}={value!r}" for name, value in settings.items())
        return f"{type(self).__name__}({shown})"

    def init(self, seed: int, lanes: int | None = None, first_lane: int = 0) -> State:
        """A state at step 0.

        Args:
            seed: any non-negative int; with the lane's number it determines the lane's actions.
            lanes: number of environments stepped together; without it, one environment whose
                arrays have no axis, as `vmap` wants it.
            first_lane: number of the first environment.
        """
        streams = Streams(seed, 1 if lanes is None else lanes, first_lane)
        shape = () if lanes is None else (streams.lanes,)
        return State(
            steps=word(np.zeros(shape, dtype=np.uint64)),
            remaining=jnp.zeros(shape, dtype=jnp.int32),
            option_actions=jnp.zeros(shape, dtype=jnp.int32),
            exploring=jnp.zeros(shape, dtype=jnp.bool_),
            offsets=word(streams.offsets.reshape(shape)),
            multipliers=word(streams.multipliers.reshape(shape)),
        )

    def step(
        self,
        state: State,
        greedy: ArrayLike,
        epsilon: ArrayLike,
        starts: ArrayLike | None = None,
        active: ArrayLike | None = None,
        legal: ArrayLike | None = None,
        ends: ArrayLike | None = None,
    ) -> tuple[State, Array]:
        """The next state, and the actions to execute, [lanes].

        Args:
            state: the state before.
            greedy: greedy actions, ints [lanes].
            epsilon: probability of starting an option: a number or [lanes]. Python numbers and
                NumPy arrays count in double precision; JAX arrays, which all arguments of a
                jitted function are, in their own.
            starts: bool [lanes], true where this observation is the first of an episode.
            active: bool [lanes], the lanes that take a real step now; all if None.
            legal: bool [lanes, actions], the actions that may be played; all if None. Each lane
                needs one.
            ends: bool [lanes], true where a running option ends before the decision because the
                caller knows better.
        """
        greedy = self._checked(state, greedy)
        stepping = jnp.ones_like(state.exploring) if active is None else jnp.asarray(active)
        running = self._still_running(state, starts, ends, stepping, legal)
        coordinates = multiply(state.steps, word(WEYL))
        words = scramble(add(state.offsets, coordinates), state.multipliers)
        deciding = (running == 0) & stepping
        fresh = deciding & below(_draw(words), threshold(_checked_epsilon(epsilon)))
        exploring = fresh | ((running > 0) & stepping)
        drawn = self._pick(_draw(_purpose(words, Purpose.ACTION)), legal)
        option_actions = jnp.where(fresh, drawn, state.option_actions)
        further = self._further_plays(_draw(_purpose(words, Purpose.DURATION)))
        remaining = jnp.where(fresh, further, running - exploring.astype(jnp.int32))
        moved = add(state.steps, Word(jnp.zeros_like(state.steps.low), stepping.astype(jnp.uint32)))
        after = state._replace(
            steps=moved, remaining=remaining, option_actions=option_actions, exploring=exploring
        )
        return after, jnp.where(exploring, option_actions.astype(greedy.dtype), greedy)

    def _checked(self, state: State, greedy: ArrayLike) -> Array:
        """The greedy actions; their values cannot be checked, for they may not be known yet."""
        actions = jnp.asarray(greedy)
        if not jnp.issubdtype(actions.dtype, jnp.integer):
            raise require.refuse_type("greedy", f"hold ints, not {actions.dtype}", greedy)
        if actions.shape != state.remaining.shape:
            raise require.refuse(
                "greedy", f"have shape {state.remaining.shape}, that of the state", actions.shape
            )
        return actions

    def _still_running(
        self,
        state: State,
        starts: ArrayLike | None,
        ends: ArrayLike | None,
        stepping: Array,
        legal: ArrayLike | None,
    ) -> Array:
        running = state.remaining
        if starts is not None and not self.carries_over_episodes:
            running = jnp.where(jnp.asarray(starts), 0, running)
        if ends is not None:
            running = jnp.where(jnp.asarray(ends), 0, running)
        if legal is not None:
            mask = jnp.asarray(legal)
            allowed = jnp.take_along_axis(mask, state.option_actions[..., None], axis=-1)[..., 0]
            running = jnp.where(stepping & ~allowed, 0, running)
        return running

    def _pick(self, draws: Word, legal: ArrayLike | None) -> Array:
        """The action of each draw, among the legal ones."""
        if legal is None and self._choice.weights is None:
            return scaled_draw(draws, word(self.num_actions)).low.astype(jnp.int32)
        units = word(self._choice.units)
        if legal is not None:
            mask = jnp.asarray(legal)
            units = Word(jnp.where(mask, units.high, 0), jnp.where(mask, units.low, 0))
        sums = [Word(units.high[..., 0], units.low[..., 0])]
        for action in range(1, self.num_actions):
            sums.append(add(sums[-1], Word(units.high[..., action], units.low[..., action])))
        targets = scaled_draw(draws, sums[-1])
        passed = sum(at_most(each, targets).astype(jnp.int32) for each in sums)
        return jnp.minimum(passed, self.num_actions - 1)

    def _further_plays(self, draws: Word) -> Array:
        """The drawn duration less one: the number of entries of the table that are at most u."""
        table, cap = word(self._table), self.durations.cap
        count = jnp.zeros_like(draws.low, dtype=jnp.int32)
        for bit in reversed(range((cap - 1).bit_length())):
            candidate = count + 2**bit
            entry = jnp.minimum(candidate, cap) - 1
            passed = at_most(Word(table.high[entry], table.low[entry]), draws)
            count = jnp.where(passed & (candidate < cap), candidate, count)
        return count


def _checked_epsilon(epsilon: ArrayLike) -> ArrayLike:
    """ε: a known one must be a probability; one that is not known yet is clipped to [0, 1]."""
    if not isinstance(epsilon, Array):
        values = np.asarray(epsilon)
        if values.dtype.kind not in "iuf":
            raise require.refuse_type("epsilon", f"hold numbers, not {values.dtype}", epsilon)
        if not ((values >= 0.0) & (values <= 1.0)).all():  # also refuses NaN
            raise require.refuse("epsilon", "lie in [0, 1]", epsilon)
    return epsilon


def _purpose(words: Word, purpose: Purpose) -> Word:
    return finalise(add(words, word(purpose * WEYL & _MASK_64)))


def _draw(words: Word) -> Word:
    """The upper 53 bits: the draw in units of 2⁻⁵³."""
    return shifted(words, 64 - RESOLUTION_BITS)
