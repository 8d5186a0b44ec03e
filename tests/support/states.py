"""States of trainings, made comparable."""

import numpy as np


def bits(state):
    """A nested state as one comparable value, to the last bit."""
    if isinstance(state, dict):
        return {key: bits(value) for key, value in state.items()}
    if isinstance(state, list):
        return [bits(value) for value in state]
    if hasattr(state, "array"):
        return state.num_written, bits(state.array)
    if isinstance(state, np.ndarray):
        return str(state.dtype), state.shape, state.tobytes()
    return state
