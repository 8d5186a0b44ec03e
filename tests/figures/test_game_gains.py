import pytest

from ezgreedy.figures import game_gains


def condition(game, epsilon, policy, gain):
    return {"game": game, "epsilon": epsilon, "policy": policy, "gain": gain}


def overall(epsilon, policy, more, less):
    return {
        "epsilon": epsilon,
        "policy": policy,
        "episode_up": more,
        "episode_down": less,
        "episode_surely_up": more // 2,
        "episode_surely_down": 0,
        "step_up": more,
        "step_down": less,
        "step_surely_up": 0,
        "step_surely_down": 0,
        "first_up": less,
        "first_down": more,
        "first_surely_up": 0,
        "first_surely_down": 0,
        "cells_ratio": [1.5, 1.2, 1.8],
        "memories_ratio": [1.0, 0.9, 1.1],
    }


def names(axis):
    return [label.get_text() for label in axis.get_yticklabels()]


def test_games_stand_in_the_order_of_their_gain_at_the_first_epsilon():
    data = {
        "conditions": [
            {"game": "Pong", "epsilon": 1.0, "policy": "ε-greedy"},
            condition("Pong", 1.0, "a", [-2.0, -3.0, -1.0]),
            condition("Alien", 1.0, "a", [0.5, 0.0, 1.0]),
            condition("Freeway", 1.0, "a", [7.0, 5.0, 9.0]),
            condition("Pong", 0.1, "a", [1.0, 0.0, 2.0]),
            condition("Alien", 0.1, "a", [2.0, 0.0, 3.0]),
            condition("Freeway", 0.1, "a", [3.0, 0.0, 4.0]),
            condition("Pong", 1.0, "not shown", [99.0, 99.0, 99.0]),
        ]
    }
    pure, gentle = game_gains.gains_by_game(data, ["a"]).axes
    assert names(pure) == ["Freeway", "Alien", "Pong"]
    assert pure.get_ylim()[0] > pure.get_ylim()[1]  # the first on top
    (dots,) = [line for line in gentle.lines if line.get_marker() == "o"]
    assert list(dots.get_xdata()) == [3.0, 2.0, 1.0]
    assert gentle.get_title() == "ε = 0.1"


def test_bars_show_how_many_games_on_either_side():
    data = {"overall": [overall(1.0, "a", 30, 4), overall(1.0, "b", 0, 57)]}
    rewards, steps, firsts, places = game_gains.over_games(data).axes
    assert sorted(bar.get_width() for bar in rewards.patches) == [-57, -4, 0, 0, 0, 0, 15, 30]
    assert sorted(bar.get_width() for bar in firsts.patches) == [-30, 0, 0, 0, 0, 0, 4, 57]
    assert steps.get_title() == "ε = 1: reward per step"
    assert {text.get_text() for text in rewards.texts} == {"30", "4", "0", "57"}
    dots = [line for line in places.lines if line.get_marker() == "o"]
    assert [list(line.get_xdata()) for line in dots] == [[1.5, 1.5], [1.0, 1.0]]
    assert names(rewards) == ["a", "b"]
    assert rewards.get_xlim() == pytest.approx((-1.25 * 57, 1.25 * 57))
