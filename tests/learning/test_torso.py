"""The torso by distinct fields: the same features and gradients as a stack of `nn.Conv2d`."""

import numpy as np
import pytest
import torch
from torch import nn

from ezgreedy.learning.settings import ATARI_TORSO, DER_TORSO, Convolution
from ezgreedy.learning.torso import Torso

GAMES = (
    "Alien",
    "Breakout",
    "Freeway",
    "Frostbite",
    "Hero",
    "Krull",
    "MontezumaRevenge",
    "MsPacman",
    "Pong",
    "UpNDown",
)
TORSOS = {"Atari": ATARI_TORSO, "DER": DER_TORSO}


def plain_stack(torso):
    """Torch's own layers with the torso's parameters."""
    layers, channels = [], torso.input_shape[0]
    for row in torso.convolutions:
        layers += [nn.Conv2d(channels, row.channels, row.size, row.stride), nn.ReLU()]
        channels = row.channels
    dtype = torso[0].weight.dtype
    stack = nn.Sequential(*layers).to(dtype)
    stack.load_state_dict(torso.state_dict())
    return lambda frames: stack(frames.to(dtype) / 255.0).flatten(1), list(stack.parameters())


def make(convolutions, **changes):
    generator = torch.Generator().manual_seed(0)
    return Torso((4, 84, 84), convolutions, generator=generator, **changes)


def close(ours, theirs):
    """Equal up to the order of sums, on the scale of the largest entry."""
    assert ours.dtype == theirs.dtype
    tolerance = 1e-12 if theirs.dtype == torch.float64 else 2e-5
    assert (ours - theirs).abs().max() <= tolerance * theirs.abs().max().clamp_min(1e-12)


def check(torso, frames, split):
    """Both groups' features, and the first group's gradients, with twice the usual digits.

    In single precision a unit within rounding of 0 may be on in one and off in the other.
    """
    torso = torso.double()
    reference, parameters = plain_stack(torso)
    fields = torso.fields(frames, split)
    assert fields is not None
    first, second = torso.of_fields(fields)
    expected = reference(frames)
    close(first, expected[:split])
    close(second, expected[split:].detach())
    close(torso.of_second(fields), expected[split:].detach())
    assert not second.requires_grad
    delta = torch.randn(first.shape, generator=torch.Generator().manual_seed(1))
    ours = torch.autograd.grad(first, list(torso.parameters()), delta)
    theirs = torch.autograd.grad(reference(frames[:split]), parameters, delta)
    for gradient, other in zip(ours, theirs, strict=True):
        assert gradient.shape == other.shape
        close(gradient, other)


@pytest.mark.parametrize("name", TORSOS)
@pytest.mark.parametrize("game", GAMES)
def test_features_and_gradients_are_those_of_convolutions_on_real_frames(game, name, frames_of):
    torso = make(TORSOS[name], largest_share=1.0)
    frames = torch.from_numpy(frames_of(game))
    reference, _ = plain_stack(torso)
    close(torso(frames), reference(frames))  # as it is used, in single precision
    check(torso, frames, split=12)


@pytest.mark.parametrize("name", TORSOS)
def test_features_and_gradients_are_those_of_convolutions_on_noise(name):
    generator = torch.Generator().manual_seed(2)
    noise = torch.randint(0, 256, (6, 4, 84, 84), generator=generator, dtype=torch.uint8)
    check(make(TORSOS[name], largest_share=1.0), noise, split=4)
    reference, _ = plain_stack(torso := make(TORSOS[name]))
    close(torso(noise), reference(noise))


def test_a_call_is_differentiable_and_without_gradients_the_same(real_frames):
    frames = torch.from_numpy(real_frames[:5])
    torso = make(ATARI_TORSO, largest_share=1.0)
    features = torso(frames)
    assert features.shape == (5, 3136) == (5, torso.num_features)
    assert features.requires_grad
    with torch.no_grad():
        assert torch.equal(torso(frames), features)
    with torch.inference_mode():
        assert torch.equal(torso(frames), features)


def test_frames_with_little_to_share_take_torch_s_convolutions():
    noise = np.random.default_rng(0).integers(0, 256, (2, 4, 84, 84)).astype(np.uint8)
    frames = torch.from_numpy(noise)
    torso = make(ATARI_TORSO)
    assert torso.largest_share == 0.5
    assert torso.fields(frames) is None
    assert torch.equal(torso(frames), torso.dense(frames))
    # Fields that do not overlap take no more memory than the frames: they never fall back.
    assert make(DER_TORSO).fields(frames) is not None
    assert make(DER_TORSO, largest_share=0.0).fields(frames) is None


def test_no_frames_give_no_features():
    assert make(DER_TORSO)(torch.zeros(0, 4, 84, 84, dtype=torch.uint8)).shape == (0, 576)


def test_the_same_frames_give_the_same_bits(real_frames):
    frames = torch.from_numpy(real_frames)
    torso = make(ATARI_TORSO)
    assert torch.equal(torso(frames), torso(frames.clone()))


def test_parameters_have_the_names_and_initial_values_of_a_plain_stack():
    torso = make(DER_TORSO)
    assert [name for name, _ in torso.named_parameters()] == [
        "0.weight",
        "0.bias",
        "2.weight",
        "2.bias",
    ]
    assert torso[0].weight.abs().max() <= 1 / 10  # 1/√(4 · 25)


def test_shapes_that_do_not_fit_are_refused():
    with pytest.raises(ValueError, match="torso must fit"):
        Torso((4, 10, 10), ATARI_TORSO)
    with pytest.raises(ValueError, match=r"frames must have shape \[states, 4, 84, 84\]"):
        make(DER_TORSO)(torch.zeros(1, 4, 80, 84, dtype=torch.uint8))
    with pytest.raises(ValueError, match="largest_share must lie in"):
        make((Convolution(4, 8, 4),), largest_share=1.5)
