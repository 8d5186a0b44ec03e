"""What goes into a checkpoint comes out of it exactly."""

import math
import shutil
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

pytest.importorskip("safetensors")

from ezgreedy.checkpoints.append_only_ring import AppendOnlyRing
from ezgreedy.checkpoints.store import Checkpoints, Loaded
from support.states import assert_same

DTYPES = [
    *("bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"),
    *("float16", "float32", "float64", "complex64", "complex128", ">f8", ">i4"),
]
FINITE = {"allow_nan": False, "allow_infinity": False}


def arrays(shape):
    return st.sampled_from(DTYPES).flatmap(lambda dtype: hnp.arrays(dtype, shape, elements=FINITE))


@st.composite
def tails(draw):
    array = draw(arrays(hnp.array_shapes(min_dims=1, max_dims=3, max_side=4)))
    tail = AppendOnlyRing(array, draw(st.integers(0, 9)))
    # Rows without an item come back as zeros.
    tail.array[tail.num_written :] = 0
    return tail


LEAVES = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.integers(0, 2**128 - 1)
    | st.floats(**FINITE)
    | st.text()
    | st.binary()
    | arrays(hnp.array_shapes(min_dims=0, max_dims=3, min_side=0, max_side=3))
    | arrays(()).map(lambda array: array[()])
    | tails()
)
VALUES = st.recursive(
    LEAVES,
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.lists(inner, max_size=3).map(tuple)
        | st.dictionaries(st.text() | st.integers(), inner, max_size=3)
    ),
    max_leaves=10,
)
STATES = st.dictionaries(st.text(), VALUES, max_size=4)


def round_trip(directory: Path, state: dict) -> Loaded:
    shutil.rmtree(directory, ignore_errors=True)
    Checkpoints(directory, {}).save(3, state)
    loaded = Checkpoints(directory, {}).load()
    assert loaded is not None
    return loaded


@pytest.fixture(scope="module")
def directory(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("states") / "checkpoints"


@given(state=STATES)
@settings(max_examples=150, deadline=None)
def test_states_come_back_exactly(directory: Path, state: dict) -> None:
    loaded = round_trip(directory, state)
    assert loaded.step == 3
    assert loaded.notices == ()
    assert_same(loaded.state, state)


def test_what_is_hard_to_keep_comes_back_exactly(directory: Path) -> None:
    state = {
        "pcg64": np.random.default_rng(5).bit_generator.state,
        "huge": -(10**5000),
        "minus_zero": -0.0,
        "subnormal": 5e-324,
        "every_second": np.arange(20).reshape(4, 5)[::2, ::-1],
        "fortran": np.asfortranarray(np.arange(6.0).reshape(2, 3)),
        "no_dimensions": np.array(2**64 - 1, dtype=np.uint64),
        "no_elements": np.zeros((3, 0, 2), dtype=np.complex128),
        "no_bytes": b"",
        "lone_surrogate \ud800": "\udfff",
        "optimizer": {"state": {0: {"betas": (0.9, 0.999)}}, "1": {}, 1: []},
        "number": np.float32(0.1),
    }
    assert_same(round_trip(directory, state).state, state)


def test_loaded_arrays_can_be_written_to_and_are_not_shared(directory: Path) -> None:
    array = np.zeros(3)
    first = round_trip(directory, {"a": array, "b": array}).state
    first["a"][0] = 7.0
    assert first["b"][0] == 0.0
    assert array[0] == 0.0


@pytest.mark.parametrize(
    ("state", "message"),
    [
        ({"x": math.nan}, r"state\['x'\] must be finite; got nan"),
        ({"x": [0, {"y": -math.inf}]}, r"state\['x'\]\[1\]\['y'\] must be finite; got -inf"),
        ({"x": np.array([[0, 1], [np.inf, 0]])}, r"\['x'\] must be finite; got inf at \[1, 0\]"),
        ({"x": np.float16("nan")}, r"state\['x'\] must be finite; got nan"),
        ({"x": np.array(complex(0, math.nan))}, r"state\['x'\] must be finite"),
        ({"x": AppendOnlyRing(np.array([0.0, np.nan, 0.0]), 2)}, r"state\['x'\] must be finite"),
        ({"x": np.array([None])}, r"state\['x'\] must be an array of numbers or bools"),
        ({"x": np.array(["a"])}, r"state\['x'\] must be an array of numbers or bools"),
        ({"x": {1, 2}}, r"state\['x'\] must hold only None, .*; got set"),
        ({"x": {"y": print}}, r"state\['x'\]\['y'\] must hold only None"),
        ({"x": {True: 1}}, r"state\['x'\] must have keys that are str or int; got bool True"),
        ([], "state must be a dict; got list"),
    ],
)
def test_what_cannot_be_kept_is_refused_by_path_and_nothing_is_written(
    tmp_path: Path, state: dict, message: str
) -> None:
    checkpoints = Checkpoints(tmp_path / "checkpoints", {})
    checkpoints.save(1, {"x": 0})
    before = sorted(tmp_path.rglob("*"))
    with pytest.raises((ValueError, TypeError), match=message):
        checkpoints.save(2, state)
    assert sorted(tmp_path.rglob("*")) == before
    with pytest.raises((ValueError, TypeError), match=message):
        Checkpoints(tmp_path / "new", {}).save(2, state)
    assert not (tmp_path / "new").exists()


def test_states_that_contain_themselves_are_refused(tmp_path: Path) -> None:
    state: dict = {}
    state["again"] = state
    with pytest.raises(ValueError, match="state must be nested at most 100 deep"):
        Checkpoints(tmp_path, {}).save(0, state)


def test_nan_in_rows_without_an_item_does_not_matter(directory: Path) -> None:
    tail = AppendOnlyRing(np.array([1.0, np.nan]), 1)
    loaded = round_trip(directory, {"tail": tail}).state["tail"]
    assert loaded.array.tolist() == [1.0, 0.0]


@pytest.mark.parametrize(
    ("array", "num_written", "message"),
    [
        (np.zeros(()), 0, "array must have rows"),
        (np.zeros((0, 2)), 0, "array must have rows"),
        (np.zeros((2, 0)), 0, "array must have rows, and bytes in them"),
        (np.array(["a"]), 0, "array must be an array of numbers"),
        ([1, 2], 0, "array must be an array of numbers"),
        (np.zeros(2), -1, "num_written must be at least 0; got -1"),
        (np.zeros(2), 1.0, "num_written must be an int"),
    ],
)
def test_tails_refuse_what_is_no_ring(array: object, num_written: int, message: str) -> None:
    with pytest.raises((ValueError, TypeError), match=message):
        AppendOnlyRing(array, num_written)


@given(length=st.integers(1, 7), num_written=st.integers(0, 20), data=st.data())
def test_tails_give_the_rows_of_their_items(
    length: int, num_written: int, data: st.DataObject
) -> None:
    ring = np.full(length, -1)
    for item in range(num_written):
        ring[item % length] = item
    tail = AppendOnlyRing(ring, num_written)
    window = tail.window
    assert list(window) == [i for i in range(num_written) if i >= num_written - length]
    first = data.draw(st.integers(window.start, window.stop))
    items = range(first, data.draw(st.integers(first, window.stop)))
    assert [int(row) for rows in tail.rows(items) for row in rows] == list(items)


def test_those_who_only_look_need_not_read_tails(tmp_path):
    ring = np.arange(6.0)
    Checkpoints(tmp_path, {}).save(1, {"a": np.ones(2), "ring": AppendOnlyRing(ring, 6)})
    state = Checkpoints(tmp_path, {}).load(reads_tails=False).state
    assert state["ring"] is None
    np.testing.assert_array_equal(state["a"], np.ones(2))
