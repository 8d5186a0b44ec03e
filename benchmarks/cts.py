"""What a CTS update costs, as a ratio to the same scheme in C, measured in the same run.

Frames of moving squares on a fixed background. Both learn the same frames and give the same
probabilities. The model is called frame by frame with its checks, as in training; the C loop is
called once for all frames, with all memory in place. CPU seconds, in turns, the smallest of each
kept; first touches of memory are left out by learning all frames once before. Needs gcc. Run with
`make bench`.
"""

import ctypes
import subprocess
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

from ezgreedy.intrinsic.cts import CTSModel, reduce
from ezgreedy.intrinsic.pseudo_counts import PseudoCountBonus

SIDE, NUM_FRAMES, TURNS = 42, 1000, 7


def frames(num_squares: int) -> np.ndarray:
    """84 × 84 greys: a background in patches and squares that bounce about."""
    rng = np.random.default_rng(0)
    background = np.kron(rng.integers(0, 256, (7, 7)), np.ones((12, 12))).astype(np.uint8)
    made = np.repeat(background[None], NUM_FRAMES, axis=0)
    start, speed = rng.integers(0, 76, (num_squares, 2)), rng.integers(1, 4, (num_squares, 2))
    for number, frame in enumerate(made):
        places = 75 - abs((start + number * speed) % 150 - 75)
        for grey, (row, column) in enumerate(places):
            frame[row : row + 8, column : column + 8] = 40 * grey % 256
    return made


def compiled_c(directory: Path) -> ctypes.CDLL:
    library = directory / "cts.so"
    source = Path(__file__).with_name("cts.c")
    command = ["gcc", "-O3", "-march=native", "-ffp-contract=off", "-shared", "-fPIC"]
    subprocess.run([*command, "-o", str(library), str(source), "-lm"], check=True)
    return ctypes.CDLL(str(library))


class CLoop:
    """The C loop with its memory, for as many nodes as the model needs."""

    def __init__(self, library: ctypes.CDLL, images: np.ndarray, num_nodes: int) -> None:
        self.learn = library.learn
        self.learn.restype = ctypes.c_int64
        self.padded = np.zeros((len(images), SIDE + 1, SIDE + 2), dtype=np.uint8)
        self.padded[:, 1:, 1:-1] = images
        self.trees = [
            np.zeros((num_nodes, 8), dtype=np.int32),
            np.zeros((num_nodes, 8), dtype=np.uint32),
            np.zeros(num_nodes, dtype=np.uint32),
            np.full(num_nodes, 0.5),
        ]
        self.logs = np.zeros((len(images), 2))
        self.used, self.seen = SIDE * SIDE, 0

    def __call__(self) -> None:
        """Learn all images once more."""
        arrays = [ctypes.c_void_p(array.ctypes.data) for array in [*self.trees, self.padded]]
        sizes = [ctypes.c_int64(n) for n in (len(self.logs), SIDE, SIDE, self.used, self.seen)]
        self.used = self.learn(*arrays, *sizes, ctypes.c_void_p(self.logs.ctypes.data))
        self.seen += len(self.logs)


def cpu_seconds(call: Callable[[], object]) -> float:
    begin = time.process_time()
    call()
    return time.process_time() - begin


def compare(num_squares: int) -> None:
    shown = frames(num_squares)
    images = np.stack([reduce(frame) for frame in shown])
    model, reward = CTSModel(), PseudoCountBonus()
    logs = np.array([model.update(image) for image in images])
    for frame in shown:
        reward(frame)
    with tempfile.TemporaryDirectory() as directory:
        c_loop = CLoop(compiled_c(Path(directory)), images, model.num_nodes)
        c_loop()
        np.testing.assert_allclose(logs, c_loop.logs, rtol=1e-12)
        assert c_loop.used == model.num_nodes
        calls: dict[str, Callable[[], object]] = {
            "C loop": c_loop,
            "model": lambda: [model.update(image) for image in images],
            "bonus from 84 × 84": lambda: [reward(frame) for frame in shown],
        }
        best = dict.fromkeys(calls, float("inf"))
        for _ in range(TURNS):
            for name, call in calls.items():
                best[name] = min(best[name], cpu_seconds(call))
    megabytes = model.num_nodes * model.bytes_per_node / 1e6
    print(f"{num_squares} squares: {model.num_nodes} nodes, {megabytes:.0f} MB")
    for name, seconds in best.items():
        ratio = seconds / best["C loop"]
        print(f"  {name}: {1e6 * seconds / NUM_FRAMES:.0f} µs a frame, {ratio:.2f} × C")


if __name__ == "__main__":
    compare(num_squares=6)
    compare(num_squares=24)
