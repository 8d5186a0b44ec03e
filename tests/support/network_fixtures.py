"""Fixtures of tests with networks: one thread, and real frames of games."""

import pytest


@pytest.fixture(scope="session", autouse=True)
def one_thread():
    """Small tensors gain nothing from threads, and two test processes would fight for cores."""
    torch = pytest.importorskip("torch")
    torch.set_num_threads(1)


def _frames_of(game, protocol=None, num_states=24, steps_between=7):
    """States of a random walk on the real emulator, some steps apart."""
    import numpy as np

    from ezgreedy.games.atari.emulator import Emulator

    rng = np.random.default_rng(1)
    env = Emulator(game, protocol, rng=np.random.default_rng(0))
    env.reset()
    states = []
    while len(states) < num_states:
        for _ in range(steps_between):
            step = env.step(int(rng.integers(env.num_actions)))
            if step.terminated or step.truncated:
                env.reset()
        states.append(step.observation)
    return np.stack(states)


@pytest.fixture(scope="session")
def frames_of():
    """States of a game by its name, [24, 4, 84, 84], each made once."""
    pytest.importorskip("ale_py")
    from functools import cache

    return cache(_frames_of)


@pytest.fixture(scope="session")
def screens_of():
    """Whole screens of a game in codes of colours, uint16 [24, 1, 210, 160], step by step."""
    pytest.importorskip("ale_py")
    from functools import cache

    from ezgreedy.games.protocol import R2D2_PROTOCOL

    return cache(lambda game: _frames_of(game, R2D2_PROTOCOL, steps_between=1))


@pytest.fixture(scope="session")
def real_frames(frames_of):
    return frames_of("Freeway")
