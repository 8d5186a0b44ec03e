"""How environments draw themselves: anti-aliased shapes on a canvas, with NumPy only.

Every shape is a signed distance in pixels, negative inside; the distance sets how much of a pixel
is covered. Points are (x, y) in pixels, x to the right and y downwards from the top left corner.
"""

import math

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ezgreedy.requirements import FloatArray

Picture = NDArray[np.uint8]
Point = tuple[float, float]
Colour = tuple[int, int, int]

# One palette for all environments: the agent is coral, what it seeks is gold.
PAPER: Colour = (250, 248, 243)
INK: Colour = (43, 52, 69)
STONE: Colour = (120, 130, 146)
MIST: Colour = (222, 226, 231)
AGENT: Colour = (232, 90, 79)
GOLD: Colour = (240, 178, 41)
SHALLOW: Colour = (176, 216, 230)
DEEP: Colour = (24, 66, 110)
LEAF: Colour = (92, 148, 110)

# Seven-segment digits: which of top, upper left, upper right, middle, lower left, lower right,
# bottom are lit.
_SEGMENTS: tuple[str, ...] = ("1110111", "0010010", "1011101", "1011011", "0111010")
_SEGMENTS += ("1101011", "1101111", "1010010", "1111111", "1111011")
_SEGMENT_ENDS: tuple[tuple[Point, Point], ...] = (
    ((0.0, 0.0), (0.5, 0.0)),
    ((0.0, 0.0), (0.0, 0.5)),
    ((0.5, 0.0), (0.5, 0.5)),
    ((0.0, 0.5), (0.5, 0.5)),
    ((0.0, 0.5), (0.0, 1.0)),
    ((0.5, 0.5), (0.5, 1.0)),
    ((0.0, 1.0), (0.5, 1.0)),
)
_DIGIT_ADVANCE = 0.85  # from one digit to the next, as a share of their height


def blend(first: Colour, second: Colour, share: ArrayLike) -> FloatArray:
    """Colours between two, [..., 3]: the first at share 0, the second at share 1."""
    shares = np.asarray(share, dtype=np.float64)[..., None]
    return np.asarray(first + shares * (np.asarray(second) - np.asarray(first)), dtype=np.float64)


class Canvas:
    """An image under construction.

    Args:
        width: width in pixels.
        height: height in pixels.
        background: one colour, or a row of colours [height, 3] from top to bottom.
    """

    def __init__(self, width: int, height: int, background: ArrayLike = PAPER) -> None:
        rows = np.broadcast_to(np.asarray(background, dtype=np.float64), (height, 3))
        self._pixels = np.repeat(rows[:, None, :], width, axis=1)

    def picture(self) -> Picture:
        """The image, uint8 [height, width, 3]."""
        return np.rint(self._pixels).astype(np.uint8)

    def cells(self, colours: FloatArray, corner: Point, cell: int) -> None:
        """A grid of square cells of these colours [rows, columns, 3], a hair apart if room allows.

        Args:
            colours: one colour for each cell.
            corner: the grid's top left corner, in whole pixels.
            cell: the pitch of the grid in pixels.
        """
        rows, columns = colours.shape[:2]
        left, top = int(corner[0]), int(corner[1])
        inside = np.zeros(cell, dtype=np.bool_)
        inside[: cell - 1 if cell >= 6 else cell] = True
        covered = np.tile(inside, rows)[:, None] & np.tile(inside, columns)[None, :]
        grid = colours.repeat(cell, axis=0).repeat(cell, axis=1)
        self._pixels[top : top + rows * cell, left : left + columns * cell][covered] = grid[covered]

    def disc(self, centre: Point, radius: float, colour: Colour) -> None:
        """A filled circle."""
        self.segment(centre, centre, radius, colour)

    def ring(self, centre: Point, radius: float, width: float, colour: Colour) -> None:
        """A circle's outline, `width` pixels wide and inside the radius."""
        reach = radius + 1.0
        x, y, where = self._around(centre, centre, reach)
        middle = radius - width / 2.0
        self._paint(
            where, np.abs(np.hypot(x - centre[0], y - centre[1]) - middle) - width / 2, colour
        )

    def segment(self, start: Point, end: Point, radius: float, colour: Colour) -> None:
        """A line with round ends, `2 · radius` pixels wide; a disc if both ends agree."""
        x, y, where = self._around(start, end, radius + 1.0)
        along_x, along_y = end[0] - start[0], end[1] - start[1]
        length_squared = max(along_x**2 + along_y**2, 1e-12)
        share = ((x - start[0]) * along_x + (y - start[1]) * along_y) / length_squared
        share = np.clip(share, 0.0, 1.0)
        distance = np.hypot(x - start[0] - share * along_x, y - start[1] - share * along_y)
        self._paint(where, distance - radius, colour)

    def box(self, corner: Point, size: Point, colour: Colour, rounding: float = 0.0) -> None:
        """A filled rectangle from its top left corner, with corners rounded by this radius."""
        end = (corner[0] + size[0], corner[1] + size[1])
        x, y, where = self._around(corner, end, 1.0)
        over_x = np.abs(x - (corner[0] + end[0]) / 2) - size[0] / 2 + rounding
        over_y = np.abs(y - (corner[1] + end[1]) / 2) - size[1] / 2 + rounding
        outside = np.hypot(np.maximum(over_x, 0.0), np.maximum(over_y, 0.0))
        self._paint(where, outside + np.minimum(np.maximum(over_x, over_y), 0.0) - rounding, colour)

    def triangle(self, corners: tuple[Point, Point, Point], colour: Colour) -> None:
        """A filled triangle; corners in either order."""
        xs, ys = [c[0] for c in corners], [c[1] for c in corners]
        x, y, where = self._around((min(xs), min(ys)), (max(xs), max(ys)), 1.0)
        (ax, ay), (bx, by), (cx, cy) = corners
        turn = math.copysign(1.0, (bx - ax) * (cy - ay) - (by - ay) * (cx - ax))
        distance = np.full(np.broadcast_shapes(x.shape, y.shape), -np.inf)
        for (px, py), (qx, qy) in zip(corners, (*corners[1:], corners[0]), strict=True):
            length = max(math.hypot(qx - px, qy - py), 1e-12)
            inward = ((qx - px) * (y - py) - (qy - py) * (x - px)) * turn / length
            distance = np.maximum(distance, -inward)
        self._paint(where, distance, colour)

    def below(self, heights: FloatArray, colour: Colour) -> None:
        """Everything under a curve given by its y at the centre of each column of pixels."""
        steepness = np.hypot(1.0, np.gradient(heights))
        y = _pixel_centres(slice(0, self._pixels.shape[0]))[:, None]
        self._paint((slice(None), slice(None)), (heights[None, :] - y) / steepness, colour)

    def number(self, value: int, centre: Point, height: float, colour: Colour) -> None:
        """A non-negative whole number in plain digits."""
        digits = str(value)
        width = (len(digits) - 1) * _DIGIT_ADVANCE * height + 0.5 * height
        top = centre[1] - height / 2
        for position, digit in enumerate(digits):
            left = centre[0] - width / 2 + position * _DIGIT_ADVANCE * height
            for lit, (start, end) in zip(_SEGMENTS[int(digit)], _SEGMENT_ENDS, strict=True):
                if lit == "1":
                    self.segment(
                        (left + start[0] * height, top + start[1] * height),
                        (left + end[0] * height, top + end[1] * height),
                        height / 12,
                        colour,
                    )

    def _around(
        self, start: Point, end: Point, reach: float
    ) -> tuple[FloatArray, FloatArray, tuple[slice, slice]]:
        """Pixel centres within reach of the box of two points: x [1, w], y [h, 1], and where."""
        height, width = self._pixels.shape[:2]
        columns = slice(*_span(start[0], end[0], reach, width))
        rows = slice(*_span(start[1], end[1], reach, height))
        x = _pixel_centres(columns)[None, :]
        y = _pixel_centres(rows)[:, None]
        return x, y, (rows, columns)

    def _paint(self, where: tuple[slice, slice], distance: FloatArray, colour: Colour) -> None:
        covered = np.clip(0.5 - distance, 0.0, 1.0)[..., None]
        self._pixels[where] += covered * (np.array(colour) - self._pixels[where])


def _pixel_centres(span: slice) -> FloatArray:
    return np.arange(span.start, span.stop, dtype=np.float64) + 0.5


def _span(start: float, end: float, reach: float, size: int) -> tuple[int, int]:
    low, high = min(start, end) - reach, max(start, end) + reach
    first = min(max(math.floor(low), 0), size)
    return first, min(max(math.ceil(high), first), size)
