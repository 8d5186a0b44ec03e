"""Windows in transit from an actor to a memory: always the same few flat arrays.

A call between processes costs about a millisecond regardless of size, and every array in it costs a
little more; therefore windows are concatenated and sent together. Observations are already
compressed. Unpacked windows share no memory with packed ones.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ezgreedy.replay.sequences import Block, Window

Packed = dict[str, NDArray[Any]]

# Fewest windows for one call: with fewer, the call itself dominates the cost.
LEAST_WINDOWS_PER_CALL = 8

_INTS = ("lane", "episode", "start", "length", "prefix_length", "terminated", "previous_action")
_FLOATS = ("previous_reward", "priority")
_STEPS = ("actions", "rewards", "masks", "behaviour_probabilities")
_NO_PRIORITY = -1.0


def pack(windows: Sequence[Window]) -> Packed:
    """At least one window as arrays: [windows, …], [all blocks, …] or [all steps]."""
    blocks = [block for window in windows for block in window.blocks]
    floats = [
        (window.previous_reward, _NO_PRIORITY if window.priority is None else window.priority)
        for window in windows
    ]
    packed: Packed = {
        "ints": np.array([[getattr(w, name) for name in _INTS] for w in windows], dtype=np.int64),
        "floats": np.array(floats, dtype=np.float64),
        "state_h": np.stack([window.state_h for window in windows]),
        "state_c": np.stack([window.state_c for window in windows]),
        "num_blocks": np.array([len(window.blocks) for window in windows], dtype=np.int64),
        "num_bytes": np.array([len(block.payload) for block in blocks], dtype=np.int64),
        "num_steps": np.array([len(block.actions) for block in blocks], dtype=np.int64),
        "payloads": np.frombuffer(b"".join(block.payload for block in blocks), dtype=np.uint8),
    }
    for name in _STEPS:
        parts = [getattr(block, name) for block in blocks]
        packed[name] = np.concatenate(parts) if parts else np.zeros(0)
    return packed


def unpack(packed: Packed) -> list[Window]:
    """The inverse of `pack`, except for estimates, which are not sent."""
    blocks = _blocks(packed)
    ends = packed["num_blocks"].cumsum().tolist()
    starts = [0, *ends[:-1]]
    windows = []
    for row, (ints, floats) in enumerate(
        zip(packed["ints"].tolist(), packed["floats"].tolist(), strict=True)
    ):
        named: dict[str, Any] = dict(zip(_INTS, ints, strict=True))
        reward, priority = floats
        named |= {"terminated": bool(named["terminated"]), "previous_reward": reward}
        windows.append(
            Window(
                **named,
                priority=None if priority == _NO_PRIORITY else priority,
                state_h=packed["state_h"][row].copy(),
                state_c=packed["state_c"][row].copy(),
                blocks=tuple(blocks[starts[row] : ends[row]]),
                estimates=np.zeros((0,), dtype=np.float32),
            )
        )
    return windows


def num_bytes(packed: Packed) -> int:
    """Size of the data, without the small overhead of names and types."""
    return sum(array.nbytes for array in packed.values())


def _blocks(packed: Packed) -> list[Block]:
    byte_ends = packed["num_bytes"].cumsum().tolist()
    step_ends = packed["num_steps"].cumsum().tolist()
    # Received arrays are views of shared memory, so everything that is kept is copied.
    payloads = packed["payloads"].tobytes()
    steps = [packed[name].copy() for name in _STEPS]
    return [
        Block(payloads[first:last], *(array[begin:end] for array in steps))
        for first, last, begin, end in zip(
            [0, *byte_ends[:-1]], byte_ends, [0, *step_ends[:-1]], step_ends, strict=True
        )
    ]
