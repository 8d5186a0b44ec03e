"""The equations of R2D2's targets, against sums written out, and where they meet older ones."""

import itertools
import math
from dataclasses import replace

import numpy as np
import pytest
import torch

from ezgreedy.agents.r2d2 import returns
from ezgreedy.agents.r2d2.learner_settings import ReturnSettings
from ezgreedy.agents.r2d2.returns import Steps

T, BATCH, HEADS, ACTIONS = 9, 6, 2, 4
LENGTHS = [9, 9, 4, 1, 1, 7]
TERMINATED = [False, True, True, False, True, False]
SETTINGS = ReturnSettings(discount=0.9)


def exact(*shape, seed):
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(*shape, generator=generator, dtype=torch.float64) * 2.0


def make_steps(seed=0):
    generator = torch.Generator().manual_seed(seed)
    return Steps(
        actions=torch.randint(0, ACTIONS, (T, BATCH), generator=generator),
        rewards=exact(T, BATCH, seed=seed + 1) * 3.0,
        behaviour=torch.rand(T, BATCH, generator=generator, dtype=torch.float64) * 0.9 + 0.1,
        lengths=torch.tensor(LENGTHS),
        terminated=torch.tensor(TERMINATED),
    )


def make_values(seed):
    return exact(T + 1, BATCH, HEADS, ACTIONS, seed=seed)


def h(x, epsilon=1e-3):
    return math.copysign(math.sqrt(abs(x) + 1.0) - 1.0, x) + epsilon * x


def h_inverse(x, epsilon=1e-3):
    """The textbook's, in double precision."""
    root = (math.sqrt(1.0 + 4.0 * epsilon * (abs(x) + 1.0 + epsilon)) - 1.0) / (2.0 * epsilon)
    return math.copysign(root * root - 1.0, x)


def window(steps, selector_q, q, row, head, settings):
    """One window of one head as plain lists: actions, rewards, π, h⁻¹(q) and v, up to its end."""
    length = int(steps.lengths[row])
    policies, real, v = [], [], []
    for t in range(length + 1):
        row_q = selector_q[t, row, head].tolist()
        best = row_q.index(max(row_q))
        policy = [settings.target_epsilon / ACTIONS] * ACTIONS
        policy[best] += 1.0 - settings.target_epsilon
        policies.append(policy)
        real.append([h_inverse(x) for x in q[t, row, head].tolist()])
        v.append(sum(p * x for p, x in zip(policy, real[-1], strict=True)))
    if steps.terminated[row]:
        v[length] = 0.0
    actions, rewards = steps.actions[:length, row].tolist(), steps.rewards[:length, row].tolist()
    return length, actions, rewards, policies, real, v


def mixed(steps, selector_q, q, row, head, settings):
    """(1 − λ)·Σ λ^(n−1) G^(n), and what is left of λ on the longest: every n-step return apart."""
    length, _, rewards, _, _, v = window(steps, selector_q, q, row, head, settings)
    gamma, decay = settings.discount, settings.decay
    for t in range(length):
        total = 0.0
        for n in range(1, length - t + 1):
            g = sum(gamma**i * rewards[t + i] for i in range(n)) + gamma**n * v[t + n]
            total += decay ** (n - 1) * (1.0 if n == length - t else 1.0 - decay) * g
        yield t, total


def corrected(steps, selector_q, q, row, head, settings):
    """Value plus the traced sum of later temporal differences, each computed apart."""
    length, actions, rewards, policies, real, v = window(steps, selector_q, q, row, head, settings)
    gamma = settings.discount
    for t in range(length):
        total = rewards[t] + gamma * v[t + 1]
        trace = 1.0
        for i in range(t + 1, length):
            trace *= gamma * settings.decay
            if settings.form == "retrace":
                behaviour = float(steps.behaviour[i, row])
                trace *= min(1.0, policies[i][actions[i]] / behaviour)
            total += trace * (rewards[i] + gamma * v[i + 1] - real[i][actions[i]])
        yield t, total


def n_step(steps, selector_q, q, row, head, settings):
    length, _, rewards, _, _, v = window(steps, selector_q, q, row, head, settings)
    gamma = settings.discount
    for t in range(length):
        n = min(settings.num_steps, length - t)
        yield t, sum(gamma**i * rewards[t + i] for i in range(n)) + gamma**n * v[t + n]


def assert_equals_reference(reference, settings, seed=0):
    steps, selector_q, q = make_steps(seed), make_values(seed + 10), make_values(seed + 20)
    received = returns.targets(steps, selector_q, q, settings)
    assert received.shape == (T, BATCH, HEADS)
    for row, head in itertools.product(range(BATCH), range(HEADS)):
        for t, total in reference(steps, selector_q, q, row, head, settings):
            assert float(received[t, row, head]) == pytest.approx(h(total), rel=1e-9, abs=1e-9)


@pytest.mark.parametrize("decay", [0.0, 0.7, 1.0])
@pytest.mark.parametrize("epsilon", [0.0, 0.01, 0.4])
@pytest.mark.parametrize(
    ("form", "reference"), [("peng", mixed), ("harutyunyan", corrected), ("retrace", corrected)]
)
def test_recursions_equal_sums_written_out(form, reference, epsilon, decay):
    settings = replace(SETTINGS, form=form, decay=decay, target_epsilon=epsilon)
    assert_equals_reference(reference, settings)


@pytest.mark.parametrize("num_steps", [1, 3, 5, 20])
def test_n_step_returns_equal_sums_written_out(num_steps):
    assert_equals_reference(n_step, replace(SETTINGS, form="n-step", num_steps=num_steps))


def by_setting(steps=None, **changes):
    steps = make_steps() if steps is None else steps
    targets = returns.targets(steps, make_values(10), make_values(20), replace(SETTINGS, **changes))
    return targets[steps.is_valid]


def test_with_lambda_0_all_forms_are_one_step_double_expected_sarsa():
    steps, q_online, q_target = make_steps(), make_values(10), make_values(20)
    received = returns.targets(steps, q_online, q_target, replace(SETTINGS, decay=0.0))
    real = returns.unscale(q_target[1:], 1e-3)
    best = real.gather(-1, q_online[1:].argmax(-1, keepdim=True)).squeeze(-1)
    v = 0.99 * best + 0.01 * real.mean(-1)
    ends = (steps.is_last & steps.terminated).unsqueeze(-1)
    expected = returns.rescale(steps.rewards.unsqueeze(-1) + 0.9 * v * ~ends, 1e-3)
    torch.testing.assert_close(received[steps.is_valid], expected[steps.is_valid])
    for form in ("harutyunyan", "retrace"):
        assert torch.equal(by_setting(form=form, decay=0.0), by_setting(decay=0.0))
    torch.testing.assert_close(by_setting(form="n-step", num_steps=1), by_setting(decay=0.0))


def test_with_lambda_1_the_uncorrected_form_is_the_whole_return_bootstrapped():
    long = by_setting(form="n-step", num_steps=T)
    torch.testing.assert_close(by_setting(decay=1.0), long)
    # In a window that ends a game no value enters at all.
    steps = make_steps()
    values = [make_values(seed) for seed in (10, 20, 30)]
    whole = replace(SETTINGS, decay=1.0)
    ours, theirs = (returns.targets(steps, values[0], q, whole) for q in values[1:])
    ended = steps.is_valid & steps.terminated
    torch.testing.assert_close(ours[ended], theirs[ended])
    assert not torch.allclose(ours[steps.is_valid], theirs[steps.is_valid])


def test_retrace_of_an_unlikely_behaviour_is_harutyunyan():
    steps = make_steps()
    rare = steps._replace(behaviour=torch.full_like(steps.behaviour, 1e-6))
    assert torch.equal(by_setting(rare, form="retrace"), by_setting(form="harutyunyan"))


def test_retrace_stops_where_a_greedy_target_would_act_otherwise():
    steps, q = make_steps(), make_values(10)
    greedy = q.argmax(-1)[:-1, :, 0]
    wrong = steps._replace(actions=(greedy + 1) % ACTIONS)
    settings = replace(SETTINGS, form="retrace", decay=1.0, target_epsilon=0.0)
    ours = returns.targets(wrong, q, make_values(20), settings)[..., 0]
    one_step = returns.targets(wrong, q, make_values(20), replace(settings, decay=0.0))[..., 0]
    torch.testing.assert_close(ours[steps.is_valid], one_step[steps.is_valid])


def test_harutyunyan_and_peng_agree_when_the_target_policy_was_followed_and_is_greedy():
    q = make_values(10)
    steps = make_steps()._replace(actions=q.argmax(-1)[:-1, :, 0])
    settings = replace(SETTINGS, target_epsilon=0.0)
    ours, theirs = (
        returns.targets(steps, q, make_values(20), replace(settings, form=form))[..., 0]
        for form in ("peng", "harutyunyan")
    )
    torch.testing.assert_close(ours[steps.is_valid], theirs[steps.is_valid])


def test_what_follows_a_windows_end_never_matters():
    steps, selector_q, q = make_steps(), make_values(10), make_values(20)
    for form in ("peng", "harutyunyan", "retrace", "n-step"):
        settings = replace(SETTINGS, form=form)
        clean = returns.targets(steps, selector_q, q, settings)[steps.is_valid]
        other = make_steps(7)
        garbled = steps._replace(
            actions=torch.where(steps.is_valid, steps.actions, other.actions),
            rewards=torch.where(steps.is_valid, steps.rewards, other.rewards),
            behaviour=torch.where(steps.is_valid, steps.behaviour, other.behaviour),
        )
        # The observation behind the last step is there, unless the game is over.
        is_there = torch.arange(T + 1)[:, None] < steps.lengths + (~steps.terminated).long()
        is_there = is_there[..., None, None]
        ours = [torch.where(is_there, x, make_values(40)) for x in (selector_q, q)]
        assert torch.equal(clean, returns.targets(garbled, *ours, settings)[steps.is_valid])


def test_the_online_network_chooses_and_the_target_network_values():
    steps, online, target = make_steps(), make_values(10), make_values(20)
    received = returns.targets(steps, online, target, SETTINGS)
    assert torch.equal(received, returns.targets(steps, online * 3.0, target, SETTINGS))
    assert not torch.equal(received, returns.targets(steps, -online, target, SETTINGS))
    assert not torch.equal(received, returns.targets(steps, online, target * 3.0, SETTINGS))


def test_values_are_averaged_after_they_are_taken_out_of_their_scale():
    steps = Steps(*(torch.zeros(1, 1) for _ in range(3)), torch.tensor([1]), torch.tensor([False]))
    steps = steps._replace(actions=torch.zeros(1, 1, dtype=torch.int64))
    q = torch.tensor([0.0, 10.0], dtype=torch.float64).expand(2, 1, 1, 2)
    settings = ReturnSettings(target_epsilon=1.0, discount=1.0)
    expected = h(0.5 * h_inverse(10.0))
    assert returns.targets(steps, q, q, settings).item() == pytest.approx(expected)
    assert expected > 6.5  # and not 5


def test_rescaling_and_back_is_the_identity_over_twelve_decades():
    x = torch.logspace(-6.0, 6.0, 20_001, dtype=torch.float64).float()
    x = torch.cat([x, -x, torch.zeros(1)])
    for epsilon in (1e-3, 1e-2, 0.0):
        back = returns.unscale(returns.rescale(x, epsilon), epsilon)
        assert back[-1] == 0.0
        relative = ((back - x).abs() / x.abs())[:-1]
        assert relative.max() < 16 * torch.finfo(torch.float32).eps
        assert torch.equal(back.sign(), x.sign())


def test_rescaling_equals_the_textbook():
    x = torch.tensor([-1e4, -3.0, -0.5, 0.0, 0.25, 1.0, 12.0, 1e5], dtype=torch.float64)
    expected = [h(value) for value in x.tolist()]
    torch.testing.assert_close(returns.rescale(x, 1e-3).tolist(), expected)
    expected = [h_inverse(value) for value in (x / 100.0).tolist()]
    np.testing.assert_allclose(returns.unscale(x / 100.0, 1e-3), expected, rtol=1e-9, atol=1e-12)
    assert returns.rescale(torch.tensor(99.0), 0.0).item() == 9.0


def test_epsilon_greedy_policies_are_distributions_with_the_first_best_action_ahead():
    q = torch.tensor([[1.0, 3.0, 3.0, 0.0]])
    torch.testing.assert_close(returns.epsilon_greedy(q, 0.4), torch.tensor([[0.1, 0.7, 0.1, 0.1]]))
    assert returns.epsilon_greedy(q, 0.0).tolist() == [[0.0, 1.0, 0.0, 0.0]]
    assert returns.epsilon_greedy(q, 1.0).tolist() == [[0.25] * 4]


def test_errors_are_targets_less_values_of_the_actions_taken():
    steps, q = make_steps(), make_values(10)
    targets = exact(T, BATCH, HEADS, seed=5)
    errors = returns.td_errors(steps, q, targets)
    for t, row, head in itertools.product(range(T), range(BATCH), range(HEADS)):
        expected = float(targets[t, row, head] - q[t, row, head, steps.actions[t, row]])
        assert errors[t, row, head] == (expected if t < LENGTHS[row] else 0.0)


def test_priorities_mix_largest_and_mean_sizes_of_errors():
    steps = Steps(
        *(torch.zeros(4, 2) for _ in range(3)), torch.tensor([4, 2]), torch.tensor([False, False])
    )
    # Signed means would be 0: sizes count. Padding does not, in maximum or mean.
    errors = torch.tensor([[1.0, -3.0], [-1.0, 3.0], [2.0, 0.0], [-2.0, 0.0]]).unsqueeze(-1)
    received = returns.priorities(steps, errors, 0.9, 1e-6)
    torch.testing.assert_close(received, torch.tensor([0.9 * 2.0 + 0.1 * 1.5, 3.0]))
    torch.testing.assert_close(
        returns.priorities(steps, errors, 0.0, 1e-6), torch.tensor([1.5, 3.0])
    )
    assert returns.priorities(steps, errors * 0.0, 0.9, 1e-4).tolist() == pytest.approx([1e-4] * 2)
    two_heads = torch.cat([errors, 3.0 * errors], dim=-1)
    torch.testing.assert_close(returns.priorities(steps, two_heads, 0.9, 1e-6), 2.0 * received)


def test_no_gradient_flows_through_targets():
    q = make_values(10).requires_grad_()
    assert not returns.targets(make_steps(), q, q, SETTINGS).requires_grad


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"form": "watkins"}, "^form must be one of 'peng'"),
        ({"decay": 1.1}, "^decay must lie in"),
        ({"num_steps": 0}, "^num_steps must be at least 1"),
        ({"discount": -0.1}, "^discount must lie in"),
        ({"target_epsilon": 2.0}, "^target_epsilon must lie in"),
        ({"rescaling": math.nan}, "^rescaling must lie in"),
    ],
)
def test_settings_of_returns_are_checked(changes, message):
    with pytest.raises(ValueError, match=message):
        ReturnSettings(**changes)
