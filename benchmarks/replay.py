"""What replaying sequences costs, as a share of the update that learns from them.

A batch of the paper's size is drawn from windows of real games at full resolution. It is compared
with the least that an update must do: one forward and backward pass of the convolutions over the
observations of the trained steps, timed on a few of them in the same run and scaled up. Beside the
share it says how many bytes an observation takes. Run with `make bench`; `replay.py bytes` measures
only the bytes, over more steps.
"""

import sys
import time
from collections.abc import Callable

import numpy as np
import torch
from torch import nn

from ezgreedy.games import R2D2_PROTOCOL, Emulator
from ezgreedy.replay.blocks import BlockCodec
from ezgreedy.replay.cutting import SequenceSettings
from ezgreedy.replay.sequence_replay import SequenceReplay
from ezgreedy.replay.sequences import SequenceAccumulator, SequenceStep

BATCH, TURNS, STEPS = 64, 5, 400
FRAMES = 8
GAMES = ("Pong", "Seaquest", "MontezumaRevenge", "Venture", "YarsRevenge")
BYTES_STEPS = 4000
CAPACITY = 4_000_000  # observations; the paper's


def filled_memory(
    name: str, codec: BlockCodec, steps: int = STEPS, change: float = 0.3
) -> SequenceReplay:
    """Windows of some hundred steps of random actions that last.

    Args:
        name: name of the game.
        codec: codec of the blocks.
        steps: number of steps.
        change: probability of drawing another action; 1 for one at every step.
    """
    env = Emulator(name, R2D2_PROTOCOL, rng=np.random.default_rng(0))
    accumulator = SequenceAccumulator(codec)
    memory = SequenceReplay(40_000, codec, rng=np.random.default_rng(0))
    rng, half, action = np.random.default_rng(1), np.zeros(512, dtype=np.float32), 0
    accumulator.begin(0, env.reset())
    for _ in range(steps):
        if rng.random() < change:
            action = int(rng.integers(env.num_actions))
        step = env.step(action)
        taken = SequenceStep(action, step.reward, step.observation, step.terminated, step.truncated)
        for window in accumulator.step(0, taken, half, half):
            memory.add(window._replace(priority=1.0))
        if step.terminated or step.truncated:
            accumulator.begin(0, env.reset())
    return memory


def parts_of_sampling(memory: SequenceReplay) -> tuple[Callable[[], None], Callable[[], None]]:
    """The two loops of a sample: over observations, and over everything else of the steps."""
    batch = memory.sample(BATCH)
    steps = {name: getattr(batch, name).copy() for name in memory.state_dict()["steps"]}

    def decode() -> None:
        for row, slot in enumerate(batch.slots):
            memory._decode(int(slot), batch.observations[row])

    def assemble() -> None:
        for row, slot in enumerate(batch.slots):
            memory._assemble(int(slot), row, steps)

    return decode, assemble


def smallest(call: Callable[[], object], turns: int = TURNS) -> float:
    """The smallest seconds of a call."""
    best = float("inf")
    for _ in range(turns):
        begin = time.perf_counter()
        call()
        best = min(best, time.perf_counter() - begin)
    return best


def convolutions() -> nn.Module:
    """Those of R2D2 at 210 × 160, without anything above them."""
    sizes = ((3, 32, 7, 4), (32, 64, 5, 2), (64, 128, 5, 2), (128, 128, 3, 1))
    layers: list[nn.Module] = []
    for inputs, outputs, kernel, stride in sizes:
        layers += [nn.Conv2d(inputs, outputs, kernel, stride), nn.ReLU()]
    return nn.Sequential(*layers)


def seconds_of_convolutions() -> float:
    """A forward and backward pass for one observation, in a batch of a few."""
    network, pictures = convolutions(), torch.rand(FRAMES, 3, 210, 160)

    def learn() -> None:
        network.zero_grad()
        network(pictures).square().sum().backward()

    return smallest(learn, 4) / FRAMES


def print_bytes() -> None:
    """Bytes an observation takes, and how many of the paper's fit if each has 700."""
    codec = BlockCodec((1, 210, 160), np.uint16)
    print(
        f"{BYTES_STEPS} steps     bytes/observation, random   lasting   that fit, random   lasting"
    )
    for name in ("Breakout", *GAMES):
        random, lasting = (filled_memory(name, codec, BYTES_STEPS, p) for p in (1.0, 0.1))
        each = [memory.num_bytes / BYTES_STEPS for memory in (random, lasting)]
        fitting = [memory.effective_capacity / 40_000 * CAPACITY for memory in (random, lasting)]
        print(f"{name:18s} {each[0]:21.0f} {each[1]:13.0f} {fitting[0]:18,.0f} {fitting[1]:11,.0f}")


def main() -> None:
    if sys.argv[1:] == ["bytes"]:
        print_bytes()
        return
    torch.set_num_threads(1)
    settings = SequenceSettings()
    codec = BlockCodec((1, 210, 160), np.uint16)
    update = seconds_of_convolutions() * BATCH * settings.length
    print(f"sequences of {settings.burn_in} + {settings.length}, batches of {BATCH}")
    print(
        "game               bytes/observation   decode ms/sequence   assemble   share (goal: 5 %)"
    )
    for name in GAMES:
        memory = filled_memory(name, codec)
        decode, assemble = parts_of_sampling(memory)
        print(
            f"{name:18s} {memory.num_bytes / STEPS:17.0f} {1e3 * smallest(decode) / BATCH:20.2f} "
            f"{1e3 * smallest(assemble) / BATCH:10.2f} "
            f"{smallest(lambda memory=memory: memory.sample(BATCH)) / update:8.2%}"
        )
    print(f"(the convolutions of an update alone: {update:.1f} s on one thread)")


if __name__ == "__main__":
    main()
