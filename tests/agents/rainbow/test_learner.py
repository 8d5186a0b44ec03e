"""The learner: what it computes, when it copies, what it refuses, and how it continues."""

import math
from dataclasses import replace
from functools import partial

import numpy as np
import pytest
import torch

from ezgreedy.agents.rainbow import learner as module
from ezgreedy.agents.rainbow.learner import Learner
from ezgreedy.agents.rainbow.learner_settings import LearnerSettings, NetworkSettings
from ezgreedy.learning.gradients import NotFiniteError
from ezgreedy.learning.settings import MINATAR_TORSO
from ezgreedy.replay.accumulate import Accumulator
from ezgreedy.replay.frames import FrameStore
from ezgreedy.replay.prioritized import Priorities
from ezgreedy.replay.transition_replay import Batch, TransitionReplay
from support.tensors import assert_same, flat

NETWORK = NetworkSettings(
    num_actions=3,
    input_shape=(4, 10, 10),
    torso=MINATAR_TORSO,
    hidden_size=16,
    num_atoms=11,
    largest_pixel=1.0,
)
PLAIN = replace(NETWORK, sigma0=None)
SETTINGS = LearnerSettings(batch_size=8, updates_per_target_sync=3, learning_rate=1e-3)


def make(network=NETWORK, seed=0, **changes):
    return Learner(network, replace(SETTINGS, **changes), seed=seed)


def make_batch(seed=0, size=8, **changes):
    rng = np.random.default_rng(seed)
    shape = (size, *NETWORK.input_shape)
    batch = Batch(
        frames=rng.integers(0, 2, (2, *shape)).astype(np.uint8),
        actions=rng.integers(0, 3, size),
        returns=rng.normal(0.0, 2.0, size).astype(np.float32),
        discounts=np.where(rng.random(size) < 0.3, 0.0, 0.99**3).astype(np.float32),
        weights=rng.uniform(0.2, 1.0, size),
        slots=np.arange(size),
    )
    return batch._replace(**changes)


def parameters_of(network):
    return {name: p.detach().clone() for name, p in network.named_parameters()}


def changed(before, network):
    return any(not torch.equal(before[n], p) for n, p in network.named_parameters())


def softmax(logits):
    top = max(logits)
    weights = [math.exp(x - top) for x in logits]
    return [w / sum(weights) for w in weights]


def by_hand(logits_tm1, logits_t, selector_t, batch, atoms):
    """Losses in plain Python: C51's shares between lower and upper neighbours."""
    spacing, losses = atoms[1] - atoms[0], []
    for row, action in enumerate(batch.actions.tolist()):
        q = [sum(p * z for p, z in zip(softmax(x), atoms, strict=True)) for x in selector_t[row]]
        p_t = softmax(logits_t[row][q.index(max(q))])
        m = [0.0] * len(atoms)
        for p, z in zip(p_t, atoms, strict=True):
            tz = float(batch.returns[row]) + float(batch.discounts[row]) * z
            place = (min(max(tz, atoms[0]), atoms[-1]) - atoms[0]) / spacing
            lower = min(int(place), len(atoms) - 2)
            m[lower] += p * (lower + 1 - place)
            m[lower + 1] += p * (place - lower)
        p_tm1 = softmax(logits_tm1[row][action])
        losses.append(-sum(a * math.log(b) for a, b in zip(m, p_tm1, strict=True)))
    return losses


def logits(network, states):
    with torch.no_grad():
        return network(torch.as_tensor(states)).tolist()


@pytest.mark.parametrize("uses_double_q", [True, False])
def test_the_first_loss_equals_one_computed_by_hand(uses_double_q):
    learner, batch = make(PLAIN, uses_double_q=uses_double_q), make_batch()
    other = make(PLAIN, seed=1)
    learner.target.load_state_dict(other.online.state_dict())  # so that networks disagree
    logits_t = logits(learner.target, batch.next_states)
    selector_t = logits(learner.online, batch.next_states) if uses_double_q else logits_t
    atoms = learner.online.atoms.tolist()
    expected = by_hand(logits(learner.online, batch.states), logits_t, selector_t, batch, atoms)
    update = learner.update(batch)
    np.testing.assert_allclose(update.losses, expected, rtol=1e-5)
    assert update.loss == pytest.approx(np.mean(batch.weights * expected), rel=1e-5)


def test_q_values_are_the_mean_greedy_values_of_the_states():
    learner, batch = make(PLAIN), make_batch()
    atoms, expected = learner.online.atoms.tolist(), []
    for row in logits(learner.online, batch.states):
        q = [sum(p * z for p, z in zip(softmax(each), atoms, strict=True)) for each in row]
        expected.append(max(q))
    assert learner.update(batch).q_values == pytest.approx(np.mean(expected), rel=1e-4)


def test_double_q_matters_once_the_networks_disagree():
    losses = []
    for uses_double_q in (True, False):
        learner = make(PLAIN, uses_double_q=uses_double_q)
        learner.target.load_state_dict(make(PLAIN, seed=1).online.state_dict())
        losses.append(learner.update(make_batch()).losses)
    assert not np.array_equal(*losses)


def test_priorities_do_not_depend_on_weights():
    batch = make_batch()
    lighter = batch._replace(weights=batch.weights / 10.0)
    update, light = make().update(batch), make().update(lighter)
    np.testing.assert_array_equal(update.losses, light.losses)
    assert light.loss == pytest.approx(update.loss / 10.0)
    assert light.gradient_norm == pytest.approx(update.gradient_norm / 10.0, rel=1e-4)


def test_one_fixed_batch_is_learned_by_heart():
    learner = make(PLAIN, updates_per_target_sync=1_000, learning_rate=5e-3)
    # With D = 0 and returns on atoms the least possible loss is zero.
    returns = np.array([-10, -4, 0, 2, 4, 6, 8, 10], dtype=np.float32)
    batch = make_batch(returns=returns, discounts=np.zeros(8, dtype=np.float32))
    first = learner.update(batch).loss
    for _ in range(300):
        last = learner.update(batch).loss
    assert last < 0.05 < first
    values = learner.values(batch.states)[np.arange(8), batch.actions]
    np.testing.assert_allclose(values, returns, atol=0.5)


def test_a_noisy_network_learns_a_fixed_batch_too():
    learner = make(learning_rate=5e-3, updates_per_target_sync=1_000)
    batch = make_batch(discounts=np.zeros(8, dtype=np.float32))
    first = learner.update(batch).loss
    for _ in range(300):
        last = learner.update(batch).loss
    assert last < 0.6 * first


def test_with_one_step_the_target_is_the_reward_and_the_next_state():
    learner = make(PLAIN, num_steps=1, batch_size=4)
    frames = FrameStore(32, (1, 10, 10), stack=4)
    accumulator = Accumulator(learner.settings.num_steps, learner.settings.discount)
    memory = TransitionReplay(frames, accumulator, Priorities(32, rng=np.random.default_rng(0)))
    rng = np.random.default_rng(3)
    images = rng.integers(0, 2, (9, 1, 10, 10)).astype(np.uint8)
    memory.begin(0, images[0])
    for step, image in enumerate(images[1:]):
        memory.step(0, step % 3, step / 4, image, terminated=step == 7)
    batch = memory.sample(4)
    steps = batch.slots  # the first lane's frames lie in order
    np.testing.assert_array_equal(batch.returns, (steps / 4).astype(np.float32))
    np.testing.assert_allclose(batch.discounts, np.where(steps == 7, 0.0, 0.99), rtol=1e-6)
    np.testing.assert_array_equal(batch.next_states[:, -1:], images[steps + 1])
    logits_t = logits(learner.target, batch.next_states)
    atoms = learner.online.atoms.tolist()
    expected = by_hand(logits(learner.online, batch.states), logits_t, logits_t, batch, atoms)
    np.testing.assert_allclose(learner.update(batch).losses, expected, rtol=1e-5)


def record_noise(learner, monkeypatch):
    """The noise of every pass through a network, as pairs with its network's name."""
    passes = []

    def record(name, network):
        draw = network.draw_noises

        def recorded():
            noises = draw()
            passes.append((name, torch.cat(noises)))
            return noises

        monkeypatch.setattr(network, "draw_noises", recorded)

    record("online", learner.online)
    if learner.target is not learner.online:
        record("target", learner.target)
    return passes


def test_an_update_draws_noise_three_times_independently(monkeypatch):
    learner = make()
    passes = record_noise(learner, monkeypatch)
    learner.update(make_batch())
    assert sorted(name for name, _ in passes) == ["online", "online", "target"]
    noises = [noise for _, noise in passes]
    correlations = torch.corrcoef(torch.stack(noises))
    assert (correlations.triu(1).abs() < 0.15).all()


def test_without_noise_and_target_network_the_third_pass_is_spared(monkeypatch):
    learner = make(PLAIN, updates_per_target_sync=1)
    count = 0

    def counted(run, *features):
        nonlocal count
        count += len(features)
        return run(*features)

    for heads in set(learner._written):
        monkeypatch.setattr(heads, "run", partial(counted, heads.run))
    learner.update(make_batch())
    assert count == 2
    noisy = make(updates_per_target_sync=1)
    passes = record_noise(noisy, monkeypatch)
    noisy.update(make_batch())
    assert len(passes) == 3


def test_the_target_network_is_copied_every_so_many_updates():
    learner = make(updates_per_target_sync=3)
    assert not changed(parameters_of(learner.online), learner.target)
    for update in range(1, 8):
        before = parameters_of(learner.target)
        learner.update(make_batch(update))
        is_due = update % 3 == 0
        assert changed(before, learner.target) == is_due
        assert changed(parameters_of(learner.online), learner.target) != is_due
    assert learner.num_updates == 7


def test_a_period_of_one_means_the_online_network():
    learner = make(updates_per_target_sync=1)
    assert learner.target is learner.online
    assert "target" not in learner.state_dict()
    learner.update(make_batch())
    assert all(p.requires_grad for p in learner.online.parameters())


def record_steps(learner, monkeypatch):
    """The gradients of every step of Adam, by name, as they are after clipping."""
    names = {parameter: name for name, parameter in learner.online.named_parameters()}
    steps, step = [], learner._adam.step

    def recorded(gradients, scale):
        steps.append({names[each.parameter]: each.values() * scale for each in gradients})
        step(gradients, scale)

    monkeypatch.setattr(learner._adam, "step", recorded)
    return steps


@pytest.mark.parametrize("largest", [1e-3, 1e3, None])
def test_gradients_beyond_the_largest_norm_are_scaled_down_to_it(largest, monkeypatch):
    learner = make(largest_gradient_norm=largest)
    steps = record_steps(learner, monkeypatch)
    update = learner.update(make_batch())
    norm = math.hypot(*(float(gradient.norm()) for gradient in steps[0].values()))
    bound = math.inf if largest is None else largest
    assert norm == pytest.approx(min(bound, update.gradient_norm), rel=1e-3)
    assert 1e-3 < update.gradient_norm < 1e3


def test_the_first_step_is_adam_s_with_our_rate_and_epsilon(monkeypatch):
    learner = make(learning_rate=3e-4, adam_epsilon=0.05)
    before, steps = parameters_of(learner.online), record_steps(learner, monkeypatch)
    learner.update(make_batch())
    for name, parameter in learner.online.named_parameters():
        # Both moments are the gradient's own after bias correction.
        g = steps[0][name]
        expected = before[name] - 3e-4 * g / (g.abs() + 0.05)
        torch.testing.assert_close(parameter.detach(), expected, rtol=1e-6, atol=1e-7)


def poisoned(array, value):
    array = array.copy()
    array[2] = value
    return array


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
@pytest.mark.parametrize("site", ["returns", "discounts", "weights"])
def test_what_is_not_finite_is_refused_and_changes_nothing(site, value):
    learner, batch = make(seed=5), make_batch()
    learner.update(batch)
    before = learner.state_dict()
    with pytest.raises(NotFiniteError, match=rf"^{site}: .* after 1 updates$") as caught:
        learner.update(batch._replace(**{site: poisoned(getattr(batch, site), value)}))
    assert (caught.value.site, caught.value.step, caught.value.seed) == (site, 1, 5)
    assert_same(before, learner.state_dict())


def test_losses_and_gradients_that_are_not_finite_change_nothing(monkeypatch):
    learner, twin, batch = make(), make(), make_batch()
    before = learner.state_dict()
    loss_gradient, norm_of = module.loss_gradient, module.gradient_norm

    def without_losses(*arguments):
        return loss_gradient(*arguments)._replace(losses=np.full(8, np.nan, np.float32))

    def with_infinity(gradients, *arguments):
        weight = learner.online.streams["value"][0].weight_mean
        for gradient in gradients:
            if gradient.parameter is weight:
                gradient.matrix[2, 3] = math.inf
        return norm_of(gradients, *arguments)

    for name, broken, site in (
        ("loss_gradient", without_losses, "losses"),
        ("gradient_norm", with_infinity, r"gradient of streams\.value\.0\.weight_mean"),
    ):
        with monkeypatch.context() as patch:
            patch.setattr(module, name, broken)
            with pytest.raises(NotFiniteError, match=rf"^{site}:"):
                learner.update(batch)
        assert_same(before, learner.state_dict())
    assert_same(before, learner.state_dict())
    # And what was refused leaves no trace in what follows.
    np.testing.assert_array_equal(learner.update(batch).losses, twin.update(batch).losses)
    assert_same(learner.state_dict(), twin.state_dict())


def test_values_that_are_not_finite_are_refused():
    learner = make()
    with torch.no_grad():
        learner.online.torso.get_parameter("0.weight").fill_(math.nan)
    with pytest.raises(NotFiniteError, match=r"^values:"):
        learner.greedy(make_batch().states)


@pytest.mark.parametrize("updates_before", [0, 4])
@pytest.mark.parametrize("period", [1, 3])
def test_a_restored_learner_continues_to_the_last_bit(updates_before, period):
    learner = make(updates_per_target_sync=period)
    for index in range(updates_before):
        learner.update(make_batch(index))
        learner.greedy(make_batch(index).states)
    state = learner.state_dict()
    kept = dict(flat(learner.state_dict()))
    restored = make(updates_per_target_sync=period, seed=9)
    restored.load_state_dict(state)
    for index in range(5):
        batch = make_batch(100 + index)
        ours, theirs = learner.update(batch), restored.update(batch)
        assert (ours.loss, ours.gradient_norm) == (theirs.loss, theirs.gradient_norm)
        np.testing.assert_array_equal(ours.losses, theirs.losses)
        np.testing.assert_array_equal(learner.values(batch.states), restored.values(batch.states))
    assert_same(learner.state_dict(), restored.state_dict())
    assert learner.num_updates == restored.num_updates == updates_before + 5
    # A state is a copy: updates since have not reached it.
    assert all(torch.equal(tensor, kept[name]) for name, tensor in flat(state))


def test_a_state_holds_tensors_only():
    assert all(type(part) is torch.Tensor for _, part in flat(make().state_dict()))


def test_states_of_another_learner_are_refused_and_change_nothing():
    learner = make()
    before = learner.state_dict()
    wider = Learner(replace(NETWORK, hidden_size=17), SETTINGS, seed=0).state_dict()
    with pytest.raises(ValueError, match=r"^state\.online\.streams\.value\.0\.weight_mean must be"):
        learner.load_state_dict(wider)
    with pytest.raises(ValueError, match=r"^state must hold online, target, optimizer"):
        learner.load_state_dict(make(updates_per_target_sync=1).state_dict())
    with pytest.raises(TypeError, match=r"^state\.num_updates must be a tensor; got int 3"):
        learner.load_state_dict({**before, "num_updates": 3})
    assert_same(before, learner.state_dict())


def test_acting_has_fresh_noise_and_does_not_disturb_learning():
    learner, twin, batch = make(), make(), make_batch()
    first, second = learner.values(batch.states), learner.values(batch.states)
    assert first.shape == (8, 3)
    assert not np.array_equal(first, second)
    np.testing.assert_array_equal(twin.greedy(batch.states), first.argmax(axis=1))
    assert twin.greedy(batch.states).dtype == np.int64
    learner.update(batch)
    twin.update(batch)
    assert_same(learner.state_dict()["online"], twin.state_dict()["online"])


def test_actors_follow_every_update():
    learner = make(PLAIN)
    actor = learner.actor(torch.Generator().manual_seed(0))
    states = torch.as_tensor(make_batch().states)
    for index in range(4):
        learner.update(make_batch(index))
        with torch.no_grad():
            assert torch.equal(actor.values(states), learner.online.values(states))
            np.testing.assert_array_equal(learner.values(states.numpy()), actor.values(states))


def test_nothing_comes_from_the_global_generator():
    before = torch.get_rng_state()
    learner = make()
    learner.update(make_batch())
    learner.greedy(make_batch().states)
    assert torch.equal(before, torch.get_rng_state())


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"actions": np.full(8, 3)}, r"^actions must lie in \[0, 3\)"),
        ({"actions": np.zeros(7, dtype=np.int64)}, r"^actions must have shape \(8,\)"),
        ({"returns": np.zeros((8, 1), dtype=np.float32)}, r"^returns must have shape \(8,\)"),
        ({"frames": np.zeros((2, 7, 4, 10, 10), dtype=np.uint8)}, "^frames must hold 2 times 8"),
        ({"frames": np.zeros((2, 8, 3, 10, 10), dtype=np.uint8)}, "^frames must have shape"),
    ],
)
def test_batches_that_do_not_fit_are_refused_and_change_nothing(changes, message):
    learner = make()
    before = learner.state_dict()
    with pytest.raises(ValueError, match=message):
        learner.update(make_batch()._replace(**changes))
    assert_same(before, learner.state_dict())


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"learning_rate": 0.0}, "^learning_rate must be positive"),
        ({"adam_epsilon": math.nan}, "^adam_epsilon must be finite"),
        ({"batch_size": 0}, "^batch_size must be at least 1"),
        ({"num_steps": 0}, "^num_steps must be at least 1"),
        ({"discount": 1.5}, "^discount must lie in"),
        ({"updates_per_target_sync": 0}, "^updates_per_target_sync must be at least 1"),
        ({"largest_gradient_norm": -1.0}, "^largest_gradient_norm must be"),
        ({"uses_double_q": 1}, "^uses_double_q must be a bool"),
    ],
)
def test_settings_are_checked(changes, message):
    with pytest.raises((ValueError, TypeError), match=message):
        LearnerSettings(**changes)
