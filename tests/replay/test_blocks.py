"""Blocks give back what went in, whatever it was; the store keeps the newest of them."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ezgreedy.checkpoints.append_only_ring import AppendOnlyRing
from ezgreedy.games import R2D2_PROTOCOL, Emulator, games
from ezgreedy.replay.blocks import BlockCodec, BlockStore
from ezgreedy.replay.sequence_sizes import BYTES_PER_OBSERVATION


def observations(dtype, shape, count, num_values=20, seed=0):
    rng = np.random.default_rng(seed)
    if dtype == np.float32:
        return rng.normal(size=(count, *shape)).astype(np.float32)
    most = np.iinfo(dtype).max
    values = rng.choice(most + 1, size=min(num_values, most + 1), replace=False)
    return rng.choice(values, size=(count, *shape)).astype(dtype)


def decoded(codec, payload, first, count):
    out = np.full((count, *codec.observation_shape), 7, dtype=codec.dtype)
    codec.decode(payload, first, out)
    return out


KINDS = {
    "planes": (np.uint8, (4, 10, 10), 2),
    "grey": (np.uint8, (1, 84, 84), 256),
    "vector": (np.float32, (3,), 0),
    "number": (np.float32, (), 0),
    "few codes": (np.uint16, (1, 21, 16), 5),
    "as many codes as ranks": (np.uint16, (1, 21, 16), 256),
    "one code more": (np.uint16, (1, 21, 16), 257),
    "too many codes": (np.uint16, (1, 21, 16), 5000),
}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("count", [2, 3, 9])
def test_every_stretch_of_a_block_comes_back(kind, count):
    dtype, shape, num_values = KINDS[kind]
    codec = BlockCodec(shape, dtype, num_steps=8)
    block = observations(dtype, shape, count, num_values)
    payload = codec.encode(block)
    assert type(payload) is bytes
    assert len(payload) <= codec.most_bytes
    codec.encode(observations(dtype, shape, 9, seed=1))  # and nothing of it is in a buffer
    for first in range(count):
        for last in range(first + 1, count + 1):
            np.testing.assert_array_equal(
                decoded(codec, payload, first, last - first), block[first:last]
            )
    other = BlockCodec(shape, dtype, num_steps=8)
    np.testing.assert_array_equal(decoded(other, payload, 0, count), block)


@pytest.mark.parametrize("kind", ["few codes", "too many codes", "vector"])
def test_half_a_block_and_more_than_a_block_are_refused(kind):
    dtype, shape, num_values = KINDS[kind]
    codec = BlockCodec(shape, dtype, num_steps=8)
    payload = codec.encode(observations(dtype, shape, 5, num_values))
    with pytest.raises(ValueError, match="out must ask for observations that the block has"):
        decoded(codec, payload, 2, 4)
    with pytest.raises(ValueError, match="payload must be a whole block"):
        decoded(codec, payload[: len(payload) // 2], 0, 1)


def test_codes_take_a_byte_each_where_there_are_at_most_256():
    noise = {n: observations(np.uint16, (1, 60, 60), 9, n) for n in (256, 257)}
    codec = BlockCodec((1, 60, 60), np.uint16, num_steps=8)
    raw = noise[256].size
    assert raw < len(codec.encode(noise[256])) < 1.02 * raw + 600
    assert len(codec.encode(noise[257])) > 1.1 * raw


def test_a_block_does_not_depend_on_those_before_it():
    codec = BlockCodec((1, 21, 16), np.uint16, num_steps=8)
    blocks = [observations(np.uint16, (1, 21, 16), 9, 200, seed) for seed in range(3)]
    for block in blocks:
        fresh = BlockCodec((1, 21, 16), np.uint16, num_steps=8)
        assert codec.encode(block) == fresh.encode(block)


def test_what_is_no_block_is_refused():
    codec = BlockCodec((2, 3), np.uint16, num_steps=4)
    block = observations(np.uint16, (2, 3), 7)
    for wrong in (block[:1], block[:6]):
        with pytest.raises(ValueError, match="observations must be of 1 to 4 steps"):
            codec.encode(wrong)
    with pytest.raises(ValueError, match=r"observations must be uint16 of shape \(2, 3\) each"):
        codec.encode(block[:3].astype(np.uint8))
    with pytest.raises(ValueError, match="dtype must be uint8, uint16 or float32"):
        BlockCodec((2, 3), np.float64)


@settings(max_examples=150, deadline=None)
@given(
    st.integers(1, 6),
    st.integers(20, 60),
    st.lists(st.integers(1, 20), max_size=40),
)
def test_the_store_keeps_the_newest_blocks_that_fit(num_blocks, num_bytes, lengths):
    store, written = BlockStore(num_blocks, num_bytes), []
    for number, length in enumerate(lengths):
        written.append(np.random.default_rng(number).bytes(length))
        assert store.append(written[-1]) == number
        kept = []
        for payload in reversed(written):
            if len(kept) == num_blocks or sum(map(len, kept)) + len(payload) > num_bytes:
                break
            kept.append(payload)
        assert store.first == len(written) - len(kept)
        assert store.num_bytes == sum(map(len, kept))
        for distance, payload in enumerate(kept):
            assert store.read(number - distance).tobytes() == payload
        for lost in (store.first - 1, number + 1):
            with pytest.raises(ValueError, match="number must lie in"):
                store.read(lost)
    other = BlockStore(num_blocks, num_bytes)
    other.load_state_dict(store.state_dict())
    for target in (store, other):
        target.append(b"new")
    assert other.first == store.first
    for number in range(store.first, store.num_written):
        assert other.read(number).tobytes() == store.read(number).tobytes()


def test_rows_since_an_earlier_save_are_all_that_a_saver_writes():
    """The rings of bytes and of beginnings only ever change where the counts say."""
    store, payloads = BlockStore(5, 50), [bytes([n] * (n % 7 + 3)) for n in range(40)]
    for payload in payloads[:17]:
        store.append(payload)
    saved = {
        name: AppendOnlyRing(
            store.state_dict()[name].array.copy(), store.state_dict()[name].num_written
        )
        for name in ("bytes", "begins")
    }
    for payload in payloads[17:21]:
        store.append(payload)
    for name, then in saved.items():
        now = store.state_dict()[name]
        for position in range(then.num_written, now.num_written):
            index = position % len(then.array)
            then.array[index] = now.array[index]
        np.testing.assert_array_equal(then.array, now.array)


def test_what_the_store_cannot_hold_is_refused():
    store = BlockStore(2, 10)
    for wrong in (b"", b"x" * 11):
        with pytest.raises(ValueError, match="payload must take 1 to 10 bytes"):
            store.append(wrong)
    with pytest.raises(ValueError, match="state must hold bytes of shape"):
        store.load_state_dict(BlockStore(2, 11).state_dict())


def mixed_play(name, num_steps):
    """Bytes for each observation of a game: 100 steps of lasting actions, 100 of random ones."""
    env = Emulator(name, R2D2_PROTOCOL, rng=np.random.default_rng(0))
    codec, rng = BlockCodec(env.observation_shape, env.frame_dtype), np.random.default_rng(1)
    block, action, num_bytes = [env.reset()], 0, 0
    for time in range(num_steps):
        if time // 100 % 2 or rng.random() < 0.1:
            action = int(rng.integers(18))
        step = env.step(action)
        block.append(step.observation)
        is_last = step.terminated or step.truncated
        if len(block) == 41 or is_last:
            payload = codec.encode(np.stack(block))
            np.testing.assert_array_equal(decoded(codec, payload, 0, len(block)), np.stack(block))
            num_bytes += len(payload)
            block = [env.reset() if is_last else step.observation]
    return num_bytes / num_steps


def test_a_few_games_take_few_bytes():
    sizes = [mixed_play(name, 120) for name in ("Pong", "Seaquest", "MontezumaRevenge")]
    assert max(sizes) < BYTES_PER_OBSERVATION


@pytest.mark.slow
def test_the_57_games_take_at_most_700_bytes_an_observation_on_average():
    sizes = {name: mixed_play(name, 400) for name in games()}
    assert np.mean(list(sizes.values())) <= BYTES_PER_OBSERVATION
    assert max(sizes.values()) < 3 * BYTES_PER_OBSERVATION
