"""How much room does a replay of sequences take? Only the numbers, before there are any arrays."""

from math import ceil
from typing import NamedTuple

from ezgreedy import requirements as require
from ezgreedy.replay.cutting import SequenceSettings

# Bytes set aside per observation: the 57 games need 323 on average under mixed play, the worst of
# them 1,700, and play that gets further needs more than random play.
BYTES_PER_OBSERVATION = 700
BLOCK_HEAD = 2  # bytes for the number of codes in a block's table; 0 for a block without a table
NUM_RANKS = 256  # the most codes in a table
STEP_BYTES = 13  # action (4), reward (4), mask (1), behaviour probability (4)
# Lanes take turns, so blocks of a window may be older than those of earlier windows.
_SPARE_BLOCKS = 256
_BLOCK_PLACE_BYTES = 8
# Oldest block, lengths, previous action (8 each), previous reward (4), whether it terminated.
_WINDOW_BYTES = 4 * 8 + 4 + 1
_MEMBER_BYTES = 2 * 8  # in the set of windows that can be drawn


class SequenceSizes(NamedTuple):
    """The sizes of a replay's parts."""

    num_windows: int
    num_blocks: int
    bytes_each: int  # set aside for an observation
    block_bytes: int  # for all compressed observations
    other_bytes: int

    @property
    def num_bytes(self) -> int:
        """The bytes of the whole replay."""
        return self.block_bytes + self.other_bytes


def sequence_sizes(
    capacity: int,
    settings: SequenceSettings,
    observation_bytes: int,
    state_size: int,
    bytes_per_observation: int = BYTES_PER_OBSERVATION,
) -> SequenceSizes:
    """The sizes of a replay; refuses a budget of bytes into which no window may fit.

    Args:
        capacity: capacity in observations.
        settings: how windows are cut.
        observation_bytes: bytes of an observation before compression.
        state_size: numbers in each half of a recurrent state.
        bytes_per_observation: bytes to set aside for each observation, compressed; never more than
            one can take.
    """
    stride, per_window = settings.stride, settings.blocks_per_window
    num_windows = require.integer("capacity", capacity, least=stride) // stride
    most_each = most_block_bytes(stride, observation_bytes)
    least = least_bytes_per_observation(capacity, settings, observation_bytes)
    asked = require.integer("bytes_per_observation", bytes_per_observation, least)
    bytes_each = min(asked, most_each // stride + 1)
    num_blocks = per_window * num_windows + _SPARE_BLOCKS
    tree = 2 * (1 << max(num_windows - 1, 0).bit_length())
    each_window = 8 * (per_window + 1) + _WINDOW_BYTES + _MEMBER_BYTES + 8 * state_size
    return SequenceSizes(
        num_windows=num_windows,
        num_blocks=num_blocks,
        bytes_each=bytes_each,
        # The size of blocks varies; a few of them must fit even if they do not compress at all.
        block_bytes=max(num_windows * stride * bytes_each, 2 * (per_window + 1) * most_each),
        other_bytes=num_blocks * (STEP_BYTES * stride + _BLOCK_PLACE_BYTES)
        + num_windows * each_window
        + 8 * tree,
    )


def least_bytes_per_observation(
    capacity: int, settings: SequenceSettings, observation_bytes: int
) -> int:
    """The fewest bytes to set aside for each observation so that a window fits uncompressed.

    The usual number is always enough; a replay of few observations then takes more than that.

    Args:
        capacity: capacity in observations.
        settings: how windows are cut.
        observation_bytes: bytes of an observation before compression.
    """
    most_each = most_block_bytes(settings.stride, observation_bytes)
    window_bytes = (settings.blocks_per_window + 1) * most_each
    usual = min(BYTES_PER_OBSERVATION, most_each // settings.stride + 1)
    return min(ceil(window_bytes / (capacity // settings.stride * settings.stride)), usual)


def raw_block_bytes(num_steps: int, observation_bytes: int) -> int:
    """The bytes of a full block before compression.

    Args:
        num_steps: number of steps in a block.
        observation_bytes: bytes of an observation.
    """
    return (num_steps + 1) * observation_bytes + BLOCK_HEAD + 2 * NUM_RANKS


def most_block_bytes(num_steps: int, observation_bytes: int) -> int:
    """The most bytes of a block, however badly it compresses: zstd's bound, rounded up.

    Args:
        num_steps: number of steps in a block.
        observation_bytes: bytes of an observation.
    """
    raw = raw_block_bytes(num_steps, observation_bytes)
    return raw + raw // 128 + 512
