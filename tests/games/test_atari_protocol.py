"""The protocol on a machine whose every frame is written down; what needs no emulator."""

import numpy as np
import pytest

from ezgreedy.games import Environment, Protocol


class Written(Environment):
    """Shows the number of frames played; rewards, the end and lives come from a script."""

    def __init__(self, script, **settings):
        protocol = Protocol(**{"screen_size": 1, "most_noop_frames": 0, **settings})
        super().__init__("written", 2, (1, 1, 1), protocol, np.random.default_rng(0))
        self.script = script  # a (reward, is over, lives) for each raw frame
        self.position = 0

    def picture(self):
        return np.full((1, 1, 3), 10 * self.position, dtype=np.uint8)

    def _restart(self):
        self.position = 0

    def _act(self, action):
        self.position += 1
        reward, is_over, _ = self.script[self.position - 1]
        return reward, is_over

    def _screen(self):
        return np.full((1, 1), 10 * self.position, dtype=np.uint8)

    def _frame(self, screens):
        return np.maximum.reduce(screens)[None]

    def _lives(self):
        return self.script[self.position - 1][2] if self.position else 3

    def _machine_state(self):
        return self.position

    def _checked_machine_state(self, state):
        return lambda: setattr(self, "position", state)


QUIET = (0.0, False, 3)
OVER = (5.0, True, 3)


@pytest.mark.parametrize(("last_frame", "seen"), [(1, 0), (2, 0), (3, 30), (4, 40)])
def test_frames_that_never_came_count_as_black_and_rewards_so_far_are_summed(last_frame, seen):
    env = Written([(1.0, False, 3)] * (last_frame - 1) + [OVER])
    env.reset()
    step = env.step(0)
    assert step.observation[-1].item() == seen
    assert step.reward == last_frame - 1 + 5.0
    assert step.episode_frames == last_frame
    assert (step.terminated, step.truncated, step.discount) == (True, False, 0.0)


def test_an_end_at_the_cap_is_an_end():
    env = Written([QUIET] * 7 + [OVER], most_episode_frames=8)
    env.reset()
    assert env.step(0)[3:6] == (1.0, False, False)
    assert env.step(0)[3:6] == (0.0, True, False)


def test_the_cap_bootstraps_unless_a_life_was_lost_there():
    for lives, discount in [(3, 1.0), (2, 0.0)]:
        env = Written([QUIET] * 7 + [(0.0, False, lives)], most_episode_frames=8)
        env.reset()
        env.step(0)
        assert env.step(0)[3:6] == (discount, False, True)


def test_gaining_a_life_changes_no_discount():
    env = Written([(0.0, False, 4)] * 4)
    env.reset()
    assert env.step(0).discount == 1.0


def test_rewards_are_clipped_after_they_are_summed():
    env = Written([(3.0, False, 3), (-2.5, False, 3), QUIET, QUIET])
    env.reset()
    assert env.step(0)[1:3] == (0.5, 0.5)


def test_a_game_that_ends_within_the_noops_begins_anew():
    env = Written([QUIET, OVER] + [QUIET] * 8, most_noop_frames=30)
    for _ in range(20):
        env.reset()
        assert env.position in (0, 1)  # frames into the game that goes on
        assert not env.step(0).terminated or env.position == 2


def test_steps_need_a_running_episode():
    env = Written([OVER])
    with pytest.raises(RuntimeError, match="has not begun; call reset before step"):
        env.step(0)
    env.reset()
    env.step(0)
    with pytest.raises(RuntimeError, match="is over; call reset before step"):
        env.step(0)
    env.reset()
    env.step(0)


@pytest.mark.parametrize("action", [-1, 2, 1.0, True, None])
def test_actions_out_of_range_are_refused_and_play_nothing(action):
    env = Written([QUIET] * 4)
    env.reset()
    with pytest.raises((TypeError, ValueError), match="action must"):
        env.step(action)
    assert env.position == 0


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"frame_skip": 0}, "frame_skip must be at least 1; got 0"),
        ({"frame_skip": 1}, "pooled_frames must be at most frame_skip, which is 1; got 2"),
        ({"most_episode_frames": 10}, "multiple of frame_skip, which is 4; got 10"),
        ({"sticky_probability": 1.5}, "sticky_probability must lie in"),
        ({"most_noop_frames": -1}, "most_noop_frames must be at least 0"),
        ({"reward_bound": float("nan")}, "reward_bound must be finite"),
    ],
)
def test_settings_that_are_wrong_or_contradict_each_other_are_refused(settings, words):
    with pytest.raises(ValueError, match=words):
        Protocol(**settings)


def test_the_defaults_are_the_papers_protocol():
    protocol = Protocol()
    assert (protocol.frame_skip, protocol.pooled_frames, protocol.stacked_frames) == (4, 2, 4)
    assert (protocol.screen_size, protocol.most_noop_frames) == (84, 30)
    assert (protocol.sticky_probability, protocol.has_full_action_set) == (0.0, False)
    assert protocol.most_episode_frames == 27_000 * protocol.frame_skip
    assert protocol.zeroes_discount_on_life_loss
    assert protocol.reward_bound == 1.0


@pytest.mark.parametrize("name", ["frame_skip", "stacked_frames", "most_noop_frames"])
def test_a_file_cannot_ask_for_frames_without_end(name):
    with pytest.raises(ValueError, match=f"{name} must (be at most|lie in).*; got {2**31}"):
        Protocol(**{name: 2**31})
