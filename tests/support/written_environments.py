"""Environments whose every number is written here, and ways in which they break their promises."""

import gymnasium
import numpy as np
from gymnasium.spaces import Box, Discrete


class Walk(gymnasium.Env):
    """A bright square that walks over a picture; the seed places it, and each move has a price."""

    def __init__(self, shape=(20, 30, 3), dtype=np.uint8, actions=None, length=40, **breach):
        high = 1 if dtype == np.bool_ else 200
        self.observation_space = Box(0, high, shape, dtype)
        self.action_space = Discrete(4) if actions is None else actions
        self.length, self.breach, self.count = length, breach, 0

    def seen(self):
        picture = np.zeros(self.observation_space.shape, self.observation_space.dtype)
        brightness = self.observation_space.high.max()
        row, column = self.place
        colour = [brightness, brightness // 2, brightness // 4]
        has_colours = picture.shape[2:] == (3,)
        spot = (row % picture.shape[0], column % picture.shape[1])
        picture[spot] = colour if has_colours else brightness
        return picture

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.count, self.place = 0, self.np_random.integers(30, size=2)
        return self.breach.get("first", (self.seen(), {}))

    def step(self, action):
        assert self.action_space.contains(action)
        self.count += 1
        self.place = self.place + [(0, 1), (1, 0), (0, -1), (-1, 0)][int(action) % 4]
        reward = 1.5 * float(self.np_random.random())
        answer = [self.seen(), reward, self.count >= self.length, False, {}]
        if self.count == 3:
            answer = self.breach.get("third", lambda answer, env: answer)(answer, self)
        return tuple(answer)


class Loud(Walk):
    """It cannot be closed without a complaint."""

    def close(self):
        raise OSError("never")


class Frugal(Walk):
    """It writes every observation into the same memory."""

    def seen(self):
        self.memory = vars(self).get("memory", np.zeros((20, 30, 3), np.uint8))
        self.memory[:] = super().seen()
        return self.memory


class Forgetful(Walk):
    """Its seed determines nothing."""

    def reset(self, *, seed=None, options=None):
        return super().reset(seed=None)


def changed(position, value):
    def breach(answer, env):
        answer[position] = value(answer[position]) if callable(value) else value
        return answer

    return breach


def failing(answer, env):
    raise OSError("the cable is out")


def growing(answer, env):
    env.action_space = Discrete(5)
    return answer


BREACHES = {
    "dtype drift": (
        changed(0, lambda seen: seen.astype(np.float32)),
        "must be uint8 .*got float32",
    ),
    "narrower dtype": (changed(0, lambda seen: seen > 0), "must be uint8 .*got bool"),
    "shape drift": (changed(0, lambda seen: seen[:-1]), r"\(20, 30, 3\); got .*\(19, 30, 3\)"),
    "out of range": (
        changed(0, lambda seen: seen + 9),
        "must lie in Box.*got values from 9 to 209",
    ),
    "a list": (changed(0, lambda seen: seen.tolist()), "observation must be uint8 .*got list"),
    "no observation": (changed(0, None), "observation must be uint8 .*got NoneType"),
    "NaN reward": (changed(1, float("nan")), "reward must be a finite number; got float nan"),
    "infinite reward": (changed(1, -np.inf), "reward must be a finite number; got float -inf"),
    "text reward": (changed(1, "1"), "reward must be a finite number; got str '1'"),
    "no reward": (changed(1, None), "reward must be a finite number; got NoneType"),
    "array reward": (changed(1, np.array([1.0])), "reward must be a finite number; got ndarray"),
    "flag reward": (changed(1, True), "reward must be a finite number; got bool"),
    "int flag": (changed(2, 0), "terminated must be a bool; got int 0"),
    "text flag": (changed(3, "no"), "truncated must be a bool; got str 'no'"),
    "old tuple": (lambda answer, env: answer[:4], r"step\(\) must return .*got tuple of 4"),
    "failure": (failing, r"step\(\) must not fail; got OSError: the cable is out"),
    "more actions": (growing, r"there must be 4 actions; got Discrete\(5\)"),
}
