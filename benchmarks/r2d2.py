"""What R2D2's learner and actors cost on one thread, at full size: 210 × 160 × 3, 18 actions.

The learner's update is measured against a bare one: the same layers from torch, the same passes
(prefix and window through two networks, one of them with gradients), a sum of squares and fused
Adam, on tensors in hand. Acting in 16 environments at once is measured against 16 passes of one:
of those layers from torch, and of our own network, whose single step is cheaper than torch's. CPU
seconds, in turns in one run. Run with `make bench`.
"""

import time
from collections.abc import Callable

import numpy as np
import torch
from torch import Tensor, nn

from ezgreedy.agents.r2d2.learner import SequenceLearner
from ezgreedy.agents.r2d2.learner_settings import RecurrentNetworkSettings, SequenceLearnerSettings
from ezgreedy.agents.r2d2.network import State
from ezgreedy.replay.sequence_batch import SequenceBatch
from ezgreedy.runs.process_setup import prepare_process

BATCH, PREFIX, LENGTH, NUM_ACTIONS, LANES, TURNS = 2, 4, 10, 18, 16, 15
SHAPE, SIZE = (3, 210, 160), 512


class Bare(nn.Module):
    """The network, without anything around it."""

    def __init__(self) -> None:
        super().__init__()
        sizes = [(3, 32, 7, 4), (32, 64, 5, 2), (64, 128, 5, 2), (128, 128, 3, 1)]
        layers: list[nn.Module] = []
        for size in sizes:
            layers += [nn.Conv2d(*size), nn.ReLU(inplace=True)]
        self.torso = nn.Sequential(*layers, nn.Flatten(), nn.Linear(5120, SIZE), nn.ReLU())
        self.memory = nn.LSTM(SIZE + NUM_ACTIONS + 1, SIZE)
        self.value = nn.Sequential(nn.Linear(SIZE, SIZE), nn.ReLU(), nn.Linear(SIZE, 1))
        self.advantage = nn.Sequential(
            nn.Linear(SIZE, SIZE), nn.ReLU(), nn.Linear(SIZE, NUM_ACTIONS)
        )

    def forward(self, frames: Tensor, extras: Tensor, state: tuple[Tensor, Tensor]) -> Tensor:
        """Values, [time, batch, actions]."""
        seen = self.torso(frames.flatten(0, 1)).view(*frames.shape[:2], -1)
        outputs, _ = self.memory(torch.cat([seen, extras], dim=2), state)
        advantage = self.advantage(outputs)
        return self.value(outputs) + advantage - advantage.mean(dim=2, keepdim=True)


def bare_update() -> Callable[[], None]:
    online, target = Bare(), Bare()
    adam = torch.optim.Adam(online.parameters(), 2e-4, eps=1e-3, fused=True)
    steps = PREFIX + LENGTH + 1
    frames, extras = torch.rand(steps, BATCH, *SHAPE), torch.rand(steps, BATCH, NUM_ACTIONS + 1)
    state = (torch.zeros(1, BATCH, SIZE), torch.zeros(1, BATCH, SIZE))
    wanted = torch.rand(LENGTH + 1, BATCH, NUM_ACTIONS)

    def update() -> None:
        with torch.no_grad():
            online(frames[:PREFIX], extras[:PREFIX], state)
            target(frames[:PREFIX], extras[:PREFIX], state)
            target(frames[PREFIX:], extras[PREFIX:], state)
        loss = (online(frames[PREFIX:], extras[PREFIX:], state) - wanted).square().sum()
        adam.zero_grad()
        loss.backward()
        adam.step()

    return update


def learner() -> SequenceLearner:
    settings = SequenceLearnerSettings(batch_size=BATCH, burn_in=PREFIX, length=LENGTH)
    return SequenceLearner(RecurrentNetworkSettings(NUM_ACTIONS), settings, seed=0)


def make_batch() -> SequenceBatch:
    rng = np.random.default_rng(0)
    steps = PREFIX + LENGTH
    return SequenceBatch(
        observations=rng.integers(0, 256, (BATCH, steps + 1, *SHAPE), dtype=np.uint8),
        actions=rng.integers(0, NUM_ACTIONS, (BATCH, steps)),
        rewards=rng.normal(size=(BATCH, steps)).astype(np.float32),
        previous_action=np.zeros(BATCH, dtype=np.int64),
        previous_reward=np.zeros(BATCH, dtype=np.float32),
        state_h=np.zeros((BATCH, SIZE), dtype=np.float32),
        state_c=np.zeros((BATCH, SIZE), dtype=np.float32),
        prefix_lengths=np.full(BATCH, PREFIX),
        lengths=np.full(BATCH, LENGTH),
        terminated=np.zeros(BATCH, dtype=np.bool_),
        weights=np.ones(BATCH),
        masks=np.full((BATCH, steps), 255, dtype=np.uint8),
        behaviour_probabilities=np.ones((BATCH, steps), dtype=np.float32),
        slots=np.arange(BATCH),
        generations=np.zeros(BATCH, dtype=np.int64),
    )


def acting(made: SequenceLearner, lanes: int, times: int) -> Callable[[], None]:
    rng = np.random.default_rng(1)
    frames = rng.integers(0, 256, (lanes, *SHAPE), dtype=np.uint8)
    actions, rewards = np.zeros(lanes, dtype=np.int64), np.zeros(lanes, dtype=np.float32)
    state: State = made.online.initial_state(lanes)

    def act() -> None:
        for _ in range(times):
            made.values(frames, actions, rewards, state)

    return act


def bare_acting() -> Callable[[], None]:
    network = Bare()
    frames, extras = torch.rand(1, 1, *SHAPE), torch.rand(1, 1, NUM_ACTIONS + 1)
    state = (torch.zeros(1, 1, SIZE), torch.zeros(1, 1, SIZE))

    def act() -> None:
        with torch.no_grad():
            for _ in range(LANES):
                network(frames, extras, state)

    return act


def in_turns(calls: dict[str, Callable[[], object]]) -> dict[str, np.ndarray]:
    """CPU seconds of each call, one row for every turn."""
    for call in calls.values():
        call()
    seconds: dict[str, list[float]] = {name: [] for name in calls}
    for _ in range(TURNS):
        for name, call in calls.items():
            begin = time.process_time()
            call()
            seconds[name].append(time.process_time() - begin)
    return {name: np.array(taken) for name, taken in seconds.items()}


def spread(ratios: np.ndarray) -> str:
    return f"{np.median(ratios):.2f} ({ratios.min():.2f} to {ratios.max():.2f})"


if __name__ == "__main__":
    prepare_process(threads=1)  # as `ezgreedy train` does
    ours, batch = learner(), make_batch()
    taken = in_turns(
        {
            "ours": lambda: ours.update(batch),
            "bare": bare_update(),
            "together": acting(ours, LANES, 1),
            "apart": acting(ours, 1, LANES),
            "bare, apart": bare_acting(),
        }
    )
    for name, seconds in taken.items():
        print(f"  {name}: {1e3 * seconds.min():.0f} ms")
    print(f"  bare update / ours: {spread(taken['bare'] / taken['ours'])}")
    for name in ("bare, apart", "apart"):
        ratio = spread(taken[name] / taken["together"])
        print(f"  acting, {LANES} passes of one ({name}) / one pass of {LANES}: {ratio}")
