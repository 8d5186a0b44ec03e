"""Learners' tensors: made from arrays, copied out as states, and restored to the last bit."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from ezgreedy import requirements as require

_MOMENTS = ("step", "exp_avg", "exp_avg_sq")  # as torch's Adam calls them


def tensor(array: NDArray[Any] | Tensor, device: torch.device) -> Tensor:
    """An array as a tensor, sharing its memory where possible; a tensor as it is.

    Arrays of other processes are read-only. Torch has no read-only tensors and warns of them, so
    they are copied. Nor does it compute with uint16, the type of colour codes; they are small
    enough to be int16.
    """
    if isinstance(array, Tensor):
        return array.to(device)
    if array.dtype == np.uint16:
        array = array.view(np.int16)
    return torch.as_tensor(np.require(array, requirements="W"), device=device)


def generators(seed: int, *purposes: str) -> dict[str, torch.Generator]:
    """Independent generators from one seed, one for each purpose."""
    words = np.random.SeedSequence(seed).generate_state(len(purposes), np.uint64)
    return {
        purpose: torch.Generator().manual_seed(int(word))
        for purpose, word in zip(purposes, words, strict=True)
    }


def adam(network: nn.Module, learning_rate: float, epsilon: float) -> torch.optim.Adam:
    """Adam with all its moments in place, so that its state has one shape from the start."""
    optimizer = torch.optim.Adam(network.parameters(), lr=learning_rate, eps=epsilon, fused=True)
    for parameter in network.parameters():
        count = torch.zeros((), device=parameter.device)
        moments = count, torch.zeros_like(parameter), torch.zeros_like(parameter)
        optimizer.state[parameter] = dict(zip(_MOMENTS, moments, strict=True))
    return optimizer


def moments(optimizer: torch.optim.Adam, network: nn.Module) -> dict[str, dict[str, Tensor]]:
    """The tensors of Adam's state themselves, by the names of their parameters."""
    return {
        name: {moment: optimizer.state[parameter][moment] for moment in _MOMENTS}
        for name, parameter in network.named_parameters()
    }


def copied(state: Any) -> Any:
    """The same nesting with tensors of its own."""
    if isinstance(state, Tensor):
        return state.detach().clone()
    return {name: copied(part) for name, part in state.items()}


def copy_into(own: Any, state: Any) -> None:
    """Overwrite tensors in place."""
    if isinstance(own, Tensor):
        own.detach().copy_(state)
        return
    for name, part in own.items():
        copy_into(part, state[name])


def load_parameters(network: nn.Module, state: Mapping[str, Tensor]) -> None:
    """Give a network for acting only the parameters of another; refuses those that do not fit."""
    own = dict(network.state_dict())
    check_like("state.online", state, own)
    copy_into(own, state)
    network.requires_grad_(False)


def as_arrays(state: Any) -> Any:
    """A nested state with every tensor as an array of the same bits, for checkpoints."""
    if isinstance(state, Tensor):
        return state.detach().cpu().numpy()
    if isinstance(state, dict):
        return {name: as_arrays(part) for name, part in state.items()}
    return state


def as_tensors(state: Any) -> Any:
    """The inverse of `as_arrays`, on the processor."""
    if isinstance(state, np.ndarray):
        return torch.from_numpy(state.copy())
    if isinstance(state, dict):
        return {name: as_tensors(part) for name, part in state.items()}
    return state


def check_like(name: str, state: Any, own: Any) -> None:
    """Refuse a state whose tensors are not those of `own` in name, shape and type."""
    if isinstance(own, Tensor):
        if not isinstance(state, Tensor):
            raise require.refuse_type(name, "be a tensor", state)
        if (state.shape, state.dtype) != (own.shape, own.dtype):
            rule = f"be {own.dtype} of shape {tuple(own.shape)}"
            received = require.Described(f"{state.dtype} of shape {tuple(state.shape)}")
            raise require.refuse(name, rule, received)
        return
    if not isinstance(state, Mapping) or set(state) != set(own):
        names = sorted(map(str, state)) if isinstance(state, Mapping) else state
        raise require.refuse(name, f"hold {', '.join(own)}", names)
    for key, part in own.items():
        check_like(f"{name}.{key}", state[key], part)
