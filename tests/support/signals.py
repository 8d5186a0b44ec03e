"""An environment with a known optimum: light on the left or on the right, and the same to press."""

import gymnasium
import numpy as np
from gymnasium.spaces import Box, Discrete

NUM_STEPS = 10  # also the best return


class Signals(gymnasium.Env):
    """Pressing where the light is earns 1, pressing elsewhere costs 1."""

    observation_space = Box(0, 1, (6, 6, 1), np.uint8)
    action_space = Discrete(2)

    def _seen(self):
        self._side = int(self.np_random.integers(2))
        picture = np.zeros((6, 6, 1), np.uint8)
        picture[:, 3 * self._side : 3 * self._side + 3] = 1
        return picture

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self._time = 0
        return self._seen(), {}

    def step(self, action):
        reward = 1.0 if int(action) == self._side else -1.0
        self._time += 1
        return self._seen(), reward, self._time == NUM_STEPS, False, {}


gymnasium.register("Signals-v0", Signals)
