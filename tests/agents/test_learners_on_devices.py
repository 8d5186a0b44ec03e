"""Learners on a device and on the processor learn the same, up to rounding.

`make test-cuda` runs these tests on a GPU. Without one they run on the processor, where Rainbow
takes the path of other devices: autograd and torch's Adam instead of gradients written out. So does
R2D2 on frames in colour: torch's convolutions instead of distinct fields.
"""

from dataclasses import replace

import numpy as np
import pytest
import torch

from ezgreedy.agents.r2d2.learner import SequenceLearner
from ezgreedy.agents.rainbow.learner import Learner
from ezgreedy.agents.rainbow.learner_settings import LearnerSettings, NetworkSettings
from ezgreedy.agents.registry import load_policy
from ezgreedy.learning.settings import MINATAR_TORSO, Convolution
from ezgreedy.learning.tensor_states import as_arrays, as_tensors
from ezgreedy.replay.transition_replay import Batch
from ezgreedy.runs.training import Training
from support.small_runs import small_run
from support.windows import NETWORK as RECURRENT
from support.windows import RETURNS, SETTINGS, random_batch

ON_CUDA = pytest.param(
    "cuda",
    marks=[
        pytest.mark.cuda,
        pytest.mark.skipif(not torch.cuda.is_available(), reason="there is no CUDA device"),
    ],
)
on_devices = pytest.mark.parametrize("device", ["cpu", ON_CUDA])
NETWORK = NetworkSettings(
    num_actions=3,
    input_shape=(4, 10, 10),
    torso=MINATAR_TORSO,
    hidden_size=16,
    num_atoms=11,
    largest_pixel=1.0,
)


def rainbow(device=None):
    """A learner on a device, or the reference."""
    settings = LearnerSettings(batch_size=8, updates_per_target_sync=3, learning_rate=1e-3)
    learner = Learner(NETWORK, settings, seed=0, device=device or "cpu")
    if device is not None:
        learner._written = None
    return learner


def transitions(seed):
    rng = np.random.default_rng(seed)
    return Batch(
        frames=rng.integers(0, 2, (2, 8, *NETWORK.input_shape)).astype(np.uint8),
        actions=rng.integers(0, 3, 8),
        returns=rng.normal(0.0, 2.0, 8).astype(np.float32),
        discounts=np.where(rng.random(8) < 0.3, 0.0, 0.97).astype(np.float32),
        weights=rng.uniform(0.2, 1.0, 8),
        slots=np.arange(8),
    )


def recurrent(device=None):
    return SequenceLearner(RECURRENT, SETTINGS, RETURNS, seed=0, device=device or "cpu")


def in_colour(device=None):
    """A learner on a device, or the reference, for codes of colours."""
    torso = (Convolution(6, 4, 2), Convolution(8, 3))
    network = replace(RECURRENT, input_shape=(3, 24, 20), torso=torso, has_codes=True)
    network = replace(network, largest_pixel=255.0)
    learner = SequenceLearner(network, SETTINGS, RETURNS, seed=0, device=device or "cpu")
    if device is not None:
        learner.online.torso.largest_share = learner.target.torso.largest_share = 0.0
    return learner


def codes(seed):
    """Windows in colour, in coarse blocks, so that fields repeat."""
    batch = random_batch(seed, shape=(1, 3, 2))
    drawn = np.random.default_rng(seed).integers(0, 500, batch.observations.shape)
    blocks = drawn.repeat(8, axis=3).repeat(10, axis=4)
    return batch._replace(observations=blocks.astype(np.uint16))


def assert_close(state, other):
    """Nested states whose numbers agree up to rounding."""
    if isinstance(state, dict):
        assert state.keys() == other.keys()
        for name, part in state.items():
            assert_close(part, other[name])
        return
    np.testing.assert_allclose(state, other, rtol=2e-3, atol=2e-5)


KINDS = {
    "rainbow": (rainbow, transitions),
    "r2d2": (recurrent, random_batch),
    "r2d2 in colour": (in_colour, codes),
}


def test_the_reference_in_colour_shares_fields():
    assert in_colour().windows(codes(0)).fields is not None
    assert in_colour("cpu").windows(codes(0)).fields is None


@on_devices
@pytest.mark.parametrize("kind", KINDS)
def test_updates_are_those_of_the_processor(kind, device):
    make, batch_of = KINDS[kind]
    reference, learner = make(), make(device)
    for number in range(6):
        batch = batch_of(number)
        expected, update = reference.update(batch), learner.update(batch)
        np.testing.assert_allclose(update.loss, expected.loss, rtol=1e-3)
        np.testing.assert_allclose(update.gradient_norm, expected.gradient_norm, rtol=1e-3)
        np.testing.assert_allclose(update[1], expected[1], rtol=1e-3, atol=1e-5)
    assert_close(as_arrays(learner.state_dict()), as_arrays(reference.state_dict()))


@on_devices
@pytest.mark.parametrize("kind", KINDS)
def test_a_learner_continues_on_another_device(kind, device):
    make, batch_of = KINDS[kind]
    learner, moved = make(device), make()
    for number in range(4):
        learner.update(batch_of(number))
    saved = as_arrays(learner.state_dict())
    moved.load_state_dict(as_tensors(saved))
    np.testing.assert_equal(as_arrays(moved.state_dict()), saved)  # nothing is lost on the way
    back = make(device)
    back.load_state_dict(as_tensors(as_arrays(moved.state_dict())))
    ours, theirs = back.update(batch_of(9)), moved.update(batch_of(9))
    np.testing.assert_allclose(ours.loss, theirs.loss, rtol=1e-3)


@on_devices
@pytest.mark.parametrize("agent", ["rainbow-ez", "r2d2-ez", "r2d2-bootstrap", "r2d2-rnd"])
def test_a_training_runs_there_and_its_policy_here(agent, device):
    training = Training(replace(small_run(agent), device=device))
    for _ in range(150):
        training.step()
    assert training.agent.num_updates > 0
    state = training.state_dict()
    twin = Training(replace(small_run(agent), device="cpu"))
    twin.load_state_dict(state)
    np.testing.assert_equal(as_arrays(twin.agent.learner.state_dict()), state["agent"]["learner"])
    observations, starts = training.play.observations[:1], np.ones(1, dtype=np.bool_)
    spec, preset = training.agent.spec, training.settings.agent
    for where in ("cpu", device):
        policy = load_policy(preset, spec, state["agent"], lanes=1, seed=3, device=where)
        action = policy.act(observations, starts)
        assert 0 <= action[0] < spec.num_actions
