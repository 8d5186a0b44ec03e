"""Distinct receptive fields: numbered as a dictionary of patches would number them."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ezgreedy.learning import distinct_fields as module
from ezgreedy.learning.distinct_fields import find_fields, used_places
from ezgreedy.learning.settings import ATARI_TORSO, DER_TORSO, Convolution


def patches(array, row, height, width):
    """The patch at every place, as bytes, in order of states, rows and columns."""
    size, stride = row.size, row.stride
    return [
        state[:, y * stride : y * stride + size, x * stride : x * stride + size].tobytes()
        for state in array
        for y in range(height)
        for x in range(width)
    ]


def check_layer(layer, below, row, split):
    """That a layer's numbers say which patches are equal, and where each group's are."""
    _, height, width = layer.ids.shape
    seen = patches(below, row, height, width)
    ids = layer.ids.reshape(-1)
    by_patch = {}
    for patch, number in zip(seen, ids.tolist(), strict=True):
        assert by_patch.setdefault(patch, number) == number
    assert len(set(by_patch.values())) == len(by_patch) == layer.num_distinct
    places = height * width
    first, second = set(ids[: split * places].tolist()), set(ids[split * places :].tolist())
    assert first == set(range(layer.first))
    assert second == set(range(layer.second, layer.num_distinct))
    flat = below.reshape(-1)
    _, planes, rows, columns = below.shape
    for number, origin in enumerate(layer.origins.tolist()):
        offsets = [
            (plane * rows + y) * columns + x
            for plane in range(planes)
            for y in range(row.size)
            for x in range(row.size)
        ]
        assert by_patch[flat[[origin + offset for offset in offsets]].tobytes()] == number


def check(frames, torso, split):
    fields = find_fields(frames, torso, split)
    assert fields.split == split
    below = frames
    for layer, row in zip(fields.layers, torso, strict=True):
        check_layer(layer, below, row, split)
        below = layer.ids[:, None]
    return fields


@settings(max_examples=60, deadline=None)
@given(
    seed=st.integers(0, 2**32 - 1),
    states=st.integers(1, 5),
    planes=st.integers(1, 3),
    sides=st.tuples(st.integers(9, 30), st.integers(9, 30)),
    rows=st.lists(st.tuples(st.integers(1, 9), st.integers(1, 4)), min_size=1, max_size=2),
    levels=st.sampled_from([1, 2, 3, 256]),
    data=st.data(),
)
def test_fields_are_those_of_a_dictionary_of_patches(
    seed, states, planes, sides, rows, levels, data
):
    torso = tuple(Convolution(4, size, stride) for size, stride in rows)
    for side in sides:
        for row in torso:
            side = (side - row.size) // row.stride + 1
            if side < 1:
                return
    rng = np.random.default_rng(seed)
    # Coarse blocks, so that patches repeat.
    small = rng.integers(0, levels, (states, planes, 1 + sides[0] // 4, 1 + sides[1] // 4))
    frames = small.repeat(4, 2).repeat(4, 3)[:, :, : sides[0], : sides[1]].astype(np.uint8)
    check(np.ascontiguousarray(frames), torso, data.draw(st.integers(0, states)))


@pytest.mark.parametrize("torso", [ATARI_TORSO, DER_TORSO], ids=["Atari", "DER"])
def test_fields_of_real_games_are_found_and_are_few(torso, real_frames):
    fields = check(real_frames[:6], torso, 3)
    assert fields.layers[0].share < 0.6


def test_patches_of_one_hash_are_told_apart(monkeypatch, real_frames):
    """With every hash the same, all is found by comparison."""
    expected = find_fields(real_frames[:4], DER_TORSO, 2)
    words_of_field = module._words_of_field

    def colliding(*arguments):
        field = words_of_field(*arguments)
        return field._replace(multipliers=np.zeros_like(field.multipliers))

    monkeypatch.setattr(module, "_words_of_field", colliding)
    found = find_fields(real_frames[:4], DER_TORSO, 2)
    for layer, other in zip(found.layers, expected.layers, strict=True):
        np.testing.assert_array_equal(layer.ids, other.ids)
        np.testing.assert_array_equal(layer.origins, other.origins)


def test_places_that_nothing_above_reads_are_left_out():
    # 16 × 16 places of 5 × 5 in steps of 5, of which a second layer of the same reads 15 × 15.
    assert used_places((84, 84), DER_TORSO) == ((15, 15), (3, 3))
    assert used_places((84, 84), ATARI_TORSO) == ((20, 20), (9, 9), (7, 7))


def test_frames_with_too_many_distinct_fields_are_given_up():
    noise = np.random.default_rng(0).integers(0, 256, (2, 4, 84, 84)).astype(np.uint8)
    assert find_fields(noise, ATARI_TORSO, largest_share=0.6) is None
    assert find_fields(noise, ATARI_TORSO).layers[0].share == 1.0


def test_what_is_not_frames_of_bytes_is_refused():
    with pytest.raises(ValueError, match=r"frames must be uint8, \[states, planes, height, width"):
        find_fields(np.zeros((2, 4, 84, 84)), ATARI_TORSO)
    with pytest.raises(ValueError, match="split must be"):
        find_fields(np.zeros((2, 4, 84, 84), np.uint8), ATARI_TORSO, split=3)
