"""The torso by distinct fields: the same features and gradients as a stack of `nn.Conv2d`."""

import numpy as np
import pytest
import torch
from torch import nn

from ezgreedy.agents.r2d2.learner_settings import R2D2_TORSO
from ezgreedy.games.atari.palette import colours, expand
from ezgreedy.learning import torso as module
from ezgreedy.learning.settings import ATARI_TORSO, DER_TORSO, MINATAR_TORSO, Sight
from ezgreedy.learning.tensor_states import tensor
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
BYTES, CODES = Sight((4, 84, 84)), Sight((1, 210, 160), has_codes=True)
TORSOS = {"Atari": (BYTES, ATARI_TORSO), "DER": (BYTES, DER_TORSO), "R2D2": (CODES, R2D2_TORSO)}
NUM_CODES = len(colours())


def plain_stack(torso):
    """Torch's own layers with the torso's parameters, over bytes."""
    layers, channels = [], torso.sight.input_shape[0]
    for row in torso.convolutions:
        layers += [nn.Conv2d(channels, row.channels, row.size, row.stride), nn.ReLU()]
        channels = row.channels
    dtype = torso.get_parameter("0.weight").dtype
    stack = nn.Sequential(*layers).to(dtype)
    stack.load_state_dict(torso.state_dict())

    def features(frames):
        planes = frames
        if torso.sight.has_codes:
            planes = torch.from_numpy(expand(frames.numpy().view(np.uint16)))
        return stack(planes.to(dtype) / 255.0).flatten(1)

    return features, list(stack.parameters())


def make(name, **changes):
    generator = torch.Generator().manual_seed(0)
    return Torso(*TORSOS[name], generator=generator, **changes)


def noise(name, num_states):
    """Frames in which nothing repeats."""
    sight, most = TORSOS[name][0], NUM_CODES if name == "R2D2" else 256
    dtype = torch.int16 if name == "R2D2" else torch.uint8
    generator = torch.Generator().manual_seed(2)
    return torch.randint(0, most, (num_states, *sight.shape), generator=generator, dtype=dtype)


@pytest.fixture
def states_of(frames_of, screens_of):
    """States of a game as a torso takes them: bytes, or fewer whole screens in codes."""

    def states(name, game):
        if TORSOS[name][0].has_codes:
            return tensor(screens_of(game)[::3], torch.device("cpu"))
        return torch.from_numpy(frames_of(game))

    return states


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
def test_features_and_gradients_are_those_of_convolutions_on_real_frames(game, name, states_of):
    torso = make(name, largest_share=1.0)
    frames = states_of(name, game)
    reference, _ = plain_stack(torso)
    close(torso(frames), reference(frames))  # as it is used, in single precision
    check(torso, frames, split=len(frames) // 2)


@pytest.mark.parametrize("name", TORSOS)
def test_features_and_gradients_are_those_of_convolutions_on_noise(name):
    frames = noise(name, 3 if name == "R2D2" else 6)
    check(make(name, largest_share=1.0), frames, split=2)
    reference, _ = plain_stack(torso := make(name))
    close(torso(frames), reference(frames))


def test_blocks_of_any_size_give_the_same(monkeypatch, states_of):
    monkeypatch.setattr(module, "_BLOCK_BYTES", 50_000)
    check(make("R2D2"), states_of("R2D2", "MsPacman"), split=5)
    monkeypatch.setattr(module, "_BLOCK_BYTES", 1)  # a row at a time
    check(make("DER"), states_of("DER", "Freeway")[:3], split=2)


def test_states_may_be_some_of_the_frames_in_any_order(states_of):
    frames, rows = states_of("R2D2", "Pong"), np.array([5, 1, 6, 0, 2])
    torso = make("R2D2")
    for lanes in (1, 2):
        fields = torso.fields(frames, 3, rows=rows, lanes=lanes)
        expected = torso.of_fields(torso.fields(frames[rows], 3))
        for ours, theirs in zip(torso.of_fields(fields), expected, strict=True):
            assert torch.equal(ours, theirs)


def test_a_call_is_differentiable_and_without_gradients_the_same(real_frames):
    frames = torch.from_numpy(real_frames[:5])
    torso = make("Atari", largest_share=1.0)
    features = torso(frames)
    assert features.shape == (5, 3136) == (5, torso.num_features)
    assert features.requires_grad
    with torch.no_grad():
        assert torch.equal(torso(frames), features)
    with torch.inference_mode():
        assert torch.equal(torso(frames), features)


@pytest.mark.parametrize("name", ["Atari", "R2D2"])
def test_frames_with_little_to_share_take_torch_s_convolutions(name):
    frames, torso = noise(name, 2), make(name)
    assert torso.largest_share == 0.5
    assert torso.fields(frames) is None
    assert torch.equal(torso(frames), torso.dense(frames))


def test_some_torsos_always_or_never_take_torch_s_convolutions():
    frames = noise("Atari", 2)
    # Fields that do not overlap take no more memory than the frames: they never fall back.
    assert make("DER").fields(frames) is not None
    assert make("DER", largest_share=0.0).fields(frames) is None
    # These always do: zeros beyond the edges, a single layer, numbers that are not bytes.
    assert make("DER", padding="same").fields(torch.zeros_like(frames)) is None
    assert Torso(BYTES, MINATAR_TORSO).fields(torch.zeros_like(frames)) is None
    assert make("DER").fields(torch.zeros(2, 4, 84, 84)) is None
    # And other devices; this one stands for them.
    assert make("DER").fields(frames.to("meta")) is None


def test_each_plane_of_codes_is_seen_as_three_of_colour(states_of):
    pairs = states_of("R2D2", "UpNDown").view(4, 2, 210, 160)
    torso = Torso(Sight((2, 210, 160), has_codes=True), R2D2_TORSO)
    assert torso.get_parameter("0.weight").shape == (32, 6, 7, 7)
    check(torso, pairs, split=2)


def test_vectors_pass_through():
    torso = Torso(Sight((6,), largest_pixel=2.0), ())
    assert torso.num_features == 6
    assert torch.equal(torso(torch.ones(3, 6)), torch.full((3, 6), 0.5))


def test_no_frames_give_no_features():
    assert make("DER")(torch.zeros(0, 4, 84, 84, dtype=torch.uint8)).shape == (0, 576)


def test_the_same_frames_give_the_same_bits(real_frames):
    frames = torch.from_numpy(real_frames)
    torso = make("Atari")
    assert torch.equal(torso(frames), torso(frames.clone()))


def test_parameters_have_the_names_and_initial_values_of_a_plain_stack():
    torso = make("DER")
    assert [name for name, _ in torso.named_parameters()] == [
        "0.weight",
        "0.bias",
        "2.weight",
        "2.bias",
    ]
    assert torso.get_parameter("0.weight").abs().max() <= 1 / 10  # 1/√(4 · 25)


def test_shapes_that_do_not_fit_are_refused():
    with pytest.raises(ValueError, match="torso must fit"):
        Torso(Sight((4, 10, 10)), ATARI_TORSO)
    with pytest.raises(ValueError, match=r"frames must have shape \[states, 4, 84, 84\]"):
        make("DER")(torch.zeros(1, 4, 80, 84, dtype=torch.uint8))
    with pytest.raises(ValueError, match="largest_share must lie in"):
        make("DER", largest_share=1.5)


def test_codes_of_no_colour_are_refused(states_of):
    frames = states_of("R2D2", "Pong")[:2].clone()
    frames[1, 0, 100, 80] = NUM_CODES
    with pytest.raises(ValueError, match=f"frames must hold codes of colours below {NUM_CODES}"):
        make("R2D2")(frames)
    frames[1, 0, 100, 80] = -1  # 65,535, as torch takes it
    with pytest.raises(ValueError, match="codes of colours below 4335; got 65535"):
        make("R2D2")(frames)
