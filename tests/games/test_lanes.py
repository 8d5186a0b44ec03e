import numpy as np
import pytest

from ezgreedy.games import Emulator, Lanes, Protocol
from ezgreedy.games.lanes import lane_rng

SHORT = Protocol(most_episode_frames=40)


def fields(steps):
    return {key: np.asarray(value).tobytes() for key, value in vars(steps).items()}


def random_actions(lanes, count):
    return np.random.default_rng(0).integers(lanes.num_actions, size=(count, lanes.lanes))


def test_lanes_are_single_games_that_begin_anew_within_the_step():
    lanes = Lanes("Breakout", 3, SHORT, seed=7)
    singles = [Emulator("Breakout", SHORT, rng=lane_rng(7, lane)) for lane in range(3)]
    assert np.array_equal(lanes.reset(), [single.reset() for single in singles])
    finished = 0
    for actions in random_actions(lanes, 25):
        steps = lanes.step(actions)
        for lane, single in enumerate(singles):
            step = single.step(actions[lane])
            assert np.array_equal(steps.next_observations[lane], step.observation)
            assert steps.rewards[lane] == step.reward
            assert steps.clipped_rewards[lane] == step.clipped_reward
            assert steps.discounts[lane] == step.discount
            assert steps.truncated[lane] == step.truncated
            assert steps.terminated[lane] == step.terminated
            assert steps.episode_frames[lane] == step.episode_frames
            assert steps.episode_returns[lane] == step.episode_return
            assert steps.lives[lane] == step.lives
            is_finished = step.terminated or step.truncated
            assert steps.finished[lane] == is_finished
            acted_on = single.reset() if is_finished else step.observation
            assert np.array_equal(steps.observations[lane], acted_on)
            finished += is_finished
    assert finished == 6


def test_a_finished_lane_shows_its_last_and_its_first_observation():
    lanes = Lanes("Pong", 2, SHORT, seed=0)
    lanes.reset()
    for _ in range(9):
        steps = lanes.step([2, 3])
        assert not steps.finished.any()
        assert steps.observations is steps.next_observations
    steps = lanes.step([2, 3])
    assert steps.truncated.all()
    assert (steps.discounts == 1.0).all()
    assert steps.next_observations[:, 0].any(axis=(1, 2)).all()
    assert not steps.observations[:, :3].any()
    assert steps.observations[:, 3].any(axis=(1, 2)).all()
    assert (lanes.step([0, 0]).episode_frames == 4).all()  # no step was a dummy


def test_a_lane_depends_on_its_seed_and_number_alone():
    actions = random_actions(Lanes("Freeway", 4, SHORT, seed=1), 12)
    together, apart = (
        Lanes("Freeway", 4, SHORT, seed=1),
        Lanes("Freeway", 2, SHORT, seed=1, first_lane=2),
    )
    assert np.array_equal(together.reset()[2:], apart.reset())
    for row in actions:
        one, other = together.step(row), apart.step(row[2:])
        assert np.array_equal(one.observations[2:], other.observations)


def test_lanes_and_seeds_have_streams_of_their_own():
    draws = {
        (seed, lane): tuple(lane_rng(seed, lane).integers(2**60, size=4))
        for seed in range(5)
        for lane in range(5)
    }
    assert len(set(draws.values())) == 25


def test_restored_lanes_continue_bit_for_bit():
    lanes = Lanes("MontezumaRevenge", 2, SHORT, seed=2)
    lanes.reset()
    actions = random_actions(lanes, 30)
    for row in actions[:13]:
        lanes.step(row)
    state = lanes.state_dict()
    continued = [fields(lanes.step(row)) for row in actions[13:]]
    other = Lanes("MontezumaRevenge", 2, SHORT, seed=3)
    other.load_state_dict(state)
    assert [fields(other.step(row)) for row in actions[13:]] == continued


def test_refused_states_leave_every_lane_as_it_was():
    lanes = Lanes("Pong", 2, SHORT, seed=0)
    lanes.reset()
    older = lanes.state_dict()
    lanes.step([1, 2])
    before = lanes.state_dict()
    older["lanes"][1]["name"] = "Breakout"
    with pytest.raises(ValueError, match=r"state\['name'\] must equal 'Pong'"):
        lanes.load_state_dict(older)
    assert [state["machine"] for state in lanes.state_dict()["lanes"]] == [
        state["machine"] for state in before["lanes"]
    ]
    with pytest.raises(ValueError, match="of 2 lanes; got 1 lanes"):
        lanes.load_state_dict({"lanes": older["lanes"][:1]})
    with pytest.raises(ValueError, match="of 2 lanes; got something else"):
        lanes.load_state_dict({})


def test_wrong_arguments_are_refused():
    with pytest.raises(ValueError, match="lanes must be at least 1"):
        Lanes("Pong", 0, seed=0)
    with pytest.raises(ValueError, match="seed must be at least 0"):
        Lanes("Pong", 1, seed=-1)
    with pytest.raises(ValueError, match="did you mean Pong"):
        Lanes("pong", 1, seed=0)
    lanes = Lanes("Pong", 2, seed=0)
    lanes.reset()
    with pytest.raises(ValueError, match=r"actions must lie in \[0, 6\); got 6 at position 1"):
        lanes.step([0, 6])
    with pytest.raises(TypeError, match="actions must hold ints"):
        lanes.step([0.5, 1.0])  # continuous
