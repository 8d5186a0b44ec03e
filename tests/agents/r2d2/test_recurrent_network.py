"""The recurrent network: sizes, what it remembers and is told, heads, and whence its values."""

import itertools
from dataclasses import replace

import pytest
import torch
from torch import nn

from ezgreedy.agents.r2d2.learner_settings import RecurrentNetworkSettings
from ezgreedy.agents.r2d2.network import RecurrentNetwork, State
from ezgreedy.learning import torso
from ezgreedy.learning.settings import Convolution
from support.windows import NETWORK

T, BATCH = 7, 5


def generator(seed=0):
    return torch.Generator().manual_seed(seed)


def make(seed=0, **changes):
    return RecurrentNetwork(replace(NETWORK, **changes), generator(seed))


def make_inputs(settings=NETWORK, num_steps=T, batch=BATCH, seed=1):
    source = generator(seed)
    shape = (num_steps, batch, *settings.input_shape)
    frames = torch.randint(0, 2, shape, generator=source, dtype=torch.uint8)
    actions = torch.randint(-1, 3, (num_steps, batch), generator=source)
    rewards = torch.randn(num_steps, batch, generator=source) * 3.0
    shape = (2, batch, *settings.state_shape)
    state = State(*(torch.randn(shape, generator=source) * 0.5))
    return frames, actions, rewards, state


def count(network):
    return sum(parameter.numel() for parameter in network.parameters())


def test_the_atari_network_has_the_size_of_the_paper_s():
    network = RecurrentNetwork(RecurrentNetworkSettings(num_actions=18), generator())
    assert count(network) == 5_705_683
    assert count(network.torso) == 408_512
    assert count(network.features) == 2_621_952
    assert count(network.memory) == 2_140_160
    assert count(network.streams) == 535_059


def test_padding_to_the_same_size_makes_it_larger():
    settings = RecurrentNetworkSettings(num_actions=18, padding="same")
    network = RecurrentNetwork(settings, generator())
    assert network.features.weight.shape == (1, 512, 14 * 10 * 128)
    assert count(network) == 12_259_283


def test_heads_repeat_all_but_the_torso():
    heads = count(make(num_heads=4)) - count(make().torso)
    assert heads == 4 * (count(make()) - count(make().torso))
    shared = count(make(num_heads=4, shares_memory=True)) - count(make())
    assert shared == 3 * count(make().streams)


def take(layer, stacked, head, suffix=""):
    """Copy one head's parameters into a layer of torch's own."""
    with torch.no_grad():
        for name, parameter in stacked.named_parameters():
            getattr(layer, name + suffix).copy_(parameter[head])


def plain_twin(network, head=0):
    """The same network of torch's own layers, one head of it."""
    settings = network.settings
    memory_head = 0 if settings.shares_memory else head
    layers = {
        "features": nn.Linear(network.features.weight.shape[2], settings.feature_size),
        "memory": nn.LSTM(settings.feature_size + settings.num_actions + 1, settings.memory_size),
    }
    for name, outputs in {"value": 1, "advantage": settings.num_actions}.items():
        layers[f"{name}.0"] = nn.Linear(settings.memory_size, settings.hidden_size)
        layers[f"{name}.2"] = nn.Linear(settings.hidden_size, outputs)
    take(layers["features"], network.features, memory_head)
    take(layers["memory"], network.memory, memory_head, "_l0")
    for stream, index in itertools.product(("value", "advantage"), (0, 2)):
        take(layers[f"{stream}.{index}"], network.streams[stream][index], head)

    def forward(frames, actions, rewards, h, c):
        seen = network.torso(frames.flatten(0, 1).float() / settings.largest_pixel).flatten(1)
        seen = layers["features"](seen).relu().view(*actions.shape, -1)
        done = torch.zeros(*actions.shape, settings.num_actions)
        for t, row in zip(*torch.nonzero(actions >= 0, as_tuple=True), strict=True):
            done[t, row, actions[t, row]] = 1.0
        inputs = torch.cat([seen, done, rewards.unsqueeze(-1)], dim=-1)
        outputs, (h, c) = layers["memory"](inputs, (h[None], c[None]))
        value = layers["value.2"](layers["value.0"](outputs).relu())
        advantage = layers["advantage.2"](layers["advantage.0"](outputs).relu())
        return value + advantage - advantage.mean(-1, keepdim=True), h[0], c[0]

    return forward, layers


def test_values_and_states_equal_those_of_torch_s_own_layers():
    network = make()
    *inputs, state = make_inputs()
    q, following = network(*inputs, state)
    expected = plain_twin(network)[0](*inputs, *state)
    assert q.shape == (T, BATCH, 3)
    for ours, theirs in zip((q, *following), expected, strict=True):
        torch.testing.assert_close(ours, theirs, rtol=0.0, atol=1e-6)


@pytest.mark.parametrize("shares_memory", [False, True])
def test_each_head_equals_a_network_of_its_own(shares_memory):
    network = make(num_heads=3, shares_memory=shares_memory)
    *inputs, state = make_inputs(network.settings)
    q, following = network(*inputs, state)
    assert q.shape == (T, BATCH, 3, 3)
    for head in range(3):
        own = state if shares_memory else State(*(part[:, head] for part in state))
        values, h, _ = plain_twin(network, head)[0](*inputs, *own)
        torch.testing.assert_close(q[:, :, head], values, rtol=0.0, atol=1e-6)
        ours = following.h if shares_memory else following.h[:, head]
        torch.testing.assert_close(ours, h, rtol=0.0, atol=1e-6)
    assert not torch.allclose(q[:, :, 0], q[:, :, 1], atol=1e-3)


def test_one_head_is_the_network_without_heads_to_the_last_bit():
    plain, headed = make(), make(num_heads=1)
    *inputs, state = make_inputs()
    q, following = plain(*inputs, state)
    headed_q, headed_following = headed(*inputs, State(*(part[:, None] for part in state)))
    assert torch.equal(q, headed_q[:, :, 0])
    assert torch.equal(following.c, headed_following.c[:, 0])


@pytest.mark.parametrize("num_heads", [None, 3])
@pytest.mark.parametrize("shares_memory", [False, True])
def test_steps_equal_one_unrolled_pass(num_heads, shares_memory):
    network = make(num_heads=num_heads, shares_memory=shares_memory)
    *inputs, state = make_inputs(network.settings)
    q, following = network(*inputs, state)
    stepped = []
    for t in range(T):
        step_q, state = network.step(*(part[t] for part in inputs), state)
        stepped.append(step_q)
    torch.testing.assert_close(torch.stack(stepped), q, rtol=0.0, atol=1e-6)
    torch.testing.assert_close(state.h, following.h, rtol=0.0, atol=1e-6)
    torch.testing.assert_close(state.c, following.c, rtol=0.0, atol=1e-6)


def test_advancing_leads_to_the_same_state_as_looking_at_values():
    network = make()
    frames, *inputs = make_inputs()
    state = network.advance(network.look(frames), *inputs)
    assert torch.equal(state.c, network(frames, *inputs)[1].c)


def test_lanes_do_not_see_each_other():
    network = make(num_heads=2)
    frames, actions, rewards, state = make_inputs(network.settings)
    q, _ = network(frames, actions, rewards, state)
    others = slice(1, None)
    frames[:, others], actions[:, others], rewards[:, others] = 1, 0, 9.0
    state.h[others] = 5.0
    changed, _ = network(frames, actions, rewards, state)
    assert torch.equal(q[:, 0], changed[:, 0])
    assert not torch.allclose(q[:, 1], changed[:, 1])


@pytest.mark.parametrize("part", ["frames", "actions", "rewards", "h", "c"])
def test_everything_it_is_told_matters(part):
    network = make()
    frames, actions, rewards, state = make_inputs()
    q, _ = network(frames, actions, rewards, state)
    told = {"frames": frames, "actions": actions, "rewards": rewards, "h": state.h, "c": state.c}
    told[part] = told[part].flip(0)
    changed, _ = network(
        told["frames"], told["actions"], told["rewards"], State(told["h"], told["c"])
    )
    assert not torch.allclose(q, changed, atol=1e-4)


@pytest.mark.parametrize("num_heads", [None, 2])
def test_without_a_memory_nothing_matters_but_the_observation(num_heads):
    network = make(has_memory=False, num_heads=num_heads)
    frames, actions, rewards, state = make_inputs(network.settings)
    q, _ = network(frames, actions, rewards, state)
    told = (actions.flip(0), rewards.flip(0), State(state.c.flip(0), state.h.flip(0)))
    assert torch.equal(network(frames, *told)[0], q)
    fresh, nothing = network.initial_state(BATCH), torch.full((BATCH,), -1)
    remembering = make(num_heads=num_heads)
    for t in range(T):
        alone, _ = remembering.step(frames[t], nothing, torch.zeros(BATCH), fresh)
        torch.testing.assert_close(q[t], alone, rtol=0.0, atol=1e-6)
    assert not torch.allclose(q[0], network(frames.flip(0), *told)[0][0])


def test_no_previous_action_is_unlike_any_action():
    network = make()
    frames, _, rewards, state = make_inputs(num_steps=1, batch=1)
    values = [
        network.step(frames[0], torch.tensor([action]), rewards[0], state)[0]
        for action in (-1, 0, 1, 2)
    ]
    assert all(not torch.allclose(values[0], other) for other in values[1:])
    with torch.no_grad():
        network.memory.weight_ih[:, :, 12:15] = 0.0  # deaf to previous actions
    deaf = [
        network.step(frames[0], torch.tensor([action]), rewards[0], state)[0] for action in (-1, 2)
    ]
    assert torch.equal(*deaf)


def test_rewards_are_seen_raw_or_squashed():
    frames, actions, rewards, state = make_inputs()
    squashed, _ = make(reward_input="tanh")(frames, actions, rewards, state)
    raw, _ = make()(frames, actions, rewards, state)
    assert not torch.allclose(squashed, raw)
    assert torch.equal(squashed, make()(frames, actions, rewards.tanh(), state)[0])


def test_forget_gates_start_open():
    memory = make(num_heads=2).memory
    total = memory.bias_ih + memory.bias_hh
    assert (total[:, 8:16] == 1.0).all()
    assert (total[:, :8] != 1.0).all()
    assert (total[:, 16:] != 1.0).all()
    assert (make(forget_bias=0.0).memory.bias_ih[:, 8:16] == 0.0).all()


def test_vectors_need_no_torso():
    network = make(input_shape=(6,), torso=())
    *_, state = make_inputs()
    vectors = torch.randn(T, BATCH, 6, generator=generator(2))
    actions, rewards = torch.zeros(T, BATCH, dtype=torch.int64), torch.zeros(T, BATCH)
    q, _ = network(vectors, actions, rewards, state)
    assert q.shape == (T, BATCH, 3)
    assert not torch.allclose(q, network(vectors * 2.0, actions, rewards, state)[0])


def test_frames_are_divided_by_the_largest_pixel():
    frames, actions, rewards, state = make_inputs()
    q, _ = make()(frames, actions, rewards, state)
    bright, _ = make(largest_pixel=255.0)(frames * 255, actions, rewards, state)
    torch.testing.assert_close(q, bright)


def test_padding_puts_the_odd_zero_last():
    network = make(input_shape=(1, 4, 4), torso=(Convolution(1, 3, 2),), padding="same")
    with torch.no_grad():
        network.torso.get_parameter("1.weight").fill_(1.0)
        network.torso.get_parameter("1.bias").zero_()
    sums = network.torso(torch.arange(16.0).view(1, 1, 4, 4))
    assert sums.tolist() == [[45.0, 39.0, 66.0, 50.0]]


def test_many_frames_at_once_are_looked_at_in_parts(monkeypatch):
    network, inputs = make(), make_inputs()
    whole, _ = network(*inputs)
    monkeypatch.setattr(torso, "_FRAMES_AT_ONCE", 4)
    with torch.no_grad():
        parts, _ = network(*inputs)
    torch.testing.assert_close(parts, whole, rtol=0.0, atol=1e-6)


@pytest.mark.parametrize("shares_memory", [False, True])
def test_what_heads_share_learns_from_their_mean(shares_memory):
    network = make(num_heads=4, shares_memory=shares_memory)
    *inputs, state = make_inputs(network.settings)
    network(*inputs, state)[0].square().sum().backward()
    ours = {name: p.grad.clone() for name, p in network.named_parameters()}
    network.zero_grad()
    layers = {}
    for head in range(4):
        forward, layers[head] = plain_twin(network, head)
        own = state if shares_memory else State(*(part[:, head] for part in state))
        forward(*inputs, *own)[0].square().sum().backward()
    mean = network.torso.get_parameter("0.weight").grad / 4.0
    torch.testing.assert_close(ours["torso.0.weight"], mean, rtol=1e-4, atol=1e-5)
    # A head's own layers learn from it alone, and wholly.
    own = layers[2]["advantage.0"].weight.grad
    torch.testing.assert_close(ours["streams.advantage.0.weight"][2], own, rtol=1e-4, atol=1e-5)
    memories = [layers[head]["memory"].weight_hh_l0.grad for head in range(4)]
    expected = [sum(memories) / 4.0] if shares_memory else memories
    torch.testing.assert_close(
        ours["memory.weight_hh"], torch.stack(expected), rtol=1e-4, atol=1e-5
    )


def test_states_start_as_zeros_and_again_where_episodes_start():
    network = make(num_heads=2)
    state = network.initial_state(3)
    assert state.h.shape == state.c.shape == (3, 2, 8)
    assert not state.h.any()
    full = State(torch.ones(3, 2, 8), torch.ones(3, 2, 8))
    again = full.restarted(torch.tensor([False, True, False]))
    for part in again:
        assert part.sum(dim=(1, 2)).tolist() == [16.0, 0.0, 16.0]
    assert full.h.all()


def test_parameters_come_from_the_generator_alone():
    before = torch.get_rng_state()
    ours, same, other = make(), make(), make(seed=1)
    make_inputs()
    assert torch.equal(before, torch.get_rng_state())
    for name, parameter in ours.named_parameters():
        assert torch.equal(parameter, same.state_dict()[name])
        assert not torch.equal(parameter, other.state_dict()[name])


def test_inputs_that_do_not_fit_are_refused():
    network = make()
    frames, actions, rewards, state = make_inputs()
    with pytest.raises(ValueError, match=r"^observations must have shape \[T, batch, 4, 10, 10\]"):
        network(frames[..., :9], actions, rewards, state)
    with pytest.raises(ValueError, match=r"^state must have shape \[batch, 8\]"):
        network(frames, actions, rewards, State(state.h[:, :7], state.c))
    # Whole frames of 84 × 84 are too small for R2D2's torso, unless padded.
    settings = RecurrentNetworkSettings(num_actions=18, input_shape=(1, 84, 84))
    with pytest.raises(ValueError, match=r"^torso must fit \(1, 84, 84\)"):
        RecurrentNetwork(settings, generator())
    RecurrentNetwork(replace(settings, padding="same"), generator())


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"num_actions": 0}, "^num_actions must be at least 1"),
        ({"input_shape": (4, 10)}, r"^input_shape must be \[channels, height, width\] or"),
        ({"input_shape": (4,)}, "^torso must be empty for vectors"),
        ({"padding": "full"}, "^padding must be one of 'valid', 'same'"),
        ({"reward_input": "clip"}, "^reward_input must be one of 'raw', 'tanh'"),
        ({"feature_size": 0}, "^feature_size must be at least 1"),
        ({"memory_size": 0}, "^memory_size must be at least 1"),
        ({"hidden_size": 2.0}, "^hidden_size must be an int"),
        ({"largest_pixel": 0.0}, "^largest_pixel must be positive"),
        ({"forget_bias": "1"}, "^forget_bias must be a number"),
        ({"num_heads": 9}, "^num_heads must be at most 8"),
        ({"shares_memory": 1}, "^shares_memory must be a bool"),
    ],
)
def test_settings_of_networks_are_checked(changes, message):
    with pytest.raises((ValueError, TypeError), match=message):
        replace(NETWORK, **changes)
