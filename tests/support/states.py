"""Equality of checkpointed states, down to types and bit patterns."""

import struct

import numpy as np

from ezgreedy.running.state_tree import Tail


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
    elif isinstance(expected, Tail):
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
