import math

import numpy as np
import pytest
from dm_control import suite
from hypothesis import given, settings
from hypothesis import strategies as st

from ezgreedy import Zeta
from ezgreedy.envs import cartpole
from ezgreedy.envs.cartpole import CartPoleSwingUpSparse

NUM_EPISODES = 12
# MuJoCo solves for the limit's force iteratively, to a tolerance; within the rail it need not.
ERROR_AT_THE_LIMIT = 1e-5
ERROR_INSIDE = 1e-11


@pytest.fixture(scope="module")
def oracle():
    return suite.load("cartpole", "swingup_sparse", task_kwargs={"random": 1})


def oracle_state(oracle):
    data = oracle.physics.data
    return tuple(np.concatenate([data.qpos, data.qvel]).tolist())


def begin(oracle, angle):
    """A new episode of the real environment, with the pole turned to this angle if one is given."""
    oracle.reset()
    if angle is not None:
        with oracle.physics.reset_context():
            oracle.physics.named.data.qpos["hinge_1"] = angle
    return oracle_state(oracle)


def iid_actions(rng):
    return rng.integers(3, size=cartpole.STEP_LIMIT)


def zeta_actions(rng):
    durations = Zeta().quantile(rng.random(cartpole.STEP_LIMIT))
    return np.repeat(rng.integers(3, size=len(durations)), durations)[: cartpole.STEP_LIMIT]


@pytest.mark.parametrize(
    ("draw_actions", "angle"),
    # Hanging poles are the task. Standing ones make iid actions earn something to compare.
    [(iid_actions, 0.0), (zeta_actions, None)],
    ids=["iid actions", "zeta-repeated actions"],
)
def test_it_moves_and_pays_as_dm_control_does(oracle, draw_actions, angle):
    rng = np.random.default_rng(0)
    worst_inside = worst_at_limit = earned = 0.0
    num_steps = num_at_limit = 0
    for _ in range(NUM_EPISODES):
        theirs = free = begin(oracle, angle)
        total = expected_total = 0.0
        for action in draw_actions(rng):
            before = theirs
            timestep = oracle.step([action - 1.0])
            theirs = oracle_state(oracle)
            *one_step, _, _ = cartpole.step(*before, action)
            *free, reward, _ = cartpole.step(*free, action)
            error = float(np.abs(np.subtract(one_step, theirs)).max())
            # A step that begins inside the rail may still meet its end half-way.
            if max(abs(before[0]), abs(theirs[0])) > cartpole.RAIL_END - 0.1:
                worst_at_limit = max(worst_at_limit, error)
                num_at_limit += abs(theirs[0]) > cartpole.RAIL_END
            else:
                worst_inside = max(worst_inside, error)
            total, expected_total = total + reward, expected_total + timestep.reward
            num_steps += 1
        assert timestep.last()
        assert total == expected_total
        earned += total
    assert num_steps >= 10_000
    assert num_at_limit >= 100
    assert worst_inside <= ERROR_INSIDE
    assert worst_at_limit <= ERROR_AT_THE_LIMIT
    assert earned > 0.0


def test_the_constants_are_those_of_the_real_model(oracle):
    model = oracle.physics.model
    slider, hinge = 0, 1
    inertia = cartpole._HINGE_INERTIA - cartpole.POLE_MASS * (cartpole.POLE_LENGTH / 2) ** 2
    assert inertia == pytest.approx(model.body_inertia[2, 1], rel=1e-12)
    assert model.dof_invweight0[slider] == pytest.approx(cartpole._UPRIGHT_MOBILITY, rel=1e-12)
    assert model.body_mass.tolist() == [0.0, cartpole.CART_MASS, cartpole.POLE_MASS]
    assert model.dof_damping.tolist() == [cartpole.CART_DAMPING, cartpole.HINGE_DAMPING]
    assert model.jnt_range[slider].tolist() == [-cartpole.RAIL_END, cartpole.RAIL_END]
    assert not model.jnt_limited[hinge]
    assert model.actuator_gear[0, 0] == cartpole.PUSH
    assert model.opt.timestep == cartpole.STEP_SECONDS
    assert model.opt.gravity[2] == -cartpole.GRAVITY


def test_it_observes_what_dm_control_observes_in_its_order(oracle):
    begin(oracle, angle=2.0)
    timestep = oracle.step([1.0])
    expected = np.concatenate(list(timestep.observation.values()))
    ours = cartpole.observe(*oracle_state(oracle))
    np.testing.assert_allclose(ours, expected, rtol=0, atol=1e-14)


def test_episodes_begin_as_dm_control_s_do():
    for seed in range(5):
        real = suite.load("cartpole", "swingup_sparse", task_kwargs={"random": seed})
        real.reset()
        normals = np.random.RandomState(seed).standard_normal(4).tolist()
        assert cartpole.start(*normals) == pytest.approx(oracle_state(real), abs=1e-15)


def test_first_states_scatter_by_a_hundredth_around_hanging_at_rest():
    env = CartPoleSwingUpSparse()
    states = []
    for seed in range(2000):
        env.reset(seed=seed)
        states.append(env.physics_state)
    # Standard errors over 2,000 draws: 0.00022 of the mean, 1.6 % of the deviation.
    np.testing.assert_allclose(np.mean(states, axis=0), [0, math.pi, 0, 0], atol=0.0012)
    np.testing.assert_allclose(np.std(states, axis=0), 0.01, rtol=0.08)


@pytest.mark.parametrize(
    ("x", "cosine", "reward"),
    [
        (0.0, 1.0, 1.0),
        (0.2499, 0.9951, 1.0),
        (-0.2499, 0.9951, 1.0),
        (0.2501, 1.0, 0.0),
        (-0.2501, 1.0, 0.0),
        (0.0, 0.9949, 0.0),
        (0.0, -1.0, 0.0),
    ],
)
def test_the_reward_asks_for_an_upright_pole_above_the_middle(x, cosine, reward):
    assert cartpole.reward_at(x, math.acos(cosine)) == reward
    assert cartpole.reward_at(x, -math.acos(cosine)) == reward
    assert cartpole.reward_at(x, math.acos(cosine) + 2 * math.pi) == reward


coordinates = st.tuples(
    st.floats(-2.2, 2.2), st.floats(-4, 4), st.floats(-8, 8), st.floats(-15, 15)
)


@given(coordinates, st.integers(0, 2))
def test_the_mirror_image_moves_as_the_mirror_image(state, action):
    *moved, reward, _ = cartpole.step(*state, action)
    *mirrored, mirrored_reward, _ = cartpole.step(*(-value for value in state), 2 - action)
    assert [-value for value in mirrored] == moved
    assert reward == mirrored_reward


@given(st.floats(-2.2, 2.2), st.floats(-8, 8), st.floats(-100, 100))
def test_the_ends_of_the_rail_push_inward_only_and_only_beyond_them(x, velocity, acceleration):
    push = cartpole.limit_push(x, velocity, acceleration, 0.95)
    assert push == 0.0 if abs(x) <= cartpole.RAIL_END else push * x <= 0.0


def test_a_pole_left_alone_keeps_hanging():
    state = (0.0, math.pi, 0.0, 0.0)
    for _ in range(cartpole.STEP_LIMIT):
        *state, _, _ = cartpole.step(*state, 1)
    np.testing.assert_allclose(state, [0.0, math.pi, 0.0, 0.0], atol=1e-9)


@settings(deadline=None)  # the first call compiles
@given(coordinates, st.integers(-3, 3))
def test_the_observed_state_is_the_state_with_one_turn_of_the_pole(state, turns):
    x, theta, *speeds = state
    seen = cartpole.observe_state(x, theta + turns * 2 * math.pi, *speeds)
    assert (seen[0], *seen[2:]) == (x, *speeds)
    assert -math.pi - 1e-9 <= seen[1] <= math.pi + 1e-9
    np.testing.assert_allclose(
        [math.cos(seen[1]), math.sin(seen[1])], [math.cos(theta), math.sin(theta)], atol=1e-12
    )


def test_the_environment_observes_its_state_if_asked():
    env, usual = CartPoleSwingUpSparse(observes="state"), CartPoleSwingUpSparse()
    env.reset(seed=3)
    usual.reset(seed=3)
    for action in [2, 2, 0, 1]:
        x, theta, *speeds = env.step(action)[0]
        expected = [x, math.cos(theta), math.sin(theta), *speeds]
        np.testing.assert_allclose(usual.step(action)[0], expected, atol=1e-12)
    with pytest.raises(ValueError, match="observes must be one of"):
        CartPoleSwingUpSparse(observes="pixels")
