"""Why evaluation has our own lanes: the vectorised emulator plays alike and shows other pixels."""

import numpy as np
import pytest
from ale_py.vector_env import AtariVectorEnv
from gymnasium.vector import AutoresetMode

from ezgreedy.games import Lanes, Protocol


@pytest.mark.parametrize(
    ("name", "rom"), [("Freeway", "freeway"), ("Breakout", "breakout"), ("Pong", "pong")]
)
def test_the_vectorised_emulator_plays_alike_and_shows_other_pixels(name, rom):
    lanes = Lanes(name, 2, Protocol(most_noop_frames=0), seed=0)
    vectorised = AtariVectorEnv(
        rom,
        2,
        autoreset_mode=AutoresetMode.SAME_STEP,
        noop_max=0,
        reward_clipping=False,
        use_fire_reset=False,
    )
    lanes.reset()
    vectorised.reset(seed=0)
    differences = []
    for row in np.random.default_rng(0).integers(lanes.num_actions, size=(100, 2)):
        steps = lanes.step(row)
        seen, rewards, terminated, truncated, _ = vectorised.step(row)
        assert np.array_equal(steps.rewards, rewards)
        assert np.array_equal(steps.terminated, terminated)
        assert np.array_equal(steps.truncated, truncated)
        differences.append(np.abs(steps.observations.astype(int) - seen.astype(int)).mean())
    # An agent that learned from the one would be examined on the other.
    assert 0.05 < np.mean(differences) < 5.0
