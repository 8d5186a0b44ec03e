import math

import numpy as np
import pytest

from ezgreedy.envs.drawing import INK, PAPER, Canvas, blend

BLACK, WHITE = (0, 0, 0), (255, 255, 255)


def ink(canvas):
    """How many pixels are covered, in parts where an edge crosses one."""
    return float((255.0 - canvas.picture()[..., 0].astype(float)).sum() / 255.0)


def blank():
    return Canvas(60, 40, WHITE)


SHAPES = {
    "disc": (lambda canvas: canvas.disc((30, 20), 12, BLACK), math.pi * 144),
    "ring": (lambda canvas: canvas.ring((30, 20), 12, 4, BLACK), math.pi * (144 - 64)),
    "segment": (
        lambda canvas: canvas.segment((15, 12), (45, 28), 5, BLACK),
        math.pi * 25 + 10 * math.hypot(30, 16),
    ),
    "box": (lambda canvas: canvas.box((7, 9), (30, 20), BLACK), 600.0),
    "rounded box": (
        lambda canvas: canvas.box((7, 9), (30, 20), BLACK, rounding=6),
        600 - (4 - math.pi) * 36,
    ),
    "triangle": (lambda canvas: canvas.triangle(((5, 5), (50, 12), (22, 35)), BLACK), 615.5),
    "triangle turned over": (
        lambda canvas: canvas.triangle(((22, 35), (50, 12), (5, 5)), BLACK),
        615.5,
    ),
    "land": (lambda canvas: canvas.below(np.linspace(10, 30, 60), BLACK), 60 * 20),
}


@pytest.mark.parametrize(("draw", "area"), SHAPES.values(), ids=SHAPES.keys())
def test_a_shape_covers_its_area(draw, area):
    canvas = blank()
    draw(canvas)
    assert ink(canvas) == pytest.approx(area, rel=0.02)


def test_what_sticks_out_of_the_canvas_is_cut_off():
    canvas = blank()
    canvas.disc((0, 0), 10, BLACK)
    assert ink(canvas) == pytest.approx(math.pi * 100 / 4, rel=0.02)
    canvas = blank()
    canvas.disc((-50, 900), 10, BLACK)
    canvas.box((70, 0), (10, 10), BLACK)
    assert ink(canvas) == 0.0


def test_cells_are_painted_where_they_belong_a_hair_apart():
    canvas = blank()
    colours = np.full((2, 3, 3), 255.0)
    colours[1, 2] = 0.0
    canvas.cells(colours, (4, 6), cell=10)
    dark = np.argwhere(canvas.picture()[..., 0] == 0)
    assert dark.min(axis=0).tolist() == [16, 24]
    assert dark.max(axis=0).tolist() == [24, 32]
    assert len(dark) == 81


def test_tiny_cells_leave_no_gaps():
    canvas = blank()
    canvas.cells(np.zeros((10, 10, 3)), (0, 0), cell=3)
    assert ink(canvas) == 900.0


def test_no_two_digits_look_alike():
    pictures = set()
    for digit in range(10):
        canvas = blank()
        canvas.number(digit, (30, 20), 24, INK)
        pictures.add(canvas.picture().tobytes())
    assert len(pictures) == 10


def test_a_number_is_centred():
    canvas = blank()
    canvas.number(88, (30, 20), 18, BLACK)
    assert np.array_equal(canvas.picture(), canvas.picture()[:, ::-1])


def test_a_background_may_change_from_top_to_bottom():
    picture = Canvas(5, 3, blend(WHITE, BLACK, [0.0, 0.4, 1.0])).picture()
    assert picture[:, 0, 0].tolist() == [255, 153, 0]
    assert (Canvas(5, 3).picture() == PAPER).all()
