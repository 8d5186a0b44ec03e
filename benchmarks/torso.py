"""What computing each distinct receptive field once saves, against a stack of `nn.Conv2d`.

Real frames of a random walk, 32 states, forwards and backwards, on one thread. `Torso` finds the
distinct fields first, which is part of its time. Both torsos, several games, and noise, on which
nothing repeats. CPU seconds, in turns, medians. Run with `make bench`, or with the names of games.
"""

import sys
import time
from collections.abc import Callable

import numpy as np
import torch
from torch import nn

from ezgreedy.games.atari.atari57 import games as all_games
from ezgreedy.games.atari.emulator import Emulator
from ezgreedy.learning.settings import ATARI_TORSO, DER_TORSO, Convolution, Sight
from ezgreedy.learning.torso import Torso
from ezgreedy.runs.process_setup import prepare_process

GAMES = ("Breakout", "Freeway", "MontezumaRevenge", "MsPacman", "Pong", "UpNDown")
STATES, TURNS = 32, 9


def frames_of(game: str) -> torch.Tensor:
    """States of a random walk, drawn from 1,500 steps."""
    rng = np.random.default_rng(0)
    if game == "noise":
        return torch.from_numpy(rng.integers(0, 256, (STATES, 4, 84, 84)).astype(np.uint8))
    env = Emulator(game, rng=np.random.default_rng(1))
    seen = [env.reset()]
    for _ in range(1_500):
        step = env.step(int(rng.integers(env.num_actions)))
        seen.append(env.reset() if step.terminated or step.truncated else step.observation)
    return torch.from_numpy(np.stack(seen)[rng.integers(0, len(seen), STATES)])


def plain_stack(convolutions: tuple[Convolution, ...]) -> nn.Sequential:
    layers: list[nn.Module] = []
    channels = 4
    for row in convolutions:
        layers += [nn.Conv2d(channels, row.channels, row.size, row.stride), nn.ReLU()]
        channels = row.channels
    return nn.Sequential(*layers, nn.Flatten())


def learning(features: Callable[[torch.Tensor], torch.Tensor]) -> Callable[[torch.Tensor], None]:
    def run(frames: torch.Tensor) -> None:
        features(frames).square().sum().backward()

    return run


def seconds(call: Callable[[torch.Tensor], None], frames: torch.Tensor) -> float:
    begin = time.process_time()
    call(frames)
    return time.process_time() - begin


def main(names: tuple[str, ...]) -> None:
    prepare_process(threads=1)
    for label, convolutions in (("DER", DER_TORSO), ("Atari", ATARI_TORSO)):
        torso, stack = Torso(Sight((4, 84, 84)), convolutions), plain_stack(convolutions)
        calls = {
            "Torso": learning(torso),
            "Conv2d": learning(lambda frames, own=stack: own(frames.float() / 255.0)),
        }
        for game in (*names, "noise"):
            frames = frames_of(game)
            taken: dict[str, list[float]] = {name: [] for name in calls}
            for _ in range(TURNS):
                for name, call in calls.items():
                    taken[name].append(seconds(call, frames))
            ratio = np.array(taken["Conv2d"]) / np.array(taken["Torso"])
            fields = torso.fields(frames)
            shares = (
                "nothing to share"
                if fields is None
                else ", ".join(f"{layer.share:.2f}" for layer in fields.layers)
            )
            print(f"{label}, {game}: {np.median(ratio):.2f} times as fast (distinct: {shares})")


if __name__ == "__main__":
    asked = tuple(sys.argv[1:]) or GAMES
    main(tuple(all_games()) if asked == ("all",) else asked)
