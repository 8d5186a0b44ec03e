"""The JAX twin plays the actions of NumPy, bit for bit."""

import itertools
import pickle

import numpy as np
import pytest
from gymnasium import spaces

from support.libraries import library
from support.loop_agent import LoopAgent
from support.pages import run_page

library("jax")

import jax  # noqa: E402
import jax.numpy as jnp  # noqa: E402

from ezgreedy import (  # noqa: E402
    EZGreedy,
    Fixed,
    Geometric,
    PlusOne,
    Uniform,
    Zeta,
    ladder,
)
from ezgreedy.exploration.choice import Choice  # noqa: E402
from ezgreedy.exploration.streams import Purpose, Streams  # noqa: E402
from ezgreedy.jax import EZGreedy as JaxEZGreedy  # noqa: E402
from ezgreedy.jax import words as w  # noqa: E402
from ezgreedy.testing import check_adapter  # noqa: E402

LAWS = [Zeta(), Zeta(cap=20, tail="clip"), Fixed(1), Fixed(3), Geometric(0.9), Uniform(6)]
LAWS += [PlusOne(Zeta(cap=7)), Zeta(mu=0.5, cap=4097)]
each_law = pytest.mark.parametrize("law", LAWS, ids=repr)


def integers(words):
    return np.asarray(words.high).astype(np.uint64) << np.uint64(32) | np.asarray(words.low)


# Arithmetic.


def test_words_add_multiply_shift_and_compare_like_64_bit_integers():
    rng = np.random.default_rng(0)
    a, b = rng.integers(0, 2**64, (2, 3000), dtype=np.uint64)
    b[:500] = a[:500]
    a[500:900] &= np.uint64(0xFFFFFFFF)
    x, y = w.word(a), w.word(b)
    np.testing.assert_array_equal(integers(w.add(x, y)), a + b)
    np.testing.assert_array_equal(integers(w.multiply(x, y)), a * b)
    np.testing.assert_array_equal(integers(w.exclusive_or(x, y)), a ^ b)
    np.testing.assert_array_equal(w.at_most(x, y), a <= b)
    np.testing.assert_array_equal(w.below(x, y), a < b)
    for bits in (1, 11, 27, 30, 31, 32, 33, 63):
        np.testing.assert_array_equal(integers(w.shifted(x, bits)), a >> np.uint64(bits))
    whole = w.product_of_32(x.low, y.low)
    low = np.uint64(0xFFFFFFFF)
    np.testing.assert_array_equal(integers(whole), (a & low) * (b & low))


TOTALS = [1, 2, 3, 5, 7, 18, 4099, 2**31 - 1, 2**40, 2**40 + 12345, 3 * 2**39 + 1]


@pytest.mark.parametrize("total", TOTALS)
def test_a_scaled_draw_is_rounded_as_doubles_are(total):
    rng = np.random.default_rng(1)
    draws = rng.integers(0, 2**53, 4000, dtype=np.uint64)
    # Around every integer of the product, where rounding decides.
    wholes = rng.integers(1, total + 1, 300, dtype=np.uint64)
    nearest = [(int(whole) * 2**53) // total for whole in wholes]
    edges = [n + d for n in nearest for d in (-2, -1, 0, 1) if 0 <= n + d < 2**53]
    draws = np.concatenate([draws, np.array([*edges, 0, 2**53 - 1], dtype=np.uint64)])
    expected = (draws.astype(np.float64) * 2.0**-53 * total).astype(np.uint64)
    np.testing.assert_array_equal(integers(w.scaled_draw(w.word(draws), w.word(total))), expected)


def test_rounding_up_to_the_next_integer_does_happen():
    """The case that a plain floor of the exact product would get wrong."""
    total, draws = 3 * 2**39 + 1, []
    for whole in range(2**40, 2**40 + 400):
        draws += [(whole * 2**53) // total]
    draws = np.array(draws, dtype=np.uint64)
    exact = np.array([int(draw) * total >> 53 for draw in draws], dtype=np.uint64)
    rounded = (draws.astype(np.float64) * 2.0**-53 * total).astype(np.uint64)
    assert (exact != rounded).any()
    np.testing.assert_array_equal(integers(w.scaled_draw(w.word(draws), w.word(total))), rounded)


def test_thresholds_are_exact():
    epsilons = np.concatenate([np.linspace(0, 1, 1000), 10.0 ** -np.arange(1, 20), [1 - 2.0**-53]])
    expected = np.ceil(epsilons * 2.0**53).astype(np.uint64)
    np.testing.assert_array_equal(integers(w.threshold(epsilons)), expected)
    single = epsilons.astype(np.float32)
    expected = np.ceil(single.astype(np.float64) * 2.0**53).astype(np.uint64)
    np.testing.assert_array_equal(integers(w.threshold(jnp.asarray(single))), expected)


@each_law
def test_durations_equal_those_of_numpy(law):
    edges = np.concatenate([law.inverse.cumulative[:200], law.inverse.cumulative[-200:]])
    uniforms = np.concatenate(
        [np.random.default_rng(0).random(2000), edges, np.nextafter(edges, 0), [0, 1 - 2.0**-53]]
    )
    draws = np.floor(uniforms[uniforms < 1] * 2.0**53)
    drawn = JaxEZGreedy(3, law)._further_plays(w.word(draws)) + 1
    np.testing.assert_array_equal(drawn, law.quantile(draws * 2.0**-53))


@pytest.mark.parametrize("weights", [None, [1, 2, 0, 3, 0.5], [1e-30, 1, 1, 1, 1e9]])
def test_actions_equal_those_of_numpy(weights):
    rng = np.random.default_rng(3)
    uniforms = np.floor(rng.random(3000) * 2.0**53) * 2.0**-53
    draws = w.word(uniforms * 2.0**53)
    legal = rng.random((3000, 5)) < 0.5
    legal[:, 3] = True
    ez, choice = JaxEZGreedy(5, action_weights=weights), Choice(5, weights)
    np.testing.assert_array_equal(ez._pick(draws, None), choice.pick(uniforms))
    np.testing.assert_array_equal(ez._pick(draws, legal), choice.pick_legal(uniforms, legal))


# The same actions.


def random_calls(lanes, num_actions, count, seed=0):
    rng = np.random.default_rng(seed)
    for _ in range(count):
        greedy = rng.integers(0, num_actions, lanes)
        starts = rng.random(lanes) < 0.1
        active = rng.random(lanes) < 0.8
        legal = rng.random((lanes, num_actions)) < 0.7
        legal[np.arange(lanes), greedy] = legal[:, 0] = True
        yield greedy, starts, active, legal, rng.random(lanes) < 0.1


# Compiling takes longer than playing, so each law meets one of the combinations.
CASES = [
    (law, carries, weights, epsilon)
    for law, (carries, weights, epsilon) in zip(
        LAWS,
        itertools.product([False, True], [None, [1, 2, 0, 3, 0.5]], [0.3, ladder(7)]),
        strict=True,
    )
]


@pytest.mark.parametrize(("law", "carries", "weights", "epsilon"), CASES)
def test_it_plays_the_tape_of_numpy(law, carries, weights, epsilon):
    settings = {"action_weights": weights, "carries_over_episodes": carries}
    host = EZGreedy(5, epsilon, law, 7, 2**65, first_lane=9, **settings)
    ez = JaxEZGreedy(5, law, **settings)
    state = ez.init(2**65, 7, first_lane=9)
    # As an argument ε would be a float32.
    step = jax.jit(lambda state, greedy, *masks: ez.step(state, greedy, epsilon, *masks))
    for number, (greedy, *given) in enumerate(random_calls(7, 5, 90)):
        masks = given if number % 3 else (given[0], None, None, None)
        expected = host(greedy, *masks)
        state, actions = step(state, greedy, *masks)
        stepping = np.ones(7, dtype=bool) if masks[1] is None else masks[1]
        np.testing.assert_array_equal(np.asarray(actions)[stepping], expected[stepping])
        np.testing.assert_array_equal(state.exploring, host.exploring)
        np.testing.assert_array_equal(state.remaining, host.remaining)
        np.testing.assert_array_equal(integers(state.steps), host.steps)


def test_it_plays_the_same_with_64_bits():
    ez = JaxEZGreedy(5, Zeta(), action_weights=[1, 2, 3, 4, 5])
    tapes = []
    for wide in (False, True):
        with jax.enable_x64(wide):
            state, tape, step = ez.init(3, 4), [], jax.jit(ez.step)
            for greedy, *masks in random_calls(4, 5, 40):
                state, actions = step(state, greedy, np.float32(0.3), *masks)
                tape.append(np.asarray(actions))
        tapes.append(np.array(tape))
    np.testing.assert_array_equal(*tapes)


def test_an_epsilon_of_jax_counts_in_its_own_precision():
    ez, epsilons = JaxEZGreedy(4), np.linspace(0, 1, 300).astype(np.float32)
    host, state = EZGreedy(4, 0.0, lanes=6, seed=1), ez.init(1, 6)
    step, zeros = jax.jit(ez.step), np.zeros(6, dtype=int)
    for epsilon in epsilons:
        host.epsilon = float(epsilon)
        state, actions = step(state, zeros, jnp.asarray(epsilon))
        np.testing.assert_array_equal(actions, host(zeros))


def test_a_step_count_beyond_32_bits_is_right():
    ez, host = JaxEZGreedy(6), EZGreedy(6, 0.5, lanes=3, seed=8)
    far = 2**32 - 5
    host.load_state_dict(host.state_dict() | {"steps": [far] * 3})
    state = ez.init(8, 3)._replace(steps=w.word(np.full(3, far)))
    for _ in range(12):
        state, actions = ez.step(state, np.zeros(3, dtype=int), 0.5)
        np.testing.assert_array_equal(actions, host(np.zeros(3, dtype=int)))


# Transformations.


def tape_of_numpy(lanes, count, seed=2, first_lane=0):
    host = EZGreedy(5, 0.4, Zeta(cap=30), lanes, seed, first_lane=first_lane)
    return np.array([host(np.zeros(lanes, dtype=int)) for _ in range(count)])


def test_it_can_be_scanned():
    ez = JaxEZGreedy(5, Zeta(cap=30))

    @jax.jit
    def play(state):
        zeros = jnp.zeros(8, dtype=jnp.int32)
        return jax.lax.scan(lambda state, _: ez.step(state, zeros, 0.4), state, None, length=200)

    _, actions = play(ez.init(2, 8))
    np.testing.assert_array_equal(actions, tape_of_numpy(8, 200))


def test_it_can_be_vmapped_over_lanes_and_seeds():
    ez = JaxEZGreedy(5, Zeta(cap=30))
    alone = [ez.init(2, first_lane=lane) for lane in range(4)]
    state = jax.tree.map(lambda *leaves: jnp.stack(leaves), *alone)
    step = jax.jit(jax.vmap(lambda state, greedy: ez.step(state, greedy, 0.4)))
    tape = []
    for _ in range(100):
        state, actions = step(state, jnp.zeros(4, dtype=jnp.int32))
        tape.append(np.asarray(actions))
    np.testing.assert_array_equal(tape, tape_of_numpy(4, 100))
    seeds = jax.tree.map(lambda *leaves: jnp.stack(leaves), *[ez.init(s, 3) for s in (2, 7)])
    first = jax.vmap(lambda state: ez.step(state, jnp.zeros(3, dtype=int), 0.4))
    _, actions = jax.jit(first)(seeds)
    for row, seed in enumerate((2, 7)):
        np.testing.assert_array_equal(actions[row], tape_of_numpy(3, 1, seed)[0])


def test_lanes_can_be_split_over_programs():
    ez = JaxEZGreedy(5, Zeta(cap=30))
    zeros = jnp.zeros(3, dtype=int)
    _, actions = ez.step(ez.init(2, 3, first_lane=5), zeros, 0.4)
    np.testing.assert_array_equal(actions, tape_of_numpy(3, 1, first_lane=5)[0])
    assert actions.dtype == zeros.dtype


# Conformance, errors, the page.


class JaxAgent(LoopAgent):
    """The loop with the functional twin in the place of the policy."""

    def policy(self, trial):
        self.ez = JaxEZGreedy(trial.num_actions, trial.durations)
        self.state, self.jitted = self.ez.init(trial.seed, trial.lanes), jax.jit(self.ez.step)
        self.starts = np.ones(trial.lanes, dtype=bool)

    def act(self, greedy, real):
        lanes = range(self.trial.lanes)
        epsilon = np.array([self.epsilon(lane) for lane in lanes])
        self.state, actions = self.jitted(self.state, greedy, epsilon, self.starts, real)
        self.starts = self.starts & ~real
        return np.asarray(actions)

    def end_options(self, finished):
        self.starts = self.starts | finished

    def exploration_state(self):
        return jax.tree.map(lambda leaf: np.asarray(leaf).tolist(), self.state)

    def save(self, directory):
        leaves = jax.tree.map(np.asarray, self.state)
        (directory / "state.pickle").write_bytes(pickle.dumps(leaves))

    @classmethod
    def restored(cls, directory, trial):
        agent = cls(trial)
        leaves = pickle.loads((directory / "state.pickle").read_bytes())
        agent.state = jax.tree.map(jnp.asarray, leaves)
        agent.steps_before = integers(agent.state.steps).tolist()
        return agent


def test_it_conforms():
    assert not check_adapter(JaxAgent).skipped


def test_bad_arguments_are_refused():
    with pytest.raises(TypeError, match="durations must be a duration law"):
        JaxEZGreedy(5, 3)
    with pytest.raises(ValueError, match="num_actions must be at least 1; got 0"):
        JaxEZGreedy(0)
    ez = JaxEZGreedy(5)
    state = ez.init(0, 3)
    with pytest.raises(TypeError, match="greedy must hold ints, not float32"):
        ez.step(state, jnp.zeros(3), 0.1)
    with pytest.raises(ValueError, match=r"greedy must have shape \(3,\), that of the state"):
        jax.jit(ez.step)(state, jnp.zeros(2, dtype=int), 0.1)
    with pytest.raises(ValueError, match="seed must be at least 0"):
        ez.init(-1)
    for epsilon in (-0.1, 1.5, np.nan, np.array([0.1, 2.0, 0.3])):
        with pytest.raises(ValueError, match=r"epsilon must lie in \[0, 1\]; got"):
            ez.step(state, jnp.zeros(3, dtype=int), epsilon)
    with pytest.raises(TypeError, match="epsilon must hold numbers, not <U3"):
        ez.step(state, jnp.zeros(3, dtype=int), "0.1")


@pytest.mark.parametrize("space", [spaces.Box(-1.0, 1.0, (2,)), spaces.MultiDiscrete([2, 3])])
def test_other_action_spaces_are_refused_with_the_way(space):
    with pytest.raises(TypeError, match=r"be an int or a Discrete space; got .*in a wrapper\)"):
        JaxEZGreedy(space)


def test_streams_are_those_of_numpy():
    streams, ez = Streams(99, 4), JaxEZGreedy(3)
    state = ez.init(99, 4)
    words = w.scramble(state.offsets, state.multipliers)
    expected = streams.words(np.zeros(4, dtype=np.int64))
    np.testing.assert_array_equal(integers(words), expected)
    uniforms = streams.uniforms(expected, Purpose.ACTION)
    from ezgreedy.jax.ez_greedy import _draw, _purpose

    drawn = integers(_draw(_purpose(words, Purpose.ACTION)))
    np.testing.assert_array_equal(drawn, uniforms * 2.0**53)


def test_it_shows_its_settings():
    assert repr(JaxEZGreedy(spaces.Discrete(4), Fixed(3))) == (
        "EZGreedy(num_actions=4, durations=Fixed(n=3))"
    )
    rare = JaxEZGreedy(2, Fixed(3), action_weights=[1, 3], carries_over_episodes=True)
    assert repr(rare) == (
        "EZGreedy(num_actions=2, durations=Fixed(n=3), action_weights=[1.0, 3.0], "
        "carries_over_episodes=True)"
    )


def test_the_page_runs(tmp_path):
    assert "explored" in run_page("docs/adapters/jax.md", tmp_path)
