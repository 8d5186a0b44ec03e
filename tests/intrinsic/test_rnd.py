"""Random network distillation: what is rewarded, what stays, and how it continues."""

import math
from dataclasses import replace

import numpy as np
import pytest
import torch

from ezgreedy.agents.r2d2.learner import SequenceLearner
from ezgreedy.agents.r2d2.learner_settings import SequenceLearnerSettings
from ezgreedy.intrinsic.moments import RunningMoments
from ezgreedy.intrinsic.novelty import Novelty
from ezgreedy.intrinsic.rnd import RandomNetworkDistillation
from ezgreedy.intrinsic.settings import WORKING, DistillationSettings
from ezgreedy.learning.gradients import NotFiniteError
from ezgreedy.learning.settings import MINATAR_TORSO, Sight
from ezgreedy.learning.tensor_states import as_arrays, as_tensors
from support.windows import NETWORK, random_batch, rubbish

torch.set_num_threads(1)

SIGHT = Sight((4, 10, 10), largest_pixel=1.0)
SETTINGS = DistillationSettings(torso=MINATAR_TORSO, num_outputs=16)
BURN_IN = 3


def make(seed=0, sight=SIGHT, **changes):
    settings = replace(SETTINGS, **changes)
    return RandomNetworkDistillation(settings, sight, burn_in=BURN_IN, seed=seed)


def reached(batch):
    """The observations that trained steps lead to, in the order of rows and then of steps."""
    rows = zip(batch.observations, batch.lengths, strict=True)
    return np.concatenate([row[BURN_IN + 1 : BURN_IN + 1 + n] for row, n in rows])


def assert_same(ours, theirs):
    assert ours.keys() == theirs.keys()
    for name, part in ours.items():
        if isinstance(part, dict):
            assert_same(part, theirs[name])
        elif isinstance(part, torch.Tensor):
            assert torch.equal(part, theirs[name]), name
        else:
            assert part == theirs[name], name


def test_the_networks_have_the_paper_s_size():
    rnd = RandomNetworkDistillation(
        DistillationSettings(), Sight((1, 210, 160), has_codes=True), burn_in=20, seed=0
    )
    for network in (rnd.predictor, rnd.random):
        convolutions = (32 * 3 * 64 + 32) + (64 * 32 * 16 + 64) + (64 * 64 * 9 + 64)
        size = sum(p.numel() for p in network.parameters())
        assert size == convolutions + 22 * 16 * 64 * 128 + 128


def test_errors_are_mean_squared_differences_of_outputs():
    rnd, batch = make(), random_batch()
    frames = reached(batch)
    inputs = torch.as_tensor(frames).float()
    with torch.no_grad():
        difference = (rnd.predictor(inputs) - rnd.random(inputs)).double().numpy()
    np.testing.assert_allclose(rnd.errors(frames), (difference**2).mean(axis=1), rtol=1e-5)


@pytest.mark.parametrize("normalisation", ["var", "std", "ngu"])
def test_a_step_earns_the_normalised_error_of_where_it_led(normalisation):
    rnd = make(normalisation=normalisation)
    seen = []
    for seed in range(3):
        batch = random_batch(seed)
        errors = rnd.errors(reached(batch))
        seen.append(errors)
        everything = np.concatenate(seen)
        mean, std = everything.mean(), everything.std()
        expected = {
            "var": errors / std**2,
            "std": errors / std,
            "ngu": (errors - mean) / std,
        }[normalisation].clip(0.0, 5.0)
        received = rnd(batch)
        added = (received.rewards - batch.rewards)[batch.is_trained(BURN_IN)]
        np.testing.assert_allclose(added, 0.3 * expected, rtol=1e-4, atol=1e-5)


def test_only_rewards_that_are_learned_from_change():
    rnd, batch = make(), random_batch()
    copy = batch.rewards.copy()
    received = rnd(batch)
    trained = batch.is_trained(BURN_IN)
    np.testing.assert_array_equal(received.rewards[~trained], batch.rewards[~trained])
    assert (received.rewards[trained] > batch.rewards[trained]).all()
    np.testing.assert_array_equal(received.inputs, batch.rewards)
    np.testing.assert_array_equal(batch.rewards, copy)
    for name in batch._fields:
        if name not in ("rewards", "seen_rewards"):
            assert getattr(received, name) is getattr(batch, name)


def test_rewards_seen_elsewhere_stay_as_they_were():
    batch = random_batch()
    batch = batch._replace(seen_rewards=batch.rewards + 7.0)
    np.testing.assert_array_equal(make()(batch).seen_rewards, batch.seen_rewards)


def test_a_bonus_of_scale_0_changes_nothing_that_is_learned():
    settings = SequenceLearnerSettings(batch_size=6, burn_in=BURN_IN, length=5)
    ours, theirs, paid = (SequenceLearner(NETWORK, settings, seed=0) for _ in range(3))
    free, rnd = make(scale=0.0), make()
    for seed in range(3):
        batch = random_batch(seed)
        np.testing.assert_array_equal(free(batch).rewards, batch.rewards)
        ours.update(free(batch))
        theirs.update(batch)
        paid.update(rnd(batch))
    assert_same(ours.state_dict(), theirs.state_dict())
    assert not torch.equal(ours.online.features.bias, paid.online.features.bias)


def test_errors_fall_where_it_has_been_and_not_elsewhere():
    rnd = make()
    # Two kinds of frames: planes 0 and 1 are ever seen in training, planes 2 and 3 are new.
    rng = np.random.default_rng(0)
    known, new = np.zeros((2, 20, 4, 10, 10), dtype=np.uint8)
    known[:, :2] = rng.integers(0, 2, (20, 2, 10, 10))
    new[:, 2:] = rng.integers(0, 2, (20, 2, 10, 10))
    before_known, before_new = rnd.errors(known).mean(), rnd.errors(new).mean()
    for seed in range(150):
        batch = random_batch(seed)
        batch.observations[:] = known[rng.integers(0, 20, batch.observations.shape[:2])]
        rnd(batch)
    assert rnd.errors(known).mean() < 0.05 * before_known
    assert rnd.errors(new).mean() > 0.3 * before_new


def test_the_random_network_never_learns_and_the_predictor_does():
    rnd = make()
    before = rnd.state_dict()
    rnd(random_batch())
    after = rnd.state_dict()
    assert_same(before["random"], after["random"])
    assert all(p.grad is None for p in rnd.random.parameters())
    for name, parameter in before["predictor"].items():
        assert not torch.equal(parameter, after["predictor"][name])
    assert rnd.num_updates == 1


def test_padded_places_never_matter_to_bonuses():
    batch = random_batch(terminated=np.zeros(6, dtype=bool))
    ours, theirs = make(), make()
    trained = batch.is_trained(BURN_IN)
    received = ours(batch).rewards[trained], theirs(rubbish(batch, BURN_IN)).rewards[trained]
    np.testing.assert_array_equal(*received)
    assert_same(ours.state_dict(), theirs.state_dict())


def test_the_predictor_can_learn_from_the_last_steps_alone():
    batch = random_batch(lengths=np.full(6, 5))
    last = batch._replace(
        observations=np.concatenate([batch.observations[:, :4], batch.observations[:, 7:]], axis=1),
        lengths=np.full(6, 2),
        **{name: getattr(batch, name)[:, :5] for name in ("actions", "rewards", "masks")},
    )
    few, twin, all_steps = make(steps_per_window=2), make(), make()
    few(batch), twin(last), all_steps(batch)
    for name, parameter in few.predictor.named_parameters():
        own = twin.predictor.state_dict()[name]
        torch.testing.assert_close(parameter.detach(), own, rtol=1e-4, atol=1e-5)
        assert not torch.equal(parameter, all_steps.predictor.state_dict()[name])
    # All are rewarded, and counted.
    assert few.moments.count == 30
    assert twin.moments.count == 12


@pytest.mark.parametrize("steps_per_window", [None, 2])
def test_a_batch_in_parts_gives_the_same_errors_and_gradients(steps_per_window, monkeypatch):
    changes = {**WHITENED, "steps_per_window": steps_per_window}
    whole, parted = make(**changes), make(**changes)
    for seed in range(6):
        batch = random_batch(seed)
        monkeypatch.setattr("ezgreedy.intrinsic.rnd.FRAMES_AT_ONCE", 512)
        paid = whole(batch).rewards
        monkeypatch.setattr("ezgreedy.intrinsic.rnd.FRAMES_AT_ONCE", 7)
        np.testing.assert_allclose(parted(batch).rewards, paid, rtol=1e-4)
    assert parted.num_updates == whole.num_updates > 2
    for name, parameter in whole.predictor.named_parameters():
        torch.testing.assert_close(
            parted.predictor.state_dict()[name], parameter.detach(), rtol=1e-3, atol=1e-5
        )
    torch.testing.assert_close(parted.whitening.squares, whole.whitening.squares)


def test_bonuses_are_cut_and_never_negative():
    rnd = make(largest_bonus=2.0, normalisation="ngu")
    rnd.moments.update(np.array([1.0, 2.0, 3.0]))
    np.testing.assert_allclose(
        rnd.bonuses(np.array([0.0, 2.0, 3.0, 100.0])), [0.0, 0.0, math.sqrt(1.5), 2.0]
    )


def test_while_all_errors_are_the_same_there_is_no_bonus():
    rnd = make()
    assert rnd.bonuses(np.array([3.0])).tolist() == [0.0]
    rnd.moments.update(np.array([3.0, 3.0]))
    assert rnd.bonuses(np.array([3.0])).tolist() == [0.0]


def test_dividing_by_the_variance_pays_more_as_errors_shrink():
    by_variance, by_deviation = make(largest_bonus=1e9), make(normalisation="std")
    errors = np.array([1.0, 2.0, 3.0])
    paid = []
    for rnd in (by_variance, by_deviation):
        for scale in (1.0, 0.1):
            fresh = make(normalisation=rnd.settings.normalisation, largest_bonus=1e9)
            fresh.moments.update(errors * scale)
            paid.append(fresh.bonuses(errors * scale))
    np.testing.assert_allclose(paid[1], 10.0 * paid[0])
    np.testing.assert_allclose(paid[3], paid[2])


def test_vectors_need_no_torso_but_may_have_hidden_layers():
    rnd = make(sight=Sight((6,)), torso=(), hidden_sizes=(9,))
    batch = random_batch(shape=(6,))
    assert (rnd(batch).rewards >= batch.rewards).all()
    assert rnd.predictor[2].weight.shape == (9, 6)


def test_what_is_not_finite_is_refused_and_changes_nothing():
    rnd = make(sight=Sight((6,), 1.0), torso=())
    batch = random_batch(shape=(6,))
    rnd(batch)
    before = rnd.state_dict()
    bad = batch.observations.copy()
    bad[0, BURN_IN + 1] = math.nan
    with pytest.raises(NotFiniteError, match=r"^errors: .* after 1 updates$"):
        rnd(batch._replace(observations=bad))
    assert_same(before, rnd.state_dict())
    handle = rnd.predictor[2].bias.register_hook(lambda gradient: gradient * math.nan)
    with pytest.raises(NotFiniteError, match=r"^gradient of 2.bias:"):
        rnd(batch)
    handle.remove()
    assert_same(before, rnd.state_dict())


def test_a_restored_distillation_continues_to_the_last_bit():
    rnd, restored = make(), make(seed=3)
    for seed in range(3):
        rnd(random_batch(seed))
    state = rnd.state_dict()
    restored.load_state_dict(state)
    for seed in range(3, 6):
        batch = random_batch(seed)
        np.testing.assert_array_equal(rnd(batch).rewards, restored(batch).rewards)
    assert_same(rnd.state_dict(), restored.state_dict())
    assert not torch.equal(state["predictor"]["2.bias"], rnd.state_dict()["predictor"]["2.bias"])
    with pytest.raises(ValueError, match=r"^state\.predictor\.2\.weight must be"):
        make(num_outputs=8).load_state_dict(state)


def test_networks_come_from_the_seed_alone():
    before = torch.get_rng_state()
    ours, same, other = make(), make(), make(seed=1)
    ours(random_batch())
    same(random_batch())
    assert torch.equal(before, torch.get_rng_state())
    assert_same(ours.state_dict(), same.state_dict())
    assert not torch.equal(ours.random[2].bias, other.random[2].bias)
    assert not torch.equal(make().predictor[2].bias, make().random[2].bias)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"scale": -0.1}, "^scale must be finite and be at least 0"),
        ({"normalisation": "max"}, "^normalisation must be one of 'var', 'std', 'ngu'"),
        ({"largest_bonus": 0.0}, "^largest_bonus must be positive"),
        ({"hidden_sizes": (0,)}, "^hidden_sizes must be at least 1"),
        ({"num_outputs": 0}, "^num_outputs must be at least 1"),
        ({"learning_rate": 0.0}, "^learning_rate must be positive"),
        ({"adam_epsilon": 0.0}, "^adam_epsilon must be positive; got 0.0"),
        ({"largest_gradient_norm": 0.0}, "^largest_gradient_norm must be positive"),
        ({"steps_per_window": 0}, "^steps_per_window must be at least 1"),
        ({"whitening_bound": 0.0}, "^whitening_bound must be positive; got 0.0"),
        ({"whitening_observations": 1}, "^whitening_observations must be at least 2; got 1"),
        (
            {"initialisation": "zeros"},
            "^initialisation must be one of 'uniform', 'orthogonal'; got",
        ),
        ({"warm_up_updates": -1}, "^warm_up_updates must be at least 0; got -1"),
        ({"error_memory": 1}, "^error_memory must be at least 2; got 1"),
    ],
)
def test_settings_of_distillation_are_checked(changes, message):
    with pytest.raises(ValueError, match=message):
        replace(SETTINGS, **changes)


def test_a_switch_is_a_bool():
    with pytest.raises(TypeError, match=r"^in_first_priorities must be a bool; got int 1"):
        replace(SETTINGS, in_first_priorities=1)


def test_convolutions_of_vectors_are_refused():
    with pytest.raises(ValueError, match=r"^torso must be empty for vectors"):
        make(sight=Sight((4,)))


# Observations whitened, parameters orthogonal, errors forgotten: what makes it work for long.

WHITENED = {"whitening_bound": 1.1, "whitening_observations": 50}


def kept_still(seed):
    """A batch in which one pixel never changes."""
    batch = random_batch(seed)
    batch.observations[..., 0, 0, 0] = 1
    return batch


def test_whitening_equals_a_naive_twin():
    rnd, seen = make(**WHITENED), []
    for seed in range(5):
        batch = kept_still(seed)
        frames = reached(batch)
        if sum(map(len, seen)) >= 50:
            everything = np.concatenate(seen).astype(np.float64)
            std = np.maximum(everything.std(axis=0), 1e-3)
            whitened = ((frames - everything.mean(axis=0)) / std).clip(-1.1, 1.1)
            assert not whitened[:, 0, 0, 0].any()
            assert (np.abs(whitened) == 1.1).any()
            inputs = torch.as_tensor(whitened).float()
            with torch.no_grad():
                difference = (rnd.predictor(inputs) - rnd.random(inputs)).double().numpy()
            np.testing.assert_allclose(rnd.errors(frames), (difference**2).mean(axis=1), rtol=1e-4)
        rnd(batch)
        seen.append(frames)
        everything = np.concatenate(seen).astype(np.float64)
        assert rnd.whitening.count == len(everything)
        np.testing.assert_allclose(rnd.whitening.mean, everything.mean(axis=0), rtol=1e-6)
        variance = rnd.whitening.squares / rnd.whitening.count
        np.testing.assert_allclose(variance, everything.var(axis=0), rtol=1e-5, atol=1e-12)
    assert rnd.num_updates > 0


def test_colours_are_whitened_one_by_one():
    rnd = make(sight=Sight((1, 8, 8), has_codes=True), torso=(), whitening_bound=5.0)
    assert rnd.whitening.mean.shape == (3, 8, 8)


def test_nothing_is_paid_until_both_statistics_are_there():
    rnd = make(**WHITENED, warm_up_updates=2, normalisation="std")
    phases = []
    for seed in range(8):
        batch = random_batch(seed)
        before = rnd.state_dict()["predictor"]
        paid = (rnd(batch).rewards != batch.rewards).any()
        learned = not torch.equal(before["2.weight"], rnd.predictor[2].weight)
        phases.append((learned, rnd.moments.count > 0, paid))
    looks, learns, pays = (False, False, False), (True, False, False), (True, True, True)
    num_looks = phases.index(learns)
    assert 0 < num_looks < 4
    assert phases == [looks] * num_looks + [learns] * 2 + [pays] * (6 - num_looks)


def test_the_first_errors_are_forgotten_like_a_naive_average():
    rnd, seen = make(error_memory=4), []
    for seed in range(5):
        batch = random_batch(seed)
        seen.append(rnd.errors(reached(batch)))
        rnd(batch)
    ages = np.repeat(np.arange(5)[::-1], [len(errors) for errors in seen])
    everything, weights = np.concatenate(seen), 0.75**ages
    mean = np.average(everything, weights=weights)
    assert rnd.moments.mean == pytest.approx(mean, rel=1e-5)
    variance = np.average((everything - mean) ** 2, weights=weights)
    assert rnd.moments.variance == pytest.approx(variance, rel=1e-4)


def test_orthogonal_networks_have_orthogonal_layers_of_norm_root_2():
    rnd = make(initialisation="orthogonal", hidden_sizes=(12,))
    for network in (rnd.predictor, rnd.random):
        for layer in (network[0][0], network[2], network[4]):
            weight = layer.weight.detach().flatten(1).double()
            gram = weight @ weight.T if len(weight) <= weight[0].numel() else weight.T @ weight
            np.testing.assert_allclose(gram, 2.0 * np.eye(len(gram)), atol=1e-5)
            assert not layer.bias.any()
    assert not torch.equal(rnd.predictor[2].weight, rnd.random[2].weight)


def bonuses_over_time(settings, updates=(300, 1_000, 10_000)):
    """Mean bonuses of known and of new frames after some updates on known ones, and variances."""
    shape = (2, 5, 5)
    rng = np.random.default_rng(0)
    known, new = np.zeros((2, 200, *shape), dtype=np.uint8)
    known[:, 0] = rng.integers(0, 2, (200, 5, 5))
    new[:, 1] = rng.integers(0, 2, (200, 5, 5))
    small = {"torso": (), "hidden_sizes": (16,), "num_outputs": 4, "whitening_observations": 200}
    settings = replace(settings, **small)
    rnd = RandomNetworkDistillation(settings, Sight(shape, 1.0), burn_in=0, seed=0)
    batch = random_batch(size=2, burn_in=0, shape=shape)
    of_known, of_new, variances = [], [], []
    for number in range(1, updates[-1] + 1):
        batch.observations[:] = known[rng.integers(0, 200, batch.observations.shape[:2])]
        rnd(batch)
        if number in updates:
            of_known.append(rnd.bonuses(rnd.errors(known)).mean())
            of_new.append(rnd.bonuses(rnd.errors(new)).mean())
            variances.append(rnd.moments.variance)
    return of_known, of_new, variances


def test_after_ten_thousand_updates_only_new_frames_are_rewarded():
    of_known, of_new, _ = bonuses_over_time(WORKING)
    assert of_known[0] > of_known[1] > of_known[2]
    assert of_known[2] < 0.01
    assert min(of_new) > 4.5
    assert of_new[2] > 100.0 * of_known[2]


def test_divided_by_its_variance_every_frame_is_rewarded_alike():
    of_known, of_new, variances = bonuses_over_time(DistillationSettings())
    # The variance is that of the first updates, spread over all: it falls like 1/n.
    assert variances[2] < 0.15 * variances[1]
    assert min(of_known) > 4.0
    assert of_new[2] < 1.3 * of_known[2]


@pytest.mark.parametrize(
    ("adam_epsilon", "has_bursts"), [(WORKING.adam_epsilon, False), (1e-8, True)]
)
def test_errors_of_known_frames_rise_again_only_without_adam_s_epsilon(adam_epsilon, has_bursts):
    # A step changes each weight by about the learning rate, and so an output by that times the
    # number of inputs; only a divisor of more than the vanishing gradients makes steps vanish too.
    settings = replace(WORKING, torso=(), whitening_observations=200, adam_epsilon=adam_epsilon)
    rnd = RandomNetworkDistillation(settings, Sight((3000,), 1.0), burn_in=0, seed=0)
    rng = np.random.default_rng(0)
    known = rng.random((40, 3000), dtype=np.float32)
    batch = random_batch(size=2, burn_in=0, shape=(3000,))
    errors, bonuses = [], []
    for number in range(1, 1_201):
        batch.observations[:] = known[rng.integers(0, 40, batch.observations.shape[:2])]
        rnd(batch)
        if number > 300 and number % 20 == 0:
            errors.append(rnd.errors(known).mean())
            bonuses.append(rnd.bonuses(rnd.errors(known)).mean())
    if has_bursts:
        assert max(errors) > 100.0 * errors[0]
        assert max(bonuses) > 0.25
    else:
        assert max(errors) < 2.0 * errors[0]
        assert max(bonuses[-10:]) < 0.01


def test_known_frames_never_earn_more_than_half_a_deviation_on_average():
    rnd = make(normalisation="ngu")
    rng = np.random.default_rng(0)
    for errors in (rng.gamma(0.1, size=1000), rng.normal(size=1000), np.array([0.0, 1.0])):
        rnd.moments = RunningMoments(5)
        rnd.moments.update(errors)
        assert rnd.bonuses(errors).mean() <= 0.5 + 1e-12


@pytest.mark.parametrize("num_updates", [1, 3, 6])
def test_a_state_holds_the_statistics_in_every_phase(num_updates):
    changes = {**WHITENED, "warm_up_updates": 1, "error_memory": 3, "initialisation": "orthogonal"}
    rnd, restored = make(**changes), make(seed=3, **changes)
    for seed in range(num_updates):
        rnd(random_batch(seed))
    state = as_tensors(as_arrays(rnd.state_dict()))
    assert_same(state, rnd.state_dict())
    restored.load_state_dict(state)
    for seed in range(num_updates, num_updates + 5):
        batch = random_batch(seed)
        np.testing.assert_array_equal(rnd(batch).rewards, restored(batch).rewards)
    assert_same(rnd.state_dict(), restored.state_dict())
    with pytest.raises(ValueError, match=r"^state must hold predictor, random, optimizer"):
        make(initialisation="orthogonal").load_state_dict(state)


def test_a_copy_that_follows_pays_the_same():
    rnd = make(**WHITENED, warm_up_updates=1)
    copy = Novelty(rnd.settings, SIGHT, seed=4)
    frames = reached(random_batch(9))
    assert not copy.rewards(frames).any()
    for seed in range(6):
        rnd(random_batch(seed))
    copy.follow(rnd.weights())
    assert rnd.rewards(frames).any()
    np.testing.assert_array_equal(copy.rewards(frames), rnd.rewards(frames))


def test_statistics_of_whitening_refuse_what_is_not_finite():
    rnd = make(sight=Sight((6,), 1.0), torso=(), **WHITENED)
    batch = random_batch(shape=(6,))
    before = rnd.state_dict()
    batch.observations[0, BURN_IN + 1] = math.inf
    with pytest.raises(NotFiniteError, match=r"^observations: .* after 0 updates$"):
        rnd(batch)
    assert_same(before, rnd.state_dict())
