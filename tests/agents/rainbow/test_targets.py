"""The equations of distributional double Q-learning, against loops and by hand."""

import math

import numpy as np
import pytest
import torch

from ezgreedy.agents.rainbow import targets

ATOMS = targets.support(-10.0, 10.0, 51)
EXACT_ATOMS = torch.linspace(-10.0, 10.0, 51, dtype=torch.float64)


def projected_by_loops(probabilities, positions, atoms):
    """Each position's mass, shared between its two neighbours in proportion to closeness."""
    projected = np.zeros((len(probabilities), len(atoms)))
    spacing = (atoms[-1] - atoms[0]) / (len(atoms) - 1)
    for row in range(len(probabilities)):
        for mass, position in zip(probabilities[row], positions[row], strict=True):
            place = (min(max(position, atoms[0]), atoms[-1]) - atoms[0]) / spacing
            below = min(math.floor(place), len(atoms) - 2)
            projected[row, below] += mass * (below + 1 - place)
            projected[row, below + 1] += mass * (place - below)
    return projected


def random_logits(*shape, seed=0):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed)) * 2.0


def test_projection_equals_a_double_loop():
    atoms = EXACT_ATOMS
    p = random_logits(64, 51).double().softmax(-1)
    positions = random_logits(64, 51, seed=1).double() * 5.0
    expected = projected_by_loops(p.numpy(), positions.numpy(), atoms.numpy())
    np.testing.assert_allclose(targets.projection(p, positions, atoms), expected, atol=1e-12)


@pytest.mark.parametrize("discount", [0.0, 0.99, 0.99**3, 1.0])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_projections_sum_to_1_whatever_the_return(discount, dtype):
    returns = torch.arange(-20, 21, dtype=dtype)
    logits = random_logits(41, 3, 51).to(dtype)
    atoms = ATOMS if dtype == torch.float32 else EXACT_ATOMS
    discounts = torch.full_like(returns, discount)
    target = targets.double_q_target(returns, discounts, logits, logits, atoms)
    tolerance = 1e-5 if dtype == torch.float32 else 1e-12
    np.testing.assert_allclose(target.sum(-1), np.ones(41), atol=tolerance)
    assert (target >= 0.0).all()


def test_mass_on_an_atom_stays_there_whole():
    atoms = EXACT_ATOMS
    p = torch.eye(51, dtype=torch.float64)
    positions = atoms.expand(51, 51)
    np.testing.assert_allclose(targets.projection(p, positions, atoms), np.eye(51), atol=1e-12)


@pytest.mark.parametrize("value", [-10.0, -20.0, 10.0, 20.0, 0.0, -9.6])
def test_an_end_of_the_game_puts_all_mass_at_the_return(value):
    returns, nothing = torch.tensor([value]), torch.zeros(1)
    logits = random_logits(1, 4, 51)
    target = targets.double_q_target(returns, nothing, logits, logits, ATOMS)[0]
    nearest = int((ATOMS - max(min(value, 10.0), -10.0)).abs().argmin())
    assert target[nearest] == pytest.approx(1.0, abs=1e-5)


def test_projection_keeps_the_mean_within_the_support():
    p = random_logits(20, 51).double().softmax(-1)
    positions = random_logits(20, 51, seed=3).double().clamp(-9.0, 9.0)
    atoms = EXACT_ATOMS
    np.testing.assert_allclose(
        targets.projection(p, positions, atoms) @ atoms, (p * positions).sum(-1), atol=1e-12
    )


def test_expected_values_by_hand():
    logits = torch.tensor([[[0.0, 0.0, 0.0], [-1e9, 0.0, 0.0]]])
    values = targets.expected_values(logits, torch.tensor([-1.0, 0.0, 4.0]))
    np.testing.assert_allclose(values, [[1.0, 2.0]])


def test_the_selector_chooses_and_the_target_evaluates():
    atoms = torch.tensor([0.0, 1.0])
    low, high = [9.0, 0.0], [0.0, 9.0]
    selector = torch.tensor([[low, high]])
    target = torch.tensor([[high, low]])
    m = targets.double_q_target(torch.zeros(1), torch.ones(1), target, selector, atoms)
    np.testing.assert_allclose(m[0], torch.tensor(low).softmax(-1), atol=1e-6)
    m = targets.double_q_target(torch.zeros(1), torch.ones(1), target, target, atoms)
    np.testing.assert_allclose(m[0], torch.tensor(high).softmax(-1), atol=1e-6)


def test_no_gradient_flows_through_targets():
    logits = random_logits(2, 3, 51).requires_grad_()
    target = targets.double_q_target(torch.ones(2), torch.ones(2), logits, logits, ATOMS)
    assert not target.requires_grad


def test_cross_entropy_by_hand():
    logits = torch.tensor([[[0.0, 0.0], [0.0, math.log(3.0)]]])
    target = torch.tensor([[0.25, 0.75]])
    loss = targets.cross_entropy(logits, torch.tensor([1]), target)
    expected = -(0.25 * math.log(0.25) + 0.75 * math.log(0.75))
    assert loss.tolist() == pytest.approx([expected])
    loss = targets.cross_entropy(logits, torch.tensor([0]), target)
    assert loss.tolist() == pytest.approx([math.log(2.0)])


def test_atoms_of_vanishing_probability_still_get_a_gradient():
    """Under log(clamp(p, 10⁻⁵)) the gradient here would be 0."""
    logits = torch.tensor([[[30.0, 0.0, -30.0]]], requires_grad=True)
    target = torch.tensor([[0.0, 0.0, 1.0]])
    loss = targets.cross_entropy(logits, torch.tensor([0]), target)
    loss.sum().backward()
    assert loss.item() == pytest.approx(60.0, abs=1e-4)
    np.testing.assert_allclose(logits.grad, [[[1.0, 0.0, -1.0]]], atol=1e-5)


def test_the_gradient_of_the_cross_entropy_is_p_minus_m():
    logits = random_logits(4, 3, 51).requires_grad_()
    actions = torch.tensor([0, 2, 1, 1])
    target = random_logits(4, 51, seed=8).softmax(-1)
    targets.cross_entropy(logits, actions, target).sum().backward()
    expected = torch.zeros(4, 3, 51)
    expected[torch.arange(4), actions] = targets.chosen(logits, actions).softmax(-1) - target
    np.testing.assert_allclose(logits.grad, expected.detach(), atol=1e-6)


def test_weights_change_the_loss_of_the_batch_but_not_those_of_its_rows():
    losses, weights = torch.tensor([1.0, 3.0]), torch.tensor([1.0, 0.5])
    assert targets.weighted_loss(losses, weights).item() == 1.25
    assert losses.tolist() == [1.0, 3.0]


def test_supports_that_are_none_are_refused():
    with pytest.raises(ValueError, match="least must be less"):
        targets.support(1.0, 1.0, 51)
    with pytest.raises(ValueError, match="num_atoms must be at least 2"):
        targets.support(0.0, 1.0, 1)
