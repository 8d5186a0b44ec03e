"""Batches whose observations travel compressed: the same windows, wherever they are decoded."""

import pickle

import numpy as np
import pytest

from ezgreedy.games import R2D2_PROTOCOL
from ezgreedy.games.lanes import Lanes
from ezgreedy.replay.blocks import BlockCodec
from ezgreedy.replay.compressed_batch import BatchDecoder
from ezgreedy.replay.cutting import SequenceSettings
from ezgreedy.replay.sequence_replay import SequenceReplay
from ezgreedy.replay.sequences import SequenceAccumulator, SequenceStep

CUT = SequenceSettings(length=8, burn_in=2, stride=4)
SHAPE = (1, 21, 16)
LENGTHS = (1, 3, 9, 40, 26, 5)


def episodes(dtype):
    """Episodes of random observations, few of which have the same codes."""
    rng = np.random.default_rng(0)
    for length in LENGTHS:
        values = rng.choice(60_000 if dtype == np.uint16 else 256, size=(20, *SHAPE))
        yield rng.permuted(values, axis=0)[rng.integers(20, size=length + 1)].astype(dtype)


def replay_of(frames, codec, cut, seed=3):
    """A replay of episodes, and the episodes by the numbers of their windows."""
    accumulator = SequenceAccumulator(codec, cut)
    replay = SequenceReplay(10_000, codec, cut, (2,), rng=np.random.default_rng(seed))
    whole, state = {}, np.zeros(2, dtype=np.float32)
    for episode in frames:
        accumulator.begin(0, episode[0])
        for time, seen in enumerate(episode[1:], start=1):
            step = SequenceStep(time % 3, 0.5, seen, terminated=time == len(episode) - 1)
            for window in accumulator.step(0, step, state, state):
                slot = replay.add(window._replace(priority=1.0))
                whole[slot] = episode, window.start
    return replay, whole


@pytest.mark.parametrize("threads", [1, 2, 3])
@pytest.mark.parametrize("dtype", [np.uint8, np.uint16])
def test_windows_are_decoded_into_any_memory_by_any_number_of_threads(dtype, threads):
    codec = BlockCodec(SHAPE, dtype, CUT.stride)
    replay, whole = replay_of(episodes(dtype), codec, CUT)
    decoder = BatchDecoder(codec.another(), CUT, threads)
    for size in (1, 2, 33):
        drawn = pickle.loads(pickle.dumps(replay.draw(size)))
        out = np.full(decoder.shape(size), 7, dtype=dtype)
        batch = decoder(drawn, out)
        assert batch.observations is out
        for row, slot in enumerate(batch.slots):
            episode, start = whole[slot]
            expected = np.zeros((CUT.burn_in + CUT.length + 1, *SHAPE), dtype=dtype)
            first = start - batch.prefix_lengths[row]
            seen = episode[first : start + batch.lengths[row] + 1]
            begin = CUT.burn_in - batch.prefix_lengths[row]
            expected[begin : begin + len(seen)] = seen
            np.testing.assert_array_equal(out[row], expected)


def test_drawing_and_decoding_is_sampling():
    codec = BlockCodec(SHAPE, np.uint16, CUT.stride)
    ours, theirs = (replay_of(episodes(np.uint16), codec, CUT)[0] for _ in range(2))
    decoder = BatchDecoder(codec.another(), CUT)
    for _ in range(3):
        drawn, expected = ours.draw(9), theirs.sample(9)
        batch = decoder(drawn, np.empty(decoder.shape(9), dtype=np.uint16))
        for name in expected._fields:
            np.testing.assert_array_equal(getattr(batch, name), getattr(expected, name))


def test_windows_that_share_blocks_bring_each_once():
    codec = BlockCodec(SHAPE, np.uint8, CUT.stride)
    replay, _ = replay_of(episodes(np.uint8), codec, CUT)
    few, many = replay.draw(4), replay.draw(2000)
    assert len(few.ends) <= 4 * 3
    num_blocks = sum(-(-length // CUT.stride) for length in LENGTHS)
    assert len(many.ends) == num_blocks  # all of them, and each once
    assert len(np.unique(many.parts[:, 0])) == num_blocks
    assert len(many.payloads) == many.ends[-1] == replay.num_bytes


@pytest.mark.parametrize("game", ["Breakout", "MontezumaRevenge"])
def test_a_batch_of_atari_travels_in_a_hundredth_of_its_size(game):
    lanes = Lanes(game, 1, R2D2_PROTOCOL, seed=0)
    rng = np.random.default_rng(0)
    frames = [lanes.reset()[0]]
    while len(frames) <= 200:
        frames.append(lanes.step(rng.integers(lanes.num_actions, size=1)).next_observations[0])
    cut = SequenceSettings()
    codec = BlockCodec(frames[0].shape, frames[0].dtype, cut.stride)
    replay, _ = replay_of([np.stack(frames)], codec, cut)
    drawn = replay.draw(2)
    decoder = BatchDecoder(codec.another(), cut)
    batch = decoder(drawn, np.empty(decoder.shape(2), dtype=codec.dtype))
    assert drawn.num_bytes < batch.observations.nbytes / 100


def test_memory_that_does_not_fit_is_refused():
    codec = BlockCodec(SHAPE, np.uint8, CUT.stride)
    replay, _ = replay_of(episodes(np.uint8), codec, CUT)
    decoder = BatchDecoder(codec.another(), CUT)
    drawn = replay.draw(2)
    for shape, dtype in ((decoder.shape(3), np.uint8), (decoder.shape(2), np.uint16)):
        with pytest.raises(ValueError, match=r"out must be uint8 of shape \(2, 11, 1, 21, 16\)"):
            decoder(drawn, np.empty(shape, dtype=dtype))
    with pytest.raises(ValueError, match="threads must be at least 1; got 0"):
        BatchDecoder(codec, CUT, 0)
