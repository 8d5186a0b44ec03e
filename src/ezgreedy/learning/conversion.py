"""States of learners as NumPy arrays, which checkpoints hold, and back as tensors."""

from typing import Any

import torch
from torch import Tensor


def as_arrays(state: Any) -> Any:
    """A nested state with every tensor as an array of the same bits."""
    if isinstance(state, Tensor):
        return state.detach().cpu().numpy()
    return {name: as_arrays(part) for name, part in state.items()}


def as_tensors(state: Any) -> Any:
    """The inverse of `as_arrays`, on the processor."""
    if isinstance(state, dict):
        return {name: as_tensors(part) for name, part in state.items()}
    return torch.from_numpy(state.copy())
