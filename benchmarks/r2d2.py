"""What R2D2's learner and actors cost on one thread, at full size: 210 × 160 × 3, 18 actions.

Frames are those of random play, and noise, in which nothing repeats. An update learns from 4
windows of 20 + 80 steps; acting is one step of 16 lanes, of 4 and of 1. The bare subject has the
same layers from torch and makes the same passes (prefix and window through two networks, one of
them with gradients), a sum of squares and fused Adam, on tensors in hand. Each subject has a
process of its own; they take turns and measure CPU seconds. Run with `make bench`, or with the
names of games. `--against SRC` adds a subject: the sources of another checkout, for example of an
older commit.
"""

import argparse
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from ezgreedy.agents.r2d2.learner import SequenceLearner
from ezgreedy.agents.r2d2.learner_settings import RecurrentNetworkSettings, SequenceLearnerSettings
from ezgreedy.games.atari.emulator import Emulator
from ezgreedy.games.atari.palette import colours, expand
from ezgreedy.games.protocol import R2D2_PROTOCOL
from ezgreedy.replay.sequence_batch import SequenceBatch
from ezgreedy.runs.process_setup import prepare_process

GAMES = ("Breakout", "Freeway", "MontezumaRevenge", "MsPacman", "Pong", "UpNDown")
BATCH, PREFIX, LENGTH, NUM_ACTIONS, LANES = 4, 20, 80, 18, 16
SIZE, STEPS, TURNS = 512, PREFIX + LENGTH, 5
# Name of what is measured: number of lanes.
ACTING = {"acting, 16 lanes": 16, "acting, 4 lanes": 4, "acting, 1 lane": 1}

Codes = NDArray[np.uint16]
Call = Callable[[], object]


def play(game: str) -> Codes:
    """Screens of random play in several lanes, [lanes, steps, 1, 210, 160]."""
    rng = np.random.default_rng(0)
    shape = (LANES, STEPS + 100, 1, 210, 160)
    if game == "noise":
        return rng.integers(0, len(colours()), (BATCH, STEPS + 1, *shape[2:])).astype(np.uint16)
    screens = np.empty(shape, dtype=np.uint16)
    for lane in range(LANES):
        env = Emulator(game, R2D2_PROTOCOL, rng=np.random.default_rng(lane))
        screens[lane, 0] = env.reset()
        for step in range(1, shape[1]):
            found = env.step(int(rng.integers(env.num_actions)))
            is_over = found.terminated or found.truncated
            screens[lane, step] = env.reset() if is_over else found.observation
    return screens


def windows_of(screens: Codes) -> Codes:
    """Screens of one batch, each window from another lane, [batch, steps + 1, 1, 210, 160]."""
    rng = np.random.default_rng(1)
    starts = rng.integers(0, screens.shape[1] - STEPS, BATCH)
    return np.stack([screens[lane, s : s + STEPS + 1] for lane, s in enumerate(starts)])


def make_batch(observations: Codes) -> SequenceBatch:
    rng = np.random.default_rng(2)
    return SequenceBatch(
        observations=observations,
        actions=rng.integers(0, NUM_ACTIONS, (BATCH, STEPS)),
        rewards=rng.normal(size=(BATCH, STEPS)).astype(np.float32),
        previous_action=np.zeros(BATCH, dtype=np.int64),
        previous_reward=np.zeros(BATCH, dtype=np.float32),
        state_h=np.zeros((BATCH, SIZE), dtype=np.float32),
        state_c=np.zeros((BATCH, SIZE), dtype=np.float32),
        prefix_lengths=np.full(BATCH, PREFIX),
        lengths=np.full(BATCH, LENGTH),
        terminated=np.zeros(BATCH, dtype=np.bool_),
        weights=np.ones(BATCH),
        masks=np.full((BATCH, STEPS), 255, dtype=np.uint8),
        behaviour_probabilities=np.ones((BATCH, STEPS), dtype=np.float32),
        slots=np.arange(BATCH),
        generations=np.zeros(BATCH, dtype=np.int64),
    )


def our_calls(screens: Codes) -> dict[str, Call]:
    """An update and steps of a whole learner, from codes."""
    settings = SequenceLearnerSettings(batch_size=BATCH, burn_in=PREFIX, length=LENGTH)
    network = RecurrentNetworkSettings(NUM_ACTIONS, has_codes=True)
    learner = SequenceLearner(network, settings, seed=0)
    batch = make_batch(windows_of(screens))

    def acting(lanes: int) -> Call:
        actions, rewards = np.zeros(lanes, dtype=np.int64), np.zeros(lanes, dtype=np.float32)
        state = learner.online.initial_state(lanes)
        observations = seen_by(screens, lanes)
        return lambda: learner.values(observations, actions, rewards, state)

    update: dict[str, Call] = {"update": lambda: learner.update(batch)}
    return update | {name: acting(lanes) for name, lanes in ACTING.items()}


def seen_by(screens: Codes, lanes: int) -> Codes:
    """What lanes see at one moment, [lanes, 1, 210, 160]."""
    late = screens[:, -LANES // len(screens) :].swapaxes(0, 1).reshape(-1, *screens.shape[2:])
    return np.ascontiguousarray(late[-lanes:])


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

    def forward(self, frames: Tensor) -> Tensor:
        """Values, [time, batch, actions]."""
        seen = self.torso(frames.flatten(0, 1)).view(*frames.shape[:2], -1)
        extras = seen.new_zeros(*frames.shape[:2], NUM_ACTIONS + 1)
        outputs, _ = self.memory(torch.cat([seen, extras], dim=2))
        advantage = self.advantage(outputs)
        return self.value(outputs) + advantage - advantage.mean(dim=2, keepdim=True)


def bare_calls(screens: Codes) -> dict[str, Call]:
    """The same of torch's own layers, from floats."""
    online, target = Bare(), Bare()
    adam = torch.optim.Adam(online.parameters(), 2e-4, eps=1e-3, fused=True)
    frames = floats(windows_of(screens)).transpose(0, 1).contiguous()
    wanted = torch.rand(LENGTH + 1, BATCH, NUM_ACTIONS)

    def update() -> None:
        with torch.no_grad():
            online(frames[:PREFIX])
            target(frames[:PREFIX])
            target(frames[PREFIX:])
        loss = (online(frames[PREFIX:]) - wanted).square().sum()
        adam.zero_grad()
        loss.backward()
        adam.step()

    def acting(lanes: int) -> Call:
        seen = floats(seen_by(screens, lanes))[None]
        return lambda: torch.no_grad()(online)(seen)

    calls: dict[str, Call] = {"update": update}
    return calls | {name: acting(lanes) for name, lanes in ACTING.items()}


def floats(codes: Codes) -> Tensor:
    return torch.from_numpy(expand(codes)).float() / 255.0


def answer(kind: str) -> None:
    """Be a subject: for each line "path of screens, what to measure", print CPU seconds."""
    prepare_process(threads=1)  # as `ezgreedy train` does
    calls: dict[str, Call] = {}
    loaded = ""
    for line in sys.stdin:
        path, measured = line.rstrip("\n").split("\t")
        if path != loaded:
            calls, loaded = {}, path  # frees memory before more is used
            calls = (bare_calls if kind == "bare" else our_calls)(np.load(path))
            for call in calls.values():
                call()
        times = 1 if measured == "update" else 10
        begin = time.process_time()
        for _ in range(times):
            calls[measured]()
        print((time.process_time() - begin) / times, flush=True)


class Subject:
    """A process that measures."""

    def __init__(self, kind: str, source: Path | None = None) -> None:
        environment = dict(os.environ)
        if source is not None:
            environment["PYTHONPATH"] = str(source.resolve())
            environment["NUMBA_CACHE_DIR"] = tempfile.mkdtemp()
        self._process = subprocess.Popen(
            [sys.executable, __file__, "--subject", kind],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env=environment,
        )

    def seconds(self, screens: str, measured: str) -> float:
        """CPU seconds of one call, on the screens in this file."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(f"{screens}\t{measured}\n")
        self._process.stdin.flush()
        return float(self._process.stdout.readline())


def shares(screens: Codes) -> str:
    """Distinct fields per place in every layer, of a batch of windows and of a step of lanes."""
    from ezgreedy.agents.r2d2.learner_settings import R2D2_TORSO
    from ezgreedy.learning.distinct_fields import find_fields

    found = []
    for frames in (windows_of(screens).reshape(-1, 1, 210, 160), seen_by(screens, LANES)):
        fields = find_fields(frames, R2D2_TORSO)
        assert fields is not None
        found.append(", ".join(f"{layer.share:.3f}" for layer in fields.layers))
    return f"distinct in a batch: {found[0]}; in {LANES} lanes: {found[1]}"


def measure(games: tuple[str, ...], subjects: dict[str, Subject]) -> None:
    """Print how long each subject takes against ours, for every game and for the median game."""
    medians: dict[tuple[str, str], list[float]] = {}
    with tempfile.TemporaryDirectory() as folder:
        for game in (*games, "noise"):
            screens, path = play(game), f"{folder}/{game}.npy"
            np.save(path, screens)
            print(f"{game} ({shares(screens)})", flush=True)
            for measured in ("update", *ACTING):
                rows = [
                    [subject.seconds(path, measured) for subject in subjects.values()]
                    for _ in range(TURNS)
                ]
                seconds = np.array(rows).T
                print(f"  {measured}: {1e3 * seconds[0].min():.1f} ms", end="")
                for name, other in zip(list(subjects)[1:], seconds[1:], strict=True):
                    ratios = other / seconds[0]
                    spread = f"{ratios.min():.2f} to {ratios.max():.2f}"
                    print(f"; {name} / ours {np.median(ratios):.2f} ({spread})", end="")
                    if game != "noise":
                        medians.setdefault((measured, name), []).append(float(np.median(ratios)))
                print(flush=True)
            os.remove(path)
    for (measured, name), ratios_of_games in medians.items():
        print(f"median of games, {measured}: {name} / ours {np.median(ratios_of_games):.2f}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("games", nargs="*", default=GAMES)
    parser.add_argument("--against", type=Path)
    parser.add_argument("--subject", help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.subject:
        answer(asked.subject)
    else:
        taking_turns = {"ours": Subject("ours"), "bare": Subject("bare")}
        if asked.against is not None:
            taking_turns["before"] = Subject("ours", asked.against)
        measure(tuple(asked.games), taking_turns)
