import gymnasium
import numpy as np
import pytest

from ezgreedy.envs.chain import Chain
from ezgreedy.envs.deep_sea import DeepSea
from ezgreedy.envs.finite import finite_model
from ezgreedy.envs.grid_map import GridMap
from ezgreedy.envs.grid_world import GridWorld

FINITE = {
    "chain": lambda: Chain(length=60),
    "deep sea": lambda: DeepSea(size=6),
    "deep sea with random actions": lambda: DeepSea(size=6, action_seed=1),
    "corridor": lambda: GridMap("corridor", ["left", "right"]),
    "four rooms": GridMap,
    "mines": lambda: GridMap("mines"),
    "grid world": GridWorld,
    "grid world that ends at the bottom": lambda: GridWorld(goal=None, bottom_ends=True),
}

every_finite = pytest.mark.parametrize("make", FINITE.values(), ids=FINITE.keys())


def optimal_value(env, discount):
    """Of the first state, by value iteration to its fixed point."""
    model = finite_model(env)
    values, previous = np.zeros(env.num_states), None
    while not np.array_equal(values, previous):
        previous = values
        values = (model.rewards + discount * values[model.successors]).max(axis=1)
    return model.start @ values


@every_finite
def test_the_arrays_say_what_steps_do(make):
    env = make()
    model = finite_model(env)
    rng = np.random.default_rng(0)
    state, _ = env.reset()
    assert model.start[state] == model.start.sum() == 1.0
    for _ in range(3000):
        action = rng.integers(env.num_actions)
        successor, reward, terminated, _, _ = env.step(action)
        assert model.successors[state, action] == successor
        assert model.rewards[state, action] == reward
        assert model.terminal[successor] == terminated
        assert model.reachable[successor]
        state = env.reset()[0] if terminated else successor


@every_finite
def test_ends_and_unreachable_states_keep_to_themselves_and_pay_nothing(make):
    model = finite_model(make())
    idle = model.terminal | ~model.reachable
    assert model.terminal.any()
    assert (model.successors[idle] == np.flatnonzero(idle)[:, None]).all()
    assert not model.rewards[idle].any()


@every_finite
def test_dense_transitions_are_distributions_on_the_successors(make):
    model = finite_model(make())
    dense = model.transitions()
    assert (dense.sum(axis=2) == 1.0).all()
    assert np.array_equal(dense.argmax(axis=2), model.successors)


def test_a_dive_reaches_the_lower_triangle_and_the_sea_bed():
    model = finite_model(DeepSea(size=6))
    rows, columns = np.divmod(np.arange(42), 6)
    assert np.array_equal(model.reachable, columns <= rows)
    assert np.array_equal(model.terminal, rows == 6)


@pytest.mark.parametrize(
    ("make", "discount", "value"),
    [
        (Chain, 0.99, 9 * 0.99**53),
        (DeepSea, 1.0, 0.99),
        (lambda: DeepSea(50, action_seed=3, cost_on="step"), 1.0, 0.99),
        (GridWorld, 0.9, 0.9**27),
    ],
    ids=["chain", "deep sea", "deep sea with random actions", "grid world"],
)
def test_optimal_values_are_those_known_in_closed_form(make, discount, value):
    assert optimal_value(make(), discount) == pytest.approx(value, rel=1e-12)


def test_a_registered_environment_can_be_tabulated():
    env = gymnasium.make("ezgreedy/DeepSea-v0", size=3).unwrapped
    assert finite_model(env).successors.shape == (12, 2)
