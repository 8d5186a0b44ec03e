"""Distinct receptive fields: numbered as a dictionary of patches would number them."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ezgreedy.agents.r2d2.learner_settings import R2D2_TORSO
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


def check_layer(layer, below, rows, row, split):
    """That a layer's numbers say which patches are equal, and where each group's are."""
    _, height, width = layer.ids.shape
    seen = patches(below[rows], row, height, width)
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
    _, planes, height, width = below.shape
    offsets = [
        (plane * height + y) * width + x
        for plane in range(planes)
        for y in range(row.size)
        for x in range(row.size)
    ]
    for number, origin in enumerate(layer.origins.tolist()):
        assert by_patch[flat[[origin + offset for offset in offsets]].tobytes()] == number


def check(frames, torso, split, rows=None, lanes=1):
    fields = find_fields(frames, torso, split, rows=rows, lanes=lanes)
    rows = np.arange(len(frames)) if rows is None else rows
    assert (fields.split, fields.num_states) == (split, len(rows))
    below = frames
    for layer, row in zip(fields.layers, torso, strict=True):
        check_layer(layer, below, rows, row, split)
        below, rows = layer.ids[:, None], np.arange(len(rows))
    return fields


@settings(max_examples=80, deadline=None)
@given(
    seed=st.integers(0, 2**32 - 1),
    states=st.integers(1, 5),
    planes=st.integers(1, 3),
    sides=st.tuples(st.integers(9, 30), st.integers(9, 30)),
    rows=st.lists(st.tuples(st.integers(1, 9), st.integers(1, 4)), min_size=1, max_size=2),
    levels=st.sampled_from([1, 2, 3, 256]),
    dtype=st.sampled_from([np.uint8, np.uint16]),
    data=st.data(),
)
def test_fields_are_those_of_a_dictionary_of_patches(
    seed, states, planes, sides, rows, levels, dtype, data
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
    small = small * (1 if dtype == np.uint8 else 257)  # both bytes of two
    frames = small.repeat(4, 2).repeat(4, 3)[:, :, : sides[0], : sides[1]].astype(dtype)
    chosen = np.array(data.draw(st.lists(st.integers(0, states - 1), min_size=1, max_size=6)))
    split, lanes = data.draw(st.integers(0, len(chosen))), data.draw(st.integers(1, 3))
    check(np.ascontiguousarray(frames), torso, split, chosen, lanes)


@pytest.mark.parametrize("torso", [ATARI_TORSO, DER_TORSO], ids=["Atari", "DER"])
def test_fields_of_real_games_are_found_and_are_few(torso, real_frames):
    fields = check(real_frames[:6], torso, 3)
    assert fields.layers[0].share < 0.6


def test_fields_of_whole_screens_in_codes_are_found(screens_of):
    screens = screens_of("MsPacman")[:4]
    fields = check(screens, R2D2_TORSO, 4, rows=np.array([3, 1, 0, 2]), lanes=2)
    assert screens.dtype == np.uint16
    assert fields.layers[0].share < 0.2


def test_a_table_grows_as_far_as_it_must():
    noise = np.random.default_rng(0).integers(0, 2**16, (4, 1, 90, 90)).astype(np.uint16)
    fields = check(noise, (Convolution(4, 3, 1),), 2)
    assert fields.layers[0].num_distinct == 4 * 88 * 88 > 4 * module._FIRST_ROOM


@pytest.mark.parametrize("torso", [DER_TORSO, R2D2_TORSO], ids=["DER", "R2D2"])
def test_patches_of_one_hash_are_told_apart(torso, monkeypatch, real_frames, screens_of):
    """With every hash the same, all is found by comparison."""
    frames = real_frames[:4] if torso is DER_TORSO else screens_of("Freeway")[:4]
    expected = find_fields(frames, torso, 2)
    words_of_field = module._words_of_field

    def colliding(*arguments):
        field = words_of_field(*arguments)
        return field._replace(multipliers=np.zeros_like(field.multipliers))

    monkeypatch.setattr(module, "_words_of_field", colliding)
    found = find_fields(frames, torso, 2)
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
    with pytest.raises(ValueError, match="frames must have one or two bytes a pixel"):
        find_fields(np.zeros((2, 4, 84, 84)), ATARI_TORSO)
    with pytest.raises(ValueError, match="split must be"):
        find_fields(np.zeros((2, 4, 84, 84), np.uint8), ATARI_TORSO, split=3)
    with pytest.raises(ValueError, match=r"rows must lie in \[0, 2\)"):
        find_fields(np.zeros((2, 4, 84, 84), np.uint8), ATARI_TORSO, rows=np.array([0, 2]))
    with pytest.raises(ValueError, match="lanes must be at least 1"):
        find_fields(np.zeros((2, 4, 84, 84), np.uint8), ATARI_TORSO, lanes=0)
