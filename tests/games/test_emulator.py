"""Every item of the protocol, on the real emulator."""

import re
import sys

import ale_py
import numpy as np
import pytest
from PIL import Image

from ezgreedy.games import Emulator, Lanes, Protocol
from ezgreedy.games.atari.emulator import grey
from ezgreedy.packages import install_command

NOOP, FIRE = 0, 1


def actions_for(env, count, seed=1):
    return np.random.default_rng(seed).integers(env.num_actions, size=count).tolist()


def plain_frame(before_last, last):
    """The maximum of two screens, in grey, then shrunk; written out again."""
    pooled = np.maximum(before_last, last).astype(np.int64)
    in_grey = (pooled @ np.array([299, 587, 114]) // 1000).astype(np.uint8)
    return np.array(Image.fromarray(in_grey).resize((84, 84), Image.Resampling.BILINEAR))


def tape(env, actions):
    """All that is seen while the actions are played, new episodes begun where they must be."""
    seen = []
    for action in actions:
        step = env.step(action)
        seen.append((step.observation.tobytes(), *step[1:]))
        if step.terminated or step.truncated:
            seen.append(env.reset().tobytes())
    return seen


def test_a_step_is_four_raw_acts_and_shows_the_maximum_of_the_last_two(name, emulator, raw_machine):
    env, machine = emulator(name), raw_machine(name)
    env.reset()
    pooling_matters = False
    for count, action in enumerate(actions_for(env, 70), start=1):
        step = env.step(action)
        screens, reward = [], 0
        for _ in range(4):
            reward += machine.act(machine.getMinimalActionSet()[action])
            screens.append(machine.getScreenRGB())
        assert step.reward == reward
        assert step.episode_frames == 4 * count == machine.getEpisodeFrameNumber()
        assert np.array_equal(env.picture(), screens[-1])
        assert np.array_equal(step.observation[-1], plain_frame(screens[-2], screens[-1]))
        pooling_matters |= not np.array_equal(
            step.observation[-1], plain_frame(screens[-1], screens[-1])
        )
        assert (step.lives, step.terminated) == (machine.lives(), machine.game_over())
        if step.terminated:
            break
    assert pooling_matters


def test_grey_is_the_weighted_sum_cut_off_not_rounded():
    colours = np.random.default_rng(0).integers(256, size=(40, 50, 3)).astype(np.uint8)
    greys = grey(colours)
    for (red, green, blue), shade in zip(colours.reshape(-1, 3).tolist(), greys.flat, strict=True):
        assert shade == (299 * red + 587 * green + 114 * blue) // 1000
    assert grey(np.full((1, 1, 3), 255, dtype=np.uint8)).item() == 255


def test_stacks_begin_black_and_move_on_by_one(name, emulator):
    env = emulator(name)
    before = env.reset()
    assert before.shape == env.observation_shape == (4, 84, 84)
    assert before.dtype == np.uint8
    assert not before[:3].any()
    assert before[3].any()
    for action in actions_for(env, 8):
        after = env.step(action).observation
        assert np.array_equal(after[:3], before[1:])
        before = after
    assert not env.reset()[:3].any()


def test_observations_share_no_memory(emulator):
    env = emulator("Breakout")
    first = env.reset()
    first[:] = 7
    second = env.step(NOOP).observation
    assert (second[:3] != 7).any()
    kept = second.copy()
    env.step(FIRE)
    assert np.array_equal(second, kept)


def test_episodes_begin_with_1_to_30_raw_noops_from_the_seed(emulator):
    env = emulator("Freeway", seed=5, most_noop_frames=30)
    expected = np.random.default_rng(5)
    counts = set()
    for _ in range(50):
        env.reset()
        noops = env._machine.getEpisodeFrameNumber()
        assert noops == expected.integers(1, 30, endpoint=True)
        counts.add(noops)
    assert 1 <= min(counts) <= 3
    assert 28 <= max(counts) <= 30


def test_noops_are_noops_and_fire_is_not_pressed(emulator, raw_machine):
    env, machine = emulator("Breakout", most_noop_frames=30), raw_machine("Breakout")
    env.reset()
    for _ in range(env._machine.getEpisodeFrameNumber()):
        machine.act(machine.getMinimalActionSet()[NOOP])
    assert np.array_equal(env.picture(), machine.getScreenRGB())
    steps = [env.step(NOOP) for _ in range(60)]  # the ball waits to be served
    assert {(step.reward, step.lives, step.discount) for step in steps} == {(0.0, 5, 1.0)}


def test_nothing_but_the_noops_is_random(name, emulator):
    one, other = emulator(name, seed=0), emulator(name, seed=1)
    assert np.array_equal(one.reset(), other.reset())
    actions = actions_for(one, 60)
    assert tape(one, actions) == tape(other, actions)


def test_actions_stick_as_often_as_they_are_told_to(emulator):
    stuck, idle = emulator("Pong", sticky_probability=1.0), emulator("Pong")
    stuck.reset(), idle.reset()
    actions = actions_for(idle, 40)
    assert tape(stuck, actions) == tape(idle, [NOOP] * 40)
    free, sticky = emulator("Pong"), emulator("Pong", sticky_probability=0.25)
    free.reset(), sticky.reset()
    assert tape(sticky, actions) != tape(free, actions)


def test_sticky_actions_are_off_in_the_emulator_itself(name, emulator):
    machine = emulator(name)._machine
    assert machine.getFloat("repeat_action_probability") == 0.0  # the emulator's own default is ¼
    assert machine.getInt("frame_skip") == 1
    assert ale_py.ALEInterface().getFloat("repeat_action_probability") == 0.25


def test_the_action_set_is_minimal_or_full(emulator):
    assert emulator("Freeway").num_actions == 3
    full = emulator("Freeway", has_full_action_set=True)
    assert full.num_actions == 18
    full.reset()
    full.step(17)
    minimal = emulator("Freeway")
    minimal.reset()
    with pytest.raises(ValueError, match="action must be at most 2"):
        minimal.step(3)


def test_actions_that_a_game_does_not_allow_are_noops(emulator):
    # Skiing is the one game of the 57 that does not allow all 18: FIRE is not among its nine.
    one, other = emulator("Skiing", has_full_action_set=True), emulator("Skiing")
    assert np.array_equal(one.reset(), other.reset())
    assert tape(one, [FIRE] * 20) == tape(other, [NOOP] * 20)


def play_breakout(env):
    """Serves and never moves until the game is over."""
    before, steps = env.reset(), []
    for count in range(1000):
        step = env.step(FIRE if count % 2 else NOOP)
        assert np.array_equal(step.observation[:-1], before[1:])  # also across a lost life
        before = step.observation
        steps.append(step)
        if step.terminated:
            break
    return steps


def test_a_lost_life_zeroes_the_discount_and_ends_nothing(emulator):
    steps = play_breakout(emulator("Breakout"))
    lives = [5] + [step.lives for step in steps]
    losses = [count for count in range(len(steps)) if lives[count + 1] < lives[count]]
    assert len(losses) == 5
    assert [count for count, step in enumerate(steps) if step.discount == 0.0] == losses
    assert [count for count, step in enumerate(steps) if step.terminated] == losses[-1:]
    assert not any(step.truncated for step in steps)
    assert steps[-1].episode_return == sum(step.reward for step in steps)  # over all five lives


def test_lives_may_also_leave_the_discount_alone(emulator):
    steps = play_breakout(emulator("Breakout", zeroes_discount_on_life_loss=False))
    assert [step.discount for step in steps] == [1.0] * (len(steps) - 1) + [0.0]


def test_the_cap_truncates_and_bootstraps(name, emulator):
    env = emulator(name, most_episode_frames=40, most_noop_frames=30)
    env.reset()
    steps = [env.step(NOOP) for _ in range(10)]
    assert [step.truncated for step in steps] == [False] * 9 + [True]
    assert not any(step.terminated for step in steps)
    assert {step.discount for step in steps} == {1.0}
    with pytest.raises(RuntimeError, match="is over; call reset before step"):
        env.step(NOOP)
    env.reset()
    assert env.step(NOOP).episode_frames == 4


def test_raw_rewards_are_returned_and_clipped_ones_given_beside_them(emulator):
    env = emulator("MsPacman")
    env.reset()
    steps = [env.step(action) for action in actions_for(env, 150)]
    assert max(step.reward for step in steps) >= 10.0
    assert {step.clipped_reward for step in steps} == {0.0, 1.0}
    assert all(step.clipped_reward == np.clip(step.reward, -1, 1) for step in steps)
    assert steps[-1].episode_return == sum(step.reward for step in steps)


def test_scores_are_raw_and_of_the_whole_game(raw_machine):
    # Neither of clipped rewards nor of single lives, also where the next game has begun.
    lanes = Lanes("MsPacman", 1, Protocol(most_noop_frames=0), seed=0)
    machine = raw_machine("MsPacman")
    lanes.reset()
    score, clipped, lives = 0, 0.0, set()
    for action in actions_for(lanes, 2000):
        steps = lanes.step([action])
        for _ in range(4):
            score += machine.act(machine.getMinimalActionSet()[action])
        lives.add(machine.lives())
        clipped += steps.clipped_rewards[0]
        if steps.finished[0]:
            break
    assert machine.game_over()
    assert lives == {0, 1, 2, 3}
    assert steps.episode_returns[0] == score > clipped + 100
    assert lanes.step([NOOP]).episode_returns[0] == 0.0


def test_lost_points_are_clipped_too(emulator):
    env = emulator("Pong", reward_bound=0.5)
    env.reset()
    steps = [env.step(NOOP) for _ in range(100)]
    assert {(step.reward, step.clipped_reward) for step in steps} == {(0.0, 0.0), (-1.0, -0.5)}


def assert_plain(value):
    if isinstance(value, dict):
        assert all(isinstance(key, str) for key in value)
        value = list(value.values())
    if isinstance(value, list):
        for item in value:
            assert_plain(item)
    else:
        assert value is None or type(value) in (bool, int, float, str, bytes, np.ndarray)


def test_a_restored_game_continues_bit_for_bit(name, emulator):
    # Random stickiness and no-ops, short episodes: everything that a state must hold.
    settings = {"sticky_probability": 0.25, "most_noop_frames": 30, "most_episode_frames": 160}
    env = emulator(name, seed=3, **settings)
    env.reset()
    actions = actions_for(env, 100)
    tape(env, actions[:37])
    state = env.state_dict()
    assert_plain(state)
    assert type(state["machine"]) is bytes
    continued = tape(env, actions[37:])

    other = emulator(name, seed=99, **settings)
    other.load_state_dict(state)
    assert tape(other, actions[37:]) == continued
    env.load_state_dict(state)  # and the state itself has not moved on
    assert tape(env, actions[37:]) == continued


def test_after_loading_a_state_pictures_are_right_from_the_next_step_on(emulator):
    env, other = emulator("Pong"), emulator("Pong")
    env.reset(), tape(env, [2] * 30)
    other.load_state_dict(env.state_dict())
    env.step(NOOP), other.step(NOOP)
    assert np.array_equal(env.picture(), other.picture())
    kept = env.picture().copy()
    env.picture()[:] = 0
    assert np.array_equal(env.picture(), kept)


def test_without_the_package_its_extra_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "ale_py", None)
    words = rf"Pong needs ale_py, .* \({re.escape(install_command('deep'))}\)"
    with pytest.raises(ValueError, match=words):
        Emulator("Pong", rng=np.random.default_rng(0))


def test_foreign_states_are_refused_and_change_nothing(emulator):
    env = emulator("Pong")
    env.reset()
    env.step(2)
    state = env.state_dict()
    pieces = {
        "format": 2,
        "name": "Breakout",
        "protocol": {**state["protocol"], "frame_skip": 2},
        "stack": state["stack"][:3],
        "rng": {"bit_generator": "MT19937"},
        "machine": state["machine"][:-4],
        "last_action": 6,
        "is_running": 1,
    }
    for key, piece in pieces.items():
        with pytest.raises((TypeError, ValueError), match=f"state\\['{key}'\\] must"):
            env.load_state_dict({**state, key: piece})
    for machine in (b"", b"another file" * 1200, "text"):
        with pytest.raises((TypeError, ValueError), match="of the emulator"):
            env.load_state_dict({**state, "machine": machine})
    with pytest.raises(ValueError, match=r"missing \['rng'\], unknown \['extra'\]"):
        env.load_state_dict({**{k: v for k, v in state.items() if k != "rng"}, "extra": 1})
    after = env.state_dict()
    assert np.array_equal(after.pop("stack"), state.pop("stack"))
    assert after == state


CHANGES = {
    "frame_skip": 2,
    "pooled_frames": 1,
    "screen_size": 42,
    "stacked_frames": 2,
    "most_noop_frames": 0,
    "sticky_probability": 0.5,
    "has_full_action_set": True,
    "most_episode_frames": 80,
    "zeroes_discount_on_life_loss": False,
    "reward_bound": 0.5,
    "colour": "palette",
}


def test_every_setting_matters():
    assert set(CHANGES) == set(Protocol.__dataclass_fields__)

    def played(**settings):
        env = Emulator("Breakout", Protocol(**settings), rng=np.random.default_rng(0))
        return env.reset().tobytes(), tape(env, [FIRE, 3, 3, 3] * 25), env.num_actions

    usual = played()
    assert played() == usual
    for setting, value in CHANGES.items():
        assert played(**{setting: value}) != usual, setting
