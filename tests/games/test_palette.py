"""Codes of colours give back, byte for byte, the maximum of two colour screens."""

from dataclasses import replace

import numpy as np
import pytest

from ezgreedy.games import MINATAR, R2D2_PROTOCOL, Lanes, MinAtar, Protocol, colours, expand, games
from ezgreedy.games.atari.palette import NUM_COLOURS, pooled_codes

FEW = ["Asteroids", "Pong", "Seaquest", "MontezumaRevenge", "StarGunner", "Venture"]


def assert_codes_are_lossless(machine, num_steps, seed=0):
    """Plays random actions that last; every two screens, pooled in colour, follow from codes."""
    rng = np.random.default_rng(seed)
    actions, action, is_pooled = machine.getLegalActionSet(), 0, False
    for _ in range(num_steps):
        if rng.random() < 0.2:
            action = int(rng.integers(len(actions)))
        screens = []
        for _ in range(2):
            machine.act(actions[action])
            screens.append((machine.getScreen(), machine.getScreenRGB()))
        (indices, picture), (other_indices, other_picture) = screens
        codes = pooled_codes(indices, other_indices)[None]
        pooled = np.maximum(picture, other_picture)
        assert codes.dtype == np.uint16
        assert np.array_equal(expand(codes), pooled.transpose(2, 0, 1))
        is_pooled |= not np.array_equal(pooled, other_picture)
        if machine.game_over():
            machine.reset_game()
    return is_pooled


@pytest.mark.parametrize("played", FEW)
def test_codes_are_lossless_on_a_few_games(played, raw_machine):
    assert assert_codes_are_lossless(raw_machine(played), 60)


@pytest.mark.slow
@pytest.mark.parametrize("played", sorted(games()))
def test_codes_are_lossless_on_every_game(played, raw_machine):
    assert_codes_are_lossless(raw_machine(played), 500)


def test_every_pair_of_colours_has_the_code_of_its_maximum():
    indices = np.arange(0, 2 * NUM_COLOURS, 2, dtype=np.uint8)
    first, second = np.meshgrid(indices, indices, indexing="ij")
    own = colours()[:NUM_COLOURS]
    codes = pooled_codes(first, second)
    np.testing.assert_array_equal(colours()[codes], np.maximum(own[:, None], own[None]))
    np.testing.assert_array_equal(codes, codes.T)
    assert len(np.unique(codes)) == len(colours()) == 4335
    assert len(np.unique(colours(), axis=0)) == len(colours())  # no colour has two codes


def test_a_screen_is_its_own_maximum_and_black_is_0():
    indices = np.arange(0, 2 * NUM_COLOURS, 2, dtype=np.uint8)
    np.testing.assert_array_equal(pooled_codes(indices, indices), indices // 2)
    assert colours()[0].tolist() == [0, 0, 0]


def test_tables_cannot_be_written_to():
    with pytest.raises(ValueError, match="read-only"):
        colours()[0] = 1


def test_expanding_turns_each_plane_into_three():
    codes = np.random.default_rng(0).integers(4335, size=(2, 5, 2, 4, 3)).astype(np.uint16)
    planes = expand(codes)
    assert planes.shape == (2, 5, 6, 4, 3)
    for plane in range(2):
        for colour in range(3):
            np.testing.assert_array_equal(
                planes[:, :, 3 * plane + colour], colours()[codes[:, :, plane], colour]
            )


def test_a_network_expands_by_one_lookup():
    torch = pytest.importorskip("torch")
    codes = np.array([[[0, 200], [4334, 127]]], dtype=np.uint16)
    table = torch.from_numpy(colours().copy())
    looked_up = table[torch.from_numpy(codes)[0].long()].permute(2, 0, 1)
    np.testing.assert_array_equal(looked_up.numpy(), expand(codes))


def test_an_observation_is_the_pooled_screen_in_colour(name, emulator, raw_machine):
    settings = {**vars(R2D2_PROTOCOL), "most_noop_frames": 0}
    env, machine = emulator(name, **settings), raw_machine(name)
    first = env.reset()
    assert first.shape == env.observation_shape == (1, 210, 160)
    assert first.dtype == env.frame_dtype == np.uint16
    np.testing.assert_array_equal(expand(first), machine.getScreenRGB().transpose(2, 0, 1))
    rng = np.random.default_rng(1)
    for action in rng.integers(18, size=40).tolist():
        step, screens = env.step(action), []
        for _ in range(4):
            machine.act(machine.getLegalActionSet()[action])
            screens.append(machine.getScreenRGB())
        pooled = np.maximum(screens[-2], screens[-1])
        np.testing.assert_array_equal(expand(step.observation), pooled.transpose(2, 0, 1))


def test_r2d2_sees_raw_rewards_and_lives_mean_nothing(emulator):
    env = emulator("MsPacman", **{**vars(R2D2_PROTOCOL), "most_noop_frames": 0})
    env.reset()
    assert env.num_actions == 18
    steps = []
    while not steps or not steps[-1].terminated:
        steps.append(env.step(int(np.random.default_rng(len(steps)).integers(18))))
    assert {step.lives for step in steps} > {0, 1}
    assert [step.discount for step in steps] == [1.0] * (len(steps) - 1) + [0.0]
    assert all(step.clipped_reward == step.reward for step in steps)
    assert max(step.reward for step in steps) >= 10.0


def test_coloured_lanes_resume_to_the_bit():
    lanes = Lanes("Pong", 2, R2D2_PROTOCOL, seed=3)
    assert lanes.reset().dtype == lanes.frame_dtype == np.uint16
    lanes.step([2, 3])
    state = lanes.state_dict()
    expected = [lanes.step([action, 3]).observations for action in range(5)]
    other = Lanes("Pong", 2, R2D2_PROTOCOL, seed=4)
    other.load_state_dict(state)
    for action, observations in enumerate(expected):
        np.testing.assert_array_equal(other.step([action, 3]).observations, observations)
    stack = state["lanes"][0]["stack"].astype(np.uint8)
    with pytest.raises(ValueError, match=r"state\['stack'\] must be a uint16 array"):
        other.load_state_dict({"lanes": [{**state["lanes"][0], "stack": stack}] * 2})


def test_what_has_no_palette_is_refused():
    with pytest.raises(ValueError, match="colour must be one of 'grey', 'palette'; got 'blue'"):
        Protocol(colour="blue")
    with pytest.raises(ValueError, match="pooled_frames must be at most 2 where colour is"):
        Protocol(colour="palette", pooled_frames=3)
    with pytest.raises(ValueError, match="reward_bound must be finite"):
        Protocol(reward_bound=np.inf)
    with pytest.raises(ValueError, match="colour must be 'grey' for MinAtar"):
        MinAtar(
            "minatar/breakout",
            replace(MINATAR, colour="palette"),
            rng=np.random.default_rng(0),
        )
