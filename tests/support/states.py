"""States of trainings, made comparable down to types and bit patterns."""

import struct

import numpy as np

from ezgreedy.checkpoints.state_tree import AppendOnlyRing


def assert_same(got: object, expected: object) -> None:
    assert type(got) is type(expected)
    if isinstance(expected, dict):
        assert list(got) == list(expected)
        for key, value in expected.items():
            assert_same(got[key], value)
    elif isinstance(expected, (list, tuple)):
        assert len(got) == len(expected)
        for one, other in zip(got, expected, strict=True):
            assert_same(one, other)
    elif isinstance(expected, AppendOnlyRing):
        assert got.num_written == expected.num_written
        assert_same(got.array, expected.array)
    elif isinstance(expected, (np.ndarray, np.generic)):
        assert got.dtype == expected.dtype
        assert got.dtype.byteorder == expected.dtype.byteorder
        assert got.shape == expected.shape
        assert got.tobytes() == expected.tobytes()
    elif isinstance(expected, float):
        assert struct.pack("d", got) == struct.pack("d", expected)
    else:
        assert got == expected


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
