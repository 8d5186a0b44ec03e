"""How likely is a frame? Context tree switching, as in Bellemare et al. (2016).

Every pixel has its own tree, which predicts the pixel's grey level from four neighbours already
coded: left, up, up-left, up-right, the most informative first. A node at depth d knows the first d
of them, and mixes its own counts with the prediction of the node below; the weight it gives itself
is learned. Needs numba.
"""

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ezgreedy import requirements as require
from ezgreedy.compilation import jit, jit_borrowing
from ezgreedy.requirements import FloatArray, IntArray

Image = NDArray[np.uint8]

DEPTH = 4
MOST_UPDATES = 2**32 - 1  # counts are kept in 32 bits

_LEAST_PRODUCT = 1e-200  # product of probabilities at which their logarithm is taken
_FIRST_STAY = 0.5


class Trees(NamedTuple):
    """The nodes of all trees, one row per node; the root of pixel k is node k.

    `children` holds the node for each symbol of the next neighbour, 0 where there is none yet (no
    child is node 0); `counts` how often each symbol was seen; `totals` their sums; `stay` the
    weight of the node's own counts against the node below.
    """

    children: NDArray[np.int32]
    counts: NDArray[np.uint32]
    totals: NDArray[np.uint32]
    stay: FloatArray


def reduce(frame: Image, num_levels: int = 8) -> Image:
    """A frame of half the height and width, in few levels of grey.

    Means of 2 × 2 pixels, rounded to the nearest integer and halves up, then cut into `num_levels`
    equal intervals: 84 × 84 bytes become 42 × 42 symbols of three bits.

    Args:
        frame: a grey frame, uint8, with even sides, [height, width].
        num_levels: number of grey levels.
    """
    num_levels = require.integer("num_levels", num_levels, least=2, most=256)
    if not isinstance(frame, np.ndarray) or frame.dtype != np.uint8:
        raise require.refuse_type("frame", "be a uint8 array", frame)
    if frame.ndim != 2 or frame.shape[0] % 2 or frame.shape[1] % 2 or not frame.size:
        raise require.refuse("frame", "have two even sides", frame.shape)
    wide = frame.astype(np.uint32)
    rows = wide[::2] + wide[1::2]
    means = (rows[:, ::2] + rows[:, 1::2] + 2) >> 2
    return (means * num_levels >> 8).astype(np.uint8)


class CTSModel:
    """The probability of an image, learned one image at a time.

    Memory grows with the contexts met: a node takes `bytes_per_node`, and there are never more than
    `most_nodes` (8.3 million at the defaults); room for them doubles when it is used up.

    Args:
        shape: height and width of the images.
        num_levels: number of symbols for a pixel.
        prior_count: initial count of each symbol; 1 / num_levels if None (Perks' prior).
    """

    def __init__(
        self,
        shape: tuple[int, int] = (42, 42),
        num_levels: int = 8,
        prior_count: float | None = None,
    ) -> None:
        if not isinstance(shape, tuple) or len(shape) != 2:
            raise require.refuse("shape", "be a height and a width", shape)
        height = require.integer("shape[0]", shape[0], least=1)
        width = require.integer("shape[1]", shape[1], least=1)
        self.shape = (height, width)
        self.num_levels = require.integer("num_levels", num_levels, least=2, most=256)
        if prior_count is None:
            prior_count = 1.0 / self.num_levels
        self.prior_count = require.number("prior_count", prior_count, least=1e-6, most=1e6)
        self._num_pixels = height * width
        self.most_nodes = self._num_pixels * sum(self.num_levels**d for d in range(DEPTH + 1))
        if self.most_nodes >= 2**31:
            rule = "leave fewer than 2³¹ nodes in all, with num_levels as it is"
            raise require.refuse("shape", rule, shape)
        self.num_updates = 0
        self.num_nodes = self._num_pixels
        self._trees = _seedlings(self._num_pixels, self.num_levels)
        # A border of zeros stands for neighbours outside the image; any constant would do.
        self._padded = np.zeros((height + 1, width + 2), dtype=np.uint8)

    @property
    def bytes_per_node(self) -> int:
        """Bytes of one node."""
        return sum(array[:1].nbytes for array in self._trees)

    @property
    def nbytes(self) -> int:
        """Bytes of all nodes and of the room kept for more."""
        return sum(array.nbytes for array in self._trees)

    def update(self, image: Image) -> tuple[float, float]:
        """Learn an image.

        Args:
            image: an image of symbols in [0, num_levels), uint8, [height, width].

        Returns:
            The logarithm of the image's probability before it was learned, and after.
        """
        self._place(image)
        if self.num_updates >= MOST_UPDATES:
            raise OverflowError(f"the model has learned {self.num_updates} images, its most")
        self._make_room()
        # Images are numbered from 1, and image t may move a weight by 1 / (t + 1): the same for all
        # trees and nodes, however often each was visited.
        rate = 1.0 / (self.num_updates + 2)
        before, after, num_nodes, wrong = _learn_image(
            self._trees, self._padded, self.num_nodes, rate, self.prior_count
        )
        if wrong >= 0:
            raise self._broken(wrong)
        self.num_nodes = num_nodes
        self.num_updates += 1
        return before, after

    def log_prob(self, image: Image) -> float:
        """The logarithm of an image's probability; nothing is learned."""
        self._place(image)
        log_prob, wrong = _log_prob(self._trees, self._padded, self.prior_count)
        if wrong >= 0:
            raise self._broken(wrong)
        return log_prob

    def pixel_probabilities(self, image: Image, row: int, column: int) -> FloatArray:
        """The probability of each symbol at a pixel, given the pixels above and to the left."""
        self._place(image)
        row = require.integer("row", row, least=0, most=self.shape[0] - 1)
        column = require.integer("column", column, least=0, most=self.shape[1] - 1)
        path = np.zeros(DEPTH + 1, dtype=np.int64)
        return np.array(
            [
                _predict(self._trees, self._padded, row, column, symbol, self.prior_count, path)
                for symbol in range(self.num_levels)
            ]
        )

    def state_dict(self) -> dict[str, Any]:
        """Everything learned, as arrays."""
        used = slice(self.num_nodes)
        return {
            "identity": self._identity(),
            "num_updates": np.array(self.num_updates, dtype=np.int64),
            "children": self._trees.children[used].copy(),
            "counts": self._trees.counts[used].copy(),
            "stay": self._trees.stay[used].copy(),
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Take over what a model with the same settings has learned."""
        if not np.array_equal(state["identity"], self._identity()):
            rule = f"be of a model with settings {self._identity().tolist()}"
            raise require.refuse("state", rule, np.asarray(state["identity"]).tolist())
        children = np.array(state["children"], dtype=np.int32)
        counts = np.array(state["counts"], dtype=np.uint32)
        stay = np.array(state["stay"], dtype=np.float64)
        num_updates = int(state["num_updates"])
        totals = counts.sum(axis=-1, dtype=np.uint32)
        trees = Trees(children, counts, totals, stay)
        _check(trees, self._num_pixels, self.num_levels, num_updates)
        self._trees, self.num_nodes, self.num_updates = trees, len(stay), num_updates

    def _identity(self) -> FloatArray:
        return np.array([*self.shape, self.num_levels, self.prior_count], dtype=np.float64)

    def _place(self, image: Image) -> None:
        """Check an image and put it inside the border."""
        if not isinstance(image, np.ndarray) or image.dtype != np.uint8:
            raise require.refuse_type("image", "be a uint8 array", image)
        if image.shape != self.shape:
            raise require.refuse("image", f"have shape {self.shape}", image.shape)
        if image.max() >= self.num_levels:
            raise require.refuse("image", f"lie in [0, {self.num_levels})", image.max())
        self._padded[1:, 1:-1] = image

    def _make_room(self) -> None:
        """Keep room for all nodes that one image can add."""
        capacity = len(self._trees.stay)
        needed = min(self.num_nodes + DEPTH * self._num_pixels, self.most_nodes)
        if capacity >= needed:
            return
        grown = _seedlings(min(max(needed, 2 * capacity), self.most_nodes), self.num_levels)
        used = slice(self.num_nodes)
        grown.children[used] = self._trees.children[used]
        grown.counts[used] = self._trees.counts[used]
        grown.totals[used] = self._trees.totals[used]
        grown.stay[used] = self._trees.stay[used]
        self._trees = grown

    def _broken(self, pixel: int) -> FloatingPointError:
        row, column = divmod(pixel, self.shape[1])
        return FloatingPointError(
            f"the CTS model gives pixel ({row}, {column}) of image {self.num_updates + 1} "
            "something that is not a probability"
        )


def _seedlings(num_nodes: int, num_levels: int) -> Trees:
    """Nodes that have seen nothing."""
    return Trees(
        children=np.zeros((num_nodes, num_levels), dtype=np.int32),
        counts=np.zeros((num_nodes, num_levels), dtype=np.uint32),
        totals=np.zeros(num_nodes, dtype=np.uint32),
        stay=np.full(num_nodes, _FIRST_STAY),
    )


def _check(trees: Trees, num_pixels: int, num_levels: int, num_updates: int) -> None:
    """Raise unless these are trees that have seen this many images."""
    num_nodes = len(trees.stay)
    rows = (num_nodes, num_levels)
    if trees.children.shape != rows or trees.counts.shape != rows or trees.stay.ndim != 1:
        raise require.refuse("state", f"hold nodes of {num_levels} symbols", trees.children.shape)
    if not ((trees.stay >= 0.0) & (trees.stay <= 1.0)).all():
        node = int(np.flatnonzero(~((trees.stay >= 0.0) & (trees.stay <= 1.0)))[0])
        place = require.Described(f"{trees.stay[node]} at node {node}")
        raise require.refuse("state", "hold weights in [0, 1]", place)
    parents, symbols = np.nonzero(trees.children)
    links = trees.children[parents, symbols]
    # Each node except the roots hangs below exactly one older node.
    if (links <= parents).any() or not np.array_equal(
        np.sort(links), np.arange(num_pixels, num_nodes)
    ):
        raise require.refuse("state", "hold trees", require.Described("links that are not"))
    if num_nodes < num_pixels or (trees.totals[:num_pixels] != num_updates).any():
        raise require.refuse("state", "count every image at every pixel", num_updates)


@jit_borrowing
def _context(padded: Image, row: int, column: int, depth: int) -> int:
    """The neighbour that leads from depth to depth + 1."""
    if depth == 0:
        return int(padded[row + 1, column])
    if depth == 1:
        return int(padded[row, column + 1])
    if depth == 2:
        return int(padded[row, column])
    return int(padded[row, column + 2])


@jit_borrowing
def _grow(trees: Trees, padded: Image, place: tuple[int, int], used: int, path: IntArray) -> int:
    """Write a pixel's nodes to `path`, adding missing ones; return the new number of nodes."""
    row, column = place
    node = row * (padded.shape[1] - 2) + column
    path[0] = node
    for depth in range(DEPTH):
        symbol = _context(padded, row, column, depth)
        child = int(trees.children[node, symbol])
        if child == 0:
            child = used
            trees.children[node, symbol] = child
            used += 1
        node = child
        path[depth + 1] = node
    return used


@jit_borrowing
def _learn_symbol(
    trees: Trees, path: IntArray, symbol: int, rate: float, prior: float
) -> tuple[float, float]:
    """Learn a pixel's symbol; return its probability before and after.

    Both come from one walk up from the leaf, since each needs only the nodes below.
    """
    priors = prior * trees.counts.shape[1]
    before = after = 0.0
    for depth in range(DEPTH, -1, -1):
        node = path[depth]
        count, total = float(trees.counts[node, symbol]), float(trees.totals[node])
        own = (count + prior) / (total + priors)
        own_after = (count + 1.0 + prior) / (total + 1.0 + priors)
        trees.counts[node, symbol] += np.uint32(1)
        trees.totals[node] += np.uint32(1)
        if depth == DEPTH:
            before, after = own, own_after
        else:
            stays = trees.stay[node] * own
            leaves = (1.0 - trees.stay[node]) * before
            before = stays + leaves
            stay = ((1.0 - rate) * stays + rate * leaves) / before
            after = stay * own_after + (1.0 - stay) * after
            trees.stay[node] = stay
    return before, after


@jit
def _learn_image(
    trees: Trees, padded: Image, used: int, rate: float, prior: float
) -> tuple[float, float, int, int]:
    """Both log-probabilities, the number of nodes, and the first broken pixel or −1."""
    path = np.zeros(DEPTH + 1, dtype=np.int64)
    height, width = padded.shape[0] - 1, padded.shape[1] - 2
    log_before = log_after = 0.0
    product_before = product_after = 1.0  # a logarithm for many pixels at once
    for row in range(height):
        for column in range(width):
            used = _grow(trees, padded, (row, column), used, path)
            symbol = int(padded[row + 1, column + 1])
            before, after = _learn_symbol(trees, path, symbol, rate, prior)
            if not (0.0 < before <= 1.0 and 0.0 < after <= 1.0):
                return log_before, log_after, used, row * width + column
            product_before *= before
            product_after *= after
            if product_before < _LEAST_PRODUCT or product_after < _LEAST_PRODUCT:
                log_before += math.log(product_before)
                log_after += math.log(product_after)
                product_before = product_after = 1.0
    return log_before + math.log(product_before), log_after + math.log(product_after), used, -1


@jit
def _predict(
    trees: Trees,
    padded: Image,
    row: int,
    column: int,
    symbol: int,
    prior: float,
    path: IntArray,
) -> float:
    """The probability of a symbol at a pixel. Missing nodes predict all symbols equally."""
    priors = prior * trees.counts.shape[1]
    node = row * (padded.shape[1] - 2) + column
    path[0] = node
    deepest = 0
    while deepest < DEPTH:
        node = int(trees.children[node, _context(padded, row, column, deepest)])
        if node == 0:
            break
        deepest += 1
        path[deepest] = node
    probability = prior / priors
    for depth in range(deepest, -1, -1):
        node = path[depth]
        own = (trees.counts[node, symbol] + prior) / (trees.totals[node] + priors)
        stay = 1.0 if depth == DEPTH else trees.stay[node]
        probability = stay * own + (1.0 - stay) * probability
    return probability


@jit
def _log_prob(trees: Trees, padded: Image, prior: float) -> tuple[float, int]:
    path = np.zeros(DEPTH + 1, dtype=np.int64)
    width = padded.shape[1] - 2
    log_prob = 0.0
    for row in range(padded.shape[0] - 1):
        for column in range(width):
            symbol = int(padded[row + 1, column + 1])
            probability = _predict(trees, padded, row, column, symbol, prior, path)
            if not 0.0 < probability <= 1.0:
                return log_prob, row * width + column
            log_prob += math.log(probability)
    return log_prob, -1
