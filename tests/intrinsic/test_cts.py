"""The density model of frames against one of dictionaries, and the laws of its bonuses."""

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ezgreedy.intrinsic.cts import CTSModel, reduce
from ezgreedy.intrinsic.pseudo_counts import PseudoCountBonus, bonus, pseudo_count


class PlainModel:
    """The same model, written as the definition reads: nodes are keyed by pixel and context."""

    def __init__(self, num_levels, prior):
        self.num_levels, self.prior, self.time = num_levels, prior, 0
        self.counts, self.stay = {}, {}

    def contexts(self, image, row, column):
        def at(r, c):
            inside = r >= 0 and 0 <= c < image.shape[1]
            return int(image[r, c]) if inside else "outside"

        left, up = at(row, column - 1), at(row - 1, column)
        parents = (left, up, at(row - 1, column - 1), at(row - 1, column + 1))
        return [(row, column, parents[:depth]) for depth in range(5)]

    def own(self, node, symbol):
        counts = self.counts.get(node, [0] * self.num_levels)
        return (counts[symbol] + self.prior) / (sum(counts) + self.num_levels * self.prior)

    def mixture(self, nodes, symbol):
        """What the first of these nodes predicts, the rest being those below it."""
        if len(nodes) == 1:
            return self.own(nodes[0], symbol)
        stay = self.stay.get(nodes[0], 0.5)
        return stay * self.own(nodes[0], symbol) + (1 - stay) * self.mixture(nodes[1:], symbol)

    def log_prob(self, image):
        return math.fsum(
            math.log(self.mixture(self.contexts(image, *place), int(image[place])))
            for place in np.ndindex(image.shape)
        )

    def update(self, image):
        before = self.log_prob(image)
        self.time += 1
        rate = 1 / (self.time + 1)
        for place in np.ndindex(image.shape):
            nodes, symbol = self.contexts(image, *place), int(image[place])
            new_stay = {}
            for depth, node in enumerate(nodes[:-1]):
                stay = self.stay.get(node, 0.5)
                own, below = self.own(node, symbol), self.mixture(nodes[depth + 1 :], symbol)
                weights = (1 - rate) * stay * own + rate * (1 - stay) * below
                new_stay[node] = weights / (stay * own + (1 - stay) * below)
            self.stay |= new_stay
            for node in nodes:
                self.counts.setdefault(node, [0] * self.num_levels)[symbol] += 1
        return before, self.log_prob(image)


@st.composite
def streams(draw):
    """A number of levels, a prior, and a few images of one small shape."""
    shape = draw(st.tuples(st.integers(1, 4), st.integers(1, 4)))
    levels = draw(st.integers(2, 8))
    prior = draw(st.sampled_from([None, 0.5, 0.0625]))
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    pool = rng.integers(0, levels, (draw(st.integers(1, 4)), *shape), dtype=np.uint8)
    picks = draw(st.lists(st.integers(0, len(pool) - 1), min_size=1, max_size=12))
    return levels, prior, [pool[pick] for pick in picks]


def images(num_images, shape=(4, 5), levels=8, seed=0):
    rng = np.random.default_rng(seed)
    return list(rng.integers(0, levels, (num_images, *shape), dtype=np.uint8))


@settings(max_examples=80, deadline=None)
@given(streams())
def test_model_equals_the_plain_one(stream):
    levels, prior, sequence = stream
    model = CTSModel(sequence[0].shape, levels, prior)
    plain = PlainModel(levels, 1 / levels if prior is None else prior)
    for image in sequence:
        assert model.log_prob(image) == pytest.approx(plain.log_prob(image), rel=1e-12, abs=1e-12)
        learned = model.update(image)
        assert learned == pytest.approx(plain.update(image), rel=1e-12, abs=1e-12)
        assert model.log_prob(image) == pytest.approx(learned[1], rel=1e-12, abs=1e-12)
    assert model.num_nodes == len(plain.counts) <= model.most_nodes


@settings(max_examples=40, deadline=None)
@given(streams())
def test_probabilities_of_a_pixel_sum_to_one(stream):
    levels, prior, sequence = stream
    model = CTSModel(sequence[0].shape, levels, prior)
    for image in sequence:
        model.update(image)
    for row, column in np.ndindex(model.shape):
        probabilities = model.pixel_probabilities(sequence[0], row, column)
        assert (probabilities > 0.0).all()
        assert probabilities.sum() == pytest.approx(1.0, abs=1e-12)


def test_probabilities_of_all_images_sum_to_one():
    model = CTSModel((2, 3), num_levels=2)
    for image in images(20, (2, 3), levels=2):
        model.update(image)
    everything = itertools.product(range(2), repeat=6)
    total = sum(
        math.exp(model.log_prob(np.array(i, dtype=np.uint8).reshape(2, 3))) for i in everything
    )
    assert total == pytest.approx(1.0, abs=1e-12)


def test_first_image_is_uniform_and_its_recoding_is_worked_out_by_hand():
    model = CTSModel((1, 1), num_levels=8)
    before, after = model.update(np.array([[3]], dtype=np.uint8))
    assert before == pytest.approx(math.log(1 / 8), abs=1e-15)
    assert after == pytest.approx(math.log((1 + 1 / 8) / 2), abs=1e-15)


def test_neighbours_are_left_then_up_then_the_upper_corners():
    image = np.array([[1, 2, 3], [4, 5, 6]], dtype=np.uint8)
    model = CTSModel((2, 3), num_levels=8)
    model.update(image)
    children, node, order = model.state_dict()["children"], 4, []  # of the 5, all others differ
    while children[node].any():
        order.append(int(np.flatnonzero(children[node])[0]))
        node = children[node, order[-1]]
    assert order == [4, 2, 1, 3]


def test_pseudo_counts_of_a_repeated_image_grow_as_its_repetitions():
    model = CTSModel()
    image = images(1, (42, 42))[0]
    counts = [pseudo_count(*model.update(image)) for _ in range(4097)]
    assert (np.diff(counts) > 0.0).all()
    # Measured with an independent program on a constant image; a tree sees a constant either way.
    assert counts[2048] == pytest.approx(1439, rel=0.02)
    assert counts[4096] == pytest.approx(3413, rel=0.02)
    growth = np.diff(counts)[2048:]
    assert growth.min() > 0.85
    assert growth.max() < 1.15


def test_long_images_lose_nothing_to_the_running_product():
    model, parts = CTSModel((60, 70)), CTSModel((60, 70))
    for image in images(3, (60, 70)):
        before, after = model.update(image)
        assert before == pytest.approx(parts.log_prob(image), rel=1e-12)
        parts.update(image)
        assert after == pytest.approx(parts.log_prob(image), rel=1e-12)
        assert after > before


@pytest.mark.parametrize("form", ["bellemare", "expm1"])
def test_new_frames_earn_more_than_known_ones(form):
    known, new = (np.kron(i, np.full((2, 2), 32, np.uint8)) for i in images(2, (6, 6)))
    reward = PseudoCountBonus(CTSModel((6, 6)), form=form)
    earned = [reward(known) for _ in range(200)]
    assert (np.diff(earned) < 0.0).all()
    assert reward(new) > 5.0 * earned[-1] > 0.0


def test_known_image_can_become_less_likely_after_a_shock_and_then_earns_nothing():
    # Roots have just lost trust to the nodes below, and regain some of it by the known image: where
    # the new image spoiled their counts, that costs more than one more count is worth.
    known, new = images(2, (6, 6))
    model, plain = CTSModel((6, 6)), PlainModel(8, 1 / 8)
    for image in [known] * 200 + [new]:
        model.update(image)
        plain.update(image)
    before, after = model.update(known)
    assert (before, after) == pytest.approx(plain.update(known), rel=1e-9)
    assert after < before
    assert pseudo_count(before, after) == math.inf


def test_bonus_forms_have_the_values_of_their_formulas():
    # ρ = 1/4 and ρ′ = 1/2: N̂ = 1/4 · 1/2 / (1/4) = 1/2, and e^PG − 1 = 1.
    half, quarter = math.log(0.5), math.log(0.25)
    assert pseudo_count(quarter, half) == pytest.approx(0.5)
    assert bonus(quarter, half, 0.05) == pytest.approx(0.05 / math.sqrt(0.51))
    assert bonus(quarter, half, 0.05, "expm1") == pytest.approx(0.05)
    # Something utterly new.
    assert bonus(-4000.0, -10.0, 0.0005) == pytest.approx(0.005)
    assert bonus(-4000.0, -10.0, 0.0005, "expm1") == pytest.approx(134, rel=0.01)
    # Nothing gained.
    assert pseudo_count(half, half) == math.inf
    for form in ("bellemare", "expm1"):
        assert bonus(half, half, 1.0, form) == bonus(half, quarter, 1.0, form) == 0.0


@pytest.mark.parametrize("form", ["bellemare", "expm1"])
def test_scale_zero_is_no_bonus(form):
    reward = PseudoCountBonus(CTSModel((2, 2)), scale=0.0, form=form)
    frames = images(20, (4, 4), levels=256)
    assert [reward(frame) for frame in frames] == [0.0] * 20
    assert bonus(-4000.0, -10.0, 0.0, form) == 0.0


def test_frames_are_halved_and_cut_into_eight_levels():
    frame = np.random.default_rng(0).integers(0, 256, (84, 84), dtype=np.uint8)
    small = reduce(frame)
    assert small.shape == (42, 42)
    assert small.dtype == np.uint8
    for row, column in np.ndindex(42, 42):
        block = frame[2 * row : 2 * row + 2, 2 * column : 2 * column + 2]
        assert small[row, column] == math.floor(float(block.mean()) + 0.5) // 32
    assert reduce(np.full((2, 2), 255, np.uint8)) == 7
    assert reduce(np.array([[31, 31], [32, 32]], np.uint8)) == 1  # 31.5 is rounded up


@pytest.mark.parametrize("place", [1, 17, 60])
def test_restored_model_continues_exactly(place):
    sequence = images(80, (5, 4), levels=3)
    model, other = CTSModel((5, 4), 3), CTSModel((5, 4), 3)
    for image in sequence[:place]:
        model.update(image)
    state = model.state_dict()
    assert all(isinstance(value, np.ndarray) for value in state.values())
    other.update(sequence[-1])  # forgotten
    other.load_state_dict(state)
    expected = [model.update(image) for image in sequence[place:]]
    assert [other.update(image) for image in sequence[place:]] == expected
    for name, value in model.state_dict().items():
        np.testing.assert_array_equal(other.state_dict()[name], value)
    assert len(state["stay"]) <= model.num_nodes  # a copy, which later updates left alone


def test_memory_is_bounded_by_all_contexts_there_are():
    model = CTSModel((2, 2), num_levels=2)
    for image in images(200, (2, 2), levels=2):
        model.update(image)
        assert model.num_nodes <= model.nbytes // model.bytes_per_node <= model.most_nodes
    assert model.most_nodes == 4 * 31
    assert CTSModel().most_nodes * CTSModel().bytes_per_node < 630e6


def test_broken_weight_is_found_with_its_place():
    model = CTSModel((2, 3), 2)
    image = images(1, (2, 3), 2)[0]
    model.update(image)
    model._trees.stay[4] = np.nan
    with pytest.raises(FloatingPointError, match=r"pixel \(1, 1\) of image 2"):
        model.log_prob(image)
    with pytest.raises(FloatingPointError, match=r"pixel \(1, 1\) of image 2"):
        model.update(image)
    with pytest.raises(ValueError, match="nan at node 4"):
        CTSModel((2, 3), 2).load_state_dict(model.state_dict())
    with pytest.raises(ValueError, match="log_prob_before"):
        bonus(math.nan, -1.0, 1.0)
    with pytest.raises(ValueError, match="log_prob_after"):
        bonus(-1.0, math.inf, 1.0, "expm1")


def test_bad_images_and_states_are_refused_and_change_nothing():
    model = CTSModel((2, 3), 4)
    image = images(1, (2, 3), 4)[0]
    model.update(image)
    state = model.state_dict()
    for wrong, message in [
        (image.astype(np.int64), "uint8"),
        (image.T, "have shape"),
        (image + np.uint8(4), r"lie in \[0, 4\)"),
    ]:
        with pytest.raises((TypeError, ValueError), match=message):
            model.update(wrong)
    circle = state["children"].copy()
    circle[-1, 0] = 1
    for change, message in [
        ({"num_updates": np.array(7)}, "count every image"),
        ({"children": circle}, "hold trees"),
        ({"counts": state["counts"][:-1]}, "hold nodes"),
        ({"identity": CTSModel((3, 2), 4).state_dict()["identity"]}, "settings"),
    ]:
        with pytest.raises(ValueError, match=message):
            model.load_state_dict(state | change)
    for name, value in model.state_dict().items():
        np.testing.assert_array_equal(value, state[name])


@pytest.mark.parametrize(
    ("build", "name"),
    [
        (lambda: CTSModel((0, 4)), "shape"),
        (lambda: CTSModel(num_levels=1), "num_levels"),
        (lambda: CTSModel(prior_count=0.0), "prior_count"),
        (lambda: PseudoCountBonus(CTSModel((1, 1)), scale=math.nan), "scale"),
        (lambda: PseudoCountBonus(CTSModel((1, 1)), form="counts"), "form"),
        (lambda: reduce(np.zeros((3, 4), np.uint8)), "frame"),
    ],
)
def test_bad_settings_are_refused_by_name(build, name):
    with pytest.raises(ValueError, match=name):
        build()
