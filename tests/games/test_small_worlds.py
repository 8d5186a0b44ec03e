"""The memory chain and DeepSea as deep agents see them: as bsuite has them, and resumable."""

import json

import numpy as np
import pytest
from bsuite.environments.deep_sea import DeepSea
from bsuite.environments.memory_chain import MemoryChain

from ezgreedy.envs.deep_sea import random_mapping
from ezgreedy.games import Lanes, Protocol, make

WORLDS = ("memory_chain/1", "memory_chain/7", "deep_sea/1", "deep_sea/6", "deep_sea/6/3")


def made(name, seed=0):
    return make(name, rng=np.random.default_rng(seed))


@pytest.mark.parametrize("length", [1, 2, 10])
def test_memory_chains_are_those_of_bsuite(length):
    ours, theirs = made(f"memory_chain/{length}"), MemoryChain(length)
    rng = np.random.default_rng(1)
    cues = set()
    for _ in range(30):
        first = ours.reset()
        theirs.reset()
        cue = int(first[2] > 0)
        cues.add(cue)
        theirs._context[:] = cue
        np.testing.assert_array_equal(first, theirs._get_observation()[0])
        is_over = False
        while not is_over:
            action = int(rng.integers(2))
            step, expected = ours.step(action), theirs.step(action)
            np.testing.assert_array_equal(step.observation, expected.observation[0])
            assert (step.reward, step.terminated) == (expected.reward, expected.last())
            is_over = step.terminated
        assert step.episode_frames == length + 1
    assert cues == {0, 1}


@pytest.mark.filterwarnings("ignore:.*debug mode")  # what bsuite calls fixed actions
@pytest.mark.parametrize("size", [1, 3, 8])
def test_deep_seas_are_those_of_bsuite(size):
    ours, theirs = made(f"deep_sea/{size}"), DeepSea(size, randomize_actions=False)
    rng = np.random.default_rng(1)
    for episode in range(20):
        np.testing.assert_array_equal(ours.reset()[0], theirs.reset().observation)
        for _ in range(size):
            action = 1 if episode == 0 else int(rng.integers(2))
            step, expected = ours.step(action), theirs.step(action)
            np.testing.assert_array_equal(step.observation[0], expected.observation)
            assert step.reward == pytest.approx(expected.reward, abs=1e-12)
        assert step.terminated
        assert expected.last()
        if episode == 0:
            assert step.episode_return == pytest.approx(0.99)


def test_a_seed_says_which_action_goes_right_where():
    world, mapping = made("deep_sea/6/3"), random_mapping(6, 3)
    assert 0 < mapping.diagonal().sum() < 6
    world.reset()
    for action in mapping.diagonal().tolist():
        step = world.step(action)
    assert step.episode_return == pytest.approx(0.99)
    assert made("deep_sea/6/4")._sea.mapping.tolist() != mapping.tolist()


@pytest.mark.parametrize("name", WORLDS)
def test_a_saved_world_continues_as_if_nothing_had_happened(name):
    lanes, other = Lanes(name, 3, seed=4), Lanes(name, 3, seed=9)
    rng = np.random.default_rng(0)
    lanes.reset()
    for count in range(40):
        if count == 13:
            other.load_state_dict(lanes.state_dict())
        actions = rng.integers(2, size=3)
        steps = lanes.step(actions)
        if count >= 13:
            again = other.step(actions)
            for key, value in vars(steps).items():
                np.testing.assert_array_equal(getattr(again, key), value, err_msg=key)
    machine = lanes.environments[0].state_dict()["machine"]
    assert json.loads(json.dumps(machine)) == machine


@pytest.mark.parametrize("name", WORLDS)
def test_pictures_are_of_bytes(name):
    world = made(name)
    world.reset()
    picture = world.picture()
    assert (picture.dtype, picture.ndim, picture.shape[2]) == (np.uint8, 3, 3)
    assert picture.max() > 0


@pytest.mark.parametrize(
    "name", ["memory_chain/", "memory_chain/0", "deep_sea/x", "deep_sea/-3", "deep_sea/5/"]
)
def test_worlds_without_a_size_are_refused(name):
    with pytest.raises(
        ValueError, match=r"game must be (memory_chain|deep_sea|deep_sea/5)/ and a number"
    ):
        made(name)


def test_what_has_no_meaning_in_a_small_world_is_refused():
    plain = {"frame_skip": 1, "pooled_frames": 1, "stacked_frames": 1, "most_noop_frames": 0}
    for changes in ({"frame_skip": 4}, {"most_noop_frames": 3}, {"colour": "palette"}):
        protocol = Protocol(**{**plain, **changes})
        for name in ("memory_chain/3", "deep_sea/3"):
            with pytest.raises(ValueError, match=f"{next(iter(changes))} must be"):
                make(name, protocol, rng=np.random.default_rng(0))


@pytest.mark.parametrize(
    ("name", "machine", "message"),
    [
        ("memory_chain/3", {"time": 9, "cue": 0}, "time"),
        ("memory_chain/3", {"time": 1}, "hold time and cue"),
        ("deep_sea/3", 99, "machine"),
    ],
)
def test_states_of_other_worlds_are_refused(name, machine, message):
    world = made(name)
    with pytest.raises(ValueError, match=message):
        world.load_state_dict({**world.state_dict(), "machine": machine})
